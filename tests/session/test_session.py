"""Plan, charge, release: the order, the price, the answers, and what is refused."""

import json
import re
from contextlib import AbstractContextManager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Category, InvalidDeclaration, InvalidQuery
from takifugu.errors import BudgetExceeded, NoBudget, NotAccepted, UnknownAnalyst, UnsoundRequest
from takifugu.ledger.storage.database import Connection, Store
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.independent import Product
from takifugu.session import OverBudget, ReleaseFailed, Session, StalePlan
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine
from takifugu.tables.aggregates import Histogram
from takifugu.translation.accounting.tables import tabulate
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.world import CHAIN, ROWS, STATES, TRANSLATION, WEIGHT, ZONES, accept, opened

SURE = 400  # at ε = 400 the noise on any number here is 0 but with a probability below 1e-9


def test_answers_are_those_of_the_table(tmp_path: Path) -> None:
    with opened(tmp_path, budget=20 * SURE) as (session, _, _):
        found = session.release(session.plan.histogram(by="zone", epsilon=SURE), accept_noise=True)
        assert found.columns == ("zone", "state", "estimate", "low", "high")
        assert found.column("estimate") == [2, 1, 2, 1]
        assert [row[:2] for row in found.rows] == [(z, s) for z in ZONES for s in STATES]
        assert session.release(
            session.plan.count(["ward"], by=["zone"], epsilon=SURE), accept_noise=True
        ).column("estimate") == [1, 1]
        assert session.release(
            session.plan.count(["ward"], window=(2, None), epsilon=SURE), accept_noise=True
        ).column("estimate") == [1]
        kept = session.release(
            session.plan.histogram(by="zone", where={"zone": ["b"]}, epsilon=SURE),
            accept_noise=True,
        )
        assert [row[:3] for row in kept.rows] == [("b", "home", 2), ("b", "ward", 1)]
        best = session.release(session.plan.top_k(1, by="zone", epsilon=SURE), accept_noise=True)
        assert best.columns == (
            "zone", "rank", "state", "estimate", "low", "high", "probability",
        )  # fmt: skip
        assert [row[:6] for row in best.rows] == [(z, 1, "home", 2, 2, 2) for z in ZONES]
        assert best.column("probability") == pytest.approx([1.0, 1.0])
        assert session.release(
            session.plan.top_k(2, window=(1, 3), epsilon=SURE), accept_noise=True
        ).column("state") == ["ward", "home"]
        steps = session.release(session.plan.transitions(epsilon=SURE), accept_noise=True)
        assert steps.column("estimate") == [1, 1, 1, 1]
        share = session.release(
            session.plan.proportions(by="zone", window=(0, 3), epsilon=SURE), accept_noise=True
        )
        assert share.column("estimate") == pytest.approx([2 / 3, 1 / 3, 1 / 2, 1 / 2])


def test_steps_by_a_column_that_is_constant_in_each_sequence(tmp_path: Path) -> None:
    rows = [(who, step, {"Ann": "a", "Bea": "b"}[who], *rest) for who, step, _, *rest in ROWS]
    with opened(tmp_path, budget=20 * SURE, rows=rows) as (session, _, _):
        found = session.release(
            session.plan.transitions(by="zone", epsilon=SURE), accept_noise=True
        )
        assert found.columns[:3] == ("zone", "state before", "state after")
        assert found.column("estimate") == [0, 1, 1, 1, 1, 0, 0, 0]
        kept = session.plan.transitions(by="zone", where={"zone": ["b"]}, epsilon=SURE)
        assert session.release(kept, accept_noise=True).column("estimate") == [1, 0, 0, 0]
    other = tmp_path / "other"
    other.mkdir()
    forget_rows()
    with opened(other) as (session, ledger, _):
        with raises(InvalidQuery, field="by, zone", reason="changes"):
            session.plan.transitions(by="zone", epsilon=1)
        session.plan.transitions(by="zone", where={"zone": ["a"]}, epsilon=1)
        session.plan.transitions(by="zone", window=(0, 1), epsilon=1)
        assert session.spent() == 0 and not ledger.events(kind="charge", limit=9)


