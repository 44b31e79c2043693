"""Each part of a document alone: what is read, and the key that is named where it is not."""

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.documents.declared import codec_of
from takifugu.documents.reading import (
    MAX_NUMBER_DIGITS,
    DocumentPart,
    InvalidDocument,
    as_json,
    by_name,
    converted,
    decimal,
    fraction,
    json_object,
    json_value,
    listed,
    moment,
    name,
    number,
    predicted,
    refuse_unshown,
    scalar,
    text,
    truth,
    whole,
)
from takifugu.errors import UnsoundRequest
from takifugu.session.plan_documents import title
from takifugu.session.query.sums import Weights
from takifugu.session.release_cost import AnalystCost, ReleaseCost, value_cost
from takifugu.session.usefulness import GroupAccuracy, Remedy, Usefulness
from tests.raising import raises
from tests.session.test_prices import cost

weights = codec_of(Weights).read

pytestmark = pytest.mark.nightly

FALSE, HUGE = False, 2**1023


def through(document: Any) -> Any:
    """As it comes from elsewhere."""
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (text, "", ""),
        (title, "ward", "ward"),
        (truth, FALSE, FALSE),
        (truth, True, True),
        (whole, -3, -3),
        (number, 2, 2.0),
        (number, 0.1, 0.1),
        (number, "inf", math.inf),
        (number, "-inf", -math.inf),
        (number, HUGE, float(HUGE)),
        (number, -HUGE, -float(HUGE)),
        (fraction, "1/3", Fraction(1, 3)),
        (
            fraction,
            "0." + "1" * (MAX_NUMBER_DIGITS - 2),
            Fraction("0." + "1" * (MAX_NUMBER_DIGITS - 2)),
        ),
        (decimal, "1.50", Decimal("1.50")),
        (name, "a", "a"),
        (name, 7, 7),
        (scalar, None, None),
        (scalar, True, True),
        (scalar, "inf", "inf"),
        (scalar, 0.5, 0.5),
        (listed(whole), [1, 2], (1, 2)),
        (listed(whole), (1, 2), (1, 2)),
        (by_name(whole), {"a": 1}, {"a": 1}),
        (json_value, {"a": [1, None, {"b": "x"}]}, {"a": [1, None, {"b": "x"}]}),
        (json_object, {"a": (1, 2)}, {"a": [1, 2]}),
        (weights, [["a", "1/2"], [3, "2"]], (("a", Fraction(1, 2)), (3, Fraction(2)))),
    ],
)
def test_a_value_is_read_with_its_type(read: Any, value: Any, found: Any) -> None:
    was = read(value, "here")
    assert was == found and type(was) is type(found) and repr(was) == repr(found)


@pytest.mark.parametrize(
    ("read", "value", "field"),
    [
        (text, 3, "here"),
        (text, None, "here"),
        (truth, 1, "here"),
        (truth, "true", "here"),
        (whole, True, "here"),
        (whole, 1.0, "here"),
        (number, True, "here"),
        (number, "1", "here"),
        (number, math.nan, "here"),
        (number, math.inf, "here"),
        (number, HUGE + 1, "here"),
        (number, -HUGE - 1, "here"),
        (fraction, 0.5, "here"),
        (fraction, "1" * (MAX_NUMBER_DIGITS + 1), "here"),
        (decimal, "1/2", "here"),
        (decimal, 1, "here"),
        (moment, "yesterday", "here"),
        (moment, "2020-01-01T00:00:00", "here"),
        (moment, 3, "here"),
        (name, True, "here"),
        (name, 1.5, "here"),
        (name, None, "here"),
        (scalar, [], "here"),
        (listed(whole), {"a": 1}, "here"),
        (listed(whole), [1, "x"], "here, 1"),
        (listed(listed(whole)), [[1], [2, "x"]], "here, 1, 1"),
        (by_name(whole), [1], "here"),
        (by_name(whole), {"a": 1, "b": "x"}, "here, b"),
        (json_value, {"a": [{"b": math.nan}]}, "here, a, b"),
        (json_value, {1: 2}, "here"),
        (json_object, [1], "here"),
        (weights, [["a", "1"], ["b"]], "here, 1"),
        (weights, [["a", "1", "2"]], "here, 0"),
        (weights, [[1.5, "1"]], "here, 0, 0"),
        (weights, [["a", 1]], "here, 0, 1"),
        (weights, ["ab"], "here, 0"),
    ],
)
def test_another_type_is_refused_by_its_path(read: Any, value: Any, field: str) -> None:
    with raises(InvalidDocument, field=field):
        read(value, "here")


def test_a_moment_keeps_its_zone() -> None:
    found = moment("2020-01-01T02:00:00+02:00", "at")
    assert found == datetime(2020, 1, 1, tzinfo=UTC) and found.utcoffset() == timedelta(hours=2)


def test_json_is_read_as_deep_as_it_is_shown() -> None:
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    assert json_value(deep, "here") == deep
    with raises(InvalidDocument, field="here"):
        json_value([deep], "here")


def test_a_part_knows_its_keys_and_its_path() -> None:
    part = DocumentPart.of({"a": {"b": None, "c": 1}, "n": None})
    assert part.named("x") == "x" and part.part("a").named("x") == "a, x"
    assert part.has("a") and not part.has("n") and not part.has("z")
    assert part.maybe("n", whole) is part.maybe("z", whole) is None
    assert part.part("a").maybe("c", whole) == 1 and part.part("a").whole("c") == 1
    assert part.number("n") == math.inf and part.part("a").number("c") == 1.0
    for key in ("z", "n"):
        with raises(InvalidDocument, field=key):
            part.whole(key)
    with raises(InvalidDocument, field="z"):
        part.number("z")
    with raises(InvalidDocument, field="a, b"):
        part.part("a").text("b")
    with raises(InvalidDocument, field="document"):
        DocumentPart.of([])
    with raises(InvalidDocument, field="here"):
        DocumentPart.of({1: 2}, "here")


