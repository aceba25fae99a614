"""What errors of a judge do to a metric: made on purpose (the flip curve), and undone by what people labelled.

Pure functions, no input or output. A task's labels are counted in cells, and what a judge's error does is a matrix between
cells: in LCA and LJP a cell is a truth and a label, in DCG the labels of both questions, since a case succeeds by either. An
error matrix has a row for each label that is right and a column for each that the judge gives; its rows add up to 1.
Source: Rogan and Gladen 1978 and arXiv 2511.21140 for two labels; for more, and for two questions at once, expectation
maximisation of the same model, which is their estimate wherever that lies between 0 and 1.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from metrics import METRICS, Metric, case_sums

if TYPE_CHECKING:
    from metrics import Floats


class Cells(NamedTuple):
    """What a task's labels are counted in."""

    rows: int
    """Groups between which no error moves anything: the truths, or one where a cell is more than a label."""
    labels: int
    """How many labels there are."""
    together: int
    """How many labels make up a cell."""
    units: Sequence[tuple[int, int]]
    """Truth and outcome of each cell, row by row."""

    @property
    def width(self) -> int:
        """Cells in a row."""
        return int(self.labels**self.together)

    def sums(self) -> "Floats":
        """What a unit of each cell adds up to, shape (cells, 14)."""
        import numpy as np

        return np.array([case_sums([unit]) for unit in self.units], dtype=float)

    def moves(self, error: "Floats") -> "Floats":
        """From an error matrix of shape (…, labels, labels) to that of a row's cells, shape (…, width, width)."""
        import numpy as np

        found = error
        for _ in range(self.together - 1):
            product = np.einsum("...ij,...kl->...ikjl", found, error)
            found = product.reshape(*error.shape[:-2], found.shape[-2] * self.labels, found.shape[-1] * self.labels)
        return found


PAIRS, CLAIMS = [(t, x) for t in range(2) for x in range(2)], [(t, x) for t in range(3) for x in range(3)]
CELLS: dict[str, Cells] = {
    "LCA": Cells(2, 2, 1, PAIRS),
    "DCG": Cells(1, 2, 2, [(1, 1), (1, 1), (1, 1), (1, 0)]),  # a hit is the first label, a miss the second one
    **dict.fromkeys(("LJP_direct", "LJP_gold", "LJP_interaction"), Cells(3, 3, 1, CLAIMS)),
}


def uniform(labels: int, error: float) -> "Floats":
    """The error matrix of a judge that gives each other label equally often."""
    import numpy as np

    found: Floats = np.full((labels, labels), error / (labels - 1))
    np.fill_diagonal(found, 1 - error)
    return found


def figure(metric: Metric, counts: "Floats", cells: Cells) -> "Floats":
    """A metric of counts of shape (…, cells): shape (…); NaN where it is undefined."""
    return metric.value(counts @ cells.sums())


# ----------------------------------------------------------------------------------------------------------------------
# The flip curve

ERRORS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
STEP, HIGHEST = 0.005, 0.5
DRAWS = 1000
CHANGED = 0.05  # share of draws in which the order is another, from which on it is called uncertain


def flipped(counts: "Floats", cells: Cells, error: float, draws: int, seed: int) -> "Floats":
    """Counts of shape (runs, cells) after each label fell to another one with that probability: (draws, runs, cells)."""
    import numpy as np

    generator = np.random.default_rng(seed)
    moves = cells.moves(uniform(cells.labels, error))
    found = np.zeros((draws, *counts.shape))
    for run, of_run in enumerate(counts.astype(int)):
        for cell, count in enumerate(of_run):
            row, place = divmod(cell, cells.width)
            part = slice(row * cells.width, (row + 1) * cells.width)
            found[:, run, part] += generator.multinomial(count, moves[place], size=draws)
    return found


class Point(NamedTuple):
    """The models at one error rate."""

    error: float
    means: list[float]
    """Of the metric, by model."""
    correlation: float
    """Of the models' ranks with those without further errors (Spearman), its mean over the draws that have one; NaN if none has."""


