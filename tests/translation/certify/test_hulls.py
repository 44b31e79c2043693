"""Steps over hulls of laws: whatever flows are given, no law of the hull loses more."""

from itertools import permutations

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import (
    Couplings,
    Flows,
    FlowWalk,
    HullProof,
    Settle,
    Step,
    Take,
    upper_tables,
)
from takifugu.translation.certify.hulls import HullLine, HullStep, HullStretch, StartHull
from takifugu.translation.certify.known import KnownSide
from takifugu.translation.certify.laws import transition_rows
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.hull_steps import solve_hull
from takifugu.translation.search.recursion import search_side
from tests.oracles.cost_programs import chain_table, known_losses, pair_loss, two_point_starts

SHARES = (0.002, 0.1, 0.3, 0.5, 0.7, 0.9, 0.998)


def problem(seed: int, size: int = 3) -> tuple[Floats, Floats]:
    """Rows, and a cost that is no star."""
    rng = np.random.default_rng(seed)
    rows = transition_rows(rng.dirichlet(np.ones(size), size=size))
    places = np.sort(rng.random(size)) * float(rng.choice([0.3, 1.5]))
    return rows, np.abs(places[:, None] - places[None])


def stretch(rows: Floats, cost: Floats, count: int) -> HullStretch:
    return HullStretch(HullLine((rows,)), 0, np.ascontiguousarray(rows.T), cost, count)


def largest_behind(rows: Floats, cost: Floats, entry: int) -> Floats:
    """``[x, y]``: what the entries before ``entry`` reveal under the worst of some starts."""
    size = len(rows)
    found = np.zeros((size, size))
    nothing = np.zeros_like(cost)
    for law in two_point_starts(size, SHARES):
        world = chain_table(law, [rows] * entry)
        for x, y in permutations(range(size), 2):
            truth = pair_loss(world, [cost] * entry + [nothing], entry, x, y).lower
            found[x, y] = max(found[x, y], truth)
    return found


def spoilt(proof: HullProof) -> list[HullProof | Couplings | None]:
    """Missing, truncated, negative and undefined flows, and points that are none of the edge."""
    assert proof.boxes is not None
    assert proof.edges is not None
    boxes, edges = proof.boxes, proof.edges

    def with_mass(couplings: Couplings, share: float) -> Couplings:
        mass = np.where(couplings.mass > 0, couplings.mass, 1.0) * share
        return Couplings(couplings.parent, couplings.leaves, couplings.order, mass)

    first = next(iter(edges))
    moved = {edge: [(2 * s - 0.5, f) for s, f in points] for edge, points in edges.items()}
    undefined = {edge: [(np.nan, f) for _, f in points] for edge, points in edges.items()}
    scaled = [
        HullProof(
            with_mass(boxes, share),
            {edge: [(s, with_mass(f, share)) for s, f in points] for edge, points in edges.items()},
        )
        for share in (np.nan, np.inf, -1.0, 0.5, 3.0)
    ]
    parts = boxes.parent[:2], boxes.leaves[:2], boxes.order[:2], boxes.mass[:2]
    small = Couplings(*parts)
    return [
        None,
        boxes,
        HullProof(),
        HullProof(small),
        HullProof(None, {}),
        HullProof(None, {first: edges[first]}),
        HullProof(None, {edge: points[:1] for edge, points in edges.items()}),
        HullProof(None, {edge: [points[0], points[-1]] for edge, points in edges.items()}),
        HullProof(None, moved),
        HullProof(None, undefined),
        *scaled,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_no_flows_prove_less_than_some_law_of_the_hull_loses(seed: int) -> None:
    rows, cost = problem(seed)
    part = stretch(rows, cost, 2)
    after = part.step(np.zeros_like(cost), 0).upper(None)
    step = part.step(after, 1)
    assert isinstance(step, HullStep)
    proof = solve_hull(step, guess=after)
    assert proof is not None
    truth = largest_behind(rows, cost, 2)
    best = step.upper(proof)
    assert (truth <= best + 1e-9).all()
    other = solve_hull(stretch(*problem(seed + 40), 2).step(after, 1), guess=after)
    for bad in (*spoilt(proof), other):
        assert (truth <= step.upper(bad) + 1e-9).all()


def test_a_proof_is_kept_as_plain_numbers() -> None:
    rows, cost = problem(5)
    part = stretch(rows, cost, 3)
    walk = search_side([part], 3, recorded=True)
    assert walk.moves is not None
    again = Flows.from_document(Flows(tuple(walk.moves)).to_document())
    tables, at = upper_tables([stretch(rows, cost, 3)], 3, again)
    assert np.array_equal(at, walk.at)
    assert all(np.array_equal(a, b) for a, b in zip(tables, walk.tables, strict=True))


@pytest.mark.parametrize("table", [0.0, np.nan, -1.0, 1e-3])
def test_a_table_that_a_step_raises_settles_nothing(table: float) -> None:
    rows, cost = problem(6)
    walk = FlowWalk([stretch(rows, cost, 50)], 3)
    walk.move(Take(None))
    walk.move(Settle(table * (1 - np.eye(3)), HullProof()))
    assert not walk.settled
    assert np.isinf(walk.value[~np.eye(3, dtype=np.bool_)]).all()


def test_the_whole_hull_holds_every_law() -> None:
    whole = StartHull.whole(3)
    assert whole.possible.all()
    assert np.isinf(whole.width)


class AnyFlows:
    """Proposes flows that are none: of other states, negative, undefined."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(
        self, step: Step, /, *, guess: Floats, known: Couplings | None = None
    ) -> Couplings | None:
        """Flows at random, of the right shape or not."""
        del guess, known
        size, states = step.numerator.shape
        shape = (size, size, states + int(self._rng.integers(2)))
        return Couplings(
            self._rng.integers(-3, states + 3, shape).astype(np.int16),
            self._rng.random(shape) < 0.5,
            np.zeros(shape, dtype=np.int16),
            self._rng.normal(size=shape) * float(self._rng.choice([1.0, np.nan])),
        )


@pytest.mark.parametrize("seed", range(3))
def test_no_flows_prove_less_than_known_entries_reveal(seed: int) -> None:
    rows, cost = problem(seed)
    law = np.random.default_rng(seed).dirichlet(np.ones(3))
    world, entry = chain_table(law, [rows] * 3), 1
    for solve in (AnyFlows(seed), solve_step):
        after, before = (
            side([rows] * 3, [cost] * 4, solve).tables().table(entry)
            for side in (KnownSide.after, KnownSide.before)
        )
        for x, y in permutations(range(3), 2):
            both = cost[x, y] + after[x, y] + before[x, y]
            for known, solved in known_losses(world, [cost] * 4, entry, x, y).items():
                places = [place for place, _ in known]
                if places and min(places) < entry < max(places):
                    assert solved.lower <= both + 1e-9
