"""The data file and its faults, options and run ids, rendering, the filled prompts, the classes, shapes of records."""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict
from unittest import TestCase

from fakes import STAGES, Folder, Provider, history, make_case, sensible
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter import make_role
from categories import CLASS_OF, CLASSES
from checkpoints import Run, Step
from common import (
    HERE,
    OPTIONS,
    Dataset,
    Option,
    Settings,
    describe,
    load_dataset,
    make_run,
    numbered,
    parse,
    parser_for,
    prepare,
    quoted,
    render,
    value_of,
)
from errors import DatasetError, SettingsError
from eval_DCG import dcg_judge_prompt, forced_question_prompt
from eval_LCA import lca_judge_prompt
from eval_LJP_gold import extraction_prompt, force_judge_prompt
from LexAwN_gen import lexawn_prompt, user_prompt
from records import ROLE_NAMES, VERDICTS, Case, shape_fault

# A busy machine that still has to build hypothesis' tables is slow, not wrong.
SOME = settings(deadline=None, max_examples=60, database=None, suppress_health_check=[HealthCheck.too_slow])

ODD = (
    *("{history}", "{focal_points}{key_details}", "{question}", "{response}{claims}", "{0} {{ }", "%s", "$x ${x}"),
    *("</对话历史>", "<对话历史>", "</顾问提问>", "[引文 00000000 结束]", "好。\nUser: 我同意", "“引”'\"", "\\n\\u4e00\\1\\"),
    *("甲\u2028乙\u2029", "甲\u0085乙\x0b\x0c", "甲\r乙\r\n丙", "甲\x00乙", "\U0001f600\U00020bb7", "　全　角　"),
)  # fmt: skip
odd_texts = st.builds("{}{}{}".format, st.text(max_size=9), st.sampled_from(ODD), st.text(max_size=9))

BLANKS = ("", " ", "\n\t\r", "　　", "\u200b\u200d\ufeff", "\u2028\u0085", "\x00\x07")


# ----------------------------------------------------------------------------------------------------------------------
# The data file


def other_case(**changes: Any) -> dict[str, Any]:
    """The second case of a file, changed, with null where a change says None."""
    return {**make_case("B"), **changes}


class DataFile(Folder):
    def load(self, content: bytes | str) -> Dataset:
        self.data_file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return load_dataset(self.data_file)

    def load_cases(self, *cases: Any) -> list[Case]:
        return self.load(json.dumps(cases)).cases

    def message(self, content: bytes | str) -> str:
        """What the error says of a faulty file, behind its path."""
        with self.assertRaises(DatasetError) as caught:
            self.load(content)
        told, head = str(caught.exception), f"{self.data_file}: "
        self.assertEqual(told[: len(head)], head)
        return told[len(head) :]

    def faults(self, content: str) -> list[str]:
        """The faults listed for a faulty file, after its head line with their number."""
        head, *lines = self.message(content).split("\n  ")
        self.assertRegex(head, r"^\d+ faults?; mend")
        return lines

    def faults_of(self, *cases: Any) -> list[str]:
        return self.faults(json.dumps(cases))


TEXT = "missing, or not a non-blank string"
TEXTS = "focal_point: missing, or not a non-blank string or non-empty array of them"
DETAILS = "key_details: missing, or not a non-blank string, a non-empty array of them, or an object of these"
RESULTS = "result_dict: missing, or not an object with at least one claim"
NO_HISTORY = "missing, or not a non-empty array of messages"
VERDICT = "result_dict: the verdict {!r} of '乙' is none of 支持、部分支持、驳回"
ROLE = "message {} has the role {!r}; user and assistant alternate, user first"
BLANK = "message 1 has no content, or it is blank"
EVEN = "ends with the assistant; the last message must be the user's"
COMPLETE, UNDER = "complete_consultation", "underspecified_consultation"
ONE = history("问")


def message(role: Any, content: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": content}]


NOT_TEXTS: list[Any] = [*BLANKS, [], ["甲", ""], ["甲", "　"], [["甲"]], ["甲", 1], [{"甲": "乙"}], ["甲", None]]
NOT_ROLES: list[Any] = ["system", "assistant", "User", "user ", "tool", "", None, 1, ["user"]]
NOT_VERDICTS: list[Any] = ["", "不支持", "支持 ", "⽀持", "駁回", None, True, 0, 0.5, ["支持"], {"支持": 1}]
NOT_OBJECTS: list[Any] = [None, 1, "问", [], [make_case()]]
THREE, THRICE = history("问", "答", "问"), [*ONE, *ONE, *ONE]
FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    *(({"plaintiff_type": blank}, [f"plaintiff_type: {TEXT}"]) for blank in BLANKS),
    *(({"cause_of_action": blank}, [f"cause_of_action: {TEXT}"]) for blank in BLANKS),
    ({"cause_of_action": "杀人"}, ["cause_of_action: '杀人' is in no class; see categories.py"]),
    ({"cause_of_action": "离婚纠纷 "}, ["cause_of_action: '离婚纠纷 ' is in no class; see categories.py"]),
    *(({"focal_point": wrong}, [TEXTS]) for wrong in (*NOT_TEXTS, {"甲": "乙"})),
    *(({"key_details": wrong}, [DETAILS]) for wrong in (*NOT_TEXTS, {})),
    *(({"key_details": {"甲": wrong}}, [DETAILS]) for wrong in (*NOT_TEXTS, {"乙": "丙"}, None, 1)),
    *(({"key_details": {"甲": "乙", blank: "丙"}}, [DETAILS]) for blank in BLANKS),
    ({"result_dict": {}}, [RESULTS]),
    *(({"result_dict": {"甲": "支持", blank: "驳回"}}, ["result_dict: a claim is blank"]) for blank in BLANKS),
    *(({"result_dict": {"甲": "支持", "乙": wrong}}, [VERDICT.format(wrong)]) for wrong in NOT_VERDICTS),
    ({COMPLETE: []}, [f"{COMPLETE}: {NO_HISTORY}", f"{UNDER}: has 1 messages, the complete one 0"]),
    ({UNDER: []}, [f"{UNDER}: {NO_HISTORY}", f"{UNDER}: has 0 messages, the complete one 1"]),
    *(({COMPLETE: message("user", blank)}, [f"{COMPLETE}: {BLANK}"]) for blank in BLANKS),
    *(({UNDER: message("user", blank)}, [f"{UNDER}: {BLANK}"]) for blank in BLANKS),
    *(({COMPLETE: message(role, "问")}, [f"{COMPLETE}: {ROLE.format(1, role)}"]) for role in NOT_ROLES),
    *(({UNDER: message(role, "问")}, [f"{UNDER}: {ROLE.format(1, role)}"]) for role in NOT_ROLES),
    *(({COMPLETE: [wrong]}, [f"{COMPLETE}: message 1 is not an object"]) for wrong in NOT_OBJECTS),
    *(({UNDER: [wrong]}, [f"{UNDER}: message 1 is not an object"]) for wrong in NOT_OBJECTS),
    ({COMPLETE: THRICE, UNDER: THREE}, [f"{COMPLETE}: {ROLE.format(2, 'user')}"]),
    ({COMPLETE: THREE, UNDER: THRICE}, [f"{UNDER}: {ROLE.format(2, 'user')}"]),
    ({COMPLETE: THREE[:2], UNDER: THREE[:2]}, [f"{COMPLETE}: {EVEN}", f"{UNDER}: {EVEN}"]),
    ({COMPLETE: THREE}, [f"{UNDER}: has 1 messages, the complete one 3"]),
    ({UNDER: THREE}, [f"{UNDER}: has 3 messages, the complete one 1"]),
]

