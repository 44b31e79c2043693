"""Queries of several columns against the cost that they state: all pairs of rows, all outputs.

A row has three protected columns: two of labels, and a number. All tables of one such row beside
rows that stay lie in one file, told apart by the public column ``world``. For every two of them,
which differ in one, two or all columns of that row, the law of the output is written down from the
definition of the mechanism, and the largest log-ratio over all outputs compared with the cost.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.binding.protected_values import ProtectedValues, Values
from takifugu.costs.cost import ANY, Column, Cost, Jointly, Membership, Steps
from takifugu.costs.losses import Pure
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.declarations.columns import Outside
from takifugu.mechanisms import IntegerLaplace
from takifugu.session.cells import rows_of
from takifugu.session.plans import query_of
from takifugu.session.query.counts import (
    CountQuery,
    CountsQuery,
    HistogramQuery,
    MarginalsQuery,
    ProportionsQuery,
)
from takifugu.session.query.query import Aim, Query
from takifugu.session.query.sums import MeanQuery, SumQuery, WeightedSumQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query.transitions import TransitionsQuery
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine, open_engine
from tests.oracles import noise as laws

PLACES, HEALTH, LOADS = ("home", "ward", "abroad"), ("ill", "well", "odd"), (0.0, 0.5, 2.0)
ROWS = list(product(PLACES, HEALTH, LOADS))  # "abroad" and "odd" are outside the declared lists
COLUMNS = ("place", "health", "load")
LOW, HIGH, STEP = Fraction(0), Fraction(2), Fraction(1, 2)


@contextmanager
def worlds(folder: Path, place: Outside, health: Outside) -> Iterator[Engine]:
    """The tables; Ann has two more rows in each, and Bea one, that stay as they are."""
    lines = ["world,person,step,hour,place,health,load"]
    for world, row in enumerate(ROWS):
        for person, step, hour, cells in (
            ("Ann", 0, 7, ("home", "well", 1.0)),
            ("Ann", 1, 8, row),
            ("Ann", 2, 7, ("home", "ill", 0.5)),
            ("Bea", 0, 9, ("ward", "well", 2.0)),
        ):
            lines.append(f"{world},{world}-{person},{step},{hour},{','.join(map(str, cells))}")
    path = folder / "worlds.csv"
    path.write_text("\n".join(lines) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (
            Category("place", ("home", "ward"), place),
            Category("health", ("ill", "well"), health),
            Amount("load", LOW, HIGH, STEP, "refuse"),
        ),
        (
            Category("world", tuple(range(len(ROWS))), "refuse"),
            Category("hour", (7, 8, 9), "refuse"),
        ),
    )
    with open_engine(declaration, threads=1) as engine:
        yield engine


def known(place: Outside, health: Outside) -> Values:
    """What priors know that name every value; what is outside is a state of its own."""
    return {
        "place": ProtectedValues(labels=frozenset({"home", "ward", beside(place)}), column="place"),
        "health": ProtectedValues(
            labels=frozenset({"ill", "well", beside(health)}), column="health"
        ),
        "load": ProtectedValues(bounds=(LOW, HIGH), step=STEP, column="load"),
    }


def beside(outside: Outside) -> str:
    return "other" if outside == "other" else "nowhere"


def state(row: tuple[Any, ...], place: Outside, health: Outside) -> tuple[Any, ...]:
    """The joint state that a row is in."""
    return (
        row[0] if row[0] != "abroad" else beside(place),
        row[1] if row[1] != "odd" else beside(health),
        row[2],
    )


def answers(query: Query, engine: Engine) -> list[list[int]]:
    """The exact answer in each world, number by number."""
    if isinstance(query, TransitionsQuery | WeightedSumQuery):
        scopes = [rows_of(engine.declaration, None, {"world": [w]}) for w in range(len(ROWS))]
        return [np.ravel(replace(query, rows=one).exact(engine)).tolist() for one in scopes]
    found = replace(query, by=("world", *query.by)).exact(engine)
    return [np.ravel(one).tolist() for one in found]


def laplace_loss(one: list[int], other: list[int], scale: float) -> Fraction:
    """The largest log P(o|one)/P(o|other) over all outputs o; each number has noise of its own."""
    total = 0
    for x, y in zip(one, other, strict=True):
        reached = range(min(x, y) - 2, max(x, y) + 3)
        total += max(abs(o - y) - abs(o - x) for o in reached)
    return total / Fraction(scale)


def held(
    query: Query, engine: Engine, place: Outside, health: Outside
) -> dict[tuple[int, int], tuple[Fraction, Fraction]]:
    """By pair of worlds: what is lost, and what is charged for it; never less."""
    unit = query.unit_cost(known(place, health))
    assert unit.scalar == 1  # of a per-entry loss of 1
    noise = query.choose(engine, Aim(Pure("0.7"))).mechanism
    while not isinstance(noise, IntegerLaplace):
        noise = noise.total if hasattr(noise, "total") else noise.noise  # type: ignore[attr-defined]
    cost = unit * noise.loss.epsilon
    exact = answers(query, engine)
    found = {}
    for i, j in permutations(range(len(ROWS)), 2):
        u, v = state(ROWS[i], place, health), state(ROWS[j], place, health)
        charged = cost.between(u, v, COLUMNS)
        lost = laplace_loss(exact[i], exact[j], noise.scale)
        assert lost <= charged
        found[i, j] = lost, charged
    return found


RULES: list[tuple[Outside, Outside]] = [("drop", "other"), ("other", "drop"), ("drop", "drop")]


@pytest.mark.nightly
@pytest.mark.parametrize(("place", "health"), RULES)
@pytest.mark.parametrize("by", [(), ("hour",)])
def test_cross_tabulations_cost_what_they_state_for_all_pairs_of_rows(
    tmp_path: Path, place: Outside, health: Outside, by: tuple[str, ...]
) -> None:
    with worlds(tmp_path, place, health) as engine:
        rows = rows_of(engine.declaration, None, None)
        for kind in (HistogramQuery, ProportionsQuery):
            query = kind("place", by, rows, beside=("health",))
            assert query.unit_cost(known(place, health)) == Cost.of(
                {Jointly(("health", "place")): 1}
            )
            found = held(query, engine, place, health)
            for (i, j), (lost, charged) in found.items():
                same = state(ROWS[i], place, health)[:2] == state(ROWS[j], place, health)[:2]
                assert (charged == 0) == same
                seen = [
                    "nowhere" not in state(ROWS[k], place, health)[:2] for k in (i, j)
                ]  # is in a cell of the table
                if not same and all(seen):  # one count down, another up: not a digit too much
                    assert float(lost) == pytest.approx(float(charged), rel=1e-12)


@pytest.mark.parametrize(("place", "health"), RULES)
@pytest.mark.parametrize("by", [(), ("hour",)])
def test_marginals_cost_what_they_state_for_all_pairs_of_rows(
    tmp_path: Path, place: Outside, health: Outside, by: tuple[str, ...]
) -> None:
    with worlds(tmp_path, place, health) as engine:
        query = MarginalsQuery(
            "place", by, rows_of(engine.declaration, None, None), beside=("health",)
        )
        unit = query.unit_cost(known(place, health))
        assert unit == Cost.of({Column("place", ANY): "1/2", Column("health", ANY): "1/2"})
        found = held(query, engine, place, health)
        one = max(charged for _, charged in found.values()) / 2
        for (i, j), (lost, charged) in found.items():
            u, v = state(ROWS[i], place, health), state(ROWS[j], place, health)
            assert charged == one * sum(a != b for a, b in zip(u[:2], v[:2], strict=True))
            if "nowhere" not in (*u, *v):
                assert float(lost) == pytest.approx(float(charged), rel=1e-12, abs=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize(("place", "health"), RULES)
def test_queries_of_one_column_tell_nothing_of_the_others(
    tmp_path: Path, place: Outside, health: Outside
) -> None:
    """Each against the pairs of rows that differ in any columns; sums cost by distance alone."""
    with worlds(tmp_path, place, health) as engine:
        rows = rows_of(engine.declaration, None, None)
        values = known(place, health)
        queries: list[tuple[Query, Cost]] = [
            (HistogramQuery("health", (), rows), Cost.of({Column("health", ANY): 1})),
            (
                CountQuery("place", (), rows, ("ward",)),
                Cost.of({Column("place", Membership({"ward"})): 1}),
            ),
            (SumQuery("load", (), rows), Cost.of({Column("load", Steps(LOW, HIGH, STEP)): 1})),
            (MeanQuery("load", (), rows), Cost.of({Column("load", Steps(LOW, HIGH, STEP)): 1})),
            (TransitionsQuery("place", (), rows), Cost.of({Column("place", ANY): 1})),
        ]
        for query, unit in queries:
            assert query.unit_cost(values) == unit
            found = held(query, engine, place, health)
            k = COLUMNS.index(query.column)
            for (i, j), (lost, charged) in found.items():
                u, v = state(ROWS[i], place, health), state(ROWS[j], place, health)
                if u[k] == v[k]:
                    assert lost == charged == 0
                if isinstance(query, SumQuery):
                    assert float(lost) == pytest.approx(float(charged), rel=1e-12)
        held(CountsQuery("place", (), rows, ("home", "ward")), engine, place, health)


@pytest.mark.nightly
@pytest.mark.parametrize("weights", [(1, 1, 1), ("1/2", "-3/4", 2), (0, "1/3", "1/6"), (2, -4, 6)])
def test_linear_queries_cost_what_they_state(tmp_path: Path, weights: Any) -> None:
    """Attained at a row of the largest weight; the rows of weight 0 are not read at all."""
    from takifugu.session.query.sums import WeightedSum

    with worlds(tmp_path, "drop", "drop") as engine:
        given = dict(zip((7, 8, 9), weights, strict=True))
        query = query_of(
            QueryOptions("linear", query="load", epsilon=1),
            engine.declaration,
            COLUMNS,
            {"load": WeightedSum("load", "hour", given)},
        )
        assert isinstance(query, WeightedSumQuery)
        assert query.unit_cost(known("drop", "drop")) == Cost.of(
            {Column("load", Steps(LOW, HIGH, STEP)): 1}
        )
        found = held(query, engine, "drop", "drop")
        changed, largest = (abs(Fraction(w)) for w in (weights[1], max(map(size, weights))))
        for (i, j), (lost, charged) in found.items():
            assert float(lost) == pytest.approx(float(charged * changed / largest), rel=1e-12)
            if ROWS[i][2] != ROWS[j][2]:
                assert charged > 0


def size(weight: Any) -> Fraction:
    return abs(Fraction(weight))


@pytest.mark.parametrize("k", [1, 2])
def test_a_ranking_of_combinations_tells_no_more_than_it_states(tmp_path: Path, k: int) -> None:
    with worlds(tmp_path, "other", "drop") as engine:
        rows = rows_of(engine.declaration, None, None)
        query = TopKQuery("place", (), rows, k, beside=("health",))
        unit = query.unit_cost(known("other", "drop"))
        assert unit == Cost.of({Jointly(("health", "place")): 1})
        exact = answers(query, engine)
        for law in (laws.permute_and_flip, laws.softmax):
            found = {tuple(x): laws.peeled(x, k, 2 * k / 0.7, law) for x in exact}
            for i, j in permutations(range(len(ROWS)), 2):
                u, v = state(ROWS[i], "other", "drop"), state(ROWS[j], "other", "drop")
                lost = laws.pure_loss(found[tuple(exact[i])], found[tuple(exact[j])])
                assert lost <= 0.7 * float(unit.between(u, v, COLUMNS)) + 1e-12
