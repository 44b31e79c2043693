"""What may be asked: the rows it reads, how far one cell moves the answer, and the exact answer.

`exact` is the only place where a session reads protected values. All else here is public.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from takifugu.engines import Declaration, Engine, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import COUNT, HISTOGRAM, Bounds, Sensitivity
from takifugu.numeric import Integers
from takifugu.priors import Name
from takifugu.session.rows import Rows

Axes = tuple[tuple[str, tuple[Name, ...]], ...]  # the name of each axis and the keys along it

# A replaced cell x between a and b takes (a,x) and (x,b) away and adds (a,x') and (x',b). Only one
# of the two pairs can coincide: a = x = b and a = x' = b would make x = x'. So at most 2² + 1 + 1.
# A cell that is dropped adds (a,b) instead: at most 3 changes.
TRANSITIONS = Sensitivity("transitions", l1=4, l2_squared=6, linf=2)


@dataclass(frozen=True)
class Query(ABC):
    """A query about one protected column, for each combination of public keys.

    Attributes:
        column: The protected column.
        by: Public columns; their groups have disjoint rows, so that one charge pays for all.
        rows: Which rows it reads.
    """

    kind: ClassVar[str]

    column: str
    by: tuple[str, ...]
    rows: Rows

    @abstractmethod
    def check(self, declaration: Declaration) -> None:
        """Refuse what cannot be asked, before anything is charged."""

    @abstractmethod
    def exact(self, engine: Engine) -> Integers:
        """The exact answer. It reads protected values: call it only when it is paid for."""

    @abstractmethod
    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """How far one replaced cell moves the exact answer."""

    def axes(self, engine: Engine) -> Axes:
        """The axes of the exact answer."""
        return self.groups(engine)

    def groups(self, engine: Engine) -> Axes:
        """The public groups: the keys of ``by``, only those that the rows may hold."""
        return tuple((name, self._keys(engine, name)) for name in self.by)

    def body(self) -> dict[str, Any]:
        """The query as JSON, without its rows."""
        return {"name": self.kind, "column": self.column, "by": list(self.by)}

    def _keys(self, engine: Engine, name: str) -> tuple[Name, ...]:
        keys = engine.keys(name)
        if name not in self.rows.scope.where:
            return keys
        chosen = frozenset(self.rows.scope.where[name])
        return tuple(key for key in keys if key in chosen)

    def _kept(self, engine: Engine, table: Integers) -> Integers:
        """``table[by, ...]`` without the keys that ``where`` leaves out."""
        for axis, name in enumerate(self.by):
            if name in self.rows.scope.where:
                chosen = frozenset(self.rows.scope.where[name])
                kept = [key in chosen for key in engine.keys(name)]
                table = np.compress(kept, table, axis=axis)
        return table

    def public_rows(self, engine: Engine) -> Integers:
        """How many rows each group has: public, by declaration."""
        if not self.by:
            return np.array(engine.count(self.rows.scope))
        return self._kept(engine, engine.histogram(self.by, self.rows.scope).counts)


@dataclass(frozen=True)
class HistogramOf(Query):
    """How many rows have each label."""

    kind: ClassVar[str] = "histogram"

    def check(self, declaration: Declaration) -> None:
        """The column must hold labels."""
        declaration.category(self.column)

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels."""
        return (*self.groups(engine), (self.column, engine.keys(self.column)))

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``."""
        found = engine.histogram((*self.by, self.column), self.rows.scope)
        return self._kept(engine, found.counts)


@dataclass(frozen=True)
class ProportionsOf(HistogramOf):
    """The share of the rows of a group that have each label: time in state, for even steps."""

    kind: ClassVar[str] = "proportions"


@dataclass(frozen=True)
class TopOf(HistogramOf):
    """The k most frequent labels."""

    kind: ClassVar[str] = "top_k"

    k: int = 1

    def body(self) -> dict[str, Any]:
        """With k."""
        return {**super().body(), "k": self.k}


@dataclass(frozen=True)
class CountOf(Query):
    """How many rows have one of some labels. The number of all rows is public and needs no noise.

    Attributes:
        values: The labels.
    """

    kind: ClassVar[str] = "count"

    values: tuple[Name, ...] = ()

    def check(self, declaration: Declaration) -> None:
        """The labels must be declared."""
        keys = frozenset(declaration.category(self.column).keys)
        unknown = [value for value in self.values if value not in keys]
        if not self.values or unknown or len(set(self.values)) < len(self.values):
            raise InvalidQuery(
                "values",
                given="are none, repeated or not declared",
                needed=f"be labels of {self.column}; the number of all rows is public",
            )

    def body(self) -> dict[str, Any]:
        """With the labels, in one order."""
        return {**super().body(), "values": sorted(self.values, key=str)}

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One row comes or goes, in one group."""
        return COUNT

    def exact(self, engine: Engine) -> Integers:
        """``[by]``."""
        found = engine.histogram((*self.by, self.column), self.rows.scope)
        wanted = frozenset(self.values)
        chosen = [value in wanted for value in engine.keys(self.column)]
        return self._kept(engine, found.counts[..., chosen].sum(axis=-1))


