"""Results: released answers, as frozen values that print, and turn into tables and JSON.

A result says where it came from (`Provenance`): what was asked of which rows, against which prior,
at which event. A number that is passed on without this cannot be checked, and nobody can tell what
its guarantee is about. Only what the owner publishes anyway is in it: the mark of the data, which
could confirm a guess of its bytes, and paths are not.

A result that is read from its document prints, plots and is written to files as the first one.
There null stands for what is infinite, and a float is written and read without loss.
"""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from takifugu._core.fingerprint import fingerprint
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.declarations.table_errors import driver
from takifugu.documents.declared import Codec, from_document, to_document
from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    converted,
    json_object,
    json_value,
    listed,
    predicted,
    refuse_unshown,
    scalar,
)
from takifugu.ledger import Anchor
from takifugu.session.guarantee import described
from takifugu.session.query_kinds import is_ranking
from takifugu.session.release_cost import ReleaseCost
from takifugu.session.release_plan import RowsRead, Saving, error_words
from takifugu.tables import Engine
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DRIVERS = {"duckdb": "duckdb", "postgres": "psycopg", "spark": "pyspark"}
SHORT = 12  # digits of a hash that people read


@dataclass(frozen=True)
class PriorUsed:
    """A prior that a guarantee holds against.

    Attributes:
        name: Its name in the session.
        words: What it is, in a few words.
        fingerprint: The identity of its content.
        fitted_on: Which rows it was fitted on; empty if it was not fitted.
    """

    name: str
    words: str
    fingerprint: str
    fitted_on: tuple[str, ...] = ()


def _anchor(document: Any, path: str) -> Anchor:
    found = DocumentPart.of(document, path)
    return Anchor(found.whole("event"), found.text("hash"))


LedgerEvent = Annotated[
    Anchor, Codec(_anchor, lambda anchor: {"event": anchor.seq, "hash": anchor.hash})
]


@dataclass(frozen=True)
class Provenance:
    """Where a result came from.

    Attributes:
        dataset: The name of the budget that paid.
        analyst: Who asked; None if nobody is named.
        asked: The query in words.
        priors: The priors that the guarantee holds against.
        translation: The identity of priors and secrets together.
        charge: The event of the ledger that paid for the answer: its number and hash.
        answer: The event that holds the answer.
        released: When the answer was paid for, which is before it was counted.
        software: The versions that drew the answer; empty if they were not recorded.
    """

    dataset: str
    analyst: str | None
    asked: str
    priors: tuple[PriorUsed, ...]
    translation: str
    charge: LedgerEvent
    answer: LedgerEvent
    released: datetime
    software: Mapping[str, str]

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        document: dict[str, Any] = to_document(self)
        return document

    @property
    def line(self) -> str:
        """When it was released and where the ledger has it, in one line."""
        return (
            f"released {self.released:%Y-%m-%d %H:%M} UTC; event {self.charge.seq} of the ledger"
            f" ({self.charge.hash[:SHORT]})"
        )

    def facts(self) -> dict[str, str]:
        """Names and values for people, in the order in which they are read."""
        many = len(self.priors) > 1
        facts = {"query": self.asked, "dataset": self.dataset}
        if self.analyst is not None:
            facts["analyst"] = self.analyst
        for prior in self.priors:
            called = f"prior {prior.name}" if many else "prior"
            facts[called] = f"{prior.words}, fingerprint {prior.fingerprint[:SHORT]}"
            if prior.fitted_on:
                facts[f"{called}, fitted"] = " ".join(prior.fitted_on)
        facts |= {
            "prior and secrets": f"fingerprint {self.translation[:SHORT]}",
            "released": f"{self.released:%Y-%m-%d %H:%M:%S} UTC",
            "charge": f"event {self.charge.seq}, {self.charge.hash}",
            "answer": f"event {self.answer.seq}, {self.answer.hash}",
            "software": ", ".join(f"{name} {number}" for name, number in self.software.items())
            or "not recorded",
        }
        return facts


def priors_used(translation: PriorTranslation) -> tuple[PriorUsed, ...]:
    """The priors of a session, as a result names them."""
    return tuple(
        PriorUsed(
            name,
            described(prior),
            fingerprint(prior),
            tuple(dict.fromkeys(rule.statement for rule in prior.fitted_on)),
        )
        for name, prior in translation.priors.items()
    )


