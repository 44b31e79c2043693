"""The two simulated datasets, for those who have no data; every table says that they are."""

from functools import partial
from pathlib import Path

import numpy as np

from takifugu.fingerprint import fingerprint
from takifugu.papers.composition.data.capture24 import HELD_OUT
from takifugu.papers.composition.data.raw_tables import EntryTable, make_synthetic_table
from takifugu.papers.composition.data.source_files import FoundFiles, Progress
from takifugu.synthetic import draw_habits, draw_routines, write_activities, write_check_ins

SEED = 20_261_115
ROWS = 3_000_000

CHECK_INS = """
SELECT "user" AS entity, "at", "row", place AS label, country AS "group" FROM {made}
"""
ACTIVITIES = f"""
SELECT participant AS entity, epoch AS at, activity AS label, age AS "group",
       CASE WHEN place <= {HELD_OUT} THEN 'release' ELSE 'fit' END AS part
FROM {{made}} JOIN (
  SELECT participant,
         row_number() OVER (PARTITION BY age ORDER BY md5(participant::VARCHAR)) AS place
  FROM (SELECT DISTINCT participant, age FROM {{made}})
) USING (participant)
"""  # noqa: S608 - nothing in it comes from outside


def check_ins_table(
    key: str, _: FoundFiles, work: Path, progress: Progress, *, rows: int = ROWS
) -> EntryTable:
    """The simulated check-ins; the seed, the model and the number of rows are their identity."""
    progress(f"{key}: drawing {rows:,} rows", 0, 1)
    identity = fingerprint((SEED, rows, draw_habits(rng=np.random.default_rng(SEED))))
    write = partial(_write_check_ins, rows=rows)
    return make_synthetic_table(work / f"{key}.parquet", CHECK_INS, identity, write)


def activities_table(key: str, _: FoundFiles, work: Path, progress: Progress) -> EntryTable:
    """The simulated activities; the seed and the model are their identity."""
    progress(f"{key}: drawing a day of 151 people", 0, 1)
    identity = fingerprint((SEED, draw_routines(rng=np.random.default_rng(SEED))))
    return make_synthetic_table(work / f"{key}.parquet", ACTIVITIES, identity, _write_activities)


def _write_check_ins(folder: Path, *, rows: int) -> Path:
    rng = np.random.default_rng(SEED)
    return write_check_ins(folder, rows=rows, rng=rng).with_suffix(".parquet")


def _write_activities(folder: Path) -> Path:
    rng = np.random.default_rng(SEED)
    return write_activities(folder, rng=rng).with_suffix(".parquet")
