"""Metrics and what may be said of them: held against arithmetic, against enumeration and against other libraries."""

import itertools
import math
import unittest
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from metrics import (
    METRICS,
    RATIOS,
    SUMS,
    Counts,
    Figures,
    Pair,
    agreements,
    alpha,
    benjamini_hochberg,
    case_sums,
    confusion,
    dcg_figures,
    dealt,
    detectable,
    detectable_rate,
    difference,
    drawn_totals,
    draws,
    exact_p,
    farthest,
    figure_bounds,
    holm,
    interval,
    lca_figures,
    ljp_figures,
    mcnemar,
    paired,
    qwk_bounds,
    ratio,
    recovery,
    replicated,
    run_share,
    scott,
    share_interval,
    standard_error,
    wilson,
)

Floats = NDArray[np.float64]
MANY = settings(max_examples=150, deadline=None, database=None)
# Fixture A of the statistics page, by case, as (truth, prediction); fixture B, a case's (complete, underspecified).
A: list[list[Pair]] = [[(0, 0), (1, 2), (2, 2)], [(2, 1), (2, 2)], [(0, 0)], [(1, 1), (0, 2)]]
B: list[list[Pair]] = [
    [(0, complete), (1, underspecified)]
    for complete, underspecified in zip([0, 1, 0, 0, 1, 0], [1, 1, 0, 1, 0, 1], strict=True)
]


def run_of(cases: list[list[Pair]]) -> Floats:
    """One run's sums, of shape (1, cases, 14)."""
    return np.array([[case_sums(pairs) for pairs in cases]], dtype=float)


def value(name: str, cases: list[list[Pair]]) -> float:
    return float(METRICS[name].value(run_of(cases)[0].sum(axis=0)))


def exact(name: str, cases: list[list[Pair]]) -> Fraction | None:
    pairs = [pair for case in cases for pair in case]
    figures = lca_figures if name in ("macro_f1", "acc_c", "acc_u") else ljp_figures
    return figures(confusion(pairs, 2 if figures is lca_figures else 3))[name]


claims = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5)
consulted = st.tuples(st.integers(0, 1), st.integers(0, 1)).map(lambda asked: [(0, asked[0]), (1, asked[1])])


def brute_force(
    figures: Callable[[Counts], Figures], known: Sequence[Pair], missing: Sequence[int], size: int
) -> dict[str, tuple[Fraction | None, Fraction | None]]:
    """Each metric's least and greatest value, where it has one, over all predictions for the missing truths."""
    found: dict[str, list[Fraction]] = {}
    for predictions in itertools.product(range(size), repeat=len(missing)):
        for metric, value in figures(confusion([*known, *zip(missing, predictions, strict=True)], size)).items():
            found.setdefault(metric, []).extend([] if value is None else [value])
    return {metric: (min(values, default=None), max(values, default=None)) for metric, values in found.items()}


def pairs(size: int, most: int) -> st.SearchStrategy[list[Pair]]:
    return st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=most)


def truths(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size - 1), min_size=1, max_size=5)


