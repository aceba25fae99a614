"""What every stage begins with: settings and command line; the data file and its validation; history rendering; the
start of a run. The adapter and the checkpoints that a run stands on have modules of their own.

As a command (`python common.py [--dataset FILE]`) it validates a data file and prints what is in it.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from adapter import Channel, Connect, make_role
from categories import CLASS_OF, CLASSES
from checkpoints import Run, Step, code_hashes, is_device_name
from errors import DatasetError, SettingsError, command, notice
from plan import earlier_calls, plan_lines, read_prices
from records import ROLE_NAMES, VERDICTS, Case, History, Manifest, Message, Params, Roles
from replies import decode_utf8, is_blank

HERE = Path(__file__).resolve().parent

# ----------------------------------------------------------------------------------------------------------------------
# Settings and command line


class Settings(NamedTuple):
    """The options of a command, by option name; what each means stands in `OPTIONS`."""

    model: str | None
    user_model: str
    judge_model: str
    dataset: Path
    output_root: Path
    run_id: str
    limit: int | None
    temperature: float
    judge_temperature: float
    max_tokens: int
    eval_params: dict[str, Any]
    user_params: dict[str, Any]
    judge_params: dict[str, Any]
    timeout: float
    retries: int
    parallel: int
    record_blocked: bool
    plan: bool
    prices: Path | None


def _text(value: str) -> str:
    if any(unicodedata.category(char) == "Cs" for char in value):
        with contextlib.suppress(UnicodeError):
            value = os.fsencode(value).decode("utf-8")  # a C locale hands on the bytes of other letters as surrogates
    if is_blank(value) or any(unicodedata.category(char) in ("Cc", "Cs") for char in value.strip()):
        raise argparse.ArgumentTypeError("must be text, not blank, without control characters")
    return value.strip()


def _path(value: str) -> Path:
    if not value.strip():
        raise argparse.ArgumentTypeError("must be a path, not blank")
    return Path(value)


def at_least(kind: Callable[[str], float], least: float, what: str) -> Callable[[str], float]:
    def read(value: str) -> float:
        try:
            number = kind(value)
            usable = math.isfinite(number) and number >= least
        except (ValueError, OverflowError):
            usable = False
        if not usable:
            raise argparse.ArgumentTypeError(f"{value[:40]!r} is not {what} of at least {least}")
        return number

    return read


def _run_id(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value) or value.endswith(".") or is_device_name(value):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no folder name on every system: 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit, "
            "no dot at the end, no device name such as CON or nul.txt"
        )
    return value


def _params(value: str) -> dict[str, Any]:
    """Fields for a request: a JSON object without those that are the harness's own."""
    try:
        fields = json.loads(value, object_pairs_hook=_Object, parse_constant=float)
        faults = list(_json_faults(fields, ("it",)))
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(
            f'{value[:80]!r} is not JSON ({error}); write it like {{"reasoning_effort": "low"}}. PowerShell and cmd take '
            "quotes out of an option's value: there set the variable instead"
        ) from error
    if not isinstance(fields, dict):
        faults = ["it is not a JSON object"]
    else:
        faults += [f"{key} is the harness's own" for key in ("messages", "model", "stream") if key in fields]
        faults += ["extra_body is a word of the Python client; give its fields themselves"] * ("extra_body" in fields)
        faults += (
            ["n: there is one choice a call; null removes the field"] if fields.get("n", 1) not in (1, None) else []
        )
    if faults:
        raise argparse.ArgumentTypeError(f"{value[:80]!r}: {'; '.join(faults)}")
    plain: dict[str, Any] = json.loads(value)
    return plain


def _yes(value: str) -> bool:
    if value.lower() not in ("1", "yes", "true", "0", "no", "false"):
        raise argparse.ArgumentTypeError(f"{value[:40]!r} is neither yes nor no")
    return value.lower() in ("1", "yes", "true")


class Option(NamedTuple):
    flag: str
    variable: str
    read: Callable[[str], Any]
    default: Any
    help: str
    alone: Any = None
    """What the flag without a value stands for; None where it needs one."""


