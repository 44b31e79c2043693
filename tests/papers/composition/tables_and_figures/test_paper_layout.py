"""Printed numbers stand beside ours where they belong; calibrated ones are in no agreement."""

from dataclasses import replace
from pathlib import Path

import pytest

from takifugu.papers.composition.data.calibration import SEEDS, between_worlds
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    DatasetSummary,
    Estimate,
    PrintedColumn,
    Results,
    printed_number,
    printed_numbers,
)
from takifugu.papers.composition.tables_and_figures.cell_figures import write_tables
from takifugu.papers.composition.tables_and_figures.paper_tables import (
    all_layouts,
    layouts,
    tables,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    agreement_lines,
    agreements,
    all_beside_print,
    printed_belong,
)
from takifugu.papers.composition.tables_and_figures.table_formats import (
    Entry,
    ResultTable,
)
from tests.papers.composition import synthetic_cells
from tests.papers.composition.latex import compiled
from tests.papers.composition.synthetic_cells import CALIBRATED, PAPER_ROWS

PAPER_SIZE = synthetic_cells.about(rows=PAPER_ROWS, calibrated=CALIBRATED)


def entries_of(table: ResultTable) -> list[Entry]:
    """Every number of a table, row by row."""
    return [e for row in table.rows for entries in row.entries for e in entries or ()]


def printed_cells(off: float = 0.0) -> tuple[Cell, ...]:
    """Cells that measured what is printed, and ``off`` more of it."""
    made = []
    for cell in synthetic_cells.cells():
        measured = {}
        for metric, one in cell.measured.items():
            number = printed_number(
                "foursquare",
                cell.mechanism,
                uncertain=cell.uncertain,
                epsilon=cell.epsilon,
                metric=metric,
            )
            if number is None:
                measured[metric] = one
            elif metric == "l1":
                measured[metric] = Estimate(number.value * (1 + off), 0.004)
            else:
                measured[metric] = Estimate(number.value + off, 0.004)
        made.append(replace(cell, measured=measured))
    return tuple(made)


@pytest.fixture(scope="module")
def made() -> tuple[ResultTable, ...]:
    return layouts(PAPER_SIZE, printed_cells(0.02))


@pytest.mark.parametrize(
    ("about", "belong"),
    [
        (synthetic_cells.about(origin="paper"), True),
        (synthetic_cells.about(origin="paper", family="capture24"), False),  # none are printed
        (synthetic_cells.about(rows=PAPER_ROWS), True),
        (synthetic_cells.about(rows=PAPER_ROWS, family="capture24"), False),
        (synthetic_cells.about(rows=3_000_000, calibrated=CALIBRATED), False),
        (synthetic_cells.about(origin="real", rows=PAPER_ROWS), False),
    ],
)
def test_printed_numbers_belong_to_the_papers_data_and_to_a_world_of_its_size(
    about: DatasetSummary, belong: bool
) -> None:
    cells = synthetic_cells.cells()
    assert printed_belong(about) is belong
    assert len(layouts(about, cells)) == 2 * belong
    assert len(all_beside_print(about, cells)) == len(printed_numbers()) * belong == 144 * belong
    entries = [e for table in tables(about, cells) for e in entries_of(table)]
    assert sum(bool(e.printed and e.difference) for e in entries) == 144 * belong


def test_every_number_stands_beside_the_printed_one_with_the_difference(
    made: tuple[ResultTable, ...],
) -> None:
    accuracy, ranking = made
    first = entries_of(accuracy)[0]
    assert (first.mean, first.printed, first.difference) == ("81.0", "79.0", "+2.0")
    texts = [entry.printed for entry in entries_of(accuracy)]
    assert texts == [n.text for n in printed_numbers() if n.metric.startswith("acc")]
    _, ndcg, l1 = entries_of(ranking)[:3]
    assert (ndcg.mean, ndcg.printed, ndcg.difference) == ("0.957", "0.937", "+0.020")
    assert (l1.mean, l1.printed, l1.difference) == ("780", "765", "+15")
    for off, difference in ((-0.02, "−2.0"), (0.0, "0.0")):
        assert entries_of(layouts(PAPER_SIZE, printed_cells(off))[0])[0].difference == difference


