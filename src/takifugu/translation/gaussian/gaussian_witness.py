r"""A mechanism that leaks under a Gaussian process: noise on a clamped sum, far out.

Entry j has cost :math:`\sum_t a_{jt}|\mathrm{clamp}_t u − \mathrm{clamp}_t v|` at least, so the
likelihood :math:`h = \exp \sum_j s_j φ_j(X_j)` with :math:`φ_j = \sum_t a_{jt}\mathrm{clamp}_t` is
admissible for any signs s: it is that of Laplace noise on such a sum as the output goes to
infinity. Take :math:`s_j` = sign of K_ji and the entries j ∈ J beside the secret's own. Then

.. math:: \log\frac{E[h|X_i=x]}{E[h|X_i=y]} = φ_i(x) − φ_i(y) +
          \int_y^x \sum_{j∈J} \frac{|K_{ji}|}{K_{ii}} \sum_t a_{jt}\,Q_s(X_j \text{ inside } t)\,ds,

with :math:`Q_s` the law given X_i = s tilted by h: no term is negative. Unclamped, every
probability is 1, and this is the upper bound. Otherwise let T be the law tilted by the unclamped
sum. h exceeds that by :math:`e^{A−B}`, where A and B add up a_{jt} times how far X_j is outside on
either side, so

.. math:: Q_s(\text{outside}) ≤ \frac{E_T[e^A 1_{\text{outside}}]}{E_T[e^{−B}]}
          ≤ \sqrt{E_T[e^{2A}]}\; e^{E_T[B]} \sqrt{T(\text{outside})}

by Cauchy-Schwarz and Jensen; Hölder's inequality splits A. Under T all of it is Gaussian. Every J
is a mechanism; the best of a few is reported.

If numbers are rounded to steps, the mechanism sees the rounded ones. Each :math:`φ_j` moves by half
a step at most, on both sides of the ratio, which costs κ_j for every entry that is used. Better, by
`takifugu.translation.gaussian.rounded_numbers`: for :math:`h(n) = e^{κn}` all that is said there
of H′ are equalities but the trapezoidal rule, whose error is at most R − 1 of H, inside and outside
the bounds. So a term is at least :math:`(\tanh(κ/2)/(κ/2))(1 − 2(R−1) − Q_s(\text{outside}))` of
its size.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from takifugu._rounding import float_down, float_up
from takifugu.costs import ANY, Cost, Distance, Steps
from takifugu.numeric import Floats, Integers
from takifugu.priors.gaussian import Gaussian
from takifugu.translation.bounds import Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian.rounded_numbers import rounding_factor

SIZES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # entries beside the secret's own
WINDOW = 512  # how far from it, at most
SLACK = 1e-9  # a share of the leak, past all rounding of the few operations below
MOST_COSTS = 8  # of those that any entry may have lost


@dataclass(frozen=True)
class _Slopes:
    """The distances of a cost, each per unit and between bounds; and what any change costs."""

    terms: tuple[tuple[Fraction, Fraction, Fraction], ...]  # per unit, low, high
    jump: Fraction
    grain: Fraction  # by how much rounding to steps may change the likelihood, both ways together
    step: Fraction | None = None  # if the only distance is of numbers rounded to it

    @classmethod
    def of(cls, cost: Cost) -> "_Slopes":
        terms = [
            (value / (shape.high - shape.low), shape.low, shape.high)
            for shape, value in cost.terms
            if isinstance(shape, Distance | Steps)
        ]
        rounded = [(shape, value) for shape, value in cost.terms if isinstance(shape, Steps)]
        grain = sum((value / shape.count for shape, value in rounded), Fraction(0))
        step = rounded[0][0].step if len(rounded) == len(terms) == 1 else None
        return cls(tuple(terms), cost.coefficients.get(ANY, Fraction(0)), grain, step)

    @property
    def steep(self) -> float:
        return float(sum((per for per, _, _ in self.terms), Fraction(0)))

    def between(self, x: Fraction, y: Fraction) -> Fraction:
        """The cost of the change from y to x, exactly."""
        moved = [
            per * (min(max(x, low), high) - min(max(y, low), high)) for per, low, high in self.terms
        ]
        return max(sum(moved, self.jump) - self.grain, Fraction(0))


class GaussianWitness:
    """The best of a few sums of clamped numbers around one entry."""

    def __init__(self, prior: Gaussian, within: Fraction, secret: tuple[int, ...] | None) -> None:
        self._prior, self._within, self._secret = prior, within, secret

    def best(self, costs: EntryCosts, bound: Bound) -> tuple[float, int | None]:
        """The largest leak that was found, rounded down, and the entry that it is about."""
        named = None if bound.binding is None else bound.binding.entry
        entry = int(named) if isinstance(named, int) else (self._secret or (WINDOW,))[0]
        others = self._near(entry)
        found = 0.0
        for k in range(1 if costs.by_entry is not None else min(len(costs.anywhere), MOST_COSTS)):
            own = self._slopes(costs, entry, k)
            beside = [self._slopes(costs, int(j), k) for j in others]
            found = max(found, self._most(entry, own, others, beside))
        return found, None if named is None and self._prior.length is None else entry

    def _slopes(self, costs: EntryCosts, entry: int, k: int) -> _Slopes:
        at = costs.at(entry)
        return _Slopes.of(at[min(k, len(at) - 1)]) if at else _Slopes((), Fraction(0), Fraction(0))

    def _near(self, entry: int) -> Integers:
        """The other entries in a window around one."""
        length = self._prior.length
        last = entry + WINDOW if length is None else min(entry + WINDOW, length - 1)
        near = np.arange(max(entry - WINDOW, 0), last + 1)
        others: Integers = near[near != entry]
        return others

    def _most(self, entry: int, own: _Slopes, others: Integers, beside: list[_Slopes]) -> float:
        law = self._prior.covariance([entry, *others.tolist()])
        pull = law[0, 1:] / law[0, 0]
        order = np.argsort(-np.abs(pull) * [slopes.steep for slopes in beside], kind="stable")
        middles = {Fraction(float(self._prior.means([entry])[0]))}
        middles |= {(low + high) / 2 for _, low, high in own.terms}
        best = 0.0
        for middle in sorted(middles):
            x, y = middle + self._within / 2, middle - self._within / 2
            alone = float_down(own.between(x, y))
            for size in SIZES:
                kept = order[:size]
                kept = kept[[bool(beside[j].terms) and pull[j] != 0 for j in kept]]
                more = self._beside(entry, (float(y), float(x)), others[kept], law, kept, beside)
                best = max(best, alone + more * (1 - SLACK))
                if len(kept) < size or size >= len(order):
                    break
        return best * (1 - 2.0**-50)

    def _beside(
        self,
        entry: int,
        ends: tuple[float, float],
        names: Integers,
        law: Floats,
        kept: Integers,
        beside: list[_Slopes],
    ) -> float:
        """What the ``names`` beside the entry add, between the two ``ends``."""
        from scipy.special import ndtr

        if not len(kept):
            return 0.0
        places = kept + 1
        cross, whole = law[places, 0], law[0, 0]
        pull = cross / whole
        spread = law[np.ix_(places, places)] - np.outer(cross, cross) / whole
        sign = np.sign(pull)
        tilt = spread @ (sign * [beside[j].steep for j in kept])
        centre = float(self._prior.means([entry])[0])
        means = self._prior.means(names.tolist())
        at_ends = means + np.outer(np.array(ends) - centre, pull) + tilt  # [end, entry]
        deviation = np.sqrt(np.maximum(np.diag(spread), 1e-300))
        rows = [(k, *term) for k, j in enumerate(kept) for term in beside[j].terms]
        place = np.array([row[0] for row in rows])
        per, low, high = (np.array([float(row[c]) for row in rows]) for c in (1, 2, 3))
        sd, up = deviation[place], sign[place] > 0
        least, most = at_ends.min(axis=0)[place], at_ends.max(axis=0)[place]
        size = np.abs(least) + np.abs(most) + np.abs(low) + np.abs(high)
        below = _nearer((low - least) / sd, size / sd)
        above = _nearer((most - high) / sd, size / sd)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            grown = _log_moment(np.where(up, below, above), 2 * len(rows) * per * sd) / len(rows)
            other = np.where(up, above, below)
            lost = per * sd * (np.exp(-(other**2) / 2) / 2.5 + np.maximum(other, 0) * ndtr(other))
            outside = np.exp(
                grown.sum() / 2 + lost.sum() + np.log(ndtr(below) + ndtr(above) + 1e-300) / 2
            )
            grain = float(sum((beside[j].grain for j in kept), Fraction(0)))
            moved = float(self._within) * np.abs(pull)[place] * per
            plain = _some(moved, 1 - outside) - grain
            kept_share, error = self._smoothed([beside[j] for j in kept])
            fine = _some(moved * kept_share[place], 1 - error[place] - outside * np.exp(grain))
        return max(plain, fine, 0.0)

    def _smoothed(self, slopes: list[_Slopes]) -> tuple[Floats, Floats]:
        """``[entry]``: tanh(κ/2)/(κ/2), and 2(R − 1); none of it where nothing is rounded."""
        found = {one: self._smoothing(one) for one in dict.fromkeys(slopes)}
        shares, errors = zip(*(found[one] for one in slopes), strict=True)
        return np.array(shares), np.array(errors)

    def _smoothing(self, slopes: _Slopes) -> tuple[float, float]:
        if not slopes.grain:
            return 1.0, 0.0
        if slopes.step is None:
            return 1.0, inf
        kappa = float_up(slopes.grain)
        factor = rounding_factor(kappa, float_up(slopes.step), self._prior.least_deviation())
        return 1 - kappa**2 / 12, 2 * (factor - 1)


def _some(moved: Floats, share: Floats) -> float:
    """The sum of what is certain: shares below 0, and what is not a number, count as nothing."""
    known = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.0)
    return float(np.sum(np.maximum(moved, 0.0) * known))


def _nearer(scores: Floats, size: Floats) -> Floats:
    """Standard scores, moved towards the outside past the rounding that made them."""
    return scores + 1e-9 * (1 + np.abs(scores)) + 1e-13 * size


def _log_moment(z: Floats, a: Floats) -> Floats:
    r"""Log E exp(a·(z − Z)₊) of a standard normal Z: what lies below a bound, weighed."""
    from scipy.special import log_ndtr

    moment: Floats = np.logaddexp(log_ndtr(-z), a * z + a**2 / 2 + log_ndtr(z + a))
    return moment
