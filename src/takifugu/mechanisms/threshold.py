"""Histograms over keys that are not known in advance."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import Any, ClassVar

import numpy as np

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats
from takifugu.costs.losses import Approximate
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import approximate_allowance, certify, least_scale
from takifugu.mechanisms.mechanism_protocol import Error, counts, loss_document, noise_scale, whole
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

KEY_MOVES = (2, 2, 1)  # one replaced entry: two keys change, by 2 in all, by 1 each


@dataclass(frozen=True)
class ThresholdedHistogram:
    """Integer Laplace noise on the count of every key that occurs; low noisy counts stay hidden.

    That a key occurs at all is a secret too: one that comes from a single entry must stay hidden
    but for a probability δ. Keys are text; counts are at least 1.

    OpenDP 0.16 publishes a key whose noisy count *equals* the threshold, but its map counts only
    those above it (its issue 2922): for whole counts its δ is too small by a factor of
    e^(1/scale). The loss is therefore read from the map of the threshold below, which is right
    for what is released.

    One noise is drawn for each key that occurs, so how long a release takes tells how many do: do
    not let anybody measure it who must not know.

    Attributes:
        scale: The noise scale.
        threshold: Noisy counts below this are left out; at least 3.
    """

    kind: ClassVar[str] = "thresholded-histogram"

    scale: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale(self.scale))
        object.__setattr__(self, "threshold", whole(self.threshold, "threshold", least=3))

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, delta: float, translation: LossTranslation
    ) -> "ThresholdedHistogram":
        """The least noise and threshold within a Pufferfish loss of (ε, δ)."""
        allowed, room = approximate_allowance(epsilon, delta, translation)
        probe = 2**40  # ε does not depend on the threshold
        scale = least_scale(2 / allowed, lambda s: cls(s, probe).loss.epsilon, allowed)
        low, high = 2, ceil(4 + scale * (log(1 / room) + 2))  # high is enough, by far; low never is
        while high - low > 1:
            middle = (low + high) // 2
            enough = cls(scale, middle).loss.delta <= Fraction(room)
            low, high = (low, middle) if enough else (middle, high)
        histogram = cls(scale, high)
        if histogram.loss.delta > Fraction(room):
            raise UnsoundRequest(
                f"no threshold keeps delta within {four_digits(room, 'down')}; ask for more",
                field="delta",
                given=room,
            )
        certify(histogram.loss, epsilon, translation)
        return histogram

    @property
    def _measurement(self) -> Any:
        return measurements.threshold(self.scale, self.threshold)

    @property
    def loss(self) -> Approximate:
        """(ε, δ) for one replaced entry, from OpenDP's map of the threshold below."""
        return measurements.approximate_pair(
            measurements.threshold(self.scale, self.threshold - 1), KEY_MOVES
        )

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count, before the threshold."""
        return self.error().deviation

    def error(self) -> Error:
        """The error of the noise, before the threshold."""
        return noise_laws.laplace_error(self.scale)

    def shown(self, count: int) -> float:
        """The probability that a key with this true count is published."""
        needed = float(self.threshold - whole(count, "count") - 1)
        return float(noise_laws.laplace_above(self.scale, np.array(needed)))

    def release(self, values: Mapping[str, int]) -> dict[str, int]:
        """Noisy counts of the keys that pass."""
        true_counts = self._counts(values)
        drawn = measurements.release(self._measurement, true_counts) if true_counts else {}
        return {str(key): int(count) for key, count in sorted(drawn.items())}

    def simulate(
        self, values: Mapping[str, int], repetitions: int, *, rng: "np.random.Generator"
    ) -> Floats:
        """``[repetition, key]``: keys in order; NaN where left out. From numpy."""
        ordered = [count for _, count in sorted(self._counts(values).items())]
        shape = (whole(repetitions, "repetitions"), len(ordered))
        noisy = np.array(ordered) + noise_laws.draw_laplace(rng, self.scale, shape)
        return np.where(noisy >= self.threshold, noisy.astype(np.float64), np.nan)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": "histogram of unknown keys",
            "scale": self.scale,
            "threshold": self.threshold,
            "sensitivity": {"l0": 2, "l1": 2, "linf": 1},
            "loss": loss_document(self.loss),
        }

    def _counts(self, values: Mapping[str, int]) -> dict[str, int]:
        if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
            raise InvalidMechanism(
                "values", given="is not a mapping from text", needed="map each key to its count"
            )
        if not values:
            return {}
        numbers = counts(list(values.values()))
        if (numbers < 1).any():
            raise InvalidMechanism(
                "values",
                given="has a key whose count is below 1",
                needed="hold only keys that occur; a listed 0 would reveal what exists",
            )
        return dict(zip(values, numbers.tolist(), strict=True))
