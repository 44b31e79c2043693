r"""Counts of rows by label: ``histogram``, ``proportions``, ``count``, ``counts``, ``marginals``.

*Of several columns* a histogram is a cross-tabulation (a contingency table). A row is in one of its
cells, or in none if one of its values is dropped: whichever of its columns are replaced, one count
goes down and another up. So it is a histogram of joint values, with the sensitivity of any other,
and between rows that are equal in the columns that it counts it tells nothing: the cost is ε·[u≠v]
of these columns together (`takifugu.costs.shapes.Jointly`).

Where no value is dropped the counts of a group add up to its rows, which are public. Asked with
``sum_to_one`` the noisy ones do so as well. That is done to the numbers when they are shown, so it
is no part of what is asked, charged or stored.

*One-way marginals*: a histogram of each column, counted together in one pass over the rows, with
noise of one scale b on all their counts. A change of column c alone moves one count of its own
histogram down and another up, whatever the rest of the row is: it costs 2/b. A change of several
columns moves the histogram of each: it costs 2/b for each of them, and 2m/b for all m. So the cost
on a row is

.. math:: \tfrac{2}{b} \sum_c [u_c \ne v_c],

the sum of what separate histograms with this noise would cost, and the per-entry loss is 2m/b. A
value that is dropped leaves the histogram of its own column alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import NOTHING, Cost
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import UnsoundRequest, nearest
from takifugu.mechanisms import COUNT, HISTOGRAM, Mechanism, Sensitivity
from takifugu.priors import Name
from takifugu.session.possible_answers import AnswerTable, Rows, Units
from takifugu.session.query.query import (
    Axes,
    DeclaredKeys,
    NumberQuery,
    count_scales,
    filled_groups,
    labels_of,
    own_columns,
)
from takifugu.tables import Engine


@dataclass(frozen=True)
class HistogramQuery(NumberQuery):
    """How many rows have each label, or each combination of labels.

    Attributes:
        sum_to_one: Whether the numbers of each group are shown so that they add up to its rows.
    """

    kind: ClassVar[str] = "histogram"
    several: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    summary: ClassVar[str] = "the counts of the values of {column}{by}"
    question: ClassVar[str] = "How many rows have each value of {column}{each}?"

    sum_to_one: bool = field(default=False, kw_only=True)

    @property
    def adds_up(self) -> bool:
        """As it was asked for."""
        return self.sum_to_one

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels; of numbers that add up, a label for every row."""
        for column in self.columns:
            labels = labels_of(declaration, self.kind, column)
            if self.sum_to_one and labels.outside == "drop":
                raise UnsoundRequest(
                    f"rows whose {column} is not in the declared list are dropped, so how many are"
                    " counted is protected, and the numbers have no public sum; leave `sum_to_one`"
                    ' out, or declare outside = "other"',
                    field="sum_to_one",
                    reason="no-public-size",
                )

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels of each column."""
        return (*self.groups(engine), *((name, engine.keys(name)) for name in self.columns))

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts, of which each combination of labels has its share."""
        return count_scales(rows, 1 / prod(len(engine.keys(column)) for column in self.columns))

    @classmethod
    def stored_axes(
        cls, query: Mapping[str, Any], keys: DeclaredKeys
    ) -> list[tuple[str, Sequence[Name] | None]]:
        """The labels of each column."""
        about = query["column"]
        columns = about if isinstance(about, list) else [about]
        return [(column, keys(column)) for column in columns]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``, with an axis for each column."""
        counted = engine.histogram((*self.by, *self.columns), self.rows.scope)
        return self._in_scope(engine, counted.counts)


@dataclass(frozen=True)
class ProportionsQuery(HistogramQuery):
    """The share of the rows of a group that have each label: time in state, for even steps."""

    kind: ClassVar[str] = "proportions"
    summary: ClassVar[str] = "the shares of the values of {column}{by}"
    question: ClassVar[str] = "What share of the rows has each value of {column}{each}?"
    stored_as: ClassVar[str] = "count as drawn"

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
        """Shares of the rows of a group: less certain in the smaller ones."""
        counted = super().scales(engine, rows, filled)
        return {
            "one": "a share",
            "many": "shares",
            "low": counted["low"],
            "high": np.ones(len(rows)),
            "size": counted["size"] / rows,
            "noise": counted["noise"] / rows,
            "per_row": True,
        }

    def unit(self, engine: Engine) -> Fraction:
        """One row of the smallest group."""
        return Fraction(1, min(filled_groups(self, engine)))

    def drawn(self, answer: list[Any], engine: Engine) -> list[int | None]:
        """The counts that were drawn; a group without rows has no shares."""
        sizes = self._of_group(self.public_rows(engine), engine)
        return [None if n == 0 else count for count, n in zip(answer, sizes, strict=True)]

    def units(self, engine: Engine) -> Units:
        """One row of as many as the group has."""
        return Units(1, self._of_group(self.public_rows(engine), engine))


MAX_LISTED_LABELS = 12  # labels in a message
MAX_TITLE_LABELS = 4


@dataclass(frozen=True)
class CountQuery(NumberQuery):
    """How many rows have one of some labels. The number of all rows is public and needs no noise.

    Attributes:
        values: The labels.
    """

    kind: ClassVar[str] = "count"
    together: ClassVar[bool] = True  # whether one number counts all labels
    counts_rows: ClassVar[bool] = True
    summary: ClassVar[str] = "the count of {values} in {column}{by}"
    question: ClassVar[str] = "How many rows have one of {values} in {column}{each}?"

    values: tuple[Name, ...] = ()

    @property
    def title(self) -> str:
        """What it is about, for people: rows, not people."""
        few = ", ".join(str(value) for value in self.values[:MAX_TITLE_LABELS])
        more = len(self.values) - MAX_TITLE_LABELS
        return f"rows with {self.column} {few}{f' and {more} other labels' if more > 0 else ''}"

    def check(self, declaration: Declaration) -> None:
        """The labels must be declared."""
        keys = labels_of(declaration, self.kind, self.column).keys
        known = frozenset(keys)
        given = ""
        if not self.values:
            given = "are empty"
        elif len(set(self.values)) < len(self.values):
            given = "are repeated"
        for value in self.values:
            if value not in known:
                near = nearest(value, keys)
                hint = f"; the nearest is {near!r}" if near else ""
                given = f"hold {value!r:.80}, which is not declared{hint}"
        if given:
            listed = ", ".join(map(repr, keys[:MAX_LISTED_LABELS]))
            more = ", … (the declaration has them all)" if len(keys) > MAX_LISTED_LABELS else ""
            raise InvalidQuery(
                "values", given=given, needed=f"be labels of {self.column}: {listed}{more}"
            )

    def body(self) -> dict[str, Any]:
        """With the labels, in one order."""
        return {**super().body(), "values": sorted(self.values, key=str)}

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One row more or less, in one group."""
        return COUNT

    def unit_cost(self, values: Values) -> Cost:
        """Whether a value is one of the labels: a change within them, or outside, moves nothing."""
        return values[self.column].count(self.values)

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts of so many of the labels: of all that are listed, or of each by itself."""
        share = (len(self.values) if self.together else 1) / len(engine.keys(self.column))
        return count_scales(rows, share, guessed=share < 1)

    @classmethod
    def stored_axes(
        cls,
        query: Mapping[str, Any],  # noqa: ARG003
        keys: DeclaredKeys,  # noqa: ARG003
    ) -> list[tuple[str, Sequence[Name] | None]]:
        """One number for each group."""
        return []

    def cells_of_a_group(self, engine: Engine) -> int:
        """All labels are counted, and those that are listed taken out."""
        return len(engine.keys(self.column))

    def exact(self, engine: Engine) -> Integers:
        """``[by]``."""
        return np.asarray(self._listed(engine).sum(axis=-1))

    def _listed(self, engine: Engine) -> Integers:
        """``[by, label]``: the counts of the labels that are listed."""
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        listed = frozenset(self.values)
        chosen = [value in listed for value in engine.keys(self.column)]
        return self._in_scope(engine, counted.counts[..., chosen])


@dataclass(frozen=True)
class CountsQuery(CountQuery):
    """How many rows have each of some labels: one number for each, with noise of its own.

    The numbers are those of a histogram, with the same noise, of which the others are never drawn.
    So it costs no more than the histogram, and less between labels that are not listed: the plan
    is made both ways, and the less noise (or the lower price) is used.
    """

    kind: ClassVar[str] = "counts"
    together: ClassVar[bool] = False
    summary: ClassVar[str] = "the counts of some values of {column}{by}"
    question: ClassVar[str] = "How many rows have each of {values} in {column}{each}?"

    def axes(self, engine: Engine) -> Axes:
        """The groups and the listed labels, in the order of the declaration."""
        listed = frozenset(self.values)
        kept = tuple(key for key in engine.keys(self.column) if key in listed)
        return (*self.groups(engine), (self.column, kept))

    @classmethod
    def stored_axes(
        cls, query: Mapping[str, Any], keys: DeclaredKeys
    ) -> list[tuple[str, Sequence[Name] | None]]:
        """The listed labels, in the order of the declaration."""
        listed = frozenset(query["values"])
        chosen = tuple(key for key in keys(query["column"]) or () if key in listed)
        return [(query["column"], chosen)]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up; with one label, one row more or less."""
        return HISTOGRAM if len(self.values) > 1 else COUNT

    def unit_cost(self, values: Values) -> Cost:
        """Whether a value is listed, and which it is."""
        return values[self.column].counts(self.values)

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``."""
        return self._listed(engine)


@dataclass(frozen=True)
class MarginalsQuery(NumberQuery):
    """A histogram of each of some columns."""

    kind: ClassVar[str] = "marginals"
    several: ClassVar[bool] = True
    all_labels: ClassVar[bool] = True
    between: ClassVar[str] = ", "
    summary: ClassVar[str] = "the counts of the values of each of {column}{by}"
    question: ClassVar[str] = "How many rows have each value of each of {column}{each}?"

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels."""
        for column in self.columns:
            labels_of(declaration, self.kind, column)

    def axes(self, engine: Engine) -> Axes:
        """The groups, and the labels of all columns one after the other, by number."""
        return (*self.groups(engine), ("label", tuple(range(len(self._labels(engine))))))

    def _labels(self, engine: Engine) -> list[tuple[str, Name]]:
        """Each label with its column, in the order of the answer."""
        return [(column, label) for column in self.columns for label in engine.keys(column)]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """In the histogram of each column one count down, another up."""
        many = len(self.columns)
        return Sensitivity(
            self.kind,
            l1=many * HISTOGRAM.l1,
            l2_squared=many * HISTOGRAM.l2_squared,
            linf=HISTOGRAM.linf,
        )

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts, of one column after the other."""
        return count_scales(rows, 1 / max(len(engine.keys(column)) for column in self.columns))

    def whole_cost(self, values: Values) -> Cost:
        """A change of each column costs its share; a change of all of them, everything."""
        share = Fraction(1, len(self.columns))
        return sum((values[column].wholly * share for column in self.columns), NOTHING)

    def exact(self, engine: Engine) -> Integers:
        """``[by, label of the first column, …, label of the last]``."""
        sets = [(*self.by, column) for column in self.columns]
        counted = engine.cross_tabulations(sets, self.rows.scope)
        tables = [self._in_scope(engine, one.counts) for one in counted]
        return np.concatenate(tables, axis=-1)

    def tabulated(
        self, mechanism: Mechanism, answer: list[Any], engine: Engine, error: Mapping[str, Any]
    ) -> AnswerTable:
        """The keys, the column, its label, the number and both ends of its interval."""
        found = super().tabulated(mechanism, answer, engine, error)
        *names, _, estimate, low, high = found.columns
        labels, place = self._labels(engine), len(names)

        def named(rows: Rows) -> Rows:
            return tuple((*row[:place], *labels[row[place]], *row[place + 1 :]) for row in rows)

        ours = own_columns(tuple(names), "column", "label")
        raw = None if found.raw is None else named(found.raw)
        columns = (*names, *ours, estimate, low, high)
        return replace(found, columns=columns, rows=named(found.rows), raw=raw)
