"""Sheets for people: what stands in one, what a spreadsheet may do to it, and what comes of the labels."""

import csv
import io
import json
import unittest
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_judges import CLAIMS, Judged

from errors import CheckpointError, SettingsError
from judge_error import labelled
from records import Case
from sheets import CELL, HEAD, LETTERS, Item, cells_for, drawn_items, is_same, majority, word_of

Rows = list[list[str]]


class Sheets(Judged):
    def sheet(self, *more: str) -> Path:
        path = self.root / "sheet.csv"
        self.judges("--sheet", str(path), *more)
        return path

    def rows(self, path: Path) -> Rows:  # type: ignore[override]
        return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))

    def items(self, path: Path) -> Rows:
        rows = self.rows(path)
        return rows[[row[0] for row in rows].index(HEAD[0]) + 1 :]

    def save(self, rows: Rows, name: str = "wang.csv", encoding: str = "utf-8-sig", delimiter: str = ",") -> Path:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
        path = self.root / name
        path.write_bytes(out.getvalue().encode(encoding))
        return path

    def filled(self, path: Path, label: Callable[[list[str]], str]) -> Rows:
        """The sheet's rows with a label in each item's."""
        words = {row[0] for row in self.items(path)}
        return [[*row[:4], label(row), *row[5:]] if row[0] in words else row for row in self.rows(path)]

    def read_back(self, *paths: Path) -> dict[str, Any]:
        self.judges("--labels", *map(str, paths), "--format", "json")
        found: dict[str, Any] = json.loads(self.printed)
        return found


AS_JUDGED = {"回复分类": "澄清提问", "结果提取": "部分支持"}


def as_judged(row: list[str]) -> str:
    """What the run's judge says; of the two questions of a case the second hits."""
    return AS_JUDGED.get(row[1]) or ("是" if "我想想" in row[2] else "否")


