r"""Sums of bounded numbers: ``sum``, ``mean`` and ``linear``, a sum with declared weights.

*Weighted sums.* The policy declares the weights, by the keys of a public column.
The evening load of a grid is :math:`\sum_r w_{k(r)} x_r`: every row r adds its number, times the
weight of its hour k(r). The hour is public and stays as it is; the number is protected, clamped and
rounded to steps as for a sum. Weights are rational, so that with g a common unit of them the answer
is a whole number of steps times g, and integer noise protects it.

*What it costs.* If the number of row r changes from u to v, the exact answer moves by
:math:`|w_{k(r)}|` times their distance after clamping and rounding, :math:`d(u, v)`, and by nothing
else. Laplace noise of scale b costs :math:`|w_{k(r)}|\,d(u,v)/b` at that row, and at every row at
most :math:`\max_k |w_k|\,d(u,v)/b`: the cost of a sum whose steps are as large as the largest
weight. A charge has one loss for all rows that it names, so this is what is charged, on the rows
whose weight is not 0. The others are not read and lose nothing.

*Why not less.* If X is a Gaussian process and the query is :math:`a^T X` of numbers that are *not*
clamped, the shifts of other entries may cancel: it costs :math:`|\sum_j a_j K_{ji}/K_{ii}|` times
the distance over b. With clamping they need not, because an entry beyond its bounds does not move.
Take an AR(1) process with ρ = −1/2, three entries with the means 0, 1000 and 0, bounds from −100 to
100, weights 1, b = 5 and the secret whether the first entry is 0 or 10. Unclamped the sum shifts by
10·(1 − 1/2 + 1/4) = 7.5 and costs 1.5. Clamped, the second entry counts as 100 in either case, and
the sum shifts by 10·(1 + 1/4) = 12.5: it costs 2.5. So the price of a declared unclamped query is
no bound for what is asked of a table, and is not used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm, prod
from typing import Any, ClassVar, Self

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import TooLarge, UnsoundRequest, one_of
from takifugu.mechanisms import BoundedMean, BoundedSum, Bounds, Mechanism, Sensitivity
from takifugu.mechanisms.mechanism_protocol import MAX_COUNT
from takifugu.priors import Name
from takifugu.session.possible_answers import Units
from takifugu.session.query.query import (
    Aim,
    ChosenMechanism,
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
class BoundedQuery(NumberQuery):
    """A query that adds up a column of bounded numbers, and is charged by their distance."""

    by_distance: ClassVar[bool] = True

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

    def unit_cost(self, values: Values) -> Cost:
        """How far two numbers are apart: a change moves the sum by that many steps, and no more."""
        return values[self.column].sum()

    def unit(self, engine: Engine) -> Fraction:
        """One step."""
        return engine.declaration.amount(self.column).step

    def units(self, engine: Engine) -> Units:
        """The unit of the answer, in each group."""
        unit, groups = self.unit(engine), prod(len(keys) for _, keys in self.groups(engine))
        return Units(unit.numerator, [unit.denominator] * groups)


@dataclass(frozen=True)
class SumQuery(BoundedQuery):
    """The sum of a column of bounded numbers, in whole steps."""

    kind: ClassVar[str] = "sum"
    answer: ClassVar[str] = "a sum"
    summary: ClassVar[str] = "the sum of {column}{by}"
    question: ClassVar[str] = "What do the numbers of {column} add up to{each}?"

    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """The width of the bounds, in steps, in one group."""
        width = self.bounds(declaration).width
        return Sensitivity(self.kind, l1=width, l2_squared=width**2, linf=width)

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


MAX_WEIGHT_DIGITS = 12  # of the whole numbers that weights become
Weights = tuple[tuple[Name, Fraction], ...]


@dataclass(frozen=True)
class WeightedSum:
    """A linear query as a policy declares it.

    Attributes:
        column: The column of numbers that is added up.
        by: The public column whose keys have weights.
        weights: The weight of each key; one that is left out has the weight 0. Keys may be text
            where the column has whole numbers, as TOML has no other keys. A float is the decimal
            number that it prints as.
    """

    column: str
    by: str
    weights: tuple[tuple[Name, Fraction], ...]

    def __init__(self, column: str, by: str, weights: Mapping[Any, Number]) -> None:
        for field, name in (("column", column), ("by", by)):
            if not isinstance(name, str) or not name:
                raise InvalidQuery(field, given="is not text", needed="be the name of a column")
        if not isinstance(weights, Mapping) or not weights:
            raise InvalidQuery(
                "weights", given="are missing", needed=f"map keys of {by} to numbers, as '1/2'"
            )
        found = []
        for key, weight in weights.items():
            if type(key) not in (str, int) or isinstance(weight, bool):
                raise InvalidQuery(
                    "weights", given="are something else", needed="map keys to numbers, as '1/2'"
                )
            written = repr(weight) if isinstance(weight, float) else weight
            found.append((key, exactly(written, f"weights, {key}")))
        if not any(weight for _, weight in found):
            raise InvalidQuery("weights", given="are all 0", needed="have one that is not")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "weights", tuple(found))

    def by_key(self, declaration: Declaration) -> Weights:
        """The weight of every key of the public column, in its order.

        Raises, with both lists side by side, unless all that have a weight are declared keys.
        """
        public = {category.column: category for category in declaration.public}
        if self.by not in public:
            raise InvalidQuery(
                f"weights by {self.by}",
                given="are not by a public column",
                needed=one_of(public) if public else "be left out: no column is public",
            )
        keys = public[self.by].keys
        if public[self.by].values is None:
            raise InvalidQuery(
                f"weights by {self.by}",
                given="are by a column whose keys are read from the data",
                needed="be by a column whose values the declaration lists",
            )
        names = {str(key): key for key in keys}
        found: dict[Name, Fraction] = {}
        for key, weight in self.weights:
            known = key if key in keys else names.get(str(key))
            if known is None or known in found:
                listed = ", ".join(repr(k) for k, _ in self.weights)
                raise InvalidQuery(
                    "weights",
                    given=f"name {key!r:.80}{'' if known is None else ' twice'}",
                    needed=f"name keys of {self.by} once each. Weights: {listed:.400}; {self.by}:"
                    f" {', '.join(map(repr, keys)):.400}",
                )
            found[known] = weight
        return tuple((key, found.get(key, Fraction(0))) for key in keys)

    def rows_read(
        self, declaration: Declaration, where: Mapping[str, Sequence[Name]]
    ) -> Mapping[str, Sequence[Name]]:
        """``where`` without the keys whose weight is 0: their rows are not read, nor charged."""
        weights = self.by_key(declaration)
        asked = where.get(self.by)
        read = tuple(key for key, w in weights if w and (asked is None or key in asked))
        if not read:
            raise InvalidQuery(
                f"where, {self.by}",
                given="keeps only keys whose weight is 0",
                needed="keep one that has another weight",
            )
        if asked is None and len(read) == len(weights):
            return where
        unknown = [key for key in asked or () if key not in dict(weights)]
        return {**where, self.by: (*read, *unknown)}  # an unknown one is refused as ever


def declared_sums(
    linear: Mapping[str, WeightedSum], declaration: Declaration, columns: Sequence[str]
) -> dict[str, WeightedSum]:
    """The same queries; refused unless each fits the table and the columns of a session."""
    for name, declared in linear.items():
        if not isinstance(declared, WeightedSum):
            raise InvalidQuery(
                f"linear, {name}", given="is something else", needed="be a `WeightedSum`"
            )
        if declared.column not in columns:
            raise InvalidQuery(
                f"linear, {name}",
                given=f"adds up {declared.column!r:.80}",
                needed=f"add up a column of the session: {', '.join(columns)}",
            )
        numbers_of(declaration, WeightedSumQuery.kind, declared.column)
        declared.by_key(declaration)
    return dict(linear)


@dataclass(frozen=True)
class WeightedSumQuery(BoundedQuery):
    """A weighted sum of a column of bounded numbers.

    Attributes:
        name: What the policy calls it.
        weighted_by: The public column whose keys have weights.
        weights: The weight of every key of it.
    """

    kind: ClassVar[str] = "linear"
    answer: ClassVar[str] = "a weighted sum"
    summary: ClassVar[str] = "the weighted sum {query} of {column}{by}"
    question: ClassVar[str] = (
        "What is the sum of {column}, weighted by {weighted_by} ({query}){each}?"
    )

    name: str = ""
    weighted_by: str = ""
    weights: Weights = ()

    def declared(self, name: str, declared: WeightedSum, declaration: Declaration) -> Self:
        """The same with the weights that a policy declares."""
        weights = declared.by_key(declaration)
        return replace(self, name=name, weighted_by=declared.by, weights=weights)

    @property
    def title(self) -> str:
        """What it is about, for people."""
        return f"{self.name}: {self.column}, weighted by {self.weighted_by}"

    def check(self, declaration: Declaration) -> None:
        """The column must hold bounded numbers, the weights must be plain, and groups disjoint."""
        super().check(declaration)
        if self.weighted_by in self.by:
            raise InvalidQuery(
                f"by, {self.weighted_by}",
                given="has the weights of the query",
                needed="be left out: each of its keys has one weight; ask for a sum by it",
            )
        largest = max(abs(weight) for weight in self.whole_weights)
        if largest >= 10**MAX_WEIGHT_DIGITS:
            raise TooLarge(
                f"the weights of {self.name} are whole multiples of {float(self._common):.4g} and"
                f" reach {largest:,} of them; at most 10^{MAX_WEIGHT_DIGITS} are possible: give"
                " weights with fewer digits",
                field="weights",
                size=largest,
                limit=10**MAX_WEIGHT_DIGITS,
            )

    @property
    def _common(self) -> Fraction:
        """The largest number of which every weight is a whole multiple."""
        given = [weight for _, weight in self.weights if weight]
        below = lcm(*(weight.denominator for weight in given))
        return Fraction(gcd(*(int(weight * below) for weight in given)), below)

    @property
    def whole_weights(self) -> tuple[int, ...]:
        """The weight of every key in common units."""
        return tuple(int(weight / self._common) for _, weight in self.weights)

    def body(self) -> dict[str, Any]:
        """With the weights by content: another declaration is another query."""
        return {
            **super().body(),
            "query": self.name,
            "weighted_by": self.weighted_by,
            "weights": [[key, str(weight)] for key, weight in self.weights],
        }

    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """The width of the bounds times the largest weight of a row that is read."""
        chosen = self.rows.scope.where.get(self.weighted_by)
        read = [
            abs(whole)
            for (key, _), whole in zip(self.weights, self.whole_weights, strict=True)
            if chosen is None or key in chosen
        ]
        width = self.bounds(declaration).width * max(read)
        return Sensitivity(self.kind, l1=width, l2_squared=width**2, linf=width)

    def cells_of_a_group(self, engine: Engine) -> int:
        """A sum for each key that has a weight of its own."""
        return len(engine.keys(self.weighted_by))

    def exact(self, engine: Engine) -> Integers:
        """``[by]``, in steps times the common unit of the weights."""
        found = engine.sums(self.column, (self.weighted_by, *self.by), self.rows.scope)
        place = {key: code for code, key in enumerate(engine.keys(self.weighted_by))}
        total: Any = np.zeros(found.units.shape[1:], dtype=object)  # of whole numbers of any size
        for (key, _), whole in zip(self.weights, self.whole_weights, strict=True):
            total = total + whole * found.units[place[key]].astype(object)
        return self._in_scope(engine, np.asarray(total).astype(np.int64))

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """Integer noise; refused first, by what is public, if the answer may not fit in 64 bits."""
        bounds = self.bounds(engine.declaration)
        largest = max(abs(whole) for whole in self.whole_weights)
        most = max(abs(bounds.least), abs(bounds.most)) * largest * engine.count(self.rows.scope)
        if most > MAX_COUNT:
            raise TooLarge(
                f"{self.name} may add up to {most:.4g} units, and 2^62 are possible; give weights"
                " with fewer digits, or a larger step",
                field="weights",
                size=most,
                limit=MAX_COUNT,
            )
        return super().choose(engine, aim)

    def unit(self, engine: Engine) -> Fraction:
        """One step, times the common unit of the weights."""
        return super().unit(engine) * self._common

    def ranges(self, engine: Engine) -> Ranges:
        """Each row adds its weight times what its bounds allow: by the public rows of each key."""
        bounds = self.bounds(engine.declaration)
        found = engine.histogram((self.weighted_by, *self.by), self.rows.scope)
        place = {key: code for code, key in enumerate(engine.keys(self.weighted_by))}
        least: Any = np.zeros(found.counts.shape[1:], dtype=object)  # of any size
        most = least
        for (key, _), whole in zip(self.weights, self.whole_weights, strict=True):
            rows = found.counts[place[key]].astype(object)
            ends = sorted((whole * bounds.least, whole * bounds.most))
            least, most = least + rows * ends[0], most + rows * ends[1]
        low, high = (np.ravel(self._in_scope(engine, np.asarray(end))) for end in (least, most))
        return low.tolist(), high.tolist()
