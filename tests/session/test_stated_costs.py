"""Every kind of query against the cost that it states: all neighbours, all outputs, exactly.

All tables over three cells lie in one file, told apart by the public column ``world``. For every
two of them that differ in one cell the law of the mechanism's output is written down from its
definition, and the largest log-ratio over all outputs compared with the cost between the values.
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
from takifugu.binding.protected_values import WHOLLY, ProtectedValues
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Pure
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.declarations.columns import Outside
from takifugu.mechanisms import IntegerLaplace, RandomisedResponse, channel_cost
from takifugu.priors import MarkovChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.session.cells import rows_of
from takifugu.session.query.counts import CountQuery, CountsQuery, HistogramQuery, ProportionsQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import Aim, Query
from takifugu.session.query.sums import MeanQuery, SumQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query.transitions import TransitionsQuery
from takifugu.tables import Engine, open_engine
from takifugu.translation.translation import Translation
from tests.oracles import noise as laws

RAW = ("home", "ward", "clinic", "flat", "abroad")  # "flat" is mapped to home; the last is outside
LABELS = ("home", "ward", "clinic")
TABLES = list(product(RAW, repeat=2))
GRID = (0.0, 0.5, 1.0, 2.5)
NUMBERS = list(product(GRID, repeat=2))
PLACES = (("Ann", 0, "a"), ("Ann", 1, "b"))


@contextmanager
def worlds(
    folder: Path, column: str, tables: list[tuple[Any, ...]], protected: Category | Amount
) -> Iterator[Engine]:
    """The tables; Ann has a third row in each, and Bea one, that stay as they are."""
    lines = [f"world,person,step,zone,{column}"]
    for world, table in enumerate(tables):
        for (person, step, zone), value in zip(PLACES, table, strict=True):
            lines.append(f"{world},{world}-{person},{step},{zone},{value}")
        lines.append(f"{world},{world}-Ann,2,a,{tables[0][0]}")
        lines.append(f"{world},{world}-Bea,0,b,{tables[-1][-1]}")
    path = folder / "worlds.csv"
    path.write_text("\n".join(lines) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (protected,),
        (
            Category("world", tuple(range(len(tables))), "refuse"),
            Category("zone", ("a", "b"), "refuse"),
        ),
    )
    with open_engine(declaration, threads=1) as engine:
        yield engine


def labelled(outside: Outside) -> tuple[Category, MarkovChain]:
    """The column, and a prior over its labels and what becomes of values outside them."""
    column = Category("state", LABELS, outside, labels=(("flat", "home"),))
    states = (*LABELS, "other" if outside == "other" else "nowhere")
    return column, MarkovChain(np.full((4, 4), 0.25), states=states)


def named(value: Any, outside: Outside) -> Any:
    """The state of the prior that a cell is in."""
    if value == "flat":
        return "home"
    if value in LABELS or isinstance(value, float):
        return value
    return "other" if outside == "other" else "nowhere"


def neighbours(tables: list[tuple[Any, ...]]) -> list[tuple[int, int, Any, Any]]:
    """Two tables that differ in one cell, and what they have there."""
    return [
        (i, j, one[cell], other[cell])
        for i, one in enumerate(tables)
        for j, other in enumerate(tables)
        for cell in range(len(one))
        if one[cell] != other[cell]
        and all(one[k] == other[k] for k in range(len(one)) if k != cell)
    ]


def laplace_loss(one: Integers, other: Integers, scale: float) -> Fraction:
    """The largest log P(o|one)/P(o|other) over all outputs o, by the definition of the noise.

    Each number has noise of its own, so that the largest is a sum of one for each number; beyond
    both exact numbers the ratio no longer changes.
    """
    total = 0
    for x, y in zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True):
        reached = range(min(x, y) - 2, max(x, y) + 3)
        total += max(abs(o - y) - abs(o - x) for o in reached)
    return total / Fraction(scale)


def answers(query: Query, engine: Engine, by: tuple[str, ...]) -> list[Integers]:
    """The exact answer in each world."""
    if isinstance(query, TransitionsQuery):
        worlds_of = range(len(engine.keys("world")))
        rows = [rows_of(engine.declaration, None, {"world": [world]}) for world in worlds_of]
        return [replace(query, rows=one).exact(engine) for one in rows]
    found = replace(query, by=("world", *by)).exact(engine)
    return [found[world] for world in range(len(found))]


def held(
    query: Query,
    engine: Engine,
    values: ProtectedValues,
    tables: list[tuple[Any, ...]],
    outside: Outside,
    by: tuple[str, ...],
) -> None:
    """The loss between any two values is at most their cost, and attained where it is not 0."""
    unit = query.unit_cost({query.column: values})
    noise = query.choose(engine, Aim(Pure("0.7"))).mechanism
    while not isinstance(noise, IntegerLaplace):
        noise = noise.total if hasattr(noise, "total") else noise.noise  # type: ignore[attr-defined]
    cost = unit * noise.loss.epsilon
    exact = answers(query, engine, by)
    attained: dict[tuple[Any, Any], Fraction] = {}
    for i, j, u, v in neighbours(tables):
        pair = named(u, outside), named(v, outside)
        lost = laplace_loss(exact[i], exact[j], noise.scale)
        assert lost <= cost.between(*pair)
        attained[pair] = max(attained.get(pair, Fraction(0)), lost)
    if unit != WHOLLY:  # not a digit too much
        for pair, lost in attained.items():
            assert float(lost) == pytest.approx(float(cost.between(*pair)), rel=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("by", [(), ("zone",)])
@pytest.mark.parametrize("outside", ["drop", "other"])
def test_no_count_tells_more_than_it_states(
    tmp_path: Path, outside: Outside, by: tuple[str, ...]
) -> None:
    column, prior = labelled(outside)
    with worlds(tmp_path, "state", TABLES, column) as engine:
        values = ProtectedValues.of(Translation(prior), engine.declaration, "state")
        assert values.labels == frozenset(prior.states)
        rows = rows_of(engine.declaration, None, None)
        sets = [("home",), ("ward",), ("home", "clinic"), LABELS]
        if outside == "other":
            sets += [("other",), ("home", "other"), (*LABELS, "other")]
        for labels in sets:
            for kind in (CountQuery, CountsQuery):
                query = kind("state", (), rows, labels)
                held(query, engine, values, TABLES, outside, by)
                everything = len(labels) == 4
                assert (query.unit_cost({query.column: values}) == WHOLLY) == everything
        for bars in (HistogramQuery("state", (), rows), ProportionsQuery("state", (), rows)):
            held(bars, engine, values, TABLES, outside, by)
            assert bars.unit_cost({bars.column: values}) == WHOLLY
        if not by:
            held(TransitionsQuery("state", (), rows), engine, values, TABLES, outside, by)


def test_every_change_of_label_moves_transitions_by_as_much(tmp_path: Path) -> None:
    """So that no two values are told apart less than others: the cost is ε·[u≠v]."""
    column = Category("state", LABELS, "refuse")
    tables = list(product(LABELS, repeat=3))
    with open_worlds_of_three(tmp_path, tables, column) as engine:
        rows = rows_of(engine.declaration, None, None)
        exact = answers(TransitionsQuery("state", (), rows), engine, ())
        moved: dict[tuple[Any, Any], int] = {}
        for i, j, u, v in neighbours(tables):
            change = int(np.abs(exact[i] - exact[j]).sum())
            moved[u, v] = max(moved.get((u, v), 0), change)
        assert set(moved.values()) == {4}


@contextmanager
def open_worlds_of_three(
    folder: Path, tables: list[tuple[Any, ...]], column: Category
) -> Iterator[Engine]:
    lines = ["world,person,step,state"]
    lines += [
        f"{world},{world}-Ann,{step},{value}"
        for world, table in enumerate(tables)
        for step, value in enumerate(table)
    ]
    path = folder / "three.csv"
    path.write_text("\n".join(lines) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (column,),
        (Category("world", tuple(range(len(tables))), "refuse"),),
    )
    with open_engine(declaration, threads=1) as engine:
        yield engine


@pytest.mark.parametrize("by", [(), ("zone",)])
def test_no_sum_or_mean_tells_more_than_it_states(tmp_path: Path, by: tuple[str, ...]) -> None:
    states = tuple(str(Fraction(n, 2)) for n in range(6))  # 0 to 5/2, in steps of a half
    amount = Amount("weight", Fraction(0), Fraction(5, 2), Fraction(1, 2), "refuse")
    prior = MarkovChain(np.full((6, 6), 1 / 6), states=states)
    with worlds(tmp_path, "weight", NUMBERS, amount) as engine:
        values = ProtectedValues.of(Translation(prior), engine.declaration, "weight")
        assert values.bounds == (Fraction(0), Fraction(5, 2))
        rows = rows_of(engine.declaration, None, None)
        for query in (SumQuery("weight", (), rows), MeanQuery("weight", (), rows)):
            assert query.unit_cost({query.column: values}) != WHOLLY
            held(query, engine, values, NUMBERS, "refuse", by)


@pytest.mark.parametrize(
    ("states", "missing"),
    [
        (("0", "1/2", "1", "3/2", "2", "5/2"), "drop"),  # a dropped value adds nothing
        ((0, 1, 2, 3, 4, 5), "refuse"),  # numbered: ranges, in some order
        (("0", "0.6", "1", "1.5", "2", "2.5"), "refuse"),  # one would be rounded
        (("0", "1.25", "2.5"), "refuse"),  # ranges, not numbers
        (("a", "b", "c", "d", "e", "f"), "refuse"),
    ],
)
def test_states_that_are_not_the_numbers_of_a_column_are_not_taken_for_them(
    tmp_path: Path, states: Any, missing: Any
) -> None:
    amount = Amount("weight", Fraction(0), Fraction(5, 2), Fraction(1, 2), missing)
    chain = MarkovChain(np.full((len(states),) * 2, 1 / len(states)), states=states)
    with worlds(tmp_path, "weight", NUMBERS, amount) as engine:
        values = ProtectedValues.of(Translation(chain), engine.declaration, "weight")
        assert values == ProtectedValues()
        assert SumQuery("weight", (), rows_of(engine.declaration, None, None)).unit_cost(
            {"weight": values}
        ) == Cost.any(1)


SELECTED = [table for table in TABLES if "abroad" not in table]


@pytest.mark.parametrize("k", [1, 2])
def test_no_ranking_tells_more_than_it_states(tmp_path: Path, k: int) -> None:
    """Permute-and-flip and the exponential mechanism; noisy sorting is made from a histogram."""
    column, prior = labelled("other")
    with worlds(tmp_path, "state", SELECTED, column) as engine:
        values = ProtectedValues.of(Translation(prior), engine.declaration, "state")
        query = TopKQuery("state", (), rows_of(engine.declaration, None, None), k)
        assert query.unit_cost({query.column: values}) == WHOLLY
        exact = [np.ravel(one).tolist() for one in answers(query, engine, ())]
        for law in (laws.permute_and_flip, laws.softmax):
            found = {tuple(x): laws.peeled(x, k, 2 * k / 0.7, law) for x in exact}
            for i, j, _, _ in neighbours(SELECTED):
                lost = laws.pure_loss(found[tuple(exact[i])], found[tuple(exact[j])])
                assert lost <= 0.7 + 1e-12


def test_no_quantile_tells_more_than_it_states(tmp_path: Path) -> None:
    amount = Amount("weight", Fraction(0), Fraction(5, 2), Fraction(1, 2), "refuse")
    prior = MarkovChain(np.full((6, 6), 1 / 6), states=tuple(str(Fraction(n, 2)) for n in range(6)))
    with worlds(tmp_path, "weight", NUMBERS, amount) as engine:
        values = ProtectedValues.of(Translation(prior), engine.declaration, "weight")
        query = QuantileQuery("weight", (), rows_of(engine.declaration, None, None))
        assert query.unit_cost({query.column: values}) == WHOLLY
        picker = query.choose(engine, Aim(Pure("0.7"))).mechanism
        scale = picker.scale  # type: ignore[attr-defined]
        exact = [np.ravel(one).tolist() for one in answers(query, engine, ())]
        found = [dict(enumerate(laws.permute_and_flip(x, scale))) for x in exact]
        lost = [laws.pure_loss(found[i], found[j]) for i, j, _, _ in neighbours(NUMBERS)]
        assert max(lost) <= 0.7 + 1e-12


def test_randomised_response_and_channels_tell_what_they_state() -> None:
    response = RandomisedResponse(("home", "ward", "clinic"), 0.6)
    table = response.channel()
    for u, v in product(range(3), repeat=2):
        ratios = [Fraction(p) / Fraction(q) for p, q in zip(table[u], table[v], strict=True)]
        stated = response.cost.between(response.categories[u], response.categories[v])
        assert float(max(ratios)) <= np.exp(float(stated)) * (1 + 1e-12)
    skewed = [[0.8, 0.15, 0.05], [0.3, 0.5, 0.2], [0.25, 0.25, 0.5]]
    cost = channel_cost(["home", "ward", "clinic"], skewed)
    for u, v in product(range(3), repeat=2):
        exact = float(cost.between(response.categories[u], response.categories[v]))
        ratio = max(p / q for p, q in zip(skewed[u], skewed[v], strict=True))
        assert exact >= np.log(ratio) - 1e-15
        assert exact == pytest.approx(np.log(ratio), abs=1e-12)
    assert cost.between("home", "ward") != cost.between("ward", "home")


CHAIN = MarkovChain(np.full((3, 3), 1 / 3), states=("home", "ward", "clinic"))
NUMBERED = MarkovChain(np.full((3, 3), 1 / 3))


def place(folder: Path, keys: tuple[Any, ...] = LABELS) -> Declaration:
    path = folder / "one.csv"
    path.write_text(f"person,step,state\nAnn,0,{keys[0]}\n")
    return Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (Category("state", keys, "refuse"),),
        (),
    )


@pytest.mark.parametrize(
    ("prior", "keys", "known"),
    [
        (CHAIN, LABELS, True),
        (CHAIN, tuple(reversed(LABELS)), True),  # by name, in any order
        (NUMBERED, LABELS, False),  # the first state may be any label
        (NUMBERED, (0, 1, 2), True),
        (NUMBERED, (2, 1, 0), False),  # by name or by place?
        ({"a": CHAIN, "b": NUMBERED}, LABELS, False),  # one prior that does not know them
        ({"a": CHAIN, "b": CHAIN}, LABELS, True),
        (Product({"Ann": CHAIN, "Bea": NUMBERED}), LABELS, False),
        (Product({"Ann": CHAIN, "Bea": CHAIN}), LABELS, True),
        (IndependentEntries({"0": {"home": 0.5, "ward": 0.25, "clinic": 0.25}}), LABELS, True),
        (
            MarkovChain(np.full((3, 3), 1 / 3), states=("0", "1", "2")),
            (0, 1, 2),
            False,
        ),  # 1 is not "1"
    ],
)
def test_labels_are_those_of_the_priors_by_name_alone(
    tmp_path: Path, prior: Any, keys: tuple[Any, ...], known: bool
) -> None:
    values = ProtectedValues.of(Translation(prior), place(tmp_path, keys), "state")
    assert values.labels == (frozenset(keys) if known else None)
    count = values.count(keys[:1])
    assert (count == WHOLLY) != known


def test_a_count_of_one_label_in_two_is_charged_as_telling_everything(tmp_path: Path) -> None:
    chain = MarkovChain(np.full((2, 2), 1 / 2), states=("home", "ward"))
    values = ProtectedValues.of(Translation(chain), place(tmp_path, ("home", "ward")), "state")
    assert values.count(["home"]) == values.counts(["home", "ward"]) == WHOLLY
