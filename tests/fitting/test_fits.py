"""Fits of every kind against counting by hand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import InvalidQuery
from takifugu.drafting import Table, table
from takifugu.errors import InvalidPrior, Malformed, TooLarge
from takifugu.fitting import FitOptions, fit_prior
from takifugu.fitting.fit_options import KINDS
from takifugu.priors import (
    BayesianNetwork,
    HigherOrderChain,
    IntervalMarkovChain,
    MarkovChain,
    TimeOfDayChain,
)
from takifugu.priors.documents import from_document
from takifugu.tables import Engine
from tests.raising import raises

LABELS = {"a": ("a0", "a1", "a2"), "b": ("b0", "b1"), "c": ("c0", "c1", "never")}


def rows(size: int = 400) -> dict[str, list[Any]]:
    """Ten people; b depends on a, and c on b."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, size)
    b = np.where(rng.random(size) < 0.8, a % 2, rng.integers(0, 2, size))
    c = np.where(rng.random(size) < 0.7, b, rng.integers(0, 2, size))
    return {
        "who": [f"p{i % 10}" for i in range(size)],
        "at": [i // 10 for i in range(size)],
        "a": [f"a{i}" for i in a],
        "b": [f"b{i}" for i in b],
        "c": [f"c{i}" for i in c],
        "kwh": [float(x) for x in (rng.random(size) * 2).round(2)],
    }


def declared(data: dict[str, list[Any]] | None = None, **protected: Any) -> Table:
    import pyarrow as pa

    amount = {"bounds": [0, 2], "step": 0.25, "missing": "refuse"}
    return table(
        pa.table(rows() if data is None else data),
        name="made",
        entity="who",
        order="at",
        order_kind="number",
        protected=protected or {**LABELS, "kwh": amount},
    )


def people(*columns: str, first: int = 10**9) -> list[list[Any]]:
    data = rows()
    found: dict[str, list[Any]] = {}
    for i, who in enumerate(data["who"]):
        if data["at"][i] < first:
            state = tuple(data[c][i] for c in columns)
            found.setdefault(who, []).append(state if len(columns) > 1 else state[0])
    return list(found.values())


@pytest.fixture
def engine() -> Any:
    with declared().open() as opened:
        yield opened


def test_a_joint_chain_is_that_of_pairs_of_values(engine: Engine) -> None:
    found = fit_prior(engine, (), FitOptions(columns=("b", "a"), first_days=20, tau=0))
    chain = found.prior
    assert isinstance(chain, MarkovChain) and chain.columns == ("b", "a")
    assert chain.states == tuple(product(LABELS["b"], LABELS["a"]))
    steps = Counter((x, y) for path in people("b", "a", first=20) for x, y in pairwise(path))
    for i, x in enumerate(chain.states):
        left = sum(count for (begin, _), count in steps.items() if begin == x)
        for j, y in enumerate(chain.states):
            assert chain.transition[i, j] == pytest.approx(steps[x, y] / left)
    assert found.estimate.counted == sum(steps.values()) and found.remaining == 200
    assert from_document(chain.to_document()) == chain
    assert chain.fitted_on == (found.rows,) and found.rows.before == 20


def test_a_chain_of_higher_order_is_that_of_windows(engine: Engine) -> None:
    found = fit_prior(engine, ("b",), FitOptions(kind="higher-order", order=3, first_days=30))
    expected = HigherOrderChain.fit(people("b", first=30), order=3, states=LABELS["b"])
    assert found.prior == replace(expected, start="unknown")
    assert fit_prior(engine, ("b",), FitOptions(kind="higher-order")).prior.facts()["order"] == 2
    with raises(InvalidPrior, field="order"):
        fit_prior(engine, ("b",), FitOptions(kind="higher-order", order=1))
    with raises(TooLarge):
        fit_prior(engine, ("a",), FitOptions(kind="higher-order", order=9))
    with raises(InvalidQuery, field="columns"):
        fit_prior(engine, ("a", "b"), FitOptions(kind="higher-order"))


def test_a_chain_over_ranges_has_the_cuts_in_its_names(engine: Engine) -> None:
    cuts = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2))
    found = fit_prior(engine, ("kwh",), FitOptions(cuts=cuts, tau=0))
    chain = found.prior
    assert isinstance(chain, MarkovChain)
    assert chain.states == ("[0, 0.5)", "[0.5, 1)", "[1, 2]")

    def place(number: float) -> int:
        rounded = np.floor(number / 0.25 + 0.5) * 0.25
        return int(rounded >= 0.5) + int(rounded >= 1)

    paths = [[place(number) for number in path] for path in people("kwh")]
    steps = Counter((x, y) for path in paths for x, y in pairwise(path))
    for x, y in product(range(3), range(3)):
        left = sum(count for (begin, _), count in steps.items() if begin == x)
        assert chain.transition[x, y] == pytest.approx(steps[x, y] / left)
    between = fit_prior(engine, ("kwh",), FitOptions(kind="interval", cuts=cuts)).prior
    assert isinstance(between, IntervalMarkovChain) and between.states == chain.states
    with raises(InvalidQuery, field="cuts", reason="numbers"):
        fit_prior(engine, ("kwh",), FitOptions())


