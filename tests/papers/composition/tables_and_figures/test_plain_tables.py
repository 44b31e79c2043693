"""Plain tables in every format, and the tables of definitions and baselines."""

import csv
import io
import json
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest

from takifugu.finite import World
from takifugu.papers.composition.appendix_page import (
    FITTED,
    HEADS,
    NOT_APPLICABLE,
    STORED,
    TABLED,
    TABLED_OTHERS,
    baseline_table,
    definition_document,
    definition_table,
    fitted_table,
    write_appendix,
)
from takifugu.papers.composition.composition_table import (
    DEFINED,
    composition_rows,
    odds_of_runs,
    odds_together,
)
from takifugu.papers.composition.experiments.compared_chains import (
    METHODS,
    read_chain_allowances,
    stored_chains,
)
from takifugu.papers.composition.tables_and_figures.table_formats import (
    PlainTable,
    write_table_files,
)

SMALL = PlainTable("small", "A & B", "100 % of it", ("a", "b|c"), (("=1", "x_y"),), (1.0, 2.0))


def test_every_format_says_the_same(tmp_path: Path) -> None:
    assert r"| =1 | x_y |" in SMALL.markdown()
    assert r"| a | b\|c |" in SMALL.markdown()
    assert list(csv.reader(io.StringIO(SMALL.csv()))) == [["a", "b|c"], ["'=1", "x_y"]]
    assert r"=1 & x\_y \\" in SMALL.latex()
    assert r"A \& B. 100 \% of it" in SMALL.latex()
    assert "A &amp; B" in SMALL.part().html()
    files = write_table_files([SMALL], tmp_path)
    assert [path.name for path in files] == ["small.md", "small.csv", "small.tex"]
    assert files[0].read_text(encoding="utf-8") == SMALL.markdown()


def test_a_row_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        PlainTable("x", "x", "x", ("a", "b"), (("1",),), (1.0, 1.0))


def test_the_definitions_stand_in_order_and_lose_no_letter_in_latex() -> None:
    rows = composition_rows()
    table = definition_table(rows)
    assert [row[0] for row in table.rows] == [one.definition for one in DEFINED]
    (different,) = [row for row in table.rows if "not as printed" in row[3]]
    assert different[0].startswith("Noiseless")
    assert "?" not in table.latex()


def test_a_witness_can_be_checked_from_the_file_alone() -> None:
    rows = composition_rows()
    document = json.loads(json.dumps(definition_document(rows)))
    for row in rows:
        one = document[row.about.key]
        assert one["composes"] == row.composes
        if row.composes == "yes":
            assert one["compared"]
            continue
        world = row.about.world()
        if "functions" in one:
            _check_functions(world, one)
            continue
        assert list(one["likelihood"]) == [str(data) for data in world.universe.datasets]
        read = [[Fraction(p) for p in chances] for chances in one["likelihood"].values()]
        for runs, said in ((1, "exp_loss_of_one_run"), (one["runs"], "exp_loss_of_the_runs")):
            odds = odds_of_runs(world, read, runs)
            assert one[said] == ("infinity" if isinstance(odds, float) else str(odds))


def _check_functions(world: World, one: dict[str, Any]) -> None:
    """Two functions without noise, from the outputs that are written down."""
    read = []
    for outputs in one["functions"].values():
        assert list(outputs) == [str(data) for data in world.universe.datasets]
        read.append([[Fraction(1 - y), Fraction(y)] for y in outputs.values()])
    assert len(read) == 2
    assert one["exp_loss_of_each"] == [str(odds_of_runs(world, rows, 1)) for rows in read]
    assert one["exp_loss_of_both"] == "infinity"
    assert odds_together(world, read) == inf


def test_baselines_that_do_not_apply_have_no_number() -> None:
    table = baseline_table(stored_chains(STORED))
    assert table.columns[1:] == tuple(HEADS[method] for method in METHODS)
    assert len(table.rows) == len(TABLED) + len(TABLED_OTHERS) + 5
    absorbing = next(row for row in table.rows if row[0] == "Cao et al., two states")
    assert absorbing[2:5] == (f"{NOT_APPLICABLE} (∞)", NOT_APPLICABLE, NOT_APPLICABLE)
    assert "?" not in table.latex()
    fitted = fitted_table(read_chain_allowances(FITTED, any_version=True))
    assert [row[0] for row in fitted.rows] == ["states", "entries", *METHODS]
    assert all(cell.startswith(NOT_APPLICABLE) for cell in fitted.rows[3][1:])
    assert "GK16 applies to 0 of" in fitted.caption


def test_the_appendix_of_a_run_without_figures_is_its_fitted_chains(tmp_path: Path) -> None:
    def progress(*_: object) -> None:
        raise AssertionError("nothing is computed")

    nothing = write_appendix(tmp_path, [], progress, concepts=False)
    assert (nothing.files, nothing.drawings, nothing.tables) == ((), (), ())
    fitted = read_chain_allowances(FITTED, any_version=True)
    some = write_appendix(tmp_path, fitted, progress, concepts=False)
    assert [path.relative_to(tmp_path).as_posix() for path in some.files] == [
        "fitted-baselines.json",
        *(f"tables/baselines-fitted.{end}" for end in ("md", "csv", "tex")),
    ]
    assert read_chain_allowances(some.files[0]) == fitted
