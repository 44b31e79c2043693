"""Files that are to stay as they were when they were opened."""

import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takifugu.engines.backends.backend import DataFingerprint
from takifugu.engines.backends.cached_facts import LARGE, CachedFact
from takifugu.engines.backends.file_hashes import file_hash
from takifugu.engines.engine_errors import DatabaseFailed
from takifugu.fingerprint import fingerprint
from takifugu.visible import visible

CHUNK = 2**20


@dataclass(frozen=True)
class OpenedFiles:
    """The files of a source, with the size and the time of each when it was opened.

    ``absent`` are files that would be read with them, and so must not be there.
    """

    paths: tuple[Path, ...]
    stats: tuple[tuple[int, int], ...]
    absent: tuple[Path, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[Path], absent: Sequence[Path] = ()) -> "OpenedFiles":
        """Note the files as they are now."""
        return cls(tuple(paths), tuple(_stat(path) for path in paths), tuple(absent))

    def refuse_change(self) -> None:
        """Raise if a file was written to since it was noted: answers would be of two datasets."""
        same = [_stat(path) == was for path, was in zip(self.paths, self.stats, strict=True)]
        alone = [not os.path.lexists(path) for path in self.absent]
        for path, still in zip((*self.paths, *self.absent), (*same, *alone), strict=True):
            if not still:
                raise DatabaseFailed(
                    visible(str(path)),
                    doing="queried",
                    trouble="it changed since it was opened",
                    advice="open it again; what was spent on the old rows stays spent",
                    reason="changed",
                )

    def fingerprint(self) -> DataFingerprint:
        """Sizes and SHA-256 hashes, in the order of the names; the names do not count."""
        self.refuse_change()
        for path in self.paths:
            refuse_cut(path)
        hashes = [
            (size, file_hash(path)) for path, (size, _) in zip(self.paths, self.stats, strict=True)
        ]
        return DataFingerprint(
            fingerprint(("files", hashes)),
            "the size and the SHA-256 hash of every file, so every byte of them",
            max(changed for _, changed in self.stats),
        )

    def note(self, *what: str | None) -> CachedFact | None:
        """Where a public fact about exactly these bytes is kept; None if they are few."""
        if sum(size for size, _ in self.stats) < LARGE:
            return None
        return CachedFact.about("data", self.fingerprint().fingerprint, *what)


def refuse_cut(path: Path) -> None:
    """Raise if a compressed file ends early: DuckDB reads what there is and says nothing."""
    if path.suffix.lower() != ".gz":
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(CHUNK):
                pass
    except (OSError, EOFError, zlib.error):
        raise DatabaseFailed(
            visible(str(path)),
            doing="read",
            trouble="it is not a complete gzip file",
            advice="get it again; it may have been cut off",
            reason="incomplete",
        ) from None


def _stat(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return (-1, -1)  # a file that is gone has changed
    return facts.st_size, facts.st_mtime_ns
