"""The results table: every metric for each run and cause class, then over comparable runs mean, sample SD and a 95 %
interval over cases; comparisons, plans and exports of the same.

Reads: the data file (gold verdicts, classes) and all record files of the runs below the output root, as `scores.py` does;
makes no request and writes nothing but what --bundle names. Comparable are runs that differ in the run id alone.
All figures are fractions: from 0 to 1, QWK from -1 to 1. What they are and how sure stands in `metrics.py`.
What a content filter blocked (--record-blocked) counts as the evaluated model's failure where its own provider did it, and
else is missing: then a run has no figure, only the worst and the best that it could be.
Source: the paper's Section 6 and Appendix E.

    python show_results.py [--model NAME] [--run-id ID] [--format text|json|csv|markdown|latex]
    python show_results.py --compare MODEL MODEL …                  which model is better, and how sure (compare.py)
    python show_results.py --planner                                what more cases or runs would buy (planner.py)
    python show_results.py --bundle FILE.zip | --verify FILE.zip    the table with all it rests on, and anew (bundle.py)
    python show_results.py --ledger [--model NAME] [--run-id ID]    calls, tokens and retries instead (ledger.py)
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bundle import count_figures, different_figures, told, unpack, write_bundle
from checkpoints import Run, differences
from common import OPTIONS, Dataset, at_least, load_dataset, parse, parser_for, value_of
from compare import ALPHA, Row, Side, adjusted, comparison_object, comparison_text, rows_of
from errors import CheckpointError, SettingsError, command, notice, uncollected
from exports import Best, comparison_csv, latex, markdown, scopes_in, tidy_csv
from ledger import ledger_object, ledger_text, run_lines
from metrics import (
    FEW_CASES,
    LEVEL,
    METRICS,
    SHARES,
    Bounds,
    Interval,
    averaged,
    case_sums,
    confusion,
    drawn_totals,
    draws,
    figure_bounds,
    interval,
    ratio,
    recovery,
    replicated,
    run_share,
    share_interval,
    standard_error,
)
from planner import planner_object, planner_text
from records import SIMULATED, Case, Manifest
from scores import (
    TASKS,
    ByClass,
    Scored,
    Scores,
    Task,
    all_scores,
    comparable,
    find_runs,
    in_processes,
    read_scores,
    run_folders,
    sound,
    to_compare,
)
from texts import between, padded
from trust import MORE, trust_lines

if TYPE_CHECKING:
    from metrics import Floats

# ----------------------------------------------------------------------------------------------------------------------
# Sampling over cases

REPLICATES, SEED = 10_000, 0

Draw = Callable[[tuple[str, ...]], "Floats"]
"""From the cases' strata, how often each is drawn, shape (replicates, cases): the same for all tasks and models."""


def draw_of(sampling: Mapping[str, Any]) -> Draw | None:
    """How cases are drawn by these settings; None without any."""
    return cache(lambda strata: draws(strata, sampling["replicates"], sampling["seed"])) if sampling else None


class Sample(NamedTuple):
    sums: "Floats"
    """Of each case in each run, shape (runs, cases, 14)."""
    totals: "Floats"
    """Of the drawn cases in each run, shape (replicates, runs, 14)."""


class Scope(NamedTuple):
    """Some cases of a task: all of them, or those of a class."""

    per_run: Mapping[str, Sequence[Scored]]
    sample: Sample | None = None
    """What may be said of cases like these; None if it was not asked for or an outcome is missing."""

    @property
    def cases(self) -> Sequence[Scored]:
        """The first run's; where only the data file counts, all are alike."""
        return next(iter(self.per_run.values()))

    @property
    def strata(self) -> tuple[str, ...]:
        return tuple(case.cause for case in self.cases)


def sums_of(scope: Scope, size: int) -> "Floats | None":
    """What each case adds up to in each run, shape (runs, cases, 14); None where an outcome is missing."""
    if any(case.whole is None for cases in scope.per_run.values() for case in cases):
        return None
    import numpy as np

    return np.array([[case.sums(size) for case in cases] for cases in scope.per_run.values()], dtype=float)


