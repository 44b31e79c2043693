"""Rows of the same people before a split are given up: what later ones lose to who knows them."""

from math import exp
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import takifugu as tf
from takifugu.drafting import Table
from takifugu.errors import UnsoundRequest
from takifugu.fitting import FitOptions, fit_prior
from takifugu.priors import (
    AR1,
    Gaussian,
    HigherOrderChain,
    IntervalMarkovChain,
    MarkovChain,
    Matern,
    Secrets,
    SquaredExponential,
    TimeOfDayChain,
)
from takifugu.priors.adversaries import given_earlier_rows
from takifugu.priors.prior import Prior
from takifugu.session.release_plan import Plan
from tests.oracles import earlier_rows

FITTED, RELEASED = 3, 8
STATES = ("well", "dead")


def rows(values: tuple[str, ...] = STATES, people: int = 60) -> pd.DataFrame:
    """People who stay what they have become."""
    rng = np.random.default_rng(0)
    found = []
    for person in range(people):
        value = 0
        for step in range(FITTED + RELEASED):
            found.append({"person": f"p{person}", "step": step, "state": values[value]})
            value = 1 if value or rng.random() < 0.35 else 0
    return pd.DataFrame(found)


def table(frame: pd.DataFrame) -> Table:
    return tf.table(
        frame,
        name="lives",
        entity="person",
        order="step",
        order_kind="number",
        protected={"state": list(STATES)},
    )


def scale_of(plan: Plan) -> float:
    """The scale of the noise, as the plan describes it."""
    return float(plan.mechanism.describe()["scale"])


def true_leak(transition: np.ndarray, scale: float) -> float:
    """Of a count of "dead" with Laplace noise, if the last fitted row is known."""
    worst = 0.0
    for last in range(2):
        for sign in (1, -1):
            factors = [[1.0, exp(sign / scale)]] * RELEASED
            found = earlier_rows.leak(
                lambda path, _: transition[path[-1]].tolist(), {(last,): 1.0}, factors, 2
            )
            worst = max(worst, found)
    return worst


@pytest.mark.nightly
@pytest.mark.parametrize("old", [False, True])
def test_a_release_after_first_steps_loses_what_it_claims_to_who_knows_them(
    tmp_path: Path, old: bool
) -> None:
    lives = table(rows())
    prior = tf.fit_markov(lives, "state", first_days=FITTED, tau=1e-5, length=FITTED + RELEASED)
    assert given_earlier_rows(prior) == prior
    if old:
        (rule,) = prior.fitted_on
        prior = MarkovChain(
            prior.transition, states=prior.states, length=prior.length, fitted_on=(rule,)
        )
    with tf.Session(lives, prior, ledger=tmp_path / "ledger", budget=1) as session:
        plan = session.plan.count(["dead"], epsilon="0.5")
        session.release(plan, accept_noise=True)
        spent = session.spent()
    assert true_leak(np.asarray(prior.transition), scale_of(plan)) <= spent <= 0.5


@pytest.mark.nightly
def test_every_prior_of_a_session_is_read_so_if_one_was_fitted_on_first_steps(
    tmp_path: Path,
) -> None:
    lives = table(rows())
    fitted = tf.fit_markov(lives, "state", first_days=FITTED, length=FITTED + RELEASED)
    written = MarkovChain(
        np.array([[0.7, 0.3], [1e-5, 1 - 1e-5]]), states=STATES, length=FITTED + RELEASED
    )
    priors = {"fitted": fitted, "written": written}
    with tf.Session(lives, priors, ledger=tmp_path / "ledger", budget=1) as session:
        plan = session.plan.count(["dead"], epsilon="0.5")
    assert true_leak(np.asarray(written.transition), scale_of(plan)) <= 0.5


def test_secrets_of_single_entries_are_refused_after_first_steps(tmp_path: Path) -> None:
    lives = table(rows())
    prior = tf.fit_markov(lives, "state", first_days=FITTED, length=FITTED + RELEASED)
    with pytest.raises(UnsoundRequest) as error:
        tf.Session(lives, prior, ledger=tmp_path / "ledger", secrets=Secrets(entries=(4,)))
    assert error.value.reason == "earlier-rows"


@pytest.mark.parametrize(
    "options",
    [
        FitOptions(first_days=FITTED),
        FitOptions(first_days=FITTED, confidence=0.95),
        FitOptions(first_days=FITTED, kind="higher-order", order=2),
    ],
)
def test_each_kind_of_chain_fitted_on_first_steps_has_an_unknown_start(options: FitOptions) -> None:
    with table(rows()).open() as engine:
        prior = fit_prior(engine, (), options).prior
    assert prior.to_document()["start"] in ("unknown", "any")


def matrices(states: int) -> st.SearchStrategy[np.ndarray]:
    cell = st.floats(-4, 0).map(lambda power: 10**power)
    flat = st.lists(cell, min_size=states**2, max_size=states**2)
    return flat.map(lambda values: _normal(np.reshape(values, (states, states))))


def _normal(table: np.ndarray) -> np.ndarray:
    found: np.ndarray = table / table.sum(axis=-1, keepdims=True)
    return found