class BoundsAgainstBruteForce(unittest.TestCase):
    @MANY
    @given(pairs(2, 8), truths(2))
    def test_lca(self, known: list[Pair], missing: list[int]) -> None:
        assume({truth for truth, _ in known} | set(missing) == {0, 1})  # every case has both histories
        found = figure_bounds(lca_figures, confusion(known, 2), missing)
        self.assertEqual(found, brute_force(lca_figures, known, missing, 2))

    @MANY
    @given(st.lists(st.integers(0, 1), max_size=8), st.integers(1, 5))
    def test_dcg(self, hits: list[int], missing: int) -> None:
        known = [(1, hit) for hit in hits]
        found = figure_bounds(dcg_figures, confusion(known, 2), [1] * missing)
        self.assertEqual(found, brute_force(dcg_figures, known, [1] * missing, 2))
        whole = len(hits) + missing
        self.assertEqual(found, {"success_rate": (Fraction(sum(hits), whole), Fraction(sum(hits) + missing, whole))})

    @MANY
    @given(pairs(3, 8), truths(3))
    def test_ljp(self, known: list[Pair], missing: list[int]) -> None:
        expected = brute_force(ljp_figures, known, missing, 3)
        self.assertEqual(figure_bounds(ljp_figures, confusion(known, 3), missing), expected)
        self.assertEqual(qwk_bounds(confusion(known, 3), missing), expected["qwk"])

    def test_the_best_kappa_may_need_a_wrong_verdict(self) -> None:
        # Gold 部分支持 is open beside one 支持 that was taken for 驳回: 0 2, 1 ?.
        by_chance = {open_one: sum((i - j) ** 2 for i in (0, 1) for j in (2, open_one)) for open_one in (0, 1, 2)}
        values = {v: 1 - Fraction((4 + (1 - v) ** 2) * 2, by_chance[v]) for v in by_chance}
        self.assertEqual(values, {0: Fraction(-2, 3), 1: Fraction(-1, 3), 2: 0})
        self.assertEqual(qwk_bounds(confusion([(0, 2)], 3), [1]), (values[0], values[2]))

    def test_the_farthest_verdict_of_each(self) -> None:
        self.assertEqual([farthest(truth, 3) for truth in (0, 1, 2)], [2, 2, 0])
        self.assertEqual([farthest(truth, 2) for truth in (0, 1)], [1, 0])

    @MANY
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=20))
    def test_dealt_counts_have_the_given_margins(self, dealt_out: list[Pair]) -> None:
        rows = [sum(i == row for i, _ in dealt_out) for row in range(3)]
        columns = [sum(j == column for _, j in dealt_out) for column in range(4)]
        counts = dealt(rows, columns)
        self.assertEqual([sum(row) for row in counts], rows)
        self.assertEqual([sum(column) for column in zip(*counts, strict=True)], columns)
        self.assertGreaterEqual(min(min(row) for row in counts), 0)


class Sums(unittest.TestCase):
    def test_a_cases_sums_are_those_of_its_pairs(self) -> None:
        found = dict(zip(SUMS, case_sums([(1, 2), (2, 2)], first=1, asked=3), strict=True))
        self.assertEqual(found, {
            "cases": 1, "pairs": 2, "x": 2 + 2, "y": 1 + 2, "xx": 4 + 4, "yy": 1 + 4, "xy": 2 + 4,
            "hits": 1, "whole": 0, "first": 1, "second": 0, "held": 0, "asked": 3, "judged": 0,
        })  # fmt: skip
        self.assertEqual(case_sums([(1, 1)])[SUMS.index("whole")], 1)

    @MANY
    @given(st.lists(claims, min_size=1, max_size=12))
    def test_qwk_and_accuracy_of_sums_are_those_of_counts(self, cases: list[list[Pair]]) -> None:
        for name in ("qwk", "accuracy"):
            counted = exact(name, cases)
            found = value(name, cases)
            self.assertTrue(math.isnan(found) if counted is None else abs(found - counted) < 1e-12, (found, counted))

    @MANY
    @given(st.lists(consulted, min_size=1, max_size=12))
    def test_macro_f1_and_its_parts_of_sums_are_those_of_counts(self, cases: list[list[Pair]]) -> None:
        for name in ("macro_f1", "acc_c", "acc_u"):
            self.assertAlmostEqual(value(name, cases), float(exact(name, cases) or 0), places=12)

    def test_shares_of_cases(self) -> None:
        counted = [
            case_sums([(1, 1)], first=1, held=1, asked=3, judged=1),
            case_sums([(1, 1)], second=1),
            case_sums([(1, 0)], held=1, asked=2),
        ]
        sums = np.array(counted, float)
        found = {name: float(METRICS[name].value(sums.sum(axis=0))) for name in METRICS}
        self.assertEqual(found["success_rate"], 2 / 3)
        self.assertEqual(found["all_right"], 2 / 3)
        self.assertEqual((found["first_hit"], found["second_hit"]), (1 / 3, 1 / (3 - 1)))
        self.assertEqual((found["questions"], found["judged"]), ((3 + 2) / 2, 1 / 2))
        for name in RATIOS:
            exactly = ratio(name, counted)
            self.assertTrue(math.isnan(found[name]) if exactly is None else found[name] == float(exactly), name)

    def test_a_share_of_nothing_is_undefined(self) -> None:
        sums = case_sums([(1, 1)], first=1)
        self.assertTrue(math.isnan(float(METRICS["second_hit"].value(np.array(sums, float)))))
        self.assertEqual((ratio("second_hit", [sums]), ratio("accuracy", [])), (None, None))


