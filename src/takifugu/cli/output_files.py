"""Files that results are written to, found to be writable before anything is charged."""

import csv
import json
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from takifugu._atomic import PendingFile
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.visible import csv_cell, visible

SUFFIXES = (".csv", ".json", ".parquet")


class Undelivered(TakifuguError):
    """A result was released and charged, and could not be written."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"the result was released and charged but not written to {where} ({reason}); it is"
            " stored in the ledger: the same query again returns it and costs nothing"
        )


class OutputFile(AbstractContextManager["OutputFile"]):
    """A new file in a writable folder; it appears complete, or not at all."""

    def __init__(self, path: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        self.path = path
        if path.suffix.lower() not in suffixes:
            raise InvalidFile("--out", given=f"is {str(path)!r}", needed=f"end in {_or(suffixes)}")
        if path.suffix.lower() == ".parquet":
            _parquet()
        self._pending = PendingFile(path, field="--out", refuse_existing=True)
        self._part = self._pending.part

    def write(self, document: dict[str, Any]) -> None:
        """Write a document that may hold a table under ``columns`` and ``rows``."""
        suffix = self.path.suffix.lower()
        if suffix == ".json":
            text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
            self._part.write_text(visible(text, keep="\n") + "\n", encoding="utf-8")
        elif suffix == ".csv":
            with self._part.open("w", encoding="utf-8", newline="") as stream:
                rows = csv.writer(stream, lineterminator="\n")
                rows.writerow(map(csv_cell, document["columns"]))
                rows.writerows(map(csv_cell, row) for row in document["rows"])
        else:
            pyarrow, parquet = _parquet()
            columns = {
                name: _one_kind([row[place] for row in document["rows"]])
                for place, name in enumerate(document["columns"])
            }
            parquet.write_table(pyarrow.table(columns), self._part)
        self._pending.keep(fsync=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pending.discard()


def _or(words: tuple[str, ...]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _parquet() -> tuple[Any, Any]:
    from takifugu.engines.engine_errors import driver

    with driver("pyarrow", purpose="a Parquet file", extra="tables"):
        return import_module("pyarrow"), import_module("pyarrow.parquet")


def _one_kind(values: list[Any]) -> list[Any]:
    """A column; as text if it mixes texts and numbers, for which Parquet has no type."""
    texts = sum(isinstance(value, str) for value in values)
    known = sum(value is not None for value in values)
    return values if texts in (0, known) else [v if v is None else str(v) for v in values]
