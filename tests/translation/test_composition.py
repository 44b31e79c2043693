"""Losses are added up entry by entry and translated once; a budget is spread over time."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Approximate, Concentrated, Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.priors import IndependentEntries, MarkovChain
from takifugu.translation import Release, Translation, allocate, compose
from takifugu.translation.accounting.composition import totals_by_entry
from tests.raising import raises

STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])


def test_the_sum_is_translated_once_and_theorem_7_stands_beside_it() -> None:
    translation = Translation(MarkovChain(STICKY))
    each = float(translation.to_dp(1.0, "curve"))
    found = compose(translation, [Release(Pure(each))] * 100)
    assert found.theorem_7 == pytest.approx(72.7, abs=0.1)
    assert found.translated.by_method["curve"] == pytest.approx(7.55, abs=0.01)
    assert found.epsilon == translation.to_pufferfish(found.dp) <= 7.55
    assert found.lower <= found.epsilon <= 1.01 * found.lower


def test_sums_are_exact_and_never_rounded_down() -> None:
    translation = Translation(IndependentEntries({"a": {"x": 0.5, "y": 0.5}}))
    found = compose(translation, [Release.read("0.1"), Release.read("0.2")])
    assert found.epsilon >= 0.3 and found.epsilon == pytest.approx(0.3, abs=1e-15)
    many = compose(translation, [Release.read("0.001")] * 1000)
    assert many.epsilon == 1.0


def test_a_window_charges_only_its_entries() -> None:
    translation = Translation(MarkovChain(STICKY, length=9))
    releases = [Release.read("0.5@2:4"), Release.read("0.25"), Release.read("0.125@8")]
    spent = np.full(9, 0.25)
    spent[2:4] += 0.5
    spent[8] += 0.125
    found = compose(translation, releases)
    assert np.array_equal(np.asarray(found.dp), spent)
    assert found.epsilon == translation.bound(spent).value
    assert found.epsilon < translation.to_pufferfish(0.875)


def test_windows_of_an_unbounded_stream() -> None:
    translation = Translation(MarkovChain(STICKY))
    one = compose(translation, [Release.read("0.5@3:5")])
    both = compose(translation, [Release.read("0.5@3:5"), Release.read("0.5@300:302")])
    assert both.epsilon == pytest.approx(one.epsilon, rel=1e-6)  # far apart, they do not add up
    assert compose(translation, [Release.read("0.5@3:5")] * 2).epsilon > 1.5 * one.epsilon
    with raises(UnsoundRequest, field="length"):
        compose(translation, [Release.read("0.5@3:5"), Release.read("0.1")])


def test_all_currencies_add_up_by_entry() -> None:
    translation = Translation(MarkovChain(STICKY, length=4))
    releases = [Release.read("0.1,1e-7"), Release.read("rho=0.01@1:3"), Release.read("0.2@0:2")]
    totals = totals_by_entry(translation, releases)
    assert [float(t.epsilon) for t in totals] == pytest.approx([0.3, 0.3, 0.1, 0.1])
    assert [float(t.rho) for t in totals] == [0, 0.01, 0.01, 0]
    found = compose(translation, releases, delta=1e-5)
    assert 0 < found.delta <= 1e-5 and found.theorem_7 is None
    without = compose(translation, [releases[0], releases[2]])
    assert found.lower == without.lower < without.epsilon * 1.01  # ρ adds nothing from below
    assert found.epsilon > without.epsilon
    with raises(UnsoundRequest, field="delta"):
        compose(translation, releases)
    alone = compose(translation, [Release.read("rho=0.01@1:2")], delta=1e-14)
    spent = np.asarray(alone.dp)
    assert (spent == 0).tolist() == [True, False, True, True] and 0 < alone.delta <= 1e-14


def test_a_release_in_words() -> None:
    assert Release.read("0.5") == Release(Pure("0.5"))
    assert Release.read("0.5,1e-6@3:7") == Release(Approximate("0.5", "1e-6"), window=(3, 7))
    assert Release.read("rho=1/8@ward,icu") == Release(Concentrated(0.125), entries=("ward", "icu"))


@pytest.mark.parametrize(
    ("where", "field", "given"), [("0.1@3:12", "window", 12), ("0.1@mon", "entries", "mon")]
)
def test_an_entry_that_does_not_exist_is_refused(where: str, field: str, given: object) -> None:
    with raises(UnsoundRequest, field=field, given=given):
        compose(Translation(MarkovChain(STICKY, length=9)), [Release.read(where)])
    with raises(UnsoundRequest, field="releases"):
        compose(Translation(MarkovChain(STICKY, length=9)), [])


def test_the_least_is_largest_when_all_are_equal() -> None:
    translation = Translation(MarkovChain(STICKY, length=12))
    found = allocate(translation, 1.0)
    assert found.loss <= 1.0 and (found.epsilon == found.constant).all()
    raised = found.epsilon * 1.01
    assert translation.bound(raised).value > 1.0
    unbounded = allocate(Translation(MarkovChain(STICKY)), 1.0)
    assert unbounded.epsilon == pytest.approx(0.1157, abs=2e-4) and unbounded.total == np.inf


def test_the_ends_can_get_more_than_the_middle() -> None:
    translation = Translation(MarkovChain(STICKY, length=12))
    found = allocate(translation, 1.0, objective="total")
    assert found.loss <= 1.0 and found.loss == translation.bound(found.epsilon).value
    assert found.total > 1.1 * 12 * found.constant
    assert found.epsilon[0] > 2 * found.epsilon[6]
    with raises(UnsoundRequest, field="length"):
        allocate(Translation(MarkovChain(STICKY)), 1.0, objective="total")
    with raises(UnsoundRequest, field="target", given=0.0):
        allocate(translation, 0.0)


A = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])
DAYS = Translation(
    MarkovChain(A, start=np.array([0.5, 0.2, 0.3]), length=5, states=("a", "b", "c"))
)


def count(label: str, epsilon: str, window: tuple[int, int] | None = None) -> Release:
    return Release(Metric(Cost.of({Membership([label]): epsilon})), window)


def test_costs_are_added_by_shape_and_translated_by_value() -> None:
    several = [count("a", "0.3"), count("b", "0.3"), Release(Pure("0.1"))]
    found = compose(DAYS, several)
    assert 1.71512 - 1e-5 <= found.epsilon <= 1.78119 + 1e-5  # the LP, and the plain recursion
    assert found.dp == pytest.approx(0.7) and found.theorem_7 is None
    assert found.lower <= 1.71512 + 1e-5 and found.delta == found.dp_delta == 0
    assert found.epsilon < compose(DAYS, [Release(Pure("0.7"))]).epsilon
    windows = [count("a", "0.5", (0, 3)), count("b", "0.5", (2, 5))]
    apart = compose(DAYS, windows)
    assert 1.54467 - 1e-5 <= apart.epsilon <= 1.62524 + 1e-5
    assert np.asarray(apart.dp) == pytest.approx([0.5, 0.5, 1.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("other", "delta"), [(Approximate("0.1", "1e-9"), None), (Concentrated("0.001"), 1e-6)]
)
def test_beside_a_delta_or_rho_a_cost_counts_as_the_epsilon_that_covers_it(
    other: Approximate | Concentrated, delta: float | None
) -> None:
    """Its values are not read; what leaks for sure is what the plain losses leak."""
    mixed = compose(DAYS, [count("a", "0.3"), count("b", "0.2"), Release(other)], delta=delta)
    plain = compose(DAYS, [Release(Pure("0.5")), Release(other)], delta=delta)
    assert (mixed.epsilon, mixed.delta) == (plain.epsilon, plain.delta)
    alone = compose(DAYS, [Release(other)], delta=delta)
    assert mixed.lower <= alone.epsilon and mixed.lower < plain.lower


def test_an_entry_is_named_by_its_number_also_in_an_unbounded_stream() -> None:
    assert Release.read("0.5@3,12") == Release(Pure("0.5"), entries=(3, 12))
    assert Release.read("0.5@3,x2") == Release(Pure("0.5"), entries=(3, "x2"))
    stream = Translation(MarkovChain(STICKY))
    named, window = (compose(stream, [Release.read(text)]) for text in ("0.5@3", "0.5@3:4"))
    assert np.array_equal(np.asarray(named.dp), np.asarray(window.dp))
    assert named.epsilon == window.epsilon


ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


HOME = Translation(MarkovChain(ROWS, length=4))


@pytest.mark.nightly
@pytest.mark.parametrize("window", [(-1, 2), (2, 2), (3, 2)])
def test_windows_that_are_none(window: tuple[int, int]) -> None:
    with raises(UnsoundRequest, field="window"):
        Release(Pure(1), window)
    with raises(UnsoundRequest, field="window"):
        Release(Pure(1), (0, 1), ("a",))
    assert Release(Pure(1), (0, 1)).entries is None and Release(Pure(1)).window is None


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    ["", "a", "1@", "1@3:", "1@:3", "1@a:3", "1@3:a", "1@5:3", "1@3:4:5", "1,2,3", "-1", "0.1,2"],
)
def test_texts_that_are_no_release(text: str) -> None:
    with pytest.raises(UnsoundRequest):
        Release.read(text)


@pytest.mark.nightly
def test_losses_of_each_entry() -> None:
    one: Any = Pure("1/2")
    two: Any = Concentrated("1/4")
    assert totals_by_entry(HOME, [Release(one), Release(two)]) == [Total.of([one, two])]
    each = totals_by_entry(HOME, [Release(one), Release(two, (1, 3)), Release(one, entries=(2,))])
    assert each == [Total.of(losses) for losses in ([one], [one, two], [one, two, one], [one])]
    stream = Translation(MarkovChain(ROWS))
    found = totals_by_entry(stream, [Release(one, (1, 3)), Release(two, entries=(4,))])
    assert found == [Total.of(losses) for losses in ([], [one], [one], [], [two])]
    with raises(UnsoundRequest, field="length"):
        totals_by_entry(stream, [Release(one), Release(one, (1, 3))])


@pytest.mark.nightly
def test_deltas_that_add_up_to_one_guarantee_nothing() -> None:
    with raises(UnsoundRequest, field="releases", reason="delta"):
        compose(HOME, [Release.read("0.1,0.5")] * 2)
    found = compose(HOME, [Release.read("0.1,1e-9")] * 2)
    assert found.dp_delta == pytest.approx(2e-9) and found.theorem_7 is None
    with raises(UnsoundRequest, field="delta"):
        compose(HOME, [Release.read("rho=0.1@0:2")])


@pytest.mark.nightly
def test_what_leaks_for_sure_is_what_was_not_converted() -> None:
    """The lower bound is of ε alone; never above what is guaranteed."""
    pure = compose(HOME, [Release.read("0.3")])
    assert pure.lower == pure.translated.lower == HOME.explain(pure.dp).lower
    assert pure.theorem_7 is not None and pure.delta == 0 and pure.dp == float_up(Fraction(3, 10))
    raised = compose(HOME, [Release.read("0.3@0:1"), Release.read("0,1e-9@1:2")])
    spent = np.array([float_up(Fraction(3, 10)), 0.0, 0.0, 0.0])
    assert np.asarray(raised.dp)[1] == pytest.approx(0.03)
    assert raised.lower == HOME.witness(spent).leak < raised.translated.lower
    both = compose(HOME, [Release.read("0.3"), Release.read("rho=0.01")], delta=1e-6)
    assert both.lower == HOME.witness(float_up(Fraction(3, 10))).leak < both.translated.lower
    assert both.delta <= 1e-6 and both.epsilon > pure.epsilon


@pytest.mark.nightly
def test_costs_by_each_method_and_entry() -> None:
    near = Metric(Cost.of({Membership([0]): Fraction(1, 3)}))
    for releases, given in (
        ([Release(near)], near.cost),
        ([Release(near, (0, 2))], [near.cost, near.cost, Cost.of({}), Cost.of({})]),
    ):
        for method in ("best", "group", "transport"):
            found = compose(HOME, releases, method=method)
            true = HOME.explain_cost(given, method)
            assert (found.epsilon, found.method) == (true.pufferfish, true.method)
            assert np.array_equal(np.asarray(found.dp), np.asarray(true.dp))
            assert (found.delta, found.dp_delta, found.theorem_7) == (0.0, 0.0, None)
            assert found.lower == true.lower and found.translated.costs == true.costs
    huge = Metric(Cost.of({Membership([0]): Fraction(10) ** 301}))
    with raises(UnsoundRequest, field="releases", reason="total"):
        compose(HOME, [Release(huge)])


THIRD = Fraction(1, 3)


@pytest.mark.nightly
def test_a_window_on_the_only_entry_is_a_profile() -> None:
    alone = Translation(MarkovChain(ROWS, length=1))
    window, everywhere = (compose(alone, [Release(Pure("1/2"), at)]) for at in ((0, 1), None))
    assert np.shape(window.dp) == (1,) and np.shape(everywhere.dp) == ()
    assert window.epsilon == pytest.approx(0.5) and everywhere.epsilon == pytest.approx(0.5)


COUNT = Metric(Cost.of({Membership([0]): Fraction(1, 3)}))


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_what_is_composed_by_one_method_alone() -> None:
    home = Translation(MarkovChain(ROWS, length=3))
    for method in ("curve", "group", "transport"):
        found = compose(home, [Release(Pure("1/4"))], method=method)
        assert found.method == method and found.epsilon == home.to_pufferfish(0.25, method)
    with raises(UnsoundRequest, field="releases", reason="delta"):
        compose(home, [Release.read("0.1,0.5@0:1")] * 2)
