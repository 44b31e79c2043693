"""``count`` and ``counts``: how many rows have one of some labels, and how many have each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import nearest
from takifugu.mechanisms import COUNT, HISTOGRAM, Sensitivity
from takifugu.priors import Name
from takifugu.session.query.query import (
    Axes,
    DeclaredKeys,
    NumberQuery,
    count_scales,
    labels_of,
)
from takifugu.tables import Engine

MOST_LISTED = 12  # labels in a message
MOST_IN_TITLE = 4


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
        few = ", ".join(str(value) for value in self.values[:MOST_IN_TITLE])
        more = len(self.values) - MOST_IN_TITLE
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
            listed = ", ".join(map(repr, keys[:MOST_LISTED]))
            more = ", … (the declaration has them all)" if len(keys) > MOST_LISTED else ""
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
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        labels = frozenset(self.values)
        chosen = [value in labels for value in engine.keys(self.column)]
        return self._in_scope(engine, counted.counts[..., chosen].sum(axis=-1))


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
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        listed = frozenset(self.values)
        chosen = [value in listed for value in engine.keys(self.column)]
        return self._in_scope(engine, counted.counts[..., chosen])
