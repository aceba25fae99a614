"""What a content filter refuses for good: the stop, what --record-blocked records instead, and what that counts as."""

import contextlib
import io
import json
import unittest
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from fakes import (
    ASK,
    JUDGE,
    NO,
    SIX_COMMANDS,
    YES,
    Folder,
    Reply,
    Script,
    body,
    make_case,
    sensible,
    verdicts,
    without_calls,
)
from hypothesis import settings

from adapter import Fault, provider_fault
from checkpoints import SEAL, Run, read_manifest
from common import load_dataset
from errors import BlockedError, CheckpointError, LexPilotError, ModelOutputError, ProviderError
from records import ARTIFACTS, Line, RoleName

MANY = settings(max_examples=100, deadline=None, database=None)
ON = "--record-blocked"
NUMBER = "7-乙"
WORDS = "HTTP 400 content_filter: not this content"
CUT = "the reply is rejected: finish_reason is 'content_filter': the provider's content filter cut it"

Call = tuple[RoleName, Reply]


def refusal(message: str = "not this content") -> Fault:
    return provider_fault(400, {"error": {"code": "content_filter", "message": message}})


def blocked(role: RoleName, code: str = "content_filter", words: str = WORDS) -> dict[str, Any]:
    """The typed outcome that a refusal comes to."""
    return {"blocked": {"role": role, "code": code, "words": words}}


def by_role(calls: Iterable[Call]) -> dict[str, list[Reply]]:
    """Calls in their order as the replies of a script."""
    replies: dict[str, list[Reply]] = {"evaluated": [], "user": [], "judge": []}
    for role, reply in calls:
        replies[role].append(reply)
    return replies


# The calls of one case that asks whenever it may, in their order.
CALLS: dict[str, tuple[Call, ...]] = {
    "LexAwN_gen.py": (
        *(("evaluated", "完整判"), ("evaluated", "问1"), ("judge", JUDGE), ("judge", ASK), ("user", "答1")),
        *(("evaluated", "问2"), ("judge", ASK), ("user", "答2")),
        *(("evaluated", "问3"), ("judge", ASK), ("user", "答3"), ("evaluated", "终判")),
    ),
    "eval_DCG.py": (("evaluated", "问1"), ("user", "答1"), ("evaluated", "问2"), ("judge", NO), ("judge", YES)),
    "eval_LJP_direct.py": (("evaluated", "判"), ("judge", verdicts("支持"))),
    "eval_LJP_gold.py": (("evaluated", "判"), ("judge", verdicts("支持"))),
    "eval_LJP_interaction.py": (("judge", verdicts("支持")),),
}


class Place(NamedTuple):
    """A call that is refused."""

    what: str
    script: str
    call: int
    """Its place in the script's calls."""
    file: str
    """Whose step makes it."""
    blocked: tuple[str, ...]
    """Where the block then stands: a file whose record it is, or a file's key."""
    still: Sequence[int] = ()
    """The script's calls that are made after it nevertheless."""

    @property
    def role(self) -> RoleName:
        return CALLS[self.script][self.call][0]


LOST = ("interaction", "ljp_interaction")
PLACES = (
    Place("LexAwN, complete", "LexAwN_gen.py", 0, "a1", ("a1.complete_response", "lca.complete_label"), (1, *range(3, 12))),
    Place("LexAwN, underspecified", "LexAwN_gen.py", 1, "a1", ("a1.underspecified_response", "lca.underspecified_label", *LOST), (2,)),
    Place("LCA, complete", "LexAwN_gen.py", 2, "lca", ("lca.complete_label",), range(3, 12)),
    Place("LCA, underspecified", "LexAwN_gen.py", 3, "lca", ("lca.underspecified_label", *LOST)),
    Place("round 1, user", "LexAwN_gen.py", 4, "interaction", LOST),
    Place("round 2, evaluated", "LexAwN_gen.py", 5, "interaction", LOST),
    Place("round 2, judge", "LexAwN_gen.py", 6, "interaction", LOST),
    Place("round 2, user", "LexAwN_gen.py", 7, "interaction", LOST),
    Place("round 3, evaluated", "LexAwN_gen.py", 8, "interaction", LOST),
    Place("round 3, judge", "LexAwN_gen.py", 9, "interaction", LOST),
    Place("round 3, user", "LexAwN_gen.py", 10, "interaction", LOST),
    Place("forced prediction", "LexAwN_gen.py", 11, "interaction", LOST),
    Place("first question", "eval_DCG.py", 0, "force_ask", ("force_ask", "dcg")),
    Place("reply to it", "eval_DCG.py", 1, "force_ask", ("force_ask", "dcg")),
    Place("second question", "eval_DCG.py", 2, "force_ask", ("force_ask", "dcg")),
    Place("first hit", "eval_DCG.py", 3, "dcg", ("dcg",)),
    Place("second hit", "eval_DCG.py", 4, "dcg", ("dcg",)),
    Place("direct prediction", "eval_LJP_direct.py", 0, "a1_direct", ("a1_direct", "ljp_direct")),
    Place("direct verdicts", "eval_LJP_direct.py", 1, "ljp_direct", ("ljp_direct",)),
    Place("gold prediction", "eval_LJP_gold.py", 0, "a1_force_judge", ("a1_force_judge", "ljp_gold")),
    Place("gold verdicts", "eval_LJP_gold.py", 1, "ljp_gold", ("ljp_gold",)),
    Place("interaction verdicts", "eval_LJP_interaction.py", 0, "ljp_interaction", ("ljp_interaction",)),
)  # fmt: skip


