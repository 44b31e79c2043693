"""Plans and results through JSON text and back: the same values, words and prices."""

import copy
import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takifugu.declarations import Order
from takifugu.documents.reading import InvalidDocument, as_json
from takifugu.errors import UnsoundRequest
from takifugu.ledger.charge_values import Charge
from takifugu.mechanisms import IntegerLaplace
from takifugu.session import Plan, Result, Session, StalePlan, WeightedSum
from takifugu.session.plan_documents import (
    ON_THE_SERVER,
    DescribedMechanism,
    digest,
    on_a_server,
    plan_from_document,
    plan_to_document,
    public_form,
)
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import AnalystCost, ReleaseCost
from takifugu.session.release_plan import UnpricedPlan
from takifugu.session.release_result import result_from_document
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.tables import NETWORK, opened_table
from tests.session.world import PLAIN, ROWS, WEIGHT, opened

LOAD = WeightedSum("weight", "zone", {"a": "1/3", "b": -2})
SESSIONS = ("labels", "numbers", "joint", "mine", "scarce")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Session]]:
    """Sessions on labels, numbers and joint columns, of an analyst, and with little budget."""
    with ExitStack() as stack:

        def folder(name: str) -> Path:
            return tmp_path_factory.mktemp(name)

        labels, *_ = stack.enter_context(opened(folder("labels"), budget=1000, delta="1e-5"))
        numbers, *_ = stack.enter_context(
            opened(
                folder("numbers"),
                budget=1000,
                delta="1e-5",
                translation=PLAIN,
                protected=(WEIGHT,),
                how={"linear": {"load": LOAD}},
            )
        )
        joint, _ = stack.enter_context(opened_table(folder("joint"), NETWORK, "row", budget=1000))
        mine, ledger, _ = stack.enter_context(opened(folder("mine"), how={"analyst": "ana"}))
        ledger.set_budget("visits", "1/2", analyst="ana")
        scarce, *_ = stack.enter_context(opened(folder("scarce"), budget="1/7"))
        yield dict(zip(SESSIONS, (labels, numbers, joint, mine, scarce), strict=True))


