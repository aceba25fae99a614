"""What --plan says before anything is asked, held against the calls that the same commands then make."""

import contextlib
import io
import itertools
import json
import re
import unittest
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import filelock
from fakes import ASK, JUDGE, SIX_COMMANDS, STAGES, Folder, Provider, Script, body, history, make_case, sensible
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adapter import Fault, Role, Send, make_role
from checkpoints import Planned
from errors import ProviderError, SettingsError
from eval_LJP_gold import extraction_prompt, force_judge_prompt
from LexAwN_gen import user_prompt
from plan import Amount, Price, least, likely, most, read_prices, token_limit
from records import ROLE_NAMES, Call, RoleName, Usage

Answer = Callable[[RoleName, str], str | bytes]
# An example is twenty commands: what fails is not shrunk.
FEW = settings(max_examples=8, deadline=None, database=None, phases=[Phase.generate])
MANY = settings(max_examples=200, deadline=None, database=None)
UNLIMITED = '{"max_tokens": null}'

# ----------------------------------------------------------------------------------------------------------------------
# Models whose calls are known


def replying(label: str, length: int = 7) -> Answer:
    """Replies of so many characters, to which the LCA judge always gives this label."""

    def answer(role: RoleName, prompt: str) -> str:
        if role != "judge":
            return "字" * length
        return label if "直接判断" in prompt else sensible(role, prompt)

    return answer


def asking(questions: int) -> Answer:
    """A model that judges a case after so many questions of its own."""
    return lambda role, prompt: (
        sensible(role, prompt)
        if role != "evaluated" or "二选一" not in prompt
        else "请问呢？"
        if prompt.count("请问呢？") < questions
        else "判。"
    )


def failing_at(nth: int, answer: Answer) -> Answer:
    """The same answers but for the nth, which does not come."""
    count = itertools.count(1)

    def flaky(role: RoleName, prompt: str) -> str | bytes:
        if next(count) == nth:
            raise ProviderError("down")
        return answer(role, prompt)

    return flaky


def with_usage(text: str, prompt_tokens: int, completion_tokens: int) -> bytes:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return json.dumps({**json.loads(body(text)), "usage": usage}).encode()


def telling(used: Mapping[RoleName, Iterable[tuple[int, int] | None]], answer: Answer = sensible) -> Answer:
    """The same answers with the usage of each call of a role, in order; None tells none."""
    left = {role: iter(tokens) for role, tokens in used.items()}

    def told(role: RoleName, prompt: str) -> str | bytes:
        tokens, reply = next(left[role]), str(answer(role, prompt))
        return with_usage(reply, *tokens) if tokens else reply

    return told


# ----------------------------------------------------------------------------------------------------------------------
# Reading a plan


class Plan(NamedTuple):
    files: dict[str, tuple[int, int, int]]
    """Cases, done and to do."""
    roles: dict[str, dict[str, str]]
    in_all: list[str]
    """The sums of the cost."""
    rest_on: list[str]
    """How many records the likely figures rest on."""


def ends(text: str) -> tuple[float | None, float | None]:
    """Both ends of a printed range."""
    found = [None if end == "unknown" else float(end.replace(",", "")) for end in text.split(" to ")]
    return found[0], found[-1]


def parsed(lines: Sequence[str]) -> Plan:
    plan = Plan({}, {}, [], [])
    rows: dict[str, str] = {}
    for line in lines[1:-1]:
        if found := re.fullmatch(r"  (\S+) +(\d+) cases, (\d+) done, (\d+) to do", line):
            plan.files[found[1]] = (int(found[2]), int(found[3]), int(found[4]))
        elif found := re.fullmatch(r"(\w+) model '.*' at \S+", line):
            rows = plan.roles[found[1]] = {}
        elif found := re.fullmatch(r"Cost in all +(.+)", line):
            plan.in_all.append(found[1])
        elif found := re.fullmatch(r"The likely figures rest on (.+) earlier records a file\.", line):
            plan.rest_on.append(found[1])
        elif found := re.fullmatch(r" +and (.+) replies in them that are not written yet", line):
            rows["replies"] = found[1]
        elif found := re.fullmatch(r"  (\w+(?: \w+)?) {2,}(.+)", line):
            rows[found[1]] = found[2]
        else:
            raise AssertionError(f"a plan has no such line: {line!r}")
    return plan


LOW, HIGH = 0, 1
Sums = dict[RoleName, tuple[float, float]]
"""By role, how many calls and how many characters their prompts have."""


def planned(plans: Iterable[Plan], end: int, length: int = 7) -> Sums:
    """One end of some plans, where each reply that is not written yet will have so many characters."""

    def figure(rows: Mapping[str, str], name: str) -> float:
        value = ends(rows.get(name, "0"))[end]
        assert value is not None
        return value

    roles = [(role, rows) for plan in plans for role, rows in plan.roles.items()]
    return {
        name: (
            sum(figure(rows, "calls") for role, rows in roles if role == name),
            sum(
                figure(rows, "prompt characters") + length * figure(rows, "replies")
                for role, rows in roles
                if role == name
            ),
        )
        for name in ROLE_NAMES
    }


def made(provider: Provider) -> Sums:
    """What a provider was really asked."""
    asked = {role: provider.prompts(role) for role in ROLE_NAMES}
    return {role: (len(prompts), sum(map(len, prompts))) for role, prompts in asked.items()}


def calls_of(sums: Sums) -> dict[RoleName, float]:
    return {role: calls for role, (calls, _) in sums.items()}


def nobody(role: Role) -> Send:
    raise AssertionError(f"a client for the {role.name} model is made")