class Written(Sheets):
    def test_excel_on_chinese_windows_takes_it_for_what_it_is(self) -> None:
        raw = self.sheet().read_bytes()
        self.assertTrue(raw.startswith(b"\xef\xbb\xbf"))
        self.assertEqual(raw.count(b"\r\n"), len(self.rows(self.root / "sheet.csv")))
        rows = self.rows(self.root / "sheet.csv")
        head = rows.index([*HEAD])
        self.assertTrue(all(len(row) == 1 for row in rows[:head]))
        self.assertIn("请只在“标签”一列填写", rows[1][0])
        self.assertEqual(len(rows[head + 1 :]), 6 + 6 + 3 * 3 * len(CLAIMS))
        for row in rows[head + 1 :]:
            self.assertRegex(row[0], rf"\A[{LETTERS}]{{6}}\Z")

    def test_it_is_blind(self) -> None:
        self.judges("--tasks", "LCA", answer=lambda role, prompt: '{"reason": "机密理由", "label": "直接判断"}')
        path = self.sheet()
        text = path.read_bytes().decode("utf-8-sig")
        for secret in ("机密理由", "DeepSeek", "run1", "民间借贷", "合同", "weight", "LP-"):
            self.assertNotIn(secret, text)
        self.assertEqual({(row[4], row[5]) for row in self.items(path)}, {("", "")})
        lca = [row for row in self.items(path) if row[1] == "回复分类"]
        self.assertEqual({row[2] for row in lca}, {"请问钱还过吗？"})
        self.assertFalse(any("三月还过一半" in cell for row in lca for cell in row))

    def test_a_question_stands_with_the_consultation_before_it_and_what_is_missing(self) -> None:
        dcg = [row for row in self.items(self.sheet()) if row[1] == "提问命中"]
        self.assertEqual({row[3] for row in dcg}, {"请问钱还过吗？"})
        self.assertTrue(all("尚未交代的关键细节：\n1. 三月还过一半\n2. 没有约定" in row[2] for row in dcg))
        self.assertEqual(sum("我想想" in row[2] for row in dcg), 3)

    def test_a_sheet_is_not_written_over(self) -> None:
        path = self.sheet()
        before = path.read_bytes()
        self.assertIn("labels may stand in it", self.refused(SettingsError, "--sheet", str(path)))
        self.assertEqual(path.read_bytes(), before)

    def test_so_many_items_a_task_and_only_the_named_tasks(self) -> None:
        path = self.sheet("--items", "4", "--tasks", "LCA", "LCA_rounds", "LJP_gold")
        self.assertEqual([row[1] for row in self.items(path)], ["回复分类"] * 4 + ["结果提取"] * 4)

    def test_disputed_items_are_half_of_it_and_each_stands_for_its_share(self) -> None:
        cases = {str(n): Case(str(n), "民间借贷纠纷", "", [], [], {}, [], []) for n in range(100)}
        labels = {Item("LCA", str(n), "complete"): "直接判断" for n in range(100)}
        disputed = {Item("LCA", str(n), "complete") for n in range(30)}
        for size, in_dispute in ((20, 10), (80, 30), (100, 30)):
            found = drawn_items(labels, cases, disputed, size)
            weights = [weight for item, weight in found.items() if item in disputed]
            self.assertEqual(weights, [30 / in_dispute] * in_dispute)
            self.assertEqual(len(found), size)
            self.assertAlmostEqual(sum(found.values()), 100)
        few = {Item("LCA", str(n), "complete") for n in range(95)}
        self.assertEqual(sum(item in few for item in drawn_items(labels, cases, few, 60)), 55)  # only 5 others

    def test_what_a_judge_said_otherwise_is_disputed(self) -> None:
        self.judges("--tasks", "DCG", answer=lambda role, prompt: '{"reason": "", "label": "是"}')
        self.sheet("--tasks", "DCG", "--items", "4")
        (keys,) = (self.root / "out").rglob("sheets/*.json")
        items = json.loads(keys.read_text(encoding="utf-8"))["items"]
        self.assertEqual(sorted(entry["weight"] for entry in items.values()), [3 / 2] * 4)
        self.assertEqual(sorted(entry["what"] for entry in items.values()), ["round 1"] * 2 + ["round 2"] * 2)


class Cells(unittest.TestCase):
    def test_no_cell_is_computed_cut_or_broken(self) -> None:
        for text in ("=1+1", "+86 138", "-甲", "@cmd", "＝SUM(A1)", "\t=1"):
            self.assertEqual(cells_for(text)[0][0], "'", text)
        self.assertEqual(cells_for("甲=乙"), ["甲=乙"])
        self.assertEqual(cells_for("a\x00b\r\nc\u202ed"), ["a\ufffdb\nc\ufffdd"])
        self.assertEqual([len(cell) for cell in cells_for("长" * (2 * CELL + 5))], [CELL, CELL, 5])
        self.assertEqual(cells_for(""), [""])

    @given(st.text(alphabet=st.characters(codec="utf-8")))
    def test_every_text_comes_back_from_its_cell(self, text: str) -> None:
        (cell, *_) = cells_for(text)
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerow([cell, "x"])
        ((back, _),) = csv.reader(io.StringIO(out.getvalue(), newline=""))
        self.assertTrue(is_same(back, cell))
        self.assertTrue(is_same(back.encode("gbk", errors="replace").decode("gbk"), cell))

    def test_signs_that_a_spreadsheet_changes_do_not_matter(self) -> None:
        self.assertTrue(is_same('他说"还" · 300元\r\n好', "他说“还”\u00a0• 300元\n好"))

    def test_another_text_is_not_the_same(self) -> None:
        self.assertFalse(is_same("甲", "乙"))
        self.assertFalse(is_same("", "乙"))

    @given(st.text())
    def test_a_word_of_an_item_is_no_number_and_no_date(self, text: str) -> None:
        self.assertRegex(word_of(text), rf"\A[{LETTERS}]{{6}}\Z")


