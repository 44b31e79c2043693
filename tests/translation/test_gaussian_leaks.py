"""The witness of a Gaussian process against its formula, written out in many digits."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.costs import ANY, Cost, Distance, Steps
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian import gaussian_witness
from takifugu.translation.gaussian.gaussian_witness import (
    WINDOW,
    GaussianWitness,
    _log_moment,
    _nearer,
    _Slopes,
    _some,
)
from takifugu.translation.gaussian.rounded_numbers import rounding_factor
from takifugu.translation.translation import Translation

pytestmark = pytest.mark.nightly

LAW = np.array([[4.0, 1.5, -1.0], [1.5, 3.0, 0.5], [-1.0, 0.5, 2.0]])
MEAN = np.array([0.5, -0.25, 1.0])
ONE = Cost.of({Distance(-9, 11): 4})
TWO = Cost.of({Distance(-7, 8): 3, Distance(-8, 12): 2})
FINE = Cost.of({Steps(-10, 10, Fraction(1, 10)): 4})
AT = Bound(9.0, Binding("x", "y", entry=0))


def phi(z: Any) -> Any:
    return mpmath.ncdf(z)


def beside(entry: int, ends: tuple[float, float], used: list[int], costs: list[Cost]) -> Any:
    """What entries beside add by the inequality of the module, term by term."""
    terms = [
        (j, value / (shape.high - shape.low), shape.low, shape.high)
        for j, cost in zip(used, costs, strict=True)
        for shape, value in cost.terms
        if isinstance(shape, Distance | Steps)
    ]
    K = LAW
    within = ends[1] - ends[0]
    steep = {j: sum(float(per) for i, per, _, _ in terms if i == j) for j in used}
    pull = {j: K[j, entry] / K[entry, entry] for j in used}
    spread = {
        (i, j): K[i, j] - K[i, entry] * K[j, entry] / K[entry, entry] for i in used for j in used
    }
    sign = {j: mpmath.sign(pull[j]) for j in used}
    grown = lost = mpmath.mpf(0)
    shares = []
    for j, slope, low, high in terms:
        sd = mpmath.sqrt(spread[j, j])
        tilt = sum(spread[j, i] * sign[i] * steep[i] for i in used)
        at = [MEAN[j] + (end - MEAN[entry]) * pull[j] + tilt for end in ends]
        below, above = (float(low) - min(at)) / sd, (max(at) - float(high)) / sd
        per = float(slope)
        far, other = (below, above) if sign[j] > 0 else (above, below)
        a = 2 * len(terms) * per * sd
        moment = phi(-far) + mpmath.exp(a * far + a**2 / 2) * phi(far + a)
        grown += mpmath.log(moment) / len(terms)
        lost += per * sd * (mpmath.exp(-(other**2) / 2) / 2.5 + max(other, 0) * phi(other))
        shares.append((abs(pull[j]) * within * per, phi(below) + phi(above)))
    outside = [mpmath.exp(grown / 2 + lost) * mpmath.sqrt(share) for _, share in shares]
    return [(moved, out) for (moved, _), out in zip(shares, outside, strict=True)]


def certain(parts: Any) -> Any:
    return sum(moved * min(max(1 - out, 0), 1) for moved, out in parts)


CASES = [
    ([1], [ONE]),
    ([2], [ONE]),
    ([1, 2], [ONE, ONE]),
    ([1, 2], [ONE, TWO]),
    ([2, 1], [TWO, ONE]),
    ([1], [TWO]),
    ([1, 2], [Cost.of({Distance(-3, 3): 1}), Cost.of({Distance(-2, 5): 1})]),
    ([1, 2], [Cost.of({Distance(-20, 3): 1}), Cost.of({Distance(-2, 25): 1})]),
]


@pytest.mark.parametrize(("used", "costs"), CASES)
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.5, 2.5), (2.0, 3.0)])
def test_what_entries_beside_add(
    used: list[int], costs: list[Cost], ends: tuple[float, float]
) -> None:
    prior = Gaussian(Covariance(LAW), mean=MEAN)
    witness = GaussianWitness(prior, Fraction(ends[1] - ends[0]), None)
    law = prior.covariance([0, 1, 2])
    slopes = {j: _Slopes.of(cost) for j, cost in zip(used, costs, strict=True)}
    listed = [slopes.get(j, _Slopes((), Fraction(0), Fraction(0))) for j in (1, 2)]
    kept = np.array([j - 1 for j in used])
    found = witness._beside(0, ends, np.array(used), law, kept, listed)
    true = certain(beside(0, ends, used, costs))
    assert true > 0
    assert float(true) * (1 - 1e-6) - 1e-9 <= found <= float(true)


@pytest.mark.parametrize("used", [[1], [2], [1, 2]])
def test_what_entries_beside_add_if_they_are_rounded(used: list[int]) -> None:
    """By half a step each, or by the smoothed likelihood: the larger of both."""
    ends, prior = (0.0, 1.0), Gaussian(Covariance(LAW), mean=MEAN)
    slopes = _Slopes.of(FINE)
    kept = np.array([j - 1 for j in used])
    witness = GaussianWitness(prior, Fraction(1), None)
    law = prior.covariance([0, 1, 2])
    found = witness._beside(0, ends, np.array(used), law, kept, [slopes, slopes])
    parts = beside(0, ends, used, [FINE] * len(used))
    kappa = 4 / 200
    plain = certain(parts) - len(used) * kappa
    factor = rounding_factor(kappa, 0.1, prior.least_deviation())
    share, error = 1 - kappa**2 / 12, 2 * (factor - 1)
    grown = mpmath.exp(len(used) * kappa)
    fine = sum(moved * share * max(1 - error - out * grown, 0) for moved, out in parts)
    assert fine > plain and found == pytest.approx(float(max(plain, fine)), rel=1e-6)
    assert witness._smoothing(slopes) == pytest.approx((share, error), abs=0)
    assert witness._smoothing(_Slopes.of(ONE)) == (1.0, 0.0)
    several = _Slopes.of(FINE + Cost.of({Steps(-10, 10, Fraction(1, 5)): 1}))
    assert several.step is None and witness._smoothing(several) == (1.0, np.inf)
    shares, errors = witness._smoothed([slopes, _Slopes.of(ONE), slopes])
    assert shares.tolist() == pytest.approx([share, 1, share])
    assert errors.tolist() == pytest.approx([error, 0, error], abs=0)


def test_rounding_is_taken_off_where_nothing_smooths_it() -> None:
    """Of a coarse grid both ways together lose κ for each entry that is used."""
    prior = Gaussian(Covariance(LAW), mean=MEAN)
    cost = Cost.of({Steps(-20, 20, 5): 4})
    slopes, ends = _Slopes.of(cost), (0.0, 8.0)
    witness = GaussianWitness(prior, Fraction(8), None)
    law = prior.covariance([0, 1, 2])
    found = witness._beside(0, ends, np.array([1]), law, np.array([0]), [slopes, slopes])
    assert witness._smoothing(slopes)[1] == np.inf
    true = max(float(certain(beside(0, ends, [1], [cost]))) - 0.5, 0.0)
    assert found == pytest.approx(true, abs=1e-6)


def test_the_slopes_of_a_cost() -> None:
    found = _Slopes.of(Cost.of({Distance(-1, 3): 2, Distance(0, 10): 5, ANY: 7}))
    assert set(found.terms) == {
        (Fraction(1, 2), Fraction(-1), Fraction(3)),
        (Fraction(1, 2), Fraction(0), Fraction(10)),
    }
    assert found.jump == 7 and found.grain == 0 and found.step is None and found.steep == 1
    assert found.between(Fraction(2), Fraction(-5)) == 7 + Fraction(3, 2) + 1
    assert found.between(Fraction(12), Fraction(11)) == 7
    assert found.between(Fraction(-5), Fraction(2)) == 7 - Fraction(5, 2)
    fine = _Slopes.of(FINE)
    assert fine.grain == Fraction(1, 50) and fine.step == Fraction(1, 10) and fine.jump == 0
    assert fine.between(Fraction(1), Fraction(0)) == Fraction(1, 5) - Fraction(1, 50)
    assert fine.between(Fraction(1, 100), Fraction(0)) == 0
    both = _Slopes.of(FINE + ONE)
    assert both.step is None and both.grain == Fraction(1, 50)
    assert _Slopes.of(Cost.any(3)) == _Slopes((), Fraction(3), Fraction(0))


@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("a", [0.01, 0.5, 3.0])
def test_a_moment_below_a_bound(z: float, a: float) -> None:
    def weighed(x: Any) -> Any:
        return mpmath.exp(a * max(z - x, 0)) * mpmath.npdf(x)

    ends = sorted({-40.0, -10.0, -5.0, -a, 0.0, z, 5.0, 10.0, 40.0})
    true = mpmath.log(mpmath.quad(weighed, ends))
    found = _log_moment(np.array([z]), np.array([a]))
    assert found[0] == pytest.approx(float(true), rel=1e-7, abs=1e-9)


def test_what_is_certain_and_what_is_near() -> None:
    moved = np.array([1.0, 2.0, 4.0, 8.0, -3.0])
    share = np.array([0.5, -1.0, np.nan, 2.0, 0.5])
    assert _some(moved, share) == 8.5
    assert _some(moved, np.full(5, -np.inf)) == 0
    scores, size = np.array([-3.0, 0.0, 2.0]), np.array([1e4, 0.0, 1.0])
    near = _nearer(scores, size) - scores
    assert near == pytest.approx([5e-9, 1e-9, 3e-9 + 1e-13], rel=1e-3)


@pytest.mark.parametrize(
    ("length", "entry", "first", "last"),
    [(None, 3, 0, 7), (None, 9, 5, 13), (8, 3, 0, 7), (7, 3, 0, 6), (20, 9, 5, 13), (14, 9, 5, 13)],
)
def test_the_entries_near_one(
    length: int | None, entry: int, first: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaussian_witness, "WINDOW", 4)
    found = GaussianWitness(Gaussian(AR1(0.5), length), Fraction(1), None)._near(entry)
    assert found.tolist() == [k for k in range(first, last + 1) if k != entry]


def test_the_best_of_a_few_sums() -> None:
    """Far bounds: all entries that vary with it, each by its correlation."""
    far = Cost.of({Distance(-(10**4), 10**4): 2 * 10**4})  # 1 for each unit
    prior = Gaussian(AR1(-0.5), 5)
    witness = GaussianWitness(prior, Fraction(2), None)
    costs = EntryCosts((far,))
    for entry, sums in ((0, 1.9375), (2, 2.5)):
        found, about = witness.best(costs, Bound(9.0, Binding("x", "y", entry=entry)))
        assert 2 * sums * (1 - 1e-6) <= found <= 2 * sums and about == entry
    listed = EntryCosts(by_entry=(far, Cost.of({}), far * 3, Cost.any(9), far))
    found, about = witness.best(listed, Bound(99.0, Binding("x", "y", entry=2)))
    assert found == pytest.approx(2 * (3 + 0.25 + 0.25), rel=1e-6) and about == 2
    found, about = witness.best(listed, Bound(99.0, Binding("x", "y", entry=3)))
    assert found == pytest.approx(9 + 2 * (3 * 0.5 + 0.125 + 0.5), rel=1e-6) and about == 3
    either = EntryCosts((Cost.any(1), far, far * 2))
    assert witness.best(either, AT)[0] == pytest.approx(4 * 1.9375, rel=1e-6)
    assert witness.best(EntryCosts(()), AT)[0] == 0


def test_where_no_entry_is_named() -> None:
    far = EntryCosts((Cost.of({Distance(-(10**4), 10**4): 2 * 10**4}),))
    unbounded = Gaussian(AR1(0.5))
    found, about = GaussianWitness(unbounded, Fraction(1), None).best(far, Bound(9.0))
    assert found == pytest.approx(3, rel=1e-5) and about is None
    found, about = GaussianWitness(unbounded, Fraction(1), (0, 7)).best(
        far, Bound(9.0, Binding("x", "y", entry=0))
    )
    assert found == pytest.approx(2, rel=1e-5) and about == 0
    bounded = Gaussian(AR1(0.5), WINDOW + 1)
    found, about = GaussianWitness(bounded, Fraction(1), None).best(far, Bound(9.0))
    assert found == pytest.approx(2, rel=1e-5) and about == WINDOW


def test_values_are_taken_around_the_mean_or_between_the_bounds() -> None:
    """A bound that cuts off the mean: the pair in the middle of the bounds costs all of it."""
    high = Cost.of({Distance(100, 104): 4})
    alone = Gaussian(AR1(0.0), 1, mean=0.0)
    found, _ = GaussianWitness(alone, Fraction(2), None).best(EntryCosts((high,)), AT)
    assert found == pytest.approx(2, rel=1e-12) and found <= 2
    answer = Translation(alone, Secrets(within=2)).explain_cost(high)
    assert answer.exact and answer.pufferfish == pytest.approx(2)
