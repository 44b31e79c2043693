"""Plans and results: frozen values that print, and that turn into tables and JSON."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from takifugu.engines.problems import driver
from takifugu.ledger import Charge
from takifugu.ledger.charge_values import groups_body, window_body
from takifugu.mechanisms import Mechanism
from takifugu.session.cost import Cost
from takifugu.session.queries import Query
from takifugu.visible import visible

MOST_LINES = 60  # of a table in a terminal
WIDEST = 40  # letters of a label in it


@dataclass(frozen=True)
class Plan:
    """What a release would be and cost. Nothing was spent and nothing protected was read.

    Attributes:
        query: What is asked.
        mechanism: How the answer is protected.
        error: What is predicted of the answer.
        reason: Why this mechanism.
        cost: What it costs now.
        delta: The Pufferfish δ that its price is read at; 0 for a loss in ε.
        charge: What will be written in the ledger first. It holds the mark of the data, which is
            the owner's, and so is not printed.
        stored: Whether the answer is known already, and so free.
        instead: If the error that was wanted costs too much: an ``epsilon`` that would be accepted
            and the ``error`` that is predicted for it.
        notes: What to know before it is released: that the data changed, for one.
    """

    query: Query
    mechanism: Mechanism
    error: Mapping[str, Any]
    reason: str
    cost: Cost
    delta: Fraction
    charge: Charge = field(repr=False)
    stored: bool
    instead: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON. The mark of the data is the owner's and left out."""
        return {
            "dataset": self.charge.dataset,
            **_asked(self.charge),
            "mechanism": self.mechanism.describe(),
            "error": dict(self.error),
            "reason": self.reason,
            "cost": self.cost.describe(),
            "stored": self.stored,
            "instead": None if self.instead is None else dict(self.instead),
            "cells": self.charge.cells.fingerprint,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        cost = self.cost
        if self.stored:
            price = "free: it was answered before, and the same answer will be given"
        elif cost.fits and cost.reuse:
            price = f"{cost.words}{_reused(cost)}"
        elif cost.fits:
            price = (
                f"{cost.words} alone, {cost.marginal:.6g} on top of the {cost.before:.6g} spent"
                f" before; {cost.left:.6g} of {float(cost.budget):g} left{_own(cost)}"
            )
        else:
            price = f"{cost.words}: too much{_accepted(cost, self.instead)}"
        asked_of = f"{self.query.kind} of {visible(self.query.column)}"
        told = [asked_of, f"costs {price}", self.reason]
        return "\n".join([*told, *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class Result:
    """A released answer.

    Attributes:
        query: What was asked, as JSON.
        columns: The names of the columns of the table.
        rows: The table: keys, ``estimate``, and ``low`` and ``high`` of a 95 % interval of each
            number; for a ranking keys, ``place`` and the label; for a quantile ``low level`` and
            ``high level``, between which the number is an exact quantile 95 % of the time.
        error: What was predicted of the noise.
        cost: What it cost; for a stored answer, what it would cost to ask anew.
        free: Whether it was stored, and cost nothing: an answer that another analyst was told
            costs the budget of whoever asks, if they have one of their own.
        at: When it was released.
        mechanism: How it was protected, as JSON.
        guarantee: What is protected and what is not.
    """

    query: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    error: Mapping[str, Any]
    cost: Cost
    free: bool
    at: datetime
    mechanism: Mapping[str, Any]
    guarantee: str

    def column(self, name: str) -> list[Any]:
        """One column of the table, from top to bottom."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame."""
        with driver("pandas", purpose="a pandas data frame"):
            return import_module("pandas").DataFrame(self._table())

    def to_polars(self) -> Any:
        """A polars data frame."""
        with driver("polars", purpose="a polars data frame"):
            return import_module("polars").DataFrame(self._table())

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        with driver("pyarrow", purpose="an Arrow table"):
            return import_module("pyarrow").table(self._table())

    def plot(self, path: str | Path) -> None:
        """Draw it into a file, as its suffix says: intervals, or a table for a ranking."""
        from takifugu.reports.plot_files import check_target, save
        from takifugu.reports.result_figure import answer_figure

        place = Path(path)
        check_target(place)
        query: Mapping[str, Any] = self.query["query"]
        title = f"{str(query['name']).replace('_', ' ')} of {query['column']}"
        note = f"{self.cost.words} alone" + (", answered before" if self.free else "")
        by = tuple(query["by"])
        save(answer_figure(self.columns, self.rows, by=by, title=title, note=note), place)

    def to_json(self) -> str:
        """Everything, as one JSON object."""
        return json.dumps(
            {
                **self.query,
                "columns": list(self.columns),
                "rows": [list(row) for row in self.rows],
                "error": dict(self.error),
                "cost": self.cost.describe(),
                "free": self.free,
                "at": self.at.isoformat(),
                "mechanism": dict(self.mechanism),
                "guarantee": self.guarantee,
            },
            indent=2,
            allow_nan=False,
        )

    def _table(self) -> dict[str, list[Any]]:
        return {name: self.column(name) for name in self.columns}

    def __str__(self) -> str:
        cells = [
            tuple(map(visible, self.columns)),
            *[tuple(map(_cell, row)) for row in self.rows[:MOST_LINES]],
        ]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        aligned = [self._aligned(place) for place in range(len(self.columns))]
        lines = [
            "  ".join(
                align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True)
            )
            for row in cells
        ]
        lines = [line.rstrip() for line in lines]
        if len(self.rows) > MOST_LINES:
            lines.append(
                f"… {len(self.rows) - MOST_LINES:,} more of {len(self.rows):,} rows; to_json, or"
                " to_pandas, has them all"
            )
        price = f"{self.cost.words} alone"
        if self.cost.marginal is not None:
            price += f", {self.cost.marginal:.6g} on top of what was spent before"
        if self.cost.reuse:
            price = f"{self.cost.words}{_reused(self.cost)}"
        lines.append("free: answered before" if self.free else f"cost {price}")
        return "\n".join(lines)

    def _aligned(self, place: int) -> Callable[[str, int], str]:
        """Labels to the left, numbers to the right."""
        text = any(isinstance(row[place], str) for row in self.rows[:MOST_LINES])
        return str.ljust if text else str.rjust


def _reused(cost: Cost) -> str:
    """What another analyst's answer costs, in words."""
    if cost.own is None:
        return ""
    return (
        f" of the budget of analyst {cost.own.analyst!r} alone, nothing of the dataset's: another"
        f" analyst was told the same{_own(cost)}"
    )


def _own(cost: Cost) -> str:
    """What is left to an analyst with a budget of their own."""
    if cost.own is None:
        return ""
    own = cost.own
    return f"; {own.left:.6g} of {float(own.budget):g} left to analyst {own.analyst!r}"


def _accepted(cost: Cost, instead: Mapping[str, Any] | None) -> str:
    """What would be accepted in place of a plan that costs too much."""
    if not cost.most > 0:
        return "; nothing more is accepted on these rows. Have the owner raise the budget"
    told = f"; at most {cost.most:f} would be accepted"
    error = {} if instead is None else instead["error"]
    if "interval" in error:
        told += f". That keeps each number within ±{error['interval']:.4g} in 95 % of releases"
    elif "ranks" in error:
        told += f". That keeps the rank within {error['ranks']:.4g} in 95 % of releases"
    return told


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = visible(str(value))
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _asked(charge: Charge) -> dict[str, Any]:
    return {
        "query": dict(charge.query),
        "window": window_body(charge.window),
        "groups": groups_body(charge.groups),
    }


def asked(charge: Charge) -> dict[str, Any]:
    """The query of a charge as JSON: what is asked, and of which rows."""
    return {"dataset": charge.dataset, **_asked(charge)}
