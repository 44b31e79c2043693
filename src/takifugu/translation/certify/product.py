r"""Lower bounds: what a product of factors leaks.

A product :math:`g(D) = \prod_j g_j(x_j)` with :math:`g_j(u) \le e^{c_j(u,v)} g_j(v)` is admissible,
since changing entry j changes one factor: it is the likelihood of an output of randomised response
on every entry. So log E[g|s]/E[g|s′] is a loss that happens. A mechanism states the probability of
*every* output, so that c(u, v) = 0 means that u and v have the same law, and then c(v, u) = 0 too:
a cost is lowered to what complete mechanisms have. An output with likelihood proportional to g, as
rare as need be, then belongs to one of them.

**Rounding.** Every message is an expectation of a product of factors, which are at most
e^`MAX_RANGE` apart in total and scaled by powers of 2, which is exact: it is a sum of non-negative
terms of which those too small for a float are negligible. So relative errors add up, m + 8 units
for a step of m states, and ``slack`` for its rows. The last sum, with the entry's own factor, has
exponents of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, multiplied
from takifugu._core.rounding import UNIT
from takifugu.translation.certify.flow import closed
from takifugu.translation.certify.laws import row_slack

MAX_RANGE = 600.0  # of the logarithm of all factors but one: e^600 is a float, and its inverse
EXPONENTS = (-400, 900)  # a row with a number beyond 2 to these is scaled; e^600 is within them
LEAST_FACTOR = 2.0**-900  # beside the largest of its row


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The entries around a secret one.

    Attributes:
        ahead: For each step away from the entry, towards the end: ``[x, u]``, the law of the next.
        behind: The same towards the beginning: the backward rows.
        cost: ``[u, v]``: what a change of the entry itself costs.
        costs_ahead: The same for the entries after it, nearest first.
        costs_behind: The same for the entries before it, nearest first.
        law_slack: What the rounding of the entry's law, or of one backward row, can do to a
            log-ratio.
    """

    ahead: Sequence[Floats]
    behind: Sequence[Floats]
    cost: Floats
    costs_ahead: Sequence[Floats]
    costs_behind: Sequence[Floats]
    law_slack: float

    @property
    def slack(self) -> float:
        """What the rounding of all rows can do to a log-ratio."""
        steps = len(self.ahead) + len(self.behind)
        return steps * row_slack(len(self.cost)) + (1 + len(self.behind)) * self.law_slack


