"""What errors of a judge do to a metric, and how they are undone: against arithmetic and against simulation."""

import math
import unittest
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from judge_error import (
    CELLS,
    DRAWS,
    ERRORS,
    Labelled,
    changes_at_random,
    changes_at_worst,
    corrected,
    curve,
    error_of,
    figure,
    flipped,
    labelled,
    undone,
    uniform,
)
from metrics import METRICS, accuracy, confusion, draws, lca_figures, qwk

LCA, DCG, LJP = CELLS["LCA"], CELLS["DCG"], CELLS["LJP_gold"]


def counts(*numbers: float) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """One run's counts by cell."""
    return np.array([numbers], dtype=float)


def lca_counts(a: float, b: float, cases: int = 1000) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Of so many cases, of which a share a asks on underspecified and b on complete histories."""
    return counts(cases * (1 - b), cases * b, cases * (1 - a), cases * a)


def dcg_counts(hit: float, cases: int = 1000) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Of cases whose two questions hit independently with that probability, rounded."""
    miss = 1 - hit
    return counts(*(round(cases * share) for share in (hit * hit, hit * miss, miss * hit, miss * miss)))


def rogan_gladen(p: float, n: int, q1: float, m1: int, q0: float, m0: int) -> tuple[float, float]:
    """A rate behind the rate p of n items, by a judge whose sensitivity q1 and specificity q0 are of m1 and m0 items; and its
    standard error (Rogan and Gladen 1978; arXiv 2511.21140).
    """
    gain = q0 + q1 - 1
    true = (p + q0 - 1) / gain
    variance = p * (1 - p) / n + (1 - true) ** 2 * q0 * (1 - q0) / m0 + true**2 * q1 * (1 - q1) / m1
    return true, math.sqrt(variance) / gain


class Figures(unittest.TestCase):
    def test_cells_come_to_the_exact_figures_of_the_same_labels(self) -> None:
        pairs = [(0, 0)] * 5 + [(0, 2)] * 2 + [(1, 1)] * 3 + [(1, 0)] + [(2, 2)] * 4 + [(2, 1)] * 2
        matrix = confusion(pairs, 3)
        numbers = np.array(matrix, dtype=float).ravel()
        self.assertAlmostEqual(float(figure(METRICS["qwk"], numbers, LJP)), float(qwk(matrix) or 0))
        self.assertAlmostEqual(float(figure(METRICS["accuracy"], numbers, LJP)), float(accuracy(matrix)))
        both = np.array([[7, 3], [4, 6]])
        for metric, value in lca_figures(both.tolist()).items():
            found = float(figure(METRICS[metric], both.ravel().astype(float), LCA))
            self.assertAlmostEqual(found, float(value or Fraction(0)), msg=metric)

    def test_a_case_succeeds_in_dcg_by_either_question(self) -> None:
        for place, success in enumerate((1, 1, 1, 0)):
            numbers = np.zeros(4)
            numbers[place] = 1
            self.assertEqual(float(figure(METRICS["success_rate"], numbers, DCG)), success)


class Flipped(unittest.TestCase):
    def test_the_sizes_of_the_statistics_page_come_out(self) -> None:
        # With Acc_U = Acc_C the Macro-F1 is that share, and errors of e take it to (1 - e)·a + e·(1 - a).
        table = (
            ("macro_f1", LCA, lca_counts(0.9, 0.1), 0.05, 0.9 * 0.95 + 0.1 * 0.05),
            ("success_rate", DCG, dcg_counts(0.2), 0.05, 1 - (1 - (0.2 * 0.95 + 0.8 * 0.05)) ** 2),
            ("success_rate", DCG, dcg_counts(0.2), 0.10, 1 - (1 - (0.2 * 0.9 + 0.8 * 0.1)) ** 2),
            ("success_rate", DCG, dcg_counts(0.6), 0.05, 1 - (1 - (0.6 * 0.95 + 0.4 * 0.05)) ** 2),
        )
        for metric, cells, before, error, after in table:
            with self.subTest(metric=metric, error=error):
                found = figure(METRICS[metric], flipped(before, cells, error, DRAWS, 0), cells).mean()
                self.assertAlmostEqual(float(found), after, delta=0.002)

    def test_no_error_changes_nothing_and_totals_stay(self) -> None:
        before = counts(*range(1, 10))
        self.assertTrue((flipped(before, LJP, 0.0, 5, 0) == before).all())
        after = flipped(before, LJP, 0.3, 5, 0)
        by_truth = after.reshape(5, 3, 3).sum(axis=2)
        self.assertTrue((by_truth == before.reshape(3, 3).sum(axis=1)).all())

    def test_every_other_label_is_as_likely(self) -> None:
        after = flipped(counts(0, 9000, 0, 0, 0, 0, 0, 0, 0), LJP, 0.4, DRAWS, 0).mean(axis=0)[0]
        for place, share in enumerate((0.2, 0.6, 0.2)):
            self.assertAlmostEqual(after[place] / 9000, share, delta=0.001)

    def test_the_curve_has_each_models_mean_and_how_well_the_ranks_hold(self) -> None:
        models = [lca_counts(0.9, 0.1), lca_counts(0.7, 0.3), lca_counts(0.6, 0.4)]
        points = list(curve("macro_f1", models, LCA))
        self.assertEqual([point.error for point in points], [*ERRORS])
        self.assertEqual(points[0].correlation, 1.0)
        for point in points:
            for mean, share in zip(point.means, (0.9, 0.7, 0.6), strict=True):
                after = share * (1 - point.error) + (1 - share) * point.error
                self.assertAlmostEqual(mean, after, delta=0.002)
        close = list(curve("macro_f1", [lca_counts(0.7, 0.3, 50), lca_counts(0.68, 0.32, 50)], LCA))
        self.assertTrue(-1 <= close[-1].correlation < close[1].correlation < 1)


