"""What a run leaves behind, as one JSON file: the cells, and what each dataset was. No raw data."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, get_args

from papers.composition.files import write_whole
from papers.composition.values import Cell, Estimate, Family, Prepared
from takifugu.errors import InvalidFile

FORMAT = 1
ORIGINS = ("paper", "real", "simulated")


@dataclass(frozen=True)
class About:
    """What is public about a dataset: all that tables and pages say of it.

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
        repetitions: How often every mechanism was run on it.
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


@dataclass(frozen=True)
class Results:
    """Cells of one or several datasets, each told about once."""

    about: tuple[About, ...]
    cells: tuple[Cell, ...]

    def of(self, key: str) -> tuple[Cell, ...]:
        """The cells of one dataset."""
        return tuple(cell for cell in self.cells if cell.data == key)


def about(prepared: Prepared, *, repetitions: int) -> About:
    """What may be said of data that was made ready."""
    return About(
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
    )


def merged(parts: Iterable[Results]) -> Results:
    """Several results as one; of a dataset that comes twice the last one counts."""
    told: dict[str, About] = {}
    cells: dict[str, tuple[Cell, ...]] = {}
    for part in parts:
        for one in part.about:
            told[one.key], cells[one.key] = one, part.of(one.key)
    return Results(tuple(told.values()), tuple(cell for key in told for cell in cells[key]))


def write_results(results: Results, path: Path) -> None:
    """Write all of it or nothing, a line for each cell, so that differences can be read."""
    lines = ["{", f' "format": {FORMAT},', ' "about": [']
    lines.append(",\n".join(f"  {_text(_told(one))}" for one in results.about))
    lines += [" ],", ' "cells": [']
    lines.append(",\n".join(f"  {_text(_cell(cell))}" for cell in results.cells))
    lines += [" ]", "}"]
    write_whole(path, "\n".join(lines) + "\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidFile(
            "results", given=f"{str(path)!r} cannot be read", needed="be a results.json of a run"
        ) from error
    try:
        if document["format"] != FORMAT:
            raise ValueError
        told = tuple(_read_about(one) for one in document["about"])
        cells = tuple(_read_cell(one) for one in document["cells"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidFile(
            "results",
            given=f"{str(path)!r} holds something else",
            needed=f"be a results.json of a run, format {FORMAT}",
        ) from error
    return Results(told, cells)


def rounded(results: Results, digits: int = 6) -> Results:
    """The same with significant digits enough for every table, so that the file stays small."""

    def number(value: float) -> float:
        return float(f"{value:.{digits}g}")

    def estimates(given: Mapping[str, Estimate]) -> Mapping[str, Estimate]:
        return {k: Estimate(number(e.mean), number(e.half)) for k, e in given.items()}

    cells = tuple(
        replace(
            cell,
            epsilon_dp=number(cell.epsilon_dp),
            noise=number(cell.noise),
            measured=estimates(cell.measured),
            lead=estimates(cell.lead),
        )
        for cell in results.cells
    )
    return Results(results.about, cells)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _told(one: About) -> dict[str, Any]:
    return {**vars(one), "facts": dict(one.facts), "notes": list(one.notes)}


def _cell(cell: Cell) -> dict[str, Any]:
    def estimates(given: Mapping[str, Estimate]) -> dict[str, list[float | str]]:
        return {key: [_out(e.mean), _out(e.half)] for key, e in given.items()}

    return {
        **vars(cell),
        "epsilon_dp": _out(cell.epsilon_dp),
        "noise": _out(cell.noise),
        "measured": estimates(cell.measured),
        "lead": estimates(cell.lead),
    }


def _out(value: float) -> float | str:
    return value if isfinite(value) else "infinity"


def _in(value: float | str) -> float:
    return inf if value == "infinity" else float(value)


def _read_about(given: dict[str, Any]) -> About:
    if given["family"] not in get_args(Family) or given["origin"] not in ORIGINS:
        raise ValueError
    return About(**{**given, "notes": tuple(given["notes"])})


def _read_cell(given: dict[str, Any]) -> Cell:
    def estimates(pairs: dict[str, list[float | str]]) -> dict[str, Estimate]:
        return {key: Estimate(_in(mean), _in(half)) for key, (mean, half) in pairs.items()}

    return Cell(
        **{
            **given,
            "epsilon_dp": _in(given["epsilon_dp"]),
            "noise": _in(given["noise"]),
            "measured": estimates(given["measured"]),
            "lead": estimates(given["lead"]),
        }
    )
