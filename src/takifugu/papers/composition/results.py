"""The results of a run as one JSON file: the cells and a summary of each dataset. No raw data."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from takifugu._core.atomic import read_whole
from takifugu.errors import InvalidFile
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    Difference,
    Estimate,
    Family,
    Prepared,
    PrintedColumn,
    from_document,
    to_document,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import write_whole

FORMAT = 3  # 2: calibrated columns; 3: leads hold what joint intervals need
ORIGINS = ("paper", "real", "simulated")


@dataclass(frozen=True)
class DatasetSummary:
    """The public facts about a dataset, as tables and pages show them.

    Attributes:
        key: A short name for files.
        title: What it is, for people.
        family: The experiment of the paper that it is for, or stands in for.
        origin: "paper", "real" or "simulated".
        group_by: What the groups are.
        groups: How many.
        labels: How many states the chain has.
        length: The longest sequence that is released from.
        facts: Public numbers about it.
        notes: What differs from the paper's preparation; a sentence each.
        fingerprint: The identity of the data.
        repetitions: How many times every mechanism was run on it.
        calibrated: The printed columns that a simulated world was calibrated to; every other column
            is a prediction. Empty for real data.
    """

    key: str
    title: str
    family: Family
    origin: str
    group_by: str
    groups: int
    labels: int
    length: int
    facts: Mapping[str, int | str]
    notes: tuple[str, ...]
    fingerprint: str
    repetitions: int
    calibrated: tuple[PrintedColumn, ...] = ()


@dataclass(frozen=True)
class ShiftedCell:
    """An uncertain cell run again without uncertainty at a smaller ε.

    Attributes:
        data: The key of the dataset.
        mechanism: Its name.
        epsilon: The Pufferfish ε of the uncertain cell.
        at: The plain ε that stands in for it.
        by_group: Whether group DP is all that is left; then ``at`` is ε itself.
        equal: Whether the two agree in everything.
        plain: What the plain run measured.
    """

    data: str
    mechanism: str
    epsilon: float
    at: float
    by_group: bool
    equal: bool
    plain: Mapping[str, Estimate]


@dataclass(frozen=True)
class Results:
    """Cells of one or several datasets, a summary of each, and the shifts that were run again."""

    about: tuple[DatasetSummary, ...]
    cells: tuple[Cell, ...]
    shifted: tuple[ShiftedCell, ...] = ()

    def of(self, key: str) -> tuple[Cell, ...]:
        """The cells of one dataset."""
        return tuple(cell for cell in self.cells if cell.data == key)

    def shifted_of(self, key: str) -> tuple[ShiftedCell, ...]:
        """The shifts of one dataset."""
        return tuple(one for one in self.shifted if one.data == key)


def about(prepared: Prepared, *, repetitions: int) -> DatasetSummary:
    """The summary of prepared data."""
    return DatasetSummary(
        prepared.key,
        prepared.title,
        prepared.family,
        prepared.origin,
        prepared.group_by,
        len(prepared.groups),
        int(prepared.counts.shape[1]),
        int(prepared.chain.length or 0),
        dict(prepared.facts),
        tuple(prepared.notes),
        prepared.fingerprint,
        repetitions,
        tuple(prepared.calibrated),
    )


def merged(parts: Iterable[Results]) -> Results:
    """Several results as one; of a dataset that comes twice the last one counts."""
    by_key: dict[str, tuple[DatasetSummary, Results]] = {}
    for part in parts:
        for one in part.about:
            by_key[one.key] = one, part
    return Results(
        tuple(one for one, _ in by_key.values()),
        tuple(cell for key, (_, part) in by_key.items() for cell in part.of(key)),
        tuple(one for key, (_, part) in by_key.items() for one in part.shifted_of(key)),
    )


def write_results(results: Results, path: Path) -> None:
    """Write all of it or nothing, a line for each cell, so that differences can be read."""
    parts = {
        "about": [_about_document(one) for one in results.about],
        "cells": [to_document(cell) for cell in results.cells],
        "shifted": [{**vars(one), "plain": _pairs(one.plain)} for one in results.shifted],
    }
    lists = [
        f' "{name}": [\n' + ",\n".join(map(_line, one)) + "\n ]" for name, one in parts.items()
    ]
    write_whole(path, f'{{\n "format": {FORMAT},\n' + ",\n".join(lists) + "\n}\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote."""
    needed = "be a results.json of a run"
    content = read_whole(path, field="results", needed=needed)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(
            "results", given=f"{str(path)!r} cannot be read", needed=needed
        ) from error
    have = document.get("format") if isinstance(document, dict) else None
    if isinstance(have, int) and have != FORMAT:
        raise InvalidFile(
            "results",
            given=f"{str(path)!r} has format {have}, of another version of takifugu",
            needed=f"have format {FORMAT}; run `takifugu reproduce` again to make it",
        )
    try:
        if have != FORMAT:
            raise ValueError
        summaries = tuple(_read_about(one) for one in document["about"])
        cells = tuple(from_document(one) for one in document["cells"])
        shifted = tuple(
            ShiftedCell(**{**one, "plain": _estimates(one["plain"])}) for one in document["shifted"]
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidFile(
            "results",
            given=f"{str(path)!r} holds something else",
            needed=f"{needed}, format {FORMAT}",
        ) from error
    return Results(summaries, cells, shifted)


def shortened(results: Results, digits: int = 5) -> Results:
    """What the repository stores: enough digits for tables, and whether shifts are equal."""

    def number(value: float) -> float:
        return float(f"{value:.{digits}g}")

    def short(given: Mapping[str, Estimate]) -> Mapping[str, Estimate]:
        return {k: Estimate(number(e.mean), number(e.half)) for k, e in given.items()}

    def short_differences(given: Mapping[str, Difference]) -> Mapping[str, Difference]:
        return {
            k: Difference(number(d.mean), number(d.error), number(d.step), d.repetitions)
            for k, d in given.items()
        }

    cells = tuple(
        replace(
            cell,
            epsilon_dp=number(cell.epsilon_dp),
            noise=number(cell.noise),
            measured=short(cell.measured),
            lead=short_differences(cell.lead),
            exp_lead=short_differences(cell.exp_lead),
        )
        for cell in results.cells
    )
    shifted = tuple(replace(one, at=number(one.at), plain={}) for one in results.shifted)
    return Results(results.about, cells, shifted)


def _pairs(given: Mapping[str, Estimate]) -> dict[str, list[float]]:
    return {metric: [one.mean, one.half] for metric, one in given.items()}


def _estimates(given: Mapping[str, Any]) -> dict[str, Estimate]:
    return {metric: Estimate(float(mean), float(half)) for metric, (mean, half) in given.items()}


def _line(value: Any) -> str:
    return "  " + json.dumps(value, ensure_ascii=False, allow_nan=False)


def _about_document(one: DatasetSummary) -> dict[str, Any]:
    return {
        **vars(one),
        "facts": dict(one.facts),
        "notes": list(one.notes),
        "calibrated": [column.to_document() for column in one.calibrated],
    }


def _read_about(given: dict[str, Any]) -> DatasetSummary:
    if given["family"] not in get_args(Family) or given["origin"] not in ORIGINS:
        raise ValueError
    calibrated = tuple(map(PrintedColumn.from_document, given["calibrated"]))
    if calibrated and given["origin"] != "simulated":
        raise ValueError
    return DatasetSummary(**{**given, "notes": tuple(given["notes"]), "calibrated": calibrated})