class Order(unittest.TestCase):
    def test_at_random_it_changes_where_a_twentieth_of_the_draws_do(self) -> None:
        # Of n labels, k right: after errors of e the right ones are k - B(k, e) + B(n - k, e/2).
        n, better, worse = 600, 330, 300

        def changed(error: float) -> float:
            mean = (better - worse) * (1 - error - error / 2)
            variance = sum(k * error * (1 - error) + (n - k) * error / 2 * (1 - error / 2) for k in (better, worse))
            return NormalDist(mean, math.sqrt(variance)).cdf(0.5)  # a tie is a change

        one, other = (counts(k, 0, n - k, 0, 0, 0, 0, 0, 0) for k in (better, worse))
        found = changes_at_random("accuracy", one, other, LJP)
        assert found is not None
        self.assertTrue(0.03 < changed(found) < 0.07, changed(found))
        self.assertIsNotNone(changes_at_random("accuracy", other, one, LJP))
        self.assertIsNone(changes_at_random("accuracy", one, one, LJP))

    def test_a_tie_is_a_change(self) -> None:
        # One label each, right in one model and wrong in the other: the order stays with (1 - e)(1 - e/2), and turns round
        # with e·e/2 alone.
        found = changes_at_random("accuracy", counts(1, 0, 0, 0, 0, 0, 0, 0, 0), counts(0, 0, 1, 0, 0, 0, 0, 0, 0), LJP)
        assert found is not None
        self.assertTrue(0.03 < 1 - (1 - found) * (1 - found / 2) < 0.07, found)

    def test_at_worst_it_changes_as_soon_as_enough_errors_favour_the_lower_one(self) -> None:
        # Each error lifts the lower model by one label and another one lowers the higher: 10 labels apart, 5 each.
        one, other = counts(60, 0, 40, 0, 0, 0, 0, 0, 0), counts(50, 0, 50, 0, 0, 0, 0, 0, 0)
        self.assertEqual(changes_at_worst("accuracy", one, other, LJP), 5 / 100)
        self.assertEqual(changes_at_worst("accuracy", other, one, LJP), 5 / 100)
        self.assertIsNone(changes_at_worst("accuracy", one, one, LJP))

    def test_at_worst_in_dcg_a_case_with_two_hits_takes_two_errors(self) -> None:
        # 40 against 20 of 100 cases. Lifting takes one error a case. The higher one has 40 cases with two hits each: it falls
        # by one case with every second error. After 14 errors: 34 against 33, after 13: 33 against 34.
        higher, lower = counts(40, 0, 0, 60), counts(20, 0, 0, 80)
        self.assertEqual(changes_at_worst("success_rate", higher, lower, DCG), 14 / 200)

    def test_at_worst_a_kappa_falls_by_its_dearest_labels_first(self) -> None:
        higher, lower = counts(30, 0, 0, 0, 30, 0, 0, 0, 30), counts(28, 0, 2, 0, 30, 0, 2, 0, 28)
        found = changes_at_worst("qwk", higher, lower, LJP)
        # Two labels mended of four; two of the higher one sent to the far end: (28 + 2, …) on both sides.
        self.assertEqual(found, 2 / 90)


