"""`eval_judges.py`: what is asked again and of whom, where it lies, how it resumes, and what is counted."""

import contextlib
import importlib.util
import io
import json
import threading
import unittest
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fakes import ASK, JUDGE, NO, YES, Folder, Provider, Script, make_case, sensible, verdicts, without_calls
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback, begin, finish, surroundings

import audit_user
import eval_judges
from adapter import Role, Send
from agreement import agreement, flip_rate
from checkpoints import code_hashes
from errors import BlockedError, CheckpointError, ModelOutputError, ProviderError, SettingsError
from judges import same_questions
from judgments import JUDGE_TASKS, spread
from metrics import wilson
from records import RoleName
from scores import find_runs

CLAIMS = {"请求判令被告归还借款1万元": "部分支持", "请求判令被告支付利息": "驳回"}


class Judged(Folder):
    """A folder with a finished run of three cases of two claims and two focal points each."""

    cases = tuple(
        make_case(
            n, result_dict=CLAIMS, focal_point=["钱还过没有", "利息怎么说"], key_details=["三月还过一半", "没有约定"]
        )
        for n in "123"
    )

    def setUp(self) -> None:
        super().setUp()
        self.run_provider = self.run_all()

    def judges(
        self,
        *more: str,
        answer: Callable[[RoleName, str], str | bytes] = sensible,
        env: Mapping[str, str] | None = None,
    ) -> Provider:
        """Run `eval_judges.py` one case after another; what it printed and said is kept."""
        provider = Provider(answer)
        self.command(provider, *more, env=env)
        return provider

    def command(self, provider: Provider, *more: str, env: Mapping[str, str] | None = None) -> None:
        printed, said = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
                eval_judges.main(["--parallel", "1", *self.options(*more)], provider.connect, env or {})
        finally:
            self.printed, self.said = printed.getvalue(), said.getvalue()

    def found(self, *more: str) -> dict[str, Any]:
        """What is printed for scripts, without asking."""
        self.judges("--show", "--format", "json", *more)
        found: dict[str, Any] = json.loads(self.printed)
        return found

    def rows(self, part: str, **values: Any) -> list[dict[str, Any]]:
        return [row for row in self.found()[part] if all(row[key] == value for key, value in values.items())]

    def own_files(self) -> dict[str, bytes]:
        return {path: raw for path, raw in self.snapshot().items() if not path.startswith("judge_checks")}

    def refused(self, kind: type[Exception], *more: str, env: Mapping[str, str] | None = None) -> str:
        with self.assertRaises(kind) as caught:
            self.judges(*more, env=env)
        return str(caught.exception)


