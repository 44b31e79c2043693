"""What every engine must count for a fit; held to plain loops over the rows.

A backend's test module imports all of it beside the contract of engines, whose ``store`` it uses.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from takifugu.declarations import Amount, Category, InvalidDeclaration, InvalidQuery, Order
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.tables import Engine, Scope, aggregates
from takifugu.tables.run_counting import refuse_irregular
from tests.contracts.engines import LABELS, START, Store, Stored, opened, rows
from tests.raising import raises
from tests.tables import recount

PLACES = ("at", "row")
CODE = Category("code", (1, 2, -3), "other", other=0)
LABEL = Category("label", LABELS, "other")


def folded(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """The joint state of a row: its label and its code."""
    label = row["label"] if row["label"] in LABELS else "other"
    return label, row["code"] if row["code"] in (1, 2, -3) else 0


def people(table: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The rows of each person, in order."""
    return [
        sorted((r for r in table if r["person"] == who), key=lambda r: (r["at"], r["row"]))
        for who in sorted({row["person"] for row in table})
    ]


def windows(paths: Sequence[Sequence[Any]], size: int) -> Counter[tuple[Any, ...]]:
    """How many times each window occurs, one by one."""
    return Counter(tuple(path[i : i + size]) for path in paths for i in range(len(path) - size + 1))


def counted(found: Any, states: Sequence[Any]) -> dict[tuple[Any, ...], int]:
    """The counts that are not 0, by state."""
    return {
        tuple(states[i] for i in place): int(found[place])
        for place in zip(*np.nonzero(found), strict=True)
    }


@contextmanager
def passes(engine: Engine) -> Iterator[list[str]]:
    """The statements that the database runs meanwhile."""
    asked, run = list[str](), engine._backend.rows

    def noted(sql: str) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return run(sql)

    with patch.object(engine._backend, "rows", noted):
        yield asked


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_runs_are_the_windows_of_each_sequence(stored: Stored, depth: int) -> None:
    for outside in ("other", "drop"):
        paths = recount.sequences(rows(), "person", PLACES, "label", recount.fold(LABELS, outside))
        truth = windows(paths, depth + 1)
        with opened(stored, outside=outside) as engine:
            found = engine.runs(["label"], depth)
            again = engine.transitions("label")
        assert found.states == ((*LABELS, "other") if outside == "other" else LABELS)
        assert counted(found.counts, found.states) == truth and sum(truth.values()) > 50
        if depth == 1:
            assert (found.counts == again.counts).all()


def test_runs_of_joint_states_are_counted_in_one_pass(stored: Stored) -> None:
    middle = START + timedelta(minutes=45 * 17)
    with opened(stored, protected=(LABEL, CODE)) as engine:
        with passes(engine) as asked:
            found = engine.runs(["label", "code"], 1, Scope(end=middle))
        assert len(asked) == 1
    paths = [[folded(row) for row in path if row["at"] < middle] for path in people(rows())]
    truth = windows(paths, 2)
    assert found.states == tuple(product((*LABELS, "other"), (1, 2, -3, 0)))
    assert counted(found.counts, found.states) == truth and len(truth) > 20


def test_runs_of_ranges_hold_every_number_once(stored: Stored) -> None:
    def place(value: float | None, missing: Fraction | str) -> int | None:
        if value is None or value != value:
            if missing == "drop":
                return None
            assert isinstance(missing, Fraction)
            value = float(missing)
        units = recount.total([value], Fraction(0), Fraction(2), Fraction(1, 8), missing)[1]
        return sum(units >= cut for cut in (1, 4, 8))

    cuts = (Fraction(0), Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(2))
    for missing in ("drop", Fraction(1)):
        amount = Amount("weight", Fraction(0), Fraction(2), Fraction(1, 8), missing)
        paths = [
            [p for row in path if (p := place(row["weight"], missing)) is not None]
            for path in people(rows())
        ]
        with opened(stored, amounts=(amount,)) as engine:
            found = engine.runs(["weight"], 1, cuts=cuts)
            third = engine.runs(["weight"], 2, cuts=cuts)
        assert found.states == ("[0, 0.125)", "[0.125, 0.5)", "[0.5, 1)", "[1, 2]")
        assert counted(found.counts, range(4)) == windows(paths, 2)
        assert counted(third.counts, range(4)) == windows(paths, 3)
    whole = Amount("visits", Fraction(0), Fraction(10), Fraction(1), Fraction(0))
    with opened(stored, amounts=(whole,)) as engine:
        found = engine.runs(["visits"], 0, cuts=(Fraction(0), Fraction(7), Fraction(10)))
    low = sum(min(max(row["visits"] or 0, 0), 10) < 7 for row in rows())
    assert found.counts.tolist() == [low, 96 - low]


