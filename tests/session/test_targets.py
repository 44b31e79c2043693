"""An error that is wanted costs the least that gives it, for every kind of query."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms.candidates import gaussian_beyond, laplace_beyond
from takifugu.session import Plan, Session
from takifugu.session.query_options import QueryOptions
from tests.raising import raises
from tests.session.world import PLAIN, WEIGHT, opened

DELTA = "1e-6"
NUMBERS: list[tuple[dict[str, Any], float, float]] = [  # query, within, unit of the noise
    ({"kind": "histogram", "by": "zone"}, 50, 1),
    ({"kind": "count", "values": ["ward"]}, 20, 1),
    ({"kind": "transitions"}, 100, 1),
    ({"kind": "proportions"}, 8, 1 / 6),
    ({"kind": "proportions", "by": "zone"}, 8, 1 / 3),
    ({"kind": "sum"}, 40, 0.5),
    ({"kind": "mean"}, 10, 0.5 / 6),
    ({"kind": "mean", "by": "zone"}, 10, 0.5 / 3),
]


def beyond(plan: Plan, steps: int) -> float:
    """The probability that the noise of a plan is more than so many units."""
    found = plan.mechanism.describe()
    gaussian = "integer-gaussian" in (found["kind"], found.get("noise"))
    return (gaussian_beyond if gaussian else laplace_beyond)(found["scale"], steps)


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [None, DELTA])
@pytest.mark.parametrize(("query", "within", "unit"), NUMBERS)
def test_the_noise_is_the_most_that_keeps_the_target(
    tmp_path: Path, query: dict[str, Any], within: float, unit: float, delta: str | None
) -> None:
    numbers = query["kind"] in ("sum", "mean")
    how: dict[str, Any] = {"protected": (WEIGHT,), "translation": PLAIN} if numbers else {}
    with opened(tmp_path, budget=200, delta=DELTA, **how) as (session, _, _):
        steps = int(np.floor(within / unit * (1 + 1e-12)))
        for confidence in (0.5, 0.95, 0.999):
            plan = session.plan(
                QueryOptions(**query, within=within, confidence=confidence, delta=delta)
            )
            assert plan.cost.currency == ("epsilon" if delta is None else "rho")
            assert beyond(plan, steps) <= 1 - confidence < beyond(plan, steps - 1)
            assert beyond(plan, steps) > (1 - confidence) * 0.99  # a little more would miss
        assert_cheaper_when_wider(session, query, within, delta)
        if not numbers:
            assert session.release(plan, accept_noise=True).error["interval"] <= within


def assert_cheaper_when_wider(
    session: Session, query: dict[str, Any], within: float, delta: str | None
) -> None:
    prices = [
        session.plan(QueryOptions(**query, within=within * wider, delta=delta)).cost.per_entry
        for wider in (1, 2, 3)
    ]
    assert prices[0] > prices[1] > prices[2]
    sure = [
        session.plan(
            QueryOptions(**query, within=within, confidence=confidence, delta=delta)
        ).cost.per_entry
        for confidence in (0.5, 0.9, 0.99)
    ]
    assert sure[0] < sure[1] < sure[2]


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [None, DELTA])
def test_a_ranking_costs_the_least_with_which_places_are_right(
    tmp_path: Path, delta: str | None
) -> None:
    with opened(tmp_path, budget=200, delta=DELTA) as (session, _, _):
        how: dict[str, Any] = {"kind": "top_k", "k": 1, "delta": delta}
        plan = session.plan(QueryOptions(**how, gap=20, confidence=0.9))
        assert plan.error["right"][0] >= 0.9
        less = session.plan(QueryOptions(**how, gap=20, epsilon=plan.cost.alone * 0.97))
        assert less.error["right"][0] < 0.9
        assert (
            session.plan(QueryOptions(**how, gap=40, confidence=0.9)).cost.per_entry
            < plan.cost.per_entry
        )
        assert (
            session.plan(QueryOptions(**how, gap=20, confidence=0.95)).cost.per_entry
            > plan.cost.per_entry
        )
        known = session.plan(QueryOptions(**how, reference=[100, 80], confidence=0.9))
        assert known.cost.per_entry == pytest.approx(plan.cost.per_entry, rel=0.01)
        with raises(InvalidQuery, field="within"):
            QueryOptions(**how, within=3)
        with pytest.raises(UnsoundRequest, match="depends on the gaps"):
            session.plan(QueryOptions(**how, confidence=0.9))


def test_a_target_finer_than_the_answer_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, _):
        fine: list[tuple[dict[str, Any], float]] = [
            ({"kind": "histogram"}, 0.5),
            ({"kind": "proportions"}, 0.1),
            ({"kind": "count", "values": ["ward"]}, 0),
        ]
        for query, within in fine:
            with raises(UnsoundRequest, field="within"):
                session.plan(QueryOptions(**query, within=within))
        with pytest.raises(UnsoundRequest):
            session.plan.histogram(within=float("nan"))
        with raises(InvalidQuery, field="gap"):
            session.plan(QueryOptions("histogram", within=5, gap=2))
