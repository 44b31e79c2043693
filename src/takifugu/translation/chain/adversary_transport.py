r"""The transport bound against adversaries who know more than the chain.

* ``start="unknown"``: the guarantee holds for every law of the first entry
  (`takifugu.translation.chain.unknown_start`).
* ``known="any"``: it holds against somebody who knows any other entries exactly
  (`takifugu.translation.chain.known_entries`).

Given X_i, what lies before and what lies after are independent, whatever is known of either, so the
pair (x, y) loses at most :math:`c_i + F_i + B_i` with the largest F and B that the adversary may
bring about. With both, the entries before i are bounded by the larger of "the start is unknown" and
"the nearest known entry": whoever knows an entry between needs no law of the first.

Groups of values. The loss of (A, B) is at most the largest loss of a pair in A × B that can happen,
for any law within A. With an unknown start the law of X_i lies in a hull of laws, so that one more
step over that hull is a bound too, and the lesser of both holds.

Many states. A step over a hull of laws takes long there, and the stationary chain is translated
quickly. Let C be the largest cost of an entry, d a number of entries, and m/π the ratio of a law
that X_d may have to the stationary one, within :math:`[l, h]` for all of them. An admissible g lies
between its minimum over the first d entries and :math:`e^{dC}` times that, and the minimum is
admissible. Given any event about later entries, its expectation under m is within a factor h/l of
that under π. So a pair of values at entry d or later loses at most

.. math:: E_\pi + d\,C + 2 \log(h/l),

and at an earlier entry i at most :math:`i\,C + c + F \le d\,C + E_\pi`. ∎
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite

import numpy as np

from takifugu._rounding import gamma, up
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.numeric import Booleans, Floats, frozen
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.chain.adversary_witness import strongest_witness
from takifugu.translation.chain.chain_entries import secret_entries
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.chain_transport import ChainTransport, joined
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import (
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.chain.fixed_point import fixed_point, fixed_rows
from takifugu.translation.chain.group_step import SecretSides
from takifugu.translation.chain.known_entries import KnownSide
from takifugu.translation.chain.solved_adversaries import (
    SolvedSides,
    solve_anywhere,
    solve_entries,
)
from takifugu.translation.chain.star_sides import StarWalk
from takifugu.translation.chain.stars import star_of
from takifugu.translation.chain.start_hull import StartHull, hull_step
from takifugu.translation.chain.transport_steps import off_diagonal
from takifugu.translation.chain.unbounded_losses import unbounded_losses
from takifugu.translation.chain.unknown_start import unbounded_start, unknown_start
from takifugu.translation.entry_costs import EntryCosts

WALKED = 2_000  # entries up to which a constant cost is translated entry by entry
LARGEST = 4_000_000  # numbers in the tables of all entries
MANY_STATES = 24  # beyond which an unknown start is bounded by how soon the chain forgets it
FAINTEST_RATIO = 1e-200
MAX_FORGETTING = 64  # entries after which it is tried whether the start is forgotten
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


class AdversaryTransport(TransportBound):
    """The pairwise recursion for a chain with an unknown start, or of which entries are known."""

    def __init__(self, chain: MarkovChain, secrets: Secrets, *, tolerance: float = 1e-3) -> None:
        self._chain, self._tolerance = chain, tolerance
        self._size = len(chain.states)
        self._sides = secrets.sides(chain.states)
        self._secrets = secrets
        self._secret_entries = secret_entries(secrets, chain.length)
        self._secret = SecretSides(self._sides, self._size)
        _ = self._secret.mask, self._kernels  # an error now rather than later
        if chain.stationary_start:
            recurrent_law(self._kernels[0])
        elif not chain.unknown_start and chain.length is None:
            raise UnsoundRequest(
                "an unbounded chain that begins somewhere is not stationary; give `length`,"
                " or start = 'unknown'",
                field="length",
            )

    @cached_property
    def _kernels(self) -> tuple[Floats, ...]:
        """The different kernels: one, or one for each step, of which equal ones are one object."""
        if self._chain.homogeneous:
            return (transition_rows(self._chain.transition),)
        known: dict[bytes, Floats] = {}
        rows = (transition_rows(matrix) for matrix in self._chain.transition)
        return tuple(known.setdefault(matrix.tobytes(), matrix) for matrix in rows)

    @property
    def size(self) -> int | None:
        """How many entries there are; None if the chain is unbounded."""
        return self._chain.length

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self._everywhere(off_diagonal(self._size, epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss if entry i is charged ``epsilon[i]``, and later ones of an unbounded chain 0."""
        return self._one_by_one(CostLevels.of_losses(epsilon, off_diagonal(self._size)))

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value."""
        chain = self._chain
        if costs.uniform:
            return self._everywhere(costs.matrix(chain.states, chain.columns))
        return self._one_by_one(
            CostLevels.of_costs(costs, chain.states, chain.columns, chain.length)
        )

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
        if self._spreads:  # a search takes long
            return None
        sides = self._solved_sides(cost, None if length is None else length - 1)
        if sides is None:
            return None
        x, y = np.unravel_index(int(np.argmax(bound.by_values)), bound.by_values.shape)
        entry = None if bound.binding is None else bound.binding.entry
        return sides.worst_start(int(x), int(y), entry if isinstance(entry, int) else None)

    def _everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        length = self._chain.length
        forgetting = self._start_is_forgotten(float(cost.max()))
        if self._plain is not None and isfinite(forgetting):
            return _with_more(self._plain.everywhere(cost), forgetting)
        if length is None or (length > WALKED and self._chain.homogeneous and self._settles):
            return self._at_any_entry(frozen(cost))
        at = np.zeros(length, dtype=np.int64)
        return self._one_by_one(CostLevels((frozen(cost),), at).checked())

    def _start_is_forgotten(self, largest: float) -> float:
        """What an unknown start adds at most, of many states; infinite if that is not used.

        ``largest`` is the largest cost of an entry.
        """
        return min((float(up(d * largest + spread)) for d, spread in self._spreads), default=inf)

    @cached_property
    def _spreads(self) -> list[tuple[int, float]]:
        """Numbers of entries d, and 2 log(h/l) for the laws that entry d may have."""
        chain = self._chain
        usable = chain.unknown_start and chain.known == "none" and not self._secret.grouped
        if not usable or self._size <= MANY_STATES or self._plain is None:
            return []
        (kernel,) = self._kernels
        try:
            stationary = recurrent_law(kernel)
        except InvalidPrior:  # some states are left for good
            return []
        power, spreads = kernel, []
        for d in range(1, MAX_FORGETTING + 1):
            least, largest = float((power / stationary).min()), float((power / stationary).max())
            error = 2 * (law_slack(self._size) + (d + 1) * gamma(self._size))
            if least > FAINTEST_RATIO:  # then no product has underflown, and errors are relative
                spreads.append((d, float(up(2 * (np.log(largest / least) + 2 * error)))))
            power = power @ kernel
        return spreads

    @property
    def _settles(self) -> bool:
        """Whether an entry far from the beginning is like one of an unbounded chain."""
        return isinstance(self._chain.start, str)

    def _at_any_entry(self, cost: Floats) -> Bound:
        """The loss of any entry of a chain that may be unbounded."""
        (kernel,) = self._kernels
        if self._chain.unknown_start:
            ahead = fixed_point(
                *(fixed_rows(kernel), cost),
                slack=row_slack(self._size),
                tolerance=self._tolerance,
                with_lower=False,
            ).upper
            behind = unbounded_start(kernel, cost, tolerance=self._tolerance)
        else:
            both = unbounded_losses(kernel, cost, tolerance=self._tolerance, with_lower=False)
            ahead, behind = both.forward.upper, both.backward.upper
        if self._chain.known == "any":
            turned = np.ascontiguousarray(kernel.T)
            after = KnownSide((kernel,), (cost,), ahead=True)
            before = KnownSide((turned,), (cost,), ahead=False)
            ahead = np.maximum(ahead, after.unbounded(tolerance=self._tolerance))
            behind = np.maximum(behind, before.unbounded(tolerance=self._tolerance))
        table = np.asarray(up(cost + up(ahead + behind)))
        np.fill_diagonal(table, 0.0)
        sides = self._solved_sides(cost, None)
        if sides is not None:
            table = solve_anywhere(sides, table, self._secret.mask)
        value, pair, by_values = self._of_pairs(table, None)
        return Bound(value, self._binding(pair, None), by_values=by_values)

    def _one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""
        chain, beyond = self._chain, 0
        if chain.length is not None and len(charged) != chain.length:
            raise UnsoundRequest(
                f"the profile has {len(charged)} numbers; the chain has {chain.length} entries",
                field="profile",
                given=len(charged),
                needed=chain.length,
            )
        if chain.length is None:
            beyond = TAIL
            charged = charged.then_nothing(TAIL)
        losses = self._entry_losses(charged)
        if chain.homogeneous and len(charged.matrices) == 1 and len(charged) > 1:
            losses = self._solved(losses, charged)
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
        anywhere = np.full(self._size, 1 / self._size)
        start = None if chain.stationary_start else anywhere
        if not isinstance(chain.start, str):
            start = chain.start
        plain = chain_losses(chain.transition, charged, start=start)
        ahead = [plain.forward[k] for k in plain.forward_at.tolist()]
        behind = [plain.backward[k] for k in plain.backward_at.tolist()]
        possible = [plain.possible[k] for k in plain.possible_at.tolist()]
        hulls: list[StartHull | None] = [None] * length
        if chain.unknown_start:
            free = unknown_start(kernels, costs)
            behind = [free.before.table(i) for i in range(length)]
            hulls = [free.hulls[k] for k in free.hull_at.tolist()]
            possible = [free.possible(i) for i in range(length)]
        keys: dict[tuple[object, ...], int] = {}
        tables: list[Floats] = []
        kept: list[StartHull | None] = []
        at = []
        after = before = None
        if chain.known == "any" and length > 1:
            after = KnownSide.after(kernels, costs).tables()
            before = KnownSide.before(kernels, costs).tables()
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
                tables.append(_combined(up(costs[i] + one + other), possible[i]))
                kept.append(hull)
            at.append(keys[key])
        last = behind[-1] if before is None else np.maximum(behind[-1], before.table(length - 1))
        return EntryLosses(tuple(tables), tuple(kept), at, last)

    def _solved_sides(self, cost: Floats, length: int | None) -> SolvedSides | None:
        """Both sides of an entry with ``length`` others, or any number; None if out of range."""
        chain = self._chain
        star = star_of(cost)
        if not chain.homogeneous or not cost.any() or length == 0 or not star.tight:
            return None
        (kernel,) = self._kernels
        known = chain.known == "any"
        start: Floats | None = None
        if not chain.unknown_start:
            start = recurrent_law(kernel) if chain.stationary_start else chain.start_law
        after = StarWalk.of(
            kernel, star, length, known=known, start=np.ones(self._size), steady=True
        )
        before = StarWalk.of(
            *(np.ascontiguousarray(kernel.T), star, length),
            known=known,
            start=start,
            steady=chain.stationary_start,
            slack=law_slack(self._size),
        )
        sides = SolvedSides(after, before, cost)
        return sides if sides.usable else None

    def _solved(self, losses: EntryLosses, charged: CostLevels) -> EntryLosses:
        """The same, with the pairs that matter solved, where the cost is a star."""
        length = len(charged)
        sides = self._solved_sides(charged.matrices[0], length - 1)
        if sides is None or length * self._size**2 > LARGEST:
            return losses
        secret = np.ones(length, dtype=np.bool_)
        if self._secret_entries is not None:
            secret = np.isin(np.arange(length), self._secret_entries)
        at = np.array(losses.at, dtype=np.int64)
        tables = solve_entries(sides, losses.tables, at, secret, self._secret.mask)
        hulls = tuple(losses.hulls[k] for k in losses.at)
        return EntryLosses(tuple(tables), hulls, np.arange(length).tolist(), losses.behind)

    @property
    def _by_hull(self) -> bool:
        """Whether groups of values are bounded by the laws that an entry may have."""
        return self._secret.grouped and self._chain.unknown_start and self._chain.known == "none"

    def _of_pairs(self, table: Floats, hull: StartHull | None) -> tuple[float, int, Floats]:
        """The largest loss of a secret pair, which pair that is, and ``[x, y]`` of all."""
        largest = np.array([table[np.ix_(a, b)].max() for a, b in self._sides])
        if hull is not None:
            sides = list(dict.fromkeys(side for pair in self._sides for side in pair))
            able = [bool(hull.possible[list(side)].any()) for side in sides]
            sides = [side for side, can in zip(sides, able, strict=True) if can]
            if len(sides) > 1:
                number = {side: k for k, side in enumerate(sides)}
                members = np.array([np.isin(np.arange(self._size), side) for side in sides])
                inside = np.where(np.isfinite(table), table, self._filled(table))
                proven = hull_step(hull, members.astype(np.float64), inside)
                for k, (a, b) in enumerate(self._sides):
                    if a in number and b in number:
                        largest[k] = min(largest[k], proven[number[a], number[b]])
        pair = int(np.argmax(largest))
        by_values = np.full((self._size, self._size), -np.inf)
        for (a, b), loss in zip(self._sides, largest, strict=True):
            here = np.ix_(a, b)
            by_values[here] = np.maximum(by_values[here], loss)
        return max(float(largest[pair]), 0.0), pair, frozen(by_values)

    @staticmethod
    def _filled(table: Floats) -> float:
        """More than any loss of the table: no closure leads through what cannot happen."""
        return 2 * float(np.where(np.isfinite(table), table, 0.0).max()) + 1.0

    def _binding(self, pair: int, entry: int | None) -> Binding:
        a, b = self._sides[pair]
        states = self._chain.states
        return Binding(joined(states, a), joined(states, b), entry=entry)


def _with_more(bound: Bound, more: float) -> Bound:
    """A bound of which every loss is larger by ``more``."""
    by_entry = None if bound.by_entry is None else frozen(up(bound.by_entry + more))
    by_values = None if bound.by_values is None else frozen(up(bound.by_values + more))
    value = float(up(bound.value + more))
    return replace(bound, value=value, by_entry=by_entry, by_values=by_values, solved=False)


def _combined(total: Floats, possible: Booleans) -> Floats:
    """The table, −∞ where x or y cannot happen, 0 where they are one."""
    table = total.copy()
    table[~possible, :] = -np.inf
    table[:, ~possible] = -np.inf
    np.fill_diagonal(table, np.where(possible, 0.0, -np.inf))
    return frozen(table)
