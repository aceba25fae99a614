"""Results for spreadsheets and papers: every figure once, the same bytes again, and bold only where a test allows it."""

import csv
import io
import json
import re
import unittest
from typing import Any

from test_compare import SIZE, GoldRuns

import scores
from errors import SettingsError
from exports import COLUMNS, KEYS, escaped, latex, markdown, tidy_csv


def table_of(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


class Exports(GoldRuns):
    def setUp(self) -> None:
        super().setUp()
        for run_id, wrong in (("run1", 20), ("run2", 22)):
            self.gold("weak", run_id, wrong)
            self.gold("strong", run_id, wrong - 18)

    def test_csv_has_every_figure_of_the_object_once(self) -> None:
        groups = json.loads(self.show("--format", "json"))["groups"]
        rows = table_of(self.show("--format", "csv"))
        self.assertEqual({tuple(row) for row in rows}, {KEYS})
        keys = ("group", "task", "scope", "metric", "statistic", "run")
        by_key = {tuple(row[key] for key in keys): row for row in rows}
        self.assertEqual(len(by_key), len(rows))
        count = 0
        for number, group in enumerate(groups, 1):
            task = group["tasks"]["LJP_gold"]
            for scope, figures in (("overall", task["overall"]), *task["by_class"].items()):
                for metric, found in figures.items():
                    low, high = found["interval"]
                    expected = {("run", run): value for run, value in found["per_run"].items()}
                    expected |= {("interval_low", ""): low, ("interval_high", ""): high}
                    expected |= {(name, ""): found[name] for name in ("mean", "sd", "se", "run_share")}
                    for (statistic, run), value in expected.items():
                        row = by_key[str(number), "LJP_gold", scope, metric, statistic, run]
                        self.assertEqual((float(row["value"]), row["n"], row["cases"]), (value, str(SIZE), str(SIZE)))
                        self.assertEqual((row["model"], row["temperature"]), (group["model"], "0.7"))
                        count += 1
            for metric, value in task["floors"]["commonest verdict"].items():
                row = by_key[str(number), "LJP_gold", "overall", metric, "policy", "commonest verdict"]
                self.assertEqual(float(row["value"]), value)
                count += 1
        self.assertEqual(count, len(rows))

    def test_recovery_and_bounds_are_figures_too_and_the_undefined_is_empty(self) -> None:
        settings = {"temperature": 0.7, "judge_temperature": 0.1, "max_tokens": 9}
        found = {"per_run": {"a": None}, "mean": None, "sd": None, "bounds": {"a": [0.25, 0.5]}}
        task = {"overall": {"qwk": found}, "by_class": {}, "n": {"overall": 4}, "cases": {"overall": 2}, "floors": {}}
        recovery = {"qwk": {"gain": 0.5, "gain_interval": [0.25, 0.75], "recovery": None, "recovery_interval": None}}
        group: dict[str, Any] = {
            **dict.fromkeys(("model", "user_model", "judge_model", "dataset_sha256"), "x"),
            **{"settings": settings, "tasks": {"LJP_gold": task}, "recovery": recovery},
        }
        rows = [(row["task"], row["statistic"], row["run"], row["value"]) for row in table_of(tidy_csv([group]))]
        self.assertEqual(rows, [
            ("LJP_gold", "run", "a", ""), ("LJP_gold", "worst", "a", "0.25"), ("LJP_gold", "best", "a", "0.5"),
            ("LJP_gold", "mean", "", ""), ("LJP_gold", "sd", "", ""),
            ("recovery", "gain", "", "0.5"), ("recovery", "gain_low", "", "0.25"), ("recovery", "gain_high", "", "0.75"),
            ("recovery", "recovery", "", ""), ("recovery", "recovery_low", "", ""), ("recovery", "recovery_high", "", ""),
        ])  # fmt: skip

    def test_the_better_model_is_bold_and_the_same_bytes_come_again(self) -> None:
        for form, bold in (("markdown", r"\*\*(\d\.\d{3})\*\* \["), ("latex", r"\\textbf\{(\d\.\d{3})\}")):
            with self.subTest(form):
                shown = self.show("--format", form)
                self.assertEqual(shown, self.show("--format", form))
                (line,) = (line for line in shown.split("\n") if re.search(bold, line))
                self.assertRegex(line, "^[| ]*strong")
                accuracy = (30 + 28) / 64
                self.assertEqual(re.findall(bold, line)[1], f"{accuracy:.3f}")
                self.assertIn("after Holm over 2 comparisons", shown)
                self.assertIn("10,000 draws within causes, seed 0", shown)

    def test_nothing_is_bold_without_a_test_or_where_it_finds_nothing(self) -> None:
        self.gold("third", "run1", 2)  # as good as the strong one
        for more, told in (
            ((), "after Holm"),
            (("--no-intervals",), "nothing was tested"),
            (("--model", "weak"), "nothing was tested"),
        ):
            shown = self.show("--format", "markdown", *more)
            self.assertNotIn("**", shown)
            self.assertIn(told, shown)
        self.gold("other", "run1", 32, "--temperature", "0.1")
        shown = self.show("--format", "latex")
        self.assertNotIn("textbf", shown)
        self.assertIn("these runs are not comparable, and --compare says why", shown)

    def test_a_comparison_as_csv(self) -> None:
        expected = self.rows("weak", "strong")
        found = table_of(self.show("--format", "csv", "--compare", "weak", "strong"))
        self.assertEqual([float(row["p_holm"]) for row in found], [row["p_holm"] for row in expected])
        self.assertEqual(
            [[float(row["low"]), float(row["high"])] for row in found], [row["interval"] for row in expected]
        )
        self.assertEqual([float(row["second_value"]) for row in found], [row["values"][1] for row in expected])

    def test_a_format_that_a_table_has_not_is_refused(self) -> None:
        for more, told in (
            (("--compare", "weak", "strong", "--format", "latex"), "--compare: no format latex, but text, json, csv"),
            (("--ledger", "--format", "csv"), "--ledger: no format csv, but text, json"),
            (("--compare", "weak", "strong", "--no-intervals"), "--compare: needs intervals; leave out --no-intervals"),
        ):
            with self.assertRaises(SettingsError) as caught:
                self.show(*more)
            self.assertEqual(str(caught.exception), told)


class Shape(unittest.TestCase):
    def test_every_column_is_a_figure_of_its_task(self) -> None:
        for task, metric, _ in COLUMNS:
            size = scores.TASKS[task].size
            self.assertIn(metric, scores.TASKS[task].figures([[1] * size] * size))

    def test_names_and_gaps_cannot_break_a_table(self) -> None:
        group: dict[str, Any] = {"model": r"a_b|c*d&e%f\g", "cases": 1, "runs": ["r"], "tasks": {}}
        line = markdown([group], {}, (), "").split("\n")[2]
        self.assertEqual(line, "| " + r"a\_b\|c\*d&e%f\\g" + " | –" * len(COLUMNS) + " |")
        self.assertIn(r"a\_b|c*d\&e\%f\textbackslash{}g & -- & --", latex([group], {}, (), ""))
        self.assertEqual(escaped("{~^#$}"), r"\{\textasciitilde{}\textasciicircum{}\#\$\}")


if __name__ == "__main__":
    unittest.main()
