"""Whether an option had an effect: what a command says and writes with it, and without it twice.

Times, hashes and noise differ from run to run. Where a command differs from itself, they are
masked before it is compared; where it differs even then, nothing can be said.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from torture.inputs.unpacked import unpacked

Effect = Literal["none", "seen", "unknown"]
_VARYING = re.compile(
    r"\b(?=[\w/+-]*\d)[A-Za-z0-9/+_-]{16,}={0,2}"  # hashes, keys, signatures
    r"|\b[0-9a-f]{8,}\b"  # the beginnings of hashes
    r"|[+-]?\d[\d.,:TZ-]*(?:[eE][+-]?\d+)?(?:\s?(?:ms|s|µs)\b)?"  # numbers and times
)
PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"%PDF")  # all that counts is within
_SPACES = re.compile(r"[ ─-▟#*|-]{2,}")  # columns and bars move with their numbers


@dataclass(frozen=True)
class Done:
    """What a command has done.

    Attributes:
        said: What it said.
        files: What it wrote or took away, by name.
    """

    said: str
    files: Mapping[str, bytes]

    def masked(self) -> tuple[str, ...]:
        """The same without what varies from run to run."""
        parts = [self.said]
        for name, data in sorted(self.files.items()):
            parts += [name, *_texts(data)]
        return tuple(_SPACES.sub(" ", _VARYING.sub("#", part)) for part in parts)


def effect_of(done: Done, base: Done, again: Done) -> Effect:
    """Whether ``done`` differs from what is done without the option, which was tried twice."""
    if done in (base, again):
        return "none"
    if base == again:
        return "seen"
    if done.masked() != base.masked():
        return "seen" if base.masked() == again.masked() else "unknown"
    return "none"


def _texts(data: bytes) -> list[str]:
    if data.startswith(b"SQLite format 3\0"):
        return [_dumped(data)]
    whole, *parts = unpacked(data)
    if not parts or not data.startswith(PACKED):
        parts = [whole, *parts]
    return [part.decode("utf-8", "replace") for part in parts]


def _dumped(data: bytes) -> str:
    """The rows of a database, which its pages hold in any order."""
    alone = data[:18] + b"\1\1" + data[20:]  # without a log beside it, which memory cannot have
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(alone)
            return "\n".join(sorted(database.iterdump()))
        except (sqlite3.Error, UnicodeError):
            return data.decode("latin-1")