OF_LABELS: dict[str, dict[str, Any]] = {
    "histogram": {"sum_to_one": True},
    "count": {"values": "ward"},
    "counts": {"values": ["home", "ward"]},
    "top_k": {"k": 1, "gap": 3.5},
    "proportions": {},
    "transitions": {},
}
OF_NUMBERS: dict[str, dict[str, Any]] = {
    "sum": {},
    "mean": {},
    "quantile": {"level": "1/3"},
    "linear": {"query": "load"},
}
OF_SEVERAL: dict[str, dict[str, Any]] = {
    "histogram": {"column": ["place", "health"]},
    "marginals": {},
    "top_k": {"k": 2, "column": ("place", "health")},
}


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A session by its name, and options of a query that it can answer."""
    where = draw(st.sampled_from(SESSIONS))
    kinds = {"numbers": OF_NUMBERS, "joint": OF_SEVERAL}.get(where, OF_LABELS)
    kind = draw(st.sampled_from(sorted(kinds)))
    options: dict[str, Any] = {"kind": kind, **kinds[kind]}
    if kind == "top_k" and draw(st.booleans()):
        options.pop("gap", None)
    if kind not in ("linear", "transitions") and draw(st.booleans()):
        options["by"] = "zone"
    if draw(st.booleans()):
        options["window"] = draw(st.sampled_from([(0, 3), (1, None), (None, 2), [0, 4]]))
    if kind != "transitions" and draw(st.booleans()):
        options["where"] = {"zone": ["a"]}
    epsilons = st.sampled_from(
        [1, 0.1, "0.3", Fraction(1, 3), Decimal("0.25"), "1/7", 7.3, Fraction(1, 977)]
    )
    if kind == "top_k" or draw(st.booleans()):
        options["epsilon"] = draw(epsilons)
    else:
        options["within"] = draw(st.sampled_from([50, "200", Fraction(400, 3), 1000.5]))
        if kind == "quantile" or draw(st.booleans()):
            options["confidence"] = draw(st.sampled_from([0.5, 0.9, 0.99]))
    if where in ("labels", "numbers") and draw(st.booleans()):
        options["delta"] = draw(st.sampled_from(["1e-6", 1e-7, Fraction(1, 10**6)]))
    return where, options


def planned(session: Session, options: dict[str, Any]) -> Plan | None:
    try:
        return session.plan(QueryOptions(**options))
    except (UnsoundRequest, ValueError):  # what cannot be priced or has no rows: not our matter
        return None


def through_text(document: Any) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


def rebuilt(plan: Plan) -> Plan:
    return plan_from_document(through_text(plan_to_document(plan)), plan.options)


def assert_same(plan: Plan, again: Plan) -> None:
    """Equal part by part, and in every word."""
    expected = public_form(plan)
    for part in fields(Plan):
        assert getattr(again, part.name) == getattr(expected, part.name), part.name
    assert type(again) is Plan and again == expected and expected == again
    assert type(again.query) is type(plan.query)
    assert str(again) == str(plan) and again._repr_html_() == plan._repr_html_()
    assert again.price == plan.price and again.needs_confirmation == plan.needs_confirmation
    assert again.saving(again.cost) == plan.saving(plan.cost)
    assert again.mechanism.loss == plan.mechanism.loss and again.charge.loss == plan.charge.loss
    described, expected_words = again.describe(), plan.describe()
    del described["cells"], expected_words["cells"]
    assert as_json(described) == as_json(expected_words)
    assert plan_to_document(again) == plan_to_document(plan)


@pytest.mark.nightly
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=asked())
def test_a_plan_comes_back_as_it_was(
    sessions: dict[str, Session], asked: tuple[str, dict[str, Any]]
) -> None:
    plan = planned(sessions[asked[0]], asked[1])
    if plan is not None:
        assert_same(plan, rebuilt(plan))


@pytest.mark.nightly
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=asked())
def test_a_result_comes_back_as_it_was(
    sessions: dict[str, Session], asked: tuple[str, dict[str, Any]]
) -> None:
    session = sessions[asked[0]]
    forget_rows()
    plan = planned(session, asked[1])
    if plan is None or not plan.cost.fits:
        return
    first = session.release(plan, accept_noise=True)
    for result in (first, session.release(plan, accept_noise=True)):
        again = result_from_document(through_text(result.document()))
        for part in fields(Result):
            assert getattr(again, part.name) == getattr(result, part.name), part.name
        assert again == result and str(again) == str(result)
        assert again.to_json() == result.to_json() and again.facts() == result.facts()
        assert again._repr_html_() == result._repr_html_()
        assert type(again.rows[0]) is tuple
    assert rebuilt(session.plan(plan.options)).stored


def test_every_kind_is_asked_for() -> None:
    assert {*OF_LABELS, *OF_NUMBERS, *OF_SEVERAL} == set(KINDS)


def test_plans_that_are_over_budget_come_back_with_what_would_fit(
    sessions: dict[str, Session], tmp_path: Path
) -> None:
    forget_rows()
    with opened(tmp_path, budget="1/7") as (scarce, *_):  # of which no example has spent anything
        plan = scarce.plan.histogram(within=3)
        assert not plan.cost.fits and plan.instead is not None
        again = rebuilt(plan)
        assert_same(plan, again)
        assert again.instead == plan.instead and again.cost.most == plan.cost.most
        assert_same(over := scarce.plan.count("ward", epsilon=5), rebuilt(over))
    mine = sessions["mine"]
    assert_same(own := mine.plan.histogram(epsilon=2), rebuilt(own))
    assert own.cost.own is not None and not own.cost.fits


def test_days_and_zones_of_a_window_come_back_as_instants(tmp_path: Path) -> None:
    rows = [
        (who, f"2021-03-0{day}T10:00:00", zone, state, 0.5)
        for who, zone in (("Ann", "a"), ("Bea", "b"))
        for day, state in enumerate(("home", "ward", "ward", "home"), start=1)
    ]
    order = Order("step", "time", zone="Europe/Berlin")
    with opened(tmp_path, budget=100, rows=rows, order=order) as (session, *_):
        plan = session.plan.histogram(window=(date(2021, 3, 2), "2021-03-04T12:00"), epsilon=5)
        assert_same(plan, rebuilt(plan))
        as_text = plan_from_document(through_text(plan_to_document(plan)))
        assert as_text.options.window == ("2021-03-02", "2021-03-04T12:00")
        assert replace(as_text, options=plan.options) == public_form(plan)


def test_infinite_prices_are_written_and_read(sessions: dict[str, Session]) -> None:
    plan = sessions["joint"].plan.histogram("health", epsilon=1)
    assert plan.cost.by_value is not None
    cost = replace(plan.cost, alone=float("inf"), before=float("inf"), after=None, fits=False)
    cost = replace(cost, without_values=float("inf"), by_column={"weight": float("inf")})
    accuracy = replace(plan.usefulness.accuracy, half_width=float("inf"))
    odd = replace(plan, cost=cost, usefulness=replace(plan.usefulness, accuracy=accuracy))
    assert_same(odd, rebuilt(odd))
    spent = replace(plan.cost, before=float("inf"), after=float("inf"))  # of a stored answer
    stored = replace(plan, stored=True, cost=spent)
    assert_same(stored, rebuilt(stored))
    result = sessions["joint"].release(plan, accept_noise=True)
    saving = result.saving and replace(result.saving, alone_without_values=float("inf"))
    odd_result = replace(result, cost=replace(spent, without_values=float("inf")), saving=saving)
    assert result_from_document(json.loads(odd_result.to_json())) == odd_result


@pytest.mark.parametrize("path", ["after", "without_values", "own, after"])
def test_a_price_that_is_missing_is_not_taken_for_an_infinite_one(
    sessions: dict[str, Session], path: str
) -> None:
    priced = sessions["joint"].plan.histogram("health", epsilon=1).cost
    own = AnalystCost("Ann", priced.budget, priced.before, priced.after)
    document = through_text(replace(priced, own=own).describe())
    *above, key = path.split(", ")
    part = document
    for name in above:
        part = part[name]
    del part[key]
    with raises(InvalidDocument, field=f"cost, {path}"):
        ReleaseCost.from_document(document)


def test_nothing_that_is_the_owners_leaves(sessions: dict[str, Session]) -> None:
    for name, options in (("labels", {"kind": "histogram"}), ("numbers", {"kind": "sum"})):
        plan = planned(sessions[name], {**options, "epsilon": 1})
        assert plan is not None and not on_a_server(plan)
        text = json.dumps(plan_to_document(plan))
        charge = plan.charge
        kept = (charge.data, charge.cells.fingerprint, charge.declared, charge.key, "visits.csv")
        assert all(kept) and not [mark for mark in kept if mark in text]
        assert on_a_server(rebuilt(plan)) and rebuilt(plan).charge.data == ON_THE_SERVER + digest(
            plan
        )


def test_a_plan_of_a_server_is_stale_here(sessions: dict[str, Session]) -> None:
    session = sessions["labels"]
    plan = session.plan.histogram(epsilon="0.61")
    before = session.spent()
    with raises(StalePlan, differences=("charge",)):
        session.release(rebuilt(plan), accept_noise=True)
    assert session.spent() == before
    forged = replace(rebuilt(plan).charge, data=plan.charge.data)  # what a guesser could do
    with raises(StalePlan, differences=("charge",)):
        session.release(replace(rebuilt(plan), charge=forged), accept_noise=True)


def test_a_digest_names_what_would_be_released_and_not_its_price(
    sessions: dict[str, Session],
) -> None:
    session = sessions["labels"]
    plan = session.plan.histogram(epsilon="0.62")
    before = digest(plan)
    assert (
        before
        == digest(rebuilt(plan))
        == digest(public_form(plan))
        == digest(public_form(rebuilt(plan)))
    )
    session.release(plan, accept_noise=True)
    again = session.plan.histogram(epsilon="0.62")
    assert digest(again) == before and again.stored and again != plan
    assert digest(session.plan.histogram(epsilon=Fraction(31, 50))) == before
    others = [
        session.plan.histogram(epsilon="0.63"),
        session.plan.histogram(epsilon="0.62", window=(0, 4)),
        session.plan.proportions(epsilon="0.62"),
        session.plan.histogram(epsilon="0.62", sum_to_one=True),
    ]
    assert len({before, *map(digest, others)}) == 5


def test_a_free_plan_does_not_tell_that_protected_cells_are_what_they_were(tmp_path: Path) -> None:
    """Data that come back to earlier contents are a new state: nothing of it is free or known."""
    *most, (who, step, _, *rest) = ROWS
    edited = [*most, (who, step, "a" if ROWS[-1][2] != "a" else "b", *rest)]
    seen = []
    for rows in (ROWS, ROWS, edited, ROWS):
        (tmp_path / "visits.csv").unlink(missing_ok=True)
        with opened(tmp_path, rows=rows) as (session, ledger, _):
            plan = session.plan.histogram(epsilon="0.5")
            seen.append((digest(plan), plan.stored))
            if not ledger.events(kind="charge", limit=1):
                session.release(plan, accept_noise=True)
            states = [event.body["number"] for event in ledger.events(kind="state", limit=9)]
    (first, _), again, *others = seen
    assert again == (first, True)  # nothing changed
    assert len({first, *(known for known, _ in others)}) == 3
    assert not any(stored for _, stored in others) and states == [1, 2, 3]


def test_keys_may_be_asked_for_as_text(sessions: dict[str, Session]) -> None:
    plan = sessions["labels"].plan.histogram(window=(0, 3), epsilon=1)
    asked = replace(plan.options, window=("0", "3"))
    assert plan_from_document(plan_to_document(plan), asked).options == plan.options


def test_a_described_mechanism_says_all_and_does_nothing() -> None:
    noise = IntegerLaplace(4.0)
    described = DescribedMechanism(through_text(noise.describe()))
    assert described == noise and noise == described
    assert described.loss == noise.loss and described.error() == noise.error()
    assert described != IntegerLaplace(5.0) and described != "noise" and described != IntegerLaplace
    with raises(UnsoundRequest, reason="on-a-server"):
        described.release([1])
    with raises(UnsoundRequest, reason="on-a-server"):
        described.simulate([1], 1, rng=None)
    with pytest.raises(TypeError):
        hash(described)


def test_the_plan_of_another_query_is_refused(sessions: dict[str, Session]) -> None:
    document = plan_to_document(sessions["labels"].plan.histogram(epsilon=1))
    with raises(InvalidDocument, field="options", reason="options"):
        plan_from_document(document, QueryOptions("histogram", epsilon=2))
    with raises(InvalidDocument, field="form", reason="form"):
        plan_from_document({**document, "form": "takifugu-plan-9"})


def test_a_new_part_of_a_plan_or_a_charge_is_written_too() -> None:
    """A part that is added later must be put into documents, or be named here as left out."""
    unpriced = {part.name for part in fields(UnpricedPlan)}
    assert unpriced == {
        *("options", "query", "mechanism", "error", "reason", "delta", "unit", "otherwise"),
        *("charge", "reads"),
    }
    left = {
        "data",
        "cells",
        "declared",
        "rules",
        "sources",
        "elsewhere",
        "key",
    }  # the owner's, or new
    made = {"query", "mechanism", "window", "groups"}  # from the query and the mechanism
    sent = {"dataset", "analyst", "loss", "prior", "secrets", "translation"}
    assert {part.name for part in fields(Charge)} - {"approval", "request", "resumable"} == {
        *left,
        *made,
        *sent,
    }


# --- hostile documents ---

HOSTILE: list[Any] = [
    None, True, 7, -1, 10**400, 1e308, "", "x", "1/0", "1e999999999", "9" * 5000, "nan", "inf",
    [], [[]], [None], [["1", ["any"]]], [["1", ["matrix", ["a"] * 3, []]]], {}, {"x": 1},
    {"a": {"b": []}}, "\ud800", [[[[[]]]]], {"currency": "pure"}, {"currency": "metric"},
]  # fmt: skip


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document."""
    parts: Any = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        parts = enumerate(document[:2])
    for key, value in parts:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any, *, remove: bool = False) -> Any:
    found = copy.deepcopy(document)
    at = found
    for key in path[:-1]:
        at = at[key]
    if remove:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


