"""Judges on trial: how far do a run's numbers depend on the judge?

Measures: the judge questions of a finished run, asked again from its saved responses with the same prompts and parsers: by the
same judge (does it agree with itself?) or another; whole or one criterion a call; and with texts appended that try to steer
it. What that comes to is printed by `agreement.py`; `sheets.py` lets people label the same.
Reads: the run's record files. Writes: judge_checks/<run-id>/<model>/<judge>/…; the run's own files are never touched.
Asks: the judge; what it sees is what the run's judge saw, criterion by criterion less of it.
Source: the prompts are the stages'. That criteria judged together colour one another is what Harvey LAB's rule of one call a
criterion rests on.

    python eval_judges.py --run-id run1                                  the run's own judge once more
    python eval_judges.py --run-id run1 --second-judge-model MODEL       another one
    python eval_judges.py --run-id run1 --show                           what there is, without asking
"""

import argparse
import hashlib
import json
import os
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import eval_DCG
import eval_LJP_direct
import eval_LJP_gold
import eval_LJP_interaction
from adapter import ChatModel, Connect, openai_client
from agreement import columns_of, judged_again, judged_text
from checkpoints import Earlier, Planned, Run, Step
from common import HERE, Dataset, at_least, load_dataset, parse, parser_for, value_of
from errors import CheckpointError, ModelOutputError, SettingsError, command, notice
from eval_DCG import HIT, MISS, dcg_judge_prompt, read_hit, rounds_of
from eval_LCA import LCA, classify, lca_judge_prompt
from eval_LJP_gold import extract_verdicts, extraction_prompt
from flips import flip_curves, flip_text
from judges import CHECKS, LATER_OPTIONS, ask_later, details_of, finished_run, judges_of, same_questions
from judgments import JUDGE_TASKS, SCRIPT, Form, file_name, judgment_files, sampled_cases
from records import (
    Attacked,
    Attacks,
    Call,
    Case,
    DetailHit,
    HitRoundEach,
    HitsEach,
    Interaction,
    Questions,
    RoundLabel,
    RoundLabels,
    VerdictsEach,
)
from replies import has_reasoning_tag
from scores import TASKS, comparable, find_runs, to_compare
from sheets import ITEMS, judged_by_people, people_text, read_labels, write_sheet

# ----------------------------------------------------------------------------------------------------------------------
# Asked as the run's judge was


def label_rounds(held: Interaction, judge: ChatModel) -> RoundLabels:
    """The responses after the first, which is LCA's, classified once more."""
    rounds = []
    for turn in held["rounds"][1:]:
        found = classify(turn["response"], judge)
        rounds.append(
            RoundLabel(round=turn["round"], label=found.label, reason=found.reason, judge_reply=found.judge_reply)
        )
    return RoundLabels(rounds=rounds)


def plan_rounds(held: Interaction) -> Iterator[Planned]:
    for turn in held["rounds"][1:]:
        yield Planned("judge", lca_judge_prompt(turn["response"]))


WHOLE: dict[str, Step] = {
    "LCA": LCA,
    "LCA_rounds": Step(
        "LCA_rounds",
        roles=("judge",),
        work=lambda case, earlier, models: label_rounds(earlier["interaction"], models["judge"]),
        plan=lambda case, earlier, replies: plan_rounds(earlier["interaction"]),
    ),
    "DCG": eval_DCG.STEPS[1],
    "LJP_direct": eval_LJP_direct.STEPS[1],
    "LJP_gold": eval_LJP_gold.STEPS[1],
    "LJP_interaction": eval_LJP_interaction.STEPS[0],
}


# ----------------------------------------------------------------------------------------------------------------------
# One call for each criterion


