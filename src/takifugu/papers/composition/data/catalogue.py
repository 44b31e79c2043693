"""Every dataset that the reproduction knows, read from ``catalogue.toml``."""

import tomllib
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from takifugu.declarations import Order
from takifugu.errors import InvalidFile
from takifugu.papers.composition.data import simulated
from takifugu.papers.composition.data.capture24 import MET, STAGES, capture24_table
from takifugu.papers.composition.data.preparation import (
    DatasetInfo,
    DrawnCounts,
    Entries,
    PaperDataset,
    activities,
    by_days,
    by_people,
    check_ins,
)
from takifugu.papers.composition.data.raw_tables import Column, RequiredFile, one_table

VALUES = {"hours": tuple(f"{hour:02d}" for hour in range(24)), "met": MET, "stages": STAGES}
TABLES = {"capture24": capture24_table, "simulated-activities": simulated.activities_table}
DRAWN = {
    "simulated-checkins": DrawnCounts(
        simulated.PAPER_ROWS,
        simulated.described_check_ins,
        simulated.check_ins_identity,
        simulated.draw_check_ins,
    )
}


def _dataset(one: Mapping[str, Any]) -> PaperDataset:
    key = one["key"]
    return PaperDataset(
        DatasetInfo(
            key,
            one["title"],
            one["family"],
            one["origin"],
            one["group_by"],
            (*simulated.NOTES.get(key, ()), *one["notes"]),
            simulated.CALIBRATED if key in DRAWN else (),
            one.get("known_facts", {}),
        ),
        {name: _file(needed) for name, needed in one.get("files", {}).items()},
        one.get("published", ""),
        one.get("cite", ""),
        DRAWN[key] if key in DRAWN else _entries(one),
        one.get("derived", False),
    )


def _file(one: Mapping[str, Any]) -> RequiredFile:
    return RequiredFile(
        one["name"],
        tuple(Column(*column) for column in one["columns"]),
        one.get("layout", "comma"),
        tuple(one.get("encodings", ("utf-8",))),
        one.get("identifying", True),
    )


def _entries(one: Mapping[str, Any]) -> Entries:
    table = partial(one_table, one["recipe"]) if "recipe" in one else TABLES[one["key"]]
    order = Order(**{**one["order"], "ties": tuple(one["order"].get("ties", ()))})
    values = VALUES[one["values"]] if "values" in one else None
    if one["family"] == "foursquare":
        return Entries(table, partial(check_ins, order=order, groups=values), by_days)
    return Entries(table, partial(activities, order=order, states=values or ()), by_people)


SOURCES: Mapping[str, PaperDataset] = {
    one["key"]: _dataset(one)
    for one in tomllib.loads((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))[
        "dataset"
    ]
}
SIMULATED = tuple(one for one in SOURCES.values() if one.about.origin == "simulated")
REAL = tuple(one for one in SOURCES.values() if one.about.origin != "simulated")


def find(folder: Path | str | None) -> list[PaperDataset]:
    """The datasets that have files in ``folder`` or a folder in it; without one, the simulated.

    One identifying file is enough: if others are missing, `prepare` names them.
    """
    if folder is None:
        return list(SIMULATED)
    if not Path(folder).is_dir():
        raise InvalidFile(
            str(folder), given="is not a folder", needed="hold the files of a dataset"
        )
    return [
        source
        for source in REAL
        if any(
            needed.identifying and needed.within(Path(folder)) for needed in source.files.values()
        )
    ]
