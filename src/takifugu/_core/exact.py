"""Numbers as exact rationals, and nothing else."""

import re
import sys
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite
from typing import SupportsFloat

from takifugu.errors import UnsoundRequest

Number = int | float | Fraction | str | SupportsFloat


LARGEST_EXPONENT = 999  # of a number given as text: "1e999999999" would fill the memory
MAX_EXPONENT_DIGITS = 100  # digits of it, leading zeros included
_EXPONENT = re.compile(
    r"[eE][+-]?([\d_]+)\s*$"
)  # as `Fraction` reads it: 1_0, digits of any script


def exactly(value: Number, name: str) -> Fraction:
    """``value`` as a rational: a float bit by bit, text such as "0.1" and a Decimal by digits."""
    if isinstance(value, bool):
        raise UnsoundRequest(f"{name} is {value}; it must be a number", field=name, given=value)
    if isinstance(value, Decimal):
        value = str(value)
    if isinstance(value, str):
        _refuse_huge_exponent(value, name)
    try:
        number = value if isinstance(value, int | Fraction | str) else float(value)
        if isinstance(number, float) and not isfinite(number):
            raise UnsoundRequest(f"{name} is {number}; it must be finite", field=name, given=number)
        return Fraction(number)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        if isinstance(error, UnsoundRequest):
            raise
        raise UnsoundRequest(
            f"{name} is {value!r:.80}; it must be a number", field=name, given=value
        ) from error


def _refuse_huge_exponent(text: str, name: str) -> None:
    exponent = _EXPONENT.search(text)
    digits = "" if exponent is None else exponent[1].replace("_", "")
    if digits and (len(digits) > MAX_EXPONENT_DIGITS or int(digits) > LARGEST_EXPONENT):
        raise UnsoundRequest(
            f"{name} has an exponent beyond ±{LARGEST_EXPONENT}; it must be within that",
            field=name,
            needed=LARGEST_EXPONENT,
        )


def at_least_zero(value: Number, name: str) -> Fraction:
    number = exactly(value, name)
    if number < 0:
        raise UnsoundRequest(
            f"{name} is {shown(number)}; it must be 0 or more", field=name, given=number
        )
    return number


def require_finite(value: float, name: str, *, positive: bool = False) -> None:
    """Raise unless ``value`` is finite, and 0 or more, or above 0 if it must be ``positive``."""
    if not (0 < value < inf if positive else 0 <= value < inf):  # also false for NaN
        needed = "positive and finite" if positive else "0 or more, and finite"
        raise UnsoundRequest(f"{name} is {value}; it must be {needed}", field=name, given=value)


def require_inside_one(value: float, name: str) -> None:
    """Raise unless ``value`` is a probability that is neither 0 nor 1."""
    if not 0 < value < 1:  # also false for NaN
        raise UnsoundRequest(
            f"{name} is {value}; it must be above 0 and below 1", field=name, given=value
        )


def shown(number: Fraction) -> str:
    """A number in a message, with a few digits; some are larger than any float."""
    try:
        return f"{float(number):g}"
    except OverflowError:
        return f"beyond {'-' if number < 0 else ''}1.8e308"


def is_finite(value: float) -> bool:
    """Whether a float holds it: `math.isfinite` fails on whole numbers that none does."""
    return abs(value) <= sys.float_info.max  # also false for NaN
