"""Tables: a translation computed once and cached, monotone, tied to its prior and secrets.

The loss never falls as ε rises, so between two points of the grid the loss at the next larger ε
holds, and an allowance is the last ε whose loss still fits. Nothing stronger is true in general:
the loss is neither concave nor convex, and loss/ε is not monotone either (P(X₂=1|X₁) = .01 and
.001: it rises before it falls). So the grid is made fine instead: neighbouring ε, and neighbouring
losses, differ by at most a given share, and no more than that is lost.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import tee
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.fingerprint import ByContent, fingerprint
from takifugu._core.numeric import Floats, frozen
from takifugu.costs.cost import NOTHING, Cost
from takifugu.costs.losses import Total
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.priors.documents import read_json, write_json
from takifugu.translation.certify.closed import epsilon_up
from takifugu.translation.protocol import LossTranslation, total_to_pufferfish
from takifugu.translation.translation import Method, Translation
from takifugu.visible import four_digits

Progress = Callable[[int, int], None]  # points done, of about how many
TABLE_KIND = "translation-table"
DEFAULT_SHARE = 0.02  # by how much neighbouring points may differ
MAX_FILLING_ROUNDS = 6  # of filling gaps in which the loss rose faster than foreseen
FORESEEN_STEEPENING = 1.1  # the next step is assumed to be this much steeper than the last
MAX_SLOPE = 8.0  # how much faster than ε the loss may rise before a gap is left to be filled


@dataclass(frozen=True, eq=False)
class TranslationTable(ByContent, LossTranslation):
    """Losses on a grid of ε.

    Attributes:
        about: The fingerprint of the priors, secrets and uncertainty that it was computed for.
        epsilon: ``[point]``: per-entry ε, rising.
        loss: ``[point]``: at least the Pufferfish loss there; it never falls.
    """

    about: str
    epsilon: Floats
    loss: Floats
    _grid: list[float] = field(init=False, repr=False, metadata={"identity": False})
    _losses: list[float] = field(init=False, repr=False, metadata={"identity": False})

    def __post_init__(self) -> None:
        grid, losses = frozen(self.epsilon), frozen(self.loss)
        fine = grid.ndim == 1 and grid.shape == losses.shape and grid.size > 0
        if not fine or not ((grid > 0).all() and (np.diff(grid) > 0).all()):
            raise UnsoundRequest(
                "a table needs rising ε above 0, and a loss for each", field="epsilon"
            )
        if not ((losses >= grid * (1 - 1e-12)) | (losses == 0)).all() or np.isnan(losses).any():
            raise UnsoundRequest(
                "a table has a loss below its ε; no proof gives that", field="loss"
            )
        if (losses[1:] < losses[:-1]).any():
            raise UnsoundRequest("a table has a loss that falls as ε rises", field="loss")
        object.__setattr__(self, "epsilon", grid)
        object.__setattr__(self, "loss", losses)
        object.__setattr__(self, "_grid", grid.tolist())
        object.__setattr__(self, "_losses", losses.tolist())

    def to_pufferfish(self, dp: ArrayLike) -> Floats | float:
        """The loss of ``dp`` per entry: that of the next point; beyond the last one, an error."""
        if isinstance(dp, float | int):
            return self._loss(float(dp))
        losses: Floats = np.vectorize(self._loss, otypes=[np.float64])(np.asarray(dp))
        return losses

    def to_dp(self, pufferfish: ArrayLike) -> Floats | float:
        """The largest ε of the grid whose loss is at most ``pufferfish``; below it, an error."""
        if isinstance(pufferfish, float | int):
            return self._allowed(float(pufferfish))
        allowed: Floats = np.vectorize(self._allowed, otypes=[np.float64])(np.asarray(pufferfish))
        return allowed

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """As `Translation.total_to_pufferfish`, on the grid; infinite beyond its end."""
        return total_to_pufferfish(self._point, total, delta)

    def _point(self, dp: float) -> tuple[float, float]:
        """The first point of the grid that is not below ``dp``."""
        point = bisect_left(self._grid, dp)
        if point == len(self._grid):
            return np.inf, np.inf
        return self._grid[point], self._losses[point]

    def _loss(self, dp: float) -> float:
        if dp == 0:
            return 0.0
        if not 0 < dp <= self._grid[-1]:  # also false for NaN
            raise UnsoundRequest(
                f"ε = {four_digits(dp, 'up')} is not in the table, which ends at"
                f" {four_digits(Fraction(self._grid[-1]), 'down')}; translate without it, or"
                " tabulate further",
                field="table",
                given=dp,
                needed=self._grid[-1],
            )
        return self._losses[bisect_left(self._grid, dp)]

    def _allowed(self, target: float) -> float:
        if target == 0:
            return 0.0
        points = bisect_right(self._losses, target)
        if not 0 < target < np.inf or not points:  # also for NaN
            first = self._losses[0]
            raise UnsoundRequest(
                f"a loss of {four_digits(target, 'down')} is not in the table, which begins at"
                f" {four_digits(Fraction(first) if first < np.inf else first, 'up')}; translate"
                " without it, or tabulate from a smaller loss",
                field="table",
                given=target,
                needed=first,
            )
        return self._grid[points - 1]

    def save(self, path: Path | str) -> None:
        """Write the table as JSON, with its own fingerprint; whole or not at all."""
        document = {
            "kind": TABLE_KIND,
            "about": self.about,
            "epsilon": self.epsilon.tolist(),
            "loss": [value if np.isfinite(value) else "infinity" for value in self._losses],
            "fingerprint": self.fingerprint,
        }
        write_json(document, Path(path))

    @classmethod
    def load(cls, path: Path | str, translation: Translation) -> "TranslationTable":
        """Read a table; one that was edited, or computed for something else, is refused."""
        path = Path(path)
        document = _document(path)
        try:
            losses = [np.inf if v == "infinity" else float(v) for v in document["loss"]]
            grid = [float(v) for v in document["epsilon"]]
            table = cls(str(document["about"]), np.array(grid), np.array(losses))
            own = str(document["fingerprint"])
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InvalidFile(
                str(path), given="is not a table of losses", needed="be one that was saved here"
            ) from error
        if own != table.fingerprint:
            raise InvalidFile(
                str(path),
                given="was changed after it was made",
                needed="be as it was saved; delete it and tabulate again",
                reason="edited",
            )
        if table.about != translation.fingerprint:
            raise InvalidFile(
                str(path),
                given="was made for another prior, other secrets or another uncertainty",
                needed="be made for these; delete it and tabulate again",
                reason="about",
            )
        return table


class TabledTranslation(LossTranslation):
    """A table, and the translation that it was made from for what the table does not hold.

    A query may ask for far more than any budget allows. It gets its price, and what would be
    accepted, wherever the table happens to end. Both parts are sound, and so is every mixture.

    Attributes:
        least: Below this Pufferfish loss `to_dp` allows nothing. By default it is where the table
            begins, so that no allowance has to be searched for; 0 computes what lies below.
    """

    def __init__(
        self, translation: Translation, table: TranslationTable, *, least: float | None = None
    ) -> None:
        self._translation, self._table = translation, table
        self._first, self._last = float(table.loss[0]), float(table.epsilon[-1])
        self._least = self._first if least is None else least

    @property
    def computed(self) -> Translation:
        """The translation that the table was made from."""
        return self._translation

    @property
    def least(self) -> float:
        """The smallest positive Pufferfish loss that `to_dp` is meant for."""
        return self._least

    @property
    def fingerprint(self) -> str:
        """That of the table, which pins the translation that it was made from."""
        return self._table.fingerprint

    @property
    def every_pair(self) -> bool:
        """Whether each pair of values of each entry is secret."""
        return self._translation.every_pair

    def to_pufferfish(self, dp: float, /) -> float:
        """The Pufferfish loss of a per-entry loss, rounded up."""
        part = self._table if dp <= self._last else self._translation
        return float(part.to_pufferfish(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """The per-entry loss that a Pufferfish loss allows, rounded down; 0 below ``least``."""
        if 0 <= pufferfish < self.least:
            return 0.0
        part = self._translation if 0 < pufferfish < self._first else self._table
        return float(part.to_dp(pufferfish))

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """The Pufferfish ε of a total at ``delta``, rounded up; computed if the table ends."""
        loss = self._table.total_to_pufferfish(total, delta)
        return loss if loss < inf else self._translation.total_to_pufferfish(total, delta)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """The loss if every entry has lost at most one of ``costs``, rounded up; computed.

        From the table where every cost is a scalar one.
        """
        if all(cost.is_scalar for cost in costs):
            top = max((cost.scalar for cost in costs), default=Fraction(0))
            return self.to_pufferfish(epsilon_up(top)) if top else 0.0
        return self._translation.cost_to_pufferfish(*costs)

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """The largest factor of ``unit`` that a Pufferfish loss allows, rounded down; computed."""
        if all(cost.is_scalar for cost in (unit, *spent, *beside)):
            return super().to_cost(unit, pufferfish, spent=spent, beside=beside)
        return self._translation.to_cost(unit, pufferfish, spent=spent, beside=beside)


def table_beside(prior: Path, translation: Translation) -> Path:
    """Where the table of a prior belongs: next to its file, one for each choice of secrets."""
    mark = fingerprint((translation.secrets, float(translation.uncertainty)))[:8]
    return prior.with_name(f"{prior.name}.{mark}.table.json")


def tabulate(
    translation: Translation,
    *,
    losses: tuple[float, float] = (0.05, 10.0),
    share: float = DEFAULT_SHARE,
    progress: Progress | None = None,
) -> TranslationTable:
    """The best bound on a grid that covers Pufferfish losses from ``losses[0]`` to ``losses[1]``.

    Neighbouring ε differ by at most ``share``, and so do neighbouring losses, as far as a few
    rounds of filling gaps achieve. It ends early where no bound is finite.
    """
    low, high = losses
    if not 0 < low < high < np.inf:
        raise UnsoundRequest(
            f"losses are {losses}; they must be two rising, positive numbers",
            field="losses",
            given=losses,
        )
    if not 0.001 <= share <= 1:
        raise UnsoundRequest(
            f"share is {share}; it must be from 0.001 to 1", field="share", given=share
        )
    grid, values = _marched(translation, _first(translation, low), high, share, progress)
    for _ in range(MAX_FILLING_ROUNDS):
        steep = np.flatnonzero(values[1:] > values[:-1] * (1 + share) * (1 + 1e-9))
        if not len(steep):
            break
        middles = np.sqrt(grid[steep] * grid[steep + 1])
        between = np.array(list(_losses(translation, middles.tolist())))
        grid, values = np.concatenate([grid, middles]), np.concatenate([values, between])
        order = np.argsort(grid)
        grid, values = grid[order], values[order]
    return _rising_table(translation, grid, values)


def tabulate_at(translation: Translation, grid: Sequence[float]) -> TranslationTable:
    """The best bound at each of a few rising ε: quick to make, and coarse in between."""
    values = np.array(list(_losses(translation, grid)))
    return _rising_table(translation, np.asarray(grid, dtype=np.float64), values)


def _rising_table(translation: Translation, grid: Floats, values: Floats) -> TranslationTable:
    """More ε never loses less, so the bound of a larger ε holds for a smaller one."""
    rising = np.minimum.accumulate(values[::-1])[::-1]
    return TranslationTable(translation.fingerprint, grid, rising)


def _first(translation: Translation, low: float) -> float:
    """An ε whose loss is at most ``low``, and which is more than half of the largest such ε."""
    methods: tuple[Method, ...] = ("group",) if translation.curve_waits else ("curve", "group")
    quick = max(float(translation.to_dp(low, method)) for method in methods)
    first = quick or float(translation.to_dp(low))
    if not first > 0:
        raise UnsoundRequest(
            f"no ε is known to stay within a loss of {low:g}; there is nothing to tabulate",
            field="losses",
            reason="allowance",
        )
    while translation.bound(2 * first).value <= low:
        first *= 2
    return first


def _marched(
    translation: Translation, first: float, high: float, share: float, progress: Progress | None
) -> tuple[Floats, Floats]:
    """Points from ``first`` until the loss is above ``high``, in steps that fit its slope.

    What is computed at a point depends on the points before it alone, so that a table that reaches
    further has the same points as a shorter one, and more.
    """
    grid: list[float] = []
    values: list[float] = []

    def onwards() -> Iterator[float]:
        yield first
        while values[-1] <= high:
            slope = 1.0
            if len(values) > 1:
                slope = (
                    FORESEEN_STEEPENING
                    * np.log(values[-1] / values[-2])
                    / np.log(grid[-1] / grid[-2])
                )
            yield grid[-1] * (1 + share) ** (1 / min(max(slope, 1.0), MAX_SLOPE))

    def recorded() -> Iterator[float]:
        for epsilon in onwards():
            grid.append(epsilon)
            yield epsilon

    for value in _losses(translation, recorded()):
        if not np.isfinite(value):  # here the bound ends, and so does the table
            grid.pop()
            break
        values.append(value)
        if progress is not None:
            left = np.log(max(high / value, 1.0)) / np.log1p(share)
            progress(len(values), len(values) + int(left))
    if not values:
        raise UnsoundRequest(
            "the bound is infinite from the first point on; there is nothing to tabulate",
            field="losses",
            reason="infinite",
        )
    return np.array(grid), np.array(values)


def _losses(translation: Translation, grid: Iterable[float]) -> Iterator[float]:
    """The best bound at each ε of a grid, which may be a generator that uses earlier bounds."""
    first, second = tee(grid)
    transported = _transported(translation, first)
    for epsilon in second:
        loss, solved = next(transported, (np.inf, False))
        if not solved:
            with_curve = translation.curve_may_help(loss)
            others: tuple[Method, ...] = ("curve", "group") if with_curve else ("group",)
            loss = min(loss, *(translation.bound(epsilon, method).value for method in others))
        yield loss


def _transported(translation: Translation, grid: Iterable[float]) -> Iterator[tuple[float, bool]]:
    """The transport bound of each ε, and whether no other method can have a lower one."""
    from takifugu.translation.models.chain_transport import ChainTransport

    transport = translation.transport
    if isinstance(transport, ChainTransport) and not translation.uncertainty:
        yield from transport.rising(grid)
    elif transport is not None:
        for epsilon in grid:
            yield translation.bound(epsilon, "transport").value, False


def _document(path: Path) -> dict[str, Any]:
    document = read_json(path, needed="be a readable table")
    if not isinstance(document, dict) or document.get("kind") != TABLE_KIND:
        raise InvalidFile(str(path), given="is not a table", needed=f"be of kind {TABLE_KIND!r}")
    return document
