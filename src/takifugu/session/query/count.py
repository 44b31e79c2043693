"""``count``: how many rows have one of some labels."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from takifugu._core.numeric import Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import nearest
from takifugu.mechanisms import COUNT, Sensitivity
from takifugu.priors import Name
from takifugu.session.cells import Rows
from takifugu.session.query.query import NumberQuery, labels_of
from takifugu.session.query_options import QueryOptions
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

    values: tuple[Name, ...] = ()

    @classmethod
    def of(
        cls,
        options: QueryOptions,
        declaration: Declaration,  # noqa: ARG003
        columns: tuple[str, ...],
        rows: Rows,
    ) -> Self:
        """With the labels."""
        return cls(columns[0], options.by, rows, options.values)

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

    def cells_of_a_group(self, engine: Engine) -> int:
        """All labels are counted, and those that are listed taken out."""
        return len(engine.keys(self.column))

    def exact(self, engine: Engine) -> Integers:
        """``[by]``."""
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        labels = frozenset(self.values)
        chosen = [value in labels for value in engine.keys(self.column)]
        return self._in_scope(engine, counted.counts[..., chosen].sum(axis=-1))
