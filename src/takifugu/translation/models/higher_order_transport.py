r"""The transport bound of higher-order chains, by their windows.

Let X have order k, with windows :math:`Y_i = (X_{i-k+1}, \ldots, X_i)`
(`takifugu.priors.higher_order.HigherOrderChain`). Let g(X) be the probability of an output of a
mechanism with the cost :math:`c_i` on entry i (ε for any change, if the loss is scalar). As a
function of the windows it changes by a factor of at most :math:`e^{c_i}` of their last values when
the window i changes. The recursion of `takifugu.translation.search.recursion` with these costs,
which are 0 between windows with the same last value, gives tables F and B such that

.. math:: E[g \mid Y_i = u] \le e^{c(u,v)}\, E[g \mid Y_i = v], \qquad
          c = c_i + F_i + B_i.

A secret "X_i is in A" is a mixture: :math:`E[g | X_i \in A] = \sum_u P(Y_i = u | X_i \in A)\,
E[g | Y_i = u]`. So the loss of (A, B) is at most the transport between these two mixtures with the
costs c: one more step. ∎

The step forgets that one mechanism must be the worst for all windows at once, so this is an upper
bound, whose distance from the truth the witness shows.

With an unknown start the loss is at most that of the window chain with an unknown start, the costs
of the last values, and secrets about the last value whatever the others are: that of a chain on
joint states, of which one column is read and protected. Whoever knows the values before entry 0
holds some law of the first window.
"""