class Sample:
    """A document, what reads it, and where its values are; not printed, it is long."""

    def __init__(self, read: Any, document: Any) -> None:
        self.read, self.document, self.paths = read, document, list(places(document))


@pytest.fixture(scope="module")
def documents(sessions: dict[str, Session]) -> list[Sample]:
    """Documents of plans and results."""
    found: list[Sample] = []
    kinds: tuple[tuple[str, Any], ...] = (
        ("labels", "histogram"),
        ("numbers", "linear"),
        ("joint", "marginals"),
        ("labels", "top_k"),
        ("numbers", "quantile"),
    )
    for which, kind in kinds:
        own = {**OF_LABELS, **OF_NUMBERS, **OF_SEVERAL}[kind] if kind != "histogram" else {}
        own = {"k": 2, "gap": 3.0} if kind == "top_k" else own
        session = sessions[which]
        plan = session.plan(QueryOptions(kind, **own, window=(0, 4), epsilon="0.21"))
        released = session.release(plan, accept_noise=True)
        for read, document in (
            (plan_from_document, through_text(plan_to_document(plan))),
            (result_from_document, through_text(released.document())),
        ):
            found.append(Sample(read, document))
    return found


@pytest.mark.costly
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    which=st.integers(0, 9),
    place=st.integers(0, 10**4),
    value=st.integers(0, len(HOSTILE) - 1),
    remove=st.booleans(),
)
def test_a_hostile_document_is_read_or_refused_by_name(
    documents: list[Sample], which: int, place: int, value: int, remove: bool
) -> None:
    sample = documents[which]
    read, path = sample.read, sample.paths[place % len(sample.paths)]
    bad = changed(sample.document, path, HOSTILE[value], remove=remove)
    with suppress(InvalidDocument):  # any other error is a failure
        found = read(bad)  # a text in place of another, for one
        assert str(found) and found == read(bad)


