"""One table of entries from the files of a dataset, made by DuckDB in one streaming pass.

Files are read through once, to see that they are whole; where DuckDB cannot read one, the error
names the column.

An entry is one row: whose it is (``entity``), when (``at``), which of those that tie (``row``),
its raw ``label``, its public ``group``, and for some datasets the ``part`` it is for. The table is
a Parquet file in a folder of the caller's. A note beside it says of which files it was made and
how; it is made anew when any of that changed, and only then.
"""

import codecs
import csv
import gzip
import hashlib
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidFile
from takifugu.priors.documents import read_json, write_json

if TYPE_CHECKING:
    import duckdb


Kind = Literal["text", "label", "whole", "number", "check-in time", "time"]
Layout = Literal["comma", "tab"]

CHUNK = 2**20

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


@dataclass(frozen=True)
class Column:
    """A column that a file must have.

    Attributes:
        name: As its authors name it; where they name none, as we do.
        kind: What its values are, if they are read: ``text`` must be there in every row, a
            ``label`` may be missing; None if only the place of the column matters.
    """

    name: str
    kind: Kind | None = None


@dataclass(frozen=True)
class RequiredFile:
    """A file, or a set of files alike, that a dataset is read from.

    Attributes:
        name: Its name as its authors publish it, or a pattern.
        columns: Its columns; in order where there is no header.
        layout: Commas and a header line, or tabs and no header.
        encodings: What the text may be encoded in; the first that fits is taken.
        identifying: Whether the name alone identifies the dataset.
    """

    name: str
    columns: tuple[Column, ...]
    layout: Layout = "comma"
    encodings: tuple[str, ...] = ("utf-8",)
    identifying: bool = True

    @property
    def shape(self) -> str:
        """The columns in words."""
        how = "comma-separated with a header" if self.layout == "comma" else "tab-separated"
        return f"{', '.join(column.name for column in self.columns)} ({how})"

    def within(self, folder: Path) -> tuple[Path, ...]:
        """The files of this name, in ``folder`` or in the first folder in it that has any."""
        try:
            inner = sorted(path for path in folder.iterdir() if path.is_dir())
            for place in (folder, *inner):
                if found := sorted(path for path in place.glob(self.name) if path.is_file()):
                    return tuple(found)
        except OSError:  # no folder, or not ours to read: its files are not there
            return ()
        return ()


FoundFiles = Mapping[
    str, tuple[RequiredFile, Sequence[Path]]
]  # by the name that a recipe has for them


@dataclass(frozen=True)
class ReadFile:
    """A file as it was read once: its identity, how it is encoded.

    Attributes:
        path: Where it is.
        size: Its bytes.
        changed: When it and its place were last written, in nanoseconds.
        sha256: The hash of every byte.
        encoding: The first of the wanted encodings that fits all of it.
    """

    path: Path
    size: int
    changed: tuple[int, int]
    sha256: str
    encoding: str

    def to_document(self) -> dict[str, object]:
        """What is noted beside a table made of it; the name counts, the folder does not."""
        return {
            "name": self.path.name,
            "size": self.size,
            "changed": list(self.changed),
            "sha256": self.sha256,
            "encoding": self.encoding,
        }


def inspect_file(
    needed: RequiredFile, path: Path, noted: Sequence[Mapping[str, object]] = ()
) -> ReadFile:
    """Read a file through once: refuse one that is empty, cut off or not text.

    A file that was ``noted`` before, with the same size and times, is not read again.
    """
    try:
        facts = path.stat()
        changed = (facts.st_mtime_ns, facts.st_ctime_ns)
        for note in noted:
            same = (note.get("name"), note.get("size"), note.get("changed"))
            if same == (path.name, facts.st_size, list(changed)):
                return ReadFile(
                    path, facts.st_size, changed, str(note["sha256"]), str(note["encoding"])
                )
        sha256, encoding = _read_through(needed, path)
    except OSError as error:
        raise InvalidFile(
            str(path),
            given=f"cannot be read ({(error.strerror or 'input error').lower()})",
            needed=f"hold the columns {needed.shape}",
        ) from None
    return ReadFile(path, facts.st_size, changed, sha256, encoding)


