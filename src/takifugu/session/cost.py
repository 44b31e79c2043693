"""What a release costs: alone, after all that was spent before, and what is left."""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any, Protocol

from takifugu.errors import NoBudget
from takifugu.ledger import Ledger, Position
from takifugu.ledger.view import Limit
from takifugu.losses import Pure
from takifugu.mechanisms.calibration import at_least
from takifugu.session.rows import Rows

MICRO = Decimal("0.000001")


class Translates(Protocol):
    """Per-entry DP loss to Pufferfish loss and back: a translation, or a table of one."""

    def pufferfish(self, dp: float, /) -> Any:
        """The Pufferfish loss of a per-entry loss, rounded up."""

    def differential(self, pufferfish: float, /) -> Any:
        """The per-entry loss that a Pufferfish loss allows, rounded down."""


@dataclass(frozen=True)
class Cost:
    """The price of a release.

    Attributes:
        per_entry: The DP loss of every row that is read; this is what is charged.
        alone: The Pufferfish ε of the release if nothing else were ever released.
        before: The Pufferfish ε of all that was released before, rounded up.
        after: The same with this release, rounded up; None if it does not fit.
        budget: The Pufferfish ε that the owner allows.
        fits: Whether the ledger would accept the charge now.
        most: A Pufferfish ε that would be accepted on these rows now, rounded down; 0 if none.
    """

    per_entry: Fraction
    alone: float
    before: float
    after: float | None
    budget: Fraction
    fits: bool
    most: Decimal

    @property
    def marginal(self) -> float | None:
        """What it adds to all that was released before, rounded up; often less than alone."""
        if self.after is None:
            return None
        added = Fraction(self.after) - Fraction(self.before)
        return at_least(max(added, Fraction(0)))

    @property
    def left(self) -> float:
        """What would be left of the budget, rounded down."""
        spent = self.before if self.after is None else self.after
        rest = max(self.budget - Fraction(spent), Fraction(0)) if spent < math.inf else Fraction(0)
        near = float(rest)
        return near if Fraction(near) <= rest else math.nextafter(near, 0.0)

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON; exact numbers as text."""
        return {
            "per_entry": str(self.per_entry),
            "alone": self.alone,
            "before": self.before,
            "after": self.after,
            "marginal": self.marginal,
            "budget": str(self.budget),
            "left": self.left,
            "fits": self.fits,
            "most": str(self.most),
        }


class Prices:
    """Prices of releases on one dataset, by one translation."""

    def __init__(
        self, ledger: Ledger, dataset: str, translation: Translates, analyst: str | None
    ) -> None:
        self._ledger, self._dataset = ledger, dataset
        self._translation, self._analyst = translation, analyst
        self._limits: dict[tuple[Fraction, Fraction], Limit] = {}

    def of(self, loss: Pure, rows: Rows) -> Cost:
        """What ``loss`` on ``rows`` would cost now. Nothing is spent."""
        account = self.account()
        room = self.room(rows)
        fits = loss.epsilon <= room
        return Cost(
            per_entry=loss.epsilon,
            alone=self._pufferfish(loss.epsilon),
            before=self._ledger.spent(self._dataset, self._translation),
            after=self._after(loss, rows, account) if fits else None,
            budget=account.epsilon or Fraction(0),
            fits=fits,
            most=self.most(room),
        )

    def account(self) -> Position:
        """The account of the whole dataset; an error if its owner has set no budget."""
        for position in self._ledger.positions():
            if position.dataset == self._dataset and position.analyst is None:
                if position.epsilon is not None:
                    return position
                break
        raise NoBudget(f"dataset {self._dataset!r} has no budget; have its owner set one")

    def room(self, rows: Rows) -> Fraction:
        """The per-entry loss that would be accepted on ``rows`` now, rounded down."""
        return self._ledger.remaining(
            self._dataset,
            self._translation,
            analyst=self._analyst,
            window=rows.window,
            groups=rows.groups,
        )

    def most(self, room: Fraction) -> Decimal:
        """A Pufferfish ε, in millionths, whose allowance is at most ``room``: checked, not hoped.

        Mechanisms lose at most the allowance, so that asking for it is accepted.
        """
        if room <= 0:
            return Decimal(0)
        found = self._pufferfish(room)
        if found == math.inf:
            return Decimal(0)
        step = MICRO
        most = Decimal(found).quantize(MICRO, rounding=ROUND_FLOOR)
        while most > 0 and Fraction(float(self._translation.differential(float(most)))) > room:
            most, step = max(most - step, Decimal(0)), 2 * step
        return most

    def _after(self, loss: Pure, rows: Rows, account: Position) -> float:
        """The Pufferfish ε of everything, this release included.

        The rows have lost what the budget allows minus what it leaves; the worst row of all is
        either one of them or the worst so far.
        """
        epsilon = account.epsilon or Fraction(0)
        limit = self._limits.get((epsilon, account.delta))
        if limit is None:
            limit = Limit(self._translation, epsilon, account.delta)
            self._limits[epsilon, account.delta] = limit
        left = self._ledger.remaining(
            self._dataset, self._translation, window=rows.window, groups=rows.groups
        )
        lost = (limit.allowed or Fraction(0)) - left
        worst = max(total.epsilon for total in account.worst)
        return self._pufferfish(max(worst, lost + loss.epsilon))

    def _pufferfish(self, epsilon: Fraction) -> float:
        return float(self._translation.pufferfish(at_least(epsilon)))
