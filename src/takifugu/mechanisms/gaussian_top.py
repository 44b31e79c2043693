"""The k largest counts with Gaussian noise: for allowances that are concentrated or have a δ."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import TooLarge
from takifugu.losses import Approximate, Concentrated, Number
from takifugu.mechanisms import laws
from takifugu.mechanisms.checks import scores, whole
from takifugu.mechanisms.noise import IntegerGaussian
from takifugu.mechanisms.protocol import HISTOGRAM, RankChances, Sensitivity
from takifugu.mechanisms.selection import as_places, by_rank, public_scores
from takifugu.mechanisms.simulation import CELLS, largest
from takifugu.numeric import Floats, Integers
from takifugu.translation.protocol import LossTranslation

MOST_SUMS = 4e8


@dataclass(frozen=True)
class GaussianTopK:
    """Integer Gaussian noise on the whole histogram, then sort: any k for one price.

    Equal noisy counts keep the order of the candidates.

    Attributes:
        noise: The noise on the counts, for the L2-sensitivity of the whole vector.
        k: How many candidates are named, best first.
    """

    kind: ClassVar[str] = "gaussian-top-k"

    noise: IntegerGaussian
    k: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        delta: float,
        translation: LossTranslation,
        k: int = 1,
        sensitivity: Sensitivity | int = HISTOGRAM,
    ) -> "GaussianTopK":
        """The least noise whose Pufferfish loss is at most (``epsilon``, ``delta``)."""
        noise = IntegerGaussian.calibrated(
            epsilon=epsilon, delta=delta, translation=translation, sensitivity=sensitivity
        )
        return cls(noise, k)

    @property
    def loss(self) -> Concentrated:
        """What the noise loses."""
        return self.noise.loss

    def approximate(self, delta: float) -> Approximate:
        """The same loss as (ε, δ)."""
        return self.noise.approximate(delta)

    def chances(self, values: ArrayLike) -> Floats:
        """``[..., place, candidate]``: exact, from public or made-up counts; not private."""
        found = scores(values, k=self.k)
        flat = found.reshape(-1, found.shape[-1])
        rows = [_places(row, self.k, self.noise.scale) for row in flat]
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
        found = scores(values, k=self.k)
        found = found - found.max(axis=-1, keepdims=True)  # differences fit float64 exactly
        times = whole(repetitions, "repetitions")
        step = max(CELLS // found.size, 1)
        blocks = []
        for done in range(0, times, step):
            noisy = self.noise.simulate(found, min(step, times - done), rng=rng)
            blocks.append(largest(noisy.astype(np.float64), self.k))
        return as_places(np.concatenate(blocks))

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {**self.noise.describe(), "kind": self.kind, "query": f"top {self.k}", "k": self.k}


def _places(row: Integers, k: int, scale: float) -> Floats:
    """``[place, candidate]``: given its own noise, the others beat a candidate independently."""
    n = len(row)
    if n * n * scale * k > MOST_SUMS:
        raise TooLarge(
            f"the places of {n} candidates with noise of scale {scale:g} take too many sums;"
            " use `simulate` instead"
        )
    z, own = laws.gaussian_table(scale)
    above = np.append(1.0, 1 - np.cumsum(own))  # [i]: P(Z ≥ z[i])
    places = np.zeros((k, n))
    for i in range(n):
        ahead = np.zeros((k, len(z)))
        ahead[0] = 1.0
        for j in np.flatnonzero(np.arange(n) != i):
            # j is ahead when its noise is above the lead of i, or equal and j comes first
            least = int(row[i] - row[j]) + z + (0 if j < i else 1)
            beats = np.clip(above[np.clip(least - z[0], 0, len(z))], 0.0, 1.0)
            ahead[1:] = ahead[1:] * (1 - beats) + ahead[:-1] * beats
            ahead[0] *= 1 - beats
        places[:, i] = ahead @ own
    return places
