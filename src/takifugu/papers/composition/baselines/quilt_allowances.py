r"""MQMExact of a chain at rest for many ε at once: as `mqm_exact`, but quick.

A quilt :math:`\{X_{i-a}, X_{i+b}\}` has c = a + b − 1 nodes nearby and the max-influence
:math:`e(a,b) = \max_{x,y} [l_a(x,y) + r_b(x,y)]`; it allows (ε − e)/c per entry (Song, Wang and
Chaudhuri, SIGMOD 2017). A quilt on one side allows (ε − max l_a)/(n − 1 − i + a) or
(ε − max r_b)/(i + b), none at all ε/n. A node takes the best, the chain the least over its nodes.

Whether a quilt has room at its node need not be asked. If a > i and b < n − i, then the quilt
:math:`\{X_{i+b}\}` has i + b ≤ c nodes nearby and no more influence; likewise on the other side;
and if both ends are outside, then c ≥ n and no quilt at all is as good. So with
:math:`V = \max_{a,b} (ε - e(a,b))/c` a node allows the largest of V, its one-sided quilts and ε/n.
As no quilt of c nodes allows more than ε/c, c rises only until ε/c passes the best so far.
"""

from collections.abc import Sequence

import numpy as np

from takifugu._rounding import down, gamma, log_ratio_up, up
from takifugu.errors import InvalidPrior
from takifugu.numeric import Floats, frozen
from takifugu.papers.composition.baselines.quilts import mqm_exact
from takifugu.priors.markov import MarkovChain


def quilt_allowances(chain: MarkovChain, epsilons: Sequence[float]) -> Floats:
    """``[ε]``: the loss per entry that MQMExact allows, rounded down."""
    length = chain.length
    if length is None or not chain.homogeneous:
        raise InvalidPrior(
            "chain", given="has no length or many matrices", needed="have a length and one matrix"
        )
    wanted = np.asarray(epsilons, dtype=np.float64)
    if not isinstance(chain.start, str):
        return frozen(
            [mqm_exact(chain.kernel(), length, e, start=chain.start).to_dp for e in wanted.tolist()]
        )
    whole = down(wanted / length)
    best = np.maximum(whole, 0.0)
    sides = _Sides(chain)
    for nearby in range(1, length):
        if (wanted / nearby <= best).all():
            break
        sides.grow(nearby)
        left, right = sides.left[:nearby], sides.right[:nearby][::-1]
        influence = float(up(np.min(np.max(left + right, axis=1))))
        best = np.maximum(best, down(wanted - influence) / nearby)
    return frozen(down(np.maximum(whole, _least_node(wanted, best, sides, length))))


def _least_node(wanted: Floats, best: Floats, sides: "_Sides", length: int) -> Floats:
    """``[ε]``: the least over the nodes of the best that each has, two-sided or one-sided."""
    reach = len(sides.right)
    if not reach:
        return best
    nodes = np.arange(length)[:, None]
    steps = np.arange(1, reach + 1)
    found = []
    for epsilon, two_sided in zip(wanted.tolist(), best.tolist(), strict=True):
        ahead = down(epsilon - sides.right.max(axis=1)) / (nodes + steps)
        behind = down(epsilon - sides.left.max(axis=1)) / (length - 1 - nodes + steps)
        ahead = np.where(nodes + steps < length, ahead, 0.0)
        behind = np.where(steps <= nodes, behind, 0.0)
        one_sided = np.maximum(ahead.max(axis=1), behind.max(axis=1))
        found.append(float(np.maximum(one_sided, two_sided).min()))
    return np.array(found)


class _Sides:
    """``[steps − 1, pair]``: what an entry so many steps away tells of two values, rounded up."""

    def __init__(self, chain: MarkovChain) -> None:
        self._rows, self._law = chain.kernel(), chain.stationary
        self._error = chain.stationary_error
        self._power = np.eye(len(self._rows))
        self._left: list[Floats] = []
        self._right: list[Floats] = []
        self.left = self.right = np.zeros((0, 0))

    def grow(self, steps: int) -> None:
        """Reach ``steps`` steps to both sides."""
        size = len(self._rows)
        while len(self._right) < steps:
            self._power = self._power @ self._rows
            made = (len(self._right) + 1) * (size + 2)
            self._right.append(_pairwise(self._power, gamma(made)))
            given = (self._law[:, None] * self._power / self._law).T  # [x, before]
            self._left.append(_pairwise(given, gamma(made + 4) + 4 * self._error))
            self.left, self.right = np.stack(self._left), np.stack(self._right)


def _pairwise(rows: Floats, error: float) -> Floats:
    """``[pair]``: the largest log rows[x, z]/rows[y, z], for each x and y."""
    highest = [log_ratio_up(row, rows, error=error).max(axis=-1) for row in rows]  # [x][y]
    return np.concatenate(highest)
