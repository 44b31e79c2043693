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
entrywise extremes: the robust step of `takifugu.translation.chain.interval_steps` bounds all laws
of the hull at once. That is close where the hull is small.

A state x that no law of an edge leads to takes the place of another state z there: any row may
stand for it, for such a pair has no secret; it only keeps the closure of the costs valid.
"""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import LEAST, Booleans, Floats
from takifugu._core.rounding import UNIT, up
from takifugu.translation.certify.flow import LARGE, Couplings, Rows, bound, closed, off_diagonal
from takifugu.translation.chain.interval_steps import robust_rows
from takifugu.translation.search.couplings import improve

CLOSE = 1e-3  # relative distance between the two bounds of a step at which its search ends
POINTS = 400  # laws that are tried in one step
WORK = 12_000  # and as many of them as this allows, times states²: beyond it boxes must do
FAINTEST = 1e-250  # a smaller probability of a law is not computed with


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
        return bool((self.able & (self.laws < FAINTEST)).any())

    @property
    def slack(self) -> float:
        """What the rounding of the laws can do to a log-ratio: as `entry_laws.Law.slack`."""
        return 8.0 * (len(self.laws[0]) + 4) * (self.steps + 2) * UNIT

    @property
    def possible(self) -> Booleans:
        """``[u]``: whether u can happen from some state of the first entry."""
        found: Booleans = np.logical_or.reduce(self.able, axis=0)
        return found

    @property
    def width(self) -> float:
        """The largest log-ratio between the probabilities of a state under two laws."""
        low, high = self.laws.min(axis=0), self.laws.max(axis=0)
        here = self.possible
        with np.errstate(divide="ignore"):
            return float(np.log(high[here] / low[here]).max(initial=0.0))


def two_point(delta: Floats, omega: Floats | float) -> Floats:
    """β(Δ, ω) = 4 artanh(tanh(Δ/4) tanh(ω/4)) of numbers from 0 to infinity, rounded up.

    Never more than either of them.
    """
    least = np.minimum(delta, omega)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        product = np.tanh(np.asarray(delta) / 4) * np.tanh(np.asarray(omega) / 4)
        # 1 − product² is off by a few units: near 1 the lesser of the two says it
        value = 4 * np.arctanh(np.minimum(product * (1 + 16 * UNIT), 1.0))
    found: Floats = np.minimum(np.where(np.isnan(value), least, value * (1 + 64 * UNIT)), least)
    return found


def hull_step(
    hull: StartHull,
    weights: Floats,
    charged: Floats,
    *,
    guess: Floats | None = None,
    close: float | None = CLOSE,
) -> Floats:
    """``[x, y]``: at least the step for every law of ``hull``; never more than the dearest move.

    ``weights`` [x, u] is W; ``charged`` [u, v] what a change of the entry costs, with all that is
    known of the entries before it. Without ``close`` the boxes must do.
    """
    cost = closed(charged)
    count = len(weights)
    dearest = float(cost.max(initial=0.0))  # every coupling costs at most its dearest move
    cap = off_diagonal(count, dearest)
    if not 0 < dearest < LARGE or hull.faint:
        return cap
    if hull.steps == 0:
        return np.minimum(_from_two_states(weights, cost) + hull.slack * off_diagonal(count), cap)
    if len(cost) == 2:
        return np.minimum(_two_states(hull, weights, cost) + hull.slack * off_diagonal(count), cap)
    search = _Search(hull, weights, cost, guess)
    found = np.minimum(search.boxes(), cap)
    narrow = close is None or hull.width <= close / 10  # then boxes come as close
    if not narrow and count > 1 and search.affordable > len(hull.laws):
        found = np.minimum(found, search.cells(found, close or 0.0))
    return np.minimum(found + hull.slack * off_diagonal(count), cap)


def _rows(laws: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """``[vertex, x, u]``: the law of the entry given x; ``[vertex, x]``: the probability of x."""
    joint = laws[:, None, :] * weights[None]
    total = joint.sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.where(total[:, :, None] > 0, joint / total[:, :, None], 0.0)
    return rows, total


def hull_boxes(hull: StartHull, weights: Floats) -> Rows:
    """The two measures of the robust step for the boxes that hold the rows of all laws."""
    rows, totals = _rows(hull.laws, weights)
    able = totals > 0  # [vertex, x]
    low = np.where(able[:, :, None], rows, np.inf).min(axis=0)
    high = np.where(able[:, :, None], rows, -np.inf).max(axis=0)
    some = np.logical_or.reduce(able, axis=0)
    z = int(np.argmax(some))
    low, high = (np.where(some[:, None], ends, ends[z]) for ends in (low, high))
    low = np.where(low < LEAST, 0.0, low * (1 - 16 * UNIT))
    high = np.where(high > 0, np.maximum(high * (1 + 16 * UNIT), LEAST), 0.0)
    return robust_rows(low, high)


def _from_two_states(weights: Floats, cost: Floats) -> Floats:
    r"""``[x, y]``: the step for every law of the first entry.

    Laws on two states a, b: with Δ the logarithm of W(x,a)W(y,b)/W(x,b)W(y,a), if that is above 0,
    the loss is at most β(Δ, c(a, b)), attained at some odds of a and b.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(weights)  # [x, a]
    found = np.zeros((len(weights), len(weights)))
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
            rounding = 8 * UNIT * (np.abs(one) + np.abs(other))
            rounding = np.where(np.isfinite(rounding), rounding, 0.0)
            delta = np.where(np.isnan(delta), 0.0, delta)
            wide = rounding[:, None] + rounding[None]
            for sign, price in ((1.0, cost[a, b]), (-1.0, cost[b, a])):
                apart = np.maximum(sign * delta, 0.0)
                apart = np.where(apart > 0, apart + wide, 0.0)
                np.maximum(found, two_point(apart, float(price)), out=found)
    np.fill_diagonal(found, 0.0)
    return found


