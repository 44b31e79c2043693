"""How far one cell moves an answer, by every pair of small tables that differ in one cell.

All tables lie in one file, told apart by the public column ``world``; the engine answers for each.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import Integers
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.declarations.columns import Outside
from takifugu.session.cells import rows_of
from takifugu.session.query.counts import CountQuery, HistogramQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import Query
from takifugu.session.query.sums import MeanQuery, SumQuery
from takifugu.session.query.transitions import TransitionsQuery
from takifugu.tables import Engine, open_engine

# three cells of Ann's change, her last and Bea's do not; steps 1 and 1 tie and `row` settles it
PLACES = (("Ann", 0, "a"), ("Ann", 1, "a"), ("Ann", 1, "b"))
LABELS = ("home", "ward", "elsewhere")  # the last is outside the list
NUMBERS = (1.0, 2.5, 9.0, "")  # one is clamped and one is missing
LABELLED = list(product(LABELS, repeat=3))
NUMBERED = list(product(NUMBERS, repeat=3))


@contextmanager
def worlds(
    folder: Path, column: str, tables: list[tuple[Any, ...]], protected: Category | Amount
) -> Iterator[Engine]:
    lines = [f"world,person,step,row,zone,{column}"]
    for world, table in enumerate(tables):
        for row, ((person, step, zone), value) in enumerate(zip(PLACES, table, strict=True)):
            lines.append(f"{world},{world}-{person},{step},{row},{zone},{value}")
        same = ("home", "ward") if column == "state" else (2.0, 4.0)
        lines.append(f"{world},{world}-Ann,3,3,a,{same[0]}")
        for row, value in enumerate(same):
            lines.append(f"{world},{world}-Bea,{row},{row},b,{value}")
    path = folder / "worlds.csv"
    path.write_text("\n".join(lines) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number", ties=("row",)),
        (protected,),
        (
            Category("world", tuple(range(len(tables))), "refuse"),
            Category("zone", ("a", "b"), "refuse"),
        ),
    )
    with open_engine(declaration, threads=1) as engine:
        yield engine


def changes(tables: list[tuple[Any, ...]], answers: Integers) -> Integers:
    """``[pair, place in the answer]``: by how much the answers of neighbours differ."""
    number = {table: i for i, table in enumerate(tables)}
    pairs = [
        (i, number[(*table[:cell], value, *table[cell + 1 :])])
        for table, i in number.items()
        for cell in range(len(table))
        for value in {t[cell] for t in tables} - {table[cell]}
    ]
    flat = answers.reshape(len(tables), -1)
    one, other = zip(*pairs, strict=True)
    moved: Integers = np.abs(flat[list(one)] - flat[list(other)])
    return moved


def norms(moved: Integers) -> tuple[int, int, int]:
    return (int(moved.sum(axis=1).max()), int((moved**2).sum(axis=1).max()), int(moved.max()))


def claimed(query: Query, engine: Engine) -> tuple[int, int, int]:
    found = query.sensitivity(engine.declaration)
    return found.l1, found.l2_squared, found.linf


def by_world(query: Query, engine: Engine, *by: str) -> Integers:
    return replace(query, by=("world", *by)).exact(engine)


@pytest.mark.parametrize("outside", ["drop", "other"])
def test_counts_move_as_claimed(tmp_path: Path, outside: Outside) -> None:
    labels = Category("state", LABELS[:2], outside)
    with worlds(tmp_path, "state", LABELLED, labels) as engine:
        for window in (None, (0, 2), (1, 4)):
            rows = rows_of(engine.declaration, window, None)
            bars = HistogramQuery("state", (), rows)
            count = CountQuery("state", (), rows, values=("ward",))
            for by in ((), ("zone",)):
                moved = norms(changes(LABELLED, by_world(bars, engine, *by)))
                assert moved == claimed(bars, engine) == (2, 2, 1)
                moved = norms(changes(LABELLED, by_world(count, engine, *by)))
                assert moved == claimed(count, engine) == (1, 1, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("outside", "window", "where"),
    [
        ("drop", None, {}),
        ("drop", (1, 4), {}),  # a dropped row in the middle joins those around it
        ("drop", None, {"zone": ["a"]}),
        ("other", None, {}),
    ],
)
def test_steps_move_as_claimed(
    tmp_path: Path, outside: Outside, window: Any, where: dict[str, list[str]]
) -> None:
    labels = Category("state", LABELS[:2], outside)
    with worlds(tmp_path, "state", LABELLED, labels) as engine:
        found = []
        for world in range(len(LABELLED)):
            rows = rows_of(engine.declaration, window, {"world": [world], **where})
            query = TransitionsQuery("state", (), rows)
            found.append(query.exact(engine))
        moved = norms(changes(LABELLED, np.array(found)))
        assert moved == claimed(query, engine) == (4, 6, 2)
        if outside == "drop":  # a cell that is dropped, alone: (a,x) and (x,b) become (a,b)
            gone = [
                np.abs(found[LABELLED.index(t)] - found[LABELLED.index(u)]).sum()
                for t in LABELLED
                for i in range(3)
                if t[i] != "elsewhere" and (u := (*t[:i], "elsewhere", *t[i + 1 :]))
            ]
            assert max(gone) == 3


@pytest.mark.parametrize("outside", ["drop", "other"])
def test_steps_of_all_groups_move_no_more_than_those_of_one(
    tmp_path: Path, outside: Outside
) -> None:
    """Also by ``zone``, in which Ann's rows differ and which a session refuses."""
    labels = Category("state", LABELS[:2], outside)
    with worlds(tmp_path, "state", LABELLED, labels) as engine:
        query = TransitionsQuery("state", (), rows_of(engine.declaration, None, None))
        for by in ((), ("zone",)):
            moved = norms(changes(LABELLED, by_world(query, engine, *by)))
            assert all(
                found <= most for found, most in zip(moved, claimed(query, engine), strict=True)
            )
            assert moved[0] == 4


