"""Asking a judge about a run that is finished: which run, which judge, and where the answers lie.

For `eval_judges.py` and `audit_user.py`. The answers lie in `<kind>/<run-id>/<model>/<judge>/`, a folder for each judge and
its settings. They are made from the run's records, bear their hashes and are resumed like them; the run's own files are only
read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from adapter import Channel, Connect, Role, make_role
from checkpoints import (
    CODE_FILES,
    Files,
    Run,
    Step,
    code_hashes,
    fingerprint,
    folder_name,
    read_manifest,
    read_settings,
)
from common import Dataset, carry_out, chosen_model, option_of
from errors import CheckpointError, SettingsError
from plan import plan_lines, read_prices
from records import ARTIFACTS, MANIFEST_PATH, Artifact, Call, Case, CheckSettings, JudgeSettings
from scores import opened, run_folders

# ----------------------------------------------------------------------------------------------------------------------
# The run and the judge

# Prompts and parsers of all judge questions, and what fills them.
JUDGING = ("common.py", "replies.py", "eval_LCA.py", "eval_DCG.py", "eval_LJP_gold.py")
SECOND = (
    option_of("--judge-model")._replace(
        flag="--second-judge-model",
        variable="LEXPILOT_SECOND_JUDGE_MODEL",
        default=None,
        help="another judge; none is the run's own once more",
    ),
    option_of("--judge-params")._replace(
        flag="--second-judge-params",
        variable="LEXPILOT_SECOND_JUDGE_PARAMS",
        help="JSON object of request fields of the second judge",
    ),
)


def finished_run(dataset: Dataset, root: Path, model: str | None, run_id: str) -> Run:
    """A run with what it was made from; SettingsError where there is none, or it was made with other data or prompts."""
    path = root / MANIFEST_PATH.format(run=f"{run_id}/{folder_name(chosen_model(model))}")
    if not path.exists():
        there = ", ".join(" of ".join(folder) for folder in run_folders(root)[:20])
        raise SettingsError(f"{path}: there is no run {run_id!r} of {model!r}; there are: {there or 'none'}")
    manifest = read_manifest(path)
    if manifest["dataset_sha256"] != dataset.sha256:
        raise SettingsError(f"run {run_id!r} was made with another data file; give that with --dataset")
    return opened(root, manifest, {case.number: case for case in dataset.cases})


def same_questions(run: Run) -> None:
    """SettingsError if prompts or parsers of judges are not those of the run any more."""
    now = code_hashes()
    changed = [name for name in JUDGING if run.manifest["code_sha256"].get(name) != now[name]]
    if changed:
        raise SettingsError(
            f"run {run.manifest['run_id']!r} was judged by other versions of {', '.join(changed)}: what is asked now would be "
            "another question; ask it with the version of this project that made the run"
        )


def details_of(case: Case) -> list[tuple[list[str], str]]:
    """Each key detail with its focal point; with all of them where a file does not pair the two."""
    points, details = case.focal_points, case.key_details
    if len(points) == len(details):
        return [([point], detail) for point, detail in zip(points, details, strict=True)]
    return [(points, detail) for detail in details]


def judge_for(run: Run, model: str | None, params: Mapping[str, Any], timeout: float, env: Mapping[str, str]) -> Role:
    """The second judge if one is named, else the run's own; all that is not said is as the run has it."""
    made = run.manifest
    temperature, max_tokens = made["judge_temperature"], made["max_tokens"]
    if model is not None:
        return make_role("judge", model, temperature, max_tokens, timeout, env, params, "SECOND_JUDGE")
    if params:
        raise SettingsError("--second-judge-params: there is no second judge; name it with --second-judge-model")
    own = make_role("judge", made["models"]["judge"], temperature, max_tokens, timeout, env, made["params"]["judge"])
    if own.endpoint != made["endpoints"]["judge"]:
        raise SettingsError(
            f"the judge of run {made['run_id']!r} was asked at {made['endpoints']['judge']}, and here is {own.endpoint}: set "
            "LEXPILOT_JUDGE_BASE_URL, or name a judge of another place with --second-judge-model"
        )
    return own


# ----------------------------------------------------------------------------------------------------------------------
# Where the answers lie

CHECKS, AUDITS = "judge_checks", "user_audits"  # kinds of answers


def _judge_name(judge: JudgeSettings) -> str:
    return folder_name(judge["model"], fingerprint(judge))


