"""What can be read from a ledger: spent, remaining, over time; its history, checks and copies."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from takifugu._atomic import whole_file
from takifugu.errors import NoBudget, UnsoundRequest
from takifugu.ledger.accounts.account import WHOLE, Book, Books, Touch, charged
from takifugu.ledger.accounts.frontier import Frontier
from takifugu.ledger.accounts.limits import Limits, spent_epsilon
from takifugu.ledger.accounts.standings import Payer, Standing, payers, paying
from takifugu.ledger.charge_values import Cells
from takifugu.ledger.entries_read import BEGINNING, END, Groups, Window, groups_body, window_body
from takifugu.ledger.events import cell_naming, replay, stored_answers
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.admissions import Admissions, TranslationUnder
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.events.replay import Problem, Report
from takifugu.ledger.open_store import OpenStore
from takifugu.ledger.snapshot import Position, Snapshot, read_snapshot
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.statement import Connection, askable
from takifugu.ledger.witnesses.backup import back_up
from takifugu.ledger.witnesses.head_witness import holds
from takifugu.losses import Loss, Pure
from takifugu.translation.protocol import LossTranslation

_COUNTED = chain.events_where("dataset = :named OR kind = 'loss'")
MOST_EVENTS = 10_000  # of one page
ANSWER = "answer"  # the kind of event whose loss would let a charge be answered twice
_LATEST = "ORDER BY seq DESC LIMIT 1"
_STORED = chain.events_where("seq > :after", "ORDER BY seq LIMIT :most")
EPSILON = Pure(0)  # a loss in ε, the currency that is meant by default


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


class LedgerViews(OpenStore):
    """The part of a ledger that only reads."""

    _limits: Limits

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
            found = payers(connection, dataset, names, *entries)
        return self._translated(found, translation)

    def _translated(
        self, found: tuple[Payer, ...], translation: LossTranslation
    ) -> tuple[Standing, ...]:
        return tuple(
            Standing(payer, self._limits.limit(translation, payer.epsilon, payer.delta))
            for payer in found
        )

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
        found = self.standings(dataset, translation, analyst=analyst, window=window, groups=groups)
        return min(standing.room(like) for standing in found)

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
            book = _book(tables.find(connection, dataset, analyst or WHOLE), dataset, analyst)
            worst = cell_naming.as_read(connection, dataset, book.account.worst, cells)
        budget = book.epsilon, book.delta
        return spent_epsilon(translation, worst, *budget, self._limits)

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
            found = tables.find(connection, dataset, analyst or WHOLE)
            book = _book(found, dataset, analyst)
            shape = (found.get(WHOLE) or book).shape
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
        found = self._counted(dataset, analyst or WHOLE)
        for event, totals, budget in found if last is None else deque(found, maxlen=last):
            spent = spent_epsilon(translation, totals, *budget, self._limits)
            yield Reading(event.seq, event.at, spent)

    def _counted(
        self, dataset: str, who: str
    ) -> Iterator[tuple[Event, Frontier, tuple[Fraction | None, Fraction]]]:
        """Every charge to an account, the totals after it, and the budget at that time."""
        books = Books()
        with (
            self._store.reading() as connection,
            closing(_COUNTED.stream(connection, {"named": dataset})) as rows,
        ):
            for event in map(chain.read, rows):
                replay.take(books, event)
                if event.kind == "loss":
                    counts = (dataset, who) in books.books
                else:
                    counts = event.kind in ("charge", "reuse") and who in charged(event.body)
                if counts:
                    book = books.book(dataset, who)
                    yield event, book.account.worst, (book.epsilon, book.delta)

    def over_time(self, dataset: str, *, analyst: str | None = None) -> tuple[Stretch, ...]:
        """What the entries of each stretch of time have lost at worst, exactly."""
        with self._store.reading() as connection:
            book = _book(tables.find(connection, dataset, analyst or WHOLE), dataset, analyst)
            tables.load(connection, book, Touch())
        return tuple(
            Stretch(
                None if segment.start == BEGINNING else segment.start,
                None if segment.end == END else segment.end,
                book.account.totals(segment, segment.peak),
            )
            for segment in book.account.segments
        )

    def positions(self) -> tuple[Position, ...]:
        """Every account, by name: its budget and the worst per-entry totals."""
        with self._store.reading() as connection:
            return tuple(map(Position.of, tables.every(connection)))

    def history(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        kind: str | None = None,
        last: int | None = None,
    ) -> Iterator[Event]:
        """Events in order; those of a dataset, analyst or kind; only the ``last`` few."""
        given = {"dataset": dataset, "analyst": analyst, "kind": kind}
        values = {column: value for column, value in given.items() if value is not None}
        if not all(map(askable, values.values())):
            return  # no event has such a name
        chosen = " AND ".join(["seq > 0", *(f"{column} = :{column}" for column in values)])
        with self._read(answers=kind in (None, ANSWER)) as connection:
            if last is not None:
                latest = chain.events_where(chosen, "ORDER BY seq DESC LIMIT :most")
                rows = latest.all(connection, values | {"most": last})
                events = tuple(map(chain.read, reversed(rows)))
                _show(connection, events)
                self._store.note(connection)  # before the first is out
                yield from events
                return
            if kind in (None, ANSWER):
                self._note_answers(connection, chosen, values)
            with closing(chain.events_where(chosen).stream(connection, values)) as found:
                yield from map(chain.read, found)

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
        if not (0 <= after < 2**63 and 0 < limit <= MOST_EVENTS and 0 < (before or 1) < 2**63):
            raise UnsoundRequest(
                f"a page has 1 to {MOST_EVENTS} events, after or before the number of one",
                field="limit",
                given=limit,
                needed=MOST_EVENTS,
            )
        kinds = (kind,) if isinstance(kind, str) else tuple(kind or ())
        if not all(askable(name) for name in (*kinds, dataset or "", analyst or "")):
            return ()  # no event has such a name
        values: dict[str, Any] = {"after": after, "most": limit}
        chosen = ["seq > :after"]
        for column, value in (("dataset", dataset), ("analyst", analyst)):
            if value is not None:
                values[column] = value
                chosen.append(f"{column} = :{column}")
        if kind is not None:
            named = {f"kind_{place}": one for place, one in enumerate(kinds)}
            values |= named
            chosen.append(f"kind IN ({', '.join(f':{name}' for name in named) or 'NULL'})")
        order = "ORDER BY seq LIMIT :most"
        if before is not None:
            values["before"] = before
            chosen.append("seq < :before")
            order = "ORDER BY seq DESC LIMIT :most"
        page = chain.events_where(" AND ".join(chosen), order)
        with self._read(answers=kind is None or ANSWER in kinds) as connection:
            events = tuple(map(chain.read, page.all(connection, values)))
            _show(connection, events)
            return events

    def event(self, seq: int) -> Event | None:
        """One event, checked against the hash of the one before it; None if there is none."""
        for answers in (False, True):  # of most events the witness need not be asked
            with self._read(answers=answers) as connection:
                if not 0 < seq <= chain.head(connection).seq:
                    return None
                found = chain.one(connection, seq)
                if answers or found.kind != ANSWER:
                    _show(connection, [found])
                    return found
        raise AssertionError("unreachable")

    def _read(self, *, answers: bool) -> AbstractContextManager[Connection]:
        """A transaction to show events in; those without answers are no matter of the witness."""
        return self._store.reading() if answers else self._store.unguarded()

    def _note_answers(self, connection: Connection, chosen: str, values: dict[str, Any]) -> None:
        """Have the witness know every answer among events that are shown one after another."""
        answers = chain.events_where(f"{chosen} AND kind = '{ANSWER}'", _LATEST)
        _show(connection, answers.all(connection, values))
        self._store.note(connection)

    def answered(self, charges: Sequence[int]) -> frozenset[int]:
        """Of these charges, by number, those whose answer was recorded."""
        with self._store.unguarded() as connection:
            return frozenset(seq for seq in charges if stored_answers.is_answered(connection, seq))

    def stored(self, after: int, most: int) -> tuple[tuple[int, str, str], ...]:
        """The first events after a number, as they are stored: number, hash, text of the body."""
        with self._read(answers=True) as connection:
            rows = _STORED.all(connection, {"after": after, "most": most})
            _show(connection, rows)
        return tuple((row.seq, row.hash, row.body) for row in rows)

    def head(self) -> Anchor:
        """The last event, to be recorded elsewhere."""
        with self._store.unguarded() as connection:
            last = chain.head(connection)
        return Anchor(last.seq, last.hash)

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
        noted = None if guard is None else guard.noted()
        with self._store.unguarded() as connection:
            found = replay.verify(
                connection, anchor, sqlite=self._store.sqlite, admissions=admissions
            )
            if guard is not None and noted is not None and not holds(connection, noted):
                error = guard.refusal(connection, noted)
                problem = Problem(error.reason, str(error), error.event)
                found = replace(found, problems=(problem, *found.problems))
        unproven = None if translation_under is None else tuple(sorted(admissions.unproven))
        return replace(found, witness=noted, unproven=unproven)

    def backup(self, path: str | Path) -> Report:
        """Write a complete, checked copy to a new file; of a ledger in a file."""
        return back_up(self._store, Path(path))

    def export(self, path: str | Path) -> int:
        """Write every event as a line of JSON, hash first; how many there are."""
        with self._read(answers=True) as connection:
            self._note_answers(connection, "seq > 0", {})
            return _export(connection, Path(path))


def _book(found: dict[str, Book], dataset: str, analyst: str | None) -> Book:
    if WHOLE not in found and (analyst or WHOLE) not in found:
        raise NoBudget(dataset)
    return found.get(analyst or WHOLE) or found[WHOLE].of(analyst or WHOLE)


def _show(connection: Connection, found: Iterable[Any]) -> None:
    """The answers among events, or rows of them, are to be shown: their witness must know them."""
    for event in found:
        if event.kind == ANSWER:
            chain.show(connection, event.seq)


def _export(connection: Connection, path: Path) -> int:
    """All events as JSON lines: {"hash": …, "body": …}, the body exactly as it was hashed."""
    count = 0
    with whole_file(path, field="export", fsync=True, refuse_existing=True) as part:
        part.chmod(0o600)  # as private as the ledger
        with part.open("w", encoding="ascii") as file:
            for row in chain.rows(connection):
                file.write(f'{{"hash":{json.dumps(row.hash)},"body":{row.body}}}\n')
                count += 1
    return count
