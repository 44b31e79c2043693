"""Curves of chains against the law written out, and against fifty digits."""

from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.influence import InfluenceCurve, chain_curve, union
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from tests.oracles import chains as oracle
from tests.raising import raises


def markov(*arguments: Any, **named: Any) -> MarkovChain:
    """Lists as well as arrays, without the type checker's help."""
    return MarkovChain(*arguments, **named)


NEAR = 1e-9


@st.composite
def rows(draw: st.DrawFn, states: int, *, zeros: bool) -> list[float]:
    least = 0 if zeros else 1
    parts = draw(st.lists(st.integers(least, 9), min_size=states, max_size=states))
    if not sum(parts):
        parts[draw(st.integers(0, states - 1))] = 1
    return [part / sum(parts) for part in parts]


@st.composite
def matrices(draw: st.DrawFn, states: int, *, zeros: bool) -> list[list[float]]:
    return [draw(rows(states, zeros=zeros)) for _ in range(states)]


def written_out(chain: MarkovChain) -> dict[tuple[int, ...], float]:
    assert chain.length is not None
    if chain.homogeneous:
        steps = [oracle.normalised(chain.transition.tolist())] * (chain.length - 1)
    else:
        steps = [oracle.normalised(matrix.tolist()) for matrix in chain.transition]
    if isinstance(chain.start, str):
        start = oracle.stationary(oracle.normalised(chain.transition.tolist()))
    else:
        start = [Fraction(float(v)) for v in chain.start]
    return oracle.law(start, steps)


def rows_of(curve: InfluenceCurve) -> dict[str, list[float]]:
    return {
        name: list(map(float, leak)) for name, leak in zip(curve.pairs, curve.leak, strict=True)
    }


def same(found: list[float], true: list[float]) -> bool:
    """Equal, up to the rounding of both; that it is never below is another test."""
    return all(
        f == t if inf in (f, t) else t - 1e-12 <= f <= t + NEAR
        for f, t in zip(found, true, strict=True)
    )


def check_against_enumeration(
    chain: MarkovChain, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], *, symmetric: bool
) -> None:
    secrets = Secrets(pairs=tuple(pairs))
    assert chain.length is not None
    paths = written_out(chain)
    curve = chain_curve(
        chain, secrets, max_exposed=chain.length, symmetric=symmetric, by_entry=True
    )
    found = rows_of(curve)
    assert curve.exact.all()
    assert list(curve.exposed) == list(range(1, chain.length + 1))
    for entry in range(chain.length):
        for a, b in [*pairs, *((b, a) for a, b in pairs)]:
            sides = ["|".join(map(str, sorted(side))) for side in (a, b)]
            label = " / ".join(f"{entry}={s}" if chain.length > 1 else s for s in sides)
            if all(oracle.possible(paths, entry, side) for side in (a, b)):
                true = oracle.curve(paths, entry, a, b, symmetric=symmetric)
                assert same(found.pop(label), true), (label, true)
    assert not found


@st.composite
def small_chains(draw: st.DrawFn, *, zeros: bool) -> MarkovChain:
    states = draw(st.integers(2, 3))
    length = draw(st.integers(1, 5 if states == 2 else 4))
    start = (
        draw(st.none() | rows(states, zeros=True)) if not zeros else draw(rows(states, zeros=True))
    )
    if length > 1 and start is not None and draw(st.booleans()):
        several = [draw(matrices(states, zeros=zeros)) for _ in range(length - 1)]
        return markov(several, start=start)
    table = draw(matrices(states, zeros=zeros))
    return markov(table, start="stationary" if start is None else start, length=length)


def every_pair(chain: MarkovChain) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [((x,), (y,)) for x in range(len(chain.states)) for y in range(x)]


def some_pair_happens(chain: MarkovChain) -> bool:
    return bool(((chain.marginals() > 0).sum(axis=1) > 1).any())


@pytest.mark.costly
@settings(max_examples=60)
@given(chain=small_chains(zeros=False), symmetric=st.booleans())
def test_a_curve_is_what_enumeration_of_all_splits_finds(
    chain: MarkovChain, symmetric: bool
) -> None:
    if some_pair_happens(chain):
        check_against_enumeration(chain, every_pair(chain), symmetric=symmetric)


