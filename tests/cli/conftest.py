"""A project to run commands in; each module says by a fixture ``ready`` what it begins with."""

from pathlib import Path

import pytest

from tests.cli.running import Call, call
from tests.copies import copied


@pytest.fixture
def study(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project of this module."""
    return copied(ready, tmp_path / "study", monkeypatch)


@pytest.fixture
def do(study: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command line in ``study``."""
    return lambda line: call(study, monkeypatch, *line.split())
