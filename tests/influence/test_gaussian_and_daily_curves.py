"""Curves of Gaussian processes and of days, every field; what truncated Gaussians are asked."""

import math
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidWorld
from takifugu.influence import gaussian_curves as gaussian
from takifugu.influence.chain import time_of_day_curves
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.chain.time_of_day_curves import time_of_day_curve
from takifugu.influence.gaussian_process_curves import gaussian_process_curve
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import AR1, Covariance
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from tests.raising import raises

pytestmark = pytest.mark.nightly

# ---- Gaussian processes


def test_all_that_varies_together_is_exposed_or_everything_leaks() -> None:
    rows = np.eye(4)
    rows[0, 1] = rows[1, 0] = 0.5
    rows[1, 2] = rows[2, 1] = -0.25
    prior = Gaussian(Covariance(rows))
    found = gaussian_process_curve(prior, Secrets(within=1))
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
    some = gaussian_process_curve(prior, Secrets(within=1, entries=(3, 0)))
    assert some.exposed.tolist() == [1, 2, 4] and some.pairs == ("3=x / 3=y", "0=x / 0=y")
    assert some.leak.tolist() == [[0.0, 0.0, 0.0], [inf, 0.0, 0.0]]
    with raises(InvalidWorld, field="secrets"):
        gaussian_process_curve(prior, Secrets(within=1, entries=(4,)))


@pytest.mark.parametrize(
    ("rho", "length", "exposed", "leak"),
    [(0.0, None, 1, 0.0), (0.0, 7, 1, 0.0), (0.5, 7, 7, 0.0), (0.5, None, 1, math.inf)],
)
def test_processes_by_lag_are_exposed_all_or_alone(
    rho: float, length: int | None, exposed: int, leak: float
) -> None:
    prior = Gaussian(AR1(rho), length)
    found = gaussian_process_curve(prior, Secrets(within=1, entries=(6,)))
    assert found.exposed.tolist() == [exposed] and found.leak.tolist() == [[leak]]
    assert found.entries == length and found.pairs == ("x / y",)
    assert found.exact.tolist() == [[True]] and found.splits is None
    if length is not None:
        with raises(InvalidWorld, field="secrets"):
            gaussian_process_curve(prior, Secrets(within=1, entries=(7,)))


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
    found = time_of_day_curve(DAYS, Secrets(), max_exposed=most)
    long = chain_curve(DAYS.days_of(6), max_exposed=most)
    assert found.exposed.tolist() == exposed and found.entries == 4
    kept = len(exposed) - 1
    assert found.leak[:, :kept].tolist() == long.leak[:, :kept].tolist()
    assert found.leak[:, kept].tolist() == [0.0] * 12 and (found.leak[:, 0] > 0).all()
    assert found.pairs == long.pairs and len(set(found.pairs)) == 12
    assert not found.exact.any() and found.exact.shape == found.leak.shape
    assert found.splits is None


def test_secret_entries_of_days_are_those_at_every_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def asked_for(chain: Any, secrets: Secrets, *, max_exposed: int | None) -> Any:
        asked.append((chain, secrets, max_exposed))
        return chain_curve(chain, secrets, max_exposed=max_exposed)

    monkeypatch.setattr(time_of_day_curves, "chain_curve", asked_for)
    pairs = ((("off",), ("on",)),)
    found = time_of_day_curve(DAYS, Secrets(entries=(3, 1), pairs=pairs), max_exposed=3)
    # entries 1, 2, 3 and 3, 4, 5 of the chain
    ((chain, secrets, most),) = asked
    assert secrets == Secrets(entries=(1, 2, 3, 4, 5), pairs=pairs) and most == 3
    assert chain == DAYS.days_of(6)
    assert found.exposed.tolist() == [1, 2, 3, 4] and found.entries == 4
    with raises(InvalidWorld, field="secrets"):
        time_of_day_curve(DAYS, Secrets(entries=(4,)))
    assert len(asked) == 1


# ---- truncated Gaussians


