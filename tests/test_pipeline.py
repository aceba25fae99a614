"""The protocols step by step: who is asked what, how often, in which order, and what is written."""

import contextlib
import io
import json
import unittest
from collections.abc import Sequence
from typing import Any, cast

from fakes import (
    ASK,
    JUDGE,
    NO,
    SIX_COMMANDS,
    STAGES,
    YES,
    Folder,
    Provider,
    Reply,
    Script,
    body,
    history,
    make_case,
    sensible,
    verdicts,
    without_calls,
)

from adapter import Channel, ChatModel, Role, make_role
from common import load_dataset
from errors import CheckpointError, LexPilotError, ModelOutputError, ProviderError, SettingsError
from eval_LCA import Classified
from eval_LJP_gold import force_judge_prompt
from LexAwN_gen import interact, lexawn_prompt
from records import RoleName

ODD = "{history} %s $x \\n </对话历史> \u2028\u0085\u2029\x0b\x0c\r \U0001f600 “引”'\" 　全角"


def a_role(name: RoleName) -> Role:
    return make_role(name, "m", 0.7, 64, 30.0, {})


class Interaction(Folder):
    cases = (make_case("1"),)

    def interact(self, **replies: list[str]) -> tuple[dict[str, Any], Provider]:
        provider = self.play("LexAwN_gen.py", **replies)
        (record,) = self.records("interaction")
        return record, provider

    def test_a_judgment_at_once_ends_it_without_a_user_reply(self) -> None:
        record, provider = self.interact(evaluated=["完整判", "直接判"], judge=[JUDGE, JUDGE])
        self.assertEqual(record["stop_reason"], "judgment")
        self.assertEqual(record["final_response"], "直接判")
        self.assertEqual(record["history"], self.cases[0]["underspecified_consultation"])
        self.assertEqual([r["user_reply"] for r in record["rounds"]], [None])
        self.assertEqual([role for role, _ in provider.asked], ["evaluated"] * 2 + ["judge"] * 2)

    def test_a_judgment_in_the_second_round_follows_the_first_question_and_reply(self) -> None:
        record, provider = self.interact(evaluated=["完整判", "问1", "判2"], judge=[JUDGE, ASK, JUDGE], user=["答1"])
        self.assertEqual(record["stop_reason"], "judgment")
        self.assertEqual([(r["round"], r["label"]) for r in record["rounds"]], [(1, "澄清提问"), (2, "直接判断")])
        grown = [*self.cases[0]["underspecified_consultation"], *history("", "问1", "答1")[1:]]
        self.assertEqual(record["history"], grown)
        self.assertEqual(provider.prompts("evaluated")[-1], lexawn_prompt(grown))

    def test_three_questions_are_answered_and_then_the_prediction_is_forced(self) -> None:
        record, provider = self.interact(
            evaluated=["完整判", "问1", "问2", "问3", "请问还有吗？"],
            judge=[JUDGE, ASK, ASK, ASK],
            user=["答1", "答2", "答3"],
        )
        self.assertEqual(record["stop_reason"], "round_limit")
        self.assertEqual(record["final_response"], "请问还有吗？")  # closes the case though it reads like a question
        self.assertEqual([r["user_reply"] for r in record["rounds"]], ["答1", "答2", "答3"])
        self.assertEqual(provider.prompts("evaluated")[-1], force_judge_prompt(record["history"]))
        self.assertEqual([m["content"] for m in record["history"]][-6:], ["问1", "答1", "问2", "答2", "问3", "答3"])

    def test_the_user_model_sees_each_earlier_turn_once_and_only_the_newest_question_as_such(self) -> None:
        _, provider = self.interact(
            evaluated=["完整判", "甲问", "乙问", "判"], judge=[JUDGE, ASK, ASK, JUDGE], user=["子答", "丑答"]
        )
        second = provider.prompts("user")[1]
        self.assertEqual([second.count(text) for text in ("案1：", "甲问", "子答", "乙问", "丑答")], [1, 1, 1, 1, 0])
        self.assertLess(second.index("子答"), second.index("乙问"))

    def test_a_reasoning_block_reaches_neither_history_nor_user_model_nor_judge(self) -> None:
        record, provider = self.interact(
            evaluated=["完整判", "<think>暗想</think>\n问1", "暗想</think>判2"], judge=[JUDGE, ASK, JUDGE], user=["答1"]
        )
        self.assertEqual([r["response"] for r in record["rounds"]], ["问1", "判2"])
        self.assertEqual([prompt for _, prompt in provider.asked if "暗想" in prompt], [])

    def test_a_round_keeps_the_judges_reason_and_reply(self) -> None:
        record, _ = self.interact(evaluated=["完整判", "问1", "判2"], judge=[JUDGE, ASK, JUDGE], user=["答1"])
        found = [(r["reason"], r["judge_reply"]) for r in record["rounds"]]
        self.assertEqual(found, [("还在提问", ASK), ("已有结论", JUDGE)])

    def test_a_blank_reply_of_the_user_model_is_no_turn(self) -> None:
        script = Script(user=[body(""), body(None), "答1"], evaluated=["判2"], judge=[JUDGE])
        roles: tuple[RoleName, ...] = ("evaluated", "user", "judge")
        models = {
            name: ChatModel(Channel(a_role(name), script.connect, 2, pause=lambda seconds: None)) for name in roles
        }
        case = load_dataset(self.data_file).cases[0]
        with contextlib.redirect_stderr(io.StringIO()):
            record = interact(
                case, "问1", Classified("澄清提问", "", ""),
                evaluated=models["evaluated"], judge=models["judge"], user=models["user"],
            )  # fmt: skip
        self.assertEqual([r["user_reply"] for r in record["rounds"]], ["答1", None])
        self.assertEqual([message["content"] for message in record["history"]][-2:], ["问1", "答1"])
        self.assertEqual(len(set(script.prompts("user"))), 1)

    def test_a_user_model_that_stays_silent_stops_the_stage(self) -> None:
        with self.assertRaisesRegex(ModelOutputError, r"case 1, interaction\.jsonl: user model .*, 1 try: .*blank"):
            self.play("LexAwN_gen.py", "--retries", "0", evaluated=["判", "问1"], judge=[JUDGE, ASK], user=[body("")])
        self.assertEqual([path for path in self.snapshot() if path.endswith("interaction.jsonl")], [])