def done_or_lost(place: Place) -> set[str]:
    """The commands that have nothing to ask once the place's own command is done."""
    before = {"LexAwN_gen.py"} if place.script == "eval_LJP_interaction.py" else set[str]()
    return {place.script} | before | ({"eval_LJP_interaction.py"} if LOST[1] in place.blocked else set())


class Blocks(Folder):
    def task(self, name: str) -> dict[str, Any]:
        """The one group's figures of a task."""
        (group,) = json.loads(self.show("--format", "json"))["groups"]
        found: dict[str, Any] = group["tasks"][name]
        return found

    def fails(self, kind: type[LexPilotError], script: str, *more: str, **replies: Sequence[Reply]) -> str:
        """The message of a stage that must fail with just this class, once its script of replies is used up."""
        provider = Script(**replies)
        with self.assertRaises(LexPilotError) as caught:
            self.stage(script, provider.connect, *more)
        self.assertIs(type(caught.exception), kind, caught.exception)
        self.assertEqual({role: left for role, left in provider.left.items() if left}, {}, "replies left over")
        return str(caught.exception)

    def written(self, name: str, run_id: str = "run1") -> list[Path]:
        return list((self.root / "out").glob(ARTIFACTS[name].path.format(run=f"{run_id}/*")))

    def made(self, name: str, run_id: str = "run1") -> dict[str, Any]:
        """The one record of a file without what every record has."""
        (record,) = self.records(name, run_id)
        return {key: value for key, value in record.items() if key not in Line.__annotations__}

    def blocks(self, run_id: str = "run1") -> dict[str, Any]:
        """All blocks in the records of a run's one case: the whole record by its file, else the value by file and key."""
        found: dict[str, Any] = {}
        for name in ARTIFACTS:
            made = self.made(name, run_id)
            inner = {f"{name}.{key}": value for key, value in made.items() if "blocked" in str(value)}
            found |= {name: made} if "blocked" in made else inner
        return found


class EveryCall(Blocks):
    """Each call of a case refused once."""

    cases = (make_case(NUMBER),)

    def stop(self, place: Place, run_id: str) -> str:
        """Let the call be refused, without the option; what the command says, after one request for that call."""
        if place.script == "eval_LJP_interaction.py":
            self.play("LexAwN_gen.py", "--run-id", run_id, **by_role(CALLS["LexAwN_gen.py"]))
        until = by_role([*CALLS[place.script][: place.call], (place.role, refusal())])
        return self.fails(BlockedError, place.script, "--run-id", run_id, **until)

    def go_on(self, place: Place, run_id: str) -> None:
        """The same command with the option: the call is refused again, and only what it does not prevent is asked."""
        after = [CALLS[place.script][n] for n in place.still]
        self.play(place.script, "--run-id", run_id, ON, **by_role([(place.role, refusal()), *after]))

    def do_the_others(self, place: Place, run_id: str) -> None:
        """All other commands in their order; one whose file inherits the block asks nothing."""
        for script in SIX_COMMANDS:
            calls = () if script in done_or_lost(place) else CALLS[script]
            self.play(script, "--run-id", run_id, ON, **by_role(calls))

    def test_without_the_option_it_stops_with_one_request_no_record_and_the_advice(self) -> None:
        self.assertEqual(BlockedError.exit_status, 3)
        for n, place in enumerate(PLACES):
            with self.subTest(place.what):
                said = self.stop(place, f"run{n}")
                artifact = ARTIFACTS[place.file]
                head = f"{artifact.command}, case {NUMBER}, {Path(artifact.path).name}: {place.role} model '"
                self.assertEqual(said[: len(head)], head)
                for part in (", 1 try: ", "content_filter", "not this content", "--record-blocked"):
                    self.assertIn(part, said)
                self.assertEqual(self.written(place.file, f"run{n}"), [])

    def test_the_same_command_with_the_option_goes_on_and_the_whole_run_becomes_complete(self) -> None:
        for n, place in enumerate(PLACES):
            with self.subTest(place.what):
                self.stop(place, f"run{n}")
                self.go_on(place, f"run{n}")
                self.do_the_others(place, f"run{n}")
                self.assertEqual(self.blocks(f"run{n}"), dict.fromkeys(place.blocked, blocked(place.role)))
                labels = self.made("lca", f"run{n}")
                for side in ("complete", "underspecified"):
                    without = [labels[f"{side}_{key}"] is None for key in ("reason", "judge_reply")]
                    self.assertEqual(without, [f"lca.{side}_label" in place.blocked] * 2)
                self.check_calls(place, f"run{n}")
                self.check_reload(place, f"run{n}")

    def check_calls(self, place: Place, run_id: str) -> None:
        """The refused call stands in its own record alone, and every answer of the run in one."""
        calls = [(name, call) for name in ARTIFACTS for call in self.records(name, run_id)[0]["calls"]]
        refused = [(name, call["role"], call["attempts"]) for name, call in calls if call["outcome"] == "blocked"]
        self.assertEqual(refused, [(place.file, place.role, 1)])
        used = sum(call["outcome"] == "used" for _, call in calls)
        others = sum(len(CALLS[script]) for script in SIX_COMMANDS if script not in done_or_lost(place))
        before = len(CALLS["LexAwN_gen.py"]) if place.script == "eval_LJP_interaction.py" else place.call
        self.assertEqual(used, before + len(place.still) + others)

    def check_reload(self, place: Place, run_id: str) -> None:
        """No command asks anything again, with the option or without, and no byte changes."""
        before = self.snapshot()
        self.play(place.script, "--run-id", run_id, ON)
        for script in SIX_COMMANDS:
            self.play(script, "--run-id", run_id)
        self.assertEqual(self.snapshot(), before)
        self.show("--run-id", run_id)

    def test_a_plan_has_no_call_for_what_a_block_prevents(self) -> None:
        first: list[Reply] = [refusal(), "问1"]
        self.fails(ProviderError, "LexAwN_gen.py", ON, evaluated=first, judge=[provider_fault(404, "gone")])
        self.assertRegex(self.plan("eval_LCA.py"), r"(?m)^  calls +1$")
        self.play("eval_LCA.py", ON, judge=[refusal()])
        for script in ("LexAwN_gen.py", "eval_LJP_interaction.py"):
            shown = self.plan(script)
            self.assertIn("1 cases, 0 done, 1 to do", shown)
            self.assertNotIn("  calls ", shown)
            self.play(script, ON)

    def plan(self, script: str) -> str:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            self.play(script, "--plan")
        return shown.getvalue()

    def test_the_ledger_counts_a_refused_call_apart(self) -> None:
        self.play("eval_DCG.py", ON, evaluated=["问1", refusal()], user=["答1"])
        lines = json.loads(self.show("--ledger", "--format", "json"))["ledger"]
        found = [[line[key] for key in ("role", "calls", "blocked", "retries", "rejected")] for line in lines]
        self.assertEqual(found, [["evaluated", 1, 1, 0, 0], ["user", 1, 0, 0, 0]])


