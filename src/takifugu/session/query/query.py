"""What a query is: the rows it reads, how far one cell moves the answer, and the exact answer.

`Query.exact` is the only place where a session reads protected values. All else here is public.

A new kind of query is one module here, with a class that implements `Query` (most implement
`NumberQuery`, whose answers are numbers with integer noise), and one entry in each of

* `takifugu.session.query_options.KIND_OPTIONS` and `Kind`: its name and the options it has;
* `takifugu.session.query.kinds.KINDS`: its class;
* `takifugu.session.query_planner.Planner`: the method ``session.plan.<kind>``, with its signature.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from takifugu.engines import Declaration, Engine
from takifugu.losses import Concentrated, Number, Pure
from takifugu.mechanisms import Mechanism, Sensitivity
from takifugu.numeric import Integers
from takifugu.priors import Name
from takifugu.session.query_options import Counts, QueryOptions
from takifugu.session.rows import Rows

Axes = tuple[tuple[str, tuple[Name, ...]], ...]  # the name of each axis and the keys along it
ResultTable = tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]  # columns and rows of a result
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Aim:
    """What an answer may lose, or how good it must be: one of the two.

    Attributes:
        allowed: The per-entry loss that is allowed, in ε or in ρ; None if the error decides.
        delta: The Pufferfish δ that a ρ is read at; None for a loss in ε.
        within: Every number is to be within this of the exact one (a quantile: in ranks) …
        confidence: … with this probability. For a ranking: that its places are right.
        reference: For a ranking: public or synthetic counts to predict for.
        gap: For a ranking: instead of a reference, the lead of each place over the next.
    """

    allowed: Pure | Concentrated | None = None
    delta: float | None = None
    within: Number | None = None
    confidence: float | None = None
    reference: Counts | None = None
    gap: float | None = None

    @property
    def probability(self) -> float:
        """The probability that a number is within reach: 0.95 by default."""
        return CONFIDENCE if self.confidence is None else self.confidence


@dataclass(frozen=True)
class ChosenMechanism:
    """A mechanism for a query.

    Attributes:
        mechanism: It protects the exact answer.
        error: What is predicted of it, as JSON.
        reason: Why this one, in words.
    """

    mechanism: Mechanism
    error: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Query(ABC):
    """A query about one protected column, for each combination of public keys.

    Implemented by `HistogramQuery`, `ProportionsQuery`, `TopKQuery`, `CountQuery`, `SumQuery`,
    `MeanQuery`, `QuantileQuery` and `TransitionsQuery`.

    Attributes:
        column: The protected column.
        by: Public columns; their groups have disjoint rows, so that one charge pays for all.
        rows: Which rows it reads.
    """

    kind: ClassVar[str]

    column: str
    by: tuple[str, ...]
    rows: Rows

    @classmethod
    def of(cls, options: QueryOptions, declaration: Declaration, column: str, rows: Rows) -> Self:  # noqa: ARG003
        """The query that the options describe."""
        return cls(column, options.by, rows)

    @abstractmethod
    def check(self, declaration: Declaration) -> None:
        """Refuse what cannot be asked, before anything is charged."""

    @abstractmethod
    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """How far one replaced cell moves the exact answer."""

    @abstractmethod
    def exact(self, engine: Engine) -> Integers:
        """The exact answer. It reads protected values: call it only when it is paid for."""

    @abstractmethod
    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """The best mechanism for an aim; reads nothing that is protected."""

    @abstractmethod
    def table(self, mechanism: Mechanism, answer: list[Any], engine: Engine) -> ResultTable:
        """The columns and rows of a result, from what was drawn and from what is public."""

    def check_order(self, engine: Engine) -> None:  # noqa: B027 - most kinds have nothing to check
        """Refuse a table whose order cannot answer the query; most need none."""

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """The protected answer as a list of JSON numbers. It is drawn here, once."""
        exact = np.atleast_1d(self.exact(engine))
        answer: list[Any] = np.ravel(mechanism.release(exact)).tolist()
        return answer

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

    def _in_scope(self, engine: Engine, table: Integers) -> Integers:
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
        return self._in_scope(engine, engine.histogram(self.by, self.rows.scope).counts)


def own_columns(declared: tuple[str, ...], *ours: str) -> tuple[str, ...]:
    """Names for our own columns of a result that no declared column has."""
    return tuple(f"{name} (answer)" if name in declared else name for name in ours)
