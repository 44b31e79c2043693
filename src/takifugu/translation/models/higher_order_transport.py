r"""The transport bound of higher-order chains: that of their windows, as joint states.

Let X have order k, with windows :math:`Y_i = (X_{i-k+1}, \ldots, X_i)`
(`takifugu.priors.higher_order.HigherOrderChain`). A mechanism on X with the cost :math:`c_i` on
entry i (ε for any change, if the loss is scalar) is one on the windows that reads the last value of
each: when window i alone changes, its output probabilities change by a factor of at most
:math:`e^{c_i}` of the last values. So X loses at most what the Markov chain Y does under the costs
of the last values, for secrets about the last value whatever the others are: a chain on joint
states, of which one column is read and protected.

With an unknown start the first window may have any law: whoever knows the values before entry 0
holds some law of it.
"""

from dataclasses import replace

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu.errors import InvalidWorld
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.certify.laws import transition_rows
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.adversary_transport import AdversaryTransport
from takifugu.translation.models.chain_entries import ChainBound, joined
from takifugu.translation.models.chain_transport import ChainTransport


class HigherOrderTransport(ChainBound):
    """One higher-order chain and chosen secrets, by its windows."""

    def __init__(
        self, prior: HigherOrderChain, secrets: Secrets, *, tolerance: float = 1e-3
    ) -> None:
        self.states, self.length = prior.states, prior.length
        self._last = prior.windows[:, -1]
        rows = transition_rows(prior.window_chain.transition)
        chain = replace(prior.window_chain, transition=rows)
        sides = secrets.sides(prior.states)
        windows = {
            side: tuple(w for w, last in enumerate(self._last.tolist()) if last in side)
            for pair in sides
            for side in pair
        }
        named = {s: tuple(chain.states[w] for w in members) for s, members in windows.items()}
        pairs = tuple((named[a], named[b]) for a, b in sides if named[a] and named[b])
        if not pairs:
            raise InvalidWorld(
                "secrets", given="name values that never happen", needed="name values that can"
            )
        inside = Secrets(entries=secrets.entries, pairs=pairs)
        self._windows: AdversaryTransport | ChainTransport = (
            AdversaryTransport(chain, inside, tolerance=tolerance)
            if prior.start == "unknown"
            else ChainTransport(chain, inside, tolerance=tolerance, coupled=False)
        )
        self._names = {
            joined(chain.states, members): joined(prior.states, side)
            for side, members in windows.items()
        }

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        return self._renamed(self._windows.everywhere(self._of_windows(cost)))

    def one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""
        return self._renamed(self._windows.one_by_one(self._by_window(charged)))

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """A product of factors around the worst entry; none is searched for an unknown start."""
        charged = self._levels(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
        return self._leaking(charged, bound, everywhere=np.ndim(epsilon) == 0)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        charged = CostLevels.of_costs(costs, self.states, None, None)
        return self._leaking(charged, bound, everywhere=costs.uniform)

    def _leaking(self, charged: CostLevels, bound: Bound, *, everywhere: bool) -> Witness:
        if not isinstance(self._windows, ChainTransport):
            return Witness(0.0, bound.binding)
        found = self._windows.leaking(self._by_window(charged), bound, everywhere=everywhere)
        by_value = None
        if found.factors is not None:
            by_value = np.ones((len(found.factors), len(self.states)))
            by_value[:, self._last] = found.factors  # the same for all windows with a last value
            by_value = frozen(by_value)
        return replace(found, binding=self._named(found.binding), factors=by_value)

    def _of_windows(self, cost: Floats) -> Floats:
        """``[u, v]``: what a change of a window costs: that of its last value."""
        return cost[np.ix_(self._last, self._last)]

    def _by_window(self, charged: CostLevels) -> CostLevels:
        return CostLevels(tuple(map(self._of_windows, charged.matrices)), charged.at)

    def _renamed(self, found: Bound) -> Bound:
        return replace(found, binding=self._named(found.binding), by_values=None)

    def _named(self, binding: Binding | None) -> Binding | None:
        """A pair of groups of windows as one of groups of values."""
        if binding is None:
            return None
        sides = self._names[binding.left], self._names[binding.right]
        return replace(binding, left=sides[0], right=sides[1])
