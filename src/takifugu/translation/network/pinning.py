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

from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT
from takifugu.errors import TooLarge
from takifugu.numeric import Floats, Integers
from takifugu.priors.factors import FactorModel

LEVELS = 20  # of boxes behind the walk
DEPTH = 10  # of the walk itself
CLOSE = 0.01  # a gap of this share of the loss is narrow enough
FINER = 4.0  # by what the tolerance falls from round to round


@dataclass(frozen=True, eq=False)
class PairwiseField:
    """Fields and couplings of an attractive model, as intervals around what float64 can say.

    Attributes:
        low: ``[entry]``: at most h.
        high: ``[entry]``: at least h.
        near: ``[entry, k]``: its contacts, the weakest first.
        degree: ``[entry]``: how many there are.
        weak: ``[entry, k]``: at most J.
        strong: ``[entry, k]``: at least J.
    """

    low: Floats
    high: Floats
    near: Integers
    degree: Integers
    weak: Floats
    strong: Floats


def pairwise_field(model: FactorModel) -> PairwiseField:
    """Read an attractive model (see `check_attractive`) of entries and pairs of entries."""
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
    for i, found in enumerate(contacts):
        for a, (least, most, j) in enumerate(sorted(found)):
            near[i, a], weak[i, a], strong[i, a] = j, least, most
    return PairwiseField(field - off, field + off, near, degree, weak, strong)


def log_odds_rise(
    field: PairwiseField,
    epsilon: Floats,
    entries: list[int],
    *,
    visits: int,
    close: float = CLOSE,
) -> tuple[Floats, Floats]:
    """``[entry]`` twice: bounds from below and above on E of each of ``entries``.

    Each is explored once. The remaining ``visits`` go to those that may be the largest, until the
    largest is known to a relative ``close``, or what is left out is less than the rounding.
    """
    from takifugu.translation.network import pinning_kernel

    count, most = len(field.low), field.near.shape[1]
    boxes = np.zeros((LEVELS, count, most, 5))
    pinning_kernel.far_boxes(
        *(field.low, field.high, epsilon, field.near, field.degree, field.weak, field.strong, boxes)
    )
    gone, pinned = np.zeros(count, dtype=np.bool_), np.zeros((2, count))
    kept, made = np.zeros((DEPTH, 2, most)), np.zeros(1, dtype=np.int64)
    lower, upper = np.zeros(len(entries)), np.full(len(entries), np.inf)
    tolerance = float(epsilon.max(initial=0.0)) / 10
    finest = UNIT * tolerance  # what is left out below this is less than the rounding
    open_ones = list(range(len(entries)))
    left, explored = visits, False
    while open_ones and ((left > 0 and tolerance > finest) or not explored):
        explored = True  # each of them at least once
        for k in open_ones:
            made[0] = 0
            _, _, least, greatest = pinning_kernel.explore(
                *(entries[k], 0, 1.0, tolerance, max(left, 1)),
                *(field.low, field.high, epsilon, field.near, field.degree),
                *(field.weak, field.strong, boxes),
                gone,
                *(pinned, kept),
                made,
            )
            left -= int(made[0])
            if least <= greatest:  # also false for NaN, beyond all floats: nothing was learnt
                lower[k], upper[k] = max(lower[k], least), min(upper[k], greatest)
        narrow = (1 + close) * float(lower.max())
        open_ones = [k for k in open_ones if upper[k] > narrow]
        tolerance /= FINER
    return lower, upper
