"""Simulated models: what each policy must come to, what the provider refuses, and the command as a newcomer types it."""

import contextlib
import http.client
import importlib.util
import io
import json
import math
import os
import re
import signal
import unittest
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fakes import Folder, Provider, history, make_case
from loopback import begin, fetch, finish, surroundings

import simulate
from common import HERE, load_dataset
from errors import SettingsError
from eval_DCG import dcg_judge_prompt, read_hit
from eval_LCA import lca_judge_prompt, read_kind
from eval_LJP_gold import extraction_prompt, force_judge_prompt, read_verdicts
from LexAwN_gen import exchange, lexawn_prompt, user_prompt
from policies import (
    ANYTHING_ELSE,
    CARE,
    JUDGE_MODEL,
    NOTHING_MORE,
    POLICIES,
    USER_MODEL,
    Cases,
    UnknownPromptError,
    answer,
    asking,
    expected,
    judging,
)
from records import Case, RoleName, Verdict
from scores import TASKS
from show_results import main as show

SHIPPED = HERE / "LexPilot_release_multiturn.json"
CASES = load_dataset(SHIPPED).cases


class Policies(Folder):
    """Every stage, in this process, against each policy."""

    def figures(self, policy: str, cases: int) -> dict[str, dict[str, Any]]:
        """Task -> metric -> value over all cases, from `show_results.py --format json`; the floors are in `self.floors`."""
        book = Cases(CASES)
        models: dict[RoleName, str] = {"evaluated": f"simulated/{policy}", "user": USER_MODEL, "judge": JUDGE_MODEL}
        provider = Provider(lambda role, prompt: answer(models[role], prompt, book, "0-run1"))
        names = ["--model", models["evaluated"], "--user-model", USER_MODEL, "--judge-model", JUDGE_MODEL]
        places = ["--dataset", str(SHIPPED), "--output-root", str(self.root / "out")]
        for script in simulate.STAGES:
            self.stage(script, provider.connect, *places, *names, "--limit", str(cases))
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            show([*places, "--model", models["evaluated"], "--format", "json"])
        (group,) = json.loads(stream.getvalue())["groups"]
        self.assertEqual(group["simulated"], ["evaluated", "user", "judge"])
        self.floors = {task: of_task["floors"] for task, of_task in group["tasks"].items()}
        return {
            task: {metric: found["mean"] for metric, found in of_task["overall"].items()}
            for task, of_task in group["tasks"].items()
        }

    def test_always_asking_and_always_answering_score_a_third(self) -> None:
        # asking always: F1 of the underspecified 2n / (2n + n), of the complete 0; answering always: the other way round
        for policy, acc_c, acc_u in (("always-ask", 0, 1), ("always-answer", 1, 0)):
            figures = self.figures(policy, 24)
            self.assertEqual(figures["LCA"], {"macro_f1": (2 / 3 + 0) / 2, "acc_c": acc_c, "acc_u": acc_u})
            self.assertEqual(self.floors["LCA"][policy.replace("-", " ")], figures["LCA"])
            self.assertEqual(figures["DCG"], {"success_rate": 0, "first_hit": 0, "second_hit": 0})
            rounds = {"questions": 3, "judged": 0} if acc_u else {"questions": 0, "judged": 1}
            self.assertEqual({name: figures["LJP_interaction"][name] for name in rounds}, rounds)
            for task in ("LJP_direct", "LJP_gold", "LJP_interaction"):
                self.assertEqual(figures[task]["qwk"], 0)

    def test_one_verdict_for_everything_has_no_agreement_beyond_chance(self) -> None:
        figures = self.figures("majority", 24)
        claims = [verdict for case in CASES[:24] for verdict in case.verdicts.values()]
        for task in ("LJP_direct", "LJP_gold", "LJP_interaction"):
            whole = sum({*case.verdicts.values()} == {"支持"} for case in CASES[:24]) / 24
            floor = {"qwk": 0, "accuracy": claims.count("支持") / len(claims), "all_right": whole}
            self.assertEqual(self.floors[task], {"commonest verdict": floor})
            self.assertEqual({name: figures[task][name] for name in floor}, floor)

    def test_the_oracle_is_the_ceiling_and_cannot_decide_without_the_facts(self) -> None:
        figures = self.figures("oracle", 24)
        self.assertEqual(figures["LCA"], {"macro_f1": 1, "acc_c": 1, "acc_u": 1})
        self.assertEqual(figures["DCG"], {"success_rate": 1, "first_hit": 1, "second_hit": None})
        self.assertEqual(figures["LJP_direct"]["qwk"], 0)
        for task in ("LJP_gold", "LJP_interaction"):
            self.assertEqual({name: figures[task][name] for name in ("qwk", "accuracy", "all_right")}, {
                "qwk": 1, "accuracy": 1, "all_right": 1,
            })  # fmt: skip
        self.assertEqual((figures["LJP_interaction"]["questions"], figures["LJP_interaction"]["judged"]), (1, 1))

    def test_the_careless_one_comes_to_what_is_stated_of_it(self) -> None:
        figures = self.figures("careless", 144)
        stated = expected(CASES[:144], "支持")
        self.assertEqual([*stated], [*TASKS])
        for task, metrics in stated.items():
            self.assertLessEqual({*metrics}, {*figures[task]})
            for metric, bound in metrics.items():
                self.assertTrue(bound.low <= figures[task][metric] <= bound.high, f"{task} {metric}: {figures[task]}")


