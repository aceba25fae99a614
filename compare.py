"""Which of two models is better, and whether that may be said: the table of `show_results.py --compare A B …`.

Each pair is compared on the same cases in every metric: difference with a 95 % interval over the same drawn cases, p by
approximate randomisation of cases (McNemar's exact p for one binary outcome in one run each), and p after Holm over all
rows. What a row lets one say follows from the last alone. It holds of cases like these, not of other runs of these cases.
Source: the paper compares by eye; the tests are those of the statistics named in `metrics.py`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from metrics import METRICS, Difference, defined, detectable, difference, exact_p, holm, paired

if TYPE_CHECKING:
    from metrics import Floats

ALPHA = 0.05


class Side(NamedTuple):
    """A model with its results."""

    model: str
    setting: str
    """Its endpoint, and fields of its requests besides the usual ones: what may differ besides the model."""
    runs: Sequence[str]
    sums: Mapping[str, "Floats"]
    """By task, of each case in each run, shape (runs, cases, 14); without the tasks that it lacks or that miss an outcome."""


class Row(NamedTuple):
    """A comparison in one metric."""

    first: str
    second: str
    task: str
    metric: str
    found: Difference
    test: str
    p: float
    """NaN where the metric is undefined."""
    cases: int


def rows_of(sides: Sequence[Side], metrics: Mapping[str, Sequence[str]], drawn: "Floats", seed: int) -> Iterator[Row]:
    """Each pair's rows, in the tasks that both have. `metrics` names those of each task, `drawn` has a column for each case."""
    for first, second in combinations(sides, 2):
        for task, names in metrics.items():
            if task in first.sums and task in second.sums:
                both = paired(first.sums[task], second.sums[task], drawn, seed)
                for name in names:
                    found, exact = difference(METRICS[name], both), exact_p(name, both)
                    test = "randomisation" if exact is None else "McNemar, exact"
                    p = found.p if exact is None else exact
                    yield Row(first.model, second.model, task, name, found, test, p, drawn.shape[1])


def adjusted(rows: Sequence[Row]) -> list[float]:
    """Each row's p after Holm over all rows that have one; NaN for the others."""
    known = [place for place, row in enumerate(rows) if not math.isnan(row.p)]
    found = [math.nan] * len(rows)
    for place, p in zip(known, holm([rows[place].p for place in known]), strict=True):
        found[place] = p
    return found


def statement(row: Row, p: float) -> str:
    """What may be said of a row, by its p after Holm."""
    if math.isnan(p):
        return "the metric is undefined; nothing can be said"
    if p <= ALPHA:
        better = row.second if row.found.value > 0 else row.first
        return f"{better} is better on cases like these"
    least = detectable(row.found.error, row.cases, row.cases)
    missed = f"; a single test finds a true difference of {least:.4f} four times in five" if least > 0 else ""
    if row.p <= ALPHA:
        return f"a hint that does not outlast the number of comparisons{missed}"
    return f"no difference can be told{missed}"


def comparison_object(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows for scripts; what is undefined is null."""

    return [
        {
            "first": row.first,
            "second": row.second,
            "task": row.task,
            "metric": row.metric,
            "values": [defined(value) for value in row.found.values],
            "difference": defined(row.found.value),
            "interval": row.found.interval and [*row.found.interval],
            "se": defined(row.found.error),
            "test": row.test,
            "p": defined(row.p),
            "p_holm": defined(p),
            "statement": statement(row, p),
        }
        for row, p in zip(rows, adjusted(rows), strict=True)
    ]


def comparison_text(sides: Sequence[Side], rows: Sequence[Row], replicates: int, seed: int) -> Iterator[str]:
    """The rows for people, pair by pair."""
    for side in sides:
        runs = f"{len(side.runs)} {'run' if len(side.runs) == 1 else 'runs'}, {', '.join(side.runs)}"
        yield f"{side.model} {side.setting}: {runs}"
    shown = [*zip(rows, adjusted(rows), strict=True)]
    for first, second in combinations([side.model for side in sides], 2):
        of_pair = [(row, p) for row, p in shown if (row.first, row.second) == (first, second)]
        yield f"\n{second} less {first}"
        if not of_pair:
            yield "  no task in which both have all outcomes"
            continue
        yield (
            f"  {'task':16} {'metric':13} {'first':>8} {'second':>8} {'second - first':>15} {'95 % interval':>18} "
            f"{'p':>7} {'Holm':>7}  what may be said"
        )
        for row, p in of_pair:
            one, other = (_number(value) for value in row.found.values)
            span = row.found.interval
            between = "-" if span is None else f"[{span.low:.4f}, {span.high:.4f}]"
            yield (
                f"  {row.task:16} {row.metric:13} {one:>8} {other:>8} {_number(row.found.value, '+'):>15} {between:>18} "
                f"{_p(row.p):>7} {_p(p):>7}  {statement(row, p)}"
            )
    exact = any(row.test.startswith("McNemar") for row in rows)
    yield ""
    yield (
        f"p: of a difference so large where chance decides which model gave which answers to a case, {replicates:,} shuffles "
        f"(seed {seed})" + (", and McNemar's exact p for one binary outcome in one run each." if exact else ".")
    )
    yield f"Holm: p adjusted for the {len(rows)} rows of all pairs; what may be said follows from it, at {ALPHA:.0%}."
    yield f"95 % interval: percentiles over {replicates:,} draws of the same cases for both, within their causes."


def _number(value: float, sign: str = "") -> str:
    return "undefined" if math.isnan(value) else f"{value:{sign}.4f}"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else "<0.0001" if value < 0.0001 else f"{value:.4f}"
