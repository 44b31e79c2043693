"""What every part of an open ledger shares: its actor, its places, its clock, its key."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidCharge, LedgerUnwritable
from takifugu.keys import key_at
from takifugu.ledger import open_ledger
from takifugu.ledger.events.event_chain import Anchor, head
from takifugu.ledger.open_store import OpenStore
from tests.raising import raises

pytestmark = pytest.mark.nightly

ORIGIN = Anchor(1, "first")
LOCAL = datetime(2026, 7, 8, 9, 10, tzinfo=timezone(timedelta(hours=7)))


def opened(store: Any, key: Path | None = None, actor: str = "ann") -> OpenStore:
    return OpenStore(store, ORIGIN, clock=lambda: LOCAL, actor=actor, key=key)


def in_file(path: Path, **more: Any) -> Any:
    return SimpleNamespace(**({"name": str(path), "sqlite": True, "guard": None} | more))


def on_server(**more: Any) -> Any:
    named = {"name": "postgresql://ann@host/l", "sqlite": False, "guard": None, "identity": "1d"}
    return SimpleNamespace(**(named | more))


def test_a_ledger_says_where_it_is_and_who_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = opened(in_file(Path("ward.ledger")))
    assert (found.actor, found.name, found.origin) == ("ann", "ward.ledger", ORIGIN)
    assert found.folder == tmp_path
    server = opened(on_server())
    assert (server.name, server.folder) == ("postgresql://ann@host/l", None)


def test_a_witness_has_a_name_if_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "ward.ledger"
    assert opened(in_file(path)).witness is None
    assert opened(in_file(path, guard=SimpleNamespace(witness=None))).witness is None
    guard = SimpleNamespace(witness=SimpleNamespace(name="elsewhere"))
    assert opened(in_file(path, guard=guard)).witness == "elsewhere"


def test_another_may_act_with_the_same_storage(tmp_path: Path) -> None:
    store = in_file(tmp_path / "ward.ledger")
    first = opened(store)
    other = first.acting("bob")
    assert (first.actor, other.actor, other.origin) == ("ann", "bob", ORIGIN)
    assert other._store is store and type(other) is OpenStore
    for make in (first.acting, lambda actor: opened(store, actor=actor)):
        with raises(InvalidCharge, field="actor", reason="name"):
            make("")
    assert first.actor == "ann"


def test_times_are_written_in_one_zone(tmp_path: Path) -> None:
    found = opened(in_file(tmp_path / "ward.ledger"))._time()
    assert found == LOCAL and found.tzinfo is UTC


def test_closing_closes_the_storage(tmp_path: Path) -> None:
    closed = list[bool]()
    store = in_file(tmp_path / "ward.ledger", close=lambda: closed.append(True))
    with opened(store):
        assert closed == []
    assert closed == [True]


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


def test_a_key_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from takifugu.ledger import open_store

    asked = list[Path]()

    def noted(place: Path) -> Any:
        asked.append(place)
        return key_at(place)

    monkeypatch.setattr(open_store, "key_at", noted)
    ledger = opened(in_file(tmp_path / "ward.ledger"))
    assert ledger.mark("a") == ledger.mark("a") != ledger.mark("b")
    assert asked == [tmp_path / "ward.key"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission Denied", "the.key"), "(permission denied: the.key)"),
        (OSError(), "(cannot be used: None)"),
    ],
)
def test_a_key_that_cannot_be_used_is_told_without_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str
) -> None:
    from takifugu.ledger import open_store

    def fails(_: Path) -> Any:
        raise error

    monkeypatch.setattr(open_store, "key_at", fails)
    ledger = opened(in_file(tmp_path / "ward.ledger"))
    with raises(LedgerUnwritable, reason="key") as told:
        ledger.mark("a")
    assert words in str(told.value) and "ward.ledger" in str(told.value)


def test_whether_something_could_be_written_is_asked_as_a_charge_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from takifugu.ledger import open_store

    locked = list[Any]()

    def noted(connection: Any, **how: Any) -> Any:
        locked.append(how)
        return head(connection, **how)

    with open_ledger(folder / "ward.ledger") as ledger:
        before = ledger.head()
        monkeypatch.setattr(open_store, "head", noted)
        ledger.check_writable()
        assert ledger.head() == before and locked == [{"lock": True}]
    with (
        open_ledger(folder / "ward.ledger", read_only=True) as reader,
        raises(LedgerUnwritable, reason="read-only"),
    ):
        reader.check_writable()
