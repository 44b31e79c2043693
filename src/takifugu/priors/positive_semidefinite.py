r"""Whether a matrix of floats, taken as exact, is positive semidefinite: proven, or not at all.

*Floating point.* If Cholesky's algorithm in float64 runs to the end on B then
:math:`R^T R = B + E` with :math:`|E_{ij}| ≤ φ \sqrt{B_{ii} B_{jj}}`, φ = γ/(1 − γ), γ = γ(n + 1),
in whatever order its sums are taken (Demmel, 1989; Higham, Theorem 10.3). So
:math:`‖E‖_2 ≤ φ\,\mathrm{tr} B`, and B + c·1 is positive semidefinite for every c ≥ φ tr B. Run on
B = A − c·1 this proves A (Rump, 2006). Before that rows and columns are scaled by powers of 2,
which is exact, to diagonals between 1 and 4.

*Exact.* What is singular, or nearly so, cannot pass that. Small matrices are then eliminated over
the rationals: A is positive semidefinite if and only if every pivot is 0 or more, and each pivot of
0 has nothing else in its row.
"""

from fractions import Fraction

import numpy as np

from takifugu._core.numeric import Floats
from takifugu._core.rounding import UNIT

MOST_EXACT = 32  # rows of a matrix that is eliminated over the rationals


def is_positive_semidefinite(matrix: Floats) -> bool:
    """Whether a finite symmetric ``matrix`` with a positive diagonal is proven to be so."""
    return _by_floats(matrix) or (len(matrix) <= MOST_EXACT and _by_rationals(matrix))


def _by_floats(matrix: Floats) -> bool:
    size = len(matrix)
    _, power = np.frexp(np.diag(matrix))
    half = -((power - 1) // 2)  # the diagonal becomes at least 1 and below 4
    with np.errstate(under="ignore", over="ignore"):
        scaled = np.ldexp(matrix, (half[:, None] + half[None]).astype(np.int32))
    if not np.isfinite(scaled).all():  # an entry far above the diagonal's geometric mean
        return False
    diagonal = np.diag(scaled)
    units = (size + 2) * UNIT
    # twice φ·tr B, and what underflow may have taken away
    shift = 2 * units / (1 - 2 * units) * float(diagonal.sum()) * (1 + 8 * UNIT) + size * 2.0**-1000
    shifted = scaled.copy()
    np.fill_diagonal(shifted, np.nextafter(diagonal - shift, -np.inf))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def _by_rationals(matrix: Floats) -> bool:
    """Elimination over the whole numbers (Bareiss, 1968): every division below is exact."""
    exact = [[Fraction(value) for value in row] for row in matrix.tolist()]
    common = max(value.denominator for row in exact for value in row)  # powers of 2
    rows = [[int(value * common) for value in row] for row in exact]
    before = 1
    while rows:
        first, *others = rows
        pivot = first[0]
        if pivot < 0 or (pivot == 0 and any(first)):
            return False
        if pivot == 0:
            rows = [row[1:] for row in others]
            continue
        rows = [
            [(pivot * row[k] - row[0] * first[k]) // before for k in range(1, len(row))]
            for row in others
        ]
        before = pivot
    return True
