"""How fast, light and exact a stage is beside the bare `openai` client, against a server of a set latency.

    python -B tests/benchmark.py [--quick] [--only NAME …] [--repeat N]

Measured is `eval_LCA.py`, two calls a case, in a process of its own, checks, hashes and syncs included. Beside it, in
turn with it, two floors ask the same prompts and keep nothing: F, a thread pool with the `openai` client, and the
asynchronous client in a loop. Each figure is a median over the repetitions; a line ends with `ok` or `MISSED` where it
has a goal, and so does the command: with 1 if one is missed. All of it takes about twenty-five minutes.

The server, the floors and the command are this one file. It imports nothing of the project and nothing but the standard
library at its top, so that the floors stay bare.
"""

import argparse
import asyncio
import compileall
import json
import math
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.client import HTTPConnection
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent.parent
LATENCY = 0.2  # seconds, the mean where it varies
RETRIES = 3
REQUEST = {"model": "j", "temperature": 0.1, "max_tokens": 8192, "n": 1}  # as the stage asks its judge

# ----------------------------------------------------------------------------------------------------------------------
# The server: what a measurement asks of it, and what it counts


class Behaviour(NamedTuple):
    latency: float = 0.0
    sigma: float = 0.0
    """Of the logarithm of the latency, whose mean stays `latency`; 0 is a constant latency."""
    fault_rate: float = 0.0
    """The share of requests that get HTTP 500 after their latency."""
    most_at_once: int = 0
    """Requests beyond it get HTTP 429 at once; 0 is no limit."""
    seed: int = 0
    """Decides latencies and faults, by prompt and try: every client meets the same ones, in whatever order it asks."""


class Tally(NamedTuple):
    """What happened since the behaviour was set; times are those of the monotonic clock, which all processes share."""

    requests: int
    answered: int
    answered_once: int
    """Prompts that got exactly one answer."""
    faults: int
    refused: int
    first: float
    """When the first request was there."""
    last: float
    """When the last answer left."""
    flown: float
    """Seconds in flight, summed over requests."""
    cpu: float
    """Seconds of the server's own work."""


class Counting:
    """The counters behind a tally; a late answer counts where its request did."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests = self.faults = self.refused = self.flying = 0
        self.first = self.last = self.flown = 0.0
        self.tries: dict[str, int] = {}  # by prompt, in the order in which they were first asked
        self.answers: dict[str, int] = {}
        self.began = time.process_time()

    def tally(self) -> Tally:
        answers = self.answers.values()
        cpu = time.process_time() - self.began
        counts = (self.requests, sum(answers), sum(count == 1 for count in answers), self.faults, self.refused)
        return Tally(*counts, self.first, self.last, self.flown, cpu)


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection that is kept open; its client asks again only when it is answered."""

    def __init__(self, provider: "Provider") -> None:
        self.provider = provider
        self.held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, received: bytes) -> None:
        self.held += received
        head, ended, body = self.held.partition(b"\r\n\r\n")
        _, given, length = head.lower().partition(b"\r\ncontent-length:")
        if not ended or (given and len(body) < int(length.partition(b"\r\n")[0])):
            return
        self.held = b""
        method, path, _ = head.decode("latin-1").split(" ", 2)
        self.provider.take(method, path, body, self.answer)

    def answer(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode("ascii") + body)


Answer = Callable[[int, bytes], None]


