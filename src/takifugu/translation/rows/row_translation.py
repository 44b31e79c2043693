r"""What a loss on rows means under priors that relate several cells of a row, or several people.

A ledger counts what every *row* of a table has lost, as a cost on the values of its protected
columns: ``Column("place", …)`` if a query reads one of them, ``Jointly`` if it reads several at
once, and a bare ``AnyValue`` ε if any change of the row costs ε. What the entries of a prior are is
another matter (the ``over`` of a policy), and so is what its secrets are about. A `RowTranslation`
translates the first into losses of the second, column by column of the table: the guarantee is the
largest of them.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, ClassVar

from takifugu._core.fingerprint import ByContent
from takifugu.costs.cost import ANY, NOTHING, Column, Cost, Jointly, Shape
from takifugu.costs.shapes import column_and_shape
from takifugu.errors import UnsoundRequest
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Cache
from takifugu.translation.certify.closed import epsilon_up
from takifugu.translation.protocol import LossTranslation

MAX_CACHED_COSTS = 256  # translated
NEARLY = 1 - 2.0**-44  # a room that was rounded is tried first a little below
MOST_GAINED = 64.0  # times the target: the largest factor that is tried


@dataclass(frozen=True, eq=False)
class RowSpending:
    r"""The terms of a cost on rows, sorted by the columns that have to change.

    The cost of a change from row u to row v is a sum of any change of the row, cross-tabulations of
    sets J of columns, and single columns:

    .. math:: c(u, v) = ε_0 [u ≠ v] + \sum_J ε_J [u_J ≠ v_J] + \sum_j c_j(u_j, v_j).

    *What is constant.* For a secret about column i let u be a row on its left side and v one on its
    right. They differ in column i, so that the first term and every ε_J with i in J are paid by all
    moves alike. The worst loss is log t for the least t of a transport with gains
    :math:`e^{c(u,v)}` from the left side to the right, and a factor that all gains have in common
    is a factor of t. So the constant adds itself to the worst loss, exactly, and only the rest has
    to be coupled.

    Attributes:
        whole: ε of any change of the row.
        together: ε of any change of some columns, by these columns.
        alone: The cost on the values of each column that is read by itself.
    """

    whole: Fraction
    together: Mapping[tuple[str, ...], Fraction]
    alone: Mapping[str, Cost]

    @classmethod
    def from_cost(cls, cost: Cost) -> "RowSpending":
        """Of a cost whose shapes name their columns; a bare `AnyValue` is any change of the row."""
        whole, together = Fraction(0), dict[tuple[str, ...], Fraction]()
        alone: dict[str, dict[Shape, Fraction]] = {}
        for shape, value in cost.terms:
            column, inner = column_and_shape(shape)
            if isinstance(inner, Jointly):
                together[inner.columns] = value
            elif column is not None:
                alone.setdefault(column, {})[inner] = value
            elif inner == ANY:
                whole = value
            else:
                raise UnsoundRequest(
                    "a cost names no column, and rows have several; say which column it is about",
                    field="columns",
                )
        return cls(whole, together, {column: Cost.of(terms) for column, terms in alone.items()})

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that some term names."""
        return tuple(sorted({*self.alone, *(c for columns in self.together for c in columns)}))

    def constant(self, column: str) -> Fraction:
        """What every move between two values of ``column`` costs, whatever else changes."""
        return sum(
            (value for columns, value in self.together.items() if column in columns), self.whole
        )

    def beside(self, column: str) -> "RowSpending":
        """All but what is `constant` for ``column``."""
        rest = {columns: value for columns, value in self.together.items() if column not in columns}
        return RowSpending(Fraction(0), rest, self.alone)

    def by_column(self, column: str) -> Cost:
        """What a change of ``column`` alone costs."""
        return self.alone.get(column, Cost()) + Cost.any(self.constant(column))

    @property
    def at_once(self) -> Fraction:
        """What a change of all columns of cross-tabulations costs."""
        return sum(self.together.values(), self.whole)