class Errors(unittest.TestCase):
    def test_fixture_a(self) -> None:
        self.assertEqual(value("qwk", A), 1 / 2)
        self.assertEqual(value("accuracy", A), 5 / 8)
        # Residuals by case: 3 of 3/8, -5/8 and 3/8; the factor 4/3 is C/(C-1).
        by_case = [3 / 8 - 5 / 8 + 3 / 8, -5 / 8 + 3 / 8, 3 / 8, 3 / 8 - 5 / 8]
        by_hand = math.sqrt(4 / 3 * sum(part**2 for part in by_case)) / 8
        self.assertAlmostEqual(standard_error(METRICS["accuracy"], run_of(A)), by_hand, places=12)
        self.assertAlmostEqual(by_hand, 0.0765465545, places=9)
        self.assertAlmostEqual(by_hand / math.sqrt(4 / 3), 0.0662912607, places=9)
        self.assertAlmostEqual(standard_error(METRICS["qwk"], run_of(A)), 0.3245367068, places=9)

    def test_the_jackknife_over_the_cases_of_fixture_a_is_near(self) -> None:
        left = [value("qwk", A[:place] + A[place + 1 :]) for place in range(4)]
        jackknife = math.sqrt(3 / 4 * sum((one - sum(left) / 4) ** 2 for one in left))
        self.assertAlmostEqual(jackknife, 0.3401821772, places=9)
        self.assertAlmostEqual(standard_error(METRICS["qwk"], run_of(A)) / jackknife, 1, delta=0.05)

    def test_the_influence_of_each_case_of_fixture_a_on_qwk(self) -> None:
        psi = [5 / 6 - 1 / 3 + 1 / 2, -1 / 2 + 1 / 2, 5 / 6, 0 - 11 / 6]
        found = METRICS["qwk"].influence(run_of(A)[0])
        np.testing.assert_allclose(found, np.array(psi) / 8, atol=1e-12)

    def test_fixture_b(self) -> None:
        self.assertAlmostEqual(value("macro_f1", B), 2 / 3, places=12)
        self.assertAlmostEqual(standard_error(METRICS["macro_f1"], run_of(B)), 1 / 6, places=12)

    @MANY
    @given(st.lists(claims, min_size=6, max_size=12))
    def test_an_influence_is_the_slope_of_the_value_in_a_cases_weight(self, cases: list[list[Pair]]) -> None:
        self.slopes(("qwk", "accuracy", "all_right"), cases)

    @MANY
    @given(st.lists(consulted, min_size=3, max_size=12))
    def test_an_influence_on_lca_is_the_slope_too(self, cases: list[list[Pair]]) -> None:
        self.slopes(("macro_f1", "acc_c", "acc_u"), cases)

    def slopes(self, names: tuple[str, ...], cases: list[list[Pair]]) -> None:
        (sums,) = run_of(cases)
        step = 1e-6
        for name in names:
            metric = METRICS[name]
            if not math.isnan(float(metric.value(sums.sum(axis=0)))):
                up, down = (metric.value(sums.sum(axis=0) + way * step * sums) for way in (1, -1))
                found = metric.influence(sums)
                np.testing.assert_allclose(found, (up - down) / (2 * step), atol=1e-5, err_msg=name)
                self.assertAlmostEqual(float(found.sum()), 0, places=9)

    def test_runs_are_averaged_in_each_case_before_the_square(self) -> None:
        right, wrong = case_sums([(1, 1)]), case_sums([(1, 0)])
        opposed = np.array([[right, wrong], [wrong, right]], float)
        self.assertEqual(standard_error(METRICS["accuracy"], opposed), 0)
        same = np.array([[right, wrong], [right, wrong]], float)
        self.assertAlmostEqual(standard_error(METRICS["accuracy"], same), math.sqrt(2 / 1 * 2 * (1 / 2 / 2) ** 2))

    def test_a_single_case_has_no_error(self) -> None:
        self.assertTrue(math.isnan(standard_error(METRICS["accuracy"], run_of(A[:1]))))

    def test_the_share_of_the_runs(self) -> None:
        self.assertAlmostEqual(run_share([0.1, 0.2, 0.3], 0.2) or 0, (0.1**2 + 0.1**2) / 2 / 3 / 0.2**2)
        self.assertEqual([run_share([0.1], 0.2), run_share([0.1, 0.2], 0), run_share([0.1, 0.2], math.nan)], [None] * 3)