class Asked(Judged):
    def test_the_same_judge_is_asked_just_what_the_run_asked_it(self) -> None:
        before = self.own_files()
        provider = self.judges()
        self.assertEqual(Counter(provider.prompts("judge")), Counter(self.run_provider.prompts("judge")))
        self.assertEqual({role for role, _ in provider.asked}, {"judge"})
        self.assertEqual(provider.requests[0]["temperature"], 0.1)
        self.assertEqual(self.own_files(), before)
        self.assertEqual([row["raw"] for row in self.found()["agreement"]], [1.0] * len(JUDGE_TASKS))

    def test_asked_once_more_it_asks_nothing(self) -> None:
        self.judges()
        self.assertEqual(self.judges().asked, [])

    def test_a_pass_more_asks_only_that_pass(self) -> None:
        first = self.judges()
        second = self.judges("--repeat", "3")
        self.assertEqual(len(second.asked), 2 * len(first.asked))
        rows = self.rows("agreement", task="LCA")
        pairs = [("run", "J1 whole 1"), ("run", "J1 whole 2"), ("run", "J1 whole 3")]
        pairs += [("J1 whole 1", "J1 whole 2"), ("J1 whole 1", "J1 whole 3")]
        self.assertEqual([(row["first"], row["second"]) for row in rows], pairs)

    def test_an_interruption_between_two_calls_of_a_case_loses_neither(self) -> None:
        replies: list[Any] = [ASK, "看不懂", "看不懂", "看不懂", "看不懂"]
        script = Script(judge=replies)
        with self.assertRaisesRegex(ModelOutputError, r"eval_judges\.py, case 1, LCA\.whole\.1\.jsonl: .*4 tries"):
            self.command(script, "--tasks", "LCA")
        rest = self.judges("--tasks", "LCA")
        self.assertEqual(len(rest.asked), 6 - 1)  # of two labels a case; the first one was kept

    def test_another_judge_has_its_own_variables_and_folder(self) -> None:
        env = {
            "LEXPILOT_SECOND_JUDGE_MODEL": "j2",
            "LEXPILOT_SECOND_JUDGE_BASE_URL": "https://second.example/v1",
            "LEXPILOT_SECOND_JUDGE_API_KEY": "sk-second",
            "OPENAI_API_KEY": "sk-first",
            "LEXPILOT_SECOND_JUDGE_PARAMS": '{"top_p": 0.5}',
        }
        roles: list[Role] = []
        provider = Provider(sensible)

        class Seen(Provider):
            def connect(self, role: Role) -> Send:
                roles.append(role)
                return provider.connect(role)

        self.command(Seen(sensible), "--tasks", "DCG", env=env)
        (role,) = roles
        self.assertEqual(
            (role.model, role.endpoint, role.key, role.key_source),
            ("j2", "https://second.example/v1", "sk-second", "LEXPILOT_SECOND_JUDGE_API_KEY"),
        )
        self.assertEqual(provider.requests[0]["top_p"], 0.5)
        (folder,) = (self.root / "out" / "judge_checks" / "run1").glob("*/*")
        self.assertRegex(folder.name, r"\Aj2-[0-9a-f]{8}\Z")
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.assertEqual(manifest["judge"]["params"], {"top_p": 0.5})
        self.assertNotIn("sk-second", (folder / "manifest.json").read_text(encoding="utf-8"))
        self.judges("--tasks", "DCG", "--second-judge-model", "j2")  # without the parameter it is another judge
        self.assertEqual(len(list(folder.parent.iterdir())), 2)

    def test_a_message_about_another_judge_names_its_variables(self) -> None:
        answer = b'{"error": {"message": "no such model", "code": "404"}}'
        with self.assertRaisesRegex(ProviderError, r"--second-judge-model \(LEXPILOT_SECOND_JUDGE_MODEL\)"):
            self.judges("--second-judge-model", "j2", answer=lambda role, prompt: answer)
        answer = b'{"error": {"message": "temperature is fixed", "code": "400"}}'
        with self.assertRaises(ProviderError) as caught:
            self.judges("--second-judge-model", "j2", answer=lambda role, prompt: answer)
        self.assertIn("about the temperature, --second-judge-params; ", str(caught.exception))
        self.assertIn("which makes it another judge, with files of its own", str(caught.exception))
        self.assertNotIn("--run-id", str(caught.exception))

    def test_one_call_a_criterion_shows_that_one_alone(self) -> None:
        provider = self.judges("--per-criterion", "--tasks", "DCG", "LJP_gold")
        prompts = provider.prompts("judge")
        dcg, ljp = prompts[: 3 * 2 * 2], prompts[3 * 2 * 2 :]  # cases, questions, details; cases, claims
        self.assertEqual(len(ljp), 3 * 2)
        for prompt in dcg:
            shown = [("钱还过没有" in prompt, "三月还过一半" in prompt), ("利息怎么说" in prompt, "没有约定" in prompt)]
            self.assertEqual(sorted(shown), [(False, False), (True, True)])
        for prompt in ljp:
            self.assertEqual(sum(claim in prompt for claim in CLAIMS), 1)

    def test_a_question_hits_by_one_detail_and_claims_keep_their_order(self) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            if "命中关键细节" in prompt:
                return YES if "没有约定" in prompt else NO
            return verdicts("驳回" if "利息" in prompt else "支持")

        self.judges("--per-criterion", "--tasks", "DCG", "LJP_gold", answer=answer)
        (dcg,) = (self.root / "out").rglob("DCG.each.1.jsonl")
        record = json.loads(dcg.read_text(encoding="utf-8").split("\n")[0])
        self.assertEqual([turn["label"] for turn in record["rounds"]], ["是", "是"])
        self.assertEqual([hit["label"] for hit in record["rounds"][0]["details"]], ["否", "是"])
        self.assertTrue(record["success"])
        (ljp,) = (self.root / "out").rglob("LJP_gold.each.1.jsonl")
        record = json.loads(ljp.read_text(encoding="utf-8").split("\n")[0])
        self.assertEqual((record["claims"], record["verdicts"]), ([*CLAIMS], ["支持", "驳回"]))

    def test_the_plan_tells_the_calls_and_asks_nobody(self) -> None:
        provider = self.judges("--plan", "--repeat", "2", "--per-criterion", "--tasks", "DCG", "LJP_gold")
        self.assertEqual(provider.asked, [])
        self.assertIn(f"  calls              {2 * (3 * 2 * 2 + 3 * 2)}\n", self.printed)
        self.assertFalse((self.root / "out" / "judge_checks").exists())
        asked = self.judges("--repeat", "2", "--per-criterion", "--tasks", "DCG", "LJP_gold").asked
        self.assertEqual(len(asked), 2 * (3 * 2 * 2 + 3 * 2))

    def test_what_a_content_filter_refuses_is_recorded_and_left_out_if_that_is_asked_for(self) -> None:
        refusal = b'{"error": {"code": "content_filter", "message": "no"}}'

        def answer(role: RoleName, prompt: str) -> str | bytes:
            return refusal if "案1：" in prompt else sensible(role, prompt)

        with self.assertRaises(BlockedError):
            self.judges("--tasks", "DCG", answer=answer)
        self.judges("--tasks", "DCG", "LCA", "--record-blocked", answer=answer)
        self.assertEqual([(row["cases"], row["items"]) for row in self.rows("agreement", task="DCG")], [(2, 4)])
        self.assertEqual([row["cases"] for row in self.rows("figures", task="DCG")], [2])
        self.assertEqual([row["cases"] for row in self.rows("agreement", task="LCA")], [3])  # its prompts name no case
        self.assertEqual(self.judges("--tasks", "DCG", "LCA", "--record-blocked", answer=answer).asked, [])

    def test_a_small_sample_is_a_part_of_a_larger_one(self) -> None:
        first = self.judges("--sample", "1", "--tasks", "LJP_gold")
        second = self.judges("--sample", "2", "--tasks", "LJP_gold")
        self.assertEqual((len(first.asked), len(second.asked)), (1, 1))
        (row,) = self.rows("agreement")
        self.assertEqual((row["cases"], row["items"]), (2, 4))
        self.assertEqual([figure["cases"] for figure in self.found()["figures"]], [2, 2])