def curve(
    metric: str, counts: Sequence["Floats"], cells: Cells, errors: Sequence[float] = ERRORS, seed: int = 0
) -> Iterator[Point]:
    """What labels that fall at random do to some models, each with counts of shape (runs, cells)."""
    from scipy.stats import rankdata

    before = rankdata([figure(METRICS[metric], some, cells).mean() for some in counts])
    for error in errors:
        values = _flipped_values(metric, counts, cells, error, seed)
        ranks = rankdata(values, axis=0)
        spread = ranks.std(axis=0) * before.std()
        together = ((ranks - ranks.mean(axis=0)) * (before - before.mean())[:, None]).mean(axis=0)
        known = spread > 0
        correlation = float((together[known] / spread[known]).mean()) if known.any() else math.nan
        yield Point(error, [float(mean) for mean in values.mean(axis=1)], correlation)


def _flipped_values(metric: str, counts: Sequence["Floats"], cells: Cells, error: float, seed: int) -> "Floats":
    """The metric averaged over runs, shape (models, draws)."""
    import numpy as np

    return np.array(
        [
            figure(METRICS[metric], flipped(some, cells, error, DRAWS, seed + place), cells).mean(axis=1)
            for place, some in enumerate(counts)
        ]
    )


def changes_at_random(metric: str, first: "Floats", second: "Floats", cells: Cells, seed: int = 0) -> float | None:
    """The least error rate, in steps of half a point up to 50 %, at which two models change their order in more than 5 % of
    draws; None if there is none, or they are equal. A tie is a change.
    """
    gap = float(figure(METRICS[metric], second, cells).mean() - figure(METRICS[metric], first, cells).mean())
    if not abs(gap) > 0:
        return None
    for step in range(1, round(HIGHEST / STEP) + 1):
        one, other = _flipped_values(metric, [first, second], cells, step * STEP, seed)
        if ((other - one) * gap <= 0).mean() > CHANGED:
            return step * STEP
    return None


def changes_at_worst(metric: str, first: "Floats", second: "Floats", cells: Cells) -> float | None:
    """The least error rate at which two models can change their order if every error is in favour of the lower one: as many
    labels as that of each run go where they raise the lower model or lower the higher one most. None if there is none up to
    50 %, or the models are equal.
    """
    values = [float(figure(METRICS[metric], some, cells).mean()) for some in (first, second)]
    if not abs(values[1] - values[0]) > 0:
        return None
    lower, higher = (first, second) if values[0] < values[1] else (second, first)
    labels = [float(some.sum(axis=1).max()) * cells.together for some in (lower, higher)]
    rises, falls = _steered(metric, lower, cells, 1), _steered(metric, higher, cells, -1)
    for steps in range(1, round(HIGHEST * max(labels)) + 1):
        error = steps / max(labels)
        if rises[min(int(error * labels[0]), len(rises) - 1)] >= falls[min(int(error * labels[1]), len(falls) - 1)]:
            return error
    return None


def _steered(metric: str, counts: "Floats", cells: Cells, sign: int) -> "Floats":
    """The metric's mean over runs after 0, 1, 2, … labels of each run were changed, each time where that moves it most."""
    import numpy as np

    paths = [[*_steps(metric, of_run.copy(), cells, sign)] for of_run in counts]
    longest = max(map(len, paths))
    found: Floats = np.mean([path + path[-1:] * (longest - len(path)) for path in paths], axis=0)
    return found


def _steps(metric: str, counts: "Floats", cells: Cells, sign: int) -> Iterator[float]:
    import numpy as np

    sums = cells.sums()
    pairs = [
        (here, there, cost)
        for here in range(len(counts))
        for there in range(len(counts))
        if here // cells.width == there // cells.width and (cost := _labels_apart(here, there, cells)) > 0
    ]
    change = np.zeros((len(pairs), len(counts)))
    for place, (here, there, _) in enumerate(pairs):
        change[place, here], change[place, there] = -1, 1
    costs = np.array([cost for *_, cost in pairs])
    sources = np.array([here for here, *_ in pairs])
    value = float(METRICS[metric].value(counts @ sums))
    yield value
    left = round(HIGHEST * counts.sum() * cells.together)
    while left > 0:
        gains = sign * (METRICS[metric].value((counts + change) @ sums) - value) / costs
        gains[(counts[sources] < 1) | (costs > left) | np.isnan(gains)] = -np.inf
        best = int(gains.argmax())
        if not gains[best] > 1e-12:
            return
        counts = counts + change[best]
        after = float(METRICS[metric].value(counts @ sums))
        yield from [value] * (int(costs[best]) - 1)
        value, left = after, left - int(costs[best])
        yield value