@dataclass(frozen=True)
class SumOf(Query):
    """The sum of a column of bounded numbers, in whole steps."""

    kind: ClassVar[str] = "sum"

    def check(self, declaration: Declaration) -> None:
        """The column must hold bounded numbers."""
        declaration.amount(self.column)

    def bounds(self, declaration: Declaration) -> Bounds:
        """What one cell adds: its bounds, and nothing where a missing value is dropped."""
        amount = declaration.amount(self.column)
        low, high = amount.low, amount.high
        if amount.missing == "drop":
            low, high = min(low, Fraction(0)), max(high, Fraction(0))
        return Bounds(low, high, amount.step)

    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """The width of the bounds, in steps, in one group."""
        width = self.bounds(declaration).width
        return Sensitivity(self.kind, l1=width, l2_squared=width**2, linf=width)

    def exact(self, engine: Engine) -> Integers:
        """``[by]``, in steps."""
        return self._kept(engine, engine.sums(self.column, self.by, self.rows.scope).units)


@dataclass(frozen=True)
class MeanOf(SumOf):
    """The mean of a column of bounded numbers: a noisy sum over a public number of rows."""

    kind: ClassVar[str] = "mean"

    def check(self, declaration: Declaration) -> None:
        """How many values there are must be public."""
        if declaration.amount(self.column).missing == "drop":
            raise UnsoundRequest(
                f"missing values of {self.column} are dropped, so how many there are is protected"
                " and a mean over them has no public size; ask for the sum, or declare what a"
                " missing value counts as"
            )


@dataclass(frozen=True)
class TransitionsOf(Query):
    """How often each label followed each other one, within the rows of an entity."""

    kind: ClassVar[str] = "transitions"

    def check(self, declaration: Declaration) -> None:
        """The column must hold labels; steps are not counted by group."""
        declaration.category(self.column)
        if self.by:
            raise InvalidQuery(
                "by", given="is given", needed="be left out: a step may lead from group to group"
            )

    def axes(self, engine: Engine) -> Axes:
        """From which label to which."""
        keys = engine.keys(self.column)
        return ((f"{self.column} before", keys), (f"{self.column} after", keys))

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """Two steps go and two come."""
        return TRANSITIONS

    def exact(self, engine: Engine) -> Integers:
        """``[before, after]``."""
        return np.asarray(engine.transitions(self.column, self.rows.scope).counts, dtype=np.int64)


def refuse_unasked(query: Query, declaration: Declaration, about: str) -> None:
    """Raise unless the query reads the column that the prior is about, by public columns."""
    if query.column != about:
        raise InvalidQuery(
            query.column,
            given="is not what the prior is about",
            needed=f"be {about}; what one column tells of another is in no prior of this session",
        )
    public: Sequence[str] = [column.column for column in declaration.public]
    for name in query.by:
        if name not in public:
            raise InvalidQuery(
                f"by, {name}",
                given="is no public column",
                needed=f"be one of {', '.join(public) or 'none: there are no public columns'}",
            )
    if len(set(query.by)) < len(query.by):
        raise InvalidQuery("by", given="repeats a column", needed="name each one once")
    query.check(declaration)
