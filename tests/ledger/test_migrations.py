"""Making and migrating a ledger: each step, what is written, and what is compared before."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged, LedgerSetBack, LedgerUnwritable
from takifugu.ledger import open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage import migrations
from takifugu.ledger.storage.database import Store
from takifugu.ledger.storage.migrations import KNOWN, prepare
from takifugu.ledger.witnesses.head_witness import Guard
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
STEPS = [
    "0001 events in a chain",
    "0002 totals by cell",
    "0003 digests of totals",
    "0004 what names a cell",
    "0005 events by dataset",
    "0006 costs by value",
    "0007 people who ask and approve",
    "0008 states of the data and witnesses",
]


class Remembering:
    """A witness in memory that notes what it is asked."""

    name = "memory"

    def __init__(self, recorded: Anchor | None = None) -> None:
        self.recorded, self.asked = recorded, list[tuple[Any, ...]]()

    def read(self, ledger: str, /) -> Anchor | None:
        """What was recorded last."""
        self.asked.append(("read", ledger))
        return self.recorded

    def record(self, ledger: str, event: Anchor, seen: Anchor | None, /) -> Anchor | None:
        """Record it."""
        self.asked.append(("record", ledger, event, seen))
        self.recorded = event
        return event

    def close(self) -> None:
        """Nothing to release."""


def prepared(
    path: Path, witness: Remembering | None, *, read_only: bool = False, **how: Any
) -> tuple[Store, Guard, Anchor]:
    """A ledger that is open; its store is not closed."""
    store = Store(path, read_only=read_only, wait=5)
    guard = Guard(witness, store.name, writes=not read_only, lenient=False)
    try:
        first = prepare(store, NOW, guard=guard, **({"create": True} | how))
    except BaseException:
        store.close()
        raise
    return store, guard, first


def ask(path: Path, text: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as raw, raw:
        return list(raw.execute(text))


def old(folder: Path, form: str) -> Path:
    """A ledger as an earlier version wrote it."""
    path = folder / f"{form}.ledger"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(Path(__file__).with_name(f"{form}.sql").read_text(encoding="utf-8"))
    return path


def head_in(path: Path) -> Anchor:
    ((seq, hash_),) = ask(path, "SELECT seq, hash FROM takifugu_head")
    return Anchor(seq, hash_)


# --- a new one ---


@pytest.mark.parametrize("actor", [None, "ann"])
@pytest.mark.parametrize("witnessed", [False, True])
def test_a_new_ledger_begins_with_one_event_and_every_step(
    folder: Path, actor: str | None, witnessed: bool
) -> None:
    path, witness = folder / "new.ledger", Remembering() if witnessed else None
    store, guard, first = prepared(path, witness, actor=actor)
    store.close()
    assert ask(path, "SELECT place, name FROM takifugu_migrations ORDER BY place") == list(
        enumerate(STEPS, start=1)
    )
    assert [one.name for one in KNOWN] == STEPS
    ((seq, kind, text),) = ask(path, "SELECT seq, kind, body FROM takifugu_events")
    body = json.loads(text)
    identity = body.pop("ledger")
    root = body.pop("totals")
    assert len(identity) == 32 and len(root) == 64
    said = {"v": 1, "seq": 1, "kind": "created", "at": "2026-05-06T07:08:09+00:00"}
    said |= {} if actor is None else {"actor": actor}
    assert body == said | {"witness": "begun" if witnessed else "off"}
    assert (seq, kind) == (1, "created") and first == head_in(path)
    assert store.identity == guard.ledger == identity and store.guard is guard
    if witness is not None:
        assert witness.asked == [("read", identity), ("record", identity, first, None)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_that_is_to_be_made_needs_the_right_to_write(folder: Path) -> None:
    path = folder / "a.ledger"
    ask(path, "PRAGMA user_version=1")
    with raises(LedgerUnwritable, reason="migration") as told:
        prepared(path, None, read_only=True)
    assert repr(str(path)) in str(told.value)


# --- one that is there ---


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("behind", [False, True])
def test_a_witness_that_is_behind_is_brought_forward(
    folder: Path, read_only: bool, follow: bool, behind: bool
) -> None:
    path, witness = folder / "a.ledger", Remembering()
    store, _, first = prepared(path, witness)
    store.close()
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
        last = ledger.head()
    witness.asked.clear()
    witness.recorded = first if behind else last
    store, guard, again = prepared(path, witness, read_only=read_only, follow=follow, create=False)
    store.close()
    assert again == first and store.guard is guard
    recorded = [("record", store.identity, last, first)]
    due = recorded if behind and follow and not read_only else []
    assert witness.asked == [("read", store.identity), *due]


# --- an older one ---


@pytest.mark.parametrize("form", ["before_digests", "before_cells", "before_costs"])
def test_a_copy_of_an_older_form_that_was_set_back_is_not_even_migrated(
    folder: Path, form: str
) -> None:
    path = old(folder, form)
    before = ask(path, "SELECT name FROM takifugu_migrations ORDER BY place")
    ((text,),) = ask(path, "SELECT body FROM takifugu_events WHERE seq = 1")
    witness = Remembering(Anchor(999, "f" * 64))
    with raises(LedgerSetBack, reason="older", event=999):
        prepared(path, witness)
    assert witness.asked == [("read", json.loads(text)["ledger"])]
    assert ask(path, "SELECT name FROM takifugu_migrations ORDER BY place") == before


@pytest.mark.parametrize("form", ["before_digests", "before_cells", "before_costs"])
@pytest.mark.parametrize("create", [False, True])
def test_steps_that_are_missing_are_applied_and_noted(
    folder: Path, form: str, create: bool
) -> None:
    path = old(folder, form)
    events = ask(path, "SELECT seq, hash, body FROM takifugu_events ORDER BY seq")
    done = len(ask(path, "SELECT name FROM takifugu_migrations"))
    assert 0 < done < len(STEPS)
    witness = Remembering(head_in(path))
    store, _, first = prepared(path, witness, actor="ann", create=create)
    store.close()
    assert ask(path, "SELECT place, name FROM takifugu_migrations ORDER BY place") == list(
        enumerate(STEPS, start=1)
    )
    now = ask(path, "SELECT seq, hash, body FROM takifugu_events ORDER BY seq")
    assert now[: len(events)] == events and first == Anchor(*events[0][:2])
    added = [json.loads(text) for _, _, text in now[len(events) :]]
    for body in added:
        assert len(body.pop("totals")) == 64
    one = {"v": 1, "seq": len(events) + 1, "kind": "totals", "at": NOW.isoformat()}
    one |= {"migration": "0003 digests of totals", "actor": "ann"}
    begun = one | {"kind": "witness", "dataset": None, "analyst": None, "how": "begun"}
    del begun["migration"]
    if form == "before_costs":  # it has the digests already
        assert added == [begun]
    else:
        assert added == [one, begun | {"seq": len(events) + 2}]
    assert witness.recorded == head_in(path)
    again, _, _ = prepared(path, witness)
    again.close()
    assert ask(path, "SELECT seq, hash, body FROM takifugu_events ORDER BY seq") == now


def test_the_oldest_form_of_all_is_migrated_like_others(folder: Path) -> None:
    """One without any totals, in its tables or its events."""
    path = old(folder, "before_digests")
    events = ask(path, "SELECT count(*) FROM takifugu_events")[0][0]
    for table in ("accounts", "segments", "cells"):
        ask(path, f"DROP TABLE takifugu_{table}")
    ask(path, "DELETE FROM takifugu_migrations WHERE place = 2")
    store, _, _ = prepared(path, None)
    store.close()
    kinds = ask(path, "SELECT kind FROM takifugu_events ORDER BY seq DESC")
    assert len(kinds) == events + 1 and kinds[0] == ("totals",)
    with open_ledger(path, witness=False) as ledger:
        assert ledger.verify().sound


def test_totals_that_events_name_are_made_again_without_another_event(
    folder: Path,
) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
        last = ledger.head()
    ask(path, "DROP TABLE takifugu_digests")
    ask(path, "DELETE FROM takifugu_migrations WHERE place >= 3")
    store, _, _ = prepared(path, None)
    store.close()
    assert head_in(path) == last
    with open_ledger(path, witness=False) as ledger:
        assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 0.5


def test_events_that_do_not_add_up_to_their_totals_are_not_migrated(folder: Path) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
        last = ledger.head()
    ((text,),) = ask(path, f"SELECT body FROM takifugu_events WHERE seq = {last.seq}")  # noqa: S608
    ((before,),) = ask(path, f"SELECT hash FROM takifugu_events WHERE seq = {last.seq - 1}")  # noqa: S608
    totals = json.loads(text)["totals"]
    forged = text.replace(totals, totals[::-1])
    hash_ = chain.link(before, forged)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_events SET body = ?, hash = ? WHERE seq = 3", (forged, hash_))
        raw.execute("UPDATE takifugu_head SET hash = ?", (hash_,))
        raw.execute("DELETE FROM takifugu_migrations WHERE place >= 3")
    with raises(LedgerDamaged, reason="totals") as told:
        prepared(path, None)
    assert "do not add up" in str(told.value) and repr(str(path)) in str(told.value)
    assert len(ask(path, "SELECT name FROM takifugu_migrations")) == 2  # all or nothing


def test_what_others_have_migrated_meanwhile_is_not_done_again(folder: Path) -> None:
    store, _, first = prepared(folder / "a.ledger", None)
    with store.writing() as connection:
        migrations.migrate(connection, store, NOW, None)
        assert chain.head(connection).seq == 1
    store.close()
    assert head_in(folder / "a.ledger") == first
