"""Chains whose transitions are known only within bounds."""

from dataclasses import dataclass
from math import fsum
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import LEAST, Floats, numbers
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import (
    SequencePrior,
    checked_length,
    named_states,
    refuse_other_words,
)
from takifugu.priors.universe import State


@dataclass(frozen=True, eq=False)
class IntervalMarkovChain(SequencePrior):
    """Every chain whose transition probabilities lie between two matrices.

    This is a set Θ of priors. **Each step may use another matrix** of the set, chosen row by row:
    the chains with one fixed matrix are among them. With ``start="any"`` the first entry may have
    any law; with ``"stationary"`` the entries are a window of a process that has no beginning: the
    stationary chains with one fixed matrix are among these. Bounds whose sums are 1 as floats but
    not exactly, as 0.9 and 0.1, stand for the row divided by its sum.

    >>> IntervalMarkovChain([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]]).states
    (0, 1)
    """

    kind: ClassVar[str] = "interval-markov-chain"

    lower: Floats
    upper: Floats
    states: tuple[State, ...] = ()
    start: Literal["any", "stationary"] = "any"
    length: int | None = None

    def __post_init__(self) -> None:
        low, high = _bounds(self.lower, "lower"), _bounds(self.upper, "upper")
        if low.shape != high.shape:
            raise InvalidPrior(
                "upper", given=f"has shape {high.shape}", needed=f"be {low.shape} like `lower`"
            )
        if not (low <= high).all():
            x, y = (int(i) for i in np.argwhere(low > high)[0])
            raise InvalidPrior(
                "lower",
                given=f"row {x}, place {y} is {low[x, y]:g}, above {high[x, y]:g}",
                needed="be at most `upper`",
            )
        for x, (least, most) in enumerate(zip(low, high, strict=True)):
            if not fsum(least) <= 1 <= fsum(most):
                raise InvalidPrior(
                    "lower",
                    given=f"row {x} sums to {fsum(least):.6g} and `upper` to {fsum(most):.6g}",
                    needed="leave room for probabilities that sum to 1 between them",
                )
        refuse_other_words("start", self.start, ("any", "stationary"))
        states, length = named_states(self.states, len(low)), checked_length(self.length)
        self._set(lower=low, upper=high, states=states, length=length)

    @classmethod
    def around(
        cls,
        chain: MarkovChain,
        *,
        relative: float,
        start: Literal["any", "stationary"] | None = None,
    ) -> "IntervalMarkovChain":
        """Each transition of ``chain`` may be off by a factor of 1 ± ``relative``; 0 stays 0.

        The start is taken to be stationary if that of ``chain`` is, otherwise any.
        """
        if not 0 <= relative < 1:  # also false for NaN
            raise InvalidPrior(
                "relative", given=f"is {relative}", needed="be at least 0 and below 1"
            )
        if not chain.homogeneous:
            raise InvalidPrior(
                "transition", given="changes from step to step", needed="be one matrix here"
            )
        if chain.known != "none":
            raise UnsoundRequest(
                "a chain with known = 'any' cannot be widened: intervals do not bound what somebody"
                " learns who knows entries; widen it with known = 'none'",
                field="known",
                given=chain.known,
            )
        wide = 2 * chain.row_error  # the exactly normalised chain is inside, rounding and all
        kernel = chain.kernel()
        rest: Literal["any", "stationary"] = "stationary" if chain.stationary_start else "any"
        low = kernel * ((1 - relative) * (1 - wide))
        return cls(
            np.where(low < LEAST, 0.0, low),
            np.minimum(kernel * ((1 + relative) * (1 + wide)), 1.0),
            chain.states,
            rest if start is None else start,
            chain.length,
            fitted_on=chain.fitted_on,
        )


def _bounds(values: ArrayLike, field: str) -> Floats:
    array = numbers(values, field, InvalidPrior, needed="be a square matrix of numbers")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise InvalidPrior(field, given=f"has shape {array.shape}", needed="be a square matrix")
    if not ((array >= 0) & (array <= 1)).all():  # also false for NaN
        raise InvalidPrior(field, given="holds something else", needed="hold numbers from 0 to 1")
    small = (array > 0) & (array < LEAST)
    if small.any():
        x, y = (int(i) for i in np.argwhere(small)[0])
        raise InvalidPrior(
            field,
            given=f"row {x}, place {y} is {array[x, y]:g}",
            needed=f"be 0 or at least {LEAST:.3g}; write 0 for what cannot happen",
        )
    return array
