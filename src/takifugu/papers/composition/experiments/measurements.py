"""The values of the reproduction: prepared data, what was measured, what the paper prints, results.

Printed are Tables 1 and 2 and the two numbers for Majority; they are kept as the text that is
printed, so that 20.83 stays 20.83 beside 36.3.

Cells that are done are kept in a file, so that an interrupted run goes on where it stopped. One
line of JSON each: the identity of what was measured, and the cell. A line is written at once and
flushed to the disk. One that was cut off by a crash is not JSON; it is skipped, and its cell
measured again. Lines of other data, settings or versions are left alone.

The results of a run are one JSON file: a summary of each dataset, the cells, and the uncertain
cells that were run again. No raw data.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from takifugu._core.atomic import read_whole, refuse_special
from takifugu._core.numeric import Integers
from takifugu.documents.declared import Codec, from_document, to_document
from takifugu.documents.reading import DocumentPart, number
from takifugu.errors import InvalidFile, Malformed
from takifugu.papers.composition.tables_and_figures.figure_writing import write_whole
from takifugu.priors.markov import MarkovChain

Family = Literal["foursquare", "capture24"]
Origin = Literal["paper", "real", "simulated"]
Facts = Mapping[str, int | str]


class PrintedColumn(NamedTuple):
    """A column of the paper's tables: one metric of one mechanism, at every ε.

    Attributes:
        mechanism: Its name, as in `takifugu.papers.composition.experiments.experiment`.
        uncertain: Whether the prior is only known to 20 %.
        metric: What is measured, as in `takifugu.papers.composition.experiments.metrics`.
    """

    mechanism: str
    uncertain: bool
    metric: str


def _counts(value: Any, _: str) -> Integers:
    counts = np.array(value, dtype=np.int64)
    counts.setflags(write=False)
    return counts


Counts = Annotated[Integers, Codec(_counts, np.ndarray.tolist)]
Chain = Annotated[
    MarkovChain, Codec(lambda value, _: MarkovChain.from_document(value), MarkovChain.to_document)
]


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
    origin: Origin
    chain: Chain
    group_by: str
    groups: tuple[str, ...]
    counts: Counts
    train: Counts
    facts: Facts
    notes: tuple[str, ...]
    fingerprint: str
    calibrated: tuple[PrintedColumn, ...] = ()


class Estimate(NamedTuple):
    """A mean over repetitions; with 95 % confidence the true one is within ``half`` of it."""

    mean: float
    half: float


class Difference(NamedTuple):
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


INFINITE = "infinity"
Noise = Annotated[
    float,
    Codec(
        lambda value, path: inf if value == INFINITE else number(value, path),
        lambda value: value if isfinite(value) else INFINITE,
    ),
]


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
    noise: Noise
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
    return next(
        (
            one
            for one in printed_numbers()
            if (one.family, one.mechanism, one.uncertain, one.epsilon, one.metric) == wanted
        ),
        None,
    )


def printed_majority(family: str) -> float:
    """The accuracy of Majority, averaged over the three positions, between 0 and 1."""
    return float(_document()["majority"][family]) / 100


@cache
def _document() -> Any:
    path = files("takifugu.papers.composition.experiments") / "printed.json"
    return json.loads(path.read_text(encoding="utf-8"))


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
            cells[str(document["identity"])] = from_document(Cell, document)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # cut off, or not ours
    return cells


def _whole(file: Any) -> bool:
    """Whether the file ends with a whole line, or is empty."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


FORMAT = 3  # of results; 2: calibrated columns; 3: leads hold what joint intervals need


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
    origin: Origin
    group_by: str
    groups: int
    labels: int
    length: int
    facts: Facts
    notes: tuple[str, ...]
    fingerprint: str
    repetitions: int
    calibrated: tuple[PrintedColumn, ...] = ()

    def __post_init__(self) -> None:
        if self.calibrated and self.origin != "simulated":
            raise Malformed(
                "calibrated",
                given="is not empty",
                needed="be empty: only a simulated world is calibrated",
            )


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
    names = ("key", "title", "family", "origin", "group_by", "facts", "notes", "fingerprint")
    return DatasetSummary(
        **{name: getattr(prepared, name) for name in names},
        groups=len(prepared.groups),
        labels=int(prepared.counts.shape[1]),
        length=int(prepared.chain.length or 0),
        repetitions=repetitions,
        calibrated=prepared.calibrated,
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

    def line(part: Any) -> str:
        return "  " + json.dumps(part, ensure_ascii=False, allow_nan=False)

    lists = [
        f' "{name}": [\n' + ",\n".join(map(line, parts)) + "\n ]"
        for name, parts in to_document(results).items()
    ]
    write_whole(path, f'{{\n "format": {FORMAT},\n' + ",\n".join(lists) + "\n}\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote."""
    needed = "be a results.json of a run"
    content = read_whole(path, field="results", needed=needed)
    try:
        document = DocumentPart.of(json.loads(content))
        have = document.whole("format")
        results = from_document(Results, document.given) if have == FORMAT else None
    except (ValueError, RecursionError) as error:
        raise InvalidFile(
            "results", given=f"{str(path)!r} cannot be read", needed=f"{needed}, format {FORMAT}"
        ) from error
    if results is None:
        raise InvalidFile(
            "results",
            given=f"{str(path)!r} has format {have}, of another version of takifugu",
            needed=f"have format {FORMAT}; run `takifugu reproduce` again to make it",
        )
    return results


def shortened(results: Results, digits: int = 5) -> Results:
    """What the repository stores: enough digits for tables, and whether shifts are equal."""

    def short(value: float) -> float:
        return float(f"{value:.{digits}g}")

    def short_leads(leads: Mapping[str, Difference]) -> Mapping[str, Difference]:
        return {
            k: Difference(short(d.mean), short(d.error), short(d.step), d.repetitions)
            for k, d in leads.items()
        }

    cells = tuple(
        replace(
            cell,
            epsilon_dp=short(cell.epsilon_dp),
            noise=short(cell.noise),
            measured={k: Estimate(*map(short, e)) for k, e in cell.measured.items()},
            lead=short_leads(cell.lead),
            exp_lead=short_leads(cell.exp_lead),
        )
        for cell in results.cells
    )
    shifted = tuple(replace(one, at=short(one.at), plain={}) for one in results.shifted)
    return Results(results.about, cells, shifted)
