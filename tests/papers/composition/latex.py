"""Compiles LaTeX, where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest


def compiled(source: Path) -> str:
    """What pdflatex says of a file that it makes a PDF of; without it the test is skipped."""
    found = shutil.which("pdflatex")
    if found is None:
        pytest.skip("pdflatex is not installed")
    done = subprocess.run(  # noqa: S603
        [found, "-interaction=nonstopmode", "-halt-on-error", source.name],
        cwd=source.parent, capture_output=True, check=False,
    )  # fmt: skip
    said = done.stdout.decode("utf-8", "replace")
    if "not found" in said:
        pytest.skip("pdflatex lacks a package")
    assert done.returncode == 0, said[-2000:]
    return said