class Bootstrap(unittest.TestCase):
    def test_all_256_resamples_of_fixture_a(self) -> None:
        drawn = np.array([np.bincount(chosen, minlength=4) for chosen in itertools.product(range(4), repeat=4)], float)
        found = replicated(METRICS["qwk"], drawn_totals(run_of(A), drawn))
        self.assertEqual((len(found), int(np.isnan(found).sum())), (4**4, 1))
        self.assertAlmostEqual(float(np.nanmean(found)), 0.444591, places=6)
        self.assertAlmostEqual(float(np.nanstd(found)), 0.309052, places=6)
        span = interval(found)
        assert span is not None  # 1 of 256 undefined is 0.4 %
        self.assertAlmostEqual(span.low, -0.25, places=9)
        self.assertAlmostEqual(span.high, 0.878049, places=6)

    def test_an_interval_is_withheld_if_more_than_one_percent_is_undefined(self) -> None:
        replicates = np.arange(1000) / 1000
        for undefined, known in ((0, True), (10, True), (11, False)):
            some = replicates.copy()
            some[:undefined] = math.nan
            self.assertEqual(interval(some) is not None, known, undefined)
        self.assertIsNone(interval(np.full(1000, 0.5)))
        np.testing.assert_allclose(interval(np.arange(1001.0)) or (), (25, 975))

    def test_each_stratum_keeps_its_size_and_a_seed_its_draws(self) -> None:
        strata = [1, 0, 0, 1, 1, 2]
        found = draws(strata, 500, 7)
        self.assertEqual(found.shape, (500, 6))
        for stratum, size in ((0, 2), (1, 3), (2, 1)):
            members = [place for place, one in enumerate(strata) if one == stratum]
            self.assertEqual({*found[:, members].sum(axis=1).tolist()}, {size})
        self.assertGreater(found.max(), 1)
        self.assertTrue(np.array_equal(found, draws(strata, 500, 7)))
        self.assertFalse(np.array_equal(found, draws(strata, 500, 8)))

    def test_a_replicate_is_the_mean_over_runs_of_the_metric_of_the_drawn_cases(self) -> None:
        other = [[(y, (x + 1) % 3) for y, x in case] for case in A]
        sums = np.concatenate([run_of(A), run_of(other)])
        drawn = np.array([[2, 0, 1, 1], [0, 1, 1, 2]], float)
        expected = [
            sum(value("qwk", [case for case, times in zip(run, row, strict=True) for _ in range(int(times))]) for run in (A, other)) / 2
            for row in drawn
        ]  # fmt: skip
        np.testing.assert_allclose(replicated(METRICS["qwk"], drawn_totals(sums, drawn)), expected, atol=1e-12)
        self.assertTrue(
            math.isnan(float(replicated(METRICS["qwk"], drawn_totals(sums, np.array([[0.0, 0, 1, 0]])))[0]))
        )


