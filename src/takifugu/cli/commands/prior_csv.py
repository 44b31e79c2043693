"""Fit a chain to a CSV file that belongs to no project."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu._core.atomic import refuse_special
from takifugu.cli.commands.prior_output import print_written, recorded
from takifugu.cli.shared_options import InvalidOption
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.priors import SequencePrior


def fit_csv(
    data: Path,
    out: Path,
    columns: tuple[str, str, str | None],
    settings: tuple[str | None, float | None, int | None, float | None],
    as_json: bool,
) -> None:
    """Fit a chain to the sequences of a file and write it."""
    from takifugu.priors import FittedRows, Transitions, write_prior

    other, tau, length, confidence = settings
    _, entity, order = columns
    rows = FittedRows(f"csv {data.name}", entity, order or "")  # all of them
    counts = Transitions.of(_sequences(data, *columns)).also_fitted_on(rows)
    if confidence is not None:
        if other is not None or tau is not None:
            raise InvalidOption(
                "--confidence", given="comes with --other or --tau", needed="be given alone"
            )
        fitted: SequencePrior = counts.intervals(confidence=confidence, length=length)
    else:
        unseen = "uniform" if other is not None or tau is not None else "refuse"
        fitted = counts.chain(unseen=unseen, other=other, tau=tau or None, length=length)  # type: ignore[arg-type]
    with recorded(out):
        write_prior(fitted, out)
    steps = int(counts.counts.sum())
    print_written(fitted, out, as_json, f": {len(fitted.states)} states from {steps:,} steps")


def _sequences(data: Path, state: str, entity: str, order: str | None) -> list[list[str]]:
    """The state column cut into one sequence for each entity, in order."""
    found: dict[str, list[tuple[float, int, str]]] = {}
    for number, row in enumerate(_rows(data, [c for c in (state, entity, order) if c is not None])):
        try:
            place = float(row[order]) if order is not None else 0.0
        except ValueError:
            raise InvalidFile(
                str(data), given=f"row {number + 1} has no number in {order!r}", needed="have one"
            ) from None
        found.setdefault(row[entity], []).append((place, number, row[state]))
    return [[value for _, _, value in sorted(rows)] for rows in found.values()]


def _rows(data: Path, columns: list[str]) -> Iterator[dict[str, str]]:
    try:
        refuse_special(data)
        zipped = data.suffix == ".gz"
        with (
            gzip.open(data, "rt", encoding="utf-8", newline="")
            if zipped
            else data.open(encoding="utf-8", newline="") as lines
        ):
            reader = csv.DictReader(lines)
            missing = [c for c in columns if c not in (reader.fieldnames or ())]
            if missing:
                raise InvalidFile(
                    str(data),
                    given=f"has no column {missing[0]!r}",
                    needed=f"have the columns {', '.join(columns)}",
                )
            for row in reader:
                if any(row[c] is None for c in columns):
                    raise InvalidFile(
                        str(data), given="has a row that is too short", needed="be complete"
                    )
                yield row
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(
            str(data), given="cannot be read", needed="be a CSV file in UTF-8, plain or gzipped"
        ) from error
