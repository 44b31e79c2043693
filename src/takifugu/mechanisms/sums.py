"""Bounded sums and means, on a grid of whole units.

A sum of floats depends on its order and rounds by more than one entry's share, so that "one entry
moves it by at most the width" is false for floats. Here every entry is clamped to declared bounds
and rounded to a whole number of declared units *before* it is added. Sums are then exact, their
sensitivity is a whole number, and integer noise protects them as it stands. The rounding costs at
most half a unit an entry, known in advance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number, exactly, shown
from takifugu._core.numeric import Floats, Integers
from takifugu.costs.losses import Loss
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms.mechanism_protocol import MAX_COUNT, Error, Sensitivity, counts, whole
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace, calibrated_noise
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class Bounds:
    """What one entry may be: from ``low`` to ``high``, in steps of ``unit``.

    >>> Bounds(0, 10, "0.5").width
    20
    """

    low: Fraction
    high: Fraction
    unit: Fraction

    def __init__(self, low: Number, high: Number, unit: Number = 1) -> None:
        for name, value in (("low", low), ("high", high), ("unit", unit)):
            object.__setattr__(self, name, exactly(value, name))
        if not self.unit > 0:
            raise UnsoundRequest(
                f"unit is {shown(self.unit)}; it must be positive",
                field="unit",
                given=self.unit,
            )
        if not self.low < self.high:
            raise UnsoundRequest(
                f"bounds go from {shown(self.low)} to {shown(self.high)}; low must be below high",
                field="bounds",
                reason="empty",
            )
        if not 1 <= self.width <= 2**40:
            raise UnsoundRequest(
                f"bounds are {self.width} units wide; they must span from 1 to 2^40 units",
                field="bounds",
                reason="width",
                given=self.width,
            )
        if max(abs(self.least), abs(self.most)) > 2**50:
            raise UnsoundRequest(
                "bounds lie more than 2^50 units from 0; choose a larger unit",
                field="bounds",
                reason="range",
            )

    @property
    def least(self) -> int:
        """``low`` in whole units."""
        return _nearest(self.low / self.unit)

    @property
    def most(self) -> int:
        """``high`` in whole units."""
        return _nearest(self.high / self.unit)

    @property
    def width(self) -> int:
        """How many units one replaced entry moves the sum by, at most."""
        return self.most - self.least

    def units(self, entries: ArrayLike) -> Integers:
        """Every entry in whole units, clamped; an entry that is not a number is refused."""
        array = np.asarray(entries)
        if array.dtype.kind not in "iuf":
            raise InvalidMechanism(
                "entries", given=f"are of type {array.dtype}", needed="be numbers"
            )
        numbers = array.astype(np.float64)
        if np.isnan(numbers).any():
            raise InvalidMechanism(
                "entries", given="hold a value that is not a number", needed="be numbers only"
            )
        with np.errstate(over="ignore"):  # beyond all bounds is clamped like any other
            inside = np.clip(np.rint(numbers / float(self.unit)), self.least, self.most)
        return inside.astype(np.int64)

    def total(self, entries: ArrayLike) -> int:
        """The exact sum of the entries in whole units."""
        units = self.units(entries).ravel()
        # 2^11 numbers of at most 2^50 add up within int64; their sums are added as whole numbers
        total = sum(int(units[i : i + 2**11].sum()) for i in range(0, len(units), 2**11))
        if abs(total) > MAX_COUNT:
            raise InvalidMechanism(
                "entries", given="add up to more than 2^62 units", needed="use a larger unit"
            )
        return total


@dataclass(frozen=True)
class BoundedSum:
    """Sums of bounded entries, given in whole units, with integer noise.

    ``values`` are exact sums in units: `Bounds.total` of the entries of each group, or what
    a database added up over a column of whole units.

    Attributes:
        bounds: What one entry may be.
        noise: Integer Laplace or Gaussian noise whose sensitivity is the width of the bounds.
    """

    kind: ClassVar[str] = "bounded-sum"

    bounds: Bounds
    noise: IntegerLaplace | IntegerGaussian

    def __post_init__(self) -> None:
        if self.noise.sensitivity.linf < self.bounds.width:
            raise UnsoundRequest(
                f"noise is for a change of {self.noise.sensitivity.linf} units; one entry moves"
                f" this sum by {self.bounds.width}. Use noise of that sensitivity",
                field="noise",
                given=self.noise.sensitivity.linf,
                needed=self.bounds.width,
            )

    @classmethod
    def laplace(cls, bounds: Bounds, scale: float) -> "BoundedSum":
        """Laplace noise of ``scale`` units."""
        return cls(bounds, IntegerLaplace(scale, _moves(bounds)))

    @classmethod
    def gaussian(cls, bounds: Bounds, scale: float) -> "BoundedSum":
        """Gaussian noise of ``scale`` units."""
        return cls(bounds, IntegerGaussian(scale, _moves(bounds)))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        bounds: Bounds,
        delta: float | None = None,
    ) -> "BoundedSum":
        """Laplace noise within a Pufferfish ``epsilon``; Gaussian when a ``delta`` is allowed."""
        noise = calibrated_noise(
            epsilon=epsilon, delta=delta, translation=translation, sensitivity=_moves(bounds)
        )
        return cls(bounds, noise)

    @property
    def loss(self) -> Loss:
        """What the noise loses."""
        return self.noise.loss

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, in the units of the entries."""
        return self.noise.deviation * float(self.bounds.unit)

    @property
    def rounding(self) -> float:
        """How far the grid may move the sum for every entry that was added."""
        return float(self.bounds.unit) / 2

    def error(self) -> Error:
        """The error of the noise, in the units of the entries; `rounding` comes on top."""
        return _scaled(self.noise.error(), float(self.bounds.unit))

    def release(self, values: ArrayLike) -> Floats:
        """Noisy sums in the units of the entries, one for every group."""
        return np.asarray(self.noise.release(values) * float(self.bounds.unit), np.float64)

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Floats:
        """``[repetition, ...]``: the same law, from numpy."""
        drawn = self.noise.simulate(values, repetitions, rng=rng)
        return np.asarray(drawn * float(self.bounds.unit), np.float64)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {**self.noise.describe(), "kind": self.kind, **_bounds_words(self.bounds, self)}


