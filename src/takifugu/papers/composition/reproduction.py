"""The experiments of the paper from data to page: find, prepare, run, write.

Everything that was measured is kept in the folder of the run, so that an interrupted run resumes
where it stopped, and a second one with the same request measures nothing again.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.papers.composition.appendix_page import write_appendix
from takifugu.papers.composition.data import SOURCES, DrawnCounts, PaperDataset, find, prepare
from takifugu.papers.composition.data.simulated import SEED as WORLD_SEED
from takifugu.papers.composition.experiments.allowances import allowances
from takifugu.papers.composition.experiments.compared_chains import (
    ChainAllowances,
    fitted_allowances,
)
from takifugu.papers.composition.experiments.experiment import enough_repetitions, run
from takifugu.papers.composition.experiments.measurements import (
    Family,
    Results,
    about,
    merged,
    write_results,
)
from takifugu.papers.composition.experiments.verdicts import ClaimVerdict, findings, shifts
from takifugu.papers.composition.reproduction_page import DatasetDrawing, page
from takifugu.papers.composition.tables_and_figures.cell_figures import (
    pictures,
    write_tables,
)
from takifugu.papers.composition.tables_and_figures.curve_figures import (
    LEFT_OUT,
    alarm_file,
    kept_drawings,
    write_panels,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import (
    check_folder,
    write_svg_and_png,
    write_whole,
)
from takifugu.reports.plot_files import drawing
from takifugu.synthetic.check_in_counts import check_rows

What = Literal["figures", "foursquare", "capture24", "all"]


@dataclass(frozen=True)
class DatasetChoice:
    """The datasets in order, whether curves are drawn, and notices for the user."""

    sources: tuple[PaperDataset, ...]
    curves: bool
    notices: tuple[str, ...]


def choose_datasets(what: What, folder: Path | None) -> DatasetChoice:
    """Every dataset of ``what`` that ``folder`` has; a simulated one where it has none.

    A folder that has nothing at all for it is a mistake, and the error names what is needed; so is
    one that has only some files of a source.
    """
    families = tuple(f for f in get_args(Family) if what in (f, "all"))
    curves = what in ("figures", "all")
    if not families:
        return DatasetChoice((), curves, ())
    there = [] if folder is None else find(folder)
    chosen: list[PaperDataset] = []
    notices: list[str] = []
    for family in families:
        own = [source for source in there if source.about.family == family]
        for source in own:
            source.within(folder)  # an error if it is not whole, before anything is run
        notices += _missing(family, own, folder)
        if not own:
            own = [source for source in find(None) if source.about.family == family]
            notices.append(f"{family}: there is no data, so a simulated world is used")
        chosen += own
    if folder is not None and not any(source in there for source in chosen):
        names = sorted({needed.name for s in _known(families) for needed in s.files.values()})
        raise InvalidFile(
            "--data",
            given=f"{str(folder)!r} has none of the files that are known for {what}",
            needed=f"have some of {', '.join(names)}; without --data simulated worlds are used",
        )
    return DatasetChoice(tuple(chosen), curves, tuple(notices))


def _known(families: tuple[str, ...]) -> list[PaperDataset]:
    return [source for source in SOURCES.values() if source.about.family in families]


def _missing(family: str, there: list[PaperDataset], folder: Path | None) -> list[str]:
    """For the paper's own data: which file is not there, its columns, where it is published."""
    return [
        f"{family}: for the paper's own data {source.missing(needed, folder)}"
        for source in _known((family,))
        if source.about.origin == "paper" and source not in there
        for needed in source.files.values()
    ]


PACKAGES = (
    "takifugu", "numpy", "scipy", "numba", "opendp", "duckdb", "matplotlib", "typer", "rich",
    "pgmpy",
)  # fmt: skip


def commit() -> str | None:
    """The commit of the working copy that this file belongs to; None if it belongs to none."""
    git = shutil.which("git")
    here = Path(__file__).parent
    if git is None:
        return None

    def git_output(*words: str) -> str | None:
        done = subprocess.run(  # noqa: S603
            [git, "-C", str(here), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    if git_output("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None  # another repository around an installed copy
    found = git_output("rev-parse", "HEAD")
    changed = git_output("status", "--porcelain", "--untracked-files=no", "--", "..")
    return f"{found} and changes" if found and changed else found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
Notify = Callable[[str], None]


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


def manifest(
    request: ReproductionRequest,
    results: Results,
    files: Iterable[Path],
    notices: Iterable[str],
    seconds: float,
) -> dict[str, Any]:
    """Versions, data, seeds, time and every file with its hash; paths are those within the folder.

    ``seconds`` is the wall time of this run; parts found from an earlier one took none.
    """
    return {
        "command": request.command,
        "seconds": round(seconds, 1),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "commit": commit(),
        "seeds": {"mechanisms": request.seed, "simulated worlds": WORLD_SEED},
        "datasets": [
            {
                "key": one.key,
                "title": one.title,
                "origin": one.origin,
                "fingerprint": one.fingerprint,
                "repetitions": one.repetitions,
                "facts": dict(one.facts),
            }
            for one in results.about
        ],
        "notices": list(notices),
        "files": {
            path.relative_to(request.out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(files)
        },
    }


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
    description = manifest(request, results, files, notices, seconds)
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
    seed = request.seed
    cells = run(prepared, repetitions=repetitions, rng_seed=seed, folder=work, progress=progress)
    shifted = shifts(prepared, cells, repetitions=repetitions, rng_seed=seed, folder=work)
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
        files += write_svg_and_png(one.figure, out, one.key)
        shown.append(
            DatasetDrawing(one.data, drawing(one.figure, name=one.key, caption=one.caption))
        )
    progress("figures", len(every), len(every))
    return files, shown
