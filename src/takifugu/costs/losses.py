"""What a release costs each entry that it uses, in the three currencies of DP.

A loss is an exact rational: the float that a proof gave, which was rounded up there. Rationals add
without rounding, so a million small charges add up exactly.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from takifugu._core.exact import Number, at_least_zero
from takifugu.costs.cost import ANY, NOTHING, Cost
from takifugu.errors import UnsoundRequest


@dataclass(frozen=True)
class Pure:
    """Per-entry ε-DP, by replacement of one entry.

    >>> Pure("0.1").epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", at_least_zero(epsilon, "epsilon"))


@dataclass(frozen=True)
class Approximate:
    """Per-entry (ε, δ)-DP, by replacement of one entry."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "delta", at_least_zero(delta, "delta"))
        if self.delta >= 1:
            raise UnsoundRequest(
                f"delta is {float(self.delta):g}; it must be below 1",
                field="delta",
                given=self.delta,
            )


@dataclass(frozen=True)
class Concentrated:
    """Per-entry ρ-zCDP (Bun and Steinke, 2016), by replacement of one entry."""

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", at_least_zero(rho, "rho"))


@dataclass(frozen=True)
class Metric:
    """Per-entry metric DP: a cost for every change of an entry from one value to another."""

    cost: Cost

    @property
    def epsilon(self) -> Fraction:
        """An ε for which it is per-entry ε-DP."""
        return self.cost.scalar


Loss = Pure | Approximate | Concentrated | Metric


@dataclass(frozen=True)
class Total:
    """Losses on the same entries, added up by currency; nothing is converted yet.

    Pure losses add, concentrated losses add, approximate losses add in both numbers (basic
    composition), costs add shape by shape. The reader of a total chooses how to convert it.

    Attributes:
        epsilon: Of pure and approximate losses, and of the part ε·[u≠v] of costs.
        delta: Of approximate losses.
        rho: Of concentrated losses.
        costs: What costs say beyond ε·[u≠v].
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    costs: Cost = NOTHING

    @property
    def cost(self) -> Cost:
        """All that is not δ or ρ, as one cost."""
        return self.costs + Cost.any(self.epsilon)

    @property
    def scalar(self) -> Fraction:
        """An ε that covers all that is not δ or ρ."""
        return self.epsilon + self.costs.scalar

    @property
    def without_values(self) -> "Total":
        """The same or more, with nothing that depends on values."""
        return Total(self.scalar, self.delta, self.rho)

    def plus(self, loss: Loss) -> "Total":
        """This total and one more loss."""
        match loss:
            case Pure(epsilon=e):
                return Total(self.epsilon + e, self.delta, self.rho, self.costs)
            case Approximate(epsilon=e, delta=d):
                return Total(self.epsilon + e, self.delta + d, self.rho, self.costs)
            case Concentrated(rho=r):
                return Total(self.epsilon, self.delta, self.rho + r, self.costs)
            case Metric(cost=cost):
                parts = cost.coefficients
                everywhere = parts.pop(ANY, Fraction(0))
                return Total(
                    self.epsilon + everywhere, self.delta, self.rho, self.costs + Cost.of(parts)
                )

    @classmethod
    def of(cls, losses: Iterable[Loss]) -> "Total":
        """The sum of all ``losses``.

        >>> Total.of([Pure("0.1"), Pure("0.2"), Concentrated("0.01")]).epsilon
        Fraction(3, 10)
        """
        total = cls()
        for loss in losses:
            total = total.plus(loss)
        return total
