"""What makes no sense is refused in one line, and the line never repeats a protected value."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidMechanism, TakifuguError
from takifugu.finite import FiniteMechanism
from takifugu.mechanisms import (
    BoundedMean,
    BoundedSum,
    Bounds,
    Exponential,
    FiniteChannel,
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
    ThresholdedHistogram,
)
from takifugu.mechanisms.mechanism_protocol import counts
from takifugu.papers.composition.baselines.algorithms import (
    PufferfishExponential,
    PufferfishLaplace,
)
from takifugu.priors.universe import Tables, Universe
from tests.mechanisms.test_calibration import BY_CURVE
from tests.raising import raises

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(1)

SCALED: list[Callable[[Any], Any]] = [
    IntegerLaplace,
    IntegerGaussian,
    PermuteAndFlip,
    Exponential,
    lambda s: ThresholdedHistogram(s, 9),
    lambda s: BoundedSum.laplace(Bounds(0, 1), s),
]


@pytest.mark.parametrize("build", SCALED)
@pytest.mark.parametrize("scale", [0, -1.0, NAN, INF, "wide", None, 2.0**60])
def test_a_scale_is_positive_and_finite(build: Callable[[Any], Any], scale: Any) -> None:
    _one_line(lambda: build(scale), "scale")


PARAMETERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: IntegerLaplace.within(1.0, sensitivity=0), "sensitivity"),
    (lambda: IntegerLaplace(1.0, 1.5), "sensitivity"),  # type: ignore[arg-type]
    (lambda: PermuteAndFlip(1.0, 0), "k"),
    (lambda: PermuteAndFlip(1.0, True), "k"),
    (lambda: Exponential(1.0, currency="gold"), "currency"),  # type: ignore[arg-type]
    (lambda: IntegerGaussian(1.0).approximate(0.0), "delta"),
    (lambda: IntegerGaussian(1.0).approximate(1.0), "delta"),
    (
        lambda: IntegerGaussian.calibrated(epsilon=1.0, delta=NAN, translation=BY_CURVE),
        "delta",
    ),
    (lambda: IntegerGaussian.calibrated(epsilon=800, delta=0.1, translation=BY_CURVE), "epsilon"),
    (lambda: Bounds(2, 1), "bounds"),
    (lambda: Bounds(1, 1), "bounds"),
    (lambda: Bounds(0, INF), "high"),
    (lambda: Bounds(0, 1, 0), "unit"),
    (lambda: Bounds(0, 1, 5), "bounds"),
    (lambda: Bounds(2**60, 2**60 + 9), "bounds"),
    (lambda: RandomisedResponse((), 0.5), "categories"),
    (lambda: RandomisedResponse(("a",), 0.5), "categories"),
    (lambda: RandomisedResponse(("a", "a"), 0.5), "categories"),
    (lambda: RandomisedResponse(("a", "b"), 0.5), "truth"),
    (lambda: RandomisedResponse(("a", "b"), 1.0), "truth"),
    (lambda: RandomisedResponse(("a", "b"), NAN), "truth"),
    (lambda: ThresholdedHistogram(1.0, 2), "threshold"),
    (lambda: PufferfishLaplace.of(BY_CURVE, epsilon=1.0, unit=0), "unit"),
    (lambda: PufferfishLaplace.of(BY_CURVE, epsilon=1.0, lipschitz=-1), "lipschitz"),
    (lambda: BoundedMean(BoundedSum.laplace(Bounds(0, 1), 3.0), (0,)), "entries"),
    (lambda: FiniteChannel(FiniteMechanism(Universe(("x", "y")), np.ones((2, 1)))), "channel"),
    (lambda: IntegerLaplace(1.0).simulate([1], 0, rng=RNG), "repetitions"),
    (lambda: Exponential(1.0).simulate([1, 2], -1, rng=RNG), "repetitions"),
]


@pytest.mark.parametrize(("build", "field"), PARAMETERS)
def test_bad_parameters_are_refused(build: Callable[[], Any], field: str) -> None:
    _one_line(build, field)


SECRET = 987654321987654321
LISTS: list[Callable[[Any], Any]] = [
    IntegerLaplace(2.0).release,
    IntegerGaussian(2.0).release,
    Exponential(2.0).release,
    PermuteAndFlip(2.0).release,
    NoisyTopK(IntegerLaplace(2.0)).release,
    BoundedSum.laplace(Bounds(0, 1), 2.0).release,
    lambda v: IntegerLaplace(2.0).simulate(v, 3, rng=RNG),
    lambda v: Exponential(2.0).simulate(v, 3, rng=RNG),
]


@pytest.mark.parametrize("release", LISTS)
@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.5, 1.0],
        [NAN, 1.0],
        ["a", "b"],
        [True, False],
        [2**63, 1],
        [2**70, 1],
        [-(2**63), SECRET],
        [[1, 2], [3]],
        None,
    ],
    ids=str,
)
def test_counts_are_whole_numbers_within_int64(release: Callable[[Any], Any], values: Any) -> None:
    _one_line(lambda: release(values), "values")


VALUES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Exponential(1.0, 3).release([SECRET, 2]), "k"),
    (lambda: NoisyTopK(IntegerLaplace(1.0), 3).release([SECRET, 2]), "k"),
    (lambda: Exponential(1.0).release(SECRET), "values"),
    (lambda: RandomisedResponse((1, 2), 0.7).release([SECRET]), "values"),
    (lambda: RandomisedResponse((1, 2), 0.7).release([]), "values"),
    (lambda: RandomisedResponse((1, 2), 0.7).estimate([1, 2, 3]), "published"),
    (lambda: ThresholdedHistogram(1.0, 9).release({"a": 0}), "values"),
    (lambda: ThresholdedHistogram(1.0, 9).release({1: SECRET}), "values"),  # type: ignore[dict-item]
    (lambda: ThresholdedHistogram(1.0, 9).release({"a": 0.5}), "values"),  # type: ignore[dict-item]
    (lambda: Bounds(0, 1).units(["a"]), "entries"),
    (lambda: Bounds(0, 1).units([NAN]), "entries"),
    (lambda: Bounds(0, 2**40, 1).total(np.full(2**22 + 1, 2.0**41)), "entries"),
    (
        lambda: BoundedMean(BoundedSum.laplace(Bounds(0, 1), 3.0), (3, 4)).release([SECRET]),
        "values",
    ),
    (lambda: PufferfishLaplace.of(BY_CURVE, epsilon=1.0).release([NAN]), "values"),
    (lambda: PufferfishLaplace.of(BY_CURVE, epsilon=1.0).release([1e300]), "values"),
    (
        lambda: FiniteChannel(FiniteMechanism(Tables.bits(1), np.full((2, 2), 0.5))).release(
            (SECRET,)
        ),
        "values",
    ),
]


@pytest.mark.parametrize(("release", "field"), VALUES)
def test_bad_values_are_refused(release: Callable[[], Any], field: str) -> None:
    _one_line(release, field)


def _one_line(build: Callable[[], Any], field: str) -> None:
    with raises(TakifuguError, field=field) as caught:
        build()
    message = str(caught.value)
    assert "\n" not in message
    assert str(SECRET) not in message


def test_bounded_entries_are_clamped_and_rounded_to_the_grid() -> None:
    bounds = Bounds(0, 10, "0.5")
    entries = [0.2, 0.3, 9.9, 50.0, -INF, INF]
    assert bounds.units(entries).tolist() == [0, 1, 20, 20, 0, 20]
    assert bounds.total(entries) == 61
    assert Bounds(0, 1, "0.1").total([0.1] * 10) == 10  # floats would add up to 0.9999999999999999


def test_groups_are_released_in_one_call_and_keep_their_shape() -> None:
    table = np.arange(12).reshape(3, 4)
    assert IntegerLaplace(2.0).release(table).shape == (3, 4)
    assert IntegerLaplace(2.0).release(5).shape == ()
    assert Exponential(2.0, 2).release(table).shape == (3, 2)
    assert PermuteAndFlip(2.0).release(table).shape == (3,)
    assert NoisyTopK(IntegerLaplace(2.0), 2).release(table).shape == (3, 2)
    means = BoundedMean(BoundedSum.laplace(Bounds(0, 1), 3.0), (3, 4))
    assert means.release([2, 3]).shape == (2,)
    assert means.simulate([2, 3], 5, rng=RNG).shape == (5, 2)


def test_every_mechanism_describes_itself_as_json() -> None:
    for mechanism in every_kind():
        described = json.loads(json.dumps(mechanism.describe()))
        assert described["kind"] == mechanism.kind
        assert described["loss"]["currency"] in ("pure", "concentrated", "approximate")
        assert described["query"]


def every_kind() -> list[Mechanism]:
    """One of each, as the common protocol sees them."""
    total = BoundedSum.gaussian(Bounds(0, 1, "0.1"), 3.0)
    return [
        IntegerLaplace(2.0),
        IntegerGaussian(2.0),
        Exponential(2.0, 2),
        PermuteAndFlip(2.0),
        NoisyTopK(IntegerLaplace(2.0), 2),
        total,
        BoundedMean(total, (3,)),
        RandomisedResponse(("a", "b"), 0.7),
        ThresholdedHistogram(1.0, 9),
        PufferfishLaplace.of(BY_CURVE, epsilon=1.0),
        PufferfishExponential.of(BY_CURVE, epsilon=1.0),
        FiniteChannel(FiniteMechanism(Tables.bits(1), np.full((2, 2), 0.5))),
    ]


def test_mechanisms_are_values() -> None:
    for mechanism, twin in zip(every_kind(), every_kind(), strict=True):
        assert mechanism == twin
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # noqa: S301 -- our own bytes
        assert fingerprint(mechanism) == fingerprint(twin)


def test_importing_mechanisms_imports_neither_opendp_nor_scipy() -> None:
    look = "import sys, takifugu.mechanisms; print({'opendp', 'scipy'} & set(sys.modules))"
    path = os.pathsep.join(sys.path)
    run = subprocess.run(  # noqa: S603 -- our own interpreter
        [sys.executable, "-c", look],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("sign", [1, -1])
def test_counts_leave_room_for_noise_within_int64(sign: int) -> None:
    assert counts([sign * 2**62, 0]).tolist() == [sign * 2**62, 0]
    with raises(InvalidMechanism, field="values"):
        counts([sign * (2**62 + 1), 0])
