"""The transport bound of each family of priors, or why there is none.

What computes it is imported by the family that needs it.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from takifugu._core.numeric import LEAST, Floats
from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField, NetworkPrior
from takifugu.priors.prior import Prior, SequencePrior
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.translation.bounds import Bound, LooserTranslation, TransportBound, Witness, worst
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.search.couplings import MAX_STATES

MAX_HOURS_WORK = 30_000  # hours × entries × states² up to which every first hour is translated


def transport_bound(
    prior: Prior, secrets: Secrets, *, tolerance: float = 1e-3
) -> TransportBound | None:
    """The transport bound of ``prior``; None, with a warning that says why, if there is none.

    A truncated Gaussian has none: no transport bound for its regions is proven here.
    """
    prior.check_secrets(secrets)
    if isinstance(prior, TruncatedGaussian):
        return None
    if isinstance(prior, Product):
        people = _all_bounds(prior.parts, secrets, tolerance)
        return None if people is None else IndependentPeople(people)
    many = isinstance(prior, SequencePrior) and prior.breadth > MAX_STATES
    if many and not (isinstance(prior, MarkovChain) and prior.one_law):
        _warn(f"{prior.breadth} states are more than the {MAX_STATES} that a step can join")
        return None
    module, name, options = _solver(prior, tolerance)
    solver = getattr(import_module(f"takifugu.translation.{module}"), name)
    refusals: tuple[type[Exception], ...] = ()
    if isinstance(prior, SequencePrior):
        refusals = (InvalidPrior, TooLarge, UnsoundRequest)
    elif isinstance(prior, NetworkPrior):
        refusals = (TooLarge,)
    try:
        bound: TransportBound = solver(prior, secrets, **options)
    except refusals as error:
        _warn(str(error))
        return None
    return bound


def _solver(prior: Prior, tolerance: float) -> tuple[str, str, dict[str, float]]:
    """The module of a family, what computes its bound there, and with which options."""
    refining = {"tolerance": tolerance}
    match prior:
        case MarkovChain() if prior.one_law and len(prior.states) > MAX_STATES:
            return "models.many_states", "ManyStatesTransport", {}
        case MarkovChain() if not prior.one_law:
            return "models.adversary_transport", "AdversaryTransport", refining
        case MarkovChain() if len(prior.states) == 2:
            return "models.two_state_transport", "BinaryTransport", {}
        case MarkovChain():
            return "models.chain_transport", "ChainTransport", refining
        case IntervalMarkovChain():
            return "models.interval_transport", "IntervalTransport", refining
        case HigherOrderChain():
            return "models.higher_order_transport", "HigherOrderTransport", refining
        case TimeOfDayChain() if prior.unknown_start:
            return "transport_bound", "_from_any_hour", refining
        case TimeOfDayChain():
            return "models.time_of_day_transport", "TimeOfDayTransport", refining
        case Explicit():
            return "models.small_priors", "ExplicitTransport", {}
        case IndependentEntries():
            return "models.small_priors", "IndependentTransport", {}
        case BayesianNetwork() | MarkovRandomField():
            return "models.networks", "NetworkTransport", {}
        case Gaussian():
            return "models.gaussian", "GaussianTransport", {}
        case _:
            raise UnsoundRequest(
                f"a {type(prior).__name__} cannot be translated:"
                " `takifugu.translation.transport_bound` has no line for it",
                field="prior",
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
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    return known if len(known) == len(bounds) else None


def _from_any_hour(prior: TimeOfDayChain, secrets: Secrets, *, tolerance: float) -> TransportBound:
    """A chain by hour whose first entry may have any law, at whichever hour it is.

    The largest of the chains that begin at each hour; where these take long, the bound of all
    chains whose steps lie between the least and the largest probabilities of any hour.
    """
    from takifugu.translation.models.adversary_transport import AdversaryTransport
    from takifugu.translation.models.interval_transport import IntervalTransport

    if prior.hours * prior.entries * len(prior.states) ** 2 <= MAX_HOURS_WORK:
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
        stacklevel=3,
    )


class AlternativePriors(TransportBound):
    """Several priors over the same entries: the largest loss under any of them."""

    def __init__(self, parts: Mapping[str, TransportBound]) -> None:
        self._parts = parts

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""
        sizes = [part.size for part in self._parts.values()]
        return None if None in sizes else self._added(size for size in sizes if size is not None)

    def uniform(self, epsilon: float) -> Bound:
        """The largest loss of any part if every entry is charged ``epsilon``."""
        largest = worst({name: part.uniform(epsilon) for name, part in self._parts.items()})
        return replace(largest, by_entry=None)

    def profile(self, epsilon: Floats) -> Bound:
        """The largest loss of any part if entry i is charged ``epsilon[i]``."""
        bounds = {n: part.profile(self._charged(epsilon, n)) for n, part in self._parts.items()}
        return self._largest(bounds, listed=True)

    def valued(self, costs: EntryCosts) -> Bound:
        """The largest loss of any part; each finds the values of its own entries by name."""
        bounds = {n: part.valued(self._charged(costs, n)) for n, part in self._parts.items()}
        return self._largest(bounds, listed=not costs.uniform)

    def _largest(self, bounds: Mapping[str, Bound], *, listed: bool) -> Bound:
        largest = worst(bounds)
        lists = [bound.by_entry for bound in bounds.values() if bound.by_entry is not None]
        known = listed and len(lists) == len(bounds)
        by_entry = np.max(lists, axis=0) if known else None
        return replace(largest, by_entry=by_entry, solved=False)

    def largest(self, target: float) -> float:
        """The largest constant ε that every part allows."""
        return min(part.largest(target) for part in self._parts.values())

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """The witness of the part that binds."""
        name = self._binding_part(bound)
        return self._parts[name].witness(self._charged(epsilon, name), bound).named(name)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The witness of the part that binds."""
        name = self._binding_part(bound)
        return self._parts[name].valued_witness(self._charged(costs, name), bound).named(name)

    def _binding_part(self, bound: Bound) -> str:
        prior = None if bound.binding is None else bound.binding.prior
        return prior if prior is not None and prior in self._parts else next(iter(self._parts))

    def _added(self, sizes: Iterable[int]) -> int:
        return max(sizes)

    def _charged(self, spent: Any, name: str) -> Any:  # noqa: ARG002
        """What the entries of one part have lost."""
        return spent


class IndependentPeople(AlternativePriors):
    """Independent people, whose entries follow one another: each is revealed by their own only."""

    def _added(self, sizes: Iterable[int]) -> int:
        return sum(sizes)

    def _largest(self, bounds: Mapping[str, Bound], *, listed: bool) -> Bound:  # noqa: ARG002
        return worst(bounds)

    def _charged(self, spent: Any, name: str) -> Any:
        if isinstance(spent, EntryCosts):
            if spent.size is None:
                return spent
            entries = self._entries(name, spent.size, "costs")
            return spent.part(entries.start, entries.stop)
        if isinstance(spent, float):
            return spent
        return spent[self._entries(name, len(spent), "numbers")]

    def _entries(self, name: str, given: int, what: str) -> slice:
        """The entries of one person in a profile of ``given`` entries."""
        if self.size is None or given != self.size:
            raise UnsoundRequest(
                f"the profile has {given} {what}; needed are {self.size},"
                " one for each entry, person by person",
                field="profile",
                given=given,
                needed=self.size,
            )
        start = 0
        for person, part in self._parts.items():
            if person == name:
                return slice(start, start + (part.size or 0))
            start += part.size or 0
        raise KeyError(name)