OPTIONS = (
    Option("--model", "LEXPILOT_MODEL", _text, None, "evaluated model, as its provider names it"),
    Option("--user-model", "LEXPILOT_USER_MODEL", _text, "DeepSeek-V4.1-Flash", "User Model"),
    Option("--judge-model", "LEXPILOT_JUDGE_MODEL", _text, "DeepSeek-R1", "judge"),
    Option("--dataset", "LEXPILOT_DATASET", _path, HERE / "LexPilot_release_multiturn.json", "data file"),
    Option("--output-root", "LEXPILOT_OUTPUT_ROOT", _path, HERE, "folder in which the output tree grows"),
    Option("--run-id", "LEXPILOT_RUN_ID", _run_id, "run1", "name of the repetition"),
    Option("--limit", "LEXPILOT_LIMIT", at_least(int, 1, "a whole number"), None, "only the first N cases"),
    Option("--temperature", "LEXPILOT_TEMPERATURE", at_least(float, 0, "a number"), 0.7, "of evaluated and User Model"),
    Option("--judge-temperature", "LEXPILOT_JUDGE_TEMPERATURE", at_least(float, 0, "a number"), 0.1, "of the judge"),
    Option("--max-tokens", "LEXPILOT_MAX_TOKENS", at_least(int, 1, "a whole number"), 8192, "token limit of a reply"),
    *(
        Option(
            f"--{role}-params",
            f"LEXPILOT_{role.upper()}_PARAMS",
            _params,
            {},
            f"JSON object of request fields of {whom}",
        )
        for role, whom in (("eval", "the evaluated model"), ("user", "the User Model"), ("judge", "the judge"))
    ),
    Option(
        "--timeout", "LEXPILOT_TIMEOUT", at_least(float, 0.001, "a number"), 120.0, "seconds a server may be silent"
    ),
    Option("--retries", "LEXPILOT_RETRIES", at_least(int, 0, "a whole number"), 3, "more tries that a call gets"),
    Option("--parallel", "LEXPILOT_PARALLEL", at_least(int, 1, "a whole number"), 8, "cases at once; 1 = in order"),
    Option("--record-blocked", "LEXPILOT_RECORD_BLOCKED", _yes, False, "record what a content filter refuses", True),
    Option("--plan", "LEXPILOT_PLAN", _yes, False, "ask nothing, print what there is to do", True),
    Option("--prices", "LEXPILOT_PRICES", _path, None, "JSON file of prices, for the plan's cost"),
)


def option_of(flag: str) -> Option:
    return next(option for option in OPTIONS if option.flag == flag)


def parser_for(prog: str, about: str, options: Sequence[Option]) -> argparse.ArgumentParser:
    """A command's parser; values not given stay None, for `value_of` to look elsewhere."""
    parser = argparse.ArgumentParser(prog=prog, description=about, allow_abbrev=False)
    for option in options:
        default = str(option.default).replace("%", "%%") if option.default not in (None, {}, False) else "none"
        parser.add_argument(
            option.flag,
            type=option.read,
            nargs="?" if option.alone else None,
            const=option.alone,
            help=f"{option.help} [{option.variable}; default: {default}]",
            metavar="X",
        )
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line's options; ends the process with 2 on wrong usage."""
    given = parser.parse_args(argv)
    for name, value in vars(given).items():
        if value == [] or str(value) == "--":  # what --option=-- comes to, by version of Python
            parser.error(f"argument --{name.replace('_', '-')}: '--' is no value")
    return given


def value_of(option: Option, given: argparse.Namespace, env: Mapping[str, str]) -> Any:
    """The option's value: as given, else from its variable unless that is blank, else the default."""
    value = getattr(given, option.flag[2:].replace("-", "_"))
    if value is not None:
        return value
    text = env.get(option.variable, "").strip()
    try:
        return option.read(text) if text else option.default
    except argparse.ArgumentTypeError as error:
        raise SettingsError(f"variable {option.variable}: {error}") from error


# ----------------------------------------------------------------------------------------------------------------------
# The data file


class Dataset(NamedTuple):
    cases: list[Case]
    sha256: str  # of the file's bytes


