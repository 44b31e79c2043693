"""What a translation proves: a bound on the loss, where it binds, and a mechanism that leaks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.priors.universe import Name
from takifugu.translation.entry_costs import EntryCosts

if TYPE_CHECKING:
    from takifugu.finite.mechanism import FiniteMechanism

Key = TypeVar("Key")
Value = TypeVar("Value")
EXACT = 1e-6  # relative difference up to which two bounds count as one exact number


class LooserTranslation(UserWarning):
    """The transport bound is out of reach for this prior; the result is sound but looser."""


@dataclass(frozen=True)
class Binding:
    """The secret pair with the largest loss.

    Attributes:
        entry: The entry that the pair is about; None if it is the same for all, or not known.
        left: The value, or the values joined by "|", on the side whose odds go up.
        right: The same for the other side.
        prior: The name of the prior, if there are several, or of the person.
    """

    left: str
    right: str
    entry: Name | None = None
    prior: str | None = None

    def __str__(self) -> str:
        where = "" if self.entry is None else f"{self.entry}="
        whose = "" if self.prior is None else f"{self.prior}: "
        return f"{whose}{where}{self.left} / {where}{self.right}"

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        given = {"entry": self.entry, "left": self.left, "right": self.right, "prior": self.prior}
        return {key: value for key, value in given.items() if value is not None}

    @classmethod
    def of_pair(cls, label: str) -> "Binding":
        """The pair that a row of an influence curve names."""
        left, _, right = label.partition(" / ")
        (entry, mark, one), (again, _, other) = left.partition("="), right.partition("=")
        if mark and entry == again:
            return cls(one, other, entry=int(entry) if entry.isdigit() else entry)
        return cls(left, right or left)


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper bound on the Pufferfish loss.

    Attributes:
        value: At least the loss.
        binding: The pair with the largest loss; None if there is no pair.
        by_entry: ``[entry]``: the largest loss of each entry; None if it is not known.
        by_values: ``[x, y]``: of a chain, the largest loss at the binding entry of a secret pair
            with x on its left and y on its right; −∞ if there is none.
    """

    value: float
    binding: Binding | None = None
    by_entry: Floats | None = None
    by_values: Floats | None = field(default=None, repr=False)
    solved: bool = False

    def named(self, prior: str) -> "Bound":
        """The same with the name of its prior."""
        binding = None if self.binding is None else replace(self.binding, prior=prior)
        return replace(self, binding=binding)


@dataclass(frozen=True, eq=False)
class Witness:
    r"""A mechanism with the losses that were translated, and a lower bound on what it leaks.

    With ``factors`` it is randomised response on each of ``entries``, independently. Of a scalar
    loss, entry j outputs 1 with probability :math:`g_j(x_j) / (1 + e^{ε_j})`, where
    :math:`1 \le g_j \le e^{ε_j}`, else 0. Each output is ε_j-DP, and the output of ones alone
    has a likelihood proportional to :math:`\prod_j g_j(x_j)`. Of a cost,
    :math:`g_j(u) \le e^{c_j(u,v)} g_j(v)`, and the output 1 has probability :math:`p\,g_j(x_j)`
    with a p so small that the output 0 obeys the cost as well: the leak does not depend on it.
    Such a p exists, since g_j is the same for values between which a change costs nothing. With
    ``mechanism`` it is a table of likelihoods.

    Attributes:
        leak: A lower bound on the loss of ``binding`` at the output of ones alone.
            Near the supremum of an unbounded chain no entries are listed: it takes many.
        binding: The secret pair that leaks.
        entries: The entries that are used.
        factors: ``[entry, value]``: g, rounded down to what float64 can hold.
        mechanism: The table instead, for a prior over listed datasets.
        against: What the adversary knows to whom it leaks as much, if that is more than the prior.
    """

    leak: float
    binding: Binding | None
    entries: tuple[Name, ...] = field(default=(), repr=False)
    factors: Floats | None = field(default=None, repr=False)
    mechanism: "FiniteMechanism | None" = field(default=None, repr=False)
    against: str = ""

    def named(self, prior: str) -> "Witness":
        """The same with the name of its prior."""
        binding = None if self.binding is None else replace(self.binding, prior=prior)
        return replace(self, binding=binding)


class TransportBound(Protocol):
    """The largest loss of any per-entry DP mechanism under one prior, or an upper bound on it.

    Implementers: `BinaryTransport`, `ChainTransport`, `ManyStatesTransport`, `IntervalTransport`,
    `HigherOrderTransport`, `TimeOfDayTransport` (chains); `NetworkTransport` (networks and random
    fields); `ExplicitTransport`, `IndependentTransport`; and, of several of them,
    `AlternativePriors` and `IndependentPeople`.

    None of them claims to be exact. A bound is exact where its witness leaks as much.
    """

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""

    def uniform(self, epsilon: float) -> Bound:
        """The loss if every entry is charged ``epsilon``."""

    def profile(self, epsilon: Floats) -> Bound:
        """The loss if entry i is charged ``epsilon[i]``."""

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """A mechanism that leaks nearly as much as ``bound``."""

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value."""
        return self._by_scalars(costs)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:  # noqa: ARG002
        """A mechanism with these costs that leaks nearly as much as ``bound``."""
        return Witness(0.0, bound.binding)

    def nearby(self, bound: Bound) -> Callable[[EntryCosts], float] | None:  # noqa: ARG002
        """A quick estimate, neither an upper nor a lower bound, of the loss of other costs.

        For the same cost on every entry, and the pair that binds in ``bound``. None if none is
        quick. A search for an allowance uses it to choose what to evaluate.
        """
        return None

    def _by_scalars(self, costs: EntryCosts) -> Bound:
        """The bound of the scalar losses that ``costs`` are at most: looser, and always sound."""
        spent = costs.scalars()
        return self.uniform(spent) if isinstance(spent, float) else self.profile(spent)


class Cache(dict[Key, Value]):
    """What was computed; it is emptied when it is full."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def computed(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is not there."""
        if key not in self:
            value = compute()
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return self[key]


def worst(bounds: Mapping[str, Bound]) -> Bound:
    """The largest of several bounds; with the loss of each entry if all of them have it."""
    name = max(bounds, key=lambda key: bounds[key].value)
    lists = [bound.by_entry for bound in bounds.values()]
    together = None
    if all(part is not None for part in lists):
        together = np.concatenate([part for part in lists if part is not None])
    top = bounds[name] if len(bounds) == 1 else bounds[name].named(name)
    solved = all(bound.solved for bound in bounds.values())
    return Bound(top.value, top.binding, together, top.by_values, solved)


def of_pair(pair: SecretPair) -> Binding:
    """A pair of statements as a binding."""
    if isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs):
        left, right = ("|".join(map(str, side.values)) for side in (pair.left, pair.right))
        return Binding(left, right, entry=pair.left.entry)
    return Binding(str(pair.left), str(pair.right))
