"""What every entry of a prior has lost, value by value, as the matrices that a bound needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.costs.cost import Cost, Value, largest_matrix
from takifugu.errors import Malformed, UnsoundRequest
from takifugu.priors.independent import Product
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.universe import Name, numbers_by_entry
from takifugu.translation.certify.closed import epsilon_up
from takifugu.translation.certify.flow import off_diagonal

MAX_TOTAL = 1e300  # a larger total is refused: sums of it would not be floats


@dataclass(frozen=True)
class EntryCosts:
    """What each entry has lost, by name of value: any of some costs, or a cost of its own.

    Attributes:
        anywhere: Every entry has lost at most one of these; which one is not known.
        by_entry: ``[entry]``: what each entry has lost; None if ``anywhere`` says it.
    """

    anywhere: tuple[Cost, ...] = ()
    by_entry: tuple[Cost, ...] | None = None

    def __post_init__(self) -> None:
        given = self.anywhere if self.by_entry is None else self.by_entry
        if not all(isinstance(cost, Cost) for cost in given):
            raise UnsoundRequest(
                "costs hold something else than a `Cost`; a number ε is `Cost.any(ε)`",
                field="costs",
            )
        if self.anywhere and self.by_entry is not None:
            raise UnsoundRequest(
                "costs are given for every entry and for each entry; give one of the two",
                field="costs",
            )

    @classmethod
    def of(cls, costs: "EntryCosts | Cost | Iterable[Cost]") -> "EntryCosts":
        """One cost on every entry; or, from a list, one for each entry."""
        if isinstance(costs, EntryCosts):
            return costs
        if isinstance(costs, Cost):
            return cls((costs,))
        return cls(by_entry=tuple(costs))

    @property
    def uniform(self) -> bool:
        """Whether every entry is bounded by the same matrix."""
        return self.by_entry is None

    @property
    def size(self) -> int | None:
        """How many entries it lists; None if it is about any number of them."""
        return None if self.by_entry is None else len(self.by_entry)

    def at(self, entry: int) -> tuple[Cost, ...]:
        """The costs of which ``entry`` has lost one at most."""
        return self.anywhere if self.by_entry is None else (self.by_entry[entry],)

    @property
    def listed(self) -> tuple[Cost, ...]:
        """All costs, each once."""
        return tuple(dict.fromkeys(self.anywhere if self.by_entry is None else self.by_entry))

    @property
    def alone(self) -> tuple["EntryCosts", ...]:
        """What one mechanism may have: where any of some costs was lost, one of them everywhere.

        The largest first, without those that another one dominates: they tell no more.
        """
        if self.by_entry is not None or not self.anywhere:
            return (self,)
        undominated = [
            cost
            for k, cost in enumerate(self.anywhere)
            if not any(
                other.dominates(cost) and (k > j or not cost.dominates(other))
                for j, other in enumerate(self.anywhere)
                if j != k
            )
        ]
        return tuple(EntryCosts((cost,)) for cost in sorted(undominated, key=lambda c: -c.scalar))

    def matrix(
        self, values: Sequence[Value], columns: tuple[str, ...] | None = None, *, entry: int = 0
    ) -> Floats:
        """``[u, v]``: an upper bound on what ``entry``, which has these ``values``, has lost."""
        return largest_matrix(self.at(entry), values, columns)

    def matrices(
        self, values: Sequence[Value], columns: tuple[str, ...] | None = None
    ) -> tuple[list[Floats], list[int]]:
        """The different matrices of a profile of entries that share ``values``; which is whose."""
        if self.by_entry is None:
            return [self.matrix(values, columns)], []
        numbers = {cost: k for k, cost in enumerate(self.listed)}
        matrices = [cost.matrix(values, columns) for cost in numbers]
        return matrices, [numbers[cost] for cost in self.by_entry]

    @property
    def scalar(self) -> Fraction:
        """An ε with cost ≤ ε·[u≠v] on every entry."""
        return max((cost.scalar for cost in self.listed), default=Fraction(0))

    def scalars(self) -> float | Floats:
        """One ε for all entries, or one for each, rounded up: what no matrix is needed for."""
        return self._scalars

    @cached_property
    def _scalars(self) -> float | Floats:
        if self.by_entry is None:
            return epsilon_up(self.scalar)
        each = {cost: epsilon_up(cost.scalar) for cost in self.listed}
        return frozen([each[cost] for cost in self.by_entry])

    def part(self, start: int, stop: int) -> "EntryCosts":
        """Those of the entries from ``start`` to before ``stop``."""
        return self if self.by_entry is None else EntryCosts(by_entry=self.by_entry[start:stop])


@dataclass(frozen=True, eq=False)
class CostLevels:
    """The cost of a change, entry by entry.

    A scalar loss ε is the matrix ε·[u≠v]. Every matrix is closed (no detour is cheaper), has 0 on
    its diagonal, and need neither be symmetric nor be positive elsewhere.

    Attributes:
        matrices: The different matrices ``[u, v]``.
        at: ``[entry]``: which of them is the entry's.
    """

    matrices: tuple[Floats, ...]
    at: Integers

    @classmethod
    def of_losses(cls, epsilon: ArrayLike, metric: Floats) -> "CostLevels":
        """ε of each entry times what a change costs as a multiple of it."""
        spent = np.asarray(epsilon, dtype=np.float64)
        if spent.ndim != 1 or not spent.size or not ((spent >= 0) & np.isfinite(spent)).all():
            raise Malformed(
                "epsilon", given="is not a list of finite losses", needed="be 0 or more"
            )
        levels, at = np.unique(spent, return_inverse=True)
        return cls(tuple(frozen(level * metric) for level in levels.tolist()), at).checked()

    @classmethod
    def of_costs(
        cls,
        costs: EntryCosts,
        states: Sequence[Value],
        columns: tuple[str, ...] | None,
        length: int | None,
    ) -> "CostLevels":
        """What ``costs`` says of a chain with these states.

        A uniform cost is repeated ``length`` times, or stated once if that is None.
        """
        matrices, at = costs.matrices(states, columns)
        places = at if not costs.uniform else [0] * (length or 1)
        return cls(tuple(matrices), np.array(places, dtype=np.int64)).checked()

    def checked(self) -> "CostLevels":
        """The same, unless it adds up to more than floats can hold."""
        with np.errstate(over="ignore"):
            total = float(self.dearest.sum())
        if not total < MAX_TOTAL:
            raise Malformed(
                "epsilon",
                given=f"sums to {total:g}",
                needed=f"sum to less than {MAX_TOTAL:g}",
                reason="sum",
            )
        return self

    def __len__(self) -> int:
        return len(self.at)

    @property
    def states(self) -> int:
        """How many values an entry has."""
        return len(self.matrices[0])

    def cost(self, entry: int) -> Floats:
        """``[u, v]``: what a change of ``entry`` from u to v costs."""
        return self.matrices[int(self.at[entry])]

    @cached_property
    def tops(self) -> Floats:
        """``[level]``: the dearest change of each matrix."""
        return np.array([float(matrix.max(initial=0.0)) for matrix in self.matrices])

    @property
    def dearest(self) -> Floats:
        """``[entry]``: the dearest change of each entry."""
        found: Floats = self.tops[self.at]
        return found

    def then_nothing(self, entries: int) -> "CostLevels":
        """The same with more entries after them, of which nothing was asked."""
        nothing = frozen(off_diagonal(self.states, 0.0))
        more = np.full(entries, len(self.matrices), dtype=np.int64)
        return CostLevels((*self.matrices, nothing), np.concatenate([self.at, more]))


def labels_of(prior: Prior) -> Iterable[tuple[str | None, Value]]:
    """Every value that some entry of ``prior`` may have, with its column in a joint state."""
    parts = prior.parts.values() if isinstance(prior, Product) else (prior,)
    for part in parts:
        columns = part.columns if isinstance(part, MarkovChain) else None
        for values in part.entry_values:
            for value in values:
                if columns is None:
                    yield None, value
                elif isinstance(value, tuple):
                    yield from zip(columns, value, strict=True)


def check_labels(costs: EntryCosts, known: Iterable[tuple[str | None, Value]]) -> None:
    """Refuse a cost about a label that no entry can have: it would count as telling nothing."""
    have = set(known)
    for cost in costs.listed:
        for column, label in cost.labels():
            if (column, label) not in have:
                where = "" if column is None else f" of column {column!r}"
                raise UnsoundRequest(
                    f"a cost is about label {label!r:.80}{where}, which the prior does not have;"
                    " labels are matched by name",
                    field="cost",
                    reason="unknown label",
                    given=label,
                )


def checked_losses(given: ArrayLike, name: str, *, below: float = inf) -> Floats:
    """One loss or several as floats: each 0 or more, finite, and below a bound."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise UnsoundRequest(f"{name} is not a number or a list of numbers", field=name) from error
    if not ((numbers >= 0) & (numbers < below)).all():  # also false for NaN
        needed = "0 or more, and finite" if below == inf else f"from 0 to below {below:g}"
        raise UnsoundRequest(f"{name} holds a number that is not {needed}", field=name)
    return numbers


