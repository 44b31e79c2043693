"""What a ledger writes of a charge, what it takes and refuses; limits and their rounding."""

import hashlib
import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu import ledger as room
from takifugu.costs.losses import Approximate, Pure, Total
from takifugu.errors import BudgetExceeded, InvalidCharge, UnsoundRequest
from takifugu.influence import InfluenceCurve
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
from takifugu.ledger.limits import Limit, to_pufferfish
from takifugu.translation.curve_translation import CurveTranslation
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, charge, count
from tests.raising import raises


@pytest.mark.parametrize(
    ("wrong", "field", "reason"),
    [
        ({"dataset": ""}, "dataset", "name"),
        ({"analyst": ""}, "analyst", "name"),
        ({"data": "x\0"}, "data", "name"),
        ({"query": {1: 2}}, "query", "type"),
        ({"mechanism": {"x": {1, 2}}}, "mechanism", "type"),
        ({"loss": Total()}, "loss", "type"),
        ({"loss": Pure(Fraction(1, 3**800))}, "loss", "digits"),
        ({"loss": Pure(2**65)}, "loss", "digits"),
    ],
)
def test_a_malformed_charge_is_refused(wrong: dict[str, Any], field: str, reason: str) -> None:
    with raises(InvalidCharge, field=field, reason=reason):
        replace(charge("0.1"), **wrong).body()


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (5, 5, "empty"),
        (6, 5, "empty"),
        (True, 5, "type"),
        (0.5, 2, "type"),
        (0, date(2026, 1, 1), "unit"),
        (datetime(2026, 1, 1), None, "zone"),
        (2**62, None, "range"),
    ],
)
def test_a_malformed_window_is_refused(start: Any, end: Any, reason: str) -> None:
    with raises(InvalidCharge, field="window", reason=reason):
        Window(start, end)


def test_windows_in_three_units() -> None:
    assert Window(3, None).unit == "step" and Window().unit is None
    assert Window(date(2026, 1, 1), date(2026, 1, 3)).ticks[1] - date(2026, 1, 1).toordinal() == 2
    east = timezone(timedelta(hours=9))
    here = Window(datetime(2026, 1, 1, 9, 0, 0, 1, tzinfo=east), None)
    assert here.unit == "instant" and here == Window(datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC))
    assert here.ticks[0] % 10**6 == 1


@pytest.mark.parametrize(
    ("columns", "keys", "reason"),
    [
        ([], [()], "columns"),
        (["a", "a"], [(1, 2)], "columns"),
        (["a"], [], "empty"),
        (["a"], [(1, 2)], "size"),
        (["a"], [(0.5,)], "type"),
    ],
)
def test_malformed_groups_are_refused(columns: Any, keys: Any, reason: str) -> None:
    with raises(InvalidCharge, field="groups", reason=reason):
        Groups(columns, keys)


def test_the_order_of_keys_makes_no_other_question() -> None:
    one = charge("0.1", groups=["fr", "de"], query={"a": 1, "b": 2}).body()
    other = charge("0.1", groups=["de", "fr"], query={"b": 2, "a": 1}).body()
    assert one["question"] == other["question"] and one["key"] != other["key"]
    assert canonical_json({"b": [1, 2.5], "a": "é"}, "x") == '{"a":"\\u00e9","b":[1,2.5]}'


@given(
    exposed=st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True),
    leaks=st.lists(st.floats(0, 2), min_size=4, max_size=4),
    budget=st.fractions(Fraction(1, 100), 5),
)
def test_a_limit_by_a_curve_is_proven_in_both_directions(
    exposed: list[int], leaks: list[float], budget: Fraction
) -> None:
    points = sorted(exposed)
    leak = sorted(leaks[: len(points)], reverse=True)
    leak[-1] = 0.0
    curve = CurveTranslation(
        InfluenceCurve(
            exposed=np.array(points),
            leak=np.array([leak]),
            exact=np.ones((1, len(points)), dtype=np.bool_),
            pairs=("pair",),
            entries=None,
        )
    )
    limit = Limit(curve, budget, Fraction(0))
    assert limit.allowed > 0
    assert to_pufferfish(curve, (Total(limit.allowed),), Fraction(0)) <= budget
    assert limit.admits((Total(limit.allowed),))
    assert not limit.admits((Total(limit.allowed + Fraction(1, 2**200)),))
    room = limit.room((Total(limit.allowed / 3),), Pure(0))
    assert room == limit.allowed * 2 / 3


def test_an_inverse_that_guarantees_too_much_is_cut_down_to_what_is_proven() -> None:
    class Boastful(LossTranslation):
        def to_pufferfish(self, epsilon: float, /) -> float:
            return 3 * epsilon

        def to_dp(self, epsilon: float, /) -> float:
            return epsilon

    limit = Limit(Boastful(), Fraction(1), Fraction(0))
    assert 3 * limit.allowed <= 1
    for wrong in (math.nan, -1.0, math.inf):

        class Broken(Boastful):
            def to_dp(self, _epsilon: float, /) -> float:
                return wrong  # noqa: B023 - used at once

        with raises(UnsoundRequest, reason="broken translation"):
            Limit(Broken(), Fraction(1), Fraction(0))


def test_a_malformed_budget_is_refused(tmp_path: Path) -> None:
    with room.open_ledger(tmp_path / "x.ledger") as ledger:
        for epsilon, delta in [(-1, 0), (1, 1), (1, -0.5), (Fraction(1, 3**800), 0)]:
            with raises(InvalidCharge, field="budget"):
                ledger.set_budget("ward", epsilon, delta=delta)
        with pytest.raises(UnsoundRequest):
            ledger.set_budget("ward", math.inf)
        with raises(InvalidCharge, field="dataset"):
            ledger.set_budget("", 1)
        assert [event.kind for event in ledger.history()] == ["created"]


def test_a_refusal_says_what_to_do() -> None:
    error = BudgetExceeded(
        "stays",
        dataset="w",
        analyst=None,
        currency="epsilon",
        needs=Fraction(2, 3),
        left=Fraction(1, 3),
    )
    assert str(error) == (
        "query 'stays' needs epsilon = 0.6667 per entry but dataset 'w' has 0.3333 left; nothing"
        " was released. Ask for at most epsilon = 0.3333, or have the owner raise the budget."
    )
    allowed = Limit(DOUBLING, Fraction(1, 3), Fraction(0)).allowed
    assert allowed <= Fraction(1, 6)


@pytest.mark.parametrize("text", ["-1/2", "-1", "1/0", "0/0", "1/-2"])
def test_a_rational_below_zero_or_over_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="below 0"):
        read_fraction(text)


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
        (Fraction(1), True),
        (Fraction(5, 2), True),
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
