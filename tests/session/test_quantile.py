"""Quantiles: what is picked, how sure its rank is, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import exp, factorial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Pure
from takifugu.declarations import InvalidQuery
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.session.query.quantiles import (
    exponential_beyond,
    flips_beyond,
    levels,
    picker,
    ranks_of,
    reach,
)
from takifugu.session.query_options import QueryOptions
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.world import PLAIN, WEIGHT, opened

SURE = 20_000  # at this ε the rank is right but with a probability below 1e-9
HOW: dict[str, Any] = {"protected": (WEIGHT,), "translation": PLAIN}


def flips(scores: Sequence[float]) -> list[float]:
    """Permute-and-flip by its words: every order, each candidate in turn."""
    best, probabilities = max(scores), [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        left = 1.0 / factorial(len(scores))
        for candidate in order:
            taken = exp(scores[candidate] - best)
            probabilities[candidate] += left * taken
            left *= 1 - taken
    return probabilities


@settings(max_examples=60)
@given(ranks=st.lists(st.floats(0, 6), min_size=1, max_size=5), distance=st.floats(0.01, 6))
def test_no_table_is_missed_more_often_than_said(ranks: list[float], distance: float) -> None:
    scores = [0.0, *(-rank for rank in ranks)]
    missed = sum(c for c, s in zip(flips(scores), scores, strict=True) if -s > distance)
    assert missed <= flips_beyond(len(scores), distance) + 1e-12
    weights = [exp(score) for score in scores]
    missed = sum(w for w, s in zip(weights, scores, strict=True) if -s > distance) / sum(weights)
    assert missed <= exponential_beyond(len(scores), distance) + 1e-12


@pytest.mark.parametrize("cells", [2, 3, 5])
def test_the_worst_table_is_missed_as_often_as_said(cells: int) -> None:
    worst = [0.0] + [-1.5] * (cells - 1)
    assert 1 - flips(worst)[0] == pytest.approx(flips_beyond(cells, 1.5), rel=1e-9)
    for confidence in (0.5, 0.95, 0.999):
        for beyond in (flips_beyond, exponential_beyond):
            found = reach(beyond, cells, confidence)
            assert beyond(cells, found) <= 1 - confidence < beyond(cells, found * (1 - 1e-6)) + 1e-9
    assert flips_beyond(10**6, 100.0) < 1e-30 and flips_beyond(7, 0.0) == pytest.approx(6 / 7)


def test_quantiles_are_those_of_the_clamped_table(tmp_path: Path) -> None:
    """Zone a holds 0, 0.5, 2 and zone b holds 1, 3 and 9, which counts as 4."""
    with opened(tmp_path, budget=20 * SURE, **HOW) as (session, _, _):
        found = session.release(
            session.plan.quantile("0.5", by="zone", epsilon=SURE), accept_noise=True
        )
        assert found.columns == ("zone", "estimate", "low level", "high level")
        assert found.column("estimate") == [0.5, 3.0]
        assert session.release(
            session.plan.quantile(0.9, by="zone", epsilon=SURE), accept_noise=True
        ).column("estimate") == [2.0, 4.0]
        assert session.release(session.plan.quantile(0.1, epsilon=SURE), accept_noise=True).column(
            "estimate"
        ) == [0.0]
        coarse = session.release(
            session.plan.quantile("0.5", by="zone", grid=2, epsilon=SURE), accept_noise=True
        )
        assert coarse.column("estimate") == [0.0, 2.0]  # the lower ends of cells of width 2
        late = session.release(
            session.plan.quantile("0.5", by="zone", window=(3, None), epsilon=SURE),
            accept_noise=True,
        )
        assert late.rows == (("a", None, None, None), ("b", 1.0, *late.rows[1][2:]))


def test_levels_are_told_where_the_number_of_values_is_public(tmp_path: Path) -> None:
    with opened(tmp_path, budget=100, **HOW) as (session, _, _):
        plan = session.plan.quantile("0.5", by="zone", epsilon=50)
        found = session.release(plan, accept_noise=True)
        ranks = plan.error["ranks"]
        low, high = found.rows[0][2:]
        assert low == pytest.approx(max(0, 0.5 - ranks / 3))
        assert high == pytest.approx(min(1, 0.5 + ranks / 3))
        assert "rank" in plan.reason and plan.error["candidates"] == 9
    assert levels(Fraction(1, 2), 10.0, 1000) == pytest.approx((0.49, 0.51))
    away = replace(WEIGHT, missing="drop")
    other = tmp_path / "other"
    other.mkdir()
    forget_rows()
    with opened(other, budget=100, protected=(away,), translation=PLAIN) as (session, _, _):
        assert session.release(session.plan.quantile("0.5", epsilon=50), accept_noise=True).rows[0][
            1:
        ] == (None, None)


def test_missing_values_that_are_dropped_are_left_out(tmp_path: Path) -> None:
    rows = [("Ann", 0, "a", "home", ""), ("Ann", 1, "a", "home", 3), ("Ann", 2, "a", "home", 4)]
    away = replace(WEIGHT, missing="drop")
    how: dict[str, Any] = {"protected": (away,), "translation": PLAIN, "rows": rows}
    with opened(tmp_path, budget=9 * SURE, **how) as (session, _, _):
        assert session.release(
            session.plan.quantile("0.25", epsilon=SURE), accept_noise=True
        ).column("estimate") == [3.0]
    nothing = [("Ann", 0, "a", "home", ""), ("Ann", 1, "b", "home", 3)]
    with opened(tmp_path, budget=9 * SURE, **(how | {"rows": nothing})) as (session, _, _):
        found = session.release(
            session.plan.quantile("0.5", by="zone", epsilon=SURE), accept_noise=True
        ).column("estimate")
        assert found[0] in [i / 2 for i in range(9)] and found[1] == 3.0  # a has rows: an answer


def test_a_rank_that_is_wanted_costs_the_least_that_gives_it(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1000, **HOW) as (session, _, _):
        for confidence in (0.5, 0.95):
            plan = session.plan.quantile("0.5", within=2, confidence=confidence)
            mechanism: Any = plan.mechanism
            assert 1.9999 < ranks_of(mechanism, 9, confidence) <= 2
            cheaper = picker(Pure(plan.cost.per_entry * Fraction(999, 1000)), 2)
            assert ranks_of(cheaper, 9, confidence) > 2
        far = session.plan.quantile("0.5", within=4)
        near = session.plan.quantile("0.5", within=2)
        assert far.cost.alone < near.cost.alone and near.error["ranks"] <= 2


def test_what_is_no_quantile_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    fine = replace(WEIGHT, step=Fraction(1, 2**20))
    with opened(tmp_path, **HOW) as (session, ledger, _):
        head = ledger.head()
        for wrong in (
            {"level": 0}, {"level": 1}, {"level": -1}, {"level": "1.5"},
            {"level": None}, {"level": "0.5", "k": 2}, {"level": "0.5", "by": "state"},
            {"level": "0.5", "grid": "0.3"}, {"level": "0.5", "grid": 0},
            {"level": "0.5", "grid": 5},
        ):  # fmt: skip
            with pytest.raises(InvalidQuery):
                session.plan(QueryOptions("quantile", epsilon=1, **wrong))
        with raises(InvalidQuery, field="window"):
            session.plan.quantile("0.5", window=(50, None), epsilon=1)
        with raises(InvalidQuery, field="gap"):
            QueryOptions("quantile", level="0.5", epsilon=1, gap=2)
        for how in ({"within": 0}, {"within": 3, "confidence": 1}):
            with pytest.raises(UnsoundRequest):
                session.plan(QueryOptions("quantile", level="0.5", **how))  # type: ignore[arg-type]
        assert ledger.head() == head
    with opened(tmp_path, protected=(fine,), translation=PLAIN) as (session, _, _):
        with raises(TooLarge, field="grid", size=4 * 2**20 + 1, limit=2**16):
            session.plan.quantile("0.5", epsilon=1)
        coarse = session.plan.quantile("0.5", epsilon=1, grid="0.0625")
        assert coarse.error["candidates"] == 65