class Sides(Blocks):
    """The two histories of a case are two consultations: what is refused of one leaves the other as it is."""

    cases = (make_case(NUMBER),)

    def test_a_block_on_the_complete_side_leaves_the_underspecified_one_and_its_interaction(self) -> None:
        calls = CALLS["LexAwN_gen.py"]
        self.play("LexAwN_gen.py", "--run-id", "whole", **by_role(calls))
        self.play("LexAwN_gen.py", ON, **by_role([("evaluated", refusal()), calls[1], *calls[3:]]))
        self.assertEqual(
            without_calls(self.records("interaction")[0]), without_calls(self.records("interaction", "whole")[0])
        )
        for name in ("a1", "lca"):
            found, whole = self.made(name), self.made(name, "whole")
            other = {key: value for key, value in whole.items() if key.startswith("underspecified")}
            self.assertEqual({key: found[key] for key in other}, other)
        prevented = [self.made("lca")[f"complete_{key}"] for key in ("label", "reason", "judge_reply")]
        self.assertEqual(prevented, [blocked("evaluated"), None, None])

    def test_a_block_on_the_underspecified_side_leaves_the_complete_one(self) -> None:
        calls = CALLS["LexAwN_gen.py"]
        self.play("LexAwN_gen.py", "--run-id", "whole", **by_role(calls))
        self.play("LexAwN_gen.py", ON, **by_role([calls[0], ("evaluated", refusal()), calls[2]]))
        for name in ("a1", "lca"):
            found, whole = self.made(name), self.made(name, "whole")
            other = {key: value for key, value in whole.items() if key.startswith("complete")}
            self.assertEqual({key: found[key] for key in other}, other)
        prevented = [self.made("lca")[f"underspecified_{key}"] for key in ("label", "reason", "judge_reply")]
        self.assertEqual(prevented, [blocked("evaluated"), None, None])

    def test_both_sides_can_be_blocked_and_then_nobody_else_is_asked(self) -> None:
        self.play("LexAwN_gen.py", ON, evaluated=[refusal("the first"), refusal("the second")])
        self.play("eval_LJP_interaction.py", ON)
        for script in ("eval_DCG.py", "eval_LJP_direct.py", "eval_LJP_gold.py"):
            self.play(script, **by_role(CALLS[script]))
        first, second = (
            blocked("evaluated", words=f"HTTP 400 content_filter: the {nth}") for nth in ("first", "second")
        )
        self.assertEqual(self.blocks(), {
            "a1.complete_response": first, "a1.underspecified_response": second, "lca.complete_label": first,
            "lca.underspecified_label": second, "interaction": second, "ljp_interaction": second,
        })  # fmt: skip


class OtherCases(Blocks):
    cases = tuple(make_case(str(n)) for n in range(1, 9))

    def test_the_cases_beside_a_blocked_one_have_the_records_of_an_unblocked_run(self) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            if (role == "evaluated" and "案3：" in prompt) or (role == "user" and "案6：" in prompt):
                raise refusal()
            return str(sensible(role, prompt))

        self.run_all("--run-id", "whole")
        self.run_all(ON, "--parallel", "8", answer=answer)
        for name in ARTIFACTS:
            with self.subTest(name):
                whole, torn = (
                    {record["case_number"]: without_calls(record) for record in self.records(name, run_id)}
                    for run_id in ("whole", "run1")
                )
                by_user = {"6"} if name in ("interaction", "ljp_interaction", "force_ask", "dcg") else set[str]()
                self.assertEqual({number for number in whole if whole[number] != torn[number]}, {"3"} | by_user)

    def test_without_the_option_no_case_is_begun_after_the_block(self) -> None:
        said = self.fails(BlockedError, "eval_LJP_gold.py", evaluated=["判", refusal()])
        self.assertIn("case 2, ", said)
        self.assertEqual([record["case_number"] for record in self.records("a1_force_judge")], ["1"])
        self.play("eval_LJP_gold.py", ON, evaluated=[refusal(), *["判"] * 6], judge=[verdicts("支持")] * 7)
        self.assertEqual(len(self.records("ljp_gold")), 8)


