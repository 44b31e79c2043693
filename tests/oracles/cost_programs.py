r"""Slow truth about costs: linear programs over all datasets, with a certificate on both sides.

A world is a table of probabilities, one axis for each entry, and a cost matrix for each entry.
For two sets of datasets, the left and the right side of a secret pair, the worst loss is

.. math:: E^* = \max_g \log \frac{E[g | left]}{E[g | right]} \quad\text{s.t.}\quad
          g(D) \le e^{c_j(u,v)} g(D')

for all datasets D, D′ that differ in entry j alone, u there and v here. HiGHS solves the dual, a
flow with gains between neighbours; what it returns is not trusted:

* *Lower.* From any g > 0, :math:`\min_{D'} g(D') e^{\sum_j c_j(D_j, D'_j)}` is admissible, and
  that minimum is taken entry by entry. It is a mechanism that leaks as much.
* *Upper.* For any flow y ≥ 0 let r(D) = P(D|left) − what leaves D + what arrives there, each
  with its gain. For every admissible g, E[g|left] ≤ Σ g(D) r(D). Compare r with t·P(D|right), and
  let e(D) be what is above it. Since g(D) ≤ e^{c(D,D′)} g(D′) for all D′,
  :math:`g(D) \sum_{D'} P(D'|right) e^{-c(D,D')} \le E[g|right]`, so
  :math:`E[g|left] / E[g|right] \le t + \sum_D e(D) / \sum_{D'} P(D'|right) e^{-c(D,D')}`.

So both ends hold whatever the solver did, up to a few units of roundoff. Nothing here is taken from
the package.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ENOUGH = 1e-11  # a relative width of t at which nothing is refined any more
ROUNDS = 3  # each solves again, scaled by the mechanism that was found


@dataclass(frozen=True, eq=False)
class Solved:
    """The worst loss: between ``lower`` and ``upper``.

    Attributes:
        lower: What ``mechanism`` leaks.
        upper: What no mechanism leaks more than.
        mechanism: ``[dataset...]``: log g.
    """

    lower: float
    upper: float
    mechanism: Array

    @property
    def width(self) -> float:
        """How far the certificates are apart."""
        return self.upper - self.lower


def any_value(size: int, epsilon: float) -> Array:
    """ε·[u≠v]."""
    return np.array([[0.0 if u == v else epsilon for v in range(size)] for u in range(size)])


def difference(levels: Sequence[float], epsilon: float = 1.0) -> Array:
    """ε·|f(u) − f(v)|: of a count f is 0 or 1, of a sum the number itself."""
    return np.array([[epsilon * abs(one - other) for other in levels] for one in levels])


def shortest(cost: Array) -> Array:
    """The cost of the cheapest way from u to v."""
    found = np.array(cost, dtype=np.float64)
    np.fill_diagonal(found, 0.0)
    for w in range(len(found)):
        found = np.minimum(found, found[:, [w]] + found[[w], :])
    return found


def chain_table(start: Sequence[float] | Array, matrices: Sequence[Array]) -> Array:
    """``[x_0, …, x_{T−1}]``: the probability of every sequence."""
    table = np.asarray(start, dtype=np.float64)
    for matrix in matrices:
        table = table[..., None] * np.asarray(matrix, dtype=np.float64)
    return table


def factor_table(
    shape: Sequence[int], factors: Sequence[tuple[Sequence[int], Array]], *, sums: bool = True
) -> Array:
    """``[x_0, …]``: the product of factors, each a table over some entries, divided by its sum."""
    table = np.ones(tuple(shape))
    for entries, values in factors:
        for dataset in product(*(range(n) for n in shape)):
            table[dataset] *= values[tuple(dataset[j] for j in entries)]
    return table / table.sum() if sums else table


def entry_is(
    shape: Sequence[int],
    entry: int,
    values: Sequence[int],
    known: Mapping[int, int] | None = None,
) -> Mask:
    """The datasets whose ``entry`` has one of ``values``, and whose known entries are as known."""
    places = np.indices(tuple(shape))  # [entry, dataset...]
    holds = np.isin(places[entry], list(values))
    for j, value in (known or {}).items():
        holds &= places[j] == value
    return np.asarray(holds)


def worst_loss(table: Array, costs: Sequence[Array], left: Mask, right: Mask) -> Solved:
    """The largest loss of one ordered pair of sets of datasets over all mechanisms.

    ``costs[j]`` is the cost matrix of entry j. Both sides must be possible.
    """
    closed = [shortest(np.asarray(cost, dtype=np.float64)) for cost in costs]
    gain, loss = np.where(left, table, 0.0), np.where(right, table, 0.0)
    assert gain.sum() > 0, "the left side is impossible"
    assert loss.sum() > 0, "the right side is impossible"
    return _solved(gain / gain.sum(), loss / loss.sum(), closed)


def pair_loss(
    table: Array,
    costs: Sequence[Array],
    entry: int,
    x: int,
    y: int,
    known: Mapping[int, int] | None = None,
) -> Solved:
    """The same for X_entry = x against y, a smaller program over the entries that are not fixed.

    Every way from one side to the other pays c(x, y) at the entry, and what a mechanism makes of
    the rest is admissible at the other entries; a known entry is the same on both sides.
    """
    closed = [shortest(np.asarray(cost, dtype=np.float64)) for cost in costs]
    fixed = dict(known or {})
    assert entry not in fixed
    laws = []
    for value in (x, y):
        at = {**fixed, entry: value}
        law = table[tuple(at.get(j, slice(None)) for j in range(table.ndim))]
        assert law.sum() > 0, "a side is impossible"
        laws.append(np.asarray(law / law.sum()))
    rest = [closed[j] for j in range(table.ndim) if j != entry and j not in fixed]
    own = float(closed[entry][x, y])
    if not rest:
        return Solved(own, own, np.zeros(()))
    found = _solved(laws[0], laws[1], rest)
    return Solved(own + found.lower, own + found.upper, found.mechanism)


def value_pairs(table: Array) -> Iterator[tuple[int, int, int]]:
    """Every (entry, x, y) that can be asked about."""
    for entry in range(table.ndim):
        law = table.sum(axis=tuple(j for j in range(table.ndim) if j != entry))
        yield from ((entry, x, y) for x, y in permutations(np.nonzero(law)[0].tolist(), 2))


def all_losses(table: Array, costs: Sequence[Array]) -> dict[tuple[int, int, int], Solved]:
    """The loss of every (entry, x, y)."""
    return {pair: pair_loss(table, costs, *pair) for pair in value_pairs(table)}


def largest(losses: Mapping[tuple[int, int, int], Solved]) -> Solved:
    """The loss of the worst of several pairs: what bounds all of them, and one that attains it."""
    top = max(losses.values(), key=lambda solved: solved.lower)
    return Solved(top.lower, max(solved.upper for solved in losses.values()), top.mechanism)


def two_point_starts(size: int, shares: Sequence[float]) -> Iterator[Array]:
    """Start laws on at most two states, the first of which has one of ``shares``."""
    for x, y in permutations(range(size), 2):
        for share in shares:
            law = np.zeros(size)
            law[x], law[y] = share, 1 - share
            if x < y or share < 1:
                yield law


def known_losses(
    table: Array, costs: Sequence[Array], entry: int, x: int, y: int
) -> dict[tuple[tuple[int, int], ...], Solved]:
    """The loss of X_entry = x against y for everything that may be known of the other entries.

    By what is known, (entry, value) by (entry, value); knowledge that excludes a side is left out.
    """
    found = {}
    others = [j for j in range(table.ndim) if j != entry]
    for choice in product(*([None, *range(table.shape[j])] for j in others)):
        known = {j: value for j, value in zip(others, choice, strict=True) if value is not None}
        sides = (
            table[tuple({**known, entry: value}.get(j, slice(None)) for j in range(table.ndim))]
            for value in (x, y)
        )
        if all(side.sum() > 0 for side in sides):
            found[tuple(known.items())] = pair_loss(table, costs, entry, x, y, known)
    return found


def slope(table: Array, costs: Sequence[Array], left: Mask, right: Mask) -> float:
    r"""The limit of E*(η·c)/η as η falls to 0: :math:`\max_h E[h|left] - E[h|right]`.

    With g = e^h, h(D) − h(D′) ≤ c_j(u,v). This is Kantorovich's transport of left to right.
    """
    closed = [shortest(np.asarray(cost, dtype=np.float64)) for cost in costs]
    gain, loss = np.where(left, table, 0.0), np.where(right, table, 0.0)
    difference = (gain / gain.sum() - loss / loss.sum()).ravel()
    tail, head, arc = _neighbours(table.shape, closed)
    count, nodes = len(tail), table.size
    matrix = coo_array(
        (
            np.r_[np.ones(count), -np.ones(count)],
            (np.r_[tail, head], np.r_[np.arange(count), np.arange(count)]),
        ),
        shape=(nodes, count),
    )
    answer = linprog(arc, A_eq=matrix.tocsr(), b_eq=difference, method="highs")
    assert answer.status == 0, answer.message
    return float(answer.fun)


def _neighbours(
    shape: Sequence[int], costs: Sequence[Array]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Every ordered pair of datasets that differ in one entry, by number, and its cost."""
    numbers = np.arange(int(np.prod(shape))).reshape(tuple(shape))
    tails, heads, arcs = [], [], []
    for j, cost in enumerate(costs):
        by_value = np.moveaxis(numbers, j, 0).reshape(shape[j], -1)
        for u, v in permutations(range(shape[j]), 2):
            tails.append(by_value[u])
            heads.append(by_value[v])
            arcs.append(np.full(by_value.shape[1], cost[u, v]))
    empty = np.zeros(0)
    if not tails:
        return empty.astype(np.int64), empty.astype(np.int64), empty
    return np.concatenate(tails), np.concatenate(heads), np.concatenate(arcs)


