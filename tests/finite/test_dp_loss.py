"""The DP loss of a table of likelihoods is what comparing all pairs of datasets finds."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidMechanism, InvalidWorld
from takifugu.finite import FiniteMechanism
from takifugu.finite.dp_loss import (
    DpLoss,
    between,
    by_entry,
    group,
    per_entry,
    per_record,
)
from takifugu.priors import Tables, Universe
from tests.oracles import finite as oracle
from tests.raising import raises
from tests.strategies import mechanisms, tables


def _check(
    mechanism: FiniteMechanism, found: DpLoss, neighbours: Callable[[Any, Any], bool]
) -> None:
    """``found`` is the exact loss rounded up, and its pair of datasets attains it."""
    datasets, rows = mechanism.universe.datasets, mechanism.likelihood.tolist()
    exact = oracle.to_dp(datasets, rows, neighbours)
    if mpmath.isinf(exact):
        assert found.epsilon == math.inf and found.slack == 0
    else:
        with mpmath.workdps(50):
            assert mpmath.mpf(found.epsilon) - found.slack <= exact <= mpmath.mpf(found.epsilon)
        assert found.slack < 1e-12
    assert found.left == found.right or neighbours(found.left, found.right)
    position = mechanism.universe.position
    output = mechanism.outputs.index(found.output)
    more = mechanism.likelihood[position(found.left), output]
    less = mechanism.likelihood[position(found.right), output]
    assert (math.inf if less == 0 else more / less) == pytest.approx(math.exp(found.epsilon))


def _within(cells: set[int]) -> Callable[[Any, Any], bool]:
    """Neighbours differ, and in these cells only."""
    return lambda a, b: bool(oracle.differ(a, b)) and set(oracle.differ(a, b)) <= cells


@pytest.mark.costly
@settings(max_examples=60)
@given(st.data())
def test_per_entry_and_group_losses_are_those_of_all_pairs(data: st.DataObject) -> None:
    universe = data.draw(tables())
    mechanism = data.draw(mechanisms(universe))
    _check(mechanism, per_entry(mechanism), lambda a, b: len(oracle.differ(a, b)) == 1)
    size = data.draw(st.integers(1, 4))
    _check(mechanism, group(mechanism, size), lambda a, b: 1 <= len(oracle.differ(a, b)) <= size)


@pytest.mark.costly
@settings(max_examples=40)
@given(st.data())
def test_losses_of_one_entry_and_one_record_are_those_of_its_cells(data: st.DataObject) -> None:
    universe = data.draw(tables())
    mechanism = data.draw(mechanisms(universe))
    alone = by_entry(mechanism)
    for column, entry in enumerate(universe.entries):
        found = per_entry(mechanism, entry=entry)
        _check(mechanism, found, _within({column}))
        assert found.epsilon == alone[column]
    for record in set(universe.records):
        owned = {i for i, owner in enumerate(universe.records) if owner == record}
        found = per_record(mechanism, record=record)
        _check(mechanism, found, _within(owned))
    losses = [per_record(mechanism, record=record).epsilon for record in set(universe.records)]
    assert per_record(mechanism).epsilon == max(losses)


@settings(max_examples=40)
@given(st.data())
def test_the_relation_of_the_tables_and_the_same_one_given_by_hand_agree(
    data: st.DataObject,
) -> None:
    universe = data.draw(tables())
    mechanism = data.draw(mechanisms(universe))
    flat = FiniteMechanism(Universe(universe.datasets), mechanism.likelihood, mechanism.outputs)
    pairs = [
        (universe.datasets[int(a)], universe.datasets[int(b)])
        for column in range(len(universe.entries))
        for a, b in universe.neighbours(column)
        if a < b  # `between` takes each pair both ways
    ]
    assert between(flat, pairs).epsilon == pytest.approx(per_entry(mechanism).epsilon, abs=1e-12)


def test_randomised_response_of_every_bit() -> None:
    universe = Tables.bits(3)
    keep = np.array([[0.75, 0.25], [0.25, 0.75]])
    cells = universe.codes
    table = keep[cells[:, None, :], cells[None, :, :]].prod(axis=-1)
    mechanism = FiniteMechanism(universe, table, universe.datasets)
    for size in (1, 2, 3, 7):
        assert group(mechanism, size).epsilon == pytest.approx(min(size, 3) * math.log(3))
    assert by_entry(mechanism) == pytest.approx([math.log(3)] * 3)
    # with all three bits one person's, her record is everything
    whole = Tables.of(dict.fromkeys(range(3), (0, 1)), records=dict.fromkeys(range(3), "ann"))
    assert per_record(FiniteMechanism(whole, table)).epsilon == pytest.approx(3 * math.log(3))


def test_what_has_no_meaning_is_refused() -> None:
    loose = FiniteMechanism(Universe(("a", "b")), np.eye(2))
    for ask in (per_entry, per_record, by_entry, lambda m: group(m, 1)):
        with raises(InvalidMechanism, field="universe"):
            ask(loose)
    bits = FiniteMechanism(Tables.bits(2), np.eye(4))
    with raises(InvalidWorld, field="entry"):
        per_entry(bits, entry=7)
    with raises(InvalidWorld, field="record"):
        per_record(bits, record="eve")
    with raises(InvalidWorld, field="size"):
        group(bits, 0)
    with raises(InvalidWorld, field="neighbours"):
        between(bits, [])
    with raises(InvalidWorld, field="dataset"):
        between(bits, [("x", (0, 0))])
