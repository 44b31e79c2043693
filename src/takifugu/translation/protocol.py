"""Per-entry DP loss to Pufferfish loss and back: the one protocol that every package uses."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, SupportsFloat

from takifugu.costs.cost import NOTHING, Cost
from takifugu.costs.losses import Total
from takifugu.translation.accounting.totals import total_to_pufferfish
from takifugu.translation.certify.closed import Filter, epsilon_up


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
