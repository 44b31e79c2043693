"""What a charge meets, and how it is judged and written.

Plans and releases read a `Snapshot` or a `Quote` once: everything that decides whether a query is
admitted, in one read. Neither decides alone: a charge takes a snapshot of its own inside the
transaction that writes it, under the ledger's lock, and refuses by the same method. It reads the
totals, compares them with the budgets and writes. The budget of the whole dataset bounds
everybody's charges together; an analyst's own budget bounds that analyst's charges. Both filters
see the totals after the charge, so that no two charges can pass on the same remainder. Where
analysts have budgets of their own, only they may run queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from takifugu.costs.losses import Concentrated, Loss, Metric
from takifugu.errors import (
    BudgetExceeded,
    CellsChanged,
    InvalidCharge,
    NoBudget,
    NotAccepted,
    UnknownAnalyst,
    UnsoundRequest,
)
from takifugu.ledger.account import BY_VALUE, WHOLE, Book, Touch, charged
from takifugu.ledger.canonical_text import folded
from takifugu.ledger.charge_values import Cells, Charge, Receipt, loss_of
from takifugu.ledger.events import cell_naming, decisions
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.decisions import Terms
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.stored_answers import RESUMABLE, Answer
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import Limit, Limits, after
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection, Statement
from takifugu.ledger.storage.schema import ACCOUNTS, select
from takifugu.translation.protocol import LossTranslation

_OF_ANALYSTS = f"dataset = :named AND analyst <> '{WHOLE}'"
_WITH_ACCOUNTS = select(ACCOUNTS, "analyst", where=_OF_ANALYSTS)
_WITH_BUDGETS = select(ACCOUNTS, "analyst", where=f"{_OF_ANALYSTS} AND epsilon IS NOT NULL")


def analysts_in(connection: Connection, statement: Statement, dataset: str) -> tuple[str, ...]:
    """The analysts of a dataset whose accounts a statement reads, by name."""
    return tuple(sorted(row.analyst for row in statement.all(connection, {"named": dataset})))


def refuse_unknown(connection: Connection, dataset: str, analyst: str | None) -> None:
    """Raise if analysts have budgets on ``dataset`` and ``analyst`` is not exactly one of them.

    A misspelt name would otherwise be somebody else, whom no budget of their own bounds.
    """
    names = analysts_in(connection, _WITH_BUDGETS, dataset)
    if names and analyst not in names:
        raise unknown_analyst(dataset, analyst, names)


def unknown_analyst(dataset: str, analyst: str | None, names: tuple[str, ...]) -> UnknownAnalyst:
    """The error for a query that names none of the analysts with a budget."""
    similar = () if analyst is None else similar_names(analyst, names)
    return UnknownAnalyst(dataset, analyst, names, similar)


def refuse_second_spelling(connection: Connection, dataset: str, analyst: str) -> None:
    """Raise if a new name looks like one that has an account: it would be a second budget."""
    if analyst != analyst.strip() or not analyst.isprintable():
        raise InvalidCharge(
            "analyst", given=f"is {analyst!r:.80}", needed="be printable, without spaces around it"
        )
    names = analysts_in(connection, _WITH_ACCOUNTS, dataset)
    double = [name for name in names if name != analyst and folded(name) == folded(analyst)]
    if double and analyst not in names:
        raise InvalidCharge(
            "analyst",
            given=f"is {analyst!r:.80} and {double[0]!r:.80} has an account already",
            needed="be spelt the same way: two spellings would have two budgets",
        )


def similar_names(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that ``name`` was probably meant to be."""
    same = tuple(known for known in names if folded(known) == folded(name))
    if same:
        return same[:3]
    by_folded = {folded(known): known for known in names}
    close = get_close_matches(folded(name), by_folded, n=3, cutoff=0.6)
    return tuple(by_folded[known] for known in close)


@dataclass(frozen=True)
class Position:
    """An account: its budget (None if it has none) and the worst per-entry totals so far."""

    dataset: str
    analyst: str | None
    epsilon: Fraction | None
    delta: Fraction
    worst: Frontier

    @classmethod
    def from_book(cls, book: Book) -> "Position":
        """The position of a stored account."""
        analyst = book.analyst or None
        return cls(book.dataset, analyst, book.epsilon, book.delta, book.account.worst)


