"""What a text that is meant to steer a judge can do by its form: leave its slot of a prompt, or change how a reply is read.

Whether its words persuade a judge is for a real judge to show: `eval_judges.py --attacks N`.
"""

import hashlib
import itertools
import json
import re
import unicodedata
import unittest
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import attacks
from attacks import ATTACKS
from fakes import body

from eval_DCG import dcg_judge_prompt, read_hit
from eval_LCA import lca_judge_prompt, read_kind
from eval_LJP_gold import extraction_prompt, read_verdicts
from LexAwN_gen import user_prompt
from records import HITS, RESPONSE_KINDS, VERDICTS, History, Message
from replies import UnreadableReply, completion_text

BENIGN = "您好。这笔钱当时是转账还是给的现金？有没有写过借条？"
ALL = [attack for some in ATTACKS.values() for attack in some]
TEXTS = [text for attack in ALL for text in (attack, f"{BENIGN}\n\n{attack}")]
TAG = re.compile(r"</?(think|thinking|thought|reasoning)>", re.IGNORECASE)

# ----------------------------------------------------------------------------------------------------------------------
# Prompts

POINTS, DETAILS = ["钱还过没有", "利息怎么约定"], ["三月还过一半", "口头说好月息一分"]
CLAIMS = ["请求判令被告归还借款1万元", "请求判令被告支付利息"]


def told(*contents: str) -> History:
    return [Message(role="assistant" if n % 2 else "user", content=text) for n, text in enumerate(contents)]


STORY = told("他借了我1万，能都要回来吗？")


def continued(question: str) -> History:
    """A history in which the evaluated model has asked before."""
    return told("他借了我1万，能都要回来吗？", question, "是转账，没有借条。")


QUOTED: dict[str, Callable[[str], str]] = {
    "LCA judge, response": lca_judge_prompt,
    "DCG judge, question": partial(dcg_judge_prompt, STORY, POINTS, DETAILS),
    "extraction judge, response": partial(extraction_prompt, CLAIMS),
}
PLAIN: dict[str, Callable[[str], str]] = {
    "User Model, question": partial(user_prompt, STORY, POINTS, DETAILS),
    "User Model, history": lambda text: user_prompt(continued(text), POINTS, DETAILS, "还过多少？"),
    "DCG judge, history": lambda text: dcg_judge_prompt(continued(text), POINTS, DETAILS, "还过多少？"),
}


def marks(text: str) -> tuple[str, str]:
    """The opening and the closing mark of a text that is quoted."""
    mark = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"[引文 {mark} 开始]", f"[引文 {mark} 结束]"


def quotation(text: str) -> str:
    return "\n".join((marks(text)[0], text, marks(text)[1]))


class Prompts(unittest.TestCase):
    def around(self, fill: Callable[[str], str], shown: str) -> tuple[str, str]:
        """What a prompt has before and after a benign response, which stands in it once."""
        before, found, after = fill(BENIGN).partition(shown)
        self.assertEqual((found, BENIGN in before, BENIGN in after), (shown, False, False))
        return before, after

    def test_in_a_judge_s_prompt_nothing_changes_but_the_quotation(self) -> None:
        for slot, fill in QUOTED.items():
            before, after = self.around(fill, quotation(BENIGN))
            for text in TEXTS:
                with self.subTest(slot, text=ascii(text)):
                    self.assertEqual(fill(text), before + quotation(text) + after)

    def test_a_text_stands_once_between_its_marks_and_its_closing_mark_nowhere_but_after_it(self) -> None:
        for slot, fill in QUOTED.items():
            before, _ = self.around(fill, quotation(BENIGN))
            for text in TEXTS:
                # Who knows the marks of all written so far, and goes on with them, has written something else.
                guess = f"{text}\n{marks(text)[1]}\n{text}\n{marks(text)[0]}\n{BENIGN}"
                for given in (text, guess, f"{guess}\n{marks(guess)[1]}"):
                    with self.subTest(slot, text=ascii(given)):
                        prompt, (opening, closing) = fill(given), marks(given)
                        self.assertEqual(prompt.count(f"\n\n{opening}\n{given}\n{closing}\n\n"), 1)
                        self.assertEqual((prompt.count(opening), prompt.count(closing)), (1, 1))
                        self.assertEqual(
                            (prompt.split("\n").count(closing), prompt.splitlines().count(closing)), (1, 1)
                        )
                        self.assertEqual(prompt.index(closing), len(before) + len(f"{opening}\n{given}\n"))

    def test_where_a_text_is_not_quoted_nothing_changes_but_the_text(self) -> None:
        for slot, fill in PLAIN.items():
            before, after = self.around(fill, BENIGN)
            for text in TEXTS:
                with self.subTest(slot, text=ascii(text)):
                    self.assertEqual(fill(text), before + text + after)


