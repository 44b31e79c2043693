"""The fast ways to the baselines find what the plain ones do, at the extremes too."""

from math import inf

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.papers.composition.baselines.chain_laws import stationary
from takifugu.papers.composition.baselines.quilts import mqm_approx, mqm_exact, spectral_gap
from takifugu.papers.composition.baselines.temporal import (
    ratio_front,
    tpl_path,
    tpl_step,
    tpl_supremum,
    tpl_to_dp,
    tpl_total,
)
from tests.oracles import baselines as oracle

Rows = list[list[float]]


@st.composite
def kernels(draw: st.DrawFn, least: int = 5, most: int = 9) -> Rows:
    """Rows of any kind: with zeros, equal or nearly equal rows, tiny probabilities, sticky."""
    n = draw(st.integers(least, most))
    weight = st.one_of(
        st.integers(0, 3).map(float), st.floats(0.01, 1), st.sampled_from([1e-12, 1e-100, 1.0])
    )
    row = st.lists(weight, min_size=n, max_size=n).filter(lambda r: max(r) >= 0.01)
    drawn = draw(st.lists(row, min_size=1, max_size=n))
    stay = draw(st.sampled_from([0.0, 0.5, 0.99]))
    rows = np.array([drawn[x % len(drawn)] for x in range(n)])
    if draw(st.booleans()):  # every row the one before, turned: many pairs that are equal
        rows = np.array([np.roll(drawn[0], x) for x in range(n)])
    rows = rows / rows.sum(axis=1, keepdims=True)
    rows = (1 - stay) * rows + stay * np.eye(n)
    rows /= rows.sum(axis=1, keepdims=True)
    return [[float(p) for p in one] for one in rows]