class Planning(Folder):
    def below(self) -> dict[str, bytes | None]:
        """Every file's bytes below the test's folder; None for a folder."""
        return {str(path): path.read_bytes() if path.is_file() else None for path in self.root.rglob("*")}

    def printed(self, script: str, *more: str) -> list[str]:
        """The lines of a command's plan, for which nobody is asked and nothing is written."""
        before, shown = self.below(), io.StringIO()
        with contextlib.redirect_stdout(shown):
            self.stage(script, nobody, *more, "--plan")
        self.assertEqual(self.below(), before)
        return shown.getvalue().splitlines()

    def plan(self, script: str, *more: str) -> Plan:
        return parsed(self.printed(script, *more))

    def plans(self, *more: str, scripts: Iterable[str] = SIX_COMMANDS) -> list[Plan]:
        return [self.plan(script, *more) for script in scripts]

    def calls(self, script: str, *more: str) -> dict[str, tuple[float | None, float | None]]:
        return {role: ends(rows["calls"]) for role, rows in self.plan(script, *more).roles.items()}

    def interrupt(self, script: str, nth: int, answer: Answer, *more: str) -> None:
        """Run a command whose nth call fails for good."""
        with self.assertRaises(ProviderError):
            self.stage(script, Provider(failing_at(nth, answer)).connect, *more)

    def resume(self, script: str, answer: Answer, *more: str) -> Sums:
        """Run a command to its end; what it asked for."""
        provider = Provider(answer)
        self.stage(script, provider.connect, *more)
        return made(provider)

    def prices(self, given: Any) -> str:
        path = self.root / "prices.json"
        path.write_text(json.dumps(given, ensure_ascii=False), encoding="utf-8")
        return str(path)


# ----------------------------------------------------------------------------------------------------------------------


class AskingNothing(Planning):
    def test_every_command_plans_before_any_stage_has_run(self) -> None:
        for script in STAGES:
            with self.subTest(script):
                lines = self.printed(script)
                self.assertEqual(lines[0], "Plan for run1 of m; nothing is asked.")
                self.assertEqual(set(parsed(lines).files.values()), {(3, 0, 3)})
                self.assertTrue(lines[-1].startswith("Tokens: 0.5 to 1.5 a character, a reply from 1 to its limit"))
        self.assertFalse((self.root / "out").exists())

    def test_every_command_plans_nothing_once_all_have_run(self) -> None:
        self.run_all()
        for script in STAGES:
            with self.subTest(script):
                plan = self.plan(script)
                self.assertEqual(set(plan.files.values()), {(3, 3, 0)})
                self.assertEqual((plan.roles, plan.in_all), ({}, []))

    def test_each_file_of_a_command_is_listed_once_in_the_order_of_its_steps(self) -> None:
        files = {script: list(self.plan(script).files) for script in STAGES}
        self.assertEqual(files["LexAwN_gen.py"], ["a1.jsonl", "LCA_results.jsonl", "interaction.jsonl"])
        self.assertEqual(files["eval_DCG.py"], ["force_ask.jsonl", "DCG_results.jsonl"])
        three = [files[f"eval_LJP_{setup}.py"] for setup in ("direct", "gold", "interaction")]
        self.assertEqual(files["eval_LJP.py"], [name for names in three for name in names])

    def test_a_command_that_stands_for_others_plans_their_calls(self) -> None:
        three = self.plans(scripts=[f"eval_LJP_{setup}.py" for setup in ("direct", "gold", "interaction")])
        for end in (LOW, HIGH):
            self.assertEqual(planned([self.plan("eval_LJP.py")], end), planned(three, end))
        self.assertEqual(self.calls("eval_LCA.py"), {"judge": (2 * 3, 2 * 3)})

    def test_a_plan_is_made_while_another_command_writes(self) -> None:
        self.run_all("--limit", "1")
        (path,) = (self.root / "out").rglob("lock")
        with filelock.FileLock(path):
            self.assertEqual(self.plan("eval_DCG.py", "--limit", "1").files["force_ask.jsonl"], (1, 1, 0))

    def test_a_plan_is_refused_where_its_command_would_be(self) -> None:
        self.run_all("--limit", "1")
        for more in ((), ("--limit", "1", "--judge-temperature", "0.2")):
            with self.subTest(more), self.assertRaisesRegex(SettingsError, "begun with other settings"):
                self.printed("eval_DCG.py", *more)


class Bounds(Planning):
    cases = (
        make_case("1"),
        make_case("2", result_dict={"甲": "支持", "乙：十元": "驳回"}, focal_point=["一", "二二"]),
        make_case(
            "3",
            complete_consultation=history("案3：借了", "多少？", "1万"),
            underspecified_consultation=history("案3：借了", "多少？", "忘了"),
            key_details={"钱还过没有": ["三月还过", "四月没有"]},
        ),
    )

    def test_a_model_that_never_asks_makes_the_certain_calls(self) -> None:
        plans = self.plans()
        asked = made(self.run_all(answer=replying(JUDGE)))
        by_role = {"evaluated": 3 * (2 + 2 + 2), "user": 3 * 1, "judge": 3 * (2 + 2 + 3)}
        self.assertEqual(calls_of(asked), by_role)
        self.assertEqual(sum(by_role.values()), 3 * 14)
        self.assertEqual(calls_of(planned(plans, LOW)), by_role)

    def test_a_model_that_always_asks_makes_all_calls(self) -> None:
        plans = self.plans()
        asked = made(self.run_all(answer=replying(ASK)))
        by_role = {"evaluated": 3 * (2 + 2 + 2 + 3), "user": 3 * (1 + 3), "judge": 3 * (2 + 2 + 3 + 2)}
        self.assertEqual(calls_of(asked), by_role)
        self.assertEqual(sum(by_role.values()), 3 * 22)
        self.assertEqual(calls_of(planned(plans, HIGH)), by_role)

    def test_the_planned_characters_and_the_replies_in_them_are_those_of_the_prompts_sent(self) -> None:
        plans = self.plans()
        for end, label in ((LOW, JUDGE), (HIGH, ASK)):
            for length in (1, 50):
                with self.subTest(label=label, length=length):
                    asked = made(self.run_all("--run-id", f"run-{end}-{length}", answer=replying(label, length)))
                    self.assertEqual(asked, planned(plans, end, length))

    def test_a_model_that_asks_now_and_then_stays_between_the_bounds(self) -> None:
        (plan,) = self.plans(scripts=["LexAwN_gen.py"])
        low, high = (calls_of(planned([plan], end)) for end in (LOW, HIGH))
        for questions in range(4):
            run_id = f"asks-{questions}"
            counts = calls_of(self.resume("LexAwN_gen.py", asking(questions), "--run-id", run_id))
            self.assertEqual(counts["user"], 3 * questions)
            for role, count in counts.items():
                with self.subTest(questions=questions, role=role):
                    self.assertTrue(low[role] <= count <= high[role], (low[role], count, high[role]))

    texts = st.text("甲乙丙，1{}%", min_size=1, max_size=12)
    lists = st.lists(texts, min_size=1, max_size=3)
    count = itertools.count()

    @FEW
    @given(st.data())
    def test_calls_and_characters_are_exact_for_any_case(self, data: st.DataObject) -> None:
        turns = data.draw(st.sampled_from([1, 3, 5]))
        contents = st.lists(self.texts, min_size=turns, max_size=turns)
        case = make_case(
            data.draw(self.texts),
            focal_point=data.draw(self.texts | self.lists),
            key_details=data.draw(self.texts | self.lists | st.dictionaries(self.texts, self.lists, min_size=1)),
            result_dict=dict.fromkeys(data.draw(self.lists), "支持"),
            complete_consultation=history(*data.draw(contents)),
            underspecified_consultation=history(*data.draw(contents)),
        )
        length = data.draw(st.integers(1, 9))
        self.data_file = self.write_cases([case])
        for end, label in ((LOW, JUDGE), (HIGH, ASK)):
            run_id = f"run-{next(self.count)}"
            plans = self.plans("--run-id", run_id)
            asked = made(self.run_all("--run-id", run_id, answer=replying(label, length)))
            self.assertEqual(asked, planned(plans, end, length))


