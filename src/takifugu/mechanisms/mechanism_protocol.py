"""What every mechanism knows of itself, before and after anything is spent."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Any, Protocol

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.costs.losses import Loss, Metric
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms.checks import whole


@dataclass(frozen=True)
class Sensitivity:
    """How far the replacement of one entry moves a vector of whole numbers.

    Attributes:
        query: The query, in a word or two.
        l1: The largest sum of absolute changes.
        l2_squared: The largest sum of squared changes.
        linf: The largest change in one place.
    """

    query: str
    l1: int
    l2_squared: int
    linf: int

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared", "linf"):
            whole(getattr(self, name), f"sensitivity {name}")
        if not self.linf <= self.l1 or not self.linf**2 <= self.l2_squared <= self.l1**2:
            raise UnsoundRequest(
                f"sensitivity of {self.query!r} contradicts itself; L∞ ≤ L2 ≤ L1 must hold",
                field="sensitivity",
            )

    @property
    def l2(self) -> float:
        """The L2-sensitivity, rounded up."""
        root = sqrt(self.l2_squared)
        while Fraction(root) ** 2 < self.l2_squared:
            root = nextafter(root, inf)
        return root

    @classmethod
    def of(cls, value: "Sensitivity | int") -> "Sensitivity":
        """A sensitivity as it is, or the one of a single number that moves by ``value``."""
        if isinstance(value, Sensitivity):
            return value
        return cls("number", whole(value, "sensitivity"), int(value) ** 2, int(value))


HISTOGRAM = Sensitivity("histogram", l1=2, l2_squared=2, linf=1)  # one count down, another up
COUNT = Sensitivity("count", l1=1, l2_squared=1, linf=1)


@dataclass(frozen=True)
class Error:
    """How far noise takes a released number from the true one.

    Attributes:
        deviation: The standard deviation.
        interval: The noise is at most this far from 0 with a probability of at least
            0.95.
    """

    deviation: float
    interval: float


class Mechanism(Protocol):
    """A frozen value that can be priced, predicted, simulated and released.

    ``values`` are what the query found: counts by group and category, scores, entries.
    ``release`` protects them; its randomness comes from OpenDP and has no seed. ``simulate`` draws
    from the same law with numpy, for planning on public or synthetic values; it never protects
    data.
    """

    @property
    def kind(self) -> str:
        """What kind of mechanism it is, as it is written down."""

    @property
    def loss(self) -> Loss:
        """What one release costs every entry that it touches, rounded up."""

    def release(self, values: Any) -> Any:
        """The protected answer. One call costs one ``loss``, however many groups it holds."""

    def simulate(self, values: Any, repetitions: int, *, rng: "np.random.Generator") -> Any:
        """``[repetition, ...]``: answers from the same law, not fit to protect anything."""

    def error(self) -> Any:
        """What to expect before anything is spent: an `Error` where noise is added.

        Where the error depends on the values, as for selections, it takes public or
        synthetic ones.
        """

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss, ready to be written as JSON."""


def loss_document(loss: Loss) -> dict[str, Any]:
    """A loss as JSON: its currency, its exact rational numbers and their nearest floats.

    Of a cost also an ε that covers it.
    """
    if isinstance(loss, Metric):
        document = {"currency": "metric", "cost": loss.cost.document()}
        return {**document, "epsilon": str(loss.epsilon), "epsilon_near": float(loss.epsilon)}
    parts = {name: getattr(loss, name) for name in loss.__dataclass_fields__}
    exact: dict[str, Any] = {name: str(value) for name, value in parts.items()}
    return {
        "currency": type(loss).__name__.lower(),
        **exact,
        **{f"{name}_near": float(value) for name, value in parts.items()},
    }


@dataclass(frozen=True, eq=False)
class RankProbabilities:
    """The error of a selection: how likely each rank is to be named in each place.

    Attributes:
        probabilities: ``[..., place, rank]``: that the ``place``-th answer is the candidate whose
            true score is the ``rank``-th highest (ties in order of the candidates).
    """

    probabilities: Floats

    @property
    def first_is_best(self) -> Floats:
        """``[...]``: the probability that the first answer is a candidate of rank 0."""
        best: Floats = self.probabilities[..., 0, 0]
        return best

    @property
    def expected_rank(self) -> Floats:
        """``[..., place]``: the mean rank of each answer."""
        mean: Floats = self.probabilities @ np.arange(
            self.probabilities.shape[-1], dtype=np.float64
        )
        return mean
