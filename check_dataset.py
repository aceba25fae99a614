"""What the data file gives away: shortcuts, leaks and repetition, and what blind readers made of its cases.

Reads: the data file and `blind_readings.jsonl` beside this module; makes no request and writes nothing. Prints the figures
that stand in DATASHEET.md, which says what each is for and where its bound lies. All figures are fractions or counts; what
a small file leaves undefined is said to be so. A shortcut is whatever tells a label without reading the consultation; a
classifier looks for it, always on causes that it was not fitted on. A blind reading counts only for the text that was read.

    python check_dataset.py [--dataset FILE]
"""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from categories import CLASS_OF, CLASSES
from checkpoints import fingerprint
from common import HERE, dataset_of
from errors import command
from metrics import confusion, qwk
from records import VERDICTS, Case, History

# ----------------------------------------------------------------------------------------------------------------------
# The words of a case

AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(万?)元")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:万|元|天|个月|年|%|岁|次|人|米)?")
DATE = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号]?)?")


def told(history: History, *roles: str) -> str:
    """What the given roles say, a message a line; without roles, what both say."""
    return "\n".join(message["content"] for message in history if not roles or message["role"] in roles)


def letters(text: str) -> str:
    """Text without blanks and punctuation, so that a run of characters is found across a comma."""
    return re.sub(r"[\W_]", "", text)


def spellings(number: str, ten_thousands: str) -> set[str]:
    """How a lay person may write an amount: as in the claim, in 万, or in full."""
    value = float(number) * (10_000 if ten_thousands else 1)
    return {number + ten_thousands, f"{value:.0f}"} | ({f"{value / 10_000:g}万"} if value >= 10_000 else set())


def has_date(date: Sequence[str], text: str) -> bool:
    """Whether a date (year, month, day; empty where it has none) stands in a text: same month and day, no other year."""
    others = DATE.findall(text)
    return any(date[1:] == other[1:] and (date[0] == other[0] or not (date[0] and other[0])) for other in others)


def stands_in(figure: str, text: str) -> bool:
    """Whether a figure stands in a text by itself and not as a part of a longer number."""
    end = r"(?![\d.]?\d)" if figure[-1].isdigit() else ""
    return re.search(r"(?<!\d)(?<!\d\.)" + re.escape(figure) + end, text) is not None


# ----------------------------------------------------------------------------------------------------------------------
# Shortcuts: scikit-learn's logistic regression with its own penalty, labels weighted alike, 12 folds of whole causes


def giveaway(cases: Sequence[Case]) -> float | None:
    """AUC, 0 to 1, at which the character 2- to 4-grams of a history tell complete from underspecified; chance is 0.5.

    None where there is but one cause, so that none is left to fit on.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    grams = TfidfVectorizer(analyzer="char", ngram_range=(2, 4), sublinear_tf=True, min_df=2)
    return _auc(cases, grams.fit_transform(map(told, _both(cases))))


def surface_giveaway(cases: Sequence[Case]) -> float | None:
    """As `giveaway`, from length, digits, numbers, punctuation and question marks alone."""
    from sklearn.preprocessing import StandardScaler

    patterns = (r".", r"\d", r"\d+", r"[，。、；：！…“”（）]", r"？")
    counts = [[len(re.findall(pattern, text)) for pattern in patterns] for text in map(told, _both(cases))]
    return _auc(cases, StandardScaler().fit_transform(counts))


def _both(cases: Sequence[Case]) -> Iterator[History]:
    for case in cases:
        yield case.complete
        yield case.underspecified


def _auc(cases: Sequence[Case], features: Any) -> float | None:
    from sklearn.metrics import roc_auc_score

    is_underspecified = [0, 1] * len(cases)
    causes = [case.cause for case in cases for _ in range(2)]
    scores = _held_out(features, is_underspecified, causes, "decision_function")
    return None if scores is None else float(roc_auc_score(is_underspecified, scores))


def claim_giveaway(cases: Sequence[Case]) -> float | None:
    """Macro-F1, 0 to 1, at which the words of a claim alone (character 1- to 4-grams) tell its verdict.

    None where some fold leaves a single cause or a single verdict to fit on.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import f1_score

    claims, verdicts, causes = zip(
        *((claim, verdict, case.cause) for case in cases for claim, verdict in case.verdicts.items()), strict=True
    )
    grams = TfidfVectorizer(analyzer="char", ngram_range=(1, 4), sublinear_tf=True).fit_transform(claims)
    predicted = _held_out(grams, verdicts, causes, "predict")
    return None if predicted is None else float(f1_score(verdicts, predicted, average="macro"))