HALF = re.compile(r"\\u[dD][89a-fA-F]")  # a text without one escapes no half character, and need not be walked through
SURROGATE = re.compile("[\ud800-\udfff]")


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys stood there twice."""

    def __init__(self, pairs: list[tuple[str, Any]], those_at_fault: list[Any] | None = None) -> None:
        super().__init__(pairs)
        self.repeated: list[str] = []
        if len(self) < len(pairs):
            self.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            if those_at_fault is not None:
                those_at_fault.append(self)


def load_dataset(path: Path) -> Dataset:
    """A validated data file; DatasetError with all its faults (20 shown) if it has any."""
    try:
        raw = path.read_bytes()
        text = decode_utf8(raw)
        found: list[Any] = []  # objects with a key twice, numbers that are none

        def number(digits: str) -> float:
            value = float(digits)
            found.extend(() if math.isfinite(value) else (value,))
            return value

        value = json.loads(
            text,
            object_pairs_hook=lambda pairs: _Object(pairs, found),
            parse_float=number,
            parse_constant=number,
        )
        odd = bool(HALF.search(text) or found)
        faults = list(_file_faults(value, odd))
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); name a data file with --dataset") from error
    except RecursionError as error:
        raise DatasetError(f"{path}: nested too deeply to be a data file") from error
    except ValueError as error:
        raise DatasetError(f"{path}: not a JSON data file: {error}") from error
    if faults:
        shown = "".join(f"\n  {fault}" for fault in faults[:20])
        rest = f"\n  … and {len(faults) - 20} more" if len(faults) > 20 else ""
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise DatasetError(f"{path}: {count}; mend them in the file:{shown}{rest}")
    return Dataset([_case(case) for case in value], hashlib.sha256(raw).hexdigest())


def _case(case: Mapping[str, Any]) -> Case:
    details = case["key_details"]
    if isinstance(details, dict):
        details = [f"{focal}：{detail}" for focal, given in details.items() for detail in _listed(given)]
    return Case(
        case["case_number"],
        case["cause_of_action"],
        case["plaintiff_type"],
        _listed(case["focal_point"]),
        _listed(details),
        dict(case["result_dict"]),
        *(
            [Message(role=message["role"], content=message["content"]) for message in case[key]]
            for key in ("complete_consultation", "underspecified_consultation")
        ),
    )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _file_faults(value: Any, odd: bool) -> Iterator[str]:
    """All that is wrong with a data file; `odd` is whether it may hold what JSON's grammar lets pass."""
    if not isinstance(value, list) or not value:
        yield "the file is not an array of at least one case"
        return
    numbers = Counter(c["case_number"] for c in value if isinstance(c, dict) and _is_text(c.get("case_number")))
    for position, case in enumerate(value, 1):
        number = case.get("case_number") if isinstance(case, dict) else None
        where = f"case {position} ({number})" if _is_text(number) else f"case {position}"
        yield from (f"{where}, {fault}" for fault in (*(_json_faults(case, ()) if odd else ()), *_case_faults(case)))
        if _is_text(number) and numbers[number] > 1:
            yield f"{where}, case_number: stands {numbers[number]} times in the file"


def _json_faults(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """What JSON's grammar lets pass: repeated keys, numbers that are none, half characters."""
    where = ".".join(path) or "case"
    if isinstance(value, _Object):
        yield from (f"{where}: the key {key!r} stands more than once" for key in value.repeated)
        for key, item in value.items():
            yield from _json_faults(key, (f"{where}: a key",))
            yield from _json_faults(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value, 1):
            yield from _json_faults(item, (*path[:-1], f"{path[-1] if path else ''}[{position}]"))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{where}: {value} is not a number that JSON knows"
    elif isinstance(value, str) and SURROGATE.search(value):
        yield f"{where}: holds half a character (a lone surrogate)"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not is_blank(value)


def _is_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list) and bool(value) and all(map(_is_text, value)))


