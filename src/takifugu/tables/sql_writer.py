"""Relations as SQL, for DuckDB, PostgreSQL and Spark.

All text of a declaration or of a query gets into SQL here: names by `Dialect.name`, values by
`Dialect.constant`. Every column is written with the relation that it belongs to, so that no alias
can stand for it. What a dialect writes in its own way is in the tables below; the tests compare the
answers with those of SQL that Ibis writes for the same relations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

from takifugu.declarations.table_errors import InvalidQuery
from takifugu.tables.relations import (
    AnyOf,
    Call,
    Cases,
    Cast,
    Column,
    Constant,
    DataTable,
    DataType,
    Distinct,
    Filtered,
    Grouped,
    Nothing,
    PlaceInList,
    Reference,
    Relation,
    Selection,
    Sorted,
    Value,
    Windowed,
)

OPERATIONS = {
    **{sign: f"({{}} {sign} {{}})" for sign in ("+", "-", "*", "%", "/", "//")},
    **{sign: f"({{}} {sign} {{}})" for sign in ("=", "<>", "<", ">", ">=")},
    "and": "({} AND {})",
    "or": "({} OR {})",
    "not": "(NOT {})",
    "is null": "({} IS NULL)",
    "is not null": "({} IS NOT NULL)",
    "is nan": "isnan({})",
    "floor": "floor({})",
    "md5": "md5({})",
    "lag": "lag({}, {})",
    "count": "count({})",
    "count rows": "count(*)",
    "sum": "sum({})",
    "min": "min({})",
    "max": "max({})",
    "grouping": "GROUPING({})",
    "row number": "row_number()",
    "dense rank": "dense_rank()",
}
SEVERAL = {"least": ("least(", ", ", ")"), "greatest": ("greatest(", ", ", ")")}
SEVERAL["join"] = ("(", " || ", ")")
FROM_ONE = frozenset({"row number", "dense rank"})  # count from 1 in SQL, from 0 here


@dataclass(frozen=True)
class Dialect:
    """What one database writes in its own way.

    Attributes:
        database: What it is called, for messages.
        quote: The mark around names.
        types: The name of each type, for CAST.
        operations: Operations that are not written as in `OPERATIONS`.
        place: The place of a value in a list from 1 on, 0 or NULL if it is not there.
        array: A list of values.
        text: A text that has quotes, backslashes or control characters.
        number_of_digits: A whole number from its hexadecimal digits.
        microseconds: A time as microseconds since 1970, which ``CAST … AS timestamp`` makes of it.
    """

    database: str
    quote: str
    types: Mapping[DataType, str]
    operations: Mapping[str, str]
    place: str
    array: str
    text: Callable[[str], str]
    number_of_digits: str
    microseconds: str

    def name(self, name: str) -> str:
        """A name as SQL takes it, whatever it holds."""
        if "\0" in name:
            raise _unwritable("a column", self.database)
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def constant(self, value: Value, type: DataType, *, wide: bool = False) -> str:
        """A value as SQL takes it, whatever it holds, with its type where that matters."""
        if isinstance(value, str):
            return f"'{value}'" if _plain(value) else self.text(value)
        if isinstance(value, datetime):
            return f"CAST('{value.isoformat()}' AS {self.types[type]})"
        if isinstance(value, float):
            if not isfinite(value):
                raise InvalidQuery("number", given=f"is {value}", needed="be finite")
            return f"CAST('{value!r}' AS {self.types['real']})"
        whole = str(int(value)) if value >= 0 else f"({int(value)})"
        return f"CAST({whole} AS {self.types['whole']})" if wide else whole


def _plain(text: str) -> bool:
    return text.isprintable() and "'" not in text and "\\" not in text


def _unwritable(what: str, database: str) -> InvalidQuery:
    return InvalidQuery(
        what,
        given="has a NUL character in its name or value",
        needed=f"have none: {database} has no way to write one",
        reason="NUL",
    )


def _duckdb_text(text: str) -> str:
    """Quotes are doubled, and what SQL cannot hold is put between by its number."""
    parts = ("'" + part.replace("'", "''") + "'" for part in text.split("\0"))
    return f"({' || chr(0) || '.join(parts)})"


def _postgres_text(text: str) -> str:
    """By their codes, since what a backslash means depends on a setting of the server."""
    if "\0" in text:
        raise _unwritable("a label", "PostgreSQL")
    return f"convert_from(decode('{text.encode().hex()}', 'hex'), 'UTF8')"


def _spark_text(text: str) -> str:
    """By their codes, since what a backslash means depends on a setting of the session."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


