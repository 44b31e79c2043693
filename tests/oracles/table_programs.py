r"""Slow truth about tables: linear programs over all values of a small table.

A table has rows, and a row has columns. Its law is an array with one axis for each *row*, whose
places are the row's values: all tuples of its columns' values, the last column fastest. What a row
has lost is a matrix between such tuples, put together here from what a ledger says of it:

* any change of the row costs ε;
* any change of some columns, together, costs ε (a cross-tabulation);
* a change of one column costs what its own matrix says.

A secret is about one column of one row: x there against y, whatever the other columns are. The
programs themselves are those of `cost_programs`. Nothing here is taken from the package.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import log

import numpy as np

from tests.oracles.cost_programs import Array, Mask, Solved, worst_loss

Pair = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class RowTerm:
    """A cost on some columns of a row, by number: a matrix between their joint values."""

    columns: tuple[int, ...]
    cost: Array


def row_values(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The values of a row, in order."""
    return list(product(*(range(size) for size in sizes)))


def any_change(sizes: Sequence[int], columns: Sequence[int], epsilon: float) -> RowTerm:
    """ε if any of these columns differs."""
    count = len(row_values([sizes[c] for c in columns]))
    return RowTerm(tuple(columns), epsilon * (1.0 - np.eye(count)))


def row_matrix(sizes: Sequence[int], terms: Sequence[RowTerm]) -> Array:
    """``[u, v]``: what the change from row u to row v costs."""
    values = row_values(sizes)
    total = np.zeros((len(values), len(values)))
    for term in terms:
        inner = {v: k for k, v in enumerate(row_values([sizes[c] for c in term.columns]))}
        for (i, u), (j, v) in product(enumerate(values), repeat=2):
            one, other = (inner[tuple(row[c] for c in term.columns)] for row in (u, v))
            total[i, j] += term.cost[one, other]
    return total


def independent_rows(laws: Sequence[Array]) -> Array:
    """``[row, …]``: the law of rows that do not depend on each other."""
    table = np.ones(())
    for law in laws:
        table = table[..., None] * np.asarray(law, dtype=np.float64).ravel()
    return table


def cells_of_steps(table: Array, sizes: Sequence[int]) -> Array:
    """A row for each member and step, from a chain whose joint states are the members' states."""
    return table.reshape(tuple(size for _ in range(table.ndim) for size in sizes))


def all_pairs(size: int) -> list[Pair]:
    """Every ordered pair of values."""
    return [((x,), (y,)) for x, y in permutations(range(size), 2)]


def column_is(
    shape: Sequence[int], sizes: Sequence[int], row: int, column: int, values: Sequence[int]
) -> Mask:
    """The tables in which a column of a row has one of ``values``."""
    holds = np.array([value[column] in values for value in row_values(sizes)])
    axes = [1] * len(shape)
    axes[row] = shape[row]
    return np.broadcast_to(holds.reshape(axes), tuple(shape))


def column_losses(
    table: Array,
    sizes: Sequence[int],
    matrices: Sequence[Array],
    column: int,
    pairs: Sequence[Pair] | None = None,
    rows: Sequence[int] | None = None,
) -> Iterator[Solved]:
    """The worst loss of each possible secret about a column; ``matrices[r]`` is row r's cost."""
    for row in range(table.ndim) if rows is None else rows:
        for left, right in all_pairs(sizes[column]) if pairs is None else pairs:
            sides = [column_is(table.shape, sizes, row, column, side) for side in (left, right)]
            if all((table * side).sum() > 0 for side in sides):
                yield worst_loss(table, matrices, *sides)


def noisy_counts_leak(
    law: Mapping[tuple[int, ...], float], read: Mapping[int, float], column: int
) -> float:
    """What noisy sums of two-valued columns leak about another one, in the limit of large noise.

    ``law`` is that of a row, ``read`` the 1/scale of the noise on the sum of a column. Laplace
    noise of scale b has the likelihood e^{x/b} of a sum x below its output, and e^{−x/b} above: the
    largest of both ends for every column.
    """
    worst = 0.0
    for signs in product((1, -1), repeat=len(read)):
        sums = [[0.0, 0.0], [0.0, 0.0]]
        for row, weight in law.items():
            tilt = sum(s * e * row[c] for s, (c, e) in zip(signs, read.items(), strict=True))
            sums[row[column]][0] += weight * float(np.exp(tilt))
            sums[row[column]][1] += weight
        ratio = log(sums[1][0] / sums[1][1]) - log(sums[0][0] / sums[0][1])
        worst = max(worst, abs(ratio))
    return worst