@pytest.mark.parametrize("read", [plan_from_document, result_from_document])
@pytest.mark.parametrize("value", [None, [], "plan", 3, {}, {"form": 1}, {1: 2}])
def test_what_is_no_document_is_refused(read: Any, value: Any) -> None:
    with pytest.raises(InvalidDocument):
        read(value)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("cost", "per_entry"), 0.5, "cost, per_entry"),
        (("cost", "per_entry"), "9" * 5000, "cost, per_entry"),
        (("cost", "most"), "1/3", "cost, most"),
        (("cost", "fits"), "yes", "cost, fits"),
        (("made", "query", "kind"), "sql", "made, query, kind"),
        (("made", "loss"), {"currency": "gold"}, "made, loss"),
        (("made", "unit"), [["-1", ["any"]]], "made, unit"),
        (("made", "query", "rows", "where"), {"a": []}, "made, query, rows"),
        (("mechanism",), {"kind": "x"}, "mechanism, loss"),
        (("usefulness", "verdict"), "grand", "usefulness, verdict"),
        (("usefulness", "range"), [1, 2, 3], "usefulness, range"),
        (("rows_read",), None, "rows_read"),
        (("notes",), [1], "notes, 0"),
        (("error", "deviation"), [["x"]], "error, deviation, 0"),
        (("analyst",), "", "analyst"),
        (("digest",), "0" * 63, "digest"),
        (("digest",), "x" * 64, "digest"),
    ],
)
def test_the_key_at_fault_is_named(
    sessions: dict[str, Session], path: tuple[str, ...], value: Any, field: str
) -> None:
    document = through_text(plan_to_document(sessions["labels"].plan.histogram(epsilon=1)))
    with raises(InvalidDocument, field=field):
        plan_from_document(changed(document, path, value))


def test_many_groups_in_a_document_are_not_multiplied_out(sessions: dict[str, Session]) -> None:
    document = through_text(plan_to_document(sessions["labels"].plan.histogram(epsilon=1)))
    where = {f"c{k}": list(range(1000)) for k in range(30)}
    with raises(InvalidDocument, field="made, query, rows, where"):
        plan_from_document(changed(document, ("made", "query", "rows", "where"), where))
