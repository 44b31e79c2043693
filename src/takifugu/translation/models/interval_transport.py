"""The transport bound of chains whose rows are known within intervals."""

from collections.abc import Callable, Sequence
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
from takifugu.translation.certify.hulls import from_any_law
from takifugu.translation.certify.laws import row_slack
from takifugu.translation.certify.stars import even_star, star_of
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.chain_entries import ChainBound, secret_entries
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.models.two_state_transport import BinaryTransport
from takifugu.translation.search.couplings import improve
from takifugu.translation.search.fixed_point import UnboundedLosses, fixed_point
from takifugu.translation.search.groups import pair_mask

STAGES = 24  # entries near a free start whose laws are bounded one by one
FEW_STATES = 12  # beyond which only 8 of them are walked
MAX_WALKED_ENTRIES = 8  # of a short chain
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
        """The loss if every entry has a cost of its own; a long chain has the largest on all."""
        largest = frozen(np.max(charged.matrices, axis=0))
        if not self._short:
            return self.everywhere(largest)
        return self._entry_by_entry([charged.cost(i) for i in range(len(charged))], largest)

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        chain = self._chain
        if self._short and chain.length is not None:
            return self._entry_by_entry([cost] * chain.length, cost)
        if chain.start == "stationary":
            known = interval_losses(chain.lower, chain.upper, cost, tolerance=self._tolerance)
            sides = known.forward.upper, known.backward.upper
        else:
            sides = self._from_any_start(cost)
        if cost.any() and len(cost) <= MANY_STATES:
            walks = self._walks(cost, *[None if chain.length is None else chain.length - 1] * 2)
            sides = (
                np.minimum(sides[0], walks[0].upper(sides[0])),
                np.minimum(sides[1], walks[1].upper(sides[1])),
            )
        upper = pair_losses(cost, *sides)
        losses = np.array([upper[np.ix_(a, b)].max() for a, b in self._sides])
        if chain.start == "stationary":
            losses = np.minimum(losses, self._group_steps(upper, self._laws[0]))
        worst = int(np.argmax(losses))
        return Bound(float(losses[worst]), self._binding(worst, None))

    @property
    def _short(self) -> bool:
        """Whether the sides of every entry are bounded by themselves."""
        return self.length is not None and self.length <= STAGES and len(self.states) <= FEW_STATES

    def _entry_by_entry(self, costs: Sequence[Floats], largest: Floats) -> Bound:
        """The loss of a short chain; ``largest`` is at least each of the costs.

        Of each side, the steps from its end to the entry. Then both sides of the entries that lose
        most are walked, under one star for all costs.
        """
        ahead, behind = [np.zeros_like(largest)], [np.zeros_like(largest)]
        for cost in costs[:0:-1]:
            ahead.append(_robust_step(self._boxes, closed(cost + ahead[-1])))
        for i, cost in enumerate(costs[:-1]):
            free = self._chain.start == "any"
            stage = self._stages[i - 1 if free else 0] if i or not free else None
            behind.append(self._before(closed(cost + behind[-1]), stage))

        def losses(i: int, after: Floats, before: Floats) -> Floats:
            """``[pair]``: the losses at entry i."""
            laws = self._laws_at(i)
            upper = pair_losses(costs[i], after, before)
            found = np.array([upper[np.ix_(a, b)].max() for a, b in self._sides])
            return found if laws is None else np.minimum(found, self._group_steps(upper, laws))

        if len(costs) > MAX_WALKED_ENTRIES and largest.any():  # walks of all entries bound each
            whole = self._walks(largest, len(costs) - 1, len(costs) - 1)
            limits = whole[0].upper(np.max(ahead, axis=0)), whole[1].upper(np.max(behind, axis=0))
            ahead, behind = (
                [np.minimum(table, most) for table in side]
                for side, most in zip((ahead, behind), limits, strict=True)
            )
        sides = list(zip(ahead[::-1], behind, strict=True))
        entries = secret_entries(self._secrets, len(costs))
        by_pair = np.zeros((len(costs), len(self._sides)))
        for i in range(len(costs)) if entries is None else entries.tolist():
            by_pair[i] = losses(i, *sides[i])
        walked = set[int]()
        while len(walked) < MAX_WALKED_ENTRIES and largest.any():
            i = int(np.argmax(by_pair.max(axis=1)))
            if i in walked or by_pair[i].max() <= 0:
                break
            walked.add(i)
            after, before = (
                np.minimum(side, walk.upper(side))
                for walk, side in zip(
                    self._walks(largest, len(costs) - 1 - i, i), sides[i], strict=True
                )
            )
            by_pair[i] = np.minimum(by_pair[i], losses(i, after, before))
        by_pair = np.maximum(by_pair, 0.0)
        entry, worst = np.unravel_index(int(np.argmax(by_pair)), by_pair.shape)
        by_entry = frozen(by_pair.max(axis=1))
        binding = self._binding(int(worst), int(entry))
        return Bound(float(by_entry[entry]), binding, by_entry=by_entry)

    def _walks(
        self, cost: Floats, after: int | None, before: int | None
    ) -> tuple[BoxSide, BoxSide]:
        """The sides ahead and behind, of so many entries, for a star that is at least the cost."""
        star = even_star(cost) if len(cost) == 2 else star_of(cost)
        low, high = self._boxes
        begins = self._chain.start == "any"
        return (
            BoxSide(low[None], high[None], star, after),
            BoxSide(*self._backward, star, before, begins=begins),
        )

    def _before(self, cost: Floats, stage: tuple[Floats, Floats] | None) -> Floats:
        """``[x, y]``: what the entry before reveals, with all before it, at closed costs.

        ``stage`` are boxes of its law given this entry; None if it may have any law.
        """
        value = off_diagonal(len(cost), float(cost.max(initial=0.0)))
        if len(cost) <= FEW_STATES:
            value = np.minimum(value, from_any_law(*self._boxes, cost))
        return value if stage is None else np.minimum(value, _robust_step(stage, cost))

    @cached_property
    def _boxes(self) -> tuple[Floats, Floats]:
        return box_rows(self._chain.lower, self._chain.upper)

    @cached_property
    def _laws(self) -> list[tuple[Floats, Floats]]:
        """Bounds on the law of any entry; of a free start, of the second, the third and so on."""
        if self._chain.start == "stationary":
            return [law_bounds(*self._boxes)]
        count = STAGES if self.length is None else min(STAGES, max(self.length - 1, 0))
        return [law_bounds(*self._boxes, rounds=rounds) for rounds in range(count)]

    def _laws_at(self, entry: int) -> tuple[Floats, Floats] | None:
        """Bounds on the law of an entry of a short chain; None if it may have any law."""
        if self._chain.start == "stationary":
            return self._laws[0]
        return self._laws[entry - 1] if entry else None

    @cached_property
    def _stages(self) -> list[tuple[Floats, Floats]]:
        """Boxes of the law of the entry before, for the laws of `_laws`.

        Where nothing bounds a value's own, a long chain has no bound worth its time.
        """
        strict = not self._short
        return [backward_boxes(*self._boxes, *laws, all_possible=strict) for laws in self._laws]

    @cached_property
    def _backward(self) -> tuple[Floats, Floats]:
        """``[kind, x, u]``: boxes of the law of the entry before, from a late one to the first."""
        low, high = self._boxes
        kinds = self._stages
        if self._chain.start == "any":
            kinds = kinds[: STAGES if len(low) <= FEW_STATES else 8][::-1]
            free = (high.T > 0) | ~high.T.any(axis=1, keepdims=True)
            kinds.append((np.zeros_like(low), free.astype(np.float64)))
        return np.array([kind[0] for kind in kinds]), np.array([kind[1] for kind in kinds])

    def _group_steps(self, table: Floats, laws: tuple[Floats, Floats]) -> Floats:
        """``[pair]``: the loss of each secret pair of groups, by one more robust step.

        Given a side, the entry has a law in a box (`group_boxes`), if it is within ``laws``;
        ``table`` bounds what each pair of values loses. Infinite for pairs of single values.
        """
        grouped = [max(map(len, pair)) > 1 for pair in self._sides]
        cost = closed(table)
        if not any(grouped) or not 0 < cost.max() < LARGE:
            return np.full(len(grouped), np.inf)
        sides = list(dict.fromkeys(side for pair in self._sides for side in pair))
        number = {side: k for k, side in enumerate(sides)}
        most = np.maximum(laws[1], LEAST)  # so that a group that cannot happen has some law
        rows = robust_rows(*group_boxes(laws[0], most, sides))(cost)
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

        Entry 0 may have any law, and so may every other as far as is known: one bound of a step
        back. The law of entry k ≥ 1 is a mixture of rows, and the more steps it has taken the
        closer the bounds on it; so :math:`B_{k+1}` follows from :math:`B_k` by that bound, or the
        robust step, or by the dearest move if that is less. After some steps a fixed point above
        the last one covers all later entries.
        """
        slack, rows = 2 * row_slack(len(charged)), robust_rows(*self._boxes)
        ahead = fixed_point(rows, charged, slack=slack, tolerance=self._tolerance).upper
        behind = value = self._before(charged, None)
        stages = self._stages[: None if self.length is None else max(self.length - 2, 0)]
        for stage in stages:
            value = self._before(closed(charged + value), stage)
            behind = np.maximum(behind, value)
        if self.length is None or self.length - 2 > len(stages):
            rows = robust_rows(*stages[-1])
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


def _robust_step(boxes: tuple[Floats, Floats], cost: Floats) -> Floats:
    """``[x, y]``: the robust step for rows in boxes, or the dearest move if that is less."""
    unit, most = off_diagonal(len(cost)), off_diagonal(len(cost), float(cost.max(initial=0.0)))
    if not 0 < cost.max(initial=0.0) < LARGE:
        return most
    rows = robust_rows(*boxes)(cost)
    _, couplings = improve(*rows, cost, guess=np.minimum(cost, most / 2))
    least: Floats = np.minimum(
        bound(*rows, cost, couplings) + 2 * row_slack(len(cost)) * unit, most
    )
    return least


def _corners(low: Floats, high: Floats, wish: Floats) -> Floats:
    """The rows within boxes that are filled up in the order of ``wish``, the largest first."""
    rows = low.copy()
    for row, most, order in zip(rows, high, np.argsort(-wish, axis=1, kind="stable"), strict=True):
        for u in order:
            row[u] += min(most[u] - row[u], max(1 - row.sum(), 0.0))
    corners: Floats = rows / rows.sum(axis=1, keepdims=True)
    return corners
