"""Rational inputs and exact losses, so that a loss of 0 is a proof and not a rounding."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from takifugu._core.rounding import up
from takifugu.errors import InvalidPrior

Number = int | float | str | Decimal | Fraction | np.integer[Any] | np.floating[Any]
Exact = Fraction | float  # a float only when it is infinite


def exact(value: Number, field: str) -> Fraction:
    """The rational number that ``value`` is: a float counts as the binary fraction it holds.

    Write ``"0.1"`` or ``Fraction(1, 10)`` for one tenth.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        return Fraction(plain)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise InvalidPrior(
            field, given=f"holds {value!r}", needed="hold finite rational numbers"
        ) from error


def shares(weights: Sequence[Number], field: str) -> tuple[Fraction, ...]:
    """Positive ``weights`` as exact probabilities: divided by their total."""
    values = [exact(weight, field) for weight in weights]
    if not values:
        raise InvalidPrior(field, given="is empty", needed="hold at least one weight")
    if min(values) <= 0:
        raise InvalidPrior(
            field, given=f"holds {min(values)}", needed="hold weights above 0; leave out the rest"
        )
    total = sum(values)
    return tuple(value / total for value in values)


def open_probability(value: Number, field: str) -> Fraction:
    """A probability strictly between 0 and 1."""
    probability = exact(value, field)
    if not 0 < probability < 1:
        raise InvalidPrior(field, given=f"is {probability}", needed="be above 0 and below 1")
    return probability


@dataclass(frozen=True)
class ExactLoss:
    """A Pufferfish loss as the exact e^ε: the factor by which the odds can move.

    Attributes:
        ratio: e^ε, a rational number of at least 1, or infinity.
    """

    ratio: Exact

    def __post_init__(self) -> None:
        if not self.ratio >= 1:
            raise ValueError("a loss moves the odds by a factor of at least 1")

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all is revealed. Exact, without rounding."""
        return self.ratio == 1

    @property
    def epsilon(self) -> float:
        """ε = log of `ratio`, rounded up; 0 only where the loss is exactly 0."""
        return log_up(self.ratio)


def log_up(ratio: Exact) -> float:
    """The logarithm of a positive rational number, rounded up; exactly 0 at 1."""
    if ratio == 1:
        return 0.0
    if isinstance(ratio, float):
        return math.inf
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    near_one = float(ratio / Fraction(2) ** shift)  # between 1/2 and 2: no overflow
    return float(up(math.log(near_one) + shift * math.log(2)))


def worst_of(left: Mapping[Any, Fraction], right: Mapping[Any, Fraction]) -> ExactLoss:
    """The loss between two exact laws of the output, in both directions."""
    worst: Exact = Fraction(1)
    for output in {**left, **right}:
        p, q = left.get(output, Fraction(0)), right.get(output, Fraction(0))
        if p != q:
            worst = max(worst, max(p, q) / min(p, q) if min(p, q) > 0 else math.inf)
    return ExactLoss(worst)
