"""`audit_user.py`: what the words of a reply show, what the judge is shown and says, and what is counted."""

import contextlib
import io
import json
import unittest
from collections.abc import Callable, Mapping
from typing import Any

from fakes import ASK, JUDGE, NO, YES, Folder, Provider, history, make_case, sensible, verdicts

import audit_user
from audit_user import audit_prompt, rate, read_telling, tally_labels
from common import load_dataset
from errors import CheckpointError
from metrics import wilson
from records import TELLINGS, Case, RoleName
from replies import UnreadableReply

CANARY, POINT = "五月三号在茶馆还了两千块", "后来到底还过没有"
OTHER, OTHER_POINT = "借条写明不计利息", "利息怎么约定"


class Audited(Folder):
    """A finished run in which the User Model answers by the case."""

    cases = tuple(
        make_case(
            n,
            focal_point=[POINT, OTHER_POINT],
            key_details=[CANARY, OTHER],
            result_dict={"归还借款1万元和利息260元": "部分支持"},
        )
        for n in "1234"
    )
    replies: Mapping[str, str] = {
        "1": "五月三号我在茶馆还了他两千块，利息260元我照要。",  # told when asked
        "2": "五月三号在茶馆还了两千块，借条写明不计利息。",  # and one more
        "3": "没有还过，我给了王律师300元。",  # of its own
        "4": "记不清了。",
    }
    question = "后来到底还过没有？"

    def setUp(self) -> None:
        super().setUp()
        self.run_all(answer=self.answer)

    def answer(self, role: RoleName, prompt: str) -> str:
        if role == "user":
            return next(reply for number, reply in self.replies.items() if f"案{number}：" in prompt)
        if role == "evaluated":
            if "二选一" in prompt or "一个问题" in prompt:
                return (
                    "逐项判断：部分支持。" if any(reply in prompt for reply in self.replies.values()) else self.question
                )
            return "部分支持，因为还过一半。"
        if "诉讼请求如下" in prompt:
            return verdicts("部分支持")
        if "命中关键细节" in prompt:
            return YES if "逐项" not in prompt else NO
        return JUDGE if "逐项" in prompt else ASK

    def audit(
        self,
        *more: str,
        answer: Callable[[RoleName, str], str | bytes] = sensible,
        env: Mapping[str, str] | None = None,
    ) -> Provider:
        provider = Provider(answer)
        printed, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            audit_user.main(["--parallel", "1", *self.options(*more)], provider.connect, env or {})
        self.printed, self.said = printed.getvalue(), said.getvalue()
        return provider

    def found(self, *more: str) -> dict[str, Any]:
        self.audit("--format", "json", *more)
        found: dict[str, Any] = json.loads(self.printed)
        return found


def telling(label: str) -> str:
    return json.dumps({"reason": "理由", "label": label}, ensure_ascii=False)


