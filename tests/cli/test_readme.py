"""The commands of the README, run in a shell on a small table of that shape."""

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.declared import declared
from tests.visits import LABELS, write_visits

ROOT = Path(__file__).parents[2]
DECLARATION = declared(
    "visits.csv",
    "person",
    "day",
    {"place": ["home", "ward", "work"]},
    {"country": ["JP", "MX"]},
    zone="UTC",
)


@pytest.mark.nightly
def test_the_main_job_of_the_readme_runs(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(takifugu init.*?)```", readme, flags=re.DOTALL)
    study = tmp_path / "study"
    study.mkdir()
    (study / "visits.toml").write_text(DECLARATION)
    places = ("home", "home", "work", "home", "ward", "home", "home", "work")
    rows = [
        f"{person},{date(2012, 4, 3) + timedelta(days=day)},"
        f"{places[(day * 5 + person * 3 + day // 7) % 8]},{('JP', 'MX')[person % 2]}"
        for person in range(8)
        for day in range(500)
    ]
    (study / "visits.csv").write_text("\n".join(["person,day,place,country", *rows]) + "\n")
    done = shell(tmp_path, block)
    assert done.stdout.count("home") >= 2  # the first place of either country


def test_three_commands_of_the_readme_lead_to_a_release(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(takifugu quickstart.*?)```", readme, flags=re.DOTALL)
    write_visits(tmp_path)
    assert len(block.strip().splitlines()) == 3
    done = shell(tmp_path, block)
    assert "Nothing is charged yet" in done.stdout
    released = "\n".join(done.stdout.splitlines()[-16:])
    assert any(label in released for label in LABELS)


def shell(folder: Path, block: str) -> subprocess.CompletedProcess[str]:
    """Run lines of the README."""
    script = f'set -e\ntakifugu() {{ "{sys.executable}" -m takifugu "$@"; }}\n{block}'
    done = subprocess.run(  # noqa: S603 - the README's own lines
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done
