"""Ledgers of which an older copy is put back."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from takifugu.errors import LedgerUnwritable
from takifugu.ledger import Anchor, Ledger, open_ledger
from takifugu.ledger.witnesses.state_folder import FileWitness
from tests.ledger.charges import DOUBLING, charge

Opener = Callable[..., Ledger]


def copied_ledger(folder: Path) -> Path:
    """A ledger with a budget of 2, closed; a copy of it is beside it."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
    shutil.copy(folder / "ward.ledger", folder / "copy")
    return folder / "ward.ledger"


def set_back(path: Path) -> None:
    """Spend something, then put the copy in its place."""
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)
    shutil.copy(path, path.with_name("newer"))
    shutil.copy(path.with_name("copy"), path)


@contextmanager
def no_room_in_the_witness() -> Iterator[None]:
    """Nothing can be recorded until the block is left, as if whoever writes died before it."""

    def fails(*_: object) -> None:
        raise LedgerUnwritable("no room for the record")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileWitness, "record", fails)
        yield


@contextmanager
def forgetful_witness() -> Iterator[None]:
    """What is recorded until the block is left is forgotten, and acknowledged."""

    def forgets(_: FileWitness, _ledger: str, event: Anchor, _seen: Anchor | None) -> Anchor:
        return event

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileWitness, "record", forgets)
        yield


def before_the_next_record(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have others act once, between the commit of somebody's event and its record."""
    record = FileWitness.record

    def late(self: FileWitness, *arguments: object) -> object:
        patch.setattr(FileWitness, "record", record)
        act()
        return record(self, *arguments)  # type: ignore[arg-type]

    patch.setattr(FileWitness, "record", late)