@pytest.mark.costly
@settings(max_examples=80)
@given(chain=small_chains(zeros=True), symmetric=st.booleans())
def test_zeros_are_values_too(chain: MarkovChain, symmetric: bool) -> None:
    if some_pair_happens(chain):
        check_against_enumeration(chain, every_pair(chain), symmetric=symmetric)


@pytest.mark.nightly
@settings(max_examples=40)
@given(
    table=matrices(3, zeros=True),
    start=rows(3, zeros=False),
    length=st.integers(2, 4),
    symmetric=st.booleans(),
)
@example(
    table=[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]],
    start=[0.25, 0.25, 0.5],
    length=4,
    symmetric=False,
)
def test_groups_are_maximised_jointly(
    table: list[list[float]], start: list[float], length: int, symmetric: bool
) -> None:
    chain = markov(table, start=start, length=length)
    if (chain.marginals() > 0).all():
        check_against_enumeration(chain, [((0, 2), (1,)), ((0,), (1,))], symmetric=symmetric)


def test_a_group_leaks_less_than_its_values() -> None:
    chain = markov([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    grouped = chain_curve(chain, Secrets(pairs=(((0, 2), (1,)),)), max_exposed=9)
    single = chain_curve(chain, Secrets(pairs=(((0,), (1,)), ((2,), (1,)))), max_exposed=9)
    assert (grouped.pooled() < single.pooled() - 0.01).any()
    assert (grouped.pooled() <= single.pooled() + NEAR).all()


def test_a_group_of_copies_leaks_like_the_state_they_copy() -> None:
    for start, whole in (("stationary", "stationary"), ([0.2, 0.3, 0.5], [0.2, 0.8])):
        copies = markov(
            [[0.9, 0.025, 0.075], [0.3, 0.175, 0.525], [0.3, 0.175, 0.525]], start=start
        )
        grouped = chain_curve(copies, Secrets(pairs=(((0,), (1, 2)),)), max_exposed=6)
        single = chain_curve(markov([[0.9, 0.1], [0.3, 0.7]], start=whole), max_exposed=6)
        assert grouped.exact.all()
        np.testing.assert_allclose(grouped.leak, single.leak, atol=NEAR)


@pytest.mark.nightly
def test_values_that_die_out_are_still_told_apart_no_better() -> None:
    table = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]]
    start = [0.5, 0.4, 0.1]
    unbounded = chain_curve(markov(table, start=start), max_exposed=4)
    found = rows_of(unbounded)
    assert all(leak == inf for leak in found["4+=0 / 4+=2"])
    # 0 and 1 die out together: their odds settle, though the probability of either goes to 0
    long = markov(table, start=start, length=300)
    every = chain_curve(long, Secrets(entries=tuple(range(4, 296))), max_exposed=4, by_entry=False)
    np.testing.assert_allclose(found["4+=0 / 4+=1"], rows_of(every)["0 / 1"][:-1], atol=NEAR)
    assert unbounded.exact[unbounded.pairs.index("4+=0 / 4+=1")].all()


@pytest.mark.parametrize("length", [7, 8, 15])
def test_one_class_of_entries_stands_for_all_of_a_long_chain(length: int) -> None:
    chain = markov([[0.9, 0.1], [0.3, 0.7]], length=length)
    half = (length - 1) // 2
    one = chain_curve(chain, max_exposed=half)
    assert one.pairs == ("0 / 1", "1 / 0")
    each = rows_of(chain_curve(chain, max_exposed=length))
    for name in one.pairs:
        x, y = name.split(" / ")
        over_entries = np.max([each[f"{i}={x} / {i}={y}"] for i in range(length)], axis=0)[
            : half + 1
        ]
        np.testing.assert_allclose(rows_of(one)[name][:half], over_entries[:half], atol=NEAR)
    assert one.exposed[-1] == length and not one.leak[:, -1].any()


def test_length_costs_nothing_and_changes_nothing() -> None:
    table = [[0.9, 0.1], [0.3, 0.7]]
    unbounded = chain_curve(markov(table), max_exposed=40)
    long = chain_curve(markov(table, length=10**6), max_exposed=40)
    assert unbounded.entries is None
    np.testing.assert_array_equal(unbounded.leak, long.leak[:, :-1])


