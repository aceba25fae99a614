"""A run on disk: its manifest and its record files, read with every check and written without a half line.

One function reads all files and one writes them; `records.ARTIFACTS` says where each lies and what stands in it.
Nothing is ever repaired or dropped: a file that is not wholly valid stops the command with file and line.
"""

import errno
import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adapter import ChatModel, RoleName
from errors import CheckpointError, LexPilotError, SettingsError, notice
from parallel import side_by_side
from records import ARTIFACTS, MANIFEST_PATH, Case, Line, Manifest, shape_fault
from replies import decode_utf8

HERE = Path(__file__).resolve().parent

# ----------------------------------------------------------------------------------------------------------------------
# Names and hashes

# Whatever decides what is asked, of whom, and how an answer is read; reporting may change under a finished run.
CODE_FILES = (
    *("adapter.py", "checkpoints.py", "common.py", "parallel.py", "records.py", "replies.py", "LexAwN_gen.py"),
    *("eval_LCA.py", "eval_DCG.py", "eval_LJP_direct.py", "eval_LJP_gold.py", "eval_LJP_interaction.py"),
)


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON value, whatever its key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def code_hashes() -> dict[str, str]:
    """SHA-256 of each file of the protocol, prompts included, whatever its newline style."""
    return {name: hashlib.sha256((HERE / name).read_bytes().replace(b"\r\n", b"\n")).hexdigest() for name in CODE_FILES}


