"""The transport bound of Markov chains with more states than the steps of other bounds can join.

Only how fast the chain forgets is used: see `takifugu.translation.certify.memory`.
"""

from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket
from takifugu.translation.bounds import Bound, TransportBound, Witness
from takifugu.translation.certify.laws import (
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.certify.memory import endless_side, entry_losses, memory, one_side
from takifugu.translation.models.chain_entries import (
    refuse_other_length,
    refuse_unbounded,
    secret_entries,
)


class ManyStatesTransport(TransportBound):
    """The bound of one chain with many states; of costs by value, that of their scalars."""

    def __init__(self, chain: MarkovChain, secrets: Secrets) -> None:
        chain.refuse_unless_one_law("the memory of a chain")
        self._chain = chain
        self._entries = secret_entries(secrets, chain.length)
        if chain.length is None and not chain.stationary_start:
            refuse_unbounded()

    @property
    def size(self) -> int | None:
        """How many entries there are; None if the chain is unbounded."""
        return self._chain.length

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        if self.size is not None:
            return self.profile(np.full(self.size, epsilon))
        ahead, behind = (endless_side(tau, epsilon) for tau in self._stationary_memories)
        sides = np.array([[epsilon], [ahead], [behind]])
        return Bound(float(entry_losses(*sides)[0]))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss if entry i is charged ``epsilon[i]``, and later ones of an unbounded chain 0."""
        refuse_other_length(len(epsilon), self.size)
        ahead, behind = self._memories(len(epsilon) - 1)
        losses = epsilon.tolist()
        by_entry = entry_losses(
            epsilon,
            one_side(ahead[::-1], losses[:0:-1])[::-1],
            one_side(behind, losses[:-1]),
        )
        if self.size is None:  # of the entries that follow, the first is told most
            beyond = one_side([*behind, self._stationary_memories[1]], losses)[-1]
            by_entry = np.append(by_entry, beyond)
        kept = by_entry
        if self._entries is not None:
            kept = by_entry[np.minimum(self._entries, len(by_entry) - 1)]
        return Bound(float(kept.max()), None, by_entry)

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_by_bracket(lambda epsilon: self.uniform(epsilon).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """No mechanism is searched for."""
        return Witness(0.0, bound.binding)

    @cached_property
    def _stationary_memories(self) -> tuple[float, float]:
        """What one step forward and one step backward remember, in a stationary chain."""
        rows = transition_rows(self._chain.transition)
        backward, _ = backward_rows(rows, recurrent_law(rows))
        every = np.ones(len(rows), dtype=np.bool_)
        return (
            memory(rows, every, row_slack(len(rows))),
            memory(backward, every, law_slack(len(rows))),
        )

    def _memories(self, steps: int) -> tuple[list[float], list[float]]:
        """What each step remembers: of the entry before it, and of the entry after it."""
        chain = self._chain
        if chain.stationary_start:
            ahead, behind = self._stationary_memories
            return [ahead] * steps, [behind] * steps
        return self._walked_memories

    @cached_property
    def _walked_memories(self) -> tuple[list[float], list[float]]:
        chain = self._chain
        law = Law.from_floats(chain.start_law)
        ahead: list[float] = []
        behind: list[float] = []
        known: dict[tuple[bytes, bytes], float] = {}

        def remembered(rows: Floats, among: Booleans, slack: float) -> float:
            key = (rows.tobytes(), among.tobytes())
            if key not in known:
                known[key] = memory(rows, among, slack)
            return known[key]

        for time in range((chain.length or 1) - 1):
            rows = transition_rows(chain.kernel(time))
            ahead.append(remembered(rows, law.possible, row_slack(len(rows))))
            backward, law = law.back(rows)
            behind.append(memory(backward, law.possible, law.slack))
        return ahead, behind
