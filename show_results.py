"""The results table: every metric for each run and cause class, then mean and sample SD over comparable runs.

Reads: the data file (gold verdicts, classes) and all record files of the runs below the output root; makes no request and
writes nothing. Comparable are runs that differ in the run id alone: same data, cases, code, models, endpoints, settings.
All figures are fractions: from 0 to 1, QWK from -1 to 1. What they are and how sure stands in `metrics.py`.
What a content filter blocked (--record-blocked) counts as the evaluated model's failure where its own provider did it, and
else is missing: then a run has no figure, only the worst and the best that it could be.
Source: the paper's Section 6 and Appendix E.

    python show_results.py [--model NAME] [--run-id ID] [--format text|json]
    python show_results.py --ledger [--model NAME] [--run-id ID]    calls, tokens and retries instead (ledger.py)
"""

import argparse
import json
import os
import re
import signal
import statistics
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from categories import CLASS_OF, CLASSES
from checkpoints import Run, differences, fingerprint, folder_name, read_manifest
from common import OPTIONS, Dataset, load_dataset, parse, parser_for, value_of
from errors import CheckpointError, SettingsError, command, uncollected
from eval_DCG import HIT
from eval_LCA import CLARIFICATION
from ledger import ledger_object, ledger_text, run_lines
from metrics import (
    Bounds,
    Counts,
    Figures,
    confusion,
    dcg_figures,
    farthest,
    figure_bounds,
    lca_figures,
    ljp_figures,
)
from records import ARTIFACTS, MANIFEST_PATH, SIMULATED, VERDICTS, Case, Manifest, RoleName

# ----------------------------------------------------------------------------------------------------------------------
# Tasks: from a case's record to its outcomes

Outcome = tuple[int, int | None]
"""Truth and prediction, or None where there is none to count."""


def blocked_by(value: Any) -> RoleName | None:
    """Whose provider blocked what should stand here; None if it does stand here."""
    role: RoleName | None = value["blocked"]["role"] if isinstance(value, dict) and "blocked" in value else None
    return role


def unheard(by: RoleName, truth: int, size: int) -> Outcome:
    """What a block counts as: a failure of the evaluated model if that was blocked, and else nothing."""
    return truth, farthest(truth, size) if by == "evaluated" else None


def lca_outcomes(case: Case, record: Any) -> list[Outcome]:
    labels = [record if "blocked" in record else record[f"{kind}_label"] for kind in ("complete", "underspecified")]
    return [
        unheard(by, truth, 2) if (by := blocked_by(label)) else (truth, int(label == CLARIFICATION))
        for truth, label in enumerate(labels)
    ]


def dcg_outcomes(case: Case, record: Any) -> list[Outcome]:
    if by := blocked_by(record):
        return [unheard(by, 1, 2)]
    return [(1, int(any(judged["label"] == HIT for judged in record["rounds"])))]


def ljp_outcomes(case: Case, record: Any) -> list[Outcome]:
    gold = [VERDICTS.index(verdict) for verdict in case.verdicts.values()]
    if by := blocked_by(record):
        return [unheard(by, truth, len(VERDICTS)) for truth in gold]
    if record["claims"] != list(case.verdicts):
        raise CheckpointError(f"case {case.number}: the claims of its verdicts are not those of the data file")
    return list(zip(gold, map(VERDICTS.index, record["verdicts"]), strict=True))


class Task(NamedTuple):
    begun: tuple[str, ...]
    """The task is begun when one of these files exists; the last one holds its results."""
    outcomes: Callable[[Case, Any], list[Outcome]]
    figures: Callable[[Counts], Figures]
    size: int
    """Of what there is to predict, how many values there are."""
    unit: str


TASKS: dict[str, Task] = {
    "LCA": Task(("a1", "lca"), lca_outcomes, lca_figures, 2, "cases"),
    "DCG": Task(("force_ask", "dcg"), dcg_outcomes, dcg_figures, 2, "cases"),
    "LJP_direct": Task(("a1_direct", "ljp_direct"), ljp_outcomes, ljp_figures, 3, "claims"),
    "LJP_gold": Task(("a1_force_judge", "ljp_gold"), ljp_outcomes, ljp_figures, 3, "claims"),
    "LJP_interaction": Task(("ljp_interaction",), ljp_outcomes, ljp_figures, 3, "claims"),
}

