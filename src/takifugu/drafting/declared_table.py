"""A table and its declaration in one step, for programs and notebooks."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

import numpy as np

from takifugu._core.atomic import real_path, write_whole
from takifugu.declarations.columns import FROM_THE_FITTED_ROWS, OrderKind, Outside
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.declaration_files import (
    FROM_THE_DATA,
    declaration_of,
    declaration_text,
    read_declaration,
)
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.drafting.source_schema import SUFFIXES
from takifugu.errors import TakifuguError
from takifugu.priors import Name
from takifugu.tables.backends.frames import Frame, is_frame, own_copy
from takifugu.tables.backends.opened_files import source_files
from takifugu.tables.engine import Engine
from takifugu.tables.opening import BackendName, open_engine

if TYPE_CHECKING:
    from takifugu.drafting.draft import Draft

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")  # a name that a project can use as well


LabelList = Sequence[Name] | Literal["from the fitted rows"]


class LabelColumn(TypedDict, total=False):
    """A column of labels, with the keys that it has in a declaration: see docs/datasets.md."""

    values: Required[
        Sequence[Name] | Literal["from the data", "from the fitted rows"] | Mapping[str, str]
    ]
    outside: Outside
    other: Name


class NumberColumn(TypedDict, total=False):
    """A column of bounded numbers, with the keys that it has in a declaration."""

    bounds: Required[Sequence[float]]
    step: float
    missing: Required[float | Literal["drop", "refuse"]]


@dataclass(frozen=True, eq=False)
class Table:
    """A declared table, ready to be opened. Made by `table`.

    Attributes:
        declaration: Where the rows are, what in them is protected and what is public.
        name: What a ledger calls the table's account, unless a session is given another name.
    """

    declaration: Declaration
    name: str
    _frame: Frame | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.declaration.guarantee()

    def open(
        self,
        *,
        backend: BackendName | None = None,
        session: Any = None,
        threads: int | None = None,
        memory: str | None = None,
    ) -> Engine:
        """Open the table, to be used in a ``with`` statement. The options are `open_engine`'s."""
        return open_engine(
            self.declaration,
            backend=backend,
            session=session,
            threads=threads,
            memory=memory,
            frame=self._frame,
        )

    def to_toml(self, path: str | Path) -> None:
        """Write the declaration to a new file, which `table` and every command can read.

        The declaration of a table in memory says what is protected; its rows stay in the program.
        """
        path = Path(path)
        text = declaration_text(_moved(self.declaration, path.absolute().parent))
        write_whole(path, text, refuse_existing=True)


