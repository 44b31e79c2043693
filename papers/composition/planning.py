"""Which datasets a request is about, and which files of the paper's own data are not there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from papers.composition.data import SOURCES, Source, find
from papers.composition.values import Family
from takifugu.errors import InvalidFile

What = Literal["figures", "foursquare", "capture24", "all"]


@dataclass(frozen=True)
class Plan:
    """What will be done: the sources in order, whether curves are drawn, what to tell the user."""

    sources: tuple[Source, ...]
    curves: bool
    notices: tuple[str, ...]


def plan(what: What, folder: Path | None, *, sources: Mapping[str, Source] = SOURCES) -> Plan:
    """Every source that ``folder`` has for what is asked; the simulated world where it has none.

    A folder that has nothing at all for it is a mistake, and the error names what is needed.
    """
    families = tuple(f for f in get_args(Family) if what in (f, "all"))
    curves = what in ("figures", "all")
    if not families:
        return Plan((), curves, ())
    there = _there(folder, sources)
    chosen: list[Source] = []
    notices: list[str] = []
    for family in families:
        own = [source for source in there if source.about.family == family]
        notices += _missing(family, own, folder, sources)
        if not own:
            own = [
                source
                for source in sources.values()
                if (source.about.family, source.about.origin) == (family, "simulated")
            ]
            notices.append(f"{family}: no data was given, so a simulated world is used")
        chosen += own
    if folder is not None and not any(source in there for source in chosen):
        known = [s for s in sources.values() if s.about.family in families and s.files]
        names = sorted({needed.name for source in known for needed in source.files.values()})
        raise InvalidFile(
            "--data",
            given=f"{str(folder)!r} has none of the files that are known for {what}",
            needed=f"have some of {', '.join(names)}; without --data simulated worlds are used",
        )
    return Plan(tuple(chosen), curves, tuple(notices))


def _there(folder: Path | None, sources: Mapping[str, Source]) -> list[Source]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise InvalidFile("--data", given=f"{str(folder)!r} is no folder", needed="be one")
    return [source for source in find(folder) if source.key in sources]


def _missing(
    family: str, there: list[Source], folder: Path | None, sources: Mapping[str, Source]
) -> list[str]:
    """For the paper's own data: which file is not there, its columns, where it is published."""
    return [
        f"{family}: for the paper's own data {source.missing(needed, folder)}"
        for source in sources.values()
        if source.about.family == family and source.about.origin == "paper" and source not in there
        for needed in source.files.values()
        if folder is None or not needed.within(folder)
    ]
