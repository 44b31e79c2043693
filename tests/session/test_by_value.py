"""Queries that tell less than everything: less noise, the charge, the price, and what is free."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.binding.protected_values import ProtectedValues
from takifugu.costs.cost import Cost, Distance, Membership, Steps
from takifugu.costs.losses import Metric, Pure
from takifugu.declarations import Amount, Declaration, Order, Source
from takifugu.ledger import open_ledger
from takifugu.mechanisms import BoundedSum, Bounds, IntegerLaplace
from takifugu.priors import AR1, Gaussian, MarkovChain, Secrets
from takifugu.session import OverBudget, Session, StalePlan
from takifugu.session.query.counts import CountQuery
from takifugu.session.query_options import QueryOptions
from takifugu.tables import open_engine
from takifugu.translation.accounting.tables import tabulate
from takifugu.translation.translation import Translation
from tests.ledger.folders import forget_rows
from tests.oracles import cost_programs as programs
from tests.raising import raises
from tests.session.hospital import CHAIN, ROWS, STATES, TRANSLATION, hospital, stays

HOME = Membership(["home"])
SURE = 400  # at ε = 400 the noise on any number here is 0 but with a probability below 1e-9


def true_loss(cost: Cost) -> float:
    """What no mechanism with this cost on every entry leaks more than, over all datasets."""
    start = np.linalg.matrix_power(CHAIN.transition, 4096)[0]
    table = programs.chain_table(start, [CHAIN.transition] * 4)
    matrix = np.array([[float(cost.between(u, v)) for v in STATES] for u in STATES])
    losses = programs.all_losses(table, [matrix] * 5)
    return max(solved.lower for solved in losses.values())


@pytest.mark.nightly
def test_a_count_needs_less_noise_and_is_charged_by_what_it_tells(tmp_path: Path) -> None:
    with hospital(tmp_path) as (session, ledger, _):
        plan = session.plan.count("home", epsilon=1)
        noise = plan.mechanism
        assert isinstance(noise, IntegerLaplace) and isinstance(noise.loss, Pure)
        assert plan.charge.loss == Metric(Cost.of({HOME: noise.loss.epsilon}))
        assert plan.cost.by_value == Cost.of({HOME: noise.loss.epsilon})
        assert plan.cost.currency == "epsilon" and plan.cost.per_entry == noise.loss.epsilon
        scalar = IntegerLaplace.within(float(TRANSLATION.to_dp(1.0)), sensitivity=1)
        assert noise.scale < 0.9 * scalar.scale
        assert 0.98 < plan.cost.alone <= 1 < 1.1 < (plan.cost.without_values or 0)
        assert true_loss(plan.cost.by_value) <= plan.cost.alone
        found = session.release(plan, accept_noise=True)
        assert session.spent() == pytest.approx(plan.cost.alone, rel=1e-6)
        assert plan.cost.after == session.spent() <= 1
        assert not found.free and session.release(plan, accept_noise=True).rows == found.rows
        assert session.release(session.plan.count("home", epsilon=1), accept_noise=True).free
        assert session.plan.count("home", epsilon=1).stored
        assert ledger.verify().problems == ()


@pytest.mark.nightly
def test_costs_add_up_and_are_translated_together(tmp_path: Path) -> None:
    total = Cost()
    with hospital(tmp_path, budget=4) as (session, _, _):
        for plan in (
            session.plan.count("home", epsilon="0.5"),
            session.plan.counts(["ward", "clinic"], epsilon="0.5"),
            session.plan.histogram(epsilon="0.3"),
            session.plan.count(["home", "ward"], epsilon="0.4"),
        ):
            session.release(session.plan(plan.options), accept_noise=True)
            total = total + (plan.cost.by_value or Cost.any(plan.cost.per_entry))
            assert true_loss(total) <= session.spent() <= float(TRANSLATION.to_pufferfish(
                float(total.scalar) * (1 + 1e-12)
            ))  # fmt: skip
        assert session.spent() < 1.7 == pytest.approx(0.5 + 0.5 + 0.3 + 0.4)


@pytest.mark.nightly
def test_a_plan_says_what_values_save(tmp_path: Path) -> None:
    with hospital(tmp_path) as (session, _, _):
        plan = session.plan.count("home", epsilon=1)
        saved = plan.saving(plan.cost)
        assert saved is not None and saved.deviation == plan.error["deviation"]
        scalar = IntegerLaplace.within(float(TRANSLATION.to_dp(1.0)), sensitivity=1)
        assert saved.deviation_without_values == scalar.error().deviation
        assert saved.noise_ratio == saved.deviation_without_values / saved.deviation > 1.1
        document = json.loads(json.dumps(plan.describe()))
        assert document["saving"] == saved.describe()
        assert document["cost"]["by_value"] == plan.cost.by_value.document()  # type: ignore[union-attr]
        assert document["cost"]["without_values"] == saved.alone_without_values
        assert f"saved: {saved}" in str(plan) and "saved: noise" in plan._repr_html_()
        assert "a count of 'home' tells less" in str(saved)
        result = session.release(plan, accept_noise=True)
        assert result.saving == saved and f"saved: {saved}" in str(result)
        assert json.loads(result.to_json())["saving"] == saved.describe()
        again = session.release(plan, accept_noise=True)
        assert again.free and again.saving is None and "saved" not in str(again)
        near = session.plan.counts(["home", "ward"], within=10)
        less = near.saving(near.cost)
        assert less is not None and less.noise_ratio == 1
        assert less.alone == near.cost.alone < less.alone_without_values
        assert str(less).startswith("epsilon = ") and "histogram" in str(less)
        assert session.plan.histogram(epsilon=1).describe()["saving"] is None
        hardly = replace(plan, otherwise={"deviation": plan.error["deviation"] * 1.000001})
        assert hardly.saving(replace(plan.cost, without_values=plan.cost.alone)) is None
        assert str(hardly.saving(plan.cost)).startswith("epsilon = ")  # no digit of the noise


def test_an_error_costs_less(tmp_path: Path) -> None:
    with hospital(tmp_path) as (session, _, _):
        one = session.plan.count("clinic", within=8)
        assert one.cost.alone == pytest.approx(
            TRANSLATION.cost_to_pufferfish(
                Cost.of({Membership(["clinic"]): one.mechanism.loss.epsilon})  # type: ignore[union-attr]
            )
        )
        assert one.cost.alone < float(TRANSLATION.to_pufferfish(float(one.cost.per_entry)))
        assert one.cost.fits and 0 < one.cost.most <= one.cost.alone
        assert session.plan.count("clinic", epsilon=one.cost.most).cost.fits


@pytest.mark.nightly
def test_counts_are_those_of_the_table(tmp_path: Path) -> None:
    by_hand = {
        (zone, state): sum(row[2:] == (zone, state) for row in ROWS)
        for zone in "ab"
        for state in STATES
    }
    with hospital(tmp_path, budget=9 * SURE) as (session, _, _):
        found = session.release(
            session.plan.counts(["clinic", "home"], by="zone", epsilon=SURE), accept_noise=True
        )
        assert found.columns == ("zone", "state", "estimate", "low", "high")
        assert {row[:2]: row[2] for row in found.rows} == {
            key: count for key, count in by_hand.items() if key[1] != "ward"
        }
        everything = session.plan.counts(list(STATES), epsilon=SURE)
        assert isinstance(everything.charge.loss, Pure)  # a histogram, and charged as one
        assert everything.mechanism == replace(
            session.plan.histogram(epsilon=SURE).mechanism  # type: ignore[type-var]
        )
        one = session.plan.counts("home", epsilon=1)
        assert one.charge.loss == session.plan.count("home", epsilon=1).charge.loss


def test_counts_cost_no_more_than_a_histogram_with_the_same_noise(tmp_path: Path) -> None:
    with hospital(tmp_path) as (session, _, _):
        bars = session.plan.histogram(within=9)
        some = session.plan.counts(["home", "clinic"], within=9)
        assert some.mechanism.loss == bars.mechanism.loss
        assert some.cost.alone < bars.cost.alone
        assert some.error == bars.error


@pytest.mark.nightly
def test_what_is_advised_is_accepted(tmp_path: Path) -> None:
    with hospital(tmp_path, budget=2) as (session, _, _):
        session.release(session.plan.count("home", epsilon=1), accept_noise=True)
        session.release(session.plan.counts(["home", "clinic"], epsilon="0.4"), accept_noise=True)
        for query in (
            QueryOptions("count", values=["ward"], epsilon=3),
            QueryOptions("count", values=["home"], epsilon=3),
            QueryOptions("histogram", epsilon=3),
        ):
            plan = session.plan(query)
            assert (
                not plan.cost.fits and plan.cost.after is None and plan.cost.most > Decimal("0.3")
            )
            with raises(OverBudget, most=plan.cost.most):
                session.release(plan, accept_noise=True)
            assert session.plan(replace(query, epsilon=str(plan.cost.most))).cost.fits
        most = session.plan(query).cost.most
        found = session.release(session.plan(replace(query, epsilon=str(most))), accept_noise=True)
        assert not found.free and 1.98 < session.spent() <= 2
        with raises(OverBudget):
            session.release(session.plan.count("ward", epsilon="0.5"), accept_noise=True)


def test_a_target_that_costs_too_much_is_answered_with_what_is_left(tmp_path: Path) -> None:
    with hospital(tmp_path, budget=1) as (session, _, _):
        plan = session.plan.count("home", within=2)
        assert not plan.cost.fits and plan.instead is not None
        better = session.plan.count("home", epsilon=plan.instead["epsilon"])
        assert better.cost.fits and better.error == plan.instead["error"]
        assert better.cost.by_value is not None


def test_with_a_delta_losses_stay_scalar(tmp_path: Path) -> None:
    with hospital(tmp_path, delta="1e-6") as (session, _, _):
        plan = session.plan.count("home", epsilon=1, delta="1e-6")
        assert plan.cost.currency == "rho" and plan.cost.by_value is None
        session.release(plan, accept_noise=True)
        pure = session.plan.count("home", epsilon="0.5")
        assert isinstance(pure.charge.loss, Metric)
        session.release(pure, accept_noise=True)
        assert session.spent() < 2


def test_a_plan_cannot_be_made_cheaper_by_hand(tmp_path: Path) -> None:
    with hospital(tmp_path) as (session, ledger, _):
        plan = session.plan.count("home", epsilon=1)
        other = session.plan.histogram(epsilon=1)
        for wrong in (
            replace(other, unit=plan.unit),
            replace(other, charge=replace(other.charge, loss=plan.charge.loss)),
            replace(plan, charge=replace(plan.charge, loss=Metric(Cost.of({HOME: "1/100"})))),
            replace(plan, mechanism=session.plan.count("home", epsilon=2).mechanism),
            replace(plan, otherwise=None),
        ):
            with raises(StalePlan):
                session.release(wrong, accept_noise=True)
        assert ledger.spent("stays", TRANSLATION) == 0


@pytest.mark.nightly
def test_a_table_has_no_values_and_the_translation_behind_it_prices_them(tmp_path: Path) -> None:
    table = tabulate(TRANSLATION, losses=(0.05, 2.0))
    with hospital(tmp_path, how={"translation_table": table}) as (session, _, _):
        plan = session.plan.count("home", epsilon=1)
        assert plan.cost.by_value is not None
        allowed = TRANSLATION.to_cost(Cost.of({HOME: 1}), 1.0)
        assert allowed * (1 - Fraction(1, 2**40)) <= plan.cost.per_entry <= allowed
        little = session.plan.count("home", epsilon="0.01")  # below where the table begins
        assert little.cost.by_value is not None and 0 < little.cost.alone <= 0.01
        session.release(plan, accept_noise=True)
        assert session.spent() <= 1


def test_analysts_pay_by_value_and_answers_are_shared(tmp_path: Path) -> None:
    how = {"analyst": "ana"}
    with hospital(tmp_path, budget=3, how=how) as (session, ledger, engine):
        for name in ("ana", "bob"):
            ledger.set_budget("stays", 1, analyst=name)
        plan = session.plan.count("home", epsilon="0.9")
        assert plan.cost.own is not None and plan.cost.own.after is not None
        assert 0.8 < plan.cost.own.after <= 0.9
        first = session.release(plan, accept_noise=True)
        bob = Session(engine, TRANSLATION, ledger=ledger, dataset="stays", analyst="bob")
        again = bob.plan.count("home", epsilon="0.9")
        assert again.cost.reuse and not again.stored and again.cost.by_value is not None
        whole = ledger.spent("stays", TRANSLATION)
        shared = bob.release(again, accept_noise=True)
        assert shared.rows == first.rows and not shared.free
        assert ledger.spent("stays", TRANSLATION) == whole
        assert ledger.spent("stays", TRANSLATION, analyst="bob") == pytest.approx(whole)
        late = bob.plan.count("ward", epsilon="0.9")
        assert not late.cost.fits and 0 < late.cost.most < 0.9
        assert bob.plan.count("ward", epsilon=late.cost.most).cost.fits


NUMBERS = tuple(str(n) for n in range(5))
STEPS = MarkovChain(
    np.array([[max(0.02, 0.6 - 0.25 * abs(i - j)) for j in range(5)] for i in range(5)])
    / np.array([[sum(max(0.02, 0.6 - 0.25 * abs(i - j)) for j in range(5))] for i in range(5)]),
    states=NUMBERS,
    length=3,
)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_sums_and_means_of_known_numbers_are_charged_by_their_distance(
    tmp_path: Path, kind: Any
) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"p{p},{s},{(p * s + p) % 5}" for p in range(4) for s in range(3)]
    path.write_text("\n".join(["person,step,score", *rows]) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (Amount("score", Fraction(0), Fraction(4), Fraction(1), "refuse"),),
        (),
    )
    translation = Translation(STEPS)
    with (
        open_engine(declaration, threads=1) as engine,
        open_ledger(tmp_path / "scores.ledger") as ledger,
    ):
        ledger.set_budget("scores", 10)
        session = Session(engine, translation, ledger=ledger, dataset="scores")
        plan = session.plan(QueryOptions(kind, epsilon=1))
        assert plan.unit == Cost.of({Steps(0, 4, 1): 1})
        assert isinstance(plan.charge.loss, Metric)
        saved = plan.saving(plan.cost)
        assert saved is not None and saved.noise_ratio > 1.05
        session.release(plan, accept_noise=True)
        assert 0.95 < session.spent() <= 1
        middle = session.plan.quantile("0.5", epsilon=1)
        assert isinstance(middle.charge.loss, Pure)
        first = ledger.lookup(plan.charge)
    assert first is not None
    forget_rows()
    with (
        open_engine(declaration, threads=1) as engine,
        open_ledger(tmp_path / "earlier.ledger") as ledger,
    ):
        ledger.set_budget("scores", 10)
        session = Session(engine, translation, ledger=ledger, dataset="scores")
        plan = session.plan(QueryOptions(kind, epsilon=1))
        assert isinstance(plan.charge.loss, Metric)
        unrounded = Metric(Cost.of({Distance(0, 4): plan.charge.loss.epsilon}))
        paid = ledger.charge(replace(plan.charge, loss=unrounded), translation)
        ledger.record_answer(paid, first.value)
        again = session.plan(QueryOptions(kind, epsilon=1))
        assert again.stored and session.release(again, accept_noise=True).free


def pressures(folder: Path, length: int | None) -> tuple[Declaration, Translation]:
    """Numbers that are rounded to whole steps, and a process that they are drawn from."""
    path = folder / "pressures.csv"
    rows = [f"p{p},{s},{110 + 7 * ((p * s + p) % 5) + 0.4}" for p in range(4) for s in range(6)]
    path.write_text("\n".join(["person,step,pressure", *rows]) + "\n")
    declaration = Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (Amount("pressure", Fraction(40), Fraction(240), Fraction(1), "refuse"),),
        (),
    )
    prior = Gaussian(AR1(0.5), mean=120, variance=100, length=length)
    return declaration, Translation(prior, Secrets(within=10))


def test_sums_of_a_gaussian_process_are_charged_by_steps(tmp_path: Path) -> None:
    declaration, translation = pressures(tmp_path, 6)
    with (
        open_engine(declaration, threads=1) as engine,
        open_ledger(tmp_path / "pressures.ledger") as ledger,
    ):
        ledger.set_budget("pressures", 10)
        session = Session(engine, translation, ledger=ledger, dataset="pressures")
        plan = session.plan.sum(epsilon=1)
        assert plan.unit == Cost.of({Steps(40, 240, 1): 1})
        assert isinstance(plan.mechanism, BoundedSum)
        assert isinstance(plan.charge.loss, Metric)
        # 10 apart; a neighbour at lag k moves 10/2^k; rounding costs the entry itself one step
        scale = Fraction(plan.mechanism.noise.scale)
        lags = [abs(k - 2) for k in range(6)]
        worst = (sum(10 / Fraction(2) ** k for k in lags) + 1) / scale
        assert 0.95 < float(worst) <= plan.cost.alone * (1 + 1e-9) <= 1 + 1e-9
        saved = plan.saving(plan.cost)
        assert saved is not None and saved.noise_ratio > 20
        session.release(plan, accept_noise=True)
        assert 0.95 < session.spent() <= 1


@pytest.mark.nightly
def test_rounding_moves_numbers_of_a_process_by_at_most_one_step_more() -> None:
    bounds, grid = Bounds(0, 5, "0.5"), [Fraction(n, 16) for n in range(-16, 112)]
    unit = ProtectedValues(bounds=(Fraction(0), Fraction(5)), step=Fraction(1, 2)).sum()
    steps = bounds.units([float(x) for x in grid]).tolist()
    for i, u in enumerate(grid):
        for j, v in enumerate(grid):
            assert Fraction(abs(steps[i] - steps[j]), 10) <= unit.between(u, v)


OLD_KEY = "432d2bbf12b92dd4ad6558de93100814cfcfa62ff902a5decbd989cf773a43eb\n"


@contextmanager
def hospital_as_it_is(folder: Path) -> Iterator[Session]:
    """A session on a ledger that has a budget."""
    with (
        open_engine(stays(folder), threads=1) as engine,
        open_ledger(folder / "stays.ledger", witness=False) as ledger,
    ):
        yield Session(engine, TRANSLATION, ledger=ledger, dataset="stays")


def test_what_an_earlier_version_released_is_still_free(tmp_path: Path) -> None:
    """The ledger was made by the version before costs, whose counts were charged as ε."""
    stays(tmp_path)
    (tmp_path / "stays.key").write_text(OLD_KEY)
    (tmp_path / "stays.key").chmod(0o600)
    old = Path(__file__).with_name("before_costs.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "stays.ledger")) as database:
        database.executescript(old)
    with hospital_as_it_is(tmp_path) as session:
        assert 2.5 < session.spent() <= 2.8291  # as it was then, or less by a better bound
        one = session.plan.count("home", epsilon=1)
        assert one.stored and one.cost.by_value is None
        found = session.release(one, accept_noise=True)
        assert found.free and found.column("estimate") == [11]
        assert found.column("high") == [20]  # with the noise that it has
        near = session.plan.count(["clinic", "ward"], by="zone", within=9)
        assert near.stored and session.release(near, accept_noise=True).column("estimate") == [
            11,
            12,
        ]
        bars = session.plan.histogram(within=18)
        assert not bars.stored
        new = session.plan.count("home", epsilon=2)
        assert not new.stored and new.cost.by_value is not None
        session.release(new, accept_noise=True)
        assert session.plan.count("home", epsilon=1).stored


class LooserTranslation(Translation):
    """The same priors and secrets, as an earlier version bounded them."""

    def to_dp(self, pufferfish: Any, method: Any = "best") -> Any:
        """A little less than what is proven now."""
        return super().to_dp(pufferfish, method) * self.share

    share = 0.85


@pytest.mark.parametrize(("share", "free"), [(0.85, True), (0.75, False)])
def test_what_an_earlier_version_released_at_a_looser_bound_is_still_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, free: bool
) -> None:
    monkeypatch.setattr(LooserTranslation, "share", share)
    looser = LooserTranslation(CHAIN)
    assert looser.fingerprint == TRANSLATION.fingerprint
    with hospital(tmp_path, translation=looser) as (session, ledger, engine):
        with monkeypatch.context() as earlier:
            earlier.setattr(CountQuery, "unit_cost", lambda *_: Cost.any(1))
            then = session.release(session.plan.count("home", epsilon=1), accept_noise=True)
        now = Session(engine, TRANSLATION, ledger=ledger, dataset="stays")
        plan = now.plan.count("home", epsilon=1)
        assert plan.stored == free
        assert (now.release(plan, accept_noise=True).rows == then.rows) == free or not free
        if free:
            assert plan.mechanism.describe() == then.mechanism and "before" in plan.reason
        assert not now.plan.count("home", epsilon="1.5").stored
        assert not now.plan.count("home", epsilon="0.5").stored


@pytest.mark.parametrize(("part", "by_value"), [(Fraction(1, 2), False), (Fraction(1), True)])
def test_values_are_left_out_where_the_search_with_them_allows_less(
    part: Fraction, by_value: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lesser cost would allow at least as much; a search for how much may end too early."""
    found = TRANSLATION.to_cost(Cost.of({HOME: 1}), 1.0) * part
    scalar = IntegerLaplace.within(float(TRANSLATION.to_dp(1.0)), sensitivity=1)
    monkeypatch.setattr(Translation, "to_cost", lambda *_, **__: found)
    with hospital(tmp_path) as (session, _, _):
        plan = session.plan.count("home", epsilon=1)
        assert (plan.cost.by_value is not None) == by_value
        assert isinstance(plan.mechanism, IntegerLaplace)
        assert (plan.mechanism.scale < scalar.scale) == by_value
        assert plan.mechanism.scale == scalar.scale or by_value
        session.release(plan, accept_noise=True)
        assert session.spent() <= 1