@pytest.mark.nightly
@pytest.mark.parametrize("low", [Fraction(0), Fraction(1), Fraction(-2)])
@pytest.mark.parametrize("missing", ["drop", Fraction(2)])
def test_sums_and_quantiles_move_by_no_more_than_claimed(
    tmp_path: Path, low: Fraction, missing: Any
) -> None:
    amount = Amount("weight", low, Fraction(4), Fraction(1, 2), missing)
    with worlds(tmp_path, "weight", NUMBERED, amount) as engine:
        for window in (None, (0, 2)):
            rows = rows_of(engine.declaration, window, None)
            total = SumQuery("weight", (), rows)
            for by in ((), ("zone",)):
                moved = norms(changes(NUMBERED, by_world(total, engine, *by)))
                assert all(m <= c for m, c in zip(moved, claimed(total, engine), strict=True))
                if missing == "drop" and low >= 0:  # from nothing to the upper bound
                    assert moved == claimed(total, engine) == (8, 64, 8)
            mean = MeanQuery("weight", (), rows)
            moved = norms(changes(NUMBERED, by_world(mean, engine)))
            assert all(m <= c for m, c in zip(moved, claimed(mean, engine), strict=True))
            for level, every in ((Fraction(1, 2), 1), (Fraction(9, 10), 2), (Fraction(1, 3), 4)):
                picked = QuantileQuery("weight", (), rows, level=level, every=every)
                scores = by_world(picked, engine, "zone")
                assert changes(NUMBERED, scores).max() <= claimed(picked, engine)[2]
                assert claimed(picked, engine)[2] == level.denominator
                assert (by_world(picked, engine).max(axis=-1) == 0).all()  # some candidate is right


def test_the_bound_on_quantiles_is_reached(tmp_path: Path) -> None:
    amount = Amount("weight", Fraction(1), Fraction(4), Fraction(1, 2), "drop")
    with worlds(tmp_path, "weight", NUMBERED, amount) as engine:
        picked = QuantileQuery("weight", (), rows_of(engine.declaration, None, None))
        assert changes(NUMBERED, by_world(picked, engine)).max() == 2  # one rank, in halves