class WhatCounts(Blocks):
    """Which refusals are a content filter's."""

    cases = (make_case(NUMBER),)

    def refused(self, role: RoleName, reply: Reply) -> dict[str, list[Reply]]:
        """The replies of eval_DCG.py up to the role's first call, which gets this one."""
        calls = CALLS["eval_DCG.py"]
        first = [asked for asked, _ in calls].index(role)
        return by_role([*calls[:first], (role, reply)])

    def recorded(self, role: RoleName, reply: Reply, *more: str) -> dict[str, Any]:
        """What stands for the case once the role's call got this reply: a stop without the option, a record with it."""
        more = ("--run-id", role, *more)
        name = "dcg" if role == "judge" else "force_ask"
        said = self.fails(BlockedError, "eval_DCG.py", *more, **self.refused(role, reply))
        self.assertIn("--record-blocked", said)
        self.assertEqual(self.written(name, role), [])
        self.play("eval_DCG.py", *more, ON, **by_role([(role, reply)]))
        self.assertEqual(self.made("dcg", role), self.made(name, role))
        return self.made(name, role)

    def test_a_reply_that_the_filter_cuts_on_every_try_is_recorded_too(self) -> None:
        for role in ("evaluated", "user", "judge"):
            with self.subTest(role):
                found = self.recorded(role, body("部分", "content_filter"), "--retries", "0")
                self.assertEqual(found, blocked(role, words=CUT))
                calls = self.records("dcg" if role == "judge" else "force_ask", role)[0]["calls"]
                before = ["used"] if role == "user" else []
                self.assertEqual([call["outcome"] for call in calls], [*before, "rejected"])

    def test_a_filter_that_leaves_no_message_at_all_is_recorded_too(self) -> None:
        table: list[tuple[RoleName, dict[str, Any]]] = [
            ("evaluated", {"index": 0, "finish_reason": "content_filter"}),
            ("judge", {"index": 0, "finish_reason": "content_filter", "message": None}),
        ]
        for role, choice in table:
            with self.subTest(role):
                told = json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]}).encode()
                found = self.recorded(role, told, "--retries", "0")
                self.assertEqual(found["blocked"]["code"], "content_filter")

    def test_a_filter_counts_by_whatever_name_its_provider_gives_it(self) -> None:
        table: list[tuple[str, Reply]] = [
            ("GLM", body("", "sensitive")),
            ("Gemini", body(None, "content_filter: PROHIBITED_CONTENT")),
            ("One API, New API", provider_fault(400, {"error": {"code": "sensitive_words_detected"}})),
            ("Ark", provider_fault(400, {"error": {"code": "SensitiveContentDetected"}})),
            ("Ark", provider_fault(400, {"error": {"code": "InputTextSensitiveContentDetected"}})),
        ]
        for n, (who, reply) in enumerate(table):
            with self.subTest(who):
                self.play("eval_LJP_gold.py", ON, "--retries", "0", "--run-id", f"run{n}", evaluated=[reply])
                self.assertEqual(self.made("ljp_gold", f"run{n}")["blocked"]["role"], "evaluated")

    def test_a_filter_is_known_by_its_words_alone_where_its_code_says_nothing(self) -> None:
        words, code = "Content Exists Risk", "invalid_request_error"
        for role in ("evaluated", "user", "judge"):
            with self.subTest(role):
                found = self.recorded(
                    role, provider_fault(400, {"error": {"message": words, "type": code, "code": code}})
                )
                self.assertEqual(found, blocked(role, code=code, words=f"HTTP 400 {code}: {words}"))

    def test_a_refusal_inside_a_200_is_recorded(self) -> None:
        told = json.dumps({"error": {"code": "content_filter", "message": "not this content"}}).encode()
        found = self.recorded("user", told)
        self.assertEqual(found, blocked("user", words="an error in the answer content_filter: not this content"))

    def test_half_a_character_in_the_providers_words_or_code_ends_no_run(self) -> None:
        for script, name, code, words in (
            ("eval_LJP_direct.py", "ljp_direct", None, "not this \ud800"),
            ("eval_LJP_gold.py", "ljp_gold", "\ud800", "not this content"),
        ):
            with self.subTest(script):
                told = {"error": {"code": code, "type": "content_filter", "message": words}}
                self.play(script, ON, evaluated=[provider_fault(400, told)])
                self.assertEqual(self.made(name)["blocked"]["role"], "evaluated")

    def test_any_other_refusal_stops_with_the_option_as_well(self) -> None:
        invalid = "invalid_request_error"
        table: list[tuple[str, int, dict[str, Any]]] = [
            ("another parameter", 400, {"code": "unsupported_parameter", "message": "n is not supported"}),
            ("a code that says nothing", 400, {"code": invalid, "type": invalid, "message": "Model Not Exist"}),
            ("words about a filter", 400, {"code": invalid, "message": "content_filter: unknown field"}),
            ("words about a risk", 400, {"code": invalid, "message": "a Content Exists Risk field is unknown"}),
            ("too long", 400, {"code": "context_length_exceeded", "message": "too long"}),
            ("key", 401, {"code": "invalid_api_key", "message": "who?"}),
            ("account", 403, {"message": "not this content"}),
            ("quota", 429, {"code": "insufficient_quota", "message": "empty"}),
        ]
        for what, status, error in table:
            with self.subTest(what):
                said = self.fails(
                    ProviderError, "eval_LJP_gold.py", ON, evaluated=[provider_fault(status, {"error": error})]
                )
                self.assertNotIn("--record-blocked", said)
                self.assertEqual(self.written("a1_force_judge"), [])

    def test_an_unusable_reply_is_no_block(self) -> None:
        for cut in (body("部分", "length"), body("")):
            self.fails(ModelOutputError, "eval_LJP_gold.py", ON, "--retries", "0", evaluated=[cut])
        self.fails(ModelOutputError, "eval_LJP_gold.py", ON, evaluated=["判"], judge=["说不好"] * 4)
        self.assertEqual(self.written("ljp_gold"), [])

    def test_a_judge_that_is_asked_again_can_be_blocked_then(self) -> None:
        self.play("eval_LJP_gold.py", ON, evaluated=["判"], judge=["说不好", refusal()])
        self.assertEqual(self.made("ljp_gold"), blocked("judge"))
        outcomes = [call["outcome"] for call in self.records("ljp_gold")[0]["calls"]]
        self.assertEqual(outcomes, ["unreadable", "blocked"])


