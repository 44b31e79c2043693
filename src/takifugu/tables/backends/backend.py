"""What every database has to do for an engine: describe its columns, and answer SQL.

`takifugu.tables.sql_writer` writes the SQL, the database's own driver runs it. The steps that
add a database are in docs/how-to/add-an-engine.md.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from takifugu._core.atomic import write_whole
from takifugu._core.fingerprint import fingerprint
from takifugu._core.keys import DIGITS, Key, key_at
from takifugu.declarations.columns import NO_ORDER
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.errors import InvalidFile, one_of

MIN_CACHED_SIZE = 2**24  # bytes: smaller files are read faster than it is worth to remember


@dataclass(frozen=True)
class CachedFact:
    """A public fact about a large file, as a line of text in a file of its own in the user's cache.

    Reading a large file to hash it takes as long as counting its rows, and every command would do
    so again. A note about a file is kept under all that the file system says of it: device, number,
    size, and the times of its last write and of its last change of any kind. A note about data is
    kept under the hash of the data. Names and facts are keyed with a key of this cache, so that a
    copy of a note confirms no guess of what is in the file. Only what cannot make a charge smaller
    may be noted: a wrong note gives out an old answer again, or leads to an error after a charge
    where there would have been one before it.

    Attributes:
        path: The file; None if there is no place for it.
        key: The key of the cache.
    """

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


Kind = Literal["text", "whole", "real", "time", "zoned", "unknown"]
DATA = "data"  # the one relation that a query may read: the declared columns and no other
COUNT = "SELECT count(*) FROM data"


@dataclass(frozen=True)
class DataFingerprint:
    """An identity of the data at one time, and what it covers.

    It is a plain hash, and confirms a guess of the whole file: it is neither printed nor stored,
    only its keyed mark is (`Ledger.mark`).

    Attributes:
        fingerprint: Equal for equal data, as far as ``covers`` goes.
        covers: What it covers, for people.
        changed: When the youngest file was last written, in nanoseconds since 1970; None for a
            table. No part of the identity: a copy of a file is the same data.
        rows: How many rows there are, where that was counted for it; else None.
    """

    fingerprint: str = field(repr=False)
    covers: str
    changed: int | None = None
    rows: int | None = field(default=None, compare=False)


class Backend(Protocol):
    """A database with one relation, `DATA`, of exactly the declared columns.

    Implementers: `FileBackend` and `FrameBackend` (DuckDB), `PostgresBackend`, `SparkBackend`. A
    new one is a module beside these, and one line each in `SourceKind` and `SOURCES`
    (declarations/columns.py), in `BackendName`, `BACKENDS` and `open_engine` (opening.py), and in
    `DIALECTS` (sql_writer.py) if its SQL is new. Its test is the contract,
    tests/contracts/engines.py.

    Attributes:
        dialect: The name of its SQL in `DIALECTS` (sql_writer.py).
        kinds: The kind of every declared column. `NO_ORDER` is one of `DATA` that is 0 in each row.
        files: The files that the rows are in; none for a table of a server.
        finds_in_lists: Whether its SQL finds the place of a value in a list; if not, labels are
            looked up here.
        finds_for_each_row: Whether it does so fast enough to look up each row's value in a short
            list before rows are sorted.
        may_change: Whether others may write to the rows while they are read.
        closed: Whether an engine has closed it.
    """

    dialect: str
    kinds: Mapping[str, Kind]
    files: tuple[Path, ...] = ()
    finds_in_lists: bool = True
    finds_for_each_row: bool = False
    may_change: bool = False
    closed: bool = False

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates."""

    def fingerprint(self) -> DataFingerprint:
        """The identity of the data, as far as this kind of source allows."""

    def note(self, *what: str | None) -> CachedFact | None:  # noqa: ARG002 - for those that keep one
        """Where a public fact about the data as it is now is kept; None to find it each time."""
        return None

    def refuse_cut_rows(self) -> None:
        """Raise if rows of a CSV file have too many or too few fields."""
        return

    def unparsed_times(self) -> int:
        """How many rows have a time that is not in the declared format; 0 where none is said."""
        return 0

    def refuse_change(self) -> None:
        """Raise if a file is not as it was when it was opened; nothing for other sources."""
        return

    def interrupt(self) -> None:
        """Give up the query that is running, in whichever thread; for those that can."""
        return

    def close(self) -> None:
        """Let go of the database."""


def declared_kinds(declaration: Declaration, found: Mapping[str, Kind]) -> dict[str, Kind]:
    """The kinds of the declared columns; an error for one that the data does not have."""
    if declaration.order.absent:
        found = {**found, NO_ORDER: "whole"}
    missing = [name for name in declaration.columns if name not in found]
    if missing:
        raise InvalidDeclaration(
            missing[0],
            given=f"is not a column of {declaration.source.place}",
            needed=_listed(declaration, found, missing[0]),
        )
    return {name: found[name] for name in declaration.columns}


def _listed(declaration: Declaration, found: Mapping[str, Kind], name: str) -> str:
    """The columns that there are; not of a CSV file, whose header may be a row of data."""
    if declaration.source.kind == "csv":
        return "be one, spelled as it is there"
    return f"{one_of(found, name)}, spelled as it is there"


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(table: str) -> str:
    """``schema.table`` as SQL takes it."""
    return ".".join(quoted(part) for part in table.split("."))


def table_fingerprint(
    declaration: Declaration, columns: Mapping[str, Kind], count: int
) -> DataFingerprint:
    """The identity of a table, which nothing short of reading it all would make complete."""
    source = declaration.source
    return DataFingerprint(
        fingerprint(("table", source.table, count, dict(columns))),
        "the name of the table, the number of its rows and the kinds of the declared columns;"
        " not the values: rows that changed in place are not noticed",
        rows=int(count),
    )
