r"""A synthetic table of activities: 151 people in four age groups, one day each, in steps of 30 s.

It has the shape of Capture24 (Chan et al., 2024): the 11 activities of its WillettsMET2018 labels,
wearers in four age groups. All numbers are invented. 30 s is the window in which those labels are
usually read off an accelerometer; a day has 2,880 of them, from midnight on.

The day has four parts. In part d, person p goes on with activity x for another step with the
probability :math:`1 - 1/m_{dx}`, m the mean length of a bout (sleep lasts at night and is short by
day), and otherwise changes to :math:`y \ne x` with a probability in proportion to

.. math:: w_d(y)\, e^{g_{a(p) y} + g_{p y}},

w the weights of that part of the day, tilted by the age group's taste (normal, deviation 0.4) and
by the person's own (deviation 0.3); m and w stand in `ACTIVITIES`. At midnight nine of ten are
asleep, the others sit. So the states are very sticky, sleep and sitting fill most of the day, and
which comes third differs between groups.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from takifugu._core.atomic import write_whole
from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.synthetic.parquet_files import toml_list, write_parquet
from takifugu.synthetic.walks import Moves

AGES = ("18-29", "30-37", "38-52", "53+")
PARTICIPANTS = 151
EPOCHS = 2_880
EPOCHS_PER_HOUR = 120
AGE_TASTE, OWN_TASTE = 0.4, 0.3
ASLEEP = 0.9

# the mean length of a bout in epochs (by day), and the weight of a change that leads there
# in the night, the morning, the day and the evening
ACTIVITIES = {
    "bicycling": (24, (0.1, 3, 1, 2)),
    "gym": (60, (0.02, 0.7, 0.4, 0.8)),
    "sitstand+activity": (12, (1, 8, 10, 10)),
    "sitstand+lowactivity": (10, (2, 10, 12, 10)),
    "sitting": (24, (6, 20, 40, 40)),
    "sleep": (40, (60, 4, 1, 2)),
    "sports": (60, (0.02, 0.2, 0.2, 0.6)),
    "standing": (5, (2, 14, 16, 10)),
    "vehicle": (30, (0.3, 12, 4, 8)),
    "walking": (6, (2, 20, 14, 10)),
    "walking+activity": (8, (0.5, 4, 5, 3)),
}
SLEEP = tuple(ACTIVITIES).index("sleep")
NIGHT_SLEEP = 480  # epochs: four hours at a time
PARTS = ("night", "morning", "day", "evening")
PART_OF_HOUR = (0,) * 7 + (1,) * 2 + (2,) * 8 + (3,) * 6 + (0,)

MODEL = 1  # a new number when the same numbers and generator may give other rows
CONFIGURATION = (
    *(MODEL, PARTICIPANTS, EPOCHS, EPOCHS_PER_HOUR, AGES, AGE_TASTE, OWN_TASTE, ASLEEP),
    *(ACTIVITIES, NIGHT_SLEEP, PARTS, PART_OF_HOUR),
)
"""All that a draw is made from beside its generator, as written: nothing that is computed."""

DECLARATION = """\
title = "Synthetic activities of {people} people, one day in steps of 30 s"

[source]
kind = "parquet"
path = "activities.parquet"

[entity]
column = "participant"

[order]
column = "epoch"
kind = "number"
ties = "refuse"

[protected.activity]
values = {activities}
outside = "refuse"

[public.age]
values = {ages}
"""


@dataclass(frozen=True)
class Routines:
    """One draw of the model.

    Attributes:
        ages: ``[participant]``: the number of the age group.
        start: ``[activity]``: the law of the first epoch.
        transition: ``[participant, part of the day, activity, activity]``.
    """

    ages: Integers
    start: Floats
    transition: Floats


def draw_routines(*, rng: np.random.Generator) -> Routines:
    """Draw the tastes of the age groups and of everyone in them."""
    count = len(ACTIVITIES)
    ages = np.arange(PARTICIPANTS) % len(AGES)
    by_age = rng.normal(0.0, AGE_TASTE, size=(len(AGES), count))
    own = rng.normal(0.0, OWN_TASTE, size=(PARTICIPANTS, count))
    weights = np.array([changes for _, changes in ACTIVITIES.values()]).T  # [part, activity]
    goal = weights * np.exp(by_age[ages] + own)[:, None, :]  # [participant, part, activity]
    change = goal[:, :, None, :] * (1 - np.eye(count))
    change /= change.sum(axis=-1, keepdims=True)
    bouts = np.array([[bout for bout, _ in ACTIVITIES.values()]] * len(PARTS), dtype=np.float64)
    bouts[PARTS.index("night"), SLEEP] = NIGHT_SLEEP
    leave = 1 / bouts[None, :, :, None]
    start = np.zeros(count)
    start[[SLEEP, tuple(ACTIVITIES).index("sitting")]] = ASLEEP, 1 - ASLEEP
    transition = leave * change + (1 - leave) * np.eye(count)
    return Routines(ages, frozen(start), frozen(transition))


def write_activities(folder: Path, *, rng: np.random.Generator) -> Path:
    """Write ``activities.parquet`` and its declaration to ``folder``; the declaration's path."""
    routines = draw_routines(rng=rng)
    days = _days(routines, rng=rng)
    participant, epoch = np.indices(days.shape)
    folder = Path(folder)
    block = {
        "participant": participant.ravel(),
        "epoch": epoch.ravel(),
        "activity": days.ravel(),
        "age": routines.ages[participant].ravel(),
    }
    select = (
        "participant, epoch, getvariable('activities')[activity + 1] AS activity, "
        "getvariable('ages')[age + 1] AS age"
    )
    names = {"activities": tuple(ACTIVITIES), "ages": AGES}
    write_parquet(folder / "activities.parquet", [block], select, names)
    declaration = folder / "activities.toml"
    write_whole(
        declaration,
        DECLARATION.format(
            people=PARTICIPANTS, activities=toml_list(tuple(ACTIVITIES)), ages=toml_list(AGES)
        ),
    )
    return declaration


def _days(routines: Routines, *, rng: np.random.Generator) -> Integers:
    """``[participant, epoch]``: what everyone does."""
    count = len(ACTIVITIES)
    moves = Moves(routines.transition.reshape(-1, count))
    people = np.arange(PARTICIPANTS)
    days = np.empty((PARTICIPANTS, EPOCHS), dtype=np.int64)
    doing = Moves(routines.start[None]).draw(np.zeros_like(people), rng=rng)
    days[:, 0] = doing
    for epoch in range(1, EPOCHS):
        part = part_of_day(epoch)
        doing = moves.draw((people * len(PARTS) + part) * count + doing, rng=rng)
        days[:, epoch] = doing
    return days


def part_of_day(epoch: int) -> int:
    """The part of the day in which the step that leads to ``epoch`` is taken."""
    return PART_OF_HOUR[epoch // EPOCHS_PER_HOUR]
