r"""Numbers that are rounded to steps before they are added: hardly more than their distance.

After rounding, two numbers may be one step further apart than before, however close they were. That
step is paid once, by the secret's own entry, and not by all that move with it:

**Theorem.** Let :math:`s^2 > 0` be at most the least eigenvalue of K. Let a release see the entries
rounded to a grid of step σ, and let a change by one step on entry j cost at most κ_j. Then entry
j ≠ i costs at most :math:`R_j κ_j |δ_j| / σ` for a shift by δ_j, where R is close to 1.

*Proof.* The covariance of the other entries given X_i has no smaller eigenvalue than K (its inverse
is a principal block of :math:`K^{-1}`), so they are :math:`m + U + Z` with Z independent N(0, s²)
in every entry, and only m depends on X_i. Keep U, and average an admissible g over Z. In one
coordinate, with all others averaged, h > 0 on the grid still has h(n ± 1) ≤ e^κ h(n), and
:math:`H(a) = E\,h(\mathrm{round}(a + Z)) = \sum_n h(n) P_n`, with P_n the mass of a cell. Its
derivative adds up the jumps at the ends of cells, and
:math:`|h(n+1) − h(n)| ≤ \tanh(κ/2)(h(n+1) + h(n))`, so

.. math:: |H'(a)| ≤ \frac{2\tanh(κ/2)}{σ} \sum_n h(n) T_n, \qquad
          T_n = σ\,\frac{φ_s(b_n − a) + φ_s(b_{n−1} − a)}{2},

where T_n is the trapezoidal rule for P_n. With η = σ/s the two differ by at most
:math:`η^3/12 · \max |φ''|` over the cell, and :math:`h(n) / h(n_0)` lies within
:math:`e^{±κ|n − n_0|}`, n₀ being the cell of a. Hence |H'| ≤ R κ/σ · H with

.. math:: R = 1 + \frac{(η^3/12) \sum_n e^{κ|n−n_0|} \max_n |φ''|}{e^{−κ}\,E e^{−κ|Z|/η}},

Z now standard normal. Change one coordinate of m after the other. ∎ A smaller s is allowed too, so
η may be raised where that is easier to compute.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import exp, inf

import numpy as np

from takifugu._rounding import UNIT, float_up
from takifugu.costs import Cost, Shape, Steps
from takifugu.numeric import Floats

FINEST = 1 / 64  # η: a finer grid gains nothing more
COARSEST = 1.0  # η: beyond it R is of no use
STEEPEST = 5.0  # κ/η
FAR = 40.0  # standard deviations; φ there is below 1e-347, and what is beyond below 1e-200


def rounding_factor(kappa: float, step: float, deviation: float) -> float:
    """R of the theorem, rounded up; infinite where the grid is too coarse for the prior."""
    if not deviation > 0 or not kappa < STEEPEST:
        return inf
    eta = max(step / deviation * (1 + 8 * UNIT), FINEST, kappa / STEEPEST * (1 + 8 * UNIT))
    if not eta <= COARSEST:
        return inf
    cells = np.arange(1, int(FAR / eta) + 2)
    # how far out a cell may begin and end
    inner = np.asarray((cells - 1) * eta, dtype=np.float64)
    outer = np.asarray((cells + 1) * eta, dtype=np.float64)
    bend = np.exp(kappa * cells) * _most_bent(inner, outer)
    above = (eta**3 / 12) * (1 + 2 * float(bend.sum())) * 0.39894229 + 1e-200
    from scipy.special import erfcx

    below = exp(-kappa) * float(erfcx(kappa / eta / 2**0.5))
    return (1 + above / below * (1 + 1e-9)) * (1 + 4 * UNIT)


def _most_bent(inner: Floats, outer: Floats) -> Floats:
    """The largest |z² − 1|·exp(−z²/2) between two ends.

    It falls to 0 at 1, rises to √3 and falls again.
    """
    ends = [np.abs(z**2 - 1) * np.exp(-(z**2) / 2) for z in (inner, outer)]
    over = (inner <= 3**0.5) & (outer >= 3**0.5)
    found: Floats = np.maximum(np.maximum(*ends), np.where(over, 2 * exp(-1.5), 0.0))
    return found * (1 + 1e-12)


def without_rounding(cost: Cost, deviation: float) -> tuple[Cost, float] | None:
    """A cost by distance alone for entries that are shifted, and what the own entry pays beside.

    None if the theorem does not apply: shapes other than `Steps`, or several grids.
    """
    shapes = [(shape, value) for shape, value in cost.terms if isinstance(shape, Steps)]
    grids = {shape.step for shape, _ in shapes}
    if len(shapes) < len(cost.terms) or len(grids) > 1:
        return None
    if not shapes:
        return cost, 0.0
    per_step = sum((value / shape.count for shape, value in shapes), Fraction(0))
    factor = rounding_factor(float_up(per_step), float_up(grids.pop()), deviation)
    if not factor < inf:
        return None
    raised: dict[Shape, Fraction] = {
        shape.distance: value * Fraction(factor) for shape, value in shapes
    }
    return Cost.of(raised), float_up(per_step)


def all_without_rounding(
    costs: Sequence[Cost], deviation: float
) -> tuple[tuple[Cost, ...], Floats] | None:
    """`without_rounding` of every cost; None if it does not apply to all, or changes none."""
    found = {cost: without_rounding(cost, deviation) for cost in dict.fromkeys(costs)}
    kept = {cost: made for cost, made in found.items() if made is not None}
    if len(kept) < len(found) or not any(own for _, own in kept.values()):
        return None
    return tuple(kept[c][0] for c in costs), np.array([kept[c][1] for c in costs])
