"""The commands as a user types them: exit statuses, streams, odd machines, kills, and the real client on loopback."""

import contextlib
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import unittest
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fakes import SIX_COMMANDS, STAGES, Folder, make_case, without_calls
from loopback import HERE, Loopback, begin, finish, surroundings

from records import ARTIFACTS, RoleName

HAS_OPENAI = importlib.util.find_spec("openai") is not None
ALL_COMMANDS = (*STAGES, "eval_judges.py", "audit_user.py", "show_results.py", "common.py")
ALL_FILES = ("LexAwN_gen.py", "eval_DCG.py", "eval_LJP.py")  # the fewest commands that write all of them
WITHOUT_OPENAI = "import sys, runpy; sys.modules['openai'] = None; sys.path.insert(0, {here!r}); {rest}"


def plain(count: int, role: RoleName) -> tuple[int, bytes] | None:
    return None


class Commands(Folder):
    def call(
        self, script: str, *options: str, url: str = "http://127.0.0.1:1/v1", root: str = "out", **env: str
    ) -> tuple[int, str, str]:
        """A command with the test's data file and output root: exit status, stdout, stderr."""
        places = ["--dataset", str(self.data_file)]
        places += ["--output-root", str(self.root / root)] if script != "common.py" else []
        status, out, err = finish(begin(script, *places, *options, env=surroundings(url, **env), cwd=self.root))
        return status, out.decode("utf-8"), err.decode("utf-8", errors="replace")

    def run_commands(self, loopback: Loopback, *options: str, scripts: Sequence[str] = ALL_FILES, **env: str) -> None:
        for script in scripts:
            status, _, err = self.call(script, *options, url=loopback.url, **env)
            self.assertEqual(status, 0, f"{script}: {err}")


