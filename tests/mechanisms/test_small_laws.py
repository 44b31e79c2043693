"""Every law of `noise_laws`, on instances small enough to be summed in full."""

from collections.abc import Callable
from itertools import product
from math import exp

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms.mechanism_protocol import Error
from tests.oracles import noise as oracle

pytestmark = pytest.mark.nightly

SCALES = (0.3, 1.0, 2.6)
NOISE: dict[str, Callable[[float, int], float]] = {
    "laplace": oracle.laplace,
    "gaussian": lambda scale, z: oracle.gaussian(scale, z, reach=40),
}


def table(kind: str, scale: float, reach: int = 110) -> dict[int, float]:
    far = 40 if kind == "gaussian" else reach
    return {z: NOISE[kind](scale, z) for z in range(-far, far + 1)}


def least(law: dict[int, float], miss: float) -> int:
    """The least h with P(|Z| > h) ≤ miss."""
    return next(
        h for h in range(10**3) if sum(p for z, p in law.items() if abs(z) > h) <= miss + 1e-15
    )


@pytest.mark.parametrize("miss", [0.9, 0.3, 0.05, 0.004, 1e-5])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", NOISE)
def test_a_reach_is_the_least_one(kind: str, scale: float, miss: float) -> None:
    reach = getattr(noise_laws, f"{kind}_reach")(scale, miss)
    assert reach == least(table(kind, scale), miss)
    assert isinstance(reach, int)


def test_what_no_gaussian_noise_is_beyond_is_the_end_of_its_table() -> None:
    assert noise_laws.gaussian_reach(1.0, 1e-300) == 14


def test_a_very_wide_gaussian_is_within_its_reach_and_no_less() -> None:
    assert noise_laws.gaussian_reach(1e6, 0.05) == 1_960_000  # 1.96 deviations, as is customary
    assert noise_laws.gaussian_error(1e6) == Error(1e6, 1_960_000.0)
    with mpmath.workdps(40):
        for scale, miss in ((2.0**40, 0.01), (2.0**30, 0.3), (6e3, 1e-7)):
            reach = noise_laws.gaussian_reach(scale, miss)
            assert mpmath.erfc(reach / scale / mpmath.sqrt(2)) <= miss
            nearer = (reach - 2) * (1 - mpmath.mpf(2e-9))
            assert mpmath.erfc(nearer / scale / mpmath.sqrt(2)) > miss


def test_permute_and_flip_over_a_dozen_is_its_integral() -> None:
    for n in (9, 12):
        q = [exp(-i / 3.0) for i in range(n)]
        expected = []
        for i in range(n):
            others = np.polynomial.Polynomial([q[i]])
            for j in range(n):
                if j != i:
                    others *= np.polynomial.Polynomial([1.0, -q[j]])
            expected.append(others.integ()(1.0))
        found = noise_laws.permute_and_flip(-np.arange(n, dtype=float), 3.0)
        assert found == pytest.approx(expected, abs=1e-11)


def sorted_places(scores: list[int], k: int, law: dict[int, float]) -> Floats:
    """Every outcome of the noise; equal noisy scores in the order of the candidates."""
    places = np.zeros((k, len(scores)))
    for drawn in product(law, repeat=len(scores)):
        noisy = [x + z for x, z in zip(scores, drawn, strict=True)]
        order = sorted(range(len(scores)), key=lambda i: (-noisy[i], i))
        weight = float(np.prod([law[z] for z in drawn]))
        for place in range(k):
            places[place, order[place]] += weight
    return places


@pytest.mark.parametrize("scores", [[2, 1, 1], [0, 0, 1], [-1, 2]], ids=str)
@pytest.mark.parametrize("kind", NOISE)
def test_places_of_noisy_scores_are_those_of_every_outcome(kind: str, scores: list[int]) -> None:
    scale = 0.4 if kind == "laplace" else 0.9
    law = {z: p for z, p in table(kind, scale).items() if abs(z) <= 6}
    for k in range(1, len(scores) + 1):
        found = getattr(noise_laws, f"{kind}_places")(np.array(scores), k, scale)
        assert found.shape == (k, len(scores))
        assert found == pytest.approx(sorted_places(scores, k, law), abs=2e-6)


@pytest.mark.parametrize("kind", NOISE)
def test_places_of_wider_and_of_hardly_any_noise_add_up(kind: str) -> None:
    places = getattr(noise_laws, f"{kind}_places")
    level = places(np.array([4, 4]), 2, 0.02)  # no noise to speak of: in their order
    assert level == pytest.approx(np.eye(2), abs=1e-12)
    scores = np.array([7, 0, 3])
    found = places(scores, 3, 5.5)
    assert found.sum(axis=0) == pytest.approx(np.ones(3), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    z = np.arange(-250, 251)
    pmf = np.array([oracle.laplace(5.5, int(t)) for t in z])
    if kind == "gaussian":
        pmf = np.exp(-((z / 5.5) ** 2) / 2)
        pmf /= pmf.sum()
    upto = np.cumsum(pmf)
    for i, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        first = pmf.copy()  # no other is above, nor level if it comes before
        for j in others:
            least = np.clip(scores[i] + z - scores[j] - (j < i), -251, 250)
            first *= np.where(least < -250, 0.0, upto[least + 250])
        assert found[0, i] == pytest.approx(first.sum(), abs=1e-12)
