r"""Closed forms with their numbers: group privacy, uncertainty, totals of (ε, δ, ρ), conversions.

**Approximate DP.** Let a mechanism be (ε_j, δ_j)-DP for changes of entry j, g(D) = P(M(D) ∈ S), and
:math:`κ = \max_j δ_j / (e^{ε_j} − 1)`. Then h = g + κ obeys h(D) ≤ e^{ε_j} h(D′) for neighbours in
entry j. *Proof.* g(D) ≤ e^{ε_j} g(D′) + δ_j ≤ e^{ε_j} g(D′) + κ (e^{ε_j} − 1). ∎
So h is admissible for pure DP with the same ε_j, and whatever bounds that by t bounds
E[g|s] + κ ≤ t (E[g|s′] + κ): the mechanism is (log t, κ·(t − 1))-Pufferfish private. This holds for
every method. By the curve κ·(e^{bε} − 1) is enough, since only the b exposed entries are changed.

**Concentrated DP** adds up first and is converted once. For ρ-zCDP and any α > 1,

.. math:: ε = αρ + \frac{\log(1/δ) − \log α}{α − 1} + \log(1 − 1/α)

(Canonne, Kamath & Steinke, 2020, Proposition 12). *Proof.* With Z the privacy loss,
δ(ε) = E[(1 − e^{ε−Z})₊] and (1 − e^{−u}) ≤ c e^{(α−1)u} for u ≥ 0, where c is the largest value of
(1 − e^{−u}) e^{−(α−1)u}, at e^{−u} = 1 − 1/α: c = (1 − 1/α)^{α−1}/α. Hence
δ(ε) ≤ c e^{−(α−1)ε} E[e^{(α−1)Z}] ≤ c e^{(α−1)(αρ−ε)}; solve for ε. ∎

**Totals, also of queries that depend on earlier results.** Pure losses add up whatever is queried
and when. For ρ the order α of the conversion must not depend on results, so it is one of a few that
are fixed beforehand. Fix A, s and orders :math:`α_1 … α_K`. Let each query, and what it costs,
depend on the results before it; let every entry always satisfy: it has lost ε ≤ A and nothing else,
or

.. math:: δ ≤ s/2 \quad\text{and}\quad ε + α_k ρ + g(α_k, s/2K) ≤ A \text{ for some } k, \qquad
          g(α, s) = \frac{\log(1/s) − \log α}{α − 1} + \log(1 − 1/α).

Then all results together are (A, s)-DP for every entry. *Proof.* Fix neighbours P, Q that differ in
that entry. A step with (ε_i, δ_i) is, on all but δ_i of its mass, a step with likelihood ratio at
most :math:`e^{ε_i}`; leave that mass out, at most s/2 in all. With Z the logarithm of the ratio
of all results, :math:`\exp((α_k−1)(Z − ε − α_k ρ))` is a supermartingale under P for each k, where
ε and ρ are what the path has spent. Now P(S) − e^A Q(S) is at most E[(1 − e^{A−Z})₊]. A path that
spent ε alone has Z ≤ A and adds nothing. A path for which k holds adds at most
:math:`c_k e^{(α_k−1)(Z−A)}` with :math:`c_k = (1−1/α_k)^{α_k−1}/α_k`, hence at most s/2K times the
supermartingale. Sum over k: s/2. ∎ Each entry may be on a path of its own: windows and groups need
nothing else. By approximate DP, (A, s) per entry is an (E, δ) of Pufferfish privacy, with E the
loss of A and :math:`δ = s (e^E − 1)/(e^A − 1)`.

**Gaussian DP.** μ-GDP is (ε, δ(ε)) for every ε ≥ 0, with
:math:`δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)` (Dong, Roth & Su, 2022, Corollary 1).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import require_finite, require_inside_one
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, down, float_down, float_up, up
from takifugu.costs.losses import Approximate, Concentrated, Loss, Total
from takifugu.errors import UnsoundRequest

ORDERS = tuple(1 + 2**k for k in range(2, 13))  # spaced by 2: the best is √2 away at most
MARGIN = 2.0**-44  # more than the rounding of the few operations that it covers
SMALLEST_DELTA = 2.0**-1000  # a δ that is not 0 is never rounded below this
MAX_EXPONENT = 700.0  # beyond it e^ε is not a float
MAX_MU = 1e150  # a larger μ protects nothing
FAR_TAIL = -1e5  # Φ of it is below SMALLEST_DELTA by far
MAX_BISECTIONS = 200


def epsilon_up(value: Fraction) -> float:
    """An exact loss as a float, rounded up."""
    return float_up(value)


def allowance_down(value: Fraction) -> float:
    """An exact allowance as a float, rounded down."""
    return float_down(value)


def own_entry_leak(spent: float | Floats) -> float:
    """What randomised response on the secret's own entry leaks at least, rounded down."""
    return max(float(down(float(np.min(spent)))), 0.0)


