"""The plan: what intervals and tests would come to, against arithmetic and against simulation of what it foretells."""

import json
import math
import unittest

import numpy as np
from test_compare import SIZE, GoldRuns

from compare import Side
from metrics import METRICS, case_sums, standard_error
from planner import detectable_of, error_parts, half_width, plan_of, planner_text, sizes_of

STRATA = ["民间借贷纠纷", "离婚纠纷"] * 8
ACCURACY = {"LJP_gold": ["accuracy"]}


def side(model: str, *runs: list[int]) -> Side:
    """A model that is right (1) or wrong (0) in each case of each run."""
    sums = np.array([[case_sums([(1, 1 if right else 0)]) for right in run] for run in runs], dtype=float)
    return Side(model, "at home", [f"run{n}" for n in range(len(runs))], {"LJP_gold": sums})


class Plan(unittest.TestCase):
    def test_the_parts_of_an_error(self) -> None:
        one, other = [1] * 8 + [0] * 8, [1] * 10 + [0] * 6
        whole, by_runs = error_parts("accuracy", side("a", one, other).sums["LJP_gold"])
        gains = [1.0] * 8 + [0.5] * 2 + [0.0] * 6
        mean = sum(gains) / 16
        self.assertAlmostEqual(whole, 16 / 15 * sum((gain - mean) ** 2 for gain in gains) / 16**2)
        # Residuals of a case differ between the runs by the runs' means, 2/16, or in two cases by one less that.
        apart = 14 * (2 / 16) ** 2 + 2 * (1 - 2 / 16) ** 2
        self.assertAlmostEqual(by_runs or 0, apart / 2 / 16**2 / 2)

    def test_a_single_run_does_not_show_its_part(self) -> None:
        sums = side("a", [1, 0] * 8).sums["LJP_gold"]
        whole, by_runs = error_parts("accuracy", sums)
        self.assertEqual((math.sqrt(whole), by_runs), (standard_error(METRICS["accuracy"], sums), None))
        self.assertIsNone(half_width(whole, None, 1, 5))
        self.assertEqual(half_width(whole, None, 1, 1, 4), 1.96 * math.sqrt(whole / 4))

    def test_more_runs_lessen_their_part_and_more_cases_both(self) -> None:
        self.assertEqual(half_width(0.25, 0.16, 2, 2), 1.96 * 0.5)
        self.assertAlmostEqual(half_width(0.25, 0.16, 2, 8) or 0, 1.96 * math.sqrt(0.09 + 0.16 * 2 / 8))
        self.assertAlmostEqual(half_width(0.25, 0.16, 2, 2, 4) or 0, 1.96 * math.sqrt(0.25 / 4))

    def test_what_is_foretold_of_more_runs_comes_true(self) -> None:
        generator = np.random.default_rng(0)
        ready = generator.normal(0, 1, 4000)
        runs = [[int(right) for right in generator.random(4000) < 1 / (1 + np.exp(-ready))] for _ in range(20)]
        few, many = side("a", *runs[:3]).sums["LJP_gold"], side("a", *runs).sums["LJP_gold"]
        foretold = half_width(*error_parts("accuracy", few), 3, 20) or 0
        self.assertAlmostEqual(foretold / (1.96 * standard_error(METRICS["accuracy"], many)), 1, delta=0.05)

    def test_what_is_the_same_in_every_case_is_left_out(self) -> None:
        self.assertEqual([*plan_of(side("a", [1] * 16), ACCURACY)], [])
        self.assertEqual([*detectable_of([side("a", [1] * 16)], STRATA, ACCURACY)], [])

    def test_detectable_differences_of_a_pair_and_of_a_model_alone(self) -> None:
        one, other = side("a", [1] * 8 + [0] * 8), side("b", [1] * 12 + [0] * 4)
        (row,) = detectable_of([one, other], STRATA, ACCURACY)
        spread = 4 * (1 - 4 / 16) ** 2 + 12 * (4 / 16) ** 2
        error = math.sqrt(16 / 15 * spread) / 16
        self.assertEqual((row["first"], row["second"]), ("a", "b"))
        self.assertAlmostEqual(row["detectable"]["overall"]["overall"], 2.801585 * error, places=6)
        half = 2.801585 * error * math.sqrt(16 / 8)
        for kind, scopes in (("by_class", ["婚姻家庭、继承纠纷", "合同、准合同纠纷"]), ("by_cause", STRATA[:2])):
            self.assertEqual([*row["detectable"][kind]], scopes)
            for found in row["detectable"][kind].values():
                self.assertAlmostEqual(found, half, places=6)
        (alone,) = detectable_of([one], STRATA, ACCURACY)
        own = math.sqrt(16 / 15 * 16 * (1 / 2) ** 2) / 16
        self.assertIsNone(alone["second"])
        self.assertAlmostEqual(alone["detectable"]["overall"]["overall"], 2.801585 * math.sqrt(2) * own, places=6)

    def test_the_sizes_are_those_of_classes_and_causes(self) -> None:
        strata = ["民间借贷纠纷"] * 3 + ["离婚纠纷"] * 2 + ["法定继承纠纷"] * 2
        self.assertEqual(sizes_of(strata), {
            "overall": {"overall": 7},
            "by_class": {"婚姻家庭、继承纠纷": 4, "合同、准合同纠纷": 3},
            "by_cause": {"民间借贷纠纷": 3, "离婚纠纷": 2, "法定继承纠纷": 2},
        })  # fmt: skip

    def test_the_text_warns_of_rankings_by_cause(self) -> None:
        shown = "\n".join(planner_text([side("a", [1, 0] * 8, [1, 1] * 8)], STRATA, ACCURACY))
        self.assertIn("A cause has as few as 8 cases. A ranking of models in one cause is not to be trusted", shown)
        self.assertIn("a, another like it (an upper bound)", shown)
        self.assertNotIn("A cause has", "\n".join(planner_text([side("a", [1, 0] * 20)], ["离婚纠纷"] * 40, ACCURACY)))


class FromRuns(GoldRuns):
    def test_models_that_can_be_compared_are_planned_together_and_others_apart(self) -> None:
        self.gold("a", "run1", 20)
        self.gold("a", "run2", 22)
        self.gold("b", "run1", 3)
        (plan,) = json.loads(self.show("--planner", "--format", "json"))["plans"]
        self.assertEqual([row["model"] for row in plan["intervals"]], ["a", "a", "b", "b"])
        self.assertEqual([(row["first"], row["second"]) for row in plan["differences"]], [("a", "b")] * 2)
        self.assertEqual(plan["differences"][0]["detectable"].keys(), sizes_of(["离婚纠纷"] * SIZE).keys())
        self.gold("c", "run1", 9, "--temperature", "0.1")
        plans = json.loads(self.show("--planner", "--format", "json"))["plans"]
        self.assertEqual([[row["model"] for row in plan["intervals"]][0] for plan in plans], ["a", "b", "c"])
        self.assertEqual(self.show("--planner").count("half of the 95 % interval"), 3)

    def test_nothing_to_plan_from_is_said(self) -> None:
        self.assertEqual(self.show("--planner"), "No runs to plan from.\n")


if __name__ == "__main__":
    unittest.main()
