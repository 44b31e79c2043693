"""What is noted down of large files: hashes and order, never of another content."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import Category, Declaration, InvalidDeclaration, Order, Source
from takifugu.tables import open_engine
from takifugu.tables.backends import opened_files as files
from takifugu.tables.backends import opened_files as hashes
from takifugu.tables.backends.duckdb_backend import FileBackend
from takifugu.tables.backends.opened_files import file_hash
from takifugu.tables.household_facts import uneven_households, uneven_positions
from tests.raising import raises


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pieces of 64 bytes, read 10 at a time; all files are large; a cache of our own."""
    for name, value in {
        "PIECE": 64,
        "CHUNK": 10,
        "MIN_CACHED_SIZE": 1,
        "SETTLING_TIME": -1,
    }.items():
        monkeypatch.setattr(hashes, name, value)
    monkeypatch.setattr(files, "MIN_CACHED_SIZE", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def kept(folder: Path) -> list[Path]:
    return sorted(p for p in (folder / "cache").rglob("facts/*") if p.name != "key")


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 1000])
def test_a_hash_is_that_of_the_file_or_of_the_hashes_of_its_pieces(
    size: int, tmp_path: Path
) -> None:
    content = os.urandom(size)
    path = tmp_path / "data"
    path.write_bytes(content)
    pieces = [hashlib.sha256(content[i : i + 64]).digest() for i in range(0, size or 1, 64)]
    truth = pieces[0] if len(pieces) == 1 else hashlib.sha256(b"".join(pieces)).digest()
    assert file_hash(path) == file_hash(path) == truth.hex()
    for place in range(0, size, 50):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        assert file_hash(path) != truth.hex()


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a" * 100)
    first = file_hash(path)
    (note,) = kept(tmp_path)
    note.write_text(f"{int(note.read_text(), 16) ^ 1:064x}")  # to be seen when it is used
    assert file_hash(path) == f"{int(first, 16) ^ 1:064x}"
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(b"b" * 100)
    os.utime(path, ns=times)  # the time of the last write is easily set back; that of a change not
    assert file_hash(path) not in (first, f"{int(first, 16) ^ 1:064x}")


def test_neither_the_name_of_a_note_nor_what_it_says_confirms_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a" * 64)
    found = file_hash(path)
    assert found == hashlib.sha256(b"a" * 64).hexdigest()
    (note,) = kept(tmp_path)
    assert found not in (note.name, note.read_text())
    key = note.parent / "key"
    assert key.stat().st_mode & 0o777 == 0o600 and file_hash(path) == found
    key.unlink()  # a new key: notes from before it are removed, and the file is read again
    assert file_hash(path) == found and len(kept(tmp_path)) == 1
    assert kept(tmp_path) != [note]


@pytest.mark.parametrize("broken", [b"", b"\xff" * 64, b"xy" * 32, b"ab" * 33])
def test_a_broken_note_is_not_believed(broken: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a" * 100)
    first = file_hash(path)
    kept(tmp_path)[0].write_bytes(broken)
    assert file_hash(path) == first


def test_small_files_and_those_written_just_now_are_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a" * 100)
    monkeypatch.setattr(hashes, "SETTLING_TIME", 10**12)
    file_hash(path)
    monkeypatch.setattr(hashes, "SETTLING_TIME", -1)
    monkeypatch.setattr(hashes, "MIN_CACHED_SIZE", 101)
    file_hash(path)
    assert not kept(tmp_path)


def test_a_cache_that_cannot_be_written_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"a" * 100)
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # a file where a folder should be
    assert file_hash(path) == file_hash(path)
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.chdir(tmp_path)
    assert file_hash(path) and not (tmp_path / "not").exists()


def test_order_is_looked_at_once_and_again_when_the_data_or_the_order_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.csv"
    asked: list[str] = []
    rows = FileBackend.rows

    def counted(self: FileBackend, sql: str) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return rows(self, sql)

    monkeypatch.setattr(FileBackend, "rows", counted)

    def look(*ties: str) -> int:
        declaration = Declaration(
            Source("csv", path=str(path)),
            "who",
            Order("step", "number", ties=ties),
            (Category("state", ("x", "y"), "refuse"),),
        )
        asked.clear()
        with open_engine(declaration) as engine:
            engine.refuse_disorder()
            return len(asked)

    path.write_text("who,step,row,state\na,1,1,x\na,2,2,y\n")
    assert [look(), look(), look("row"), look("row")] == [1, 0, 1, 0]
    path.write_text("who,step,row,state\na,1,1,x\na,1,2,y\n")
    for _ in range(2):
        with raises(InvalidDeclaration, reason="ties"):
            look()
    assert [look("row"), look("row")] == [1, 0]


def test_that_everybody_has_rows_at_the_same_times_is_noted_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked, rows = tmp_path / "homes.csv", list[str](), FileBackend.rows

    def counted(self: FileBackend, query: str) -> list[tuple[Any, ...]]:
        asked.append(query)
        return rows(self, query)

    monkeypatch.setattr(FileBackend, "rows", counted)

    def look(size: int = 2) -> tuple[int, int, int]:
        declaration = Declaration(
            Source("csv", path=str(path)),
            "who",
            Order("step", "number"),
            (Category("state", ("x", "y"), "refuse"),),
            (Category("home", None, "refuse"),),
        )
        asked.clear()
        with open_engine(declaration) as engine:
            homes = uneven_households(engine, "home", size, 5).count
            return homes, uneven_positions(engine, 5).count, len(asked)

    even = "who,home,step,state\na,h,1,x\na,h,2,x\nb,h,1,y\nb,h,2,x\n"
    path.write_text(even)
    assert [look(), look()] == [(0, 0, 2), (0, 0, 0)]
    assert look(3)[0] == 1  # another size is another fact
    path.write_text(even.replace("b,h,2", "b,h,3"))
    for _ in range(2):  # what was found is not noted
        assert look()[:2] == (1, 1)
