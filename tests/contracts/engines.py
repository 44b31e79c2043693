"""What every engine must do, whatever database is behind it; held to plain loops over the rows.

A backend's test module imports all of it and says, in a fixture ``store``, how rows are stored.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.engines import (
    Amount,
    ByEntity,
    Category,
    Declaration,
    Engine,
    FirstDays,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Scope,
    Share,
    Source,
    check,
    fit,
    identities,
    open_engine,
)
from takifugu.engines.declarations.columns import Outside
from takifugu.engines.declarations.label_lists import FittedLabels
from takifugu.engines.engine import MOST_CELLS
from takifugu.engines.label_finding import find_labels
from takifugu.errors import TakifuguError, TooLarge
from takifugu.priors import Transitions
from tests.engines import recount
from tests.raising import raises

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


def test_transitions_follow_entity_order_and_tie_breakers(stored: Stored) -> None:
    for outside in ("other", "drop"):
        paths = recount.sequences(
            rows(), "person", ("at", "row"), "label", recount.fold(LABELS, outside)
        )
        truth = recount.steps(paths)
        with opened(stored, outside=outside) as engine:
            found = engine.transitions("label")
            assert found == engine.transitions("label")
        assert {
            (x, y): int(found.counts[i, j])
            for i, x in enumerate(found.states)
            for j, y in enumerate(found.states)
        } == {(x, y): truth[x, y] for x in found.states for y in found.states}
        assert found.counts.sum() == sum(truth.values()) > 50


@pytest.mark.parametrize("outside", ["other", "drop"])
def test_transitions_of_each_group_are_those_of_its_entities(
    store: Store, tmp_path: Path, outside: Outside
) -> None:
    home = {"Ann": "ID", "Bea": "JP", "Čeněk": "ID"}
    settled = [{**row, "home land": home[row["person"]]} for row in rows()]
    middle = START + timedelta(minutes=45 * 9)
    with opened(store(f"settled_{outside}", settled, tmp_path), outside=outside) as engine:
        for scope, kept in (
            (Scope(), settled),
            (Scope(end=middle), [row for row in settled if row["at"] < middle]),
        ):
            engine.refuse_changes(["home land"], scope)
            found = engine.steps("label", ["home land"], scope)
            assert found.columns == ("home land", "label before", "label after")
            for land in LANDS:
                mine = [row for row in kept if row["home land"] == land]
                fold = recount.fold(LABELS, outside)
                truth = recount.steps(
                    recount.sequences(mine, "person", ("at", "row"), "label", fold)
                )
                assert {
                    (x, y): found.at(land, x, y) for x in found.keys[1] for y in found.keys[1]
                } == {(x, y): truth[x, y] for x in found.keys[1] for y in found.keys[1]}
            assert np.array_equal(found.counts.sum(axis=0), engine.steps("label", (), scope).counts)
        assert found.counts.sum() > 10


def test_a_column_that_changes_within_an_entity_is_refused(store: Store, tmp_path: Path) -> None:
    """By its keys, not its raw values; and only in the rows that are read."""
    raw = {"Ann": ("ID", "indonesia"), "Bea": ("JP", "JP"), "Čeněk": ("??", None)}
    changed = []
    for i, row in enumerate(rows()):
        changed.append({**row, "home land": raw[row["person"]][i % 2]})
    stored = store("changed", changed, tmp_path)
    source, options = stored
    merged = Category("home land", ("ID", "JP"), "other", labels=(("indonesia", "ID"),))
    dropped = Category("home land", ("ID", "JP"), "drop", labels=(("indonesia", "ID"),))
    folded = Category("home land", ("ID", "other"), "other", labels=(("indonesia", "other"),))
    apart = Category("home land", ("ID", "JP", "indonesia"), "drop")
    order = Order("at", "time", zone="Asia/Jakarta", ties=("row",))
    for public, fits in ((merged, True), (dropped, True), (folded, False), (apart, False)):
        declared = Declaration(
            source, "person", order, (Category("label", LABELS, "other"),), (public,)
        )
        with open_engine(declared, **options) as engine:
            if fits:
                engine.refuse_changes(["home land"])
                assert engine.steps("label", ["home land"]).counts.sum() > 10
            else:
                with raises(InvalidQuery, field="by, home land", reason="changes"):
                    engine.refuse_changes(["home land"])
                engine.refuse_changes(["home land"], Scope(start="2020-01-01"))
                engine.refuse_changes(["home land"], Scope(where={"home land": ["ID"]}))
    with opened(store("moved", rows(), tmp_path)) as engine:
        with raises(InvalidQuery, field="by, home land", reason="changes"):
            engine.refuse_changes(["home land"])
        engine.refuse_changes([])


def test_a_window_cuts_sequences(stored: Stored) -> None:
    middle = START + timedelta(minutes=45 * 9)
    kept = [row for row in rows() if row["at"] < middle]
    paths = recount.sequences(kept, "person", ("at", "row"), "label", recount.fold(LABELS, "other"))
    with opened(stored) as engine:
        found = engine.transitions("label", Scope(end=middle))
    assert found == Transitions.of(paths, states=(*LABELS, "other"))


def test_ties_that_nothing_settles_are_refused(stored: Stored) -> None:
    order = Order("at", "time", zone="Asia/Jakarta")
    with opened(stored, order=order) as engine:
        for query in (lambda: engine.transitions("label"), lambda: check(engine)):
            with raises(InvalidDeclaration, field="order, ties", reason="ties"):
                query()


def test_rows_without_a_place_or_an_owner_are_refused(store: Store, tmp_path: Path) -> None:
    for column in ("person", "at", "row"):
        broken = rows()
        broken[40][column] = None
        stored = store(f"without_{column}", broken, tmp_path)
        with opened(stored) as engine:
            for query in (lambda: engine.transitions("label"), lambda: check(engine)):
                with raises(InvalidDeclaration, reason="missing"):
                    query()
            if column == "person":
                with raises(InvalidDeclaration, reason="missing"):
                    engine.lengths()


def test_one_row_for_each_entity_needs_no_order(
    store: Store, stored: Stored, tmp_path: Path
) -> None:
    each = [row | {"person": f"p{i}"} for i, row in enumerate(rows())]
    with opened(store("survey", each, tmp_path), order=Order.none()) as engine:
        found = check(engine)
        assert (found.rows, found.entities, found.longest) == (len(each), len(each), 1)
        assert found.first is found.last is None
        assert engine.transitions("label").counts.sum() == 0
        truth = Counter(row["label"] if row["label"] in LABELS else "other" for row in each)
        assert engine.histogram(["label"]).counts.tolist() == [
            truth[label] for label in (*LABELS, "other")
        ]
        with raises(InvalidQuery, reason="no order"):
            fit(engine, "label", split=FirstDays(1))
    with (
        opened(stored, order=Order.none()) as engine,  # several rows of one
        raises(InvalidDeclaration, field="order", reason="missing"),
    ):
        check(engine)


def test_lengths_do_not_depend_on_protected_values(stored: Stored) -> None:
    mine = [row["person"] for row in rows()]
    truth = sorted(mine.count(person) for person in set(mine))
    for outside in ("other", "drop", "refuse"):
        with opened(stored, outside=outside) as engine:
            found = engine.lengths()
        assert np.repeat(found.lengths, found.entities).tolist() == truth
        assert (found.longest, found.rows) == (max(truth), len(mine))


def test_public_keys_are_read_where_declared_so(stored: Stored) -> None:
    with opened(stored, lands=None) as engine:
        assert engine.keys("home land") == ("ID", "JP")
        assert engine.histogram(["home land"]).counts.sum() == 96


def test_rows_are_chosen_by_public_keys_only(stored: Stored) -> None:
    truth = [row for row in rows() if row["home land"] == "JP"]
    with opened(stored) as engine:
        assert engine.count(Scope(where={"home land": ["JP", "XX"]})) == len(truth)
        with raises(InvalidQuery, field="where, home land"):
            engine.count(Scope(where={"home land": ["ZZ"]}))
        with raises(InvalidQuery, field="where, label"):
            engine.count(Scope(where={"label": ["home"]}))
    with opened(stored, lands=("JP",), public_outside="other") as engine:
        assert engine.count(Scope(where={"home land": ["other"]})) == 96 - len(truth)
        assert engine.count(Scope(where={"home land": ["other", "JP"]})) == 96
        assert engine.histogram(["home land"]).counts.tolist() == [len(truth), 96 - len(truth)]


def test_undeclared_public_keys_in_the_data_are_refused(stored: Stored) -> None:
    with (
        opened(stored, lands=("JP",)) as engine,
        raises(InvalidDeclaration, field="home land"),
    ):
        engine.histogram(["home land"])


def test_shares_of_entities_are_those_of_the_hash(stored: Stored) -> None:
    people = {row["person"] for row in rows()}
    for salt in ("a", "é'\\"):
        for low, high in ((0, Fraction(1, 2)), (Fraction(1, 2), 1), (Fraction(1, 3), 1)):
            share = Share(salt, Fraction(low), Fraction(high))
            chosen = {p for p in people if low <= recount.point(salt, p) < high}
            with opened(stored) as engine:
                found = engine.count(Scope(entities=share))
            assert found == sum(row["person"] in chosen for row in rows())


def test_labels_map_raw_values_of_text_and_of_numbers(stored: Stored) -> None:
    labels = {"Café": "food", "東京": "town", HIDDEN_VALUE: "home"}
    text = Category("label", ("food", "town", "home"), "other", labels=tuple(labels.items()))
    numbers = {"1": "one", "-3": "less"}
    code = Category("code", ("one", "less"), "other", labels=tuple(numbers.items()))
    with opened(stored, protected=(text, code)) as engine:
        found = engine.histogram(["label", "code"])
    folds = {
        "label": recount.fold(text.values or (), "other", labels),
        "code": recount.fold(code.values or (), "other", {1: "one", -3: "less"}),
    }
    truth = recount.histogram(rows(), folds)
    assert {(x, y): found.at(x, y) for x in found.keys[0] for y in found.keys[1]} == {
        (x, y): truth[x, y] for x in found.keys[0] for y in found.keys[1]
    }


def test_columns_that_were_not_declared_do_not_exist(stored: Stored) -> None:
    with opened(stored) as engine:
        for field, query in (
            ("hidden", lambda: engine.histogram(["hidden"])),
            ("hidden", lambda: engine.transitions("hidden")),
            ("hidden", lambda: engine.sums("hidden")),
            ("person", lambda: engine.histogram(["person"])),
            ("visits", lambda: engine.histogram(["visits"])),
        ):
            with raises(InvalidQuery, field=field):
                query()


def test_a_declaration_that_does_not_fit_is_one_clear_line(stored: Stored) -> None:
    numbers = Amount("label", Fraction(0), Fraction(1), Fraction(1), "drop")
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("nowhere", "", {"entity": "nowhere"}),
        (
            "label",
            "hold times or times with a zone",
            {
                "order": Order("label", "time", zone="UTC"),
                "protected": (Category("code", (1, 2), "drop"),),
            },
        ),
        ("label", "hold whole numbers", {"protected": (Category("label", (1, 2), "drop"),)}),
        ("label", "hold whole numbers or numbers", {"protected": (numbers,)}),
    ]
    if stored[0].kind != "csv":  # there they are read as text
        wrong += [
            ("weight", "hold text or whole numbers", {"entity": "weight"}),
            ("code", "hold text", {"protected": (Category("code", ("x",), "drop"),)}),
        ]
    for field, needed, change in wrong:
        with raises(InvalidDeclaration, field=field) as error:
            opened(stored, **change)
        assert needed in ("", error.value.needed)
        assert "\n" not in str(error.value)


def test_bad_queries_are_one_clear_line(stored: Stored) -> None:
    with opened(stored) as engine:
        with raises(InvalidQuery, field="columns", given="repeat a column"):
            engine.histogram(["label", "label"])
        with raises(InvalidQuery, field="columns", given="are none"):
            engine.histogram([])
        with raises(InvalidQuery, field="end"):
            engine.count(Scope(start="2012-10-28", end="2012-10-28"))
        with raises(InvalidQuery, field="start"):
            engine.count(Scope(start="someday"))
        with raises(InvalidQuery, field="scope"):
            engine.span(Scope(start="2020-01-01"))
        with raises(InvalidQuery, field="home land"):
            engine.histogram(["home land"]).at("ZZ")
    wide = Category("label", tuple(f"v{i}" for i in range(6_000)), "drop")
    with (
        opened(stored, protected=(wide,), lands=tuple(f"l{i}" for i in range(6_000))) as engine,
        raises(TooLarge, size=36_000_000, limit=MOST_CELLS),
    ):
        engine.histogram(["home land", "label"])


def test_an_empty_window_gives_zeros(stored: Stored) -> None:
    amount = Amount("visits", Fraction(0), Fraction(10), Fraction(1), "drop")
    scope = Scope(start="2020-01-01")
    with opened(stored, amounts=(amount,)) as engine:
        assert engine.count(scope) == 0
        assert not engine.histogram(["label"], scope).counts.any()
        assert not engine.transitions("label", scope).counts.any()
        assert (int(engine.sums("visits", scope=scope).units), engine.lengths(scope).rows) == (
            0,
            0,
        )


def test_a_check_tells_public_facts(stored: Stored) -> None:
    with opened(stored) as engine:
        found = check(engine)
    people = [row["person"] for row in rows()]
    assert (found.rows, found.entities) == (96, len(set(people)))
    assert found.longest == max(people.count(person) for person in people)
    assert (found.first, found.last) == (START, max(row["at"] for row in rows()))
    assert found.keys == {"label": 6, "home land": 3}


def test_fingerprints_are_stable_and_notice_a_new_row(
    store: Store, stored: Stored, tmp_path: Path
) -> None:
    with opened(stored) as engine:
        first = engine.fingerprint()
        assert engine.fingerprint() == first
        assert first.covers
    more = [*rows(), rows()[0] | {"row": 96}]
    with opened(store("more", more, tmp_path)) as engine:
        assert engine.fingerprint().fingerprint != first.fingerprint


def test_threads_may_ask_at_once(stored: Stored) -> None:
    with opened(stored) as engine, ThreadPoolExecutor(4) as pool:
        alone = engine.transitions("label")
        together = list(pool.map(lambda _: engine.transitions("label"), range(4)))
    assert together == [alone] * 4


def test_entities_are_told_by_name_with_their_rows(stored: Stored) -> None:
    truth = Counter(row["person"] for row in rows())
    with opened(stored) as engine:
        found = engine.entities(100)
        assert found == truth and list(engine.entities(1)) == [min(truth)]
        assert {type(who) for who in found} == {int if engine.whole_entities else str}


def test_a_fit_is_that_of_the_sequences(stored: Stored) -> None:
    states = (*LABELS, "other")
    paths = recount.sequences(
        rows(), "person", ("at", "row"), "label", recount.fold(LABELS, "other")
    )
    with opened(stored) as engine:
        found = fit(engine, "label", unseen="uniform")
        strict = fit(engine, "label", unseen="uniform", tau=None, other="unknown")
    truth = Transitions.of(paths, states=states)
    assert found.counts == truth
    assert found.chain == truth.chain(unseen="uniform", tau=1e-5)
    assert strict.chain.states == (*states, "unknown")
    assert found.test is None and "very rows" in found.statement


def test_a_fit_on_first_days_leaves_the_rest(stored: Stored) -> None:
    with opened(stored) as engine:
        found = fit(engine, "label", split=FirstDays(1), unseen="uniform")
        assert found.train.end == datetime(2012, 10, 28) and found.test is not None
        assert engine.count(found.train) + engine.count(found.test) == 96
    kept = [row for row in rows() if row["at"] < datetime(2012, 10, 28)]
    paths = recount.sequences(kept, "person", ("at", "row"), "label", recount.fold(LABELS, "other"))
    assert found.counts == Transitions.of(paths, states=(*LABELS, "other"))
    assert "first 1 days" in found.statement


def test_a_fit_on_a_share_of_entities_leaves_the_others(stored: Stored) -> None:
    people = sorted({row["person"] for row in rows()}, key=lambda p: recount.point("s", p))
    half = (recount.point("s", people[0]) + recount.point("s", people[1])) / 2
    with opened(stored) as engine:
        found = fit(engine, "label", split=ByEntity(half, salt="s"), unseen="uniform")
        assert found.test is not None
        apart = engine.count(found.test)
    kept = [row for row in rows() if row["person"] == people[0]]
    assert apart == 96 - len(kept)
    paths = recount.sequences(kept, "person", ("at", "row"), "label", recount.fold(LABELS, "other"))
    assert found.counts == Transitions.of(paths, states=(*LABELS, "other"))


def test_a_source_that_is_not_there_is_one_clear_line(stored: Stored) -> None:
    source, options = stored
    if source.table:
        source = replace(source, table="nothing_here")
        options = {key: value for key, value in options.items() if key != "frame"}
    else:
        source = replace(source, path="nothing_here.parquet")
    with pytest.raises(TakifuguError, match="nothing_here") as refused:
        opened((source, options))
    assert "\n" not in str(refused.value)


def test_keys_from_the_data_may_be_none_at_all(store: Store, tmp_path: Path) -> None:
    table = [{**row, "home land": None} for row in rows()]
    stored = store("nowhere", table, tmp_path)
    with opened(stored, lands=None, public_outside="drop") as engine:
        assert engine.keys("home land") == ()
        assert engine.histogram(["home land", "label"]).counts.shape[0] == 0
        assert engine.histogram(["label"]).counts.sum() == len(table)


@pytest.mark.parametrize("column", ["at", "instant", "unix", "row"])
def test_the_same_rows_are_recognised_whichever_database_has_them(
    stored: Stored, column: str
) -> None:
    """By entity and order, as any other source would tell them; by no address and no name."""
    kinds = {"at": "time", "instant": "time", "unix": "unix", "row": "number"}
    zone = None if column == "row" else "UTC"
    order = Order(column, kinds[column], zone=zone)  # type: ignore[arg-type]
    with opened(stored, order=order) as engine:
        found = dict(identities(engine, ("label",)))["content"]
    total = 0
    for row in rows():
        place = row[column]
        if isinstance(place, datetime):
            place = (place.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND
        text = f"{row['person']}\x1f{place}"
        total += int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:15], 16)
    assert found == (len(rows()), str(total), "label")


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
