"""The tables of accounts: a copy of what a replay of the events would give.

A charge reads and writes only the rows it touches, so its cost does not grow with the number of
events before it. All of this happens in the transaction that writes the event. Every row that is
read is held against the digest that the last event carries (`digest_tree`): one that was edited,
deleted or added behind the ledger's back is refused before anything is added to it.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from takifugu.errors import LedgerConflict, LedgerDamaged, NoBudget
from takifugu.ledger import frontier
from takifugu.ledger.account import WHOLE, Account, Book, Books, Segment, Shape, Touch
from takifugu.ledger.canonical_text import check_name, read_fraction
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage import digest_tree as digests
from takifugu.ledger.storage.database import (
    Connection,
    Statement,
    askable,
    insert,
    update,
)
from takifugu.ledger.storage.digest_tree import Tree, mark_of, place_of
from takifugu.ledger.storage.schema import ACCOUNTS, CELLS, SEGMENTS, select

_BUDGET_AND_TOTALS = (
    *("epsilon", "delta", "unit", "partition"),
    *("always", "worst", "lost"),
)
_ACCOUNT = ("id", "dataset", "analyst", *_BUDGET_AND_TOTALS)
_NAMED = select(ACCOUNTS, *_ACCOUNT, where="dataset = :named AND analyst IN (:first, :second)")
_EVERY = select(ACCOUNTS, *_ACCOUNT)
_NAMES = ("id", "dataset", "analyst")  # what is hashed with a row's place, or only leads to it
_NEXT_ID = Statement(f"SELECT coalesce(max(id), 0) + 1 AS id FROM {ACCOUNTS}", types={"id": (int,)})
_ADD = insert(ACCOUNTS, *_ACCOUNT)
_SAVE = update(ACCOUNTS, *_BUDGET_AND_TOTALS, where="id = :which")
_SEGMENT_VALUES = ("end", "base", "peak", "cells")
_COVER = select(
    SEGMENTS,
    *("account", "start", *_SEGMENT_VALUES),
    where="account = :which AND start < :until AND start >="
    f" (SELECT max(start) FROM {SEGMENTS} WHERE account = :which AND start <= :since)"
    " ORDER BY start",
)


def _select_cells(where: str = "") -> Statement:
    return select(CELLS, "account", "start", "cell", "own", where=f"account = :which{where}")


_WITHIN = " AND start >= :since AND start < :until"
_OF_ACCOUNT, _OF_SEGMENT = _select_cells(), _select_cells(" AND start = :at")
_ALL_CELLS = _select_cells(_WITHIN)
_THESE_CELLS = {
    size: _select_cells(f"{_WITHIN} AND cell IN ({', '.join(f':cell{i}' for i in range(size))})")
    for size in (1, 20, 500)
}  # for so many cells at most; for more, the segments are read in full
_COPY = Statement(
    f"INSERT INTO {CELLS} (account, start, cell, own)"
    f" SELECT account, CAST(:new AS BIGINT), cell, own FROM {CELLS}"
    " WHERE account = :which AND start = :origin"
)
_ADD_SEGMENT = insert(SEGMENTS, "account", "start", *_SEGMENT_VALUES)
_SAVE_SEGMENT = update(SEGMENTS, *_SEGMENT_VALUES, where="account = :which AND start = :at")
_NOWHERE: Any = None  # the connection of a tree that is never stored: nothing is read for it
_ADD_CELL = insert(CELLS, "account", "start", "cell", "own")
_SAVE_CELL = update(CELLS, "own", where="account = :which AND start = :at AND cell = :name")


def find(connection: Connection, dataset: str, analyst: str = WHOLE) -> dict[str, Book]:
    """The accounts of the whole dataset and of ``analyst``, without their segments."""
    refuse_unaskable(dataset=dataset, analyst=analyst)
    names = {"named": dataset, "first": WHOLE, "second": analyst}
    rows = {row.analyst: row for row in _NAMED.all(connection, names)}
    marks: dict[bytes, bytes | None] = {_account_place(dataset, n): None for n in (WHOLE, analyst)}
    marks |= [_account_digest(row._asdict()) for row in rows.values()]
    books = {name: _book(row) for name, row in rows.items()}
    if chain.totals(connection).differing(connection, marks):
        raise digests.edited(f" of dataset {dataset!r}")
    return books


def find_book(connection: Connection, dataset: str, analyst: str | None) -> tuple[Book, Shape]:
    """The account of an analyst, or of the whole dataset if None, and the shape of its entries."""
    books = find(connection, dataset, analyst or WHOLE)
    whole, own = books.get(WHOLE), books.get(analyst or WHOLE)
    if own is None and whole is None:
        raise NoBudget(dataset)
    book = own or whole.for_analyst(analyst or WHOLE)  # type: ignore[union-attr]
    return book, (whole or book).shape


def set_budget(
    connection: Connection, dataset: str, analyst: str, budget: tuple[Fraction, Fraction]
) -> None:
    """Write the budget of an account, which is opened if there is none."""
    book = _found_or_opened(connection, dataset, analyst)
    book.epsilon, book.delta = budget
    save(connection, [book])


def _found_or_opened(connection: Connection, dataset: str, analyst: str) -> Book:
    books = find(connection, dataset, analyst)
    whole = books.get(WHOLE) or Book(dataset, WHOLE)
    return books.get(analyst) or open_book(connection, whole.for_analyst(analyst))


def set_partition(connection: Connection, dataset: str, partition: tuple[str, ...]) -> None:
    """Fix the columns that the groups of a dataset are counted by."""
    book = _found_or_opened(connection, dataset, WHOLE)
    if book.shape.partition not in (None, partition):
        raise LedgerConflict(
            f"the groups of dataset {dataset!r} are counted by"
            f" {', '.join(book.shape.partition or ())}; that cannot change",
            reason="partition",
            dataset=dataset,
        )
    book.shape.partition = partition
    save(connection, [book])


def refuse_unaskable(**names: str) -> None:
    """Raise for a name that no database could look for, instead of its driver."""
    for name, value in names.items():
        if not askable(value):
            check_name(value, name)


def every(connection: Connection, *, compare: bool = True) -> list[Book]:
    """All accounts, without their segments."""
    rows = sorted(_EVERY.all(connection, {}), key=lambda row: (row.dataset, row.analyst))
    if compare:
        marks = dict(_account_digest(row._asdict()) for row in rows)
        if chain.totals(connection).differing(connection, marks):
            raise digests.edited()
    return [_book(row) for row in rows]


def _account_place(dataset: str, analyst: str) -> bytes:
    return place_of(f"account\0{dataset}\0{analyst}")


def _account_digest(row: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Where the digest of an account is kept, and that digest."""
    mark = mark_of(digests.row_text(row, without=_NAMES))
    return _account_place(row["dataset"], row["analyst"]), mark


