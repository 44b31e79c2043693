"""The values of the reproduction: prepared data, what was measured, and what the paper prints.

Printed are Tables 1 and 2 and the two numbers for Majority; they are kept as the text that is
printed, so that 20.83 stays 20.83 beside 36.3.

Cells that are done are kept in a file, so that an interrupted run goes on where it stopped. One
line of JSON each: the identity of what was measured, and the cell. A line is written at once and
flushed to the disk. One that was cut off by a crash is not JSON; it is skipped, and its cell
measured again. Lines of other data, settings or versions are left alone.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal, Self

from takifugu._core.atomic import refuse_special
from takifugu._core.numeric import Integers
from takifugu.errors import InvalidFile
from takifugu.priors.markov import MarkovChain

Family = Literal["foursquare", "capture24"]


@dataclass(frozen=True)
class PrintedColumn:
    """A column of the paper's tables: one metric of one mechanism, at every ε.

    Attributes:
        mechanism: Its name, as in `takifugu.papers.composition.experiments.experiment`.
        uncertain: Whether the prior is only known to 20 %.
        metric: What is measured, as in `takifugu.papers.composition.experiments.metrics`.
    """

    mechanism: str
    uncertain: bool
    metric: str

    def to_document(self) -> list[str | bool]:
        """As JSON."""
        return [self.mechanism, self.uncertain, self.metric]

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """What `to_document` wrote; anything else is a `ValueError`."""
        mechanism, uncertain, metric = document
        kinds = (type(mechanism), type(uncertain), type(metric))
        if kinds != (str, bool, str):
            raise ValueError(f"a column is a name, true or false, and a metric, not {kinds}")
        return cls(mechanism, uncertain, metric)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data ready for an experiment: a prior fitted on one part of it, counts of the other part.

    Attributes:
        key: A short name for files, as ``nyc``.
        title: What it is, for people.
        family: The experiment of the paper that it is for, or stands in for.
        origin: The paper's own data, other real data, or simulated data.
        chain: The prior, as long as the longest sequence that is released from.
        group_by: What the groups are, as ``country``.
        groups: Their names.
        counts: ``[group, label]``, of the part that is released from; labels are the states.
        train: ``[label]``, of the part that the prior was fitted on: the Majority baseline.
        facts: Public numbers: rows, entities, the longest sequence, of which part.
        notes: What differs from the paper's preparation, and why; a sentence each.
        fingerprint: The identity of the data.
        calibrated: The printed columns that a simulated world was calibrated to, so that agreement
            with them shows nothing; every other column is a prediction. Empty for real data.
    """

    key: str
    title: str
    family: Family
    origin: Literal["paper", "real", "simulated"]
    chain: MarkovChain
    group_by: str
    groups: tuple[str, ...]
    counts: Integers
    train: Integers
    facts: Mapping[str, int | str]
    notes: tuple[str, ...]
    fingerprint: str
    calibrated: tuple[PrintedColumn, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions; with 95 % confidence the true one is within ``half`` of it."""

    mean: float
    half: float


@dataclass(frozen=True)
class Difference:
    """By how much one mechanism is better than another, from repetitions of the same randomness.

    It holds what an interval of any confidence needs, so that many can be judged together
    (`estimates.interval`).

    Attributes:
        mean: The mean over repetitions; positive where the first is better.
        error: The standard error of the mean.
        step: By how much a single draw can move the mean; 0 if none can.
        repetitions: How many there are.
    """

    mean: float
    error: float
    step: float
    repetitions: int

    @property
    def exactly_zero(self) -> bool:
        """Whether there is nothing to estimate: two mechanisms of one law, or no way to differ."""
        return self.mean == self.error == self.step == 0


@dataclass(frozen=True)
class Cell:
    """One mechanism at one Pufferfish ε on one dataset.

    Attributes:
        data: The key of the dataset.
        mechanism: Its name, as in `takifugu.papers.composition.experiments.experiment`.
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε that it keeps to.
        epsilon_dp: The per-entry ε that it may spend; 0 if none is left.
        noise: The standard deviation of the noise on one count; infinite if nothing is left.
        measured: For each metric its estimate.
        lead: For each metric by how much takifugu is better, over the same groups; positive is
            better for every metric, also where less is better. Empty for takifugu itself.
        exp_lead: For each metric by how much Ours-Exp is better, in the same way. Only for the
            mechanisms that the paper compares with it; empty for the others.
    """

    data: str
    mechanism: str
    uncertain: bool
    epsilon: float
    epsilon_dp: float
    noise: float
    measured: Mapping[str, Estimate]
    lead: Mapping[str, Difference]
    exp_lead: Mapping[str, Difference]


UNCERTAINTY = 0.2
PERCENT = ("acc", "hit")


@dataclass(frozen=True)
class PrintedCell:
    """One printed number.

    Attributes:
        table: The label of its table in the paper's source.
        family: The experiment that it belongs to.
        mechanism: Its name here: what the paper calls MQM is "MQM, split budget".
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε.
        metric: What was measured, by its name here.
        text: As printed, without its percent sign.
    """

    table: str
    family: str
    mechanism: str
    uncertain: bool
    epsilon: float
    metric: str
    text: str

    @property
    def value(self) -> float:
        """The number on the scale of our measurements: shares are between 0 and 1."""
        return float(self.text) / (100 if self.metric.startswith(PERCENT) else 1)


@cache
def printed_numbers() -> tuple[PrintedCell, ...]:
    """Every number of Tables 1 and 2, in the order of the paper."""
    return tuple(
        PrintedCell(
            table["label"], table["family"], mechanism, uncertain, float(epsilon), metric, text
        )
        for table in _document()["tables"]
        for epsilon, row in table["rows"].items()
        for (mechanism, uncertain, metric), text in zip(
            ((name, flag, m) for name, flag in table["columns"] for m in table["metrics"]),
            row,
            strict=True,
        )
    )


def printed_number(
    family: str, mechanism: str, *, uncertain: bool, epsilon: float, metric: str
) -> PrintedCell | None:
    """What the paper prints there, if it prints anything."""
    wanted = (family, mechanism, uncertain, epsilon, metric)
    for number in printed_numbers():
        have = (number.family, number.mechanism, number.uncertain, number.epsilon, number.metric)
        if have == wanted:
            return number
    return None


def printed_majority(family: str) -> float:
    """The accuracy of Majority, averaged over the three positions, between 0 and 1."""
    return float(_document()["majority"][family]) / 100


@cache
def _document() -> Any:
    path = files("takifugu.papers.composition.experiments") / "printed.json"
    return json.loads(path.read_text(encoding="utf-8"))


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
