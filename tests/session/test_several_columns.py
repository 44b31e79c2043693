"""Sessions of several protected columns: one budget, and each column pays for what is told."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Pure, Total
from takifugu.declarations import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Standing
from takifugu.ledger.charging import Payer
from takifugu.ledger.limits import Limit
from takifugu.priors import BayesianNetwork, Secrets
from takifugu.session.release_cost import Prices
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.columns_of_row import ColumnsOfRow, JointColumns
from tests.raising import raises
from tests.session.tables import CHAIN, HEALTH, HEALTH_GIVEN_PLACE, NETWORK, PLACES, opened_table
from tests.session.world import said

READINGS = [(NETWORK, "row"), (CHAIN, "sequence")]


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over"), READINGS)
def test_a_query_names_its_column_and_both_are_charged(
    tmp_path: Path, prior: Any, over: str
) -> None:
    with opened_table(tmp_path, prior, over) as (session, _):
        assert session.columns == ("place", "health")
        assert session.about is None
        with raises(InvalidQuery, field="column"):
            session.plan.histogram(epsilon=1)
        plan = session.plan.histogram("health", epsilon=1)
        loss: Any = plan.charge.loss
        assert loss.cost == Cost.of({Column("health", ANY): loss.epsilon})
        assert session.release(plan, accept_noise=True).cost.alone <= 1
        first = session.spent()
        session.release(session.plan.count(["home"], "place", epsilon=1), accept_noise=True)
        assert first <= 1 < session.spent() <= 2.0000001  # they depend on each other
        assert session.plan.histogram("health", epsilon=1).stored


def test_one_column_of_a_row_costs_epsilon_itself_and_the_other_less(tmp_path: Path) -> None:
    with opened_table(tmp_path, NETWORK, "row") as (session, _):
        plan = session.plan.histogram("place", epsilon=0.5)
        loss: Any = plan.charge.loss
        assert float(loss.epsilon) == pytest.approx(0.5, abs=0.01)
        losses = ColumnsOfRow({"prior": NETWORK}, {"place": Secrets(), "health": Secrets()}).losses(
            loss.cost
        )
        eps = float(loss.epsilon)
        q = {h: 0.6 * HEALTH_GIVEN_PLACE[0][h] for h in (0, 1)}
        out = {h: 0.4 * HEALTH_GIVEN_PLACE[1][h] for h in (0, 1)}
        posterior = [out[h] / (q[h] + out[h]) for h in (0, 1)]
        exact = max(
            abs(
                np.log1p((np.exp(s * eps) - 1) * posterior[1])
                - np.log1p((np.exp(s * eps) - 1) * posterior[0])
            )
            for s in (1, -1)
        )
        assert exact <= losses["health"] <= exact * 1.000001


@pytest.mark.parametrize(("prior", "over"), READINGS)
def test_the_guarantee_says_which_reading_it_is(tmp_path: Path, prior: Any, over: str) -> None:
    secrets = {"health": Secrets(pairs=((("ill",), ("well",)),))}
    with opened_table(tmp_path, prior, over, how={"secrets": secrets}) as (session, _):
        text = said(session)
    assert "The loss is about `place` and `health`, which share one budget" in text
    drawn = {
        "row": "The columns of each row are taken to be one draw from it",
        "sequence": "with the values of all protected columns as one joint state each",
    }
    assert drawn[over] in text
    assert "rows are independent of each other." in text or over == "sequence"
    assert "Of `health`: Only these are kept secret: the pairs ill against well." in text
    assert "Every pair of values of `place` is kept secret" in text


@pytest.mark.nightly
def test_a_translation_of_rows_may_be_given(tmp_path: Path) -> None:
    secrets = {"place": Secrets(), "health": Secrets()}
    with opened_table(tmp_path, JointColumns({"prior": CHAIN}, secrets), None) as (session, _):
        assert (
            session.release(
                session.plan.histogram("place", epsilon=1), accept_noise=True
            ).cost.alone
            <= 1
        )


def network(places: Any = PLACES, health: Any = HEALTH) -> BayesianNetwork:
    return BayesianNetwork(
        entries=("place", "health"),
        states=(places, health),
        parents=((), ("place",)),
        tables=(np.array((0.6, 0.4)), np.array(HEALTH_GIVEN_PLACE)),
    )


def test_labels_are_matched_by_name_and_type(tmp_path: Path) -> None:
    for prior, reason in (
        (network(health=("well", "sick")), "states-differ"),
        (network(health=(0, 1)), "states-differ"),
        (network(places=("out", "home")), None),
    ):
        if reason is None:
            with opened_table(tmp_path, prior, "row") as (session, _):
                assert session.plan.count(["out"], "place", epsilon=1).cost.fits
            continue
        with (
            raises(UnsoundRequest, reason=reason, field="prior"),
            opened_table(tmp_path, prior, "row"),
        ):
            pass


class OneRow(LossTranslation):
    """Any change of a row costs what it costs: rows are independent."""

    def to_pufferfish(self, dp: float, /) -> float:
        """As it is."""
        return dp

    def to_dp(self, pufferfish: float, /) -> float:
        """As it is."""
        return pufferfish


def test_a_loss_with_a_delta_is_one_of_rows(tmp_path: Path) -> None:
    delta = Fraction(1, 10**6)
    with opened_table(tmp_path, NETWORK, "row", budget=4, delta="1/1000000") as (session, ledger):
        plan = session.plan.histogram("place", epsilon=1, delta=delta)
        assert plan.cost.currency == "rho"
        rho = plan.cost.per_entry
        by_row = OneRow().total_to_pufferfish(Total(rho=rho), delta)
        assert plan.cost.alone == pytest.approx(by_row, rel=1e-3) and plan.cost.alone <= 1
        assert plan.cost.by_column is not None
        assert max(plan.cost.by_column.values()) <= plan.cost.alone
        session.release(plan, accept_noise=True)
        session.release(session.plan.histogram("health", epsilon=1), accept_noise=True)
        assert ledger.lost("table")[0].rho == rho
        both = Total(Fraction(1), rho=rho)  # beside a ρ a cost counts as any change of the row
        spent, bound = session.spent(), OneRow().total_to_pufferfish(both, delta)
        assert spent == pytest.approx(bound, rel=1e-2)
        assert session.plan.histogram("place", epsilon=1, delta=delta).stored


@pytest.mark.nightly
def test_a_delta_on_joint_states_costs_as_much_as_the_chain_says(tmp_path: Path) -> None:
    with opened_table(tmp_path, CHAIN, "sequence", budget=4, delta="1/1000000") as (session, _):
        plan = session.plan.histogram("place", epsilon=1, delta="1/1000000")
        rho, delta = plan.cost.per_entry, Fraction(1, 10**6)
        rows = JointColumns({"prior": CHAIN}, {"place": Secrets(), "health": Secrets()})
        assert OneRow().total_to_pufferfish(Total(rho=rho), delta) < 0.99  # not of one row alone
        assert rows.total_to_pufferfish(Total(rho=rho), delta) <= 1.0001
        assert plan.cost.by_column is not None and set(plan.cost.by_column) == {"place", "health"}


@pytest.mark.nightly
def test_secrets_that_are_not_kept_cost_nothing_of_them(tmp_path: Path) -> None:
    """Only some places of the sequence: the same release costs less, or as much."""
    kept = {"place": Secrets(entries=(0,)), "health": Secrets(entries=(0,))}
    with opened_table(tmp_path, CHAIN, "sequence", how={"secrets": kept}) as (session, _):
        some = session.plan.histogram("place", epsilon=1)
        assert "Of `place`: Only these are kept secret: the entries 0." in said(session)
    (tmp_path / "all").mkdir()
    with opened_table(tmp_path / "all", CHAIN, "sequence") as (session, _):
        every = session.plan.histogram("place", epsilon=1)
    assert some.cost.per_entry > every.cost.per_entry


def test_what_any_change_of_a_row_costs_is_told_by_column() -> None:
    secrets = {"place": Secrets(), "health": Secrets(pairs=((("ill",), ("well",)),))}
    rows = ColumnsOfRow({"prior": NETWORK}, secrets)
    payer = Payer(None, Fraction(10), Fraction(0), (Total(),), (Total(),))
    room = Standing.under(payer, Limit(rows, Fraction(10), Fraction(0)))
    found = Prices("table", rows).of(Pure("0.5"), Fraction(0), [room])
    assert found.by_column == rows.losses(Cost.any("0.5"))
    assert set(found.by_column or ()) == {"place", "health"} and found.by_value is None
    assert max((found.by_column or {}).values()) == found.alone