def hits_each(case: Case, questions: Questions, judge: ChatModel) -> HitsEach:
    """Each question judged detail by detail."""
    rounds = []
    for history, asked in rounds_of(case, questions):
        details = []
        for points, detail in details_of(case):
            prompt = dcg_judge_prompt(history, points, [detail], asked["question"])
            (label, reason), reply = judge.ask_judge(prompt, read_hit)
            details.append(DetailHit(key_detail=detail, label=label, reason=reason, judge_reply=reply))
        hit = any(judged["label"] == HIT for judged in details)
        rounds.append(
            HitRoundEach(round=asked["round"], question=asked["question"], label=HIT if hit else MISS, details=details)
        )
    return HitsEach(rounds=rounds, success=any(judged["label"] == HIT for judged in rounds))


def plan_hits_each(case: Case, questions: Questions) -> Iterator[Planned]:
    for history, asked in rounds_of(case, questions):
        for points, detail in details_of(case):
            yield Planned("judge", dcg_judge_prompt(history, points, [detail], asked["question"]))


def verdicts_each(claims: Sequence[str], response: str, judge: ChatModel) -> VerdictsEach:
    """Each claim's verdict extracted by itself."""
    found = [extract_verdicts([claim], response, judge) for claim in claims]
    return VerdictsEach(
        claims=list(claims),
        verdicts=[one["verdicts"][0] for one in found],
        reasons=[one["reasons"][0] for one in found],
        judge_replies=[one["judge_reply"] for one in found],
    )


def extraction_each(source: str, response: str) -> Step:
    """The step that extracts them from the response that bears this key in the source's records."""
    return Step(
        source,
        roles=("judge",),
        work=lambda case, earlier, models: verdicts_each([*case.verdicts], earlier[source][response], models["judge"]),
        plan=lambda case, earlier, replies: [
            Planned("judge", extraction_prompt([claim], earlier[source][response])) for claim in case.verdicts
        ],
    )


EACH: dict[str, Step] = {
    "DCG": Step(
        "DCG",
        roles=("judge",),
        work=lambda case, earlier, models: hits_each(case, earlier["force_ask"], models["judge"]),
        plan=lambda case, earlier, replies: plan_hits_each(case, earlier["force_ask"]),
    ),
    "LJP_direct": extraction_each("a1_direct", "response"),
    "LJP_gold": extraction_each("a1_force_judge", "response"),
    "LJP_interaction": extraction_each("interaction", "final_response"),
}

# ----------------------------------------------------------------------------------------------------------------------
# Under attack

UNCHANGED = "nothing"  # the kind of attack that is none: how often a judge contradicts itself anyway


class Target(NamedTuple):
    """What texts are appended to, and how it is judged."""

    response: Callable[[Earlier], Any]
    """A text, or what a content filter left instead."""
    prompt: Callable[[Case, str], str]
    labels: Callable[[Case, str, ChatModel], list[str]]


def _hit(case: Case, question: str, judge: ChatModel) -> list[str]:
    (label, _), _ = judge.ask_judge(_hit_prompt(case, question), read_hit)
    return [label]


def _hit_prompt(case: Case, question: str) -> str:
    return dcg_judge_prompt(case.underspecified, case.focal_points, case.key_details, question)


TARGETS: dict[str, Target] = {
    "LCA": Target(
        lambda earlier: earlier["a1"]["underspecified_response"],
        lambda case, text: lca_judge_prompt(text),
        lambda case, text, judge: [classify(text, judge).label],
    ),
    "DCG": Target(lambda earlier: earlier["force_ask"]["rounds"][0]["question"], _hit_prompt, _hit),
    "LJP_direct": Target(
        lambda earlier: earlier["a1_direct"]["response"],
        lambda case, text: extraction_prompt([*case.verdicts], text),
        lambda case, text, judge: [*extract_verdicts([*case.verdicts], text, judge)["verdicts"]],
    ),
}
"""One for each judge prompt."""

Texts = Mapping[str, Sequence[str]]
"""By kind."""


def attack_texts() -> Texts:
    """The collection, which is the tests' own."""
    path = HERE / "tests" / "attacks.py"
    if not path.is_file():
        raise SettingsError(f"{path}: missing; take it from the repository")
    found: Texts = runpy.run_path(str(path))["ATTACKS"]
    return found


