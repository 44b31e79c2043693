"""The ledger: charge, then release.

`charge` is durable before it returns a receipt; noise is drawn after that; `record_answer` stores
the answer beside its charge. A crash in between costs budget, never privacy: noise may have been
drawn and seen, so a charge without an answer is spent, and the same query pays again; unless the
caller shows nothing before it is recorded, and says so: see `takifugu.ledger.resumed_charges`.

Inside its transaction a charge finds the totals, compares them with the budgets and writes. The
budget of the whole dataset bounds everybody's charges together; an analyst's own budget bounds that
analyst's charges. Both filters see the totals after the charge, under the ledger's lock, so that no
two charges can pass on the same remainder.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from takifugu.errors import (
    ApprovalRefused,
    BudgetExceeded,
    CellsChanged,
    NoBudget,
    SameRows,
    UnsoundRequest,
)
from takifugu.ledger.accounts.account import WHOLE, charged
from takifugu.ledger.accounts.frontier import Frontier
from takifugu.ledger.accounts.limits import Limit, Limits
from takifugu.ledger.accounts.standings import Standing, amount, payers, paying
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.charge_values import Charge, Receipt, loss_of
from takifugu.ledger.events import (
    accepted_terms,
    approved_requests,
    cell_naming,
    replay,
    stored_answers,
)
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.accepted_terms import Terms
from takifugu.ledger.events.event_chain import Anchor, Event, Head
from takifugu.ledger.events.stored_answers import Answer
from takifugu.ledger.owner import OwnerDecisions
from takifugu.ledger.rehearsal import Rehearsed, rehearse
from takifugu.ledger.resumed_charges import RESUMABLE, EarlierCharge, may_resume, refuse_other
from takifugu.ledger.snapshot import Quote, read_snapshot, refuse_unknown
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.ledger.storage.store import Store
from takifugu.ledger.views import LedgerViews
from takifugu.ledger.witnesses.known_rows import KnownRows
from takifugu.losses import Loss, Metric
from takifugu.translation.protocol import LossTranslation

ROUNDS = 6  # of translating without the lock before a charge holds it while it translates


@dataclass(frozen=True)
class Untranslated:
    """What must be translated, without the lock, before the charge can be judged.

    Attributes:
        budgets: ε and δ of budgets.
        totals: What entries would have lost, beside the limit that must judge it.
    """

    budgets: tuple[tuple[Fraction, Fraction], ...] = ()
    totals: tuple[tuple[Limit, Frontier], ...] = ()


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
    last: Head,
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
    found = tables.find(connection, dataset, body["analyst"] or WHOLE)
    whole = found.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    snapshot = read_snapshot(connection, dataset, body["analyst"], charge.cells, found)
    snapshot.refuse(Terms(body["prior"], body["secrets"]), charge.rules)
    approved_requests.refuse_unfit(connection, body)
    marks = unknown_marks(connection, charge)
    names = charged({**body, "kind": kind})
    books = [found.get(name) or whole.of(name) for name in names]
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
            stored = payers(connection, dataset, names, body["window"], body["groups"])
            return Refusal(
                tuple(
                    Standing(payer, limits.limit(translation, payer.epsilon, payer.delta))
                    for payer in stored
                )
            )
        unknown = (pair for pair, known in zip(judged, verdicts, strict=True) if known is None)
        return Untranslated(totals=tuple(unknown))
    if marks:
        chain.append(connection, last, "source", {**marks, "actor": body["actor"]}, now)
        last = chain.head(connection)
    for book, changed, known in entries:
        if not book.id:
            tables.open_book(connection, book)
        elif changed:
            tables.save_segments(connection, book, changed, touch, known)
    tables.save(connection, dict.fromkeys((whole, *books)))  # a reuse may be what fixes its shape
    named = {**body, "naming": charge.cells.parts} if snapshot.first else body
    return chain.append(connection, last, kind, named, now)


def unknown_marks(connection: Connection, charge: Charge) -> Mapping[str, Any] | None:
    """What to file about a state of the data that is new; an error if another dataset has it."""
    if not charge.sources or cell_naming.is_known(connection, charge.dataset, charge.data):
        return None
    cell_naming.refuse_twins(connection, charge.dataset, charge.sources)
    return cell_naming.marks_body(charge.dataset, charge.data, charge.sources)


_BY_KEY = Statement(f'SELECT seq FROM {EVENTS} WHERE "key" = :which')


class Ledger(OwnerDecisions, LedgerViews):
    """A budget ledger that cannot be overspent. Threads may share it; processes open their own."""

    def __init__(
        self,
        store: Store,
        origin: Anchor,
        *,
        clock: Callable[[], datetime],
        actor: str,
        key: Path | None = None,
        rows: KnownRows | None = None,
    ) -> None:
        super().__init__(store, origin, clock=clock, actor=actor, key=key, rows=rows)
        self._limits = Limits()
        self._lost: set[str] = set()  # attempts that raised: written or not is unknown
        self._abandoned: set[int] = set()  # charges that are not resumed, even if that is unwritten

    def quote(self, charge: Charge, translation: LossTranslation) -> Quote:
        """What ``charge`` would meet now, in one read. Nothing is written.

        Raises:
            UnknownAnalyst: Analysts have budgets, and that of the charge is none of them.
            NotAccepted: The terms or the rules are not those in force.
            CellsChanged: The declared cells are not those of earlier charges.
            SameRows: Another dataset, or another ledger of this user, has the same rows.
            NoBudget: The dataset has no budget.
        """
        _same(charge, translation)
        body, dataset, analyst = charge.body(), charge.dataset, charge.analyst
        with self._store.reading() as connection:
            books = tables.find(connection, dataset, analyst or WHOLE)
            snapshot = read_snapshot(connection, dataset, analyst, charge.cells, books)
            snapshot.refuse(Terms(charge.prior, charge.secrets), charge.rules)
            unknown_marks(connection, charge)
            self._refuse_elsewhere(connection, charge)
            answer = stored_answers.find(connection, body["question"], analyst)
            shared = answer
            if analyst is not None:
                shared = stored_answers.find(connection, body["question"], None)
            last = accepted_terms.last_event(connection, "charge", dataset)
            cells = body["window"], body["groups"]
            found = payers(connection, dataset, paying(analyst), *cells, books)
        standings = self._translated(found, translation)
        return Quote(snapshot, answer, shared is not None, last, standings)

    def data_state(self, dataset: str, mark: str) -> str:
        """The state of the data that has this ``mark``, for `Charge.data`.

        Contents other than those seen last are entered as the next state, by whoever sees them
        first. The event is durable before anything is shown of it.
        """
        check_name(dataset, "dataset")
        with self._store.reading() as connection:
            found = cell_naming.state_of(connection, dataset, mark)
        if found.is_current or self._store.read_only:
            return found.data
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            found = cell_naming.state_of(connection, dataset, mark)
            if not found.is_current:
                body: dict[str, Any] = {"dataset": dataset, "analyst": None, "actor": self._actor}
                body |= {"number": found.number, "data": found.data}
                chain.append(connection, last, "state", body, self._time())
        return found.data

    def knows_data(self, dataset: str, data: str) -> bool:
        """Whether a charge was made on this state of the data, so that its sources are known."""
        with self._store.reading() as connection:
            return cell_naming.is_known(connection, dataset, data)

    def charge(
        self, charge: Charge, translation: LossTranslation, *, resume: bool = False
    ) -> Receipt:
        """Pay for a release before it happens. Durable once it returns; otherwise it raises.

        A call that raised anything but a refusal may or may not have been written: the same charge
        (same key) given to the same `Ledger` again is then not paid twice.

        With ``resume`` the caller shows nothing but what `record_answer` returns. The same charge
        may then be made again, by whatever process, until an answer is recorded: it is paid once
        (`takifugu.ledger.resumed_charges` proves why that is enough).
        """
        body = charge.body()
        _same(charge, translation)
        attempt = uuid.uuid4().hex
        entered = body | {"attempt": attempt} | ({RESUMABLE: True} if resume else {})
        try:
            event, repeated = self._enter("charge", entered, translation, charge)
        except (ApprovalRefused, BudgetExceeded, CellsChanged, SameRows):
            raise
        except BaseException:
            self._lost.add(attempt)
            raise
        may_release = not repeated or self._claim(event.body["attempt"])
        if repeated and resume:
            with self._store.reading() as connection:
                may_release = self._may_resume(connection, event)
        return _receipt(event, may_release=may_release, resume=resume)

    def _may_resume(self, connection: Connection, event: Event) -> bool:
        return event.seq not in self._abandoned and may_resume(connection, event)

    def earlier(self, charge: Charge) -> EarlierCharge | None:
        """What an earlier call with the key of ``charge`` has left; None if there was none.

        Raises:
            LedgerConflict: The key was used for another charge.
        """
        body = charge.body()
        with self._store.reading() as connection:
            known = _BY_KEY.one(connection, {"which": charge.key})
            if known is None:
                return None
            event = chain.one(connection, known.seq)
            refuse_other(event, None, body)
            chain.show(connection, event.seq)  # a receipt acknowledges it
            paid = event.body["charge"] if event.kind == "reuse" else event.seq
            answer = stored_answers.answer_of(connection, paid)
            again = self._may_resume(connection, event)
        return EarlierCharge(_receipt(event, may_release=again, resume=True), answer)

    def _claim(self, attempt: str) -> bool:
        """Whether a charge was written by a call of ours that gave no receipt; true only once."""
        try:
            self._lost.remove(attempt)
        except KeyError:
            return False
        return True

    def record_answer(self, receipt: Receipt, answer: Any) -> Answer:
        """Store what was released under ``receipt``, as JSON: the same query is then free.

        Of a charge that may be resumed: the answer that is stored, which may be another attempt's.
        Show that one, and no other.
        """
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return stored_answers.store(connection, last, receipt, answer, self._actor)

    def abandon(self, receipt: Receipt) -> None:
        """Never resume this charge: its answer was drawn and lost, by what may depend on it."""
        self._abandoned.add(receipt.anchor.seq)
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            stored_answers.abandon(connection, last, receipt, self._actor)

    def lookup(self, charge: Charge) -> Answer | None:
        """The stored answer to the same query on the same data, if its analyst has paid for it.

        A named analyst has paid by a charge or by `reuse`; where no analyst has a budget, a query
        without an analyst gets any stored answer.
        """
        with self._store.reading() as connection:
            refuse_unknown(connection, charge.dataset, charge.analyst)
            return stored_answers.find(connection, charge.body()["question"], charge.analyst)

    def released(self, charge: Charge) -> tuple[tuple[Mapping[str, Any], Loss], ...]:
        """The mechanisms and losses by which the query of ``charge`` was answered on these data."""
        with self._store.reading() as connection:
            found = stored_answers.charges_for(connection, charge.body())
        return tuple((event.body["mechanism"], loss_of(event.body["loss"])) for event in found)

    def reuse(self, charge: Charge, translation: LossTranslation) -> Answer | None:
        """Another analyst's answer to the same query, charged to this analyst's budget alone.

        Nothing new is released, so the whole dataset loses nothing; but this analyst learns it.
        """
        body = charge.body()
        _same(charge, translation)
        with self._store.reading() as connection:
            refuse_unknown(connection, charge.dataset, charge.analyst)
            answer = stored_answers.find(connection, body["question"], charge.analyst)
            others = stored_answers.find(connection, body["question"], None)
        if answer is not None or others is None:
            return answer
        self._enter("reuse", body | {"charge": others.charge}, translation, charge)
        return others

    def _enter(
        self, kind: str, body: dict[str, Any], translation: LossTranslation, charge: Charge
    ) -> tuple[Event, bool]:
        """Write a charge or reuse; the event, and whether it had been written before.

        Costs are translated for the totals that were found, without the lock. Totals that others
        have changed meanwhile are translated anew, so that no two charges pass on the same
        remainder; one that others overtook `ROUNDS` times is translated under the lock.
        """
        body = body | {"actor": self._actor}
        for turn in itertools.count():
            with self._store.writing() as connection:
                last = chain.head(connection, lock=True)
                known = _BY_KEY.one(connection, {"which": body["key"]})
                if known is not None:
                    event = chain.one(connection, known.seq)
                    refuse_other(event, kind, body)
                    return event, True
                now = self._time()
                with self._entering_rows(connection, charge) as enter_rows:
                    done = enter_charge(
                        *(connection, last, kind, body, translation, self._limits, now, charge),
                        wait=turn > ROUNDS,
                    )
                    if isinstance(done, Event):
                        enter_rows()
            if isinstance(done, Event):
                return done, False
            if isinstance(done, Refusal):
                raise done.error(body)
            for epsilon, delta in done.budgets:  # without the lock: a translation may be slow
                self._limits.limit(translation, epsilon, delta)
            for limit, totals in done.totals:
                limit.translate(totals)
        raise AssertionError("unreachable")

    @contextmanager
    def _entering_rows(
        self, connection: Connection, charge: Charge
    ) -> Iterator[Callable[[], None]]:
        """Refuse rows that another ledger has charged; what enters them for this one."""
        rows, known = self._rows, cell_naming.is_known(connection, charge.dataset, charge.data)
        if rows is None or known or not charge.elsewhere:
            yield lambda: None
            return
        with rows.locked():
            self._refuse_elsewhere(connection, charge)
            mine = self._store.identity, self._place, charge.dataset
            yield lambda: rows.enter(charge.elsewhere, *mine)

    def _refuse_elsewhere(self, connection: Connection, charge: Charge) -> None:
        if self._rows is None or not charge.elsewhere:
            return
        apart = cell_naming.separated(connection, charge.dataset)
        for found in self._rows.charged(charge.elsewhere):
            other = f"ledger {found.ledger}"
            if found.ledger != self._store.identity and other not in apart:
                same = cell_naming.SAME[found.mark.partition(" ")[0]]
                place = (found.place, found.dataset, not _is_gone(found.place))
                raise SameRows(charge.dataset, other, same, place)

    @property
    def _place(self) -> str:
        return self.name if self._file is None else str(self._file)

    def rehearse(self, charges: Sequence[tuple[Charge, LossTranslation]]) -> tuple[Rehearsed, ...]:
        """What several charges would meet, one after another, by what is spent now.

        Whether others spend in between is not known: each is judged again when it is charged.
        """
        names = {charge.dataset for charge, _ in charges}
        events = (
            event
            for event in self.history()
            if event.kind == "loss" or event.body.get("dataset") in names
        )
        return rehearse(events, charges, self._limits)

    def rebuild(self) -> None:
        """Compute every total again from the events: they must match the last event."""
        with self._store.writing() as connection:
            replay.rebuild(connection)


def _is_gone(place: str) -> bool:
    """Whether the file of a ledger is not there any more; of one on a server nobody knows."""
    return "://" not in place and not Path(place).exists()


def _receipt(event: Event, *, may_release: bool, resume: bool) -> Receipt:
    return Receipt(
        anchor=Anchor(event.seq, event.hash),
        key=event.body["key"],
        dataset=event.body["dataset"],
        analyst=event.body["analyst"],
        at=event.at,
        may_release=may_release,
        resumable=resume and event.body.get(RESUMABLE) is True,
    )


def _same(charge: Charge, translation: LossTranslation) -> None:
    """A translation that knows its fingerprint must be the one that the charge names."""
    mark = translation.fingerprint
    if mark is not None and mark != charge.translation:
        raise UnsoundRequest(
            f"the charge names translation {charge.translation[:12]} but {mark[:12]} was given",
            field="translation",
            given=mark,
            needed=charge.translation,
        )