@dataclass(frozen=True)
class Snapshot:
    """What a ledger holds about a dataset for one analyst.

    Attributes:
        dataset: The dataset.
        analyst: Who would run a query; None if no analyst is named.
        terms: The prior and secrets in force; None if there are none yet.
        rules: The rules in force; None if there are none yet.
        whole: The account of the whole dataset, if it has a budget.
        own: The account of the analyst, if they have a budget.
        analysts: Analysts with a budget; left empty if the analyst has one.
        first: Whether no charge has named the cells of the dataset yet.
        changes: How the declared cells differ from those of earlier charges: None if they do not,
            empty if the earlier charges do not say.
        costs: How costs by value would count once the owner accepts these cells.
    """

    dataset: str
    analyst: str | None
    terms: Terms | None
    rules: Mapping[str, Any] | None
    whole: Position | None
    own: Position | None
    analysts: tuple[str, ...]
    first: bool
    changes: tuple[str, ...] | None
    costs: str = BY_VALUE

    @property
    def budget(self) -> tuple[Fraction | None, Fraction]:
        """ε and δ of the whole dataset; no ε if nobody has set a budget."""
        return (None, Fraction(0)) if self.whole is None else (self.whole.epsilon, self.whole.delta)

    @property
    def payers(self) -> tuple[Position, ...]:
        """The accounts with a budget that pay for a release."""
        return tuple(account for account in (self.whole, self.own) if account is not None)

    def changed(self, terms: Terms, rules: Mapping[str, Any] | None) -> tuple[str, ...]:
        """What differs from what is in force: "prior", "secrets", "rules"."""
        known = self.terms or terms
        differs = {
            "prior": known.prior != terms.prior,
            "secrets": known.secrets != terms.secrets,
            "rules": rules is not None and self.rules not in (None, rules),
        }
        return tuple(name for name, is_so in differs.items() if is_so)

    def refuse(self, terms: Terms, rules: Mapping[str, Any] | None) -> None:
        """Raise what a charge under ``terms`` and ``rules`` would be refused with.

        Raises:
            UnknownAnalyst: Analysts have budgets, and the analyst is none of them.
            NotAccepted: The terms or the rules are not those in force.
            CellsChanged: The declared cells are not those of earlier charges.
        """
        if self.analysts:
            raise unknown_analyst(self.dataset, self.analyst, self.analysts)
        changed = self.changed(terms, rules)
        if changed:
            keys = differing(self.rules or {}, rules or {}) if "rules" in changed else ()
            raise NotAccepted(self.dataset, changed, keys)
        if self.changes is not None:
            raise CellsChanged(self.dataset, self.changes)


