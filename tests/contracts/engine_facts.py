"""What every engine tells of public facts and refuses: keys, shares, declarations, fingerprints.

A backend's test module imports it as it does `tests.contracts.engines`.
"""

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Amount, Category, InvalidDeclaration, InvalidQuery, Order
from takifugu.errors import TakifuguError, TooLarge
from takifugu.tables import Scope, Share, check, identities
from takifugu.tables.engine import MOST_CELLS
from tests.contracts.engines import HIDDEN_VALUE, MICROSECOND, START, Store, Stored, opened, rows
from tests.raising import raises
from tests.tables import recount


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