def _labels_apart(one: int, other: int, cells: Cells) -> int:
    """In how many labels two cells differ."""
    apart = 0
    for _ in range(cells.together):
        (one, here), (other, there) = divmod(one, cells.labels), divmod(other, cells.labels)
        apart += here != there
    return apart


# ----------------------------------------------------------------------------------------------------------------------
# Undoing errors


STEPS = 300


def undone(counts: "Floats", moves: "Floats") -> "Floats":
    """The counts, of shape (…, width), that are likeliest to have become these by the moves, of shape (…, width, width).

    Never negative, and with the same total: the moves' inverse where that is so, and else what expectation maximisation comes to.
    """
    import numpy as np

    width = counts.shape[-1]
    shape = np.broadcast_shapes(counts.shape[:-1], moves.shape[:-2])
    seen = np.broadcast_to(counts, (*shape, width)).reshape(-1, width)
    chances = np.broadcast_to(moves, (*shape, width, width)).reshape(-1, width, width)
    found: Floats = np.einsum("ni,nij->nj", seen, np.linalg.pinv(chances))
    beyond = (found < 0).any(axis=1)
    found[beyond] = _likeliest(found[beyond], seen[beyond], chances[beyond])
    shaped: Floats = found.reshape(*shape, width)
    return shaped


def _likeliest(start: "Floats", seen: "Floats", chances: "Floats") -> "Floats":
    import numpy as np

    whole = seen.sum(axis=1, keepdims=True)
    # Near the end already, and no count is so small that it stays.
    found: Floats = np.maximum(start, 1e-3 * whole + 1e-9)
    for _ in range(STEPS):
        expected = np.einsum("ni,nij->nj", found, chances)
        share = np.divide(seen, expected, out=np.zeros_like(expected), where=expected > 0)
        last, found = found, found * np.einsum("nj,nij->ni", share, chances)
        if (np.abs(found - last) <= 1e-7 * whole).all():
            break
    return found


def corrected(counts: "Floats", error: "Floats", cells: Cells) -> "Floats":
    """Counts of shape (…, cells) as a judge without that error would have had them; error of shape (…, labels, labels)."""
    rows = counts.reshape(*counts.shape[:-1], cells.rows, cells.width)
    moves = cells.moves(error)[..., None, :, :]
    return undone(rows, moves).reshape(counts.shape)


def error_of(counts: "Floats") -> "Floats":
    """The error matrix of counts of shape (…, labels, labels), right labels by row; a label that never was right is taken for
    one without error.
    """
    import numpy as np

    whole = counts.sum(axis=-1, keepdims=True)
    diagonal = np.broadcast_to(np.eye(counts.shape[-1]), counts.shape).copy()
    found: Floats = np.divide(counts, whole, out=diagonal, where=whole > 0)
    return found


class Labelled(NamedTuple):
    """What people labelled of a judge's labels, each item with the number of items that it stands for."""

    weights: "Floats"
    """Summed up by right label (row) and the judge's (column)."""
    squares: "Floats"
    """Likewise, of their squares."""

    def sizes(self) -> "Floats":
        """Of each right label, how many items of equal weight would be as sure (Kish)."""
        import numpy as np

        over, under = self.weights.sum(axis=1) ** 2, self.squares.sum(axis=1)
        found: Floats = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
        return found

    def error(self) -> "Floats":
        return error_of(self.weights)

    def drawn(self, replicates: int, seed: int) -> "Floats":
        """Error matrices as other samples of these sizes would show them, shape (replicates, labels, labels)."""
        import numpy as np

        generator = np.random.default_rng(seed)
        error, sizes = self.error(), self.sizes()
        rows = [
            generator.multinomial(max(1, round(float(size))), row / row.sum(), size=replicates)
            if size > 0
            else np.tile(row, (replicates, 1))
            for row, size in zip(error, sizes, strict=True)
        ]
        return error_of(np.stack(rows, axis=1).astype(float))


def labelled(items: Sequence[tuple[int, int, float]], labels: int) -> Labelled:
    """From right label, judge's label and weight of each item."""
    import numpy as np

    weights, squares = np.zeros((labels, labels)), np.zeros((labels, labels))
    for right, given, weight in items:
        weights[right, given] += weight
        squares[right, given] += weight**2
    return Labelled(weights, squares)
