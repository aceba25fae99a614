"""Every figure, and what may be said of it: pure functions, no input or output.

First the point estimates, exact fractions of counts; then what is missing; then sampling over cases: standard errors,
intervals, comparisons; then agreement and power. The unit of sampling is the case: its two histories, all its claims,
its rounds and all its runs stay together. Run noise is inside such an interval and is not added again.
Source: the paper's Section 6 and Appendix E for the estimates; each further function names its own.

numpy is imported where arrays are, since the exact figures do without it and it takes longer than they do.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# ----------------------------------------------------------------------------------------------------------------------
# Point estimates over pairs (truth, prediction) of small integers

Pair = tuple[int, int]
Counts = Sequence[Sequence[int | Fraction]]
"""A confusion matrix; fractions where counts are expected ones."""
Figures = dict[str, Fraction | None]
"""Metric -> its exact value, None where it is undefined."""


def confusion(pairs: Sequence[Pair], size: int) -> list[list[int]]:
    """Counts by truth (row) and prediction (column), a matrix of shape (size, size)."""
    counts = [[0] * size for _ in range(size)]
    for truth, prediction in pairs:
        counts[truth][prediction] += 1
    return counts


def accuracy(counts: Counts) -> Fraction:
    """The share on the diagonal, 0 to 1; there must be at least one count."""
    return Fraction(sum(row[i] for i, row in enumerate(counts)), sum(sum(row) for row in counts))


def qwk(counts: Counts) -> Fraction | None:
    """Quadratic weighted kappa of a confusion matrix, -1 to 1; None when undefined.

    1 - D_o/D_e with D_o the sum of (i-j)² over the counts and D_e what the margins alone would give. Undefined where D_e
    is 0: both sides constant and equal. Exactly 0 where the truth is constant and the predictions are not.
    """
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    observed = sum((i - j) ** 2 * count for i, row in enumerate(counts) for j, count in enumerate(row))
    expected = sum((i - j) ** 2 * r * c for i, r in enumerate(rows) for j, c in enumerate(columns))
    return 1 - Fraction(observed * sum(rows), expected) if expected else None


def f1(hits: int | Fraction, false_alarms: int | Fraction, misses: int | Fraction) -> Fraction:
    """2TP / (2TP + FP + FN), 0 to 1; 0 where there is nothing to count."""
    whole = 2 * hits + false_alarms + misses
    return Fraction(2 * hits, whole) if whole else Fraction(0)


def lca_figures(counts: Counts) -> Figures:
    """Macro-F1, Acc_C and Acc_U; truth 1 is an underspecified history, prediction 1 a clarification."""
    (tn, fp), (fn, tp) = counts
    return {
        "macro_f1": (f1(tp, fp, fn) + f1(tn, fn, fp)) / 2,
        "acc_c": Fraction(tn, tn + fp),
        "acc_u": Fraction(tp, tp + fn),
    }


def dcg_figures(counts: Counts) -> Figures:
    """The share of cases in which either question hit; the truth of a pair is always 1."""
    return {"success_rate": accuracy(counts)}


def ljp_figures(counts: Counts) -> Figures:
    """QWK and accuracy over claims."""
    return {"qwk": qwk(counts), "accuracy": accuracy(counts)}


# ----------------------------------------------------------------------------------------------------------------------
# What is missing

Bounds = dict[str, tuple[Fraction | None, Fraction | None]]
"""Metric -> the worst and the best that it can be; None where it is undefined whatever is missing."""


def farthest(truth: int, size: int) -> int:
    """The prediction farthest from the truth: in LJP 驳回 for 支持 and 部分支持, 支持 for 驳回; of two the other one."""
    return size - 1 if truth < size - 1 else 0


def figure_bounds(figures: Callable[[Counts], Figures], known: Counts, missing: Sequence[int]) -> Bounds:
    """Bounds of the figures with the predictions for some truths missing.

    Every metric but QWK rises with each right prediction, so that all wrong and all right are its bounds.
    """
    size = len(known)
    worst = figures(added(known, confusion([(truth, farthest(truth, size)) for truth in missing], size)))
    best = figures(added(known, confusion([(truth, truth) for truth in missing], size)))
    found: Bounds = {metric: (worst[metric], best[metric]) for metric in worst}
    return found | ({"qwk": qwk_bounds(known, missing)} if "qwk" in found else {})


def qwk_bounds(known: Counts, missing: Sequence[int]) -> tuple[Fraction | None, Fraction | None]:
    """The least and the greatest QWK over all predictions that the missing truths may have had.

    How many of them get each verdict decides D_e. For every such split D_o is least with both sides in order and greatest
    with one of them reversed, as (i-j)² is convex.
    """
    whole = len(missing)
    truths = [sum(truth == i for truth in missing) for i in range(len(known))]
    found = []
    for low in range(whole + 1):
        for high in range(whole + 1 - low):
            split = [low, whole - low - high, high]
            agreeing = dealt(truths, split)
            opposed = [row[::-1] for row in dealt(truths, split[::-1])]
            for more in (agreeing, opposed):
                value = qwk(added(known, more))
                found += [] if value is None else [value]
    return min(found, default=None), max(found, default=None)


def added(one: Counts, other: Counts) -> Counts:
    """Both matrices' counts together."""
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]