def scopes_of(per_run: Mapping[str, ByClass], size: int, drawn: Draw | None) -> tuple[Scope, dict[str, Scope]]:
    """A task's cases in all runs, and by class; with samples if cases may be drawn, which happens within their causes."""
    titles = next(iter(per_run.values()))
    classes = {title: Scope({run_id: by_class[title] for run_id, by_class in per_run.items()}) for title in titles}
    overall = Scope({r: [case for title in titles for case in by_class[title]] for r, by_class in per_run.items()})
    sums = None if drawn is None else sums_of(overall, size)
    if drawn is None or sums is None:
        return overall, classes

    times = drawn(overall.strata)
    at = 0
    totals_of_all: list[Floats] = []
    for title, scope in classes.items():  # which stand one after another in the whole
        part = slice(at, at + len(scope.cases))
        totals = drawn_totals(sums[:, part], times[:, part])
        classes[title] = scope._replace(sample=Sample(sums[:, part], totals))
        totals_of_all.append(totals)
        at = part.stop
    return overall._replace(sample=Sample(sums, sum(totals_of_all[1:], totals_of_all[0]))), classes


def sampled(metric: str, sample: Sample, values: Sequence[float]) -> dict[str, Any]:
    """A metric's 95 % interval over cases, its standard error, and what part of that squared is the runs'."""
    if len(values) < len(sample.sums):
        return {"interval": None, "se": None, "run_share": None}
    error = standard_error(METRICS[metric], sample.sums)
    if metric in SHARES:
        span: Interval | None = share_interval(sum(values) / len(values), error, sample.sums.shape[1])
    else:
        span = interval(replicated(METRICS[metric], sample.totals))
    return {
        "interval": span and [*span],
        "se": None if math.isnan(error) else error,
        "run_share": run_share(values, error),
    }


RECOVERY = ("LJP_direct", "LJP_interaction", "LJP_gold")


def recovered(samples: Sequence[Sample]) -> dict[str, Any]:
    """What asking brings back of what the missing facts cost, (I - D)/(G - D), for QWK and accuracy, from the samples of
    RECOVERY; intervals are over the same drawn cases. The ratio is None where the interval of G - D holds 0: a share of what
    may be nothing says nothing.
    """
    found: dict[str, Any] = {}
    for name in ("qwk", "accuracy"):
        metric = METRICS[name]
        direct, asked, gold = (averaged(metric, sample.sums) for sample in samples)
        d, i, g = (replicated(metric, sample.totals) for sample in samples)
        gain, gap = interval(i - d), interval(g - d)
        certain = gap is not None and not gap.low <= 0 <= gap.high
        share = interval(recovery(d, i, g)) if certain else None
        found[name] = {
            "gain": None if math.isnan(asked - direct) else asked - direct,
            "gain_interval": gain and [*gain],
            "gap": None if math.isnan(gold - direct) else gold - direct,
            "gap_interval": gap and [*gap],
            "recovery": (asked - direct) / (gold - direct) if certain else None,
            "recovery_interval": share and [*share],
        }
    return found


# ----------------------------------------------------------------------------------------------------------------------
# From cases to the printed object


def summary(per_run: Mapping[str, Fraction | None]) -> dict[str, Any]:
    """Mean, sample SD (ddof=1) and values of a metric; the first two are null where a run has no value, the SD also for a
    single run.
    """
    values = [value for value in per_run.values() if value is not None]
    defined = len(values) == len(per_run)
    return {
        "mean": float(statistics.mean(values)) if defined else None,
        "sd": statistics.stdev(values) if defined and len(values) > 1 else None,
        "per_run": {run_id: number_of(value) for run_id, value in per_run.items()},
    }


