r"""``quantile`` of bounded numbers: counted on a public grid, chosen by distance in rank.

With b values below a candidate c, a above it and n in all, c is an exact quantile of level p
if b ≤ pn ≤ n − a. Its *rank distance* is how far pn lies outside, max(b − pn, pn − (n − a), 0). One
replaced value moves b − pn and pn − (n − a) by at most 1, also where a missing value is dropped
and n with it (1 − p or p); so the distance moves by at most 1. Some candidate of the grid is at
distance 0, whatever the values. (The usual score, |(1−p) b − p a|, has no such candidate where
values tie: with 45 % below c and all others at c it prefers what lies below c to the median c.)

Scores are minus the distance in units of 1/q for a level p/q, so that they are whole numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, expm1, inf, log1p
from typing import Any, ClassVar, Self

import numpy as np

from takifugu._core.exact import Number, exactly, shown
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import float_down, float_up
from takifugu.costs.losses import Concentrated, Loss
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.mechanisms import Exponential, Mechanism, PermuteAndFlip, Sensitivity
from takifugu.mechanisms.calibration import least_scale
from takifugu.mechanisms.mechanism_protocol import MAX_COUNT
from takifugu.mechanisms.mechanism_protocol import probability as checked_chance
from takifugu.mechanisms.planner import name, once, price
from takifugu.session.cells import Rows
from takifugu.session.possible_answers import AnswerTable
from takifugu.session.query.query import (
    CONFIDENCE,
    Aim,
    ChosenMechanism,
    Query,
    draw_filled,
    numbers_of,
    own_columns,
    shape,
)
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine

MAX_CANDIDATES = 2**16  # of one group
LEVEL_PARTS = 10**6  # levels are rounded to this part
Picker = PermuteAndFlip | Exponential


@dataclass(frozen=True)
class QuantileQuery(Query):
    """The number of a grid below which a given share of the values lies.

    Attributes:
        level: The share, 1/2 for the median.
        every: How many steps one cell of the grid is wide; values count as its lower end.
    """

    kind: ClassVar[str] = "quantile"
    summary: ClassVar[str] = "the {quantile} of {column}{by}"
    question: ClassVar[str] = "Below which number lies the share {level} of {column}{each}?"

    level: Fraction = Fraction(1, 2)
    every: int = 1

    @classmethod
    def of(
        cls,
        options: QueryOptions,
        declaration: Declaration,
        columns: tuple[str, ...],
        rows: Rows,
    ) -> Self:
        """With a level of at most six digits and a grid of whole steps."""
        (column,) = columns
        level = Fraction(round(exactly(options.level or 0, "level") * LEVEL_PARTS), LEVEL_PARTS)
        every = 1
        if options.grid is not None:
            step = numbers_of(declaration, cls.kind, column).step
            cells = exactly(options.grid, "grid") / step
            if cells.denominator != 1 or cells < 1:
                raise InvalidQuery(
                    "grid",
                    given=f"is {shown(cells * step)}",
                    needed=f"be a multiple of the step of {column}, {shown(step)}",
                )
            every = int(cells)
        return cls(column, options.by, rows, level=level, every=every)

    def check(self, declaration: Declaration) -> None:
        """The column must hold bounded numbers, and the grid must not be too fine."""
        amount = numbers_of(declaration, self.kind, self.column)
        if not 0 < self.level < 1:
            raise InvalidQuery(
                "level", given=f"is {shown(self.level)}", needed="be between 0 and 1"
            )
        cells = amount.cells(self.every)
        if cells > MAX_CANDIDATES:
            coarse = -(-(amount.width + 1) // MAX_CANDIDATES) * amount.step
            raise TooLarge(
                f"the grid of {self.column} has {cells:,} cells; at most {MAX_CANDIDATES:,} can be"
                f" chosen from: give `grid`, at least {shown(coarse)}",
                field="grid",
                size=cells,
                limit=MAX_CANDIDATES,
            )
        if cells < 2:
            raise InvalidQuery("grid", given="has one cell", needed="have two or more")

    def body(self) -> dict[str, Any]:
        """With the level and the grid."""
        return {**super().body(), "level": str(self.level), "every": self.every}

    def candidates(self, declaration: Declaration) -> list[float]:
        """The lower end of each cell."""
        return [float(edge) for edge in declaration.amount(self.column).grid(self.every)]

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """How far the rank of an answer may be from the requested one, at most."""
        level = float(self.level)
        return {
            "one": "a rank",
            "low": np.zeros(len(rows)),
            "high": rows * max(level, 1 - level),
            "size": rows * min(level, 1 - level) / 2,
            "error": "ranks",
        }

    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """Every score moves by at most 1 rank, q in its own unit."""
        cells, q = declaration.amount(self.column).cells(self.every), self.level.denominator
        return Sensitivity(self.kind, l1=cells * q, l2_squared=cells * q**2, linf=q)

    def cells_of_a_group(self, engine: Engine) -> int:
        """The cells of the grid."""
        return engine.declaration.amount(self.column).cells(self.every)

    def exact(self, engine: Engine) -> Integers:
        """``[by, candidate]``: minus the rank distance of each candidate, in 1/q."""
        counted = engine.distribution(self.column, self.by, self.rows.scope, every=self.every)
        counts = self._in_scope(engine, counted.counts)
        p, q = self.level.numerator, self.level.denominator
        upto = np.cumsum(counts, axis=-1)  # n − a
        target, below = p * upto[..., -1:], upto - counts
        outside = np.maximum(q * below - target, target - q * upto)
        return np.asarray(-np.maximum(outside, 0), dtype=np.int64)

    def sizes(self, engine: Engine) -> list[int]:
        """``[group]``: how many rows each group has; refused if scores would leave int64."""
        sizes: list[int] = np.ravel(self.public_rows(engine)).tolist()
        if sum(sizes) * self.level.denominator > MAX_COUNT:
            raise TooLarge(
                "there are too many rows for this level; give it fewer digits", field="level"
            )
        return sizes

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """Permute-and-flip over the grid, or the exponential mechanism for a loss in ρ."""
        _, groups = shape(self, engine)
        moves = self.sensitivity(engine.declaration).linf
        cells = engine.declaration.amount(self.column).cells(self.every)
        if not any(self.sizes(engine)):
            raise InvalidQuery(
                "window", given="holds no rows", needed="hold at least one", reason="no-rows"
            )
        if aim.allowed is not None:
            mechanism = picker(aim.allowed, moves)
        else:
            mechanism = picker_within(
                aim.within or 0,
                aim.probability,
                cells,
                moves,
                concentrated=aim.delta is not None,
            )
        ranks = ranks_of(mechanism, cells)
        loss: Loss = mechanism.loss
        reason = (
            f"mechanism: {name(mechanism)} over {cells} numbers, which names one whose rank is"
            f" within {ranks:.4g} of the requested rank with probability {CONFIDENCE:g}, whatever"
            f" the values; a per-entry DP loss of {price(loss)}{once(groups)}"
        )
        error = {"ranks": ranks, "confidence": CONFIDENCE, "candidates": cells}
        return ChosenMechanism(mechanism, error, reason)

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """The place of a candidate for each group that has rows."""
        exact = self.exact(engine)
        return draw_filled(self, mechanism, exact.reshape(-1, exact.shape[-1]), engine)

    def tabulated(
        self,
        mechanism: Any,
        answer: list[Any],
        engine: Engine,
        error: Mapping[str, Any],  # noqa: ARG002
    ) -> AnswerTable:
        """Levels between which each number is a quantile; none where their number is protected."""
        axes = self.axes(engine)
        names = tuple(name for name, _ in axes)
        numbers = self.candidates(engine.declaration)
        ranks = ranks_of(mechanism, len(numbers))
        counted = engine.declaration.amount(self.column).missing != "drop"
        rows = []
        keys = product(*(keys for _, keys in axes))
        for key, place, size in zip(keys, answer, self.sizes(engine), strict=True):
            if place is None:
                rows.append((*key, None, None, None))
            else:
                ends = levels(self.level, ranks, size) if counted else (None, None)
                rows.append((*key, numbers[place], *ends))
        columns = (*names, *own_columns(names, "estimate", "low level", "high level"))
        return AnswerTable(columns, tuple(rows))  # a number of the grid is possible as it is


def picker(loss: Loss, moves: int) -> Picker:
    """The least noise within a loss: permute-and-flip, or a concentrated exponential mechanism."""
    if not isinstance(loss, Concentrated):
        return PermuteAndFlip.within(loss.epsilon, sensitivity=moves)
    most = float_down(loss.rho)
    if not most > 0:
        raise UnsoundRequest("nothing may be lost (ρ is 0); a release always loses some")
    scale = least_scale(
        moves / (2 * most) ** 0.5,  # ρ = (2·moves / scale)² / 8
        lambda s: Exponential(s, 1, moves, currency="concentrated").concentrated.rho,
        most,
    )
    return Exponential(scale, 1, moves, currency="concentrated")


def picker_within(
    ranks: Number, confidence: float, cells: int, moves: int, *, concentrated: bool
) -> Picker:
    """The most noise whose answer is within ``ranks`` with ``confidence``, whatever the values."""
    distance = exactly(ranks, "within")
    if not distance > 0:
        raise UnsoundRequest(f"within is {shown(distance)} ranks; ask for more than 0")
    beyond = exponential_beyond if concentrated else flips_beyond
    noise = reach(beyond, cells, confidence) * (1 + 1e-12)
    scale = float(distance * moves) / noise
    if concentrated:
        return Exponential(scale, 1, moves, currency="concentrated")
    return PermuteAndFlip(scale, 1, moves)


def ranks_of(mechanism: Picker, cells: int, confidence: float = CONFIDENCE) -> float:
    """The answer is within so many ranks with at least this probability, whatever the values."""
    beyond = flips_beyond if isinstance(mechanism, PermuteAndFlip) else exponential_beyond
    return reach(beyond, cells, confidence) * mechanism.scale / mechanism.sensitivity


def flips_beyond(cells: int, distance: float) -> float:
    r"""At most the probability that permute-and-flip names none within ``distance`` noise scales.

    It names the largest of score/scale + Exp(1) (Ding et al., 2021). One candidate is at 0; at
    worst all others are just beyond. With :math:`r = e^{-d}` the first loses with probability
    :math:`1 − (1 − (1−r)^m) / (m r)`.
    """
    r = exp(-distance)
    if r >= 1:
        return 1 - 1 / cells
    first = -expm1(cells * log1p(-r)) / (cells * r) if r > 0 else 1.0
    return max(1 - first, 0.0)


def exponential_beyond(cells: int, distance: float) -> float:
    """The same for the exponential mechanism: m − 1 others of weight e^(−distance) each."""
    others = (cells - 1) * exp(-distance)
    return others / (1 + others)


def reach(beyond: Callable[[int, float], float], cells: int, confidence: float) -> float:
    """The least distance, in noise scales and from above, that holds with ``confidence``."""
    miss = 1 - checked_chance(confidence, "confidence")
    low, high = 0.0, 1.0
    while beyond(cells, high) > miss:
        low, high = high, 2 * high
        if high > 2**12:
            raise UnsoundRequest(f"confidence is {confidence}; no noise is that certain")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(cells, middle) <= miss else (middle, high)
    return high


def levels(level: Fraction, ranks: float, rows: int) -> tuple[float, float]:
    """The levels between which an answer within ``ranks`` is an exact quantile."""
    away = ranks / rows if rows else inf
    return max(0.0, float(level) - away), min(1.0, float_up(level) + away)
