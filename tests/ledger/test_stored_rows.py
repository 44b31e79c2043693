"""Every row that the accounts of a ledger are stored in: the form that later versions read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.ledger import Ledger
from takifugu.ledger.charge_values import BEGINNING, END
from takifugu.ledger.storage.database import Connection
from takifugu.ledger.storage.digest_tree import EMPTY
from tests.ledger.stored_books import ledger_of_books

pytestmark = pytest.mark.nightly


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
