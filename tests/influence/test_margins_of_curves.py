"""How wide the margins for rounding of curves are: roundings counted, and errors made large.

A margin of a few units in the last place hardly shows in a result, whichever sign it has. So the
errors here are made large: rounding in units of 2⁻²⁰, a linear solve that is off by a percent.
What a bound is then off by is its margin, on the safe side.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr

from takifugu._rounding import log_ratio_up
from takifugu.influence import explicit_curves
from takifugu.influence import gaussian_curves as gaussian
from takifugu.influence.network import attractive_curves as attractive
from takifugu.influence.network import elimination
from takifugu.influence.network.attractive_curves import AttractiveField
from takifugu.influence.network.elimination import Elimination, bits
from takifugu.influence.network.ratios import CLOSER, PROVED
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.priors.universe import Tables

pytestmark = pytest.mark.nightly

LARGE = 2.0**-20


def counting(into: list[int]) -> Callable[[int], float]:
    """An error of a percent for any number of roundings, which is noted."""

    def gamma(terms: int) -> float:
        into.append(terms)
        return 0.01

    return gamma


def prior_of(n: int, rho: float, *, bound: float = 3.0, width: float = 0.5) -> TruncatedGaussian:
    covariance = np.array([[rho ** abs(i - j) for j in range(n)] for i in range(n)])
    scale = np.linspace(0.8, 1.3, n)
    return TruncatedGaussian(covariance * np.outer(scale, scale), bound=bound, width=width)


# ---- windows of normal laws


@pytest.mark.parametrize(("start", "width"), [(-3.0, 2.0), (0.5, 1.5), (-0.25, 4.0), (2.0, 1.0)])
def test_a_wide_window_is_a_difference_of_two_distribution_functions(
    start: float, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is that of the ends, of both logarithms, and of their difference."""
    monkeypatch.setattr(gaussian, "UNIT", LARGE)
    found = gaussian._window(start, width, 0.0, 1.0)
    low, high = start, start + width
    if low > 0:
        low, high = -high, -low
    ends = 1 + abs(low) + abs(high)
    shift = 16 * LARGE * ends**2
    a, b = float(log_ndtr(low)), float(log_ndtr(high))
    left = 1 - math.exp(a - b)
    assert found.log == pytest.approx(b + math.log(left), rel=1e-12)
    in_logs = 64 * LARGE * (abs(a) + abs(b))
    error = shift + 64 * LARGE * (1 + abs(b)) + (shift + in_logs) / left
    assert found.error == pytest.approx(error, rel=1e-9, abs=0)


