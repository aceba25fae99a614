"""What stands on disk: the shape of a case, of the ten record files and of the manifest, and where each file lies.

The types are the codebook of the output tree and at the same time the check: `shape_fault` holds a value that was read
against them. Every line of a record file has, besides the keys of its type here or those of `Blocked`, the five of `Line`.
"""

import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

RoleName = Literal["evaluated", "user", "judge"]
ROLE_NAMES: tuple[RoleName, ...] = get_args(RoleName)
Verdict = Literal["支持", "部分支持", "驳回"]
ResponseKind = Literal["直接判断", "澄清提问"]
Hit = Literal["是", "否"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # in ordinal order: 0, 1, 2
RESPONSE_KINDS: tuple[ResponseKind, ...] = get_args(ResponseKind)
HITS: tuple[Hit, ...] = get_args(Hit)
Telling = Literal["问到说出", "未问说出", "问到未说", "未问未说", "说法矛盾", "编造事实"]
TELLINGS: tuple[Telling, ...] = get_args(Telling)
SIMULATED = "simulated/"  # how the names of models begin that are none; see policies.py


class Message(TypedDict):
    role: Literal["user", "assistant"]
    content: str


History = list[Message]


class Case(NamedTuple):
    """One case of the data file, as validated; histories and claims keep the file's order."""

    number: str
    cause: str
    plaintiff_type: str
    focal_points: list[str]
    key_details: list[str]
    verdicts: dict[str, Verdict]
    complete: History
    underspecified: History


# ----------------------------------------------------------------------------------------------------------------------
# The record files


Usage = dict[str, int | float | dict[str, int | float]]
"""The figures that a provider sent with a completion, by its own names; details stand one level below."""


Outcome = Literal["used", "rejected", "unreadable", "blocked"]


class Call(TypedDict):
    """A completion, or a content filter's refusal of one, and what it took to get it."""

    role: RoleName
    outcome: Outcome
    model: str | None  # as the provider names it
    finish_reason: str | None
    usage: Usage | None
    attempts: int  # requests since the role's call before, the last one included
    refused: int  # of these, the ones that were throttled (429)
    seconds: float  # in which these requests were open


class Block(TypedDict):
    """What a content filter refused for good."""

    role: RoleName
    code: str | None
    words: str


class Blocked(TypedDict):
    """Stands for a record, a response or a label that a content filter prevented; see `--record-blocked`."""

    blocked: Block


class Line(TypedDict):
    """What every record has: whose it is, the calls it took, and the hashes that tie it to its inputs and its own bytes."""

    case_number: str
    cause_of_action: str
    input_sha256: str  # of the case and of the earlier records it was made from
    calls: list[Call]
    record_sha256: str  # of run, file and all of the line before this key: a changed byte or a foreign line shows


class Answers(TypedDict):
    complete_history: History
    underspecified_history: History
    complete_response: str | Blocked
    underspecified_response: str | Blocked


class Labels(TypedDict):
    complete_label: ResponseKind | Blocked
    underspecified_label: ResponseKind | Blocked
    complete_reason: str | None  # null, as the reply, where the label is blocked
    underspecified_reason: str | None
    complete_judge_reply: str | None
    underspecified_judge_reply: str | None


class InteractionRound(TypedDict):
    round: int
    response: str
    label: ResponseKind
    reason: str
    judge_reply: str
    user_reply: str | None  # null after a judgment


class Interaction(TypedDict):
    underspecified_history: History
    rounds: list[InteractionRound]
    history: History  # up to what the final response answers
    stop_reason: Literal["judgment", "round_limit"]
    final_response: str


class QuestionRound(TypedDict):
    round: int
    question: str
    user_reply: str | None  # null in round 2


class Questions(TypedDict):
    underspecified_history: History
    rounds: list[QuestionRound]


class HitRound(TypedDict):
    round: int
    question: str
    label: Hit
    reason: str
    judge_reply: str


class Hits(TypedDict):
    rounds: list[HitRound]
    success: bool


class DirectPrediction(TypedDict):
    underspecified_history: History
    response: str


class GoldPrediction(TypedDict):
    complete_history: History
    response: str


class Verdicts(TypedDict):
    """`claims`, `verdicts` and `reasons` are aligned, in the data file's claim order."""

    claims: list[str]
    verdicts: list[Verdict]
    reasons: list[str]
    judge_reply: str


# ----------------------------------------------------------------------------------------------------------------------
# What is asked about a finished run


class RoundLabel(TypedDict):
    round: int
    label: ResponseKind
    reason: str
    judge_reply: str


class RoundLabels(TypedDict):
    """Of an interaction's rounds after the first, whose label is LCA's."""

    rounds: list[RoundLabel]


class DetailHit(TypedDict):
    key_detail: str
    label: Hit
    reason: str
    judge_reply: str


class HitRoundEach(TypedDict):
    """A question judged detail by detail; it hits if it hits one."""

    round: int
    question: str
    label: Hit
    details: list[DetailHit]


class HitsEach(TypedDict):
    rounds: list[HitRoundEach]
    success: bool


class VerdictsEach(TypedDict):
    """As `Verdicts`, each extracted by a call of its own."""

    claims: list[str]
    verdicts: list[Verdict]
    reasons: list[str]
    judge_replies: list[str]


class Attacked(TypedDict):
    """A text that was appended to a response, and the labels that the judge then gave; null if none could be read."""

    kind: str
    text: str
    labels: list[str] | None


class Attacks(TypedDict):
    """The labels of a response as it stands, and then once more so and under attack; none where there is no response."""

    labels: list[str]
    attacked: list[Attacked]


class AuditedDetail(TypedDict):
    key_detail: str
    label: Telling
    reason: str
    judge_reply: str


class AuditedReply(TypedDict):
    round: int
    details: list[AuditedDetail]


class Audit(TypedDict):
    """What a judge says of each reply of the User Model in a record."""

    replies: list[AuditedReply]


class JudgeSettings(TypedDict):
    """Who judges, and how; the endpoint has scheme, host, port and path only."""

    model: str
    endpoint: str
    temperature: float
    max_tokens: int
    params: dict[str, Any]


class CheckSettings(TypedDict):
    """What the answers about a finished run depend on, apart from chance."""

    run_sha256: str  # of the run's manifest
    code_sha256: dict[str, str]
    judge: JudgeSettings


# ----------------------------------------------------------------------------------------------------------------------
# Where files lie


class Artifact(NamedTuple):
    path: str
    """Below the output root; {run} stands for <run-id>/<model>."""
    shape: type
    command: str
    """The command that writes it."""
    made_from: tuple[str, ...] = ()
    """The earlier files whose record of the same case goes into this one."""


ARTIFACTS: dict[str, Artifact] = {
    "a1": Artifact("AwN_gen/{run}/a1.jsonl", Answers, "LexAwN_gen.py"),
    "lca": Artifact("eval_results/{run}/LCA_results.jsonl", Labels, "eval_LCA.py", ("a1",)),
    "interaction": Artifact("AwN_gen/{run}/interaction.jsonl", Interaction, "LexAwN_gen.py", ("a1", "lca")),
    "force_ask": Artifact("Force_ask_gen/{run}/force_ask.jsonl", Questions, "eval_DCG.py"),
    "dcg": Artifact("eval_results/{run}/DCG_results.jsonl", Hits, "eval_DCG.py", ("force_ask",)),
    "a1_direct": Artifact("Force_judge_gen/{run}/a1_direct.jsonl", DirectPrediction, "eval_LJP_direct.py"),
    "a1_force_judge": Artifact("Force_judge_gen/{run}/a1_force_judge.jsonl", GoldPrediction, "eval_LJP_gold.py"),
    "ljp_direct": Artifact("eval_results/{run}/LJP_direct.jsonl", Verdicts, "eval_LJP_direct.py", ("a1_direct",)),
    "ljp_gold": Artifact("eval_results/{run}/LJP_gold.jsonl", Verdicts, "eval_LJP_gold.py", ("a1_force_judge",)),
    "ljp_interaction": Artifact(
        "eval_results/{run}/LJP_interaction.jsonl", Verdicts, "eval_LJP_interaction.py", ("interaction",)
    ),
}
MANIFEST_PATH = "runs/{run}/manifest.json"
LOCK_PATH = "runs/{run}/lock"
RUN_FILES = (MANIFEST_PATH, *(artifact.path for artifact in ARTIFACTS.values()))  # that make up its results
JOURNAL_PATH = "runs/{run}/{name}.open.jsonl"


class Answer(TypedDict):
    """A journal's line has this: an answer to a case that has no record yet, so that it need not be paid for again."""

    role: RoleName
    prompt_sha256: str
    reply: str


class Roles(TypedDict):
    evaluated: str
    user: str
    judge: str


class Params(TypedDict):
    """By role, what its requests have besides or instead of the usual fields; null removes one."""

    evaluated: dict[str, Any]
    user: dict[str, Any]
    judge: dict[str, Any]


class Manifest(TypedDict):
    """What a run's numbers depend on, apart from chance. Endpoints have scheme, host, port and path only."""

    run_id: str
    dataset_sha256: str
    cases: list[str]
    code_sha256: dict[str, str]
    models: Roles
    endpoints: Roles
    temperature: float
    judge_temperature: float
    max_tokens: int
    params: Params


# ----------------------------------------------------------------------------------------------------------------------
# Holding a value against its type


def shape_fault(value: Any, shape: Any, where: str) -> str | None:
    """The first way in which a JSON value is not of the shape, or None; `where` names the value in the answer.

    Shapes are str, int, float, bool, None, Any, Literal, list[...], dict[str, ...], unions and TypedDicts (exact keys).
    An int is a float, as JSON has one kind of number; a bool is neither.
    """
    fault = _check(shape)(value)
    return f"{where}{fault[0]} {fault[1]}" if fault else None


def record_fault(record: Any, shapes: tuple[type, ...]) -> str | None:
    """The first way in which a line's JSON value is none of these records, or None."""
    fault = _record_checks(shapes)[0](record)
    return f"the record{fault[0]} {fault[1]}" if fault else None


def are_records(values: Sequence[Any], shapes: tuple[type, ...]) -> bool:
    """Whether `record_fault` finds nothing wrong with any of these values, but sooner."""
    return _record_checks(shapes)[1](values)


Check = Callable[[Any], tuple[str, str] | None]
"""Where below the value its first fault is, and what it is."""
ColumnCheck = Callable[[Sequence[Any]], bool]
"""Whether a check finds nothing wrong with any of many values: it looks at them a field at a time, in built-in loops."""


@functools.cache
def _record_checks(shapes: tuple[type, ...]) -> tuple[Check, ColumnCheck]:
    head = get_type_hints(Line)
    hints = [{**head, **get_type_hints(shape)} for shape in shapes]
    check, first = _union_check([*map(_object_check, hints)]), _object_column(hints[0])
    return check, lambda values: first(values) or not any(map(check, values))


@functools.cache  # asking a type for its parts takes longer than looking at a value
def _check(shape: Any) -> Check:
    origin, parts = get_origin(shape), get_args(shape)
    if shape is Any:
        return lambda value: None
    if is_typeddict(shape):
        return _object_check(get_type_hints(shape))
    if origin is list:
        return _list_check(_check(parts[0]))
    if origin is dict:
        return _dict_check(_check(parts[1]))
    if origin is Literal:
        return lambda value: (
            None if isinstance(value, str) and value in parts else ("", f"is {value!r}, not one of {parts}")
        )
    if origin in (Union, types.UnionType):
        return _union_check([_check(part) for part in parts])
    accepted = _kinds(shape)
    name = "null" if shape in (None, types.NoneType) else shape.__name__
    return lambda value: None if type(value) in accepted else ("", f"is not of type {name}")


@functools.cache
def _column(shape: Any) -> ColumnCheck:
    origin, parts, kinds = get_origin(shape), get_args(shape), _kinds(shape)
    if shape is Any:
        return lambda values: True
    if is_typeddict(shape):
        return _object_column(get_type_hints(shape))
    if origin in (list, dict):
        part = _column(parts[-1])
        inner: Callable[[Any], Iterable[Any]] = dict.values if origin is dict else iter
        return lambda values: {*map(type, values)} <= kinds and part([*chain.from_iterable(map(inner, values))])
    if origin is Literal:
        return lambda values: {*map(type, values)} <= kinds and {*values} <= {*parts}
    if origin in (Union, types.UnionType):  # its parts differ in kind
        options = [(_kinds(part), _column(part)) for part in parts]
        return lambda values: (
            {*map(type, values)} <= kinds
            and all(right([value for value in values if type(value) in of]) for of, right in options)
        )
    return lambda values: {*map(type, values)} <= kinds


def _kinds(shape: Any) -> frozenset[type]:
    """The types, of those that JSON has, which a value of the shape may have."""
    origin = get_origin(shape)
    if origin in (Union, types.UnionType):
        return frozenset[type]().union(*map(_kinds, get_args(shape)))
    if origin is Literal:
        return frozenset({str})
    if shape is float:
        return frozenset({int, float})
    return frozenset({dict if is_typeddict(shape) else origin or shape or types.NoneType})


def _object_check(hints: Mapping[str, Any]) -> Check:
    checks = {key: _check(shape) for key, shape in hints.items()}

    def check(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, dict):
            return "", "is not an object"
        for key in checks:
            if key not in value:
                return "", f"lacks the key {key!r}"
        for key in value:
            if key not in checks:
                return "", f"has the unknown key {key!r}"
        for key, part in checks.items():
            if fault := part(value[key]):
                return f".{key}{fault[0]}", fault[1]
        return None

    return check


def _object_column(hints: Mapping[str, Any]) -> ColumnCheck:
    columns = [(itemgetter(key), _column(shape)) for key, shape in hints.items()]

    def right(values: Sequence[Any]) -> bool:
        if not {*map(type, values)} <= {dict} or not {*map(len, values)} <= {len(columns)}:
            return False
        try:
            return all(column([*map(field, values)]) for field, column in columns)
        except KeyError:
            return False

    return right


def _list_check(part: Check) -> Check:
    def check(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, list):
            return "", "is not an array"
        for number, item in enumerate(value):
            if fault := part(item):
                return f"[{number}]{fault[0]}", fault[1]
        return None

    return check


def _dict_check(part: Check) -> Check:
    def check(value: Any) -> tuple[str, str] | None:
        if not isinstance(value, dict):
            return "", "is not an object"
        for key, item in value.items():
            if fault := part(item):
                return f".{key}{fault[0]}", fault[1]
        return None

    return check


def _union_check(options: Sequence[Check]) -> Check:
    """The fault told is that of the first option, which is the usual one."""

    def check(value: Any) -> tuple[str, str] | None:
        first = options[0](value)
        if first is None:
            return None
        for option in options[1:]:
            if option(value) is None:
                return None
        return first

    return check
