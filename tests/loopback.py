"""A provider on 127.0.0.1 for tests that run the real commands: the replies of `fakes.sensible`, over HTTP."""

import http.server
import json
import os
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fakes import body, sensible

from records import RoleName

HERE = Path(__file__).resolve().parent.parent
ROLES: dict[str, RoleName] = {"m": "evaluated", "u": "user", "j": "judge"}


class Loopback:
    """Serves chat completions for the models m, u and j, or others; counts them; may hold back or replace an answer.

    `before(count, role)` is called ahead of the count-th answer, from 1: it may block, or return a status and a body.
    """

    def __init__(
        self,
        test: unittest.TestCase,
        before: Callable[[int, RoleName], tuple[int, bytes] | None],
        roles: Mapping[str, RoleName] = ROLES,
    ) -> None:
        self.asked: list[tuple[RoleName, str]] = []
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        loopback = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                role, prompt = roles[request["model"]], request["messages"][0]["content"]
                with loopback.lock:
                    loopback.asked.append((role, prompt))
                    loopback.requests.append(request)
                    count = len(loopback.asked)
                status, raw = before(count, role) or (200, body(str(sensible(role, prompt))))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a killed client is part of the test

        server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        test.addCleanup(thread.join)
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)


def fetch(url: str, content: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Status and body of a request, whatever the status and past any proxy; OSError while nobody listens."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, content, headers)) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def surroundings(url: str = "http://127.0.0.1:1/v1", **more: str) -> dict[str, str]:
    """An environment with nothing of the tester's own settings and proxies in it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LEXPILOT_", "OPENAI_", "PYTHON", "LC_", "LANG"))
        and not name.lower().endswith("_proxy")
    }
    names = {"LEXPILOT_MODEL": "m", "LEXPILOT_USER_MODEL": "u", "LEXPILOT_JUDGE_MODEL": "j"}
    return {**kept, **names, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-secret-key", "NO_PROXY": "127.0.0.1", **more}


def begin(
    script: str, *options: str, env: Mapping[str, str], cwd: Path | None = None, **more: Any
) -> "subprocess.Popen[bytes]":
    """A command as a user starts it, its output caught."""
    return subprocess.Popen(
        [sys.executable, "-B", str(HERE / script), *options],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def finish(process: "subprocess.Popen[bytes]", timeout: float = 120) -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr of a command."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err
