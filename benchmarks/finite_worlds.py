"""Leakage against the matrix product it needs; fifty runs of a random mechanism."""

import time
from collections.abc import Callable

import numpy as np

from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.joint_runs import joint_leakage
from takifugu.priors import Explicit, Tables, entry_pairs

SEEDS = range(5)


def run() -> None:
    """Print both figures."""
    one_run()
    fifty_runs()


def one_run(*, bits: int = 12, outputs: int = 1000, priors: int = 100) -> float:
    """Leakage over every entry pair, beside P(D | s, θ) @ P(ω | D) as one product; the ratio."""
    universe = Tables.bits(bits)
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(len(universe)), priors)
    listed = tuple(Explicit(universe, law, f"prior {i}") for i, law in enumerate(laws))
    world = World(universe, listed, entry_pairs(universe))
    mechanism = FiniteMechanism(universe, rng.dirichlet(np.ones(outputs), len(universe)))
    given = laws[None] * world.masks[:, None]  # [secret, prior, dataset]
    given = (given / given.sum(axis=-1, keepdims=True)).reshape(-1, len(universe))
    product = _seconds(lambda: given @ mechanism.likelihood)
    ours = _seconds(lambda: leakage(world, mechanism))
    print(
        f"leakage of {len(universe):,} datasets x {outputs:,} outputs x {priors} priors x"
        f" {len(world.pairs)} ordered pairs: {ours:.2f} s; the product it needs,"
        f" {given.shape[0]:,} x {given.shape[1]:,} @ {outputs:,}: {product:.2f} s;"
        f" ratio {ours / product:.2f} (at most 3 wanted)"
    )
    return ours / product


def fifty_runs(*, runs: int = 50, outputs: int = 10, bits: int = 6) -> None:
    """The exact loss of many runs of a generic mechanism, over every entry pair."""
    universe = Tables.bits(bits)
    for flat, kind in ((1.0, "generic"), (50.0, "nearly flat")):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            prior = Explicit(universe, rng.dirichlet(np.ones(len(universe))))
            world = World(universe, (prior,), entry_pairs(universe))
            rows = rng.dirichlet(np.full(outputs, flat), len(universe))
            mechanism = FiniteMechanism(universe, rows)
            start = time.perf_counter()
            result = joint_leakage(world, [(mechanism, runs)])
            seconds = time.perf_counter() - start
            print(
                f"{runs} runs, {outputs} outputs, {len(universe)} datasets,"
                f" {len(world.pairs)} ordered pairs, {kind}, seed {seed}: {seconds:.2f} s,"
                f" eps {result.epsilon:.6f}, gap {result.epsilon - result.attained:.1e},"
                f" exact {result.exact}, {result.examined:,} boxes"
            )


def _seconds(work: Callable[[], object], *, repeat: int = 3) -> float:
    """The best of a few runs."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)
