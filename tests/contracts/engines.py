"""What every engine must do, whatever database is behind it; held to plain loops over the rows.

A backend's test module imports all of it and says, in a fixture ``store``, how rows are stored.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import (
    Amount,
    Category,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Source,
)
from takifugu.declarations.columns import FittedLabels, Outside
from takifugu.errors import TooLarge
from takifugu.fitting.fit_kinds import find_labels
from takifugu.tables import Engine, Scope, check, open_engine
from takifugu.tables.engine import MOST_CELLS
from tests.raising import raises
from tests.tables import recount

LABELS = ("Café", "東京", "a\\b'c\"d", "home", "empty")
LANDS = ("ID", "JP", "XX")
HIDDEN_VALUE = "the hidden value"
RAW = (*LABELS[:4], HIDDEN_VALUE, None)
START = datetime(2012, 10, 27, 22, 30)
MICROSECOND = timedelta(microseconds=1)
KINDS = {
    "person": "text",
    "at": "time",
    "instant": "zoned",
    "unix": "whole",
    "row": "whole",
    "label": "text",
    "code": "whole",
    "home land": "text",
    "visits": "whole",
    "weight": "real",
    "hidden": "text",
}
WEIGHTS = (0.0, 0.125, 1.0, 2.49, 2.5, -7.0, 1e300, math.inf, -math.inf, math.nan, None)

Stored = tuple[Source, dict[str, Any]]  # the source, and options to open it with
Store = Callable[[str, Sequence[Mapping[str, Any]], Path], Stored]


def rows() -> list[dict[str, Any]]:
    """Two days of three people and one more: ties in time, gaps in values, odd labels."""
    found = []
    for i in range(96):
        minutes = 45 * (i // 4) if i % 8 else 45 * (i // 8)
        at = START + timedelta(minutes=minutes)
        found.append(
            {
                "person": ("Ann", "Bea", "Čeněk", "Ann", "Bea")[(i * i + i // 7) % 5],
                "at": at,
                "instant": at.replace(tzinfo=UTC) + timedelta(microseconds=i),
                "unix": int(at.replace(tzinfo=UTC).timestamp()),
                "row": i,
                "label": RAW[(i * i * 5 + i // 3) % 6],
                "code": (1, 2, -3, 99, None)[(i * 3 + i // 5) % 5],
                "home land": LANDS[(i // 5) % 2],
                "visits": (0, 7, 12, -5, None, 10**12)[(i + i // 9) % 6],
                "weight": WEIGHTS[(i * 7 + i // 4) % len(WEIGHTS)],
                "hidden": "undeclared",
            }
        )
    return found


@pytest.fixture(scope="module")
def stored(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store("visits", rows(), tmp_path_factory.mktemp("stored"))


def test_histograms_count_every_key_under_each_rule(stored: Stored) -> None:
    for outside in ("other", "drop"):
        with opened(stored, outside=outside) as engine:
            found = engine.histogram(["home land", "label"])
        folds = {
            "home land": recount.fold(LANDS, "drop"),
            "label": recount.fold(LABELS, outside),
        }
        truth = recount.histogram(rows(), folds)
        keys = (*LABELS, "other") if outside == "other" else LABELS
        assert found.keys == (LANDS, keys)
        assert found.counts.dtype == np.int64
        assert {(land, label): found.at(land, label) for land in LANDS for label in keys} == {
            (land, label): truth[land, label] for land in LANDS for label in keys
        }
        assert truth["ID", "Café"] > 0
        assert found.at("XX", "Café") == found.at("ID", "empty") == 0


CODES = (1, 2, -3)
TWO_COLUMNS: list[tuple[Outside, Outside]] = [
    ("other", "drop"),
    ("drop", "other"),
    ("drop", "drop"),
]


@pytest.mark.parametrize(("label", "code"), TWO_COLUMNS)
def test_cross_tabulations_follow_the_rule_of_each_column(
    stored: Stored, label: Outside, code: Outside
) -> None:
    """A row that is dropped for one of its columns is in no cell of the table."""
    with opened(stored, protected=two_columns(label, code)) as engine:
        found = engine.histogram(["home land", "label", "code"])
        keys = (LANDS, engine.keys("label"), engine.keys("code"))
    truth = recount.histogram(rows(), folds_of(label, code))
    assert found.keys == keys
    assert {key: found.at(*key) for key in product(*keys)} == {
        key: truth[key] for key in product(*keys)
    }
    assert 0 < sum(truth.values()) < len(rows())


@pytest.mark.parametrize(("label", "code"), TWO_COLUMNS)
@pytest.mark.parametrize("by", [(), ("home land",)])
def test_marginals_are_histograms_in_one_query(
    stored: Stored,
    label: Outside,
    code: Outside,
    by: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that is dropped for one of its columns still counts for the others."""
    scope = Scope(start=START + timedelta(minutes=45 * 2), end=START + timedelta(minutes=45 * 21))
    with opened(stored, protected=two_columns(label, code)) as engine:
        asked = statements(engine, monkeypatch)
        found = engine.cross_tabulations([(*by, "label"), (*by, "code")], scope)
        assert len(asked) == 1
        for one, column in zip(found, ("label", "code"), strict=True):
            assert one.columns == (*by, column)
            alone = engine.histogram((*by, column), scope)
            assert one.keys == alone.keys and np.array_equal(one.counts, alone.counts)
            chosen = [row for row in rows() if scope.start <= row["at"] < scope.end]
            folds = {name: folds_of(label, code)[name] for name in one.columns}
            truth = recount.histogram(chosen, folds)
            assert {key: one.at(*key) for key in product(*one.keys)} == {
                key: truth[key] for key in product(*one.keys)
            }
        empty = engine.cross_tabulations([(*by, "code")], Scope(start="2030-01-01"))
        assert not empty[0].counts.any()


