"""How many rows a query reads, of how many, and why not all: public, by declaration.

An answer about some of the rows looks like one about all of them. So plans and results say how many
were read, and which rows were not: those outside the window, those that ``where`` leaves out, those
that a prior was fitted on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from takifugu.declarations import InvalidQuery
from takifugu.documents.declared import parts_from, to_document
from takifugu.documents.reading import DocumentPart
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.query import Query
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine
from takifugu.visible import visible


@dataclass(frozen=True)
class RowsRead:
    """How many rows a query reads, of how many.

    Attributes:
        read: The rows that it reads.
        there: The rows of the table, among them those that a prior was fitted on.
        others: What keeps rows from being read, in words; none if nothing does.
        entity: The column of the entities.
        longest: The most rows that an entity of the table has, of a query that counts rows; None
            if it is another, or if counting them would take one more scan of a table that others
            may write to.
        entities: How many entities the table has, where that is known as ``longest`` is.
    """

    read: int
    there: int
    others: tuple[str, ...] = ()
    entity: str = ""
    longest: int | None = None
    entities: int | None = None

    def describe(self) -> dict[str, Any]:
        """Both numbers as JSON."""
        return {"rows_read": self.read, "rows_there": self.there}

    def details(self) -> dict[str, Any]:
        """All but the numbers of rows as JSON: what the words about them are made of."""
        document: dict[str, Any] = to_document(self)
        return {key: document[key] for key in ("others", "entity", "longest", "entities")}

    @classmethod
    def from_document(cls, found: DocumentPart) -> "RowsRead | None":
        """The rows that the query of a plan or a result reads; None if it does not say."""
        if not found.has("rows_read"):
            return None
        details = parts_from(cls, found.part("reads"), without=("read", "there"))
        return cls(found.whole("rows_read"), found.whole("rows_there"), **details)

    def record(self) -> dict[str, Any]:
        """The same with what else a reader of the ledger has to know, who has no table."""
        return {
            **self.describe(),
            **({"rows_others": list(self.others)} if self.others else {}),
            **({} if self.entities is None else {"entities_there": self.entities}),
        }

    def of_table(self, rows: int | None) -> "RowsRead":
        """The same of a table of so many rows, where they are known from its fingerprint."""
        return self if rows is None else replace(self, there=max(self.read, rows))

    @property
    def lines(self) -> tuple[str, ...]:
        """What to know of it, if it is not that every row counts and is of another entity."""
        found, fewer = [], self.read < self.there
        if fewer:
            why = f": the others are {_either(self.others)}" if self.others else ""
            found.append(f"reads {self.read:,} of {self.there:,} rows{why}")
        if self.longest is not None and self.longest > 1:
            has = "of which the table has up to" if fewer else "up to"
            found.append(f"counts rows, {has} {self.longest:,} of each `{visible(self.entity)}`")
        return tuple(found)


def rows_read(
    query: Query, options: QueryOptions, engine: Engine, releasable: ReleasableRows
) -> RowsRead:
    """The rows that a query reads; refused if they are none, before anything is charged.

    An engine remembers what it counted in files. Of a table that others may write to, ``there`` is
    left at what is read: its fingerprint says how many rows there are (`RowsRead.of_table`).
    """
    read = engine.count(query.rows.scope)  # refuses rows that cannot be chosen
    others = tuple(_others(query, options, engine, releasable))
    if read == 0:
        raise _none(query.rows.scope.where, options, others)
    counts = query.counts_rows
    size = engine.whole.known_size() if others or counts else None
    there = read if size is None or not others else max(read, size[0])
    longest = None if size is None or not counts else size[1]
    entities = None if size is None else size[2]
    return RowsRead(read, there, others, engine.declaration.entity, longest, entities)


def _others(
    query: Query, options: QueryOptions, engine: Engine, releasable: ReleasableRows
) -> Iterator[str]:
    """What keeps rows from being read."""
    if options.window is not None and options.window != (None, None):
        yield "outside the window"
    if options.where:
        yield "left out by `where`"
    if not set(query.rows.scope.where) <= set(options.where):
        yield "of weight 0"
    if releasable.start is not None:
        yield f"before {releasable.start}, where a prior was fitted"
    if engine.whole is not engine:
        yield f"of the share of `{visible(engine.declaration.entity)}` that a prior was fitted on"


def _none(where: Mapping[str, Any], options: QueryOptions, others: tuple[str, ...]) -> InvalidQuery:
    field = "where" if where and options.window in (None, (None, None)) else "window"
    why = f"; all rows are {_either(others)}" if others else ""
    return InvalidQuery(
        field, given="holds no rows", needed=f"hold at least one{why}", reason="no-rows"
    )


def _either(parts: tuple[str, ...]) -> str:
    *most, last = parts
    return f"{', '.join(most)}, or {last}" if most else last