class Statuses(Commands):
    def test_help_is_status_0_and_names_every_variable_without_openai_or_scikit_learn(self) -> None:
        for script in ALL_COMMANDS:
            rest = (
                f"sys.modules['sklearn'] = None; sys.argv = [{script!r}, '--help']; "
                f"runpy.run_path({str(HERE / script)!r}, run_name='__main__')"
            )
            code = WITHOUT_OPENAI.format(here=str(HERE), rest=rest)
            done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, env=surroundings())
            self.assertEqual((done.returncode, done.stderr), (0, b""), script)
            self.assertIn(b"LEXPILOT_DATASET", done.stdout)

    def test_a_bad_data_file_is_status_1_in_one_message(self) -> None:
        self.write_cases([make_case("1", cause_of_action="无此案由")])
        for script in ALL_COMMANDS:
            status, out, err = self.call(script)
            self.assertEqual((status, out, err[:7]), (1, "", "error: "), script)
            self.assertIn("cause_of_action: '无此案由'", err)

    def test_wrong_usage_is_status_2(self) -> None:
        for script in ALL_COMMANDS:
            status, out, err = self.call(script, "--nonsense")
            self.assertEqual((status, out), (2, ""), script)
            self.assertIn("--nonsense", err.splitlines()[-1])

    def test_an_option_whose_value_argparse_drops_is_status_2(self) -> None:
        for script, option in (
            ("eval_LJP_gold.py", "--judge-model"),
            ("show_results.py", "--run-id"),
            ("common.py", "--dataset"),
        ):
            status, out, err = self.call(script, f"{option}=--")
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn(option, err.splitlines()[-1])
            self.assertNotIn("Traceback", err)

    @unittest.skipUnless(Path("/dev/full").exists(), "needs a device that is always full")
    def test_a_stdout_that_takes_nothing_is_status_1_in_one_message_and_none_at_all_is_no_failure(self) -> None:
        command = f'"{sys.executable}" -B "{HERE / "show_results.py"}" --output-root "{self.root / "out"}"'
        full = subprocess.run(f"{command} >/dev/full", shell=True, env=surroundings(), capture_output=True)
        self.assertEqual((full.returncode, full.stderr.count(b"\n")), (1, 1), full.stderr)
        self.assertTrue(full.stderr.startswith(b"error: "))
        for redirection in (">&-", "2>&-", ">&- 2>&-"):
            closed = subprocess.run(f"{command} {redirection}", shell=True, env=surroundings(), capture_output=True)
            self.assertEqual((closed.returncode, closed.stderr), (0, b""), redirection)

    @unittest.skipIf(sys.platform == "win32", "has no C locale")
    def test_a_chinese_model_name_is_the_same_under_a_bare_c_locale(self) -> None:
        bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        for option, env in ((("--model", "模型一"), bare), ((), {**bare, "LEXPILOT_MODEL": "模型一"})):
            _, _, err = self.call("eval_LJP_gold.py", *option, **{**env, "OPENAI_API_KEY": ""})
            self.assertIn("no key", err)
            self.assertNotIn("control characters", err)

    def test_what_a_person_must_mend_is_status_1_with_the_reason_in_the_last_message(self) -> None:
        table: list[tuple[str, dict[str, str], str]] = [
            ("no model", {"LEXPILOT_MODEL": " "}, "LEXPILOT_MODEL"),
            ("no key", {"OPENAI_API_KEY": ""}, "LEXPILOT_EVAL_API_KEY or OPENAI_API_KEY"),
            ("no address", {"OPENAI_BASE_URL": "localhost"}, "OPENAI_BASE_URL"),
            ("no number", {"LEXPILOT_LIMIT": "x"}, "LEXPILOT_LIMIT"),
        ]
        for what, env, reason in table:
            with self.subTest(what):
                status, out, err = self.call("eval_LJP_gold.py", **env)
                self.assertEqual((status, out), (1, ""), err)
                self.assertTrue(err.splitlines()[-1].startswith("error: "), err)
                self.assertIn(reason, err)
                self.assertNotIn("Traceback", err)

    def test_a_missing_earlier_stage_is_status_1(self) -> None:
        for script in ("eval_LCA.py", "eval_LJP_interaction.py", "eval_LJP.py"):
            status, _, err = self.call(script)
            self.assertEqual(status, 1)
            self.assertIn("LexAwN_gen.py", err)

    @unittest.skipUnless(HAS_OPENAI, "needs the openai client")
    def test_a_provider_that_is_down_is_status_3(self) -> None:
        status, out, err = self.call("eval_LJP_gold.py", "--retries", "0")
        self.assertEqual((status, out), (3, ""))
        last = err.splitlines()[-1]
        for part in (
            "error: eval_LJP_gold.py, case ",
            "a1_force_judge.jsonl",
            "evaluated model 'm' at http://127.0.0.1:1/v1",
        ):
            self.assertIn(part, last)
        self.assertNotIn("Traceback", err)

    def test_no_runs_is_status_0(self) -> None:
        status, out, err = self.call("show_results.py")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("No runs to show"))


class Offline(Commands):
    """What must work where `openai` cannot be imported."""

    def without_openai(self, rest: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
        code = WITHOUT_OPENAI.format(here=str(HERE), rest=rest)
        return subprocess.run(
            [sys.executable, "-B", "-c", code], capture_output=True, env=surroundings(**env), cwd=HERE
        )

    def test_importing_any_module_does_and_prints_nothing(self) -> None:
        modules = sorted(path.stem for path in HERE.glob("*.py"))
        with ThreadPoolExecutor(2) as pool:
            every = list(pool.map(lambda module: self.without_openai(f"import {module}"), modules))
        for module, done in zip(modules, every, strict=True):
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), module)

    def test_the_data_check_and_the_results_work(self) -> None:
        for script in ("common.py", "show_results.py"):
            done = self.without_openai(f"sys.argv = [{script!r}]; runpy.run_path({script!r}, run_name='__main__')")
            self.assertEqual((done.returncode, done.stderr), (0, b""), script)

    def test_a_stage_says_what_to_install(self) -> None:
        done = self.without_openai(
            "sys.argv = ['eval_LJP_gold.py', '--dataset', " + repr(str(self.data_file)) + ", '--output-root', "
            + repr(str(self.root / "out")) + "]; runpy.run_path('eval_LJP_gold.py', run_name='__main__')"
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"pip install -r requirements.txt", done.stderr.splitlines()[-1])

    def test_the_offline_tests_pass(self) -> None:
        done = self.without_openai(
            "import unittest; sys.path.insert(0, 'tests'); "
            "unittest.main(module=None, argv=['x', 'test_pipeline', 'test_replies'])"
        )
        self.assertEqual(done.returncode, 0, done.stderr.decode())


