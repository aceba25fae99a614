"""The shipped data file: what can be checked of its cases by machine, and the checks themselves on made-up cases."""

import contextlib
import io
import json
import re
import unittest
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fakes import Folder, history, make_case

from categories import CLASS_OF
from check_dataset import (
    Reading,
    blind,
    blind_table,
    claim_giveaway,
    composition,
    giveaway,
    leaks,
    load_readings,
    main,
    nearest,
    repeated,
    surface_giveaway,
    text_sha256,
    told,
    unnamed_amounts,
)
from common import HERE, load_dataset
from records import VERDICTS, Case

CASES = load_dataset(HERE / "LexPilot_release_multiturn.json").cases
LEGAL_TALK = re.compile(r"《|民法典|第[一二三四五六七八九十百千\d]+条|诉讼时效|抗辩|举证责任|过失相抵|必留份")
PERSONAL = re.compile(r"1[3-9]\d{9}|\d{17}[\dXx]|[（(〔]20\d\d[)）〕]")


class Shipped(unittest.TestCase):
    def each(self) -> Iterator[Case]:
        for case in CASES:
            with self.subTest(case.number):
                yield case

    def between(self, low: float, value: float, high: float) -> None:
        self.assertTrue(low <= value <= high, f"{value} is not within {low} and {high}")

    def test_every_cause_has_twelve_cases_that_stand_in_the_order_of_their_numbers(self) -> None:
        expected = [(cause, f"LP-{n:02d}-{k:02d}") for n, cause in enumerate(CLASS_OF, 1) for k in range(1, 13)]
        self.assertEqual(len(expected), 36 * 12)
        self.assertEqual([(case.cause, case.number) for case in CASES], expected)

    def test_claims_focal_points_and_messages_are_as_many_as_they_should_be(self) -> None:
        for case in self.each():
            self.between(1, len(case.verdicts), 5)
            self.between(1, len(case.focal_points), 3)
            self.assertEqual(len(case.focal_points), len(case.key_details))
        for cause in CLASS_OF:
            self.assertEqual({len(case.complete) for case in CASES if case.cause == cause}, {3, 5, 7})
        for length, share in ((3, 0.4), (5, 0.4), (7, 0.2)):
            self.between(share - 0.05, sum(len(case.complete) == length for case in CASES) / len(CASES), share + 0.05)

    def test_verdicts_are_mixed_overall_and_in_every_place(self) -> None:
        verdicts = [list(case.verdicts.values()) for case in CASES]
        overall = Counter(verdict for given in verdicts for verdict in given)
        for verdict, low, high in zip(VERDICTS, (0.35, 0.25, 0.25), (0.45, 0.35, 0.35), strict=True):
            share = overall[verdict] / overall.total()
            self.between(low, share, high)
            for place in range(3):
                at = [given[place] for given in verdicts if len(given) > place]
                self.between(share - 0.08, at.count(verdict) / len(at), share + 0.08)
        self.between(0.15, sum(len(set(given)) == 1 for given in verdicts) / len(verdicts), 0.25)

    def test_no_shortcut_leads_to_a_label(self) -> None:
        for found, bound in ((giveaway(CASES), 0.65), (surface_giveaway(CASES), 0.55), (claim_giveaway(CASES), 0.50)):
            assert found is not None
            self.assertLessEqual(found, bound)
        longer = sum(len(told(case.complete)) > len(told(case.underspecified)) for case in CASES)
        self.between(0.35, longer / len(CASES), 0.65)

    def test_the_two_histories_of_a_case_are_of_much_the_same_length(self) -> None:
        for case in self.each():
            self.between(0.85, len(told(case.complete)) / len(told(case.underspecified)), 1.18)

    def test_people_do_not_talk_like_statutes_and_nobody_is_real(self) -> None:
        for case in self.each():
            for version in (case.complete, case.underspecified):
                self.assertIsNone(LEGAL_TALK.search(told(version, "user")))
                self.assertIsNone(PERSONAL.search(told(version)))

    def test_every_amount_that_is_claimed_is_named_by_the_user_in_both_histories(self) -> None:
        for case in self.each():
            self.assertEqual(unnamed_amounts(case), [])

    def test_no_key_detail_stands_in_the_underspecified_history(self) -> None:
        for case in self.each():
            self.assertEqual(leaks(case), [])

    def test_no_two_cases_are_written_alike(self) -> None:
        alike = nearest(CASES)
        assert alike is not None
        self.assertLessEqual(alike[0], 0.30)
        self.assertEqual(repeated(CASES), [])

    def test_blind_readers_decide_the_complete_histories_and_cannot_guess_the_others(self) -> None:
        readings = load_readings(HERE / "blind_readings.jsonl", CASES)
        self.assertEqual([*readings], [case.number for case in CASES])
        found = blind(CASES, readings)
        self.assertGreaterEqual(found.decided / found.claims, 0.92)
        self.assertGreaterEqual(found.decided_qwk or 0, 0.90)
        self.assertLessEqual(found.false_alarms / found.cases, 0.15)
        self.assertGreaterEqual(found.noticed / found.cases, 0.90)
        self.assertGreaterEqual(found.named / found.cases, 0.80)
        self.assertLessEqual(found.guessed_qwk or 0, 0.45)

    def test_the_data_sheet_states_the_figures_of_the_file(self) -> None:
        sheet = (HERE / "DATASHEET.md").read_text(encoding="utf-8")
        readings = load_readings(HERE / "blind_readings.jsonl", CASES)
        for line in composition(CASES) + blind_table(CASES, readings):
            self.assertTrue(line in sheet, f"not in DATASHEET.md: {line}")


