"""The printed numbers: exact against arithmetic, against scikit-learn, and from record files to table."""

import contextlib
import io
import json
import math
import os
import re
import unittest
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from fakes import ASK, JUDGE, Folder, make_case, sensible, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

import scores
import show_results
from common import load_dataset
from errors import CheckpointError, SettingsError
from metrics import (
    METRICS,
    Pair,
    case_sums,
    confusion,
    dcg_figures,
    drawn_totals,
    draws,
    f1,
    interval,
    lca_figures,
    ljp_figures,
    replicated,
    standard_error,
    wilson,
)
from records import VERDICTS, RoleName
from show_results import number, summary
from texts import padded

MANY = settings(max_examples=200, deadline=None, database=None)


def ljp(gold: list[int], predicted: list[int]) -> dict[str, Fraction | None]:
    return ljp_figures(confusion(list(zip(gold, predicted, strict=True)), 3))


def lca(asked_on_complete: list[int], asked_on_underspecified: list[int]) -> dict[str, Fraction | None]:
    pairs = [*((0, asked) for asked in asked_on_complete), *((1, asked) for asked in asked_on_underspecified)]
    return lca_figures(confusion(pairs, 2))


class ReferenceValues(unittest.TestCase):
    def test_fixture_a_of_the_statistics_page(self) -> None:
        found = ljp([0, 1, 2, 2, 2, 0, 1, 0], [0, 2, 2, 1, 2, 0, 1, 2])
        self.assertEqual(found, {"qwk": Fraction(1, 2), "accuracy": Fraction(5, 8)})

    def test_fixture_b_of_the_statistics_page(self) -> None:
        found = lca([0, 1, 0, 0, 1, 0], [1, 1, 0, 1, 0, 1])
        f1_u = Fraction(2 * 4, 2 * 4 + 2 + 2)  # TP 4, FP 2, FN 2
        f1_c = Fraction(2 * 4, 2 * 4 + 2 + 2)  # TN 4
        self.assertEqual(found, {"macro_f1": (f1_u + f1_c) / 2, "acc_c": Fraction(4, 6), "acc_u": Fraction(4, 6)})

    def test_always_asking_and_always_answering_score_a_third_each(self) -> None:
        asking, answering = lca([1] * 9, [1] * 9), lca([0] * 9, [0] * 9)
        self.assertEqual(asking, {"macro_f1": (Fraction(2, 3) + 0) / 2, "acc_c": 0, "acc_u": 1})
        self.assertEqual(answering, {"macro_f1": (0 + Fraction(2, 3)) / 2, "acc_c": 1, "acc_u": 0})

    def test_a_wrong_neighbour_costs_less_than_a_wrong_extreme(self) -> None:
        gold = [0, 0, 1, 1, 2, 2]
        near = ljp(gold, [1, 0, 1, 1, 2, 2])
        self.assertEqual(near, {"qwk": 1 - Fraction(1 * 6, 42), "accuracy": Fraction(5, 6)})
        self.assertEqual(number(float(near["qwk"] or 0)), "0.8571")
        self.assertEqual(ljp(gold, [2, 0, 1, 1, 2, 2]), {"qwk": 1 - Fraction(4 * 6, 48), "accuracy": Fraction(5, 6)})

    def test_constant_verdicts_are_zero_or_undefined_without_a_warning(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(ljp([1, 1, 1], [0, 1, 2])["qwk"], 0)
            self.assertEqual(ljp([1, 1, 1], [0, 0, 0])["qwk"], 0)
            self.assertEqual(ljp([1, 1, 1], [1, 1, 1]), {"qwk": None, "accuracy": 1})
            self.assertEqual(lca([0], [0])["macro_f1"], Fraction(1, 3))

    def test_an_f1_with_nothing_to_count_is_zero(self) -> None:
        self.assertEqual(f1(0, 0, 0), 0)

    def test_the_dcg_rate_is_the_share_of_successes(self) -> None:
        self.assertEqual(dcg_figures([[0, 0], [1, 2]]), {"success_rate": Fraction(2, 3)})
        self.assertEqual(dcg_figures([[0, 0], [0, 1]]), {"success_rate": 1})

    def test_mean_and_sample_sd_over_five_runs(self) -> None:
        found = summary({f"run{n}": Fraction(n + 4, 10) for n in range(1, 6)})
        self.assertEqual((found["mean"], number(found["sd"])), (0.7, "0.1581"))
        self.assertEqual(found["sd"], (((-0.2) ** 2 + (-0.1) ** 2 + 0.1**2 + 0.2**2) / (5 - 1)) ** 0.5)
        self.assertEqual(found["per_run"], {"run1": 0.5, "run2": 0.6, "run3": 0.7, "run4": 0.8, "run5": 0.9})

    def test_one_run_has_no_sd_and_an_undefined_run_leaves_no_mean(self) -> None:
        self.assertEqual(summary({"run1": Fraction(1, 2)}), {"mean": 0.5, "sd": None, "per_run": {"run1": 0.5}})
        undefined = summary({"run1": Fraction(1, 2), "run2": None})
        self.assertEqual(undefined, {"mean": None, "sd": None, "per_run": {"run1": 0.5, "run2": None}})

    def test_equal_runs_have_an_sd_of_exactly_zero(self) -> None:
        self.assertEqual(summary({f"run{n}": Fraction(1, 3) for n in range(5)})["sd"], 0.0)


class AgainstScikitLearn(unittest.TestCase):
    pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60)

    @MANY
    @given(pairs)
    def test_qwk_and_accuracy(self, pairs: list[Pair]) -> None:
        gold, predicted = zip(*pairs, strict=True)
        found = ljp_figures(confusion(pairs, 3))
        self.assertEqual(float(found["accuracy"] or 0), accuracy_score(gold, predicted))
        if found["qwk"] is None:
            self.assertEqual(len({*gold, *predicted}), 1)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # scikit-learn warns where one side is constant
                theirs = cohen_kappa_score(gold, predicted, labels=[0, 1, 2], weights="quadratic")
            self.assertAlmostEqual(float(found["qwk"]), theirs, places=12)

    @MANY
    @given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
    def test_macro_f1(self, asked: list[tuple[int, int]]) -> None:
        complete, underspecified = zip(*asked, strict=True)
        truth, predicted = [0] * len(asked) + [1] * len(asked), [*complete, *underspecified]
        theirs = f1_score(truth, predicted, labels=[0, 1], average="macro", zero_division=0)
        self.assertAlmostEqual(float(lca(list(complete), list(underspecified))["macro_f1"] or 0), theirs, places=12)

    @MANY
    @given(pairs)
    def test_the_confusion_matrix_counts_every_pair_once(self, pairs: list[Pair]) -> None:
        counts = confusion(pairs, 3)
        self.assertEqual([[pairs.count((i, j)) for j in range(3)] for i in range(3)], counts)


