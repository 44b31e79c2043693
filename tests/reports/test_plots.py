"""Figures: whole files of the kind asked for, or nothing."""

import resource
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from takifugu.errors import InvalidFile
from takifugu.papers.composition.collapse import example, simulate, trace_attack
from takifugu.papers.composition.collapse.collapse_figure import collapse_figure
from takifugu.reports import SUFFIXES, check_target, save
from tests.raising import raises

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEGINS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def figure(number: int) -> "Figure":
    built, rng = example(number, 4), np.random.default_rng(0)
    trace = trace_attack(built, 5, rng=rng)
    simulated = simulate(built, 500, rng=rng)
    return collapse_figure(f"Example {number}", trace, built.waiting(), simulated)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_figure_is_written_as_its_suffix_says(number: int, suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"figure{suffix.upper()}"
    save(figure(number), target)
    assert target.read_bytes().startswith(BEGINS[suffix])
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("figure.gif", "suffix"),
        ("figure", "suffix"),
        ("missing/figure.png", "folder"),
        ("folder.png", "unwritable"),
        ("x" * 300 + ".png", "unwritable"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with raises(InvalidFile, field="plot", reason=reason):
        check_target(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path: Path) -> None:
    target, drawn = tmp_path / "figure.png", figure(2)
    target.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with raises(InvalidFile, field="plot", reason="unwritable"):
            save(drawn, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]
