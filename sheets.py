"""People as judges: a blind sheet to be labelled in a spreadsheet, and what its labels say of a run's judge and figures.

A sheet is a sample of a run's labels, spread over classes and labels. Half of it at most are items on which judges disagreed;
each item stands for as many as its weight says, which with its place is kept in a key file in the output tree and not in the
sheet: who labels sees neither model nor judge, class, truth or weight. Read back, the labels give agreement between people and
with judges, the judge's errors by right label, and the run's figures without these errors.
Source: `judge_error.py` for the correction; Gwet 2008 and Cohen 1960 for agreement, as in `agreement.py`.
"""

import csv
import hashlib
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

from agreement import AGREEMENT_HEAD, Column, Records, Triples, agreement, agreement_cells, drawn_cases
from categories import CLASS_OF
from checkpoints import Run, fingerprint, read_settings
from common import numbered, render
from errors import CheckpointError, SettingsError
from eval_DCG import rounds_of
from judge_error import CELLS, Labelled, corrected, figure, labelled
from judges import CHECKS
from judgments import JUDGE_TASKS, cells_of, labels_of, spread
from metrics import METRICS, defined, interval, wilson
from records import Case
from scores import TASKS
from texts import between, number, padded

ITEMS = 200  # a task: kappa near 0.8 is then known to about ±0.08
REPLICATES, SEED = 2000, 0

# ----------------------------------------------------------------------------------------------------------------------
# Items


class Item(NamedTuple):
    """A label that the run's judge gave."""

    task: str
    case: str
    what: str
    """Which label of the case's record."""


class Text(NamedTuple):
    """What is shown of an item."""

    material: str
    asked: str


class Entry(TypedDict):
    """A line of a key."""

    task: str
    case: str
    what: str
    weight: float


class Key(TypedDict):
    """What a sheet's items are; stays in the output tree."""

    run_sha256: str
    items: dict[str, Entry]


def items_of(name: str, records: Records) -> dict[Item, str]:
    """A task's items with the labels that these records give them."""
    task = JUDGE_TASKS[name]
    return {
        Item(name, case, what): label
        for case, record in records.items()
        for what, label in labels_of(task, record).items()
    }


def text_of(run: Run, case: Case, item: Item) -> Text:
    """What a person needs to label an item: what the judge saw of it."""
    task = JUDGE_TASKS[item.task]
    (source,) = task.made_from
    record = run.read(source)[case.number]
    if item.task == "LCA":
        return Text(record[f"{item.what}_response"], "顾问的这次回复")
    if item.task == "DCG":
        history, asked = next(
            (history, asked) for history, asked in rounds_of(case, record) if item.what == f"round {asked['round']}"
        )
        points, details = numbered(case.focal_points), numbered(case.key_details)
        return Text(f"{render(history)}\n\n争议点：\n{points}\n尚未交代的关键细节：\n{details}", asked["question"])
    response = record["final_response" if source == "interaction" else "response"]
    return Text(response, [*case.verdicts][int(item.what.removeprefix("claim ")) - 1])


# ----------------------------------------------------------------------------------------------------------------------
# Drawing


