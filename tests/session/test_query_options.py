"""The options of a query: one value, checked once, the same in Python, in JSON and in a plan."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
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
from takifugu.session.query_kinds import KINDS, is_ranking, query_class
from takifugu.session.query_options import KIND_OPTIONS, OPTIONS, QueryOptions, checked
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


def test_a_ranking_is_known_by_its_line() -> None:
    assert is_ranking("top_k") and not is_ranking("histogram")
    assert not is_ranking("of a later version") and not is_ranking(None)
    assert all(kind.ranks == ("within" in kind.without) for kind in KINDS.values())


def test_type_checkers_read_the_methods_that_there_are() -> None:
    assert FILE.read_text(encoding="utf-8") == stub(), "make references"


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


def test_the_earlier_name_of_the_confidence_is_read() -> None:
    found = QueryOptions.from_document({"kind": "sum", "within": 3, "chance": 0.9})
    assert found == QueryOptions("sum", within=3, confidence=0.9)


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


# --- each option by itself ---


DAY, MOMENT = date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("column", "a", "a"),
        ("column", ["a"], "a"),
        ("column", ["a", "b"], ("a", "b")),
        ("column", None, None),
        ("by", "zone", ("zone",)),
        ("by", ["zone", "hour"], ("zone", "hour")),
        ("window", [1, None], (1, None)),
        ("window", (DAY, MOMENT), (DAY, MOMENT)),
        ("window", ("2020-01-01", 3), ("2020-01-01", 3)),
        ("where", {"zone": ["a", 1]}, {"zone": ("a", 1)}),
        ("where", None, {}),
        ("epsilon", Decimal("0.10"), "0.10"),
        ("epsilon", "1/3", "1/3"),
        ("epsilon", Fraction(1, 3), Fraction(1, 3)),
        ("epsilon", np.float64(0.5), 0.5),
        ("epsilon", 2, 2),
        ("delta", "1e-6", "1e-6"),
    ],
)
def test_an_option_is_kept_as_it_was_meant(option: str, given: Any, kept: Any) -> None:
    options = {"epsilon": 1, option: given}
    found = QueryOptions("histogram", **options)
    value = getattr(found, option)
    assert value == kept and type(value) is type(kept)
    assert checked(found) == found and (option in found.given()) is (kept not in (None, {}))
    again = QueryOptions.from_document(found.document())
    assert again.document() == found.document()


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [("values", "home", ("home",)), ("values", 3, (3,)), ("values", ["home", 3], ("home", 3))],
)
def test_labels_are_a_list_of_labels(option: str, given: Any, kept: Any) -> None:
    found = QueryOptions("count", epsilon=1, **{option: given})
    assert getattr(found, option) == kept


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [
        ("k", np.int64(3), 3),
        ("k", 0, 0),
        ("gap", 2, 2.0),
        ("gap", np.float32(0.5), 0.5),
        ("leave_out", "other", ("other",)),
        ("reference", [1, 2], (1.0, 2.0)),
        ("reference", [[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0))),
        ("reference", np.array([1, 2]), (1.0, 2.0)),
    ],
)
def test_options_of_rankings(option: str, given: Any, kept: Any) -> None:
    found = getattr(QueryOptions("top_k", epsilon=1, **({"k": 2} | {option: given})), option)
    assert found == kept and type(found) is type(kept)


@pytest.mark.parametrize(
    ("option", "wrong", "field"),
    [
        ("column", 3, "column"),
        ("column", [], "column"),
        ("column", ["a", "a"], "column"),
        ("column", ["a", 1], "column"),
        ("by", 3, "by"),
        ("by", ["a", 1], "by"),
        ("by", {"a"}, "by"),
        ("window", 3, "window"),
        ("window", (1,), "window"),
        ("window", (1, 2, 3), "window"),
        ("window", "12", "window"),
        ("window", (True, None), "window"),
        ("window", (None, 1.5), "window"),
        ("where", ["a"], "where"),
        ("where", {1: ["a"]}, "where"),
        ("where", {"zone": "a"}, "where, zone"),
        ("where", {"zone": []}, "where, zone"),
        ("where", {"zone": {"a"}}, "where, zone"),
        ("where", {"zone": [True]}, "where, zone"),
        ("where", {"zone": ["a", 1.0]}, "where, zone"),
        ("epsilon", True, "epsilon"),
        ("epsilon", False, "epsilon"),
        ("delta", True, "delta"),
        ("query", 3, "query"),
        ("sum_to_one", 1, "sum_to_one"),
        ("sum_to_one", None, "sum_to_one"),
        ("kind", "sql", "kind"),
        ("kind", None, "kind"),
    ],
)
def test_another_value_is_refused_by_its_name(option: str, wrong: Any, field: str) -> None:
    given: dict[str, Any] = {"kind": "histogram", "epsilon": 1, option: wrong}
    with raises(InvalidQuery, field=field):
        QueryOptions(**given)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("k", True),
        ("k", 1.0),
        ("k", "2"),
        ("gap", True),
        ("gap", "2"),
        ("gap", 10**400),
        ("confidence", True),
        ("confidence", "0.9"),
        ("confidence", -(10**400)),
        ("leave_out", [True]),
        ("leave_out", [1.5]),
        ("leave_out", {"a"}),
        ("leave_out", None),
        ("reference", "ab"),
        ("reference", 3),
        ("reference", [[[1]]]),
        ("reference", [[1, 2], [3]]),
    ],
)
def test_another_value_of_a_ranking_is_refused(option: str, wrong: Any) -> None:
    given: dict[str, Any] = {"epsilon": 1, "k": 2, option: wrong}
    with raises(InvalidQuery, field=option):
        QueryOptions("top_k", **given)


@pytest.mark.parametrize("wrong", ["nan", "x", float("inf"), [1]])
def test_an_amount_is_a_number(wrong: Any) -> None:
    with pytest.raises(UnsoundRequest):
        QueryOptions("histogram", epsilon=wrong)


def test_there_is_one_aim() -> None:
    aims: list[tuple[dict[str, Any], str | None]] = [
        ({"epsilon": 1}, None),
        ({"within": 3}, None),
        ({"within": 3, "confidence": 0.9}, None),
        ({}, "epsilon"),
        ({"epsilon": 1, "within": 3}, "epsilon"),
        ({"epsilon": 1, "confidence": 0.9}, "epsilon"),
        ({"confidence": 0.9}, "within"),
    ]
    for aim, field in aims:
        if field is None:
            assert QueryOptions("histogram", **aim).given() == aim
        else:
            with raises(InvalidQuery, field=field, reason="one-aim"):
                QueryOptions("histogram", **aim)
    assert QueryOptions("top_k", k=1, confidence=0.9, gap=3).confidence == 0.9
    with raises(InvalidQuery, field="epsilon", reason="one-aim"):
        QueryOptions("top_k", k=1, epsilon=1, confidence=0.9)


VALUES: Mapping[str, Any] = {
    name: True if option.type == "flag" else option.example
    for name, option in OPTIONS.items()
    if option.kinds
}


@pytest.mark.parametrize("kind", KIND_OPTIONS)
def test_a_kind_takes_its_own_options_and_no_others(kind: Any) -> None:
    """By the table that pages and commands are made from."""
    mine = KIND_OPTIONS[kind]
    needed = {name: VALUES[name] for name in mine.required}
    made = QueryOptions(kind, epsilon=1, **needed)
    assert set(made.given()) == {"epsilon", *mine.required}
    for name in mine.required:
        with raises(InvalidQuery, field=name):
            QueryOptions(kind, epsilon=1, **{k: v for k, v in needed.items() if k != name})
    for name, value in VALUES.items():
        options: dict[str, Any] = {"epsilon": 1, **needed, name: value}
        if name in (*mine.required, *mine.optional) and name not in KINDS[kind].without:
            document = QueryOptions(kind, **options).document()
            assert document[name] == value and QueryOptions.from_document(document).document() == (
                document
            )
        else:
            with raises(InvalidQuery, field=name):
                QueryOptions(kind, **options)
    for name in KINDS[kind].without:
        with raises(InvalidQuery, field=name):
            QueryOptions(kind, **{"epsilon": 1, **needed, name: OPTIONS[name].example})


def test_a_document_names_each_option_once() -> None:
    for document, field in (
        ({"kind": "histogram", "epsilon": 1, "sql": 1}, "sql"),
        ({"epsilon": 1}, "kind"),
        ([], "query"),
        ("histogram", "query"),
    ):
        with raises(InvalidQuery, field=field):
            QueryOptions.from_document(document)  # type: ignore[arg-type]
    sent = QueryOptions("histogram", epsilon=0.1, window=(DAY, None), by="zone").exact_document()
    assert sent == {
        "kind": "histogram",
        "epsilon": str(Fraction(0.1)),
        "window": ["2020-01-01", None],
        "by": ["zone"],
    }
    text = QueryOptions("histogram", epsilon="0.1", delta=Fraction(1, 3)).exact_document()
    assert text["epsilon"] == "0.1" and text["delta"] == "1/3"


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("column", {"kind": "linear", "query": "evening", "column": "load"}),
        ("query", {"kind": "linear", "query": 3}),
        ("values", {"kind": "count", "values": {"a": 1}}),
        ("values", {"kind": "count", "values": [1.5]}),
        ("where", {"where": {5: ["a"], "zone": ["a"]}}),
        ("x", {"x": 1}),
        ("confidence", {"confidence": 0.9, "chance": 0.9}),
    ],
)
def test_a_key_of_a_document_that_has_no_meaning_is_named(
    field: str, given: dict[str, Any]
) -> None:
    with raises(InvalidQuery, field=field):
        QueryOptions.from_document({"kind": "histogram", "epsilon": 1} | given)
