"""The ledger: charge, then release.

`charge` is durable before it returns a receipt; noise is drawn after that; `record_answer` stores
the answer beside its charge. A crash in between costs budget, never privacy: noise may have been
drawn and seen, so a charge without an answer is spent, and asking again pays again.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, bindparam, select

from takifugu.errors import (
    BudgetExceeded,
    CellsChanged,
    InvalidCharge,
    LedgerConflict,
    LedgerUnwritable,
    NoBudget,
    SameRows,
    UnsoundRequest,
)
from takifugu.keys import Key, beside, key_at, state_folder
from takifugu.ledger import views as reading
from takifugu.ledger.accounts.books import WHOLE, Book
from takifugu.ledger.actors import current_actor
from takifugu.ledger.canonical_text import check_name, write_fraction
from takifugu.ledger.charge_values import Cells, Charge, Groups, Window
from takifugu.ledger.charging import (
    Limits,
    Receipt,
    Refusal,
    Standing,
    Untranslated,
    enter,
    unknown_marks,
)
from takifugu.ledger.events import accepted_terms as decisions
from takifugu.ledger.events import cell_naming as cells
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import replay
from takifugu.ledger.events import row_marks as sources
from takifugu.ledger.events import stored_answers as answers
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.events.replay import Report
from takifugu.ledger.events.stored_answers import Answer
from takifugu.ledger.owner import Deciding
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.migrations import prepare
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Statement
from takifugu.ledger.storage.store import WAIT, Store
from takifugu.ledger.views import Position, Reading, Stretch
from takifugu.ledger.witnesses import lost_history as loss
from takifugu.ledger.witnesses.backup import back_up, put_back
from takifugu.ledger.witnesses.database_witness import DatabaseWitness
from takifugu.ledger.witnesses.file_witness import FileWitness, heads_folder
from takifugu.ledger.witnesses.head_witness import Guard, HeadWitness, holds
from takifugu.ledger.witnesses.lost_history import Budgets
from takifugu.losses import Loss, Number, Pure, Total, exactly
from takifugu.translation.protocol import LossTranslation

EPSILON = Pure(0)  # a loss in ε: which currency is meant where none is said
_BY_KEY = Statement(select(EVENTS.c.seq).where(EVENTS.c.key == bindparam("wanted")))


def _now() -> datetime:
    return datetime.now(UTC)


def open_ledger(
    where: str | Path,
    *,
    create: bool = True,
    read_only: bool = False,
    wait: float = WAIT,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
    witness: str | Path | bool = True,
    inspect: bool = False,
    key: str | Path | None = None,
) -> "Ledger":
    """The ledger in a file, or at a sqlite:/// or postgresql:// address; made if there is none.

    Args:
        where: A path, or an address that SQLAlchemy reads.
        create: Whether to make a ledger where there is none.
        read_only: Whether every attempt to write is to be refused.
        wait: Seconds to wait while others hold the ledger locked.
        clock: Tells the time that is written in events; their order never depends on it.
        actor: Who decides what an owner decides here; the user of this process by default.
        key: The file with the key of its marks; by default beside the file of the ledger, and for
            a server in this user's state folder. It is made when it is first needed.
        witness: Where the last event is noted a second time, so that an older copy is not
            accepted: a file, or the address of a database. By default a file in the user's state
            folder ($XDG_STATE_HOME, or ~/.local/state). False for nowhere: every event then says
            so, and an older copy put back renews the budget unseen.
        inspect: Whether to open an older copy all the same, to look into it, read-only.
    """
    store = Store(where, read_only=read_only or inspect, wait=wait)
    try:
        noting = open_witness(witness, wait)
        guard = Guard(noting, store.name, writes=not store.read_only, lenient=inspect)
        now = clock().astimezone(UTC)
        prepare(store, now, create=create and not store.read_only, guard=guard)
    except BaseException:
        store.close()
        raise
    place = None if key is None else Path(key)
    return Ledger(store, clock, current_actor() if actor is None else actor, place)


def accept_loss(
    where: str | Path,
    *,
    translations: Mapping[str, LossTranslation] | None = None,
    budgets: Budgets | None = None,
    witness: str | Path | bool = True,
    wait: float = WAIT,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
) -> Event:
    """The owner accepts that the events between this copy and its witness are lost.

    They count as having spent all that the budgets of the copy admitted
    (`takifugu.ledger.witnesses.lost_history`): nothing more is released on these datasets until a
    budget is raised, and then what exceeds the earlier one. The copy that was newer is refused from
    then on.

    Args:
        where: The older copy, in its place.
        translations: For each dataset the translation that was in use in all of the part that is
            lost, as only the owner can know; without it ε of the budget itself is counted per
            entry, which is more.
        budgets: For each dataset whose budget was raised or first set in the part that is lost, the
            largest that it had: ε, or (ε, δ).
        witness: As for `open_ledger`.
        wait: As for `open_ledger`.
        clock: As for `open_ledger`.
        actor: Who decides it; the user of this process by default.
    """
    store = Store(where, read_only=False, wait=wait)
    who = current_actor() if actor is None else actor
    check_name(who, "actor")
    try:
        noting = open_witness(witness, wait)
        guard = Guard(noting, store.name, writes=True, lenient=True)
        now = clock().astimezone(UTC)
        prepare(store, now, create=False, guard=guard, follow=False)
        with store.writing() as connection:
            last = chain.head(connection, lock=True)
            content, books = loss.counted(
                connection, guard.noted(), translations or {}, budgets or {}
            )
            tables.rebuild(connection, books)
            return chain.append(connection, last, "loss", {**content, "actor": who}, now)
    finally:
        store.close()


def restore_ledger(
    backup: str | Path,
    where: str | Path,
    *,
    witness: str | Path | bool = True,
    wait: float = WAIT,
    lossy: bool = False,
) -> Report:
    """Put a backup in the place of a ledger, whole or not at all, while nobody has it open.

    A backup that lacks an event of the ledger, or one that the witness has seen, is refused. With
    ``lossy`` it is put there all the same; nothing can be done with it before `accept_loss`.
    """
    noting = open_witness(witness, wait)
    try:
        return put_back(Path(backup), where, noting, wait=wait, lossy=lossy)
    finally:
        if noting is not None:
            noting.close()


def open_witness(where: str | Path | bool, wait: float = WAIT) -> HeadWitness | None:
    """A file or database that remembers heads; the user's state folder if True; None if False."""
    if where is False:
        return None
    if where is True:
        return FileWitness(heads_folder(), folder=True)
    if isinstance(where, str) and "://" in where:
        return DatabaseWitness(Store(where, read_only=False, wait=wait))
    return FileWitness(Path(where), folder=False)


