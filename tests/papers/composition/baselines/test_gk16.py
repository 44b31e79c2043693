"""GK16: the influences are what enumeration finds, and no mechanism leaks more than the bound."""

from fractions import Fraction
from itertools import product
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.papers.composition.baselines.chain_laws import group_to_dp
from takifugu.papers.composition.baselines.gk16 import (
    gk16_growth,
    gk16_matrix,
    gk16_norm,
    gk16_to_dp,
)
from tests.oracles import local_influences as oracle
from tests.oracles.baselines import chain_law
from tests.oracles.binary_chains import counting_losses
from tests.oracles.translation import worst_loss_by_transport, worst_loss_by_vertices
from tests.raising import raises

Chain = tuple[list[list[Fraction]], list[Fraction]]


def symmetric(p: float) -> list[list[float]]:
    return [[p, 1 - p], [1 - p, p]]


@st.composite
def laws(draw: st.DrawFn, size: int, least: int) -> list[Fraction]:
    """A law whose probabilities are multiples of 1/16, so that floats hold them exactly."""
    shares = [least] * size
    kept = list(range(size))
    if least == 0 and draw(st.booleans()):
        kept = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1)))
    for _ in range(16 - least * size):
        shares[draw(st.sampled_from(kept))] += 1
    return [Fraction(share, 16) for share in shares]


@st.composite
def chains(draw: st.DrawFn, least: int = 0, most_states: int = 3) -> Chain:
    size = draw(st.integers(2, most_states))
    return [draw(laws(size, least)) for _ in range(size)], draw(laws(size, least))


@st.composite
def weak_chains(draw: st.DrawFn, most_states: int = 3) -> Chain:
    """Chains of weak dependence, where the theorem applies often."""
    size = draw(st.integers(2, most_states))
    rows = [draw(laws(size, 5 if size == 2 else 4)) for _ in range(size)]
    return rows, draw(laws(size, 1))


def floats(rows: list[list[Fraction]]) -> list[list[float]]:
    return [[float(p) for p in row] for row in rows]


@pytest.mark.nightly
@settings(max_examples=40, deadline=None)
@given(chain=chains(), length=st.integers(1, 4))
def test_the_influences_are_what_enumeration_finds(chain: Chain, length: int) -> None:
    rows, start = floats(chain[0]), [float(p) for p in chain[1]]
    law = chain_law(*chain, length)
    full = len(law) == np.prod([len({path[j] for path in law}) for j in range(length)])
    published = gk16_matrix(rows, length, start=start)
    sharp = gk16_matrix(rows, length, start=start, sharpened=True)
    for i, j in product(range(length), repeat=2):
        if i == j or abs(i - j) > 1:
            assert published[i, j] == sharp[i, j] == 0
        elif full:
            assert np.isfinite(published[i, j])
            gamma, c = oracle.influence(law, on=j, by=i)
            for found, slow in ((published[i, j], gamma), (sharp[i, j], c)):
                assert found == pytest.approx(slow, abs=1e-12)
                assert found >= slow - 1e-15
    if not full:  # some combination of possible values is impossible: nothing is claimed
        for sharpened in (False, True):
            growth = gk16_growth(rows, length, start=start, sharpened=sharpened)
            assert growth.max() == inf
            assert gk16_to_dp(rows, length, 1.0, start=start, sharpened=sharpened) == 0


@settings(max_examples=40, deadline=None)
@given(chain=weak_chains(), length=st.integers(1, 5))
def test_the_growth_is_the_mass_of_all_walks(chain: Chain, length: int) -> None:
    rows, start = floats(chain[0]), [float(p) for p in chain[1]]
    for sharpened in (False, True):
        matrix = gk16_matrix(rows, length, start=start, sharpened=sharpened)
        found = gk16_growth(rows, length, start=start, sharpened=sharpened)
        norm = np.linalg.norm(matrix, 2) if length > 1 else 0.0
        for entry in range(length):
            slow = oracle.growth(matrix.tolist(), entry, first_passage=sharpened)
            if sharpened:
                assert found[entry] == pytest.approx(slow, rel=1e-9)
                assert found[entry] >= slow * (1 - 1e-12)
            elif norm < 1 - 1e-9:
                assert found[entry] == pytest.approx(2 * slow, rel=1e-9)
            elif norm > 1 + 1e-9:
                assert found[entry] == inf


