"""Slow truth about the worst per-entry differentially private mechanism.

Shares nothing with the package but its values: vertices are enumerated, transports are solved
with one variable for every pair of datasets, distances are counted cell by cell.
"""

from functools import cache
from itertools import product
from math import exp, expm1, log
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def distances(shape: Shape, epsilon: tuple[float, ...]) -> Array:
    """``[dataset, dataset]``: Σ ε_j over the cells in which two tables differ."""
    cells = list(product(*(range(n) for n in shape)))
    return np.array(
        [
            [sum(e for x, y, e in zip(a, b, epsilon, strict=True) if x != y) for b in cells]
            for a in cells
        ]
    )


@cache
def extreme_logarithms(shape: Shape, epsilon: tuple[float, ...]) -> Array:
    """``[vertex, dataset]``: log g of every extreme ray of {g > 0: g(D) ≤ e^{ε_j} g(D′)}.

    At a vertex N − 1 independent constraints are tight. Within a connected part of the tight
    ones g is known up to one factor, so all N datasets hang together: starting from dataset 0,
    every g can be spelled out by following tight constraints, each ±ε_j.
    """
    cells = list(product(*(range(n) for n in shape)))
    near = [
        [
            (b, epsilon[next(j for j in range(len(shape)) if cells[a][j] != cells[b][j])])
            for b in range(len(cells))
            if sum(x != y for x, y in zip(cells[a], cells[b], strict=True)) == 1
        ]
        for a in range(len(cells))
    ]
    complete: set[tuple[float, ...]] = set()
    seen: set[tuple[float | None, ...]] = set()
    stack: list[tuple[float | None, ...]] = [(0.0,) + (None,) * (len(cells) - 1)]
    while stack:
        partial = stack.pop()
        if partial in seen:
            continue
        seen.add(partial)
        if None not in partial:
            complete.add(tuple(v for v in partial if v is not None))
            continue
        for a, value in enumerate(partial):
            if value is None:
                continue
            for b, step in near[a]:
                if partial[b] is not None:
                    continue
                for candidate in (round(value + step, 12), round(value - step, 12)):
                    around = [(partial[c], e) for c, e in near[b]]
                    if all(v is None or abs(v - candidate) <= e + 1e-9 for v, e in around):
                        stack.append((*partial[:b], candidate, *partial[b + 1 :]))
    return np.array(sorted(complete))


def worst_loss_by_vertices(
    probability: Array,
    left: NDArray[np.bool_],
    right: NDArray[np.bool_],
    shape: Shape,
    epsilon: tuple[float, ...],
) -> float:
    """The largest log E[g|s]/E[g|s′] over all extreme g."""
    g = np.exp(extreme_logarithms(shape, epsilon))
    mu, nu = probability * left, probability * right
    return float(np.log((g @ mu / mu.sum()) / (g @ nu / nu.sum())).max())


def worst_loss_by_transport(
    probability: Array,
    left: NDArray[np.bool_],
    right: NDArray[np.bool_],
    shape: Shape,
    epsilon: tuple[float, ...],
) -> float:
    """The logarithm of the least t, by one variable for every pair of datasets."""
    from scipy.optimize import linprog

    mu, nu = probability * left, probability * right
    mu, nu = mu / mu.sum(), nu / nu.sum()
    n = len(mu)
    gains = np.exp(distances(shape, epsilon))
    rows = np.zeros((n, n * n + 1))
    arrivals = np.zeros((n, n * n + 1))
    for a in range(n):
        for b in range(n):
            rows[a, a * n + b] = 1.0
            arrivals[b, a * n + b] = gains[a, b]
    arrivals[:, -1] = -nu
    cost = np.zeros(n * n + 1)
    cost[-1] = 1.0
    answer = linprog(cost, A_ub=arrivals, b_ub=np.zeros(n), A_eq=rows, b_eq=mu, method="highs")
    assert answer.status == 0
    return log(answer.fun)


def attractive_loss(
    probability: Array, shape: Shape, entry: int, value: int, epsilon: tuple[float, ...]
) -> Any:
    """The closed form for affiliated 0/1 entries (the worst mechanism counts), to 60 digits."""
    with mpmath.workdps(60):
        total = {True: mpmath.mpf(0), False: mpmath.mpf(0)}
        tilted = dict(total)
        for p, cells in zip(probability, product(*(range(n) for n in shape)), strict=True):
            side = cells[entry] == value
            tilt = mpmath.fsum(
                mpmath.mpf(e) for j, e in enumerate(epsilon) if j != entry and cells[j] == value
            )
            total[side] += mpmath.mpf(float(p))
            tilted[side] += mpmath.mpf(float(p)) * mpmath.exp(tilt)
        ratio = (tilted[True] / total[True]) / (tilted[False] / total[False])
        return mpmath.mpf(epsilon[entry]) + mpmath.log(ratio)


def closure(logs: Array, shape: Shape, epsilon: tuple[float, ...]) -> Array:
    """The largest admissible log g below ``logs``: a minimum over all datasets at once."""
    return np.asarray((distances(shape, epsilon) + logs[None, :]).min(axis=1))


def largest_delta(
    probability: Array,
    left: NDArray[np.bool_],
    right: NDArray[np.bool_],
    shape: Shape,
    epsilon: float,
    delta: float,
    loss: float,
) -> float:
    """The largest E[g|s] − e^{loss}·E[g|s′] over events g of all per-entry (ε, δ)-DP mechanisms."""
    from scipy.optimize import linprog

    mu, nu = probability * left, probability * right
    objective = mu / mu.sum() - exp(loss) * nu / nu.sum()
    steps = distances(shape, (1.0,) * len(shape))
    rows, limits = [], []
    for a, b in zip(*np.nonzero(steps == 1), strict=True):
        row = np.zeros(len(mu))
        row[a], row[b] = 1.0, -exp(epsilon)
        rows.append(row)  # g(a) ≤ e^ε g(b) + δ
        limits.append(delta)
        rows.append(-row)  # 1 − g(a) ≤ e^ε (1 − g(b)) + δ
        limits.append(expm1(epsilon) + delta)
    answer = linprog(
        -objective, A_ub=np.array(rows), b_ub=np.array(limits), bounds=(0, 1), method="highs"
    )
    assert answer.status == 0
    return float(-answer.fun)
