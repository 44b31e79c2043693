"""Copies of a finished project for tests to go on from, as if there had been no other."""

import os
import shutil
from pathlib import Path

import pytest


def copied(project: Path, to: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ``project`` with a state folder of its own.

    Two copies of one ledger that are used by turns are refused, as they should be: the witness of
    its head remembers the other one. So each copy gets a copy of the witness too.
    """
    state = to.parent / f"state of {to.name}"
    shutil.copytree(os.environ["XDG_STATE_HOME"], state)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return Path(shutil.copytree(project, to))
