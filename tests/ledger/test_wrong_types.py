"""Values of another type than their column's, as a damaged disk leaves them: SQLite reads them."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged, LedgerError
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.storage.schema import COLUMNS, EVENTS, MIGRATIONS, WITNESSES
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

OWN = {"id", "place"}  # numbers of rows, which SQLite keeps apart from their values
WRONG: dict[type, Any] = {str: b"\x00\xff", int: "x", bytes: "x"}
ONE_ROW = {EVENTS: "seq = 2", MIGRATIONS: "place = 1"}  # with columns that are different in each
HELD = [
    (table, column, declared.reads)
    for table, columns in COLUMNS.items()
    for column, declared in columns.items()
    if table != WITNESSES and column not in OWN and (table, column) != (EVENTS, "seq")
]


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a charge, closed."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25", None, ["north"]), DOUBLING)
    return folder / "ward.ledger"


def spoilt(path: Path, table: str, column: str, kind: type) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        where = ONE_ROW.get(table, "TRUE")
        text = f'UPDATE {table} SET "{column}" = ? WHERE {where}'  # noqa: S608
        changed = raw.execute(text, (WRONG[kind],))
        assert changed.rowcount > 0


READINGS: list[Callable[[Ledger, Path], object]] = [
    lambda ledger, _: ledger.standings("ward", DOUBLING),
    lambda ledger, _: list(ledger.history("ward")),
    lambda ledger, _: list(ledger.events()),
    lambda ledger, _: ledger.positions(),
    lambda ledger, folder: ledger.export(folder / "events.jsonl"),
    lambda ledger, folder: ledger.backup(folder / "copy.ledger"),
    lambda ledger, _: ledger.charge(charge("0.25"), DOUBLING),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("table", "column", "kind"), HELD)
def test_a_value_of_another_type_is_noticed(
    path: Path, folder: Path, table: str, column: str, kind: type
) -> None:
    """Whoever comes across it says so in words; who does not is right, and `verify` finds it."""
    spoilt(path, table, column, kind)
    for number, read in enumerate(READINGS):
        within = folder / str(number)
        within.mkdir()
        with suppress(LedgerError), open_ledger(path) as ledger:
            read(ledger, within)
    sound = False
    with suppress(LedgerDamaged), open_ledger(path) as ledger:
        sound = ledger.verify().sound
    assert not sound


@pytest.mark.parametrize(
    ("table", "column", "read"), [("takifugu_accounts", "dataset", 3), (EVENTS, "hash", 4)]
)
def test_such_a_value_is_damage_and_is_not_quoted(
    path: Path, folder: Path, table: str, column: str, read: int
) -> None:
    spoilt(path, table, column, str)
    with raises(LedgerDamaged, reason="storage") as told, open_ledger(path) as ledger:
        READINGS[read](ledger, folder)
    assert str(told.value) == (
        f"ledger {str(path)!r}: a row has a value that cannot have been written there; nothing was"
        " released. Run `takifugu ledger verify`, and restore a copy."
    )
    assert not (folder / "events.jsonl").exists()
