"""The file of a new ledger: its owner's alone, an ordinary one, left alone if it has content."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import LedgerUnwritable
from takifugu.ledger.storage.database import Store
from tests.raising import raises

pytestmark = pytest.mark.nightly


def make(path: Path, *, sqlite: bool = True) -> None:
    """Make the file of a ledger of this name."""
    named: Any = SimpleNamespace(sqlite=sqlite, name=str(path))
    Store.make_file(named)


def mode(path: Path) -> int:
    """Who may do what."""
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0, 0o022, 0o377])
def test_a_new_file_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "new.db"
    before = os.umask(umask)
    try:
        make(path)
    finally:
        os.umask(before)
    assert (mode(path), path.stat().st_size) == (0o600, 0)


def test_an_empty_file_becomes_its_owners_alone_and_another_stays(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty.db", tmp_path / "full.db"
    empty.touch()
    full.write_bytes(b"x")
    for path in (empty, full):
        path.chmod(0o640)
        make(path)
    assert (mode(empty), mode(full)) == (0o600, 0o640)
    assert full.read_bytes() == b"x"


def test_no_file_is_made_of_a_pipe_or_a_folder_or_for_a_server(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe, 0o640)
    folder.mkdir()
    for path in (pipe, folder, tmp_path / "none" / "a.db"):
        with raises(LedgerUnwritable, reason="read-only") as caught:
            make(path)
        assert str(path) in str(caught.value)
    assert mode(pipe) == 0o640
    make(tmp_path / "server.db", sqlite=False)
    assert not (tmp_path / "server.db").exists()
