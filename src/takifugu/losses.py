"""What a release costs each entry that it uses, in the three currencies of DP.

A loss is an exact rational: the float that a proof gave, which was rounded up there. Rationals add
without rounding, so a million small charges add up exactly.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import SupportsFloat

from takifugu.errors import UnsoundRequest

Number = int | float | Fraction | str | SupportsFloat


LARGEST_EXPONENT = 999  # of a number given as text: "1e999999999" would fill the memory
LONGEST_EXPONENT = 100  # digits of it, leading zeros included
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
    found = _EXPONENT.search(text)
    digits = "" if found is None else found[1].replace("_", "")
    if digits and (len(digits) > LONGEST_EXPONENT or int(digits) > LARGEST_EXPONENT):
        raise UnsoundRequest(
            f"{name} has an exponent beyond ±{LARGEST_EXPONENT}; it must be within that",
            field=name,
            needed=LARGEST_EXPONENT,
        )


def _at_least_zero(value: Number, name: str) -> Fraction:
    number = exactly(value, name)
    if number < 0:
        raise UnsoundRequest(
            f"{name} is {float(number):g}; it must be 0 or more", field=name, given=number
        )
    return number


@dataclass(frozen=True)
class Pure:
    """Per-entry ε-DP, by replacement of one entry.

    >>> Pure("0.1").epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _at_least_zero(epsilon, "epsilon"))


@dataclass(frozen=True)
class Approximate:
    """Per-entry (ε, δ)-DP, by replacement of one entry."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _at_least_zero(delta, "delta"))
        if self.delta >= 1:
            raise UnsoundRequest(
                f"delta is {float(self.delta):g}; it must be below 1",
                field="delta",
                given=self.delta,
            )


@dataclass(frozen=True)
class Concentrated:
    """Per-entry ρ-zCDP (Bun and Steinke, 2016), by replacement of one entry."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _at_least_zero(rho, "rho"))


Loss = Pure | Approximate | Concentrated


@dataclass(frozen=True)
class Total:
    """Losses on the same entries, added up by currency; nothing is converted yet.

    Pure losses add, concentrated losses add, approximate losses add in both numbers (basic
    composition). The reader of a total chooses how to convert it.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def plus(self, loss: Loss) -> "Total":
        """This total and one more loss."""
        match loss:
            case Pure(epsilon=e):
                return Total(self.epsilon + e, self.delta, self.rho)
            case Approximate(epsilon=e, delta=d):
                return Total(self.epsilon + e, self.delta + d, self.rho)
            case Concentrated(rho=r):
                return Total(self.epsilon, self.delta, self.rho + r)

    @classmethod
    def of(cls, losses: Iterable[Loss]) -> "Total":
        """The sum of all ``losses``.

        >>> Total.of([Pure("0.1"), Pure("0.2"), Concentrated("0.01")])
        Total(epsilon=Fraction(3, 10), delta=Fraction(0, 1), rho=Fraction(1, 100))
        """
        total = cls()
        for loss in losses:
            total = total.plus(loss)
        return total
