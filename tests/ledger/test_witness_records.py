"""The records in the file of a witness, byte by byte, and how its file is opened and locked."""

import fcntl
import hashlib
import stat
from pathlib import Path

import pytest

from takifugu.ledger import Anchor
from takifugu.ledger.witnesses import state_folder
from takifugu.ledger.witnesses.state_folder import FileWitness

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


def test_a_file_without_a_record_is_made_private_before_it_gets_one(
    witness: FileWitness, path: Path
) -> None:
    path.write_bytes(bytes(8192))
    path.chmod(0o644)
    assert witness.record(LEDGER, EVENTS[0], None) == EVENTS[0]
    assert path.read_bytes() == record(0, EVENTS[0]) + bytes(4096)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


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
