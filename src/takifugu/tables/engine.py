"""The engine: queries about a declared table, answered inside its database."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from math import prod
from pathlib import Path
from sys import getsizeof
from typing import Any, Literal

import numpy as np

from takifugu._core.closing import Closing
from takifugu._core.numeric import Integers
from takifugu.declarations.columns import Amount, FittedLabels
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import TooLarge
from takifugu.priors import Name, Transitions
from takifugu.tables import expressions as ex
from takifugu.tables.aggregates import (
    ColumnSums,
    Distribution,
    Histogram,
    Keys,
    Lengths,
    cross_tabulate,
)
from takifugu.tables.backends.backend import Backend, DataFingerprint, Kind
from takifugu.tables.label_lookup import OUTSIDE, Lookup, lookup, refuse_misfits
from takifugu.tables.relations import Relation
from takifugu.tables.run_counting import RunCounts, count_runs
from takifugu.tables.scope import (
    EVERYTHING,
    Moment,
    Scope,
    first_moment,
    fitted_rows,
    place_in_order,
)
from takifugu.tables.sql_writer import sql

MAX_BYTES = 2**24

Rows = list[tuple[Any, ...]]


class PublicResults:
    """What was asked for last, within `MAX_BYTES`: anybody may ask for one more of them for free.

    Args:
        max_bytes: How much memory they may take together.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._rows = OrderedDict[str, tuple[Rows, int]]()  # by the SQL, and how much memory

    def get(self, text: str) -> Rows | None:
        """The rows of a query; None if they are not remembered."""
        if text not in self._rows:
            return None
        self._rows.move_to_end(text)
        return self._rows[text][0]

    def keep(self, text: str, rows: Rows) -> None:
        """Remember rows, and forget those that were asked for longest ago."""
        _, before = self._rows.pop(text, (None, 0))
        size = getsizeof(text) + getsizeof(rows)
        size += sum(getsizeof(row) + sum(map(getsizeof, row)) for row in rows)
        self._rows[text] = rows, size
        self._bytes += size - before
        while self._bytes > self._max_bytes:
            _, (_, freed) = self._rows.popitem(last=False)
            self._bytes -= freed


MOST_CELLS = 2**24
IN_ORDER = "in order"
SIZE = "rows, rows of an entity, and entities"