def _read_through(needed: RequiredFile, path: Path) -> tuple[str, str]:
    """The hash of a file and the encoding of its text; an error if it is not what it must be."""
    digest = hashlib.sha256()
    decoders = {name: codecs.getincrementaldecoder(name)() for name in needed.encodings}
    content = False
    for block, last in _blocks(path, digest):
        content = content or bool(block.strip())
        for name, decoder in list(decoders.items()):
            try:
                decoder.decode(block, final=last)
            except UnicodeDecodeError:
                del decoders[name]
        if not decoders:
            raise InvalidFile(
                str(path),
                given=f"is not text in {' or '.join(needed.encodings)}",
                needed=f"hold the columns {needed.shape}",
            )
    if not content:
        raise InvalidFile(str(path), given="is empty", needed=f"hold the columns {needed.shape}")
    return digest.hexdigest(), next(iter(decoders))


def _blocks(path: Path, digest: "hashlib._Hash") -> Iterator[tuple[bytes, bool]]:
    """The text of a file, unpacked if need be, and whether it is the last of it.

    A database may take a cut-off archive for a whole one, so it is unpacked to its end here.
    """
    packed = path.suffix == ".gz"
    unpack = zlib.decompressobj(wbits=31)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            if not packed:
                yield chunk, False
                continue
            while chunk:
                if unpack.eof:  # an archive may have several parts, one after the other
                    unpack = zlib.decompressobj(wbits=31)
                try:
                    yield unpack.decompress(chunk), False
                except zlib.error:
                    raise InvalidFile(
                        str(path), given="is not a gzip archive", needed="be one, whole"
                    ) from None
                chunk = unpack.unused_data
    if packed and not unpack.eof:
        raise InvalidFile(
            str(path), given="is cut off", needed="be a whole gzip archive: fetch it again"
        )
    yield b"", True


CHECK_IN = "'%a %b %d %H:%M:%S +0000 %Y'"
WORDS = {
    "text": "text in every row",
    "whole": "whole numbers",
    "number": "numbers",
    "time": "times, as 2016-11-13 02:18:00.01",
    "check-in time": "times, as Tue Apr 03 18:00:06 +0000 2012",
}
LONGEST_LINE = 2**24  # bytes; a night of sleep stages is one field


def typed(needed: RequiredFile, seen: Sequence[ReadFile]) -> str:
    """SQL for the rows of files: the columns that are read, each of its kind, and ``line``."""
    for one in seen:
        _header(needed, one)
    columns = [
        f"{_value(column)} AS {quoted(column.name)}" for column in needed.columns if column.kind
    ]
    return f"SELECT row_number() OVER () AS line, {', '.join(columns)} FROM {_raw(needed, seen)}"  # noqa: S608 - quoted


def read_rows(needed: RequiredFile, paths: Sequence[Path]) -> list[tuple[Any, ...]]:
    """The rows of small files: the columns that are read, in the order of ``needed``."""
    import duckdb

    seen = [inspect_file(needed, path) for path in paths]
    names = ", ".join(quoted(column.name) for column in needed.columns if column.kind)
    try:
        with duckdb.connect(":memory:") as connection:
            sql = f"SELECT {names} FROM ({typed(needed, seen)}) ORDER BY line"  # noqa: S608 - quoted
            return connection.execute(sql).fetchall()
    except duckdb.Error as error:
        refuse_misfits([(needed, seen)], error)


def refuse_misfits(
    files: Sequence[tuple[RequiredFile, Sequence[ReadFile]]], error: "duckdb.Error"
) -> NoReturn:
    """Raise an error that names the column and file that do not fit; it shows no value."""
    names = ", ".join(one.path.name for _, several in files for one in several)
    ours = re.search(r"takifugu: `(.*?)` (.*?); it must (.*)", str(error))
    if ours:
        raise InvalidFile(f"{names}, column {ours[1]}", given=ours[2], needed=ours[3]) from None
    for needed, several in files:
        for one in several:
            for column in (column for column in needed.columns if column.kind):
                _refuse_misfit(needed, one, column)
    raise InvalidFile(
        names,
        given=f"could not be made into a table ({type(error).__name__})",
        needed="be whole, and the folder for tables have room",
    ) from None


