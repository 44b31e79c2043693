"""Influence in chains, slowly: from the law written out, and with as many digits as wanted."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from math import inf, log

Row = tuple[int, ...]


def law(
    start: Sequence[Fraction], steps: Sequence[Sequence[Sequence[Fraction]]]
) -> dict[Row, float]:
    """The probability of every path that can happen."""
    found: dict[Row, float] = {}
    for path in product(range(len(start)), repeat=len(steps) + 1):
        probability = float(start[path[0]])
        for step, x, y in zip(steps, path, path[1:], strict=False):
            probability *= float(step[x][y])
        if probability:
            found[path] = probability
    return found


def normalised(rows: Sequence[Sequence[float]]) -> list[list[Fraction]]:
    """Rows of floats as exact fractions, divided by their exact sums."""
    exact = [[Fraction(float(v)) for v in row] for row in rows]
    return [[v / sum(row) for v in row] for row in exact]


def stationary(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """The stationary law of an irreducible chain, by Gaussian elimination with fractions."""
    n = len(rows)
    system = [[rows[x][y] - (x == y) for x in range(n)] + [Fraction(0)] for y in range(n)]
    system[-1] = [Fraction(1)] * n + [Fraction(1)]
    for column in range(n):
        pivot = next(r for r in range(column, n) if system[r][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        for r in range(n):
            if r != column and system[r][column] != 0:
                factor = system[r][column] / system[column][column]
                system[r] = [a - factor * b for a, b in zip(system[r], system[column], strict=True)]
    return [system[x][n] / system[x][x] for x in range(n)]


def leak(
    paths: Mapping[Row, float], entry: int, left: Sequence[int], right: Sequence[int], low: Row
) -> float:
    """The largest log P(x_L | entry in left) / P(x_L | entry in right)."""
    given: tuple[dict[Row, float], dict[Row, float]] = (defaultdict(float), defaultdict(float))
    mass = [0.0, 0.0]
    for path, probability in paths.items():
        for side, values in enumerate((left, right)):
            if path[entry] in values:
                given[side][tuple(path[j] for j in low)] += probability
                mass[side] += probability
    worst = 0.0
    for seen, probability in given[0].items():
        other = given[1].get(seen, 0.0)
        worst = max(worst, log((probability / mass[0]) / (other / mass[1])) if other else inf)
    return worst


def curve(
    paths: Mapping[Row, float],
    entry: int,
    left: Sequence[int],
    right: Sequence[int],
    *,
    symmetric: bool = False,
) -> list[float]:
    """a*(1), a*(2), …, a*(T): the least leak over every set H, interval or not."""
    length = len(next(iter(paths)))
    best = inf
    found = []
    for b in range(1, length + 1):
        for high in combinations(range(length), b):
            low = tuple(j for j in range(length) if j not in high)
            value = leak(paths, entry, left, right, low)
            if symmetric:
                value = max(value, leak(paths, entry, right, left, low))
            best = min(best, value)
        found.append(best)
    return found


def possible(paths: Mapping[Row, float], entry: int, values: Sequence[int]) -> bool:
    """Whether the entry can have one of the values."""
    return any(path[entry] in values for path in paths)


def long_chain_leaks(
    matrix: Sequence[Sequence[float]], x: int, y: int, most: int, *, digits: int = 50
) -> list[Decimal]:
    """a*(1), …, a*(most) of the pair (x, y) deep inside a chain at rest, with ``digits`` digits."""
    with localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = -(10**8), 10**8
        rows = [[Decimal(float(v)) for v in row] for row in matrix]
        rows = [[v / sum(row) for v in row] for row in rows]
        pi = _at_rest(rows)
        columns = list(zip(*rows, strict=True))
        ahead = {s: [Decimal(k == s) for k in range(len(rows))] for s in (x, y)}
        back = {s: list(ahead[s]) for s in (x, y)}
        right, left, found = [], [], []
        for b in range(most):
            for s in (x, y):
                ahead[s] = [_dot(ahead[s], column) for column in columns]
                back[s] = [_dot(row, back[s]) for row in rows]
            right.append(_worst(ahead[x], ahead[y]))
            left.append(_worst(back[x], back[y]) + (pi[y] / pi[x]).ln())
            found.append(min(left[d] + right[b - d] for d in range(b + 1)))
        return found


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((p * q for p, q in zip(a, b, strict=True)), Decimal(0))


def _worst(above: Sequence[Decimal], below: Sequence[Decimal]) -> Decimal:
    pairs = [(p, q) for p, q in zip(above, below, strict=True) if p]
    return max((p / q).ln() if q else Decimal("Infinity") for p, q in pairs)


def _at_rest(rows: Sequence[Sequence[Decimal]]) -> list[Decimal]:
    work = [list(row) for row in rows]
    for j in range(len(work) - 1, 0, -1):
        total = sum(work[j][:j])
        for i in range(j):
            work[i][j] /= total
            share = work[i][j]
            for k in range(j):
                work[i][k] += share * work[j][k]
    pi = [Decimal(1)]
    for j in range(1, len(work)):
        pi.append(_dot(pi, [work[i][j] for i in range(j)]))
    return [p / sum(pi) for p in pi]