@dataclass(frozen=True)
class BoundedMean:
    """Means of bounded entries: noisy sums over the number of entries, which is public.

    Replacement leaves the number of entries as it is; it is part of what everybody knows. Groups
    of different public sizes are given as an array.

    Attributes:
        total: The mechanism for the sums.
        entries: How many entries each sum is over.
    """

    kind: ClassVar[str] = "bounded-mean"

    total: BoundedSum
    entries: tuple[int, ...]

    def __post_init__(self) -> None:
        sizes = counts(np.atleast_1d(np.asarray(self.entries)), "entries").ravel().tolist()
        object.__setattr__(self, "entries", tuple(whole(n, "entries") for n in sizes))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number,
        translation: LossTranslation,
        bounds: Bounds,
        entries: ArrayLike,
        delta: float | None = None,
    ) -> "BoundedMean":
        """As `BoundedSum.calibrated`, for means over ``entries`` entries."""
        total = BoundedSum.calibrated(
            epsilon=epsilon, translation=translation, bounds=bounds, delta=delta
        )
        return cls(total, tuple(np.atleast_1d(np.asarray(entries)).tolist()))

    @property
    def loss(self) -> Loss:
        """What the noise on the sums loses."""
        return self.total.loss

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on the mean of the smallest group."""
        return self.total.deviation / min(self.entries)

    def error(self) -> Error:
        """The error of the mean of the smallest group; rounding adds at most half a unit."""
        return _scaled(self.total.error(), 1 / min(self.entries))

    def release(self, values: ArrayLike) -> Floats:
        """Noisy means, given exact sums in whole units."""
        return np.asarray(self.total.release(self._sums(values)) / self._sizes())

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: "np.random.Generator"
    ) -> Floats:
        """``[repetition, group]``: the same law, from numpy."""
        drawn = self.total.simulate(self._sums(values), repetitions, rng=rng)
        return np.asarray(drawn / self._sizes())

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {**self.total.describe(), "kind": self.kind, "entries": list(self.entries)}

    def _sizes(self) -> Floats:
        return np.array(self.entries, dtype=np.float64)

    def _sums(self, values: ArrayLike) -> Integers:
        sums = np.atleast_1d(counts(values))
        if sums.shape != (len(self.entries),):
            raise InvalidMechanism(
                "values",
                given=f"has shape {sums.shape}",
                needed=f"hold a sum for each of the {len(self.entries)} groups",
            )
        return sums


def _nearest(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def _moves(bounds: Bounds) -> Sensitivity:
    width = bounds.width
    return Sensitivity("sum", l1=width, l2_squared=width**2, linf=width)


def _scaled(error: Error, factor: float) -> Error:
    return Error(error.deviation * factor, error.interval * factor)


def _bounds_words(bounds: Bounds, of: BoundedSum) -> Mapping[str, Any]:
    error = of.error()
    return {
        "bounds": {name: str(getattr(bounds, name)) for name in ("low", "high", "unit")},
        "noise": of.noise.kind,
        "error": {"deviation": error.deviation, "interval": error.interval},
        "rounding": of.rounding,
    }
