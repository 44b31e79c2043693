"""DuckDB on random small tables, against plain loops over the rows."""

import math
import tempfile
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.declarations.columns import Outside
from takifugu.priors import Transitions
from takifugu.tables import Scope, open_engine
from tests.contracts.engines import KINDS, START
from tests.tables import recount
from tests.tables.storing import store_duckdb

VALUES = ("a", "b", "ü'")
NUMBERS = (
    st.none()
    | st.sampled_from([math.nan, math.inf, -math.inf])
    | st.integers(-9999, 9999).map(lambda number: number / 1024)
)
OUTSIDE: tuple[Outside, ...] = ("other", "drop")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 25))
    numbers = draw(st.permutations(range(count)))
    blank = dict.fromkeys(KINDS)
    return [
        blank
        | {
            "person": draw(st.sampled_from(["p", "q", ""])),
            "at": START + timedelta(minutes=draw(st.integers(0, 6))),
            "row": number,
            "label": draw(st.sampled_from([*VALUES[:2], "ü'", "A", "", "other", None])),
            "code": draw(st.sampled_from([1, 2, 3, None])),
            "home land": draw(st.sampled_from(["x", "y"])),
            "weight": draw(NUMBERS),
        }
        for number in numbers
    ]


@pytest.mark.costly
@settings(max_examples=25)
@given(
    table=tables(),
    outside=st.sampled_from(OUTSIDE),
    window=st.tuples(st.integers(0, 6), st.integers(1, 4)),
)
def test_answers_are_those_of_plain_loops(
    table: list[dict[str, Any]], outside: Outside, window: tuple[int, int]
) -> None:
    amount = Amount("weight", Fraction(-3), Fraction(5), Fraction(1, 4), "drop")
    start, end = (START + timedelta(minutes=m) for m in (window[0], sum(window)))
    fold = recount.fold(VALUES, outside)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        store_duckdb(table, f"COPY visits TO '{path}' (FORMAT parquet)")
        declaration = Declaration(
            Source("parquet", path=str(path)),
            "person",
            Order("at", "time", zone="Europe/Prague", ties=("row",)),
            (Category("label", VALUES, outside), amount),
            (Category("home land", ("x", "y", "z"), "refuse"),),
        )
        with open_engine(declaration, threads=2) as engine:
            for scope, kept in (
                (Scope(), table),
                (Scope(start=start, end=end), [r for r in table if _in(r["at"], start, end)]),
            ):
                found = engine.histogram(["label", "home land"], scope)
                folds = {"label": fold, "home land": recount.fold(("x", "y", "z"), "drop")}
                truth = recount.histogram(kept, folds)
                assert {k: v for k, v in _cells(found).items() if v} == dict(truth)
                paths = recount.sequences(kept, "person", ("at", "row"), "label", fold)
                states = declaration.category("label").keys
                assert engine.transitions("label", scope) == Transitions.of(paths, states=states)
                sums = engine.sums("weight", scope=scope)
                rules = (amount.low, amount.high, amount.step, amount.missing)
                count, units = recount.total([row["weight"] for row in kept], *rules)
                assert (int(sums.counts), int(sums.units)) == (count, units)
                cells = engine.distribution("weight", scope=scope, every=5)
                numbers = [row["weight"] for row in kept]
                assert cells.counts.tolist() == recount.cells(numbers, *rules, 5)
                assert engine.lengths(scope).rows == len(kept)


@pytest.mark.nightly
@settings(max_examples=25)
@given(table=tables(), label=st.sampled_from(OUTSIDE), code=st.sampled_from(OUTSIDE))
def test_tables_of_several_columns_are_those_of_plain_loops(
    table: list[dict[str, Any]], label: Outside, code: Outside
) -> None:
    """A cross-tabulation, both marginals and a table by land, each by the rules of its columns."""
    folds = {
        "label": recount.fold(VALUES, label),
        "code": lambda raw: raw if raw in (1, 2) else 0 if code == "other" else None,
        "home land": recount.fold(("x", "y", "z"), "drop"),
    }
    sets = [["label", "code"], ["label"], ["code"], ["home land", "code"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        store_duckdb(table, f"COPY visits TO '{path}' (FORMAT parquet)")
        declaration = Declaration(
            Source("parquet", path=str(path)),
            "person",
            Order("at", "time", zone="Europe/Prague", ties=("row",)),
            (Category("label", VALUES, label), Category("code", (1, 2), code, other=0)),
            (Category("home land", ("x", "y", "z"), "refuse"),),
        )
        with open_engine(declaration, threads=2) as engine:
            together = engine.cross_tabulations(sets)
            for names, found in zip(sets, together, strict=True):
                truth = recount.histogram(table, {name: folds[name] for name in names})
                for one in (found, engine.histogram(names)):
                    assert one.columns == tuple(names)
                    assert {k: n for k in product(*one.keys) if (n := one.at(*k))} == dict(truth)


def _in(at: datetime, start: datetime, end: datetime) -> bool:
    return start <= at < end


def _cells(found: Any) -> dict[tuple[Any, ...], int]:
    labels, lands = found.keys
    return {(x, y): found.at(x, y) for x in labels for y in lands}
