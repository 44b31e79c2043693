"""Names, keys, odds, steps of time and scales of answers at their edges, without a table."""

import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.session.answer_scales import SCALES, AnswerScales
from takifugu.session.key_order import LONGEST, counting_order
from takifugu.session.name_lists import (
    SHOWN,
    both_lists,
    listed,
    numbers,
    only_here,
    typed,
    types_alone,
)
from takifugu.session.odds import PosteriorOdds, odds, or_null
from takifugu.session.time_steps import until_step
from tests.raising import raises

pytestmark = pytest.mark.nightly


def test_keys_of_up_to_three_hundred_digits_are_numbers() -> None:
    longest, longer = "9" * LONGEST, "1" + "0" * LONGEST
    assert counting_order(longest)[0] == (0, int(longest), "")
    assert counting_order(longer)[0][0] == 1  # text, by its letters
    assert counting_order(f"x{longest}")[2] == (0, int(longest), "")
    assert counting_order(f"x{longer}")[2] == (1, 0, longer)
    keys = ["", "+1", "-1", "01", "1", "10", "9", "a", "a10", "a9", "a 1", longer, longest]
    assert len({counting_order(key) for key in keys}) == len(keys)
    wanted = ["-1", "+1", "01", "1", "9", "10", longest, longer, "", "a9", "a10", "a", "a 1"]
    found = sorted(keys, key=counting_order)
    assert found[:7] == wanted[:7] and found.index("a9") < found.index("a10")


@pytest.mark.parametrize(
    ("took", "step", "left"),
    [
        (0.0, 0.0, 0.0),
        (9.0, 0.0, 0.0),
        (9.0, -1.0, 0.0),
        (0.0, 2.0, 2.0),
        (1.5, 2.0, 0.5),
        (2.0, 2.0, 0.0),
        (2.5, 2.0, 1.5),
        (7.0, 2.0, 1.0),
    ],
)
def test_a_step_ends_at_whole_multiples(took: float, step: float, left: float) -> None:
    assert until_step(took, step) == left


def test_lists_of_names_are_cut_and_compared_with_types() -> None:
    ten = tuple(f"n{place}" for place in range(SHOWN))
    assert listed(()) == "nothing"
    assert listed(ten).endswith("'n9'") and listed((*ten, "x")).endswith("'n9', …")
    assert listed(["y" * 100]) == "'" + "y" * 79
    assert only_here((1, "1", "a"), ("1",)) == (1, "a")
    assert typed([1, "1"]) == {(int, 1), (str, "1")}
    assert types_alone((1, 2), ("1", "2")) and not types_alone((1, 2), (2, 1))
    assert not types_alone((1, 2), ("1", "3"))
    both = both_lists((1, 2), "person", (2, 3))
    assert both == "Prior: 1, 2; person: 2, 3; only in the prior: 1; only in person: 3"
    assert "only in the prior" not in both_lists((1, 2), "person", (2, 3), more=True)
    assert "only in" not in both_lists((1,), "person", (1,))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("1234567890123456789", 1234567890123456789),
        ("12345678901234567890", "12345678901234567890"),  # more than 64 bits may be
        ("01", "01"),
        ("-0", "-0"),
        ("+1", "+1"),
        ("1.0", "1.0"),
        ("", ""),
        (5, 5),
    ],
)
def test_what_is_written_as_a_whole_number_is_one(name: Any, number: Any) -> None:
    (found,) = numbers((name,))
    assert found == number and type(found) is type(number)


# --- odds ---


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 3.0, 20.0, 699.0])
def test_odds_are_rounded_against_the_release_and_hardly(epsilon: float) -> None:
    found = odds(epsilon)
    exact = 1 / (1 + Decimal(epsilon).exp())
    assert Decimal(found.against) <= exact < Decimal(found.against) * (1 + Decimal("1e-11"))
    assert found.beyond == 0 and found.epsilon == epsilon
    wide = odds(epsilon, Fraction(1, 1000))
    widened = 1 / (1 + Decimal(epsilon).exp() * 10 / 9)
    assert Decimal(wide.against) <= widened < Decimal(wide.against) * (1 + Decimal("1e-10"))
    assert wide.beyond == pytest.approx(0.02) and wide.beyond >= Fraction(2, 100)


