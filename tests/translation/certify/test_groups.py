"""Groups of values: windows and conditioned chains, beside the program over all sequences."""

import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu._core.numeric import Booleans, Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import Translation
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.certify.groups import ConditionedWalk
from takifugu.translation.certify.laws import HeldLaw, Law, row_slack
from takifugu.translation.search.couplings import solve_step

LENGTH, SIZE = 4, 3


def group_program(
    rows: Floats, start: Floats, epsilon: float, entry: int, left: Booleans, right: Booleans
) -> float:
    """The loss of one pair of groups: a linear program over all sequences."""
    paths = np.array(list(np.ndindex(*(SIZE,) * LENGTH)))
    law = start[paths[:, 0]]
    for time in range(LENGTH - 1):
        law = law * rows[paths[:, time], paths[:, time + 1]]
    differ = (paths[:, None, :] != paths[None, :, :]).sum(axis=2)
    pairs = np.argwhere(differ == 1)
    constraints = np.zeros((len(pairs), len(paths)))
    constraints[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    constraints[np.arange(len(pairs)), pairs[:, 1]] = -np.exp(epsilon)
    above, below = (law * side[paths[:, entry]] for side in (left, right))
    above, below = above / above.sum(), below / below.sum()
    found = linprog(
        -above, constraints, np.zeros(len(pairs)), below[None, :], [1.0], bounds=(0, None)
    )
    return float(np.log(-found.fun))


@pytest.mark.parametrize("seed", range(8))
def test_groups_lie_above_the_program_and_close_to_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(SIZE, 0.6), size=SIZE)
    start, epsilon = rng.dirichlet(np.ones(SIZE)), float(rng.choice([0.3, 1.0]))
    entry, turned = int(rng.integers(LENGTH)), bool(rng.integers(2))
    group, single = np.array([True, True, False]), np.array([False, False, True])
    pair = (single, group) if turned else (group, single)
    secrets = Secrets(pairs=(((0, 1), (2,)),), entries=(entry,))
    found = Translation(MarkovChain(rows, start=start, length=LENGTH), secrets).explain(epsilon)
    true = max(group_program(rows, start, epsilon, entry, *sides) for sides in (pair, pair[::-1]))
    assert true - 1e-8 <= found.pufferfish <= 1.02 * true
    assert found.lower <= true + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_a_conditioned_chain_is_never_below_the_program(seed: int) -> None:
    """All entries before the secret one, which is the last."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(SIZE, 0.6), size=SIZE)
    start, epsilon = rng.dirichlet(np.ones(SIZE)), 0.7
    law, slack = Law.from_floats(start), row_slack(SIZE)
    steps: list[tuple[Floats, Floats]] = []
    cost = off_diagonal(SIZE, epsilon)
    for _ in range(LENGTH - 1):
        back, law = law.back(rows)
        steps.insert(0, (back, cost))
    groups = np.array([True, True, False]), np.array([False, False, True])
    held, nothing = HeldLaw(law, law.slack), np.zeros((SIZE, SIZE))
    walk = ConditionedWalk(held, groups, cost, steps, slack)
    dear = ConditionedWalk(held, groups, cost, steps, slack)
    while not walk.done:
        step = walk.step()
        walk.take(solve_step(step, guess=np.full((SIZE, SIZE), step.dearest / 2)))
        dear.take(None)
    couplings = solve_step(walk.closing(nothing), guess=np.full((1, 1), 0.5))
    true = group_program(rows, start, epsilon, LENGTH - 1, *groups)
    assert true - 1e-9 <= walk.loss(nothing, couplings) <= 1.3 * true
    assert walk.loss(nothing, couplings) <= dear.loss(nothing, None)
    assert dear.loss(nothing, couplings) >= true - 1e-9