DIALECTS = {
    "duckdb": Dialect(
        "DuckDB",
        '"',
        {
            "text": "VARCHAR",
            "whole": "BIGINT",
            "real": "DOUBLE",
            "time": "TIMESTAMP",
            "zoned": "TIMESTAMP WITH TIME ZONE",
            "unknown": "BLOB",
            "truth": "BOOLEAN",
        },
        {"seconds": "epoch(CAST({} AS TIMESTAMP))"},
        "list_position({}, {})",
        "[{}]",
        _duckdb_text,
        "CAST('0x' || {} AS bigint)",
        "epoch_us(CAST({} AS timestamp))",
    ),
    "postgres": Dialect(
        "PostgreSQL",
        '"',
        {
            "text": "text",
            "whole": "bigint",
            "real": "double precision",
            "time": "timestamp",
            "zoned": "timestamptz",
            "unknown": "bytea",
            "truth": "boolean",
        },
        {
            "//": "({} / {})",  # of whole numbers
            "is nan": "({} = CAST('NaN' AS double precision))",
            "seconds": "extract(epoch FROM {})",
        },
        "array_position({}, {})",
        "ARRAY[{}]",
        _postgres_text,
        "CAST(CAST('x0' || {} AS bit(64)) AS bigint)",
        "CAST(extract(epoch FROM CAST({} AS timestamp)) * 1000000 AS bigint)",
    ),
    "spark": Dialect(
        "Spark",
        "`",
        {
            "text": "STRING",
            "whole": "BIGINT",
            "real": "DOUBLE",
            "time": "TIMESTAMP_NTZ",
            "zoned": "TIMESTAMP",
            "unknown": "BINARY",
            "truth": "BOOLEAN",
        },
        {"//": "({} DIV {})", "seconds": "unix_timestamp(CAST({} AS TIMESTAMP))"},
        "array_position({}, {})",
        "array({})",
        _spark_text,
        "CAST(conv({}, 16, 10) AS bigint)",
        "unix_micros(CAST({} AS timestamp))",
    ),
}


def sql(relation: Relation, dialect: str) -> str:
    """A relation as one SELECT."""
    return _Writer(DIALECTS[dialect]).relation(relation)


@dataclass(frozen=True)
class _Writer:
    dialect: Dialect

    def relation(self, relation: Relation) -> str:
        """A SELECT; its source is called ``t`` in it."""
        match relation:
            case Selection(source, columns):
                chosen = (f"{self.column(c)} AS {self.dialect.name(n)}" for n, c in columns.items())
                return self._select(", ".join(chosen), source)
            case Grouped():
                return self._grouped(relation)
            case Sorted(source, by, most):
                places = ", ".join(f"t.{self.dialect.name(name)} ASC NULLS LAST" for name in by)
                return f"{self._select(self._all(relation), source)} ORDER BY {places} LIMIT {most}"
            case Distinct(source):
                return self._select(f"DISTINCT {self._all(relation)}", source)
            case Filtered() | DataTable():
                return self._select(self._all(relation), relation)
        raise TypeError(f"no SQL is known for a {type(relation).__name__}")

    def _select(self, what: str, source: Relation) -> str:
        """A selection from a source; the conditions of a filter go with it."""
        where = ""
        if isinstance(source, Filtered):
            where = " WHERE " + " AND ".join(map(self.column, source.conditions))
            source = source.source
        place = (
            self.dialect.name(source.name)
            if isinstance(source, DataTable)
            else f"({self.relation(source)})"
        )
        return f"SELECT {what} FROM {place} AS t{where}"  # noqa: S608 - names and values are quoted

    def _all(self, relation: Relation) -> str:
        """Every column by name: `*` would have what the database has."""
        names = map(self.dialect.name, relation.types)
        return ", ".join(f"t.{name} AS {name}" for name in names)

    def _grouped(self, grouped: Grouped) -> str:
        names = {name: self.dialect.name(name) for name in grouped.by}
        keys = [f"t.{name} AS {name}" for name in names.values()]
        told = [
            f"{self.column(column)} AS {self.dialect.name(name)}"
            for name, column in grouped.measures.items()
        ]
        text = self._select(", ".join([*keys, *told]), grouped.source)
        if grouped.sets:
            sets = (", ".join(f"t.{names[name]}" for name in chosen) for chosen in grouped.sets)
            return f"{text} GROUP BY GROUPING SETS ({', '.join(f'({one})' for one in sets)})"
        if not keys:
            return text
        return f"{text} GROUP BY {', '.join(f't.{name}' for name in names.values())}"

    def column(self, column: Column) -> str:
        """An expression, in brackets wherever that could matter."""
        write = self.dialect.constant
        match column:
            case Reference(name):
                return f"t.{self.dialect.name(name)}"
            case Constant(value, type, wide):
                return write(value, type, wide=wide)
            case Nothing(type):
                return f"CAST(NULL AS {self.dialect.types[type]})"
            case Cast(value, type):
                return f"CAST({self.column(value)} AS {self.dialect.types[type]})"
            case Call():
                return self._call(column)
            case Cases(branches, otherwise):
                when = (f"WHEN {self.column(a)} THEN {self.column(b)}" for a, b in branches)
                return f"CASE {' '.join(when)} ELSE {self.column(otherwise)} END"
            case AnyOf(value, names):
                listed = ", ".join(write(name, value.type) for name in names)
                return f"({self.column(value)} IN ({listed}))" if names else "FALSE"
            case PlaceInList(value, names):
                listed = ", ".join(write(name, value.type) for name in names)
                place = self.dialect.place.format(
                    self.dialect.array.format(listed), self.column(value)
                )
                return f"(coalesce({place}, 0) - 1)"
            case Windowed(function, window):
                order = ", ".join(
                    f"{self.column(from_one)} ASC NULLS LAST" for from_one in window.order
                )
                within = f"PARTITION BY {self.column(window.group)}"
                over = f"{within} ORDER BY {order}" if order else within
                windowed = f"{self.column(function)} OVER ({over})"
                from_one = isinstance(function, Call) and function.operation in FROM_ONE
                return f"({windowed} - 1)" if from_one else windowed
        raise TypeError(f"no SQL is known for a {column.__class__.__name__}")

    def _call(self, call: Call) -> str:
        parts = [self.column(part) for part in call.of]
        if call.operation in SEVERAL:
            before, between, after = SEVERAL[call.operation]
            return f"{before}{between.join(parts)}{after}"
        template = self.dialect.operations.get(call.operation) or OPERATIONS[call.operation]
        return template.format(*parts)