def test_sums_and_means_are_those_of_the_clamped_table(tmp_path: Path) -> None:
    translation = Translation(MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4))
    how: dict[str, Any] = {"protected": (WEIGHT,), "translation": translation}
    with opened(tmp_path, budget=20 * SURE, **how) as (session, _, _):
        assert session.release(
            session.plan.sum(by="zone", epsilon=8 * SURE), accept_noise=True
        ).column("estimate") == [2.5, 8.0]
        mean = session.release(
            session.plan.mean(by="zone", window=(1, 3), epsilon=8 * SURE), accept_noise=True
        )
        assert mean.column("estimate") == [1.0, 4.0]
        empty = session.release(
            session.plan.mean(by="zone", window=(3, None), epsilon=SURE), accept_noise=True
        )
        assert empty.rows[0] == ("a", None, None, None)


def test_a_value_that_may_be_missing_moves_a_sum_by_all_of_it(tmp_path: Path) -> None:
    far = replace(WEIGHT, low=Fraction(3), missing="drop")
    translation = Translation(MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4))
    with opened(tmp_path, protected=(far,), translation=translation) as (session, _, _):
        plan = session.plan.sum(epsilon=1)
        assert plan.mechanism.describe()["sensitivity"]["l1"] == 8  # from 0 to 4 in halves
        with raises(UnsoundRequest, field="weight", reason="no-public-size"):
            session.plan.mean(epsilon=1)


def test_a_plan_spends_nothing_and_reads_nothing_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as (session, ledger, engine):
        asked: list[str] = []
        rows = engine._backend.rows

        def watched(sql: str) -> list[tuple[Any, ...]]:
            asked.append(sql)
            return rows(sql)

        monkeypatch.setattr(engine._backend, "rows", watched)
        plan = session.plan.proportions(by="zone", window=(0, 2), epsilon=1)
        head = ledger.head()  # that these data were seen is an event
        session.plan.top_k(1, gap=3, confidence=0.9)
        assert asked and not any('"state"' in sql for sql in asked)
        assert ledger.head() == head and session.spent() == 0
        session.release(plan, accept_noise=True)
        assert any('"state"' in sql for sql in asked)  # the watch sees it when it happens


def test_the_price_is_what_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path, budget=3) as (session, ledger, _):
        first = session.plan.histogram(epsilon=1)
        assert first.cost.fits and first.cost.before == 0
        assert first.cost.alone <= 1 and first.cost.marginal == first.cost.after == first.cost.alone
        session.release(first, accept_noise=True)
        assert session.spent() == first.cost.after
        second = session.plan.histogram(window=(0, 2), epsilon=1)
        session.release(second, accept_noise=True)
        assert session.spent() == second.cost.after
        third = session.plan.histogram(window=(2, None), epsilon=1)
        assert third.cost.marginal == 0  # other entries, and none worse than before
        session.release(third, accept_noise=True)
        assert session.spent() == second.cost.after
        fourth = session.plan.count(["ward"], where={"zone": ["a"]}, epsilon=0.25)
        session.release(fourth, accept_noise=True)
        assert session.spent() == fourth.cost.after
        (worst,) = ledger.positions()[0].worst
        assert worst.epsilon == sum(p.cost.per_entry for p in (first, second, fourth))


def test_the_same_query_again_is_free_and_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1) as (session, _, _):
        first = session.release(session.plan.histogram(by="zone", epsilon="0.9"), accept_noise=True)
        spent = session.spent()
        plan = session.plan.histogram(by="zone", epsilon="0.9")
        assert plan.stored and plan.cost.fits and plan.cost.marginal == 0
        assert plan.cost.before == plan.cost.after == spent
        assert plan.cost.before == first.cost.after
        again = session.release(plan)  # noise that was paid for needs no confirmation
        assert again.free and not first.free and again.rows == first.rows
        assert again.cost.describe()["marginal"] == 0 and again.cost.after == first.cost.after
        assert session.spent() == spent
        with pytest.raises(OverBudget):
            session.release(session.plan.histogram(epsilon="0.9"), accept_noise=True)


