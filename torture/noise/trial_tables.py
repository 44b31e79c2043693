"""Tables of many small groups: on half of them one dataset, on the other half its neighbour.

A release by a public column of groups draws the noise of every group on its own, and one charge
pays for all: rows of different groups are different entries. So one release of n groups is n runs
of the query on a dataset as small as a group, through all that a session does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import takifugu as tf
from takifugu.drafting import Table
from takifugu.priors import IndependentEntries, MarkovChain
from takifugu.priors.prior import Prior
from takifugu.session.query.sums import WeightedSum

STATES, MOODS, LOADS = ("home", "ward", "out"), ("well", "ill"), tuple(range(5))
WEIGHTS = {0: 1, 1: 3}  # of the hours of a linear query
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Setting:
    """What a session is opened with, beside the rows.

    Attributes:
        protected: The declaration of each protected column.
        prior: What the adversary may believe.
        over: What the entries of the prior are; None where only one reading is possible.
        linear: The linear queries that are declared.
    """

    protected: Mapping[str, Any]
    prior: Prior
    over: str | None = None
    linear: Mapping[str, WeightedSum] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns."""
        return tuple(self.protected)


def unrelated(values: Sequence[Any]) -> MarkovChain:
    """Rows that say nothing of one another: what is charged for an entry is all that it loses."""
    size = len(values)
    return MarkovChain(np.full((size, size), 1 / size), states=tuple(values))


LABELS = Setting({"state": list(STATES)}, unrelated(STATES))
NUMBERS = Setting(
    {"load": {"bounds": [0, 4], "step": 1, "missing": "refuse"}},
    unrelated(LOADS),
    linear={"peak": WeightedSum("load", "hour", WEIGHTS)},
)
FINE = Setting(
    {"load": {"bounds": [0, 70], "step": 1, "missing": "refuse"}},
    unrelated(("[0, 35)", "[35, 70]")),
)
COLUMNS = Setting(
    {"state": list(STATES), "mood": list(MOODS)},
    IndependentEntries(
        {
            "state": dict.fromkeys(STATES, 1 / len(STATES)),
            "mood": dict.fromkeys(MOODS, 1 / len(MOODS)),
        }
    ),
    over="row",
)


def rows_of(column: str, *values: Any, **others: Any) -> Rows:
    """Rows that hold these values of a column, and everywhere the same in the others."""
    return tuple({column: value, **others} for value in values)


def trial_table(setting: Setting, datasets: Sequence[Rows]) -> Table:
    """One person for each dataset, in a group of their own; an ``hour`` in each row is public."""
    size = len(datasets[0])
    groups = np.arange(len(datasets))
    columns: dict[str, Any] = {
        "person": np.repeat(groups, size),
        "step": np.tile(np.arange(size), len(datasets)),
        "trial": np.repeat(groups, size),
        "hour": [row.get("hour", 0) for rows in datasets for row in rows],
    }
    for name in setting.columns:
        columns[name] = [row[name] for rows in datasets for row in rows]
    return tf.table(
        pa.table(columns),
        entity="person",
        order="step",
        order_kind="number",
        protected=setting.protected,
        public={"trial": groups.tolist(), "hour": list(WEIGHTS)},
        name="trials",
    )