class Ledger(Deciding):
    """A budget ledger that cannot be overspent. Threads may share it; processes open their own."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        actor: str,
        key: Path | None = None,
    ) -> None:
        check_name(actor, "actor")
        self._store, self._clock, self._actor = store, clock, actor
        self._key_place = key
        self._key: Key | None = None
        self._file = Path(store.name).absolute() if store.sqlite else None
        self._limits = Limits()
        self._lost: set[str] = set()  # attempts that raised: written or not, nobody knows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Where the ledger is kept, without any password."""
        return self._store.name

    def close(self) -> None:
        """Let go of the storage."""
        self._store.close()

    # --- what the owner decides ---

    def set_budget(
        self, dataset: str, epsilon: Number, *, analyst: str | None = None, delta: Number = 0
    ) -> Event:
        """From now on the Pufferfish loss of ``dataset`` is at most (``epsilon``, ``delta``).

        With ``analyst``, that of the analyst's own charges, beside the budget of the whole.
        """
        check_name(dataset, "dataset")
        if analyst is not None:
            check_name(analyst, "analyst")
        most, chance = exactly(epsilon, "epsilon"), exactly(delta, "delta")
        if most < 0 or not 0 <= chance < 1:
            raise InvalidCharge(
                "budget",
                given=f"is ε = {float(most):g}, δ = {float(chance):g}",
                needed="have ε of 0 or more and δ from 0 to below 1",
            )
        content = {
            "dataset": dataset,
            "analyst": analyst,
            "epsilon": write_fraction(most, "budget"),
            "delta": write_fraction(chance, "budget"),
            "actor": self._actor,
        }
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            who = analyst or WHOLE
            if analyst is not None:
                decisions.refuse_double(connection, dataset, analyst)
            found = tables.find(connection, dataset, who)
            book = found.get(who)
            if book is None:
                whole = found.get(WHOLE) or Book(dataset, WHOLE)
                book = tables.open_book(connection, whole.of(who))
            book.epsilon, book.delta = most, chance
            tables.save(connection, [book])
            return chain.append(connection, last, "budget", content, self._time())

    def set_partition(self, dataset: str, columns: tuple[str, ...]) -> Event:
        """Count the groups of ``dataset`` by these public columns, from the first release on.

        Without this the first charge with groups decides. A charge whose groups lack one of the
        columns counts on every group.
        """
        check_name(dataset, "dataset")
        wanted = tuple(sorted(Groups(columns, [("",) * len(columns)]).columns))
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            book = tables.find(connection, dataset).get(WHOLE)
            if book is None:
                book = tables.open_book(connection, Book(dataset, WHOLE))
            if book.shape.partition not in (None, wanted):
                raise LedgerConflict(
                    f"the groups of dataset {dataset!r} are counted by"
                    f" {', '.join(book.shape.partition or ())}; that cannot change",
                    reason="partition",
                    dataset=dataset,
                )
            book.shape.partition = wanted
            tables.save(connection, [book])
            content = {
                "dataset": dataset,
                "analyst": None,
                "columns": list(wanted),
                "actor": self._actor,
            }
            return chain.append(connection, last, "partition", content, self._time())

    def accept_cells(self, dataset: str, found: Cells, *, unchanged: bool = False) -> Event:
        """From now on the cells of ``dataset`` are named as in ``found``.

        All that was released so far then counts on every row, and its groups and windows may be
        chosen anew. With ``unchanged`` the owner says instead that the declaration is the one that
        was used before: for charges that do not say, or where only the source has moved.
        """
        check_name(dataset, "dataset")
        how = cells.UNCHANGED if unchanged else cells.EVERYWHERE
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            content = cells.accepted(connection, dataset, found, how)
            content["actor"] = self._actor
            return chain.append(connection, last, "cells", content, self._time())

    def cells_changed(self, dataset: str, found: Cells) -> CellsChanged | None:
        """Why charges on ``dataset`` with these cells would be refused; None if they would not."""
        with self._store.reading() as connection:
            try:
                cells.refuse_other(connection, dataset, found)
            except CellsChanged as error:
                return error
        return None

    def count_separately(self, dataset: str, other: str) -> Event:
        """Let two datasets have a budget each although they have the same rows."""
        for name in (dataset, other):
            check_name(name, "dataset")
        if dataset == other:
            raise InvalidCharge("dataset", given="is named twice", needed="be two datasets")
        content = {"dataset": dataset, "analyst": None, "other": other, "actor": self._actor}
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return chain.append(connection, last, "separate", content, self._time())

    def counted_separately(self, dataset: str) -> frozenset[str]:
        """The datasets that may have the same rows as ``dataset``, by their owner's word."""
        with self._store.reading() as connection:
            return frozenset(sources.separated(connection, dataset))

    # --- what hashes over protected bytes are kept under ---

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

    def _key_file(self) -> Path:
        if self._key_place is not None:
            return self._key_place
        if self._file is not None:
            return beside(self._file)
        with self._store.reading() as connection:
            name = str(chain.one(connection, 1).body["ledger"])
        place = state_folder() / "keys"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place / f"{name}.key"

    @property
    def folder(self) -> Path | None:
        """The folder that the ledger lies in; None for one on a server."""
        return None if self._file is None else self._file.parent

    def knows_data(self, dataset: str, data: str) -> bool:
        """Whether a charge was made on this state of the data, so that its sources are known."""
        with self._store.reading() as connection:
            return sources.is_known(connection, dataset, data)

    # --- charge, release, answer ---

    def check(self, charge: Charge) -> None:
        """Raise if a charge is about other cells, or another dataset's rows; nothing is written."""
        with self._store.reading() as connection:
            cells.refuse_other(connection, charge.dataset, charge.cells)
            unknown_marks(connection, charge)

    def charge(self, charge: Charge, translation: LossTranslation) -> Receipt:
        """Pay for a release before it happens. Durable once it returns; otherwise it raises.

        A call that raised anything but `BudgetExceeded` may or may not have been written: the same
        charge (same key) given to the same `Ledger` again is then not paid twice.
        """
        body = charge.body()
        _same(charge, translation)
        attempt = uuid.uuid4().hex
        try:
            event, repeated = self._enter(
                "charge", body | {"attempt": attempt}, translation, charge
            )
        except (BudgetExceeded, CellsChanged, SameRows):
            raise
        except BaseException:
            self._lost.add(attempt)
            raise
        return Receipt(
            anchor=Anchor(event.seq, event.hash),
            key=charge.key,
            dataset=charge.dataset,
            analyst=charge.analyst,
            question=body["question"],
            at=event.at,
            may_release=not repeated or self._claim(event.body["attempt"]),
        )

    def _claim(self, attempt: str) -> bool:
        """Whether a charge was written by a call of ours that never gave a receipt; once."""
        try:
            self._lost.remove(attempt)
        except KeyError:
            return False
        return True

    def record_answer(self, receipt: Receipt, answer: Any) -> Answer:
        """Keep what was released under ``receipt``, as JSON, so that asking again is free."""
        with self._store.writing() as connection:
            last = chain.head(connection, lock=True)
            return answers.store(connection, last, receipt, answer, self._time())

    def lookup(self, charge: Charge) -> Answer | None:
        """The stored answer to the same question on the same data, if its asker has paid for it.

        A named analyst has paid by a charge or by `reuse`; for nobody in particular any will do,
        where no analyst has a budget.
        """
        with self._store.reading() as connection:
            decisions.refuse_stranger(connection, charge.dataset, charge.analyst)
            return answers.find(connection, charge.body()["question"], charge.analyst)

    def told_others(self, charge: Charge) -> bool:
        """Whether anybody was told the answer to the same question on the same data."""
        with self._store.reading() as connection:
            return answers.find(connection, charge.body()["question"], None) is not None

    def reuse(self, charge: Charge, translation: LossTranslation) -> Answer | None:
        """Another analyst's answer to the same question, charged to this analyst's budget alone.

        Nothing new is released, so the whole dataset loses nothing; but this analyst learns it.
        """
        body = charge.body()
        _same(charge, translation)
        with self._store.reading() as connection:
            decisions.refuse_stranger(connection, charge.dataset, charge.analyst)
            answer = answers.find(connection, body["question"], charge.analyst)
            others = answers.find(connection, body["question"], None)
        if answer is not None or others is None:
            return answer
        self._enter("reuse", body | {"charge": others.charge}, translation, charge)
        return others

    def _enter(
        self, kind: str, body: dict[str, Any], translation: LossTranslation, charge: Charge
    ) -> tuple[Event, bool]:
        """Write a charge or reuse; the event, and whether it had been written before."""
        while True:
            with self._store.writing() as connection:
                last = chain.head(connection, lock=True)
                known = _BY_KEY.one(connection, {"wanted": body["key"]})
                if known is not None:
                    event = chain.one(connection, known.seq)
                    same = (event.body.get(k) == v for k, v in body.items() if k != "attempt")
                    if event.kind != kind or not all(same):
                        raise LedgerConflict(
                            f"key {body['key']!r} was used for another charge; use a new key",
                            reason="key",
                            event=event.seq,
                        )
                    return event, True
                now = self._time()
                done = enter(connection, last, kind, body, translation, self._limits, now, charge)
            if isinstance(done, Event):
                return done, False
            if isinstance(done, Refusal):
                raise done.error(body)
            self._translate(translation, done)

    def _translate(self, translation: LossTranslation, cold: Untranslated) -> None:
        for epsilon, delta in cold.budgets:
            self._limits.learn(translation, epsilon, delta)

    # --- views ---

    def spent(
        self, dataset: str, translation: LossTranslation, *, analyst: str | None = None
    ) -> float:
        """The Pufferfish ε of all that was released, at the δ of the budget, rounded up.

        Any translation will do: a new prior re-evaluates everything that was ever released.
        """
        with self._store.reading() as connection:
            book = _book(tables.find(connection, dataset, analyst or WHOLE), dataset, analyst)
        return reading.spent(book, translation)

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

        Of another currency if ``like`` is a loss in it: the largest ρ, or ε beside the same δ.
        """
        seen = self._standings(dataset, analyst, window, groups, translation)
        return min(standing.room(like) for standing in seen)

    def accepts(
        self,
        dataset: str,
        loss: Loss,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
        reuse: bool = False,
    ) -> bool:
        """Whether a charge of ``loss`` on these entries would be accepted now.

        With ``reuse``: whether the analyst's own budget admits another's answer at that price.
        """
        seen = self._standings(dataset, analyst, window, groups, translation, reuse=reuse)
        return all(standing.admits(loss) for standing in seen)

    def _standings(
        self,
        dataset: str,
        analyst: str | None,
        window: Window | None,
        groups: Groups | None,
        translation: LossTranslation,
        *,
        reuse: bool = False,
    ) -> tuple[Standing, ...]:
        """How the accounts that a charge (or reuse) would go to stand on these entries."""
        while True:
            with self._store.reading() as connection:
                found = reading.standings(
                    connection, dataset, analyst, window, groups, translation, self._limits
                )
            if not isinstance(found, Untranslated):
                return tuple(one for one in found if one.analyst) if reuse else found
            self._translate(translation, found)

    def lost(
        self,
        dataset: str,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
    ) -> tuple[Total, ...]:
        """What the worst off of these entries have lost so far, exactly, before any translation.

        Several totals if none of them is the worst in every currency.
        """
        with self._store.reading() as connection:
            return self._lost_on(connection, dataset, analyst, window, groups)[1]

    def spent_after(
        self,
        dataset: str,
        loss: Loss,
        translation: LossTranslation,
        *,
        analyst: str | None = None,
        window: Window | None = None,
        groups: Groups | None = None,
    ) -> float:
        """What `spent` would be after one more ``loss`` on these entries, rounded up."""
        with self._store.reading() as connection:
            book, found = self._lost_on(connection, dataset, analyst, window, groups)
        return reading.spent_with(book, found, loss, translation)

    def _lost_on(
        self,
        connection: Connection,
        dataset: str,
        analyst: str | None,
        window: Window | None,
        groups: Groups | None,
    ) -> tuple[Book, tuple[Total, ...]]:
        found = tables.find(connection, dataset, analyst or WHOLE)
        book = _book(found, dataset, analyst)
        shape = (found.get(WHOLE) or book).shape
        return book, reading.lost(connection, book, shape, window, groups)

    def odometer(
        self, dataset: str, translation: LossTranslation, *, analyst: str | None = None
    ) -> Iterator[Reading]:
        """The Pufferfish ε after every charge so far, in order."""
        with self._store.reading() as connection:
            yield from reading.odometer(connection, dataset, translation, analyst)

    def over_time(self, dataset: str, *, analyst: str | None = None) -> tuple[Stretch, ...]:
        """What the entries of each stretch of time have lost at worst, exactly."""
        with self._store.reading() as connection:
            book = _book(tables.find(connection, dataset, analyst or WHOLE), dataset, analyst)
            return reading.over_time(connection, book)

    def positions(self) -> tuple[Position, ...]:
        """Every account: its budget and the worst per-entry totals."""
        with self._store.reading() as connection:
            return reading.positions(connection)

    def history(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Iterator[Event]:
        """Events in order; those of a dataset, analyst or kind; only the ``last`` few."""
        with self._store.unguarded() as connection:
            yield from reading.history(connection, dataset, analyst, kind, last)

    # --- upkeep ---

    def head(self) -> Anchor:
        """The last event, to be noted down elsewhere."""
        with self._store.unguarded() as connection:
            last = chain.head(connection)
        return Anchor(last.seq, last.hash)

    def verify(self, anchor: Anchor | None = None) -> Report:
        """Check the chain from its beginning, every total against the events, and the witness."""
        guard = self._store.guard
        noted = None if guard is None else guard.noted()
        with self._store.unguarded() as connection:
            found = replay.verify(connection, anchor, sqlite=self._store.sqlite)
            if guard is not None and noted is not None and not holds(connection, noted):
                said = str(guard.refusal(connection, noted))
                found = replace(found, problems=(said, *found.problems))
        return replace(found, witness=noted)

    @property
    def witness(self) -> str | None:
        """Where the last event is noted a second time; None if the owner chose nowhere."""
        guard = self._store.guard
        return None if guard is None or guard.witness is None else guard.witness.name

    def rebuild(self) -> None:
        """Compute every total anew from the events: they must be what the last event says."""
        with self._store.writing() as connection:
            replay.rebuild(connection)

    def backup(self, path: str | Path) -> Report:
        """Write a complete, checked copy to a new file; of a ledger in a file."""
        return back_up(self._store, Path(path))

    def export(self, path: str | Path) -> int:
        """Write every event as a line of JSON, hash first; how many there are."""
        with self._store.unguarded() as connection:
            return reading.export(connection, Path(path))

    def _time(self) -> datetime:
        return self._clock().astimezone(UTC)


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


def _book(found: dict[str, Book], dataset: str, analyst: str | None) -> Book:
    if WHOLE not in found and (analyst or WHOLE) not in found:
        raise NoBudget(dataset)
    return found.get(analyst or WHOLE) or found[WHOLE].of(analyst or WHOLE)
