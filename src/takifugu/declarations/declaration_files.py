"""Declarations as TOML, read and written; docs/how-to/datasets.md documents the format."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

from takifugu._core.atomic import read_whole
from takifugu._core.toml import TomlSection, parse_json, parse_toml
from takifugu.declarations.columns import (
    FROM_THE_FITTED_ROWS,
    READING,
    SEPARATORS,
    Amount,
    Category,
    FittedLabels,
    Order,
    OrderKind,
    Source,
    SourceKind,
)
from takifugu.declarations.declaration import Declaration, refuse_open_points
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.errors import InvalidFile, Malformed
from takifugu.priors import Name
from takifugu.visible import visible

CODEBOOK_SUFFIXES = (".csv", ".tsv", ".json", ".toml", ".txt")
CODEBOOK_KEYS = ("codebook", "column", "raw")


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

    A codebook is a list of labels, and of what raw values mean, in a file beside the declaration.
    It is read with the declaration and is then a part of it: the list is in the declaration's
    fingerprint, and a codebook that was edited is a declaration that was edited. Labels of a table
    (CSV) are text. Where all raw values look like whole numbers they also stand
    for those numbers, as the keys of a JSON object do.
    """
    given.only(CODEBOOK_KEYS)
    name, column, raw = given.text("codebook"), given.optional("column"), given.optional("raw")
    place = f"{given.place}, codebook"
    kind = Path(name).suffix.lower()
    if kind not in CODEBOOK_SUFFIXES:
        raise InvalidDeclaration(
            place,
            given=f"is {visible(name)!r:.120}",
            needed=f"end in {', '.join(CODEBOOK_SUFFIXES)}",
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
    readings = [_codebook_rows(text, separator) for separator in SEPARATORS]
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


def _codebook_rows(text: str, separator: str) -> list[list[str]]:
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
    values = _checked_labels(labels, given)
    numbers = all(isinstance(label, str) and _whole(label) for label in values)
    return Codebook(values, tuple((label, label) for label in values) if numbers else ())


def _mapped(pairs: Sequence[tuple[str, Any]], given: TomlSection) -> Codebook:
    values = _checked_labels([label for _, label in pairs], given)
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


def _checked_labels(labels: Iterable[Any], given: TomlSection) -> tuple[Name, ...]:
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


FROM_THE_DATA = "from the data"
SECTIONS = {
    "source": ("kind", "path", "table", "url", *READING),
    "entity": ("column",),
    "order": ("column", "kind", "zone", "ties", "format"),
}
REQUIRED = {"source": ("kind",), "entity": ("column",), "order": ("column", "kind", "ties")}
KEYS = ("title", "source", "entity", "order", "protected", "public")


def read_declaration(path: str | Path) -> Declaration:
    """Read a declaration; its relative paths start from the folder that it is in."""
    path = Path(path)
    content = read_whole(path, needed="be a declaration in TOML")
    try:
        return parse_declaration(content, folder=path.parent)
    except Malformed as error:
        raise InvalidFile(
            f"{path}: {error.field}", given=error.given, needed=error.needed, reason=error.reason
        ) from None


def parse_declaration(content: str, *, folder: str | Path = "") -> Declaration:
    """The declaration that ``content`` holds, in TOML."""
    document = parse_toml(content, parse_float=Decimal)
    refuse_open_points(document, content)
    return declaration_of(document, folder=folder)


def declaration_of(document: Mapping[str, Any], *, folder: str | Path = "") -> Declaration:
    """The declaration that a parsed document holds; its numbers are whole or `Decimal`."""
    folder = Path(folder)
    top = TomlSection(document, error=InvalidDeclaration)
    top.only(KEYS)
    for part, known in SECTIONS.items():
        if isinstance(document.get(part), dict):
            top.section(part, known)
    _refuse_missing(top)
    source = top.section("source", SECTIONS["source"])
    order = top.section("order", SECTIONS["order"]) if "order" in document else None
    protected = top.section("protected", None)
    public = top.section("public", None) if "public" in document else TomlSection({})
    return Declaration(
        source=Source(
            cast("SourceKind", source.text("kind")),
            source.optional("path"),
            source.optional("table"),
            source.optional("url"),
            **{key: _mark(source, key) for key in READING},
        ),
        entity=top.section("entity", ("column",)).text("column"),
        order=Order.none() if order is None else _order(order),
        protected=tuple(_protected(protected, name, folder) for name in protected.content),
        public=tuple(_public(public, name, folder) for name in public.content),
        title=top.optional("title") or "",
        folder=folder,
    )


def _order(order: TomlSection) -> Order:
    ties = order.get("ties")
    names = [] if ties == "refuse" else [_name(c, order.at("ties")) for c in order.items("ties")]
    return Order(
        order.text("column"),
        cast("OrderKind", order.text("kind")),
        order.optional("zone"),
        tuple(map(str, names)),
        order.optional("format"),
    )


def _refuse_missing(top: TomlSection) -> None:
    """Raise if keys are missing that every declaration needs, with all of them."""
    missing = [key for key in ("source", "entity", "protected") if key not in top.content]
    for part, keys in REQUIRED.items():
        given = top.content.get(part)
        if isinstance(given, dict):
            missing += [f"{part}, {key}" for key in keys if key not in given]
    protected = top.content.get("protected")
    for name, given in protected.items() if isinstance(protected, dict) else ():
        if isinstance(given, dict):
            fitted = given.get("values") == FROM_THE_FITTED_ROWS
            labels = ("values",) if fitted else ("values", "outside")
            keys = ("missing",) if "bounds" in given else labels
            missing += [f"protected, {name}, {key}" for key in keys if key not in given]
    if missing:
        raise InvalidDeclaration(
            "; ".join(missing) if len(missing) > 1 else missing[0],
            given="is missing" if len(missing) == 1 else "are missing",
            needed="be given; `takifugu dataset new FILE` drafts a declaration",
            reason="missing",
        )


def _mark(source: TomlSection, key: str) -> str | None:
    """How a file is written: a text that may be a tab."""
    value = source.content.get(key)
    if value is not None and not isinstance(value, str):
        raise source.wrong(key, given="is not text", needed="be text in quotes", reason="kind")
    return value


def _protected(tables: TomlSection, name: str, folder: Path) -> Category | Amount:
    given = tables.section(
        name, ("values", "outside", "other", "labels", "bounds", "step", "missing")
    )
    if "bounds" not in given.content:
        given.only(("values", "outside", "other", "labels"))
        if given.get("values") == FROM_THE_FITTED_ROWS:
            return _fitted(given, name)
        return _category(given, name, folder, outside=given.text("outside"))
    given.only(("bounds", "step", "missing"))
    bounds = given.items("bounds")
    if len(bounds) != 2:
        raise InvalidDeclaration(given.at("bounds"), given="is not a pair", needed="be [low, high]")
    low, high = (_number(bound, given.at("bounds")) for bound in bounds)
    missing = given.get("missing")
    rule: Fraction | Literal["drop", "refuse"]
    if missing in ("drop", "refuse"):
        rule = missing
    else:
        rule = _number(missing, given.at("missing"), or_else=", 'drop' or 'refuse'")
    return Amount(name, low, high, _number(given.content.get("step", 1), given.at("step")), rule)


def _public(tables: TomlSection, name: str, folder: Path) -> Category:
    given = tables.section(name, ("values", "outside", "other", "labels"))
    outside: Any = given.text("outside") if "outside" in given.content else "refuse"
    if given.get("values") == FROM_THE_DATA:
        return Category(name, None, outside)
    return _category(given, name, folder, outside=outside)


def _fitted(given: TomlSection, name: str) -> FittedLabels:
    """A column whose labels are found when a prior is fitted; the rest is ``other``."""
    if "labels" in given.content:
        raise InvalidDeclaration(
            given.at("labels"),
            given=f"is given, and the values are {FROM_THE_FITTED_ROWS}",
            needed="be left out; or write values = { codebook = 'FILE.csv', column = 'label',"
            " raw = 'raw' }, a list of raw values and their labels",
        )
    outside: Any = given.optional("outside") or "other"
    other = _name(given.content.get("other", "other"), given.at("other"))
    return FittedLabels(name, None, outside, other)


def _category(given: TomlSection, name: str, folder: Path, *, outside: Any) -> Category:
    listed: list[Any] | tuple[Name, ...]
    mapped: tuple[tuple[Name, Name], ...] = ()
    if isinstance(given.get("values"), dict):
        codebook = read_codebook(given.section("values", None), folder)
        listed, mapped = codebook.values, codebook.labels
        if "labels" in given.content:
            raise InvalidDeclaration(
                given.at("labels"),
                given="is given beside a codebook",
                needed="be left out: let `raw` name the codebook's column of raw values",
            )
    else:
        listed = given.items("values")
    values = tuple(_name(value, given.at("values")) for value in listed)
    other = _name(given.content.get("other", "other"), given.at("other"))
    if "other" in given.content and outside != "other":
        raise InvalidDeclaration(
            given.at("other"), given="is given", needed="be left out unless outside = 'other'"
        )
    labels = given.optional("labels")
    mapped = mapped if labels is None else _labels(folder / labels, labels)
    return Category(name, values, outside, other, mapped)


def _labels(path: Path, shown: str) -> tuple[tuple[Name, Name], ...]:
    needed = "hold one JSON object of raw value: label"
    try:
        labels = parse_json(read_whole(path), field=shown)
    except InvalidFile as error:
        raise InvalidDeclaration(shown, given=error.given, needed=needed) from None
    if not isinstance(labels, dict) or not all(
        isinstance(label, str | int) for label in labels.values()
    ):
        raise InvalidDeclaration(shown, given="holds something else", needed=needed)
    return tuple((raw, _name(label, shown)) for raw, label in labels.items())


def _name(value: Any, place: str) -> Name:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidDeclaration(
            place, given=f"holds a {type(value).__name__}", needed="hold text or whole numbers"
        )
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InvalidDeclaration(place, given="holds a huge number", needed="fit in 64 bits")
    if isinstance(value, str) and "\0" in value:
        raise InvalidDeclaration(place, given="holds a zero byte", needed="hold text without any")
    return value


def _number(value: Any, place: str, *, or_else: str = "") -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InvalidDeclaration(
            place, given=f"holds a {type(value).__name__}", needed=f"be a number{or_else}"
        )
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > 40):
        raise InvalidDeclaration(place, given=f"is {value}", needed="be a finite, sensible number")
    return Fraction(value)


