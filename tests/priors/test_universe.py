"""Universes and tables: every dataset once, in a fixed order."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from takifugu.errors import InvalidWorld
from takifugu.priors import Tables, Universe
from tests.oracles import finite as oracle
from tests.raising import raises
from tests.strategies import tables


def test_positions_are_those_of_the_list() -> None:
    days = Universe(("rain", ("a", 1), 7))
    assert [days.position(d) for d in days.datasets] == [0, 1, 2]
    assert len(days) == 3
    with raises(InvalidWorld, field="dataset"):
        days.position("snow")


@settings(max_examples=30)
@given(tables())
def test_tables_are_all_fillings_and_codes_list_them(universe: Tables) -> None:
    assert list(universe.datasets) == list(product(*universe.values))
    for row, dataset in zip(universe.codes.tolist(), universe.datasets, strict=True):
        assert dataset == tuple(v[c] for v, c in zip(universe.values, row, strict=True))
    assert int(np.prod(universe.shape)) == len(universe)


@settings(max_examples=30)
@given(tables())
def test_neighbours_differ_in_one_entry_and_none_is_missing(universe: Tables) -> None:
    for column in range(len(universe.entries)):
        found = {(int(a), int(b)) for a, b in universe.neighbours(column)}
        assert len(found) == len(universe.neighbours(column))
        assert found == {
            (i, j)
            for i, a in enumerate(universe.datasets)
            for j, b in enumerate(universe.datasets)
            if oracle.differ(a, b) == [column]  # type: ignore[arg-type]
        }


@settings(max_examples=30)
@given(tables())
def test_distances_count_the_entries_that_differ(universe: Tables) -> None:
    everything = range(len(universe))
    found = universe.distances(everything, everything)
    for i, a in enumerate(universe.datasets):
        for j, b in enumerate(universe.datasets):
            assert found[i, j] == len(oracle.differ(a, b))  # type: ignore[arg-type]


def test_entries_are_found_by_name_and_records_by_default_are_entries() -> None:
    week = Tables.of({"mon": ("home", "ward"), "tue": ("home", "ward", "away")})
    assert week.entry("tue") == 1 and week.shape == (2, 3)
    assert week.records == ("mon", "tue")
    with raises(InvalidWorld, field="entry"):
        week.entry("sun")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Universe(()), "datasets"),
        (lambda: Universe(("a", "a")), "datasets"),
        (lambda: Tables.of({}), "entries"),
        (lambda: Tables.of({"a": ()}), "values"),
        (lambda: Tables.of({"a": (1, 1)}), "values"),
        (lambda: Tables.of({"a": (0, 1)}, records={}), "records"),
        (lambda: Tables.bits(23), "values"),
        (lambda: Tables.bits(0), "entries"),
    ],
)
def test_what_is_no_universe_is_refused_in_one_line(make: object, field: str) -> None:
    with raises(InvalidWorld, field=field) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
