"""The experiment: every cell, the same numbers however often it was interrupted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from takifugu.documents.declared import from_document, to_document
from takifugu.errors import InvalidFile, Malformed, UnsoundRequest
from takifugu.papers.composition.experiments.experiment import (
    CONTENDERS,
    GROUP_DP,
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
    enough_repetitions,
    grid,
    identity,
    run,
)
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    Difference,
    Estimate,
    FinishedCells,
    Prepared,
)
from takifugu.papers.composition.experiments.metrics import METRICS, interval
from tests.papers.composition.small_datasets import prepared
from tests.raising import raises

EPSILONS = (0.5, 2.0)
REPETITIONS, SEED = 30, 4


class Stopped(Exception):
    """The user went home."""


def measured(
    folder: Path,
    world: Prepared | None = None,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    stop_after: tuple[str, int] | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> tuple[Cell, ...]:
    """A run, stopped when so many translations or mechanisms are done."""

    def progress(what: str, done: int, total: int) -> None:
        assert what.startswith("small: ") and 0 < done <= total
        if stop_after == (what.removeprefix("small: "), done):
            raise Stopped

    return run(
        prepared() if world is None else world,
        repetitions=repetitions,
        rng_seed=seed,
        folder=folder,
        epsilons=epsilons,
        progress=progress,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Cell, ...]]:
    """One run without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, measured(folder)


@pytest.mark.nightly
def test_every_cell_is_filled(whole: tuple[Path, tuple[Cell, ...]]) -> None:
    _, cells = whole
    assert [(c.mechanism, c.uncertain, c.epsilon) for c in cells] == list(grid(EPSILONS))
    assert len(cells) == (len(CONTENDERS) + 1) * 2 * len(EPSILONS)
    for cell in cells:
        assert set(cell.measured) == set(METRICS)
        assert set(cell.lead) == (set() if cell.mechanism == TAKIFUGU else set(METRICS))
        others = {*CONTENDERS} - {TAKIFUGU, OURS_EXP}
        assert set(cell.exp_lead) == (set(METRICS) if cell.mechanism in others else set())
        assert (cell.epsilon_dp > 0) is (cell.noise > 0) is (cell.mechanism != MAJORITY)
        for name, found in cell.measured.items():
            assert found.half > 0 or cell.mechanism == MAJORITY
            assert 0 <= found.mean <= (1 if name != "l1" else np.inf)


@pytest.mark.parametrize("after", [1, 4, 13])
def test_an_interrupted_run_ends_with_the_same_numbers(
    whole: tuple[Path, tuple[Cell, ...]], tmp_path: Path, after: int
) -> None:
    with pytest.raises(Stopped):
        measured(tmp_path, stop_after=("mechanisms", after))
    assert len((tmp_path / "cells-small.jsonl").read_text().splitlines()) == after
    assert measured(tmp_path) == whole[1]


def test_a_run_that_was_interrupted_while_it_translated_begins_again(
    whole: tuple[Path, tuple[Cell, ...]], tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        measured(tmp_path, stop_after=("translations", 3))
    assert not list(tmp_path.iterdir())
    assert measured(tmp_path) == whole[1]


def test_a_line_that_was_cut_off_is_measured_again(
    whole: tuple[Path, tuple[Cell, ...]], tmp_path: Path
) -> None:
    source, cells = whole
    for name in ("cells-small.jsonl", next(source.glob("allowances-*")).name):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    path = tmp_path / "cells-small.jsonl"
    path.write_bytes(path.read_bytes()[:-40])  # as after a crash
    assert measured(tmp_path) == cells
    lines = path.read_bytes().split(b"\n")
    broken = [line for line in lines if line and not _is_json(line)]
    assert len(broken) == 1  # still there, on a line of its own
    assert measured(tmp_path) == cells


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_cells_do_not_depend_on_which_others_are_measured(
    whole: tuple[Path, tuple[Cell, ...]], tmp_path: Path
) -> None:
    alone = measured(tmp_path, epsilons=(2.0,))
    kept = [c for c in whole[1] if c.epsilon == 2.0]
    for one, other in zip(alone, kept, strict=True):
        if one.mechanism == TAKIFUGU:  # its search begins elsewhere, and may end a thousandth away
            assert one.epsilon_dp == pytest.approx(other.epsilon_dp, rel=2e-3)
        else:
            assert (one.epsilon_dp, one.measured) == (other.epsilon_dp, other.measured)


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 5},
        {"repetitions": 31},
        {"world": prepared(fingerprint="other data")},
        {"world": replace(prepared(), train=np.array([1, 2, 3, 4]))},
    ],
)
def test_a_cell_of_other_settings_is_not_taken_for_this_one(
    whole: tuple[Path, tuple[Cell, ...]], changed: dict[str, object]
) -> None:
    given: dict[str, object] = {"world": prepared(), "repetitions": REPETITIONS, "seed": SEED}
    given |= changed
    names = [
        identity(one["world"], TAKIFUGU, False, 2.0, one["repetitions"], one["seed"])  # type: ignore[arg-type]
        for one in (given, {"world": prepared(), "repetitions": REPETITIONS, "seed": SEED})
    ]
    assert names[0] != names[1]
    finished = FinishedCells(whole[0] / "cells-small.jsonl")
    assert finished.get(names[0]) is None
    assert finished.get(names[1]) is not None


