r"""Contagion and other attractive fields of zeros and ones: two states of the boundary suffice.

Let all tables be positive and log-supermodular, g(x ∨ y) g(x ∧ y) ≥ g(x) g(y). Then so is
f(s, x_∂), the product of the tables that touch C summed over C without s: sums keep
log-supermodularity (Karlin & Rinott 1980). Hence f(1, x′) f(0, x) ≥ f(1, x) f(0, x′) for x′ ≥ x:
the odds of s = 1 grow with the boundary. They are largest where the boundary is all ones, and
the reverse odds where it is all zeros. So the leak of a set costs two sums over the set, however
many entries lie around it.

The odds before anything is known are an average of the odds given the boundary. Where summing
over the whole field is out of reach, the odds at the all-zeros and all-ones boundaries of the
sets that were evaluated bound them on both sides.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.network.elimination import Elimination, bits
from takifugu.influence.network.network_curves import BestSets, curve_of_sets
from takifugu.influence.rounded_ratios import sums_ratio_up
from takifugu.priors.networks import Factor, NetworkPrior, Sides, secret_sides
from takifugu.priors.secrets import Secrets

MAX_SUMMED_ENTRIES = 20  # entries of a set that can be summed over
BALL_ENTRIES = 15  # entries summed over to bound the prior odds
MAX_EXACT_PRODUCT = 1e300  # products up to it, down to its inverse, have a small relative error
MAX_EXPONENT = 1000.0  # binary exponents: products whose logarithms add up to less stay in float64
MAX_SETS_WIDENED = 4  # up to this b all neighbours are tried; beyond, the strongest only


def check_attractive(model: NetworkPrior) -> None:
    """An error unless all entries have two values and all tables favour agreement.

    A positive table is log-supermodular if every two of its entries are, the others held fixed.
    Checked with exact fractions where floats are too close to tell.
    """
    if any(len(states) != 2 for states in model.states):
        raise UnsoundRequest(
            "an attractive field has two values for each entry; use network_curve",
            reason="values",
        )
    for factor in model.factors():
        names = ", ".join(repr(model.entries[v]) for v in factor.scope)
        if not (factor.table > 0).all():
            raise UnsoundRequest(
                f"the table of {names} holds a 0; use network_curve", reason="zero"
            )
        for i, j in combinations(range(len(factor.scope)), 2):
            faces = np.moveaxis(factor.table, (i, j), (0, 1)).reshape(2, 2, -1)
            for k in range(faces.shape[2]):
                (w, x), (y, z) = faces[:, :, k].tolist()
                if MAX_EXACT_PRODUCT > w * z > x * y * (1 + 2.0**-50) > 1 / MAX_EXACT_PRODUCT:
                    continue
                a, b, c, d = map(Fraction, (w, x, y, z))
                if a * d < b * c:
                    raise UnsoundRequest(
                        f"the table of {names} favours different values, so two states of the"
                        " boundary do not suffice; use network_curve",
                        reason="repelling",
                    )


class AttractiveField:
    """An attractive field made of weights on entries and pairs, ready to evaluate sets."""

    def __init__(self, model: NetworkPrior) -> None:
        check_attractive(model)
        count = len(model.entries)
        self.full = Elimination(model)
        self.alone = np.ones((count, 2))
        self.pair = np.ones((count, count, 2, 2))
        self.reach = np.zeros((2, count, count))  # the most that log₂ of `pair` falls and rises
        self.own_reach = np.zeros((2, count))  # the same for `alone`
        self.strength: Floats = np.zeros((count, count))  # log of the cross-ratio: a guide only
        self.made_of = np.zeros(count, dtype=np.int64)  # tables multiplied into `alone`
        joined = np.zeros((count, count), dtype=np.int64)
        for factor in model.factors():
            self._add(factor, joined)
        self.repeats = int(max(joined.max(initial=1), self.made_of.max(initial=1)))
        _stays(self.reach.max(initial=0.0), self.own_reach.max(initial=0.0))

    def _add(self, factor: Factor, joined: np.ndarray) -> None:
        logs = np.log2(factor.table)
        far = np.maximum([-logs.min(), logs.max()], 0.0)
        match factor.scope:
            case (i,):
                self.alone[i] *= factor.table
                self.own_reach[:, i] += far
                self.made_of[i] += 1
            case (i, j):
                self.reach[:, [i, j], [j, i]] += far[:, None]
                pull = np.log(2) * (logs[1, 1] + logs[0, 0] - logs[0, 1] - logs[1, 0])
                self.strength[[i, j], [j, i]] += pull
                self.pair[i, j] *= factor.table
                self.pair[j, i] *= factor.table.T
                joined[i, j] += 1
                joined[j, i] += 1
            case _:
                raise UnsoundRequest(
                    f"a table joins {len(factor.scope)} entries; sets of an attractive field are"
                    " evaluated for pairs only. Use network_curve"
                )

    def evaluate(self, inside: int, entry: int) -> tuple[float, float]:
        """Upper bounds, tight up to rounding, on the log odds of 1 (all ones around), and of 0.

        ``inside`` holds ``entry``; only its part connected to it should be given.
        """
        others = [v for v in bits(inside) if v != entry]
        if len(others) >= MAX_SUMMED_ENTRIES:
            raise TooLarge(
                f"a set of {len(others) + 1} entries; at most {MAX_SUMMED_ENTRIES} are summed over",
                size=len(others) + 1,
                limit=MAX_SUMMED_ENTRIES,
            )
        around = bits(self.full.boundary(inside))
        order = [entry, *others]
        _stays(self.own_reach[:, order] + self.reach[:, order][:, :, around].sum(axis=2))
        clamped = self.pair[np.ix_(order, around)]  # [inside, around, own value, value around]
        alone = self.alone[order][:, :, None] * np.prod(clamped, axis=1)  # [inside, own, around]
        low, high = float(alone.min()), float(alone.max())
        if not (low > 2.0**-40 and high < 2.0**40):
            alone = np.ldexp(alone, -np.frexp(alone.max(axis=(1, 2), keepdims=True))[1])
        with np.errstate(divide="ignore"):  # what underflowed spans all, and is refused
            logs = np.log2(alone)
        spans = np.maximum([-logs.min(axis=(1, 2)), logs.max(axis=(1, 2))], 0.0).sum(axis=1)
        _stays(spans + self.reach[:, order][:, :, order].sum(axis=(1, 2)) / 2)
        table = np.ones((2, 1))  # [value around, state of the entries so far]
        for place, v in enumerate(order):
            halves = []
            for own in (0, 1):
                felt = np.ones(1)
                for u in order[:place]:
                    felt = np.multiply.outer(felt, self.pair[v, u, own]).ravel()
                halves.append(table * (alone[place, own][:, None] * felt))
            table = np.stack(halves, axis=-1).reshape(2, -1)
        weight = table.reshape(2, 2, -1).sum(axis=2)  # [value around, own value]
        size = len(order)
        steps = size * (self.repeats * (len(around) + size) + 4) + 2**size
        one = sums_ratio_up(weight[1, 1], weight[1, 0], roundings=steps)
        zero = sums_ratio_up(weight[0, 0], weight[0, 1], roundings=steps)
        return float(one), float(zero)


def attractive_curve(
    model: NetworkPrior, secrets: Secrets | None = None, *, largest: int = 12
) -> InfluenceCurve:
    """The curve of an attractive field of zeros and ones, for sets of up to ``largest`` entries.

    Up to b = 2 all sets are tried; up to b = 4 every neighbour is tried beside the best set so
    far; beyond that sets grow by the strongest contact, in two ways. Points are upper bounds, and
    exact up to b = 2 if the field is small enough to be summed over.
    """
    if not 1 <= largest <= MAX_SUMMED_ENTRIES:
        raise UnsoundRequest(
            f"largest is {largest}; it must be from 1 to {MAX_SUMMED_ENTRIES}",
            field="largest",
            given=largest,
            needed=MAX_SUMMED_ENTRIES,
        )
    field = AttractiveField(model)
    sides = secret_sides(model, secrets or Secrets())
    searches = [AttractiveSets(field, entry, pairs, largest) for entry, pairs in sides.items()]
    return curve_of_sets(model, searches, largest)


class AttractiveSets(BestSets):
    """The sets of one secret entry that grew by the strongest contacts."""

    def __init__(self, field: AttractiveField, entry: int, sides: Sides, largest: int) -> None:
        self.entry, self.sides = entry, sides
        self.whole = field.full.part((1 << len(field.alone)) - 1, entry)
        best, sets, known, self._tried = _grow(field, entry, self.whole, largest)
        self._summed = self.whole.bit_count() <= MAX_SUMMED_ENTRIES
        known.append(field.evaluate(_ball(field, entry, BALL_ENTRIES), entry))
        if self._summed:
            known.append(field.evaluate(self.whole, entry))
        ways = [0 if left == (1,) else 1 for left, _ in sides]
        # least upper bounds on the prior log odds of 1, and of 0
        self._prior = np.min(known, axis=0)[[1 - way for way in ways]]
        self.best = [np.array(values)[ways] for values in best]
        self.sets = [[masks[way] for way in ways] for masks in sets]

    def offset(self) -> tuple[Floats, bool]:
        """See `BestSets`: where sums are out of reach, the least of any set is a bound."""
        return self._prior, self._summed

    def exact(self, at: int, pair: int) -> bool:  # noqa: ARG002
        """See `BestSets`: all sets were tried."""
        return self._summed and at < self._tried


def _stays(*reaches: ArrayLike) -> None:
    """Refuse products whose logarithms, all falls or all rises added up, may leave float64."""
    if not all(float(np.max(reach)) < MAX_EXPONENT for reach in reaches):  # also false for NaN
        raise TooLarge("the weights of this field span more than float64 can hold")


def _ball(field: AttractiveField, entry: int, size: int) -> int:
    """The nearest entries: whole rings while they fit, then part of the next."""
    ball = 1 << entry
    while (ring := field.full.boundary(ball)) and ball.bit_count() < size:
        for v in bits(ring)[: size - ball.bit_count()]:
            ball |= 1 << v
    return ball


def _grow(
    field: AttractiveField, entry: int, whole: int, largest: int
) -> tuple[list[list[float]], list[list[int]], list[tuple[float, float]], int]:
    """``[b − 1][way]``: the least upper bounds found and their sets; and all values seen.

    The last number is the b up to which all sets were evaluated: a set whose weights leave
    float64 is not, and may have been the best.
    """
    best: list[list[float]] = []
    sets: list[list[int]] = []
    seen: list[tuple[float, float]] = []
    tried = 2
    lines = [1 << entry, 1 << entry]  # by contact with the secret; by contact with the whole set
    for b in range(1, max(2, min(largest, whole.bit_count() - 1) + 1)):
        best.append(list(best[-1]) if best else [np.inf, np.inf])
        sets.append(list(sets[-1]) if sets else [1 << entry] * 2)
        if b > 1:
            candidates = {_nearer(field, line, entry, k) for k, line in enumerate(lines)}
            lines = [_nearer(field, line, entry, k) for k, line in enumerate(lines)]
            if b <= MAX_SETS_WIDENED:
                for start in set(sets[-2]):
                    candidates |= {start | 1 << v for v in bits(field.full.boundary(start))}
        else:
            candidates = {1 << entry}
        for inside in sorted(candidates):
            try:
                odds = field.evaluate(inside, entry)
            except TooLarge:
                if b == 1:
                    raise
                tried = min(tried, b - 1)
                continue
            seen.append(odds)
            for way in (0, 1):
                if odds[way] < best[-1][way]:
                    best[-1][way], sets[-1][way] = odds[way], inside
    return best, sets, seen, tried


def _nearer(field: AttractiveField, inside: int, entry: int, way: int) -> int:
    """The set with its strongest contact added; the secret counts four times in the second way."""
    edge = bits(field.full.boundary(inside))
    if not edge:
        return inside
    pull = field.strength[entry, edge]
    if way == 1:
        pull = 3 * pull + field.strength[np.ix_(bits(inside), edge)].sum(axis=0)
    return inside | 1 << edge[int(np.argmax(pull))]
