"""Mutation testing: faults put into the code one at a time; does a test notice?

``python -m torture.mutants --package ledger --sample 100`` prints the mutants that live.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from torture.part_report import Report


def run(report: "Report", rng: "np.random.Generator") -> None:
    """Try mutants of every package in turn while there is time."""
    from torture.mutants.part import run_packages

    run_packages(report, rng)