def test_a_tree_has_the_smoothed_tables_of_its_edges(engine: Engine) -> None:
    found = fit_prior(engine, (), FitOptions(kind="network", first_days=30, smoothing=0.5))
    network = found.prior
    assert isinstance(network, BayesianNetwork) and found.estimate.over == "row"
    assert network.entries == ("a", "b", "c")
    assert network.parents == ((), ("a",), ("b",))
    data = rows()
    kept = [i for i, at in enumerate(data["at"]) if at < 30]
    for column, above, found_table in zip(
        network.entries, network.parents, network.tables, strict=True
    ):
        labels = LABELS[str(column)]
        for place in product(*(range(len(LABELS[str(p)])) for p in above)):
            rows_of = [
                i
                for i in kept
                if all(
                    data[str(p)][i] == LABELS[str(p)][k] for p, k in zip(above, place, strict=True)
                )
            ]
            for j, label in enumerate(labels):
                many = sum(data[str(column)][i] == label for i in rows_of)
                smoothed = (many + 0.5) / (len(rows_of) + 0.5 * len(labels))
                assert found_table[(*place, j)] == pytest.approx(smoothed)
    assert found.estimate.counted == 300
    assert "rests on 300 rows" in found.statement and "b given a" in found.statement
    assert any("never" in note for note in found.estimate.notes)
    assert from_document(network.to_document()) == network
    assert network.fitted_on == (found.rows,)


def test_a_given_structure_is_kept(engine: Engine) -> None:
    structure = {"a": ("c", "b"), "b": ("c",), "c": ()}
    options = FitOptions(kind="network", structure=structure)
    found = fit_prior(engine, (), options)
    network = found.prior
    assert isinstance(network, BayesianNetwork)
    assert any("2 of 6 for a" in note for note in found.estimate.notes)  # c is never "never"
    assert dict(zip(network.entries, network.parents, strict=True)) == structure
    data = rows()
    pairs = [i for i in range(400) if data["c"][i] == "c1" and data["b"][i] == "b0"]
    many = sum(data["a"][i] == "a2" for i in pairs)
    law = network.tables[network.entries.index("a")]
    assert law[1, 0, 2] == pytest.approx((many + 1) / (len(pairs) + 3))


def test_networks_refuse_by_name_what_they_cannot_be_about(engine: Engine) -> None:
    cycle = {"a": ("b",), "b": ("a",), "c": ()}
    with raises(InvalidPrior, field="structure", reason="cycle"):
        fit_prior(engine, (), FitOptions(kind="network", structure=cycle))
    with raises(InvalidPrior, field="structure", reason="names-differ"):
        fit_prior(engine, ("a", "b"), FitOptions(kind="network", structure={"a": ("c",)}))
    with raises(InvalidQuery, field="columns", reason="numbers"):
        fit_prior(engine, ("a", "kwh"), FitOptions(kind="network"))
    with raises(InvalidQuery, field="columns"):
        fit_prior(engine, ("a", "who"), FitOptions(kind="network"))
    with raises(InvalidQuery, field="smoothing", reason="unseen"):
        fit_prior(
            engine,
            ("a", "c"),
            FitOptions(kind="network", structure={"a": ("c",), "c": ()}, smoothing=0),
        )
    for alpha in (-1.0, float("nan"), float("inf")):
        with raises(InvalidQuery, field="smoothing"):
            fit_prior(engine, (), FitOptions(kind="network", smoothing=alpha))
    with raises(InvalidQuery, field="split"):
        fit_prior(engine, (), FitOptions(kind="network", first_days=1000))


