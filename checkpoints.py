"""A run on disk: its manifest and its record files, read with every check and written without a half line.

One function reads all files and one writes them; `records.ARTIFACTS` says where each lies and what stands in it. What is
asked about a finished run later (eval_judges.py, audit_user.py) lies in files of its own, made from the run's by the same means.
Nothing is ever repaired or dropped: a file that is not wholly valid stops the command with file and line.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from adapter import CaseLog, Channel, ChatModel
from errors import BlockedError, CheckpointError, LexPilotError, SettingsError, notice
from parallel import Turns, side_by_side
from records import (
    ARTIFACTS,
    JOURNAL_PATH,
    LOCK_PATH,
    MANIFEST_PATH,
    Answer,
    Artifact,
    Blocked,
    Call,
    Case,
    Manifest,
    RoleName,
    are_records,
    record_fault,
    shape_fault,
)
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


def code_hashes(folder: Path = HERE, names: Iterable[str] = CODE_FILES) -> dict[str, str]:
    """SHA-256 of each file of the protocol, prompts included, whatever its newline style."""
    return {name: hashlib.sha256((folder / name).read_bytes().replace(b"\r\n", b"\n")).hexdigest() for name in names}


def is_device_name(name: str) -> bool:
    """Whether Windows takes a file name for a device, which it does whatever follows the first dot."""
    return bool(re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", name.partition(".")[0], re.IGNORECASE))


def folder_name(model: str, identity: str | None = None) -> str:
    """A folder name for a model that is valid on every system and differs for each exact name, or each other identity."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", model)[:80]
    if readable.startswith(".") or is_device_name(readable):
        readable = f"_{readable}"
    return f"{readable}-{hashlib.sha256((identity or model).encode('utf-8')).hexdigest()[:8]}"


# ----------------------------------------------------------------------------------------------------------------------
# The manifest

NEW_RUN = "take a new --run-id"


def read_settings(path: Path, shape: type, anew: str) -> dict[str, Any]:
    """What a file of settings holds; CheckpointError if it is none of that shape, with how to begin `anew`."""
    try:
        value = json.loads(decode_utf8(path.read_bytes()))
        fault = shape_fault(value, shape, "it")
    except (OSError, ValueError, RecursionError) as error:
        fault = str(error)
    if fault:
        raise CheckpointError(f"{path}: not a manifest: {fault}; restore it from a copy, or {anew}")
    found: dict[str, Any] = value
    return found


def read_manifest(path: Path) -> Manifest:
    """A run's manifest; CheckpointError if the file is none, or is another run's or model's than its folders say."""
    manifest = cast(Manifest, read_settings(path, Manifest, NEW_RUN))
    model = manifest["models"]["evaluated"]
    if (manifest["run_id"], folder_name(model)) != (path.parts[-3], path.parts[-2]):
        raise CheckpointError(f"{path}: belongs to run {manifest['run_id']!r} of {model!r}; restore what was here")
    return manifest


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Each setting in which two manifests differ, with both values as shown to people; the run id does not count."""

    def flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
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
        if key != "run_id" and fingerprint(ones.get(key)) != fingerprint(others.get(key))  # to JSON 1 is not 1.0
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Appending


def append(file: io.FileIO, lines: bytes) -> None:
    """Append to a file opened for that; if it fails the file is cut back to what it was and OSError raised."""
    rest = memoryview(lines)
    try:
        while rest:  # a short write means a full disk: the next one says so
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(file.seek(0, os.SEEK_END) - (len(lines) - len(rest)))
        raise


class Journal:
    """A file of answers, opened when the first one comes and kept open: it has a line for each call.

    It is not synced: it is for what a kill would lose.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.file: io.FileIO | None = None

    def append(self, line: bytes) -> None:
        with self.lock:
            if self.file is None:
                self.file = self.path.open("ab", buffering=0)
            append(self.file, line + b"\n")

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


@dataclass
class Entry:
    """A line that a thread wants saved, and what became of it."""

    line: bytes
    settled: bool = False
    error: Exception | None = None


