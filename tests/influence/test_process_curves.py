"""Curves of Gaussian processes and of days, every field."""

import math

import numpy as np
import pytest

from takifugu.errors import InvalidWorld
from takifugu.influence import chain_curve, influence_curve
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import AR1, Covariance
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from tests.raising import raises

pytestmark = pytest.mark.nightly

# ---- Gaussian processes


def test_all_that_varies_together_is_exposed_or_everything_leaks() -> None:
    rows = np.eye(4)
    rows[0, 1] = rows[1, 0] = 0.5
    rows[1, 2] = rows[2, 1] = -0.25
    prior = Gaussian(Covariance(rows))
    found = influence_curve(prior, Secrets(within=1))
    assert found.exposed.tolist() == [1, 2, 3, 4] and found.entries == 4
    inf = math.inf
    assert found.leak.tolist() == [
        [inf, 0.0, 0.0, 0.0],
        [inf, inf, 0.0, 0.0],
        [inf, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    assert found.pairs == tuple(f"{i}=x / {i}=y" for i in range(4))
    assert found.exact.all() and found.splits is None
    some = influence_curve(prior, Secrets(within=1, entries=(3, 0)))
    assert some.exposed.tolist() == [1, 2, 4] and some.pairs == ("3=x / 3=y", "0=x / 0=y")
    assert some.leak.tolist() == [[0.0, 0.0, 0.0], [inf, 0.0, 0.0]]
    with raises(InvalidWorld, field="secrets"):
        influence_curve(prior, Secrets(within=1, entries=(4,)))


@pytest.mark.parametrize(
    ("rho", "length", "exposed", "leak"),
    [(0.0, None, 1, 0.0), (0.0, 7, 1, 0.0), (0.5, 7, 7, 0.0), (0.5, None, 1, math.inf)],
)
def test_processes_by_lag_are_exposed_all_or_alone(
    rho: float, length: int | None, exposed: int, leak: float
) -> None:
    prior = Gaussian(AR1(rho), length)
    found = influence_curve(prior, Secrets(within=1, entries=(6,)))
    assert found.exposed.tolist() == [exposed] and found.leak.tolist() == [[leak]]
    assert found.entries == length and found.pairs == ("x / y",)
    assert found.exact.tolist() == [[True]] and found.splits is None
    if length is not None:
        with raises(InvalidWorld, field="secrets"):
            influence_curve(prior, Secrets(within=1, entries=(7,)))


# ---- days

DAYS = TimeOfDayChain(
    np.random.default_rng(8).dirichlet(np.ones(2), (3, 2)), ("off", "on"), length=4
)


@pytest.mark.parametrize(
    ("most", "exposed"), [(None, [1, 2, 3, 4]), (2, [1, 2, 4]), (5, [1, 2, 3, 4])]
)
def test_a_curve_of_days_is_that_of_the_chain_from_hour_0(
    most: int | None, exposed: list[int]
) -> None:
    """Entities may begin at any of three hours: their four entries are among six."""
    found = influence_curve(DAYS, max_exposed=most)
    long = chain_curve(DAYS.days_of(6), max_exposed=most)
    assert found.exposed.tolist() == exposed and found.entries == 4
    kept = len(exposed) - 1
    assert found.leak[:, :kept].tolist() == long.leak[:, :kept].tolist()
    assert found.leak[:, kept].tolist() == [0.0] * 12 and (found.leak[:, 0] > 0).all()
    assert found.pairs == long.pairs and len(set(found.pairs)) == 12
    assert not found.exact.any() and found.exact.shape == found.leak.shape
    assert found.splits is None
