r"""One backward step when the law of the entry before is only known to lie in a hull of laws.

Entry i−1 has a law m in the convex hull of some laws, the *vertices*; given X_i = x it has the law
:math:`p_m(u) ∝ m(u) W(x,u)`, with W(x, u) the probability that x follows u. The step is

.. math:: \sup_m T(p_m, q_m; c) = \sup_m \sup_g \log
   \frac{\langle m, W_x g\rangle / D_x(m)}{\langle m, W_y g\rangle / D_y(m)},
   \qquad D_x(m) = \langle m, W_x\rangle .

**Two vertices are enough.** Fix g and let λ = D_y(m)/D_x(m). The laws of the hull with that λ are a
polytope whose vertices lie on edges: each is a mixture of two vertices of the hull. There the ratio
is λ times a linear function over a linear function, so its maximum is at a vertex. ∎ (Where D_x and
D_y both vanish, both linear functions do, and the mixture loses nothing by leaving it out.)

**Cells.** Let m run from :math:`m_1` to :math:`m_2` along an edge. Then :math:`p_m` is a mixture of
:math:`p_1` and :math:`p_2` with a weight s on the second, :math:`q_m` one of :math:`q_1, q_2` with
a weight r, and logit s − logit r is the same all along up to sign: Δ = |log λ(m_2)/λ(m_1)|. Hence

.. math:: \frac{E_{p_m} g}{E_{q_m} g}
   = \frac{(1-s)A_1 + sA_2}{(1-s)B_1 + sB_2}\cdot\frac{(1-s)B_1 + sB_2}{(1-r)B_1 + rB_2}
   \le \max_j \frac{A_j}{B_j}\cdot e^{β(Δ,\,ω)},\qquad
   β(Δ, ω) = 4\,\mathrm{artanh}(\tanh\tfrac Δ4 \tanh\tfrac ω4),

where ω bounds :math:`|\log B_2/B_1|`: two expectations that differ by a factor of e^ω, with weights
whose odds differ by e^Δ. So in a cell the loss is at most the larger end plus β(Δ, ω), and ω may be
taken for p instead of q. Both Δ and ω shrink with the cell. A likelihood ratio between
:math:`q_1, q_2` with a range of e^δ makes :math:`|\log B_2/B_1| \le β(δ, \max c)`: the best g is a
threshold of that ratio, which is the same two-point problem.

**Boxes.** :math:`p_m` is a mixture of the :math:`p_v` of all vertices, so it lies between their
entrywise extremes: the robust step of `takifugu.translation.certify.boxes` bounds all laws of the
hull at once. That is close where the hull is small.

A state x that no law of an edge leads to takes the place of another state z there: any row may
stand for it, for such a pair has no secret; it only keeps the closure of the costs valid.

**An unknown start.** Let :math:`B_i(x,y)` bound :math:`\log E[h|X_i=x]/E[h|X_i=y]` over all
admissible h of the entries before i *and all laws of entry 0*. Entry i−1 has a law in the hull of
the rows of the product of the first i−1 matrices, so

.. math:: B_{i} \le \sup_{m ∈ H_{i-1}} T(p_m, q_m;\ c_{i-1} + B_{i-1}),\qquad B_0 = 0:

for the law μ of entry 0 that is worst, the step is taken at m = μP…P, and what lies further back is
bounded for all laws. The law that is worst may be another one at every step, so this may lie above
the truth: by 1.5 % for p = q = .9 at ε = 1. With one matrix P the hulls shrink: rows of
:math:`P^{n+1}` are mixtures of rows of :math:`P^n`. So a step with an earlier hull is at least one
with a later, which is all that `takifugu.translation.certify.flow.FlowWalk` needs of equal steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from takifugu._core.numeric import LEAST, Booleans, Floats
from takifugu._core.rounding import UNIT, up
from takifugu.translation.certify.boxes import robust_rows
from takifugu.translation.certify.flow import (
    LARGE,
    Couplings,
    Edge,
    HullProof,
    Rows,
    Step,
    closed,
    off_diagonal,
)
from takifugu.translation.certify.laws import Law

LEAST_PROBABILITY = 1e-250  # a smaller probability of a law is not computed with
LEAST_MIXED = 1e-290  # nor is one of a mixture of two laws: below, floats lose their last places
NARROW = 1e-8  # the width at which a hull is one law, as far as losses go


@dataclass(frozen=True, eq=False)
class StartHull:
    """The laws that an entry may have when the first one may have any.

    Attributes:
        laws: ``[vertex, u]``: the law of the entry, for each state of the first.
        able: ``[vertex, u]``: whether u can happen. Decided by zeros alone.
        steps: How many steps were walked.
    """

    laws: Floats
    able: Booleans
    steps: int = 0

    @classmethod
    def whole(cls, size: int) -> "StartHull":
        """Every law: that of the first entry."""
        return cls(np.eye(size), np.eye(size) > 0)

    def after(self, rows: Floats) -> "StartHull":
        """The hull one step later."""
        able = (self.able.astype(np.float64) @ (rows > 0).astype(np.float64)) > 0
        laws = np.where(able, self.laws @ rows, 0.0)
        return StartHull(laws / laws.sum(axis=1, keepdims=True), able, self.steps + 1)

    @property
    def faint(self) -> bool:
        """Whether some probability is too small to be computed with."""
        return bool((self.able & (self.laws < LEAST_PROBABILITY)).any())

    @property
    def slack(self) -> float:
        """What the rounding of the laws can do to a log-ratio: as `laws.Law.slack`."""
        return 8.0 * (len(self.laws[0]) + 4) * (self.steps + 2) * UNIT

    @property
    def possible(self) -> Booleans:
        """``[u]``: whether u can happen from some state of the first entry."""
        possible: Booleans = np.logical_or.reduce(self.able, axis=0)
        return possible

    @cached_property
    def width(self) -> float:
        """The largest log-ratio between the probabilities of a state under two laws."""
        low, high = self.laws.min(axis=0), self.laws.max(axis=0)
        here = self.possible
        with np.errstate(divide="ignore"):
            return float(np.log(high[here] / low[here]).max(initial=0.0))


class HullLine:
    """The hulls of the entries of a chain, walked as far as they are asked for."""

    def __init__(self, kernels: Sequence[Floats]) -> None:
        self._kernels = kernels
        self._alike = all(kernel is kernels[0] for kernel in kernels)
        self.hulls = [StartHull.whole(len(kernels[0]))]
        self.ended = False  # whether the last hull holds all later laws, as far as they go

    def at(self, entry: int) -> StartHull:
        """One that holds the laws of ``entry``."""
        while not self.ended and len(self.hulls) <= entry:
            last = self.hulls[-1]
            later = last.after(self._kernels[min(len(self.hulls), len(self._kernels)) - 1])
            # an earlier hull holds all later laws of one matrix
            self.ended = self._alike and (later.faint or (last.steps > 0 and last.width <= NARROW))
            if not self.ended:
                self.hulls.append(later)
        return self.hulls[min(entry, len(self.hulls) - 1)]

    def known(self, entry: int) -> int:
        """The number of a hull that holds the laws of ``entry``, of those that were walked."""
        return min(entry, len(self.hulls) - 1)

    def same_for(self, entry: int) -> int:
        """For how many entries the hull has been the same, or as narrow."""
        _ = self.at(entry)
        return max(entry + 1 - len(self.hulls), 0) if self.ended else 0


@dataclass(frozen=True, eq=False)
class LawOnEdge:
    """One law of an edge.

    Attributes:
        rows: ``[x, u]``: the law of the entry given x.
        logs: ``[x]``: the logarithm of the probability of x; −∞ at an end of the edge that does not
            lead to x.
    """

    rows: Floats
    logs: Floats

    @property
    def inner(self) -> bool:
        """Whether it leads to every state, as all laws between two ends do."""
        return not np.isneginf(self.logs).any()


@dataclass(frozen=True, eq=False)
class HullStep:
    """The step for every law of a hull, for all pairs x, y.

    Attributes:
        hull: The laws.
        weights: ``[x, u]``: W.
        cost: ``[u, v]``: the closed costs of moves, rounded up.
    """

    hull: StartHull
    weights: Floats
    cost: Floats

    @property
    def dearest(self) -> float:
        """The dearest move: every coupling costs at most that."""
        return float(self.cost.max(initial=0.0))

    @property
    def needs_flows(self) -> bool:
        """Whether flows can prove more than the dearest move, or a closed form, does."""
        return self._computable and self.hull.steps > 0 and len(self.cost) != 2

    @property
    def _computable(self) -> bool:
        return 0 < self.dearest < LARGE and not self.hull.faint

    @cached_property
    def robust(self) -> Step:
        """The step for the boxes that hold the rows of all laws."""
        rows = hull_boxes(self.hull, self.weights)(self.cost)
        return Step(*rows, self.cost, 0.0)

    def upper(self, proof: HullProof | Couplings | None) -> Floats:
        """``[x, y]``: at least the step; with flows, no more than they prove."""
        unit, cap = off_diagonal(len(self.weights)), off_diagonal(len(self.weights), self.dearest)
        if not self._computable:
            return cap
        if not self.needs_flows:
            whole = self.hull.steps == 0
            proven = _from_two_states(self.weights, self.cost) if whole else self._two_states()
        elif isinstance(proof, HullProof):
            proven = self.robust.upper(proof.boxes)
            if proof.edges is not None and len(self.weights) > 1:
                proven = np.minimum(proven, self._by_edges(proof.edges))
        else:
            return cap
        return np.minimum(proven + self.hull.slack * unit, cap)

    @cached_property
    def edges(self) -> list[Edge]:
        """The pairs of vertices."""
        return [(a, b) for a in range(len(self.hull.laws)) for b in range(a)]

    @cached_property
    def _vertices(self) -> tuple[Floats, Floats]:
        return _rows(self.hull.laws, self.weights)

    def ends(self, edge: Edge) -> tuple[LawOnEdge, LawOnEdge]:
        """Both ends of an edge, as limits from inside it."""
        rows, logs = self._vertices
        (one, other), (here, there) = rows[list(edge)], logs[list(edge)]
        never = np.isneginf(here) & np.isneginf(there)
        if never.any():
            z = int(np.argmax(~never))
            one, other = (np.where(never[:, None], r[z], r) for r in (one, other))
            here, there = (np.where(never, log[z], log) for log in (here, there))
        first = np.where(np.isneginf(here)[:, None], other, one)
        second = np.where(np.isneginf(there)[:, None], one, other)
        return LawOnEdge(first, here), LawOnEdge(second, there)

    def inside(self, edge: Edge, share: float) -> LawOnEdge | None:
        """The law that has so large a share of the second vertex; None if floats cannot hold it."""
        a, b = self.hull.laws[list(edge)]
        mixture = (1 - share) * a + share * b
        if not mixture[(a > 0) | (b > 0)].min() >= LEAST_MIXED:
            return None
        (rows,), (logs,) = _rows(mixture[None], self.weights)
        never = np.isneginf(logs)
        z = int(np.argmax(~never))
        return LawOnEdge(np.where(never[:, None], rows[z], rows), np.where(never, logs[z], logs))

    def at(self, law: LawOnEdge) -> Step:
        """The step at one law."""
        return Step(law.rows, law.rows, self.cost, 0.0)

    def between(self, first: LawOnEdge, second: LawOnEdge, ends: Floats) -> Floats:
        """``[…, x, y]``: the larger end of a cell, ``ends``, plus β(Δ, ω); of many at once."""
        with np.errstate(invalid="ignore"):
            shift = second.logs - first.logs  # [x]; infinite where p stays
            delta = np.abs(shift[..., :, None] - shift[..., None, :])
        # each is the logarithm of a sum of m products
        error = 2 * (len(self.cost) + 8) * UNIT + _log_error(first.logs) + _log_error(second.logs)
        delta = delta + error[..., :, None] + error[..., None, :]
        delta = np.where(np.isnan(delta), np.inf, delta)
        omega = self._apart(first.rows, second.rows)
        extra = two_point(delta, np.minimum(omega[..., :, None], omega[..., None, :]))
        bounded = np.minimum(up(ends + extra), self.dearest)
        return np.where(np.eye(len(self.weights)) > 0, 0.0, bounded)

    def _by_edges(self, edges: Mapping[Edge, Sequence[tuple[float, Couplings]]]) -> Floats:
        """``[x, y]``: the largest bound of all cells of all edges."""
        size = len(self.weights)
        cells: list[tuple[LawOnEdge, LawOnEdge, Floats]] = []
        vertices: dict[tuple[int, int], Floats] = {}  # what flows prove at a vertex
        for edge in self.edges:
            points = sorted(edges.get(edge, ()), key=lambda point: point[0])
            shares = [share for share, _ in points]
            rising = len(shares) > 1 and all(a < b for a, b in pairwise(shares))
            if not rising or (shares[0], shares[-1]) != (0.0, 1.0):
                return off_diagonal(size, np.inf)
            first, second = self.ends(edge)
            between = [(self.inside(edge, share), flows) for share, flows in points[1:-1]]
            # a point that cannot be computed with is left out: its two cells are one
            told = [(law, flows) for law, flows in between if law is not None]
            told = [(first, points[0][1]), *told, (second, points[-1][1])]
            laws = [law for law, _ in told]
            plain = first.inner and second.inner
            values = []
            for k, (law, flows) in enumerate(told):
                vertex = edge[0] if k == 0 else edge[1] if k == len(laws) - 1 else None
                known = None
                if plain and vertex is not None:  # the same law at the end of every edge
                    known = vertices.get((vertex, id(flows)))
                value = self.at(law).upper(flows) if known is None else known
                if plain and vertex is not None:
                    vertices[vertex, id(flows)] = value
                values.append(value)
            ends = zip(pairwise(laws), pairwise(values), strict=True)
            cells += [(one, other, np.maximum(*pair)) for (one, other), pair in ends]
        if not cells:
            return off_diagonal(size, np.inf)
        parts = list(zip(*cells, strict=True))
        one, other = (
            LawOnEdge(np.array([law.rows for law in laws]), np.array([law.logs for law in laws]))
            for laws in parts[:2]
        )
        worst: Floats = self.between(one, other, np.array(parts[2])).max(axis=0)
        return worst

    def _apart(self, one: Floats, other: Floats) -> Floats:
        """``[…, x]``: at least |log E_1 g / E_2 g| of the two rows of x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            here, there = np.log(one), np.log(other)
            ratio = here - there
        error = (_log_error(here) + _log_error(there)).max(axis=-1)
        high = np.where(np.isnan(ratio), -np.inf, ratio).max(axis=-1)
        low = np.where(np.isnan(ratio), np.inf, ratio).min(axis=-1)
        by_ratio = two_point(high - low + 64 * UNIT + 2 * error, self.dearest)
        moved = np.abs(one - other).sum(axis=-1) / 2 * (1 + one.shape[-1] * UNIT)
        by_mass = np.log1p(np.expm1(self.dearest) * (moved + 16 * UNIT)) * (1 + 16 * UNIT)
        same = (one == other).all(axis=-1)
        return np.where(same, 0.0, np.minimum(by_ratio, by_mass))

    def _two_states(self) -> Floats:
        r"""``[x, y]``: the step of a chain of two states, in closed form.

        With o the odds of state 1 and α = W(x,1)/W(x,0), β the same of y, α > β, the loss is
        :math:`\log\frac{(1+Goα)(1+oβ)}{(1+oα)(1+Goβ)}`, G = e^{c(1,0)}, which rises up to
        :math:`o² = 1/(Gαβ)` and falls from there: o is clipped to the odds that can occur.
        """
        laws, weights, cost = self.hull.laws, self.weights, self.cost
        with np.errstate(divide="ignore", invalid="ignore"):
            chances, logs = np.log(laws), np.log(weights)
            odds, ratio = chances[:, 1] - chances[:, 0], logs[:, 1] - logs[:, 0]
        error = _log_error(logs).sum(axis=1)  # [x]
        never = ~(weights > 0)[:, self.hull.possible].any(axis=1)
        z = int(np.argmin(never))
        ratio, error = np.where(never, ratio[z], ratio), np.where(never, error[z], error)
        # a loss moves by no more than the odds and the two ratios do, times e^price − 1 if small
        error = 32 * UNIT + 4 * error + 2 * float(_log_error(chances).max())
        low, high = float(odds.min()), float(odds.max())
        losses = np.zeros((len(weights), len(weights)))
        for x, one in enumerate(ratio):
            for y, other in enumerate(ratio):
                flip = 1.0 if one > other else -1.0  # state 0 takes the place of 1
                price = float(cost[1, 0] if one > other else cost[0, 1])
                losses[x, y] = (error[x] + error[y]) * min(float(np.expm1(price)), 1.0)
                if one != other:
                    ends = (low, high) if one > other else (-high, -low)
                    losses[x, y] += _clipped(flip * one, flip * other, price, *ends)
        np.fill_diagonal(losses, 0.0)
        return np.asarray(up(losses)) * (losses > 0)


