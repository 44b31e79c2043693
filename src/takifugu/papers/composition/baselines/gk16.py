r"""Inferential privacy by influences (Ghosh and Kleinberg, ITCS 2017), "GK16". Times count from 0.

**The bound.** The influence of entry i on entry j is how much the law of :math:`X_j`, given all
other entries, changes when :math:`x_i` alone is changed:

.. math:: e^{2γ_{ij}} = \max \frac{P(X_j = s \mid x_{-j})}{P(X_j = s \mid x'_{-j})}
          \quad\text{over s and all } x, x' \text{ that differ at i only}.

If the matrix :math:`Γ` has a spectral norm below 1 and :math:`Φ = (I - Γ)^{-1}`, then a per-entry
ε-DP mechanism has an inferential (Pufferfish) loss of at most :math:`2ε \sum_j φ_{ij}` about entry
i. **It applies** if that norm is below 1 and every combination of values that entries can have one
by one has positive probability. Else it says nothing: a loss is infinite and an allowance 0; there
is no silent return to group DP.

**Proof, and a sharper bound.** Fix an output; let :math:`f(x) = P(ω|x)`, and
:math:`δ_j(f)` the largest :math:`|\log f(x) - \log f(x')|` over x, x' that differ at j only, so
:math:`δ_j(f) \le ε`. Let :math:`K_j f(x) = E[f(X) | X_{-j} = x_{-j}]`. It does not depend on
:math:`x_j`. For x, x' that differ at i only, with p and p' the laws of :math:`X_j` given them and
:math:`h(s) = f(x', x_j = s)`,

.. math:: \log\frac{K_j f(x)}{K_j f(x')} \le δ_i(f) + \log\frac{\sum_s p(s) h(s)}{\sum_s p'(s) h(s)}
          \le δ_i(f) + c_{ij}\, δ_j(f).

The last step: for a given :math:`e^δ = \max h/\min h` the ratio is largest where h has two values,
and is :math:`(1 + (e^δ-1) q)/(1 + (e^δ-1) d)` with :math:`q = p(A), d = p'(A)`. Its logarithm is 0
at δ = 0, and its slope is :math:`σ(δ + \mathrm{logit}\, q) - σ(δ + \mathrm{logit}\, d)` with the
logistic σ, at most :math:`\tanh((\mathrm{logit}\, q - \mathrm{logit}\, d)/4)`. Now
:math:`q/d \le \max p/p'` and :math:`(1-d)/(1-q) \le \max p'/p`, so

.. math:: c_{ij} = \tanh\Big(\frac14 \max \log\frac{p(s)\,p'(t)}{p'(s)\,p(t)}\Big)
          \le \tanh γ_{ij} \le γ_{ij}

(Birkhoff's contraction coefficient). So :math:`K_j` moves the share :math:`c_{ij}` of
:math:`δ_j` to every i and sets :math:`δ_j` to 0. Do this in turn for all j except one entry i,
again and again: if the part of C without i has a spectral radius below 1, all :math:`δ_j` with
:math:`j \ne i` vanish (Stein and Rosenberg), what is left is a function of :math:`x_i` alone, and
as no step changed :math:`E[f | X_i]` it is that. What has arrived at i is the mass of all first
passages to i,

.. math:: \log\frac{P(ω|X_i = a)}{P(ω|X_i = b)} \le
          ε\,\big(1 + C_{i,-i} (I - C_{-i,-i})^{-1} 1\big) \le ε \sum_j φ_{ij}.

The middle is the bound with ``sharpened=True``; the published one is twice the right side, with a
larger matrix and a norm that is never below the radius.

**Chains.** Only neighbours have influence. Given both, :math:`P(X_j = s) \propto P_{ls} P_{sr}`,
so :math:`2γ` from the left is :math:`\max_{l,l'} [\max_s \log P_{ls}/P_{l's} + \max_r \log
P^2_{l'r}/P^2_{lr}]`, and likewise from the right; at the first entry its own law takes the place
of :math:`P_{l·}`. In c all that cancels: :math:`c = \tanh(Δ/4)` with Δ the projective diameter
of P. Γ has three diagonals, and elimination from both ends solves for Φ, each pivot rounded down
and each sum up; pivots above 0 prove that the series converges.
"""