class TheRest(Planning):
    """Plans of what an interruption left."""

    def test_after_some_commands_only_the_others_are_planned_with_the_replies_that_they_will_read(self) -> None:
        for script in ("LexAwN_gen.py", "eval_LJP_gold.py"):
            self.resume(script, replying(ASK))
        plans = self.plans()
        self.assertEqual(
            [list(plan.roles) for plan in plans], [[], [*ROLE_NAMES], ["evaluated", "judge"], [], ["judge"]]
        )
        self.assertNotIn("replies", plans[-1].roles["judge"])
        asked = made(self.run_all(answer=replying(ASK)))
        self.assertEqual(calls_of(asked), {"evaluated": 3 * (2 + 1), "user": 3 * 1, "judge": 3 * (2 + 1 + 1)})
        for end in (LOW, HIGH):
            self.assertEqual(planned(plans, end), asked)

    def test_wherever_a_command_stopped_the_bounds_are_the_calls_that_a_model_of_either_kind_still_makes(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        for script, label, end, calls in (
            ("LexAwN_gen.py", JUDGE, LOW, 2 + 2),
            ("LexAwN_gen.py", ASK, HIGH, 2 + 2 + 3 + 2 + 2 + 1),
            ("eval_DCG.py", JUDGE, LOW, 2 + 1 + 2),
            ("eval_DCG.py", JUDGE, HIGH, 2 + 1 + 2),
        ):
            for nth in range(1, calls + 1):
                with self.subTest(script=script, label=label, nth=nth):
                    run = ("--run-id", f"{script[:7]}-{len(label)}-{end}-{nth}")
                    self.interrupt(script, nth, replying(label), *run)
                    plan = self.plan(script, *run)
                    asked = self.resume(script, replying(label), *run)
                    self.assertEqual(sum(calls_of(asked).values()), calls - (nth - 1))
                    self.assertEqual(planned([plan], end), asked)

    def test_the_replies_of_an_interrupted_interaction_count_among_the_characters_and_not_as_unwritten(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        for nth in range(2 + 2 + 1, 2 + 2 + 3 + 2 + 2 + 1 + 1):
            with self.subTest(nth=nth):
                run = ("--run-id", f"stopped-{nth}")
                self.interrupt("LexAwN_gen.py", nth, replying(ASK, 7), *run)
                plan = self.plan("LexAwN_gen.py", *run)
                asked = self.resume("LexAwN_gen.py", replying(ASK, 20), *run)
                self.assertEqual(planned([plan], HIGH, 20), asked)

    def test_after_any_question_the_bounds_are_the_calls_of_a_model_that_asks_no_more_or_always(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        for before, after, end, calls in ((ASK, JUDGE, LOW, 12), (JUDGE, ASK, HIGH, 4)):
            for nth in range(1, calls + 1):
                with self.subTest(after=after, nth=nth):
                    run = ("--run-id", f"after-{end}-{nth}")
                    self.interrupt("LexAwN_gen.py", nth, replying(before), *run)
                    plan = self.plan("LexAwN_gen.py", *run)
                    asked = self.resume("LexAwN_gen.py", replying(after), *run)
                    self.assertEqual(calls_of(planned([plan], end)), calls_of(asked))

    def test_an_interrupted_case_is_to_do_and_its_answers_are_not_counted_again(self) -> None:
        self.interrupt("eval_DCG.py", 3 + 2, replying(ASK))  # the reply to the second case's first question
        plan = self.plan("eval_DCG.py")
        self.assertEqual(plan.files, {"force_ask.jsonl": (3, 1, 2), "DCG_results.jsonl": (3, 0, 3)})
        calls = {"evaluated": (1 + 2,) * 2, "user": (1 + 1,) * 2, "judge": (3 * 2,) * 2}
        self.assertEqual({role: ends(rows["calls"]) for role, rows in plan.roles.items()}, calls)
        self.assertEqual(planned([plan], HIGH), self.resume("eval_DCG.py", replying(ASK)))

    def test_an_answer_whose_line_is_torn_is_counted_as_its_call_is_made_again(self) -> None:
        self.interrupt("eval_DCG.py", 3, replying(ASK))
        (journal,) = (self.root / "out").rglob("force_ask.open.jsonl")
        journal.write_bytes(journal.read_bytes()[:-9])  # of the two answers the user's is torn
        plan = self.plan("eval_DCG.py")
        self.assertEqual(ends(plan.roles["user"]["calls"]), (3, 3))
        self.assertEqual(ends(plan.roles["evaluated"]["calls"]), (1 + 2 + 2,) * 2)
        self.assertEqual(planned([plan], HIGH), self.resume("eval_DCG.py", replying(ASK)))

    def test_a_case_that_lacks_nothing_but_its_record_needs_no_call(self) -> None:
        self.data_file = self.write_cases([make_case("1"), make_case("2")])
        self.interrupt("LexAwN_gen.py", 2 * 2 + 2 * 2 + 3 + 3, asking(1))  # the judgment of the second case's answer
        self.file("interaction").write_bytes(b"")  # as a kill between the first case's last answer and its record
        plan = self.plan("LexAwN_gen.py")
        self.assertEqual(plan.files["interaction.jsonl"], (2, 0, 2))
        calls = {role: ends(rows["calls"]) for role, rows in plan.roles.items()}
        self.assertEqual(calls, {"evaluated": (0, 2), "user": (0, 2), "judge": (1, 2)})
        asked = self.resume("LexAwN_gen.py", asking(1))
        self.assertEqual(calls_of(asked), {"evaluated": 0, "user": 0, "judge": 1})
        self.assertEqual(calls_of(planned([plan], LOW)), calls_of(asked))

    def label(self, *labels: str) -> None:
        """Get as far as the labels of all cases, complete and underspecified in turn, and no call farther."""
        script = Script(evaluated=["答" * 7] * 6, judge=labels, user=[ProviderError("down")])
        with self.assertRaises(ProviderError):
            self.stage("LexAwN_gen.py", script.connect)

    def test_recorded_labels_narrow_the_bounds_of_the_interaction(self) -> None:
        before = self.calls("LexAwN_gen.py")
        self.assertEqual(before, {"evaluated": (6, 6 + 3 * 3), "user": (0, 3 * 3), "judge": (6, 6 + 3 * 2)})
        self.label(JUDGE, ASK, ASK, JUDGE, JUDGE, ASK)  # the first and the third case are asked about
        after = self.calls("LexAwN_gen.py")
        self.assertEqual(after, {"evaluated": (2 * 1, 2 * 3), "user": (2 * 1, 2 * 3), "judge": (2 * 1, 2 * 2)})
        self.assertEqual(self.plan("LexAwN_gen.py").files["interaction.jsonl"], (3, 0, 3))

    def test_the_first_question_of_an_interaction_is_no_unwritten_reply_once_it_is_recorded(self) -> None:
        self.label(*[ASK] * 6)
        rows = self.plan("LexAwN_gen.py").roles["user"]
        case = self.cases[0]
        asked = user_prompt(case["underspecified_consultation"], case["focal_point"], case["key_details"], "答" * 7)
        self.assertEqual(ends(rows["replies"])[LOW], 0)
        self.assertEqual(ends(rows["prompt characters"])[LOW], 3 * len(asked))

    REFUSAL = Fault("no", 400, final=True, marks=frozenset({"content_filter"}), code="content_filter")

    def test_no_judgment_is_planned_of_a_prediction_that_a_content_filter_refused(self) -> None:
        blocked = Script(evaluated=["判" * 7, self.REFUSAL, "判" * 7], judge=[ProviderError("down")])
        with self.assertRaises(ProviderError):
            self.stage("eval_LJP_gold.py", blocked.connect, "--record-blocked")
        plan = self.plan("eval_LJP_gold.py", "--record-blocked")
        self.assertEqual(plan.files, {"a1_force_judge.jsonl": (3, 3, 0), "LJP_gold.jsonl": (3, 0, 3)})
        asked = self.resume("eval_LJP_gold.py", replying(ASK), "--record-blocked")
        self.assertEqual(calls_of(asked), {"evaluated": 0, "user": 0, "judge": 2})
        self.assertEqual(planned([plan], HIGH), asked)

    def test_no_interaction_is_planned_of_a_response_that_a_content_filter_refused(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        blocked = Script(evaluated=["完整判", self.REFUSAL], judge=[ProviderError("down")])
        with self.assertRaises(ProviderError):
            self.stage("LexAwN_gen.py", blocked.connect, "--record-blocked")
        plan = self.plan("LexAwN_gen.py", "--record-blocked")
        asked = self.resume("LexAwN_gen.py", replying(ASK, 3), "--record-blocked")
        self.assertEqual(calls_of(asked), {"evaluated": 0, "user": 0, "judge": 1})
        for end in (LOW, HIGH):
            self.assertEqual(planned([plan], end), asked)


# ----------------------------------------------------------------------------------------------------------------------


class TokensAndCost(Planning):
    """One gold-standard prediction: a prompt of the case alone, and a judgment that reads its reply."""

    cases = (make_case("1"),)

    def setUp(self) -> None:
        super().setUp()
        case = self.cases[0]
        self.prompt = len(force_judge_prompt(case["complete_consultation"]))
        self.judgment = len(extraction_prompt(list(case["result_dict"]), ""))

    def gold(self, *more: str) -> Plan:
        return self.plan("eval_LJP_gold.py", *more)

    def test_a_character_is_half_a_token_to_one_and_a_half_and_a_reply_one_to_its_limit(self) -> None:
        evaluated, judge = (self.gold("--max-tokens", "100").roles[role] for role in ("evaluated", "judge"))
        self.assertEqual(evaluated["prompt characters"], f"{self.prompt}")
        self.assertEqual(evaluated["prompt tokens"], f"{0.5 * self.prompt:,.0f} to {1.5 * self.prompt:,.0f}")
        self.assertEqual(judge["prompt characters"], f"{self.judgment}")
        self.assertEqual(judge["replies"], "1")
        self.assertEqual(judge["prompt tokens"], f"{0.5 * self.judgment + 1:,.0f} to {1.5 * self.judgment + 100:,.0f}")
        self.assertEqual([rows["completion tokens"] for rows in (evaluated, judge)], ["1 to 100"] * 2)

    def test_without_a_limit_what_hangs_on_it_is_unknown_and_the_rest_is_not(self) -> None:
        prices = {name: {"prompt": 1e6, "completion": 1e6, "currency": "USD"} for name in ("m", "DeepSeek-R1")}
        plan = self.gold("--eval-params", UNLIMITED, "--prices", self.prices(prices))
        evaluated, judge = plan.roles["evaluated"], plan.roles["judge"]
        self.assertEqual(evaluated["completion tokens"], "1 to unknown")
        self.assertEqual(evaluated["prompt tokens"], f"{0.5 * self.prompt:,.0f} to {1.5 * self.prompt:,.0f}")
        self.assertEqual(judge["completion tokens"], "1 to 8,192")
        self.assertEqual(judge["prompt tokens"], f"{0.5 * self.judgment + 1:,.0f} to unknown")  # reads such a reply
        least_cost = [0.5 * self.prompt + 1, 0.5 * self.judgment + 1 + 1]
        self.assertEqual([evaluated["cost"], judge["cost"]], [f"{cost:,.4f} to unknown USD" for cost in least_cost])
        self.assertEqual(plan.in_all, [f"{sum(least_cost):,.4f} to unknown USD"])

    def test_the_limit_of_the_request_itself_counts_by_either_name(self) -> None:
        table: list[tuple[str, str]] = [
            ('{"max_tokens": null, "max_completion_tokens": 32768}', "1 to 32,768"),
            ('{"max_completion_tokens": 500}', "1 to 500"),
            ('{"max_completion_tokens": 9000}', "1 to 8,192"),
            ('{"max_tokens": 50}', "1 to 50"),
            ('{"max_tokens": null}', "1 to unknown"),
            ('{"max_tokens": null, "max_completion_tokens": null}', "1 to unknown"),
        ]
        for params, expected in table:
            with self.subTest(params):
                roles = self.gold("--eval-params", params).roles
                self.assertEqual(roles["evaluated"]["completion tokens"], expected)
                self.assertEqual(roles["judge"]["completion tokens"], "1 to 8,192")

    def test_each_role_has_the_limit_of_its_own_requests(self) -> None:
        for option, role in (("--user-params", "user"), ("--judge-params", "judge")):
            rows = self.plan("eval_DCG.py", option, '{"max_tokens": 10}').roles
            for name, calls in (("evaluated", 2), ("user", 1), ("judge", 2)):
                limit = 10 if name == role else 8192
                self.assertEqual(rows[name]["completion tokens"], f"{calls} to {calls * limit:,}")

    def test_without_prices_every_cost_is_unknown(self) -> None:
        plan = self.gold()
        self.assertEqual([rows["cost"] for rows in plan.roles.values()], ["unknown", "unknown"])
        self.assertEqual(plan.in_all, ["unknown"])

    def test_costs_are_prices_times_tokens_and_add_up_in_one_currency(self) -> None:
        prices = {
            "m": {"prompt": 1e6, "completion": 3e6, "currency": "USD"},
            "DeepSeek-R1": {"prompt": 5e5, "completion": 0, "currency": "USD"},
        }
        plan = self.gold("--max-tokens", "100", "--prices", self.prices(prices))
        evaluated = [0.5 * self.prompt + 3 * 1, 1.5 * self.prompt + 3 * 100]
        judge = [(0.5 * self.judgment + 1) / 2, (1.5 * self.judgment + 100) / 2]
        self.assertEqual(plan.roles["evaluated"]["cost"], f"{evaluated[0]:,.4f} to {evaluated[1]:,.4f} USD")
        self.assertEqual(plan.roles["judge"]["cost"], f"{judge[0]:,.4f} to {judge[1]:,.4f} USD")
        self.assertEqual(plan.in_all, [f"{evaluated[0] + judge[0]:,.4f} to {evaluated[1] + judge[1]:,.4f} USD"])

    def test_two_currencies_are_not_added(self) -> None:
        prices = {
            "m": {"prompt": 1e6, "completion": 0, "currency": "USD"},
            "DeepSeek-R1": {"prompt": 0, "completion": 1e6, "currency": "CNY"},
        }
        plan = self.gold("--max-tokens", "100", "--prices", self.prices(prices))
        dollars = f"{0.5 * self.prompt:,.4f} to {1.5 * self.prompt:,.4f} USD"
        self.assertEqual(plan.in_all, [dollars, "1.0000 to 100.0000 CNY"])
        self.assertEqual([rows["cost"] for rows in plan.roles.values()], plan.in_all)

    def test_a_model_without_a_price_costs_unknown_and_the_others_do_not(self) -> None:
        priced = {"prompt": 0, "completion": 1e6, "currency": "USD"}
        for prices, costs in (
            ({"m": priced}, ["1.0000 to 100.0000 USD", "unknown"]),
            ({"DeepSeek-R1": priced}, ["unknown", "1.0000 to 100.0000 USD"]),
            ({"M": priced, "DeepSeek": priced}, ["unknown", "unknown"]),  # names count exactly
            ({}, ["unknown", "unknown"]),
        ):
            with self.subTest(prices):
                plan = self.gold("--max-tokens", "100", "--prices", self.prices(prices))
                self.assertEqual([rows["cost"] for rows in plan.roles.values()], costs)
                self.assertEqual(sorted(plan.in_all), sorted(set(costs)))

    def test_a_price_of_nothing_is_a_known_cost(self) -> None:
        free = {"prompt": 0, "completion": 0, "currency": "USD"}
        plan = self.gold("--prices", self.prices({"m": free, "DeepSeek-R1": free}))
        self.assertEqual(plan.in_all, ["0.0000 USD"])


class PriceFiles(Planning):
    GOOD = '"prompt": 0.5, "completion": 2, "currency": "USD"'

    def refused(self, raw: bytes) -> str:
        """What a plan says of a price file with these bytes, where it says nothing else."""
        path = self.root / "prices.json"
        path.write_bytes(raw)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), self.assertRaises(SettingsError) as caught:
            self.stage("eval_LJP_gold.py", nobody, "--plan", "--prices", str(path))
        self.assertEqual(shown.getvalue(), "")
        self.assertIn(str(path), str(caught.exception))
        return str(caught.exception)

    def test_a_file_that_is_no_json_object_is_refused_by_name(self) -> None:
        table: list[tuple[str, bytes]] = [
            ("empty", b""),
            ("half", b'{"m": {'),
            ("a page", b"<html>"),
            ("UTF-16", "{}".encode("utf-16")),
            ("Latin-1", b'{"\xe9": 1}'),
            ("nested too deeply", b"[" * 100_000),
            ("a list", b"[]"),
            ("a number", b"1"),
            ("a text", b'"m"'),
            ("null", b"null"),
        ]
        for what, raw in table:
            with self.subTest(what):
                self.refused(raw)

    def test_a_missing_file_and_a_folder_are_refused_by_name(self) -> None:
        for path in (self.root / "none.json", self.root):
            with self.assertRaises(SettingsError) as caught:
                self.stage("eval_LJP_gold.py", nobody, "--plan", "--prices", str(path))
            self.assertIn(f"{path}: not a JSON file of prices", str(caught.exception))

    BAD_PRICES: Sequence[tuple[str, str]] = (
        ("a number", "1"),
        ("null", "null"),
        ("a list", '[0.5, 2, "USD"]'),
        ("empty", "{}"),
        ("no prompt", '{"completion": 2, "currency": "USD"}'),
        ("no completion", '{"prompt": 0.5, "currency": "USD"}'),
        ("no currency", '{"prompt": 0.5, "completion": 2}'),
        ("another key", f'{{{GOOD}, "cached": 0.1}}'),
        ("a text for a price", '{"prompt": "0.5", "completion": 2, "currency": "USD"}'),
        ("null for a price", '{"prompt": 0.5, "completion": null, "currency": "USD"}'),
        ("negative", '{"prompt": -0.5, "completion": 2, "currency": "USD"}'),
        ("not a number", '{"prompt": NaN, "completion": 2, "currency": "USD"}'),
        ("infinite", '{"prompt": 0.5, "completion": Infinity, "currency": "USD"}'),
        ("beyond a float", '{"prompt": 1e999, "completion": 2, "currency": "USD"}'),
        ("a number for a currency", '{"prompt": 0.5, "completion": 2, "currency": 1}'),
        ("null for a currency", '{"prompt": 0.5, "completion": 2, "currency": null}'),
    )

    def test_a_bad_price_is_refused_with_its_model_wherever_it_stands(self) -> None:
        for what, bad in self.BAD_PRICES:
            for text in (f'{{"坏/model": {bad}}}', f'{{"m": {{{self.GOOD}}}, "坏/model": {bad}}}'):
                with self.subTest(what, text=text):
                    said = self.refused(text.encode())
                    self.assertIn('prices.json: 坏/model: expected {"prompt": 0.5, "completion": 2,', said)

    def test_a_price_that_is_true_is_refused(self) -> None:
        said = self.refused(b'{"m": {"prompt": true, "completion": 2, "currency": "USD"}}')
        self.assertIn("prices.json: m: expected", said)

    def test_a_price_of_four_hundred_digits_is_refused(self) -> None:
        said = self.refused(b'{"m": {"prompt": 1%s, "completion": 2, "currency": "USD"}}' % (b"0" * 400))
        self.assertIn("prices.json: m: expected", said)

    def test_a_blank_currency_is_refused(self) -> None:
        for blank in ("", " "):
            said = self.refused(json.dumps({"m": {"prompt": 1, "completion": 2, "currency": blank}}).encode())
            self.assertIn("prices.json: m: expected", said)

    def test_a_model_with_two_prices_is_refused(self) -> None:
        said = self.refused(f'{{"m": {{{self.GOOD}}}, "m": {{{self.GOOD.replace("0.5", "5")}}}}}'.encode())
        self.assertIn("m", said.partition("prices.json")[2])

    def test_whole_and_broken_numbers_and_a_byte_order_mark_are_fine(self) -> None:
        path = self.root / "prices.json"
        path.write_bytes(b"\xef\xbb\xbf" + f'{{"m": {{{self.GOOD}}}}}'.encode())
        self.assertEqual(read_prices(path), {"m": Price(0.5, 2, "USD")})


# ----------------------------------------------------------------------------------------------------------------------


class Likely(Planning):
    """Earlier records of comparable runs."""

    GOLD = "eval_LJP_gold.py"

    def smoke(self, cases: int, answer: Answer, *more: str, script: str = GOLD, run_id: str = "smoke") -> None:
        self.resume(script, answer, "--limit", str(cases), "--run-id", run_id, *more)

    def likely(self, *more: str, script: str = GOLD) -> dict[str, str | None]:
        return {role: rows.get("likely tokens") for role, rows in self.plan(script, *more).roles.items()}

    @staticmethod
    def shown(prompt: float, completion: float) -> str:
        return f"{prompt:,.0f} of prompts, {completion:,.0f} of completions"

    NONE: Mapping[str, str | None] = {"evaluated": None, "judge": None}

    def test_without_earlier_records_there_is_no_likely_figure(self) -> None:
        self.assertEqual(self.likely(), self.NONE)

    def test_the_mean_of_a_smoke_run_counts_for_every_case_to_do(self) -> None:
        self.smoke(1, telling({"evaluated": [(100, 10)], "judge": [(5000, 7)]}))
        self.assertEqual(
            self.likely(), {"evaluated": self.shown(3 * 100, 3 * 10), "judge": self.shown(3 * 5000, 3 * 7)}
        )

    def test_on_how_many_records_a_likely_figure_rests_is_said(self) -> None:
        self.assertEqual(self.plan(self.GOLD).rest_on, [])
        self.smoke(2, telling({"evaluated": [(100, 10)] * 2, "judge": [(50, 7)] * 2}))
        self.assertEqual(self.plan(self.GOLD).rest_on, ["2"])

    def test_the_mean_is_over_all_records_of_all_comparable_runs(self) -> None:
        self.smoke(2, telling({"evaluated": [(100, 10), (200, 30)], "judge": [(50, 5), (51, 6)]}))
        self.smoke(1, telling({"evaluated": [(600, 80)], "judge": [(52, 7)]}), run_id="smoke2")
        self.assertEqual(self.likely(), {
            "evaluated": self.shown((100 + 200 + 600) / 3 * 3, (10 + 30 + 80) / 3 * 3),
            "judge": self.shown(50 + 51 + 52, 5 + 6 + 7),
        })  # fmt: skip

    def test_a_run_that_was_interrupted_goes_by_its_own_records(self) -> None:
        used: dict[RoleName, list[tuple[int, int] | None]] = {"evaluated": [(100, 10), (200, 30)]}
        self.interrupt(self.GOLD, 3, telling(used))
        self.assertEqual(self.likely(), {"evaluated": self.shown((100 + 200) / 2, (10 + 30) / 2), "judge": None})

    def test_several_steps_of_one_role_add_up(self) -> None:
        used: dict[RoleName, Iterable[tuple[int, int]]] = {
            "evaluated": itertools.repeat((100, 10)),
            "user": itertools.repeat((30, 3)),
            "judge": itertools.repeat((7, 1)),
        }
        self.smoke(1, telling(used, replying(ASK)), script="LexAwN_gen.py")
        expected = {
            "evaluated": self.shown(3 * (2 + 3) * 100, 3 * (2 + 3) * 10),
            "user": self.shown(3 * 3 * 30, 3 * 3 * 3),
            "judge": self.shown(3 * (2 + 2) * 7, 3 * (2 + 2) * 1),
        }
        self.assertEqual(self.likely(script="LexAwN_gen.py"), expected)

    def test_a_role_of_several_steps_has_no_likely_figure_while_one_of_them_has_no_record(self) -> None:
        used: dict[RoleName, Iterable[tuple[int, int]]] = {
            "evaluated": itertools.repeat((100, 10)),
            "judge": itertools.repeat((7, 1)),
        }
        script, smoke = "LexAwN_gen.py", ("--limit", "1", "--run-id", "smoke")
        with self.assertRaises(ProviderError):
            self.stage(script, Provider(failing_at(2 + 2 + 1, telling(used, replying(ASK)))).connect, *smoke)
        self.assertEqual(self.likely(script="eval_LCA.py"), {"judge": self.shown(3 * 2 * 7, 3 * 2 * 1)})
        self.assertEqual(self.likely(script=script), {"evaluated": None, "user": None, "judge": None})

    def test_a_larger_run_tells_what_a_smaller_one_is_likely_to_take(self) -> None:
        self.smoke(3, telling({"evaluated": [(100, 10)] * 3, "judge": [(50, 5)] * 3}), run_id="whole")
        self.assertEqual(self.likely("--limit", "1"), {"evaluated": self.shown(100, 10), "judge": self.shown(50, 5)})

    def test_a_provider_that_told_no_usage_for_one_call_leaves_its_role_without(self) -> None:
        self.smoke(2, telling({"evaluated": [(100, 10), None], "judge": [(50, 5), (50, 5)]}))
        self.assertEqual(self.likely(), {"evaluated": None, "judge": self.shown(3 * 50, 3 * 5)})

    def test_a_run_with_other_settings_is_not_compared(self) -> None:
        for n, other in enumerate((
            ("--temperature", "0.5"), ("--judge-temperature", "0.5"), ("--max-tokens", "100"), ("--judge-model", "other"),
            ("--user-model", "other"), ("--model", "other"), ("--judge-params", '{"top_p": 0.9}'),
        )):  # fmt: skip
            with self.subTest(other):
                used: dict[RoleName, list[tuple[int, int]]] = {"evaluated": [(100, 10)], "judge": [(50, 5)]}
                self.smoke(1, telling(used), *other, run_id=f"other-{n}")
                self.assertEqual(self.likely(), self.NONE)
        self.smoke(1, telling({"evaluated": [(100, 10)], "judge": [(50, 5)]}))
        self.data_file = self.write_cases([*self.cases, make_case("4")], "other.json")
        self.assertEqual(self.likely(), self.NONE)

    def test_a_comparable_run_that_cannot_be_read_is_passed_over(self) -> None:
        self.smoke(1, telling({"evaluated": [(100, 10)], "judge": [(50, 5)]}))
        self.smoke(1, telling({"evaluated": [(900, 90)], "judge": [(90, 9)]}), run_id="torn")
        self.file("ljp_gold", "torn").write_bytes(b"{")
        judged = self.shown(3 * 50, 3 * 5)
        self.assertEqual(self.likely()["judge"], judged)
        (manifest,) = (self.root / "out" / "runs" / "torn").rglob("manifest.json")
        manifest.write_bytes(b"")
        self.assertEqual(self.likely(), {"evaluated": self.shown(3 * 100, 3 * 10), "judge": judged})

    def test_the_likely_cost_is_that_of_the_likely_tokens(self) -> None:
        self.smoke(1, telling({"evaluated": [(100, 10)], "judge": [(50, 5)]}))
        prices = {"m": {"prompt": 1000, "completion": 2000, "currency": "USD"}}
        roles = self.plan(self.GOLD, "--prices", self.prices(prices)).roles
        cost = 3 * (100 * 1000 + 10 * 2000) / 1e6
        self.assertEqual(roles["evaluated"]["likely cost"], f"{cost:.4f} USD")
        self.assertNotIn("likely cost", roles["judge"])


# ----------------------------------------------------------------------------------------------------------------------


def call(role: RoleName = "judge", usage: Usage | None = None) -> Call:
    return Call(
        role=role, outcome="used", model=None, finish_reason="stop", usage=usage, attempts=1, refused=0, seconds=1.0
    )


class Arithmetic(unittest.TestCase):
    CALLS = (
        Planned("judge", "x" * 10),
        Planned("judge", "x" * 200, replies=3, certain=False),
        Planned("judge", "x" * 3000, replies=2),
    )

    def test_the_least_is_the_certain_calls_with_replies_of_one_token(self) -> None:
        self.assertEqual(least(self.CALLS), Amount(2, 10 + 3000, 2, 0.5 * (10 + 3000) + 2, 2))
        self.assertEqual(least(self.CALLS[1:2]), Amount(0, 0, 0, 0, 0))
        self.assertEqual(least([]), Amount(0, 0, 0, 0, 0))

    def test_the_most_is_all_calls_with_replies_at_their_limits(self) -> None:
        prompts = 1.5 * (10 + 200 + 3000) + (3 + 2) * 7
        self.assertEqual(most(self.CALLS, 11, 7), Amount(3, 10 + 200 + 3000, 3 + 2, prompts, 3 * 11))

    def test_a_limit_that_is_unknown_leaves_unknown_what_hangs_on_it_and_nothing_else(self) -> None:
        self.assertEqual(most(self.CALLS, None, 7)[3:], (1.5 * (10 + 200 + 3000) + (3 + 2) * 7, None))
        self.assertEqual(most(self.CALLS, 11, None)[3:], (None, 3 * 11))
        self.assertEqual(most(self.CALLS[:1], None, None)[3:], (1.5 * 10, None))  # no reply goes into its prompt
        self.assertEqual(most([], None, None), Amount(0, 0, 0, 0, 0))

    @MANY
    @given(st.data())
    def test_whatever_is_asked_and_answered_takes_no_less_and_no_more(self, data: st.DataObject) -> None:
        limit, inner = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 50))
        calls, prompt_tokens, completion_tokens = [], Fraction(0), 0
        for _ in range(data.draw(st.integers(0, 6))):
            length, replies = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 3))
            certain = data.draw(st.booleans())
            calls.append(Planned("judge", "字" * length, replies, certain))
            if certain or data.draw(st.booleans()):
                prompt_tokens += length * data.draw(st.fractions(Fraction(1, 2), Fraction(3, 2)))
                prompt_tokens += sum(data.draw(st.integers(1, inner)) for _ in range(replies))
                completion_tokens += data.draw(st.integers(1, limit))
        low, high = least(calls), most(calls, limit, inner)
        self.assertTrue((low.prompt_tokens or 0) <= prompt_tokens <= (high.prompt_tokens or 0))
        self.assertTrue((low.completion_tokens or 0) <= completion_tokens <= (high.completion_tokens or 0))

    def test_likely_tokens_are_the_mean_of_the_records_for_so_many_cases(self) -> None:
        records = [
            [call(usage={"prompt_tokens": 100, "completion_tokens": 10}), call("user")],
            [call(usage={"prompt_tokens": 30, "completion_tokens": 3})] * 2,
            [],
        ]
        self.assertEqual(likely(6, records, "judge"), (6 / 3 * (100 + 30 + 30), 6 / 3 * (10 + 3 + 3)))
        self.assertEqual(likely(0, records, "judge"), (0, 0))
        self.assertEqual(likely(6, records, "evaluated"), (0, 0))  # as an interaction that never came about

    def test_nothing_is_likely_without_records_or_without_one_usage(self) -> None:
        told: Usage = {"prompt_tokens": 100, "completion_tokens": 10}
        self.assertIsNone(likely(6, [], "judge"))
        self.assertIsNone(likely(6, [[call(usage=told)], [call(usage=None)]], "judge"))
        self.assertIsNone(likely(6, [[call(usage=told), call(usage={"prompt_tokens": 100})]], "judge"))
        self.assertEqual(likely(6, [[call(usage=told), call("user", None)]], "judge"), (6 * 100, 6 * 10))

    def test_a_cost_is_the_price_of_both_kinds_of_tokens_by_the_million(self) -> None:
        price = Price(0.5, 2, "USD")
        self.assertEqual(price.of((3_000_000, 1_000_000)), 3 * 0.5 + 1 * 2)
        self.assertEqual(price.of((0, 0)), 0)
        self.assertEqual(price.of((1, 0)), 0.5 / 1_000_000)

    def test_a_cost_of_unknown_tokens_is_unknown(self) -> None:
        for tokens in ((None, 1.0), (1.0, None), (None, None)):
            self.assertIsNone(Price(0.5, 2, "USD").of(tokens))

    def test_a_token_limit_is_the_smallest_that_the_request_has(self) -> None:
        table: list[tuple[dict[str, Any], int | None]] = [
            ({}, 64),
            ({"max_tokens": 32}, 32),
            ({"max_completion_tokens": 32}, 32),
            ({"max_completion_tokens": 128}, 64),
            ({"max_tokens": None, "max_completion_tokens": 128}, 128),
            ({"max_tokens": None}, None),
            ({"max_tokens": "64"}, None),
            ({"max_tokens": True}, None),
        ]
        for params, expected in table:
            with self.subTest(params):
                self.assertEqual(token_limit(make_role("judge", "j", 0.1, 64, 30, {}, params)), expected)


class Documents(unittest.TestCase):
    def test_the_readmes_price_file_is_one(self) -> None:
        readme = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
        (text,) = re.findall(r"```json\n(.*?)```", readme, re.DOTALL)
        given = {model: Price(**price) for model, price in json.loads(text).items()}
        self.assertEqual(given, {"MODEL": Price(0.5, 2, "USD")})


if __name__ == "__main__":
    unittest.main()
