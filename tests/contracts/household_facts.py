"""What every engine must find out about who belongs together, held to plain loops over the rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from takifugu.engines import Category, Declaration, Engine, InvalidQuery, Order, open_engine
from takifugu.engines.household_facts import (
    Some,
    entities_without_one,
    household_sizes,
    households_of_others,
    public_labels,
    uneven_households,
    uneven_positions,
)
from tests.contracts.engines import LABELS, Store, Stored
from tests.raising import raises

FIRST = datetime(2024, 3, 1, 8)
MEMBERS = ("parent", "child")
ROLES = Category("hidden", MEMBERS, "refuse", labels=(("mum", "parent"), ("Vater", "parent")))
HOMES: Mapping[str, tuple[tuple[str, str, tuple[int, ...]], ...]] = {  # who, as what, when
    "a": (("a1", "parent", (0, 1, 2)), ("a2", "child", (0, 1, 2))),
    "b": (("b1", "mum", (0, 1)), ("b2", "child", (0, 1))),
    "č": (("č1", "Vater", (0, 2, 3)), ("č2", "child", (0, 2, 3))),
    "alone": (("d1", "parent", (0, 1)),),
    "three": (("e1", "parent", (0,)), ("e2", "child", (0,)), ("e3", "child", (0,))),
    "two of a kind": (("f1", "parent", (0, 1)), ("f2", "mum", (0, 1))),
    "apart": (("g1", "parent", (0, 1)), ("g2", "child", (0, 2))),
    "late": (("h1", "parent", (1,)), ("h2", "child", (1,))),
}


def residents() -> list[dict[str, Any]]:
    """Households of several shapes, one person who moves, one without a home, out of order."""
    found = [
        line(who, home, role, time)
        for home, members in HOMES.items()
        for who, role, times in members
        for time in times
    ]
    found += [line("mover", home, "child", time) for time, home in enumerate(("x", "y"))]
    found += [line("nowhere", home, "child", time) for time, home in enumerate(("z", None))]
    found += [line("actor", "w", role, time) for time, role in enumerate(("child", "mum"))]
    return [dict(row, row=k) for k, row in enumerate(found[7:] + found[:7])]


def line(who: str, home: str | None, role: str, time: int) -> dict[str, Any]:
    at = FIRST + timedelta(hours=time)
    return {
        "person": who,
        "at": at,
        "instant": at.replace(tzinfo=UTC),
        "unix": int(at.replace(tzinfo=UTC).timestamp()),
        "row": 0,
        "label": "home",
        "code": time,
        "home land": home,
        "visits": 1,
        "weight": 0.5,
        "hidden": role,
    }


@pytest.fixture(scope="module")
def homes(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store("homes", residents(), tmp_path_factory.mktemp("homes"))


def at_home(homes: Stored, order: Order | None = None) -> Engine:
    source, options = homes
    return open_engine(
        Declaration(
            source,
            "person",
            order or Order("at", "time", zone="Asia/Jakarta"),
            (Category("label", LABELS, "refuse"),),
            (Category("home land", None, "drop"), ROLES),
        ),
        **options,
    )


def test_somebody_without_one_household_is_found(homes: Stored) -> None:
    truth = defaultdict(set)
    for row in residents():
        truth[row["person"]].add(row["home land"])
    astray = sorted(who for who, found in truth.items() if len(found) > 1 or None in found)
    with at_home(homes) as engine:
        assert entities_without_one(engine, "home land", 10) == Some(len(astray), tuple(astray))
        assert entities_without_one(engine, "home land", 1).first == ("mover",)
        assert entities_without_one(engine, "hidden", 10) == Some(1, ("actor",))
        assert not entities_without_one(engine, "label", 10)


def test_households_are_counted_by_size(homes: Stored) -> None:
    truth = defaultdict(set)
    for row in residents():
        if row["home land"] is not None:
            truth[row["home land"]].add(row["person"])
    with at_home(homes) as engine:
        assert household_sizes(engine, "home land") == Counter(map(len, truth.values()))


def test_households_of_other_members_are_found(homes: Stored) -> None:
    folded = {"mum": "parent", "Vater": "parent"}
    truth = defaultdict(set)
    for row in residents():
        role = folded.get(row["hidden"], row["hidden"])
        truth[row["home land"]].add((row["person"], row["hidden"], role))
    others = [
        home
        for home, found in truth.items()
        if home is not None and sorted(role for *_, role in found) != sorted(MEMBERS)
    ]
    with at_home(homes) as engine:
        found = households_of_others(engine, "home land", "hidden", MEMBERS, 20)
    assert set(others) <= set(found.first) and found.count == len(others) + 1  # the missing home
    assert not {"a", "b", "č", "apart", "late"} & set(found.first)
    with at_home(homes) as engine:  # nobody is a cousin
        assert households_of_others(
            engine, "home land", "hidden", ("parent", "cousin"), 1
        ).count >= len(HOMES)


@pytest.mark.parametrize("order", ["at", "instant", "unix", "code"])
def test_households_whose_members_have_rows_at_other_times_are_found(
    homes: Stored, order: str
) -> None:
    counted = Counter((row["home land"], row[order]) for row in residents())
    uneven = {home for (home, _), rows in counted.items() if rows != 2}
    kind = {"at": "time", "instant": "time", "unix": "unix", "code": "number"}[order]
    declared = Order(order, kind, zone=None if kind == "number" else "UTC")  # type: ignore[arg-type]
    with at_home(homes, declared) as engine:
        found = uneven_households(engine, "home land", 2, 20)
        assert set(found.first) == uneven and found.count == len(uneven)
        assert {"apart", "alone", "three"} <= uneven and not {"a", "b", "č", "late"} & uneven


def test_ties_are_part_of_a_place(homes: Stored) -> None:
    with at_home(homes, Order("at", "time", zone="UTC", ties=("row",))) as engine:
        assert set(HOMES) <= set(uneven_households(engine, "home land", 2, 20).first)
        assert uneven_positions(engine, 10).first[:2] == (0, 1)


@pytest.mark.parametrize("order", ["at", "instant", "unix", "code"])
def test_positions_that_are_other_times_for_some_people_are_found(
    homes: Stored, order: str
) -> None:
    times = defaultdict(list)
    for row in residents():
        times[row["person"]].append(row[order])
    at = defaultdict(set)
    for found in times.values():
        for position, time in enumerate(sorted(found)):
            at[position].add(time)
    uneven = tuple(sorted(position for position, seen in at.items() if len(seen) > 1))
    kind = {"at": "time", "instant": "time", "unix": "unix", "code": "number"}[order]
    declared = Order(order, kind, zone=None if kind == "number" else "UTC")  # type: ignore[arg-type]
    with at_home(homes, declared) as engine:
        assert uneven_positions(engine, 10) == Some(len(uneven), uneven)
        assert uneven == (0, 1, 2)


def test_only_a_public_column_groups_people(homes: Stored) -> None:
    with at_home(homes) as engine:
        assert public_labels(engine, "hidden") == ROLES
        with raises(InvalidQuery, field="label"):
            public_labels(engine, "label")
