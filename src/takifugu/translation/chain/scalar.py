r"""The scalar recursion: one number for all pairs (Cao, Yoshikawa, Xiao & Xiong, ICDE 2017).

When every move costs the same α, the transport has a closed form. The best g takes two values,
high on the states A with the greatest ratio p/q, so

.. math:: \log t = \max_A \log\frac{1 + (e^\alpha - 1)\,p(A)}{1 + (e^\alpha - 1)\,q(A)}

over the prefixes A of that order. Carrying the largest value over all pairs as the next α is the
temporal-privacy-leakage recursion: a baseline, never below the pairwise recursion.
"""

import numpy as np

from takifugu._rounding import up
from takifugu.numeric import Floats

LARGEST = 700.0  # beyond it e^ε is no float


def constant_cost(rows: Floats, alpha: float) -> Floats:
    """``[x, y]``: one step between rows x and y when all moves cost ``alpha``, rounded up.

    Never more than ``alpha``, which is given where e^alpha is no float.
    """
    if alpha > LARGEST:
        return alpha * (1 - np.eye(len(rows)))
    gain = np.expm1(alpha)
    value = np.zeros((len(rows), len(rows)))
    slack = 4 * (rows.shape[1] + 4) * 2.0**-53
    for x, p in enumerate(rows):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(p > 0, p / rows, 0.0)  # [y, u]: an order, which may be any
        order = np.argsort(-ratio, axis=1)
        above = 1 + gain * np.cumsum(p[order], axis=1)
        below = 1 + gain * np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        value[x] = up(np.log(np.max(above / below, axis=1))) + slack
        value[x, x] = 0.0
    return np.maximum(value, 0.0)


def scalar_step(rows: Floats, alpha: float) -> float:
    """The loss function L of Cao et al.: how much of a leak α one step passes on, rounded up."""
    return float(constant_cost(rows, alpha).max())


def scalar_losses(rows: Floats, epsilon: Floats) -> Floats:
    """``[i]``: the accumulated leak ε_i + L(leak before) along one direction of a chain.

    Give the transition matrix and the entries from the last to the first for what the future
    tells, the backward kernel and the entries in order for what the past tells.
    """
    leaks = np.empty(len(epsilon))
    leak = 0.0
    for i, spent in enumerate(epsilon):
        leak = float(up(spent + (scalar_step(rows, leak) if i else 0.0)))
        leaks[i] = leak
    return leaks