def made(number: str, cause: str = "民间借贷纠纷", **changes: Any) -> Case:
    """A case as the loader would hand it on, written by a script."""
    values: dict[str, Any] = {
        "number": number,
        "cause": cause,
        "plaintiff_type": "自然人",
        "focal_points": ["钱还过没有"],
        "key_details": ["去年三月十五号在信用社门口还过3200元"],
        "verdicts": {"请求判令被告归还借款1万元": "部分支持"},
        "complete": history("他借了我1万，去年三月十五号在信用社门口还过3200元，能都要回来吗？"),
        "underspecified": history("他借了我1万，去年腊月二十三在集上碰见过两回，能都要回来吗？"),
    }
    return Case(**{**values, **changes})


class Checks(Folder):
    """That each check finds what it is there for, and nothing else."""

    def test_a_leak_is_a_run_of_eight_characters_across_punctuation_or_a_figure_by_itself(self) -> None:
        self.assertEqual(leaks(made("1")), [])
        run = made("1", underspecified=history("他借了我1万，去年三月，十五号在集上见过"))
        self.assertEqual(leaks(run), ["去年三月十五号在"])
        self.assertEqual(leaks(made("1", underspecified=history("他借了我1万，运费3200元"))), ["3200元"])
        self.assertEqual(leaks(made("1", underspecified=history("他借了我1万，运费13200元"))), [])
        self.assertEqual(
            leaks(made("1", key_details=["钱是王五转给他的"], underspecified=history("钱是王五转给他的"))),
            ["钱是王五转给他的"],
        )
        in_claim = made("1", verdicts={"请求判令被告归还3200元": "驳回"}, underspecified=history("叫他还3200元"))
        self.assertEqual(leaks(in_claim), [])

    def test_a_date_leaks_as_a_whole_and_not_by_its_year_or_month(self) -> None:
        for detail, told_date, leaked in (
            ("2026年3月15日到期", "3月15号", ["2026-3-15"]),
            ("2026年3月15日到期", "2026年3月15号", ["2026-3-15"]),
            ("2026年3月15日到期", "2025年3月15号", []),
            ("2026年3月15日到期", "2026年4月15号", []),
            ("2026年3月15日到期", "2026年3月16号", []),
            ("2026年3月15日到期", "2026年3月", []),
            ("2026年3月到期", "3月", ["2026-3"]),
            ("住了3个月", "3月", []),
        ):
            with self.subTest(detail=detail, told=told_date):
                found = leaks(made("1", key_details=[detail], underspecified=history(told_date)))
                self.assertEqual([leak for leak in found if "-" in leak], leaked)

    def test_an_amount_may_be_written_in_full_or_in_ten_thousands_but_must_stand_in_both(self) -> None:
        for way in ("1万", "10000", "1万元"):
            self.assertEqual(
                unnamed_amounts(made("1", complete=history(way), underspecified=history("还我" + way))), []
            )
        for way in ("11万", "1000", "100000", "0.1万", "1.1万"):
            self.assertEqual(unnamed_amounts(made("1", complete=history("1万"), underspecified=history(way))), ["1万"])

    def test_likeness_is_shared_five_grams_over_all_five_grams(self) -> None:
        # 甲乙丙丁戊己 has 2 five-grams, 甲乙丙丁戊庚 as well; 1 is shared of 3
        one, other = (
            made("1", underspecified=history("甲乙丙丁戊己")),
            made("2", underspecified=history("甲乙，丙丁戊庚")),
        )
        self.assertEqual(nearest([one, other]), (1 / 3, "1", "2"))

    def test_a_sentence_in_four_cases_is_a_repetition_and_in_three_is_none(self) -> None:
        sentence = "这件事情我已经跟家里人商量过很多回了"
        four = [
            made(str(n), complete=history("在吗"), underspecified=history(f"甲{n}。{sentence}！")) for n in range(4)
        ]
        three_in_both = [case._replace(complete=case.underspecified) for case in four[:3]]
        self.assertEqual((repeated(three_in_both), repeated(four)), ([], [sentence]))

    def test_a_classifier_finds_a_word_a_length_and_a_claim_that_give_a_label_away(self) -> None:
        causes = [*CLASS_OF][:6]
        marked = [
            made(
                f"{cause}{n}",
                cause,
                complete=history(f"第{n}个人说合同写明" + "了" * 40),
                underspecified=history(f"第{n}个人说邻居来过"),
                verdicts={
                    f"请求判令停止侵害{n}": "支持",
                    f"请求判令支付慰问金{n}": "驳回",
                    f"请求判令返还{n}": "部分支持",
                },
            )
            for cause in causes
            for n in range(4)
        ]
        self.assertEqual((giveaway(marked), surface_giveaway(marked), claim_giveaway(marked)), (1.0, 1.0, 1.0))

    def test_equal_histories_give_nothing_away(self) -> None:
        causes = [*CLASS_OF][:6]
        text = ("甲乙丙丁", "戊己庚辛", "壬癸子丑", "寅卯辰巳")
        same = [
            made(f"{c}{n}", c, complete=history(text[n]), underspecified=history(text[n]))
            for c in causes
            for n in range(4)
        ]
        self.assertEqual((giveaway(same), surface_giveaway(same)), (0.5, 0.5))

    def test_blind_figures_are_counted_against_the_file(self) -> None:
        cases = [
            made("1", verdicts={"请求判令甲": "支持", "请求判令乙": "驳回"}),
            made("2", verdicts={"请求判令甲": "部分支持"}),
            made("3"),
        ]
        readings = {
            "1": (
                Reading(True, "几号", False, ["支持", "部分支持"]),
                Reading(True, "还过没有", True, ["驳回", "支持"]),
            ),
            "2": (Reading(True, "哪天", False, ["部分支持"]), Reading(False, "", False, ["部分支持"])),
        }
        # complete: weights 0, 1, 0 observed; margins truth 1 1 1 and reader 1 2 0: expected (0 + 1 + 4 + 2 * (1 + 0 + 1)) / 3 = 3
        # underspecified: observed 4 + 4 + 0; both margins 1 1 1: expected (2 * 4 + 4 * 1) / 3 = 4
        self.assertEqual(blind(cases, readings), (2, 3, 2, 2 / 3, 2, 1, 1, 1 - 8 / 4))

    def test_a_reading_counts_only_for_the_text_that_was_read(self) -> None:
        read = made("1")
        blank = {"missing": False, "fact": "", "right": False, "verdicts": ["支持"]}
        line = {"case_number": "1", "text_sha256": text_sha256(read), "complete": blank, "underspecified": blank}
        path = self.root / "blind_readings.jsonl"
        path.write_text(json.dumps(line) + "\n", encoding="utf-8")
        same_text = made("1", verdicts={"请求判令被告归还借款1万元": "驳回"}, key_details=["没还过"])
        for case in (read, same_text):
            self.assertEqual([*load_readings(path, [case])], ["1"])
        for case in (
            made("2"),
            made("1", complete=history("他借了我2万，能要回来吗？")),
            made("1", underspecified=history("他借了我2万，能要回来吗？")),
            made("1", verdicts={"请求判令被告归还借款2万元": "部分支持"}),
        ):
            self.assertEqual(load_readings(path, [case]), {})

    def test_the_command_prints_its_tables_for_any_data_file_and_says_what_is_undefined(self) -> None:
        one, other = [*CLASS_OF][:2]
        n_grams = "| complete or underspecified, from character 2-4-grams: AUC | {} |"
        claims = "| verdict from the words of the claim alone: macro-F1 | {} |"
        overlap = "| largest overlap of 5-grams between two cases | {} |"
        undefined = "undefined"
        mixed = ("支持", "部分支持", "驳回")
        for causes, verdicts, lines in (
            # made cases tell the two histories apart by the same words throughout; their claims are alike, so that one
            # verdict is predicted of all: F1 of 2 * 2 / (6 + 2) for it and 0 for the other two, 1 / 6 in the mean
            ((one, one, one, other, other, other), mixed * 2, (n_grams.format("1.00"), claims.format("0.17"))),
            ((one, one, one), mixed, (n_grams.format(undefined), claims.format(undefined))),
            ((one, one, other), ("支持",) * 3, (claims.format(undefined),)),
            ((one, one, other, other), ("支持", "支持", "驳回", "驳回"), (claims.format(undefined),)),
            ((one,), ("支持",), (n_grams.format(undefined), overlap.format(undefined))),
        ):
            with self.subTest(causes=causes, verdicts=verdicts):
                cases = [make_case(str(n), cause_of_action=cause) for n, cause in enumerate(causes)]
                for case, verdict in zip(cases, verdicts, strict=True):
                    case["result_dict"] = {"请求判令被告归还借款1万元": verdict}
                stream = io.StringIO()
                with contextlib.redirect_stdout(stream):
                    main(["--dataset", str(self.write_cases(cases))])
                count = len(cases)
                self.assertIn(f"| **all** | {count} | {count} | {verdicts.count('支持')} (", stream.getvalue())
                for line in (*lines, "No case of this file was read blind as it stands."):
                    self.assertIn(line, stream.getvalue())


if __name__ == "__main__":
    unittest.main()
