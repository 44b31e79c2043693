"""Accounts at their edges: what is passed on, rounded and refused before anything is translated."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import float_down, float_up
from takifugu.costs import Cost, Membership
from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Metric, Pure, Total
from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import Translation
from takifugu.translation.accounting import allocation, approximate, totals
from takifugu.translation.accounting.allocation import Allocation, allocate
from takifugu.translation.accounting.composition import Release, compose
from takifugu.translation.accounting.totals import Filter, rho_within
from takifugu.translation.accounting.translation_table import (
    TranslationTable,
    table_beside,
    tabulate,
)
from takifugu.translation.bounds import Bound
from tests.raising import raises

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])
THIRD = Fraction(1, 3)
MICRO = Fraction(1, 10**6)


# ---- totals


def test_a_filter_rounds_what_it_shares_to_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float, float]] = []

    def heard(dp: float, pufferfish: float, delta: float) -> Fraction:
        asked.append((dp, pufferfish, delta))
        return THIRD

    monkeypatch.setattr(totals, "share", heard)
    for sign in (1, 7):  # of both, one is above its nearest float and one below
        exact = Fraction(sign, 10), Fraction(sign, 3), Fraction(sign, 10**7)
        assert Filter.of(*exact) == Filter(exact[0], THIRD)
        assert asked[-1] == (float_down(exact[0]), float_up(exact[1]), float_down(exact[2]))
        assert Fraction(asked[-1][0]) < exact[0] and Fraction(asked[-1][1]) > exact[1]


def test_the_part_of_delta_that_an_order_gets_is_rounded_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, float]] = []

    def heard(order: int, part: float) -> float:
        asked.append((order, part))
        return 0.25

    monkeypatch.setattr(totals, "extra", heard)
    for delta in (Fraction(1, 3), Fraction(1, 7), Fraction(1, 10**5)):
        asked.clear()
        found = totals._extras(delta)
        part = float_down(delta / 22)
        assert found == [(order, Fraction(1, 4)) for order in totals.ORDERS]
        assert asked == [(order, part) for order in totals.ORDERS]
    assert totals._extras(Fraction(1, 10**400)) == []


def test_a_total_without_room_asks_for_the_least_epsilon_of_all() -> None:
    """δ as it is rounded down, and an ε that is rounded up."""
    asked: list[float] = []

    def loss_at(epsilon: float) -> tuple[float, float]:
        asked.append(epsilon)
        return epsilon, np.inf

    several = (Total(THIRD, delta=MICRO / 4), Total(Fraction(1, 7), delta=MICRO / 2))
    assert totals.joint_to_pufferfish(loss_at, several, MICRO * 2) == np.inf
    assert asked == [float_up(THIRD)]
    exact = Fraction(1, 10**6)
    assert Fraction(float_down(exact)) < exact
    beyond = Total(THIRD, delta=exact / 2)  # more than half of the float below
    assert totals.joint_to_pufferfish(loss_at, (beyond,), exact) == np.inf
    assert len(asked) == 1


@pytest.mark.parametrize("edge", [700.0, 700.0000001])
def test_a_loss_beyond_exponentials_ends_the_search(edge: float) -> None:
    total, asked = Total(delta=Fraction(1, 10**300)), list[float]()

    def loss_at(epsilon: float) -> tuple[float, float]:
        asked.append(epsilon)
        return 690.0, edge

    found = totals.joint_to_pufferfish(loss_at, (total,), Fraction(1, 2))
    assert (found, len(asked)) == ((700.0, 2) if edge == 700 else (np.inf, 1))


def test_a_rho_is_that_of_the_budget_and_lowered_until_it_fits() -> None:
    asked: list[tuple[Fraction, Fraction]] = []

    class Answers:
        """Allows half of a loss, and says from which ρ on one fits."""

        last = 2

        def to_dp(self, pufferfish: float) -> float:
            """Half."""
            return pufferfish / 2

        def total_to_pufferfish(self, total: Total, delta: Fraction) -> float:
            """Too much so often; then just the target."""
            asked.append((total.rho, delta))
            return 2.0 if len(asked) > self.last else 2.0000001

    answers: Any = Answers()
    found = rho_within(answers, 2.0, MICRO)
    first = Filter.of(Fraction(1), Fraction(2), MICRO).room(Total(), Concentrated(0))
    assert [delta for _, delta in asked] == [MICRO] * 3 and asked[-1][0] == found
    assert first * (1 - 8 * totals.CUT) <= found < asked[1][0] < asked[0][0] < first
    asked.clear()
    answers.last = 29
    late = rho_within(answers, 2.0, MICRO)  # from where on it is halved
    assert len(asked) == 30 and first / 2**14 < late < first / 2**7
    never: Any = SimpleNamespace(to_dp=lambda _: 0.0, total_to_pufferfish=lambda *_: 0.0)
    with raises(UnsoundRequest, field="epsilon", reason="allowance"):
        rho_within(never, 2.0, MICRO)


# ---- approximate losses


def test_what_is_left_of_a_delta_is_never_nothing() -> None:
    assert 0 < approximate.SMALLEST < 1e-300
    line: Any = SimpleNamespace(bound=lambda dp, _: Bound(1e-9 * float(np.max(dp))))
    hardly = approximate.approximate(line, 600.0, 1e-200, method="transport")
    assert 0 < hardly.delta < 1e-300


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, np.nan])
def test_concentrated_losses_say_that_they_need_a_delta(delta: float) -> None:
    home = Translation(MarkovChain(ROWS, length=3))
    with pytest.raises(UnsoundRequest, match="concentrated losses need one above 0"):
        approximate.concentrated(home, 0.5, delta)
    with raises(UnsoundRequest, field="delta", reason="allowance"):
        approximate.mixed(home, 0.5, 0.25, 0.5, delta=1e-9)


def test_the_best_of_all_methods_is_the_one_with_the_least_epsilon() -> None:
    asked: list[tuple[Any, str]] = []
    lines = {"transport": 3.0, "curve": 2.0, "group": 5.0}

    def bound(dp: Any, name: str) -> Bound:
        asked.append((dp, name))
        return Bound(lines[name] * float(np.max(dp)))

    home: Any = SimpleNamespace(
        curve_waits=False,
        bound=bound,
        curve=SimpleNamespace(exposed=np.array([1, 4]), leak=np.array([[0.0, 0.0]])),
    )
    found = approximate.approximate(home, 0.5, 1e-9)
    assert (found.method, found.epsilon, found.dp, found.dp_delta) == ("curve", 1.0, 0.5, 1e-9)
    assert found.delta == pytest.approx(1e-9)  # one entry is exposed
    assert [name for _, name in asked] == ["transport", "curve", "group"]
    home.curve_waits = True
    assert approximate.approximate(home, 0.5, 0.0).method == "transport"
    lines["transport"] = np.inf
    assert approximate.approximate(home, 0.5, 0.0).method == "curve"


def test_a_converted_rho_is_rounded_up_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = approximate.zcdp_epsilon(0.5, 1e-3)
    monkeypatch.setattr(approximate, "up", lambda value: value + 1.0)
    assert approximate.zcdp_epsilon(0.5, 1e-3) == pytest.approx(plain + 1, rel=1e-12)


def test_an_epsilon_is_raised_only_beside_a_delta() -> None:
    half = np.array([0.0, 0.5, 0.0])
    assert approximate._raised(half, np.array([0.1, 0.1, 0.0])).tolist() == [0.05, 0.5, 0.0]
    line: Any = SimpleNamespace(bound=lambda dp, _: Bound(float(np.max(dp))))
    found = approximate.approximate(line, [0.5, 0.0], [1e-9, 0.0], method="transport")
    assert found.delta == pytest.approx(1e-9) and np.asarray(found.dp).tolist() == [0.5, 0.0]


def test_the_curve_exposes_at_the_largest_epsilon() -> None:
    home: Any = SimpleNamespace(
        bound=lambda dp, _: Bound(9.0 * float(np.max(dp))),
        curve=SimpleNamespace(exposed=np.array([1, 3]), leak=np.array([[0.25, 0.0]])),
    )
    found = approximate.approximate(home, [1.0, 2.0], [1e-9, 1e-9], method="curve")
    assert found.delta == pytest.approx(1e-9 / np.expm1(1.0) * np.expm1(2.0))


# ---- releases


def test_a_window_on_the_only_entry_is_a_profile() -> None:
    alone = Translation(MarkovChain(ROWS, length=1))
    window, everywhere = (compose(alone, [Release(Pure("1/2"), at)]) for at in ((0, 1), None))
    assert np.shape(window.dp) == (1,) and np.shape(everywhere.dp) == ()
    assert window.epsilon == pytest.approx(0.5) and everywhere.epsilon == pytest.approx(0.5)


COUNT = Metric(Cost.of({Membership([0]): Fraction(1, 3)}))


def test_a_delta_of_one_entry_is_not_forgotten_beside_costs() -> None:
    home = Translation(MarkovChain(ROWS, length=3))
    some = Approximate("1/10", "1/1000000")
    found = compose(home, [Release(COUNT, (0, 3)), Release(some, (0, 1))])
    assert found.delta > 0 and found.dp_delta == pytest.approx(1e-6)
    third, tenth = float_up(THIRD), float_up(Fraction(1, 10) + THIRD)
    assert np.asarray(found.dp).tolist() == [tenth, third, third]
    smooth = compose(
        home, [Release(COUNT, (0, 3)), Release(Concentrated("1/100"), (2, 3))], delta=1e-6
    )
    assert 0 < smooth.delta <= 1e-6 and np.asarray(smooth.dp)[2] > third


def test_what_is_composed_by_one_method_alone() -> None:
    home = Translation(MarkovChain(ROWS, length=3))
    for method in ("curve", "group", "transport"):
        found = compose(home, [Release(Pure("1/4"))], method=method)
        assert found.method == method and found.epsilon == home.to_pufferfish(0.25, method)
    with raises(UnsoundRequest, field="releases", reason="delta"):
        compose(home, [Release.read("0.1,0.5@0:1")] * 2)


def test_what_a_table_covers_by_default_and_how_finely_at_most() -> None:
    lines: Any = SimpleNamespace(
        fingerprint="lines",
        transport=None,
        curve_waits=False,
        to_dp=lambda low, _: low / 3,
        bound=lambda epsilon, *_: Bound(3 * epsilon),
    )
    table = tabulate(lines)
    assert 0.025 < table.loss[0] <= 0.05 and 10 < table.loss[-1] < 10.3
    assert np.exp(np.diff(np.log(table.loss))).max() <= 1.02 * (1 + 1e-9)
    fine = tabulate(lines, losses=(0.5, 0.51), share=0.001)
    assert np.exp(np.diff(np.log(fine.loss))).max() <= 1.001 * (1 + 1e-9)


def test_a_table_answers_one_number_with_one_number() -> None:
    table = TranslationTable("that", np.array([1.0, 2.0, 4.0]), np.array([1.5, 3.0, 9.0]))
    for given in (3, 3.0):
        assert isinstance(table.to_dp(given), float) and isinstance(
            table.to_pufferfish(given), float
        )
    assert np.shape(table.to_dp([3.0])) == np.shape(table.to_pufferfish([3.0])) == (1,)


def test_a_table_is_what_it_says_and_not_how_it_is_looked_up() -> None:
    made = [TranslationTable("that", np.array([1.0, 2.0]), np.array([1.5, 3.0])) for _ in range(2)]
    object.__setattr__(made[1], "_grid", [7.0])
    object.__setattr__(made[1], "_losses", [8.0])
    assert made[0].fingerprint == made[1].fingerprint


def test_a_table_is_named_for_its_secrets_and_its_uncertainty(tmp_path: Any) -> None:
    chain = MarkovChain(ROWS, length=3)
    names = {
        table_beside(tmp_path / "ward.json", translation).name
        for translation in (
            Translation(chain),
            Translation(chain, uncertainty=0.1),
            Translation(chain, Secrets(entries=(0,))),
        )
    }
    assert len(names) == 3
    for name in names:
        first, second, mark, *rest = name.split(".")
        assert (first, second, rest) == ("ward", "json", ["table", "json"]) and len(mark) == 8


# ---- allocations


class Spread:
    """A translation of three entries: the loss is the sum of ε and ``more``."""

    size: int | None = 3

    def __init__(self, constant: float, more: float = 0.0) -> None:
        self.constant, self.more = constant, more

    def to_dp(self, _: float) -> float:
        """The constant that was given."""
        return self.constant

    def to_pufferfish(self, dp: float) -> float:
        """Three times as much."""
        return 3 * dp

    def bound(self, dp: Floats, *_: Any) -> Bound:
        """The sum, and what a profile is bounded differently by."""
        return Bound(float(np.sum(dp)) + self.more)


@pytest.mark.parametrize("target", [0.0, -1.0, np.inf, np.nan])
def test_targets_that_are_none(target: float) -> None:
    spread: Any = Spread(0.25)
    with raises(UnsoundRequest, field="target"):
        allocate(spread, target)


def test_the_constant_is_told_with_its_certified_loss() -> None:
    spread: Any = Spread(0.25, 0.125)
    found = allocate(spread, 1.0)
    assert (found.target, found.loss, found.constant) == (1.0, 0.875, 0.25)
    assert found.epsilon.tolist() == [0.25] * 3 and found.total == 0.75
    just: Any = Spread(0.25, 0.25)
    assert allocate(just, 1.0).loss == 1.0
    above: Any = Spread(0.25, 0.5)  # a profile is bounded a little differently from a constant
    assert allocate(above, 1.0).loss == 0.75
    nothing: Any = Spread(0.0)
    none = allocate(nothing, 1.0, objective="total")
    assert none.epsilon.tolist() == [0.0] * 3 and none.loss == 0
    with raises(UnsoundRequest, field="objective", given="most"):
        allocate(spread, 1.0, objective="most")  # type: ignore[arg-type]


def test_an_unbounded_stream_has_one_number_and_no_total() -> None:
    spread: Any = Spread(0.25)
    spread.size = None
    found = allocate(spread, 1.0)
    assert found.epsilon.shape == () and float(found.epsilon) == 0.25
    assert (found.loss, found.constant, found.total) == (0.75, 0.25, np.inf)
    with raises(UnsoundRequest, field="length"):
        allocate(spread, 1.0, objective="total")
    assert Allocation(1.0, np.array([0.5, 0.25]), 1.0, 0.25).total == 0.75


def test_a_profile_is_kept_only_if_it_is_within_the_target_and_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is proposed: its loss is at most the target, and its sum above the constant's."""
    spread: Any = Spread(0.25)
    monkeypatch.setattr(allocation, "_losses", lambda _: None)
    monkeypatch.setattr(allocation, "_listed", lambda *_: True)
    monkeypatch.setattr(allocation, "_best", lambda *_: True)
    proposed = SimpleNamespace(epsilon=np.zeros(3), level=True)
    monkeypatch.setattr(allocation, "levelled", lambda *_: proposed)
    for fitted, loss, kept in (
        ([0.5, 0.25, 0.5], 1.0, True),
        ([0.5, 0.25, 0.5], 1.0000001, False),
        ([0.5, 0.25, 0.0], 0.5, False),
        ([0.5, 0.25, 0.0625], 0.5, True),
    ):
        monkeypatch.setattr(
            allocation, "_fitted", lambda *_, f=fitted, own=loss: (np.array(f), own)
        )
        found = allocate(spread, 1.0, objective="total")
        assert found.epsilon.tolist() == (fitted if kept else [0.25] * 3)
        assert found.loss == (loss if kept else 0.75)
        assert (found.target, found.constant) == (1.0, 0.25)