def _closed_below(logs: Array, costs: Sequence[Array]) -> Array:
    """The largest admissible log g that is nowhere above ``logs``."""
    for j, cost in enumerate(costs):
        moved = np.moveaxis(logs, j, 0)
        lowered = (cost.reshape(*cost.shape, *(1,) * (logs.ndim - 1)) + moved[None]).min(axis=1)
        logs = np.moveaxis(lowered, 0, j)
    return logs


def _leak(p: Array, q: Array, logs: Array) -> float:
    scaled = np.exp(logs - logs.max())
    return log(float((p * scaled).sum())) - log(float((q * scaled).sum()))


def _reach(q: Array, costs: Sequence[Array]) -> Array:
    """``[D]``: Σ_{D′} q(D′)·e^{−c(D,D′)}."""
    for j, cost in enumerate(costs):
        q = np.moveaxis(np.tensordot(np.exp(-cost), np.moveaxis(q, j, 0), axes=1), 0, j)
    return q


def _solved(p: Array, q: Array, costs: Sequence[Array]) -> Solved:
    """Both certificates for the laws ``p`` and ``q`` of datasets, and closed ``costs``."""
    tail, head, arc = _neighbours(p.shape, costs)
    logs = _closed_below(np.where(q > 0, 0.0, np.inf), costs)
    logs = np.where(np.isfinite(logs), logs, 0.0)
    best = Solved(_leak(p, q, logs), float(-np.log(_reach(q, costs)[p > 0].min())), logs)
    for _ in range(ROUNDS):
        found = _one_round(p, q, costs, (tail, head, arc), best.mechanism)
        if found is not None:
            keep = found if found.lower >= best.lower else best
            best = Solved(keep.lower, min(best.upper, found.upper), keep.mechanism)
        if best.width <= ENOUGH:
            break
    return best


