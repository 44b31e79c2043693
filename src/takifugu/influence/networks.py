r"""What the entries outside a set H can tell about a secret inside it, by exact elimination.

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
"""

from collections.abc import Sequence
from math import prod
from typing import TypeVar

import numpy as np

from takifugu.errors import TooLarge
from takifugu.influence.messages import ROOM, Message, message, times, without
from takifugu.numeric import Booleans, Floats, gamma, log_ratio_up
from takifugu.priors.factors import FactorModel, neighbours

KEPT = 400_000  # messages kept before the store is emptied and filled anew
SMALL = 2**14  # cells of a table of possible states before its constraint is dropped

_T = TypeVar("_T", Floats, Booleans)
Side = tuple[int, ...]
Piece = tuple[int, Booleans]  # entries, as a bit mask, and which of their states are possible


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


class Elimination:
    """Evaluates sets of one model; everything computed once is kept and shared.

    Sets of entries are bit masks. Messages are kept by what they were made from, so sets, and
    secrets, that have a region in common share its messages. A ``thin`` elimination keeps
    that many alternatives of each message only: quick, and a lower bound.
    """

    def __init__(self, model: FactorModel, *, thin: int = 0) -> None:
        self.thin = thin
        self.sizes = tuple(len(states) for states in model.states)
        self.around = tuple(sum(1 << j for j in near) for near in neighbours(model))
        factors = model.factors()
        self._scopes = [factor.scope for factor in factors]
        self._tables = [factor.table for factor in factors]
        self._masks = [sum(1 << v for v in scope) for scope in self._scopes]
        self._touching: list[int] = [0] * len(self.sizes)  # entry -> bit mask of factors
        for k, scope in enumerate(self._scopes):
            for v in scope:
                self._touching[v] |= 1 << k
        self._with_zeros = [k for k, table in enumerate(self._tables) if not table.all()]
        self._pieces: dict[tuple[tuple[int, ...], int], tuple[tuple[Piece, ...], bool]] = {}
        self._forget()

    def _forget(self) -> None:
        self._messages: list[Message] = []
        self._groups: dict[object, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._sums: dict[tuple[int, int], int] = {}

    def boundary(self, inside: int) -> int:
        """The neighbours of a set."""
        found = 0
        for v in bits(inside):
            found |= self.around[v]
        return found & ~inside

    def part(self, inside: int, entry: int) -> int:
        """The connected part of a set that holds ``entry``."""
        found = front = 1 << entry
        while front:
            near = 0
            for v in bits(front):
                near |= self.around[v]
            front = near & inside & ~found
            found |= front
        return found

    def evaluate(
        self, inside: int, entry: int, sides: Sequence[tuple[Side, Side]]
    ) -> tuple[Floats, bool]:
        """``[pair]``: an upper bound, tight up to rounding, on the largest log f_A / f_B.

        If the elimination is thin, a lower bound on the same (up to the same rounding).

        ``inside`` is connected and holds ``entry``. The flag says whether states of the boundary
        that cannot happen were all left out; if not, the numbers may be too high. −∞ says that
        side A cannot happen at all.
        """
        if len(self._messages) > KEPT:
            self._forget()
        law = self._messages[self._law(inside, entry)]
        weights = law.table.reshape(len(law.table), -1)
        best = np.empty(len(sides))
        error = gamma(law.roundings + max(self.sizes))
        for k, (a, b) in enumerate(sides):
            top = weights[:, a[0]] if len(a) == 1 else weights[:, list(a)].sum(axis=1)
            base = weights[:, b[0]] if len(b) == 1 else weights[:, list(b)].sum(axis=1)
            found = log_ratio_up(top, base, error=error)
            best[k] = found.max() if found.size else -np.inf
        return best, law.exact

    def _law(self, inside: int, entry: int) -> int:
        """The message about ``entry`` alone: everything else inside is summed out."""
        pool = self._start(inside)
        left = inside & ~(1 << entry)
        while left:
            v = self._next(pool, left)
            left &= ~(1 << v)
            bit = 1 << v
            near = [(mask.bit_count(), number) for number, mask in pool if mask & bit]
            pool = [(number, mask) for number, mask in pool if not mask & bit]
            made = self._sum(self._multiply(sorted(near)), v)
            scope = sum(1 << u for u in self._messages[made].scope)
            pool.append((made, scope))
        return self._multiply(sorted((mask.bit_count(), number) for number, mask in pool))

    def _next(self, pool: list[tuple[int, int]], left: int) -> int:
        """The entry whose removal makes the smallest table; the lowest of them in a tie."""
        best, least = -1, float("inf")
        for v in bits(left):
            bit, joined, size = 1 << v, 0, 1.0
            for number, mask in pool:
                if mask & bit:
                    joined |= mask
                    size *= max(1, len(self._messages[number].table))
            for u in bits(joined):
                size *= self.sizes[u]
            if size < least:
                best, least = v, size
        return best

    def _multiply(self, near: list[tuple[int, int]]) -> int:
        """The product of messages, small scopes first; each partial product is kept."""
        numbers = [number for _, number in near]
        total = numbers[0]
        for number in numbers[1:]:
            known = self._products.get((total, number))
            if known is None:
                known = self._keep(times(self._messages[total], self._messages[number], self.sizes))
                self._products[total, number] = known
            total = known
        return total

    def _sum(self, number: int, entry: int) -> int:
        known = self._sums.get((number, entry))
        if known is None:
            known = self._keep(without(self._messages[number], entry, self.sizes))
            self._sums[number, entry] = known
        return known

    def _keep(self, made: Message) -> int:
        self._messages.append(made)
        return len(self._messages) - 1

    def _start(self, inside: int) -> list[tuple[int, int]]:
        """The tables that touch the set, in groups that share no entry of the boundary.

        Groups can then be chosen from freely. Each becomes a message over the entries inside,
        with one alternative for each possible state of its part of the boundary.
        """
        touching = 0
        for v in bits(inside):
            touching |= self._touching[v]
        groups: list[tuple[int, list[int], list[Piece]]] = []
        for k in bits(touching):
            _join(groups, self._masks[k] & ~inside, [k], [])
        pieces, exact = self._possible(inside) if self._with_zeros else ((), True)
        for piece in pieces:
            _join(groups, piece[0], [], [piece])
        pool = []
        for outside, factors, allowed in groups:
            scope = 0
            for k in factors:
                scope |= self._masks[k]
            scope &= inside
            key = (tuple(factors), scope, tuple((mask, id(table)) for mask, table in allowed))
            known = self._groups.get((key, exact))
            if known is None:
                known = self._keep(self._group(outside, scope, factors, allowed, exact))
                self._groups[key, exact] = known
            pool.append((known, scope))
        return pool

    def _group(
        self, outside: int, scope: int, factors: list[int], allowed: list[Piece], exact: bool
    ) -> Message:
        """One message from a group of tables: all possible states of its part of the boundary.

        Given the entries of the boundary that several tables share, the others can be chosen for
        each table on its own; so each is thinned out before they are multiplied.
        """
        once = shared = 0
        for mask in (*(self._masks[k] for k in factors), *(mask for mask, _ in allowed)):
            shared |= once & mask
            once |= mask
        shared &= outside
        cells = prod(self.sizes[v] for v in bits(outside | scope))
        states = prod(self.sizes[v] for v in bits(shared))
        small = cells <= (ROOM if self.thin else SMALL // 16)
        if small or states == prod(self.sizes[v] for v in bits(outside)):
            rows, least = self._table(outside, scope, factors, allowed)
            count = len(factors) - 1
        else:
            rows, least, count = self._conditional(shared, scope, factors, allowed)
        return message(
            tuple(bits(scope)), rows, roundings=count, least=least, exact=exact, thin=self.thin
        )

    def _table(
        self, outside: int, scope: int, factors: list[int], allowed: list[Piece]
    ) -> tuple[Floats, int]:
        """All states at once: ``[state, …]``, and an exponent below its positive cells."""
        around, within = bits(outside), bits(scope)
        shape = tuple(self.sizes[v] for v in (*around, *within))
        if prod(shape) > ROOM:
            raise TooLarge(f"the boundary of a split needs more than {ROOM:,} cells")
        table, least = np.ones(shape), 0
        for k in factors:
            least += _lowest(self._tables[k])
            table *= _spread(self._tables[k], self._scopes[k], (*around, *within))
        rows = table.reshape(prod(shape[: len(around)]), *shape[len(around) :])
        if allowed:
            possible = np.ones(shape[: len(around)], dtype=np.bool_)
            for mask, truth in allowed:
                possible &= _spread(truth, bits(mask), around)
            rows = rows[possible.ravel()]
        return rows, least

    def _conditional(
        self, shared: int, scope: int, factors: list[int], allowed: list[Piece]
    ) -> tuple[Floats, int, int]:
        """The same, one state of the shared entries after another, with the roundings."""
        fixed = bits(shared)
        sizes = [self.sizes[v] for v in fixed]
        if prod(sizes) * len(factors) > SMALL:
            raise TooLarge("the tables on the boundary of a split share too many states")
        found: list[Message] = []
        for at in np.ndindex(*sizes):
            value = dict(zip(fixed, at, strict=True))
            # entries of a constraint lie on the boundary, where a table has them too: all shared
            if not all(truth[tuple(value[v] for v in bits(mask))] for mask, truth in allowed):
                continue
            total: Message | None = None
            for k in sorted(factors, key=lambda k: (self._masks[k] & scope).bit_count()):
                one = self._slice(k, value, scope)
                total = one if total is None else times(total, one, self.sizes)
            if total is not None and len(total.table):
                found.append(_onto(total, bits(scope), self.sizes))
        if not found:
            return np.zeros((0, *(self.sizes[v] for v in bits(scope)))), 0, 0
        rows = np.concatenate([one.table for one in found])  # rays: their lengths do not matter
        return rows, min(one.least for one in found), max(one.roundings for one in found)

    def _slice(self, k: int, value: dict[int, int], scope: int) -> Message:
        """Table k where the shared entries have these values."""
        at = tuple(value.get(v, slice(None)) for v in self._scopes[k])
        part = self._tables[k][at]
        left = [v for v in self._scopes[k] if v not in value]
        within = sorted(v for v in left if scope >> v & 1)
        around = [v for v in left if not scope >> v & 1]
        rows = part.transpose([left.index(v) for v in (*around, *within)])
        rows = rows.reshape(-1, *(self.sizes[v] for v in within))
        return message(
            tuple(within), rows, roundings=0, least=_lowest(self._tables[k]), thin=self.thin
        )

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
            if prod(self.sizes[w] for w in union) > SMALL:
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


def _onto(one: Message, within: list[int], sizes: tuple[int, ...]) -> Message:
    """The message over all entries ``within``, the same for every value of those it lacks."""
    shape = tuple(sizes[v] for v in within)
    view = one.table.reshape(-1, *(sizes[v] if v in one.scope else 1 for v in within))
    table = np.broadcast_to(view, (len(view), *shape))
    return Message(tuple(within), table, one.roundings, one.least, one.exact, one.thin)


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
