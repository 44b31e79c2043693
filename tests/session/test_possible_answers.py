"""What is published is possible, and is as good as what was drawn."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.mechanisms import IntegerLaplace
from takifugu.mechanisms.post import nearest_with_total, whole_with_total
from takifugu.session.possible_answers import (
    AnswerTable,
    Units,
    adding_up,
    counting_order,
    in_counting_order,
    possible,
)

COUNTS = st.lists(st.integers(-30, 60), min_size=1, max_size=12)


@given(drawn=COUNTS, half=st.integers(0, 40), data=st.data())
def test_numbers_and_intervals_are_in_range_and_no_worse(
    drawn: list[int], half: int, data: st.DataObject
) -> None:
    least = [data.draw(st.integers(-9, 9)) for _ in drawn]
    most = [data.draw(st.integers(low, low + 30)) for low in least]
    truth = [data.draw(st.integers(a, b)) for a, b in zip(least, most, strict=True)]
    step = data.draw(st.sampled_from([Fraction(1, 3), Fraction(7, 10), Fraction(2)]))
    for units in (Units(), Units(step.numerator, [step.denominator] * len(drawn))):
        found, raw = possible(drawn, half, (least, most), units)
        for i, one in enumerate(found):
            a, b, t = (units.shown(i, x) for x in (least[i], most[i], truth[i]))
            was = raw[i]
            assert isinstance(a, int | float) and isinstance(b, int | float)
            assert isinstance(t, int | float)
            assert one.low is not None and one.high is not None and one.estimate is not None
            assert was.low is not None and was.high is not None and was.estimate is not None
            assert a <= one.low <= one.estimate <= one.high <= b
            assert abs(one.estimate - t) <= abs(was.estimate - t)
            assert one.low <= t <= one.high or not was.low <= t <= was.high
            assert {type(cell) for cell in one.cells} == {type(units.shown(i, 1))}


def test_cut_intervals_hold_the_exact_number_as_often() -> None:
    """4,000 counts near both ends of their range, scale 5.

    At 0.95 or more, fewer than 0.93 hold with a probability below exp(−2·4000·0.02²) < 0.002;
    that of intervals half as wide, which hold less than 0.8, is met with probability 1 − 1e-15.
    """
    rng = np.random.default_rng(3)
    noise, most = IntegerLaplace(5.0), 12
    exact = rng.choice([0, 1, most - 1, most], 4_000)
    drawn: list[int | None] = (exact + noise.draw((4_000,), rng=rng)).tolist()
    ranges = ([0] * 4_000, [most] * 4_000)
    for half, least, top in (
        (int(noise.error().interval), 0.93, 1.0),
        (int(noise.error().interval) // 4, 0.0, 0.93),
    ):
        found, _ = possible(drawn, half, ranges, Units())
        held = [
            one.low <= t <= one.high
            for one, t in zip(found, exact.tolist(), strict=True)
            if one.low is not None and one.high is not None
        ]
        assert len(held) == 4_000 and least <= np.mean(held) <= top


@given(values=st.lists(st.integers(-20, 30), min_size=1, max_size=9), total=st.integers(0, 40))
def test_the_nearest_numbers_with_a_total_satisfy_what_makes_them_nearest(
    values: list[int], total: int
) -> None:
    """Kuhn and Tucker: those above 0 are moved alike, and those at 0 by no more."""
    above, below = nearest_with_total(values, total)
    shares = [Fraction(x, below) for x in above]
    assert sum(shares) == total and min(shares) >= 0
    moved = {Fraction(v) - s for v, s in zip(values, shares, strict=True) if s > 0}
    assert len(moved) <= 1
    for shift in moved:
        assert all(v <= shift for v, s in zip(values, shares, strict=True) if s == 0)


@given(values=st.lists(st.integers(-5, 9), min_size=1, max_size=4), total=st.integers(0, 8))
def test_no_whole_numbers_with_that_total_are_nearer(values: list[int], total: int) -> None:
    found = whole_with_total(np.array(values), total).tolist()
    assert sum(found) == total and min(found) >= 0
    others = (p for p in product(range(total + 1), repeat=len(values)) if sum(p) == total)
    distance = min(sum((x - y) ** 2 for x, y in zip(values, p, strict=True)) for p in others)
    assert sum((x - y) ** 2 for x, y in zip(values, found, strict=True)) == distance


def test_large_numbers_are_projected_exactly() -> None:
    top = 2**55
    above, below = nearest_with_total([top, top - 1, -top], 2**40 + 1)
    assert sum(above) == below * (2**40 + 1) and above == [2**40 + 2, 2**40, 0]


@given(drawn=st.lists(st.integers(-9, 30), min_size=6, max_size=6), data=st.data())
def test_numbers_that_add_up_stay_in_their_intervals(drawn: list[int], data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20))]
    most = [size for size in sizes for _ in range(3)]
    half = data.draw(st.integers(0, 9))
    for units in (Units(), Units(1, most)):
        numbers: list[int | None] = [
            None if units.denominators is not None and n == 0 else x
            for x, n in zip(drawn, most, strict=True)
        ]
        cut, _ = possible(numbers, half, ([0] * 6, most), units)
        found = adding_up(numbers, cut, sizes, units)
        for group, size in enumerate(sizes):
            mine: list[Any] = found[3 * group : 3 * group + 3]
            if units.denominators is not None and size == 0:
                assert all(one.cells == (None, None, None) for one in mine)
                continue
            whole = size if units.denominators is None else 1
            assert sum(one.estimate for one in mine) == pytest.approx(whole, abs=1e-12)
            for one, old in zip(mine, cut[3 * group : 3 * group + 3], strict=True):
                assert old.low is not None and old.high is not None
                assert one.low <= one.estimate <= one.high
                assert one.low <= old.low and one.high >= old.high


def test_keys_are_in_the_order_in_which_people_count() -> None:
    hours = [str(hour) for hour in range(24)]
    assert sorted(sorted(hours), key=counting_order) == hours
    mixed = ["7", "-2", "07", "ward 10", "ward 9", "ward", "é", "10"]
    assert sorted(mixed, key=counting_order) == [
        "-2", "07", "7", "10", "ward", "ward 9", "ward 10", "é",
    ]  # fmt: skip
    assert sorted([10, 9, -1], key=counting_order) == [-1, 9, 10]


@pytest.mark.nightly
@given(keys=st.lists(st.text(max_size=6), unique=True, max_size=8))
def test_the_order_of_keys_is_total(keys: list[str]) -> None:
    assert len({counting_order(key) for key in keys}) == len(keys)
    backwards = keys[::-1]
    assert sorted(keys, key=counting_order) == sorted(backwards, key=counting_order)


def test_rows_are_put_in_order_by_groups_alone() -> None:
    rows = tuple((hour, zone, hour + zone) for hour in ("1", "10", "2") for zone in ("b", "a"))
    table = AnswerTable(("hour", "zone", "estimate"), rows, rows)
    keys = [("1", "10", "2"), ("b", "a")]
    found = in_counting_order(table, keys, [True, False])
    assert [row[2] for row in found.rows] == ["1b", "1a", "2b", "2a", "10b", "10a"]
    assert found.raw == found.rows
    assert in_counting_order(table, keys, [False, False]) is table


def test_a_share_of_no_rows_is_not_shown() -> None:
    shares = Units(3, [0, 4])
    assert shares.shown(0, 5) is None and shares.shown(1, 2) == 1.5
    assert Units().shown(7, 5) == 5
