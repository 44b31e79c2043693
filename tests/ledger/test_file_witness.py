"""The file of a witness: two records in turn, made durable before anything is returned."""

import fcntl
import hashlib
import os
import stat
from pathlib import Path

import pytest

from takifugu.errors import LedgerSetBack, LedgerUnwritable
from takifugu.ledger import Anchor
from takifugu.ledger.witnesses import state_folder
from takifugu.ledger.witnesses.state_folder import SLOT_BYTES, FileWitness
from tests.raising import raises

LEDGER, OTHER = "a" * 32, "b" * 32
EVENTS = [Anchor(seq, f"{seq:064x}") for seq in range(1, 8)]


@pytest.fixture
def witness(folder: Path) -> FileWitness:
    return FileWitness(folder / "state" / "heads", folder=True)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What was made durable: how, the inode, and its size at that moment."""
    calls: list[tuple[str, int, int]] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def call(handle: int, name: str = name, real: object = real) -> None:
            facts = os.fstat(handle)
            calls.append((name, facts.st_ino, facts.st_size))
            real(handle)  # type: ignore[operator]

        monkeypatch.setattr(os, name, call)
    return calls


def test_nothing_is_recorded_at_first(witness: FileWitness) -> None:
    assert witness.read(LEDGER) is None
    assert not Path(witness.name).exists()


def test_a_record_is_that_of_the_last_one_who_had_seen_the_one_before(
    witness: FileWitness,
) -> None:
    seen = None
    for event in EVENTS:
        assert witness.record(LEDGER, event, seen) == event == witness.read(LEDGER)
        assert witness.record(LEDGER, event, None) == event  # it is there
        seen = event
    late = Anchor(99, "f" * 64)
    for unseen in (None, EVENTS[0], EVENTS[-2]):
        assert witness.record(LEDGER, late, unseen) == EVENTS[-1] == witness.read(LEDGER)
    assert witness.record(OTHER, late, None) == late  # each ledger has a file of its own
    assert witness.read(LEDGER) == EVENTS[-1]


def test_it_is_private_and_as_long_as_two_records(witness: FileWitness, folder: Path) -> None:
    witness.record(LEDGER, EVENTS[0], None)
    path = Path(witness.path(LEDGER))
    assert path == folder / "state" / "heads" / LEDGER
    assert path.stat().st_size == 2 * SLOT_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for made in (path.parent, path.parent.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_it_is_durable_before_it_is_returned(
    witness: FileWitness, synced: list[tuple[str, int, int]]
) -> None:
    witness.record(LEDGER, EVENTS[0], None)
    path = Path(witness.path(LEDGER))
    inode, home = path.stat().st_ino, path.parent.stat().st_ino
    assert synced[0] == ("fsync", inode, 2 * SLOT_BYTES)
    assert [(name, which) for name, which, _ in synced] == [("fsync", inode), ("fsync", home)]
    synced.clear()
    witness.record(LEDGER, EVENTS[1], EVENTS[0])
    assert synced == [("fdatasync", inode, 2 * SLOT_BYTES)]
    synced.clear()
    witness.record(LEDGER, EVENTS[3], EVENTS[0])  # nothing is written
    assert not synced


@pytest.mark.parametrize("size", range(1, len(EVENTS)))
@pytest.mark.parametrize("torn", [0, 1, 30, 100])
def test_a_record_that_was_torn_leaves_the_one_before(
    witness: FileWitness, size: int, torn: int
) -> None:
    seen = None
    for event in EVENTS[: size + 1]:
        witness.record(LEDGER, event, seen)
        seen = event
    path = Path(witness.path(LEDGER))
    content = bytearray(path.read_bytes())
    place = SLOT_BYTES * (size % 2)  # of the last one
    content[place + torn : place + SLOT_BYTES] = bytes(SLOT_BYTES - torn)
    path.write_bytes(content)
    before = EVENTS[size - 1]
    assert witness.read(LEDGER) == before
    assert witness.record(LEDGER, EVENTS[size], before) == EVENTS[size] == witness.read(LEDGER)


def test_a_file_cut_short_is_made_whole_again(witness: FileWitness) -> None:
    witness.record(LEDGER, EVENTS[0], None)
    path = Path(witness.path(LEDGER))
    path.write_bytes(path.read_bytes()[:SLOT_BYTES])
    path.chmod(0o644)
    assert witness.read(LEDGER) == EVENTS[0]
    assert witness.record(LEDGER, EVENTS[1], EVENTS[0]) == EVENTS[1] == witness.read(LEDGER)
    assert path.stat().st_size == 2 * SLOT_BYTES and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(b"")
    assert witness.read(LEDGER) is None


def test_one_file_is_of_one_ledger(folder: Path) -> None:
    witness = FileWitness(folder / "head", folder=False)
    assert witness.path(LEDGER) == witness.path(OTHER) == str(folder / "head")
    witness.record(LEDGER, EVENTS[0], None)
    with raises(LedgerSetBack, reason="another ledger"):
        witness.read(OTHER)
    with raises(LedgerSetBack, reason="another ledger"):
        witness.record(OTHER, EVENTS[0], None)
    assert witness.read(LEDGER) == EVENTS[0]


@pytest.mark.parametrize("what", ["folder", "fifo"])
def test_no_special_file_is_a_witness(folder: Path, what: str) -> None:
    path = folder / "head"
    if what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    witness = FileWitness(path, folder=False)
    with raises(LedgerUnwritable, reason="witness"):
        witness.read(LEDGER)
    with raises(LedgerUnwritable, reason="witness"):
        witness.record(LEDGER, EVENTS[0], None)


def test_a_disk_that_takes_a_part_is_full(
    witness: FileWitness, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.record(LEDGER, EVENTS[0], None)
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, line, place: real(handle, line[:9], place))
    with raises(LedgerUnwritable, reason="witness"):
        witness.record(LEDGER, EVENTS[1], EVENTS[0])
    assert witness.read(LEDGER) == EVENTS[0]


@pytest.mark.parametrize("size", range(1, len(EVENTS)))
def test_a_file_of_another_length_is_mended_and_keeps_the_record_before(
    witness: FileWitness, size: int
) -> None:
    seen = None
    for event in EVENTS[:size]:
        witness.record(LEDGER, event, seen)
        seen = event
    path = Path(witness.path(LEDGER))
    path.write_bytes(path.read_bytes() + b"more")
    assert witness.record(LEDGER, EVENTS[size], seen) == EVENTS[size] == witness.read(LEDGER)
    content = bytearray(path.read_bytes())
    assert len(content) == 2 * SLOT_BYTES
    place = SLOT_BYTES * (size % 2)
    content[place : place + SLOT_BYTES] = bytes(SLOT_BYTES)  # as if it had not been written
    path.write_bytes(content)
    assert witness.read(LEDGER) == seen


def record(turn: int, event: Anchor) -> bytes:
    """A record as it has always been written: a line, its check, and zeros to the next block."""
    text = f"{turn} {LEDGER} {event.seq} {event.hash}"
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text} {check}\n".encode().ljust(4096, b"\0")


def test_records_are_written_in_turn_each_in_a_block_of_its_own(
    folder: Path,
) -> None:
    path = folder / "head"
    witness = FileWitness(path, folder=False)
    seen, blocks = None, [bytes(4096), bytes(4096)]
    for turn, event in enumerate(EVENTS):
        assert witness.record(LEDGER, event, seen) == event
        blocks[turn % 2] = record(turn, event)
        assert path.read_bytes() == b"".join(blocks)
        seen = event


def test_a_file_without_a_record_is_made_private_before_it_gets_one(
    folder: Path,
) -> None:
    path = folder / "head"
    witness = FileWitness(path, folder=False)
    path.write_bytes(bytes(8192))
    path.chmod(0o644)
    assert witness.record(LEDGER, EVENTS[0], None) == EVENTS[0]
    assert path.read_bytes() == record(0, EVENTS[0]) + bytes(4096)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_that_is_released_meanwhile_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "head"
    witness = FileWitness(path, folder=False, wait=5.0)
    witness.record(LEDGER, EVENTS[0], None)
    with path.open("rb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        monkeypatch.setattr(state_folder, "sleep", lambda _: fcntl.flock(busy, fcntl.LOCK_UN))
        assert witness.record(LEDGER, EVENTS[1], EVENTS[0]) == EVENTS[1]
