"""Every dataset that the reproduction knows: its files, who publishes them, how it is prepared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from papers.composition.data import checkins
from papers.composition.data.files import Found, Needed, Progress
from papers.composition.data.preparation import About
from papers.composition.values import Prepared
from takifugu.errors import InvalidFile

YANG = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"


@dataclass(frozen=True)
class Source:
    """A dataset that someone may have.

    Attributes:
        about: What it is.
        files: What is needed of it, by the name that its recipe has for it.
        published: Where its authors publish it.
        cite: The work to cite.
        make: How it is prepared.
    """

    about: About
    files: Mapping[str, Needed]
    published: str
    cite: str
    make: Callable[[About, Found, Path, Progress], Prepared]

    @property
    def key(self) -> str:
        """Its short name."""
        return self.about.key

    @property
    def title(self) -> str:
        """What it is, for people."""
        return self.about.title


HOURS_NOTE = (
    "One city has no countries: the groups are the 24 hours of the day, local time. By hour of the"
    " week a group has so few rows that the third place is mostly a tie."
)

_ALL = (
    Source(
        About(
            "nyc",
            "Foursquare check-ins, New York (a cut)",
            "foursquare",
            "real",
            "hour of the day",
            (
                HOURS_NOTE,
                "Days are days in New York.",
            ),
        ),
        {"checkins": checkins.NYC_CUT},
        YANG,
        "Yang, Zhang, Zheng & Yu, IEEE Trans. SMC: Systems 45(1), 2015",
        partial(checkins.prepare_check_ins, checkins.NYC),
    ),
    Source(
        About(
            "jakarta",
            "Foursquare check-ins, Jakarta (a cut)",
            "foursquare",
            "real",
            "hour of the day",
            (HOURS_NOTE,),
        ),
        {"checkins": checkins.JAKARTA_CUT},
        YANG,
        "Yang, Qu, Yang & Cudré-Mauroux, WWW 2019",
        partial(checkins.prepare_check_ins, checkins.JAKARTA),
    ),
)
SOURCES: Mapping[str, Source] = {source.key: source for source in _ALL}


def find(folder: Path) -> list[Source]:
    """The sources of which ``folder`` has a file."""
    return [
        source
        for source in SOURCES.values()
        if any(needed.within(folder) for needed in source.files.values())
    ]


def prepare(source: Source, data_dir: Path, work_dir: Path, progress: Progress) -> Prepared:
    """Read, check, fit and count; what was made before and is still right is not made again."""
    found: dict[str, tuple[Needed, tuple[Path, ...]]] = {}
    for name, needed in source.files.items():
        paths = needed.within(data_dir)
        if not paths:
            raise InvalidFile(
                needed.name,
                given=f"is missing from {data_dir}",
                needed=f"hold the columns {needed.shape}; its authors publish it at"
                f" {source.published}",
            )
        found[name] = needed, paths
    return source.make(source.about, found, work_dir, progress)
