"""What kills, full disks, faults and Ctrl-C leave of a run: the same records, and nothing paid for twice but what was in
flight.

    python -B tests/chaos.py [--kills N] [--seed N] [--only kills|torn|interrupt|disk|faults]

Runs the real stages against the simulated provider, whose answers depend on key, model and prompt alone, and holds every
output root against that of an uninterrupted run. `chaos(SHORT)` is the form for the test suite. POSIX only.

A call is in flight from its request until its answer is saved, and each of the --parallel threads has at most one. So an
answer is paid for twice without excuse if it was asked for again
 - though no process was killed or out of disk space after it,
 - though at some moment after it all --parallel threads were busy with other calls: then its own thread had gone on, or
 - though it stood in a call journal.
"""

import argparse
import contextlib
import errno
import functools
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a test finds the project from where it is run

import simulate
from common import HERE, load_dataset
from policies import Cases
from records import ARTIFACTS

POLICY, KEY, RUN = "careless", "0-run1", "run1"
DATA_FILE = "LexPilot_release_multiturn.json"
JOURNAL = ".open.jsonl"  # how the names of call journals end
UNEQUAL = ("calls", "input_sha256", "record_sha256")  # keys of a record that differ between equal runs
DELAYS = 0.001, 0.030  # seconds that an answer takes
LONGEST = 120.0  # seconds that a process may take
RETRIES = "20"
SHOW = "show_results.py"
SCENARIOS = ("kills", "torn", "interrupt", "disk", "faults")
MANY = 40  # cases, more than there are threads at --parallel 32
SAVING = 0.006  # seconds within which an answer is usually saved
FAULTS = ("500", "429", "429 at once", "reset", "half")

# ----------------------------------------------------------------------------------------------------------------------
# The provider


@dataclass(eq=False)
class Call:
    """A request as the provider saw it; times are ticks of the provider's own clock."""

    life: int
    """The process that sent it, from 0."""
    what: tuple[str, str]
    """Model and prompt."""
    received: int
    answered: int = 0
    """Before the last byte left, so that the client cannot have gone on earlier."""
    paid: bool = False
    """Whether a good answer was sent in full."""


class Provider(simulate.Provider):
    """Serves one output root, slowly, now and then badly, and remembers what each process asked."""

    def __init__(self, cases: Cases, faults: float, seed: str) -> None:
        super().__init__(cases, 0)
        self.RequestHandlerClass = Handler
        self.faults, self.seed = faults, seed
        self.news = threading.Condition()
        self.calls: list[Call] = []
        self.refused: list[str] = []
        self.ticks = 0
        self.open = 0
        self.received, self.answered = Counter[int](), Counter[int]()  # requests by process

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A killed client is part of the test."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def receive(self, life: int, what: tuple[str, str]) -> tuple[Call, random.Random]:
        with self.news:
            self.ticks += 1
            self.open += 1
            self.received[life] += 1
            call = Call(life, what, self.ticks)
            self.calls.append(call)
            self.news.notify_all()
            return call, random.Random(f"{self.seed} {len(self.calls)}")

    def answers(self, call: Call) -> None:
        with self.news:
            self.ticks += 1
            self.answered[call.life] += 1
            call.answered = self.ticks
            self.news.notify_all()

    def close_call(self, call: Call) -> None:
        with self.news:
            if not call.answered:
                self.ticks += 1
                call.answered = self.ticks
            self.open -= 1
            self.news.notify_all()

    def settle(self) -> None:
        """Wait until no request is being answered, not even for a client that is gone."""
        with self.news:
            if not self.news.wait_for(lambda: not self.open, LONGEST):
                raise TimeoutError(f"{self.open} requests are still being answered")