def _segment_digest(book: Book, row: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The same of a segment."""
    place = place_of(f"segment\0{book.dataset}\0{book.analyst}\0{row['start']}")
    return place, mark_of("\n".join(str(row[name]) for name in _SEGMENT_VALUES))


def _cell_marks(segment: Segment) -> dict[bytes, bytes]:
    return {
        place_of(cell): mark_of(frontier.write((total,))) for cell, total in segment.own.items()
    }


def _book(row: Any) -> Book:
    try:
        account = Account(frontier.read_one(row.always), frontier.read(row.worst), [])
        budget = None if row.epsilon is None else read_fraction(row.epsilon)
        partition = None if row.partition is None else tuple(json.loads(row.partition))
        delta = read_fraction(row.delta or "0")
        shape = Shape(row.unit, partition)
        lost = None if row.lost is None else frontier.read_one(row.lost)
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise _unreadable(row.dataset) from error
    return Book(row.dataset, row.analyst, budget, delta, shape, account, row.id, lost)


def _unreadable(dataset: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the totals of dataset {dataset!r} cannot be read; nothing was released. Run"
        " `takifugu ledger verify`; if the events are sound, rebuild the totals",
        reason="totals",
        dataset=dataset,
    )


def load(connection: Connection, book: Book, touch: Touch, *, compare: bool = True) -> None:
    """Read the segments that ``touch`` overlaps, and its cells in them (all, if it names none)."""
    if not book.id:
        return
    span = {"which": book.id, "since": touch.start, "until": touch.end}
    try:
        rows = _COVER.all(connection, span)
        segments = [
            Segment(
                row.start,
                row.end,
                frontier.read_one(row.base),
                frontier.read(row.peak),
                root=row.cells,
            )
            for row in rows
        ]
        if not segments or segments[0].start > touch.start or segments[-1].end < touch.end:
            raise ValueError("a gap in time")
        if any(earlier.end != later.start for earlier, later in itertools.pairwise(segments)):
            raise ValueError("a gap in time")
        if compare:
            marks = dict(_segment_digest(book, row._asdict()) for row in rows)
            if chain.totals(connection).differing(connection, marks):
                raise digests.edited(f" of dataset {book.dataset!r}")
        by_start = {segment.start: segment for segment in segments}
        span["since"] = segments[0].start
        if touch.cells is not None:
            chosen = set(touch.cells)
            stored_cells: dict[int, dict[str, str]] = {start: {} for start in by_start}
            for row in _cells(connection, span, touch.cells):
                if row.cell in chosen:
                    by_start[row.start].own[row.cell] = frontier.read_one(row.own)
                    stored_cells[row.start][row.cell] = row.own
            if compare:
                _compare_cells(connection, book, segments, touch.cells, stored_cells)
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise _unreadable(book.dataset) from error
    book.account.segments = segments


def _compare_cells(
    connection: Connection,
    book: Book,
    segments: Iterable[Segment],
    cells: Sequence[str],
    stored: Mapping[int, Mapping[str, str]],
) -> None:
    """Hold cells, and the absence of cells, against the digests of their segments."""
    places = [(cell, place_of(cell)) for cell in cells]
    for segment in segments:
        here = stored[segment.start]
        marks = {p: mark_of(here[cell]) if cell in here else None for cell, p in places}
        segment.tree = Tree(book.id, segment.start, segment.root)
        if segment.tree.differing(connection, marks):
            raise digests.edited(f" of dataset {book.dataset!r}")


def _cells(connection: Connection, span: dict[str, Any], cells: Sequence[str]) -> Iterable[Any]:
    """Stored cells in a span of time, those in ``cells`` among them."""
    for size, statement in _THESE_CELLS.items():
        if len(cells) <= size:
            padded = [*cells, *[cells[-1]] * (size - len(cells))]
            return statement.all(connection, span | {f"cell{i}": c for i, c in enumerate(padded)})
    return _ALL_CELLS.all(connection, span)


def open_book(connection: Connection, book: Book) -> Book:
    """Store a new account."""
    book.id = _NEXT_ID.one(connection, {}).id
    row = _row(book)
    _ADD.run(connection, {"id": book.id, **row})
    segments = book.account.segments
    for segment in segments:
        tree = Tree(book.id, segment.start)
        tree.put(connection, _cell_marks(segment))
        segment.root = tree.save(connection)
    _ADD_SEGMENT.run(connection, [{"account": book.id, **_segment(s)} for s in segments])
    _ADD_CELL.run(
        connection,
        [
            {"account": book.id, "start": s.start, "cell": cell, "own": frontier.write((total,))}
            for s in segments
            for cell, total in s.own.items()
        ],
    )
    chain.totals(connection).put(connection, dict([_account_digest(row)]))
    _note_segments(connection, book, segments)
    return book


def save(connection: Connection, books: Iterable[Book]) -> None:
    """Write back what changed in accounts: budgets, shapes, totals; not their segments."""
    rows = [(book.id, _row(book)) for book in books]
    _SAVE.run(connection, [{"which": number, **row} for number, row in rows])
    marks = dict(_account_digest(row) for _, row in rows)
    chain.totals(connection).put(connection, marks)


def _note_segments(connection: Connection, book: Book, segments: Iterable[Segment]) -> None:
    marks = dict(_segment_digest(book, _segment(segment)) for segment in segments)
    chain.totals(connection).put(connection, marks)


def save_segments(
    connection: Connection, book: Book, changed: Iterable[Segment], touch: Touch, known: set[Any]
) -> None:
    """Write back segments that `Account.apply` changed. ``known``: the cells that were loaded."""
    changed = list(changed)
    which = book.id
    stored = {segment.start: segment for segment in changed if segment.cut_from is None}
    for segment in changed:
        if segment.cut_from is not None:
            origin = stored[segment.cut_from]
            tree = origin.tree or Tree(which, origin.start, origin.root)
            segment.tree = tree.copied(connection, segment.start)
            _COPY.run(
                connection, {"which": which, "new": segment.start, "origin": segment.cut_from}
            )
    fresh, stale = [], []
    for segment in changed:
        if not touch.cells or not touch.start <= segment.start < touch.end:
            continue
        begun = segment.start if segment.cut_from is None else segment.cut_from
        marks = {}
        for cell in touch.cells:
            own = frontier.write((segment.own[cell],))
            marks[place_of(cell)] = mark_of(own)
            if (begun, cell) in known:
                stale.append({"which": which, "at": segment.start, "name": cell, "own": own})
            else:
                fresh.append({"account": which, "start": segment.start, "cell": cell, "own": own})
        tree = segment.tree or Tree(which, segment.start, segment.root)
        tree.put(connection, marks)
        segment.root = tree.save(connection)
    cut = [{"account": which, **_segment(s)} for s in changed if s.cut_from is not None]
    _ADD_SEGMENT.run(connection, cut)
    whole = [{"which": which, "at": s.start, **_segment(s)} for s in stored.values()]
    _SAVE_SEGMENT.run(connection, whole)
    _SAVE_CELL.run(connection, stale)
    _ADD_CELL.run(connection, fresh)
    _note_segments(connection, book, changed)


def rebuild(connection: Connection, books: Books) -> str:
    """Replace every stored account by what a replay gave; the digest of all of them."""
    for table in (CELLS, SEGMENTS, ACCOUNTS):
        Statement(f"DELETE FROM {table}").run(connection, {})
    digests.forget(connection)
    tree = connection.tree = Tree()
    for book in books.books.values():
        open_book(connection, book)
    return tree.root


def root_of(books: Iterable[Book]) -> str:
    """The digest of accounts that are held in full, without storing anything."""
    rows: dict[bytes, bytes] = {}
    for book in books:
        rows |= [_account_digest(_row(book))]
        for segment in book.account.segments:
            cells = Tree().put(_NOWHERE, _cell_marks(segment))
            rows |= [_segment_digest(book, _segment(segment) | {"cells": cells})]
    return Tree().put(_NOWHERE, rows)


def load_all(connection: Connection) -> dict[tuple[str, str], Book]:
    """Every account with all of its segments and cells."""
    books = {}
    for book in every(connection, compare=False):
        load(connection, book, Touch(cells=None), compare=False)
        segments = {segment.start: segment for segment in book.account.segments}
        for row in _OF_ACCOUNT.stream(connection, {"which": book.id}):
            try:
                segments[row.start].own[row.cell] = frontier.read_one(row.own)
            except (ValueError, KeyError, ZeroDivisionError) as error:
                raise _unreadable(book.dataset) from error
        books[book.dataset, book.analyst] = book
    return books


def compare_all(connection: Connection) -> None:
    """Hold every stored row against the digests."""
    for book in every(connection):
        load(connection, book, Touch(cells=None))
        for segment in book.account.segments:
            rows = _OF_SEGMENT.all(connection, {"which": book.id, "at": segment.start})
            own = {row.cell: row.own for row in rows}
            _compare_cells(connection, book, [segment], list(own), {segment.start: own})


def _row(book: Book) -> dict[str, Any]:
    partition = book.shape.partition
    return {
        "dataset": book.dataset,
        "analyst": book.analyst,
        "epsilon": None if book.epsilon is None else str(book.epsilon),
        "delta": str(book.delta),
        "unit": book.shape.unit,
        "partition": None if partition is None else json.dumps(partition),
        "always": frontier.write((book.account.always,)),
        "worst": frontier.write(book.account.worst),
        "lost": None if book.lost is None else frontier.write((book.lost,)),
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "start": segment.start,
        "end": segment.end,
        "base": frontier.write((segment.base,)),
        "peak": frontier.write(segment.peak),
        "cells": segment.root,
    }
