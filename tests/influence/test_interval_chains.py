"""Curves for sets of chains: never below any member, and not far above."""

from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld, TooLarge
from takifugu.influence import InfluenceCurve, chain_curve, interval_chain_curve
from takifugu.priors.fitting import Transitions
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from tests.raising import raises


def markov(*arguments: Any, **named: Any) -> MarkovChain:
    """Lists as well as arrays, without the type checker's help."""
    return MarkovChain(*arguments, **named)


def interval(*arguments: Any, **named: Any) -> IntervalMarkovChain:
    """The same for a set of chains."""
    return IntervalMarkovChain(*arguments, **named)


Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
THREE = markov([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])


def corner(box: IntervalMarkovChain, orders: Array) -> Array:
    """The member whose row x is filled up in the order of ``orders[x]``."""
    table = box.lower.copy()
    for row, top, order in zip(table, box.upper, np.argsort(orders, axis=1), strict=True):
        for k in order:
            row[k] += min(top[k] - row[k], max(1 - row.sum(), 0.0))
    return table


def members(box: IntervalMarkovChain, rng: np.random.Generator, steps: int) -> list[Array]:
    """Corners and mixtures of corners, one for each step."""
    n = len(box.lower)
    found = []
    for _ in range(steps):
        share = rng.choice([0.0, rng.random()])
        found.append(
            share * corner(box, rng.random((n, n))) + (1 - share) * corner(box, rng.random((n, n)))
        )
    return found


def covers(above: Array, below: Array) -> bool:
    return bool((above >= below - 1e-10).all())


@cache
def set_curve(box: IntervalMarkovChain, secrets: Secrets, most: int) -> InfluenceCurve:
    return interval_chain_curve(box, secrets, max_exposed=most)


def compare(box: IntervalMarkovChain, chain: MarkovChain, secrets: Secrets, most: int) -> None:
    """Every entry's row of the member is at most the set's row for the same entry."""
    bound = set_curve(box, secrets, most)
    true = chain_curve(chain, secrets, max_exposed=most)
    rows = dict(zip(bound.pairs, bound.leak, strict=True))
    for name, leak in zip(true.pairs, true.leak, strict=True):
        assert covers(rows[name], leak), name


@pytest.mark.nightly
@settings(max_examples=90)
@given(
    n=st.integers(2, 3),
    width=st.sampled_from([0.0, 0.05, 0.3, 0.9]),
    kind=st.sampled_from(["relative", "absolute", "with zeros"]),
    length=st.integers(2, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_member_leaks_more_whatever_its_start(
    n: int, width: float, kind: str, length: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(n), n)
    if kind == "with zeros":
        centre[rng.random((n, n)) < 0.3] = 0.0
        centre[centre.sum(axis=1) == 0, 0] = 1.0
        centre /= centre.sum(axis=1, keepdims=True)
    spread = width if kind == "absolute" else width * centre
    low = np.maximum(centre - spread - 1e-15, 0) * (centre > 1e-9)
    high = np.where((centre > 0) | (kind == "absolute"), np.minimum(centre + spread + 1e-15, 1), 0)
    box = interval(low, high, length=length)
    start = rng.dirichlet(np.full(n, 0.3))
    start = np.where(start < 1e-12, 0, start)
    start /= start.sum()
    steps = np.array(members(box, rng, length - 1))
    steps[steps < 1e-14] = 0.0
    chain = markov(steps / steps.sum(axis=2, keepdims=True), start=start)
    if ((chain.marginals() > 0).sum(axis=1) > 1).any():
        pairs = Secrets(pairs=(((0,), (1,)), ((0, 1), (2,)))) if n == 3 else Secrets()
        compare(box, chain, pairs, length)


def test_no_corner_of_a_binary_set_leaks_more() -> None:
    box = interval([[0.6, 0.2], [0.1, 0.7]], [[0.8, 0.4], [0.3, 0.9]], length=4)
    corners = [np.array([[p, 1 - p], [1 - q, q]]) for p, q in product((0.6, 0.8), (0.7, 0.9))]
    for steps in product(corners, repeat=3):
        for start in ([0.5, 0.5], [0.01, 0.99]):
            compare(box, markov(np.array(steps), start=start), Secrets(), 4)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), relative=st.sampled_from([0.01, 0.1, 0.3]))
