r"""Log odds of attractive fields that are too dense to be summed over: intervals, by pinning.

Let the law be :math:`\propto \exp(\sum_i h_i x_i + \sum_{ij} J_{ij} x_i x_j)` over zeros and ones.
Multiply out the odds of entry i contact by contact, w_1, …, w_d:

.. math:: y_i = \log\frac{P(x_i=1)}{P(x_i=0)}
        = h_i + \log E_{G-i}\Big[\prod_k e^{J_{ik} x_k}\Big]
        = h_i + \sum_k f_{J_{ik}}(y_k), \qquad f_J(y) = \log\frac{1+e^{y+J}}{1+e^{y}},

where y_k are the log odds of w_k once i is taken out and the fields of w_1, …, w_{k−1} are raised
by their couplings to i ("i is pinned to 1" for them). This is the identity behind Weitz's tree of
self-avoiding walks (STOC 2006). f is increasing, so intervals for the y_k give one for y_i. When
all fields rise by ε, y_i rises by

.. math:: E_i = ε_i + \sum_k \big[f_J(y_k + E_k) - f_J(y_k)\big],

which increases in E_k and, as a function of y_k, has one peak at −(J + E_k)/2. So intervals for
(y_k, E_k) give one for E_i, and no error of y_i itself enters: a weak dependence is bounded well
even where the odds are not.

The walk stops where little is unknown. There it uses boxes that hold for a contact when any m
entries are gone, pinned anyhow: the m strongest contacts are counted as pinned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from takifugu._rounding import UNIT
from takifugu.errors import TooLarge
from takifugu.numeric import Floats, Integers
from takifugu.priors.factors import FactorModel

LEVELS = 16  # of boxes behind the walk
DEPTH = 10  # of the walk itself
STRONGEST = 400.0  # a coupling beyond it is not exponentiated
STEEPEST = 138.0  # log odds beyond it count as unbounded: see `pinning_kernel.BIG`
CLOSE = 0.01  # a gap of this share of the loss is narrow enough
FINER = 4.0  # by what the tolerance falls from round to round


@dataclass(frozen=True, eq=False)
class PairwiseField:
    """Fields and couplings of an attractive model, as intervals around what float64 can say.

    Attributes:
        low: ``[entry]``: at most h.
        high: ``[entry]``: at least h.
        near: ``[entry, k]``: its contacts, the weakest first.
        back: ``[entry, k]``: the place of the entry among the contacts of that contact.
        degree: ``[entry]``: how many there are.
        weak: ``[entry, k]``: at most J.
        strong: ``[entry, k]``: at least J.
        pins: ``[entry, k]``: how many must be gone for that contact to have pinned the entry.
    """

    low: Floats
    high: Floats
    near: Integers
    back: Integers
    degree: Integers
    weak: Floats
    strong: Floats
    pins: Integers


def pairwise_field(model: FactorModel) -> PairwiseField:
    """Read an attractive model (see `check_attractive`) of entries and pairs of entries."""
    from takifugu.translation.network import pinning_kernel

    count = len(model.entries)
    field, size = np.zeros(count), np.ones(count)
    couplings: dict[tuple[int, int], tuple[float, float]] = {}
    for factor in model.factors():
        logs = np.log(factor.table)
        for v in factor.scope:
            size[v] += 4 + float(np.abs(logs).sum())
        match factor.scope:
            case (i,):
                field[i] += logs[1] - logs[0]
            case (i, j):
                field[i] += logs[1, 0] - logs[0, 0]
                field[j] += logs[0, 1] - logs[0, 0]
                pull = logs[1, 1] + logs[0, 0] - logs[0, 1] - logs[1, 0]
                known = couplings.get((min(i, j), max(i, j)), (0.0, 1.0))
                rough = known[1] + 4 + float(np.abs(logs).sum())
                couplings[min(i, j), max(i, j)] = known[0] + float(pull), rough
            case _:
                raise TooLarge(
                    f"{model.name!r} is too densely connected to be summed over, and a table joins"
                    f" {len(factor.scope)} entries; bounds without sums are for pairs only."
                    " Use the influence curve of the model instead",
                    size=len(factor.scope),
                    limit=2,
                )
    off = 16 * UNIT * size
    contacts: list[list[tuple[float, float, int]]] = [[] for _ in range(count)]
    for (i, j), (pull, rough) in couplings.items():
        slack = 16 * UNIT * rough
        ends = max(pull - slack, 0.0), max(pull + slack, 0.0)
        contacts[i].append((*ends, j))
        contacts[j].append((*ends, i))
    degree = np.array([len(found) for found in contacts], dtype=np.int64)
    shape = (count, max(int(degree.max()), 1))
    near, weak, strong = np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape)
    back = np.zeros(shape, dtype=np.int64)
    place: dict[tuple[int, int], int] = {}
    for i, found in enumerate(contacts):
        for a, (least, most, j) in enumerate(sorted(found)):
            near[i, a], weak[i, a], strong[i, a] = j, least, most
            place[i, j] = a
    for (i, j), a in place.items():
        back[i, a] = place[j, i]
    pins = pinning_kernel.pin_levels(near, back, degree, LEVELS)
    return PairwiseField(field - off, field + off, near, back, degree, weak, strong, pins)


class RisingField:
    """A field whose entries rise by ε each, ready to be explored from any of its entries.

    Attributes:
        entries: The entries to be explored.
        lower: ``[k]``: at most the rise of the log odds of entry k.
        upper: ``[k]``: at least it.
    """

    def __init__(self, field: PairwiseField, epsilon: Floats, entries: Sequence[int]) -> None:
        from takifugu.translation.network import pinning_kernel as kernel

        self._kernel = kernel
        self.entries, self.epsilon = list(entries), epsilon
        self.lower = np.array([float(epsilon[v]) for v in self.entries]) * (1 - 8 * UNIT)
        self.upper = np.full(len(self.entries), np.inf)
        self.computes = bool((field.strong < STRONGEST).all())
        if not self.computes:
            return
        if not self.entries:
            self.computes = False
            return
        count, width = field.near.shape
        with np.errstate(over="ignore", under="ignore"):
            low = np.exp(np.clip(field.low, -STEEPEST, STEEPEST)) * (1 - 8 * UNIT)
            high = np.exp(np.clip(field.high, -STEEPEST, STEEPEST)) * (1 + 8 * UNIT)
            weak = np.expm1(field.weak) * (1 - 8 * UNIT)
            strong = np.expm1(field.strong) * (1 + 8 * UNIT)
            own = np.expm1(epsilon)
            whole = float(np.expm1(fsum(epsilon) * (1 + 8 * UNIT)) * (1 + 8 * UNIT))
        low[field.low < -STEEPEST] = 0.0
        high[field.high > STEEPEST] = np.inf
        boxes = np.zeros((LEVELS, count, width, 5))
        kernel.far_boxes(
            *(low, high, own, whole, field.near, field.back, field.degree, weak, strong),
            *(field.pins, boxes),
        )
        self._given = (low, high, own, field.near, field.degree, weak, strong, boxes)
        self._gone, self._pinned = np.zeros(count, dtype=np.bool_), np.ones((2, count))
        self._kept, self._made = np.zeros((DEPTH, 2, width)), np.zeros(1, dtype=np.int64)

    def explore(self, k: int, tolerance: float, visits: int) -> int:
        """Narrow the bounds of entry k; how many entries were visited."""
        self._made[0] = 0
        _, _, least, greatest = self._kernel.explore(
            *(self.entries[k], 0, 1.0, tolerance, visits, *self._given),
            *(self._gone, self._pinned, self._kept, self._made),
        )
        bottom = float(np.log1p(least)) * (1 - 8 * UNIT)
        top = float(np.log1p(greatest)) * (1 + 8 * UNIT)
        if bottom <= top:  # also false for NaN, beyond all floats: nothing was learnt
            self.lower[k] = max(self.lower[k], bottom)
            self.upper[k] = min(self.upper[k], top)
        return int(self._made[0])


def narrow(fields: Sequence[RisingField], *, visits: int, close: float = CLOSE) -> None:
    """Narrow the bounds of all entries of ``fields``.

    Each is explored once. The remaining ``visits`` go to those that may be the largest of all,
    until the largest is known to a relative ``close``, or what is left out is less than the
    rounding.
    """
    steepest = max((float(f.epsilon.max(initial=0.0)) for f in fields), default=0.0)
    tolerance = steepest / 10
    finest = UNIT * tolerance  # what is left out below this is less than the rounding
    waiting = [(f, k) for f in fields if f.computes for k in range(len(f.entries))]
    left, explored = visits, False
    while waiting and ((left > 0 and tolerance > finest) or not explored):
        explored = True  # each of them at least once
        for field, k in waiting:
            left -= field.explore(k, tolerance, max(left, 1))
        largest = max(float(f.lower.max(initial=0.0)) for f in fields)
        waiting = [(f, k) for f, k in waiting if f.upper[k] > (1 + close) * largest]
        tolerance /= FINER


def log_odds_rise(
    field: PairwiseField,
    epsilon: Floats,
    entries: Sequence[int],
    *,
    visits: int,
    close: float = CLOSE,
) -> tuple[Floats, Floats]:
    """``[entry]`` twice: bounds from below and above on E of each of ``entries``."""
    rising = RisingField(field, np.asarray(epsilon, dtype=np.float64), entries)
    narrow([rising], visits=visits, close=close)
    return rising.lower, rising.upper
