"""Random histories of releases on two columns: what rows lost, by hand, against the ledger's word.

What each row lost is put together from the noise that was drawn, and what that means to somebody
who holds the prior is found by linear programs over all values of the table. The ledger must never
report less.
"""

import os
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.declarations import Category
from takifugu.priors import BayesianNetwork, MarkovChain
from takifugu.session import OverBudget
from tests.ledger.folders import example_folder
from tests.oracles.cost_programs import Array
from tests.oracles.table_programs import RowTerm, any_change, column_losses, row_matrix
from tests.session.tables import opened_table

DEEP = "DEEP" in os.environ
PLACES, HEALTH = ("home", "out", "ward"), ("well", "ill")
COLUMNS = {"place": PLACES, "health": HEALTH}
SIZES = (3, 2)
JOINT = tuple(product(PLACES, HEALTH))
STEPS = 3
RNG = np.random.default_rng(14)  # of the priors, once
P = RNG.dirichlet(np.full(6, 0.5), size=6)
START = RNG.dirichlet(np.full(6, 1.0))
CHAIN = MarkovChain(P, states=JOINT, columns=("place", "health"), start=START, length=STEPS)
PLACE = RNG.dirichlet(np.full(3, 1.0))
GIVEN = RNG.dirichlet(np.full(2, 0.4), size=3)
NETWORK = BayesianNetwork(
    entries=("place", "health"),
    states=(PLACES, HEALTH),
    parents=((), ("place",)),
    tables=(PLACE, GIVEN),
)
PEOPLE = {"ann": "a", "bob": "b"}
TABLE: dict[str, Any] = {
    "protected": (Category("place", PLACES, "refuse"), Category("health", HEALTH, "refuse")),
    "rows": [
        (who, step, zone, PLACES[(k + step) % 3], HEALTH[(k * step) % 2])
        for k, (who, zone) in enumerate(PEOPLE.items())
        for step in range(STEPS)
    ],
}
Asked = tuple[str, str, tuple[str, ...], tuple[int, int] | None, str | None, int]


def queries() -> st.SearchStrategy[Asked]:
    """Kind, column, labels, window, zone and ε in tenths; `together` cross-tabulates both."""

    def of(column: str) -> st.SearchStrategy[Asked]:
        labels = st.lists(st.sampled_from(COLUMNS[column]), min_size=1, max_size=2, unique=True)
        window = st.sampled_from([None, (0, 1), (0, 2), (1, 3)])
        zone = st.sampled_from([None, "a", "b"])
        kind = st.sampled_from(["histogram", "count", "together"])
        return st.tuples(kind, st.just(column), labels.map(tuple), window, zone, st.integers(1, 8))

    return st.sampled_from(tuple(COLUMNS)).flatmap(of)


def term(kind: str, column: str, labels: tuple[str, ...], scale: float) -> RowTerm:
    """What noise of this scale tells of a row, by the likelihoods of Laplace noise."""
    if kind == "together":
        return any_change(SIZES, (0, 1), 2 / scale)
    place, values = list(COLUMNS).index(column), COLUMNS[column]
    if kind == "histogram":
        return any_change(SIZES, (place,), 2 / scale)
    inside = np.array([value in labels for value in values])
    return RowTerm((place,), (inside[:, None] != inside[None]) / scale)


def truth(over: str, lost: dict[tuple[str, int], list[RowTerm]]) -> float:
    """The worst loss of any secret of any column of any row, from below."""
    matrices = {row: row_matrix(SIZES, terms) for row, terms in lost.items()}
    tables: list[tuple[Array, list[Array]]] = []
    if over == "row":
        law = (PLACE[:, None] * GIVEN).ravel()
        tables = [(law, [matrix]) for matrix in matrices.values()]
    else:
        law = np.zeros((6,) * STEPS)
        for states in product(range(6), repeat=STEPS):
            law[states] = START[states[0]] * np.prod([P[u, v] for u, v in pairwise(states)])
        tables = [(law, [matrices[who, step] for step in range(STEPS)]) for who in PEOPLE]
    return max(
        (
            found.lower
            for table, costs in tables
            for column in (0, 1)
            for found in column_losses(table, SIZES, costs, column)
            if any(cost.any() for cost in costs)
        ),
        default=0.0,
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over"), [(NETWORK, "row"), (CHAIN, "sequence")])
@settings(max_examples=100 if DEEP else 3, deadline=None)
@given(history=st.lists(queries(), min_size=1, max_size=5))
@example(  # both columns, other rows, other labels
    history=[
        ("count", "place", ("home",), (0, 2), None, 5),
        ("count", "place", ("out",), (1, 3), "a", 5),
        ("histogram", "health", ("ill",), None, None, 8),
        ("together", "place", ("home",), (0, 1), "b", 3),
    ]
)
def test_what_rows_lost_is_never_more_than_the_ledger_says(
    prior: Any, over: str, history: list[Asked]
) -> None:
    lost: dict[tuple[str, int], list[RowTerm]] = {
        (who, step): [] for who in PEOPLE for step in range(STEPS)
    }
    with (
        example_folder() as folder,
        opened_table(Path(folder), prior, over, budget=2, **TABLE) as (session, _),
    ):
        for kind, column, labels, window, zone, tenths in history:
            how: dict[str, Any] = {
                "window": window, "where": None if zone is None else {"zone": [zone]},
                "epsilon": Fraction(tenths, 10),
            }  # fmt: skip
            if kind == "count":
                plan = session.plan.count(labels, column, **how)
            else:
                read = tuple(COLUMNS) if kind == "together" else column
                plan = session.plan.histogram(read, **how)
            try:
                free = session.release(plan, accept_noise=True).free
            except OverBudget:
                continue
            scale = float(plan.mechanism.describe()["scale"])
            first, end = window or (0, STEPS)
            for (who, step), terms in lost.items():
                if not free and first <= step < end and zone in (None, PEOPLE[who]):
                    terms.append(term(kind, column, labels, scale))
        spent = session.spent()
    found = truth(over, lost)
    assert found <= spent * (1 + 1e-9) + 1e-9
    assert spent <= 2


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over"), [(NETWORK, "row"), (CHAIN, "sequence")])
def test_the_test_above_would_catch_columns_that_are_taken_to_be_independent(
    prior: Any, over: str
) -> None:
    """Both columns on every row: more than either column by itself, and close to the ledger's."""
    with (
        example_folder() as folder,
        opened_table(Path(folder), prior, over, budget=2, **TABLE) as (session, _),
    ):
        terms, alone = [], []
        for column in COLUMNS:
            plan = session.plan.histogram(column, epsilon=0.8)
            session.release(plan, accept_noise=True)
            scale = float(plan.mechanism.describe()["scale"])
            terms.append(term("histogram", column, (), scale))
            alone.append(plan.cost.alone)
        spent = session.spent()
    rows = [(who, step) for who in PEOPLE for step in range(STEPS)]
    found = truth(over, dict.fromkeys(rows, terms))
    assert max(alone) * 1.05 < found <= spent * (1 + 1e-9)
    assert spent < found * 1.25