from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu.costs.cost import Cost
from takifugu.errors import InvalidWorld
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.certify.cost_levels import CostLevels
from takifugu.translation.certify.flow import mixture_step, pair_losses
from takifugu.translation.certify.laws import (
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.certify.product import Neighbourhood
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.adversary_transport import AdversaryTransport
from takifugu.translation.models.chain_entries import refuse_other_length, secret_entries
from takifugu.translation.models.chain_transport import (
    TAIL,
    WALKED,
    around_entry,
    joined,
)
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.groups import pair_mask
from takifugu.translation.search.product_search import best_product
from takifugu.translation.search.recursion import chain_losses
from takifugu.translation.search.unbounded_losses import unbounded_losses

REACH = 64  # entries to each side of the secret one that a witness uses
WITNESSED = 16  # pairs for which a witness is searched
NOW = "now"  # the column of a window that is its last value


class HigherOrderTransport(TransportBound):
    """The recursion over windows for one higher-order chain and chosen secrets."""

    def __init__(
        self, prior: HigherOrderChain, secrets: Secrets, *, tolerance: float = 1e-3
    ) -> None:
        self._prior, self._tolerance = prior, tolerance
        self._windows = len(prior.windows)
        self._last = prior.windows[:, -1]
        self._metric = frozen(self._last[:, None] != self._last[None, :])
        self._secret_entries = secret_entries(secrets, prior.length)
        sides = secrets.sides(prior.states)
        pair_mask(sides, len(prior.states))  # an error now rather than later
        able = [pair for pair in sides if all(self._members(side).any() for side in pair)]
        if not able:
            raise InvalidWorld(
                "secrets", given="name values that never happen", needed="name values that can"
            )
        self._sides = list(dict.fromkeys(side for pair in able for side in pair))
        place = {side: k for k, side in enumerate(self._sides)}
        self._pairs = np.array([(place[a], place[b]) for a, b in able], dtype=np.int64)
        known = Law.from_floats(self._stationary_rows[1])
        self._mixtures = np.array([known.given(self._members(side)) for side in self._sides])

    @property
    def size(self) -> int | None:
        """The number of entries; None if it is unbounded."""
        return self._prior.length

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self._everywhere(epsilon * self._metric)

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``, and later entries nothing."""
        return self._one_by_one(CostLevels.of_losses(epsilon, self._metric))

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value."""
        charged = self._by_window(costs)
        return self._everywhere(charged.cost(0)) if costs.uniform else self._one_by_one(charged)

    def _by_window(self, costs: EntryCosts) -> CostLevels:
        """The costs as they are between windows: those of their last values."""
        charged = CostLevels.of_costs(costs, self._prior.states, None, None)
        last = np.ix_(self._last, self._last)
        return CostLevels(tuple(cost[last] for cost in charged.matrices), charged.at)

    def _everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost, of its window."""
        length = self._prior.length
        if length is not None and length * self._windows**2 <= WALKED:
            return self._one_by_one(CostLevels((cost,), np.zeros(length, dtype=np.int64)).checked())
        losses = unbounded_losses(self._stationary_rows[0], cost, tolerance=self._tolerance)
        value, pair = self._loss(cost, losses.forward.upper, losses.backward.upper)
        return Bound(value, self._binding(pair, None))

    def _one_by_one(self, spent: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""
        length = self._prior.length
        refuse_other_length(len(spent), length)
        tail = TAIL if length is None else 0
        charged = spent.then_nothing(tail) if tail else spent
        losses = chain_losses(self._stationary_rows[0], charged)
        known: dict[tuple[int, int, int], tuple[float, int]] = {}
        by_entry, pairs = np.zeros(len(charged)), np.zeros(len(charged), dtype=np.int64)
        covered = self._covered(len(charged))
        for i in covered:
            ahead, behind = int(losses.forward_at[i]), int(losses.backward_at[i])
            case = (int(charged.at[i]), ahead, behind)
            if case not in known:
                known[case] = self._loss(
                    charged.cost(i), losses.forward[ahead], losses.backward[behind]
                )
            by_entry[i], pairs[i] = known[case]
        entry = int(np.argmax(by_entry))
        binding = self._binding(int(pairs[entry]), entry) if covered else None
        if tail:
            # further on nothing is charged, and a step costs at most its dearest move
            beyond = float(losses.backward[losses.backward_at[-1]].max())
            by_entry = np.append(by_entry[:-tail], max(float(by_entry[-tail:].max()), beyond))
        return Bound(float(by_entry.max()), binding, frozen(by_entry))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response on the values around the worst entry."""
        spent = np.asarray(epsilon, dtype=np.float64)
        charged = CostLevels.of_losses(np.atleast_1d(spent), self._metric)
        return self._leaking(charged, bound, everywhere=spent.ndim == 0)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        return self._leaking(self._by_window(costs), bound, everywhere=costs.uniform)

    def _leaking(self, charged: CostLevels, bound: Bound, *, everywhere: bool) -> Witness:
        """The best product found; ``everywhere`` says that the one cost is that of every entry."""
        length = self._prior.length
        entry = bound.binding.entry if bound.binding is not None else None
        centre = entry if isinstance(entry, int) else self._middle
        last = centre + REACH if length is None else min(centre + REACH, length - 1)
        first = max(0, centre - REACH)
        after, before, own = around_entry(charged, first, centre, last, everywhere=everywhere)
        rows, _, back = self._stationary_rows
        around = Neighbourhood(
            *([rows] * len(after), [back] * len(before), own, after, before),
            law_slack=law_slack(self._windows),
        )
        pairs = self._pairs[self._order(bound)][:WITNESSED]
        found = best_product(around, self._mixtures[pairs[:, 0]], self._mixtures[pairs[:, 1]])
        by_window = np.concatenate([found.behind[::-1], found.here[None], found.ahead])
        factors = np.ones((len(by_window), len(self._prior.states)))
        factors[:, self._last] = by_window
        a, b = (self._named(int(side)) for side in pairs[found.pair])
        entries = tuple(range(centre - len(before), centre + len(after) + 1))
        return Witness(found.leak, Binding(a, b, entry=centre), entries, frozen(factors))

    def _loss(self, charged: Floats, forward: Floats, backward: Floats) -> tuple[float, int]:
        """The largest loss over all secret pairs of an entry, and which pair has it."""
        slack = law_slack(self._windows) + row_slack(self._windows)
        table = pair_losses(charged, forward, backward)
        step = mixture_step(self._mixtures, table, slack=slack)
        if not step.needs_flows:
            return step.dearest, 0
        size = len(self._mixtures)
        guess = np.full((size, size), float(charged.max()))
        proven = step.upper(solve_step(step, guess=guess))
        losses = proven[self._pairs[:, 0], self._pairs[:, 1]]
        worst = int(np.argmax(losses))
        return float(losses[worst]), worst

    @cached_property
    def _stationary_rows(self) -> tuple[Floats, Floats, Floats]:
        """The rows of the window chain, its stationary law, and the rows back in time."""
        rows = transition_rows(self._prior.window_chain.transition)
        law = recurrent_law(rows)
        return rows, law, backward_rows(rows, law)[0]

    def _members(self, side: tuple[int, ...]) -> Booleans:
        """``[window]``: whether its last value is one of ``side``."""
        return np.isin(self._last, side)

    def _covered(self, entries: int) -> list[int]:
        """The entries among the first so many that have secrets."""
        if self._secret_entries is None:
            return list(range(entries))
        return [int(i) for i in self._secret_entries if i < entries]

    @property
    def _middle(self) -> int:
        if self._secret_entries is not None:
            return int(self._secret_entries[len(self._secret_entries) // 2])
        return REACH if self._prior.length is None else self._prior.length // 2

    def _order(self, bound: Bound) -> list[int]:
        """The pair that binds first, then the others."""
        named = [(self._named(int(a)), self._named(int(b))) for a, b in self._pairs]
        binds = None if bound.binding is None else (bound.binding.left, bound.binding.right)
        return sorted(range(len(named)), key=lambda k: named[k] != binds)

    def _named(self, side: int) -> str:
        return joined(self._prior.states, self._sides[side])

    def _binding(self, pair: int, entry: int | None) -> Binding:
        a, b = (self._named(int(side)) for side in self._pairs[pair])
        return Binding(a, b, entry=entry)


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
