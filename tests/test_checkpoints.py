"""Every way in which a file of a run can be wrong: found, told with file and line, left untouched, and nothing asked."""

import contextlib
import errno
import functools
import io
import json
import operator
import re
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes import STAGES, Folder, Provider, make_case, sensible, without_calls
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import (
    CODE_FILES,
    HERE,
    Journal,
    Run,
    SyncedFile,
    append,
    code_hashes,
    folder_name,
    is_device_name,
    read_manifest,
)
from common import load_dataset
from errors import CheckpointError, LexPilotError, SettingsError
from records import ARTIFACTS, ROLE_NAMES, Blocked, Line, are_records, record_fault

LATER = {  # a command that reads the file without writing it
    "a1": "eval_LCA.py",
    "lca": "eval_LJP_interaction.py",
    "interaction": "eval_LJP_interaction.py",
}
FEW = settings(max_examples=60, deadline=None, database=None)


class FillingUp(io.FileIO):
    """A file, open for appending, on a drive with so many bytes of room."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__(path, "ab")
        self.room = room

    def write(self, data: Any) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "full")
        taken = super().write(bytes(data)[: self.room])
        self.room -= taken
        return taken


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside a JSON value."""
    for step, item in enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ():
        yield (step,)
        yield from ((step, *rest) for rest in places(item))


class FinishedRun(Folder):
    """Two finished runs of three cases; each test damages one and puts it right again."""

    def setUp(self) -> None:
        super().setUp()
        self.run_all()
        self.run_all("--run-id", "run2")

    def refused(self, name: str, raw: bytes, kind: type[LexPilotError] = CheckpointError) -> str:
        """What is said of a file with these bytes, by its own command, by a later one and by the results alike: all
        refuse it, nothing is asked, no file changes. The file is as it was afterwards.
        """
        path = self.file(name)
        before = path.read_bytes()
        path.write_bytes(raw)
        damaged = self.snapshot()
        provider = Provider(sensible)
        said = ""
        try:
            for script in {ARTIFACTS[name].command, LATER.get(name, ARTIFACTS[name].command)}:
                with self.assertRaises(kind) as caught:
                    self.stage(script, provider.connect)
                said = str(caught.exception)
            with self.assertRaises(CheckpointError):
                self.show()
            self.assertEqual(provider.asked, [])
            self.assertEqual(self.snapshot(), damaged)
        finally:
            path.write_bytes(before)
        return said

    def lines(self, name: str, run_id: str = "run1") -> list[bytes]:
        return self.file(name, run_id).read_bytes().splitlines(keepends=True)