def test_a_refusal_names_an_epsilon_that_is_accepted(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1) as (session, ledger, _):
        session.release(session.plan.histogram(epsilon="0.7"), accept_noise=True)
        head = ledger.head()
        plan = session.plan.count(["ward"], epsilon=1)
        with pytest.raises(OverBudget) as refused:
            session.release(plan, accept_noise=True)
        assert isinstance(refused.value, BudgetExceeded) and ledger.head() == head
        most = refused.value.most
        assert most == plan.cost.most > Decimal("0.2")
        advised = re.findall(r"at most epsilon = ([0-9.]+)", str(refused.value))
        assert [Decimal(text) <= most for text in advised] == [True]
        session.plan.count(["ward"], epsilon=advised[0])
        session.release(session.plan.count(["ward"], epsilon=str(most)), accept_noise=True)
        assert session.spent() <= 1
        assert session.plan.count(["ward"], epsilon="0.1").cost.most < Decimal("0.01")


def test_an_error_target_costs_the_least_that_meets_it(tmp_path: Path) -> None:
    with opened(tmp_path, budget=100) as (session, _, _):
        plan = session.plan.histogram(within=50)
        assert plan.error["interval"] <= 50
        less = session.plan.histogram(epsilon=plan.cost.alone * 0.97)
        assert less.error["interval"] > 50
        near = session.plan.proportions(by="zone", within=5, confidence=0.95)
        assert near.error["interval"] <= 5
        ranked = session.plan.top_k(1, gap=20, confidence=0.9)
        assert ranked.error["right"][0] >= 0.9
        with raises(InvalidQuery, reason="one-aim", field="epsilon"):
            session.plan.histogram(within=50, epsilon=1)
        with raises(InvalidQuery, reason="one-aim", field="epsilon"):
            session.plan.histogram()


def test_a_plan_says_what_error_is_predicted(tmp_path: Path) -> None:
    with opened(tmp_path, budget=1000) as (session, _, _):
        plan = session.plan.histogram(epsilon=1)
        half, deviation = four_digits(plan.error["interval"]), four_digits(plan.error["deviation"])
        line = (
            f"predicted error: each number within ±{half} with probability 0.95"
            f" (standard deviation {deviation})"
        )
        assert line in str(plan).splitlines() and line in plan._repr_html_()
        near = session.plan.histogram(epsilon=900)
        assert near.error["interval"] == 0 and "off by less than one unit" in str(near)
        ranked = session.plan.top_k(1, epsilon=1)
        assert f"leads the next by {four_digits(ranked.error['gap'], 'up')}" in str(ranked)
        session.release(plan, accept_noise=True)
        again = str(session.plan.histogram(epsilon=1)).splitlines()
        assert [line for line in again if line.startswith("free: ")] and line in again


class Broken(Exception):
    """The machine stops."""


def test_a_crash_after_the_charge_loses_budget_and_paying_again_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, budget=10) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)

        def stop(*_: Any) -> Histogram:
            assert session.spent() == plan.cost.after  # paid before anything is read
            raise Broken

        with monkeypatch.context() as patch:
            patch.setattr(Engine, "histogram", stop)
            with raises(ReleaseFailed, trouble="Broken"):
                session.release(plan, accept_noise=True)
        assert session.spent() == plan.cost.after
        assert not session.release(
            plan, accept_noise=True
        ).free  # the very same plan: a second charge
        (worst,) = ledger.positions()[0].worst
        assert worst.epsilon == 2 * plan.cost.per_entry
        assert session.release(plan, accept_noise=True).free
        assert ledger.verify().sound


def test_an_answer_that_cannot_be_stored_is_not_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        with monkeypatch.context() as patch:
            patch.setattr(type(ledger), "record_answer", lambda *_: (_ for _ in ()).throw(Broken))
            with pytest.raises(Broken):
                session.release(plan, accept_noise=True)
        assert session.spent() == plan.cost.after