TWICE = "stands more than once"
HALF = "holds half a character (a lone surrogate)"
NO_NUMBER = "is not a number that JSON knows"
GRAMMAR = (  # a place in the case's JSON text, what stands there instead, the fault
    ('"自然人"', '"自然人", "plaintiff_type": "自然人"', f"case: the key 'plaintiff_type' {TWICE}"),
    ('"自然人"', r'"自然人", "plaintiff\u005ftype": "法人"', f"case: the key 'plaintiff_type' {TWICE}"),
    ('"部分支持"', '"部分支持", "甲": "支持", "甲": "驳回"', f"result_dict: the key '甲' {TWICE}"),
    ('["三月还过一半"]', '{"甲": "乙", "甲": "丙"}', f"key_details: the key '甲' {TWICE}"),
    ('"role": "user"', '"role": "user", "role": "user"', f"{COMPLETE}[1]: the key 'role' {TWICE}"),
    ('"自然人"', '"自然人", "extra": 1, "extra": 1', f"case: the key 'extra' {TWICE}"),
    ('"自然人"', '"自然人", "extra": [0, {"x": {"a": 1, "a": 2}}]', f"extra[2].x: the key 'a' {TWICE}"),
    ('"自然人"', '"自然人", "case": {"plaintiff_type": {"a": 1, "a": 2}}', f"case.plaintiff_type: the key 'a' {TWICE}"),
    ('"自然人"', '"自然人", "extra": NaN', f"extra: nan {NO_NUMBER}"),
    ('"自然人"', '"自然人", "extra": Infinity', f"extra: inf {NO_NUMBER}"),
    ('"自然人"', '"自然人", "extra": {"x": [1, -Infinity]}', f"extra.x[2]: -inf {NO_NUMBER}"),
    ('"自然人"', '"自然人", "extra": 1e999', f"extra: inf {NO_NUMBER}"),
    ('"自然人"', '"自然人", "extra": -1e999', f"extra: -inf {NO_NUMBER}"),
    ('"自然人"', r'"法人\ud800"', f"plaintiff_type: {HALF}"),
    ('"自然人"', r'"法人\udc00\ud800"', f"plaintiff_type: {HALF}"),
    ('"三月还过一半"', r'"甲", "\udfff乙"', f"key_details[2]: {HALF}"),
    ('"部分支持"', r'"部分支持", "甲\ud83d": "支持"', f"result_dict: a key: {HALF}"),
    ('"content": "', r'"content": "\ud83d', f"{COMPLETE}[1].content: {HALF}"),
    ('"自然人"', r'"自然人", "extra": "\ud83d"', f"extra: {HALF}"),
)  # fmt: skip


class FaultsOfACase(DataFile):
    def test_each_rule_broken_alone_is_told_with_position_number_field_and_reason(self) -> None:
        for changes, expected in FAULTS:
            with self.subTest(changes=changes):
                found = self.faults_of(make_case("A"), other_case(**changes))
                self.assertEqual(found, [f"case 2 (B), {fault}" for fault in expected])

    def test_a_case_without_a_usable_number_is_told_by_its_position(self) -> None:
        for number in NOT_TEXTS:
            with self.subTest(number=number):
                found = self.faults_of(make_case("A"), other_case(case_number=number))
                self.assertEqual(found, [f"case 2, case_number: {TEXT}"])

    def test_a_case_that_is_no_object_is_told_by_its_position(self) -> None:
        for case in NOT_OBJECTS:
            with self.subTest(case=case):
                self.assertEqual(self.faults_of(make_case("A"), case), ["case 2, is not an object"])

    def test_what_the_grammar_of_json_lets_pass_is_a_fault(self) -> None:
        case = json.dumps(make_case("B"), ensure_ascii=False)
        for place, instead, fault in GRAMMAR:
            with self.subTest(instead=instead):
                self.assertIn(place, case)
                found = self.faults(f"[{case.replace('B', 'A')},{case.replace(place, instead, 1)}]")
                self.assertEqual(found, [f"case 2 (B), {fault}"])

    def test_every_case_that_bears_a_number_twice_is_told(self) -> None:
        found = self.faults_of(make_case("B"), make_case("A"), make_case("B"), make_case("B"))
        self.assertEqual(found, [f"case {n} (B), case_number: stands 3 times in the file" for n in (1, 3, 4)])

    def test_all_faults_of_a_file_are_told_at_once_in_its_order(self) -> None:
        bad = message("system", "问")
        broken = {"plaintiff_type": "", "focal_point": [], "result_dict": {"甲": "是"}, COMPLETE: bad}
        found = self.faults_of(other_case(**broken), make_case("A"), 7, make_case("B", cause_of_action="杀人"))
        self.assertEqual(
            found,
            [
                f"case 1 (B), plaintiff_type: {TEXT}",
                f"case 1 (B), {TEXTS}",
                "case 1 (B), result_dict: the verdict '是' of '甲' is none of 支持、部分支持、驳回",
                f"case 1 (B), {COMPLETE}: {ROLE.format(1, 'system')}",
                "case 1 (B), case_number: stands 2 times in the file",
                "case 3, is not an object",
                "case 4 (B), cause_of_action: '杀人' is in no class; see categories.py",
                "case 4 (B), case_number: stands 2 times in the file",
            ],
        )

    def test_twenty_faults_are_shown_and_the_rest_are_counted(self) -> None:
        for count, last in ((20, "case 20, is not an object"), (21, "… and 1 more"), (45, "… and 25 more")):
            with self.subTest(count=count):
                head, *lines = self.message(json.dumps([0] * count)).split("\n  ")
                self.assertRegex(head, f"^{count} faults")
                self.assertEqual(lines[:20], [f"case {n}, is not an object" for n in range(1, 21)])
                self.assertEqual((len(lines), lines[-1]), (min(count, 21), last))


JSON_LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | odd_texts
JSON_TYPES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "bool": st.booleans(),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "string": odd_texts,
    "array": st.lists(JSON_LEAVES, max_size=3),
    "object": st.dictionaries(odd_texts, JSON_LEAVES, max_size=3),
}
FIELDS: dict[str, tuple[str, ...]] = {  # the JSON types that each field may have
    "case_number": ("string",),
    "cause_of_action": ("string",),
    "plaintiff_type": ("string",),
    "focal_point": ("string", "array"),
    "key_details": ("string", "array", "object"),
    "result_dict": ("object",),
    COMPLETE: ("array",),
    UNDER: ("array",),
}