class Damage(Blocks):
    """A block in a file that is not what a command writes, sealed as if it were."""

    cases = (make_case("1"), make_case("2"))

    def setUp(self) -> None:
        super().setUp()
        self.play("LexAwN_gen.py", ON, evaluated=["完", "判", refusal(), "判"], judge=[JUDGE] * 3)
        self.play("eval_DCG.py", ON, evaluated=["问1", "问2", refusal()], user=["答1"], judge=[NO, NO])
        manifest = read_manifest(next((self.root / "out" / "runs" / "run1").glob("*/manifest.json")))
        self.run_on_disk = Run(self.root / "out", manifest, load_dataset(self.data_file).cases)

    def sealed(self, name: str, **changes: Any) -> bytes:
        """The second line of a file with other values for some keys."""
        record = {**self.records(name)[1], **changes}
        del record["record_sha256"]
        return self.run_on_disk._sealed(name, json.dumps(record, ensure_ascii=False)[:-1].encode()) + b"\n"

    def refused(self, name: str, line: bytes) -> str:
        """What is said of a file with this as its second line: nothing is asked, and nothing changes."""
        path = self.file(name)
        before = path.read_bytes()
        path.write_bytes(before.splitlines(keepends=True)[0] + line)
        damaged = self.snapshot()
        said = self.fails(CheckpointError, ARTIFACTS[name].command, ON)
        with self.assertRaises(CheckpointError) as caught:
            self.show()
        self.assertIn(said, str(caught.exception))
        self.assertEqual(self.snapshot(), damaged)
        path.write_bytes(before)
        self.assertEqual(said[: len(f"{path}:2: ")], f"{path}:2: ")
        return said

    def test_a_damaged_block_is_refused_with_file_and_line(self) -> None:
        right = blocked("evaluated")["blocked"]
        table: list[tuple[str, Any]] = [
            ("an unknown role", {**right, "role": "assistant"}),
            ("no role", {**right, "role": None}),
            ("a number for a code", {**right, "code": 400}),
            ("no words", {key: right[key] for key in ("role", "code")}),
            ("null for words", {**right, "words": None}),
            ("no code", {key: right[key] for key in ("role", "words")}),
            ("one key more", {**right, "reason": "violence"}),
            ("a text", "evaluated"),
            ("a list", [right]),
            ("nothing", {}),
        ]
        for what, block in table:
            for name, changes in (
                ("force_ask", {"blocked": block}),
                ("dcg", {"blocked": block}),
                ("a1", {"complete_response": {"blocked": block}}),
                ("lca", {"complete_label": {"blocked": block}}),
            ):
                with self.subTest(what, name=name):
                    self.assertNotIn("the line was changed", self.refused(name, self.sealed(name, **changes)))

    def test_a_block_beside_other_keys_is_refused_with_file_and_line(self) -> None:
        whole = self.records("force_ask")[0]
        table: list[tuple[str, dict[str, Any]]] = [
            ("force_ask", {"rounds": whole["rounds"]}),
            ("force_ask", {key: whole[key] for key in ("rounds", "underspecified_history")}),
            ("dcg", {"success": False}),
            ("dcg", {"rounds": [], "success": False}),
            ("a1", {"blocked": blocked("evaluated")["blocked"]}),
            ("a1", {"complete_response": {**blocked("evaluated"), "response": "判"}}),
            ("lca", {"complete_label": {**blocked("evaluated"), "label": "直接判断"}}),
        ]
        for name, changes in table:
            with self.subTest(name, changes=list(changes)):
                self.refused(name, self.sealed(name, **changes))

    def test_a_block_where_none_can_stand_is_refused_with_file_and_line(self) -> None:
        for name, key in (
            ("a1", "complete_history"),
            ("lca", "complete_reason"),
            ("lca", "underspecified_judge_reply"),
        ):
            with self.subTest(name, key=key):
                self.assertIn(f"the record.{key}", self.refused(name, self.sealed(name, **{key: blocked("evaluated")})))

    def test_a_block_laid_on_somebody_else_by_hand_is_found(self) -> None:
        for name in ("a1", "lca", "force_ask", "dcg"):
            with self.subTest(name):
                line = self.file(name).read_bytes().splitlines(keepends=True)[1]
                head, seal, rest = line.rpartition(SEAL)
                other = head.replace(b'"blocked": {"role": "evaluated"', b'"blocked": {"role": "judge"') + seal + rest
                self.assertNotEqual(other, line)
                self.assertIn("the line was changed", self.refused(name, other))


