"""What a privacy report is made of: values that somebody else found, in words or numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from takifugu.influence.curve import InfluenceCurve
from takifugu.priors.prior import Prior
from takifugu.reports.spending_figure import BudgetEvent


@dataclass(frozen=True)
class ReportedColumn:
    """A column of a table: its name, the part it plays, and what is known of its values."""

    name: str
    part: str
    values: str


@dataclass(frozen=True)
class ReportedPrior:
    """A prior.

    Attributes:
        prior: The prior itself.
        words: What it is, in a few words.
        file: The name of its file, without folders.
        origin: How it came about, in sentences.
        facts: Its main numbers.
        named: Whether its entries may be named in the report: not if they are people.
    """

    prior: Prior
    words: str
    file: str
    origin: Sequence[str]
    facts: Mapping[str, str]
    named: bool = True


@dataclass(frozen=True)
class ReportedRelease:
    """A release.

    Attributes:
        seq: The number of its charge in the ledger.
        at: When it was charged.
        hash: The hash of that event.
        title: The query in a few words.
        question: The query in a sentence.
        rows: Which rows it is about, in words.
        analyst: To whom it was released; None if nobody was named.
        alone: Its Pufferfish ε if nothing else were ever released, rounded up; None if unknown.
        on_top: What it added to all before it, rounded up; None if unknown.
        method: How it was protected, in words.
        error: What was predicted of its error, in words; empty if unknown.
        columns: The columns of the table that was published.
        table: Its rows.
        by: The public columns that come first.
        ranked: Whether the table is a ranking.
        notes: What else to know, in sentences.
        software: The versions that drew the answer, in words; empty if they were not recorded.
    """

    seq: int
    at: datetime
    hash: str
    title: str
    question: str
    rows: str
    analyst: str | None
    alone: float | None
    on_top: float | None
    method: str
    error: str
    columns: Sequence[str] = ()
    table: Sequence[Sequence[Any]] = ()
    by: Sequence[str] = ()
    ranked: bool = False
    notes: Sequence[str] = ()
    software: str = ""


@dataclass(frozen=True)
class ReportedBudget:
    """A budget: of the dataset, or of an analyst.

    Attributes:
        analyst: Whose it is; None for the dataset as a whole.
        epsilon: The Pufferfish ε that is allowed; None if nobody has set one.
        delta: The δ beside it.
        spent: The Pufferfish ε of all releases, rounded up; None if it cannot be computed.
        left: What is left, rounded down; None if either is unknown.
        spent_odds: What ``spent`` means for one entry, in a clause; empty if unknown.
        full_odds: The same if all of the budget were spent.
    """

    analyst: str | None
    epsilon: Fraction | None
    delta: Fraction
    spent: float | None
    left: float | None
    spent_odds: str = ""
    full_odds: str = ""


@dataclass(frozen=True)
class ReportedDecision:
    """What an owner decided, or entered: the event, and what happened in a clause."""

    seq: int
    at: datetime
    words: str


@dataclass(frozen=True)
class ReportedDataset:
    """A dataset of a project.

    Attributes:
        name: What the project calls it.
        title: One line for people; may be empty.
        entity: The column that says whose row it is.
        columns: Its columns.
        protected: The names of those that the guarantee is about.
        secrets: Which values are kept apart, in a sentence.
        guarantee: The guarantee as it is stated to analysts; empty without a prior.
        priors: What an adversary may believe.
        curve: The influence curve of the priors; None if there is none.
        budgets: That of the dataset first.
        spending: The budget over time.
        releases: In order.
        decisions: In order.
        notes: What to know first, in sentences: why nothing can be released, for one.
        size: The rows and the entities of the table; None if they are not known.
        fitted: Who is not protected since a prior was fitted on their rows; empty for nobody.
        related: An example of how one cell tells of another, in a clause; may be empty.
    """

    name: str
    title: str
    entity: str
    columns: Sequence[ReportedColumn]
    protected: Sequence[str]
    secrets: str
    guarantee: str
    priors: Sequence[ReportedPrior] = ()
    curve: InfluenceCurve | None = None
    budgets: Sequence[ReportedBudget] = ()
    spending: Sequence[BudgetEvent] = ()
    releases: Sequence[ReportedRelease] = ()
    decisions: Sequence[ReportedDecision] = ()
    notes: Sequence[str] = ()
    size: tuple[int, int] | None = None
    fitted: str = ""
    related: str = ""

    @property
    def budget(self) -> ReportedBudget | None:
        """The budget of the dataset as a whole."""
        return next((budget for budget in self.budgets if budget.analyst is None), None)


@dataclass(frozen=True)
class ReportedLedger:
    """The state of the ledger.

    Attributes:
        events: How many events it has.
        seq: The number of the last of them.
        hash: Its hash.
        at: When it was written.
        problems: What a verification found wrong, in words; empty if it is sound.
        witness: The event that a witness in a second place has seen last; None if there is none.
        origin: The hash of its first event, which no other ledger has.
    """

    events: int
    seq: int
    hash: str
    at: datetime
    problems: Sequence[str] = ()
    witness: int | None = None
    origin: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True)
class PrivacyReport:
    """Everything that a privacy report says.

    Attributes:
        datasets: In the order of the policy.
        ledger: The state of the ledger that they share.
        policy: Fingerprint of the policy file.
        software: Versions by name.
        whole: Whether all datasets of the project are there.
    """

    datasets: Sequence[ReportedDataset]
    ledger: ReportedLedger
    policy: str
    software: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