def test_so_many_entries_are_levelled_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    spread: Any = Spread(0.25)
    monkeypatch.setattr(allocation, "_losses", lambda _: None)
    monkeypatch.setattr(allocation, "_listed", lambda *_: False)
    monkeypatch.setattr(allocation, "LONGEST", 3)
    assert allocate(spread, 1.0, objective="total").loss == 0.75
    monkeypatch.setattr(allocation, "LONGEST", 2)
    with raises(UnsoundRequest, field="entries", given=3, needed=2):
        allocate(spread, 1.0, objective="total")


def test_a_profile_that_never_fits_has_an_infinite_loss() -> None:
    never: Any = SimpleNamespace(bound=lambda *_: Bound(np.inf))
    profile, loss = allocation._fitted(never, 1.0, np.array([0.5, 0.25]))
    assert profile.tolist() == [0.5, 0.25] and loss == np.inf
    above: Any = SimpleNamespace(bound=lambda *_: Bound(7.0))
    assert allocation._fitted(above, 1.0, np.array([0.5, 0.25]))[1] == np.inf


def test_the_first_step_of_the_search_is_not_guided_by_one_that_was_not_made() -> None:
    def loss_at(epsilon: float) -> tuple[float, float]:
        return epsilon, 3.9804924991634336 * epsilon

    epsilon, delta, rho = 0.4062340752151862, 6.807137078195783e-10, 0.09737163748942793
    total = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
    found = totals.joint_to_pufferfish(loss_at, (total,), Fraction(1, 1000))
    assert found == pytest.approx(11.994148849, rel=1e-6)
