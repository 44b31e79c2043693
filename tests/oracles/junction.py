"""Slow truth for networks and fields: every dataset written out, linear programs, enumeration."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

Floats = NDArray[np.float64]


def coupling_loss(p: Floats, q: Floats, cost: Floats) -> float:
    """The log of the least t for which p can be carried to q at gains e^cost within t q."""
    k, m = cost.shape
    leaving, arriving = np.zeros((k, k * m + 1)), np.zeros((m, k * m + 1))
    for u, v in product(range(k), range(m)):
        leaving[u, u * m + v] = 1.0
        arriving[v, u * m + v] = np.exp(cost[u, v])
    arriving[:, -1] = -q
    goal = np.zeros(k * m + 1)
    goal[-1] = 1.0
    answer = linprog(goal, A_ub=arriving, b_ub=np.zeros(m), A_eq=leaving, b_eq=p, method="highs")
    assert answer.status == 0, answer.message
    return float(np.log(answer.fun))


def worst_loss(
    probability: Floats,
    shape: tuple[int, ...],
    epsilon: Sequence[float],
    entry: int,
    left: Sequence[int],
    right: Sequence[int],
) -> float:
    """The largest log E[g|left] / E[g|right] over all g on datasets that are per-entry ε-DP."""
    datasets = list(product(*(range(n) for n in shape)))
    place = {dataset: n for n, dataset in enumerate(datasets)}
    sides = [
        np.array(
            [w if d[entry] in side else 0.0 for w, d in zip(probability, datasets, strict=True)]
        )
        for side in (left, right)
    ]
    rows, columns, values = [], [], []
    count = 0
    for dataset in datasets:
        for j, size in enumerate(shape):
            for other in range(size):
                if other != dataset[j]:
                    near = (*dataset[:j], other, *dataset[j + 1 :])
                    rows += [count, count]
                    columns += [place[dataset], place[near]]
                    values += [1.0, -np.exp(epsilon[j])]
                    count += 1
    answer = linprog(
        -sides[0] / sides[0].sum(),
        A_ub=csr_array((values, (rows, columns)), shape=(count, len(datasets))),
        b_ub=np.zeros(count),
        A_eq=[sides[1] / sides[1].sum()],
        b_eq=[1.0],
        method="highs",
    )
    assert answer.status == 0, answer.message
    return float(np.log(-answer.fun))


def product_loss(
    probability: Floats,
    shape: tuple[int, ...],
    factors: Sequence[Floats],
    entry: int,
    left: Sequence[int],
    right: Sequence[int],
) -> float:
    """The loss log E[g|left] / E[g|right] of a mechanism with output probability ∝ Π factors."""
    total = {True: [0.0, 0.0], False: [0.0, 0.0]}
    for w, dataset in zip(probability, product(*(range(n) for n in shape)), strict=True):
        if dataset[entry] in left or dataset[entry] in right:
            side = total[dataset[entry] in left]
            side[0] += w
            side[1] += w * float(np.prod([f[x] for f, x in zip(factors, dataset, strict=True)]))
    return float(np.log(total[True][1] / total[True][0] / (total[False][1] / total[False][0])))


def marginal(probability: Floats, shape: tuple[int, ...], scope: Sequence[int]) -> Floats:
    """The law of some entries, in the order of ``scope``."""
    found = np.zeros(tuple(shape[v] for v in scope))
    for w, dataset in zip(probability, product(*(range(n) for n in shape)), strict=True):
        found[tuple(dataset[v] for v in scope)] += w
    return found
