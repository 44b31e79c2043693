"""What is refused of priors, entries and queries: the kind of error, its field and its reason."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from takifugu.binding.number_states import refuse_other_numbers
from takifugu.binding.prior_reading import (
    protected_column,
    refuse_about,
    refuse_missing_states,
    refuse_other_columns,
    refuse_values,
)
from takifugu.declarations import Category
from takifugu.errors import TakifuguError
from takifugu.priors import (
    AR1,
    Gaussian,
    MarkovChain,
    Product,
)
from takifugu.session import Entries
from takifugu.session.cells import refuse_order, rows_of
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.query import Aim
from takifugu.session.query.sums import WeightedSum, WeightedSumQuery, declared_sums
from takifugu.session.release_errors import BudgetConflict
from tests.raising import raises
from tests.session.plain_engine import ENGINE, WEIGHT, rows
from tests.session.refused_worlds import (
    CHAIN,
    FREE,
    HOUSE,
    LETTERS,
    NETS,
    NONE_PUBLIC,
    STATES,
    TABLE,
    read,
)
from tests.session.tables import CHAIN as JOINT
from tests.session.tables import NETWORK

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(
    ("refused", "field", "reason"),
    [
        (
            lambda: Entries("rows"),  # type: ignore[arg-type]
            "over",
            "",
        ),
        (
            lambda: Entries("sequence", positions="abc"),  # type: ignore[arg-type]
            "positions",
            "",
        ),
        (
            lambda: Entries("sequence", positions=3),  # type: ignore[arg-type]
            "positions",
            "",
        ),
        (
            lambda: Entries("row", positions=("a",)),
            "positions",
            "",
        ),
        (
            lambda: Entries("row", household="zone"),
            "household",
            "",
        ),
        (
            lambda: Entries("row", member="zone"),
            "member",
            "",
        ),
        (
            lambda: Entries("household", household=3),  # type: ignore[arg-type]
            "household",
            "",
        ),
        (
            lambda: Entries("household", household="zone", member=3),  # type: ignore[arg-type]
            "member",
            "",
        ),
        (
            lambda: Entries("household"),
            "household",
            "missing",
        ),
        (
            lambda: read(CHAIN, {"other": "sequence"}),
            "over",
            "",
        ),
        (
            lambda: read(CHAIN, 3),
            "over",
            "",
        ),
        (
            lambda: read(NETS),
            "prior",
            "over-missing",
        ),
        (
            lambda: read(NETS, where=" (in the policy)"),
            "prior",
            "over-missing",
        ),
        (
            lambda: read(JOINT),
            "prior",
            "over-missing",
        ),
        (
            lambda: read(JOINT, where=" (in the policy)"),
            "prior",
            "over-missing",
        ),
        (
            lambda: read(JOINT, "row"),
            "prior",
            "over",
        ),
        (
            lambda: read(JOINT, Entries("sequence", positions=("a",))),
            "prior",
            "over",
        ),
        (
            lambda: read(CHAIN, "row"),
            "prior",
            "over",
        ),
        (
            lambda: read(CHAIN, HOUSE),
            "prior",
            "over",
        ),
        (
            lambda: read(CHAIN, "entities"),
            "prior",
            "over",
        ),
        (
            lambda: read(Gaussian(AR1(0.5)), "entities"),
            "prior",
            "over",
        ),
        (
            lambda: read(Product({"Ann": CHAIN}), "sequence"),
            "prior",
            "over",
        ),
        (
            lambda: read(Product({"Ann": Product({"Bea": CHAIN})})),
            "prior, Ann",
            "nested-product",
        ),
        (
            lambda: read(Product({"Ann": JOINT})),
            "prior, Ann",
            "joint-part",
        ),
        (
            lambda: read(Product({"Ann": NETS})),
            "prior, Ann",
            "no-positions",
        ),
        (
            lambda: read(NETS, HOUSE),
            "prior",
            "over",
        ),
        (
            lambda: read(NETS, "sequence"),
            "prior",
            "no-positions",
        ),
        (
            lambda: read(
                replace(NETS, entries=LETTERS[:2], parents=((), ("n0",))),
                Entries("sequence", positions=("n0", "n2")),
            ),
            "prior",
            "positions-differ",
        ),
        (
            lambda: read(
                replace(NETS, entries=LETTERS[:2], parents=((), ("n0",))),
                Entries("sequence", positions=("n0", "n0", "n1")),
            ),
            "prior",
            "positions-differ",
        ),
        (
            lambda: read({"a": JOINT, "b": CHAIN}, {"a": "sequence"}),
            "over",
            "mixed",
        ),
        (
            lambda: read({"a": NETWORK, "b": FREE}, {"a": "row", "b": "entities"}),
            "over",
            "mixed",
        ),
        (
            lambda: read({"a": NETWORK, "b": JOINT}, {"a": "row", "b": HOUSE}),
            "over",
            "mixed",
        ),
        (
            lambda: read({"a": NETWORK, "b": FREE}, {"a": "row", "b": "entities × sequence"}),
            "over",
            "mixed",
        ),
        (
            lambda: refuse_other_columns("prior", NETWORK, TABLE),
            "prior",
            "columns-differ",
        ),
        (
            lambda: refuse_other_columns(
                "prior", replace(NETWORK, entries=("zone", "mood"), parents=((), ("zone",))), TABLE
            ),
            "prior",
            "columns-differ",
        ),
        (
            lambda: refuse_values("prior", TABLE.protected[0], ("home", "ward")),
            "prior",
            "states-differ",
        ),
        (
            lambda: refuse_values("prior", Category("state", (1, 2), "refuse"), ("1", "2")),
            "prior",
            "types-differ",
        ),
        (
            lambda: refuse_values("prior", Category("state", STATES, "drop"), STATES),
            "prior",
            "states-differ",
        ),
        (
            lambda: refuse_missing_states(
                "prior",
                MarkovChain(
                    np.full((3, 3), 1 / 3),
                    states=(("a", "x"), ("a", "y"), ("b", "x")),
                    columns=("p", "q"),
                ),
            ),
            "prior",
            "joint-states",
        ),
        (
            lambda: refuse_missing_states(
                "prior",
                MarkovChain(
                    np.full((3, 3), 1 / 3),
                    states=(("a", "x"), ("b", "y"), ("c", "z")),
                    columns=("p", "q"),
                ),
            ),
            "prior",
            "joint-states",
        ),
        (
            lambda: protected_column(TABLE, None),
            "about",
            "",
        ),
        (
            lambda: protected_column(TABLE, "zone"),
            "about",
            "",
        ),
        (
            lambda: refuse_about("state", TABLE),
            "about",
            "several-columns",
        ),
        (
            lambda: refuse_other_numbers("prior", ("[0, 1)", "[1, 2]"), WEIGHT),
            "prior",
            "other-bounds",
        ),
        (
            lambda: refuse_other_numbers("prior", ("0", "1"), WEIGHT),
            "prior",
            "no-numbers",
        ),
        (
            lambda: refuse_other_numbers("prior", (0, 1), WEIGHT),
            "prior",
            "no-numbers",
        ),
        (
            lambda: refuse_other_numbers(
                "prior", ("[-1, 2)", "[2, 4]"), replace(WEIGHT, missing="drop")
            ),
            "prior",
            "missing",
        ),
        (
            lambda: refuse_other_numbers(
                "prior", ("[-1, 2)", "[2, 4]"), replace(WEIGHT, missing="drop"), numbered=True
            ),
            "prior",
            "missing",
        ),
        (
            lambda: declared_sums({"x": 3}, TABLE, ("weight",)),  # type: ignore[dict-item]
            "linear, x",
            "",
        ),
    ],
)
def test_a_refusal_of_a_prior_names_its_field(
    refused: Callable[[], object], field: str, reason: str
) -> None:
    with raises(TakifuguError, field=field, reason=reason):
        refused()


def raised(error: Exception) -> None:
    """Raise it."""
    raise error


@pytest.mark.parametrize(
    ("refused", "field", "reason"),
    [
        (
            lambda: WeightedSum("", "zone", {"a": 1}),
            "column",
            "",
        ),
        (
            lambda: WeightedSum("weight", 3, {"a": 1}),  # type: ignore[arg-type]
            "by",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {}),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": True}),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {1.5: 1}),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 0, "b": 0}),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "state", {"home": 1}).by_key(TABLE),
            "weights by state",
            "",
        ),
        (
            lambda: WeightedSum("weight", "state", {"home": 1}).by_key(NONE_PUBLIC),
            "weights by state",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1, "d": 2}).by_key(TABLE),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "floor", {1: 1, "1": 2}).by_key(TABLE),
            "weights",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1}).by_key(
                replace(TABLE, public=(Category("zone", None, "refuse"),))
            ),
            "weights by zone",
            "",
        ),
        (
            lambda: WeightedSum("weight", "zone", {"a": 1}).rows_read(TABLE, {"zone": ("b", "c")}),
            "where, zone",
            "",
        ),
        (
            lambda: declared_sums(
                {"x": WeightedSum("weight", "zone", {"a": 1})}, TABLE, ("state", "mood")
            ),
            "linear, x",
            "",
        ),
        (
            lambda: declared_sums({"x": WeightedSum("state", "zone", {"a": 1})}, TABLE, ("state",)),
            "state",
            "labels",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", ("zone",), rows(), "x", "zone", (("a", Fraction(1)),)
            ).check(TABLE),
            "by, zone",
            "",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", (), rows(), "x", "zone", (("a", Fraction(1)), ("b", Fraction(10**12)))
            ).check(TABLE),
            "weights",
            "",
        ),
        (
            lambda: WeightedSumQuery(
                "weight", (), rows(), "x", "zone", (("a", Fraction(1)), ("b", Fraction(10**18)))
            ).choose(ENGINE, Aim()),
            "weights",
            "",
        ),
        (
            lambda: rows_of(TABLE, (3, 3), None),
            "window",
            "",
        ),
        (
            lambda: rows_of(TABLE, (None, "x"), None),
            "window, end",
            "",
        ),
        (
            lambda: rows_of(TABLE, (True, None), None),
            "window, start",
            "",
        ),
        (
            lambda: rows_of(TABLE, None, {"state": ("home",)}),
            "where, state",
            "",
        ),
        (
            lambda: rows_of(TABLE, None, {"step": (1,)}),
            "where, step",
            "order",
        ),
        (
            lambda: rows_of(NONE_PUBLIC, None, {"zone": ("a",)}),
            "where, zone",
            "",
        ),
        (
            lambda: rows_of(TABLE, None, {"zone": tuple(range(101)), "floor": tuple(range(100))}),
            "where",
            "",
        ),
        (
            lambda: refuse_order("by", "step", TABLE),
            "by",
            "order",
        ),
        (
            lambda: raised(
                BudgetConflict("ward", (Fraction(1), Fraction(0)), (Fraction(2), Fraction(1, 8)))
            ),
            "",
            "",
        ),
        (
            lambda: raised(
                BudgetConflict(
                    "ward", (Fraction(100001, 100000), Fraction(0)), (Fraction(1), Fraction(0))
                )
            ),
            "",
            "",
        ),
        (
            lambda: ReleasableRows(start=3).refuse_fitted(2, TABLE),
            "window",
            "fitted-rows",
        ),
        (
            lambda: ReleasableRows(start=3).refuse_fitted(None, TABLE),
            "window",
            "fitted-rows",
        ),
    ],
)
def test_a_refusal_of_a_query_names_its_field(
    refused: Callable[[], object], field: str, reason: str
) -> None:
    with raises(TakifuguError, field=field, reason=reason):
        refused()
