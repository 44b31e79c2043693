"""A small study for tests of projects: a table of stays, and a folder with a project in it."""

from pathlib import Path

from takifugu.project.project import Project, init_project
from tests.declared import declared

STATES = ("home", "ward")
PEOPLE, STEPS = 24, 12
DECLARATION = declared(
    "stays.csv",
    "person",
    "step",
    {"state": ["home", "ward"]},
    {"zone": ["north", "south"], "floor": [1, 2]},
    title="Stays",
)


def stays(steps: int = STEPS) -> list[tuple[str, int, str, int, str]]:
    """Person, step, zone, floor, state: a pattern that visits every step of the chain."""
    return [
        (
            f"p{person}",
            step,
            ("north", "south")[person % 2],
            1 + person % 3 % 2,
            STATES[(person * 7 + step * step * (person % 5 + 1)) % 5 % 2],
        )
        for person in range(PEOPLE)
        for step in range(steps)
    ]


def write_data(folder: Path, steps: int = STEPS) -> Path:
    """The table and its declaration; the path of the latter."""
    lines = ["person,step,zone,floor,state", *(",".join(map(str, row)) for row in stays(steps))]
    (folder / "stays.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "stays.toml"
    path.write_text(DECLARATION, encoding="utf-8")
    return path


def study(folder: Path) -> Project:
    """A project with the dataset ``stays`` and no prior yet."""
    return init_project(folder).add_dataset("stays", write_data(folder))
