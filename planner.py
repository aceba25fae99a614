"""What more cases, runs or classes would buy: the table of `show_results.py --planner`, from the runs at hand.

The squared standard error over cases has a part that only more cases lessen and one that more runs do; from both follows
how wide an interval would be. From the error of a paired difference follows the least true difference that a 5 % test
finds four times in five, over all cases, in a class and in a cause. Linear in what a case contributes, so a plan and no
promise. Source: the formulas of power and of run noise that `metrics.py` names.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from categories import CLASS_OF, CLASSES
from compare import Side
from metrics import FEW_CASES, METRICS, clustered, detectable, influence_of, standard_error

if TYPE_CHECKING:
    from metrics import Floats

RUNS, TIMES = (1, 3, 5, 10, 20), (2, 4)
HALF = 1.96  # standard errors in half a 95 % interval
LEAST = 1e-9  # an error below it is that of adding up floats


def error_parts(name: str, sums: "Floats") -> tuple[float, float | None]:
    """The squared standard error of a mean over these runs, and the part of it that the runs carry; sums of shape (runs,
    cases, 14). The part is None for a single run, which does not show it. NaN where the metric is undefined.
    """
    import numpy as np

    whole = standard_error(METRICS[name], sums) ** 2
    if len(sums) == 1 or math.isnan(whole):
        return whole, None
    influences = np.array([METRICS[name].influence(run) for run in sums])
    within = float(influences.var(axis=0, ddof=1).sum()) / len(sums)
    return whole, min(whole, within)


def half_width(whole: float, by_runs: float | None, runs: int, planned_runs: int, times: float = 1) -> float | None:
    """Half of the 95 % interval with so many runs, and so many times the cases; None where one run shows too little."""
    if by_runs is None:
        return HALF * math.sqrt(whole / times) if planned_runs == runs else None
    return HALF * math.sqrt((whole - by_runs + by_runs * runs / planned_runs) / times)


def plan_of(side: Side, metrics: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """A model's rows: what its intervals are and would be."""
    for task, sums in side.sums.items():
        runs = len(sums)
        for name in metrics[task]:
            whole, by_runs = error_parts(name, sums)
            if not whole > LEAST**2:  # undefined, or the same in every case: nothing to plan with
                continue
            yield {
                "model": side.model,
                "task": task,
                "metric": name,
                "runs": runs,
                "se": math.sqrt(whole),
                "run_part": None if by_runs is None else by_runs / whole,
                "half_width": half_width(whole, by_runs, runs, runs),
                "with_runs": {str(planned): half_width(whole, by_runs, runs, planned) for planned in RUNS},
                "with_cases": {str(times): half_width(whole, by_runs, runs, runs, times) for times in TIMES},
            }


def sizes_of(strata: Sequence[str]) -> dict[str, dict[str, int]]:
    """Cases overall, by class and by cause."""
    classes, causes = Counter(CLASS_OF[cause] for cause in strata), Counter(strata)
    in_order = {title: classes[title] for title in CLASSES if title in classes}
    return {"overall": {"overall": len(strata)}, "by_class": in_order, "by_cause": dict(causes)}


def detectable_of(
    sides: Sequence[Side], strata: Sequence[str], metrics: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """By pair, task and metric the least true difference that is found, over scopes of several sizes. A model without another
    is paired with an independent one like it, which is an upper bound: cases that are hard for both take no part in a pair's.
    """
    pairs: list[tuple[Side, Side | None]] = (
        [*combinations(sides, 2)] if len(sides) > 1 else [(side, None) for side in sides]
    )
    for first, second in pairs:
        for task in first.sums:
            if second and task not in second.sums:
                continue
            for name in metrics[task]:
                own = influence_of(METRICS[name], first.sums[task])
                moved = influence_of(METRICS[name], second.sums[task]) - own if second else math.sqrt(2) * own
                error = clustered(moved)
                if error > LEAST:
                    yield {
                        "first": first.model,
                        "second": second.model if second else None,
                        "task": task,
                        "metric": name,
                        "detectable": {
                            kind: {scope: detectable(error, len(strata), n) for scope, n in sizes.items()}
                            for kind, sizes in sizes_of(strata).items()
                        },
                    }


def planner_object(
    sides: Sequence[Side], strata: Sequence[str], metrics: Mapping[str, Sequence[str]]
) -> dict[str, list[dict[str, Any]]]:
    return {
        "intervals": [row for side in sides for row in plan_of(side, metrics)],
        "differences": [*detectable_of(sides, strata, metrics)],
    }


def planner_text(sides: Sequence[Side], strata: Sequence[str], metrics: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The plan for people."""

    def width(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.4f}"

    found = planner_object(sides, strata, metrics)
    heads = "".join(f"{f'{runs} runs' if runs > 1 else '1 run':>9}" for runs in RUNS)
    more = "".join(f"{f'{times} x cases':>11}" for times in TIMES)
    for side in sides:
        yield f"{side.model} {side.setting}: half of the 95 % interval over cases, as it is and as it would be"
        yield f"  {'task':16} {'metric':13} {'now':>8} {'runs':>6}{heads}{more}"
        for row in found["intervals"]:
            if row["model"] == side.model:
                share = "-" if row["run_part"] is None else f"{row['run_part']:.0%}"
                runs = "".join(f"{width(value):>9}" for value in row["with_runs"].values())
                cases = "".join(f"{width(value):>11}" for value in row["with_cases"].values())
                yield f"  {row['task']:16} {row['metric']:13} {width(row['half_width']):>8} {share:>6}{runs}{cases}"
        yield ""
    sizes = sizes_of(strata)
    fewest = min(sizes["by_cause"], key=lambda cause: sizes["by_cause"][cause])
    columns = [("overall", "overall"), *(("by_class", title) for title in sizes["by_class"]), ("by_cause", fewest)]
    yield "The least true difference between two models that a 5 % test finds four times in five, by number of cases"
    yield f"  {'task':16} {'metric':13}" + "".join(f"{sizes[kind][scope]:>9}" for kind, scope in columns) + "  models"
    for row in found["differences"]:
        widths = "".join(f"{row['detectable'][kind][scope]:>9.4f}" for kind, scope in columns)
        who = f"{row['first']}, {row['second'] or 'another like it (an upper bound)'}"
        yield f"  {row['task']:16} {row['metric']:13}{widths}  {who}"
    yield f"  columns: overall; {'; '.join(sizes['by_class'])}; the cause {fewest}, which has the fewest"
    yield ""
    yield "runs: what part of the squared error the runs carry; no number of runs takes away the rest."
    if sizes["by_cause"][fewest] < FEW_CASES:
        yield (
            f"A cause has as few as {sizes['by_cause'][fewest]} cases. A ranking of models in one cause is not to be trusted: "
            "only differences as large as in the last column would show, and among many causes some look so by chance."
        )
