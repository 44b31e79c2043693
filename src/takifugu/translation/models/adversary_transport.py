r"""The transport bound against adversaries who know more than the chain.

* ``start="unknown"``: the guarantee holds for every law of the first entry
  (`takifugu.translation.certify.hulls`).
* ``known="any"``: it holds against somebody who knows any other entries exactly
  (`takifugu.translation.certify.known`).

Given X_i, what lies before and what lies after are independent, whatever is known of either, so the
pair (x, y) loses at most :math:`c_i + F_i + B_i` with the largest F and B that the adversary may
bring about. With both, the entries before i are bounded by the larger of "the start is unknown" and
"the nearest known entry": whoever knows an entry between needs no law of the first.

Groups of values. The loss of (A, B) is at most the largest loss of a pair in A × B that can happen,
for any law within A. With an unknown start the law of X_i lies in a hull of laws, so that one more
step over that hull is a bound too, and the lesser of both holds.

Star costs. Where the cost of every entry is the same star, one walk for each pair and side proves
what all adversaries learn (`takifugu.translation.certify.terminals`), and no recursion is needed. A
star above another cost gives a bound too, and the lesser of both holds. With many states the
recursion over hulls of laws takes too long, and the star is all there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Bound, Witness
from takifugu.translation.certify.flow import (
    Couplings,
    RepeatedStep,
    closed,
    off_diagonal,
    pair_losses,
)
from takifugu.translation.certify.hulls import HullStep, StartHull
from takifugu.translation.certify.known import KnownSide
from takifugu.translation.certify.laws import law_slack, recurrent_law, row_slack, transition_rows
from takifugu.translation.certify.stars import star_of
from takifugu.translation.certify.terminals import TerminalSide
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.adversary_witness import strongest_witness
from takifugu.translation.models.chain_entries import (
    ChainBound,
    refuse_other_length,
    refuse_unbounded,
    secret_entries,
)
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.search.adversary_walks import SettledSides, pair_table
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.fixed_point import fixed_point, fixed_rows, unbounded_losses
from takifugu.translation.search.groups import SecretSides
from takifugu.translation.search.hull_steps import solve_hull
from takifugu.translation.search.recursion import chain_losses, unbounded_start

WALKED = 2_000  # entries up to which a constant cost is translated entry by entry
LARGEST = 4_000_000  # numbers in the tables of all entries
SHORT = 3  # entries up to which both a star and a recursion are asked
CHEAP, FAINT = 1e-3, 1e-9  # and so they are of smaller costs and probabilities
MANY_STATES = 24  # beyond which a hull of laws is left alone if a star gives a bound
TAIL = 16  # entries after the last charged one whose losses are computed one by one


@dataclass(frozen=True, eq=False)
class EntryLosses:
    """What each pair of values loses, entry by entry; equal tables are listed once.

    Attributes:
        tables: ``[x, y]`` each: the loss of a pair; −∞ if it cannot happen.
        hulls: The laws that an entry with that table may have; None if the start is known.
        at: ``[entry]``: which table holds.
        behind: ``[x, y]``: what the entries before the last one reveal of it.
    """

    tables: tuple[Floats, ...]
    hulls: tuple[StartHull | None, ...]
    at: Sequence[int]
    behind: Floats


class AdversaryTransport(ChainBound):
    """The pairwise recursion for a chain with an unknown start, or of which entries are known."""

    def __init__(self, chain: MarkovChain, secrets: Secrets, *, tolerance: float = 1e-3) -> None:
        self._chain, self._tolerance = chain, tolerance
        self.states, self.columns, self.length = chain.states, chain.columns, chain.length
        self._size = len(chain.states)
        self._sides = secrets.sides(chain.states)
        self._secrets = secrets
        self._secret_entries = secret_entries(secrets, chain.length)
        self._secret = SecretSides(self._sides, self._size)
        _ = self._secret.mask, self._kernels  # an error now rather than later
        if chain.stationary_start:
            recurrent_law(self._kernels[0])
        elif not chain.unknown_start and chain.length is None:
            refuse_unbounded(", or start = 'unknown'")

    @cached_property
    def _kernels(self) -> tuple[Floats, ...]:
        """The different kernels: one, or one for each step, of which equal ones are one object."""
        if self._chain.homogeneous:
            return (transition_rows(self._chain.transition),)
        known: dict[bytes, Floats] = {}
        rows = (transition_rows(matrix) for matrix in self._chain.transition)
        return tuple(known.setdefault(matrix.tobytes(), matrix) for matrix in rows)

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``.

        The search begins at that of the stationary chain, which is quick and not far.
        """
        plain = self._plain
        first = None if plain is None else plain.largest(target) or None
        return largest_within(lambda e: self.uniform(e).value, target, first=first)

    @cached_property
    def _plain(self) -> ChainTransport | None:
        """The same chain against somebody who knows no more than that it is stationary."""
        if not self._chain.homogeneous:
            return None
        try:
            chain = replace(self._chain, start="stationary", known="none")
            return ChainTransport(chain, self._secrets, tolerance=self._tolerance)
        except (InvalidPrior, UnsoundRequest):
            return None

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response, against the start or the known entries that make it leak most."""
        cost = off_diagonal(self._size, epsilon) if isinstance(epsilon, float) else None
        start = self._worst_start(cost, bound)
        return strongest_witness(self._chain, self._secrets, epsilon, bound, start=start)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """A mechanism with these costs, against the start or the known entries that help most."""
        cost = costs.matrix(self._chain.states, self._chain.columns) if costs.uniform else None
        start = self._worst_start(cost, bound)
        return strongest_witness(self._chain, self._secrets, costs, bound, start=start)

    def _worst_start(self, cost: Floats | None, bound: Bound) -> tuple[int, Floats] | None:
        """An entry, and a law of the first one that is about the worst there, if one is known."""
        length = self._chain.length
        if cost is None or bound.by_values is None or not np.isfinite(bound.value):
            return None
        x, y = np.unravel_index(int(np.argmax(bound.by_values)), bound.by_values.shape)
        sides = self._star_sides(cost, length, np.array([[x, y]]))
        if sides is None or not star_of(cost).tight:
            return None
        entry = None if bound.binding is None else bound.binding.entry
        return sides.worst_start(length, entry if isinstance(entry, int) else None)

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        length = self._chain.length
        if length is None or (length > WALKED and self._chain.homogeneous and self._settles):
            return self._at_any_entry(frozen(cost))
        at = np.zeros(length, dtype=np.int64)
        return self.one_by_one(CostLevels((frozen(cost),), at).checked())

    @property
    def _settles(self) -> bool:
        """Whether an entry far from the beginning is like one of an unbounded chain."""
        return isinstance(self._chain.start, str)

    def _at_any_entry(self, cost: Floats) -> Bound:
        """The loss of any entry of a chain that may be unbounded."""
        sides = self._star_sides(cost, None)
        table = None if self._enough(sides, cost) else self._recursion_at_any_entry(cost)
        if sides is not None:
            earlier = None if table is None else table[None]
            table = pair_table(sides, None, None, earlier)[0]
            if earlier is not None:
                table = np.minimum(table, earlier[0])
            elif not np.isfinite(table[self._secret.mask]).all():
                table = np.minimum(table, self._recursion_at_any_entry(cost))
        assert table is not None  # noqa: S101 - one of both ways was taken
        value, pair, by_values = self._of_pairs(table, None)
        return Bound(value, self._binding(pair, None), by_values=by_values)

    def _recursion_at_any_entry(self, cost: Floats) -> Floats:
        """``[x, y]``: the loss of any entry, by the steps of one entry after another."""
        (kernel,) = self._kernels
        if self._chain.unknown_start:
            ahead = fixed_point(
                *(fixed_rows(kernel), cost),
                slack=row_slack(self._size),
                tolerance=self._tolerance,
            ).upper
            behind = unbounded_start(kernel, cost, tolerance=self._tolerance)
        else:
            both = unbounded_losses(kernel, cost, tolerance=self._tolerance)
            ahead, behind = both.forward.upper, both.backward.upper
        if self._chain.known == "any":
            turned = np.ascontiguousarray(kernel.T)
            after = KnownSide((kernel,), (cost,), True, solve_step)
            before = KnownSide((turned,), (cost,), False, solve_step)
            ahead = np.maximum(ahead, after.unbounded(self._settle))
            behind = np.maximum(behind, before.unbounded(self._settle))
        return pair_losses(cost, ahead, behind)

    def _settle(self, step: RepeatedStep, least: Floats) -> tuple[Floats, Couplings | None]:
        """A table above ``least`` that no further step raises, and its flows."""
        settled = fixed_point(
            *(step.rows, step.charged),
            slack=step.slack,
            tolerance=self._tolerance,
            above=least,
        )
        return settled.upper, settled.couplings

    def one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""
        chain, beyond = self._chain, 0
        refuse_other_length(len(charged), chain.length)
        if chain.length is None:
            beyond = TAIL
            charged = charged.then_nothing(TAIL)
        losses = self._losses_of_entries(charged)
        found = [
            self._of_pairs(table, hull)
            for table, hull in zip(losses.tables, losses.hulls, strict=True)
        ]
        by_entry = np.array([value for value, _, _ in found])[losses.at]
        entries = np.arange(len(by_entry))
        if self._secret_entries is not None:
            entries = self._secret_entries[self._secret_entries < len(by_entry)]
            by_entry = np.where(np.isin(np.arange(len(by_entry)), entries), by_entry, 0.0)
        binding, by_values = None, found[0][2]
        if len(entries):
            entry = int(entries[np.argmax(by_entry[entries])])
            _, pair, by_values = found[losses.at[entry]]
            binding = self._binding(pair, entry)
        if beyond:
            # there nothing is charged, and a step costs at most its dearest move
            later = max(float(by_entry[-beyond:].max()), float(losses.behind.max()))
            by_entry = np.append(by_entry[:-beyond], later)
        return Bound(float(by_entry.max()), binding, frozen(by_entry), by_values)

    def _entry_losses(self, charged: CostLevels) -> EntryLosses:
        chain, length = self._chain, len(charged)
        kernels = self._kernels * (length - 1) if chain.homogeneous else self._kernels
        costs = [charged.matrices[level] for level in charged.at.tolist()]
        start = None if chain.stationary_start else chain.start
        plain = chain_losses(chain.transition, charged, start=start)
        ahead = [plain.forward[k] for k in plain.forward_at.tolist()]
        behind = [plain.backward[k] for k in plain.backward_at.tolist()]
        possible = [plain.possible[k] for k in plain.possible_at.tolist()]
        hulls: list[StartHull | None] = [None] * length
        if plain.hulls:
            hulls = [plain.hulls[k] for k in plain.law_at.tolist()]
        keys: dict[tuple[object, ...], int] = {}
        tables: list[Floats] = []
        kept: list[StartHull | None] = []
        at = []
        after = before = None
        if chain.known == "any" and length > 1:
            after = KnownSide.after(kernels, costs, solve_step).tables()
            before = KnownSide.before(kernels, costs, solve_step).tables()
        for i in range(length):
            hull = hulls[i] if self._by_hull else None
            key: tuple[object, ...] = (
                id(costs[i]), id(ahead[i]), id(behind[i]), possible[i].tobytes(), id(hull),
                None if after is None else int(after.at[i]),
                None if before is None else int(before.at[i]),
            )  # fmt: skip
            if key not in keys:
                one, other = ahead[i], behind[i]
                if after is not None and before is not None:
                    one = np.maximum(one, after.table(i))
                    other = np.maximum(other, before.table(i))
                keys[key] = len(tables)
                tables.append(frozen(pair_losses(costs[i], one, other, possible[i])))
                kept.append(hull)
            at.append(keys[key])
        last = behind[-1] if before is None else np.maximum(behind[-1], before.table(length - 1))
        return EntryLosses(tuple(tables), tuple(kept), at, last)

    def _star_sides(
        self, cost: Floats, length: int | None, pairs: Integers | None = None
    ) -> SettledSides | None:
        """Both sides of an entry of a chain with so many entries; None if out of range."""
        chain = self._chain
        if not chain.homogeneous or not cost.any() or length == 1:
            return None
        (kernel,), star = self._kernels, star_of(cost)
        others, known = None if length is None else length - 1, chain.known == "any"
        law: Floats | None = None
        if not chain.unknown_start:
            law = recurrent_law(kernel) if chain.stationary_start else chain.start_law
        after = TerminalSide(
            kernel, star, others, np.ones(self._size), known=known, stochastic=True
        )
        before = TerminalSide(
            *(np.ascontiguousarray(kernel.T), star, others, law),
            known=known,
            steady=chain.stationary_start,
            law_slack=law_slack(self._size),
        )
        asked = np.argwhere(self._secret.mask) if pairs is None else pairs
        sides = SettledSides(after, before, cost, asked)
        return sides if sides.usable else None

    def _enough(self, sides: SettledSides | None, cost: Floats) -> bool:
        """Whether the walks of a star leave nothing to a recursion, or nothing else is in reach.

        A recursion is exact next to an unknown start, takes little time for a few entries, and
        needs no grid, which tiny costs and probabilities would have to be very fine.
        """
        if sides is None or self._by_hull:
            return False
        star, length = star_of(cost), self._chain.length
        if self._size > MANY_STATES and self._chain.unknown_start:
            return True
        (kernel,) = self._kernels
        plain = float(kernel[kernel > 0].min()) >= FAINT and float(cost.max()) >= CHEAP
        return star.attained and plain and (length is None or length > SHORT)

    def _losses_of_entries(self, charged: CostLevels) -> EntryLosses:
        """What each pair loses, entry by entry: by a star if there is one cost, or by recursion."""
        length = len(charged)
        sides = None
        if len(charged.matrices) == 1 and length * self._size**2 <= LARGEST:
            sides = self._star_sides(charged.matrices[0], length)
        secret = np.ones(length, dtype=np.bool_)
        if self._secret_entries is not None:
            secret = np.isin(np.arange(length), self._secret_entries)
        if sides is None:
            return self._entry_losses(charged)
        entries = np.arange(length).tolist()
        if self._enough(sides, charged.matrices[0]):
            table = pair_table(sides, length, secret)
            if np.isfinite(table[:, self._secret.mask]).all():
                able = self._possible_values(length)
                nothing = np.zeros_like(charged.cost(0))
                tables = [
                    frozen(pair_losses(part, nothing, nothing, can))
                    for part, can in zip(table, able, strict=True)
                ]
                return EntryLosses(tuple(tables), (None,) * length, entries, tables[-1])
        losses = self._entry_losses(charged)
        earlier = np.stack([losses.tables[k] for k in losses.at])
        table = np.minimum(pair_table(sides, length, secret, earlier), earlier)
        hulls = tuple(losses.hulls[k] for k in losses.at)
        return EntryLosses(tuple(table), hulls, entries, losses.behind)

    def _possible_values(self, length: int) -> list[Booleans]:
        """``[entry]``: which values can happen there."""
        chain, (kernel,) = self._chain, self._kernels
        able: Booleans = np.ones(self._size, dtype=np.bool_)
        if not isinstance(chain.start, str):
            able = np.asarray(np.asarray(chain.start_law) > 0)
        possible = [able]
        for _ in range(length - 1):
            able = np.asarray((kernel[able] > 0).any(axis=0))
            possible.append(able)
        return possible

    @property
    def _by_hull(self) -> bool:
        """Whether groups of values are bounded by the laws that an entry may have."""
        return self._secret.grouped and self._chain.unknown_start and self._chain.known == "none"

    def _of_pairs(self, table: Floats, hull: StartHull | None) -> tuple[float, int, Floats]:
        """The largest loss of a secret pair, which pair that is, and ``[x, y]`` of all."""
        largest = self._largest(table)
        if hull is not None:
            sides = list(dict.fromkeys(side for pair in self._sides for side in pair))
            able = [bool(hull.possible[list(side)].any()) for side in sides]
            sides = [side for side, can in zip(sides, able, strict=True) if can]
            if len(sides) > 1:
                number = {side: k for k, side in enumerate(sides)}
                members = np.array([np.isin(np.arange(self._size), side) for side in sides])
                inside = np.where(np.isfinite(table), table, self._filled(table))
                step = HullStep(hull, members.astype(np.float64), closed(inside))
                guess = off_diagonal(len(sides), step.dearest / 2)
                proven = step.upper(solve_hull(step, guess=guess))
                for k, (a, b) in enumerate(self._sides):
                    if a in number and b in number:
                        largest[k] = min(largest[k], proven[number[a], number[b]])
        pair = int(np.argmax(largest))
        by_values = np.full((self._size, self._size), -np.inf)
        if self._secret.grouped:
            for (a, b), loss in zip(self._sides, largest, strict=True):
                here = np.ix_(a, b)
                by_values[here] = np.maximum(by_values[here], loss)
        else:
            by_values[self._values] = largest
        return max(float(largest[pair]), 0.0), pair, frozen(by_values)

    @cached_property
    def _values(self) -> tuple[Integers, Integers]:
        """The two values of each secret pair, if these are single ones."""
        one, other = np.array([(a[0], b[0]) for a, b in self._sides], dtype=np.int64).T
        return one, other

    def _largest(self, table: Floats) -> Floats:
        """``[secret pair]``: the largest loss of two of its values."""
        if not self._secret.grouped:
            return np.asarray(table[self._values])
        return np.array([table[np.ix_(a, b)].max() for a, b in self._sides])

    @staticmethod
    def _filled(table: Floats) -> float:
        """More than any loss of the table: no closure leads through what cannot happen."""
        return 2 * float(np.where(np.isfinite(table), table, 0.0).max()) + 1.0
