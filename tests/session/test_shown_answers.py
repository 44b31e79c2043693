"""What sessions show of an answer: possible numbers, sure places, groups in order."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Amount, Category, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import NoisyTopK, PermuteAndFlip
from takifugu.priors import MarkovChain
from takifugu.session import Plan, Result, Session
from takifugu.session.query.sums import WeightedSum
from takifugu.session.query.top_k import TopKQuery
from takifugu.translation.translation import Translation
from tests.raising import raises
from tests.session.tables import NETWORK, opened_table
from tests.session.world import PLAIN, ROWS, STATES, WEIGHT, ZONES, opened

NOISY = 0.05  # at this ε noise is far wider than what is possible
SURE = 400


def within(result: Result, least: Any, most: Any, kind: type) -> None:
    """All numbers are in range and of one kind; the drawn ones are beside them and free."""
    for row in result.rows:
        estimate, low, high = row[-3:]
        assert {type(cell) for cell in (estimate, low, high)} == {kind}
        assert least <= low <= estimate <= high <= most
    assert result.raw is not None and len(result.raw) == len(result.rows)
    assert [row[:-3] for row in result.raw] == [row[:-3] for row in result.rows]
    for shown, drawn in zip(result.rows, result.raw, strict=True):
        half = (drawn[-1] - drawn[-2]) / 2
        near = min(max(drawn[-3], least), most)
        assert shown[-3:] == pytest.approx((near, max(near - half, least), min(near + half, most)))
    document = json.loads(result.to_json())
    assert document["raw"] == [list(row) for row in result.raw] and document["shown"]


def released(session: Session, plan: Plan) -> Result:
    """A release, however noisy it is."""
    return session.release(plan, accept_noise=True)


@pytest.mark.nightly
def test_counts_and_shares_are_possible(tmp_path: Path) -> None:
    steady = [(who, step, {"Ann": "a", "Bea": "b"}[who], *rest) for who, step, _, *rest in ROWS]
    rows = [row for row in steady if row[0] == "Ann"]  # all four in zone a, none in b
    with opened(tmp_path, rows=rows) as (session, _, _):
        plan = session.plan
        within(released(session, plan.histogram(epsilon=NOISY)), 0, 4, int)
        within(released(session, plan.count(["ward"], window=(1, None), epsilon=NOISY)), 0, 3, int)
        within(released(session, plan.counts(["ward"], epsilon=NOISY)), 0, 4, int)
        within(released(session, plan.transitions(epsilon=NOISY)), 0, 3, int)
        within(released(session, plan.proportions(epsilon=NOISY)), 0, 1, float)
        grouped = released(session, plan.histogram(by="zone", epsilon=NOISY))
        assert [row[2:] for row in grouped.rows if row[0] == "b"] == [(0, 0, 0)] * 2
        steps = released(session, plan.transitions(by="zone", epsilon=NOISY))
        assert [row[3:] for row in steps.rows if row[0] == "b"] == [(0, 0, 0)] * 4
        assert all(row[3] <= 3 for row in steps.rows)
        shares = released(session, plan.proportions(by="zone", epsilon=NOISY))
        assert [row[2:] for row in shares.rows if row[0] == "b"] == [(None, None, None)] * 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("amount", "least", "most"),
    [
        (WEIGHT, 0, 4),
        (Amount("weight", Fraction(-3), Fraction(-1), Fraction(1, 2), "refuse"), -3, -1),
        (Amount("weight", Fraction(2), Fraction(5), Fraction(1, 10), "drop"), 0, 5),
    ],
)
def test_sums_and_means_are_possible(tmp_path: Path, amount: Amount, least: int, most: int) -> None:
    how: dict[str, Any] = {"protected": (amount,), "translation": PLAIN}
    linear = {"load": WeightedSum("weight", "zone", {"a": "1/2", "b": -1})}
    with opened(tmp_path, **how, how={"linear": linear}) as (session, _, _):
        total = released(session, session.plan.sum(epsilon=NOISY))
        within(total, 6 * least, 6 * most, float)
        load = released(session, session.plan.linear("load", epsilon=NOISY))
        half = Fraction(3, 2)  # three rows of either zone
        within(load, float(half * least - 3 * most), float(half * most - 3 * least), float)
        if amount.missing != "drop":
            within(
                released(session, session.plan.mean(by="zone", epsilon=NOISY)), least, most, float
            )


def test_marginals_are_possible(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row") as (session, _):
        found = released(session, session.plan.marginals(epsilon=NOISY))
        assert found.columns == ("column", "label", "estimate", "low", "high")
        within(found, 0, 12, int)


@pytest.mark.nightly
def test_numbers_that_add_up_are_the_same_answer(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        for kind in ("proportions", "histogram"):
            plan = getattr(session.plan, kind)
            as_drawn = released(session, plan(by="zone", epsilon=NOISY))
            spent, events = session.spent(), len(list(ledger.history()))
            asked = plan(by="zone", epsilon=NOISY, sum_to_one=True)
            assert asked.stored and asked.query.sum_to_one
            summed = released(session, asked)
            assert summed.free and summed.raw == as_drawn.raw and len(summed.shown) == 2
            assert (session.spent(), len(list(ledger.history()))) == (spent, events)
            assert summed.query == as_drawn.query
            for zone in ZONES:
                shares = [row[2] for row in summed.rows if row[0] == zone]
                assert sum(shares) == pytest.approx(1 if kind == "proportions" else 3)
                assert min(shares) >= 0
            again = released(session, plan(by="zone", epsilon=NOISY))
            assert again.rows == as_drawn.rows and again.free
    other = tmp_path / "other"
    other.mkdir()
    dropped = (Category("state", STATES, "drop"),)
    with opened(other, protected=dropped) as (session, _, _):
        for kind in ("proportions", "histogram"):
            with raises(UnsoundRequest, field="sum_to_one", reason="no-public-size"):
                getattr(session.plan, kind)(epsilon=1, sum_to_one=True)


PLACES = ("ward", "home", "other")


@pytest.mark.nightly
def test_labels_can_be_left_out_of_a_ranking(tmp_path: Path) -> None:
    rows = [(f"p{i}", 0, "a", PLACES[min(i, 6) % 7 // 3], 1.0) for i in range(12)]
    states = (Category("state", PLACES[:2], "other"),)
    rows = [(*row[:3], row[3] if row[3] != "other" else "elsewhere", row[4]) for row in rows]
    chain = Translation(MarkovChain(np.full((3, 3), 1 / 3), states=PLACES, length=4))
    with opened(tmp_path, rows=rows, protected=states, translation=chain, budget=9 * SURE) as (
        session,
        ledger,
        _,
    ):
        every = released(session, session.plan.top_k(2, epsilon=SURE))
        assert every.column("state") == ["other", "ward"]
        plan = session.plan.top_k(2, epsilon=SURE, leave_out="other")
        assert not plan.stored and plan.charge.query["leave_out"] == ["other"]
        found = released(session, plan)
        assert found.column("state") == ["ward", "home"] and found.column("estimate") == [3, 3]
        assert released(session, session.plan.top_k(2, epsilon=SURE, leave_out=["other"])).free
        assert "leave_out" not in session.plan.top_k(2, epsilon=SURE).charge.query
        head = ledger.head()
        for wrong in (["nowhere"], ["other", "other"], ["other", "home"], list(PLACES)):
            with raises(InvalidQuery, field="leave_out"):
                session.plan.top_k(2, epsilon=1, leave_out=wrong)
        assert ledger.head() == head
    tables = tmp_path / "tables"
    tables.mkdir()
    with (
        opened_table(tables, NETWORK, "row") as (several, _),
        raises(InvalidQuery, field="leave_out", reason="several-columns"),
    ):
        several.plan.top_k(1, ("place", "health"), epsilon=1, leave_out="out")


def test_places_have_a_probability_or_say_why_not(tmp_path: Path) -> None:
    with opened(tmp_path, budget=50) as (session, _, _):
        sure = released(session, session.plan.top_k(2, epsilon=1))
        assert isinstance(session.plan.top_k(2, epsilon=1).mechanism, NoisyTopK)
        assert all(0 <= p <= 1 for p in sure.column("probability"))
        within_range = [0 <= row[3] <= row[2] <= row[4] <= 6 for row in sure.rows]
        assert all(within_range) and sure.raw is not None
        gap = session.plan.top_k(1, epsilon=1, gap=4)
        assert isinstance(gap.mechanism, PermuteAndFlip)
        named = released(session, gap)
        assert named.columns == ("rank", "state", "probability") and named.raw is None
        assert named.column("probability") == list(gap.error["right"])


def test_answers_of_earlier_versions_stay_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One label by permute-and-flip without a gap, and places of noisy counts without counts."""
    choose = TopKQuery.choose

    def then(query: TopKQuery, engine: Any, aim: Any) -> Any:
        return next(iter(query.chosen_earlier(engine, aim)), None) or choose(query, engine, aim)

    def draw(query: TopKQuery, mechanism: Any, engine: Any) -> list[Any]:
        return list(np.ravel(mechanism.release(query.exact(engine))).tolist())

    with opened(tmp_path, budget=50) as (session, _, _):
        with monkeypatch.context() as patched:
            patched.setattr(TopKQuery, "choose", then)
            patched.setattr(TopKQuery, "draw", draw)
            one = released(session, session.plan.top_k(1, epsilon=1))
            two = released(session, session.plan.top_k(2, by="zone", epsilon=1))
        assert one.mechanism["kind"] == "permute-and-flip"
        spent = session.spent()
        for plan, was in (
            (session.plan.top_k(1, epsilon=1), one),
            (session.plan.top_k(2, by="zone", epsilon=1), two),
        ):
            found = released(session, plan)
            assert plan.stored and found.free and found.rows == was.rows
            assert set(found.column("probability")) == {None} and len(found.shown) == 1
        assert session.spent() == spent
        anew = session.plan.top_k(1, epsilon=2)
        assert isinstance(anew.mechanism, NoisyTopK) and not anew.stored


def test_groups_are_shown_in_order_and_stored_as_before(tmp_path: Path) -> None:
    hours = [8, 9, 10, 11, 100]
    rows = [(f"p{i}", i, f"h{hour}", "ward", 1.0) for i, hour in enumerate(hours) for _ in [0]]
    public = (Category("zone", None, "refuse"),)
    with opened(tmp_path, rows=rows, public=public, budget=9 * SURE) as (session, ledger, engine):
        assert engine.keys("zone") == ("h10", "h100", "h11", "h8", "h9")
        found = released(
            session, session.plan.count(["ward"], by="zone", window=(1, None), epsilon=SURE)
        )
        assert found.column("zone") == [f"h{hour}" for hour in hours]
        assert found.column("estimate") == [0, 1, 1, 1, 1]
        (stored,) = ledger.history(kind="answer")
        assert stored.body["answer"]["drawn"] == [1, 1, 1, 0, 1]  # as the engine has them
        again = released(
            session, session.plan.count(["ward"], by="zone", window=(1, None), epsilon=SURE)
        )
        assert again.free and again.rows == found.rows
