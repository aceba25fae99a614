"""How far judges agree about a run, and what its figures are under each of them.

From the judgments of `judgments.py` to an object and its text. Judges are compared label by label on what both labelled: raw
agreement (Wilson's interval by its clustered error), Cohen's kappa and Gwet's AC1 (percentiles over drawn cases), and the
confusion matrix. Every headline metric is computed under each judge on the same cases, and never averaged into one.
Source: the statistics are those of `metrics.py`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from checkpoints import Run
from judges import CHECKS, judges_of
from judgments import JUDGE_TASKS, Form, JudgeTask, judgments_of, labels_of
from metrics import (
    METRICS,
    Interval,
    agreements,
    alpha,
    averaged,
    clustered,
    confusion,
    defined,
    drawn_totals,
    draws,
    interval,
    replicated,
    share_interval,
    wilson,
)
from records import Case, CheckSettings
from scores import TASKS, whole_sums
from texts import between, number

if TYPE_CHECKING:
    from metrics import Floats

REPLICATES, SEED = 10_000, 0
Records = Mapping[str, Mapping[str, Any]]
"""By case number."""


@cache
def _drawn(strata: tuple[str, ...]) -> "Floats":
    return draws(strata, REPLICATES, SEED)


def _listed(span: Interval | None) -> list[float] | None:
    return span and [*span]


# ----------------------------------------------------------------------------------------------------------------------
# Label by label


Triples = Sequence[tuple[int, int, float]]
"""Of some items, the places of both judges' labels in the task's values, and what the item stands for."""


def pairs_of(task: JudgeTask, first: Records, second: Records) -> dict[str, Triples]:
    """By case, what both judges labelled; without the cases of which that is nothing."""
    found: dict[str, Triples] = {}
    for case in first:
        if case in second:
            one, other = labels_of(task, first[case]), labels_of(task, second[case])
            pairs = [(task.values.index(one[key]), task.values.index(other[key]), 1.0) for key in one if key in other]
            if pairs:
                found[case] = pairs
    return found


def drawn_cases(causes: Iterable[str]) -> "Floats":
    """How often each case is drawn, within these causes of theirs: shape (replicates, cases)."""
    return _drawn(tuple(causes))


def agreement(pairs: Mapping[str, Triples], causes: Mapping[str, str], size: int) -> dict[str, Any]:
    """Of two judges' labels by case, at least one: how many they are, the confusion matrix (the first judge's labels are its rows),
    raw agreement, kappa and AC1 with intervals over cases drawn within causes; None where undefined, or where nothing differs.
    """
    import numpy as np

    by_case = np.zeros((len(pairs), size, size))
    for place, some in enumerate(pairs.values()):
        for one, other, weight in some:
            by_case[place, one, other] += weight
    counts, labels = by_case.sum(axis=0), by_case.sum(axis=(1, 2))
    values = {name: float(value) for name, value in agreements(counts).items()}
    drawn = drawn_cases(causes[case] for case in pairs)
    replicates = agreements((drawn @ by_case.reshape(len(pairs), -1)).reshape(-1, size, size))
    error = clustered((np.trace(by_case, axis1=1, axis2=2) - values["raw"] * labels) / labels.sum())
    beyond = ("kappa", "ac1")
    return {
        "items": sum(map(len, pairs.values())),
        "cases": len(pairs),
        "counts": counts.tolist(),
        "raw": values["raw"],
        "raw_interval": [*share_interval(values["raw"], error if len(pairs) > 1 else 0.0, len(pairs))],
        **{name: defined(values[name]) for name in beyond},
        **{f"{name}_interval": _listed(interval(replicates[name])) for name in beyond},
    }


# ----------------------------------------------------------------------------------------------------------------------
# Figures under each judge


def figures_under(name: str, cases: Sequence[Case], own: Records, other: Records) -> Iterator[dict[str, Any]]:
    """A task's headline metrics by the run's judge and by another one, on the cases that both decided whole; the difference's
    interval is over the same drawn cases.
    """
    import numpy as np

    task = TASKS[name]
    causes: list[str] = []
    by_judge: tuple[list[list[int]], list[list[int]]] = ([], [])
    for case in cases:
        records = [of[case.number] for of in (own, other) if case.number in of]
        if len(records) < 2 or any("blocked" in record for record in records):
            continue
        mine, theirs = (whole_sums(task.outcomes(case, record), {}) for record in records)
        if mine is not None and theirs is not None:
            causes.append(case.cause)
            by_judge[0].append(mine)
            by_judge[1].append(theirs)
    if not causes:
        return
    drawn = drawn_cases(causes)
    sums = [np.array([some], dtype=float) for some in by_judge]
    totals = [drawn_totals(some, drawn) for some in sums]
    for metric in task.headline:
        values = [averaged(METRICS[metric], some) for some in sums]
        one, two = (replicated(METRICS[metric], some) for some in totals)
        yield {
            "task": name,
            "metric": metric,
            "cases": len(causes),
            "run": defined(values[0]),
            "value": defined(values[1]),
            "difference": defined(values[1] - values[0]),
            "interval": _listed(interval(two - one)),
        }


# ----------------------------------------------------------------------------------------------------------------------
# Under attack


def flips(records: Records) -> dict[str, list[bool | None]]:
    """By kind of attack, whether it changed a label of each response; None where no judgment could be read."""
    found: dict[str, list[bool | None]] = {}
    for record in records.values():
        for attacked in [] if "blocked" in record else record["attacked"]:
            given = attacked["labels"]
            found.setdefault(attacked["kind"], []).append(None if given is None else given != record["labels"])
    return found


def flip_rate(outcomes: Sequence[bool | None]) -> dict[str, Any]:
    """How often these changed a label, with Wilson's interval; what could not be read is no flip, and counted by itself."""
    read = [outcome for outcome in outcomes if outcome is not None]
    flipped = sum(read)
    return {
        "trials": len(read),
        "unreadable": len(outcomes) - len(read),
        "flips": flipped,
        "rate": flipped / len(read) if read else None,
        "interval": [*wilson(flipped / len(read), len(read))] if read else None,
    }


