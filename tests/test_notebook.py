"""The notebook of the tutorial runs from top to bottom, and is stored without what it printed."""

from pathlib import Path

import pytest

from tests.notebooks import execute, kernel_settings, read_notebook

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorial" / "notebook.ipynb"


@pytest.mark.nightly
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="an extra: install takifugu[tables]")
    pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    kernel_settings(tmp_path / "settings", monkeypatch)
    book = execute(NOTEBOOK, tmp_path)
    shown = [
        output.get("data", {}).get("text/html", "") or output.get("text", "")
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    page = "\n".join(shown)
    assert "proportions of activity" in page  # the plan
    assert "guarantee and provenance" in page and "sleep" in page  # the result
    assert (tmp_path / "shares.csv-metadata.json").exists()


def test_the_notebook_is_stored_without_outputs() -> None:
    book = read_notebook(NOTEBOOK)
    for cell in book.cells:
        assert cell.cell_type == "markdown" or (not cell.outputs and cell.execution_count is None)
