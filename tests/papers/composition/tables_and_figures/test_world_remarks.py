"""What is said of a world's difference to the paper's data comes from the numbers of the tables."""

from dataclasses import replace

import pytest

from takifugu.papers.composition.experiments.measurements import Cell, Estimate, read_results
from takifugu.papers.composition.reproduction_page import STORED, print_lines
from takifugu.papers.composition.tables_and_figures.paper_tables import tables
from takifugu.papers.composition.tables_and_figures.print_agreement import (
    count_remark,
    implied_scales,
    majority_mean,
    majority_remark,
    world_remarks,
)
from tests.papers.composition import synthetic_cells
from tests.papers.composition.synthetic_cells import CALIBRATED, PAPER_ROWS

PAPER_SIZE = synthetic_cells.about(rows=PAPER_ROWS, calibrated=CALIBRATED)
CELLS = synthetic_cells.cells()


def laplace(factor: float) -> tuple[Cell, ...]:
    """Cells of MQM that get right 1/(1 + noise/1000), with a scale of ``factor`` or 2 over ε_DP."""
    made = []
    for epsilon in synthetic_cells.EPSILONS:
        for name, over in (("MQM, split budget", factor), ("MQM, vector Laplace", 2.0)):
            for uncertain in (False, True):
                spent = 0.1 * epsilon
                noise = 2**0.5 * over / spent
                right = 1 / (1 + noise / 1000)
                cell = next(c for c in CELLS if c.mechanism == name)
                made.append(
                    replace(
                        cell, uncertain=uncertain, epsilon=epsilon, epsilon_dp=spent, noise=noise,
                        measured={m: Estimate(right, 0.0) for m in cell.measured},
                    )
                )  # fmt: skip
    return tuple(made)


def test_real_data_has_no_remarks_and_a_small_world_only_majority() -> None:
    assert world_remarks(synthetic_cells.about(origin="real"), CELLS) == ()
    assert len(world_remarks(synthetic_cells.about(), CELLS)) == 1
    assert world_remarks(synthetic_cells.about(), CELLS[:3]) == ()


@pytest.mark.parametrize(("right", "unlike"), [(0.2, False), (0.75, True)])
def test_majority_stands_beside_the_printed_one(right: float, unlike: bool) -> None:
    cells = tuple(
        replace(c, measured=dict.fromkeys(c.measured, Estimate(right, 0.0)))
        if c.mechanism == "Majority"
        else c
        for c in CELLS
    )
    about = synthetic_cells.about(family="capture24")
    said = majority_remark(about, cells)
    assert majority_mean(cells) == pytest.approx(right)
    assert f"{100 * right:.2f} %" in said and "16.67 %" in said
    assert ("not like Capture24" in said) is unlike
    assert "16.67 %" in tables(about, cells)[0].caption


def test_the_implied_scale_is_the_one_that_gets_the_printed_shares() -> None:
    """Against the law that the cells were made by, solved for the scale."""
    found = implied_scales(PAPER_SIZE, laplace(800.0))
    assert len(found) == 48
    # 36.3 % at ε = 0.5: 1/(1 + √2·scale/1000) = .363, and ε_DP = .05
    assert found[0] == pytest.approx(1000 * (1 / 0.363 - 1) / 2**0.5 * 0.05, rel=0.15)
    few = implied_scales(PAPER_SIZE, laplace(20.0))
    assert 0 < len(few) < 48  # what lies outside all that was measured is not guessed


def test_the_printed_columns_of_mqm_are_nearer_to_the_split_budget() -> None:
    """The bounds are those of the notes, on the stored world of the paper's size."""
    stored = read_results(STORED)
    (world,) = (one for one in stored.about if one.key == "simulated-checkins")
    found = implied_scales(world, stored.of(world.key))
    assert len(found) == 48 and min(found) > 25 and max(found) < 100
    said = "\n".join(print_lines(world, stored))
    assert f"{min(found):.0f} to {max(found):.0f} over ε_DP" in said


def test_at_the_same_hit_rate_other_counts_show() -> None:
    assert count_remark(PAPER_SIZE, CELLS[:1]) == ""
    mqm = next(c for c in CELLS if c.mechanism == "MQM, split budget")
    ours = {"hit": Estimate(0.38, 0), "ndcg": Estimate(0.4321, 0), "l1": Estimate(1234.0, 0)}
    said = count_remark(PAPER_SIZE, [replace(mqm, measured={**mqm.measured, **ours})])
    for number in ("38.0 %", "0.432", "1234", "37.6 %", "0.726", "5500"):
        assert number in said
