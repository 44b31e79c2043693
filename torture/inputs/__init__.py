"""Every file format, every command, every route: hostile inputs by the ten thousand.

Nothing may end in a traceback, hang, swell, leave a file half-written or tell a protected value.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from torture.inputs.canary_study import make_study
from torture.inputs.case import Case, is_hang
from torture.inputs.children import Make, Numbered, Ran, run_cases
from torture.inputs.command_lines import command_case
from torture.inputs.command_seeds import COSTLY, LINES, LONG_BY_RIGHT
from torture.inputs.file_formats import file_case, formats, names_of
from torture.inputs.requests import route_case, rules
from torture.inputs.running import Runner
from torture.inputs.server_lives import ServerLives
from torture.inputs.tallies import Tallies
from torture.part_report import Report

BATCH = 300  # cases of one child
OF_ROUTES = 0.2  # of all inputs
SLOW_ROUTES = {"/api/v1/reports/{name}": 0.2, "/openapi.json": 0.3}  # tried less often
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one


@dataclass(frozen=True)
class Surface:
    """Something that takes input.

    Attributes:
        name: As the report has it.
        share: How often it is tried, relative to others.
        make: A case of it.
    """

    name: str
    share: float
    make: Callable[[np.random.Generator], Case]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for copies of the study, in memory if possible."""
    place = str(MEMORY) if MEMORY.is_dir() else None
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="takifugu-inputs-", dir=place) as folder:
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


def surfaces(study: Path) -> list[Surface]:
    """All files and commands."""
    seeds = {
        str(path.relative_to(study)): path.read_bytes()
        for path in sorted(study.rglob("*"))
        if path.is_file()
    }
    found = [
        Surface(
            f"file: {form.name}",
            form.share,
            partial(file_case, form=form, seeds=seeds, names=names_of(form, study)),
        )
        for form in formats()
    ]
    found += [
        Surface(f"command: {name}", COSTLY.get(name, 1.0), partial(command_case, name=name))
        for name in LINES
    ]
    return found


def routes() -> list[Surface]:
    """All routes of the server."""
    return [
        Surface(
            f"route: {rule.method} {rule.path}",
            SLOW_ROUTES.get(rule.path, 1.0),
            partial(route_case, rule=rule),
        )
        for rule in rules()
    ]


def cases(seed: int, found: Sequence[Surface], start: int, count: int) -> list[Numbered]:
    """Cases by number: the same number and seed give the same case."""
    shares = np.array([surface.share for surface in found])
    weights = np.cumsum(shares / shares.sum())
    made = []
    for number in range(start, start + count):
        rng = np.random.default_rng([seed, number])
        place = int(np.searchsorted(weights, rng.random(), side="right"))
        surface = found[min(place, len(found) - 1)]
        made.append((number, surface.make(rng)))
    return made


def run(
    report: Report,
    rng: np.random.Generator,
    *,
    limit: int | None = None,
    make: Make = Runner,
    only: str = "",
    study: Path | None = None,
) -> None:
    """Try inputs until the time is over, or so many.

    Args:
        report: Where it is told.
        rng: What the cases come from.
        limit: The most inputs; by default as many as there is time for.
        make: What runs a case, for tests.
        only: Surfaces whose names contain this.
        study: The study, if it was made before.
    """
    seed = int(rng.integers(2**62))
    tallies = Tallies(report)
    for command, option in sorted(LONG_BY_RIGHT):
        report.remark(f"{command} {option} is given small numbers only: it says how long to work")
    with scratch_folder() as scratch, ExitStack() as stack:
        if study is None:
            study = scratch / "template"
            make_study(study)
        local = [one for one in surfaces(study) if only in one.name]
        remote = [one for one in routes() if only in one.name]
        served = stack.enter_context(ServerLives(study, scratch, report))
        done = 0
        while not report.over and (limit is None or done < limit):
            count = BATCH if limit is None else min(BATCH, limit - done)
            asked = round(OF_ROUTES * count) if local and remote else count if remote else 0
            batch = cases(seed, local, done, count - asked) if local else []
            for ran in run_cases(batch, study, scratch, make, lambda: report.over):
                tallies.add(ran.case, _confirmed(ran, study, scratch, make).outcome)
                done += 1
            for _, case in cases(seed, remote, done, asked) if remote else ():
                if report.over:
                    break
                tallies.add(case, served.run(case))
                done += 1
            tallies.tables()
    tallies.tables()


def _confirmed(ran: Ran, study: Path, scratch: Path, make: Make) -> Ran:
    """A hang is one if it happens again: a busy machine may be slow once."""
    if not any(map(is_hang, ran.outcome.wrong)):
        return ran
    (again,) = run_cases([(ran.number, ran.case)], study, scratch, make)
    return replace(again, outcome=again.outcome.after(ran.outcome))
