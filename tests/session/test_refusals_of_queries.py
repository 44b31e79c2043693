"""What a refusal of queries says: the facts that decide its words."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from takifugu.engines import Category
from takifugu.errors import TakifuguError
from takifugu.session.cells import _placed, refuse_order, rows_of
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.linear import WeightedSum, WeightedSumQuery, declared_sums
from takifugu.session.query.query import Aim
from takifugu.session.release_errors import BudgetConflict
from takifugu.session.session import _refuse_types
from tests.raising import raises
from tests.session.plain_engine import ENGINE, rows
from tests.session.refused_worlds import (
    DAYS,
    NONE_PUBLIC,
    TABLE,
)

pytestmark = pytest.mark.nightly


def raised(error: Exception) -> None:
    """Raise it."""
    raise error


@pytest.mark.parametrize(
    ("refused", "field", "reason", "text"),
    [
        (
            lambda: WeightedSum("", "zone", {"a": 1}),
            "column",
            "",
            "`column` is not text; it must be the name of a column",
        ),
        (
            lambda: WeightedSum("weight", 3, {"a": 1}),  # type: ignore[arg-type]
            "by",
            "",
            "`by` is not text; it must be the name of a column",
        ),
        (
            lambda: WeightedSum("weight", "zone", {}),
            "weights",
            "",
            "`weights` are missing; it must map keys of zone to numbers, as '1/2'",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": True}),
            "weights",
            "",
            "`weights` are something else; it must map keys to numbers, as '1/2'",
        ),
        (
            lambda: WeightedSum("weight", "zone", {1.5: 1}),
            "weights",
            "",
            "`weights` are something else; it must map keys to numbers, as '1/2'",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 0, "b": 0}),
            "weights",
            "",
            "`weights` are all 0; it must have one that is not",
        ),
        (
            lambda: WeightedSum("weight", "state", {"home": 1}).by_key(TABLE),
            "weights by state",
            "",
            "`weights by state` are not by a public column; it must be one of zone, floor",
        ),
        (
            lambda: WeightedSum("weight", "state", {"home": 1}).by_key(NONE_PUBLIC),
            "weights by state",
            "",
            "`weights by state` are not by a public column; it must be left out: no column is "
            "public",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1, "d": 2}).by_key(TABLE),
            "weights",
            "",
            "`weights` name 'd'; it must name keys of zone once each. Weights: 'a', 'd'; zone: "
            "'a', 'b', 'c'",
        ),
        (
            lambda: WeightedSum("weight", "floor", {1: 1, "1": 2}).by_key(TABLE),
            "weights",
            "",
            "`weights` name '1' twice; it must name keys of floor once each. Weights: 1, '1'; "
            "floor: 1, 2",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1}).by_key(
                replace(TABLE, public=(Category("zone", None, "refuse"),))
            ),
            "weights by zone",
            "",
            "`weights by zone` are by a column whose keys are read from the data; it must be by a"
            " column whose values the declaration lists",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1}).rows_read(TABLE, {"zone": ("b", "c")}),
            "where, zone",
            "",
            "`where, zone` keeps only keys whose weight is 0; it must keep one that has another "
            "weight",
        ),
        (
            lambda: declared_sums(
                {"x": WeightedSum("weight", "zone", {"a": 1})}, TABLE, ("state", "mood")
            ),
            "linear, x",
            "",
            "`linear, x` adds up 'weight'; it must add up a column of the session: state, mood",
        ),
        (
            lambda: declared_sums({"x": WeightedSum("state", "zone", {"a": 1})}, TABLE, ("state",)),
            "state",
            "labels",
            "`state` holds labels, and linear is about numbers; it must be asked for by "
            "histogram, proportions, count, counts or top_k, or linear of weight",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", ("zone",), rows(), "x", "zone", (("a", Fraction(1)),)
            ).check(TABLE),
            "by, zone",
            "",
            "`by, zone` has the weights of the query; it must be left out: each of its keys has "
            "one weight; ask for a sum by it",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", (), rows(), "x", "zone", (("a", Fraction(1)), ("b", Fraction(10**12)))
            ).check(TABLE),
            "weights",
            "",
            "the weights of x are whole multiples of 1 and reach 1,000,000,000,000 of them; at "
            "most 10^12 are possible: give weights with fewer digits",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", (), rows(), "x", "zone", (("a", Fraction(1)), ("b", Fraction(10**18)))
            ).choose(ENGINE, Aim()),
            "weights",
            "",
            "x may add up to 5.6e+19 units, and 2^62 are possible; give weights with fewer "
            "digits, or a larger step",
        ),
        (
            lambda: rows_of(TABLE, (3, 3), None),
            "window",
            "",
            "`window` ends before it begins; it must be (start, end)",
        ),
        (
            lambda: rows_of(TABLE, (None, "x"), None),
            "window, end",
            "",
            "`window, end` is not a whole number; it must be one, as the order is",
        ),
        (
            lambda: rows_of(TABLE, (True, None), None),
            "window, start",
            "",
            "`window, start` is not a whole number; it must be one, as the order is",
        ),
        (
            lambda: rows_of(TABLE, None, {"state": ("home",)}),
            "where, state",
            "",
            "`where, state` is not a public column; it must be one of zone, floor; rows may not "
            "be chosen by what is protected",
        ),
        (
            lambda: rows_of(TABLE, None, {"step": (1,)}),
            "where, step",
            "order",
            "`where, step` is the order; it must be left out: everyone may know the order "
            "already: --window A..B reads a part of it and a schedule each part in turn; to count"
            " by its values, copy the column in the table under another name and make the copy "
            "public",
        ),
        (
            lambda: rows_of(NONE_PUBLIC, None, {"zone": ("a",)}),
            "where, zone",
            "",
            "`where, zone` is not a public column; it must be left out: no column is public; rows"
            " may not be chosen by what is protected",
        ),
        (
            lambda: rows_of(TABLE, None, {"zone": tuple(range(101)), "floor": tuple(range(100))}),
            "where",
            "",
            "`where` names more than 10,000 groups; leave a column out of it and use `by`, which "
            "costs the same",
        ),
        (
            lambda: refuse_order("by", "step", TABLE),
            "by",
            "order",
            "`by` is the order; it must be left out: everyone may know the order already: "
            "--window A..B reads a part of it and a schedule each part in turn; to count by its "
            "values, copy the column in the table under another name and make the copy public",
        ),
        (
            lambda: _placed("2024-03-31T02:30", DAYS, "window, start"),
            "window, start",
            "",
            "`window, start` is 2024-03-31 02:30:00 in Europe/Berlin, when clocks change: that "
            "hour is skipped or happens twice; it must be before or after that hour",
        ),
        (
            lambda: _placed("2024-10-27T02:30", DAYS, "window, start"),
            "window, start",
            "",
            "`window, start` is 2024-10-27 02:30:00 in Europe/Berlin, when clocks change: that "
            "hour is skipped or happens twice; it must be before or after that hour",
        ),
        (
            lambda: _placed("soon", DAYS, "window, start"),
            "window, start",
            "",
            "`window, start` is 'soon'; it must be a day or a time, as '2012-04-03T18:00'",
        ),
        (
            lambda: _placed(3, DAYS, "window, start"),
            "window, start",
            "",
            "`window, start` is a number; it must be a day or a time, as '2012-04-03T18:00'",
        ),
        (
            lambda: _placed(
                3, replace(TABLE, order=type(TABLE.order).none()).order, "window, start"
            ),
            "window, start",
            "no order",
            "`window, start` is given, and the table has no order; it must be left out",
        ),
        (
            lambda: _refuse_types(3, None, "", False, None),
            "table",
            "",
            "table is a int; it must be a table: `tf.table(…)` makes one",
        ),
        (
            lambda: _refuse_types(ENGINE, None, "", False, None),
            "table",
            "",
            "table is a PlainEngine; it must be a table: `tf.table(…)` makes one",
        ),
        (
            lambda: raised(
                BudgetConflict("ward", (Fraction(1), Fraction(0)), (Fraction(2), Fraction(1, 8)))
            ),
            "",
            "",
            "dataset 'ward' has a budget of epsilon = 2 at delta = 0.125 and epsilon = 1 was "
            "given; leave `budget` out to use what is there, or have the owner change it: "
            "ledger.set_budget('ward', …)",
        ),
        (
            lambda: raised(
                BudgetConflict(
                    "ward", (Fraction(100001, 100000), Fraction(0)), (Fraction(1), Fraction(0))
                )
            ),
            "",
            "",
            "dataset 'ward' has a budget of exactly (1, 0) and exactly (100001/100000, 0) was "
            "given; leave `budget` out to use what is there, or have the owner change it: "
            "ledger.set_budget('ward', …)",
        ),
        (
            lambda: ReleasableRows(start=3).refuse_fitted(2, TABLE),
            "window",
            "fitted-rows",
            "the window begins before 3, in rows that the prior was fitted on; begin there, or "
            "have the owner allow it: release_fitted_rows = true",
        ),
        (
            lambda: ReleasableRows(start=3).refuse_fitted(None, TABLE),
            "window",
            "fitted-rows",
            "the window begins before 3, in rows that the prior was fitted on; begin there, or "
            "have the owner allow it: release_fitted_rows = true",
        ),
    ],
)
def test_a_refusal_says_what_is_given_and_what_is_needed(
    refused: Callable[[], object], field: str, reason: str, text: str
) -> None:
    with raises(TakifuguError, field=field, reason=reason) as caught:
        refused()
    assert str(caught.value) == text
