"""Oldest and newest versions of what the project needs, on every Python; licences; an SBOM."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from torture.part_report import Report


def run(report: "Report", rng: "np.random.Generator") -> None:
    """Judge the licences of what is pinned, then run tests in an environment of each kind.

    The modules are imported here: a plugin of this package also runs in those environments.
    """
    from torture.dependencies.licence_page import check_licences
    from torture.dependencies.matrix import run_matrix

    check_licences(report)
    run_matrix(report, rng)