class Refused(Judged):
    def test_what_cannot_be_asked_is_told_before_anything_is(self) -> None:
        self.assertIn(
            "there is no run 'run9' of 'm'; there are: run1 of", self.refused(SettingsError, "--run-id", "run9")
        )
        self.assertIn("there is no second judge", self.refused(SettingsError, "--second-judge-params", '{"n": 1}'))
        said = self.refused(SettingsError, env={"LEXPILOT_JUDGE_BASE_URL": "https://other.example/v1"})
        self.assertIn("was asked at https://api.openai.com/v1, and here is https://other.example/v1", said)
        self.file("dcg").unlink()
        said = self.refused(CheckpointError, "--tasks", "DCG")
        self.assertIn("nothing of DCG is judged yet", said)
        lines = self.file("lca").read_bytes().split(b"\n")
        self.file("lca").write_bytes(b"\n".join(lines[1:]))
        self.assertIn("first run: python eval_LCA.py --run-id run1", self.refused(CheckpointError, "--tasks", "LCA"))

    def test_a_run_of_other_prompts_is_refused_with_their_files(self) -> None:
        (run,) = find_runs(self.root / "out", {}, None, None)
        same_questions(run)
        run.manifest["code_sha256"]["eval_DCG.py"] = "0" * 64
        with self.assertRaisesRegex(SettingsError, r"judged by other versions of eval_DCG\.py: "):
            same_questions(run)

    def test_answers_begun_by_other_code_or_about_another_run_are_not_mixed(self) -> None:
        self.judges("--tasks", "DCG")
        (path,) = (self.root / "out").rglob("judge_checks/**/manifest.json")
        right = path.read_text(encoding="utf-8")
        path.write_text(right.replace(code_hashes()["eval_DCG.py"], "0" * 64), encoding="utf-8")
        said = self.refused(SettingsError, "--tasks", "DCG")
        self.assertRegex(
            said, r"judge_checks of run 'run1' was begun with other settings; .*\n  code_sha256 eval_DCG\.py: 0000"
        )
        path.write_text(right.replace(json.loads(right)["run_sha256"], "1" * 64), encoding="utf-8")
        self.assertIn("is about another run of this name", self.refused(CheckpointError, "--show"))

    def test_a_record_that_changed_makes_its_judgments_stale(self) -> None:
        self.judges("--tasks", "DCG")
        for name in ("force_ask", "dcg"):
            self.file(name).unlink()
        self.stage("eval_DCG.py", Provider(lambda role, prompt: sensible(role, prompt) + " ").connect)
        said = self.refused(CheckpointError, "--show")
        self.assertRegex(said, r"DCG\.whole\.1\.jsonl:1: case '1' was made from another record of force_ask\.jsonl")

    def test_a_second_command_on_the_same_judge_is_refused(self) -> None:
        self.judges("--tasks", "DCG", "--sample", "1")
        import filelock

        (lock,) = (self.root / "out").rglob("judge_checks/**/lock")
        with filelock.FileLock(lock):
            said = self.refused(SettingsError, "--tasks", "DCG")
        self.assertIn("judge_checks of run 'run1': another command is writing to it", said)