class Comparisons(unittest.TestCase):
    def test_a_difference_with_its_error_interval_and_p(self) -> None:
        better = [[(1, 1)]] * 12 + [[(1, 0)]] * 4
        worse = [[(1, 1)]] * 6 + [[(1, 0)]] * 10
        drawn = draws([0] * 16, 4000, 0)
        found = difference(METRICS["accuracy"], paired(run_of(worse), run_of(better), drawn, 0))
        self.assertEqual(found.value, 6 / 16)
        # Six cases differ by 1 and ten by 0, about a mean of 6/16.
        spread = 6 * (10 / 16) ** 2 + 10 * (6 / 16) ** 2
        self.assertAlmostEqual(found.error, math.sqrt(16 / 15 * spread) / 16, places=12)
        assert found.interval is not None
        low, high = binomtest(6, 16).proportion_ci(method="wilson")  # of the same share; a bootstrap's is near it
        self.assertAlmostEqual(found.interval.low, low, delta=0.06)
        self.assertAlmostEqual(found.interval.high, high, delta=0.06)
        # All six must fall to the same side: 2 of 2^6 shuffles.
        self.assertAlmostEqual(found.p, 2 / 2**6, delta=4 * math.sqrt(1 / 32 / 4000))

    def test_a_difference_of_nothing_has_a_p_of_one(self) -> None:
        drawn = draws([0] * 4, 200, 0)
        for name in ("accuracy", "qwk"):
            found = difference(METRICS[name], paired(run_of(A), run_of(A), drawn, 0))
            self.assertEqual((found.value, found.error, found.p), (0, 0, 1))

    def test_the_sides_of_a_comparison_are_alike(self) -> None:
        other = [[(y, min(2, x + 1)) for y, x in case] for case in A]
        drawn = draws([0] * 4, 400, 0)
        for first, second in ((run_of(A), run_of(other)), (run_of(A), np.concatenate([run_of(other), run_of(A)]))):
            there = difference(METRICS["accuracy"], paired(first, second, drawn, 0))
            back = difference(METRICS["accuracy"], paired(second, first, drawn, 0))
            self.assertAlmostEqual(there.value, -back.value)
            self.assertEqual((there.error, there.p), (back.error, back.p))

    def test_one_binary_outcome_in_one_run_has_an_exact_p(self) -> None:
        one, other = [0, 1, 0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0, 1, 0]  # asked on the underspecified history
        first, second = (run_of([[(0, 0), (1, asked)] for asked in side]) for side in (one, other))
        drawn = draws([0] * 8, 10, 0)
        self.assertEqual(exact_p("acc_u", paired(first, second, drawn, 0)), mcnemar(0, 4))
        self.assertEqual(exact_p("acc_c", paired(first, second, drawn, 0)), 1)
        self.assertEqual(exact_p("all_right", paired(second, first, drawn, 0)), mcnemar(4, 0))
        self.assertIsNone(exact_p("macro_f1", paired(first, second, drawn, 0)))
        self.assertIsNone(exact_p("acc_u", paired(first, np.concatenate([second, second]), drawn, 0)))

    def test_mcnemar_is_the_exact_binomial_test(self) -> None:
        self.assertAlmostEqual(mcnemar(12, 25), 0.0470310, places=7)
        # Of 3 and 9 of 12: as uneven or more so are 0 to 3 and 9 to 12.
        self.assertAlmostEqual(mcnemar(3, 9), 2 * (1 + 12 + 66 + 220) / 2**12, places=12)
        self.assertEqual((mcnemar(0, 0), mcnemar(0, 1), mcnemar(5, 5)), (1, 1, 1))

    def test_adjusted_ps(self) -> None:
        ps = [0.01, 0.04, 0.03, 0.005]
        np.testing.assert_allclose(holm(ps), [0.03, 0.06, 0.06, 0.02], atol=1e-15)
        np.testing.assert_allclose(benjamini_hochberg(ps), [0.02, 0.04, 0.04, 0.02], atol=1e-15)
        self.assertEqual((holm([]), benjamini_hochberg([])), ([], []))
        self.assertEqual(holm([0.9, 0.8]), [1.0, 1.0])


