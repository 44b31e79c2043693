"""The rows that the engine reads are in the cells that the ledger charges."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from takifugu.declarations import Category, Declaration, InvalidQuery, Order, Source
from takifugu.errors import TooLarge
from takifugu.session.cells import rows_of
from takifugu.session.query_options import Bound
from takifugu.tables.scope import place_in_order
from tests.raising import raises

ZONE = "Europe/Berlin"  # clocks go on at 2012-03-25 02:00 and back at 2012-10-28 03:00


def declared(order: Order) -> Declaration:
    many = tuple(range(200))
    return Declaration(
        Source("csv", path="no.csv"),
        "person",
        order,
        (Category("state", ("home", "ward"), "refuse"),),
        (Category("zone", ("a", "b"), "refuse"), Category("x", many, "drop")),
        folder=Path(),
    )


TIMES = declared(Order("at", "time", ZONE))
CHANGES = (datetime(2012, 3, 25), datetime(2012, 10, 28))
NEAR = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from(CHANGES),
    st.integers(0, 300),
)
OFFSETS = st.sampled_from([None, UTC, ZoneInfo(ZONE), ZoneInfo("Asia/Jakarta")])


@given(times=st.lists(st.tuples(NEAR, OFFSETS, st.integers(0, 1)), min_size=2, max_size=2))
def test_what_is_disjoint_for_the_ledger_is_disjoint_for_the_engine(
    times: list[tuple[datetime, ZoneInfo | None, int]],
) -> None:
    ends: list[Bound] = [at.replace(tzinfo=zone, fold=fold) for at, zone, fold in times]
    try:
        first = rows_of(TIMES, (None, ends[0]), None)
        second = rows_of(TIMES, (ends[1], None), None)
    except InvalidQuery:
        assume(False)
    assert first.window is not None and second.window is not None
    assume(first.window.ticks[1] <= second.window.ticks[0])
    for order in (TIMES.order, Order("at", "unix", ZONE)):
        for zoned in (True, False):
            end = place_in_order(first.scope.end, order, zoned=zoned, what="end")  # type: ignore[arg-type]
            start = place_in_order(second.scope.start, order, zoned=zoned, what="start")  # type: ignore[arg-type]
            assert end <= start  # type: ignore[operator]


def test_without_the_refusal_disjoint_windows_would_share_rows() -> None:
    """Why hours that clocks skip or repeat are refused: instants in order, local times not."""
    zone = ZoneInfo(ZONE)
    end = datetime(2012, 10, 28, 2, 30, tzinfo=zone, fold=0).astimezone(UTC)
    start = datetime(2012, 10, 28, 2, 15, tzinfo=zone, fold=1).astimezone(UTC)
    assert end < start
    local = [place_in_order(at, TIMES.order, zoned=False, what="end") for at in (end, start)]
    assert local[0] > local[1]  # type: ignore[operator]


@pytest.mark.parametrize(
    "bound",
    [
        "2012-03-25T02:30",
        "2012-10-28T02:30",
        datetime(2012, 10, 28, 2, 30, tzinfo=ZoneInfo(ZONE), fold=1),
        datetime(2012, 10, 28, 0, 30, tzinfo=UTC),
        "yesterday",
        17,
    ],
)
def test_a_bound_that_is_no_one_moment_is_refused(bound: Bound) -> None:
    with pytest.raises(InvalidQuery):
        rows_of(TIMES, (None, bound), None)


def test_a_day_is_its_first_local_moment() -> None:
    found = rows_of(TIMES, (date(2012, 7, 1), "2012-07-02"), None)
    assert found.scope.start == datetime(2012, 6, 30, 22, tzinfo=UTC)
    assert found.window is not None and found.window.unit == "instant"
    assert found.window.end == found.scope.end


def test_groups_are_all_combinations_of_the_keys_that_are_kept() -> None:
    found = rows_of(TIMES, None, {"zone": ["b"], "x": [1, 2]})
    assert found.groups is not None and found.groups.columns == ("x", "zone")
    assert found.groups.keys == {(1, "b"), (2, "b")}
    assert found.window is None
    with raises(TooLarge, field="where", limit=10_000):
        rows_of(TIMES, None, {"zone": ["a", "b"] * 100, "x": list(range(200))})
    with raises(InvalidQuery, field="where, state"):
        rows_of(TIMES, None, {"state": ["ward"]})
    with raises(InvalidQuery, field="where, at", reason="order"):
        rows_of(TIMES, None, {"at": [1]})
