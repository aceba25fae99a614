"""Simulated models whose answers are known: from one of this project's prompts and the data file to a reply.

A prompt is read back by the template that filled it, a case is found by its history; nothing else is known of a request.
Evaluated models differ by policy, and each bounds or checks a figure; the User Model and the judge have one answer each,
and it is exact, since they read only what the policies write, and nothing that may be appended to it. Of the judge there are
others, which err as often as their name says. `seed` and the prompt together decide every draw.
No request leaves this module: `simulate.py` serves its answers over HTTP.
"""

import contextlib
import json
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from audit_user import AUDIT_PROMPT
from common import numbered, render
from errors import SettingsError
from eval_DCG import DCG_JUDGE_PROMPT, FORCED_QUESTION_PROMPT, HIT, MISS
from eval_LCA import CLARIFICATION, JUDGMENT, LCA_JUDGE_PROMPT
from eval_LJP_gold import EXTRACTION_PROMPT, FORCE_JUDGE_PROMPT
from LexAwN_gen import LEXAWN_PROMPT, USER_PROMPT
from metrics import accuracy, lca_figures, qwk
from records import HITS, RESPONSE_KINDS, SIMULATED, TELLINGS, VERDICTS, Case, ResponseKind, Telling, Verdict

T = TypeVar("T")
USER_MODEL, JUDGE_MODEL = f"{SIMULATED}user", f"{SIMULATED}judge"
ERRING_JUDGE = re.compile(rf"{re.escape(JUDGE_MODEL)}-(0(?:\.[0-9]+)?|1(?:\.0+)?)")


class UnknownPromptError(Exception):
    """A prompt that this project did not write, or a text in it that no simulated model wrote."""


# ----------------------------------------------------------------------------------------------------------------------
# What simulated models say, and how it is read back

ANYTHING_ELSE = "您讲的情况我了解了一些。能否请您把事情的前后经过再详细讲一讲？"
POINT = "关于“{point}”，实际情况是怎样的？"
QUESTION = "要判断您的请求，还有情况需要请您补充。\n{points}"
JUDGMENT_TEXT = "根据您说的情况，我逐项判断如下。\n{lines}\n以上是依据目前的陈述作出的，供您参考。"
JUDGED = "{number}. “{claim}”，法院会{verdict}：{reason}。"
REASONS: dict[Verdict, str] = {
    "支持": "您陈述的事实足以支撑这一项的全部",
    "部分支持": "您陈述的事实只够支撑其中一部分",
    "驳回": "您陈述的事实不足以支撑这一项",
}
TOLD = "您问的这个，情况是这样：{details}。"
NOTHING_MORE = "经过我前面都讲了，您看具体还要问哪一点？"


def slots(template: str) -> re.Pattern[str]:
    """A pattern that a filled template matches as a whole, with a group for each slot."""
    parts, seen = [], set[str]()
    for text, slot, *_ in string.Formatter().parse(template):
        parts.append(re.escape(text))
        if slot:
            parts.append(f"(?P={slot})" if slot in seen else f"(?P<{slot}>.*)")
            seen.add(slot)
    return re.compile("".join(parts), re.DOTALL)


QUESTION_SLOTS, JUDGMENT_SLOTS, JUDGED_SLOTS = map(slots, (QUESTION, JUDGMENT_TEXT, JUDGED))


def asking(points: Sequence[str]) -> str:
    """A question about these focal points; without any, one so general that no hidden detail need be told."""
    if not points:
        return ANYTHING_ELSE
    return QUESTION.format(points="\n".join(POINT.format(point=point) for point in points))


def judging(verdicts: Mapping[str, Verdict]) -> str:
    """A judgment of each claim."""
    lines = [
        JUDGED.format(number=number, claim=claim, verdict=verdict, reason=REASONS[verdict])
        for number, (claim, verdict) in enumerate(verdicts.items(), 1)
    ]
    return JUDGMENT_TEXT.format(lines="\n".join(lines))


def unquoted(quotation: str) -> str:
    """The text between the marks of `common.quoted`, each on a line of its own."""
    return quotation.partition("\n")[2].rpartition("\n")[0]


def judged_claims(response: str) -> dict[str, Verdict]:
    """The verdict of each claim in a simulated judgment; UnknownPromptError for any other text."""
    found = JUDGMENT_SLOTS.fullmatch(response)
    lines = [JUDGED_SLOTS.fullmatch(line) for line in found["lines"].split("\n")] if found else []
    read = {line["claim"]: verdict for line in lines if line for verdict in VERDICTS if verdict == line["verdict"]}
    if not read or judging(read) != response:
        raise UnknownPromptError("the simulated judge reads only what simulated models wrote")
    return read


