"""Public facts about large files, kept in the user's cache folder so that they are found once.

Reading a large file to hash it takes as long as counting its rows, and every command would do so
again. A note about a file is kept under all that the file system says of it: device, number, size,
and the times of its last write and of its last change of any kind. A note about data is kept under
the hash of the data. Only what cannot make a charge smaller may be noted: a wrong note gives out an
old answer again, or leads to an error after a charge where there would have been one before it.
"""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu.fingerprint import fingerprint

LARGE = 2**24  # bytes: smaller files are read faster than it is worth to remember


@dataclass(frozen=True)
class Note:
    """One fact, as a line of text in a file of its own; None if there is no place for it."""

    path: Path | None

    @classmethod
    def about(cls, *what: Any) -> "Note":
        """The note about ``what``, whose content is its name."""
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not os.path.isabs(root):
            return cls(None)
        return cls(Path(root) / "takifugu" / "facts" / fingerprint(what))

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
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(fact)
            os.replace(part, self.path)
