"""Codebooks: lists of labels, and what raw values mean, in a file beside the declaration.

A codebook is read with the declaration and is then a part of it: the list that it holds is in the
declaration's fingerprint, and one that was edited is a declaration that was edited. The formats are
documented in docs/how-to/datasets.md.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu._core.atomic import read_whole
from takifugu._core.toml import TomlSection, parse_json, parse_toml
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.errors import InvalidFile
from takifugu.priors import Name
from takifugu.visible import visible

SEPARATORS = (",", ";", "\t", "|")
KINDS = (".csv", ".tsv", ".json", ".toml", ".txt")
KEYS = ("codebook", "column", "raw")


@dataclass(frozen=True)
class Codebook:
    """What a codebook says of a column.

    Attributes:
        values: The labels, each once, in the order of the file.
        labels: Pairs of raw value and label, where the file has raw values.
    """

    values: tuple[Name, ...]
    labels: tuple[tuple[Name, Name], ...] = ()


def read_codebook(given: TomlSection, folder: Path) -> Codebook:
    """The codebook that the keys ``codebook``, ``column`` and ``raw`` name.

    Labels of a table (CSV) are text. Where all raw values look like whole numbers they also stand
    for those numbers, as the keys of a JSON object do.
    """
    given.only(KEYS)
    name, column, raw = given.text("codebook"), given.optional("column"), given.optional("raw")
    place = f"{given.place}, codebook"
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        raise InvalidDeclaration(
            place, given=f"is {visible(name)!r:.120}", needed=f"end in {', '.join(KINDS)}"
        )
    try:
        text = read_whole(folder / name)
        if kind in (".json", ".toml"):
            document = parse_json(text) if kind == ".json" else parse_toml(text)
            return _of_document(document, column, raw, given)
    except InvalidFile as error:
        raise InvalidDeclaration(
            place,
            given=f"{visible(name)} {error.given}",
            needed="be a file of labels, from the folder of the declaration",
            reason=error.reason,
        ) from None
    if kind == ".txt":
        _refuse_keys(given, ("column", "raw"), "a text file has one label on each line")
        return _codebook([line for line in text.removeprefix("\ufeff").split("\n") if line], given)
    return _of_table(text, column, raw, given)


def _of_table(text: str, column: str | None, raw: str | None, given: TomlSection) -> Codebook:
    """The columns of a CSV file, whose first line names them."""
    text = text.removeprefix("\ufeff")
    if column is None:
        raise InvalidDeclaration(
            given.at("column"), given="is missing", needed="name the column that has the labels"
        )
    wanted = [column] if raw is None else [column, raw]
    readings = [_rows(text, separator) for separator in SEPARATORS]
    found = [rows for rows in readings if rows and all(rows[0].count(name) == 1 for name in wanted)]
    if not found:
        names = max((rows[0] for rows in readings if rows), key=len, default=[])
        raise InvalidDeclaration(
            given.at("column"),
            given=f"asks for {', '.join(repr(visible(name)) for name in wanted)}, and the first"
            f" line has {', '.join(repr(visible(name)) for name in names[:20])}",
            needed="be a name in the first line, once, separated by one of , ; | or a tab",
            reason="column",
        )
    # a first line of one name has no separator, and then its rows have none
    rows = next((rows for rows in found if not _odd_rows(rows)), found[0])
    odd, pairs = _odd_rows(rows), _cells(rows, wanted)
    empty = [line for line, pair in enumerate(pairs, start=2) if pair and not all(pair)]
    if odd or empty:
        what = "has another number of fields" if odd else "lacks a label or a raw value"
        raise InvalidDeclaration(
            given.at("codebook"),
            given=f"{what} in {len(odd or empty)} rows, first in row {(odd or empty)[0]}",
            needed="have the same fields in every row; complete those rows, or remove them",
            reason="rows",
        )
    if raw is None:
        return _codebook([pair[0] for pair in pairs if pair], given)
    return _mapped([(pair[1], pair[0]) for pair in pairs if pair], given)


def _odd_rows(rows: list[list[str]]) -> list[int]:
    """The rows, from 1, that do not have as many fields as the first; empty ones are skipped."""
    return [line for line, row in enumerate(rows, 1) if row and len(row) != len(rows[0])]


def _cells(rows: list[list[str]], wanted: Sequence[str]) -> list[tuple[str, ...]]:
    """The wanted fields of each row after the first; none of a row that has too few."""
    places = [rows[0].index(name) for name in wanted]
    return [
        tuple(row[place] for place in places) if len(row) > max(places) else () for row in rows[1:]
    ]


def _rows(text: str, separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, strict=True))
    except csv.Error:
        return []


def _of_document(
    document: Any, column: str | None, raw: str | None, given: TomlSection
) -> Codebook:
    """A list of labels, or an object of raw value: label; of a key, if ``column`` names one."""
    if raw is not None:
        _refuse_keys(given, ("raw",), "an object has raw values as its keys")
    if column is not None:
        if not isinstance(document, Mapping) or column not in document:
            raise InvalidDeclaration(
                given.at("column"),
                given=f"is {visible(column)!r:.80}",
                needed="be a key of the codebook",
                reason="column",
            )
        document = document[column]
    if isinstance(document, list):
        return _codebook(document, given)
    if isinstance(document, Mapping):
        return _mapped(list(document.items()), given)
    raise InvalidDeclaration(
        given.at("codebook"),
        given="holds something else",
        needed="hold a list of labels, or an object of raw value: label",
    )


def _codebook(labels: Sequence[Any], given: TomlSection) -> Codebook:
    """Labels alone; those that are whole numbers as text stand for the numbers too."""
    values = _labels(labels, given)
    numbers = all(isinstance(label, str) and _whole(label) for label in values)
    return Codebook(values, tuple((label, label) for label in values) if numbers else ())


def _mapped(pairs: Sequence[tuple[str, Any]], given: TomlSection) -> Codebook:
    values = _labels([label for _, label in pairs], given)
    known = dict[str, Any]()
    for before, label in pairs:
        if known.setdefault(before, label) != label:
            raise InvalidDeclaration(
                given.at("raw"),
                given=f"has {visible(before)!r:.80} with two labels",
                needed="have one label for each raw value",
                reason="two-labels",
            )
    return Codebook(values, tuple(known.items()))


def _labels(labels: Iterable[Any], given: TomlSection) -> tuple[Name, ...]:
    entries = list(labels)
    if any(isinstance(label, bool) or not isinstance(label, str | int) for label in entries):
        raise InvalidDeclaration(
            given.at("codebook"), given="holds other things", needed="hold text or whole numbers"
        )
    return tuple(dict.fromkeys(entries))


def _whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def _refuse_keys(given: TomlSection, keys: Sequence[str], why: str) -> None:
    for key in keys:
        if key in given.content:
            raise InvalidDeclaration(
                given.at(key), given="is given", needed=f"be left out: {why}", reason="superfluous"
            )
