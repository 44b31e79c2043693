"""Gaussian curves: the printed formula, and the truth it is below."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.influence import gaussian_curve
from takifugu.influence.gaussian_curves import split_leak
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from tests.oracles import influence as oracle
from tests.raising import raises


@pytest.mark.parametrize(
    ("length", "b", "printed"),
    [
        (1, 1, 93.75),
        (1, 3, 3.559),
        (1, 5, 0.0242),
        (2, 5, 7.333),
        (2, 7, 0.2229),
        (0.5, 3, 0.0392),
    ],
)
def test_the_printed_formula(length: float, b: int, printed: float) -> None:
    prior = TruncatedGaussian.process(21, length=length, bound=5, width=0.1)
    exposed = range(10 - b // 2, 10 + b // 2 + 1)
    value = split_leak(prior, 10, exposed, law="printed")
    assert float(f"{value:.4g}") == pytest.approx(printed, rel=3e-3)
    assert split_leak(prior, 10, exposed) >= value


@pytest.mark.nightly
@pytest.mark.parametrize(("length", "printed", "true"), [(5, 124.2, 201.8), (1, 21.27, 21.28)])
def test_the_printed_formula_is_too_small(length: float, printed: float, true: float) -> None:
    prior = TruncatedGaussian.process(3, length=length, bound=5, width=1e-3)
    assert split_leak(prior, 1, (1, 2), law="printed") == pytest.approx(printed, rel=2e-3)
    near, far = float(np.exp(-1 / length)), float(np.exp(-4 / length))
    found = oracle.truncated_pair_leak(near, far, 5.0, 1e-3)
    assert found == pytest.approx(true, rel=2e-3)
    sound = split_leak(prior, 1, (1, 2))
    assert found <= sound <= found * 1.002


@pytest.mark.nightly
@settings(max_examples=6)
@given(length=st.floats(0.5, 6), bound=st.floats(1, 4))
def test_the_sound_bound_is_above_quadrature(length: float, bound: float) -> None:
    prior = TruncatedGaussian.process(3, length=length, bound=bound, width=bound / 20)
    near, far = float(np.exp(-1 / length)), float(np.exp(-4 / length))
    found = oracle.truncated_pair_leak(near, far, bound, bound / 20, steps=100)
    assert split_leak(prior, 1, (1, 2)) >= found * (1 - 1e-3) - 1e-6


def test_the_centre_is_not_always_the_worst_coordinate() -> None:
    prior = TruncatedGaussian.process(9, length=5, bound=5, width=0.1)
    at_three = gaussian_curve(prior, law="printed").leak[:, 2]
    assert at_three.max() > at_three[4] * 1.2


def test_curves_fall_to_zero_and_say_what_they_expose() -> None:
    prior = TruncatedGaussian.process(6, length=1, bound=3, width=0.1)
    curve = gaussian_curve(prior)
    assert (np.diff(curve.leak, axis=1) <= 0).all() and (curve.leak[:, -1] == 0).all()
    assert (curve.leak >= gaussian_curve(prior, law="printed").leak - 1e-12).all()
    assert curve.points()[-1].split == {"exposed": [0, 1, 2, 3, 4, 5]}
    assert not curve.exact[:, 0].any()


def test_an_independent_gaussian_leaks_nothing_beyond_itself() -> None:
    curve = gaussian_curve(TruncatedGaussian(np.eye(4), bound=8.0, width=0.1))
    assert curve.pooled()[0] < 1e-8


@pytest.mark.parametrize(
    ("covariance", "bound", "width", "field"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], 5.0, 0.1, "covariance"),
        ([[1.0, 0.2], [0.3, 1.0]], 5.0, 0.1, "covariance"),
        ([[1.0, 0.2]], 5.0, 0.1, "covariance"),
        ([[1.0]], 0.0, 0.1, "bound"),
        ([[1.0]], float("nan"), 0.1, "bound"),
        ([[1.0]], 1.0, 1.5, "width"),
    ],
)
def test_a_malformed_gaussian_is_refused(
    covariance: list[list[float]], bound: float, width: float, field: str
) -> None:
    with raises(InvalidPrior, field=field):
        TruncatedGaussian(np.array(covariance), bound, width)


def test_documents_keep_the_prior() -> None:
    prior = TruncatedGaussian.process(4, length=2, bound=5, width=0.1, kernel="exponential")
    assert TruncatedGaussian.from_document(prior.to_document()) == prior
    short = {"kind": "gaussian", "entries": 4, "length": 2, "kernel": "exponential"}
    assert TruncatedGaussian.from_document({**short, "bound": 5, "width": 0.1}) == prior
    with raises(InvalidPrior, field="colour"):
        TruncatedGaussian.from_document({**short, "bound": 5, "width": 0.1, "colour": 1})
    with raises(InvalidPrior, field="bound"):
        TruncatedGaussian.from_document(short)


@pytest.mark.nightly
def test_a_gaussian_curve_is_the_least_leak_of_its_sets() -> None:
    prior = TruncatedGaussian.process(4, length=1, bound=3, width=0.2)
    for law in ("truncated", "printed"):
        found = gaussian_curve(prior, law=law)
        assert found.exposed.tolist() == [1, 2, 3, 4] and found.entries == 4
        assert found.pairs == tuple(f"x{i}: any two regions" for i in range(4))
        assert found.exact.tolist() == (found.leak == 0).tolist() and not found.leak[:, 3].any()
        assert found.splits is not None
        for i in range(4):
            assert (np.diff(found.leak[i]) <= 0).all()
            for point in range(4):
                exposed = found.splits.describe(i, point)["exposed"]
                leak = split_leak(prior, i, exposed, law=law)
                assert i in exposed and len(exposed) <= point + 1
                assert found.leak[i, point] == leak