@dataclass(frozen=True, eq=False)
class Product:
    """A witness: the factor ``[x]`` of the entry, and ``[step, x]`` of those to each side."""

    here: Floats
    ahead: Floats
    behind: Floats

    def to_document(self) -> dict[str, Any]:
        """Plain lists, ready to be written as JSON."""
        parts = {"here": self.here, "ahead": self.ahead, "behind": self.behind}
        return {name: part.tolist() for name, part in parts.items()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Product":
        """The witness that `to_document` wrote."""
        names = ("here", "ahead", "behind")
        return cls(*(np.array(document[name], dtype=np.float64) for name in names))


class FactorCost:
    """The factors that one cost ``[u, v]`` admits.

    Attributes:
        class_of: ``[u]``: values between which a change costs nothing share one factor.
        heads: ``[class]``: the first value of each.
        cost: ``[class, class]``: what a change costs, rounded down.
    """

    def __init__(self, cost: Floats) -> None:
        free = (cost == 0) | (cost.T == 0)
        lowered = closed(np.where(free, 0.0, cost)) * (1 - 8 * (len(cost) + 4) * UNIT)
        first = np.argmax(lowered == 0, axis=1)
        self.heads, self.class_of = np.unique(first, return_inverse=True)
        self.cost: Floats = np.ascontiguousarray(lowered[np.ix_(self.heads, self.heads)])

    def admissible(self, factors: Floats) -> Floats:
        """``[row, u]``: the same or less, proven to obey the cost; 1 where that does not settle.

        A row of numbers that are too large or too small for floats is scaled.
        """
        level = factors[:, self.heads]
        valid = (np.isfinite(level) & (level > 0)).all(axis=1, keepdims=True)
        level = _scaled_rows(np.where(valid, level, 1.0))
        near = level >= LEAST_FACTOR * level.max(axis=1, keepdims=True)
        level = np.where(near.all(axis=1, keepdims=True), level, 1.0)
        if len(self.heads) > 1:
            with np.errstate(over="ignore"):  # to infinity, which forbids nothing
                gain = np.exp(self.cost) * (1 - 4 * UNIT)
            np.fill_diagonal(gain, np.inf)
            for _ in range(len(self.heads) + 2):
                reference = np.where(level == 1.0, 1.0, level * (1 - 2 * UNIT))  # times 1 is exact
                with np.errstate(over="ignore"):
                    allowed = (gain[None] * reference[:, None, :]).min(axis=2)
                broken = level > allowed
                if not broken.any():
                    break
                level = np.where(broken, allowed, level)
            else:
                level = np.where(broken.any(axis=1, keepdims=True), 1.0, level)
        else:
            level = np.ones_like(level)
        return level[:, self.class_of]


def lower(
    around: Neighbourhood, left: Floats, right: Floats, product: Product
) -> tuple[float, Product]:
    """At most what a product leaks, and its factors as they are admissible.

    ``left`` and ``right`` [x] are the laws of the entry given each side of the pair. 0 where the
    factors are not those of these entries, or more than floats can hold.
    """
    size = len(around.cost)
    shapes = ((size,), (len(around.ahead), size), (len(around.behind), size))
    parts = (product.here, product.ahead, product.behind)
    if any(np.shape(part) != shape for part, shape in zip(parts, shapes, strict=True)):
        nothing = Product(*(np.ones(shape) for shape in shapes))
        return 0.0, nothing
    costs = [*around.costs_ahead, *around.costs_behind]
    known = {id(cost): FactorCost(cost) for cost in (*costs, around.cost)}
    here = known[id(around.cost)].admissible(product.here[None])[0]
    sides = []
    for given, charged in (
        (product.ahead, around.costs_ahead),
        (product.behind, around.costs_behind),
    ):
        factors = np.ones(given.shape)
        numbers = np.array([id(cost) for cost in charged], dtype=np.int64)
        for key in set(numbers.tolist()):
            at = np.flatnonzero(numbers == key)
            factors[at] = known[key].admissible(given[at])
        sides.append(factors)
    admitted = Product(here, *sides)
    ranges = [float((np.log(f.max(axis=1)) - np.log(f.min(axis=1))).sum()) for f in sides if f.size]
    if not sum(ranges) <= MAX_RANGE + 1:
        return 0.0, admitted
    messages = [
        _message(rows, factors, size)
        for rows, factors in zip((around.ahead, around.behind), sides, strict=True)
    ]
    (above, top), (below, bottom) = (
        multiplied([law, here, *messages])[:2] for law in (left, right)
    )
    if not (above.any() and below.any()):
        return 0.0, admitted
    ratio = float(np.log(above.sum()) - np.log(below.sum()) + (top - bottom) * np.log(2.0))
    steps = len(around.ahead) + len(around.behind) + 2
    rounding = 4 * steps * (size + 8) * UNIT + 16 * UNIT * abs(ratio)
    return max(ratio - rounding - around.slack, 0.0), admitted


def _message(rows: Sequence[Floats], factors: Floats, size: int) -> Floats:
    """``[x]``: the expectation of the product of one side's factors given x, up to a factor."""
    message = np.ones(size)
    scaled = np.ldexp(factors, -np.frexp(factors.max(axis=1, initial=0.0))[1][:, None])
    for matrix, factor in zip(reversed(rows), scaled[::-1], strict=True):
        message = matrix @ (factor * message)
        message = message / message.max()
    return message


def _scaled_rows(rows: Floats) -> Floats:
    """Rows with a number far from 1, times a power of 2: their largest is from 1 to 2 then.

    Factors from 1 to e^`MAX_RANGE`, as searches propose them, stay as they are.
    """
    top, least = (np.frexp(part)[1] for part in (rows.max(axis=1), rows.min(axis=1)))
    far = (least < EXPONENTS[0]) | (top > EXPONENTS[1])
    scaled: Floats = np.ldexp(rows, np.where(far, 1 - top, 0)[:, None])
    return scaled
