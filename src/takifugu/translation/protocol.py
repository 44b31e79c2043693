"""Per-entry DP loss to Pufferfish loss and back: the one protocol that every package uses.

Totals of ε, δ and ρ as a Pufferfish (ε, δ), also for queries that depend on earlier results.

The theorem, and what it admits, are in `takifugu.translation.certify.closed`; here the least
per-entry loss that it admits is searched for.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf
from typing import Protocol, SupportsFloat

from takifugu.costs.cost import NOTHING, Cost
from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import UnsoundRequest
from takifugu.translation.certify.closed import (
    MAX_EXPONENT,
    Filter,
    allowance_down,
    entry_delta,
    epsilon_up,
    needed_epsilon,
)
from takifugu.visible import four_digits

SEARCH_STEP = 2e-7  # relative distance at which the search for the least ε stops
MAX_RATE = 0.9  # how much of a change of ε may change what is needed, for the next step
MAX_STEPS_BACK = 3  # from an ε that is enough
LEAST_EPSILON = 1e-3  # that an entry with δ alone is given: approximate DP needs one
MAX_SEARCH_STEPS = 200
FIRST_CUT = Fraction(1, 10**6)

LossAtLeast = Callable[[float], tuple[float, float]]  # ε to some ε′ ≥ ε, and the loss of ε′


def total_to_pufferfish(loss_at: LossAtLeast, total: Total, delta: Fraction) -> float:
    """An ε, rounded up, at which ``total`` is (ε, δ)-Pufferfish private; infinite if none is known.

    The least A is searched for from below: the loss of A decides how much of δ one entry may use,
    and that decides the A that is needed. It ends a millionth above the least.
    """
    total = total.without_values
    if not (total.delta or total.rho):
        return loss_at(epsilon_up(total.epsilon))[1] if total.epsilon else 0.0
    return joint_to_pufferfish(loss_at, (total,), delta)


def joint_to_pufferfish(loss_at: LossAtLeast, totals: Sequence[Total], delta: Fraction) -> float:
    """The same if every entry has lost one of ``totals``, each of them maybe another one.

    One A and one s must do for all. The largest of what each means alone may be too little: a
    total with a small ε has a large share of δ to itself, which a larger A takes away.
    """
    room = allowance_down(delta)
    first = needed_epsilon(totals, Fraction(room))
    if first is None:
        return inf
    dp, loss = loss_at(max(epsilon_up(first), LEAST_EPSILON))
    best, tried, before = inf, 0, (0.0, 0.0)
    for _ in range(MAX_SEARCH_STEPS):
        if not loss <= MAX_EXPONENT:
            return best
        needed = needed_epsilon(totals, entry_delta(dp, loss, room))
        known = dp * 1.05 if needed is None else epsilon_up(needed)
        aim = known
        if needed is not None and before[1] and dp != before[0]:
            rate = (known - before[1]) / (dp - before[0])  # of what is needed, with what is given
            aim = dp + (known - dp) / (1 - min(max(rate, 0.0), MAX_RATE))
        if needed is not None and needed <= Fraction(dp):
            best, tried = min(best, loss), tried + 1
            if dp - known <= 2 * SEARCH_STEP * dp or tried > MAX_STEPS_BACK:
                return best
        else:
            aim = max(aim, dp)
        before = (dp, known if needed is not None else 0.0)
        dp, loss = loss_at(max(aim, LEAST_EPSILON) * (1 + SEARCH_STEP))
        if dp == before[0]:  # a table has no point between
            if best < inf:
                return best
            dp, loss = loss_at(dp * (1 + SEARCH_STEP))
    return best


def rho_within(translation: "LossTranslation", epsilon: float, delta: Fraction) -> Fraction:
    """The ρ per entry that a Pufferfish (ε, δ) allows if nothing else is released, rounded down."""
    allowed = Fraction(float(translation.to_dp(epsilon)))
    rho = Filter.from_budget(allowed, Fraction(epsilon), delta).room(Total(), Concentrated(0))
    cut = FIRST_CUT
    for _ in range(MAX_SEARCH_STEPS):
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


class LossTranslation(Protocol):
    """What a per-entry DP loss means in Pufferfish privacy, under one choice of priors and secrets.

    Implementers:

    * `takifugu.translation.Translation`: of a prior, by every proven method.
    * `takifugu.translation.TranslationTable`: its bounds on a grid.
    * `takifugu.translation.TabledTranslation`: a table, with the translation behind its ends.
    * `takifugu.translation.CurveTranslation`: an influence curve alone.
    * `takifugu.translation.RowTranslation`: of priors that relate the columns of a row, or people.

    An implementer subclasses it, says `to_pufferfish` and `to_dp`, and inherits the rest, which is
    sound for every implementer by the theorem of `takifugu.translation.certify.closed`.
    Both directions hold for a loss on *every* entry, and `to_pufferfish` never falls as the loss
    rises. To import this module is cheap: it compiles nothing.
    """

    @abstractmethod
    def to_pufferfish(self, dp: float, /) -> SupportsFloat:
        """The Pufferfish loss of a mechanism that is ``dp``-DP for each entry, rounded up."""

    @abstractmethod
    def to_dp(self, pufferfish: float, /) -> SupportsFloat:
        """The per-entry DP loss that a Pufferfish loss allows, rounded down; 0 if there is none."""

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """An ε, rounded up, at which ``total`` on every entry is (ε, ``delta``)-Pufferfish private.

        Sound also if queries depend on earlier results. Infinite if no ε is known.
        """
        return total_to_pufferfish(lambda dp: (dp, float(self.to_pufferfish(dp))), total, delta)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """The Pufferfish loss, rounded up, if every entry has lost at most one of ``costs``.

        Which entry lost which is not known, so that incomparable costs count together. Unless an
        implementer knows better, by cost ≤ ε·[u≠v].
        """
        top = max((cost.scalar for cost in costs), default=Fraction(0))
        return float(self.to_pufferfish(epsilon_up(top))) if top else 0.0

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """The largest factor, rounded down, such that factor·``unit`` more loses ``pufferfish``.

        Entries that are read have lost one of ``spent`` before, others one of ``beside``. 0 if
        nothing fits.
        """
        allowed = Fraction(float(self.to_dp(pufferfish)))
        if not unit.scalar or any(cost.scalar > allowed for cost in beside):
            return Fraction(0)
        room = allowed - max((cost.scalar for cost in spent), default=Fraction(0))
        return max(room / unit.scalar, Fraction(0))

    def filter(self, allowed: Fraction, epsilon: Fraction, delta: Fraction, /) -> Filter:
        """Which totals a budget (ε, δ) admits if ``allowed`` per entry loses at most ε."""
        return Filter.from_budget(allowed, epsilon, delta)

    @property
    def knows_values(self) -> bool:
        """Whether a cost may mean less than the ε that covers it."""
        return type(self).cost_to_pufferfish is not LossTranslation.cost_to_pufferfish

    @property
    def every_pair(self) -> bool:
        """Whether each pair of values of each entry is known to be secret.

        Then no cost is above what it translates to: a mechanism with the cost c on one entry may
        have the likelihood e^{c(x,v)} of its value x, which moves the odds of u against v by
        e^{c(u,v)}.
        """
        return False

    def covering_cost(self, epsilon: Fraction, /) -> Cost | None:
        """A cost that is at least every cost which translates to ``epsilon`` or less.

        None if there is none: where only some pairs of values are secret.
        """
        return Cost.any(epsilon) if self.every_pair else None

    @property
    def names_columns(self) -> bool:
        """Whether what is charged names one of several columns: all of it is then by value."""
        return False

    @property
    def least(self) -> float:
        """The smallest positive Pufferfish loss that `to_dp` is meant for."""
        return 0.0

    @property
    def fingerprint(self) -> str | None:
        """The identity that charges in a ledger name; None if it has none."""
        return None
