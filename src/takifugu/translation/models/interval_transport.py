"""The transport bound of chains whose rows are known within intervals."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import LEAST, Floats, frozen
from takifugu.errors import InvalidPrior, Malformed
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Bound, TransportBound, Witness
from takifugu.translation.certify.boxes import (
    BoxSide,
    backward_boxes,
    box_rows,
    group_boxes,
    law_bounds,
    robust_rows,
)
from takifugu.translation.certify.flow import (
    LARGE,
    bound,
    closed,
    entry_cost,
    off_diagonal,
    pair_losses,
)
from takifugu.translation.certify.laws import row_slack
from takifugu.translation.certify.stars import even_star, star_of
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.chain_entries import ChainBound
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.models.two_state_transport import BinaryTransport
from takifugu.translation.search.couplings import improve
from takifugu.translation.search.fixed_point import UnboundedLosses, fixed_point
from takifugu.translation.search.groups import pair_mask

STAGES = 24  # entries near a free start whose laws are bounded one by one
FEW_STATES = 12  # beyond which only 8 of them are walked
MAX_MOVES = 24  # of rows to corners of their boxes, for a witness
MANY_STATES = 40  # beyond which a walk for each pair takes too long


def interval_losses(
    lower: ArrayLike, upper: ArrayLike, cost: float | Floats, *, tolerance: float = 1e-3
) -> UnboundedLosses:
    """Bound the loss in an unbounded chain whose rows may change within boxes at every entry.

    ``cost`` [u, v] is what a change of each entry costs, or an ε for any change. Only an upper
    bound: ``lower`` of the result is the cost alone.
    """
    low, high = box_rows(lower, upper)
    charged = entry_cost(cost, len(low))
    if not ((charged >= 0) & (charged < np.inf)).all():
        raise Malformed(
            "epsilon", given=f"is {charged.max():g}", needed="be a finite loss, 0 or more"
        )
    sides = [
        fixed_point(
            *(robust_rows(*boxes), charged),
            slack=2 * row_slack(len(low)),
            tolerance=tolerance,
        )
        for boxes in ((low, high), backward_boxes(low, high, *law_bounds(low, high)))
    ]
    return UnboundedLosses(charged, *sides)


class IntervalTransport(ChainBound):
    """The robust step for chains whose rows are only known to lie in boxes: an upper bound."""

    def __init__(
        self, chain: IntervalMarkovChain, secrets: Secrets, *, tolerance: float = 1e-3
    ) -> None:
        self._chain, self._secrets, self._tolerance = chain, secrets, tolerance
        self.states, self.length = chain.states, chain.length
        self._sides = secrets.sides(chain.states)
        pair_mask(self._sides, len(chain.states))  # an error now rather than later
        self.uniform(0.0)  # an error now rather than later

    def one_by_one(self, charged: CostLevels) -> Bound:
        """At most the loss when every entry has the largest of all costs."""
        return self.everywhere(frozen(np.max(charged.matrices, axis=0)))

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        chain = self._chain
        if chain.start == "stationary":
            known = interval_losses(chain.lower, chain.upper, cost, tolerance=self._tolerance)
            sides = known.forward.upper, known.backward.upper
        else:
            sides = self._from_any_start(cost)
        if cost.any() and len(cost) <= MANY_STATES:
            walks = self._walks(cost)
            sides = (
                np.minimum(sides[0], walks[0].upper(sides[0])),
                np.minimum(sides[1], walks[1].upper(sides[1])),
            )
        if chain.length == 1:
            sides = np.zeros_like(cost), np.zeros_like(cost)
        upper = pair_losses(cost, *sides)
        losses = np.array([upper[np.ix_(a, b)].max() for a, b in self._sides])
        if chain.start == "stationary":
            losses = np.minimum(losses, self._group_steps(upper))
        worst = int(np.argmax(losses))
        return Bound(float(losses[worst]), self._binding(worst, None))

    def _walks(self, cost: Floats) -> tuple[BoxSide, BoxSide]:
        """The sides ahead and behind, for a star that is at least the cost."""
        star = even_star(cost) if len(cost) == 2 else star_of(cost)
        others = None if self.length is None else self.length - 1
        low, high = self._boxes
        begins = self._chain.start == "any"
        return (
            BoxSide(low[None], high[None], star, others),
            BoxSide(*self._backward, star, others, begins=begins),
        )

    @cached_property
    def _boxes(self) -> tuple[Floats, Floats]:
        return box_rows(self._chain.lower, self._chain.upper)

    @cached_property
    def _stages(self) -> list[tuple[Floats, Floats]]:
        """Boxes of the law of the entry before the second, the third and so on, of a free start."""
        low, high = self._boxes
        count = STAGES if self.length is None else min(STAGES, max(self.length - 2, 0))
        return [
            backward_boxes(low, high, *law_bounds(low, high, rounds=rounds))
            for rounds in range(count)
        ]

    @cached_property
    def _backward(self) -> tuple[Floats, Floats]:
        """``[kind, x, u]``: boxes of the law of the entry before, from a late one to the first."""
        low, high = self._boxes
        if self._chain.start == "stationary":
            kinds = [backward_boxes(low, high, *law_bounds(low, high))]
        else:
            kinds = self._stages[: STAGES if len(low) <= FEW_STATES else 8][::-1]
            kinds.append((np.zeros_like(low), (high.T > 0).astype(np.float64)))
        return np.array([kind[0] for kind in kinds]), np.array([kind[1] for kind in kinds])

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
        laws = law_bounds(*self._boxes)
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

    def _from_any_start(self, charged: Floats) -> tuple[Floats, Floats]:
        r"""``[x, y]``: what lies ahead and behind reveals, when the first entry may have any law.

        All that is known of the step back to entry 0 is that it costs at most its dearest move, so
        :math:`B_1 \le \max c`. The law of entry k ≥ 1 is a mixture of rows, and the more steps it
        has taken the closer the bounds on it; :math:`B_{k+1}` follows from :math:`B_k` by the
        robust step, or by the dearest move if that is less. After some steps a fixed point above
        the last one covers all later entries.
        """
        size = len(charged)
        unit, slack = off_diagonal(size), 2 * row_slack(size)
        rows, couplings = robust_rows(*self._boxes), None
        ahead = fixed_point(rows, charged, slack=slack, tolerance=self._tolerance).upper
        behind = value = off_diagonal(size, float(charged.max()))
        for stage in self._stages:
            rows, cost = robust_rows(*stage), closed(charged + value)
            if charged.any() and cost.max() < LARGE:
                sides = rows(cost)
                _, couplings = improve(*sides, cost, guess=value, known=couplings)
                value = np.minimum(bound(*sides, cost, couplings) + slack * unit, cost.max() * unit)
            else:
                value = off_diagonal(size, float(cost.max()))
            behind = np.maximum(behind, value)
        if self.length is None or self.length - 2 > len(self._stages):
            later = fixed_point(
                rows, charged, slack=slack, tolerance=self._tolerance, above=value
            ).upper
            behind = np.maximum(behind, later)
        return ahead, behind

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """The witness of one chain within the bounds, stationary: about the worst of them."""
        member = self._worst_member(
            lambda chain: (
                (
                    chain.uniform(epsilon) if isinstance(epsilon, float) else chain.profile(epsilon)
                ).value
            )
        )
        return Witness(0.0, None) if member is None else member.witness(epsilon, Bound(bound.value))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        member = self._worst_member(lambda chain: chain.valued(costs).value)
        if member is None:
            return Witness(0.0, None)
        return member.valued_witness(costs, Bound(bound.value))

    def _worst_member(self, loss: Callable[[TransportBound], float]) -> TransportBound | None:
        """A chain within the bounds that loses much; None if none has a single stationary law.

        The middle one, the one that stays most and the one that stays least are tried first. Then
        rows of the worst are moved to corners of their boxes, one by one, while that raises it.
        """
        low, high = self._chain.lower, self._chain.upper
        size = len(low)
        below, width = low.sum(axis=1), (high - low).sum(axis=1)
        share = np.where(width > 0, (1 - below) / np.where(width > 0, width, 1.0), 0.0)
        middle = low + np.clip(share, 0.0, 1.0)[:, None] * (high - low)
        stays = np.eye(size)
        firsts = [middle]
        if width.any() and size <= FEW_STATES:
            firsts += [_corners(low, high, middle + stays), _corners(low, high, middle - stays)]
        tried = [(self._member(rows), rows) for rows in firsts]
        ranked = [(loss(chain), chain, rows) for chain, rows in tried if chain is not None]
        if not ranked:
            return None
        largest, best, rows = max(ranked, key=lambda part: part[0])
        left = MAX_MOVES if len(firsts) > 1 else 0
        for u, v in np.ndindex(size, size):
            wish = rows.copy()
            wish[u, v] += 1.0
            moved = np.where(np.arange(size)[:, None] == u, _corners(low, high, wish), rows)
            if left == 0 or np.array_equal(moved, rows):
                continue
            left -= 1
            chain = self._member(moved)
            if chain is not None and (value := loss(chain)) > largest:
                largest, best, rows = value, chain, moved
        return best

    def _member(self, rows: Floats) -> TransportBound | None:
        """The stationary chain with these rows; None if it has no single stationary law."""
        chain = self._chain
        rows = np.where((chain.lower == 0) & (rows < LEAST), 0.0, rows)
        kind = BinaryTransport if len(chain.states) == 2 else ChainTransport
        try:
            member = MarkovChain(rows, chain.states, length=chain.length)
            return kind(member, self._secrets)
        except InvalidPrior:
            return None


def _corners(low: Floats, high: Floats, wish: Floats) -> Floats:
    """The rows within boxes that are filled up in the order of ``wish``, the largest first."""
    rows = low.copy()
    for row, most, order in zip(rows, high, np.argsort(-wish, axis=1, kind="stable"), strict=True):
        for u in order:
            row[u] += min(most[u] - row[u], max(1 - row.sum(), 0.0))
    corners: Floats = rows / rows.sum(axis=1, keepdims=True)
    return corners
