"""Transports of small priors and of numbers at their edges: no cost at all, and next to none."""

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

from takifugu._rounding import float_up
from takifugu.costs import NOTHING, Cost, Distance
from takifugu.priors import AR1, Gaussian, Secrets
from takifugu.translation import explicit_transport, independent_transport
from takifugu.translation.bounds import Binding
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.explicit_transport import _MergedDatasets
from takifugu.translation.gaussian.gaussian_transport import GaussianTransport, _weighed
from takifugu.translation.gaussian.shift_costs import TINY
from takifugu.translation.independent_transport import IndependentTransport
from tests.translation.test_costs_of_small_priors import GROUPS, PRIOR, SHAPE, datasets

pytestmark = pytest.mark.nightly

LEAST = 5e-324  # the least positive float


def test_groups_of_values_between_which_nothing_is_charged_lose_nothing() -> None:
    """Exactly nothing: there is nothing to be rounded."""
    transport = IndependentTransport(PRIOR, GROUPS)
    bound = transport.valued(EntryCosts(by_entry=(NOTHING, Cost.any(9))))
    assert bound.value == 0.0 and bound.by_entry is not None
    assert bound.by_entry.tolist() == [0.0, 0.0]
    assert bound.binding == Binding("0|1", "2|3", entry="a")


def test_datasets_between_which_nothing_is_charged_are_one() -> None:
    law, matrices, left, right = datasets(1)
    merged = _MergedDatasets(law, SHAPE, [np.zeros_like(one) for one in matrices])
    assert merged._sizes == (1, 1, 1) and merged.upper(left, right) == 0.0
    assert merged.lower(left, right) == 0.0


@pytest.mark.parametrize("epsilon", ["1/3", "1/10", "7/10"])
def test_one_value_against_another_loses_the_cost_to_its_last_digit(epsilon: str) -> None:
    transport = IndependentTransport(PRIOR, Secrets(pairs=(((0,), (3,)),), entries=("a",)))
    costs = EntryCosts(by_entry=(Cost.any(epsilon), NOTHING))
    cost = costs.matrix(PRIOR.states["a"], entry=0)
    assert transport.valued(costs).value == cost[0, 3]


@pytest.mark.parametrize("length", [1, 3, 6])
def test_what_underflows_in_a_profile_is_added(length: int) -> None:
    """Each product may have lost a little: two of the least normal floats for each lag."""
    transport = GaussianTransport(Gaussian(AR1(0.5), length), Secrets(within=1))
    values = np.zeros(length)
    values[0] = LEAST
    found = transport._weighed_lags(Distance(0, 4), values)
    lags = 2 * length - 1
    assert (found >= 2 * lags * TINY).all() and (found <= 2.001 * lags * TINY).all()
    rows = _weighed(Distance(0, 4), np.full((2, length), 0.125), values)
    assert (rows >= length * TINY).all() and (rows <= 1.001 * length * TINY).all()


LARGE = 2.0**-20  # an error of costs so large that it shows


def with_large_errors(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[int]:
    """Costs are off by much, and sums by nothing; how many roundings these are said to have."""
    roundings: list[int] = []

    def gamma(terms: int) -> float:
        roundings.append(terms)
        return 0.0

    monkeypatch.setattr(module, "OFF", LARGE)
    monkeypatch.setattr(module, "gamma", gamma)
    return roundings


def test_what_datasets_leak_is_lowered_by_the_error_of_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By four times the error for all costs together and one more; sums are counted, and more."""
    roundings = with_large_errors(monkeypatch, explicit_transport)
    first, second = (cost * (1 - np.eye(2)) for cost in (0.5, 0.25))
    law = np.array([0.3, 0.0, 0.0, 0.7])  # both entries tell the same
    merged = _MergedDatasets(law, (2, 2), [first, second])
    sides = np.array([True, True, False, False]), np.array([False, False, True, True])
    found = merged.lower(*sides)
    assert found == pytest.approx(0.75 - 4 * LARGE * (1 + 0.75), abs=1e-9)
    assert roundings == [2 * 4 + 16]
    monkeypatch.setattr(explicit_transport, "down", lambda value: value - 0.125)
    assert merged.lower(*sides) == pytest.approx(found - 0.125, abs=1e-9)


def test_what_an_entry_leaks_is_lowered_by_the_error_of_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roundings = with_large_errors(monkeypatch, independent_transport)
    transport = IndependentTransport(PRIOR, Secrets(pairs=(((0,), (3,)),), entries=("a",)))
    costs = EntryCosts(by_entry=(Cost.any("3/4"), NOTHING))
    bound = transport.valued(costs)
    found = transport.valued_witness(costs, bound).leak
    assert found == pytest.approx(0.75 - 4 * LARGE * (1 + 0.75), abs=1e-9)
    assert set(roundings) == {4 * 4 + 16}
    monkeypatch.setattr(independent_transport, "down", lambda value: value - 0.125)
    assert transport.valued_witness(costs, bound).leak == pytest.approx(found - 0.125, abs=1e-9)


def test_where_nothing_is_charged_no_mechanism_is_named() -> None:
    transport = IndependentTransport(PRIOR, GROUPS)
    costs = EntryCosts(by_entry=(NOTHING, NOTHING))
    found = transport.valued_witness(costs, transport.valued(costs))
    assert found.leak == 0.0 and found.entries == () and found.factors is None


def test_a_distance_between_two_floats_counts_as_the_larger_one() -> None:
    for within in (Fraction(1, 3), Fraction(1, 10), Fraction(2, 3)):
        transport = GaussianTransport(Gaussian(AR1(0.0), 1), Secrets(within=within))
        assert transport._within == float_up(within) and Fraction(transport._within) > within


def test_numbers_of_which_nothing_is_charged_lose_exactly_nothing() -> None:
    transport = GaussianTransport(Gaussian(AR1(0.5), 3), Secrets(within=1))
    for found in (
        transport.profile(np.zeros(3)),
        transport.valued(EntryCosts(by_entry=(NOTHING,) * 3)),
    ):
        assert found.value == 0.0 and found.by_entry is not None
        assert found.by_entry.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("target", [LEAST, 20 * LEAST])
def test_a_target_below_all_that_is_lost_allows_nothing(target: float) -> None:
    """What moves at all loses the least normal float: every smaller ε is tried, down to none."""
    transport = GaussianTransport(Gaussian(AR1(0.5), 3), Secrets(within=1))
    found = transport.largest(target)
    assert found == 0.0 or transport.uniform(found).value <= target
