"""The baselines reach their printed values, and are what enumeration finds."""

from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.papers.composition.baselines.chain_laws import (
    group_to_dp,
    stationary,
)
from takifugu.papers.composition.baselines.quilts import (
    mqm_approx,
    mqm_exact,
    spectral_gap,
)
from takifugu.papers.composition.baselines.temporal import (
    tpl_path,
    tpl_step,
    tpl_supremum,
    tpl_to_dp,
    tpl_total,
)
from tests.oracles import baselines as oracle
from tests.raising import raises

ABSORBING = [[0.8, 0.2], [0.0, 1.0]]
THREE = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]


def song(q: float, p: float) -> Floats:
    """The chains of Song et al.'s experiments."""
    return np.array([[1 - q, q], [1 - p, p]])


@st.composite
def laws(draw: st.DrawFn, size: int, least: int = 1) -> list[float]:
    """A law on ``size`` states with multiples of a small step."""
    weights = draw(st.lists(st.integers(least, 12), min_size=size, max_size=size).filter(any))
    return [w / sum(weights) for w in weights]


@st.composite
def chains(draw: st.DrawFn, least: int = 1) -> tuple[list[list[float]], list[float]]:
    """A transition matrix and a start."""
    size = draw(st.integers(2, 3))
    return [draw(laws(size, least)) for _ in range(size)], draw(laws(size))


@pytest.mark.parametrize(
    ("q", "p", "exact", "approx"),
    [(0.1, 0.9, 31.738, 49.220), (0.4, 0.6, 3.572, 11.537), (0.3, 0.9, 16.625, 28.276)],
)
def test_the_quilt_mechanisms_reach_the_published_noise(
    q: float, p: float, exact: float, approx: float
) -> None:
    found = mqm_exact(song(q, p), 100, 1.0)
    assert found.noise == pytest.approx(exact, abs=5e-4)
    assert found.to_dp == pytest.approx(1 / exact, rel=1e-4)
    assert found.to_dp * found.noise <= 1
    assert mqm_approx(song(q, p), 100, 1.0).noise == pytest.approx(approx, abs=5e-4)


@settings(max_examples=25)
@given(chain=chains(), length=st.integers(1, 5), epsilon=st.floats(0.2, 6))
def test_the_exact_quilt_noise_is_what_enumeration_finds(
    chain: tuple[list[list[float]], list[float]], length: int, epsilon: float
) -> None:
    transition, start = chain
    for given_start in (start, None):
        law = stationary(transition).tolist() if given_start is None else start
        slow = oracle.quilt_noise(oracle.chain_law(transition, law, length), epsilon)
        found = mqm_exact(transition, length, epsilon, start=given_start)
        assert found.noise == pytest.approx(slow, rel=1e-9)
        assert found.noise >= slow * (1 - 1e-12)


def test_the_quilt_named_is_the_one_that_sets_the_noise() -> None:
    chain = song(0.4, 0.6)
    found = mqm_exact(chain, 8, 1.0)
    law = oracle.chain_law(chain.tolist(), [0.5, 0.5], 8)
    assert found.left is not None
    assert found.right is not None
    quilt = (found.node - found.left, found.node + found.right)
    nearby = found.left + found.right - 1
    score = nearby / (1 - oracle.influence(law, found.node, quilt))
    assert found.noise == pytest.approx(score, rel=1e-12)


@settings(max_examples=30)
@given(chain=chains(), a=st.integers(1, 3), b=st.integers(1, 2))
def test_the_approximate_influence_bounds_the_true_one_from_any_start(
    chain: tuple[list[list[float]], list[float]], a: int, b: int
) -> None:
    transition, start = chain
    law = stationary(transition)
    gap = spectral_gap(np.array(transition), law)
    ahead, back = (exp(-gap * d / 2) / law.min() for d in (b, a))
    if max(ahead, back) >= 1:
        return
    bound = log((1 + ahead) / (1 - ahead)) + 2 * log((1 + back) / (1 - back))
    for extra in (0, 1):
        paths = oracle.chain_law(transition, start, a + b + 1 + extra)
        assert oracle.influence(paths, a + extra, (extra, a + b + extra)) <= bound + 1e-9


