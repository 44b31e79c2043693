"""Notebooks run by a kernel of their own, with nothing of this user's settings."""

from pathlib import Path
from typing import Any

import pytest


def kernel_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what Jupyter and IPython write in ``folder``, whoever runs the tests."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    monkeypatch.setenv("HOME", str(folder))


def execute(path: Path, folder: Path) -> Any:
    """A notebook after it was run in ``folder``; an error if a cell failed."""
    from nbclient import NotebookClient

    book = read_notebook(path)
    client = NotebookClient(
        book, kernel_name="python3", timeout=600, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return book


def read_notebook(path: Path) -> Any:
    """A notebook, found to be valid."""
    nbformat = pytest.importorskip("nbformat", reason="a package of the developers")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book
