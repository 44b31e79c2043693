r"""Bounds for random fields in closed form, by pinning, and by walks; rounded up, or both ways.

*Attractive fields of zeros and ones: the exact translation.*

Let the prior be positively affiliated. Then the worst mechanism counts: for the pair
(X_i = 1, X_i = 0) the largest loss over all per-entry ε-DP mechanisms is

.. math:: ε_i + \log E\big[e^{\sum_{j≠i} ε_j X_j} \,\big|\, X_i=1\big]
        - \log E\big[e^{\sum_{j≠i} ε_j X_j} \,\big|\, X_i=0\big].

Proof: let f* be that exponential and f any admissible function of the other entries; f / f* is
decreasing. Tilting by f*, a product, keeps affiliation, so the tilted law given X_i = 1 dominates
the one given X_i = 0, and E₁f/E₀f ≤ E₁f*/E₀f*. Written with odds, the loss is

.. math:: \mathrm{logit}\, P_{+ε}(X_i=1) - \mathrm{logit}\, P(X_i=1),

the shift of the log odds of entry i when every field is raised by its ε. The reverse pair lowers
every field: :math:`\mathrm{logit}\,P - \mathrm{logit}\,P_{-ε}`. Only :math:`f(1) \le e^{ε_j} f(0)`
was used of an entry's cost for the pair (1, 0), and :math:`f(0) \le e^{ε_j} f(1)` for the other: a
cost that differs by direction is exact as well, ε_j being that of its direction. So three sums over
the whole model give all entries, exactly, where a junction tree allows it. Where it does not,
pinning gives bounds. The lower bound is a loss that
happens: a noisy count leaks it.

*Pinning: log odds of attractive fields that are too dense to be summed over, as intervals.*

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

*Walks: pairwise fields of any size, signs and numbers of values.*

Let the law be a product of positive tables on entries and pairs of entries, Δ_ij the largest log
cross-ratio of the table of i and j (4|J| for Ising), c_j the largest cost of entry j, and

.. math:: β(Δ, α) = 4\,\mathrm{artanh}\big(\tanh(Δ/4) \tanh(α/4)\big).

Then the loss of a pair at entry i is at most

.. math:: c_i + \sum_{j \sim i} β(Δ_{ij}, c_j + L_{j \setminus i}), \qquad
   L_{j \setminus i} = \sum_{k \sim j, k \ne i} β(Δ_{jk}, c_k + L_{k \setminus j}).

*Lemma.* If w > 0 has range e^Δ (its largest over its smallest value) and H > 0 range e^α, then
E[wH] ≤ e^β E[w] E[H]. Proof: for a given w the ratio E[wH]/(E[w] E[H]) is linear-fractional in H,
so the best H takes two values, the larger one where w is large; likewise the best w takes two
values for this H, on the same event A. With p = P(A), a = e^{Δ/2}, b = e^{α/2} and the values
a^{±1}, b^{±1} the ratio is (p ab + (1−p)/(ab)) / ((p a + (1−p)/a)(p b + (1−p)/b)), largest at p =
1/(1 + ab), where it is ((1+ab)/(a+b))², and 2 log((1+ab)/(a+b)) = β.

*Proof of the bound.* Let h be admissible. To pass from X_i = y to X_i = x, replace the tables f(y,
·) of i's contacts by f(x, ·) one after the other. Replacing that of j reweights the law by w(X_j),
of range at most e^Δ. H = E[h | X_j], with i gone, has range at most e^{c_j + L}, L how far the law
of the others depends on X_j in the field without i: the same question again. So E[h] changes by a
factor of at most e^β each time. Unrolled, it is a sum over self-avoiding walks from i. To forbid
only the step back adds walks, and β rises in α: the recursion above dominates. No tables on single
entries enter, so the hybrid laws are covered too. L is at most the sum of Δ_jk, and at most the sum
of all costs: from there every round of the recursion is a bound. From 0 it is one after as many
rounds as there are entries: no self-avoiding walk is longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, down, gamma, log_ratio_up, up
from takifugu.errors import TooLarge
from takifugu.priors.networks import Factor, NetworkPrior
from takifugu.translation.certify.tables import PartitionSums
from takifugu.translation.models.tree import JunctionTree

BOX_LEVELS = 16  # of boxes behind the walk
MAX_PINNING_DEPTH = 10  # of the walk itself
STRONGEST = 400.0  # a coupling beyond it is not exponentiated
STEEPEST_ODDS = 138.0  # log odds beyond it count as unbounded: see `field_loops.BIG`
STEEPEST_COST = 300.0  # an ε beyond this is not exponentiated
MAX_ROUNDS = 200  # of the non-backtracking recursion
MAX_RISING_ENTRIES = 256  # entries up to which the recursion is also run up from 0
LEAST_RECURSION_GAIN = 1e-9  # a relative gain below this ends it


def counted_losses(
    tree: JunctionTree, factors: Sequence[Factor], spent: Floats, chosen: Sequence[int]
) -> tuple[Floats, Floats]:
    """``[way, k]`` twice: bounds from below and above for the entries ``chosen``; way 0 is (1, 0).

    ``spent``, ``[way, entry]``, is what the change from 1 to 0 costs, and the other one.
    """
    if not spent.max() < STEEPEST_COST:
        raise TooLarge(
            f"an ε of {spent.max():g} is too large to be exponentiated",
            field="epsilon",
            size=float(spent.max()),
            limit=STEEPEST_COST,
        )
    plain = PartitionSums(tree, factors)
    lower, upper = np.empty((2, len(chosen))), np.empty((2, len(chosen)))
    for way in (0, 1):
        value = 1 - way  # the value that the worst mechanism counts
        gain = np.exp(spent[way])
        tilt = {j: np.roll([float(gain[j]), 1.0], value) for j in range(len(gain)) if gain[j] > 1}
        tilted = PartitionSums(tree, factors, tilt)
        for k, entry in enumerate(chosen):
            after, before = tilted.entry(entry), plain.entry(entry)
            error = gamma(max(after.roundings, before.roundings) + 4)
            (a, b), (c, d) = after.table[[value, way]], before.table[[value, way]]
            above = log_ratio_up(a, b, error=error) + log_ratio_up(d, c, error=error)
            below = log_ratio_up(b, a, error=error) + log_ratio_up(c, d, error=error)
            upper[way, k], lower[way, k] = up(above), down(-below)
    return lower, upper


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

    def lowered(self, by: Floats) -> "PairwiseField":
        """The same with every field lower."""
        return replace(self, low=down(self.low - by), high=up(self.high - by))


def pairwise_field(model: NetworkPrior) -> PairwiseField:
    """Read an attractive model (see `check_attractive`) of entries and pairs of entries."""
    from takifugu.translation.certify import field_loops

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
    degree = np.array([len(own) for own in contacts], dtype=np.int64)
    shape = (count, max(int(degree.max()), 1))
    near, weak, strong = np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape)
    back = np.zeros(shape, dtype=np.int64)
    place: dict[tuple[int, int], int] = {}
    for i, own in enumerate(contacts):
        for a, (least, most, j) in enumerate(sorted(own)):
            near[i, a], weak[i, a], strong[i, a] = j, least, most
            place[i, j] = a
    for (i, j), a in place.items():
        back[i, a] = place[j, i]
    pins = field_loops.pin_levels(near, back, degree, BOX_LEVELS)
    return PairwiseField(field - off, field + off, near, back, degree, weak, strong, pins)


class RisingField:
    """A field whose entries rise by ε each, ready to be explored from any of its entries.

    Attributes:
        entries: The entries to be explored.
        lower: ``[k]``: at most the rise of the log odds of entry k.
        upper: ``[k]``: at least it.
    """

    def __init__(self, field: PairwiseField, epsilon: Floats, entries: Sequence[int]) -> None:
        from takifugu.translation.certify import field_loops as kernel

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
            low = np.exp(np.clip(field.low, -STEEPEST_ODDS, STEEPEST_ODDS)) * (1 - 8 * UNIT)
            high = np.exp(np.clip(field.high, -STEEPEST_ODDS, STEEPEST_ODDS)) * (1 + 8 * UNIT)
            weak = np.expm1(field.weak) * (1 - 8 * UNIT)
            strong = np.expm1(field.strong) * (1 + 8 * UNIT)
            own = np.expm1(epsilon)
            whole = float(np.expm1(fsum(epsilon) * (1 + 8 * UNIT)) * (1 + 8 * UNIT))
        low[field.low < -STEEPEST_ODDS] = 0.0
        high[field.high > STEEPEST_ODDS] = np.inf
        boxes = np.zeros((BOX_LEVELS, count, width, 5))
        kernel.far_boxes(
            *(low, high, own, whole, field.near, field.back, field.degree, weak, strong),
            *(field.pins, boxes),
        )
        self._given = (low, high, own, field.near, field.degree, weak, strong, boxes)
        self._gone, self._pinned = np.zeros(count, dtype=np.bool_), np.ones((2, count))
        self._kept = np.zeros((MAX_PINNING_DEPTH, 2, width))
        self._made = np.zeros(1, dtype=np.int64)

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


@dataclass(frozen=True, eq=False)
class Contacts:
    """Who shares a table with whom, and how far the tables reach.

    Attributes:
        start: ``[entry + 1]``: where the contacts of an entry begin.
        near: ``[contact]``: the other entry.
        back: ``[contact]``: the same contact seen from the other entry.
        spread: ``[contact]``: Δ, rounded up.
        ranges: ``[contact]``: ``[x, y]``: the log range of f(x, ·)/f(y, ·), rounded up; f is the
            table with own values first.
    """

    start: Integers
    near: Integers
    back: Integers
    spread: Floats
    ranges: tuple[Floats, ...]

    @property
    def farthest(self) -> Floats:
        """``[entry]``: the sum of Δ over its contacts, rounded up."""
        ends = self.start.tolist()
        return up(np.array([fsum(self.spread[a:b]) for a, b in pairwise(ends)]))

    def behind(self, largest: Floats, whole: float) -> Floats:
        """``[contact]``: the non-backtracking bound L of what lies behind each contact.

        ``largest`` has the largest cost of each entry, and ``whole`` is their sum.
        """
        from takifugu.translation.certify import field_loops

        bounds = np.full(len(self.near), whole)
        if len(bounds):
            bounds = np.minimum(bounds, self.farthest[self.near])
        shared = (LEAST_RECURSION_GAIN, largest, self.start, self.near, self.back, self.spread)
        field_loops.rounds(MAX_ROUNDS, *shared, bounds, True)
        if len(largest) <= MAX_RISING_ENTRIES:
            walks = np.zeros_like(bounds)
            field_loops.rounds(len(largest), *shared, walks, False)
            bounds = np.minimum(bounds, walks)
        return bounds

    def walked(
        self, entry: int, depth: int, visits: int, largest: Floats, behind: Floats
    ) -> Floats:
        """``[contact of entry]``: what lies behind it, by walks of up to ``depth`` steps."""
        from takifugu.translation.certify import field_loops

        own = slice(*self.start[entry : entry + 2])
        inner = behind[own].copy()
        gone = np.zeros(len(largest), dtype=np.bool_)
        gone[entry] = True
        left = np.array([visits], dtype=np.int64)
        shared = (largest, self.start, self.near, self.spread, behind)
        for k, j in enumerate(self.near[own]):
            inner[k] = min(inner[k], field_loops.walked(int(j), depth - 1, left, *shared, gone))
        return inner


def check_pairwise(model: NetworkPrior) -> None:
    """An error unless all tables are on entries, or positive and on pairs of entries."""
    for factor in model.factors():
        many = len(factor.scope)
        if many > 2 or (many == 2 and not factor.table.min() > 0):
            raise TooLarge(
                f"{model.name!r} is too densely connected for a junction tree, and bounds by walks"
                " are for positive tables on pairs of entries only; one joins"
                f" {many} entries or holds a 0",
                size=many,
                limit=2,
            )


def contacts_of(model: NetworkPrior) -> Contacts:
    """Read a field of positive tables on entries and pairs of entries; refuse others."""
    check_pairwise(model)
    logs: dict[tuple[int, int], Floats] = {}
    sizes: dict[tuple[int, int], float] = {}  # of the logarithms that are added: they may cancel
    for factor in model.factors():
        if len(factor.scope) == 1 or factor.table.min() == factor.table.max():
            continue
        i, j = factor.scope
        table = np.log(factor.table)
        key, table = ((i, j), table) if i < j else ((j, i), table.T)
        logs[key] = logs[key] + table if key in logs else table
        sizes[key] = sizes.get(key, 0.0) + 1.0 + float(np.abs(table).max())
    listed: list[list[tuple[int, Floats]]] = [[] for _ in model.entries]
    for (i, j), table in logs.items():
        margin = 64 * UNIT * sizes[i, j]
        listed[i].append((j, log_ranges(table, margin)))
        listed[j].append((i, log_ranges(table.T, margin)))
    start = np.cumsum([0, *map(len, listed)])
    near = np.array([j for own in listed for j, _ in own], dtype=np.int64)
    place = {
        (i, j): int(start[i]) + k for i, own in enumerate(listed) for k, (j, _) in enumerate(own)
    }
    back = np.array([place[j, i] for i, own in enumerate(listed) for j, _ in own], dtype=np.int64)
    ranges = tuple(widths for own in listed for _, widths in own)
    spread = np.array([widths.max() for widths in ranges], dtype=np.float64)
    return Contacts(start, near, back, spread, ranges)


def log_ranges(table: Floats, margin: float) -> Floats:
    """``[x, y]``: the log range of f(x, ·)/f(y, ·) plus ``margin``, from the logarithms of f."""
    apart = table[:, None] - table[None]  # [x, y, u]
    widths = apart.max(axis=2) - apart.min(axis=2) + margin
    np.fill_diagonal(widths, 0.0)
    return np.asarray(widths)
