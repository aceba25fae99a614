"""The whole benchmark without a key: a provider on this machine that plays all three roles, and the real stages against it.

    python simulate.py [--policy NAME] [--runs N] [--limit N] …   every stage, then the results table
    python simulate.py --serve                                   the provider alone, so that loops can be tried on it

Serves: HTTP on loopback in OpenAI's shapes, `POST /v1/chat/completions` and `GET /v1/models`; `policies.py` has what is
said. Writes: what the stages write, below an output root of its own. Any API key is taken, and every random draw comes
from it, so that a key stands for a seed and a run: the same key gives the same figures again. A judge that errs draws anew
when it is asked the same again, as long as the provider is up.
"""

import argparse
import contextlib
import hashlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from checkpoints import fingerprint
from common import HERE, OPTIONS, load_dataset, parse
from errors import SettingsError, command, notice
from policies import (
    ERRING_JUDGE,
    JUDGE_MODEL,
    MODELS,
    POLICIES,
    USER_MODEL,
    Cases,
    UnknownPromptError,
    answer,
    expected,
)
from records import SIMULATED, Case, Verdict
from replies import decode_utf8
from scores import all_scores, find_runs
from show_results import group_results

STAGES = ("LexAwN_gen.py", "eval_DCG.py", "eval_LJP.py")
LARGEST_REQUEST = 10_000_000  # bytes

# ----------------------------------------------------------------------------------------------------------------------
# The provider


class Refused(Exception):
    """A request that gets an error instead of a completion."""

    def __init__(self, status: int, code: str, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.code = code


def completion(request: Any, cases: Cases, seed: str) -> dict[str, Any]:
    """The chat completion of a request's JSON value; Refused if it is none that this provider answers.

    A character counts as a token; a text longer than `max_tokens` is cut, and its finish reason says so.
    """
    if not isinstance(request, dict):
        raise Refused(400, "invalid_json", "the request is not a JSON object")
    model, messages, most = request.get("model"), request.get("messages"), request.get("max_tokens")
    if model not in MODELS and not (isinstance(model, str) and ERRING_JUDGE.fullmatch(model)):
        raise Refused(
            404,
            "model_not_found",
            f"there is no model {model!r} here, only {', '.join(MODELS)} and {JUDGE_MODEL}-<error>",
        )
    only = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    prompt = only.get("content") if isinstance(only, dict) and only.get("role") == "user" else None
    if not isinstance(prompt, str):
        raise Refused(400, "invalid_value", "messages: a single user message of text is expected")
    if request.get("stream") or request.get("n", 1) != 1:
        raise Refused(400, "unsupported_value", "n, stream: there is one choice at a time, not streamed")
    if most is not None and (type(most) is not int or most < 1):
        raise Refused(400, "invalid_value", f"max_tokens: {most!r} is no whole number from 1")
    try:
        text = answer(model, prompt, cases, seed)
    except UnknownPromptError as error:
        raise Refused(400, "unknown_prompt", f"messages: {error}") from error
    said = text[:most]
    return {
        "id": f"chatcmpl-{fingerprint([model, prompt, seed])[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": said, "refusal": None},
                "finish_reason": "stop" if said == text else "length",
            }
        ],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(said),
            "total_tokens": len(prompt) + len(said),
        },
    }


