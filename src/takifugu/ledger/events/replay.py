"""The whole chain read from its beginning: checked link by link, and its totals recomputed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from takifugu.errors import ApprovalRefused, LedgerDamaged, TakifuguError
from takifugu.ledger.account import WHOLE, Books, charged, contents
from takifugu.ledger.canonical_text import canonical_json
from takifugu.ledger.charge_values import Charge
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.decisions import AcceptedTerms, ApprovedRequests, Terms
from takifugu.ledger.events.event_chain import COPIED, KINDS, ROOT, Anchor, Event
from takifugu.ledger.events.stored_answers import AnsweredCharges
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import Limits, spent_epsilon
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection, Statement
from takifugu.ledger.storage.schema import foreign_objects
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

MAX_PROBLEMS = 20  # a report names no more
_COUNTED = chain.events_where("dataset = :named OR kind = 'loss'")
_INTEGRITY = Statement("PRAGMA integrity_check(1)")


@dataclass(frozen=True)
class Problem:
    """One thing that a verification found wrong.

    Attributes:
        reason: Its kind: "storage", "foreign", "missing", "edited", "unreadable", "form", "kind",
            "filed", "head", "anchor", "terms", "answer", "approval", "overspent", "account",
            "budget", "shape", "totals", "segments", "more", or the reason of a `LedgerSetBack`.
        message: The same in words.
        event: The event concerned; None if no single one is.
    """

    reason: str
    message: str
    event: int | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Report:
    """What a verification found.

    An untouched chain proves that no event was edited, deleted, inserted or moved since the next
    one was written, and that none was cut off at the end unless the head was rewritten as well. It
    cannot prove that the whole ledger is not an old copy, or rewritten: the witness of the head
    shows that, or an `Anchor` noted elsewhere.

    Attributes:
        events: How many there are.
        head: The last of them, to be noted down.
        problems: What is wrong; empty if nothing is.
        witness: The event that the witness has seen last; None if there is no record.
        unproven: Datasets with charges whose admission could not be judged again, since the prior
            that they were made under is not at hand; None if no priors were given.
        loss: Of a backup that was put back: the event that accepts what it lacks, if it does.
    """

    events: int
    head: Anchor
    problems: tuple[Problem, ...]
    witness: Anchor | None = None
    unproven: tuple[str, ...] | None = None
    loss: Event | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


TranslationUnder = Callable[[str, Terms], LossTranslation | None]


class _Admitted(NamedTuple):
    """The totals of an account after a charge, and the terms and budget that admitted them."""

    terms: Terms
    budget: tuple[Fraction, Fraction]
    totals: Frontier
    event: int


class Admissions:
    """Whether the charges of a chain were within their budgets, judged again from its events.

    A program without the filter can write a chain whose hashes and totals agree although a budget
    is overspent. Without a prior a part of that can be told: no sound translation is below the
    per-entry loss (`witnesses.lost_history`), so that no total may have an ε above that of the
    budget, nor a δ above its δ, nor a ρ beside a δ of 0. With the translation in use the rest can:
    totals only grow, so that a budget which admits the totals after the last of several charges
    admits those before it.

    Attributes:
        unproven: Datasets with charges under a prior that is not at hand.
    """

    def __init__(self, translation_under: TranslationUnder | None = None) -> None:
        """``translation_under``: the translation of a dataset under some terms, if it is known."""
        self._translation_under, self._limits = translation_under, Limits()
        self._last: dict[tuple[str, str], _Admitted] = {}
        self.unproven: set[str] = set()

    def misfits(self, books: Books, body: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Events that overspend a budget, once ``books`` have one more event, and why."""
        if body["kind"] not in ("charge", "reuse"):
            return
        dataset, event = body["dataset"], body["seq"]
        if books.book(dataset, WHOLE).epsilon is None:
            yield event, f"event {event} was charged to {dataset!r}, which had no budget"
        for analyst in charged(body):
            book = books.book(dataset, analyst)
            if book.epsilon is None:
                continue
            totals, budget = book.account.worst, (book.epsilon, book.delta)
            if any(
                total.epsilon > book.epsilon
                or total.delta > book.delta
                or (total.rho and not book.delta)
                for total in totals
            ):
                lost = four_digits(max(total.epsilon for total in totals), "up")
                yield (
                    event,
                    f"event {event} overspends the budget of {_whose(dataset, analyst)}: an entry"
                    " has lost epsilon ="
                    f" {lost} under a budget of {four_digits(book.epsilon)}",
                )
                continue
            last = self._last.get((dataset, analyst))
            terms = Terms(body["prior"], body["secrets"])
            if last is not None and (last.terms, last.budget) != (terms, budget):
                yield from self._judged(dataset, analyst, last)
            self._last[dataset, analyst] = _Admitted(terms, budget, totals, event)

    def remaining(self) -> Iterator[tuple[int, str]]:
        """The same at the end of the chain."""
        for (dataset, analyst), last in self._last.items():
            yield from self._judged(dataset, analyst, last)

    def _judged(self, dataset: str, analyst: str, last: _Admitted) -> Iterator[tuple[int, str]]:
        if self._translation_under is None:
            return
        translation = self._translation_under(dataset, last.terms)
        if translation is None:
            self.unproven.add(dataset)
        elif not self._limits.limit(translation, *last.budget).admits(last.totals):
            yield (
                last.event,
                f"event {last.event}: what was charged to {_whose(dataset, analyst)} up to it is"
                f" not within the budget of {four_digits(last.budget[0])} under its prior",
            )


