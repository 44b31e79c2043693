r"""Influence curves of Gaussian priors: sound ones, and the formula that the paper prints.

Fix a coordinate i and a split with :math:`i \in H`. Given :math:`x_L` the untruncated
:math:`x_i` is :math:`N(\mu, \sigma^2)` with :math:`\mu = w \cdot x_L`,
:math:`w = \Sigma_{LL}^{-1}\Sigma_{Li}`, so :math:`\mu` ranges over :math:`\pm\gamma\|w\|_1`.

*The Gaussian term.* For regions R to the right of R′ the ratio P(R | μ)/P(R′ | μ) rises with μ
(monotone likelihood ratio), so the worst mean is an end of its range. The density ratio
:math:`q(x) = \log\phi_\sigma(x-\mu) - \log\phi_{\Sigma_{ii}}(x)` is a parabola with its top at
:math:`x^*`; moving a window to the right moves its law up in the same order, so the mass ratio of
a window rises left of :math:`x^*` and falls right of it: the worst R′ is the outermost window, and
the worst R touches :math:`x^*`. The value at :math:`x^*` bounds it from above.

*The truncated law.* Let h(u, x_L) be the probability that the other coordinates of H stay within ±γ
given x_i = u and x_L, and G(u) the same for all coordinates given x_i = u alone. Then

.. math:: P(x_L | R) = \frac{\int_R \phi(u, x_L)\,h(u, x_L)\,du}{\int_R \phi(u)\,G(u)\,du}

so that the truncated ratio exceeds the Gaussian term by at most
:math:`-\log \inf h - \log \inf G` (both are at most 1). Without this the printed value is too
small, hence unsafe. Two lower bounds on such a probability are tried: the union bound, and the
chain rule with the worst mean that the box allows at every step.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from takifugu._core.numeric import distinct
from takifugu.influence.chain.splitting import entry_time
from takifugu.influence.curve import ExposedSets, InfluenceCurve
from takifugu.influence.rounded_ratios import half_square, normal_window
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import Covariance
from takifugu.priors.secrets import Secrets
from takifugu.priors.truncated_gaussian import TruncatedGaussian

Law = Literal["truncated", "printed"]

# Added to every leak, relative to 1 + its size: past the accuracy of the normal distribution
# function, and past the error of the deviation, in which the Gaussian term is not monotone (its
# slope there is at most γ² where the parabola has its top inside, and the error about 1e-12).
LEAK_MARGIN = 1e-9


def gaussian_curve(prior: TruncatedGaussian, *, law: Law = "truncated") -> InfluenceCurve:
    """The curve of a Gaussian prior: every coordinate a row, every b a point; upper bounds.

    ``truncated`` is sound for the prior as it is. ``printed`` is the paper's formula with the
    right range of the mean, which ignores what truncation does to the other coordinates and may
    be too small: it is for comparison, never for a guarantee.

    Candidates for H are the nearest neighbours of i and its most correlated entries. What
    exposes fewer entries is a candidate for more, since L only shrinks.
    """
    n = prior.entries
    leak = np.zeros((n, n))
    members: list[tuple[tuple[int, ...], ...]] = []
    for i in range(n):
        row: list[tuple[int, ...]] = []
        within = _log_within(prior, i) if law == "truncated" else 0.0
        for b in range(1, n + 1):
            tried = [(_split_leak(prior, i, h, law, within), h) for h in _candidates(prior, i, b)]
            best, chosen = min(tried)
            if row and leak[i, b - 2] <= best:  # exposing fewer was no worse
                best, chosen = leak[i, b - 2], row[-1]
            leak[i, b - 1] = best
            row.append(chosen)
        members.append(tuple(row))
    return InfluenceCurve(
        exposed=np.arange(1, n + 1),
        leak=leak,
        entries=n,
        pairs=tuple(f"x{i}: any two regions" for i in range(n)),
        exact=leak == 0,
        splits=ExposedSets(members),
    )


def split_leak(
    prior: TruncatedGaussian, i: int, exposed: Sequence[int], *, law: Law = "truncated"
) -> float:
    """An upper bound on what the entries that are not ``exposed`` leak about regions of entry i."""
    within = _log_within(prior, i) if law == "truncated" else 0.0
    return _split_leak(prior, i, exposed, law, within)


def _split_leak(
    prior: TruncatedGaussian, i: int, exposed: Sequence[int], law: Law, within: float
) -> float:
    hidden = [j for j in range(prior.entries) if j not in set(exposed)]
    if not hidden:
        return 0.0
    reach, deviation = _conditional(prior, i, hidden)
    value = _gaussian_term(prior, i, reach, deviation)
    if law == "truncated":
        others = [j for j in exposed if j != i]
        value -= _log_stay(prior, others, [i, *hidden]) + within
    return max(value + LEAK_MARGIN * (1 + value), 0.0)


def _log_within(prior: TruncatedGaussian, i: int) -> float:
    """A lower bound on log G(u): everything within ±γ, given entry i anywhere within ±γ."""
    return _log_stay(prior, [j for j in range(prior.entries) if j != i], [i])


def _candidates(prior: TruncatedGaussian, i: int, b: int) -> set[tuple[int, ...]]:
    """The window around i whose rest leaks least, the nearest and the most correlated entries."""
    n = prior.entries
    windows = [tuple(range(a, a + b)) for a in range(max(0, i - b + 1), min(i, n - b) + 1)]
    best = min(windows, key=lambda window: _split_leak(prior, i, window, "printed", 0.0))
    near = sorted(range(n), key=lambda j: (abs(j - i), j))
    scale = np.sqrt(np.diag(prior.covariance))
    correlation = np.abs(prior.covariance[i]) / (scale * scale[i])
    correlation[i] = np.inf
    strongest = tuple(sorted(int(j) for j in np.argsort(-correlation, kind="stable")[:b]))
    return {best, tuple(sorted(near[:b])), strongest}


def _conditional(prior: TruncatedGaussian, i: int, given: Sequence[int]) -> tuple[float, float]:
    """How far the mean of entry i can be pushed by ``given`` within ±γ, and its deviation.

    Both are widened by a bound on the error of the linear solve: the residual over the least
    eigenvalue.
    """
    sigma = prior.covariance
    block, cross = sigma[np.ix_(given, given)], sigma[list(given), i]
    weights = np.linalg.solve(block, cross)
    least = float(np.linalg.eigvalsh(block)[0])
    scale = float(np.abs(block).sum(axis=1).max())
    floor = least - len(given) * 2.0**-50 * scale
    if floor <= 0:
        return float("inf"), 0.0
    residual = np.abs(block @ weights - cross)
    rounding = len(given) * 2.0**-52 * (np.abs(block) @ np.abs(weights) + np.abs(cross))
    error = float(np.linalg.norm(residual + rounding)) / floor  # in the 2-norm
    reach = prior.bound * (float(np.abs(weights).sum()) + np.sqrt(len(given)) * error)
    variance = float(sigma[i, i] - weights @ cross) - error * float(np.linalg.norm(cross))
    variance -= 2.0**-50 * len(given) * float(sigma[i, i])
    return float(reach), float(np.sqrt(max(variance, 0.0)))


def _gaussian_term(prior: TruncatedGaussian, i: int, mean: float, deviation: float) -> float:
    """The worst log-ratio of two windows when x_i is N(mean, deviation²) against N(0, Σ_ii).

    Each window brings the error of its logarithm along; all of them are added.
    """
    gamma, delta = prior.bound, prior.width
    whole = float(np.sqrt(prior.covariance[i, i]))
    if deviation == 0 or not np.isfinite(mean):
        return float("inf")
    if deviation >= whole:
        return 0.0 if mean == 0 else _edge_term(prior, mean, deviation, whole)
    top = mean / (1 - (deviation / whole) ** 2)
    left = normal_window(-gamma, delta, mean, deviation).over(
        normal_window(-gamma, delta, 0.0, whole)
    )
    right = normal_window(gamma - delta, delta, mean, deviation)
    right = right.over(normal_window(gamma - delta, delta, 0.0, whole))
    if top >= gamma:
        return _finite(right.log + right.error - left.log + left.error)
    high = float(np.log(whole / deviation))
    high += half_square(top / whole) - half_square((top - mean) / deviation)
    return _finite(high - min(left.log - left.error, right.log - right.error))


def _edge_term(prior: TruncatedGaussian, mean: float, deviation: float, whole: float) -> float:
    """The same when rounding leaves no reduction of variance: the ratio rises throughout."""
    gamma, delta = prior.bound, prior.width
    ratio = normal_window(gamma - delta, delta, mean, deviation)
    ratio = ratio.over(normal_window(-gamma, delta, mean, deviation))
    back = normal_window(-gamma, delta, 0.0, whole).over(
        normal_window(gamma - delta, delta, 0.0, whole)
    )
    return _finite(ratio.log + ratio.error + back.log + back.error)


def _finite(value: float) -> float:
    """The value; infinite if it is not a number (a window beyond the range of float64)."""
    return float(value) if value < np.inf else float("inf")


def _log_stay(prior: TruncatedGaussian, members: Sequence[int], given: Sequence[int]) -> float:
    """A lower bound on log P(all ``members`` within ±γ), whatever the ``given`` are within ±γ."""
    if not members:
        return 0.0
    outside = [-np.expm1(_stay(prior, j, given)) for j in members]
    union = 1 - float(np.sum(outside)) * (1 + 2.0**-40) - 2.0**-40
    best = float(np.log(union)) if union > 0 else -np.inf
    if best > -0.5:
        return best
    target = given[0]
    for order in (
        sorted(members, key=lambda j: abs(j - target)),
        sorted(members, key=lambda j: -abs(j - target)),
    ):
        total, seen = 0.0, list(given)
        for j in order:
            total += _stay(prior, j, seen)
            seen.append(j)
        best = max(best, total)
    return best


def _stay(prior: TruncatedGaussian, j: int, given: Sequence[int]) -> float:
    """A lower bound on log P(|x_j| ≤ γ | given), over all values of ``given`` within ±γ."""
    reach, deviation = _conditional(prior, j, given)
    if not np.isfinite(reach) or deviation == 0:
        return -np.inf
    # a smaller deviation is not always worse inside the box: the whole range of rounding is
    # covered by taking the smaller of the probabilities at both ends of a relative 1e-9
    logs = [
        mass.log - mass.error
        for s in (1.0, 1 + 1e-9)
        for mass in (normal_window(-prior.bound, 2 * prior.bound, reach, deviation * s),)
    ]
    return min(logs) - 2.0**-40


def gaussian_process_curve(prior: Gaussian, secrets: Secrets) -> InfluenceCurve:
    """The curve of a Gaussian process that is not truncated: all or nothing.

    Given X_i = x against y, entries that vary with X_i have Gaussian densities with different
    means, whose ratio has no bound. So whatever is not exposed must be independent of X_i: the
    curve is infinite until all entries with K_ji ≠ 0 are exposed, and 0 from there on. What makes
    Gaussian processes translate well is the distance between values, which a curve does not see:
    see `takifugu.translation.certify.gaussian`.
    """
    kernel, size = prior.kernel, prior.length
    last = len(kernel.rows) if isinstance(kernel, Covariance) else size
    named = None
    if secrets.entries is not None:
        named = [entry_time(entry, last) for entry in secrets.entries]
    if isinstance(kernel, Covariance):
        entries = list(range(len(kernel.rows))) if named is None else named
        together = (kernel.rows[entries] != 0).sum(axis=1)
        exposed = distinct([*together, len(kernel.rows)])
        leak = np.where(exposed >= together[:, None], 0.0, np.inf)
        pairs = tuple(f"{i}=x / {i}=y" for i in entries)
        return InfluenceCurve(exposed, leak, size, pairs)
    alone = kernel.signs(np.array([1]))[0] == 0
    if alone or size is not None:
        count = 1 if alone else size
        return InfluenceCurve(np.array([count]), np.zeros((1, 1)), size, ("x / y",))
    return InfluenceCurve(np.array([1]), np.full((1, 1), np.inf), None, ("x / y",))
