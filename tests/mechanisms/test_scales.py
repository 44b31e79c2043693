"""From what is allowed to the noise that keeps it: limits, edges and rounding, one by one."""

from collections.abc import Callable
from fractions import Fraction
from math import inf, log, nan, nextafter, sqrt
from typing import Any

import mpmath
import pytest

from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import (
    COUNT,
    IntegerGaussian,
    IntegerLaplace,
    candidates,
    noise_laws,
)
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    certify,
    least_scale,
    searched_scale,
    target_of,
)
from takifugu.mechanisms.checks import MAX_SCALE
from takifugu.mechanisms.mechanism_protocol import HISTOGRAM, Sensitivity
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


def from_on(least: float) -> Callable[[float], Fraction]:
    """A loss of 1 below a scale, of 1/2 from it on."""
    return lambda scale: Fraction(1, 2) if scale >= least else Fraction(1)


SEARCHES = pytest.mark.parametrize("search", [least_scale, searched_scale])


@SEARCHES
def test_the_loss_may_be_all_that_is_allowed(search: Any) -> None:
    assert search(3.0, from_on(3.0), 0.5) == pytest.approx(3.0, rel=1e-7)
    assert search(3.0, from_on(3.0), 0.75) == pytest.approx(3.0, rel=1e-7)


@pytest.mark.parametrize("beyond", [2.0**-52, 2.0**-50, 2.0**-40, 1e-6, 0.3, 4.0])
def test_the_first_scale_that_is_enough_is_near_the_guess(beyond: float) -> None:
    found = least_scale(1.0, from_on(1.0 + beyond), 0.5)
    assert 1.0 + beyond <= found <= (1.0 + beyond) ** 2 * (1 + 2.0**-51)
    assert least_scale(1.0, from_on(0.5), 0.5) == 1.0
    assert least_scale(1.0, from_on(1.0 + 2.0**-52), 0.5) == 1.0 + 2.0**-52


def test_the_widest_scale_is_still_one() -> None:
    assert least_scale(nextafter(MAX_SCALE, 0.0), from_on(MAX_SCALE), 0.5) == MAX_SCALE
    assert searched_scale(MAX_SCALE / 2, from_on(MAX_SCALE), 0.5) == MAX_SCALE
    assert searched_scale(MAX_SCALE / 4, from_on(MAX_SCALE), 0.5) == MAX_SCALE


@SEARCHES
@pytest.mark.parametrize("guess", [MAX_SCALE, MAX_SCALE / 2, nextafter(MAX_SCALE, 0.0), 1.0])
def test_no_scale_is_wider(search: Any, guess: float) -> None:
    tried: list[float] = []

    def loss(scale: float) -> Fraction:
        tried.append(scale)
        return Fraction(1)

    with raises(UnsoundRequest, field="epsilon", reason="too small", given=0.25) as caught:
        search(guess, loss, 0.25)
    assert "0.25" in str(caught.value)
    assert MAX_SCALE / 3 < max(tried) <= MAX_SCALE


@pytest.mark.parametrize("least", [1e-4, 0.3, 0.5, 0.9, 1.0, 1.1, 1.9, 2.0, 3.0, 1000.0])
def test_a_searched_scale_is_the_least_to_a_part_in_ten_million(least: float) -> None:
    tried: list[float] = []

    def loss(scale: float) -> Fraction:
        tried.append(scale)
        return from_on(least)(scale)

    found = searched_scale(1.0, loss, 0.5)
    assert least <= found <= least * (1 + 1.01e-7)
    assert found in tried
    assert len(tried) < 60


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


def test_an_allowance_is_what_the_translation_says() -> None:
    assert allowance(2.0, Times(4.0)) == 0.5
    assert allowance(2.0, Times(1.0, 2.0**-1070)) == 2.0**-1069


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


@pytest.mark.parametrize(
    "given",
    [
        {"translation": Times(2.0)},
        {"epsilon": 1.0},
        {"delta": 0.1},
        {"translation": Times(2.0), "epsilon": 1.0, "delta": 0.1},
    ],
)
def test_a_loss_says_all(given: dict[str, Any]) -> None:
    options = {"translation": None, "epsilon": None, "delta": None} | given
    with raises(UnsoundRequest, field="loss", reason="both"):
        candidates.allowed_loss(Pure(1), **options)