def is_question(response: str) -> bool:
    return response == ANYTHING_ELSE or QUESTION_SLOTS.fullmatch(response) is not None


def kind_of(response: str) -> ResponseKind:
    """Whether a simulated response asks or judges; UnknownPromptError for any other text."""
    if is_question(response):
        return CLARIFICATION
    judged_claims(response)
    return JUDGMENT


def beginning(text: str, read: Callable[[str], T]) -> T:
    """What the longest beginning of a text is read as that can be read: whatever was appended to it does not count."""
    lines = text.split("\n")
    for end in range(len(lines), 0, -1):
        with contextlib.suppress(UnknownPromptError):
            return read("\n".join(lines[:end]))
    raise UnknownPromptError("the simulated User Model and judge read only what simulated models wrote")


# ----------------------------------------------------------------------------------------------------------------------
# The cases


class Scene(NamedTuple):
    """Where a consultation stands: its case, and which key details have been told so far."""

    case: Case
    told: tuple[bool, ...]
    """For each key detail."""

    @property
    def known(self) -> bool:
        """Whether all that the verdicts depend on is on the table."""
        return all(self.told)

    @property
    def open_points(self) -> list[str]:
        """Focal points whose details are still hidden; all of them where a file does not pair points with details."""
        points, told = self.case.focal_points, self.told
        if len(points) == len(told):
            return [point for point, is_told in zip(points, told, strict=True) if not is_told]
        return [] if self.known else points

    def asked_for(self, question: str) -> list[str]:
        """The details, all still hidden, that a policy's question in this scene asks for; UnknownPromptError for any
        other text.
        """
        points, details = self.case.focal_points, self.case.key_details
        for chosen in ([], self.open_points, self.open_points[:1]):
            if question == asking(chosen):
                if len(points) != len(details):
                    return details if chosen else []
                return [detail for point, detail in zip(points, details, strict=True) if point in chosen]
        raise UnknownPromptError("the simulated User Model and judge read only what simulated models wrote")


class Cases:
    """The cases of a data file, to be found by their histories."""

    def __init__(self, cases: Sequence[Case]) -> None:
        """SettingsError where two cases share a history, so that a prompt does not tell which is meant."""
        self.commonest: Verdict = Counter(v for case in cases for v in case.verdicts.values()).most_common(1)[0][0]
        self.by_history: dict[str, tuple[Case, bool]] = {}
        for case in cases:
            for history, complete in ((case.underspecified, False), (case.complete, True)):
                found = self.by_history.setdefault(render(history), (case, complete))
                if found != (case, complete):
                    raise SettingsError(f"cases {found[0].number} and {case.number} share a history: no simulation")

    def scene(self, history: str) -> Scene:
        """The scene of a rendered history, or of one that a simulated consultation has continued."""
        end = len(history)
        while end > 0 and history[:end] not in self.by_history:
            end = history.rfind("\nAssistant: ", 0, end)
        if end <= 0:
            raise UnknownPromptError("its history belongs to no case of the data file")
        case, complete = self.by_history[history[:end]]
        return Scene(case, tuple(complete or detail in history[end:] for detail in case.key_details))


# ----------------------------------------------------------------------------------------------------------------------
# Policies of the evaluated model

CARE = Fraction(7, 10)  # how often simulated/careless does as the oracle would, decision by decision


class Policy(NamedTuple):
    """What an evaluated model decides; each function may draw from the random numbers of its prompt."""

    about: str
    asks: Callable[[Scene, random.Random], bool]
    """Free to do either, whether it asks."""
    points: Callable[[Scene, random.Random], list[str]]
    """When it asks, about which focal points; none is a question that hits nothing."""
    verdict: Callable[[Scene, str, Verdict, random.Random], Verdict]
    """For a claim, given the commonest verdict of the file."""


def _nothing(scene: Scene, draw: random.Random) -> list[str]:
    return []


def _open(scene: Scene, draw: random.Random) -> list[str]:
    return scene.open_points


def _hedge(scene: Scene, claim: str, commonest: Verdict, draw: random.Random) -> Verdict:
    return "部分支持"


def _commonest(scene: Scene, claim: str, commonest: Verdict, draw: random.Random) -> Verdict:
    return commonest


def _truth(scene: Scene, claim: str, commonest: Verdict, draw: random.Random) -> Verdict:
    return scene.case.verdicts[claim] if scene.known else commonest


def _careful(draw: random.Random) -> bool:
    return draw.random() < CARE


def _careless_ask(scene: Scene, draw: random.Random) -> bool:
    return (not scene.known) == _careful(draw)


def _careless_points(scene: Scene, draw: random.Random) -> list[str]:
    return scene.open_points if _careful(draw) else []