def _two_states(hull: StartHull, weights: Floats, cost: Floats) -> Floats:
    r"""``[x, y]``: the step of a chain of two states, in closed form.

    With o the odds of state 1 and α = W(x,1)/W(x,0), β the same of y, α > β, the loss is
    :math:`\log\frac{(1+Goα)(1+oβ)}{(1+oα)(1+Goβ)}`, G = e^{c(1,0)}, which rises up to
    :math:`o² = 1/(Gαβ)` and falls from there: o is clipped to the odds that can occur.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(hull.laws[:, 1]) - np.log(hull.laws[:, 0])
        ratio = np.log(weights[:, 1]) - np.log(weights[:, 0])
    never = np.isnan(ratio) | ~(weights @ hull.laws.T > 0).any(axis=1)
    ratio = np.where(never, ratio[int(np.argmin(never))], ratio)
    low, high = float(odds.min()), float(odds.max())
    found = np.zeros((len(weights), len(weights)))
    for x, one in enumerate(ratio):
        for y, other in enumerate(ratio):
            if x != y and one != other:
                flip = 1.0 if one > other else -1.0  # state 0 takes the place of 1
                price = float(cost[1, 0] if one > other else cost[0, 1])
                ends = (low, high) if one > other else (-high, -low)
                found[x, y] = _clipped(flip * one, flip * other, price, *ends)
    return np.asarray(up(found)) * (found > 0)


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


@dataclass(eq=False)
class _Cell:
    """A piece of an edge: both ends, and what they prove."""

    laws: tuple[Floats, Floats]
    rows: tuple[Floats, Floats]
    totals: tuple[Floats, Floats]
    found: tuple[Floats, Floats]
    upper: Floats


class _Search:
    """Branch and bound over the laws on the edges of a hull, for all pairs of rows at once."""

    def __init__(
        self, hull: StartHull, weights: Floats, cost: Floats, guess: Floats | None
    ) -> None:
        self._hull, self._weights, self._cost = hull, weights, cost
        self._dearest = float(cost.max())
        self._guess = off_diagonal(len(weights), self._dearest / 2) if guess is None else guess
        self._couplings: Couplings | None = None
        self._rows, self._totals = _rows(hull.laws, weights)
        self._unit = off_diagonal(len(weights))
        self.affordable = min(POINTS, WORK // max(len(cost), len(weights)) ** 2)

    def boxes(self) -> Floats:
        """``[x, y]``: the robust step for the boxes that hold all rows."""
        sides = hull_boxes(self._hull, self._weights)(self._cost)
        _, couplings = improve(*sides, self._cost, guess=self._guess, known=None)
        return bound(*sides, self._cost, couplings)

    def cells(self, enough: Floats, close: float) -> Floats:
        """``[x, y]``: the largest bound of all cells, split until it is near a loss that occurs.

        No bound below ``enough`` is of use where that is larger than what a law attains.
        """
        laws, size = self._hull.laws, len(self._hull.laws)
        cells = []
        ends: dict[int, Floats] = {}
        spent = 0
        best = np.zeros_like(enough)
        for a in range(size):
            for b in range(a):
                rows, totals = self._ends(a, b)
                shared = (self._totals[[a, b]] > 0).all()
                found = []
                for vertex, side in ((a, rows[0]), (b, rows[1])):
                    if not shared or vertex not in ends:
                        value, spent = self._at(side), spent + 1
                        if shared:
                            ends[vertex] = value
                    else:
                        value = ends[vertex]
                    found.append(value)
                    best = np.maximum(best, value)
                cell = _Cell((laws[a], laws[b]), rows, totals, (found[0], found[1]), best)
                cell.upper = self._upper(cell)
                cells.append(cell)
        while spent < self.affordable:
            wanted = close * float(best.max()) + 1e-12
            over = [float((np.minimum(cell.upper, enough) - best).max()) for cell in cells]
            k = int(np.argmax(over))
            if over[k] <= wanted:
                break
            left, right = self._split(cells.pop(k), best)
            best = np.maximum(best, left.found[1])
            spent += 1
            cells += [left, right]
        return np.asarray(np.max([cell.upper for cell in cells], axis=0))

    def _ends(self, a: int, b: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """The rows at both ends of an edge, as limits from inside it."""
        one, other = self._rows[a], self._rows[b]
        here, there = self._totals[a], self._totals[b]
        never = (here == 0) & (there == 0)
        if never.any():
            z = int(np.argmax(~never))
            one, other = (np.where(never[:, None], rows[z], rows) for rows in (one, other))
            here, there = (np.where(never, totals[z], totals) for totals in (here, there))
        first = np.where((here == 0)[:, None], other, one)
        second = np.where((there == 0)[:, None], one, other)
        return (first, second), (here, there)

    def _at(self, rows: Floats) -> Floats:
        """``[x, y]``: the step at one law, rounded up."""
        _, self._couplings = improve(
            *(rows, rows, self._cost), guess=self._guess, known=self._couplings
        )
        return np.minimum(
            bound(rows, rows, self._cost, self._couplings), self._dearest * self._unit
        )

    def _upper(self, cell: _Cell) -> Floats:
        """``[x, y]``: the larger end of a cell plus β(Δ, ω)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.log(cell.totals[1]) - np.log(cell.totals[0])  # [x]; infinite where p stays
            delta = np.abs(shift[:, None] - shift[None])
        delta = np.where(np.isnan(delta), np.inf, delta + 64 * UNIT)
        omega = self._apart(cell.rows)
        extra = two_point(delta, np.minimum(omega[:, None], omega[None]))
        return np.minimum(
            np.asarray(up(np.maximum(*cell.found) + extra)) * self._unit, self._dearest * self._unit
        )

    def _apart(self, rows: tuple[Floats, Floats]) -> Floats:
        """``[x]``: at least |log E_1 g / E_2 g| of the two rows of x."""
        one, other = rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(one) - np.log(other)
        high = np.where(np.isnan(ratio), -np.inf, ratio).max(axis=1)
        low = np.where(np.isnan(ratio), np.inf, ratio).min(axis=1)
        by_ratio = two_point(high - low + 64 * UNIT, self._dearest)
        moved = np.abs(one - other).sum(axis=1) / 2
        by_mass = np.log1p(np.expm1(self._dearest) * (moved + 16 * UNIT)) * (1 + 16 * UNIT)
        same = (one == other).all(axis=1)
        return np.where(same, 0.0, np.minimum(by_ratio, by_mass))

    def _split(self, cell: _Cell, best: Floats) -> tuple[_Cell, _Cell]:
        """Two halves: for the pair that is worst, λ changes by as much in both."""
        x, y = np.unravel_index(int(np.argmax(cell.upper - best)), best.shape)
        (a, c), (b, d) = [(float(t[x]), float(t[y])) for t in cell.totals]
        share = 0.5  # where one end is a limit
        if min(a, b, c, d) > 0:
            middle = np.sqrt(c / a) * np.sqrt(d / b)
            slope = (d - c) - middle * (b - a)
            share = (middle * a - c) / slope if slope else 0.5
        share = min(max(share, 1e-3), 1 - 1e-3)
        law = (1 - share) * cell.laws[0] + share * cell.laws[1]
        rows, totals = _rows(law[None], self._weights)
        inside, total = rows[0], totals[0]
        never = total == 0
        if never.any():  # as at both ends
            z = int(np.argmax(~never))
            inside = np.where(never[:, None], inside[z], inside)
            total = np.where(never, total[z], total)
        value = self._at(inside)
        left = _Cell(
            (cell.laws[0], law), (cell.rows[0], inside), (cell.totals[0], total),
            (cell.found[0], value), value,
        )  # fmt: skip
        right = _Cell(
            (law, cell.laws[1]), (inside, cell.rows[1]), (total, cell.totals[1]),
            (value, cell.found[1]), value,
        )  # fmt: skip
        left.upper, right.upper = self._upper(left), self._upper(right)
        return left, right
