"""One table of entries from the files of a dataset, made by DuckDB in one streaming pass.

An entry is one row: whose it is (``entity``), when (``at``), which of those that tie (``row``),
its raw ``label``, its public ``group``, and for some datasets the ``part`` it is for. The table is
a Parquet file in a folder of the caller's. A note beside it says of which files it was made and
how; it is made anew when any of that changed, and only then.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.composition.data.files import Found, Needed, Progress, Seen, look
from papers.composition.data.reading import refuse_misfits, text, typed
from takifugu.errors import InvalidFile
from takifugu.fingerprint import fingerprint
from takifugu.priors.documents import read_json, write_json

VERSION = 1  # of what this folder makes of files: a new one makes every table anew
MEMORY = "2GB"  # what DuckDB may use before it spills


@dataclass(frozen=True)
class Table:
    """A table of entries that was made, and of what.

    Attributes:
        path: The Parquet file.
        seen: The files that it was made of.
        identity: Equal if the bytes of the files and what was done with them are.
        rows: How many entries there are.
    """

    path: Path
    seen: tuple[Seen, ...]
    identity: str
    rows: int


def make_table(path: Path, recipe: str, files: Found) -> Table:
    """Make the table that ``recipe`` says, unless it is there already.

    Args:
        path: Where to; the folder is made if there is none.
        recipe: A SELECT of the columns of a table, with ``{name}`` for the rows of some files.
        files: For each such name what the files are and where.
    """
    note_path = path.with_suffix(".json")
    note = _note(note_path)
    noted = note.get("files", [])
    looked = {
        name: (needed, tuple(look(needed, one, noted) for one in paths))
        for name, (needed, paths) in files.items()
    }
    seen = tuple(one for _, several in looked.values() for one in several)
    identity = fingerprint((VERSION, recipe, [(one.size, one.sha256) for one in seen]))
    whole = path.is_file() and note.get("bytes") == path.stat().st_size
    if not whole or note.get("identity") != identity:
        sql = recipe.format(**{name: f"({typed(*found)})" for name, found in looked.items()})
        rows = _copy(sql, path, tuple(looked.values()))
        note = {"identity": identity, "bytes": path.stat().st_size, "rows": rows}
    described = [one.to_document() for one in seen]
    if note.get("files") != described:
        write_json(note | {"files": described}, note_path)
    return Table(path, seen, identity, int(note["rows"]))


def one_table(recipe: str, key: str, found: Found, work: Path, progress: Progress) -> Table:
    """The table of a dataset that is made in one go."""
    progress(f"{key}: reading files", 0, 1)
    return make_table(work / f"{key}.parquet", recipe, found)


def join_tables(path: Path, tables: Sequence[Table]) -> Table:
    """One table of several."""
    paths = ", ".join(text(str(table.path)) for table in tables)
    rows = _copy(f"FROM read_parquet([{paths}])", path, ())
    seen = tuple(one for table in tables for one in table.seen)
    return Table(path, seen, fingerprint([table.identity for table in tables]), rows)


def _note(path: Path) -> dict[str, Any]:
    """What was noted beside a table; nothing if there is none, or none that can be read."""
    try:
        found = read_json(path, needed="be a note beside a table")
    except InvalidFile:
        return {}
    fields = isinstance(found, dict) and isinstance(found.get("files"), list)
    return found if fields and isinstance(found.get("rows"), int) else {}


def _copy(sql: str, path: Path, files: Sequence[tuple[Needed, Sequence[Seen]]]) -> int:
    """Write the rows of ``sql`` to a Parquet file, whole or not at all; how many there are."""
    import duckdb

    beside, spill = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.spill")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        config: dict[str, Any] = {"memory_limit": MEMORY, "temp_directory": str(spill)}
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute(f"COPY ({sql}) TO {text(str(beside))} (FORMAT parquet)")
            ((rows,),) = connection.execute(
                f"SELECT count(*) FROM read_parquet({text(str(beside))})"  # noqa: S608 - quoted
            ).fetchall()
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