def differing(known: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys in which two sets of rules differ; of fits that are told apart, keys of these.

    >>> old = {"about": "place", "fits": [{"prior": "a1", "share": "1/5", "salt": "s"}]}
    >>> differing(old, old | {"fits": [{"prior": "a1", "share": "1/3", "salt": "s"}]})
    ('share',)
    >>> differing(old, {"about": "mood", "fits": []})
    ('about', 'fitted')
    """
    keys = []
    for key in sorted({*known, *given}):
        before, now = known.get(key), given.get(key)
        if before == now:
            continue
        fits = [_by_prior(before), _by_prior(now)] if key == "fits" else [None, None]
        if fits[0] and fits[1] and fits[0].keys() == fits[1].keys():
            pairs = [(old, fits[1][prior]) for prior, old in fits[0].items()]
            parts = {k for old, new in pairs for k in {*old, *new} if old.get(k) != new.get(k)}
            keys += sorted(parts)
        else:
            keys.append("fitted" if key == "fits" else key)
    return tuple(keys)


def _by_prior(fits: Any) -> dict[str, Mapping[str, Any]] | None:
    """Fits by the prior that they made; None if that does not tell them apart."""
    if not isinstance(fits, list) or not all(isinstance(fit, Mapping) for fit in fits):
        return None
    by_prior = {str(fit.get("prior")): fit for fit in fits}
    return by_prior if len(by_prior) == len(fits) else None


def read_snapshot(
    connection: Connection,
    dataset: str,
    analyst: str | None,
    cells: Cells | None,
    books: Mapping[str, Book] | None = None,
) -> Snapshot:
    """The snapshot of a dataset, in the transaction of ``connection``.

    ``books`` are its accounts, if they were read already; without ``cells`` none are compared.
    """
    if books is None:
        books = tables.find(connection, dataset, analyst or WHOLE)
    mine = None if analyst is None else _with_budget(books.get(analyst))
    terms, rules = decisions.in_force(connection, dataset)
    first, changes, costs = True, None, BY_VALUE
    if cells is not None:
        first, changes = cell_naming.compare(connection, dataset, cells)
        if changes is not None:
            costs = cell_naming.costs_once_accepted(connection, dataset, cells)
    return Snapshot(
        dataset=dataset,
        analyst=analyst,
        terms=terms,
        rules=rules,
        whole=_with_budget(books.get(WHOLE)),
        own=mine,
        analysts=() if mine is not None else analysts_in(connection, _WITH_BUDGETS, dataset),
        first=first,
        changes=changes,
        costs=costs,
    )


def _with_budget(book: Book | None) -> Position | None:
    return None if book is None or book.epsilon is None else Position.from_book(book)


def amount(loss: Loss) -> tuple[str, Fraction]:
    """The currency of a loss and its amount: ε, or ρ."""
    if isinstance(loss, Concentrated):
        return "rho", loss.rho
    return "epsilon", loss.epsilon


@dataclass(frozen=True)
class Payer:
    """An account with a budget, as stored, before its budget is translated.

    Attributes:
        analyst: Whose own account it is; None for that of the whole dataset.
        epsilon: The budget.
        delta: The δ beside it.
        overall: The worst totals of all its cells.
        touched: The worst totals of the cells that the charge would read.
    """

    analyst: str | None
    epsilon: Fraction
    delta: Fraction
    overall: Frontier
    touched: Frontier


@dataclass(frozen=True)
class Standing(Payer):
    """An account with a translated budget, as a charge finds it."""

    limit: Limit

    @classmethod
    def under(cls, payer: Payer, limit: Limit) -> "Standing":
        """An account under its budget, once that is translated."""
        return cls(**vars(payer), limit=limit)

    def admits(self, loss: Loss) -> bool:
        """Whether one more ``loss`` on the cells that are touched is within the budget."""
        return self.limit.admits(self._after(loss))

    def room(self, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` would be accepted, rounded down.

        Of a cost, the largest factor: 1 is the cost itself.
        """
        if not self.limit.admits(self.overall):
            return Fraction(0)
        return self.limit.room(self.touched, loss, self.overall)

    @property
    def spent(self) -> float:
        """The Pufferfish ε of all that was released, at the δ of the budget, rounded up."""
        return self.limit.spent(self.overall)

    def spent_after(self, loss: Loss) -> float:
        """The same after one more ``loss`` on the cells that are touched."""
        return self.limit.spent(self._after(loss))

    def _after(self, loss: Loss) -> Frontier:
        return after(self.touched, loss, self.overall)


def payers(
    connection: Connection,
    dataset: str,
    names: tuple[str, ...],
    window: dict[str, Any] | None,
    groups: dict[str, Any] | None,
    books: Mapping[str, Book] | None = None,
) -> tuple[Payer, ...]:
    """The accounts among ``names`` that have a budget, on the cells of window and groups.

    ``books`` are the accounts as they are stored, if they were read already.
    """
    stored = tables.find(connection, dataset, names[-1]) if books is None else books
    whole = stored.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    touch: Touch = whole.shape.touch(window, groups)
    accounts = []
    for book in (stored[name] for name in names if name in stored):
        if book.epsilon is not None:
            if not touch.everything:
                tables.load(connection, book, touch)
            account, analyst = book.account, book.analyst or None
            accounts.append(
                Payer(analyst, book.epsilon, book.delta, account.worst, account.on(touch))
            )
    return tuple(accounts)


def standings_of(
    accounts: tuple[Payer, ...], translation: LossTranslation, limits: Limits
) -> tuple[Standing, ...]:
    """The accounts under their budgets, which are translated now unless they were before."""
    return tuple(
        Standing.under(payer, limits.limit(translation, payer.epsilon, payer.delta))
        for payer in accounts
    )


def paying(analyst: str | None) -> tuple[str, ...]:
    """The names of the accounts that pay for a charge of ``analyst``."""
    return (WHOLE,) if analyst is None else (WHOLE, analyst)


@dataclass(frozen=True)
class Quote:
    """What a charge would meet now.

    Attributes:
        snapshot: The terms in force and the accounts.
        answer: The stored answer, if the analyst of the charge has paid for it: it is free.
        shared: Whether anybody has paid for the same answer.
        last: The last charge on the dataset; None if there was none.
        standings: The accounts that pay for the charge.
    """

    snapshot: Snapshot
    answer: Answer | None
    shared: bool
    last: Event | None
    standings: tuple[Standing, ...]

    @property
    def stored(self) -> bool:
        """Whether the answer is stored and costs nothing."""
        return self.answer is not None or (self.shared and self.snapshot.own is None)

    @property
    def reuse(self) -> bool:
        """Whether another analyst's answer would be charged to this analyst's budget alone."""
        return self.answer is None and self.shared and self.snapshot.own is not None


@dataclass(frozen=True)
class Untranslated:
    """What must be translated, without the lock, before the charge can be judged.

    Attributes:
        budgets: ε and δ of budgets.
        totals: What entries would have lost, beside the limit that must judge it.
    """

    budgets: tuple[tuple[Fraction, Fraction], ...] = ()
    totals: tuple[tuple[Limit, Frontier], ...] = ()

    def translate(self, translation: LossTranslation, limits: Limits) -> None:
        """Translate it, and remember that in ``limits``."""
        for epsilon, delta in self.budgets:
            limits.limit(translation, epsilon, delta)
        for limit, totals in self.totals:
            limit.translate(totals)


@dataclass(frozen=True)
class Refusal:
    """A charge that some budget does not admit; nothing was written."""

    standings: tuple[Standing, ...]

    def error(self, body: Mapping[str, Any]) -> BudgetExceeded:
        """What was needed, what is left and what to do."""
        loss = loss_of(body["loss"])
        currency, needs = amount(loss)
        unit = needs if isinstance(loss, Metric) else Fraction(1)  # room for a cost is a factor
        rooms = [(standing.room(loss) * unit, standing.analyst) for standing in self.standings]
        left, analyst = min(rooms, key=lambda room: (room[0], room[1] is None))
        name = body["query"].get("name") or body["query_fingerprint"][:12]
        return BudgetExceeded(
            str(name),
            dataset=body["dataset"],
            analyst=analyst,
            currency=currency,
            needs=needs,
            left=left,
        )


def enter_charge(
    connection: Connection,
    kind: str,
    body: Mapping[str, Any],
    translation: LossTranslation,
    limits: Limits,
    now: datetime,
    charge: Charge,
    *,
    wait: bool = False,
) -> Event | Untranslated | Refusal:
    """Write a charge or reuse and its totals, unless a budget or an owner's decision forbids it.

    With ``wait`` costs are translated here, under the lock, if they were not before.
    """
    dataset = body["dataset"]
    stored = tables.find(connection, dataset, body["analyst"] or WHOLE)
    whole = stored.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    snapshot = read_snapshot(connection, dataset, body["analyst"], charge.cells, stored)
    snapshot.refuse(Terms(body["prior"], body["secrets"]), charge.rules)
    decisions.refuse_unfit(connection, body)
    marks = unknown_marks(connection, charge)
    names = charged({**body, "kind": kind})
    books = [stored.get(name) or whole.for_analyst(name) for name in names]
    touch = whole.shape.touch(body["window"], body["groups"])
    translated = [limits.known(translation, book) for book in books]
    cold = tuple(
        (book.epsilon, book.delta)
        for book, limit in zip(books, translated, strict=True)
        if book.epsilon is not None and limit is None
    )
    if cold:
        return Untranslated(cold)
    loss, entries = loss_of(body["loss"]), []
    for book in books:
        if not touch.everything:
            tables.load(connection, book, touch)
        known = {(segment.start, cell) for segment in book.account.segments for cell in segment.own}
        entries.append((book, book.account.apply(touch, loss), known))
    judged = [
        (limit, book.account.worst)
        for book, limit in zip(books, translated, strict=True)
        if limit is not None
    ]
    verdicts = [limit.admits(totals) if wait else limit.decided(totals) for limit, totals in judged]
    if not all(verdicts):
        if False in verdicts:
            accounts = payers(connection, dataset, names, body["window"], body["groups"])
            return Refusal(standings_of(accounts, translation, limits))
        unknown = (pair for pair, known in zip(judged, verdicts, strict=True) if known is None)
        return Untranslated(totals=tuple(unknown))
    if marks:
        chain.append(connection, "source", {**marks, "actor": body["actor"]}, now)
    for book, changed, known in entries:
        if not book.id:
            tables.open_book(connection, book)
        elif changed:
            tables.save_segments(connection, book, changed, touch, known)
    tables.save(connection, dict.fromkeys((whole, *books)))  # a reuse may be what fixes its shape
    named = {**body, "naming": charge.cells.parts} if snapshot.first else body
    return chain.append(connection, kind, named, now)


def unknown_marks(connection: Connection, charge: Charge) -> Mapping[str, Any] | None:
    """What to file about a state of the data that is new; an error if another dataset has it."""
    if not charge.sources or cell_naming.is_known(connection, charge.dataset, charge.data):
        return None
    cell_naming.refuse_twins(connection, charge.dataset, charge.sources)
    return cell_naming.marks_body(charge.dataset, charge.data, charge.sources)


def receipt_of(event: Event, *, may_release: bool, resume: bool) -> Receipt:
    """The receipt of a charge that is written."""
    return Receipt(
        anchor=event.anchor,
        key=event.body["key"],
        dataset=event.body["dataset"],
        analyst=event.body["analyst"],
        at=event.at,
        may_release=may_release,
        resumable=resume and event.body.get(RESUMABLE) is True,
    )


def refuse_other_translation(charge: Charge, translation: LossTranslation) -> None:
    """A translation that knows its fingerprint must be the one that the charge names."""
    mark = translation.fingerprint
    if mark is not None and mark != charge.translation:
        raise UnsoundRequest(
            f"the charge names translation {charge.translation[:12]} but {mark[:12]} was given",
            field="translation",
            given=mark,
            needed=charge.translation,
        )
