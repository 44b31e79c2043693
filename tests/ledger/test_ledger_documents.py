"""What owners and auditors are told of a ledger as JSON: every field, and no folder or mark."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.ledger import Event, open_ledger
from takifugu.ledger.event_documents import (
    event_document,
    ledger_document,
    verification_document,
)
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import copied_ledger

pytestmark = pytest.mark.nightly

BODY: dict[str, Any] = {
    "kind": "policy",
    "actor": "olga",
    "dataset": "ward",
    "analyst": "ana",
    "data": "mark of rows",
    "question": "mark of a question",
    "marks": {"source": "mark of a source"},
    "details": {"command": "prior add", "files": ["/home/olga/a.json", "b.json"]},
}
MOMENT = datetime(2026, 1, 9, 12, 30, tzinfo=UTC)


def told(body: dict[str, Any], **how: bool) -> dict[str, Any]:
    return event_document(Event(7, "policy", MOMENT, "ab" * 32, body), **how)


def test_folders_are_left_out_for_those_who_are_not_told_places() -> None:
    """And nothing else of the details is; what was given is not changed."""
    assert told(BODY)["body"]["details"] == told(BODY, places=True)["body"]["details"]
    assert told(BODY, places=True)["body"]["details"] == BODY["details"]
    assert told(BODY, places=False)["body"]["details"] == {
        "command": "prior add",
        "files": ["a.json", "b.json"],
    }
    assert BODY["details"]["files"] == ["/home/olga/a.json", "b.json"]


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget of 2 and a charge of 1/4, closed."""
    return copied_ledger(folder)


def test_a_ledger_is_told_by_its_ends_and_accounts(path: Path, folder: Path) -> None:
    with open_ledger(path, read_only=True) as ledger:
        first, *_, last = ledger.history()
        found = ledger_document(ledger, places=False)
        own = ledger_document(ledger, places=True)
        witness = ledger.witness
    assert first.hash != last.hash and found == {
        "origin": first.hash,
        "head": {"seq": 3, "hash": last.hash},
        "accounts": [
            {
                "dataset": "ward",
                "analyst": None,
                "budget": {"epsilon": "2", "delta": "0"},
                "worst": [{"epsilon": "1/4", "delta": "0", "rho": "0"}],
            }
        ],
    }
    assert own == found | {"place": str(path), "witness": witness}
    assert witness is not None and not witness.startswith(str(folder))


def test_a_head_behind_the_witness_is_told_from_what_was_noted(path: Path) -> None:
    """The head is that of the copy, and what was noted is of the ledger that is lost."""
    with open_ledger(path) as ledger:
        copied = ledger.head()
        ledger.charge(charge("0.5"), DOUBLING)
        noted = ledger.head()
    path.with_name("copy").replace(path)
    with open_ledger(path, inspect=True) as ledger:
        witness = str(ledger.witness)
        found = verification_document(ledger, places=False)
        own = verification_document(ledger, places=True)
    assert not found["sound"] and found["events"] == 3
    assert found["head"] == {"seq": copied.seq, "hash": copied.hash}
    assert found["witness"] == {"kept": True, "noted": {"seq": noted.seq, "hash": noted.hash}}
    (problem,), (named,) = found["problems"], own["problems"]
    assert problem["reason"] == "older" and problem["event"] == noted.seq
    assert str(path) in named["message"] and witness in named["message"]
    hidden = named["message"].replace(str(path), "…").replace(witness, "…")
    assert problem == named | {"message": hidden}