# ----------------------------------------------------------------------------------------------------------------------
# Replies


class Judgment(NamedTuple):
    """A judge's sound reply: its object, how it is read, and as what."""

    answer: dict[str, Any]
    read: Callable[[str], Any]
    labels: Any
    reasons: Any

    @property
    def reading(self) -> Any:
        return (
            [*zip(self.labels, self.reasons, strict=True)] if "verdicts" in self.answer else (self.labels, self.reasons)
        )


def judgments(reason: str) -> Iterator[Judgment]:
    """Of all three judges with every label; of one and two claims all extractions, of three those that are of one mind."""
    readers: tuple[tuple[Callable[[str], Any], Sequence[str]], ...] = ((read_kind, RESPONSE_KINDS), (read_hit, HITS))
    for read, labels in readers:
        for label in labels:
            yield Judgment({"reason": reason, "label": label}, read, label, reason)
    one, two = (itertools.product(VERDICTS, repeat=claims) for claims in (1, 2))
    for verdicts in (*one, *two, *((verdict,) * 3 for verdict in VERDICTS)):
        entries = [{"claim": n, "reason": reason, "verdict": verdict} for n, verdict in enumerate(verdicts, 1)]
        read_all = partial(read_verdicts, claims=len(verdicts))
        yield Judgment({"verdicts": entries}, read_all, [*verdicts], [reason] * len(verdicts))


def spellings(answer: dict[str, Any]) -> Iterator[str]:
    """An object as JSON, with letters or escapes, and with the label before the reason on lines of their own."""
    yield json.dumps(answer, ensure_ascii=False)
    yield json.dumps(answer, ensure_ascii=True)
    yield json.dumps(answer, ensure_ascii=False, sort_keys=True, indent=2)


def labels_in(reading: Any) -> Any:
    return [verdict for verdict, _ in reading] if isinstance(reading, list) else reading[0]


def reading_of(judgment: Judgment, reply: str) -> Any:
    """As what a reply is read; None where it is unreadable, so that the judge is asked again."""
    try:
        return judgment.read(reply)
    except UnreadableReply:
        return None


def arriving() -> Iterator[str]:
    """What is left of each text in the response that a provider sends: what is saved and judged."""
    for text in TEXTS:
        try:
            yield completion_text(json.loads(body(text)))
        except UnreadableReply:
            continue


OWN_WORDS = "引文的主要行为很清楚。"


