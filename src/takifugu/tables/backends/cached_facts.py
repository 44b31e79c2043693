"""Public facts about large files, kept in the user's cache folder so that they are found once.

Reading a large file to hash it takes as long as counting its rows, and every command would do so
again. A note about a file is kept under all that the file system says of it: device, number, size,
and the times of its last write and of its last change of any kind. A note about data is kept under
the hash of the data. Names and facts are keyed with a key of this cache, so that a copy of a note
confirms no guess of what is in the file. Only what cannot make a charge smaller may be noted: a
wrong note gives out an old answer again, or leads to an error after a charge where there would have
been one before it.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu._core.atomic import write_whole
from takifugu._core.keys import DIGITS, Key, key_at
from takifugu.errors import InvalidFile

MIN_CACHED_SIZE = 2**24  # bytes: smaller files are read faster than it is worth to remember


@dataclass(frozen=True)
class CachedFact:
    """One fact, as a line of text in a file of its own; None if there is no place for it."""

    path: Path | None
    key: Key | None = None

    @classmethod
    def about(cls, *what: Any) -> "CachedFact":
        """The note about ``what``, whose content is its name."""
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not os.path.isabs(root):
            return cls(None)
        folder = Path(root) / "takifugu" / "facts"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (folder / "key").exists():
                _forget(folder)
            key = key_at(folder / "key")
        except (OSError, InvalidFile):
            return cls(None)
        return cls(folder / key.mark(what).partition(":")[2], key)

    def read_hash(self) -> str | None:
        """The hash that was written; None if there is none, or something else."""
        sealed = self.read()
        if sealed is None or self.key is None or len(sealed) != 64 or not set(sealed) <= DIGITS:
            return None
        return self.key.sealed(str(self._name), sealed)

    def write_hash(self, digits: str) -> None:
        """Keep a hash of protected bytes, hidden."""
        if self.key is not None:
            self.write(self.key.sealed(str(self._name), digits))

    @property
    def _name(self) -> str | None:
        return None if self.path is None else self.path.name

    def read(self) -> str | None:
        """What was written, if anything was."""
        if self.path is None:
            return None
        try:
            return self.path.read_text(encoding="ascii")
        except (OSError, ValueError):
            return None

    def write(self, fact: str) -> None:
        """Keep a fact, whole or not at all; a cache that cannot be written is no trouble."""
        if self.path is None:
            return
        with contextlib.suppress(InvalidFile):
            write_whole(self.path, fact, private=True)


def _forget(folder: Path) -> None:
    """Remove notes that no key hides: they cannot be read any more, but guessed from."""
    for path in folder.iterdir():
        if len(path.name) == 64:
            path.unlink(missing_ok=True)
