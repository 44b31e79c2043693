"""Randomised response: publish a sequence itself, each entry through a noisy channel."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, log, nextafter, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats, Integers
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.calibration import allowance, certify, target_of
from takifugu.mechanisms.mechanism_protocol import Error, counts, loss_document, probability, whole
from takifugu.mechanisms.mechanism_protocol import categories as checked
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits


@dataclass(frozen=True)
class RandomisedResponse:
    """Every entry as it is with probability ``truth``, else one of the other values, all alike.

    Each entry is answered once, on its own: the loss is per entry, however long the sequence.

    Attributes:
        categories: The values that an entry may have.
        truth: The probability that an entry is published as it is, above 1/k.
    """

    kind: ClassVar[str] = "randomised-response"

    categories: tuple[Hashable, ...]
    truth: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked(tuple(self.categories)))
        object.__setattr__(self, "truth", probability(self.truth, "truth"))
        if not self.truth * len(self.categories) > 1:
            raise UnsoundRequest(
                f"truth is {self.truth:.4g}; with {len(self.categories)} categories it must be"
                f" above {1 / len(self.categories):.4g}, or nothing is published",
                field="truth",
                given=self.truth,
                needed=1 / len(self.categories),
            )

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, translation: LossTranslation, categories: Sequence[Hashable]
    ) -> "RandomisedResponse":
        """The truest answer whose Pufferfish loss is at most ``epsilon``."""
        response = cls.within(allowance(epsilon, translation), categories=categories)
        certify(response.loss, epsilon, translation)
        return response

    @classmethod
    def within(cls, epsilon: Number, *, categories: Sequence[Hashable]) -> "RandomisedResponse":
        """The truest answer whose per-entry loss is at most ``epsilon``."""
        k, most = len(checked(tuple(categories))), target_of(epsilon)
        truth = min(1 / (1 + (k - 1) * exp(-most)), nextafter(1.0, 0.0))
        step = 2.0**-53
        while truth * k > 1 and not cls(tuple(categories), truth).loss.epsilon <= most:
            truth, step = truth * (1 - step), 2 * step
        if not truth * k > 1:
            raise UnsoundRequest(
                f"a per-entry loss of {four_digits(most, 'down')} is too little to publish"
                " anything; ask for more",
                field="epsilon",
                reason="too small",
                given=most,
            )
        return cls(tuple(categories), truth)

    @property
    def loss(self) -> Pure:
        """ε = log(truth·(k − 1) / (1 − truth)), from OpenDP's map."""
        return measurements.pure(self._measurement, 1)

    @property
    def cost(self) -> Cost:
        """What it tells, value by value: ε·[u≠v], as all wrong values are alike.

        Of two values u and v the largest log-ratio over what may be published is that of u itself,
        log(truth/other) = ε, whichever they are. For a channel that treats values differently see
        `channel_cost`.
        """
        return Cost.any(self.loss.epsilon)

    @property
    def other(self) -> float:
        """The probability of each wrong value."""
        return (1 - self.truth) / (len(self.categories) - 1)

    @property
    def _measurement(self) -> Any:
        return measurements.randomised_response(len(self.categories), self.truth)

    def channel(self) -> Floats:
        """``[true value, published value]``: the probabilities for one entry."""
        k = len(self.categories)
        table = np.full((k, k), self.other)
        np.fill_diagonal(table, self.truth)
        return table

    @property
    def deviation(self) -> float:
        """The standard deviation, at most, that one entry adds to an estimated count."""
        return self.error(1).deviation

    def error(self, entries: int = 1) -> Error:
        """The error of `estimate` for the count of one value among ``entries`` entries.

        The deviation is the largest over all true counts; the interval is Hoeffding's.
        """
        n = whole(entries, "entries")
        gain = self.truth - self.other
        spread = max(self.truth * (1 - self.truth), self.other * (1 - self.other))
        return Error(sqrt(n * spread) / gain, sqrt(n * log(40) / 2) / gain)

    def estimate(self, published: ArrayLike) -> Floats:
        """``[..., value]``: unbiased counts from the counts of the published values; free."""
        seen = counts(published).astype(np.float64)
        if seen.ndim == 0 or seen.shape[-1] != len(self.categories):
            raise InvalidMechanism(
                "published",
                given=f"has shape {seen.shape}",
                needed=f"hold a count for each of the {len(self.categories)} categories",
            )
        n = seen.sum(axis=-1, keepdims=True)
        return np.asarray((seen - n * self.other) / (self.truth - self.other))

    def release(self, values: Sequence[Hashable]) -> list[Hashable]:
        """The sequence with every entry answered on its own."""
        measurement = self._measurement
        drawn = [
            int(measurements.release(measurement, code)) for code in self.codes(values).tolist()
        ]
        return [self.categories[code] for code in drawn]

    def simulate(
        self, values: Sequence[Hashable], repetitions: int, *, rng: "np.random.Generator"
    ) -> Integers:
        """``[repetition, entry]``: positions in ``categories``; the same law, from numpy."""
        codes = self.codes(values)
        shape = (whole(repetitions, "repetitions"), len(codes))
        k = len(self.categories)
        shift = np.where(rng.random(shape) < self.truth, 0, rng.integers(1, k, shape))
        return np.asarray((codes + shift) % k)

    def codes(self, values: Sequence[Hashable]) -> Integers:
        """Where every value stands in ``categories``; an unknown value is refused unseen."""
        number = {category: i for i, category in enumerate(self.categories)}
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if not listed:
            raise InvalidMechanism("values", given="is empty", needed="hold at least one entry")
        if any(value not in number for value in listed):
            raise InvalidMechanism(
                "values", given="hold a value of no category", needed="use the declared categories"
            )
        return np.array([number[value] for value in listed], dtype=np.int64)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            "kind": self.kind,
            "query": "sequence",
            "categories": len(self.categories),
            "truth": self.truth,
            "loss": loss_document(self.loss),
        }
