"""A small world written out in full: datasets, priors over them, and secrets."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu.errors import InvalidWorld
from takifugu.priors.explicit import Explicit, Knowledge, same_universe, stack
from takifugu.priors.secrets import EntryIs, Secret, SecretPair, Secrets
from takifugu.priors.universe import Tables, Universe


@dataclass(frozen=True, eq=False)
class World(ByContent):
    """Datasets, a set Θ of priors and ordered secret pairs: an instance of Pufferfish privacy.

    Attributes:
        universe: The datasets that there could be.
        priors: Θ, as a list of explicit priors or as linear `Knowledge`.
        pairs: Ordered pairs of mutually exclusive secrets.
        unsupported: What to do where a prior gives a secret probability 0. The definition of
            Pufferfish privacy (the paper, Definition 5) leaves such a (pair, prior) out. As this
            is usually a mistake, it is an error by default; ``"skip"`` allows it.
    """

    universe: Universe
    priors: tuple[Explicit, ...] | Knowledge
    pairs: tuple[SecretPair, ...]
    unsupported: Literal["refuse", "skip"] = "refuse"

    def __post_init__(self) -> None:
        if self.unsupported not in ("refuse", "skip"):
            raise InvalidWorld(
                "unsupported", given=f"is {self.unsupported!r}", needed="be refuse or skip"
            )
        for name, kind in (("pairs", SecretPair), ("priors", Explicit)):
            listed = getattr(self, name)
            if isinstance(listed, Knowledge):
                continue
            if not isinstance(listed, Sequence) or not all(isinstance(x, kind) for x in listed):
                raise InvalidWorld(name, given=f"is not a list of {kind.__name__}", needed="be one")
            object.__setattr__(self, name, tuple(listed))
        self._check_priors()
        self._check_secrets()
        if isinstance(self.priors, tuple) and self.unsupported == "refuse":
            self._check_support()

    def _check_priors(self) -> None:
        listed = [self.priors] if isinstance(self.priors, Knowledge) else list(self.priors)
        if not listed:
            raise InvalidWorld("priors", given="is empty", needed="hold at least one prior")
        if not same_universe(self.universe, *listed):
            raise InvalidWorld(
                "priors", given="are over other datasets", needed="be over the world's datasets"
            )

    def _check_secrets(self) -> None:
        if not self.pairs:
            raise InvalidWorld("pairs", given="is empty", needed="hold at least one secret pair")
        for secret in self.secrets:
            if not self.mask(secret).any():
                raise InvalidWorld(
                    "secret",
                    given=f"{str(secret)!r} is true of no dataset",
                    needed="be true of at least one",
                )
        for pair in self.pairs:
            both = self.mask(pair.left) & self.mask(pair.right)
            if both.any():
                raise InvalidWorld(
                    "pairs",
                    given=f"has {str(pair)!r}, both true of dataset number {int(np.argmax(both))}",
                    needed="hold statements that exclude one another",
                )

    def _check_support(self) -> None:
        for s, secret in enumerate(self.secrets):
            probability = self.secret_probabilities[:, s]
            if (probability == 0).any():
                prior = self.listed_priors[int(np.argmin(probability))]
                raise InvalidWorld(
                    "priors",
                    given=f"gives {str(secret)!r} probability 0 in {prior.name!r}",
                    needed="give every secret a positive probability; unsupported='skip' leaves"
                    " such pairs out for that prior",
                )

    @classmethod
    def about_entries(cls, prior: Explicit, secrets: Secrets) -> "World":
        """One prior over tables, and secrets about its entries; impossible ones are left out."""
        universe = prior.universe
        if not isinstance(universe, Tables):
            raise InvalidWorld("universe", given="is not made of tables", needed="have entries")
        pairs = []
        for entry in universe.entries if secrets.entries is None else secrets.entries:
            values = universe.values[universe.entry(entry)]
            for left, right in secrets.sides(values):
                sides = [EntryIs(entry, tuple(values[v] for v in side)) for side in (left, right)]
                pairs.append(SecretPair(*sides))
        return cls(universe, (prior,), tuple(pairs), unsupported="skip")

    def identity(self) -> Any:
        """A secret is identified by where it is true, so that a predicate needs no name."""
        pairs = [(str(pair), self.mask(pair.left), self.mask(pair.right)) for pair in self.pairs]
        return ("World", self.universe, self.priors, pairs, self.unsupported)

    @property
    def listed_priors(self) -> tuple[Explicit, ...]:
        """Θ as a list; an error if it was given as linear knowledge."""
        if isinstance(self.priors, Knowledge):
            raise InvalidWorld(
                "priors", given="are given by inequalities", needed="be a list of priors here"
            )
        return self.priors

    @cached_property
    def secrets(self) -> tuple[Secret, ...]:
        """Every secret of some pair, once, in order of appearance."""
        return tuple(dict.fromkeys(s for pair in self.pairs for s in (pair.left, pair.right)))

    @cached_property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """For every pair the positions of its two sides in `secrets`."""
        position = {secret: i for i, secret in enumerate(self.secrets)}
        return tuple((position[pair.left], position[pair.right]) for pair in self.pairs)

    def mask(self, secret: Secret) -> Booleans:
        """``[dataset]``: where ``secret`` is true."""
        masks: dict[Secret, Booleans] = self.__dict__.setdefault("_masks", {})
        if secret not in masks:
            masks[secret] = secret.mask(self.universe)
        return masks[secret]

    @cached_property
    def weights(self) -> Floats:
        """``[prior, dataset]``: P(D | θ)."""
        return stack(self.listed_priors)

    @cached_property
    def masks(self) -> Floats:
        """``[secret, dataset]``: 1 where the secret is true, else 0."""
        return frozen(np.stack([self.mask(secret) for secret in self.secrets]).astype(np.float64))

    @cached_property
    def secret_probabilities(self) -> Floats:
        """``[prior, secret]``: P(s | θ)."""
        return frozen(self.weights @ self.masks.T)

    def conditional(self, prior: int, secret: Secret) -> Floats:
        """``[dataset]``: P(D | s, θ), for a secret that the prior allows."""
        weight = self.weights[prior] * self.mask(secret)
        total = weight.sum()
        if total == 0:
            raise InvalidWorld(
                "secret",
                given=f"{str(secret)!r} has probability 0 under {self.listed_priors[prior].name!r}",
                needed="be possible",
            )
        return frozen(weight / total)
