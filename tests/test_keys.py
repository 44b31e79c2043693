"""Keys: private files that appear whole, and marks that confirm no guess."""

import hashlib
import os
import threading
from itertools import product
from pathlib import Path

import pytest

from takifugu._core.fingerprint import fingerprint
from takifugu._core.keys import Key, beside, key_at, same_key, state_folder
from takifugu.errors import InvalidFile
from tests.raising import raises


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "ward.key"
    mask = os.umask(0)
    try:
        made = key_at(path)
    finally:
        os.umask(mask)
    assert key_at(path) == made and path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert made.secret.hex() not in repr(made) and made.secret.hex() in path.read_text()
    path.chmod(0o644)  # as a copy may have it
    assert key_at(path) == made and path.stat().st_mode & 0o777 == 0o600


def test_processes_that_make_a_key_at_once_have_the_same(tmp_path: Path) -> None:
    path, found = tmp_path / "ward.key", list[Key]()
    threads = [threading.Thread(target=lambda: found.append(key_at(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "ab", "x" * 64, "é" * 64, "AB" * 32])
def test_a_file_that_holds_no_key_is_refused_and_left_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "ward.key"
    path.write_text(content, encoding="utf-8")
    with raises(InvalidFile, field="key"):
        key_at(path)
    assert path.read_text(encoding="utf-8") == content


def test_a_mark_tells_equal_from_unequal_and_confirms_no_guess() -> None:
    """All contents of ten binary cells: their plain hash finds them, their mark does not."""
    key, other = Key(bytes(range(32))), Key(bytes(32))
    every = ["".join(cells) for cells in product("01", repeat=10)]
    secret = every[293]
    told = fingerprint(("data", secret))
    assert [c for c in every if fingerprint(("data", c)) == told] == [secret]
    mark = key.mark("data", secret)
    assert mark == key.mark("data", secret) and len({key.mark("data", c) for c in every}) == 1024
    plain = {fingerprint(("data", c)) for c in every} | {
        hashlib.sha256(c.encode()).hexdigest() for c in every
    }
    assert mark.partition(":")[2] not in plain
    assert other.mark("data", secret) != mark and not same_key(other.mark("x"), mark)
    assert same_key(key.mark("x"), mark) and not same_key("0" * 64, mark)


def test_what_is_sealed_is_opened_under_its_own_name_only() -> None:
    key, digits = Key(bytes(32)), hashlib.sha256(b"rows").hexdigest()
    hidden = key.sealed("note", digits)
    assert hidden != digits and key.sealed("note", hidden) == digits
    assert key.sealed("another", hidden) != digits


def test_a_key_lies_beside_its_ledger_or_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert beside(tmp_path / "takifugu.ledger") == tmp_path / "takifugu.key"
    assert beside(tmp_path / "a.key") == tmp_path / "a.key.key"  # never the ledger itself
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "takifugu"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "takifugu"
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(OSError, match="no home folder"):
        state_folder()
