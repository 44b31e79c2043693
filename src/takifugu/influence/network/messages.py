r"""Messages of low-influence entries, with all but the extreme rows left out.

A *message* is a table over a few exposed entries, in several rows: one for each way the known
entries around them can turn out. Rows of different messages can be chosen freely, so the weight
of a secret's value x is multilinear in the rows, with non-negative coefficients, and the ratio of
the weights of x and y is linear-fractional in each of them. Its largest value over a convex cone
is therefore attained on an extreme ray: a row inside the cone of the others never matters, for
any secret pair, and is left out. The length of a row never matters either.

Rounding. Every message counts the relative roundings (``roundings`` units of 2⁻⁵³) by which its
cells, and the rows left out, can be off. By multilinearity the counts add up.
"""

from dataclasses import dataclass

import numpy as np

from takifugu.errors import TooLarge
from takifugu.influence.network.cones import extremes
from takifugu.numeric import Booleans, Floats, Integers

DEEPEST = -960  # binary exponent below which products could underflow


@dataclass(frozen=True, slots=True)
class Message:
    """``rows`` is ``[row, cell]``; no row is all zeros."""

    rows: Floats
    roundings: int
    depth: int  # a binary exponent: positive cells lie between 2^−depth and 2^depth


def message(table: Floats, *, roundings: int, least: int) -> Message:
    """A message with only the extreme rows kept, each scaled.

    The scale puts the largest and the least positive cell of a row at the same distance from 1:
    then the most and the least over all rows lie close together.
    """
    if least < DEEPEST:
        raise TooLarge("the weights of this split span more than float64 can hold")
    if table.size == 0:
        return Message(table, roundings, 0)
    kept, extra = extremes(np.ldexp(table, -int(np.frexp(table.max())[1])))
    rows = table[kept]
    if not len(rows):
        return Message(rows, roundings, 0)
    high = rows.max(axis=1)
    low = np.where(rows > 0, rows, np.inf).min(axis=1)
    scaled = rows / (np.sqrt(high) * np.sqrt(low))[:, None]
    depth = int(np.log2(high / low).max()) // 2 + 2
    return Message(scaled, roundings + extra + 1, depth)


class Messages:
    """A growing store of messages in flat arrays, for compiled loops."""

    def __init__(self) -> None:
        self.roundings: list[int] = []
        self.depth: list[int] = []
        self._cells: Floats = np.zeros(1024)
        self._limits: Floats = np.zeros(1024)
        self._used = self._bounded = 0
        self._table: Integers = np.zeros((64, 5), dtype=np.int64)

    def keep(self, made: Message) -> int:
        """Store a message; return its number."""
        number = len(self.roundings)
        count, width = made.rows.shape
        self._cells = _room(self._cells, self._used + made.rows.size)
        self._limits = _room(self._limits, self._bounded + 2 * width)
        if number == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._cells[self._used : self._used + made.rows.size] = made.rows.ravel()
        most, least = self._bounded, self._bounded + width
        self._limits[most:least] = made.rows.max(axis=0)
        self._limits[least : least + width] = made.rows.min(axis=0)
        self._table[number] = self._used, count, width, most, least
        self._used += made.rows.size
        self._bounded += 2 * width
        self.roundings.append(made.roundings)
        self.depth.append(made.depth)
        return number

    def several(self, numbers: Integers) -> Booleans:
        """Which of these messages have more than one row."""
        found: Booleans = self._table[numbers, 1] > 1
        return found

    def arrays(self) -> tuple[Floats, Integers, Integers, Integers, Floats, Integers]:
        """Cells, where each message starts, its rows, its width; limits, and where they start."""
        table = self._table
        return self._cells, table[:, 0], table[:, 1], table[:, 2], self._limits, table[:, 3:]


def _room(array: Floats, needed: int) -> Floats:
    """The array, or a longer copy of it."""
    if needed <= len(array):
        return array
    longer = np.zeros(max(needed, 2 * len(array)))
    longer[: len(array)] = array
    return longer