class Counted(Judged):
    def test_agreement_is_counted_label_by_label(self) -> None:
        # The run's judge: every response asks. This one: the first of six judges.
        self.command(Script(judge=[JUDGE, ASK, ASK, ASK, ASK, ASK]), "--tasks", "LCA")
        (row,) = self.rows("agreement")
        self.assertEqual(row["counts"], [[0, 0], [1, 5]])
        self.assertEqual((row["items"], row["cases"], row["raw"], row["kappa"]), (6, 3, 5 / 6, 0.0))
        chance = 2 * (11 / 12) * (1 / 12)
        self.assertAlmostEqual(row["ac1"], (5 / 6 - chance) / (1 - chance))
        macro, acc_c, acc_u = self.rows("figures")
        self.assertEqual((acc_c["run"], acc_c["value"], acc_u["run"], acc_u["value"]), (0.0, 1 / 3, 1.0, 1.0))
        self.assertAlmostEqual(acc_c["difference"], 1 / 3)
        self.assertAlmostEqual(macro["value"], (2 * 3 / (2 * 3 + 2) + 2 * 1 / (2 * 1 + 2)) / 2)
        self.assertIn("run by row, J1 whole 1 by column: 直接判断 0 0; 澄清提问 1 5", self.text())

    def text(self) -> str:
        self.judges("--show")
        return self.printed

    def test_a_kappa_of_labels_that_all_agree_has_no_interval_and_the_share_has(self) -> None:
        pairs = {str(n): [(n % 2, n % 2, 1.0)] for n in range(8)}
        found = agreement(pairs, dict.fromkeys(pairs, "c"), 2)
        self.assertEqual((found["kappa"], found["kappa_interval"], found["ac1_interval"]), (1.0, None, None))
        self.assertEqual(found["raw_interval"], [*wilson(1.0, 8)])

    def test_weights_count(self) -> None:
        pairs = {"1": [(0, 0, 3.0)], "2": [(0, 1, 1.0)]}
        found = agreement(pairs, dict.fromkeys(pairs, "c"), 2)
        self.assertEqual((found["raw"], found["items"]), (3 / 4, 2))

    def test_nobody_asked_is_said(self) -> None:
        self.assertIn("nobody judged it again: the figures rest on one judge, who was asked once", self.text())

    def test_every_beginning_of_a_spread_has_each_stratum_at_its_share(self) -> None:
        items = {str(n): "abbb"[n % 4] for n in range(40)}
        for size in (4, 8, 20, 40):
            self.assertEqual(Counter(items[item] for item in spread(items)[:size]), {"a": size / 4, "b": 3 * size / 4})
        alone = spread({"x": "a", **{str(n): "b" for n in range(10)}})
        self.assertEqual(alone.index("x"), 5)  # one of a kind belongs to half of all samples

    @given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), st.integers(0, 3), min_size=1))
    def test_a_spread_is_an_order_of_the_items_whatever_order_they_came_in(self, items: dict[str, int]) -> None:
        found = spread(items)
        self.assertEqual(sorted(found), sorted(items))
        self.assertEqual(spread(dict(reversed([*items.items()]))), found)