class Provider:
    """Answers chat completions by a function of model and prompt, and is told and asked about itself at /control."""

    def __init__(self, reply: Callable[[str, str], str]) -> None:
        self.reply = reply
        self.counting = Counting(Behaviour())

    def take(self, method: str, path: str, body: bytes, answer: Answer) -> None:
        if path == "/control" and method == "POST":
            self.counting = Counting(Behaviour(**json.loads(body)))
            answer(200, b"{}")
        elif path == "/control":
            answer(200, json.dumps(self.counting.tally()._asdict()).encode())
        elif path == "/prompts":
            answer(200, json.dumps(list(self.counting.tries)).encode())
        else:
            self.complete(json.loads(body), answer)

    def complete(self, request: Mapping[str, Any], answer: Answer) -> None:
        now, counting, behaviour = time.monotonic(), self.counting, self.counting.behaviour
        counting.requests += 1
        counting.first = counting.first or now
        if 0 < behaviour.most_at_once <= counting.flying:
            counting.refused += 1
            answer(429, b'{"error": {"message": "too many requests at once", "code": "rate_limit_exceeded"}}')
            return
        counting.flying += 1
        prompt = request["messages"][0]["content"]
        tried = counting.tries[prompt] = counting.tries.get(prompt, 0) + 1
        latency, faulty = behaviour.latency, False
        if behaviour.sigma or behaviour.fault_rate:
            chance = random.Random(f"{behaviour.seed} {tried} {prompt}")
            faulty = chance.random() < behaviour.fault_rate
            latency *= math.exp(chance.gauss(-(behaviour.sigma**2) / 2, behaviour.sigma))

        def end() -> None:
            counting.last = time.monotonic()
            counting.flying -= 1
            counting.flown += counting.last - now
            if faulty:
                counting.faults += 1
                answer(500, b'{"error": {"message": "out of order", "type": "server_error"}}')
                return
            counting.answers[prompt] = counting.answers.get(prompt, 0) + 1
            answer(200, completion(request["model"], prompt, self.reply(request["model"], prompt)))

        if latency:
            asyncio.get_running_loop().call_later(latency, end)
        else:
            end()


def completion(model: str, prompt: str, text: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    asked, said = len(prompt), len(text)
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    whole = {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}
    return json.dumps(whole).encode()


async def serve() -> None:
    """Serve on a free port, which is printed, until stdin ends: with whoever started it."""
    from fakes import sensible
    from loopback import ROLES

    def reply(model: str, prompt: str) -> str:
        # The fake's replies are few. A mark of the prompt in each makes every prompt of a later stage a different one,
        # and a record that holds another case's reply a wrong one.
        mark, text = sha256(prompt.encode()).hexdigest()[:12], sensible(ROLES[model], prompt)
        return text.replace('"reason": "', f'"reason": "{mark} ') if model == "j" else f"{text} {mark}"

    provider = Provider(reply)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(provider), "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


class Server:
    """The running server, as a measurement sees it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"

    def call(self, method: str, path: str, body: str | None = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def behave(self, behaviour: Behaviour) -> None:
        """Behave like that from now on, and count from nought."""
        self.call("POST", "/control", json.dumps(behaviour._asdict()))

    def tally(self) -> Tally:
        return Tally(**self.call("GET", "/control"))

    def prompts(self) -> list[str]:
        """Each prompt since the last `behave`, in the order in which they were first asked."""
        prompts: list[str] = self.call("GET", "/prompts")
        return prompts


@contextmanager
def serving(project: Path) -> Iterator[Server]:
    """A server in a process of its own, with one port for as long as it lasts: a run's manifest holds its address."""
    command = [sys.executable, str(project / "tests" / "benchmark.py"), "--serve"]
    env = surroundings(PYTHONPATH=str(project))
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            yield Server(int(process.stdout.readline()))
        finally:
            process.stdin.close()


# ----------------------------------------------------------------------------------------------------------------------
# The floors


def thread_floor(job: Mapping[str, Any]) -> None:
    import openai

    client = openai.OpenAI(api_key="any", base_url=job["url"], max_retries=job["retries"], timeout=120)

    def ask_both(prompts: Sequence[str]) -> None:
        for prompt in prompts:
            client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **job["request"])

    with ThreadPoolExecutor(job["parallel"]) as pool:
        for _ in pool.map(ask_both, job["cases"]):
            pass


async def loop_floor(job: Mapping[str, Any]) -> None:
    import openai

    client = openai.AsyncOpenAI(api_key="any", base_url=job["url"], max_retries=job["retries"], timeout=120)
    free = asyncio.Semaphore(job["parallel"])

    async def ask_both(prompts: Sequence[str]) -> None:
        async with free:
            for prompt in prompts:
                await client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **job["request"])

    await asyncio.gather(*map(ask_both, job["cases"]))


def floor(job: Mapping[str, Any]) -> None:
    """Ask a job's cases, each one's prompts one after another; prints its own time as a line of JSON."""
    begun = time.monotonic()
    if job["kind"] == "async":
        asyncio.run(loop_floor(job))
    else:
        thread_floor(job)
    print(json.dumps({"cases": len(job["cases"]), "seconds": time.monotonic() - begun}))


