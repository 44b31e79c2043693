"""The experiments of the paper from data to page: find, prepare, run, write.

Everything that was measured is kept in the folder of the run, so that a run that was stopped goes
on where it was, and a second one with the same request measures nothing again.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from takifugu.papers.composition.data import Source, prepare
from takifugu.papers.composition.experiments.dataset_choice import What, plan
from takifugu.papers.composition.experiments.experiment import run
from takifugu.papers.composition.experiments.findings import findings
from takifugu.papers.composition.experiments.shift import shifts
from takifugu.papers.composition.experiments.verdicts import Verdict
from takifugu.papers.composition.results import Results, Shifted, about, merged, write_results
from takifugu.papers.composition.tables_and_figures.curve_figures import (
    LEFT_OUT,
    alarm_file,
    kept_drawings,
    write_panels,
)
from takifugu.papers.composition.tables_and_figures.figure_files import check_folder, write_whole
from takifugu.papers.composition.tables_and_figures.manifest import manifest
from takifugu.papers.composition.tables_and_figures.result_files import (
    pictures,
    write_picture,
    write_tables,
)
from takifugu.papers.composition.tables_and_figures.run_page import Shown, page
from takifugu.reports.html_figures import drawing

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
Tell = Callable[[str], None]


class Settings(TypedDict):
    """What the experiment and its shifts have in common."""

    repetitions: int
    rng_seed: int


@dataclass(frozen=True)
class Request:
    """What is to be done.

    Attributes:
        what: The influence curves, one of the experiments, or all of it.
        data: A folder with data; None for the simulated worlds.
        out: Where everything is written.
        repetitions: How often each mechanism is run on each group.
        seed: The seed of the simulations.
        command: What the user typed, for the manifest.
    """

    what: What
    data: Path | None
    out: Path
    repetitions: int
    seed: int
    command: str = ""


@dataclass(frozen=True)
class Made:
    """What came of it: the files, the measurements, what they show, what was not there."""

    page: Path
    manifest: Path
    files: tuple[Path, ...]
    results: Results
    findings: tuple[Verdict, ...]
    notices: tuple[str, ...]
    seconds: float


def reproduce(request: Request, progress: Progress, tell: Tell) -> Made:
    """Do all of it; ``tell`` gets a line for what is missing or left out, before the work."""
    start = time.monotonic()
    planned = plan(request.what, request.data)
    check_folder(request.out / "work")
    notices = list(planned.notices)
    if planned.curves and alarm_file() is None:
        notices.append(LEFT_OUT)
    for notice in notices:
        tell(notice)
    results = merged([_measured(source, request, progress) for source in planned.sources])
    shown = findings(results)
    files, figures = _drawn(results, request, curves=planned.curves, progress=progress)
    files += write_tables(results, request.out / "tables")
    write_results(results, request.out / "results.json")
    write_whole(request.out / "index.html", page(results, figures, shown, notices).html())
    files += [request.out / "results.json", request.out / "index.html"]
    seconds = time.monotonic() - start
    said = manifest(
        results,
        command=request.command,
        seed=request.seed,
        seconds=seconds,
        folder=request.out,
        files=files,
        notices=notices,
    )
    path = request.out / "manifest.json"
    write_whole(path, json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    return Made(
        request.out / "index.html",
        path,
        (*files, path),
        results,
        shown,
        tuple(notices),
        seconds,
    )


def _measured(source: Source, request: Request, progress: Progress) -> Results:
    """One dataset: made ready, every mechanism run on it, and the shift shown on the same runs."""
    work = request.out / "work"
    simulated = source.about.origin == "simulated"
    prepared = prepare(source, None if simulated else request.data, work, progress)
    settings: Settings = {"repetitions": request.repetitions, "rng_seed": request.seed}
    cells = run(prepared, **settings, folder=work, progress=progress)
    shifted = tuple(
        Shifted(prepared.key, s.mechanism, s.epsilon, s.at, s.by_group, s.equal, s.plain)
        for s in shifts(prepared, cells, **settings, folder=work)
    )
    return Results((about(prepared, repetitions=request.repetitions),), cells, shifted)


def _drawn(
    results: Results, request: Request, *, curves: bool, progress: Progress
) -> tuple[list[Path], list[Shown]]:
    """Every figure written, and as it stands in the page."""
    out, work = request.out / "figures", request.out / "work"
    files = list(write_panels(out, work, progress)) if curves else []
    shown = [Shown("", one) for one in kept_drawings(work, files)]
    every = pictures(results)
    for place, one in enumerate(every):
        progress("figures", place, len(every))
        files += write_picture(one, out)
        shown.append(Shown(one.data, drawing(one.figure, name=one.key, caption=one.caption)))
    progress("figures", len(every), len(every))
    return files, shown