def dealt(rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """Counts with these margins, dealt out in order from the first row and column on."""
    left, counts = list(columns), []
    for row in rows:
        line = []
        for j in range(len(left)):
            line.append(min(row, left[j]))
            row, left[j] = row - line[-1], left[j] - line[-1]
        counts.append(line)
    return counts


# ----------------------------------------------------------------------------------------------------------------------
# Sampling over cases: what a case adds up to, and the metrics of such sums

FURTHER = ("first", "second", "held", "asked", "judged")
SUMS = ("cases", "pairs", "x", "y", "xx", "yy", "xy", "hits", "whole", *FURTHER)
"""What a case adds up to: 1; its pairs; the sums of prediction x and truth y, of their squares and of their product; how
many pairs agree; 1 if all do. In DCG, 1 if the first question hit, and if only the second did. In an interaction, 1 if it
was held, how many questions were asked, and 1 if it ended in a judgment.
"""


def case_sums(pairs: Sequence[Pair], **more: int) -> list[int]:
    """What resampling needs of a case, in the order of SUMS: a metric over drawn cases is one of the sums of these."""
    x = y = xx = yy = xy = hits = 0
    for truth, prediction in pairs:
        x, y = x + prediction, y + truth
        xx, yy, xy = xx + prediction**2, yy + truth**2, xy + truth * prediction
        hits += truth == prediction
    return [1, len(pairs), x, y, xx, yy, xy, hits, int(hits == len(pairs)), *(more.get(name, 0) for name in FURTHER)]


class Metric(NamedTuple):
    """A figure as a function of sums, which stand along the last axis."""

    value: Callable[["Floats"], "Floats"]
    """Sums of shape (…, 14) -> shape (…); NaN where it is undefined."""
    influence: Callable[["Floats"], "Floats"]
    """Per-case sums of shape (C, 14) -> shape (C,): by how much each case moves the value, to first order; adds up to 0."""


Terms = Mapping[str, int]
"""A linear combination of the sums."""

SHARES: dict[str, tuple[Terms, Terms]] = {
    "acc_c": ({"pairs": 1, "y": -1, "x": -1, "xy": 1}, {"pairs": 1, "y": -1}),
    "acc_u": ({"xy": 1}, {"y": 1}),
    "success_rate": ({"hits": 1}, {"pairs": 1}),
    "accuracy": ({"hits": 1}, {"pairs": 1}),
    "all_right": ({"whole": 1}, {"cases": 1}),
    "first_hit": ({"first": 1}, {"cases": 1}),
    "second_hit": ({"second": 1}, {"cases": 1, "first": -1}),
    "judged": ({"judged": 1}, {"held": 1}),
}
"""From 0 to 1."""
RATIOS: dict[str, tuple[Terms, Terms]] = {**SHARES, "questions": ({"asked": 1}, {"held": 1})}


def ratio(name: str, cases: Sequence[Sequence[int]]) -> Fraction | None:
    """One of RATIOS over some cases' sums, exactly; None where it is one of nothing."""
    totals = dict(zip(SUMS, map(sum, zip(*cases, strict=True)), strict=True)) if cases else dict.fromkeys(SUMS, 0)
    over, under = (sum(factor * totals[term] for term, factor in terms.items()) for terms in RATIOS[name])
    return Fraction(over, under) if under else None


def _ratio(over: Terms, under: Terms) -> Metric:
    """Its clustered error is that of arXiv 2411.00640."""

    def value(sums: "Floats") -> "Floats":
        return _divided(_combined(sums, over), _combined(sums, under))

    def influence(sums: "Floats") -> "Floats":
        counted = _combined(sums, under)
        return _divided(_combined(sums, over) - value(sums.sum(axis=0)) * counted, counted.sum() + 0 * counted)

    return Metric(value, influence)


def _combined(sums: "Floats", of: Terms) -> "Floats":
    terms = [factor * sums[..., SUMS.index(name)] for name, factor in of.items()]
    total: Floats = sum(terms[1:], terms[0])
    return total


def _divided(over: "Floats", under: "Floats") -> "Floats":
    """The quotient, NaN where it would be by 0."""
    import numpy as np

    found = np.full(np.shape(under), np.nan)
    np.divide(over, under, out=found, where=under != 0)
    return found


def _qwk_value(sums: "Floats") -> "Floats":
    """1 - D_o/D_e, which in moments is Lin's concordance."""
    _, n, x, y, xx, yy, xy, *_ = (sums[..., place] for place in range(len(SUMS)))
    found: Floats = 1 - _divided(n * (xx + yy - 2 * xy), n * xx + n * yy - 2 * x * y)
    return found


def _qwk_influence(sums: "Floats") -> "Floats":
    """Linearised: -(d - D_o)/D_e + (D_o/D_e²)(h - 2 D_e), with h_k = (x_k - ȳ)² + s_y² + (y_k - x̄)² + s_x²."""
    _, n, x, y, xx, yy, xy, *_ = (sums[:, place] for place in range(len(SUMS)))
    whole = n.sum()
    mean_x, mean_y, square_x, square_y = (part.sum() / whole for part in (x, y, xx, yy))
    d = xx + yy - 2 * xy
    h = xx - 2 * mean_y * x + yy - 2 * mean_x * y + n * (square_x + square_y)
    d_o, d_e = d.sum() / whole, square_x + square_y - 2 * mean_x * mean_y
    found: Floats = (_divided(n * d_o - d, d_e + 0 * n) + _divided(d_o * (h - 2 * n * d_e), d_e**2 + 0 * n)) / whole
    return found


def _f1_parts(sums: "Floats") -> tuple["Floats", "Floats"]:
    """a and b: how often it asked on underspecified (y = 1) and on complete histories."""
    _, n, x, y, _, _, xy, *_ = (sums[..., place] for place in range(len(SUMS)))
    return _divided(xy, y), _divided(x - xy, n - y)


def _macro_f1_value(sums: "Floats") -> "Floats":
    a, b = _f1_parts(sums)
    found: Floats = a / (1 + a + b) + (1 - b) / (3 - a - b)
    return found


def _macro_f1_influence(sums: "Floats") -> "Floats":
    """By the delta method; what both histories of a case have in common is inside."""
    a, b = _f1_parts(sums.sum(axis=0))
    by_a = (2 * (1 + b) / (1 + a + b) ** 2 + 2 * (1 - b) / (3 - a - b) ** 2) / 2
    by_b = (-2 * a / (1 + a + b) ** 2 - 2 * (2 - a) / (3 - a - b) ** 2) / 2
    u, f = _f1_parts(sums)
    found: Floats = (by_a * (u - a) + by_b * (f - b)) / len(sums)
    return found


METRICS: dict[str, Metric] = {
    "macro_f1": Metric(_macro_f1_value, _macro_f1_influence),
    "qwk": Metric(_qwk_value, _qwk_influence),
    **{name: _ratio(*terms) for name, terms in RATIOS.items()},
}

# ----------------------------------------------------------------------------------------------------------------------
# Standard errors and intervals


def averaged(metric: Metric, sums: "Floats") -> float:
    """A metric's mean over runs, from sums of shape (runs, cases, 14); NaN where it is undefined in one."""
    return float(metric.value(sums.sum(axis=1)).mean())


def influence_of(metric: Metric, sums: "Floats") -> "Floats":
    """By how much each case moves that mean, shape (cases,), from sums of shape (runs, cases, 14)."""
    import numpy as np

    found: Floats = np.mean([metric.influence(run) for run in sums], axis=0)
    return found


def clustered(influence: "Floats") -> float:
    """The standard error over cases that their influences come to, with the factor C/(C-1); NaN for a single case."""
    cases = len(influence)
    return math.sqrt(cases / (cases - 1) * float((influence**2).sum())) if cases > 1 else math.nan


def standard_error(metric: Metric, sums: "Floats") -> float:
    """Over cases, of a metric averaged over runs; sums of shape (runs, cases, 14). NaN for a single case.

    Linearised and clustered. The runs' noise is inside: the average over runs is taken in each case before the square
    (statistics of arXiv 2411.00640; settled likewise for Inspect).
    """
    return clustered(influence_of(metric, sums))


def draws(strata: Sequence[int | str], replicates: int, seed: int) -> "Floats":
    """How often each case is drawn in each replicate, shape (replicates, cases): with replacement, and within each stratum
    as many as it has.
    """
    import numpy as np

    generator, groups = np.random.default_rng(seed), np.asarray(strata)
    found = np.empty((replicates, len(groups)))
    for stratum in np.unique(groups):
        members = np.flatnonzero(groups == stratum)
        found[:, members] = generator.multinomial(len(members), [1 / len(members)] * len(members), size=replicates)
    return found


def drawn_totals(sums: "Floats", drawn: "Floats") -> "Floats":
    """What the drawn cases add up to: sums of shape (runs, cases, 14) and draws of shape (replicates, cases) -> shape
    (replicates, runs, 14). Exact where all are small whole numbers. Each of the 14 lies in one piece, as metrics use them.
    """
    import numpy as np

    runs, cases, size = sums.shape
    there = np.flatnonzero(sums.any(axis=(0, 1)))  # a sum that no case has need not be added up
    flat = sums[:, :, there].transpose(2, 0, 1).reshape(len(there) * runs, cases)
    totals = np.zeros((size, runs, len(drawn)))
    totals[there] = (flat @ drawn.T).reshape(len(there), runs, len(drawn))
    found: Floats = totals.transpose(2, 1, 0)
    return found


def replicated(metric: Metric, totals: "Floats") -> "Floats":
    """A metric averaged over runs in each replicate, from totals of shape (replicates, runs, 14): shape (replicates,), NaN
    where a run's is undefined.
    """
    found: Floats = metric.value(totals).mean(axis=-1)
    return found


class Interval(NamedTuple):
    low: float
    high: float


UNDEFINED_AT_MOST = 0.01  # of the replicates; beyond it an interval would be about the others only
LEVEL = 0.95
FEW_CASES = 30  # below which an interval is an indication only


def interval(replicates: "Floats", level: float = LEVEL) -> Interval | None:
    """The quantiles between which the middle of the replicates lies; None if more than 1 % of them are undefined, or if none
    differ: where all cases agree, drawing from them says nothing.
    """
    import numpy as np

    if np.isnan(replicates).mean() > UNDEFINED_AT_MOST:
        return None
    low, high = np.nanquantile(replicates, ((1 - level) / 2, (1 + level) / 2))
    return Interval(float(low), float(high)) if low < high else None


def defined(value: float) -> float | None:
    """The value for JSON, which has no NaN: None for one that is undefined."""
    return None if math.isnan(value) else float(value)


def run_share(values: Sequence[float], error: float) -> float | None:
    """What part of the squared standard error over cases is the runs' noise, SD²/R over SE²; None for a single run, or
    where the error is 0. Above 1 the runs differ more than their own sampling explains.
    """
    if len(values) < 2 or not error > 0:
        return None
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values) / error**2


