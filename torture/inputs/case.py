"""One input: the words of a command, or a call of a reader, or a request; and files put in place.

A case is plain data, so that whatever went wrong can be kept as JSON and run again.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Put:
    """What is put in the place of a file.

    Attributes:
        kind: "bytes"; or "folder", "link" (to ``content``), "pipe", "device", "locked", "missing".
        content: The bytes, or where a link leads.
    """

    kind: str = "bytes"
    content: bytes = b""


@dataclass(frozen=True)
class Case:
    """One input.

    Attributes:
        surface: What is tried, such as "file prior.json" or "command plan".
        words: The words of a command; with `reader`, none.
        files: What is put where before it runs; paths are relative to the study.
        reader: Instead of a command: the name of a function of Python's side; see `readers`.
        ignored: An option that was added to `base` with a value that means nothing.
        base: The words without that option.
        request: Instead of a command: the bytes of a request, on a connection of its own.
        route: Of a request: method and path as the route declares them.
        who: Of a request: whose token it has; empty for nobody's.
    """

    surface: str
    words: tuple[str, ...] = ()
    files: Mapping[str, Put] = field(default_factory=dict)
    reader: str = ""
    ignored: str = ""
    base: tuple[str, ...] = ()
    request: bytes = b""
    route: str = ""
    who: str = ""

    @property
    def size(self) -> int:
        """Bytes of it."""
        return (
            sum(len(word) for word in self.words)
            + sum(len(put.content) for put in self.files.values())
            + len(self.request)
        )

    def write(self, path: Path) -> None:
        """Keep it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "surface": self.surface,
            "words": list(self.words),
            "files": {
                name: [put.kind, base64.b64encode(put.content).decode()]
                for name, put in self.files.items()
            },
            "reader": self.reader,
            "ignored": self.ignored,
            "base": list(self.base),
            "request": base64.b64encode(self.request).decode(),
            "route": self.route,
            "who": self.who,
        }
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Case":
        """A case that was kept."""
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            surface=known["surface"],
            words=tuple(known["words"]),
            files={
                name: Put(kind, base64.b64decode(content))
                for name, (kind, content) in known["files"].items()
            },
            reader=known["reader"],
            ignored=known["ignored"],
            base=tuple(known["base"]),
            request=base64.b64decode(known["request"]),
            route=known["route"],
            who=known["who"],
        )


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        surface: Of the case.
        accepted: Whether it was done, rather than refused.
        reached: Where it ended: the status, the kind of error and its field, without values.
        seconds: How long it took.
        growth: Bytes by which memory grew at its peak.
        size: Bytes of the case.
        wrong: What must not be, each in a sentence; empty if all is well.
        work: Seconds of the processor; 0 where it was another process that worked.
        unjudged: An option of which it cannot be said whether it is ignored.
    """

    surface: str
    accepted: bool
    reached: str
    seconds: float
    growth: int
    size: int
    wrong: tuple[str, ...] = ()
    work: float = 0.0
    unjudged: str = ""

    def after(self, first: "Outcome") -> "Outcome":
        """This outcome of a second attempt, with what the first found besides taking too long."""
        kept = [what for what in first.wrong if not is_hang(what) and what not in self.wrong]
        seconds = max(self.seconds, first.seconds)
        return replace(self, wrong=(*self.wrong, *kept), seconds=seconds)


def is_hang(what: str) -> bool:
    """Whether a finding is that something took too long, which a busy machine may cause."""
    return what.startswith(("hangs", "no answer within"))
