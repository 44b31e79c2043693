"""Accounts that were changed behind the ledger: nothing is read from them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.account import WHOLE, Touch
from takifugu.ledger.charge_values import BEGINNING
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection
from tests.contracts.ledger import tamper
from tests.ledger.postgres import Cluster
from tests.ledger.stored_books import edit, ledger_of_books
from tests.raising import raises

Reading = Callable[[Connection], object]


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    with ledger_of_books(folder) as made:
        yield made


def finding(connection: Connection) -> object:
    return tables.find(connection, "ward", "ana")


def loading(touch: Touch) -> Reading:
    def load(connection: Connection) -> None:
        book = tables.find(connection, "ward")[WHOLE]
        tables.load(connection, book, touch)

    return load


@pytest.mark.parametrize("analyst", ["", "ana"])
@pytest.mark.parametrize(
    "value", ["epsilon = '9'", "delta = '1/3'", "lost = '1 0 0'", "unit = 'x'"]
)
def test_an_edited_account_is_not_used(ledger: Ledger, analyst: str, value: str) -> None:
    edit(ledger, f"UPDATE takifugu_accounts SET {value} WHERE analyst = '{analyst}'")  # noqa: S608
    for reads in (finding, tables.every, tables.compare_all):
        with raises(LedgerDamaged, reason="totals"), ledger._store.unguarded() as connection:
            reads(connection)
    with ledger._store.unguarded() as connection:
        assert len(tables.every(connection, compare=False)) == 3  # to say what is wrong
        assert len(tables.load_all(connection)) == 3


def test_an_account_that_is_gone_or_new_is_not_used(ledger: Ledger) -> None:
    edit(ledger, "UPDATE takifugu_accounts SET analyst = 'eve' WHERE analyst = 'ana'")
    for who in ("ana", "eve"):
        with raises(LedgerDamaged, reason="totals") as told, ledger._store.unguarded() as one:
            tables.find(one, "ward", who)
        assert "'ward'" in str(told.value)
    with ledger._store.unguarded() as connection:
        assert tables.find(connection, "ward", "bob").keys() == {WHOLE}


@pytest.mark.parametrize("start", [BEGINNING, 0, 4, 6, 9, 20, 30])
def test_a_segment_that_is_gone_is_a_gap_in_time(ledger: Ledger, start: int) -> None:
    edit(ledger, f"DELETE FROM takifugu_segments WHERE account = 1 AND start = {start}")  # noqa: S608
    for compare in (False, True):
        with ledger._store.unguarded() as connection:
            book = tables.find(connection, "ward")[WHOLE]
            with raises(LedgerDamaged, reason="totals", dataset="ward"):
                tables.load(connection, book, Touch(), compare=compare)
            assert book.account.segments == []
    with raises(LedgerDamaged, reason="totals"), ledger._store.unguarded() as connection:
        tables.load_all(connection)


@pytest.mark.parametrize("value", ['"end" = 5', "base = '1 0 0'", "peak = '0 0 0'", "cells = ''"])
def test_an_edited_segment_is_not_used(ledger: Ledger, value: str) -> None:
    edit(ledger, f"UPDATE takifugu_segments SET {value} WHERE start = 4")  # noqa: S608
    for reads in (loading(Touch(4, 5)), loading(Touch(4, 5, ("a",))), tables.compare_all):
        with raises(LedgerDamaged, reason="totals"), ledger._store.unguarded() as connection:
            reads(connection)
    with ledger._store.unguarded() as connection:
        loading(Touch(0, 4))(connection)  # the others are as they were
        if value.startswith(("base", "peak")):  # to say what is wrong, all is read as it is
            assert len(tables.load_all(connection)["ward", WHOLE].account.segments) == 7


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE takifugu_cells SET own = '1/3 0 0' WHERE start = 6 AND cell = 'a'",
        "INSERT INTO takifugu_cells VALUES (1, 6, 'z', '0 0 0')",
    ],
)
def test_an_edited_or_added_cell_is_not_used(ledger: Ledger, change: str) -> None:
    edit(ledger, change)
    asked = Touch(8, 10, ("b", "z", "a"))
    for reads in (loading(asked), tables.compare_all):
        with raises(LedgerDamaged, reason="totals"), ledger._store.unguarded() as connection:
            reads(connection)
    with ledger._store.unguarded() as connection:
        loading(Touch(8, 10, ("b",)))(connection)
        loading(Touch(9, 10, ("a", "z")))(connection)
        book = tables.load_all(connection)["ward", WHOLE]
        assert {"a", "b"} <= book.account.segments[3].own.keys()


def test_a_cell_that_is_gone_is_missed(ledger: Ledger) -> None:
    edit(ledger, "DELETE FROM takifugu_cells WHERE start = 9 AND cell = 'b'")
    with raises(LedgerDamaged, reason="totals"), ledger._store.unguarded() as connection:
        loading(Touch(10, 11, ("a", "b")))(connection)
    with ledger._store.unguarded() as connection:
        loading(Touch(10, 11, ("a",)))(connection)


@pytest.mark.parametrize(
    ("change", "dataset"),
    [
        ("UPDATE takifugu_cells SET start = 5 WHERE start = 4", "ward"),
        ("UPDATE takifugu_cells SET own = '1/0 0 0' WHERE account = 2", "ward"),
        ("UPDATE takifugu_accounts SET lost = 'x' WHERE id = 3", "clinic"),
        ("UPDATE takifugu_accounts SET \"partition\" = '7' WHERE id = 1", "ward"),
        ("UPDATE takifugu_accounts SET delta = '1/0' WHERE id = 3", "clinic"),
        ("UPDATE takifugu_segments SET base = 'x' WHERE account = 3", "clinic"),
    ],
)
def test_what_cannot_be_read_is_damage_of_its_dataset(
    ledger: Ledger, change: str, dataset: str
) -> None:
    edit(ledger, change)
    with (
        raises(LedgerDamaged, reason="totals", dataset=dataset) as told,
        ledger._store.unguarded() as connection,
    ):
        tables.load_all(connection)
    assert f"{dataset!r} cannot be read" in str(told.value) and told.value.__cause__ is not None


FOREIGN = {
    "trigger 'forget'": "CREATE TRIGGER forget AFTER INSERT ON takifugu_events WHEN NEW.kind ="
    " 'charge' BEGIN UPDATE takifugu_accounts SET worst = worst; END",
    "view 'shown'": "CREATE VIEW shown AS SELECT * FROM takifugu_events",
    "table 'beside'": "CREATE TABLE beside (x)",
    "index 'faster'": "CREATE INDEX faster ON takifugu_events (hash)",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_was_added_to_the_file_of_a_ledger_is_found(folder: Path, what: str) -> None:
    """A trigger can change what is written, a view what is read, while every hash agrees."""
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(FOREIGN[what])
    with open_ledger(path, inspect=True) as ledger:
        (problem,) = ledger.verify().problems
    assert problem.reason == "foreign" and what in problem.message
    if what.startswith(("trigger", "view")):
        with raises(LedgerDamaged, reason="foreign"):
            open_ledger(path)
    else:
        open_ledger(path).close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("added", "what"),
    [
        ("CREATE TRIGGER forget BEFORE INSERT ON takifugu_events FOR EACH ROW"
         " EXECUTE FUNCTION suppress_redundant_updates_trigger()", "trigger 'forget'"),
        ("CREATE RULE forget AS ON UPDATE TO takifugu_accounts DO INSTEAD NOTHING",
         "rule 'forget'"),
        ("CREATE VIEW takifugu_shown AS SELECT * FROM takifugu_events", "view 'takifugu_shown'"),
        ("ALTER TABLE takifugu_cells ENABLE ROW LEVEL SECURITY", "row security 'takifugu_cells'"),
    ],
)  # fmt: skip
def test_what_was_added_to_the_tables_of_a_server_is_found(
    server: Cluster, added: str, what: str
) -> None:
    """In the schema of the ledger: what others have in theirs is none of its business."""
    url, other = server.address(), server.address()
    for address in (url, other):
        with open_ledger(address) as ledger:
            ledger.set_budget("ward", 2)
    tamper(url, added)
    with open_ledger(url, inspect=True) as ledger:
        (problem,) = ledger.verify().problems
    assert problem.reason == "foreign" and what in problem.message
    with raises(LedgerDamaged, reason="foreign"):
        open_ledger(url)
    with open_ledger(other) as ledger:
        assert ledger.verify().sound