def _case_faults(case: Any) -> Iterator[str]:
    if not isinstance(case, dict):
        yield "is not an object"
        return
    for key in ("case_number", "cause_of_action", "plaintiff_type"):
        if not _is_text(case.get(key)):
            yield f"{key}: missing, or not a non-blank string"
    cause = case.get("cause_of_action")
    if _is_text(cause) and cause not in CLASS_OF:
        yield f"cause_of_action: {cause!r} is in no class; see categories.py"
    if not _is_texts(case.get("focal_point")):
        yield "focal_point: missing, or not a non-blank string or non-empty array of them"
    details = case.get("key_details")
    by_focal = isinstance(details, dict) and details and all(_is_text(k) and _is_texts(v) for k, v in details.items())
    if not by_focal and not _is_texts(details):
        yield "key_details: missing, or not a non-blank string, a non-empty array of them, or an object of these"
    results = case.get("result_dict")
    if not isinstance(results, dict) or not results:
        yield "result_dict: missing, or not an object with at least one claim"
    else:
        for claim, verdict in results.items():
            if not _is_text(claim):
                yield "result_dict: a claim is blank"
            if verdict not in VERDICTS:
                yield f"result_dict: the verdict {verdict!r} of {claim!r} is none of {'、'.join(VERDICTS)}"
    histories = [case.get("complete_consultation"), case.get("underspecified_consultation")]
    for key, history in zip(("complete_consultation", "underspecified_consultation"), histories, strict=True):
        yield from (f"{key}: {fault}" for fault in _history_faults(history))
    lengths = [len(history) for history in histories if isinstance(history, list)]
    if len(lengths) == 2 and lengths[0] != lengths[1]:
        yield f"underspecified_consultation: has {lengths[1]} messages, the complete one {lengths[0]}"


def _history_faults(history: Any) -> Iterator[str]:
    if not isinstance(history, list) or not history:
        yield "missing, or not a non-empty array of messages"
        return
    for position, message in enumerate(history, 1):
        expected = "user" if position % 2 else "assistant"
        if not isinstance(message, dict):
            yield f"message {position} is not an object"
            continue
        if message.get("role") != expected:
            yield f"message {position} has the role {message.get('role')!r}; user and assistant alternate, user first"
        if not _is_text(message.get("content")):
            yield f"message {position} has no content, or it is blank"
    if len(history) % 2 == 0:
        yield "ends with the assistant; the last message must be the user's"


# ----------------------------------------------------------------------------------------------------------------------
# History rendering


def render(history: History) -> str:
    """A history as the text of a prompt's history slot: every message, in order, unchanged."""
    return "\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in history)


def numbered(items: Sequence[str]) -> str:
    """Texts as a list numbered from 1, one a line."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def quoted(text: str) -> str:
    """A text that a judge is to judge, between marks that bear 64 bits of its own hash: who wants a text with its own closing
    mark in it has to try 2^64.
    """
    mark = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"[引文 {mark} 开始]\n{text}\n[引文 {mark} 结束]"


# ----------------------------------------------------------------------------------------------------------------------
# A stage from its command line on


def conduct(
    argv: Sequence[str] | None,
    connect: Connect,
    script: str,
    about: str,
    steps: Sequence[Step],
    env: Mapping[str, str] = os.environ,
) -> None:
    """Do the steps of the run that a stage's command line names; with --plan only say what they would take.

    Raises SettingsError, DatasetError, CheckpointError, and what the models come to.
    """
    given = parse(parser_for(script, about, OPTIONS), argv)
    settings = Settings(*(value_of(option, given, env) for option in OPTIONS))
    dataset = load_dataset(settings.dataset)
    run = make_run(settings, dataset, connect, env)
    run.check_settings()
    if settings.plan:
        prices = read_prices(settings.prices) if settings.prices else {}
        left = [(step.name, *run.left(step)) for step in steps]
        records = earlier_calls(run, dataset.cases, [step.name for step in steps])
        print(*plan_lines(left, run, records, prices), sep="\n")
        return
    carry_out(run, steps)


def carry_out(run: Run, steps: Sequence[Step]) -> None:
    """Do a run's steps, after all that can fail before a paid call."""
    prepare(run, steps)
    try:
        for step in steps:
            run.each_case(step)
    finally:
        run.close()