def table(
    source: str | Path | Frame,
    *,
    entity: str | None = None,
    order: str | None = None,
    protected: Mapping[str, LabelList | LabelColumn | NumberColumn] | None = None,
    public: Sequence[str] | Mapping[str, Sequence[Name] | LabelColumn] = (),
    name: str | None = None,
    order_kind: OrderKind = "time",
    zone: str | None = None,
    ties: Sequence[str] = (),
    format: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    title: str = "",
) -> Table:
    """Declare a table: whose rows they are, what in them is protected and what is public.

    If ``entity`` or ``protected`` is missing, the error says what the columns look like, and has a
    call that can be pasted: nothing is guessed without being asked.

    The declaration is a value: nothing is read until the table is opened. A ledger then pins what
    it says: with other labels, another order, zone or source, an account refuses to be charged
    until its owner has accepted the change.

    Args:
        source: A Parquet or CSV file or a glob of them, a pandas or Polars ``DataFrame``, a
            PyArrow ``Table``, or a declaration (``.toml``), which is given alone.
        entity: The column that says whose sequence a row belongs to.
        order: The column that puts the rows of an entity in order. Leave it out only if each entity
            has one row: a table with more is then refused when it is opened.
        protected: The columns whose cells are protected. A list is the public list of labels of a
            column; a value outside it is refused. For other rules, and for columns of numbers,
            give the keys of a declaration: ``{"values": […], "outside": "other"}``,
            ``{"bounds": [0, 20], "step": 0.5, "missing": "drop"}``.
        public: The columns that anyone may know. Their keys are read from the data, which is safe
            because these columns are declared public; give a mapping to list the keys instead.
            Labels and bounds of protected columns are never read from the data.
        name: What a ledger calls the account; by default the name of the file. A table in memory
            needs one: with the content of its rows, it is what the table is recognised by.
        order_kind: ``time`` for timestamps or dates, ``unix`` for seconds since 1970, ``number``
            for any other number.
        zone: The time zone of timestamps that carry none and of windows; by default UTC.
        ties: Columns that settle ties in the order; rows that still tie are refused.
        format: How times are written that are stored as text, as ``"%d/%m/%Y %H:%M"``.
        separator: Of a CSV file: what stands between fields. If this, ``encoding``, ``decimal`` or
            ``format`` is given, the file is read exactly so, with a comma, UTF-8 and a point where
            the others are left out; else DuckDB finds out.
        encoding: Of a CSV file: ``utf-8`` or ``latin-1``.
        decimal: Of a CSV file: the mark of decimals.
        title: One line for people.

    >>> visits = table("visits.parquet", entity="user", order="at",
    ...                protected={"place": ["home", "work"]}, public=["country"])
    >>> visits.name, visits.declaration.order.zone
    ('visits', 'UTC')
    """
    given = {"entity": entity, "order": order, "protected": protected}
    if isinstance(source, str | Path) and Path(source).suffix.lower() == ".toml":
        defaults = (public, name, order_kind, zone, ties, title) == ((), None, "time", None, (), "")
        written = (format, separator, encoding, decimal)
        if not defaults or any(value is not None for value in (*given.values(), *written)):
            raise InvalidDeclaration(
                "source", given="is a declaration", needed="be given alone: it says everything"
            )
        return Table(read_declaration(source), _checked_name(_stem(Path(source))))
    reading = {"separator": separator, "encoding": encoding, "decimal": decimal}
    reading = {key: value for key, value in reading.items() if value is not None}
    arguments = given | reading | {"format": format, "zone": zone, "ties": ties, "public": public}
    if missing := _missing(arguments, name=name if is_frame(source) else "given"):
        raise UnfinishedTable(missing, *_proposed(source, arguments, name))
    described, called, frame = _source(source, name)
    order_keys: dict[str, Any] = {"column": order, "kind": order_kind}
    order_keys["ties"] = list(_listed(ties, "order, ties")) if ties else "refuse"
    if order_kind != "number" or zone is not None:
        order_keys["zone"] = zone or "UTC"
    if format is not None:
        order_keys["format"] = format
    columns = dict.fromkeys(_listed(public, "public"), FROM_THE_DATA)
    shown = public if isinstance(public, Mapping) else columns
    document: dict[str, Any] = {
        "source": {**described, **reading},
        "entity": {"column": entity},
        **({} if order is None else {"order": order_keys}),
        "protected": {
            column: _keys(keys, f"protected, {column}") | _outside(keys)
            for column, keys in _mapping(protected, "protected").items()
        },
        "public": {column: _keys(keys, f"public, {column}") for column, keys in shown.items()},
    }
    if order is None and (ties or zone is not None or format is not None or order_kind != "time"):
        raise InvalidDeclaration(
            "order", given="is missing, and how it is to be read is said", needed="be given"
        )
    if title:
        document["title"] = title
    declaration = declaration_of(document, folder=Path.cwd())
    return Table(
        declaration, called, None if frame is None else own_copy(frame, declaration.columns)
    )


class UnfinishedTable(InvalidDeclaration):
    """A table was declared in part: what is missing, and a call to paste.

    Attributes:
        missing: The arguments that are missing; ``protected, place`` for the labels of a column.
        call: A call that says the same and what is guessed, with ``...`` for what only people know;
            empty if the columns of the source could not be read.
        draft: The draft that the call was made from; None likewise.
    """

    def __init__(
        self,
        missing: tuple[str, ...],
        call: str = "",
        draft: "Draft | None" = None,
        trouble: str = "",
    ) -> None:
        self.missing, self.call, self.draft = missing, call, draft
        needed = f"be given; what it may be cannot be seen from the columns: {trouble}"
        if draft is not None:
            guesses = [f"  {d.part} {d.column}: {d.reason}" for d in draft.decisions if d.guessed]
            points = [f"  {point.key}: {point.question}" for point in draft.open]
            left = ", ".join(column.name for column in draft.left_out)
            parts = [
                f"be given, for example as\n\n    {call}\n",
                *(["Guessed from names and types:", *guesses] if guesses else ()),
                *(["Only you know (written as ...):", *points] if points else ()),
                *([f"Left out, and not read: {left}"] if left else ()),
            ]
            needed = "\n".join(parts)
        given = "is missing" if len(missing) == 1 else "are missing"
        super().__init__("; ".join(missing), given=given, needed=needed, reason="missing")


def _missing(arguments: Mapping[str, Any], *, name: str | None) -> tuple[str, ...]:
    """The arguments that are missing, or were left as ``...``."""
    missing = [key for key in ("entity", "protected") if arguments[key] is None]
    missing += [key for key, value in arguments.items() if value is ...]
    if isinstance(arguments["protected"], Mapping):
        for column, keys in arguments["protected"].items():
            parts = keys.values() if isinstance(keys, Mapping) else [keys]
            missing += [f"protected, {column}"] if any(part is ... for part in parts) else []
    if name is None and missing:
        missing.append("name")
    return tuple(missing)


