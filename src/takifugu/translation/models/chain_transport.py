"""The transport bound of Markov chains: of scalar losses, and of costs value by value."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.certify.flow import LARGE, off_diagonal, pair_losses
from takifugu.translation.certify.laws import (
    HeldLaw,
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.certify.product import MAX_RANGE, Neighbourhood
from takifugu.translation.certify.stars import StarSide, star_of
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.chain import ChainLosses
from takifugu.translation.models.chain_entries import (
    ChainBound,
    joined,
    refuse_other_length,
    refuse_unbounded,
    secret_entries,
)
from takifugu.translation.search.fixed_point import (
    UnboundedLosses,
    unbounded_losses,
)
from takifugu.translation.search.groups import (
    GroupWindows,
    PairLosses,
    SecretSides,
    unbounded_groups,
)
from takifugu.translation.search.product_search import best_product
from takifugu.translation.search.recursion import (
    MAX_BLOCK_ENTRIES,
    block_length,
    chain_losses,
    settle,
    walk_blocks,
)
from takifugu.translation.search.star_chains import (
    Entry,
    RisingLosses,
    StationaryChain,
    refined,
)

WALKED = 250_000  # entries × states² up to which a stationary chain is walked entry by entry
MOST_REACH = 2_000  # entries to each side of a solved bound's witness
REACHED = 1 - 5e-7  # a share of the bound that is as good as all of it
MOST_PAIRS = 64  # of the pairs with the largest bounds, for which a witness is searched
FAR = 5_000  # the furthest entry for which laws are walked from a given start, if it can be helped
SIDES = 4_000_000  # numbers in the rows of all steps up to which single entries are solved
CLOSE = 1.01  # a star's bound this near to what is attained needs no other bound
TAIL = 16  # entries after the last charged one whose losses are computed one by one


class ChainTransport(ChainBound):
    """One Markov chain and chosen secrets.

    Costs in the shape of a star, among them every scalar ε, are solved for pairs of values: see
    `takifugu.translation.certify.stars`. For others, and for groups of values, the least of
    the pairwise recursion and of such a star is an upper bound, whose distance from the truth the
    witness shows. Two states have a closed form (`BinaryTransport`).

    Several entries are coupled at once where that pays, unless ``coupled`` is false: it takes
    about ten times as long.
    """

    def __init__(
        self,
        chain: MarkovChain,
        secrets: Secrets,
        *,
        tolerance: float = 1e-3,
        coupled: bool = True,
    ) -> None:
        chain.refuse_unless_one_law("the plain recursion")
        self._chain, self._tolerance, self._coupled = chain, tolerance, coupled
        self.states, self.columns, self.length = chain.states, chain.columns, chain.length
        self._stationary = chain.stationary_start
        self._size = len(chain.states)
        self._sides = secrets.sides(chain.states)
        self._secret_entries = secret_entries(secrets, chain.length)
        self._secret = SecretSides(self._sides, self._size)
        _ = self._secret.mask  # an error now rather than later
        if self._stationary:
            _ = self._stationary_rows  # an error now rather than later
        elif chain.length is None:
            refuse_unbounded()

    @property
    def walked(self) -> bool:
        """Whether a constant ε is translated entry by entry, or as in an unbounded chain."""
        length = self._chain.length
        if length is None:
            return False
        return not self._stationary or length * self._size**2 <= WALKED

    def consistent(self, epsilon: Floats) -> Floats:
        """``[entry]``: at least the loss of each entry, all by the same method.

        `profile` solves only what it takes to find the largest. Here every entry is solved, or
        none: close profiles have close losses everywhere.
        """
        found = self.one_by_one(self._levels(epsilon), solved="all").by_entry
        assert found is not None  # noqa: S101 - `one_by_one` lists them
        return found

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        solved = self._solved(cost)
        if solved is not None and solved.solved:
            return solved
        if not self.walked:
            if solved is not None and self._close(cost, solved):
                return solved
            found = self._unbounded_bound(self._unbounded(cost))
            return found if solved is None or found.value <= solved.value else solved
        length = self._chain.length or 1
        at = np.zeros(length, dtype=np.int64)
        found = self.one_by_one(CostLevels((cost,), at).checked(), alike=self._stationary)
        others = [] if solved is None else [solved]
        if self._stationary and self._blocks > 1 and length > MAX_BLOCK_ENTRIES:
            # too long for blocks: the unbounded chain, in blocks, may have a lower bound
            others.append(self._unbounded_bound(self._unbounded(cost)))
        for other in others:
            if other.value < found.value and found.by_entry is not None:
                capped = frozen(np.minimum(found.by_entry, other.value))
                found = Bound(other.value, found.binding, capped, found.by_values)
        return found

    def _solved(self, cost: Floats) -> Bound | None:
        """The same by a star that is at least ``cost``; None where that proves nothing."""
        if self._solver is None:
            return None
        if self.walked:
            length = self._chain.length or 1
            found = self._solver.finite(cost, length, self._secret_entries)
        else:
            found = self._solver.unbounded(cost)
        if found is None or not found.value < np.inf:
            return None
        binding = self._binding(self._secret.number(*found.pair), found.entry)
        table = frozen(np.where(self._secret.mask, found.value, -np.inf))
        attained = star_of(cost).attained
        return Bound(found.value, binding, found.by_entry, table, solved=attained)

    def nearby(self, bound: Bound) -> Callable[[EntryCosts], float] | None:
        """About the loss of other costs on every entry, for the pair that binds in ``bound``."""
        estimate = self._nearby(bound)
        if estimate is None:
            return None
        return lambda costs: estimate(costs.matrix(self._chain.states, self._chain.columns))

    def _nearby(self, bound: Bound) -> Callable[[Floats], float] | None:
        solver, worst, pair = self._solver, bound.binding, self._pair_of(bound)
        if solver is None or worst is None or pair is None:
            return None
        entry = worst.entry if self.walked and isinstance(worst.entry, int) else None
        if self.walked and entry is None:
            return None
        length = self._chain.length if self.walked else None
        return lambda cost: solver.estimate(cost, pair, entry, length)

    def _close(self, cost: Floats, solved: Bound) -> bool:
        """Whether a mechanism is known to leak nearly what the star allows, so it will do."""
        pair = self._pair_of(solved)
        if self._solver is None or pair is None:
            return False
        return solved.value <= CLOSE * self._solver.product(cost, pair)

    def _pair_of(self, bound: Bound) -> tuple[int, int] | None:
        """The single values of the pair that binds."""
        worst = bound.binding
        named = () if worst is None else (worst.left, worst.right)
        sides = [s for s in self._sides if self._named(s) == named]
        if len(sides) != 1 or len(sides[0][0]) != 1 or len(sides[0][1]) != 1:
            return None
        return sides[0][0][0], sides[0][1][0]

    @cached_property
    def _solver(self) -> StationaryChain | None:
        """Solves star-shaped costs; None for a given start, and for groups of values."""
        if not self._stationary or self._secret.grouped:
            return None
        rows, _, back = self._stationary_rows
        if not np.array_equal(back > 0, rows.T > 0):  # a probability too small for a float
            return None
        slacks = row_slack(self._size), law_slack(self._size)
        return StationaryChain(rows, back, slacks, np.argwhere(self._secret.mask))

    def one_by_one(
        self, charged: CostLevels, *, alike: bool = False, solved: Literal["worst", "all"] = "worst"
    ) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none.

        ``alike`` says that the chain is stationary, finite, and has one cost. ``solved`` says which
        entries are: those of the largest losses, or all of them, and none if they are too many.
        """
        chain, beyond = self._chain, 0
        refuse_other_length(len(charged), chain.length)
        if chain.length is None:
            beyond = TAIL
            charged = charged.then_nothing(TAIL)
        losses = chain_losses(
            chain.transition, charged, start=None if self._stationary else chain.start_law
        )
        solving = not self._secret.grouped and len(charged) > 1
        blocks = self._blocks > 1 and len(charged) <= MAX_BLOCK_ENTRIES
        if solving and all(star_of(cost).attained for cost in charged.matrices):
            blocks = False
        sides = self._in_blocks(losses) if blocks else None
        tables = None if sides is None else self._joined(losses, *sides)
        by_entry, entry, top = self._by_entry(losses, tables)
        grouped = self._secret.grouped and self._coupled
        if grouped and top.pair >= 0 and float(by_entry.max()) < LARGE:
            by_entry, entry, top = self._in_windows(losses, sides, (by_entry, entry, top), alike)
        if solving and top.pair >= 0:
            by_entry, entry, top = self._refined(losses, by_entry, entry, top, solved == "all")
        if beyond:
            later = float(by_entry[-beyond:].max())
            far = self._further(len(charged))
            if far is not None:
                # there nothing is charged, and a step costs at most its dearest move
                last = losses.backward[losses.backward_at[-1]]
                later = max(later, float(last.max()))
                if self._secret_entries is not None and later > by_entry.max():  # this one binds
                    entry, top = far, self._secret.losses(last, losses.laws[0])
            by_entry = np.append(by_entry[:-beyond], later)
        binding = None if top.pair < 0 else self._binding(top.pair, entry)
        return Bound(float(by_entry.max()), binding, frozen(by_entry), top.by_values)

    def _refined(
        self, losses: ChainLosses, by_entry: Floats, entry: int, top: PairLosses, every: bool
    ) -> tuple[Floats, int, PairLosses]:
        """The same, with the entries of the largest losses, or all or none, solved by stars."""
        charged, steps = losses.charged, len(losses.charged) - 1
        ahead, behind = self._stars(charged)
        if ahead is None or behind is None or not float(by_entry.max()) < LARGE:
            return by_entry, entry, top

        def solvable(i: int) -> Entry:
            able = self._secret.mask & np.isfinite(losses.at(i))
            pairs = np.argwhere(able)
            own = charged.cost(i)[able]
            return ahead.beyond(i), behind.beyond(steps - i), own, pairs

        work = float(self._secret.mask.sum()) * self._size**2
        found, place, pair = refined(by_entry, solvable, work=work, every=every)
        if pair is None:  # that entry was not solved
            return found, place, top if place == entry else self._top(losses, place)
        table = np.where(self._secret.mask, losses.at(place), -np.inf)
        table = frozen(np.minimum(table, found[place]))
        return found, place, PairLosses(float(found[place]), self._secret.number(*pair), table)

    def _stars(self, charged: CostLevels) -> tuple[StarSide | None, StarSide | None]:
        """All entries ahead of the first, and all behind the last, under stars; None if too many.

        A star is at least the cost.
        """
        steps = len(charged) - 1
        if (1 if self._stationary else steps) * self._size**2 > SIDES or not steps:
            return None, None
        stars = [star_of(cost) for cost in charged.matrices]
        at = [stars[level] for level in charged.at.tolist()]
        rows, back, slack = self._all_rows(steps)
        return (
            StarSide.of(rows, at[1:], slack=row_slack(self._size)),
            StarSide.of(back, at[-2::-1], slack=slack),
        )

    def _all_rows(self, steps: int) -> tuple[list[Floats], list[Floats], float]:
        """The rows of all steps ahead, of all steps back from the last, and their rounding."""
        if self._stationary:
            ahead, _, behind = self._stationary_rows
            return [ahead] * steps, [behind] * steps, law_slack(self._size)
        law, back = self._walk_back(steps)
        rows = [transition_rows(self._chain.kernel(time)) for time in range(steps)]
        return rows, back, law.slack

    def _in_windows(
        self,
        losses: ChainLosses,
        sides: tuple[list[Floats], list[Floats]] | None,
        known: tuple[Floats, int, PairLosses],
        alike: bool,
    ) -> tuple[Floats, int, PairLosses]:
        """The same for groups of values, coupled with the entries around them."""
        windows = GroupWindows(
            *(self._secret, losses, sides, self._stars(losses.charged)),
            *self._all_rows(len(losses.charged) - 1),
        )
        return windows.alike(self._secret_entries, known) if alike else windows.each(known)

    def _top(self, losses: ChainLosses, entry: int) -> PairLosses:
        """The largest loss of an entry by the pairwise recursion."""
        return self._secret.losses(losses.at(entry), losses.laws[losses.law_at[entry]])

    def rising(self, grid: Iterable[float]) -> Iterator[tuple[float, bool]]:
        """The losses of a rising grid of ε, each search started from the one before.

        Each with whether it was solved: then no other method has a lower bound.
        """
        near: UnboundedLosses | None = None
        solver = None if self.walked else self._solver
        search = None if solver is None else RisingLosses(solver, off_diagonal(self._size))
        for epsilon in grid:
            if self.walked:
                yield self.uniform(epsilon).value, False
            elif search is not None and (loss := search.at(epsilon)) < np.inf:
                yield loss, True
            elif near is not None and not np.isfinite(near.loss):
                yield np.inf, False
            else:
                near = unbounded_losses(
                    self._chain.transition,
                    epsilon,
                    tolerance=self._tolerance,
                    near=near,
                )
                yield self._unbounded_bound(near).value, False

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        if self._solver is not None:
            known: dict[float, Bound] = {}

            def loss(epsilon: float) -> float:
                known[epsilon] = self.uniform(epsilon)
                return known[epsilon].value

            def nearby(epsilon: float) -> Callable[[float], float] | None:
                estimate = self._nearby(known[epsilon])
                if estimate is None:
                    return None
                return lambda other: estimate(off_diagonal(self._size, other))

            found = largest_within(loss, target, nearby=nearby)
            if found > 0:
                return found
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response around the worst entry, on the pairs with the largest bounds."""
        spent = np.asarray(epsilon, dtype=np.float64)
        return self.leaking(self._levels(np.atleast_1d(spent)), bound, everywhere=spent.ndim == 0)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The same with factors that obey the cost of each entry."""
        charged = CostLevels.of_costs(costs, self._chain.states, self._chain.columns, None)
        return self.leaking(charged, bound, everywhere=costs.uniform)

    def leaking(self, charged: CostLevels, bound: Bound, *, everywhere: bool) -> Witness:
        """The best product found; ``everywhere`` says that the one cost is that of every entry.

        A bound that is solved is attained: by more entries if these do not suffice.
        """
        reach = self._reach
        centre = self._centre(bound, reach)
        found = self._leak_at(centre, charged, bound, reach, everywhere=everywhere)
        while bound.solved and found.leak < REACHED * bound.value and 2 * reach <= MOST_REACH:
            reach *= 2
            centre = self._centre(bound, reach)
            further = self._leak_at(centre, charged, bound, reach, everywhere=everywhere)
            if not further.leak > found.leak:
                break
            found = further
        if self._secret.grouped and self._coupled and self._chain.length is not None:
            # the bounds of groups need not be largest where the loss is
            last = self._chain.length - 1
            tried = {centre - 1, centre + 1, 0, 1, last - 1, last, last // 2} - {centre}
            for other in sorted(tried & set(range(min(last, FAR) + 1))):
                if self._secret_entries is None or other in self._secret_entries:
                    rival = self._leak_at(other, charged, bound, reach, everywhere=everywhere)
                    found = rival if rival.leak > found.leak else found
        return found

    def _centre(self, bound: Bound, reach: int) -> int:
        """The entry around which a witness with ``reach`` entries to each side is searched."""
        entry = None if bound.binding is None else bound.binding.entry
        middle = self._middle
        if self._chain.length is None and self._secret_entries is None:
            middle = reach
        return self._near(int(entry) if isinstance(entry, int) else middle)

    def _leak_at(
        self, centre: int, charged: CostLevels, bound: Bound, reach: int, *, everywhere: bool
    ) -> Witness:
        """The best product found for the secrets of one entry."""
        chain = self._chain
        around, first = self._neighbourhood(charged, centre, reach, everywhere=everywhere)
        law = self._law(centre)
        sides = self._worst_pairs(law, bound)
        if not sides:
            return Witness(0.0, None)
        left, right = (
            np.array([law.given(_members(side[k], self._size)) for side in sides]) for k in (0, 1)
        )
        found = best_product(around, left, right)
        factors = np.concatenate([found.behind[::-1], found.here[None], found.ahead])
        a, b = sides[found.pair]
        binding = Binding(joined(chain.states, a), joined(chain.states, b), entry=centre)
        entries = tuple(range(first, first + len(factors)))
        return Witness(found.leak, binding, entries, frozen(factors))

    def _further(self, entries: int) -> int | None:
        """The first entry with secrets that is not among the first ``entries``, if there is one."""
        if self._secret_entries is None:
            return entries
        later = self._secret_entries[self._secret_entries >= entries]
        return int(later[0]) if len(later) else None

    @cached_property
    def _stationary_rows(self) -> tuple[Floats, Floats, Floats]:
        rows = transition_rows(self._chain.transition)
        law = recurrent_law(rows)
        return rows, law, backward_rows(rows, law)[0]

    def _unbounded(self, cost: Floats) -> UnboundedLosses:
        return unbounded_losses(self._chain.transition, cost, tolerance=self._tolerance)

    def _unbounded_bound(self, losses: UnboundedLosses) -> Bound:
        ahead, behind, table = losses.forward.upper, losses.backward.upper, losses.upper
        (rows, law, back), cost = self._stationary_rows, losses.cost
        slack = law_slack(self._size)
        if self._blocks > 1 and np.isfinite(losses.loss) and cost.any():
            ahead = settle(rows, cost, ahead, slack=row_slack(self._size))
            behind = settle(back, cost, behind, slack=slack)
            table = np.minimum(table, pair_losses(cost, ahead, behind))
        held = HeldLaw(Law.from_floats(law), slack)
        top = self._secret.losses(table, held)
        grouped = self._secret.grouped and self._coupled
        if grouped and cost.any() and float(cost.max()) < LARGE:
            lower = unbounded_groups(
                self._secret, held, cost, (rows, back), (ahead, behind), slack=slack
            )
            top = lower if lower.value <= top.value else top
        return Bound(top.value, self._binding(top.pair, None), by_values=top.by_values)

    @property
    def _blocks(self) -> int:
        """How many entries are coupled at once; two states gain nothing."""
        return 1 if self._size <= 2 or not self._coupled else block_length(self._size)

    def _in_blocks(self, losses: ChainLosses) -> tuple[list[Floats], list[Floats]]:
        """``[entry][x, y]``: what is ahead and behind, several entries coupled at once."""
        steps = len(losses.charged) - 1
        spent = [losses.charged.cost(i) for i in range(steps + 1)]
        rows, back, slack = self._all_rows(steps)
        ahead = walk_blocks(rows, spent[1:], slack=row_slack(self._size), size=self._size)
        behind = walk_blocks(back, spent[::-1][1:], slack=slack, size=self._size)[::-1]
        return ahead, behind

    def _joined(
        self, losses: ChainLosses, ahead: list[Floats], behind: list[Floats]
    ) -> list[Floats]:
        """``[entry][x, y]``: the losses, by the pairwise recursion or in blocks."""
        return [
            np.minimum(losses.at(i), pair_losses(losses.charged.cost(i), ahead[i], behind[i]))
            for i in range(len(losses.charged))
        ]

    def _by_entry(
        self, losses: ChainLosses, tables: list[Floats] | None
    ) -> tuple[Floats, int, PairLosses]:
        """``[entry]``: the largest loss over the secret pairs there; where it is largest."""
        charged = losses.charged
        at = [losses.forward_at, losses.backward_at, losses.possible_at, charged.at]
        shape = [len(losses.forward), len(losses.backward), len(losses.possible)]
        shape.append(len(charged.matrices))
        if self._secret.grouped:
            at.append(losses.law_at)
            shape.append(len(losses.laws))
        codes = np.ravel_multi_index(tuple(at), tuple(shape))
        if tables is not None:  # every entry has a table of its own
            codes = np.arange(len(codes))
        _, firsts, kind_at = np.unique(codes, return_index=True, return_inverse=True)
        found = [
            self._secret.losses(
                losses.at(first) if tables is None else tables[first],
                losses.laws[losses.law_at[first]],
            )
            for first in firsts.tolist()
        ]
        by_entry = np.array([top.value for top in found])[kind_at]
        if self._secret_entries is not None:
            keep = np.isin(np.arange(len(by_entry)), self._secret_entries)
            by_entry = np.where(keep, by_entry, 0.0)
        entry = int(np.argmax(by_entry))
        if self._secret_entries is not None:  # all may be 0: even then it is one of them
            listed = self._secret_entries[self._secret_entries < len(by_entry)]
            if not len(listed):
                return by_entry, 0, PairLosses(0.0, -1, found[0].by_values)
            entry = int(listed[np.argmax(by_entry[listed])])
        return by_entry, entry, found[int(kind_at[entry])]

    @property
    def _middle(self) -> int:
        if self._secret_entries is not None:
            return int(self._secret_entries[len(self._secret_entries) // 2])
        length = self._chain.length
        return (self._reach if length is None else length // 2) or 0

    def _near(self, entry: int) -> int:
        """The entry itself, or one closer to a given start if it is very far from it."""
        if self._stationary or entry <= FAR:
            return entry
        if self._secret_entries is None:
            return FAR
        close = self._secret_entries[self._secret_entries <= FAR]
        return int(close[-1] if len(close) else self._secret_entries[0])

    @property
    def _reach(self) -> int:
        """How many entries to each side a witness uses."""
        if not self._coupled:
            return 64
        return max(32, min(400, 10**6 // self._size**2))

    def _law(self, entry: int) -> Law:
        return (
            Law.from_floats(self._stationary_rows[1])
            if self._stationary
            else self._walk_back(entry)[0]
        )

    def _walk_back(self, entry: int) -> tuple[Law, list[Floats]]:
        """The law of an entry of a chain that begins somewhere; the rows back, nearest first."""
        law, behind = Law.from_floats(np.asarray(self._chain.start_law)), []
        for time in range(entry):
            back, law = law.back(self._chain.kernel(time))
            behind.append(back)
        return law, behind[::-1]

    def _neighbourhood(
        self, charged: CostLevels, centre: int, reach: int, *, everywhere: bool
    ) -> tuple[Neighbourhood, int]:
        """The entries around ``centre``, and the number of the first of them."""
        chain, length = self._chain, self._chain.length
        last = centre + reach if length is None else min(centre + reach, length - 1)
        first = max(0, centre - reach)
        after, before, own = around_entry(charged, first, centre, last, everywhere=everywhere)
        last, first = centre + len(after), centre - len(before)
        if self._stationary:
            ahead = [self._stationary_rows[0]] * (last - centre)
            behind = [self._stationary_rows[2]] * (centre - first)
            slack = law_slack(self._size)
        else:
            law, behind = self._walk_back(centre)
            ahead = [chain.kernel(time) for time in range(centre, last)]
            behind, slack = behind[: centre - first], law.slack
        return Neighbourhood(ahead, behind, own, after, before, slack), first

    def _worst_pairs(self, law: Law, bound: Bound) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The secret pairs with the largest bounds, of those that are possible."""
        sides = [s for s in self._sides if all(law.possible[list(part)].any() for part in s)]
        if bound.by_values is None:
            return sides[:MOST_PAIRS]
        values, worst = bound.by_values, bound.binding
        if worst is not None and self._solver is not None and values.max() == bound.value:
            first = [s for s in sides if self._named(s) == (worst.left, worst.right)]
            sides = first + [s for s in sides if s not in first]  # sorting keeps their order
            if bound.solved and first:
                return first
        return sorted(sides, key=lambda s: -float(values[np.ix_(*s)].max()))[:MOST_PAIRS]

    def _named(self, side: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[str, str]:
        states = self._chain.states
        return joined(states, side[0]), joined(states, side[1])


def _members(side: tuple[int, ...], states: int) -> Booleans:
    """``[x]``: whether x is one of the values of ``side``."""
    return np.isin(np.arange(states), side)


def around_entry(
    charged: CostLevels, first: int, centre: int, last: int, *, everywhere: bool
) -> tuple[list[Floats], list[Floats], Floats]:
    """The costs of the entries after and before ``centre``, nearest first, and its own.

    An entry that is not listed was not asked, unless one cost is that of every entry. Far ones are
    left out if all together would exceed what floats can hold.
    """
    nothing = np.zeros_like(charged.matrices[0])

    def cost(entry: int) -> Floats:
        if everywhere:
            return charged.cost(0)
        return charged.cost(entry) if entry < len(charged) else nothing

    after = [cost(entry) for entry in range(centre + 1, last + 1)]
    before = [cost(entry) for entry in reversed(range(first, centre))]
    return after[: entries_in_range(after)], before[: entries_in_range(before)], cost(centre)


def entries_in_range(costs: Sequence[Floats]) -> int:
    """How many of the first entries stay below half of the total that a witness may use."""
    spent = np.cumsum([float(cost.max(initial=0.0)) for cost in costs])
    return min(len(costs), max(1, int(np.searchsorted(spent, MAX_RANGE / 2, "right"))))
