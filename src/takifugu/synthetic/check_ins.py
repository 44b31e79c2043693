"""A synthetic table of check-ins: 77 countries, the paper's 78 labels, 500 days.

`habits` has the model. Rows are written user by user, and in order for each.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from takifugu._core.atomic import write_whole
from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld
from takifugu.synthetic.habits import DEMONSTRATION, HabitParameters, Habits, draw_habits
from takifugu.synthetic.parquet_files import Block, toml_list, write_parquet
from takifugu.synthetic.walks import Moves, walk

FIRST_DAY = datetime(2012, 4, 3, tzinfo=UTC)
DAYS = 500
OTHER = "other"
FEWEST = 1_000
BLOCK = 1_000_000  # rows in memory at once, about

SELECT = """
    "user",
    make_timestamptz("at" * 1000000) AS "at",
    getvariable('labels')[place + 1] AS place,
    getvariable('countries')[country + 1] AS country,
    "row"
"""

DECLARATION = """\
title = "Synthetic check-ins: {rows} rows by {users} users in {countries} countries"

[source]
kind = "parquet"
path = "check-ins.parquet"

[entity]
column = "user"

[order]
column = "at"
kind = "time"
zone = "UTC"
ties = ["row"]

[protected.place]
values = {labels}
outside = "other"
other = "other"

[public.country]
values = {codes}
"""


def write_check_ins(
    folder: Path,
    *,
    rows: int,
    rng: np.random.Generator,
    parameters: HabitParameters = DEMONSTRATION,
) -> Path:
    """Write ``check-ins.parquet`` and its declaration to ``folder``; the declaration's path.

    The same generator gives the same rows. User 0 checks in on the first day, so that days can
    be counted from the first row. Every country has at least one user.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < FEWEST:
        raise InvalidWorld(
            "rows", given=f"is {rows!r}", needed=f"be a whole number, {FEWEST} or more"
        )
    habits = draw_habits(rng=rng, parameters=parameters)
    lengths, homes = draw_users(habits, rows, rng=rng)
    folder = Path(folder)
    write_parquet(
        folder / "check-ins.parquet",
        _blocks(habits, homes, lengths, rng=rng),
        SELECT,
        {"labels": habits.labels, "countries": habits.countries},
    )
    declaration = folder / "check-ins.toml"
    write_whole(
        declaration,
        DECLARATION.format(
            rows=f"{rows:,}",
            users=f"{len(lengths):,}",
            countries=len(habits.countries),
            labels=toml_list([label for label in habits.labels if label != OTHER]),
            codes=toml_list(habits.countries),
        ),
    )
    return declaration


def draw_users(habits: Habits, rows: int, *, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """``[user]``: how many rows each has, one and a share of the rest; and in which country.

    The first users have one country each.
    """
    countries = len(habits.countries)
    users = max(rows // habits.parameters.rows_per_user, countries)
    activity = rng.lognormal(0.0, habits.parameters.activity, size=users)
    more: Integers = rng.multinomial(rows - users, activity / activity.sum())
    drawn = rng.choice(countries, size=users - countries, p=habits.shares)
    return 1 + more, np.concatenate([np.arange(countries), drawn]).astype(np.int64)


def _blocks(
    habits: Habits, homes: Integers, lengths: Integers, *, rng: np.random.Generator
) -> Iterator[Block]:
    """Whole users, as many as make about `BLOCK` rows."""
    start = Moves(habits.rest)
    moves = Moves(habits.transition.reshape(-1, len(habits.labels)))
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first] - lengths[first])
        last = max(int(np.searchsorted(ends, before + BLOCK, side="right")), first + 1)
        users = np.arange(first, last)
        user = np.repeat(users, lengths[users])
        yield {
            "user": user,
            "at": _times(user, rng=rng),
            "place": walk(start, moves, homes[users], lengths[users], rng=rng),
            "country": homes[user],
            "row": before + np.arange(len(user)),
        }
        first = last


def _times(user: Integers, *, rng: np.random.Generator) -> Integers:
    """Seconds since 1970, uniform over the days and in order for each user."""
    seconds = DAYS * 86_400
    times = rng.integers(0, seconds, size=len(user))
    times = np.sort(user * seconds + times) - user * seconds  # users are in order already
    if user[0] == 0:
        times[0] %= 86_400
    return times + int(FIRST_DAY.timestamp())
