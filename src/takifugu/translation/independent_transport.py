"""The transport bound of independent entries."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from takifugu._rounding import UNIT, down, gamma, log_ratio_up
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network.coupling_steps import CouplingSteps, PossibleStates, Term
from takifugu.translation.network.spending import attainable_cost

STEEPEST = 600.0  # a larger cost is not exponentiated
OFF = 1e-12  # relative error of a cost: matrices are rounded up, and mechanisms must be admissible


def _words(states: Sequence[Name], side: Sequence[int]) -> str:
    return "|".join(str(states[v]) for v in side)


class _Sides(NamedTuple):
    """A secret pair of an entry: in words, and by the numbers of its values."""

    left: str
    right: str
    from_values: tuple[int, ...]
    to_values: tuple[int, ...]


class IndependentTransport(TransportBound):
    """Independent entries: the loss of an entry is what it was charged."""

    def __init__(self, prior: IndependentEntries, secrets: Secrets) -> None:
        self._prior = prior
        self._entries = tuple(prior.marginals)
        self._pairs = {
            entry: sides
            for entry in (self._entries if secrets.entries is None else secrets.entries)
            if (sides := self._possible(entry, secrets))
        }

    def _possible(self, entry: Name, secrets: Secrets) -> list[_Sides]:
        if entry not in self._prior.marginals:
            raise UnsoundRequest(
                f"the secrets name the entry {entry!r}, which the prior does not have",
                field="secrets",
                given=entry,
            )
        states = self._prior.states[entry]
        law = self._prior.law(entry)
        pairs: Sequence[Any] = (
            [((x,), (y,)) for x, y in permutations(range(len(states)), 2)]
            if secrets.pairs is None
            else secrets.sides(states)
        )
        return [
            _Sides(_words(states, a), _words(states, b), tuple(a), tuple(b))
            for a, b in pairs
            if law[list(a)].sum() > 0 and law[list(b)].sum() > 0
        ]

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._entries)

    def uniform(self, epsilon: float) -> Bound:
        """ε itself, if some entry has a secret pair."""
        return self.profile(np.full(len(self._entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """What each entry was charged."""
        spent = np.asarray(epsilon, dtype=np.float64)
        secret = np.array([entry in self._pairs for entry in self._entries])
        by_entry = np.where(secret, spent, 0.0)
        k = int(np.argmax(by_entry))
        return Bound(float(by_entry[k]), self._binding(k), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The target itself."""
        return float(target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Randomised response on the entry alone."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(self._entries))
        k = int(
            np.argmax([e * (n in self._pairs) for e, n in zip(spent, self._entries, strict=True)])
        )
        binding = self._binding(k)
        if binding is None:
            return Witness(0.0, None)
        states = self._prior.states[self._entries[k]]
        steep = min(float(spent[k]), 600.0)
        high = max(float(np.exp(steep)) * (1 - 4 * UNIT), 1.0)
        factors = [[high if str(s) in binding.left.split("|") else 1.0 for s in states]]
        return Witness(steep * (1 - UNIT), binding, (self._entries[k],), frozen(factors))

    def _binding(self, k: int) -> Binding | None:
        pairs = self._pairs.get(self._entries[k])
        return None if not pairs else Binding(*pairs[0][:2], entry=self._entries[k])

    def valued(self, costs: EntryCosts) -> Bound:
        """What each entry was charged, value by value: its law given either side is coupled."""
        if costs.size is not None and costs.size != len(self._entries):
            raise UnsoundRequest(
                f"the profile has {costs.size} costs; there are {len(self._entries)} entries",
                field="profile",
                given=costs.size,
                needed=len(self._entries),
            )
        by_entry = np.zeros(len(self._entries))
        worst, binding = -1.0, None
        for k, entry in enumerate(self._entries):
            for sides in self._pairs.get(entry, []):
                value = self._coupled(
                    entry, costs.matrix(self._prior.states[entry], entry=k), sides
                )
                by_entry[k] = max(by_entry[k], value)
                if value > worst:
                    worst, binding = value, Binding(sides.left, sides.right, entry=entry)
        return Bound(max(worst, 0.0), binding, frozen(by_entry))

    def _coupled(self, entry: Name, cost: Floats, sides: _Sides) -> float:
        law = self._prior.law(entry)
        left, right = (
            [v for v in side if law[v] > 0] for side in (sides.from_values, sides.to_values)
        )
        if len(left) == len(right) == 1:
            return float(cost[left[0], right[0]])
        states = np.array([*left, *right], dtype=np.int64)
        found = CouplingSteps((len(law),)).between(
            PossibleStates((0,), states[None], law[states], len(law)),
            [Term((0,), cost)] if cost.any() else [],
            [np.arange(len(left)), np.arange(len(left), len(states))],
            *(np.array([0]), np.array([1])),
        )
        return float(found[0])

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """A function of the entry that binds: the cost to the right side, or from the left."""
        if bound.binding is None or bound.binding.entry not in self._pairs:
            return Witness(0.0, bound.binding)
        entry = bound.binding.entry
        states, law = self._prior.states[entry], self._prior.law(entry)
        cost = attainable_cost(costs.matrix(states, entry=self._entries.index(entry)))
        cost = cost * min(1.0, STEEPEST / max(float(cost.max(initial=0.0)), STEEPEST))
        best = Witness(0.0, bound.binding)
        for sides in self._pairs[entry]:
            if (sides.left, sides.right) != (bound.binding.left, bound.binding.right):
                continue
            left, right = list(sides.from_values), list(sides.to_values)
            for way in (cost[:, right].min(axis=1), -cost[left].min(axis=0)):
                g = np.exp(way - way.min())
                error = gamma(4 * len(law) + 16)
                one, other = g[left] @ law[left], g[right] @ law[right]
                leak = -float(log_ratio_up(other, one, error=error)) - float(
                    log_ratio_up(law[left].sum(), law[right].sum(), error=error)
                )
                leak = max(float(down(leak - 4 * OFF * (1 + cost.max()))), 0.0)
                if leak > best.leak:
                    best = Witness(leak, bound.binding, (entry,), frozen(g[None]))
        return best
