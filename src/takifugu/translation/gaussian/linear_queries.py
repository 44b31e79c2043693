r"""Linear queries on a Gaussian process, with Laplace or Gaussian noise, composed entry by entry.

The bounds, and why they hold, are in `takifugu.translation.certify.gaussian`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.secret_distance import secret_distance
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import EXACT, Binding
from takifugu.translation.certify.closed import (
    gdp_delta,
    gdp_epsilon,
    gdp_rho,
    mixed_epsilon,
)
from takifugu.translation.certify.gaussian import QueryShifts
from takifugu.translation.gaussian.gaussian_transport import distance_binding, secret_entries

SMALLEST_SCALE = Fraction(1, 2**1074)  # the least float above 0
MAX_WEIGHTS = 2**14  # entries that a query may use


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
        return gdp_rho(self.mu)

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
        shifts = self._shifts(queries)
        most, least = shifts.laplace(dict(enumerate(scales)))
        worst = int(np.argmax(most))
        binding = distance_binding(secret_distance(self.secrets), shifts.entry(worst))
        return LinearLoss(float(most[worst]), float(least.max()), binding, frozen(most))

    def gaussian(self, releases: Releases) -> GaussianNoiseLoss:
        """The loss of queries, each with Gaussian noise of its deviation, adaptively or not."""
        queries, deviations = _checked(releases)
        shifts = self._shifts(queries)
        mu = shifts.gaussian(dict(enumerate(deviations)))
        worst = int(np.argmax(mu))
        lower = shifts.joint(worst, [float(sigma) for sigma in deviations])
        binding = distance_binding(secret_distance(self.secrets), shifts.entry(worst))
        return GaussianNoiseLoss(float(mu[worst]), lower, binding, frozen(mu))

    def mixed(self, laplace: Releases, gaussian: Releases, *, delta: float) -> float:
        """An ε, rounded up, at which both lists together are (ε, ``delta``)-Pufferfish private.

        For each entry the ε of the Laplace noise and that of the Gaussian noise at δ add up.
        """
        pure, smooth = list(laplace), list(gaussian)
        if not pure or not smooth:
            return self.gaussian(smooth).epsilon(delta) if smooth else self.laplace(pure).pufferfish
        queries, scales = _checked([*pure, *smooth])
        shifts, numbered = self._shifts(queries), list(enumerate(scales))
        epsilon, _ = shifts.laplace(dict(numbered[: len(pure)]))
        return mixed_epsilon(epsilon, shifts.gaussian(dict(numbered[len(pure) :])), delta)

    def _shifts(self, queries: Sequence[LinearQuery]) -> QueryShifts:
        secret = secret_entries(self.prior, self.secrets)
        return QueryShifts(self.prior, secret_distance(self.secrets), secret, queries)


def _checked(releases: Releases) -> tuple[list[LinearQuery], list[Fraction]]:
    queries, scales = [], []
    for query, scale in releases:
        exact = exactly(scale, "scale")
        if not isinstance(query, LinearQuery) or exact < SMALLEST_SCALE:
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
