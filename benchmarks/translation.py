"""The gain over the influence curve on real movements, and what a table saves."""

import csv
import gzip
import time
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks._data import CHECKINS
from takifugu.priors import MarkovChain, Transitions
from takifugu.priors.labels import foursquare_labels
from takifugu.translation.accounting.tables import tabulate
from takifugu.translation.translation import Translation

TAU = 1e-5


def run() -> None:
    """Print DP ε at equal Pufferfish ε by both methods, then a table's time per query."""
    if CHECKINS.exists():
        chain = fitted(CHECKINS)
        translation = Translation(chain)
        print(f"New York check-ins, {len(chain.states)} states, unbounded")
        for target in (0.5, 1.0, 2.0):
            begin = time.perf_counter()
            exact = float(translation.to_dp(target, "transport"))
            seconds = time.perf_counter() - begin
            curve = float(translation.to_dp(target, "curve"))
            lower = translation.explain(exact).lower
            print(
                f"Pufferfish {target:g}: transport {exact:.5f}, curve {curve:.5f}, gain"
                f" {exact / curve:.2f}; some mechanism leaks {lower:.4f}; {seconds:.1f} s"
            )
    else:
        print("the check-ins of New York are not here; that part is skipped")
    small = Translation(MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]])))
    begin = time.perf_counter()
    table = tabulate(small)
    made = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(100_000):
        table.to_pufferfish(0.1)
    each = (time.perf_counter() - begin) / 100_000
    print(f"table of {len(table.epsilon)} points: {made:.1f} s once, {1e6 * each:.2f} µs each")


def fitted(path: Path) -> MarkovChain:
    """The chain of common labels, user by user, smoothed as in the paper."""
    labels = foursquare_labels()
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [(row["user_idx"], labels.common(row["cat"])) for row in csv.DictReader(file)]
    paths = [[label for _, label in visits] for _, visits in groupby(rows, key=lambda row: row[0])]
    return Transitions.of(paths, states=labels.labels).chain(unseen="uniform", tau=TAU)
