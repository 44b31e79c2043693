"""Real data, which is never part of the project: where it lies, and a reason to skip without it."""

import csv
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("TAKIFUGU_DATA") or BESIDE)


def real(name: str) -> Path:
    """The file of that name; the test that asks for it is skipped where there is none."""
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} in the folder that TAKIFUGU_DATA names, or in ../shared/data")
    return DATA / name


def write_new_york(folder: Path) -> None:
    """Write ``dataset_TSMC2014_NYC.txt`` as its authors publish it, from the cut that is at hand.

    The cut has no category ids, and numbers for the names of users and venues.
    """
    with gzip.open(real("checkins_nyc.csv.gz"), "rt", encoding="utf-8") as cut:
        rows = sorted(csv.DictReader(cut), key=lambda row: int(row["unix_s"]))
    with (folder / "dataset_TSMC2014_NYC.txt").open("w", encoding="latin-1") as download:
        for row in rows:
            at = datetime.fromtimestamp(int(row["unix_s"]), tz=UTC)
            offset = 60 * ((int(row["hour"]) - at.hour + 12) % 24 - 12)  # local time is `hour`
            where = [row["poi_idx"], "", row["cat"], row["lat"], row["lon"], str(offset)]
            line = [row["user_idx"], *where, at.strftime("%a %b %d %H:%M:%S +0000 %Y")]
            download.write("\t".join(line) + "\n")
