"""What counting mechanisms leak about a chain, with as many digits and as small as wanted.

A product g(D) = Π g_j(x_j) with 1 ≤ g_j ≤ e^{ε_j} is a per-entry DP mechanism's likelihood, so
log E[g | X_i = x] / E[g | X_i = y] is a loss that happens, for every choice of the factors. Here
g_j is e^{ε_j} on a set of states and 1 elsewhere; the set is the same for all entries, or that
and its complement in turn. Every number is positive and only added, multiplied and divided, as
`Decimal`s whose exponents do not end: nothing underflows and no digit cancels. For two states and
one matrix the sets tried here include the worst mechanism, so that the loss is exact.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from itertools import combinations

Matrix = Sequence[Sequence[float]]
Table = list[list[float]]
DIGITS = 40
IMPOSSIBLE = float("-inf")


def counting_losses(
    matrices: Sequence[Matrix],
    start: Sequence[float | Decimal],
    epsilon: Sequence[float],
    entries: Sequence[int],
) -> dict[int, Table]:
    """For each of ``entries``: ``[x][y]``, the largest leak found; −∞ for what cannot be asked.

    ``matrices`` has one matrix for each step; rows count divided by their exact sums.
    """
    size, length = len(start), len(epsilon)
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, MAX_EMAX, MIN_EMIN
        steps = _exact(matrices)
        tilts = [Decimal(float(e)).exp() for e in epsilon]
        law = [Decimal(v) for v in start]
        laws = [law]
        for rows in steps:
            law = _push(law, rows)
            laws.append(law)
        ahead = {i: [[0.0] * size for _ in range(size)] for i in entries}
        behind = {i: [[0.0] * size for _ in range(size)] for i in entries}
        for marked in _patterns(size):
            told = [Decimal(1)] * size
            for i in reversed(range(length)):
                if i in ahead:
                    _raise(ahead[i], told)
                if i:
                    here = [v * tilts[i] if marked(i, u) else v for u, v in enumerate(told)]
                    told = [_dot(row, here) for row in steps[i - 1]]
            tilted = laws[0]
            for i in range(length):
                if i in behind:
                    seen = [
                        t / p if p else Decimal(0) for t, p in zip(tilted, laws[i], strict=True)
                    ]
                    _raise(behind[i], seen)
                if i < length - 1:
                    here = [v * tilts[i] if marked(i, u) else v for u, v in enumerate(tilted)]
                    tilted = _push(here, steps[i])
        found = {}
        for i in entries:
            able = [p > 0 for p in laws[i]]
            found[i] = [
                [
                    IMPOSSIBLE
                    if not (able[x] and able[y])
                    else 0.0
                    if x == y
                    else float(epsilon[i]) + ahead[i][x][y] + behind[i][x][y]
                    for y in range(size)
                ]
                for x in range(size)
            ]
        return found


def product_loss(
    matrices: Sequence[Matrix],
    start: Sequence[float | Decimal],
    factors: Sequence[Sequence[float]],
    entry: int,
    left: Sequence[int],
    right: Sequence[int],
) -> float:
    """The loss of one product, ``factors[j][u]`` = g_j(u), for X_i in left against right."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, MAX_EMAX, MIN_EMIN
        steps = _exact(matrices)
        exact = [[Decimal(float(v)) for v in row] for row in factors]
        law = [Decimal(v) for v in start]
        tilted = list(law)
        for j in range(entry):
            tilted = _push([v * g for v, g in zip(tilted, exact[j], strict=True)], steps[j])
            law = _push(law, steps[j])
        told = [Decimal(1)] * len(law)
        for j in reversed(range(entry + 1, len(factors))):
            here = [v * g for v, g in zip(told, exact[j], strict=True)]
            told = [_dot(row, here) for row in steps[j - 1]]
        whole = [t * g * h for t, g, h in zip(tilted, exact[entry], told, strict=True)]
        one, other = (
            _sum(whole[u] for u in side) / _sum(law[u] for u in side) for side in (left, right)
        )
        return float((one / other).ln())


def at_rest(rows: Matrix) -> list[Decimal]:
    """The law that an irreducible chain leaves unchanged: states are censored one by one."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, MAX_EMAX, MIN_EMIN
        work = [list(row) for row in _exact([rows])[0]]
        for j in range(len(work) - 1, 0, -1):
            total = sum(work[j][:j])
            for i in range(j):
                work[i][j] /= total
                for k in range(j):
                    work[i][k] += work[i][j] * work[j][k]
        law = [Decimal(1)]
        for j in range(1, len(work)):
            law.append(_dot(law, [work[i][j] for i in range(j)]))
        whole = sum(law)
        return [v / whole for v in law]


class _Pattern:
    """Which states count at an entry: a set, or that set and its complement in turn."""

    def __init__(self, states: frozenset[int], turning: bool) -> None:
        self.states, self.turning = states, turning

    def __call__(self, entry: int, state: int) -> bool:
        return (state in self.states) != (self.turning and entry % 2 == 1)


def _patterns(size: int) -> Iterator[_Pattern]:
    for count in range(1, size):
        for states in combinations(range(size), count):
            for turning in (False, True):
                yield _Pattern(frozenset(states), turning)


def _exact(matrices: Sequence[Matrix]) -> list[list[list[Decimal]]]:
    known: dict[int, list[list[Decimal]]] = {}
    found = []
    for matrix in matrices:
        if id(matrix) not in known:
            rows = [[Decimal(float(v)) for v in row] for row in matrix]
            known[id(matrix)] = [[v / sum(row) for v in row] for row in rows]
        found.append(known[id(matrix)])
    return found


def _sum(terms: Iterable[Decimal]) -> Decimal:
    return sum(terms, Decimal(0))


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return _sum(p * q for p, q in zip(a, b, strict=True))


def _push(law: Sequence[Decimal], rows: Sequence[Sequence[Decimal]]) -> list[Decimal]:
    return [_dot(law, column) for column in zip(*rows, strict=True)]


def _raise(table: Table, told: Sequence[Decimal]) -> None:
    logs = [v.ln() if v else None for v in told]
    for x, one in enumerate(logs):
        for y, other in enumerate(logs):
            if one is not None and other is not None:
                table[x][y] = max(table[x][y], float(one - other))
