"""What a ledger can be asked: spent, left, over time; its history, and an export of all of it."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sqlalchemy import Connection, select

from takifugu.errors import InvalidFile, NoBudget
from takifugu.ledger import charging
from takifugu.ledger.accounts import budget_limits as view
from takifugu.ledger.accounts.account import Shape, Touch
from takifugu.ledger.accounts.books import WHOLE, Book, Books, charged
from takifugu.ledger.accounts.frontier import Frontier, add, worst
from takifugu.ledger.charge_values import BEGINNING, END, Groups, Window, groups_body, window_body
from takifugu.ledger.charging import Limits, Standing, Untranslated
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.schema import EVENTS
from takifugu.losses import Loss
from takifugu.translation.protocol import LossTranslation


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


@dataclass(frozen=True)
class Position:
    """An account: budget (None if there is none) and the worst per-entry totals so far."""

    dataset: str
    analyst: str | None
    epsilon: Fraction | None
    delta: Fraction
    worst: Frontier


def spent(book: Book, translation: LossTranslation) -> float:
    """The worst total of an account, translated."""
    return view.read(translation, book.account.worst, book.epsilon, book.delta)


def spent_with(book: Book, lost: Frontier, loss: Loss, translation: LossTranslation) -> float:
    """What an account would have spent after ``loss`` on cells that have ``lost`` so much."""
    after = worst((*book.account.worst, *(add(total, loss) for total in lost)))
    return view.read(translation, after, book.epsilon, book.delta)


def lost(
    connection: Connection, book: Book, shape: Shape, window: Window | None, groups: Groups | None
) -> Frontier:
    """The worst totals of the cells that window and groups touch."""
    touch = shape.touch(window_body(window), groups_body(groups))
    if not touch.everything:
        tables.load(connection, book, touch)
    return book.account.on(touch)


def standings(
    connection: Connection,
    dataset: str,
    analyst: str | None,
    window: Window | None,
    groups: Groups | None,
    translation: LossTranslation,
    limits: Limits,
) -> tuple[Standing, ...] | Untranslated:
    """How the accounts that a charge would go to stand."""
    found = tables.find(connection, dataset, analyst or WHOLE)
    if WHOLE not in found or found[WHOLE].epsilon is None:
        raise NoBudget(dataset)
    cold = charging.untranslated(list(found.values()), translation, limits)
    if cold is not None:
        return cold
    touch = found[WHOLE].shape.touch(window_body(window), groups_body(groups))
    names = (WHOLE,) if analyst is None else (WHOLE, analyst)
    return charging.standings(connection, dataset, names, touch, translation, limits)


def odometer(
    connection: Connection, dataset: str, translation: LossTranslation, analyst: str | None
) -> Iterator[Reading]:
    """Replay the dataset's events; one reading for each that was charged to the account.

    History that was lost and accepted as spent counts as one.
    """
    books, who = Books(), analyst or WHOLE
    mine = (EVENTS.c.dataset == dataset) | (EVENTS.c.kind == "loss")
    ordered = select(EVENTS).where(mine).order_by(EVENTS.c.seq)
    for event in map(chain.read, connection.execute(ordered.execution_options(yield_per=1000))):
        books.apply(event.body)
        if event.kind == "loss":
            counts = (dataset, who) in books.books
        else:
            counts = event.kind in ("charge", "reuse") and who in charged(event.body)
        if counts:
            yield Reading(event.seq, event.at, spent(books.book(dataset, who), translation))


def over_time(connection: Connection, book: Book) -> tuple[Stretch, ...]:
    """The worst totals of every segment."""
    tables.load(connection, book, Touch())
    return tuple(
        Stretch(
            None if segment.start == BEGINNING else segment.start,
            None if segment.end == END else segment.end,
            book.account.totals(segment, segment.peak),
        )
        for segment in book.account.segments
    )


def positions(connection: Connection) -> tuple[Position, ...]:
    """Every account, by name."""
    return tuple(
        Position(book.dataset, book.analyst or None, book.epsilon, book.delta, book.account.worst)
        for book in tables.every(connection)
    )


def history(
    connection: Connection,
    dataset: str | None,
    analyst: str | None,
    kind: str | None,
    last: int | None,
) -> Iterator[Event]:
    """Events that match, in the order of the chain, read a few at a time."""
    wanted = select(EVENTS)
    for column, value in (("dataset", dataset), ("analyst", analyst), ("kind", kind)):
        if value is not None:
            wanted = wanted.where(EVENTS.c[column] == value)
    if last is not None:
        rows = connection.execute(wanted.order_by(EVENTS.c.seq.desc()).limit(last)).all()
        yield from map(chain.read, reversed(rows))
        return
    ordered = wanted.order_by(EVENTS.c.seq).execution_options(yield_per=1000)
    yield from map(chain.read, connection.execute(ordered))


def export(connection: Connection, path: Path) -> int:
    """All events as JSON lines: {"hash": …, "body": …}, the body exactly as it was hashed.

    The file appears complete or not at all; one that exists is left alone.
    """
    if not path.parent.is_dir():
        raise InvalidFile(
            "export", given=f"is {path}", needed="lie in an existing folder", reason="folder"
        )
    if path.exists():
        raise InvalidFile("export", given=f"{path} exists", needed="be a new file", reason="exists")
    count = 0
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            for row in chain.rows(connection):
                file.write(f'{{"hash":{json.dumps(row.hash)},"body":{row.body}}}\n')
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        os.unlink(part)
        if isinstance(error, OSError):
            raise InvalidFile(
                "export",
                given=f"{path}: {error.strerror}",
                needed="be writable",
                reason="unwritable",
            ) from error
        raise
    return count