class ARequiredField(DataFile):
    def named(self, case: Mapping[str, Any]) -> str:
        """The field that the one fault of the second case names."""
        (fault,) = self.faults_of(make_case("A"), case)
        found = re.match(r"case 2(?: \(B\))?, (\w+): ", fault)
        self.assertIsNotNone(found, fault)
        return found[1] if found else ""

    def test_a_missing_field_is_a_fault_that_names_it(self) -> None:
        for field in FIELDS:
            with self.subTest(field=field):
                case = other_case()
                del case[field]
                self.assertEqual(self.named(case), field)

    @SOME
    @given(
        st.data(),
        st.sampled_from([(f, kind) for f, right in FIELDS.items() for kind in JSON_TYPES if kind not in right]),
    )
    def test_a_field_of_another_json_type_is_a_fault_that_names_it(
        self, data: st.DataObject, pair: tuple[str, str]
    ) -> None:
        field, kind = pair
        self.assertEqual(self.named(other_case(**{field: data.draw(JSON_TYPES[kind])})), field)

    @SOME
    @given(st.data(), st.sampled_from((COMPLETE, UNDER)), st.sampled_from(("role", "content", "verdict", "message")))
    def test_a_part_of_another_json_type_is_a_fault_of_its_field(
        self, data: st.DataObject, key: str, part: str
    ) -> None:
        right = "object" if part == "message" else "string"
        wrong = data.draw(
            st.sampled_from([kind for kind in JSON_TYPES if kind != right]).flatmap(JSON_TYPES.__getitem__)
        )
        changes: dict[str, dict[str, Any]] = {
            "role": {key: message(wrong, "问")},
            "content": {key: message("user", wrong)},
            "verdict": {"result_dict": {"甲": wrong}},
            "message": {key: [wrong]},
        }
        self.assertEqual(self.named(other_case(**changes[part])), "result_dict" if part == "verdict" else key)


class FaultsOfAFile(DataFile):
    def test_a_file_without_an_array_of_cases_is_refused(self) -> None:
        for content in ("[]", "{}", json.dumps(make_case()), '{"a": 1, "a": 2}', "null", '"[]"', "1", "NaN"):
            with self.subTest(content=content):
                self.assertEqual(self.faults(content), ["the file is not an array of at least one case"])

    def test_what_is_no_utf8_is_told_by_what_it_is(self) -> None:
        text = json.dumps([make_case()], ensure_ascii=False)
        refused = "not a JSON data file: not UTF-8"
        for name, content, expected in (
            ("UTF-16 little", b"\xff\xfe" + text.encode("utf-16-le"), f"{refused} but UTF-16; save it as UTF-8"),
            ("UTF-16 big", b"\xfe\xff" + text.encode("utf-16-be"), f"{refused} but UTF-16; save it as UTF-8"),
            ("GBK", '["案'.encode("gbk"), f"{refused} (byte 2); save it as UTF-8"),
            ("cut character", '["案'.encode()[:-1], f"{refused} (byte 2); save it as UTF-8"),
            ("surrogate bytes", b'["\xed\xa0\x80"]', f"{refused} (byte 2); save it as UTF-8"),
        ):
            with self.subTest(name):
                self.assertEqual(self.message(content), expected)

    def test_what_is_no_json_is_refused(self) -> None:
        text = json.dumps([make_case()])
        for name, content in (
            ("empty", ""),
            ("blank", "\n \n"),
            ("BOM alone", "\ufeff"),
            ("second BOM", f"\ufeff\ufeff{text}"),
            ("cut", text[:-1]),
            ("two values", text + text),
            ("JSON Lines", json.dumps(make_case("1")) + "\n" + json.dumps(make_case("2")) + "\n"),
            ("comma at the end", text[:-1] + ",]"),
            ("single quotes", text.replace('"', "'")),
            ("raw line break in a string", '["\n"]'),
            ("comment", f"// {text}"),
        ):
            with self.subTest(name):
                self.assertRegex(self.message(content), "^not a JSON data file: .")

    def test_an_integer_too_long_to_read_is_a_fault_and_no_crash(self) -> None:
        # The first 3.10 releases have no such bound and read it.
        self.assertRegex(self.message(f"[{'9' * 50_000}]"), "^not a JSON data file: .|case 1, is not an object$")

    def test_endless_nesting_is_a_fault_and_no_crash(self) -> None:
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            for name, content in (("closed", opened * 200_000 + "1" + closed * 200_000), ("open", opened * 200_000)):
                with self.subTest(opened + name):
                    self.assertEqual(self.message(content), "nested too deeply to be a data file")

    def test_a_file_that_cannot_be_read_is_told_with_the_system_s_reason(self) -> None:
        missing = self.root / "none.json"
        for path, reason in ((missing, re.escape(os.strerror(errno.ENOENT))), (self.root, ".+")):
            with self.subTest(path), self.assertRaises(DatasetError) as caught:
                load_dataset(path)
            told = f"^{re.escape(str(path))}: cannot be read \\({reason}\\); name a data file with --dataset$"
            self.assertRegex(str(caught.exception), told)


def expected_case(raw: Mapping[str, Any]) -> Case:
    """What a valid case is read as, told anew: lists from either form, a detail by focal point behind it."""

    def listed(value: Any) -> list[str]:
        return value if isinstance(value, list) else [value]

    details = raw["key_details"]
    if isinstance(details, dict):
        details = [f"{focal}：{detail}" for focal, some in details.items() for detail in listed(some)]
    return Case(
        raw["case_number"],
        raw["cause_of_action"],
        raw["plaintiff_type"],
        listed(raw["focal_point"]),
        listed(details),
        raw["result_dict"],
        raw[COMPLETE],
        raw[UNDER],
    )


@st.composite
def raw_cases(draw: st.DrawFn) -> dict[str, Any]:
    one_or_more = odd_texts | st.lists(odd_texts, min_size=1, max_size=3)
    length = draw(st.sampled_from((1, 3, 5)))
    contents = st.lists(odd_texts, min_size=length, max_size=length)
    return {
        "case_number": draw(odd_texts),
        "cause_of_action": draw(st.sampled_from(sorted(CLASS_OF))),
        "plaintiff_type": draw(odd_texts),
        "focal_point": draw(one_or_more),
        "key_details": draw(one_or_more | st.dictionaries(odd_texts, one_or_more, min_size=1, max_size=3)),
        "result_dict": draw(st.dictionaries(odd_texts, st.sampled_from(VERDICTS), min_size=1, max_size=4)),
        COMPLETE: history(*draw(contents)),
        UNDER: history(*draw(contents)),
    }


