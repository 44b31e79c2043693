"""Cells that are done, kept in a file so that an interrupted run goes on where it stopped.

One line of JSON each: the identity of what was measured, and the cell. A line is written at once
and flushed to the disk. One that was cut off by a crash is not JSON; it is skipped, and its cell
measured again. Lines of other data, settings or versions are left alone.
"""

import json
import os
from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from takifugu._core.atomic import refuse_special
from takifugu.errors import InvalidFile
from takifugu.papers.composition.experiments.measurements import Cell, Difference, Estimate

INFINITE = "infinity"


class FinishedCells:
    """The finished cells of one file, by identity."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cells = _read(path)

    def get(self, identity: str) -> Cell | None:
        """The cell, if it was finished before."""
        return self._cells.get(identity)

    def add(self, identity: str, cell: Cell) -> None:
        """Write a cell, all of it, before anything else is begun."""
        line = json.dumps({"identity": identity, **to_document(cell)}, allow_nan=False)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+b") as file:
                file.write((line if _whole(file) else "\n" + line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise InvalidFile(
                str(self._path), given=f"cannot be written ({reason})", needed="be writable"
            ) from error
        self._cells[identity] = cell


def to_document(cell: Cell) -> dict[str, Any]:
    """A cell as JSON, to the last bit."""
    return {
        "data": cell.data,
        "mechanism": cell.mechanism,
        "uncertain": cell.uncertain,
        "epsilon": cell.epsilon,
        "epsilon_dp": cell.epsilon_dp,
        "noise": cell.noise if isfinite(cell.noise) else INFINITE,
        "measured": {name: [one.mean, one.half] for name, one in cell.measured.items()},
        "lead": _rows(cell.lead),
        "exp_lead": _rows(cell.exp_lead),
    }


def from_document(document: Mapping[str, Any]) -> Cell:
    """The cell that `to_document` wrote."""
    noise = document["noise"]
    return Cell(
        str(document["data"]),
        str(document["mechanism"]),
        bool(document["uncertain"]),
        float(document["epsilon"]),
        float(document["epsilon_dp"]),
        inf if noise == INFINITE else float(noise),
        _estimates(document["measured"]),
        _differences(document["lead"]),
        _differences(document["exp_lead"]),
    )


def _rows(differences: Mapping[str, Difference]) -> dict[str, list[float]]:
    return {
        name: [one.mean, one.error, one.step, one.repetitions] for name, one in differences.items()
    }


def _differences(rows: Mapping[str, Any]) -> dict[str, Difference]:
    return {
        name: Difference(float(mean), float(error), float(step), int(repetitions))
        for name, (mean, error, step, repetitions) in rows.items()
    }


def _estimates(pairs: Mapping[str, Any]) -> dict[str, Estimate]:
    return {name: Estimate(float(mean), float(half)) for name, (mean, half) in pairs.items()}


def _read(path: Path) -> dict[str, Cell]:
    try:
        refuse_special(path)
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise InvalidFile(
            str(path), given=f"cannot be read ({reason})", needed="be a readable file"
        ) from error
    cells = {}
    for line in lines:
        try:
            document = json.loads(line)
            cells[str(document["identity"])] = from_document(document)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue  # cut off, or not ours
    return cells


def _whole(file: Any) -> bool:
    """Whether the file ends with a whole line, or is empty."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")
