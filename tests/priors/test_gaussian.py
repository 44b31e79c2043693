"""Gaussian processes as priors: kernels, covariances, documents, and what is refused."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidPrior, InvalidWorld, UnsoundRequest
from takifugu.influence.families import influence_curve
from takifugu.priors import (
    AR1,
    Covariance,
    Gaussian,
    MarkovChain,
    Matern,
    Prior,
    Product,
    Secrets,
    SquaredExponential,
    TruncatedGaussian,
    from_document,
)
from takifugu.priors.kernels import StationaryKernel, is_positive_semidefinite
from takifugu.translation.translation import Translation
from takifugu.translation.transport_bound import transport_bound
from tests.oracles import gaussian_processes as oracle
from tests.raising import raises

KERNELS: list[tuple[str, float, StationaryKernel]] = [
    *(("squared-exponential", s, SquaredExponential(s)) for s in (0.01, 0.5, 1.0, 7.9, 8.0, 300.0)),
    *(("ar1", r, AR1(r)) for r in (0.5, -0.5, 0.9, 0.999, 1e-300, -0.97)),
    *((nu, s, Matern(nu, s)) for nu in ("1/2", "3/2", "5/2") for s in (0.01, 0.3, 2.0, 50.0)),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "parameter", "kernel"), KERNELS, ids=str)
def test_closed_forms_are_the_sums_over_all_lags(
    name: str, parameter: float, kernel: StationaryKernel
) -> None:
    true, found = oracle.total_correlation(name, parameter), kernel.total()
    assert true <= found <= true * (1 + 1e-13)


@pytest.mark.parametrize(("name", "parameter", "kernel"), KERNELS, ids=str)
def test_correlations_lie_between_their_bounds(
    name: str, parameter: float, kernel: StationaryKernel
) -> None:
    lags = np.array([0, 1, 2, 3, 7, 20, 100, 1000])
    high, low, signs = kernel.most(lags), kernel.least(lags), kernel.signs(lags)
    for k, lag in enumerate(lags):
        true = oracle.correlation(name, parameter, int(lag))
        assert low[k] <= abs(true) <= high[k]
        assert high[k] - low[k] <= 1e-11 * high[k] or high[k] < 1e-300
        assert signs[k] == (1 if true > 0 else -1)
    assert (np.diff(kernel.most(np.arange(2000))) <= 0).all()


@pytest.mark.parametrize(
    ("nu", "total"), [("3/2", 4.62229), (Fraction(5, 2), 4.77056), (0.5, 1 / np.tanh(0.25))]
)
def test_matern_on_the_integers(nu: Any, total: float) -> None:
    assert Matern(nu, 2.0).total() == pytest.approx(total, abs=5e-6)


def test_extreme_kernels_are_never_rounded_to_nothing() -> None:
    for kernel in (SquaredExponential(1e-307), Matern("5/2", 1e-307), AR1(5e-324)):
        assert 0 < kernel.most(np.array([1]))[0] < 1e-300 and 1 <= kernel.total() < 1 + 1e-12
    assert AR1(0.0).most(np.array([0, 1])).tolist() == [1.0, 0.0] and AR1(0.0).total() == 1
    assert SquaredExponential(1e308).total() == pytest.approx(1.7724538509e154)
    assert Matern("3/2", 1e308).total() >= 1e307


def test_singular_covariances_are_proven_exactly() -> None:
    assert is_positive_semidefinite(np.ones((3, 3)))
    below = np.ones((3, 3)) - np.diag([0.0, 0.0, 2.0**-52])
    assert not is_positive_semidefinite(below)
    above = np.ones((3, 3)) + np.diag([0.0, 0.0, 2.0**-52])
    assert is_positive_semidefinite(above)


@given(st.integers(2, 8), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_whole_gram_matrices_are_positive_semidefinite(n: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.integers(-9, 10, (n, rank)).astype(float)
    gram = factor @ factor.T  # exact in float64
    keep = np.diag(gram) > 0
    gram = gram[np.ix_(keep, keep)]
    if len(gram):
        assert is_positive_semidefinite(gram)
    if rank < len(gram):  # singular: the least step down leaves the cone
        lowered = gram * 2.0**30 - np.eye(len(gram))
        assert not is_positive_semidefinite(lowered)


def test_covariances_of_any_scale() -> None:
    base = np.array([[2.0, -1.0], [-1.0, 2.0]])
    for power in (-900, 0, 900):
        assert is_positive_semidefinite(base * 2.0**power)
    apart = np.array([[2.0**-900, 1.0], [1.0, 2.0**900]])
    assert is_positive_semidefinite(apart)
    assert not is_positive_semidefinite(apart + np.array([[0, 1e-3], [1e-3, 0]]))
    wide = Gaussian(SquaredExponential(4.0), 600).covariance(range(600)) + 1e-6 * np.eye(600)
    assert is_positive_semidefinite(wide)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[1, 2], [2, 1]], "indefinite"),
        ([[1, 0], [0, 0]], "variance"),
        ([[1, 0.5], [0.4, 1]], ""),
        ([[1, np.nan], [np.nan, 1]], ""),
        ([[1, 0]], ""),
        ([], ""),
        ("rows", ""),
        ([[10**400]], ""),
    ],
)
def test_what_is_not_a_covariance_is_refused(rows: Any, reason: str) -> None:
    with raises(InvalidPrior, field="covariance", reason=reason):
        Covariance(rows)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: AR1(1.0), "rho"),
        (lambda: AR1(-1), "rho"),
        (lambda: AR1(float("nan")), "rho"),
        (lambda: AR1(True), "rho"),
        (lambda: SquaredExponential(0), "scale"),
        (lambda: SquaredExponential(float("inf")), "scale"),
        (lambda: Matern("7/2", 1.0), "nu"),
        (lambda: Matern("1/2", -1.0), "scale"),
        (lambda: Gaussian("ar1"), "kernel"),  # type: ignore[arg-type]
        (lambda: Gaussian(AR1(0.5), variance=0), "variance"),
        (lambda: Gaussian(AR1(0.5), 0), "length"),
        (lambda: Gaussian(AR1(0.5), mean=float("inf")), "mean"),
        (lambda: Gaussian(AR1(0.5), 2, mean=[1.0]), "mean"),  # type: ignore[arg-type]
        (lambda: Gaussian(AR1(0.5), mean=[1.0]), "mean"),  # type: ignore[arg-type]
        (lambda: Gaussian(Covariance(np.array([[1.0]])), 2), "length"),
        (lambda: Gaussian(Covariance(np.array([[1.0]])), variance=2), "variance"),
    ],
)
def test_malformed_processes_are_refused(make: Any, field: str) -> None:
    with raises(InvalidPrior, field=field):
        make()


PROCESSES = [
    Gaussian(AR1(-0.5)),
    Gaussian(Matern("3/2", 2.0), 7, mean=3.5, variance=2.0),
    Gaussian(SquaredExponential(0.1), 3, mean=np.array([1.0, 2.0, 0.1])),
    Gaussian(Covariance(np.array([[2.0, 1.0], [1.0, 0.5]]))),
]


@pytest.mark.parametrize("prior", PROCESSES, ids=lambda prior: prior.kernel.word)
def test_documents_keep_every_bit(prior: Gaussian) -> None:
    again = from_document(prior.to_document())
    assert again == prior and again.fingerprint == prior.fingerprint
    assert len({p.fingerprint for p in PROCESSES}) == len(PROCESSES)
    assert again.facts()["kernel"] == prior.kernel.word


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"kernel": {"name": "ar1", "rho": 0.5}, "bound": 3}, "bound"),
        ({}, "kernel"),
        ({"kernel": "ar1"}, "kernel"),
        ({"kernel": {"name": "periodic"}}, "kernel"),
        ({"kernel": {"name": "ar1"}}, "kernel, rho"),
        ({"kernel": {"name": "ar1", "rho": 0.5, "scale": 1}}, "kernel, scale"),
        ({"kernel": {"name": "matern", "nu": "2", "scale": 1}}, "nu"),
    ],
)
def test_documents_that_are_no_process(document: dict[str, Any], field: str) -> None:
    with raises(InvalidPrior, field=field):
        from_document({"kind": "gaussian-process", **document})


def test_the_truncated_law_keeps_its_files_and_its_fingerprint() -> None:
    old = {"kind": "gaussian", "covariance": [[2.0, 1.0], [1.0, 2.0]], "bound": 4.0, "width": 0.5}
    read = from_document(old)
    assert isinstance(read, TruncatedGaussian) and read.to_document() == old
    known = "71a76b9138f68fcb99d7f6ed9ce686f8f48df9e3d9e7006d9f9071b204a80d80"
    assert read.fingerprint == known
    wave = TruncatedGaussian.process(3, length=1, bound=5, width=0.1)
    known = "22b2a40dfc1fd8d0e44bddcc29f303c8d82e39afee2194778ebfdbe1196a6ae5"
    assert wave.fingerprint == known
    known = "6d84a95e509b1f2fe9c0c8849e0da3a7da13799359e03c286245392b6ba67924"
    assert Product({"ann": wave}).fingerprint == known
    with raises(InvalidPrior, field="bound"):
        from_document({"kind": "gaussian", "kernel": {"name": "ar1", "rho": 0.5}})


def test_secrets_without_a_distance_keep_their_fingerprint() -> None:
    known = "a1dca114e857eb11000e62c4a310c2e922f1fafde61d53243fdb0f538ed90642"
    assert fingerprint(Secrets()) == known
    named = Secrets(entries=(0,), pairs=((("a",), ("b",)),))
    known = "78b81c9600580655d970e0ef7e363a7ab940e995776e3db468c8742293233292"
    assert fingerprint(named) == known
    prints = {fingerprint(Secrets(within=r)) for r in (None, 1, "0.1", 0.1)}
    assert len(prints) == 4 and fingerprint(Secrets(within="1")) == fingerprint(Secrets(within=1))


@pytest.mark.parametrize("within", [0, -1, "x", float("nan"), float("inf"), True, 2**1001])
def test_distances_are_above_zero(within: Any) -> None:
    with raises(InvalidWorld):
        Secrets(within=within)
    with raises(InvalidWorld):
        Secrets(pairs=((("a",), ("b",)),), within=1)


def test_numbers_need_a_distance_and_labels_have_none() -> None:
    chain, process = (
        MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=3),
        Gaussian(AR1(0.5), 3),
    )
    for prior in (process, Product({"ann": process})):
        with raises(UnsoundRequest, field="secrets", reason="no-distance"):
            Translation(prior)
        with raises(UnsoundRequest, field="secrets", reason="no-distance"):
            influence_curve(prior)
    with raises(UnsoundRequest, field="secrets", reason="pairs"):
        Translation(process, Secrets(pairs=(((1,), (2,)),)))
    truncated = TruncatedGaussian.process(3, length=1, bound=5, width=0.1)
    others: list[Prior] = [chain, truncated, Product({"ann": process, "bob": chain})]
    for other in others:
        with raises(UnsoundRequest, field="secrets", reason="within"):
            Translation(other, Secrets(within=1))
        with raises(UnsoundRequest, field="secrets", reason="within"):
            transport_bound(other, Secrets(within=1))
        with raises(UnsoundRequest, field="secrets", reason="within"):
            influence_curve(other, Secrets(within=1))


def test_the_curve_is_all_or_nothing() -> None:
    near = Secrets(within=1)
    whole = influence_curve(Gaussian(AR1(0.5), 7), near)
    assert whole.exposed.tolist() == [7] and whole.leak.tolist() == [[0.0]]
    unbounded = influence_curve(Gaussian(AR1(0.5)), near)
    assert unbounded.to_pufferfish(0.1) == np.inf and unbounded.to_dp(1.0) == 0
    blocks = Covariance(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]))
    curve = influence_curve(Gaussian(blocks), near)
    assert curve.exposed.tolist() == [1, 2, 3]
    assert curve.leak.tolist() == [[np.inf, 0, 0], [np.inf, 0, 0], [0, 0, 0]]
    alone = influence_curve(Gaussian(AR1(0.0)), near)
    assert alone.to_pufferfish(0.1) == pytest.approx(0.1)


@settings(max_examples=20)
@given(st.floats(-0.99, 0.99), st.integers(2, 6))
def test_the_covariance_of_an_autoregression(rho: float, n: int) -> None:
    law = Gaussian(AR1(rho), n, variance=2.0).covariance(range(n))
    for i in range(n):
        for j in range(n):
            assert law[i, j] == pytest.approx(2 * rho ** abs(i - j), rel=1e-12, abs=1e-300)
