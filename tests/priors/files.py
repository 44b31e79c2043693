"""The network files that come with pgmpy, found without importing it."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def examples() -> list[Path]:
    """All of them; none if pgmpy is not installed."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(spec.submodule_search_locations[0]) / "utils" / "example_models"
    return sorted(folder.glob("*.bif.gz"))


def example(name: str) -> Path:
    """One of them; skips the test if it is not there."""
    for path in examples():
        if path.name == f"{name}.bif.gz":
            return path
    return pytest.skip(f"{name}.bif.gz comes with pgmpy, which is not installed")
