"""What a session tells beside plans and answers: rehearsals, identities, events, the last row."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.losses import Pure
from takifugu.session import QueryOptions, Session
from takifugu.session.release_errors import MostlyNoise, SessionClosed
from takifugu.tables import open_engine
from tests.session.world import TRANSLATION, declaration, opened

pytestmark = pytest.mark.nightly

SURE = 400


def test_a_rehearsal_adds_up_and_spends_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, budget=10) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=4)
        charge, translation = session.chargeable(plan)
        assert charge == plan.charge
        head = ledger.head()
        found = session.rehearse([session.chargeable(plan)] * 4)
        assert [one.admitted for one in found] == [True, True, True, False]
        assert isinstance(charge.loss, Pure) and all(one.charge == charge for one in found)
        sums = [float_up(times * charge.loss.epsilon) for times in (1, 2, 3)]
        assert [one.spent for one in found[:3]] == list(map(translation.to_pufferfish, sums))
        assert found[3].spent == found[2].spent <= 10
        assert float(translation.to_pufferfish(float_up(4 * charge.loss.epsilon))) > 10
        assert ledger.head() == head


def test_an_identity_is_that_of_the_query_whatever_it_costs(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, _):
        one, dear = (
            session.identity(QueryOptions(kind="histogram", epsilon=epsilon)) for epsilon in (1, 2)
        )
        assert one == dear and set(one) == {"query", "window", "groups"}
        assert one["window"] is None is one["groups"]
        part = session.identity(
            QueryOptions(kind="histogram", epsilon=1, window=(1, 3), where={"zone": ["b"]})
        )
        assert part["window"] == {"unit": "step", "start": 1, "end": 3}
        assert part["groups"] == {"columns": ["zone"], "keys": [["b"]]}
        other = session.identity(QueryOptions(kind="count", values=["ward"], epsilon=1))
        assert other["query"] != one["query"]


def test_events_by_number_and_the_last_row(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        head = ledger.head()
        assert session.event(head.seq) == head
        assert session.event(0) is None is session.event(head.seq + 1)
        assert session.latest() == 3
        assert session.declaration.entity == "person"


def test_an_answer_that_is_mostly_noise_is_refused_until_it_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path, budget=20 * SURE) as (session, _, _):
        noisy = session.plan.histogram(epsilon="0.01")
        assert noisy.needs_confirmation
        with pytest.raises(MostlyNoise):
            session.refuse_noise(noisy)
        session.release(noisy, accept_noise=True)
        session.refuse_noise(session.plan.histogram(epsilon="0.01"))  # it is there, and is free


def test_a_guarantee_names_the_budget(tmp_path: Path) -> None:
    with opened(tmp_path, budget="7/2") as (session, ledger, _):
        assert "3.5" in session.guarantee()
        assert session.spent() == 0.0 == ledger.spent("visits", TRANSLATION)
        assert ledger.snapshot("visits").whole is not None
        ledger.set_budget("visits", Fraction(9, 2))
        assert "4.5" in session.guarantee()


def test_a_closed_session_tells_nothing(tmp_path: Path) -> None:
    with (
        open_engine(declaration(tmp_path), threads=1) as engine,
        Session(
            engine, TRANSLATION, ledger=tmp_path / "own.ledger", dataset="visits", budget=10
        ) as session,
    ):
        plan = session.plan.histogram(epsilon=1)
    asked: tuple[Callable[[], object], ...] = (
        session.guarantee,
        session.spent,
        session.latest,
        lambda: session.event(1),
        lambda: session.chargeable(plan),
        lambda: session.rehearse([]),
        lambda: session.identity(QueryOptions(kind="histogram", epsilon=1)),
    )
    for ask in asked:
        with pytest.raises(SessionClosed):
            ask()
