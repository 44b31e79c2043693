"""A Markov chain unrolled around its entries: which states are possible, and what they leak."""

from collections.abc import Sequence
from itertools import islice, repeat

import numpy as np

from takifugu._rounding import UNIT
from takifugu.errors import TooLarge
from takifugu.influence.chain.chain_groups import GroupLeaks
from takifugu.influence.chain.curve_request import ROOM, CurveRequest, Side
from takifugu.influence.chain.powers import LogProduct, largest_ratios, products, reach, turned
from takifugu.influence.chain.splitting import EntryLeaks, PairLeaks
from takifugu.numeric import Booleans, Floats
from takifugu.priors.markov import MarkovChain
from takifugu.priors.stationary import reachable

STEPS = 4096  # steps to wait for a law to become stationary before all later entries are bounded
SETTLED = 1e-10  # nats; two laws this close count as one


class Walk:
    """A chain unrolled as far as a curve needs, with the tables that entries share.

    With ``shift`` the nearest seen state to the right is taken to be that many steps further away
    than its distance says; the leaks of groups are then upper bounds. For pairs of groups only.
    """

    def __init__(self, chain: MarkovChain, request: CurveRequest, *, shift: int = 0) -> None:
        chain.refuse_unless_one_law("an influence curve")
        self.chain, self.request, self.shift = chain, request, shift
        self.stationary = chain.stationary_start
        length = chain.length
        self.far = request.most if length is None else min(request.most, max(length - 1, 1))
        if not chain.homogeneous:
            size = len(chain.transition) * self.far * len(chain.states) ** 2
            if size > 2 * ROOM:
                raise TooLarge(
                    f"a chain with a matrix for each of {len(chain.transition):,} steps needs"
                    f" {size:,} numbers, more than {2 * ROOM:,}; take a smaller max_exposed",
                    field="max_exposed",
                    size=size,
                    limit=2 * ROOM,
                )
        self._powers: dict[int, list[LogProduct]] = {}
        self._tables: dict[tuple[object, ...], Floats] = {}
        self._laws: list[LogProduct] = []
        self._law_steps = products(
            chain.start_law[None],
            chain.start_error,
            repeat(chain.kernel())
            if chain.homogeneous
            else (chain.kernel(t) for t in range(len(chain.transition))),
            chain.row_error,
        )

    def law(self, entry: int) -> LogProduct:
        """``[0, x]``: the logarithm of the law of an entry."""
        entry = 0 if self.stationary else entry
        while len(self._laws) <= entry:
            self._laws.append(next(self._law_steps))
        return self._laws[entry]

    def power(self, entry: int, distance: int) -> LogProduct:
        """``[x, z]``: log P(X at ``entry`` + ``distance`` is z | X at ``entry`` is x)."""
        first = 0 if self.chain.homogeneous else entry
        if first not in self._powers:
            kernel, error = self.chain.kernel(first), self.chain.row_error
            last = None if self.chain.length is None else self.chain.length - 1
            later = (
                repeat(kernel)
                if self.chain.homogeneous
                else (self.chain.kernel(t) for t in range(first + 1, last or 0))
            )
            steps = products(kernel, error, later, error)
            self._powers[first] = list(islice(steps, self.far + self.shift))
        return self._powers[first][distance - 1]

    def after(self, entry: int, distance: int) -> Floats:
        """``[pair]``: what the entry at ``distance`` to the right leaks."""
        key = ("after", 0 if self.chain.homogeneous else entry, distance)
        if key not in self._tables:
            power = self.power(entry, distance)
            self._tables[key] = largest_ratios(power, self.request.left, self.request.right)
        return self._tables[key]

    def before(self, entry: int, distance: int, support: Booleans) -> Floats:
        """``[pair]``: what the entry at ``distance`` to the left leaks, without the laws' ratio."""
        key = ("before", 0 if self.chain.homogeneous else entry, distance, support.tobytes())
        if key not in self._tables:
            power = self.power(entry - distance, distance)
            seen = turned(LogProduct(power.log[support], power.error))
            self._tables[key] = largest_ratios(seen, self.request.left, self.request.right)
        return self._tables[key]

    def support(self, entry: int) -> Booleans:
        """``[x]``: which states are possible at an entry."""
        row: Booleans = self.law(entry).possible[0]
        return row

    def entry_leaks(self) -> list[list[EntryLeaks]]:
        """One item for each entry, or class of entries, that the curve has rows for."""
        length, most = self.chain.length, self.request.most
        entries = self.request.entries
        settled = self._settles()
        inside = most + (settled or 0)  # from here on all possible pasts look alike
        if entries is not None:
            if self.stationary and any(self._interior(i) for i in entries):
                return [self.later(most, settled)]
            listed = self.stationary or not self.chain.homogeneous
            far = [] if listed else [i for i in entries if i >= inside + STEPS]
            near = [self.at(i) for i in entries if listed or i < inside + STEPS]
            return [*near, self.later(inside, settled, far)] if far else near
        if length is not None and (not self.chain.homogeneous or length <= inside + most):
            self.request.apart(length)  # an error now rather than after all the work
            return [self.at(i) for i in range(length)]
        late = self.later(inside, settled)
        return [late] if self.stationary else [*(self.at(i) for i in range(inside)), late]

    def _interior(self, entry: int) -> bool:
        length, most = self.chain.length, self.request.most
        return entry >= most and (length is None or length - 1 - entry >= most)

    def _settles(self) -> int | None:
        """The time from which on the same states are possible; None if there is none soon."""
        if self.stationary:
            return 0
        follows = self.chain.kernel() > 0
        support = self.chain.start_law > 0
        for time in range(2 * len(support) + 64):
            further = np.asarray(follows[support].any(axis=0))
            if (further == support).all():
                return time
            support = further
        return None

    def at(self, entry: int) -> list[EntryLeaks]:
        """The rows of one entry."""
        length = self.chain.length
        sides = (entry, None if length is None else length - 1 - entry)
        law = self.law(entry)
        keep, offset = self._offset(law, self.request.single)
        before = [
            self.before(entry, d, self.support(entry - d))
            for d in range(1, min(entry, self.far) + 1)
        ]
        ahead = self.far if sides[1] is None else min(sides[1], self.far)
        after = [self.after(entry, d) for d in range(1, ahead + 1)]
        parts: list[EntryLeaks] = []
        if self.request.single:
            exact: Booleans = np.ones(len(keep), dtype=bool)
            error = self._error(entry, (len(before), ahead), law)
            parts.append(PairLeaks(str(entry), sides, keep, exact, before, after, offset, error))
        if self.request.grouped:
            keep, offset = self._offset(law, self.request.grouped)
            parts.append(
                GroupLeaks(
                    str(entry),
                    sides,
                    keep,
                    np.full(len(keep), not self.shift),
                    self.request.grouped,
                    [
                        LogProduct(p.log[self.support(entry - d)], p.error)
                        for d in range(1, len(before) + 1)
                        for p in (self.power(entry - d, d),)
                    ],
                    [self.power(entry, d + self.shift) for d in range(1, ahead + 1)],
                    law,
                    offset,
                    self._error(entry, (len(before), ahead), law, self.request.grouped),
                )
            )
        return parts

    def later(self, first: int, settled: int | None, far: Sequence[int] = ()) -> list[EntryLeaks]:
        """The rows that hold for every entry from ``first`` on, as if the chain were unbounded.

        With ``far``: for these entries only, each at least `STEPS` further.
        """
        name = f"{first}+"
        support = self._ever() if settled is None else self.support(settled)
        before = [self.before(first, d, support) for d in range(1, self.far + 1)]
        after = [self.after(first, d) for d in range(1, self.far + 1)]
        unused, room = self.law(0), 0.0 if self.stationary else 4 * SETTLED
        parts: list[EntryLeaks] = []
        if self.request.single:
            keep, offset, exact, law = self._later_offset(first, settled, self.request.single, far)
            error = room + self._error(first, (self.far, self.far), law)
            parts.append(PairLeaks(name, (None, None), keep, exact, before, after, offset, error))
        if self.request.grouped:
            keep, offset, exact, law = self._later_offset(first, settled, self.request.grouped, far)
            powers = [self.power(0, d) for d in range(1, self.far + self.shift + 1)]
            seen = [LogProduct(p.log[support], p.error) for p in powers[: self.far]]
            ahead, exact = powers[self.shift :], exact & (not self.shift)
            pairs = self.request.grouped
            error = room + self._error(first, (self.far, self.far), law, pairs)
            told = (pairs, seen, ahead, unused, offset, error)
            parts.append(GroupLeaks(name, (None, None), keep, exact, *told))
        return parts

    def _error(
        self,
        entry: int,
        sides: tuple[int, int],
        law: LogProduct,
        grouped: tuple[tuple[Side, Side], ...] = (),
    ) -> float:
        """How far leaks may be above the truth by rounding, with so many distances to both sides.

        The error of a product is at least 8 units for each nat of its logarithms. It is added to a
        bound that may be as far above the truth itself; groups add sums and units of their own.
        """
        used = [self.power(entry - d, d) for d in range(1, sides[0] + 1)]
        used += [self.power(entry, d + self.shift) for d in range(1, sides[1] + 1)]
        most = max((product.error for product in used), default=0.0)
        deepest = max(reach(product.log) for product in (*used, law))
        members = max((len(a) + len(b) for a, b in grouped), default=0)
        return 6 * (2 * most + law.error) + 64 * members * UNIT * (1 + deepest)

    def _ever(self) -> Booleans:
        """``[x]``: the states that are possible at some entry."""
        first = self.chain.start_law > 0
        return np.asarray(reachable(self.chain.kernel() > 0)[first].any(axis=0))

    def _offset(
        self, law: LogProduct, pairs: tuple[tuple[Side, Side], ...]
    ) -> tuple[Booleans, Floats]:
        """Whether both sides can happen, and at least log π(right) / π(left)."""
        left, error = _masses(law, [a for a, _ in pairs])
        right, _ = _masses(law, [b for _, b in pairs])
        keep = (left[0] > -np.inf) & (right[0] > -np.inf)
        with np.errstate(invalid="ignore"):
            offset = np.where(keep, right[0] - left[0] + 2 * error, 0.0)
        return keep, offset + 4 * UNIT * np.abs(offset)  # it may cancel what it is added to

    def _later_offset(
        self,
        first: int,
        settled: int | None,
        pairs: tuple[tuple[Side, Side], ...],
        far: Sequence[int] = (),
    ) -> tuple[Booleans, Floats, Booleans, LogProduct]:
        """The largest offset of any entry from ``first`` on, and where it is one of theirs.

        Also the laws that they have at last, with the largest error that was met.
        If only entries that are ``far`` are asked about, no other one counts: where the law has
        settled, theirs is the one that all mixtures have.
        """
        if self.stationary:
            keep, offset = self._offset(self.law(0), pairs)
            return keep, offset, np.ones(len(keep), dtype=bool), self.law(0)
        length, most = self.chain.length, self.request.most
        highest_yet = np.full(len(pairs), -np.inf)
        attained = highest_yet.copy()  # by an entry with enough others to its right
        ever = self._ever() if settled is None else self.support(settled)
        begin = settled or 0  # the mixtures are of rows that are possible from this entry on
        kernel, error = self.chain.kernel(), self.chain.row_error
        steps = products(kernel, error, repeat(kernel), error)
        laws = self.law(0)
        for entry, power in enumerate(steps, start=begin + 1):
            if entry < first:
                continue
            if entry == length:
                break
            if not far:
                keep, offset = self._offset(self.law(entry), pairs)
                np.copyto(highest_yet, np.maximum(highest_yet, offset), where=keep)
                if length is None or length - 1 - entry >= most:
                    np.copyto(attained, np.maximum(attained, offset), where=keep)
            met = laws.error if far else max(laws.error, self.law(entry).error)
            rows = LogProduct(power.log[ever], power.error)
            laws = LogProduct(rows.log, max(met, rows.error))
            one_law = _spread(rows) <= SETTLED + 2 * rows.error
            if entry >= first + STEPS or one_law:
                highest_yet = np.maximum(highest_yet, _hull(rows, pairs))
                if far and one_law and (length is None or length - 1 - min(far) >= most):
                    attained = highest_yet
                break
        keep = highest_yet > -np.inf
        with np.errstate(invalid="ignore"):
            near: Booleans = np.asarray(highest_yet - attained <= 4 * SETTLED)
        exact = near if settled is not None else np.zeros_like(near)
        return keep, np.where(keep, highest_yet, 0.0), exact, laws


