"""Rows of a test, put into a DuckDB table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from tests.contracts.engines import KINDS

TYPES = {
    "text": "VARCHAR",
    "whole": "BIGINT",
    "real": "DOUBLE",
    "time": "TIMESTAMP",
    "zoned": "TIMESTAMPTZ",
}


def store_duckdb(
    table: Sequence[Mapping[str, Any]], then: str, *, path: Path | str = ":memory:"
) -> None:
    """Make the table ``visits`` and run ``then``."""
    columns = ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in KINDS.items())
    marks = ", ".join("?" for _ in KINDS)
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE visits ({columns})")
        connection.begin()
        for row in table:
            values = [row[name] for name in KINDS]
            connection.execute(f"INSERT INTO visits VALUES ({marks})", values)  # noqa: S608
        connection.commit()
        connection.execute(then)