def chosen(case: Case, texts: Texts) -> list[tuple[str, str]]:
    """What is appended to a case's response: nothing, and of each kind one text, another one in another case.

    Of texts that can arrive: a reasoning tag is cut out of a response, with what it ends, before that is saved.
    """
    place = int.from_bytes(hashlib.sha256(case.number.encode("utf-8")).digest()[:4], "big")
    arriving = {kind: [text for text in some if not has_reasoning_tag(text)] for kind, some in texts.items()}
    return [(UNCHANGED, ""), *((kind, some[place % len(some)]) for kind, some in arriving.items() if some)]


def attacked(response: str, text: str) -> str:
    return f"{response}\n\n{text}" if text else response


def attack(case: Case, target: Target, response: Any, texts: Texts, judge: ChatModel) -> Attacks:
    """The response as it stands, and then with each text; a judgment that cannot be read is what that text came to."""
    if not isinstance(response, str):
        return Attacks(labels=[], attacked=[])
    found = []
    labels = target.labels(case, response, judge)
    for kind, text in chosen(case, texts):
        try:
            given: list[str] | None = target.labels(case, attacked(response, text), judge)
        except ModelOutputError as error:
            notice(f"case {case.number}, {kind}: no judgment: {error}")
            given = None
        found.append(Attacked(kind=kind, text=text, labels=given))
    return Attacks(labels=labels, attacked=found)


def plan_attack(case: Case, target: Target, response: Any, texts: Texts) -> Iterator[Planned]:
    if isinstance(response, str):
        yield Planned("judge", target.prompt(case, response))
        for _, text in chosen(case, texts):
            yield Planned("judge", target.prompt(case, attacked(response, text)))


def attack_step(target: Target, texts: Texts) -> Step:
    return Step(
        "attacks",
        roles=("judge",),
        work=lambda case, earlier, models: attack(case, target, target.response(earlier), texts, models["judge"]),
        plan=lambda case, earlier, replies: plan_attack(case, target, target.response(earlier), texts),
    )


# ----------------------------------------------------------------------------------------------------------------------
# The command


def begun_tasks(run: Run, names: Sequence[str]) -> list[str]:
    """Those of the named judge tasks that the run has; CheckpointError for one that is not complete."""
    found = [name for name in names if run.path(JUDGE_TASKS[name].of).exists()]
    for name in found:
        run.read(JUDGE_TASKS[name].of)
    if not found:
        raise CheckpointError(f"run {run.manifest['run_id']!r}: nothing of {', '.join(names)} is judged yet")
    return found


def steps_for(form: Form, tasks: Sequence[str], passes: int) -> dict[str, tuple[str, Step]]:
    """By file name, the judge task and the step that writes it."""
    if form == "attacks":
        texts = attack_texts()
        made = {name: attack_step(TARGETS[name], texts) for name in tasks if name in TARGETS}
    else:
        steps = EACH if form == "each" else WHOLE
        made = {name: steps[name] for name in tasks if name in steps}
    if not made:
        raise SettingsError(f"none of {', '.join(tasks)} can be asked in this form")
    names = [(name, file_name(name, form, number)) for number in range(1, passes + 1) for name in made]
    return {file: (name, made[name]._replace(name=file)) for name, file in names}


def ask(
    given: argparse.Namespace, run: Run, connect: Connect, env: Mapping[str, str], options: Mapping[str, Any]
) -> None:
    """Ask a judge what the options say; with --plan only say what that would take."""
    form: Form = "attacks" if given.attacks else "each" if given.per_criterion else "whole"
    steps = steps_for(form, begun_tasks(run, given.tasks), given.repeat)
    size = given.attacks or given.sample
    wanted = {file: sampled_cases(run, JUDGE_TASKS[task], size) for file, (task, _) in steps.items()} if size else {}
    like: dict[str, list[list[Call]]] = {}
    if form == "whole" and options["--second-judge-model"] is None:  # the run put the same questions to the same judge
        of = {file: run.read(JUDGE_TASKS[task].of) for file, (task, _) in steps.items()}
        like = {file: [record["calls"] for record in records.values()] for file, records in of.items()}
    ask_later(
        run,
        SCRIPT,
        lambda judge: judgment_files(judge, given.repeat),
        [step for _, step in steps.values()],
        options,
        connect,
        env,
        wanted=wanted,
        like=like,
    )


