"""One table of entries from the files of a dataset, made by DuckDB in one streaming pass.

An entry is one row: whose it is (``entity``), when (``at``), which of those that tie (``row``),
its raw ``label``, its public ``group``, and for some datasets the ``part`` it is for. The table is
a Parquet file in a folder of the caller's. A note beside it says of which files it was made and
how; it is made anew when any of that changed, and only then.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidFile
from takifugu.papers.composition.data.raw_rows import refuse_misfits, text, typed
from takifugu.papers.composition.data.source_files import (
    FoundFiles,
    Progress,
    ReadFile,
    RequiredFile,
    inspect_file,
)
from takifugu.priors.documents import read_json, write_json

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