def steadfast(role: RoleName, prompt: str) -> str:
    """A judge that knows what it is asked by the prompt's end, which no response reaches."""
    if prompt.endswith('"label": "直接判断或澄清提问"}'):
        return ASK
    return NO if prompt.endswith('"label": "是或否"}') else verdicts("支持", "支持")


class Attacked(Judged):
    def test_each_response_is_judged_as_it_stands_once_more_and_with_a_text_of_each_kind(self) -> None:
        texts = eval_judges.attack_texts()
        self.assertEqual(self.judges("--attacks", "2", "--plan").asked, [])
        planned = f"  calls              {3 * 2 * (2 + len(texts))}\n"
        self.assertIn(planned, self.printed)
        provider = self.judges("--attacks", "2", answer=steadfast)
        prompts = provider.prompts("judge")
        self.assertEqual(len(prompts), 3 * 2 * (2 + len(texts)))
        plain = self.run_provider.prompts("judge")
        self.assertTrue(prompts[0] in plain and prompts[1] == prompts[0])
        for kind, prompt in zip(texts, prompts[2 : 2 + len(texts)], strict=True):
            self.assertEqual(sum(f"\n\n{text}\n[引文" in prompt for text in texts[kind]), 1, kind)
        rows = self.rows("attacks", task="all")
        self.assertEqual(
            [(row["kind"], row["trials"], row["flips"]) for row in rows], [(k, 6, 0) for k in ("nothing", *texts)]
        )

    def test_flips_are_counted_by_kind_and_what_cannot_be_read_is_none(self) -> None:
        texts = eval_judges.attack_texts()
        kinds = [*texts]
        attacked = {text: kind for kind, some in texts.items() for text in some}

        def answer(role: RoleName, prompt: str) -> str:
            kind = next((kind for text, kind in attacked.items() if f"\n\n{text}\n[引文" in prompt), None)
            if kind == kinds[0]:
                return JUDGE
            return "看不懂" if kind == kinds[1] else ASK

        self.judges("--attacks", "3", "--tasks", "LCA", answer=answer)
        first, second, third, plain = (
            self.rows("attacks", task="LCA", kind=kind)[0] for kind in (*kinds[:3], eval_judges.UNCHANGED)
        )
        self.assertEqual((first["trials"], first["flips"], first["interval"]), (3, 3, [*wilson(1.0, 3)]))
        self.assertEqual((second["trials"], second["unreadable"], second["rate"]), (0, 3, None))
        self.assertEqual((third["flips"], plain["flips"], plain["trials"]), (0, 0, 3))
        self.assertEqual(self.judges("--attacks", "3", "--tasks", "LCA").asked, [])

    def test_a_rate_of_nothing_read_is_none(self) -> None:
        self.assertEqual(flip_rate([None])["interval"], None)
        self.assertEqual(flip_rate([True, False, None, False])["rate"], 1 / 3)


