"""Queries in sessions of several columns, end to end: cross-tabulations, marginals, refusals.

At ε = 200 the noise is 0 but for a probability below 1e-9 in each test, so that answers can be
compared with plain counts.
"""

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import ANY, Column, Cost, Jointly
from takifugu.costs.losses import Concentrated, Metric
from takifugu.declarations import Amount, Category, InvalidQuery
from takifugu.errors import TooLarge
from takifugu.priors import AR1, BayesianNetwork, Gaussian, Secrets
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.session import Session, WeightedSum
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from tests.raising import raises
from tests.session.tables import CHAIN, HEALTH, NETWORK, PLACES, ROWS, opened_table

READINGS = [(NETWORK, "row"), (CHAIN, "sequence")]
SURE: dict[str, Any] = {"epsilon": 200}
KEPT = {"place": Secrets(), "health": Secrets()}


def numbers(result: Any) -> dict[tuple[Any, ...], int]:
    """The estimate of each combination of keys; the last three columns are the answer."""
    return {row[:-3]: row[-3] for row in result.rows}


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over"), READINGS)
def test_a_cross_tabulation_is_charged_for_its_columns_together(
    tmp_path: Path, prior: Any, over: str
) -> None:
    with opened_table(tmp_path, prior, over, budget=5000) as (session, _):
        plan = session.plan.histogram(("place", "health"), **SURE)
        loss = plan.charge.loss
        assert isinstance(loss, Metric)
        assert loss.cost == Cost.of({Jointly(("health", "place")): loss.epsilon})
        assert str(plan).startswith("histogram of place × health\n")
        assert plan.charge.query["column"] == ["place", "health"]
        result = session.release(plan, accept_noise=True)
        assert result.columns == ("place", "health", "estimate", "low", "high")
        truth = Counter((place, health) for *_, place, health in ROWS)
        assert numbers(result) == {key: truth[key] for key in product(PLACES, HEALTH)}
        assert session.plan.histogram(("health", "place"), **SURE).stored  # the same columns
        by_zone = session.release(
            session.plan.histogram(("place", "health"), by="zone", epsilon=200), accept_noise=True
        )
        each = Counter((zone, place, health) for _, _, zone, place, health in ROWS)
        assert numbers(by_zone) == {key: each[key] for key in product("ab", PLACES, HEALTH)}


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over"), READINGS)
def test_marginals_are_histograms_for_one_charge(tmp_path: Path, prior: Any, over: str) -> None:
    with opened_table(tmp_path, prior, over, budget=1000) as (session, _):
        plan = session.plan.marginals(by="zone", **SURE)
        loss = plan.charge.loss
        assert isinstance(loss, Metric)
        half = loss.epsilon / 2
        assert loss.cost == Cost.of({Column("place", ANY): half, Column("health", ANY): half})
        result = session.release(plan, accept_noise=True)
        assert result.columns == ("zone", "column", "label", "estimate", "low", "high")
        truth = Counter((zone, "place", place) for _, _, zone, place, _ in ROWS)
        truth += Counter((zone, "health", health) for _, _, zone, _, health in ROWS)
        keys = [("place", label) for label in PLACES] + [("health", label) for label in HEALTH]
        assert numbers(result) == {
            (zone, *key): truth[zone, *key] for zone, key in product("ab", keys)
        }
        alone = session.plan.marginals("health", epsilon=1).charge.loss
        histogram = session.plan.histogram("health", epsilon=1).charge.loss
        assert alone == histogram


def test_marginals_cost_what_histograms_with_the_same_noise_do(tmp_path: Path) -> None:
    """And in a row whose columns depend on each other less than their ε in sum."""
    with opened_table(tmp_path, NETWORK, "row") as (session, _):
        plan = session.plan.marginals(within=12)
        noise: Any = plan.mechanism
        each = 2 / Fraction(noise.scale)
        both = Cost.of({Column("place", ANY): each, Column("health", ANY): each})
        exact = ColumnsOfRow({"prior": NETWORK}, KEPT).cost_to_pufferfish(both)
        assert plan.cost.alone == pytest.approx(exact, rel=1e-6)
        assert each < plan.cost.alone < 2 * each
        separate = session.plan.histogram("place", within=12)
        other: Any = separate.mechanism
        assert other.scale == noise.scale


