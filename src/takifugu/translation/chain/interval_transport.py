"""The transport bound of chains whose rows are known within intervals."""

import numpy as np

from takifugu._rounding import up
from takifugu.costs import largest_matrix
from takifugu.errors import InvalidPrior
from takifugu.numeric import LEAST, Floats
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_transport import ChainTransport, joined
from takifugu.translation.chain.entry_laws import row_slack
from takifugu.translation.chain.fixed_point import fixed_point
from takifugu.translation.chain.group_step import pair_mask
from takifugu.translation.chain.interval_steps import (
    backward_boxes,
    box_rows,
    group_boxes,
    interval_losses,
    law_bounds,
    robust_rows,
)
from takifugu.translation.chain.transport_steps import LARGE, bound, closed, improve, off_diagonal
from takifugu.translation.entry_costs import EntryCosts

STAGES = 24  # entries near a free start whose laws are bounded one by one


class IntervalTransport(TransportBound):
    """The robust step for chains whose rows are only known to lie in boxes: an upper bound."""

    def __init__(
        self, chain: IntervalMarkovChain, secrets: Secrets, *, tolerance: float = 1e-3
    ) -> None:
        self._chain, self._secrets, self._tolerance = chain, secrets, tolerance
        self._sides = secrets.sides(chain.states)
        pair_mask(self._sides, len(chain.states))  # an error now rather than later
        self.uniform(0.0)  # an error now rather than later

    @property
    def size(self) -> int | None:
        """How many entries there are; None if the chain is unbounded."""
        return self._chain.length

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self._everywhere(off_diagonal(len(self._chain.states), epsilon))

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says: the largest of them everywhere."""
        return self._everywhere(largest_matrix(costs.listed, self._chain.states))

    def _everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        chain = self._chain
        if chain.start == "stationary":
            upper = interval_losses(chain.lower, chain.upper, cost, tolerance=self._tolerance).upper
        else:
            upper = self._from_any_start(cost)
        losses = np.array([upper[np.ix_(a, b)].max() for a, b in self._sides])
        if chain.start == "stationary":
            losses = np.minimum(losses, self._group_steps(upper))
        worst = int(np.argmax(losses))
        binding = Binding(*(joined(chain.states, side) for side in self._sides[worst]))
        return Bound(float(losses[worst]), binding)

    def _group_steps(self, table: Floats) -> Floats:
        """``[pair]``: the loss of each secret pair of groups, by one more robust step.

        Given a side, the entry has a law in a box (`group_boxes`), and ``table`` bounds what each
        pair of values loses. Infinite for pairs of single values.
        """
        grouped = [max(map(len, pair)) > 1 for pair in self._sides]
        cost = closed(table)
        if not any(grouped) or not 0 < cost.max() < LARGE:
            return np.full(len(grouped), np.inf)
        sides = list(dict.fromkeys(side for pair in self._sides for side in pair))
        number = {side: k for k, side in enumerate(sides)}
        laws = law_bounds(*box_rows(self._chain.lower, self._chain.upper))
        rows = robust_rows(*group_boxes(*laws, sides))(cost)
        guess = np.full((len(sides), len(sides)), float(cost.max()) / 4)
        _, couplings = improve(*rows, cost, guess=guess)
        proven = bound(*rows, cost, couplings) + 2 * row_slack(len(cost))
        return np.array(
            [
                proven[number[a], number[b]] if group else np.inf
                for (a, b), group in zip(self._sides, grouped, strict=True)
            ]
        )

    def _from_any_start(self, charged: Floats) -> Floats:
        r"""``[x, y]``: the loss of any entry, when the first may have any law.

        All that is known of the step back to entry 0 is that it costs at most its dearest move, so
        :math:`B_1 \le \max c`. The law of entry k ≥ 1 is a mixture of rows, and the more steps it
        has taken the closer the bounds on it; :math:`B_{k+1}` follows from :math:`B_k` by the
        robust step, or by the dearest move if that is less. After some steps a fixed point above
        the last one covers all later entries.
        """
        low, high = box_rows(self._chain.lower, self._chain.upper)
        size = len(low)
        unit, slack = off_diagonal(size), 2 * row_slack(size)
        ahead = fixed_point(
            *(robust_rows(low, high), charged),
            slack=slack,
            tolerance=self._tolerance,
            with_lower=False,
        ).upper
        value = off_diagonal(size, float(charged.max()))
        behind = value
        length = self._chain.length
        steps = STAGES if length is None else min(STAGES, max(length - 2, 0))
        couplings = None
        rows = robust_rows(low, high)
        for rounds in range(steps):
            laws = law_bounds(low, high, rounds=rounds)
            rows = robust_rows(*backward_boxes(low, high, *laws))
            cost = closed(charged + value)
            if charged.any() and cost.max() < LARGE:
                sides = rows(cost)
                _, couplings = improve(*sides, cost, guess=value, known=couplings)
                value = np.minimum(bound(*sides, cost, couplings) + slack * unit, cost.max() * unit)
            else:
                value = off_diagonal(size, float(cost.max()))
            behind = np.maximum(behind, value)
        if length is None or length - 2 > steps:
            later = fixed_point(
                *(rows, charged),
                slack=slack,
                tolerance=self._tolerance,
                above=value,
                with_lower=False,
            ).upper
            behind = np.maximum(behind, later)
        total = up(charged + up(ahead + behind))
        np.fill_diagonal(total, 0.0)
        return total

    def profile(self, epsilon: Floats) -> Bound:
        """At most the loss when every entry is charged the largest ε of the profile."""
        return self.uniform(float(np.max(epsilon, initial=0.0)))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """The witness of one chain within the bounds: the middle one, stationary."""
        inside = self._inside
        none = Witness(0.0, None)
        return none if inside is None else inside.witness(epsilon, Bound(bound.value))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        inside = self._inside
        none = Witness(0.0, None)
        return none if inside is None else inside.valued_witness(costs, Bound(bound.value))

    @property
    def _inside(self) -> TransportBound | None:
        """One chain within the bounds; None if it has no single stationary law."""
        chain = self._chain
        below, width = chain.lower.sum(axis=1), (chain.upper - chain.lower).sum(axis=1)
        share = np.where(width > 0, (1 - below) / np.where(width > 0, width, 1.0), 0.0)
        middle = chain.lower + np.clip(share, 0.0, 1.0)[:, None] * (chain.upper - chain.lower)
        middle = np.where((chain.lower == 0) & (middle < LEAST), 0.0, middle)
        kind = BinaryTransport if len(chain.states) == 2 else ChainTransport
        try:
            inside = MarkovChain(middle, chain.states, length=chain.length)
            return kind(inside, self._secrets)
        except InvalidPrior:
            return None