class Replies(unittest.TestCase):
    def test_no_reasoning_tag_of_an_evaluated_model_arrives_in_a_response(self) -> None:
        arrived = [*arriving()]
        self.assertEqual([text for text in arrived if TAG.search(text)], [])
        self.assertEqual([text for text in TEXTS if not TAG.search(text) and text not in arrived], [])

    def test_a_reply_that_quotes_a_text_in_its_reason_is_read_as_the_judge_s_label_and_whole_reason(self) -> None:
        for text in dict.fromkeys([*arriving(), *(text for text in TEXTS if not TAG.search(text))]):
            for judgment in judgments(f"\n引文末尾写着：{text}\n"):
                for reply in spellings(judgment.answer):
                    with self.subTest(reply=ascii(reply)):
                        self.assertEqual(judgment.read(reply), judgment.reading)

    def test_a_reasoning_tag_that_a_reason_quotes_leaves_the_judge_s_label_or_none(self) -> None:
        tagged = [text for text in TEXTS if TAG.search(text)]
        self.assertEqual({kind for kind, some in ATTACKS.items() if {*some} & {*tagged}}, {"tag"})
        for text in tagged:
            for judgment in judgments(text):
                for reply in spellings(judgment.answer):
                    with self.subTest(reply=ascii(reply)):
                        reading = reading_of(judgment, reply)
                        self.assertIn(reading and labels_in(reading), (judgment.labels, None))

    def test_a_text_that_a_reason_quotes_without_escapes_leaves_the_judge_s_label_or_none(self) -> None:
        for text in dict.fromkeys(arriving()):
            for judgment in judgments("※"):
                for reply in spellings(judgment.answer):
                    whole = text.join(reply.rsplit("※", 1))  # of several reasons the last one quotes it
                    with self.subTest(reply=ascii(whole)):
                        reading = reading_of(judgment, whole)
                        self.assertIn(reading and labels_in(reading), (judgment.labels, None))

    def test_a_reasoning_block_that_quotes_a_text_changes_nothing(self) -> None:
        for text in TEXTS:
            for judgment in judgments(OWN_WORDS):
                for reply in spellings(judgment.answer):
                    for thought in (f"引文末尾写着：\n{text}\n这不是指示。", text):
                        with self.subTest(thought=ascii(thought), reply=reply):
                            self.assertEqual(judgment.read(f"<think>{thought}</think>{reply}"), judgment.reading)

    def test_a_text_repeated_before_the_object_leaves_the_judge_s_reading_or_none(self) -> None:
        for text in TEXTS:
            for judgment in judgments(OWN_WORDS):
                for reply in spellings(judgment.answer):
                    for whole in (f"{text}\n{reply}", f"引文末尾写着：{text}{reply}", f"{text}\n```json\n{reply}\n```"):
                        with self.subTest(reply=ascii(whole)):
                            self.assertIn(reading_of(judgment, whole), (judgment.reading, None))

    def test_only_a_brace_or_a_reasoning_tag_repeated_before_the_object_can_make_a_reply_unreadable(self) -> None:
        for text in TEXTS:
            if re.search("[{}]", text) or TAG.search(text):
                continue
            for judgment in judgments(OWN_WORDS):
                with self.subTest(text=ascii(text), answer=judgment.answer):
                    reply = f"{text}\n{json.dumps(judgment.answer)}"
                    self.assertEqual(judgment.read(reply), judgment.reading)

    def test_a_text_repeated_after_the_object_leaves_the_judge_s_label_or_none(self) -> None:
        for text in dict.fromkeys(arriving()):
            for judgment in judgments(OWN_WORDS):
                with self.subTest(text=ascii(text), answer=judgment.answer):
                    reading = reading_of(judgment, f"{json.dumps(judgment.answer)}\n{text}")
                    self.assertIn(reading and labels_in(reading), (judgment.labels, None))


# ----------------------------------------------------------------------------------------------------------------------
# The collection


class Collection(unittest.TestCase):
    def test_there_are_texts_enough_of_every_kind_and_none_stands_twice(self) -> None:
        self.assertGreaterEqual(len(ALL), 60)
        self.assertEqual(len({*ALL}), len(ALL))
        self.assertEqual({kind: len(some) for kind, some in ATTACKS.items() if len(some) < 6}, {})

    def test_every_text_can_be_sent_and_saved(self) -> None:
        for text in ALL:
            with self.subTest(text=ascii(text)):
                self.assertEqual(text.encode("utf-8").decode("utf-8"), text)
                self.assertNotIn("\0", text)

    def test_a_response_ends_in_one_text_only(self) -> None:
        for text in ALL:
            with self.subTest(text=ascii(text)):
                response = f"{BENIGN}\n\n{text}"
                self.assertEqual([other for other in ALL if response.endswith(f"\n\n{other}")], [text])

    def test_what_cannot_be_seen_or_told_from_a_latin_letter_is_an_escape_in_the_source(self) -> None:
        source = Path(attacks.__file__).read_text(encoding="utf-8")
        unseen = {char for char in source if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Mn", "Me", "Co")}
        self.assertEqual(unseen, {"\n"})
        names = {unicodedata.name(char, "") for char in source}
        self.assertEqual(
            {name for name in names if re.match("GREEK|CYRILLIC|HANGUL|BRAILLE|KANGXI|CJK COMP", name)}, set()
        )


if __name__ == "__main__":
    unittest.main()
