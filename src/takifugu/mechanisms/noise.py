"""Integer noise on counts, histograms and other whole numbers."""

from dataclasses import dataclass, field
from functools import partial
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu.losses import Approximate, Concentrated, Loss, Number, Pure
from takifugu.mechanisms import backend, laws, simulation
from takifugu.mechanisms.calibration import (
    allowance,
    approximate_allowance,
    certify,
    least_scale,
    searched_scale,
    target_of,
)
from takifugu.mechanisms.checks import WIDEST, chance, counts, noise_scale
from takifugu.mechanisms.protocol import HISTOGRAM, Error, Sensitivity, words
from takifugu.numeric import Integers
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class IntegerLaplace:
    r"""Noise z with :math:`P(z) \propto e^{-|z|/\text{scale}}` on every number: ε-DP.

    Values of any shape are released by one call and one charge: groups over public keys touch
    disjoint entries, so that one replaced entry moves the whole table by its sensitivity once.

    >>> IntegerLaplace(4.0).loss
    Pure(epsilon=Fraction(1, 2))

    Attributes:
        scale: The noise scale.
        sensitivity: What one replaced entry changes; a histogram moves by 2 in L1.
    """

    kind: ClassVar[str] = "integer-laplace"

    scale: float
    sensitivity: Sensitivity = field(default=HISTOGRAM)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity))

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
        made = cls.within(allowance(epsilon, translation), sensitivity=moves)
        certify(made.loss, epsilon, translation)
        return made

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
        return backend.pure(backend.laplace(self.scale), self.sensitivity.l1)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return laws.laplace_error(self.scale).deviation

    def error(self) -> Error:
        """Exact for this noise, before anything is spent."""
        return laws.laplace_error(self.scale)

    def release(self, values: ArrayLike) -> Integers:
        """Every number with noise of its own, in the shape given."""
        return _released(backend.laplace(self.scale), counts(values))

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ...]``: the same law, from numpy."""
        draw = partial(simulation.laplace, rng, self.scale)
        return simulation.additive(counts(values), repetitions, draw)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return _described(self.kind, self.scale, self.sensitivity, self.loss, self.error())


@dataclass(frozen=True)
class IntegerGaussian:
    r"""Noise z with :math:`P(z) \propto e^{-z^2/2\,\text{scale}^2}` on every number: ρ-zCDP.

    The discrete Gaussian (Canonne, Kamath and Steinke, 2020).

    Attributes:
        scale: The noise scale, the standard deviation of the continuous twin.
        sensitivity: What one replaced entry changes; a histogram moves by √2 in L2.
    """

    kind: ClassVar[str] = "integer-gaussian"

    scale: float
    sensitivity: Sensitivity = field(default=HISTOGRAM)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "sensitivity", Sensitivity.of(self.sensitivity))

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
        root = sqrt(log(1 / room) + allowed) - sqrt(log(1 / room))  # √ρ: ε = ρ + 2√(ρ log(1/δ))
        guess = min(moves.l2 / (sqrt(2) * root), WIDEST / 2)
        scale = searched_scale(guess, lambda s: cls(s, moves).approximate(room).epsilon, allowed)
        made = cls(scale, moves)
        certify(made.approximate(room), epsilon, translation)
        return made

    @property
    def loss(self) -> Concentrated:
        """Concentrated ρ = (L2 / scale)² / 2, from OpenDP's map."""
        return backend.concentrated(backend.gaussian(self.scale), self.sensitivity.l2)

    def approximate(self, delta: float) -> Approximate:
        """The same loss as (ε, δ), by OpenDP's conversion."""
        room = chance(delta, "delta")
        return backend.approximate(backend.gaussian(self.scale), self.sensitivity.l2, room)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.error().deviation

    def error(self) -> Error:
        """From the table of the law, before anything is spent."""
        return laws.gaussian_error(self.scale)

    def release(self, values: ArrayLike) -> Integers:
        """Every number with noise of its own, in the shape given."""
        return _released(backend.gaussian(self.scale), counts(values))

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ...]``: the same law, from numpy."""
        draw = partial(simulation.gaussian, rng, self.scale)
        return simulation.additive(counts(values), repetitions, draw)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return _described(self.kind, self.scale, self.sensitivity, self.loss, self.error())


def _released(measurement: Any, values: Integers) -> Integers:
    drawn = backend.release(measurement, values.ravel().tolist())
    return np.array(drawn, dtype=np.int64).reshape(values.shape)


def _described(
    kind: str, scale: float, sensitivity: Sensitivity, loss: Loss, error: Error
) -> dict[str, Any]:
    return {
        "kind": kind,
        "query": sensitivity.query,
        "scale": scale,
        "sensitivity": {"l1": sensitivity.l1, "linf": sensitivity.linf},
        "loss": words(loss),
        "error": {"deviation": error.deviation, "interval": error.interval},
    }
