"""The transport bound of a prior over a few datasets, all of them listed."""

from functools import cached_property

import numpy as np

from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.world import World
from takifugu.numeric import Floats, frozen
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.priors.universe import Tables
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Bound, TransportBound, Witness, of_pair


class ExplicitTransport(TransportBound):
    """The linear program itself, certified from both sides."""

    def __init__(self, prior: Explicit, secrets: Secrets) -> None:
        self._world = World.about_entries(prior, secrets)
        self._universe = self._world.universe

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._tables.entries)

    @cached_property
    def _tables(self) -> Tables:
        assert isinstance(self._universe, Tables)  # noqa: S101 - `World.about_entries` refuses others
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