def prior_of(covariance: Any, bound: float = 3.0, width: float = 0.5) -> TruncatedGaussian:
    return TruncatedGaussian(np.array(covariance, dtype=np.float64), bound, width)


@pytest.mark.parametrize("law", ["truncated", "printed"])
def test_of_all_candidates_the_least_leak_is_kept(
    law: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where exposing more is no better, the smaller set."""
    table = {
        (0,): 9.0,
        (1,): 7.0,
        (2,): 6.0,
        (0, 1): 5.0,
        (0, 2): 4.0,
        (1, 2): 7.0,
        (0, 1, 2): 0.0,
    }
    prior = prior_of(np.eye(3))
    asked = []

    def leak(given: Any, i: int, exposed: Any, which: str, within: float) -> float:
        asked.append((given is prior, i, exposed, which, within))
        return table[exposed] if i != 2 else 2 * table[exposed]

    monkeypatch.setattr(gaussian, "_split_leak", leak)
    monkeypatch.setattr(gaussian, "_log_within", lambda _, i: -0.5 - i)
    monkeypatch.setattr(
        gaussian, "_candidates", lambda _, i, b: {h for h in table if len(h) == b and i in h}
    )
    found = gaussian.gaussian_curve(prior, law=law)
    assert found.leak.tolist() == [[9.0, 4.0, 0.0], [7.0, 5.0, 0.0], [12.0, 8.0, 0.0]]
    assert found.splits is not None
    sets = [[found.splits.describe(i, b)["exposed"] for b in range(3)] for i in range(3)]
    assert sets == [
        [[0], [0, 2], [0, 1, 2]],
        [[1], [0, 1], [0, 1, 2]],
        [[2], [0, 2], [0, 1, 2]],
    ]
    within = [-0.5 - i if law == "truncated" else 0.0 for i in range(3)]
    assert set(asked) == {
        (True, i, exposed, law, within[i]) for i in range(3) for exposed in table if i in exposed
    }
    table[(0, 1)], table[(0, 2)], table[(1, 2)] = 9.0, 12.0, 8.0
    again = gaussian.gaussian_curve(prior, law=law)
    assert again.leak.tolist() == [[9.0, 9.0, 0.0], [7.0, 7.0, 0.0], [12.0, 12.0, 0.0]]
    assert again.splits is not None
    assert [again.splits.describe(i, 1)["exposed"] for i in range(3)] == [[0], [1], [2]]


def test_a_set_is_kept_for_as_long_as_none_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    leaks = [9.0, 5.0, 6.0, 5.0, 0.0]
    monkeypatch.setattr(gaussian, "_split_leak", lambda _, i, h, *__: leaks[len(h) - 1] + i)
    monkeypatch.setattr(gaussian, "_candidates", lambda _, i, b: {(i, *[10 + i] * (b - 1))})
    found = gaussian.gaussian_curve(prior_of(np.eye(5)), law="printed")
    assert found.splits is not None
    for i in range(5):
        assert found.leak[i].tolist() == [9.0 + i, 5.0 + i, 5.0 + i, 5.0 + i, 0.0 + i]
        sizes = [len(found.splits.describe(i, b)["exposed"]) for b in range(5)]
        assert sizes == [1, 2, 2, 2, 5]


@pytest.mark.parametrize("b", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("i", range(5))
def test_candidates_in_full(i: int, b: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(10 * i + b)
    root = rng.normal(size=(5, 8)) * np.array([[1.0], [3.0], [0.5], [2.0], [4.0]])
    prior = prior_of(root @ root.T, bound=10.0)
    tried = {}

    def leak(_: Any, entry: int, window: tuple[int, ...], law: str, within: float) -> float:
        assert entry == i and law == "printed" and within == 0.0
        tried[window] = float(rng.random())
        return tried[window]

    monkeypatch.setattr(gaussian, "_split_leak", leak)
    found = gaussian._candidates(prior, i, b)
    windows = [tuple(range(a, a + b)) for a in range(6 - b) if a <= i < a + b]
    assert sorted(tried) == sorted(windows)
    best = min(windows, key=lambda window: tried[window])
    near = sorted(range(5), key=lambda j: (abs(j - i), j))[:b]
    scale = np.sqrt(np.diag(prior.covariance))
    others = [j for j in range(5) if j != i]
    others.sort(key=lambda j: -abs(prior.covariance[i, j]) / (scale[i] * scale[j]))
    assert found == {best, tuple(sorted(near)), tuple(sorted([i, *others[: b - 1]]))}


def test_an_entry_is_among_those_most_correlated_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another is as much so, up to rounding."""
    prior = prior_of(np.eye(3))
    object.__setattr__(prior, "covariance", np.ones((3, 3)))
    monkeypatch.setattr(gaussian, "_split_leak", lambda *_: 0.0)
    assert gaussian._candidates(prior, 2, 1) == {(2,)}
    assert gaussian._candidates(prior, 2, 2) == {(1, 2), (0, 2)}


def test_an_ill_conditioned_law_is_widened_by_what_rounding_may_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two entries that are all but one: rounding of 2^-50 counts 2^40 times."""
    small = 2.0**-40
    block = np.array([[1.0, 1.0 - small, 0.0], [1.0 - small, 1.0, 0.0], [0.0, 0.0, 8.0]])
    weights = np.array([3.0, -2.5, 0.25])
    cross = block @ weights  # exact: no residual is left
    floor = small - 3 * 2.0**-50 * 8.0
    off = 3 * 2.0**-52 * (np.abs(block) @ np.abs(weights) + np.abs(cross))
    error = float(np.linalg.norm(off)) / floor
    sigma = np.zeros((4, 4))
    sigma[1:, 1:] = block
    sigma[0, 1:] = sigma[1:, 0] = cross
    sigma[0, 0] = weights @ cross + error * float(np.linalg.norm(cross)) + 0.0625
    prior = prior_of(np.eye(4), bound=2.0)
    object.__setattr__(prior, "covariance", sigma)
    monkeypatch.setattr(np.linalg, "solve", lambda *_: weights)
    reach, deviation = gaussian._conditional(prior, 0, (1, 2, 3))
    assert reach / 2.0 - 5.75 == pytest.approx(math.sqrt(3) * error, rel=1e-3)
    assert deviation == pytest.approx(0.25, rel=1e-3)
    for least, known in ((1.0, False), (1.5, True)):  # of what rounding may take off it
        off = np.array([least * 3 * 2.0**-50 * 8.0, 2.0, 8.0])
        monkeypatch.setattr(np.linalg, "eigvalsh", lambda _, found=off: found)
        reach, deviation = gaussian._conditional(prior, 0, (1, 2, 3))
        assert math.isfinite(reach) == known and deviation == 0.0


def test_windows_too_narrow_or_too_far_for_floats() -> None:
    """A width that is lost in its end still counts; beyond all floats nothing is known."""
    narrow = gaussian._window(1.0, 1e-20, 0.0, 1.0)
    truth = math.log(1e-20) - 0.5 - math.log(2 * math.pi) / 2
    assert narrow.log == pytest.approx(truth, abs=1e-12) and 0 < narrow.error < 1e-12
    far = gaussian._window(1e200, 5.0, 0.0, 1.0)
    assert (far.log, far.error) == (-math.inf, math.inf)


@pytest.mark.parametrize("given", [(1,), (2, 3), (1, 2, 3)])
def test_the_deviation_of_an_independent_entry_is_rounded_down(given: tuple[int, ...]) -> None:
    prior = prior_of(np.diag([4.0, 1.0, 2.0, 0.5]))
    reach, deviation = gaussian._conditional(prior, 0, given)
    assert reach == 0.0
    assert 1 - deviation / 2.0 == len(given) * 2.0**-51


def test_a_variance_that_is_lost_is_none() -> None:
    prior = prior_of([[1.0, 1.0 - 2.0**-52], [1.0 - 2.0**-52, 1.0]])
    assert gaussian._conditional(prior, 0, (1,))[1] == 0.0
    assert gaussian._stay(prior, 0, (1,)) == -math.inf
    assert gaussian.split_leak(prior, 0, (0,)) == math.inf


def test_who_stays_is_bounded_by_the_union_and_by_both_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prior = prior_of(np.eye(6))
    asked: list[tuple[int, tuple[int, ...]]] = []
    alone: dict[int, float] = {}
    later: dict[tuple[int, ...], float] = {}

    def stay(_: TruncatedGaussian, j: int, given: Any) -> float:
        asked.append((j, tuple(given)))
        return later.get((*given, j), math.log(alone[j]))

    monkeypatch.setattr(gaussian, "_stay", stay)
    margin = 2.0**-40
    alone |= {0: 0.875, 1: 0.9375, 4: 0.96875}
    union = 1 - 0.21875 * (1 + margin) - margin
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(math.log(union), abs=1e-15)
    assert asked == [(0, (2, 5)), (1, (2, 5)), (4, (2, 5))]  # good enough
    asked.clear()
    alone |= {0: 0.75, 1: 0.875, 4: 0.8125}
    union = math.log(0.4375)
    orders = [1, 0, 4], [0, 4, 1]  # nearest to the first first, and farthest first
    chains = [[(j, (2, 5, *order[:k])) for k, j in enumerate(order)] for order in orders]
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(
        math.log(0.75 * 0.875 * 0.8125), abs=1e-15
    )
    assert asked == [(0, (2, 5)), (1, (2, 5)), (4, (2, 5)), *chains[0], *chains[1]]
    later |= {(2, 5, 1, 0): -0.125, (2, 5, 0, 4): -2.0}
    by_first = math.log(0.875) - 0.125 + math.log(0.8125)
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(by_first, abs=1e-15)
    later |= {(2, 5, 1, 0): -2.0, (2, 5, 0, 4): -0.0625}
    by_second = math.log(0.75) - 0.0625 + math.log(0.875)
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(by_second, abs=1e-15)
    later |= {(2, 5, 1, 0): -2.0, (2, 5, 0, 4): -2.0}
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(union, abs=1e-11)
    later.clear()
    alone |= {0: 0.5, 1: 0.25, 4: 0.25}  # the union says nothing
    assert gaussian._log_stay(prior, [0, 1, 4], [2, 5]) == pytest.approx(math.log(0.5 / 16))


def test_staying_is_the_least_of_two_windows_with_their_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prior = prior_of(np.eye(3), bound=2.5)
    windows: list[tuple[float, ...]] = []
    masses = {1.0: gaussian._Mass(-1.0, 0.25), 1 + 1e-9: gaussian._Mass(-2.0, 0.125)}

    def window(start: float, width: float, mean: float, deviation: float) -> Any:
        windows.append((start, width, mean, deviation))
        return masses[deviation / 0.5]

    monkeypatch.setattr(gaussian, "_window", window)
    asked = []

    def conditional(given: Any, j: int, seen: Any) -> tuple[float, float]:
        asked.append((given is prior, j, seen))
        return 0.75, 0.5

    monkeypatch.setattr(gaussian, "_conditional", conditional)
    assert gaussian._stay(prior, 1, [0, 2]) == -2.125 - 2.0**-40
    assert asked == [(True, 1, [0, 2])]
    assert windows == [(-2.5, 5.0, 0.75, 0.5), (-2.5, 5.0, 0.75, 0.5 * (1 + 1e-9))]
    masses[1.0] = gaussian._Mass(-2.0, 0.5)
    assert gaussian._stay(prior, 1, [0, 2]) == -2.5 - 2.0**-40
    for nothing in ((math.inf, 0.5), (0.75, 0.0)):
        monkeypatch.setattr(gaussian, "_conditional", lambda *_, known=nothing: known)
        assert gaussian._stay(prior, 1, [0, 2]) == -math.inf