def _one_round(
    p: Array,
    q: Array,
    costs: Sequence[Array],
    arcs: tuple[NDArray[np.int64], NDArray[np.int64], Array],
    logs: Array,
) -> Solved | None:
    """Solve for z, g = e^logs · z: near the solution every z is about 1."""
    tail, head, arc = arcs
    level = (logs - logs.max()).ravel()
    level -= log(float((q.ravel() * np.exp(level)).sum()))
    weight = np.exp(level)
    mass, target = p.ravel() * weight, q.ravel() * weight
    gains = np.exp(np.minimum(arc + level[head] - level[tail], 600.0))
    count, nodes = len(tail), p.size
    columns = np.arange(count)
    matrix = coo_array(
        (
            np.r_[-np.ones(count), gains, -target],
            (np.r_[tail, head, np.arange(nodes)], np.r_[columns, columns, np.full(nodes, count)]),
        ),
        shape=(nodes, count + 1),
    ).tocsr()
    answer = linprog(
        np.r_[np.zeros(count), 1.0],
        A_ub=matrix,
        b_ub=-mass,
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        return None
    flow, t = np.maximum(answer.x[:-1], 0.0), float(answer.x[-1])
    arrived = np.bincount(head, flow * gains, nodes) - np.bincount(tail, flow, nodes)
    above = np.maximum(mass + arrived - t * target, 0.0)
    reach = _reach(q, costs).ravel()
    upper = log(t + float((above / weight / reach).sum())) if t > 0 else np.inf
    z = np.maximum(-answer.ineqlin.marginals, 0.0)
    with np.errstate(divide="ignore"):
        raw = (np.log(z) + level).reshape(p.shape)
    raw = _closed_below(raw, costs)
    if not np.isfinite(raw).all():
        raw = logs
    return Solved(_leak(p, q, raw), upper, raw)