class AValidFile(DataFile):
    @SOME
    @given(
        st.lists(raw_cases(), min_size=1, max_size=3, unique_by=lambda case: str(case["case_number"])),
        st.booleans(),
        st.sampled_from((None, 1)),
        st.sampled_from(("", "\ufeff")),
    )
    def test_it_always_loads_with_every_text_unchanged_and_in_order(
        self, raw: list[dict[str, Any]], ascii_only: bool, indent: int | None, bom: str
    ) -> None:
        text = bom + json.dumps(raw, ensure_ascii=ascii_only, indent=indent)
        data = self.load(text)
        self.assertEqual(data.cases, [expected_case(case) for case in raw])
        self.assertEqual([[*c.verdicts.items()] for c in data.cases], [[*r["result_dict"].items()] for r in raw])
        self.assertEqual(data.sha256, hashlib.sha256(text.encode("utf-8")).hexdigest())

    def test_a_byte_order_mark_and_crlf_change_no_case(self) -> None:
        text = json.dumps(self.cases, ensure_ascii=False, indent=2)
        plain = self.load(text).cases
        for content in ("\ufeff" + text, text.replace("\n", "\r\n"), "\ufeff" + text.replace("\n", "\r\n") + "\r\n"):
            self.assertEqual(self.load(content).cases, plain)

    def test_focal_points_and_details_are_read_in_every_form_and_order(self) -> None:
        for given_as, expected in (
            ("甲", ["甲"]),
            (["乙", "甲", "甲"], ["乙", "甲", "甲"]),
            ("甲；乙\n丙", ["甲；乙\n丙"]),
        ):
            with self.subTest(given_as=given_as):
                (case,) = self.load_cases(make_case(focal_point=given_as, key_details=given_as))
                self.assertEqual((case.focal_points, case.key_details), (expected, expected))
        for by_focal, expected in (
            ({"乙": "二", "甲": "一"}, ["乙：二", "甲：一"]),
            ({"10": "十", "2": "二", "1": "一"}, ["10：十", "2：二", "1：一"]),
            ({"乙": ["二", "一"], "甲": "三", "丙": ["四"]}, ["乙：二", "乙：一", "甲：三", "丙：四"]),
        ):
            with self.subTest(by_focal=by_focal):
                (case,) = self.load_cases(make_case(key_details=by_focal))
                self.assertEqual(case.key_details, expected)

    def test_claims_keep_the_file_s_order(self) -> None:
        results = {"10": "驳回", "2": "支持", "1": "部分支持", "乙": "驳回", "一": "支持"}
        (case,) = self.load_cases(make_case(result_dict=results))
        self.assertEqual([*case.verdicts.items()], [*results.items()])

    def test_further_keys_of_case_and_message_are_kept_out_of_the_way(self) -> None:
        extra = {
            "extra": {"result_dict": None, "half": 0.5, "": [" ", None, True, -0.0, 10**400]},
            "case": {"a": {"b": 1}},
        }
        messages = [{**message, "name": "甲", "tokens": 3} for message in make_case()[COMPLETE]]
        (case,) = self.load_cases({**extra, **make_case(), COMPLETE: messages})
        self.assertEqual(case, expected_case(make_case()))

    def test_escaped_pairs_of_surrogates_are_one_character(self) -> None:
        text = json.dumps([make_case(plaintiff_type="\U0001f600")])
        self.assertIn(r"\ud83d\ude00", text)
        self.assertEqual(self.load(text).cases[0].plaintiff_type, "\U0001f600")

    def test_equal_numbers_but_for_their_writing_and_equal_claims_of_two_cases_are_no_fault(self) -> None:
        cases = self.load_cases(make_case("1"), make_case("01"), make_case("１"))
        self.assertEqual([case.number for case in cases], ["1", "01", "１"])


class TheCommand(DataFile):
    def run_it(self, *options: str, **variables: str) -> tuple[int, str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("LEXPILOT_")}
        env |= {"PYTHONIOENCODING": "utf-8", **variables}
        command = [sys.executable, "-B", str(HERE / "common.py"), *options]
        done = subprocess.run(command, capture_output=True, env=env, cwd=self.root, encoding="utf-8", check=False)
        return done.returncode, done.stdout, done.stderr

    def test_a_file_is_described_in_figures(self) -> None:
        first = make_case("1", result_dict={"甲": "支持", "乙": "驳回", "丙": "支持"})
        second = {**make_case("2", cause_of_action="离婚纠纷"), COMPLETE: THREE, UNDER: THREE}
        data = self.load(json.dumps([first, second, make_case("3")]))
        expected = (
            "cases      3\n"
            "histories  6\n"
            "causes     2\n"
            "class         0  人格权纠纷\n"
            "class         1  婚姻家庭、继承纠纷\n"
            "class         0  物权纠纷\n"
            "class         2  合同、准合同纠纷\n"
            "class         0  劳动争议、人事争议、新就业形态用工纠纷\n"
            "class         0  侵权责任纠纷\n"
            "messages      2 pairs of histories with 1 each\n"
            "messages      1 pairs of histories with 3 each\n"
            "verdict       2 of 5 claims (40.0%)  支持\n"
            "verdict       2 of 5 claims (40.0%)  部分支持\n"
            "verdict       1 of 5 claims (20.0%)  驳回\n"
            f"sha256     {hashlib.sha256(self.data_file.read_bytes()).hexdigest()}"
        )
        self.assertEqual(describe(data), expected)
        by_option = self.run_it("--dataset", str(self.data_file))
        self.assertEqual(by_option, (0, f"{expected}\n", ""))
        self.assertEqual(self.run_it(LEXPILOT_DATASET=str(self.data_file)), by_option)
        self.assertEqual(self.run_it("--dataset", str(self.data_file), LEXPILOT_DATASET="none.json"), by_option)

    def test_a_faulty_file_ends_it_with_status_1_and_the_faults_on_stderr(self) -> None:
        path = self.write_cases([make_case("1"), make_case("2", plaintiff_type=" "), 0])
        status, out, told = self.run_it("--dataset", str(path))
        head, *lines = told.split("\n")
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(head, f"^error: {re.escape(str(path))}: 2 faults")
        self.assertEqual(lines, [f"  case 2 (2), plaintiff_type: {TEXT}", "  case 3, is not an object", ""])

    def test_half_a_character_in_a_name_or_a_poor_console_is_no_crash(self) -> None:
        self.load_cases(make_case("案"))
        half_file = self.root / "half.json"
        half_file.write_text(json.dumps([make_case("a\ud800", plaintiff_type=" ")]), encoding="utf-8")
        poor = self.run_it("--dataset", str(self.data_file), PYTHONIOENCODING="ascii")
        half = self.run_it("--dataset", str(half_file))
        self.assertEqual((poor[0], poor[2], "?" in poor[1]), (0, "", True))
        self.assertEqual((half[0], half[1], half[2].count("case 1 (a?)"), half[2].count("Traceback")), (1, "", 4, 0))

    def test_wrong_usage_ends_it_with_status_2_and_help_with_0(self) -> None:
        self.assertEqual(self.run_it("--help")[0::2], (0, ""))
        for options in (["--data", "x"], ["--model", "m"], ["x.json"], ["--dataset"]):
            with self.subTest(options=options):
                status, out, told = self.run_it(*options)
                self.assertEqual((status, out, told[:17]), (2, "", "usage: common.py "))


# ----------------------------------------------------------------------------------------------------------------------
# Options


class OptionRow(NamedTuple):
    flag: str
    default: Any
    given: str
    value: Any
    in_variable: str
    value_in_variable: Any
    bad: tuple[str, ...]


