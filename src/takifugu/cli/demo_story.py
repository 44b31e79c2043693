"""What happened in a demonstration, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from takifugu.engines import DataCheck, Declaration, Fitted
from takifugu.influence.curve import InfluenceCurve
from takifugu.ledger import Event, Position, Reading, Report
from takifugu.numeric import Floats
from takifugu.session import OverBudget, Plan, Result
from takifugu.translation.accounting.translation_table import TranslationTable

DATASET = "check-ins"
BUDGET = 1
SPLIT = 400  # days to fit on
LARGEST = "TR"  # the country with most users
BELIEF = f"the Markov chain fitted on the first {SPLIT} days"


@dataclass(frozen=True)
class Translated:
    """The Pufferfish loss of a few per-entry losses, by every method.

    Attributes:
        table: By transport: what the budget is kept by.
        curve: By the influence curve (the paper).
        group: By counting all rows of the busiest user at once.
        longest: How many rows that user has in the days that are released from.
        leak: What some mechanism really leaks at the last loss of the table: the truth lies
            between this and what the table says.
    """

    table: TranslationTable
    curve: Floats
    group: Floats
    longest: int
    leak: float


@dataclass(frozen=True)
class Story:
    """Everything that was made, asked and answered.

    Attributes:
        seed: Of the made-up world.
        declared: The name of the declaration's file.
        ledger: The name of the ledger's file.
        declaration: The declaration.
        checked: The public facts of the table.
        fitted: The prior, and the rows it was fitted on and those kept apart.
        curve: Its influence curve.
        translated: What per-entry losses come to.
        plans: The plans of the first and the second query.
        top: The answer to the first: the top-3 of every country.
        shares: The answer to the second: shares of one country's rows.
        exact_shares: What they really are; the world is made up.
        right: ``[place]``: for how many countries the place is right; the world is made up.
        again: The first query, asked again.
        refused: Why the third query was refused; None if it was not.
        readings: The odometer after every charge.
        positions: The accounts.
        events: What the ledger holds.
        report: Whether it is sound.
        spent: The Pufferfish ε of everything released.
        guarantee: What is protected and what is not.
        began: When it began.
        seconds: How long each step took.
    """

    seed: int
    declared: str
    ledger: str
    declaration: Declaration
    checked: DataCheck
    fitted: Fitted
    curve: InfluenceCurve
    translated: Translated
    plans: tuple[Plan, Plan]
    top: Result
    shares: Result
    exact_shares: Sequence[float]
    right: Sequence[int]
    again: Result
    refused: OverBudget | None
    readings: Sequence[Reading]
    positions: Sequence[Position]
    events: Sequence[Event]
    report: Report
    spent: float
    guarantee: str
    began: datetime
    seconds: Mapping[str, float]

    @property
    def countries(self) -> int:
        """How many countries there are."""
        return len(set(self.top.column("country")))
