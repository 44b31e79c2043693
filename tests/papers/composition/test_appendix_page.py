"""The page of definitions, baselines and concepts says what is computed."""

import json
import re
from math import inf
from pathlib import Path

import pytest

from takifugu.errors import InvalidFile
from takifugu.papers.composition import appendix_page as page
from takifugu.papers.composition.composition_table import composition_rows
from takifugu.papers.composition.experiments.compared_chains import (
    METHODS,
    OTHERS,
    PUBLISHED,
    STAYS,
    binary,
    compared_allowances,
    compared_chains,
    published_chains,
    read_chain_allowances,
    stored_chains,
    write_chain_allowances,
)
from tests.raising import raises

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "explanation"


def test_the_documentation_is_what_is_computed() -> None:
    text = (DOCS / "definitions-and-baselines.md").read_text(encoding="utf-8")
    fitted = read_chain_allowances(page.FITTED, any_version=True)
    assert text == page.document(composition_rows(), stored_chains(page.STORED), fitted)
    assert not re.search(r"(?<!\w)/(home|work|tmp|root)/", text)
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(shown) == 3
    assert all(0 < (DOCS / path).stat().st_size < 100_000 for path in shown)


@pytest.mark.nightly
def test_the_stored_bounds_are_those_of_their_chains() -> None:
    made = stored_chains(page.STORED)
    assert [row.name for row in made.equal] == [binary(p, p).name for p in STAYS]
    assert len(made.unequal) == len(OTHERS)
    assert [row.name for row in made.published] == [one.name for one in published_chains()]
    again = [compared_allowances(one) for one in (binary(0.6, 0.6), published_chains()[1])]
    for new in again:
        (old,) = [row for row in (*made.equal, *made.published) if row.name == new.name]
        assert old.norm == pytest.approx(new.norm, rel=1e-9)
        for method in METHODS:
            before, now = old.allowed[method], new.allowed[method]
            assert (before is None) == (now is None)
            assert before == (None if now is None else pytest.approx(now, rel=2e-3))


def test_the_bounds_are_in_the_order_that_theory_has() -> None:
    made = stored_chains(page.STORED)
    for row in (*made.equal, *made.unequal, *made.published):
        known = {method: value or 0.0 for method, value in row.allowed.items()}
        largest = max(known.values())
        assert known["takifugu"] >= largest * (1 - 2e-3)  # it is exact: nothing sound allows more
        assert known["MQMExact"] >= known["MQMApprox"] * (1 - 1e-9)
        assert known["GK16, sharpened"] >= known["GK16"]
        assert (row.allowed[PUBLISHED] is None) == (row.norm >= 1)


def test_gk16_applies_to_no_fitted_chain() -> None:
    fitted = read_chain_allowances(page.FITTED, any_version=True)
    assert len(fitted) >= 3
    for row in fitted:
        assert row.norm > 1
        assert row.allowed[PUBLISHED] is None


def test_comparisons_are_kept_and_read_again(tmp_path: Path) -> None:
    made = stored_chains(page.STORED)
    rows = (*made.equal, *made.unequal, *made.published)
    write_chain_allowances(rows, tmp_path / "baselines.json")
    steps: list[str] = []
    again = compared_chains(tmp_path, lambda what, *_: steps.append(what))
    assert again == made  # nothing was computed
    assert not steps
    assert any(row.norm == inf for row in again.published)


def test_what_another_version_wrote_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "baselines.json"
    write_chain_allowances(stored_chains(page.STORED).published, path)
    changed = json.loads(path.read_text(encoding="utf-8"))
    changed["version"] = "another"
    path.write_text(json.dumps(changed), encoding="utf-8")
    assert read_chain_allowances(path) == ()
    assert len(read_chain_allowances(path, any_version=True)) == len(published_chains())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "version": 1, "chains": [1]}'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with raises(InvalidFile):
        read_chain_allowances(tmp_path / "x.json", any_version=True)


@pytest.mark.nightly
def test_fitted_rows_of_runs_are_stored_and_the_page_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = stored_chains(page.STORED).published[-1:]
    write_chain_allowances(rows, tmp_path / "one.json")
    monkeypatch.setattr(page, "FITTED", tmp_path / "fitted.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "docs" / "explanation" / "page.md")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["page", "--fitted", str(tmp_path / "one.json")])
    page.main()
    assert capsys.readouterr().out == "docs/explanation/page.md\n"
    assert read_chain_allowances(tmp_path / "fitted.json") == rows
    assert (tmp_path / "docs" / "explanation" / "page" / "markov-quilt.svg").exists()
    monkeypatch.setattr("sys.argv", ["page", "--fitted", str(tmp_path / "none.json")])
    with pytest.raises(SystemExit):
        page.main()
