"""Which proof serves which prior: the tight translation of each family, or why there is none."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from typing import Any, Protocol

import numpy as np

from takifugu._rounding import UNIT
from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.world import World
from takifugu.numeric import Floats, frozen
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.priors.universe import Name, Tables
from takifugu.translation.accounting.inverse import largest_within
from takifugu.translation.bounds import Binding, Bound, LooserTranslation, Witness, of_pair, worst
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.higher_order_transport import HigherOrderTransport
from takifugu.translation.chain.interval_transport import IntervalTransport
from takifugu.translation.chain.steps import MOST_STATES


class Tight(Protocol):
    """The transport bound of one prior.

    None of them calls itself exact. An answer is, where its witness leaks what its bound says.
    """

    @property
    def size(self) -> int | None:
        """How many entries there are; None if there is no end."""

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """A mechanism that leaks nearly as much as ``bound``."""


def tight(prior: Prior, secrets: Secrets, *, tolerance: float = 1e-3) -> Tight | None:
    """The tight translation of ``prior``; None, and why as a warning, if the curve must serve.

    A Gaussian has none: no transport bound for regions of a truncated Gaussian is proven here.
    """
    match prior:
        case MarkovChain() if len(prior.states) == 2:
            return _if_it_fits(prior, lambda: BinaryTransport(prior, secrets))
        case MarkovChain():
            return _if_it_fits(prior, lambda: ChainTransport(prior, secrets, tolerance=tolerance))
        case IntervalMarkovChain():
            return _if_it_fits(
                prior, lambda: IntervalTransport(prior, secrets, tolerance=tolerance)
            )
        case HigherOrderChain():
            return _if_it_fits(
                prior, lambda: HigherOrderTransport(prior, secrets, tolerance=tolerance)
            )
        case Explicit():
            return ExplicitTransport(prior, secrets)
        case IndependentEntries():
            return IndependentTransport(prior, secrets)
        case Product():
            parts = {
                n: tight(part, secrets, tolerance=tolerance) for n, part in prior.parts.items()
            }
            return _together(parts)
        case BayesianNetwork() | MarkovRandomField():
            from takifugu.translation.network.network_transport import NetworkTransport

            try:
                return NetworkTransport(prior, secrets)
            except TooLarge as error:
                _warn(str(error))
                return None
        case Gaussian():
            return None
        case _:
            raise UnsoundRequest(f"a {type(prior).__name__} is not a prior that can be translated")


def several(
    priors: Mapping[str, Prior], secrets: Secrets, *, tolerance: float = 1e-3
) -> Tight | None:
    """The tight translation of a set of priors over the same entries: each on its own."""
    parts = {name: tight(prior, secrets, tolerance=tolerance) for name, prior in priors.items()}
    return None if any(part is None for part in parts.values()) else Alternatives(parts)  # type: ignore[arg-type]


def _if_it_fits(prior: Prior, transport: Callable[[], Tight]) -> Tight | None:
    """The transport bound of a sequence, unless it has too many states or no proof applies."""
    if prior.breadth > MOST_STATES:
        _warn(f"{prior.breadth} states are more than the {MOST_STATES} that a step can join")
        return None
    try:
        return transport()
    except (InvalidPrior, TooLarge, UnsoundRequest) as error:
        _warn(str(error))
        return None


def _warn(why: str) -> None:
    warnings.warn(
        f"translated by the influence curve, which is looser: {why}",
        LooserTranslation,
        stacklevel=4,
    )


class Alternatives:
    """Several priors over the same entries: the largest loss of all of them."""

    def __init__(self, parts: Mapping[str, Tight]) -> None:
        self._parts = parts

    @property
    def size(self) -> int | None:
        """How many entries there are; None if there is no end."""
        sizes = [part.size for part in self._parts.values()]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def uniform(self, epsilon: float) -> Bound:
        """The largest loss of any part when every entry is charged ``epsilon``."""
        found = worst({name: part.uniform(epsilon) for name, part in self._parts.items()})
        return Bound(found.value, found.binding, by_values=found.by_values)

    def profile(self, epsilon: Floats) -> Bound:
        """The largest loss of any part when entry i is charged ``epsilon[i]``."""
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


class Together(Alternatives):
    """Independent people: the entries of all, one after the other; each is told by their own."""

    @property
    def size(self) -> int | None:
        """How many entries there are; None if there is no end."""
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

    def _cut(self, epsilon: Floats) -> dict[str, Floats]:
        if self.size is None or len(epsilon) != self.size:
            raise UnsoundRequest(
                f"the profile has {len(epsilon)} numbers; there are {self.size or 'endless'}"
                " entries, person by person"
            )
        ends = np.cumsum([part.size for part in self._parts.values()])
        return dict(zip(self._parts, np.split(epsilon, ends[:-1]), strict=True))


def _together(parts: Mapping[str, Tight | None]) -> Tight | None:
    if any(part is None for part in parts.values()):
        return None
    return Together({name: part for name, part in parts.items() if part is not None})


class ExplicitTransport:
    """A world written out: the linear programme itself, certified from both sides."""

    def __init__(self, prior: Explicit, secrets: Secrets) -> None:
        self._world = World.asked(prior, secrets)
        self._universe = self._world.universe

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._tables.entries)

    @cached_property
    def _tables(self) -> Tables:
        assert isinstance(self._universe, Tables)  # noqa: S101 - `World.asked` refuses others
        return self._universe

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.profile(np.full(len(self._tables.entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        solved = translation_exact(self._world, epsilon)
        by_pair = solved.uppers.max(axis=1)
        by_entry = np.zeros(len(self._tables.entries))
        for value, pair in zip(by_pair, self._world.pairs, strict=True):
            if isinstance(pair.left, EntryIs):
                column = self._tables.entry(pair.left.entry)
                by_entry[column] = max(by_entry[column], value)
        return Bound(solved.upper, of_pair(solved.binding.pair), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """The worst mechanism, as a table."""
        spent = np.broadcast_to(epsilon, len(self._tables.entries))
        solved: ExactTranslation = translation_exact(self._world, spent)
        return Witness(
            solved.lower,
            of_pair(solved.attacked.pair),
            self._tables.entries,
            mechanism=solved.mechanism,
        )


class IndependentTransport:
    """Entries that tell nothing of one another: the loss is what the entry was charged."""

    def __init__(self, prior: IndependentEntries, secrets: Secrets) -> None:
        self._prior = prior
        self._entries = tuple(prior.marginals)
        self._questions = {
            entry: sides
            for entry in (self._entries if secrets.entries is None else secrets.entries)
            if (sides := self._possible(entry, secrets))
        }

    def _possible(self, entry: Name, secrets: Secrets) -> list[tuple[str, str]]:
        if entry not in self._prior.marginals:
            raise UnsoundRequest(f"the secrets name the entry {entry!r}, which the prior has not")
        states = self._prior.states[entry]
        law = self._prior.law(entry)
        pairs: Sequence[Any] = (
            [((x,), (y,)) for x, y in permutations(range(len(states)), 2)]
            if secrets.pairs is None
            else secrets.sides(states)
        )
        return [
            ("|".join(str(states[v]) for v in a), "|".join(str(states[v]) for v in b))
            for a, b in pairs
            if law[list(a)].sum() > 0 and law[list(b)].sum() > 0
        ]

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._entries)

    def uniform(self, epsilon: float) -> Bound:
        """ε itself, if anything can be asked."""
        return self.profile(np.full(len(self._entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """What each entry was charged."""
        spent = np.asarray(epsilon, dtype=np.float64)
        asked = np.array([entry in self._questions for entry in self._entries])
        by_entry = np.where(asked, spent, 0.0)
        k = int(np.argmax(by_entry))
        return Bound(float(by_entry[k]), self._binding(k), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The target itself."""
        return float(target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Randomised response on the entry alone."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(self._entries))
        k = int(
            np.argmax(
                [e * (n in self._questions) for e, n in zip(spent, self._entries, strict=True)]
            )
        )
        binding = self._binding(k)
        if binding is None:
            return Witness(0.0, None)
        states = self._prior.states[self._entries[k]]
        steep = min(float(spent[k]), 600.0)
        high = max(float(np.exp(steep)) * (1 - 4 * UNIT), 1.0)
        factors = [[high if str(s) in binding.left.split("|") else 1.0 for s in states]]
        return Witness(steep * (1 - UNIT), binding, (self._entries[k],), frozen(factors))

    def _binding(self, k: int) -> Binding | None:
        asked = self._questions.get(self._entries[k])
        return None if not asked else Binding(*asked[0], entry=self._entries[k])
