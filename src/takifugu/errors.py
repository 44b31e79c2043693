"""Every error that takifugu raises on purpose.

* TakifuguError
  * Malformed               an argument or a field of a file has no meaning
    x InvalidPrior          a prior is not a distribution, or a secret does not belong to it
    x InvalidMechanism      a mechanism is not a table of probabilities, or does not fit its world
    x InvalidWorld          datasets, priors and secrets do not fit together
    x InvalidFile           a file cannot be read, or lacks what it must contain
    x InvalidCharge         a charge, a budget or an answer that a ledger cannot store
    x InvalidDeclaration, InvalidQuery (engines), InvalidDocument (session),
      InvalidProject (project), InvalidOption (cli)
    x InvalidToken, InvalidApproval, InvalidResult (server)
  x UnsoundRequest          the requested number is one that no proof supports
  x TooLarge                the exact result is out of reach at this size; nothing is approximated
  x BudgetExceeded          the ledger refuses a charge; nothing was released
    x OverBudget (session)
  * LedgerError             the ledger gave no receipt, so nothing may be released
    x NoBudget              the dataset has no budget
    x UnknownAnalyst        analysts have budgets here, and the query names none of them
    x NotAccepted           the owner has not accepted this prior, these secrets or these rules
    x NotALedger            the file or database holds something else
    x NewerLedger           a later version of takifugu wrote it
    x LedgerUnavailable     it cannot be reached, or stayed locked
    x LedgerUnwritable      it can be read but not written: full, or read-only
    x LedgerDamaged         its contents contradict one another
    x LedgerSetBack         it is an older copy, or another history, than its witness has seen
    x LedgerConflict        a key, a receipt or a name is used for two different things
    x ApprovalRefused       the approval that a charge names does not allow it
    x CellsChanged          the declaration differs from the one that earlier charges used
    x SameRows              another dataset of the ledger has the same rows and its own budget
  x MostlyNoise, ApprovalNeeded, StalePlan, ReleaseFailed, BudgetConflict, SessionClosed (session)
  x BatchRefused, ScheduleLocked (project), StateConflict (server)
  x ServerUnreachable, ServerRefused, ApprovalPending, ApprovalDeclined (client)
  x DatabaseFailed, DriverMissing (engines), Undelivered (cli)
  x PdfUnavailable, SigningUnavailable, SignatureRefused (reports)

A message says what was given, what is needed and what to do next. It may name parameters, columns
and budgets; it never contains a value read from a protected table. Programs read the fields of an
error, not its message: `field` (which parameter) and `reason` (a short, stable name of the cause,
where one class has several) exist on all of them.
"""

from collections.abc import Iterable
from fractions import Fraction
from shlex import quote

from takifugu.visible import four_digits, visible


def pasted(name: str) -> str:
    """A name as a shell takes it, so that a command in a message can be pasted."""
    return quote(name)


def nearest(given: object, names: Iterable[object]) -> str | None:
    """Which of the names was probably meant; None if none is near."""
    from difflib import get_close_matches  # only for what has gone wrong

    found = get_close_matches(str(given), [str(name) for name in names], n=1, cutoff=0.5)
    return found[0] if found else None


def one_of(names: Iterable[object], given: object = None) -> str:
    """What a name must do: "be a", or "be one of a, b"; which of them is nearest to ``given``.

    >>> one_of(["union", "industry"], "unoin")
    "be one of union, industry; the nearest is 'union'"
    """
    listed = [str(name) for name in names]
    if len(listed) == 1:
        return f"be {listed[0]}"
    near = None if given is None else nearest(given, listed)
    hint = f"; the nearest is {near!r}" if near else ""
    return f"be one of {', '.join(listed)}{hint}"


class TakifuguError(Exception):
    """Base of every deliberate error; anything else that escapes is a bug.

    Attributes:
        field: The parameter, column or option that is at fault; empty if no single one is.
        reason: The cause, where a class has several: a short name that does not change.
    """

    def __init__(self, message: str = "", *, field: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.field, self.reason = field, reason

    def __str__(self) -> str:
        """The message, with invisible characters of names in it written out."""
        return visible(super().__str__(), keep="\n")


class Malformed(TakifuguError, ValueError):
    """An argument cannot be understood: which field, what it is, what it must be."""

    def __init__(self, field: str, *, given: str, needed: str, reason: str = "") -> None:
        if position := getattr(field, "position", ""):  # of a key in a file that people edit
            given = f"{given} ({position})"
        super().__init__(f"`{field}` {given}; it must {needed}", field=str(field), reason=reason)
        self.given, self.needed = given, needed


class InvalidPrior(Malformed):
    """A prior was constructed from parameters that are not a distribution."""


class InvalidMechanism(Malformed):
    """A mechanism was given as something other than one distribution of outputs per dataset."""


class InvalidWorld(Malformed):
    """Datasets, priors, secrets and mechanisms of a finite world contradict one another."""


class InvalidFile(Malformed):
    """A file is missing, unreadable or not in the documented format."""


class InvalidCharge(Malformed):
    """A charge, budget, window or answer that a ledger cannot store."""


class UnsoundRequest(TakifuguError, ValueError):
    """A number was requested that no proof supports.

    Attributes:
        given: What was given: a number, a size, a name; None if the message alone says it.
        needed: What is needed instead: a bound, a size, the allowed names; None likewise.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        reason: str = "",
        given: object = None,
        needed: object = None,
    ) -> None:
        super().__init__(message, field=field, reason=reason)
        self.given, self.needed = given, needed


class TooLarge(TakifuguError):
    """An exact result would take more than the stated limit; a smaller request is suggested.

    Attributes:
        size: How much it would take; None if that was not computed.
        limit: How much is allowed; None if it is not a number.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        reason: str = "",
        size: float | None = None,
        limit: float | None = None,
    ) -> None:
        super().__init__(message, field=field, reason=reason)
        self.size, self.limit = size, limit