class SyncedFile:
    """A file to which threads append lines, each ended. One is saved when it is synced; one write and one sync serve all
    that came while the last ones went on.
    """

    def __init__(self, path: Path, sync: Callable[[int], object] = os.fsync) -> None:
        self.path, self.sync = path, sync
        self.entries = deque[Entry]()
        self.turn = threading.Lock()
        self.can_sync = True

    def append(self, line: bytes) -> None:
        """Append a line and wait until it is on the disk, or as far as the drive goes; OSError if it cannot be."""
        mine = Entry(line)
        self.entries.append(mine)
        with self.turn:
            if not mine.settled:
                self._settle([self.entries.popleft() for _ in range(len(self.entries))])
        if mine.error:
            raise mine.error

    def _settle(self, entries: Sequence[Entry]) -> None:
        error: Exception | None = None
        try:
            # Opened each time: a folder that another program keeps in step may have a new file under this name.
            with self.path.open("ab", buffering=0) as file:
                append(file, b"".join(entry.line + b"\n" for entry in entries))
                self._sync(file.fileno())
        except Exception as caught:  # whose thread it was is chance: each one raises it
            error = caught
        for entry in entries:
            entry.settled, entry.error = True, error

    def _sync(self, descriptor: int) -> None:
        if not self.can_sync:
            return
        try:
            self.sync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
                raise
            self.can_sync = False
            notice(f"{self.path}: this drive cannot sync ({error.strerror}): a power cut may lose the last records")


def _end_last_line(path: Path) -> None:
    """End a line that a kill or a power cut left unfinished, so that the next one stands by itself."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("ab", buffering=0) as file:
            append(file, b"\n")


# ----------------------------------------------------------------------------------------------------------------------
# Steps

Earlier = Mapping[str, Any]
"""A case's records in the files that a step's file is made from, by the names of `ARTIFACTS`."""
Models = Mapping[RoleName, ChatModel]


class Planned(NamedTuple):
    """A call that a case may still need."""

    role: RoleName
    prompt: str
    """Without the replies that go into it and are not written yet."""
    replies: int = 0
    """How many these are."""
    certain: bool = True
    """Whether it is made whatever the models answer."""


class Step(NamedTuple):
    """How one record file comes about, case by case."""

    name: str
    roles: tuple[RoleName, ...]
    work: Callable[[Case, Earlier, Models], Mapping[str, Any]]
    plan: Callable[[Case, Earlier, Sequence[str]], Iterable[Planned]]
    """The calls of a case in their order, given the replies to the first of them; an earlier record may be missing here."""


# ----------------------------------------------------------------------------------------------------------------------
# The run


def _block_in(earlier: Earlier) -> Blocked | None:
    """What blocked the first of a case's earlier records that are blocked: nothing can be made from it."""
    return next((Blocked(blocked=record["blocked"]) for record in earlier.values() if "blocked" in record), None)


def _status(channels: Collection[Channel]) -> Callable[[], str]:
    """What the progress line says of calls and tokens from now on."""
    began = time.monotonic()
    before = sum(channel.counts["calls"] for channel in channels)

    def status() -> str:
        counts = sum((channel.counts for channel in channels), Counter[str]())
        calls = counts["calls"] - before
        told = f"{counts['tokens']:,} tokens" if counts["tokens"] or not counts["untold"] else "tokens unknown"
        if counts["tokens"] and counts["untold"]:
            told += f" and those of {counts['untold']:,} calls"
        gates = {channel.role.name: channel.gate for channel in channels}
        throttled = [
            f"{role} {g.turns.limit} of {g.most} at once" for role, g in gates.items() if g.turns.limit < g.most
        ]
        return ", ".join([f"{calls / max(time.monotonic() - began, 0.001):.1f} calls/s", told, *throttled])

    return status