def abs_of(numbers: Sequence[int]) -> list[int]:
    return [abs(number) for number in numbers]


def dying(parent: int, numbers: Sequence[int]) -> list[int]:
    """Ends every process but the parent at once."""
    if os.getpid() != parent:
        os._exit(1)
    return abs_of(numbers)


def dying_but(parent: int) -> Callable[[Sequence[int]], list[int]]:
    return partial(dying, parent)


class Shown(Folder):
    def groups(self, *more: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.show("--format", "json", *more))["groups"]
        return found


class FromFiles(Shown):
    cases = (
        make_case("1", result_dict={"甲": "支持", "乙": "驳回"}),
        make_case("2", cause_of_action="离婚纠纷", result_dict={"甲": "部分支持"}),
        make_case("3", cause_of_action="离婚纠纷", result_dict={"甲": "驳回"}),
    )

    def play_gold(self, run_id: str, *given: str, more: Sequence[str] = ()) -> None:
        """A Gold-Standard run of the three cases with the four verdicts given."""
        first, second, *others = given
        replies = [verdicts(first, second), *map(verdicts, others)]
        self.play("eval_LJP_gold.py", "--run-id", run_id, *more, evaluated=["判"] * 3, judge=replies)

    def test_the_printed_object_has_the_documented_shape(self) -> None:
        self.run_all()
        (group,) = self.groups()
        self.assertEqual(
            list(group),
            [
                "model",
                "user_model",
                "judge_model",
                "simulated",
                "dataset_sha256",
                "cases",
                "runs",
                "settings",
                "tasks",
                "recovery",
            ],
        )
        self.assertEqual((group["model"], group["cases"], group["runs"]), ("m", 3, ["run1"]))
        metrics = {name: list(task["overall"]) for name, task in group["tasks"].items()}
        ljp_metrics = ["qwk", "accuracy", "all_right"]
        self.assertEqual(metrics, {
            "LCA": ["macro_f1", "acc_c", "acc_u"], "DCG": ["success_rate", "first_hit", "second_hit"],
            "LJP_direct": ljp_metrics, "LJP_gold": ljp_metrics,
            "LJP_interaction": [*ljp_metrics, "questions", "judged"],
        })  # fmt: skip
        classes = ["婚姻家庭、继承纠纷", "合同、准合同纠纷"]  # in the order of categories.py
        for name, task in group["tasks"].items():
            self.assertEqual(list(task["by_class"]), classes, name)
        self.assertEqual(
            group["tasks"]["LCA"]["n"], {"overall": 3, "by_class": dict(zip(classes, (2, 1), strict=True))}
        )
        claims = {"overall": 4, "by_class": dict(zip(classes, (2, 2), strict=True))}
        self.assertEqual(group["tasks"]["LJP_gold"]["n"], claims)

    def test_a_run_with_a_simulated_model_in_any_role_is_marked(self) -> None:
        self.play_gold("run1", "支持", "驳回", "部分支持", "驳回")
        (group,) = self.groups()
        self.assertEqual(group["simulated"], [])
        self.assertNotIn("SIMULATED", self.show())
        replies = [verdicts("支持", "驳回"), verdicts("驳回"), verdicts("驳回")]
        names = ["--run-id", "run2", "--user-model", "simulated/user", "--judge-model", "simulated/judge"]
        self.play("eval_LJP_gold.py", *names, evaluated=["判"] * 3, judge=replies)
        self.assertEqual([group["simulated"] for group in self.groups()], [[], ["user", "judge"]])
        self.assertEqual(self.show().count("SIMULATED        user, judge: "), 1)

    def test_figures_are_computed_in_each_run_and_class_before_they_are_averaged(self) -> None:
        self.play_gold("run1", "支持", "驳回", "部分支持", "驳回")
        self.play_gold("run2", "驳回", "支持", "部分支持", "部分支持")
        (group,) = self.groups()
        task = group["tasks"]["LJP_gold"]
        gold = [0, 2, 1, 2]
        second = ljp(gold, [2, 0, 1, 1])["qwk"]
        by_chance = sum((g - p) ** 2 for g in gold for p in (2, 0, 1, 1))  # 6 + 6 + 2 + 6
        self.assertEqual(second, 1 - Fraction((4 + 4 + 0 + 1) * 4, by_chance))
        self.assertEqual(task["overall"]["qwk"]["per_run"], {"run1": 1.0, "run2": float(second or 0)})
        self.assertEqual(task["overall"]["qwk"]["mean"], float((1 + (second or 0)) / 2))
        contract = task["by_class"]["合同、准合同纠纷"]
        self.assertEqual(contract["qwk"]["per_run"], {"run1": 1.0, "run2": -1.0})  # 支持/驳回 the wrong way round
        self.assertEqual(contract["qwk"]["mean"], 0.0)
        family = task["by_class"]["婚姻家庭、继承纠纷"]
        self.assertEqual(family["accuracy"]["per_run"], {"run1": 1.0, "run2": 0.5})

    def test_an_undefined_run_is_said_in_the_table_and_null_in_the_object(self) -> None:
        self.data_file = self.write_cases([make_case("1"), make_case("2")])
        for run_id, second in (("run1", "部分支持"), ("run2", "驳回")):
            replies = [verdicts("部分支持"), verdicts(second)]
            self.play("eval_LJP_gold.py", "--run-id", run_id, evaluated=["判"] * 2, judge=replies)
        (group,) = self.groups()
        found = group["tasks"]["LJP_gold"]["overall"]["qwk"]
        undefined = {"mean": None, "sd": None, "interval": None, "se": None, "run_share": None}
        self.assertEqual(found, {**undefined, "per_run": {"run1": None, "run2": 0.0}})
        self.assertRegex(self.show(), r"qwk +undefined +0\.0000 +undefined +undefined +-\* +-  \(1 of 2 runs defined\)")

    def test_lca_is_scored_from_the_labels(self) -> None:
        labels = [JUDGE, ASK, ASK, ASK, JUDGE, JUDGE]  # complete, underspecified for each case
        self.play(
            "LexAwN_gen.py",
            evaluated=["答"] * 6 + ["判"] * 2,
            judge=[*labels, JUDGE, JUDGE],
            user=["答1", "答1"],
        )
        (group,) = self.groups()
        overall = group["tasks"]["LCA"]["overall"]
        expected = lca([0, 1, 0], [1, 1, 0])
        self.assertEqual({metric: found["mean"] for metric, found in overall.items()}, {
            metric: float(value or 0) for metric, value in expected.items()
        })  # fmt: skip
        self.assertEqual(list(group["tasks"]), ["LCA"])  # the interaction was held, but not evaluated: not started

    def test_runs_that_differ_in_a_setting_are_separate_groups(self) -> None:
        for run_id, more in (("a", ()), ("b", ()), ("c", ("--judge-model", "other")), ("d", ("--limit", "2"))):
            self.run_all("--run-id", run_id, *more)
        self.assertEqual([group["runs"] for group in self.groups()], [["a", "b"], ["c"], ["d"]])
        shown = self.show()
        self.assertIn("unlike group 1: models judge is other, not DeepSeek-R1", shown)
        self.assertIn("unlike group 1: cases is 2 (1, 2, …), not 3 (1, 2, 3, …)", shown)

    def test_every_setting_of_the_experiment_separates(self) -> None:
        for run_id, more in (
            ("a", ()),
            ("b", ("--temperature", "0.2")),
            ("c", ("--max-tokens", "9")),
            ("d", ("--judge-params", '{"seed": 1}')),
        ):
            self.run_all("--run-id", run_id, *more)
        self.assertEqual([group["runs"] for group in self.groups()], [["a"], ["b"], ["c"], ["d"]])
        shown = self.show()
        for told in ("temperature is 0.2, not 0.7", "max_tokens is 9, not 8192", "params judge is {'seed': 1}, not {}"):
            self.assertIn(f"  unlike group 1: {told}", shown)
        self.assertIn('judge with {"seed": 1}', shown)

    def test_mean_and_sd_stand_in_their_columns_overall_and_by_class(self) -> None:
        claims = {f"请求{n}": "支持" for n in range(10)}
        cases = [make_case("1", result_dict=claims), make_case("2", cause_of_action="离婚纠纷", result_dict=claims)]
        self.data_file = self.write_cases(cases)
        for n in range(5, 10):
            reply = verdicts(*["支持"] * n, *["驳回"] * (10 - n))
            self.play("eval_LJP_gold.py", "--run-id", f"run{n}", evaluated=["判"] * 2, judge=[reply] * 2)
        row = r"accuracy +0\.5000 +0\.6000 +0\.7000 +0\.8000 +0\.9000 +0\.7000 +0\.1581\n"
        self.assertEqual(len(re.findall(row, self.show("--no-intervals"))), 1 + 2)

    def test_runs_stand_in_natural_order(self) -> None:
        for run_id in ("run10", "run2", "run1"):
            self.play_gold(run_id, *["驳回"] * 4)
        self.assertEqual(self.groups()[0]["runs"], ["run1", "run2", "run10"])

    def test_a_task_begun_and_not_finished_is_an_error_that_names_file_and_command(self) -> None:
        def answer(role: RoleName, prompt: str) -> str:
            if role == "judge":
                raise SettingsError("stop")
            return str(sensible(role, prompt))

        with self.assertRaises(SettingsError):
            self.run_all(answer=answer)
        with self.assertRaisesRegex(
            CheckpointError, r"LCA of run1 .*LCA_results\.jsonl: lacks 3 of 3 .* python eval_LCA\.py"
        ):
            self.show()

    def test_a_task_never_started_is_shown_as_absent(self) -> None:
        self.play_gold("run1", *["驳回"] * 4)
        self.assertEqual(list(self.groups()[0]["tasks"]), ["LJP_gold"])
        self.assertIn("DCG: not started", self.show())

    def test_a_task_that_one_of_two_runs_lacks_counts_the_run_that_has_it(self) -> None:
        self.run_all("--run-id", "run1")
        self.play_gold("run2", *["驳回"] * 4)
        task = self.groups()[0]["tasks"]["DCG"]
        self.assertEqual(list(task["overall"]["success_rate"]["per_run"]), ["run1"])
        self.assertIn("of 2 runs, 1 have this task", self.show())

    def test_runs_without_any_difference_are_pointed_out(self) -> None:
        self.play_gold("run1", *["驳回"] * 4)
        self.assertNotIn("does the provider sample", self.show())
        self.play_gold("run2", *["驳回"] * 4)
        self.assertEqual(self.show().count("does the provider sample"), 1)
        self.play_gold("run3", *["支持"] * 4)
        self.assertNotIn("does the provider sample", self.show())

    def test_no_runs_at_all_is_said_and_is_no_error(self) -> None:
        self.assertRegex(self.show(), r"\ANo runs to show below .*runs\.\n\Z")
        self.assertEqual(self.groups(), [])

    def test_several_processes_read_what_one_reads(self) -> None:
        for n, second in enumerate(("支持", "驳回", "部分支持", "驳回", "支持")):
            self.play_gold(f"run{n}", "支持", second, "部分支持", "驳回")
        hit, miss = (json.dumps({"reason": "", "label": label}, ensure_ascii=False) for label in ("是", "否"))
        self.play("eval_DCG.py", "--run-id", "run3", evaluated=["问"] * 6, user=["答"] * 3, judge=[hit, miss] * 3)
        root, cases = self.root / "out", {case.number: case for case in load_dataset(self.data_file).cases}
        runs = [*scores.find_runs(root, cases, None, None)]
        alone = scores.all_scores(root, runs, cases, 1)
        self.assertEqual([[name for name, found in one.items() if found] for one in alone], [
            ["LJP_gold"], ["LJP_gold"], ["LJP_gold"], ["DCG", "LJP_gold"], ["LJP_gold"],
        ])  # fmt: skip
        for processors in (2, 3):
            self.assertEqual(scores.all_scores(root, runs, cases, processors), alone)
        self.play_gold("other", "支持", "驳回", "驳回", "支持", more=("--temperature", "0.1"))
        groups = scores.comparable([*scores.find_runs(root, cases, None, None)])
        sampling = {"replicates": 200, "seed": 0}
        once = show_results.all_results(root, groups, cases, sampling, None)
        self.assertEqual([found["runs"] for found in once], [["other"], ["run0", "run1", "run2", "run3", "run4"]])
        for processors in (1, 2):  # with one for two groups or more, each is read and counted as a whole
            self.assertEqual(show_results.all_results(root, groups, cases, sampling, processors), once)
        self.assertEqual(scores.in_processes(abs_of, [-1, 2, -3], 2), [1, 2, 3])
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(scores.in_processes(dying_but(os.getpid()), [-1, 2, -3], 2), [1, 2, 3])
        for run_id in ("run1", "run3"):
            self.file("ljp_gold", run_id).write_bytes(b"{}\n")
        for known in (None, 1, 2):
            with self.assertRaisesRegex(CheckpointError, r"LJP_gold of run1 .*run1.*LJP_gold\.jsonl:1: "):
                scores.all_scores(root, runs, cases, known)
            with self.assertRaisesRegex(CheckpointError, r"LJP_gold of run1 .*run1.*LJP_gold\.jsonl:1: "):
                show_results.all_results(root, groups, cases, sampling, known)

    def test_options_select(self) -> None:
        self.run_all("--run-id", "run1")
        self.run_all("--run-id", "run2", "--model", "n")
        self.assertEqual([group["model"] for group in self.groups()], ["m", "n"])
        self.assertEqual([group["model"] for group in self.groups("--model", "n")], ["n"])
        self.assertEqual([group["model"] for group in self.groups("--run-id", "run1")], ["m"])
        self.assertEqual(self.groups("--run-id", "run3"), [])
        self.assertRegex(self.show("--run-id", "run3"), r"; there are: run1 of m-\w{8}, run2 of n-\w{8}\n")

    def test_an_output_root_that_is_no_folder_is_an_error(self) -> None:
        (self.root / "out").write_bytes(b"")
        with self.assertRaisesRegex(SettingsError, "out: not a folder"):
            self.show()

    def test_runs_of_another_data_file_are_named_and_never_scored_with_this_one(self) -> None:
        self.run_all()
        mine = self.data_file
        self.data_file = self.write_cases(self.cases[:2], "other.json")
        with self.assertRaisesRegex(SettingsError, "run1"):
            self.show()
        self.run_all("--run-id", "other")
        self.assertEqual([group["runs"] for group in self.groups()], [["other"]])
        self.data_file = mine
        self.assertEqual([group["runs"] for group in self.groups()], [["run1"]])


