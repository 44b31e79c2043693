"""Curves of large chains against the log-ratios they are made of, formed once by numpy."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from takifugu.influence.chains import chain_curve
from takifugu.priors.markov import MarkovChain

STATES, EXPOSED, ROUNDS = 78, 100, 3


def run() -> None:
    """Print times and ratios; each time is the best of a few, taken in turns."""
    rng = np.random.default_rng(78)
    table = np.maximum(rng.dirichlet(np.full(STATES, 0.5), STATES), 1e-5)
    table /= table.sum(axis=1, keepdims=True)
    chains = {length: MarkovChain(table, length=length) for length in (1_000, 1_000_000)}
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        _time(best, "log-ratios", lambda: _log_ratios(table))
        for length, chain in chains.items():
            _time(best, f"T = {length:,}", lambda chain=chain: _curve(chain))  # type: ignore[misc]
    base = best["log-ratios"]
    count = 2 * EXPOSED * STATES**3
    print(f"{STATES} states, b ≤ {EXPOSED}, {STATES * (STATES - 1):,} ordered pairs")
    print(f"numpy, {count / 1e6:.0f} million log-ratios and their maxima: {base:.3f} s")
    for name, seconds in best.items():
        if name != "log-ratios":
            print(f"chain_curve, {name}: {seconds:.3f} s, {seconds / base:.2f} times that")
    print(f"T = 1,000,000 against T = 1,000: {best['T = 1,000,000'] / best['T = 1,000']:.2f}")


def _time(best: dict[str, float], name: str, work: Callable[[], object]) -> None:
    start = perf_counter()
    work()
    best[name] = min(best.get(name, np.inf), perf_counter() - start)


def _log_ratios(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    power = np.eye(len(table))
    worst = 0.0
    for _ in range(EXPOSED):
        power = power @ table
        for side in (np.log(power), np.log(power.T)):
            worst += float((side[:, None, :] - side[None, :, :]).max(axis=2).sum())
    return worst


def _curve(chain: MarkovChain) -> float:
    curve = chain_curve(chain, max_exposed=EXPOSED)
    assert curve.leak.shape == (STATES * (STATES - 1), EXPOSED + 1)
    return float(curve.pooled()[0])