@pytest.mark.nightly
@settings(max_examples=60, deadline=None)
@given(
    chain=st.one_of(weak_chains(), chains(least=1)),
    length=st.integers(2, 3),
    epsilon=st.floats(0.01, 4),
)
def test_no_mechanism_leaks_more_than_the_bound(chain: Chain, length: int, epsilon: float) -> None:
    """Against the worst of all per-entry DP mechanisms, found by a linear program."""
    states = len(chain[1])
    if states**length > 9:
        length = 2
    rows, start = floats(chain[0]), [float(p) for p in chain[1]]
    cells = list(product(range(states), repeat=length))
    law = chain_law(*chain, length)
    probability = np.array([float(law.get(cell, 0)) for cell in cells])
    bounds = [
        epsilon * gk16_growth(rows, length, start=start, sharpened=sharp) for sharp in (True, False)
    ]
    assert (bounds[0] <= bounds[1]).all()
    for entry, x, y in product(range(length), range(states), range(states)):
        if x == y or bounds[0][entry] == inf:
            continue
        left, right = (np.array([cell[entry] == v for cell in cells]) for v in (x, y))
        worst = worst_loss_by_transport(
            probability, left, right, (states,) * length, (epsilon,) * length
        )
        assert worst <= bounds[0][entry] + 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("p", [0.3, 0.45, 0.55, 0.65, 0.7])
def test_no_vertex_of_the_dp_cone_leaks_more(p: float, epsilon: float) -> None:
    """Three entries, every extreme mechanism listed: a check that solves no linear program."""
    cells = list(product((0, 1), repeat=3))
    law = np.array([0.5 * symmetric(p)[a][b] * symmetric(p)[b][c] for a, b, c in cells])
    bound = epsilon * gk16_growth(symmetric(p), 3, sharpened=True)
    for entry in range(3):
        one = np.array([cell[entry] == 1 for cell in cells])
        worst = worst_loss_by_vertices(law, one, ~one, (2, 2, 2), (epsilon,) * 3)
        assert worst <= bound[entry] + 1e-9
        assert bound[entry] <= 2 * worst + 1e-9  # and it says something


@settings(max_examples=25, deadline=None)
@given(
    stay=st.tuples(st.integers(5, 27), st.integers(5, 27)),
    start=st.integers(0, 16),
    length=st.integers(2, 30),
    epsilon=st.floats(1e-6, 6),
)
def test_long_binary_chains_leak_less_than_the_bound(
    stay: tuple[int, int], start: int, length: int, epsilon: float
) -> None:
    """Against the true losses, which the mechanism that counts attains on two states."""
    p, q = stay[0] / 32, stay[1] / 32
    rows, first = [[p, 1 - p], [1 - q, q]], [start / 16, 1 - start / 16]
    bound = epsilon * gk16_growth(rows, length, start=first, sharpened=True)
    true = counting_losses([np.array(rows)] * (length - 1), first, [epsilon] * length)
    for entry, losses in enumerate(true):
        assert all(loss <= bound[entry] for loss in losses.values())


def test_the_closed_form_of_symmetric_binary_chains() -> None:
    """Here c = |2p − 1|, and a long chain allows ε √((1 − 2c)/(1 + 2c))."""
    c = 0.2
    assert gk16_matrix(symmetric(0.6), 3, sharpened=True)[0, 1] == pytest.approx(c)
    allowed = gk16_to_dp(symmetric(0.6), 400, 1.0, sharpened=True)
    assert allowed == pytest.approx(((1 - 2 * c) / (1 + 2 * c)) ** 0.5, rel=1e-9)
    odds = log(0.6 / 0.4)
    gamma = gk16_matrix(symmetric(0.6), 5)
    assert gamma[1, 2] == pytest.approx(log((1 + np.exp(2 * odds)) / 2) / 2)
    assert gamma[1, 0] == pytest.approx(odds / 2)


@pytest.mark.nightly
def test_where_it_applies() -> None:
    """Published: γ < ½ inside, 1 − p above .322; sharpened: c < ½, 1 − p above ¼."""
    assert gk16_norm(symmetric(0.67), 100) < 1 < gk16_norm(symmetric(0.68), 100)
    assert gk16_to_dp(symmetric(0.67), 100, 1.0) > 0 == gk16_to_dp(symmetric(0.68), 100, 1.0)
    assert gk16_to_dp(symmetric(0.749), 10_000, 1.0, sharpened=True) > 0
    assert gk16_to_dp(symmetric(0.751), 10_000, 1.0, sharpened=True) == 0
    assert (gk16_growth(symmetric(0.9), 10) == inf).all()


