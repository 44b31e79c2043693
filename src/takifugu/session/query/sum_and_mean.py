"""``sum`` and ``mean`` of a column of bounded numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost
from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import BoundedMean, BoundedSum, Bounds, Mechanism, Sensitivity
from takifugu.priors import Name
from takifugu.session.possible_answers import Units
from takifugu.session.query.query import (
    DeclaredKeys,
    Noise,
    NumberQuery,
    Ranges,
    draw_filled,
    filled_groups,
    numbers_of,
)
from takifugu.tables import Engine


@dataclass(frozen=True)
class SumQuery(NumberQuery):
    """The sum of a column of bounded numbers, in whole steps."""

    kind: ClassVar[str] = "sum"
    by_distance: ClassVar[bool] = True
    answer: ClassVar[str] = "a sum"
    summary: ClassVar[str] = "the sum of {column}{by}"
    question: ClassVar[str] = "What do the numbers of {column} add up to{each}?"

    def check(self, declaration: Declaration) -> None:
        """The column must hold bounded numbers."""
        numbers_of(declaration, self.kind, self.column)

    def bounds(self, declaration: Declaration) -> Bounds:
        """What one cell adds: its bounds, and nothing where a missing value is dropped."""
        amount = declaration.amount(self.column)
        low, high = amount.low, amount.high
        if amount.missing == "drop":
            low, high = min(low, Fraction(0)), max(high, Fraction(0))
        return Bounds(low, high, amount.step)

    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """The width of the bounds, in steps, in one group."""
        width = self.bounds(declaration).width
        return Sensitivity(self.kind, l1=width, l2_squared=width**2, linf=width)

    def unit_cost(self, values: Values) -> Cost:
        """How far two numbers are apart: a change moves the sum by that many steps, and no more."""
        return values[self.column].sum()

    @classmethod
    def stored_axes(
        cls,
        query: Mapping[str, Any],  # noqa: ARG003
        keys: DeclaredKeys,  # noqa: ARG003
    ) -> list[tuple[str, Sequence[Name] | None]] | None:
        """One number for each group."""
        return []

    def exact(self, engine: Engine) -> Integers:
        """``[by]``, in steps."""
        return self._in_scope(engine, engine.sums(self.column, self.by, self.rows.scope).units)

    def unit(self, engine: Engine) -> Fraction:
        """One step."""
        return self._step(engine)

    def with_noise(self, noise: Noise, engine: Engine) -> Mechanism:
        """Noise on a sum of steps."""
        return self._total(noise, engine)

    def _total(self, noise: Noise, engine: Engine) -> BoundedSum:
        return BoundedSum(self.bounds(engine.declaration), noise)

    def noise(self, mechanism: Any) -> Noise:
        """The noise on its steps."""
        found: Noise = mechanism.noise
        return found

    def drawn(self, answer: list[Any], engine: Engine) -> list[int | None]:
        """The sums that were drawn, in steps."""
        step = self._step(engine)
        return [round(Fraction(total) / step) for total in answer]

    def units(self, engine: Engine) -> Units:
        """One step."""
        step = self._step(engine)
        groups = prod(len(keys) for _, keys in self.groups(engine))
        return Units(step.numerator, [step.denominator] * groups)

    def ranges(self, engine: Engine) -> Ranges:
        """Each row adds what its bounds allow, and nothing where a missing value is dropped."""
        bounds = self.bounds(engine.declaration)
        sizes: list[int] = np.ravel(self.public_rows(engine)).tolist()
        return [n * bounds.least for n in sizes], [n * bounds.most for n in sizes]

    def _step(self, engine: Engine) -> Fraction:
        return engine.declaration.amount(self.column).step


@dataclass(frozen=True)
class MeanQuery(SumQuery):
    """The mean of a column of bounded numbers: a noisy sum over a public number of rows."""

    kind: ClassVar[str] = "mean"
    answer: ClassVar[str] = "a mean"
    summary: ClassVar[str] = "the mean of {column}{by}"
    question: ClassVar[str] = "What is the mean of {column}{each}?"

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
        """Of numbers that are less certain in smaller groups."""
        return {**super().scales(engine, rows, filled), "per_row": True}

    def check(self, declaration: Declaration) -> None:
        """How many values there are must be public."""
        if numbers_of(declaration, self.kind, self.column).missing == "drop":
            raise UnsoundRequest(
                f"missing values of {self.column} are dropped, so how many there are is protected"
                " and a mean over them has no public size; ask for the sum, or declare what a"
                " missing value counts as",
                field=self.column,
                reason="no-public-size",
            )

    def unit(self, engine: Engine) -> Fraction:
        """One step, over the size of the smallest group."""
        return super().unit(engine) / min(filled_groups(self, engine))

    def with_noise(self, noise: Noise, engine: Engine) -> Mechanism:
        """A noisy sum, over the public number of rows."""
        return BoundedMean(self._total(noise, engine), tuple(filled_groups(self, engine)))

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """A mean for each group that has rows."""
        return draw_filled(self, mechanism, np.ravel(self.exact(engine)), engine)

    def noise(self, mechanism: Any) -> Noise:
        """That of its sum."""
        return super().noise(mechanism.total)

    def drawn(self, answer: list[Any], engine: Engine) -> list[int | None]:
        """The sums that were drawn, in steps: means times the number of rows."""
        sizes, step = np.ravel(self.public_rows(engine)).tolist(), self._step(engine)
        return [
            None if mean is None or n == 0 else round(Fraction(mean) * n / step)
            for mean, n in zip(answer, sizes, strict=True)
        ]

    def units(self, engine: Engine) -> Units:
        """One step, over as many rows as the group has."""
        step = self._step(engine)
        sizes = np.ravel(self.public_rows(engine)).tolist()
        return Units(step.numerator, [step.denominator * n for n in sizes])