def _masses(law: LogProduct, sides: Sequence[Side]) -> tuple[Floats, float]:
    """``[row, side]``: log of the probability of each group, and a bound on its error."""
    if all(len(side) == 1 for side in sides):
        return law.log[:, [side[0] for side in sides]], law.error
    columns = [np.logaddexp.reduce(law.log[:, list(side)], axis=1) for side in sides]
    size = max(len(side) for side in sides)
    spread = float(np.max(np.abs(law.log), where=law.possible, initial=0.0))
    return np.stack(columns, axis=1), law.error + size * UNIT * (8 + 4 * spread)


def _spread(rows: LogProduct) -> float:
    """How far apart the rows are, in nats; infinite if some reach what others do not."""
    possible = rows.possible
    if (possible.any(axis=0) != possible.all(axis=0)).any():
        return np.inf
    kept = rows.log[:, possible.all(axis=0)]
    return float(np.max(kept.max(axis=0) - kept.min(axis=0)))


def _hull(rows: LogProduct, pairs: tuple[tuple[Side, Side], ...]) -> Floats:
    """``[pair]``: the largest log ratio right / left of any mixture of the rows."""
    left, error = _masses(rows, [a for a, _ in pairs])
    right, _ = _masses(rows, [b for _, b in pairs])
    with np.errstate(invalid="ignore"):
        ratio = np.where(right == -np.inf, -np.inf, right - left + 2 * error)
    worst: Floats = ratio.max(axis=0)
    worst[left.max(axis=0) == -np.inf] = -np.inf  # it never happens: no secret
    return worst
