"""What show_results.py --ledger sums up, held against what scripted providers did."""

import contextlib
import io
import json
import math
import random
import unittest
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fakes import NO, YES, Folder, Provider, Reply, Script, body, make_case, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

import eval_LJP_gold
from adapter import Channel, ChatModel, Fault, Role, Send, make_role
from checkpoints import Step
from common import OPTIONS, Settings, load_dataset, make_run, parse, parser_for, value_of
from errors import ProviderError
from ledger import COLUMNS, Line, ledger_object, ledger_text, remarks, role_line
from records import ROLE_NAMES, Call, Outcome, RoleName, Usage
from replies import UnreadableReply

MANY = settings(max_examples=100, deadline=None, database=None)
RESET, SLOW = Fault("reset"), Fault("HTTP 429: slow", 429)
REFUSED = Fault("no", 400, final=True, marks=frozenset({"content_filter"}), code="content_filter")


def told(text: str, prompt: int, completion: int, finish_reason: str = "stop", model: str = "m") -> bytes:
    """A completion that tells its usage."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return json.dumps({**json.loads(body(text, finish_reason)), "usage": usage, "model": model}).encode()


def call(
    outcome: Outcome = "used",
    tokens: tuple[int, int] | None = None,
    attempts: int = 1,
    refused: int = 0,
    seconds: float = 1.0,
    model: str | None = "m",
) -> Call:
    usage: Usage | None = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]} if tokens else None
    return Call(
        role="judge",
        outcome=outcome,
        model=model,
        finish_reason="stop",
        usage=usage,
        attempts=attempts,
        refused=refused,
        seconds=seconds,
    )


def a_line(role: RoleName = "judge", run_id: str = "run1", /, **changes: Any) -> Line:
    """A line of no calls but for the given figures."""
    return role_line(run_id, "j", role, [])._replace(**changes)


def pointed_out(groups: Mapping[str, Sequence[Line]]) -> list[str]:
    return list(remarks(groups))


class Ledgers(Folder):
    def show(self, *more: str) -> str:
        return super().show("--ledger", *more)

    def ledger(self, *more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.show("--format", "json", *more))
        return found

    def rows(self, *more: str) -> list[dict[str, str]]:
        """The text's table, by its heads."""
        lines = [line.split() for line in self.show(*more).splitlines() if line.startswith("  ") and line[2] != " "]
        heads = ["run", "role", "calls", "prompt", "reply", *COLUMNS[2:], "seconds"]
        self.assertEqual([line for line in lines if line[0] == "run"][0], heads)
        return [dict(zip(heads, line, strict=True)) for line in lines if line[0] != "run"]

    def conduct(self, steps: Sequence[Step], provider: Provider, *more: str) -> None:
        """Do a stage's steps as its command would, where every request takes two seconds and every wait none."""
        given = parse(parser_for("x", "x", OPTIONS), self.options("--parallel", "1", *more))
        seconds = [0.0]

        def connect(role: Role) -> Send:
            send = provider.connect(role)

            def slow(request: Mapping[str, Any]) -> bytes:
                seconds[0] += 2.0
                return send(request)

            return slow

        chosen = Settings(*(value_of(option, given, {}) for option in OPTIONS))
        run = make_run(chosen, load_dataset(chosen.dataset), connect, {})
        self.addCleanup(run.close)
        for name, channel in run.channels.items():
            run.channels[name] = Channel(
                channel.role, connect, channel.retries, pause=lambda asked: None, clock=lambda: seconds[0]
            )
        with contextlib.redirect_stderr(io.StringIO()):
            for step in steps:
                run.each_case(step)


