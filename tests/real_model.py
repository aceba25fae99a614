"""The stages against a real OpenAI-compatible server with a real small model in all three roles.

    LEXPILOT_IT_GGUF=MODEL.gguf python -B -m unittest discover -s tests -p real_model.py -v

Opt-in: takes about half an hour and, once, the network: the server is installed into a virtual environment of its own.
Asserts what must hold for any model and nothing of what it says. What its answers taught the adapter stands in
test_adapter.py, with a server that can be told what to answer.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fakes import Folder, history, make_case
from loopback import HERE, Loopback, begin, fetch, finish, surroundings

from adapter import Channel, ChatModel, make_role, openai_client
from errors import ProviderError
from LexAwN_gen import exchange
from policies import PROMPTS
from records import ARTIFACTS, HITS, RESPONSE_KINDS, TELLINGS, VERDICTS, RoleName
from scores import TASKS
from simulate import STAGES

PACKAGE = "xllamacpp==2026.10.11549"
GGUF = Path(os.environ.get("LEXPILOT_IT_GGUF", ""))
LONGEST_REPLY = 400  # characters
LABELS = {"kind": RESPONSE_KINDS, "hit": HITS, "telling": TELLINGS}  # of the judge's tasks that have one
SEALS = ("input_sha256", "record_sha256")  # they name the run


def setUpModule() -> None:
    if not GGUF.is_file():
        raise unittest.SkipTest("LEXPILOT_IT_GGUF names no file; give it a GGUF model to run this")
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    scratch = tempfile.TemporaryDirectory(prefix="lexpilot server ")
    unittest.addModuleCleanup(scratch.cleanup)
    subprocess.run([sys.executable, "-m", "venv", scratch.name], check=True)
    python = Path(scratch.name) / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], check=True)
    Server.python = python


class Server:
    """llama.cpp's server in a process of its own; its address is known before the model is loaded."""

    python: Path
    """Of the environment that it is installed into."""

    def __init__(self, test: unittest.TestCase, context: int = 8192, *key: str) -> None:
        script = str(HERE / "tests" / "real_server.py")
        self.process = subprocess.Popen(
            [self.python, script, str(GGUF), str(context), *key],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        test.addCleanup(self.kill)
        self.address = f"http://127.0.0.1:{self.wait_for('PORT (.*)')}"

    def wait_for(self, pattern: str) -> str:
        """What a line of its output holds beside the word that is waited for."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.fullmatch(pattern, line.strip()):
                return found[found.re.groups]
        raise AssertionError(f"the server ended with status {self.process.wait()}")

    def loaded(self) -> "Server":
        self.wait_for("LISTENING")
        return self

    def get(self, path: str) -> tuple[int | None, Any]:
        """Status and JSON of a GET; no status while nobody listens."""
        try:
            status, raw = fetch(self.address + path)
        except OSError:
            return None, None
        return status, json.loads(raw)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def guided(request: Mapping[str, Any], asked_before: int) -> dict[str, Any]:
    """A request with what lets any small model come to an end and a judge answer in form: its server's own means.

    The same prompt gets another seed each time, so that a reply that was rejected is not repeated for ever.
    """
    prompt = request["messages"][0]["content"]
    more: dict[str, Any] = {"seed": 42 + asked_before}
    text = {"type": "string", "maxLength": 60}
    if found := PROMPTS["verdicts"].fullmatch(prompt):
        entries = [
            {
                "type": "object",
                "properties": {
                    "claim": {"const": number},
                    "reason": text,
                    "verdict": {"enum": VERDICTS},
                },
                "required": ["claim", "reason", "verdict"],
            }
            for number in range(1, int(found["count"]) + 1)
        ]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"verdicts": {"type": "array", "prefixItems": entries}},
            "required": ["verdicts"],
        }
    elif labels := [labels for kind, labels in LABELS.items() if PROMPTS[kind].fullmatch(prompt)]:
        schema = {
            "type": "object",
            "properties": {"reason": text, "label": {"enum": labels[0]}},
            "required": ["reason", "label"],
        }
    else:
        return {**request, **more, "grammar": rf"root ::= [^\x00]{{1,{LONGEST_REPLY}}}"}
    return {**request, **more, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


class Forward(Loopback):
    """Between the stages and the server: counts what is asked, and hands it on; drops the connection when that fails."""

    def __init__(self, test: unittest.TestCase, server: Server, before: Callable[[], object] = lambda: None) -> None:
        self.server = server
        self.at_each = before
        super().__init__(test, self.forward)

    def renew(self, server: Server) -> None:
        """Go on with a fresh server and a fresh count."""
        self.server.kill()
        self.server = server
        self.asked.clear()
        self.requests.clear()

    def forward(self, count: int, role: RoleName) -> tuple[int, bytes]:
        prompt = self.asked[count - 1][1]
        request = guided(self.requests[count - 1], sum(earlier == prompt for _, earlier in self.asked[: count - 1]))
        self.at_each()
        address, json_type = self.server.address + "/v1/chat/completions", {"Content-Type": "application/json"}
        return fetch(address, json.dumps(request).encode(), **json_type)


class Stages(Folder):
    cases = (
        make_case(
            "1",
            key_details=["2026年3月转账还过4000元"],
            complete_consultation=history("朋友去年借我1万元，今年3月转账还过4000元。我想让他还我1万元，能行吗？"),
            underspecified_consultation=history("朋友去年借我1万元，有借条，写了日期。我想让他还我1万元，能行吗？"),
        ),
        make_case(
            "2",
            cause_of_action="房屋租赁合同纠纷",
            focal_point=["押金什么情况下可以扣"],
            key_details=["合同写明欠费才能扣押金，水电费已经交清"],
            result_dict={"请求判令房东退还押金3000元": "支持", "请求判令房东支付利息500元": "驳回"},
            complete_consultation=history(
                "我退租了，房东不退3000元押金。", "合同怎么写的？", "欠费才能扣，我交清了。押金和500元利息能要吗？"
            ),
            underspecified_consultation=history(
                "我退租了，房东不退3000元押金。", "您住了多久？", "住了整整两年，钥匙还了。押金和500元利息能要吗？"
            ),
        ),
    )

    def run_stage(self, script: str, url: str, *options: str) -> tuple[int, str]:
        places = ("--dataset", str(self.data_file), "--output-root", str(self.root / "out"))
        more = ("--max-tokens", "2048", "--timeout", "600", "--parallel", "1")
        status, _, err = finish(begin(script, *places, *more, *options, env=surroundings(url)), timeout=3600)
        return status, err.decode()

    def run_all_stages(self, forward: Forward, run: str) -> None:
        for script in STAGES:
            status, err = self.run_stage(script, forward.url, "--run-id", run)
            self.assertEqual(status, 0, err)
        self.check_calls(Counter(role for role, _ in forward.asked), run)

    def test_two_cases_pass_through_all_stages_twice_with_the_same_records(self) -> None:
        forward = Forward(self, Server(self).loaded())
        self.run_all_stages(forward, "run1")
        forward.renew(Server(self).loaded())
        self.run_all_stages(forward, "run2")
        for name in ARTIFACTS:
            one, other = (
                [
                    {key: value for key, value in record.items() if key not in SEALS}
                    for record in self.records(name, run)
                ]
                for run in ("run1", "run2")
            )
            self.assertEqual(one, other, name)
        places = ("--dataset", str(self.data_file), "--output-root", str(self.root / "out"))
        status, out, shown = finish(begin("show_results.py", *places, "--format", "json", env=surroundings()))
        self.assertEqual(status, 0, shown)  # it reads every record, and refuses one that is not well-formed
        (group,) = json.loads(out)["groups"]
        self.assertEqual((group["cases"], group["runs"], len(group["tasks"])), (2, ["run1", "run2"], 5))
        self.check_histories()

    def test_a_finished_run_is_judged_again_attacked_and_audited(self) -> None:
        forward = Forward(self, Server(self).loaded())
        self.run_all_stages(forward, "run1")
        places = ("--dataset", str(self.data_file), "--output-root", str(self.root / "out"))
        before = {path: path.read_bytes() for path in (self.root / "out").rglob("*.jsonl")}
        for script, *way in (
            ("eval_judges.py",),
            ("eval_judges.py", "--per-criterion"),
            ("eval_judges.py", "--attacks", "1"),
            ("audit_user.py", "--judge"),
        ):
            forward.asked.clear()
            forward.requests.clear()
            command = (script, *places, *way, "--timeout", "600", "--parallel", "1", "--format", "json")
            status, out, err = finish(begin(*command, env=surroundings(forward.url)), timeout=3600)
            self.assertEqual(status, 0, err.decode())
            self.assertEqual({role for role, _ in forward.asked}, {"judge"})
            found = json.loads(out)
        self.assertEqual(found["judges"][0]["replies"], found["replies"])
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        status, out, err = finish(begin("eval_judges.py", *places, "--show", "--format", "json", env=surroundings()))
        self.assertEqual(status, 0, err.decode())
        found = json.loads(out)
        self.assertEqual({row["task"] for row in found["figures"]}, {*TASKS})
        self.assertEqual({row["trials"] + row["unreadable"] for row in found["attacks"] if row["task"] != "all"}, {1})

    def check_calls(self, asked: Mapping[RoleName, int], run: str) -> None:
        """No role is asked more often than the protocol and its retries allow, nor less."""
        rounds = [record["rounds"] for record in self.records("interaction", run)]
        replies = sum(held["user_reply"] is not None for of in rounds for held in of)
        forced = sum(of[-1]["user_reply"] is not None for of in rounds)
        self.assertTrue(all(len(of) <= 3 for of in rounds))
        further = sum(len(of) - 1 for of in rounds)
        limits: tuple[tuple[RoleName, int, int], ...] = (
            ("evaluated", 2 * (2 + 2 + 1 + 1) + further + forced, 4),
            ("user", 2 + replies, 4),
            ("judge", 2 * (2 + 2 + 3) + further, 16),
        )
        for role, least, tries in limits:
            self.assertTrue(least <= asked[role] <= tries * least, f"{role}: {least}, {asked}")

    def check_histories(self) -> None:
        """A saved history is the case's own, then each response and reply as a message of its own, with no reasoning."""
        for record, case in zip(self.records("interaction"), self.cases, strict=True):
            expected = [*case["underspecified_consultation"]]
            for held in record["rounds"]:
                if held["user_reply"] is not None:
                    expected += exchange(held["response"], held["user_reply"])
            self.assertEqual(record["history"], expected)
            self.assertNotRegex(json.dumps(record["history"], ensure_ascii=False), "</?think")

    def test_a_killed_server_costs_no_second_call_for_what_is_saved(self) -> None:
        server = Server(self).loaded()

        def kill_at_the_second() -> None:
            if len(forward.asked) == 2:
                server.kill()

        forward = Forward(self, server, kill_at_the_second)
        status, err = self.run_stage("eval_LJP_direct.py", forward.url, "--retries", "0")
        self.assertEqual(status, 3, err)
        self.assertRegex(
            err, r"case 2, .*evaluated model 'm' at http://127.0.0.1:\d+/v1, 1 try: .*the same command resumes"
        )
        saved = self.file("a1_direct").read_bytes()
        forward.server = Server(self).loaded()
        status, err = self.run_stage("eval_LJP_direct.py", forward.url)
        self.assertEqual(status, 0, err)
        self.assertTrue(self.file("a1_direct").read_bytes().startswith(saved))
        first, *others = [prompt for role, prompt in forward.asked if role == "evaluated"]
        self.assertNotIn(first, others)


class Errors(unittest.TestCase):
    """What the real server answers when it cannot answer, and what a user is told."""

    def model(self, server: Server, path: str = "/v1", key: str = "any", retries: int = 0) -> ChatModel:
        env = {"OPENAI_BASE_URL": server.address + path, "OPENAI_API_KEY": key}
        return ChatModel(Channel(make_role("evaluated", "m", 0.7, 400, 60.0, env), openai_client, retries))

    def told(self, model: ChatModel, prompt: str = "你好") -> str:
        with self.assertRaises(ProviderError) as caught:
            model.ask(prompt)
        return str(caught.exception)

    def test_a_prompt_beyond_the_context_says_to_give_it_more(self) -> None:
        told = self.told(self.model(Server(self, 512).loaded()), "长" * 3000)
        self.assertRegex(told, r"1 try: HTTP 400 .*context.*Give the model a longer context")

    def test_a_wrong_key_names_the_variable(self) -> None:
        server = Server(self, 512, "secret").loaded()
        self.assertRegex(self.told(self.model(server, key="wrong")), "HTTP 401 .*Check the key in OPENAI_API_KEY")
        self.assertTrue(self.model(server, key="secret").ask("你好"))

    def test_a_wrong_address_names_the_base_url(self) -> None:
        told = self.told(self.model(Server(self, 512).loaded(), path="/wrong"))
        self.assertRegex(told, "HTTP 404 .*base URL, which often ends in /v1")

    def test_a_server_that_still_loads_is_waited_for(self) -> None:
        server = Server(self, 512)
        model = self.model(server, retries=20)
        self.assertTrue(callable(model.channel.send))  # the client is made before the race begins
        while (status := server.get("/health")[0]) is None:
            time.sleep(0.01)
        if status != 503:
            self.skipTest("the model was loaded before it could be asked")
        self.assertTrue(model.ask("你好"))

    def test_a_server_that_dies_in_the_middle_says_that_the_command_resumes(self) -> None:
        server = Server(self, 2048).loaded()
        model, found = self.model(server), list[str]()
        asking = threading.Thread(target=lambda: found.append(self.told(model, "写一篇一千字的作文。")))
        asking.start()
        while not server.get("/slots")[1][0]["is_processing"]:
            time.sleep(0.01)
        server.kill()
        asking.join()
        self.assertRegex(found[0], "1 try: Connection error: .*the same command resumes")
        self.assertRegex(self.told(model), "1 try: Connection error: .*the same command resumes")


if __name__ == "__main__":
    unittest.main()