def test_ranges_that_do_not_cut_the_bounds_are_refused(stored: Stored) -> None:
    amount = Amount("weight", Fraction(0), Fraction(2), Fraction(1, 8), "refuse")
    with opened(stored, amounts=(amount,)) as engine:
        with raises(InvalidPrior, field="states", reason="other-bounds"):
            engine.runs(["weight"], cuts=(Fraction(0), Fraction(1)))
        with raises(InvalidPrior, field="cuts", reason="off-step"):
            engine.runs(["weight"], cuts=(Fraction(0), Fraction(1, 10), Fraction(2)))
        with raises(InvalidDeclaration, field="weight"):  # some are missing
            engine.runs(["weight"], cuts=(Fraction(0), Fraction(1), Fraction(2)))
        with raises(InvalidQuery, field="weight"):
            engine.runs(["weight"])
        with raises(InvalidQuery, field="cuts"):
            engine.runs(["label"], cuts=(Fraction(0), Fraction(1)))
        with raises(InvalidQuery, field="weight"):
            engine.runs(["weight", "label"], cuts=(Fraction(0), Fraction(2)))


def test_runs_refuse_what_transitions_refuse(stored: Stored, store: Store, tmp_path: Path) -> None:
    with (
        opened(stored, order=Order("at", "time", zone="Asia/Jakarta")) as engine,
        raises(InvalidDeclaration, reason="ties"),
    ):
        engine.runs(["label"], 2)
    with opened(stored, outside="refuse") as engine, raises(InvalidDeclaration, field="label"):
        engine.runs(["label"], 2)
    broken = rows()
    broken[40]["person"] = None
    with (
        opened(store("runs_without", broken, tmp_path)) as engine,
        raises(InvalidDeclaration, reason="missing"),
    ):
        engine.runs(["label"], 2)
    with opened(stored) as engine:
        with raises(TooLarge):
            engine.runs(["label"], 12)
        for columns in ([], ["label", "label"]):
            with raises(InvalidQuery, field="columns"):
                engine.runs(columns)
    dropping = (Category("label", LABELS, "drop"), CODE)
    with opened(stored, protected=dropping) as engine:
        with raises(InvalidQuery, field="label", reason="drops"):
            engine.runs(["label", "code"])
        with raises(InvalidQuery, field="label", reason="drops"):
            engine.runs(["label"], by_hour=True)


def hourly() -> list[dict[str, Any]]:
    """Three people with one row an hour, at any minute, from hours of their own on."""
    found = []
    for who, (name, first, hours) in enumerate((("Ann", 5, 60), ("Bea", 22, 40), ("Cid", 13, 1))):
        for i in range(hours):
            at = datetime(2012, 10, 27, first, (i * 13 + who) % 60) + timedelta(hours=i)
            row = dict(rows()[(i * 7 + who) % 96])
            row |= {"person": name, "at": at, "row": i, "unix": int(_utc(at).timestamp())}
            found.append(row | {"instant": _utc(at)})
    return found


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


@pytest.mark.parametrize("column", ["at", "instant", "unix"])
def test_steps_are_counted_by_the_hour_they_begin_in(
    store: Store, tmp_path: Path, column: str
) -> None:
    kind = "unix" if column == "unix" else "time"
    order = Order(column, kind, zone="Asia/Jakarta")  # type: ignore[arg-type]
    with opened(store(f"hourly_{column}", hourly(), tmp_path), order=order) as engine:
        found = engine.runs(["label"], by_hour=True)
        refuse_irregular(engine, Scope())
    truth = Counter[tuple[int, Any, Any]]()
    for path in people(hourly()):
        for before, here in pairwise(path):
            truth[before["at"].hour, folded(before)[0], folded(here)[0]] += 1
    assert found.counts.shape == (24, 6, 6)
    at = {
        (hour, x, y): int(found.counts[hour, i, j])
        for hour in range(24)
        for i, x in enumerate(found.states)
        for j, y in enumerate(found.states)
        if found.counts[hour, i, j]
    }
    assert at == truth and sum(truth.values()) == 98


