"""What runs cost: calls, tokens, retries, rejected replies and judge re-asks, by role and run (`show_results.py --ledger`).

Reads: the `calls` of all records of a run. It counts what led to a saved record: calls of a case that never got one are in
no file. Unequal rates of rejected replies or re-asks between models, and more than one returned model id for a role within
a run, are pointed out, since either may move a figure.
Source: the paper is silent on cost; the columns are ours.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from checkpoints import Run
from errors import uncollected
from records import ARTIFACTS, ROLE_NAMES, Call, RoleName
from replies import tokens_of

FEW = 5  # rejected or unreadable replies, below which a rate says nothing
Z_DOUBTFUL = 3.0  # standard errors between two rates: beyond this chance is no likely reason


class Line(NamedTuple):
    """One role's calls in one run."""

    run_id: str
    model: str
    role: RoleName
    calls: int
    """Answers used."""
    prompt_tokens: int | None
    """None where no completion told usage."""
    completion_tokens: int | None
    untold: int
    """Completions whose provider told no usage."""
    retries: int
    """Requests that brought no completion, throttled ones apart."""
    throttled: int
    rejected: int
    unreadable: int
    blocked: int
    seconds: float
    """In which requests were open."""
    returned: tuple[str, ...]
    """The model ids that the provider gave."""

    @property
    def completions(self) -> int:
        return self.calls + self.rejected + self.unreadable


def run_lines(run: Run) -> Iterator[Line]:
    """A run's ledger, a line for each role that was asked."""
    calls: dict[RoleName, list[Call]] = {role: [] for role in ROLE_NAMES}
    with uncollected():
        for name in ARTIFACTS:
            for record in run.load(name).values():
                for call in record["calls"]:
                    calls[call["role"]].append(call)
        run.forget()
    for role, made in calls.items():
        if made:
            yield role_line(run.manifest["run_id"], run.manifest["models"][role], role, made)


def role_line(run_id: str, model: str, role: RoleName, calls: Sequence[Call]) -> Line:
    outcomes = Counter(call["outcome"] for call in calls)
    completions = [call for call in calls if call["outcome"] != "blocked"]
    told = [tokens for call in completions if (tokens := tokens_of(call["usage"]))]
    requests = sum(call["attempts"] for call in calls)
    throttled = sum(call["refused"] for call in calls)
    return Line(
        run_id,
        model,
        role,
        calls=outcomes["used"],
        prompt_tokens=sum(prompt for prompt, _ in told) if told or not completions else None,
        completion_tokens=sum(completion for _, completion in told) if told or not completions else None,
        untold=len(completions) - len(told),
        retries=requests - throttled - len(calls),
        throttled=throttled,
        rejected=outcomes["rejected"],
        unreadable=outcomes["unreadable"],
        blocked=outcomes["blocked"],
        seconds=round(sum(call["seconds"] for call in calls), 3),
        returned=tuple(dict.fromkeys(call["model"] for call in calls if call["model"] is not None)),
    )


def remarks(groups: Mapping[str, Sequence[Line]]) -> Iterator[str]:
    """What may have moved a figure; by name the lines of runs that differ in nothing but their id."""
    for line in (line for lines in groups.values() for line in lines):
        if len(line.returned) > 1:
            yield f"{line.run_id}: the {line.role} {line.model!r} came back as {' and as '.join(line.returned)}"
    for role in ROLE_NAMES:
        asked = {name: [line for line in lines if line.role == role] for name, lines in groups.items()}
        for what in ("rejected", "unreadable"):
            counts = {
                name: (sum(getattr(line, what) for line in lines), sum(line.completions for line in lines))
                for name, lines in asked.items()
                if any(line.completions for line in lines)
            }
            pairs = [
                (apart(counts[low], counts[high]), low, high)
                for low, high in permutations(counts, 2)
                if counts[high][0] >= FEW
            ]
            distance, low, high = max(pairs, default=(0.0, "", ""))
            if distance > Z_DOUBTFUL:
                yield (
                    f"replies of the {role} were {what} unequally: {_rate(counts[high])} in {high}, "
                    f"{_rate(counts[low])} in {low}"
                )


def _rate(count: tuple[int, int]) -> str:
    return f"{count[0]} of {count[1]} ({count[0] / count[1]:.1%})"


def apart(low: tuple[int, int], high: tuple[int, int]) -> float:
    """How many pooled standard errors the second rate lies above the first, given as events and tries."""
    (few, of), (many, out_of) = low, high
    pooled = (few + many) / (of + out_of)
    error = math.sqrt(pooled * (1 - pooled) * (1 / of + 1 / out_of))
    return (many / out_of - few / of) / error if error else 0.0


COLUMNS = ("prompt_tokens", "completion_tokens", "retries", "throttled", "rejected", "unreadable", "blocked")


def ledger_object(groups: Mapping[str, Sequence[Line]]) -> dict[str, Any]:
    """The ledger for scripts."""
    return {
        "ledger": [{"group": name, **line._asdict()} for name, lines in groups.items() for line in lines],
        "remarks": list(remarks(groups)),
    }


def ledger_text(groups: Mapping[str, Sequence[Line]]) -> Iterator[str]:
    """The ledger, line by line."""
    heads = [column.replace("_tokens", "").replace("completion", "reply") for column in COLUMNS]
    for name, lines in groups.items():
        yield name
        yield f"  {'run':12} {'role':10} {'calls':>7} {' '.join(f'{head:>12}' for head in heads)} {'seconds':>10}"
        for line in lines:
            found = [getattr(line, column) for column in COLUMNS]
            cells = ["unknown" if value is None else f"{value:,}" for value in found]
            seconds = f"{line.seconds:,.0f}"
            yield f"  {line.run_id:12} {line.role:10} {line.calls:7,} {' '.join(f'{c:>12}' for c in cells)} {seconds:>10}"
            if 0 < line.untold < line.completions:
                yield f"    the provider told no tokens for {line.untold:,} of these replies"
    yield "Prompt and reply are tokens as the providers told them. Calls that led to no record are in no file."
    yield from (f"note: {remark}" for remark in remarks(groups))
