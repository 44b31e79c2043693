"""Each option of a query by itself: what is kept of it, and the field that an error names."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import KIND_OPTIONS, QueryOptions, checked
from tests.raising import raises

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
    [
        ("values", "home", ("home",)),
        ("values", 3, (3,)),
        ("values", ["home", 3], ("home", 3)),
    ],
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
    "values": ("home",), "k": 2, "level": "0.5", "grid": 1, "reference": (1.0, 2.0), "gap": 3.0,
    "query": "load", "leave_out": ("other",), "sum_to_one": True,
}  # fmt: skip


@pytest.mark.parametrize("kind", KIND_OPTIONS)
def test_a_kind_takes_its_own_options_and_no_others(kind: Any) -> None:
    """By the table that pages and commands are made from."""
    mine = KIND_OPTIONS[kind]
    needed = {name: VALUES.get(name, ["a", "b"]) for name in mine.required}
    made = QueryOptions(kind, epsilon=1, **needed)
    assert set(made.given()) == {"epsilon", *mine.required}
    for name in mine.required:
        with raises(InvalidQuery, field=name):
            QueryOptions(kind, epsilon=1, **{k: v for k, v in needed.items() if k != name})
    for name, value in VALUES.items():
        options: dict[str, Any] = {"epsilon": 1, **needed, name: value}
        if name in (*mine.required, *mine.optional) and name not in KINDS[kind].without:
            assert getattr(QueryOptions(kind, **options), name) == value
        else:
            with raises(InvalidQuery, field=name):
                QueryOptions(kind, **options)
    for name in KINDS[kind].without:
        value = VALUES.get(name, {"within": 3, "by": ("zone",), "delta": "1e-6"}.get(name, 1))
        with pytest.raises(InvalidQuery):
            QueryOptions(kind, **{"epsilon": 1, **needed, name: value})


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
