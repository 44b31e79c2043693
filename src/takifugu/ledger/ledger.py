"""The ledger: charge, then release.

`charge` is durable before it returns a receipt; noise is drawn after that; `record_answer` stores
the answer beside its charge. A crash in between costs budget, never privacy: noise may have been
drawn and seen, so a charge without an answer is spent, and the same query pays again; unless the
caller shows nothing before it is recorded, and says so: see
`takifugu.ledger.events.stored_answers`.

`Ledger` opens one transaction for each call. What happens in it is in the modules beside it: how a
charge is judged and written (`charging`), what owners decide (`events.decisions`,
`events.cell_naming`), what the totals are (`storage.account_tables`), how the chain is checked
(`events.replay`).
"""

import itertools
import json
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from takifugu._core.atomic import whole_file
from takifugu._core.closing import Closing
from takifugu._core.exact import Number
from takifugu._core.keys import Key, beside, key_at, state_folder
from takifugu.costs.losses import Loss, Pure
from takifugu.errors import (
    ApprovalRefused,
    BudgetExceeded,
    CellsChanged,
    InvalidCharge,
    LedgerUnwritable,
    SameRows,
    UnsoundRequest,
)
from takifugu.ledger import charging
from takifugu.ledger.account import WHOLE, Touch
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.charge_values import (
    BEGINNING,
    END,
    Cells,
    Charge,
    Groups,
    Receipt,
    Window,
    groups_body,
    loss_of,
    window_body,
)
from takifugu.ledger.charging import (
    Position,
    Quote,
    Snapshot,
    Standing,
    payers,
    paying,
    read_snapshot,
    refuse_second_spelling,
    refuse_unknown,
)
from takifugu.ledger.events import cell_naming, decisions, replay, stored_answers
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.decisions import Append, Asked, Review, Terms
from takifugu.ledger.events.event_chain import ANSWER, Anchor, Event
from takifugu.ledger.events.replay import (
    Admissions,
    Problem,
    Rehearsed,
    Report,
    TranslationUnder,
    rehearse,
)
from takifugu.ledger.events.stored_answers import RESUMABLE, Answer, EarlierCharge
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import Limits, spent_epsilon
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection, Store
from takifugu.ledger.storage.schema import EVENTS, select
from takifugu.ledger.witnesses.backup import back_up
from takifugu.ledger.witnesses.head_witness import holds
from takifugu.ledger.witnesses.state_folder import KnownRows
from takifugu.translation.protocol import LossTranslation

MAX_UNLOCKED_TRANSLATIONS = 6  # of one charge, before it holds the lock while it translates
MAX_EVENTS = 10_000  # of one page
EPSILON = Pure(0)  # a loss in ε, the currency that is meant by default
_BY_KEY = select(EVENTS, "seq", where='"key" = :which')
_ASCENDING, _DESCENDING = "ORDER BY seq LIMIT :limit", "ORDER BY seq DESC LIMIT :limit"
_STORED = chain.events_where("seq > :after", _ASCENDING)


@dataclass(frozen=True)
class Reading:
    """The odometer after one event: the Pufferfish ε of all released so far, rounded up."""

    seq: int
    at: datetime
    epsilon: float


@dataclass(frozen=True)
class Stretch:
    """A stretch of time [start, end), in ticks of the dataset's unit, and its worst totals."""

    start: int | None
    end: int | None
    worst: Frontier