def group_loss(size: int | None, epsilon: float) -> float:
    """``size`` entries counted at once, rounded up; infinite if they are unbounded."""
    return math.inf if size is None else float_up(size * Fraction(float(epsilon)))


def profile_group_loss(spent: Iterable[float]) -> float:
    """The sum of losses, rounded up. That of a single loss is this loss itself."""
    positive = [float(loss) for loss in spent if loss > 0]
    if len(positive) < 2:
        return sum(positive)
    return math.nextafter(math.fsum(positive), math.inf)  # the nearest float, and one more


def group_allowance(size: int | None, target: float) -> float:
    """What each of ``size`` entries may lose if they are counted at once, rounded down."""
    return float_down(Fraction(target) / size) if size else 0.0


def with_uncertainty(loss: ArrayLike, shift: float) -> Floats:
    """A loss that rises by ``shift``, rounded up."""
    return up(np.asarray(loss, dtype=np.float64) + shift)


def without_uncertainty(target: float, shift: float) -> float:
    """A target that leaves room for ``shift``, rounded down."""
    return target - shift - (target + 1) * 32 * UNIT if shift else target


def added_up(first: Floats, second: Floats) -> Floats:
    """The sum of two losses, rounded up; 0 stays 0."""
    return (first + second) * (1 + 2 * UNIT)


def sequential_curve_loss(exposed: Integers, pooled: Floats, spent: Sequence[float]) -> float:
    """Max a + Σ bε, each release at its own best point of the pooled curve (the paper, Thm 7)."""
    group, leak = 0.0, 0.0
    for epsilon in spent:
        best = int(np.argmin(exposed * epsilon + pooled))
        group += float(exposed[best]) * epsilon
        leak = max(leak, float(pooled[best]))
    return float(up(up(group * (1 + len(spent) * 2.0**-52)) + leak))


def pufferfish_delta(epsilon: Floats, delta: Floats, loss: float, growth: float) -> float:
    """δ of Pufferfish privacy if (ε, δ) per entry loses ``loss``, rounded up.

    ``growth`` is an exponent that is known to do in place of ``loss``; infinite if there is none.
    """
    if not (delta > 0).any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # where e^ε − 1 overflows, what is left of δ is tiny but not 0
        ratio = np.where(delta > 0, np.maximum(delta / np.expm1(epsilon), SMALLEST_DELTA), 0.0)
    kappa = float(np.max(ratio)) * (1 + 8 * UNIT)
    most = min(loss, growth)
    grown = math.expm1(most) if most <= MAX_EXPONENT else math.inf
    spare = kappa * grown * (1 + 32 * UNIT) * (1 + 2 * UNIT * min(loss, MAX_EXPONENT))
    return min(1.0, max(spare, SMALLEST_DELTA)) if grown > 0 else 0.0


def zcdp_epsilon_at(rho: float, delta: float, above: float) -> float:
    """An ε such that ρ-zCDP is (ε, δ)-DP, at the order 1 + ``above``, rounded up."""
    if not 0 < above < math.inf:
        return math.inf
    digits = -math.log(delta)
    # five terms, each within a few units in its own last place
    grown = math.log1p(above)
    parts = (rho, above * rho, digits / above, -grown / above, math.log(above) - grown)
    slack = 16 * UNIT * (sum(map(abs, parts)) + abs(math.log(above)) + 2)
    return max(float(up(sum(parts) + slack)), 0.0)