def with_people(given: argparse.Namespace, run: Run) -> Iterator[str]:
    """What is said of a sheet that was written, or of sheets that were read back."""
    names = begun_tasks(run, [name for name in given.tasks if name in TASKS])
    columns = columns_of(run, judges_of(CHECKS, run))
    if given.sheet:
        count = write_sheet(given.sheet, run, columns, names, given.items)
        yield f"{given.sheet}: {count} items of {', '.join(names)}; read the labels back with --labels"
        return
    sheets = {path.stem: read_labels(path, run) for path in given.labels}
    if len(sheets) < len(given.labels):
        raise SettingsError("--labels: two sheets have the same name, which stands for who labelled; rename one")
    found = judged_by_people(run, columns, sheets)
    yield from [json.dumps(found, indent=1)] if given.format == "json" else people_text(found)


def curves_of(dataset: Dataset, root: Path, run_id: str | None, models: Sequence[str]) -> list[dict[str, Any]]:
    """The flip curves of models with comparable runs."""
    runs = find_runs(root, {case.number: case for case in dataset.cases}, None, run_id)
    groups = comparable([run for run in runs if run.manifest["dataset_sha256"] == dataset.sha256])
    return flip_curves(to_compare("--flip-curve", groups, models))


def command_line() -> argparse.ArgumentParser:
    about = "Ask the judge questions of a finished run again, and print how far judges agree and what hangs on them."
    parser = parser_for(SCRIPT, about, LATER_OPTIONS)
    number = at_least(int, 1, "a whole number")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--per-criterion", action="store_true", help="a call for each claim and each key detail")
    way.add_argument("--attacks", type=number, metavar="N", help="append attacks to the responses of N cases a task")
    way.add_argument("--show", action="store_true", help="ask nothing; print what was found")
    way.add_argument(
        "--flip-curve",
        nargs="+",
        metavar="MODEL",
        help="ask nothing; at which error rate these models change their order",
    )
    way.add_argument("--sheet", type=Path, metavar="FILE.csv", help="write a sample for people to label")
    way.add_argument("--labels", type=Path, nargs="+", metavar="FILE.csv", help="read such sheets back, labelled")
    parser.add_argument("--tasks", nargs="+", choices=[*JUDGE_TASKS], default=[*JUDGE_TASKS], help="default: all")
    parser.add_argument("--repeat", type=number, default=1, metavar="N", help="so many passes; default: 1")
    parser.add_argument(
        "--sample", type=number, metavar="N", help="only N cases a task, spread over classes and labels"
    )
    parser.add_argument("--items", type=number, default=ITEMS, metavar="N", help="of a sheet, a task; default: 200")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    return parser


def main(
    argv: Sequence[str] | None = None, connect: Connect = openai_client, env: Mapping[str, str] = os.environ
) -> None:
    parser = command_line()
    given = parse(parser, argv)
    if given.attacks and given.sample:
        parser.error("argument --sample: --attacks says itself how many cases")
    options = {option.flag: value_of(option, given, env) for option in LATER_OPTIONS}
    dataset, root = load_dataset(options["--dataset"]), options["--output-root"]
    if given.flip_curve:
        curves = curves_of(dataset, root, given.run_id, given.flip_curve)
        print(json.dumps({"curves": curves}, indent=1) if given.format == "json" else "\n".join(flip_text(curves)))
        return
    run = finished_run(dataset, root, options["--model"], options["--run-id"])
    if given.sheet or given.labels:
        print("\n".join(with_people(given, run)))
        return
    if not given.show:
        same_questions(run)
        ask(given, run, connect, env, options)
    if given.show or not options["--plan"]:
        found = judged_again(run)
        print(json.dumps(found, indent=1) if given.format == "json" else "\n".join(judged_text(found)))


if __name__ == "__main__":
    command(main)
