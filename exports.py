"""The results for a spreadsheet and for a paper: `show_results.py --format csv | markdown | latex`.

Pure functions of the printed object: the same records give the same bytes. CSV is tidy, one figure a row with all its
keys and every digit. The two tables have a model a row and the headline metrics as columns, each a mean over runs with its
95 % interval over cases; bold is what a paired test after Holm allows, and nothing else.
Source: the columns are those of the paper's main table.
"""

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]
"""A group as `show_results.py --format json` prints it."""
Best = Collection[tuple[str, str, str]]
"""Model, task and metric where a model is better than every other one."""

# ----------------------------------------------------------------------------------------------------------------------
# CSV

KEYS = (
    *(
        "group",
        "model",
        "user_model",
        "judge_model",
        "temperature",
        "judge_temperature",
        "max_tokens",
        "dataset_sha256",
    ),
    *("task", "scope", "cases", "n", "metric", "statistic", "run", "value"),
)
"""`statistic` says what the value is: of the run or policy in `run`, or over all runs of the group."""


def tidy_csv(groups: Sequence[Results]) -> str:
    """All figures of all groups, a header first; an undefined one is an empty field."""
    out = io.StringIO()
    table = csv.DictWriter(out, KEYS, lineterminator="\n")
    table.writeheader()
    for number, group in enumerate(groups, 1):
        settings = {key: group["settings"][key] for key in ("temperature", "judge_temperature", "max_tokens")}
        names = {key: group[key] for key in ("model", "user_model", "judge_model", "dataset_sha256")}
        for row in _figures(group):
            table.writerow({"group": number, **names, **settings, **row})
    return out.getvalue()


def scopes_in(task: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], dict[str, int]]]:
    """A printed task's scopes, all cases first: name, figures, and how many cases and pairs (n) they are of."""
    yield "overall", task["overall"], {key: task[key]["overall"] for key in ("cases", "n")}
    for title, figures in task["by_class"].items():
        yield title, figures, {key: task[key]["by_class"][title] for key in ("cases", "n")}


def _figures(group: Results) -> Iterator[dict[str, Any]]:
    for name, task in group["tasks"].items():
        for scope, figures, size in scopes_in(task):
            for metric, found in figures.items():
                for statistic, run, value in _statistics(found):
                    yield {"task": name, "scope": scope, **size, "metric": metric, "statistic": statistic, "run": run, "value": value}  # fmt: skip
        for policy, figures in task["floors"].items():
            for metric, value in figures.items():
                yield {"task": name, "scope": "overall", "metric": metric, "statistic": "policy", "run": policy, "value": value}  # fmt: skip
    for metric, found in group.get("recovery", {}).items():
        for statistic, value in found.items():
            ends = (
                zip(("low", "high"), value or (None, None), strict=True)
                if statistic.endswith("_interval")
                else [("", value)]
            )
            for end, one in ends:
                name = f"{statistic.removesuffix('_interval')}_{end}".rstrip("_")
                yield {"task": "recovery", "scope": "overall", "metric": metric, "statistic": name, "value": one}


def _statistics(found: Mapping[str, Any]) -> Iterator[tuple[str, str, float | None]]:
    for run, value in found["per_run"].items():
        yield "run", run, value
    for run, (low, high) in found.get("bounds", {}).items():
        yield "worst", run, low
        yield "best", run, high
    yield from ((statistic, "", found[statistic]) for statistic in ("mean", "sd"))
    if "interval" in found:
        low, high = found["interval"] or (None, None)
        yield from (("interval_low", "", low), ("interval_high", "", high))
        yield from ((statistic, "", found[statistic]) for statistic in ("se", "run_share"))