class Stated(unittest.TestCase):
    def test_the_careless_figures_follow_from_its_care(self) -> None:
        # ten cases of each verdict, so that the margins are even; care 0.7, the rest falls evenly on the three verdicts
        verdicts: tuple[Verdict, ...] = ("支持", "部分支持", "驳回")
        cases = [CASES[0]._replace(number=str(n), verdicts={"请求判令甲": verdicts[n % 3]}) for n in range(30)]
        stated = expected(cases, "支持")
        values = {task: {metric: bound.value for metric, bound in of.items()} for task, of in stated.items()}
        care = Fraction(7, 10)
        self.assertEqual(CARE, care)
        self.assertEqual(values["LCA"], dict.fromkeys(("macro_f1", "acc_c", "acc_u"), care))
        self.assertEqual(values["DCG"]["success_rate"], 1 - Fraction(3, 10) ** 2)
        # gold: 0.8 on the diagonal, 0.1 beside it; observed (0.5 + 0.2 + 0.5) / 3, by chance (4 * 1 + 2 * 4) / 9
        self.assertEqual(
            values["LJP_gold"], {"qwk": 1 - Fraction(4, 10) / Fraction(12, 9), "accuracy": Fraction(8, 10)}
        )
        self.assertEqual(values["LJP_direct"], {"qwk": 0, "accuracy": Fraction(8 + 1 + 1, 30)})
        known = Fraction(49, 100) * (1 + Fraction(21, 100) + Fraction(21, 100) ** 2)
        accuracy = known * Fraction(8, 10) + (1 - known) * Fraction(1, 3)
        self.assertEqual(values["LJP_interaction"]["accuracy"], accuracy)
        for of in stated.values():
            for bound in of.values():
                self.assertTrue(bound.low < bound.value < bound.high, bound)

    def test_what_is_undefined_is_not_stated(self) -> None:
        one = [CASES[0]._replace(verdicts={"请求判令甲": "支持"})]
        self.assertEqual([*expected(one, "支持")["LJP_gold"]], ["qwk", "accuracy"])
        # one gold verdict: 0 by the formula where the predictions vary, undefined where they do not
        self.assertEqual(expected(one, "支持")["LJP_gold"]["qwk"].value, 0)


def case(**changes: Any) -> Case:
    values: dict[str, Any] = {
        "number": "1",
        "cause": "民间借贷纠纷",
        "plaintiff_type": "自然人",
        "focal_points": ["钱还过没有", "利息怎么约定"],
        "key_details": ["三月还过3000元", "借条上没写利息"],
        "verdicts": {"请求判令归还借款1万元": "部分支持", "请求判令支付利息500元": "驳回"},
        "complete": history("他借了我1万，三月还过3000元，借条上没写利息。"),
        "underspecified": history("他借了我1万，能要回来吗？"),
    }
    return Case(**{**values, **changes})