def wilson(share: float, trials: float, level: float = LEVEL) -> Interval:
    """The score interval of a proportion (Wilson 1927). The trials need not be whole, as libraries want them: see below."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (share * trials + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * math.sqrt(share * (1 - share) * trials + z * z / 4)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def share_interval(share: float, error: float, cases: int) -> Interval:
    """The interval of a share with a clustered standard error, which also near 0 and 1 and with few cases is none too short:
    Wilson's, for as many independent trials as have that error (Korn and Graubard 1998), or one a case if it is 0.
    """
    return wilson(share, share * (1 - share) / error**2 if error > 0 else cases)


# ----------------------------------------------------------------------------------------------------------------------
# Comparing two models on the same cases


class Paired(NamedTuple):
    """Two models on the same cases; the numbers of runs may differ."""

    sums: tuple["Floats", "Floats"]
    """Of each case in each run, shape (runs, cases, 14)."""
    drawn: tuple["Floats", "Floats"]
    """Totals of the same drawn cases, shape (replicates, runs, 14)."""
    whole: tuple["Floats", "Floats"]
    """Totals of all cases as the shuffles have them, shape (runs, 14)."""
    shuffled: tuple["Floats", "Floats"]
    """Totals of all cases with some on the other side, shape (shuffles, runs, 14)."""


def paired(first: "Floats", second: "Floats", drawn: "Floats", seed: int) -> Paired:
    """Sums of shape (runs, cases, 14), draws of shape (replicates, cases). There are as many shuffles as draws; in each a
    case's answers, all runs and claims together, change sides with probability 1/2 (approximate randomisation, Noreen 1989).
    """
    import numpy as np

    swapped = np.random.default_rng(seed).integers(0, 2, drawn.shape).astype(float)
    one, other = first, second
    if len(first) != len(second):  # runs have no partners then: what changes sides is a case's average over them
        one, other = first.mean(axis=0, keepdims=True), second.mean(axis=0, keepdims=True)
    moved = drawn_totals(other - one, swapped)  # from the second to the first side
    whole = (one.sum(axis=1), other.sum(axis=1))
    totals = (drawn_totals(first, drawn), drawn_totals(second, drawn))
    return Paired((first, second), totals, whole, (whole[0] + moved, whole[1] - moved))


class Difference(NamedTuple):
    """Of two models in one metric, the second less the first; NaN where it is undefined."""

    values: tuple[float, float]
    value: float
    error: float
    """Paired, linearised, clustered."""
    interval: Interval | None
    """Over the same drawn cases."""
    p: float
    """How often so large a difference comes about where chance decides which model gave which answers to a case."""


def difference(metric: Metric, of: Paired) -> Difference:
    """A paired comparison in one metric."""
    import numpy as np

    one, other = (averaged(metric, sums) for sums in of.sums)
    error = clustered(influence_of(metric, of.sums[1]) - influence_of(metric, of.sums[0]))
    replicates = [replicated(metric, totals) for totals in of.drawn]
    seen = abs(float(metric.value(of.whole[1]).mean() - metric.value(of.whole[0]).mean()))
    shuffled = np.abs(replicated(metric, of.shuffled[1]) - replicated(metric, of.shuffled[0]))
    as_large = np.count_nonzero(~(shuffled < seen - 1e-12))  # what is undefined counts against a difference
    p = math.nan if math.isnan(seen) else float((1 + as_large) / (1 + len(shuffled)))
    return Difference((one, other), other - one, error, interval(replicates[1] - replicates[0]), p)


BINARY = ("acc_c", "acc_u", "success_rate", "all_right")  # one outcome a case and run


def exact_p(name: str, of: Paired) -> float | None:
    """McNemar's exact p where it applies, that is for a binary metric with one run on either side; else None."""
    if name not in BINARY or {len(sums) for sums in of.sums} != {1}:
        return None
    one, other = (_combined(sums[0], RATIOS[name][0]) for sums in of.sums)
    return mcnemar(int((one > other).sum()), int((one < other).sum()))


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of one binary outcome a case in one run: how often just one of the two was right."""
    from scipy.stats import binomtest  # here, since its import takes longer than all else

    trials = only_first + only_second
    return float(binomtest(only_first, trials).pvalue) if trials else 1.0


def holm(ps: Sequence[float]) -> list[float]:
    """p values adjusted for as many claims as there are (Holm 1979), in the order given."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    found, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = highest
    return found


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """p values adjusted for the false discovery rate, for exploration (Benjamini and Hochberg 1995), in the order given."""
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(ps)] if ps else []