class Ledger(Closing):
    """A budget ledger that cannot be overspent. Threads may share it; processes open their own.

    Attributes:
        origin: The first event: the same for all copies of a ledger, and for no other ledger.
    """

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
        check_name(actor, "actor")
        self.origin = origin
        self._store, self._clock, self._actor = store, clock, actor
        self._key_place, self._rows = key, rows
        self._key: Key | None = None
        self._file = Path(store.name).absolute() if store.sqlite else None
        self._limits = Limits()
        self._lost: set[str] = set()  # attempts that raised: written or not is unknown
        self._abandoned: set[int] = set()  # charges that are not resumed, even if that is unwritten

    def acting(self, actor: str) -> Self:
        """The same open ledger, for another actor: events then name that one.

        Both share their storage, so closing one closes the other.
        """
        check_name(actor, "actor")
        other = copy(self)
        other._actor = actor
        return other

    @property
    def actor(self) -> str:
        """Who acts here: every event that is written names them."""
        return self._actor

    @property
    def name(self) -> str:
        """Where the ledger is kept, without any password."""
        return self._store.name

    @property
    def folder(self) -> Path | None:
        """The folder that the ledger lies in; None for one on a server."""
        return None if self._file is None else self._file.parent

    @property
    def witness(self) -> str | None:
        """Where the last event is recorded a second time; None if the owner chose nowhere."""
        guard = self._store.guard
        return None if guard is None or guard.witness is None else guard.witness.name

    def check_writable(self) -> None:
        """Raise unless a charge could be written now; nothing is.

        The chain is locked as for a charge and compared with its witness. A disk that is full is
        noticed only when something is written.
        """
        with self._store.writing() as connection:
            chain.head(connection, lock=True)

    def one_moment(self) -> AbstractContextManager[None]:
        """Let everything that this thread reads until the block is left be one read.

        So a plan sees one state of the ledger, whatever others write meanwhile. What is decided or
        charged within the block is written at once, and judged by what is there then. `history` and
        `odometer` are reads of their own.
        """
        return self._store.one_moment()

    def close(self) -> None:
        """Release the storage."""
        self._store.close()

    def mark(self, *what: Any) -> str:
        """A keyed hash of ``what``: equal for equal contents, and of no use to guess them by."""
        if self._key is None:
            try:
                self._key = key_at(self._key_file())
            except OSError as error:
                reason = (error.strerror or "cannot be used").lower()
                raise LedgerUnwritable(
                    f"the key of ledger {self.name!r} cannot be used ({reason}:"
                    f" {error.filename}); nothing was released. Give this user the right, or name"
                    " another file with `key`",
                    reason="key",
                ) from None
        return self._key.mark(*what)

    def marks_elsewhere(self, identities: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
        """Marks of rows by which this user's other ledgers know them; none without that record."""
        return () if self._rows is None else self._rows.marks(identities)

    def _key_file(self) -> Path:
        if self._key_place is not None:
            return self._key_place
        if self._file is not None:
            return beside(self._file)
        folder = state_folder() / "keys"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / f"{self._store.identity}.key"

    def _time(self) -> datetime:
        return self._clock().astimezone(UTC)

    # --- charges and answers ---

    def quote(self, charge: Charge, translation: LossTranslation) -> Quote:
        """What ``charge`` would meet now, in one read. Nothing is written.

        Raises:
            UnknownAnalyst: Analysts have budgets, and that of the charge is none of them.
            NotAccepted: The terms or the rules are not those in force.
            CellsChanged: The declared cells are not those of earlier charges.
            SameRows: Another dataset, or another ledger of this user, has the same rows.
            NoBudget: The dataset has no budget.
        """
        charging.refuse_other_translation(charge, translation)
        body, dataset, analyst = charge.body(), charge.dataset, charge.analyst
        with self._store.reading() as connection:
            books = tables.find(connection, dataset, analyst or WHOLE)
            snapshot = read_snapshot(connection, dataset, analyst, charge.cells, books)
            snapshot.refuse(Terms(charge.prior, charge.secrets), charge.rules)
            charging.unknown_marks(connection, charge)
            self._refuse_elsewhere(connection, charge.dataset, charge.elsewhere)
            answer = stored_answers.find(connection, body["question"], analyst)
            shared = answer
            if analyst is not None:
                shared = stored_answers.find(connection, body["question"], None)
            last = chain.last_of(connection, "charge", dataset)
            cells = body["window"], body["groups"]
            accounts = payers(connection, dataset, paying(analyst), *cells, books)
        standings = charging.standings_of(accounts, translation, self._limits)
        return Quote(snapshot, answer, shared is not None, last, standings)

    def data_state(self, dataset: str, mark: str) -> str:
        """The state of the data that has this ``mark``, for `Charge.data`.

        Contents other than those seen last are entered as the next state, by whoever sees them
        first. The event is durable before anything is shown of it.
        """
        check_name(dataset, "dataset")
        with self._store.reading() as connection:
            state = cell_naming.state_of(connection, dataset, mark)
        if state.is_current or self._store.read_only:
            return state.data
        with self._deciding() as (connection, append):
            state = cell_naming.state_of(connection, dataset, mark)
            if not state.is_current:
                append("state", {"dataset": dataset, **vars(state)})
        return state.data

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
        (`takifugu.ledger.events.stored_answers` proves why that is enough).
        """
        body = charge.body()
        charging.refuse_other_translation(charge, translation)
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
        return charging.receipt_of(event, may_release=may_release, resume=resume)

    def _may_resume(self, connection: Connection, event: Event) -> bool:
        return event.seq not in self._abandoned and stored_answers.may_resume(connection, event)

    def _claim(self, attempt: str) -> bool:
        """Whether a charge was written by a call of ours that gave no receipt; true only once."""
        try:
            self._lost.remove(attempt)
        except KeyError:
            return False
        return True

    def earlier(self, charge: Charge) -> EarlierCharge | None:
        """What an earlier call with the key of ``charge`` has left; None if there was none.

        Raises:
            LedgerConflict: The key was used for another charge.
        """
        body = charge.body()
        with self._store.reading() as connection:
            event = self._with_key(connection, None, body)
            if event is None:
                return None
            chain.show(connection, event.seq)  # a receipt acknowledges it
            paid = event.body["charge"] if event.kind == "reuse" else event.seq
            answer = stored_answers.answer_of(connection, paid)
            may_release = self._may_resume(connection, event)
        receipt = charging.receipt_of(event, may_release=may_release, resume=True)
        return EarlierCharge(receipt, answer)

    def _with_key(
        self, connection: Connection, kind: str | None, body: Mapping[str, Any]
    ) -> Event | None:
        """The event with the key of a charge; an error if it is another charge."""
        row = _BY_KEY.one(connection, {"which": body["key"]})
        if row is None:
            return None
        event = chain.one(connection, row.seq)
        stored_answers.refuse_other(event, kind, body)
        return event

    def record_answer(self, receipt: Receipt, answer: Any) -> Answer:
        """Store what was released under ``receipt``, as JSON: the same query is then free.

        Of a charge that may be resumed: the answer that is stored, which may be another attempt's.
        Show that one, and no other.
        """
        with self._store.writing() as connection:
            chain.head(connection, lock=True)
            return stored_answers.store(connection, receipt, answer, self._actor)

    def abandon(self, receipt: Receipt) -> None:
        """Never resume this charge: its answer was drawn and lost, by what may depend on it."""
        self._abandoned.add(receipt.anchor.seq)
        with self._store.writing() as connection:
            chain.head(connection, lock=True)
            stored_answers.abandon(connection, receipt, self._actor)

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
            events = stored_answers.charges_for(connection, charge.body())
        return tuple((event.body["mechanism"], loss_of(event.body["loss"])) for event in events)

    def reuse(self, charge: Charge, translation: LossTranslation) -> Answer | None:
        """Another analyst's answer to the same query, charged to this analyst's budget alone.

        Nothing new is released, so the whole dataset loses nothing; but this analyst learns it.
        """
        body = charge.body()
        charging.refuse_other_translation(charge, translation)
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

        Costs are translated for the totals that were read, without the lock. Totals that others
        have changed meanwhile are translated anew, so that no two charges pass on the same
        remainder; one that others overtook `MAX_UNLOCKED_TRANSLATIONS` times is translated under
        the lock.
        """
        body = body | {"actor": self._actor}
        for turn in itertools.count():
            with self._store.writing() as connection:
                chain.head(connection, lock=True)
                event = self._with_key(connection, kind, body)
                if event is not None:
                    return event, True
                now = self._time()
                with self._entering_rows(connection, charge) as enter_rows:
                    entered = charging.enter_charge(
                        *(connection, kind, body, translation, self._limits, now, charge),
                        wait=turn > MAX_UNLOCKED_TRANSLATIONS,
                    )
                    if isinstance(entered, Event):
                        enter_rows()
            if isinstance(entered, Event):
                return entered, False
            if isinstance(entered, charging.Refusal):
                raise entered.error(body)
            entered.translate(translation, self._limits)  # without the lock: it may be slow
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
            self._refuse_elsewhere(connection, charge.dataset, charge.elsewhere)
            where = self.name if self._file is None else str(self._file)
            mine = self._store.identity, where, charge.dataset
            yield lambda: rows.enter(charge.elsewhere, *mine)

    def refuse_rows_of_others(self, dataset: str, identities: Iterable[tuple[str, Any]]) -> None:
        """Raise if another ledger of this user has charged these rows, unless they count apart.

        A ledger that has charged the dataset itself was compared with the others then.

        Raises:
            SameRows: Another ledger has charged them.
        """
        if self.events(limit=1, kind="charge", dataset=dataset):
            return
        with self._store.reading() as connection:
            self._refuse_elsewhere(connection, dataset, self.marks_elsewhere(identities))

    def _refuse_elsewhere(
        self, connection: Connection, dataset: str, elsewhere: tuple[str, ...]
    ) -> None:
        if self._rows is None or not elsewhere:
            return
        apart = cell_naming.separated(connection, dataset)
        for charged in self._rows.charged(elsewhere):
            other = f"ledger {charged.ledger}"
            if charged.ledger != self._store.identity and other not in apart:
                same = cell_naming.SAME_ROWS_WORDS[charged.mark.partition(" ")[0]]
                is_there = "://" in charged.place or Path(charged.place).exists()
                where = (charged.place, charged.dataset, is_there)
                raise SameRows(dataset, other, same, where)

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

    # --- what owners decide: every decision is an event that names its actor ---

    @contextmanager
    def _deciding(self) -> Iterator[tuple[Connection, Append]]:
        """A transaction that holds the lock, and what appends an event to its chain."""
        with self._store.writing() as connection:
            chain.head(connection, lock=True)
            now = self._time()

            def append(kind: str, content: Mapping[str, Any]) -> Event:
                whole = {"dataset": None, "analyst": None, **content, "actor": self._actor}
                return chain.append(connection, kind, whole, now)

            yield connection, append

    def set_budget(
        self, dataset: str, epsilon: Number, *, analyst: str | None = None, delta: Number = 0
    ) -> Event:
        """From now on the Pufferfish loss of ``dataset`` is at most (``epsilon``, ``delta``).

        With ``analyst``, that of the analyst's own charges, beside the budget of the whole.
        """
        if analyst is not None:
            check_name(analyst, "analyst")
        budget, content = decisions.budget_content(dataset, analyst, epsilon, delta)
        with self._deciding() as (connection, append):
            if analyst is not None:
                refuse_second_spelling(connection, dataset, analyst)
            tables.set_budget(connection, dataset, analyst or WHOLE, budget)
            return append("budget", content)

    def begin_budget(
        self, dataset: str, epsilon: Number, *, delta: Number = 0
    ) -> tuple[Fraction, Fraction]:
        """Set the budget of a dataset that has none; the budget that it has then."""
        budget, content = decisions.budget_content(dataset, None, epsilon, delta)
        with self._deciding() as (connection, append):
            whole = tables.find(connection, dataset).get(WHOLE)
            if whole is not None and whole.epsilon is not None:
                return whole.epsilon, whole.delta
            tables.set_budget(connection, dataset, WHOLE, budget)
            append("budget", content)
        return budget

    def set_partition(self, dataset: str, columns: tuple[str, ...]) -> Event:
        """Count the groups of ``dataset`` by these public columns, from the first release on.

        Without this the first charge with groups decides. A charge whose groups lack one of the
        columns counts on every group.
        """
        check_name(dataset, "dataset")
        partition = tuple(sorted(Groups(columns, [("",) * len(columns)]).columns))
        with self._deciding() as (connection, append):
            tables.set_partition(connection, dataset, partition)
            return append("partition", {"dataset": dataset, "columns": list(partition)})

    def accept_cells(self, dataset: str, cells: Cells, *, unchanged: bool = False) -> Event:
        """Name the cells of ``dataset`` as in ``cells`` from now on.

        All that was released so far then counts on every row, and groups and windows may be chosen
        again. Where values are named otherwise than before, costs by value count as their scalar.
        With ``unchanged`` the owner confirms instead that the declaration is the one that
        was used before: for charges that do not record it, or where only the source has moved.
        """
        check_name(dataset, "dataset")
        how = cell_naming.UNCHANGED if unchanged else cell_naming.EVERYWHERE
        with self._deciding() as (connection, append):
            return append("cells", cell_naming.accept_cells(connection, dataset, cells, how))

    def count_separately(self, dataset: str, other: str) -> Event:
        """Let two datasets have a budget each although they have the same rows."""
        for name in (dataset, other):
            check_name(name, "dataset")
        if dataset == other:
            raise InvalidCharge("dataset", given="is named twice", needed="be two datasets")
        with self._deciding() as (_, append):
            return append("separate", {"dataset": dataset, "other": other})

    def counted_separately(self, dataset: str) -> frozenset[str]:
        """The datasets that the owner allowed to have the same rows as ``dataset``."""
        with self._store.reading() as connection:
            return frozenset(cell_naming.separated(connection, dataset))

    def review(
        self,
        dataset: str,
        new: LossTranslation,
        old: LossTranslation | None = None,
        *,
        cells: Cells | None = None,
    ) -> Review:
        """What is spent from ``dataset`` under the terms in force and under ``new`` ones.

        Args:
            dataset: Whose terms.
            new: Translates under the new prior and secrets.
            old: Translates under those in force; None if they are not at hand any more.
            cells: What names protected values along with the new terms: see `Ledger.spent`.
        """
        check_name(dataset, "dataset")
        with self._store.reading() as connection:
            return decisions.review(
                connection,
                dataset,
                new,
                old,
                lambda totals: cell_naming.as_read(connection, dataset, totals, cells),
            )

    def accept(self, terms: Terms, seen: Review, **details: Any) -> Event:
        """Put other terms in force: from now on charges are made under these, and no others.

        Args:
            terms: The prior and the secrets.
            seen: What the owner saw. Raises if the dataset was charged or changed since.
            details: What else is to be written down, as JSON.
        """
        with self._deciding() as (connection, append):
            return decisions.accept(connection, terms, seen, details, append)

    def enter_policy(self, dataset: str, terms: Terms, details: Mapping[str, Any]) -> Event:
        """Write down a prior, a fit or secrets that were entered into a policy.

        Nothing is put in force by it, unless nothing was ever charged on ``dataset``.
        """
        check_name(dataset, "dataset")
        with self._deciding() as (connection, append):
            return decisions.enter_policy(connection, dataset, terms, details, append)

    def record_access(
        self,
        change: Literal["made", "revoked"],
        *,
        name: str,
        role: str,
        token: str,
        expires: datetime | None = None,
    ) -> Event:
        """Write down that a token was made for ``name``, or revoked.

        Args:
            change: What happened.
            name: Whose it is.
            role: What it allows.
            token: Its public id; never the secret, nor a hash of it.
            expires: When it ends by itself; None for never.
        """
        if change not in ("made", "revoked"):
            raise InvalidCharge("change", given=f"is {change!r:.40}", needed="be made or revoked")
        named = {"name": name, "role": role, "token": token}
        for field, value in named.items():
            check_name(value, field)
        ends = None if expires is None else expires.isoformat()
        with self._deciding() as (_, append):
            return append("access", {"how": change, **named, "expires": ends})

    def approve(self, **asked: Unpack[Asked]) -> Event:
        """Allow one query of one analyst; its charge then names this event, once.

        Args:
            asked: What is decided about; see `Asked`.

        Raises:
            ApprovalRefused: The actor is the analyst: that is one person, not two.
        """
        return self._decide(decisions.APPROVED, asked)

    def refuse_request(self, **asked: Unpack[Asked]) -> Event:
        """Refuse one query of one analyst; an approval of it that is not used yet is withdrawn.

        With ``request``, only approvals of that request are. For the arguments see `Asked`.
        """
        return self._decide(decisions.REFUSED, asked)

    @contextmanager
    def decision_on(self, question: str, request: str) -> Iterator[Event | None]:
        """The last decision on a request, or None; nobody decides until the block is left."""
        with self._deciding() as (connection, _):
            yield decisions.decision_on(connection, question, request)

    def _decide(self, decision: str, asked: Asked) -> Event:
        content = decisions.approval_content(decision, asked, self._actor)
        check, request = asked.get("check"), asked.get("request")
        with self._deciding() as (connection, append):
            if check is not None:
                last = None
                if request is not None:
                    last = decisions.decision_on(connection, asked["question"], request)
                check(last)
            under = decisions.under(connection, asked["dataset"])
            return append("approval", content | {"under": under})

    # --- what was spent, and what is left ---

    def snapshot(
        self, dataset: str, *, analyst: str | None = None, cells: Cells | None = None
    ) -> Snapshot:
        """What decides whether queries of ``analyst`` to ``dataset`` are admitted, in one read."""
        with self._store.reading() as connection:
            return read_snapshot(connection, dataset, analyst, cells)

    def standings(
        self,
        dataset: str,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
    ) -> tuple[Standing, ...]:
        """How the accounts stand that would pay for a charge on these entries."""
        names, entries = paying(analyst), (window_body(window), groups_body(groups))
        with self._store.reading() as connection:
            accounts = payers(connection, dataset, names, *entries)
        return charging.standings_of(accounts, translation, self._limits)

    def remaining(
        self,
        dataset: str,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
        like: Loss = EPSILON,
    ) -> Fraction:
        """The largest per-entry ε that would be accepted on these entries now, rounded down.

        If ``like`` is in another currency, the largest ρ, or the largest ε beside the same δ; if
        it is a cost, the largest factor of it.
        """
        accounts = self.standings(
            dataset, translation, analyst=analyst, window=window, groups=groups
        )
        return min(standing.room(like) for standing in accounts)

    def spent(
        self,
        dataset: str,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        cells: Cells | None = None,
    ) -> float:
        """The Pufferfish ε of all that was released, at the δ of the budget, rounded up.

        Any translation will do: a new prior re-evaluates everything that was ever released. With
        ``cells``, if these name protected values otherwise than before, costs by value count as
        they will once that is accepted.
        """
        with self._store.reading() as connection:
            book, _ = tables.find_book(connection, dataset, analyst)
            worst = cell_naming.as_read(connection, dataset, book.account.worst, cells)
        return spent_epsilon(translation, worst, book.epsilon, book.delta, self._limits)

    def renames_values(self, dataset: str, cells: Cells) -> bool:
        """Whether ``cells`` name protected values otherwise than what was charged by value."""
        with self._store.reading() as connection:
            return cell_naming.renames_values(connection, dataset, cells)

    def lost(
        self,
        dataset: str,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
    ) -> Frontier:
        """What the most exposed of these entries have lost so far, exactly, before any translation.

        Several totals if none of them is the worst in every currency.
        """
        with self._store.reading() as connection:
            book, shape = tables.find_book(connection, dataset, analyst)
            touch = shape.touch(window_body(window), groups_body(groups))
            if not touch.everything:
                tables.load(connection, book, touch)
            return book.account.on(touch)

    def odometer(
        self,
        dataset: str,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        last: int | None = None,
    ) -> Iterator[Reading]:
        """The Pufferfish ε after every charge so far, in order; after the ``last`` few only.

        History that was lost and accepted as spent counts as one charge. Each reading is a
        translation, which may be slow.
        """
        tables.refuse_unaskable(dataset=dataset, analyst=analyst or WHOLE)
        counted = self._counted(dataset, analyst or WHOLE)
        for event, totals, budget in counted if last is None else deque(counted, maxlen=last):
            spent = spent_epsilon(translation, totals, *budget, self._limits)
            yield Reading(event.seq, event.at, spent)

    def _counted(self, dataset: str, analyst: str) -> Iterator[replay.Counted]:
        with self._store.reading_apart() as connection:
            yield from replay.counted(connection, dataset, analyst)

    def over_time(self, dataset: str, *, analyst: str | None = None) -> tuple[Stretch, ...]:
        """What the entries of each stretch of time have lost at worst, exactly."""
        with self._store.reading() as connection:
            book, _ = tables.find_book(connection, dataset, analyst)
            tables.load(connection, book, Touch())
        return tuple(
            Stretch(
                None if segment.start == BEGINNING else segment.start,
                None if segment.end == END else segment.end,
                book.account.totals(segment, segment.peak),
            )
            for segment in book.account.segments
        )

    def positions(self, dataset: str | None = None) -> tuple[Position, ...]:
        """The accounts by name, of all datasets or of one: budgets and worst per-entry totals.

        That of the whole dataset is the first of its accounts.
        """
        with self._store.reading() as connection:
            books = tables.every(connection)
        return tuple(Position.from_book(b) for b in books if dataset in (None, b.dataset))

    def position(self, dataset: str, analyst: str | None = None) -> Position | None:
        """The account of a dataset, or of an analyst on it; None if nobody has opened it."""
        with self._store.reading() as connection:
            book = tables.find(connection, dataset, analyst or WHOLE).get(analyst or WHOLE)
        return None if book is None else Position.from_book(book)

    # --- the events ---

    def history(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Iterator[Event]:
        """Events in order; those of a dataset, analyst or kind; only the ``last`` few."""
        kinds = None if kind is None else (kind,)
        condition, values = chain.matching(kinds, dataset=dataset, analyst=analyst)
        shows_answers = kind in (None, ANSWER)
        reading = self._store.reading_apart if shows_answers else self._store.unguarded
        with reading() as connection:
            if last is not None:
                latest = _page(connection, condition, _DESCENDING, values | {"limit": last})
                self._store.note(connection)  # before the first is out
                yield from reversed(latest)
                return
            if shows_answers:
                self._note_answers(connection, condition, values)
            with closing(chain.events_where(condition).stream(connection, values)) as stream:
                yield from map(chain.read, stream)

    def events(
        self,
        after: int = 0,
        limit: int = 100,
        kind: str | Sequence[str] | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        *,
        before: int | None = None,
    ) -> tuple[Event, ...]:
        """At most ``limit`` events after event ``after``, in order: one page of a list.

        With ``before``, those nearest before that event, the latest first. The number of the last
        event of a page asks for the next one.

        Args:
            after: Only events with a higher number.
            limit: How many at most.
            kind: Only events of this kind, or of one of these.
            dataset: Only events of this dataset.
            analyst: Only events of this analyst.
            before: Only events with a lower number, in descending order.
        """
        if not (0 <= after < 2**63 and 0 < limit <= MAX_EVENTS and 0 < (before or 1) < 2**63):
            raise UnsoundRequest(
                f"a page has 1 to {MAX_EVENTS} events, after or before the number of one",
                field="limit",
                given=limit,
                needed=MAX_EVENTS,
            )
        kinds = (kind,) if isinstance(kind, str) else kind
        condition, values = chain.matching(kinds, after, dataset=dataset, analyst=analyst)
        values |= {"limit": limit}
        order = _ASCENDING
        if before is not None:
            values |= {"before": before}
            condition, order = f"{condition} AND seq < :before", _DESCENDING
        with self._showing(answers=kinds is None or ANSWER in kinds) as connection:
            return _page(connection, condition, order, values)

    def event(self, seq: int) -> Event | None:
        """One event, checked against the hash of the one before it; None if there is none."""
        for answers in (False, True):  # of most events the witness need not be asked
            with self._showing(answers=answers) as connection:
                if not 0 < seq <= chain.head(connection).seq:
                    return None
                event = chain.one(connection, seq)
                if answers or event.kind != ANSWER:
                    chain.show_answers(connection, [event])
                    return event
        raise AssertionError("unreachable")

    def _showing(self, *, answers: bool) -> AbstractContextManager[Connection]:
        """A transaction to show events in; those without answers are no matter of the witness."""
        return self._store.reading() if answers else self._store.unguarded()

    def _note_answers(
        self, connection: Connection, condition: str, values: Mapping[str, Any]
    ) -> None:
        """Have the witness know every answer among events that are shown one after another."""
        last = chain.events_where(f"{condition} AND kind = '{ANSWER}'", _DESCENDING)
        chain.show_answers(connection, last.all(connection, {**values, "limit": 1}))
        self._store.note(connection)

    def answered(self, charges: Sequence[int]) -> frozenset[int]:
        """Of these charges, by number, those whose answer was recorded."""
        with self._store.unguarded() as connection:
            return frozenset(seq for seq in charges if stored_answers.is_answered(connection, seq))

    def stored(self, after: int, most: int) -> tuple[tuple[int, str, str], ...]:
        """The first events after a number, as they are stored: number, hash, text of the body."""
        with self._showing(answers=True) as connection:
            rows = _STORED.all(connection, {"after": after, "limit": most})
            chain.show_answers(connection, rows)
        return tuple((row.seq, row.hash, row.body) for row in rows)

    def head(self) -> Anchor:
        """The last event, to be recorded elsewhere."""
        with self._store.unguarded() as connection:
            return chain.head(connection).anchor

    def verify(
        self, anchor: Anchor | None = None, *, translation_under: TranslationUnder | None = None
    ) -> Report:
        """Check the chain from its beginning, every total against the events, and the witness.

        Args:
            anchor: A head noted earlier, which must still be there.
            translation_under: Finds the translation of a dataset under some terms, or None. Each
                charge is then judged again by it; without it, only by what holds for any.
        """
        guard, admissions = self._store.guard, Admissions(translation_under)
        recorded = None if guard is None else guard.recorded()
        with self._store.unguarded() as connection:
            report = replay.verify(
                connection, anchor, sqlite=self._store.sqlite, admissions=admissions
            )
            if guard is not None and recorded is not None and not holds(connection, recorded):
                error = guard.refusal(connection, recorded)
                problem = Problem(error.reason, str(error), error.event)
                report = replace(report, problems=(problem, *report.problems))
        unproven = None if translation_under is None else tuple(sorted(admissions.unproven))
        return replace(report, witness=recorded, unproven=unproven)

    def rebuild(self) -> None:
        """Compute every total again from the events: they must match the last event."""
        with self._store.writing() as connection:
            replay.rebuild(connection)

    def backup(self, path: str | Path) -> Report:
        """Write a complete, checked copy to a new file; of a ledger in a file."""
        return back_up(self._store, Path(path))

    def export(self, path: str | Path) -> int:
        """Write every event as a line of JSON, hash first; how many there are.

        A line is ``{"hash": …, "body": …}``, with the body exactly as it was hashed.
        """
        with self._showing(answers=True) as connection:
            self._note_answers(connection, "seq > 0", {})
            count = 0
            with whole_file(Path(path), field="export", fsync=True, refuse_existing=True) as part:
                part.chmod(0o600)  # as private as the ledger
                with part.open("w", encoding="ascii") as file:
                    for row in chain.rows(connection):
                        file.write(export_line(row.hash, row.body))
                        count += 1
            return count


def _page(
    connection: Connection, condition: str, order: str, values: Mapping[str, Any]
) -> tuple[Event, ...]:
    """Some events, to be shown."""
    rows = chain.events_where(condition, order).all(connection, values)
    events = tuple(map(chain.read, rows))
    chain.show_answers(connection, events)
    return events


def export_line(hash_: str, body: str) -> str:
    """An event as a line of an export."""
    return f'{{"hash":{json.dumps(hash_)},"body":{body}}}\n'