@unittest.skipUnless(HAS_OPENAI, "needs the openai client")
class OverTheWire(Commands):
    cases = (
        make_case("1", result_dict={"甲：要回10元": "支持", "乙：利息": "驳回"}),
        make_case("2", cause_of_action="离婚纠纷"),
        make_case("二\u2028³✅"),
    )

    def results(self, **env: str) -> str:
        status, out, err = self.call("show_results.py", "--format", "json", **env)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_the_six_commands_run_and_the_results_follow(self) -> None:
        loopback = Loopback(self, plain)
        self.run_commands(loopback, scripts=SIX_COMMANDS)
        self.assertEqual(len(loopback.asked), 3 * 22)
        (group,) = json.loads(self.results())["groups"]
        self.assertEqual(list(group["tasks"]), ["LCA", "DCG", "LJP_direct", "LJP_gold", "LJP_interaction"])
        status, out, _ = self.call("show_results.py")
        self.assertEqual(status, 0)
        self.assertIn("婚姻家庭、继承纠纷", out)

    def test_files_are_the_same_bytes_under_any_locale_and_console(self) -> None:
        loopback = Loopback(self, plain)
        odd = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        surrounded = {"utf-8": {"PYTHONUTF8": "1"}, "c": odd, "gbk": {**odd, "PYTHONIOENCODING": "gbk"}}

        def results_in(name: str) -> tuple[int, bytes, bytes]:
            self.run_commands(loopback, "--parallel", "1", root=name, **surrounded[name])
            places = ["--dataset", str(self.data_file), "--output-root", str(self.root / name)]
            return finish(begin("show_results.py", *places, env=surroundings(loopback.url, **surrounded[name])))

        with ThreadPoolExecutor(2) as pool:
            every = list(pool.map(results_in, surrounded))
        for name, (status, out, err) in zip(surrounded, every, strict=True):
            self.assertEqual((status, err), (0, b""))
            self.assertEqual("婚姻家庭、继承纠纷".encode("gbk") in out, name == "gbk")
        seen = [self.snapshot(name) for name in surrounded]
        self.assertEqual(len(seen[0]), len(ARTIFACTS) + 2)  # with manifest and lock
        timed = re.compile(rb'"seconds": [0-9.]+|"(input|record)_sha256": "[0-9a-f]+"')
        one, other, last = ({path: timed.sub(b"", raw) for path, raw in files.items()} for files in seen)
        self.assertEqual(one, other)
        self.assertEqual(one, last)

    def test_a_name_and_a_message_that_gbk_cannot_show_crash_no_console(self) -> None:
        name, seen = "模型 ✅ ²\u00a0x", []

        def refused(count: int, role: RoleName) -> tuple[int, bytes] | None:
            words = '{"message": "不行 ✅ ²\u00a0"}'.encode()
            return (400, words) if role == "judge" and refusing.is_set() else None

        refusing = threading.Event()
        loopback = Loopback(self, refused, {name: "evaluated", "u": "user", "j": "judge"})
        for encoding in ("utf-8", "gbk"):
            places = ["--dataset", str(self.data_file), "--output-root", str(self.root / encoding)]
            env = surroundings(loopback.url, PYTHONIOENCODING=encoding, LEXPILOT_MODEL=name, LEXPILOT_PARALLEL="1")
            statuses = []
            for script, refuse in (("eval_LJP_gold.py", True), ("eval_LJP_gold.py", False), ("show_results.py", False)):
                (refusing.set if refuse else refusing.clear)()
                status, out, err = finish(begin(script, *places, env=env))
                statuses.append(status)
                self.assertNotIn(b"Traceback", err)
            self.assertEqual(statuses, [3, 0, 0])
            self.assertIn(name.encode(encoding, errors="replace"), out)
            paths = sorted((self.root / encoding).rglob("*.jsonl"))
            raw = [line for path in paths for line in path.read_bytes().split(b"\n")[:-1]]
            seen.append([without_calls(json.loads(line)) for line in raw])
        self.assertEqual(seen[0], seen[1])

    def test_no_file_is_opened_in_the_default_encoding(self) -> None:
        loopback = Loopback(self, plain)
        strict = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning"}
        for _ in range(2):  # the second time everything is read back
            self.run_commands(loopback, **strict)
        for script in ("show_results.py", "common.py"):
            status, _, err = self.call(script, **strict)
            self.assertEqual((status, err), (0, ""))

    def test_no_credential_reaches_a_file_or_a_message(self) -> None:
        def echo(count: int, role: RoleName) -> tuple[int, bytes] | None:
            return (401, b'{"error": {"message": "bad key sk-secret-key of user:passw0rd"}}') if count == 30 else None

        loopback = Loopback(self, echo)
        url = loopback.url.replace("//", "//user:passw0rd@") + "?token=query-secret"
        said = ""
        for script in ("eval_DCG.py", "eval_LJP_gold.py", "LexAwN_gen.py", "LexAwN_gen.py"):
            status, out, err = self.call(script, url=url)
            said += out + err
        self.assertEqual(status, 0, "the second LexAwN_gen.py resumes")
        self.assertIn("HTTP 401", said)
        for secret in ("sk-secret-key", "passw0rd", "query-secret"):
            self.assertNotIn(secret, said)
            for path, raw in self.snapshot().items():
                self.assertNotIn(secret.encode(), raw, path)

    def test_a_killed_stage_resumes_with_the_interrupted_calls_alone(self) -> None:
        reached, release = threading.Event(), threading.Event()

        def hold(count: int, role: RoleName) -> tuple[int, bytes] | None:
            if count == 4:
                reached.set()
                release.wait()
            return None

        loopback = Loopback(self, hold)
        self.addCleanup(release.set)
        places = ["--dataset", str(self.data_file), "--output-root", str(self.root / "out")]
        process = begin("LexAwN_gen.py", *places, "--parallel", "1", env=surroundings(loopback.url))
        self.assertTrue(reached.wait(60))
        process.kill()
        finish(process)
        release.set()
        self.assertEqual([record["case_number"] for record in self.records("a1")], ["1"])
        self.run_commands(loopback)
        self.assertEqual(len(loopback.asked), 1 + 3 * 22)  # the fourth call was under way

    def interrupted(self) -> tuple["subprocess.Popen[bytes]", bytes, threading.Event]:
        """A stage after one Ctrl-C, with two of its three cases in flight and held back until the event is set."""
        reached, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def hold(count: int, role: RoleName) -> None:
            if count == 2:
                reached.set()
            release.wait()

        loopback = Loopback(self, hold)
        places = ["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), "--parallel", "2"]
        process = begin("eval_LJP_direct.py", *places, env=surroundings(loopback.url))
        self.assertTrue(reached.wait(60))
        process.send_signal(signal.SIGINT)
        said = b""
        assert process.stderr is not None
        while b"in flight" not in said:
            said += process.stderr.readline()
        return process, said, release

    @unittest.skipIf(sys.platform == "win32", "sends SIGINT to one process")
    def test_ctrl_c_saves_what_is_in_flight(self) -> None:
        process, said, release = self.interrupted()
        release.set()
        status, _, err = finish(process)
        self.assertEqual(status, 130)
        self.assertEqual(err.splitlines()[-1], b"interrupted: what is finished is saved, and the same command resumes")
        self.assertNotIn(b"Traceback", said + err)
        self.assertEqual(len(self.records("a1_direct")), 2)

    @unittest.skipIf(sys.platform == "win32", "sends SIGINT to one process")
    def test_a_second_ctrl_c_leaves_at_once(self) -> None:
        process, _, release = self.interrupted()
        process.send_signal(signal.SIGINT)
        status, _, _ = finish(process)
        self.assertFalse(release.is_set())
        self.assertEqual(status, 130)
        self.assertEqual([path for path in self.snapshot() if path.endswith("jsonl")], [])

    @unittest.skipIf(sys.platform == "win32", "needs a limit on file size")
    def test_a_full_disk_leaves_no_half_line_and_loses_no_answer(self) -> None:
        loopback = Loopback(self, plain)
        long = [{"role": "user", "content": "案：" + "很长的故事。" * 1000}]  # the records outgrow the manifest
        self.write_cases([make_case(str(n), complete_consultation=long) for n in (1, 2, 3)])
        self.call("eval_LJP_gold.py", "--parallel", "1", url=loopback.url)
        size = next((self.root / "out").rglob("a1_force_judge.jsonl")).stat().st_size
        shutil.rmtree(self.root / "out")
        before = len(loopback.asked)
        places = ["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), "--parallel", "1"]
        limited = (
            "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size - 10},) * 2); "
            f"sys.path.insert(0, {str(HERE)!r}); sys.argv = ['eval_LJP_gold.py', *{places!r}]; "
            "runpy.run_path(sys.path[0] + '/eval_LJP_gold.py', run_name='__main__')"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", limited], env=surroundings(loopback.url), capture_output=True
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"cannot be saved (File too large)", done.stderr.splitlines()[-1])
        self.assertEqual(len(self.records("a1_force_judge")), 2)
        self.assertEqual(len(loopback.asked) - before, 3)
        status, _, err = self.call("eval_LJP_gold.py", url=loopback.url)
        self.assertEqual(status, 0, err)
        self.assertEqual(len(loopback.asked) - before, 3 + 3)  # the third case's answer stood in the journal

    def test_redirected_progress_is_plain_lines(self) -> None:
        loopback = Loopback(self, plain)
        _, out, err = self.call("eval_LJP_gold.py", url=loopback.url)
        self.assertEqual(out, "")
        self.assertNotIn("\r", err)
        self.assertRegex(err, r"LJP_gold\.jsonl: 3/3 \[")

    def test_every_failing_call_of_each_role_stops_with_role_case_and_provider_words(self) -> None:
        for failing in ("evaluated", "user", "judge"):
            with self.subTest(failing):

                def filtered(count: int, role: RoleName, failing: str = failing) -> tuple[int, bytes] | None:
                    told = b'{"error": {"code": "content_filter", "message": "not this content"}}'
                    return (400, told) if role == failing else None

                loopback = Loopback(self, filtered)
                status, _, err = self.call("eval_DCG.py", "--parallel", "1", "--run-id", failing, url=loopback.url)
                self.assertEqual(status, 3)
                self.assertEqual(sum(role == failing for role, _ in loopback.asked), 1)
                for part in ("case 1", failing, "HTTP 400", "content_filter", "not this content"):
                    self.assertIn(part, err.splitlines()[-1])

    def test_the_pool_is_kept_full_and_never_above_the_limit(self) -> None:
        self.data_file = self.write_cases([make_case(str(n)) for n in range(12)])
        four_at_once, too_many, lock = threading.Barrier(4), threading.Event(), threading.Lock()
        in_flight = 0

        def hold(count: int, role: RoleName) -> None:
            nonlocal in_flight
            with lock:
                in_flight += 1
                if in_flight > 4:
                    too_many.set()
            with contextlib.suppress(threading.BrokenBarrierError):
                four_at_once.wait(30)
            too_many.wait(0.2)  # gives a fifth call the time to show itself
            with lock:
                in_flight -= 1

        loopback = Loopback(self, hold)
        status, _, err = self.call("eval_LJP_gold.py", "--parallel", "4", url=loopback.url)
        self.assertEqual(status, 0, err)
        self.assertFalse(four_at_once.broken)
        self.assertFalse(too_many.is_set())


class Documents(unittest.TestCase):
    def test_every_file_that_a_stage_reads_or_writes_stands_in_its_docstring_and_the_readme(self) -> None:
        readme = (HERE / "README.md").read_text(encoding="utf-8")
        for name, artifact in ARTIFACTS.items():
            self.assertIn(Path(artifact.path).name, readme)
            text = (HERE / artifact.command).read_text(encoding="utf-8")
            docstring = text.split('"""')[1]
            self.assertRegex(docstring, rf"\b{name}\b", artifact.command)
            self.assertIn(Path(artifact.path).name, docstring)

    def test_every_top_level_script_stands_in_the_readme(self) -> None:
        readme = (HERE / "README.md").read_text(encoding="utf-8")
        for path in HERE.glob("*.py"):
            self.assertIn(path.name, readme)


if __name__ == "__main__":
    unittest.main()
