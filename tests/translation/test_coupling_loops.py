"""The loops of couplings between two lists of states: programs, sets, sums and paths, in full."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu.numeric import Floats
from takifugu.translation.network import coupling_kernel

pytestmark = pytest.mark.nightly

loops: Any = coupling_kernel  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


def coupled(p: Floats, q: Floats, cost: Floats) -> float:
    """Log of the least t with γ(u, ·) = p(u) and Σ_u γ(u, v) e^cost ≤ t q(v), by HiGHS."""
    k, w = cost.shape
    bars = np.zeros((w, k * w + 1))
    fixed = np.zeros((k, k * w + 1))
    for u in range(k):
        for v in range(w):
            bars[v, u * w + v] = math.exp(cost[u, v])
            fixed[u, u * w + v] = 1.0
    bars[:, -1] = -q
    aim = np.zeros(k * w + 1)
    aim[-1] = 1.0
    found = linprog(aim, A_ub=bars, b_ub=np.zeros(w), A_eq=fixed, b_eq=p)
    assert found.success
    return math.log(found.fun)


def problem(
    rng: np.random.Generator, sizes: tuple[int, ...], cost: Floats
) -> tuple[list[np.ndarray], Floats, Floats]:
    """Sides with these many states each, and one table of costs between all states."""
    states = np.arange(sum(sizes))
    most = np.concatenate([rng.dirichlet(np.ones(n)) for n in sizes])
    least = most * rng.uniform(0.9, 1.0, len(most))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    given = [
        *(starts, states, most, least, states[None, :].copy(), cost.ravel().copy()),
        *(np.array([0]), np.array([len(states)]), np.array([np.inf])),
    ]
    return given, most, least


@pytest.mark.parametrize(
    ("seed", "sizes", "scale", "base"),
    [
        (1, (3, 3, 2), 1.0, 0.0),
        (2, (4, 2, 5), 2.0, 0.0),
        (3, (5, 5, 1), 0.2, 0.7),
        (4, (2, 6, 4), 5.0, 2.0),
        (5, (6, 6, 6), 1.0, 0.0),
    ],
)
def test_crossings_are_what_a_general_solver_finds(
    seed: int, sizes: tuple[int, ...], scale: float, base: float
) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    cost = base + scale * rng.uniform(0, 1, (n, n))
    given, most, least = problem(rng, sizes, cost)
    pairs = list(product(range(3), repeat=2))
    lefts, rights = (np.array(one) for one in zip(*pairs, strict=True))
    values = np.full(len(pairs), np.nan)
    loops.cross(*given, lefts, rights, values)
    starts = given[0]
    for value, (left, right) in zip(values, pairs, strict=True):
        a, b = (slice(starts[side], starts[side + 1]) for side in (left, right))
        dearest = cost[a, b].max()
        truth = coupled(most[a], least[b], cost[a, b])
        assert value == pytest.approx(max(min(truth, dearest), 0.0), abs=1e-7)
        assert value >= min(truth - 1e-9, dearest) and value <= dearest * (1 + 1e-14)


def test_a_crossing_between_states_without_choice_is_rounded_up() -> None:
    """One state each: log (p e^cost / q) to hundreds of digits, and a hair above."""
    for p, q, cost in product((1.0, 0.3), (1.0, 0.7, 0.01), (0.0, 1e-9, 0.5, 7.3, 250.0)):
        given = [
            *(np.array([0, 1, 2]), np.arange(2), np.array([p, 9.0]), np.array([9.0, q])),
            *(np.array([[0, 1]]), np.array([0.0, cost, 0.0, 0.0]), np.array([0])),
            *(np.array([2]), np.array([np.inf])),
        ]
        value = np.full(1, np.nan)
        loops.cross(*given, np.array([0]), np.array([1]), value)
        with mpmath.workdps(60):
            truth = mpmath.mpf(cost) + mpmath.log(mpmath.mpf(p) / mpmath.mpf(q))
            truth = max(min(truth, mpmath.mpf(cost)), 0)
            assert truth <= value[0] <= truth + 5e-15 * (4 + cost)


def test_costs_too_far_apart_count_as_the_dearest() -> None:
    cost = np.zeros((4, 4))
    cost[:2, 2:] = [[0.0, 299.0], [299.0, 0.0]]
    rng = np.random.default_rng(1)
    given, _, _ = problem(rng, (2, 2), cost)
    value = np.full(1, np.nan)
    loops.cross(*given, np.array([0]), np.array([1]), value)
    assert value[0] < 299.0
    cost[0, 3] = cost[1, 2] = 301.0
    given, _, _ = problem(rng, (2, 2), cost)
    loops.cross(*given, np.array([0]), np.array([1]), value)
    assert value[0] == pytest.approx(301.0, rel=1e-14) and value[0] >= 301.0


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_and_its_flow_are_optimal_together(seed: int) -> None:
    """No arc breaks a constraint and no mass is negative; and the flow proves t exactly."""
    rng = np.random.default_rng(seed)
    k, w = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    p, q = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(w))
    gain = np.exp(rng.uniform(0, 2, (k, w)))
    nodes = k + w
    source, sink = np.full(nodes, -9), np.full(nodes, -9)
    flow, level = np.full(nodes, np.nan), np.full(nodes, np.nan)
    links, sums = np.zeros((7, 2 * nodes), np.int64), np.zeros((2, nodes))
    loops.solve(p, q, gain, source, sink, flow, level, links, sums)
    arcs = list(zip(source[: nodes - 1].tolist(), sink[: nodes - 1].tolist(), strict=True))
    assert len(set(arcs)) == nodes - 1
    a, b = level[:k], level[k:nodes]
    assert all(a[u] == pytest.approx(gain[u, v] * b[v], rel=1e-12) for u, v in arcs)
    assert (a[:, None] <= gain * b[None, :] * (1 + 1e-12)).all()
    t = p @ a / (q @ b)
    leaving, arriving = np.zeros(k), np.zeros(w)
    for (u, v), mass in zip(arcs, flow.tolist(), strict=False):
        assert mass >= -1e-12
        leaving[u] += mass
        arriving[v] += mass * gain[u, v]
    assert leaving == pytest.approx(p, rel=1e-10)
    assert arriving == pytest.approx(t * q, rel=1e-10)
    proven = loops.proven(p, q, gain, source, sink, flow, sums)
    assert t * (1 - 1e-13) <= proven <= t * (1 + 1e-10)
    # what it proves, in exact numbers: rows are scaled up to p, columns read off
    sent = [Fraction(0)] * k
    for (u, _), mass in zip(arcs, flow.tolist(), strict=False):
        sent[u] += max(Fraction(mass), Fraction(0))
    came = [Fraction(0)] * w
    for (u, v), mass in zip(arcs, flow.tolist(), strict=False):
        share = max(Fraction(mass), Fraction(0)) / sent[u]
        came[v] += share * Fraction(float(p[u])) * Fraction(float(gain[u, v]))
    exact = max(one / Fraction(float(room)) for one, room in zip(came, q, strict=True))
    assert exact <= Fraction(proven) <= exact * (1 + Fraction(1, 10**13))


def test_a_flow_that_is_none_still_proves_something() -> None:
    """Sources without a flow send all they have to one sink; sinks without mass get nothing."""
    p, q = np.array([0.25, 0.75]), np.array([0.0, 0.5, 0.25])
    gain = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])
    source, sink = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 2])
    sums = np.zeros((2, 5))
    # source 0 to sink 2; source 1, whose flow is to a sink without mass, to the largest sink
    found = loops.proven(p, q, gain, source, sink, np.array([1.0, 1.0, 0.0, 2.0]), sums)
    assert found == pytest.approx(max(0.75 * 5 / 0.5, 0.25 * 4 / 0.25), rel=1e-13)
    assert found > 7.5
    # nothing at all is sent: the first arc of each leads to a sink without mass
    found = loops.proven(p, q, gain, source, sink, np.array([-1.0, 0.0, 0.0, 0.0]), sums)
    assert found == pytest.approx((0.25 * 2 + 0.75 * 5) / 0.5, rel=1e-13)
    # the first arc of source 1 leads to a sink with mass: all goes there
    source, sink = np.array([0, 1, 1, 0]), np.array([2, 2, 1, 0])
    found = loops.proven(p, q, gain, source, sink, np.zeros(4), sums)
    assert found == pytest.approx((0.25 * 4 + 0.75 * 7) / 0.25, rel=1e-13)
    # two sinks share a source's mass by the flow, negative ones being none
    source, sink = np.array([0, 0, 1, 1]), np.array([1, 2, 1, 2])
    found = loops.proven(p, q, gain, source, sink, np.array([3.0, 1.0, 2.0, -5.0]), sums)
    arriving = (0.25 * 0.75 * 2 + 0.75 * 5, 0.25 * 0.25 * 4)
    assert found == pytest.approx(max(arriving[0] / 0.5, arriving[1] / 0.25), rel=1e-13)


def test_a_tree_is_read_from_its_root() -> None:
    gain = np.array([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]])
    source, sink = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2])
    level, links = np.zeros(5), np.zeros((7, 10), np.int64)
    loops.hang(gain, source, sink, 2, level, links)
    order, parent, via = links[0, :5].tolist(), links[1, :5].tolist(), links[2, :5].tolist()
    assert order[0] == 2 and parent[2] == -1 and sorted(order) == [0, 1, 2, 3, 4]
    assert [parent[one] for one in (0, 1, 3, 4)] == [2, 2, 0, 1]
    assert [via[one] for one in (0, 1, 3, 4)] == [0, 1, 2, 3]
    assert level.tolist() == pytest.approx([2.0, 7.0, 1.0, 2.0 / 3.0, 7.0 / 13.0])
    assert all(order.index(parent[one]) < order.index(one) for one in (0, 1, 3, 4))


def test_a_move_costs_the_sum_of_its_tables_up_to_their_caps() -> None:
    index = np.array([[0, 1], [1, 0], [0, 2]])
    tables = [np.array([[0.5, 1.5], [2.5, 0.25]]), np.array([[0.1, 0.2], [0.4, 0.8]])]
    tables.append(np.arange(9.0).reshape(3, 3) + 0.125)
    flat, offset = np.concatenate([one.ravel() for one in tables]), np.array([0, 4, 8])
    width = np.array([2, 2, 3])
    parts = [tables[0][0, 1], tables[1][1, 0], tables[2][0, 2]]  # from state 0 to state 1
    for caps, truth in (
        ((np.inf, np.inf, np.inf), sum(parts)),
        ((-1.0, 1.0, np.inf), 1.0 + parts[2]),
        ((-1.0, -1.0, 2.5), 2.5),
        ((0.25, -1.0, 2.0), 2.25),
        ((0.0, 0.0, np.inf), parts[2]),
        ((-1.0, 1.95, 0.5), parts[0] + parts[1] + 0.5),
    ):
        found = loops.move(index, flat, offset, width, np.array(caps), 0, 1)
        assert truth <= found <= truth * (1 + 1e-14)
    back = [tables[0][1, 0], tables[1][0, 1], tables[2][2, 0]]
    found = loops.move(index, flat, offset, width, np.array([np.inf] * 3), 1, 0)
    assert sum(back) <= found <= sum(back) * (1 + 1e-14)
    exact = sum(Fraction(float(one)) for one in parts)
    assert exact <= Fraction(loops.move(index, flat, offset, width, np.full(3, np.inf), 0, 1))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ceiling", [False, True])
def test_what_can_stay_stays(seed: int, ceiling: bool) -> None:
    """C + log of the largest (1 + g P(A)) / (1 + g Q(A)) over all sets of states A."""
    rng = np.random.default_rng(seed)
    kinds = 6
    sides = [sorted(rng.permutation(kinds)[: rng.integers(1, kinds)].tolist()) for _ in range(2)]
    match = np.array(sides[0] + sides[1])
    n = len(match)
    same = match[:, None] == match[None, :]
    cost = np.where(same, rng.uniform(0, 0.3, (n, n)), rng.uniform(0.5, 2.0, (n, n)))
    given, most, least = problem(rng, (len(sides[0]), len(sides[1])), cost)
    value = np.full(1, np.nan)
    a, b = slice(0, len(sides[0])), slice(len(sides[0]), n)
    top = 2.5 if ceiling else float(cost[a, b].max())
    bound = 2.5 if ceiling else -1.0
    loops.nearly(*given, np.array([0]), np.array([1]), value, match, bound)
    stay = float(np.where(same, cost, 0.0)[a, b].max())
    p = dict(zip(sides[0], most[a], strict=True))
    q = dict(zip(sides[1], least[b], strict=True))
    with mpmath.workdps(40):
        g = mpmath.expm1(mpmath.mpf(top) - mpmath.mpf(stay))
        sets = chain.from_iterable(combinations(range(kinds), size) for size in range(kinds + 1))
        largest = max(
            (1 + g * mpmath.fsum(p.get(one, 0) for one in chosen))
            / (1 + g * mpmath.fsum(q.get(one, 0) for one in chosen))
            for chosen in sets
        )
        truth = stay + mpmath.log(largest)
        assert min(truth, top) <= value[0] <= min(truth, top) + 1e-12
    # and a bound for the law that is at least those chances
    assert value[0] >= min(coupled(most[a], most[b], np.minimum(cost[a, b], top)) - 1e-9, top)


def test_where_staying_is_no_cheaper_everything_moves() -> None:
    given, _, _ = problem(np.random.default_rng(2), (2, 2), np.full((4, 4), 0.75))
    for match, gap, truth in (((0, 1, 0, 1), 0.0, 0.75), ((0, 1, 0, 1), 400.0, 400.75)):
        cost = np.full((4, 4), 0.75)
        cost[0, 3] += gap
        given[5] = cost.ravel()
        value = np.full(1, np.nan)
        ways = np.array([0]), np.array([1]), value, np.array(match)
        loops.nearly(*given, *ways, -1.0)
        assert truth <= value[0] <= truth * (1 + 1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_likelier_sums_the_states_where_one_side_is_likelier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.sort(rng.permutation(8)[:4]) for _ in range(2))
    match = np.arange(8) * 3
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    for tau in (0.0, 0.5, 1.0, 2.0, 1e9):
        above = below = 1.0
        for place, state in enumerate(left.tolist()):
            other = sum(q[k] for k, two in enumerate(right.tolist()) if two == state)
            if p[place] > tau * other:
                above, below = above + 1.7 * p[place], below + 1.7 * other
        found = loops.likelier(left, right, match, p, q, tau, 1.7)
        assert found == pytest.approx((above, below), rel=1e-14)


def test_detours_are_taken_where_they_are_cheaper() -> None:
    rng = np.random.default_rng(6)
    n = 5
    for full in (0.0, 0.5):
        cost = rng.uniform(0.1, 3.0, (n, n))
        cost[rng.random((n, n)) < full] = np.inf
        np.fill_diagonal(cost, 0.0)
        exact = [[None if one == np.inf else Fraction(float(one)) for one in row] for row in cost]
        found = cost.copy()
        loops.by_way_of_others(found)
        for u, v in product(range(n), repeat=2):
            lengths = []
            middles = [one for one in range(n) if one not in (u, v)]
            for size in range(n - 1):
                for via in (one for some in combinations(middles, size) for one in orders(some)):
                    steps = [exact[x][y] for x, y in zip((u, *via), (*via, v), strict=True)]
                    if None not in steps:
                        lengths.append(sum(one for one in steps if one is not None))
            if not lengths:
                assert found[u, v] == np.inf
                continue
            shortest = min(lengths)
            assert shortest <= Fraction(float(found[u, v]))
            assert found[u, v] <= float(shortest) * (1 + 1e-13)


def orders(some: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not some:
        return [()]
    return [
        (one, *rest)
        for one in some
        for rest in orders(tuple(other for other in some if other != one))
    ]


@pytest.mark.parametrize("stay", [0.0, 0.25, 250.0, 3e3, 1e6, 7e8])
@pytest.mark.parametrize("gap", [0.125, 0.5, 40.0])
def test_staying_may_cost_much_and_moving_a_little_more(stay: float, gap: float) -> None:
    same = np.tile(np.eye(2), (2, 2)) > 0
    given, _, _ = problem(np.random.default_rng(1), (2, 2), np.where(same, stay, stay + gap))
    given[2], given[3] = np.array([0.75, 0.25, 9.0, 9.0]), np.array([9.0, 9.0, 0.5, 0.5])
    value = np.full(1, np.nan)
    loops.nearly(*given, np.array([0]), np.array([1]), value, np.array([0, 1, 0, 1]), -1.0)
    with mpmath.workdps(40):
        g = mpmath.expm1(gap)
        truth = stay + mpmath.log((1 + g * 0.75) / (1 + g * 0.5))
        assert truth <= value[0] <= truth + 1e-12 + 1e-14 * stay


def test_the_logarithm_of_a_crossing_is_rounded_up() -> None:
    """All of one source goes to a rare sink, and next to nothing to a dear one."""
    cost = np.zeros((3, 3))
    cost[0, 2] = 299.0
    given, _, _ = problem(np.random.default_rng(1), (1, 2), cost)
    value = np.full(1, np.nan)
    for k in range(2, 420, 2):
        rare, dear = 2.0**-k, 2.0**-500
        given[2], given[3] = np.array([1.0, 9.0, 9.0]), np.array([9.0, rare, dear])
        loops.cross(*given, np.array([0]), np.array([1]), value)
        with mpmath.workdps(300):
            truth = -mpmath.log(mpmath.mpf(rare) + mpmath.mpf(dear) * mpmath.exp(-299))
            assert truth <= value[0] <= truth + 1e-11
