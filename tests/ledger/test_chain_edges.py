"""One event after another: what is written, what is remembered, and what is missing or broken."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.accepted_terms import after
from takifugu.ledger.events.event_chain import Event, Head
from takifugu.ledger.storage.digest_tree import EMPTY
from takifugu.ledger.storage.statement import Statement, transaction_state
from tests.contracts.ledger import tamper
from tests.contracts.ledger_people import rewritten
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.test_seldom_used import POSTGRESQL, SQLITE
from tests.raising import raises

pytestmark = pytest.mark.nightly

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "ward.ledger")


@pytest.fixture
def kept(path: str) -> Iterator[Ledger]:
    hours = count()
    with open_ledger(
        path, witness=False, actor="olga", clock=lambda: NOON + timedelta(hours=next(hours))
    ) as ledger:
        ledger.set_budget("ward", 2, delta="1/8")
        yield ledger


def test_a_chain_begins_with_a_head_that_only_who_writes_locks(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers that were written before are read by these numbers."""
    plain = "SELECT seq, hash, at FROM takifugu_head WHERE id = 1"
    assert chain._LAST.text(POSTGRESQL) == chain._LOCKED.text(SQLITE) == plain
    assert chain._LOCKED.text(POSTGRESQL) == f"{plain} FOR UPDATE"
    with kept._store.writing() as connection:
        state = transaction_state(connection)
        connection.raw.execute("DELETE FROM takifugu_head")
        state.head = None
        with raises(LedgerDamaged, reason="head"):
            chain.head(connection)
        start = Head(0, "0000000000000000000000000000000000000000000000000000000000000000", "")
        assert chain.start(connection) == start == chain.head(connection)
        state.tree = None
        assert chain.totals(connection).root == EMPTY
        for name, seq in (("_LAST", 8), ("_LOCKED", 9)):
            read = Statement(f"SELECT {seq} AS seq, '{name}' AS hash, 'noon' AS at")
            monkeypatch.setattr(chain, name, read)
        state.head, state.locked = None, False
        first = chain.head(connection)
        assert first == Head(8, "_LAST", "noon") and chain.head(connection) is first
        assert not state.locked
        locked = chain.head(connection, lock=True)
        assert locked == Head(9, "_LOCKED", "noon") and state.locked
        assert chain.head(connection) is chain.head(connection, lock=True) is locked


def test_an_event_holds_its_place_and_what_it_leaves_behind(kept: Ledger) -> None:
    made = kept.set_budget("ward", 3, analyst="ana")
    assert made.body == {
        "v": 1,
        "seq": 3,
        "kind": "budget",
        "at": "2027-01-01T14:00:00+00:00",
        "dataset": "ward",
        "analyst": "ana",
        "epsilon": "3/1",
        "delta": "0/1",
        "actor": "olga",
        "totals": made.body["totals"],
        "witness": "off",
    }
    assert made == Event(3, "budget", NOON + timedelta(hours=2), made.hash, made.body)
    assert list(kept.history())[-1] == made == kept.event(3)
    with kept._store.reading() as connection:
        assert chain.totals(connection).root == made.body["totals"] != EMPTY
        assert chain.head(connection) == Head(3, made.hash, "2027-01-01T14:00:00+00:00")


def test_the_head_after_an_event_has_the_latest_time() -> None:
    event = Event(5, "policy", NOON, "hash", {})
    earlier, later = "2027-01-01T11:00:00+00:00", "2027-01-01T13:00:00+00:00"
    assert after(Head(4, "x", earlier), event) == Head(5, "hash", "2027-01-01T12:00:00+00:00")
    assert after(Head(4, "x", later), event) == Head(5, "hash", later)
    assert after(Head(4, "x", ""), event) == Head(5, "hash", "2027-01-01T12:00:00+00:00")


