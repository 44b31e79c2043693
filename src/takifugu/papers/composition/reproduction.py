"""The experiments of the paper from data to page: find, prepare, run, write.

Everything that was measured is kept in the folder of the run, so that an interrupted run resumes
where it stopped, and a second one with the same request measures nothing again.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from takifugu.errors import UnsoundRequest
from takifugu.papers.composition.data import DrawnCounts, PaperDataset, prepare
from takifugu.papers.composition.experiments.allowances import allowances
from takifugu.papers.composition.experiments.compared_chains import (
    ChainAllowances,
    fitted_allowances,
)
from takifugu.papers.composition.experiments.dataset_choice import What, choose_datasets
from takifugu.papers.composition.experiments.experiment import enough_repetitions, run
from takifugu.papers.composition.experiments.findings import findings
from takifugu.papers.composition.experiments.shift import shifts
from takifugu.papers.composition.experiments.verdicts import ClaimVerdict
from takifugu.papers.composition.results import Results, ShiftedCell, about, merged, write_results
from takifugu.papers.composition.tables_and_figures.appendix_files import write_appendix
from takifugu.papers.composition.tables_and_figures.curve_figures import (
    LEFT_OUT,
    alarm_file,
    kept_drawings,
    write_panels,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import check_folder, write_whole
from takifugu.papers.composition.tables_and_figures.manifest import manifest
from takifugu.papers.composition.tables_and_figures.result_files import (
    pictures,
    write_picture,
    write_tables,
)
from takifugu.papers.composition.tables_and_figures.run_page import DatasetDrawing, page
from takifugu.reports.html_figures import drawing
from takifugu.synthetic.check_in_counts import check_rows

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
Notify = Callable[[str], None]


class Settings(TypedDict):
    """What the experiment and its shifts have in common."""

    repetitions: int
    rng_seed: int


@dataclass(frozen=True)
class ReproductionRequest:
    """What is to be done.

    Attributes:
        what: The influence curves, one of the experiments, or all of it.
        data: A folder with data; None for the simulated worlds.
        out: Where everything is written.
        repetitions: How many times each mechanism is run on each group; None for as many as
            `enough_repetitions` says.
        seed: The seed of the simulations.
        command: What the user typed, for the manifest.
        rows: How many rows the simulated check-ins have; None for as many as the paper's data.
    """

    what: What
    data: Path | None
    out: Path
    repetitions: int | None
    seed: int
    command: str = ""
    rows: int | None = None


@dataclass(frozen=True)
class Reproduction:
    """What came of it: the files, the measurements, what they show, what was not there."""

    page: Path
    manifest: Path
    files: tuple[Path, ...]
    results: Results
    findings: tuple[ClaimVerdict, ...]
    notices: tuple[str, ...]
    seconds: float


def reproduce(request: ReproductionRequest, progress: Progress, notify: Notify) -> Reproduction:
    """Reproduce what is requested; ``notify`` gets a line for what is missing, before the work."""
    start = time.monotonic()
    planned = choose_datasets(request.what, request.data)
    drawn = [isinstance(source.made_by, DrawnCounts) for source in planned.sources]
    if request.rows is not None:
        if request.data is not None or not any(drawn):
            raise UnsoundRequest(
                "rows is for simulated check-ins, which this request has none of",
                field="rows",
                given=request.rows,
            )
        check_rows(request.rows)
    check_folder(request.out / "work")
    notices = list(planned.notices)
    if planned.curves and alarm_file() is None:
        notices.append(LEFT_OUT)
    for notice in notices:
        notify(notice)
    measured = [_measured(source, request, progress) for source in planned.sources]
    results = merged([found for found, _ in measured])
    shown = findings(results)
    files, figures = _drawn(results, request, curves=planned.curves, progress=progress)
    fitted = [chain for _, chain in measured]
    appendix = write_appendix(request.out, fitted, progress, concepts=planned.curves)
    files += [*appendix.files, *write_tables(results, request.out / "tables")]
    figures += [DatasetDrawing("", one) for one in appendix.drawings]
    write_results(results, request.out / "results.json")
    tables = [table.part() for table in appendix.tables]
    write_whole(request.out / "index.html", page(results, figures, shown, notices, tables).html())
    files += [request.out / "results.json", request.out / "index.html"]
    seconds = time.monotonic() - start
    description = manifest(
        results,
        command=request.command,
        seed=request.seed,
        seconds=seconds,
        folder=request.out,
        files=files,
        notices=notices,
    )
    path = request.out / "manifest.json"
    write_whole(path, json.dumps(description, indent=1, ensure_ascii=False) + "\n")
    return Reproduction(
        request.out / "index.html",
        path,
        (*files, path),
        results,
        shown,
        tuple(notices),
        seconds,
    )


def _measured(
    source: PaperDataset, request: ReproductionRequest, progress: Progress
) -> tuple[Results, ChainAllowances]:
    """One dataset: prepared, every mechanism run on it, the shift, and bounds on its chain."""
    work = request.out / "work"
    simulated = source.about.origin == "simulated"
    rows = request.rows if isinstance(source.made_by, DrawnCounts) else None
    data = None if simulated else request.data
    prepared = prepare(source, data, work, progress, rows=rows)
    repetitions = request.repetitions or enough_repetitions(len(prepared.groups))
    settings: Settings = {"repetitions": repetitions, "rng_seed": request.seed}
    cells = run(prepared, **settings, folder=work, progress=progress)
    shifted = tuple(
        ShiftedCell(prepared.key, s.mechanism, s.epsilon, s.at, s.by_group, s.equal, s.plain)
        for s in shifts(prepared, cells, **settings, folder=work)
    )
    known = allowances(prepared.chain, folder=work)
    return (
        Results((about(prepared, repetitions=repetitions),), cells, shifted),
        fitted_allowances(source.about.title, prepared.chain, known),
    )


def _drawn(
    results: Results, request: ReproductionRequest, *, curves: bool, progress: Progress
) -> tuple[list[Path], list[DatasetDrawing]]:
    """Every figure written, and as it stands in the page."""
    out, work = request.out / "figures", request.out / "work"
    files = list(write_panels(out, work, progress)) if curves else []
    shown = [DatasetDrawing("", one) for one in kept_drawings(work, files)]
    every = pictures(results)
    for place, one in enumerate(every):
        progress("figures", place, len(every))
        files += write_picture(one, out)
        shown.append(
            DatasetDrawing(one.data, drawing(one.figure, name=one.key, caption=one.caption))
        )
    progress("figures", len(every), len(every))
    return files, shown
