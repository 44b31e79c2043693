"""The transport bound of each family of priors, or why there is none.

What computes it is imported by the family that needs it.
"""

import warnings
from collections.abc import Callable, Mapping

import numpy as np

from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.numeric import LEAST, Floats
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secret_distance import check_distance
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.translation.bounds import Bound, LooserTranslation, TransportBound, Witness, worst
from takifugu.translation.chain.transport_steps import MOST_STATES
from takifugu.translation.entry_costs import EntryCosts

QUICK_HOURS = 30_000  # hours × entries × states² up to which every first hour is translated


def transport_bound(
    prior: Prior, secrets: Secrets, *, tolerance: float = 1e-3
) -> TransportBound | None:
    """The transport bound of ``prior``; None, with a warning that says why, if there is none.

    A truncated Gaussian has none: no transport bound for its regions is proven here.
    """
    check_distance(prior, secrets)
    match prior:
        case MarkovChain() if not prior.one_law:
            from takifugu.translation.chain.adversary_transport import AdversaryTransport

            return _if_it_fits(
                prior, lambda: AdversaryTransport(prior, secrets, tolerance=tolerance)
            )
        case MarkovChain() if len(prior.states) == 2:
            from takifugu.translation.chain.binary_transport import BinaryTransport

            return _if_it_fits(prior, lambda: BinaryTransport(prior, secrets))
        case MarkovChain():
            from takifugu.translation.chain.chain_transport import ChainTransport

            return _if_it_fits(prior, lambda: ChainTransport(prior, secrets, tolerance=tolerance))
        case IntervalMarkovChain():
            from takifugu.translation.chain.interval_transport import IntervalTransport

            return _if_it_fits(
                prior, lambda: IntervalTransport(prior, secrets, tolerance=tolerance)
            )
        case HigherOrderChain() if prior.start == "unknown":
            from takifugu.translation.chain.unknown_window import UnknownWindowTransport

            return _if_it_fits(
                prior, lambda: UnknownWindowTransport(prior, secrets, tolerance=tolerance)
            )
        case HigherOrderChain():
            from takifugu.translation.chain.higher_order_transport import HigherOrderTransport

            return _if_it_fits(
                prior, lambda: HigherOrderTransport(prior, secrets, tolerance=tolerance)
            )
        case TimeOfDayChain() if prior.unknown_start:
            return _if_it_fits(prior, lambda: _from_any_hour(prior, secrets, tolerance))
        case TimeOfDayChain():
            from takifugu.translation.chain.time_of_day_transport import TimeOfDayTransport

            return _if_it_fits(
                prior, lambda: TimeOfDayTransport(prior, secrets, tolerance=tolerance)
            )
        case Explicit():
            from takifugu.translation.explicit_transport import ExplicitTransport

            return ExplicitTransport(prior, secrets)
        case IndependentEntries():
            from takifugu.translation.independent_transport import IndependentTransport

            return IndependentTransport(prior, secrets)
        case Product():
            people = _all_bounds(prior.parts, secrets, tolerance)
            return None if people is None else IndependentPeople(people)
        case BayesianNetwork() | MarkovRandomField():
            from takifugu.translation.network.network_transport import NetworkTransport

            try:
                return NetworkTransport(prior, secrets)
            except TooLarge as error:
                _warn(str(error))
                return None
        case Gaussian():
            from takifugu.translation.gaussian.gaussian_transport import GaussianTransport

            return GaussianTransport(prior, secrets)
        case TruncatedGaussian():
            return None
        case _:
            raise UnsoundRequest(
                f"a {type(prior).__name__} is not a prior that can be translated", field="prior"
            )


def transport_bound_of_any(
    priors: Mapping[str, Prior], secrets: Secrets, *, tolerance: float = 1e-3
) -> TransportBound | None:
    """The transport bound of a set of priors over the same entries: the largest of all."""
    parts = _all_bounds(priors, secrets, tolerance)
    return None if parts is None else AlternativePriors(parts)


def _all_bounds(
    priors: Mapping[str, Prior], secrets: Secrets, tolerance: float
) -> dict[str, TransportBound] | None:
    """The bound of each prior; None if some prior has none."""
    bounds = {name: transport_bound(p, secrets, tolerance=tolerance) for name, p in priors.items()}
    found = {name: bound for name, bound in bounds.items() if bound is not None}
    return found if len(found) == len(bounds) else None


def _if_it_fits(prior: Prior, transport: Callable[[], TransportBound]) -> TransportBound | None:
    """The transport bound of a sequence, unless it has too many states or no proof applies."""
    if prior.breadth > MOST_STATES:
        _warn(f"{prior.breadth} states are more than the {MOST_STATES} that a step can join")
        return None
    try:
        return transport()
    except (InvalidPrior, TooLarge, UnsoundRequest) as error:
        _warn(str(error))
        return None


