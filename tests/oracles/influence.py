"""Influence by enumeration, in plain Python, from the definition alone."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from math import exp, inf, log, pi, sqrt

Row = tuple[int, ...]


def least_leak(law: Mapping[Row, float], entry: int, x: int, y: int, exposed: int) -> float:
    """a*(b) of the ordered pair (entry = x, entry = y), over every H of up to ``exposed``."""
    n = len(next(iter(law)))
    best = inf
    for b in range(1, exposed + 1):
        for high in combinations(range(n), b):
            low = [j for j in range(n) if j not in high]
            best = min(best, leak(law, entry, x, y, low))
    return best


def leak(law: Mapping[Row, float], entry: int, x: int, y: int, low: list[int]) -> float:
    """The largest log P(x_L | entry = x) / P(x_L | entry = y)."""
    if not low:
        return 0.0
    given: dict[int, dict[Row, float]] = {x: defaultdict(float), y: defaultdict(float)}
    mass = {x: 0.0, y: 0.0}
    for row, p in law.items():
        if row[entry] in given:
            given[row[entry]][tuple(row[j] for j in low)] += p
            mass[row[entry]] += p
    worst = 0.0
    for part, p in given[x].items():
        if p > 0:
            q = given[y].get(part, 0.0)
            worst = max(worst, log((p / mass[x]) / (q / mass[y])) if q > 0 else inf)
    return worst


def _density(x: float, mean: float, deviation: float) -> float:
    return exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * sqrt(2 * pi))


def truncated_pair_leak(
    rho_near: float, rho_far: float, bound: float, width: float, *, steps: int = 400
) -> float:
    """Three unit-variance coordinates, x_0 hidden, secret on x_1, by midpoint quadrature.

    Correlations: x_0 x_1 and x_1 x_2 ``rho_near``, x_0 x_2 ``rho_far``. The law is cut off to
    ±bound in all three. Regions at the two ends, x_0 at its two ends: a lower bound on the leak.
    """
    determinant = 1 - rho_near**2
    w1 = (rho_near - rho_near * rho_far) / determinant
    w0 = (rho_far - rho_near**2) / determinant
    rest = sqrt(1 - w0 * rho_far - w1 * rho_near)

    def middle(start: float, stop: float) -> list[float]:
        step = (stop - start) / steps
        return [start + (k + 0.5) * step for k in range(steps)]

    def stays(u: float, x0: float) -> float:
        mean = w1 * u + w0 * x0
        step = 2 * bound / steps
        return sum(_density(x2, mean, rest) for x2 in middle(-bound, bound)) * step

    cross = sqrt(1 - rho_near**2)

    def given(start: float, x0: float) -> float:
        cells = middle(start, start + width)
        joint = sum(
            _density(u, 0, 1) * _density(x0, rho_near * u, cross) * stays(u, x0)
            for u in cells[:: steps // 8]
        )
        total = 0.0
        for u in cells[:: steps // 8]:
            inner = sum(
                _density(z, rho_near * u, cross) * stays(u, z)
                for z in middle(-bound, bound)[:: steps // 100]
            ) * (2 * bound / 100)
            total += _density(u, 0, 1) * inner
        return joint / total

    ends = (-bound, bound - width)
    return max(
        log(given(a, x0) / given(b, x0)) for a in ends for b in ends for x0 in (-bound, bound)
    )