@pytest.mark.parametrize(
    "error",
    [
        UnsoundRequest("no"),
        ValueError(),
        TypeError(),
        KeyError(),
        IndexError(),
        ZeroDivisionError(),
    ],
)
def test_what_a_reader_raises_names_the_path(error: Exception) -> None:
    def broken(*_: object) -> Any:
        raise error

    with raises(InvalidDocument, field="a, b"):
        converted(1, "a, b", broken)
    with raises(InvalidDocument, field="document"):
        refuse_unshown(lambda: broken(1, ""))


def test_a_defect_of_ours_is_no_defect_of_a_document() -> None:
    def broken(*_: object) -> Any:
        raise AssertionError

    with pytest.raises(AssertionError):
        converted(1, "a", broken)


@pytest.mark.parametrize(
    ("value", "needed"),
    [
        ({"deviation": 1.5, "interval": 2}, None),
        ({"ranks": 1.5}, None),
        ({"deviation": 1.5, "gap": 2.0, "right": [0.5, 0.25]}, None),
        ({"deviation": 1.5, "gap": 2.0, "right": None}, None),
        ({"deviation": 1.5, "gap": 2.0}, "error, right"),
        ({"deviation": 1.5, "gap": 2.0, "right": 0.5}, "error, right"),
        ({"deviation": 1.5}, "error, gap"),
        ({"gap": 1.5, "right": None}, "error, deviation"),
        ({"interval": 1.5}, "error, deviation"),
        ({"deviation": 1.5, "interval": None}, "error, interval"),
        ({"ranks": [1.5]}, "error, ranks"),
        ({"ranks": True}, "error, ranks"),
        ({"deviation": 1.5, "interval": ["x"]}, "error, interval, 0"),
    ],
)
def test_a_prediction_has_the_numbers_of_its_kind(value: Any, needed: str | None) -> None:
    if needed is None:
        found = predicted(value, "error")
        assert found == {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    else:
        with raises(InvalidDocument, field=needed):
            predicted(value, "error")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (3, 3),
        ("a", "a"),
        (0.5, 0.5),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (Fraction(1, 3), "1/3"),
        (Decimal("1.50"), "1.50"),
        (datetime(2020, 1, 1, tzinfo=UTC), "2020-01-01T00:00:00+00:00"),
        ({1: (Fraction(1, 2), [math.inf])}, {"1": ["1/2", ["inf"]]}),
    ],
)
def test_values_are_written_as_json_has_them(value: Any, written: Any) -> None:
    found = as_json(value)
    assert found == written and type(found) is type(written) and through(found) == written


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), {1, 2}, b"x", [object()]])
def test_what_json_has_not_is_not_written(value: Any) -> None:
    with raises(UnsoundRequest, field="document"):
        as_json(value)


# --- prices ---

HOME = Cost.of({Membership(["home"]): 1})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"currency": "rho", "delta": Fraction(1, 1000), "budget_delta": Fraction(1, 500)},
        {"fits": False, "after": None},
        {"alone": math.inf, "before": math.inf, "after": math.inf},
        {"by_value": HOME, "without_values": 0.75},
        {"by_value": HOME, "without_values": math.inf},
        {"by_column": {"a": 0.5, "b": math.inf}},
        {"own": AnalystCost("Ann", Fraction(2), 0.5, 1.0), "reuse": True},
        {"own": AnalystCost("Ann", Fraction(2), 0.5, None), "fits": False, "after": None},
        {"own": AnalystCost("Ann", Fraction(2), math.inf, math.inf)},
    ],
)
def test_a_price_comes_back_as_it_was(changes: dict[str, Any]) -> None:
    made = cost(**changes)
    assert ReleaseCost.from_document(through(made.describe())) == made


def test_a_cost_that_is_written_in_another_way_is_refused() -> None:
    both = Cost.of({Membership(["home"]): 1, Membership(["ward"]): 2}).document()
    assert value_cost(both, "unit").document() == both
    others: tuple[Any, ...] = (both[::-1], tuple(both), {}, "x")
    for wrong in others:
        with raises(InvalidDocument, field="unit"):
            value_cost(wrong, "unit")


SMALL = GroupAccuracy("mostly noise", 9.0, 0.0, 7.0, 3.0, 7, {"zone": "b", "hour": 3})
LARGE = GroupAccuracy("rough", 9.0, 1.0, 70.0, 8.0, 60, {"zone": "a", "hour": 2})


@pytest.mark.parametrize(
    "made",
    [
        Usefulness(LARGE, "a count", "counts", 2, False, 1, SMALL, True),
        Usefulness(SMALL, "a mean", "", 1, True, remedy=Remedy(Decimal("1.5"), True, 12)),
        Usefulness(SMALL, "a sum", "", 1, True, remedy=Remedy(None, False, 10)),
    ],
)
def test_usefulness_comes_back_as_it_was(made: Usefulness) -> None:
    document = through(made.describe())
    assert Usefulness.from_document(document) == made
    for key, wrong, field in (
        ("verdict", "fine", "verdict"),
        ("range", [1.0], "range"),
        ("range", [1.0, 2.0, 3.0], "range"),
        ("range", "ab", "range"),
        ("range", [1.0, "x"], "range, 1"),
        ("range", ["x", 1.0], "range, 0"),
        ("group", {"zone": 1.5}, "group, zone"),
        ("rows", "7", "rows"),
        ("worst", 3, "worst"),
    ):
        with raises(InvalidDocument, field=f"usefulness, {field}"):
            Usefulness.from_document({**document, key: wrong})