class Sums(unittest.TestCase):
    def test_a_roles_calls_are_summed_by_what_became_of_them(self) -> None:
        line = role_line("run1", "j", "judge", [
            call("rejected", (100, 10), attempts=3, refused=1, seconds=1.25),
            call("unreadable", (200, 20), attempts=1, seconds=2.5),
            call("used", (400, 40), attempts=5, refused=3, seconds=4.0),
            call("used", (800, 80), seconds=8.125),
            call("blocked", attempts=2, seconds=0.5, model=None),
        ])  # fmt: skip
        requests, throttled = 3 + 1 + 5 + 1 + 2, 1 + 3
        self.assertEqual(line, Line(
            "run1", "j", "judge", calls=2, prompt_tokens=100 + 200 + 400 + 800, completion_tokens=10 + 20 + 40 + 80, untold=0,
            retries=requests - throttled - 5, throttled=throttled, rejected=1, unreadable=1, blocked=1,
            seconds=1.25 + 2.5 + 4.0 + 8.125 + 0.5, returned=("m",),
        ))  # fmt: skip
        self.assertEqual(line.completions, 2 + 1 + 1)

    def test_replies_whose_usage_was_not_told_are_counted_and_a_blocked_one_is_none(self) -> None:
        half: Call = {**call(), "usage": {"prompt_tokens": 7}}
        line = role_line(
            "run1", "j", "judge", [call(tokens=(100, 10)), call(), half, call("rejected"), call("blocked")]
        )
        self.assertEqual((line.prompt_tokens, line.completion_tokens, line.untold), (100, 10, 1 + 1 + 1))

    def test_returned_model_ids_are_each_listed_once_in_order(self) -> None:
        calls = [call(model=model) for model in ("b", None, "a", "b", "a")]
        self.assertEqual(role_line("run1", "j", "judge", calls).returned, ("b", "a"))

    events = st.lists(st.sampled_from(["reset", "throttled", "rejected", "unreadable"]), max_size=12)

    @MANY
    @given(st.lists(events, min_size=1, max_size=4), st.randoms(use_true_random=False))
    def test_whatever_befalls_a_judges_calls_each_event_is_counted_once(
        self, calls: list[list[str]], chance: random.Random
    ) -> None:
        answers: dict[str, Reply] = {
            "reset": RESET,
            "throttled": SLOW,
            "rejected": told("半", 10, 1, "length"),
            "unreadable": told("坏", 100, 2),
        }
        judged = [[event for n, event in enumerate(events) if events[:n].count("unreadable") < 3] for events in calls]
        replies = [reply for events in judged for reply in (*(answers[event] for event in events), told("好", 1000, 3))]
        script, count = Script(judge=replies), Counter(event for events in judged for event in events)

        def read(reply: str) -> str:
            if reply == "坏":
                raise UnreadableReply("bad")
            return reply

        role = make_role("judge", "j", 0.1, 64, 30, {})
        channel = Channel(role, script.connect, 1000, pause=lambda seconds: None, clock=lambda: 0.0)
        made: list[Call] = []
        for _ in judged:
            judge = ChatModel(channel)
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(judge.ask_judge("?", read), ("好", "好"))
            made += judge.log.calls
        chance.shuffle(made)
        line = role_line("run1", "j", "judge", made)
        self.assertEqual(line._asdict(), {
            "run_id": "run1", "model": "j", "role": "judge", "calls": len(calls),
            "prompt_tokens": 10 * count["rejected"] + 100 * count["unreadable"] + 1000 * len(calls),
            "completion_tokens": count["rejected"] + 2 * count["unreadable"] + 3 * len(calls), "untold": 0,
            "retries": count["reset"], "throttled": count["throttled"], "rejected": count["rejected"],
            "unreadable": count["unreadable"], "blocked": 0, "seconds": 0.0, "returned": ("m",),
        })  # fmt: skip


