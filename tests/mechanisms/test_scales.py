"""From what is allowed to the noise that keeps it: limits, edges and rounding, one by one."""

from fractions import Fraction
from math import inf, nan, nextafter

import mpmath
import pytest

from takifugu.costs.losses import Approximate, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import (
    COUNT,
    IntegerGaussian,
    IntegerLaplace,
    candidates,
    noise_laws,
)
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    certify,
    target_of,
)
from takifugu.mechanisms.mechanism_protocol import HISTOGRAM, MAX_SCALE, Sensitivity
from takifugu.translation.protocol import LossTranslation
from tests.raising import raises

pytestmark = pytest.mark.nightly


class Times(LossTranslation):
    """A Pufferfish loss is some times the loss per entry."""

    def __init__(self, up: float, down: float | None = None) -> None:
        self.up, self.down = up, 1 / up if down is None else down

    def to_pufferfish(self, dp: float, /) -> float:
        """That many times as much."""
        return self.up * dp

    def to_dp(self, pufferfish: float, /) -> float:
        """So much of it."""
        return self.down * pufferfish


def test_a_target_is_rounded_down() -> None:
    assert target_of(Fraction(1, 10)) == nextafter(0.1, 0.0)
    assert target_of("0.3") == 0.3 - (Fraction(0.3) > Fraction(3, 10)) * 2.0**-54
    assert target_of(0.1) == 0.1
    with raises(UnsoundRequest, field="mine", given=0.0):
        target_of(0, "mine")


@pytest.mark.parametrize("down", [0.0, -1.0, inf, nan])
def test_nothing_or_everything_is_no_allowance(down: float) -> None:
    with raises(UnsoundRequest, field="epsilon", reason="no allowance", given=2.0):
        allowance(2.0, Times(1.0, down))


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3, 0.9])
@pytest.mark.parametrize("down", [0.01, 0.3, 0.5, 0.7, 0.99])
def test_the_delta_of_one_entry_is_rounded_down(down: float, delta: float) -> None:
    for epsilon in (0.01, 0.3, 1.0, 1.7, 5.0, 33.0):
        allowed, room = approximate_allowance(epsilon, delta, Times(1.0, down))
        assert allowed == down * epsilon
        with mpmath.workdps(40):
            exact = mpmath.mpf(delta) * mpmath.expm1(allowed) / mpmath.expm1(epsilon)
            assert exact * (1 - mpmath.mpf(2) ** -42) < room <= exact


def test_the_delta_of_one_entry_is_never_more_than_all() -> None:
    assert approximate_allowance(1.0, 0.125, Times(1.0, 2.0)) == (2.0, 0.125)


def test_with_a_delta_a_loss_is_at_most_700() -> None:
    allowed, room = approximate_allowance(700, 0.5, Times(1.0, 0.9))
    assert (allowed, 0 < room < 1e-30) == (630.0, True)
    for epsilon in (700.25, 701, 1e6):
        with raises(UnsoundRequest, field="epsilon", given=epsilon, needed=700):
            approximate_allowance(epsilon, 0.5, Times(1.0, 0.9))
    with raises(UnsoundRequest, field="delta"):
        approximate_allowance(1.0, 1.0, Times(2.0))


def test_what_was_built_is_certified() -> None:
    certify(Pure(Fraction(1, 2)), 1.0, Times(2.0))  # all of it
    certify(Approximate(Fraction(1, 2), 0.1), 1.0, Times(2.0))
    with raises(UnsoundRequest, field="translation", given=1.0, needed=0.75) as caught:
        certify(Pure(Fraction(1, 2)), 0.75, Times(2.0))
    assert "1.0" in str(caught.value)
    assert "0.75" in str(caught.value)
    with raises(UnsoundRequest, field="translation"):
        certify(Pure(Fraction(1, 2)), 1.0, Times(nan, 1.0))
    with raises(UnsoundRequest, field="translation"):  # its float is above the tenth
        certify(Pure(Fraction(1, 10)), Fraction(1, 10), Times(1.0))


# candidates


MOVES = [HISTOGRAM, COUNT, Sensitivity("mine", 3, 5, 2)]
ROOM = 1e-6


# targets


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.5])
@pytest.mark.parametrize("reach", [0, 1, 2, 9])
def test_what_noise_is_beyond_a_distance(scale: float, reach: int) -> None:
    with mpmath.workdps(30):
        r = mpmath.exp(-1 / mpmath.mpf(scale))
        exact = 2 * mpmath.nsum(lambda z: r**z, [reach + 1, mpmath.inf]) * (1 - r) / (1 + r)
        assert candidates.laplace_beyond(scale, reach) == pytest.approx(float(exact), rel=1e-12)
        weight = [
            mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * mpmath.mpf(scale) ** 2)) for z in range(200)
        ]
        exact = 2 * sum(weight[reach + 1 :]) / (2 * sum(weight) - 1)
        assert candidates.gaussian_beyond(scale, reach) == pytest.approx(float(exact), rel=1e-9)


def test_very_wide_noise_is_a_rounded_normal() -> None:
    edge = noise_laws.MAX_TABLE_SIZE / 40
    for scale, reach in ((edge, 9_000), (edge * 1.5, 9_000), (2e4, 40_000), (1e6, 10)):
        with mpmath.workdps(30):
            exact = mpmath.erfc((reach + mpmath.mpf("0.5")) / (scale * mpmath.sqrt(2)))
        assert candidates.gaussian_beyond(scale, reach) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize("distance", [1, 1.9, 2, 10, 300.5])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("moves", MOVES[:2], ids=str)
def test_the_most_noise_within_a_distance(
    distance: float, confidence: float, moves: Sensitivity
) -> None:
    (laplace,) = candidates.additive_within(distance, confidence, None, moves)
    also, gaussian = candidates.additive_within(distance, confidence, ROOM, moves)
    assert laplace == also
    reach, miss = int(distance), 1 - confidence
    for one, kind, law in (
        (laplace, IntegerLaplace, candidates.laplace_beyond),
        (gaussian, IntegerGaussian, candidates.gaussian_beyond),
    ):
        noise = one.mechanism
        assert noise == kind(noise.scale, moves)
        assert law(noise.scale, reach) <= miss < law(noise.scale * (1 + 1.01e-4), reach)
    assert laplace.loss == laplace.mechanism.loss
    assert isinstance(gaussian.mechanism, IntegerGaussian)
    assert gaussian.loss == gaussian.mechanism.approximate(ROOM)


@pytest.mark.parametrize("distance", [0.999, 0.0, -1.0, nan])
def test_noise_is_whole(distance: float) -> None:
    with raises(UnsoundRequest, field="within", needed=1) as caught:
        list(candidates.additive_within(distance, 0.9, None, COUNT))
    assert caught.value.given is distance
    with raises(UnsoundRequest, field="confidence"):
        list(candidates.additive_within(1.0, 1.0, None, COUNT))


def test_a_distance_beyond_all_noise_is_the_widest() -> None:
    with raises(UnsoundRequest, field="scale", needed=MAX_SCALE):
        list(candidates.additive_within(inf, 0.5, None, COUNT))
    (found,) = candidates.additive_within(MAX_SCALE * 4, 1 - 1e-9, None, COUNT)
    (also,) = candidates.additive_within(MAX_SCALE, 1 - 1e-9, None, COUNT)
    assert found == also