# ----------------------------------------------------------------------------------------------------------------------
# Groups of comparable runs


def run_folders(root: Path) -> list[tuple[str, str]]:
    """Run id and model folder of all that lies below an output root, in natural order: run2 before run10."""
    if root.exists() and not root.is_dir():
        raise SettingsError(f"{root}: not a folder; see --output-root")
    templates = (MANIFEST_PATH, *(artifact.path for artifact in ARTIFACTS.values()))
    found = {(path.parts[-3], path.parts[-2]) for text in templates for path in root.glob(text.format(run="*/*"))}

    def natural(folder: tuple[str, str]) -> list[tuple[bool, int, str]]:
        parts = re.findall(r"\d+|\D+", "/".join(reversed(folder)))
        return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]

    return sorted(found, key=natural)


def find_runs(root: Path, cases: Mapping[str, Case], model: str | None, run_id: str | None) -> Iterator[Run]:
    """The selected runs below an output root; CheckpointError for one whose manifest is missing or not its own."""
    for folder in run_folders(root):
        if run_id in (None, folder[0]) and (model is None or folder_name(model) == folder[1]):
            manifest = read_manifest(root / MANIFEST_PATH.format(run="/".join(folder)))
            yield opened(root, manifest, cases)


def opened(root: Path, manifest: Manifest, cases: Mapping[str, Case]) -> Run:
    """The run of a manifest, with those of its cases that the data file has."""
    return Run(root, manifest, [cases[number] for number in manifest["cases"] if number in cases])