class Undone(unittest.TestCase):
    def test_it_is_the_inverse_where_that_is_no_negative_count(self) -> None:
        truth = np.array([300.0, 60.0, 40.0])
        error = np.array([[0.9, 0.06, 0.04], [0.1, 0.8, 0.1], [0.02, 0.08, 0.9]])
        np.testing.assert_allclose(undone(truth @ error, error), truth, rtol=1e-3)

    def test_it_is_never_negative_and_keeps_the_total(self) -> None:
        found = undone(np.array([0.0, 10.0]), uniform(2, 0.2))  # fewer than the judge's errors alone would give
        self.assertTrue((found >= 0).all())
        self.assertAlmostEqual(float(found.sum()), 10.0)
        self.assertAlmostEqual(float(found[1]), 10.0, places=3)

    def test_two_labels_are_corrected_as_rogan_and_gladen_do(self) -> None:
        sensitivity, specificity = 0.88, 0.93
        error = np.array([[specificity, 1 - specificity], [1 - sensitivity, sensitivity]])
        seen = lca_counts(0.6, 0.3, 432)
        found = corrected(seen, error, LCA)[0]
        for rate, place in ((0.3, 1), (0.6, 3)):
            true, _ = rogan_gladen(rate, 432, sensitivity, 60, specificity, 60)
            self.assertAlmostEqual(found[place] / 432, true, places=5)

    def test_dcg_is_corrected_question_by_question(self) -> None:
        # 0.2 hits; a judge that errs 10 % of the time sees 0.26, and 0.4524 of the cases succeed instead of 0.36.
        seen = 0.2 * 0.9 + 0.8 * 0.1
        shown = counts(*(1000 * share for share in (seen**2, seen * (1 - seen), (1 - seen) * seen, (1 - seen) ** 2)))
        self.assertAlmostEqual(float(figure(METRICS["success_rate"], shown, DCG)[0]), 1 - (1 - 0.26) ** 2)
        found = corrected(shown, uniform(2, 0.1), DCG)
        self.assertAlmostEqual(float(figure(METRICS["success_rate"], found, DCG)[0]), 1 - 0.8**2, places=4)

    @given(st.lists(st.integers(5, 200), min_size=9, max_size=9), st.floats(0.0, 0.15))
    def test_a_known_error_comes_off_again(self, numbers: list[int], share: float) -> None:
        true, error = counts(*numbers), uniform(3, share)
        seen = (true.reshape(3, 3) @ error).reshape(1, 9)
        found, expected = (figure(METRICS["qwk"], some, LJP)[0] for some in (corrected(seen, error, LJP), true))
        self.assertAlmostEqual(float(found), float(expected), places=3)


class FromPeople(unittest.TestCase):
    def test_an_error_matrix_has_the_shares_of_the_weights(self) -> None:
        items = [(0, 0, 1.0)] * 9 + [(0, 1, 3.0)] + [(1, 1, 1.0)] * 4
        found = labelled(items, 2)
        self.assertEqual(found.error().tolist(), [[9 / 12, 3 / 12], [0.0, 1.0]])
        self.assertEqual(found.sizes().tolist(), [12**2 / (9 * 1 + 9), 4.0])  # Kish: (Σw)²/Σw²

    def test_a_label_that_nobody_gave_is_taken_for_one_without_error(self) -> None:
        self.assertEqual(error_of(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist(), [[0.75, 0.25], [0.0, 1.0]])

    def test_drawn_errors_spread_as_samples_of_that_size_do(self) -> None:
        of = Labelled(np.array([[54.0, 6.0], [12.0, 48.0]]), np.array([[54.0, 6.0], [12.0, 48.0]]))
        drawn = of.drawn(20_000, 0)
        self.assertAlmostEqual(float(drawn[:, 0, 1].mean()), 0.1, delta=0.002)
        self.assertAlmostEqual(float(drawn[:, 0, 1].std()), math.sqrt(0.1 * 0.9 / 60), delta=0.001)
        self.assertAlmostEqual(float(drawn[:, 1, 0].std()), math.sqrt(0.2 * 0.8 / 60), delta=0.001)

    def test_the_spread_of_a_corrected_rate_is_that_of_its_formula(self) -> None:
        p, q0, q1, n, m = 0.6, 0.93, 0.88, 432, 60
        by_case = np.zeros((n, 4))
        by_case[:, 0] = 1  # judged on every complete history
        by_case[np.arange(n), 2 + (np.arange(n) < round(p * n))] = 1
        of = Labelled(np.array([[q0 * m, (1 - q0) * m], [(1 - q1) * m, q1 * m]]), np.full((2, 2), 1.0))
        of = of._replace(squares=of.weights)
        drawn = draws(["one"] * n, 4000, 0)
        found = figure(METRICS["acc_u"], corrected(drawn @ by_case, of.drawn(4000, 1), LCA), LCA)
        true, error = rogan_gladen(p, n, q1, m, q0, m)
        self.assertAlmostEqual(true, 0.654321, places=6)  # as on the statistics page
        self.assertAlmostEqual(error, 0.046828, places=6)
        self.assertAlmostEqual(float(found.mean()), true, delta=0.005)
        self.assertAlmostEqual(float(found.std()), error, delta=0.003)


if __name__ == "__main__":
    unittest.main()
