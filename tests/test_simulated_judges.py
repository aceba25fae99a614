"""Every figure about judges against what it must come to: a run by a simulated judge of known error, judged again by itself and by an
exact one, attacked, labelled by people who are right, and corrected.

Bounds are four standard deviations of the expectation beside them; the draws are seeded, so that a test passes always or never.
"""

import contextlib
import csv
import io
import json
import math
import tempfile
import unittest
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from fakes import STAGES, body

import audit_user
import eval_judges
from adapter import Role, Send
from common import HERE, load_dataset
from judge_error import CELLS, curve, figure, flipped
from judgments import JUDGE_TASKS, cells_of
from metrics import METRICS
from policies import Cases, answer
from records import HITS, RESPONSE_KINDS, VERDICTS, Case
from scores import TASKS, find_runs

ERROR, LIMIT = 0.1, 144
AGAIN = {
    2: (1 - ERROR) ** 2 + ERROR**2,
    3: (1 - ERROR) ** 2 + ERROR**2 / 2,
}  # that two draws agree, by number of labels


class Simulated:
    """The simulated models, without HTTP; a judge that errs draws anew each time."""

    def __init__(self, cases: Cases) -> None:
        self.cases, self.times = cases, Counter[tuple[str, str]]()

    def connect(self, role: Role) -> Send:
        def send(request: Mapping[str, Any]) -> bytes:
            model, prompt = request["model"], request["messages"][0]["content"]
            self.times[model, prompt] += 1
            times = self.times[model, prompt] if "judge-" in model else 0
            return body(answer(model, prompt, self.cases, f"seed {times}"))

        return send


