"""The two simulated datasets, for those who have no data; every table says that they are.

The check-ins have the paper's number of rows, and habits calibrated to Table 1 (`calibration`).

What they are is their configuration: the version of the model, its numbers as they are written
there, the seed and the number of rows. Their identity is a hash of that and of no computed number,
whose last bits depend on the processor; so are the seeds of the noise that is simulated on them
(`takifugu.papers.composition.experiments.experiment.stream`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from takifugu._core.fingerprint import fingerprint
from takifugu._core.numeric import Integers
from takifugu.papers.composition.data.capture24 import HELD_OUT
from takifugu.papers.composition.data.preparation import DatasetInfo
from takifugu.papers.composition.data.raw_tables import (
    EntryTable,
    FoundFiles,
    Progress,
    make_synthetic_table,
)
from takifugu.papers.composition.experiments.measurements import Prepared, PrintedColumn
from takifugu.priors import Transitions
from takifugu.priors.fitting import TAU
from takifugu.synthetic import activities, habits, write_activities
from takifugu.synthetic.check_in_counts import FIT_DAYS, CheckInCounts, draw_check_in_counts
from takifugu.synthetic.check_ins import DAYS
from takifugu.synthetic.habits import HabitParameters

PAPER_ROWS = 33_278_683
WORLD_SEED = 125  # the closest of `calibration.CANDIDATES`
PRINTED_ACCURACIES = HabitParameters(
    sticky=(0.02, 0.238),
    zipf=0.75,
    head=6,
    boost=7.5,
    taste=0.276,
    taste_law="laplace",
    by_kind=0.35,
    decline=0.0605,
)
CALIBRATED = tuple(PrintedColumn("Ours-Exp", False, f"acc@{place}") for place in (1, 2, 3))


SEED = 20_261_115

NOTES = {
    "simulated-activities": (
        "Synthetic: a day of 151 people in epochs of 30 seconds from the model of"
        f" takifugu.synthetic, seed {SEED}. No person is real.",
    )
}
ACTIVITIES = f"""
SELECT participant AS entity, epoch AS at, activity AS label, age AS "group",
       CASE WHEN place <= {HELD_OUT} THEN 'release' ELSE 'fit' END AS part
FROM {{made}} JOIN (
  SELECT participant,
         row_number() OVER (PARTITION BY age ORDER BY md5(participant::VARCHAR)) AS place
  FROM (SELECT DISTINCT participant, age FROM {{made}})
) USING (participant)
"""  # noqa: S608 - nothing in it comes from outside


def described_check_ins(about: DatasetInfo, rows: int) -> DatasetInfo:
    """What the simulated check-ins are, with their number of rows."""
    drawn = (
        f"Synthetic: {rows:,} rows of {DAYS} days, drawn as counts by the model of"
        f" takifugu.synthetic, seed {WORLD_SEED}. No person and no place is real.",
    )
    return replace(about, notes=(*drawn, *about.notes))


def check_ins_identity(rows: int) -> str:
    """The identity of the simulated check-ins, from their configuration."""
    model = habits.configuration(PRINTED_ACCURACIES)
    return fingerprint(("synthetic check-ins as counts", model, WORLD_SEED, rows))


def draw_check_ins(about: DatasetInfo, rows: int) -> Prepared:
    """The simulated check-ins, prepared as real ones are, from counts without rows.

    What `preparation.prepare_table` finds in a table of rows, `draw_check_in_counts` draws: the
    chain is fitted to the same counts in the same way, and a country without a row to release from
    is left out.
    """
    drawn = draw_check_in_counts(
        rows=rows, rng=np.random.default_rng(WORLD_SEED), parameters=PRINTED_ACCURACIES
    )
    return prepared_counts(about, drawn, identity=check_ins_identity(rows))


def prepared_counts(about: DatasetInfo, drawn: CheckInCounts, *, identity: str) -> Prepared:
    """Counts of check-ins as prepared data."""
    chain = Transitions(drawn.steps, drawn.labels).chain(
        unseen="uniform", tau=TAU, length=drawn.longest
    )
    some = drawn.released.sum(axis=1) > 0
    named = sorted((name, k) for k, name in enumerate(drawn.countries) if some[k])
    groups = tuple(name for name, _ in named)
    left_out = int((~some).sum())
    empty = (
        f"{left_out} groups without a row to release from are left out (how many rows a group has"
        " is public).",
    )
    fitted, released = int(drawn.fitted.sum()), int(drawn.released.sum())
    facts: dict[str, int | str] = {
        "rows": fitted + released,
        "entities": drawn.users,
        "first day": drawn.first_day.isoformat(),
        "days fitted on": FIT_DAYS,
        "days released from": DAYS - FIT_DAYS,
        "rows fitted on": fitted,
        "entities fitted on": drawn.users_fitted,
        "rows released from": released,
        "entities released from": drawn.users_released,
        "longest sequence released from": drawn.longest,
        "groups": len(groups),
        "states": len(drawn.labels),
    }
    return Prepared(
        **about.shared(*(empty if left_out else ())),
        chain=chain,
        groups=groups,
        counts=_fixed(drawn.released[[k for _, k in named]]),
        train=_fixed(drawn.fitted),
        facts=facts,
        fingerprint=identity,
    )


def activities_table(key: str, _: FoundFiles, work: Path, progress: Progress) -> EntryTable:
    """The simulated activities; the seed and the model are their identity."""
    progress(f"{key}: drawing a day of 151 people", 0, 1)
    identity = fingerprint((SEED, activities.CONFIGURATION))
    return make_synthetic_table(work / f"{key}.parquet", ACTIVITIES, identity, _write_activities)


def _write_activities(folder: Path) -> Path:
    rng = np.random.default_rng(SEED)
    return write_activities(folder, rng=rng).with_suffix(".parquet")


def _fixed(counts: Integers) -> Integers:
    kept: Integers = counts.copy()
    kept.setflags(write=False)
    return kept