@pytest.mark.costly
@settings(max_examples=40)
@given(chain=chains(), length=st.integers(2, 12), epsilon=st.floats(0.3, 8))
def test_the_approximate_noise_is_never_below_the_exact(
    chain: tuple[list[list[float]], list[float]], length: int, epsilon: float
) -> None:
    exact = mqm_exact(chain[0], length, epsilon).noise
    assert mqm_approx(chain[0], length, epsilon).noise >= exact * (1 - 1e-9)


def test_without_the_half_in_the_exponent_the_bound_is_false() -> None:
    """With p = q = .9, g = .4: e^{−gd} instead of e^{−gd/2} guarantees less than the truth."""
    gap, least = 0.4, 0.5
    assert spectral_gap(song(0.1, 0.9), np.array([0.5, 0.5])) == pytest.approx(gap)

    def bound(exponent: float, d: int) -> float:
        return 3 * log((least + exp(-exponent * d)) / (least - exp(-exponent * d)))

    def truth(d: int) -> float:  # both sides d steps away
        return 2 * log((1 + 0.8**d) / (1 - 0.8**d))

    paths = oracle.chain_law(song(0.1, 0.9).tolist(), [0.5, 0.5], 9)
    assert truth(4) == pytest.approx(oracle.influence(paths, 4, (0, 8)))
    assert bound(gap, 11) < truth(11) < bound(gap / 2, 11)
    assert truth(11) / bound(gap, 11) > 2  # .344 where .147 would be guaranteed


def test_a_chain_that_does_not_mix_gets_group_dp() -> None:
    alternating = [[0.0, 1.0], [1.0, 0.0]]
    for found in (mqm_exact(alternating, 20, 1.0), mqm_approx(alternating, 20, 1.0)):
        assert found.noise == pytest.approx(20)
        assert found.left is None
        assert found.right is None
    assert group_to_dp(20, 1.0) == pytest.approx(0.05)


def test_a_start_that_forbids_a_state_makes_no_secret_of_it() -> None:
    found = mqm_exact(ABSORBING, 4, 1.0, start=[0.0, 1.0])
    assert found.noise == pytest.approx(1.0)  # one value only: e = 0 for the closest quilt


def test_backward_leakage_reaches_the_published_values() -> None:
    printed = [0.100, 0.181, 0.247, 0.302, 0.349, 0.388, 0.422, 0.450, 0.475, 0.496]
    assert tpl_path(ABSORBING, [0.1] * 10) == pytest.approx(printed, abs=5e-4)
    assert tpl_supremum(ABSORBING, 0.1) == pytest.approx(0.64591, abs=5e-6)


def test_the_loss_function_reaches_the_published_values() -> None:
    printed = [0.05022, 0.25240, 0.49433, 0.93975, 1.28778]
    assert tpl_step(THREE, [0.1, 0.5, 1, 2, 3]) == pytest.approx(printed, abs=5e-6)


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "loss"),
    [
        (0.9, 0.9, 0.2, 0.97324),
        (0.9, 0.9, 1, 4.12131),
        (0.6, 0.8, 0.5, 1.15846),
        (0.1, 0.3, 1, 3.42195),
    ],
)
def test_the_total_of_a_chain_of_seven(p: float, q: float, epsilon: float, loss: float) -> None:
    total = tpl_total([[p, 1 - p], [1 - q, q]], [epsilon] * 7)
    assert total[3] == pytest.approx(loss, abs=5e-6)


@settings(max_examples=40)
@given(chain=chains(least=0), alpha=st.floats(0, 20))
def test_a_step_is_what_enumeration_finds(
    chain: tuple[list[list[float]], list[float]], alpha: float
) -> None:
    slow = oracle.leak_step(chain[0], alpha)
    fast = float(tpl_step(chain[0], alpha))
    assert fast == pytest.approx(slow, abs=1e-9)
    assert fast >= slow - 1e-12


