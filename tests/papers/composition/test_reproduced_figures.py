"""`takifugu reproduce figures`: curves, definitions, baselines and concepts in one page."""

import json
from pathlib import Path

import pytest

from takifugu.papers.composition.appendix_page import STORED
from takifugu.papers.composition.experiments.compared_chains import (
    stored_chains,
    write_chain_allowances,
)
from takifugu.papers.composition.reproduction import ReproductionRequest, reproduce
from takifugu.papers.composition.tables_and_figures import curve_figures


@pytest.mark.nightly
def test_everything_is_written_listed_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_figures, "BINARY", ((0.1, 0.3),))  # few curves: they have own tests
    monkeypatch.setattr(curve_figures, "LENGTHS", (0.5,))
    monkeypatch.setattr(curve_figures, "ENTRIES", 5)
    monkeypatch.setattr(curve_figures, "alarm_file", lambda: None)
    made = stored_chains(STORED)
    known = (*made.equal, *made.unequal, *made.published)
    write_chain_allowances(known, tmp_path / "work" / "baselines.json")  # as a run before left it
    request = ReproductionRequest("figures", None, tmp_path, 2, 1)
    done = reproduce(request, lambda *_: None, lambda _: None)
    listed = {path.relative_to(tmp_path).as_posix() for path in done.files}
    for name in ("likelihood-vectors", "markov-quilt", "baselines"):
        assert {f"figures/{name}.svg", f"figures/{name}.png"} <= listed
    for name in ("definitions", "baselines"):
        assert {f"tables/{name}.{end}" for end in ("md", "csv", "tex")} <= listed
    assert "tables/definitions.json" in listed
    assert "tables/baselines-fitted.md" not in listed  # nothing was fitted
    assert all((tmp_path / path).stat().st_size > 0 for path in listed)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["files"]) == listed - {"manifest.json"}
    page = done.page.read_text(encoding="utf-8")
    assert "Definitions and baselines" in page
    assert "Noiseless privacy" in page
    assert "no, not as printed" in page
    assert page.count("<svg ") == 2 + 3 + 1  # curves, these, and the shift of what is printed
