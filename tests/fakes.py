"""What the tests play with: cases, providers that answer from a script, and a folder to run stages in."""

import contextlib
import io
import json
import tempfile
import threading
import unittest
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import eval_DCG
import eval_LCA
import eval_LJP
import eval_LJP_direct
import eval_LJP_gold
import eval_LJP_interaction
import LexAwN_gen
import show_results
from adapter import Connect, Role, Send
from records import ARTIFACTS, RoleName

ASK = '{"reason": "还在提问", "label": "澄清提问"}'
JUDGE = '{"reason": "已有结论", "label": "直接判断"}'
YES = '{"reason": "问到了", "label": "是"}'
NO = '{"reason": "没有问到", "label": "否"}'

STAGES: dict[str, Callable[..., None]] = {
    "LexAwN_gen.py": LexAwN_gen.main,
    "eval_LCA.py": eval_LCA.main,
    "eval_DCG.py": eval_DCG.main,
    "eval_LJP_direct.py": eval_LJP_direct.main,
    "eval_LJP_gold.py": eval_LJP_gold.main,
    "eval_LJP_interaction.py": eval_LJP_interaction.main,
    "eval_LJP.py": eval_LJP.main,
}
SIX_COMMANDS = (
    "LexAwN_gen.py",
    "eval_DCG.py",
    "eval_LJP_direct.py",
    "eval_LJP_gold.py",
    "eval_LJP_interaction.py",
)


def verdicts(*given: str) -> str:
    """An extraction judge's reply."""
    entries = [{"claim": n, "reason": "依据", "verdict": verdict} for n, verdict in enumerate(given, 1)]
    return json.dumps({"verdicts": entries}, ensure_ascii=False)


def history(*contents: str) -> list[dict[str, str]]:
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(contents)]


def make_case(number: str = "1", **changes: Any) -> dict[str, Any]:
    """A valid case of one claim, with the given fields instead of its own; None removes a field."""
    case = {
        "case_number": number,
        "cause_of_action": "民间借贷纠纷",
        "plaintiff_type": "自然人",
        "focal_point": ["钱还过没有"],
        "key_details": ["三月还过一半"],
        "result_dict": {"请求判令被告归还借款1万元": "部分支持"},
        "complete_consultation": history(f"案{number}：他借了我1万，三月还过一半，能都要回来吗？"),
        "underspecified_consultation": history(f"案{number}：他借了我1万，能都要回来吗？"),
    }
    return {key: value for key, value in {**case, **changes}.items() if value is not None}


def without_calls(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record but for what differs between two runs with the same replies: seconds, and the hashes over them."""
    return {key: value for key, value in record.items() if key not in ("calls", "input_sha256", "record_sha256")}


def body(text: str | None, finish_reason: str | None = "stop", **message: Any) -> bytes:
    """A chat completion's bytes."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    return json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


class Provider:
    """Answers each prompt by a function of role and prompt, and remembers what it was asked, in order."""

    def __init__(self, answer: Callable[[RoleName, str], str | bytes]) -> None:
        self.answer = answer
        self.asked: list[tuple[RoleName, str]] = []
        self.requests: list[Mapping[str, Any]] = []
        self.lock = threading.Lock()

    def connect(self, role: Role) -> Send:
        def send(request: Mapping[str, Any]) -> bytes:
            prompt = request["messages"][0]["content"]
            with self.lock:
                self.asked.append((role.name, prompt))
                self.requests.append(request)
            reply = self.answer(role.name, prompt)
            return reply if isinstance(reply, bytes) else body(reply)

        return send

    def prompts(self, role: RoleName) -> list[str]:
        return [prompt for name, prompt in self.asked if name == role]


Reply = str | bytes | BaseException


class Script(Provider):
    """Answers from a list for each role, in order; raises an exception that stands there; fails when asked once more."""

    def __init__(
        self, *, evaluated: Sequence[Reply] = (), user: Sequence[Reply] = (), judge: Sequence[Reply] = ()
    ) -> None:
        super().__init__(self.next_reply)
        self.left: dict[str, list[Reply]] = {"evaluated": [*evaluated], "user": [*user], "judge": [*judge]}

    def next_reply(self, role: RoleName, prompt: str) -> str | bytes:
        if not self.left[role]:
            raise AssertionError(f"{role} is asked once too often: {prompt[:80]!r}")
        reply = self.left[role].pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


def sensible(role: RoleName, prompt: str) -> str:
    """Replies by the kind of prompt, the same for the same prompt: every case asks, misses once and hits, and loses."""
    if role == "user":
        return "我想想，大概是这样。"
    if role == "evaluated":
        return "请问钱还过吗？" if "二选一" in prompt or "一个问题" in prompt else "部分支持，因为还过一半。"
    if "诉讼请求如下" in prompt:
        return verdicts(*["部分支持"] * prompt.split("诉讼请求如下：\n")[1].split("\n\n")[0].count("\n"), "部分支持")
    if "命中关键细节" in prompt:
        return YES if "我想想" in prompt else NO
    return ASK if "请问" in prompt else JUDGE


class Folder(unittest.TestCase):
    """A test with a data file and an output root of its own."""

    cases: Sequence[dict[str, Any]] = (make_case("1"), make_case("2"), make_case("3"))

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="lexpilot 测试 ")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.data_file = self.write_cases(self.cases)

    def write_cases(self, cases: Sequence[Any], name: str = "data.json") -> Path:
        path = self.root / name
        path.write_text(json.dumps(cases, ensure_ascii=False), encoding="utf-8")
        return path

    def options(self, *more: str) -> list[str]:
        return ["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), "--model", "m", *more]

    def stage(self, script: str, connect: Connect, *more: str) -> str:
        """Run a stage as its command would, one case after another unless told otherwise; what it said on stderr."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            STAGES[script](["--parallel", "1", *self.options(*more)], connect)
        return said.getvalue()

    def play(self, script: str, *more: str, **replies: Sequence[Reply]) -> Script:
        """Run a stage against a script of replies, all of which must be used up."""
        provider = Script(**replies)
        self.stage(script, provider.connect, *more)
        self.assertEqual({role: left for role, left in provider.left.items() if left}, {}, "replies left over")
        return provider

    def run_all(self, *more: str, answer: Callable[[RoleName, str], str | bytes] = sensible) -> Provider:
        """Run every stage with a provider that answers each prompt by a function."""
        provider = Provider(answer)
        for script in SIX_COMMANDS:
            self.stage(script, provider.connect, *more)
        return provider

    def show(self, *more: str) -> str:
        """What `show_results.py` prints of this folder's runs."""
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
            show_results.main(["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), *more])
        return shown.getvalue()

    def file(self, name: str, run_id: str = "run1") -> Path:
        (path,) = (self.root / "out").glob(ARTIFACTS[name].path.format(run=f"{run_id}/*"))
        return path

    def records(self, name: str, run_id: str = "run1") -> list[dict[str, Any]]:
        lines = self.file(name, run_id).read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def snapshot(self, name: str = "out") -> dict[str, bytes]:
        """Every output file's bytes, by its path below the output root."""
        out = self.root / name
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
