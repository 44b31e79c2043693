"""Slow truth about chains with two states: transfer matrices in many digits, and enumeration.

Nothing here is a recursion of log-ratios: weights of whole datasets are multiplied and summed, and
the logarithm is taken at the end, with as many digits as the cancellation needs.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def digits_for(numbers: Sequence[float], spent: Sequence[float]) -> int:
    """Digits that leave 30 after a difference of logarithms as small as the least ε·probability."""
    least = min([float(v) for v in numbers if v > 0], default=1.0)
    small = min([float(e) for e in spent if e > 0], default=1.0)
    return 60 + int(-2 * np.log10(min(least, 1.0)) - 2 * np.log10(min(small, 1.0)))


def _rows(matrix: Floats) -> list[list[mp.mpf]]:
    rows = [[mp.mpf(float(v)) for v in row] for row in matrix]
    return [[v / (row[0] + row[1]) for v in row] for row in rows]


def _counted(matrices: Sequence[list[list[mp.mpf]]]) -> list[int]:
    """The value that is counted at each entry, 1 at the first: it flips where rows repel."""
    found = [1]
    for (a, b), (c, d) in matrices:
        found.append(found[-1] if a * d >= b * c else 1 - found[-1])
    return found


def counting_losses(
    matrices: Sequence[Floats], start: Sequence[float], spent: Sequence[float]
) -> list[dict[tuple[int, int], float]]:
    """For every entry the losses of (1, 0) and (0, 1) of the mechanism that counts.

    There is none where a value cannot happen.
    """
    numbers = [float(v) for m in matrices for v in np.ravel(m)] + [float(v) for v in start]
    digits = digits_for(numbers, spent)
    found = _counting_losses(matrices, start, spent, digits)
    least = min((abs(loss) for entry in found for loss in entry.values()), default=1.0)
    if least < 10.0 ** max(30 - digits, -300):  # all digits cancelled: it is that small, or less
        found = _counting_losses(matrices, start, spent, digits + 400)
    return found


def _counting_losses(
    matrices: Sequence[Floats], start: Sequence[float], spent: Sequence[float], digits: int
) -> list[dict[tuple[int, int], float]]:
    with mp.workdps(digits):
        rows = [_rows(m) for m in matrices]
        counted = _counted(rows)
        gains = [mp.e ** mp.mpf(float(e)) for e in spent]
        law = [[mp.mpf(float(v)) for v in start]]
        for step in rows:
            w = law[-1]
            law.append([w[0] * step[0][x] + w[1] * step[1][x] for x in (0, 1)])
        losses: list[dict[tuple[int, int], float]] = [{} for _ in spent]
        for way in (0, 1):  # 1: the counted values as listed, 0: the other ones
            tilts = [
                [gains[j] if v == (counted[j] ^ (1 - way)) else mp.mpf(1) for v in (0, 1)]
                for j in range(len(spent))
            ]
            left = [[mp.mpf(1) * v for v in law[0]]]
            for j, step in enumerate(rows):
                w = [left[-1][x] * tilts[j][x] for x in (0, 1)]
                left.append([w[0] * step[0][x] + w[1] * step[1][x] for x in (0, 1)])
            right = [[mp.mpf(1), mp.mpf(1)]]
            for j in range(len(spent) - 1, 0, -1):
                h = [right[-1][x] * tilts[j][x] for x in (0, 1)]
                right.append([rows[j - 1][x][0] * h[0] + rows[j - 1][x][1] * h[1] for x in (0, 1)])
            right.reverse()
            for i in range(len(spent)):
                if not (law[i][0] and law[i][1]):
                    continue
                x = counted[i] ^ (1 - way)
                told = [left[i][v] * right[i][v] / law[i][v] for v in (0, 1)]
                loss = mp.mpf(float(spent[i])) + mp.log(told[x] / told[1 - x])
                losses[i][x, 1 - x] = float(loss)
        return losses


def unbounded_counting_losses(matrix: Floats, epsilon: float) -> dict[tuple[int, int], float]:
    """The same deep inside a stationary chain that never ends: powers of the transfer matrix."""
    with mp.workdps(digits_for([float(v) for v in np.ravel(matrix)], [epsilon])):
        rows = _rows(matrix)
        (a, b), (c, d) = rows
        rest = [c / (b + c), b / (b + c)]
        repel = a * d < b * c
        gain = mp.e ** mp.mpf(float(epsilon))
        losses = {}
        for x in (0, 1):
            # the value counted next door, and two doors away
            near, far = (1 - x, x) if repel else (x, x)
            tilt = {v: mp.diag([gain if u == v else 1 for u in (0, 1)]) for v in (0, 1)}
            P = mp.matrix(rows)
            ahead = P * tilt[near] * P * tilt[far]
            behind = tilt[far] * P * tilt[near] * P
            for _ in range(4 * mp.mp.prec):
                before = ahead[0, 0] / ahead[1, 0], behind[0, 0] / behind[0, 1]
                ahead, behind = _unit(ahead * ahead), _unit(behind * behind)
                after = ahead[0, 0] / ahead[1, 0], behind[0, 0] / behind[0, 1]
                if all(
                    abs(v / w - 1) < mp.mpf(10) ** (15 - mp.mp.dps)
                    for v, w in zip(before, after, strict=True)
                ):
                    break
            one = [mp.mpf(1), mp.mpf(1)]
            right = [ahead[v, 0] * one[0] + ahead[v, 1] * one[1] for v in (0, 1)]
            left = [(rest[0] * behind[0, v] + rest[1] * behind[1, v]) / rest[v] for v in (0, 1)]
            told = [left[v] * right[v] for v in (0, 1)]
            losses[x, 1 - x] = float(mp.mpf(float(epsilon)) + mp.log(told[x] / told[1 - x]))
        return losses


def _unit(matrix: mp.matrix) -> mp.matrix:
    return matrix / max(matrix)


def best_product_loss(
    matrices: Sequence[Floats], start: Sequence[float], spent: Sequence[float], entry: int, x: int
) -> float:
    """The largest loss of (X = x, X = 1 − x) over all products of two-level factors.

    Every dataset is listed with its exact probability. It knows nothing of signs and of renaming.
    """
    rows = [[[Fraction(float(v)) for v in row] for row in m] for m in matrices]
    rows = [[[v / sum(row) for v in row] for row in m] for m in rows]
    first = [Fraction(float(v)) / sum(Fraction(float(w)) for w in start) for v in start]
    law = {}
    for data in product((0, 1), repeat=len(spent)):
        weight = first[data[0]]
        for j, step in enumerate(rows):
            weight *= step[data[j]][data[j + 1]]
        law[data] = weight
    with mp.workdps(60):
        gains = [mp.e ** mp.mpf(float(e)) for e in spent]
        listed = [(data, mp.mpf(w.numerator) / w.denominator) for data, w in law.items() if w]
        mass = [mp.fsum(w for data, w in listed if data[entry] == v) for v in (0, 1)]
        best = mp.mpf(0)
        for high in product((0, 1), repeat=len(spent)):
            if high[entry] != x:
                continue
            told = [mp.mpf(0), mp.mpf(0)]
            for data, weight in listed:
                g = weight
                for j, value in enumerate(data):
                    g = g * gains[j] if value == high[j] else g
                told[data[entry]] += g
            best = max(best, mp.log(told[x] / mass[x] / (told[1 - x] / mass[1 - x])))
        return float(best)


def counting_field_loss(law: Floats, epsilon: float) -> float:
    """The largest loss of a count of ones, or of zeros, for a law of 0/1 tables written out."""
    entries = len(law).bit_length() - 1
    with mp.workdps(digits_for([float(v) for v in law], [epsilon])):
        listed = [
            (d, mp.mpf(float(w))) for d, w in zip(product((0, 1), repeat=entries), law, strict=True)
        ]
        gain, best = mp.e ** mp.mpf(float(epsilon)), mp.mpf(0)
        for entry, x in product(range(entries), (0, 1)):
            told, mass = [mp.mpf(0), mp.mpf(0)], [mp.mpf(0), mp.mpf(0)]
            for data, weight in listed:
                mass[data[entry]] += weight
                told[data[entry]] += weight * gain ** data.count(x)
            best = max(best, mp.log(told[x] / mass[x] / (told[1 - x] / mass[1 - x])))
        return float(best)
