"""`show_results.py --compare`: which pairs it takes, what it counts, and what it lets one say."""

import json
import math
import unittest
from typing import Any

from fakes import Folder, make_case, verdicts

from compare import Row, adjusted, statement
from errors import SettingsError
from metrics import Difference, Interval, holm
from records import VERDICTS

SIZE = 32


class GoldRuns(Folder):
    """Models that answer the Gold-Standard setup over 32 cases of one claim each."""

    cases = tuple(make_case(str(n), result_dict={"甲": VERDICTS[n % 3]}) for n in range(SIZE))

    def gold(self, model: str, run_id: str, wrong: int, *more: str) -> None:
        """A run in which the first so many cases are wrong, by one step of the three verdicts."""
        replies = [verdicts(VERDICTS[(n + (n < wrong)) % 3]) for n in range(SIZE)]
        names = ["--model", model, "--run-id", run_id, *more]
        self.play("eval_LJP_gold.py", *names, evaluated=["判"] * SIZE, judge=replies)

    def rows(self, *models: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.show("--format", "json", "--compare", *models))["comparisons"]
        return found


class Compared(GoldRuns):
    def refused(self, *models: str) -> str:
        with self.assertRaises(SettingsError) as caught:
            self.show("--compare", *models)
        return str(caught.exception)

    def test_a_difference_stands_with_its_interval_p_and_what_may_be_said(self) -> None:
        for run_id, wrong in (("run1", 20), ("run2", 22)):
            self.gold("weak", run_id, wrong)
            self.gold("strong", run_id, wrong - 18)
        qwk, accuracy = self.rows("weak", "strong")
        self.assertEqual((qwk["metric"], accuracy["metric"], accuracy["task"]), ("qwk", "accuracy", "LJP_gold"))
        one, other = (12 + 10) / 64, (30 + 28) / 64
        self.assertEqual((accuracy["first"], accuracy["second"], accuracy["values"]), ("weak", "strong", [one, other]))
        self.assertAlmostEqual(accuracy["difference"], other - one)
        # By case: the first two and four of the 20 and 22 wrong ones are wrong in both models.
        gains = [0.0] * 2 + [0.5] * 2 + [1.0] * 16 + [0.5] * 2 + [0.0] * 10
        mean = sum(gains) / SIZE
        self.assertAlmostEqual(mean, other - one)
        se = math.sqrt(SIZE / (SIZE - 1) * sum((gain - mean) ** 2 for gain in gains)) / SIZE
        self.assertAlmostEqual(accuracy["se"], se)
        self.assertTrue(accuracy["interval"][0] < mean < accuracy["interval"][1])
        self.assertEqual(accuracy["p"], 1 / 10_001)  # no shuffle of 2^20 is likely to be as uneven
        self.assertEqual([qwk["p_holm"], accuracy["p_holm"]], holm([qwk["p"], accuracy["p"]]))
        self.assertEqual(accuracy["statement"], "strong is better on cases like these")
        there, back = accuracy, self.rows("strong", "weak")[1]
        self.assertEqual((there["difference"], there["p"]), (-back["difference"], back["p"]))
        self.assertEqual(there["statement"], back["statement"])

    def test_the_table_names_models_runs_and_what_stands_in_it(self) -> None:
        self.gold("weak", "run1", 20, "--eval-params", '{"seed": 1}')
        self.gold("strong", "run1", 2)
        self.gold("strong", "run2", 3)
        shown = self.show("--compare", "weak", "strong")
        self.assertIn('weak at https://api.openai.com/v1 with {"seed": 1}: 1 run, run1\n', shown)
        self.assertIn("strong at https://api.openai.com/v1: 2 runs, run1, run2\n", shown)
        self.assertIn("\nstrong less weak\n", shown)
        number = r"-?\d\.\d{4}"
        row = rf"LJP_gold +accuracy +0\.3750 +0\.9219 +\+0\.5469 +\[{number}, {number}\] +<0\.0001 +0\.0002  strong is better"
        self.assertRegex(shown, row)
        self.assertIn("Holm: p adjusted for the 2 rows of all pairs", shown)
        self.assertNotIn("McNemar", shown)

    def test_every_pair_of_several_models_is_compared_and_holm_counts_them_all(self) -> None:
        for model, wrong in (("a", 0), ("b", 2), ("c", 30)):
            self.gold(model, "run1", wrong)
        rows = self.rows("a", "b", "c")
        pairs = [("a", "b"), ("a", "b"), ("a", "c"), ("a", "c"), ("b", "c"), ("b", "c")]
        self.assertEqual([(row["first"], row["second"]) for row in rows], pairs)
        self.assertEqual([row["p_holm"] for row in rows], holm([row["p"] for row in rows]))
        self.assertRegex(
            rows[1]["statement"], r"\Ano difference can be told; a single test finds .* four times in five\Z"
        )

    def test_one_binary_outcome_in_one_run_is_tested_exactly(self) -> None:
        labels = {model: [json.dumps({"reason": "", "label": label}, ensure_ascii=False) for label in given]
                  for model, given in (("a", "是" * 32), ("b", "是" * 26 + "否" * 6))}  # fmt: skip
        for model, given in labels.items():
            judged = [reply for reply in given for _ in range(2)]
            self.play("eval_DCG.py", "--model", model, evaluated=["问"] * 64, user=["答"] * 32, judge=judged)
        (row,) = self.rows("a", "b")
        self.assertEqual((row["metric"], row["test"]), ("success_rate", "McNemar, exact"))
        self.assertAlmostEqual(row["p"], 2 / 2**6)
        self.assertIn("McNemar's exact p", self.show("--compare", "a", "b"))

    def test_models_without_a_common_task_are_not_compared(self) -> None:
        self.gold("a", "run1", 3)
        self.play("eval_LJP_direct.py", "--model", "b", evaluated=["判"] * SIZE, judge=[verdicts("支持")] * SIZE)
        self.assertEqual(self.rows("a", "b"), [])
        self.assertIn("no task in which both have all outcomes", self.show("--compare", "a", "b"))

    def test_pairs_that_differ_in_more_than_the_evaluated_model_are_refused_with_the_setting(self) -> None:
        self.gold("a", "run1", 3)
        self.gold("b", "run1", 3, "--judge-model", "other", "--temperature", "0.5")
        said = self.refused("a", "b")
        self.assertIn("\n  models judge: DeepSeek-R1 for a, other for b", said)
        self.assertIn("\n  temperature: 0.7 for a, 0.5 for b", said)
        self.assertNotIn("evaluated:", said)

    def test_a_model_with_several_settings_must_be_narrowed_down(self) -> None:
        self.gold("a", "run1", 3)
        self.gold("b", "run1", 3)
        self.gold("b", "run2", 3, "--eval-params", '{"seed": 1}')
        said = self.refused("a", "b")
        self.assertRegex(
            said, r"more than one choice for b \(params evaluated: \{\} or \{'seed': 1\}\); select with --run-id"
        )
        self.assertEqual(len(self.rows("a", "b", "--run-id", "run1")), 2)

    def test_a_choice_of_settings_that_the_other_model_lacks_is_none(self) -> None:
        self.gold("a", "run1", 3)
        self.gold("a", "run2", 3, "--temperature", "0.5")
        self.gold("b", "run1", 3, "--temperature", "0.5")
        self.assertIn("a at https://api.openai.com/v1: 1 run, run2\n", self.show("--compare", "a", "b"))

    def test_names_that_make_no_pair_are_refused(self) -> None:
        self.gold("a", "run1", 3)
        self.assertEqual(self.refused("a"), "--compare: name at least two models, each once")
        self.assertEqual(self.refused("a", "a"), "--compare: name at least two models, each once")
        self.assertEqual(self.refused("a", "x", "y"), "--compare: no runs of x, y; there are runs of a")