@pytest.mark.parametrize("start", [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
def test_later_entries_of_a_given_start_are_one_class(start: list[float]) -> None:
    table = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    long = chain_curve(markov(table, start=start, length=60), max_exposed=4)
    every = chain_curve(
        markov(table, start=start, length=60),
        Secrets(entries=tuple(range(60))),
        max_exposed=4,
    )
    assert long.exact.all() and len(long.pairs) < len(every.pairs)
    for b in range(4):
        for x, y in permutations(range(3), 2):
            worst = [
                max(
                    leak[b]
                    for name, leak in rows_of(c).items()
                    if name.endswith(f"={y}") and f"={x} /" in name
                )
                for c in (long, every)
            ]
            assert worst[0] == pytest.approx(worst[1], abs=NEAR)
    unbounded = chain_curve(markov(table, start=start), max_exposed=4)
    assert unbounded.exact.all()
    np.testing.assert_allclose(unbounded.leak, long.leak[:, :-1], atol=NEAR)


def test_a_periodic_chain_with_a_given_start_is_bounded_and_says_so() -> None:
    table = [[0.0, 0.5, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5], [0.3, 0.0, 0.0, 0.7], [0.0, 0.6, 0.4, 0.0]]
    chain = markov(table, start=[1.0, 0.0, 0.0, 0.0], length=500)
    curve = chain_curve(chain, max_exposed=5)
    truth = chain_curve(chain, Secrets(entries=tuple(range(500))), max_exposed=5, by_entry=False)
    assert not curve.exact.all()
    assert (curve.pooled() >= truth.pooled() - 1e-12).all()


def test_rows_of_entries_may_be_merged() -> None:
    chain = binary(0.9, 0.9, 9)
    apart, merged = chain_curve(chain), chain_curve(chain, by_entry=False)
    np.testing.assert_allclose(apart.pooled(), merged.pooled(), atol=1e-15)
    assert merged.pairs == ("0 / 1", "1 / 0")
    assert (apart.to_pufferfish([0.1, 1.0]) <= merged.to_pufferfish([0.1, 1.0])).all()
    assert merged.points()[4].split == {"entry": "4", "left": 4, "right": 0}


def test_states_that_a_chain_at_rest_never_has_are_left_out() -> None:
    chain = markov([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]], length=50)
    assert chain_curve(chain, max_exposed=20).pairs == ("0 / 1", "1 / 0")
    with raises(InvalidWorld, field="secrets"):
        chain_curve(chain, Secrets(pairs=(((0,), (2,)),)))


@pytest.mark.parametrize(("states", "rounds"), [(5, 3), (30, 1), (80, 1)])
def test_never_below_fifty_digits(states: int, rounds: int) -> None:
    rng = np.random.default_rng(states)
    for _ in range(rounds):
        table = rng.dirichlet(np.full(states, 0.4), states)
        table = np.maximum(table, 1e-7)
        table /= table.sum(axis=1, keepdims=True)
        x, y = (int(v) for v in rng.choice(states, 2, replace=False))
        curve = chain_curve(markov(table), Secrets(pairs=(((x,), (y,)),)), max_exposed=7)
        true = oracle.long_chain_leaks(table.tolist(), x, y, 7)
        for exact, found in zip(true, curve.leak[0], strict=True):
            assert exact <= Decimal(float(found)) <= exact + Decimal("1e-9")


def test_a_point_that_is_called_exact_is_so_to_a_millionth() -> None:
    rng = np.random.default_rng(3)
    called = []
    for states in (2, 3, 5, 30):
        table = np.maximum(rng.dirichlet(np.full(states, 0.7), states), 1e-6)
        table /= table.sum(axis=1, keepdims=True)
        curve = chain_curve(markov(table), Secrets(pairs=(((0,), (1,)),)), max_exposed=40)
        ways = [oracle.long_chain_leaks(table.tolist(), *pair, 40) for pair in ((0, 1), (1, 0))]
        for point, true in zip(curve.points(), map(max, *ways), strict=False):
            called.append(point.exact)
            if point.exact:
                assert Decimal(point.a) <= true * (1 + Decimal("1e-6"))
    assert any(called) and not all(called)  # a leak of 1e-20 is bounded by its rounding


def test_probabilities_too_small_for_a_float_are_still_right() -> None:
    table = np.diag(np.full(9, 1e-80), 1) + np.diag(np.full(9, 1e-80), -1)
    np.fill_diagonal(table, 1 - table.sum(axis=1))
    curve = chain_curve(markov(table), Secrets(pairs=(((4,), (5,)),)), max_exposed=25)
    true = oracle.long_chain_leaks(table.tolist(), 4, 5, 25)
    assert true[0] == Decimal("Infinity") and 100 < true[-1] < 1000
    for exact, found in zip(true, curve.leak[0], strict=True):
        assert exact <= Decimal(float(found)) <= exact + Decimal("1e-9")


def test_rows_that_sum_to_one_only_nearly_are_normalised() -> None:
    rough = np.array([[0.9, 0.1 + 8e-10], [0.3 - 8e-10, 0.7]])
    found = chain_curve(markov(rough), max_exposed=30)
    true = oracle.long_chain_leaks(rough.tolist(), 0, 1, 30)
    assert all(exact <= Decimal(float(up)) for exact, up in zip(true, found.leak[0], strict=True))


def binary(p: float, q: float, length: int | None = None) -> MarkovChain:
    return markov([[p, 1 - p], [1 - q, q]], length=length)


def test_allowed_losses_of_long_binary_chains() -> None:
    for p, allowed in ((0.8, 0.0765), (0.9, 0.0315)):
        curve = chain_curve(binary(p, p, 1000))
        assert float(curve.to_dp(1.0)) == pytest.approx(allowed, abs=5e-5)
    hundred = 100 * curve.to_dp(1.0)
    assert float(curve.to_pufferfish(hundred)) == pytest.approx(7.55, abs=5e-3)


def test_one_sided_splits_win_near_the_ends() -> None:
    short = chain_curve(binary(0.9, 0.9, 9))
    assert float(short.pooled()[4]) == pytest.approx(2.19722, abs=5e-6)
    long = chain_curve(binary(0.9, 0.9), max_exposed=5)
    assert float(long.pooled()[4]) == pytest.approx(2.26175, abs=5e-6)


def test_a_split_for_each_direction_beats_one_for_both() -> None:
    chain = binary(0.01, 0.39)
    both = chain_curve(chain, max_exposed=5, symmetric=True)
    each = chain_curve(chain, max_exposed=5)
    assert float(both.pooled()[4]) == pytest.approx(1.23611, abs=5e-6)
    assert both.points()[4].split in (
        {"entry": "5+", "left": 1, "right": 3},
        {"entry": "5+", "left": 3, "right": 1},
    )
    assert float(each.pooled()[4]) == pytest.approx(0.86226, abs=5e-6)
    # and each is what the law written out says, for its own reading
    paths = written_out(binary(0.01, 0.39, 11))
    splits = [(*range(5 - d + 1), *range(11 - d, 11)) for d in range(1, 6)]
    there = [oracle.leak(paths, 5, (0,), (1,), low) for low in splits]
    back = [oracle.leak(paths, 5, (1,), (0,), low) for low in splits]
    assert max(min(there), min(back)) == pytest.approx(0.86226, abs=5e-6)
    assert min(map(max, there, back)) == pytest.approx(1.23611, abs=5e-6)


@given(epsilon=st.floats(0, 2))
@settings(max_examples=20)
def test_a_union_of_chains_guarantees_the_worse_of_both(epsilon: float) -> None:
    alone = [chain_curve(binary(*rates, 50), max_exposed=10) for rates in ((0.9, 0.9), (0.6, 0.8))]
    both = union({"one": alone[0], "two": alone[1]})
    worse = max(float(curve.to_pufferfish(epsilon)) for curve in alone)
    assert float(both.to_pufferfish(epsilon)) == worse


def test_options_without_a_curve_are_refused() -> None:
    chain = binary(0.9, 0.9, 9)
    with raises(InvalidWorld, field="secrets"):
        chain_curve(chain, Secrets(entries=(9,)))
    with raises(UnsoundRequest, field="max_exposed"):
        chain_curve(chain, max_exposed=0)
    with raises(UnsoundRequest, field="max_exposed"):
        chain_curve(chain, max_exposed=2.5)  # type: ignore[arg-type]
    many = markov(np.full((40, 40), 1 / 40), length=400)
    with raises(TooLarge, field="by_entry"):
        chain_curve(many, max_exposed=300, by_entry=True)
    with raises(TooLarge, field="max_exposed", size=1_560_000_000):
        chain_curve(markov(many.transition), max_exposed=10**6)


STEPS = np.random.default_rng(11).dirichlet(np.ones(3), (5, 3))


START = np.array([0.2, 0.3, 0.5])


PAIRS = (((0,), (1,)), ((1,), (0,)), ((2,), (1,)), ((1,), (2,)))
