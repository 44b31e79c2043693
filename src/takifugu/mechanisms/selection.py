"""Which candidate is best, or which k: selections by their laws.

Scores are whole numbers, such as counts; one replaced entry moves each by at most ``sensitivity``.
A table ``[group, candidate]`` over public groups is released by one call and one charge: an
entry touches the scores of one group only.

OpenDP's noisy maximum follows permute-and-flip under a pure loss, and the exponential mechanism
under a concentrated one; with k > 1 it peels, round after round. Its maps are charged. Draws have
the same laws and are made from OpenDP's noise and random bits, with work that depends on the number
of candidates and of rounds alone (`exact_choice`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats, Integers
from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import allowance, certify, least_scale, target_of
from takifugu.mechanisms.mechanism_protocol import (
    HISTOGRAM,
    RankProbabilities,
    Sensitivity,
    loss_document,
    noise_scale,
    scores,
    whole,
)
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace, calibrated_noise
from takifugu.mechanisms.opendp_measurements import Gaps, flip_coins, pick, pick_by_gap
from takifugu.translation.protocol import LossTranslation

Currency = Literal["pure", "concentrated"]


class _Ranking(ABC):
    """A selection of k candidates, best first."""

    k: int

    @abstractmethod
    def _places(self, row: Integers) -> Floats:
        """``[place, candidate]``: the probabilities for the scores of one group."""

    def probabilities(self, values: ArrayLike) -> Floats:
        """``[..., place, candidate]``: exact, from public or synthetic scores; not private."""
        table = scores(values, k=self.k)
        rows = [self._places(row) for row in table.reshape(-1, table.shape[-1])]
        return np.stack(rows).reshape(*table.shape[:-1], self.k, table.shape[-1])

    def error(self, values: ArrayLike | None = None) -> RankProbabilities:
        """How likely each rank is in each place, given public or synthetic scores."""
        if values is None:
            raise UnsoundRequest(
                "the error of a selection depends on the gaps between scores; give public or"
                " synthetic scores, never the protected ones",
                field="values",
            )
        order = np.argsort(-scores(values), axis=-1, kind="stable")
        by_rank = np.take_along_axis(self.probabilities(values), order[..., None, :], axis=-1)
        return RankProbabilities(by_rank)


@dataclass(frozen=True)
class _Peeling(_Ranking):
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
        selection = cls.within(allowance(epsilon, translation), k=k, sensitivity=sensitivity)
        certify(selection.pure, epsilon, translation)
        return selection

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
        measurement = measurements.noisy_top(self.k, self.scale, concentrated=False)
        return measurements.pure(measurement, self.sensitivity)

    @abstractmethod
    def _law(self, values: Floats) -> Floats:
        """``[..., candidate]``: the probabilities in one round."""

    @abstractmethod
    def _chosen(self, gaps: Gaps) -> int:
        """One round: a candidate, by how far each is below the best."""

    def _places(self, row: Integers) -> Floats:
        return noise_laws.peeled(np.asarray(row - row.max(), np.float64), self.k, self._law)

    def release(self, values: ArrayLike) -> Integers:
        """``[..., place]``: the candidates named, by position; one place is dropped if k = 1."""
        table = scores(values, k=self.k)
        named = [self._peeled(row) for row in table.reshape(-1, table.shape[-1])]
        return _as_places(np.array(named, dtype=np.int64).reshape(*table.shape[:-1], self.k))

    def _peeled(self, row: Integers) -> list[int]:
        """``[place]``: k rounds, each over the candidates that are left."""
        left, named = np.arange(len(row)), []
        for _ in range(self.k):
            gaps = (row[left].max() - row[left]).view(np.uint64)  # up to 2^63
            index = self._chosen(gaps)
            named.append(int(left[index]))
            left = np.delete(left, index)
        return named

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": "selection" if self.k == 1 else f"top {self.k}",
            "scale": self.scale,
            "k": self.k,
            "sensitivity": {"linf": self.sensitivity},
            "loss": loss_document(self.loss),
        }

    @property
    def loss(self) -> Pure | Concentrated:
        """What one release costs."""
        return self.pure


@dataclass(frozen=True)
class PermuteAndFlip(_Peeling):
    r"""Candidates in random order, each taken with probability :math:`e^{(score - best)/scale}`.

    McKenna and Sheldon (2020). As private as the exponential mechanism of the same scale and
    never worse. With k > 1 this is OpenDP's noisy top-k: k such rounds.

    The first in random order whose coin falls on heads is one of those whose coins do, all alike.
    So all coins are flipped, and one of those candidates is picked: the same work for all scores.

    >>> PermuteAndFlip(scale=4.0).loss
    Pure(epsilon=Fraction(1, 2))
    """

    kind: ClassVar[str] = "permute-and-flip"

    def _law(self, values: Floats) -> Floats:
        return noise_laws.permute_and_flip(values, self.scale)

    def _chosen(self, gaps: Gaps) -> int:
        return pick(flip_coins(gaps, self.scale).tolist())

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        table = scores(values, k=self.k)
        return _as_places(noise_laws.top_flips(rng, table, self.k, self.scale, repetitions))


@dataclass(frozen=True)
class Exponential(_Peeling):
    r"""A candidate with probability :math:`\propto e^{score/scale}`; with k > 1, k peeled rounds.

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
                f"currency is {self.currency!r}; it must be 'pure' or 'concentrated'",
                field="currency",
                given=self.currency,
            )

    def approximate(self, delta: float) -> Approximate:
        """The loss at ``delta``, as OpenDP converts the concentrated one."""
        measurement = measurements.noisy_top(self.k, self.scale, concentrated=True)
        return measurements.approximate(measurement, self.sensitivity, delta)

    @property
    def concentrated(self) -> Concentrated:
        """ρ, from OpenDP's map."""
        measurement = measurements.noisy_top(self.k, self.scale, concentrated=True)
        return measurements.concentrated(measurement, self.sensitivity)

    @property
    def loss(self) -> Pure | Concentrated:
        """What one release costs, in the chosen currency."""
        return self.pure if self.currency == "pure" else self.concentrated

    def _law(self, values: Floats) -> Floats:
        return noise_laws.softmax(values, self.scale)

    def _chosen(self, gaps: Gaps) -> int:
        return pick_by_gap(gaps, self.scale)

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        table = scores(values, k=self.k)
        return _as_places(noise_laws.top_gumbel(rng, table, self.k, self.scale, repetitions))


