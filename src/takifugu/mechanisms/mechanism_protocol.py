"""What every mechanism knows of itself, before and after anything is spent, and may be given.

What it is given is checked once, and refused in one line. Messages name parameters. They never
repeat a value of the protected data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Floats, Integers
from takifugu.costs.losses import Loss, Metric
from takifugu.errors import InvalidMechanism, UnsoundRequest

MAX_COUNT = 2**62  # counts and sums stay below, so that noise on top of them fits int64
MAX_SCALE = 2.0**50  # a larger noise scale would push noise out of int64


def positive(value: Number, name: str) -> float:
    """``value`` as a float, if it is positive and finite."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnsoundRequest(
            f"{name} is {value!r:.80}; it must be a positive, finite number",
            field=name,
            given=value,
        ) from error
    if not 0 < number < inf:  # also false for NaN
        raise UnsoundRequest(
            f"{name} is {number}; it must be positive and finite", field=name, given=number
        )
    return number


def noise_scale(value: float) -> float:
    """``value`` as a noise scale: positive, and small enough for noise to fit int64."""
    scale = positive(value, "scale")
    if scale > MAX_SCALE:
        raise UnsoundRequest(
            f"scale is {scale:.4g}; it must be at most 2^50, so that noise fits int64",
            field="scale",
            given=scale,
            needed=MAX_SCALE,
        )
    return scale


def probability(value: float, name: str) -> float:
    """``value`` as a probability strictly between 0 and 1."""
    number = positive(value, name)
    if not number < 1:
        raise UnsoundRequest(f"{name} is {number}; it must be below 1", field=name, given=number)
    return number


def whole(value: int, name: str, *, least: int = 1) -> int:
    """``value`` as an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UnsoundRequest(
            f"{name} is {value!r}; it must be a whole number of at least {least}",
            field=name,
            given=value,
            needed=least,
        )
    return int(value)


def counts(values: ArrayLike, name: str = "values") -> Integers:
    """``values`` as int64, of any shape with at least one number."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InvalidMechanism(
            name, given="is not an array of numbers", needed="hold one number in each place"
        ) from error
    if array.size == 0:
        raise InvalidMechanism(name, given="is empty", needed="hold at least one number")
    if array.dtype.kind not in "iu":
        raise InvalidMechanism(
            name,
            given=f"is of type {array.dtype}",
            needed="hold whole numbers within int64; round or scale other numbers first",
        )
    if int(array.max()) > MAX_COUNT or int(array.min()) < -MAX_COUNT:
        raise InvalidMechanism(
            name,
            given="holds a number beyond ±2^62",
            needed="leave room for noise within int64",
        )
    return array.astype(np.int64)


def scores(values: ArrayLike, *, k: int = 1) -> Integers:
    """``[..., candidate]``: whole scores of at least ``k`` candidates in every group."""
    array = counts(values)
    if array.ndim == 0:
        raise InvalidMechanism(
            "values", given="is one number", needed="hold a score for each candidate"
        )
    if array.shape[-1] < k:
        raise InvalidMechanism(
            "k",
            given=f"is {k} with {array.shape[-1]} candidates",
            needed="be at most the number of candidates",
        )
    return array


def categories(values: Sequence[object], name: str = "categories") -> tuple[object, ...]:
    """``values`` as a tuple of at least two different categories."""
    listed = tuple(values)
    if len(listed) < 2 or len(set(listed)) != len(listed):
        raise InvalidMechanism(
            name,
            given=f"lists {len(listed)}, {len(set(listed))} of them different",
            needed="list at least two categories, each once",
        )
    return listed


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
