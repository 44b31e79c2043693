"""The plan of a mechanism: its price, its error, the alternatives, and the reason."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from takifugu.costs.losses import Approximate, Loss, Metric, Pure
from takifugu.mechanisms.candidates import Additive, Selection
from takifugu.mechanisms.mechanism_protocol import Error, loss_document
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.selection import Exponential, PermuteAndFlip
from takifugu.visible import four_digits

M = TypeVar("M", bound=Additive | Selection)
E = TypeVar("E", bound="Error | RankingError")


@dataclass(frozen=True)
class RankingError:
    """What noise does to a ranking.

    Attributes:
        deviation: The standard deviation of the noise on one score.
        gap: Leads of this much are resolved: if each of the first k leads the next by it, every
            place is right with a probability of at least 0.95.
        right: For the reference: the mean probability that each place is right; None without one.
        hits: For the reference: the share of those named that belong there; None without one.
    """

    deviation: float
    gap: float
    right: tuple[float, ...] | None = None
    hits: float | None = None

    @property
    def mean_right(self) -> float | None:
        """The mean over the places of the probability that they are right."""
        return None if self.right is None else sum(self.right) / len(self.right)


@dataclass(frozen=True)
class Choice(Generic[M, E]):
    """A mechanism, what one release costs, and the error it is predicted to make."""

    mechanism: M
    loss: Loss
    error: E

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "mechanism": self.mechanism.describe(),
            "charge": loss_document(self.loss),
            "error": asdict(self.error),
        }


@dataclass(frozen=True)
class MechanismPlan(Generic[M, E]):
    """The mechanism to use, and why.

    Attributes:
        mechanism: The best of all that were tried.
        loss: What one release costs every entry, in the currency of the allowance; all groups
            together cost this once.
        error: What it is predicted to do.
        alternatives: The others, best first.
        reason: Why, in one sentence.
        groups: How many groups are released.
        pufferfish: The Pufferfish ε of the loss, if a translation was given.
    """

    mechanism: M
    loss: Loss
    error: E
    alternatives: tuple[Choice[M, E], ...]
    reason: str
    groups: int = 1
    pufferfish: float | None = None

    @property
    def choices(self) -> tuple[Choice[M, E], ...]:
        """All that were tried, best first."""
        return (Choice(self.mechanism, self.loss, self.error), *self.alternatives)

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            **self.choices[0].describe(),
            "groups": self.groups,
            "pufferfish": self.pufferfish,
            "reason": self.reason,
            "alternatives": [choice.describe() for choice in self.alternatives],
        }


def name(mechanism: Additive | Selection) -> str:
    """What a mechanism is called."""
    if isinstance(mechanism, IntegerLaplace):
        return "integer Laplace noise"
    if isinstance(mechanism, IntegerGaussian):
        return "integer Gaussian noise"
    if isinstance(mechanism, PermuteAndFlip | Exponential):
        kind = mechanism.kind.replace("exponential", "the exponential mechanism")
        rounds = "" if mechanism.k == 1 else f" in {mechanism.k} rounds"
        added = isinstance(mechanism, Exponential) and mechanism.currency == "concentrated"
        return f"{kind}{rounds}{' (a concentrated loss)' if added else ''}"
    return f"{name(mechanism.noise)} on all counts, then sorting"


def merit(choice: Choice[Selection, RankingError]) -> str:
    """What a ranking is worth."""
    gap = f"resolves leads of {choice.error.gap:.4g}"
    right = choice.error.mean_right
    if right is None:
        return gap
    return f"{gap} and gets {right:.1%} of the places right for the leads given"


def other_choices(choices: Sequence[Choice[M, E]], describe: Callable[[Choice[M, E]], str]) -> str:
    """The choices that were not the best, in words."""
    if len(choices) < 2:
        return ""
    return ". The others: " + "; ".join(f"{name(c.mechanism)} {describe(c)}" for c in choices[1:])


def once(groups: int) -> str:
    """The end of a reason: that groups cost nothing more, where there are several."""
    if groups == 1:
        return "."
    return f". The {groups} groups have public keys and disjoint entries: one charge for all."


def price(loss: Loss) -> str:
    """A loss in a few letters."""
    match loss:
        case Pure(epsilon=e) | Metric(epsilon=e):
            return f"ε = {four_digits(float(e), 'up')}"
        case Approximate(epsilon=e, delta=d):
            return f"(ε, δ) = ({four_digits(float(e), 'up')}, {four_digits(float(d), 'up')})"
    return f"ρ = {four_digits(float(loss.rho), 'up')}"