class FromFiles(Ledgers):
    cases = (make_case("1"), make_case("2"))

    def rough_weather(self) -> None:
        """A gold-standard run in which something befalls most calls."""
        script = Script(
            evaluated=[RESET, RESET, told("判1", 100, 10), SLOW, told("半", 200, 20, "length"), told("判2", 400, 40)],
            judge=[
                told("不好说", 7, 1),
                told(verdicts("支持"), 70, 2),
                SLOW,
                SLOW,
                RESET,
                told(verdicts("驳回"), 700, 3),
            ],
        )
        self.conduct(eval_LJP_gold.STEPS, script)
        self.assertEqual((script.left["evaluated"], script.left["judge"]), ([], []))

    def test_the_ledger_is_what_the_providers_did(self) -> None:
        self.rough_weather()
        group, common = "Group 1, m", {"run_id": "run1", "untold": 0, "blocked": 0, "returned": ["m"]}
        evaluated = {
            "group": group, "model": "m", "role": "evaluated", "calls": 2, "prompt_tokens": 100 + 200 + 400,
            "completion_tokens": 10 + 20 + 40, "retries": 2, "throttled": 1, "rejected": 1, "unreadable": 0,
            "seconds": 2.0 * 6, **common,
        }  # fmt: skip
        judge = {
            "group": group, "model": "DeepSeek-R1", "role": "judge", "calls": 2, "prompt_tokens": 7 + 70 + 700,
            "completion_tokens": 1 + 2 + 3, "retries": 1, "throttled": 2, "rejected": 0, "unreadable": 1,
            "seconds": 2.0 * 6, **common,
        }  # fmt: skip
        self.assertEqual(self.ledger(), {"ledger": [evaluated, judge], "remarks": []})

    def test_the_text_says_the_same_as_the_object(self) -> None:
        self.rough_weather()
        found = self.ledger()["ledger"]
        keys = ("run_id", "role", "calls", *COLUMNS)
        expected = [[*(str(line[key]) for key in keys), f"{line['seconds']:.0f}"] for line in found]
        self.assertEqual([list(row.values()) for row in self.rows()], expected)
        self.assertEqual(self.show().splitlines()[0], "Group 1, m")
        self.assertNotIn("note: ", self.show())

    def test_a_command_with_a_rejected_reply_and_an_unreadable_judgment_is_accounted_for(self) -> None:
        self.play(
            "eval_LJP_gold.py",
            "--limit",
            "1",
            evaluated=[told("半", 200, 20, "length"), told("判", 400, 40)],
            judge=[told("不好说", 7, 1), told(verdicts("支持"), 70, 2)],
        )
        rows = {row["role"]: row for row in self.rows()}
        zero = dict.fromkeys(("retries", "throttled", "rejected", "unreadable", "blocked"), "0")
        for line in self.ledger()["ledger"]:
            self.assertLess(line["seconds"], 0.5)  # the wait of at least so long between two tries is no request
            del rows[line["role"]]["seconds"]
        self.assertEqual(rows, {
            "evaluated": {
                "run": "run1", "role": "evaluated", "calls": "1", "prompt": "600", "reply": "60", **zero, "rejected": "1",
            },
            "judge": {
                "run": "run1", "role": "judge", "calls": "1", "prompt": "77", "reply": "3", **zero, "unreadable": "1",
            },
        })  # fmt: skip

    def test_every_call_of_every_stage_is_counted_once_for_each_role_and_run(self) -> None:
        asked: dict[tuple[str, str], int] = {}
        for run_id, model in (("a", "m"), ("b", "m"), ("c", "n")):
            provider = self.run_all("--run-id", run_id, "--model", model)
            asked |= {(run_id, role): len(provider.prompts(role)) for role in ROLE_NAMES}
        found = self.ledger()["ledger"]
        self.assertEqual({(line["run_id"], line["role"]): line["calls"] for line in found}, asked)
        self.assertEqual(sum(asked.values()), 3 * 2 * 22)
        groups = ["Group 1, m"] * 2 * 3 + ["Group 2, n"] * 3
        self.assertEqual([line["group"] for line in found], groups)
        self.assertEqual({line["model"] for line in found if line["role"] == "evaluated"}, {"m", "n"})
        self.assertEqual([row["calls"] for row in self.rows()], [str(count) for count in asked.values()])

    def test_options_select_and_no_run_is_no_error(self) -> None:
        for run_id, model in (("a", "m"), ("b", "m"), ("c", "n")):
            self.play(
                "eval_LJP_gold.py",
                "--run-id",
                run_id,
                "--model",
                model,
                evaluated=["判"] * 2,
                judge=[verdicts("支持")] * 2,
            )
        for more, expected in (
            ((), ["a", "a", "b", "b", "c", "c"]),
            (("--run-id", "b"), ["b", "b"]),
            (("--model", "n"), ["c", "c"]),
            (("--run-id", "d"), []),
        ):
            with self.subTest(more):
                self.assertEqual([line["run_id"] for line in self.ledger(*more)["ledger"]], expected)
        self.assertEqual(len(self.show("--run-id", "d").splitlines()), 1)

    def test_a_role_that_was_never_asked_has_no_line(self) -> None:
        self.play("eval_LJP_gold.py", evaluated=["判"] * 2, judge=[verdicts("支持")] * 2)
        self.assertEqual([row["role"] for row in self.rows()], ["evaluated", "judge"])

    def test_an_unfinished_run_has_the_calls_of_its_records(self) -> None:
        script = Script(
            evaluated=[told("问1", 100, 10), told("问2", 100, 10), told("问1", 100, 10), ProviderError("down")],
            user=[told("答", 30, 3)] * 2,
        )
        with self.assertRaises(ProviderError):
            self.stage("eval_DCG.py", script.connect)
        rows = [(row["role"], row["calls"], row["prompt"], row["reply"]) for row in self.rows()]
        self.assertEqual(rows, [("evaluated", "2", "200", "20"), ("user", "1", "30", "3")])
        resumed = Script(evaluated=[told("问2", 100, 10)], judge=[told(NO, 7, 1), told(YES, 7, 1)] * 2)
        self.stage("eval_DCG.py", resumed.connect)
        rows = [(row["role"], row["calls"], row["prompt"], row["reply"]) for row in self.rows()]
        self.assertEqual(rows, [("evaluated", "4", "400", "40"), ("user", "2", "60", "6"), ("judge", "4", "28", "4")])

    def test_a_ledger_changes_no_file(self) -> None:
        self.run_all()
        before = self.snapshot()
        self.show()
        self.assertEqual(self.snapshot(), before)


