"""Run ``takifugu`` as a process, or in this one, which is quicker."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu.cli import main

Call = Callable[[str], "Ran"]
SOURCE = str(Path(takifugu.__file__).parents[1])


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its status."""

    status: int
    out: str
    err: str
    error: BaseException | None = None  # of `call` alone

    def json(self) -> Any:
        """What it printed, as JSON; it must have gone well."""
        assert self.status == 0, self.err
        return json.loads(self.out)


def start(folder: Path, *arguments: str, **how: Any) -> subprocess.Popen[str]:
    """A process of its own, in ``folder``."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-m", "takifugu", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how),
    )


def run(folder: Path, *arguments: str, **how: Any) -> Ran:
    """A process of its own, waited for."""
    process = start(folder, *arguments, **how)
    out, err = process.communicate()
    return Ran(process.returncode, out or "", err or "")


def call(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Ran:
    """The same in this process."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    error: BaseException | None = None
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["takifugu", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as stop:
                status, error = stop.code or 0, stop.__cause__
    return Ran(int(str(status)), out.getvalue(), err.getvalue(), error)
