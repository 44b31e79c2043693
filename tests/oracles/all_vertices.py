r"""The worst loss without a solver: every extreme mechanism is listed, and sums are whole numbers.

The likelihoods g of an output form the cone of all g > 0 with :math:`g(D) \le e^{c(D,D')} g(D')`
for datasets that differ in one entry. A ratio of two sums with non-negative weights,
E[g|left] / E[g|right], is largest at an extreme ray of it. There N − 1 independent constraints are
tight, which connect all N datasets: starting from the first one, every log g is spelled out by
following tight constraints. Here costs are whole numbers of one unit ε, so that every log g is a
whole number of them and is listed once for all ε and all laws.

Sums are whole numbers too: probabilities are fractions, and the powers of e^ε are rounded to so
many binary digits that 40 decimal digits of a loss are right, however small it is. Nothing here is
taken from the package.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

import mpmath
import numpy as np

Row = tuple[int, ...]
Law = Mapping[Row, Fraction]
Matrix = tuple[tuple[int, ...], ...]
Side = Sequence[int]
MOST_PARTIAL = 12_000  # mechanisms that are begun, before a world is called too large
DIGITS = 40


class TooManyMechanisms(Exception):
    """There are too many extreme mechanisms to list."""


def closed(matrix: Sequence[Sequence[int]]) -> Matrix:
    """The cost of the cheapest way from u to v."""
    found = [[0 if u == v else int(c) for v, c in enumerate(row)] for u, row in enumerate(matrix)]
    for w, u, v in product(range(len(found)), repeat=3):
        found[u][v] = min(found[u][v], found[u][w] + found[w][v])
    return tuple(map(tuple, found))


@cache
def extreme_levels(costs: tuple[Matrix, ...]) -> tuple[Row, ...]:
    """``[mechanism][dataset]``: log g in units, the least 0; none if there are too many.

    Datasets are in lexicographic order.
    """
    cells = list(product(*(range(len(cost)) for cost in costs)))
    place = {cell: k for k, cell in enumerate(cells)}
    near: list[list[tuple[int, int, int]]] = []  # the neighbour, what it costs to and from there
    for cell in cells:
        ways = []
        for j, cost in enumerate(costs):
            for v in range(len(cost)):
                if v != cell[j]:
                    there = place[*cell[:j], v, *cell[j + 1 :]]
                    ways.append((there, cost[cell[j]][v], cost[v][cell[j]]))
        near.append(ways)
    complete: set[Row] = set()
    seen: set[tuple[int | None, ...]] = set()
    stack: list[tuple[int | None, ...]] = [(0,) + (None,) * (len(cells) - 1)]
    while stack:
        partial = stack.pop()
        if partial in seen:
            continue
        seen.add(partial)
        if len(seen) > MOST_PARTIAL:
            return ()
        known = [level for level in partial if level is not None]
        if len(known) == len(cells):
            complete.add(tuple(level - min(known) for level in known))
            continue
        for a, value in enumerate(partial):
            if value is None:
                continue
            for b, to, back in near[a]:
                if partial[b] is not None:
                    continue
                stack.extend(  # log g(a) = c + log g(b), or the reverse
                    (*partial[:b], level, *partial[b + 1 :])
                    for level in {value - to, value + back}
                    if all(_apart(level, partial[c], out, home) for c, out, home in near[b])
                )
    return tuple(sorted(complete))


def _apart(level: int, other: int | None, out: int, home: int) -> bool:
    """Whether two neighbours are as close as their costs ask."""
    return other is None or (level - other <= out and other - level <= home)


def pair_loss(
    law: Law, costs: Sequence[Matrix], unit: float | Fraction, entry: int, left: Side, right: Side
) -> Any | None:
    """The worst loss of "entry in left" against "in right"; None if a side is impossible.

    With one value on each side that entry is fixed: every way from one side to the other pays
    its cost, and what a mechanism makes of the other entries is admissible there.
    """
    sides = [
        {row: p for row, p in law.items() if p and row[entry] in side} for side in (left, right)
    ]
    if not all(sides):
        return None
    kept = list(range(len(costs)))
    own = 0
    if len(left) == len(right) == 1:
        kept.remove(entry)
        own = costs[entry][left[0]][right[0]]
    merged = [_classes(costs[j]) for j in kept]
    shapes = tuple(shape for shape, _ in merged)
    cells = [tuple(row) for row in product(*(range(len(cost)) for cost in shapes))]
    weights = []
    for side in sides:
        found = dict.fromkeys(cells, Fraction(0))
        for row, p in side.items():
            found[tuple(place[row[j]] for j, (_, place) in zip(kept, merged, strict=True))] += p
        weights.append([found[cell] for cell in cells])
    levels = extreme_levels(shapes)
    if not levels:
        raise TooManyMechanisms(f"{len(cells)} datasets")
    return _worst(weights[0], weights[1], levels, Fraction(unit), own)


@cache
def _classes(cost: Matrix) -> tuple[Matrix, Row]:
    """Values between which every change is free count as one: their costs, and who is whose."""
    place: list[int] = []
    first: list[int] = []
    for u in range(len(cost)):
        same = [k for k, v in enumerate(first) if cost[u][v] == 0 == cost[v][u]]
        place.append(same[0] if same else len(first))
        if not same:
            first.append(u)
    return tuple(tuple(cost[u][v] for v in first) for u in first), tuple(place)


def _worst(
    one: list[Fraction], other: list[Fraction], levels: Sequence[Row], unit: Fraction, own: int
) -> Any:
    """``own`` units and the largest log of Σ one·g / Σ other·g, each weighed by its own sum."""
    if not unit:
        return mpmath.mpf(0)
    positive = [p for p in (*one, *other) if p]
    small = max(_binary_digits(1 / unit), 0)
    bits = 4 * DIGITS + 64 + 2 * small + max(_binary_digits(1 / p) for p in positive)
    sums = [sum(side) for side in (one, other)]
    whole = [
        np.array([int(p * 2**bits / total) for p in side], dtype=object)
        for side, total in zip((one, other), sums, strict=True)
    ]
    most = max(map(max, levels))
    digits = int(0.31 * bits) + 20 + int(0.44 * most * unit)
    with mpmath.workdps(digits):
        step = mpmath.exp(mpmath.mpf(unit.numerator) / unit.denominator)
        powers = [int(mpmath.ldexp(step**k, bits)) for k in range(most + 1)]
        gains = np.array([[powers[k] for k in row] for row in levels], dtype=object)
        above, below = gains @ whole[0], gains @ whole[1]
        ratios = [(int(n) << bits) // int(d) for n, d in zip(above, below, strict=True)]
        k = ratios.index(max(ratios))
        totals = [int(part.sum()) for part in whole]
        loss = mpmath.log(
            mpmath.mpf(int(above[k]) * totals[1]) / mpmath.mpf(int(below[k]) * totals[0])
        )
        found = loss + own * mpmath.mpf(unit.numerator) / unit.denominator
    with mpmath.workdps(DIGITS):
        return max(+found, mpmath.mpf(0))


def _binary_digits(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def exact_rows(rows: Iterable[Iterable[float]]) -> list[list[Fraction]]:
    """Rows of floats as fractions, divided by their exact sums."""
    return [normalised(row) for row in rows]


def normalised(row: Iterable[float]) -> list[Fraction]:
    """One law."""
    exact = [Fraction(float(v)) for v in row]
    total = sum(exact)
    return [v / total for v in exact]


def chain_law(start: Sequence[Fraction], steps: Sequence[Sequence[Sequence[Fraction]]]) -> Law:
    """The probability of every path that can happen."""
    found: dict[Row, Fraction] = {(x,): p for x, p in enumerate(start) if p}
    for step in steps:
        found = {
            (*path, y): p * q
            for path, p in found.items()
            for y, q in enumerate(step[path[-1]])
            if q
        }
    return found


def factor_law(sizes: Sequence[int], factors: Sequence[tuple[Sequence[int], Any]]) -> Law:
    """The product of tables over some entries each, divided by its sum."""
    found: dict[Row, Fraction] = {}
    for row in product(*map(range, sizes)):
        weight = Fraction(1)
        for scope, table in factors:
            cell: Any = table
            for j in scope:
                cell = cell[row[j]]
            weight *= Fraction(cell)
            if not weight:
                break
        if weight:
            found[row] = weight
    total = sum(found.values())
    return {row: weight / total for row, weight in found.items()}


def asked_pairs(size: int, groups: tuple[Side, Side] | None) -> Iterator[tuple[Side, Side]]:
    """Every ordered pair of values, or two groups both ways."""
    if groups is not None:
        yield groups
        yield groups[1], groups[0]
        return
    yield from (((x,), (y,)) for x, y in product(range(size), repeat=2) if x != y)


def known_laws(law: Law, entry: int) -> Iterator[Law]:
    """The law given any values of any other entries."""
    count = len(next(iter(law)))
    others = [j for j in range(count) if j != entry]
    values = [[None, *sorted({row[j] for row in law})] for j in others]
    for choice in product(*values):
        fixed = [(j, v) for j, v in zip(others, choice, strict=True) if v is not None]
        yield {row: p for row, p in law.items() if all(row[j] == v for j, v in fixed)}


def datasets(costs: Sequence[Matrix]) -> int:
    """How many there are."""
    return prod(len(cost) for cost in costs)
