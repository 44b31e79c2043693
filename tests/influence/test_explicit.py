"""Brute force over all splits, against brute force that shares no code."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidWorld, TooLarge
from takifugu.finite import World
from takifugu.influence import Uncertainty, explicit_curve
from takifugu.priors import EntryIs, Explicit, SecretPair, Tables, Universe, entry_pairs
from tests.oracles import influence as oracle
from tests.raising import raises


@st.composite
def priors(draw: st.DrawFn) -> Explicit:
    shape = draw(st.lists(st.integers(2, 3), min_size=1, max_size=4))
    tables = Tables.of({j: range(m) for j, m in enumerate(shape)})
    weight = st.one_of(st.floats(0.01, 1.0), st.just(0.0))
    raw = np.array(draw(st.lists(weight, min_size=len(tables), max_size=len(tables))))
    raw[0] += 0.1
    return Explicit(tables, raw / raw.sum())


def world_of(prior: Explicit) -> World:
    assert isinstance(prior.universe, Tables)
    return World(prior.universe, (prior,), entry_pairs(prior.universe), unsupported="skip")


@pytest.mark.costly
@settings(max_examples=60)
@given(prior=priors())
def test_every_point_is_what_enumeration_finds(prior: Explicit) -> None:
    world = world_of(prior)
    if all((world.secret_probabilities[0, [s, t]] == 0).any() for s, t in world.sides):
        with raises(InvalidWorld, field="pairs"):
            explicit_curve(world)
        return
    curve = explicit_curve(world)
    law = dict(zip(prior.universe.datasets, prior.probability.tolist(), strict=True))
    for row, name in zip(curve.leak, curve.pairs, strict=True):
        entry, x = map(int, name.split(" / ")[0].split("="))
        y = int(name.split("=")[-1])
        for b, a in zip(curve.exposed, row, strict=True):
            truth = oracle.least_leak(law, entry, x, y, int(b))  # type: ignore[arg-type]
            assert a == pytest.approx(truth, abs=1e-12)
            assert a >= truth - 1e-15


@settings(max_examples=30)
@given(prior=priors(), error=st.floats(0, 0.9))
def test_relative_uncertainty_shifts_every_point_but_the_last(
    prior: Explicit, error: float
) -> None:
    world = world_of(prior)
    try:
        plain = explicit_curve(world)
    except InvalidWorld:
        return
    unsure = explicit_curve(world, uncertainty=Uncertainty.relative(error))
    shift = np.log((1 + error) / (1 - error))
    assert unsure.leak[:, :-1] == pytest.approx(plain.leak[:, :-1] + shift, abs=1e-12)
    assert (unsure.leak[:, -1] == 0).all()


def test_each_prior_keeps_its_own_best_split() -> None:
    tables = Tables.bits(3)
    near = Explicit.independent(tables, {0: [0.5, 0.5], 1: [0.5, 0.5], 2: [0.5, 0.5]})
    linked = np.array([0.45, 0.05, 0.0, 0.0, 0.0, 0.0, 0.05, 0.45])
    far = Explicit(tables, linked, "linked")
    pair = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    curve = explicit_curve(World(tables, (near, far), (pair,)))
    assert curve.pairs == (f"{near.name}: {pair}", f"linked: {pair}")
    alone = explicit_curve(World(tables, (far,), (pair,)))
    assert alone.pairs == (str(pair),)
    assert curve.leak[0] == pytest.approx([0, 0, 0], abs=1e-12)
    assert np.isinf(curve.leak[1, 0]) and curve.leak[1, 1] == pytest.approx(np.log(9))


def test_worlds_without_entries_or_with_too_many_are_refused() -> None:
    from takifugu.priors import OneOf

    plain = Universe(("a", "b"))
    pair = SecretPair(OneOf("a", ("a",)), OneOf("b", ("b",)))
    with raises(InvalidWorld, field="world"):
        explicit_curve(World(plain, (Explicit.uniform(plain),), (pair,)))
    wide = Tables.bits(15)
    bit = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    with raises(TooLarge, field="world", size=15, limit=14):
        explicit_curve(World(wide, (Explicit.uniform(wide),), (bit,)))


def test_the_first_of_equally_good_sets_is_named() -> None:
    """Nothing depends on anything: what is exposed beside the secret makes no difference."""
    tables = Tables.bits(3)
    pair = SecretPair(EntryIs(1, (0,)), EntryIs(1, (1,)))
    curve = explicit_curve(World(tables, (Explicit.uniform(tables),), (pair,)))
    assert curve.splits is not None
    shown = [curve.splits.describe(0, point)["exposed"] for point in range(3)]
    assert shown == [[1], [0, 1], [0, 1, 2]]  # to expose 1 and 2 is as good


@pytest.mark.nightly
def test_the_best_split_of_a_written_out_prior_in_full() -> None:
    tables = Tables.bits(3)
    weight = np.array([0.3, 0.05, 0.1, 0.05, 0.02, 0.08, 0.1, 0.3])
    pair = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    world = World(tables, (Explicit(tables, weight),), (pair,))
    law = weight.reshape(2, 2, 2)
    p, q = law[0] / law[0].sum(), law[1] / law[1].sum()
    leaks = {
        (0,): math.log((p / q).max()),
        (0, 1): math.log((p.sum(axis=0) / q.sum(axis=0)).max()),
        (0, 2): math.log((p.sum(axis=1) / q.sum(axis=1)).max()),
    }
    second = min(((0, 1), (0, 2)), key=lambda exposed: leaks[exposed])
    found = explicit_curve(world)
    assert found.exposed.tolist() == [1, 2, 3] and found.entries == 3
    assert found.leak[0] == pytest.approx([leaks[(0,)], leaks[second], 0.0], abs=1e-12)
    assert found.leak[0, 2] == 0.0 and found.exact.all() and found.pairs == (str(pair),)
    shown = [point.split["exposed"] for point in found.points()]
    assert [sorted(one) for one in shown] == [[0], sorted(second), [0, 1, 2]]
    unsure = explicit_curve(world, uncertainty=Uncertainty.relative(0.5))
    assert not unsure.exact.any()
    assert unsure.leak[0, 0] == pytest.approx(leaks[(0,)] + math.log(3))
