"""The records in the file of a witness, byte by byte, and how its file is opened and locked."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerUnwritable
from takifugu.ledger import Anchor
from takifugu.ledger.witnesses import state_folder
from takifugu.ledger.witnesses.state_folder import FileWitness
from tests.raising import raises

pytestmark = pytest.mark.nightly

LEDGER = "a" * 32
EVENTS = [Anchor(seq, f"{seq:064x}") for seq in range(3, 9)]


def record(turn: int, event: Anchor) -> bytes:
    """A record as it has always been written: a line, its check, and zeros to the next block."""
    text = f"{turn} {LEDGER} {event.seq} {event.hash}"
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text} {check}\n".encode().ljust(4096, b"\0")


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "head"


@pytest.fixture
def witness(path: Path) -> FileWitness:
    return FileWitness(path, folder=False)


def test_records_are_written_in_turn_each_in_a_block_of_its_own(
    witness: FileWitness, path: Path
) -> None:
    seen, blocks = None, [bytes(4096), bytes(4096)]
    for turn, event in enumerate(EVENTS):
        assert witness.record(LEDGER, event, seen) == event
        blocks[turn % 2] = record(turn, event)
        assert path.read_bytes() == b"".join(blocks)
        seen = event


@pytest.mark.parametrize("first", [False, True])
def test_of_two_records_the_later_turn_counts(
    witness: FileWitness, path: Path, first: bool
) -> None:
    newer, older = record(10, EVENTS[0]), record(9, EVENTS[1])  # whatever the events' numbers
    path.write_bytes(newer + older if first else older + newer)
    assert witness.read(LEDGER) == EVENTS[0]
    assert witness.record(LEDGER, EVENTS[2], EVENTS[1]) == EVENTS[0]
    assert witness.record(LEDGER, EVENTS[2], EVENTS[0]) == EVENTS[2] == witness.read(LEDGER)
    assert record(11, EVENTS[2]) in path.read_bytes()[4096:]


@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"\n" * 4096,
        b"\xff" * 4096,
        b" e3b0c44298fc1c14\n",  # the check of no text at all
        record(5, EVENTS[1]).replace(b" 4 ", b" 5 "),
        record(5, EVENTS[1]).replace(b"\n", b"0\n")[:4096],
    ],
)
def test_a_record_that_is_none_is_passed_over(
    witness: FileWitness, path: Path, spoilt: bytes
) -> None:
    path.write_bytes(record(4, EVENTS[0]) + spoilt.ljust(4096, b"\0"))
    assert witness.read(LEDGER) == EVENTS[0]
    path.write_bytes(spoilt.ljust(4096, b"\0") + record(4, EVENTS[0]))
    assert witness.read(LEDGER) == EVENTS[0]
    path.write_bytes(spoilt)
    assert witness.read(LEDGER) is None


def test_what_is_there_is_not_written_again(witness: FileWitness, path: Path) -> None:
    witness.record(LEDGER, EVENTS[0], None)
    before = path.read_bytes()
    for seen in (None, EVENTS[0], EVENTS[1]):
        assert witness.record(LEDGER, EVENTS[0], seen) == EVENTS[0]
        assert path.read_bytes() == before


def test_a_file_without_a_record_is_made_private_before_it_gets_one(
    witness: FileWitness, path: Path
) -> None:
    path.write_bytes(bytes(8192))
    path.chmod(0o644)
    assert witness.record(LEDGER, EVENTS[0], None) == EVENTS[0]
    assert path.read_bytes() == record(0, EVENTS[0]) + bytes(4096)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# --- files and folders ---


@pytest.fixture
def handles(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """What was opened, with its flags and mode; all of it must be closed again."""
    opened: list[tuple[Any, ...]] = []
    left: list[int] = []
    open_, close = os.open, os.close

    def noted(path: Any, flags: int, mode: int = 0o777) -> int:
        handle = open_(path, flags, mode)
        opened.append((str(path), flags, mode))
        left.append(handle)
        return handle

    def closed(handle: int) -> None:
        left.remove(handle)
        close(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", noted)
        patch.setattr(os, "close", closed)
        yield opened
    assert not left


def test_a_new_file_is_never_open_to_others(folder: Path, handles: list[tuple[Any, ...]]) -> None:
    witness = FileWitness(folder / "heads", folder=True)
    mask = os.umask(0)
    try:
        witness.record(LEDGER, EVENTS[0], None)
    finally:
        os.umask(mask)
    made = [mode for _, flags, mode in handles if flags & os.O_CREAT]
    assert made == [0o600] and handles[-1][0] == str(folder / "heads")
    assert witness.read(LEDGER) == EVENTS[0]


def test_a_folder_that_others_make_meanwhile_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, is_dir = folder / "heads", Path.is_dir

    def meanwhile(self: Path) -> bool:
        found = is_dir(self)
        if self == heads and not found:
            os.mkdir(heads)
        return found

    monkeypatch.setattr(Path, "is_dir", meanwhile)
    assert FileWitness(heads, folder=True).record(LEDGER, EVENTS[0], None) == EVENTS[0]


def test_a_pipe_is_not_even_opened(
    witness: FileWitness, path: Path, handles: list[tuple[Any, ...]]
) -> None:
    os.mkfifo(path)
    with raises(LedgerUnwritable, reason="witness"):
        witness.read(LEDGER)
    with raises(LedgerUnwritable, reason="witness"):
        witness.record(LEDGER, EVENTS[0], None)
    assert not handles


def test_a_pipe_that_takes_the_place_of_the_file_is_left_alone(
    witness: FileWitness, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_folder, "refuse_special", lambda _: None)  # it came later
    os.mkfifo(path, 0o640)
    with raises(LedgerUnwritable, reason="witness") as told:
        witness.record(LEDGER, EVENTS[0], None)
    assert "cannot be written (not a regular file)" in str(told.value)


def test_a_file_that_cannot_be_read_is_told(
    witness: FileWitness, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.record(LEDGER, EVENTS[0], None)

    def fails(*_: object) -> bytes:
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)
    with raises(LedgerUnwritable, reason="witness") as told:
        witness.read(LEDGER)
    assert f"{str(path)!r} cannot be read (input/output error)" in str(told.value)


# --- the lock ---


def test_a_lock_that_is_released_meanwhile_is_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = FileWitness(path, folder=False, wait=5.0)
    witness.record(LEDGER, EVENTS[0], None)
    with path.open("rb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        monkeypatch.setattr(state_folder, "sleep", lambda _: fcntl.flock(busy, fcntl.LOCK_UN))
        assert witness.record(LEDGER, EVENTS[1], EVENTS[0]) == EVENTS[1]