class Rejected(Folder):
    cases = (make_case("1"),)

    def test_a_reply_that_was_cut_off_or_only_thought_is_saved_for_no_role(self) -> None:
        rows: tuple[tuple[RoleName, str, str, dict[str, list[str]]], ...] = (
            ("evaluated", "eval_LJP_gold.py", "a1_force_judge.jsonl", {}),
            ("user", "eval_DCG.py", "force_ask.jsonl", {"evaluated": ["问1"]}),
            ("judge", "eval_LJP_gold.py", "LJP_gold.jsonl", {"evaluated": ["判"]}),
        )
        whole = verdicts("驳回")
        for n, reply in enumerate(
            (
                body(whole, "length"),
                body(None, "length", reasoning_content=whole),
                body("", "stop", reasoning_content=whole),
            )
        ):
            for role, script, file, others in rows:
                with self.subTest(role, reply=reply):
                    run = f"{role}{n}"
                    replies: dict[str, Sequence[Reply]] = {**others, role: [reply]}
                    with self.assertRaises(ModelOutputError) as caught:
                        self.play(script, "--retries", "0", "--run-id", run, **replies)
                    told = str(caught.exception)
                    self.assertTrue(told.startswith(f"{script}, case 1, {file}: {role} model "), told)
                    self.assertIn("raise --max-tokens", told)
                    self.assertEqual([path for path in self.snapshot() if run in path and path.endswith(file)], [])


class DetailCompletion(Folder):
    cases = (make_case("1"),)

    def test_a_hit_in_the_second_round_alone_is_a_success(self) -> None:
        self.play("eval_DCG.py", evaluated=["问1", "问2"], user=["答1"], judge=[NO, YES])
        (record,) = self.records("dcg")
        self.assertEqual([r["label"] for r in record["rounds"]], ["否", "是"])
        self.assertIs(record["success"], True)

    def test_an_early_hit_does_not_spare_the_second_question_or_its_judgment(self) -> None:
        provider = self.play("eval_DCG.py", evaluated=["问1", "问2"], user=["答1"], judge=[YES, NO])
        self.assertIs(self.records("dcg")[0]["success"], True)
        self.assertEqual(len(provider.prompts("judge")), 2)

    def test_two_misses_are_a_failure(self) -> None:
        self.play("eval_DCG.py", evaluated=["问1", "问2"], user=["答1"], judge=[NO, NO])
        self.assertIs(self.records("dcg")[0]["success"], False)

    def test_the_second_question_and_its_judge_see_the_first_and_its_reply(self) -> None:
        provider = self.play("eval_DCG.py", evaluated=["甲问", "乙问"], user=["子答"], judge=[NO, NO])
        for prompt in (provider.prompts("evaluated")[1], provider.prompts("judge")[1]):
            self.assertIn("Assistant: 甲问\nUser: 子答</对话历史>", prompt)
        self.assertNotIn("甲问", provider.prompts("evaluated")[0])
        self.assertEqual([prompt.count("乙问") for prompt in provider.prompts("judge")], [0, 1])