@pytest.mark.parametrize("start", [-3.0, -0.02, 0.0, 1.5])
@pytest.mark.parametrize("width", [1e-6, 0.01, 0.04])
def test_a_narrow_window_is_a_density_times_its_width(
    start: float, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error: that the density bends, that of the ends, and that of the logarithms."""
    monkeypatch.setattr(gaussian, "UNIT", LARGE)
    found = gaussian._window(start, width, 0.0, 1.0)
    middle = start + width / 2
    ends = 1 + abs(start) + abs(start + width)
    x = abs(middle) * width / 2
    with mpmath.workdps(40):
        bend = float(mpmath.log(mpmath.sinh(x) / x)) if x else 0.0
    log = math.log(width) - middle**2 / 2 - math.log(2 * math.pi) / 2
    error = width**2 / 8 + 16 * LARGE * ends**2 + 64 * LARGE * (1 + middle**2 + x)
    if x <= 1e-4:  # the bend of the logarithm is left out, and is an error
        assert found.log == pytest.approx(log, rel=1e-12)
        error += x**2 / 6
    else:
        assert found.log == pytest.approx(log + bend, rel=1e-12)
    assert found.error == pytest.approx(error, rel=1e-9, abs=0)


def test_the_bend_of_a_density_is_an_error_up_to_a_bound_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At that bound itself the bend is left out of the logarithm, and in its error."""
    width = 2.0**-10
    start = 0.2048 - width / 2
    middle = (start + (start + width)) / 2
    assert middle * width / 2 == 1e-4
    unit = 2.0**-30
    monkeypatch.setattr(gaussian, "UNIT", unit)
    found = gaussian._window(start, width, 0.0, 1.0)
    log = math.log(width) - middle**2 / 2 - math.log(2 * math.pi) / 2
    assert found.log == pytest.approx(log, abs=1e-12)
    ends = 1 + start + (start + width)
    own = 16 * unit * ends**2 + 64 * unit * (1 + middle**2 + 1e-4)
    assert found.error == pytest.approx(width**2 / 8 + own + 1e-8 / 6, rel=1e-9)


@pytest.mark.parametrize("given", [(1,), (1, 2), (1, 2, 3)])
@pytest.mark.parametrize("off", [0.01, -0.01, 0.0])
def test_a_poor_solve_widens_the_conditional_law(
    given: tuple[int, ...], off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the residual over the least eigenvalue: what was solved for may be off by as much."""
    prior = prior_of(4, 0.6)
    sigma = prior.covariance
    block, cross = sigma[np.ix_(given, given)], sigma[list(given), 0]
    true = np.linalg.solve(block, cross)
    wrong = true * (1 + off * np.array([1.0, -2.0, 3.0])[: len(given)])
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "solve", lambda *_: wrong)
        reach, deviation = gaussian._conditional(prior, 0, given)
    least = float(np.linalg.eigvalsh(block)[0])
    error = float(np.linalg.norm(block @ wrong - cross)) / least
    assert reach == pytest.approx(
        prior.bound * (np.abs(wrong).sum() + math.sqrt(len(given)) * error), rel=1e-11
    )
    assert reach >= prior.bound * np.abs(true).sum()
    variance = float(sigma[0, 0] - wrong @ cross) - error * float(np.linalg.norm(cross))
    assert deviation == pytest.approx(math.sqrt(variance), rel=1e-10)
    assert deviation**2 <= sigma[0, 0] - true @ cross


def test_a_solve_that_says_nothing_leaves_no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two entries that are one another: the least eigenvalue is lost in rounding."""
    prior = prior_of(3, 0.5)
    sigma = prior.covariance.copy()
    sigma[2] = sigma[1]
    sigma[:, 2] = sigma[:, 1]
    object.__setattr__(prior, "covariance", sigma)
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "solve", lambda *_: np.array([0.5, 0.5]))
        assert gaussian._conditional(prior, 0, (1, 2)) == (math.inf, 0.0)


def test_errors_of_windows_are_added_to_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each window that a term compares may be off: a tenth, say, and the bound holds for all."""
    prior = prior_of(2, 0.5, bound=2.0, width=0.5)
    whole = math.sqrt(prior.covariance[0, 0])
    plain = gaussian._window
    cases = [(6.0, 0.5, 4), (0.2, 0.5, 2), (0.3, whole, 4)]
    exact = [gaussian._gaussian_term(prior, 0, mean, spread) for mean, spread, _ in cases]

    def off(start: float, width: float, mean: float, deviation: float) -> Any:
        return gaussian._Mass(plain(start, width, mean, deviation).log, 0.1)

    monkeypatch.setattr(gaussian, "_window", off)
    for (mean, spread, windows), before in zip(cases, exact, strict=True):
        after = gaussian._gaussian_term(prior, 0, mean, spread)
        assert after == pytest.approx(before + 0.1 * windows, abs=1e-9)
    log, error = plain(-2.0, 4.0, *gaussian._conditional(prior, 1, [0])).log, 0.1
    assert gaussian._stay(prior, 1, [0]) == pytest.approx(log - error, abs=1e-7)


def test_a_leak_is_raised_by_the_margin_and_by_what_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of(4, 0.4)
    monkeypatch.setattr(gaussian, "MARGIN", 0.125)
    monkeypatch.setattr(gaussian, "_gaussian_term", lambda *_: 2.0)
    asked: list[tuple[list[int], list[int]]] = []

    def stay(_: TruncatedGaussian, members: list[int], given: list[int]) -> float:
        asked.append((list(members), list(given)))
        return -0.5

    monkeypatch.setattr(gaussian, "_log_stay", stay)
    assert gaussian._split_leak(prior, 1, (0, 1), "truncated", -0.25) == 2.75 + 0.125 * 3.75
    assert asked == [([0], [1, 2, 3])]
    assert gaussian._split_leak(prior, 1, (0, 1), "printed", 0.0) == 2.0 + 0.125 * 3.0
    assert gaussian._split_leak(prior, 1, (0, 1, 2, 3), "truncated", -0.25) == 0.0
    assert gaussian.split_leak(prior, 1, (0, 1)) == 3.0 + 0.125 * 4.0
    assert asked[1:] == [([0, 2, 3], [1]), ([0], [1, 2, 3])]


# ---- sums over sets of a field


def field_of(seed: int, n: int, values: int = 2) -> MarkovRandomField:
    """A path with a chord, all tables positive."""
    rng = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(n - 1)] + [(0, 2)]
    return MarkovRandomField(
        tuple(range(n)),
        (tuple(range(values)),) * n,
        tuple(rng.uniform(0.2, 1.0, values) for _ in range(n)),
        tuple(edges),
        tuple(rng.uniform(0.2, 1.0, (values, values)) for _ in edges),
    )


@pytest.mark.parametrize("values", [2, 3])
def test_roundings_of_a_set_are_those_of_its_parts_and_of_its_sums(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part brings its own, and two for the product; the sum over a set one for each state."""
    model = field_of(3, 5, values)
    full = Elimination(model)
    counted: list[int] = []

    def gamma(terms: int) -> float:
        counted.append(terms)
        return terms * LARGE

    monkeypatch.setattr(elimination, "gamma", gamma)
    for inside in (0b00001, 0b00110, 0b01110):
        around = full.surroundings(inside)
        store = full._messages
        numbers = [[*column] for column in around.cases.T] + [[one] for one in around.fixed]
        assert around.roundings == sum(max(store.roundings[k] for k in one) + 2 for one in numbers)
        assert around.states == values ** inside.bit_count() and around.exact
        entry = bits(inside)[0]
        sides = np.zeros((2, 2, values), np.bool_)
        sides[0, 0, 0] = sides[0, 1, 1] = sides[1, 0, 1] = sides[1, 1, 0] = True
        counted.clear()
        found, verdict = full.evaluate(around, entry, sides, np.full(2, np.inf))
        assert (verdict == PROVED).all()
        assert counted == [around.roundings + around.states + 8]
        error = counted[0] * LARGE
        for k, (a, b) in enumerate(((0, 1), (1, 0))):
            true = largest_odds(model, bits(inside), entry, a, b)
            assert found[k] == pytest.approx(true + 2 * error / (1 - error) + CLOSER, abs=1e-12)


def largest_odds(model: MarkovRandomField, inside: list[int], entry: int, a: int, b: int) -> float:
    """The largest log of weight with the entry at a, over that with b, whatever lies around."""
    n, values = len(model.entries), len(model.states[0])
    sums: dict[tuple[int, ...], list[float]] = {}
    for x in product(range(values), repeat=n):
        weight = math.prod(float(model.unary[i][v]) for i, v in enumerate(x))
        for (i, j), table in zip(model.edges, model.weights, strict=True):
            weight *= float(table[x[int(i)]][x[int(j)]])
        outside = tuple(x[v] for v in range(n) if v not in inside)
        sums.setdefault(outside, [0.0] * values)[x[entry]] += weight
    return max(math.log(row[a] / row[b]) for row in sums.values())


def test_roundings_of_a_marginal_are_counted_table_by_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A product of tables costs one for each on top of their own, a sum one for each value."""
    sizes = (2, 3, 2)
    rng = np.random.default_rng(5)
    model = MarkovRandomField(
        (0, 1, 2),
        tuple(tuple(range(size)) for size in sizes),
        tuple(rng.uniform(0.2, 1.0, size) for size in sizes),
        ((0, 1), (1, 2)),
        (rng.uniform(0.2, 1.0, (2, 3)), rng.uniform(0.2, 1.0, (3, 2))),
    )
    full = Elimination(model)
    weight, roundings = full.marginal(0b111, 0b001)
    joint = np.einsum("a,b,c,ab,bc->abc", *model.unary, *model.weights)
    assert weight / weight.sum() == pytest.approx(joint.sum(axis=(1, 2)) / joint.sum(), rel=1e-13)
    # entry 2: two tables and two values; entry 1: two tables, what came before, three values;
    # entry 0: its own table and what came before
    last = 2 + 2
    middle = (1 + 1 + (last + 1)) + 3
    assert roundings == 1 + (middle + 1)
    counted: list[int] = []
    monkeypatch.setattr(elimination, "gamma", counting(counted))
    up = full.odds(0b111, 0, [((0,), (1,)), ((1,), (0,))])
    assert counted == [roundings + 3]
    true = math.log(joint[0].sum() / joint[1].sum())
    assert up == pytest.approx([s * true + 2 * 0.01 / 0.99 for s in (1, -1)], abs=1e-12)


@pytest.mark.parametrize("doubled", [False, True])
def test_roundings_of_an_attractive_set(doubled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each entry its contacts inside and around, and a few more; and the sum over states."""
    model = MarkovRandomField.ising(
        {i: 0.3 * i - 0.5 for i in range(5)}, {(0, 1): 0.5, (1, 2): 1.0, (2, 3): 0.2, (1, 4): 2.0}
    )
    field = AttractiveField(model)
    exact = field.evaluate(0b00011, 0)
    field.repeats += doubled
    counted: list[int] = []
    monkeypatch.setattr(attractive, "gamma", counting(counted))
    found = field.evaluate(0b00011, 0)
    inside, around = 2, 2
    assert counted == [inside * (field.repeats * (around + inside) + 4) + 2**inside]
    assert found == pytest.approx([one + 2 * 0.01 / 0.99 for one in exact], abs=1e-12)


def test_a_written_out_leak_is_raised_by_the_error_of_its_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Tables.bits(3)
    left = np.array([0.3, 0.05, 0.2, 0.05, 0.1, 0.1, 0.1, 0.1])
    right = left[::-1].copy()
    counted: list[int] = []
    monkeypatch.setattr(explicit_curves, "gamma", counting(counted))
    found = explicit_curves._leak(tables, left, right, (1,), None)
    p, q = (one.reshape(2, 2, 2).sum(axis=1) for one in (left, right))
    assert counted == [8 + 8]
    assert found == pytest.approx(math.log((p / q).max()) + 2 * 0.01 / 0.99, abs=1e-12)
    assert found == float(log_ratio_up(p, q, error=0.01).max())