class Files(NamedTuple):
    """A set of record files and what they have in common. In each path {run} stands for <run-id>/<model>."""

    artifacts: Mapping[str, Artifact]
    """What is written here, and all that it is made from."""
    own: Collection[str]
    """The names of what is written here."""
    manifest: str
    lock: str
    journal: str
    """With {name} for that of the record file."""
    read: Callable[[Path], Mapping[str, Any]]
    """Reads the manifest."""
    title: str
    anew: str
    """How to begin with other settings."""


RUN = Files(ARTIFACTS, [*ARTIFACTS], MANIFEST_PATH, LOCK_PATH, JOURNAL_PATH, read_manifest, "run", NEW_RUN)

SEAL = b', "record_sha256": "'
CALLS = b', "calls": '  # can stand in no string, whose quotes are escaped


def _content_hash(line: bytes) -> str:
    """Of a record's line without what it took: the same answers make the same records again, however long they took."""
    return hashlib.sha256(line.rpartition(CALLS)[0]).hexdigest()


TOGETHER = 32  # records that are looked at together: few enough to be near the processor still
MEND = "restore the line from a copy, or delete it whole: then its case alone is asked again"


class Run:
    """The files of one run of one model, and the channels to the models that its steps may ask.

    Each record is sealed with the run's manifest, its file's name and its own bytes, so that a changed, moved or foreign
    line shows, and bears the hash of what it was made from, so that a stale one does.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        cases: Sequence[Case],
        channels: Iterable[Channel] = (),
        parallel: int = 1,
        record_blocked: bool = False,
        case_hashes: dict[str, str] | None = None,
        files: Files = RUN,
        settings: Mapping[str, Any] | None = None,
        wanted: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`settings` are what the files' own manifest holds, if they are not the run's; `wanted` has, by file, the numbers
        of the cases that are to be done, where these are not all.
        """
        self.root, self.manifest, self.cases, self.record_blocked = root, manifest, cases, record_blocked
        self.files, self.settings, self.wanted = files, manifest if settings is None else settings, wanted or {}
        self.channels = {channel.role.name: channel for channel in channels}
        self.places = Turns(parallel)
        self.folder = f"{manifest['run_id']}/{folder_name(manifest['models']['evaluated'])}"
        self.identity = fingerprint(self.settings)
        self.records: dict[str, dict[str, Any]] = {}  # by file, then by case number: what was read or written last
        self.lock = threading.Lock()
        self.guard: Any = None  # the file lock, once something is to be written
        self.contents: dict[str, dict[str, str]] = {}  # likewise, hashes of what the records say
        self.has_manifest = False  # as far as this command knows
        # By case number, as they are needed; runs of the same data file may share them.
        self.case_hashes = {} if case_hashes is None else case_hashes

    def path(self, name: str) -> Path:
        """Where a record file of this run lies."""
        return self.root / self.files.artifacts[name].path.format(run=self.folder)

    def journal(self, name: str) -> Path:
        """Where the answers to cases lie that have no record in the file yet."""
        return self.root / self.files.journal.format(run=self.folder, name=name)

    def borrow(self, other: "Run") -> None:
        """Take another run's records for those that these files are made from."""
        self.records |= other.records
        self.contents |= other.contents

    def check_settings(self) -> None:
        """SettingsError if this run id was begun with other settings, or is one already but for its case."""
        run_id = self.manifest["run_id"]
        runs = self.root / "runs"
        twins = [path.name for path in runs.iterdir() if path.name != run_id] if runs.is_dir() else []
        if twin := next((name for name in twins if name.casefold() == run_id.casefold()), None):
            raise SettingsError(
                f"--run-id {run_id}: {runs} holds {twin!r}, the same name on many systems; take another"
            )
        path = self.root / self.files.manifest.format(run=self.folder)
        if path.exists():
            if changed := differences(self.files.read(path), self.settings):
                raise SettingsError(
                    f"{self.files.title} {run_id!r} was begun with other settings; restore them, or {self.files.anew} "
                    "(of files the bytes count, of the data file line ends too):"
                    + "".join(f"\n  {setting}: {then} then, {now} now" for setting, then, now in changed)
                )
        elif begun := [
            file for name in self.files.own for file in (self.path(name), self.journal(name)) if file.exists()
        ]:
            raise CheckpointError(f"{path}: missing, though {begun[0]} exists; restore it, or move that away")

    # Reading

    def load(self, name: str) -> dict[str, Any]:
        """The records of a file by case number, each held against every check; none if the file does not exist yet."""
        for source in self.files.artifacts[name].made_from:
            if source not in self.records:
                self.load(source)
        path = self.path(name)
        try:
            raw = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error
        lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        unfinished = lines.pop()
        cases, shapes = {case.number: case for case in self.cases}, (self.files.artifacts[name].shape, Blocked)
        found: dict[str, Any] = {}
        contents: dict[str, str] = {}
        for number, (line, record, fault) in enumerate(self._read_lines(name, lines, shapes), 1):
            if not fault:
                fault = self._misplaced(name, record, cases, found)
            if fault:
                raise CheckpointError(f"{path}:{number}: {fault}; {MEND}")
            found[record["case_number"]] = record
            contents[record["case_number"]] = _content_hash(line)
        if unfinished:
            whole = self._read_line(name, unfinished, shapes)[1] is None
            told = "lacks only its line end; add that" if whole else "is unfinished; delete it"
            raise CheckpointError(f"{path}:{len(lines) + 1}: the last line {told}, then run again")
        self.records[name], self.contents[name] = found, contents
        return found

    def _read_lines(
        self, name: str, lines: Sequence[bytes], shapes: tuple[type, ...]
    ) -> Iterator[tuple[bytes, dict[str, Any], str | None]]:
        """Each line with what `_read_line` makes of it, which is asked only where not all is well."""
        for at in range(0, len(lines), TOGETHER):
            some = lines[at : at + TOGETHER]
            try:
                records = json.loads(decode_utf8(b"[%b]" % b",".join(some)))
            except (ValueError, RecursionError):
                records = []
            right = len(records) == len(some) and are_records(records, shapes)
            if right and all(self._is_sealed(name, line) for line in some):
                yield from ((line, record, None) for line, record in zip(some, records, strict=True))
            else:
                yield from ((line, *self._read_line(name, line, shapes)) for line in some)

    def _read_line(self, name: str, line: bytes, shapes: tuple[type, ...]) -> tuple[dict[str, Any], str | None]:
        """A line's record, and what is wrong with the line by itself."""
        try:
            record = json.loads(decode_utf8(line))
        except (ValueError, RecursionError) as error:
            return {}, f"not one JSON object: {error}"
        if not isinstance(record, dict):
            return {}, "not a JSON object"
        fault = record_fault(record, shapes)
        if not fault and not self._is_sealed(name, line):
            fault = "the line was changed, or is another file's or run's"
            if line.endswith(b"\r"):
                fault = "its line end was changed to CRLF; save the whole file with LF"
        return record, fault

    def _is_sealed(self, name: str, line: bytes) -> bool:
        return self._sealed(name, line.rpartition(SEAL)[0]) == line

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
            sources = " and ".join(self.path(source).name for source in self.files.artifacts[name].made_from)
            return f"case {number!r} was made from another record of {sources}" if sources else "the case has changed"
        return None

    def _sealed(self, name: str, body: bytes) -> bytes:
        """A record's line from its bytes up to the seal, which is the hash of run, file and those bytes."""
        seal = hashlib.sha256(f"{self.identity} {name} ".encode() + body).hexdigest()
        return body + SEAL + seal.encode() + b'"}'

    def _input_hash(self, name: str, case: Case) -> str | None:
        """The hash of what the case's record is made from; None while an earlier record of it is missing."""
        earlier = [self.contents[source].get(case.number) for source in self.files.artifacts[name].made_from]
        if None in earlier:
            return None
        if case.number not in self.case_hashes:
            self.case_hashes[case.number] = fingerprint(case)
        return hashlib.sha256(" ".join([self.case_hashes[case.number], *map(str, earlier)]).encode("ascii")).hexdigest()

    def read(self, name: str) -> dict[str, Any]:
        """The records of a finished file by case number; CheckpointError with the command to run if it, or a file it
        was made from, lacks a case.
        """
        for source in self.files.artifacts[name].made_from:
            self.read(source)
        found = self.records[name] if name in self.records else self.load(name)
        missing = [case.number for case in self.cases if case.number not in found]
        if missing:
            raise CheckpointError(
                f"{self.path(name)}: lacks {len(missing)} of {len(self.cases)} cases "
                f"({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}); first run: "
                f"python {self.files.artifacts[name].command} --run-id {self.manifest['run_id']}"
            )
        return found

    def forget(self) -> None:
        """Let go of what was read: the records of many runs do not fit into a small machine's memory at once."""
        self.records.clear()
        self.contents.clear()

    def _earlier(self, name: str, case: Case) -> Earlier:
        """What there is of a case in the files that this one is made from."""
        sources = self.files.artifacts[name].made_from
        return {source: self.records[source][case.number] for source in sources if case.number in self.records[source]}

    def left(self, step: Step) -> tuple[list[Case], list[Planned]]:
        """The cases that have no record of the step yet, and the calls that they may need besides those that were answered
        before an interruption; nothing is asked.
        """
        to_do = self.to_do(step.name)
        kept = self._answers(step.name, to_do)
        calls: list[Planned] = []
        for case in to_do:
            earlier = self._earlier(step.name, case)
            if not _block_in(earlier):
                replies = [answer["reply"] for answer in kept.get(case.number, ())]
                calls += list(step.plan(case, earlier, replies))[len(replies) :]
        return to_do, calls

    def _answers(self, name: str, to_do: Iterable[Case]) -> dict[str, list[dict[str, Any]]]:
        """The answers from before an interruption to cases that have no record in the file yet, by case number.

        Unlike a record a broken answer is no obstacle: its call is made again.
        """
        path = self.journal(name)
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error
        cases = {case.number: case for case in to_do}
        found: dict[str, list[dict[str, Any]]] = {}
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            answer, fault = self._read_line(f"{name}.open", line, (Answer,))
            if fault:
                notice(f"{path}:{number}: left out, so that this call is made again: {fault}")
            elif (case := cases.get(answer["case_number"])) and answer["input_sha256"] == self._input_hash(name, case):
                found.setdefault(case.number, []).append(answer)
        return found

    # Writing

    def each_case(self, step: Step) -> None:
        """Do the step's work for each case that has no record yet, several at once, and save each when done.

        The first error stops new cases; those in flight finish and are saved; then it is raised, with the case named.
        """
        name, path = step.name, self.path(step.name)
        for source in self.files.artifacts[name].made_from:
            self.read(source)
        to_do, asked = self.to_do(name, self.records.get(name)), len(self.asked(name))
        notice(f"{path.name}: {asked} cases, {asked - len(to_do)} done, {len(to_do)} to do")
        if to_do:
            self._prepare(path.parent)
            self._prepare(self.journal(name).parent)
            self._shut_others_out()
            to_do = self.to_do(name)  # once more: from now on nobody else writes
            kept = self._answers(name, to_do)
            _end_last_line(self.journal(name))
            file, status = SyncedFile(path), _status(self.channels.values())
            with contextlib.closing(Journal(self.journal(name))) as journal:

                def do(case: Case) -> None:
                    self._do(step, case, kept.get(case.number, ()), journal, file)

                side_by_side(to_do, do, self.places, path.name, status)
        with contextlib.suppress(OSError):  # left over it does no harm
            self.journal(name).unlink(missing_ok=True)

    def asked(self, name: str) -> list[Case]:
        """The cases that the file is to have."""
        return [case for case in self.cases if name not in self.wanted or case.number in self.wanted[name]]

    def to_do(self, name: str, done: Mapping[str, Any] | None = None) -> list[Case]:
        """Of these, the ones without a record in the file, or among those that were read from it."""
        if done is None:
            done = self.load(name)
        return [case for case in self.asked(name) if case.number not in done]

    def _do(
        self, step: Step, case: Case, kept: Sequence[Mapping[str, Any]], journal: Journal, file: SyncedFile
    ) -> None:
        """A case from its first call to its record."""
        name, earlier = step.name, self._earlier(step.name, case)
        inputs = self._input_hash(name, case)

        def keep(answer: Answer, calls: list[Call]) -> None:
            self._save(journal, case, self._line(f"{name}.open", case, inputs, answer, calls))

        log = CaseLog(kept, keep)
        models = {
            role: ChatModel(self.channels[role], log, self.places.aside, self.record_blocked) for role in step.roles
        }
        try:
            made = _block_in(earlier) or step.work(case, earlier, models)
        except LexPilotError as error:
            if not (isinstance(error, BlockedError) and self.record_blocked):
                error.args = (
                    f"{self.files.artifacts[name].command}, case {case.number}, {self.path(name).name}: {error}",
                )
                raise
            notice(f"{self.path(name).name}, case {case.number}: recorded as blocked: {error}")
            made = Blocked(blocked=error.block)
        line = self._line(name, case, inputs, made, log.calls)
        self._save(file, case, line)
        self.contents[name][case.number] = _content_hash(line)
        self.records[name][case.number] = json.loads(line)

    def _shut_others_out(self) -> None:
        """Hold the run's lock until `close`; SettingsError while another command does."""
        if self.guard is not None:
            return
        import filelock  # here, so that commands that write nothing start without it

        path = self.root / self.files.lock.format(run=self.folder)
        guard = filelock.FileLock(path)
        try:
            guard.acquire(blocking=False)
            self.guard = guard
        except filelock.Timeout:
            raise SettingsError(
                f"{self.files.title} {self.manifest['run_id']!r}: another command is writing to it (it holds {path}); "
                f"wait until it is done or stop it, or {self.files.anew}"
            ) from None
        except (OSError, NotImplementedError) as error:
            notice(f"{path}: this drive knows no locks ({error}); see to it that no second command writes to this run")

    def close(self) -> None:
        """Let other commands write again."""
        if self.guard is not None:
            self.guard.release()
            self.guard = None

    def _prepare(self, folder: Path) -> None:
        """Make the folder and write into it once, so that a full stop comes before the first paid call."""
        import tempfile  # here, so that what writes nothing starts without it

        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as trial:
                trial.write(b"x")
        except OSError as error:
            raise SettingsError(f"{folder}: cannot be written ({error.strerror}); see --output-root") from error

    def _line(self, seal: str, case: Case, inputs: str | None, made: Mapping[str, Any], calls: Sequence[Call]) -> bytes:
        """A case's record, or an answer to it, as a line under a seal of that name."""
        head = {"case_number": case.number, "cause_of_action": case.cause, "input_sha256": inputs}
        record = json.dumps({**head, **made, "calls": calls}, ensure_ascii=False)
        return self._sealed(seal, record[:-1].encode("utf-8"))

    def _save(self, file: Journal | SyncedFile, case: Case, line: bytes) -> None:
        try:
            if not self.has_manifest:
                self._write_manifest()
            file.append(line)
        except OSError as error:
            raise CheckpointError(
                f"{file.path}: the record of case {case.number} cannot be saved ({error.strerror}); no half line is "
                "left. Make room, then run the same command again"
            ) from error

    def _write_manifest(self) -> None:
        """The manifest goes with the run's first record: a command that bought nothing binds nobody to its settings."""
        path = self.root / self.files.manifest.format(run=self.folder)
        fresh = path.with_name(f"{path.name}.new")  # one name, so that a killed command's is taken over by the next
        with self.lock:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh.unlink(missing_ok=True)
                try:
                    whole = json.dumps(self.settings, ensure_ascii=False, indent=1).encode("utf-8")
                    SyncedFile(fresh).append(whole)
                    fresh.replace(path)
                finally:
                    fresh.unlink(missing_ok=True)
            self.has_manifest = True
