"""What is known of a run's judge and User Model, in a line each: it stands under every table of results.

Both make the numbers as much as the evaluated model does. From what `eval_judges.py` and `audit_user.py` left on disk; where
they left nothing, that is what is said.
"""

from collections.abc import Iterator, Sequence

from agreement import pairs_of
from checkpoints import Run
from errors import CheckpointError
from judges import AUDITS, CHECKS, judges_of
from judgments import JUDGE_TASKS, judgments_of
from metrics import agreements, confusion

MORE = "How far these figures depend on both, eval_judges.py and audit_user.py tell."


def trust_lines(runs: Sequence[Run]) -> list[str]:
    """Of comparable runs, what is known of their judge and of their User Model; what is wrong with those files, if anything is."""
    lines = []
    for title, told in (("Judge", judge_lines), ("User Model", user_lines)):
        try:
            lines += [f"{title}: {line}" for line in told(runs)]
        except CheckpointError as error:
            lines.append(f"{title}: what was asked later cannot be told: {error}")
    return lines


def judge_lines(runs: Sequence[Run]) -> Iterator[str]:
    import numpy as np

    pairs: dict[str, dict[str, list[tuple[int, int]]]] = {}
    asked: dict[str, list[str]] = {}
    for run in runs:
        for settings in judges_of(CHECKS, run):
            for one in judgments_of(run, settings):
                if one.form != "attacks":
                    own = (run.manifest["models"]["judge"], run.manifest["endpoints"]["judge"])
                    model = "itself" if (one.judge["model"], one.judge["endpoint"]) == own else one.judge["model"]
                    who = f"{model}{', one call a criterion,' if one.form == 'each' else ''}"
                    task = JUDGE_TASKS[one.task]
                    both = pairs_of(task, run.read(task.of), one.records).values()
                    of_task = pairs.setdefault(who, {}).setdefault(one.task, [])
                    of_task += [(mine, other) for some in both for mine, other, _ in some]
                    asked.setdefault(who, []).append(run.manifest["run_id"])
    for who, by_task in pairs.items():
        shown = []
        for name, some in by_task.items():
            if some:
                counts = np.array(confusion(some, len(JUDGE_TASKS[name].values)), dtype=float)
                found = agreements(counts)
                shown.append(f"{name} {found['raw']:.3f} ({found['ac1']:.3f})")
        yield f"agrees with {who} in {', '.join(dict.fromkeys(asked[who]))} on {', '.join(shown)} of the labels (AC1 in brackets)."
    if not pairs:
        yield "asked once, and nobody else was."


def user_lines(runs: Sequence[Run]) -> Iterator[str]:
    found: dict[str, list[dict[str, tuple[int, int]]]] = {}
    asked: dict[str, list[str]] = {}
    for run in runs:
        for settings in judges_of(AUDITS, run):
            from audit_user import judged_tallies  # here, since its patterns take long to compile

            who = settings["judge"]["model"]
            found.setdefault(who, []).extend(tally for _, tally in judged_tallies(run, settings)[0])
            asked.setdefault(who, []).append(run.manifest["run_id"])
    for who, tallies in found.items():
        shares = []
        for name in ("told when asked", "told unasked", "contradicted", "invented"):
            some, of = (sum(tally[name][place] for tally in tallies) for place in (0, 1))
            shares.append(f"{name} {some / of:.1%} of {of}" if of else f"{name} none of 0")
        yield f"of its replies' details, by {who} in {', '.join(dict.fromkeys(asked[who]))}: {', '.join(shares)}."
    if not found:
        yield "nobody looked at its replies."
