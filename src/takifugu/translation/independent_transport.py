"""The transport bound of independent entries."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from takifugu._rounding import UNIT
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness


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

    def _possible(self, entry: Name, secrets: Secrets) -> list[tuple[str, str]]:
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
            ("|".join(str(states[v]) for v in a), "|".join(str(states[v]) for v in b))
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
        return None if not pairs else Binding(*pairs[0], entry=self._entries[k])