def test_columns_that_no_network_can_have_are_refused() -> None:
    wide: dict[str, Any] = {"a": LABELS["a"], "b": ["b0", "b1", *(f"x{i}" for i in range(5000))]}
    with declared(**wide).open() as engine, raises(TooLarge, size=5002):
        fit_prior(engine, (), FitOptions(kind="network"))
    dropping = {"values": LABELS["a"], "outside": "drop"}
    with (
        declared(a=dropping, b=LABELS["b"]).open() as engine,
        raises(InvalidQuery, field="a", reason="drops"),
    ):
        fit_prior(engine, (), FitOptions(kind="network"))
    one = rows() | {"b": ["b0"] * 400}
    with (
        declared(one, a=LABELS["a"], b=["b0"]).open() as engine,
        raises(InvalidQuery, field="b", reason="one-value"),
    ):
        fit_prior(engine, (), FitOptions(kind="network"))
    none = {column: values[:0] for column, values in rows().items()}
    import pyarrow as pa

    empty = pa.table(none, schema=pa.table(rows()).schema)
    made = table(
        empty, name="empty", entity="who", order="at", order_kind="number", protected=LABELS
    )
    with made.open() as engine:
        with raises(InvalidQuery, field="rows", reason="no-rows"):
            fit_prior(engine, (), FitOptions(kind="network"))
        with raises(InvalidQuery, field="rows", reason="no-steps"):
            fit_prior(engine, ("a",), FitOptions())


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "network", "tau": 0.1},
        {"kind": "network", "length": 5},
        {"kind": "markov", "order": 2},
        {"kind": "interval", "tau": 0.1},
        {"kind": "higher-order", "smoothing": 1.0},
        {"kind": "markov", "confidence": 0.9},
        {"order": 2},
    ],
)
def test_options_of_other_kinds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Malformed) as refused:
        FitOptions(**options)
    assert refused.value.field in options


def test_kinds_are_named_in_errors_and_exist() -> None:
    with raises(InvalidQuery, field="kind") as refused:
        FitOptions(kind="markow")
    assert all(kind in refused.value.needed for kind in KINDS)


def test_hardly_seen_states_are_listed(engine: Engine) -> None:
    found = fit_prior(engine, ("c",), FitOptions(first_days=20))
    assert any("'never' (0)" in note for note in found.estimate.notes)
    assert found.estimate.facts["exits"]["never"] == 0
    assert "190 steps" in found.statement


def hourly(people: Sequence[tuple[str, int, int]]) -> Table:
    """Rows of people who each begin at an hour of their own, one row an hour."""
    import pyarrow as pa

    rng = np.random.default_rng(9)
    found: dict[str, list[Any]] = {"who": [], "at": [], "state": []}
    for who, first, many in people:
        for i in range(many):
            at = datetime(2024, 3, 1, first) + timedelta(hours=i)
            awake = rng.random() < (0.9 if 7 <= at.hour < 22 else 0.1)
            found["who"].append(who)
            found["at"].append(at)
            found["state"].append("awake" if awake else "asleep")
    labels = ["awake", "asleep"]
    return table(pa.table(found), name="h", entity="who", order="at", protected={"state": labels})


def test_a_chain_by_hour_has_a_matrix_for_each_hour() -> None:
    made = hourly([("a", 3, 200), ("b", 20, 150)])
    with made.open() as engine:
        found = fit_prior(engine, (), FitOptions(by_hour=True, first_days=4, tau=0))
    chain = found.prior
    assert isinstance(chain, TimeOfDayChain) and chain.length == 200 and chain.hours == 24
    frame = made._frame.to_pydict()  # type: ignore[union-attr]
    steps = Counter[tuple[int, str, str]]()
    rows_of = list(zip(frame["who"], frame["at"], frame["state"], strict=True))
    for (who, at, x), (again, _, y) in pairwise(rows_of):
        if who == again and at + timedelta(hours=1) < datetime(2024, 3, 5):
            steps[at.hour, x, y] += 1
    assert found.estimate.counted == sum(steps.values())
    for hour, (i, x), (j, y) in product(
        range(24), enumerate(chain.states), enumerate(chain.states)
    ):
        left = sum(steps[hour, str(x), z] for z in ("awake", "asleep"))
        every = sum(steps[h, str(x), z] for h in range(24) for z in ("awake", "asleep"))
        alike = sum(steps[h, str(x), str(y)] for h in range(24))
        expected = steps[hour, str(x), str(y)] / left if left else alike / every
        assert chain.transition[hour, i, j] == pytest.approx(expected)
    assert found.estimate.facts["steps_by_hour"] == [
        sum(many for (h, *_), many in steps.items() if h == hour) for hour in range(24)
    ]
    assert "begin at any hour" in found.statement
    assert from_document(chain.to_document()) == chain


