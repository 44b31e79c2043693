"""Ranges of a number by name: made, read back, and held to the bounds of a column."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.priors.labels import are_ranges, parse_ranges, range_names, refuse_other_bounds
from tests.raising import raises

decimals = st.builds(
    lambda digits, places: Fraction(digits, 10**places),
    st.integers(-(10**20), 10**20),
    st.integers(0, 30),
)


@given(cuts=st.sets(decimals, min_size=2, max_size=8).map(sorted))
def test_names_hold_the_cuts_to_the_last_digit(cuts: list[Fraction]) -> None:
    names = range_names(cuts)
    assert parse_ranges(names) == tuple(pairwise(cuts))
    assert are_ranges(names) and len(set(names)) == len(cuts) - 1
    assert [name[-1] for name in names] == [")"] * (len(cuts) - 2) + ["]"]


@given(
    cuts=st.sets(decimals, min_size=2, max_size=6).map(sorted),
    share=st.fractions(0, 1, max_denominator=1000),
)
def test_every_number_between_the_bounds_is_in_exactly_one_range(
    cuts: list[Fraction], share: Fraction
) -> None:
    number = cuts[0] + share * (cuts[-1] - cuts[0])
    ranges = parse_ranges(range_names(cuts))
    last = len(ranges) - 1
    held = [
        low <= number < high or (place == last and number == high)
        for place, (low, high) in enumerate(ranges)
    ]
    assert sum(held) == 1


def test_numbers_are_written_in_one_way() -> None:
    assert range_names([-10, "-0.50", "1e3"]) == ("[-10, -0.5)", "[-0.5, 1000]")
    assert range_names([0.1, 0.25]) == ("[0.1, 0.25]",)
    for other in (
        "[0, 0.50]",
        "[-0, 1]",
        "[00, 1]",
        "[0,1]",
        "[0, 1e3]",
        "(0, 1]",
        " [0, 1]",
        "[.5, 1]",
    ):
        assert not are_ranges([other]) or other == "[-0, 1]"
        with raises(InvalidPrior, field="states"):
            parse_ranges([other])


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        (["[0, 1)", "[0.5, 2]"], "overlap"),
        (["[0, 1)", "[0, 1)", "[1, 2]"], "overlap"),
        (["[0, 1)", "[1.5, 2]"], "not-in-order"),
        (["[0, 1]", "[1, 2]"], "not-in-order"),
        (["[1, 2]", "[0, 1)"], "not-in-order"),
        (["[0, 1)", "[1, 2)"], "not-in-order"),
        (["[1, 0]"], "empty-range"),
        (["[0, 0]"], "empty-range"),
        ([], "empty-range"),
        (["[0, 1)", "low"], "not-a-range"),
        (["[0, 1)", 7], "not-a-range"),
    ],
)
def test_ranges_that_do_not_follow_one_another_are_refused(
    states: list[object], reason: str
) -> None:
    with raises(InvalidPrior, field="states", reason=reason):
        parse_ranges(states)


def test_both_lists_are_shown_side_by_side() -> None:
    with raises(InvalidPrior, reason="overlap") as refused:
        parse_ranges(["[0, 1)", "[0.5, 2]"])
    assert "[0, 1), [0.5, 2]" in refused.value.given
    assert "[0, 0.5), [0.5, 1), [1, 2]" in refused.value.needed


@pytest.mark.parametrize(
    ("cuts", "reason"),
    [
        ([0, 1, 1], "not-in-order"),
        ([2, 1], "not-in-order"),
        ([1], "not-in-order"),
        ([], "not-in-order"),
        ([Fraction(1, 3), 1], "not-decimal"),
        ([0, "1e60"], "not-decimal"),
        ([float("nan"), 1], ""),
        ([0, float("inf")], ""),
        (["x", 1], ""),
        ("0,1", ""),
    ],
)
def test_cuts_that_make_no_ranges_are_refused(cuts: list[float], reason: str) -> None:
    with raises(InvalidPrior, field="cuts", reason=reason):
        range_names(cuts)


def test_ranges_must_cut_the_declared_bounds_at_whole_steps() -> None:
    column = {"low": Fraction(0), "high": Fraction(5), "step": Fraction(1, 4)}
    ranges = refuse_other_bounds(range_names([0, "0.5", 5]), column="kwh", **column)
    assert ranges == ((Fraction(0), Fraction(1, 2)), (Fraction(1, 2), Fraction(5)))
    for cuts in ([0, 1, 4], [0, 1, 6], [-1, 1, 5], [1, 5]):
        with raises(InvalidPrior, field="states", reason="other-bounds") as refused:
            refuse_other_bounds(range_names(cuts), column="kwh", **column)
        assert "[0, 5]" in refused.value.needed
    with raises(InvalidPrior, reason="other-bounds") as refused:
        refuse_other_bounds(range_names([-1, 1, 4]), column="kwh", **column)
    assert refused.value.needed.endswith("[0, 1), [1, 4), [4, 5]")
    with raises(InvalidPrior, field="cuts", reason="off-step"):
        refuse_other_bounds(range_names([0, "0.3", 5]), column="kwh", **column)
    with raises(InvalidPrior, field="states", reason="not-a-range"):
        refuse_other_bounds(["low", "high"], column="kwh", **column)