# ----------------------------------------------------------------------------------------------------------------------
# All of a run


class Column(NamedTuple):
    """A judge's answers to one task."""

    judge: str
    """J1, J2, …"""
    form: Form
    number: int
    records: Records

    @property
    def name(self) -> str:
        return f"{self.judge} {self.form} {self.number}"


ASKED: tuple[Form, ...] = ("whole", "each")


def columns_of(
    run: Run, all_settings: Sequence[CheckSettings], forms: Sequence[Form] = ASKED
) -> dict[str, list[Column]]:
    """The later judgments of a run in some forms, by task."""
    found: dict[str, list[Column]] = {name: [] for name in JUDGE_TASKS}
    for place, settings in enumerate(all_settings, 1):
        for one in judgments_of(run, settings):
            if one.form in forms:
                found[one.task].append(Column(f"J{place}", one.form, one.number, one.records))
    return found


def agreement_rows(run: Run, name: str, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """A task's agreement between the run's judge and each later one; and within a judge, of a later pass with the first, and
    of one call a criterion with one call for all.
    """
    task, causes = JUDGE_TASKS[name], {case.number: case.cause for case in run.cases}
    first = {column.judge: column for column in columns if (column.form, column.number) == ("whole", 1)}
    own = run.read(task.of)
    compared: list[tuple[str, Records, Column]] = [("run", own, column) for column in columns]
    for column in columns:
        partner = first.get(column.judge)
        compared += [(partner.name, partner.records, column)] if partner and partner is not column else []
    for one, records, other in compared:
        if pairs := pairs_of(task, records, other.records):
            size = len(task.values)
            both = alpha(confusion([(mine, theirs) for some in pairs.values() for mine, theirs, _ in some], size))
            head = {"task": name, "first": one, "second": other.name, "labels": [*task.values]}
            yield {**head, **agreement(pairs, causes, size), "alpha": None if both is None else float(both)}


def attack_rows(columns: Mapping[str, Sequence[Column]]) -> Iterator[dict[str, Any]]:
    """By judge and kind, flip rates of each task and of all together."""
    judges = sorted({column.judge for some in columns.values() for column in some})
    for judge in judges:
        pooled: dict[str, list[bool | None]] = {}
        for name, some in columns.items():
            for column in some:
                if column.judge == judge:
                    for kind, outcomes in flips(column.records).items():
                        yield {"judge": judge, "task": name, "kind": kind, **flip_rate(outcomes)}
                        pooled.setdefault(kind, []).extend(outcomes)
        for kind, outcomes in pooled.items():
            yield {"judge": judge, "task": "all", "kind": kind, **flip_rate(outcomes)}


def judged_again(run: Run) -> dict[str, Any]:
    """What came out of all later judgments of a run, as an object of JSON values."""
    all_settings = judges_of(CHECKS, run)
    columns = columns_of(run, all_settings, (*ASKED, "attacks"))
    asked = {name: [column for column in some if column.form in ASKED] for name, some in columns.items()}
    attacked = {name: [column for column in some if column.form not in ASKED] for name, some in columns.items()}
    return {
        "run_id": run.manifest["run_id"],
        "model": run.manifest["models"]["evaluated"],
        "judge": {"model": run.manifest["models"]["judge"], "endpoint": run.manifest["endpoints"]["judge"]},
        "sampling": {"replicates": REPLICATES, "seed": SEED},
        "judges": {f"J{place}": settings["judge"] for place, settings in enumerate(all_settings, 1)},
        "agreement": [row for name, some in asked.items() if some for row in agreement_rows(run, name, some)],
        "figures": [
            {"judge": column.name, **row}
            for name, some in asked.items()
            if name in TASKS
            for column in some
            for row in figures_under(name, run.cases, run.read(JUDGE_TASKS[name].of), column.records)
        ],
        "attacks": [*attack_rows(attacked)],
    }


# ----------------------------------------------------------------------------------------------------------------------
# Printing


AGREEMENT_HEAD = " ".join(f"{name:>7} {'95 %':>16}" for name in ("agree", "kappa", "AC1"))


def agreement_cells(row: Mapping[str, Any]) -> str:
    """A row's agreement below that head."""
    return " ".join(
        f"{number(row[name]):>7} {between(row[f'{name}_interval']):>16}" for name in ("raw", "kappa", "ac1")
    )


def judged_text(found: Mapping[str, Any]) -> Iterator[str]:
    """The object for people."""
    own = found["judge"]
    yield f"Judges of {found['run_id']} of {found['model']}"
    yield f"  run  {own['model']} at {own['endpoint']}"
    for name, judge in found["judges"].items():
        params = f", {json.dumps(judge['params'], ensure_ascii=False)}" if judge["params"] else ""
        yield (
            f"  {name:4} {judge['model']} at {judge['endpoint']}, temperature {judge['temperature']:g}, "
            f"up to {judge['max_tokens']} tokens{params}"
        )
    if not found["judges"]:
        yield "  nobody judged it again: the figures rest on one judge, who was asked once"
        return
    if found["agreement"]:
        yield ""
        yield (f"{'agreement':16} {'first':13} {'second':13} {'labels':>6} {'cases':>5} {AGREEMENT_HEAD} {'alpha':>7}")
    for row in found["agreement"]:
        yield (
            f"{row['task']:16} {row['first']:13} {row['second']:13} {row['items']:6} {row['cases']:5} "
            f"{agreement_cells(row)} {number(row['alpha']):>7}"
        )
        if row["raw"] < 1:
            yield f"{'':16} {row['first']} by row, {row['second']} by column: " + "; ".join(
                f"{label} {' '.join(f'{count:g}' for count in counts)}"
                for label, counts in zip(row["labels"], row["counts"], strict=True)
            )
    if found["figures"]:
        yield ""
        head = f"{'by run':>8} {'by other':>8} {'difference':>10} {'95 %':>18}"
        yield f"{'figures':16} {'metric':13} {'judge':13} {'cases':>5} {head}"
    for row in found["figures"]:
        yield (
            f"{row['task']:16} {row['metric']:13} {row['judge']:13} {row['cases']:5} {number(row['run']):>8} "
            f"{number(row['value']):>8} {number(row['difference'], '+'):>10} {between(row['interval'], '+'):>18}"
        )
    if found["attacks"]:
        yield ""
        yield f"{'attacks':22} {'task':12} {'judge':6} {'tries':>5} {'flips':>5} {'rate':>7} {'95 %':>16} {'unreadable':>10}"
    for row in found["attacks"]:
        yield (
            f"{row['kind']:22} {row['task']:12} {row['judge']:6} {row['trials']:5} {row['flips']:5} "
            f"{number(row['rate']):>7} {between(row['interval']):>16} {row['unreadable']:10}"
        )
    yield ""
    yield (
        "whole: one call for all criteria, as in the run; each: one a criterion; the number is the pass. Agreement counts "
        "labels, its intervals draw cases; alpha is Krippendorff's, which suits repeats of one judge."
    )
