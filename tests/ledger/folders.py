"""Folders to keep ledgers in while they are tested."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory where there is one: what is tested is not how fast a disk is."""
    memory = Path("/dev/shm")  # noqa: S108
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def forget_rows() -> None:
    """Forget which ledgers have charged which rows: another test, or example, may charge them."""
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "takifugu" / "rows", ignore_errors=True)


@contextmanager
def example_folder() -> Iterator[str]:
    """A folder for the ledger of one example, whose rows no other example has charged."""
    forget_rows()
    with TemporaryDirectory() as name:
        yield name
