"""Names, keys, odds, steps of time and scales of answers at their edges, without a table."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.binding.entries import (
    MAX_LISTED_NAMES,
    both_lists,
    listed,
    numbers,
    only_here,
    typed,
    types_alone,
)
from takifugu.session.cells import Rows
from takifugu.session.possible_answers import LONGEST, counting_order
from takifugu.session.query_kinds import query_class
from takifugu.session.time_steps import until_step
from takifugu.session.usefulness import AnswerScales
from takifugu.tables import Scope

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
    ten = tuple(f"n{place}" for place in range(MAX_LISTED_NAMES))
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


# --- scales ---


def scales(kind: str, rows: list[float], *, keys: int = 4, **query: Any) -> dict[str, Any]:
    """The scales of a query about columns that have so many labels."""
    engine: Any = SimpleNamespace(keys=lambda _: range(keys), declaration=None)
    asked = query_class(kind)("place", (), Rows(Scope(), None, None), **query)
    return asked.scales(engine, np.array(rows), np.arange(len(rows)))


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
