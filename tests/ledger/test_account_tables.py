"""Stored accounts: every row, what is read of them, and what a release changes."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidCharge
from takifugu.ledger import Ledger
from takifugu.ledger.accounts.account import WHOLE, Book, Books, Segment, Touch, contents
from takifugu.ledger.accounts.frontier import ZERO
from takifugu.ledger.entries_read import BEGINNING, END
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.digest_tree import EMPTY
from takifugu.ledger.storage.statement import Connection, transaction_state
from takifugu.losses import Approximate, Concentrated, Loss, Pure, Total
from tests.ledger.stored_books import books, ledger_of_books, store_books
from tests.oracles.digests import root as oracle_root
from tests.raising import raises

pytestmark = pytest.mark.nightly


def eps(value: int | str) -> Total:
    """A total of ε alone."""
    return Total(Fraction(value))


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    with ledger_of_books(folder) as made:
        yield made


@pytest.fixture
def connection(ledger: Ledger) -> Iterator[Connection]:
    with ledger._store.unguarded() as made:
        yield made


def rows(connection: Connection, table: str, order: str) -> list[tuple[Any, ...]]:
    text = f"SELECT * FROM takifugu_{table} ORDER BY {order}"  # noqa: S608
    return list(connection.raw.execute(text).fetchall())


def all_contents(found: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one.dataset, one.analyst): contents(one) for one in found}


# --- rows ---


def test_every_row_of_every_table(connection: Connection) -> None:
    worst = "1/7 0 1/5;185/168 1/100 0"
    assert rows(connection, "accounts", "id") == [
        (1, "ward", "", "7/3", "1/1000", "step", '["age", "country"]', "1/7 0 0", worst, None),
        (2, "ward", "ana", "2", "0", None, None, "0 0 0", "1/9 0 0", None),
        (3, "clinic", "", None, "0", "day", None, *["5 1/50 1/6"] * 3),
    ]
    both = "5/6 1/100 0"
    segments = rows(connection, "segments", "account, start")
    assert [row[:5] for row in segments] == [
        (1, BEGINNING, 0, "0 0 0", "0 0 0"),
        (1, 0, 4, "1/8 0 0", "0 0 0"),
        (1, 4, 6, "1/8 0 0", both),
        (1, 6, 9, "1/8 0 0", "1/2 0 0"),
        (1, 9, 20, "0 0 0", "1/2 0 0"),
        (1, 20, 30, "0 0 0", "0 0 0"),
        (1, 30, END, "0 0 1/5", "0 0 0"),
        (2, BEGINNING, 4, "0 0 0", "0 0 0"),
        (2, 4, 6, "0 0 0", "1/9 0 0"),
        (2, 6, END, "0 0 0", "0 0 0"),
        (3, BEGINNING, END, "0 0 0", "0 0 0"),
    ]
    with_cells = {(1, 4), (1, 6), (1, 9), (2, 4)}
    assert {row[:2] for row in segments if row[5] != EMPTY} == with_cells
    assert rows(connection, "cells", "account, start, cell") == [
        *((1, 4, "a", "1/2 0 0"), (1, 4, "b", both)),
        *((1, start, cell, "1/2 0 0") for start in (6, 9) for cell in "ab"),
        (2, 4, "b", "1/9 0 0"),
    ]
    trees = {row[:2] for row in rows(connection, "digests", "path")}
    assert trees == with_cells | {(0, 0)}  # of cells, and of all accounts and segments


def test_what_is_stored_is_read_again(connection: Connection) -> None:
    made = books()
    expected = all_contents(made.books.values())
    found = tables.load_all(connection)
    assert {name: contents(book) for name, book in found.items()} == expected
    assert {name: book.id for name, book in found.items()} == {
        ("ward", ""): 1,
        ("ward", "ana"): 2,
        ("clinic", ""): 3,
    }
    without = {name: {**one, "segments": []} for name, one in expected.items()}
    every = tables.every(connection)
    assert [(one.dataset, one.analyst) for one in every] == sorted(expected)
    assert all_contents(every) == without
    for who, names in (("ana", {"", "ana"}), ("bob", {""}), (WHOLE, {""})):
        some = tables.find(connection, "ward", who)
        assert some.keys() == names
        for name, book in some.items():
            assert contents(book) == without["ward", name] and book.id
    assert tables.find(connection, "ward").keys() == {""} != tables.find(connection, "none").keys()
    assert tables.find(connection, "none", "ana") == {}
    tables.compare_all(connection)


def test_the_digest_of_accounts_is_the_same_stored_or_not(connection: Connection) -> None:
    made = books()
    assert tables.root_of(made.books.values()) == chain.totals(connection).root
    assert chain.head(connection).seq == 2
    del made.books["clinic", WHOLE]  # what the plain reference knows nothing of
    assert tables.root_of(made.books.values()) == oracle_root(made)
    assert tables.root_of(()) == EMPTY


def test_a_rebuilt_ledger_has_nothing_of_what_was_there(ledger: Ledger) -> None:
    less = Books()
    less.book("hall", WHOLE).account.apply(Touch(1, 2, ("x",)), Pure(1))
    with ledger._store.writing() as connection:
        last = chain.head(connection, lock=True)
        root = tables.rebuild(connection, less)
        assert root == oracle_root(less) == chain.totals(connection).root
        assert transaction_state(connection).tree is chain.totals(connection)
        chain.append(connection, last, "totals", {"migration": "none"}, ledger._time())
    with ledger._store.unguarded() as connection:
        assert [row[:3] for row in rows(connection, "accounts", "id")] == [(1, "hall", "")]
        assert len(rows(connection, "segments", "start")) == 3
        assert rows(connection, "cells", "cell") == [(1, 1, "x", "1 0 0")]
        assert {row[0] for row in rows(connection, "digests", "path")} == {0, 1}
        tables.compare_all(connection)


# --- a part of an account ---


@pytest.mark.parametrize(
    ("start", "end", "read"),
    [
        (BEGINNING, END, [BEGINNING, 0, 4, 6, 9, 20, 30]),
        (4, 6, [4]),
        (4, 7, [4, 6]),
        (3, 6, [0, 4]),
        (5, 9, [4, 6]),
        (0, 1, [0]),
        (-1, 0, [BEGINNING]),
        (31, END, [30]),
        (29, 30, [20]),
        (BEGINNING, 4, [BEGINNING, 0]),
    ],
)
@pytest.mark.parametrize("cells", [None, ("a",), ("b", "none"), ("none",)])
def test_the_segments_and_cells_that_a_release_touches_are_read(
    connection: Connection, start: int, end: int, read: list[int], cells: tuple[str, ...] | None
) -> None:
    whole = books().books["ward", WHOLE].account
    for compare in (False, True):
        book = tables.find(connection, "ward")[WHOLE]
        tables.load(connection, book, Touch(start, end, cells), compare=compare)
        found = book.account.segments
        assert [one.start for one in found] == read
        for one in found:
            (same,) = (two for two in whole.segments if two.start == one.start)
            assert (one.end, one.base, one.peak) == (same.end, same.base, same.peak)
            own = {c: total for c, total in same.own.items() if c in (cells or ())}
            assert (one.own, one.cut_from) == (own, None)
            assert (one.tree is not None) is (compare and cells is not None)
            assert (one.root == EMPTY) is (not same.own)


def test_of_very_many_cells_those_that_are_asked_for_are_read(ledger: Ledger) -> None:
    made = Books()
    names = tuple(f"c{place}" for place in range(505))
    made.book("ward", WHOLE).account.apply(Touch(0, 2, names), Pure(1))
    store_books(ledger, made)
    with ledger._store.unguarded() as connection:
        book = tables.find(connection, "ward")[WHOLE]
        asked = (*names[2:], "new")
        tables.load(connection, book, Touch(0, 1, asked))
        (segment,) = book.account.segments
        assert segment.own == dict.fromkeys(names[2:], eps(1))


def test_an_account_that_is_not_stored_has_nothing_to_read(connection: Connection) -> None:
    book = Book("ward", "new")
    before = book.account.segments
    tables.load(connection, book, Touch(1, 2))
    assert book.account.segments is before


@pytest.mark.parametrize(
    ("many", "named"), [(1, 1), (2, 20), (20, 20), (21, 500), (500, 500), (501, 0)]
)
def test_a_statement_names_the_cells_of_all_but_the_largest_charges(many: int, named: int) -> None:
    """A few statements for all sizes: the last cell is named again until one is full."""
    asked = list[Any]()
    cursor = SimpleNamespace(
        execute=lambda text, values: asked.append((text, values)),
        fetchall=list,
        description=[("cell",)],
        close=lambda: asked.append("closed"),
    )
    connection = Connection(SimpleNamespace(cursor=lambda: cursor), True)
    span = {"which": 3, "since": -4, "until": 5}
    cells = [f"c{place}" for place in range(many)]
    assert tables._cells(connection, span, cells) == []
    (text, values), closed = asked
    assert closed == "closed" and text.count(":cell") == named
    assert text.startswith("SELECT account, start, cell, own FROM takifugu_cells WHERE")
    padded = (cells + cells[-1:] * named)[:named]
    assert values == span | {f"cell{place}": cell for place, cell in enumerate(padded)}


# --- changes ---

STEPS: tuple[tuple[Touch, Loss], ...] = (
    (Touch(5, 8, ("b", "c")), Pure("1/16")),
    (Touch(6, 8), Concentrated("1/17")),
    (Touch(2, 25, ("a", "d")), Pure("1/18")),
    (Touch(BEGINNING, 6, ("b",)), Approximate("1/19", "1/20")),
    (Touch(7, END), Pure("1/21")),
    (Touch(5, 6, ("b",)), Pure("1/22")),
    (Touch(), Pure("1/23")),
)


@pytest.mark.parametrize("compare", [True, False])
def test_what_a_release_changes_is_stored(ledger: Ledger, compare: bool) -> None:
    """With the cells compared while they are read, or not: the digests are then read later."""
    expected = books()
    for touch, loss in STEPS:
        with ledger._store.writing() as connection:
            last = chain.head(connection, lock=True)
            found = tables.find(connection, "ward", "ana")
            for name in (WHOLE, "ana"):
                book = found[name]
                changed = changed_by(connection, book, touch, loss, compare)
                if changed:
                    tables.save_segments(connection, book, *changed)
                expected.books["ward", name].account.apply(touch, loss)
            tables.save(connection, found.values())
            assert chain.totals(connection).root == tables.root_of(expected.books.values())
            chain.append(connection, last, "totals", {"migration": "none"}, ledger._time())
        check_stored(ledger, expected)


def check_stored(ledger: Ledger, expected: Books) -> None:
    """Everything is stored as it should be, and fits its digests."""
    with ledger._store.unguarded() as connection:
        stored = all_contents(tables.load_all(connection).values())
        assert stored == all_contents(expected.books.values())
        tables.compare_all(connection)


def changed_by(
    connection: Connection, book: Book, touch: Touch, loss: Loss, compare: bool
) -> tuple[Sequence[Segment], Touch, set[Any]] | None:
    """What `save_segments` is given after a release; None if it changes no segment."""
    if not touch.everything:
        tables.load(connection, book, touch, compare=compare)
    known = {(one.start, cell) for one in book.account.segments for cell in one.own}
    changed = book.account.apply(touch, loss)
    return (changed, touch, known) if changed else None


def test_a_new_account_gets_the_next_number_and_is_noted(ledger: Ledger) -> None:
    expected = books()
    with ledger._store.writing() as connection:
        last = chain.head(connection, lock=True)
        for name in ("bob", "eve"):
            expected.book("ward", name).account.apply(Touch(1, 3, ("z",)), Pure("1/3"))
            new = Book("ward", name)
            new.account.apply(Touch(1, 3, ("z",)), Pure("1/3"))
            assert tables.open_book(connection, new) is new
        assert new.id == 5
        assert chain.totals(connection).root == tables.root_of(expected.books.values())
        chain.append(connection, last, "totals", {"migration": "none"}, ledger._time())
    check_stored(ledger, expected)


def test_a_name_that_no_database_could_look_for_is_refused(connection: Connection) -> None:
    for name in ("a\0b", "\ud800"):
        with raises(InvalidCharge, field="dataset"):
            tables.find(connection, name)
        with raises(InvalidCharge, field="analyst"):
            tables.find(connection, "ward", name)
    tables.refuse_unaskable(dataset="", analyst="x" * 10_000)  # nobody has it: that is all


def test_all_totals_of_an_account_by_hand() -> None:
    """What the tests above store, worked out for each step and cell alone."""
    account = books().books["ward", WHOLE].account
    for step, cell in itertools.product((-9, 0, 4, 5, 6, 8, 9, 19, 20, 29, 30, 99), "abz"):
        epsilon = Fraction(1, 7)
        epsilon += Fraction(1, 8) if 0 <= step < 9 else 0
        epsilon += Fraction(1, 2) if 4 <= step < 20 and cell in "ab" else 0
        both = 4 <= step < 6 and cell == "b"
        epsilon += Fraction(1, 3) if both else 0
        delta, rho = Fraction(both, 100), Fraction(step >= 30, 5)
        (found,) = account.on(Touch(step, step + 1, (cell,)))
        assert found == Total(epsilon, delta, rho)
    assert ZERO not in account.worst
