"""Names, keys, odds, steps of time and scales of answers at their edges, without a table."""

from typing import Any

import pytest

from takifugu.binding.entries import numbers
from takifugu.session.possible_answers import MAX_NUMBER_DIGITS, counting_order
from takifugu.session.time_steps import until_step

pytestmark = pytest.mark.nightly


def test_keys_of_up_to_three_hundred_digits_are_numbers() -> None:
    longest, longer = "9" * MAX_NUMBER_DIGITS, "1" + "0" * MAX_NUMBER_DIGITS
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