@dataclass(frozen=True, eq=False)
class HullStretch:
    """Equal costs of some entries, whose laws are in hulls: see `flow.Stretch`.

    Attributes:
        line: The hulls of all entries.
        first: The first entry that is stepped over.
        weights: ``[x, u]``: W.
        cost: ``[u, v]``: what a change of each entry costs.
        count: How many steps there are.
    """

    line: HullLine
    first: int
    weights: Floats
    cost: Floats
    count: int

    def step(self, after: Floats, walked: int) -> HullStep:
        """One step back onto an entry before which ``after`` [u, v] bounds the loss."""
        return HullStep(self.line.at(self.first + walked), self.weights, closed(self.cost + after))

    def same_for(self, walked: int) -> int:
        """For how many steps the rows have been the same."""
        return min(self.line.same_for(self.first + walked), walked)


def two_point(delta: Floats, omega: Floats | float) -> Floats:
    """β(Δ, ω) = 4 artanh(tanh(Δ/4) tanh(ω/4)) of numbers from 0 to infinity, rounded up.

    Never more than either of them.
    """
    least = np.minimum(delta, omega)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        product = np.tanh(np.asarray(delta) / 4) * np.tanh(np.asarray(omega) / 4)
        # 1 − product² is off by a few units: near 1 the lesser of the two says it
        value = 4 * np.arctanh(np.minimum(product * (1 + 16 * UNIT), 1.0))
    rounded: Floats = np.minimum(np.where(np.isnan(value), least, value * (1 + 64 * UNIT)), least)
    return rounded


