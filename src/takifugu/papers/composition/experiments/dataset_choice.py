"""The datasets of a request, and the files of the paper's own data that are missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from takifugu.errors import InvalidFile
from takifugu.papers.composition.data import SOURCES, PaperDataset, find
from takifugu.papers.composition.experiments.measurements import Family

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