class ReadBack(Sheets):
    def test_labels_come_back_however_a_spreadsheet_saved_them(self) -> None:
        path = self.sheet()
        rows = self.filled(path, as_judged)
        for encoding, delimiter in (("utf-8-sig", ","), ("utf-8", ","), ("gbk", ","), ("utf-16", "\t"), ("gbk", ";")):
            with self.subTest(encoding=encoding, delimiter=delimiter):
                found = self.read_back(self.save(rows, encoding=encoding, delimiter=delimiter))
                self.assertEqual(found["people"], {"wang": 30})
                self.assertEqual([row["raw"] for row in found["agreement"]], [1.0] * 5)
                for row in found["figures"]:
                    if row["run"] is not None:
                        self.assertAlmostEqual(row["corrected"], row["run"], places=6)

    def test_rows_may_be_sorted_columns_added_and_labels_missing(self) -> None:
        path = self.sheet("--tasks", "LCA")
        rows = self.filled(path, as_judged)
        head = rows.index([*HEAD])
        body = sorted(rows[head + 1 :], key=lambda row: row[2] + row[0], reverse=True)
        body[0][4], body[1][4] = "", " 澄清提问　"
        moved = [[row[5], row[4], *row[:4], "更多"] if len(row) > 1 else row for row in [rows[head], *body]]
        found = self.read_back(self.save(moved))
        self.assertEqual(found["people"], {"wang": 5})

    def test_damage_is_told_row_by_row(self) -> None:
        path = self.sheet("--tasks", "LCA", "LJP_gold")
        rows = self.filled(path, as_judged)
        head = rows.index([*HEAD])
        first, second = head + 1, head + 2
        swapped = next(place for place in range(head + 1, len(rows)) if rows[place][2] != rows[first][2])

        def damaged(change: Callable[[Rows], object]) -> str:
            copy = [[*row] for row in rows]
            change(copy)
            with self.assertRaises(SettingsError) as caught:
                self.read_back(self.save(copy))
            return str(caught.exception)

        def set_cell(place: int, column: int, value: str) -> Callable[[Rows], object]:
            return lambda rows: rows[place].__setitem__(column, value)

        word = rows[first][0]
        table: Mapping[str, Callable[[Rows], object]] = {
            rf"row {first + 1}: the label '不知道' is none of 直接判断、澄清提问": set_cell(first, 4, "不知道"),
            rf"row {first + 1}: 'XYZ' is no item of this sheet\n  1 of 12 rows are missing: {word}": set_cell(
                first, 0, "XYZ"
            ),
            rf"row {second + 1}: item {word} stands in row {first + 1} already": set_cell(second, 0, word),
            rf"row {first + 1}: the text beside {word} is not this item's": set_cell(first, 2, rows[swapped][2]),
            r"2 of 12 rows are missing": lambda rows: rows.__delitem__(slice(first, first + 2)),
            r"no row has the heads 编号、任务、材料、待判断、标签": set_cell(head, 4, "label"),
        }
        for message, change in table.items():
            with self.subTest(message):
                self.assertRegex(damaged(change), message)

    def test_what_is_no_sheet_of_this_run_is_told(self) -> None:
        path = self.sheet("--tasks", "LCA")
        rows = self.filled(path, as_judged)
        saved = self.save(rows)
        saved.write_bytes(b"\xff\x00\xff")
        self.assertRegex(self.refused(SettingsError, "--labels", str(saved)), r"wang\.csv: (not a CSV file|no row has)")
        self.assertIn("cannot be read", self.refused(SettingsError, "--labels", str(self.root / "none.csv")))
        for key in (self.root / "out").rglob("sheets/*.json"):
            key.unlink()
        said = self.refused(SettingsError, "--labels", str(self.save(rows)))
        self.assertIn("no sheet of run 'run1' of 'm' has its items", said)

    def test_a_sheet_that_nobody_filled_in_is_told(self) -> None:
        path = self.sheet("--tasks", "LCA")
        self.assertIn("no row has anything in the column 标签", self.refused(SettingsError, "--labels", str(path)))

    def test_two_sheets_of_one_name_cannot_be_told_apart(self) -> None:
        path = self.save(self.filled(self.sheet("--tasks", "LCA"), as_judged))
        (self.root / "two").mkdir()
        other = self.root / "two" / path.name
        other.write_bytes(path.read_bytes())
        self.assertIn("the same name", self.refused(SettingsError, "--labels", str(path), str(other)))

    def test_a_task_that_is_not_judged_cannot_be_drawn(self) -> None:
        self.file("dcg").unlink()
        self.assertIn("nothing of DCG is judged", self.refused(CheckpointError, "--sheet", "x.csv", "--tasks", "DCG"))