def later_files(
    kind: str, script: str, judge: JudgeSettings, written: Mapping[str, tuple[type, tuple[str, ...]]]
) -> Files:
    """The files of a judge's answers about a run; `written` has shape and sources of each."""
    folder = f"{kind}/{{run}}/{_judge_name(judge)}"
    own = {name: Artifact(f"{folder}/{name}.jsonl", shape, script, of) for name, (shape, of) in written.items()}
    anew = "move the folder of this judge away"
    return Files(
        {**ARTIFACTS, **own},
        [*own],
        f"{folder}/manifest.json",
        f"{folder}/lock",
        f"{folder}/{{name}}.open.jsonl",
        partial(read_settings, shape=CheckSettings, anew=anew),
        f"{kind} of run",
        anew,
    )


def later_run(
    run: Run,
    files: Files,
    settings: CheckSettings,
    channels: Sequence[Channel] = (),
    parallel: int = 1,
    record_blocked: bool = False,
    wanted: Mapping[str, Sequence[str]] | None = None,
) -> Run:
    """These files, with the records that were read of the run they are about."""
    later = Run(
        run.root, run.manifest, run.cases, channels, parallel, record_blocked, run.case_hashes, files, settings, wanted
    )
    later.borrow(run)
    return later


def settings_of(run: Run, role: Role, script: str) -> CheckSettings:
    judge = JudgeSettings(
        model=role.model,
        endpoint=role.endpoint,
        temperature=role.temperature,
        max_tokens=role.max_tokens,
        params=dict(role.params),
    )
    return CheckSettings(
        run_sha256=fingerprint(run.manifest), code_sha256=code_hashes(names=(*CODE_FILES, script)), judge=judge
    )


def _folder(kind: str, run: Run, settings: CheckSettings) -> Path:
    return run.root / kind / run.folder / _judge_name(settings["judge"])


def judges_of(kind: str, run: Run) -> list[CheckSettings]:
    """The settings of all judges that were asked about a run later, in the order of their folders; CheckpointError for one
    that was asked about another run of this name.
    """
    found = []
    for path in sorted((run.root / kind / run.folder).glob("*/manifest.json")):
        settings = cast(CheckSettings, read_settings(path, CheckSettings, "move that folder away"))
        if settings["run_sha256"] != fingerprint(run.manifest):
            raise CheckpointError(f"{path}: is about another run of this name; move its folder away")
        if _folder(kind, run, settings) != path.parent:
            raise CheckpointError(f"{path}: belongs to another judge than its folder says; restore what was here")
        found.append(settings)
    return found


def file_stems(kind: str, run: Run, settings: CheckSettings) -> list[str]:
    """The names of a judge's record files about a run."""
    return sorted(path.stem for path in _folder(kind, run, settings).glob("*.jsonl"))


# ----------------------------------------------------------------------------------------------------------------------
# Asking

LATER = ("--model", "--dataset", "--output-root", "--run-id", "--timeout", "--retries", "--parallel")
LATER_OPTIONS = (*map(option_of, LATER), *SECOND, *map(option_of, ("--record-blocked", "--plan", "--prices")))
"""The options of a command that asks about a finished run."""


def ask_later(
    run: Run,
    script: str,
    files: Callable[[JudgeSettings], Files],
    steps: Sequence[Step],
    options: Mapping[str, Any],
    connect: Connect,
    env: Mapping[str, str],
    *,
    wanted: Mapping[str, Sequence[str]] | None = None,
    like: Mapping[str, Sequence[Sequence[Call]]] | None = None,
) -> None:
    """Do the steps of a command for a finished run, with the judge that its options name; with --plan only say what that would
    take. `options` are values by flag, `wanted` the cases of a file if not all, `like` the calls of records like a file's.

    Raises what `Run.each_case` does, SettingsError for a judge that cannot be asked, and if the files were begun otherwise.
    """
    role = judge_for(run, options["--second-judge-model"], options["--second-judge-params"], options["--timeout"], env)
    settings, parallel = settings_of(run, role, script), options["--parallel"]
    channel = Channel(role, connect, options["--retries"], parallel)
    later = later_run(run, files(settings["judge"]), settings, [channel], parallel, options["--record-blocked"], wanted)
    later.check_settings()
    if options["--plan"]:
        prices = read_prices(options["--prices"]) if options["--prices"] else {}
        left = [(step.name, *later.left(step)) for step in steps]
        own = {step.name: [record["calls"] for record in later.load(step.name).values()] for step in steps}
        alike = {name: [*calls, *(like or {}).get(name, ())] for name, calls in own.items()}
        print(*plan_lines(left, later, alike, prices), sep="\n")
        return
    carry_out(later, steps)
