"""Write blocks of columns to one Parquet file, and a declaration beside it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidFile

Block = Mapping[str, Integers]


def write_parquet(
    path: Path, blocks: Iterable[Block], select: str, names: Mapping[str, Sequence[str]]
) -> None:
    """Write what ``select`` makes of the blocks, in their order; all of the file or nothing of it.

    Args:
        path: The file; what was there is replaced.
        blocks: Columns of whole numbers. One block at a time is kept in memory.
        select: The list of columns in SQL; a block is called ``block``.
        names: For each list of names, a variable that ``select`` may index, from 1.
    """
    import duckdb

    with TemporaryDirectory(prefix=".parts-", dir=_folder(path)) as parts:
        connection = duckdb.connect()
        try:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET memory_limit = '1GB'")
            connection.execute(f"SET temp_directory = {_text(parts)}")
            for name, values in names.items():
                listed = ", ".join(_text(value) for value in values)
                connection.execute(f"SET VARIABLE {name} = [{listed}]")
            written = []
            for number, block in enumerate(blocks):
                part = Path(parts) / f"{number}.parquet"
                connection.register("block", dict(block))
                connection.execute(_copy(f"SELECT {select} FROM block", part))  # noqa: S608
                connection.unregister("block")
                written.append(part)
            whole = written[0]
            if len(written) > 1:
                whole = Path(parts) / "whole.parquet"
                listed = ", ".join(_text(str(part)) for part in written)
                connection.execute(_copy(f"FROM read_parquet([{listed}])", whole))
        finally:
            connection.close()
        whole.replace(path)


def toml_list(values: Sequence[str]) -> str:
    """A list of texts as TOML, a few to a line."""
    lines: list[str] = [""]
    for value in values:
        item = json.dumps(value, ensure_ascii=False) + ", "
        if len(lines[-1]) + len(item) > 96:
            lines.append("")
        lines[-1] += item
    return "[\n" + "\n".join(f"  {line.rstrip()}" for line in lines) + "\n]"


def _folder(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidFile(
            str(path.parent), given="cannot be made", needed="be a folder to write to"
        ) from None
    return path.parent


def _copy(query: str, path: Path) -> str:
    return f"COPY ({query}) TO {_text(str(path))} (FORMAT parquet, COMPRESSION zstd)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
