"""Algorithms 1 and 2 of "Composition for Pufferfish Privacy", and composition by its curve.

`InfluenceCurve.to_pufferfish` and `InfluenceCurve.to_dp` are Theorem 6 in both directions. Here are
composition by Theorem 7 and by the sum, and Algorithms 1 and 2. Both turn a Pufferfish ε into a
per-entry ε by the influence curve, then run a mechanism of differential privacy. As printed they
take the least over *all* points of the curve, which is group DP or worse; right is the best point
of each secret pair, then the least over the pairs (`calibrate`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, fsum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import down, up
from takifugu.costs.losses import Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.mechanisms.calibration import allowance, certify, target_of
from takifugu.mechanisms.mechanism_protocol import (
    MAX_COUNT,
    Error,
    RankProbabilities,
    positive,
    whole,
)
from takifugu.mechanisms.noise import IntegerLaplace
from takifugu.mechanisms.selection import Exponential
from takifugu.translation.curve_translation import CurveTranslation
from takifugu.translation.protocol import LossTranslation


def calibrate(curve: InfluenceCurve, epsilon: float, *, paper: bool = False) -> float:
    """The per-entry loss that a Pufferfish loss of ``epsilon`` allows, rounded down.

    Right: for each secret pair the best point of its curve, then the least over the pairs.
    ``paper=True`` is lines 1–9 of Algorithms 1 and 2 as printed: the least over *all* points,
    with ε/|I| wherever a ≥ ε. Fed with a curve, whose last point is (|I|, 0), that is never more
    than group DP: it is kept to show the difference.
    """
    if not 0 < epsilon < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"epsilon is {epsilon}; it must be positive and finite", field="epsilon", given=epsilon
        )
    if not paper:
        return float(curve.to_dp(epsilon))
    if curve.entries is None:
        raise UnsoundRequest(
            "the printed algorithm divides by |I|, and this curve is unbounded", field="curve"
        )
    room = (epsilon - curve.leak) / curve.exposed
    printed = np.where(curve.leak >= epsilon, epsilon / curve.entries, room)
    return float(down(printed.min()))


@dataclass(frozen=True)
class CurveComposition:
    """The Pufferfish loss of several releases on the same entries, three ways; upper bounds.

    Attributes:
        by_sum: The per-entry losses added, the sum translated once: the value to use.
        by_theorem_7: max a + Σ(ε − a) over the points used to calibrate each release.
        by_adding: Σ ε, what plain linear composition would say.
    """

    by_sum: float
    by_theorem_7: float
    by_adding: float


def compose_by_curve(curve: InfluenceCurve, epsilons: Sequence[float]) -> CurveComposition:
    """Releases calibrated one by one to Pufferfish losses ``epsilons`` by the pooled curve."""
    if not len(epsilons) or not all(0 < e < np.inf for e in epsilons):
        raise UnsoundRequest("every release needs a positive, finite epsilon", field="epsilons")
    pooled = curve.pooled()
    spent, leaks = [], []
    for epsilon in epsilons:
        room = np.where(pooled < epsilon, (epsilon - pooled) / curve.exposed, 0.0)
        best = int(np.argmax(room))
        if room[best] <= 0:
            raise UnsoundRequest(
                f"no point of the curve leaks less than ε = {epsilon}",
                field="curve",
                given=epsilon,
            )
        spent.append(float(room[best]))
        leaks.append(float(pooled[best]))
    by_theorem_7 = max(leaks) + fsum(e - a for e, a in zip(epsilons, leaks, strict=True))
    return CurveComposition(
        by_sum=float(curve.to_pufferfish(up(fsum(spent)))),
        by_theorem_7=float(up(by_theorem_7)),
        by_adding=float(up(fsum(epsilons))),
    )


@dataclass(frozen=True)
class PufferfishLaplace:
    """Algorithm 1: F(D) + Lap(L/ε_DP), on a grid of whole units.

    The printed algorithm adds a real number, which no computer draws. Here F(D) is rounded to a
    whole number of ``unit``s, so that its Lipschitz constant becomes ⌈L/unit⌉ units exactly, and
    the noise is the integer Laplace. L bounds the change of all answers together (in L1). If an
    entry may move ``moved`` answers that are not whole numbers of units, rounding may add a unit
    for each but the first, and L grows by that; for groups over public keys it is one answer.

    Attributes:
        epsilon: The Pufferfish loss requested.
        noise: The noise, in units.
        unit: The grid.
        paper: Whether ε_DP was computed as printed.
    """

    kind: ClassVar[str] = "pufferfish-laplace"

    epsilon: float
    noise: IntegerLaplace
    unit: Fraction
    paper: bool

    @classmethod
    def of(
        cls,
        translation: LossTranslation,
        *,
        epsilon: Number,
        lipschitz: Number = 1,
        unit: Number = 1,
        moved: int = 1,
        paper: bool = False,
    ) -> "PufferfishLaplace":
        """Calibrate to a Pufferfish ``epsilon`` by a translation."""
        moves = _in_units(lipschitz, unit) + whole(moved, "moved") - 1
        noise = IntegerLaplace.within(
            _per_entry(translation, epsilon, paper=paper), sensitivity=moves
        )
        certify(noise.loss, epsilon, translation)
        return cls(target_of(epsilon), noise, exactly(unit, "unit"), paper)

    @property
    def loss(self) -> Pure:
        """What one release costs every entry."""
        return self.noise.loss

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.noise.deviation * float(self.unit)

    def error(self) -> Error:
        """The error of the noise; the grid adds at most half a unit."""
        noise = self.noise.error()
        return Error(noise.deviation * float(self.unit), noise.interval * float(self.unit))

    def release(self, values: ArrayLike) -> Floats:
        """Z = F(D) + η for every answer given."""
        drawn = self.noise.release(_rounded(values, self.unit))
        return np.asarray(drawn * float(self.unit), np.float64)

    def simulate(self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator) -> Floats:
        """``[repetition, ...]``: the same law, from numpy."""
        drawn = self.noise.simulate(_rounded(values, self.unit), repetitions, rng=rng)
        return np.asarray(drawn * float(self.unit), np.float64)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            **self.noise.describe(),
            "kind": self.kind,
            "epsilon": self.epsilon,
            "unit": str(self.unit),
            "paper": self.paper,
        }


@dataclass(frozen=True)
class PufferfishExponential:
    """Algorithm 2: an answer r with probability ∝ exp(u(D, r)·ε_DP / 2L), scores in whole units.

    Attributes:
        epsilon: The Pufferfish loss requested.
        selection: The exponential mechanism, scores in units.
        unit: The grid to which scores are rounded; their Lipschitz constant becomes ⌈L/unit⌉.
        paper: Whether ε_DP was computed as printed.
    """

    kind: ClassVar[str] = "pufferfish-exponential"

    epsilon: float
    selection: Exponential
    unit: Fraction
    paper: bool

    @classmethod
    def of(
        cls,
        translation: LossTranslation,
        *,
        epsilon: Number,
        lipschitz: Number = 1,
        unit: Number = 1,
        k: int = 1,
        paper: bool = False,
    ) -> "PufferfishExponential":
        """Calibrate to a Pufferfish ``epsilon``; with k > 1, k rounds with ε_DP/k each."""
        moves = _in_units(lipschitz, unit)
        allowed = _per_entry(translation, epsilon, paper=paper)
        selection = Exponential.within(allowed, k=k, sensitivity=moves)
        certify(selection.pure, epsilon, translation)
        return cls(target_of(epsilon), selection, exactly(unit, "unit"), paper)

    @property
    def loss(self) -> Pure:
        """What one release costs every entry."""
        return self.selection.pure

    def probabilities(self, values: ArrayLike) -> Floats:
        """``[..., place, candidate]``: exact, from public or synthetic scores; not private."""
        return self.selection.probabilities(_rounded(values, self.unit))

    def error(self, values: ArrayLike | None = None) -> RankProbabilities:
        """The probability of each rank in each place, given public or synthetic scores."""
        return self.selection.error(None if values is None else _rounded(values, self.unit))

    def release(self, values: ArrayLike) -> Integers:
        """The answers, by position."""
        return self.selection.release(_rounded(values, self.unit))

    def simulate(
        self, values: ArrayLike, repetitions: int, *, rng: np.random.Generator
    ) -> Integers:
        """``[repetition, ..., place]``: the same law, from numpy."""
        return self.selection.simulate(_rounded(values, self.unit), repetitions, rng=rng)

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss."""
        return {
            **self.selection.describe(),
            "kind": self.kind,
            "epsilon": self.epsilon,
            "unit": str(self.unit),
            "paper": self.paper,
        }


