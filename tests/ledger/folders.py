"""Folders to keep ledgers in while they are tested."""

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
