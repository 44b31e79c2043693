"""The exact translation: the tree solver beside a general linear program, and at 78 states."""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.transport_steps import bound, closed, improve, off_diagonal
from takifugu.translation.chain.unbounded_losses import unbounded_allowance, unbounded_losses
from tests.oracles import transport as oracle

Answer = TypeVar("Answer")
STEPS = 6


def run() -> None:
    """Print the ratio on 11 states, then times on 78 states of three kinds."""
    unbounded_losses(example_rows(3, 3, 2), 0.1)  # compile
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
        print(
            f"78 states, {name}: ε = 0.05 loses {answer.loss:.4f} (at least "
            f"{answer.lower.max():.4f}), {seconds:.1f} s"
        )
    rows = kinds["dense"]
    (allowed, _), seconds = _timed(lambda: unbounded_allowance(rows, 1.0))
    print(f"78 states, dense: loss 1 allows ε = {allowed:.4f}, {seconds:.1f} s")
    solver = ChainTransport(MarkovChain(rows), Secrets(), tolerance=1e-3)
    _, seconds = _timed(lambda: list(solver.rising(np.geomspace(0.01, 1, 40))))
    print(f"78 states, dense: table of 40 ε, {seconds:.1f} s")


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
