"""Slow truth about the necessary condition: vertices, grids, fractions and plain enumeration.

Imports nothing of the package. Tables are ``table[output][dataset]``; secrets are sets of
dataset positions; priors are lists of weights.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import inf, log

import numpy as np

Table = Sequence[Sequence[float]]


def log_ratios(table: Table, dataset: int, among: Sequence[int]) -> list[list[float]]:
    """``[output][D_l]``: log P(w|D*)/P(w|D_l) of the outputs that D* can give."""
    return [
        [log(row[dataset]) - log(row[d]) if row[d] > 0 else inf for d in among]
        for row in table
        if row[dataset] > 0
    ]


def least_epsilon(table: Table, dataset: int, among: Sequence[int]) -> float:
    """The least over beta of the largest constraint value, by trying every vertex.

    The best beta of a linear program is at a vertex of {(beta, x)}: some weights S are non-zero
    and |S| of the constraints hold with equality.
    """
    ratios = log_ratios(table, dataset, among)
    free = [j for j in range(len(among)) if all(row[j] < inf for row in ratios)]
    best = inf
    for size in range(1, len(free) + 1):
        for chosen in combinations(free, size):
            for tight in combinations(range(len(ratios)), size):
                best = min(best, _vertex(ratios, chosen, tight))
    return best


def _vertex(ratios: list[list[float]], chosen: Sequence[int], tight: Sequence[int]) -> float:
    size = len(chosen)
    system = np.zeros((size + 1, size + 1))
    for k, i in enumerate(tight):
        system[k, :size] = [ratios[i][j] for j in chosen]
        system[k, size] = -1
    system[size, :size] = 1
    try:
        beta = np.linalg.solve(system, np.append(np.zeros(size), 1.0))[:size]
    except np.linalg.LinAlgError:
        return inf
    if not np.isfinite(beta).all() or beta.min() < -1e-12:
        return inf
    weights = [float(b) / float(beta.sum()) for b in beta]
    return max(sum(b * row[j] for b, j in zip(weights, chosen, strict=True)) for row in ratios)


def least_epsilon_on_grid(table: Table, dataset: int, among: Sequence[int], steps: int) -> float:
    """The least largest constraint value over all beta that are multiples of 1/steps."""
    ratios = log_ratios(table, dataset, among)
    best = inf
    for parts in _parts(steps, len(among)):
        worst = max(sum(c / steps * row[j] for j, c in enumerate(parts) if c) for row in ratios)
        best = min(best, worst)
    return best


def _parts(total: int, places: int) -> Iterator[tuple[int, ...]]:
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _parts(total - first, places - 1):
            yield (first, *rest)


def composed_odds(
    table: Table,
    prior: Sequence[float],
    left: Sequence[int],
    right: Sequence[int],
    sequence: Sequence[int],
) -> Fraction | None:
    """P(outputs | s) / P(outputs | s') in fractions, output after output; None for x/0."""
    sides = []
    for side in (left, right):
        seen, probability = Fraction(0), Fraction(0)
        for d in side:
            weight = Fraction(prior[d])
            probability += weight
            for output in sequence:
                weight *= Fraction(table[output][d])
            seen += weight
        sides.append(seen / probability)
    return sides[0] / sides[1] if sides[1] else None


def worst_composed(
    table: Table, prior: Sequence[float], left: Sequence[int], right: Sequence[int], runs: int
) -> float:
    """The largest log odds over all sequences of ``runs`` outputs that s can give."""
    worst = -inf
    for sequence in product(range(len(table)), repeat=runs):
        odds = composed_odds(table, prior, left, right, sequence)
        possible = any(
            prior[d] > 0 and all(table[output][d] > 0 for output in sequence) for d in left
        )
        if possible:
            worst = max(worst, inf if odds is None else log(odds))
    return worst


def best_two_by_two(
    table: Table, p: Sequence[float], q: Sequence[float], left: Sequence[int], right: Sequence[int]
) -> float:
    """The least epsilon of a coupling kernel between two and two datasets, by its one parameter.

    beta(first, first) = x fixes the kernel; every constraint is linear in x, so the least
    maximum is at an end or where two of them cross.
    """
    first, second = (log_ratios(table, d, right) for d in left)
    lines = [(row[1], row[0] - row[1]) for row in first]  # (value at x = 0, slope)
    for row in second:  # beta(second, first) = (q0 - p0 x) / p1
        start, slope = q[0] / p[1], -p[0] / p[1]
        lines.append((row[1] + start * (row[0] - row[1]), slope * (row[0] - row[1])))
    low, high = max(0.0, (q[0] - p[1]) / p[0]), min(1.0, q[0] / p[0])
    points = [low, high]
    for (a, b), (c, d) in combinations(lines, 2):
        if b != d and low <= (c - a) / (b - d) <= high:
            points.append((c - a) / (b - d))
    return min(max(a + b * x for a, b in lines) for x in points)


def implied(w: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Whether w is a combination of some others with weights that are >= 0 and sum to <= 1.

    If it is, it is one of linearly independent others (Caratheodory), so subsets suffice.
    """
    goal = np.array(w)
    for size in range(1, min(len(others), len(w)) + 1):
        for chosen in combinations(others, size):
            rows = np.array(chosen).T
            if np.linalg.matrix_rank(rows) < size:
                continue
            weights, *_ = np.linalg.lstsq(rows, goal, rcond=None)
            exact = np.abs(rows @ weights - goal).max() < 1e-10
            if exact and weights.min() > -1e-10 and weights.sum() < 1 + 1e-10:
                return True
    return False