def test_it_is_never_replaced_by_group_dp() -> None:
    """Where group DP allows more, the bound stays what the theorem says."""
    published = gk16_to_dp(symmetric(0.67), 5, 1.0)
    assert 0 < published < group_to_dp(5, 1.0)
    assert gk16_to_dp(symmetric(0.9), 5, 1.0) == 0 < group_to_dp(5, 1.0)


def test_independent_entries_cost_what_they_cost() -> None:
    even = [[0.25, 0.75], [0.25, 0.75]]
    assert gk16_to_dp(even, 50, 1.0, sharpened=True) == pytest.approx(1)
    assert gk16_to_dp(even, 50, 1.0) == pytest.approx(0.5)  # the published bound has a factor 2
    assert gk16_to_dp(even, 50, 1.0, sharpened=True) <= 1
    assert gk16_to_dp(symmetric(0.9), 1, 1.0, sharpened=True) == pytest.approx(1)


@pytest.mark.nightly
def test_a_long_chain_is_bounded_without_its_matrix() -> None:
    short, long = gk16_norm(symmetric(0.6), 400), gk16_norm(symmetric(0.6), 401)
    assert short <= long <= short * 1.001
    assert gk16_to_dp(symmetric(0.6), 401, 1.0) == pytest.approx(
        gk16_to_dp(symmetric(0.6), 400, 1.0), rel=1e-6
    )


def test_a_start_that_forbids_a_state() -> None:
    """The first entry is known then, and tells nothing; the others are as in any chain."""
    found = gk16_matrix(symmetric(0.6), 3, start=[1.0, 0.0])
    assert found[0, 1] == pytest.approx(0, abs=1e-12)
    assert found[1, 0] == pytest.approx(0, abs=1e-12)
    assert found[1, 2] == pytest.approx(log(0.6 / 0.4) / 2)


def test_the_tiniest_probabilities_are_not_taken_for_zero() -> None:
    tiny = 2.0**-490
    rows = [[1 - tiny, tiny, tiny], [tiny, 1 - tiny, tiny], [tiny, tiny, 1 - tiny]]
    exact = [[Fraction(p) / sum(map(Fraction, row)) for p in row] for row in rows]
    law = chain_law(exact, [Fraction(1, 3)] * 3, 3)
    found = gk16_matrix(rows, 3, start=[1 / 3] * 3)
    for i, j in ((0, 1), (1, 0)):
        assert found[i, j] == pytest.approx(oracle.influence(law, on=j, by=i)[0], rel=1e-12)
    assert gk16_to_dp(rows, 3, 1.0) == 0


@pytest.mark.nightly
@settings(max_examples=25, deadline=None)
@given(chain=chains(least=1), off=st.lists(st.floats(-9e-10, 9e-10), min_size=9, max_size=9))
def test_rows_stand_for_themselves_over_their_exact_sums(chain: Chain, off: list[float]) -> None:
    rows = floats(chain[0])
    for k, row in enumerate(rows):
        row[k % len(row)] += off[k]
    exact = [[Fraction(p) / sum(map(Fraction, row)) for p in row] for row in rows]
    law = chain_law(exact, chain[1], 3)
    start = [float(p) for p in chain[1]]
    for sharpened in (False, True):
        found = gk16_matrix(rows, 3, start=start, sharpened=sharpened)
        for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)):
            slow = oracle.influence(law, on=j, by=i)[sharpened]
            assert found[i, j] == pytest.approx(slow, abs=1e-12)
            assert found[i, j] >= slow - 1e-15


def test_bad_input_is_one_clear_line() -> None:
    with raises(InvalidPrior, field="transition"):
        gk16_matrix([[0.5, 0.5]], 3)
    with raises(InvalidPrior, field="transition"):
        gk16_to_dp([[0.8, 0.2], [0.0, 1.0]], 3, 1.0)
    with raises(InvalidPrior, field="start"):
        gk16_matrix(symmetric(0.6), 3, start=[1.0])
    with raises(InvalidPrior, field="length"):
        gk16_growth(symmetric(0.6), 0)
    for epsilon in (0.0, -1.0, inf, float("nan")):
        with raises(UnsoundRequest, field="epsilon"):
            gk16_to_dp(symmetric(0.6), 3, epsilon)