class OverCases(Shown):
    """Two runs of the Gold-Standard setup over 32 cases of one claim each, half of them of either class."""

    cases = tuple(
        make_case(str(n), cause_of_action=("民间借贷纠纷", "离婚纠纷")[n % 2], result_dict={"甲": VERDICTS[n % 3]})
        for n in range(32)
    )
    ORDER = [*range(1, 32, 2), *range(0, 32, 2)]  # by class, as in categories.py: family, contract

    def predicted(self, run: int) -> list[int]:
        return [(n + (n % (run + 3) == 0)) % 3 for n in range(32)]

    def setUp(self) -> None:
        super().setUp()
        for run in (1, 2):
            replies = [verdicts(VERDICTS[given]) for given in self.predicted(run)]
            self.play("eval_LJP_gold.py", "--run-id", f"run{run}", evaluated=["判"] * 32, judge=replies)

    def sums(self) -> Any:
        return np.array(
            [[case_sums([(n % 3, self.predicted(run)[n])]) for n in self.ORDER] for run in (1, 2)], dtype=float
        )

    def test_intervals_are_those_of_the_cases_drawn_within_their_causes(self) -> None:
        found = self.groups()[0]["tasks"]["LJP_gold"]
        drawn = draws([n % 2 for n in self.ORDER], 10_000, 0)
        for scope, part in ((found["overall"], slice(0, 32)), (found["by_class"]["合同、准合同纠纷"], slice(16, 32))):
            sums = self.sums()[:, part]
            span = interval(replicated(METRICS["qwk"], drawn_totals(sums, drawn[:, part])))
            np.testing.assert_allclose(scope["qwk"]["interval"], span or (), atol=1e-12)
            self.assertAlmostEqual(scope["qwk"]["se"], standard_error(METRICS["qwk"], sums), places=12)

    def test_a_shares_interval_and_the_runs_part_in_its_error(self) -> None:
        found = self.groups()[0]["tasks"]["LJP_gold"]["overall"]["accuracy"]
        right = [[self.predicted(run)[n] == n % 3 for n in range(32)] for run in (1, 2)]
        self.assertEqual(found["per_run"], {"run1": 24 / 32, "run2": 25 / 32})  # every fourth, every fifth is wrong
        mean = (24 + 25) / 64
        by_case = [(one + other) / 2 - mean for one, other in zip(*right, strict=True)]
        se = math.sqrt(32 / 31 * sum(residual**2 for residual in by_case)) / 32
        self.assertAlmostEqual(found["se"], se, places=12)
        np.testing.assert_allclose(found["interval"], wilson(mean, mean * (1 - mean) / se**2), atol=1e-12)
        self.assertAlmostEqual(
            found["run_share"], (1 / 32) ** 2 / 2 / 2 / se**2, places=12
        )  # SD² is half the square of 1/32

    def test_the_table_marks_what_rests_on_fewer_than_30_cases(self) -> None:
        shown = self.show()
        rows = [line for line in shown.split("\n") if re.search(r"  accuracy  |  qwk  ", line)]
        self.assertEqual(
            [re.search(r"\[\d\.\d{4}, \d\.\d{4}\](\*?) +\d+%$", row) is not None for row in rows], [True] * 6
        )
        self.assertEqual(["*" in row for row in rows], [False] * 2 + [True] * 4)
        self.assertEqual(shown.count("*: of fewer than 30 cases, an indication only."), 1)
        self.assertIn("percentiles of 10,000 draws of the cases within their causes (seed 0)", shown)

    def test_draws_are_repeatable_and_can_be_changed_or_left_out(self) -> None:
        self.assertEqual(self.show("--format", "json"), self.show("--format", "json"))
        usual, other = (self.groups(*more)[0]["tasks"]["LJP_gold"]["overall"] for more in ((), ("--seed", "1")))
        self.assertNotEqual(usual["qwk"].pop("interval"), other["qwk"].pop("interval"))
        self.assertEqual(usual, other)  # a share's interval needs no draws
        few = json.loads(self.show("--format", "json", "--replicates", "200"))
        self.assertEqual(few["sampling"], {"replicates": 200, "seed": 0, "level": 0.95})
        bare = json.loads(self.show("--format", "json", "--no-intervals"))
        self.assertEqual(list(bare), ["groups"])
        self.assertEqual(list(bare["groups"][0]["tasks"]["LJP_gold"]["overall"]["qwk"]), ["mean", "sd", "per_run"])
        self.assertNotIn("95 %", self.show("--no-intervals"))

    def test_too_few_replicates_are_refused(self) -> None:
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            show_results.main(["--replicates", "99"])
        self.assertIn("'99' is not a whole number of at least 100", said.getvalue())

    def test_what_asking_brings_back_needs_all_three_setups(self) -> None:
        self.assertNotIn("recovery", self.groups()[0])
        self.assertNotIn("What asking brings back", self.show())


