"""The experiments of the paper from data to page: find, prepare, run, write.

Everything that was measured is kept in the folder of the run, so that a run that was stopped goes
on where it was, and a second one with the same request measures nothing again.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from papers.composition.data import prepare
from papers.composition.experiment import run
from papers.composition.figures import CAPTIONS, LEFT_OUT, alarm_file, write_panels
from papers.composition.files import write_whole
from papers.composition.manifest import manifest
from papers.composition.page import Shown, page
from papers.composition.planning import What, plan
from papers.composition.results import About, Results, about, write_results
from papers.composition.values import Cell
from papers.composition.verdicts import Verdict, verdicts
from papers.composition.writing import pictures, write_picture, write_tables

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
Tell = Callable[[str], None]


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
    verdicts: tuple[Verdict, ...]
    notices: tuple[str, ...]
    seconds: float


def reproduce(request: Request, progress: Progress, tell: Tell) -> Made:
    """Do all of it; ``tell`` gets a line for what is missing or left out, before the work."""
    start = time.monotonic()
    planned = plan(request.what, request.data)
    notices = list(planned.notices)
    if planned.curves and alarm_file() is None:
        notices.append(LEFT_OUT)
    for notice in notices:
        tell(notice)
    told: list[About] = []
    cells: list[Cell] = []
    for source in planned.sources:
        real = source.about.origin != "simulated"
        prepared = prepare(source, request.data if real else None, request.out / "work", progress)
        told.append(about(prepared, repetitions=request.repetitions))
        cells += run(
            prepared,
            repetitions=request.repetitions,
            rng_seed=request.seed,
            folder=request.out / "work",
            progress=progress,
        )
    results = Results(tuple(told), tuple(cells))
    shown = verdicts(results)
    files, figures = _drawn(
        results, request.out / "figures", curves=planned.curves, progress=progress
    )
    files += write_tables(results, request.out / "tables")
    write_results(results, request.out / "results.json")
    write_whole(request.out / "index.html", page(results, figures, shown, notices))
    files += [request.out / "results.json", request.out / "index.html"]
    seconds = time.monotonic() - start
    said = manifest(
        results,
        command=request.command,
        seed=request.seed,
        seconds=seconds,
        folder=request.out,
        files=files,
    )
    path = request.out / "manifest.json"
    write_whole(path, json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    return Made(
        request.out / "index.html",
        path,
        (*files, path),
        results,
        tuple(shown),
        tuple(notices),
        seconds,
    )


def _drawn(
    results: Results, out: Path, *, curves: bool, progress: Progress
) -> tuple[list[Path], list[Shown]]:
    """Every figure written, and what the page needs of each."""
    files = list(write_panels(out, progress)) if curves else []
    shown = [
        Shown("", CAPTIONS[path.stem.removeprefix("curves-")], path.read_bytes())
        for path in files
        if path.suffix == ".svg"
    ]
    drawn = pictures(results)
    for place, picture in enumerate(drawn):
        progress("figures", place, len(drawn))
        vector, pixels, svg = write_picture(picture, out)
        files += [vector, pixels]
        shown.append(Shown(picture.data, picture.caption, svg))
    return files, shown