def number_of(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def scope_results(task: Task, scope: Scope) -> dict[str, dict[str, Any]]:
    """The metrics of a scope, in each run and summed up, with their intervals; with the bounds of runs that have no more."""
    figures: dict[str, dict[str, Fraction | None]] = {}
    limits: dict[str, Bounds] = {}
    for run_id, cases in scope.per_run.items():
        outcomes = [outcome for case in cases for outcome in case.outcomes]
        known = [(truth, prediction) for truth, prediction in outcomes if prediction is not None]
        missing = [truth for truth, prediction in outcomes if prediction is None]
        counts = confusion(known, task.size)
        if missing:
            limits[run_id] = figure_bounds(task.figures, counts, missing)
        values = dict.fromkeys(limits[run_id]) if missing else task.figures(counts)
        for name in task.ratios:
            worst, best = (ratio(name, [case.sums(task.size, name, way) for case in cases]) for way in (False, True))
            values[name] = worst if worst == best else None
            if worst != best:
                limits[run_id][name] = worst, best
        for metric, value in values.items():
            figures.setdefault(metric, {})[run_id] = value
    found = {metric: summary(values) for metric, values in figures.items()}
    for metric, shown in found.items():
        ends = {run_id: by_metric[metric] for run_id, by_metric in limits.items() if metric in by_metric}
        if ends:
            shown["bounds"] = {run_id: [*map(number_of, pair)] for run_id, pair in ends.items()}
        if scope.sample:
            shown |= sampled(metric, scope.sample, [value for value in shown["per_run"].values() if value is not None])
    return found


def task_results(task: Task, overall: Scope, classes: Mapping[str, Scope]) -> dict[str, Any]:
    """A task's figures overall and by class, sizes, trivial policies' figures, and by run how many cases were blocked, if any
    were.
    """

    def size(scope: Scope) -> int:
        return len(scope.cases) if task.unit == "cases" else sum(len(case.outcomes) for case in scope.cases)

    found = {
        "overall": scope_results(task, overall),
        "by_class": {title: scope_results(task, scope) for title, scope in classes.items()},
        "n": {"overall": size(overall), "by_class": {title: size(scope) for title, scope in classes.items()}},
        "cases": {
            "overall": len(overall.cases),
            "by_class": {title: len(scope.cases) for title, scope in classes.items()},
        },
        "floors": {name: floor(task, overall.cases, constant) for name, constant in task.floors.items()},
    }
    for word, counted in (
        ("blocked", lambda case: case.blocked),
        ("missing", lambda case: case.whole is None),
    ):
        counts = {run_id: sum(map(counted, cases)) for run_id, cases in overall.per_run.items()}
        found |= {word: counts} if any(counts.values()) else {}
    return found


def floor(task: Task, cases: Sequence[Scored], constant: int | None) -> dict[str, float | None]:
    """What a policy comes to that always predicts the same; None predicts the commonest truth."""
    truths = [[truth for truth, _ in case.outcomes] for case in cases]
    counted = Counter(truth for some in truths for truth in some)
    always = max(counted, key=lambda truth: counted[truth]) if constant is None else constant
    predicted = [[(truth, always) for truth in some] for some in truths]
    figures = task.figures(confusion([pair for some in predicted for pair in some], task.size))
    if "all_right" in task.ratios:
        figures["all_right"] = ratio("all_right", [case_sums(some) for some in predicted])
    return {metric: number_of(value) for metric, value in figures.items()}


def begun_tasks(manifests: Sequence[Manifest], scores: Sequence[Scores]) -> dict[str, dict[str, ByClass]]:
    """By task, the cases of each run that has begun it."""
    found: dict[str, dict[str, ByClass]] = {name: {} for name in TASKS}
    for manifest, by_task in zip(manifests, scores, strict=True):
        for name, per_run in found.items():
            if (by_class := by_task[name]) is not None:
                per_run[manifest["run_id"]] = by_class
    return found


def group_results(manifests: Sequence[Manifest], scores: Sequence[Scores], drawn: Draw | None = None) -> dict[str, Any]:
    """One group of the printed object: what the runs share, and each begun task's figures overall and by class; intervals if
    cases may be drawn.
    """
    manifest = manifests[0]
    begun = begun_tasks(manifests, scores)
    scopes = {name: scopes_of(per_run, TASKS[name].size, drawn) for name, per_run in begun.items() if per_run}
    alike = len({tuple(begun[name]) for name in RECOVERY}) == 1
    samples = (
        [overall.sample for name in RECOVERY for overall, _ in [scopes[name]]] if alike and begun[RECOVERY[0]] else []
    )
    return {
        "model": manifest["models"]["evaluated"],
        "user_model": manifest["models"]["user"],
        "judge_model": manifest["models"]["judge"],
        "simulated": [role for role, model in manifest["models"].items() if str(model).startswith(SIMULATED)],
        "dataset_sha256": manifest["dataset_sha256"],
        "cases": len(manifest["cases"]),
        "runs": [of_run["run_id"] for of_run in manifests],
        "settings": {
            key: value
            for key, value in manifest.items()
            if key in ("endpoints", "temperature", "judge_temperature", "max_tokens", "params", "code_sha256")
        },
        "tasks": {name: task_results(TASKS[name], *found) for name, found in scopes.items()},
        **({"recovery": recovered(known)} if len(known := [*filter(None, samples)]) == len(RECOVERY) else {}),
    }


def all_results(
    root: Path,
    groups: Sequence[Sequence[Run]],
    cases: Mapping[str, Case],
    sampling: Mapping[str, Any],
    processors: int | None = os.cpu_count(),
) -> list[dict[str, Any]]:
    """The groups' results: several groups at once where there are enough to occupy the processors, else several runs."""
    if processors and len(groups) >= 2 * processors:
        manifests = [[run.manifest for run in group] for group in groups]
        return sound(in_processes(partial(results_of, root, cases, sampling), manifests, processors))
    return results_from(groups, scores_of(root, groups, cases, processors), sampling)


def results_from(
    groups: Sequence[Sequence[Run]], scores: Mapping[str, Scores], sampling: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The groups' results, from the scores by the runs' folders."""
    drawn = draw_of(sampling)
    return [
        group_results([run.manifest for run in group], [scores[run.folder] for run in group], drawn) for group in groups
    ]


def results_of(
    root: Path, cases: Mapping[str, Case], sampling: Mapping[str, Any], groups: Sequence[Sequence[Manifest]]
) -> list[dict[str, Any] | CheckpointError]:
    """Whole groups, from their files to their figures, or what is wrong with one."""
    drawn = draw_of(sampling)
    found: list[dict[str, Any] | CheckpointError] = []
    hashes: dict[str, str] = {}
    with uncollected():
        for manifests in groups:
            portions = [(manifest, tuple(TASKS)) for manifest in manifests]
            try:
                scores = sound(read_scores(root, cases, portions, hashes))
                found.append(group_results(manifests, scores, drawn))
            except CheckpointError as error:
                found.append(error)
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Comparing models


def sides_of(groups: Sequence[Sequence[Run]], scores: Mapping[str, Scores]) -> tuple[list[Side], tuple[str, ...]]:
    """Each group as a side of comparisons, and the strata of the cases, which all have in common."""
    sides: list[Side] = []
    strata: tuple[str, ...] = ()
    for group in groups:
        sums: dict[str, Floats] = {}
        for name, per_run in begun_tasks(
            [run.manifest for run in group], [scores[run.folder] for run in group]
        ).items():
            if per_run:
                overall, _ = scopes_of(per_run, TASKS[name].size, None)
                found = sums_of(overall, TASKS[name].size)
                strata = overall.strata
                sums |= {} if found is None else {name: found}
        manifest, own = group[0].manifest, group[0].manifest["params"]["evaluated"]
        setting = f"at {manifest['endpoints']['evaluated']}" + (
            f" with {json.dumps(own, ensure_ascii=False)}" if own else ""
        )
        runs = [run.manifest["run_id"] for run in group]
        sides.append(Side(manifest["models"]["evaluated"], setting, runs, sums))
    return sides, strata


def headline() -> dict[str, list[str]]:
    """Each task's metrics without the further ones."""
    return {name: task.headline for name, task in TASKS.items()}


def comparisons(sides: Sequence[Side], drawn: "Floats", seed: int) -> list[Row]:
    """All pairs in all headline metrics."""
    return [*rows_of(sides, headline(), drawn, seed)]


def planned(groups: Sequence[list[Run]], scores: Mapping[str, Scores], form: str) -> str:
    """The printed plan: of models that can be compared together, else of each group by itself."""
    try:
        together = [to_compare("--planner", groups, [group[0].manifest["models"]["evaluated"] for group in groups])]
    except SettingsError:
        together = [[group] for group in groups]
    plans = [sides_of(some, scores) for some in together if some]
    if form == "json":
        return json.dumps({"plans": [planner_object(*plan, headline()) for plan in plans]}, indent=1)
    return (
        "\n\n".join("\n".join(planner_text(*plan, headline())) for plan in plans if plan[1]) or "No runs to plan from."
    )


def scores_of(
    root: Path, groups: Sequence[Sequence[Run]], cases: Mapping[str, Case], processors: int | None = os.cpu_count()
) -> dict[str, Scores]:
    """The scores of all runs of some groups, by the runs' folders."""
    runs = [run for group in groups for run in group]
    return dict(zip([run.folder for run in runs], all_scores(root, runs, cases, processors), strict=True))


def best_models(
    groups: Sequence[list[Run]], scores: Mapping[str, Scores], sampling: Mapping[str, Any]
) -> tuple[Best, str]:
    """Where a paired test lets one call a model better than every other one of the groups; and what to say of it."""
    models = [group[0].manifest["models"]["evaluated"] for group in groups]
    if not sampling or len(groups) < 2:
        return (), "No model is marked: nothing was tested."
    try:
        sides, strata = sides_of(to_compare("--compare", groups, models), scores)
    except SettingsError:
        return (), "No model is marked: these runs are not comparable, and --compare says why."
    rows = comparisons(sides, draws(strata, sampling["replicates"], sampling["seed"]), sampling["seed"])
    won = Counter[tuple[str, str, str]]()
    for row, p in zip(rows, adjusted(rows), strict=True):
        if p <= ALPHA:
            won[row.second if row.found.value > 0 else row.first, row.task, row.metric] += 1
    told = f"Bold: better than every other model in a paired test, {ALPHA:.0%} after Holm over {len(rows)} comparisons."
    return {key for key, count in won.items() if count == len(models) - 1}, told


# ----------------------------------------------------------------------------------------------------------------------
# Printing


def number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def task_table(name: str, task: Mapping[str, Any], runs: Sequence[str]) -> Iterator[str]:
    """A task's lines: one for each scope and metric, with a column for each run that has the task."""
    done = [run for run in runs if run in next(iter(task["overall"].values()))["per_run"]]
    widths = [max(9, len(run)) for run in done]
    columns = "  ".join(run.rjust(width) for run, width in zip(done, widths, strict=True))
    sampling = any("interval" in found for found in task["overall"].values())
    more = f"  {'95 % interval':>19}  {'runs':>5}" if sampling else ""
    yield f"{padded(name, 42)} {'n':>5}  {'metric':12}  {columns}  {'mean':>9}  {'SD':>9}{more}"
    for scope, figures, size in scopes_in(task):
        for metric, found in figures.items():
            values = [number(found["per_run"][run]).rjust(width) for run, width in zip(done, widths, strict=True)]
            sd = "-" if len(done) == 1 else number(found["sd"])
            mark = "*" if size["cases"] < FEW_CASES else " "
            more = (
                f"  {between(found.get('interval')) + mark:>19}  {percent(found.get('run_share')):>5}"
                if sampling
                else ""
            )
            defined = sum(value is not None for value in found["per_run"].values())
            note = f"  ({defined} of {len(done)} runs defined)" if 0 < defined < len(done) else ""
            note += "".join(
                f"  {run} between {number(low)} and {number(high)}"
                for run, (low, high) in found.get("bounds", {}).items()
            )
            head = f"  {padded(scope, 40)} {size['n']:5}" if metric == next(iter(figures)) else " " * 48
            line = f"{head}  {metric:12}  {'  '.join(values)}  {number(found['mean']):>9}  {sd:>9}{more}{note}"
            yield line.rstrip()
    for policy, floors in task["floors"].items():
        yield f"  {policy}: " + ", ".join(f"{metric} {number(value)}" for metric, value in floors.items())
    shown = [found for _, figures, _ in scopes_in(task) for found in figures.values()]
    figures_of = [{*found["per_run"].values()} for found in shown]
    if len(done) > 1 and all(len(figures) == 1 for figures in figures_of) and figures_of != [{None}] * len(figures_of):
        yield "  the same figures in every run: does the provider sample at all?"
    for word, meaning in (("blocked", "counted as failures"), ("missing", "so that there are bounds only")):
        for run, count in task.get(word, {}).items():
            if count:
                yield f"  {run}: {count} cases {word} by a content filter, {meaning}"
    if len(done) < len(runs):
        yield f"  of {len(runs)} runs, {len(done)} have this task"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def recovery_text(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What asking brings back, a line for each metric."""
    yield "What asking brings back"
    for metric, of in found.items():
        gain = f"Interaction less Direct {number(of['gain'])} {between(of['gain_interval'])}"
        gap = f"of the {number(of['gap'])} {between(of['gap_interval'])} between Direct and Gold"
        share = "no share is given, as these may be nothing"
        if of["recovery"] is not None:
            share = f"a share of {number(of['recovery'])} {between(of['recovery_interval'])}"
        yield f"  {metric:12}  {gain}, {gap}: {share}"


def footnotes(tasks: Mapping[str, Any], sampling: tuple[int, int]) -> Iterator[str]:
    """What a reader must know of the columns that are there, each once."""
    replicates, seed = sampling
    yield "n: cases, or claims in LJP. mean, SD: over the runs, the latter with R - 1."
    yield (
        "95 % interval: of the mean over these runs, for cases like these; the runs' noise is inside and is not to be added. "
        f"Of shares Wilson's by clustered errors, else percentiles of {replicates:,} draws of the cases within their causes "
        f"(seed {seed})."
    )
    yield "runs: what part of the squared standard error the runs carry; the rest is the cases', which more runs do not change."
    if any(size["cases"] < FEW_CASES for task in tasks.values() for _, _, size in scopes_in(task)):
        yield f"*: of fewer than {FEW_CASES} cases, an indication only."


def group_text(
    results: Mapping[str, Any], differing: Sequence[tuple[str, str, str]], sampling: tuple[int, int] | None = None
) -> Iterator[str]:
    """One group's lines; `differing` has each setting in which it differs from the first group, and both values; `sampling`
    the replicates and seed of its intervals, if it has any.
    """
    settings, endpoints = results["settings"], results["settings"]["endpoints"]
    if results["simulated"]:
        yield f"SIMULATED        {', '.join(results['simulated'])}: these figures measure no model; see simulate.py"
    yield f"Evaluated model  {results['model']}  ({endpoints['evaluated']})"
    yield f"User Model       {results['user_model']}  ({endpoints['user']})"
    yield f"Judge            {results['judge_model']}  ({endpoints['judge']})"
    yield f"Cases            {results['cases']}, of the data file with sha256 {results['dataset_sha256'][:12]}…"
    yield f"Runs             {len(results['runs'])}: {', '.join(results['runs'])}"
    yield (
        f"Settings         temperature {settings['temperature']}, judge temperature {settings['judge_temperature']}, "
        f"max tokens {settings['max_tokens']}"
    )
    for role, params in settings["params"].items():
        if params:
            yield f"{'':17}{role} with {json.dumps(params, ensure_ascii=False)}"
    yield from (f"  unlike group 1: {setting} is {here}, not {there}" for setting, there, here in differing)
    for name in TASKS:
        yield ""
        task = results["tasks"].get(name)
        yield from task_table(name, task, results["runs"]) if task else (f"{name}: not started",)
    if "recovery" in results:
        yield ""
        yield from recovery_text(results["recovery"])
    if sampling and results["tasks"]:
        yield ""
        yield from footnotes(results["tasks"], sampling)


# ----------------------------------------------------------------------------------------------------------------------
# The command


FORMATS = ("text", "json", "csv", "markdown", "latex")
FORMATS_OF = {"": FORMATS, "--compare": FORMATS[:3], "--ledger": FORMATS[:2], "--planner": FORMATS[:2]}


def main(argv: Sequence[str] | None = None) -> None:
    places = [option for option in OPTIONS if option.flag in ("--dataset", "--output-root")]
    parser = parser_for("show_results.py", "Print the results of the runs below the output root.", places)
    parser.add_argument("--model", help="only runs of this evaluated model, by its exact name")
    parser.add_argument("--run-id", help="only the run of this id")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--compare", nargs="+", metavar="MODEL", help="which of these evaluated models is better, and how sure"
    )
    parser.add_argument("--planner", action="store_true", help="what more cases, runs or classes would buy")
    parser.add_argument(
        "--bundle", type=Path, metavar="FILE.zip", help="also write records, manifests and figures there"
    )
    parser.add_argument("--verify", type=Path, metavar="FILE.zip", help="compute the figures of such a file anew")
    parser.add_argument("--no-intervals", action="store_true", help="figures without intervals over cases, sooner")
    parser.add_argument(
        "--replicates",
        type=at_least(int, 100, "a whole number"),
        default=REPLICATES,
        metavar="B",
        help="default: 10000",
    )
    parser.add_argument(
        "--seed", type=at_least(int, 0, "a whole number"), default=SEED, metavar="S", help="of the draws; default: 0"
    )
    parser.add_argument("--ledger", action="store_true", help="calls, tokens, retries and seconds instead of figures")
    given = parse(parser, argv)
    data_file, root = (value_of(option, given, os.environ) for option in places)
    dataset = load_dataset(data_file)
    cases = {case.number: case for case in dataset.cases}
    if given.verify:
        print(verified(given.verify, dataset, data_file))
        return
    runs = select(dataset, data_file, root, given)
    groups = comparable(runs)
    if given.bundle and (given.compare or given.ledger or given.planner):
        raise SettingsError("--bundle: goes with the table of results; leave out --compare, --ledger and --planner")
    table = "--compare" if given.compare else "--ledger" if given.ledger else "--planner" if given.planner else ""
    if given.format not in FORMATS_OF[table]:
        raise SettingsError(f"{table}: no format {given.format}, but {', '.join(FORMATS_OF[table])}")
    if given.compare and given.no_intervals:
        raise SettingsError("--compare: needs intervals; leave out --no-intervals")
    if given.ledger:
        ledger = {name: [line for run in group for line in run_lines(run)] for name, group in named(groups).items()}
        print(json.dumps(ledger_object(ledger), indent=1) if given.format == "json" else "\n".join(ledger_text(ledger)))
        return
    sampling = {} if given.no_intervals else {"replicates": given.replicates, "seed": given.seed, "level": LEVEL}
    if given.compare:
        groups = to_compare("--compare", groups, given.compare)
        sides, strata = sides_of(groups, scores_of(root, groups, cases))
        rows = comparisons(sides, draws(strata, given.replicates, given.seed), given.seed)
        if given.format == "json":
            print(json.dumps({"sampling": sampling, "comparisons": comparison_object(rows)}, indent=1))
        elif given.format == "csv":
            print(comparison_csv(comparison_object(rows)), end="")
        else:
            print("\n".join(comparison_text(sides, rows, given.replicates, given.seed)))
        return
    if given.planner:
        print(planned(groups, scores_of(root, groups, cases), given.format))
        return
    in_paper = given.format in ("markdown", "latex")  # which marks the best model, and so needs the scores as well
    scores = scores_of(root, groups, cases) if in_paper else {}
    results = results_from(groups, scores, sampling) if in_paper else all_results(root, groups, cases, sampling)
    if given.bundle:
        files = write_bundle(given.bundle, root, runs, dataset.sha256, sampling, results)
        notice(f"{given.bundle}: {files} files of {len(runs)} runs, with their figures")
    if given.format == "json":  # in ASCII: lossless whatever the console's encoding
        print(json.dumps({**({"sampling": sampling} if sampling else {}), "groups": results}, indent=1))
        return
    if given.format == "csv":
        print(tidy_csv(results), end="")
        return
    if in_paper:
        best, told = best_models(groups, scores, sampling)
        marked = best, " ".join([told, *trusted(groups)])
        print((markdown if given.format == "markdown" else latex)(results, sampling, *marked), end="")
        return
    if not runs:
        there = ", ".join(" of ".join(folder) for folder in run_folders(root)[:20])
        print(f"No runs to show below {root / 'runs'}" + (f"; there are: {there}" if there else "."))
    for position, (group, found) in enumerate(zip(groups, results, strict=True), 1):
        print(f"{'=' * 120}\nGroup {position} of {len(groups)}; all figures are fractions")
        differing = differences(groups[0][0].manifest, group[0].manifest)
        print("\n".join(group_text(found, differing, (given.replicates, given.seed) if sampling else None)))
        print("", *trust_lines(group), MORE, sep="\n")


def trusted(groups: Sequence[Sequence[Run]]) -> list[str]:
    """What a caption must say of judges and User Models, each once, with the evaluated models that it is true of."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for line in trust_lines(group):
            found.setdefault(line, []).append(group[0].manifest["models"]["evaluated"])
    return [line if len(models) == len(groups) else f"{', '.join(models)}: {line}" for line, models in found.items()]


def verified(path: Path, dataset: Dataset, data_file: Path) -> str:
    """What comes out when an archive's figures are computed anew; CheckpointError that names all that differs."""
    with tempfile.TemporaryDirectory(prefix="lexpilot ") as folder:
        root = Path(folder)
        contents, faults = unpack(path, root)
        if contents["dataset_sha256"] != dataset.sha256:
            raise SettingsError(
                f"{data_file}: not the data file that {path} was made with, which has the sha256 "
                f"{contents['dataset_sha256']}; give that with --dataset"
            )
        cases, sampling = {case.number: case for case in dataset.cases}, contents["sampling"]
        results: list[Any] = []
        try:
            results = all_results(root, comparable(list(find_runs(root, cases, None, None))), cases, sampling)
        except CheckpointError as error:
            faults.append(str(error).replace(f"{root}{os.sep}", ""))
        else:
            faults += different_figures(contents["figures"], json.loads(json.dumps(results)))
    return told(path, faults, {"files": len(contents["files"]), "figures": count_figures(results)})


def named(groups: Sequence[Sequence[Run]]) -> dict[str, Sequence[Run]]:
    """The groups by their place and evaluated model."""
    return {f"Group {n}, {group[0].manifest['models']['evaluated']}": group for n, group in enumerate(groups, 1)}


def select(dataset: Dataset, data_file: Path, root: Path, given: argparse.Namespace) -> list[Run]:
    """The runs that the options select and that were made with this data file; the others are named on stderr."""
    found = list(find_runs(root, {case.number: case for case in dataset.cases}, given.model, given.run_id))
    runs = [run for run in found if run.manifest["dataset_sha256"] == dataset.sha256]
    others = [f"{run.manifest['run_id']} of {run.manifest['models']['evaluated']}" for run in found if run not in runs]
    if others and not runs:
        raise SettingsError(
            f"{data_file}: no run was made with this data file; give the one of {', '.join(others[:5])} with --dataset "
            "(line ends and a byte-order mark count)"
        )
    if others:
        print(f"left out, as made with another data file: {', '.join(others)}", file=sys.stderr)
    return runs


if __name__ == "__main__":
    command(main)
