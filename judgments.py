"""Judgments about a run: the judge tasks, the labels in their records, where those lie that were made later, and samples.

A judge task is one kind of question that a stage puts to the judge. The run's own answers stand in its record files. Those
given later, by the same judge or another, stand in `judge_checks/<run-id>/<model>/<judge>/`: a file for each task, form and
pass.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from categories import CLASS_OF
from checkpoints import Files, Run
from judges import CHECKS, file_stems, later_files, later_run
from records import (
    HITS,
    RESPONSE_KINDS,
    VERDICTS,
    Attacks,
    Case,
    CheckSettings,
    Hits,
    HitsEach,
    JudgeSettings,
    Labels,
    RoundLabels,
    Verdicts,
    VerdictsEach,
)

# ----------------------------------------------------------------------------------------------------------------------
# Judge tasks and their labels


def lca_labels(record: Mapping[str, Any]) -> dict[str, str]:
    labels = {side: record[f"{side}_label"] for side in ("complete", "underspecified")}
    return {side: label for side, label in labels.items() if isinstance(label, str)}


def round_labels(record: Mapping[str, Any]) -> dict[str, str]:
    return {f"round {judged['round']}": judged["label"] for judged in record["rounds"]}


def later_round_labels(record: Mapping[str, Any]) -> dict[str, str]:
    return {f"round {judged['round']}": judged["label"] for judged in record["rounds"] if judged["round"] > 1}


def claim_labels(record: Mapping[str, Any]) -> dict[str, str]:
    return {f"claim {number}": verdict for number, verdict in enumerate(record["verdicts"], 1)}


class JudgeTask(NamedTuple):
    of: str
    """The file with the run's own labels."""
    values: Sequence[str]
    """What a label may be, in their order."""
    shape: type
    """Of a later judgment's record."""
    each: type | None
    """The same with a call for each criterion; None where there is but one."""
    read: Callable[[Mapping[str, Any]], dict[str, str]]
    made_from: tuple[str, ...]
    """The file with the responses."""


JUDGE_TASKS: dict[str, JudgeTask] = {
    "LCA": JudgeTask("lca", RESPONSE_KINDS, Labels, None, lca_labels, ("a1",)),
    "LCA_rounds": JudgeTask("interaction", RESPONSE_KINDS, RoundLabels, None, later_round_labels, ("interaction",)),
    "DCG": JudgeTask("dcg", HITS, Hits, HitsEach, round_labels, ("force_ask",)),
    "LJP_direct": JudgeTask("ljp_direct", VERDICTS, Verdicts, VerdictsEach, claim_labels, ("a1_direct",)),
    "LJP_gold": JudgeTask("ljp_gold", VERDICTS, Verdicts, VerdictsEach, claim_labels, ("a1_force_judge",)),
    "LJP_interaction": JudgeTask("ljp_interaction", VERDICTS, Verdicts, VerdictsEach, claim_labels, ("interaction",)),
}
"""As the results' tasks are named; LCA_rounds are the responses that an interaction continues with."""


def labels_of(task: JudgeTask, record: Mapping[str, Any]) -> dict[str, str]:
    """A record's labels by what they are about; without those that a content filter prevented."""
    return {} if "blocked" in record else task.read(record)


# ----------------------------------------------------------------------------------------------------------------------
# Where later judgments lie

Form = Literal["whole", "each", "attacks"]
"""One call for all criteria, as the run's judge was asked; one for each; or responses with something appended."""
SCRIPT = "eval_judges.py"
NAME = re.compile(rf"({'|'.join(JUDGE_TASKS)})\.(whole|each|attacks)\.([1-9][0-9]*)")


def file_name(task: str, form: Form, number: int) -> str:
    return f"{task}.{form}.{number}"


def judgment_files(judge: JudgeSettings, passes: int) -> Files:
    """The files of a judge's judgments about a run, up to so many passes."""
    written: dict[str, tuple[type, tuple[str, ...]]] = {}
    for task, of in JUDGE_TASKS.items():
        shapes: dict[Form, type | None] = {"whole": of.shape, "each": of.each, "attacks": Attacks}
        for form, shape in shapes.items():
            if shape is not None:
                written |= {file_name(task, form, number): (shape, of.made_from) for number in range(1, passes + 1)}
    return later_files(CHECKS, SCRIPT, judge, written)


class Judgments(NamedTuple):
    """A judge's answers to a task of a run, in one pass."""

    task: str
    judge: JudgeSettings
    form: Form
    number: int
    records: Mapping[str, Mapping[str, Any]]
    """By case number; of some cases only, perhaps."""


def judgments_of(run: Run, settings: CheckSettings) -> Iterator[Judgments]:
    """What one judge answered about a run later, in the order of the tasks; CheckpointError for a broken file, or one
    about records that have changed.
    """
    there = [found for stem in file_stems(CHECKS, run, settings) if (found := NAME.fullmatch(stem))]
    passes = max((int(found[3]) for found in there), default=0)
    check = later_run(run, judgment_files(settings["judge"], passes), settings)
    order = list(JUDGE_TASKS)
    for found in sorted(there, key=lambda found: (order.index(found[1]), found[2] != "whole", found[2], int(found[3]))):
        for source in JUDGE_TASKS[found[1]].made_from:
            run.read(source)
        check.borrow(run)
        yield Judgments(found[1], settings["judge"], cast(Form, found[2]), int(found[3]), check.load(found[0]))


# ----------------------------------------------------------------------------------------------------------------------
# Samples


def spread(items: Mapping[str, Hashable]) -> list[str]:
    """The items in an order of which every beginning has each stratum at about its share; equal for equal items.

    `items` has the stratum of each. The k-th of a stratum of n, in an order by chance, stands at (k - 1/2)/n of the whole.
    """
    by_chance = sorted(items, key=lambda item: hashlib.sha256(item.encode()).digest())
    size, seen = Counter(items.values()), Counter[Hashable]()
    place: dict[str, float] = {}
    for item in by_chance:
        stratum = items[item]
        place[item] = (seen[stratum] + 0.5) / size[stratum]
        seen[stratum] += 1
    return sorted(by_chance, key=place.__getitem__)


def sampled_cases(run: Run, task: JudgeTask, size: int) -> list[str]:
    """The numbers of so many cases at most, spread over classes and the labels that the run's judge gave; a larger sample
    holds the smaller one.
    """
    records = run.read(task.of)
    strata = {case.number: _stratum(task, case, records[case.number]) for case in run.cases}
    return spread({number: stratum for number, stratum in strata.items() if stratum[1]})[:size]


def _stratum(task: JudgeTask, case: Case, record: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    labels = labels_of(task, record)
    given = sorted({*labels.values()}) if task.values is VERDICTS else [labels[key] for key in sorted(labels)]
    return CLASS_OF[case.cause], tuple(given)


# ----------------------------------------------------------------------------------------------------------------------
# Labels against the truth


def cells_of(name: str, case: Case, record: Mapping[str, Any]) -> list[int] | None:
    """Of a record of a task that has figures, the cells of `judge_error.CELLS` in which its labels fall: one for each response,
    case or claim. None where a label is missing.
    """
    task = JUDGE_TASKS[name]
    given = [task.values.index(label) for label in labels_of(task, record).values()]
    truths = {"LCA": [0, 1], "DCG": [0]}.get(name) or [VERDICTS.index(verdict) for verdict in case.verdicts.values()]
    if len(given) != (2 if name == "DCG" else len(truths)):
        return None
    if name == "DCG":
        return [len(task.values) * given[0] + given[1]]
    return [len(task.values) * truth + label for truth, label in zip(truths, given, strict=True)]