def test_a_value_is_refused_whichever_column_is_named_first(stored: Stored) -> None:
    """Also in a row that another column would drop; and so by its own marginal alone."""
    with opened(stored, protected=two_columns("drop", "refuse")) as engine:
        for columns in (["label", "code"], ["code", "label"]):
            with raises(InvalidDeclaration, field="code"):
                engine.histogram(columns)
            with raises(InvalidDeclaration, field="code"):
                engine.cross_tabulations([[name] for name in columns])
        engine.cross_tabulations([["label"]])


def two_columns(label: Outside, code: Outside) -> tuple[Category, ...]:
    return Category("label", LABELS, label), Category("code", CODES, code, other=-99)


def folds_of(label: Outside, code: Outside) -> dict[str, recount.Fold]:
    def numbered(raw: Any) -> Any:
        return raw if raw in CODES else -99 if code == "other" else None

    return {
        "home land": recount.fold(LANDS, "drop"),
        "label": recount.fold(LABELS, label),
        "code": numbered,
    }


def statements(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL that an engine has its database run from now on."""
    run, found = engine._backend.rows, list[str]()

    def noted(text: str) -> list[tuple[Any, ...]]:
        found.append(text)
        return run(text)

    monkeypatch.setattr(engine._backend, "rows", noted)
    return found


@pytest.mark.parametrize("column", ["label", "code"])
@pytest.mark.parametrize("at_least", [1, 2, 3])
def test_labels_are_those_of_enough_people_in_the_scope(
    stored: Stored, column: str, at_least: int
) -> None:
    middle = START + timedelta(minutes=45 * 9)
    for scope in (Scope(), Scope(end=middle)):
        who = defaultdict[Any, set[str]](set)
        for row in rows():
            if row[column] is not None and (scope.end is None or row["at"] < middle):
                who[row[column]].add(row["person"])
        with opened(stored, protected=(FittedLabels(column),)) as engine:
            (found,) = find_labels(engine, [column], scope, at_least)
        kind = type(found.labels[0])  # labels that are found in a CSV file are text
        assert found.labels == tuple(sorted(kind(v) for v in who if len(who[v]) >= at_least))
        assert found.left_out == sum(len(people) < at_least for people in who.values())


def test_a_refused_value_is_an_error_that_does_not_tell_it(stored: Stored) -> None:
    with opened(stored, outside="refuse") as engine:
        for query in (
            lambda: engine.histogram(["label"]),
            lambda: engine.transitions("label"),
            lambda: check(engine),
        ):
            with raises(InvalidDeclaration, field="label") as refused:
                query()
            assert HIDDEN_VALUE not in str(refused.value) and "\n" not in str(refused.value)


def test_windows_hold_their_start_and_not_their_end(stored: Stored) -> None:
    middle = START + timedelta(minutes=45 * 9)
    end = START + timedelta(minutes=45 * 17)
    truth = [row for row in rows() if middle <= row["at"] < end]
    jakarta = timedelta(hours=7)
    with opened(stored) as engine:
        for start, stop in (
            (middle, end),
            (middle.isoformat(), f"{end.isoformat()}+07:00"),
            ((middle - jakarta).replace(tzinfo=UTC), (end - jakarta).replace(tzinfo=UTC)),
        ):
            scope = Scope(start=start, end=stop)
            assert engine.count(scope) == len(truth) > 0
            found = engine.histogram(["label"], scope)
            counted = recount.histogram(truth, {"label": recount.fold(LABELS, "other")})
            assert [found.at(key) for key in found.keys[0]] == [
                counted[(key,)] for key in found.keys[0]
            ]
        day = date(2012, 10, 28)
        later = sum(row["at"] >= datetime(2012, 10, 28) for row in rows())
        assert engine.count(Scope(start=day)) == later < engine.count()


def test_windows_on_instants_are_read_in_the_declared_zone(stored: Stored) -> None:
    order = Order("instant", "time", zone="Europe/Prague")
    # the clocks go back at 01:00 UTC: local 02:30 is 00:30 UTC, and 03:30 is 02:30 UTC
    with opened(stored, order=order) as engine:
        for local, utc in (("02:30", 0.5), ("03:30", 2.5)):
            instant = datetime(2012, 10, 28, tzinfo=UTC) + timedelta(hours=utc)
            truth = sum(row["instant"] >= instant for row in rows())
            assert engine.count(Scope(start=f"2012-10-28T{local}")) == truth
            assert engine.count(Scope(start=instant)) == truth
        first, last = engine.span()
    assert first == datetime(2012, 10, 28, 0, 30)
    top = max(row["instant"] for row in rows())
    assert last == (top + timedelta(hours=1)).replace(tzinfo=None, microsecond=0)


def test_windows_on_seconds_take_days_and_on_numbers_take_numbers(stored: Stored) -> None:
    with opened(stored, order=Order("unix", "unix", zone="Asia/Jakarta", ties=("row",))) as e:
        local = datetime(2012, 10, 28, 12)
        truth = sum(row["at"] >= local - timedelta(hours=7) for row in rows())
        assert e.count(Scope(start=local)) == truth > 0
        assert e.span()[0] == START + timedelta(hours=7)
    with opened(stored, order=Order("row", "number")) as engine:
        assert engine.count(Scope(start=10, end=20.5)) == 11
        assert engine.span() == (0.0, 95.0)
        with raises(InvalidQuery, field="start"):
            engine.count(Scope(start="2012-10-28"))


def test_sums_are_clamped_and_exact_under_each_rule(stored: Stored) -> None:
    for amount in (
        Amount("visits", Fraction(0), Fraction(10), Fraction(1), "drop"),
        Amount("visits", Fraction(-4), Fraction(10), Fraction(2), Fraction(6)),
        Amount("weight", Fraction(-1), Fraction(5, 2), Fraction(1, 4), "drop"),
        Amount("weight", Fraction(0), Fraction(2), Fraction(1, 8), Fraction(1)),
    ):
        with opened(stored, amounts=(amount,)) as engine:
            by_land = engine.sums(amount.column, by=["home land"])
            whole = engine.sums(amount.column)
        rules = (amount.low, amount.high, amount.step, amount.missing)
        for land in LANDS:
            mine = [row[amount.column] for row in rows() if row["home land"] == land]
            count, units = recount.total(mine, *rules)
            assert by_land.at(land) == units * amount.step
            assert by_land.counts[LANDS.index(land)] == count
        count, units = recount.total([row[amount.column] for row in rows()], *rules)
        assert (int(whole.counts), int(whole.units)) == (count, units)
        assert float(whole.values) == float(units * amount.step)


def test_distributions_count_every_cell_under_each_rule(stored: Stored) -> None:
    for amount in (
        Amount("visits", Fraction(0), Fraction(10), Fraction(1), "drop"),
        Amount("visits", Fraction(-4), Fraction(10), Fraction(2), Fraction(6)),
        Amount("weight", Fraction(-1), Fraction(5, 2), Fraction(1, 4), "drop"),
        Amount("weight", Fraction(0), Fraction(2), Fraction(1, 8), Fraction(1)),
    ):
        rules = (amount.low, amount.high, amount.step, amount.missing)
        with opened(stored, amounts=(amount,)) as engine:
            by_land = engine.distribution(amount.column, by=["home land"], every=3)
            for land in LANDS:
                mine = [row[amount.column] for row in rows() if row["home land"] == land]
                assert by_land.at(land).tolist() == recount.cells(mine, *rules, 3)
            begin = START + timedelta(hours=6)
            late = engine.distribution(amount.column, scope=Scope(start=begin))
            some = [row[amount.column] for row in rows() if row["at"] >= begin]
            assert late.counts.tolist() == recount.cells(some, *rules, 1)
            for every in (1, 3, 100):
                whole = engine.distribution(amount.column, every=every)
                every_row = [row[amount.column] for row in rows()]
                assert whole.counts.tolist() == recount.cells(every_row, *rules, every)
                assert whole.edges[0] == amount.low and whole.edges[-1] <= amount.high
                assert len(whole.edges) == len(whole.counts) and whole.counts.dtype == np.int64


def test_a_grid_that_is_too_fine_or_no_grid_is_refused(stored: Stored) -> None:
    fine = Amount("weight", Fraction(0), Fraction(2**20), Fraction(1, 1024), "drop")
    with opened(stored, amounts=(fine,)) as engine:
        with raises(TooLarge, limit=MOST_CELLS):
            engine.distribution("weight")
        for every in (0, -1, True, 1.5):
            with raises(InvalidQuery, field="every"):
                engine.distribution("weight", every=every)  # type: ignore[arg-type]


def test_a_refused_missing_number_is_an_error(stored: Stored) -> None:
    amount = Amount("visits", Fraction(0), Fraction(10), Fraction(1), "refuse")
    with opened(stored, amounts=(amount,)) as engine:
        with raises(InvalidDeclaration, field="visits"):
            engine.sums("visits")
        with raises(InvalidDeclaration, field="visits"):
            engine.distribution("visits")
        with raises(InvalidDeclaration, field="visits"):
            check(engine)


def opened(
    stored: Stored,
    *,
    entity: str = "person",
    outside: Outside = "other",
    lands: tuple[str, ...] | None = LANDS,
    public_outside: Outside = "refuse",
    order: Order | None = None,
    amounts: tuple[Amount, ...] = (),
    protected: tuple[Category | Amount, ...] | None = None,
    folder: Path = Path(),
) -> Engine:
    """An engine on stored rows, declared as the test needs it."""
    source, options = stored
    return open_engine(
        Declaration(
            source,
            entity,
            order or Order("at", "time", zone="Asia/Jakarta", ties=("row",)),
            protected or (Category("label", LABELS, outside), *amounts),
            (Category("home land", lands, public_outside),),
            folder=folder,
        ),
        **options,
    )
