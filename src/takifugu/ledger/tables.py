"""The tables of accounts: a copy of what a replay of the events would give.

A charge reads and writes only the rows it touches, so its cost does not grow with the number of
events before it. All of this happens in the transaction that writes the event.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from takifugu.errors import LedgerDamaged
from takifugu.ledger import frontier
from takifugu.ledger.accounts import Account, Segment, Shape, Touch
from takifugu.ledger.books import WHOLE, Book, Books
from takifugu.ledger.schema import ACCOUNTS, CELLS, SEGMENTS
from takifugu.ledger.statement import Statement
from takifugu.ledger.values import rational

_NAMED = Statement(
    select(ACCOUNTS).where(
        ACCOUNTS.c.dataset == bindparam("named"),
        ACCOUNTS.c.analyst.in_((bindparam("first"), bindparam("second"))),
    )
)
_NEXT_ID = select(func.coalesce(func.max(ACCOUNTS.c.id), 0) + 1)
_OF_BUDGET = ("epsilon", "delta", "unit", "partition")
_OF_TOTALS = ("always", "worst")
_SAVE = Statement(
    update(ACCOUNTS).where(ACCOUNTS.c.id == bindparam("which")), *_OF_BUDGET, *_OF_TOTALS
)
_COVER = Statement(
    select(SEGMENTS)
    .where(
        SEGMENTS.c.account == bindparam("which"),
        SEGMENTS.c.start < bindparam("until"),
        SEGMENTS.c.start
        >= select(func.max(SEGMENTS.c.start))
        .where(SEGMENTS.c.account == bindparam("which"), SEGMENTS.c.start <= bindparam("since"))
        .scalar_subquery(),
    )
    .order_by(SEGMENTS.c.start)
)
_CELLS = select(CELLS).where(
    CELLS.c.account == bindparam("which"),
    CELLS.c.start >= bindparam("since"),
    CELLS.c.start < bindparam("until"),
)
_THESE_CELLS = {
    size: Statement(_CELLS.where(CELLS.c.cell.in_([bindparam(f"cell{i}") for i in range(size)])))
    for size in (1, 20, 500)
}  # for so many cells at most; for more, the segments are read in full
_COPY = Statement(
    insert(CELLS).from_select(
        ["account", "start", "cell", "own"],
        select(
            CELLS.c.account, bindparam("new", type_=CELLS.c.start.type), CELLS.c.cell, CELLS.c.own
        ).where(CELLS.c.account == bindparam("which"), CELLS.c.start == bindparam("origin")),
    )
)
_SEGMENT_VALUES = ("end", "base", "peak")
_ADD_SEGMENT = Statement(insert(SEGMENTS), "account", "start", *_SEGMENT_VALUES)
_SAVE_SEGMENT = Statement(
    update(SEGMENTS).where(
        SEGMENTS.c.account == bindparam("which"), SEGMENTS.c.start == bindparam("at")
    ),
    *_SEGMENT_VALUES,
)
_ADD_CELL = Statement(insert(CELLS), "account", "start", "cell", "own")
_SAVE_CELL = Statement(
    update(CELLS).where(
        CELLS.c.account == bindparam("which"),
        CELLS.c.start == bindparam("at"),
        CELLS.c.cell == bindparam("name"),
    ),
    "own",
)


def find(connection: Connection, dataset: str, analyst: str = WHOLE) -> dict[str, Book]:
    """The accounts of the whole dataset and of ``analyst``, without their segments."""
    names = {"named": dataset, "first": WHOLE, "second": analyst}
    return {row.analyst: _book(row) for row in _NAMED.all(connection, names)}


def every(connection: Connection) -> list[Book]:
    """All accounts, without their segments."""
    ordered = select(ACCOUNTS).order_by(ACCOUNTS.c.dataset, ACCOUNTS.c.analyst)
    return [_book(row) for row in connection.execute(ordered)]


def _book(row: Any) -> Book:
    try:
        account = Account(frontier.read_one(row.always), frontier.read(row.worst), [])
        budget = None if row.epsilon is None else rational(row.epsilon)
        partition = None if row.partition is None else tuple(json.loads(row.partition))
        delta = rational(row.delta or "0")
        shape = Shape(row.unit, partition)
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise _unreadable(row.dataset) from error
    return Book(row.dataset, row.analyst, budget, delta, shape, account, row.id)


def _unreadable(dataset: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the totals of dataset {dataset!r} cannot be read; nothing was released. Run"
        " `takifugu ledger verify`; if the events are sound, rebuild the totals"
    )


def load(connection: Connection, book: Book, touch: Touch) -> None:
    """Read the segments that ``touch`` overlaps, and its cells in them (all, if it names none)."""
    if not book.id:
        return
    span = {"which": book.id, "since": touch.start, "until": touch.end}
    try:
        segments = [
            Segment(row.start, row.end, frontier.read_one(row.base), frontier.read(row.peak))
            for row in _COVER.all(connection, span)
        ]
        if not segments or segments[0].start > touch.start or segments[-1].end < touch.end:
            raise ValueError("a gap in time")
        by_start = {segment.start: segment for segment in segments}
        span["since"] = segments[0].start
        if touch.cells is not None:
            wanted = set(touch.cells)
            for row in _cells(connection, span, touch.cells):
                if row.cell in wanted:
                    by_start[row.start].own[row.cell] = frontier.read_one(row.own)
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise _unreadable(book.dataset) from error
    book.account.segments = segments


def _cells(connection: Connection, span: dict[str, Any], cells: Sequence[str]) -> Iterable[Any]:
    """Stored cells in a span of time, those in ``cells`` among them."""
    for size, statement in _THESE_CELLS.items():
        if len(cells) <= size:
            padded = [*cells, *[cells[-1]] * (size - len(cells))]
            return statement.all(connection, span | {f"cell{i}": c for i, c in enumerate(padded)})
    return connection.execute(_CELLS, span)


def open_book(connection: Connection, book: Book) -> Book:
    """Store a new account."""
    book.id = connection.execute(_NEXT_ID).scalar_one()
    connection.execute(insert(ACCOUNTS), {"id": book.id, **_row(book)})
    segments = book.account.segments
    _ADD_SEGMENT.run(connection, [_segment(book.id, segment) for segment in segments])
    cells = [
        {"account": book.id, "start": segment.start, "cell": cell, "own": frontier.write((own,))}
        for segment in segments
        for cell, own in segment.own.items()
    ]
    _ADD_CELL.run(connection, cells)
    return book


def save(connection: Connection, books: Iterable[Book]) -> None:
    """Write back what changed in accounts: budgets, shapes, totals; not their segments."""
    _SAVE.run(connection, [{"which": book.id, **_row(book)} for book in books])


def save_segments(
    connection: Connection, book: Book, changed: Iterable[Segment], touch: Touch, known: set[Any]
) -> None:
    """Write back segments that `Account.apply` changed. ``known``: the cells that were loaded."""
    changed = list(changed)
    which = book.id
    new = [segment for segment in changed if segment.cut_from is not None]
    for segment in new:
        _ADD_SEGMENT.run(connection, _segment(which, segment))
        _COPY.run(connection, {"which": which, "new": segment.start, "origin": segment.cut_from})
    old = [
        {"which": which, "at": segment.start, **_segment_values(segment)}
        for segment in changed
        if segment.cut_from is None
    ]
    _SAVE_SEGMENT.run(connection, old)
    fresh, stale = [], []
    for segment in changed:
        if not touch.start <= segment.start < touch.end:
            continue
        origin = segment.start if segment.cut_from is None else segment.cut_from
        for cell in touch.cells or ():
            own = frontier.write((segment.own[cell],))
            if (origin, cell) in known:
                stale.append({"which": which, "at": segment.start, "name": cell, "own": own})
            else:
                fresh.append({"account": which, "start": segment.start, "cell": cell, "own": own})
    _SAVE_CELL.run(connection, stale)
    _ADD_CELL.run(connection, fresh)


def rebuild(connection: Connection, books: Books) -> None:
    """Replace every stored account by what a replay gave."""
    for table in (CELLS, SEGMENTS, ACCOUNTS):
        connection.execute(delete(table))
    for book in books.books.values():
        open_book(connection, book)


def load_all(connection: Connection) -> dict[tuple[str, str], Book]:
    """Every account with all of its segments and cells."""
    found = {}
    for book in every(connection):
        load(connection, book, Touch(cells=None))
        segments = {segment.start: segment for segment in book.account.segments}
        for row in connection.execute(select(CELLS).where(CELLS.c.account == book.id)):
            try:
                segments[row.start].own[row.cell] = frontier.read_one(row.own)
            except (ValueError, KeyError, ZeroDivisionError) as error:
                raise _unreadable(book.dataset) from error
        found[book.dataset, book.analyst] = book
    return found


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
    }


def _segment(account: int, segment: Segment) -> dict[str, Any]:
    return {"account": account, "start": segment.start, **_segment_values(segment)}


def _segment_values(segment: Segment) -> dict[str, Any]:
    return {
        "end": segment.end,
        "base": frontier.write((segment.base,)),
        "peak": frontier.write(segment.peak),
    }