def hull_boxes(hull: StartHull, weights: Floats) -> Rows:
    """The two measures of the robust step for the boxes that hold the rows of all laws."""
    rows, logs = _rows(hull.laws, weights)
    able = ~np.isneginf(logs)  # [vertex, x]
    low = np.where(able[:, :, None], rows, np.inf).min(axis=0)
    high = np.where(able[:, :, None], rows, -np.inf).max(axis=0)
    some = np.logical_or.reduce(able, axis=0)
    z = int(np.argmax(some))
    low, high = (np.where(some[:, None], ends, ends[z]) for ends in (low, high))
    low = np.where(low < LEAST, 0.0, low * (1 - 16 * UNIT))
    high = np.where(high > 0, np.maximum(high * (1 + 16 * UNIT), LEAST), 0.0)
    return robust_rows(low, high)


def _rows(laws: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """``[vertex, x, u]``: the law of the entry given x; ``[vertex, x]``: log of x's probability.

    −∞ where the zeros of the law and the weights exclude x: no product decides it, for it may
    underflow. There the row is that of any other law.
    """
    rows = np.empty((len(laws), *weights.shape))
    logs = np.empty((len(laws), len(weights)))
    for k, law in enumerate(laws):
        rows[k], after = Law.from_floats(law).back(weights.T)
        with np.errstate(divide="ignore"):
            logs[k] = np.log(after.mantissa) + np.log(2.0) * after.exponent
    return rows, logs


def _log_error(logs: Floats) -> Floats:
    """What rounding can do to each of these logarithms; 0 where it is infinite, and exact."""
    return np.where(np.isfinite(logs), 8 * UNIT * np.abs(logs), 0.0)


def _from_two_states(weights: Floats, cost: Floats) -> Floats:
    r"""``[x, y]``: the step for every law of the first entry.

    Laws on two states a, b: with Δ the logarithm of W(x,a)W(y,b)/W(x,b)W(y,a), if that is above 0,
    the loss is at most β(Δ, c(a, b)), attained at some odds of a and b.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(weights)  # [x, a]
    losses = np.zeros((len(weights), len(weights)))
    for a in range(len(cost)):
        for b in range(a):
            if cost[a, b] == 0 == cost[b, a]:
                continue
            one, other = logs[:, a], logs[:, b]
            never = np.isneginf(one) & np.isneginf(other)
            if never.any():
                z = int(np.argmax(np.maximum(one, other)))
                one, other = np.where(never, one[z], one), np.where(never, other[z], other)
            ratio = one - other
            with np.errstate(invalid="ignore"):
                delta = ratio[:, None] - ratio[None]
            rounding = _log_error(one) + _log_error(other)
            delta = np.where(np.isnan(delta), 0.0, delta)
            wide = rounding[:, None] + rounding[None]
            for sign, price in ((1.0, cost[a, b]), (-1.0, cost[b, a])):
                apart = np.maximum(sign * delta + wide, 0.0)  # it may have been rounded to 0
                np.maximum(losses, two_point(apart, float(price)), out=losses)
    np.fill_diagonal(losses, 0.0)
    return losses


def _clipped(one: float, other: float, price: float, low: float, high: float) -> float:
    """The loss of two laws whose log-odds are ``one`` and ``other`` plus t, low ≤ t ≤ high."""
    if np.isfinite(one) and np.isfinite(other):
        t = min(max(-(one + other + price) / 2, low), high)
    else:  # one of them is certain: the other is best where it is most likely to be the opposite
        t = low if np.isposinf(one) else high
    p, q = (_share(z + t) if np.isfinite(z) else float(z > 0) for z in (one, other))
    return float(np.log1p(np.expm1(price) * (p - q) / (1 + np.expm1(price) * q)))


def _share(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit))) if logit > -700 else 0.0