class Answers(unittest.TestCase):
    def say(self, model: str, prompt: str, *cases: Case) -> str:
        return answer(f"simulated/{model}", prompt, Cases(cases or [case()]), "0")

    def test_the_oracle_asks_for_what_is_hidden_and_is_told_just_that(self) -> None:
        known = case()
        question = self.say("oracle", lexawn_prompt(known.underspecified))
        self.assertEqual(question, asking(known.focal_points))
        reply = self.say("user", user_prompt(known.underspecified, known.focal_points, known.key_details, question))
        self.assertEqual(reply, "您问的这个，情况是这样：三月还过3000元；借条上没写利息。")
        told = known.underspecified + exchange(question, reply)
        self.assertEqual(self.say("oracle", lexawn_prompt(told)), judging(known.verdicts))

    def test_a_question_on_one_point_leaves_the_other_hidden(self) -> None:
        known = case()
        first = asking(["钱还过没有"])
        prompt = user_prompt(known.underspecified, known.focal_points, known.key_details, first)
        reply = self.say("user", prompt)
        self.assertEqual(reply, "您问的这个，情况是这样：三月还过3000元。")
        told = known.underspecified + exchange(first, reply)
        self.assertEqual(self.say("oracle", lexawn_prompt(told)), asking(["利息怎么约定"]))
        self.assertIn("法院会部分支持", self.say("oracle", force_judge_prompt(told)))
        self.assertNotIn("法院会驳回", self.say("oracle", force_judge_prompt(told)))

    def test_points_and_details_that_are_not_paired_are_asked_and_told_together(self) -> None:
        known = case(focal_points=["钱还过没有"])
        prompt = user_prompt(known.underspecified, known.focal_points, known.key_details, asking(["钱还过没有"]))
        self.assertEqual(self.say("user", prompt, known), "您问的这个，情况是这样：三月还过3000元；借条上没写利息。")
        prompt = user_prompt(known.underspecified, known.focal_points, known.key_details, ANYTHING_ELSE)
        self.assertNotIn("3000", self.say("user", prompt, known))

    def test_every_answer_is_a_text_and_not_a_token(self) -> None:
        for policy in POLICIES:
            for prompt in (lexawn_prompt(case().underspecified), force_judge_prompt(case().complete)):
                self.assertGreater(len(self.say(policy, prompt)), 20)

    def test_a_key_decides_the_draws(self) -> None:
        book = Cases(CASES[:40])
        prompts = [force_judge_prompt(case.complete) for case in CASES[:40]]

        def said(key: str) -> list[str]:
            return [answer("simulated/careless", prompt, book, key) for prompt in prompts]

        self.assertEqual(said("0-run1"), said("0-run1"))
        self.assertNotEqual(said("0-run1"), said("0-run2"))

    def test_what_was_not_written_here_is_refused(self) -> None:
        known = case()
        for model, prompt in (
            ("oracle", "你好"),
            ("oracle", lexawn_prompt(case(underspecified=history("谁都没讲过的事")).underspecified)),
            ("oracle", lca_judge_prompt(ANYTHING_ELSE)),
            ("user", lexawn_prompt(known.underspecified)),
            ("user", user_prompt(known.underspecified, known.focal_points, known.key_details, "还过钱没有？")),
            ("judge", lca_judge_prompt("请问还过钱没有？")),
            ("judge", extraction_prompt(["请求判令甲"], judging(known.verdicts))),
            ("nobody", lexawn_prompt(known.underspecified)),
        ):
            with self.subTest(model=model, prompt=prompt[:40]), self.assertRaises(UnknownPromptError):
                self.say(model, prompt)

    def test_what_a_judge_that_errs_leads_to_has_an_answer_as_well(self) -> None:
        known = case()
        question = self.say("judge", extraction_prompt([*known.verdicts], ANYTHING_ELSE))
        self.assertEqual(
            [verdict for verdict, _ in read_verdicts(question, len(known.verdicts))], ["驳回"] * len(known.verdicts)
        )
        prompt = user_prompt(known.underspecified, known.focal_points, known.key_details, judging(known.verdicts))
        self.assertEqual(self.say("user", prompt), NOTHING_MORE)

    def test_the_judge_reads_what_a_model_wrote_and_nothing_that_was_appended(self) -> None:
        known = case()
        for text in ("\n判定：直接判断", "\n\n" + judging(known.verdicts)):
            self.assertEqual(read_kind(self.say("judge", lca_judge_prompt(ANYTHING_ELSE + text)))[0], "澄清提问")

    def test_one_claim_or_one_detail_is_judged_by_itself(self) -> None:
        known = case()
        claim, verdict = [*known.verdicts.items()][-1]
        found = read_verdicts(self.say("judge", extraction_prompt([claim], judging(known.verdicts))), 1)
        self.assertEqual([found[0][0]], [verdict])
        point, detail = known.focal_points[0], known.key_details[0]
        for details, label in (([detail], "是"), (["另一条"], "否")):
            prompt = dcg_judge_prompt(known.underspecified, [point], details, asking([point]))
            self.assertEqual(read_hit(self.say("judge", prompt))[0], label)

    def test_a_judge_errs_as_often_as_its_name_says_and_alike_for_one_seed(self) -> None:
        prompts = [lca_judge_prompt(ANYTHING_ELSE + f"\n{n}") for n in range(400)]
        book = Cases([case()])

        def labels(model: str, seed: str) -> list[str]:
            return [read_kind(answer(f"simulated/judge{model}", prompt, book, seed))[0] for prompt in prompts]

        self.assertEqual(labels("", "a"), ["澄清提问"] * 400)
        self.assertEqual(labels("-0", "a"), ["澄清提问"] * 400)
        self.assertEqual(labels("-1", "a"), ["直接判断"] * 400)
        wrong = labels("-0.2", "a").count("直接判断")
        self.assertLess(abs(wrong - 80), 4 * math.sqrt(400 * 0.2 * 0.8))
        self.assertEqual(labels("-0.2", "a"), labels("-0.2", "a"))
        self.assertNotEqual(labels("-0.2", "a"), labels("-0.2", "b"))
        for name in ("-", "-2", "-0.1x", "-1.5"):
            with self.assertRaises(UnknownPromptError):
                labels(name, "a")

    def test_two_cases_with_one_history_cannot_be_told_apart(self) -> None:
        with self.assertRaisesRegex(SettingsError, "1 and 2 share a history"):
            Cases([case(), case(number="2")])
        with self.assertRaisesRegex(SettingsError, "1 and 1 share a history"):
            Cases([case(complete=case().underspecified)])


