"""How far the time of a release depends on the counts: the ratio of the slowest to the fastest.

A draw does the same amount of work whatever the counts are, so the ratios are near 1. Times are
those of the thread at work, so that other programs do not count.
"""

from collections.abc import Callable
from statistics import mean
from time import thread_time
from typing import Any

from takifugu.mechanisms import (
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
)

CANDIDATES, REPEATED = 78, 20
ROWS = {
    "all equal": [100] * CANDIDATES,
    "one far ahead": [10**6] + [0] * (CANDIDATES - 1),
    "steps of 40": [40 * i for i in range(CANDIDATES)],
    "steps of 10^6": [10**6 * i for i in range(CANDIDATES)],
    "like 1/rank": [10**6 // (i + 1) for i in range(CANDIDATES)],
}


def run() -> None:
    """Print the mean time for each row of counts, and the ratio between them."""
    for k in (1, 3, 20):
        _compare(f"permute-and-flip, top {k}", PermuteAndFlip(4.0, k).release)
        _compare(f"exponential, top {k}", Exponential(4.0, k, currency="concentrated").release)
        _compare(f"Laplace noise, top {k}", NoisyTopK(IntegerLaplace(4.0), k).release)
    _compare("Laplace noise on every count", IntegerLaplace(4.0).release)
    _compare("Gaussian noise on every count", IntegerGaussian(4.0).release)


def _compare(name: str, release: Callable[[Any], Any]) -> None:
    found = {}
    for row, counts in ROWS.items():
        release(counts)
        found[row] = mean(_took(release, counts) for _ in range(REPEATED))
    shown = ", ".join(f"{row} {1e3 * seconds:.2f} ms" for row, seconds in found.items())
    print(f"{name}: {max(found.values()) / min(found.values()):.1f} times ({shown})")


def _took(release: Callable[[Any], Any], counts: list[int]) -> float:
    began = thread_time()
    release(counts)
    return thread_time() - began


if __name__ == "__main__":
    run()