BAD_TEXTS = ("", " ", "　", "a\nb", "a\x07")
BAD_COUNTS = ("", " ", "x", "1.5", "1e3", "nan", "inf", "-1", "0x10", "1 2", "九")
BAD_NUMBERS = ("", " ", "x", "nan", "inf", "-inf", "1e999", "-0.1", "0,7", "九")
BAD_ANSWERS = ("", " ", "x", "2", "ja", "on ")
BAD_PARAMS = (
    *("", " ", "x", "1", "null", "[]", '"a"', "{", "{seed: 1}", "{'seed': 1}", '{"seed": 1} x', '{"a": 1, "a": 2}'),
    *(
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": {"b": -Infinity}}',
        '{"a": "\\ud800"}',
        "[" * 9999,
        '{"a": ' + "9" * 9999 + "}",
    ),
    *(
        '{"messages": []}',
        '{"model": "m"}',
        '{"model": null}',
        '{"stream": true}',
        '{"n": 2}',
        '{"extra_body": {"a": 1}}',
    ),
)
OPTION_ROWS = (
    OptionRow("--model", None, "a b", "a b", "b", "b", BAD_TEXTS),
    OptionRow("--user-model", "DeepSeek-V4.1-Flash", "甲/乙:1", "甲/乙:1", "b", "b", BAD_TEXTS),
    OptionRow("--judge-model", "DeepSeek-R1", "a", "a", "b", "b", BAD_TEXTS),
    OptionRow("--dataset", HERE / "LexPilot_release_multiturn.json", "甲 a", Path("甲 a"), "b", Path("b"), ()),
    OptionRow("--output-root", HERE, "甲 a", Path("甲 a"), "b", Path("b"), ()),
    OptionRow("--run-id", "run1", "a", "a", "b", "b", ("", " ", "a b", "../a")),
    OptionRow("--limit", None, "1", 1, "36", 36, (*BAD_COUNTS, "0")),
    OptionRow("--temperature", 0.7, "0", 0.0, "1.5", 1.5, BAD_NUMBERS),
    OptionRow("--judge-temperature", 0.1, "0", 0.0, "1.5", 1.5, BAD_NUMBERS),
    OptionRow("--max-tokens", 8192, "1", 1, "16000", 16000, (*BAD_COUNTS, "0")),
    *(
        OptionRow(f"--{role}-params", {}, '{"seed": 1}', {"seed": 1}, '{"n": null}', {"n": None}, BAD_PARAMS)
        for role in ("eval", "user", "judge")
    ),
    OptionRow("--timeout", 120.0, "0.5", 0.5, "600", 600.0, (*BAD_NUMBERS, "0")),
    OptionRow("--retries", 3, "0", 0, "30", 30, BAD_COUNTS),
    OptionRow("--parallel", 8, "1", 1, "64", 64, (*BAD_COUNTS, "0")),
    OptionRow("--record-blocked", False, "yes", True, "1", True, BAD_ANSWERS),
    OptionRow("--plan", False, "true", True, "0", False, BAD_ANSWERS),
    OptionRow("--prices", None, "甲 a", Path("甲 a"), "b", Path("b"), ()),
)
OPTION_OF = {option.flag: option for option in OPTIONS}


class TestsOfOptions(TestCase):
    def value(self, flag: str, argv: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Any:
        return value_of(OPTION_OF[flag], parser_for("x.py", "about", OPTIONS).parse_args(argv), env or {})

    def refused(self, *argv: str) -> str:
        """What wrong usage is told, after its exit with status 2."""
        told = io.StringIO()
        with contextlib.redirect_stderr(told), self.assertRaises(SystemExit) as caught:
            parser_for("x.py", "about", OPTIONS).parse_args(argv)
        self.assertEqual(caught.exception.code, 2)
        return told.getvalue()

    def told_of_variable(self, flag: str, text: str) -> str:
        with self.assertRaises(SettingsError) as caught:
            self.value(flag, env={OPTION_OF[flag].variable: text})
        return str(caught.exception)


class AnOption(TestsOfOptions):
    def test_every_option_stands_in_the_table_and_in_the_settings_in_order(self) -> None:
        flags = [option.flag for option in OPTIONS]
        self.assertEqual([row.flag for row in OPTION_ROWS], flags)
        self.assertEqual([*Settings._fields], [flag[2:].replace("-", "_") for flag in flags])
        self.assertEqual([o.variable for o in OPTIONS], [f"LEXPILOT_{f[2:].replace('-', '_').upper()}" for f in flags])

    def test_it_beats_its_variable_which_beats_the_default(self) -> None:
        for row in OPTION_ROWS:
            with self.subTest(row.flag):
                env = {OPTION_OF[row.flag].variable: row.in_variable}
                self.assertEqual(self.value(row.flag, [row.flag, row.given], env), row.value)
                self.assertEqual(self.value(row.flag, [f"{row.flag}={row.given}"]), row.value)
                self.assertEqual(self.value(row.flag, env=env), row.value_in_variable)
                self.assertEqual(self.value(row.flag), row.default)

    def test_a_blank_variable_counts_as_unset_and_blanks_around_a_value_do_not_count(self) -> None:
        for row in OPTION_ROWS:
            variable = OPTION_OF[row.flag].variable
            for blank in ("", " ", "\t\r\n", "　"):
                with self.subTest(row.flag, blank=blank):
                    self.assertEqual(self.value(row.flag, env={variable: blank}), row.default)
                    self.assertEqual(
                        self.value(row.flag, env={variable: f"{blank}{row.in_variable}{blank}"}), row.value_in_variable
                    )

    def test_a_bad_value_is_wrong_usage_and_a_bad_variable_a_fault_of_settings_that_names_it(self) -> None:
        for row in OPTION_ROWS:
            variable = OPTION_OF[row.flag].variable
            for bad in row.bad:
                with self.subTest(row.flag, bad=bad):
                    self.assertIn(f"x.py: error: argument {row.flag}: ", self.refused(f"{row.flag}={bad}"))
                    if bad.strip():
                        self.assertRegex(self.told_of_variable(row.flag, bad), f"^variable {variable}: .")
                        self.assertEqual(self.value(row.flag, [row.flag, row.given], {variable: bad}), row.value)

    def test_a_number_beyond_all_bounds_is_no_traceback(self) -> None:
        for row in OPTION_ROWS:
            for huge in ("9" * 400, "9" * 9999) if isinstance(row.value, (int, float)) else ():
                with self.subTest(row.flag, digits=len(huge)):
                    self.assertIn(f"argument {row.flag}: ", self.refused(f"{row.flag}={huge}"))
                    self.assertRegex(
                        self.told_of_variable(row.flag, huge), f"^variable {OPTION_OF[row.flag].variable}: ."
                    )

    def test_model_names_may_hold_any_character_that_shows_and_a_no_break_space(self) -> None:
        for name in ("org/model:free", "模型 ✅ ²", "a\u00a0b", "\U0001f600", "{x} %s"):
            for flag in ("--model", "--user-model", "--judge-model"):
                with self.subTest(flag, name=name):
                    self.assertEqual(self.value(flag, env={OPTION_OF[flag].variable: name}), name)

    def test_abbreviations_unknown_options_and_stray_words_are_wrong_usage(self) -> None:
        for row in OPTION_ROWS:
            with self.subTest(row.flag):
                self.assertIn(f"unrecognized arguments: {row.flag[:-1]} ", self.refused(row.flag[:-1], row.given))
                if OPTION_OF[row.flag].alone is None:
                    self.refused(row.flag)
        for argv in (["--mode", "m"], ["--api-key", "k"], ["stray"], ["--model", "m", "stray"]):
            with self.subTest(argv=argv):
                self.refused(*argv)

    def test_the_help_of_every_stage_names_each_variable_with_its_default(self) -> None:
        for script, main in STAGES.items():
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), self.assertRaises(SystemExit) as caught:
                main(["--help"])
            self.assertEqual(caught.exception.code, 0)
            text = "".join(shown.getvalue().split())
            for row in OPTION_ROWS:
                default = "".join(str("none" if row.default in (None, {}, False) else row.default).split())
                with self.subTest(script, flag=row.flag):
                    self.assertEqual(text.count(f"[{OPTION_OF[row.flag].variable};default:{default}]"), 1)

    def test_a_percent_sign_in_a_default_path_does_not_break_the_help(self) -> None:
        default = Path("100% da") / "data.json"
        option = Option("--dataset", "LEXPILOT_DATASET", Path, default, "data file")
        self.assertIn(str(default), " ".join(parser_for("x.py", "about", [option]).format_help().split()))