@st.composite
def outputs(draw: st.DrawFn, states: int, length: int, epsilon: float) -> list[list[float]]:
    """Likelihoods of an output of a per-entry DP mechanism: within e^ε of each other."""
    high = st.lists(st.booleans(), min_size=states, max_size=states)
    return [[exp(epsilon * bit) for bit in draw(high)] for _ in range(length)]


def pasts(options: int, width: int) -> st.SearchStrategy[dict[tuple[int, ...], float]]:
    """What somebody holds of the rows before: one of them for certain, or some law."""
    past = st.tuples(*[st.integers(0, options - 1)] * width)
    return st.dictionaries(past, st.floats(0.01, 1), min_size=1, max_size=4)


@pytest.mark.costly
@given(data=st.data(), epsilon=st.floats(0.05, 2), length=st.integers(2, 5))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("states", [2, 3])
def test_chains_lose_no_more_than_claimed_given_the_rows_before(
    data: st.DataObject, states: int, epsilon: float, length: int
) -> None:
    P = data.draw(matrices(states))
    factors = data.draw(outputs(states, length, epsilon))
    before = data.draw(pasts(states, 1))
    true = earlier_rows.leak(lambda path, _: P[path[-1]].tolist(), before, factors, states)
    for prior in (
        MarkovChain(P, length=length),
        IntervalMarkovChain.around(MarkovChain(P, length=length), relative=0),
    ):
        assert true <= claimed(prior, epsilon) + 1e-9


@pytest.mark.nightly
@pytest.mark.costly
@given(data=st.data(), epsilon=st.floats(0.05, 2), length=st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_chains_of_order_two_lose_no_more_than_claimed_given_the_rows_before(
    data: st.DataObject, epsilon: float, length: int
) -> None:
    P = np.stack([data.draw(matrices(2)) for _ in range(2)])
    factors = data.draw(outputs(2, length, epsilon))
    before = data.draw(pasts(2, 2))
    true = earlier_rows.leak(lambda path, _: P[path[-2:]].tolist(), before, factors, 2)
    assert true <= claimed(HigherOrderChain(P, length=length), epsilon) + 1e-9


@pytest.mark.nightly
@pytest.mark.costly
@given(data=st.data(), epsilon=st.floats(0.05, 2), length=st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_chains_by_hour_lose_no_more_than_claimed_given_the_rows_before(
    data: st.DataObject, epsilon: float, length: int
) -> None:
    P = np.stack([data.draw(matrices(2)) for _ in range(3)])
    factors = data.draw(outputs(2, length, epsilon))
    before, hour = data.draw(pasts(2, 1)), data.draw(st.integers(0, 2))
    true = earlier_rows.leak(
        lambda path, row: P[(hour + row) % 3, path[-1]].tolist(), before, factors, 2
    )
    assert true <= claimed(TimeOfDayChain(P, length=length), epsilon) + 1e-9


def claimed(prior: Prior, epsilon: float) -> float:
    return float(tf.Translation(given_earlier_rows(prior)).to_pufferfish(epsilon))


def test_a_long_chain_by_hour_loses_at_least_what_a_short_one_does() -> None:
    P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.3, 0.7]]])
    short, long = (given_earlier_rows(TimeOfDayChain(P, length=n)) for n in (30, 6_000))
    loss = float(tf.Translation(short).to_pufferfish(0.1))
    assert loss <= float(tf.Translation(long).to_pufferfish(0.1)) < 6_000 * 0.1


@given(rho=st.floats(-0.95, 0.95), known=st.floats(0.1, 3), data=st.data())
def test_an_autoregression_moves_no_further_given_an_interval_of_the_row_before(
    rho: float, known: float, data: st.DataObject
) -> None:
    """X_1 given X_2 = x and X_0 within an interval, by quadrature: its quantiles move by ≤ |ρ|."""
    low = data.draw(st.floats(-3, 3))
    grid = np.linspace(-12, 12, 6_001)
    noise = 1 - rho**2
    earlier = np.linspace(low, low + known, 41)
    held = np.exp(-((grid[:, None] - rho * earlier) ** 2) / (2 * noise) - earlier**2 / 2).sum(1)

    def quantiles(x: float) -> np.ndarray:
        mass = held * np.exp(-((x - rho * grid) ** 2) / (2 * noise))
        return np.interp(np.linspace(0.01, 0.99, 50), np.cumsum(mass) / mass.sum(), grid)

    moved = np.abs(quantiles(1.0) - quantiles(0.0)).max()
    assert moved <= abs(rho) + 2 * (grid[1] - grid[0])


@pytest.mark.parametrize("kernel", [SquaredExponential(2.0), Matern("3/2", 2.0)])
def test_smooth_processes_are_refused_after_first_steps(
    kernel: SquaredExponential | Matern,
) -> None:
    with pytest.raises(UnsoundRequest) as error:
        given_earlier_rows(Gaussian(kernel))
    assert error.value.reason == "earlier-rows"
    assert given_earlier_rows(Gaussian(AR1(0.5))) == Gaussian(AR1(0.5))