# ----------------------------------------------------------------------------------------------------------------------
# Recovery, agreement, power


def recovery(direct: "Floats", interaction: "Floats", gold: "Floats") -> "Floats":
    """How much of what the missing facts cost asking brings back, (I - D)/(G - D); NaN where nothing was lost."""
    return _divided(interaction - direct, gold - direct)


def _margins(counts: Counts) -> list[tuple[int | Fraction, int | Fraction]]:
    """Of each label, how often the first and how often the second judge gave it."""
    return [(sum(row), sum(column)) for row, column in zip(counts, zip(*counts, strict=True), strict=True)]


def _shares(counts: Counts) -> list[Fraction]:
    """What part each label has of all that both judges gave."""
    margins = _margins(counts)
    return [Fraction(row + column, 2 * sum(of for of, _ in margins)) for row, column in margins]


def _beyond(counts: Counts, by_chance: Fraction) -> Fraction | None:
    """What part of the agreement that chance leaves open there is; None where it leaves nothing."""
    return (accuracy(counts) - by_chance) / (1 - by_chance) if by_chance != 1 else None


def agreements(counts: "Floats") -> dict[str, "Floats"]:
    """Raw agreement of two judges, 0 to 1, Cohen's kappa and Gwet's AC1, -1 to 1, from confusion matrices of shape (…, q, q) with
    q >= 2: shapes (…). AC1 is not misled by a skew of the labels (Gwet 2008). NaN where there is no label, and kappa where chance
    alone would agree always.
    """
    import numpy as np

    whole = counts.sum(axis=(-2, -1))
    raw = _divided(np.trace(counts, axis1=-2, axis2=-1), whole)
    rows, columns = (_divided(counts.sum(axis=axis), whole[..., None] + 0 * counts[..., 0]) for axis in (-1, -2))
    shares = (rows + columns) / 2
    by_chance = {
        "kappa": (rows * columns).sum(axis=-1),
        "ac1": (shares * (1 - shares)).sum(axis=-1) / (counts.shape[-1] - 1),
    }
    beyond = {name: _divided(raw - chance, 1 - chance) for name, chance in by_chance.items()}
    return {"raw": raw, **beyond}


def scott(counts: Counts) -> Fraction | None:
    """Scott's pi of two judges' confusion matrix, for two judges Fleiss' kappa, -1 to 1: as kappa, but who gave which label does
    not matter, so that it suits repeats of one judge. None where chance alone would agree always.
    """
    return _beyond(counts, sum((share**2 for share in _shares(counts)), Fraction(0)))


def alpha(counts: Counts) -> Fraction | None:
    """Krippendorff's nominal alpha of two judges who both labelled everything: Scott's pi, corrected for few items."""
    pi = scott(counts)
    return None if pi is None else pi + (1 - pi) / (2 * sum(sum(row) for row in counts))


def detectable(error: float, cases: int, planned: int, level: float = 0.05, power: float = 0.8) -> float:
    """The least true difference that a paired test of so many planned cases finds with that power, from the standard error
    of the difference over the cases at hand: 2.80 · SE · sqrt(cases/planned) at the usual level and power.
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(power)) * error * math.sqrt(cases / planned)


def detectable_rate(discordance: float, cases: int, level: float = 0.05, power: float = 0.8) -> float:
    """The same for one binary outcome a case in one run, of which so large a share differs between the models."""
    return detectable(math.sqrt(discordance / cases), cases, cases, level, power)