class Damage(FinishedRun):
    def test_a_doubled_line_is_named_with_its_case(self) -> None:
        for name in ARTIFACTS:
            with self.subTest(name):
                lines = self.lines(name)
                said = self.refused(name, b"".join([*lines, lines[0]]))
                self.assertIn(f"{self.file(name)}:4: case '1' stands here a second time", said)

    def test_a_line_of_another_run_is_found(self) -> None:
        for name in ARTIFACTS:
            with self.subTest(name):
                lines = self.lines(name)
                said = self.refused(name, b"".join([*lines[:2], self.lines(name, "run2")[2]]))
                self.assertIn(f"{self.file(name)}:3: ", said)

    def test_a_line_of_another_file_of_the_same_shape_is_found(self) -> None:
        lines = self.lines("ljp_direct")
        said = self.refused("ljp_direct", b"".join([*lines[:2], self.lines("ljp_gold")[2]]))
        self.assertIn(":3: the line was changed, or is another file's or run's", said)

    def test_every_line_of_another_kind_is_named_by_what_it_is(self) -> None:
        table: list[tuple[bytes, str]] = [
            (b"", "not one JSON object"),
            (b"{", "not one JSON object"),
            (b"{} {}", "not one JSON object"),
            (b"[]", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b"{}", "lacks the key 'case_number'"),
            ("{}".encode("utf-16"), "UTF-16"),
            (b"\xff", "not UTF-8"),
        ]
        for line, what in table:
            with self.subTest(line=line):
                lines = self.lines("dcg")
                said = self.refused("dcg", b"".join([lines[0], line + b"\n", *lines[1:]]))
                self.assertIn("DCG_results.jsonl:2: ", said)
                self.assertIn(what, said)

    def test_a_record_of_the_wrong_shape_is_named_by_its_key(self) -> None:
        table: list[tuple[str, Any, str]] = [
            ("success", "true", "the record.success is not of type bool"),
            ("success", None, "the record.success is not of type bool"),
            ("rounds", {}, "the record.rounds is not an array"),
            ("extra", 1, "the record has the unknown key 'extra'"),
            ("case_number", 1, "the record.case_number is not of type str"),
        ]
        for key, value, what in table:
            with self.subTest(key):
                record = {**self.records("dcg")[0], key: value}
                line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
                self.assertIn(f":1: {what}", self.refused("dcg", line))

    def test_many_records_are_right_together_if_each_is_by_itself(self) -> None:
        block: dict[str, Any] = {"blocked": {"role": "judge", "code": None, "words": "so"}}
        odd: list[Any] = [
            None,
            True,
            0,
            1.5,
            "",
            "支持",
            [],
            [None],
            {},
            {"x": 1},
            {"x": None},
            {"x": {"x": ""}},
            block,
        ]
        for name, artifact in ARTIFACTS.items():
            shapes = (artifact.shape, Blocked)
            usual, *others = self.records(name)
            for record in (usual, {**{key: usual[key] for key in Line.__annotations__}, **block}):

                def agree(place: tuple[Any, ...], record: Any = record, others: Any = others, of: Any = shapes) -> None:
                    by_itself = record_fault(record, of) is None
                    self.assertEqual(are_records([record, *others], of), by_itself, (place, record))

                self.assertTrue(are_records([record, *others], shapes))
                for place in [*places(record)]:
                    *way, last = place
                    parent: Any = functools.reduce(operator.getitem, way, record)
                    before = parent[last]
                    for parent[last] in odd:
                        agree(place)
                    parent[last] = before
                    if isinstance(parent, dict):
                        parent["surplus"] = before
                        agree(place)
                        del parent[last]
                        agree(place)
                        del parent["surplus"]
                        agree(place)
                        parent[last] = before

    def test_a_label_outside_its_classes_is_an_error_and_no_third_class(self) -> None:
        record = self.records("lca")[0]
        line = json.dumps({**record, "complete_label": "不确定"}, ensure_ascii=False).encode() + b"\n"
        self.assertIn("the record.complete_label is '不确定'", self.refused("lca", line))

    def test_an_unknown_case_is_named_even_if_its_line_is_sealed(self) -> None:
        manifest = read_manifest(next((self.root / "out" / "runs" / "run1").glob("*/manifest.json")))
        run = Run(self.root / "out", manifest, [])
        body = self.lines("dcg")[0].rpartition(b', "record_sha256"')[0].replace(b'"1"', b'"9"', 1)
        self.assertIn("case '9' is none of this run's", self.refused("dcg", run._sealed("dcg", body) + b"\n"))

    def test_a_stale_record_names_the_file_it_was_made_from(self) -> None:
        case = load_dataset(self.data_file).cases[0]
        manifest = read_manifest(next((self.root / "out" / "runs" / "run1").glob("*/manifest.json")))
        run = Run(self.root / "out", manifest, [case])
        body = self.lines("a1")[0].rpartition(b', "record_sha256"')[0].replace("请问".encode(), "敢问".encode(), 1)
        fresh = run._sealed("a1", body) + b"\n"
        said = self.refused("a1", b"".join([fresh, *self.lines("a1")[1:]]))
        self.assertRegex(said, r"LCA_results\.jsonl:1: case '1' was made from another record of a1\.jsonl")

    @FEW
    @given(st.data())
    def test_any_changed_byte_of_any_file_is_found(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(ARTIFACTS)))
        raw = bytearray(self.file(name).read_bytes())
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[at]))
        self.assertIn(str(self.file(name)), self.refused(name, bytes(raw)))

    def test_a_file_cut_at_any_byte_is_found_unless_whole_lines_are_missing(self) -> None:
        raw = self.file("ljp_gold").read_bytes()
        ends = {match.end() for match in re.finditer(b"\n", raw)}
        cases = load_dataset(self.data_file).cases
        manifest = read_manifest(next((self.root / "out" / "runs" / "run1").glob("*/manifest.json")))
        for at in range(1, len(raw)):
            self.file("ljp_gold").write_bytes(raw[:at])
            run = Run(self.root / "out", manifest, cases)
            if at in ends:
                self.assertEqual(len(run.load("ljp_gold")), raw[:at].count(b"\n"))
            else:
                line = raw[:at].count(b"\n") + 1
                told = "lacks only its line end" if at + 1 in ends else "is unfinished"
                with self.assertRaisesRegex(CheckpointError, f":{line}: the last line {told}"):
                    run.load("ljp_gold")
        self.file("ljp_gold").write_bytes(raw)

    @FEW
    @given(st.data())
    def test_a_torn_last_line_of_any_file_stops_its_command(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(ARTIFACTS)))
        raw = self.file(name).read_bytes()
        at = data.draw(st.integers(1, len(raw) - 1).filter(lambda at: raw[at - 1 : at] != b"\n"))
        self.refused(name, raw[:at])

    @FEW
    @given(st.sampled_from(sorted(ARTIFACTS)), st.permutations([0, 1, 2]))
    def test_lines_in_another_order_change_nothing(self, name: str, order: list[int]) -> None:
        shown = self.show()
        path = self.file(name)
        before = path.read_bytes()
        path.write_bytes(b"".join(self.lines(name)[n] for n in order))
        self.play(ARTIFACTS[name].command)
        self.assertEqual(self.show(), shown)
        path.write_bytes(before)

    def test_a_missing_line_is_asked_again_alone_and_until_then_everything_later_refuses(self) -> None:
        for name, artifact in ARTIFACTS.items():
            with self.subTest(name):
                whole = self.snapshot()
                path = self.file(name)
                lines = self.lines(name)
                path.write_bytes(lines[0] + lines[2])
                with self.assertRaisesRegex(CheckpointError, r"lacks 1 of 3 cases \(2\); first run: python"):
                    self.show()
                if name in LATER:
                    with self.assertRaises(CheckpointError):
                        self.play(LATER[name])
                provider = Provider(sensible)
                self.stage(artifact.command, provider.connect)
                self.assertGreater(len(provider.asked), 0)
                about = {prompt.split("案")[1][0] for _, prompt in provider.asked if "案" in prompt}
                self.assertLessEqual(about, {"2"})
                made = path.read_bytes().removeprefix(lines[0] + lines[2])
                self.assertEqual(without_calls(json.loads(made)), without_calls(json.loads(lines[1])))
                self.assertEqual({**self.snapshot(), str(path.relative_to(self.root / "out")): b"".join(lines)}, whole)
                path.write_bytes(b"".join(lines))

    def test_a_whole_last_line_without_its_line_end_is_not_to_be_thrown_away(self) -> None:
        raw = self.file("dcg").read_bytes()
        self.assertIn(":3: the last line lacks only its line end; add that", self.refused("dcg", raw[:-1]))
        self.assertIn(":3: the last line is unfinished; delete it", self.refused("dcg", raw[:-2]))

    def test_changed_line_ends_are_told_as_such(self) -> None:
        raw = self.file("dcg").read_bytes().replace(b"\n", b"\r\n")
        self.assertIn(":1: its line end was changed to CRLF", self.refused("dcg", raw))

    def test_a_byte_order_mark_is_tolerated(self) -> None:
        path = self.file("dcg")
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        self.play("eval_DCG.py")
        self.show()

    def test_a_folder_in_a_files_place_is_an_error(self) -> None:
        path = self.file("dcg")
        path.unlink()
        path.mkdir()
        with self.assertRaisesRegex(CheckpointError, "cannot be read"):
            self.play("eval_DCG.py")