def _careless_verdict(scene: Scene, claim: str, commonest: Verdict, draw: random.Random) -> Verdict:
    if _careful(draw):
        return _truth(scene, claim, commonest, draw)
    return VERDICTS[int(3 * draw.random())]


POLICIES: dict[str, Policy] = {
    "always-ask": Policy("asks whenever it may, never to the point, and hedges", lambda s, d: True, _nothing, _hedge),
    "always-answer": Policy("never asks by itself, and hedges", lambda s, d: False, _nothing, _hedge),
    "majority": Policy("never asks, gives the file's commonest verdict", lambda s, d: False, _nothing, _commonest),
    "oracle": Policy("asks for what is missing and decides as the file does", lambda s, d: not s.known, _open, _truth),
    "careless": Policy(
        f"decides as the oracle {float(CARE):.0%} of the time; else the other act, a vague question, any verdict",
        _careless_ask,
        _careless_points,
        _careless_verdict,
    ),
}
MODELS = (*(SIMULATED + name for name in POLICIES), USER_MODEL, JUDGE_MODEL)

# ----------------------------------------------------------------------------------------------------------------------
# Answers

PROMPTS = {
    name: slots(template)
    for name, template in (
        ("consult", LEXAWN_PROMPT),
        ("question", FORCED_QUESTION_PROMPT),
        ("judgment", FORCE_JUDGE_PROMPT),
        ("reply", USER_PROMPT),
        ("kind", LCA_JUDGE_PROMPT),
        ("hit", DCG_JUDGE_PROMPT),
        ("verdicts", EXTRACTION_PROMPT),
        ("telling", AUDIT_PROMPT),
    )
}


def answer(model: str, prompt: str, cases: Cases, seed: str) -> str:
    """What a simulated model says to a prompt; the same for the same four arguments.

    Raises UnknownPromptError for a prompt that is not this project's, or that this model has no part in.
    """
    erring = ERRING_JUDGE.fullmatch(model)
    kind, found = next(((name, m) for name, p in PROMPTS.items() if (m := p.fullmatch(prompt))), ("", None))
    policy = POLICIES.get(model.removeprefix(SIMULATED))
    if found and policy and kind in ("consult", "question", "judgment"):
        return _evaluated(
            policy, kind, cases.scene(found["history"]), cases.commonest, random.Random(f"{seed}\n{prompt}")
        )
    if found and model == USER_MODEL and kind == "reply":
        question, scene = found["question"], cases.scene(found["history"])
        # A judge that errs may take a judgment for a question: it asks for nothing.
        details = scene.asked_for(question) if kind_of(question) == CLARIFICATION else []
        return TOLD.format(details="；".join(details)) if details else NOTHING_MORE
    if found and (model == JUDGE_MODEL or erring) and kind in ("kind", "hit", "verdicts", "telling"):
        judgment = _judgment(kind, found, cases)
        if erring:
            _err(judgment, float(erring[1]), random.Random(f"{seed}\n{prompt}"))
        return json.dumps(judgment, ensure_ascii=False)
    raise UnknownPromptError("the prompt is none that this project puts to this model")


def _evaluated(policy: Policy, kind: str, scene: Scene, commonest: Verdict, draw: random.Random) -> str:
    if kind == "question":
        return asking(policy.points(scene, draw)[:1])
    if kind == "consult" and policy.asks(scene, draw):
        return asking(policy.points(scene, draw))
    return judging({claim: policy.verdict(scene, claim, commonest, draw) for claim in scene.case.verdicts})


def _judgment(kind: str, found: re.Match[str], cases: Cases) -> dict[str, Any]:
    if kind == "telling":
        question, detail = unquoted(found["question"]), found["key_detail"]
        asked = is_question(question) and detail in cases.scene(found["history"]).asked_for(question)
        told = detail in unquoted(found["reply"])
        telling: Telling = ("问到说出" if told else "问到未说") if asked else ("未问说出" if told else "未问未说")
        return {"reason": f"{'问到' if asked else '没有问到'}，{'说出' if told else '没有说出'}", "label": telling}
    if kind == "hit":
        asked_for = beginning(unquoted(found["question"]), cases.scene(found["history"]).asked_for)
        hit = any(_is_listed(detail, found["key_details"]) for detail in asked_for)
        return {"reason": "照实回答就会说出" if hit else "照实回答不会说出", "label": HIT if hit else MISS}
    response = unquoted(found["response"])
    if kind == "kind":
        label = beginning(response, kind_of)
        reason = "只是在请咨询人补充事实" if label == CLARIFICATION else "对每一项请求都给出了结论"
        return {"reason": reason, "label": label}
    claims = re.findall(r"^[0-9]+\. (.*)$", found["claims"], re.MULTILINE)
    verdicts: dict[str, Verdict] = beginning(response, lambda text: {} if is_question(text) else judged_claims(text))
    if numbered(claims) != found["claims"] or (verdicts and not verdicts.keys() >= {*claims}):
        raise UnknownPromptError("the response judges other claims")
    entries = [
        {
            "claim": number,
            "reason": "引文逐项写明" if verdicts else "引文没有结论",
            "verdict": verdicts.get(claim, "驳回"),
        }
        for number, claim in enumerate(claims, 1)
    ]
    return {"verdicts": entries}