@unittest.skipUnless(importlib.util.find_spec("openai"), "needs the openai package")
class Killed(Judged):
    """The real command and client, killed in the middle of a request."""

    def test_a_kill_costs_the_call_under_way_and_no_other(self) -> None:
        for form in (["--tasks", "DCG", "LJP_gold", "--per-criterion"], ["--attacks", "2"]):
            with self.subTest(form):
                whole = len(self.judges(*form, "--second-judge-model", "in process", answer=sensible).asked)
                held, let_go = threading.Event(), threading.Event()

                def before(
                    count: int, role: RoleName, held: threading.Event = held, go: threading.Event = let_go
                ) -> None:
                    if count == 5:
                        held.set()
                        go.wait()

                provider = Loopback(self, before)
                env = surroundings(provider.url, LEXPILOT_SECOND_JUDGE_MODEL="j")
                command = ["eval_judges.py", *self.options(*form, "--parallel", "1")]
                killed = begin(*command, env=env)
                held.wait()
                killed.kill()
                finish(killed)
                let_go.set()
                status, out, err = finish(begin(*command, env=env))
                self.assertEqual(status, 0, err.decode("utf-8", "replace"))
                self.assertEqual(len(provider.asked), whole + 1)
                self.assertEqual({role for role, _ in provider.asked}, {"judge"})
                self.assertIn(b"Judges of run1 of m", out)
                one, other = (
                    {
                        path.name: self.answers(path)
                        for path in (self.root / "out").rglob(f"judge_checks/**/{judge}-*/*.jsonl")
                    }
                    for judge in ("j", "in_process")
                )
                self.assertEqual(one, other)

    def answers(self, path: Path) -> list[dict[str, Any]]:
        lines = path.read_text(encoding="utf-8").split("\n")
        return sorted(
            (without_calls(json.loads(line)) for line in lines[:-1]), key=lambda record: record["case_number"]
        )


class FlipCurve(Judged):
    def other_model(self, *more: str) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            if "二选一" in prompt:
                return "部分支持。"
            return verdicts("驳回", "驳回") if "诉讼请求如下" in prompt else sensible(role, prompt)

        self.run_all("--model", "n", *more, answer=answer)

    def test_it_needs_no_key_and_has_a_curve_for_each_figure_and_a_word_for_each_pair(self) -> None:
        self.other_model()
        self.assertEqual(self.judges("--flip-curve", "m", "n", "--format", "json").asked, [])
        curves = {(row["task"], row["metric"]): row for row in json.loads(self.printed)["curves"]}
        self.assertEqual(len(curves), 3 + 1 + 2 * 3)
        (pair,) = curves["LCA", "acc_u"]["pairs"]
        # 3 of 3 against 0 of 3: two errors in favour of the lower one and two against the higher one are enough.
        self.assertEqual((pair["first"], pair["second"], pair["equal"], pair["worst"]), ("m", "n", False, 2 / 6))
        first = curves["LCA", "acc_u"]["curve"][0]
        self.assertEqual((first["error"], first["means"], first["correlation"]), (0.0, [1.0, 0.0], 1.0))
        self.assertTrue(curves["LJP_gold", "accuracy"]["pairs"][0]["equal"])  # each has one claim of two right
        self.judges("--flip-curve", "m", "n")
        self.assertIn("  m and n are equal\n", self.printed)
        self.assertRegex(
            self.printed, r"LCA acc_u\n  m +1\.0000 .*\n  n +0\.0000 .*\n  rank correlation with e = 0 +1\.0000 "
        )
        self.assertRegex(self.printed, r"m and n change their order at \S+% at random, 33\.3% at worst")

    def test_models_that_cannot_be_compared_are_refused(self) -> None:
        self.other_model("--temperature", "0.5")
        self.assertIn("--flip-curve: name at least two models", self.refused(SettingsError, "--flip-curve", "m"))
        said = self.refused(SettingsError, "--flip-curve", "m", "n")
        self.assertIn(
            "--flip-curve: no runs that differ in the evaluated model alone; they differ in\n  temperature", said
        )

    def test_ways_exclude_each_other(self) -> None:
        for more in (
            ["--show", "--per-criterion"],
            ["--attacks", "2", "--sample", "2"],
            ["--tasks", "QWK"],
            ["--repeat", "0"],
        ):
            with self.assertRaises(SystemExit) as caught:
                self.judges(*more)
            self.assertEqual(caught.exception.code, 2, more)


