"""Priors over several columns that are not about the table: refused, with both lists."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Amount, Category
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Explicit,
    Gaussian,
    IndependentEntries,
    MarkovChain,
    MarkovRandomField,
    Product,
    Secrets,
    Tables,
)
from takifugu.session import Entries
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from takifugu.translation.translation import Translation
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.tables import CHAIN, HEALTH, JOINT, NETWORK, PLACES, PROTECTED, opened_table

HALF = np.array((0.5, 0.5))
EVEN: dict[str | int, float] = {"home": 0.5, "out": 0.5}
WELL: dict[str | int, float] = {"well": 0.5, "ill": 0.5}


def over_nodes(*nodes: Any, states: Any = None) -> BayesianNetwork:
    """Independent nodes, with the labels of the columns by default."""
    known = {"place": PLACES, "health": HEALTH, "zone": ("a", "b")}
    return BayesianNetwork(
        entries=nodes,
        states=states or tuple(known.get(node, HEALTH) for node in nodes),
        parents=((),) * len(nodes),
        tables=(HALF,) * len(nodes),
    )


def chain(columns: Any = ("place", "health"), states: Any = JOINT, **how: Any) -> MarkovChain:
    size = len(states)
    return MarkovChain(
        np.full((size, size), 1 / size), states=states, columns=columns, **({"length": 4} | how)
    )


PLAIN = MarkovChain(np.full((2, 2), 0.5), states=PLACES, length=4)
ROW: list[tuple[Any, dict[str, Any]]] = [
    (over_nodes("place"), {"reason": "columns-differ", "given": (), "needed": ("health",)}),
    (
        over_nodes("place", "health", "mood"),
        {"reason": "columns-differ", "given": ("mood",), "needed": ()},
    ),
    (
        over_nodes("place", "health", "zone"),
        {"reason": "columns-differ", "given": ("zone",), "needed": ()},
    ),
    (
        over_nodes("Place", "health"),
        {"reason": "columns-differ", "given": ("Place",), "needed": ("place",)},
    ),
    (over_nodes(0, 1), {"reason": "columns-differ", "given": (0, 1)}),
    (
        over_nodes("place", "health", states=(PLACES, ("well", "sick"))),
        {"reason": "states-differ", "given": ("well", "sick"), "needed": HEALTH},
    ),
    (over_nodes("place", "health", states=((0, 1), HEALTH)), {"reason": "states-differ"}),
    (
        IndependentEntries({"place": EVEN, "health": WELL | {"ill": 0.25, "dead": 0.25}}),
        {"reason": "states-differ"},
    ),
    (PLAIN, {"reason": "over"}),
    (CHAIN, {"reason": "over"}),
    (Gaussian(AR1(0.5)), {"reason": "over"}),
    (Product({"ann": PLAIN, "bob": PLAIN, "cid": PLAIN}), {"reason": "over"}),
]


@pytest.mark.parametrize(("prior", "fields"), ROW)
def test_a_network_must_be_over_the_columns(
    tmp_path: Path, prior: Any, fields: dict[str, Any]
) -> None:
    with (
        raises(UnsoundRequest, field="prior", **fields) as caught,
        opened_table(tmp_path, prior, "row"),
    ):
        pass
    assert "\n" not in str(caught.value)
    if fields["reason"] == "columns-differ":
        assert "protected columns: 'place', 'health'" in str(caught.value)


@pytest.mark.nightly
def test_whole_numbers_are_no_text(tmp_path: Path) -> None:
    protected = (Category("place", (1, 2), "refuse"), PROTECTED[1])
    rows = [("ann", 0, "a", 1, "well"), ("bob", 0, "a", 2, "ill")]
    table: dict[str, Any] = {"protected": protected, "rows": rows}
    text = over_nodes("place", "health", states=(("1", "2"), HEALTH))
    with (
        raises(UnsoundRequest, reason="types-differ", given=("1", "2"), needed=(1, 2)),
        opened_table(tmp_path, text, "row", **table),
    ):
        pass
    whole = over_nodes("place", "health", states=((1, 2), HEALTH))
    with opened_table(tmp_path, whole, "row", **table) as (session, _):
        assert session.plan.count([1], "place", epsilon=1).cost.fits


SEQUENCE: list[tuple[Any, Any, dict[str, Any]]] = [
    (chain(), None, {"field": "prior", "reason": "over-missing"}),
    (chain(), "entities", {"field": "prior", "reason": "over"}),
    (chain(), "entities x sequence", {"field": "prior", "reason": "over"}),
    (chain(), Entries("sequence", (0, 1, 2, 3)), {"field": "prior", "reason": "over"}),
    (chain(("health", "place")), "sequence", {"field": "prior", "reason": "states-differ"}),
    (
        chain(("place", "zone")),
        "sequence",
        {"reason": "columns-differ", "given": ("zone",), "needed": ("health",)},
    ),
    (
        chain(("place",), (("home",), ("out",))),
        "sequence",
        {"reason": "columns-differ", "given": (), "needed": ("health",)},
    ),
    (chain(states=JOINT[:3]), "sequence", {"reason": "joint-states", "given": 3, "needed": 4}),
    (chain(length=3), "sequence", {"reason": "too-short", "given": 3, "needed": 4}),
    (
        {"one": chain(), "two": over_nodes("place", "health")},
        {"one": "sequence", "two": "row"},
        {"field": "over", "reason": "mixed"},
    ),
    (
        {"one": chain(), "two": PLAIN},
        {"one": "sequence", "two": "sequence"},
        {"field": "over", "reason": "mixed"},
    ),
    (
        {"one": over_nodes("place", "health"), "two": over_nodes("ann", "bob", "cid")},
        {"one": "row", "two": "entities"},
        {"field": "over", "reason": "mixed"},
    ),
    (
        Product({"ann": chain(), "bob": PLAIN, "cid": PLAIN}),
        None,
        {"field": "prior, ann", "reason": "joint-part"},
    ),
]


@pytest.mark.parametrize(("prior", "over", "fields"), SEQUENCE)
def test_a_chain_of_joint_states_must_be_over_the_columns(
    tmp_path: Path, prior: Any, over: Any, fields: dict[str, Any]
) -> None:
    how = {} if isinstance(prior, MarkovChain | dict) else {"about": "place"}
    with raises(UnsoundRequest, **fields) as caught, opened_table(tmp_path, prior, over, how=how):
        pass
    assert "\n" not in str(caught.value)


SECRETS: list[tuple[Any, Any, str]] = [
    ("row", {"mood": Secrets()}, "secrets"),
    ("row", {"health": Secrets(entries=("health",))}, "entries"),
    ("row", {"health": Secrets(within=1)}, "within"),
    ("row", Secrets(pairs=((("ill",), ("well",)),)), "pairs"),
    ("sequence", Secrets(pairs=((("ill",), ("well",)),)), "pairs"),
    ("sequence", {"health": Secrets(within=1)}, "within"),
]


@pytest.mark.parametrize(("over", "secrets", "field"), SECRETS)
def test_secrets_are_given_by_column(tmp_path: Path, over: str, secrets: Any, field: str) -> None:
    prior = NETWORK if over == "row" else CHAIN
    with (
        raises(UnsoundRequest, field=field),
        opened_table(tmp_path, prior, over, how={"secrets": secrets}),
    ):
        pass


def test_a_secret_is_about_values_of_its_column(tmp_path: Path) -> None:
    secrets = {"health": Secrets(pairs=((("home",), ("well",)),))}
    with (
        raises(InvalidWorld, field="secrets"),
        opened_table(tmp_path, NETWORK, "row", how={"secrets": secrets}),
    ):
        pass


def test_a_translation_must_be_read_as_it_was_made(tmp_path: Path) -> None:
    for given, over, fields in (
        (
            Translation(NETWORK, Secrets(entries=("place",))),
            "row",
            {"field": "secrets", "reason": "by-column"},
        ),
        (
            ColumnsOfRow({"prior": NETWORK}, {"place": Secrets()}),
            "row",
            {"field": "over", "reason": "over"},
        ),
        (
            ColumnsOfRow({"prior": NETWORK}, {"place": Secrets(), "health": Secrets()}),
            "entities",
            {"field": "about"},
        ),
    ):
        with raises(UnsoundRequest, **fields), opened_table(tmp_path, given, over):
            pass


@pytest.mark.nightly
def test_every_family_of_labels_may_be_over_the_columns(tmp_path: Path) -> None:
    universe = Tables.of(
        {"place": PLACES, "health": HEALTH}, records={"place": "row", "health": "row"}
    )
    field = MarkovRandomField(
        entries=("place", "health"),
        states=(PLACES, HEALTH),
        unary=(HALF, HALF),
        edges=(("place", "health"),),
        weights=(np.array(((2.0, 1.0), (1.0, 2.0))),),
    )
    for k, prior in enumerate(
        (
            IndependentEntries({"place": EVEN, "health": WELL}),
            field,
            Explicit(universe, np.array((0.4, 0.1, 0.2, 0.3))),
        )
    ):
        folder = tmp_path / str(k)
        folder.mkdir()
        forget_rows()
        with opened_table(folder, prior, "row") as (session, _):
            plan = session.plan.histogram("place", epsilon=1)
            session.release(plan, accept_noise=True)
            session.release(session.plan.histogram("health", epsilon=1), accept_noise=True)
            independent = isinstance(prior, IndependentEntries)
            assert (session.spent() <= 1) == independent
            assert plan.cost.by_column is not None
            assert (plan.cost.by_column["health"] == 0) == independent


def test_two_people_of_a_table_are_no_row(tmp_path: Path) -> None:
    universe = Tables.of(
        {"place": PLACES, "health": HEALTH}, records={"place": "ann", "health": "bob"}
    )
    prior = Explicit(universe, np.array((0.4, 0.1, 0.2, 0.3)))
    with raises(UnsoundRequest, reason="records"), opened_table(tmp_path, prior, "row"):
        pass


def test_what_is_left_out_needs_a_state_of_its_own(tmp_path: Path) -> None:
    protected = (PROTECTED[0], Category("health", HEALTH, "drop"))
    with (
        raises(UnsoundRequest, reason="states-differ"),
        opened_table(tmp_path, NETWORK, "row", protected=protected),
    ):
        pass
    spare = BayesianNetwork(
        entries=("place", "health"),
        states=(PLACES, (*HEALTH, "unknown")),
        parents=((), ("place",)),
        tables=(HALF, np.array(((0.6, 0.3, 0.1), (0.3, 0.6, 0.1)))),
    )
    with opened_table(tmp_path, spare, "row", protected=protected) as (session, _):
        assert session.plan.count(["ill"], "health", epsilon=1).cost.fits


def test_numbers_of_a_row_are_numbers_or_ranges(tmp_path: Path) -> None:
    kwh = Amount("kwh", Fraction(0), Fraction(1), Fraction(1), "refuse")
    table: dict[str, Any] = {
        "protected": (PROTECTED[0], kwh), "rows": [("ann", 0, "home", 1)],
        "header": ("person", "step", "place", "kwh"), "public": (),
    }  # fmt: skip
    for states, reason in ((("low", "high"), "no-numbers"), (("[0, 1)", "[1, 2]"), "other-bounds")):
        prior = over_nodes("place", "kwh", states=(PLACES, states))
        with (
            raises(UnsoundRequest, field="prior", reason=reason),
            opened_table(tmp_path, prior, "row", **table),
        ):
            pass
    prior = over_nodes("place", "kwh", states=(PLACES, (0, 1)))
    with opened_table(tmp_path, prior, "row", **table) as (session, _):
        assert session.plan.sum("kwh", epsilon=1).cost.fits
