"""The budgets of a dataset under the present policy: spent and remaining, in Pufferfish ε."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from takifugu._core.rounding import float_down
from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Metric, Pure
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Cells, Ledger, Position, Reading
from takifugu.ledger.charge_values import EPOCH
from takifugu.ledger.limits import spent_epsilon
from takifugu.session.release_cost import Prices, beside_what_is_left
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation


@dataclass(frozen=True)
class StretchLoss:
    """The Pufferfish ε that the rows in a stretch of the order have lost at worst.

    Attributes:
        start: In ticks of the ledger; None if it is unbounded.
        end: In the same; None if it is unbounded.
        spent: Rounded up.
    """

    start: int | None
    end: int | None
    spent: float


@dataclass(frozen=True)
class BudgetStanding:
    """A budget: what was spent of it and what is left.

    Attributes:
        analyst: Whose it is; None for the dataset as a whole.
        budget: The Pufferfish ε that is allowed; None if nobody has set one.
        delta: The δ beside it.
        spent: The Pufferfish ε of all releases together, rounded up; None without a prior.
        left: What a release on all rows may still cost alone: ``most``; None without a budget of
            its own. It is not the rest of the budget, since prices do not simply add up.
        most: A Pufferfish ε that would be accepted on all rows now, rounded down.
        history: The odometer after each of the latest charges.
        stretches: What each stretch of the order has lost.
        by_column: Where rows have several protected columns: what was spent of each, rounded up;
            None if there is but one, or if a δ or ρ was spent.
    """

    analyst: str | None
    budget: Fraction | None
    delta: Fraction
    spent: float | None = None
    left: float | None = None
    most: Decimal | None = None
    history: tuple[Reading, ...] = ()
    stretches: tuple[StretchLoss, ...] = ()
    by_column: Mapping[str, float] | None = None

    def document(self, *, instants: bool) -> dict[str, Any]:
        """The same as JSON; ``instants`` says whether ticks of the order are instants."""
        return {
            "analyst": self.analyst,
            "epsilon": None if self.budget is None else str(self.budget),
            "delta": str(self.delta),
            "spent": self.spent,
            "left": self.left,
            "most": None if self.most is None else str(self.most),
            "by_column": None if self.by_column is None else dict(self.by_column),
            "history": [
                {"seq": reading.seq, "at": reading.at.isoformat(), "spent": reading.epsilon}
                for reading in self.history
            ],
            "stretches": [
                {
                    "start": tick_text(part.start, instants=instants),
                    "end": tick_text(part.end, instants=instants),
                    "spent": part.spent,
                }
                for part in self.stretches
            ],
        }

    @property
    def beside_what_is_left(self) -> str:
        """Why what is left is not the rest of the budget; empty if it is.

        The most that an analyst may spend is also limited by the budget of the whole.
        """
        if self.most is None or self.budget is None or self.spent is None:
            return ""
        over = self.spent > self.budget  # also if it is infinite
        rest = 0.0 if over else float_down(self.budget - Fraction(self.spent))
        if self.analyst is not None and self.most < rest:
            return ""
        return beside_what_is_left(self.most, rest, self.spent)


def budget_standings(
    ledger: Ledger,
    dataset: str,
    translation: LossTranslation | None,
    *,
    last: int,
    cells: Cells | None = None,
) -> tuple[BudgetStanding, ...]:
    """The budget of the whole dataset, then that of each analyst who has one or has spent.

    ``cells`` are what names the protected values now: see `Ledger.spent`.
    """
    return tuple(
        standing_of(ledger, position, translation, last=last, cells=cells)
        for position in ledger.positions(dataset)
    )


def standing_of(
    ledger: Ledger,
    position: Position,
    view: LossTranslation | None,
    *,
    last: int = 0,
    cells: Cells | None = None,
) -> BudgetStanding:
    """How one budget stands, with the ``last`` readings of its odometer."""
    dataset, analyst, budget = position.dataset, position.analyst, position.epsilon
    if view is None:
        return BudgetStanding(analyst, budget, position.delta)
    spent = ledger.spent(dataset, view, analyst=analyst, cells=cells)
    left = most = None
    if ledger.snapshot(dataset).whole is not None:
        standings = ledger.standings(dataset, view, analyst=analyst)
        prices = Prices(dataset, view)
        most = min(prices.most(loss, Fraction(0), standings) for loss in _typical(view))
        left = None if budget is None else float_down(Fraction(most))
    history = tuple(ledger.odometer(dataset, view, analyst=analyst, last=last)) if last else ()
    stretches = tuple(
        StretchLoss(part.start, part.end, spent_epsilon(view, part.worst, budget, position.delta))
        for part in ledger.over_time(dataset, analyst=analyst)
    )
    by_column = _by_column(view, position, spent)
    return BudgetStanding(
        analyst, budget, position.delta, spent, left, most, history, stretches, by_column
    )


def _typical(view: LossTranslation) -> tuple[Pure | Metric, ...]:
    """Losses, of any amount, of which a query may have one: all that an entry is, or a column.

    Where every pair of values of the columns of independent rows is secret, a column that is read
    at ε loses ε itself, and that fits where any change of the row may cost ε.
    """
    if not isinstance(view, RowTranslation) or len(view.secrets) < 2:
        return (Pure(0),)
    if view.over == "row" and view.covering_cost(Fraction(1)) is not None:
        return (Pure(0),)
    return tuple(Metric(Cost.of({Column(column, ANY): 1})) for column in view.secrets)


def _by_column(view: LossTranslation, position: Position, most: float) -> dict[str, float] | None:
    """What the secrets of each column have lost; no more than ``most``, what all have."""
    totals = position.worst
    if not isinstance(view, RowTranslation) or len(view.secrets) < 2:
        return None
    if any(total.delta or total.rho for total in totals):
        return None
    try:
        losses = view.losses(*(total.cost for total in totals))
    except UnsoundRequest:  # costs that name no column, of before there were several
        losses = view.losses(Cost.any(max(total.scalar for total in totals)))
    return {column: min(loss, most) for column, loss in losses.items()}


def tick_text(tick: int | None, *, instants: bool) -> str | int | None:
    """A tick of the ledger as an instant in ISO 8601, or as the step that it is."""
    if tick is None or not instants:
        return tick
    return (EPOCH + timedelta(microseconds=tick)).isoformat()