class BudgetExceeded(TakifuguError):
    """The ledger refused a charge. Nothing was released.

    Attributes:
        query: The name of the query.
        dataset: The dataset that was to be charged.
        analyst: The analyst whose own budget refuses; None if it is that of the whole dataset.
        currency: What is counted, per entry: "epsilon" or "rho".
        needs: What the charge needs.
        left: The most that would have been accepted on the same entries, rounded down.
    """

    def __init__(
        self,
        query: str,
        *,
        dataset: str,
        analyst: str | None,
        currency: str,
        needs: Fraction,
        left: Fraction,
    ) -> None:
        self.query, self.dataset, self.analyst = query, dataset, analyst
        self.currency, self.needs, self.left = currency, needs, left
        most = four_digits(left, "down")
        advice = f"Ask for at most {currency} = {most}, or have" if most != "0" else "Have"
        super().__init__(
            f"query {query!r} needs {currency} = {four_digits(needs, 'up')} per entry but"
            f" {self.whose} has {most} left; nothing was released. {advice} the owner raise the"
            " budget.",
            field=currency,
        )

    @property
    def whose(self) -> str:
        """Whose budget refuses, in words."""
        whole = f"dataset {self.dataset!r}"
        return whole if self.analyst is None else f"analyst {self.analyst!r} on {whole}"


class LedgerError(TakifuguError):
    """The ledger could not do it and gave no receipt: release nothing.

    Attributes:
        dataset: The dataset concerned; empty if it is the ledger as a whole.
        event: The number of the event concerned; None if no single one is.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        field: str = "",
        dataset: str = "",
        event: int | None = None,
    ) -> None:
        super().__init__(message, field=field, reason=reason)
        self.dataset, self.event = dataset, event


class NoBudget(LedgerError):
    """The dataset has no budget."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"dataset {dataset!r} has no budget; have its owner set one:"
            f" `takifugu budget set {pasted(dataset)} EPSILON`, or"
            f" ledger.set_budget({dataset!r}, epsilon) in Python",
            dataset=dataset,
        )


