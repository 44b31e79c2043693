"""The page and the documentation say what the results say, and nothing else."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from takifugu.papers.composition import reproduction_page as document
from takifugu.papers.composition.experiments.experiment import CONTENDERS, MAJORITY
from takifugu.papers.composition.experiments.measurements import Results, ShiftedCell, read_results
from takifugu.papers.composition.experiments.metrics import LESS_IS_BETTER, METRICS
from takifugu.papers.composition.experiments.verdicts import (
    AT_LEAST,
    BETTER,
    CLAIMS,
    MADE_OF,
    ORDER,
    SHIFT,
    ClaimVerdict,
    counted,
    findings,
    majority_line,
    shift_verdict,
    word,
)
from takifugu.papers.composition.reproduction import commit
from takifugu.papers.composition.reproduction_page import DIFFERENCES, DatasetDrawing, page
from takifugu.papers.composition.tables_and_figures import cell_figures as drawings
from takifugu.papers.composition.tables_and_figures.paper_tables import tables
from takifugu.papers.composition.tables_and_figures.print_agreement import RANKING, SHEETS, STYLES
from takifugu.reports.plot_files import drawing
from tests.papers.composition import synthetic_cells

ROOT = Path(__file__).parents[4]
STORED = ROOT / "src" / "takifugu" / "papers" / "composition" / "results.json"


def test_every_contender_and_metric_is_laid_out() -> None:
    assert set(STYLES) == set(CONTENDERS)
    shown = [metric for sheet in SHEETS for metric in sheet.metrics]
    assert [metric.key for metric in shown] == list(METRICS)
    assert {metric.key for metric in shown if not metric.higher} == LESS_IS_BETTER
    assert len(RANKING) == 3 and {cell.mechanism for cell in synthetic_cells.cells()} == {
        *CONTENDERS,
        MAJORITY,
    }


def test_the_page_collects_everything() -> None:
    made = synthetic_cells.results("one", "two")
    figure = drawings.noise_figure(made.about[0], made.of("one"))
    shown = [DatasetDrawing("one", drawing(figure, name="one-noise", caption="A caption & more"))]
    text = page(made, shown, findings(made), ("nothing <here>",)).html()
    assert text.count("SIMULATED DATA") == 2 * 4  # beside each dataset, and on each of its tables
    assert "A caption &amp; more" in text and "nothing &lt;here&gt;" in text
    for one in made.about:
        for table in tables(one, made.of(one.key)):
            assert f'id="{table.key}"' in text
    for difference in DIFFERENCES:
        assert difference.what.split("'")[0] in text
    assert "A &lt;second&gt; note." in text
    assert "<script" not in text and "http" not in text.split("<style>")[0].replace(
        "http-equiv", ""
    )


def test_verdicts_are_in_words() -> None:
    """What is only not contradicted is never said to be shown, and a tie shows nothing."""

    def verdict(claim: str, shown: int, tied: int, left: int, against: int) -> str:
        return word(ClaimVerdict("one", claim, False, shown, tied, left, against, ""))

    assert verdict(AT_LEAST, 4, 0, 0, 0) == verdict(ORDER, 4, 0, 0, 0)
    shown, not_everywhere = verdict(ORDER, 4, 0, 0, 0), verdict(ORDER, 3, 0, 0, 1)
    below_all = {verdict(AT_LEAST, *c) for c in ((3, 1, 0, 0), (3, 0, 1, 0), (0, 0, 4, 0))}
    assert len(below_all) == 1 and shown not in below_all
    weaker = {verdict(ORDER, *c) for c in ((3, 1, 0, 0), (3, 0, 1, 0))}
    assert len(weaker) == 1 and shown not in weaker
    assert verdict(ORDER, 0, 4, 0, 0) == verdict(ORDER, 0, 0, 4, 0) != shown
    assert verdict(AT_LEAST, 3, 0, 0, 1) == not_everywhere != verdict(ORDER, 0, 0, 0, 4)
    assert verdict(ORDER, 0, 0, 1, 3) not in {verdict(ORDER, 0, 0, 0, 4), not_everywhere}
    assert verdict(ORDER, 0, 0, 0, 0) not in {shown, not_everywhere}


def test_the_numbers_of_the_words_are_those_of_the_verdict() -> None:
    one = ClaimVerdict("one", AT_LEAST, True, 200, 24, 60, 4, "")
    assert [int(n) for n in re.findall(r"\d+", counted(one))] == [284, 288, 200, 4, 24, 60]
    other = ClaimVerdict("one", ORDER, False, 3, 0, 9, 60, "")
    assert [int(n) for n in re.findall(r"\d+", counted(other))] == [3, 72, 60, 9]


def test_page_command_and_documentation_say_the_same_of_every_claim() -> None:
    made = synthetic_cells.results("one")
    text = page(made, [], findings(made)).html().replace("&#x27;", "'")
    written = document.document(made)
    for one in findings(made):
        assert word(one) in text and one.detail in text
        assert counted(one) in written and word(one) in written


def test_a_shift_that_does_not_hold_is_named() -> None:
    shifted = tuple(
        ShiftedCell("one", "Ours-Exp", epsilon, epsilon - 0.405, False, epsilon > 1, {})
        for epsilon in synthetic_cells.EPSILONS
    )
    made = replace(synthetic_cells.results("one"), shifted=shifted)
    verdict = shift_verdict("one", made)
    assert not verdict.holds and (verdict.tied, verdict.contradicted) == (4, 2)
    assert "not Ours-Exp at ε = 0.5; Ours-Exp at ε = 1" in verdict.detail
    assert verdict in findings(made)


def test_where_majority_is_better_is_told() -> None:
    made = synthetic_cells.results("one")
    worse = tuple(
        replace(c, lead={**c.lead, "hit": synthetic_cells.BEHIND})
        if c.mechanism == MAJORITY and c.epsilon < 2
        else c
        for c in made.cells
    )
    numbers = [
        re.findall(r"\d+", majority_line("one", replace(made, cells=cells)))[:3]
        for cells in (made.cells, worse)
    ]
    assert numbers == [["0", "72", "72"], ["4", "72", "68"]]
    told = replace(made, cells=worse)
    assert majority_line("one", told) in page(told, [], findings(told)).html()
    assert majority_line("one", told) in document.document(told)
    without = replace(made, cells=tuple(c for c in made.cells if c.mechanism != MAJORITY))
    assert majority_line("one", without) == ""


def test_sameness_is_equal_and_never_shown() -> None:
    same, other = (ClaimVerdict("one", SHIFT, not n, 0, 30 - n, 0, n, "") for n in (0, 2))
    assert counted(same) == "equal in 30 of 30" and word(same) == "equal"
    assert re.findall(r"\d+", counted(other)) == ["28", "30", "2"] and word(other) != "equal"
    for stored in findings(read_results(STORED)):
        assert stored.claim != SHIFT or (counted(stored) == counted(same) and stored.shown == 0)


def test_what_comparisons_are_made_of_is_what_they_are() -> None:
    """Each number is the product that stands behind it, and that of the stored results."""
    parts = re.findall(r"(\d+)(?: each)? for the [^(]*\((.*?)\)", MADE_OF)
    products = [
        np.prod([int(n) for n in re.findall(r"(?<![\w@])\d+\b(?! %)", factors)])
        for _, factors in parts
    ]
    numbers = [int(number) for number, _ in parts]
    assert numbers == products == [288, 12, 72, 30]
    most = dict(zip((*CLAIMS, SHIFT), [288, 12, 72, 72, 30], strict=True))
    for one in findings(read_results(STORED)):
        assert one.compared == most[one.claim] or one.claim == BETTER
        assert one.compared <= most[one.claim]
    made = synthetic_cells.results("one")
    assert MADE_OF in page(made, [], findings(made)).html() and MADE_OF in document.document(made)


def test_the_numbers_of_the_differences_are_those_of_the_notes() -> None:
    notes = (ROOT / "docs" / "explanation" / "paper-notes.md").read_text(encoding="utf-8")
    items = dict(re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", notes, re.MULTILINE | re.DOTALL))
    for difference in DIFFERENCES:
        if difference.item is None:
            continue
        item = " ".join(items[str(difference.item)].split())
        numbers = re.findall(r"\d*\.\d{2,}|\d{3,}", difference.why)
        assert all(number in item for number in numbers), difference.what
        assert difference.item == 9 or numbers or difference.item == 12


def test_a_commit_is_one_or_none() -> None:
    found = commit()
    assert found is None or re.fullmatch(r"[0-9a-f]{40,64}( and changes)?", found)


def test_the_documentation_is_what_the_stored_results_give() -> None:
    stored = read_results(STORED)
    text = (ROOT / "docs" / "explanation" / "reproduction.md").read_text(encoding="utf-8")
    assert text == document.document(stored)
    for one in stored.about:
        assert one.title in text
        assert len(stored.of(one.key)) == 6 * 2 * 6, "every cell is filled"
    assert not re.search(r"(?<!\w)/(home|work|tmp|root)/", text)
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    sizes = [(ROOT / "docs" / "explanation" / path).stat().st_size for path in shown]
    assert len(sizes) == 2 and sum(sizes) < 200_000


def test_another_number_gives_another_page() -> None:
    stored = read_results(STORED)
    changed = Results(stored.about, stored.cells[1:], stored.shifted)
    assert document.document(changed) != document.document(stored)


@pytest.mark.nightly
def test_given_results_are_stored_and_the_page_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from takifugu.papers.composition.experiments.measurements import write_results

    write_results(synthetic_cells.results("one"), tmp_path / "one.json")
    write_results(synthetic_cells.results("two"), tmp_path / "two.json")
    monkeypatch.setattr(document, "STORED", tmp_path / "results.json")
    monkeypatch.setattr(document, "PAGE", tmp_path / "docs" / "explanation" / "reproduction.md")
    monkeypatch.setattr(document, "ROOT", tmp_path)
    given = [str(tmp_path / f"{name}.json") for name in ("one", "two")]
    monkeypatch.setattr("sys.argv", ["document", *given])
    document.main()
    assert capsys.readouterr().out == "docs/explanation/reproduction.md\n"
    assert [one.key for one in read_results(tmp_path / "results.json").about] == ["one", "two"]
    assert "Check-ins of two" in (tmp_path / "docs" / "explanation" / "reproduction.md").read_text()
    drawn = (tmp_path / "docs" / "explanation" / "reproduction" / "overview.svg").read_text()
    assert drawn.count("(simulated data)") == 2 and "Check-ins of one" in drawn
