"""The options of a query: one value, checked once, the same in Python, in JSON and in a plan."""

import inspect
import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.declarations import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.session.planner import Planner
from takifugu.session.planner_stub import FILE, stub
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import KIND_OPTIONS, OPTIONS, QueryOptions
from tests.raising import raises
from tests.session.world import opened

OWN: dict[str, dict[str, Any]] = {
    "count": {"values": ["a"]},
    "counts": {"values": ["a", "b"]},
    "top_k": {"k": 2},
}
OWN["quantile"] = {"level": "0.5"}
OWN["linear"] = {"query": "evening"}


def test_every_kind_has_a_class_and_a_method() -> None:
    assert all(query_class(kind).kind == kind for kind in KINDS)
    assert {name for name in vars(Planner) if not name.startswith("_")} == set(KINDS)
    assert all(name in KINDS for option in OPTIONS.values() for name in option.kinds)


def test_type_checkers_read_the_methods_that_there_are() -> None:
    assert FILE.read_text(encoding="utf-8") == stub(), "python -m takifugu.session.planner_stub"


@pytest.mark.parametrize("kind", KINDS)
def test_a_planner_has_the_options_of_each_kind_and_no_others(kind: str) -> None:
    mine = KIND_OPTIONS[kind]
    signature = inspect.signature(getattr(Planner, kind))
    options = {*mine.required, *mine.optional, *mine.shared}
    assert set(signature.parameters) - {"self"} == options
    assert not options & set(KINDS[kind].without)
    required = {
        name
        for name, one in signature.parameters.items()
        if name != "self" and one.default is inspect.Parameter.empty
    }
    assert required == set(mine.required)
    made: Any = Planner(lambda given: given)  # type: ignore[arg-type, return-value]
    asked = getattr(made, kind)(**OWN.get(kind, {}), epsilon=1)
    assert asked == QueryOptions(kind, **OWN.get(kind, {}), epsilon=1)
    with pytest.raises(TypeError):
        getattr(made, kind)(**OWN.get(kind, {}), epsilon=1, sql="x")


numbers = st.one_of(
    st.integers(1, 9), st.floats(0.1, 9), st.just("0.25"), st.fractions(Fraction(1, 9), 9)
)
bounds = st.one_of(st.none(), st.integers(-9, 9), st.just("2012-04-03"))


@given(
    kind=st.sampled_from(list(KINDS)),
    by=st.one_of(st.just("zone"), st.lists(st.sampled_from(["zone", "floor"]))),
    window=st.one_of(st.none(), st.tuples(bounds, bounds)),
    where=st.dictionaries(st.text(), st.lists(st.one_of(st.text(), st.integers()), min_size=1)),
    epsilon=numbers,
    delta=st.one_of(st.none(), numbers),
)
def test_json_gives_the_same_options_back(kind: str, **given: Any) -> None:
    for name in KINDS[kind].without:
        given.pop(name, None)
    options = QueryOptions(kind, **OWN.get(kind, {}), **given)
    text = json.dumps(options.document(), allow_nan=False)
    again = QueryOptions.from_document(json.loads(text))
    assert again.document() == options.document()
    epsilon = again.epsilon
    assert Fraction(epsilon) == Fraction(given["epsilon"])  # type: ignore[arg-type]
    assert replace(again, epsilon=1, delta=None) == replace(options, epsilon=1, delta=None)


@pytest.mark.parametrize("epsilon", ["1e-320", 1e-320, 5e-324, "1e-16", "1e20", 1e300, "1e400"])
def test_an_epsilon_that_no_mechanism_or_no_ledger_can_hold_is_refused(epsilon: Any) -> None:
    with raises(InvalidQuery, field="epsilon"):
        QueryOptions("histogram", epsilon=epsilon)
    for fine in (Fraction(1, 2**50), "1e-15", 2**64):
        assert QueryOptions("histogram", epsilon=fine).epsilon == fine


def test_times_and_counts_are_written_as_json() -> None:
    options = QueryOptions(
        "top_k",
        k=2,
        window=(date(2012, 4, 3), datetime(2012, 5, 1, 12)),
        confidence=0.9,
        reference=np.array([[3, 2, 1]]),
    )
    assert options.document() == {
        "kind": "top_k",
        "window": ["2012-04-03", "2012-05-01T12:00:00"],
        "confidence": 0.9,
        "k": 2,
        "reference": [[3.0, 2.0, 1.0]],
    }


def test_one_column_is_written_as_before_and_several_as_a_list() -> None:
    one = QueryOptions("histogram", ["place"], epsilon=1)
    assert one == QueryOptions("histogram", "place", epsilon=1)
    assert one.document()["column"] == "place"
    several = QueryOptions("histogram", ["place", "health"], epsilon=1)
    assert several.column == ("place", "health")
    assert several.document()["column"] == ["place", "health"]
    assert QueryOptions.from_document(several.document()) == several


