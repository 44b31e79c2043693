"""What the bounds of all chains share: the entries, what these cost, and which have secrets."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors.prior import state_text
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import State
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.entry_costs import CostLevels, EntryCosts


class ChainBound(TransportBound):
    """The bound of a chain from the cost matrix of every entry.

    Implementers: `BinaryTransport`, `ChainTransport`, `AdversaryTransport`, `IntervalTransport`,
    `HigherOrderTransport`, `TimeOfDayTransport`.

    Attributes:
        states: The values of an entry.
        columns: The columns of joint states; None if an entry is one value.
        length: How many entries there are; None if the chain is unbounded.
    """

    states: Sequence[State]
    columns: tuple[str, ...] | None = None
    length: int | None
    _sides: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]  # the secret pairs of an entry

    @abstractmethod
    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""

    @abstractmethod
    def one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""

    @property
    def size(self) -> int | None:
        """How many entries there are; None if the chain is unbounded."""
        return self.length

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.everywhere(off_diagonal(len(self.states), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss if entry i is charged ``epsilon[i]``, and later ones of an unbounded chain 0."""
        return self.one_by_one(self._levels(epsilon))

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value."""
        if costs.uniform:
            return self.everywhere(costs.matrix(self.states, self.columns))
        return self.one_by_one(CostLevels.of_costs(costs, self.states, self.columns, self.length))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def _binding(self, pair: int, entry: int | None) -> Binding:
        """The secret pair of that number, about an entry or about all alike."""
        a, b = self._sides[pair]
        return Binding(joined(self.states, a), joined(self.states, b), entry=entry)

    def _levels(self, epsilon: Floats) -> CostLevels:
        """The cost of each entry that is charged ``epsilon[i]``."""
        return CostLevels.of_losses(epsilon, off_diagonal(len(self.states)))


def joined(states: Sequence[object], side: tuple[int, ...]) -> str:
    """The values of a side, in words."""
    return "|".join(state_text(states[v]) for v in side)


def secret_entries(secrets: Secrets, length: int | None) -> Integers | None:
    """The numbers of the entries that have secrets, rising; None if all have."""
    if secrets.entries is None:
        return None
    for entry in secrets.entries:
        if not isinstance(entry, int) or entry < 0 or (length is not None and entry >= length):
            raise InvalidWorld(
                "secrets", given=f"name the entry {entry!r}", needed="name entries of the chain"
            )
    return np.array(sorted(set(secrets.entries)), dtype=np.int64)


def refuse_other_length(given: int, length: int | None) -> None:
    """Raise unless a profile of ``given`` numbers is one of a chain with ``length`` entries."""
    if length is not None and given != length:
        raise UnsoundRequest(
            f"the profile has {given} numbers; the chain has {length} entries",
            field="profile",
            given=given,
            needed=length,
        )


def refuse_unbounded(or_else: str = "") -> None:
    """Raise, for an unbounded chain that begins somewhere; ``or_else`` is more advice."""
    raise UnsoundRequest(
        "an unbounded chain that begins somewhere is not stationary; give `length`" + or_else,
        field="length",
    )
