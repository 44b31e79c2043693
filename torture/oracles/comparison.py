"""What takifugu says of an instance beside what an oracle says of it, and what may not be."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

Rng = np.random.Generator
Instance = dict[str, Any]  # as it is written to a file: lists, numbers and names
EXACT = 1e-6  # the share within which a number may be called exact: not takifugu's own number
LEAST_SHOWN = 1e-6  # below it rounding is all: bounds are checked, ratios are not shown


@dataclass(frozen=True)
class Compared:
    """One statement of takifugu about one instance, beside the truth.

    Attributes:
        claim: What the statement is about.
        upper: What takifugu says that nothing exceeds.
        least: The truth is at least this.
        most: The truth is at most this; infinite if the oracle does not say.
        lower: What takifugu says that something attains; None if it says nothing.
        exact: Whether takifugu calls it exact; None if it does not say.
        bounded: Whether there always is a finite bound, so that none is a defect.
        counted: Whether it belongs to the distribution of the ratios.
    """

    claim: str
    upper: float
    least: Any
    most: Any
    lower: float | None = None
    exact: bool | None = None
    bounded: bool = True
    counted: bool = True

    def faults(self, off: float) -> Iterator[str]:
        """What must not be, if the oracle's own relative error is at most ``off``."""
        least, most = self.least * (1 - mpmath.mpf(off)), self.most * (1 + mpmath.mpf(off))
        if self.upper != self.upper or self.lower != self.lower:
            yield f"{self.claim}: a bound is not a number"
            return
        if not mpmath.mpf(self.upper) >= least:
            zero = " (0, and something leaks)" if self.upper == 0 else ""
            yield f"{self.claim}: the upper bound {self.upper!r} is below {_shown(least)}{zero}"
        if self.bounded and self.upper == np.inf and most < mpmath.inf:
            yield f"{self.claim}: no finite bound, and nothing leaks more than {_shown(most)}"
        if self.lower is not None:
            if mpmath.mpf(self.lower) > most:
                yield f"{self.claim}: the lower bound {self.lower!r} is above {_shown(most)}"
            if self.lower > self.upper:
                yield f"{self.claim}: the lower bound {self.lower!r} is above the upper"
        if self.exact and mpmath.mpf(self.upper) * (1 - mpmath.mpf(EXACT)) > most:
            yield f"{self.claim}: {self.upper!r} is called exact, and the truth is {_shown(most)}"

    @property
    def known(self) -> bool:
        """Whether the truth is known to a millionth."""
        return bool(self.most <= self.least * (1 + mpmath.mpf(EXACT)))

    @property
    def above(self) -> float | None:
        """The upper bound over the truth, or over what is known to leak; None if that is tiny."""
        if not LEAST_SHOWN <= self.least < mpmath.inf or not (self.known or self.open):
            return None
        return float(mpmath.mpf(self.upper) / self.least)

    @property
    def below(self) -> float | None:
        """The lower bound over the truth; None if there is none."""
        if self.lower is None or not (self.known and LEAST_SHOWN <= self.most < mpmath.inf):
            return None
        return float(mpmath.mpf(self.lower) / self.most)

    @property
    def open(self) -> bool:
        """Whether the oracle says from below only."""
        return bool(self.most == mpmath.inf)


@dataclass(frozen=True)
class Allowance:
    """That takifugu was asked what a target allows; what that loses is compared after it.

    Attributes:
        nothing: Whether it allows nothing, which no oracle can find too much.
    """

    nothing: bool


@dataclass(frozen=True)
class Family:
    """Instances of one kind, and two ways to know their losses that share no code.

    Attributes:
        name: What they are.
        oracle: Where the truth comes from.
        draw: A random instance.
        compare: takifugu's answers for an instance beside the truth.
        off: The relative error of the oracle itself, at most.
    """

    name: str
    oracle: str
    draw: Callable[[Rng], Instance]
    compare: Callable[[Instance], Iterable[Compared | Allowance]]
    off: float = 1e-30


def _shown(value: Any) -> str:
    return str(mpmath.nstr(value, 20))