def test_what_is_given_is_copied() -> None:
    by, where, counts = ["zone"], {"zone": ["a"]}, np.array([2.0, 1.0])
    options = QueryOptions("top_k", k=1, by=by, where=where, reference=counts, epsilon=1)
    by.append("floor")
    where["zone"].append("b")
    counts[0] = 9
    assert (options.by, options.where, options.reference) == (
        ("zone",),
        {"zone": ("a",)},
        (2.0, 1.0),
    )


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("kind", {"kind": "median"}),
        ("column", {"column": 3}),
        ("column", {"column": []}),
        ("column", {"column": ["place", 3]}),
        ("column", {"column": ["place", "place"]}),
        ("column", {"kind": "linear", "query": "evening", "column": "load"}),
        ("query", {"kind": "linear"}),
        ("query", {"kind": "linear", "query": 3}),
        ("query", {"query": "evening"}),
        ("by", {"by": 3}),
        ("by", {"by": [3]}),
        ("window", {"window": 3}),
        ("window", {"window": [1, 2, 3]}),
        ("window", {"window": [True, None]}),
        ("window", {"window": [0.5, None]}),
        ("where", {"where": ["zone"]}),
        ("where, zone", {"where": {"zone": "a"}}),
        ("where, zone", {"where": {"zone": []}}),
        ("where, zone", {"where": {"zone": [True]}}),
        ("where, zone", {"where": {"zone": [1.0]}}),
        ("epsilon", {"epsilon": True}),
        ("confidence", {"confidence": "0.9"}),
        ("gap", {"kind": "top_k", "k": 1, "gap": "2"}),
        ("values", {"kind": "count", "values": {"a": 1}}),
        ("values", {"kind": "count", "values": [1.5]}),
        ("values", {"kind": "count"}),
        ("values", {"values": ["a"]}),
        ("k", {"kind": "top_k", "k": 1.5}),
        ("k", {"kind": "top_k", "k": True}),
        ("k", {"kind": "top_k"}),
        ("k", {"k": 1}),
        ("level", {"kind": "quantile"}),
        ("level", {"level": 0.5}),
        ("grid", {"grid": 1}),
        ("gap", {"gap": 1}),
        ("reference", {"reference": [1]}),
        ("reference", {"kind": "top_k", "k": 1, "reference": "high"}),
        ("reference", {"kind": "top_k", "k": 1, "reference": 3}),
        ("within", {"kind": "top_k", "k": 1, "within": 3}),
        ("x", {"x": 1}),
        ("confidence", {"confidence": 0.9, "chance": 0.9}),
    ],
)
def test_an_option_without_meaning_is_named(field: str, given: dict[str, Any]) -> None:
    document = {"kind": "histogram", "epsilon": 1} | given
    with raises(InvalidQuery, field=field):
        QueryOptions.from_document(document)


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": "much"},
        {"epsilon": float("nan")},
        {"within": float("inf")},
        {"delta": float("nan"), "epsilon": 1},
    ],
)
def test_a_loss_or_an_error_is_a_number(given: dict[str, Any]) -> None:
    with pytest.raises(UnsoundRequest):
        QueryOptions("histogram", **given)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1, "within": 3}, "epsilon"),
        ({"epsilon": 1, "confidence": 0.9}, "epsilon"),
        ({"confidence": 0.9}, "within"),  # how sure, and not how near
    ],
)
def test_either_a_loss_or_an_error_is_given(given: dict[str, Any], field: str) -> None:
    with raises(InvalidQuery, field=field, reason="one-aim"):
        QueryOptions("histogram", **given)


def test_the_earlier_name_of_the_confidence_is_read() -> None:
    found = QueryOptions.from_document({"kind": "sum", "within": 3, "chance": 0.9})
    assert found == QueryOptions("sum", within=3, confidence=0.9)


def test_options_that_are_no_object_and_columns_that_are_no_text_are_named() -> None:
    for wrong in (None, [1]):
        with raises(InvalidQuery, field="query"):
            QueryOptions.from_document(wrong)  # type: ignore[arg-type]
    with raises(InvalidQuery, field="where"):
        QueryOptions("histogram", epsilon=1, where={5: ["a"], "zone": ["a"]})


def test_a_decimal_is_kept_by_its_digits() -> None:
    assert QueryOptions("histogram", epsilon=Decimal("0.1")).epsilon == "0.1"


def test_a_misspelt_name_is_told_the_nearest_one(tmp_path: Path) -> None:
    with opened(tmp_path) as (s, *_):
        for ask, near in (
            (lambda: s.plan.histogram("stat", epsilon=1), "state"),
            (lambda: s.plan.histogram(by="zon", epsilon=1), "zone"),
            (lambda: s.plan.count(["hom"], epsilon=1), "home"),
            (lambda: QueryOptions("histogramm"), "histogram"),
        ):
            with pytest.raises(InvalidQuery) as told:
                ask()
            assert near in str(told.value)


def test_what_is_sent_to_a_server_is_exact_as_text() -> None:
    options = QueryOptions("quantile", level=0.1, epsilon=0.3, delta="0.1")
    sent, kept = options.exact_document(), options.document()
    assert kept == {"kind": "quantile", "level": 0.1, "epsilon": 0.3, "delta": "0.1"}
    assert Fraction(sent["level"]) == Fraction(0.1) and Fraction(sent["epsilon"]) == Fraction(0.3)
    assert sent["delta"] == "0.1"
    other = QueryOptions("top_k", k=1, confidence=0.9, gap=0.1)
    assert other.exact_document() == other.document()
