"""Several runs on the same data: what their outputs reveal together."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import comb, log2, prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import LEAST, SUMS_TO_ONE, Floats, Integers, distribution, frozen
from takifugu._core.rounding import UNIT, log_bounds, up
from takifugu.errors import InvalidMechanism, InvalidWorld, TooLarge
from takifugu.finite.branch_and_bound import search
from takifugu.finite.evidence import (
    Evidence,
    PairUnderPrior,
    Runs,
    all_counts,
    counted_runs,
    multisets,
    reduce_evidence,
    revealing_multiset,
)
from takifugu.finite.leakage import WorstCase, leakage, measure
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Knowledge

LISTED = 20_000  # multisets that are listed rather than searched
CELLS = 2**22  # numbers in one batch of listed multisets


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


@dataclass(frozen=True, eq=False)
class Growth:
    """How the loss grows with the number of runs, beside what linear composition would allow."""

    runs: Integers  # [k]
    epsilon: Floats  # [k]: upper bounds
    attained: Floats  # [k]: lower bounds
    linear: Floats  # [k]: runs · ε(1)


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


def growth(
    world: World,
    mechanism: FiniteMechanism,
    runs: Iterable[int] = range(1, 11),
    *,
    tolerance: float = 1e-9,
    boxes: int = 200_000,
) -> Growth:
    """ε of 1, 2, 3, … runs of ``mechanism``, beside k·ε(1)."""
    wanted = list(runs)
    if not wanted:
        raise InvalidMechanism("runs", given="is empty", needed="hold at least one number of runs")
    results = [
        joint_leakage(world, [(mechanism, k)], tolerance=tolerance, boxes=boxes) for k in wanted
    ]
    once = leakage(world, mechanism).epsilon
    return Growth(
        np.array(wanted, dtype=np.int64),
        frozen([result.epsilon for result in results]),
        frozen([result.attained for result in results]),
        frozen([float(up(k * once)) for k in wanted]),
    )


def _listed(world: World, evidence: Evidence) -> JointLeakage:
    counts = all_counts(evidence.blocks)
    best, place_of_best, upper, rounding = _first(world, evidence)
    for case in evidence.cases(world):
        rounding = max(rounding, case.rounding)
        step = max(1, CELLS // max(len(case.left.weight), len(case.right.weight)))
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
