"""Translated costs of rows beside linear programs over all tables, on random instances.

``python -m benchmarks.table_oracle --instances 1000``. Each instance is a small table under one
reading of a prior, with costs on its rows as a ledger names them: columns, cross-tabulations,
any change of a row. `tests/oracles/table_instances.py` draws it, with zeros, probabilities down to
1e-140 and values that are certain, and writes it out.

* *Below* counts bounds that are below the truth by more than a relative 1e-9: none may be.
* *Upper/LP* is the bound over the worst loss of any secret of a column.
"""

import argparse
from collections import defaultdict
from time import process_time

import numpy as np

from tests.oracles.table_instances import ColumnCompared, table_instance

INSTANCES, FIRST = 100, 0


def run(instances: int = INSTANCES, first: int = FIRST, family: str | None = None) -> None:
    """Print the ratios of each reading, and every violation."""
    began = process_time()
    by_family: dict[str, list[ColumnCompared]] = defaultdict(list)
    for seed in range(first, first + instances):
        for one in table_instance(seed, family):
            by_family[one.family].append(one)
            if one.below:
                print(f"BELOW: {one}", flush=True)
    print(f"{'reading':22s} columns below   upper/LP: median    p90    p99   largest")
    everything = [one for found in by_family.values() for one in found]
    for name, found in [*sorted(by_family.items()), ("all", everything)]:
        ratios = [one.upper / one.least for one in found if one.complete and one.least > 1e-6]
        points = np.percentile(ratios, (50, 90, 99, 100)) if ratios else [np.nan] * 4
        print(
            f"{name:22s} {len(found):7d} {sum(one.below for one in found):5d}  "
            + "  ".join(f"{point:7.4f}" for point in points)
        )
    print(f"{instances} instances, {process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=INSTANCES)
    parser.add_argument("--first", type=int, default=FIRST, help="The number of the first one.")
    parser.add_argument("--family", default=None)
    given = parser.parse_args()
    run(given.instances, given.first, given.family)
