"""What a ledger writes of a charge, whole, and the last value that it takes or refuses."""

import hashlib
import json
import math
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import pytest

from takifugu.costs.losses import Approximate
from takifugu.errors import InvalidCharge
from takifugu.ledger import Cells, Charge, Groups, Window
from takifugu.ledger.canonical_text import (
    canonical_json,
    check_json,
    read_fraction,
    write_fraction,
)
from takifugu.ledger.charge_values import (
    cell_names,
    cost_of,
    groups_body,
    query_identity,
    window_body,
)
from tests.ledger.charges import count
from tests.raising import raises

pytestmark = pytest.mark.nightly

FULL = Charge(
    dataset="ward",
    query={"name": "stays", "by": ["floor"]},
    mechanism={"kind": "laplace", "scale": 2.5},
    loss=Approximate("1/3", "1e-6"),
    data="the data",
    prior="a prior",
    secrets="some secrets",
    translation="a translation",
    cells=Cells.of({"entity": "person", "public": {"floor": [1, 2]}}),
    window=Window(3, 8),
    groups=Groups(["floor", "unit"], [(2, "b"), (1, None)]),
    analyst="ana",
    declared="so read",
    rules={"about": "place"},
    sources=("path k:1",),
    key="the key",
    approval=9,
    request="r1",
)
CELLS_TEXT = '{"entity":"person","public":{"floor":[1,2]}}'


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- charges ---


def test_a_charge_is_written_whole() -> None:
    body = FULL.body()
    query = {"name": "stays", "by": ["floor"]}
    decides = {
        "dataset": "ward",
        "query_fingerprint": sha('{"by":["floor"],"name":"stays"}'),
        "data": "the data",
        "mechanism": {"kind": "laplace", "scale": 2.5},
        "loss": {"currency": "approximate", "epsilon": "1/3", "delta": "1/1000000"},
        "window": {"unit": "step", "start": 3, "end": 8},
        "groups": {"columns": ["floor", "unit"], "keys": [[1, None], [2, "b"]]},
        "cells": sha(CELLS_TEXT),
        "declared": "so read",
    }
    question = sha(json.dumps(decides, sort_keys=True, separators=(",", ":")))
    assert body == {
        **decides,
        "analyst": "ana",
        "query": query,
        "prior": "a prior",
        "secrets": "some secrets",
        "translation": "a translation",
        "key": "the key",
        "question": question,
        "rules": {"about": "place"},
        "approval": 9,
        "request": "r1",
    }
    assert query_identity(body) == question


# --- losses ---


def test_a_cost_is_read_only_as_a_ledger_writes_it() -> None:
    document = count("1/4", "home", "ward").cost.document()
    assert cost_of(document).document() == document
    text = json.dumps(document)
    assert '"1/4"' in text and "2/8" not in text
    with pytest.raises(ValueError, match="another way"):
        cost_of(json.loads(text.replace('"1/4"', '"2/8"')))


@pytest.mark.parametrize(
    ("value", "fine"),
    [
        (Fraction(1, 2**1099), True),  # a denominator of 1100 bits
        (Fraction(1, 2**1100), False),
        (Fraction(2**64), True),
        (2**64 + Fraction(1, 2**30), False),
        (Fraction(0), True),
    ],
)
def test_rationals_have_so_many_digits_and_no_more(value: Fraction, fine: bool) -> None:
    if fine:
        assert read_fraction(write_fraction(value, "loss")) == value
    else:
        with raises(InvalidCharge, field="loss", reason="digits"):
            write_fraction(value, "loss")


# --- text ---


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("half \ud800", "text"),
        (["a", ["b", "\udcff"]], "text"),
        ({"\ud800": 1}, "text"),
        ({"a": {"b": "\ud800"}}, "text"),
        (math.nan, "infinite"),
        ([1.5, -math.inf], "infinite"),
        (("a", math.inf), "infinite"),
        ({"a": {1: 2}}, "type"),
        ({None: 2}, "type"),
        ([b"bytes"], "type"),
        (Fraction(1, 2), "type"),
    ],
)
def test_what_json_cannot_hold_exactly_is_refused(value: Any, reason: str) -> None:
    with raises(InvalidCharge, field="answer", reason=reason):
        check_json(value, "answer")
    with raises(InvalidCharge, field="query", reason=reason):
        canonical_json(value, "query")


def test_what_json_can_hold_has_one_text() -> None:
    value = {"é": [None, True, 2**70, -0.5, 1e300], "a": {"z": (), "b": {}}, "": ""}
    text = '{"":"","a":{"b":{},"z":[]},"\\u00e9":[null,true,1180591620717411303424,-0.5,1e+300]}'
    assert canonical_json(value, "x") == text


# --- entries ---


def test_windows_are_written_in_ticks() -> None:
    noon = datetime(1970, 1, 2, 12, 0, 0, 3, tzinfo=UTC)
    ticks = 36 * 3600 * 10**6 + 3
    assert window_body(Window(noon, None)) == {"unit": "instant", "start": ticks, "end": None}
    days = Window(date(1, 1, 5), date(1, 1, 9))
    assert window_body(days) == {"unit": "day", "start": 5, "end": 9}
    for window, both in (
        (Window(), (-9223372036854775808, 9223372036854775807)),  # as stored in ledgers
        (Window(None, 7), (-9223372036854775808, 7)),
        (Window(-7), (-7, 9223372036854775807)),
    ):
        assert window.ticks == both


def test_keys_are_written_in_the_order_of_their_text() -> None:
    body = groups_body(Groups(["a"], [("b",), (10,), (9,), (None,), ("B",)]))
    assert body == {"columns": ["a"], "keys": [["B"], ["b"], [10], [9], [None]]}


def test_a_finer_key_lies_in_the_cell_of_its_coarser_part() -> None:
    columns, keys = ["day", "floor", "unit"], [(3, 1, "b"), (4, "1", "a"), (5, 2, "b"), (6, 2, "b")]
    assert cell_names(columns, keys, ("unit", "floor")) == (
        '["a","1"]',
        '["b","1"]',
        '["b","2"]',
    )
    assert cell_names(columns, keys, ("floor",)) == ('["1"]', '["2"]')
    assert cell_names(iter(columns), iter(keys), ("unit", "day", "floor")) is not None
    assert cell_names(columns, keys, ("floor", "ward")) is None
    assert cell_names(["a"], [("e\u0301",), ("\u00e9",), (True,), ("true",)], ("a",)) == (
        '["\\u00e9"]',
        '["true"]',
    )
