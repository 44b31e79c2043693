"""Sessions of several protected columns: one budget, and each column pays for what is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs import ANY, Column, Cost
from takifugu.engines import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.priors import BayesianNetwork, MarkovChain, Secrets
from takifugu.session import Session
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from takifugu.translation.rows.joint_columns import JointColumns
from tests.raising import raises
from tests.session.tables import (
    CHAIN,
    HEALTH,
    HEALTH_GIVEN_PLACE,
    JOINT,
    NETWORK,
    PLACES,
    opened_table,
)

READINGS = [(NETWORK, "row"), (CHAIN, "sequence")]


def said(session: Session) -> str:
    return " ".join(session.guarantee().split())


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
        assert session.release(plan).cost.alone <= 1
        first = session.spent()
        session.release(session.plan.count(["home"], "place", epsilon=1))
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


def test_a_joint_chain_says_over_and_must_be_over_the_columns(tmp_path: Path) -> None:
    with (
        raises(UnsoundRequest, reason="over-missing", field="prior"),
        opened_table(tmp_path, CHAIN, None),
    ):
        pass
    other = MarkovChain(
        CHAIN.transition, states=JOINT, columns=("place", "mood"), start=CHAIN.start, length=4
    )
    with (
        raises(UnsoundRequest, reason="columns-differ", given=("mood",), needed=("health",)),
        opened_table(tmp_path, other, "sequence"),
    ):
        pass


def test_a_joint_state_that_is_left_out_is_refused(tmp_path: Path) -> None:
    rows = np.array([[0.5, 0.25, 0.25], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])
    prior = MarkovChain(rows, states=JOINT[:3], columns=("place", "health"), length=4)
    with (
        raises(UnsoundRequest, reason="joint-states", given=3, needed=4),
        opened_table(tmp_path, prior, "sequence"),
    ):
        pass


def test_a_translation_of_rows_may_be_given(tmp_path: Path) -> None:
    secrets = {"place": Secrets(), "health": Secrets()}
    with opened_table(tmp_path, JointColumns({"prior": CHAIN}, secrets), None) as (session, _):
        assert session.release(session.plan.histogram("place", epsilon=1)).cost.alone <= 1


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
