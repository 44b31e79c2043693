"""The parts of a composition: which entries a release uses, what is refused, what is said."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import float_up
from takifugu.costs import Cost, Membership
from takifugu.errors import UnsoundRequest
from takifugu.losses import Concentrated, Metric, Pure, Total
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from takifugu.translation.accounting import composition, totals
from takifugu.translation.accounting.composition import (
    Release,
    _ends,
    _numbers,
    _places,
    compose,
    totals_by_entry,
)
from takifugu.translation.gaussian.gaussian_transport import LONGEST_SUM, MOST_LISTED
from takifugu.translation.gaussian.lag_costs import MOST_LAGS
from takifugu.translation.gaussian.linear_queries import MOST_ROWS, MOST_WEIGHTS
from takifugu.translation.translation import LARGEST
from tests.raising import raises

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])
HOME = Translation(MarkovChain(ROWS, length=4))


@pytest.mark.parametrize("window", [(-1, 2), (2, 2), (3, 2)])
def test_windows_that_are_none(window: tuple[int, int]) -> None:
    with raises(UnsoundRequest, field="window"):
        Release(Pure(1), window)
    with raises(UnsoundRequest, field="window"):
        Release(Pure(1), (0, 1), ("a",))
    assert Release(Pure(1), (0, 1)).entries is None and Release(Pure(1)).window is None


@pytest.mark.parametrize("text", ["1@", "1@3:", "1@:3", "1@a:3", "1@3:a", "1@3:4:5", "1,2,3"])
def test_texts_that_are_no_release(text: str) -> None:
    with pytest.raises(UnsoundRequest):
        Release.read(text)


def test_numbers_up_to_the_largest_are_rounded_up() -> None:
    third = Fraction(1, 3)
    assert _numbers([third, Fraction(LARGEST)]).tolist() == [float_up(third), LARGEST]
    with raises(UnsoundRequest, field="releases", reason="total"):
        _numbers([Fraction(0), Fraction(LARGEST) + 1])


def test_which_places_a_release_uses() -> None:
    names: Any = ("mon", "tue", 7, "7x")
    assert list(_places(Release(Pure(1)), names, 4)) == [0, 1, 2, 3]
    assert list(_places(Release(Pure(1), (1, 4)), names, 4)) == [1, 2, 3]
    with raises(UnsoundRequest, field="window", given=5, needed=4):
        _places(Release(Pure(1), (1, 5)), names, 4)
    assert _places(Release(Pure(1), entries=("tue", "mon", "tue")), names, 4) == [0, 1]
    assert _places(Release(Pure(1), entries=("7", 7)), names, 4) == [2]  # by its text as well
    both: Any = (7, "7")
    assert _places(Release(Pure(1), entries=("7",)), both, 2) == [1]  # a name of its own is first
    assert _places(Release(Pure(1), entries=(1, "0")), None, 2) == [0, 1]
    for wrong in (2, "sun"):
        with raises(UnsoundRequest, field="entries", given=wrong):
            _places(Release(Pure(1), entries=(wrong,)), None, 2)
    assert _ends(Release(Pure(1), (1, 5))) == [5]
    assert _ends(Release(Pure(1), entries=(3, 8))) == [4, 9] and _ends(Release(Pure(1))) == []


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


def test_deltas_that_add_up_to_one_guarantee_nothing() -> None:
    with raises(UnsoundRequest, field="releases", reason="delta"):
        compose(HOME, [Release.read("0.1,0.5")] * 2)
    found = compose(HOME, [Release.read("0.1,1e-9")] * 2)
    assert found.dp_delta == pytest.approx(2e-9) and found.theorem_7 is None
    with raises(UnsoundRequest, field="delta"):
        compose(HOME, [Release.read("rho=0.1@0:2")])


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


def test_theorem_7_is_of_pure_losses_and_curves() -> None:
    assert composition._theorem_7(HOME, [Release(Pure(1)), Release(Concentrated(1))]) is None
    unknown = Translation(MarkovChain(ROWS, known="any"))
    assert not unknown.has_curve
    assert composition._theorem_7(unknown, [Release(Pure(1))]) is None
    one = composition._theorem_7(HOME, [Release(Pure("1/10"))])
    assert one == pytest.approx(float(HOME.curve.to_pufferfish(0.1)), rel=1e-12)


# ---- how much is looked at one by one


def test_many_entries_are_looked_at_one_by_one() -> None:
    """Numbers: thousands of lags, entries and weights, before anything is bounded together."""
    for most in (MOST_ROWS, MOST_WEIGHTS, MOST_LAGS, LONGEST_SUM):
        assert 16_000 <= most <= 10**6
    assert 100_000 <= MOST_LISTED <= 10**7


def test_a_filter_needs_an_epsilon_and_room() -> None:
    """With δ alone every entry is given a little ε, for which the lemma asks."""
    asked: list[float] = []

    def loss_at(epsilon: float) -> tuple[float, float]:
        asked.append(epsilon)
        return epsilon, 3 * epsilon

    found = totals.total_to_pufferfish(loss_at, Total(delta=Fraction(1, 10**9)), Fraction(1, 10**6))
    assert asked[0] == totals.LEAST and 3e-3 <= found <= 3.1e-3