class Params(TestsOfOptions):
    def test_fields_reach_the_request_and_null_removes_one(self) -> None:
        for text, changed in (
            ("{}", {}),
            ('{"n": null}', {"n": None}),
            ('{"n": 1, "top_p": 0.5}', {"top_p": 0.5}),
            ('{"max_tokens": null, "max_completion_tokens": 9}', {"max_tokens": None, "max_completion_tokens": 9}),
            ('{"temperature": 1}', {"temperature": 1}),
            (
                '{"chat_template_kwargs": {"enable_thinking": false}}',
                {"chat_template_kwargs": {"enable_thinking": False}},
            ),
            ('{"a": {"b": null, "c": [1, "思", true]}}', {"a": {"b": None, "c": [1, "思", True]}}),
        ):
            with self.subTest(text):
                params = self.value("--eval-params", ["--eval-params", text])
                usual = {"model": "m", "messages": [{"role": "user", "content": "问"}], "temperature": 0.7}
                expected = {**usual, "max_tokens": 5, "n": 1, **changed}
                role = make_role("evaluated", "m", 0.7, 5, 9.0, {}, params)
                self.assertEqual(role.request("问"), {k: v for k, v in expected.items() if v is not None})

    def test_a_shell_that_took_the_quotes_is_told_of(self) -> None:
        self.assertIn("set the variable instead", " ".join(self.refused("--eval-params", "{seed: 1}").split()))

    def test_the_key_may_not_stand_there_as_they_are_written_to_files(self) -> None:
        with self.assertRaisesRegex(SettingsError, "^LEXPILOT_JUDGE_PARAMS: holds the key"):
            make_role("judge", "m", 0.7, 5, 9.0, {"OPENAI_API_KEY": "sk-12345"}, {"a": ["x sk-12345"]})


GOOD_RUN_IDS = (
    *("run1", "R", "0", "a.b", "a..b", "a-", "a_", "2026-01-01", "1.0", "x" * 64),
    *("console", "com", "com10", "con1", "nul-1", "auxiliary", "a.con", "a-nul.txt", "lpt", "prn_1"),
)
BAD_RUN_IDS = (
    *("CON", "con", "Con.txt", "nul", "nul.txt", "NUL.tar.gz", "aux.a", "PRN", "com1", "COM9.log", "lpt1", "LPT9.x"),
    *(
        "",
        " ",
        "a ",
        " a",
        "a b",
        "a.",
        "a..",
        ".",
        "..",
        ".a",
        "-a",
        "_a",
        "x" * 65,
        "x" * 63 + "..",
        "a/b",
        "/a",
        "a\\b",
    ),
    *("a:b", "a*", "a?", "a|b", "a<b", 'a"b', "a\n", "a\nb", "a\tb", "a\x00", "a~", "a%b", "a+b", "a,b", "a@b"),
    *("民事", "a民", "é", "ａ", "１", "a\u200b", "\U0001f600", "{run}", "$x"),
)


class ARunId(TestsOfOptions):
    def test_a_name_that_is_one_folder_on_every_system_is_taken_as_it_is(self) -> None:
        for run_id in GOOD_RUN_IDS:
            with self.subTest(run_id):
                self.assertEqual(self.value("--run-id", ["--run-id", run_id]), run_id)
                self.assertEqual(self.value("--run-id", env={"LEXPILOT_RUN_ID": run_id}), run_id)

    def test_any_other_name_is_refused_with_the_name_shown(self) -> None:
        for run_id in BAD_RUN_IDS:
            with self.subTest(run_id=run_id):
                self.assertIn(f"argument --run-id: {run_id!r} is no folder name", self.refused(f"--run-id={run_id}"))
                if run_id == run_id.strip() != "":
                    told = self.told_of_variable("--run-id", run_id)
                    self.assertRegex(told, f"^variable LEXPILOT_RUN_ID: {re.escape(repr(run_id))} is no folder name")


class TheStartOfAStage(Folder):
    def begin(self, *argv: str, **env: str) -> tuple[Run, str]:
        """A run begun, and what was said on stderr; nothing may be asked or written."""
        provider, said = Provider(sensible), io.StringIO()
        with contextlib.redirect_stderr(said):
            given = parse(parser_for("x.py", "about", OPTIONS), argv)
            chosen = Settings(*(value_of(option, given, env) for option in OPTIONS))
            run = make_run(chosen, load_dataset(chosen.dataset), provider.connect, env)
            run.check_settings()
            prepare(run, [Step("a1", ROLE_NAMES, lambda case, earlier, models: {}, lambda case, earlier, replies: ())])
        self.assertEqual(provider.asked, [])
        self.assertEqual([path.name for path in self.root.iterdir()], ["data.json"])
        return run, said.getvalue()

    def test_every_setting_reaches_the_run_and_an_option_beats_its_variable(self) -> None:
        out = self.root / "out"
        variables = {
            "LEXPILOT_MODEL": " 甲 ",
            "LEXPILOT_USER_MODEL": "乙",
            "LEXPILOT_JUDGE_MODEL": "丙",
            "LEXPILOT_DATASET": str(self.data_file),
            "LEXPILOT_OUTPUT_ROOT": str(out),
            "LEXPILOT_RUN_ID": "r2",
            "LEXPILOT_LIMIT": "2",
            "LEXPILOT_TEMPERATURE": "0.5",
            "LEXPILOT_JUDGE_TEMPERATURE": "0.25",
            "LEXPILOT_MAX_TOKENS": "77",
            "LEXPILOT_TIMEOUT": "9.5",
            "LEXPILOT_RETRIES": "0",
            "LEXPILOT_PARALLEL": "3",
            "LEXPILOT_EVAL_PARAMS": '{"top_p": 0.9}',
            "LEXPILOT_USER_PARAMS": '{"n": null}',
            "LEXPILOT_USER_BASE_URL": "http://localhost:8080/v1/",
        }
        run, _ = self.begin("--run-id", "r3", "--judge-model", "丁", **variables)
        url = "https://api.openai.com/v1"
        self.assertEqual(
            {key: value for key, value in run.manifest.items() if key != "code_sha256"},
            {
                "run_id": "r3",
                "dataset_sha256": hashlib.sha256(self.data_file.read_bytes()).hexdigest(),
                "cases": ["1", "2"],
                "models": {"evaluated": "甲", "user": "乙", "judge": "丁"},
                "endpoints": {"evaluated": url, "user": "http://localhost:8080/v1", "judge": url},
                "temperature": 0.5,
                "judge_temperature": 0.25,
                "max_tokens": 77,
                "params": {"evaluated": {"top_p": 0.9}, "user": {"n": None}, "judge": {}},
            },
        )
        self.assertEqual((run.root, run.places.limit, [case.number for case in run.cases]), (out, 3, ["1", "2"]))
        for name, temperature in zip(ROLE_NAMES, (0.5, 0.5, 0.25), strict=True):
            role = run.channels[name].role
            self.assertEqual((role.name, role.temperature, role.max_tokens, role.timeout), (name, temperature, 77, 9.5))
            self.assertEqual(run.channels[name].retries, 0)

    def test_a_limit_selects_the_first_cases_and_one_beyond_the_file_all(self) -> None:
        for limit, expected in (("1", ["1"]), ("3", ["1", "2", "3"]), ("99", ["1", "2", "3"])):
            run, _ = self.begin(*self.options("--limit", limit))
            self.assertEqual(([case.number for case in run.cases], run.manifest["cases"]), (expected, expected))

    def test_without_an_evaluated_model_it_says_what_to_set(self) -> None:
        for env in ({}, {"LEXPILOT_MODEL": " \n"}):
            with self.assertRaises(SettingsError) as caught:
                self.begin("--dataset", str(self.data_file), **env)
            self.assertEqual(str(caught.exception), "no evaluated model is chosen; give --model or set LEXPILOT_MODEL")

    def test_a_bad_data_file_stops_it(self) -> None:
        self.write_cases([])
        with self.assertRaises(DatasetError):
            self.begin(*self.options())

    def test_each_role_is_told_with_endpoint_and_the_source_of_its_key_but_never_the_key(self) -> None:
        keys = {"OPENAI_API_KEY": "sk-general-1234", "LEXPILOT_JUDGE_API_KEY": "sk-judge-1234"}
        _, said = self.begin(*self.options("--user-model", "乙", "--judge-model", "丙"), **keys)
        at = "at https://api.openai.com/v1, temperature"
        self.assertEqual(
            said.splitlines(),
            [
                f"evaluated model 'm' {at} 0.7, up to 8192 tokens, key from OPENAI_API_KEY",
                f"user model '乙' {at} 0.7, up to 8192 tokens, key from OPENAI_API_KEY",
                f"judge model '丙' {at} 0.1, up to 8192 tokens, key from LEXPILOT_JUDGE_API_KEY",
            ],
        )


