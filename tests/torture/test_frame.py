"""The frame of long runs: what a part tells is kept, and a part that fails is told of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torture.lanes import Lanes, Placed, placed
from torture.part_report import PartSummary, Report
from torture.parts import NAMES, PARTS, Part
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


def test_time_is_shared_among_the_lanes() -> None:
    parts = [Part("a", "", 10), Part("b", "", 20), Part("c", "", 10)]
    ways = placed(parts, 30, 2)
    assert [(way.part.name, way.minutes) for way in ways] == [("a", 15), ("b", 30), ("c", 15)]
    assert [way.minutes for way in placed(parts[:1], 30, 2)] == [30]


def test_a_report_knows_its_time_and_saves_as_it_goes(tmp_path: Path) -> None:
    now = [100.0]
    report = Report("kills", tmp_path, 2.0, 7, clock=lambda: now[0])
    assert report.seconds_left == 120 and not report.over
    assert not (tmp_path / "kills.json").exists()
    report.count("kills", 3)
    now[0] += 61
    assert not report.over
    assert PartSummary.read(tmp_path / "kills.json").counts == {"kills": 3}
    now[0] += 60
    assert report.over and report.seconds_left == 0


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    report = Report("kills", tmp_path, 2.0, 7)
    report.save()
    known = json.loads((tmp_path / "kills.json").read_text(encoding="utf-8"))
    assert PartSummary.read(tmp_path / "kills.json").seed == 7
    (tmp_path / "kills.json").write_text(json.dumps({**known, "format": 0}), encoding="utf-8")
    with pytest.raises(ValueError, match="run the part again"):
        PartSummary.read(tmp_path / "kills.json")


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", [["nonsense"], ["--minutes", "0"], ["--minutes", "nan"]])
def test_options_that_make_no_sense_are_refused(wrong: list[str], tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-m", "torture", *wrong, "--out", str(tmp_path)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "usage" in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_every_part_has_a_title_and_a_share() -> None:
    assert len(set(NAMES)) == len(NAMES) == 8
    assert all(part.title and part.share > 0 for part in PARTS)