def prepare(run: Run, steps: Sequence[Step]) -> None:
    """Read the files of the steps, say whom they will ask and make the clients: all that can fail before a paid call.

    The files that the steps are made from must be complete, those that they write may be begun.
    """
    written = [step.name for step in steps]
    made_from = [source for name in written for source in run.files.artifacts[name].made_from]
    for source in made_from:
        if source not in written:
            run.read(source)
    unfinished = [step for step in steps if run.to_do(step.name)]
    for name in ROLE_NAMES:
        if any(name in step.roles for step in steps):
            role = run.channels[name].role
            params = f", {json.dumps(role.params, ensure_ascii=False)}" if role.params else ""
            notice(
                f"{role}, temperature {role.temperature:g}, up to {role.max_tokens} tokens{params}, "
                f"key from {role.key_source}"
            )
    for channel in run.channels.values():
        if any(channel.role.name in step.roles for step in unfinished):
            _ = channel.send


def chosen_model(model: str | None) -> str:
    """The evaluated model; SettingsError if none is named."""
    if model is None:
        raise SettingsError("no evaluated model is chosen; give --model or set LEXPILOT_MODEL")
    return model


def make_run(settings: Settings, dataset: Dataset, connect: Connect, env: Mapping[str, str]) -> Run:
    """The run that the settings describe; nothing of it is read yet. SettingsError without an evaluated model."""
    models = Roles(evaluated=chosen_model(settings.model), user=settings.user_model, judge=settings.judge_model)
    params = Params(evaluated=settings.eval_params, user=settings.user_params, judge=settings.judge_params)
    roles = {
        name: make_role(
            name,
            models[name],
            settings.judge_temperature if name == "judge" else settings.temperature,
            settings.max_tokens,
            settings.timeout,
            env,
            params[name],
        )
        for name in ROLE_NAMES
    }
    cases = dataset.cases[: settings.limit]
    manifest = Manifest(
        run_id=settings.run_id,
        dataset_sha256=dataset.sha256,
        cases=[case.number for case in cases],
        code_sha256=code_hashes(),
        models=models,
        endpoints=Roles(
            evaluated=roles["evaluated"].endpoint, user=roles["user"].endpoint, judge=roles["judge"].endpoint
        ),
        temperature=settings.temperature,
        judge_temperature=settings.judge_temperature,
        max_tokens=settings.max_tokens,
        params=params,
    )
    channels = [Channel(role, connect, settings.retries, settings.parallel) for role in roles.values()]
    return Run(settings.output_root, manifest, cases, channels, settings.parallel, settings.record_blocked)


# ----------------------------------------------------------------------------------------------------------------------
# The command: what a data file holds


def describe(dataset: Dataset) -> str:
    """A data file's figures as lines of text: sizes, classes, message counts, verdicts, hash."""
    cases = dataset.cases
    classes = Counter(CLASS_OF[case.cause] for case in cases)
    lengths = Counter(len(case.complete) for case in cases)
    verdicts = Counter[str](verdict for case in cases for verdict in case.verdicts.values())
    claims = sum(verdicts.values())
    return "\n".join(
        (
            f"cases      {len(cases)}",
            f"histories  {2 * len(cases)}",
            f"causes     {len({case.cause for case in cases})}",
            *(f"class      {classes[name]:4}  {name}" for name in CLASSES),
            *(
                f"messages   {count:4} pairs of histories with {length} each"
                for length, count in sorted(lengths.items())
            ),
            *(f"verdict    {verdicts[v]:4} of {claims} claims ({verdicts[v] / claims:.1%})  {v}" for v in VERDICTS),
            f"sha256     {dataset.sha256}",
        )
    )


def dataset_of(prog: str, about: str, argv: Sequence[str] | None) -> Dataset:
    """The data file for a command that takes no option but `--dataset`."""
    option = option_of("--dataset")
    return load_dataset(value_of(option, parse(parser_for(prog, about, [option]), argv), os.environ))


def main(argv: Sequence[str] | None = None) -> None:
    print(describe(dataset_of("common.py", "Validate a data file and print what is in it.", argv)))


if __name__ == "__main__":
    command(main)
