"""The transport of Gaussian processes entry by entry: covariances, windows of lags, rounding."""

from fractions import Fraction

import numpy as np
import pytest

from takifugu.costs.cost import ANY, Cost, Distance
from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.translation.entry_costs import EntryCosts
from tests.raising import raises
from tests.translation.transports import transport_of

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
    transport = transport_of(Gaussian(Covariance(LAW)), Secrets(entries=secret, within=within))
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


def half(lags: list[int]) -> Fraction:
    return sum((Fraction(1, 2) ** k for k in lags), Fraction(0))


@pytest.mark.parametrize("length", [4, 6, None])
@pytest.mark.parametrize("secret", [(0, 3), (3, 0), (0,), (2,)])
def test_chosen_entries_of_a_stationary_process(
    length: int | None, secret: tuple[int, ...]
) -> None:
    transport = transport_of(Gaussian(AR1(-0.5), length), Secrets(entries=secret, within=1))
    found = transport.valued(EntryCosts((UNIT_EACH,)))
    end = 60 if length is None else length
    true = {i: half([abs(i - j) for j in range(end)]) for i in secret}
    worst = max(secret, key=lambda entry: true[entry])
    assert found.value == pytest.approx(float(true[worst]), rel=1e-11)
    assert near(found.value, true[worst] - Fraction(1, 2**40))
    assert found.binding is not None and isinstance(found.binding.entry, int)
    assert true[found.binding.entry] == true[worst]
    if found.by_entry is not None:
        assert found.by_entry[[i for i in range(4) if i not in secret]].tolist() == [0.0] * (
            4 - len(secret)
        )


def test_an_unbounded_process() -> None:
    transport = transport_of(Gaussian(AR1(0.5)), Secrets(within=1))
    found = transport.valued(EntryCosts((UNIT_EACH,)))
    assert near(found.value, Fraction(3)) and found.by_entry is None and transport.size is None
    assert found.binding is not None and found.binding.entry is None
    assert transport.uniform(0.1).value == np.inf and transport.largest(1.0) == 0
    alone = transport_of(Gaussian(AR1(0.0)), Secrets(within=1))
    assert near(alone.uniform(0.5).value, Fraction(1, 2))
    with raises(UnsoundRequest, field="profile", given=3, needed=None):
        transport.profile(np.ones(3))
    bounded = transport_of(Gaussian(AR1(0.5), 2), Secrets(within=1))
    with raises(UnsoundRequest, field="profile", given=3, needed=2):
        bounded.profile(np.ones(3))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 12])
def test_a_profile_is_added_up_lag_by_lag(length: int) -> None:
    transport = transport_of(Gaussian(AR1(0.5), length), Secrets(within=1))
    amounts = [Fraction(k % 4, 3) for k in range(length)]
    found = transport.valued(EntryCosts(by_entry=tuple(UNIT_EACH * a for a in amounts)))
    assert found.by_entry is not None
    for i in range(length):
        true = sum((a / 2 ** abs(i - j) for j, a in enumerate(amounts)), Fraction(0))
        assert true <= Fraction(found.by_entry[i])
        assert found.by_entry[i] == pytest.approx(float(true), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("target", [0.1, 1.0, 3.0, 7.7])
def test_the_largest_epsilon_is_within_its_target(target: float) -> None:
    for prior in (Gaussian(Covariance(LAW)), Gaussian(AR1(0.5), 3), Gaussian(AR1(0.0), 3)):
        transport = transport_of(prior, Secrets(within=1))
        count = {5: 5, 3: 3}[transport.size or 0] if prior.kernel != AR1(0.0) else 1
        found = transport.largest(target)
        assert transport.uniform(found).value <= target
        assert found == pytest.approx(target / count, rel=1e-11)
    assert transport.largest(0.0) == 0
