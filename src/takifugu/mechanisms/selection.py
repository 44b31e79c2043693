"""Which candidate is best, or which k: selections by their laws.

Scores are whole numbers, such as counts; one replaced entry moves each by at most ``sensitivity``.
A table ``[group, candidate]`` over public groups is released by one call and one charge: an
entry touches the scores of one group only.

OpenDP's noisy maximum follows permute-and-flip when asked for a pure loss, and the exponential
mechanism when asked for a concentrated one; with k > 1 it peels, round after round.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import UnsoundRequest
from takifugu.losses import Concentrated, Number, Pure
from takifugu.mechanisms import backend, laws, simulation
from takifugu.mechanisms.calibration import allowance, certify, least_scale, target_of
from takifugu.mechanisms.checks import noise_scale, scores, whole
from takifugu.mechanisms.noise import IntegerLaplace
from takifugu.mechanisms.protocol import (
    HISTOGRAM,
    RankChances,
    Sensitivity,
    words,
)
from takifugu.numeric import Floats, Integers
from takifugu.translation.protocol import LossTranslation

Currency = Literal["pure", "concentrated"]


@dataclass(frozen=True)
class _Peeling(ABC):
    """k rounds of a selection, each over the candidates that are left.

    Attributes:
        scale: Scores are read in units of this.
        k: How many candidates are named, best first.
        sensitivity: How far one replaced entry moves any one score; 1 for counts.
    """

    kind: ClassVar[str]

    scale: float
    k: int = 1
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "k", whole(self.k, "k"))
        object.__setattr__(self, "sensitivity", whole(self.sensitivity, "sensitivity"))

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, translation: LossTranslation, k: int = 1, sensitivity: int = 1
    ) -> Self:
        """The least noise whose Pufferfish loss is at most ``epsilon``, for all k rounds."""
        made = cls.within(allowance(epsilon, translation), k=k, sensitivity=sensitivity)
        certify(made.pure, epsilon, translation)
        return made

    @classmethod
    def within(cls, epsilon: Number, *, k: int = 1, sensitivity: int = 1) -> Self:
        """The least noise whose per-entry loss is at most ``epsilon``: ε/k for each round."""
        rounds, moves, most = whole(k, "k"), whole(sensitivity, "sensitivity"), target_of(epsilon)
        scale = least_scale(
            2 * moves * rounds / most, lambda s: cls(s, rounds, moves).pure.epsilon, most
        )
        return cls(scale, rounds, moves)

    @property
    def pure(self) -> Pure:
        """ε = 2·k·sensitivity / scale, rounded up.

        OpenDP's map for permute-and-flip. A round of the exponential mechanism with the same
        scale has the same ε (McSherry and Talwar, 2007, Theorem 6).
        """
        measurement = backend.noisy_top(self.k, self.scale, concentrated=False)
        return backend.pure(measurement, self.sensitivity)

    @abstractmethod
    def _law(self, values: Floats) -> Floats:
        """``[..., candidate]``: the chances in one round."""

    @abstractmethod
    def _measurement(self) -> Any:
        """OpenDP's measurement."""

    def chances(self, values: ArrayLike) -> Floats:
        """``[..., place, candidate]``: exact, from public or made-up scores; not private."""
        found = scores(values, k=self.k)
        flat = found.reshape(-1, found.shape[-1])
        rows = [laws.peeled(_from_best(row), self.k, self._law) for row in flat]
        return np.stack(rows).reshape(*found.shape[:-1], self.k, found.shape[-1])

    def error(self, values: ArrayLike | None = None) -> RankChances:
        """How likely each rank is in each place, given scores: public or made-up ones."""
        return by_rank(self.chances(public_scores(values)), scores(public_scores(values)))

    def release(self, values: ArrayLike) -> Integers:
        """``[..., place]``: the candidates named, by position; one place is dropped if k = 1."""
        found = scores(values, k=self.k)
        measurement = self._measurement()
        flat = found.reshape(-1, found.shape[-1]).tolist()
        drawn = np.array([backend.release(measurement, row) for row in flat], dtype=np.int64)
        return as_places(drawn.reshape(*found.shape[:-1], self.k))

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": "selection" if self.k == 1 else f"top {self.k}",
            "scale": self.scale,
            "k": self.k,
            "sensitivity": {"linf": self.sensitivity},
            "loss": words(self.loss),
        }

    @property
    def loss(self) -> Pure | Concentrated:
        """What one release costs."""
        return self.pure


@dataclass(frozen=True)
class PermuteAndFlip(_Peeling):
    r"""Candidates in random order, each taken with chance :math:`e^{(score - best)/scale}`.

    McKenna and Sheldon (2020). As private as the exponential mechanism of the same scale and
    never worse. With k > 1 this is OpenDP's noisy top-k: k such rounds.

    >>> PermuteAndFlip(scale=4.0).loss
    Pure(epsilon=Fraction(1, 2))
    """

    kind: ClassVar[str] = "permute-and-flip"

    def _law(self, values: Floats) -> Floats:
        return laws.permute_and_flip(values, self.scale)

    def _measurement(self) -> Any:
        return backend.noisy_top(self.k, self.scale, concentrated=False)

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        found = scores(values, k=self.k)
        return as_places(simulation.top_flips(rng, found, self.k, self.scale, repetitions))


