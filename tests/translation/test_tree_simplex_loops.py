"""The loops of the transport, one by one: exact sums, a linear program, proofs by duality."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu.numeric import Floats
from takifugu.translation.chain import tree_simplex
from takifugu.translation.chain.transport_steps import gains

pytestmark = pytest.mark.nightly

loops: Any = tree_simplex  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def metric(rng: np.random.Generator, m: int, scale: float) -> Floats:
    """Costs that obey the triangle inequality, not symmetric."""
    cost = scale * rng.uniform(0.2, 1.0, (m, m))
    np.fill_diagonal(cost, 0.0)
    for _ in range(m):
        cost = np.min(cost[:, :, None] + cost[None, :, :], axis=1)
    return cost


def laws(rng: np.random.Generator, n: int, m: int, zeros: float) -> Floats:
    rows = rng.dirichlet(np.ones(m), n) * (rng.random((n, m)) >= zeros)
    rows[np.arange(n), rng.integers(0, m, n)] += 0.25
    found: Floats = rows / rows.sum(axis=1, keepdims=True)
    return found


def best(p: Floats, q: Floats, gain: Floats) -> tuple[float, Floats]:
    """The largest Σ p g / Σ q g with g(u) ≤ W(u, v) g(v), by HiGHS."""
    m = len(p)
    pairs = [(u, v) for u in range(m) for v in range(m) if u != v]
    bars = np.zeros((len(pairs), m))
    for row, (u, v) in enumerate(pairs):
        bars[row, u], bars[row, v] = 1.0, -gain[u, v]
    found = linprog(-p, A_ub=bars, b_ub=np.zeros(len(pairs)), A_eq=[q], b_eq=[1.0])
    assert found.success
    return math.log(-found.fun), found.x


class Trees:
    """Room for the trees and flows of all pairs."""

    def __init__(self, n: int, m: int) -> None:
        self.parent = np.zeros((n, n, m), np.int16)
        self.tail = np.zeros((n, n, m), np.bool_)
        self.order = np.zeros((n, n, m), np.int16)
        self.mass = np.full((n, n, m), np.nan)
        self.value = np.full((n, n), np.nan)

    def improve(
        self, above: Floats, below: Floats, gain: Floats, guess: float, fresh: bool
    ) -> None:
        """Solve all pairs."""
        n = len(above)
        turned = np.ascontiguousarray(gain.T)
        start = np.full((n, n), guess)
        loops.improve(
            *(above, below, gain, turned, start, fresh, 0, n),
            *(self.parent, self.tail, self.order, self.mass, self.value),
        )

    def arcs(self, x: int, y: int) -> list[tuple[int, int, int]]:
        """Each node that has a parent, and the arc between them: tail, head."""
        found = []
        for v, above in enumerate(self.parent[x, y].tolist()):
            if above >= 0:
                found.append((v, v, above) if self.tail[x, y, v] else (v, above, v))
        return found

    def proves(self, x: int, y: int, p: Floats, q: Floats, gain: Floats) -> Fraction | None:
        """What the flow proves, in exact numbers: the largest [p + arriving − leaving] / q."""
        left = [Fraction(float(one)) for one in p]
        for v, source, sink in self.arcs(x, y):
            mass = Fraction(float(self.mass[x, y, v]))
            assert mass >= 0
            left[source] -= mass
            left[sink] += mass * Fraction(float(gain[source, sink]))
        room = [Fraction(float(one)) for one in q]
        if any(one > 0 and space == 0 for one, space in zip(left, room, strict=True)):
            return None
        return max(one / space for one, space in zip(left, room, strict=True) if space)

    def potentials(self, x: int, y: int, gain: Floats) -> list[Fraction]:
        """The g of a tree, from the root down, in exact numbers."""
        parent = self.parent[x, y].tolist()
        known: dict[int, Fraction] = {v: Fraction(1) for v, one in enumerate(parent) if one < 0}
        assert len(known) == 1
        while len(known) < len(parent):
            for v, source, sink in self.arcs(x, y):
                above = parent[v]
                if above in known and v not in known:
                    factor = Fraction(float(gain[source, sink]))
                    known[v] = known[above] * factor if source == v else known[above] / factor
        return [known[v] for v in range(len(parent))]


def is_preorder(parent: list[int], order: list[int]) -> None:
    assert sorted(order) == list(range(len(parent)))
    for place, v in enumerate(order):
        assert parent[v] < 0 or parent[v] in order[:place]


@pytest.mark.parametrize(
    ("seed", "m", "scale", "zeros"),
    [
        (1, 2, 0.5, 0.0),
        (2, 3, 1.0, 0.4),
        (3, 4, 2.0, 0.0),
        (4, 5, 0.01, 0.3),
        (5, 6, 1.0, 0.5),
        (6, 7, 6.0, 0.2),
        (7, 8, 0.3, 0.0),
        (8, 5, 30.0, 0.0),
    ],
)
def test_flow_and_potentials_prove_each_other(
    seed: int, m: int, scale: float, zeros: float
) -> None:
    rng = np.random.default_rng(seed)
    n = 3
    above, below = laws(rng, n, m, zeros), laws(rng, n, m, 0.0)
    trees = Trees(n, m)
    proven, kept = np.full((n, n), np.nan), np.full((n, n), np.nan)
    for fresh in (True, False, False):  # then from the trees of other costs
        cost = metric(rng, m, scale)
        gain = gains(cost)
        trees.improve(above, below, gain, 0.1, fresh)
        loops.evaluate(above, below, gain, 0, n, trees.parent, trees.tail, trees.mass, proven)
        for closing in (False, True):
            loops.follow(
                above, below, gain, closing, 0, n, trees.parent, trees.tail, trees.order, kept
            )
            off = ~np.eye(n, dtype=bool)
            assert kept[off] == pytest.approx(np.maximum(trees.value[off], 0), abs=1e-12)
        for x in range(n):
            assert proven[x, x] == 0.0
            for y in range(n):
                if x == y:
                    continue
                is_preorder(trees.parent[x, y].tolist(), trees.order[x, y].tolist())
                g = trees.potentials(x, y, gain)  # obeys every constraint: so t is attained
                assert all(
                    g[u] <= Fraction(float(gain[u, v])) * g[v] * (1 + Fraction(1, 10**12))
                    for u in range(m)
                    for v in range(m)
                )
                if scale < 10:  # beyond, the general solver is not to be relied on
                    truth, _ = best(above[x], below[y], gain)
                    assert trees.value[x, y] == pytest.approx(truth, rel=1e-7, abs=1e-7)
                assert trees.value[x, y] <= proven[x, y] <= trees.value[x, y] + 1e-10
                exact = trees.proves(x, y, above[x], below[y], gain)
                assert exact is not None
                assert math.log(exact) <= proven[x, y] <= max(math.log(exact), 0) + 1e-11


@pytest.mark.parametrize("seed", range(6))
def test_any_flow_proves_what_exact_sums_say_and_not_less(seed: int) -> None:
    """Of flows that balance nothing: the bound is what is left over, rounded up by a hair."""
    rng = np.random.default_rng(seed)
    n, m = 2, 4
    above, below = laws(rng, n, m, 0.3), laws(rng, n, m, 0.0)
    gain = gains(metric(rng, m, 1.5))
    trees = Trees(n, m)
    trees.parent[:] = np.array([1, -1, 1, 2], np.int16)
    trees.tail[:] = rng.random((n, n, m)) < 0.5
    trees.mass[:] = 0.05 * rng.random((n, n, m)) * above[:, None, :]
    trees.mass[:, :, 1] = 0.0
    trees.mass[0, 1, 3] = 0.0
    found = np.full((n, n), np.nan)
    loops.evaluate(above, below, gain, 0, n, trees.parent, trees.tail, trees.mass, found)
    for x, y in ((0, 1), (1, 0)):
        exact = trees.proves(x, y, above[x], below[y], gain)
        assert exact is not None
        assert math.log(exact) <= found[x, y] <= math.log(exact) + 100 * 2.0**-53
        assert found[x, y] >= math.log(exact) + 24 * 2.0**-53  # of sums, and of the logarithm
    trees.mass[0, 1, 0] = np.nan  # proves nothing, but an arc that carries nothing is not used
    trees.mass[1, 0, 0] = np.inf
    loops.evaluate(above, below, gain, 0, n, trees.parent, trees.tail, trees.mass, found)
    assert found[1, 0] == np.inf
    below[1] = [0.0, 0.5, 0.25, 0.25]
    above[0] = [0.25, 0.25, 0.25, 0.25]
    trees.mass[:] = 0.0
    loops.evaluate(above, below, gain, 0, 1, trees.parent, trees.tail, trees.mass, found)
    assert found[0, 1] == np.inf  # mass where there is no room
    below[1], above[0] = [0.0, 0.5, 0.25, 0.25], [0.0, 0.5, 0.25, 0.25]
    loops.evaluate(above, below, gain, 0, 1, trees.parent, trees.tail, trees.mass, found)
    assert 0.0 < found[0, 1] < 1e-13


def test_only_the_rows_asked_for_are_written() -> None:
    rng = np.random.default_rng(5)
    n, m = 3, 3
    above, below = laws(rng, n, m, 0.0), laws(rng, n, m, 0.0)
    gain = gains(metric(rng, m, 1.0))
    trees = Trees(n, m)
    trees.improve(above, below, gain, 0.0, True)
    for loop, given in (
        (loops.evaluate, (above, below, gain, 1, 2, trees.parent, trees.tail, trees.mass)),
        (loops.follow, (above, below, gain, False, 1, 2, trees.parent, trees.tail, trees.order)),
    ):
        found = np.full((n, n), -7.0)
        loop(*given, found)
        assert (found[[0, 2]] == -7.0).all() and (found[1, [0, 2]] >= 0).all()
        # a row loses nothing beside itself, which is said or left as it was
        assert found[1, 1] == (0.0 if loop is loops.evaluate else -7.0)
    again = Trees(n, m)
    again.value[:] = -7.0
    loops.improve(
        *(above, below, gain, np.ascontiguousarray(gain.T), np.zeros((n, n)), True, 1, 2),
        *(again.parent, again.tail, again.order, again.mass, again.value),
    )
    assert (again.value[[0, 2]] == -7.0).all()
    assert again.value[1, [0, 2]] == pytest.approx(trees.value[1, [0, 2]], abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_old_trees_under_new_gains(seed: int) -> None:
    """What follows from an old tree is its own potentials; closed, it never exceeds the truth."""
    rng = np.random.default_rng(seed)
    n, m = 2, 5
    above, below = laws(rng, n, m, 0.2), laws(rng, n, m, 0.0)
    trees = Trees(n, m)
    trees.improve(above, below, gains(metric(rng, m, 1.0)), 0.0, True)
    gain = gains(metric(rng, m, 2.5))
    plain, closed = np.zeros((n, n)), np.zeros((n, n))
    for out, closing in ((plain, False), (closed, True)):
        loops.follow(above, below, gain, closing, 0, n, trees.parent, trees.tail, trees.order, out)
    exact_gain = [[Fraction(float(one)) for one in row] for row in gain]
    for x, y in ((0, 1), (1, 0)):
        g = trees.potentials(x, y, gain)
        low = [min(exact_gain[u][v] * g[v] for v in range(m)) for u in range(m)]
        for out, potential in ((plain, g), (closed, low)):
            sums = [
                sum(Fraction(float(w)) * one for w, one in zip(law, potential, strict=True))
                for law in (above[x], below[y])
            ]
            assert out[x, y] == pytest.approx(max(math.log(sums[0] / sums[1]), 0.0), abs=1e-12)
        truth, _ = best(above[x], below[y], gain)
        assert closed[x, y] <= truth + 1e-9


def test_potentials_beyond_floats_are_started_afresh() -> None:
    rng = np.random.default_rng(3)
    n, m = 2, 5
    above, below = laws(rng, n, m, 0.0), laws(rng, n, m, 0.0)
    trees = Trees(n, m)
    trees.improve(above, below, gains(metric(rng, m, 1.0)), 0.0, True)
    # a path: its potentials under the new gains are beyond all floats
    trees.parent[:] = np.arange(-1, m - 1)
    trees.tail[:] = True
    trees.order[:] = np.arange(m)
    gain = gains(np.where(np.eye(m) > 0, 0.0, 250.0))
    values = np.zeros((n, n))
    loops.follow(above, below, gain, False, 0, n, trees.parent, trees.tail, trees.order, values)
    assert values[0, 1] == values[1, 0] == np.inf
    loops.follow(above, below, gain, True, 0, n, trees.parent, trees.tail, trees.order, values)
    assert (values >= 0).all() and values[0, 1] < np.inf
    trees.improve(above, below, gain, 0.0, False)
    loops.evaluate(above, below, gain, 0, n, trees.parent, trees.tail, trees.mass, values)
    for x, y in ((0, 1), (1, 0)):
        # free to move as far as it likes: the largest of all ratios p/q
        assert values[x, y] == pytest.approx(math.log(max(above[x] / below[y])), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_preorder_lists_subtrees_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = 9
    names = rng.permutation(m)
    parent = np.full(m, -1, np.int64)
    for k in range(1, m):
        if rng.random() < 0.8:
            parent[names[k]] = names[rng.integers(0, k)]
    first, sibling, order, size = np.full((4, m), -5, np.int64)
    roots = loops.preorder(parent, first, sibling, order, size)
    assert roots == (parent < 0).sum()
    is_preorder(parent.tolist(), order.tolist())

    def under(v: int) -> set[int]:
        return {v}.union(*(under(w) for w in range(m) if parent[w] == v))

    for place, v in enumerate(order.tolist()):
        assert size[v] == len(under(v))
        assert set(order[place : place + size[v]].tolist()) == under(v)


def test_the_least_product_and_where_it_is() -> None:
    row, weight = np.array([3.0, 1.0, 2.0, 0.5]), np.array([1.0, 2.0, 1.0, 4.0])
    assert loops.least(row, weight) == 2.0
    assert loops.where_least(row, weight) == 1  # of equal ones the first
    assert loops.where_least(row, np.array([0.1, 2.0, 1.0, 4.0])) == 0
    assert loops.where_least(row, np.array([1.0, 2.0, 1.0, np.inf])) == 1
    assert loops.least(row[:0], weight[:0]) == np.inf


@pytest.mark.parametrize("seed", range(6))
def test_regrown_potentials_are_admissible_and_tight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 2, 6
    above, below = laws(rng, n, m, 0.0), laws(rng, n, m, 0.0)
    trees = Trees(n, m)
    trees.improve(above, below, gains(metric(rng, m, 1.0)), 0.0, True)
    gain = gains(metric(rng, m, 1.5))
    parent, tail = trees.parent[0, 1].astype(np.int64), trees.tail[0, 1].copy()
    g = np.ones(m)
    assert loops.regrow(gain, parent, tail, g, np.empty((5, m), np.int64), np.empty((3, m)))
    assert (g[:, None] <= gain * g[None, :] * (1 + 1e-13)).all()
    assert (parent < 0).any()
    for v in np.flatnonzero(parent >= 0):
        source, sink = (v, parent[v]) if tail[v] else (parent[v], v)
        assert g[source] == pytest.approx(gain[source, sink] * g[sink], rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_first_tree_is_tight_and_admissible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = 6
    p, q = laws(rng, 2, m, 0.2)
    gain = gains(metric(rng, m, 1.0))
    parent, tail, g = np.full(m, -9), np.zeros(m, np.bool_), np.zeros(m)
    turned = np.ascontiguousarray(gain.T)
    work = np.empty((5, m), np.int64), np.empty((3, m))
    loops.plant(p, q, 1.2, gain, turned, parent, tail, g, *work)
    root = np.flatnonzero(parent < 0)
    assert root.tolist() == [int(np.argmax(np.abs(p - 1.2 * q)))] and g[root[0]] == 1.0
    assert (g[:, None] <= gain * g[None, :] * (1 + 1e-13)).all()
    for v in np.flatnonzero(parent >= 0):
        assert tail[v] == (p[v] > 1.2 * q[v])
        source, sink = (v, parent[v]) if tail[v] else (parent[v], v)
        assert g[source] == pytest.approx(gain[source, sink] * g[sink], rel=1e-12)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_response_has_the_largest_ratio(fresh: bool) -> None:
    rng = np.random.default_rng(4)
    rows, m = 5, 5
    above, below = 3.0 * laws(rng, rows, m, 0.3), laws(rng, rows, m, 0.0)
    above[1], below[2], above[3] = 0.0, 0.0, np.nan
    parents, tails = np.zeros((rows, m), np.int16), np.zeros((rows, m), np.bool_)
    potentials = np.zeros((rows, m))
    for turn in (True, fresh):
        gain = gains(metric(rng, m, 1.0))
        loops.respond(
            *(above, below, gain, np.ascontiguousarray(gain.T), turn),
            *(parents, tails, potentials),
        )
        assert (potentials[1:4] == 1.0).all()  # nothing is known there
        for k in (0, 4):
            g = potentials[k]
            assert (g[:, None] <= gain * g[None, :] * (1 + 1e-12)).all()
            truth, _ = best(above[k], below[k], gain)
            assert math.log(above[k] @ g / (below[k] @ g)) == pytest.approx(truth, abs=1e-7)


@pytest.mark.parametrize("leaves", [True, False])
def test_potentials_beyond_floats_are_refused(leaves: bool) -> None:
    """Two arcs of e^200 in a row, up or down: nothing is changed, and a new tree is planted."""
    gain = np.exp(np.array([[0.0, 200.0, 200.0], [200.0, 0.0, 200.0], [200.0, 200.0, 0.0]]))
    whole, real = np.empty((5, 3), np.int64), np.empty((3, 3))
    for reach, fits in ((200.0, False), (170.0, True)):
        parent, tail = np.array([-1, 0, 1]), np.full(3, leaves)
        scaled = gain ** (reach / 200.0)
        assert loops.regrow(scaled, parent, tail, np.empty(3), whole, real) is fits
        assert fits or parent.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("seed", range(12))
def test_a_source_with_hardly_any_room_of_its_own_is_emptied(seed: int) -> None:
    """What rounding leaves there would be large beside it: the flow proves what the tree says."""
    rng = np.random.default_rng(seed)
    n, m = 3, int(rng.integers(2, 6))
    above, below = laws(rng, n, m, 0.3), laws(rng, n, m, 0.3)
    below *= 10.0 ** -rng.integers(0, 18, (n, m))
    below /= below.sum(axis=1, keepdims=True)
    cost = metric(rng, m, 0.5)
    trees = Trees(n, m)
    trees.improve(above, below, np.exp(cost), 0.3, True)
    proven = np.zeros((n, n))
    loops.evaluate(*(above, below, gains(cost), 0, n, trees.parent, trees.tail, trees.mass, proven))
    apart = ~np.eye(n, dtype=bool)
    assert proven[apart] == pytest.approx(trees.value[apart], rel=1e-6, abs=1e-9)
