"""What others have added to the database of a ledger: it is found, and code is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import open_ledger
from tests.contracts.ledger import tamper
from tests.ledger.postgres import Cluster
from tests.raising import raises

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