from itertools import pairwise
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu._core.rounding import UNIT, down, gamma, up
from takifugu.influence.rounded_ratios import LogProduct, largest_ratios, products, turned
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    initial_law,
    square,
    stationary,
    stationary_terms,
)

LISTED = 400  # entries up to which the spectral norm is computed; beyond it is bounded
Diagonals = tuple[Floats, Floats]  # [k]: influence of k on k + 1, and of k + 1 on k


def gk16_matrix(
    transition: ArrayLike, length: int, *, start: ArrayLike | None = None, sharpened: bool = False
) -> Floats:
    """``[i, j]``: the influence γ of entry i on entry j (``sharpened``: c); upper bounds.

    Infinite between entries that rule out values of one another, where nothing is claimed.
    Without ``start`` the chain is stationary.
    """
    ahead, back = _influences(transition, length, start, sharpened)
    return frozen(np.diag(ahead, 1) + np.diag(back, -1))


def gk16_norm(transition: ArrayLike, length: int, *, start: ArrayLike | None = None) -> float:
    """The spectral norm of the published matrix Γ, rounded up; a norm of 1 or more: N/A.

    Beyond 400 entries √(‖Γ‖₁ ‖Γ‖∞), which long chains come close to.
    """
    return _norm(_influences(transition, length, start, sharpened=False))


def gk16_growth(
    transition: ArrayLike, length: int, *, start: ArrayLike | None = None, sharpened: bool = False
) -> Floats:
    """``[entry]``: the Pufferfish loss of an ε-DP mechanism as a multiple of ε; an upper bound.

    Infinite where the theorem does not apply.
    """
    diagonals = _influences(transition, length, start, sharpened)
    if not sharpened and not _norm(diagonals) < 1:
        return frozen(np.full(length, inf))
    arrived, loops, last = _eliminate(diagonals)
    if sharpened:
        return frozen(up(1 + arrived))
    if not last > 0:  # not reached while the norm is below 1, but for rounding
        return frozen(np.full(length, inf))
    pivot = down(1 - loops)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = up(2 * up(up(1 + arrived) / pivot))
    return frozen(np.where(pivot > 0, growth, inf))


def gk16_to_dp(
    transition: ArrayLike,
    length: int,
    epsilon: float,
    *,
    start: ArrayLike | None = None,
    sharpened: bool = False,
) -> float:
    """The largest per-entry loss whose Pufferfish loss is at most ``epsilon``, rounded down.

    0 where the theorem does not apply: it then proves nothing for any loss above 0.

    >>> round(gk16_to_dp([[0.6, 0.4], [0.4, 0.6]], 100, 1.0), 4)
    0.2572
    >>> gk16_to_dp([[0.9, 0.1], [0.1, 0.9]], 100, 1.0)
    0.0
    """
    check_request(length, epsilon)
    growth = float(gk16_growth(transition, length, start=start, sharpened=sharpened).max())
    return 0.0 if growth == inf else max(float(down(down(epsilon) / growth)), 0.0)


def _influences(
    transition: ArrayLike, length: int, start: ArrayLike | None, sharpened: bool
) -> Diagonals:
    check_request(length, 1.0)
    given = square(transition)
    P = given / given.sum(axis=1, keepdims=True)  # rows stand for themselves over their exact sums
    if start is None:
        law, error = stationary(P), gamma(stationary_terms(len(P)))
    else:
        law, error = initial_law(start, P), 0.0
    possible = [np.asarray(law > 0)]
    while len(possible) < length:
        possible.append(np.asarray((P[possible[-1]] > 0).any(axis=0)))
    ahead, back = np.zeros(length - 1), np.zeros(length - 1)
    known: dict[tuple[bytes, ...], tuple[float, float]] = {}
    for k in range(length - 1):
        near = tuple(possible[max(k - 1, 0) : k + 3])
        key = (bytes([min(k, 1), min(length - 2 - k, 1)]), *(mask.tobytes() for mask in near))
        if key not in known:
            known[key] = (
                _contraction(P, possible[k], possible[k + 1])
                if sharpened
                else _ratios(P, possible, k, law, error)
            )
        ahead[k], back[k] = known[key]
    return ahead, back


