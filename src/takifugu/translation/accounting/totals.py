r"""Totals of ε, δ and ρ as a Pufferfish (ε, δ), also for queries that depend on earlier results.

Pure losses add up whatever is queried and when. For ρ the order α of the conversion must not
depend on results, so it is one of a few that are fixed beforehand.

**Theorem.** Fix A, s and orders :math:`α_1 … α_K`. Let each query, and what it costs, depend on
the results before it; let every entry always satisfy: it has lost ε ≤ A and nothing else, or

.. math:: δ ≤ s/2 \quad\text{and}\quad ε + α_k ρ + g(α_k, s/2K) ≤ A \text{ for some } k, \qquad
          g(α, s) = \frac{\log(1/s) − \log α}{α − 1} + \log(1 − 1/α).

Then all results together are (A, s)-DP for every entry. *Proof.* Fix neighbours P, Q that differ in
that entry. A step with (ε_i, δ_i) is, on all but δ_i of its mass, a step with likelihood ratio at
most :math:`e^{ε_i}`; leave that mass out, at most s/2 in all. With Z the logarithm of the ratio
of all results, :math:`\exp((α_k−1)(Z − ε − α_k ρ))` is a supermartingale under P for each k, where
ε and ρ are what the path has spent. Now P(S) − e^A Q(S) is at most E[(1 − e^{A−Z})₊]. A path that
spent ε alone has Z ≤ A and adds nothing. A path for which k holds adds at most
:math:`c_k e^{(α_k−1)(Z−A)}` with :math:`c_k = (1−1/α_k)^{α_k−1}/α_k` (Canonne, Kamath & Steinke,
2020), hence at most s/2K times the supermartingale. Sum over k: s/2. ∎

Each entry may be on a path of its own: windows and groups need nothing else. The lemma of
`takifugu.translation.accounting.approximate` then makes (A, s) per entry an (E, δ) of Pufferfish
privacy, with E the loss of A and :math:`δ = s (e^E − 1)/(e^A − 1)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, inf, log, log1p
from typing import TYPE_CHECKING

from takifugu._rounding import float_down, float_up
from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Loss, Total
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.translation.protocol import LossTranslation

ORDERS = tuple(1 + 2**k for k in range(2, 13))  # spaced by 2: the best is √2 away at most
MARGIN = 2.0**-44  # more than the rounding of the few operations that it covers
STEP = 2e-7  # relative distance at which the search for the least ε stops
FASTEST = 0.9  # how much of a change of ε may change what is needed, for the next step
REFINED = 3  # steps back from an ε that is enough
LEAST = 1e-3  # the ε that an entry with δ alone is given: the lemma needs one
ROUNDS = 200
CUT = Fraction(1, 10**6)
LARGEST = 700.0  # beyond it e^ε is not a float

LossAtLeast = Callable[[float], tuple[float, float]]  # ε to some ε′ ≥ ε, and the loss of ε′


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
    def of(cls, allowed: Fraction, epsilon: Fraction, delta: Fraction) -> "Filter":
        """The filter of a Pufferfish budget (ε, δ) under which ``allowed`` per entry loses ε."""
        return cls(allowed, share(float_down(allowed), float_up(epsilon), float_down(delta)))

    def admits(self, total: Total) -> bool:
        """Whether an entry may have lost ``total``."""
        need = amounts_to(total, self.delta)
        return need is not None and need <= self.allowed

    def room(self, total: Total, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` fits on top of ``total``, rounded down; 0 if none.

        For (ε, δ) that is ε beside the same δ.
        """
        if isinstance(loss, Approximate):
            total = Total(total.scalar, total.delta + loss.delta, total.rho)
        need = amounts_to(total, self.delta)
        if need is None:
            return Fraction(0)
        if not isinstance(loss, Concentrated):
            return max(self.allowed - need, Fraction(0))
        rest = self.allowed - total.scalar
        most = [(rest - extra) / order for order, extra in _extras(self.delta)]
        return max(max(most, default=total.rho) - total.rho, Fraction(0))


def amounts_to(total: Total, delta: Fraction) -> Fraction | None:
    """The least A of the theorem for ``total`` and s = ``delta``; None if there is none."""
    total = total.without_values  # a cost is at most a scalar loss
    if not (total.delta or total.rho):
        return total.epsilon
    if 2 * total.delta > delta:
        return None
    if not total.rho:
        return total.epsilon
    found = [order * total.rho + extra for order, extra in _extras(delta)]
    return total.epsilon + min(found) if found else None


