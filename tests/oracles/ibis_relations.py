"""Relations as Ibis expressions, whose SQL is written by other people's code.

Of the package only the values that describe a query are used, none of what writes SQL for them.
"""

from collections.abc import Mapping
from typing import Any

import ibis

from takifugu.tables import relations as rel

DIALECTS = {"duckdb": "duckdb", "postgres": "postgres", "spark": "pyspark"}
TYPES = {
    "text": "string",
    "whole": "int64",
    "real": "float64",
    "time": "timestamp",
    "zoned": "timestamp('UTC')",
    "unknown": "binary",
    "truth": "boolean",
}


@ibis.udf.scalar.builtin(name="md5", signature=(("string",), "string"))
def _md5(text):  # type: ignore[no-untyped-def]  # Ibis takes the signature
    """The hash as 32 digits, which every database here has under this name."""


TWO = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "least": ibis.least,
    "greatest": ibis.greatest,
    "join": lambda a, b: a + b,
}
ONE = {
    "not": lambda a: ~a,
    "is null": lambda a: a.isnull(),
    "is not null": lambda a: a.notnull(),
    "is nan": lambda a: a.isnan(),
    "floor": lambda a: a.floor(),
    "seconds": lambda a: a.epoch_seconds(),
    "count": lambda a: a.count(),
    "sum": lambda a: a.sum(),
    "min": lambda a: a.min(),
    "max": lambda a: a.max(),
    "md5": _md5,
}
NONE = {"row number": ibis.row_number, "dense rank": ibis.dense_rank}


class NotInIbis(Exception):
    """Ibis has no such thing."""


def sql(relation: rel.Relation, dialect: str) -> str:
    """The SQL that Ibis writes."""
    if dialect == "spark":
        _ = ibis.pyspark  # makes Ibis know the settings of its PySpark dialect
    return str(ibis.to_sql(_table(relation), dialect=DIALECTS[dialect], pretty=False))


def _table(relation: rel.Relation) -> Any:
    match relation:
        case rel.DataTable(name, types):
            return ibis.table({n: TYPES[t] for n, t in types.items()}, name=name)
        case rel.Selection(source, columns):
            table = _table(source)
            return table.select(**_columns(columns, table))
        case rel.Filtered(source, conditions):
            table = _table(source)
            return table.filter([_column(one, table) for one in conditions])
        case rel.Grouped(source, by, measures, sets):
            if sets:
                raise NotInIbis("grouping sets")
            table = _table(source)
            told = _columns(measures, table)
            found = table.group_by(list(by)).aggregate(**told) if by else table.aggregate(**told)
            return found.select(*by, *told)
        case rel.Sorted(source, by, most):
            return _table(source).order_by(list(by)).limit(most)
        case rel.Distinct(source):
            return _table(source).distinct()
    raise NotInIbis(type(relation).__name__)


def _columns(columns: Mapping[str, rel.Column], table: Any) -> dict[str, Any]:
    return {name: _column(column, table) for name, column in columns.items()}


def _column(column: rel.Column, table: Any) -> Any:
    match column:
        case rel.Reference(name):
            return table[name]
        case rel.Constant(value, kind, wide):
            return ibis.literal(value, TYPES[kind]) if wide else ibis.literal(value)
        case rel.Nothing(kind):
            return ibis.null(TYPES[kind])
        case rel.Cast(value, kind):
            return _column(value, table).cast(TYPES[kind])
        case rel.Cases(branches, otherwise):
            pairs = [(_column(a, table), _column(b, table)) for a, b in branches]
            return ibis.cases(*pairs, else_=_column(otherwise, table))
        case rel.AnyOf(value, names):
            return _column(value, table).isin(list(names))
        case rel.PlaceInList(value, names):
            of = "int64" if isinstance(names[0], int) else "string"
            listed = ibis.literal(list(names), type=f"array<{of}>")
            return listed.index(_column(value, table)).fill_null(-1)
        case rel.Windowed(function, window):
            order = [_column(one, table) for one in window.order]
            return _column(function, table).over(
                ibis.window(group_by=_column(window.group, table), order_by=order or None)
            )
        case rel.Call("count rows"):
            return table.count()
        case rel.Call("lag", (value, rel.Constant(rows))):
            return _column(value, table).lag(rows)
        case rel.Call(operation, parts):
            found = [_column(part, table) for part in parts]
            if operation in NONE:
                return NONE[operation]()
            if operation in ONE:
                return ONE[operation](*found)
            if operation in TWO:
                return TWO[operation](*found)
            raise NotInIbis(operation)
    raise NotInIbis(type(column).__name__)
