"""What every part of an open ledger shares: its actor, its places, its clock, its key."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu._core.keys import key_at
from takifugu.errors import InvalidCharge, LedgerUnwritable
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.events.event_chain import Anchor
from tests.raising import raises

pytestmark = pytest.mark.nightly

ORIGIN = Anchor(1, "first")
LOCAL = datetime(2026, 7, 8, 9, 10, tzinfo=timezone(timedelta(hours=7)))


def opened(store: Any, key: Path | None = None, actor: str = "ann") -> Ledger:
    return Ledger(store, ORIGIN, clock=lambda: LOCAL, actor=actor, key=key)


def in_file(path: Path, **more: Any) -> Any:
    return SimpleNamespace(**({"name": str(path), "sqlite": True, "guard": None} | more))


def on_server(**more: Any) -> Any:
    named = {"name": "postgresql://ann@host/l", "sqlite": False, "guard": None, "identity": "1d"}
    return SimpleNamespace(**(named | more))


def test_another_may_act_with_the_same_storage(tmp_path: Path) -> None:
    store = in_file(tmp_path / "ward.ledger")
    first = opened(store)
    other = first.acting("bob")
    assert (first.actor, other.actor, other.origin) == ("ann", "bob", ORIGIN)
    assert other._store is store and type(other) is Ledger
    for make in (first.acting, lambda actor: opened(store, actor=actor)):
        with raises(InvalidCharge, field="actor", reason="name"):
            make("")
    assert first.actor == "ann"


def test_a_key_lies_where_it_was_named_or_beside_the_file_or_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path, named = tmp_path / "ward.ledger", tmp_path / "named"
    kept = tmp_path / "state" / "takifugu" / "keys"
    for store, key, place in (
        (in_file(path), None, tmp_path / "ward.key"),
        (in_file(path), named, named),
        (on_server(), named, named),
        (on_server(), None, kept / "1d.key"),
        (on_server(identity="0ther"), None, kept / "0ther.key"),
    ):
        ledger = opened(store, key)
        mark = ledger.mark("rows", 3)
        assert mark == key_at(place).mark("rows", 3) != ledger.mark(3, "rows")
        assert mark == opened(store, key).mark("rows", 3)
    assert kept.stat().st_mode & 0o777 == 0o700
    assert {one.name for one in kept.iterdir()} == {"1d.key", "0ther.key"}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["named", "state", "ward.key"]


def test_whether_something_could_be_written_is_asked_without_writing(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        before = ledger.head()
        ledger.check_writable()
        assert ledger.head() == before
    with (
        open_ledger(folder / "ward.ledger", read_only=True) as reader,
        raises(LedgerUnwritable, reason="read-only"),
    ):
        reader.check_writable()