def _from_any_hour(prior: TimeOfDayChain, secrets: Secrets, tolerance: float) -> TransportBound:
    """A chain by hour whose first entry may have any law, at whichever hour it is.

    The largest of the chains that begin at each hour; where these take long, the bound of all
    chains whose steps lie between the least and the largest probabilities of any hour.
    """
    from takifugu.translation.chain.adversary_transport import AdversaryTransport
    from takifugu.translation.chain.interval_transport import IntervalTransport

    if prior.hours * prior.entries * len(prior.states) ** 2 <= QUICK_HOURS:
        hours = {f"from hour {hour}": prior.beginning(hour) for hour in range(prior.hours)}
        return AlternativePriors(
            {
                name: AdversaryTransport(chain, secrets, tolerance=tolerance)
                for name, chain in hours.items()
            }
        )
    chain = MarkovChain(prior.transition, prior.states, start="unknown")
    off = 2 * chain.row_error  # the exactly normalised rows are inside, rounding and all
    kernels = np.array([chain.kernel(hour) for hour in range(prior.hours)])
    low, high = kernels.min(axis=0) * (1 - off), kernels.max(axis=0) * (1 + off)
    widest = IntervalMarkovChain(
        np.where(low < LEAST, 0.0, low), np.minimum(high, 1.0), prior.states, "any", prior.entries
    )
    return IntervalTransport(widest, secrets, tolerance=tolerance)


def _warn(why: str) -> None:
    warnings.warn(
        f"translated by the influence curve, which is looser: {why}",
        LooserTranslation,
        stacklevel=4,
    )


class AlternativePriors(TransportBound):
    """Several priors over the same entries: the largest loss under any of them."""

    def __init__(self, parts: Mapping[str, TransportBound]) -> None:
        self._parts = parts

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""
        sizes = [part.size for part in self._parts.values()]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def uniform(self, epsilon: float) -> Bound:
        """The largest loss of any part if every entry is charged ``epsilon``."""
        found = worst({name: part.uniform(epsilon) for name, part in self._parts.items()})
        table, solved = found.by_values, found.solved
        return Bound(found.value, found.binding, by_values=table, solved=solved)

    def profile(self, epsilon: Floats) -> Bound:
        """The largest loss of any part if entry i is charged ``epsilon[i]``."""
        bounds = {name: part.profile(epsilon) for name, part in self._parts.items()}
        found = worst(bounds)
        lists = [bound.by_entry for bound in bounds.values() if bound.by_entry is not None]
        by_entry = np.max(lists, axis=0) if len(lists) == len(bounds) else None
        return Bound(found.value, found.binding, by_entry, found.by_values)

    def largest(self, target: float) -> float:
        """The largest constant ε that every part allows."""
        return min(part.largest(target) for part in self._parts.values())

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """The witness of the part that binds."""
        name = next(iter(self._parts))
        if bound.binding is not None and bound.binding.prior in self._parts:
            name = bound.binding.prior or name
        return self._parts[name].witness(epsilon, bound).named(name)

    def valued(self, costs: EntryCosts) -> Bound:
        """The largest loss of any part; each finds the values of its own entries by name."""
        bounds = {name: part.valued(costs) for name, part in self._parts.items()}
        found = worst(bounds)
        lists = [bound.by_entry for bound in bounds.values() if bound.by_entry is not None]
        together = len(lists) == len(bounds) and not costs.uniform
        by_entry = np.max(lists, axis=0) if together else None
        return Bound(found.value, found.binding, by_entry, found.by_values)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The witness of the part that binds."""
        name = self._binding_part(bound)
        return self._parts[name].valued_witness(self._part_of(costs, name), bound).named(name)

    def _binding_part(self, bound: Bound) -> str:
        if bound.binding is not None and bound.binding.prior in self._parts:
            return bound.binding.prior or next(iter(self._parts))
        return next(iter(self._parts))

    def _part_of(self, costs: EntryCosts, name: str) -> EntryCosts:  # noqa: ARG002
        return costs


class IndependentPeople(AlternativePriors):
    """Independent people, whose entries follow one another: each is revealed by their own only."""

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""
        sizes = [part.size for part in self._parts.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def profile(self, epsilon: Floats) -> Bound:
        """The largest loss when the entries, person by person, are charged ``epsilon``."""
        return worst(
            {name: self._parts[name].profile(part) for name, part in self._cut(epsilon).items()}
        )

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """The witness of the person that binds."""
        if isinstance(epsilon, float):
            return super().witness(epsilon, bound)
        name = next(iter(self._parts))
        if bound.binding is not None and bound.binding.prior in self._parts:
            name = bound.binding.prior or name
        return self._parts[name].witness(self._cut(epsilon)[name], bound).named(name)

    def valued(self, costs: EntryCosts) -> Bound:
        """The largest loss of any person, each by the costs of their own entries."""
        return worst(
            {name: part.valued(self._part_of(costs, name)) for name, part in self._parts.items()}
        )

    def _part_of(self, costs: EntryCosts, name: str) -> EntryCosts:
        """The costs of one person's entries."""
        if costs.size is None:
            return costs
        if self.size is None or costs.size != self.size:
            raise UnsoundRequest(
                f"the profile has {costs.size} costs; needed are {self.size},"
                " one for each entry, person by person",
                field="profile",
                given=costs.size,
                needed=self.size,
            )
        start = 0
        for person, part in self._parts.items():
            if person == name:
                return costs.part(start, start + (part.size or 0))
            start += part.size or 0
        raise KeyError(name)

    def _cut(self, epsilon: Floats) -> dict[str, Floats]:
        if self.size is None or len(epsilon) != self.size:
            raise UnsoundRequest(
                f"the profile has {len(epsilon)} numbers; needed are {self.size},"
                " one for each entry, person by person",
                field="profile",
                given=len(epsilon),
                needed=self.size,
            )
        ends = np.cumsum([part.size for part in self._parts.values()])
        return dict(zip(self._parts, np.split(epsilon, ends[:-1]), strict=True))
