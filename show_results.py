"""The results table: every metric for each run and cause class, then mean and sample SD over comparable runs.

Reads: the data file (gold verdicts, classes) and all record files of the runs below the output root; makes no request and
writes nothing. Comparable are runs that differ in the run id alone: same data, cases, code, models, endpoints, settings.
All figures are fractions: from 0 to 1, QWK from -1 to 1. Metrics are exact fractions of counts until they are printed.
Source: the paper's Section 6 and Appendix E.

    python show_results.py [--model NAME] [--run-id ID] [--format text|json]
"""

import argparse
import json
import os
import re
import statistics
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from categories import CLASS_OF, CLASSES
from checkpoints import Run, differences, fingerprint, folder_name, read_manifest
from common import OPTIONS, load_dataset, parse, parser_for, value_of
from errors import CheckpointError, SettingsError, command
from eval_DCG import HIT
from eval_LCA import CLARIFICATION
from records import ARTIFACTS, MANIFEST_PATH, SIMULATED, VERDICTS, Case, Hits, Labels, Verdicts

# ----------------------------------------------------------------------------------------------------------------------
# Metrics over pairs (truth, prediction) of small integers

Pair = tuple[int, int]
Counts = Sequence[Sequence[int | Fraction]]
"""A confusion matrix; fractions where counts are expected ones."""
Figures = dict[str, Fraction | None]
"""Metric -> its exact value, None where it is undefined."""


def confusion(pairs: Sequence[Pair], size: int) -> list[list[int]]:
    """Counts by truth (row) and prediction (column), a matrix of shape (size, size)."""
    from sklearn.metrics import confusion_matrix  # takes most of a second: not for --help

    truth, prediction = zip(*pairs, strict=True)
    counts: list[list[int]] = confusion_matrix(truth, prediction, labels=list(range(size))).tolist()
    return counts


def accuracy(counts: Counts) -> Fraction:
    """The share on the diagonal, 0 to 1; there must be at least one count."""
    return Fraction(sum(row[i] for i, row in enumerate(counts)), sum(sum(row) for row in counts))


def qwk(counts: Counts) -> Fraction | None:
    """Quadratic weighted kappa of a confusion matrix, -1 to 1; None when undefined.

    1 - D_o/D_e with D_o the sum of (i-j)² over the counts and D_e what the margins alone would give. Undefined where D_e
    is 0: both sides constant and equal. Exactly 0 where the truth is constant and the predictions are not.
    """
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    observed = sum((i - j) ** 2 * count for i, row in enumerate(counts) for j, count in enumerate(row))
    expected = sum((i - j) ** 2 * r * c for i, r in enumerate(rows) for j, c in enumerate(columns))
    return 1 - Fraction(observed * sum(rows), expected) if expected else None


def f1(hits: int, false_alarms: int, misses: int) -> Fraction:
    """2TP / (2TP + FP + FN), 0 to 1; 0 where there is nothing to count."""
    whole = 2 * hits + false_alarms + misses
    return Fraction(2 * hits, whole) if whole else Fraction(0)


def lca_figures(pairs: Sequence[Pair]) -> Figures:
    """Macro-F1, Acc_C and Acc_U; truth 1 is an underspecified history, prediction 1 a clarification."""
    (tn, fp), (fn, tp) = confusion(pairs, 2)
    return {
        "macro_f1": (f1(tp, fp, fn) + f1(tn, fn, fp)) / 2,
        "acc_c": Fraction(tn, tn + fp),
        "acc_u": Fraction(tp, tp + fn),
    }


def dcg_figures(pairs: Sequence[Pair]) -> Figures:
    """The share of cases in which either question hit; the truth of a pair is always 1."""
    return {"success_rate": accuracy(confusion(pairs, 2))}


def ljp_figures(pairs: Sequence[Pair]) -> Figures:
    counts = confusion(pairs, len(VERDICTS))
    return {"qwk": qwk(counts), "accuracy": accuracy(counts)}


# ----------------------------------------------------------------------------------------------------------------------
# Tasks: from a case's record to its pairs


def lca_pairs(case: Case, record: Labels) -> list[Pair]:
    labels = (record["complete_label"], record["underspecified_label"])
    return [(truth, int(label == CLARIFICATION)) for truth, label in enumerate(labels)]


def dcg_pairs(case: Case, record: Hits) -> list[Pair]:
    return [(1, int(any(judged["label"] == HIT for judged in record["rounds"])))]


def ljp_pairs(case: Case, record: Verdicts) -> list[Pair]:
    if record["claims"] != list(case.verdicts):
        raise CheckpointError(f"case {case.number}: the claims of its verdicts are not those of the data file")
    gold = map(VERDICTS.index, case.verdicts.values())
    return list(zip(gold, map(VERDICTS.index, record["verdicts"]), strict=True))


class Task(NamedTuple):
    begun: tuple[str, ...]
    """The task is begun when one of these files exists; the last one holds its results."""
    pairs: Callable[[Case, Any], list[Pair]]
    figures: Callable[[Sequence[Pair]], Figures]
    unit: str


