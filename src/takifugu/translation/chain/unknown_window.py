r"""The transport bound of chains of order k whose first window may have any law.

The windows of such a chain are a Markov chain, and a mechanism on the entries reads the last value
of each window (`takifugu.priors.higher_order`). So the loss is at most that of the window chain
with an unknown start, the costs of the last values, and secrets about the last value whatever the
others are: that of a chain on joint states, of which one column is read and protected. Whoever
knows the values before entry 0 holds some law of the first window.
"""

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.chain.adversary_transport import AdversaryTransport
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.chain_transport import joined

NOW = "now"  # the column of a window that is its last value


class UnknownWindowTransport(TransportBound):
    """A chain of higher order with an unknown start, by its windows as joint states."""

    def __init__(
        self, prior: HigherOrderChain, secrets: Secrets, *, tolerance: float = 1e-3
    ) -> None:
        columns = (*(f"{k} before" for k in range(prior.order - 1, 0, -1)), NOW)
        windows = tuple(tuple(prior.states[v] for v in w) for w in prior.windows.tolist())
        kept = Secrets.of_column(
            NOW,
            columns,
            windows,
            pairs=secrets.pairs,  # type: ignore[arg-type]
            entries=secrets.entries,
        )
        chain = MarkovChain(
            prior.window_chain.transition,
            windows,
            columns=columns,
            start="unknown",
            length=prior.length,
        )
        self._windows = AdversaryTransport(chain, kept, tolerance=tolerance)
        self._names = {}
        for side in (side for pair in kept.sides(windows) for side in pair):
            last = tuple(dict.fromkeys(int(prior.windows[w, -1]) for w in side))
            self._names[joined(windows, side)] = joined(prior.states, last)

    @property
    def size(self) -> int | None:
        """The number of entries; None if it is unbounded."""
        return self._windows.size

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.valued(EntryCosts((Cost.any(epsilon),)))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        return self.valued(EntryCosts(by_entry=tuple(Cost.any(float(e)) for e in epsilon)))

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value."""
        if costs.by_entry is None:
            charged = EntryCosts(tuple(cost.of_column(NOW) for cost in costs.anywhere))
        else:
            charged = EntryCosts(by_entry=tuple(cost.of_column(NOW) for cost in costs.by_entry))
        found = self._windows.valued(charged)
        binding = found.binding
        if binding is not None:
            sides = self._names[binding.left], self._names[binding.right]
            binding = Binding(*sides, entry=binding.entry)
        return Bound(found.value, binding, found.by_entry)

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """None is searched for: no lower bound is known."""
        return Witness(0.0, bound.binding)
