"""Everything takifugu raises on purpose.

* TakifuguError
  * Malformed             something was given in a form that has no meaning
    x InvalidPrior        a belief is not a distribution, or a secret cannot be asked of it
    x InvalidMechanism    a mechanism is not a table of probabilities, or does not fit its world
    x InvalidWorld        datasets, priors and secrets do not fit together
    x InvalidFile         a file cannot be read, or does not say what it must
    x InvalidCharge       what is to be written in a ledger has no meaning there
  x UnsoundRequest        the number asked for is one that no proof supports
  x TooLarge              the exact answer is out of reach at this size; nothing was approximated
  x BudgetExceeded        the ledger refuses; nothing was released
  * LedgerError           the ledger gave no receipt, so nothing may be released
    x NoBudget            nobody has set a budget for this dataset
    x UnknownAnalyst      analysts have budgets here, and the query names none of them
    x NotAccepted         the prior or the secrets are not those that the owner accepted
    x NotALedger          the file or database holds something else
    x NewerLedger         a later version of takifugu wrote it
    x LedgerUnavailable   it cannot be reached, or others hold it locked
    x LedgerUnwritable    it can be read but not written: full, or read-only
    x LedgerDamaged       what is stored contradicts itself
    x LedgerSetBack       it is an older copy, or another history, than its witness has seen
    x LedgerConflict      a key or a receipt was used for two different things
    x CellsChanged        the declaration is another than the one that was charged under
    x SameRows            another dataset of the ledger has the same rows, and its own budget

Messages say what was given, what is needed and what to do next. They may name parameters,
columns and budgets. They never contain a value read from a protected table.
"""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from shlex import quote

from takifugu.visible import visible

MICRO = 10**6


def pasted(name: str) -> str:
    """A name as a command takes it from a shell: what a message advises can be pasted."""
    return quote(name)


class TakifuguError(Exception):
    """Base of every deliberate error; anything else that escapes is a bug."""

    def __str__(self) -> str:
        """The message; marks of a name in it that do not show are written out."""
        return visible(super().__str__(), keep="\n")


class Malformed(TakifuguError, ValueError):
    """Something given cannot be understood: which field, what it is, what it must be."""

    def __init__(self, field: str, *, given: str, needed: str) -> None:
        super().__init__(f"`{field}` {given}; it must {needed}")
        self.field, self.given, self.needed = field, given, needed


class InvalidPrior(Malformed):
    """A prior was constructed from parameters that are not a distribution."""


class InvalidMechanism(Malformed):
    """A mechanism was given as something other than one distribution of outputs per dataset."""


class InvalidWorld(Malformed):
    """Datasets, priors, secrets and mechanisms of a finite world contradict one another."""


class InvalidFile(Malformed):
    """A file is missing, unreadable or not in the documented format."""


class UnsoundRequest(TakifuguError, ValueError):
    """A number was asked for that no proof supports."""


class TooLarge(TakifuguError):
    """An exact answer would take more than the stated room; a smaller question is suggested."""


class InvalidCharge(Malformed):
    """A charge, budget, window or answer that a ledger cannot write down."""


class BudgetExceeded(TakifuguError):
    """The ledger refused a charge. Nothing was released.

    Attributes:
        currency: What is counted, per entry: "epsilon" or "rho".
        needs: What the charge asked for.
        left: The most that would have been accepted on the same entries, rounded down.
    """

    def __init__(
        self, query: str, *, currency: str, needs: Fraction, left: Fraction, whose: str
    ) -> None:
        most = Fraction(floor(left * MICRO), MICRO)
        advice = f"Ask for at most {currency} = {_shown(most)}, or have" if most > 0 else "Have"
        super().__init__(
            f"query {query!r} needs {currency} = {_shown(Fraction(ceil(needs * MICRO), MICRO))} per"
            f" entry but {whose} has {_shown(most)} left; nothing was released. {advice} the owner"
            " raise the budget."
        )
        self.query, self.whose = query, whose
        self.currency, self.needs, self.left = currency, needs, left