def test_what_is_allowed() -> None:
    of = candidates.allowed_loss
    for loss in (Pure("0.5"), Concentrated("0.5"), Approximate("0.5", "0.1")):
        assert of(loss, None, None, None) is loss
    for nothing in (Pure(0), Concentrated(0), Approximate(0, "0.1")):
        with raises(UnsoundRequest, field="loss", reason="zero"):
            of(nothing, None, None, None)
    options: list[Any] = [(None, 1.0, None), (Times(2.0), None, None), (None, None, 0.1)]
    for some in options:
        with raises(UnsoundRequest, field="loss", reason="missing"):
            of(None, *some)
    assert of(None, Times(2.0), 1.0, None) == Pure("0.5")
    both = of(None, Times(2.0), 1.0, 0.125)
    assert both == Approximate(*approximate_allowance(1.0, 0.125, Times(2.0)))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick conversion of ρ to (ε, δ) in place of OpenDP's: ε = ρ + 2√(ρ log(1/δ))."""

    def approximate(measurement: Any, d_in: Any, delta: float) -> Approximate:
        rho = measurement.map(d_in)
        return Approximate(rho + 2 * sqrt(rho * -log(delta)), delta)

    monkeypatch.setattr(measurements, "approximate", approximate)


MOVES = [HISTOGRAM, COUNT, Sensitivity("mine", 3, 5, 2)]
ROOM = 1e-6


@pytest.mark.parametrize("moves", MOVES, ids=str)
def test_noise_within_a_pure_loss_is_laplace_alone(moves: Sensitivity) -> None:
    for allowed in (Pure("0.3"), Approximate("0.3", 0)):
        (found,) = candidates.additive(allowed, moves)
        assert found.mechanism == IntegerLaplace.within(Fraction(3, 10), sensitivity=moves)
        assert found.loss == found.mechanism.loss


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("moves", MOVES, ids=str)
@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "4"])
def test_gaussian_noise_is_the_least_within_epsilon_and_delta(
    moves: Sensitivity, epsilon: str
) -> None:
    allowed = Approximate(epsilon, ROOM)
    laplace, gaussian = candidates.additive(allowed, moves)
    assert laplace.mechanism == IntegerLaplace.within(epsilon, sensitivity=moves)
    assert laplace.loss == laplace.mechanism.loss
    noise = gaussian.mechanism
    assert isinstance(noise, IntegerGaussian)
    assert noise.sensitivity == moves
    assert gaussian.loss == noise.approximate(ROOM)
    assert gaussian.loss.delta == Fraction(ROOM)
    assert gaussian.loss.epsilon <= Fraction(epsilon)
    narrower = IntegerGaussian(noise.scale * (1 - 2e-7), moves)
    assert narrower.approximate(ROOM).epsilon > Fraction(epsilon)


@pytest.mark.parametrize("moves", MOVES, ids=str)
@pytest.mark.parametrize("rho", ["0.01", "1/3", "4"])
def test_noise_within_a_concentrated_loss(moves: Sensitivity, rho: str) -> None:
    allowed = Concentrated(Fraction(rho))
    laplace, gaussian = candidates.additive(allowed, moves)
    assert isinstance(laplace.mechanism, IntegerLaplace)
    assert laplace.loss == Concentrated(laplace.mechanism.loss.epsilon**2 / 2)
    assert laplace.loss.rho <= allowed.rho
    noise = gaussian.mechanism
    assert isinstance(noise, IntegerGaussian)
    assert noise.sensitivity == moves
    assert gaussian.loss == noise.loss
    assert noise.loss.rho <= allowed.rho
    assert noise.scale == pytest.approx(moves.l2 / sqrt(2 * Fraction(rho)), rel=1e-12)


@pytest.mark.usefixtures("quick")
def test_hardly_any_loss_is_refused_in_words() -> None:
    """√(log(1/δ) + ε) is √log(1/δ) for so small an ε."""
    for epsilon in (1e-15, 1e-16, 1e-30):
        with raises(UnsoundRequest, field="epsilon", reason="too small", given=epsilon):
            IntegerGaussian.calibrated(epsilon=epsilon, delta=ROOM, translation=Times(1.0))


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
    edge = noise_laws.TABLE / 40
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
