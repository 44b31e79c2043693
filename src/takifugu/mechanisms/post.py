"""What may be done to released numbers for free: no entry loses anything more.

Nothing here reads data. Every function takes what was released, and the law of its noise, which is
public.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, Integers
from takifugu.errors import InvalidMechanism
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms.mechanism_protocol import counts, noise_scale, positive, scores, whole


def rounded(values: ArrayLike, *, step: float = 1.0) -> Floats:
    """Each number to the nearest multiple of ``step``."""
    width = positive(step, "step")
    return np.asarray(np.rint(_numbers(values) / width) * width)


def at_least_zero(values: ArrayLike) -> Floats:
    """Negative numbers become 0. Sums of such numbers are biased upwards."""
    return np.maximum(_numbers(values), 0.0)


def nearest_with_total(values: ArrayLike, total: int) -> tuple[list[int], int]:
    r"""Numbers of at least 0 that add up to ``total``, nearest to whole ``values``: exact.

    The Euclidean projection onto a simplex (Held, Wolfe and Crowder, 1974):
    :math:`\max(x_i - \tau, 0)` with the :math:`\tau` that makes them add up. With k of them above
    0, :math:`\tau = (\sum x_i - \text{total}) / k` over these. It is returned as whole numerators
    and their common denominator k.

    >>> nearest_with_total([5, 3, -4], 6)
    ([8, 4, 0], 2)
    """
    numbers, target = counts(values).ravel(), whole(total, "total", least=0)
    top = int(numbers.max())
    # a shift of all moves nothing, and what is ``total`` below the top becomes 0: small numbers
    y = np.maximum(numbers - top, -target).astype(object if target >= 2**31 else np.int64)
    ordered = np.sort(y)[::-1]
    many = np.arange(1, len(y) + 1).astype(y.dtype)
    above = many * ordered > np.cumsum(ordered) - target  # kept: x_k > τ_k
    k = int(np.flatnonzero(above)[-1]) + 1 if above.any() else 1
    excess = int(sum(ordered[:k].tolist())) - target  # k τ
    return [max(k * x - excess, 0) for x in y.tolist()], k


def whole_with_total(values: ArrayLike, total: int) -> Integers:
    """Whole numbers of at least 0 that add up to ``total``, near ``values``.

    The nearest point of the simplex (Euclidean projection), then largest remainders. Of whole
    ``values`` it is exact, and no whole numbers that add up to ``total`` are nearer: all that stay
    above 0 have one remainder, and the first of them are rounded up.
    """
    numbers = _numbers(values)
    target = whole(total, "total", least=0)
    if numbers.ndim != 1:
        raise InvalidMechanism("values", given=f"has shape {numbers.shape}", needed="be a list")
    if np.asarray(values).dtype.kind in "iu":
        above, k = nearest_with_total(values, target)
        parts = [x // k for x in above]
        over = [i for i, x in enumerate(above) if x > 0][: target - sum(parts)]
        for i in over:
            parts[i] += 1
        return np.array(parts, dtype=np.int64)
    ordered = np.sort(numbers)[::-1]
    shift = (np.cumsum(ordered) - target) / np.arange(1, len(ordered) + 1)
    above_level = np.flatnonzero(ordered - shift >= 0)
    level = shift[above_level[-1]] if len(above_level) else shift[-1]
    inside = np.maximum(numbers - level, 0.0)
    down = np.floor(inside + 1e-9)
    missing = int(target - down.sum())
    first = np.argsort(-(inside - down), kind="stable")
    down[first[:missing]] += 1
    return np.asarray(down, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Noisy numbers made to agree, and how sure each of them is now.

    Attributes:
        values: The nearest numbers, weighted by certainty, that satisfy every equation.
        deviation: The standard deviation of each; never more than before.
    """

    values: Floats
    deviation: Floats


def consistent(values: ArrayLike, deviations: ArrayLike, equations: ArrayLike) -> Consistent:
    r"""Project noisy numbers onto the equations that the true ones satisfy.

    With independent unbiased noise of known variances V, the least squares estimate under
    :math:`A x = 0` is :math:`x - V A^T (A V A^T)^{+} A x`: linear, unbiased and of least variance
    among such (Gauss and Markov), whatever the shape of the noise.

    Args:
        values: ``[number]``: what was released.
        deviations: ``[number]``: the standard deviation of each; 0 for what is known exactly.
        equations: ``[equation, number]``: coefficients of sums that must be 0.
    """
    x, spread = _numbers(values), _numbers(deviations)
    A = np.atleast_2d(_numbers(equations))
    if x.ndim != 1 or spread.shape != x.shape or A.shape[1:] != x.shape:
        raise InvalidMechanism(
            "equations",
            given=f"has shape {A.shape} for values of shape {x.shape}",
            needed="have a column for each value, and each value a deviation",
        )
    if (spread < 0).any():
        raise InvalidMechanism("deviations", given="holds a negative number", needed="be ≥ 0")
    V = spread**2
    top = V.max(initial=0.0) or 1.0  # scale out, so that the pseudo-inverse judges ranks well
    gain = (A * (V / top)).T @ np.linalg.pinv((A * (V / top)) @ A.T, hermitian=True)
    left = V - np.einsum("ij,ji->i", gain, A * V)
    return Consistent(x - gain @ (A @ x), np.sqrt(np.maximum(left, 0.0)))