def _whose(dataset: str, analyst: str) -> str:
    return f"{dataset!r}" + (f", analyst {analyst!r}" if analyst else "")


def replayed(connection: Connection) -> Books:
    """The accounts that the events give."""
    books = Books()
    for event in chain.events(connection):
        take(books, event)
    return books


def take(books: Books, event: Event) -> None:
    """Take one more event into account; `LedgerDamaged` if it has no meaning."""
    try:
        books.apply(event.body)
    except (KeyError, ValueError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise chain.unreadable(event.seq) from error


def rebuild(connection: Connection) -> None:
    """Compute every total again from the events, and compare them with the last event."""
    last = chain.head(connection, lock=True)
    root = chain.one(connection, last.seq).body.get("totals")
    tables.rebuild(connection, replayed(connection))
    if chain.totals(connection).save(connection) != root:
        raise LedgerDamaged(
            "the events do not add up to the totals that the last of them names; restore a copy",
            reason="totals",
        )


def verify(
    connection: Connection,
    anchor: Anchor | None,
    *,
    sqlite: bool,
    admissions: Admissions | None = None,
) -> Report:
    """Check storage, chain, columns, head, totals and, if given, ``anchor`` and ``admissions``."""
    problems: list[Problem] = []
    if sqlite:
        integrity = _INTEGRITY.one(connection, {}).integrity_check
        if integrity != "ok":
            problems.append(Problem("storage", f"the file is damaged: {integrity}"))
    problems += [
        Problem("foreign", f"{kind} {name!r} was added to the database of the ledger")
        for kind, name in foreign_objects(connection)
    ]
    books, decided, previous, count, last = Books(), AcceptedTerms(), ROOT, 0, 0
    approved, answered = ApprovedRequests(), AnsweredCharges()
    anchored = anchor is None
    for row in chain.rows(connection):
        count += 1
        problems += _row_problems(row, previous, last + 1)
        try:
            body = chain.read(row).body
            books.apply(body)
            wrong: dict[str, str] = {}
            if not decided.allows(body):
                wrong["terms"] = "was charged under terms that were not accepted"
            if not answered.fits(body):
                wrong["answer"] = "is not the one answer to a charge before it"
            if admissions is not None:
                problems += _overspent(admissions.misfits(books, body))
            if unfit := approved.misfit(body):
                why = ApprovalRefused.WHY[unfit]
                wrong["approval"] = f"names approval {body['approval']}, which {why}"
            problems += (Problem(r, f"event {row.seq} {w}", row.seq) for r, w in wrong.items())
        except (
            *(TakifuguError, KeyError, ValueError),
            *(TypeError, AttributeError, ZeroDivisionError),
        ):
            problems.append(Problem("unreadable", f"event {row.seq} cannot be read", row.seq))
        previous, last = row.hash, row.seq
        anchored = anchored or anchor == Anchor(row.seq, row.hash)
        if len(problems) > MAX_PROBLEMS:
            more = Problem("more", "and more")
            return Report(count, Anchor(last, previous), (*problems[:MAX_PROBLEMS], more))
    head = chain.head(connection)
    if (head.seq, head.hash) != (last, previous):
        message = (
            f"the chain ends at event {last} but the head is event {head.seq}: events were cut off"
            " or added behind the ledger's back"
        )
        problems.append(Problem("head", message, head.seq))
    if not anchored and anchor is not None:
        message = f"event {anchor.seq} is not the one recorded: this is an old or another chain"
        problems.append(Problem("anchor", message, anchor.seq))
    if admissions is not None:
        problems += _overspent(admissions.remaining())
    problems += _total_problems(connection, books)
    problems += _digest_problems(connection, books)
    return Report(count, Anchor(last, previous), tuple(problems[:MAX_PROBLEMS]))


def _overspent(misfits: Iterator[tuple[int, str]]) -> list[Problem]:
    return [Problem("overspent", message, event) for event, message in misfits]


def _row_problems(row: Any, previous: str, due: int) -> Iterator[Problem]:
    if row.seq != due:
        message = f"event {due} is missing: event {row.seq} comes in its place"
        yield Problem("missing", message, due)
    if row.hash != chain.link(previous, row.body):
        yield Problem("edited", f"event {row.seq} was changed, or what came before it", row.seq)
        return
    try:
        event = chain.read(row)
    except LedgerDamaged:
        return  # the replay reports it
    if canonical_json(event.body, "event") != row.body or event.body.get("seq") != row.seq:
        yield Problem("form", f"event {row.seq} is not written as this ledger writes", row.seq)
    if event.kind not in KINDS or (row.seq == 1) != (event.kind == "created"):
        message = f"event {row.seq} is of kind {event.kind!r}, which cannot be in its place"
        yield Problem("kind", message, row.seq)
    copies = {name: event.body.get(name) for name in COPIED}
    if event.kind == "charge":
        copies["charge"] = row.seq
    wrong = [name for name, value in copies.items() if getattr(row, name) != value]
    if wrong:
        message = f"event {row.seq} is filed under another {' and '.join(wrong)} than its own"
        yield Problem("filed", message, row.seq)


def _total_problems(connection: Connection, books: Books) -> Iterator[Problem]:
    try:
        stored = tables.load_all(connection)
    except LedgerDamaged as error:
        yield Problem("totals", str(error))
        return
    for name in sorted(stored.keys() | books.books.keys()):
        dataset, analyst = name
        whose = f"dataset {_whose(dataset, analyst)}"
        if name not in stored or name not in books.books:
            state = "missing" if name in books.books else "not in the events"
            yield Problem("account", f"the account of {whose} is {state}")
            continue
        in_tables, in_events = contents(stored[name]), contents(books.books[name])
        for part in (part for part in in_tables if in_tables[part] != in_events[part]):
            yield Problem(part, f"the {part} of {whose} is not what its events add up to")


def _digest_problems(connection: Connection, books: Books) -> Iterator[Problem]:
    """Compare the totals that the last event names, and the stored digests, with the replay."""
    try:
        tree = chain.totals(connection)
        if tree.root != tables.root_of(books.books.values()):
            message = "the last event does not name the totals that the events add up to"
            yield Problem("totals", message)
        tables.compare_all(connection)
    except LedgerDamaged as error:
        yield Problem("totals", str(error))


Counted = tuple[Event, Frontier, tuple[Fraction | None, Fraction]]


def counted(connection: Connection, dataset: str, analyst: str) -> Iterator[Counted]:
    """Every charge to an account, the totals after it, and the budget at that time."""
    books = Books()
    with closing(_COUNTED.stream(connection, {"named": dataset})) as rows:
        for event in map(chain.read, rows):
            take(books, event)
            if event.kind == "loss":
                counts = (dataset, analyst) in books.books
            else:
                counts = event.kind in ("charge", "reuse") and analyst in charged(event.body)
            if counts:
                book = books.book(dataset, analyst)
                yield event, book.account.worst, (book.epsilon, book.delta)


@dataclass(frozen=True)
class Rehearsed:
    """What a charge would meet after those before it.

    Attributes:
        charge: The charge.
        admitted: Whether every budget that pays admits it; then it counts for those after it.
        spent: The Pufferfish ε of the dataset with it, rounded up; without it, if not admitted.
    """

    charge: Charge
    admitted: bool
    spent: float


def rehearse(
    events: Iterable[Event],
    charges: Sequence[tuple[Charge, LossTranslation]],
    limits: Limits,
) -> tuple[Rehearsed, ...]:
    """Each charge after ``events`` and the admitted charges before it, by the ledger's own sums.

    A single charge is judged against what is spent now. A batch, or the periods of a schedule to
    come, must be judged together: each is added to the accounts as the ledger adds them, on its own
    entries, and each budget that pays is asked again. Nothing is written.
    """
    books = Books()
    for event in events:
        take(books, event)
    rehearsed = []
    for charge, translation in charges:
        body = {**charge.body(), "kind": "charge"}
        whole = books.book(charge.dataset, WHOLE)
        shape, loss = replace(whole.shape), charge.loss
        touch = shape.touch(body["window"], body["groups"])
        payers = [books.book(charge.dataset, analyst) for analyst in charged(body)]
        before = [deepcopy(book.account) for book in payers]
        for book in payers:
            book.account.apply(touch, loss)
        admitted = payers[0].epsilon is not None and all(
            limits.limit(translation, book.epsilon, book.delta).admits(book.account.worst)
            for book in payers
            if book.epsilon is not None
        )
        if admitted:
            whole.shape = shape
        else:
            for book, account in zip(payers, before, strict=True):
                book.account = account
        spent = spent_epsilon(translation, whole.account.worst, whole.epsilon, whole.delta, limits)
        rehearsed.append(Rehearsed(charge, admitted, spent))
    return tuple(rehearsed)