@pytest.mark.nightly
def test_shares_and_rankings_of_combinations(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row", budget=2000) as (session, _):
        shares = session.release(
            session.plan.proportions(("place", "health"), **SURE), accept_noise=True
        )
        truth = Counter((place, health) for *_, place, health in ROWS)
        for (place, health), share in numbers(shares).items():
            assert share == pytest.approx(truth[place, health] / len(ROWS))
        ranked = session.release(
            session.plan.top_k(4, ("place", "health"), **SURE), accept_noise=True
        )
        assert ranked.columns[:3] == ("rank", "place", "health")
        counts = [truth[place, health] for _, place, health, *_ in ranked.rows]
        assert ranked.column("estimate") == counts
        assert counts == sorted(truth.values(), reverse=True) + [0] * (4 - len(truth))
        assert [rank for rank, *_ in ranked.rows] == [1, 2, 3, 4]
        first = session.release(
            session.plan.top_k(1, ("place", "health"), by="zone", epsilon=200), accept_noise=True
        )
        for zone, _, place, health, *_ in first.rows:
            mine = Counter((p, h) for _, _, z, p, h in ROWS if z == zone)
            assert mine[place, health] == max(mine.values())


def test_a_delta_is_charged_for_the_row(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row", budget=3, delta="1e-6") as (session, _):
        for plan in (
            session.plan.histogram(("place", "health"), epsilon=1, delta="1e-6"),
            session.plan.marginals(epsilon=1, delta="1e-6"),
        ):
            assert isinstance(plan.charge.loss, Concentrated)
            assert plan.cost.alone <= 1
            session.release(plan, accept_noise=True)
        marginal: Any = session.plan.marginals(epsilon=1, delta="1e-6").mechanism
        table: Any = session.plan.histogram(("place", "health"), epsilon=1, delta="1e-6").mechanism
        assert marginal.scale / table.scale == pytest.approx(np.sqrt(2), rel=1e-3)


MIXED = (*(Category(c, v, "refuse") for c, v in (("place", PLACES), ("health", HEALTH))),)
LOAD = Amount("load", Fraction(0), Fraction(1), Fraction(1, 2), "refuse")
LOADED = BayesianNetwork(
    entries=("place", "load"),
    states=(PLACES, ("0", "1/2", "1")),
    parents=((), ("place",)),
    tables=(np.array((0.6, 0.4)), np.array(((0.7, 0.2, 0.1), (0.2, 0.3, 0.5)))),
)
OWN: dict[str, dict[str, Any]] = {"top_k": {"k": 1}, "quantile": {"level": "0.5"}}
LOADED_ROWS = tuple((*row[:4], (k * k) % 3 / 2) for k, row in enumerate(ROWS))
TABLE: dict[str, Any] = {
    "protected": (MIXED[0], LOAD),
    "rows": LOADED_ROWS,
    "header": ("person", "step", "zone", "place", "load"),
}


def test_numbers_beside_labels_are_charged_by_distance(tmp_path: Path) -> None:
    how = {"linear": {"shift": WeightedSum("load", "zone", {"a": 1, "b": "-1/2"})}}
    with opened_table(tmp_path, LOADED, "row", budget=2000, how=how, **TABLE) as (session, _):
        loads = [Fraction(row[4]) for row in LOADED_ROWS]
        total = session.release(session.plan.sum("load", **SURE), accept_noise=True)
        assert total.rows[0][0] == sum(loads)
        mean = session.release(session.plan.mean("load", **SURE), accept_noise=True)
        assert mean.rows[0][0] == pytest.approx(float(sum(loads)) / len(loads))
        for plan in (session.plan.sum("load", epsilon=1), session.plan.linear("shift", epsilon=1)):
            loss = plan.charge.loss
            assert isinstance(loss, Metric)
            ((shape, value),) = loss.cost.terms
            assert isinstance(shape, Column) and shape.column == "load"
            assert shape.shape != ANY and value == loss.epsilon
            assert plan.cost.alone <= 1
        shift = session.release(session.plan.linear("shift", **SURE), accept_noise=True)
        signs = {"a": Fraction(1), "b": Fraction(-1, 2)}
        assert shift.rows[0][0] == sum(
            signs[row[2]] * load for row, load in zip(LOADED_ROWS, loads, strict=True)
        )
        marginals = session.plan.marginals(epsilon=1)  # of the columns that hold labels
        assert marginals.query.columns == ("place",)
        for kind, column, reason in (
            ("histogram", "load", "numbers"),
            ("top_k", "load", "numbers"),
            ("marginals", ["place", "load"], "numbers"),
            ("proportions", ["load", "place"], "numbers"),
            ("transitions", "load", "numbers"),
            ("sum", "place", "labels"),
            ("mean", "place", "labels"),
            ("quantile", "place", "labels"),
        ):
            own = OWN.get(kind, {})
            with raises(InvalidQuery, reason=reason):
                getattr(session.plan, kind)(column=column, epsilon=1, **own)
        with raises(InvalidQuery, field="load", reason="numbers"):
            session.plan.counts(["0"], "load", epsilon=1)


def test_kinds_of_one_column_take_no_list_of_columns(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row") as (session, _):
        for kind, own in (
            ("count", {"values": ["home"]}),
            ("counts", {"values": ["home"]}),
            ("transitions", {}),
        ):
            with raises(InvalidQuery, field="column"):
                getattr(session.plan, kind)(column=["place", "health"], epsilon=1, **own)
        with raises(InvalidQuery, field="mood"):
            session.plan.histogram(["place", "mood"], epsilon=1)


@pytest.mark.nightly
def test_transitions_need_an_order_that_the_prior_speaks_of(tmp_path: Path) -> None:
    with (
        opened_table(tmp_path, NETWORK, "row") as (session, _),
        raises(InvalidQuery, field="kind", reason="no-order"),
    ):
        session.plan.transitions("place", epsilon=1)
    (tmp_path / "chain").mkdir()
    with opened_table(tmp_path / "chain", CHAIN, "sequence", budget=1000) as (session, _):
        plan = session.plan.transitions("place", epsilon=500)
        loss = plan.charge.loss
        assert isinstance(loss, Metric)
        assert loss.cost == Cost.of({Column("place", ANY): loss.epsilon})
        truth = Counter[tuple[Any, Any]]()
        for who in ("ann", "bob", "cid"):
            path = [place for person, _, _, place, _ in ROWS if person == who]
            truth += Counter(pairwise(path))
        assert numbers(session.release(plan, accept_noise=True)) == {
            key: truth[key] for key in product(PLACES, PLACES)
        }


ONE = tuple((who, 0, "a", place, "well") for who, place in (("ann", "home"), ("bob", "out")))


def one_column(prior: Any, over: Any, folder: Path, rows: Any = ONE) -> Any:
    return opened_table(folder, prior, over, protected=MIXED[:1], rows=rows, how={"about": "place"})


def test_people_with_one_row_each_have_no_transitions(tmp_path: Path) -> None:
    half: dict[str | int, float] = {"home": 0.5, "out": 0.5}
    people = IndependentEntries({"ann": half, "bob": half})
    with (
        one_column(people, "entities", tmp_path) as (session, _),
        raises(InvalidQuery, field="kind", reason="no-order"),
    ):
        session.plan.transitions(epsilon=1)


def test_people_with_a_sequence_each_have_transitions(tmp_path: Path) -> None:
    half: dict[str | int, float] = {"home": 0.5, "out": 0.5}
    people = Product(dict.fromkeys(("ann", "bob"), IndependentEntries({"0": half, "1": half})))
    rows = tuple((*row[:1], step, *row[2:]) for row in ONE for step in (0, 1))
    with one_column(people, None, tmp_path, rows) as (session, _):
        assert session.plan.transitions(epsilon=1).cost.fits


def test_an_unbounded_process_serves_what_goes_by_distance(tmp_path: Path) -> None:
    prior = Gaussian(AR1(0.8), mean=5, variance=100)
    how = {"secrets": Secrets(within=1), "linear": {"a": WeightedSum("load", "zone", {"a": 1})}}
    wide = Amount("load", Fraction(0), Fraction(10), Fraction(1, 2), "refuse")
    table: Any = {"protected": (wide,), "rows": LOADED_ROWS, "header": TABLE["header"]}
    with opened_table(tmp_path, prior, None, how=how, **table) as (session, _):
        for plan in (
            session.plan.sum(epsilon=1),
            session.plan.mean(epsilon=1),
            session.plan.linear("a", epsilon=1),
        ):
            assert plan.cost.alone <= 1
        with raises(InvalidQuery, field="kind", reason="no-finite-price"):
            session.plan.quantile("0.5", epsilon=1)
        with raises(InvalidQuery, field="load", reason="numbers"):
            session.plan.counts(["1"], epsilon=1)
        with raises(InvalidQuery, field="load", reason="numbers"):
            session.plan.histogram(epsilon=1)


def test_processes_of_single_people_serve_what_goes_by_distance(tmp_path: Path) -> None:
    people = Product(
        {who: Gaussian(AR1(0.8), mean=5, variance=100) for who in ("ann", "bob", "cid")}
    )
    wide = Amount("load", Fraction(0), Fraction(10), Fraction(1, 2), "refuse")
    table: Any = {"protected": (wide,), "rows": LOADED_ROWS, "header": TABLE["header"]}
    how = {"secrets": Secrets(within=1)}
    with opened_table(tmp_path, people, None, how=how, **table) as (session, _):
        assert session.plan.sum(epsilon=1).cost.alone <= 1
        with raises(InvalidQuery, field="kind", reason="no-finite-price"):
            session.plan.quantile("0.5", epsilon=1)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["label", "column", "estimate", "rank", "high"])
def test_columns_of_a_result_have_names_of_their_own(tmp_path: Path, name: str) -> None:
    table: Any = {
        "header": ("person", "step", name, "place", "health"),
        "public": (Category(name, ("a", "b"), "refuse"),),
    }
    with opened_table(tmp_path, NETWORK, "row", budget=20, **table) as (session, _):
        for plan in (
            session.plan.marginals(by=name, epsilon=1),
            session.plan.histogram(("place", "health"), by=name, epsilon=1),
            session.plan.top_k(2, ("place", "health"), by=name, epsilon=1),
        ):
            result = session.release(plan, accept_noise=True)
            assert len(set(result.columns)) == len(result.columns) == len(result.rows[0])
            assert result.columns[0] == name
            result.plot(tmp_path / f"{plan.query.kind}.png")


def test_a_linear_query_charges_the_rows_that_it_reads(tmp_path: Path) -> None:
    how = {
        "linear": {
            "day": WeightedSum("load", "zone", {"a": "1/2", "b": 0}),
            "all": WeightedSum("load", "zone", {"a": 1, "b": 1}),
        }
    }
    with opened_table(tmp_path, LOADED, "row", budget=1, how=how, **TABLE) as (session, ledger):
        plan = session.plan.linear("day", epsilon=1)
        groups = plan.charge.groups
        assert groups is not None and (groups.columns, tuple(groups.keys)) == (("zone",), (("a",),))
        every, total = session.plan.linear("all", epsilon=1), session.plan.sum("load", epsilon=1)
        assert every.charge.groups is None
        assert every.error == total.error  # the same query but for its name
        assert every.charge.loss == total.charge.loss
        session.release(plan, accept_noise=True)
        assert session.plan.sum("load", where={"zone": ["b"]}, epsilon=1).cost.fits
        assert not session.plan.sum("load", where={"zone": ["a"]}, epsilon=1).cost.fits
        (event,) = ledger.history(kind="charge")
        assert event.body["query"]["weights"] == [["a", "1/2"], ["b", "0"]]


@pytest.mark.parametrize(
    ("linear", "field"),
    [
        ({"x": WeightedSum("place", "zone", {"a": 1})}, "place"),
        ({"x": WeightedSum("mood", "zone", {"a": 1})}, "linear, x"),
        ({"x": WeightedSum("load", "zone", {"c": 1})}, "weights"),
        ({"x": WeightedSum("load", "person", {"c": 1})}, "weights by person"),
        ({"x": {"a": 1}}, "linear, x"),
    ],
)
def test_a_session_refuses_linear_queries_that_do_not_fit(
    tmp_path: Path, linear: Any, field: str
) -> None:
    with (
        raises(InvalidQuery, field=field),
        opened_table(tmp_path, LOADED, "row", how={"linear": linear}, **TABLE),
    ):
        pass


@pytest.mark.parametrize(
    "kind",
    ["histogram", "proportions", "top_k", "marginals", "linear", "count", "counts", "quantile"],
)
def test_what_cannot_be_counted_is_refused_before_it_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    numbered = kind in ("linear", "quantile")
    how = {"linear": {"x": WeightedSum("load", "zone", {"a": 1})}} if numbered else {}
    table = TABLE if numbered else {}
    prior = LOADED if numbered else NETWORK
    with opened_table(tmp_path, prior, "row", how=how, **table) as (session, ledger):
        own: dict[str, Any] = {"column": ("place", "health"), "by": "zone"}
        if kind in ("count", "counts"):
            own |= {"column": "place", "values": ["home"]}
        elif kind == "linear":
            own = {"query": "x"}
        elif kind == "quantile":
            own = {"column": "load", "by": "zone"}
        own |= OWN.get(kind, {})
        plan = getattr(session.plan, kind)
        cells = {"linear": 2, "count": 4, "counts": 4, "quantile": 6}.get(kind, 8)
        monkeypatch.setattr("takifugu.session.query.query.MOST_CELLS", cells)
        plan(**own, epsilon=1)
        monkeypatch.setattr("takifugu.session.query.query.MOST_CELLS", cells - 1)
        with raises(TooLarge, size=cells, limit=cells - 1):
            plan(**own, epsilon=1)
        if not numbered:
            with raises(TooLarge, size=cells):  # all keys of `by` are counted
                plan(**own, where={"zone": ["a"]}, epsilon=1)
        assert not list(ledger.history(kind="charge"))


@pytest.mark.nightly
def test_results_of_several_columns_are_drawn(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row", budget=20) as (session, _):
        for name, plan in (
            ("table", session.plan.histogram(("place", "health"), by="zone", epsilon=1)),
            ("all", session.plan.marginals(epsilon=1)),
            ("best", session.plan.top_k(2, ("place", "health"), epsilon=1)),
        ):
            result = session.release(plan, accept_noise=True)
            result.plot(tmp_path / f"{name}.png")
            assert (tmp_path / f"{name}.png").stat().st_size > 1000
            assert len(result.to_pandas()) == len(result.rows)


def test_a_session_of_one_column_is_as_before(tmp_path: Path) -> None:
    """The body of a query, and so what is stored and free, names one column as text."""
    half: dict[str | int, float] = {"home": 0.5, "out": 0.5}
    with one_column(IndependentEntries({"0": half}), None, tmp_path) as (session, _):
        assert isinstance(session, Session)
        plan = session.plan.histogram(epsilon=1)
        assert plan.charge.query == {"name": "histogram", "column": "place", "by": []}
        assert session.plan.marginals(epsilon=1).charge.loss == plan.charge.loss
