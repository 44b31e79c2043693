"""A project of several datasets, whose priors are of several kinds, to report on."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Gaussian,
    MarkovChain,
    MarkovRandomField,
    household_contagion,
    write_prior,
)
from takifugu.project.project import Project, init_project, open_project
from takifugu.session import OverBudget

PLACES = ("home", "ward", "clinic")
CHAIN = MarkovChain(
    np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]), states=PLACES, length=6
)
ANSWERS = ("no", "yes")
SURVEY = BayesianNetwork(
    entries=("smokes", "bronchitis", "cough"),
    states=(ANSWERS, ANSWERS, ANSWERS),
    parents=((), ("smokes",), ("bronchitis",)),
    tables=(
        np.array([0.7, 0.3]),
        np.array([[0.9, 0.1], [0.6, 0.4]]),
        np.array([[0.8, 0.2], [0.3, 0.7]]),
    ),
    name="survey",
)
WARD = ("ada", "bob", "cyd")  # people: public, and yet not to be named in a report
HEADS = """\
title = "{title}"
[source]
kind = "csv"
path = "{name}.csv"
[entity]
column = "person"
[order]
column = "step"
kind = "number"
ties = "refuse"
"""
LABELS = """\
[protected.{column}]
values = {values}
outside = "refuse"
"""


def many(folder: Path) -> Project:
    """A project with five datasets: a chain, a network, a process, households, people."""
    project = init_project(folder)
    for add in (_stays, _survey, _meters, _homes, _ward):
        project = add(project)
    _release(project)
    return open_project(project.file)


def _write(project: Project, name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with (project.folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


def _declare(project: Project, name: str, title: str, text: str) -> Path:
    path = project.folder / f"{name}.toml"
    path.write_text(HEADS.format(name=name, title=title) + text, encoding="utf-8")
    return path


def _stays(project: Project) -> Project:
    rows = [
        (f"p{p}", t, ("north", "south")[p % 2], PLACES[(p + t * t) % 3])
        for p in range(200)
        for t in range(6)
    ]
    _write(project, "stays", ("person", "step", "zone", "place"), rows)
    text = LABELS.format(column="place", values=list(PLACES))
    text += '[public.zone]\nvalues = ["north", "south"]\n'
    write_prior(CHAIN, project.folder / "stays.json")
    project = project.add_dataset(
        "stays",
        _declare(project, "stays", "Stays of patients", text),
        priors=[project.folder / "stays.json"],
        analysts=["ann", "ben"],
    )
    project.set_budget("stays", "2")
    project.set_budget("stays", "3/2", analyst="ann")
    project.set_budget("stays", "1", analyst="ben")
    return project


def _survey(project: Project) -> Project:
    rows = [(n, 2024, *(ANSWERS[(n // 2**k) % 2] for k in range(3))) for n in range(64)]
    _write(project, "survey", ("person", "step", "smokes", "bronchitis", "cough"), rows)
    text = "".join(
        LABELS.format(column=column, values=list(ANSWERS))
        for column in ("smokes", "bronchitis", "cough")
    )
    write_prior(SURVEY, project.folder / "survey.json")
    project = project.add_dataset(
        "survey",
        _declare(project, "survey", "A survey of <smokers> & others", text),
        priors=[project.folder / "survey.json"],
        over="row",
    )
    project.set_budget("survey", "1")
    return project


def _meters(project: Project) -> Project:
    rows = [(f"m{m}", t, t % 4, (m * 7 + t * 3) % 50 / 10) for m in range(40) for t in range(24)]
    _write(project, "meters", ("person", "step", "hour", "kwh"), rows)
    text = '[protected.kwh]\nbounds = [0, 5]\nstep = 0.1\nmissing = "refuse"\n'
    text += "[public.hour]\nvalues = [0, 1, 2, 3]\n"
    write_prior(Gaussian(AR1(0.5), length=24), project.folder / "meters.json")
    project = project.add_dataset(
        "meters",
        _declare(project, "meters", "Meter readings", text),
        priors=[project.folder / "meters.json"],
        within="1",
    )
    project.set_budget("meters", "1")
    return project


def _homes(project: Project) -> Project:
    rows = [
        (f"h{h}{who}", day, f"h{h}", ("well", "ill")[(h + day) % 3 == 0])
        for h in range(30)
        for day in range(5)
        for who in "ab"
    ]
    _write(project, "homes", ("person", "step", "home", "health"), rows)
    text = LABELS.format(column="health", values=["well", "ill"])
    text += '[public.home]\nvalues = "from the data"\n'
    couple = household_contagion(2, background=0.02, infection=0.2, recovery=0.3, length=5)
    write_prior(couple, project.folder / "homes.json")
    project = project.add_dataset(
        "homes",
        _declare(project, "homes", "Households", text),
        priors=[project.folder / "homes.json"],
        over="household",
        household="home",
    )
    project.set_budget("homes", "2")
    return project


def _ward(project: Project) -> Project:
    _write(
        project,
        "ward",
        ("person", "step", "ill"),
        [(who, 0, ANSWERS[k % 2]) for k, who in enumerate(WARD)],
    )
    field = MarkovRandomField(
        entries=WARD,
        states=(ANSWERS,) * 3,
        unary=(np.array([0.6, 0.4]),) * 3,
        edges=(("ada", "bob"), ("bob", "cyd")),
        weights=(np.array([[1.3, 1.0], [1.0, 1.3]]),) * 2,
    )
    write_prior(field, project.folder / "ward.json")
    return project.add_dataset(
        "ward",
        _declare(project, "ward", "A ward", LABELS.format(column="ill", values=list(ANSWERS))),
        priors=[project.folder / "ward.json"],
        over="entities",
    )


def _release(project: Project) -> None:
    """Releases of most kinds, to two analysts; a refusal; and what the owner decides."""
    with project.session("stays", "ann") as session:
        session.release(session.plan.histogram(by="zone", epsilon="0.4"), accept_noise=True)
        shares = session.plan.proportions(where={"zone": ["north"]}, epsilon="0.3")
        session.release(shares, accept_noise=True)
        session.release(
            session.plan.proportions(where={"zone": ["north"]}, epsilon="0.3"), accept_noise=True
        )  # free
        with pytest.raises(OverBudget):
            session.release(session.plan.transitions(epsilon="1.4"), accept_noise=True)
    with project.session("stays", "ben") as session:
        session.release(session.plan.top_k(2, by="zone", epsilon="0.3"), accept_noise=True)
        session.release(
            session.plan.histogram(by="zone", epsilon="0.4"), accept_noise=True
        )  # ann's, for ben's budget
    project.set_budget("stays", "5/2")
    write_prior(replace(CHAIN, start="unknown"), project.folder / "stays.json")
    project.accept_prior("stays", project.change("stays"))
    with project.session("stays", "ann") as session:
        session.release(session.plan.transitions(epsilon="0.3"), accept_noise=True)
    with project.session("survey") as session:
        session.release(
            session.plan.histogram(("smokes", "cough"), epsilon="0.4"), accept_noise=True
        )
        session.release(session.plan.marginals(epsilon="0.3"), accept_noise=True)
    with project.session("meters") as session:
        session.release(session.plan.quantile("1/2", epsilon="0.3"), accept_noise=True)
        session.release(session.plan.mean(by="hour", epsilon="0.3"), accept_noise=True)
    with project.session("homes") as session:
        session.release(session.plan.count(["ill"], epsilon="1"), accept_noise=True)
