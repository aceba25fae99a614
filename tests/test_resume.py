"""Nothing paid for is asked twice: the journal of answers, the lock of a run, places at once and the progress line."""

import contextlib
import io
import json
import shutil
import signal
import sys
import threading
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes import ASK, JUDGE, SIX_COMMANDS, Folder, Provider, make_case, sensible, without_calls
from loopback import Loopback, begin, finish, surroundings

from adapter import Channel, Fault, make_role
from checkpoints import _status
from errors import ModelOutputError, ProviderError
from parallel import LINE_EVERY, LOOK_EVERY, Turns, side_by_side
from records import ARTIFACTS, RoleName

DOWN = Fault("down", final=True)


class Journal(Folder):
    cases = (make_case("1"),)

    def journal(self, name: str) -> Path:
        (folder,) = (self.root / "out" / "runs" / "run1").iterdir()
        return folder / f"{name}.open.jsonl"

    def failing_at(self, nth: int) -> Provider:
        """A provider that is down at its nth request and else sensible."""

        def answer(role: RoleName, prompt: str) -> str:
            if len(provider.asked) == nth:
                raise DOWN
            return sensible(role, prompt)

        provider = Provider(answer)
        return provider

    def test_after_a_failure_at_any_call_only_that_call_is_made_again(self) -> None:
        whole = Provider(sensible)
        for script in SIX_COMMANDS:
            self.stage(script, whole.connect)
        expected = {name: [without_calls(record) for record in self.records(name)] for name in ARTIFACTS}
        for nth in range(1, len(whole.asked) + 1):
            with self.subTest(nth):
                shutil.rmtree(self.root / "out")
                provider = self.failing_at(nth)
                for script in SIX_COMMANDS:
                    with contextlib.suppress(ProviderError):
                        self.stage(script, provider.connect)
                        continue
                    self.stage(script, provider.connect)
                self.assertEqual(len(provider.asked), len(whole.asked) + 1)
                self.assertEqual(Counter(provider.asked) - Counter(whole.asked), Counter([provider.asked[nth - 1]]))
                found = {name: [without_calls(record) for record in self.records(name)] for name in ARTIFACTS}
                self.assertEqual(found, expected)
                self.assertEqual([path for path in self.snapshot() if "open" in path], [])

    def test_a_records_calls_are_all_that_led_to_it_before_and_after(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        bad = '{"label": "也许"}'
        with self.assertRaises(ProviderError):
            self.play("LexAwN_gen.py", evaluated=["判1", "问1"], judge=[bad, JUDGE, DOWN])
        self.play("LexAwN_gen.py", evaluated=["判2"], judge=[bad, ASK, JUDGE], user=["答"])
        (record,) = self.records("lca")
        self.assertEqual([call["outcome"] for call in record["calls"]], ["unreadable", "used", "unreadable", "used"])

    def test_a_reply_that_could_not_be_read_is_not_kept(self) -> None:
        self.play("eval_LJP_gold.py", "--limit", "1", evaluated=["判"], judge=['{"verdicts": []}', *SUPPORTED[:1]])
        shutil.rmtree(self.root / "out")
        with self.assertRaises(ModelOutputError):
            self.play("eval_LJP_gold.py", "--limit", "1", evaluated=["判"], judge=["说不好"] * 4)
        self.play("eval_LJP_gold.py", "--limit", "1", judge=["说不好", *SUPPORTED[:1]])

    def interrupt(self) -> bytes:
        """An interaction that failed at its seventh call; its journal."""
        with self.assertRaises(ProviderError):
            self.play(
                "LexAwN_gen.py", "--limit", "1",
                evaluated=["判", "问1", "问2", "问3"], judge=[JUDGE, ASK, ASK, ASK], user=["答1", "答2", DOWN],
            )  # fmt: skip
        return self.journal("interaction").read_bytes()

    def test_a_journal_cut_or_changed_anywhere_costs_only_what_it_no_longer_holds(self) -> None:
        raw = self.interrupt()
        lines = raw.split(b"\n")[:-1]
        answers: list[tuple[RoleName, str]] = [
            *(("user", "答1"), ("evaluated", "问2"), ("judge", ASK)),
            *(("user", "答2"), ("evaluated", "问3"), ("judge", ASK)),
        ]
        self.assertEqual([(json.loads(line)["role"], json.loads(line)["reply"]) for line in lines], answers)
        kept = self.root / "kept"
        shutil.copytree(self.root / "out", kept)
        ends = [sum(len(line) + 1 for line in lines[: n + 1]) for n in range(len(lines))]
        for at in sorted({0, 1, *(end + by for end in ends for by in (-40, -2, -1)), *range(7, len(raw), 997)}):
            for damaged in (raw[:at], raw[:at] + b"\x00" + raw[at + 1 :]):
                with self.subTest(at, cut=len(damaged) == at):
                    shutil.rmtree(self.root / "out")
                    shutil.copytree(kept, self.root / "out")
                    self.journal("interaction").write_bytes(damaged)
                    whole = damaged.split(b"\n")
                    lost = [answer for answer, line in zip(answers, lines, strict=True) if line not in whole]
                    replies: dict[str, list[str]] = {"evaluated": [], "judge": [], "user": []}
                    for role, reply in (*lost, ("user", "答3"), ("evaluated", "终")):
                        replies[role].append(reply)
                    self.play("LexAwN_gen.py", "--limit", "1", **replies)
                    (record,) = self.records("interaction")
                    self.assertEqual(record["final_response"], "终")
                    self.assertEqual([r["user_reply"] for r in record["rounds"]], ["答1", "答2", "答3"])

    def test_an_answer_to_what_has_changed_since_is_not_used(self) -> None:
        self.interrupt()
        self.file("lca").unlink()
        self.file("a1").unlink()
        self.play(
            "LexAwN_gen.py", "--limit", "1",
            evaluated=["判", "另问1", "另问2", "判"], judge=[JUDGE, ASK, ASK, JUDGE], user=["另答1", "另答2"],
        )  # fmt: skip
        (record,) = self.records("interaction")
        self.assertEqual([r["user_reply"] for r in record["rounds"]], ["另答1", "另答2", None])

    def test_a_journal_that_outlived_its_file_is_cleared_away(self) -> None:
        raw = self.interrupt()
        self.play("LexAwN_gen.py", "--limit", "1", evaluated=["终"], user=["答3"])
        self.journal("interaction").write_bytes(raw)
        self.play("LexAwN_gen.py", "--limit", "1")
        self.assertFalse(self.journal("interaction").exists())


SUPPORTED = ('{"verdicts": [{"claim": 1, "reason": "", "verdict": "支持"}]}',)


class Lock(Folder):
    def place(self) -> list[str]:
        return ["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), "--parallel", "1"]

    def held(self) -> tuple[Loopback, "Any", threading.Event]:
        """A stage that waits for its second answer."""
        reached, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def hold(count: int, role: RoleName) -> None:
            if count == 2:
                reached.set()
                release.wait()

        loopback = Loopback(self, hold)
        process = begin("eval_LJP_direct.py", *self.place(), env=surroundings(loopback.url))
        self.assertTrue(reached.wait(60))
        return loopback, process, release

    def test_a_second_command_on_the_run_is_refused_and_the_first_goes_on(self) -> None:
        loopback, process, release = self.held()
        for script in ("eval_LJP_direct.py", "eval_DCG.py"):
            status, _, err = finish(begin(script, *self.place(), env=surroundings(loopback.url)))
            self.assertEqual(status, 1)
            self.assertIn(b"another command is writing to it", err.splitlines()[-1])
        self.assertEqual(len(loopback.asked), 2)
        other = finish(begin("eval_LJP_direct.py", *self.place(), "--run-id", "run2", env=surroundings(loopback.url)))
        self.assertEqual(other[0], 0)
        plan = finish(begin("eval_LJP_direct.py", *self.place(), "--plan", env=surroundings(loopback.url)))
        self.assertEqual(plan[0], 0)
        release.set()
        self.assertEqual(finish(process)[0], 0)

    @unittest.skipIf(sys.platform == "win32", "sends SIGKILL")
    def test_a_killed_command_leaves_no_lock_behind(self) -> None:
        loopback, process, release = self.held()
        process.send_signal(signal.SIGKILL)
        finish(process)
        release.set()
        status, _, err = finish(begin("eval_LJP_direct.py", *self.place(), env=surroundings(loopback.url)))
        self.assertEqual(status, 0, err)

    def test_where_no_lock_can_be_had_a_warning_is_all(self) -> None:
        self.play("eval_LJP_gold.py", "--limit", "1", evaluated=["判"], judge=SUPPORTED)
        (folder,) = (self.root / "out" / "runs" / "run1").iterdir()
        (folder / "lock").unlink()
        (folder / "lock").mkdir()
        said = self.stage("eval_LJP_direct.py", Provider(sensible).connect, "--limit", "1")
        self.assertIn("knows no locks", said)
        self.assertEqual(len(self.records("ljp_direct")), 1)


class Places(unittest.TestCase):
    def test_turns_are_had_in_order_and_who_comes_back_goes_first(self) -> None:
        turns, order, lock = Turns(1), list[str](), threading.Lock()
        turns.take()

        def wait(name: str, back: bool) -> None:
            turns.take(back)
            with lock:
                order.append(name)
            turns.give()

        threads = []
        for name, back in (("a", False), ("b", False), ("c", True), ("d", True)):
            thread = threading.Thread(target=wait, args=(name, back))
            thread.start()
            threads.append(thread)
            while len(turns.back) + len(turns.fresh) < len(threads):
                pass
        turns.give()
        for thread in threads:
            thread.join()
        self.assertEqual((order, turns.taken), (["c", "d", "a", "b"], 0))

    def test_a_smaller_limit_takes_no_turn_away_and_a_larger_one_admits(self) -> None:
        turns = Turns(2)
        self.assertEqual([turns.take_free() for _ in range(3)], [True, True, False])
        turns.set_limit(1)
        turns.give()
        self.assertFalse(turns.take_free())
        turns.set_limit(3)
        self.assertEqual([turns.take_free() for _ in range(3)], [True, True, False])

    def test_a_job_that_waits_leaves_its_place_to_the_next(self) -> None:
        places, third = Turns(2), threading.Event()
        began, lock = list[int](), threading.Lock()
        at_once = Counter[str]()

        def job(item: int) -> None:
            with lock:
                began.append(item)
                at_once["now"] += 1
                at_once["most"] = max(at_once["most"], at_once["now"])
            if item == 3:
                third.set()
            elif item == 1:
                with lock:
                    at_once["now"] -= 1
                with places.aside():
                    self.assertTrue(third.wait(60))
                with lock:
                    at_once["now"] += 1
            with lock:
                at_once["now"] -= 1

        with contextlib.redirect_stderr(io.StringIO()):
            side_by_side([1, 2, 3, 4], job, places, "x")
        self.assertEqual((sorted(began), at_once["most"] <= 2, places.taken), ([1, 2, 3, 4], True, 0))

    def test_with_one_place_a_waiting_case_keeps_the_next_one_waiting(self) -> None:
        places, order = Turns(1), list[tuple[int, str]]()

        def job(item: int) -> None:
            order.append((item, "begins"))
            with places.aside():
                pass
            order.append((item, "ends"))

        with contextlib.redirect_stderr(io.StringIO()):
            side_by_side([1, 2], job, places, "x")
        self.assertEqual(order, [(1, "begins"), (1, "ends"), (2, "begins"), (2, "ends")])


class Progress(unittest.TestCase):
    def test_a_line_comes_at_least_every_ten_seconds(self) -> None:
        self.assertLess(LINE_EVERY + LOOK_EVERY, 10.0)

    def test_a_line_comes_while_nothing_is_done(self) -> None:
        told, said = threading.Event(), io.StringIO()

        class Heard(io.StringIO):
            def write(self, text: str) -> int:
                told.set()
                return said.write(text)

        with contextlib.redirect_stderr(Heard()):
            side_by_side([1], lambda item: self.assertTrue(told.wait(60)), Turns(1), "x.jsonl", lambda: "1 call", 0.0)
        self.assertRegex(said.getvalue(), r"^x\.jsonl: 0/1 \[.*, 1 call\]\n")

    def test_the_status_names_rate_tokens_and_who_is_throttled(self) -> None:
        replies: Iterator[bytes] = iter(
            [
                completion({"prompt_tokens": 1000, "completion_tokens": 234}),
                completion({"prompt_tokens": 1, "completion_tokens": 1}),
                completion(None),
            ]
        )
        role = make_role("judge", "m", 0.1, 5, 9.0, {"OPENAI_API_KEY": "k"})
        channel = Channel(role, lambda role: lambda request: next(replies), 0, parallel=8)
        status = _status([channel])
        self.assertRegex(status(), r"^0\.0 calls/s, 0 tokens$")
        channel.complete("问", [])
        self.assertRegex(status(), r"^[1-9][0-9.]* calls/s, 1,234 tokens$")
        channel.complete("问", [])
        channel.complete("问", [])
        channel.gate.throttled()
        self.assertRegex(status(), r"calls/s, 1,236 tokens and those of 1 calls, judge 7 of 8 at once$")

    def test_tokens_that_no_provider_told_are_unknown(self) -> None:
        role = make_role("judge", "m", 0.1, 5, 9.0, {"OPENAI_API_KEY": "k"})
        channel = Channel(role, lambda role: lambda request: completion(None), 0)
        channel.complete("问", [])
        self.assertIn("tokens unknown", _status([channel])())


def completion(usage: dict[str, int] | None) -> bytes:
    choice = {"finish_reason": "stop", "message": {"content": "答"}}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


if __name__ == "__main__":
    unittest.main()