def declaration_text(declaration: Declaration) -> str:
    """A declaration as TOML; reading it gives the same declaration."""
    source, order = declaration.source, declaration.order
    sections: dict[str, dict[str, Any]] = {
        "source": {
            "kind": source.kind, "path": source.path, "table": source.table, "url": source.url,
            **source.reading,
        },
        "entity": {"column": declaration.entity},
        "order": {
            "column": order.column, "kind": order.kind, "zone": order.zone,
            "ties": list(order.ties) or "refuse", "format": order.format,
        },
    }  # fmt: skip
    if order.absent:
        del sections["order"]
    for part, columns in (("protected", declaration.protected), ("public", declaration.public)):
        for column in columns:
            described = _amount_keys(column) if isinstance(column, Amount) else _label_keys(column)
            sections[f"{part}.{toml_value(column.column)}"] = described
    title = f"title = {toml_value(declaration.title)}\n\n" if declaration.title else ""
    return title + "\n".join(_section(header, keys) for header, keys in sections.items())


def _label_keys(column: Category) -> dict[str, Any]:
    if column.labels:
        raise InvalidDeclaration(
            f"{column.column}, labels",
            given="come from a file",
            needed="be left out; or copy the declaration together with that file",
        )
    values = FROM_THE_DATA if column.values is None else list(column.values)
    if isinstance(column, FittedLabels):
        values = FROM_THE_FITTED_ROWS
    keys: dict[str, Any] = {"values": values, "outside": column.outside}
    return keys | {"other": column.other} if column.outside == "other" else keys


def _amount_keys(column: Amount) -> dict[str, Any]:
    return {"bounds": [column.low, column.high], "step": column.step, "missing": column.missing}


def _section(header: str, keys: Mapping[str, Any]) -> str:
    lines = [f"{key} = {toml_value(value)}\n" for key, value in keys.items() if value is not None]
    return "".join((f"[{header}]\n", *lines))


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml_value(k)} = {toml_value(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    number = Fraction(value)
    if number.denominator == 1:
        return str(number.numerator)
    with localcontext(prec=200):
        digits = Decimal(number.numerator) / Decimal(number.denominator)
    if Fraction(digits) != number:
        raise InvalidDeclaration("step", given=f"is {number}", needed="be a decimal number")
    return f"{digits:f}"