def comparison_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a comparison, a header first."""
    out = io.StringIO()
    keys = ("first", "second", "task", "metric", "first_value", "second_value", "difference", "low", "high", "se")
    table = csv.DictWriter(out, (*keys, "test", "p", "p_holm", "statement"), lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    for row in rows:
        (one, other), (low, high) = row["values"], row["interval"] or (None, None)
        table.writerow({**row, "first_value": one, "second_value": other, "low": low, "high": high})
    return out.getvalue()


# ----------------------------------------------------------------------------------------------------------------------
# Tables for a paper

COLUMNS = (
    *(
        ("LCA", "macro_f1", "Macro-F1"),
        ("LCA", "acc_c", "Acc_C"),
        ("LCA", "acc_u", "Acc_U"),
        ("DCG", "success_rate", "DCG"),
    ),
    *(("LJP_direct", "qwk", "QWK"), ("LJP_direct", "accuracy", "Acc.")),
    *(("LJP_gold", "qwk", "QWK"), ("LJP_gold", "accuracy", "Acc.")),
    *(("LJP_interaction", "qwk", "QWK"), ("LJP_interaction", "accuracy", "Acc.")),
)
HEADS = {
    "LCA": "LCA",
    "DCG": "DCG",
    "LJP_direct": "LJP Direct",
    "LJP_gold": "LJP Gold",
    "LJP_interaction": "LJP Interaction",
}


def cell(group: Results, task: str, metric: str) -> tuple[str, str]:
    """A mean over runs and its interval, as texts; a dash for what is not there."""
    found = group["tasks"].get(task, {"overall": {}})["overall"].get(metric)
    if found is None or found["mean"] is None:
        return "–", ""
    span = found.get("interval")
    return f"{found['mean']:.3f}", "" if span is None else f"[{span[0]:.3f}, {span[1]:.3f}]"


def notes(groups: Sequence[Results], sampling: Mapping[str, Any], told: str) -> Iterator[str]:
    """What a reader must know of the table."""
    for group in groups:
        runs = len(group["runs"])
        yield f"{group['model']}: {group['cases']} cases, {runs} {'run' if runs == 1 else 'runs'}."
    if sampling:
        yield (
            "Means over runs; in brackets the 95 % interval over cases like these (shares by Wilson's method with clustered "
            f"errors, else percentiles of {sampling['replicates']:,} draws within causes, seed {sampling['seed']})."
        )
    yield told


def markdown(groups: Sequence[Results], sampling: Mapping[str, Any], best: Best, told: str) -> str:
    """A pipe table."""
    heads = [f"{HEADS[task]} {name}" if task != "DCG" else name for task, _, name in COLUMNS]
    lines = [f"| Model | {' | '.join(heads)} |", f"| --- | {' | '.join('---:' for _ in heads)} |"]
    for group in groups:
        cells = []
        for task, metric, _ in COLUMNS:
            mean, span = cell(group, task, metric)
            marked = f"**{mean}**" if (group["model"], task, metric) in best else mean
            cells.append(f"{marked} {span}".strip())
        model = re.sub(r"([|\\`*_<])", r"\\\1", group["model"])
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *notes(groups, sampling, told), ""])


ESCAPED = {
    **{char: rf"\{char}" for char in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"},
}


def escaped(text: str) -> str:
    return "".join(ESCAPED.get(char, char) for char in text)


def latex(groups: Sequence[Results], sampling: Mapping[str, Any], best: Best, told: str) -> str:
    r"""A table for \usepackage{booktabs}; intervals stand below their means."""
    tasks = list(dict.fromkeys(task for task, _, _ in COLUMNS))
    widths = [sum(task == one for one, _, _ in COLUMNS) for task in tasks]
    tops = [rf"\multicolumn{{{width}}}{{c}}{{{HEADS[task]}}}" for task, width in zip(tasks, widths, strict=True)]
    names = [
        "success" if task == "DCG" else name.replace("_C", "$_C$").replace("_U", "$_U$") for task, _, name in COLUMNS
    ]
    rules, at = [], 2
    for width in widths:
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    lines = [r"\begin{table*}", r"\centering\small", rf"\begin{{tabular}}{{l{'r' * len(COLUMNS)}}}", r"\toprule"]
    lines += [f" & {' & '.join(tops)} \\\\", "".join(rules), f"Model & {' & '.join(names)} \\\\", r"\midrule"]
    for group in groups:
        means, spans = [], []
        for task, metric, _ in COLUMNS:
            mean, span = cell(group, task, metric)
            means.append(rf"\textbf{{{mean}}}" if (group["model"], task, metric) in best else escaped(mean))
            spans.append(rf"{{\scriptsize {span}}}" if span else "")
        lines.append(f"{escaped(group['model'])} & {' & '.join(means)} \\\\")
        lines += [f" & {' & '.join(spans)} \\\\"] if any(spans) else []
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\caption{{{escaped(' '.join(notes(groups, sampling, told)))}}}", r"\end{table*}", ""]
    return "\n".join(lines)