@dataclass(frozen=True)
class Exponential(_Peeling):
    r"""A candidate with chance :math:`\propto e^{score/scale}`; with k > 1, k peeled rounds.

    McSherry and Talwar (2007); also known as noisy maximum with Gumbel noise. With k > 1 this
    is the paper's top-k: k rounds with ε/k each.

    Attributes:
        currency: Which loss to charge: pure ε = 2k·sensitivity/scale, or concentrated
            ρ = k (2·sensitivity/scale)² / 8, which OpenDP's map proves for the same draw (Cesar
            and Rogers, 2020) and which is far less when many selections add up.
    """

    kind: ClassVar[str] = "exponential"

    currency: Currency = "pure"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.currency not in ("pure", "concentrated"):
            raise UnsoundRequest(
                f"currency is {self.currency!r}; it must be 'pure' or 'concentrated'"
            )

    @property
    def concentrated(self) -> Concentrated:
        """ρ, from OpenDP's map."""
        return backend.concentrated(self._measurement(), self.sensitivity)

    @property
    def loss(self) -> Pure | Concentrated:
        """What one release costs, in the chosen currency."""
        return self.pure if self.currency == "pure" else self.concentrated

    def _law(self, values: Floats) -> Floats:
        return laws.softmax(values, self.scale)

    def _measurement(self) -> Any:
        return backend.noisy_top(self.k, self.scale, concentrated=True)

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        found = scores(values, k=self.k)
        return as_places(simulation.top_gumbel(rng, found, self.k, self.scale, repetitions))


@dataclass(frozen=True)
class LaplaceTopK:
    """Integer Laplace noise on the whole histogram, then sort: any k for one price.

    Equal noisy counts keep the order of the candidates.

    Attributes:
        noise: The noise on the counts, for the L1-sensitivity of the whole vector.
        k: How many candidates are named, best first.
    """

    kind: ClassVar[str] = "laplace-top-k"

    noise: IntegerLaplace
    k: int = field(default=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        k: int = 1,
        sensitivity: Sensitivity | int = HISTOGRAM,
    ) -> "LaplaceTopK":
        """The least noise whose Pufferfish loss is at most ``epsilon``."""
        noise = IntegerLaplace.calibrated(
            epsilon=epsilon, translation=translation, sensitivity=sensitivity
        )
        return cls(noise, k)

    @property
    def loss(self) -> Pure:
        """What the noise loses."""
        return self.noise.loss

    def chances(self, values: ArrayLike) -> Floats:
        """``[..., place, candidate]``: exact, from public or made-up counts; not private."""
        found = scores(values, k=self.k)
        flat = found.reshape(-1, found.shape[-1])
        rows = [laws.noisy_places(row, self.k, self.noise.scale) for row in flat]
        return np.stack(rows).reshape(*found.shape[:-1], self.k, found.shape[-1])

    def error(self, values: ArrayLike | None = None) -> RankChances:
        """How likely each rank is in each place, given counts: public or made-up ones."""
        return by_rank(self.chances(public_scores(values)), scores(public_scores(values)))

    def release(self, values: ArrayLike) -> Integers:
        """``[..., place]``: the candidates named, by position; one place is dropped if k = 1."""
        noisy = self.noise.release(scores(values, k=self.k))
        return as_places(np.argsort(-noisy, axis=-1, kind="stable")[..., : self.k])

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        draw = partial(simulation.top_laplace, rng, scores(values, k=self.k))
        return as_places(draw(self.k, self.noise.scale, repetitions))

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {**self.noise.describe(), "kind": self.kind, "query": f"top {self.k}", "k": self.k}


def _from_best(row: Integers) -> Floats:
    return np.asarray(row - row.max(), dtype=np.float64)


def public_scores(values: ArrayLike | None) -> ArrayLike:
    """The scores that an error is predicted for: there is none without them."""
    if values is None:
        raise UnsoundRequest(
            "the error of a selection depends on the gaps between scores; give public or made-up"
            " scores, never the protected ones"
        )
    return values


def as_places(chosen: Integers) -> Integers:
    """``[..., place]``; one place alone is dropped."""
    return np.asarray(chosen[..., 0] if chosen.shape[-1] == 1 else chosen)


def by_rank(chances: Floats, found: Integers) -> RankChances:
    """The chances of candidates, told by their true rank."""
    order = np.argsort(-found, axis=-1, kind="stable")
    return RankChances(np.take_along_axis(chances, order[..., None, :], axis=-1))
