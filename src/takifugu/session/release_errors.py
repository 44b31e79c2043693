"""What can go wrong between a plan and its release.

* BudgetExceeded
  x OverBudget       refused; says the largest Pufferfish ε that would still be accepted
* TakifuguError
  x MostlyNoise      little but noise would be released, and nobody confirmed it
  x ApprovalNeeded   a second person has to approve of it first
  x StalePlan        the plan is not what would be released now
  x ReleaseFailed    it was paid for and then something broke; nothing of it is shown
  x BudgetConflict   a session was given another budget than the dataset has
  x SessionClosed    the session was closed before it was used
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

from takifugu.errors import BudgetExceeded, TakifuguError
from takifugu.visible import four_digits, visible


class OverBudget(BudgetExceeded):
    """A release that the budget does not admit; nothing was charged and nothing was read.

    Attributes:
        alone: The Pufferfish ε of the release by itself.
        most: A Pufferfish ε that would be accepted on the same rows now, rounded down; 0 if none.
    """

    def __init__(self, refused: BudgetExceeded, *, alone: float, most: Decimal) -> None:
        super().__init__(
            refused.query,
            currency=refused.currency,
            needs=refused.needs,
            left=refused.left,
            dataset=refused.dataset,
            analyst=refused.analyst,
        )
        advice = "Have"
        if most > 0:
            advice = f"Ask for at most epsilon = {four_digits(most, 'down')}, or have"
        self.args = (
            f"query {refused.query!r} asks for a Pufferfish epsilon of {four_digits(alone, 'up')},"
            f" which is more than {refused.whose} has left on these rows; nothing was released."
            f" {advice} the owner raise the budget.",
        )
        self.alone, self.most = alone, most


class MostlyNoise(TakifuguError):
    """A release of little but noise, without confirmation.

    Its noise exceeds the range of the answer, or is many times what counts and shares usually are.
    Nothing was charged and nothing was read.

    Attributes:
        half_width: Half of the 95 % interval of an answer; of a quantile in ranks, of a ranking the
            lead that is resolved.
        range: The least and the greatest possible answer.
        size: The size that answers are expected to have.
        epsilon_needed: A Pufferfish ε that makes the answer useful; None if none does.
        rows_factor: How many times as many rows make it useful at the same noise.
        words: Whether it would be useful, in words.
        name: Which one of a batch it is; None outside one.
    """

    def __init__(
        self,
        words: str,
        *,
        name: str | None = None,
        half_width: float,
        range: tuple[float, float],
        size: float,
        epsilon_needed: Decimal | None,
        rows_factor: int | None,
    ) -> None:
        which, how = "", "--yes, or accept_noise=True in Python"
        if name is not None:
            which, how = f"{visible(repr(name))} would be ", "`accept_noise = true` in its section"
            how += " [[release]], or --yes for all"
        super().__init__(
            f"{which}{words}. Nothing was charged. To release it all the same, confirm it: {how}",
            field="accept_noise",
            reason="mostly-noise",
        )
        self.words, self.name = words, name
        self.half_width, self.range, self.size = half_width, range, size
        self.epsilon_needed, self.rows_factor = epsilon_needed, rows_factor

    def of(self, name: str) -> "MostlyNoise":
        """The same about the release with this name in a batch."""
        return MostlyNoise(
            self.words,
            name=name,
            half_width=self.half_width,
            range=self.range,
            size=self.size,
            epsilon_needed=self.epsilon_needed,
            rows_factor=self.rows_factor,
        )


class StalePlan(TakifuguError):
    """A plan that is not what its options lead to now; nothing was charged.

    Attributes:
        differences: The parts of the plan that differ.
    """

    def __init__(self, differences: tuple[str, ...]) -> None:
        super().__init__(
            "the plan is not what would be released now: the data, the policy or the plan itself"
            f" has changed (in {', '.join(differences)}); nothing was charged. Plan again"
        )
        self.differences = differences


class ReleaseFailed(TakifuguError):
    """A release that was paid for and then broke. Its cause may hold values, so it is not shown.

    Attributes:
        trouble: The name of the error behind it.
    """

    def __init__(self, trouble: str) -> None:
        super().__init__(
            f"the release was charged, and then its answer could not be made ({trouble}): nothing"
            " was released and the charge stays spent. Ask again, or report it"
        )
        self.trouble = trouble


class SessionClosed(TakifuguError):
    """A session was used after it was closed; nothing was charged."""

    def __init__(self) -> None:
        super().__init__("the session is closed; open it again")


class BudgetConflict(TakifuguError):
    """A session was given another budget than its dataset has; nothing was changed.

    Attributes:
        dataset: The dataset.
        given: The ε and δ that were given.
        current: The ε and δ that the ledger has.
    """

    def __init__(
        self,
        dataset: str,
        given: tuple[Fraction, Fraction],
        current: tuple[Fraction, Fraction],
    ) -> None:
        there, here = _budget(*current), _budget(*given)
        if there == here:  # up to four digits
            there, here = (f"exactly ({pair[0]}, {pair[1]})" for pair in (current, given))
        super().__init__(
            f"dataset {dataset!r} has a budget of {there} and {here} was"
            " given; leave `budget` out to use what is there, or have the owner change it:"
            f" ledger.set_budget({dataset!r}, …)"
        )
        self.dataset, self.given, self.current = dataset, given, current


def _budget(epsilon: Fraction, delta: Fraction) -> str:
    at = f" at delta = {four_digits(delta)}" if delta else ""
    return f"epsilon = {four_digits(epsilon)}{at}"


class ApprovalNeeded(TakifuguError):
    """A release that waits for an owner's approval; nothing was charged and nothing was read.

    Attributes:
        dataset: The dataset.
        why: Why it needs one, in words.
        name: Which release of a batch it is; empty for a single one.
    """

    def __init__(self, dataset: str, reason: str, why: str, *, name: str = "") -> None:
        self.dataset, self.why, self.name = dataset, why, name
        which = f"{name!r}: the" if name else "the"
        super().__init__(
            f"{which} release from dataset {dataset!r} needs the approval of a second person:"
            f" {why}; nothing was charged. Ask for it on the project's server; or write the plan to"
            " a file (`takifugu plan … --out FILE`) and have an owner who is another user run"
            " `takifugu approve FILE`, then name the approval",
            field="approval",
            reason=reason,
        )


@dataclass(frozen=True)
class ApprovalRule:
    """Which releases wait for an owner.

    Attributes:
        above: Those whose Pufferfish ε alone is above this; None for no such limit.
        first: Whether the first release on the dataset, by anybody, does.
    """

    above: Fraction | None = None
    first: bool = False

    def why(self, alone: float, *, first: bool) -> tuple[str, str] | None:
        """Why a release of this price waits, by a short name and in words; None if it does not.

        The price is rounded up, so that one at the limit waits if in doubt.
        """
        if self.above is not None and (not alone < inf or Fraction(alone) > self.above):
            price, most = four_digits(alone, "up"), four_digits(self.above, "down")
            return "above", f"it costs epsilon = {price}, above {most}"
        if self.first and first:
            return "first", "it is the first release on the dataset"
        return None

    @property
    def words(self) -> str:
        """The rule in words."""
        parts = ["the first release"] * self.first
        if self.above is not None:
            parts.append(f"releases above epsilon = {four_digits(self.above, 'down')}")
        return f"{' and '.join(parts)} {'wait' if self.above is not None else 'waits'} for an owner"

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        above = None if self.above is None else str(self.above)
        return {"above": above, "first": self.first, "words": self.words}
