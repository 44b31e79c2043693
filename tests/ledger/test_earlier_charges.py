"""Which earlier charge may be drawn for again, and which one a key stands for."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidCharge, LedgerConflict
from takifugu.ledger import Event, Ledger, accept_loss, open_ledger
from takifugu.ledger.events.stored_answers import may_resume, refuse_other, request_key
from takifugu.ledger.storage.database import Connection
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@contextmanager
def read(ledger: Ledger, number: int) -> Iterator[tuple[Connection, Event]]:
    """A transaction, and an event."""
    event = ledger.event(number)
    assert event is not None
    with ledger._store.reading() as connection:
        yield connection, event


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga") as ledger:
        ledger.set_budget("ward", 4)
        yield ledger


def test_no_charge_up_to_a_loss_is_resumed(folder: Path) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4)
        before = ledger.charge(charge("1/8"), DOUBLING, resume=True).anchor.seq
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 5)
    shutil.copy(folder / "copy", path)
    loss = accept_loss(path, translations={"ward": DOUBLING}).seq
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 9)
        after = ledger.charge(charge("1/8"), DOUBLING, resume=True).anchor.seq
        with read(ledger, after) as (connection, event):
            assert before < loss < after
            assert may_resume(connection, event)
            assert may_resume(connection, replace(event, seq=loss + 1))
            for early in (before, loss):
                assert not may_resume(connection, replace(event, seq=early))


def test_a_key_is_of_an_analyst_and_what_they_chose() -> None:
    for analyst, key in (("ana", "k1"), (None, "k1"), ("k1", "ana")):
        text = json.dumps([analyst, key], separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert request_key(analyst, key) == f"request {digest}"
    with raises(InvalidCharge, field="key"):
        request_key("ana", "x" * 501)


BODY: dict[str, Any] = {
    "key": "k1",
    "dataset": "ward",
    "loss": {"epsilon": "1/8"},
    "window": None,
    "attempt": "first",
    "actor": "olga",
    "resumable": True,
    "request": "r1",
}


def earlier(kept: Ledger, body: dict[str, Any]) -> Event:
    (event, *_) = kept.history()
    return replace(event, seq=9, kind="charge", body=body)


def test_another_charge_under_the_key_is_named(kept: Ledger) -> None:
    event = earlier(kept, BODY)
    for name in ("dataset", "loss", "window", "new"):
        with raises(LedgerConflict, reason="key", event=9) as told:
            refuse_other(event, "charge", BODY | {name: "another"})
        assert "'k1'" in str(told.value)
    for kind in ("reuse", "another"):
        with raises(LedgerConflict, reason="key", event=9):
            refuse_other(event, kind, BODY)
    refuse_other(replace(event, kind="reuse"), "reuse", BODY)
    refuse_other(replace(event, kind="reuse"), None, BODY)


def test_an_approval_is_a_part_of_what_is_charged(kept: Ledger) -> None:
    """One that a repeat leaves out was left out before, and the other way round."""
    approved = earlier(kept, BODY | {"approval": 3})
    refuse_other(approved, "charge", BODY | {"approval": 3})
    for body in (BODY, BODY | {"approval": 4}, BODY | {"approval": None}):
        with raises(LedgerConflict, reason="key"):
            refuse_other(approved, "charge", body)
    with raises(LedgerConflict, reason="key"):
        refuse_other(earlier(kept, BODY), None, BODY | {"approval": 3})
