r"""The transport bound of a Markov chain of finite length, entry by entry.

Let :math:`F_i(x,y)` bound :math:`\log E[h|X_i=x]/E[h|X_i=y]` over all h of the entries after i
that a mechanism with the costs :math:`c_j` allows, :math:`h \le e^{c_j(u,v)} h'` if entry j alone
changes, and :math:`B_i` the same for the entries before i. Past and future are independent given
X_i, so the pair (x, y) at entry i loses at most

.. math:: c_i(x,y) + F_i(x,y) + B_i(x,y), \qquad F_i = T(P_i;\ c_{i+1} + F_{i+1}),\quad F_{T}=0,

where T is the transport between rows x and y (`takifugu.translation.chain.transport_steps`), and B
runs the other way with the rows P(X_{i−1} | X_i). *Proof.* φ(u) = E[h | X_{i+1} = u] obeys
:math:`φ(u) \le e^{c_{i+1}(u,v) + F_{i+1}(u,v)} φ(v)`: change entry i + 1 first, then the law of the
entries after it. E[h | X_i = x] is the mean of φ over row x. ∎ A scalar loss is the cost
:math:`c_i = ε_i[u≠v]`. Entries may carry different costs; 0 means that one was not queried.

Long stretches in which nothing changes are not walked one by one. T is monotone, and adding a
constant s to F adds at most s to T(F); so if T(F) ≤ F + r then T^n(F) ≤ F + n·r. When n·r is
negligible the stretch is done. Otherwise an F′ ≥ F with T(F′) ≤ F′ bounds all that is left of it
(`takifugu.translation.chain.fixed_point`).

Backward rows change with the law of the entry, so they are walked with it, and held where they no
longer change. Both are paid for in ``slack``, the rounding of a step's rows:

* Rows within a factor of 1 ± `HELD` of the first ones of a stretch are taken to be those: the
  log-ratio of two expectations changes by 2·`HELD`.
* If n more steps change no *ratio* of two probabilities by more than e^{n·drift} (see
  `takifugu.translation.chain.entry_laws.Law.drift`), the rows stay within that factor too, and
  2n·drift pays for it. The drift is relative: a law that is small but falls is not stationary.
* What is at most p in a row adds at most p·e^c to E[g], as a share, where c is the most that g may
  vary: at most the sum S of all dearest changes, by group privacy. So an entry below e^{−S}·2⁻⁶⁰/m
  is taken to be 0, and a unit pays for all of them. (A cost above `LARGE` needs no rows.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT, up
from takifugu.errors import InvalidPrior
from takifugu.numeric import Booleans, Floats, Integers, distribution, frozen
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import (
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.chain.fixed_point import fixed_point, fixed_rows
from takifugu.translation.chain.transport_steps import (
    LARGE,
    Couplings,
    bound,
    closed,
    improve,
    off_diagonal,
)

STILL = 1e-7  # a smaller relative change counts as none
NOTHING = 1e-10  # and so does a smaller absolute change
PATIENCE = 40  # steps of a stretch that are taken one by one before the others are bounded at once
STILL_LAW = 1e-9  # total relative drift of a law over the part of a stretch that it is held
LASTING = 10_000  # steps of a long stretch that a law is held for, at least
HELD = 1e-12  # rows that differ relatively by no more than this are taken to be the same
PIECES = 64  # in which a stretch that never settles is bounded by a straight line, at least
NUMBERS = 20_000  # that the tables of such pieces may hold, where more of them are possible


@dataclass(frozen=True, eq=False)
class ChainLosses:
    """Upper bounds on the Pufferfish loss of every pair (X_i = x, X_i = y) of a finite chain.

    Attributes:
        charged: What a change of each entry costs.
        forward: The different tables ``[x, y]`` of what the entries after one reveal.
        forward_at: ``[i]``: which of them holds at entry i.
        backward: The same for the entries before.
        backward_at: ``[i]``: which of them holds at entry i.
        possible: The different sets ``[x]`` of states that can happen.
        possible_at: ``[i]``: which of them holds at entry i.
        laws: The different laws of an entry, each with its rounding.
        law_at: ``[i]``: which of them holds at entry i.
        by_entry: ``[i]``: the largest loss at entry i, over pairs of possible states.
    """

    charged: CostLevels
    forward: tuple[Floats, ...]
    forward_at: Integers
    backward: tuple[Floats, ...]
    backward_at: Integers
    possible: tuple[Booleans, ...]
    possible_at: Integers
    laws: tuple["HeldLaw", ...]
    law_at: Integers
    by_entry: Floats

    def at(self, entry: int) -> Floats:
        """``[x, y]``: the loss of each pair at ``entry``; −∞ for a pair that cannot happen."""
        return _combined(
            self.charged.cost(entry),
            self.forward[self.forward_at[entry]],
            self.backward[self.backward_at[entry]],
            self.possible[self.possible_at[entry]],
        )

    @property
    def loss(self) -> float:
        """The largest loss of all."""
        return float(self.by_entry.max())

    @property
    def worst(self) -> tuple[int, int, int]:
        """The entry i and the states x, y with the largest loss."""
        entry = int(np.argmax(self.by_entry))
        table = self.at(entry)
        x, y = np.unravel_index(int(np.argmax(table)), table.shape)
        return entry, int(x), int(y)


def chain_losses(
    transitions: ArrayLike | Sequence[ArrayLike],
    charged: ArrayLike | CostLevels,
    *,
    start: ArrayLike | None = None,
) -> ChainLosses:
    """Bound the loss at every entry of a chain whose entry i was ``charged`` its own ε or cost.

    ``transitions`` is one matrix, or one for each step from an entry to the next. Without
    ``start``, the law of the first entry, the chain is stationary, with one matrix.
    """
    entries = len(charged) if isinstance(charged, CostLevels) else np.size(charged)
    matrices = _matrices(transitions, entries - 1)
    size = len(matrices[0])
    spent = (
        charged
        if isinstance(charged, CostLevels)
        else CostLevels.of_losses(charged, off_diagonal(size))
    )
    ahead = [
        _Stretch(matrix, spent.matrices[level], row_slack(size), count)
        for matrix, level, count in _runs(matrices[::-1], spent.at[:0:-1])
    ]
    forward, forward_at = _walk(ahead, size)
    behind, sets, set_at, laws, law_at = _behind(matrices, spent, start)
    backward, backward_at = _walk(behind, size)
    forward_at = forward_at[::-1].copy()
    shape = (len(forward), len(backward), len(sets), len(spent.matrices))
    codes = np.ravel_multi_index((forward_at, backward_at, set_at, spent.at), shape)
    kinds, kind_at = np.unique(codes, return_inverse=True)
    worst = [
        _combined(spent.matrices[c], forward[f], backward[b], sets[s]).max(initial=0.0)
        for f, b, s, c in zip(*np.unravel_index(kinds, shape), strict=True)
    ]
    return ChainLosses(
        *(spent, forward, forward_at, backward, backward_at, sets, set_at, laws, law_at),
        by_entry=frozen(np.array(worst)[kind_at]),
    )


@dataclass(frozen=True, eq=False)
class HeldLaw:
    """The law of some entries, and what rounding and holding it can do to a log-ratio."""

    law: Law
    slack: float


@dataclass(frozen=True)
class _Stretch:
    """``count`` equal steps: rows, the cost of the entry stepped to, the rounding of the rows."""

    rows: Floats
    cost: Floats
    slack: float
    count: int


def _matrices(transitions: ArrayLike | Sequence[ArrayLike], steps: int) -> list[Floats]:
    """One matrix for each step; equal ones are the same object."""
    given = transitions if isinstance(transitions, list | tuple) else np.asarray(transitions)
    single = np.ndim(given[0]) <= 1 if len(given) else True
    if single:
        return [transition_rows(np.asarray(given))] * max(steps, 1)
    if len(given) != steps:
        raise InvalidPrior(
            "transitions",
            given=f"has {len(given)} matrices for {steps + 1} entries",
            needed="have one matrix fewer than entries, or be a single matrix",
            reason="count",
        )
    known: dict[bytes, Floats] = {}
    matrices = []
    for matrix in given:
        rows = transition_rows(np.asarray(matrix), "transitions")
        matrices.append(known.setdefault(rows.tobytes(), rows))
    if len({rows.shape for rows in matrices}) > 1:
        raise InvalidPrior("transitions", given="differ in size", needed="share their states")
    return matrices


def _runs(matrices: Sequence[Floats], levels: Integers) -> Iterator[tuple[Floats, int, int]]:
    """Stretches of the same matrix and the same cost."""
    changed = levels[1:] != levels[:-1]
    if len({id(matrix) for matrix in matrices}) > 1:
        changed |= np.array([a is not b for a, b in pairwise(matrices)], dtype=np.bool_)
    cuts = (np.flatnonzero(changed) + 1).tolist()
    for begin, end in pairwise([0, *cuts, len(levels)]):
        if end > begin:
            yield matrices[begin], int(levels[begin]), end - begin


def _behind(
    matrices: list[Floats], spent: CostLevels, start: ArrayLike | None
) -> tuple[list[_Stretch], tuple[Booleans, ...], Integers, tuple[HeldLaw, ...], Integers]:
    """The backward stretches; which states can happen at each entry, and its law."""
    size, steps = len(matrices[0]), len(spent) - 1
    if start is None:
        if any(matrix is not matrices[0] for matrix in matrices):
            raise InvalidPrior(
                "start",
                given="is missing",
                needed="be the law of the first entry: rows change",
                reason="missing",
            )
        law = recurrent_law(matrices[0])
        back, possible = backward_rows(matrices[0], law)
        stretches = [
            _Stretch(back, spent.matrices[level], law_slack(size), count)
            for _, level, count in _runs(matrices, spent.at[:-1])
        ]
        alike = np.zeros(steps + 1, dtype=np.int64)
        return stretches, (possible,), alike, (HeldLaw(Law.of(law), law_slack(size)),), alike
    given = distribution(start, "start", InvalidPrior)
    if given.shape != (size,):
        raise InvalidPrior(
            "start",
            given=f"has shape {given.shape}",
            needed=f"have one entry for {size} states",
            reason="shape",
        )
    total = min(float(spent.dearest.sum()), LARGE)
    walk = _LawWalk(Law.of(given), faint=np.exp(-total) * 2.0**-60 / size)
    for matrix, level, count in _runs(matrices, spent.at[:-1]):
        walk.along(matrix, spent.matrices[level], count)
    set_at = np.repeat(np.arange(len(walk.sets)), walk.lasts)
    law_at = np.repeat(np.arange(len(walk.laws)), walk.law_lasts)
    return walk.stretches, tuple(walk.sets), set_at, tuple(walk.laws), law_at


class _LawWalk:
    """The backward stretches of a chain that begins somewhere, and what can happen meanwhile."""

    def __init__(self, law: Law, faint: float) -> None:
        self._law, self._faint = law, faint
        self._held = 0.0  # what holding rows has done to the law so far
        self.stretches: list[_Stretch] = []
        self.sets: list[Booleans] = [law.possible]
        self.lasts = [1]  # for how many entries each of them holds
        self.laws = [HeldLaw(law, law.slack)]
        self.law_lasts = [1]

    def along(self, rows: Floats, cost: Floats, count: int) -> None:
        """Take ``count`` equal steps."""
        left, first = count, True
        while left:
            back, after = self._law.back(rows)
            back[back < self._faint] = 0.0
            drift = self._law.drift(after)
            still = int(STILL_LAW / drift)
            taken = min(left, still) if still >= min(left, LASTING) else 1
            self._held += 2 * taken * drift if taken > 1 else 0.0
            slack = self._law.slack + self._held + UNIT
            if not first and _alike(back, self.stretches[-1].rows, after.possible):
                known = self.stretches.pop()
                slack = max(known.slack, slack + 2 * HELD * (1 + HELD))
                self.stretches.append(_Stretch(known.rows, cost, slack, known.count + taken))
            else:
                self.stretches.append(_Stretch(back, cost, slack, taken))
            if np.array_equal(after.possible, self.sets[-1]):
                self.lasts[-1] += taken
            else:
                self.sets.append(after.possible)
                self.lasts.append(taken)
            self.laws.append(HeldLaw(after, after.slack + self._held + UNIT))
            self.law_lasts.append(taken)
            left, first, self._law = left - taken, False, after


def _alike(rows: Floats, held: Floats, needed: Booleans) -> bool:
    """Whether the rows that are needed are the held ones, up to `HELD`."""
    one, other = rows[needed], held[needed]
    return bool((np.abs(one - other) <= 0.5 * HELD * other).all())


def _walk(stretches: Sequence[_Stretch], size: int) -> tuple[tuple[Floats, ...], Integers]:
    """Step through the stretches from 0: the different tables, and which one follows each step."""
    tables = [frozen(np.zeros((size, size)))]
    at = np.zeros(1 + sum(stretch.count for stretch in stretches), dtype=np.int64)
    couplings: Couplings | None = None
    place = 0
    for stretch in stretches:
        left = stretch.count
        while left:
            last = tables[-1]
            value, couplings = _step(stretch, last, couplings)
            tables.append(frozen(value))
            place, left = place + 1, left - 1
            at[place] = len(tables) - 1
            if not left:
                break
            rise = max(float((value - last).max()), 0.0)
            still = STILL * float(value.max()) + NOTHING
            if float((last - value).max()) > still:  # it falls: T(F) ≤ F + rise, so hold it a while
                walked = stretch.count - left
                held = min(left, walked // 8 if walked >= 10 * PATIENCE else 0)
                if held:
                    tables.append(frozen(up(value + held * rise * off_diagonal(size))))
                    at[place + 1 : place + held + 1] = len(tables) - 1
                    place, left = place + held, left - held
                continue
            if left * rise <= still:
                tables.append(frozen(up(value + left * rise * off_diagonal(size))))
            elif stretch.count - left >= PATIENCE and left > PATIENCE:
                tables.extend(_remainder(stretch, value, couplings, rise, left))
            else:
                continue
            added = len(tables) - 1 - at[place]
            at[place + 1 : place + left + 1] = at[place] + 1 + np.arange(left) * added // left
            place, left = place + left, 0
    return tuple(tables), at


def _step(
    stretch: _Stretch, last: Floats, couplings: Couplings | None
) -> tuple[Floats, Couplings | None]:
    """One certified step, and the couplings that prove it."""
    unit = off_diagonal(len(last))
    cost = closed(stretch.cost + last)
    dearest = float(cost.max())  # every coupling costs at most its dearest move
    if not 0 < dearest < LARGE:
        return dearest * unit, couplings
    rows = stretch.rows
    _, found = improve(rows, rows, cost, guess=last, known=couplings)
    proven = bound(rows, rows, cost, found) + stretch.slack * unit
    return np.minimum(proven, dearest * unit), found


def _remainder(
    stretch: _Stretch,
    value: Floats,
    couplings: Couplings | None,
    rise: float,
    left: int,
) -> list[Floats]:
    """Tables that bound what is left of a stretch which is at ``value`` and still rises."""
    unit = off_diagonal(len(value))
    if couplings is not None:
        settled = fixed_point(
            *(fixed_rows(stretch.rows), stretch.cost),
            slack=stretch.slack,
            above=value,
            known=couplings,
            with_lower=False,
        ).upper
        if settled.max() <= value.max() + left * rise:
            return [frozen(settled)]
    pieces = min(left, max(PIECES, NUMBERS // value.size))
    ends = np.ceil(left * np.arange(1, pieces + 1) / pieces)
    return [frozen(up(value + end * rise * unit)) for end in ends]


def _combined(own: Floats, forward: Floats, backward: Floats, possible: Booleans) -> Floats:
    """``[x, y]``: own + F + B, rounded up; −∞ where x or y cannot happen, 0 where they are one."""
    total = up(own + forward + backward)
    total[~possible, :] = -np.inf
    total[:, ~possible] = -np.inf
    np.fill_diagonal(total, np.where(possible, 0.0, -np.inf))
    return total
