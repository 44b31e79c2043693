"""Pieces of mechanisms by themselves: defaults, quadratures, what OpenDP is told first."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
import pytest

from takifugu.mechanisms import opendp_measurements
from takifugu.mechanisms.prediction import _above, _nodes
from takifugu.mechanisms.sums import Bounds

pytestmark = pytest.mark.nightly

MOMENTS = {
    "laplace": (0.0, 2.0),
    "gaussian": (0.0, 1.0),
    "gumbel": (float(np.euler_gamma), pi**2 / 6),
}


def test_values_are_whole_unless_a_unit_is_given() -> None:
    assert Bounds(0, 10).unit == 1
    assert (Bounds(0, 10).width, Bounds(0, 10, 5).width) == (10, 2)


@pytest.mark.parametrize("shape", MOMENTS)
def test_a_quadrature_has_the_moments_of_its_noise(shape: Any) -> None:
    z, weights = _nodes(shape)
    mean, variance = MOMENTS[shape]
    assert weights.sum() == pytest.approx(1)
    assert weights @ z == pytest.approx(mean, abs=0.01)
    assert weights @ z**2 - (weights @ z) ** 2 == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("shape", MOMENTS)
def test_as_much_of_the_noise_is_above_a_node_as_is_not_below_it(shape: Any) -> None:
    z, weights = _nodes(shape)
    np.testing.assert_allclose(weights @ _above(shape, z), 0.5, atol=1e-6)
    assert (np.diff(_above(shape, z)) < 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: opendp_measurements.laplace.__wrapped__(1.0),
        lambda: opendp_measurements.gaussian.__wrapped__(1.0),
        lambda: opendp_measurements.noisy_top.__wrapped__(1, 1.0, concentrated=False),
        lambda: opendp_measurements.randomised_response.__wrapped__(3, 0.5),
        lambda: opendp_measurements.threshold.__wrapped__(1.0, 5),
    ],
)
def test_opendp_is_made_ready_before_each_kind_of_noise(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opendp_measurements._ready()
    asked: list[str] = []
    monkeypatch.setattr(opendp_measurements, "_ready", lambda: asked.append("ready"))
    make()
    assert asked == ["ready"]