def drawn_items(
    labels: Mapping[Item, str], cases: Mapping[str, Case], disputed: set[Item], size: int
) -> dict[Item, float]:
    """So many items at most, spread over classes and labels, half of them disputed if there are as many; and what each
    stands for.
    """
    groups = [[item for item in labels if (item in disputed) == way] for way in (True, False)]
    most = min(size, len(labels))
    of_disputed = min(len(groups[0]), max(most // 2, most - len(groups[1])))
    found: dict[Item, float] = {}
    for group, taken in zip(groups, (of_disputed, most - of_disputed), strict=True):
        strata = {" ".join(item): (CLASS_OF[cases[item.case].cause], labels[item]) for item in group}
        by_name = {" ".join(item): item for item in group}
        for name in spread(strata)[:taken]:
            found[by_name[name]] = len(group) / taken
    return found


def disputed_items(own: Mapping[Item, str], name: str, columns: Sequence[Column]) -> set[Item]:
    """The items that a later judge labelled otherwise than the run's."""
    return {
        item
        for column in columns
        for item, label in items_of(name, column.records).items()
        if own.get(item, label) != label
    }


LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no spreadsheet takes a word of them for a month, a number or TRUE


def word_of(text: str, length: int = 6) -> str:
    value = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest(), "big")
    return "".join(LETTERS[value // len(LETTERS) ** place % len(LETTERS)] for place in range(length))


def named(items: Mapping[Item, float]) -> dict[str, Entry]:
    """The items under words that tell nothing, in an order by chance within each task."""
    found: dict[str, Entry] = {}
    words = {item: word_of(" ".join(item)) for item in items}
    doubled = {word for word, count in Counter(words.values()).items() if count > 1}
    for item in sorted(items, key=lambda item: ([*TASKS].index(item.task), words[item])):
        word = word_of(" ".join(item), 12) if words[item] in doubled else words[item]
        found[word] = Entry(task=item.task, case=item.case, what=item.what, weight=items[item])
    return found


# ----------------------------------------------------------------------------------------------------------------------
# The sheet

HEAD = ("编号", "任务", "材料", "待判断", "标签", "备注")
CELL = 30_000  # characters; a spreadsheet's cell holds 32,767
DEFINITIONS = {
    "LCA": "回复分类：看回复的主要行为。请咨询人补充事实、没有下结论的，填“澄清提问”；对诉求能否得到支持下了结论的，填“直接判断”（附带客套反问、或只分情形讨论而没有请人补充事实的，也是“直接判断”）。",
    "DCG": "提问命中：咨询人照实回答“待判断”里的问题，就会说出至少一条关键细节的实质内容的，填“是”；无关、过于笼统，或只问到已经交代的内容的，填“否”。",
    "LJP": "结果提取：看材料对“待判断”里的那一项请求给出的裁判结果，只看材料怎么说，不管对错。全部支持填“支持”，只支持一部分填“部分支持”，不支持或者没有给出支持的结论填“驳回”。",
}
RULES = (
    "请只在“标签”一列填写，每行一个标签；拿不准也请选最接近的一个，疑问写在“备注”。其他各列请勿改动，不要删除行，也不要只对其中一列排序。",
    "保存时仍用CSV格式即可（“CSV UTF-8（逗号分隔）”最好）。材料是模型写的，其中的任何要求都不是对您的指示。",
)


def cells_for(text: str) -> list[str]:
    """A text as cells: none that a spreadsheet would compute, and none that it would cut."""
    plain = text.replace("\r\n", "\n")
    shown = "".join(
        "\ufffd" if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") else char
        for char in plain
    )
    if re.match(r"[=+\-@＝＋－＠\t\r\n]", shown):
        shown = f"'{shown}"
    return [shown[at : at + CELL] for at in range(0, len(shown), CELL)] or [""]


def kind_of(task: str) -> str:
    return task.partition("_")[0]


def rows_of(entries: Mapping[str, Entry], texts: Mapping[str, Text]) -> list[list[str]]:
    """The sheet's rows: how to label, the head, the items. A text too long for a cell goes on in further columns."""
    parts = {word: cells_for(text.material) for word, text in texts.items()}
    further = max(len(cells) for cells in parts.values()) - 1
    kinds = dict.fromkeys(kind_of(entry["task"]) for entry in entries.values())
    about = [f"LexPilot 人工标注表，共{len(entries)}行", *RULES, *(DEFINITIONS[kind] for kind in kinds)]
    head = [*HEAD, *(f"材料（续{place}）" for place in range(1, further + 1))]
    body = []
    for word, entry in entries.items():
        first, *rest = parts[word]
        (asked, *_) = cells_for(texts[word].asked)
        kind = DEFINITIONS[kind_of(entry["task"])].partition("：")[0]
        body.append([word, kind, first, asked, "", "", *rest, *[""] * (further - len(rest))])
    return [*([line] for line in about), head, *body]


def write_sheet(path: Path, run: Run, columns: Mapping[str, Sequence[Column]], names: Sequence[str], size: int) -> int:
    """A sheet of so many items a task, and its key; how many it has. SettingsError if there is a file already."""
    if path.exists():
        raise SettingsError(f"{path}: there is such a file already, and labels may stand in it; name another one")
    cases = {case.number: case for case in run.cases}
    chosen: dict[Item, float] = {}
    for name in names:
        labels = items_of(name, run.read(JUDGE_TASKS[name].of))
        chosen |= drawn_items(labels, cases, disputed_items(labels, name, columns[name]), size)
    if not chosen:
        raise CheckpointError(f"run {run.manifest['run_id']!r}: it has no label of {', '.join(names)}")
    entries = named(chosen)
    texts = {word: text_of(run, cases[entry["case"]], _item(entry)) for word, entry in entries.items()}
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows_of(entries, texts))
    key = Key(run_sha256=fingerprint(run.manifest), items=entries)
    place = _keys(run) / f"{fingerprint(key)[:16]}.json"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(json.dumps(key, ensure_ascii=False, indent=1).encode("utf-8"))
        # With a byte-order mark: without one Excel on Chinese Windows takes UTF-8 for GBK.
        path.write_bytes(out.getvalue().encode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{error.filename}: cannot be written ({error.strerror})") from error
    return len(entries)


def _item(entry: Entry) -> Item:
    return Item(entry["task"], entry["case"], entry["what"])


def _keys(run: Run) -> Path:
    return run.root / CHECKS / run.folder / "sheets"


# ----------------------------------------------------------------------------------------------------------------------
# Reading sheets back


def decoded(raw: bytes) -> str:
    """A sheet's text, as spreadsheets save it: UTF-8, UTF-16 with its mark, or GBK; ValueError for anything else."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("gb18030")


def table_of(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """A sheet's head and the rows below it with their numbers; SettingsError if it is none."""
    try:
        text = decoded(path.read_bytes())
        for delimiter in (",", "\t", ";"):
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
            for at, row in enumerate(rows):
                head = [cell.strip() for cell in row]
                if {HEAD[0], HEAD[2], HEAD[3], HEAD[4]} <= {*head}:
                    return head, [(n, row) for n, row in enumerate(rows[at + 1 :], at + 2) if any(map(str.strip, row))]
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, csv.Error) as error:
        raise SettingsError(f"{path}: not a CSV file: {error}; save it as CSV UTF-8") from error
    raise SettingsError(f"{path}: no row has the heads {'、'.join(HEAD[:5])}; take the sheet as it was made")


def key_for(run: Run, path: Path, words: set[str]) -> Key:
    """The key of the sheet with these items; SettingsError if none of the run's is."""
    best: tuple[int, Key | None] = (0, None)
    for place in sorted(_keys(run).glob("*.json")):
        key = cast(Key, read_settings(place, Key, "restore it from a copy"))
        if key["run_sha256"] == fingerprint(run.manifest):
            best = max(best, (len(words & key["items"].keys()), key), key=lambda one: one[0])
    if best[1] is None:
        raise SettingsError(
            f"{path}: no sheet of run {run.manifest['run_id']!r} of {run.manifest['models']['evaluated']!r} has its items; "
            f"name that run, and keep the keys below {_keys(run)}"
        )
    return best[1]


def read_labels(path: Path, run: Run) -> dict[Item, tuple[str, float]]:
    """An annotator's labels and what each stands for; rows without a label are left out. SettingsError that names the rows in
    which the sheet was damaged.
    """
    head, rows = table_of(path)
    word_at, material_at, asked_at, label_at = (head.index(HEAD[place]) for place in (0, 2, 3, 4))

    def cell(row: Sequence[str], at: int) -> str:
        return row[at] if at < len(row) else ""

    key = key_for(run, path, {cell(row, word_at).strip() for _, row in rows})
    cases = {case.number: case for case in run.cases}
    found: dict[Item, tuple[str, float]] = {}
    seen: dict[str, int] = {}
    faults = []
    for line, row in rows:
        word, label = cell(row, word_at).strip(), cell(row, label_at).strip().strip("'\"“”")
        entry = key["items"].get(word)
        if entry is None:
            faults.append(f"row {line}: {word!r} is no item of this sheet")
            continue
        if word in seen:
            faults.append(f"row {line}: item {word} stands in row {seen[word]} already")
            continue
        seen[word] = line
        item = _item(entry)
        text = text_of(run, cases[item.case], item)
        shown = [(cell(row, material_at), text.material), (cell(row, asked_at), text.asked)]
        if not all(is_same(given, cells_for(meant)[0]) for given, meant in shown):
            faults.append(
                f"row {line}: the text beside {word} is not this item's; was one column sorted by itself, or edited?"
            )
        values = JUDGE_TASKS[item.task].values
        if label and label not in values:
            faults.append(f"row {line}: the label {label!r} is none of {'、'.join(values)}")
        elif label:
            found[item] = (label, entry["weight"])
    if missing := [word for word in key["items"] if word not in seen]:
        faults.append(f"{len(missing)} of {len(key['items'])} rows are missing: {', '.join(missing[:5])}")
    if faults:
        more = f"\n  … and {len(faults) - 20} more" if len(faults) > 20 else ""
        raise SettingsError(f"{path}: mend the sheet:" + "".join(f"\n  {fault}" for fault in faults[:20]) + more)
    if not found:
        raise SettingsError(f"{path}: no row has anything in the column {HEAD[4]}; give the sheet that was filled in")
    return found


def is_same(given: str, meant: str) -> bool:
    """Whether a cell still holds its text: the letters and digits that GBK knows, since a spreadsheet that saves in it puts
    others in the place of the rest.
    """

    def kept(text: str) -> str:
        return "".join(filter(str.isalnum, text.encode("gbk", errors="ignore").decode("gbk")))

    return kept(given) == kept(meant)


# ----------------------------------------------------------------------------------------------------------------------
# What people say of the judge


def majority(sheets: Sequence[Mapping[Item, tuple[str, float]]]) -> dict[Item, tuple[str, float]]:
    """The label that most people gave to each item; without those on which as many gave another one."""
    found: dict[Item, tuple[str, float]] = {}
    for item in dict.fromkeys(item for sheet in sheets for item in sheet):
        given = [sheet[item] for sheet in sheets if item in sheet]
        (label, count), *rest = Counter(label for label, _ in given).most_common()
        if not rest or rest[0][1] < count:
            found[item] = (label, given[0][1])
    return found


Labels = Mapping[Item, tuple[str, float]]
"""By item, a label and what the item stands for."""


def weighted_pairs(name: str, first: Labels, second: Mapping[Item, str]) -> dict[str, Triples]:
    """By case, both labels as places in the task's values, and the weight."""
    values = JUDGE_TASKS[name].values
    found: dict[str, list[tuple[int, int, float]]] = {}
    for item, (label, weight) in first.items():
        if item.task == name and item in second:
            found.setdefault(item.case, []).append((values.index(label), values.index(second[item]), weight))
    return {**found}


def judged_by_people(run: Run, columns: Mapping[str, Sequence[Column]], sheets: Mapping[str, Labels]) -> dict[str, Any]:
    """Agreement between people and with each judge, the errors of each judge, and the run's figures without its judge's."""
    right = majority([*sheets.values()])
    rows, errors, figures = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for name, task in ((name, JUDGE_TASKS[name]) for name in TASKS):
        if not any(item.task == name for item in right):
            continue
        judges = {"run": items_of(name, run.read(task.of))}
        judges |= {column.name: items_of(name, column.records) for column in columns[name]}
        rows += people_rows(run, name, sheets, right, judges)
        for judge, labels in judges.items():
            triples = [triple for some in weighted_pairs(name, right, labels).values() for triple in some]
            if triples:
                found = labelled(triples, len(task.values))
                errors.append({"task": name, "judge": judge, **error_object(task.values, found, triples)})
                figures += corrected_figures(run, name, found) if judge == "run" else ()
    return {
        "run_id": run.manifest["run_id"],
        "model": run.manifest["models"]["evaluated"],
        "people": {who: len(sheet) for who, sheet in sheets.items()},
        "tied": len({item for sheet in sheets.values() for item in sheet}) - len(right),
        "agreement": rows,
        "errors": errors,
        "figures": figures,
    }


def people_rows(
    run: Run, name: str, sheets: Mapping[str, Labels], right: Labels, judges: Mapping[str, Mapping[Item, str]]
) -> Iterator[dict[str, Any]]:
    """A task's agreement of each two people, of each of several with the run's judge, and of what most say with each judge."""
    values, causes = JUDGE_TASKS[name].values, {case.number: case.cause for case in run.cases}
    theirs = {who: {item: label for item, (label, _) in sheet.items()} for who, sheet in sheets.items()}
    compared: list[tuple[str, str, Labels, Mapping[Item, str]]] = []
    compared += [(one, other, sheets[one], theirs[other]) for one, other in combinations(sheets, 2)]
    compared += [(who, "run", sheet, judges["run"]) for who, sheet in sheets.items() if len(sheets) > 1]
    compared += [("people", judge, right, labels) for judge, labels in judges.items()]
    for first, second, ours, others in compared:
        if pairs := weighted_pairs(name, ours, others):
            head = {"task": name, "first": first, "second": second, "labels": [*values]}
            yield {**head, **agreement(pairs, causes, len(values))}


POSITIVE = {"LCA": 1, "DCG": 0}  # the place of the label that a binary task looks for


def error_object(name_values: Sequence[str], found: Labelled, triples: Triples) -> dict[str, Any]:
    """How often the judge gave each label where another was right: rows are what people say. Of two labels the diagonal is
    sensitivity and specificity.
    """
    people = Counter(right for right, _, _ in triples)
    error, sizes = found.error(), found.sizes()
    rights = [
        [*wilson(float(error[place, place]), float(sizes[place]))] if sizes[place] > 0 else None
        for place in range(len(name_values))
    ]
    return {
        "labels": [*name_values],
        "error": error.tolist(),
        "items": [people[place] for place in range(len(name_values))],
        "sizes": sizes.tolist(),
        "right_intervals": rights,
    }


def corrected_figures(run: Run, name: str, found: Labelled) -> Iterator[dict[str, Any]]:
    """A task's headline metrics as the run has them, and without the judge's error, with an interval over cases and people's
    items; over the cases that have all labels.
    """
    import numpy as np

    cells, records = CELLS[name], run.read(JUDGE_TASKS[name].of)
    known = [(case, cells_of(name, case, records[case.number])) for case in run.cases]
    counted = [(case, some) for case, some in known if some is not None]
    size = len(cells.units)
    by_case = np.array([np.bincount(some, minlength=size) for _, some in counted], dtype=float).reshape(-1, size)
    counts, drawn = by_case.sum(axis=0), drawn_cases(case.cause for case, _ in counted)[:REPLICATES]
    without_error = corrected(counts, found.error(), cells)
    replicates = corrected(drawn @ by_case, found.drawn(REPLICATES, SEED), cells)
    for metric in TASKS[name].headline:
        span = interval(figure(METRICS[metric], replicates, cells))
        yield {
            "task": name,
            "metric": metric,
            "cases": len(counted),
            "run": defined(float(figure(METRICS[metric], counts, cells))),
            "corrected": defined(float(figure(METRICS[metric], without_error, cells))),
            "interval": span and [*span],
        }


def people_text(found: Mapping[str, Any]) -> Iterator[str]:
    """The object for people."""
    yield f"People on the labels of {found['run_id']} of {found['model']}"
    yield from (f"  {who}: {count} labels" for who, count in found["people"].items())
    if found["tied"]:
        yield f"  {found['tied']} items on which people are tied are left out of what follows"
    yield ""
    yield f"{'agreement':16} {'first':14} {'second':14} {'items':>5} {AGREEMENT_HEAD}"
    for row in found["agreement"]:
        yield f"{row['task']:16} {row['first']:14} {row['second']:14} {row['items']:5} {agreement_cells(row)}"
    yield ""
    yield f"{'errors':16} {'judge':14} {'people say':10} {'items':>5} {'judge right':>11} {'95 %':>16}"
    for row in found["errors"]:
        for place, (label, size, shares) in enumerate(zip(row["labels"], row["items"], row["error"], strict=True)):
            head = f"{row['task']:16} {row['judge']:14} {padded(label, 10)} {size:5}"
            if not size:
                yield f"{head}  nobody labelled one so: taken for no error"
                continue
            named = (
                ("sensitivity" if place == POSITIVE[row["task"]] else "specificity") if row["task"] in POSITIVE else ""
            )
            others = ", ".join(
                f"{other} {share:.4f}" for other, share in zip(row["labels"], shares, strict=True) if other != label
            )
            yield f"{head} {shares[place]:11.4f} {between(row['right_intervals'][place]):>16}  {named or others}"
    yield ""
    yield f"{'figures':16} {'metric':13} {'cases':>5} {'by run':>8} {'corrected':>9} {'95 %':>16}"
    for row in found["figures"]:
        yield (
            f"{row['task']:16} {row['metric']:13} {row['cases']:5} {number(row['run']):>8} {number(row['corrected']):>9} "
            f"{between(row['interval']):>16}"
        )
    yield ""
    yield (
        "people: what most of them say. All is weighted by what each item stands for. corrected: without the judge's errors as "
        "people see them; its interval draws cases and items, and holds for this evaluated model and judge."
    )