def _contraction(P: Floats, now: Booleans, after: Booleans) -> tuple[float, float]:
    """tanh(Δ/4) for the step between two entries, the same in both directions; rounded up."""
    if not (P[np.ix_(now, after)] > 0).all():
        return inf, inf  # not all combinations are possible, and the proof needs them
    there = _table(_part(_powers(P)[0], now, after))
    c = float(up(np.tanh(float(up((there + there.T).max())) / 4)))
    return c, c


def _ratios(
    P: Floats, possible: list[Booleans], k: int, law: Floats, error: float
) -> tuple[float, float]:
    """γ between entries k and k + 1, ahead and back; rounded up."""
    near = possible[max(k - 1, 0) : k + 3]
    if not all((P[np.ix_(now, after)] > 0).all() for now, after in pairwise(near)):
        return inf, inf
    one, two = _powers(P)
    here = _part(one, possible[k], possible[k + 1])
    ahead, back = _table(here), _table(turned(here))
    if k + 2 < len(possible):
        ahead = ahead + _table(_part(two, possible[k], possible[k + 2])).T
    if k > 0:
        back = back + _table(turned(_part(two, possible[k - 1], possible[k + 1]))).T
    else:
        _, second = products(law[None], error, (P,), gamma(len(P)))
        back = back + _table(turned(_part(second, np.array([True]), possible[1]))).T
    return float(up(ahead.max() / 2)), float(up(back.max() / 2))


def _powers(P: Floats) -> tuple[LogProduct, LogProduct]:
    error = gamma(len(P))  # that of dividing by the sums
    one, two = products(P, error, (P,), error)
    return one, two


def _part(product: LogProduct, rows: Booleans, columns: Booleans) -> LogProduct:
    return LogProduct(product.log[np.ix_(rows, columns)], product.error)


def _table(product: LogProduct) -> Floats:
    """``[x, y]``: the largest log-ratio of rows x and y, an upper bound."""
    rows = len(product.log)
    x, y = (grid.ravel() for grid in np.indices((rows, rows)))
    return largest_ratios(product, x, y).reshape(rows, rows)


def _norm(diagonals: Diagonals) -> float:
    """The largest singular value of the matrix, or a bound on it; rounded up."""
    ahead, back = diagonals
    if not len(ahead):
        return 0.0
    if not (np.isfinite(ahead).all() and np.isfinite(back).all()):
        return inf
    rows = np.append(ahead, 0.0) + np.append(0.0, back)
    columns = np.append(0.0, ahead) + np.append(back, 0.0)
    bound = float(up(sqrt(float(rows.max()) * float(columns.max()))))
    if len(rows) > LISTED:
        return bound
    matrix = np.diag(ahead, 1) + np.diag(back, -1)
    computed = float(np.linalg.norm(matrix, 2))
    return min(bound, computed * (1 + 64 * len(rows) * UNIT))


def _eliminate(diagonals: Diagonals) -> tuple[Floats, Floats, float]:
    """For every entry what arrives there from both sides, and returns; and the last pivot.

    What arrives is infinite beyond a pivot that is not above 0.
    """
    ahead, back = diagonals
    left, left_loops, last = _sweep(back, ahead)
    right, right_loops, _ = _sweep(ahead[::-1], back[::-1])
    return up(left + right[::-1]), up(left_loops + right_loops[::-1]), last


def _sweep(inward: Floats, outward: Floats) -> tuple[Floats, Floats, float]:
    """From the first entry on: ``inward[k]`` is the influence of k + 1 on k, by which it gains."""
    arrived, loops = np.zeros(len(inward) + 1), np.zeros(len(inward) + 1)
    mass, pivot = 1.0, 1.0
    for k, (gain, other) in enumerate(zip(inward.tolist(), outward.tolist(), strict=True), 1):
        if not pivot > 0:
            arrived[k:] = loops[k:] = inf
            return arrived, loops, pivot
        arrived[k] = up(up(gain * mass) / pivot)
        loops[k] = up(up(gain * other) / pivot)
        mass, pivot = float(up(1 + arrived[k])), float(down(1 - loops[k]))
    return arrived, loops, pivot