def test_rows_that_are_not_one_an_hour_are_refused(
    stored: Stored, store: Store, tmp_path: Path
) -> None:
    gappy = [row for row in hourly() if not (row["person"] == "Bea" and row["row"] == 20)]
    order = Order("at", "time", zone="Asia/Jakarta", ties=("row",))
    for one in (stored, store("gappy", gappy, tmp_path)):
        with opened(one, order=order) as engine:
            for query in (
                lambda e=engine: e.runs(["label"], by_hour=True),
                lambda e=engine: refuse_irregular(e, Scope()),
            ):
                with raises(InvalidDeclaration, field="order", reason="not-hourly"):
                    query()
    with (
        opened(stored, order=Order("row", "number")) as engine,
        raises(InvalidQuery, field="by hour"),
    ):
        engine.runs(["label"], by_hour=True)


def opened_joint(stored: Stored, **options: Any) -> Engine:
    """An engine with two protected columns of labels."""
    return opened(stored, protected=(LABEL, CODE), **options)


TABLES = (("label", "code"), ("home land", "label"), ("code",), ("code", "home land", "label"))


def test_many_cross_tabulations_are_made_in_one_pass(stored: Stored) -> None:
    middle = START + timedelta(minutes=45 * 17)
    for outside in ("other", "drop"):
        label = Category("label", LABELS, outside)
        folds = {
            "label": recount.fold(LABELS, outside),
            "code": lambda raw: raw if raw in (1, 2, -3) else 0,
            "home land": recount.fold(("ID", "JP", "XX"), "refuse"),
        }
        with opened(stored, protected=(label, CODE)) as engine:
            with passes(engine) as asked:
                found = engine.cross_tabulations(TABLES, Scope(end=middle))
            with patch.object(aggregates, "MAX_SETS", 3), passes(engine) as twice:
                assert engine.cross_tabulations(TABLES, Scope(end=middle)) == found
            assert len(twice) == 2
            single = engine.histogram(["label"], Scope(end=middle))
            assert engine.cross_tabulations([["label"]], Scope(end=middle)) == (single,)
        assert len(asked) == 1
        kept = [row for row in rows() if row["at"] < middle]
        for names, table in zip(TABLES, found, strict=True):
            truth = recount.histogram(kept, {name: folds[name] for name in names})
            assert table.columns == names
            at = counted_by_key(table.counts, table.keys)
            assert at == truth and sum(truth.values()) > 40


def counted_by_key(found: Any, keys: Sequence[Sequence[Any]]) -> dict[tuple[Any, ...], int]:
    """The counts that are not 0, by their keys."""
    return {
        tuple(axis[i] for axis, i in zip(keys, place, strict=True)): int(found[place])
        for place in zip(*np.nonzero(found), strict=True)
    }


def test_cross_tabulations_refuse_what_histograms_refuse(stored: Stored) -> None:
    strict = (Category("label", LABELS, "refuse"), CODE)
    with opened(stored, protected=strict) as engine:
        with raises(InvalidDeclaration, field="label"):
            engine.cross_tabulations([["label", "code"]])
        twice = [["code", "label"], ["label", "code"]]
        refused: list[list[list[str]]] = [[], [[]], [["code", "code"]], twice]
        for sets in refused:
            with raises(InvalidQuery, field="columns"):
                engine.cross_tabulations(sets)
    wide = Category("label", tuple(f"{i}" for i in range(5000)), "other")
    other = Category("code", tuple(range(5000)), "other", other=-1)
    with opened(stored, protected=(wide, other)) as engine, raises(TooLarge):
        engine.cross_tabulations([["label", "code"]])
