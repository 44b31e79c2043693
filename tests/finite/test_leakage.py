"""One run of a mechanism: the loss is what enumeration in fractions finds, rounded up."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.rounding import log_bounds, loss_up, losses_up
from takifugu.errors import InvalidWorld
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.evidence import exact_mixture
from takifugu.finite.leakage import odds
from takifugu.priors import Explicit, OneOf, SecretPair, Tables, Universe, both_ways, entry_pairs
from tests.oracles import finite as oracle
from tests.raising import raises
from tests.strategies import mechanisms, table_worlds, worlds


def _masks(world: World) -> list[tuple[list[bool], list[bool]]]:
    return [(world.mask(p.left).tolist(), world.mask(p.right).tolist()) for p in world.pairs]


@pytest.mark.costly
@settings(max_examples=60)
@given(st.data())
def test_every_entry_of_the_table_is_the_exact_loss_rounded_up(data: st.DataObject) -> None:
    world = data.draw(worlds())
    mechanism = data.draw(mechanisms(world.universe))
    table = leakage(world, mechanism).table
    rows = mechanism.likelihood.tolist()
    for p, (left, right) in enumerate(_masks(world)):
        for t, prior in enumerate(world.weights.tolist()):
            for w in range(len(mechanism.outputs)):
                ratio = oracle.loss(prior, left, right, oracle.column(rows, w))
                assert ratio is not None
                exact = oracle.log(ratio)
                if mpmath.isinf(exact):
                    assert table[p, t, w] == float(exact)
                else:
                    assert 0 <= mpmath.mpf(float(table[p, t, w])) - exact < 1e-12


@pytest.mark.costly
@settings(max_examples=60)
@given(st.data())
def test_epsilon_is_the_largest_loss_within_its_slack(data: st.DataObject) -> None:
    world = data.draw(st.one_of(worlds(), table_worlds()))
    mechanism = data.draw(mechanisms(world.universe))
    result = leakage(world, mechanism)
    rows = mechanism.likelihood.tolist()
    columns = [oracle.column(rows, w) for w in range(len(mechanism.outputs))]
    exact = oracle.worst(world.weights.tolist(), _masks(world), columns)
    if mpmath.isinf(exact):
        assert result.epsilon == math.inf and result.slack == 0
    else:
        with mpmath.workdps(50):
            assert mpmath.mpf(result.epsilon) - result.slack <= exact <= mpmath.mpf(result.epsilon)
        assert result.slack < 1e-12
    # the argmax is where it says
    pair = world.pairs.index(result.worst.pair)
    prior = [p.name for p in world.listed_priors].index(result.worst.prior)
    output = mechanism.outputs.index(result.worst.output)
    assert max(float(result.table[pair, prior, output]), 0) == result.epsilon
    assert result.by_pair().max() == result.epsilon
    left, right = (law @ mechanism.likelihood[:, output] for law in result.conditionals)
    if math.isfinite(result.epsilon) and left > 0:
        assert math.log(left / right) == pytest.approx(result.table[pair, prior, output], abs=1e-9)


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        # two pairs on which the difference of two rounded logarithms comes out too small
        ("0x1.0dd5325098ed8p-1", "0x1.57086c6832970p-197"),
        ("0x1.feda7e9b21b80p-2", "0x1.da6b139827eb6p-225"),
    ],
)
def test_the_rounding_of_the_difference_itself_is_covered(numerator: str, denominator: str) -> None:
    n, d = float.fromhex(numerator), float.fromhex(denominator)
    guaranteed = loss_up(n, d, error=0.0)
    with mpmath.workdps(50):
        assert mpmath.mpf(guaranteed) >= mpmath.log(mpmath.mpf(n) / mpmath.mpf(d))


@pytest.mark.costly
@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.floats(2.0**-500, 1.0), st.floats(2.0**-500, 1.0)), min_size=1, max_size=20
    )
)
def test_loss_up_is_above_the_exact_logarithm(ratios: list[tuple[float, float]]) -> None:
    flat = np.array(ratios).ravel()
    places = range(0, len(flat), 2), range(1, len(flat), 2)
    guaranteed = losses_up(flat, *map(list, places), error=0.0)
    with mpmath.workdps(50):
        for value, (x, y) in zip(guaranteed.tolist(), ratios, strict=True):
            exact = mpmath.log(mpmath.mpf(x) / mpmath.mpf(y))
            assert exact <= mpmath.mpf(value) <= exact + 1e-12


@given(st.fractions(min_value=0, max_value=10**6), st.integers(-2000, 2000))
def test_log_bounds_enclose_the_logarithm_of_a_fraction(value: float, shift: int) -> None:
    ratio = Fraction(value) * Fraction(2) ** shift
    low, high = log_bounds(ratio)
    exact = oracle.log((ratio, Fraction(1)))
    assert mpmath.mpf(low) <= exact <= mpmath.mpf(high)
    assert high == low or high - low < 1e-11


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_exact_mixture_is_the_sum_of_products_in_fractions(
    rows: list[tuple[float, float, float]], a: int, b: int
) -> None:
    exact = sum(
        (Fraction(w) * Fraction(x) ** a * Fraction(y) ** b for w, x, y in rows),
        Fraction(0),
    )
    table = np.array([[x, y] for _, x, y in rows])
    assert exact_mixture([w for w, _, _ in rows], table, [a, b]) == exact


@settings(max_examples=40)
@given(st.data())
def test_odds_are_the_posterior_odds_of_bayes(data: st.DataObject) -> None:
    world = data.draw(worlds())
    mechanism = data.draw(mechanisms(world.universe))
    found = odds(world, mechanism)
    rows = mechanism.likelihood.tolist()
    one = [Fraction(1)] * len(world.universe)
    for p, sides in enumerate(_masks(world)):
        for t, prior in enumerate(world.weights.tolist()):
            for w, after in enumerate(found.posterior[p, t].tolist()):
                probability = oracle.column(rows, w)
                joint = [
                    sum(
                        (
                            Fraction(x) * c
                            for x, true, c in zip(prior, mask, probability, strict=True)
                            if true
                        ),
                        Fraction(0),
                    )
                    for mask in sides
                ]
                if joint[1] == 0:
                    assert math.isnan(after) if joint[0] == 0 else after == math.inf
                else:
                    assert after == pytest.approx(float(joint[0] / joint[1]), rel=found.error)
            total = [
                sum((Fraction(x) for x, t in zip(prior, m, strict=True) if t), 0 * one[0])
                for m in sides
            ]
            before = float(found.prior[p, t])
            assert before == pytest.approx(float(total[0] / total[1]), rel=found.error)


def _coin_world(**kinds: object) -> World:
    universe = Universe(("a", "b", "c"))
    secrets = OneOf("first", ("a",)), OneOf("second", ("b",))
    prior = Explicit(universe, np.array([0.5, 0.25, 0.25]))
    return World(universe, (prior,), both_ways([SecretPair(*secrets)]), **kinds)  # type: ignore[arg-type]


def test_randomised_response_loses_the_log_of_its_odds() -> None:
    world = _coin_world()
    coin = FiniteMechanism(world.universe, np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]))
    assert leakage(world, coin).epsilon == pytest.approx(math.log(3), abs=1e-14)
    assert leakage(world, coin).epsilon >= math.log(3)


def test_an_impossible_pair_is_left_out_only_on_request() -> None:
    universe = Universe(("a", "b", "c"))
    one, two = OneOf("one", ("a",)), OneOf("two", ("b",))
    priors = (
        Explicit(universe, np.array([0.5, 0.5, 0]), "fair"),
        Explicit(universe, np.array([0, 0.5, 0.5]), "odd"),
    )
    pairs = both_ways([SecretPair(one, two)])
    with raises(InvalidWorld, field="priors") as caught:
        World(universe, priors, pairs)
    assert "'odd'" in caught.value.given and "'one'" in caught.value.given
    world = World(universe, priors, pairs, unsupported="skip")
    reveal = FiniteMechanism(universe, np.array([[0.6, 0.4], [0.4, 0.6], [0, 1]]))
    table = leakage(world, reveal).table
    assert np.isneginf(table[:, 1]).all() and np.isfinite(table[:, 0]).all()


def test_a_world_in_which_no_pair_applies_is_refused_not_called_private() -> None:
    universe = Universe(("a", "b", "c"))
    pair = SecretPair(OneOf("one", ("a",)), OneOf("two", ("b",)))
    prior = Explicit(universe, np.array([0, 0.5, 0.5]))
    world = World(universe, (prior,), (pair,), unsupported="skip")
    with raises(InvalidWorld, field="priors"):
        leakage(world, FiniteMechanism(universe, np.eye(3)))


def test_a_mechanism_over_other_datasets_is_refused() -> None:
    world = _coin_world()
    other = FiniteMechanism(Universe(("x", "y", "z")), np.eye(3), name="other")
    for ask in (leakage, odds):
        with raises(InvalidWorld, field="mechanism") as caught:
            ask(world, other)
        assert "'other'" in caught.value.given


def test_tiny_likelihoods_do_not_underflow() -> None:
    universe = Tables.bits(1)
    least = 2.0**-500
    prior = Explicit(universe, np.array([1 - least, least]))
    world = World(universe, (prior,), entry_pairs(universe))
    result = leakage(
        world, FiniteMechanism(universe, np.array([[least, 1 - least], [1 - least, least]]))
    )
    assert result.epsilon == pytest.approx(500 * math.log(2), rel=1e-12)
    assert result.epsilon >= 500 * math.log(2)
