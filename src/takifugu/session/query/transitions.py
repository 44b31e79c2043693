r"""``transitions``: how often each label followed each other one.

What is charged is a cost on rows, and that holds whatever a prior makes of them: in chains on one
column, on joint states of several columns, on households, and for people in a field over time. With
all other rows fixed, a change of this column in one row moves the counts by at most `TRANSITIONS`,
and a change of the row's other columns moves nothing; so the cost is ε·[u≠v] of this column, at
every row, the supremum over what its neighbours hold. A prior without an order cannot serve it:
`takifugu.session.plans.refuse_unserved`.

*Groups.* ``by`` must be constant in the rows of each entity that are read, which is a public fact
and is checked before anything is paid: all steps of an entity are then in one group. A step is
counted once, in the group of the row that it leads to, so that the table of all groups moves by no
more than the table without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations import Declaration
from takifugu.mechanisms import Sensitivity
from takifugu.priors import Name
from takifugu.session.query.query import (
    Axes,
    DeclaredKeys,
    NumberQuery,
    Ranges,
    count_scales,
    labels_of,
)
from takifugu.tables import Engine

# A replaced cell x between a and b takes (a,x) and (x,b) away and adds (a,x') and (x',b). Only one
# of the two pairs can coincide: a = x = b and a = x' = b would make x = x'. So at most 2² + 1 + 1.
# A cell that is dropped adds (a,b) instead: at most 3 changes.
#
# Which two labels they are does not matter: for every x and x' some neighbours make 4 changes (two
# of a third label c: (c,x), (x,c) to (c,x'), (x',c); or, of two labels, two x: (x,x) twice to
# (x,x'), (x',x)). What is told depends on neighbours, so that their supremum counts: ε·[u≠v].
TRANSITIONS = Sensitivity("transitions", l1=4, l2_squared=6, linf=2)


@dataclass(frozen=True)
class TransitionsQuery(NumberQuery):
    """How often each label followed each other one, within the rows of an entity."""

    kind: ClassVar[str] = "transitions"
    needs_order: ClassVar[bool] = True
    summary: ClassVar[str] = "the counts of how values of {column} follow one another{by}"
    question: ClassVar[str] = (
        "How often was each value of {column} followed by each value, in the rows of one"
        " entity{each}?"
    )

    def check(self, declaration: Declaration) -> None:
        """The column must hold labels."""
        labels_of(declaration, self.kind, self.column)

    def check_order(self, engine: Engine) -> None:
        """The rows of every entity must have one order, and be in one group."""
        engine.refuse_disorder()
        engine.refuse_changes(self.by, self.rows.scope)

    def axes(self, engine: Engine) -> Axes:
        """The groups, and from which label to which."""
        keys, ends = engine.keys(self.column), ("before", "after")
        return (*self.groups(engine), *((f"{self.column} {end}", keys) for end in ends))

    def ranges(self, engine: Engine) -> Ranges:
        """At most the public number of steps: each entity has one fewer than rows.

        Of a group it is at most one fewer than its rows, whoever they belong to.
        """
        if self.by:
            steps: Any = np.maximum(self.public_rows(engine) - 1, 0)
        else:
            found = engine.lengths(self.rows.scope)
            steps = np.array(int((found.entities * (found.lengths - 1)).sum()))
        most = self._of_group(steps, engine)
        return [0] * len(most), most

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts, from each label to each."""
        return count_scales(rows, 1 / len(engine.keys(self.column)) ** 2)

    @classmethod
    def stored_axes(
        cls, query: Mapping[str, Any], keys: DeclaredKeys
    ) -> list[tuple[str, Sequence[Name] | None]]:
        """From which label to which."""
        column = query["column"]
        return [(f"{column} before", keys(column)), (column, keys(column))]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """Two steps go and two come."""
        return TRANSITIONS

    def exact(self, engine: Engine) -> Integers:
        """``[by, before, after]``."""
        return self._in_scope(engine, engine.steps(self.column, self.by, self.rows.scope).counts)
