"""Influences of one entry on another by enumeration, in fractions, from the definition."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import inf, log, tanh

Row = tuple[int, ...]


def local_law(law: Mapping[Row, Fraction], entry: int, row: Row) -> dict[int, Fraction] | None:
    """P(X_entry = · | the other entries are as in ``row``); None if that is impossible."""
    alike = {
        path[entry]: p
        for path, p in law.items()
        if p > 0 and all(path[j] == row[j] for j in range(len(row)) if j != entry)
    }
    total = sum(alike.values())
    return {value: p / total for value, p in alike.items()} if total else None


def influence(law: Mapping[Row, Fraction], on: int, by: int) -> tuple[float, float]:
    """γ and c of entry ``by`` on entry ``on``; infinite and 1 where something is impossible."""
    length = len(next(iter(law)))
    values = [sorted({path[j] for path, p in law.items() if p > 0}) for j in range(length)]
    ratio, cross = Fraction(1), Fraction(1)
    for row in product(*values):
        for other in values[by]:
            here = local_law(law, on, row)
            there = local_law(law, on, (*row[:by], other, *row[by + 1 :]))
            if here is None or there is None:
                return inf, 1.0
            for s, t in product(values[on], repeat=2):
                p, q = here.get(s, Fraction(0)), there.get(s, Fraction(0))
                u, v = here.get(t, Fraction(0)), there.get(t, Fraction(0))
                if not all((p, q, u, v)):
                    return inf, 1.0
                ratio, cross = max(ratio, p / q), max(cross, p * v / (q * u))
    return log(ratio) / 2, tanh(log(cross) / 4)


def growth(matrix: list[list[float]], entry: int, *, first_passage: bool) -> float:
    """1 plus the mass of all walks that end at ``entry``, by adding them up step by step.

    ``matrix[i][j]`` is what i gains from j. With ``first_passage`` a walk stops at ``entry``.
    """
    size = len(matrix)
    mass = [1.0] * size
    total = mass[entry]
    for _ in range(100_000):
        if first_passage:
            mass[entry] = 0.0
        mass = [sum(matrix[i][j] * mass[j] for j in range(size)) for i in range(size)]
        total += mass[entry]
        if max(mass) < 1e-14:
            return total
        if max(mass) > 1e6:
            break
    return inf