def test_a_plan_is_for_one_session_and_one_state_of_the_data(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, engine):
        plan = session.plan.histogram(epsilon=1)
        dear = session.plan.histogram(epsilon=2)
        forged = replace(plan, mechanism=dear.mechanism)
        other = replace(plan, query=session.plan.histogram(window=(0, 1), epsilon=1).query)
        elsewhere = Session(engine, TRANSLATION, ledger=ledger, dataset="elsewhere")
        for teller, told in ((session, forged), (session, other), (elsewhere, plan)):
            with pytest.raises(StalePlan):
                teller.release(told, accept_noise=True)
        assert not ledger.events(kind="charge", limit=9)
    with opened(tmp_path, rows=[("Ann", 0, "a", "ward", 1.0)]) as (session, ledger, _):
        with pytest.raises(StalePlan):
            session.release(plan, accept_noise=True)
        assert session.spent() == 0


def test_a_prior_must_speak_of_the_data(tmp_path: Path) -> None:
    short = MarkovChain(CHAIN.transition, states=STATES, length=3)
    named = MarkovChain(CHAIN.transition, states=("home", "work"), length=4)
    three = MarkovChain(np.array([[0.4, 0.3, 0.3]] * 3), length=4)
    people = Product({"Ann": short, "Bea": short})
    for prior, field, reason in (
        (short, "prior", "too-short"),
        (named, "prior", "states-differ"),
        (three, "prior", "states-differ"),
        (people, "prior, Ann", "too-short"),
    ):
        with (
            raises(UnsoundRequest, field=field, reason=reason),
            opened(tmp_path, translation=Translation(prior)),
        ):
            pass


def test_a_budget_is_spent_under_one_prior(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, engine):
        plan = session.plan.histogram(epsilon=1)
        session.release(plan, accept_noise=True)
        Session(engine, Translation(CHAIN), ledger=ledger, dataset="visits")
        for other in (
            Translation(MarkovChain(np.array([[0.6, 0.4], [0.4, 0.6]]), states=STATES, length=4)),
            Translation(CHAIN, Secrets(entries=(0,))),
            Translation(CHAIN, uncertainty=0.1),
        ):
            with raises(NotAccepted, dataset="visits"):
                Session(engine, other, ledger=ledger, dataset="visits")
            accept(ledger, other)
            new = Session(engine, other, ledger=ledger, dataset="visits")
            new.plan.histogram(epsilon=1)
            for ask in (
                lambda: session.plan.histogram(epsilon=1),
                lambda: session.release(plan, accept_noise=True),
            ):
                with pytest.raises(NotAccepted):  # opened before the change, and refused after it
                    ask()
            accept(ledger, TRANSLATION)


def test_an_acceptance_during_a_release_is_seen_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Translation(CHAIN, uncertainty=0.1)
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        quote = ledger.quote

        def late(*charge: Any) -> Any:
            found = quote(*charge)
            accept(ledger, other)
            return found

        monkeypatch.setattr(ledger, "quote", late)
        with pytest.raises(NotAccepted):
            session.release(plan, accept_noise=True)
        assert not list(ledger.history(kind="charge"))


def test_what_cannot_be_asked_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        head = ledger.head()
        wrong: list[dict[str, Any]] = [
            {"kind": "histogram", "by": "state"},
            {"kind": "histogram", "by": ("zone", "zone")},
            {"kind": "histogram", "column": "zone"},
            {"kind": "histogram", "where": {"state": ["ward"]}},
            {"kind": "histogram", "where": {"zone": ["c"]}},
            {"kind": "histogram", "window": (2, 2)},
            {"kind": "histogram", "window": (0.5, 2)},
            {"kind": "count"},
            {"kind": "count", "values": ["work"]},
            {"kind": "sum"},
            {"kind": "top_k"},
            {"kind": "transitions", "by": "zone"},
            {"kind": "median"},
        ]
        for how in wrong:
            with pytest.raises(InvalidQuery):
                session.plan(QueryOptions(**how, epsilon=1))
        for epsilon in (0, -1, float("nan"), float("inf")):
            with pytest.raises(UnsoundRequest):
                session.plan.histogram(epsilon=epsilon)
        assert ledger.head() == head