def _refuse_misfit(needed: RequiredFile, one: ReadFile, column: Column) -> None:
    import duckdb

    sql = f"SELECT count(*) FROM {_raw(needed, [one])} WHERE {_misfit(column)}"  # noqa: S608 - quoted
    try:
        with duckdb.connect(":memory:") as connection:
            ((count,),) = connection.execute(sql).fetchall()
    except duckdb.Error as trouble:
        line = re.search(r"Line: (\d+)", str(trouble))
        raise InvalidFile(
            str(one.path),
            given=f"cannot be read at line {line[1]}" if line else "cannot be read",
            needed=f"hold the columns {needed.shape} in every line",
        ) from None
    if count:
        raise InvalidFile(
            f"{one.path}, column {column.name}",
            given=f"holds something else, or nothing, in {count:,} rows",
            needed=f"hold {WORDS[str(column.kind)]}",
        )


def _header(needed: RequiredFile, one: ReadFile) -> list[str]:
    """The names of the columns of a file; an error if one that is needed is not there."""
    opened = gzip.open if one.path.suffix == ".gz" else open
    with opened(one.path, "rt", encoding=one.encoding, newline="") as stream:
        first = stream.readline(LONGEST_LINE)
    if needed.layout == "tab":
        given = len(first.rstrip("\r\n").split("\t"))
        if given != len(needed.columns):
            raise InvalidFile(
                str(one.path),
                given=f"has {given} columns",
                needed=f"have {len(needed.columns)}: {needed.shape}",
            )
        return [column.name for column in needed.columns]
    names = next(csv.reader([first]), [])
    names[:1] = [name.removeprefix("\ufeff") for name in names[:1]]
    for column in needed.columns:
        if column.name not in names:
            raise InvalidFile(
                f"{one.path}, column {column.name}",
                given="is missing",
                needed=f"be there: the columns are {needed.shape}",
            )
    return names


def _raw(needed: RequiredFile, seen: Sequence[ReadFile]) -> str:
    """SQL for the rows of files as they stand there, every column as text."""
    paths = ", ".join(text(str(one.path)) for one in seen)
    names = ", ".join(f"{text(name)}: 'VARCHAR'" for name in _header(needed, seen[0]))
    marks = (
        "header=false, delim='\t', quote='', escape=''"
        if needed.layout == "tab"
        else "header=true, delim=',', quote='\"', escape='\"'"
    )
    return (
        f"read_csv([{paths}], auto_detect=false, {marks}, encoding={text(seen[0].encoding)},"
        f" max_line_size={LONGEST_LINE}, columns={{{names}}})"
    )


def _value(column: Column) -> str:
    """The value of a column, of its kind; a row without one is an error, except for labels."""
    name = quoted(column.name)
    if column.kind == "label":
        return name
    return f"CASE WHEN {name} IS NULL THEN error('missing') ELSE {_cast(column)} END"


def _misfit(column: Column) -> str:
    """A condition on rows whose value is not of the kind that the column must hold."""
    if column.kind == "label":
        return "false"
    return f"{_cast(column, lenient=True)} IS NULL"


def _cast(column: Column, *, lenient: bool = False) -> str:
    name = quoted(column.name)
    if column.kind == "text":
        return name
    if column.kind == "check-in time":
        return f"{'try_' if lenient else ''}strptime({name}, {CHECK_IN})"
    kinds = {"whole": "BIGINT", "number": "DOUBLE", "time": "TIMESTAMP"}
    return f"{'TRY_' if lenient else ''}CAST({name} AS {kinds[str(column.kind)]})"


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"


VERSION = 1  # of what this folder makes of files: a new one makes every table anew
MEMORY = "2GB"  # what DuckDB may use before it spills


@dataclass(frozen=True)
class EntryTable:
    """A table of entries that was made, and of what.

    Attributes:
        path: The Parquet file.
        identity: Equal if the bytes of the files and what was done with them are.
        rows: How many entries there are.
    """

    path: Path
    identity: str
    rows: int


