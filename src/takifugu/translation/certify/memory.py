r"""What a chain forgets in one step bounds what its entries tell of each other.

**Theorem.** Let any two possible values of an entry move the law of the next entry by at most τ in
total variation, let that entry have lost c, and let :math:`E[h|u] \le e^{F'} E[h|v]` for every h of
the entries after it that a mechanism allows. Then the values of the first entry tell at most

.. math:: F = \log\bigl(1 + τ\,(e^{c + F'} - 1)\bigr)

apart by everything after it. *Proof.* φ(u) = E[h | the next entry is u] has a ratio range of
:math:`e^{c+F'}`; scale it so that its least value is 1. Then :math:`E_x φ - E_y φ \le
τ (e^{c+F'} - 1)` and :math:`E_y φ \ge 1`. ∎ The entries before obey the same with the backward
kernel. Equal steps for ever end at the fixed point :math:`e^F = (1-τ)/(1-τe^c)`, which is infinite
unless :math:`τe^c < 1`.

Only τ is read from the chain, so that this serves any number of states, and every chain that
forgets at least as fast.
"""

import math
from collections.abc import Sequence

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu._core.rounding import UNIT, up

MARGIN = 16 * UNIT  # relative, of the few operations of a step
MAX_LOSS = 600.0  # a loss that is larger than this counts as it is: nothing is forgotten of it


def memory(rows: Floats, among: Booleans, slack: float) -> float:
    """The largest distance in total variation between two of the rows ``among`` [x], rounded up.

    ``slack`` is at least the sum of the errors of a row.
    """
    used = np.ascontiguousarray(rows[among])
    most = 0.0
    for x in range(len(used) - 1):
        apart = float(np.abs(used[x + 1 :] - used[x]).sum(axis=1).max()) / 2
        most = apart if not apart <= most else most  # also of what is no number: then nothing holds
    bound = most + slack + 2 * (rows.shape[1] + 2) * UNIT
    return bound if bound < 1 else 1.0


def one_side(memories: Sequence[float], losses: Sequence[float]) -> Floats:
    """``[n]``: what the n-th and all nearer entries of a side tell, from its far end on.

    ``memories[n]`` is that of the step onto the entry with ``losses[n]``, the farthest first.
    Never more than all of their losses together.
    """
    told, total = [0.0], 0.0
    for tau, loss in zip(memories, losses, strict=True):
        total = float(up(total + loss))
        told.append(min(_step(tau, float(up(loss + told[-1]))), total))
    return np.array(told)


def endless_side(tau: float, loss: float) -> float:
    """What infinitely many entries to one side tell, rounded up; it may be infinite."""
    grown = tau * math.exp(min(loss, MAX_LOSS)) * (1 + MARGIN)
    if not grown < 1:
        return math.inf
    # log((1 − τ)/(1 − τe^c)) = log(1 + τ(e^c − 1)/(1 − τe^c)), all terms of which are positive
    excess = tau * math.expm1(loss) * (1 + MARGIN) / ((1 - grown) * (1 - MARGIN))
    return math.log1p(excess) * (1 + MARGIN)


def entry_losses(own: Floats, ahead: Floats, behind: Floats) -> Floats:
    """The loss of each entry: its own, and what both of its sides tell; rounded up."""
    return up(own + ahead + behind)


def _step(tau: float, loss: float) -> float:
    if not loss < MAX_LOSS:
        return loss
    return math.log1p(tau * math.expm1(loss) * (1 + MARGIN)) * (1 + MARGIN)
