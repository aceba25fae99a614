"""From record files to what each case of a run came to: the tasks, the groups of comparable runs, and their reading.

Reads all record files of the runs below an output root, many runs in several processes at once. A case's outcomes are pairs
of truth and prediction as small integers; what a content filter blocked counts as the evaluated model's failure where its
own provider did it, and else is missing. Comparable are runs that differ in the run id alone: same data, cases, code,
models, endpoints, settings.
Source: the paper's Section 6 and Appendix E.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from categories import CLASS_OF, CLASSES
from checkpoints import Run, differences, fingerprint, folder_name, read_manifest
from errors import CheckpointError, SettingsError, uncollected
from eval_DCG import HIT
from eval_LCA import CLARIFICATION
from metrics import RATIOS, Counts, Figures, case_sums, dcg_figures, farthest, lca_figures, ljp_figures
from records import ARTIFACTS, MANIFEST_PATH, RUN_FILES, VERDICTS, Case, Manifest, RoleName

A = TypeVar("A")
T = TypeVar("T")

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


Facts = dict[str, int] | None
"""What a case has of the further `metrics.SUMS`; None where that is missing."""


def dcg_facts(record: Any, earlier: Mapping[str, Any]) -> Facts:
    """Which question was the first to hit; none where the evaluated model was blocked."""
    if blocked_by(record) not in (None, "evaluated"):
        return None
    hits = [judged["label"] == HIT for judged in record.get("rounds", ())]
    return {"first": int(hits[:1] == [True]), "second": int(hits == [False, True])}


def interaction_facts(record: Any, earlier: Mapping[str, Any]) -> Facts:
    """How many questions were asked before the final response, and whether that is a judgment; nothing where none was held."""
    held = earlier["interaction"]
    if "blocked" in held:
        return {}
    asked = sum(turn["user_reply"] is not None for turn in held["rounds"])
    return {"held": 1, "asked": asked, "judged": int(held["stop_reason"] == "judgment")}


def no_facts(record: Any, earlier: Mapping[str, Any]) -> Facts:
    return {}


class Task(NamedTuple):
    begun: tuple[str, ...]
    """The task is begun when one of these files exists; the last one holds its results."""
    outcomes: Callable[[Case, Any], list[Outcome]]
    figures: Callable[[Counts], Figures]
    size: int
    """Of what there is to predict, how many values there are."""
    unit: str
    ratios: tuple[str, ...] = ()
    """Further figures, of `metrics.RATIOS`."""
    facts: Callable[[Any, Mapping[str, Any]], Facts] = no_facts
    """What these count in a case, from its record and the earlier ones."""
    floors: Mapping[str, int | None] = {}
    """Trivial policies: what each always predicts; None for the commonest truth."""

    @property
    def headline(self) -> list[str]:
        """The names of the figures without the further ones."""
        return [*self.figures([[1] * self.size] * self.size)]


ASKING = {"always ask": 1, "always answer": 0}
WHOLE, GUESSING = ("all_right",), {"commonest verdict": None}
DCG_ROUNDS, INTERACTION = ("first_hit", "second_hit"), ("all_right", "questions", "judged")

TASKS: dict[str, Task] = {
    "LCA": Task(("a1", "lca"), lca_outcomes, lca_figures, 2, "cases", floors=ASKING),
    "DCG": Task(("force_ask", "dcg"), dcg_outcomes, dcg_figures, 2, "cases", DCG_ROUNDS, dcg_facts),
    "LJP_direct": Task(("a1_direct", "ljp_direct"), ljp_outcomes, ljp_figures, 3, "claims", WHOLE, floors=GUESSING),
    "LJP_gold": Task(("a1_force_judge", "ljp_gold"), ljp_outcomes, ljp_figures, 3, "claims", WHOLE, floors=GUESSING),
    "LJP_interaction": Task(
        ("ljp_interaction",), ljp_outcomes, ljp_figures, 3, "claims", INTERACTION, interaction_facts, GUESSING
    ),
}

# ----------------------------------------------------------------------------------------------------------------------
# Groups of comparable runs


def run_folders(root: Path) -> list[tuple[str, str]]:
    """Run id and model folder of all that lies below an output root, in natural order: run2 before run10."""
    if root.exists() and not root.is_dir():
        raise SettingsError(f"{root}: not a folder; see --output-root")
    found = {(path.parts[-3], path.parts[-2]) for text in RUN_FILES for path in root.glob(text.format(run="*/*"))}

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


def opened(root: Path, manifest: Manifest, cases: Mapping[str, Case], hashes: dict[str, str] | None = None) -> Run:
    """The run of a manifest, with those of its cases that the data file has; `hashes` of these cases are shared."""
    chosen = [cases[number] for number in manifest["cases"] if number in cases]
    return Run(root, manifest, chosen, case_hashes=hashes)


def comparable(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups within which only the run id differs, in order of first appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(fingerprint({**run.manifest, "run_id": ""}), []).append(run)
    return list(groups.values())


def to_compare(option: str, groups: Sequence[list[Run]], models: Sequence[str]) -> list[list[Run]]:
    """For a command's option, each model's group, all of the same settings but for what concerns the evaluated model alone; SettingsError that names
    the settings if there are none, or more than one choice.
    """

    def shared(group: Sequence[Run]) -> str:
        manifest = group[0].manifest
        others = {key: {**manifest[key], "evaluated": ""} for key in ("models", "endpoints", "params")}
        return fingerprint({**manifest, **others, "run_id": ""})

    if len(models) < 2 or len({*models}) < len(models):
        raise SettingsError(f"{option}: name at least two models, each once")
    found: dict[str, dict[str, list[list[Run]]]] = {model: {} for model in models}
    for group in groups:
        model = group[0].manifest["models"]["evaluated"]
        if model in found:
            found[model].setdefault(shared(group), []).append(group)
    if lacking := [model for model in models if not found[model]]:
        there = sorted({group[0].manifest["models"]["evaluated"] for group in groups})
        raise SettingsError(
            f"{option}: no runs of {', '.join(lacking)}; there are runs of {', '.join(there) or 'none'}"
        )
    keys = [key for key in found[models[0]] if all(key in of for of in found.values())]
    choices = {model: [group for key in keys for group in found[model][key]] for model in models}
    if keys and all(len(choice) == 1 for choice in choices.values()):
        return [choice[0] for choice in choices.values()]
    if keys:
        several = next(choice for choice in choices.values() if len(choice) > 1)
        one, other = several[0][0].manifest, several[1][0].manifest
        settings = ", ".join(f"{key}: {here} or {there}" for key, here, there in differences(one, other))
        raise SettingsError(
            f"{option}: more than one choice for {one['models']['evaluated']} ({settings}); select with --run-id, or "
            "keep the others below another --output-root"
        )
    one, other = (next(iter(found[model].values()))[0][0].manifest for model in models[:2])
    settings = "".join(
        f"\n  {key}: {here} for {models[0]}, {there} for {models[1]}"
        for key, here, there in differences(one, other)
        if not key.endswith(" evaluated")
    )
    raise SettingsError(f"{option}: no runs that differ in the evaluated model alone; they differ in{settings}")


class Scored(NamedTuple):
    """A case of a task."""

    outcomes: list[Outcome]
    blocked: bool
    """Whether a failure here is a content filter's and not an answer."""
    cause: str
    facts: Facts
    whole: list[int] | None
    """What the case adds up to; None where something is missing."""

    def sums(self, size: int, ratio: str = "", best: bool = False) -> list[int]:
        """What the case adds up to; where something is missing, at the worst or the best for one of the ratios."""
        if self.whole is not None:
            return self.whole
        pairs = [
            (truth, (truth if best else farthest(truth, size)) if prediction is None else prediction)
            for truth, prediction in self.outcomes
        ]
        facts = self.facts if self.facts is not None else dict.fromkeys(RATIOS[ratio][0], 1) if best else {}
        return case_sums(pairs, **facts)