class Expected(unittest.TestCase):
    root: ClassVar[Path]
    cases: ClassVar[dict[str, Case]]
    printed: ClassVar[dict[str, Any]]
    people: ClassVar[dict[str, Any]]
    audits: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="lexpilot ")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        every = load_dataset(HERE / "LexPilot_release_multiturn.json").cases
        cls.cases = {case.number: case for case in every}
        connect = Simulated(Cases(every)).connect
        options = ["--output-root", str(cls.root), "--model", "simulated/careless", "--parallel", "1"]
        models = ["--user-model", "simulated/user", "--judge-model", f"simulated/judge-{ERROR}", "--limit", str(LIMIT)]
        with contextlib.redirect_stderr(io.StringIO()):
            for script in ("LexAwN_gen.py", "eval_DCG.py", "eval_LJP.py"):
                STAGES[script]([*options, *models], connect)

        def judges(*more: str) -> str:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
                eval_judges.main([*options, *more], connect, {})
            return shown.getvalue()

        exact = ["--second-judge-model", "simulated/judge"]
        judges(*exact)
        judges("--repeat", "2")
        judges("--per-criterion")
        judges("--attacks", "100")
        cls.printed = json.loads(judges("--show", "--format", "json"))
        for more in ([], exact):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
                audit_user.main([*options, "--judge", "--format", "json", *more], connect, {})
        cls.audits = json.loads(shown.getvalue())
        sheet = cls.root / "sheet.csv"
        judges("--sheet", str(sheet))
        cls.label(sheet)
        cls.people = json.loads(judges("--labels", str(sheet), "--format", "json"))

    @classmethod
    def label(cls, sheet: Path) -> None:
        """Fill in what the exact judge says."""
        (keys,) = cls.root.rglob("sheets/*.json")
        key = json.loads(keys.read_text(encoding="utf-8"))["items"]
        labels: dict[tuple[str, str, str], str] = {}
        for name, task in JUDGE_TASKS.items():
            (path,) = cls.root.rglob(f"simulated_judge-[!0]*/{name}.whole.1.jsonl")
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                record = json.loads(line)
                labels |= {(name, record["case_number"], what): label for what, label in task.read(record).items()}
        rows = list(csv.reader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))
        for row in rows:
            if row[0] in key:
                entry = key[row[0]]
                row[4] = labels[entry["task"], entry["case"], entry["what"]]
        out = io.StringIO()
        csv.writer(out).writerows(rows)
        sheet.write_bytes(out.getvalue().encode("gbk", errors="replace"))  # as Excel on Chinese Windows may save it

    def judge(self, exact: bool) -> str:
        """J1 or J2."""
        (found,) = (name for name, judge in self.printed["judges"].items() if judge["model"].endswith("judge") == exact)
        return str(found)

    def row(self, part: str, **values: Any) -> dict[str, Any]:
        (found,) = (row for row in self.printed[part] if all(row[key] == value for key, value in values.items()))
        return dict(found)

    def assert_share(self, found: float, expected: float, n: float, note: object = None) -> None:
        self.assertLess(abs(found - expected), 4 * math.sqrt(expected * (1 - expected) / n), (found, expected, note))

    def test_an_exact_judge_agrees_as_often_as_the_other_does_not_err(self) -> None:
        for name, task in JUDGE_TASKS.items():
            with self.subTest(name):
                found = self.row("agreement", task=name, first="run", second=f"{self.judge(True)} whole 1")
                self.assert_share(found["raw"], 1 - ERROR, found["items"])
                self.assertTrue(found["raw_interval"][0] < 1 - ERROR < found["raw_interval"][1])
                # Kappa and AC1 are those of an error that falls evenly on the other labels.
                q, exact = len(task.values), [sum(column) for column in zip(*found["counts"], strict=True)]
                shares = [count / sum(exact) for count in exact]
                erring = [share * (1 - ERROR) + (1 - share) * ERROR / (q - 1) for share in shares]
                chance = sum(one * other for one, other in zip(shares, erring, strict=True))
                self.assertAlmostEqual(found["kappa"], (1 - ERROR - chance) / (1 - chance), delta=0.1)
                even = [(one + other) / 2 for one, other in zip(shares, erring, strict=True)]
                chance = sum(share * (1 - share) for share in even) / (q - 1)
                self.assertAlmostEqual(found["ac1"], (1 - ERROR - chance) / (1 - chance), delta=0.1)

    def test_a_judge_agrees_with_itself_as_two_draws_do(self) -> None:
        erring = self.judge(False)
        for name, task in JUDGE_TASKS.items():
            for first, second in (("run", "whole 1"), ("run", "whole 2"), (f"{erring} whole 1", "whole 2")):
                with self.subTest(name, first=first, second=second):
                    found = self.row("agreement", task=name, first=first, second=f"{erring} {second}")
                    self.assert_share(found["raw"], AGAIN[len(task.values)], found["items"])

    def test_one_call_a_criterion_errs_as_its_calls_do(self) -> None:
        erring, exact = self.judge(False), self.judge(True)
        for name in ("LJP_direct", "LJP_gold", "LJP_interaction"):
            found = self.row("agreement", task=name, first="run", second=f"{erring} each 1")
            self.assert_share(found["raw"], AGAIN[3], found["items"], name)
        # A question that hits asks for one of its case's k details: it is missed if that one is and no other is found. One
        # that misses is taken for a hit if any of k is.
        (path,) = self.root.rglob("simulated_judge-0.1*/DCG.each.1.jsonl")
        expected = found_hits = 0.0
        variance = 0.0
        (truth,) = self.root.rglob("simulated_judge-[!0]*/DCG.whole.1.jsonl")
        right = {
            (record["case_number"], turn["round"]): turn["label"]
            for record in map(json.loads, truth.read_text(encoding="utf-8").split("\n")[:-1])
            for turn in record["rounds"]
        }
        for record in map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1]):
            for turn in record["rounds"]:
                k = len(turn["details"])
                hit = right[record["case_number"], turn["round"]] == "是"
                p = 1 - ERROR * (1 - ERROR) ** (k - 1) if hit else 1 - (1 - ERROR) ** k
                expected, variance, found_hits = (
                    expected + p,
                    variance + p * (1 - p),
                    found_hits + (turn["label"] == "是"),
                )
        self.assertLess(abs(found_hits - expected), 4 * math.sqrt(variance))
        self.assertTrue(exact)

    def test_figures_under_the_erring_judge_are_those_that_the_flip_curve_foretells(self) -> None:
        (run,) = find_runs(self.root, self.cases, None, None)
        import numpy as np

        for name, cells in CELLS.items():
            (path,) = self.root.rglob(f"simulated_judge-[!0]*/{name}.whole.1.jsonl")
            counts = np.zeros((1, len(cells.units)))
            for record in map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1]):
                for cell in cells_of(name, self.cases[record["case_number"]], record) or []:
                    counts[0, cell] += 1
            task = TASKS[name]
            for metric in task.headline:
                with self.subTest(name, metric=metric):
                    row = self.row("figures", task=name, metric=metric, judge=f"{self.judge(True)} whole 1")
                    self.assertAlmostEqual(row["value"], float(figure(METRICS[metric], counts, cells)[0]))
                    (point,) = curve(metric, [counts], cells, [ERROR])
                    spread = figure(METRICS[metric], flipped(counts, cells, ERROR, 1000, 0), cells).std()
                    self.assertLess(abs(row["run"] - point.means[0]), 4 * float(spread))
        self.assertEqual(len(run.cases), LIMIT)

    def test_attacks_flip_as_often_as_asking_once_more_does(self) -> None:
        attacks = [row for row in self.printed["attacks"] if row["judge"] == self.judge(False)]
        self.assertGreaterEqual(len({row["kind"] for row in attacks}), 8)
        claims = {case.number: len(case.verdicts) for case in self.cases.values()}
        for task, labels in (("LCA", 2), ("DCG", 2), ("LJP_direct", 3)):
            of_task = [row for row in attacks if row["task"] == task]
            flips, trials = sum(row["flips"] for row in of_task), sum(row["trials"] for row in of_task)
            (path,) = self.root.rglob(f"simulated_judge-0.1*/{task}.attacks.1.jsonl")
            numbers = [json.loads(line)["case_number"] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
            self.assertEqual(len(numbers), 100)
            changed = [1 - AGAIN[labels] ** (claims[number] if task == "LJP_direct" else 1) for number in numbers]
            expected = sum(changed) / len(changed)
            # All kinds of a response share its first judgment, so that responses are counted here.
            self.assert_share(flips / trials, expected, len(numbers), task)
        for row in attacks:
            self.assertEqual(row["unreadable"], 0)

    def test_people_who_are_right_find_the_judges_error_and_the_figures_without_it(self) -> None:
        values = {"LCA": RESPONSE_KINDS, "DCG": HITS}
        for row in self.people["errors"]:
            if row["judge"] == "run":
                for place, (shares, size) in enumerate(zip(row["error"], row["sizes"], strict=True)):
                    self.assertEqual(row["labels"], [*values.get(row["task"], VERDICTS)])
                    self.assert_share(shares[place], 1 - ERROR, size, row)
            elif row["judge"] == f"{self.judge(True)} whole 1":
                for place, shares in enumerate(row["error"]):
                    self.assertEqual(shares[place], 1.0)
        self.assertEqual(len(self.people["figures"]), 3 + 1 + 2 * 3)
        for row in self.people["figures"]:
            exact = self.row("figures", task=row["task"], metric=row["metric"], judge=f"{self.judge(True)} whole 1")
            self.assertTrue(row["interval"][0] < exact["value"] < row["interval"][1], (row, exact))
            if row["metric"] == "qwk" and row["task"] == "LJP_gold":  # where an error costs most, about 0.11
                self.assertLess(row["run"], exact["value"] - 0.03)
                self.assertLess(abs(row["corrected"] - exact["value"]), abs(row["run"] - exact["value"]))

    def test_a_user_model_that_tells_just_what_it_is_asked_is_found_to(self) -> None:
        erring, exact = sorted(self.audits["judges"], key=lambda one: len(one["judge"]["model"]), reverse=True)
        shares = {name: row["rate"] for name, row in exact["rates"].items()}
        self.assertEqual(
            shares,
            {
                "told when asked": 1.0,
                "withheld when asked": 0.0,
                "told unasked": 0.0,
                "replies that tell one unasked": 0.0,
                "contradicted": 0.0,
                "invented": 0.0,
            },
        )
        self.assertEqual([row["cases"] for row in exact["interaction"]], [LIMIT, LIMIT, LIMIT, LIMIT, 0, 0])
        # Of n details a were asked for. A label stays with 1 - e and becomes each of the five others with e/5.
        a, n = exact["rates"]["told when asked"]["of"], exact["rates"]["invented"]["of"]
        other, stays = ERROR / 5, 1 - ERROR
        expected = {
            "contradicted": other,
            "invented": other,
            "told when asked": (a * stays + (n - a) * other) / (a * (stays + other) + (n - a) * 2 * other),
            "told unasked": n * other / ((n - a) * (stays + other) + a * 2 * other),
        }
        for name, share in expected.items():
            row = erring["rates"][name]
            self.assert_share(row["rate"], share, row["of"], name)
        words = self.audits["words"]["rates"]
        self.assertEqual(words["replies with a figure, date, amount or name of their own"]["count"], 0)
        self.assertGreaterEqual(words["details told"]["count"], a)

    def test_a_sheet_has_two_hundred_items_a_task_half_of_them_disputed(self) -> None:
        (keys,) = self.root.rglob("sheets/*.json")
        items = json.loads(keys.read_text(encoding="utf-8"))["items"]
        self.assertEqual(Counter(entry["task"] for entry in items.values()), dict.fromkeys(TASKS, 200))
        for name in TASKS:
            weights = Counter(entry["weight"] for entry in items.values() if entry["task"] == name)
            agreed = self.row("agreement", task=name, first="run", second=f"{self.judge(True)} whole 1")
            self.assertAlmostEqual(sum(weight * count for weight, count in weights.items()), agreed["items"])
            fewest = min(weights, key=lambda weight: weights[weight])
            self.assertTrue(
                weights[fewest] == 100 or (weights[fewest] < 100 and fewest == 1), weights
            )  # all that there are


if __name__ == "__main__":
    unittest.main()
