"""Branches of a ledger that are seldom taken: what cannot be read, asked, linked or reached."""

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerDamaged, LedgerUnwritable
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.accounts.account import Books
from takifugu.ledger.canonical_text import canonical_json
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.accepted_terms import _NothingCharged
from takifugu.ledger.events.replay import _row_problems
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.statement import (
    Connection,
    Statement,
    insert,
    transaction_state,
    update,
)
from takifugu.ledger.witnesses import backup
from takifugu.ledger.witnesses.backup import _appear
from takifugu.ledger.witnesses.file_witness import FileWitness, heads_folder
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

POSTGRESQL = Connection(None, False)
SQLITE: Any = SimpleNamespace(sqlite=True)


def test_an_event_of_an_unknown_kind_counts_for_nothing() -> None:
    with raises(LedgerDamaged, reason="unknown kind"):
        Books().apply({"kind": "gift"})


def test_what_is_charged_to_a_dataset_without_charges_is_infinite() -> None:
    nothing = _NothingCharged()
    assert nothing.to_pufferfish(0.0) == 0.0 and nothing.to_pufferfish(5e-324) == math.inf
    assert nothing.to_dp(math.inf) == 0.0


# --- statements ---


def test_rows_are_locked_by_the_server_that_knows_locks() -> None:
    plain, locked = (Statement("SELECT 1 WHERE x = :x", lock=lock) for lock in (False, True))
    assert locked.text(POSTGRESQL) == "SELECT 1 WHERE x = %(x)s FOR UPDATE"
    assert plain.text(POSTGRESQL) == "SELECT 1 WHERE x = %(x)s"
    assert plain.text(SQLITE) == locked.text(SQLITE) == "SELECT 1 WHERE x = :x"
    assert Statement("SELECT '%' || :a").text(POSTGRESQL) == "SELECT '%%' || %(a)s"


def test_columns_may_be_words_of_the_language() -> None:
    assert insert("t", "key", "at").text(SQLITE) == 'INSERT INTO t ("key", "at") VALUES (:key, :at)'
    changed = update("t", "key", "at", where="id = 1").text(SQLITE)
    assert changed == 'UPDATE t SET "key" = :key, "at" = :at WHERE id = 1'


