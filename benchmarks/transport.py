"""The exact translation: the tree solver beside a general linear program, and at 78 states.

Times on 78 states are those of both cores, beside the pairwise recursion in the same run.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Membership
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from takifugu.translation.accounting.tables import tabulate
from takifugu.translation.certify.flow import bound, closed, off_diagonal
from takifugu.translation.search.couplings import improve
from takifugu.translation.search.fixed_point import unbounded_losses
from tests.oracles import transport as oracle

Answer = TypeVar("Answer")
STEPS = 6


def run() -> None:
    """Print the ratio on 11 states, then times on 78 states of three kinds."""
    unbounded_losses(example_rows(3, 3, 2), 0.1)  # compile
    Translation(MarkovChain(example_rows(3, 3, 2))).to_cost(_count(2), 1.0)
    rows, epsilon = example_rows(1, 11, 6), 0.3
    fast, fast_time = _timed(lambda: _walk(rows, epsilon))
    slow, slow_time = _timed(lambda: _walk_lp(rows, epsilon))
    print(
        f"11 states, {STEPS} steps: trees {fast_time:.4f} s, HiGHS {slow_time:.2f} s, "
        f"{slow_time / fast_time:.0f}x; largest difference {np.abs(fast / slow - 1).max():.1e}"
    )
    kinds = {"20 successors": example_rows(2, 78, 20), "dense": example_rows(4, 78, 78)}
    kinds["sticky"] = 0.9 * np.eye(78) + 0.1 * kinds["dense"]
    for name, chain in kinds.items():
        answer, seconds = _timed(partial(unbounded_losses, chain, 0.05))
        print(f"78 states, {name}: ε = 0.05 loses {answer.loss:.4f}, {seconds:.1f} s")
    for name, chain in kinds.items():
        _solved(name, chain)


def _solved(name: str, rows: Floats) -> None:
    """What solving takes; the reference is the pairwise recursion of one scalar translation."""
    _, reference = _timed(lambda: unbounded_losses(rows, 0.05))
    tasks: dict[str, Callable[[Translation], object]] = {
        "scalar translation": lambda fresh: fresh.to_pufferfish(0.05),
        "count of one label": lambda fresh: fresh.cost_to_pufferfish(_count(1)),
        "count of three labels": lambda fresh: fresh.cost_to_pufferfish(_count(3)),
        "scalar allowance": lambda fresh: fresh.to_dp(1.0),
        "allowance of a count": lambda fresh: fresh.to_cost(_count(1), 1.0),
    }
    if name == "dense":
        tasks["table to 1"] = lambda fresh: tabulate(fresh, losses=(0.05, 1.0))
    for task, work in tasks.items():
        fresh = Translation(MarkovChain(rows))
        _, seconds = _timed(partial(work, fresh))
        print(f"78 states, {name}, {task}: {seconds:.2f} s, {seconds / reference:.2f} of pairwise")


def _count(labels: int) -> Cost:
    return Cost.of({Membership(range(labels)): "1/20"})


def example_rows(seed: int, states: int, successors: int) -> Floats:
    """Rows with a few likely successors, 1e-5 for each other state."""
    rng = np.random.default_rng(seed)
    rows = np.full((states, states), 1e-5)
    for row in rows:
        row[rng.choice(states, successors, replace=False)] = rng.exponential(size=successors)
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


def _walk(rows: Floats, epsilon: float) -> Floats:
    unit = off_diagonal(len(rows))
    value, couplings = 0 * unit, None
    for _ in range(STEPS):
        cost = closed(epsilon * unit + value)
        _, couplings = improve(rows, rows, cost, guess=value, known=couplings)
        value = bound(rows, rows, cost, couplings)
    return value + np.eye(len(rows))


def _walk_lp(rows: Floats, epsilon: float) -> Floats:
    unit, states = off_diagonal(len(rows)), range(len(rows))
    value = 0 * unit
    for _ in range(STEPS):
        cost = epsilon * unit + value
        value = np.array(
            [
                [oracle.loss_by_flows(rows[x], rows[y], cost) if x != y else 0.0 for y in states]
                for x in states
            ]
        )
    return value + np.eye(len(rows))


def _timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    begin = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - begin
