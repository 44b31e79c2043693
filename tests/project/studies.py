"""Projects with a prior and a budget, to test with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.priors import MarkovChain, write_prior
from takifugu.project.project import Project, init_project, open_project
from tests.declared import declared
from tests.session import hospital
from tests.session.study import STATES, write_data

CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=STATES, length=12)


def with_prior(folder: Path, steps: int = 12, **policy: Any) -> Project:
    """A project whose dataset has a prior that was not fitted, and a budget of 2."""
    write_prior(replace(CHAIN, length=steps), folder / "mine.json")
    made = init_project(folder).add_dataset(
        "stays", write_data(folder, steps), priors=[folder / "mine.json"], **policy
    )
    made.set_budget("stays", "2")
    return made


def add_line(project: Project, line: str) -> Project:
    text = project.file.read_text()
    head = "[dataset.stays]\n"
    project.file.write_text(text.replace(head, f"{head}{line}\n"))
    return open_project(project.file)


THREE_PLACES = declared("stays.csv", "person", "step", {"state": ["home", "ward", "clinic"]})


def three_places(folder: Path) -> Project:
    """A project with three labels, whose counts tell less than a value, and a budget of 3."""
    lines = ["person,step,zone,state", *(",".join(map(str, row)) for row in hospital.ROWS)]
    (folder / "stays.csv").write_text("\n".join(lines) + "\n")
    (folder / "stays.toml").write_text(THREE_PLACES)
    write_prior(hospital.CHAIN, folder / "chain.json")
    project = init_project(folder)
    made = project.add_dataset("stays", folder / "stays.toml", priors=[folder / "chain.json"])
    made.set_budget("stays", "3")
    return made
