"""Curves of large chains against the log-ratios they are made of, formed once by numpy."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.priors.markov import MarkovChain

STATES, EXPOSED, ROUNDS = 78, 100, 9


def run() -> None:
    """Print the medians of times and ratios; what is compared runs one after the other."""
    rng = np.random.default_rng(78)
    table = np.maximum(rng.dirichlet(np.full(STATES, 0.5), STATES), 1e-5)
    table /= table.sum(axis=1, keepdims=True)
    short, long = (MarkovChain(table, length=length) for length in (1_000, 1_000_000))
    rounds = [
        (
            _time(lambda: _log_ratios(table)),
            _time(lambda: _curve(short)),
            _time(lambda: _curve(long)),
        )
        for _ in range(ROUNDS)
    ]
    numpy, first, second = np.array(rounds).T
    count = 2 * EXPOSED * STATES**3 / 1e6
    print(f"{STATES} states, b ≤ {EXPOSED}, {STATES * (STATES - 1):,} ordered pairs")
    print(f"numpy, {count:.0f} million log-ratios and their maxima: {np.median(numpy):.3f} s")
    for name, seconds in (("T = 1,000", first), ("T = 1,000,000", second)):
        ratio = np.median(seconds / numpy)
        print(f"chain_curve, {name}: {np.median(seconds):.3f} s, {ratio:.2f} times that")
    print(f"T = 1,000,000 against T = 1,000: {np.median(second / first):.2f}")


def _time(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


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