def _extras(delta: Fraction) -> list[tuple[int, Fraction]]:
    """Each order, and g of it; none if there is no δ to share."""
    part = float_down(delta / (2 * len(ORDERS)))
    return [(order, Fraction(extra(order, part))) for order in ORDERS] if part > 0 else []


def extra(order: int, delta: float) -> float:
    """g(α, s) of the theorem, rounded up."""
    parts = (-log(delta), -log(order))
    value = sum(parts) / (order - 1) + log1p(-1 / order)
    return value + MARGIN * (1 + sum(map(abs, parts)) / (order - 1))


def share(dp: float, pufferfish: float, delta: float) -> Fraction:
    """The s per entry, rounded down, with s·(e^E − 1)/(e^A − 1) ≤ δ; 0 if e^E is not a float.

    ``dp`` is A and ``pufferfish`` is E.
    """
    if not dp > 0 or not 0 < pufferfish <= LARGEST or not delta > 0:
        return Fraction(0)
    kept = delta * (expm1(min(dp, pufferfish)) / expm1(pufferfish)) * (1 - MARGIN)
    return Fraction(max(min(kept, delta), 0.0))


def total_to_pufferfish(loss_at: LossAtLeast, total: Total, delta: Fraction) -> float:
    """An ε, rounded up, at which ``total`` is (ε, δ)-Pufferfish private; infinite if none is known.

    The least A is searched for from below: the loss of A decides how much of δ one entry may use,
    and that decides the A that is needed. It ends a millionth above the least.
    """
    total = total.without_values
    if not (total.delta or total.rho):
        return loss_at(float_up(total.epsilon))[1] if total.epsilon else 0.0
    return joint_to_pufferfish(loss_at, (total,), delta)


def joint_to_pufferfish(loss_at: LossAtLeast, totals: Sequence[Total], delta: Fraction) -> float:
    """The same if every entry has lost one of ``totals``, each of them maybe another one.

    One A and one s must do for all. The largest of what each means alone may be too little: a
    total with a small ε has a large share of δ to itself, which a larger A takes away.
    """
    room = float_down(delta)
    first = _most(totals, Fraction(room))
    if first is None:
        return inf
    dp, loss = loss_at(max(float_up(first), LEAST))
    best, tried, before = inf, 0, (0.0, 0.0)
    for _ in range(ROUNDS):
        if not loss <= LARGEST:
            return best
        needed = _most(totals, share(dp, loss, room))
        known = dp * 1.05 if needed is None else float_up(needed)
        aim = known
        if needed is not None and before[1] and dp != before[0]:
            rate = (known - before[1]) / (dp - before[0])  # of what is needed, with what is given
            aim = dp + (known - dp) / (1 - min(max(rate, 0.0), FASTEST))
        if needed is not None and needed <= Fraction(dp):
            best, tried = min(best, loss), tried + 1
            if dp - known <= 2 * STEP * dp or tried > REFINED:
                return best
        else:
            aim = max(aim, dp)
        before = (dp, known if needed is not None else 0.0)
        dp, loss = loss_at(max(aim, LEAST) * (1 + STEP))
        if dp == before[0]:  # a table has no point between
            if best < inf:
                return best
            dp, loss = loss_at(dp * (1 + STEP))
    return best


def _most(totals: Sequence[Total], delta: Fraction) -> Fraction | None:
    """The least A that does for all of ``totals``; None if there is none."""
    found = [amounts_to(total, delta) for total in totals]
    known = [need for need in found if need is not None]
    return max(known) if len(known) == len(found) else None


def rho_within(translation: "LossTranslation", epsilon: float, delta: Fraction) -> Fraction:
    """The ρ per entry that a Pufferfish (ε, δ) allows if nothing else is released, rounded down."""
    allowed = Fraction(float(translation.to_dp(epsilon)))
    rho = Filter.of(allowed, Fraction(epsilon), delta).room(Total(), Concentrated(0))
    cut = CUT
    for _ in range(ROUNDS):
        rho *= 1 - min(cut, Fraction(1, 2))  # the search above ends a little high
        cut *= 2
        if rho <= 0:
            break
        if translation.total_to_pufferfish(Total(rho=rho), delta) <= epsilon:
            return rho
    raise UnsoundRequest(
        f"a Pufferfish loss of ε = {four_digits(epsilon)}, δ = {four_digits(delta)} leaves no ρ"
        " per entry under this prior; ask for a larger epsilon or delta, or leave delta out",
        field="epsilon",
        reason="allowance",
    )
