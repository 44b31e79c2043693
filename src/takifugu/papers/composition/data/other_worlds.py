"""What another seed of the synthetic check-ins would have changed, from worlds that were drawn.

The interval beside a measured number is of the mechanism's noise on one world. Another world of the
same model, of the same size and with the same parameters, has other countries, and so another
expected accuracy. ``python -m takifugu.papers.composition.data.other_worlds`` draws the worlds with
the seeds `SEEDS` again, which neither the calibration nor the measurement uses, and writes what
Ours-Exp without uncertainty is expected to get right on each to ``other_worlds.json``.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np

from takifugu._core.numeric import Floats

STORED = Path(__file__).with_suffix(".json")
SEEDS = tuple(range(10_001, 10_025))


def other_world(seed: int) -> Floats:
    """``[place, ε]``: what Ours-Exp is expected to get right on the world of a seed, in points."""
    from takifugu.papers.composition.data.calibration import walked_accuracies

    return walked_accuracies(seed)


@cache
def stored_worlds() -> Floats:
    """``[world, place, ε]`` of the worlds that were drawn, in points with two digits."""
    document = json.loads(STORED.read_text(encoding="utf-8"))
    return np.array([document[str(seed)] for seed in SEEDS], dtype=np.float64)


def between_worlds() -> Floats:
    """``[place, ε]``: the standard deviation from world to world, in points."""
    deviation: Floats = np.std(stored_worlds(), axis=0, ddof=1)
    return deviation


def main() -> None:
    """Draw every world and store what was found."""
    lines = []
    for seed in SEEDS:
        lines.append(f' "{seed}": {json.dumps(np.round(other_world(seed), 2).tolist())}')
        print(lines[-1].strip(), flush=True)
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    stored_worlds.cache_clear()
    print("standard deviation from world to world:", np.round(between_worlds(), 1).tolist())


if __name__ == "__main__":
    main()
