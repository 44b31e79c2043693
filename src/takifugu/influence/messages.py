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
from takifugu.influence.cones import extremes, notable
from takifugu.numeric import Floats

ROOM = 2**23  # cells that one message may have
DEEPEST = -960  # binary exponent below which products could underflow


@dataclass(frozen=True, slots=True)
class Message:
    """``table`` is ``[alternative, …]`` with one axis for each entry of ``scope``, in order."""

    scope: tuple[int, ...]
    table: Floats
    roundings: int
    least: int  # a binary exponent below every positive cell
    exact: bool = True  # False if alternatives that cannot happen may be among them
    thin: int = 0  # if not 0, at most so many alternatives, and some that matter may be lacking


def message(
    scope: tuple[int, ...],
    table: Floats,
    *,
    roundings: int,
    least: int,
    exact: bool = True,
    thin: int = 0,
) -> Message:
    """A message with its alternatives scaled, by a power of two, and only the extremes kept.

    A ``thin`` message keeps so many real alternatives, without proof that no other matters.
    """
    if least < DEEPEST:
        raise TooLarge("the weights of this split span more than float64 can hold")
    if table.size == 0:
        return Message(scope, table, roundings, least, exact, thin)
    top = int(np.frexp(table.max())[1])
    scaled = np.ldexp(table, -top)  # exact: the smallest cell stays far above underflow
    rays = scaled.reshape(len(scaled), -1)
    kept, extra = (notable(rays, thin), 0) if thin else extremes(rays)
    thinned = np.ascontiguousarray(scaled[kept])
    return Message(scope, thinned, roundings + extra, least - top, exact, thin)


def times(one: Message, other: Message, sizes: tuple[int, ...]) -> Message:
    """Every alternative of one with every alternative of the other, multiplied."""
    scope = tuple(sorted({*one.scope, *other.scope}))
    shape = tuple(sizes[v] for v in scope)
    if len(one.table) * len(other.table) * prod(shape) > ROOM:
        raise TooLarge(f"a split needs more than {ROOM:,} cells at once")
    left = one.table.reshape(len(one.table), 1, *(sizes[v] if v in one.scope else 1 for v in scope))
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
        thin=one.thin,
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
        thin=one.thin,
    )