def comparable(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups within which only the run id differs, in order of first appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(fingerprint({**run.manifest, "run_id": ""}), []).append(run)
    return list(groups.values())


class Scored(NamedTuple):
    """A case of a task."""

    outcomes: list[Outcome]
    blocked: bool
    """Whether a failure here is a content filter's and not an answer."""


def task_cases(run: Run, name: str, task: Task) -> dict[str, list[Scored]] | None:
    """A task's cases by class, in the run's case order; None if it was never begun, CheckpointError that names run and
    task if it is incomplete.
    """
    if not any(run.path(file).exists() for file in task.begun):
        return None
    try:
        records = run.read(task.begun[-1])
    except CheckpointError as error:
        raise CheckpointError(f"{name} of {run.manifest['run_id']} cannot be shown: {error}") from error
    by_class: dict[str, list[Scored]] = {}
    for case in run.cases:
        record = records[case.number]
        blocks = [value for value in (record, *record.values()) if isinstance(value, dict) and "blocked" in value]
        blocked = any(blocked_by(value) == "evaluated" for value in blocks)
        by_class.setdefault(CLASS_OF[case.cause], []).append(Scored(task.outcomes(case, record), blocked))
    return {title: by_class[title] for title in CLASSES if title in by_class}


ByClass = dict[str, list[Scored]]
Scores = dict[str, ByClass | None]
"""By task, a run's cases by class; None if it was never begun."""
Portion = tuple[Manifest, tuple[str, ...]]
"""Of a run, some tasks."""

PORTIONS = (("LCA", "LJP_interaction"), ("DCG", "LJP_direct", "LJP_gold"))  # no file is needed for both
FEW = 3  # runs, which are read before another process has begun
MOST = 32  # processes; Windows has a limit not far above


def all_scores(
    root: Path, runs: Sequence[Run], cases: Mapping[str, Case], processors: int | None = os.cpu_count()
) -> list[Scores]:
    """The scores of runs in their order; CheckpointError for the first that cannot be read. Many runs are read in as many
    processes as there are processors (None: unknown).
    """
    portions = [(run.manifest, names) for run in runs for names in PORTIONS]
    workers = min(processors or 1, len(portions), MOST)
    if len(runs) <= FEW or workers == 1:
        found = read_scores(root, portions, cases)
    else:
        from concurrent.futures import ProcessPoolExecutor  # here, since a few runs are read without it
        from multiprocessing import get_context

        ignoring = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; this one answers
        # Spawned, as on every system: a fork would copy locks that other threads of this process hold.
        with ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, ignoring) as pool:
            parts = [pool.submit(read_scores, root, portions[at::workers], cases) for at in range(workers)]
            shares = [part.result() for part in parts]
        found = [shares[place % workers][place // workers] for place in range(len(portions))]
    scores: list[Scores] = [{} for _ in runs]
    for place, portion in enumerate(found):
        if isinstance(portion, CheckpointError):
            raise portion
        scores[place // len(PORTIONS)] |= portion
    return scores


def read_scores(root: Path, portions: Sequence[Portion], cases: Mapping[str, Case]) -> list[Scores | CheckpointError]:
    """The scores of some tasks of runs, or what is wrong with one."""
    found: list[Scores | CheckpointError] = []
    with uncollected():
        for manifest, names in portions:
            run = opened(root, manifest, cases)  # goes with its records, which are too many to be kept
            try:
                found.append({name: task_cases(run, name, TASKS[name]) for name in names})
            except CheckpointError as error:
                found.append(error)
    return found


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


def scope_results(task: Task, per_run: Mapping[str, Sequence[Scored]]) -> dict[str, dict[str, Any]]:
    """The metrics of some cases of a task, in each run and summed up; with the bounds of the runs that have no more."""
    figures: dict[str, dict[str, Fraction | None]] = {}
    limits: dict[str, Bounds] = {}
    for run_id, cases in per_run.items():
        outcomes = [outcome for case in cases for outcome in case.outcomes]
        known = [(truth, prediction) for truth, prediction in outcomes if prediction is not None]
        missing = [truth for truth, prediction in outcomes if prediction is None]
        counts = confusion(known, task.size)
        if missing:
            limits[run_id] = figure_bounds(task.figures, counts, missing)
        for metric, value in (dict.fromkeys(limits[run_id]) if missing else task.figures(counts)).items():
            figures.setdefault(metric, {})[run_id] = value
    found = {metric: summary(values) for metric, values in figures.items()}
    for metric in found if limits else ():
        ends = {run_id: by_metric[metric] for run_id, by_metric in limits.items()}
        found[metric]["bounds"] = {run_id: [*map(number_of, pair)] for run_id, pair in ends.items()}
    return found


def task_results(task: Task, per_run: Mapping[str, Mapping[str, Sequence[Scored]]]) -> dict[str, Any]:
    """A task's figures overall and by class, sizes, and by run how many cases were blocked, if any were."""
    scopes = {
        title: {run_id: by_class[title] for run_id, by_class in per_run.items()}
        for title in next(iter(per_run.values()))
    }
    overall = {run_id: [case for cases in by_class.values() for case in cases] for run_id, by_class in per_run.items()}

    def size(cases: Sequence[Scored]) -> int:
        return len(cases) if task.unit == "cases" else sum(len(case.outcomes) for case in cases)

    found = {
        "overall": scope_results(task, overall),
        "by_class": {title: scope_results(task, cases) for title, cases in scopes.items()},
        "n": {
            "overall": size(next(iter(overall.values()))),
            "by_class": {title: size(next(iter(cases.values()))) for title, cases in scopes.items()},
        },
    }
    for word, counted in (
        ("blocked", lambda case: case.blocked),
        ("missing", lambda case: any(prediction is None for _, prediction in case.outcomes)),
    ):
        counts = {run_id: sum(map(counted, cases)) for run_id, cases in overall.items()}
        found |= {word: counts} if any(counts.values()) else {}
    return found


def group_results(runs: Sequence[Run], scores: Sequence[Scores]) -> dict[str, Any]:
    """One group of the printed object: what the runs share, and each begun task's figures overall and by class."""
    manifest = runs[0].manifest
    begun: dict[str, dict[str, ByClass]] = {name: {} for name in TASKS}
    for run, by_task in zip(runs, scores, strict=True):
        for name, per_run in begun.items():
            if (by_class := by_task[name]) is not None:
                per_run[run.manifest["run_id"]] = by_class
    return {
        "model": manifest["models"]["evaluated"],
        "user_model": manifest["models"]["user"],
        "judge_model": manifest["models"]["judge"],
        "simulated": [role for role, model in manifest["models"].items() if str(model).startswith(SIMULATED)],
        "dataset_sha256": manifest["dataset_sha256"],
        "cases": len(manifest["cases"]),
        "runs": [run.manifest["run_id"] for run in runs],
        "settings": {
            key: value
            for key, value in manifest.items()
            if key in ("endpoints", "temperature", "judge_temperature", "max_tokens", "params", "code_sha256")
        },
        "tasks": {name: task_results(TASKS[name], per_run) for name, per_run in begun.items() if per_run},
    }


# ----------------------------------------------------------------------------------------------------------------------
# Printing


def padded(text: str, width: int) -> str:
    """Text filled up to a number of terminal columns; a Chinese character takes two."""
    return text + " " * (width - sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text))


def number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def task_table(name: str, task: Mapping[str, Any], runs: Sequence[str]) -> Iterator[str]:
    """A task's lines: one for each scope and metric, with a column for each run that has the task."""
    done = [run for run in runs if run in next(iter(task["overall"].values()))["per_run"]]
    widths = [max(9, len(run)) for run in done]
    columns = "  ".join(run.rjust(width) for run, width in zip(done, widths, strict=True))
    yield f"{padded(name, 42)} {'n':>5}  {'metric':12}  {columns}  {'mean':>9}  {'SD':>9}"
    for scope, figures in (("overall", task["overall"]), *task["by_class"].items()):
        size = task["n"]["overall"] if scope == "overall" else task["n"]["by_class"][scope]
        for metric, found in figures.items():
            values = [number(found["per_run"][run]).rjust(width) for run, width in zip(done, widths, strict=True)]
            sd = "-" if len(done) == 1 else number(found["sd"])
            defined = sum(value is not None for value in found["per_run"].values())
            note = f"  ({defined} of {len(done)} runs defined)" if 0 < defined < len(done) else ""
            note += "".join(
                f"  {run} between {number(low)} and {number(high)}"
                for run, (low, high) in found.get("bounds", {}).items()
            )
            head = f"  {padded(scope, 40)} {size:5}" if metric == next(iter(figures)) else " " * 48
            yield f"{head}  {metric:12}  {'  '.join(values)}  {number(found['mean']):>9}  {sd:>9}{note}"
    shown = [found for figures in (task["overall"], *task["by_class"].values()) for found in figures.values()]
    figures_of = [{*found["per_run"].values()} for found in shown]
    if len(done) > 1 and all(len(figures) == 1 for figures in figures_of) and figures_of != [{None}] * len(figures_of):
        yield "  the same figures in every run: does the provider sample at all?"
    for word, meaning in (("blocked", "counted as failures"), ("missing", "so that there are bounds only")):
        for run, count in task.get(word, {}).items():
            if count:
                yield f"  {run}: {count} cases {word} by a content filter, {meaning}"
    if len(done) < len(runs):
        yield f"  of {len(runs)} runs, {len(done)} have this task"


def group_text(results: Mapping[str, Any], differing: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """One group's lines; `differing` has each setting in which it differs from the first group, and both values."""
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


# ----------------------------------------------------------------------------------------------------------------------
# The command


def main(argv: Sequence[str] | None = None) -> None:
    places = [option for option in OPTIONS if option.flag in ("--dataset", "--output-root")]
    parser = parser_for("show_results.py", "Print the results of the runs below the output root.", places)
    parser.add_argument("--model", help="only runs of this evaluated model, by its exact name")
    parser.add_argument("--run-id", help="only the run of this id")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--ledger", action="store_true", help="calls, tokens, retries and seconds instead of figures")
    given = parse(parser, argv)
    data_file, root = (value_of(option, given, os.environ) for option in places)
    dataset = load_dataset(data_file)
    cases = {case.number: case for case in dataset.cases}
    runs = select(dataset, data_file, root, given)
    groups = comparable(runs)
    if given.ledger:
        ledger = {name: [line for run in group for line in run_lines(run)] for name, group in named(groups).items()}
        print(json.dumps(ledger_object(ledger), indent=1) if given.format == "json" else "\n".join(ledger_text(ledger)))
        return
    scores = all_scores(root, runs, cases)
    results = [group_results(group, [scores[runs.index(run)] for run in group]) for group in groups]
    if given.format == "json":
        print(json.dumps({"groups": results}, indent=1))  # ASCII: lossless whatever the console's encoding
        return
    if not runs:
        there = ", ".join(" of ".join(folder) for folder in run_folders(root)[:20])
        print(f"No runs to show below {root / 'runs'}" + (f"; there are: {there}" if there else "."))
    for position, (group, found) in enumerate(zip(groups, results, strict=True), 1):
        print(f"{'=' * 120}\nGroup {position} of {len(groups)}; all figures are fractions")
        print("\n".join(group_text(found, differences(groups[0][0].manifest, group[0].manifest))))


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