def test_no_fixed_chain_at_rest_leaks_more(seed: int, relative: float) -> None:
    rng = np.random.default_rng(seed)
    box = IntervalMarkovChain.around(THREE, relative=relative)
    chain = markov(members(box, rng, 1)[0])
    compare(box, chain, Secrets(), 15)
    short = interval(box.lower, box.upper, start="stationary", length=7)
    compare(short, markov(chain.transition, length=7), Secrets(), 7)


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_a_set_of_one_is_nearly_exact(start: Literal["any", "stationary"]) -> None:
    one = IntervalMarkovChain.around(THREE, relative=0.0, start=start)
    bound = interval_chain_curve(one, max_exposed=30)
    true = chain_curve(THREE, max_exposed=30)
    assert covers(bound.leak, true.leak)
    if start == "stationary":
        assert (bound.leak[:, :10] <= true.leak[:, :10] + 1e-3).all()
    assert (bound.leak <= 2 * true.leak).all()
    assert not bound.exact.any()


def test_more_doubt_means_more_leak_that_still_dies_out() -> None:
    pooled = [
        interval_chain_curve(
            IntervalMarkovChain.around(THREE, relative=relative), max_exposed=60
        ).pooled()
        for relative in (0.0, 0.01, 0.2)
    ]
    assert covers(pooled[1], pooled[0]) and covers(pooled[2], pooled[1])
    assert pooled[2][-1] < 0.01


def test_counts_with_a_zero_are_bounded_after_two_steps() -> None:
    counts = Transitions(np.array([[90, 10, 0], [20, 70, 10], [5, 5, 90]]))
    curve = interval_chain_curve(counts.intervals(confidence=0.95), max_exposed=5)
    assert np.isinf(curve.pooled()[0]) and np.isfinite(curve.pooled()[2])


def test_a_finite_set_ends_in_group_privacy() -> None:
    box = IntervalMarkovChain.around(THREE, relative=0.2)
    long = interval(box.lower, box.upper, length=10**6)
    curve = interval_chain_curve(long, max_exposed=5)
    assert curve.exposed[-1] == 10**6 and not curve.leak[:, -1].any()
    assert curve.exact[:, -1].all() and not curve.exact[:, :-1].any()
    only = interval_chain_curve(long, Secrets(entries=(0,)), max_exposed=5)
    assert (only.pooled() <= curve.pooled()).all()
    assert (only.pooled()[:5] < curve.pooled()[:5]).all()


def test_too_many_states_are_refused() -> None:
    many = IntervalMarkovChain.around(markov(np.full((130, 130), 1 / 130)), relative=0.1)
    with raises(TooLarge, field="states", size=130, limit=128):
        interval_chain_curve(many, max_exposed=2)


@pytest.mark.parametrize("start", ["any", "stationary"])
def test_a_point_does_not_depend_on_how_far_the_curve_goes(
    start: Literal["any", "stationary"],
) -> None:
    lower, upper = [[0.75, 0.125], [0.0625, 0.875]], [[0.875, 0.25], [0.125, 0.9375]]
    chain = interval(lower, upper, start=start)
    long = interval_chain_curve(chain, max_exposed=34)
    assert (np.diff(long.leak, axis=1) <= 0).all() and (long.leak[:, -1] > 0).all()
    for most in (1, 3, 30):
        short = interval_chain_curve(chain, max_exposed=most)
        # at rest the odds are those of the best of 30 steps back, or of as many as the curve has
        assert short.leak == pytest.approx(long.leak[:, :most], rel=0, abs=1e-3)


@pytest.mark.nightly
def test_sets_of_chains_refuse_what_they_have_no_rows_for() -> None:
    chain = IntervalMarkovChain(
        np.array([[0.75, 0.15], [0.15, 0.75]]), np.array([[0.85, 0.25], [0.25, 0.85]]), length=8
    )
    with pytest.raises(InvalidWorld):
        interval_chain_curve(chain, Secrets(entries=(8,)), max_exposed=2)
    for entries, names in (((2,), None), ((1,), "1"), ((5,), None), ((6,), "6"), ((1, 6), "1 6")):
        found = interval_chain_curve(chain, Secrets(entries=entries), max_exposed=2)
        assert found.splits is not None
        said = [found.splits.describe(k, 0)["entry"] for k in range(len(found.pairs))]
        assert sorted(set(said)) == (["2+"] if names is None else names.split())
    for most, said_of_all in ((4, {str(i) for i in range(8)}), (3, {"3+"})):
        found = interval_chain_curve(chain, max_exposed=most)
        assert found.splits is not None
        names_of = {found.splits.describe(k, 0)["entry"] for k in range(len(found.pairs))}
        assert names_of == said_of_all
