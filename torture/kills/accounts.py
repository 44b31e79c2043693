"""What the ledger has, read by plain SQL, beside what killed processes had acknowledged.

Nothing here asks the ledger: the events are read as text and added by plain Python
(`tests.oracles.ledger_sums`).
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.oracles.ledger_sums import PlainEvent, largest_sum
from tests.session.world import ZONES
from torture.kills.jobs import COUNTRIES, DATASET, TABLE
from torture.kills.strikes import Child

LOST, OVERSPENT, UNPAID, TWICE, STALE, OTHER = KINDS = (
    "lost",
    "overspent",
    "answers without a charge",
    "charged twice",
    "stale locks",
    "other trouble",
)
FACTOR = {DATASET: 2, TABLE: 1}  # what a per-entry ε counts for in the budget
UNAVAILABLE = ("LedgerUnavailable", "Hang")


@dataclass(frozen=True)
class Fault:
    """Something that must not be: of which of `KINDS`, and what."""

    kind: str
    what: str


@dataclass
class Acknowledged:
    """What killed processes had said was done."""

    charged: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)
    shown: dict[str, set[str]] = field(default_factory=dict)
    recorded: dict[str, set[str]] = field(default_factory=dict)
    answered: list[tuple[int, str, int, str]] = field(default_factory=list)
    copying: dict[str, int] = field(default_factory=dict)
    copied: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    trouble: list[tuple[str, list[Any]]] = field(default_factory=list)

    @property
    def charges(self) -> int:
        """How many charges were acknowledged."""
        return len(self.charged) + len({seq for seq, *_ in self.answered})

    def take(self, child: Child) -> None:
        """Add what one process said."""
        for kind, *what in child.notes:
            if kind == "charged":
                self.charged.setdefault(what[0], set()).add((what[1], what[2]))
                self.asked.setdefault(what[0], set()).add(json.dumps(what[3:]))
            elif kind in ("shown", "recorded"):
                getattr(self, kind).setdefault(what[0], set()).add(json.dumps(what[1]))
            elif kind == "answered":
                self.answered.append((what[0], what[1], what[2], what[3]))
            elif kind in ("copying", "copied"):
                getattr(self, kind)[what[0]] = what[1]
            elif kind == "refused":
                self.refused += 1
            elif kind == "trouble":
                self.trouble.append((child.name, what))


def faults(
    known: Acknowledged, events: Sequence[PlainEvent], budget: int | Fraction
) -> list[Fault]:
    """Everything that must not be."""
    found = [
        Fault(STALE if what[0] in UNAVAILABLE else OTHER, f"{name}: {' · '.join(map(str, what))}")
        for name, what in known.trouble
    ]
    charges = [event for event in events if event.kind == "charge"]
    answers = {e.body["charge"]: e for e in events if e.kind == "answer"}
    by_key = {event.body["key"]: event for event in charges}
    by_number = {event.seq: event for event in charges}
    found += _chain(events)
    found += _lost(known, by_key, answers)
    found += _lost_sessions(known, by_number, answers)
    for key, values in known.shown.items():
        if key not in by_key:
            found.append(Fault(UNPAID, f"an answer to {key} was shown, and it was never charged"))
        if len(values) > 1:
            found.append(Fault(UNPAID, f"{len(values)} answers to {key} were shown for one charge"))
    found += [
        Fault(UNPAID, f"answer {e.seq} has no charge before it")
        for number, e in answers.items()
        if number not in by_number or number > e.seq
    ]
    for name, names in (
        ("key", Counter(event.body["key"] for event in charges)),
        ("request", Counter(json.dumps(_asked(event)) for event in charges)),
        ("charge, by answers,", Counter(e.body["charge"] for e in events if e.kind == "answer")),
    ):
        found += [Fault(TWICE, f"{name} {which} {n} times") for which, n in names.items() if n > 1]
    for dataset, column, keys in (
        (DATASET, "country", COUNTRIES),
        (TABLE, "zone", ZONES),
    ):
        largest = FACTOR[dataset] * largest_sum(events, dataset, column, keys)
        if largest > budget:
            found.append(Fault(OVERSPENT, f"{dataset}: {float(largest)} of {budget}"))
    return found


def sums(events: Sequence[PlainEvent]) -> dict[str, Fraction]:
    """The largest per-entry sum of each dataset."""
    return {
        DATASET: largest_sum(events, DATASET, "country", COUNTRIES),
        TABLE: largest_sum(events, TABLE, "zone", ZONES),
    }


def _asked(event: PlainEvent) -> list[Any]:
    """What was asked: of sessions without a key the noise may have been seen, so they pay again."""
    body = event.body
    return [body["dataset"], body["query"].get("name"), body["question"], body["loss"]]


def written(event: PlainEvent) -> list[Any]:
    """What a charge was written for, as `asked` says it: its ε, the window and the groups."""
    loss, window, groups = (event.body[name] for name in ("loss", "window", "groups"))
    if window is not None:
        window = [window["start"], window["end"]]
    if groups is not None:
        groups = [groups["columns"], sorted(groups["keys"])]
    return [loss["epsilon"] if loss["currency"] == "pure" else loss, window, groups]


def _chain(events: Sequence[PlainEvent]) -> Iterable[Fault]:
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        yield Fault(LOST, "events are missing between others")


def _lost(
    known: Acknowledged, by_key: dict[str, PlainEvent], answers: dict[int, PlainEvent]
) -> Iterable[Fault]:
    for key, receipts in known.charged.items():
        event = by_key.get(key)
        if event is None:
            yield Fault(LOST, f"charge {key} was acknowledged and is not in the ledger")
        elif receipts != {(event.seq, event.hash)}:
            yield Fault(LOST, f"charge {key} was acknowledged as another event")
        elif known.asked[key] != {json.dumps(written(event))}:
            yield Fault(OVERSPENT, f"charge {key}: {known.asked[key]} asked, {written(event)} paid")
    for key, values in known.recorded.items():
        event = by_key.get(key)
        stored = None if event is None else answers.get(event.seq)
        if stored is None or values != {json.dumps(stored.body["answer"])}:
            yield Fault(LOST, f"the answer to {key} was acknowledged and is not in the ledger")


def _lost_sessions(
    known: Acknowledged, by_number: dict[int, PlainEvent], answers: dict[int, PlainEvent]
) -> Iterable[Fault]:
    for seq, hash_, answer, lost in known.answered:
        event, stored = by_number.get(seq), answers.get(seq)
        if event is None or event.hash != hash_:
            yield Fault(UNPAID, f"a session showed an answer, and charge {seq} is not there")
        elif stored is None or stored.seq != answer:
            yield Fault(LOST, f"a session showed answer {answer}, which is not there")
        elif written(event) != [lost, None, None]:  # it asks about all rows
            yield Fault(OVERSPENT, f"a session lost {lost} of all rows, {written(event)} is paid")


def copies(known: Acknowledged, folder: Path, events: Sequence[PlainEvent]) -> list[Fault]:
    """Backups and exports: each is whole or absent, and what was acknowledged is there."""
    found = []
    hashes = [event.hash for event in events]
    for name, least in known.copying.items():
        path = folder / name
        if not path.exists():
            if name in known.copied:
                found.append(Fault(LOST, f"{name} was acknowledged and is not there"))
            continue
        try:
            copied = _copied(path)
        except (sqlite3.Error, ValueError, KeyError) as error:
            found.append(Fault(OTHER, f"{name} cannot be read: {type(error).__name__}: {error}"))
            continue
        if copied != hashes[: len(copied)] or len(copied) < least:
            found.append(Fault(LOST, f"{name} has {len(copied)} events, at least {least} expected"))
    return found


def _copied(path: Path) -> list[str]:
    """The hashes of the events in a copy, with SQLite's own check, or from an export."""
    if path.name.startswith("export"):
        lines = path.read_text(encoding="ascii").splitlines()
        return [str(json.loads(line)["hash"]) for line in lines]
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        (verdict,) = file.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise ValueError(str(verdict)[:200])
        rows = file.execute("SELECT hash, body FROM takifugu_events ORDER BY seq").fetchall()
    finally:
        file.close()
    previous = "0" * 64
    for hash_, body in rows:
        previous = hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()
        if previous != hash_:
            raise ValueError("its events are not a chain")
    return [hash_ for hash_, _ in rows]
