"""JSON files that commands write, found to be writable before anything is done."""

import json
from pathlib import Path
from typing import Any

from takifugu._core.atomic import PendingFile
from takifugu._core.closing import Closing
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.visible import visible


class Undelivered(TakifuguError):
    """A result was released and charged, and could not be written."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"the result was released and charged but not written to {where} ({reason}); it is"
            " stored in the ledger: the same query again returns it and costs nothing"
        )


class OutputFile(Closing):
    """A new JSON file in a writable folder; it appears complete, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix.lower() != ".json":
            raise InvalidFile("--out", given=f"is {str(path)!r}", needed="end in .json")
        self._pending = PendingFile(path, field="--out", refuse_existing=True)

    def write(self, document: dict[str, Any]) -> None:
        """Write a document."""
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
        self._pending.part.write_text(visible(text, keep="\n") + "\n", encoding="utf-8")
        self._pending.keep(fsync=True)

    def close(self) -> None:
        """Leave nothing of a file that was not written."""
        self._pending.discard()
