"""Quantiles over declared candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.losses import Number, Pure
from takifugu.mechanisms import backend, laws
from takifugu.mechanisms.calibration import allowance, certify, least_scale
from takifugu.mechanisms.checks import noise_scale, whole
from takifugu.mechanisms.protocol import words
from takifugu.numeric import Floats
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class Quantile:
    r"""The candidate that best splits the entries at ``alpha``, by permute-and-flip.

    A candidate c scores :math:`-|(1-\alpha)\,\#\{x < c\} - \alpha\,\#\{x > c\}|` (Smith, 2011).
    One replaced entry is two steps of OpenDP's symmetric distance and moves a score by at most
    1, as the number of entries is public: :math:`\varepsilon = 2/\text{scale}`.

    Attributes:
        candidates: What may be answered, in increasing order.
        alpha: 0.5 for the median.
        scale: Scores are read in units of this many entries.
        entries: How many entries there are.
    """

    kind: ClassVar[str] = "quantile"

    candidates: tuple[float, ...]
    alpha: float
    scale: float
    entries: int

    def __post_init__(self) -> None:
        given = np.asarray(self.candidates, dtype=np.float64)
        if given.ndim != 1 or given.size < 2 or not np.isfinite(given).all():
            raise InvalidMechanism(
                "candidates", given="are not a list of numbers", needed="list at least two"
            )
        if not (np.diff(given) > 0).all():
            raise InvalidMechanism("candidates", given="are not in order", needed="increase")
        object.__setattr__(self, "candidates", tuple(given.tolist()))
        if not 0 <= self.alpha <= 1:  # also false for NaN
            raise UnsoundRequest(f"alpha is {self.alpha}; it must be from 0 to 1")
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "entries", whole(self.entries, "entries"))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        candidates: Sequence[float],
        entries: int,
        alpha: float = 0.5,
    ) -> "Quantile":
        """The least noise whose Pufferfish loss is at most ``epsilon``."""
        allowed = allowance(epsilon, translation)
        listed = tuple(candidates)
        scale = least_scale(
            2 / allowed, lambda s: cls(listed, alpha, s, entries).loss.epsilon, allowed
        )
        made = cls(listed, alpha, scale, entries)
        certify(made.loss, epsilon, translation)
        return made

    @property
    def _measurement(self) -> Any:
        return backend.quantile(self.candidates, self.alpha, self.scale, self.entries)

    @property
    def loss(self) -> Pure:
        """ε for one replaced entry, from OpenDP's map: one entry out, one in."""
        return backend.pure(self._measurement, 2)

    def scores(self, values: ArrayLike) -> Floats:
        """``[candidate]``: the score of every candidate, in entries; at most 0."""
        ordered = np.sort(self._entries(values))
        below = np.searchsorted(ordered, self.candidates, side="left")
        above = len(ordered) - np.searchsorted(ordered, self.candidates, side="right")
        scores: Floats = -np.abs((1 - self.alpha) * below - self.alpha * above)
        return scores

    def chances(self, values: ArrayLike) -> Floats:
        """``[candidate]``: the chance of each answer, for public or made-up entries."""
        return laws.permute_and_flip(self.scores(values), self.scale)

    def error(self, values: ArrayLike | None = None) -> Floats:
        """As `chances`: the error of a quantile depends on the entries."""
        if values is None:
            raise UnsoundRequest(
                "the error of a quantile depends on the entries; give public or made-up ones"
            )
        return self.chances(values)

    def release(self, values: ArrayLike) -> float:
        """One of the candidates."""
        return float(backend.release(self._measurement, self._entries(values).tolist()))

    def simulate(self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator) -> Floats:
        """``[repetition]``: the same law, from numpy."""
        shape = (whole(repetitions, "repetitions"), len(self.candidates))
        noisy = self.scores(values) / self.scale + rng.standard_exponential(shape)
        drawn: Floats = np.array(self.candidates)[np.argmax(noisy, axis=-1)]
        return drawn

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": "quantile",
            "alpha": self.alpha,
            "candidates": list(self.candidates),
            "entries": self.entries,
            "scale": self.scale,
            "loss": words(self.loss),
        }

    def _entries(self, values: ArrayLike) -> Floats:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.shape != (self.entries,):
            raise InvalidMechanism(
                "values",
                given=f"is of type {array.dtype} and shape {array.shape}",
                needed=f"be a list of {self.entries} numbers",
            )
        numbers = array.astype(np.float64)
        if np.isnan(numbers).any():
            raise InvalidMechanism(
                "values", given="hold a value that is not a number", needed="hold numbers only"
            )
        return numbers