def totals_and_groups(
    groups: ArrayLike, total: float, *, group_deviation: float, total_deviation: float
) -> tuple[Consistent, float]:
    """Noisy groups and their noisy total, made to add up: the groups, and the total.

    >>> found, total = totals_and_groups([4, 5], 12, group_deviation=1, total_deviation=1)
    >>> found.values.round(6), round(total, 6)
    (array([5., 6.]), 11.0)
    """
    parts = _numbers(groups).ravel()
    values = np.append(parts, total)
    deviations = np.append(np.full(len(parts), group_deviation), total_deviation)
    projected = consistent(values, deviations, np.append(np.ones(len(parts)), -1.0)[None, :])
    return Consistent(projected.values[:-1], projected.deviation[:-1]), float(projected.values[-1])


def marginals(
    cells: ArrayLike,
    rows: ArrayLike,
    columns: ArrayLike,
    *,
    cell_deviation: float,
    row_deviation: float,
    column_deviation: float,
) -> Consistent:
    """A noisy table and its noisy margins, made to add up: the cells, row by row."""
    table, r, c = _numbers(cells), _numbers(rows), _numbers(columns)
    if table.ndim != 2 or r.shape != table.shape[:1] or c.shape != table.shape[1:]:
        raise InvalidMechanism(
            "cells",
            given=f"has shape {table.shape} with {r.size} rows and {c.size} columns",
            needed="be a table with one margin for each row and column",
        )
    m, n = table.shape
    sums_of_rows = np.hstack([np.kron(np.eye(m), np.ones(n)), -np.eye(m), np.zeros((m, n))])
    sums_of_columns = np.hstack([np.tile(np.eye(n), m), np.zeros((n, m)), -np.eye(n)])
    deviations = np.repeat([cell_deviation, row_deviation, column_deviation], [m * n, m, n])
    projected = consistent(
        np.concatenate([table.ravel(), r, c]),
        deviations,
        np.vstack([sums_of_rows, sums_of_columns]),
    )
    cells_only = slice(0, m * n)
    return Consistent(
        projected.values[cells_only].reshape(m, n), projected.deviation[cells_only].reshape(m, n)
    )


@dataclass(frozen=True, eq=False)
class Ranking:
    """Who leads, and how sure that is, from noisy counts and the law of their noise.

    Attributes:
        order: ``[rank]``: candidates by noisy count, ties in order.
        probabilities: ``[rank, candidate]``: of each true rank, when before the release every
            vector of counts was as likely as any other (a flat prior).
        confidence: How sure "the leader is first" is without any prior: a claim made
            whenever this is at least 1 − α is wrong at most a share α of the time.
    """

    order: Integers
    probabilities: Floats
    confidence: float

    @property
    def leads(self) -> float:
        """The probability, under the flat prior, that the leader is first."""
        return float(self.probabilities[0, self.order[0]])


def ranks(noisy: ArrayLike, *, scale: float, places: int = 1) -> Ranking:
    """Ranks with confidence from counts released with integer Laplace noise of ``scale``.

    Under a flat prior the true counts are the noisy ones plus noise of the same, symmetric,
    law. Without a prior: all noise is within ±h with probability P(|Z| ≤ h)ⁿ, and a lead of more
    than 2h is then a true lead.
    """
    counted = scores(noisy, k=whole(places, "places"))
    if counted.ndim != 1:
        raise InvalidMechanism("noisy", given=f"has shape {counted.shape}", needed="be a list")
    width = noise_scale(scale)
    order = np.argsort(-counted, kind="stable")
    probabilities = noise_laws.laplace_places(counted, places, width)
    lead = int(counted[order[0]] - counted[order[1]]) if len(counted) > 1 else 2**40
    reach = (lead - 1) // 2  # the largest h with lead > 2h
    beyond = (
        2 * float(noise_laws.laplace_above(width, np.array(float(reach)))) if reach >= 0 else 1.0
    )
    return Ranking(order, probabilities, float((1 - beyond) ** len(counted)))


def _numbers(values: ArrayLike) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidMechanism(
            "values", given="is not an array of numbers", needed="hold numbers"
        ) from error
    if array.size == 0 or not np.isfinite(array).all():
        raise InvalidMechanism(
            "values", given="is empty or holds NaN or infinity", needed="hold finite numbers"
        )
    return array
