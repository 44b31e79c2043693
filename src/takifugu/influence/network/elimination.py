r"""What the entries outside a set H leak about a secret inside it, by exact elimination.

For a split I = H ∪ L and the secret "entry s is in A or in B", the leak of the paper
(Section 6) is the largest value over possible x_L of

.. math:: \log\frac{P(x_L \mid s\in A)}{P(x_L \mid s\in B)}
        = \log\frac{f_A(x_{\partial})}{f_B(x_{\partial})} - \log\frac{P(s\in A)}{P(s\in B)},

where f sums the product of the tables that touch C, the connected part of H that holds s, over
C with s in A (or B), and ∂ are the neighbours of C. The tables that do not touch C are the same
on both sides and cancel. So

* only C matters: connected H suffice, and the rest of H may as well be low-influence;
* the second term does not depend on the split: a search needs the first term alone;
* if H grows, L shrinks, and the leak can only fall: P(x_L | ·) are sums of P(x_L' | ·) over the
  entries in L' but not in L, and a ratio of sums is at most the largest of the ratios.

Zeros: a state of ∂ counts only if the tables that do not touch C allow it.

**Messages.**
A *message* is a table over a few exposed entries, in several rows: one for each way the known
entries around them can turn out. Rows of different messages can be chosen freely, so the weight
of a secret's value x is multilinear in the rows, with non-negative coefficients, and the ratio of
the weights of x and y is linear-fractional in each of them. Its largest value over a convex cone
is therefore attained on an extreme ray: a row inside the cone of the others never matters, for
any secret pair, and is left out. The length of a row never matters either.

Rounding. Every message counts the relative roundings (``roundings`` units of 2⁻⁵³) by which its
cells, and the rows left out, can be off. By multilinearity the counts add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.errors import TooLarge
from takifugu.influence.rounded_ratios import UNIT_ROUNDOFF, sums_ratio_up
from takifugu.priors.networks import NetworkPrior, Sides, neighbours

MAX_TABLE_CELLS = 2**23  # cells that one table may have
MAX_CONSTRAINT_CELLS = 2**14  # cells of a table of possible states before its constraint is dropped
MAX_FLAT_CELLS = 1024  # cells of a group of tables that is written out with all its states
MAX_BOUNDARY_STATES = 2**14  # states of the shared entries of a boundary that are tried one by one
MAX_SUMMED_STATES = 2**16  # states of a set that can be summed over
MAX_PAIR_WORK = 1e9  # cells multiplied for one pair before a set is given up
LEAST_EXPONENT = -960  # binary exponent below which products could underflow
CONE_SLACK = 2.0**-40  # how far, in every coordinate, a ray left out may be from its cone
CONE_ROUNDINGS = round(CONE_SLACK / UNIT_ROUNDOFF)  # the same in units of rounding
MIN_THINNED_ROWS = 8  # that are not worth thinning
MAX_THINNED_ROWS = 3_000
MAX_THINNED_COLUMNS = 4  # beyond which the proof is slow

_T = TypeVar("_T", Floats, Booleans)
Piece = tuple[int, Booleans]  # entries, as a bit mask, and which of their states are possible


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set, lowest first."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


@dataclass(frozen=True, slots=True)
class Message:
    """``rows`` is ``[row, cell]``; no row is all zeros."""

    rows: Floats
    roundings: int
    depth: int  # a binary exponent: positive cells lie between 2^−depth and 2^depth


def message(table: Floats, *, roundings: int, least: int) -> Message:
    """A message with only the extreme rows kept, each scaled.

    The scale puts the largest and the least positive cell of a row at the same distance from 1:
    then the most and the least over all rows lie close together.
    """
    if least < LEAST_EXPONENT:
        raise TooLarge("the weights of this split span more than float64 can hold")
    if table.size == 0:
        return Message(table, roundings, 0)
    extreme, extra = extremes(np.ldexp(table, -int(np.frexp(table.max())[1])))
    rows = table[extreme]
    if not len(rows):
        return Message(rows, roundings, 0)
    high = rows.max(axis=1)
    low = np.where(rows > 0, rows, np.inf).min(axis=1)
    scaled = rows / (np.sqrt(high) * np.sqrt(low))[:, None]
    depth = int(np.log2(high / low).max()) // 2 + 2
    return Message(scaled, roundings + extra + 1, depth)


class Messages:
    """A growing store of messages in flat arrays, for compiled loops."""

    def __init__(self) -> None:
        self.roundings: list[int] = []
        self.depth: list[int] = []
        self._cells: Floats = np.zeros(1024)
        self._limits: Floats = np.zeros(1024)
        self._used = self._bounded = 0
        self._table: Integers = np.zeros((64, 5), dtype=np.int64)

    def keep(self, made: Message) -> int:
        """Store a message; return its number."""
        number = len(self.roundings)
        count, width = made.rows.shape
        self._cells = _room(self._cells, self._used + made.rows.size)
        self._limits = _room(self._limits, self._bounded + 2 * width)
        if number == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._cells[self._used : self._used + made.rows.size] = made.rows.ravel()
        most, least = self._bounded, self._bounded + width
        self._limits[most:least] = made.rows.max(axis=0)
        self._limits[least : least + width] = made.rows.min(axis=0)
        self._table[number] = self._used, count, width, most, least
        self._used += made.rows.size
        self._bounded += 2 * width
        self.roundings.append(made.roundings)
        self.depth.append(made.depth)
        return number

    def several(self, numbers: Integers) -> Booleans:
        """Which of these messages have more than one row."""
        chosen: Booleans = self._table[numbers, 1] > 1
        return chosen

    def arrays(self) -> tuple[Floats, Integers, Integers, Integers, Floats, Integers]:
        """Cells, where each message starts, its rows, its width; limits, and where they start."""
        table = self._table
        return self._cells, table[:, 0], table[:, 1], table[:, 2], self._limits, table[:, 3:]


def _room(array: Floats, needed: int) -> Floats:
    """The array, or a longer copy of it."""
    if needed <= len(array):
        return array
    longer = np.zeros(max(needed, 2 * len(array)))
    longer[: len(array)] = array
    return longer


def extremes(rays: Floats) -> tuple[Integers, int]:
    """Which rows of ``rays`` span the cone of all of them, and the roundings this may cost.

    Exact for two columns. For more, a row p is left out if numbers λ ≥ 0 were found with
    Σ λ_j r_j = p up to ``CONE_SLACK`` relative in every coordinate, over rows r_j that stay. Rows
    of zeros (impossible) are always left out.
    """
    every = np.arange(len(rays))
    if rays.min() > 0:
        possible, rows = every, rays
    else:
        possible = np.flatnonzero(rays.any(axis=1))
        rows = rays[possible]
        used = rows.any(axis=0)
        rows = rows if used.all() else np.ascontiguousarray(rows[:, used])
    if len(possible) <= 1 or rows.shape[1] <= 1:
        return possible[:1], 0
    if len(rows) == 2:
        return possible, 0
    if rows.shape[1] == 2:
        with np.errstate(divide="ignore"):
            ratio = rows[:, 0] / rows[:, 1]
        ends = sorted({int(ratio.argmin()), int(ratio.argmax())})
        return possible[ends], 2
    if not MIN_THINNED_ROWS < len(rows) <= MAX_THINNED_ROWS or rows.shape[1] > MAX_THINNED_COLUMNS:
        return possible, 0
    keep = _first_of_each(rows)
    if len(keep) > MIN_THINNED_ROWS:
        keep = keep[_thinned(rows[keep])]
    return possible[keep], CONE_ROUNDINGS


def _first_of_each(rows: Floats) -> Integers:
    """The first of every group of equal rows, in order."""
    raw = np.ascontiguousarray(rows)
    whole = raw.view(np.dtype((np.void, raw.itemsize * raw.shape[1]))).ravel()
    first: Integers = np.sort(np.unique(whole, return_index=True)[1])
    return first


def _thinned(rows: Floats) -> Integers:
    """Rows that are not proved to lie in the cone of the corners of their convex hull.

    The hull is cut into simplices that share its first corner. Whatever Qhull finds does no harm:
    a row is left out only if its coordinates λ in one of the simplices pass the check.
    """
    from scipy.spatial import ConvexHull, QhullError

    level = rows / rows.max(axis=0)
    level /= level.sum(axis=1, keepdims=True)
    try:
        hull = ConvexHull(level[:, :-1])
    except QhullError:  # the rows lie in a plane, or nearly
        return np.arange(len(rows))
    stay = np.zeros(len(rows), dtype=np.bool_)
    stay[hull.vertices] = True
    first = int(hull.vertices[0])
    facets = hull.simplices[~(hull.simplices == first).any(axis=1)]
    rest = np.flatnonzero(~stay)
    for facet in facets:
        if not rest.size:
            break
        corners = level[[first, *facet.tolist()]]
        try:
            share = level[rest] @ np.linalg.inv(corners)
        except np.linalg.LinAlgError:
            continue
        near = np.flatnonzero((share > -1e-13).all(axis=1))
        target = level[rest[near]]
        gap = np.abs(np.maximum(share[near], 0.0) @ corners - target)
        # the check itself rounds: a third of the slack leaves it room
        rest = np.delete(rest, near[np.all(gap <= 0.66 * CONE_SLACK * target, axis=1)])
    stay[rest] = True
    return np.flatnonzero(stay)


@dataclass(frozen=True)
class Surroundings:
    """The effects of the boundary of a set, as a problem for ``ratios``.

    Attributes:
        inside: The set, as a bit mask.
        within: The same, as a list, and ``sizes``: how many values each has.
        cases: ``[case, part]``: numbers of messages; in each case one row of each is chosen.
        fixed: Messages of one row that belong to every case.
        strides: ``[part, entry]``, of ``cases`` then ``fixed``: how far apart two values of an
            entry lie in a row.
        roundings: How many relative roundings any product of rows can be off by.
        exact: False if states that cannot happen may be among them.
    """

    inside: int
    within: list[int]
    sizes: Integers
    cases: Integers
    fixed: Integers
    strides: Integers
    roundings: int
    exact: bool

    @property
    def states(self) -> int:
        """How many states the set has."""
        return int(np.prod(self.sizes))


class Elimination:
    """Evaluates sets of one model; everything computed once is kept and shared.

    Sets of entries are bit masks. Messages are kept by what they were made from, so sets, and
    secrets, that have a region in common share its messages.
    """

    def __init__(self, model: NetworkPrior) -> None:
        self.sizes = tuple(len(states) for states in model.states)
        self.around = tuple(sum(1 << j for j in near) for near in neighbours(model))
        factors = model.factors()
        self._scopes = [factor.scope for factor in factors]
        # only ratios within a table matter: with 1 as the largest cell no product overflows
        self._tables = [
            np.ldexp(factor.table, -int(np.frexp(factor.table.max())[1])) for factor in factors
        ]
        self._masks = [sum(1 << v for v in scope) for scope in self._scopes]
        self._touching: list[int] = [0] * len(self.sizes)  # entry -> bit mask of factors
        for k, scope in enumerate(self._scopes):
            for v in scope:
                self._touching[v] |= 1 << k
        self._with_zeros = [k for k, table in enumerate(self._tables) if not table.all()]
        self._pieces: dict[tuple[tuple[int, ...], int], tuple[tuple[Piece, ...], bool]] = {}
        self._groups: dict[object, tuple[list[tuple[int, ...]], list[int]]] = {}
        self._orders: dict[int, list[int]] = {}
        self._slices: dict[tuple[int, tuple[int, ...], int], int] = {}

    @cached_property
    def _messages(self) -> Messages:
        return Messages()

    def boundary(self, inside: int) -> int:
        """The neighbours of a set."""
        near = 0
        for v in bits(inside):
            near |= self.around[v]
        return near & ~inside

    def part(self, inside: int, entry: int) -> int:
        """The connected part of a set that holds ``entry``."""
        connected = front = 1 << entry
        while front:
            near = 0
            for v in bits(front):
                near |= self.around[v]
            front = near & inside & ~connected
            connected |= front
        return connected

    def odds(self, whole: int, entry: int, sides: Sides) -> Floats:
        """``[pair]``: log P(A)/P(B), rounded up, by elimination of all of a connected part.

        −∞ says that side A cannot happen at all.
        """
        weight, roundings = self.marginal(whole, 1 << entry)
        top, base = (np.array([weight[list(pair[k])].sum() for pair in sides]) for k in (0, 1))
        return sums_ratio_up(top, base, roundings=roundings + max(self.sizes))

    def marginal(self, whole: int, keep: int) -> tuple[Floats, int]:
        """The weight of every state of ``keep``, all else in a connected part summed out.

        Up to a common factor; with the roundings that went into it.
        """
        touching = 0
        for v in bits(whole):
            touching |= self._touching[v]
        tables = [self._ready[k] for k in bits(touching)]
        for v in self._order(whole):
            if not keep >> v & 1:
                near = [table for table in tables if table[0] >> v & 1]
                tables = [table for table in tables if not table[0] >> v & 1]
                tables.append(self._joined(near, v))
        _, weight, roundings, _ = self._joined(tables, None)
        return weight, roundings

    @cached_property
    def _ready(self) -> list[tuple[int, Floats, int, int]]:
        """All tables, axes in order, ready to be joined."""
        return [
            (mask, _spread(table, scope, bits(mask)), 0, _lowest(table))
            for mask, table, scope in zip(self._masks, self._tables, self._scopes, strict=True)
        ]

    def _order(self, whole: int) -> list[int]:
        """An order of elimination: the entry whose removal makes the smallest table is next."""
        if whole not in self._orders:
            masks = [mask for mask in self._masks if mask & whole]
            order, left = [], set(bits(whole))
            while left:
                joined = dict.fromkeys(left, 0)
                for mask in masks:
                    for v in bits(mask):
                        joined[v] |= mask
                best = min(left, key=lambda v: (self._cells(joined[v]), v))
                left.remove(best)
                order.append(best)
                masks = [mask for mask in masks if not mask >> best & 1]
                masks.append(joined[best] & ~(1 << best))
            self._orders[whole] = order
        return self._orders[whole]

    def _cells(self, scope: int) -> float:
        return prod((float(self.sizes[u]) for u in bits(scope)), start=1.0)

    def _joined(
        self, near: list[tuple[int, Floats, int, int]], entry: int | None
    ) -> tuple[int, Floats, int, int]:
        """The product of tables with one entry summed out: mask, table, roundings, exponent."""
        joined = roundings = least = 0
        for mask, _, off, low in near:
            joined |= mask
            roundings += off + 1
            least += low
        axes = bits(joined)
        if prod(self.sizes[v] for v in axes) > MAX_TABLE_CELLS:
            raise TooLarge(
                f"the prior odds of an entry need more than {MAX_TABLE_CELLS:,} cells at once"
            )
        total = np.ones([self.sizes[v] for v in axes])
        for mask, table, _, _ in near:
            total *= _spread(table, bits(mask), axes)
        if entry is not None:
            total = np.asarray(total.sum(axis=axes.index(entry)))
            roundings += self.sizes[entry]
            joined &= ~(1 << entry)
        if least < LEAST_EXPONENT:
            raise TooLarge("the weights of the entries span more than float64 can hold")
        top = int(np.frexp(total.max())[1])
        return joined, np.ldexp(total, -top), roundings, least - top

    def surroundings(self, inside: int) -> Surroundings:
        """The effects of the tables that touch a set, with all but the extremes left out.

        The tables are put in groups that share no entry of the boundary: groups can be chosen
        from freely. A small group is one part, with one row for each possible state of its part
        of the boundary. In a large one, the states of the entries that its tables share are the
        cases; given these, each table is a part of its own.
        """
        if prod(self.sizes[v] for v in bits(inside)) > MAX_SUMMED_STATES:
            raise TooLarge(
                f"a set has more than {MAX_SUMMED_STATES:,} states; at most so many are summed"
            )
        touching = 0
        for v in bits(inside):
            touching |= self._touching[v]
        groups: list[tuple[int, list[int], list[Piece]]] = []
        for k in bits(touching):
            _join(groups, self._masks[k] & ~inside, [k], [])
        pieces, exact = self._possible(inside) if self._with_zeros else ((), True)
        for piece in pieces:
            _join(groups, piece[0], [], [piece])
        choices: list[list[tuple[int, ...]]] = []
        scopes: list[int] = []
        for outside, factors, allowed in groups:
            scope = 0
            for k in factors:
                scope |= self._masks[k]
            scope &= inside
            key = (tuple(factors), scope, tuple((mask, id(table)) for mask, table in allowed))
            if key not in self._groups:
                self._groups[key] = self._group(outside, scope, factors, allowed)
            cases, about = self._groups[key]
            choices.append(cases)
            scopes += about
        number = prod(len(cases) for cases in choices)
        if number > MAX_BOUNDARY_STATES:
            raise TooLarge("the tables on the boundary of a split share too many states")
        cases = [sum(case, ()) for case in product(*choices)]
        together = np.array(cases, dtype=np.int64).reshape(len(cases), len(scopes))
        store = self._messages
        roundings = depth = 0
        for numbers in together.T:
            distinct = set(numbers.tolist())
            roundings += max((store.roundings[k] for k in distinct), default=0) + 2
            depth += max((store.depth[k] for k in distinct), default=0)
        if -2 * depth < LEAST_EXPONENT:  # so that neither a sum nor a ratio of sums can overflow
            raise TooLarge("the weights of this split span more than float64 can hold")
        within = bits(inside)
        strides = np.zeros((len(scopes), len(within)), dtype=np.int64)
        for p, scope in enumerate(scopes):
            step = 1
            for place in range(len(within) - 1, -1, -1):
                if scope >> within[place] & 1:
                    strides[p, place] = step
                    step *= self.sizes[within[place]]
        sizes = np.array([self.sizes[v] for v in within], dtype=np.int64)
        free = np.ones(len(scopes), dtype=np.bool_)
        if len(together):
            free = (together != together[0]).any(axis=0) | store.several(together[0])
            free[-1] |= not free.any()
        return Surroundings(
            inside,
            within,
            sizes,
            np.ascontiguousarray(together[:, free]),
            together[:1, ~free].ravel(),
            np.concatenate([strides[free], strides[~free]]),
            roundings,
            exact,
        )

    def evaluate(
        self,
        around: Surroundings,
        entry: int,
        sides: Booleans,
        known: Floats,
        *,
        work: float = MAX_PAIR_WORK,
    ) -> tuple[Floats, Integers]:
        """``[pair]``: the largest log f_A / f_B, and what the number is worth (see ``ratios``).

        ``sides`` is ``[pair, side, value]``: which values of the entry are in A, and in B.

        PROVED: an upper bound, tight up to rounding. BEATEN: it is at least as large as the
        number ``known``, which is all that a search needs. UNKNOWN: it took more than ``work``; the
        number is a lower bound. −∞ says that side A cannot happen at all.
        """
        from takifugu.influence.network.ratios import BEATEN, CLOSER, largest

        sums = np.zeros((len(sides), 2))
        verdict = np.zeros(len(sides), dtype=np.int64)
        if not len(around.cases):  # no state of the boundary is possible
            return np.full(len(sides), -np.inf), verdict
        with np.errstate(over="ignore"):
            thresholds = np.exp(known)
        largest(
            self._messages.arrays(),
            around.cases,
            around.fixed,
            around.strides,
            around.sizes,
            around.within.index(entry),
            sides,
            thresholds,
            work,
            sums,
            verdict,
        )
        if (verdict == BEATEN).all():
            return known, verdict
        roundings = around.roundings + around.states + 8
        ratios = sums_ratio_up(sums[:, 0], sums[:, 1], roundings=roundings)
        return ratios + CLOSER, verdict

    def _group(
        self, outside: int, scope: int, factors: list[int], allowed: list[Piece]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """The cases of one group, each with its messages, and what these are about."""
        cells = prod(self.sizes[v] for v in bits(outside | scope))
        once = shared = 0
        for mask in (*(self._masks[k] for k in factors), *(mask for mask, _ in allowed)):
            shared |= once & mask
            once |= mask
        shared &= outside
        if cells <= MAX_FLAT_CELLS or (len(factors) == 1 and not allowed):
            made = self._table(outside, scope, factors, allowed)
            return ([(self._messages.keep(made),)] if len(made.rows) else []), [scope]
        fixed = bits(shared)
        sizes = [self.sizes[v] for v in fixed]
        if prod(sizes) > MAX_BOUNDARY_STATES:
            raise TooLarge("the tables on the boundary of a split share too many states")
        pieces = []
        for at in np.ndindex(*sizes):
            value = dict(zip(fixed, at, strict=True))
            # entries of a constraint lie on the boundary, where a table has them too: all shared
            if not all(truth[tuple(value[v] for v in bits(mask))] for mask, truth in allowed):
                continue
            case = tuple(self._slice(k, value, scope) for k in factors)
            if -1 not in case:
                pieces.append(case)
        return pieces, [self._masks[k] & scope for k in factors]

    def _table(self, outside: int, scope: int, factors: list[int], allowed: list[Piece]) -> Message:
        """All states of a group at once."""
        around, within = bits(outside), bits(scope)
        shape = tuple(self.sizes[v] for v in (*around, *within))
        if prod(shape) > MAX_TABLE_CELLS:
            raise TooLarge(f"the boundary of a split needs more than {MAX_TABLE_CELLS:,} cells")
        table, least = np.ones(shape), 0
        for k in factors:
            least += _lowest(self._tables[k])
            table *= _spread(self._tables[k], self._scopes[k], (*around, *within))
        rows = table.reshape(prod(shape[: len(around)]), -1)
        if allowed:
            possible = np.ones(shape[: len(around)], dtype=np.bool_)
            for mask, truth in allowed:
                possible &= _spread(truth, bits(mask), around)
            rows = rows[possible.ravel()]
        return message(rows, roundings=len(factors) - 1, least=least)

    def _slice(self, k: int, value: dict[int, int], scope: int) -> int:
        """Table k where the shared entries have these values; −1 if that cannot happen."""
        at = tuple(value.get(v, -1) for v in self._scopes[k])
        key = (k, at, scope & self._masks[k])
        known = self._slices.get(key)
        if known is None:
            part = self._tables[k][tuple(value.get(v, slice(None)) for v in self._scopes[k])]
            left = [v for v in self._scopes[k] if v not in value]
            within = sorted(v for v in left if scope >> v & 1)
            around = [v for v in left if not scope >> v & 1]
            rows = part.transpose([left.index(v) for v in (*around, *within)])
            rows = rows.reshape(-1, prod(self.sizes[v] for v in within))
            made = message(rows, roundings=0, least=_lowest(self._tables[k]))
            known = self._messages.keep(made) if len(made.rows) else -1
            self._slices[key] = known
        return known

    def _possible(self, inside: int) -> tuple[tuple[Piece, ...], bool]:
        """Which states of the boundary the tables with zeros that do not touch the set allow."""
        edge = self.boundary(inside)
        groups: list[tuple[int, list[int], list[Piece]]] = []
        for k in self._with_zeros:
            if not self._masks[k] & inside:
                _join(groups, self._masks[k] & ~edge, [k], [])
        found: list[Piece] = []
        exact = True
        for _, factors, _ in groups:
            scope = 0
            for k in factors:
                scope |= self._masks[k]
            if not scope & edge:
                continue
            key = (tuple(factors), scope & edge)
            if key not in self._pieces:
                self._pieces[key] = self._allowed(factors, scope & edge)
            pieces, complete = self._pieces[key]
            found += pieces
            exact = exact and complete
        return tuple(found), exact

    def _allowed(self, factors: list[int], keep: int) -> tuple[tuple[Piece, ...], bool]:
        """Eliminate all entries but ``keep`` from "all of these tables are positive"."""
        pool: list[Piece] = [
            (self._masks[k], _spread(self._tables[k] > 0, self._scopes[k], bits(self._masks[k])))
            for k in factors
        ]
        exact = True
        while True:
            pool = [(mask, truth) for mask, truth in pool if not truth.all()]
            scope = 0
            for mask, _ in pool:
                scope |= mask
            rest = bits(scope & ~keep)
            if not rest:
                return tuple(pool), exact
            joined = dict.fromkeys(rest, 0)
            for mask, _ in pool:
                for v in rest:
                    if mask >> v & 1:
                        joined[v] |= mask
            v = min(rest, key=lambda u: prod(self.sizes[w] for w in bits(joined[u])))
            union = bits(joined[v])
            near = [piece for piece in pool if piece[0] >> v & 1]
            pool = [piece for piece in pool if not piece[0] >> v & 1]
            if prod(self.sizes[w] for w in union) > MAX_CONSTRAINT_CELLS:
                exact = False  # the constraint is dropped: more states count than can happen
                continue
            truth = np.ones(tuple(self.sizes[w] for w in union), dtype=np.bool_)
            for mask, table in near:
                truth &= _spread(table, bits(mask), union)
            left: Booleans = np.asarray(truth.any(axis=union.index(v)))
            pool.append((joined[v] & ~(1 << v), left))


def _lowest(table: Floats) -> int:
    """A binary exponent below every positive cell."""
    return int(np.frexp(table[table > 0].min())[1]) - 1


def _join(
    groups: list[tuple[int, list[int], list[Piece]]],
    mask: int,
    factors: list[int],
    pieces: list[Piece],
) -> None:
    """Add factors and pieces over ``mask`` to ``groups``, joining groups that they connect."""
    apart = []
    for group in groups:
        if group[0] & mask:
            mask |= group[0]
            factors = sorted(group[1] + factors)
            pieces = group[2] + pieces
        else:
            apart.append(group)
    apart.append((mask, factors, pieces))
    groups[:] = apart


def _spread(table: _T, scope: Sequence[int], onto: Sequence[int]) -> _T:
    """``table`` over ``scope`` with its axes put in the places of ``onto``, ready to broadcast."""
    order = sorted(range(len(scope)), key=lambda k: onto.index(scope[k]))
    size = {v: table.shape[k] for k, v in enumerate(scope)}
    return table.transpose(order).reshape([size.get(v, 1) for v in onto])
