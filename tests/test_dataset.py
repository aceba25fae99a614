"""The shipped data file: what can be checked of its cases by machine."""

import re
import unittest
from collections import Counter
from collections.abc import Iterator

from categories import CLASS_OF
from common import HERE, load_dataset
from records import VERDICTS, Case, History

CASES = load_dataset(HERE / "LexPilot_release_multiturn.json").cases
LEGAL_TALK = re.compile(r"《|民法典|第[一二三四五六七八九十百千\d]+条|诉讼时效|抗辩|举证责任|过失相抵|必留份")
PERSONAL = re.compile(r"1[3-9]\d{9}|\d{17}[\dXx]|[（(]20\d\d[)）].{0,12}号")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(万?)元")


def told(history: History, role: str = "user") -> str:
    return "\n".join(message["content"] for message in history if message["role"] == role)


def letters(text: str) -> str:
    return re.sub(r"[\s，。；、：“”（）]", "", text)


def spellings(number: str, ten_thousands: str) -> Iterator[str]:
    """How a lay person may write an amount: as in the claim, in 万, or in full."""
    yield number + ten_thousands
    value = round(float(number) * (10_000 if ten_thousands else 1))
    yield str(value)
    if value >= 10_000:
        yield f"{value / 10_000:g}万"


class Shipped(unittest.TestCase):
    def each(self) -> Iterator[Case]:
        for case in CASES:
            with self.subTest(case.number):
                yield case

    def test_there_is_a_case_for_each_cause_under_its_own_number(self) -> None:
        self.assertEqual([case.cause for case in CASES], [*CLASS_OF])
        self.assertEqual([case.number for case in CASES], [f"LP-{n:02d}-01" for n in range(1, 37)])

    def test_message_counts_and_verdicts_are_mixed(self) -> None:
        self.assertEqual({len(case.complete) for case in CASES}, {3, 5, 7})
        verdicts = Counter(verdict for case in CASES for verdict in case.verdicts.values())
        for verdict, low, high in zip(VERDICTS, (0.35, 0.25, 0.25), (0.45, 0.35, 0.35), strict=True):
            self.assertTrue(low <= verdicts[verdict] / verdicts.total() <= high, f"{verdict}: {verdicts}")

    def test_every_focal_point_has_its_key_detail(self) -> None:
        for case in self.each():
            self.assertEqual(len(case.focal_points), len(case.key_details))
            self.assertIn(len(case.focal_points), (1, 2, 3))

    def test_people_do_not_talk_like_statutes_and_nobody_is_real(self) -> None:
        for case in self.each():
            for history in (case.complete, case.underspecified):
                self.assertIsNone(LEGAL_TALK.search(told(history)))
                self.assertIsNone(PERSONAL.search(told(history) + told(history, "assistant")))

    def test_every_amount_that_is_claimed_is_named_by_the_user_in_both_histories(self) -> None:
        for case in self.each():
            for claim in case.verdicts:
                for number, ten_thousands in AMOUNT.findall(claim):
                    for history in (case.complete, case.underspecified):
                        self.assertTrue(any(way in told(history) for way in spellings(number, ten_thousands)), claim)

    def test_no_key_detail_stands_in_the_underspecified_history(self) -> None:
        for case in self.each():
            open_words = letters(told(case.underspecified) + told(case.underspecified, "assistant"))
            claims = letters("".join(case.verdicts))
            for detail in map(letters, case.key_details):
                runs = {detail[n : n + 8] for n in range(len(detail) - 7)}
                self.assertEqual({run for run in runs if run in open_words and run not in claims}, set())

    def test_the_two_histories_of_a_case_are_of_much_the_same_length(self) -> None:
        longer = 0
        for case in self.each():
            complete, underspecified = (sum(len(m["content"]) for m in h) for h in (case.complete, case.underspecified))
            self.assertTrue(0.85 <= complete / underspecified <= 1.18, (complete, underspecified))
            longer += complete > underspecified
        self.assertTrue(0.35 <= longer / len(CASES) <= 0.65, longer)


if __name__ == "__main__":
    unittest.main()