class ManifestTest(FinishedRun):
    def manifest_path(self) -> Path:
        return next((self.root / "out" / "runs" / "run1").glob("*/manifest.json"))

    def test_each_field_changed_alone_is_refused_with_both_values(self) -> None:
        stored = json.loads(self.manifest_path().read_text(encoding="utf-8"))
        changes: list[tuple[str, str | None, Any]] = [
            ("dataset_sha256", None, "0" * 64),
            ("cases", None, ["1", "2"]),
            ("code_sha256", "common.py", "0" * 64),
            ("models", "user", "another"),
            ("models", "judge", "another"),
            ("endpoints", "evaluated", "https://other/v1"),
            ("endpoints", "user", "https://other/v1"),
            ("endpoints", "judge", "https://other/v1"),
            ("temperature", None, 0.2),
            ("judge_temperature", None, 0.2),
            ("max_tokens", None, 99),
            *(("params", role, {"top_p": 0.9}) for role in ROLE_NAMES),
        ]
        self.assertEqual({key for key, _, _ in changes}, set(stored) - {"run_id"})
        for key, part, value in changes:
            with self.subTest(key, part=part):
                changed = {**stored, key: value if part is None else {**stored[key], part: value}}
                self.manifest_path().write_text(json.dumps(changed), encoding="utf-8")
                before = self.snapshot()
                provider = Provider(sensible)
                for script in STAGES:
                    with self.assertRaises(SettingsError) as caught:
                        self.stage(script, provider.connect)
                named = key if part is None else f"{key} {part}"
                self.assertRegex(str(caught.exception), rf"\n  {re.escape(named)}: .+ then, .+ now")
                self.assertEqual(provider.asked, [])
                self.assertEqual(self.snapshot(), before)

    def test_each_option_of_the_experiment_is_bound_and_the_operational_ones_are_not(self) -> None:
        other = self.write_cases([make_case("1"), make_case("2"), make_case("3", plaintiff_type="法人")], "other.json")
        for option, value in (
            ("--dataset", str(other)),
            ("--limit", "2"),
            ("--user-model", "x"),
            ("--judge-model", "x"),
            ("--temperature", "0"),
            ("--judge-temperature", "0"),
            ("--max-tokens", "5"),
            *((f"--{role}-params", '{"seed": 1}') for role in ("eval", "user", "judge")),
        ):
            with self.subTest(option), self.assertRaises(SettingsError):
                self.play("eval_DCG.py", option, value)
        self.play("eval_DCG.py", "--timeout", "5", "--retries", "9", "--parallel", "3")

    def test_every_file_of_the_protocol_is_hashed_whatever_its_line_ends(self) -> None:
        reporting = """agreement audit_user bundle categories check_dataset compare errors eval_LJP eval_judges exports flips
            judge_error judges judgments ledger mentions metrics plan planner policies scores sheets show_results simulate
            texts trust"""
        others = {path.name for path in HERE.glob("*.py")} - set(CODE_FILES)
        self.assertEqual(others, {f"{name}.py" for name in reporting.split()})
        with_prompts = [
            name
            for name in CODE_FILES
            if re.search(r'^\w+_PROMPT = """', (HERE / name).read_text(encoding="utf-8"), re.M)
        ]
        self.assertEqual(sorted(with_prompts), ["LexAwN_gen.py", "eval_DCG.py", "eval_LCA.py", "eval_LJP_gold.py"])
        copy, hashes = self.root / "code", code_hashes()
        copy.mkdir()
        for name in CODE_FILES:
            (copy / name).write_bytes((HERE / name).read_bytes().replace(b"\n", b"\r\n"))
        self.assertEqual(code_hashes(copy), hashes)
        for name in CODE_FILES:
            (copy / name).write_bytes((HERE / name).read_bytes() + b"# \n")
            self.assertEqual([file for file in hashes if code_hashes(copy)[file] != hashes[file]], [name])
            (copy / name).write_bytes((HERE / name).read_bytes())

    def test_a_data_file_with_other_line_ends_is_another_and_the_message_speaks_of_them(self) -> None:
        self.data_file.write_bytes(self.data_file.read_bytes() + b"\r\n")
        with self.assertRaisesRegex(SettingsError, r"data file line ends too\):\n  dataset_sha256: \S+ then, \S+ now$"):
            self.play("eval_DCG.py")
        with self.assertRaisesRegex(
            SettingsError, re.escape(str(self.data_file)) + ".*line ends and a byte-order mark"
        ):
            self.show()

    def test_an_unreadable_manifest_is_an_error_at_every_cut(self) -> None:
        raw = self.manifest_path().read_bytes()
        for at in range(0, len(raw) - 2, 37):
            self.manifest_path().write_bytes(raw[:at])
            with self.assertRaisesRegex(CheckpointError, "not a manifest"):
                self.play("eval_DCG.py")
        self.manifest_path().write_bytes(raw)

    def test_a_manifest_edited_to_fit_other_settings_does_not_fit_the_records(self) -> None:
        changed = json.loads(self.manifest_path().read_text(encoding="utf-8")) | {"temperature": 0.2}
        self.manifest_path().write_text(json.dumps(changed), encoding="utf-8")
        with self.assertRaises(CheckpointError):
            self.play("eval_DCG.py", "--temperature", "0.2")
        with self.assertRaises(CheckpointError):
            self.show()

    def test_records_without_a_manifest_are_refused(self) -> None:
        self.manifest_path().unlink()
        with self.assertRaisesRegex(CheckpointError, "missing"):
            self.play("eval_DCG.py")

    def test_a_manifest_of_another_run_is_refused_by_stages_and_results(self) -> None:
        other = next((self.root / "out" / "runs" / "run2").glob("*/manifest.json"))
        self.manifest_path().write_bytes(other.read_bytes())
        for call in (self.show, lambda: self.play("eval_DCG.py")):
            with self.assertRaisesRegex(CheckpointError, "belongs to run 'run2' of 'm'"):
                call()

    def test_a_run_that_lost_its_manifest_does_not_vanish_from_the_results(self) -> None:
        self.manifest_path().unlink()
        with self.assertRaisesRegex(CheckpointError, r"run1.m-\w+.manifest\.json: not a manifest"):
            self.show()

    def test_a_damaged_run_does_not_stand_in_the_way_of_a_selected_one(self) -> None:
        self.manifest_path().write_bytes(b"{")
        self.assertIn("Runs             1: run2", self.show("--run-id", "run2"))

    def test_a_run_id_that_differs_in_case_alone_is_refused(self) -> None:
        with self.assertRaisesRegex(SettingsError, "RUN1.*'run1'"):
            self.play("eval_DCG.py", "--run-id", "RUN1")

    def test_a_command_that_bought_nothing_binds_nobody_to_its_settings(self) -> None:
        def refused(role: Any) -> Any:
            raise SettingsError("no")

        with self.assertRaises(SettingsError):
            self.stage("eval_DCG.py", refused, "--run-id", "fresh")
        provider = Provider(sensible)
        self.stage("eval_DCG.py", provider.connect, "--run-id", "fresh", "--judge-model", "another")
        self.assertGreater(len(provider.asked), 0)