def _is_listed(item: str, listed: str) -> bool:
    """Whether an item stands in what `common.numbered` made of some."""
    return re.search(rf"^[0-9]+\. {re.escape(item)}$", listed, re.MULTILINE) is not None


def _err(judgment: dict[str, Any], error: float, draw: random.Random) -> None:
    """Put another label in the place of each one with this probability."""
    for answer in judgment.get("verdicts", [judgment]):
        key = "verdict" if "verdict" in answer else "label"
        kinds: tuple[Sequence[str], ...] = (RESPONSE_KINDS, HITS, VERDICTS, TELLINGS)
        values = next(some for some in kinds if answer[key] in some)
        if draw.random() < error:
            answer[key] = draw.choice([value for value in values if value != answer[key]])


# ----------------------------------------------------------------------------------------------------------------------
# What simulated/careless comes to


class Expected(NamedTuple):
    """A figure of one run: its value at the expected counts, and the bounds within which 99 of 100 runs lie."""

    value: Fraction
    low: float
    high: float


RUNS = 2000  # drawn for the bounds


def expected(cases: Sequence[Case], commonest: Verdict) -> dict[str, dict[str, Expected]]:
    """Task -> metric -> what simulated/careless comes to on these cases; without the metrics that are undefined on them.

    From its definition alone, not from its answers. With care c it takes each history rightly with probability c, and one
    of its two questions hits with 1 - (1 - c)². A claim whose facts are known gets its own verdict with c, one whose facts
    are hidden the commonest verdict; all else falls evenly on the three. A round of an interaction puts the facts on the
    table with h = c² (it asks, and to the point) and leaves them hidden with m = c(1 - c), else it ends in a judgment: after
    three rounds h(1 + m + m²) of the cases are known. The bounds are quantiles of 2,000 runs drawn with a fixed seed.
    """
    import numpy as np

    c, n = CARE, len(cases)
    hit, miss = c * c, c * (1 - c)
    draw = np.random.default_rng(0)
    figures: dict[str, dict[str, Expected]] = {}

    def state(task: str, metric: str, value: Fraction | None, drawn: Sequence[Fraction | None]) -> None:
        defined = [float(one) for one in drawn if one is not None]
        if value is not None and defined:
            low, high = np.quantile(defined, (0.005, 0.995))
            figures.setdefault(task, {})[metric] = Expected(value, float(low), float(high))

    judged, asked = draw.binomial(n, float(c), (2, RUNS)).tolist()
    taken = [lca_figures([[k, n - k], [n - u, u]]) for k, u in zip(judged, asked, strict=True)]
    for metric, value in lca_figures([[c, 1 - c], [1 - c, c]]).items():
        state("LCA", metric, value, [figures[metric] for figures in taken])
    success = 1 - (1 - c) ** 2
    state("DCG", "success_rate", success, [Fraction(k, n) for k in draw.binomial(n, float(success), RUNS).tolist()])

    gold = np.array([VERDICTS.index(verdict) for case in cases for verdict in case.verdicts.values()])
    owner = np.repeat(np.arange(n), [len(case.verdicts) for case in cases])
    common = VERDICTS.index(commonest)
    for task, known in (
        ("LJP_direct", Fraction(0)),
        ("LJP_gold", Fraction(1)),
        ("LJP_interaction", hit * (1 + miss + miss**2)),
    ):
        cells = [
            [
                int((gold == truth).sum())
                * (c * (known * (truth == given) + (1 - known) * (common == given)) + (1 - c) / 3)
                for given in range(3)
            ]
            for truth in range(3)
        ]
        counts = []
        for _ in range(RUNS):
            told = (draw.random(n) < float(known))[owner]
            meant = np.where(told, gold, common)
            given = np.where(draw.random(len(gold)) < float(c), meant, draw.integers(0, 3, len(gold)))
            counts.append(np.bincount(3 * gold + given, minlength=9).reshape(3, 3).tolist())
        state(task, "qwk", qwk(cells), [qwk(one) for one in counts])
        state(task, "accuracy", accuracy(cells), [accuracy(one) for one in counts])
    return figures