def _held_out(features: Any, labels: Sequence[Any], causes: Sequence[str], method: str) -> Any:
    """What a logistic regression says of each row that was fitted on other causes; features know texts, not labels.

    None where that cannot be: one cause, or one label among those to fit on.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    if len(set(causes)) < 2:
        return None
    folds = list(GroupKFold(min(12, len(set(causes)))).split(features, groups=causes))
    if any(len({labels[row] for row in fitted}) < 2 for fitted, _ in folds):
        return None
    model = LogisticRegression(max_iter=5000, class_weight="balanced")
    return cross_val_predict(model, features, labels, cv=folds, method=method)


# ----------------------------------------------------------------------------------------------------------------------
# Leaks and repetition


def leaks(case: Case) -> list[str]:
    """What of the key details stands in the underspecified history though in no claim: 8 characters in a row, a number
    with its unit, a date."""
    claims, in_the_open = "\n".join(case.verdicts), told(case.underspecified)
    claim_letters, open_letters, undated = letters(claims), letters(in_the_open), DATE.sub(" ", in_the_open)
    found = []
    for detail in case.key_details:
        plain = letters(detail)
        runs = dict.fromkeys(plain[at : at + 8] for at in range(len(plain) - 7))
        found += [run for run in runs if run in open_letters and run not in claim_letters]
        dates = [date for date in dict.fromkeys(DATE.findall(detail)) if has_date(date, in_the_open)]
        found += ["-".join(filter(None, date)) for date in dates if not has_date(date, claims)]
        numbers = [n for n in dict.fromkeys(NUMBER.findall(DATE.sub(" ", detail))) if len(n) > 1]
        found += [n for n in numbers if stands_in(n, undated) and not stands_in(n, claims)]
    return found


def unnamed_amounts(case: Case) -> list[str]:
    """Amounts of the claims that the user does not name in both histories."""
    amounts = [amount for claim in case.verdicts for amount in AMOUNT.findall(claim)]
    mouths = [told(history, "user") for history in (case.complete, case.underspecified)]
    return [
        "".join(amount)
        for amount in amounts
        if not all(any(stands_in(way, mouth) for way in spellings(*amount)) for mouth in mouths)
    ]


def nearest(cases: Sequence[Case]) -> tuple[float, str, str] | None:
    """The two cases whose underspecified histories are most alike: Jaccard index of their 5-grams, 0 to 1, and numbers.

    Histories of less than 5 characters have no 5-grams and are left out; None where no two are left.
    """
    grams = {}
    for case in cases:
        plain = letters(told(case.underspecified))
        grams[case.number] = {plain[at : at + 5] for at in range(len(plain) - 4)}
    pairs = itertools.combinations([number for number, found in grams.items() if found], 2)
    return max(((len(grams[a] & grams[b]) / len(grams[a] | grams[b]), a, b) for a, b in pairs), default=None)


def repeated(cases: Sequence[Case]) -> list[str]:
    """Sentences of at least 15 characters that stand in more than three cases."""
    where = defaultdict(set)
    for case in cases:
        for sentence in re.split(r"[，。；！？…\n]", told(case.complete) + "\n" + told(case.underspecified)):
            plain = letters(sentence)
            if len(plain) >= 15:
                where[plain].add(case.number)
    return [sentence for sentence, numbers in where.items() if len(numbers) > 3]


# ----------------------------------------------------------------------------------------------------------------------
# Blind readings


class Reading(NamedTuple):
    """What a reader who knew no answer made of one history."""

    missing: bool  # a decisive fact is missing
    fact: str  # which; empty where none is
    right: bool  # the fact is one that the key details state; always False for a complete history
    verdicts: list[str]  # for each claim, in order; seen only after `missing` was answered


def text_sha256(case: Case) -> str:
    """Hash of all that blind readers see of a case: both histories and the claims in their order."""
    return fingerprint([case.complete, case.underspecified, [*case.verdicts]])


def load_readings(path: Path, cases: Sequence[Case]) -> dict[str, tuple[Reading, Reading]]:
    """Case number -> readings of the complete and of the underspecified history, by two different readers.

    Of the given cases only, and only of those that still have the text that was read.
    """
    texts = {case.number: text_sha256(case) for case in cases}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return {
        line["case_number"]: (Reading(**line["complete"]), Reading(**line["underspecified"]))
        for line in lines
        if line["text_sha256"] == texts.get(line["case_number"])
    }


class Blind(NamedTuple):
    """How blind readers did on some cases; counts, and QWK from -1 to 1 or None where it is undefined."""

    cases: int
    claims: int
    decided: int  # claims decided as the file does, from the complete histories
    decided_qwk: float | None
    false_alarms: int  # complete histories said to lack a decisive fact
    noticed: int  # underspecified histories said to lack one
    named: int  # … and the right one
    guessed_qwk: float | None  # verdicts from the underspecified histories


def blind(cases: Sequence[Case], readings: dict[str, tuple[Reading, Reading]]) -> Blind:
    """Sums over those of the cases that were read."""
    read = [(case, *readings[case.number]) for case in cases if case.number in readings]
    decided = [pair for case, complete, _ in read for pair in _pairs(case, complete)]
    guessed = [pair for case, _, underspecified in read for pair in _pairs(case, underspecified)]
    return Blind(
        len(read),
        len(decided),
        sum(truth == reader for truth, reader in decided),
        _qwk(decided),
        sum(complete.missing for _, complete, _ in read),
        sum(underspecified.missing for *_, underspecified in read),
        sum(underspecified.right for *_, underspecified in read),
        _qwk(guessed),
    )


def _pairs(case: Case, reading: Reading) -> Iterator[tuple[int, int]]:
    labels: tuple[str, ...] = VERDICTS
    for truth, reader in zip(case.verdicts.values(), reading.verdicts, strict=True):
        yield labels.index(truth), labels.index(reader)


def _qwk(pairs: Sequence[tuple[int, int]]) -> float | None:
    value = qwk(confusion(pairs, len(VERDICTS))) if pairs else None
    return None if value is None else float(value)


# ----------------------------------------------------------------------------------------------------------------------
# The command


def composition(cases: Sequence[Case]) -> list[str]:
    """Markdown table: what the file holds, by cause, by class and in all."""
    head = ["cause", "cases", "claims", *VERDICTS, "3 / 5 / 7 messages", "自然人 / 法人 / 非法人组织"]
    rows = []
    for name, causes in CLASSES.items():
        rows += [[cause, *_counts([case for case in cases if case.cause == cause])] for cause in causes]
        rows.append([f"**{name}**", *_counts([case for case in cases if CLASS_OF[case.cause] == name])])
    return _table([head, *rows, ["**all**", *_counts(cases)]])


def _counts(cases: Sequence[Case]) -> list[str]:
    verdicts = Counter(verdict for case in cases for verdict in case.verdicts.values())
    lengths = Counter(len(case.complete) for case in cases)
    plaintiffs = Counter(case.plaintiff_type for case in cases)
    return [
        str(len(cases)),
        str(verdicts.total()),
        *(f"{verdicts[v]} ({verdicts[v] / verdicts.total():.0%})" if verdicts else "0" for v in VERDICTS),
        " / ".join(str(lengths[n]) for n in (3, 5, 7)),
        " / ".join(str(plaintiffs[kind]) for kind in ("自然人", "法人", "非法人组织")),
    ]


def blind_table(cases: Sequence[Case], readings: dict[str, tuple[Reading, Reading]]) -> list[str]:
    """Markdown table: what blind readers made of the cases, by cause and in all; a sentence where none was read."""
    complete = ("complete: claims as filed", "QWK", "false alarms")
    rows = [["cause", "cases", *complete, "underspecified: noticed", "named", "QWK"]]
    for name in (*CLASS_OF, None):
        found = blind([case for case in cases if name in (case.cause, None)], readings)
        if found.cases:
            decided = (f"{found.decided} / {found.claims}", _figure(found.decided_qwk), str(found.false_alarms))
            guessed = (str(found.noticed), str(found.named), _figure(found.guessed_qwk))
            rows.append([name or "**all**", str(found.cases), *decided, *guessed])
    return _table(rows) if len(rows) > 1 else ["No case of this file was read blind as it stands."]


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + " --- |" * len(rows[0]), *body]


def shortcuts(cases: Sequence[Case]) -> list[str]:
    """Markdown table: each way to a label that does not lead through the consultation, and how far it leads."""
    verdicts = [list(case.verdicts.values()) for case in cases]
    longer = sum(len(told(case.complete)) > len(told(case.underspecified)) for case in cases)
    alike = nearest(cases)
    rows = [
        ["what", "figure"],
        ["complete or underspecified, from character 2-4-grams: AUC", _figure(giveaway(cases))],
        ["the same from length, digits, punctuation, question marks: AUC", _figure(surface_giveaway(cases))],
        ["verdict from the words of the claim alone: macro-F1", _figure(claim_giveaway(cases))],
        ["pairs in which the complete history is the longer one", f"{longer / len(cases):.0%}"],
        ["cases whose claims all have one verdict", f"{sum(len(set(v)) == 1 for v in verdicts) / len(cases):.0%}"],
        ["runs of 8 characters or figures of a key detail in the open", str(sum(len(leaks(case)) for case in cases))],
        ["amounts of claims not named in both histories", str(sum(len(unnamed_amounts(case)) for case in cases))],
        ["largest overlap of 5-grams between two cases", "{:.1%} ({}, {})".format(*alike) if alike else "undefined"],
        ["sentences of 15 characters in more than three cases", str(len(repeated(cases)))],
    ]
    for place, name in enumerate(("first", "second", "third")):
        at = [given[place] for given in verdicts if len(given) > place]
        shares = " / ".join(f"{at.count(verdict) / len(at):.0%}" for verdict in VERDICTS) if at else "none"
        rows.append([f"{' / '.join(VERDICTS)} among {name} claims", shares])
    return _table(rows)


def main(argv: Sequence[str] | None = None) -> None:
    cases = dataset_of("check_dataset.py", "Print what a data file holds and what it gives away.", argv).cases
    readings = load_readings(HERE / "blind_readings.jsonl", cases)
    for lines in (composition(cases), shortcuts(cases), blind_table(cases, readings)):
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    command(main)
