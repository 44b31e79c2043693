"""What a ledger holds, as JSON for owners and auditors. Nothing here changes it."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from takifugu.errors import LedgerDamaged
from takifugu.ledger.event_words import event_words
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.ledger import Ledger
from takifugu.ledger.snapshot import Position
from takifugu.losses import Total

HIDDEN = frozenset({"data", "question", "marks"})  # marks of the data; early ones had no key


def public_body(event: Event) -> dict[str, Any]:
    """The body of an event without hashes of protected data."""
    return {name: value for name, value in event.body.items() if name not in HIDDEN}


def event_document(event: Event, *, places: bool = True) -> dict[str, Any]:
    """An event: its number, time, kind, actor, what it says in words, and all of it but marks.

    Without ``places`` its files are named without their folders.
    """
    body = public_body(event)
    details = body.get("details")
    if not places and isinstance(details, Mapping) and "files" in details:
        files = [PurePath(str(file)).name for file in details["files"]]
        body["details"] = {**details, "files": files}
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "hash": event.hash,
        "actor": body.get("actor"),
        "dataset": body.get("dataset"),
        "analyst": body.get("analyst"),
        "words": event_words(body),
        "body": body,
    }


def account_document(position: Position) -> dict[str, Any]:
    """An account: its budget, and the worst per-entry totals, exactly."""
    budget = None
    if position.epsilon is not None:
        budget = {"epsilon": str(position.epsilon), "delta": str(position.delta)}
    return {
        "dataset": position.dataset,
        "analyst": position.analyst,
        "budget": budget,
        "worst": [_total(total) for total in position.worst],
    }


def _total(total: Total) -> dict[str, Any]:
    parts = {"epsilon": str(total.epsilon), "delta": str(total.delta), "rho": str(total.rho)}
    return parts | ({"costs": total.costs.document()} if total.costs else {})


def ledger_document(ledger: Ledger, *, places: bool) -> dict[str, Any]:
    """The head, the first event and the accounts; with ``places`` also where it is kept."""
    head = ledger.head()
    found = {
        "origin": ledger.origin.hash,
        "head": {"seq": head.seq, "hash": head.hash},
        "accounts": [account_document(position) for position in ledger.positions()],
    }
    return found | ({"place": ledger.name, "witness": ledger.witness} if places else {})


def verification_document(ledger: Ledger, *, places: bool) -> dict[str, Any]:
    """What a verification finds: the chain, every total, the witness; each problem by name."""
    report = ledger.verify()
    noted = report.witness

    def words(message: str) -> str:
        for place in () if places else (ledger.name, ledger.witness):
            message = message.replace(place, "…") if place else message
        return message

    found = {
        "sound": report.sound,
        "events": report.events,
        "head": {"seq": report.head.seq, "hash": report.head.hash},
        "witness": {
            "kept": ledger.witness is not None,
            "noted": None if noted is None else {"seq": noted.seq, "hash": noted.hash},
        },
        "problems": [
            {"reason": one.reason, "message": words(str(one)), "event": one.event}
            for one in report.problems
        ],
    }
    return found | ({"place": ledger.name} if places else {})


def export_part(ledger: Ledger, after: int, last: int, most: int) -> tuple[bytes, int]:
    """The events after a number, as ``takifugu ledger export`` writes them; the last one's number.

    At most ``most``, and none after ``last``. Each part is a transaction of its own, so that a
    reader who is slow holds nothing open. Events are never changed, so that the parts fit; a ledger
    that was replaced by a shorter one meanwhile is an error.
    """
    rows = ledger.stored(after, min(most, last - after))
    if not rows:
        raise LedgerDamaged(
            f"event {after + 1} is missing; restore a copy", reason="missing", event=after + 1
        )
    lines = (f'{{"hash":{json.dumps(hash_)},"body":{body}}}\n' for _, hash_, body in rows)
    return "".join(lines).encode("ascii"), rows[-1][0]
