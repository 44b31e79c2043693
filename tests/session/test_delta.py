"""Budgets with a δ: losses in ρ, and what they cost alone and together."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import open_ledger
from takifugu.mechanisms import IntegerGaussian, IntegerLaplace
from takifugu.session import OverBudget, Session, StalePlan
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import BudgetConflict
from takifugu.tables import open_engine
from takifugu.translation.accounting.tables import tabulate
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.world import PLAIN, TRANSLATION, WEIGHT, declaration, opened

MICRO = Fraction(1, 10**6)
LABELS: list[dict[str, Any]] = [
    {"kind": "histogram", "by": "zone"},
    {"kind": "count", "values": ["ward"]},
    {"kind": "proportions"},
    {"kind": "transitions"},
    {"kind": "top_k", "k": 1},
    {"kind": "top_k", "k": 2, "gap": 4},
]
NUMBERS: list[dict[str, Any]] = [
    {"kind": "sum"},
    {"kind": "mean", "by": "zone"},
    {"kind": "quantile", "level": "0.5"},
]


@pytest.mark.nightly
@pytest.mark.parametrize("numbers", [False, True])
def test_every_query_may_be_paid_in_rho(tmp_path: Path, numbers: bool) -> None:
    how: dict[str, Any] = {"protected": (WEIGHT,), "translation": PLAIN} if numbers else {}
    with opened(tmp_path, budget=10, delta="1e-6", **how) as (session, ledger, _):
        for query in NUMBERS if numbers else LABELS:
            plan = session.plan(QueryOptions(**query, epsilon="0.5", delta="1e-6"))
            assert plan.cost.currency == "rho" and plan.cost.delta == MICRO
            assert isinstance(plan.charge.loss, Concentrated)
            assert plan.charge.loss.rho == plan.cost.per_entry
            assert 0.4 < plan.cost.alone <= 0.5
            found = session.release(plan, accept_noise=True)
            assert not found.free and session.spent() == plan.cost.after
            assert session.release(plan, accept_noise=True).rows == found.rows
            assert "a probability of at most 1e-6" in " ".join(found.guarantee.split())
            assert "at delta = 1e-6" in str(plan)
        asked = len(NUMBERS if numbers else LABELS)
        assert session.spent() < 0.5 * asked  # in ε they would add up to more
        (worst,) = ledger.positions()[0].worst
        assert worst.epsilon == 0 and worst.delta == 0 and worst.rho > 0


def test_a_session_begins_the_budget_that_it_is_given(tmp_path: Path) -> None:
    """Both parts of it; and whoever gives another one later is refused."""
    given: dict[str, Any] = {"dataset": "visits", "budget": 2, "budget_delta": "1e-6"}
    with (
        open_engine(declaration(tmp_path), threads=1) as engine,
        open_ledger(tmp_path / "new.ledger") as ledger,
    ):
        for _ in range(2):  # it begins once
            Session(engine, TRANSLATION, ledger=ledger, **given)
            whole = ledger.snapshot("visits").whole
            assert whole is not None and whole.epsilon == 2 and whole.delta == MICRO
        for other in ({"budget": 3}, {"budget_delta": "1e-5"}, {"budget_delta": 0}):
            with pytest.raises(BudgetConflict):
                Session(engine, TRANSLATION, ledger=ledger, **(given | other))


@pytest.mark.nightly
def test_many_releases_cost_less_in_rho_than_in_epsilon(tmp_path: Path) -> None:
    spent = {}
    for delta in (None, "1e-6"):
        folder = tmp_path / str(delta)
        folder.mkdir()
        forget_rows()
        with opened(folder, budget=100, delta="1e-6") as (session, _, _):
            for value in (["ward"], ["home"]):
                for step in range(8):
                    session.release(
                        session.plan.count(value, window=(0, 4 + step), epsilon="0.4", delta=delta),
                        accept_noise=True,
                    )
            spent[delta] = session.spent()
    assert spent["1e-6"] < spent[None] / 2


def test_both_currencies_add_up_on_the_same_rows(tmp_path: Path) -> None:
    with opened(tmp_path, budget=3, delta="1e-6") as (session, ledger, _):
        smooth = session.plan.histogram(epsilon="0.5", delta="1e-6")
        session.release(smooth, accept_noise=True)
        pure = session.plan.count(["ward"], epsilon="0.5")
        assert pure.cost.currency == "epsilon" and pure.cost.delta == 0
        session.release(pure, accept_noise=True)
        (worst,) = ledger.positions()[0].worst
        assert worst == Total(pure.cost.per_entry, rho=smooth.cost.per_entry)
        assert session.spent() == pure.cost.after == TRANSLATION.total_to_pufferfish(worst, MICRO)
        assert smooth.cost.alone < session.spent() <= 3


def test_a_budget_can_be_asked_for_at_once_and_then_no_more(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1, delta="1e-6") as (session, _, _):
        plan = session.plan.histogram(epsilon=1, delta="1e-6")
        assert plan.cost.fits
        session.release(plan, accept_noise=True)
        assert 0.99 < session.spent() <= 1
        with pytest.raises(OverBudget):
            session.release(
                session.plan.count(["ward"], epsilon="0.5", delta="1e-6"), accept_noise=True
            )


def test_a_refusal_in_rho_names_an_epsilon_that_is_accepted(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1, delta="1e-6") as (session, _, _):
        session.release(session.plan.histogram(epsilon="0.7", delta="1e-6"), accept_noise=True)
        with pytest.raises(OverBudget) as refused:
            session.release(
                session.plan.count(["ward"], epsilon=1, delta="1e-6"), accept_noise=True
            )
        most = refused.value.most
        assert 0.4 < most < 1  # ρ adds, so that more than 0.3 is left
        session.release(
            session.plan.count(["ward"], epsilon=str(most), delta="1e-6"), accept_noise=True
        )
        assert session.spent() <= 1


def test_a_table_gives_the_same_guarantee_in_rho(tmp_path: Path) -> None:
    table = tabulate(TRANSLATION, losses=(0.01, 5.0), share=0.05)
    with opened(tmp_path, budget=2, delta="1e-6") as (_, ledger, engine):
        session = Session(
            engine, TRANSLATION, ledger=ledger, dataset="visits", translation_table=table
        )
        plan = session.plan.histogram(epsilon=1, delta="1e-6")
        session.release(plan, accept_noise=True)
        total = Total(rho=plan.cost.per_entry)
        assert TRANSLATION.total_to_pufferfish(total, MICRO) <= plan.cost.alone * (1 + 1e-3)
        assert plan.cost.alone <= 1 and session.spent() == plan.cost.after


def test_a_delta_that_the_budget_lacks_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, _):
        for delta in ("1e-6", 0, -1, 1, float("nan")):
            with pytest.raises(UnsoundRequest):
                session.plan.histogram(epsilon=1, delta=delta)
    with opened(tmp_path, delta="1e-6") as (session, ledger, engine):
        with raises(UnsoundRequest, field="delta", reason="above-budget", needed=MICRO):
            session.plan.histogram(epsilon=1, delta="1e-5")
        ledger.set_budget("visits", 5, analyst="Eve")
        eve = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Eve")
        with raises(UnsoundRequest, field="delta", reason="above-budget"):
            eve.plan.histogram(epsilon=1, delta="1e-6")
        ledger.set_budget("visits", 5, analyst="Eve", delta="1e-7")
        eve.release(eve.plan.histogram(epsilon=1, delta="1e-7"), accept_noise=True)
        assert ledger.spent("visits", TRANSLATION, analyst="Eve") <= 1
        assert eve.spent() < ledger.spent("visits", TRANSLATION, analyst="Eve")  # at a larger δ


def test_a_price_in_rho_cannot_be_passed_off_as_another(tmp_path: Path) -> None:
    with opened(tmp_path, delta="1e-6") as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1, delta="1e-6")
        noise = plan.mechanism
        assert isinstance(noise, IntegerGaussian)
        head = ledger.head()
        loud = IntegerLaplace(noise.scale, noise.sensitivity)
        for forged in (
            replace(plan, mechanism=loud),
            replace(plan, charge=replace(plan.charge, loss=Concentrated(noise.loss.rho / 2))),
            replace(
                plan,
                mechanism=loud,
                charge=replace(plan.charge, mechanism=loud.describe(), loss=noise.loss),
            ),
        ):
            with pytest.raises(StalePlan):
                session.release(forged, accept_noise=True)
        with raises(StalePlan, differences=("delta",)):
            session.release(replace(plan, delta=Fraction(1, 2)), accept_noise=True)
        assert ledger.head() == head
        assert session.release(plan, accept_noise=True).cost.delta == MICRO