def test_another_seed_draws_other_numbers_of_the_same_law(
    whole: tuple[Path, tuple[Cell, ...]], tmp_path: Path
) -> None:
    other = measured(tmp_path, seed=5)
    pairs = [
        (one.measured["l1"], two.measured["l1"])
        for one, two in zip(whole[1], other, strict=True)
        if one.mechanism != MAJORITY
    ]
    assert any(one != two for one, two in pairs)
    # both seeds are given, so that this holds always or never
    assert all(abs(one.mean - two.mean) <= 2 * (one.half + two.half) for one, two in pairs)


def test_one_law_has_no_lead_at_all(tmp_path: Path) -> None:
    """Below log 1.5 only group DP is left under uncertainty, with one Laplace per bar for both."""
    cells = measured(tmp_path, epsilons=(0.3,))
    ours, theirs, peeled = (
        next(c for c in cells if c.mechanism == name and c.uncertain)
        for name in (TAKIFUGU, MQM_VECTOR, OURS_EXP)
    )
    assert ours.epsilon_dp == theirs.epsilon_dp == peeled.epsilon_dp
    assert theirs.measured == ours.measured
    assert set(theirs.lead.values()) == {Difference(0.0, 0.0, 0.0, REPETITIONS)}
    assert all(lead.exactly_zero for lead in theirs.lead.values())
    assert not any(lead.exactly_zero for lead in peeled.lead.values())  # another law
    group = next(c for c in cells if c.mechanism == GROUP_DP and c.uncertain)
    assert all(lead.exactly_zero for lead in group.exp_lead.values())  # three rounds, both


def test_leads_are_positive_where_less_noise_is_added(
    whole: tuple[Path, tuple[Cell, ...]],
) -> None:
    split = next(c for c in whole[1] if c.mechanism == MQM_SPLIT and not c.uncertain)
    ours = next(c for c in whole[1] if c.mechanism == TAKIFUGU and not c.uncertain)
    assert split.noise > ours.noise
    for metric, lead in split.lead.items():
        sign = -1 if metric == "l1" else 1
        difference = sign * (ours.measured[metric].mean - split.measured[metric].mean)
        assert lead.mean == pytest.approx(difference)
        assert lead.error > 0 and lead.step > 0 and lead.repetitions == REPETITIONS


def test_the_lead_of_ours_exp_is_the_paired_difference_and_not_the_sum_of_two_widths(
    whole: tuple[Path, tuple[Cell, ...]],
) -> None:
    by_name = {c.mechanism: c for c in whole[1] if not c.uncertain and c.epsilon == 2.0}
    ours, theirs = by_name[OURS_EXP], by_name[MQM_SPLIT]
    for metric, lead in theirs.exp_lead.items():
        sign = -1 if metric == "l1" else 1
        apart = sign * (ours.measured[metric].mean - theirs.measured[metric].mean)
        assert lead.mean == pytest.approx(apart)
        assert interval(lead).half < interval(ours.lead[metric]).half + (
            interval(theirs.lead[metric]).half
        )


def test_few_groups_get_more_repetitions() -> None:
    assert [enough_repetitions(groups) for groups in (1, 2, 24, 50, 77)] == [
        10_000, 5_000, 417, 200, 200,
    ]  # fmt: skip


def test_a_cell_is_written_and_read_to_the_last_bit() -> None:
    cell = Cell("x", "y", True, 0.5, 0.1 + 0.2, np.inf, {"l1": Estimate(1 / 3, 2.0)}, {},
                {"l1": Difference(1 / 3, 0.1 + 0.2, 1e-7 / 3, 7)})  # fmt: skip
    assert from_document(Cell, json.loads(json.dumps(to_document(cell)))) == cell


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with raises(UnsoundRequest, field="repetitions", given=1):
        measured(tmp_path, repetitions=1)
    with raises(UnsoundRequest, field="rng_seed", given=-1):
        measured(tmp_path, seed=-1)
    with raises(Malformed, field="counts"):
        measured(tmp_path, replace(prepared(), groups=("AA", "BB")))
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with raises(InvalidFile, field=str(blocked / "cells.jsonl")):
        FinishedCells(blocked / "cells.jsonl")