class Unknown(Ledgers):
    cases = (make_case("1"), make_case("2"))

    def test_tokens_that_no_reply_told_are_unknown_in_the_table(self) -> None:
        self.run_all()
        self.assertEqual({(row["prompt"], row["reply"]) for row in self.rows()}, {("unknown", "unknown")})
        self.assertNotIn("told no tokens", self.show())

    def test_tokens_that_no_reply_told_are_no_number_in_the_object(self) -> None:
        self.run_all()
        found = {(line["prompt_tokens"], line["completion_tokens"]) for line in self.ledger()["ledger"]}
        self.assertEqual(found, {(None, None)})

    def test_tokens_that_some_replies_did_not_tell_are_summed_with_a_word_on_the_rest(self) -> None:
        judged = verdicts("支持")
        self.play("eval_LJP_gold.py", evaluated=["判1", told("判2", 1200, 40)], judge=[judged, judged])
        rows = [line for line in self.show().splitlines() if "told" in line or line.split()[:1] == ["run1"]]
        self.assertEqual(rows[0].split()[1:5], ["evaluated", "2", "1,200", "40"])
        self.assertEqual(rows[1].strip(), "the provider told no tokens for 1 of these replies")
        self.assertEqual(rows[2].split()[1:5], ["judge", "2", "unknown", "unknown"])
        self.assertEqual([line["untold"] for line in self.ledger()["ledger"]], [1, 2])

    def test_usage_of_no_tokens_is_a_known_zero(self) -> None:
        judged = told(verdicts("支持"), 0, 0)
        self.play("eval_LJP_gold.py", evaluated=[told("判", 0, 0)] * 2, judge=[judged] * 2)
        self.assertEqual({(row["prompt"], row["reply"]) for row in self.rows()}, {("0", "0")})