class Places(Folder):
    def test_models_whose_names_look_alike_have_folders_of_their_own(self) -> None:
        names = [
            "A/B",
            "A\\B",
            "A_B",
            "A:B",
            "a_b",
            "A_B ",
            "..",
            ".",
            "con",
            "NUL.txt",
            "模型",
            "模形",
            "x" * 300,
            "a\u00b2✅",
        ]
        folders = [folder_name(name) for name in names]
        self.assertEqual(len({folder.casefold() for folder in folders}), len(names))
        for folder in folders:
            self.assertRegex(folder, r"\A[A-Za-z0-9_-][A-Za-z0-9._-]*-[0-9a-f]{8}\Z")
            self.assertLess(len(folder.encode()), 160)
            self.assertFalse(is_device_name(folder))

    def test_no_character_that_a_system_forbids_reaches_a_folder_name(self) -> None:
        for char in '/\\:*?"<>| ':
            self.assertRegex(folder_name(f"a{char}b"), r"\Aa_b-[0-9a-f]{8}\Z")

    def test_a_folder_that_cannot_be_made_is_named_before_any_call(self) -> None:
        provider = Provider(sensible)
        (self.root / "out").mkdir()
        (self.root / "out" / "Force_judge_gen").write_bytes(b"")
        with self.assertRaisesRegex(SettingsError, r"Force_judge_gen.*: cannot be written \(.*\); see --output-root"):
            self.stage("eval_LJP_gold.py", provider.connect)
        self.assertEqual(provider.asked, [])

    def test_a_drive_that_cannot_sync_costs_no_record_and_is_told_once(self) -> None:
        for number in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):

            def sync(descriptor: int, number: int = number) -> None:
                raise OSError(number, "odd drive")

            path, said = self.root / str(number), io.StringIO()
            file = SyncedFile(path, sync)
            with contextlib.redirect_stderr(said):
                for _ in range(3):
                    file.append(b"one")
            self.assertEqual((path.read_bytes(), said.getvalue().count("cannot sync (odd drive)")), (b"one\n" * 3, 1))

    def test_a_line_that_could_not_be_synced_is_not_called_saved(self) -> None:
        def sync(descriptor: int) -> None:
            raise OSError(errno.EIO, "broken")

        with self.assertRaisesRegex(OSError, "broken"):
            SyncedFile(self.root / "file", sync).append(b"one")

    def test_a_sync_serves_all_that_were_written_before_it_and_nobody_else(self) -> None:
        begun, release, syncs = threading.Event(), threading.Event(), list[int]()
        path = self.root / "file"

        def sync(descriptor: int) -> None:
            syncs.append(path.read_bytes().count(b"\n"))
            if len(syncs) == 1:
                begun.set()
                self.assertTrue(release.wait(60))

        file = SyncedFile(path, sync)
        threads = [threading.Thread(target=file.append, args=(b"line",)) for _ in range(5)]
        threads[0].start()
        self.assertTrue(begun.wait(60))
        for thread in threads[1:]:
            thread.start()
        while len(file.entries) < 4:
            pass
        self.assertTrue(all(thread.is_alive() for thread in threads))
        release.set()
        for thread in threads:
            thread.join()
        self.assertEqual((syncs, path.read_bytes()), ([1, 5], b"line\n" * 5))

    def test_the_exact_model_name_is_in_the_manifest_and_the_table(self) -> None:
        provider = Provider(sensible)
        self.stage("eval_LJP_gold.py", provider.connect, "--model", "供应商/模型:1")
        (path,) = (self.root / "out" / "runs" / "run1").glob("*/manifest.json")
        self.assertEqual(read_manifest(path)["models"]["evaluated"], "供应商/模型:1")
        self.assertIn("Evaluated model  供应商/模型:1  (", self.show())

    def test_an_output_root_that_is_a_file_is_refused_before_any_call(self) -> None:
        provider = Provider(sensible)
        (self.root / "out").write_bytes(b"")
        with self.assertRaisesRegex(SettingsError, "out"):
            self.stage("eval_LJP_gold.py", provider.connect)
        self.assertEqual(provider.asked, [])

    def test_an_append_that_fails_leaves_the_file_as_it_was(self) -> None:
        path = self.root / "file"
        path.write_bytes(b"one\n")
        for room in range(len(b"two\n")):
            with FillingUp(path, room) as file, self.assertRaisesRegex(OSError, "full"):
                append(file, b"two\n")
            self.assertEqual(path.read_bytes(), b"one\n")
        with FillingUp(path, len(b"two\n")) as file:
            append(file, b"two\n")
        self.assertEqual(path.read_bytes(), b"one\ntwo\n")

    def test_a_write_that_fails_is_told_to_all_whose_lines_were_in_it(self) -> None:
        begun, release = threading.Event(), threading.Event()

        def sync(descriptor: int) -> None:
            begun.set()
            self.assertTrue(release.wait(60))
            (self.root / "file").unlink()
            (self.root / "file").mkdir()  # what comes next cannot be written

        file, failed = SyncedFile(self.root / "file", sync), list[bytes]()

        def save(line: bytes) -> None:
            try:
                file.append(line)
            except OSError:
                failed.append(line)

        threads = [threading.Thread(target=save, args=(line,)) for line in (b"a", b"b", b"c")]
        threads[0].start()
        self.assertTrue(begun.wait(60))
        for thread in threads[1:]:
            thread.start()
        while len(file.entries) < 2:
            pass
        release.set()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(failed), [b"b", b"c"])

    def test_an_answer_that_a_full_disk_refuses_leaves_no_half_line(self) -> None:
        path = self.root / "journal"
        journal = Journal(path)
        journal.append(b"one")
        journal.close()
        with FillingUp(path, 3) as full:
            journal.file = full
            with self.assertRaisesRegex(OSError, "full"):
                journal.append(b"two")
        journal.file = None
        with contextlib.closing(journal):
            journal.append(b"three")
        self.assertEqual(path.read_bytes(), b"one\nthree\n")

    def test_records_are_utf8_with_lf_and_one_object_a_line(self) -> None:
        self.run_all()
        for name in ARTIFACTS:
            raw = self.file(name).read_bytes()
            self.assertEqual(raw.count(b"\n"), 3)
            self.assertNotIn(b"\r", raw)
            self.assertIn("民间借贷纠纷".encode(), raw)
            for line in raw.split(b"\n")[:-1]:
                self.assertEqual(next(iter(json.loads(line))), "case_number")


if __name__ == "__main__":
    unittest.main()
