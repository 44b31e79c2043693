r"""The counts of synthetic check-ins, without their rows: as many as the paper has in a second.

An experiment that fits a chain on the first days and releases counts of the others needs four
things of the rows: how many times each label followed each other one in the fitted part, the labels
of both parts, and the longest sequence that is released from. They are drawn here from **the law of
the rows of** `write_check_ins`, nothing being approximated:

* The users, their countries and how many rows n each of them has are drawn by the same functions,
  first, so that the same generator gives the same ones.
* The times of `write_check_ins` are whole seconds, independent and uniform over 500 days: each row
  is in the first 400 days with probability 400/500, independently of all others, and the number f
  of a user's rows in the fitted part is binomial. A user's labels are a path in the order of time,
  drawn independently of the times, so the first f labels of the path are those in the fitted part.
  Labels at equal times are in the order of their rows, which is that of the path.
* The first row of user 0 is moved to the first day, so f is 1 where it would be 0, and the day from
  which days are counted is the same always. That the last of the 500 days has a row is taken for
  granted (without one, `by_days` of the reproduction would split 499 days): of n rows none is there
  with probability :math:`(1 - 1/500)^n`, below 3e-9 for the `FEWEST` rows that are allowed here.
* Then every path is walked, first label from the country's stationary law and the next ones from
  its transition matrix, and counted on the way.

A path takes one uniform number for each label and picks the label by cumulative probabilities. So a
probability whose last bits differ on another processor changes a path only if the number falls into
the difference (about 1e-15 for each of N rows: 3e-8 for all of the paper's rows), and then that
user's path alone; drawing multinomial counts instead would save no time and, as it takes as many
numbers as it needs, change everything after it.
"""

from dataclasses import dataclass
from datetime import date

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld
from takifugu.synthetic.check_ins import DAYS, FIRST_DAY, draw_users
from takifugu.synthetic.habits import DEMONSTRATION, HabitParameters, draw_habits

FEWEST, MOST = 10_000, 1_000_000_000  # rows
FIT_DAYS = 400


@dataclass(frozen=True, eq=False)
class CheckInCounts:
    """What is counted of synthetic check-ins that are fitted on for 400 days, then released from.

    Attributes:
        countries: ``[country]``: ISO codes, the largest first.
        labels: ``[label]``: the paper's 78 labels.
        steps: ``[label, label]``: how many times one followed the other within the fitted part of
            one user, over all countries.
        fitted: ``[label]``: the rows of the fitted part.
        released: ``[country, label]``: those of the other part.
        users: How many there are.
        users_fitted: How many have a row in the fitted part.
        users_released: How many have a row in the other part.
        longest: The most rows that one user has in the other part.
        first_day: The day from which days are counted.
    """

    countries: tuple[str, ...]
    labels: tuple[str, ...]
    steps: Integers
    fitted: Integers
    released: Integers
    users: int
    users_fitted: int
    users_released: int
    longest: int
    first_day: date


def check_rows(rows: object) -> None:
    """Refuse a number of rows that cannot be drawn."""
    if isinstance(rows, bool) or not isinstance(rows, int) or not FEWEST <= rows <= MOST:
        raise InvalidWorld(
            "rows",
            given=f"is {rows!r}",
            needed=f"be a whole number from {FEWEST:,} to {MOST:,}",
        )


def draw_check_in_counts(
    *, rows: int, rng: np.random.Generator, parameters: HabitParameters = DEMONSTRATION
) -> CheckInCounts:
    """The counts of ``rows`` check-ins; the same generator gives the same ones."""
    from takifugu.synthetic.counted_walks import GuidedLaws, walk_and_count

    check_rows(rows)
    habits = draw_habits(rng=rng, parameters=parameters)
    lengths, homes = draw_users(habits, rows, rng=rng)
    before = rng.binomial(lengths, FIT_DAYS / DAYS).astype(np.int64)
    before[0] = max(before[0], 1)
    after = lengths - before
    first, moves = GuidedLaws(habits.rest), GuidedLaws(habits.transition)
    labels = len(habits.labels)
    steps = np.zeros((labels, labels), dtype=np.int64)
    fitted = np.zeros(labels, dtype=np.int64)
    released = np.zeros((len(habits.countries), labels), dtype=np.int64)
    together = np.argsort(homes, kind="stable")  # one country's tables stay in the cache
    walk_and_count(
        first.ends,
        first.begins,
        moves.ends,
        moves.begins,
        homes[together],
        before[together],
        after[together],
        rng,
        steps,
        fitted,
        released,
    )
    return CheckInCounts(
        habits.countries,
        habits.labels,
        steps,
        fitted,
        released,
        len(lengths),
        int((before > 0).sum()),
        int((after > 0).sum()),
        int(after.max()),
        FIRST_DAY.date(),
    )
