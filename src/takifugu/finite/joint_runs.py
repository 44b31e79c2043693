"""Several runs on the same data: what their outputs reveal together.

Where there are too many multisets of outputs to list, the one that leaks most is searched for. The
loss f (`takifugu.finite.evidence`) is a difference of convex functions of the counts c. For every
box {low ≤ c ≤ high} with the given number of runs, f is bounded from above: by Gibbs' inequality
the subtracted part is at least

    log Σ_D′ p_D′ e^{c·L_D′}  ≥  Σ_D′ q_D′ (log p_D′ − log q_D′) + c·g,   g = Σ_D′ q_D′ L_D′,

for *any* distribution q, so f(c) ≤ log Σ_D p_D exp(max_c c·(L_D − g)) − Σ q(log p − log q), where
each inner maximum fills the box greedily, best output first. q is the posterior of the right side
at a point of the box, moved by Frank–Wolfe steps towards the maximiser of the leading term; each
step gives a valid bound for every D and the smallest is kept. Boxes are split until no bound
exceeds the best multiset known: branch and bound, in batches.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import comb, log2, prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import (
    LEAST,
    SUMS_TO_ONE,
    Booleans,
    Floats,
    Integers,
    distribution,
)
from takifugu._core.rounding import UNIT, log_bounds
from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite.evidence import (
    Blocks,
    Evidence,
    PairUnderPrior,
    Runs,
    all_counts,
    counted_runs,
    log_sum,
    multisets,
    reduce_evidence,
    revealing_multiset,
)
from takifugu.finite.leakage import WorstCase, measure
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Knowledge

FRANK_WOLFE_STEPS = 3  # Frank–Wolfe steps for a box
FIRST_STEPS = 12  # … for the box of everything
MAX_SEARCH_STARTS = 8  # multisets from which the first local searches start
MAX_BOUNDED_CELLS = 400_000  # numbers in one batch of bounds
LOG_ZERO = -1e6  # stands for log 0 on the left: it can only raise a bound, and by nothing visible


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
        children, tried = _bounded(case, children, FRANK_WOLFE_STEPS)
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
    return max(1, MAX_BOUNDED_CELLS // case.left.log.size)


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
    gain = np.where(left.never, LOG_ZERO, left.log)
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
    for place in np.argsort(-values)[:MAX_SEARCH_STARTS]:
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


LISTED = 20_000  # multisets that are listed rather than searched
MAX_LISTED_CELLS = 2**22  # numbers in one batch of listed multisets


@dataclass(frozen=True, eq=False)
class JointLeakage:
    """The Pufferfish loss of several runs together.

    Attributes:
        epsilon: The loss, at least 0: no multiset of outputs loses more. An upper bound.
        attained: The loss of ``worst``, at least 0, rounded down: a lower bound.
        worst: The pair, the prior and the outputs seen that attain it. The outputs stand in a
            tuple, mechanism by mechanism, without their order in time, which reveals nothing;
            equivalent outputs are represented by the first of them.
        exact: Whether ``epsilon`` and ``attained`` differ by no more than the tolerance and
            rounding; if not, the search stopped early and the exact loss lies between.
        examined: How many multisets were listed, or boxes of multisets bounded.
        method: How the upper bound was proved.
    """

    epsilon: float
    attained: float
    worst: WorstCase
    exact: bool
    examined: int
    method: Literal["listing", "branch and bound", "impossible on one side", "linear programs"]


def joint_mechanism(
    *parts: FiniteMechanism | tuple[FiniteMechanism, int], limit: int = 2**24
) -> FiniteMechanism:
    """The mechanism that runs all ``parts``, each once or the given number of times.

    An output of it is the tuple of outputs seen, mechanism by mechanism and in the order of the
    mechanism's outputs: the order in time reveals nothing, so it is not kept. Probabilities are
    within a factor of 1 ± (16·runs + 8)·2⁻⁵³; `joint_leakage` rounds the safe way. At most
    ``limit`` numbers are written out.
    """
    return _written_out(counted_runs(parts), limit)


def post_process(
    mechanism: FiniteMechanism,
    channel: ArrayLike,
    *,
    outputs: Sequence[Hashable] = (),
    name: str | None = None,
) -> FiniteMechanism:
    """Replace every output by a draw from its row of ``channel[old output, new output]``."""
    table = distribution(channel, "channel", InvalidMechanism)
    if table.ndim != 2 or len(table) != len(mechanism.outputs):
        raise InvalidMechanism(
            "channel",
            given=f"has shape {table.shape}",
            needed=f"have one row for each of the {len(mechanism.outputs)} outputs",
        )
    return FiniteMechanism(
        mechanism.universe,
        mechanism.likelihood @ table,
        tuple(outputs),
        f"{mechanism.name}, post-processed" if name is None else name,
    )


def joint_leakage(
    world: World,
    parts: Iterable[FiniteMechanism | tuple[FiniteMechanism, int]],
    *,
    tolerance: float = 1e-9,
    boxes: int = 200_000,
) -> JointLeakage:
    """The Pufferfish loss of all ``parts`` together, over all multisets of their outputs.

    Few multisets are listed. Many are searched by branch and bound (`branch`): at most ``boxes``
    boxes for every pair and prior, until upper and lower bound are within ``tolerance``. A box
    costs some multiple of datasets × outputs: lower ``boxes`` for large worlds. The lower bound
    is the exact loss of one multiset, in fractions. Against linear knowledge the composed
    mechanism is written out, so it must be small.
    """
    if not 0 <= tolerance < np.inf:
        raise InvalidWorld("tolerance", given=f"is {tolerance:g}", needed="be finite, 0 or more")
    if boxes < 1:
        raise InvalidWorld("boxes", given=f"is {boxes}", needed="be 1 or more")
    runs = counted_runs(tuple(parts))
    if isinstance(world.priors, Knowledge):
        return _against_knowledge(world, runs)
    evidence = reduce_evidence(world, runs)
    for case in evidence.cases(world):
        counts = revealing_multiset(case)
        if counts is not None:
            worst = _named(world, evidence, case, counts)
            return JointLeakage(np.inf, np.inf, worst, True, 1, "impossible on one side")
    if evidence.size <= LISTED:
        return _listed(world, evidence)
    return _searched(world, evidence, tolerance, boxes)


def _listed(world: World, evidence: Evidence) -> JointLeakage:
    counts = all_counts(evidence.blocks)
    best, place_of_best, upper, rounding = _first(world, evidence)
    for case in evidence.cases(world):
        rounding = max(rounding, case.rounding)
        step = max(1, MAX_LISTED_CELLS // max(len(case.left.weight), len(case.right.weight)))
        for start in range(0, len(counts), step):
            losses = case.loss(counts[start : start + step].astype(np.float64))
            place = int(np.argmax(losses))
            upper = max(upper, float(losses[place]) + case.rounding)
            if losses[place] > best:
                best, place_of_best = float(losses[place]), (case, counts[start + place])
    return _result(world, evidence, place_of_best, upper, 4 * rounding, len(counts), "listing")


def _first(
    world: World, evidence: Evidence
) -> tuple[float, tuple[PairUnderPrior, Integers], float, float]:
    """A multiset to start from: its loss, its pair and counts, and no bound yet."""
    case = next(evidence.cases(world))
    counts = case.some()
    return float(case.loss(counts[None].astype(np.float64))[0]), (case, counts), -np.inf, 0.0


def _searched(world: World, evidence: Evidence, tolerance: float, boxes: int) -> JointLeakage:
    """Search the pairs and priors one after another, each for more than the best so far.

    One box for each of them first decides which to search first and which not at all.
    """
    best, place_of_best, upper, rounding = _first(world, evidence)
    looks = [
        (search(case, floor=-np.inf, tolerance=tolerance, boxes=1), case.pair, case.prior)
        for case in evidence.cases(world)
    ]
    examined = len(looks)
    for look, pair, prior in sorted(looks, key=lambda look: -look[0].value):
        case, result, best_here = evidence.case(world, pair, prior), look, max(best, look.value)
        if look.upper > best_here + tolerance:
            result = search(case, floor=best_here, tolerance=tolerance, boxes=boxes)
            examined += result.boxes
        upper = max(upper, result.upper + case.rounding)
        rounding = max(rounding, case.rounding)
        for step in (look, result):
            if step.counts is not None and step.value > best:
                best, place_of_best = step.value, (case, step.counts)
    margin = tolerance + 4 * rounding
    return _result(world, evidence, place_of_best, upper, margin, examined, "branch and bound")


def _result(
    world: World,
    evidence: Evidence,
    place: tuple[PairUnderPrior, Integers],
    upper: float,
    margin: float,
    examined: int,
    method: Literal["listing", "branch and bound"],
) -> JointLeakage:
    case, counts = place
    left, right = evidence.exact_odds(world, case, counts)
    attained = max(log_bounds(left / right)[0], 0.0)
    epsilon = max(upper, 0.0)
    return JointLeakage(
        epsilon,
        min(attained, epsilon),
        _named(world, evidence, case, counts),
        epsilon - attained <= margin,
        examined,
        method,
    )


def _named(world: World, evidence: Evidence, case: PairUnderPrior, counts: Integers) -> WorstCase:
    prior = world.listed_priors[case.prior].name
    return WorstCase(world.pairs[case.pair], prior, evidence.named(counts))


def _against_knowledge(world: World, runs: Runs) -> JointLeakage:
    whole = _written_out(runs, 2**20)
    result = measure(world, whole, error=_rounding(runs))
    attained = max(result.epsilon - result.slack, 0.0) if result.kind == "exact" else 0.0
    if np.isinf(result.epsilon):
        attained = np.inf if result.kind == "exact" else 0.0
    exact = result.kind == "exact" and result.slack < 1e-9
    outputs = len(whole.outputs)
    return JointLeakage(result.epsilon, attained, result.worst, exact, outputs, "linear programs")


def _rounding(runs: Runs) -> float:
    """The relative error of a probability that `_written_out` writes."""
    return (16 * sum(k for _, k in runs) + 8) * UNIT


def _written_out(runs: Runs, limit: int) -> FiniteMechanism:
    """Every multiset of outputs, its probability being Π (k choose c)·Π P(ω|D)^c."""
    universe = runs[0][0].universe
    for mechanism, _ in runs:
        if mechanism.universe != universe:
            raise InvalidMechanism(
                "runs",
                given=f"holds {mechanism.name!r}, which is over other datasets",
                needed="hold mechanisms over the same datasets",
            )
    size = prod(comb(k + len(m.outputs) - 1, k) for m, k in runs)
    if size * len(universe) > limit or sum(k * log2(len(m.outputs)) for m, k in runs) > 500:
        raise TooLarge(
            f"the composition has {size:,} outputs on {len(universe):,} datasets, and {limit:,}"
            " numbers in the range of float64 are allowed; `joint_leakage` bounds its loss"
            " without writing it out",
            size=size,
            limit=limit,
        )
    table = np.ones((len(universe), 1))
    names: list[tuple[Hashable, ...]] = [()]
    for mechanism, k in runs:
        counts = multisets(len(mechanism.outputs), k)
        seen_probabilities = _multiset_probabilities(mechanism.likelihood, counts)
        table = (table[:, :, None] * seen_probabilities[:, None, :]).reshape(len(universe), -1)
        seen = [tuple(chain.from_iterable(map(repeat, mechanism.outputs, c))) for c in counts]
        names = [before + after for before in names for after in seen]
    _check_written(table, runs)
    label = " + ".join(m.name if k == 1 else f"{k} × {m.name}" for m, k in runs)
    return FiniteMechanism(universe, table, tuple(names), label)


def _multiset_probabilities(likelihood: Floats, counts: Integers) -> Floats:
    """``[dataset, multiset]``: the probability of every multiset of runs of one mechanism."""
    table = np.ones((len(likelihood), len(counts)))
    total = np.cumsum(counts, axis=1)
    powers = np.arange(int(total[0, -1]) + 1)
    ways = np.array([[comb(n, c) if c <= n else 0 for c in powers] for n in powers], dtype=float)
    for w in range(counts.shape[1]):
        table *= (likelihood[:, w, None] ** powers)[:, counts[:, w]]
        table *= ways[total[:, w], counts[:, w]]
    return table


def _check_written(table: Floats, runs: Runs) -> None:
    possible = np.ones((len(table), 1), dtype=bool)
    for mechanism, k in runs:
        seen = multisets(len(mechanism.outputs), k) @ (mechanism.likelihood == 0).T == 0
        possible = (possible[:, :, None] & seen.T[:, None, :]).reshape(len(table), -1)
    if (possible & (table < LEAST)).any():
        raise TooLarge(
            f"the composition has outputs with a probability below {LEAST:.3g}, too small to write"
            " out; `joint_leakage` bounds its loss without writing it out",
            reason="underflow",
        )
    off = float(np.abs(table.sum(axis=1) - 1).max())
    if off > SUMS_TO_ONE:
        raise InvalidMechanism(
            "likelihood",
            given=f"sums to 1 so roughly that the rows of the composition are off by {off:.2g}",
            needed=f"sum to 1 closely enough for a composition within {SUMS_TO_ONE:g}",
        )