Spending = float | Mapping[Name, float] | Sequence[float] | Floats
EntrySpending = Spending | EntryCosts


def spent_per_entry(entries: Sequence[Name], epsilon: Spending) -> Floats:
    """``[entry]``: the total ε of every entry, from one number, a mapping by name, or a list.

    0 means that no mechanism used the entry.
    """
    given = numbers_by_entry(entries, epsilon, "epsilon")
    if not ((given >= 0) & (given < np.inf)).all():  # also false for NaN
        raise Malformed(
            "epsilon",
            given="holds a number that is negative, infinite or none",
            needed="be finite and 0 or more: without a finite ε an entry may be revealed outright",
        )
    return given


def cost_matrices(
    entries: Sequence[Name], states: Sequence[tuple[Any, ...]], spent: EntrySpending
) -> tuple[Floats, ...]:
    """For each entry ``[u, v]``: what the change from value u to value v costs, rounded up."""
    if not isinstance(spent, EntryCosts):
        epsilon = spent_per_entry(entries, spent)
        return tuple(
            frozen(e * (1 - np.eye(len(values)))) for e, values in zip(epsilon, states, strict=True)
        )
    if spent.size is not None and spent.size != len(entries):
        raise UnsoundRequest(
            f"the profile has {spent.size} costs; needed are {len(entries)}, one for each entry",
            field="profile",
            given=spent.size,
            needed=len(entries),
        )
    known: dict[Any, Floats] = {}  # entries with the same costs and values share a matrix
    for k, values in enumerate(states):
        key = spent.at(k), values
        if key not in known:
            largest = epsilon_up(max((cost.scalar for cost in key[0]), default=Fraction(0)))
            known[key] = frozen(np.minimum(spent.matrix(values, entry=k), largest))
    return tuple(known[spent.at(k), values] for k, values in enumerate(states))


def largest_costs(costs: Sequence[Floats]) -> Floats:
    """``[entry]``: the largest cost of any change, an ε that covers it."""
    return frozen([float(cost.max(initial=0.0)) for cost in costs])