# ----------------------------------------------------------------------------------------------------------------------
# Running and measuring a process


class Failed(Exception):
    """A command that a measurement stands on did not end well."""


class Spent(NamedTuple):
    """What a process took, from outside: the same way for the stage and the floors."""

    status: int
    begun: float  # on the monotonic clock
    wall: float  # seconds, start of the interpreter included
    cpu: float | None  # seconds; None where the system does not tell
    peak: float | None  # MiB
    said: str


def run(command: Sequence[str], env: Mapping[str, str], folder: Path) -> Spent:
    """Run a command to its end.

    A child's peak is never less than what its parent held when it was started (Linux counts from before the exec), so
    this process must stay small: it keeps no records and imports no library.
    """
    with tempfile.TemporaryFile() as said:
        begun = time.monotonic()
        process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        cpu = peak = None
        if sys.platform == "win32":
            process.wait()
        else:
            _, ended, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(ended)
            cpu = usage.ru_utime + usage.ru_stime
            peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        wall = time.monotonic() - begun
        said.seek(0)
        return Spent(process.returncode, begun, wall, cpu, peak, said.read().decode("utf-8", errors="replace"))


def surroundings(**more: str) -> dict[str, str]:
    """An environment without settings of this project, of Python and of proxies."""
    ours = ("LEXPILOT_", "OPENAI_", "PYTHON")
    kept = {n: v for n, v in os.environ.items() if not n.upper().startswith(ours) and not n.lower().endswith("_proxy")}
    return {**kept, "NO_PROXY": "127.0.0.1", **more}


class Taken(NamedTuple):
    """One client's run against the server."""

    spent: Spent
    tally: Tally

    @property
    def span(self) -> float | None:
        """Seconds from the first request to the last answer; None if there was none."""
        return self.tally.last - self.tally.first if self.tally.last else None

    @property
    def flying(self) -> float | None:
        """How many requests were in flight in that time, on average."""
        return self.tally.flown / self.span if self.span else None

    @property
    def lead(self) -> float | None:
        """Seconds from the start of the process to its first request."""
        return self.tally.first - self.spent.begun if self.tally.first else None

    def of_requests(self, seconds: float) -> float | None:
        return seconds / self.tally.requests if self.tally.requests else None


OURS, FLOOR, LOOP = "ours", "F", "async"


class Row(NamedTuple):
    """A line of the table; `met` is None where there is no goal."""

    what: str
    shown: Mapping[str, str]
    ratio: str = ""
    goal: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        values = "".join(f"{self.shown.get(who, ''):>10}" for who in (OURS, FLOOR, LOOP))
        verdict = {None: "", True: "ok", False: "MISSED"}[self.met]
        return f"{self.what:58}{values}{self.ratio:>8}  {self.goal:<11}{verdict}".rstrip()