def _shown(millionths: Fraction) -> str:
    """Six decimals at most. The caller rounds: advice printed here must work when followed."""
    return f"{Decimal(int(millionths * MICRO)) / MICRO:f}"


class LedgerError(TakifuguError):
    """The ledger could not do what was asked. No receipt was given: release nothing."""


class NoBudget(LedgerError):
    """A charge on a dataset for which no budget was ever set."""

    @classmethod
    def of(cls, dataset: str) -> "NoBudget":
        """The error, with the command that mends it."""
        return cls(
            f"dataset {dataset!r} has no budget; have its owner set one:"
            f" `takifugu budget set {pasted(dataset)} EPSILON`"
        )


class UnknownAnalyst(LedgerError):
    """A query by nobody, or by somebody without a budget, where analysts have budgets."""


class NotAccepted(LedgerError):
    """A query under another prior or other secrets than those in force; the owner decides."""


class NotALedger(LedgerError):
    """A file or database that is not a takifugu ledger."""


class NewerLedger(LedgerError):
    """A ledger that a later version has written; this one would misread it."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached, or stayed locked for longer than the timeout."""


class LedgerUnwritable(LedgerError):
    """The ledger can be read but not written: the disk is full, or the file is read-only."""


class LedgerDamaged(LedgerError):
    """What the ledger holds contradicts itself: it was edited, or the storage failed."""


class LedgerSetBack(LedgerError):
    """The ledger lacks an event that its witness has seen: an older copy was put back."""


class CellsChanged(LedgerError):
    """A dataset's cells are named by another declaration than before; its owner has to decide.

    Attributes:
        dataset: Which dataset.
        changes: What differs, part by part, in words; empty if it is not known what was before.
    """

    def __init__(self, dataset: str, changes: tuple[str, ...]) -> None:
        self.dataset, self.changes = dataset, changes
        if changes:
            more = f"; and {len(changes) - 3} parts more" if len(changes) > 3 else ""
            only_moved = all(change.startswith("source ") for change in changes)
            moved = (
                " if the same rows only lie elsewhere now, have the owner say so (`takifugu dataset"
                f" accept {pasted(dataset)} --unchanged`);"
                if only_moved
                else ""
            )
            super().__init__(
                f"dataset {dataset!r} was released from under another declaration:"
                f" {'; '.join(changes[:3])}{more}. Nothing was released. Put the declaration back;"
                f"{moved} or have the owner count all earlier releases on every row: `takifugu"
                f" dataset accept {pasted(dataset)}`"
            )
            return
        super().__init__(
            f"the earlier charges of dataset {dataset!r} do not say what names their cells; nothing"
            " was released. Have the owner say that the declaration is the one used before"
            f" (`takifugu dataset accept {pasted(dataset)} --unchanged`), or count all earlier"
            f" releases on every row (`takifugu dataset accept {pasted(dataset)}`)"
        )


class SameRows(LedgerError):
    """Two datasets of one ledger have the same rows; two budgets for them would add up.

    Attributes:
        dataset: The one that was to be charged.
        other: The one that was charged before.

    What is the ``same`` is None if it cannot be told.
    """

    def __init__(self, dataset: str, other: str, same: str | None) -> None:
        self.dataset, self.other = dataset, other
        separately = (
            "have the owner count them separately: `takifugu dataset accept"
            f" {pasted(dataset)} --separate-from {pasted(other)}`"
        )
        if same is None:
            super().__init__(
                f"whether dataset {dataset!r} and dataset {other!r} have the same rows cannot be"
                " told: those were marked with another key than this one; nothing was released. Put"
                f" the earlier key back; or {separately}"
            )
            return
        super().__init__(
            f"dataset {dataset!r} and dataset {other!r} have {same}: two budgets for the same rows"
            f" would add up; nothing was released. Use {other!r}; or {separately}"
        )


class LedgerConflict(LedgerError):
    """One key, or one receipt, for two different things."""
