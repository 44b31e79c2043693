r"""Secrets about groups of values: one more coupling.

Let s say that :math:`X_i \in A` and s′ that :math:`X_i \in B`, and let :math:`c(x,y)` bound the
loss of the pair (X_i = x, X_i = y). Then φ(x) = E[g | X_i = x] obeys
:math:`φ(x) \le e^{c(x,y)} φ(y)`, and E[g|s] is the mean of φ under the law of X_i given A. So the
loss of (A, B) is at most the transport with gains e^c between the law of X_i given A and that given
B, at that entry. ∎ A coupling moves everything from A to B at worst, so this is never more than the
largest loss of the pairs (x, y) in A × B that can happen; mostly it is much less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu.errors import InvalidWorld
from takifugu.numeric import Booleans, Floats, frozen
from takifugu.translation.chain.chain_losses import HeldLaw
from takifugu.translation.chain.entry_laws import row_slack
from takifugu.translation.chain.transport_steps import LARGE, bound, closed, improve

Side = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PairLosses:
    """The losses of the secret pairs of one entry.

    Attributes:
        value: The largest, at least 0.
        pair: Which pair has it; −1 if none can happen.
        by_values: ``[x, y]``: the largest loss of a pair with x on its left and y on its right.
    """

    value: float
    pair: int
    by_values: Floats


@dataclass(frozen=True, eq=False)
class SecretSides:
    """The secret pairs of an entry: ordered pairs of disjoint sets of its values."""

    sides: Sequence[tuple[Side, Side]]
    states: int

    @cached_property
    def mask(self) -> Booleans:
        """``[x, y]``: whether some secret pair has x on its left and y on its right."""
        return pair_mask(self.sides, self.states)

    @cached_property
    def all_values(self) -> bool:
        """Whether every pair of different values is secret by itself."""
        return len(self._single) == self.states * (self.states - 1)

    @cached_property
    def _single(self) -> dict[tuple[int, int], int]:
        """The pairs of single values."""
        return {
            (a[0], b[0]): k
            for k, (a, b) in reversed(list(enumerate(self.sides)))
            if len(a) == len(b) == 1
        }

    def number(self, x: int, y: int) -> int:
        """Which secret pair is the one of the single values x and y."""
        return self._single[x, y]

    @cached_property
    def _groups(self) -> list[int]:
        return [k for k, (a, b) in enumerate(self.sides) if len(a) > 1 or len(b) > 1]

    @property
    def grouped(self) -> bool:
        """Whether some side is a group of values."""
        return bool(self._groups)

    @property
    def groups(self) -> Sequence[int]:
        """Which pairs have a group on a side."""
        return self._groups

    def losses(self, table: Floats, held: HeldLaw, within: Floats | None = None) -> PairLosses:
        """From ``table`` [x, y], what each pair of values loses; −∞ if it cannot happen.

        ``held`` is the law of the entry; ``within`` [group] is another bound on `groups`.
        """
        found = np.full((self.states, self.states), -np.inf)
        single = self._single
        if single:
            at = tuple(np.array(list(single), dtype=np.int64).T)
            found[at] = table[at]
        place = int(np.argmax(found))
        value, pair = float(found.flat[place]), -1
        if np.isfinite(value) or value > 0:
            pair = single[divmod(place, self.states)]
        by_group = self._by_group(table, held)
        if within is not None:
            by_group = np.minimum(by_group, within)
        for k, loss in zip(self._groups, by_group, strict=True):
            a, b = self.sides[k]
            here = np.ix_(a, b)
            found[here] = np.maximum(found[here], loss)
            if loss > value:
                value, pair = float(loss), k
        return PairLosses(max(value, 0.0), pair, frozen(found))

    def _by_group(self, table: Floats, held: HeldLaw) -> Floats:
        """``[pair]``: the loss of each pair with a group; −∞ if a side cannot happen."""
        if not self._groups:
            return np.zeros(0)
        law = held.law
        pairs = [self.sides[k] for k in self._groups]
        able = np.array([all(law.possible[list(side)].any() for side in pair) for pair in pairs])
        largest = np.array([table[np.ix_(a, b)].max() for a, b in pairs])
        inside = np.flatnonzero(law.possible)
        cost = closed(table[np.ix_(inside, inside)])
        if not able.any() or not 0 < cost.max() < LARGE:
            return np.where(able, largest, -np.inf)
        listed = list(dict.fromkeys(side for k in np.flatnonzero(able) for side in pairs[k]))
        number = {side: k for k, side in enumerate(listed)}
        members = [np.isin(np.arange(self.states), side) for side in listed]
        rows = np.array([law.given(member)[inside] for member in members])
        guess = np.full((len(rows), len(rows)), float(largest[able].min()) / 2)
        _, couplings = improve(rows, rows, cost, guess=guess)
        slack = held.slack + row_slack(self.states)
        proven = bound(rows, rows, cost, couplings) + slack
        step = [
            proven[number[a], number[b]] if can else -np.inf
            for (a, b), can in zip(pairs, able, strict=True)
        ]
        least: Floats = np.minimum(step, largest)
        return least


def pair_mask(sides: Sequence[tuple[Side, Side]], states: int) -> Booleans:
    """``[x, y]``: whether some secret pair has x on its left and y on its right."""
    mask = np.zeros((states, states), dtype=np.bool_)
    for a, b in sides:
        mask[np.ix_(a, b)] = True
    if not mask.any():
        raise InvalidWorld("secrets", given="hold no pair", needed="name two states at least")
    return mask
