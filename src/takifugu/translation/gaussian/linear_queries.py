r"""Linear queries on a Gaussian process, with Laplace or Gaussian noise, composed entry by entry.

Given X_i = x against y a declared query :math:`a^T X` is shifted by exactly
:math:`Δ_i = \sum_j a_j (K_{ji}/K_{ii})(x − y)`, with the signs of K: neighbours that vary against
each other cancel. So Laplace noise of scale b loses at most |Δ_i|/b, on every transcript, and the
losses of several queries add up *for each entry i*, after which the largest counts; also if a query
depends on earlier results. That is attained: with all outputs far out on the side of Δ_i the
likelihood is :math:`\exp \sum_q \pm a_q^T X / b_q`, whose expectations under the two laws have
exactly that ratio. A *clamped* query knows no signs: it is shifted by at most
:math:`\sum_j |a_j| \min(r|K_{ji}|/K_{ii}, \mathrm{width})`.

Gaussian noise of deviation σ: the coupled outputs are N(·, σ²) with means at most |Δ_i| apart, so
the release is μ-GDP with μ = |Δ_i|/σ (Dong, Roth & Su, 2022) and μ²/2-zCDP; a mixture over the
coupling is no easier to tell apart (trade-off functions are convex, Rényi divergences
quasi-convex). Squares add up for each entry, also adaptively.

The prior's own variance V hides more in *one* release, |Δ_i|/√(V + σ²), but must never be added up:
it is the same variance that every release sees. X₁ + Z and Z with Var Z = 100 and σ = 0.1 lose 0.1
and 0 alone, and 7.07 together. For a fixed list of releases the joint law is Gaussian, and its own
μ is a lower bound (`GaussianNoiseLoss.lower`); it is reported, not relied on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from takifugu._exact import Number, exactly
from takifugu._rounding import UNIT, float_down, float_up
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, Integers, frozen
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import TINY, Covariance
from takifugu.priors.secret_distance import secret_distance
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import EXACT, Binding
from takifugu.translation.gaussian.gaussian_noise import gdp_delta, gdp_epsilon
from takifugu.translation.gaussian.secret_entries import distance_binding, secret_entries

MOST_ROWS = 2**14  # entries that are examined one by one
MOST_WEIGHTS = 2**14  # entries that a query may use
ROWS = 256  # of them at a time


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
        kept = tuple(sorted((entry, value) for entry, value in exact.items() if value))
        if not kept or len(kept) > MOST_WEIGHTS:
            raise UnsoundRequest(
                f"a linear query has {len(kept)} weights other than 0; it must have 1 to"
                f" {MOST_WEIGHTS}",
                field="weights",
                given=len(kept),
                needed=MOST_WEIGHTS,
            )
        object.__setattr__(self, "weights", kept)
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


@dataclass(frozen=True, eq=False)
class LinearLoss:
    """The Pufferfish ε of linear queries with Laplace noise.

    Attributes:
        pufferfish: An upper bound.
        lower: A lower bound: these queries leak as much, with outputs far out.
        binding: The entry that loses most.
        by_entry: ``[secret entry]``: an upper bound for each that was examined.
    """

    pufferfish: float
    lower: float
    binding: Binding
    by_entry: Floats

    @property
    def exact(self) -> bool:
        """Whether both bounds agree to a relative 1e-6."""
        return self.pufferfish < np.inf and self.lower >= (1 - EXACT) * self.pufferfish


@dataclass(frozen=True, eq=False)
class GaussianNoiseLoss:
    """The Pufferfish loss of linear queries with Gaussian noise.

    Attributes:
        mu: It is μ-GDP, rounded up.
        lower: The μ of the joint law of this fixed list of releases, prior's variance included;
            0 where it was not computed. Never add it to anything.
        binding: The entry that loses most.
        by_entry: ``[secret entry]``: μ of each that was examined.
    """

    mu: float
    lower: float
    binding: Binding
    by_entry: Floats

    @property
    def rho(self) -> float:
        """It is ρ-zCDP, rounded up: μ²/2. Of further releases on the same entry ρ adds up."""
        return max(self.mu * self.mu / 2 * (1 + 4 * UNIT), TINY) if self.mu > 0 else 0.0

    def epsilon(self, delta: float) -> float:
        """An ε such that it is (ε, δ)-Pufferfish private, rounded up."""
        return gdp_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        """A δ such that it is (ε, δ)-Pufferfish private, rounded up."""
        return gdp_delta(self.mu, epsilon)


Releases = Iterable[tuple[LinearQuery, Number]]


@dataclass(frozen=True)
class LinearReleases:
    """What releases of linear queries reveal of a Gaussian process, together.

    >>> from takifugu.priors import AR1
    >>> process = LinearReleases(Gaussian(AR1(-0.5), 3), Secrets(entries=(0,), within=10))
    >>> total = LinearQuery([1, 1, 1])
    >>> round(process.laplace([(total, 5)]).pufferfish, 5)
    1.5
    >>> round(process.laplace([(LinearQuery([1, 1, 1], bounds=(-100, 100)), 5)]).pufferfish, 5)
    3.5

    Attributes:
        prior: The process.
        secrets: Numbers ``within`` a distance, of all entries or some.
    """

    prior: Gaussian
    secrets: Secrets

    def __post_init__(self) -> None:
        secret_distance(self.secrets)
        secret_entries(self.prior, self.secrets)

    def laplace(self, releases: Releases) -> LinearLoss:
        """The loss of queries, each with Laplace noise of its scale, adaptively chosen or not."""
        queries, scales = _checked(releases)
        shifts = _Shifts(self.prior, self.secrets, queries)
        total, least = np.zeros(shifts.rows), np.zeros(shifts.rows)
        for k, scale in enumerate(scales):
            most, low = shifts.of(k)
            with np.errstate(over="ignore", under="ignore"):
                total = total + np.where(most > 0, np.maximum(most / float_down(scale), TINY), 0.0)
                least = least + low / float_up(scale)
        total = total * (1 + (2 * len(scales) + 4) * UNIT)
        least = least * (1 - (2 * len(scales) + 4) * UNIT)
        worst = int(np.argmax(total))
        lower = float(np.max(np.where(shifts.real, least, 0.0), initial=0.0))
        return LinearLoss(
            float(total[worst]), max(lower, 0.0), shifts.binding(worst), frozen(total)
        )

    def gaussian(self, releases: Releases) -> GaussianNoiseLoss:
        """The loss of queries, each with Gaussian noise of its deviation, adaptively or not."""
        queries, deviations = _checked(releases)
        shifts = _Shifts(self.prior, self.secrets, queries)
        squares = np.zeros(shifts.rows)
        for k, deviation in enumerate(deviations):
            most, _ = shifts.of(k)
            with np.errstate(over="ignore", under="ignore"):
                ratio = most / float_down(deviation)
                squares = squares + np.where(most > 0, np.maximum(ratio * ratio, TINY), 0.0)
        mu = np.sqrt(squares) * (1 + (2 * len(deviations) + 8) * UNIT)
        worst = int(np.argmax(mu))
        lower = shifts.joint(worst, [float(sigma) for sigma in deviations])
        return GaussianNoiseLoss(float(mu[worst]), lower, shifts.binding(worst), frozen(mu))

    def mixed(self, laplace: Releases, gaussian: Releases, *, delta: float) -> float:
        """An ε, rounded up, at which both lists together are (ε, ``delta``)-Pufferfish private.

        For each entry the ε of the Laplace noise and that of the Gaussian noise at δ add up.
        """
        pure, smooth = list(laplace), list(gaussian)
        if not pure or not smooth:
            return self.gaussian(smooth).epsilon(delta) if smooth else self.laplace(pure).pufferfish
        everything, _ = _checked([*pure, *smooth])
        alone = LinearReleases(self.prior, self.secrets)
        epsilon = alone._by_entry(everything, pure)
        mu = alone._by_entry(everything, smooth, squared=True)
        order = np.argsort(-epsilon, kind="stable")
        best, seen = 0.0, -1.0
        for place in order:  # the largest ε first: a smaller μ after it changes nothing
            if mu[place] > seen:
                seen = float(mu[place])
                best = max(
                    best, (float(epsilon[place]) + gdp_epsilon(seen, delta)) * (1 + 4 * UNIT)
                )
        return best

    def _by_entry(
        self, everything: Sequence[LinearQuery], releases: Releases, *, squared: bool = False
    ) -> Floats:
        """``[row]`` of the entries that ``everything`` is about: ε, or μ."""
        shifts = _Shifts(self.prior, self.secrets, everything)
        total = np.zeros(shifts.rows)
        listed = list(releases)
        for query, scale in listed:
            most, _ = shifts.of(everything.index(query))
            with np.errstate(over="ignore", under="ignore"):
                ratio = most / float_down(exactly(scale, "scale"))
                ratio = ratio * ratio if squared else ratio
                total = total + np.where(most > 0, np.maximum(ratio, TINY), 0.0)
        found = np.sqrt(total) if squared else total
        return found * (1 + (2 * len(listed) + 8) * UNIT)


def _checked(releases: Releases) -> tuple[list[LinearQuery], list[Fraction]]:
    queries, scales = [], []
    for query, scale in releases:
        exact = exactly(scale, "scale")
        if not isinstance(query, LinearQuery) or not exact > 0 or float_down(exact) == 0:
            raise UnsoundRequest(
                "a release of a linear query is a `LinearQuery` and the scale of its noise, which"
                " must be above 0",
                field="releases",
            )
        queries.append(query)
        scales.append(exact)
    if not queries:
        raise UnsoundRequest("no linear query was given", field="releases")
    return queries, scales


class _Shifts:
    """How far each query moves if an entry is shifted by the distance, from above and below.

    Every entry is examined, or those in a window around the ones that are used; the rest, where
    all correlations have fallen further, stands in one row for each side.
    """

    def __init__(self, prior: Gaussian, secrets: Secrets, queries: Sequence[LinearQuery]) -> None:
        self._prior, self._queries = prior, queries
        self._exact = secret_distance(secrets)
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
        chosen = secret_entries(prior, secrets)
        if chosen is not None:
            self._chosen_entries, beyond = np.array(chosen, dtype=np.int64), []
        else:
            room = max((MOST_ROWS - (last - first + 1)) // 2, 1)
            end = prior.length if prior.length is not None else last + room + 1
            low, high = max(first - room, 0), min(last + room + 1, end)
            if isinstance(prior.kernel, Covariance):
                low, high = 0, len(prior.kernel.rows)
            self._chosen_entries = np.arange(low, high)
            beyond = [low - 1] if low > 0 else []
            beyond += [high] if prior.length is None or high < prior.length else []
        self.entries = np.concatenate([self._chosen_entries, np.array(beyond, dtype=np.int64)])
        self.real = np.arange(len(self.entries)) < len(self._chosen_entries)

    @property
    def rows(self) -> int:
        return len(self.entries)

    def binding(self, row: int) -> Binding:
        return distance_binding(self._exact, int(self.entries[row]) if self.real[row] else None)

    def of(self, k: int) -> tuple[Floats, Floats]:
        """``[row]``: the most and the least that query k moves."""
        query = self._queries[k]
        weights = np.array([float(weight) for _, weight in query.weights])
        size = np.array([float_up(abs(weight)) for _, weight in query.weights])
        most, least = np.zeros(self.rows), np.zeros(self.rows)
        within = float_up(self._exact)
        for start in range(0, self.rows, ROWS):
            rows = slice(start, start + ROWS)
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
                least[rows] = np.maximum(middle - error, 0) * float_down(self._exact)
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
            for place, weight in query.weights:
                weights[k, used.index(place)] = float(weight)
        scale = np.array(deviations)
        moved = weights @ (cross / whole) * float(self._exact) / scale
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
        pulled = each @ np.abs(cross / whole) * float(self._exact)
        found = float(moved @ solved - units * (sizes @ pulled))
        found = found / float(np.sqrt(variance)) * (1 - 8 * UNIT) if variance > 0 else 0.0
        return found if np.isfinite(found) and found > 0 else 0.0