def test_odds_at_both_ends() -> None:
    assert odds(0) == PosteriorOdds(0.0, Fraction(0), 0.5, 0.0) and odds(0).ratio == "50 : 50"
    assert odds(math.inf).against == 0.0 == odds(701).against
    assert odds(math.inf).ratio == "100 : 0" and "certain" in odds(math.inf).words
    assert odds(1, Fraction(1, 20)).against == 0.0  # twenty times δ is 1
    assert odds(1, Fraction(49, 1000)).against > 0 and odds(0, 1).beyond >= 1
    for epsilon, delta in ((-1e-9, 0), (math.nan, 0), (1, -1e-9), (1, 1.1)):
        with raises(UnsoundRequest, field="epsilon"):
            odds(epsilon, delta)
    assert (or_null(None), or_null(math.inf), or_null(2.0)) == (None, None, 2.0)


@pytest.mark.parametrize(
    ("against", "ratio"),
    [
        (0.5, "50 : 50"),
        (0.27, "73 : 27"),
        (0.2699, "74 : 26"),
        (0.475, "52.5 : 47.5"),
        (0.0066, "99.34 : 0.66"),
        (0.001, "99.9 : 0.1"),
        (0.0000019, "99.99981 : 0.00019"),
        (0.000001, "100 : 0"),
        (0.25, "75 : 25"),
    ],
)
def test_a_ratio_has_two_digits_of_each_side_rounded_up(against: float, ratio: str) -> None:
    assert PosteriorOdds(1.0, Fraction(0), against, 0.0).ratio == ratio


def test_odds_as_json() -> None:
    found = odds(1, Fraction(1, 10**6)).describe()
    assert (found["epsilon"], found["delta"], found["from"]) == (1.0, "1/1000000", 0.5)
    assert 0.7508 < found["to_at_most"] < 0.7515
    assert found["except_with_probability"] == pytest.approx(2e-5)
    assert found["words"].endswith("except with probability at most 2e-5")
    assert odds(math.inf).describe()["epsilon"] is None


# --- scales ---


def scales(kind: str, rows: list[float], *, keys: int = 4, **query: Any) -> dict[str, Any]:
    """The scales of a query about columns that have so many labels."""
    engine: Any = SimpleNamespace(keys=lambda _: range(keys), declaration=None)
    asked = SimpleNamespace(kind=kind, columns=("place",), **query)
    return SCALES[kind](asked, engine, np.array(rows), np.arange(len(rows)))


def test_counts_and_shares_are_as_large_as_if_labels_were_equally_common() -> None:
    found = scales("histogram", [100.0, 8.0])
    assert found["size"].tolist() == [25.0, 2.0] and found["high"].tolist() == [100.0, 8.0]
    assert found["noise"].tolist() == [100.0, 8.0] and found["low"].tolist() == [0.0, 0.0]
    assert not found["guessed"] and scales("counts", [8.0])["guessed"]
    assert not scales("counts", [8.0], keys=1)["guessed"]
    wide = scales("histogram", [100.0], keys=10)
    assert wide["size"].tolist() == [10.0] and wide["noise"].tolist() == [50.0]
    assert scales("transitions", [160.0])["size"].tolist() == [10.0]
    shares = scales("proportions", [100.0, 8.0], keys=10)
    assert shares["size"].tolist() == [0.1, 0.1] and shares["noise"].tolist() == [0.5, 0.5]
    assert shares["high"].tolist() == [1.0, 1.0] and shares["per_row"]
    lead = scales("top_k", [100.0], keys=10)
    assert lead["noise"].tolist() == [100.0] and lead["error"] == "gap"


def test_a_quantile_is_told_to_half_the_way_to_the_nearer_end() -> None:
    ranks = scales("quantile", [100.0], level=Fraction(1, 4))
    assert ranks["high"].tolist() == [75.0] and ranks["size"].tolist() == [12.5]
    assert ranks["error"] == "ranks"


def groups(rows: list[int], *, per_row: bool) -> AnswerScales:
    sizes = np.array(rows)
    floats = sizes.astype(np.float64)
    return AnswerScales(
        one="a count",
        many="counts",
        rows=sizes,
        low=0 * floats,
        high=floats,
        size=np.ones(len(rows)) if per_row else floats / 2,
        noise=floats,
        error="interval",
        per_row=per_row,
        name=lambda _: {},
    )


def test_the_smallest_groups_decide_unless_they_hold_next_to_nothing() -> None:
    found = groups([100, 3, 2, 95], per_row=False)
    assert found.half_widths.tolist() == [1.0] * 4
    assert found.by_size.tolist() == [2, 1, 3, 0]
    assert found.deciding == 3  # 5 of 200 rows are aside
    assert groups([100, 6, 4, 90], per_row=False).deciding == 1  # 10 of 200: not less than that
    shares = groups([100, 20, 50], per_row=True)
    assert shares.half_widths.tolist() == [0.2, 1.0, 0.4]
    assert shares.by_size.tolist() == [1, 2, 0] and shares.deciding == 1