class Counted(Sheets):
    def test_errors_and_corrected_figures_are_those_of_the_labels(self) -> None:
        # The judge says 澄清提问 to all six; people say that two of the responses to complete histories judge.
        path = self.sheet("--tasks", "LCA")
        (keys,) = (self.root / "out").rglob("sheets/*.json")
        items = json.loads(keys.read_text(encoding="utf-8"))["items"]
        judging = [word for word, entry in items.items() if entry["what"] == "complete"][:2]
        found = self.read_back(
            self.save(self.filled(path, lambda row: "直接判断" if row[0] in judging else "澄清提问"))
        )
        (row,) = found["agreement"]
        self.assertEqual(
            (row["first"], row["second"], row["counts"], row["raw"]), ("people", "run", [[0, 2], [0, 4]], 4 / 6)
        )
        (errors,) = found["errors"]
        self.assertEqual((errors["error"], errors["items"]), ([[0.0, 1.0], [0.0, 1.0]], [2, 4]))

    def test_people_are_compared_with_each_other_and_by_their_majority_with_the_judge(self) -> None:
        path = self.sheet("--tasks", "DCG")
        first, *_, last = [row[0] for row in self.items(path)]
        names = {"a": [first], "b": [first, last], "c": []}

        def label(row: list[str], wrong: list[str]) -> str:
            right = as_judged(row)
            return right if row[0] not in wrong else "否" if right == "是" else "是"

        sheets = [
            self.save(self.filled(path, lambda row, wrong=wrong: label(row, wrong)), f"{who}.csv")  # type: ignore[misc]
            for who, wrong in names.items()
        ]
        found = self.read_back(*sheets)
        raw = {(row["first"], row["second"]): row["raw"] for row in found["agreement"]}
        self.assertEqual(
            raw,
            {
                ("a", "b"): 5 / 6, ("a", "c"): 5 / 6, ("b", "c"): 4 / 6,
                ("a", "run"): 5 / 6, ("b", "run"): 4 / 6, ("c", "run"): 1.0, ("people", "run"): 5 / 6,
            },
        )  # fmt: skip
        self.assertEqual(found["tied"], 0)
        two = self.read_back(*sheets[::2])
        self.assertEqual(two["tied"], 1)
        self.judges("--labels", *map(str, sheets[::2]))
        self.assertIn("1 items on which people are tied are left out", self.printed)

    def test_the_most_given_label_is_the_peoples_and_a_tie_is_none(self) -> None:
        one, other = Item("DCG", "1", "round 1"), Item("DCG", "1", "round 2")
        sheets = [{one: ("是", 2.0), other: ("是", 2.0)}, {one: ("是", 2.0), other: ("否", 2.0)}, {one: ("否", 2.0)}]
        self.assertEqual(majority(sheets), {one: ("是", 2.0)})

    def test_weights_stand_for_the_items_that_were_not_drawn(self) -> None:
        found = labelled([(0, 0, 4.0), (0, 1, 1.0)], 2)
        self.assertEqual(found.error()[0].tolist(), [4 / 5, 1 / 5])


if __name__ == "__main__":
    unittest.main()
