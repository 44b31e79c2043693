"""What can go wrong between a plan and its release.

* BudgetExceeded
  x OverBudget       refused; says the largest Pufferfish ε that would still be accepted
* TakifuguError
  x StalePlan        the plan is not for this session, or the data changed since it was made
  x ReleaseFailed    it was paid for and then something broke; nothing of it is told
"""

from decimal import Decimal

from takifugu.errors import BudgetExceeded, TakifuguError


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
        advice = f"Ask for at most epsilon = {most:f}, or have" if most > 0 else "Have"
        self.args = (
            f"query {refused.query!r} asks for a Pufferfish epsilon of {alone:.6g}, which is more"
            f" than {refused.whose} has left on these rows; nothing was released. {advice} the"
            " owner raise the budget.",
        )
        self.alone, self.most = alone, most


class StalePlan(TakifuguError):
    """A plan that cannot be released as it is; nothing was charged."""


class ReleaseFailed(TakifuguError):
    """A release that was paid for and then broke. Its cause may hold values, so it is not told."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"the release was charged, and then its answer could not be made ({kind}); nothing was"
            " released and the charge stays spent. Ask again, or report it"
        )