class UnderTheTable(Judged):
    def test_a_table_says_that_nobody_checked_judge_and_user_model(self) -> None:
        for form in ("text", "markdown", "latex"):
            shown = self.show("--format", form)
            self.assertIn("Judge: asked once, and nobody else was.", shown)
            self.assertIn("User Model: nobody looked at its replies.", shown)
        self.assertIn("eval_judges.py and audit_user.py tell.", self.show())

    def test_a_table_says_how_far_judges_agree_and_what_the_user_model_does(self) -> None:
        self.command(Script(judge=[JUDGE, ASK, ASK, ASK, ASK, ASK]), "--tasks", "LCA")
        self.judges("--tasks", "LCA", "--second-judge-model", "j2")
        self.judges("--tasks", "DCG", "--per-criterion", answer=lambda role, prompt: YES)
        self.judges("--tasks", "LCA", "--attacks", "1", answer=steadfast)  # which is no agreement
        telling = Provider(lambda role, prompt: '{"reason": "", "label": "未问说出"}')
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            audit_user.main(["--parallel", "1", *self.options("--judge")], telling.connect, {})
        chance = 2 * (11 / 12) * (1 / 12)
        shown = self.show()
        self.assertIn(
            f"\nJudge: agrees with itself in run1 on LCA 0.833 ({(5 / 6 - chance) / (1 - chance):.3f}) of the labels",
            shown,
        )
        self.assertIn("\nJudge: agrees with j2 in run1 on LCA 1.000 (1.000) of the labels", shown)
        self.assertRegex(shown, r"\nJudge: agrees with itself, one call a criterion, in run1 on DCG 0\.500 ")
        replies = len(telling.asked)
        self.assertIn(
            f"told when asked none of 0, told unasked 100.0% of {replies}, contradicted 0.0% of {replies}", shown
        )

    def test_what_is_wrong_with_a_check_is_told_and_the_table_stands(self) -> None:
        self.judges("--tasks", "DCG")
        (path,) = (self.root / "out").rglob("DCG.whole.1.jsonl")
        path.write_bytes(path.read_bytes()[:-5])
        shown = self.show()
        self.assertRegex(
            shown,
            r"\nJudge: what was asked later cannot be told: .*DCG\.whole\.1\.jsonl:3: the last line is unfinished",
        )
        self.assertIn("overall", shown)

    def test_an_archive_does_not_depend_on_them(self) -> None:
        self.show("--bundle", str(self.root / "before.zip"))
        self.judges("--tasks", "DCG", answer=lambda role, prompt: YES)
        self.assertIn("figures are as they were", self.show("--verify", str(self.root / "before.zip")))


if __name__ == "__main__":
    unittest.main()
