"""Real data, which is never part of the project: where it lies, and a reason to skip without it."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("TAKIFUGU_DATA") or BESIDE)


def real(name: str) -> Path:
    """The file of that name; the test that asks for it is skipped where there is none."""
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} in the folder that TAKIFUGU_DATA names, or in ../shared/data")
    return DATA / name