def test_a_chain_by_hour_is_about_one_column_of_hourly_rows() -> None:
    with declared().open() as engine, raises(InvalidQuery, field="by hour"):
        fit_prior(engine, ("a",), FitOptions(by_hour=True))
    with hourly([("a", 3, 60)]).open() as engine:
        with raises(InvalidQuery, field="by hour", reason="not-of-this-kind"):
            fit_prior(engine, (), FitOptions(by_hour=True, kind="interval"))
        longer = fit_prior(engine, (), FitOptions(by_hour=True, length=1000, first_days=1))
        assert longer.prior.size == 1000
        assert any("stand in" in note for note in longer.estimate.notes)


def test_a_network_says_that_rows_are_not_independent() -> None:
    sticky = rows() | {"a": [f"a{i // 10 % 40 // 14}" for i in range(400)]}
    for data, dependent in ((rows(), False), (sticky, True)):
        with declared(data, a=LABELS["a"], b=LABELS["b"]).open() as engine:
            notes = fit_prior(engine, (), FitOptions(kind="network")).estimate.notes
        assert any("not independent" in note for note in notes) == dependent


def leaving(columns: Sequence[str], data: dict[str, list[Any]], first: int) -> dict[str, int]:
    """How many people left each state, by going through the rows of each in turn."""
    mine: dict[str, list[tuple[int, str]]] = {}
    for i, who in enumerate(data["who"]):
        if data["at"][i] < first:
            state = "|".join(str(data[column][i]) for column in columns)
            mine.setdefault(who, []).append((data["at"][i], state))
    left: dict[str, set[str]] = {}
    for who, path in mine.items():
        for _, state in sorted(path)[:-1]:
            left.setdefault(state, set()).add(who)
    return {state: len(those) for state, those in left.items()}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["markov", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_states_that_few_people_left_are_told(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rows(120)
    size = len(data["who"])
    data["a"] = [f"a{i}" for i in rng.choice(3, size, p=[0.93, 0.05, 0.02])]
    for columns in [("a",)] if kind == "interval" else [("a",), ("a", "b")]:
        with declared(data).open() as engine:
            options = FitOptions(kind=kind, columns=columns, first_days=9)
            found = fit_prior(engine, (), options, sized=True)
            unsized = fit_prior(engine, (), options)
        truth = {s: n for s, n in leaving(columns, data, 9).items() if n < 5}
        text = {str(state) for state, _ in found.estimate.few or ()}
        assert len(text) == len(truth) > 0
        assert sorted(n for _, n in found.estimate.few or ()) == sorted(truth.values())
        if len(columns) == 1:
            assert dict(found.estimate.few or ()) == truth
        assert found.evidence.few == found.estimate.few
        assert found.evidence.document()["few_people"] == dict(found.estimate.few or ())
        assert f"{len(truth)} state" in found.evidence.words
        assert unsized.estimate.few is None and "rest" not in unsized.evidence.few_words


def test_people_count_once_for_values_that_count_as_one_and_whoever_only_ends_there_not() -> None:
    data: dict[str, list[Any]] = {
        "who": ["p", "p", "p", "q", "q", "r", "r"],
        "at": [0, 1, 2, 0, 1, 0, 1],
        "a": ["x", "y", None, "a0", "x", "a0", "a0"],
    }
    with declared(data, a={"values": ("a0", "other"), "outside": "other"}).open() as engine:
        found = fit_prior(engine, ("a",), FitOptions(), sized=True)
    assert dict(found.estimate.few or ()) == {"other": 1, "a0": 2}  # p left it by x and by y


def test_people_who_left_a_range_of_numbers_are_counted() -> None:
    data = rows(60)
    data["kwh"] = [0.25] * 60
    data["kwh"][3], data["kwh"][14] = 1.75, 1.0
    cuts = (Fraction(0), Fraction(1, 2), Fraction(3, 2), Fraction(2))
    with declared(data).open() as engine:
        found = fit_prior(engine, ("kwh",), FitOptions(cuts=cuts), sized=True)
    few = dict(found.estimate.few or ())
    assert sorted(few.values()) == [1, 1] and len(few) == 2
