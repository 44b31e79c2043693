"""Tables say what was measured, which is best, what the data is; every format keeps the numbers."""

import csv
import io
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from takifugu.papers.composition.experiments.measurements import Estimate
from takifugu.papers.composition.tables_and_figures.paper_tables import (
    sheet_table,
    spending_table,
    tables,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import SHEETS
from takifugu.papers.composition.tables_and_figures.table_formats import (
    ResultTable,
    latex_document,
    latex_text,
)
from tests.papers.composition import synthetic_cells
from tests.papers.composition.latex import compiled

SIMULATED = "SIMULATED DATA"
FORMATS = (ResultTable.markdown, ResultTable.csv, ResultTable.latex, ResultTable.html)


@pytest.fixture(scope="module")
def made() -> tuple[ResultTable, ...]:
    return tables(synthetic_cells.about(), synthetic_cells.cells())


def test_rows_are_epsilons_and_columns_are_mechanisms_and_metrics(
    made: tuple[ResultTable, ...],
) -> None:
    accuracy, ranking, spending = made
    for table in made:
        assert [row.epsilon for row in table.rows] == ["0.5", "1", "2", "3", "4", "5"] * 2
        assert [row.uncertain for row in table.rows] == [False] * 6 + [True] * 6
        names = tuple(group.heading for group in table.groups)
        assert names == synthetic_cells.NAMES[:-1]  # Majority has no ε: it is in the caption
        assert all(len(e or ()) == len(table.columns) for row in table.rows for e in row.entries)
    assert "Majority, which uses nothing of what is released: 20.00 %" in accuracy.caption
    assert ranking.columns == ("HR % ↑", "NDCG ↑", "ℓ1 ↓")
    assert len(spending.columns) == 2


def test_the_best_is_bold_and_ties_at_this_rounding_are_all_best() -> None:
    cells = [
        replace(cell, measured={**cell.measured, "acc@1": Estimate(value, 0.01)})
        for cell, value in zip(
            synthetic_cells.cells()[::12], (0.5, 0.80004, 0.8, 0.7, 0.1), strict=False
        )
    ]
    row = sheet_table(SHEETS[0], synthetic_cells.about(), tuple(cells)).rows[0]
    assert [entries[0].best for entries in row.entries if entries] == [False, True, True] + [
        False
    ] * 2
    least = [
        replace(cell, measured={**cell.measured, "l1": Estimate(value, 1)})
        for cell, value in zip(synthetic_cells.cells()[::12], (9, 3, 5, 7, 8), strict=False)
    ]
    row = sheet_table(SHEETS[1], synthetic_cells.about(), tuple(least)).rows[0]
    assert [entries[2].best for entries in row.entries if entries][:2] == [False, True]


def test_printed_numbers_stand_only_beside_the_papers_data() -> None:
    def printed(table: ResultTable) -> list[str]:
        return [e.printed for row in table.rows for es in row.entries for e in es or ()]

    paper = tables(synthetic_cells.about(origin="paper"), synthetic_cells.cells())[0]
    texts = [text for text in printed(paper) if text]
    assert len(texts) == 2 * 2 * 6 * 3 and texts.count("20.83") == 1
    assert "18.61" in paper.caption
    for origin in ("real", "simulated"):
        other = tables(synthetic_cells.about(origin=origin), synthetic_cells.cells())[0]
        assert not any(printed(other))
        # a world shows how unlike the paper's data its groups are, and whose number that is
        assert ("printed for the Foursquare data: 18.61 %" in other.caption) is (
            origin == "simulated"
        )


def test_every_table_of_simulated_data_says_so_in_every_format(
    made: tuple[ResultTable, ...],
) -> None:
    real = tables(synthetic_cells.about(origin="real"), synthetic_cells.cells())
    for write in FORMATS:
        assert all(SIMULATED in write(table) for table in made)
        assert not any(SIMULATED in write(table) for table in real)


def test_what_is_missing_is_left_empty() -> None:
    some = tuple(
        c for c in synthetic_cells.cells() if (c.mechanism, c.epsilon) != ("Ours-Exp", 2.0)
    )
    table = tables(synthetic_cells.about(), some)[0]
    assert table.rows[2].entries[1] is None
    for write in FORMATS:
        assert write(table)


def test_an_infinite_noise_is_a_sign() -> None:
    cells = tuple(replace(cell, noise=inf, epsilon_dp=0.0) for cell in synthetic_cells.cells())
    table = spending_table(synthetic_cells.about(), cells)
    assert "0 / ∞" in table.markdown() and r"$\infty$" in table.latex()


def test_csv_gives_every_number_back(made: tuple[ResultTable, ...]) -> None:
    for table in made:
        rows = list(csv.DictReader(io.StringIO(table.csv())))
        assert len(rows) == 12 * 5 * len(table.columns)
        row = table.rows[3].entries[1]
        assert row is not None
        mine = [
            r for r in rows
            if (r["mechanism"], r["epsilon"], r["prior"]) == ("Ours-Exp", "3", "w/o uncertainty")
        ]  # fmt: skip
        assert [r["mean"] for r in mine] == [entry.mean for entry in row]
        assert [r["half"] for r in mine] == [entry.half for entry in row]


def test_latex_escapes_what_it_must() -> None:
    assert latex_text("a_b & 50 % {x} ε ≥ ~^\\") == (
        r"a\_b \& 50 \% \{x\} $\varepsilon$ $\geq$ \textasciitilde{}\textasciicircum{}"
        r"\textbackslash{}"
    )
    assert latex_text("café ﬁ 東") == "café fi ?"
    for letter in map(chr, range(32, 127)):
        assert not set(latex_text(letter)) & set("&%$#_~^") or "\\" in (latex_text(letter))


def test_latex_compiles(made: tuple[ResultTable, ...], tmp_path: Path) -> None:
    (tmp_path / "tables.tex").write_text(latex_document(made), encoding="utf-8")
    said = compiled(tmp_path / "tables.tex")
    assert "Overfull \\hbox" not in said and (tmp_path / "tables.pdf").stat().st_size > 10_000