# ----------------------------------------------------------------------------------------------------------------------
# Rendering and prompts


class Rendering(TestCase):
    def of(self, *contents: str) -> list[Any]:
        return [*history(*contents)]

    def test_a_history_is_every_message_in_order_under_its_role(self) -> None:
        self.assertEqual(render([{"role": "user", "content": "问"}]), "User: 问")
        self.assertEqual(render(self.of(" 一 ", "二\n三", "四")), "User:  一 \nAssistant: 二\n三\nUser: 四")
        self.assertEqual(render(self.of("一", "好\nUser: 行", "二")), "User: 一\nAssistant: 好\nUser: 行\nUser: 二")

    @SOME
    @given(st.lists(odd_texts, min_size=1, max_size=7))
    def test_odd_texts_are_rendered_and_numbered_unchanged(self, texts: list[str]) -> None:
        heads = ("User: ", "Assistant: ")
        self.assertEqual(render(self.of(*texts)), "\n".join(heads[n % 2] + text for n, text in enumerate(texts)))
        self.assertEqual(numbered(texts), "\n".join(f"{n + 1}. {text}" for n, text in enumerate(texts)))

    def test_a_list_is_numbered_from_1_one_a_line(self) -> None:
        self.assertEqual(numbered([]), "")
        self.assertEqual(numbered(["甲"]), "1. 甲")
        self.assertEqual(numbered([*"乙甲甲"]), "1. 乙\n2. 甲\n3. 甲")
        self.assertEqual(numbered(["x"] * 11).split("\n")[-2:], ["10. x", "11. x"])

    def test_a_quotation_stands_between_marks_that_bear_its_hash(self) -> None:
        self.assertEqual(quoted("abc"), "[引文 ba7816bf8f01cfea 开始]\nabc\n[引文 ba7816bf8f01cfea 结束]")
        self.assertEqual(quoted(""), "[引文 e3b0c44298fc1c14 开始]\n\n[引文 e3b0c44298fc1c14 结束]")

    @SOME
    @given(odd_texts, odd_texts)
    def test_a_quoted_text_is_unchanged_and_cannot_contain_its_own_closing_mark(self, text: str, more: str) -> None:
        for inner in (text, quoted(text), f"{text}\n{quoted(text)[-24:]}\n{more}", f"{quoted(text)}\n{quoted(more)}"):
            mark = hashlib.sha256(inner.encode("utf-8")).hexdigest()[:16]
            whole = quoted(inner)
            self.assertEqual(whole, f"[引文 {mark} 开始]\n{inner}\n[引文 {mark} 结束]")
            self.assertEqual((whole.count(f"[引文 {mark} 结束]"), whole.count(f"[引文 {mark} 开始]")), (1, 1))


class Slot(NamedTuple):
    given: Callable[[list[str]], Any]
    """The prompt function's argument, made of some texts."""
    shown: Callable[[Any], str]
    """What must stand in the prompt for it."""


HISTORY = Slot(lambda texts: history(*texts), render)
ITEMS = Slot(list, numbered)
PLAIN = Slot(lambda texts: "\n".join(texts), str)
QUOTED = Slot(lambda texts: "\n".join(texts), quoted)


class Prompt(NamedTuple):
    fill: Callable[..., str]
    slots: tuple[Slot, ...]
    example: Any = None
    """The keys of the JSON object that a judge is shown; for three claims where it has an entry for each."""

    def filled(self, texts: Sequence[list[str]]) -> tuple[str, list[str]]:
        """The prompt filled with some texts for each slot, and what each slot must show."""
        arguments = [slot.given(some) for slot, some in zip(self.slots, texts, strict=True)]
        shown = [slot.shown(argument) for slot, argument in zip(self.slots, arguments, strict=True)]
        return self.fill(*arguments), shown

    def marked(self, sizes: Sequence[int] = (3, 3, 3, 3)) -> tuple[str, list[str]]:
        """The prompt with marks in its slots, so many in each, that occur nowhere else."""
        return self.filled([[f"哨兵{slot}之{n}" for n in range(sizes[slot])] for slot in range(len(self.slots))])


USER = Prompt(user_prompt, (HISTORY, ITEMS, ITEMS, PLAIN))
DCG = Prompt(dcg_judge_prompt, (HISTORY, ITEMS, ITEMS, QUOTED), ["reason", "label"])
EXTRACTION = Prompt(extraction_prompt, (ITEMS, QUOTED), ["verdicts", *("claim", "reason", "verdict") * 3])
PROMPTS = (
    Prompt(lexawn_prompt, (HISTORY,)),
    Prompt(forced_question_prompt, (HISTORY,)),
    Prompt(force_judge_prompt, (HISTORY,)),
    Prompt(lca_judge_prompt, (QUOTED,), ["reason", "label"]),
    USER,
    DCG,
    EXTRACTION,
)


def keys_in(value: Any) -> list[str]:
    """All keys of a JSON value, from outside in."""
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in keys_in(item))]
    return [key for item in value for key in keys_in(item)] if isinstance(value, list) else []