def _per_entry(translation: LossTranslation, epsilon: Number, *, paper: bool) -> float:
    target = target_of(epsilon)
    if not paper:
        return allowance(target, translation)
    if not isinstance(translation, CurveTranslation):
        raise UnsoundRequest(
            "the printed algorithm goes through the points of an influence curve; give a curve,"
            " or leave paper=True out",
            field="translation",
        )
    return positive(
        calibrate(translation.curve, target, paper=True), "the printed per-entry epsilon"
    )


def _in_units(lipschitz: Number, unit: Number) -> int:
    moves, grid = exactly(lipschitz, "lipschitz"), exactly(unit, "unit")
    if not (moves > 0 and grid > 0):
        raise UnsoundRequest(
            "lipschitz and unit must be positive", field="unit" if moves > 0 else "lipschitz"
        )
    return ceil(moves / grid)


def _rounded(values: ArrayLike, unit: Fraction) -> Integers:
    """Every answer as a whole number of units, rounded half up, exactly.

    x ↦ ⌊x + 1/2⌋ commutes with whole steps and never decreases, so that answers at most m units
    apart, m whole, stay at most m apart. Rounding half to even would not do: 0.5 and 1.5.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise InvalidMechanism("values", given="are not finite numbers", needed="be numbers")
    if array.dtype.kind in "iu" and unit == 1:
        return array
    half = Fraction(1, 2)
    units = [floor(Fraction(x) / unit + half) for x in array.ravel().tolist()]
    if any(abs(x) > MAX_COUNT for x in units):
        raise InvalidMechanism(
            "values", given="holds a number beyond 2^62 units", needed="use a larger unit"
        )
    return np.array(units, dtype=np.int64).reshape(array.shape)