class Provider(http.server.ThreadingHTTPServer):
    """Serves the simulated models on 127.0.0.1; SettingsError if the port is taken."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let two servers share a port
    request_queue_size = 128

    def __init__(self, cases: Cases, port: int) -> None:
        self.cases = cases
        self.times = Counter[tuple[str, bytes]]()
        self.lock = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            raise SettingsError(f"port {port} cannot be had ({error}); take another with --port") from error
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def seed_for(self, key: str, request: bytes) -> str:
        """What the draws of an answer come from: the key, and how often the same was asked before."""
        asked = key, hashlib.sha256(request).digest()
        with self.lock:
            self.times[asked] += 1
            return f"{key} {self.times[asked]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was stopped in the middle is no fault of the server."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together: apart, each answer would wait for the client's acknowledgement
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.answer(self.models)

    def do_POST(self) -> None:
        self.answer(self.completions)

    def models(self) -> dict[str, Any]:
        self.key_for("/v1/models")
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "lexpilot"} for name in MODELS]
        return {"object": "list", "data": listed}

    def completions(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            self.close_connection = True  # what was not read would be taken for the next request
            raise Refused(413, "invalid_length", f"a body of known length up to {LARGEST_REQUEST} bytes is expected")
        raw = self.rfile.read(int(length))
        key = self.key_for("/v1/chat/completions")
        try:
            request = json.loads(decode_utf8(raw))
        except (ValueError, RecursionError) as error:
            raise Refused(400, "invalid_json", f"the request is not JSON: {error}") from error
        erring = isinstance(request, dict) and ERRING_JUDGE.fullmatch(str(request.get("model")))
        return completion(request, self.server.cases, self.server.seed_for(key, raw) if erring else key)

    def key_for(self, path: str) -> str:
        """The API key of a request for this path; Refused for another path or without a key."""
        if self.path.partition("?")[0] != path:
            raise Refused(404, "unknown_url", f"there is no {self.command} {self.path} here")
        scheme, _, key = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Refused(401, "invalid_api_key", "an API key is expected; any word will do")
        return key.strip()

    def answer(self, made: Callable[[], dict[str, Any]]) -> None:
        try:
            self.send(200, made())
        except Refused as refused:
            self.refuse(refused.status, refused.code, str(refused))

    def refuse(self, status: int, code: str, words: str) -> None:
        error = {"message": words, "type": "invalid_request_error", "param": None, "code": code}
        self.send(status, {"error": error})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses by itself (a method, a request line), in the same shape as the rest."""
        self.close_connection = True
        self.refuse(code, "invalid_request", message or "the request cannot be read")

    def send(self, status: int, value: Mapping[str, Any]) -> None:
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """The stages show what happens."""


