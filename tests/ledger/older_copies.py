"""Ledgers of which an older copy is put back."""

import shutil
from collections.abc import Callable
from pathlib import Path

from takifugu.ledger import Ledger, open_ledger
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
