"""What every engine must find out about who belongs together, held to plain loops over the rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Category, Declaration, InvalidQuery, Order
from takifugu.fitting.fit_kinds import fit_prior
from takifugu.fitting.fit_options import FitOptions
from takifugu.fitting.household_fitting import People, joint_runs
from takifugu.priors import MarkovChain, is_exchangeable
from takifugu.tables import Engine, open_engine
from takifugu.tables.household_facts import (
    Some,
    entities_without_one,
    household_sizes,
    households_of_others,
    public_labels,
    uneven_households,
    uneven_positions,
)
from takifugu.tables.scope import EVERYTHING
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


def couples() -> list[dict[str, Any]]:
    """Seven homes of two people, four to six times each, out of order; one label is mapped."""
    found = []
    for home in range(7):
        for k, role in enumerate(("child", ("parent", "mum", "Vater")[home % 3])):
            who = f"{'ba'[k]}{home}"  # by name the parent comes first, and then the child
            for time in range(4 + home % 3):
                label = ("home", "Café", "home", "東京")[(home * 3 + k * time + time * time) % 4]
                found.append(dict(line(who, f"h{home}", role, time), label=label))
    return [dict(row, row=k) for k, row in enumerate(found[::-1])]


@pytest.fixture(scope="module")
def pairs(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store("pairs", couples(), tmp_path_factory.mktemp("pairs"))


def joint_paths(
    table: list[dict[str, Any]], slots: Mapping[str, int]
) -> Counter[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The steps from one joint state to the next, one household after the other."""
    homes: dict[str, dict[datetime, list[str]]] = defaultdict(dict)
    for row in table:
        state = homes[row["home land"]].setdefault(row["at"], ["", ""])
        state[slots[row["person"]]] = row["label"]
    steps: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
    for states in homes.values():
        path = [tuple(states[at]) for at in sorted(states)]
        steps.update(pairwise(path))
    return steps


def matrix(chain: MarkovChain, steps: Counter[Any]) -> Any:
    return [[steps[x, y] for y in chain.states] for x in chain.states]


def normalised(counts: Any) -> Any:
    """Relative frequencies; what nothing follows is followed by every other one alike."""
    found = np.array(counts, dtype=np.float64)
    found[found.sum(axis=1) == 0] = 1
    np.fill_diagonal(found, np.where(np.array(counts).sum(axis=1) == 0, 0, np.diag(found)))
    return found / found.sum(axis=1, keepdims=True)


def test_joint_steps_of_named_members_are_counted(pairs: Stored) -> None:
    parents = {row["person"]: int(row["hidden"] == "child") for row in couples()}
    with at_home(pairs) as engine:
        people = People(engine, "label", "home land", "hidden", MEMBERS)
        exact = joint_runs(people, EVERYTHING)
        longer = joint_runs(people, EVERYTHING, 2)
        options = FitOptions(kind="household", household="home land", member="hidden")
        found = fit_prior(engine, ("label",), options, tested=True)
    chain = found.prior
    assert isinstance(chain, MarkovChain)
    assert chain.columns == MEMBERS and len(chain.states) == len(LABELS) ** 2
    steps = joint_paths(couples(), parents)
    assert exact.tolist() == matrix(chain, steps)
    assert longer.sum() == steps.total() - 7 and (longer.sum(axis=0) <= exact).all()
    assert found.goodness is not None and len(found.goodness.tests) == 2
    assert found.estimate.counted == steps.total() > 20
    assert np.allclose(chain.transition, normalised(exact), atol=1e-3)  # smoothed
    assert found.estimate.over == "household"
    assert found.estimate.stated == {"household": "home land", "member": "hidden"}


def test_members_who_are_alike_are_counted_in_every_order(pairs: Stored) -> None:
    with at_home(pairs) as engine:
        found = fit_prior(engine, ("label",), FitOptions(kind="household", household="home land"))
    chain = found.prior
    assert isinstance(chain, MarkovChain)
    assert is_exchangeable(chain) and chain.transition.min() > 0
    assert chain.columns == ("member 1", "member 2")
    steps = joint_paths(
        couples(), {row["person"]: int(row["hidden"] == "child") for row in couples()}
    )
    both = Counter({((*x[::-1],), (*y[::-1],)): n for (x, y), n in steps.items()}) + steps
    assert found.estimate.counted == steps.total()
    assert np.allclose(chain.transition, normalised(matrix(chain, both)), atol=1e-3)
    assert found.estimate.stated == {"household": "home land"}


def test_households_that_differ_are_not_fitted(homes: Stored, pairs: Stored) -> None:
    def refused(stored: Stored, **options: Any) -> Any:
        with at_home(stored) as engine:
            return fit_prior(engine, ("label",), FitOptions(kind="household", **options))

    with raises(InvalidQuery, field="home land", reason="households"):
        refused(homes, household="home land")
    with raises(InvalidQuery, field="household"):
        refused(pairs)
    with raises(InvalidQuery, field="label"):
        refused(pairs, household="label")
    with raises(InvalidQuery, field="share", reason="share"):
        refused(pairs, household="home land", share=Fraction(1, 2))
