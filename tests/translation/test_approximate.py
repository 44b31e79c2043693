"""Approximate and concentrated losses: never below what a linear program or a Gaussian shows."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.bif import read_bif
from takifugu.translation import Translation, approximate, concentrated, zcdp_epsilon
from takifugu.translation.accounting.composition import mixed
from takifugu.translation.translation import Method
from tests.oracles import translation as oracle
from tests.priors.files import example
from tests.raising import raises


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact δ(ε) of Gaussian noise with this ρ, to many digits (Balle & Wang, 2018)."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(2 * mpmath.mpf(rho))
        e = mpmath.mpf(epsilon)
        return float(mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu))


@settings(max_examples=60)
@given(st.floats(1e-6, 20), st.sampled_from([1e-12, 1e-6, 1e-3, 0.1]))
def test_converted_concentrated_losses_cover_gaussian_noise(rho: float, delta: float) -> None:
    epsilon = zcdp_epsilon(rho, delta)
    assert gaussian_delta(rho, epsilon) <= delta
    simple = rho + 2 * np.sqrt(rho * np.log(1 / delta))  # Bun & Steinke, 2016, Proposition 1.3
    assert epsilon <= simple + 1e-12


def test_converted_concentrated_losses_agree_with_dp_accounting() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    for rho, delta in ((0.001, 1e-6), (0.1, 1e-6), (1.0, 1e-9), (5.0, 1e-3)):
        guess = 1 + np.sqrt(np.log(1 / delta) / rho)
        orders = 1 + (guess - 1) * np.geomspace(0.05, 20, 4000)
        theirs, _ = rdp.compute_epsilon(orders, rho * orders, delta)
        assert zcdp_epsilon(rho, delta) == pytest.approx(theirs, rel=1e-4)


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([1e-4, 0.01]),
    st.sampled_from(["best", "transport", "curve", "group"]),
)
def test_no_event_of_an_approximate_mechanism_exceeds_the_guarantee(
    seed: int, epsilon: float, delta: float, method: Method
) -> None:
    rng = np.random.default_rng(seed)
    chain = MarkovChain(rng.dirichlet(np.ones(2), 2), length=3)
    secrets = Secrets(entries=(1,), pairs=(((0,), (1,)),))
    found = approximate(Translation(chain, secrets), epsilon, delta, method=method)
    written = chain.explicit()
    states = written.universe.codes[:, 1]  # type: ignore[attr-defined]
    for value in (0, 1):
        worst = oracle.largest_delta(
            written.probability, states == value, states != value, (2, 2, 2), epsilon, delta,
            found.epsilon,
        )  # fmt: skip
        assert worst <= found.delta + 1e-9


def test_a_different_delta_for_each_entry_takes_the_worst_ratio() -> None:
    translation = Translation(MarkovChain(np.array([[0.8, 0.2], [0.2, 0.8]]), length=3))
    spent, deltas = np.array([0.5, 1.0, 0.2]), np.array([1e-6, 4e-6, 0.0])
    found = approximate(translation, spent, deltas)
    kappa = max(1e-6 / np.expm1(0.5), 4e-6 / np.expm1(1.0))
    assert found.epsilon == translation.bound(spent).value
    assert found.delta == pytest.approx(kappa * np.expm1(found.epsilon), rel=1e-9)
    assert approximate(translation, spent, 0.0).delta == 0


def test_an_entry_with_delta_alone_is_given_some_epsilon() -> None:
    translation = Translation(MarkovChain(np.array([[0.8, 0.2], [0.2, 0.8]]), length=3))
    found = approximate(translation, np.zeros(3), 1e-6)
    assert 0 < found.epsilon < 0.05 and 1e-6 <= found.delta < 5e-6


def test_concentrated_losses_fit_the_delta_asked_for() -> None:
    translation = Translation(MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=20))
    found = concentrated(translation, 0.001, 1e-6)
    assert 0.5e-6 < found.delta <= 1e-6 and found.dp_delta < 1e-6
    assert found.dp == pytest.approx(zcdp_epsilon(0.001, found.dp_delta), rel=1e-9)
    some = np.zeros(20)
    some[3:6] = 0.001
    assert mixed(translation, 0.01, 0.0, some, delta=1e-6).epsilon < found.epsilon


@pytest.mark.parametrize(("rho", "delta"), [(-1.0, 0.1), (1.0, 0.0), (1.0, 1.0), (np.nan, 0.1)])
def test_what_cannot_be_converted_is_refused(rho: float, delta: float) -> None:
    with pytest.raises(UnsoundRequest):
        zcdp_epsilon(rho, delta)
    translation = Translation(MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=3))
    with pytest.raises(UnsoundRequest):
        concentrated(translation, rho, delta)
    with pytest.raises(UnsoundRequest):
        approximate(translation, 0.1, 1.5)


def test_the_curve_of_a_large_network_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: Translation) -> None:
        raise AssertionError

    monkeypatch.setattr(Translation, "curve", property(asked))
    alarm = Translation(read_bif(example("alarm")))
    found = approximate(alarm, 0.1, 1e-6)
    assert found.method == "transport" and found.epsilon == alarm.bound(0.1, "transport").value
    kappa = 1e-6 / np.expm1(0.1)
    assert found.delta == pytest.approx(kappa * np.expm1(found.epsilon))


ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, np.nan])
def test_concentrated_losses_say_that_they_need_a_delta(delta: float) -> None:
    home = Translation(MarkovChain(ROWS, length=3))
    with raises(UnsoundRequest, field="delta"):
        concentrated(home, 0.5, delta)
    with raises(UnsoundRequest, field="delta", reason="allowance"):
        mixed(home, 0.5, 0.25, 0.5, delta=1e-9)
