"""What every engine does with sequences: transitions, order, ties, and chains fitted to them.

A backend's test module imports it as it does `tests.contracts.engines`.
"""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from takifugu.declarations import Category, Declaration, InvalidDeclaration, InvalidQuery, Order
from takifugu.declarations.columns import Outside
from takifugu.fitting import ByEntity, FirstDays, fit
from takifugu.priors import Transitions
from takifugu.tables import Scope, check, open_engine
from tests.contracts.engines import LABELS, LANDS, START, Store, Stored, opened, rows
from tests.raising import raises
from tests.tables import recount


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
