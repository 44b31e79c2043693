"""``python -m torture.kills SCENARIO SEED --size N``: one trial again, and what came of it."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from torture.kills.jobs import warm
from torture.kills.scenarios import SCENARIOS, NotHere, Setting
from torture.kills.storms import Outcome, counted


def facts(outcome: Outcome) -> dict[str, Any]:
    """An outcome as it is printed."""
    return {
        "kills": outcome.kills,
        "acknowledged": outcome.acknowledged,
        "moments": outcome.moments,
        "points": outcome.points,
        "details": outcome.details,
        "counted": counted(outcome),
        "faults": [[fault.kind, fault.what] for fault in outcome.faults],
    }


def main() -> int:
    """Run it; 0 if nothing was found."""
    names = [scenario.name for scenario in SCENARIOS]
    options = argparse.ArgumentParser(prog="python -m torture.kills", description=__doc__)
    options.add_argument("scenario", choices=names)
    options.add_argument("seed", type=int)
    options.add_argument("--size", type=int, help="of the trial")
    options.add_argument("--keep", type=Path, help="a folder for a ledger with something wrong")
    given = options.parse_args()
    (scenario,) = (one for one in SCENARIOS if one.name == given.scenario)
    warm()
    size = scenario.size if given.size is None else given.size
    try:
        outcome = scenario.trial(Setting(np.random.default_rng(given.seed), size, given.keep))
    except NotHere as reason:
        print(json.dumps({"not here": str(reason)}))
        return 0
    print(json.dumps(facts(outcome), indent=1))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
