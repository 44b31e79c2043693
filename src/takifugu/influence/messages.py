r"""Sets of messages: what the low-influence entries can say, with all but the extremes left out.

A *message* is a table over a few exposed entries, in several alternatives: one for each way the
known entries around them can turn out. Alternatives of different messages can be chosen freely,
so the weight of a secret's value x is multilinear in the alternatives, with non-negative
coefficients, and the ratio of the weights of x and y is linear-fractional in each of them. Its
largest value over a convex cone is therefore attained on an extreme ray: an alternative inside
the cone of the others never matters, for any secret pair, and is left out.

Rounding. Every message counts the relative roundings (``roundings`` units of 2⁻⁵³) by which its
cells, and the alternatives left out, can be off. By multilinearity the counts add up.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from takifugu.errors import TooLarge
from takifugu.numeric import UNIT, Booleans, Floats, Integers

ROOM = 2**22  # cells that one message may have
DEEPEST = -960  # binary exponent below which products could underflow


@dataclass(frozen=True, slots=True)
class Message:
    """``table`` is ``[alternative, …]`` with one axis for each entry of ``scope``, in order."""

    scope: tuple[int, ...]
    table: Floats
    roundings: int
    least: int  # a binary exponent below every positive cell
    exact: bool = True  # False if alternatives that cannot happen may be among them


def message(
    scope: tuple[int, ...], table: Floats, *, roundings: int, least: int, exact: bool
) -> Message:
    """A message with its alternatives scaled, by a power of two, and thinned out."""
    if least < DEEPEST:
        raise TooLarge("the weights of this split span more than float64 can hold")
    if table.size == 0:
        return Message(scope, table, roundings, least, exact)
    top = int(np.frexp(table.max())[1])
    scaled = np.ldexp(table, -top)  # exact: the smallest cell stays far above underflow
    kept, extra = extremes(scaled.reshape(len(scaled), -1))
    thinned = np.ascontiguousarray(scaled[kept])
    return Message(scope, thinned, roundings + extra, least - top, exact)


def times(one: Message, other: Message, sizes: tuple[int, ...]) -> Message:
    """Every alternative of one with every alternative of the other, multiplied."""
    scope = tuple(sorted({*one.scope, *other.scope}))
    shape = tuple(sizes[v] for v in scope)
    if len(one.table) * len(other.table) * prod(shape) > ROOM:
        raise TooLarge(f"a split needs more than {ROOM:,} cells at once")
    left = one.table.reshape(
        len(one.table), 1, *(sizes[v] if v in one.scope else 1 for v in scope)
    )
    right = other.table.reshape(
        1, len(other.table), *(sizes[v] if v in other.scope else 1 for v in scope)
    )
    product = (left * right).reshape(-1, *shape)
    return message(
        scope,
        product,
        roundings=one.roundings + other.roundings + 1,
        least=one.least + other.least,
        exact=one.exact and other.exact,
    )


def without(one: Message, entry: int, sizes: tuple[int, ...]) -> Message:
    """The message with ``entry`` summed out."""
    axis = one.scope.index(entry)
    return message(
        one.scope[:axis] + one.scope[axis + 1 :],
        one.table.sum(axis=axis + 1),
        roundings=one.roundings + sizes[entry] - 1,
        least=one.least,
        exact=one.exact,
    )


def extremes(rays: Floats) -> tuple[Integers, int]:
    """Which rows of ``rays`` span the cone of all of them, and the roundings this may cost.

    Exact for two columns. For three, a row is left out only if it lies in the cone of three
    others by a margin that rounding cannot explain. For more, only repeated rows are left out.
    """
    possible = np.flatnonzero(rays.any(axis=1))
    if len(possible) <= 1:
        return possible, 0
    rows = rays[possible]
    used = rows.any(axis=0)
    if not used.all():
        rows = np.ascontiguousarray(rows[:, used])
    if rows.shape[1] == 1:
        return possible[:1], 0
    if len(rows) == 2:
        return possible, 0
    if rows.shape[1] == 2:
        with np.errstate(divide="ignore"):
            ratio = rows[:, 0] / rows[:, 1]
        ends = sorted({int(ratio.argmin()), int(ratio.argmax())})
        return possible[ends], 2
    keep = _first_of_each(rows)
    if rows.shape[1] == 3 and len(keep) > 3:
        keep = keep[_not_inside(rows[keep])]
    return possible[keep], 0


def _first_of_each(rows: Floats) -> Integers:
    """The first of every group of equal rows, in order."""
    raw = np.ascontiguousarray(rows)
    whole = raw.view(np.dtype((np.void, raw.itemsize * raw.shape[1]))).ravel()
    first: Integers = np.sort(np.unique(whole, return_index=True)[1])
    return first


def _not_inside(rays: Floats) -> Integers:
    """Rows of three numbers that are not proved to lie inside the cone of others.

    Any convex hull will do to find the candidates; the proof is in the signs of determinants,
    each larger than 16 units of rounding of the terms it is made of.
    """
    hull = _hull(rays / rays.sum(axis=1, keepdims=True))
    if len(hull) < 3 or len(hull) == len(rays):
        return np.arange(len(rays))
    inner = np.ones(len(rays), dtype=np.bool_)
    inner[hull] = False
    points, first, corners = rays[inner], rays[hull[0]], rays[hull[1:]]
    a, b = corners[:-1], corners[1:]
    origin = np.broadcast_to(first, a.shape)
    inside: Booleans = np.zeros((len(points), len(a)), dtype=np.bool_)
    for sign in (1.0, -1.0):
        sure = np.ones_like(inside)
        for u, v in ((a, b), (b, origin), (origin, a)):
            value, size = _determinants(points, u, v)
            sure &= sign * value > 16 * UNIT * size
        inside |= sure
    inner[inner] = inside.any(axis=1)
    return np.flatnonzero(~inner)


def _determinants(points: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """``[point, triangle]``: det(point, u, v), and the sum of the sizes of its six terms."""
    plus = u[:, [1, 2, 0]] * v[:, [2, 0, 1]]
    minus = u[:, [2, 0, 1]] * v[:, [1, 2, 0]]
    return points @ (plus - minus).T, points @ (plus + minus).T


def _hull(points: Floats) -> list[int]:
    """The corners of the convex hull of the first two columns, in turn (Andrew's chain)."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    place = points.tolist()
    around: list[int] = []
    for way in (order, order[::-1]):
        chain: list[int] = []
        for new in way:
            x, y = place[new][0], place[new][1]
            while len(chain) >= 2:
                (px, py, _), (qx, qy, _) = place[chain[-2]], place[chain[-1]]
                if (qx - px) * (y - py) - (qy - py) * (x - px) > 0:
                    break
                chain.pop()
            chain.append(new)
        around += chain[:-1]
    return around