def whole_sums(outcomes: Sequence[Outcome], facts: Mapping[str, int]) -> list[int] | None:
    """What a case adds up to; None where an outcome is missing."""
    known = [(truth, prediction) for truth, prediction in outcomes if prediction is not None]
    return case_sums(known, **facts) if len(known) == len(outcomes) else None


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
        earlier = {source: run.records[source][case.number] for source in ARTIFACTS[task.begun[-1]].made_from}
        facts = task.facts(record, earlier)
        outcomes = task.outcomes(case, record)
        whole = None if facts is None else whole_sums(outcomes, facts)
        scored = Scored(outcomes, blocked, case.cause, facts, whole)
        by_class.setdefault(CLASS_OF[case.cause], []).append(scored)
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
    workers = 1 if len(runs) <= FEW else processors
    found = in_processes(partial(read_scores, root, cases), portions, workers)
    scores: list[Scores] = [{} for _ in runs]
    for place, portion in enumerate(sound(found)):
        scores[place // len(PORTIONS)] |= portion
    return scores


def read_scores(
    root: Path, cases: Mapping[str, Case], portions: Sequence[Portion], hashes: dict[str, str] | None = None
) -> list[Scores | CheckpointError]:
    """The scores of some tasks of runs, or what is wrong with one; the cases' hashes are kept for all of them."""
    found: list[Scores | CheckpointError] = []
    hashes = {} if hashes is None else hashes
    with uncollected():
        for manifest, names in portions:
            run = opened(root, manifest, cases, hashes)  # goes with its records, which are too many to be kept
            try:
                found.append({name: task_cases(run, name, TASKS[name]) for name in names})
            except CheckpointError as error:
                found.append(error)
    return found


def sound(found: Sequence[T | CheckpointError]) -> list[T]:
    """What was found, if nothing was wrong with any; else the first fault is raised."""
    for one in found:
        if isinstance(one, CheckpointError):
            raise one
    return [one for one in found if not isinstance(one, CheckpointError)]


def in_processes(job: Callable[[Sequence[A]], list[T]], items: Sequence[A], workers: int | None) -> list[T]:
    """What a job makes of some items, in their order: by so many processes at most, each with a share of the items, and by
    this one alone where that is one or unknown, or where others cannot be had or are ended from outside.
    """
    workers = min(workers or 1, len(items), MOST)
    if workers <= 1:
        return job(items)
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # here, since a few runs are read without it
    from multiprocessing import get_context

    ignoring = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; this one answers
    try:
        # Spawned, as on every system: a fork would copy locks that other threads of this process hold.
        with ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, ignoring) as pool:
            parts = [pool.submit(job, items[at::workers]) for at in range(workers)]
            shares = [part.result() for part in parts]
    except (BrokenExecutor, OSError):
        return job(items)
    return [shares[place % workers][place // workers] for place in range(len(items))]
