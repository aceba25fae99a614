"""Archives of a table: verified as they were written, refused or named wherever they are not."""

import hashlib
import json
import stat
import unittest
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_compare import GoldRuns

from bundle import CONTENTS, LARGEST, MOST, checked, different_figures, write_bundle
from errors import CheckpointError, LexPilotError, SettingsError
from records import ARTIFACTS


class Bundles(GoldRuns):
    def setUp(self) -> None:
        super().setUp()
        self.gold("a", "run1", 20)
        self.gold("a", "run2", 22)
        self.path = self.root / "表.zip"
        self.show("--bundle", str(self.path))

    def verify(self, path: Path | None = None) -> str:
        return self.show("--verify", str(path or self.path))

    def refused(self, path: Path | None = None) -> str:
        with self.assertRaises(CheckpointError) as caught:
            self.verify(path)
        return str(caught.exception)

    def changed(self, change: Callable[[dict[str, bytes]], object]) -> Path:
        """Another archive with some members changed."""
        with zipfile.ZipFile(self.path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        path = self.root / "changed.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, raw in members.items():
                archive.writestr(name, raw)
        return path

    def test_what_was_bundled_is_verified_elsewhere_without_the_output_tree(self) -> None:
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
            contents = json.loads(archive.read(CONTENTS))
        files = {key: raw for key, raw in self.snapshot().items() if not key.endswith("lock")}
        self.assertEqual({*names}, {key.replace("\\", "/") for key in files} | {CONTENTS})
        self.assertEqual(contents["files"], {
            key.replace("\\", "/"): hashlib.sha256(raw).hexdigest() for key, raw in files.items()
        })  # fmt: skip
        self.assertEqual(contents["sampling"], {"replicates": 10_000, "seed": 0, "level": 0.95})
        self.assertEqual(contents["figures"], json.loads(self.show("--format", "json"))["groups"])
        (self.root / "out").rename(self.root / "gone")
        self.assertRegex(self.verify(), r"表\.zip: verified, 6 files and \d+ figures are as they were\.\n\Z")

    def test_the_same_records_make_the_same_bytes_and_no_archive_is_overwritten(self) -> None:
        again = self.root / "again.zip"
        self.show("--bundle", str(again))
        self.assertEqual(again.read_bytes(), self.path.read_bytes())
        with self.assertRaisesRegex(SettingsError, r"again\.zip: exists already; take another name"):
            self.show("--bundle", str(again))
        with self.assertRaisesRegex(SettingsError, r"cannot be written"):
            self.show("--bundle", str(self.root / "none" / "x.zip"))
        with self.assertRaisesRegex(SettingsError, "--bundle: goes with the table of results"):
            self.show("--bundle", str(self.root / "x.zip"), "--planner")

    def test_a_selection_and_a_table_without_intervals_are_bundled_as_they_are(self) -> None:
        path = self.root / "one.zip"
        self.show("--bundle", str(path), "--run-id", "run2", "--no-intervals", "--format", "csv")
        self.assertRegex(self.verify(path), r"verified, 3 files and \d+ figures")

    def test_a_figure_that_differs_is_named_with_both_values(self) -> None:
        def change(members: dict[str, bytes]) -> None:
            contents = json.loads(members[CONTENTS])
            contents["figures"][0]["tasks"]["LJP_gold"]["overall"]["accuracy"]["mean"] += 0.001
            contents["figures"][0]["runs"].append("run3")
            members[CONTENTS] = json.dumps(contents).encode()

        said = self.refused(self.changed(change))
        self.assertIn("2 differences:", said)
        self.assertRegex(said, r"figures\[0\]\.tasks\.LJP_gold\.overall\.accuracy\.mean: 0\.344\d+ then, 0\.343\d+ now")
        self.assertIn('figures[0].runs: ["run1", "run2", "run3"] then, ["run1", "run2"] now', said)

    def test_each_file_that_is_changed_missing_or_surplus_is_named(self) -> None:
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
        (record,) = (name for name in names if name.startswith("eval_results/run1/"))
        said = self.refused(
            self.changed(lambda members: members.update({record: members[record].replace(b"0", b"1", 1)}))
        )
        self.assertIn(f"{record}: not the file that was bundled, by its hash", said)
        self.assertIn("LJP_gold of run1 cannot be shown: eval_results", said)
        said = self.refused(self.changed(lambda members: members.pop(record)))
        self.assertIn(f"{record}: in the list of files, not in the archive", said)
        more = ARTIFACTS["lca"].path.format(run="run1/x-00000000")
        said = self.refused(self.changed(lambda members: members.update({more: b""})))
        self.assertIn(f"{more}: in the archive, not in the list of files", said)

    def test_another_data_file_is_asked_for_by_its_hash(self) -> None:
        self.data_file = self.write_cases(self.cases[:3], "other.json")
        with self.assertRaisesRegex(
            SettingsError, r"other\.json: not the data file that .* the sha256 [0-9a-f]{64}; give"
        ):
            self.verify()

    def test_nothing_is_unpacked_that_is_no_file_of_a_run(self) -> None:
        (good, *_) = (name for name in self.snapshot() if "manifest" in name)
        for name in (
            *("../evil", "/evil", "evil", "C:/evil", "runs/../../manifest.json", "runs/../x/manifest.json", "runs/x/.y/manifest.json"),
            *("runs/a/b/c/manifest.json", "runs/con/x/manifest.json", "runs/a:b/c/manifest.json", "x/" + good, good + "/"),
        ):  # fmt: skip
            with self.subTest(name):
                said = self.refused(self.changed(lambda members, name=name: members.update({name: b"{}"})))  # type: ignore[misc]
                self.assertIn("is no file of a run; nothing was unpacked", said)

    def test_members_of_an_odd_kind_are_refused(self) -> None:
        def member(
            name: str = "runs/a/b/manifest.json", size: int = 2, mode: int = 0, packed: int = 0
        ) -> zipfile.ZipInfo:
            info = zipfile.ZipInfo(name)
            info.file_size, info.external_attr, info.compress_type = size, mode << 16, packed
            return info

        many = [member(f"runs/{n}/b/manifest.json", LARGEST) for n in range(MOST // LARGEST + 1)]
        for members, why in (
            ([member(mode=stat.S_IFLNK | 0o777)], "a link"),
            ([member(), member("runs/A/b/manifest.json")], "there twice"),
            ([member(size=LARGEST + 1)], "too large"),
            (many, "too large"),
            ([member(packed=zipfile.ZIP_LZMA)], "packed in an unknown way"),
        ):
            with self.subTest(why), self.assertRaisesRegex(CheckpointError, why):
                [*checked(self.path, members)]
        self.assertEqual(len([*checked(self.path, many[:-1])]), MOST // LARGEST)

    def test_what_is_no_archive_of_this_kind_is_refused(self) -> None:
        def as_json(value: Any) -> Callable[[dict[str, bytes]], object]:
            return lambda members: members.update({CONTENTS: json.dumps(value).encode()})

        for change, what in (
            (lambda members: members.pop(CONTENTS), "holds no bundle.json"),
            (as_json({"files": {}}), "bundle.json lacks the key 'dataset_sha256'"),
            (as_json([]), "bundle.json is not an object"),
            (lambda members: members.update({CONTENTS: b"{"}), "not a readable archive"),
        ):
            self.assertIn(what, self.refused(self.changed(change)))
        self.assertIn("not a readable archive: File is not a zip file", self.refused(self.data_file))
        self.assertIn("cannot be read", self.refused(self.root / "none.zip"))

    def test_a_flipped_byte_anywhere_is_told_or_changes_nothing(self) -> None:
        raw = self.path.read_bytes()
        path = self.root / "flipped.zip"
        told = 0
        for at in range(0, len(raw), max(1, len(raw) // 80)):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :])
            try:
                self.verify(path)
            except LexPilotError:
                told += 1
        self.assertGreater(told, 60)

    def test_half_an_archive_is_not_left_behind(self) -> None:
        path = self.root / "half.zip"
        (name,) = (key for key in self.snapshot() if key.startswith("eval_results") and "run1" in key)
        figures: Any = {"a": object()}  # what no JSON can hold ends the writing
        with self.assertRaises(TypeError):
            write_bundle(path, self.root / "out", [], "0" * 64, {}, figures)
        self.assertFalse(path.exists())
        self.assertTrue((self.root / "out" / name).exists())


class Differences(unittest.TestCase):
    def test_only_what_differs_is_named(self) -> None:
        then = {"a": 0.1 + 0.2, "b": [1, None, "x"], "c": {"d": True}, "gone": 1}
        now = {"a": 0.3, "b": [1, 0, "x"], "c": {"d": 1}, "new": 1}
        self.assertEqual([*different_figures(then, now)], [
            "figures.b[1]: null then, 0 now", "figures.gone: only then", "figures.new: only now",
        ])  # fmt: skip
        self.assertEqual([*different_figures([1], [1, 2], "x")], ["x: [1] then, [1, 2] now"])
        self.assertEqual([*different_figures(0.5, 0.5000001, "x")], ["x: 0.5 then, 0.5000001 now"])


if __name__ == "__main__":
    unittest.main()