class Blocked(Ledgers):
    cases = (make_case("1"), make_case("2"))

    def test_what_a_content_filter_refused_is_no_call_and_no_retry(self) -> None:
        script = Script(evaluated=[REFUSED, told("判", 100, 10)], judge=[told(verdicts("支持"), 7, 1)])
        self.stage("eval_LJP_gold.py", script.connect, "--record-blocked")
        evaluated, judge = self.rows()
        self.assertEqual((evaluated["calls"], evaluated["blocked"], evaluated["retries"]), ("1", "1", "0"))
        self.assertEqual((evaluated["prompt"], evaluated["reply"]), ("100", "10"))
        self.assertEqual((judge["calls"], judge["blocked"]), ("1", "0"))

    def test_a_run_in_which_a_role_was_only_blocked_is_shown_beside_another(self) -> None:
        self.play("eval_LJP_gold.py", evaluated=["判"] * 2, judge=[verdicts("支持")] * 2)
        script = Script(evaluated=[REFUSED] * 2)
        self.stage("eval_LJP_gold.py", script.connect, "--model", "n", "--record-blocked")
        rows = [(row["role"], row["calls"], row["blocked"]) for row in self.rows()]
        self.assertEqual(rows, [("evaluated", "2", "0"), ("judge", "2", "0"), ("evaluated", "0", "2")])
        self.assertEqual([row["prompt"] for row in self.rows()], ["unknown", "unknown", "0"])  # no reply took no token
        self.assertEqual(self.ledger()["remarks"], [])


# ----------------------------------------------------------------------------------------------------------------------


def deviations(few: int, of: int, many: int, out_of: int) -> float:
    """By how many pooled standard errors two rates differ."""
    pooled = (few + many) / (of + out_of)
    return (many / out_of - few / of) / math.sqrt(pooled * (1 - pooled) / of + pooled * (1 - pooled) / out_of)


class ReturnedModels(Ledgers):
    cases = (make_case("1"), make_case("2"))

    def test_several_model_ids_within_a_run_are_pointed_out_with_role_and_run(self) -> None:
        judged = [told(verdicts("支持"), 7, 1, model=name) for name in ("j-0601", "j-0715")]
        self.play("eval_LJP_gold.py", "--judge-model", "j", evaluated=["判"] * 2, judge=judged)
        remark = "run1: the judge 'j' came back as j-0601 and as j-0715"
        self.assertEqual(self.ledger()["remarks"], [remark])
        self.assertEqual(self.show().splitlines()[-1], f"note: {remark}")

    def test_a_model_id_that_differs_from_run_to_run_or_from_the_name_asked_for_is_not(self) -> None:
        for run_id in ("run1", "run2"):
            judged = [told(verdicts("支持"), 7, 1, model=f"j-{run_id}")] * 2
            self.play("eval_LJP_gold.py", "--run-id", run_id, evaluated=["判"] * 2, judge=judged)
        self.assertEqual(self.ledger()["remarks"], [])
        self.assertEqual([line["returned"] for line in self.ledger()["ledger"]], [["m"], ["j-run1"], ["m"], ["j-run2"]])

    def test_a_provider_that_names_a_model_now_and_then_is_not(self) -> None:
        self.assertEqual(pointed_out({"Group 1, m": [a_line(calls=2, returned=("j",))]}), [])
        line = role_line("run1", "j", "judge", [call(model=None), call(model="j"), call(model=None)])
        self.assertEqual(pointed_out({"Group 1, m": [line]}), [])

    def test_each_role_and_run_has_a_remark_of_its_own(self) -> None:
        lines = [a_line(role, run_id, returned=("a", "b", "c")) for run_id in ("x", "y") for role in ROLE_NAMES]
        expected = [
            f"{run_id}: the {role} 'j' came back as a and as b and as c" for run_id in ("x", "y") for role in ROLE_NAMES
        ]
        self.assertEqual(pointed_out({"Group 1, m": lines}), expected)