class Prediction(Folder):
    cases = (
        make_case("1", result_dict={"十": "驳回", "2": "支持", "10": "部分支持", "1": "驳回"}),
        make_case("2"),
    )

    def test_each_setup_predicts_from_its_own_history_with_the_one_prompt(self) -> None:
        for script, key in (("eval_LJP_direct.py", "underspecified"), ("eval_LJP_gold.py", "complete")):
            with self.subTest(script):
                provider = self.play(
                    script,
                    evaluated=["判1", "判2"],
                    judge=[verdicts("支持", "驳回", "支持", "部分支持"), verdicts("支持")],
                )
                expected = [force_judge_prompt(case[f"{key}_consultation"]) for case in self.cases]
                self.assertEqual(provider.prompts("evaluated"), expected)

    def test_verdicts_stand_in_the_data_files_claim_order(self) -> None:
        self.play(
            "eval_LJP_gold.py",
            evaluated=["判1", "判2"],
            judge=[verdicts("支持", "驳回", "支持", "部分支持"), verdicts("支持")],
        )
        first = self.records("ljp_gold")[0]
        self.assertEqual(first["claims"], ["十", "2", "10", "1"])
        self.assertEqual(first["verdicts"], ["支持", "驳回", "支持", "部分支持"])

    def test_the_extraction_judge_sees_the_claims_in_order_and_the_response_only(self) -> None:
        provider = self.play(
            "eval_LJP_direct.py",
            evaluated=["判1", "判2"],
            judge=[verdicts("支持", "驳回", "支持", "部分支持"), verdicts("支持")],
        )
        prompt = provider.prompts("judge")[0]
        self.assertIn("1. 十\n2. 2\n3. 10\n4. 1\n", prompt)
        self.assertIn("判1", prompt)
        self.assertNotIn("案1", prompt)

    def test_the_interaction_setup_judges_the_final_response_alone(self) -> None:
        self.play(
            "LexAwN_gen.py",
            evaluated=["完", "问1", "完", "判", "终判"],
            judge=[JUDGE, ASK, JUDGE, JUDGE, JUDGE],
            user=["答1"],
        )
        provider = self.play(
            "eval_LJP_interaction.py", judge=[verdicts("支持", "驳回", "支持", "部分支持"), verdicts("支持")]
        )
        self.assertIn("终判", provider.prompts("judge")[0])
        self.assertNotIn("问1", provider.prompts("judge")[0])


class Counts(Folder):
    """Between 14 and 22 calls a case, each kind counted."""

    cases = (make_case("1"),)

    def counts(self, response: str) -> dict[str, int]:
        def answer(role: RoleName, prompt: str) -> str:
            return response if role == "evaluated" and "二选一" in prompt else str(sensible(role, prompt))

        provider = self.run_all(answer=answer)
        kinds = {
            "lexawn": ("evaluated", "二选一"),
            "forced question": ("evaluated", "一个问题"),
            "prediction": ("evaluated", "裁判结果，只能是"),
            "user": ("user", ""),
            "lca judge": ("judge", "直接判断"),
            "dcg judge": ("judge", "是否命中关键细节"),
            "extraction judge": ("judge", "诉讼请求如下"),
        }
        found = {
            kind: sum(role == asked and mark in prompt for asked, prompt in provider.asked)
            for kind, (role, mark) in kinds.items()
        }
        self.assertEqual(sum(found.values()), len(provider.asked), "every call is of one kind")
        return found

    def test_a_model_that_never_asks_costs_14_calls(self) -> None:
        found = self.counts("部分支持，因为还过一半。")
        self.assertEqual(found, {
            "lexawn": 2, "forced question": 2, "prediction": 1 + 1, "user": 1, "lca judge": 2, "dcg judge": 2,
            "extraction judge": 3,
        })  # fmt: skip
        self.assertEqual(sum(found.values()), 14)

    def test_a_model_that_asks_for_ever_costs_22_calls(self) -> None:
        found = self.counts("请问钱还过吗？")
        self.assertEqual(found, {
            "lexawn": 2 + 2, "forced question": 2, "prediction": 1 + 1 + 1, "user": 1 + 3, "lca judge": 2 + 2,
            "dcg judge": 2, "extraction judge": 3,
        })  # fmt: skip
        self.assertEqual(sum(found.values()), 22)

    def test_every_request_is_one_user_message_for_one_choice(self) -> None:
        for request in self.run_all().requests:
            self.assertEqual([message["role"] for message in request["messages"]], ["user"])
            self.assertEqual(request["n"], 1)

    def test_each_role_is_asked_with_its_own_model_and_temperature(self) -> None:
        provider = self.run_all("--user-model", "u", "--judge-model", "j", "--temperature", "0.5")
        seen = {
            (role, r["model"], r["temperature"]) for (role, _), r in zip(provider.asked, provider.requests, strict=True)
        }
        self.assertEqual(seen, {("evaluated", "m", 0.5), ("user", "u", 0.5), ("judge", "j", 0.1)})


