r"""Laws and backward kernels of a chain, with a bound on what rounding did to them.

The law of a late entry may be smaller than any float although the state can happen: from the
first state of [[.5, .5], [0, 1]] it is still there after n steps with probability 2⁻ⁿ. So two
things are kept apart. *Which states can happen* is walked as a set: u leads to x if u can happen
and P(u, x) > 0; no law is needed. *How likely they are* is walked with an exponent of its own for
every state (`Law`), an integer without bounds.

**Rounding of a walked law.** Let m be the number of states and u the unit roundoff. One step is a
sum of m products with rows that were divided by their sums: each entry gains a relative error of
at most 2m units. After i steps it has at most η = 2m·i·u (up to u², and up to a factor common to
all entries, which the next line does not see). A backward row divides such an entry, times an
entry of P, by a sum of the same: its relative error is at most 2η + (3m + 2)·u. An expectation of
g > 0 under it has the same relative error, and the logarithm of a ratio of two expectations at
most twice that: (8m·i + 6m + 4)·u, which `Law.slack` covers.

**Terms too small to be kept.** A term 2⁻¹⁰⁰⁰ times the largest of its sum is left out of it;
a backward row's entry below `NEGLIGIBLE` = 2⁻⁹⁶⁰ becomes 0. If g(u) ≤ e^c·g(v) for all u, v, then
what is left out changes E[g] by a share of at most m·2⁻⁹⁶⁰·e^c: below m·2⁻⁹⁰ for c ≤ 600, the most
that anything here exponentiates. All other entries are normal floats, far from underflow.

**Rows that are held** (`LawWalk`). Backward rows change with the law of the entry, so they are
walked with it, and held where they no longer change. Both are paid for in ``slack``:

* Rows within a factor of 1 ± `HELD` of the first ones of a stretch are taken to be those: the
  log-ratio of two expectations changes by 2·`HELD`.
* If n more steps change no *ratio* of two probabilities by more than e^{n·drift} (`Law.drift`), the
  rows stay within that factor too, and 2n·drift pays for it. The drift is relative: a law that is
  small but falls is not stationary.
* What is at most p in a row adds at most p·e^c to E[g], as a share, where c is the most that g may
  vary: at most the sum S of all dearest changes, by group privacy. So an entry below e^{−S}·2⁻⁶⁰/m
  is taken to be 0, and a unit pays for all of them. (A cost above `LARGE` needs no rows.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Booleans, Floats, Integers, distribution
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidPrior
from takifugu.priors.markov import reachable, stationary_law
from takifugu.translation.certify.flow import LARGE, NEGLIGIBLE, Stretch

NEGLIGIBLE_SHIFT = -1000  # a term this many powers of 2 below the largest is not added to it
STILL_LAW = 1e-9  # total relative drift of a law over the part of a stretch that it is held
MIN_HELD_STEPS = 10_000  # steps of a long stretch that a law is held for, at least
HELD = 1e-12  # rows that differ relatively by no more than this are taken to be the same
IMPOSSIBLE_EXPONENT = np.iinfo(np.int64).min // 4  # the exponent of what cannot happen


def transition_rows(transition: ArrayLike, field: str = "transition") -> Floats:
    """A square matrix of distributions, each divided by its sum."""
    rows = distribution(transition, field, InvalidPrior)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise InvalidPrior(
            field, given=f"has shape {rows.shape}", needed="be square", reason="shape"
        )
    return np.ascontiguousarray(rows / rows.sum(axis=1, keepdims=True))


def row_slack(states: int) -> float:
    """What dividing two rows by their sums can do to a log-ratio of expectations under them."""
    return 4 * (states + 8) * UNIT


def law_slack(states: int) -> float:
    """The same for backward rows made with `recurrent_law`.

    Every entry of the law has a relative error of at most m²(m + 4) + 2m(m + 1) units (see
    `takifugu.priors.markov`); a backward row divides two of them.
    """
    return 16 * (states + 2) ** 3 * UNIT


def conditioned_slack(states: int, entries: int) -> float:
    """What rounding can do to a log-ratio of a chain that some entries are known of.

    The laws of its entries and its rows are products of so many rows, divided by their sums
    (Doob's transform): each has a relative error of 4(m + 4)(n + 2) units at most, for each entry
    in turn, of which a ratio sees twice as much from either side.
    """
    return 16 * (entries + 2) ** 2 * (states + 4) * UNIT


def recurrent_law(rows: Floats) -> Floats:
    """The stationary law of a chain in which every state leads to every other one.

    Its relative error is far below `law_slack`: rows are within (m + 1) units of what they were.
    """
    if not reachable(rows > 0).all():
        raise InvalidPrior(
            "transition",
            given="does not lead from every state to every other one",
            needed="do so for a stationary chain; give `start` if it begins somewhere",
            reason="recurrence",
        )
    return stationary_law(rows, entry_error=(len(rows) + 1) * UNIT)[0]


@dataclass(frozen=True, eq=False)
class Law:
    """The law of an entry, whose probabilities may be smaller than any float.

    Attributes:
        mantissa: ``[x]``: from 1/2 to 1; 0 where x cannot happen.
        exponent: ``[x]``: the probability is mantissa · 2^exponent, up to a common factor.
        possible: ``[x]``: whether x can happen. Decided by the zeros of the rows alone.
        steps: How many steps were walked to get here.
    """

    mantissa: Floats
    exponent: Integers
    possible: Booleans
    steps: int = 0

    @classmethod
    def from_floats(cls, law: Floats) -> "Law":
        """A law that is given as floats, each of them exact."""
        mantissa, exponent = np.frexp(law)
        return cls(mantissa, exponent.astype(np.int64), law > 0)

    @property
    def slack(self) -> float:
        """What rounding can do to a log-ratio of expectations under backward rows from here."""
        return 8 * (len(self.mantissa) + 4) * (self.steps + 2) * UNIT

    def back(self, rows: Floats) -> tuple[Floats, "Law"]:
        """``[x, u]``: P(u was before | x is now) for a step from this law, and the law after it.

        Where x cannot happen the row is this law: any row would do, since no pair uses it.
        """
        probability, shift = np.frexp(rows)
        able = self.possible[:, None] & (rows > 0)  # [u, x]
        scale = np.where(able, self.exponent[:, None] + shift, IMPOSSIBLE_EXPONENT)
        possible: Booleans = np.logical_or.reduce(able, axis=0)
        top = scale.max(axis=0)
        joint = _scaled(np.where(able, self.mantissa[:, None] * probability, 0.0), scale - top)
        totals = joint.sum(axis=0)  # at least 1/4 where x can happen
        share = joint / np.where(possible, totals, 1.0)
        back = np.where(possible[:, None], share.T, self.given(self.possible))
        back = np.where(back < NEGLIGIBLE, 0.0, back)
        mantissa, exponent = np.frexp(np.where(possible, totals, 0.0))
        after = Law(mantissa, np.where(possible, exponent + top, 0), possible, self.steps + 1)
        return np.ascontiguousarray(back), after

    def given(self, side: Booleans) -> Floats:
        """``[x]``: the law, given that x is in ``side``, which can happen."""
        inside = side & self.possible
        top = self.exponent[inside].max()
        kept = _scaled(np.where(inside, self.mantissa, 0.0), self.exponent - top)
        law: Floats = kept / kept.sum()
        return np.where(law < NEGLIGIBLE, 0.0, law)

    def drift(self, after: "Law") -> float:
        r"""By how much one more step can change the logarithm of any ratio of two probabilities.

        If a ≤ μP(x)/μ(x) ≤ b for all x, then the same holds one step later, for P is positive:
        so n steps change a ratio of two probabilities by a factor of at most :math:`(b/a)^n`.
        Infinite where other states can happen.
        """
        if not np.array_equal(self.possible, after.possible):
            return np.inf
        kept = self.possible
        shift = after.exponent[kept] - self.exponent[kept]
        with np.errstate(divide="ignore"):
            change = np.log(after.mantissa[kept] / self.mantissa[kept]) + np.log(2.0) * shift
        size = float(np.abs(change).max())
        # each of the two is off by 2m + 2 units, and its logarithm by its own last places
        return float(change.max() - change.min()) + (4 * len(kept) + 8 + 16 * size) * UNIT


@dataclass(frozen=True, eq=False)
class HeldLaw:
    """The law of some entries, and what rounding and holding it can do to a log-ratio."""

    law: Law
    slack: float


def backward_rows(rows: Floats, before: Floats) -> tuple[Floats, Booleans]:
    """``[x, u]``: P(u was before | x is now) if u had the law ``before``; which x can happen."""
    back, after = Law.from_floats(before).back(rows)
    return back, after.possible


def _scaled(values: Floats, exponents: Integers) -> Floats:
    """Each value times 2^exponent, and 0 where that is negligible beside 1."""
    kept = np.where(exponents > NEGLIGIBLE_SHIFT, values, 0.0)
    scaled: Floats = np.ldexp(kept, np.clip(exponents, NEGLIGIBLE_SHIFT, 0).astype(np.int32))
    return scaled


class LawWalk:
    """The backward stretches of a chain that begins somewhere, and what can happen meanwhile."""

    def __init__(self, law: Law, total_cost: float) -> None:
        self._law = law
        self._faint = np.exp(-min(total_cost, LARGE)) * 2.0**-60 / len(law.mantissa)
        self._held = 0.0  # what holding rows has done to the law so far
        self.stretches: list[Stretch] = []
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
            taken = min(left, still) if still >= min(left, MIN_HELD_STEPS) else 1
            self._held += 2 * taken * drift if taken > 1 else 0.0
            slack = self._law.slack + self._held + UNIT
            if not first and _alike(back, self.stretches[-1].rows, after.possible):
                known = self.stretches.pop()
                slack = max(known.slack, slack + 2 * HELD * (1 + HELD))
                self.stretches.append(Stretch(known.rows, cost, slack, known.count + taken))
            else:
                self.stretches.append(Stretch(back, cost, slack, taken))
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