class Words(Audited):
    def test_it_asks_nobody_and_needs_no_key(self) -> None:
        self.assertEqual(self.audit().asked, [])
        self.assertIn("No judge was asked", self.printed)
        self.assertFalse((self.root / "out" / "user_audits").exists())

    def test_every_reply_is_looked_at_once(self) -> None:
        found = self.found()
        places = sorted((one["source"], one["round"], one["case"]) for one in found["list"])
        self.assertEqual(places, sorted((source, 1, n) for source in ("interaction", "force_ask") for n in "1234"))
        self.assertEqual(found["replies"], 8)

    def test_what_it_made_up_told_and_told_unprompted_is_counted(self) -> None:
        rates = self.found()["words"]["rates"]
        counts = {name: (row["count"], row["of"]) for name, row in rates.items()}
        self.assertEqual(
            counts,
            {
                "replies with a figure, date, amount or name of their own": (2, 8),
                "details told": (2 * (1 + 2), 2 * 8),
                "of them, in no word of the question": (2, 6),
                "replies that tell one so": (2, 8),
            },
        )

    def test_what_it_was_told_is_not_made_up(self) -> None:
        (invented,) = {tuple(one["invented"]) for one in self.found()["list"] if one["invented"]}
        self.assertEqual(invented, ("王律师", "300元"))  # and neither 260元 of the claim nor 五月三号 of the detail

    def test_the_list_begins_with_what_is_most_worth_reading(self) -> None:
        found = self.found()["list"]
        self.assertEqual([one["case"] for one in found], ["2", "2", "3", "3", "1", "1", "4", "4"][: len(found)])
        (detail,) = [detail for detail in found[0]["details"] if detail["detail"] == OTHER]
        self.assertEqual((detail["told"], detail["asked"]), (1.0, 0.0))
        self.audit("--list", "2")
        self.assertIn("2 replies to read first", self.printed)
        self.assertIn(f"told 1.00, in the question 0.00: {OTHER}", self.printed)

    def test_interaction_figures_stand_with_and_without_the_cases_in_which_a_detail_was_volunteered(self) -> None:
        rows = {(row["scope"], row["metric"]): row for row in self.found()["words"]["interaction"]}
        cases = {scope: rows[scope, "accuracy"]["cases"] for scope, _ in rows}
        self.assertEqual(cases, {"all cases": 4, "nothing volunteered": 3, "something volunteered": 1})
        self.assertEqual(rows["all cases", "accuracy"]["value"], 1.0)
        self.assertIsNone(rows["all cases", "qwk"]["value"])  # both sides constant and equal

    def test_without_a_reply_it_says_what_to_run(self) -> None:
        for name in ("interaction", "force_ask"):
            self.file(name).unlink()
        with self.assertRaisesRegex(CheckpointError, "has not replied yet; first run LexAwN_gen.py or eval_DCG.py"):
            self.audit()


class Turns(unittest.TestCase):
    def test_each_reply_stands_with_the_consultation_before_its_question(self) -> None:
        start = history("开头")
        rounds = [
            {"round": 1, "response": "问一", "user_reply": "答一"},
            {"round": 2, "response": "问二", "user_reply": "答二"},
            {"round": 3, "response": "判决", "user_reply": None},
        ]
        case: Any = Case("1", "民间借贷纠纷", "", [], [], {}, start, start)  # type: ignore[arg-type]
        turns = audit_user.turns_of("interaction", case, {"rounds": rounds})
        self.assertEqual(
            [(turn.round, turn.question, turn.reply) for turn in turns], [(1, "问一", "答一"), (2, "问二", "答二")]
        )
        self.assertEqual([message["content"] for message in turns[1].history], ["开头", "问一", "答一"])
        asked = [
            {"round": 1, "question": "问一", "user_reply": "答一"},
            {"round": 2, "question": "问二", "user_reply": None},
        ]
        (turn,) = audit_user.turns_of("force_ask", case, {"rounds": asked})
        self.assertEqual((turn.question, turn.reply, turn.history), ("问一", "答一", start))
        self.assertEqual(audit_user.turns_of("interaction", case, {"blocked": {}}), [])