def make_table(path: Path, recipe: str, files: FoundFiles) -> EntryTable:
    """Make the table of ``recipe``, if it does not exist yet.

    Args:
        path: Where to; the folder is made if there is none.
        recipe: A SELECT of the columns of a table, with ``{name}`` for the rows of some files.
        files: For each such name what the files are and where.
    """
    note = _note(path)
    inspected = {
        name: (needed, tuple(inspect_file(needed, one, note.get("files", ())) for one in paths))
        for name, (needed, paths) in files.items()
    }
    seen = tuple(one for _, several in inspected.values() for one in several)
    identity = fingerprint((VERSION, recipe, [(one.size, one.sha256) for one in seen]))
    described = [one.to_document() for one in seen]
    if not _is_there(path, note, identity):
        sql = recipe.format(**{name: f"({typed(*found)})" for name, found in inspected.items()})
        _write_note(path, identity, _copy(sql, path, tuple(inspected.values())), described)
    elif note["files"] != described:  # the same bytes, written again
        _write_note(path, identity, int(note["rows"]), described)
    return EntryTable(path, identity, int(_note(path)["rows"]))


def make_synthetic_table(
    path: Path, recipe: str, identity: str, write: Callable[[Path], Path]
) -> EntryTable:
    """Make a table of simulated rows, if it does not exist yet.

    Args:
        path: Where to.
        recipe: A SELECT, with ``{made}`` for the rows.
        identity: The identity of the rows: of the model, its parameters and its seed.
        write: Draws the rows: takes a folder and returns the Parquet file.
    """
    identity = fingerprint((VERSION, recipe, identity))
    if not _is_there(path, _note(path), identity):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as folder:
            made = write(Path(folder))
            sql = recipe.format(made=f"read_parquet({text(str(made))})")
            _write_note(path, identity, _copy(sql, path, ()), [])
    return EntryTable(path, identity, int(_note(path)["rows"]))


def one_table(
    recipe: str, key: str, found: FoundFiles, work: Path, progress: Progress
) -> EntryTable:
    """The table of a dataset that is made in one go."""
    progress(f"{key}: reading files", 0, 1)
    return make_table(work / f"{key}.parquet", recipe, found)


def join_tables(path: Path, tables: Sequence[EntryTable]) -> EntryTable:
    """One table of several."""
    paths = ", ".join(text(str(table.path)) for table in tables)
    rows = _copy(f"FROM read_parquet([{paths}])", path, ())
    return EntryTable(path, fingerprint([table.identity for table in tables]), rows)


def _is_there(path: Path, note: Mapping[str, Any], identity: str) -> bool:
    whole = path.is_file() and note.get("bytes") == path.stat().st_size
    return whole and note.get("identity") == identity


def _note(path: Path) -> dict[str, Any]:
    """What was noted beside a table; nothing if there is none, or none that can be read."""
    try:
        found = read_json(path.with_suffix(".json"), needed="be a note beside a table")
    except InvalidFile:
        return {}
    fields = {"identity": str, "bytes": int, "rows": int, "files": list}
    fits = isinstance(found, dict) and all(
        isinstance(found.get(name), kind) for name, kind in fields.items()
    )
    return found if fits else {}


def _write_note(path: Path, identity: str, rows: int, files: Sequence[object]) -> None:
    size = path.stat().st_size
    note = {"identity": identity, "bytes": size, "rows": rows, "files": list(files)}
    write_json(note, path.with_suffix(".json"))


def _copy(sql: str, path: Path, files: Sequence[tuple[RequiredFile, Sequence[ReadFile]]]) -> int:
    """Write the rows of ``sql`` to a Parquet file, whole or not at all; how many there are."""
    import duckdb

    beside, spill = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.spill")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        config: dict[str, Any] = {"memory_limit": MEMORY, "temp_directory": str(spill)}
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute("SET enable_progress_bar = false")  # stdout is for data
            connection.execute(f"COPY ({sql}) TO {text(str(beside))} (FORMAT parquet)")
            ((rows,),) = connection.execute(
                f"SELECT count(*) FROM read_parquet({text(str(beside))})"  # noqa: S608 - quoted
            ).fetchall()
        path.with_suffix(".json").unlink(missing_ok=True)  # so that no note is of another table
        beside.replace(path)
    except duckdb.Error as error:
        refuse_misfits(files, error)
    except OSError as error:
        raise InvalidFile(
            str(path),
            given=f"cannot be written ({(error.strerror or 'output error').lower()})",
            needed="be in a writable folder",
        ) from None
    finally:
        beside.unlink(missing_ok=True)
        shutil.rmtree(spill, ignore_errors=True)
    return int(rows)
