"""Spark, through PySpark: tables of its catalogue, and Parquet files."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from takifugu.declarations.columns import NO_ORDER
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, driver, without_values
from takifugu.tables.backends.backend import (
    COUNT,
    DATA,
    Backend,
    CachedFact,
    DataFingerprint,
    Kind,
    declared_kinds,
    table_fingerprint,
)
from takifugu.tables.backends.opened_files import OpenedFiles, misread, source_files
from takifugu.tables.sql_writer import DIALECTS

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
    **dict.fromkeys(("float", "double"), "real"),
    **dict.fromkeys(("timestamp_ntz", "date"), "time"),
    "string": "text",
    "timestamp": "zoned",
}

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # of PySpark, for errors


class SparkBackend(Backend):
    """A session of its own beside the caller's, in UTC; it shares their catalogue and cluster."""

    dialect = "spark"

    def __init__(self, declaration: Declaration, *, session: Any = None) -> None:
        if declaration.source.kind not in ("spark", "parquet"):
            raise InvalidDeclaration(
                "source, kind",
                given=f"is {declaration.source.kind!r}",
                needed="be 'spark' or 'parquet' to be read by Spark",
            )
        with driver("pyspark", purpose="reading with Spark", extra="spark"), _silent():
            import pyspark.sql  # noqa: F401 - found missing here, and said so
        self._declaration = declaration
        self._place = declaration.source.place
        by_path = declaration.source.kind == "parquet"
        self._files = OpenedFiles.of(source_files(declaration)) if by_path else None
        self.files = () if self._files is None else self._files.paths
        self.may_change = self._files is None
        advice = "see that the table is in the catalogue, or that the files are whole"
        with _unlogged():
            without_values(
                lambda: self._open(declaration, session), self._place, doing="opened", advice=advice
            )

    def _open(self, declaration: Declaration, session: Any) -> None:
        from pyspark.sql import SparkSession, functions

        base = session or SparkSession.builder.appName("takifugu").getOrCreate()
        self._session = base.newSession()
        self._session.conf.set("spark.sql.session.timeZone", "UTC")
        self._session.conf.set("spark.sql.ansi.enabled", "true")  # an overflow is an error
        # otherwise a label such as ${env:HOME} stands for whatever that is on this machine
        self._session.conf.set("spark.sql.variable.substitute", "false")
        frame = (
            self._session.table(str(declaration.source.table))
            if self._files is None
            else self._read(self._files.paths)
        )
        kinds = {field.name: _kind(field.dataType.simpleString()) for field in frame.schema}
        self.kinds = declared_kinds(declaration, kinds)
        dialect = DIALECTS[self.dialect]
        chosen = [
            functions.lit(0).cast("bigint").alias(name)
            if name == NO_ORDER
            else frame[dialect.name(name)]
            if kind == "unknown"
            else frame[dialect.name(name)].cast(dialect.types[kind]).alias(name)
            for name, kind in self.kinds.items()
        ]
        frame.select(*chosen).createOrReplaceTempView(DATA)

    def _read(self, paths: tuple[Path, ...]) -> Any:
        """Exactly these files. Spark would take names for patterns, and leaves out ``_hidden``."""
        reader = self._session.read.option("__globPaths__", "false")
        frame = reader.parquet(*(f"file://{path}" for path in paths))
        files = [unquote(urlsplit(file).path) for file in frame.inputFiles()]
        if sorted(files) != sorted(map(str, paths)):
            raise misread(paths[0])
        return frame

    def refuse_change(self) -> None:
        """Raise if a file is not as it was when it was opened."""
        if self._files is not None:
            self._files.refuse_change()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates."""
        self.refuse_change()
        advice = "see that the cluster is up and that every value is of its column's kind"
        with _unlogged():
            return without_values(
                lambda: [tuple(row) for row in self._session.sql(sql).collect()],
                self._place,
                doing="queried",
                advice=advice,
            )

    def fingerprint(self) -> DataFingerprint:
        """Every byte of files; of a table the number of rows and the kinds of the columns."""
        if self._files is not None:
            return self._files.fingerprint()
        ((count,),) = self.rows(COUNT)
        return table_fingerprint(self._declaration, self.kinds, count)

    def note(self, *what: str | None) -> CachedFact | None:
        """Kept for large files; a table may change unseen."""
        return None if self._files is None else self._files.note(*what)

    def close(self) -> None:
        """Drop the view; the session's cluster belongs to the caller, and stays.

        A driver that is gone has taken the view along: the error that told so is the one to show.
        """
        with _unlogged(), suppress(Exception):
            self._session.catalog.dropTempView(DATA)


@contextmanager
def _silent() -> Iterator[None]:
    """PySpark warns of pandas, which is not used here, in more than one place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _unlogged() -> Iterator[None]:
    """PySpark logs the message of every error as it is raised, with the value that it is about."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(_nothing)
    try:
        with _silent():
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _kind(kind: str) -> Kind:
    return "real" if kind.startswith("decimal") else KINDS.get(kind, "unknown")
