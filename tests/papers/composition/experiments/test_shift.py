"""20 % uncertainty is a shift of ε by log 1.5: exact on our tables, near on the printed ones."""

from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.papers.composition.experiments.experiment import CONTENDERS, GROUP_DP, run
from takifugu.papers.composition.experiments.measurements import Cell, ShiftedCell
from takifugu.papers.composition.experiments.verdicts import printed_shifts, shifts
from tests.papers.composition.small_datasets import prepared
from tests.raising import raises

EPSILONS = (0.3, 0.5, 2.0)  # 0.3 is below the shift: only group DP is left
REPETITIONS, SEED = 20, 8

# Tables 1 and 2 of the paper, without and with uncertainty
EPS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
OURS_ACC1 = (79.0, 88.5, 94.0, 95.7, 96.7, 97.3), (42.4, 81.8, 92.8, 95.1, 96.4, 97.1)
MQM_ACC1 = (36.3, 46.4, 60.8, 72.1, 79.1, 83.4), (16.2, 38.6, 55.2, 68.1, 76.7, 81.9)
MQM_HIT = (37.6, 49.8, 64.3, 73.3, 79.2, 83.4), (18.6, 40.4, 59.3, 70.1, 77.1, 81.9)


@pytest.fixture(scope="module")
def compared(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[tuple[Cell, ...], tuple[ShiftedCell, ...]]:
    folder = tmp_path_factory.mktemp("shift")
    world = prepared()
    cells = run(world, repetitions=REPETITIONS, rng_seed=SEED, folder=folder, epsilons=EPSILONS)
    return cells, _shifts(cells, folder)


def _shifts(cells: tuple[Cell, ...], folder: Path | None = None) -> tuple[ShiftedCell, ...]:
    return shifts(
        prepared(),
        cells,
        repetitions=REPETITIONS,
        rng_seed=SEED,
        folder=folder,
        epsilons=EPSILONS,
    )


def test_every_uncertain_cell_is_the_plain_experiment_at_less(
    compared: tuple[tuple[Cell, ...], tuple[ShiftedCell, ...]],
) -> None:
    _, found = compared
    assert len(found) == len(CONTENDERS) * len(EPSILONS)
    for one in found:
        assert one.equal, one
        if one.by_group or one.mechanism == GROUP_DP:
            assert one.at == one.epsilon
        else:
            assert one.at == pytest.approx(one.epsilon - log(1.5))
    by_group = {(one.mechanism, one.epsilon) for one in found if one.by_group}
    assert by_group == {(name, 0.3) for name in CONTENDERS} | {(GROUP_DP, e) for e in EPSILONS}


def test_a_cell_that_is_not_shifted_would_be_seen(
    compared: tuple[tuple[Cell, ...], tuple[ShiftedCell, ...]],
) -> None:
    """Negative control: plain cells at ε itself, called uncertain."""
    cells, _ = compared
    wrong = tuple(replace(cell, uncertain=True) for cell in cells if not cell.uncertain)
    for one in _shifts(wrong):
        assert one.equal is (one.mechanism == GROUP_DP)


@pytest.mark.parametrize(
    ("columns", "off"), [(OURS_ACC1, 0.8), (MQM_ACC1, 1.5), (MQM_HIT, 0.8)], ids=str
)
def test_printed_numbers_with_uncertainty_are_those_without_at_less(
    columns: tuple[tuple[float, ...], tuple[float, ...]], off: float
) -> None:
    plain, uncertain = (dict(zip(EPS, column, strict=True)) for column in columns)
    found = printed_shifts(plain, uncertain)
    assert [one.epsilon for one in found] == list(EPS)
    assert found[0].at == pytest.approx(0.5 - log(1.5))
    assert found[0].expected is found[0].inside is found[0].difference is None  # below the table
    for one in found[1:]:
        assert one.inside
        assert one.difference is not None and abs(one.difference) <= off
    unshifted = [uncertain[e] - plain[e] for e in EPS[1:3]]
    assert all(abs(difference) > 1.1 for difference in unshifted)  # without the shift they differ


def test_reading_between_printed_numbers_by_hand() -> None:
    [one] = printed_shifts({1.0: 0.0, 4.0: 10.0}, {2.0 + log(1.5): 7.0})
    assert one.at == pytest.approx(2.0)
    assert one.expected == pytest.approx(5.0)  # half way in log ε
    assert one.difference == pytest.approx(2.0)
    assert one.between == (0.0, 10.0) and one.inside


def test_bad_input_is_one_line() -> None:
    with raises(UnsoundRequest, field="epsilon"):
        printed_shifts({0.0: 1.0}, {1.0: 1.0})
