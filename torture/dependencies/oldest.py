"""The oldest versions that the project says it works with, as constraints for an installer.

Every requirement has a lower bound, and every bound is a version that was released: so the file
follows from ``pyproject.toml`` alone, and whether these versions work is what a run finds out.
"""

from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from torture.dependencies.requirements import Asked

OLDEST = Path(__file__).with_name("oldest.txt")


def lower_bound(one: Requirement) -> Version:
    """The oldest version that a requirement allows.

    Raises:
        ValueError: It has no lower bound, or its bound is itself excluded.
    """
    bounds = [
        Version(said.version) for said in one.specifier if said.operator in {">=", "==", "~="}
    ]
    if not bounds:
        raise ValueError(f"{one}: no oldest version is given; write {one.name}>=…")
    if not one.specifier.contains(max(bounds), prereleases=True):
        raise ValueError(f"{one}: its oldest version is excluded")
    return max(bounds)


def oldest(asked: Asked) -> dict[str, Version]:
    """The oldest version of everything that is asked for by name."""
    return {name: lower_bound(one) for name, one in sorted(asked.direct.items())}


def constraints(asked: Asked) -> str:
    """The file of these versions."""
    return "".join(f"{name}=={version}\n" for name, version in oldest(asked).items())