class FilledPrompts(TestCase):
    def check_substitution(self, prompt: Prompt, texts: Sequence[list[str]]) -> None:
        """What stands in the slots is all in which a prompt differs from the one with marks."""
        marked, marks = prompt.marked([len(some) for some in texts])
        filled, shown = prompt.filled(texts)
        instead = dict(zip(marks, shown, strict=True))
        self.assertEqual(filled, re.sub("|".join(map(re.escape, marks)), lambda found: instead[found[0]], marked))

    def test_every_slot_is_filled_exactly_once(self) -> None:
        for prompt in PROMPTS:
            with self.subTest(prompt.fill.__name__):
                filled, shown = prompt.marked()
                self.assertEqual([filled.count(text) for text in shown], [1] * len(shown))
                self.assertEqual(len(re.findall("哨兵[0-9]之[0-9]", filled)), 3 * len(shown))

    def test_odd_texts_arrive_verbatim_and_no_slot_is_inserted_into_another(self) -> None:
        for prompt in PROMPTS:
            for text in (*ODD, "".join(ODD)):
                with self.subTest(prompt.fill.__name__, text=text):
                    self.check_substitution(prompt, [[text, f"{n}{text}", text] for n in range(len(prompt.slots))])

    @SOME
    @given(st.sampled_from(PROMPTS), st.lists(st.lists(odd_texts, min_size=1, max_size=3), min_size=4, max_size=4))
    def test_any_text_arrives_verbatim_in_any_slot(self, prompt: Prompt, texts: list[list[str]]) -> None:
        self.check_substitution(prompt, texts[: len(prompt.slots)])

    def test_the_history_stands_between_its_tags_and_nothing_else_does(self) -> None:
        tags = re.compile("<对话历史>(.*?)</对话历史>", re.DOTALL)
        for prompt in PROMPTS:
            with self.subTest(prompt.fill.__name__):
                filled, shown = prompt.marked()
                histories = [text for slot, text in zip(prompt.slots, shown, strict=True) if slot is HISTORY]
                self.assertEqual(tags.findall(filled), histories)
                self.assertEqual((filled.count("<对话历史>"), filled.count("</对话历史>")), (len(histories),) * 2)

    def test_the_user_model_s_question_stands_between_its_tags(self) -> None:
        filled, shown = USER.marked()
        self.assertEqual(re.findall("(?s)<顾问提问>(.*?)</顾问提问>", filled), shown[3:])

    def test_each_list_stands_under_its_own_heading(self) -> None:
        for prompt, slot, heading in (
            (USER, 1, "争议点："),
            (USER, 2, "实际情况："),
            (DCG, 1, "争议点："),
            (DCG, 2, "关键细节："),
            (EXTRACTION, 0, "诉讼请求如下："),
        ):
            with self.subTest(prompt.fill.__name__, heading=heading):
                filled, shown = prompt.marked()
                self.assertEqual(filled.count(f"{heading}\n{shown[slot]}\n"), 1)

    def test_no_brace_is_left_but_those_of_the_judges_json_example_with_the_reason_first(self) -> None:
        for prompt in PROMPTS:
            with self.subTest(prompt.fill.__name__):
                words, brace, example = prompt.marked()[0].partition("{")
                self.assertNotIn("}", words)
                self.assertEqual(bool(brace), prompt.example is not None)
                if prompt.example:
                    self.assertEqual(keys_in(json.loads(brace + example)), prompt.example)


# ----------------------------------------------------------------------------------------------------------------------
# Classes and shapes


class Classes(TestCase):
    def test_there_are_36_causes_in_six_classes_and_no_cause_stands_twice(self) -> None:
        causes = [cause for some in CLASSES.values() for cause in some]
        self.assertEqual((len(CLASSES), len(causes), len(set(causes))), (6, 36, 36))
        self.assertEqual([len(some) for some in CLASSES.values()], [4, 7, 5, 9, 5, 6])
        self.assertEqual([*CLASS_OF.items()], [(cause, name) for name, some in CLASSES.items() for cause in some])


class Inner(TypedDict):
    n: int


class Outer(TypedDict):
    inner: Inner
    items: list[Inner]
    kind: Literal["甲", "乙"] | None


OUTER: dict[str, Any] = {"inner": {"n": 1}, "items": [{"n": 2}, {"n": 3}], "kind": None}

SHAPES: tuple[tuple[Any, Any, str | None], ...] = (
    ("", str, None),
    (1, str, "it is not of type str"),
    (None, str, "it is not of type str"),
    (["a"], str, "it is not of type str"),
    (0, int, None),
    (-(10**30), int, None),
    (1.0, int, "it is not of type int"),
    ("1", int, "it is not of type int"),
    (True, int, "it is not of type int"),
    (0.5, float, None),
    (1, float, None),
    (False, float, "it is not of type float"),
    ("0.5", float, "it is not of type float"),
    (None, float, "it is not of type float"),
    (True, bool, None),
    (False, bool, None),
    (0, bool, "it is not of type bool"),
    ("true", bool, "it is not of type bool"),
    (None, None, None),
    (None, type(None), None),
    (False, None, "it is not of type null"),
    ("", None, "it is not of type null"),
    ("甲", Literal["甲", "乙"], None),
    ("甲 ", Literal["甲", "乙"], "it is '甲 ', not one of ('甲', '乙')"),
    ("", Literal["甲", "乙"], "it is '', not one of ('甲', '乙')"),
    (None, Literal["甲", "乙"], "it is None, not one of ('甲', '乙')"),
    (["甲"], Literal["甲", "乙"], "it is ['甲'], not one of ('甲', '乙')"),
    ([], list[int], None),
    ([1, 2], list[int], None),
    ([1, "2", None], list[int], "it[1] is not of type int"),
    ({}, list[int], "it is not an array"),
    ("12", list[str], "it is not an array"),
    (None, list[int], "it is not an array"),
    ([["a"], [1]], list[list[str]], "it[1][0] is not of type str"),
    ({}, dict[str, str], None),
    ({"a": "b", "c": "d"}, dict[str, str], None),
    ({"a": "b", "c": 1}, dict[str, str], "it.c is not of type str"),
    ([], dict[str, str], "it is not an object"),
    ({"a": {"b": True}}, dict[str, dict[str, int]], "it.a.b is not of type int"),
    ("a", str | None, None),
    (None, str | None, None),
    (1, str | None, "it is not of type str"),
    (False, str | None, "it is not of type str"),
    ("甲", Literal["甲"] | None, None),
    ("乙", Literal["甲"] | None, "it is '乙', not one of ('甲',)"),
    ({"n": 1}, Inner, None),
    ({}, Inner, "it lacks the key 'n'"),
    ({"n": 1, "m": 2}, Inner, "it has the unknown key 'm'"),
    ({"N": 1}, Inner, "it lacks the key 'n'"),
    ([["n", 1]], Inner, "it is not an object"),
    (None, Inner, "it is not an object"),
    (OUTER, Outer, None),
    ({**OUTER, "kind": "乙"}, Outer, None),
    ({**OUTER, "kind": "丙"}, Outer, "it.kind is '丙', not one of ('甲', '乙')"),
    ({**OUTER, "inner": {"n": None}}, Outer, "it.inner.n is not of type int"),
    ({**OUTER, "inner": {"n": 1, "x": 1}}, Outer, "it.inner has the unknown key 'x'"),
    ({**OUTER, "items": [{"n": 1}, {}]}, Outer, "it.items[1] lacks the key 'n'"),
    ({**OUTER, "items": None, "inner": 1}, Outer, "it.inner is not an object"),
    ({"inner": {"n": 1}, "items": []}, Outer, "it lacks the key 'kind'"),
)


class Shapes(TestCase):
    def test_the_first_difference_from_a_shape_is_told_with_its_place(self) -> None:
        for value, shape, fault in SHAPES:
            with self.subTest(value=value, shape=shape):
                self.assertEqual(shape_fault(value, shape, "it"), fault)