class Handler(simulate.Handler):
    server: Provider

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            request = json.loads(raw)
        except ValueError:  # its client was killed while it sent this
            self.close_connection = True
            return
        life = int(parse_qs(urlsplit(self.path).query)["life"][0])
        call, draw = self.server.receive(life, (request["model"], request["messages"][0]["content"]))
        try:
            key = self.key_for("/v1/chat/completions")
            self.reply(call, draw, simulate.completion(request, self.server.cases, key))
        except simulate.Refused as refused:
            self.server.refused.append(str(refused))
            self.refuse(refused.status, refused.code, str(refused))
        finally:
            self.server.close_call(call)

    def reply(self, call: Call, draw: random.Random, value: dict[str, Any]) -> None:
        time.sleep(draw.uniform(*DELAYS))
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8")
        fault = draw.choice(FAULTS) if draw.random() < self.server.faults else ""
        if fault == "reset":
            self.server.answers(call)
            self.reset()
        elif fault in ("500", "429", "429 at once"):
            self.server.answers(call)
            told = b'{"error": {"message": "not now", "type": "server_error", "code": null}}'
            self.head(int(fault[:3]), len(told), "0" if fault == "429 at once" else None)
            self.wfile.write(told)
            self.wfile.flush()
        elif fault == "half":
            self.server.answers(call)
            self.head(200, len(raw))
            self.wfile.write(raw[: len(raw) // 2])
            self.wfile.flush()
            self.close_connection = True
        else:
            pieces = draw.randint(2, 6) if draw.random() < 0.1 else 1
            step = -(-len(raw) // pieces)
            *first, last = [raw[start : start + step] for start in range(0, len(raw), step)]
            self.head(200, len(raw))
            for piece in first:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(draw.uniform(*DELAYS) / pieces)
            self.server.answers(call)
            self.wfile.write(last)
            self.wfile.flush()
            call.paid = True

    def head(self, status: int, length: int, retry_after: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()

    def reset(self) -> None:
        """End the connection with RST, which an orderly shutdown would forestall."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


# ----------------------------------------------------------------------------------------------------------------------
# Processes on one output root


class Moment(NamedTuple):
    """When to send a signal: so many seconds after so many of the process's requests were received and answered."""

    received: int = 0
    answered: int = 0
    delay: float = 0.0


Step = tuple[Moment, signal.Signals]
Asked = tuple[str, str, str]  # stage, model, prompt

# Python ignores SIGXFSZ, so that a write beyond the limit fails as on a full disk. Set from within, since this process has
# threads, and code of ours must not run in a fork of it.
LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); "
    "del sys.argv[:2]; sys.path[0] = sys.argv[0].rpartition('/')[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@dataclass
class Life:
    """One process, and how it ended."""

    script: str
    number: int
    began: float
    first_request: float = 0.0
    """Seconds from its start."""
    over: bool = False
    status: int = 0
    out: str = ""
    said: str = ""
    excused: bool = False
    """Whether it may have lost what was in flight."""


class Trial:
    """An output root with a provider of its own, and the processes that work on it, one after another."""

    def __init__(self, bench: "Bench", name: str, cases: int, parallel: int, faults: float = 0.0) -> None:
        self.bench, self.name, self.cases, self.parallel = bench, name, cases, parallel
        self.threads = min(cases, parallel)
        self.root = bench.scratch / name.replace(" ", "-")
        self.draw = random.Random(f"{bench.seed} {name}")
        self.provider = Provider(bench.book, faults, f"{bench.seed} {name}")
        self.lives: list[Life] = []
        self.saved: dict[str, int] = {}  # by a prompt's SHA-256: the first process after which its answer was on disk
        self.problems: list[str] = []
        self.blows = 0  # kills, full disks, or whatever else is done to it
        self.twice = 0  # answers paid for twice
        self.torn = 0  # lines cut short, each of which may be one more answer lost
        self.files = 0  # held against an uninterrupted run's

    def __enter__(self) -> "Trial":
        self.thread = threading.Thread(target=self.provider.serve_forever, args=(0.1,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.provider.shutdown()
        self.thread.join()
        self.provider.server_close()

    def command(self, script: str) -> list[str]:
        places = ["--dataset", str(self.bench.data_file), "--output-root", str(self.root)]
        more = ["--limit", str(self.cases), "--run-id", RUN, "--parallel", str(self.parallel), "--retries", RETRIES]
        return [str(self.bench.harness / script), *places, *(["--format", "json"] if script == SHOW else more)]

    def run(self, script: str, *steps: Step, limit: int | None = None) -> Life:
        """A process from start to end, and a signal to its group at each step's moment, if it lives till then; `limit` is
        the most bytes that a file may have.
        """
        life = Life(script, len(self.lives), time.monotonic())
        self.lives.append(life)
        # The number is in the address's query, which no file holds: a late request of a killed process is still its own.
        given = simulate.variables(POLICY, f"{self.provider.url}?life={life.number}", KEY)
        process = subprocess.Popen(
            [sys.executable, *([] if limit is None else ["-c", LIMITED, str(limit)]), *self.command(script)],
            env={**simulate.surroundings(os.environ), **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

        def watch() -> None:
            out, said = (raw.decode("utf-8", errors="replace") for raw in process.communicate())
            with self.provider.news:
                life.status, life.out, life.said, life.over = process.returncode, out, said, True
                self.provider.news.notify_all()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        with self.bench.living(process):
            for moment, sent in steps:
                if self.wait(life, moment) and not life.over:
                    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended by itself
                        os.killpg(process.pid, sent)
            if not self.wait(life, None):
                self.problems.append(f"{script} was still running after {LONGEST:.0f} s")
        watcher.join()
        life.excused = limit is not None or len(steps) > 1 or life.status == -signal.SIGKILL
        for journal in self.root.glob(f"**/*{JOURNAL}"):
            for answer in lines(journal)[0]:
                self.saved.setdefault(answer.get("prompt_sha256", ""), life.number)
        return life

    def wait(self, life: Life, moment: Moment | None) -> bool:
        """Wait for the moment or for the process's end, whichever comes first; False if neither does in time."""
        received, answered, news = self.provider.received, self.provider.answered, self.provider.news

        def came() -> bool:
            if received[life.number] and not life.first_request:
                life.first_request = time.monotonic() - life.began
            if life.over or moment is None:
                return life.over
            return received[life.number] >= moment.received and answered[life.number] >= moment.answered

        with news:
            in_time = news.wait_for(came, LONGEST)
            if in_time and moment is not None:
                news.wait_for(lambda: life.over, moment.delay)
        return in_time

    def ended(self, life: Life, *statuses: int, saying: str = "") -> bool:
        """Whether a process ended in one of these ways and with these words; if not, that is a problem."""
        told = life.said.strip().splitlines() or ["nothing"]
        if "Traceback" in life.said:
            self.problems.append(f"{life.script} ended with a traceback: {life.said.strip()[-2000:]}")
        elif life.status not in statuses:
            due = " or ".join(map(str, statuses))
            self.problems.append(f"{life.script} ended with status {life.status}, not {due}, and said: {told[-1]}")
        elif saying not in told[-1]:
            self.problems.append(f"{life.script} did not end with {saying!r}, but with: {told[-1]}")
        else:
            return True
        return False

    # What was paid

    def paid(self, scripts: Sequence[str]) -> dict[Asked, list[Call]]:
        """The good answers to each prompt of these stages, in order of receipt."""
        self.provider.settle()
        found: dict[Asked, list[Call]] = {}
        for call in self.provider.calls:
            script = self.lives[call.life].script
            if call.paid and script in scripts:
                found.setdefault((script, *call.what), []).append(call)
        return found

    @property
    def allowed(self) -> int:
        """How many answers may have been lost in flight."""
        received = self.provider.received
        return self.torn + sum(min(self.threads, received[life.number]) for life in self.lives if life.excused)

    def busy(self, life: Life, lost: Sequence[Call]) -> int:
        """The most threads of a process that were busy at once, each lost call keeping its own until the end."""
        calls = [call for call in self.provider.calls if call.life == life.number]
        changes = [(call.received, 1) for call in calls]
        changes += [(call.answered, -1) for call in calls if call not in lost]
        return max(itertools.accumulate((change for _, change in sorted(changes)), initial=0))

    def hold_payments(self, reference: "Reference", scripts: Sequence[str]) -> None:
        """Hold the answers against how often an uninterrupted run pays for each.

        Of a prompt that several cases share nobody knows which of its answers were lost: there, only the sum counts.
        """
        due, paid = reference.payments(scripts), self.paid(scripts)
        lost: dict[int, list[Call]] = {}  # by process
        doubled = forgotten = 0
        for asked, calls in paid.items():
            expected = due.get(asked, 0)
            if expected == 0:
                self.problems.append(f"{asked[0]} asks what an uninterrupted run does not: {asked[2][-60:]!r}")
            if expected == 1:
                saved = self.saved.get(hashlib.sha256(asked[2].encode("utf-8")).hexdigest(), len(self.lives))
                for call, following in itertools.pairwise(calls):
                    doubled += call.life == following.life
                    forgotten += saved < following.life
                    lost.setdefault(call.life, []).append(call)
            self.twice += max(0, len(calls) - expected)
        if doubled:
            self.problems.append(f"{doubled} answers were paid for twice by one and the same process")
        if forgotten:
            self.problems.append(f"{forgotten} answers were paid for again though they stood in a journal")
        for asked, expected in due.items():
            if len(paid.get(asked, ())) < expected:
                self.problems.append(f"{asked[0]} asks less often than an uninterrupted run: {asked[2][-60:]!r}")
        for life in self.lives:
            gone = lost.get(life.number, [])
            beyond = self.busy(life, gone) - self.threads - self.torn if life.excused else len(gone)
            if beyond > 0:
                self.problems.append(
                    f"{life.script}, process {life.number + 1} of {len(self.lives)}, ended with status {life.status}: of "
                    f"{len(gone)} answers paid for twice after it at least {beyond} had not been in flight"
                )
        if self.twice > self.allowed:
            self.problems.append(f"{self.twice} answers were paid for twice; {self.allowed} can have been in flight")
        self.problems += [f"the provider does not know a prompt: {words}" for words in self.provider.refused[:3]]

    # What is on disk

    def tree(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def hold_files(self, reference: "Reference", scripts: Sequence[str], whole: bool = True) -> None:
        """Hold every file against an uninterrupted run's; unless `whole`, cases may be missing and journals be there."""
        due, found = reference.written(scripts), self.tree()
        journals = set() if whole else {name for name in found if name.endswith(JOURNAL)}
        self.problems += [f"there is no {name}" for name in sorted(due - found) if whole]
        self.problems += [f"left behind: {name}" for name in sorted(found - due - journals)]
        for name in sorted(journals):
            _, faults = lines(self.root / name)
            self.problems += [f"{name}{fault}" for fault in faults]
        for name in sorted(due & found):
            if name.endswith(".jsonl"):
                self.problems += [f"{name}{fault}" for fault in unlike(self.root / name, reference.root / name, whole)]
            elif name.endswith("manifest.json") and manifest(self.root / name) != manifest(reference.root / name):
                self.problems.append(f"{name} is another")
            self.files += whole

    def hold_figures(self, reference: "Reference") -> None:
        life = self.run(SHOW)
        if self.ended(life, 0):
            mine, due = figures(life.out), figures(reference.shown())
            self.problems += [f"{SHOW}: {task} differs" for task in mine if mine[task] != due[task]]

    def tear(self) -> None:
        """Cut the last line of a journal, or of the record file that it belongs to, as a kill in its write may do.

        Linux lets a killed process write a part of what is longer than a page. Once a journal is gone, so is this danger.
        """
        open_files = [name for name in ARTIFACTS for _ in self.root.glob(f"**/{name}{JOURNAL}")]
        patterns = [p for name in open_files for p in (f"**/{name}{JOURNAL}", ARTIFACTS[name].path.format(run="*/*"))]
        paths = [path for pattern in patterns for path in self.root.glob(pattern)]
        whole = {path: raw for path in paths if (raw := path.read_bytes()).endswith(b"\n")}
        if whole:
            path = self.draw.choice([*whole])
            last = whole[path].splitlines(keepends=True)[-1]
            with contextlib.suppress(ValueError):  # a line that was torn before and has been ended since
                self.saved.pop(json.loads(last).get("prompt_sha256", ""), None)
            os.truncate(path, len(whole[path]) - self.draw.randint(1, len(last) - 1))
            self.torn += 1

    def resumed(self, script: str) -> Life:
        """The process that goes on, after the line is deleted that the first try said to delete."""
        life = self.run(script)
        found = re.search(r"error: (.+):\d+: the last line is unfinished; delete it, then run again", life.said)
        if life.status == 1 and found:
            path = Path(found[1])
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
            life = self.run(script)
        return life

    def finish(self, life: Life, reference: "Reference", scripts: Sequence[str], blows: str) -> list[str]:
        """Hold everything against an uninterrupted run once the last process has ended well; the report."""
        if self.ended(life, 0):
            self.hold_payments(reference, scripts)
            self.hold_files(reference, scripts)
        return self.report(blows)

    def report(self, blows: str) -> list[str]:
        """Say what was done; the problems, each with the trial's name."""
        kept = f"{self.twice} answers paid for twice of {self.allowed} allowed, {self.files} files compared"
        state = f", {len(self.problems)} PROBLEMS" if self.problems else ""
        requests = len(self.provider.calls)
        self.bench.say(f"{self.name}: {self.blows} {blows}, {requests} requests, {kept}{state}")
        problems = [f"{self.name}: {problem}" for problem in self.problems]
        for problem in problems:
            self.bench.say(f"  {problem}")  # at once, since a long run may be cut short
        return problems


class Broken(Exception):
    """The harness fails with nothing done to it."""


class Reference(Trial):
    """An uninterrupted run, made as far as it is needed."""

    def __init__(self, bench: "Bench", cases: int) -> None:
        super().__init__(bench, f"uninterrupted {cases}", cases, 8)
        self.lock = threading.Lock()
        self.made: dict[str, set[str]] = {}  # files by the stage that wrote them
        self.due: dict[Asked, int] = {}
        self.json = ""

    def reach(self, scripts: Sequence[str]) -> None:
        with self.lock:
            for script in scripts:
                if script not in self.made:
                    before = self.tree()
                    self.ended(self.run(script), 0)
                    self.made[script] = self.tree() - before
                    self.check(self.made[script])
                    self.due |= {asked: len(calls) for asked, calls in self.paid([script]).items()}

    def check(self, names: Iterable[str]) -> None:
        """Hold files against the data file alone; Broken if anything is wrong, since then no comparison tells."""
        for name in sorted(names):
            if name.endswith(JOURNAL):
                self.problems.append(f"left behind: {name}")
            elif name.endswith(".jsonl"):
                found, faults = lines(self.root / name)
                self.problems += [f"{name}{fault}" for fault in faults]
                numbers = [str(record.get("case_number")) for record in found]
                if sorted(numbers) != sorted(self.bench.numbers[: self.cases]):
                    self.problems.append(f"{name}: has the cases {', '.join(numbers)}")
        if self.problems:
            raise Broken(f"an uninterrupted run fails: {'; '.join(self.problems)}")

    def written(self, scripts: Sequence[str]) -> set[str]:
        """The files that these stages write; those of the run itself are written by whichever is first."""
        with self.lock:
            made = [(script, name) for script, names in self.made.items() for name in names]
        return {name for script, name in made if script in scripts or name.startswith("runs/")}

    def payments(self, scripts: Sequence[str]) -> dict[Asked, int]:
        """How often these stages pay for each prompt."""
        with self.lock:
            return {asked: times for asked, times in self.due.items() if asked[0] in scripts}

    def shown(self) -> str:
        """What show_results.py prints, once all stages that are compared have been run."""
        with self.lock:
            if not self.json:
                life = self.run(SHOW)
                self.ended(life, 0)
                self.check(())
                self.json = life.out
            return self.json

    def requests(self, script: str) -> int:
        return sum(self.payments([script]).values())

    def first_request(self, script: str) -> float:
        """Seconds from a process's start to its first request."""
        return next(life.first_request for life in self.lives if life.script == script)


def lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The objects in a file of JSON lines, and what is wrong with it."""
    *whole, rest = path.read_bytes().split(b"\n")
    found, faults = list[dict[str, Any]](), [": the last line has no end"] if rest else []
    for number, line in enumerate(whole, 1):
        try:
            found.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            faults.append(f":{number}: not a JSON object: {line[:80]!r}")
    return found, faults


def unlike(path: Path, reference: Path, whole: bool) -> list[str]:
    """In what a record file differs from a reference, which may have more cases unless this one is to be whole."""
    found, faults = lines(path)
    mine, due = ({record.get("case_number"): equal(record) for record in some} for some in (found, lines(reference)[0]))
    if len(mine) < len(found):
        faults.append(f": {len(found)} records, but {len(mine)} cases")
    faults += [f": the record of case {number} differs" for number in mine if mine[number] != due.get(number)]
    return faults + [f": case {number} is lost" for number in due if whole and number not in mine]


def equal(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in UNEQUAL}


def manifest(path: Path) -> Any:
    return {**json.loads(path.read_bytes()), "endpoints": None}  # each provider has a port of its own


def figures(shown: str) -> dict[str, Any]:
    (group,) = json.loads(shown)["groups"]
    return dict(group["tasks"])


# ----------------------------------------------------------------------------------------------------------------------
# What is done to a run


class Size(NamedTuple):
    kills: int
    kills_each: int
    """In one output root."""
    cases: int
    stages: tuple[str, ...]
    torn: int
    """Lines of each stage that are cut short."""
    disk_stages: tuple[str, ...]
    limits: int
    """Full disks of each stage."""
    fault_stages: tuple[str, ...]
    faults: float
    """The share of requests that get no good answer."""
    interrupted: tuple[tuple[str, int], ...]
    """Stage, and how often Ctrl-C is pressed."""


FULL = Size(
    kills=200,
    kills_each=12,
    cases=8,
    stages=simulate.STAGES,
    torn=4,
    disk_stages=simulate.STAGES,
    limits=4,
    fault_stages=simulate.STAGES,
    faults=0.04,
    interrupted=tuple((s, n) for s in ("LexAwN_gen.py", "eval_DCG.py", "eval_LJP_direct.py") for n in (1, 2)),
)
SHORT = Size(
    kills=6,
    kills_each=6,
    cases=3,
    stages=("LexAwN_gen.py",),
    torn=0,
    disk_stages=("LexAwN_gen.py",),
    limits=1,
    fault_stages=("LexAwN_gen.py",),
    faults=0.2,
    interrupted=(("eval_LJP_direct.py", 1),),
)


class Bench:
    """A copy of the harness, which may be changed under a long test, and the uninterrupted runs that others share."""

    def __init__(self, size: Size, seed: int, harness: Path, scratch: Path, say: Callable[[str], None]) -> None:
        self.size, self.seed, self.scratch, self.say = size, seed, scratch, say
        self.harness = scratch / "harness"
        self.harness.mkdir()
        for path in harness.glob("*.py"):
            shutil.copy(path, self.harness)
        some = json.loads((harness / DATA_FILE).read_bytes())[:MANY]  # what no process uses none need read
        self.data_file = scratch / DATA_FILE
        self.data_file.write_text(json.dumps(some), encoding="utf-8")
        cases = load_dataset(self.data_file).cases
        self.book, self.numbers = Cases(cases), [case.number for case in cases]
        self.references = {cases: Reference(self, cases) for cases in (size.cases, MANY)}
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def reference(self, cases: int, scripts: Sequence[str]) -> Reference:
        self.references[cases].reach(scripts)
        return self.references[cases]

    @contextlib.contextmanager
    def living(self, process: "subprocess.Popen[bytes]") -> Iterator[None]:
        """While it lasts the process may live."""
        with self.lock:
            self.processes.add(process)
        try:
            if self.stopped:
                raise RuntimeError("stopped")
            yield
        finally:
            end(process)
            with self.lock:
                self.processes.remove(process)

    def stop(self) -> None:
        """End what runs, and let nothing more be begun: sessions of their own get no Ctrl-C from the terminal."""
        with self.lock:
            self.stopped = True
            for process in self.processes:
                end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def kill_moment(trial: Trial, reference: Reference, script: str) -> Moment:
    """While it starts, at its first requests, anywhere in what is left to ask, or while an answer or record is saved."""
    draw = trial.draw
    left = max(2, reference.requests(script) - sum(map(len, trial.paid([script]).values())))
    if not any(trial.provider.received.values()) and draw.random() < 0.8:
        return Moment(answered=draw.randint(1, 2), delay=draw.uniform(0, SAVING))  # the run's first files
    return draw.choice(
        (
            Moment(delay=draw.uniform(0.3, 1.0) * reference.first_request(script)),
            Moment(received=draw.randint(1, 3), delay=draw.uniform(0, 0.02)),
            Moment(received=draw.randint(1, left // 2), delay=draw.uniform(0, 0.02)),
            Moment(received=draw.randint(1, left // 2), delay=draw.uniform(0, 0.02)),
            Moment(answered=draw.randint(1, left // 2), delay=draw.uniform(0, SAVING)),
            Moment(answered=draw.randint(1, left // 2), delay=draw.uniform(0, SAVING)),
        )
    )


def kills(bench: Bench, number: int, wanted: int) -> list[str]:
    """Kill each stage several times, sometimes as soon as it starts again, then let it end."""
    size = bench.size
    parallel = (2, 4, 8, 1)[number % 4]
    reference = bench.reference(size.cases, size.stages)
    with Trial(bench, f"kills {number + 1}", size.cases, parallel, 0.02 * (number % 2)) as trial:
        for position, script in enumerate(size.stages, 1):
            due = wanted * position // len(size.stages)
            for _ in range(4 * wanted):  # a process may end before its moment comes
                if trial.blows == due:
                    break
                life = trial.run(script, (kill_moment(trial, reference, script), signal.SIGKILL))
                if "delete it, then run again" in life.said:
                    life = trial.resumed(script)
                if not trial.ended(life, 0, -signal.SIGKILL):
                    return trial.report("kills")
                trial.blows += life.status != 0
            if not trial.ended(trial.resumed(script), 0):
                return trial.report("kills")
        trial.hold_payments(reference, size.stages)
        trial.hold_files(reference, size.stages)
        if size.stages == simulate.STAGES:
            trial.hold_figures(reference)
        return trial.report("kills")


def torn(bench: Bench, script: str) -> list[str]:
    """Kill a stage and cut short the line that it might have been writing, then let it end.

    Of a journal that is passed over; of a record file the next command says which line to delete, which is done.
    """
    size = bench.size
    before = size.stages[: size.stages.index(script)]
    reference = bench.reference(size.cases, (*before, script))
    with Trial(bench, f"torn {script}", size.cases, 4) as trial:
        for earlier in before:
            trial.ended(trial.run(earlier), 0)
        requests = reference.requests(script)
        for _ in range(size.torn):
            moment = Moment(answered=trial.draw.randint(2, requests // size.torn), delay=trial.draw.uniform(0, SAVING))
            life = trial.run(script, (moment, signal.SIGKILL))
            if "delete it, then run again" in life.said:
                life = trial.resumed(script)
            if not trial.ended(life, 0, -signal.SIGKILL):
                return trial.report("torn lines")
            if life.status != 0:
                trial.tear()
            trial.blows = trial.torn
        return trial.finish(trial.resumed(script), reference, (*before, script), "torn lines")


def disk(bench: Bench, script: str) -> list[str]:
    """Let the disk be full, each time a little later, then give it room."""
    size = bench.size
    before = size.disk_stages[: size.disk_stages.index(script)]  # eval_LJP.py reads what an earlier stage wrote
    reference = bench.reference(size.cases, (*before, script))
    largest = max((reference.root / name).stat().st_size for name in reference.made[script])
    with Trial(bench, f"disk {script}", size.cases, 6) as trial:
        for earlier in before:
            trial.ended(trial.run(earlier), 0)
        for step in range(size.limits):
            # Up to nine tenths, as records of other calls may be shorter by some digits.
            limit = int(largest * 0.9 * (step + trial.draw.random()) / size.limits) + 1
            life = trial.run(script, limit=limit)
            trial.blows += trial.ended(life, 1, saying=os.strerror(errno.EFBIG))
            trial.hold_files(reference, (*before, script), whole=False)
        return trial.finish(trial.run(script), reference, (*before, script), "full disks")


def faults(bench: Bench, parallel: int) -> list[str]:
    """Let the provider fail in every way that passes."""
    size = bench.size
    reference = bench.reference(size.cases, size.fault_stages)
    with Trial(bench, f"faults {parallel}", size.cases, parallel, size.faults) as trial:
        if all(trial.ended(trial.run(script), 0) for script in size.fault_stages):
            trial.hold_payments(reference, size.fault_stages)
            trial.hold_files(reference, size.fault_stages)
        trial.blows = sum(not call.paid for call in trial.provider.calls)
        return trial.report("faults")


def interrupt(bench: Bench, script: str, times: int) -> list[str]:
    """Ctrl-C in the middle of a stage: once costs nothing, twice what is in flight."""
    reference = bench.reference(MANY, [script])
    with Trial(bench, f"interrupt {script} {times}", MANY, 32) as trial:
        middle = int(reference.requests(script) * trial.draw.uniform(0.2, 0.6))
        first, second = Moment(received=middle), Moment(delay=trial.draw.uniform(0.002, 0.02))
        life = trial.run(script, *((moment, signal.SIGINT) for moment in (first, second)[:times]))
        trial.blows += times
        if not trial.ended(life, 130, saying="interrupted"):
            return trial.report("Ctrl-C")
        return trial.finish(trial.run(script), reference, [script], "Ctrl-C")


def jobs_of(bench: Bench) -> dict[str, list[Callable[[], list[str]]]]:
    """By name of the scenario, what can be done side by side."""
    size = bench.size
    starts = range(0, size.kills, size.kills_each)
    return {
        "kills": [
            functools.partial(kills, bench, number, min(size.kills_each, size.kills - start))
            for number, start in enumerate(starts)
        ],
        "torn": [functools.partial(torn, bench, script) for script in size.stages if size.torn],
        "interrupt": [functools.partial(interrupt, bench, script, times) for script, times in size.interrupted],
        "disk": [functools.partial(disk, bench, script) for script in size.disk_stages],
        "faults": [functools.partial(faults, bench, parallel) for parallel in (8, 4)[: len(size.fault_stages)]],
    }


def chaos(
    size: Size = FULL,
    *,
    seed: int = 0,
    only: str | None = None,
    harness: Path = HERE,
    say: Callable[[str], None] = print,
) -> list[str]:
    """Do all of it to the harness in that folder, two things at a time; the problems found."""
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="lexpilot chaos "))
        bench = Bench(size, seed, harness, Path(scratch), say)
        for reference in bench.references.values():
            stack.enter_context(reference)
        jobs = [job for name, some in jobs_of(bench).items() if only in (None, name) for job in some]
        with ThreadPoolExecutor(2) as pool:
            begun = [pool.submit(job) for job in jobs]
            try:
                return [problem for each in begun for problem in each.result()]
            except BaseException as error:
                for each in begun:
                    each.cancel()
                bench.stop()
                if isinstance(error, Broken):
                    say(str(error))
                    return [str(error)]
                raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill, starve and interrupt the stages, and see what is left.")
    parser.add_argument("--kills", type=int, default=FULL.kills, metavar="N", help=f"default: {FULL.kills}")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of every draw; default: 0")
    parser.add_argument("--only", choices=SCENARIOS, help="default: all of them")
    given = parser.parse_args()
    if os.name != "posix":
        print("nothing done: process groups and limits on file sizes are POSIX only")
        return
    for ending in (signal.SIGINT, signal.SIGTERM):  # a shell starts what is behind an & with SIGINT ignored
        signal.signal(ending, signal.default_int_handler)
    problems = chaos(
        FULL._replace(kills=given.kills), seed=given.seed, only=given.only, say=functools.partial(print, flush=True)
    )
    print(f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
