"""The transport of Gaussian processes entry by entry: covariances, windows of lags, rounding."""

from fractions import Fraction

import numpy as np
import pytest

from takifugu._rounding import float_up
from takifugu.costs import ANY, Cost, Distance, Shape, Steps
from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian import gaussian_transport
from takifugu.translation.gaussian.gaussian_transport import (
    GaussianTransport,
    _coefficients,
    _weighed,
)
from takifugu.translation.gaussian.rounded_numbers import all_without_rounding
from tests.raising import raises

pytestmark = pytest.mark.nightly

LAW = np.array(
    [
        [4.0, 1.5, -1.0, 0.0, 0.3],
        [1.5, 3.0, 0.5, 0.7, 0.0],
        [-1.0, 0.5, 2.0, -0.1, 0.1],
        [0.0, 0.7, -0.1, 1.0, 0.2],
        [0.3, 0.0, 0.1, 0.2, 5.0],
    ]
)
UNIT_EACH = Cost.of({Distance(-100, 100): 200})  # 1 for each unit
NARROW = Cost.of({Distance(0, Fraction(1, 3)): Fraction(7, 10), ANY: Fraction(1, 10)})
CLOSE = Fraction(1, 10**11)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that every way of adding up is taken."""
    monkeypatch.setattr(gaussian_transport, "MOST_LISTED", 4)
    monkeypatch.setattr(gaussian_transport, "LONGEST_SUM", 8)
    monkeypatch.setattr(gaussian_transport, "ROWS", 2)


def priced(cost: Cost, distance: Fraction) -> Fraction:
    """What a shift by a distance costs, exactly."""
    total = Fraction(0)
    for shape, value in cost.terms:
        if isinstance(shape, Distance):
            total += value * min(distance / (shape.high - shape.low), Fraction(1))
        elif distance > 0:
            total += value
    return total


def lost(costs: list[Cost], within: Fraction) -> list[Fraction]:
    """``[entry]``: the loss under the covariance above."""
    exact = [[Fraction(value) for value in row] for row in LAW]
    return [
        sum(
            (priced(costs[j], abs(exact[j][i]) / exact[i][i] * within) for j in range(5)),
            Fraction(0),
        )
        for i in range(5)
    ]


def near(found: float, true: Fraction) -> bool:
    return true <= Fraction(found) <= true * (1 + CLOSE) + Fraction(1, 10**300)


@pytest.mark.parametrize("within", [Fraction(1, 10), Fraction(1), Fraction(7)])
@pytest.mark.parametrize("secret", [None, (1, 4), (3,)])
def test_a_covariance_in_exact_numbers(within: Fraction, secret: tuple[int, ...] | None) -> None:
    transport = GaussianTransport(Gaussian(Covariance(LAW)), Secrets(entries=secret, within=within))
    assert transport.size == 5
    for cost in (UNIT_EACH, NARROW, UNIT_EACH + NARROW, Cost.any(Fraction(1, 3))):
        true = lost([cost] * 5, within)
        profile = [cost, NARROW, Cost.of({}), cost * Fraction(1, 3), UNIT_EACH]
        mixed = lost(profile, within)
        for found, exact in (
            (transport.valued(EntryCosts((cost,))), true),
            (transport.valued(EntryCosts(by_entry=tuple(profile))), mixed),
        ):
            assert found.by_entry is not None
            counted = range(5) if secret is None else secret
            for entry in range(5):
                if entry in counted:
                    assert near(found.by_entry[entry], exact[entry])
                else:
                    assert found.by_entry[entry] == 0
            worst = max(counted, key=lambda entry: exact[entry])
            assert found.binding is not None and found.binding.entry == worst
            assert found.value == found.by_entry[worst]
    third = Fraction(1, 3)
    uniform = transport.uniform(float(third))
    assert near(uniform.value, max(lost([Cost.any(Fraction(float(third)))] * 5, within)[i]
                                   for i in (secret or range(5))))  # fmt: skip
    spent = np.array([0.5, 0.1, 0.2, 0.0, 0.3])
    exact = lost([Cost.any(Fraction(e)) for e in spent], within)
    assert near(transport.profile(spent).value, max(exact[i] for i in (secret or range(5))))


def test_the_dearest_of_several_costs_anywhere() -> None:
    transport = GaussianTransport(Gaussian(Covariance(LAW)), Secrets(within=1))
    found = transport.valued(EntryCosts((UNIT_EACH, NARROW)))
    exact = [[Fraction(value) for value in row] for row in LAW]
    for i in range(5):
        moved = [abs(exact[j][i]) / exact[i][i] for j in range(5)]
        true = sum((max(priced(UNIT_EACH, d), priced(NARROW, d)) for d in moved), Fraction(0))
        assert found.by_entry is not None and near(found.by_entry[i], true)


def half(lags: list[int]) -> Fraction:
    return sum((Fraction(1, 2) ** k for k in lags), Fraction(0))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 9])
def test_entries_of_a_stationary_process(length: int) -> None:
    transport = GaussianTransport(Gaussian(AR1(0.5), length), Secrets(within=1))
    found = transport.valued(EntryCosts((UNIT_EACH,)))
    true = [half([abs(i - j) for j in range(length)]) for i in range(length)]
    assert near(found.value, max(true)) and found.binding is not None
    assert found.binding.entry == (length - 1) // 2
    assert (found.by_entry is None) == (length > 4)
    if found.by_entry is not None:
        assert all(near(a, b) for a, b in zip(found.by_entry, true, strict=True))


@pytest.mark.parametrize("length", [4, 6, None])
@pytest.mark.parametrize("secret", [(0, 3), (3, 0), (0,), (2,)])
def test_chosen_entries_of_a_stationary_process(
    length: int | None, secret: tuple[int, ...]
) -> None:
    transport = GaussianTransport(Gaussian(AR1(-0.5), length), Secrets(entries=secret, within=1))
    found = transport.valued(EntryCosts((UNIT_EACH,)))
    end = 60 if length is None else length
    true = {i: half([abs(i - j) for j in range(end)]) for i in secret}
    worst = max(secret, key=lambda entry: true[entry])
    assert found.value == pytest.approx(float(true[worst]), rel=1e-11)
    assert near(found.value, true[worst] - Fraction(1, 2**40))
    assert found.binding is not None and isinstance(found.binding.entry, int)
    assert true[found.binding.entry] == true[worst]
    assert (found.by_entry is None) == (length != 4)
    if found.by_entry is not None:
        assert found.by_entry[[i for i in range(4) if i not in secret]].tolist() == [0.0] * (
            4 - len(secret)
        )


def test_an_unbounded_process() -> None:
    transport = GaussianTransport(Gaussian(AR1(0.5)), Secrets(within=1))
    found = transport.valued(EntryCosts((UNIT_EACH,)))
    assert near(found.value, Fraction(3)) and found.by_entry is None and transport.size is None
    assert found.binding is not None and found.binding.entry is None
    assert transport.uniform(0.1).value == np.inf and transport.largest(1.0) == 0
    alone = GaussianTransport(Gaussian(AR1(0.0)), Secrets(within=1))
    assert near(alone.uniform(0.5).value, Fraction(1, 2))
    with raises(UnsoundRequest, field="profile", given=3, needed=None):
        transport.profile(np.ones(3))
    bounded = GaussianTransport(Gaussian(AR1(0.5), 2), Secrets(within=1))
    with raises(UnsoundRequest, field="profile", given=3, needed=2):
        bounded.profile(np.ones(3))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 12])
def test_a_profile_is_added_up_lag_by_lag_or_from_above(length: int) -> None:
    """Beyond a window every entry costs at most what the last lag does."""
    transport = GaussianTransport(Gaussian(AR1(0.5), length), Secrets(within=1))
    amounts = [Fraction(k % 4, 3) for k in range(length)]
    found = transport.valued(EntryCosts(by_entry=tuple(UNIT_EACH * a for a in amounts)))
    assert found.by_entry is not None
    reach = length - 1 if length <= 8 else 2
    for i in range(length):
        true = sum((a / 2 ** abs(i - j) for j, a in enumerate(amounts)), Fraction(0))
        from_above = sum(
            (a / 2 ** abs(i - j) for j, a in enumerate(amounts) if abs(i - j) <= reach), Fraction(0)
        )
        from_above += sum(amounts, Fraction(0)) / 2**reach if reach < length - 1 else 0
        assert true <= Fraction(found.by_entry[i])
        assert found.by_entry[i] == pytest.approx(float(from_above), rel=1e-11, abs=1e-300)
        assert from_above <= Fraction(found.by_entry[i])


@pytest.mark.parametrize("target", [0.1, 1.0, 3.0, 7.7])
def test_the_largest_epsilon_is_within_its_target(target: float) -> None:
    for prior in (Gaussian(Covariance(LAW)), Gaussian(AR1(0.5), 3), Gaussian(AR1(0.0), 3)):
        transport = GaussianTransport(prior, Secrets(within=1))
        count = {5: 5, 3: 3}[transport.size or 0] if prior.kernel != AR1(0.0) else 1
        found = transport.largest(target)
        assert transport.uniform(found).value <= target
        assert found == pytest.approx(target / count, rel=1e-11)
    assert transport.largest(0.0) == 0


def test_rounded_numbers_take_the_smaller_of_two_bounds() -> None:
    fine = Cost.of({Steps(-50, 50, Fraction(1, 100)): 100})
    other = Cost.of({Steps(-50, 50, Fraction(1, 100)): 50})
    coarse = Cost.of({Steps(-50, 50, 50): 100})
    for prior in (Gaussian(Covariance(LAW)), Gaussian(AR1(0.5), 4), Gaussian(AR1(0.5), 6)):
        transport = GaussianTransport(prior, Secrets(within=1))
        for cost in (EntryCosts((fine,)), EntryCosts((other, fine))):
            made = all_without_rounding(cost.anywhere, prior.least_deviation())
            assert made is not None
            smooth, own = made
            plain = transport._by_distance(EntryCosts(smooth))
            found, counted = transport.valued(cost), transport._by_distance(cost)
            assert found.value < counted.value
            assert found.value == pytest.approx(plain.value + max(own), rel=1e-14)
            assert found.value >= plain.value + max(own)
            assert found.binding == plain.binding
            assert (found.by_entry is None) == (plain.by_entry is None)
            if found.by_entry is not None and plain.by_entry is not None:
                assert found.by_entry == pytest.approx(plain.by_entry + max(own), rel=1e-14)
        once = transport.valued(EntryCosts((coarse,)))
        assert once.value == transport._by_distance(EntryCosts((coarse,))).value
        size = transport.size or 0
        each = (fine, other, *[Cost.of({})] * (size - 2))
        made = all_without_rounding(each, prior.least_deviation())
        assert made is not None
        smooth, own = made
        plain = transport._by_distance(EntryCosts(by_entry=smooth))
        found = transport.valued(EntryCosts(by_entry=each))
        assert plain.by_entry is not None and found.by_entry is not None
        assert found.by_entry == pytest.approx(plain.by_entry + own, rel=1e-14)


def test_the_witness_of_numbers_is_never_above_the_bound() -> None:
    transport = GaussianTransport(Gaussian(Covariance(LAW)), Secrets(within=1))
    bound = transport.uniform(0.5)
    found = transport.witness(0.5, bound)
    assert found.leak == pytest.approx(0.5) and found.leak <= 0.5
    assert found.binding is not None and bound.binding is not None
    assert found.binding.entry == bound.binding.entry
    spent = np.array([0.5, 0.1, 0.2, 0.7, 0.3])
    at = Bound(9.0, Binding("x", "y", entry=3))
    assert transport.witness(spent, at).leak == pytest.approx(0.7)
    capped = transport.witness(spent, Bound(0.25, Binding("x", "y", entry=3)))
    assert capped.leak == 0.25 and capped.binding is not None and capped.binding.entry == 3


def test_coefficients_by_shape() -> None:
    shape: Shape = Distance(0, Fraction(1, 3))
    found = _coefficients((NARROW, Cost.any(2), Cost.of({}), NARROW))
    assert {key: values.tolist() for key, values in found.items()} == {
        shape: [float_up(Fraction(7, 10)), 0, 0, float_up(Fraction(7, 10))],
        ANY: [float_up(Fraction(1, 10)), 2, 0, float_up(Fraction(1, 10))],
    }
    nothing = _coefficients((Cost.of({}), Cost.of({})))
    assert {key: values.tolist() for key, values in nothing.items()} == {ANY: [0, 0]}
    assert Fraction(_coefficients((Cost.any(Fraction(1, 3)),))[ANY][0]) >= Fraction(1, 3)


def test_a_row_of_shares_times_amounts() -> None:
    shifts, values = np.array([[0.1, 0.7], [0.3, 0.0]]), np.array([0.3, 1.1])
    found = _weighed(Distance(0, 1), shifts, values)
    for row in range(2):
        true = sum(
            (Fraction(d) * Fraction(v) for d, v in zip(shifts[row], values, strict=True)),
            Fraction(0),
        )
        assert near(found[row], true)
    assert _weighed(Distance(0, 1), np.zeros((1, 2)), values)[0] < 1e-300
