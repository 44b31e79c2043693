"""A project for tests of the server: a table of stays, large enough for a useful release."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from takifugu.priors import MarkovChain, write_prior
from takifugu.project.project import LEDGER, init_project, open_project
from tests.declared import declared

STATES = ("home", "ward", "clinic")
ZONES = ("north", "south", "east")
PEOPLE, DAYS = 120, 30
FIRST_DAY = date(2026, 1, 1)
BUDGET = "8"
CHAIN = MarkovChain(
    np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.3, 0.2, 0.5]]), states=STATES, length=DAYS
)
DECLARATION = declared(
    "stays.csv",
    "person",
    "day",
    {"state": ["home", "ward", "clinic"]},
    {"zone": ["north", "south", "east"]},
    zone="UTC",
    title="Stays",
)

Row = tuple[str, str, str, str]


def stays(people: int = PEOPLE, days: int = DAYS) -> list[Row]:
    """Person, day, zone, state: a fixed pattern in which every state and zone is common."""
    return [
        (
            f"person {person}",
            (FIRST_DAY + timedelta(days=day)).isoformat(),
            ZONES[person % len(ZONES)],
            STATES[(person * 7 + day * day * (person % 5 + 1) + day // 3) % 11 % len(STATES)],
        )
        for person in range(people)
        for day in range(days)
    ]


def write_rows(folder: Path, rows: Sequence[Row]) -> None:
    """The file of the table, whole at once: a server may be reading the one before."""
    lines = ["person,day,zone,state", *(",".join(row) for row in rows)]
    part = folder / "stays.csv.part"
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(folder / "stays.csv")


def small_project(
    folder: Path,
    ledger: str | None = None,
    *,
    budget: str = BUDGET,
    analysts: Mapping[str, str] | None = None,
    people: int = PEOPLE,
    prior: MarkovChain = CHAIN,
) -> Path:
    """A project with the dataset ``stays`` and a budget; the path of its project file.

    3,600 rows of 120 people over 30 days, under a prior of three states that was not fitted: a
    histogram at ε = 1 is useful. Made in about a second; tests make their own tokens.

    Args:
        folder: Where to make it; made if it is not there.
        ledger: The address of a PostgreSQL ledger; by default a file in the folder.
        budget: The Pufferfish ε of the dataset.
        analysts: By name, budgets of analysts of their own. Then only these may ask.
        people: How many people the table has.
        prior: What the adversary may believe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, stays(people))
    (folder / "stays.toml").write_text(DECLARATION, encoding="utf-8")
    write_prior(prior, folder / "chain.json")
    project = init_project(folder, ledger=LEDGER if ledger is None else ledger).add_dataset(
        *("stays", folder / "stays.toml"),
        priors=[folder / "chain.json"],
        analysts=tuple(analysts or ()),
    )
    project.set_budget("stays", budget)
    for analyst, own in (analysts or {}).items():
        project.set_budget("stays", own, analyst=analyst)
    return open_project(folder).file