class RowTranslation(ByContent, LossTranslation):
    """A translation of what rows have lost, for one reading of the priors.

    Not every pair of values of a row is secret (`every_pair` is False): a cost on two columns may
    mean less than its scalar.

    Implementers: `ColumnsOfRow` (``over = "row"``), `JointColumns` (``"sequence"``, of several
    columns) and `Household`. An implementer says `by_column`, and inherits the rest.

    Attributes:
        priors: What the adversary may believe, by name; the guarantee holds for each.
        secrets: For each protected column the secrets that are kept; nothing of a column that it
            leaves out.
        uncertainty: How far every joint probability may be off, relatively.
    """

    over: ClassVar[str]

    def __init__(
        self,
        priors: Mapping[str, Prior],
        secrets: Mapping[str, Secrets],
        uncertainty: float = 0.0,
    ) -> None:
        if not priors or not secrets:
            missing = "prior" if not priors else "secret"
            raise UnsoundRequest(f"no {missing} was given; at least one is needed", field=missing)
        self.priors = dict(priors)
        self.secrets = {column: secrets[column] for column in sorted(secrets)}
        self.uncertainty = float(uncertainty)
        if not 0 <= self.uncertainty < 1:
            raise UnsoundRequest(
                f"uncertainty is {uncertainty}; it must be at least 0 and below 1",
                field="uncertainty",
                given=uncertainty,
            )
        for column, kept in self.secrets.items():
            if kept.within is not None:
                raise UnsoundRequest(
                    f"the secrets of column {column!r} are numbers within a distance; those of"
                    " columns that depend on each other are pairs of labels, or of ranges",
                    field="within",
                    given=kept.within,
                )
        self._known = Cache[tuple[Cost, ...], Mapping[str, float]](MAX_CACHED_COSTS)

    def identity(self) -> Any:
        """The reading, the priors, the secrets and the uncertainty: what determines a loss."""
        return (type(self).__name__, self.reading, self.priors, self.secrets, self.uncertainty)

    @property
    def reading(self) -> Any:
        """What the entries of the priors are, with all that was stated of it."""
        return self.over

    @abstractmethod
    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The loss of each column's secrets, rounded up, if every row lost one of ``costs``."""

    def losses(self, *costs: Cost) -> Mapping[str, float]:
        """What each column's secrets lose at most; the guarantee is the largest of them."""
        key = tuple(dict.fromkeys(cost for cost in costs if cost))
        if not key:
            return dict.fromkeys(self.secrets, 0.0)
        return self._known.computed(key, lambda: self.by_column(key))

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """The Pufferfish loss, rounded up, if every row has lost at most one of ``costs``."""
        return max(self.losses(*costs).values())

    def to_pufferfish(self, dp: float, /) -> float:
        """The Pufferfish loss if any change of a row costs ``dp``, rounded up."""
        return self.cost_to_pufferfish(Cost.any(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """The ε of any change of a row that a Pufferfish loss allows, rounded down."""
        return float(self.to_cost(Cost.any(1), pufferfish))  # it is a float

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """The largest factor, rounded down, such that factor·``unit`` more loses ``pufferfish``.

        Rows that are read have lost one of ``spent`` before, others one of ``beside``.
        """
        if not 0 <= pufferfish < inf:  # also false for NaN
            raise UnsoundRequest(
                f"the loss is {pufferfish}; it must be 0 or more, and finite",
                field="pufferfish",
                given=pufferfish,
            )
        before = self.cost_to_pufferfish(*spent, *beside)
        if not unit.scalar or not before < pufferfish:
            return Fraction(0)

        def loss(factor: float) -> float:
            more = unit * factor
            return self.cost_to_pufferfish(*(cost + more for cost in spent), *beside)

        size = epsilon_up(unit.scalar)
        found = largest_within(
            loss,
            pufferfish,
            first=(pufferfish - before) / size * NEARLY,
            most=MOST_GAINED * pufferfish / size,
        )
        return Fraction(found)

    @property
    def names_columns(self) -> bool:
        """Whether rows have several protected columns, which every charge then names."""
        return len(self.secrets) > 1

    def covering_cost(self, epsilon: Fraction, /) -> Cost | None:
        r"""ε for each column that differs, if every pair of values of every column is secret.

        A mechanism with the cost c may read column j of one row alone, and have the likelihood
        :math:`e^{c_j(x,v)}` of its value v, with :math:`c_j` what c makes of a change of that
        column: no change of the row costs less. It moves the odds of u against v by
        :math:`e^{c_j(u,v)}`, so that :math:`c_j \le ε` where c translates to ε or less. Columns
        that are changed one after the other cost what they cost together or more.
        """
        if any(kept != Secrets() for kept in self.secrets.values()):
            return None
        return Cost.of({Column(column, ANY): epsilon for column in self.secrets})


def maximal(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    """The costs that no other one is at least as large as, for every change of value."""
    listed = tuple(dict.fromkeys(costs))
    return tuple(
        cost
        for cost in listed
        if not any(other != cost and other.dominates(cost) for other in listed)
    )
