"""Finite worlds by plain enumeration, in exact fractions: slow, obvious, no numpy.

Probabilities come in as lists of floats, each of which counts as the fraction it is. A loss is
returned as a pair (numerator, denominator) of fractions, so that no rounding happens here.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import mpmath

Ratio = tuple[Fraction, Fraction]
Rows = Sequence[Sequence[float]]


def log(ratio: Ratio) -> Any:
    """The logarithm of n/d to 50 digits, as an mpmath number: −∞ if n = 0, +∞ if only d = 0."""
    n, d = ratio
    with mpmath.workdps(50):
        if n == 0:
            return mpmath.mpf("-inf")
        if d == 0:
            return mpmath.mpf("inf")
        return mpmath.log(_exact(n) / _exact(d))


def _exact(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator)


def conditional(
    prior: Sequence[float], mask: Sequence[bool], probability: Sequence[Fraction]
) -> Fraction | None:
    """P(ω | s), where ``probability[D]`` = P(ω | D); None if the secret has no probability."""
    total = sum((Fraction(p) for p, true in zip(prior, mask, strict=True) if true), Fraction(0))
    if total == 0:
        return None
    joint = Fraction(0)
    for p, true, c in zip(prior, mask, probability, strict=True):
        if true:
            joint += Fraction(p) * c
    return joint / total


def loss(
    prior: Sequence[float],
    left: Sequence[bool],
    right: Sequence[bool],
    probability: Sequence[Fraction],
) -> Ratio | None:
    """P(ω|s) over P(ω|s′); None if the pair is left out under this prior."""
    n, d = conditional(prior, left, probability), conditional(prior, right, probability)
    return None if n is None or d is None else (n, d)


def column(likelihood: Rows, output: int) -> list[Fraction]:
    return [Fraction(row[output]) for row in likelihood]


def sequence(runs: Sequence[tuple[Rows, int]]) -> Iterable[list[Fraction]]:
    """The probability of every *sequence* of outputs, for each dataset: the k-fold product."""
    each = [rows for rows, k in runs for _ in range(k)]
    for outputs in product(*(range(len(rows[0])) for rows in each)):
        probability = [Fraction(1)] * len(each[0])
        for rows, output in zip(each, outputs, strict=True):
            probability = [
                c * Fraction(row[output]) for c, row in zip(probability, rows, strict=True)
            ]
        yield probability


def worst(
    priors: Rows,
    pairs: Sequence[tuple[Sequence[bool], Sequence[bool]]],
    probabilities: Iterable[Sequence[Fraction]],
) -> Any:
    """The largest loss over all pairs, priors and outputs, at least 0, to 50 digits."""
    largest = mpmath.mpf(0)
    for probability in probabilities:
        for left, right in pairs:
            for prior in priors:
                ratio = loss(prior, left, right, probability)
                if ratio is not None:
                    largest = max(largest, log(ratio))
    return largest


def to_dp(
    datasets: Sequence[Any],
    likelihood: Rows,
    neighbours: Callable[[Any, Any], bool],
) -> Any:
    """The largest log-ratio over neighbouring datasets and outputs, at least 0, to 50 digits."""
    largest = mpmath.mpf(0)
    for a, row in zip(datasets, likelihood, strict=True):
        for b, other in zip(datasets, likelihood, strict=True):
            if neighbours(a, b):
                for x, y in zip(row, other, strict=True):
                    largest = max(largest, log((Fraction(x), Fraction(y))))
    return largest


def differ(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[int]:
    """The cells in which two tables differ."""
    return [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]


def corners(size: int, lines: Sequence[tuple[Sequence[float], float]]) -> list[list[Fraction]]:
    """Every corner of {p ≥ 0, Σp = 1, a·p ≤ b for each line (a, b)}, by trying all tight sets."""
    exact = [([Fraction(x) for x in a], Fraction(b)) for a, b in lines]
    signs = [([Fraction(-int(i == j)) for j in range(size)], Fraction(0)) for i in range(size)]
    sides = signs + exact
    found = []
    for tight in combinations(sides, size - 1):
        p = _solve([([Fraction(1)] * size, Fraction(1)), *tight])
        if p is not None and all(
            sum((a * q for a, q in zip(row, p, strict=True)), Fraction(0)) <= b for row, b in sides
        ):
            found.append(p)
    return found


def _solve(equations: Sequence[tuple[list[Fraction], Fraction]]) -> list[Fraction] | None:
    """Cramer's rule; None if the determinant is 0."""
    rows = [row for row, _ in equations]
    whole = _determinant(rows)
    if whole == 0:
        return None
    answer = []
    for i in range(len(rows)):
        changed = [[*row[:i], b, *row[i + 1 :]] for row, b in equations]
        answer.append(_determinant(changed) / whole)
    return answer


def _determinant(rows: list[list[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    total = Fraction(0)
    for i, x in enumerate(rows[0]):
        if x:
            minor = [[*row[:i], *row[i + 1 :]] for row in rows[1:]]
            total += (-1) ** i * x * _determinant(minor)
    return total


def multisets(outputs: int, runs: int) -> Iterable[tuple[int, ...]]:
    """Every tuple of ``outputs`` counts that add up to ``runs``."""
    if outputs == 1:
        yield (runs,)
        return
    for first in range(runs + 1):
        for others in multisets(outputs - 1, runs - first):
            yield (first, *others)


def unordered(likelihood: Rows, runs: int) -> Iterable[list[Fraction]]:
    """The probability of one order of every multiset of outputs, for each dataset."""
    exact = [[Fraction(x) for x in row] for row in likelihood]
    for counts in multisets(len(likelihood[0]), runs):
        probabilities = []
        for row in exact:
            probability = Fraction(1)
            for x, c in zip(row, counts, strict=True):
                probability *= x**c
            probabilities.append(probability)
        yield probabilities