class Recovered(unittest.TestCase):
    def sample(self, wrong: int) -> show_results.Sample:
        """Of 40 cases the first so many are wrong."""
        sums = np.array([[case_sums([(n % 3, (n + (n < wrong)) % 3)]) for n in range(40)]], dtype=float)
        return show_results.Sample(sums, drawn_totals(sums, draws([0] * 40, 2000, 0)))

    def test_a_share_of_what_the_missing_facts_cost(self) -> None:
        found = show_results.recovered([self.sample(30), self.sample(15), self.sample(6)])["accuracy"]
        self.assertAlmostEqual(found["gain"], (30 - 15) / 40)
        self.assertAlmostEqual(found["gap"], (30 - 6) / 40)
        self.assertAlmostEqual(found["recovery"], (30 - 15) / (30 - 6))
        for name, inside in (("gain", 15 / 40), ("gap", 24 / 40), ("recovery", 15 / 24)):
            low, high = found[f"{name}_interval"]
            self.assertTrue(low < inside < high)
        told = [*show_results.recovery_text({"accuracy": found})]
        self.assertRegex(
            told[1], r"Direct 0\.3750 \[.*\], of the 0\.6000 \[.*\] between .*: a share of 0\.6250 \[0\.\d+, 0\.\d+\]$"
        )

    def test_no_share_is_given_of_what_may_be_nothing(self) -> None:
        found = show_results.recovered([self.sample(10), self.sample(9), self.sample(9)])
        self.assertEqual((found["qwk"]["recovery"], found["qwk"]["recovery_interval"]), (None, None))
        self.assertIn("no share is given", [*show_results.recovery_text(found)][1])


class Layout(unittest.TestCase):
    def test_a_chinese_character_takes_two_columns(self) -> None:
        self.assertEqual(padded("甲a", 5) + "|", "甲a  |")

    def test_zero_prints_as_zero_and_undefined_in_words(self) -> None:
        self.assertEqual([number(0.0), number(None), number(-0.25)], ["0.0000", "undefined", "-0.2500"])


if __name__ == "__main__":
    unittest.main()
