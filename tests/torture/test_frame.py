"""The frame of long runs: what a part tells is kept, and a part that fails is told of."""

import sys
from pathlib import Path

import pytest

from torture.lanes import Lanes, Placed
from torture.parts import PARTS
from torture.summary_page import read_parts, summary_text, write_summary

ORACLES = next(part for part in PARTS if part.name == "oracles")
TELLS = """
import sys
import time
from pathlib import Path
from torture.part_report import Report
report = Report("oracles", Path({folder!r}), 1.0, 5)
report.count("instances", 1_234)
report.table("Ratios", ["family", "median"], [["chains | two states", 1.25]])
report.remark("Nothing was drawn from the network.")
{more}
report.save()
"""
ENDS = "report.ended = True"


def tells(folder: Path, more: str) -> bool:
    """Run a part of a few lines; whether it ended without a finding."""
    code = TELLS.format(folder=str(folder), more=more)
    lanes = Lanes(1, folder, 5, lambda *_: (sys.executable, "-c", code))
    return lanes.run([Placed(ORACLES, 1.0)])


def test_what_a_part_tells_is_on_the_page(tmp_path: Path) -> None:
    assert tells(tmp_path, ENDS)
    assert write_summary(tmp_path)
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    page = (tmp_path / "summary.html").read_text(encoding="utf-8")
    for words in ("1,234 instances", "Nothing was drawn from the network.", "Nothing was found"):
        assert words in text and words in page
    assert "chains \\| two states | 1.25" in text
    assert "Not run: inputs" in text


def test_a_finding_is_told(tmp_path: Path) -> None:
    assert not tells(tmp_path, f"report.finding('A bound is wrong.', 'seed 5')\n{ENDS}")
    assert not write_summary(tmp_path)
    assert "**A bound is wrong.** (seed 5)" in summary_text(read_parts(tmp_path))


@pytest.mark.parametrize("more", ["sys.exit(3)", "report.save(); raise KeyError('lost')"])
def test_a_part_that_does_not_end_is_a_finding(tmp_path: Path, more: str) -> None:
    assert not tells(tmp_path, more)
    (part,) = read_parts(tmp_path)
    assert not part.ended and len(part.findings) == 1
    assert "ended with status" in part.findings[0].what
    assert not write_summary(tmp_path)


@pytest.mark.nightly
def test_a_part_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        f"Path({str(child)!r}).write_text(str(other.pid))\ntime.sleep(1000)"
    )
    hangs = (sys.executable, "-c", code)
    short = 0.05  # minutes
    while not child.exists():  # a slow machine gets more time to begin
        assert not Lanes(1, tmp_path, 5, lambda *_: hangs, late=0.0).run([Placed(ORACLES, short)])
        short *= 2
    (part,) = read_parts(tmp_path)
    assert "far longer" in part.findings[0].what
    assert (
        not Path(f"/proc/{child.read_text()}/cmdline").exists()
        or not Path(f"/proc/{child.read_text()}/cmdline").read_bytes()
    )
