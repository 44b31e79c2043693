"""Releases against bare OpenDP, and simulated selections against OpenDP call by call."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

GROUPS, CATEGORIES, K, REPETITIONS = 77, 78, 3, 1_000
ROUNDS = 7


def _turns(*actions: Callable[[], Any]) -> list[float]:
    """The best of several rounds of each action, taken in turns so that all see the same load."""
    for action in actions:
        action()
    best = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for i, action in enumerate(actions):
            start = perf_counter()
            action()
            best[i] = min(best[i], perf_counter() - start)
    return best


def run() -> None:
    """Print both ratios."""
    rng = np.random.default_rng(1)
    counts = rng.geometric(1e-3, (GROUPS, CATEGORIES))
    _vector(counts)
    _selections(counts)


def _vector(counts: Any) -> None:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    from takifugu.mechanisms import IntegerLaplace

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    bare = make_laplace(*space, scale=20.0)
    flat = counts.ravel().tolist()
    ours = IntegerLaplace(20.0)
    theirs, mine = _turns(lambda: bare(flat), lambda: ours.release(counts))
    print(f"{counts.size} counts in one call, integer Laplace: {mine * 1e3:.1f} ms;")
    print(f"  OpenDP's own vector call on a ready list {theirs * 1e3:.1f} ms;", end=" ")
    print(f"rate {theirs / mine:.1%} of OpenDP's")


def _selections(counts: Any) -> None:
    from takifugu.mechanisms import Exponential, IntegerLaplace, NoisyTopK, PermuteAndFlip
    from takifugu.mechanisms.opendp_measurements import noisy_top

    rng = np.random.default_rng(2)
    scale = 60.0
    rows = counts.tolist()
    sample = 300
    for ours in (
        Exponential(scale, K),
        PermuteAndFlip(scale, K),
        NoisyTopK(IntegerLaplace(20.0), K),
    ):
        start = perf_counter()
        ours.simulate(counts, REPETITIONS, rng=rng)
        simulated = perf_counter() - start
        single = noisy_top(1, scale, concentrated=isinstance(ours, Exponential))
        start = perf_counter()
        for i in range(sample):
            single(rows[i % GROUPS])
        one = (perf_counter() - start) / sample
        calls = REPETITIONS * GROUPS * K
        print(
            f"{REPETITIONS} × {GROUPS} groups × top {K} by {ours.kind}: simulated"
            f" {simulated:.2f} s; OpenDP once per group and rank {one * calls:.0f} s"
            f" (extrapolated from {sample} of {calls} calls, {one * 1e3:.2f} ms each);"
            f" {one * calls / simulated:.0f} times faster"
        )
