r"""What is proven of linear queries on a Gaussian process with Laplace or Gaussian noise, rounded.

Let a Gaussian process have the covariance K. Given X_i = x against y a declared query :math:`a^T X`
is shifted by exactly :math:`Δ_i = \sum_j a_j (K_{ji}/K_{ii})(x − y)`, with the signs of K:
neighbours that vary against each other cancel. So Laplace noise of scale b loses at most |Δ_i|/b,
on every transcript, and the losses of several queries add up *for each entry i*, after which the
largest counts; also if a query depends on earlier results. That is attained: with all outputs far
out on the side of Δ_i the likelihood is :math:`\exp \sum_q \pm a_q^T X / b_q`, whose expectations
under the two laws have exactly that ratio. A *clamped* query knows no signs: it is shifted by at
most :math:`\sum_j |a_j| \min(r|K_{ji}|/K_{ii}, \mathrm{width})`.

Gaussian noise of deviation σ: the coupled outputs are N(·, σ²) with means at most |Δ_i| apart, so
the release is μ-GDP with μ = |Δ_i|/σ (Dong, Roth & Su, 2022) and μ²/2-zCDP; a mixture over the
coupling is no easier to tell apart (trade-off functions are convex, Rényi divergences
quasi-convex). Squares add up for each entry, also adaptively.

The prior's own variance V hides more in *one* release, |Δ_i|/√(V + σ²), but must never be added up:
it is the same variance that every release sees. X₁ + Z and Z with Var Z = 100 and σ = 0.1 lose 0.1
and 0 alone, and 7.07 together. For a fixed list of releases the joint law is Gaussian, and its own
μ is a lower bound (`takifugu.translation.GaussianNoiseLoss.lower`); it is reported, not relied on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, float_down, float_up
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import TINY, Covariance
from takifugu.translation.certify.gaussian import ROW_BLOCK

MAX_WEIGHTS = 2**14  # entries that a query may use
MAX_QUERY_ROWS = 2**14  # entries that are examined one by one


@dataclass(frozen=True)
class LinearQuery:
    """:math:`a^T X`: a weight for each entry that is used; unclamped, unless bounds are given.

    >>> LinearQuery([1, 1, 1]) == LinearQuery({0: 1, 1: 1, 2: 1})
    True

    Attributes:
        weights: Entries with their weights, in order; those of 0 are left out.
        bounds: What each number is clamped to before it is weighed; None if to nothing.
    """

    weights: tuple[tuple[int, Fraction], ...]
    bounds: tuple[Fraction, Fraction] | None = None

    def __init__(
        self,
        weights: Mapping[int, Number] | Sequence[Number],
        bounds: tuple[Number, Number] | None = None,
    ) -> None:
        pairs = weights.items() if isinstance(weights, Mapping) else enumerate(weights)
        exact: dict[int, Fraction] = {}
        for entry, weight in pairs:
            if isinstance(entry, bool) or not isinstance(entry, int) or not 0 <= entry < 2**53:
                raise UnsoundRequest(
                    "a linear query has a weight for something else than an entry 0, 1, 2, …",
                    field="weights",
                    given=entry,
                )
            exact[entry] = exactly(weight, "weights")
        nonzero = tuple(sorted((entry, value) for entry, value in exact.items() if value))
        if not nonzero or len(nonzero) > MAX_WEIGHTS:
            raise UnsoundRequest(
                f"a linear query has {len(nonzero)} weights other than 0; it must have 1 to"
                f" {MAX_WEIGHTS}",
                field="weights",
                given=len(nonzero),
                needed=MAX_WEIGHTS,
            )
        object.__setattr__(self, "weights", nonzero)
        if bounds is not None:
            low, high = (exactly(end, "bounds") for end in bounds)
            if not low < high:
                raise UnsoundRequest("low must be below high", field="bounds")
            bounds = low, high
        object.__setattr__(self, "bounds", bounds)

    @cached_property
    def entries(self) -> Integers:
        """The entries that are used."""
        return np.array([entry for entry, _ in self.weights], dtype=np.int64)


class QueryShifts:
    """How far each query moves if an entry is shifted by the distance, from above and below.

    Every entry is examined, or those in a window around the ones that are used; the rest, where
    all correlations have fallen further, stands in one row for each side.
    """

    def __init__(
        self,
        prior: Gaussian,
        within: Fraction,
        secret: tuple[int, ...] | None,
        queries: Sequence[LinearQuery],
    ) -> None:
        self._prior, self._queries, self._within = prior, queries, within
        used = [int(q.entries[-1]) for q in queries]
        if prior.length is not None and max(used) >= prior.length:
            raise UnsoundRequest(
                f"a linear query has a weight for entry {max(used)}; the prior has"
                f" {prior.length} entries",
                field="weights",
                given=max(used),
                needed=prior.length,
            )
        first, last = min(int(q.entries[0]) for q in queries), max(used)
        if secret is not None:
            examined, beyond = np.array(secret, dtype=np.int64), []
        else:
            room = max((MAX_QUERY_ROWS - (last - first + 1)) // 2, 1)
            end = prior.length if prior.length is not None else last + room + 1
            low, high = max(first - room, 0), min(last + room + 1, end)
            if isinstance(prior.kernel, Covariance):
                low, high = 0, len(prior.kernel.rows)
            examined = np.arange(low, high)
            beyond = [low - 1] if low > 0 else []
            beyond += [high] if prior.length is None or high < prior.length else []
        self.entries = np.concatenate([examined, np.array(beyond, dtype=np.int64)])
        self.real = np.arange(len(self.entries)) < len(examined)

    def laplace(self, scales: Mapping[int, Fraction]) -> tuple[Floats, Floats]:
        """``[row]``: ε of some queries with Laplace noise, from above and from below."""
        most, least = np.zeros(len(self.entries)), np.zeros(len(self.entries))
        for query, scale in scales.items():
            high, low = self.moved(query)
            with np.errstate(over="ignore", under="ignore"):
                most = most + np.where(high > 0, np.maximum(high / float_down(scale), TINY), 0.0)
                least = least + low / float_up(scale)
        units = (2 * len(scales) + 8) * UNIT
        return most * (1 + units), np.where(self.real, np.maximum(least * (1 - units), 0.0), 0.0)

    def gaussian(self, deviations: Mapping[int, Fraction]) -> Floats:
        """``[row]``: μ of some queries with Gaussian noise, rounded up."""
        squares = np.zeros(len(self.entries))
        for query, deviation in deviations.items():
            high, _ = self.moved(query)
            with np.errstate(over="ignore", under="ignore"):
                ratio = high / float_down(deviation)
                squares = squares + np.where(high > 0, np.maximum(ratio * ratio, TINY), 0.0)
        mu: Floats = np.sqrt(squares) * (1 + (2 * len(deviations) + 8) * UNIT)
        return mu

    def entry(self, row: int) -> int | None:
        """Which entry a row is; None if it stands for many."""
        return int(self.entries[row]) if self.real[row] else None

    def moved(self, k: int) -> tuple[Floats, Floats]:
        """``[row]``: the most and the least that query k moves."""
        query = self._queries[k]
        weights = np.array([float(weight) for _, weight in query.weights])
        size = np.array([float_up(abs(weight)) for _, weight in query.weights])
        most, least = np.zeros(len(self.entries)), np.zeros(len(self.entries))
        within = float_up(self._within)
        for start in range(0, len(self.entries), ROW_BLOCK):
            rows = slice(start, start + ROW_BLOCK)
            signed, high, low = self._pulls(self.entries[rows], query.entries)
            units = (len(weights) + 8) * UNIT
            with np.errstate(over="ignore", under="ignore"):
                if query.bounds is not None:
                    width = float_up(query.bounds[1] - query.bounds[0])
                    moved = np.minimum(np.maximum(high * within, TINY * (high > 0)), width)
                    some = 2 * len(weights) * TINY * (high > 0).any(axis=1)  # underflow
                    most[rows] = (moved @ size) * (1 + 2 * units) + some
                    continue
                middle = np.abs(signed @ weights)
                error = (high - low) @ size + 2 * units * (high @ size)
                sums = high @ size * (1 + 2 * units)  # beyond the window signs may differ
                upper = np.where(self.real[rows], np.minimum(middle + error, sums), sums)
                upper = upper + 2 * len(weights) * TINY * (high > 0).any(axis=1)  # underflow
                most[rows] = np.maximum(upper * within * (1 + 4 * UNIT), TINY * (upper > 0))
                least[rows] = np.maximum(middle - error, 0) * float_down(self._within)
        return most, least * (1 - 8 * UNIT)

    def _pulls(self, rows: Integers, columns: Integers) -> tuple[Floats, Floats, Floats]:
        """``[row, column]``: K_ji/K_ii with its sign, and its size from above and below."""
        kernel = self._prior.kernel
        if isinstance(kernel, Covariance):
            part = kernel.rows[np.ix_(rows, columns)] / np.diag(kernel.rows)[rows][:, None]
            size = np.abs(part)
            high = np.where(kernel.rows[np.ix_(rows, columns)] != 0, np.maximum(size, TINY), 0.0)
            return part, high * (1 + 2 * UNIT), np.where(size > TINY, size * (1 - 2 * UNIT), 0.0)
        lags = np.abs(rows[:, None] - columns[None])
        value, _ = kernel.sizes(lags)
        signs = kernel.signs(lags)
        return np.where(lags == 0, 1.0, value) * signs, kernel.most(lags), kernel.least(lags)

    def joint(self, row: int, deviations: Sequence[float]) -> float:
        """μ of the joint law of all outputs about one entry, rounded down; 0 if not computed."""
        if not self.real[row] or any(query.bounds is not None for query in self._queries):
            return 0.0
        used = sorted({int(entry) for query in self._queries for entry in query.entries})
        if len(used) > 512 or len(self._queries) > 512:
            return 0.0
        entry = int(self.entries[row])
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            return self._joint(self._prior.covariance([entry, *used]), used, deviations)

    def _joint(self, law: Floats, used: Sequence[int], deviations: Sequence[float]) -> float:
        """The same from the covariance of the entry and those used; 0 beyond all floats."""
        cross, whole = law[0, 1:], law[0, 0]
        given = law[1:, 1:] - np.outer(cross, cross) / whole
        weights = np.zeros((len(self._queries), len(used)))
        for k, query in enumerate(self._queries):
            for at, weight in query.weights:
                weights[k, used.index(at)] = float(weight)
        scale = np.array(deviations)
        moved = weights @ (cross / whole) * float(self._within) / scale
        spread = weights @ given @ weights.T / np.outer(scale, scale) + np.eye(len(scale))
        if not (np.isfinite(spread).all() and np.isfinite(moved).all()):
            return 0.0
        try:
            solved = np.linalg.solve(spread, moved)
        except np.linalg.LinAlgError:
            return 0.0
        # any direction d gives a lower bound: (d·Δ)/√(dᵀ S d), for the output dᵀ(outputs) alone
        units = 8 * (len(used) + len(scale) + 4) * UNIT
        sizes, each = np.abs(solved), np.abs(weights) / scale[:, None]
        rounding = sizes @ (each @ np.abs(law[1:, 1:]) @ each.T * 2 + np.eye(len(scale))) @ sizes
        variance = float(solved @ spread @ solved + units * rounding)
        pulled = each @ np.abs(cross / whole) * float(self._within)
        mu = float(moved @ solved - units * (sizes @ pulled))
        mu = mu / float(np.sqrt(variance)) * (1 - 8 * UNIT) if variance > 0 else 0.0
        return mu if np.isfinite(mu) and mu > 0 else 0.0