def test_calibrated_columns_and_what_follows_from_them_are_in_no_agreement() -> None:
    cells = list(printed_cells())
    spoiled = [
        replace(c, measured={**c.measured, "acc@1": Estimate(0.0, 0.0)})
        if c.mechanism == "Ours-Exp"
        else c
        for c in cells
    ]
    for given in (cells, spoiled):
        every = all_beside_print(PAPER_SIZE, given)
        assert sum(one.calibrated for one in every) == sum(one.follows for one in every) == 18
        found = {one.kind: one for one in agreements(every)}
        assert [one.columns for one in found.values()] == [10, 4, 4]
        assert sum(one.numbers for one in found.values()) == 144 - 18 - 18
        assert all(one.largest < 1e-12 and one.inside == one.numbers for one in found.values())
    not_calibrated = synthetic_cells.about(rows=PAPER_ROWS)
    worst = agreements(all_beside_print(not_calibrated, spoiled))[0]
    assert worst.columns == 16 and worst.largest == pytest.approx(0.973)
    assert worst.numbers - worst.inside == 12


def test_the_fit_of_the_calibration_is_told_by_itself() -> None:
    fit, follows, *_, another = agreement_lines(
        PAPER_SIZE, all_beside_print(PAPER_SIZE, printed_cells(0.02))
    )
    for line in (fit, follows):
        assert "18 numbers" in line and line.count("2.0 points") == 3  # mean, sign, largest
    assert "w/o uncertainty" in fit and "w/ uncertainty" in follows
    low, high = between_worlds().min(), between_worlds().max()
    assert f"{low:.1f} to {high:.1f} points" in another and str(len(SEEDS)) in another


def test_an_interval_holds_a_printed_number_only_on_the_paper_s_data() -> None:
    """On a synthetic world it is no test: another world has other numbers."""
    for about, said in ((PAPER_SIZE, False), (synthetic_cells.about(origin="paper"), True)):
        lines = "\n".join(agreement_lines(about, all_beside_print(about, printed_cells())))
        assert ("95 % interval" in lines) is said
        assert ("noise alone" in lines) is said and ("Another world" in lines) is not said


@pytest.mark.parametrize("off", [0.03, -0.03])
def test_agreement_is_how_far_off_the_predictions_are(off: float) -> None:
    for one in agreements(all_beside_print(PAPER_SIZE, printed_cells(off))):
        assert one.mean == pytest.approx(0.03) and one.largest == pytest.approx(0.03)
        assert one.bias == pytest.approx(off)
        assert len(one.by_group) == 4
        assert list(one.by_group.values()) == pytest.approx([0.03] * 4)
        # a printed count is off by less than our ± of 0.004 rows only after rounding
        assert one.inside == 0 or one.unit == "percent"


def test_a_column_is_calibrated_by_mechanism_prior_and_metric() -> None:
    one = PrintedColumn("MQM, split budget", True, "ndcg")
    about = synthetic_cells.about(rows=PAPER_ROWS, calibrated=(one,))
    marked = [n for n in all_beside_print(about, synthetic_cells.cells()) if n.calibrated]
    assert {n.column for n in marked} == {one} and len(marked) == 6
    lines = agreement_lines(about, all_beside_print(about, synthetic_cells.cells()))
    assert len(lines) == 2 + 3  # what was calibrated, what was predicted, and each kind of number
    assert len(agreement_lines(PAPER_SIZE, all_beside_print(PAPER_SIZE, printed_cells()))) == 7
    paper = synthetic_cells.about(origin="paper")
    assert len(agreement_lines(paper, all_beside_print(paper, synthetic_cells.cells()))) == 1 + 3
    assert agreement_lines(about, ()) == ()


def test_both_layouts_are_written_and_compile(tmp_path: Path) -> None:
    results = Results((PAPER_SIZE, synthetic_cells.about("other")),
                      (*printed_cells(), *synthetic_cells.cells("other")))  # fmt: skip
    assert len(all_layouts(results)) == 2
    files = write_tables(results, tmp_path)
    names = {path.name for path in files}
    for sheet in ("accuracy", "ranking"):
        assert {f"world-{sheet}-beside-print{end}" for end in (".md", ".csv", ".tex")} <= names
    assert not any("other" in name and "print" in name for name in names)
    compiled(tmp_path / "all.tex")
