"""The log of a server, line by line: errors that nobody caught, and what no log may have."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torture.inputs.canary_study import CANARIES

HOOKS = (  # what is logged where an error reached the end of a thread, a loop or a process
    *("a thread ended", "an error was not handled", "the event loop met an error"),
    *("the server ended by an error", "a worker ended", "a thread of a worker ended"),
)
SEVERE = ("error", "critical")
_PLACED = re.compile(r"\(reference \w+\): (?:nowhere$|[\w.]+\.[\w<>]+:\d+(?: < |$))")


@dataclass
class ServerLog:
    """What a server logs.

    Attributes:
        failed: Requests that were answered with a status of 500 or above, which is told already.
    """

    failed: set[str] = field(default_factory=set)
    _read: int = 0

    def read(self, path: Path) -> tuple[str, list[str]]:
        """What is new since the last time, and what is wrong with it."""
        with path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]  # the last line may be being written
        self._read += len(whole)
        text = new.decode("utf-8", "replace")
        found = [f"the canary {canary} is in the log" for canary in CANARIES if canary in text]
        lines = whole.decode("utf-8", "replace").split("\n")
        faults = [line for line in lines if self._is_fault(line)]
        return text, found + [f"the log tells of a fault: {line[:300]}" for line in faults]

    def _is_fault(self, line: str) -> bool:
        try:
            record = json.loads(line)
        except ValueError:
            return bool(line.strip())  # every line is an object of JSON
        if not isinstance(record, dict):
            return True
        if record.get("level") not in SEVERE:
            return False
        if record["level"] == "critical" or str(record.get("message")).startswith(HOOKS):
            return True
        return _is_unforeseen(record) and record.get("request") not in self.failed


def _is_unforeseen(record: dict[str, Any]) -> bool:
    """Whether a record shows where in the code an error was: takifugu did not raise it in words.

    A refusal in words that an analyst must not read is logged for the owner.
    """
    return "places" in record or _PLACED.search(str(record.get("message"))) is not None