def software(engine: Engine) -> dict[str, str]:
    """The versions of what draws an answer: this program, the noise, the database's driver."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("takifugu", "opendp", DRIVERS[engine.dialect]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # imported from a folder, not installed
            found[package] = "unknown"
    return found | {"python": platform.python_version()}


MEANINGS = {
    "estimate": "The released number: the exact one and noise, as far as that is possible.",
    "low": "The lower end of a 95 % interval for the exact number.",
    "high": "The upper end of a 95 % interval for the exact number.",
    "low level": "The number is a quantile of at least this level, with probability 0.95.",
    "high level": "The number is a quantile of at most this level, with probability 0.95.",
    "rank": "The place in the ranking, 1 for the most frequent.",
    "probability": "The probability that this place of the ranking is right.",
}
MAX_TABLE_LINES = 60  # of a table in a terminal or a notebook
MAX_LABEL_WIDTH = 40  # letters of a label in it


@dataclass(frozen=True)
class Result:
    """A released answer.

    Attributes:
        query: What was asked, as JSON.
        columns: The names of the columns of the table.
        rows: The table: keys, ``estimate``, and ``low`` and ``high`` of a 95 % interval of each
            number; for a ranking keys, ``rank``, the label, its number if noise was added to all
            of them, and the ``probability`` that the place is right; for a quantile ``low level``
            and ``high level``, between which the number is an exact quantile with probability 0.95.
            All numbers are possible ones: `takifugu.session.possible_answers`.
        error: What was predicted of the noise.
        cost: What it cost; for a stored answer ``alone`` is what it would cost to ask anew, and
            nothing is added to what was spent.
        free: Whether it was stored, and cost nothing: an answer that was released to another
            analyst costs the budget of whoever asks, if they have one of their own.
        at: When it was released, which is the time of its charge.
        mechanism: How it was protected, as JSON.
        guarantee: What is protected and what is not.
        saving: What the charge by value saved; None if values made no difference.
        reads: How many rows of the table the answer is about, of how many, as they are now.
        provenance: Where it came from: query, priors, events of the ledger, software.
        raw: The rows as they were drawn; None if they are no others.
        shown: What was done to what was drawn, for free, in words.
    """

    query: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    error: Mapping[str, Any]
    cost: ReleaseCost
    free: bool
    at: datetime
    mechanism: Mapping[str, Any]
    guarantee: str
    saving: Saving | None = None
    reads: RowsRead | None = None
    provenance: Provenance | None = None
    raw: tuple[tuple[Any, ...], ...] | None = None
    shown: tuple[str, ...] = ()

    @property
    def rows_read(self) -> int | None:
        """How many rows of the table the answer is about: public."""
        return None if self.reads is None else self.reads.read

    @property
    def rows_there(self) -> int | None:
        """How many rows the table has, those that a prior was fitted on among them: public."""
        return None if self.reads is None else self.reads.there

    def column(self, name: str) -> list[Any]:
        """One column of the table, from top to bottom."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame."""
        with driver("pandas", purpose="a pandas data frame", extra="tables"):
            return import_module("pandas").DataFrame(self._table())

    def to_polars(self) -> Any:
        """A polars data frame."""
        with driver("polars", purpose="a polars data frame", extra="tables"):
            return import_module("polars").DataFrame(self._table())

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        with driver("pyarrow", purpose="an Arrow table", extra="tables"):
            return import_module("pyarrow").table(self._table())

    def to_csv(self, path: str | Path) -> None:
        """A new CSV file, and what it is about beside it: ``shares.csv-metadata.json``."""
        self._write(path, ".csv")

    def to_excel(self, path: str | Path) -> None:
        """A new ``.xlsx`` file: the table on one sheet, what it is about on another."""
        self._write(path, ".xlsx")

    def to_html(self, path: str | Path | None = None) -> str:
        """A page about it in one file: figure, table, guarantee, provenance; also written."""
        from takifugu.session.result_files import result_page

        if path is not None:
            self._write(path, ".html")
        return result_page(self).html()

    def _write(self, path: str | Path, suffix: str) -> None:
        from takifugu.session.result_files import write_result

        write_result(self, Path(path), suffix)

    def plot(self, path: str | Path) -> None:
        """Draw it into a file, as its suffix says: intervals, or a table for a ranking."""
        from takifugu.reports.plot_files import check_target, save

        place = Path(path)
        check_target(place)
        save(self.figure(), place)

    def figure(self, *, titled: bool = True) -> "Figure":
        """Its figure: intervals, or a table for a ranking; with a title that says what it is."""
        from takifugu.reports.result_figure import result_figure

        query: Mapping[str, Any] = self.query["query"]
        note = f"{self.cost.words} alone" + (", answered before" if self.free else "")
        return result_figure(
            self.columns,
            self.rows,
            by=tuple(query["by"]),
            title=self.title if titled else "",
            note=note if titled else "",
            ranked=is_ranking(query["name"]),
        )

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        query: Mapping[str, Any] = self.query["query"]
        about = query["column"]
        about = " × ".join(about) if isinstance(about, list) else about
        return f"{str(query['name']).replace('_', ' ')} of {query.get('query') or about}"

    def document(self) -> dict[str, Any]:
        """Everything, ready to be written as JSON."""
        return {
            **self.query,
            "rows_read": self.rows_read,
            "rows_there": self.rows_there,
            "reads": None if self.reads is None else self.reads.details(),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "raw": None if self.raw is None else [list(row) for row in self.raw],
            "shown": list(self.shown),
            "error": dict(self.error),
            "cost": self.cost.describe(),
            "free": self.free,
            "at": self.at.isoformat(),
            "mechanism": dict(self.mechanism),
            "guarantee": self.guarantee,
            "saving": None if self.saving is None else self.saving.describe(),
            "provenance": None if self.provenance is None else self.provenance.describe(),
        }

    def about(self) -> dict[str, Any]:
        """Everything but the table: what stands beside it in a file."""
        return {k: v for k, v in self.document().items() if k not in ("columns", "rows", "raw")}

    def to_json(self) -> str:
        """Everything, as one JSON object."""
        return json.dumps(self.document(), indent=2, allow_nan=False)

    def facts(self) -> dict[str, str]:
        """What it is about, as names and values for people."""
        known = {} if self.provenance is None else self.provenance.facts()
        rows = "unknown" if self.reads is None else f"{self.reads.read:,} of {self.reads.there:,}"
        query = known.pop("query", self.title)
        return {
            "query": query,
            "rows read": rows,
            "price": self.price,
            "for one entry": self.cost.odds_of_entry,
            "expected error": error_words(self.error) if self.error else "unknown",
            **known,
            "guarantee": self.guarantee,
        }

    def meaning(self, column: str) -> str:
        """What a column of the table holds, in a sentence."""
        own = column.removesuffix(" (answer)")
        return MEANINGS.get(own, f"A value of {column}.")

    def _table(self) -> dict[str, list[Any]]:
        return {name: self.column(name) for name in self.columns}

    @property
    def price(self) -> str:
        """What it cost, in words."""
        if self.free:
            return "free: answered before"
        if self.cost.reuse:
            return f"cost {self.cost.reuse_words}"
        price = f"cost {self.cost.alone_words}"
        if self.cost.marginal is None:
            return price
        return f"{price}, {four_digits(self.cost.marginal, 'up')} on top of what was spent before"

    def _cells(self) -> list[tuple[str, ...]]:
        """The first rows as text, below the names of the columns."""
        shown = self.rows[:MAX_TABLE_LINES]
        return [tuple(map(visible, self.columns)), *(tuple(map(_cell, row)) for row in shown)]

    def _more(self) -> list[str]:
        if len(self.rows) <= MAX_TABLE_LINES:
            return []
        return [
            f"… {len(self.rows) - MAX_TABLE_LINES:,} more of {len(self.rows):,} rows; to_json, or"
            " to_pandas, has them all"
        ]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        align = [self._aligned(place) for place in range(len(self.columns))]
        lines = [
            "  ".join(
                aligned(cell, width)
                for aligned, cell, width in zip(align, row, widths, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, *self._more(), *self._below()])

    def _below(self) -> list[str]:
        """Which rows were read, if not all; the price, what values saved, where it is recorded."""
        saved = [] if self.saving is None else [f"saved: {visible(str(self.saving))}"]
        came = [] if self.provenance is None else [self.provenance.line]
        read = () if self.reads is None else self.reads.lines
        return [*read, self.price, self.cost.odds_words, *saved, *came]

    def _aligned(self, place: int) -> Callable[[str, int], str]:
        """Labels to the left, numbers to the right."""
        text = any(isinstance(row[place], str) for row in self.rows[:MAX_TABLE_LINES])
        return str.ljust if text else str.rjust

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from takifugu.session.result_files import result_fragment

        return result_fragment(self._cells(), [*self._more(), *self._below()], self.facts())


def _cell(value: Any) -> str:
    """A key or a number; counts and large numbers in whole units, others with four digits."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else four_digits(value)
    text = visible(str(value))
    return text if len(text) <= MAX_LABEL_WIDTH else f"{text[: MAX_LABEL_WIDTH - 1]}…"


QUERY = ("dataset", "query", "window", "groups")  # what was asked, and of which rows


def result_from_document(document: Any) -> Result:
    """The result that `Result.document` wrote."""

    def read(given: Any, _: str) -> Result:
        result = _result(DocumentPart.of(given))
        refuse_unshown(lambda: (result.document(), str(result)))
        return result

    return converted(document, "document", read)


def _result(found: DocumentPart) -> Result:
    columns = found.texts("columns")
    asked = found.read("query", json_object)
    for key in ("name", "column", "by"):
        if key not in asked:
            raise InvalidDocument(f"query, {key}", given="is missing", needed="be given")
    found.text("dataset")
    return Result(
        query={key: found.read(key, json_value) for key in QUERY},
        columns=columns,
        rows=_rows(found, "rows", columns),
        error=found.read("error", lambda value, path: predicted(value, path) if value else {}),
        cost=found.read("cost", ReleaseCost.from_document),
        free=found.truth("free"),
        at=found.moment("at"),
        mechanism=found.read("mechanism", json_object),
        guarantee=found.text("guarantee"),
        saving=found.maybe("saving", partial(from_document, Saving)),
        reads=RowsRead.from_document(found),
        provenance=found.maybe("provenance", partial(from_document, Provenance)),
        raw=_rows(found, "raw", columns) if found.has("raw") else None,
        shown=found.texts("shown"),
    )


def _rows(
    found: DocumentPart, key: str, columns: tuple[str, ...]
) -> tuple[tuple[str | int | float | bool | None, ...], ...]:
    rows = found.read(key, listed(listed(scalar)))
    if any(len(row) != len(columns) for row in rows):
        raise InvalidDocument(
            found.named(key),
            given="has a row of another length",
            needed=f"have {len(columns)} cells in each row",
        )
    return rows