class Server(unittest.TestCase):
    def setUp(self) -> None:
        self.up = contextlib.ExitStack()
        self.addCleanup(self.up.close)
        self.url = self.up.enter_context(simulate.serving(Cases([case()]), 0))

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of a request, with a key unless told otherwise."""
        given = {"Authorization": "Bearer 0", **headers}
        status, raw = fetch(self.url + path, body, **{name: value for name, value in given.items() if value})
        return status, json.loads(raw)

    def complete(self, **changes: Any) -> tuple[int, Any]:
        asked = {"model": "simulated/oracle", "messages": [{"role": "user", "content": lexawn_prompt(case().complete)}]}
        return self.ask("/chat/completions", json.dumps({**asked, **changes}).encode())

    def test_a_completion_has_text_and_usage(self) -> None:
        status, found = self.complete()
        text = judging(case().verdicts)
        self.assertEqual((status, found["object"], found["model"]), (200, "chat.completion", "simulated/oracle"))
        message = {"role": "assistant", "content": text, "refusal": None}
        self.assertEqual(found["choices"], [{"index": 0, "message": message, "finish_reason": "stop"}])
        asked = len(lexawn_prompt(case().complete))
        usage = {"prompt_tokens": asked, "completion_tokens": len(text), "total_tokens": asked + len(text)}
        self.assertEqual(found["usage"], usage)

    def test_a_text_that_is_too_long_is_cut_and_says_so(self) -> None:
        (choice,) = self.complete(max_tokens=5)[1]["choices"]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("根据您说的", "length"))

    def test_the_models_are_listed(self) -> None:
        status, found = self.ask("/models")
        names = ["always-ask", "always-answer", "majority", "oracle", "careless", "user", "judge"]
        self.assertEqual((status, [model["id"] for model in found["data"]]), (200, [f"simulated/{n}" for n in names]))

    def test_what_cannot_be_answered_is_an_error_in_the_shape_of_openai(self) -> None:
        said = [{"role": "user", "content": "你好"}]
        for status, code, found in (
            (404, "model_not_found", self.complete(model="gpt-5")),
            (404, "model_not_found", self.complete(model=["simulated/oracle"])),
            (400, "unknown_prompt", self.complete(messages=said)),
            (400, "invalid_value", self.complete(messages=said * 2)),
            (400, "invalid_value", self.complete(messages=[{"role": "system", "content": "你好"}])),
            (400, "invalid_value", self.complete(messages=[{"role": "user", "content": ["你好"]}])),
            (400, "invalid_value", self.complete(messages=None)),
            (400, "invalid_value", self.complete(max_tokens=0)),
            (400, "unsupported_value", self.complete(n=2)),
            (400, "unsupported_value", self.complete(stream=True)),
            (400, "invalid_json", self.ask("/chat/completions", b"{")),
            (400, "invalid_json", self.ask("/chat/completions", b"\xff")),
            (400, "invalid_json", self.ask("/chat/completions", b"[]")),
            (404, "unknown_url", self.ask("/embeddings", b"{}")),
            (404, "unknown_url", self.ask("/chat/completions")),
            (401, "invalid_api_key", self.ask("/models", Authorization="")),
            (401, "invalid_api_key", self.ask("/chat/completions", b"{}", Authorization="Basic 0")),
        ):
            with self.subTest(code=code, found=found):
                self.assertEqual((found[0], found[1]["error"]["code"]), (status, code))
                self.assertTrue(found[1]["error"]["message"])

    def test_a_judge_that_errs_draws_anew_when_it_is_asked_again(self) -> None:
        content = lca_judge_prompt(ANYTHING_ELSE)
        asked = [
            {"model": "simulated/judge-0.5", "messages": [{"role": "user", "content": content}]} for _ in range(40)
        ]
        found = [self.complete(**one)[1]["choices"][0]["message"]["content"] for one in asked]
        self.assertEqual(len({*found}), 2)
        self.assertLess(abs(sum("直接判断" in text for text in found) - 20), 4 * math.sqrt(40 / 4))

    def test_a_request_of_unknown_length_or_method_is_refused_too(self) -> None:
        host = re.sub(r"^http://|/v1$", "", self.url)
        for method, headers, status in (
            ("POST", {"Transfer-Encoding": "chunked"}, 413),
            ("POST", {"Content-Length": "99999999999"}, 413),
            ("DELETE", {}, 501),
        ):
            with self.subTest(method=method, headers=headers):
                connection = http.client.HTTPConnection(host)
                self.addCleanup(connection.close)
                connection.putrequest(method, "/v1/chat/completions")
                for name, value in headers.items():
                    connection.putheader(name, value)
                connection.endheaders()
                response = connection.getresponse()
                self.assertEqual((response.status, [*json.load(response)]), (status, ["error"]))

    def test_a_port_that_is_taken_is_named(self) -> None:
        taken = int(self.url.split(":")[2].removesuffix("/v1"))
        for port in (taken, 99999):
            with self.assertRaisesRegex(SettingsError, f"port {port} cannot be had.*--port"):
                self.up.enter_context(simulate.serving(Cases([case()]), port))


class Settings(unittest.TestCase):
    def test_nothing_of_a_real_run_reaches_a_simulated_one(self) -> None:
        real = {
            **{"PATH": "p", "OPENAI_API_KEY": "sk", "OPENAI_ORG_ID": "o", "LEXPILOT_JUDGE_API_KEY": "sk"},
            **{"LEXPILOT_RUN_ID": "run9", "HTTPS_PROXY": "http://proxy", "http_proxy": "http://proxy", "no_proxy": "x"},
        }
        self.assertEqual(simulate.surroundings(real), {"PATH": "p", "NO_PROXY": "127.0.0.1"})

    def test_the_five_variables_stand_for_the_three_models(self) -> None:
        self.assertEqual(
            simulate.variables("oracle", "http://127.0.0.1:1/v1", "k"),
            {
                "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
                "OPENAI_API_KEY": "k",
                "LEXPILOT_MODEL": "simulated/oracle",
                "LEXPILOT_USER_MODEL": "simulated/user",
                "LEXPILOT_JUDGE_MODEL": "simulated/judge",
            },
        )

    def test_wrong_options_end_with_2(self) -> None:
        for options in (["--runs", "0"], ["--policy", "best"], ["--seed", "a-b"], ["--seed", "字"], ["--port", "x"]):
            with self.subTest(options=options), contextlib.redirect_stderr(io.StringIO()):
                with self.assertRaises(SystemExit) as ended:
                    simulate.main(options)
                self.assertEqual(ended.exception.code, 2)


def free_port() -> str:
    """A port that was free a moment ago; the tests need one by number, since it is a part of what a run is bound to."""
    with simulate.serving(Cases([case()]), 0) as url:
        return url.split(":")[2].removesuffix("/v1")


@unittest.skipUnless(importlib.util.find_spec("openai"), "the openai package is not installed")
class Command(Folder):
    cases = tuple(make_case(str(n)) for n in range(1, 4))

    def simulate(self, *options: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        places = ["--dataset", str(self.data_file), "--output-root", str(self.root / "out"), "--port", self.port]
        found = finish(begin("simulate.py", *places, *options, env=env or surroundings()))
        return found[0], found[1].decode(), found[2].decode()

    def setUp(self) -> None:
        super().setUp()
        self.port = free_port()

    def test_one_command_runs_every_stage_and_shows_the_table(self) -> None:
        blocked = surroundings(HTTP_PROXY="http://127.0.0.1:1", LEXPILOT_RUN_ID="mine", LEXPILOT_LIMIT="1")
        status, out, err = self.simulate("--runs", "2", "--limit", "2", env=blocked)
        self.assertEqual(status, 0, err)
        self.assertIn("SIMULATED        evaluated, user, judge", out)
        self.assertIn("Runs             2: run1-first-2, run2-first-2", out)
        for line in ("LCA macro_f1", "DCG success_rate", "LJP_interaction accuracy", str(self.root / "out")):
            self.assertIn(line, out)
        for name in ("a1", "lca", "interaction", "force_ask", "dcg", "ljp_direct", "ljp_gold", "ljp_interaction"):
            self.assertEqual(len(self.records(name, "run2-first-2")), 2)
        before = self.snapshot()
        status, out, err = self.simulate("--limit", "2")
        self.assertEqual((status, self.snapshot()), (0, before), err)
        self.assertIn("a1.jsonl: 2 cases, 2 done, 0 to do", err)

    def test_a_stage_that_fails_ends_the_command_with_its_status(self) -> None:
        (self.root / "out").write_text("no folder", encoding="utf-8")
        status, out, err = self.simulate("--policy", "oracle")
        self.assertEqual((status, out, err.count("error:")), (1, "", 1))
        self.assertIn("LexAwN_gen.py ended with status 1; to begin anew, delete the output root", err)

    @unittest.skipIf(os.name == "nt", "sends SIGINT")
    def test_the_provider_alone_says_what_to_set_and_serves_until_ctrl_c(self) -> None:
        server = begin("simulate.py", "--serve", "--policy", "oracle", "--port", self.port, env=surroundings())
        self.addCleanup(server.kill)
        assert server.stdout is not None
        lines = list[str]()
        while not lines or not lines[-1].startswith("Serving"):
            lines.append(server.stdout.readline().decode())
            self.assertTrue(lines[-1], "it ended")
        bash = dict(re.findall(r'^export (\w+)="(.*)"$', "".join(lines), re.MULTILINE))
        powershell = dict(re.findall(r'^\$env:(\w+) = "(.*)"$', "".join(lines), re.MULTILINE))
        self.assertEqual((len(bash), bash), (5, powershell))
        options = ("--limit", "1", "--output-root", str(self.root / "out"))
        status, _, err = finish(begin("LexAwN_gen.py", *options, env={**surroundings(), **bash}))
        self.assertEqual(status, 0, err)
        (record,) = self.records("interaction")
        self.assertEqual((record["case_number"], record["stop_reason"]), ("LP-01-01", "judgment"))
        server.send_signal(signal.SIGINT)
        self.assertEqual(finish(server)[::2], (0, b""))


if __name__ == "__main__":
    unittest.main()
