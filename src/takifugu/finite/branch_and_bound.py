"""The multiset of outputs that leaks most, where there are too many to list.

The loss f (`evidence`) is a difference of convex functions of the counts c. For every box
{low ≤ c ≤ high} with the given number of runs, f is bounded from above: by Gibbs' inequality the
subtracted part is at least

    log Σ_D′ p_D′ e^{c·L_D′}  ≥  Σ_D′ q_D′ (log p_D′ − log q_D′) + c·g,   g = Σ_D′ q_D′ L_D′,

for *any* distribution q, so f(c) ≤ log Σ_D p_D exp(max_c c·(L_D − g)) − Σ q(log p − log q), where
each inner maximum fills the box greedily, best output first. q is the posterior of the right side
at a point of the box, moved by Frank–Wolfe steps towards the maximiser of the leading term; each
step gives a valid bound for every D and the smallest is kept. Boxes are split until no bound
exceeds the best multiset known: branch and bound, in batches.
"""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.finite.evidence import Blocks, PairUnderPrior
from takifugu.finite.mixtures import log_sum

STEPS = 3  # Frank–Wolfe steps for a box
FIRST_STEPS = 12  # … for the box of everything
STARTS = 8  # multisets from which the first local searches start
CELLS = 400_000  # numbers in one batch of bounds
NEVER = -1e6  # stands for log 0 on the left: it can only raise a bound, and by nothing visible


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found: ``value`` is attained by ``counts``, nothing exceeds ``upper``.

    Both are within `PairUnderPrior.rounding`. ``counts`` is None if nothing beat the floor.
    """

    value: float
    counts: Integers | None
    upper: float
    boxes: int


@dataclass(frozen=True, eq=False)
class Boxes:
    """Several boxes of counts, a point in each, and what is proved of each."""

    low: Floats  # [box, output]
    high: Floats  # [box, output]
    point: Floats  # [box, output]
    bound: Floats  # [box]

    def __len__(self) -> int:
        return len(self.bound)

    def pick(self, which: Integers) -> "Boxes":
        """The boxes at these positions."""
        return Boxes(self.low[which], self.high[which], self.point[which], self.bound[which])

    def join(self, other: "Boxes") -> "Boxes":
        """These boxes, then the others."""
        return Boxes(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.point, other.point]),
            np.concatenate([self.bound, other.bound]),
        )


def search(case: PairUnderPrior, *, floor: float, tolerance: float, boxes: int) -> SearchResult:
    """Look for a multiset that loses more than ``floor``; give up after ``boxes`` boxes.

    The upper bound is the largest of the best value known and the bounds of all boxes set aside.
    A box is set aside when its bound exceeds the best value known by at most ``tolerance``.
    """
    left, tried = _bounded(case, _box_of_everything(case), FIRST_STEPS)
    best, counts = _climb(case, tried, floor)
    upper, spent = floor, 1
    while True:
        alive = np.flatnonzero(left.bound > best + tolerance)
        aside = np.delete(left.bound, alive)
        upper = max(upper, float(aside.max(initial=-np.inf)))
        left = left.pick(alive)
        if not len(left) or spent >= boxes:
            break
        order = np.argsort(left.bound)
        children = _split(case, left.pick(order[-_batch(case) :]))
        children, tried = _bounded(case, children, STEPS)
        spent += len(children)
        value, better = _best(case, tried, best)
        if better is not None:
            best, counts = value, better
        # a box with one multiset in it is settled: that multiset was tried
        wide = np.flatnonzero((children.high > children.low).any(axis=1))
        left = left.pick(order[: -_batch(case)]).join(children.pick(wide))
    upper = max(upper, best, float(left.bound.max(initial=-np.inf)))
    return SearchResult(best, None if counts is None else counts.astype(np.int64), upper, spent)


def _batch(case: PairUnderPrior) -> int:
    return max(1, CELLS // case.left.log.size)


def _box_of_everything(case: PairUnderPrior) -> Boxes:
    outputs = case.left.log.shape[1]
    low, high = np.zeros((1, outputs)), np.zeros((1, outputs))
    for start, end, runs in case.blocks:
        high[:, start:end] = runs
    return Boxes(low, high, _moved_inside(low, low, high, case.blocks), np.array([np.inf]))


def _bounded(case: PairUnderPrior, boxes: Boxes, steps: int) -> tuple[Boxes, Floats]:
    """Bound f over every box; also the multisets met on the way, ``[multiset, output]``."""
    left, right = case.left, case.right
    room = boxes.high - boxes.low
    dead = boxes.low @ left.never.T > 0  # [box, left]: never gives an output that the box has seen
    usable = boxes.high @ right.never.T == 0  # [box, right]: possible everywhere in the box
    gain = np.where(left.never, NEVER, left.log)
    limits = np.full(dead.shape, np.inf)
    point, tried, each = boxes.point, [], np.arange(len(boxes))
    for step in range(steps):
        q, entropy = _posterior(right.weight + point @ right.log.T, right.weight, usable)
        worth = gain - (q @ right.log)[:, None, :]  # [box, left, output]
        taken = _greedy(worth, room, boxes.low, case.blocks)  # [box, left, output]
        value = left.weight + (worth * (boxes.low[:, None, :] + taken)).sum(axis=-1)
        value = np.where(dead, -np.inf, value - entropy[:, None])
        limits = np.minimum(limits, value)
        corner = boxes.low + taken[each, np.argmax(value, axis=1)]
        tried.append(corner)
        point = point + 2 / (step + 3) * (corner - point)
    bound = np.where(dead.all(axis=1), -np.inf, log_sum(limits))
    bound = np.where(usable.any(axis=1) | dead.all(axis=1), bound, np.inf)
    return (
        Boxes(boxes.low, boxes.high, point, np.minimum(boxes.bound, bound)),
        np.concatenate(tried),
    )


def _posterior(terms: Floats, weight: Floats, usable: Booleans) -> tuple[Floats, Floats]:
    """``[box, right]``: q ∝ exp(terms) on the usable datasets, and Σ q(log p − log q)."""
    terms = np.where(usable, terms, -np.inf)
    top = terms.max(axis=1, keepdims=True)
    q = np.exp(terms - np.where(np.isfinite(top), top, 0.0))
    q /= np.maximum(q.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    surprise = np.log(np.where(q > 0, q, 1.0))
    return q, (q * (weight - surprise)).sum(axis=1)


def _greedy(worth: Floats, room: Floats, low: Floats, blocks: Blocks) -> Floats:
    """``[box, left, output]``: what to add to ``low`` to gain most, block by block."""
    taken = np.empty_like(worth)
    for start, end, runs in blocks:
        order = np.argsort(-worth[:, :, start:end], axis=-1)
        space = np.broadcast_to(room[:, None, start:end], order.shape)
        space = np.take_along_axis(space, order, axis=-1)
        left = runs - low[:, start:end].sum(axis=1)[:, None, None]
        fill = np.clip(left - (np.cumsum(space, axis=-1) - space), 0, space)
        np.put_along_axis(taken[:, :, start:end], order, fill, axis=-1)
    return taken


def _split(case: PairUnderPrior, boxes: Boxes) -> Boxes:
    """Cut every box in two, where the bound is loosest.

    That is at the output whose count is least certain and about which datasets differ most. If
    some dataset never gives the output, it is settled first whether it is seen at all; where no
    right dataset is possible throughout the box, such outputs come first.
    """
    low, high, point = boxes.low, boxes.high, boxes.point
    each = np.arange(len(boxes))
    width = high - low
    spread = np.zeros_like(low)
    unsettled = np.zeros(low.shape, dtype=bool)
    for side in (case.left, case.right):
        q, _ = _posterior(side.weight + point @ side.log.T, side.weight, np.array(True))
        mean, square = q @ side.log, q @ side.log**2
        spread += np.sqrt(np.maximum(square - mean**2, 1e-12))
        alive = low @ side.never.T == 0  # [box, dataset]
        unsettled |= (alive @ side.never) & (low == 0) & (high > 0)
    stuck = ~(high @ case.right.never.T == 0).any(axis=1, keepdims=True)
    output = np.argmax(np.where(unsettled & stuck, np.inf, width * spread), axis=1)
    a, b = low[each, output], high[each, output]
    margin = np.floor((b - a) / 5)
    cut = np.clip(np.floor(point[each, output]), a + margin, b - 1 - margin)
    cut = np.where(unsettled[each, output], 0.0, np.clip(cut, a, b - 1))
    lower, upper = high.copy(), low.copy()
    lower[each, output], upper[each, output] = cut, cut + 1
    halves = Boxes(low, lower, point, boxes.bound).join(Boxes(upper, high, point, boxes.bound))
    return _tightened(halves, case.blocks)


def _tightened(boxes: Boxes, blocks: Blocks) -> Boxes:
    """Shrink every box to what the number of runs allows; drop the empty ones."""
    low, high = boxes.low.copy(), boxes.high.copy()
    for start, end, runs in blocks:
        a, b = low[:, start:end], high[:, start:end]
        np.minimum(b, a + (runs - a.sum(axis=1, keepdims=True)), out=b)
        np.maximum(a, b - (b.sum(axis=1, keepdims=True) - runs), out=a)
    full = (low <= high).all(axis=1)
    for start, end, runs in blocks:
        full &= low[:, start:end].sum(axis=1) <= runs
        full &= high[:, start:end].sum(axis=1) >= runs
    low, high = low[full], high[full]
    point = _moved_inside(boxes.point[full], low, high, blocks)
    return Boxes(low, high, point, boxes.bound[full])


def _moved_inside(point: Floats, low: Floats, high: Floats, blocks: Blocks) -> Floats:
    """The points moved into their boxes, with the right number of runs."""
    inside = np.clip(point, low, high)
    for start, end, runs in blocks:
        block = inside[:, start:end]
        short = runs - block.sum(axis=1, keepdims=True)
        room = np.where(short > 0, high[:, start:end] - block, block - low[:, start:end])
        total = room.sum(axis=1, keepdims=True)
        block += room * (short / np.where(total > 0, total, 1.0))
    return inside


def _best(case: PairUnderPrior, tried: Floats, floor: float) -> tuple[float, Floats | None]:
    """The best of the multisets ``tried``, improved, if it beats ``floor``."""
    values = case.loss(tried)
    place = int(np.argmax(values))
    if not values[place] > floor:
        return floor, None
    return _improved(case, tried[place], float(values[place]))


def _climb(case: PairUnderPrior, tried: Floats, floor: float) -> tuple[float, Floats | None]:
    """The best multiset that local searches from the best of ``tried`` reach, if above floor."""
    starts = np.unique(tried, axis=0)
    values = case.loss(starts)
    best, counts = floor, None
    for place in np.argsort(-values)[:STARTS]:
        if np.isneginf(values[place]):
            continue
        value, found = _improved(case, starts[place], float(values[place]))
        if value > best:
            best, counts = value, found
    return best, counts


def _improved(case: PairUnderPrior, counts: Floats, value: float) -> tuple[float, Floats]:
    """Exchange runs of one output for another while that gains: a local optimum."""
    while True:
        moves = []
        for start, end, _ in case.blocks:
            for giver in range(start, end):
                have = int(counts[giver])
                for step in sorted({2**i for i in range(have.bit_length())} | {have} - {0}):
                    moved = np.repeat(counts[None], end - start, axis=0)
                    moved[:, giver] -= step
                    moved[np.arange(end - start), np.arange(start, end)] += step
                    moves.append(moved)
        tried = np.concatenate(moves)
        values = case.loss(tried)
        place = int(np.argmax(values))
        if not values[place] > value + 1e-13 * (1 + abs(value)):
            return value, counts
        value, counts = float(values[place]), tried[place]
