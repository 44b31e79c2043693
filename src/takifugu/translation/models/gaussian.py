"""Gaussian processes: the transport bound, mechanisms that leak as much, and linear queries.

What is proven, and why it holds, is in `takifugu.translation.certify.gaussian` and, of linear
queries, in `takifugu.translation.certify.linear`. Here a proof and a witness are chosen, and
queries with Laplace or Gaussian noise are composed entry by entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, frozen
from takifugu.costs.cost import Cost
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian, secret_distance
from takifugu.priors.prior import MAX_LENGTH
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import EXACT, Binding, Bound, TransportBound, Witness
from takifugu.translation.certify.closed import gdp_delta, gdp_epsilon, gdp_rho, mixed_epsilon
from takifugu.translation.certify.gaussian import ClampedSum, Shift, ShiftProblem, lower, upper
from takifugu.translation.certify.linear import LinearQuery, QueryShifts
from takifugu.translation.entry_costs import EntryCosts
from takifugu.visible import four_digits

WITNESS_SIZES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # entries beside the secret's own
WITNESS_WINDOW = 512  # how far from it, at most
MAX_WITNESS_COSTS = 8  # of those that any entry may have lost
SMALLEST_SCALE = Fraction(1, 2**1074)  # the least float above 0


class GaussianTransport(TransportBound):
    """A Gaussian process: every entry's loss is what the shift of its neighbours costs."""

    def __init__(self, prior: Gaussian, secrets: Secrets) -> None:
        self._prior = prior
        self._within = secret_distance(secrets)
        self._secret = secret_entries(prior, secrets)

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""
        return self._prior.length

    def uniform(self, epsilon: float) -> Bound:
        """ε times the number of entries that vary with one of them."""
        return self._bound(EntryCosts((Cost.any(epsilon),)))

    def profile(self, epsilon: Floats) -> Bound:
        """The ε of all entries that vary with one of them."""
        return self._bound(np.asarray(epsilon, dtype=np.float64))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``; 0 if there is none."""
        most = self.uniform(1.0).value
        allowed = 0.0 if not most < np.inf else target / most if most > 0 else float(target)
        while allowed > 0 and self.uniform(allowed).value > target:
            allowed = nextafter(allowed * (1 - 2.0**-51), 0.0)
        return allowed

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, by distance."""
        return self._bound(costs)

    def _bound(self, costs: EntryCosts | Floats) -> Bound:
        problem = ShiftProblem(self._prior, self._within, self._secret, costs)
        proven = [upper(problem, proof) for proof in (Shift(), Shift(smoothed=True))]
        least = min(proven, key=lambda losses: losses.value)
        by_entry = None if least.by_entry is None else frozen(least.by_entry)
        return Bound(least.value, distance_binding(self._within, least.entry), by_entry)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response on whether the secret's own entry is above a threshold."""
        costs = EntryCosts((Cost.any(epsilon),)) if isinstance(epsilon, float) else epsilon
        return self._witness(costs, bound)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """Noise on a clamped sum that leaks nearly as much, where clamping hardly matters."""
        return self._witness(costs, bound)

    def _witness(self, costs: EntryCosts | Floats, bound: Bound) -> Witness:
        problem = ShiftProblem(self._prior, self._within, self._secret, costs)
        named = None if bound.binding is None else bound.binding.entry
        entry = int(named) if isinstance(named, int) else (self._secret or (WITNESS_WINDOW,))[0]
        proposals = proposed_sums(problem, entry)
        leak = max((lower(problem, proposal) for proposal in proposals), default=0.0)
        known = None if named is None and self._prior.length is None else entry
        return Witness(min(leak, bound.value), distance_binding(self._within, known))


def proposed_sums(problem: ShiftProblem, entry: int) -> Iterator[ClampedSum]:
    """Sums around one entry: the steepest and most correlated of its neighbours, ever more."""
    prior, costs = problem.prior, problem.costs
    last = entry + WITNESS_WINDOW if prior.length is None else prior.length - 1
    near = np.arange(max(entry - WITNESS_WINDOW, 0), min(entry + WITNESS_WINDOW, last) + 1)
    others = near[near != entry]
    law = np.concatenate(
        [prior.covariance([entry, *block])[0, 1:] for block in np.array_split(others, 32)]
    )
    alternatives = 1
    if isinstance(costs, EntryCosts) and costs.by_entry is None:
        alternatives = min(len(costs.anywhere), MAX_WITNESS_COSTS)
    for choice in range(alternatives):
        own = problem.slopes(entry, choice)
        steep = np.array([problem.slopes(int(j), choice).steep for j in others])
        order = np.argsort(-np.abs(law) * steep, kind="stable")
        useful = order[(steep[order] > 0) & (law[order] != 0)]
        middles = {Fraction(float(prior.means([entry])[0]))}
        middles |= {(low + high) / 2 for _, low, high in own.terms}
        for middle in sorted(middles):
            for size in WITNESS_SIZES:
                yield ClampedSum(entry, middle, tuple(others[useful[:size]].tolist()), choice)
                if size >= len(useful):
                    break


def secret_entries(prior: Gaussian, secrets: Secrets) -> tuple[int, ...] | None:
    """The entries that are secret, by number; None for all."""
    if secrets.entries is None:
        return None
    known = []
    for entry in secrets.entries:
        inside = isinstance(entry, int) and entry >= 0
        if not inside or int(entry) >= (prior.length or MAX_LENGTH):
            raise UnsoundRequest(
                f"the secrets name the entry {entry!r:.60}, which the prior does not have; its"
                f" entries are 0, 1, … to {'no end' if prior.length is None else prior.length - 1}",
                field="secrets",
                given=entry,
            )
        known.append(int(entry))
    return tuple(dict.fromkeys(known))


def distance_binding(within: Fraction, entry: int | None) -> Binding:
    """Two numbers of an entry that are this far apart."""
    return Binding("x", f"x ± {four_digits(within)}", entry=entry)


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