@dataclass(frozen=True)
class NoisyTopK(_Ranking):
    """Integer noise on the whole histogram, then sort: any k for one price.

    Equal noisy counts keep the order of the candidates.

    Attributes:
        noise: The noise on the counts, for the sensitivity of the whole vector.
        k: How many candidates are named, best first.
    """

    noise: IntegerLaplace | IntegerGaussian
    k: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        delta: float | None = None,
        k: int = 1,
        sensitivity: Sensitivity | int = HISTOGRAM,
    ) -> "NoisyTopK":
        """The least Laplace noise within a Pufferfish ``epsilon``; Gaussian with a ``delta``."""
        noise = calibrated_noise(
            epsilon=epsilon, delta=delta, translation=translation, sensitivity=sensitivity
        )
        return cls(noise, k)

    @property
    def kind(self) -> str:
        """``laplace-top-k`` or ``gaussian-top-k``."""
        return f"{self.noise.kind.removeprefix('integer-')}-top-k"

    @property
    def loss(self) -> Pure | Concentrated:
        """What the noise loses."""
        return self.noise.loss

    def _places(self, row: Integers) -> Floats:
        return self.noise.places(row, self.k)

    def release(self, values: ArrayLike) -> Integers:
        """``[..., place]``: the candidates named, by position; one place is dropped if k = 1."""
        return _as_places(self.named(self.noisy(values)))

    def noisy(self, values: ArrayLike) -> Integers:
        """``[..., candidate]``: the noisy counts that are sorted. One call costs one ``loss``.

        The noise pays for all counts. What is done to them, sorting among it, is free.
        """
        return self.noise.release(scores(values, k=self.k))

    def named(self, noisy: Integers) -> Integers:
        """``[..., place]``: the candidates with the k largest noisy counts, by position."""
        return np.argsort(-noisy, axis=-1, kind="stable")[..., : self.k]

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        draw = partial(self.noise.draw, rng=rng)
        table = scores(values, k=self.k)
        return _as_places(noise_laws.top_noisy(table, self.k, repetitions, draw))

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {**self.noise.describe(), "kind": self.kind, "query": f"top {self.k}", "k": self.k}


def _as_places(chosen: Integers) -> Integers:
    """``[..., place]``; one place alone is dropped."""
    return np.asarray(chosen[..., 0] if chosen.shape[-1] == 1 else chosen)