def test_steps_without_an_order_are_refused_before_they_are_charged(tmp_path: Path) -> None:
    tied = [("Ann", 0, "a", "ward", 1.0), ("Ann", 0, "a", "home", 1.0)]
    with opened(tmp_path, rows=tied) as (session, _, _):
        with pytest.raises(InvalidDeclaration, match="ties"):
            session.release(session.plan.transitions(epsilon=1), accept_noise=True)
        assert session.spent() == 0


def test_without_a_budget_nothing_is_planned(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, ledger, engine), pytest.raises(NoBudget):
        Session(engine, TRANSLATION, ledger=ledger, dataset="other").plan.histogram(epsilon=1)


def test_two_protected_columns_need_a_word_on_which(tmp_path: Path) -> None:
    both = (Category("state", STATES, "refuse"), WEIGHT)
    with (
        raises(UnsoundRequest, field="about", needed=("state", "weight")),
        opened(tmp_path, protected=both),
    ):
        pass


def test_a_table_gives_the_same_guarantee(tmp_path: Path) -> None:
    table = tabulate(TRANSLATION, losses=(0.05, 5.0), share=0.1)
    with opened(tmp_path, budget=3) as (_, ledger, engine):
        session = Session(
            engine, TRANSLATION, ledger=ledger, dataset="visits", translation_table=table
        )
        plan = session.plan.histogram(epsilon=1)
        session.release(plan, accept_noise=True)
        assert 1 >= plan.cost.alone >= float(TRANSLATION.to_pufferfish(float(plan.cost.per_entry)))
        other = Translation(CHAIN, uncertainty=0.1)
        with raises(UnsoundRequest, field="translation_table"):
            Session(engine, other, ledger=ledger, dataset="visits", translation_table=table)


def test_an_analyst_pays_for_what_another_was_told(tmp_path: Path) -> None:
    with opened(tmp_path, budget=5) as (_, ledger, engine):
        ledger.set_budget("visits", 2, analyst="Eve")
        ledger.set_budget("visits", 2, analyst="Sam")
        eve = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Eve")
        sam = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Sam")
        told = eve.release(eve.plan.histogram(epsilon=1), accept_noise=True)
        spent = eve.spent()
        plan = sam.plan.histogram(epsilon=1)
        assert not plan.stored and plan.cost.reuse and plan.cost.marginal == 0
        assert plan.cost.own is not None and plan.cost.own.after == spent
        for text in (str(plan), json.dumps(plan.describe())):
            assert "Sam" in text
        assert "of the budget of analyst 'Sam' alone" in str(plan) and "free" not in str(plan)
        again = sam.release(plan, accept_noise=True)
        assert again.rows == told.rows and sam.spent() == spent and not again.free
        assert "of the budget of analyst 'Sam' alone" in str(again) and "free" not in str(again)
        assert json.loads(again.to_json())["cost"]["own"]["after"] == spent
        third = sam.release(sam.plan.histogram(epsilon=1), accept_noise=True)
        assert third.free and "free: answered before" in str(third)
        assert ledger.spent("visits", TRANSLATION, analyst="Sam") == spent
        with raises(OverBudget, analyst="Sam"):
            sam.release(sam.plan.histogram(epsilon=2), accept_noise=True)
        eve.release(eve.plan.count(["ward"], epsilon="0.9"), accept_noise=True)
        ledger.set_budget("visits", "1.1", analyst="Sam")
        dear = sam.plan.count(["ward"], epsilon="0.9")
        assert dear.cost.reuse and not dear.cost.fits and "too much" in str(dear)
        with raises(OverBudget, analyst="Sam"):
            sam.release(dear, accept_noise=True)
        assert not list(ledger.history(kind="reuse"))[1:]