def test_digests_of_events_are_remembered_and_many_are_forgotten(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[str, str] = {}
    monkeypatch.setattr(chain, "_ROOTS", known)
    made = [kept.set_budget("ward", size) for size in (3, 4)]
    assert known == {event.hash: event.body["totals"] for event in made}
    known |= {str(place): "" for place in range(998)}
    kept.set_budget("ward", 5)
    assert len(known) == 1001
    last = kept.set_budget("ward", 6)
    assert known == {last.hash: last.body["totals"]}


# --- what is missing or broken ---


def test_an_event_is_read_once_in_a_transaction(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        first = chain.one(connection, 2)
        assert chain.one(connection, 2) is first and chain.one(connection, 1).kind == "created"


def test_the_second_event_needs_the_first(kept: Ledger, path: str) -> None:
    with kept._store.reading() as connection:
        assert chain.one(connection, 1).seq == 1
        with raises(LedgerDamaged, reason="missing", event=0):
            chain.one(connection, 0)
    tamper(path, "DELETE FROM takifugu_events WHERE seq = 1")
    with kept._store.reading() as connection, raises(LedgerDamaged, reason="missing", event=2):
        chain.one(connection, 2)


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "7", "{}", '{"kind": "budget"}', '{"kind": "budget", "at": "noon"}',
     '{"kind": "budget", "at": 7}', '{"at": "2027-01-01T12:00:00+00:00"}'],
)  # fmt: skip
def test_a_text_that_is_no_event_is_named(text: str) -> None:
    row: Any = SimpleNamespace(seq=9, hash="hash", body=text)
    with raises(LedgerDamaged, reason="unreadable", event=9):
        chain.read(row)


def test_totals_are_read_from_the_event_that_the_head_names(kept: Ledger) -> None:
    last = kept.head()
    with kept._store.reading() as connection:
        found = chain._root(connection, Head(last.seq, last.hash, ""))
        assert found == chain.one(connection, last.seq).body["totals"]
        with raises(LedgerDamaged, reason="head", event=last.seq):
            chain._root(connection, Head(last.seq, "0" * 64, ""))


@pytest.mark.parametrize("totals", [None, "", "0" * 63, "0" * 65])
def test_an_event_that_names_no_totals_releases_nothing(
    kept: Ledger, path: str, totals: str | None
) -> None:
    def without(body: dict[str, Any]) -> None:
        body["totals"] = totals

    rewritten(path, without)
    with kept._store.reading() as connection, raises(LedgerDamaged, reason="totals"):
        chain.totals(connection)


def test_the_latest_of_what_is_shown_is_what_a_witness_must_know(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        state = transaction_state(connection)
        assert state.shown == 0
        for seq, shown in ((2, 2), (1, 2), (7, 7)):
            chain.show(connection, seq)
            assert state.shown == shown


def test_a_ledger_that_lost_nothing_has_no_loss(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        assert chain.last_loss(connection) == 0
        assert [row.seq for row in chain.rows(connection)] == [1, 2]


def test_where_the_clock_went_back_answers_keep_the_time_of_their_charge(path: str) -> None:
    minute = [0]
    with open_ledger(path, clock=lambda: NOON + timedelta(minutes=minute[0])) as ledger:
        minute[0] = 10
        ledger.set_budget("ward", 2)
        minute[0] = 20
        first = ledger.charge(charge("0.25"), DOUBLING)
        minute[0] = 5
        ledger.charge(charge("0.125"), DOUBLING)
        minute[0] = 40
        ledger.record_answer(first, 7)
        with ledger._store.reading() as connection:
            assert chain.head(connection).at == (NOON + timedelta(minutes=20)).isoformat()
        ledger.set_budget("ward", 3)
        found = [(event.at, event.body.get("clock_behind")) for event in ledger.history()]
        with ledger._store.reading() as connection:
            assert chain.head(connection).at == (NOON + timedelta(minutes=40)).isoformat()
    assert [(at - NOON) // timedelta(minutes=1) for at, _ in found] == [0, 10, 20, 5, 20, 40]
    assert [behind for _, behind in found] == [None, None, None, "0:15:00", None, None]