class UnknownAnalyst(LedgerError):
    """Analysts have budgets of their own here, and the query names none of them.

    Attributes:
        analyst: Who was named; None for nobody.
        known: The analysts who have a budget.
        similar: Those among them that may have been meant.
    """

    MOST_NAMES = 10  # that the message lists

    def __init__(
        self, dataset: str, analyst: str | None, known: tuple[str, ...], similar: tuple[str, ...]
    ) -> None:
        self.analyst, self.known, self.similar = analyst, known, similar
        given = "names no analyst" if analyst is None else f"names {analyst!r:.80}, who has none"
        more = len(known) - self.MOST_NAMES
        listed = ", ".join(known[: self.MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        hint = (
            f"did you mean {' or '.join(map(repr, similar))}?"
            if similar
            else f"name one of {listed}"
        )
        super().__init__(
            f"analysts have budgets of their own on dataset {dataset!r} and the query {given};"
            f" nothing was released: {hint}",
            dataset=dataset,
            field="analyst",
        )


class NotAccepted(LedgerError):
    """A query under a prior, secrets or rules that the owner has not accepted.

    Attributes:
        changed: What differs from what is in force: "prior", "secrets", "rules".
        keys: Of the rules, which keys of the policy differ; empty if that is not known.
    """

    def __init__(self, dataset: str, changed: tuple[str, ...], keys: tuple[str, ...] = ()) -> None:
        self.changed = changed
        self.keys = keys
        accept = f"have the owner run `takifugu prior accept {pasted(dataset)}`"
        words = {"prior": "another prior", "secrets": "other secrets"}
        terms = " and ".join(words[name] for name in changed if name in words)
        if not terms:
            parts = (
                "its column, what the entries of a prior are, or which rows of a fitted prior are"
                " released from, differs"
            )
            if keys:
                named = ", ".join(f"`{key}`" for key in keys)
                parts = f"{named} of the policy {'differs' if len(keys) == 1 else 'differ'}"
            message = (
                f"dataset {dataset!r}: {parts} from what its owner accepted or earlier releases"
                f" used; nothing was released. Restore the policy, or {accept}"
            )
        else:
            message = (
                f"dataset {dataset!r} has {terms} than its owner accepted or its budget was last"
                " spent under; nothing was released. Use the same as before, or"
                f" {accept}, which shows what is spent under both"
            )
        super().__init__(message, dataset=dataset)


class NotALedger(LedgerError):
    """A file or database that is not a takifugu ledger."""


class NewerLedger(LedgerError):
    """A ledger that a later version has written; this version would misread it."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached, or stayed locked for longer than the timeout."""


class LedgerUnwritable(LedgerError):
    """The ledger can be read but not written: the disk is full, or the file is read-only."""


class LedgerDamaged(LedgerError):
    """The contents of the ledger contradict one another: it was edited, or the storage failed."""


class LedgerSetBack(LedgerError):
    """The ledger lacks an event that its witness has seen: an older copy was put back."""


class LedgerConflict(LedgerError):
    """A key, a receipt or a name is used for two different things."""


class ApprovalRefused(LedgerError):
    """The approval that a charge names does not allow it, or one that cannot be given.

    Attributes:
        approval: The number of the approval's event; None if there is none yet.
    """

    WHY = {  # noqa: RUF012
        "missing": "is no approval of this ledger",
        "refused": "refuses the request",
        "dataset": "is of another dataset",
        "analyst": "is of another analyst",
        "question": "is of another query, or of other rows than the data has now",
        "person": "was given by the person who asks; it needs a second one",
        "terms": "was given before the owner accepted another prior, other secrets or rules",
        "request": "was given for a request on the server, and serves that request alone",
        "used": "was used by an earlier release",
        "withdrawn": "was withdrawn",
        "lost": "was given before history was lost, and may have been used in the lost part",
    }

    def __init__(self, approval: int | None, reason: str, *, dataset: str) -> None:
        self.approval = approval
        named = "the approval" if approval is None else f"approval {approval}"
        super().__init__(
            f"{named} {self.WHY[reason]}; nothing was released. Have an owner approve the request",
            reason=reason,
            field="approval",
            dataset=dataset,
            event=approval,
        )


class CellsChanged(LedgerError):
    """The declaration names a dataset's cells differently than before; its owner has to decide.

    Attributes:
        changes: What differs, part by part, in words; empty if the earlier charges do not say.
    """

    def __init__(self, dataset: str, changes: tuple[str, ...]) -> None:
        self.changes = changes
        accept = f"`takifugu dataset accept {pasted(dataset)}`"
        unchanged = f"`takifugu dataset accept {pasted(dataset)} --unchanged`"
        if not changes:
            message = (
                f"the earlier charges of dataset {dataset!r} do not record what names their cells;"
                " nothing was released. Have the owner confirm that the declaration is the one"
                f" used before ({unchanged}), or count all earlier releases on every row ({accept})"
            )
        else:
            more = f"; and {len(changes) - 3} parts more" if len(changes) > 3 else ""
            moved = (
                " if the same rows only lie elsewhere now, have the owner confirm that"
                f" ({unchanged});"
                if all(change.startswith("source ") for change in changes)
                else ""
            )
            message = (
                f"dataset {dataset!r} was released from under another declaration:"
                f" {'; '.join(changes[:3])}{more}. Nothing was released. Restore the declaration;"
                f"{moved} or have the owner count all earlier releases on every row: {accept}"
            )
        super().__init__(message, dataset=dataset)


class SameRows(LedgerError):
    """Two datasets, or two ledgers, have the same rows; two budgets for them would add up.

    Attributes:
        other: The dataset that was charged before; or "ledger" and the name of another ledger.
        same: What they share, in words; None if their marks cannot be compared.
    """

    def __init__(
        self,
        dataset: str,
        other: str,
        same: str | None,
        place: tuple[str, str, bool] | None = None,
    ) -> None:
        """``place``, of another ledger: where it is, its dataset, and whether it is still there."""
        self.other, self.same = other, same
        separately = (
            "have the owner count them separately: `takifugu dataset accept"
            f" {pasted(dataset)} --separate-from {pasted(other)}`"
        )
        both = f"dataset {dataset!r} and dataset {other!r}"
        if place is not None:
            there = "Use that one" if place[2] else "It is gone: restore it from a backup"
            message = (
                f"dataset {dataset!r} has {same} as dataset {place[1]!r} of ledger {place[0]!r},"
                " which has released from them: two budgets for the same rows would add up; nothing"
                f" was released. {there}; or {separately} (`takifugu quickstart` has the same"
                " option)"
            )
        elif same is None:
            message = (
                f"{both} may have the same rows: their marks were made with different keys and"
                f" cannot be compared; nothing was released. Restore the earlier key; or"
                f" {separately}"
            )
        else:
            message = (
                f"{both} have {same}: two budgets for the same rows would add up; nothing was"
                f" released. Use {other!r}; or {separately}"
            )
        super().__init__(message, dataset=dataset)
