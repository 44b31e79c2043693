"""What outputs tell of which of two datasets they are about: a lower bound, against a charge.

An event is learnt and picked on one half of the outputs and counted on the other half, by the
auditor of the package. For a charge in ε the bound is on ε (`epsilon_below`), for one in ρ on ρ
(`rho_below`): no δ is spent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from takifugu._core.rounding import float_up
from takifugu.auditing import OutputEvent, epsilon_below, rho_below
from takifugu.auditing.events import choose
from takifugu.costs.cost import Value
from takifugu.costs.losses import Concentrated, Metric
from takifugu.session import Plan

ROOMS = (0.0, 0.02, 0.1, 0.3)  # an event for ρ is likely, whatever the ratio: not rare and telling
Outputs = Sequence[Any]


@dataclass(frozen=True)
class Charged:
    """What was charged for the difference between two datasets.

    Attributes:
        currency: ``epsilon`` or ``rho``.
        amount: How much, rounded up.
    """

    currency: str
    amount: float


@dataclass(frozen=True)
class Leakage:
    """What was found.

    Attributes:
        charged: What was charged.
        lower: A lower bound on what leaks, in the same currency.
        runs: How many outputs of either side there were, for choosing and for testing.
        words: The event, without any released value.
    """

    charged: Charged
    lower: float
    runs: int
    words: str

    @property
    def too_much(self) -> bool:
        """Whether more leaks than was charged, with the confidence of the bound."""
        return self.lower > self.charged.amount

    @property
    def ratio(self) -> float:
        """The bound as a share of the charge."""
        return self.lower / self.charged.amount


def entry_charge(plan: Plan, changed: tuple[Value, Value], columns: tuple[str, ...]) -> Charged:
    """What a plan charges an entry that changes from one value to the other."""
    loss = plan.charge.loss
    if isinstance(loss, Concentrated):
        return Charged("rho", float_up(loss.rho))
    if not isinstance(loss, Metric):
        return Charged("epsilon", float_up(loss.epsilon))
    named = columns if len(columns) > 1 else None
    return Charged("epsilon", float_up(loss.cost.between(*changed, named)))


def leakage(first: Outputs, second: Outputs, charged: Charged, *, error: float) -> Leakage:
    """Bound what outputs of two datasets tell; the bound fails with probability ≤ ``error``."""
    runs = min(len(first), len(second))
    half = runs // 2
    cut = 2 * half // 5  # of the half that an event is chosen on: to learn, then to pick
    learn, pick, test = (
        (first[a:b], second[a:b]) for a, b in ((0, cut), (cut, half), (half, runs))
    )
    rooms = ROOMS if charged.currency == "rho" else ROOMS[:1]
    events = [choose(learn, pick, delta=d, confidence=1 - error).event for d in rooms]
    event = max(events, key=lambda one: _bound(one, pick, charged.currency, error))
    return Leakage(charged, _bound(event, test, charged.currency, error), runs, event.words)


def _bound(
    event: OutputEvent, sides: tuple[Outputs, Outputs], currency: str, error: float
) -> float:
    likely, other = (event.contains(sides[event.swapped]), event.contains(sides[not event.swapped]))
    counts = int(likely.sum()), len(likely), int(other.sum()), len(other)
    if currency == "rho":
        return rho_below(*counts, confidence=1 - error)
    return float(epsilon_below(*counts, confidence=1 - error))