class Engine(Closing):
    """One declared table in one database. Only aggregates leave it.

    Answers do not depend on how the database goes about its work: rows that tie in the order are
    refused, and sums are sums of whole numbers.
    """

    def __init__(self, declaration: Declaration, backend: Backend) -> None:
        refuse_misfits(declaration, backend.kinds)
        self._rows = ex.relation(backend.kinds)
        self._declaration = declaration
        self._backend = backend
        self._keys = dict[str, tuple[Name, ...]]()
        self._lookups = dict[str, Lookup]()
        self._facts = PublicResults()

    def close(self) -> None:
        """Let go of the database."""
        self._backend.closed = True
        self._backend.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or another engine that shares its database."""
        return self._backend.closed

    def interrupt(self) -> None:
        """Have the database give up what it is doing, if it can; that query then fails."""
        self._backend.interrupt()

    @property
    def declaration(self) -> Declaration:
        """What the table was declared to be."""
        return self._declaration

    def with_labels(self, labels: Mapping[str, Sequence[Name]]) -> "Engine":
        """The same table, with labels for columns that have none yet; it shares the database."""
        declaration = self._declaration.with_labels(labels)
        return self if declaration is self._declaration else Engine(declaration, self._backend)

    def fingerprint(self) -> DataFingerprint:
        """The identity of the data as it is now, and what that covers."""
        return self._backend.fingerprint()

    @property
    def dialect(self) -> str:
        """The SQL of its database: ``duckdb``, ``postgres`` or ``spark``."""
        return self._backend.dialect

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the rows are in; none for a table of a server."""
        return self._backend.files

    @property
    def may_change(self) -> bool:
        """Whether others may write to the rows while they are read."""
        return self._backend.may_change

    @property
    def clock(self) -> str | None:
        """Whether the order column holds local times or instants; None if it holds numbers."""
        kind = self._backend.kinds[self._declaration.order.column]
        return {"time": "local", "zoned": "instants"}.get(kind)

    def keys(self, column: str) -> tuple[Name, ...]:
        """The keys of a column: as declared, or, where so declared, as the data has them."""
        category = self._declaration.category(column)
        if category.values is not None or isinstance(category, FittedLabels):
            return category.keys  # of labels that are not found yet: an error
        if column not in self._keys:
            values = [value for (value,) in self._run(ex.distinct(self._rows, column))]
            if None in values and category.outside == "refuse":
                raise InvalidDeclaration(
                    column,
                    given="has rows without a value",
                    needed="have one in each row; or declare outside = 'drop', which leaves those"
                    " rows out",
                    reason="missing",
                )
            self._keys[column] = tuple(sorted(value for value in values if value is not None))
        return self._keys[column]

    def count(self, scope: Scope = EVERYTHING) -> int:
        """How many rows there are: public, by declaration."""
        ((count,),) = self._public(ex.count(self._within(scope)))
        return int(count)

    def span(self, scope: Scope = EVERYTHING) -> tuple[datetime, datetime] | tuple[float, float]:
        """The first and the last place in the order; times in the declared zone, whole seconds."""
        order = self._declaration.order
        kind = self._backend.kinds[order.column]
        ((first, last),) = self._run(ex.span(self._within(scope), order.column, kind))
        if first is None or last is None:
            raise InvalidQuery("scope", given="holds no rows", needed="hold at least one")
        if order.kind == "number":
            return float(first), float(last)
        zoned = self._zoned
        return first_moment(first, order, zoned=zoned), first_moment(last, order, zoned=zoned)

    def lengths(self, scope: Scope = EVERYTHING) -> Lengths:
        """How many entities have how many rows; no value of a protected column matters."""
        counted = sorted(self._public(ex.lengths(self._within(scope), self._declaration.entity)))
        if any(nameless for *_, nameless in counted):
            raise _no_place(self._declaration)
        table = np.array([row[:2] for row in counted], dtype=np.int64).reshape(-1, 2)
        return Lengths(_still(table[:, 0]), _still(table[:, 1]))

    def refuse_cut_rows(self) -> None:
        """Raise if rows of a CSV file have too many or too few fields."""
        self._backend.refuse_cut_rows()

    def unparsed_times(self) -> int:
        """How many rows have a place in the order that is not written in the declared format."""
        return self._backend.unparsed_times()

    def known_size(self) -> tuple[int, int, int] | None:
        """How many rows there are, the most that an entity has, and how many entities: public.

        Counted once: of files it is remembered, and noted down for large ones. Of a table that
        others may write to, it is what `lengths` found last, and None if it was not asked for.
        Rows without an entity count as those of one.
        """
        source, entity = self._declaration.source, self._declaration.entity
        expression = ex.lengths(self._within(EVERYTHING), entity)
        found = self._facts.get(sql(expression, self._backend.dialect))
        if found is None and self.may_change:
            return None
        note = self._backend.note(SIZE, source.kind, source.table, entity) if not found else None
        known = (note.read() or "").split() if note is not None else []
        if len(known) == 3 and all(map(str.isdecimal, known)):
            return int(known[0]), int(known[1]), int(known[2])
        lengths = [(int(n), int(many)) for n, many, _ in found or self._public(expression)]
        longest = max((n for n, _ in lengths), default=0)
        size = sum(n * many for n, many in lengths), longest, sum(many for _, many in lengths)
        if note is not None:
            note.write(" ".join(map(str, size)))
        return size

    def entities(self, most: int) -> Mapping[Name, int]:
        """Up to ``most`` entities, the first by name, and how many rows each has: public."""
        rows = self._within(EVERYTHING)
        counted = self._run(ex.entities(rows, self._declaration.entity, most))
        if any(name is None for name, _ in counted):
            raise _no_place(self._declaration)
        return {name: int(count) for name, count in counted}

    @property
    def whole(self) -> "Engine":
        """The engine that sees all rows: this one, unless it is kept to some of them."""
        return self

    @property
    def whole_entities(self) -> bool:
        """Whether entities are whole numbers, not text."""
        return self._backend.kinds[self._declaration.entity] == "whole"

    def histogram(self, columns: Sequence[str], scope: Scope = EVERYTHING) -> Histogram:
        """How many rows have each combination of the keys of ``columns``, zeros included."""
        names, keys, codes = self._axes(columns)
        if not names:
            raise InvalidQuery("columns", given="are none", needed="name at least one column")
        counts = np.zeros([len(axis) for axis in keys], dtype=np.int64)
        public = frozenset(category.column for category in self._declaration.public)
        run = self._public if public.issuperset(names) else self._run
        self._add(counts, codes, run(ex.histogram(self._within(scope), codes)))
        return Histogram(names, keys, _still(counts))

    def _add(
        self, counts: Integers, codes: Mapping[str, Lookup], found: Sequence[tuple[Any, ...]]
    ) -> None:
        """Add groups of places and a count to a table; those that are dropped are left out."""
        *places, many = zip(*found, strict=True) if found else [()] * (len(codes) + 1)
        cells = [look.all(place) for look, place in zip(codes.values(), places, strict=True)]
        for group in np.flatnonzero(np.any(np.equal(cells, OUTSIDE), axis=0)):
            self._cell(codes, found[int(group)][:-1])  # raises, where the rule is to refuse it
        counted = np.all(np.not_equal(cells, OUTSIDE), axis=0)
        at = tuple(code[counted] for code in cells)
        np.add.at(counts, at, np.array(many, dtype=np.int64)[counted])

    def sums(self, column: str, by: Sequence[str] = (), scope: Scope = EVERYTHING) -> ColumnSums:
        """The sum of a column of bounded numbers for each combination of keys, zeros included."""
        amount = self._declaration.amount(column)
        names, keys, codes = self._axes(by)
        kind = self._backend.kinds[column]
        counts = np.zeros([len(axis) for axis in keys], dtype=np.int64)
        units = np.zeros_like(counts)
        for *place, count, total, missing in self._run(
            ex.sums(self._within(scope), codes, amount, kind)
        ):
            self._refuse_missing(missing, amount)
            cell = self._cell(codes, place)
            if cell is not None:
                counts[cell] += int(count)
                units[cell] += int(total or 0)
        return ColumnSums(amount, names, keys, _still(counts), _still(units))

    def distribution(
        self, column: str, by: Sequence[str] = (), scope: Scope = EVERYTHING, *, every: int = 1
    ) -> Distribution:
        """How many numbers of a bounded column lie in each cell of a grid, zeros included.

        A cell is ``every`` of the declared steps wide; the first begins at the lower bound.
        """
        amount = self._declaration.amount(column)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InvalidQuery("every", given=f"is {every!r}", needed="be a whole number, ≥ 1")
        names, keys, codes = self._axes(by, also=amount.cells(every))
        kind = self._backend.kinds[column]
        shape = [*(len(axis) for axis in keys), amount.cells(every)]
        counts = np.zeros(shape, dtype=np.int64)
        lines = dict[tuple[Any, ...], Integers | None]()  # of counts, by place
        for *place, cell, count, missing in self._run(
            ex.distribution(self._within(scope), codes, amount, kind, every)
        ):
            self._refuse_missing(missing, amount)
            group = tuple(place)
            if group not in lines:
                where = self._cell(codes, group)
                lines[group] = None if where is None else counts[where]
            line = lines[group]
            if line is not None and cell is not None:
                line[cell] += count
        return Distribution(amount, every, names, keys, _still(counts))

    def transitions(self, column: str, scope: Scope = EVERYTHING) -> Transitions:
        """How many times each label followed each other one, within the rows of an entity.

        A row that is dropped for its value is skipped: what came before it is followed by what
        came after. With a window both ends of a step must be in it.
        """
        steps = self.steps(column, (), scope)
        keys = steps.keys[0]
        return Transitions(steps.counts, keys, fitted_on=(fitted_rows(self._declaration, scope),))

    def steps(self, column: str, by: Sequence[str] = (), scope: Scope = EVERYTHING) -> Histogram:
        """``[by, before, after]``: the same for each combination of the keys of public columns.

        A step counts in the group of the row that it leads to. Where the columns are constant
        within an entity (`refuse_changes`) that is the group of both its rows.
        """
        category = self._declaration.category(column)
        _, (labels,), codes = self._axes([column])
        names, keys, groups = self._axes(by, also=len(labels) ** 2)
        rows = self._within(scope)
        if category.outside == "drop":
            rows = ex.among(rows, column, tuple(codes[column].codes))
        counts = np.zeros([*map(len, keys), len(labels), len(labels)], dtype=np.int64)
        for before, here, *place, first, count, tie, gap in self._run(
            ex.transitions(
                rows,
                self._declaration,
                column,
                codes[column],
                groups,
                early=self._backend.finds_for_each_row,
            )
        ):
            self.refuse_flags(tie, gap)
            arrived, left = (
                self._cell(codes, (here,)),
                None if first else codes[column].code(before),
            )
            group = self._cell(groups, place)
            if arrived is not None and left is not None and group is not None:
                counts[(*group, left, arrived[0])] += int(count)
        ends = (f"{column} before", f"{column} after")
        return Histogram((*names, *ends), (*keys, labels, labels), _still(counts))

    def refuse_changes(self, columns: Sequence[str], scope: Scope = EVERYTHING) -> None:
        """Raise for a public column that is not constant in the rows of every entity.

        Only entities and public columns are looked at.
        """
        names, _, codes = self._axes(columns)
        if not names:
            return
        expression = ex.changes(self._within(scope), self._declaration.entity, codes)
        (found,) = self._public(expression)
        for name, changes in zip(names, found, strict=True):
            if changes:
                raise InvalidQuery(
                    f"by, {name}",
                    given=f"changes within the rows of one {self._declaration.entity}",
                    needed="be constant in each: a step between two groups is in neither; keep one"
                    " group with `where`, or leave it out",
                    reason="changes",
                )

    def runs(
        self,
        columns: Sequence[str],
        depth: int = 1,
        scope: Scope = EVERYTHING,
        *,
        cuts: Sequence[Fraction] | None = None,
        by_hour: bool = False,
    ) -> RunCounts:
        """How many runs of ``depth`` + 1 rows of one entity have each sequence of states.

        A state is the value of a column of labels, the values of several of them together, or with
        ``cuts`` the range that a number is in. With ``by_hour`` rows must be one an hour, and steps
        are counted for each hour of the day. Rows that are dropped are skipped, as in
        `transitions`; where a hole would matter they are refused.
        """
        return count_runs(self, columns, depth, scope, cuts=cuts, by_hour=by_hour)

    def cross_tabulations(
        self, sets: Sequence[Sequence[str]], scope: Scope = EVERYTHING
    ) -> tuple[Histogram, ...]:
        """A histogram of each set of columns, all of them in one pass over the rows."""
        return cross_tabulate(self, sets, scope)

    def collect(
        self, make: Callable[[Relation], Relation], scope: Scope = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        """The aggregates that ``make`` describes of the rows of ``scope``: for fits alone."""
        return self._run(make(self._within(scope)))

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """What the database holds in each declared column."""
        return self._backend.kinds

    def lookup(self, column: str) -> Lookup:
        """The code of every raw value of a column of labels: its place among `keys`."""
        if column not in self._lookups:
            category = self._declaration.category(column)
            self._lookups[column] = (
                Lookup({key: code for code, key in enumerate(self.keys(column))})
                if category.values is None
                else lookup(category, self._backend.kinds[column])
            )
            if not self._backend.finds_in_lists:
                self._lookups[column] = replace(self._lookups[column], finds_in_lists=False)
        return self._lookups[column]

    def refuse_disorder(self) -> None:
        """Raise if a row has no entity or no place, or if rows tie: no other part is looked at.

        That a large file is in order is noted down. `transitions` looks again while it counts.
        """
        source, order = self._declaration.source, self._declaration.order
        places = (self._declaration.entity, order.column, *order.ties)
        note = self._backend.note(IN_ORDER, source.kind, source.table, *places)
        if note is not None and note.read() == IN_ORDER:
            return
        ((tie, gap),) = self._run(ex.disorder(self._rows, self._declaration))
        self.refuse_flags(tie, gap)
        if note is not None:
            note.write(IN_ORDER)

    def _refuse_missing(self, missing: int | None, amount: Amount) -> None:
        if missing and amount.missing == "refuse":
            raise InvalidDeclaration(
                amount.column,
                given="has missing values",
                needed="have none, as declared: fill them in or take those rows out; or declare"
                " missing = 'drop', or the number that they count as, where no Gaussian prior is"
                " about it",
                reason="missing",
            )

    def refuse_flags(self, tie: int | None, gap: int | None) -> None:
        """Raise if rows tie in the order, or if one has no entity or no place."""
        if gap:
            raise _no_place(self._declaration)
        if tie:
            raise _ties(self._declaration)

    def _run(self, expression: Relation) -> list[tuple[Any, ...]]:
        return self._backend.rows(sql(expression, self._backend.dialect))

    def _public(self, expression: Relation) -> list[tuple[Any, ...]]:
        """A public result; remembered for files, which are refused once they change."""
        text = sql(expression, self._backend.dialect)
        rows = None if self.may_change else self._facts.get(text)
        if rows is None:
            rows = self._backend.rows(text)
            self._facts.keep(text, rows)
        else:
            self._backend.refuse_change()
        return rows

    @property
    def _zoned(self) -> bool:
        return self._backend.kinds[self._declaration.order.column] == "zoned"

    def _axes(
        self, columns: Sequence[str], *, also: int = 1
    ) -> tuple[tuple[str, ...], Keys, Mapping[str, Lookup]]:
        """The columns, the keys along each, and for each the code of every raw value.

        ``also`` is how many numbers are counted for each combination of keys.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if len(set(names)) != len(names):
            raise InvalidQuery("columns", given="repeat a column", needed="name each one once")
        keys = tuple(self.keys(name) for name in names)
        cells = prod(map(len, keys)) * also
        if cells > MOST_CELLS:
            coarser = ", for a coarser grid" if also > 1 else ""
            raise TooLarge(
                f"the keys of {', '.join(names) or 'this query'} make {cells:,} cells; at most"
                f" {MOST_CELLS:,} are counted at once: name fewer columns, or count key by"
                f" key{coarser}",
                size=cells,
                limit=MOST_CELLS,
            )
        return names, keys, {name: self.lookup(name) for name in names}

    def _cell(self, codes: Mapping[str, Lookup], places: Sequence[Any]) -> tuple[int, ...] | None:
        """Where a group counts; None if nowhere, and an error where the rule is to refuse it."""
        cell = tuple(look.code(place) for look, place in zip(codes.values(), places, strict=True))
        for column, code in zip(codes, cell, strict=True):
            if code == OUTSIDE and self._declaration.category(column).outside == "refuse":
                raise InvalidDeclaration(
                    column,
                    given="has values outside its declared list, or missing",
                    needed="have none, as declared; or declare outside = 'other' or 'drop'",
                    reason="outside",
                )
        return None if OUTSIDE in cell else cell

    def _within(self, scope: Scope) -> Relation:
        """The rows that ``scope`` is about."""
        order, rows = self._declaration.order, self._rows
        for column, chosen in scope.where.items():
            rows = self._where(rows, column, chosen)
        start, end = self._place(scope.start, "start"), self._place(scope.end, "end")
        if start is not None and end is not None and not start < end:
            raise InvalidQuery("end", given="is not after `start`", needed="be after it")
        rows = ex.within(rows, order.column, start, end)
        if scope.entities is not None:
            rows = ex.shared(rows, self._declaration.entity, scope.entities)
        return rows

    def _place(self, moment: Moment | None, what: Literal["start", "end"]) -> Any:
        if moment is None:
            return None
        return place_in_order(moment, self._declaration.order, zoned=self._zoned, what=what)

    def _where(self, rows: Relation, column: str, chosen: Sequence[Name]) -> Relation:
        if column not in (category.column for category in self._declaration.public):
            raise InvalidQuery(
                f"where, {column}",
                given="is not a public column",
                needed="be one: rows may not be chosen by what is protected",
            )
        category, keys, codes = (
            self._declaration.category(column),
            self.keys(column),
            self.lookup(column),
        )
        place = {key: code for code, key in enumerate(keys)}
        for key in chosen:
            if key not in place:
                raise InvalidQuery(
                    f"where, {column}", given=f"has {key!r}", needed="hold declared keys only"
                )
        codes_chosen = {place[key] for key in chosen}
        if category.outside == "other" and place[category.other] in codes_chosen:
            return ex.not_among(
                rows, column, [r for r, c in codes.codes.items() if c not in codes_chosen]
            )
        return ex.among(
            rows, column, [raw for raw, code in codes.codes.items() if code in codes_chosen]
        )


def _no_place(declaration: Declaration) -> InvalidDeclaration:
    order = declaration.order
    places = ", ".join((declaration.entity, *(() if order.absent else (order.column, *order.ties))))
    return InvalidDeclaration(
        places,
        given="are missing in some rows",
        needed="have a value in every row",
        reason="missing",
    )


def _ties(declaration: Declaration) -> InvalidDeclaration:
    if declaration.order.absent:
        return InvalidDeclaration(
            "order",
            given=f"is missing, and some of `{declaration.entity}` have several rows",
            needed="name the column that puts them in order; or keep one row of each",
            reason="missing",
        )
    places = ", ".join((declaration.entity, declaration.order.column, *declaration.order.ties))
    return InvalidDeclaration(
        "order, ties",
        given=f"leaves rows that are equal in {places}",
        needed="name columns in which such rows differ. These become public: do not name a column"
        " that reveals a protected one",
        reason="ties",
    )


def _still(counts: Integers) -> Integers:
    counts.setflags(write=False)
    return counts