TASKS: dict[str, Task] = {
    "LCA": Task(("a1", "lca"), lca_pairs, lca_figures, "cases"),
    "DCG": Task(("force_ask", "dcg"), dcg_pairs, dcg_figures, "cases"),
    "LJP_direct": Task(("a1_direct", "ljp_direct"), ljp_pairs, ljp_figures, "claims"),
    "LJP_gold": Task(("a1_force_judge", "ljp_gold"), ljp_pairs, ljp_figures, "claims"),
    "LJP_interaction": Task(("ljp_interaction",), ljp_pairs, ljp_figures, "claims"),
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
            yield Run(root, manifest, [cases[number] for number in manifest["cases"] if number in cases])


def comparable(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups within which only the run id differs, in order of first appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(fingerprint({**run.manifest, "run_id": ""}), []).append(run)
    return list(groups.values())


def task_pairs(run: Run, name: str, task: Task) -> dict[str, list[list[Pair]]] | None:
    """A task's pairs by class and case, in the run's case order; None if it was never begun, CheckpointError that names
    run and task if it is incomplete.
    """
    if not any(run.path(file).exists() for file in task.begun):
        return None
    try:
        records = run.read(task.begun[-1])
    except CheckpointError as error:
        raise CheckpointError(f"{name} of {run.manifest['run_id']} cannot be shown: {error}") from error
    by_class: dict[str, list[list[Pair]]] = {}
    for case in run.cases:
        by_class.setdefault(CLASS_OF[case.cause], []).append(task.pairs(case, records[case.number]))
    return {title: by_class[title] for title in CLASSES if title in by_class}


def summary(per_run: Mapping[str, Fraction | None]) -> dict[str, Any]:
    """Mean, sample SD (ddof=1) and values of a metric; the first two are null where a run's value is undefined, the SD
    also for a single run.
    """
    values = [value for value in per_run.values() if value is not None]
    defined = len(values) == len(per_run)
    return {
        "mean": float(statistics.mean(values)) if defined else None,
        "sd": statistics.stdev(values) if defined and len(values) > 1 else None,
        "per_run": {run_id: None if value is None else float(value) for run_id, value in per_run.items()},
    }


def group_results(runs: Sequence[Run]) -> dict[str, Any]:
    """One group of the printed object: what the runs share, and each begun task's figures overall and by class."""
    manifest = runs[0].manifest
    tasks: dict[str, Any] = {}
    for name, task in TASKS.items():
        found = {run.manifest["run_id"]: task_pairs(run, name, task) for run in runs}
        begun = {run_id: by_class for run_id, by_class in found.items() if by_class is not None}
        if not begun:
            continue
        scopes = {
            run_id: {"overall": [case for cases in by_class.values() for case in cases], **by_class}
            for run_id, by_class in begun.items()
        }
        figures: dict[str, dict[str, dict[str, Fraction | None]]] = {}
        sizes: dict[str, int] = {}
        for run_id, by_scope in scopes.items():
            for scope, cases in by_scope.items():
                pairs = [pair for case in cases for pair in case]
                sizes[scope] = len(cases) if task.unit == "cases" else len(pairs)
                for metric, value in task.figures(pairs).items():
                    figures.setdefault(scope, {}).setdefault(metric, {})[run_id] = value
        shown = {scope: {metric: summary(values) for metric, values in by.items()} for scope, by in figures.items()}
        tasks[name] = {
            "overall": shown.pop("overall"),
            "by_class": shown,
            "n": {"overall": sizes.pop("overall"), "by_class": sizes},
        }
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
            if key in ("endpoints", "temperature", "judge_temperature", "max_tokens", "code_sha256")
        },
        "tasks": tasks,
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
            head = f"  {padded(scope, 40)} {size:5}" if metric == next(iter(figures)) else " " * 48
            yield f"{head}  {metric:12}  {'  '.join(values)}  {number(found['mean']):>9}  {sd:>9}{note}"
    shown = [found for figures in (task["overall"], *task["by_class"].values()) for found in figures.values()]
    if len(done) > 1 and all(len(set(found["per_run"].values())) == 1 for found in shown):
        yield "  the same figures in every run: does the provider sample at all?"
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
    given = parse(parser, argv)
    data_file, root = (value_of(option, given, os.environ) for option in places)
    runs = select(data_file, root, given)
    groups = comparable(runs)
    results = [group_results(group) for group in groups]
    if given.format == "json":
        print(json.dumps({"groups": results}, indent=1))  # ASCII: lossless whatever the console's encoding
        return
    if not runs:
        there = ", ".join(" of ".join(folder) for folder in run_folders(root)[:20])
        print(f"No runs to show below {root / 'runs'}" + (f"; there are: {there}" if there else "."))
    for position, (group, found) in enumerate(zip(groups, results, strict=True), 1):
        print(f"{'=' * 120}\nGroup {position} of {len(groups)}; all figures are fractions")
        print("\n".join(group_text(found, differences(groups[0][0].manifest, group[0].manifest))))


def select(data_file: Path, root: Path, given: argparse.Namespace) -> list[Run]:
    """The runs that the options select and that were made with this data file; the others are named on stderr."""
    dataset = load_dataset(data_file)
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