@contextlib.contextmanager
def serving(cases: Cases, port: int) -> Iterator[str]:
    """A provider in a thread of its own, stopped at the end; its base URL."""
    with Provider(cases, port) as provider:
        thread = threading.Thread(target=provider.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield provider.url
        finally:
            provider.shutdown()
            thread.join()


# ----------------------------------------------------------------------------------------------------------------------
# The stages


def variables(policy: str, url: str, key: str, judge: str = JUDGE_MODEL) -> dict[str, str]:
    """The five variables by which the stages ask the simulated models."""
    return {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": key,
        "LEXPILOT_MODEL": SIMULATED + policy,
        "LEXPILOT_USER_MODEL": USER_MODEL,
        "LEXPILOT_JUDGE_MODEL": judge,
    }


def surroundings(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without settings of this project, keys and proxies: nothing of a real run's may take part."""
    ours = ("LEXPILOT_", "OPENAI_")
    kept = {n: v for n, v in env.items() if not n.upper().startswith(ours) and not n.lower().endswith("_proxy")}
    return {**kept, "NO_PROXY": "127.0.0.1"}


def run_script(script: str, options: Sequence[str], env: Mapping[str, str]) -> None:
    """Run a command of this project as a user would; ends with its status if it fails.

    Ctrl-C reaches it as well, and it is waited for while it saves what is in flight.
    """
    with subprocess.Popen([sys.executable, str(HERE / script), *options], env=dict(env)) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    if status:
        notice(
            f"{script} ended with status {status}; to begin anew, delete the output root or take another --output-root"
        )
        sys.exit(status)


def comparison(
    figures: Mapping[str, Any], runs: Sequence[str], cases: Sequence[Case], commonest: Verdict
) -> Iterator[str]:
    """Lines that hold the careless policy's figures against what it should come to."""
    yield f"{'expected of simulated/careless':32} {'value':>9} {'99 % of runs lie within':>26}   found"
    for task, metrics in expected(cases, commonest).items():
        for metric, bound in metrics.items():
            found = [figures[task]["overall"][metric]["per_run"][run] for run in runs]
            outside = sum(not (value is not None and bound.low <= value <= bound.high) for value in found)
            verdict = "within" if not outside else f"{outside} of {len(found)} outside"
            limits = f"{bound.low:.4f} to {bound.high:.4f}"
            yield f"  {task + ' ' + metric:30} {float(bound.value):9.4f} {limits:>26}   {verdict}"


def parser() -> argparse.ArgumentParser:
    about = "Run every stage against simulated models whose answers are known; no key and no network needed."
    options = argparse.ArgumentParser(prog="simulate.py", description=about, allow_abbrev=False)
    policies = "; ".join(f"{name} {policy.about}" for name, policy in POLICIES.items()).replace("%", "%%")
    options.add_argument("--policy", choices=POLICIES, default="careless", help=f"default: careless. {policies}")
    options.add_argument("--runs", type=count, default=1, metavar="N", help="how many runs; default: 1")
    options.add_argument("--seed", type=word, default="0", metavar="WORD", help="decides every draw; default: 0")
    options.add_argument(
        "--judge-error",
        type=share,
        metavar="E",
        help="the judge gives another label that often, from 0 to 1; default: never",
    )
    options.add_argument("--port", type=count, default=8432, metavar="N", help="on 127.0.0.1; default: 8432")
    options.add_argument("--serve", action="store_true", help="only serve, until Ctrl-C")
    for option in OPTIONS:
        if option.flag in ("--dataset", "--output-root", "--limit", "--parallel"):
            default = HERE / "simulated" if option.flag == "--output-root" else option.default
            shown = f"{option.help}; default: {default or 'none'}".replace("%", "%%")
            options.add_argument(option.flag, type=option.read, default=default, metavar="X", help=shown)
    return options


def count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return int(value)


def share(value: str) -> str:
    if not ERRING_JUDGE.fullmatch(f"{JUDGE_MODEL}-{value}"):
        raise argparse.ArgumentTypeError("must be a number from 0 to 1, such as 0.05")
    return value


def word(value: str) -> str:
    if not re.fullmatch("[A-Za-z0-9]{1,20}", value):
        raise argparse.ArgumentTypeError(
            "must be up to 20 ASCII letters or digits: it becomes a part of key and run id"
        )
    return value


def judge_of(given: argparse.Namespace) -> str:
    return JUDGE_MODEL if given.judge_error is None else f"{JUDGE_MODEL}-{given.judge_error}"


def serve(cases: Cases, given: argparse.Namespace) -> None:
    """Serve until Ctrl-C, with what to set in another terminal."""
    stopped = threading.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):  # a shell starts what is behind an & with SIGINT ignored
        signal.signal(ending, lambda *_: stopped.set())
    with serving(cases, given.port) as url:
        settings = variables(given.policy, url, given.seed, judge_of(given))
        print("Bash:", *(f'export {name}="{value}"' for name, value in settings.items()), sep="\n")
        print("\nPowerShell:", *(f'$env:{name} = "{value}"' for name, value in settings.items()), sep="\n")
        if any(name.lower().endswith("_proxy") for name in os.environ):
            print('\nA proxy is set: take this address out of it with NO_PROXY="127.0.0.1".')
        print(f"\nServing {', '.join(MODELS)}, {JUDGE_MODEL}-<error> until Ctrl-C.", flush=True)
        while not stopped.wait(1.0):  # with a limit, since Windows shows no Ctrl-C to a wait without one
            pass


def main(argv: Sequence[str] | None = None) -> None:
    given = parse(parser(), argv)
    dataset = load_dataset(given.dataset)
    cases, chosen = Cases(dataset.cases), dataset.cases[: given.limit]
    if given.serve:
        serve(cases, given)
        return
    # What decides the answers and is in no manifest stands in the run id: a seed's records are not taken for another's.
    seeded = "" if given.seed == "0" else f"-seed-{given.seed}"
    seeded += "" if given.judge_error is None else f"-judge-{given.judge_error}"
    limited = "" if given.limit is None else f"-first-{given.limit}"
    runs = {f"run{number}{seeded}{limited}": f"{given.seed}-run{number}" for number in range(1, given.runs + 1)}
    places = ["--dataset", str(given.dataset), "--output-root", str(given.output_root)]
    limit = [] if given.limit is None else ["--limit", str(given.limit)]
    with serving(cases, given.port) as url:
        for run, key in runs.items():
            env = {**surroundings(os.environ), **variables(given.policy, url, key, judge_of(given))}
            for script in STAGES:
                notice(f"{run}: {script}")
                run_script(script, [*places, *limit, "--run-id", run, "--parallel", str(given.parallel)], env)
    model = SIMULATED + given.policy
    which = ["--run-id", *runs] if len(runs) == 1 else []  # of several, the table is their mean and SD
    run_script("show_results.py", [*places, "--model", model, *which], surroundings(os.environ))
    if given.policy == "careless" and given.judge_error is None:
        by_number = {case.number: case for case in dataset.cases}
        made = [run for name in runs for run in find_runs(given.output_root, by_number, model, name)]
        found = group_results([run.manifest for run in made], all_scores(given.output_root, made, by_number))
        print("", *comparison(found["tasks"], [*runs], chosen, cases.commonest), sep="\n")
    print(f"\nAll records lie below {given.output_root.resolve()}.")


if __name__ == "__main__":
    command(main)