class Judge(Audited):
    def test_a_call_for_each_reply_and_detail_that_shows_just_these(self) -> None:
        provider = self.audit("--judge", answer=lambda role, prompt: telling("未问未说"))
        self.assertEqual({role for role, _ in provider.asked}, {"judge"})
        self.assertEqual(len(provider.asked), 8 * 2)
        for prompt in provider.prompts("judge"):
            self.assertEqual(prompt.count(POINT) > 0, True)  # in the question at least
            known = prompt[: prompt.index("下面两段引文")]
            self.assertEqual((CANARY in known) + (OTHER in known), 1)
            self.assertEqual((CANARY in known, POINT in known), (OTHER not in known, OTHER_POINT not in known))
            self.assertNotIn("支持", prompt)
        self.assertEqual(self.audit("--judge").asked, [])

    def test_rates_follow_from_the_labels(self) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            known = prompt[: prompt.index("下面两段引文")]
            if "案2：" in prompt:
                return telling("问到说出" if CANARY in known else "未问说出")
            if "案3：" in prompt:
                return telling("编造事实" if CANARY in known else "说法矛盾")
            if "案4：" in prompt:
                return telling("问到未说" if CANARY in known else "未问未说")
            return telling("问到说出" if CANARY in known else "未问未说")

        self.audit("--judge", answer=answer)
        (judged,) = self.found()["judges"]
        counts = {name: (row["count"], row["of"]) for name, row in judged["rates"].items()}
        self.assertEqual(
            counts,
            {
                "told when asked": (4, 6),
                "withheld when asked": (2, 6),
                "told unasked": (2, 6),
                "replies that tell one unasked": (2, 8),
                "contradicted": (2, 16),
                "invented": (2, 16),
            },
        )
        self.assertEqual(list(judged["by_class"]), ["合同、准合同纠纷"])
        self.assertEqual({row["scope"]: row["cases"] for row in judged["interaction"]}["nothing volunteered"], 3)
        self.assertIn("By judge DeepSeek-R1", self.text())

    def text(self) -> str:
        self.audit()
        return self.printed

    def test_an_unreadable_label_is_asked_again_and_a_failure_resumes(self) -> None:
        replies = iter([telling("问到说出"), "不知道", *[telling("未问未说")] * 20])
        provider = self.audit("--judge", answer=lambda role, prompt: next(replies))
        self.assertEqual(len(provider.asked), 16 + 1)
        (path,) = (self.root / "out").rglob("force_ask.audit.jsonl")
        path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[1:]))
        self.assertEqual(len(self.audit("--judge", answer=lambda role, prompt: telling("未问未说")).asked), 2)

    def test_another_judge_is_shown_beside_the_first(self) -> None:
        self.audit("--judge", answer=lambda role, prompt: telling("未问未说"))
        self.audit("--judge", "--second-judge-model", "j2", answer=lambda role, prompt: telling("未问说出"))
        found = {one["judge"]["model"]: one["rates"]["told unasked"]["rate"] for one in self.found()["judges"]}
        self.assertEqual(found, {"DeepSeek-R1": 0.0, "j2": 1.0})

    def test_the_plan_asks_nobody(self) -> None:
        provider = self.audit("--judge", "--plan")
        self.assertEqual(provider.asked, [])
        self.assertIn("  calls              16\n", self.printed)

    def test_every_label_is_read_and_nothing_else(self) -> None:
        for label in TELLINGS:
            self.assertEqual(read_telling(telling(label)), (label, "理由"))
            self.assertEqual(read_telling(f"想了想\n{label}")[0], label)
        for reply in ("问到", telling("问到说出，未问说出"), "没有问到说出什么"):
            with self.assertRaises(UnreadableReply):
                read_telling(reply)

    def test_a_prompt_has_each_slot_once(self) -> None:
        (case, *_) = load_dataset(self.data_file).cases
        prompt = audit_prompt(case.underspecified, ["争点X"], "细节Y", "问题Z", "回答W")
        for text in ("争点X", "细节Y", "\n问题Z\n", "\n回答W\n", "User: 案1"):
            self.assertEqual(prompt.count(text), 1, text)


class Rates(unittest.TestCase):
    def test_a_rate_has_wilsons_interval_with_its_error_over_cases(self) -> None:
        found = rate([(1, 1)] * 3 + [(0, 1)] * 5)
        # Each case one outcome: the clustered error is sqrt(C/(C-1)) times the plain one, so that trials are C - 1.
        self.assertEqual((found["count"], found["of"], found["rate"]), (3, 8, 3 / 8))
        for given, expected in zip(found["interval"], wilson(3 / 8, 7), strict=True):
            self.assertAlmostEqual(given, expected)

    def test_of_nothing_there_is_no_rate(self) -> None:
        self.assertEqual(rate([(0, 0)]), {"count": 0, "of": 0, "rate": None, "interval": None})

    def test_labels_are_counted_among_those_they_compete_with(self) -> None:
        found = tally_labels(["问到说出", "问到未说", "未问说出", "未问未说", "未问未说", "编造事实"])
        self.assertEqual(found["told when asked"], (1, 2))
        self.assertEqual(found["told unasked"], (1, 3))
        self.assertEqual(found["invented"], (1, 6))


if __name__ == "__main__":
    unittest.main()