def floats(*values: Fraction | float) -> list[float]:
    return [float(value) for value in values]


class Counted(Blocks):
    """Blocks in the printed figures. Claims by case: 支持 and 驳回, 部分支持, 驳回, 支持; classes: contract, family."""

    cases = (
        make_case("1", result_dict={"甲": "支持", "乙": "驳回"}),
        make_case("2", result_dict={"甲": "部分支持"}),
        make_case("3", cause_of_action="离婚纠纷", result_dict={"甲": "驳回"}),
        make_case("4", cause_of_action="离婚纠纷", result_dict={"甲": "支持"}),
    )
    CONTRACT, FAMILY = "合同、准合同纠纷", "婚姻家庭、继承纠纷"

    def figures(self, task: dict[str, Any], scope: str = "overall") -> dict[str, list[float]]:
        """The one run's figures, which must be its mean and without bounds."""
        found = self.headline(task, scope)
        for metric in found.values():
            self.assertNotIn("bounds", metric)
            self.assertEqual(metric["per_run"], {"run1": metric["mean"]})
        return {metric: value["mean"] for metric, value in found.items()}

    def headline(self, task: dict[str, Any], scope: str) -> dict[str, Any]:
        """A scope's metrics without the further ones of single cases and rounds."""
        found = task["overall"] if scope == "overall" else task["by_class"][scope]
        further = ("all_right", "first_hit", "second_hit", "questions", "judged")
        return {name: metric for name, metric in found.items() if name not in further}

    def bounds(self, task: dict[str, Any], scope: str = "overall") -> dict[str, list[float]]:
        """The worst and the best of the one run's figures, which must not have any value."""
        found = self.headline(task, scope)
        for metric in found.values():
            self.assertEqual(
                {**metric, "bounds": None}, {"mean": None, "sd": None, "per_run": {"run1": None}, "bounds": None}
            )
            self.assertEqual(list(metric["bounds"]), ["run1"])
        return {metric: value["bounds"]["run1"] for metric, value in found.items()}

    def play_gold(self, run_id: str, *given: Reply) -> None:
        """A Gold-Standard run with these replies of the judge."""
        self.play("eval_LJP_gold.py", "--run-id", run_id, ON, evaluated=["判"] * 4, judge=given)

    # Where the evaluated model is blocked

    def test_in_lca_a_blocked_side_is_wrong(self) -> None:
        self.play(
            "LexAwN_gen.py",
            ON,
            evaluated=[refusal(), "问", "完", refusal(), "完", "问", "完", "判", "判", "判"],
            judge=[ASK, JUDGE, JUDGE, ASK, JUDGE, JUDGE, JUDGE, JUDGE],
            user=["答", "答"],
        )
        task = self.task("LCA")
        tn, fp, tp, fn = 3, 1, 2, 2  # blocked: case 1 on the complete side, case 2 on the other; case 4 never asks
        f1_u, f1_c = Fraction(2 * tp, 2 * tp + fp + fn), Fraction(2 * tn, 2 * tn + fn + fp)
        macro_f1 = float((f1_u + f1_c) / 2)
        self.assertEqual(self.figures(task), {"macro_f1": macro_f1, "acc_c": 3 / 4, "acc_u": 2 / 4})
        family = {
            "macro_f1": float((Fraction(2, 2 + 0 + 1) + Fraction(4, 4 + 1 + 0)) / 2),
            "acc_c": 1.0,
            "acc_u": 1 / 2,
        }
        self.assertEqual(self.figures(task, self.FAMILY), family)
        self.assertEqual(self.figures(task, self.CONTRACT), {"macro_f1": 1 / 2, "acc_c": 1 / 2, "acc_u": 1 / 2})
        self.assertEqual((task["blocked"], "missing" in task, task["n"]["overall"]), ({"run1": 2}, False, 4))

    def test_in_dcg_a_blocked_case_is_no_success_even_after_a_question(self) -> None:
        self.play(
            "eval_DCG.py",
            ON,
            evaluated=[refusal(), "问1", refusal(), *["问1", "问2"] * 2],
            user=["答"] * 3,
            judge=[NO, NO, NO, YES],
        )
        task = self.task("DCG")
        self.assertEqual(self.figures(task), {"success_rate": 1 / 4})
        self.assertEqual(self.figures(task, self.CONTRACT), {"success_rate": 0 / 2})
        self.assertEqual(self.figures(task, self.FAMILY), {"success_rate": 1 / 2})
        self.assertEqual((task["blocked"], "missing" in task), ({"run1": 2}, False))

    def test_in_ljp_each_claim_of_a_blocked_case_has_the_verdict_farthest_from_gold(self) -> None:
        # With as many claims 支持 as 驳回 kappa would not tell where the one in the middle went.
        last = make_case("4", cause_of_action="离婚纠纷", result_dict={"甲": "部分支持"})
        self.data_file = self.write_cases([*self.cases[:3], last])
        heard = [verdicts("驳回"), verdicts("部分支持")]
        for script in ("eval_LJP_direct.py", "eval_LJP_gold.py"):
            self.play(script, ON, evaluated=[refusal(), refusal(), "判", "判"], judge=heard)
        a1: list[Reply] = ["完", refusal(), "完", refusal(), "完", "判", "完", "判"]
        self.play("LexAwN_gen.py", ON, evaluated=a1, judge=[JUDGE] * 6)
        self.play("eval_LJP_interaction.py", ON, judge=heard)
        # Gold and counted: 0 2, 2 0, 1 2; then heard: 2 2, 1 1.
        observed = 4 + 4 + 1 + 0 + 0
        by_chance = sum((i - j) ** 2 for i in (0, 2, 1, 2, 1) for j in (2, 0, 2, 2, 1))
        overall = {"qwk": float(1 - Fraction(observed * 5, by_chance)), "accuracy": 2 / 5}
        by_chance = sum((i - j) ** 2 for i in (0, 2, 1) for j in (2, 0, 2))
        contract = {"qwk": float(1 - Fraction((4 + 4 + 1) * 3, by_chance)), "accuracy": 0 / 3}
        for name in ("LJP_direct", "LJP_gold", "LJP_interaction"):
            with self.subTest(name):
                task = self.task(name)
                self.assertEqual(self.figures(task), overall)
                self.assertEqual(self.figures(task, self.CONTRACT), contract)
                self.assertEqual((task["blocked"], "missing" in task, task["n"]["overall"]), ({"run1": 2}, False, 5))

    def test_failures_by_a_block_are_told_below_the_table_and_count_in_the_mean(self) -> None:
        others = [verdicts("支持")] * 3
        self.play("eval_LJP_gold.py", ON, evaluated=[refusal(), *["判"] * 3], judge=others)
        self.play_gold("run2", verdicts("支持", "驳回"), *others)
        task = self.task("LJP_gold")
        found = task["overall"]["accuracy"]
        self.assertEqual(found["per_run"], {"run1": 1 / 5, "run2": 3 / 5})
        self.assertEqual((found["mean"], "bounds" in found), (float(Fraction(1 + 3, 5) / 2), False))
        self.assertEqual((task["blocked"], "missing" in task), ({"run1": 1, "run2": 0}, False))
        told = [line for line in self.show().split("\n") if "content filter" in line]
        self.assertEqual(told, ["  run1: 1 cases blocked by a content filter, counted as failures"])

    # Where the judge or the User Model is blocked

    def test_in_lca_a_label_that_the_judge_could_not_give_is_between_wrong_and_right(self) -> None:
        self.play(
            "LexAwN_gen.py",
            ON,
            evaluated=["完", "问", "完", "判", "完", "问", "完", "判", "判", "判"],
            judge=[refusal(), ASK, JUDGE, refusal(), JUDGE, ASK, JUDGE, JUDGE, JUDGE, JUDGE],
            user=["答", "答"],
        )
        task = self.task("LCA")

        def macro_f1(tn: int, fp: int, tp: int, fn: int) -> Fraction:
            return (Fraction(2 * tp, 2 * tp + fp + fn) + Fraction(2 * tn, 2 * tn + fn + fp)) / 2

        self.assertEqual(self.bounds(task), {
            "macro_f1": floats(macro_f1(3, 1, 2, 2), macro_f1(4, 0, 3, 1)),
            "acc_c": [3 / 4, 4 / 4],
            "acc_u": [2 / 4, 3 / 4],
        })  # fmt: skip
        self.assertEqual(self.bounds(task, self.CONTRACT), {
            "macro_f1": floats(macro_f1(1, 1, 1, 1), 1), "acc_c": [1 / 2, 1], "acc_u": [1 / 2, 1],
        })  # fmt: skip
        self.assertEqual(self.figures(task, self.FAMILY)["acc_u"], 1 / 2)  # no case is missing here
        self.assertEqual(("blocked" in task, task["missing"]), (False, {"run1": 2}))

    def test_in_dcg_what_user_model_and_judge_prevent_is_missing_beside_a_failure_that_is_not(self) -> None:
        self.play(
            "eval_DCG.py",
            ON,
            evaluated=[refusal(), "问1", *["问1", "问2"] * 2],
            user=[refusal(), "答", "答"],
            judge=[YES, refusal(), NO, YES],
        )
        task = self.task("DCG")
        self.assertEqual(self.bounds(task), {"success_rate": [1 / 4, 3 / 4]})
        self.assertEqual(self.bounds(task, self.CONTRACT), {"success_rate": [0 / 2, 1 / 2]})
        self.assertEqual(self.bounds(task, self.FAMILY), {"success_rate": [1 / 2, 2 / 2]})
        self.assertEqual((task["blocked"], task["missing"]), ({"run1": 1}, {"run1": 2}))
        # Known: case 1 failed, case 4 hit in the second round. The two missing may have hit in either round or in none.
        self.assertEqual(task["overall"]["first_hit"]["bounds"], {"run1": [0 / 4, 2 / 4]})
        self.assertEqual(task["overall"]["second_hit"]["bounds"], {"run1": [1 / 4, 3 / 4]})

    def test_in_ljp_all_claims_of_a_missing_case_are_open(self) -> None:
        self.play_gold("run1", refusal(), verdicts("部分支持"), verdicts("驳回"), verdicts("部分支持"))
        task = self.task("LJP_gold")
        # Heard, gold first: 1 1, 2 2, 0 1. Open: gold 0 and 2; the best is 0 and 2, the worst 2 and 0.
        by_chance = sum((i - j) ** 2 for i in (1, 2, 0, 0, 2) for j in (1, 2, 1, 0, 2))
        worst, best = (1 - Fraction(observed * 5, by_chance) for observed in (1 + 4 + 4, 1))
        self.assertEqual(self.bounds(task), {"qwk": floats(worst, best), "accuracy": [2 / 5, 4 / 5]})
        self.assertEqual(("blocked" in task, task["missing"], task["n"]["overall"]), (False, {"run1": 1}, 5))
        self.assertEqual(self.figures(task, self.FAMILY)["accuracy"], 1 / 2)
        self.assertEqual(task["overall"]["all_right"]["bounds"], {"run1": [2 / 4, 3 / 4]})

    def test_an_interaction_that_the_user_model_could_not_hold_is_missing_in_ljp_and_not_in_lca(self) -> None:
        a1 = ["完", "问", *["完", "判"] * 3]
        self.play("LexAwN_gen.py", ON, evaluated=a1, judge=[JUDGE, ASK, *[JUDGE] * 6], user=[refusal()])
        self.play("eval_LJP_interaction.py", ON, judge=[verdicts("部分支持"), verdicts("驳回"), verdicts("支持")])
        lca, ljp = self.task("LCA"), self.task("LJP_interaction")
        self.assertEqual(self.figures(lca)["acc_u"], 1 / 4)
        self.assertEqual([word in lca for word in ("blocked", "missing")], [False, False])
        self.assertEqual(self.bounds(ljp)["accuracy"], [3 / 5, 5 / 5])
        self.assertEqual(("blocked" in ljp, ljp["missing"]), (False, {"run1": 1}))
        for metric, expected in (("questions", 0 / 3), ("judged", 3 / 3)):  # of the three that were held
            self.assertEqual(ljp["overall"][metric]["per_run"], {"run1": expected})

    def test_a_run_with_a_missing_case_leaves_its_group_without_a_mean(self) -> None:
        others = (verdicts("部分支持"), verdicts("驳回"), verdicts("部分支持"))
        self.play_gold("run1", refusal(), *others)
        self.play_gold("run2", verdicts("支持", "驳回"), *others)
        task = self.task("LJP_gold")
        self.assertEqual(task["overall"]["accuracy"], {
            "mean": None, "sd": None, "per_run": {"run1": None, "run2": 4 / 5}, "bounds": {"run1": [2 / 5, 4 / 5]},
        })  # fmt: skip
        family = task["by_class"][self.FAMILY]["accuracy"]
        self.assertEqual(family, {"mean": 1 / 2, "sd": 0.0, "per_run": {"run1": 1 / 2, "run2": 1 / 2}})
        self.assertNotIn("95 %", next(line for line in self.show().split("\n") if line.startswith("LJP_gold")))
        self.assertEqual((task["missing"], "blocked" in task), ({"run1": 1, "run2": 0}, False))

    def test_the_table_has_the_bounds_and_how_many_cases_of_which_run_are_missing(self) -> None:
        others = (verdicts("部分支持"), verdicts("驳回"), verdicts("部分支持"))
        self.play_gold("run1", refusal(), *others)
        self.play_gold("run2", verdicts("支持", "驳回"), *others)
        shown = self.show()
        open_run = r"undefined +0\.8000 +undefined +undefined .* run1 between 0\.4000 and 0\.8000$"
        self.assertRegex(shown, rf"(?m)^ +accuracy +{open_run}")
        self.assertRegex(shown, r"(?m)^  overall .* run1 between -0\.2857 and 0\.8571$")
        told = [line for line in shown.split("\n") if "content filter" in line]
        self.assertEqual(told, ["  run1: 1 cases missing by a content filter, so that there are bounds only"])

    def test_runs_without_any_figure_are_not_said_to_have_the_same(self) -> None:
        self.data_file = self.write_cases([make_case("1"), make_case("2")])
        for run_id in ("run1", "run2"):
            self.play(
                "eval_LJP_gold.py", "--run-id", run_id, ON, evaluated=["判"] * 2, judge=[refusal(), verdicts("支持")]
            )
        self.assertNotIn("the same figures in every run", self.show())

    def test_a_run_without_any_block_says_nothing_of_blocks(self) -> None:
        self.run_all(ON)
        for name in ("LCA", "DCG", "LJP_direct", "LJP_gold", "LJP_interaction"):
            task = self.task(name)
            self.assertEqual(list(task), ["overall", "by_class", "n", "cases", "floors"])
            self.figures(task)
        self.assertNotIn("content filter", self.show())


if __name__ == "__main__":
    unittest.main()
