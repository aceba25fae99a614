"""The flip curve: at which error rate of the judge would two models change their order?

For evaluated models that were run under the same settings. Labels are made to err on top of those that the judge gave: at
random, each falling to another one with the same probability, or at worst, only in favour of the lower model. What is
printed are the metrics at some rates, how well the models' ranks hold, and for each pair the least rate that changes it.
Source: `judge_error.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from checkpoints import Run
from errors import CheckpointError
from judge_error import CELLS, CHANGED, DRAWS, ERRORS, HIGHEST, changes_at_random, changes_at_worst, curve
from judgments import JUDGE_TASKS, cells_of
from metrics import defined
from scores import TASKS
from texts import number

if TYPE_CHECKING:
    from metrics import Floats


def counts_of(runs: Sequence[Run], name: str) -> "Floats | None":
    """A task's labels by cell in each run that has begun it, shape (runs, cells); None if none has, or a label is missing."""
    import numpy as np

    begun = [run for run in runs if run.path(JUDGE_TASKS[name].of).exists()]
    found = []
    for run in begun:
        records = run.read(JUDGE_TASKS[name].of)
        cells = [cells_of(name, case, records[case.number]) for case in run.cases]
        run.forget()
        if None in cells:
            return None
        every = [cell for some in cells if some is not None for cell in some]
        found.append(np.bincount(every, minlength=len(CELLS[name].units)))
    return np.array(found, dtype=float) if begun else None


def flip_curves(groups: Sequence[Sequence[Run]]) -> list[dict[str, Any]]:
    """For each task that all models have, and each headline metric: the curve, and where each pair changes."""
    models = [group[0].manifest["models"]["evaluated"] for group in groups]
    found = []
    for name, task in TASKS.items():
        counts = [some for group in groups if (some := counts_of(group, name)) is not None]
        if len(counts) < len(groups):
            continue
        for metric in task.headline:
            points: list[dict[str, Any]] = [
                {"error": point.error, "means": [*map(defined, point.means)], "correlation": defined(point.correlation)}
                for point in curve(metric, counts, CELLS[name])
            ]
            pairs = [
                {
                    "first": models[one],
                    "second": models[other],
                    "equal": points[0]["means"][one] == points[0]["means"][other],
                    "random": changes_at_random(metric, counts[one], counts[other], CELLS[name]),
                    "worst": changes_at_worst(metric, counts[one], counts[other], CELLS[name]),
                }
                for one, other in combinations(range(len(models)), 2)
            ]
            found.append({"task": name, "metric": metric, "models": models, "curve": points, "pairs": pairs})
    if not found:
        raise CheckpointError(f"there is no task that {' and '.join(models)} all have without a missing label")
    return found


def flip_text(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The curves for people."""
    yield f"{'':30}" + "".join(f"{f'e = {error:.0%}':>9}" for error in ERRORS)
    for row in found:
        yield f"{row['task']} {row['metric']}"
        for place, model in enumerate(row["models"]):
            yield f"  {model:28}" + "".join(f"{number(point['means'][place]):>9}" for point in row["curve"])
        yield f"  {'rank correlation with e = 0':28}" + "".join(
            f"{number(point['correlation']):>9}" for point in row["curve"]
        )
        for pair in row["pairs"]:
            yield f"  {pair['first']} and {pair['second']} {_told(pair)}"
    yield ""
    yield (
        f"e: share of labels that err, on top of the judge's own errors; means of {DRAWS:,} draws. At random: the least e, up to "
        f"{HIGHEST:.0%}, at which more than {CHANGED:.0%} of the draws have another order. At worst: every error favours the "
        "lower model."
    )


def _told(pair: Mapping[str, Any]) -> str:
    if pair["equal"]:
        return "are equal"
    random, worst = (
        f"none up to {HIGHEST:.0%}" if pair[way] is None else f"{pair[way]:.1%}" for way in ("random", "worst")
    )
    return f"change their order at {random} at random, {worst} at worst"
