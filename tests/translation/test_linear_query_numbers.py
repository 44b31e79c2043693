"""Linear queries in exact numbers: what each entry loses, from above and below, and in windows."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.priors.kernels import TINY
from takifugu.translation import GaussianNoiseLoss, LinearLoss, LinearQuery, LinearReleases
from takifugu.translation.bounds import EXACT, Binding
from takifugu.translation.certify.closed import gdp_delta, gdp_epsilon
from takifugu.translation.certify.linear import MAX_WEIGHTS
from tests.raising import raises

pytestmark = pytest.mark.nightly

LAW = [[3.0, 1.0, -0.7], [1.0, 2.0, 0.3], [-0.7, 0.3, 0.9]]
CLOSE = 1e-12
QUERIES: list[tuple[list[Any], tuple[Any, Any] | None]] = [
    ([1, 1, 1], None),
    (["0.3", "-0.7", "1.1"], None),
    ([0, 5, "-1/3"], None),
    (["0.1", "0.1", "0.1"], (-1, 2)),
    ([-2, "0.7", 3], (0, "0.45")),
]
SCALES: list[Any] = [1, "0.3", "7/3", 11, "0.9"]


def shift(weights: Sequence[Any], bounds: Any, entry: int, within: Fraction) -> Fraction:
    """What a query moves by, exactly."""
    exact = [[Fraction(value) for value in row] for row in LAW]
    moved = [exact[j][entry] / exact[entry][entry] * within for j in range(3)]
    size = [Fraction(weight) for weight in weights]
    if bounds is None:
        return abs(sum((a * m for a, m in zip(size, moved, strict=True)), Fraction(0)))
    width = Fraction(bounds[1]) - Fraction(bounds[0])
    return sum((abs(a) * min(abs(m), width) for a, m in zip(size, moved, strict=True)), Fraction(0))


@pytest.mark.parametrize("within", ["0.1", 1, "7.3"])
@pytest.mark.parametrize("which", [[0], [1], [2], [3], [4], [0, 1], [1, 2, 4], [0, 1, 2, 3, 4]])
def test_both_kinds_of_noise_against_exact_numbers(which: list[int], within: Any) -> None:
    process = LinearReleases(Gaussian(Covariance(np.array(LAW))), Secrets(within=within))
    releases = [(LinearQuery(*QUERIES[k]), SCALES[k]) for k in which]
    pure, smooth = process.laplace(releases), process.gaussian(releases)
    sums, squares, least = [], [], []
    for entry in range(3):
        parts = [shift(*QUERIES[k], entry, Fraction(within)) / Fraction(SCALES[k]) for k in which]
        sums.append(sum(parts, Fraction(0)))
        squares.append(sum((part**2 for part in parts), Fraction(0)))
        free = [QUERIES[k][1] is None for k in which]
        least.append(sum((p for p, f in zip(parts, free, strict=True) if f), Fraction(0)))
    for entry in range(3):
        assert sums[entry] <= Fraction(pure.by_entry[entry]) <= sums[entry] * Fraction(1 + CLOSE)
        assert squares[entry] <= Fraction(smooth.by_entry[entry]) ** 2
        assert Fraction(smooth.by_entry[entry]) ** 2 <= squares[entry] * Fraction(1 + CLOSE)
    worst = max(range(3), key=lambda entry: sums[entry])
    assert pure.pufferfish == pure.by_entry[worst] and pure.binding.entry == worst
    assert max(least) * Fraction(1 - CLOSE) <= Fraction(pure.lower) <= max(least)
    worst = max(range(3), key=lambda entry: squares[entry])
    assert smooth.mu == smooth.by_entry[worst] and smooth.binding.entry == worst
    assert smooth.binding.left == "x"


def test_what_cancels_costs_next_to_nothing() -> None:
    law = Covariance(np.array([[1.0, 0.1], [0.1, 1.0]]))
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=1))
    cancelled = process.laplace([(LinearQuery([Fraction(0.1), -1]), 1)])
    assert 0 < cancelled.pufferfish < 1e-14 and cancelled.lower == 0
    clamped = process.laplace([(LinearQuery([Fraction(0.1), -1], bounds=(-9, 9)), 1)])
    assert clamped.pufferfish == pytest.approx(0.2) and clamped.lower == 0


@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_nothing_is_rounded_to_nothing(bounds: Any) -> None:
    law = Covariance(np.array([[1.0, 0.0], [0.0, 1e-300]]))
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=Fraction(1, 10**300)))
    small = LinearQuery({0: Fraction(1, 10**300)}, bounds=bounds)
    assert TINY <= process.laplace([(small, 1)]).pufferfish <= 16 * TINY
    assert TINY / 2 <= process.laplace([(small, 10**300)]).pufferfish <= 16 * TINY
    assert 0 < process.gaussian([(small, 1)]).mu < 1e-150
    assert process.mixed([(small, 1)], [(small, 1)], delta=1e-6) > 0
    apart = LinearQuery({1: 1}, bounds=bounds)  # has nothing to do with the secret
    assert process.laplace([(apart, 1)]).pufferfish == 0
    assert process.gaussian([(apart, 1)]).mu == process.gaussian([(apart, 1)]).lower == 0


def joint(law: Any, entry: int, weights: Any, deviations: Any) -> Any:
    """√(Δᵀ S⁻¹ Δ) in many digits, of all outputs given the entry."""
    with mpmath.workdps(60):
        K, A = mpmath.matrix(law), mpmath.matrix(weights)
        cross = K[:, entry]
        given = K - cross * cross.T / K[entry, entry]
        noise = mpmath.diag([mpmath.mpf(d) ** 2 for d in deviations])
        moved = A * cross / K[entry, entry]
        return mpmath.sqrt((moved.T * mpmath.inverse(A * given * A.T + noise) * moved)[0])


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("entry", [0, 1, 2])
def test_the_joint_law_of_outputs(entry: int, count: int) -> None:
    weights = [[1.0, 1.0, 1.0], [0.5, -0.75, 1.25], [0.0, 2.0, -1.0]][:count]
    deviations = [0.5, 1.25, 0.03125][:count]
    for within in (1, 3):
        process = LinearReleases(
            Gaussian(Covariance(np.array(LAW))), Secrets(entries=(entry,), within=within)
        )
        found = process.gaussian(
            [(LinearQuery(w), d) for w, d in zip(weights, deviations, strict=True)]
        )
        true = joint(LAW, entry, weights, deviations) * within
        assert true * (1 - 1e-11) <= found.lower <= true
        assert found.lower <= found.mu


def test_the_joint_law_of_few_outputs_and_entries_alone() -> None:
    process = LinearReleases(Gaussian(AR1(0.5), 600), Secrets(entries=(0,), within=1))
    assert process.gaussian([(LinearQuery([1] * 512), 1)]).lower > 0.05
    assert process.gaussian([(LinearQuery([1] * 513), 1)]).lower == 0
    once = (LinearQuery([1]), 32)
    assert process.gaussian([once] * 512).lower > 0.5
    assert process.gaussian([once] * 513).lower == 0
    clamped = LinearQuery([1], bounds=(0, 1))
    assert process.gaussian([once, (clamped, 1)]).lower == 0


def test_a_weight_behind_the_last_entry_is_refused() -> None:
    process = LinearReleases(Gaussian(AR1(0.5), 3), Secrets(within=1))
    assert process.laplace([(LinearQuery({2: 1}), 1)]).pufferfish == pytest.approx(1)
    with raises(UnsoundRequest, field="weights", given=3, needed=3):
        process.laplace([(LinearQuery({0: 1}), 1), (LinearQuery({3: 1}), 1)])


def test_both_kinds_of_noise_for_each_entry() -> None:
    """ε and μ add up entry by entry; the entry with the largest ε need not lose most."""
    prior, delta = Gaussian(Covariance(np.array(LAW))), 1e-5
    lists: list[tuple[Any, Any]] = [
        ([(LinearQuery([4, 0, 0]), 4)], [(LinearQuery([0, 0, 1]), "0.3")]),
        ([(LinearQuery([1, 1, 1]), 1)], [(LinearQuery([1, 1, 1]), 1)]),
        (
            [(LinearQuery([1, 2, 0]), 3), (LinearQuery([0, 1, 0]), 5)],
            [(LinearQuery([0, 0, 1]), 2), (LinearQuery([1, 0, 0]), 3)],
        ),
    ]
    for pure, smooth in lists:
        whole = LinearReleases(prior, Secrets(within=1))
        parts = []
        for entry in range(3):
            one = LinearReleases(prior, Secrets(entries=(entry,), within=1))
            parts.append((one.laplace(pure).pufferfish, one.gaussian(smooth).mu))
        true = max(epsilon + gdp_epsilon(mu, delta) for epsilon, mu in parts)
        assert true * (1 - 1e-14) <= whole.mixed(pure, smooth, delta=delta) <= true * (1 + 1e-11)
        assert whole.mixed(pure, [], delta=delta) == whole.laplace(pure).pufferfish
        assert whole.mixed([], smooth, delta=delta) == whole.gaussian(smooth).epsilon(delta)
    with raises(UnsoundRequest, field="releases"):
        whole.mixed([], [], delta=delta)


def test_both_losses_as_values() -> None:
    at = Binding("x", "y")
    for upper, lower, exact in (
        (1.0, 1 - EXACT, True),
        (1.0, 1.0, True),
        (1.0, 1 - 2 * EXACT, False),
        (0.0, 0.0, True),
        (np.inf, np.inf, False),
    ):
        assert LinearLoss(upper, lower, at, np.array([upper])).exact == exact
    for mu in (1e-3, 0.1, 0.7, 1.3, 11.0):
        loss = GaussianNoiseLoss(mu, 0.0, at, np.array([mu]))
        true = Fraction(mu) ** 2 / 2
        assert true <= Fraction(loss.rho) <= true * Fraction(1 + CLOSE)
        assert loss.epsilon(1e-6) == gdp_epsilon(mu, 1e-6)
        assert loss.delta(0.5) == gdp_delta(mu, 0.5)
    assert GaussianNoiseLoss(0.0, 0.0, at, np.zeros(1)).rho == 0
    assert GaussianNoiseLoss(1e-200, 0.0, at, np.zeros(1)).rho == TINY


def test_a_query_keeps_weights_other_than_0_in_order() -> None:
    query = LinearQuery({7: 1, 2: "0.5", 4: 0, 2**53 - 1: -3}, bounds=("0.1", 1))
    assert query.weights == ((2, Fraction(1, 2)), (7, Fraction(1)), (2**53 - 1, Fraction(-3)))
    assert query.bounds == (Fraction(1, 10), Fraction(1))
    assert query.entries.tolist() == [2, 7, 2**53 - 1]
    assert LinearQuery([0, 1]) == LinearQuery({1: 1}) != LinearQuery({1: 1}, bounds=(0, 1))
    assert LinearQuery([1]).bounds is None
    assert len(LinearQuery([1] * MAX_WEIGHTS).weights) == MAX_WEIGHTS
    with raises(UnsoundRequest, field="weights", given=MAX_WEIGHTS + 1, needed=MAX_WEIGHTS):
        LinearQuery([1] * (MAX_WEIGHTS + 1))
    wrong: list[Any] = [{True: 1}, {-1: 1}, {2**53: 1}, {"0": 1}, {0.0: 1}, {}, [], [0, 0]]
    for weights in wrong:
        with raises(UnsoundRequest, field="weights"):
            LinearQuery(weights)
    for bounds in ((1, 1), (2, 1)):
        with raises(UnsoundRequest, field="bounds"):
            LinearQuery([1], bounds=bounds)


@pytest.mark.parametrize("scale", [0, -1, Fraction(1, 10**400)])
def test_a_scale_that_is_not_above_0_is_refused(scale: Any) -> None:
    process = LinearReleases(Gaussian(AR1(0.5), 3), Secrets(within=1))
    for releases in ([(LinearQuery([1]), scale)], [(LinearQuery([1]), 1), ("sum", 1)], []):
        with raises(UnsoundRequest, field="releases"):
            process.laplace(releases)  # type: ignore[arg-type]
        with raises(UnsoundRequest, field="releases"):
            process.gaussian(releases)  # type: ignore[arg-type]
    with raises(UnsoundRequest):
        LinearReleases(Gaussian(AR1(0.5), 3), Secrets())
    with raises(UnsoundRequest):
        LinearReleases(Gaussian(AR1(0.5), 3), Secrets(entries=(3,), within=1))


@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_what_underflows_beside_an_entry_that_does_not_move(bounds: Any) -> None:
    """A weight so small that its product is 0 as a float still tells something."""
    law = Covariance(np.array([[1.0, 0.0], [0.0, 1.0]]))
    tiny = Fraction(1, 10**300)
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=tiny))
    both = LinearQuery({0: tiny, 1: 1}, bounds=bounds)
    assert 0 < process.laplace([(both, 1)]).pufferfish < 1e-300
    assert process.laplace([(LinearQuery({1: 1}, bounds=bounds), 1)]).pufferfish == 0


def test_secrets_are_looked_at_before_any_release() -> None:
    labels = Secrets(pairs=(((0,), (1,)),))
    for secrets, reason in ((Secrets(), "no-distance"), (labels, "pairs")):
        with raises(UnsoundRequest, field="secrets", reason=reason):
            LinearReleases(Gaussian(AR1(0.5), 3), secrets)


def test_what_all_but_cancels_is_not_said_to_leak_less_than_nothing() -> None:
    law = Covariance(np.array([[1.0, 0.1], [0.1, 1.0]]))
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=1))
    for share in (1 + Fraction(1, 2**50), 1 - Fraction(1, 2**50)):
        found = process.gaussian([(LinearQuery([Fraction(0.1) * share, -1]), 1)])
        assert found.lower == 0.0 and 0 < found.mu < 1e-13


def test_the_entry_that_loses_most_need_not_have_the_largest_epsilon() -> None:
    """Three entries without correlation, in every order: each has its own ε and μ."""
    prior, delta = Gaussian(AR1(0.0), 3), 1e-5
    for order, scale in product(([0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]), (1.0, 1 / 32)):
        epsilon, mu = [one * scale for one in (1, 2, 3)], [one * scale for one in (0.75, 0.5, 0.25)]
        pure = [(LinearQuery({k: 1}), 1 / Fraction(epsilon[i])) for k, i in enumerate(order)]
        smooth = [(LinearQuery({k: 1}), 1 / Fraction(mu[i])) for k, i in enumerate(order)]
        process = LinearReleases(prior, Secrets(within=1))
        both = [e + gdp_epsilon(m, delta) for e, m in zip(epsilon, mu, strict=True)]
        assert process.mixed(pure, smooth, delta=delta) == pytest.approx(max(both), rel=1e-9)
