"""A draft of a declaration, from the columns of a table and what somebody has answered.

    draft = draft_of("visits.parquet")
    draft.open                                  # what only a person can know
    draft = draft.answered(values={"place": ["home", "work"]})
    draft.to_toml(Path("visits.toml"))

No protected value is in it: parts are guessed from names and types, each with its reason, and the
columns of the entity and of the order, which are public by every declaration, are read once they
are known. What nobody can know from that is an open point, written as ``"?"``; a declaration with
open points is refused. Columns that nobody chose are left out: they are not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from takifugu.declarations.columns import FROM_THE_FITTED_ROWS, Outside, refuse_format
from takifugu.declarations.declaration import OPEN, Declaration, OpenPoint
from takifugu.declarations.declaration_files import FROM_THE_DATA, declaration_of
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.drafting.draft_guesses import (
    UNIX,
    Guess,
    guess_entity,
    guess_order,
    guess_protected,
    likely_entities,
    words_of,
)
from takifugu.drafting.source_schema import (
    DATA,
    Schema,
    SchemaColumn,
    is_iso,
    possible_formats,
    schema_of,
)
from takifugu.errors import pasted
from takifugu.tables.backends.backend import quoted
from takifugu.tables.backends.frames import Frame
from takifugu.visible import visible

NO_ORDER_ANSWER = ""  # the answer for a table with one row for each entity
FILLED = {  # what stands for an open point while the others are checked
    "column": "(to be named)", "decimal": None, "format": None, "ties": "refuse", "values": ["x"],
    "bounds": [0, 1],
}  # fmt: skip
MAX_NAMED_COLUMNS = 5  # in a question
FIRST_SECOND, LAST_SECOND = 10**8, 10**11  # since 1970: after 1973, before the year 5138
OUTSIDE_WORDS = {
    "refuse": "a value that is not listed, or is missing, is refused",
    "other": "a value that is not listed, or is missing, counts as 'other'",
    "drop": "rows with a value that is not listed, or is missing, are left out, and which these are"
    " is not protected unless the prior has a state for them",
}
EVERY = ""  # of rules by column: for all protected columns of labels that have none of their own


@dataclass(frozen=True)
class Answers:
    """What somebody has said about a table; None where it is left to a guess.

    Attributes:
        entity: The column that says whose row it is.
        order: The column that puts the rows of an entity in order; `NO_ORDER_ANSWER` if each has
            one row.
        order_kind: ``time``, ``unix`` or ``number``.
        format: How times are written that are stored as text.
        zone: The zone of times that carry none.
        ties: Columns that settle ties.
        protected: The columns to protect.
        public: The columns that anyone may know.
        values: By column the labels: a list, or what a declaration may say in place of one.
        bounds: By column of numbers the lower and the upper bound.
        outside: By column what becomes of values that are not in its list; by "" that of all
            protected columns of labels that have no rule of their own.
        unlisted: The rule of lists that somebody has given without one.
        decimal: The mark of decimals of a CSV file.
        title: One line for people.
    """

    entity: str | None = None
    order: str | None = None
    order_kind: str | None = None
    format: str | None = None
    zone: str | None = None
    ties: tuple[str, ...] | None = None
    protected: tuple[str, ...] | None = None
    public: tuple[str, ...] = ()
    values: Mapping[str, Any] | None = None
    bounds: Mapping[str, Sequence[Any]] | None = None
    outside: Mapping[str, str] | None = None
    unlisted: str = "other"
    decimal: str | None = None
    title: str = ""


@dataclass(frozen=True)
class Decision:
    """What a draft says of a part, and why.

    Attributes:
        part: ``entity``, ``order``, ``protected``, ``public`` or ``source``.
        column: The column; empty for the source.
        reason: Why, in words.
        guessed: Whether nobody has said so.
        change: How to decide otherwise, on a command line; empty for a fact.
        explained: Whether the reason is more than that somebody has said so.
    """

    part: str
    column: str
    reason: str
    guessed: bool = True
    change: str = ""
    explained: bool = True

    @classmethod
    def given(cls, part: str, column: str) -> "Decision":
        """What somebody has said, for which there is no other reason."""
        return cls(part, column, "as given", guessed=False, explained=False)


@dataclass(frozen=True, eq=False)
class Draft:
    """A declaration that is not finished yet.

    Attributes:
        schema: The columns of the table.
        answers: What somebody has said.
        document: The declaration as TOML has it, with ``"?"`` for every open point.
        open: The open points.
        decisions: What was decided, and why.
        left_out: The columns that the declaration does not name.
        rows: How many rows there are.
    """

    schema: Schema
    answers: Answers
    document: Mapping[str, Any]
    open: tuple[OpenPoint, ...]
    decisions: tuple[Decision, ...]
    left_out: tuple[SchemaColumn, ...]
    rows: int

    def answered(self, **answers: Any) -> "Draft":
        """The draft with these answers too: the fields of `Answers`."""
        merged = dict(answers)
        for key in ("values", "bounds", "outside"):
            if key in merged:
                merged[key] = dict(getattr(self.answers, key) or {}) | dict(merged[key])
        return drafted(self.schema, replace(self.answers, **merged))

    def declaration(self, folder: str | Path = "") -> Declaration:
        """The declaration, once no point is open."""
        if self.open:
            raise InvalidDeclaration(
                ", ".join(point.key for point in self.open),
                given="is open",
                needed="; ".join(point.needed for point in self.open),
                reason="open",
            )
        return declaration_of(self.document, folder=folder)

    def refuse_wrong(self, folder: str | Path = "") -> None:
        """Raise if what is not open could be no declaration, whatever the open points become."""
        filled = {part: dict(keys) if isinstance(keys, dict) else keys
                  for part, keys in self.document.items()}  # fmt: skip
        for point in self.open:
            part, _, rest = point.key.partition(".")
            column, _, key = rest.rpartition(".")
            if point.key == "protected":
                return
            if point.key == "order.column":
                del filled["order"]
            elif column:
                filled[part][column] = filled[part][column] | {key: FILLED[key]}
            elif FILLED[key] is None:
                del filled[part][key]
            else:
                filled[part][key] = FILLED[key]
        declaration_of(filled, folder=folder)

    def describe(self) -> dict[str, Any]:
        """The draft as JSON."""
        return {
            "declaration": _plain(self.document),
            "rows": self.rows,
            "open": [point.describe() for point in self.open],
            "decisions": [
                {"part": d.part, "column": d.column, "reason": d.reason, "guessed": d.guessed}
                for d in self.decisions
            ],
            "left_out": [column.name for column in self.left_out],
        }


def draft_of(
    source: str | Path | Frame,
    *,
    table: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    folder: Path | None = None,
    **answers: Any,
) -> Draft:
    """A draft of the declaration of a table.

    Args:
        source: A Parquet or CSV file or a glob of them, a DuckDB file, or a frame.
        table: Of a DuckDB file: the table.
        separator: Of a CSV file, if it is not to be found out.
        encoding: Of a CSV file, likewise.
        folder: What a relative path starts from; by default the working folder.
        answers: What is known, as the fields of `Answers`.
    """
    schema = schema_of(source, table=table, separator=separator, encoding=encoding, folder=folder)
    return drafted(schema, Answers(**answers))


def drafted(schema: Schema, answers: Answers) -> Draft:
    """The draft of a table whose columns are known."""
    named_columns = [answers.entity, answers.order or None, *answers.public, *(answers.ties or ())]
    named_columns += [*(answers.protected or ()), *(answers.values or {}), *(answers.bounds or {})]
    named_columns += [name for name in answers.outside or {} if name != EVERY]
    for name in named_columns:
        if name is not None:
            schema.column(name)
    if answers.format is not None:
        refuse_format(answers.format)
    parts = _Parts(schema, answers)
    parts.source()
    entity = parts.entity()
    parts.order(entity)
    parts.protected()
    parts.public()
    parts.rules()
    named = parts.named
    return Draft(
        schema,
        answers,
        parts.document,
        tuple(parts.open),
        tuple(parts.decisions),
        tuple(column for column in schema.columns if column.name not in named),
        parts.rows,
    )


class _Parts:
    """The parts of a draft while it is put together."""

    def __init__(self, schema: Schema, answers: Answers) -> None:
        self.schema, self.answers = schema, answers
        self.document: dict[str, Any] = {"title": answers.title} if answers.title else {}
        self.open: list[OpenPoint] = []
        self.decisions: list[Decision] = []
        self.rows = 0

    @property
    def named(self) -> set[str]:
        document = self.document
        ties = document.get("order", {}).get("ties", "refuse")
        return {
            document["entity"]["column"],
            document.get("order", {}).get("column", OPEN),
            *(ties if isinstance(ties, list) else ()),
            *document.get("protected", ()),
            *document.get("public", ()),
        }

    def source(self) -> None:
        schema, reading = self.schema, dict(self.schema.reading)
        if self.answers.decimal is not None:
            reading["decimal"] = self.answers.decimal
        place = {"path": schema.path, "table": schema.table}
        keys = {"kind": schema.kind} | {k: v for k, v in place.items() if v is not None} | reading
        self.document["source"] = keys
        if schema.note:
            self.decide("source", "", schema.note)
        if reading.get("decimal") == OPEN:
            self.ask(
                "source.decimal",
                "commas in its numbers may mark decimals or thousands",
                "decimal = ',' if 1,250 is one and a quarter; if it is a thousand, take them out",
                "--decimal ','",
            )

    def entity(self) -> str | None:
        guess = guess_entity(self.schema.columns)
        given = self.answers.entity
        column = given or guess.column
        self.document["entity"] = {"column": column or OPEN}
        if column is None:
            likely = guess.others or likely_entities(self.schema.columns)
            perhaps = (
                f", perhaps {' or '.join(map(visible, likely[:MAX_NAMED_COLUMNS]))}"
                if likely
                else ""
            )
            self.ask(
                "entity.column",
                f"whose row it is ({guess.reason})",
                f"the column of the person or thing{perhaps}; if each row is of another person, add"
                " a column that numbers them",
                f"--entity {pasted(likely[0])}" if len(likely) == 1 else "--entity COLUMN",
            )
        else:
            self.decide_or_guess("entity", column, given, guess.reason, "--entity COLUMN")
        return column

    def order(self, entity: str | None) -> None:
        taken = {*(self.answers.protected or ()), *self.answers.public, entity}
        free = [column for column in self.schema.columns if column.name not in taken]
        guess, given = guess_order(free, entity), self.answers.order
        column = guess.column if given is None else given or None
        with self.schema.public([name for name in (entity, column) if name is not None]) as run:
            self.rows = int(run(f"SELECT count(*) FROM {DATA}")[0][0])  # noqa: S608
            longest = None if entity is None else self._longest(run, entity)
            if column is None and longest is not None and longest <= 1:
                why = "each entity has one row, so that no order is needed"
                self.decide("order", "", why, given is None, "--order COLUMN")
                return
            if column is None:
                self._ask_order(guess, entity, longest, none=given == NO_ORDER_ANSWER)
                return
            self.decide_or_guess("order", column, given, guess.reason, "--order COLUMN")
            keys = self._order_keys(run, self.schema.column(column))
            self.document["order"] = keys
            if entity is not None:
                self._ties(run, entity, column, keys)

    def _longest(self, run: Any, entity: str) -> int:
        counted = f"SELECT count(*) AS n FROM {DATA} GROUP BY {quoted(entity)}"  # noqa: S608 - quoted
        return int(run(f"SELECT coalesce(max(n), 0) FROM ({counted})")[0][0])  # noqa: S608

    def _ask_order(
        self, guess: Guess, entity: str | None, longest: int | None, *, none: bool
    ) -> None:
        self.document["order"] = {"column": OPEN, "kind": OPEN, "ties": "refuse"}
        rows = (
            f": there are up to {longest:,} rows of one `{visible(entity or '')}`"
            if none and longest
            else f" ({guess.reason})"
        )
        self.ask(
            "order.column",
            f"which column puts the rows of one in order{rows}",
            "a time or a position that everyone may know, as column = 'at', and its kind: time,"
            " unix or number",
            "--order COLUMN",
        )

    def _order_keys(self, run: Any, column: SchemaColumn) -> dict[str, Any]:
        kind, form = self.answers.order_kind, self.answers.format
        keys: dict[str, Any] = {"column": column.name}
        if kind is None:
            kind = self._order_kind(run, column)
        keys["kind"] = kind
        if kind in ("time", "unix"):
            keys["zone"] = self.answers.zone or "UTC"
            if self.answers.zone is None and column.kind != "zoned" and kind == "time":
                why = "its times are taken for UTC; local ones need a zone"
                self.decide("order", column.name, why, change="--zone Europe/Berlin")
        elif self.answers.zone is not None:
            keys["zone"] = self.answers.zone
        keys["ties"] = list(self.answers.ties) if self.answers.ties else "refuse"
        text = column.kind == "text" or self.schema.kind == "csv"
        if form is not None:
            keys["format"] = form
        elif kind == "time" and text:
            keys |= self._format(run, column)
        return keys

    def _order_kind(self, run: Any, column: SchemaColumn) -> str:
        if column.kind in ("time", "zoned", "text"):
            return "time"
        name = quoted(column.name)
        first, last = run(
            f"SELECT min(TRY_CAST({name} AS double)), max(TRY_CAST({name} AS double)) FROM {DATA}"  # noqa: S608
        )[0]
        words = set(words_of(column.name))
        if (
            first is not None
            and first >= FIRST_SECOND
            and last < LAST_SECOND
            and words & (UNIX | {"epoch", "time"})
        ):
            return "unix"
        return "number"

    def _format(self, run: Any, column: SchemaColumn) -> dict[str, str]:
        if self.schema.kind == "csv" and is_iso(run, DATA, column.name):
            return {}
        formats = possible_formats(run, DATA, column.name)
        if len(formats) == 1:
            why = f"its times are written as {formats[0]}"
            self.decide("order", column.name, why, change="--order COLUMN")
            return {"format": formats[0]}
        if formats:
            self.ask(
                "order.format",
                "day and month of its times can be either way",
                " or ".join(f"format = '{form}'" for form in formats),
                f"--format '{formats[0]}'",
                choices=formats,
            )
        else:
            self.ask(
                "order.format",
                "how its times are written",
                "format = '%d/%m/%Y %H:%M' or another; the same in every row",
                "--format FORMAT",
            )
        return {"format": OPEN}

    def _ties(self, run: Any, entity: str, column: str, keys: dict[str, Any]) -> None:
        if self.answers.ties:
            why = "settles ties, and is public by that: it must not reveal a protected column"
            self.decide("order", ", ".join(self.answers.ties), why, guessed=False)
            return
        grouped = f"GROUP BY {quoted(entity)}, {quoted(column)} HAVING count(*) > 1"
        tied = run(f"SELECT 1 FROM {DATA} {grouped} LIMIT 1")  # noqa: S608 - quoted
        if tied:
            keys["ties"] = OPEN
            self.ask(
                "order.ties",
                f"some rows of one `{visible(entity)}` have the same `{visible(column)}`",
                "a list of columns in which such rows differ and which everyone may know, as"
                " ties = ['row']; or remove the repeated rows",
                "--ties COLUMN",
            )

    def protected(self) -> None:
        answers = self.answers
        names = list(answers.protected or ())
        names += [c for c in (*(answers.values or {}), *(answers.bounds or {})) if c not in names]
        names = [name for name in names if name not in answers.public]
        guessed = not names
        decisions = [Decision.given("protected", name) for name in names]
        if guessed:
            reasons = guess_protected(self.schema.columns, [*self.named, *answers.public])
            decisions = [
                Decision("protected", name, reason, change="--protected COLUMN")
                for name, reason in reasons.items()
            ]
        self.document["protected"] = {}
        for decision in decisions:
            name = decision.column
            self.decisions.append(decision)
            self.document["protected"][name] = self._column(self.schema.column(name))
        if not decisions:
            self.ask(
                "protected",
                "which columns are to be protected",
                "a section for each, as [protected.place] with its values",
                "--protected COLUMN",
            )

    def _column(self, column: SchemaColumn) -> dict[str, Any]:
        values = (self.answers.values or {}).get(column.name)
        bounds = (self.answers.bounds or {}).get(column.name)
        shown = visible(column.name)
        if bounds is not None:
            step = _step_of(bounds, column)
            if step != 1:
                why = f"sums are made in steps of {step}"
                change = "`step` in the declaration"
                self.decide("protected", column.name, why, change=change)
            keys = {"bounds": list(bounds), "step": step, "missing": "refuse"}
            return {key: value for key, value in keys.items() if (key, value) != ("step", 1)}
        if values is not None:
            return self._labels(column.name, _typed(values, column), self.answers.unlisted)
        if column.categories is not None:
            return self._labels(column.name, list(column.categories), "refuse")
        if column.kind in ("whole", "real"):
            codes = "; or values = [0, 1, 2], outside = 'other' if its numbers are codes"
            self.ask(
                f"protected.{column.name}.bounds",
                f"between which numbers `{shown}` can be, by what is known without the data",
                "bounds = [0, 100]" + (codes if column.kind == "whole" else ""),
                f"--bounds {shown}=0..100",
            )
            return {"bounds": OPEN, "missing": "refuse"}
        if column.kind != "text" and self.schema.kind != "csv":
            raise InvalidDeclaration(
                shown,
                given=f"is of the type {column.type}",
                needed="hold text or numbers to be protected: store it as one of them",
                reason="kind",
            )
        derived = (
            " (the categories of its type may come from the data, so they are not taken)"
            if column.derived
            else ""
        )
        self.ask(
            f"protected.{column.name}.values",
            f"which labels `{shown}` can hold, by what is known without the data{derived}",
            "values = ['home', 'work'], or those of a codebook or of the rows that a prior is"
            " fitted on (docs/how-to/datasets.md); all others count as 'other', unless outside is"
            " 'refuse' or 'drop'",
            f"--labels {shown}=home,work",
        )
        return self._labels(column.name, OPEN, "other")

    def _labels(self, column: str, values: Any, usual: str) -> dict[str, Any]:
        """The keys of a column of labels; what becomes of other values is said."""
        rules = self.answers.outside or {}
        rule = _outside_of(column, values, rules, usual)
        is_given = column in rules or EVERY in rules
        listed = values not in (OPEN, FROM_THE_FITTED_ROWS)
        if listed and rule in OUTSIDE_WORDS and (is_given or self.answers.unlisted == "refuse"):
            change = " or ".join(f"--outside {other}" for other in OUTSIDE_WORDS if other != rule)
            why = OUTSIDE_WORDS[rule]
            self.decide("protected", column, why, not is_given, change)
        return {"values": values, "outside": rule}

    def public(self) -> None:
        for name in self.answers.public:
            self.decisions.append(Decision.given("public", name))
            values = (self.answers.values or {}).get(name, FROM_THE_DATA)
            keys = {"values": values}
            if name in (self.answers.outside or {}):
                keys["outside"] = (self.answers.outside or {})[name]
            self.document.setdefault("public", {})[name] = keys

    def rules(self) -> None:
        """Refuse rules that no column follows."""
        protected = self.document["protected"]
        labels = [column for column, keys in protected.items() if "values" in keys]
        public = [c for c in self.document.get("public", ()) if c in (self.answers.outside or {})]
        rules = {k: v for k, v in (self.answers.outside or {}).items() if k not in public}
        if protected:
            _refuse_outside(rules, labels)

    def decide(self, part: str, column: str, reason: str, *more: Any, **named: Any) -> None:
        self.decisions.append(Decision(part, column, reason, *more, **named))

    def decide_or_guess(
        self, part: str, column: str, given: str | None, reason: str, change: str
    ) -> None:
        if given:
            self.decisions.append(Decision.given(part, column))
        else:
            self.decide(part, column, reason, change=change)

    def ask(
        self, key: str, question: str, needed: str, option: str, choices: tuple[str, ...] = ()
    ) -> None:
        self.open.append(OpenPoint(key, question, needed, option, choices))


# --- labels, numbers and rules as a declaration has them ---


def _outside_of(column: str, values: Any, rules: Mapping[str, str], usual: str) -> str:
    """What becomes of values that are not in a list: as said, or else as ``usual``.

    What is found on a part of the rows, or is not known yet, leaves others, which count as one.
    """
    is_open = values in (FROM_THE_FITTED_ROWS, OPEN)
    return rules.get(column, rules.get(EVERY, "other" if is_open else usual))


def _refuse_outside(said: Mapping[str, str], labels: Sequence[str]) -> None:
    """Raise for a rule that is none, or that no column of ``labels`` follows."""
    for column, rule in said.items():
        if rule not in get_args(Outside):
            raise InvalidDeclaration(
                f"{visible(column)}, outside" if column else "outside",
                given=f"is {rule!r:.40}",
                needed=f"be one of {', '.join(get_args(Outside))}",
                reason="outside",
            )
        if not labels or (column and column not in labels):
            raise InvalidDeclaration(
                f"{visible(column)}, outside" if column else "outside",
                given="is given, and "
                + ("this is no declared column" if column else "there is no protected column")
                + " of labels",
                needed="be left out: it is about values that are not in a list",
                reason="outside",
            )


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def _typed(values: Any, column: SchemaColumn) -> Any:
    """Labels as the column has them: whole numbers where it holds those."""
    if column.kind != "whole" or isinstance(values, str | Mapping):
        return list(values) if isinstance(values, tuple) else values
    whole = [int(v) for v in values if str(v).removeprefix("-").isdecimal()]
    return whole if len(whole) == len(values) else list(values)


def _step_of(bounds: Sequence[Any], column: SchemaColumn) -> int | Decimal:
    """The unit of sums: 1, or for numbers with decimals at most a thousandth of their range."""
    low, high = (Decimal(str(end)) for end in bounds)
    digits = [-int(end.normalize().as_tuple().exponent) for end in (low, high)]
    if column.kind == "real" and high > low:
        digits.append(3 - (high - low).adjusted())
    places = max(0, *digits)
    return Decimal(1).scaleb(-places) if places else 1