def test_without_budgets_of_analysts_what_another_was_told_is_free(tmp_path: Path) -> None:
    with opened(tmp_path, budget=5) as (_, ledger, engine):
        eve = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Eve")
        sam = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Sam")
        told = eve.release(eve.plan.histogram(epsilon=1), accept_noise=True)
        plan = sam.plan.histogram(epsilon=1)
        assert plan.stored and "free" in str(plan)
        again = sam.release(plan, accept_noise=True)
        assert again.free and again.rows == told.rows


def test_who_asks_is_one_of_those_with_a_budget(tmp_path: Path) -> None:
    with opened(tmp_path, budget=5) as (nobody, ledger, engine):
        plan = nobody.plan.histogram(epsilon=1)
        nobody.release(plan, accept_noise=True)
        ledger.set_budget("visits", 2, analyst="bob")
        for ask in (
            lambda: nobody.plan.histogram(epsilon=1),
            lambda: nobody.release(
                plan, accept_noise=True
            ),  # what is stored is told to nobody in particular
            lambda: Session(engine, TRANSLATION, ledger=ledger, dataset="visits"),
            lambda: Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="Bob"),
            lambda: Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="bob "),
        ):
            with raises(UnknownAnalyst, known=("bob",)):
                ask()
        bob = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", analyst="bob")
        cost = bob.plan.histogram(epsilon=1).cost
        assert cost.reuse and cost.own is not None and cost.own.budget == 2
        text = str(bob.plan.count(["ward"], epsilon="0.5"))
        assert "of 5 is spent" in text and "of 2 is spent by analyst 'bob'" in text


def test_results_turn_into_tables(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, engine):
        plan = session.plan.histogram(by="zone", epsilon=1)
        found = session.release(plan, accept_noise=True)
        fingerprint = engine.fingerprint().fingerprint
    columns = list(found.columns)
    for name in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is an extra: install takifugu[tables]")
    assert list(found.to_pandas().columns) == found.to_polars().columns == columns
    assert found.to_arrow().column_names == columns
    assert found.to_arrow().to_pylist()[0]["estimate"] == found.rows[0][2]
    read = json.loads(found.to_json())
    assert read["rows"] == [list(row) for row in found.rows]
    assert read["cost"]["alone"] <= 1 and "Not protected" in read["guarantee"]
    assert "independent" in found.guarantee and "`state`" in found.guarantee
    assert str(found).splitlines()[0].split() == columns
    assert "alone" in str(plan) and "of 10 is spent" in str(plan)
    for text in (found.to_json(), json.dumps(plan.describe()), str(plan), str(found)):
        assert fingerprint not in text  # it is the owner's


def test_intervals_are_as_wide_as_the_noise(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, _):
        plan = session.plan.proportions(by="zone", epsilon=1)
        noise: Any = plan.mechanism
        found = session.release(plan, accept_noise=True)
    assert found.raw is not None
    wide = [row[4] - row[3] for row in found.raw]  # what is shown is cut to 0 and 1
    assert wide == pytest.approx([2 * noise.error().interval / 3] * 4)


def test_terms_that_the_owner_replaces_later_stop_plans_and_releases(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        accept(ledger, Translation(CHAIN, Secrets(entries=(0,))))
        with raises(NotAccepted, changed=("secrets",)):
            session.plan.histogram(epsilon=1)
        with raises(NotAccepted, changed=("secrets",)):
            session.release(plan, accept_noise=True)
        assert list(ledger.history(kind="charge")) == []


def test_a_plan_reads_the_ledger_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, unguarded = [], Store.unguarded

    def counted(store: Store) -> AbstractContextManager[Connection]:
        begun.append(store)
        return unguarded(store)

    with opened(tmp_path) as (session, _, _):
        first = session.plan.histogram(by="zone", epsilon=0.5)  # the data is seen, and entered
        monkeypatch.setattr(Store, "unguarded", counted)
        again = session.plan.histogram(by="zone", epsilon=0.5)
        assert len(begun) == 1 and again.cost == first.cost