@dataclass(frozen=True)
class Filter:
    """Which totals an entry may reach: those of the theorem, for one A and s.

    Attributes:
        allowed: A, the largest ε per entry.
        delta: s, the largest δ per entry; 0 admits losses of ε alone.
    """

    allowed: Fraction
    delta: Fraction

    @classmethod
    def from_budget(cls, allowed: Fraction, epsilon: Fraction, delta: Fraction) -> "Filter":
        """The filter of a Pufferfish budget (ε, δ) under which ``allowed`` per entry loses ε."""
        return cls(allowed, entry_delta(float_down(allowed), float_up(epsilon), float_down(delta)))

    def admits(self, total: Total) -> bool:
        """Whether an entry may have lost ``total``."""
        need = needed_epsilon([total], self.delta)
        return need is not None and need <= self.allowed

    def room(self, total: Total, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` fits on top of ``total``, rounded down; 0 if none.

        For (ε, δ) that is ε beside the same δ.
        """
        if isinstance(loss, Approximate):
            total = Total(total.scalar, total.delta + loss.delta, total.rho)
        need = needed_epsilon([total], self.delta)
        if need is None:
            return Fraction(0)
        if not isinstance(loss, Concentrated):
            return max(self.allowed - need, Fraction(0))
        rest = self.allowed - total.scalar
        most = [(rest - extra) / order for order, extra in _order_extras(self.delta)]
        return max(max(most, default=total.rho) - total.rho, Fraction(0))


def needed_epsilon(totals: Iterable[Total], delta: Fraction) -> Fraction | None:
    """The least A of the theorem that does for all ``totals`` with s = ``delta``; None if none."""
    needs = []
    for total in (each.without_values for each in totals):  # a cost is at most a scalar loss
        if 2 * total.delta > delta and (total.delta or total.rho):
            return None
        needs.append(total.epsilon)
        if total.rho:
            orders = [order * total.rho + extra for order, extra in _order_extras(delta)]
            if not orders:
                return None
            needs[-1] += min(orders)
    return max(needs)


def _order_extras(delta: Fraction) -> list[tuple[int, Fraction]]:
    """Each order, and g of it; none if there is no δ to share."""
    part = float_down(delta / (2 * len(ORDERS)))
    return [(order, Fraction(_extra(order, part))) for order in ORDERS] if part > 0 else []


def _extra(order: int, delta: float) -> float:
    """g(α, s) of the theorem, rounded up."""
    parts = (-math.log(delta), -math.log(order))
    value = sum(parts) / (order - 1) + math.log1p(-1 / order)
    return value + MARGIN * (1 + sum(map(abs, parts)) / (order - 1))


def entry_delta(dp: float, pufferfish: float, delta: float) -> Fraction:
    """The s per entry, rounded down, with s·(e^E − 1)/(e^A − 1) ≤ δ; 0 if e^E is not a float.

    ``dp`` is A and ``pufferfish`` is E.
    """
    if not dp > 0 or not 0 < pufferfish <= MAX_EXPONENT or not delta > 0:
        return Fraction(0)
    share = delta * (math.expm1(min(dp, pufferfish)) / math.expm1(pufferfish)) * (1 - MARGIN)
    return Fraction(max(min(share, delta), 0.0))


def gdp_delta(mu: float, epsilon: float) -> float:
    """A δ such that μ-GDP is (ε, δ)-DP, rounded up."""
    require_finite(epsilon, "epsilon")
    _check_mu(mu)
    if mu == 0:
        return 0.0
    if not mu < MAX_MU:
        return 1.0
    ahead, behind = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if ahead < FAR_TAIL:
        return SMALLEST_DELTA
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(ahead)), float(log_ndtr(behind)) + epsilon
    # the ends are off by a few units of their size, which moves log Φ by about that times the end
    off = 64 * UNIT * (1 + ahead * ahead + behind * behind + epsilon)
    value = math.exp(first) * (1 + off) - math.exp(second) * (1 - off)
    return min(max(value * (1 + 8 * UNIT), SMALLEST_DELTA), 1.0)


def gdp_epsilon(mu: float, delta: float) -> float:
    """An ε such that μ-GDP is (ε, δ)-DP, rounded up; to a relative 1e-12."""
    require_inside_one(delta, "delta")
    _check_mu(mu)
    if mu == 0:
        return 0.0
    if not mu < MAX_MU:
        return math.inf
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu
    while gdp_delta(mu, high) > delta:
        low, high = high, 2 * high
        if not high < 1e300:
            return math.inf
    for _ in range(MAX_BISECTIONS):
        if high - low <= 1e-12 * high:
            break
        middle = (low + high) / 2
        if gdp_delta(mu, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def gdp_rho(mu: float) -> float:
    """ρ such that μ-GDP is ρ-zCDP, rounded up: μ²/2."""
    return max(mu * mu / 2 * (1 + 4 * UNIT), 2.0**-1022) if mu > 0 else 0.0


def mixed_epsilon(epsilon: Floats, mu: Floats, delta: float) -> float:
    """The largest ε of any entry that has lost ``epsilon[k]`` and is ``mu[k]``-GDP, rounded up."""
    largest, seen = 0.0, -1.0
    for k in np.argsort(-epsilon, kind="stable"):  # a smaller μ after a larger ε changes nothing
        if mu[k] > seen:
            seen = float(mu[k])
            both = (float(epsilon[k]) + gdp_epsilon(seen, delta)) * (1 + 4 * UNIT)
            largest = max(largest, both)
    return largest


def _check_mu(mu: float) -> None:
    if not mu >= 0:  # also false for NaN
        raise UnsoundRequest(f"mu is {mu}; it must be 0 or more", field="mu", given=mu)
