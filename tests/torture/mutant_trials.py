"""Tries mutants in a process that has not imported what is mutated; prints JSON."""

import json
import sys
from pathlib import Path

import numpy as np

from torture.mutants.finding import mutants_of
from torture.mutants.line_map import LineMap
from torture.mutants.selection import Selection
from torture.mutants.trial import Trial, sampled
from torture.mutants.zygote import prepared


def main(root: Path, folder: Path, top: str, module: str, size: int, files: list[str]) -> None:
    """Map the tests, try a sample of the mutants of a module, print id, change and verdict."""
    lines = LineMap(folder, root, top)
    lines.renew(lines.stale(files))
    source = root / "src" / top
    trial = Trial(Selection(lines, source, files), source, root)
    prepared(root, top)
    wanted = sampled(list(mutants_of(module, source)), size, np.random.default_rng(7))
    known = [
        (one.mutant.id, one.mutant.operator, one.mutant.before, one.kind, one.by)
        for one in trial.verdicts(wanted)
    ]
    told = json.dumps({"verdicts": known, "bad": sorted(trial.selection.bad)})
    sys.stdout.write(f"\n{told}\n")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        sys.argv[3],
        sys.argv[4],
        int(sys.argv[5]),
        sys.argv[6:],
    )