class Agreement(unittest.TestCase):
    def test_fixture_c(self) -> None:
        one, other = [1, 1, 1, 0, 0, 1, 0, 1, 1, 1], [1, 1, 0, 0, 0, 1, 0, 1, 1, 0]
        counts = confusion([*zip(one, other, strict=True)], 2)
        found = agreements(np.array(counts, dtype=float))
        self.assertAlmostEqual(float(found["raw"]), 8 / 10)
        self.assertAlmostEqual(float(found["kappa"]), 0.6)
        self.assertAlmostEqual(float(found["ac1"]), 0.615385, places=6)
        # Labels: 7 and 5 of 10 each are 1, so 12 and 8 of 20; the judges agree in 8.
        by_chance = Fraction(12, 20) ** 2 + Fraction(8, 20) ** 2
        self.assertEqual(scott(counts), (Fraction(8, 10) - by_chance) / (1 - by_chance))
        self.assertAlmostEqual(float(scott(counts) or 0), 0.583333, places=6)
        self.assertAlmostEqual(float(alpha(counts) or 0), 0.604167, places=6)
        self.assertEqual((scott([[3, 0], [0, 0]]), alpha([[3, 0], [0, 0]])), (None, None))

    def test_fixture_d_in_which_kappa_misleads(self) -> None:
        found = agreements(np.array([[0.0, 2.0], [3.0, 95.0]]))
        self.assertAlmostEqual(float(found["raw"]), 0.95)
        self.assertAlmostEqual(float(found["kappa"]), -0.024590, places=6)
        self.assertAlmostEqual(float(found["ac1"]), 0.947438, places=6)

    @MANY
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
    def test_kappa_is_scikit_learns(self, pairs: list[Pair]) -> None:
        found = float(agreements(np.array(confusion(pairs, 3), dtype=float))["kappa"])
        if math.isnan(found):
            self.assertEqual(len({*(y for y, _ in pairs), *(x for _, x in pairs)}), 1)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score(*zip(*pairs, strict=True), labels=[0, 1, 2])
        self.assertAlmostEqual(found, theirs, places=12)

    def test_many_matrices_at_once_have_the_figures_of_each(self) -> None:
        several = np.array([[[9.0, 1.0], [2.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]], [[5.0, 0.0], [0.0, 0.0]]])
        found = agreements(several)
        for name, values in found.items():
            self.assertEqual(float(values[0]), float(agreements(several[0])[name]))
            self.assertTrue(math.isnan(values[1]), name)
        self.assertEqual((float(found["raw"][2]), float(found["ac1"][2])), (1.0, 1.0))
        self.assertTrue(math.isnan(found["kappa"][2]))

    def test_wilson(self) -> None:
        self.assertAlmostEqual(wilson(9 / 12, 12).low, 0.467695, places=6)
        self.assertAlmostEqual(wilson(9 / 12, 12).high, 0.911058, places=6)
        for successes, trials in ((0, 1), (1, 1), (0, 40), (40, 40), (7, 33)):
            theirs = binomtest(successes, trials).proportion_ci(method="wilson")
            np.testing.assert_allclose(wilson(successes / trials, trials), theirs, atol=1e-9)

    def test_a_shares_interval_counts_as_many_trials_as_its_error_says(self) -> None:
        self.assertEqual(share_interval(0.3, math.sqrt(0.3 * 0.7 / 50), 1), wilson(0.3, 0.3 * 0.7 / (0.3 * 0.7 / 50)))
        self.assertEqual(share_interval(1.0, 0.0, 12), wilson(1.0, 12))
        self.assertLess(share_interval(1.0, 0.0, 12).low, 0.8)


class Planning(unittest.TestCase):
    def test_the_table_of_detectable_differences(self) -> None:
        table = {432: (4.3, 6.0, 7.4), 72: (10.4, 14.8, 18.1), 12: (25.6, 36.2, 44.3)}
        for cases, points in table.items():
            for discordance, expected in zip((0.1, 0.2, 0.3), points, strict=True):
                self.assertAlmostEqual(100 * detectable_rate(discordance, cases), expected, delta=0.051)

    def test_four_times_the_cases_halve_what_can_be_found(self) -> None:
        self.assertAlmostEqual(detectable(0.05, 60, 60), 2.801585 * 0.05, places=6)
        self.assertAlmostEqual(detectable(0.05, 60, 240), detectable(0.05, 60, 60) / 2)

    def test_recovery(self) -> None:
        direct, interaction, gold = np.array([[0.4, 0.4], [0.6, 0.6], [0.8, 0.4]])
        found = recovery(direct, interaction, gold)
        self.assertAlmostEqual(float(found[0]), (0.6 - 0.4) / (0.8 - 0.4))
        self.assertTrue(math.isnan(float(found[1])))


if __name__ == "__main__":
    unittest.main()