class Isolation(Folder):
    cases = (
        make_case("1", focal_point=["焦点金丝雀"], key_details=["细节金丝雀"], result_dict={"请求金丝雀": "驳回"}),
    )

    def asked_with(self, canary: str) -> set[tuple[str, str]]:
        """Which role saw a canary, and in which kind of prompt."""
        marks = {"命中关键细节": "dcg", "诉讼请求如下": "extraction", "扮演": "user", "二选一": "lexawn"}
        return {
            (role, next((kind for mark, kind in marks.items() if mark in prompt), "other"))
            for role, prompt in self.run_all().asked
            if canary in prompt
        }

    def test_hidden_details_reach_the_user_model_and_the_dcg_judge_only(self) -> None:
        self.assertEqual(self.asked_with("细节金丝雀"), {("user", "user"), ("judge", "dcg")})

    def test_focal_points_reach_the_user_model_and_the_dcg_judge_only(self) -> None:
        self.assertEqual(self.asked_with("焦点金丝雀"), {("user", "user"), ("judge", "dcg")})

    def test_claim_texts_reach_the_extraction_judge_only(self) -> None:
        self.assertEqual(self.asked_with("请求金丝雀"), {("judge", "extraction")})

    def test_no_prompt_depends_on_a_gold_verdict(self) -> None:
        asked: list[list[tuple[RoleName, str]]] = []
        for verdict in ("支持", "部分支持", "驳回"):
            self.write_cases(
                [make_case("1", result_dict={"甲": verdict, "乙": "驳回" if verdict == "支持" else "支持"})]
            )
            asked.append(self.run_all("--run-id", f"run-{len(asked)}").asked)
        self.assertEqual(asked[0], asked[1])
        self.assertEqual(asked[0], asked[2])


class OddTexts(Folder):
    cases = (
        make_case(
            ODD,
            focal_point=ODD,
            key_details=ODD,
            result_dict={ODD: "支持"},
            complete_consultation=history(ODD),
            underspecified_consultation=history(ODD),
        ),
    )

    def test_odd_texts_come_through_prompts_and_files_unchanged(self) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            return f"请问{ODD}" if role != "judge" else str(sensible(role, prompt))

        provider = self.run_all(answer=answer)
        self.assertTrue(all(ODD in prompt for _, prompt in provider.asked))
        for name in ("a1", "lca", "interaction", "force_ask", "dcg", "ljp_direct", "ljp_gold", "ljp_interaction"):
            (record,) = self.records(name)
            self.assertEqual(record["case_number"], ODD, name)
        (record,) = self.records("interaction")
        self.assertEqual(record["underspecified_history"], history(ODD))
        self.assertEqual(record["rounds"][0]["response"], f"请问{ODD}")
        self.assertEqual(record["rounds"][0]["user_reply"], f"请问{ODD}")
        self.assertEqual(self.records("ljp_gold")[0]["claims"], [ODD])

    def test_the_input_case_is_never_changed(self) -> None:
        before = self.data_file.read_bytes()
        self.run_all()
        self.assertEqual(self.records("a1")[0]["underspecified_history"], history(ODD))
        self.assertEqual(self.data_file.read_bytes(), before)


