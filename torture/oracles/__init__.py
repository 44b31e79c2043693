"""Random priors, losses and secrets beside oracles: is every bound a bound, and how tight is it?

Each family (`torture.oracles.families`) draws instances with a bias to the extreme, asks takifugu
and asks an oracle that shares no code with it. `python -m torture.oracles.again FILE` compares an
instance that was kept once more.
"""

import numpy as np

from torture.oracles.families import FAMILIES
from torture.oracles.runner import run_families
from torture.part_report import Report


def run(report: Report, rng: np.random.Generator) -> None:
    """Compare until the time is over."""
    run_families(report, rng, FAMILIES)