class Statements(unittest.TestCase):
    def row(self, value: float, p: float, error: float = 0.02) -> Row:
        found = Difference((0.5, 0.5 + value), value, error, Interval(value - 0.04, value + 0.04), p)
        return Row("a", "b", "DCG", "success_rate", found, "randomisation", p, 432)

    def test_what_may_be_said_follows_from_the_adjusted_p(self) -> None:
        self.assertEqual(statement(self.row(0.06, 0.01), 0.05), "b is better on cases like these")
        self.assertEqual(statement(self.row(-0.06, 0.01), 0.01), "a is better on cases like these")
        rest = f"; a single test finds a true difference of {2.801585 * 0.02:.4f} four times in five"
        self.assertEqual(
            statement(self.row(0.06, 0.01), 0.051), f"a hint that does not outlast the number of comparisons{rest}"
        )
        self.assertEqual(statement(self.row(0.06, 0.06), 0.06), f"no difference can be told{rest}")
        self.assertEqual(statement(self.row(0, 1, 0), 1), "no difference can be told")
        self.assertEqual(statement(self.row(0, math.nan), math.nan), "the metric is undefined; nothing can be said")

    def test_undefined_rows_do_not_count_in_the_adjustment(self) -> None:
        found = adjusted([self.row(0, 0.02), self.row(0, math.nan), self.row(0, 0.5)])
        self.assertEqual([found[0], found[2]], holm([0.02, 0.5]))
        self.assertTrue(math.isnan(found[1]))


if __name__ == "__main__":
    unittest.main()