class Resuming(Folder):
    """A failure in the middle of each file, then the same command again."""

    def failing(self, script: str, role: RoleName, nth: int, failure: Exception) -> list[str]:
        """Let the nth call of a role fail, then resume; the case numbers asked about, in order, over both."""
        seen = {"n": 0}

        def answer(asked: RoleName, prompt: str) -> str:
            seen["n"] += asked == role
            if asked == role and seen["n"] == nth:
                raise failure
            return str(sensible(asked, prompt))

        provider = Provider(answer)
        with self.assertRaises(type(failure)):
            self.stage(script, provider.connect)
        before = self.snapshot()
        self.stage(script, provider.connect)
        for name, bytes_before in before.items():
            if name.endswith(".open.jsonl"):
                self.assertNotIn(name, self.snapshot())
                continue
            self.assertTrue(self.snapshot()[name].startswith(bytes_before), f"{name} was rewritten")
        return [prompt.split("案")[1][0] for asked, prompt in provider.asked if asked == role and "案" in prompt]

    def test_each_generation_stage_asks_only_the_interrupted_call_again(self) -> None:
        failure = ProviderError("down")
        asked = self.failing("LexAwN_gen.py", "evaluated", 4, failure)
        self.assertEqual(asked[:7], list("1122233"[:7]))  # two answers a case; the second of case 2 failed
        self.assertEqual(self.failing("eval_DCG.py", "user", 2, failure), list("1223"))
        self.assertEqual(self.failing("eval_LJP_direct.py", "evaluated", 2, failure), list("1223"))
        self.assertEqual(self.failing("eval_LJP_gold.py", "evaluated", 3, failure), list("1233"))

    def test_an_exception_that_nobody_foresaw_leaves_no_record_either(self) -> None:
        odd = RuntimeError("猫踩了键盘")
        for script, role in (("eval_LJP_direct.py", "evaluated"), ("eval_DCG.py", "user")):
            with self.subTest(role):
                self.assertEqual(self.failing(script, cast(RoleName, role), 2, odd), list("1223"))
        for path, raw in self.snapshot().items():
            self.assertNotIn("猫踩了键盘".encode(), raw, path)

    def test_each_judging_step_asks_only_the_interrupted_case_again(self) -> None:
        for script, calls in (("eval_LJP_direct.py", 3), ("eval_LJP_gold.py", 3), ("eval_DCG.py", 6)):
            with self.subTest(script):
                provider = Provider(sensible)
                left = {"judge": 2}

                def failing(role: RoleName, prompt: str, left: dict[str, int] = left) -> str:
                    left["judge"] -= role == "judge"
                    if left["judge"] < 0:
                        raise ModelOutputError("unreadable")
                    return str(sensible(role, prompt))

                provider.answer = failing
                with self.assertRaises(ModelOutputError):
                    self.stage(script, provider.connect)
                provider.answer = sensible
                provider.asked.clear()
                self.stage(script, provider.connect)
                done_before = 2 // (calls // 3)
                self.assertEqual(len(provider.prompts("judge")), calls - done_before * (calls // 3))
                self.assertEqual(provider.prompts("evaluated"), [])

    def test_a_finished_command_asks_nothing_and_changes_no_byte(self) -> None:
        self.run_all()
        before = self.snapshot()
        for script in STAGES:
            self.play(script)
        self.assertEqual(self.snapshot(), before)

    def test_an_interrupted_run_ends_with_the_records_of_an_uninterrupted_one(self) -> None:
        self.run_all("--run-id", "whole")

        def strip(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [without_calls(record) for record in records]

        def flaky(role: RoleName, prompt: str) -> str:
            tried[prompt] = tried.get(prompt, 0) + 1
            if tried[prompt] == 1:
                raise ProviderError("once")
            return str(sensible(role, prompt))

        tried: dict[str, int] = {}
        provider = Provider(flaky)
        for script in SIX_COMMANDS:
            while True:
                try:
                    self.stage(script, provider.connect, "--run-id", "torn")
                    break
                except ProviderError:
                    continue
        for name in ("a1", "lca", "interaction", "force_ask", "dcg", "ljp_direct", "ljp_gold", "ljp_interaction"):
            self.assertEqual(strip(self.records(name, "torn")), strip(self.records(name, "whole")), name)

    def test_an_error_names_case_file_and_role_and_leaves_nothing_for_the_case(self) -> None:
        with self.assertRaises(ModelOutputError) as caught:
            self.play("eval_LJP_gold.py", evaluated=["判1", "判2", "判3"], judge=["说不好"] * 4)
        for part in ("eval_LJP_gold.py, case 1, LJP_gold.jsonl: judge model", "说不好"):
            self.assertIn(part, str(caught.exception))
        self.assertEqual([path for path in self.snapshot() if "LJP_gold" in path], [])

    def test_malformed_twice_and_then_good_uses_the_third_reply_for_every_judge(self) -> None:
        self.data_file = self.write_cases([make_case("1")])
        bad = ["不是", '{"label": "也许"}']
        self.play("LexAwN_gen.py", evaluated=["完", "判"], judge=[*bad, JUDGE, *bad, JUDGE])
        self.play("eval_DCG.py", evaluated=["问1", "问2"], user=["答"], judge=[*bad, NO, *bad, YES])
        self.play("eval_LJP_gold.py", evaluated=["判"], judge=[*bad, verdicts("驳回")])
        self.assertEqual(self.records("ljp_gold")[0]["verdicts"], ["驳回"])


class Wiring(Folder):
    def test_eval_ljp_does_what_the_three_do_and_refuses_first_without_an_interaction(self) -> None:
        with self.assertRaises(CheckpointError) as caught:
            self.play("eval_LJP.py")
        self.assertIn("LexAwN_gen.py", str(caught.exception))
        self.run_all("--run-id", "single")
        for script in ("LexAwN_gen.py", "eval_DCG.py", "eval_LJP.py"):
            self.stage(script, Provider(sensible).connect, "--run-id", "joint")
        for name in ("ljp_direct", "ljp_gold", "ljp_interaction"):
            shown = [[r["verdicts"] for r in self.records(name, run_id)] for run_id in ("single", "joint")]
            self.assertEqual(*shown)

    def test_a_later_stage_refuses_before_any_call_while_an_earlier_one_is_incomplete(self) -> None:
        for script in ("eval_LCA.py", "eval_LJP_interaction.py"):
            with self.subTest(script), self.assertRaises(CheckpointError):
                self.play(script)

    def test_eval_lca_labels_what_lexawn_gen_left_unlabelled(self) -> None:
        with self.assertRaises(LexPilotError):
            self.play("LexAwN_gen.py", evaluated=["答"] * 6, judge=[ProviderError("down")])
        self.play("eval_LCA.py", judge=[JUDGE] * 6)
        self.assertEqual(len(self.records("lca")), 3)

    def test_a_limit_selects_the_same_first_cases_in_every_stage(self) -> None:
        self.run_all("--limit", "2")
        for name in ("a1", "lca", "interaction", "force_ask", "dcg", "ljp_direct", "ljp_gold", "ljp_interaction"):
            self.assertEqual([record["case_number"] for record in self.records(name)], ["1", "2"], name)

    def test_records_are_the_same_at_any_parallelism(self) -> None:
        self.data_file = self.write_cases([make_case(str(n)) for n in range(20)])
        self.run_all()
        before = self.snapshot()
        for path in self.snapshot():
            (self.root / "out" / path).unlink()
        provider = Provider(sensible)
        for script in SIX_COMMANDS:
            self.stage(script, provider.connect, "--parallel", "8")
        after = self.snapshot()
        self.assertEqual(before.keys(), after.keys())
        for name in before:
            if name.endswith("jsonl"):
                one, other = (
                    sorted((without_calls(json.loads(line)) for line in files[name].splitlines()), key=str)
                    for files in (before, after)
                )
                self.assertEqual(one, other, name)

    def test_a_client_that_cannot_be_made_shows_before_any_call(self) -> None:
        provider = Provider(sensible)

        def connect(role: Any) -> Any:
            if role.name == "judge":
                raise SettingsError("no key for the judge")
            return provider.connect(role)

        with self.assertRaises(SettingsError):
            self.stage("LexAwN_gen.py", connect)
        self.assertEqual(provider.asked, [])
        self.assertEqual(self.snapshot(), {})

    def test_a_stage_says_how_many_cases_are_done_and_to_do(self) -> None:
        self.play(
            "eval_LJP_gold.py",
            "--limit",
            "1",
            evaluated=["判"],
            judge=[verdicts("支持")],
        )
        said = self.stage("eval_LJP_gold.py", Provider(sensible).connect, "--limit", "1")
        self.assertIn("a1_force_judge.jsonl: 1 cases, 1 done, 0 to do", said)


if __name__ == "__main__":
    unittest.main()
