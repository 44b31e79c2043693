"""Steps for all laws of an unknown start: closed forms to many digits, laws tried one by one."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu.numeric import Floats
from takifugu.translation.chain import start_hull
from takifugu.translation.chain.start_hull import StartHull, hull_step, two_point

pytestmark = pytest.mark.nightly

SIZES = [0.0, 1e-300, 1e-9, 0.2, 1.0, 4.0, 30.0, 200.0, math.inf]


@pytest.mark.parametrize(("delta", "omega"), list(product(SIZES, repeat=2)))
def test_the_two_point_function_is_rounded_up(delta: float, omega: float) -> None:
    found = float(two_point(np.array(delta), omega))
    assert found <= min(delta, omega)
    if min(delta, omega) > 0 and max(delta, omega) < 100:
        with mpmath.workdps(700):
            a, b = mpmath.mpf(delta) / 4, mpmath.mpf(omega) / 4
            truth = 2 * mpmath.log(mpmath.cosh(a + b) / mpmath.cosh(a - b))
            if truth > 1e-290:
                assert truth * (1 - mpmath.mpf(1e-15)) <= found
            if max(delta, omega) < 20:
                assert found <= truth * (1 + mpmath.mpf(1e-12)) + 1e-300
    elif max(delta, omega) == math.inf:
        assert found == pytest.approx(min(delta, omega))


def loss_of(p: Floats, q: Floats, cost: Floats) -> float:
    """The largest log Σ p g / Σ q g over admissible g, by HiGHS."""
    m = len(p)
    pairs = [(u, v) for u in range(m) for v in range(m) if u != v]
    bars = np.zeros((len(pairs), m))
    for row, (u, v) in enumerate(pairs):
        bars[row, u], bars[row, v] = 1.0, -math.exp(cost[u, v])
    found = linprog(-p, A_ub=bars, b_ub=np.zeros(len(pairs)), A_eq=[q], b_eq=[1.0])
    return math.log(-found.fun)


def given(law: Floats, weights: Floats, x: int) -> Floats:
    joint = law * weights[x]
    found: Floats = joint / joint.sum()
    return found


def stochastic(rng: np.random.Generator, m: int) -> Floats:
    return rng.dirichlet(np.ones(m), m)


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize(("seed", "m"), [(1, 2), (2, 2), (3, 3), (4, 3)])
def test_no_law_of_the_hull_loses_more(seed: int, m: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = stochastic(rng, m), stochastic(rng, m)
    cost = rng.uniform(0.3, 1.2, (m, m))
    np.fill_diagonal(cost, 0.0)
    for w in range(m):
        cost = np.minimum(cost, cost[:, [w]] + cost[[w], :])
    hull = StartHull.whole(m)
    for _ in range(steps):
        hull = hull.after(rows)
    power = np.linalg.matrix_power(rows, steps)
    assert hull.laws == pytest.approx(power) and hull.steps == steps
    found = hull_step(hull, weights, cost)
    loose = hull_step(hull, weights, cost, close=None)
    shares = [0.0, 0.03, 0.25, 0.5, 0.75, 0.97, 1.0]
    for x, y in product(range(m), repeat=2):
        if x == y:
            assert found[x, y] == 0.0
            continue
        worst = 0.0
        for a, b in product(range(m), repeat=2):
            for share in shares if a < b else ():
                law = (1 - share) * hull.laws[a] + share * hull.laws[b]
                if (law * weights[x]).sum() and (law * weights[y]).sum():
                    one, other = given(law, weights, x), given(law, weights, y)
                    worst = max(worst, loss_of(one, other, cost))
        assert worst <= found[x, y] + 1e-8
        assert found[x, y] <= worst * 1.2 + 2e-3
        assert found[x, y] <= loose[x, y] + 1e-12 <= cost.max() + 1e-9


def test_a_hull_and_what_it_knows() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    hull = StartHull.whole(3)
    assert hull.laws.tolist() == np.eye(3).tolist() and hull.steps == 0
    assert hull.width == math.inf and hull.possible.all() and not hull.faint
    later = hull.after(rows)
    assert later.able.tolist() == (rows > 0).tolist() and later.steps == 1
    assert later.slack == 8 * 7 * 3 * 2.0**-53
    narrow = StartHull(np.array([[0.5, 0.5], [0.25, 0.75]]), np.ones((2, 2), bool), 2)
    assert narrow.width == pytest.approx(math.log(2.0))
    one = StartHull(np.array([[0.5, 0.5, 0.0]] * 2), np.array([[True, True, False]] * 2), 2)
    assert one.width == 0.0 and one.possible.tolist() == [True, True, False]
    assert StartHull(np.array([[1.0, 1e-260]]), np.ones((1, 2), bool)).faint
    assert not StartHull(np.array([[1.0, 0.0]]), np.array([[True, False]])).faint
    cap = hull_step(
        StartHull(np.array([[1.0, 1e-260]] * 2), np.ones((2, 2), bool), 1),
        np.eye(2),
        np.array([[0.0, 0.7], [0.4, 0.0]]),
    )
    assert cap.tolist() == pytest.approx(np.array([[0.0, 0.7], [0.7, 0.0]]))
    free = hull_step(hull.after(rows), rows, np.zeros((3, 3)))
    assert (free == 0).all()
    dear = hull_step(later, rows, 400.0 * (1 - np.eye(3)))
    assert dear == pytest.approx(400.0 * (1 - np.eye(3)))


@pytest.mark.parametrize("price", [1e-6, 0.7, 5.0])
@pytest.mark.parametrize(("one", "other"), [(1.0, -0.5), (3.0, 2.9), (0.5, -4.0)])
def test_odds_are_clipped_to_those_that_occur(price: float, one: float, other: float) -> None:
    def loss(t: float) -> float:
        p, q = (1 / (1 + math.exp(-(z + t))) for z in (one, other))
        return math.log1p(math.expm1(price) * (p - q) / (1 + math.expm1(price) * q))

    for low, high in ((-9.0, 9.0), (-9.0, -3.0), (2.0, 6.0), (0.1, 0.1)):
        truth = max(loss(low + (high - low) * k / 400) for k in range(401))
        found = start_hull._clipped(one, other, price, low, high)
        assert truth <= found * (1 + 1e-12) and found <= truth * (1 + 1e-3)
    certain = start_hull._clipped(math.inf, other, price, -1.0, 2.0)
    q = 1 / (1 + math.exp(-(other - 1.0)))
    assert certain == pytest.approx(math.log(math.exp(price) / (1 + math.expm1(price) * q)))
    never = start_hull._clipped(one, -math.inf, price, -1.0, 2.0)
    p = 1 / (1 + math.exp(-(one + 2.0)))
    assert never == pytest.approx(math.log1p(math.expm1(price) * p))
    assert start_hull._clipped(math.inf, -math.inf, price, -1.0, 2.0) == pytest.approx(price)
    assert start_hull._share(-701.0) == 0.0 and start_hull._share(0.0) == 0.5


def test_rows_given_each_state_and_boxes_around_them() -> None:
    rng = np.random.default_rng(8)
    weights = stochastic(rng, 3)
    weights[2] = 0.0
    hull = StartHull.whole(3).after(stochastic(rng, 3))
    rows, totals = start_hull._rows(hull.laws, weights)
    for a, x in product(range(3), repeat=2):
        assert totals[a, x] == pytest.approx(float(hull.laws[a] @ weights[x]))
        if x < 2:
            assert rows[a, x] == pytest.approx(given(hull.laws[a], weights, x))
        else:
            assert (rows[a, x] == 0).all()


def test_how_far_apart_two_rows_can_take_a_mechanism() -> None:
    rng = np.random.default_rng(9)
    cost = np.array([[0.0, 0.8, 0.5], [0.3, 0.0, 0.6], [0.8, 0.8, 0.0]])
    search = start_hull._Search(
        StartHull.whole(3).after(stochastic(rng, 3)), stochastic(rng, 3), cost, None
    )
    for _ in range(5):
        one, other = stochastic(rng, 3), stochastic(rng, 3)
        other[2] = one[2]
        found = search._apart((one, other))
        for x in range(3):
            truth = max(loss_of(one[x], other[x], cost), loss_of(other[x], one[x], cost))
            assert truth - 1e-9 <= found[x] <= 0.8 + 1e-9
            moved = np.abs(one[x] - other[x]).sum() / 2
            assert found[x] <= math.log1p(math.expm1(0.8) * moved) + 1e-9
        assert found[2] == 0.0


def test_shares_of_very_small_odds_are_nothing() -> None:
    assert start_hull._share(-699.5) == pytest.approx(math.exp(-699.5), rel=1e-12, abs=0.0)
    assert start_hull._share(-700.0) == 0.0
    assert start_hull._share(2.0) == pytest.approx(1 / (1 + math.exp(-2.0)))
