"""What a noisy channel tells of the value that it is given: a cost for each pair of values."""

from collections.abc import Sequence
from fractions import Fraction
from math import log, log1p

import numpy as np
from numpy.typing import ArrayLike

from takifugu.costs.cost import Cost, Matrix
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.priors.universe import Name


def channel_cost(values: Sequence[Name], channel: ArrayLike) -> Cost:
    r"""The cost of publishing a value through ``channel[value, output]``, each entry on its own.

    For u and v it is :math:`\max_o \log W(o|u)/W(o|v)`, exactly what one entry's output tells. Rows
    are read as exact rationals and divided by their sums; logarithms are rounded up.

    >>> channel_cost(["yes", "no"], [[3, 1], [1, 3]]).scalar >= 1.0986
    True
    """
    rows = np.asarray(channel, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(values) or not len(values) >= 2:
        raise InvalidMechanism(
            "channel",
            given=f"has shape {rows.shape}",
            needed=f"have a row for each of the {len(values)} values, two or more",
        )
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.sum(axis=1) > 0).all()):
        raise InvalidMechanism(
            "channel",
            given="has a row that is not a law",
            needed="hold numbers of 0 or more, some of them positive in each row",
        )
    table = rows.tolist()
    return Cost.of({Matrix(values, [[log_ratio(p, q) for q in table] for p in table]): 1})


def log_ratio(p: Sequence[float], q: Sequence[float], *, name: str = "the channel") -> float:
    """The largest log(p/q) over outputs, of rows divided by their sums; rounded up, 0 or more."""
    if any(x > 0 and y == 0 for x, y in zip(p, q, strict=True)):
        raise infinite_loss(name)
    totals = [sum(map(Fraction, row), Fraction(0)) for row in (p, q)]
    best = max(Fraction(x) / Fraction(y) for x, y in zip(p, q, strict=True) if x > 0)
    return log_up(max(best * totals[1] / totals[0], Fraction(1)))


def infinite_loss(name: str) -> UnsoundRequest:
    """The error for an output that tells two values apart for certain."""
    return UnsoundRequest(
        f"{name!r} has an output that one value of an entry allows and another forbids: its"
        " per-entry loss is infinite",
        field="channel",
        reason="infinite",
    )


def log_up(ratio: Fraction) -> float:
    """A float at or above log(ratio), for a ratio of at least 1."""
    if ratio == 1:
        return 0.0
    if ratio < 2:
        near = log1p(float(ratio - 1))
    else:
        near = log(ratio.numerator) - log(ratio.denominator)
        near += 2.0**-51 * (log(ratio.numerator) + log(ratio.denominator))
    return near * (1 + 2.0**-50)
