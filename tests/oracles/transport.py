"""Slow truth for the translation: linear programs over everything, and enumeration."""

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack

Floats = NDArray[np.float64]


def loss_by_potentials(p: Floats, q: Floats, cost: Floats) -> float:
    """The largest log E_p[g] / E_q[g] over g(u) <= e^cost(u, v) g(v): the dual program."""
    m = len(p)
    constraints = []
    for u, v in product(range(m), repeat=2):
        if u != v:
            row = np.zeros(m)
            row[u], row[v] = 1.0, -np.exp(cost[u, v])
            constraints.append(row)
    answer = linprog(
        -p, A_ub=np.array(constraints), b_ub=np.zeros(len(constraints)), A_eq=[q], b_eq=[1.0]
    )
    assert answer.status == 0, answer.message
    return float(np.log(-answer.fun))


def loss_by_flows(p: Floats, q: Floats, cost: Floats) -> float:
    """The same by the primal program: the least t for which the mass of p moves into t·q."""
    m = len(p)
    shortest = cost.copy()
    for w in range(m):
        shortest = np.minimum(shortest, shortest[:, [w]] + shortest[[w], :])
    source, sink = np.divmod(np.arange(m * m), m)
    arriving = coo_array((np.exp(shortest).ravel(), (sink, np.arange(m * m))), shape=(m, m * m))
    leaving = coo_array((np.ones(m * m), (source, np.arange(m * m))), shape=(m, m * m))
    answer = linprog(
        np.r_[np.zeros(m * m), 1.0],
        A_ub=hstack([arriving, coo_array(-q[:, None])]),
        b_ub=np.zeros(m),
        A_eq=hstack([leaving, coo_array(np.zeros((m, 1)))]),
        b_eq=p,
        method="highs",
    )
    assert answer.success, answer.message
    return max(float(np.log(answer.x[-1])), 0.0)


def loss_by_trees(p: Floats, q: Floats, cost: Floats) -> float:
    """The same by trying every spanning tree of tight constraints (four states at most)."""
    m = len(p)
    arcs = [(u, v) for u in range(m) for v in range(m) if u != v]
    best = 0.0
    for tree in combinations(arcs, m - 1):
        level = {0: 0.0}
        for _ in range(m):
            for u, v in tree:
                if u in level and v not in level:
                    level[v] = level[u] - cost[u, v]
                elif v in level and u not in level:
                    level[u] = level[v] + cost[u, v]
        if len(level) < m:
            continue
        if all(level[u] - level[v] <= cost[u, v] + 1e-9 for u, v in arcs):
            g = np.exp([level[u] for u in range(m)])
            best = max(best, float(np.log(p @ g / (q @ g))))
    return best


def written_out_chain_loss(
    matrices: list[Floats], start: Floats, epsilon: Floats, entry: int, x: int, y: int
) -> float:
    """The worst loss of (X_entry = x, X_entry = y) over all mechanisms, every dataset listed."""
    states, length = len(start), len(epsilon)
    datasets = list(product(range(states), repeat=length))
    place = {dataset: k for k, dataset in enumerate(datasets)}
    weight = np.array(
        [
            start[d[0]] * np.prod([matrices[i][d[i], d[i + 1]] for i in range(length - 1)])
            for d in datasets
        ]
    )
    given_x = np.array([d[entry] == x for d in datasets]) * weight
    given_y = np.array([d[entry] == y for d in datasets]) * weight
    rows, columns, values = [], [], []
    count = 0
    for d in datasets:
        for i in range(length):
            for other in range(states):
                if other != d[i]:
                    neighbour = place[(*d[:i], other, *d[i + 1 :])]
                    rows += [count, count]
                    columns += [place[d], neighbour]
                    values += [1.0, -np.exp(epsilon[i])]
                    count += 1
    from scipy.sparse import csr_array

    answer = linprog(
        -given_x / given_x.sum(),
        A_ub=csr_array((values, (rows, columns)), shape=(count, len(datasets))),
        b_ub=np.zeros(count),
        A_eq=[given_y / given_y.sum()],
        b_eq=[1.0],
        method="highs",
    )
    assert answer.status == 0, answer.message
    return float(np.log(-answer.fun))


def box_vertices(low: Floats, high: Floats) -> list[Floats]:
    """The vertices of the distributions between ``low`` and ``high``: all but one at an end."""
    m = len(low)
    found = []
    for free in range(m):
        others = [u for u in range(m) if u != free]
        for ends in product((0, 1), repeat=m - 1):
            point = np.empty(m)
            for u, end in zip(others, ends, strict=True):
                point[u] = high[u] if end else low[u]
            point[free] = 1 - point[others].sum()
            if low[free] - 1e-12 <= point[free] <= high[free] + 1e-12:
                found.append(point)
    return found