def random_kernel(n: int, seed: int, *, zeros: float = 0.0) -> Floats:
    """A kernel with very unequal entries, some of them 0."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(0.3, size=(n, n)) * (rng.random((n, n)) >= zeros)
    rows += 1e-3 * np.roll(np.eye(n), 1, axis=1)
    rows += 1e-9 * (zeros == 0)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def mixing(P: Floats) -> float:
    """The gap of MQMApprox from eigenvalues of matrices that are not symmetric."""
    law = stationary(P)
    back = (law[:, None] * P).T / law[:, None]
    if np.abs(back - P).max() <= 1e-12:
        return float(2 * (1 - np.sort(np.abs(np.linalg.eigvals(P)))[-2]))
    return float(1 - np.sort(np.abs(np.linalg.eigvals(P @ back)))[-2])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 5),
    stay=st.sampled_from([0.0, 0.5, 0.95]),
    length=st.sampled_from([1, 2, 3, 7, 20, 40]),
    epsilon=st.sampled_from([1e-3, 0.1, 1.0, 5.0, 100.0, 1e6]),
    reversible=st.booleans(),
)
def test_the_approximate_noise_is_what_every_quilt_of_every_node_gives(
    seed: int, n: int, stay: float, length: int, epsilon: float, reversible: bool
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.7, size=(n, n)) + 0.02
    weights = weights + weights.T if reversible else weights
    P = (1 - stay) * weights / weights.sum(axis=1, keepdims=True) + stay * np.eye(n)
    law = stationary(P)
    slow = oracle.approximate_quilt_noise(mixing(P), float(law.min()), length, epsilon)
    fast = mqm_approx(P, length, epsilon)
    assert fast.noise == pytest.approx(slow, rel=1e-6)
    assert fast.noise >= slow * (1 - 1e-9)
    assert spectral_gap(P, law) == pytest.approx(mixing(P), abs=1e-7)


def test_the_approximate_noise_of_a_long_chain_does_not_depend_on_where_it_ends() -> None:
    """Far more entries than are looked at first, and more than could be gone through in pairs."""
    slow = 0.999 * np.eye(3) + 0.001 / 3
    ends = [mqm_approx(slow, length, 1.0) for length in (10**5, 10**6)]
    assert ends[0] == ends[1]
    assert ends[0].left is not None
    assert ends[0].right is not None
    assert ends[0].left + ends[0].right > 9_000
    law, gap = stationary(slow), spectral_gap(slow, stationary(slow))

    def noise(a: int, b: int) -> float:
        influence = [np.arctanh(np.exp(-gap * d / 2) / law.min()) for d in (a, b)]
        return float((a + b - 1) / (1 - 4 * influence[0] - 2 * influence[1]))

    found = noise(ends[0].left, ends[0].right)
    assert ends[0].noise == pytest.approx(found, rel=1e-5)
    for more, other in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)):
        assert noise(ends[0].left + more, ends[0].right + other) >= found * (1 - 1e-12)


@pytest.mark.nightly
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), stay=st.sampled_from([0.0, 0.8]), epsilon=st.floats(0.01, 20))
def test_the_exact_noise_needs_no_pairs_that_were_left_out(
    seed: int, stay: float, epsilon: float
) -> None:
    """With a start law every node is gone through by itself; here it is the stationary one."""
    P = (1 - stay) * random_kernel(5, seed) + stay * np.eye(5)
    fast = mqm_exact(P, 24, epsilon)
    slow = mqm_exact(P, 24, epsilon, start=stationary(P))
    assert fast.noise == pytest.approx(slow.noise, rel=1e-7)


@pytest.mark.costly
@settings(max_examples=60)
@given(kernel=kernels(), alpha=st.sampled_from([1e-9, 0.01, 0.3, 1.0, 4.0, 20.0, 300.0, 690.0]))
@example(kernel=np.full((7, 7), 1 / 7).tolist(), alpha=1.0)
@example(kernel=np.roll(np.eye(8), 1, axis=1).tolist(), alpha=1.0)
def test_a_step_is_what_the_published_algorithm_finds(kernel: Rows, alpha: float) -> None:
    slow = oracle.published_leak_step(kernel, alpha)
    fast = float(tpl_step(kernel, alpha))
    assert fast == pytest.approx(slow, rel=1e-9, abs=1e-13)
    assert fast >= slow * (1 - 1e-14)
    assert fast <= alpha + 1e-12 * (1 + alpha)


@pytest.mark.parametrize("zeros", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("stay", [0.0, 0.9])
def test_a_step_of_many_states_is_what_the_published_algorithm_finds(
    zeros: float, stay: float
) -> None:
    kernel = (1 - stay) * random_kernel(30, 5, zeros=zeros) + stay * np.eye(30)
    alphas = [1e-6, 0.1, 1.0, 3.0, 10.0, 50.0]
    slow = [oracle.published_leak_step(kernel.tolist(), alpha) for alpha in alphas]
    fast = tpl_step(kernel, alphas)
    assert fast == pytest.approx(slow, rel=1e-9)
    assert (fast >= np.array(slow) * (1 - 1e-13)).all()


def test_the_front_beats_every_set_of_every_pair() -> None:
    """Whatever was left out, no random set of states is better at any λ."""
    kernel = random_kernel(12, 3)
    q, d = ratio_front(kernel)
    rng = np.random.default_rng(0)
    assert (np.diff(q) > 0).all()
    assert (np.diff(d) > 0).all()
    for rate in np.geomspace(1, 1e9, 40):
        best = (q - rate * d).max()
        sets = rng.random((50, 12)) < 0.5
        inside, outside = kernel @ sets.T, kernel @ sets.T
        assert (inside[:, None] - rate * outside[None]).max() <= best + 1e-12
        exact = np.maximum(kernel[:, None] - rate * kernel[None], 0.0).sum(axis=-1).max()
        assert best >= exact
        assert best <= exact + 1e-12


@settings(max_examples=15)
@given(kernel=kernels(), epsilon=st.floats(0.01, 1))
def test_paths_totals_and_suprema_follow_from_steps(kernel: Rows, epsilon: float) -> None:
    leak, path = 0.0, list[float]()
    for _ in range(6):
        leak = epsilon + (oracle.published_leak_step(kernel, leak) if path else 0.0)
        path.append(leak)
    assert tpl_path(kernel, [epsilon] * 6) == pytest.approx(path, rel=1e-9)
    assert tpl_supremum(kernel, epsilon) >= path[-1]
    start = [1 / len(kernel)] * len(kernel)
    total = tpl_total(kernel, [epsilon] * 6, start=start)
    assert total[0] == pytest.approx(path[-1], rel=1e-9)  # nothing is before the first


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 50.0, 1000.0])
@pytest.mark.parametrize("length", [1, 2, 50])
def test_what_the_leakage_allows_is_the_largest(length: int, epsilon: float) -> None:
    kernel = random_kernel(8, 1)
    found = tpl_to_dp(kernel, length, epsilon)
    assert 0 < found <= epsilon
    if epsilon > 1e-3:  # below it a rounding is worth more than a millionth
        assert tpl_total(kernel, [found] * length).max() <= epsilon + 1e-12 * (1 + epsilon)
        assert tpl_total(kernel, [found * (1 + 1e-9)] * length).max() > epsilon
    assert tpl_supremum(kernel, epsilon) < inf


def test_steps_at_large_losses_keep_their_digits() -> None:
    """Where the difference of two logarithms of the size of the loss has lost some."""
    rng = np.random.default_rng(3)
    with mpmath.workdps(60):
        for _ in range(50):
            kernel = rng.dirichlet([1, 1], size=2)
            alpha = float(rng.choice([30.0, 300.0, 690.0]))
            grown = mpmath.expm1(mpmath.mpf(alpha))
            truth = max(
                mpmath.log((1 + grown * mpmath.mpf(x)) / (1 + grown * mpmath.mpf(y)))
                for column in kernel.T.tolist()
                for x, y in (column, column[::-1])
            )
            found = float(tpl_step(kernel, alpha))
            assert truth <= found <= truth + 1e-13 * (1 + truth)


def test_where_nothing_is_allowed_no_quilt_is_named() -> None:
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    for found in (
        mqm_approx(rows, 10, 1e-300),
        mqm_exact(rows, 10, 1e-300),
        mqm_exact(rows, 10, 1e-300, start=[0.5, 0.5]),
    ):
        assert (found.noise, found.to_dp, found.left, found.right) == (inf, 0.0, None, None)


def test_a_chain_that_hardly_moves_has_group_privacy_at_once() -> None:
    rows = np.array([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]])
    found = mqm_approx(rows, 10**8, 1.0)
    assert found.noise == pytest.approx(1e8) and (found.left, found.right) == (None, None)


@pytest.mark.parametrize("epsilon", [354.0, 356.0, 500.0, 599.0, 601.0])
def test_a_supremum_is_finite_wherever_it_is(epsilon: float) -> None:
    found = tpl_supremum([[0.9, 0.1], [0.1, 0.9]], epsilon)
    assert found == pytest.approx(epsilon + np.log(9), rel=1e-12)