def _proposed(
    source: Any, arguments: Mapping[str, Any], name: str | None
) -> "tuple[str, Draft | None, str]":
    """A call that says what is missing too, if the columns of the source can be read."""
    from takifugu.drafting.draft import draft_of
    from takifugu.drafting.draft_text import draft_call

    protected = arguments["protected"]
    answers = {k: v for k, v in arguments.items() if v is not ... and v and k != "protected"}
    reading = {key: answers.pop(key) for key in ("separator", "encoding") if key in answers}
    columns = protected if isinstance(protected, Mapping) else {}
    answers["protected"] = tuple(columns) or None
    answers["values"] = {c: list(v) for c, v in columns.items() if isinstance(v, list | tuple)}
    for key in ("public", "ties"):
        if key in answers:
            answers[key] = tuple(answers[key])
    words = [answers.get(key, "") for key in ("entity", "order", "zone", "format")]
    words += [*columns, *answers.get("public", ()), *answers.get("ties", ())]
    if not all(isinstance(word, str) for word in words):
        return "", None, "a column is called by something else than text"
    try:
        draft = draft_of(source, **reading, **answers)
    except TakifuguError as error:  # what is missing is said all the same
        return "", None, str(error)
    memory = is_frame(source)
    shown = "frame" if memory else repr(os.fspath(source))
    return draft_call(draft, shown, name=(name or "NAME") if memory else name), draft, ""


def _checked_name(name: str | None) -> str:
    """The name of an account, if it can be one."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidDeclaration(
            "name",
            given="is missing" if name is None else f"is {name!r:.80}",
            needed="be given: letters a-z, digits, - and _",
        )
    return name


def _source(source: Any, name: str | None) -> tuple[dict[str, str], str, Frame | None]:
    """The source as a declaration says it, the name of the table, and the frame if it is one."""
    if is_frame(source):
        called = _checked_name(name)
        return {"kind": "memory", "table": called}, called, source
    if not isinstance(source, str | Path):
        raise InvalidDeclaration(
            "source",
            given=f"is a {type(source).__module__.split('.')[0]} {type(source).__name__}",
            needed="be a path, a pandas or Polars DataFrame, a PyArrow Table, or a declaration",
        )
    path = os.fspath(source)
    kind = next((k for end, k in SUFFIXES.items() if path.lower().endswith(end)), None)
    if kind is None or kind == "duckdb":
        raise InvalidDeclaration(
            "source",
            given=f"is {path!r:.120}",
            needed="end in .parquet, .csv, .csv.gz, .tsv or .txt; declare any other table in a"
            " .toml file",
        )
    return {"kind": kind, "path": path}, _checked_name(name or _stem(Path(path))), None


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidDeclaration(
            place, given="is not a mapping", needed="say for each column what its values can be"
        )
    return value


def _listed(value: Any, place: str) -> Iterable[Any]:
    if isinstance(value, str | set | frozenset) or not isinstance(value, Iterable):
        raise InvalidDeclaration(place, given="is not a list", needed="be a list of names")
    return value


def _keys(value: Any, place: str) -> dict[str, Any]:
    """What is said about a column, in the keys of a declaration."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, str) and value in (FROM_THE_DATA, FROM_THE_FITTED_ROWS):
        return {"values": value}
    return {"values": _plain(list(_listed(value, place)))}


def _outside(value: Any) -> dict[str, str]:
    """What becomes of other values: refused, unless the labels are still to be found."""
    if isinstance(value, Mapping) or value == FROM_THE_FITTED_ROWS:
        return {}
    return {"outside": "refuse"}


def _plain(value: Any) -> Any:
    """A value as TOML has it; a float by its digits, so that 0.1 is a tenth."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return value
    return [_plain(part) for part in value]


def _moved(declaration: Declaration, folder: Path) -> Declaration:
    """The same declaration in another folder; an error if it would then name other files."""
    source = declaration.source
    if source.path is None or folder == declaration.folder.absolute():
        return declaration
    whole = Path(os.path.normpath(declaration.folder.absolute() / source.path))
    path = whole.relative_to(folder) if whole.is_relative_to(folder) else whole
    moved = replace(declaration, source=replace(source, path=path.as_posix()), folder=folder)
    before, after = (list(map(real_path, source_files(d))) for d in (declaration, moved))
    if before != after:
        raise InvalidDeclaration(
            "source, path",
            given="would name other files from there",
            needed="be declared in a folder above the files, or one with a plainer name",
        )
    return moved
