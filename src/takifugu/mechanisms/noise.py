"""Integer noise on counts, histograms and other whole numbers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats, Integers
from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    certify,
    least_scale,
    scale_at_delta,
    target_of,
)
from takifugu.mechanisms.mechanism_protocol import (
    HISTOGRAM,
    Error,
    Sensitivity,
    counts,
    loss_document,
    noise_scale,
    probability,
    whole,
)
from takifugu.translation.protocol import LossTranslation


class _NoiseLaw(NamedTuple):
    """What is known of a noise by its scale: see the methods of `_IntegerNoise`."""

    error: Callable[[float], Error]
    reach: Callable[[float, float], int]
    places: Callable[[Integers, int, float], Floats]
    draw: Callable[["np.random.Generator", float, tuple[int, ...]], Integers]


@dataclass(frozen=True)
class _IntegerNoise(ABC):
    """Noise of its own on every number.

    Values of any shape are released by one call and one charge: groups over public keys touch
    disjoint entries, so that one replaced entry moves the whole table by its sensitivity once.

    Attributes:
        scale: The noise scale.
        sensitivity: What one replaced entry changes; by default as for a histogram.
    """

    kind: ClassVar[str]
    _law: ClassVar[_NoiseLaw]

    scale: float
    sensitivity: Sensitivity = field(default=HISTOGRAM)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity))

    @property
    @abstractmethod
    def loss(self) -> Pure | Concentrated:
        """What one release costs every entry."""

    def error(self) -> Error:
        """What to expect of the noise, before anything is spent."""
        return self._law.error(self.scale)

    def reach(self, miss: float) -> int:
        """The least h such that noise is beyond ±h with a probability of at most ``miss``."""
        return self._law.reach(self.scale, probability(miss, "miss"))

    def places(self, scores: Integers, k: int) -> Floats:
        """``[place, candidate]``: the probabilities of the k largest scores with noise on each."""
        return self._law.places(scores, k, self.scale)

    def draw(self, shape: tuple[int, ...], *, rng: "np.random.Generator") -> Integers:
        """Noise from numpy, for planning; it protects nothing."""
        return self._law.draw(rng, self.scale, shape)

    @property
    @abstractmethod
    def _measurement(self) -> Any:
        """OpenDP's measurement."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.error().deviation

    def release(self, values: ArrayLike) -> Integers:
        """Every number with noise of its own, in the shape given."""
        numbers = counts(values)
        drawn = measurements.release(self._measurement, numbers.ravel().tolist())
        return np.array(drawn, dtype=np.int64).reshape(numbers.shape)

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Integers:
        """``[repetition, ...]``: the same law, from numpy."""
        numbers = counts(values)
        return numbers + self.draw((whole(repetitions, "repetitions"), *numbers.shape), rng=rng)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": self.sensitivity.query,
            "scale": self.scale,
            "sensitivity": {"l1": self.sensitivity.l1, "linf": self.sensitivity.linf},
            "loss": loss_document(self.loss),
            "error": asdict(self.error()),
        }


@lru_cache(measurements.MAX_CACHED_MEASUREMENTS)
def _laplace_loss(scale: float, moves: int) -> Pure:
    """What OpenDP's map says of one noise: it is asked for many times for each plan."""
    return measurements.pure(measurements.laplace(scale), moves)


@dataclass(frozen=True)
class IntegerLaplace(_IntegerNoise):
    r"""Noise z with :math:`P(z) \propto e^{-|z|/\text{scale}}` on every number: ε-DP.

    >>> IntegerLaplace(4.0).loss
    Pure(epsilon=Fraction(1, 2))
    """

    kind: ClassVar[str] = "integer-laplace"
    _law: ClassVar[_NoiseLaw] = _NoiseLaw(
        noise_laws.laplace_error,
        noise_laws.laplace_reach,
        noise_laws.laplace_places,
        noise_laws.draw_laplace,
    )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        sensitivity: Sensitivity | int = HISTOGRAM,
    ) -> "IntegerLaplace":
        """The least noise whose Pufferfish loss is at most ``epsilon``."""
        moves = Sensitivity.of(sensitivity)
        noise = cls.within(allowance(epsilon, translation), sensitivity=moves)
        certify(noise.loss, epsilon, translation)
        return noise

    @classmethod
    def within(
        cls, epsilon: Number, *, sensitivity: Sensitivity | int = HISTOGRAM
    ) -> "IntegerLaplace":
        """The least noise whose per-entry loss is at most ``epsilon``."""
        moves, most = Sensitivity.of(sensitivity), target_of(epsilon)
        scale = least_scale(moves.l1 / most, lambda s: cls(s, moves).loss.epsilon, most)
        return cls(scale, moves)

    @property
    def loss(self) -> Pure:
        """Pure ε = L1 / scale, from OpenDP's map."""
        return _laplace_loss(self.scale, self.sensitivity.l1)

    @property
    def _measurement(self) -> Any:
        return measurements.laplace(self.scale)


@dataclass(frozen=True)
class IntegerGaussian(_IntegerNoise):
    r"""Noise z with :math:`P(z) \propto e^{-z^2/2\,\text{scale}^2}` on every number: ρ-zCDP.

    The discrete Gaussian (Canonne, Kamath and Steinke, 2020).
    """

    kind: ClassVar[str] = "integer-gaussian"
    _law: ClassVar[_NoiseLaw] = _NoiseLaw(
        noise_laws.gaussian_error,
        noise_laws.gaussian_reach,
        noise_laws.gaussian_places,
        noise_laws.draw_gaussian,
    )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        delta: float,
        translation: LossTranslation,
        sensitivity: Sensitivity | int = HISTOGRAM,
    ) -> "IntegerGaussian":
        """The least noise whose Pufferfish loss is at most (``epsilon``, ``delta``)."""
        allowed, room = approximate_allowance(epsilon, delta, translation)
        moves = Sensitivity.of(sensitivity)
        scale = scale_at_delta(
            moves.l2, lambda s: cls(s, moves).approximate(room).epsilon, allowed, room
        )
        noise = cls(scale, moves)
        certify(noise.approximate(room), epsilon, translation)
        return noise

    @property
    def loss(self) -> Concentrated:
        """Concentrated ρ = (L2 / scale)² / 2, from OpenDP's map."""
        return measurements.concentrated(self._measurement, self.sensitivity.l2)

    def approximate(self, delta: float) -> Approximate:
        """The same loss as (ε, δ), by OpenDP's conversion."""
        room = probability(delta, "delta")
        return measurements.approximate(self._measurement, self.sensitivity.l2, room)

    @property
    def _measurement(self) -> Any:
        return measurements.gaussian(self.scale)


def calibrated_noise(
    *,
    epsilon: Number,
    delta: float | None,
    translation: LossTranslation,
    sensitivity: Sensitivity | int,
) -> IntegerLaplace | IntegerGaussian:
    """Laplace noise within a Pufferfish ``epsilon``; Gaussian noise if a ``delta`` is allowed."""
    if delta is None:
        return IntegerLaplace.calibrated(
            epsilon=epsilon, translation=translation, sensitivity=sensitivity
        )
    return IntegerGaussian.calibrated(
        epsilon=epsilon, delta=delta, translation=translation, sensitivity=sensitivity
    )