def median(values: Sequence[float | None]) -> float | None:
    """The middle one, or the mean of the middle two; None if one is unknown."""
    known = sorted(value for value in values if value is not None)
    if not known or len(known) < len(values):
        return None
    return (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2


class Compared:
    """The repetitions of one measurement, of the stage and of both floors; its rows."""

    def __init__(self, title: str, calls: int, taken: Mapping[str, Sequence[Taken]]) -> None:
        self.title, self.calls, self.taken = title, calls, taken

    def row(
        self,
        what: str,
        form: str,
        value: Callable[[Taken], float | None],
        *,
        against: float | None = None,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> Row:
        """Medians, and the stage's as a ratio to F's or to the number given; the goal is one for that ratio."""
        middle = {who: median([value(taken) for taken in all_of]) for who, all_of in self.taken.items()}
        ours, base = middle[OURS], against or middle[FLOOR]
        ratio = ours / base if ours is not None and base else None
        goal, met = "", None
        if at_most is not None:
            goal, met = f"<= {at_most:.2f}", ratio is not None and ratio <= at_most
        elif at_least is not None:
            goal, met = f">= {at_least:.2f}", ratio is not None and ratio >= at_least
        shown = {who: "unknown" if found is None else form.format(found) for who, found in middle.items()}
        if ours is None:
            met = None  # what the system does not tell is not missed
        elif any(taken.spent.status for taken in self.taken[OURS]):
            met = met and False  # a stage that gave up is soon done
        return Row(f"{self.title}: {what}", shown, "unknown" if ratio is None else f"{ratio:.3f}", goal, met)

    def wall(self, at_most: float | None) -> Row:
        return self.row("whole wall time, s", "{:.2f}", lambda taken: taken.spent.wall, at_most=at_most)

    def exact(self) -> Row:
        """Whether in each repetition every call was answered once, for one request and one more for each fault."""

        def right(taken: Taken) -> bool:
            tally = taken.tally
            counts = (tally.answered, tally.answered_once, tally.requests - tally.faults - tally.refused)
            return taken.spent.status == 0 and counts == (self.calls,) * 3

        shown = {who: f"{sum(map(right, all_of))} of {len(all_of)}" for who, all_of in self.taken.items()}
        met = all(map(right, self.taken[OURS]))
        return Row(f"{self.title}: runs that answered all, exactly", shown, "", "all", met)

    def reasons(self) -> Iterator[str]:
        """Why a client gave up, in its last words."""
        for who, all_of in self.taken.items():
            for spent in (taken.spent for taken in all_of if taken.spent.status):
                words = spent.said.strip().rpartition("\n")[2]
                yield f"    {self.title}: {who} ended with status {spent.status}: {words[:300]}"


class Bench:
    """The project as it stood when the command began, a server, and the folders to run stages in."""

    def __init__(self, scratch: Path, project: Path, server: Server, *, repeat: int, quick: bool) -> None:
        self.scratch, self.project, self.server, self.repeat, self.quick = scratch, project, server, repeat, quick
        self.cases = 48 if quick else 432
        self.made: dict[int, tuple[Path, list[list[str]]]] = {}

    def script(self, script: str, *options: str) -> Spent:
        names = {"LEXPILOT_MODEL": "m", "LEXPILOT_USER_MODEL": "u", "LEXPILOT_JUDGE_MODEL": "j"}
        env = surroundings(OPENAI_BASE_URL=self.server.url, OPENAI_API_KEY="any", **names)
        return run([sys.executable, str(self.project / script), *options], env, self.project)

    def stage(self, script: str, root: Path, cases: int, *options: str) -> Spent:
        return self.script(script, "--output-root", str(root), "--limit", str(cases), *options)

    def done(self, spent: Spent) -> Spent:
        if spent.status:
            raise Failed(f"status {spent.status}: {spent.said[-600:]}")
        return spent

    def prepared(self, cases: int) -> tuple[Path, list[list[str]]]:
        """An output tree with the responses that `eval_LCA.py` reads, and each case's prompts, as it asks them."""
        if cases not in self.made:
            root = self.scratch / f"prepared {cases}"
            self.server.behave(Behaviour())
            self.done(self.stage("LexAwN_gen.py", root, cases))
            self.server.behave(Behaviour())
            fresh = self.begun(root)
            self.done(self.stage("eval_LCA.py", fresh, cases, "--parallel", "1"))
            shutil.rmtree(fresh)
            prompts = self.server.prompts()
            if len(prompts) != 2 * cases:
                raise Failed(f"eval_LCA.py asked {len(prompts)} different prompts for {cases} cases")
            self.made[cases] = root, [prompts[at : at + 2] for at in range(0, len(prompts), 2)]
        return self.made[cases]

    def begun(self, root: Path) -> Path:
        """A fresh output tree that holds of a prepared one just what `eval_LCA.py` starts from."""
        fresh = Path(tempfile.mkdtemp(dir=self.scratch))
        for path in (*root.rglob("manifest.json"), *root.rglob("a1.jsonl")):
            copy = fresh / path.relative_to(root)
            copy.parent.mkdir(parents=True)
            shutil.copyfile(path, copy)
        return fresh

    def ours(self, cases: int, parallel: int) -> Spent:
        fresh = self.begun(self.prepared(cases)[0])
        try:
            return self.stage("eval_LCA.py", fresh, cases, "--parallel", str(parallel))
        finally:
            shutil.rmtree(fresh)

    def floor(self, kind: str, retries: int, cases: int, parallel: int) -> Spent:
        job = {"kind": kind, "url": self.server.url, "retries": retries, "parallel": parallel, "request": REQUEST}
        path = self.scratch / "job.json"
        path.write_text(json.dumps({**job, "cases": self.prepared(cases)[1]}), encoding="utf-8")
        command = [sys.executable, str(self.project / "tests" / "benchmark.py"), "--floor", str(path)]
        return run(command, surroundings(), self.project)

    def compare(
        self, title: str, cases: int, parallel: int, behaviour: Behaviour, *, floor_retries: int = RETRIES
    ) -> Compared:
        """The stage and both floors in turn, so that what else the machine does meets all of them."""
        self.prepared(cases)
        taken: dict[str, list[Taken]] = {OURS: [], FLOOR: [], LOOP: []}
        for seed in range(self.repeat):
            for who in taken:
                self.server.behave(behaviour._replace(seed=seed))
                ask = self.ours if who == OURS else partial(self.floor, who, floor_retries)
                spent = ask(cases, parallel)
                taken[who].append(Taken(spent, self.server.tally()))
        return Compared(title, 2 * cases, taken)


# ----------------------------------------------------------------------------------------------------------------------
# The scenarios, each of which yields its rows, and strings to go between them

Lines = Iterator[Row | str]
SPAN_GOALS = {8: 1.05, 32: 1.10, 64: 1.20}  # by --parallel
COMMANDS = (
    *("LexAwN_gen.py", "eval_LCA.py", "eval_DCG.py", "eval_LJP_direct.py", "eval_LJP_gold.py"),
    *("eval_LJP_interaction.py", "eval_LJP.py", "show_results.py", "simulate.py", "check_dataset.py"),
)
STAGES = COMMANDS[:6]


def steady(bench: Bench) -> Lines:
    """A constant latency, at each width. One after another, fewer cases do: a goal is set for the others only."""
    for parallel in (8,) if bench.quick else (1, 8, 32, 64):
        cases = 36 if parallel == 1 else bench.cases
        found = bench.compare(f"parallel {parallel}, {cases} cases", cases, parallel, Behaviour(latency=LATENCY))
        ideal = found.calls * LATENCY / parallel
        goal = SPAN_GOALS.get(parallel)
        yield found.exact()
        yield found.row("first to last, s; to the ideal", "{:.2f}", lambda t: t.span, against=ideal, at_most=goal)
        yield found.row(
            "mean in flight; to the limit",
            "{:.2f}",
            lambda t: t.flying,
            against=parallel,
            at_least=0.92 if goal else None,
        )
        yield found.wall(1.05 if goal else None)
        yield found.row("start to first request, s", "{:.2f}", lambda t: t.lead)
        yield from work(found, limited=goal is not None)
        yield from found.reasons()


def work(found: Compared, *, limited: bool) -> Lines:
    def cpu(taken: Taken) -> float | None:
        return None if taken.spent.cpu is None else taken.spent.cpu / found.calls * 1000

    yield found.row("client CPU a call, ms", "{:.2f}", cpu, at_most=1.25 if limited else None)
    yield found.row("peak memory, MiB", "{:.1f}", lambda t: t.spent.peak, at_most=1.5 if limited else None)
    yield found.row("latency that the server kept, s", "{:.4f}", lambda t: t.of_requests(t.tally.flown))
    yield found.row("server CPU a request, ms", "{:.3f}", lambda t: t.of_requests(t.tally.cpu * 1000))


def errors(bench: Bench) -> Lines:
    """One request in twenty fails."""
    parallel = 8 if bench.quick else 32
    found = bench.compare(
        f"5 % faults, parallel {parallel}", bench.cases, parallel, Behaviour(LATENCY, fault_rate=0.05)
    )
    yield found.exact()
    yield found.row("faults", "{:.0f}", lambda t: t.tally.faults)
    yield found.wall(1.00)
    yield from found.reasons()


def refusals(bench: Bench) -> Lines:
    """A server that takes a quarter of what is asked at once, and says no to the rest without saying for how long."""
    parallel = 8 if bench.quick else 64
    most = parallel // 4
    title, behaviour = f"429 above {most}, parallel {parallel}", Behaviour(latency=LATENCY, most_at_once=most)
    found = bench.compare(title, bench.cases, parallel, behaviour, floor_retries=30)
    yield found.exact()
    yield found.row("requests a call", "{:.3f}", lambda t: t.tally.requests / found.calls, against=1.0, at_most=1.15)
    yield found.wall(1.05)
    yield from found.reasons()


def lognormal(bench: Bench) -> Lines:
    """Latencies as they are: most a little shorter than the mean, a few several times as long."""
    parallel = 8 if bench.quick else 32
    found = bench.compare(
        f"log-normal, parallel {parallel}", bench.cases, parallel, Behaviour(latency=LATENCY, sigma=0.6)
    )
    yield found.exact()
    yield found.wall(1.05)
    yield from found.reasons()


def identical(bench: Bench) -> Lines:
    """The same records whatever is asked at once; short uneven latencies see to it that cases overtake each other."""
    widths, found = (1, 8) if bench.quick else (1, 8, 32, 64), set[str]()
    root, _ = bench.prepared(bench.cases)
    for parallel in widths:
        bench.server.behave(Behaviour(latency=0.005, sigma=0.6))
        fresh = bench.begun(root)
        bench.done(bench.stage("eval_LCA.py", fresh, bench.cases, "--parallel", str(parallel)))
        (path,) = fresh.rglob("LCA_results.jsonl")
        found.add(sha256(json.dumps(records(path)).encode()).hexdigest())
        shutil.rmtree(fresh)
    what = f"records at parallel {', '.join(map(str, widths))}: different sets"
    yield Row(what, {OURS: str(len(found))}, "", "1", len(found) == 1)


def records(path: Path) -> list[str]:
    """A file's records, sorted, without what may differ: hashes, and how a call went."""
    made = []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            record = json.loads(line)
            for key in ("record_sha256", "input_sha256", "calls"):
                record.pop(key, None)
            made.append(json.dumps(record, sort_keys=True))
    return sorted(made)


def timed(bench: Bench, once: Callable[[], Spent]) -> float:
    """The median wall time of a command, in seconds."""
    return median([bench.done(once()).wall for _ in range(bench.repeat)]) or 0.0


def limit(what: str, bench: Bench, once: Callable[[], Spent], most: float) -> Row:
    """A command's time against an absolute limit."""
    found = timed(bench, once)
    return Row(what, {OURS: f"{found:.2f}"}, "", f"<= {most:.2f} s", found <= most)


def slowest(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: float(row.shown[OURS]))


def startup(bench: Bench) -> Lines:
    """What is there before anything is asked."""
    helps = [
        limit(f"{name} --help, s; the slowest", bench, partial(bench.script, name, "--help"), 0.3) for name in COMMANDS
    ]
    yield slowest(helps)
    bare = partial(run, [sys.executable, "-c", "pass"], surroundings(), bench.project)
    yield Row("of which the bare interpreter, s", {OURS: f"{timed(bench, bare):.2f}"})
    yield limit("python common.py, s", bench, partial(bench.script, "common.py"), 0.3)
    heavy = [name for name in COMMANDS if imports(bench, name, "--help")] + ["common.py"] * imports(bench, "common.py")
    what = "commands that import openai or sklearn for that"
    yield Row(what, {OURS: str(len(heavy))}, "", "0", not heavy)
    if heavy:
        yield f"    {', '.join(heavy)}"


LOOK = """import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("\\nIMPORTED", *{"openai", "sklearn"} & {*sys.modules})"""


def imports(bench: Bench, *command: str) -> bool:
    """Whether a command imports one of the two packages that take long."""
    spent = bench.done(run([sys.executable, "-c", LOOK, *command], surroundings(), bench.project))
    return spent.said.rpartition("\nIMPORTED")[2].strip() != ""


COPIES = """import json, sys
from pathlib import Path
from checkpoints import SEAL, Run, read_manifest
from records import ARTIFACTS, MANIFEST_PATH
source, target, models = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
for path in source.glob("runs/*/*/manifest.json"):
    manifest = read_manifest(path)
    run = Run(source, manifest, [])
    for number in range(models):
        copied = {**manifest, "models": {**manifest["models"], "evaluated": f"model-{number}"}}
        copy = Run(target, copied, [])
        place = target / MANIFEST_PATH.format(run=copy.folder)
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(copied), encoding="utf-8")
        for name in ARTIFACTS:
            lines = run.path(name).read_bytes().split(b"\\n")[:-1]
            copy.path(name).parent.mkdir(parents=True, exist_ok=True)
            sealed = [copy._sealed(name, line.rpartition(SEAL)[0]) + b"\\n" for line in lines]
            copy.path(name).write_bytes(b"".join(sealed))
"""
"""Makes runs of one model into runs of several, which differ in nothing but the name."""


def results(bench: Bench) -> Lines:
    """What reads whole runs: the table over all of them, and each stage when nothing is left to do."""
    runs, cases = (1, 12) if bench.quick else (5, bench.cases)
    root = bench.scratch / "results"
    bench.server.behave(Behaviour())
    for number in range(1, runs + 1):
        for script in STAGES:
            bench.done(bench.stage(script, root, cases, "--run-id", f"run{number}"))
        bench.server.behave(Behaviour())  # it remembers every prompt since the last time
    of_runs = f"{runs} runs of {cases} cases"
    yield limit(
        f"show_results.py --no-intervals, {of_runs}, s",
        bench,
        partial(bench.script, "show_results.py", "--no-intervals", "--output-root", str(root)),
        2.0,
    )
    models = 2 if bench.quick else 10
    many = bench.scratch / "many"
    copying = [sys.executable, "-c", COPIES, str(root), str(many), str(models)]
    bench.done(run(copying, surroundings(PYTHONPATH=str(bench.project)), bench.project))
    yield limit(
        f"show_results.py, {of_runs} of {models} models, 10,000 draws, s",
        bench,
        partial(bench.script, "show_results.py", "--output-root", str(many)),
        15.0,
    )
    shutil.rmtree(many)
    again = [
        limit(f"{name} when done, {cases} cases, s; the slowest", bench, partial(bench.stage, name, root, cases), 0.5)
        for name in STAGES
    ]
    yield slowest(again)
    asked = bench.server.tally().requests
    yield Row("requests of all stages when done", {OURS: str(asked)}, "", "0", asked == 0)


SCENARIOS: dict[str, Callable[[Bench], Lines]] = {
    "startup": startup,
    "identical": identical,
    "steady": steady,
    "errors": errors,
    "refusals": refusals,
    "lognormal": lognormal,
    "results": results,
}

# ----------------------------------------------------------------------------------------------------------------------
# The command


def copied(scratch: Path) -> Path:
    """A copy of the project, so that nobody's edit changes what is measured, or unmakes the runs prepared for it."""
    project = scratch / "project"
    (project / "tests").mkdir(parents=True)
    for path in (*HERE.glob("*.py"), *HERE.glob("*.json*"), *HERE.glob("tests/*.py")):
        shutil.copyfile(path, project / path.relative_to(HERE))
    compileall.compile_dir(project, quiet=1)  # as it is from its second command on
    return project


def count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return int(value)


def parser() -> argparse.ArgumentParser:
    about = "Measure a stage beside the bare openai client; ends with 1 if a goal is missed."
    options = argparse.ArgumentParser(prog="benchmark.py", description=about, allow_abbrev=False)
    options.add_argument("--quick", action="store_true", help="48 cases, parallel 8, once: does it work at all?")
    options.add_argument(
        "--only", nargs="+", choices=SCENARIOS, default=[*SCENARIOS], metavar="NAME", help=", ".join(SCENARIOS)
    )
    options.add_argument("--repeat", type=count, metavar="N", help="repetitions; default: 3, with --quick 1")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--floor", type=Path, help=argparse.SUPPRESS)
    return options


def main() -> None:
    given = parser().parse_args()
    if given.serve:
        asyncio.run(serve())
    elif given.floor:
        floor(json.loads(given.floor.read_text(encoding="utf-8")))
    else:
        sys.exit(measure(given.only, given.repeat or (1 if given.quick else 3), quick=given.quick))


def measure(names: Sequence[str], repeat: int, *, quick: bool) -> int:
    """Print the table; 1 if a goal is missed, else 0."""
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, openai {version('openai')}; medians of {repeat}, latency {LATENCY} s")
    heads = {who: who for who in (OURS, FLOOR, LOOP)}
    print(Row("", heads, "ratio", "goal"), flush=True)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="lexpilot ") as name:
        project = copied(Path(name))
        with serving(project) as server:
            bench = Bench(Path(name), project, server, repeat=repeat, quick=quick)
            for scenario in names:
                try:
                    for line in SCENARIOS[scenario](bench):
                        print(line, flush=True)
                        missed += isinstance(line, Row) and line.met is False
                except Failed as error:
                    print(f"{scenario}: MISSED, {error}", flush=True)
                    missed += 1
    print(f"{missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    main()