def is_device_name(name: str) -> bool:
    """Whether Windows takes a file name for a device, which it does whatever follows the first dot."""
    return bool(re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", name.partition(".")[0], re.IGNORECASE))


def folder_name(model: str) -> str:
    """A folder name for a model that is valid on every system and differs for each exact name."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", model)[:80]
    if readable.startswith(".") or is_device_name(readable):
        readable = f"_{readable}"
    return f"{readable}-{hashlib.sha256(model.encode('utf-8')).hexdigest()[:8]}"


# ----------------------------------------------------------------------------------------------------------------------
# The manifest


def read_manifest(path: Path) -> Manifest:
    """A run's manifest; CheckpointError if the file is none, or is another run's or model's than its folders say."""
    try:
        value = json.loads(decode_utf8(path.read_bytes()))
        fault = shape_fault(value, Manifest, "it")
    except (OSError, ValueError, RecursionError) as error:
        fault = str(error)
    if fault:
        raise CheckpointError(f"{path}: not a manifest: {fault}; restore it from a copy, or take a new --run-id")
    manifest: Manifest = value
    model = manifest["models"]["evaluated"]
    if (manifest["run_id"], folder_name(model)) != (path.parts[-3], path.parts[-2]):
        raise CheckpointError(f"{path}: belongs to run {manifest['run_id']!r} of {model!r}; restore what was here")
    return manifest


def differences(one: Manifest, other: Manifest) -> list[tuple[str, str, str]]:
    """Each setting in which two manifests differ, with both values as shown to people; the run id does not count."""

    def flat(manifest: Manifest) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for key, value in manifest.items():
            parts |= (
                {f"{key} {part}": item for part, item in value.items()} if isinstance(value, dict) else {key: value}
            )
        return parts

    def shown(value: Any) -> str:
        if isinstance(value, list):
            return f"{len(value)} ({', '.join(value[:3])}, …)"
        return f"{value[:12]}…" if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else str(value)

    ones, others = flat(one), flat(other)
    return [
        (key, shown(ones.get(key, "none")), shown(others.get(key, "none")))
        for key in {**ones, **others}
        if key != "run_id" and ones.get(key) != others.get(key)
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Appending


def append(path: Path, line: bytes) -> None:
    """Append in one write and sync to disk; if that fails the file is cut back to what it was and OSError raised."""
    with path.open("ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:  # a short write means a full disk: the next one says so
                rest = rest[file.write(rest) :]
            _sync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
        notice(f"this drive cannot sync ({error.strerror}): a power cut may lose the last records")


# ----------------------------------------------------------------------------------------------------------------------
# The run

SEAL = b', "record_sha256": "'
MEND = "restore the line from a copy, or delete it whole: then its case alone is asked again"


class Run:
    """The files of one run of one model, and the models that a stage may ask.

    Each record is sealed with the run's manifest, its file's name and its own bytes, so that a changed, moved or foreign
    line shows, and bears the hash of what it was made from, so that a stale one does.
    """

    def __init__(
        self, root: Path, manifest: Manifest, cases: Sequence[Case], models: Sequence[ChatModel] = (), parallel: int = 1
    ) -> None:
        self.root, self.manifest, self.cases, self.parallel = root, manifest, cases, parallel
        self.models = {model.role.name: model for model in models}
        self.folder = f"{manifest['run_id']}/{folder_name(manifest['models']['evaluated'])}"
        self.identity = fingerprint(manifest)
        self.records: dict[str, dict[str, Any]] = {}  # by file, then by case number: what was read or written last
        self.lock = threading.Lock()

    def path(self, name: str) -> Path:
        """Where a record file of this run lies."""
        return self.root / ARTIFACTS[name].path.format(run=self.folder)

    def model(self, name: RoleName) -> ChatModel:
        return self.models[name]

    def check_settings(self) -> None:
        """SettingsError if this run id was begun with other settings, or is one already but for its case."""
        run_id = self.manifest["run_id"]
        runs = self.root / "runs"
        twins = [path.name for path in runs.iterdir() if path.name != run_id] if runs.is_dir() else []
        if twin := next((name for name in twins if name.casefold() == run_id.casefold()), None):
            raise SettingsError(
                f"--run-id {run_id}: {runs} holds {twin!r}, the same name on many systems; take another"
            )
        path = self.root / MANIFEST_PATH.format(run=self.folder)
        if path.exists():
            if changed := differences(read_manifest(path), self.manifest):
                raise SettingsError(
                    f"run {run_id!r} was begun with other settings; restore them, or take a new --run-id "
                    "(of files the bytes count, of the data file line ends too):"
                    + "".join(f"\n  {setting}: {then} then, {now} now" for setting, then, now in changed)
                )
        elif begun := [name for name in ARTIFACTS if self.path(name).exists()]:
            raise CheckpointError(
                f"{path}: missing, though {self.path(begun[0])} exists; restore it, or move that away"
            )

    # Reading

    def load(self, name: str) -> dict[str, Any]:
        """The records of a file by case number, each held against every check; none if the file does not exist yet."""
        for source in ARTIFACTS[name].made_from:
            if source not in self.records:
                self.load(source)
        path = self.path(name)
        try:
            raw = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error
        lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        unfinished = lines.pop()
        cases = {case.number: case for case in self.cases}
        found: dict[str, Any] = {}
        for number, line in enumerate(lines, 1):
            record, fault = self._read_line(name, line)
            if not fault:
                fault = self._misplaced(name, record, cases, found)
            if fault:
                raise CheckpointError(f"{path}:{number}: {fault}; {MEND}")
            found[record["case_number"]] = record
        if unfinished:
            whole = self._read_line(name, unfinished)[1] is None
            told = "lacks only its line end; add that" if whole else "is unfinished; delete it"
            raise CheckpointError(f"{path}:{len(lines) + 1}: the last line {told}, then run again")
        self.records[name] = found
        return found

    def _read_line(self, name: str, line: bytes) -> tuple[dict[str, Any], str | None]:
        """A line's record, and what is wrong with the line by itself."""
        try:
            record = json.loads(decode_utf8(line))
        except (ValueError, RecursionError) as error:
            return {}, f"not one JSON object: {error}"
        if not isinstance(record, dict):
            return {}, "not a JSON object"
        head = {key: record[key] for key in Line.__annotations__ if key in record}
        body = {key: record[key] for key in record if key not in head}
        fault = shape_fault(head, Line, "the record") or shape_fault(body, ARTIFACTS[name].shape, "the record")
        if not fault and self._sealed(name, line.rpartition(SEAL)[0]) != line:
            fault = "the line was changed, or is another file's or run's"
            if line.endswith(b"\r"):
                fault = "its line end was changed to CRLF; save the whole file with LF"
        return record, fault

    def _misplaced(
        self, name: str, record: Mapping[str, Any], cases: Mapping[str, Case], found: Mapping[str, Any]
    ) -> str | None:
        """What is wrong with a record's place in this file and run."""
        number = record["case_number"]
        if number not in cases:
            return f"case {number!r} is none of this run's"
        if number in found:
            return f"case {number!r} stands here a second time"
        inputs = self._input_hash(name, cases[number])
        if inputs is not None and inputs != record["input_sha256"]:
            sources = " and ".join(self.path(source).name for source in ARTIFACTS[name].made_from)
            return f"case {number!r} was made from another record of {sources}" if sources else "the case has changed"
        return None

    def _sealed(self, name: str, body: bytes) -> bytes:
        """A record's line from its bytes up to the seal, which is the hash of run, file and those bytes."""
        seal = hashlib.sha256(f"{self.identity} {name} ".encode() + body).hexdigest()
        return body + SEAL + seal.encode() + b'"}'

    def _input_hash(self, name: str, case: Case) -> str | None:
        """The hash of what the case's record is made from; None while an earlier record of it is missing."""
        earlier = [self.records[source].get(case.number) for source in ARTIFACTS[name].made_from]
        if None in earlier:
            return None
        return fingerprint([case, [record["record_sha256"] for record in earlier if record]])

    def read(self, name: str) -> dict[str, Any]:
        """The records of a finished file by case number; CheckpointError with the command to run if it, or a file it
        was made from, lacks a case.
        """
        for source in ARTIFACTS[name].made_from:
            self.read(source)
        found = self.records[name] if name in self.records else self.load(name)
        missing = [case.number for case in self.cases if case.number not in found]
        if missing:
            raise CheckpointError(
                f"{self.path(name)}: lacks {len(missing)} of {len(self.cases)} cases "
                f"({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}); first run: "
                f"python {ARTIFACTS[name].command} --run-id {self.manifest['run_id']}"
            )
        return found

    # Writing

    def each_case(self, name: str, work: Callable[[Case], Mapping[str, Any]]) -> None:
        """Do the work for each case that has no record in the file yet, several at once, and save each when done.

        The first error stops new cases; those in flight finish and are saved; then it is raised, with the case named.
        """
        done = self.load(name)
        path = self.path(name)
        to_do = [case for case in self.cases if case.number not in done]
        notice(f"{path.name}: {len(self.cases)} cases, {len(done)} done, {len(to_do)} to do")
        if not to_do:
            return
        for model in self.models.values():
            _ = model.send  # a client that cannot be made shows before anything is paid
        self._prepare(path.parent)

        def job(case: Case) -> None:
            try:
                made = work(case)
            except LexPilotError as error:
                raise type(error)(f"{ARTIFACTS[name].command}, case {case.number}, {path.name}: {error}") from error
            self._save(name, case, made)

        side_by_side(to_do, job, self.parallel, path.name)

    def _prepare(self, folder: Path) -> None:
        """Make the folder and write into it once, so that a full stop comes before the first paid call."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as trial:
                trial.write(b"x")
        except OSError as error:
            raise SettingsError(f"{folder}: cannot be written ({error.strerror}); see --output-root") from error

    def _save(self, name: str, case: Case, made: Mapping[str, Any]) -> None:
        path = self.path(name)
        with self.lock:
            record = {
                "case_number": case.number,
                "cause_of_action": case.cause,
                "input_sha256": self._input_hash(name, case),
                **made,
            }
            line = self._sealed(name, json.dumps(record, ensure_ascii=False)[:-1].encode("utf-8"))
            try:
                self._write_manifest()
                append(path, line + b"\n")
            except OSError as error:
                raise CheckpointError(
                    f"{path}: the record of case {case.number} cannot be saved ({error.strerror}); the file is as it was "
                    "before. Make room, then run the same command again"
                ) from error
            self.records[name][case.number] = json.loads(line)

    def _write_manifest(self) -> None:
        """The manifest goes with the run's first record: a command that bought nothing binds nobody to its settings."""
        path = self.root / MANIFEST_PATH.format(run=self.folder)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            append(fresh, json.dumps(self.manifest, ensure_ascii=False, indent=1).encode("utf-8") + b"\n")
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