class UnequalRates(Ledgers):
    cases = tuple(make_case(str(n)) for n in range(1, 6))

    def gold(self, model: str, cases: int, unreadable: int) -> None:
        """A run in which each judgment is unreadable so many times."""
        judge = [*["不好说"] * unreadable, verdicts("支持")] * cases
        self.play("eval_LJP_gold.py", "--model", model, "--limit", str(cases), evaluated=["判"] * cases, judge=judge)

    def test_a_single_bad_reply_of_a_smoke_run_is_not_pointed_out(self) -> None:
        self.assertGreater(deviations(0, 100, 1, 3), 3)
        smoke, full = a_line("judge", "x", calls=2, unreadable=1), a_line("judge", "y", calls=100)
        self.assertEqual(pointed_out({"A": [smoke], "B": [full]}), [])

    def test_judgments_of_one_model_that_are_asked_again_more_often_are_pointed_out(self) -> None:
        self.assertGreater(deviations(0, 5, 15, 20), 3)
        self.gold("m", 5, unreadable=0)
        self.gold("n", 5, unreadable=3)
        remark = "replies of the judge were unreadable unequally: 15 of 20 (75.0%) in Group 2, n, 0 of 5 (0.0%) in Group 1, m"
        self.assertEqual(self.ledger()["remarks"], [remark])
        self.assertEqual(self.show().splitlines()[-1], f"note: {remark}")

    def test_the_same_rates_from_too_few_judgments_are_not(self) -> None:
        self.assertLess(deviations(0, 4, 12, 16), 3)
        self.gold("m", 4, unreadable=0)
        self.gold("n", 4, unreadable=3)
        self.assertEqual(self.ledger()["remarks"], [])

    def test_equal_rates_are_not(self) -> None:
        self.gold("m", 5, unreadable=1)
        self.gold("n", 5, unreadable=1)
        self.assertEqual(self.ledger()["remarks"], [])

    def test_the_border_is_three_standard_errors_on_either_side(self) -> None:
        told_apart = 0
        for many in range(30, 101):
            low, high = a_line(calls=970, unreadable=30), a_line(calls=1000 - many, unreadable=many)
            expected = deviations(30, 1000, many, 1000) > 3
            remark = f"replies of the judge were unreadable unequally: {many} of 1000 ({many / 10:.1f}%) in B, 30 of 1000 (3.0%) in A"
            for groups in ({"A": [low], "B": [high]}, {"B": [high], "A": [low]}):
                self.assertEqual(pointed_out(groups), [remark] * expected, many)
            told_apart += expected
        self.assertEqual(told_apart, 100 - 58 + 1)  # 57 of 1000 is 2.96 standard errors away, 58 of 1000 is 3.05

    def test_rejected_and_unreadable_replies_are_told_apart_for_each_role(self) -> None:
        for role in ROLE_NAMES:
            for what in ("rejected", "unreadable"):
                groups = {"A": [a_line(role, calls=100)], "B": [a_line(role, calls=60, **{what: 40})]}
                words = f"replies of the {role} were {what} unequally: 40 of 100 (40.0%) in B, 0 of 100 (0.0%) in A"
                self.assertEqual(pointed_out(groups), [words])

    def test_the_rate_counts_every_completion_that_came(self) -> None:
        groups = {"A": [a_line(calls=10, rejected=10)], "B": [a_line(calls=100)]}
        self.assertEqual(
            pointed_out(groups),
            ["replies of the judge were rejected unequally: 10 of 20 (50.0%) in A, 0 of 100 (0.0%) in B"],
        )

    def test_the_runs_of_a_group_count_together(self) -> None:
        self.assertLess(deviations(0, 20, 6, 20), 3)
        self.assertGreater(deviations(0, 40, 12, 40), 3)
        one = {"A": [a_line(calls=20)], "B": [a_line(calls=14, rejected=6)]}
        two = {name: [*lines, *(line._replace(run_id="run2") for line in lines)] for name, lines in one.items()}
        self.assertEqual(pointed_out(one), [])
        self.assertEqual(
            pointed_out(two),
            ["replies of the judge were rejected unequally: 12 of 40 (30.0%) in B, 0 of 40 (0.0%) in A"],
        )

    def test_roles_are_not_compared_with_each_other_nor_runs_within_a_group(self) -> None:
        lines = [a_line("user", calls=100), a_line("judge", calls=10, unreadable=90)]
        self.assertEqual(pointed_out({"A": lines}), [])
        self.assertEqual(pointed_out({"A": lines[:1], "B": lines[1:]}), [])
        runs = [a_line(calls=100), a_line("judge", "run2", calls=10, unreadable=90)]
        self.assertEqual(pointed_out({"A": runs}), [])

    def test_nothing_rejected_anywhere_and_everything_everywhere_are_no_difference(self) -> None:
        self.assertEqual(pointed_out({"A": [a_line(calls=5)], "B": [a_line(calls=500)]}), [])
        self.assertEqual(pointed_out({"A": [a_line(rejected=5)], "B": [a_line(rejected=500)]}), [])

    @MANY
    @given(st.integers(1, 2000), st.integers(1, 2000), st.integers(0, 2000))
    def test_equal_rates_of_any_size_are_never_pointed_out(self, one: int, other: int, many: int) -> None:
        groups = {
            "A": [a_line(calls=7 * one, rejected=many * one)],
            "B": [a_line(calls=7 * other, rejected=many * other)],
        }
        self.assertEqual(pointed_out(groups), [])

    def test_a_group_of_a_few_calls_hides_no_difference_between_two_others(self) -> None:
        self.assertGreater(deviations(10, 10_000, 1000, 10_000), 3)
        self.assertLess(deviations(0, 3, 1000, 10_000), 3)
        groups = {
            "smoke": [a_line(calls=3)],
            "A": [a_line(calls=9990, unreadable=10)],
            "B": [a_line(calls=9000, unreadable=1000)],
        }
        words = "replies of the judge were unreadable unequally: 1000 of 10000 (10.0%) in B, 10 of 10000 (0.1%) in A"
        self.assertIn(words, pointed_out(groups))


class Printing(unittest.TestCase):
    LINE = a_line(
        calls=1234, prompt_tokens=5_000_000, completion_tokens=6789, retries=1001, seconds=1999.6, returned=("j",)
    )

    def test_large_numbers_stand_in_groups_of_three_and_seconds_are_whole(self) -> None:
        _, head, row, foot = ledger_text({"Group 1, m": [self.LINE]})
        cells = ["run1", "judge", "1,234", "5,000,000", "6,789", "1,001", "0", "0", "0", "0", "2,000"]
        self.assertEqual(row.split(), cells)
        self.assertEqual(len(row), len(head))
        self.assertTrue(foot.startswith("Prompt and reply are tokens as the providers told them."))

    def test_the_object_has_every_field_of_every_line_and_its_group(self) -> None:
        found = json.loads(json.dumps(ledger_object({"Group 1, m": [self.LINE], "Group 2, n": [self.LINE]})))
        expected = {**self.LINE._asdict(), "returned": ["j"]}
        self.assertEqual(found["ledger"], [{"group": name, **expected} for name in ("Group 1, m", "Group 2, n")])


if __name__ == "__main__":
    unittest.main()