@pytest.mark.nightly
@settings(max_examples=60)
@given(chain=chains(least=0), epsilon=st.floats(0.01, 2))
def test_the_supremum_is_where_the_path_ends(
    chain: tuple[list[list[float]], list[float]], epsilon: float
) -> None:
    end = tpl_supremum(chain[0], epsilon)
    path = tpl_path(chain[0], [epsilon] * 400)
    assert path[-1] <= end + 1e-9
    if end == inf:
        # e^ε·q ≥ 1 and d = 0: every step adds at least log(1 + (1 − q)·e^{−α}) > 0, for ever
        assert epsilon + oracle.leak_step(chain[0], 20.0) > 20
    else:
        assert epsilon + oracle.leak_step(chain[0], end) == pytest.approx(end, abs=1e-6)
        below = end * (1 - 1e-3)  # and the first one: the leakage still grows before it
        assert epsilon + oracle.leak_step(chain[0], below) > below


@settings(max_examples=30)
@given(chain=chains(), length=st.integers(1, 5), epsilon=st.floats(0.05, 2))
def test_no_count_leaks_more_than_the_total(
    chain: tuple[list[list[float]], list[float]], length: int, epsilon: float
) -> None:
    transition, start = chain
    total = tpl_total(transition, [epsilon] * length, start=start)
    law = oracle.chain_law(transition, start, length)
    states = range(len(start))
    for node, x, y, counted in product(range(length), states, states, states):
        leak = oracle.pufferfish_of_count(law, node, x, y, epsilon, [counted])
        assert leak <= total[node] + 1e-9


@settings(max_examples=20)
@given(chain=chains(), length=st.integers(1, 6), epsilon=st.floats(0.05, 3))
def test_the_loss_that_the_leakage_allows_fits_and_hardly_more_does(
    chain: tuple[list[list[float]], list[float]], length: int, epsilon: float
) -> None:
    transition, start = chain
    spend = tpl_to_dp(transition, length, epsilon, start=start)
    assert spend >= group_to_dp(length, epsilon)
    assert tpl_total(transition, [spend] * length, start=start).max() <= epsilon + 1e-9
    more = tpl_total(transition, [spend * (1 + 1e-6)] * length, start=start)
    assert more.max() > epsilon


def test_the_leakage_allows_what_is_exact_for_two_sticky_states() -> None:
    assert tpl_to_dp(song(0.2, 0.8), 120, 1.0) == pytest.approx(0.2598, abs=5e-5)
    assert tpl_to_dp(song(0.1, 0.9), 120, 1.0) == pytest.approx(0.1157, abs=5e-5)


def test_huge_losses_do_not_overflow() -> None:
    assert np.isfinite(tpl_path(THREE, [400.0] * 5)).all()
    assert float(tpl_step(ABSORBING, 5000.0)) >= 5000 + log(0.8)
    assert tpl_supremum([[1.0, 0.0], [0.0, 1.0]], 0.1) == inf


@given(chain=chains(least=1))
def test_the_stationary_law_stays(chain: tuple[list[list[float]], list[float]]) -> None:
    law = stationary(chain[0])
    assert law @ np.array(chain[0]) == pytest.approx(law, rel=1e-12)


def test_bad_input_is_one_clear_line() -> None:
    with raises(InvalidPrior, field="transition"):
        mqm_exact([[0.5, 0.5]], 3, 1.0)
    with raises(InvalidPrior, field="transition"):
        mqm_exact(ABSORBING, 3, 1.0)
    with raises(InvalidPrior, field="start"):
        mqm_exact(ABSORBING, 3, 1.0, start=[1.0])
    with raises(InvalidPrior, field="length"):
        group_to_dp(0, 1.0)
    for epsilon in (0.0, -1.0, inf, float("nan")):
        with raises(UnsoundRequest, field="epsilon"):
            mqm_approx(song(0.1, 0.9), 3, epsilon)
    with raises(UnsoundRequest, field="epsilons"):
        tpl_total(THREE, [0.1, float("nan")])