def test_the_head_is_locked_only_for_who_writes(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        with ledger._store.writing() as connection:
            state = transaction_state(connection)
            state.head, state.locked = None, False
            first = chain.head(connection)
            assert not state.locked and first.seq == 2
            assert chain.head(connection, lock=True) == first and state.locked
            assert chain.head(connection) == first and state.locked  # it stays locked


def test_a_ledger_without_its_head_is_not_written_to(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.check_writable()
        with ledger._store.writing() as connection:
            connection.raw.execute("DELETE FROM takifugu_head")
        with raises(LedgerDamaged, reason="head"):
            ledger.check_writable()


# --- names that no database can look for ---


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_no_event_has_a_name_that_cannot_be_asked_for(ledger: Ledger, name: str) -> None:
    ledger.charge(charge("0.25", analyst="ana"), DOUBLING)
    for how in ({"dataset": name}, {"analyst": name}, {"kind": name}):
        assert list(ledger.history(**how)) == [] == list(ledger.events(**how))  # type: ignore[arg-type]
    assert not ledger.events(dataset="ward", analyst=name)
    assert not ledger.events(kind=["charge", name])
    assert not list(ledger.history("ward", kind=name))
    assert len(list(ledger.history("ward", kind="charge"))) == 1
    assert len(ledger.events(kind=["charge"], dataset="ward", analyst="ana")) == 1


# --- what was written by others ---


def row(body: dict[str, Any], previous: str, *, text: str | None = None) -> Any:
    """A row of a chain whose hash fits, whatever its text says."""
    written = canonical_json(body, "event") if text is None else text
    filed = {name: body.get(name) for name in chain.COPIED}
    return SimpleNamespace(
        seq=body["seq"], body=written, hash=chain.link(previous, written), **filed
    )


def kinds(found: Any, due: int) -> list[str]:
    return [problem.reason for problem in _row_problems(found, "before", due)]


def test_a_row_is_of_a_known_kind_in_its_place_and_in_our_writing() -> None:
    at = "2020-01-01T00:00:00+00:00"
    created, budget = ({"kind": kind, "seq": 1, "at": at} for kind in ("created", "budget"))
    assert kinds(row(created, "before"), 1) == []
    assert kinds(row(budget, "before"), 1) == ["kind"]  # something else comes first
    assert kinds(row({**created, "seq": 2}, "before"), 2) == ["kind"]  # and it only once
    assert kinds(row({**budget, "seq": 2}, "before"), 2) == []
    assert kinds(row({**budget, "kind": "gift", "seq": 2}, "before"), 2) == ["kind"]
    assert kinds(row({**budget, "seq": 3}, "before"), 2) == ["missing"]
    spaced = json.dumps({**budget, "seq": 2}, indent=1)
    assert kinds(row({**budget, "seq": 2}, "before", text=spaced), 2) == ["form"]
    assert kinds(row({**budget, "seq": 2}, "elsewhere"), 2) == ["edited"]
    filed = row({**budget, "seq": 2, "dataset": "ward"}, "before")
    filed.dataset = "other"
    assert kinds(filed, 2) == ["filed"]
    other = row({**budget, "seq": 2}, "before", text=canonical_json({**budget, "seq": 9}, "event"))
    assert kinds(other, 2) == ["form"]
    (problem,) = _row_problems(row(budget, "before"), "before", 1)
    assert problem.event == 1 and "budget" in problem.message


def test_a_total_that_cannot_be_read_is_damage(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25", (0, 5), ["fr", "de"]), DOUBLING)
        with ledger._store.writing() as connection:
            ((key, book),) = tables.load_all(connection).items()
            assert key == ("ward", "")
            assert {len(segment.own) for segment in book.account.segments} == {0, 2}
            connection.raw.execute("UPDATE takifugu_cells SET own = 'x' WHERE cell LIKE '%de%'")
            with pytest.raises(LedgerDamaged):
                tables.load_all(connection)


@pytest.mark.parametrize("many", [1, 2, 20, 21, 500, 501])
def test_any_number_of_groups_is_found_again(folder: Path, many: int) -> None:
    """For up to 500 groups a statement names them; for more the segments are read in full."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        names = [f"g{place:03}" for place in range(many)]
        ledger.charge(charge("0.25", None, names), DOUBLING)
        ledger.charge(charge("0.5", None, [names[-1]], query={"name": "other"}), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 1.5
        ledger.charge(charge("0.25", None, names, query={"name": "third"}), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 2.0


# --- files ---


def test_a_key_that_cannot_be_used_releases_nothing(folder: Path) -> None:
    taken = folder / "key"
    taken.mkdir()
    with (
        open_ledger(folder / "ward.ledger", key=taken) as ledger,
        raises(LedgerUnwritable, reason="key"),
    ):
        ledger.mark("data", "x")


def test_a_name_that_no_disk_takes_is_refused(folder: Path) -> None:
    with raises(InvalidFile, field="ledger"):
        open_ledger(folder / ("x" * 300) / "ward.ledger")


def test_who_only_reads_leaves_the_log_alone(folder: Path) -> None:
    path = folder / "ward.ledger"
    log = Path(f"{path}-wal")
    with open_ledger(path) as writer:
        writer.set_budget("ward", 2)
        size = log.stat().st_size
        assert size > 0
        with open_ledger(path, read_only=True) as reader:
            assert reader.head().seq == 2
            reader._store.empty_log()
            assert log.stat().st_size == size
        assert log.stat().st_size == size
        writer._store.empty_log()
        assert log.stat().st_size == 0 and writer.head().seq == 2


def test_a_ledger_of_a_server_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(
        sys.modules, "takifugu.ledger.storage.postgresql_connections", raising=False
    )
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises(InvalidFile, field="ledger", reason="driver"):
        open_ledger("postgresql://ann@localhost/ledger")


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_a_connection_whose_exchange_was_cut_short_is_not_used_again(error: Any) -> None:
    """What comes later must not be taken for the answer to something else."""
    psycopg = pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage.postgresql_connections import _timed

    def exchange() -> Any:
        raise error
        yield

    ended: list[bool] = []
    raw: Any = SimpleNamespace(pgconn=SimpleNamespace(socket=0, finish=lambda: ended.append(True)))
    with pytest.raises(psycopg.OperationalError if error is TimeoutError else error):
        _timed(5.0).wait(raw, exchange())
    assert ended == [True]


def test_an_address_that_is_none_is_refused_without_its_words() -> None:
    pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage.postgresql_connections import open_postgresql

    with raises(InvalidFile, field="ledger", reason="address") as caught:
        open_postgresql("postgresql://ann:secret@[/x", read_only=False, wait=1.0)
    assert "secret" not in str(caught.value)


def test_a_copy_appears_under_its_name_unless_that_is_taken(folder: Path) -> None:
    part, path = folder / "part", folder / "copy"

    def failing(error: OSError) -> Callable[[Path, Path], None]:
        def link(_: Path, __: Path) -> None:
            raise error

        return link

    part.write_text("copy")
    _appear(part, path, failing(OSError(95, "no links here")))
    assert path.read_text() == "copy" and not part.exists()
    part.write_text("another")
    for taken in (OSError(95, "no links here"), FileExistsError(17, "it is there")):
        with raises(InvalidFile, field="backup", reason="exists"):
            _appear(part, path, failing(taken))
        assert path.read_text() == "copy" and part.read_text() == "another"
    gone = FileExistsError(17, "it was there a moment ago")
    with pytest.raises(FileExistsError):
        _appear(part, folder / "new", failing(gone))
    assert not (folder / "new").exists()
    _appear(part, folder / "new")
    assert os.path.samefile(part, folder / "new")


def test_the_name_of_a_copy_is_made_durable_once_it_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, path, there = folder / "part", folder / "copy", list[tuple[Path, bool]]()
    part.write_text("copy")
    monkeypatch.setattr(backup, "sync_folder", lambda where: there.append((where, path.exists())))
    _appear(part, path)
    assert there == [(folder, True)]


def test_a_witness_needs_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda _: "~")
    with raises(LedgerUnwritable, reason="witness"):
        heads_folder()


def test_a_witness_that_cannot_be_read_is_no_empty_one(folder: Path) -> None:
    (folder / "file").write_text("")
    assert FileWitness(folder / "none", folder=False).read("x") is None
    with raises(LedgerUnwritable, reason="witness"):
        FileWitness(folder / ("y" * 300), folder=False).read("x")


def test_marks_of_one_opening_are_by_one_key(folder: Path) -> None:
    """Also where its file is lost meanwhile, which does not make another one."""
    place = folder / "own.key"
    with open_ledger(folder / "ward.ledger", key=place) as ledger:
        first = ledger.mark("rows", 3)
        place.unlink()
        assert ledger.mark("rows", 3) == first != ledger.mark("rows", 4)
        assert not place.exists()
