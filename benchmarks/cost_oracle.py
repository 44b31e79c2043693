"""Translated costs beside linear programs over all datasets, on random instances.

``python -m benchmarks.cost_oracle --instances 20000``. Each instance is a small prior (chains of
2 to 4 states and up to 5 entries, networks, fields, tables, products, adversaries who know more)
with random costs and secrets; `tests/oracles/cost_instances.py` draws it and writes it out.

* *Below* counts bounds that are below the truth, *above* counts witnesses that are above it, both
  by more than 1e-9: neither may happen.
* *Upper/LP* is the bound over the loss of the worst secret, *lower/LP* the witness over it; where
  only some of the laws are written out (unbounded chains, unknown starts, intervals) the truth may
  be larger than the LP, and only *below* is checked.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from time import process_time

import numpy as np

from tests.oracles.cost_comparison import Compared, compared
from tests.oracles.cost_instances import instance

INSTANCES, FIRST = 400, 0


def run(instances: int = INSTANCES, first: int = FIRST, family: str | None = None) -> None:
    """Print the ratios of each family, and every violation."""
    began = process_time()
    by_family: dict[str, list[Compared]] = defaultdict(list)
    for seed in range(first, first + instances):
        try:
            one = compared(seed, instance(seed, family))
        except Exception as error:  # noqa: BLE001 - all of them are to be seen
            print(f"FAILED: seed {seed}: {type(error).__name__}: {error}", flush=True)
            one = Compared(seed, "failed", np.inf, 0.0, 0.0, 0.0, complete=False)
        if one.below or one.above:
            print(f"{'BELOW' if one.below else 'ABOVE'}: {one}", flush=True)
        by_family[one.family].append(one)
        if sys.stderr.isatty():
            print(f"\r{seed - first + 1}/{instances}", end="", file=sys.stderr)
    print(
        f"{'family':22s} {'count':>6s} below above   upper/LP: median    p90    p99   largest"
        "   lower/LP: median    p10"
    )
    for name, results in sorted(by_family.items()):
        _line(name, results)
    chains = [r for name, found in by_family.items() if name.startswith("chain") for r in found]
    _line("all chains", chains)
    _line("all", [r for results in by_family.values() for r in results])
    print(f"{process_time() - began:.0f} s of CPU")


def _line(name: str, results: list[Compared]) -> None:
    known = [r for r in results if r.complete and r.least > 1e-6]
    upper = [r.upper / r.least for r in known]
    lower = [r.witness / r.least for r in known]
    print(
        f"{name:22s} {len(results):6d} {sum(r.below for r in results):5d}"
        f" {sum(r.above for r in results):5d}   {_shares(upper, (50, 90, 99, 100), 17)}"
        f"   {_shares(lower, (50, 10), 17)}",
        flush=True,
    )


def _shares(ratios: Iterable[float], points: tuple[int, ...], first: int) -> str:
    numbers = list(ratios)
    if not numbers:
        return " " * first
    found = [float(np.percentile(numbers, point)) for point in points]
    return f"{found[0]:{first}.4f}" + "".join(f" {value:6.4f}" for value in found[1:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=INSTANCES)
    parser.add_argument("--first", type=int, default=FIRST, help="The number of the first one.")
    parser.add_argument("--family", default=None)
    given = parser.parse_args()
    run(given.instances, given.first, given.family)
