"""Queries whose answers are numbers: integer noise on each, and an interval around it."""

from dataclasses import asdict
from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import Any, TypeVar

import numpy as np

from takifugu.engines import Engine, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.losses import Concentrated, Pure, exactly
from takifugu.mechanisms import (
    Choice,
    Error,
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    plan_histogram,
)
from takifugu.mechanisms.mechanism_plan import name, once, price
from takifugu.numeric import Floats
from takifugu.session.query.query import Aim, ChosenMechanism, Query, ResultTable, own_columns

C = TypeVar("C", bound=Choice[Any, Any])
Noise = IntegerLaplace | IntegerGaussian


class NumberQuery(Query):
    """A query that is answered by integer noise on each of its numbers."""

    def unit(self, engine: Engine) -> Fraction:  # noqa: ARG002
        """By how much one unit of noise moves the answer, in the group that it moves most."""
        return Fraction(1)

    def with_noise(self, noise: Noise, engine: Engine) -> Mechanism:  # noqa: ARG002
        """Noise as the mechanism of this query."""
        return noise

    def interval(self, mechanism: Mechanism, engine: Engine) -> Floats:
        """``[number]``: half the width of a 95 % interval around each number that is shown."""
        cells = prod(len(keys) for _, keys in self.axes(engine))
        return np.full(cells, mechanism.error().interval)

    def shown(self, answer: list[Any], engine: Engine) -> list[Any]:  # noqa: ARG002
        """What a result shows for what was drawn; None where there is nothing to show."""
        return answer

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """Integer noise on every number, counted in the unit of the answer."""
        size, groups = shape(self, engine)
        moves, unit = self.sensitivity(engine.declaration), self.unit(engine)
        if aim.allowed is not None:
            found = plan_histogram(size, groups, loss=aim.allowed, sensitivity=moves)
            goal = f"within {price(aim.allowed)} per entry"
        else:
            near = exactly(aim.within or 0, "within")
            steps = floor(near / unit)  # rounded down: nearer, if anything
            if steps < 1:
                raise UnsoundRequest(
                    f"within is {float(near):g}, less than the unit of the answer, {float(unit):g};"
                    " give that or more",
                    field="within",
                    given=near,
                    needed=unit,
                )
            found = plan_histogram(
                size,
                groups,
                within=steps,
                confidence=aim.probability,
                sensitivity=moves,
                delta=aim.delta,
            )
            goal = (
                f"to keep each number within ±{float(near):.4g} with probability"
                f" {aim.probability:.3g}"
            )
        best = in_currency(found.choices, aim)
        noise: Noise = best.mechanism
        error = Error(best.error.deviation * float(unit), best.error.interval * float(unit))
        each = "number" if unit == 1 else f"number (one unit of noise is {float(unit):.4g})"
        reason = (
            f"{goal}, {name(noise)} has a standard deviation of {error.deviation:.4g} on each"
            f" {each} and costs {price(noise.loss)} per entry{once(groups)}"
        )
        return ChosenMechanism(self.with_noise(noise, engine), asdict(error), reason)

    def table(self, mechanism: Mechanism, answer: list[Any], engine: Engine) -> ResultTable:
        """The keys, the number that was drawn, and both ends of its interval."""
        axes = self.axes(engine)
        names = tuple(name for name, _ in axes)
        keys = product(*(keys for _, keys in axes))
        halves = self.interval(mechanism, engine).tolist()
        rows = tuple(
            (*key, None, None, None) if value is None else (*key, value, value - half, value + half)
            for key, value, half in zip(keys, self.shown(answer, engine), halves, strict=True)
        )
        return (*names, *own_columns(names, "estimate", "low", "high")), rows


def shape(query: Query, engine: Engine) -> tuple[int, int]:
    """How many numbers each group has, and how many groups there are."""
    lengths = [len(keys) for _, keys in query.axes(engine)]
    groups = prod(lengths[: len(query.by)])
    if groups == 0:
        raise InvalidQuery("by", given="has no keys", needed="have at least one group")
    return prod(lengths) // groups, groups


def in_currency(choices: tuple[C, ...], aim: Aim) -> C:
    """The best choice whose own loss is in ε, or in ρ if a δ was given."""
    kind = Pure if aim.delta is None else Concentrated
    return next(choice for choice in choices if isinstance(choice.mechanism.loss, kind))


def filled_groups(query: Query, engine: Engine) -> list[int]:
    """The sizes of the groups that have rows: public."""
    sizes = [int(n) for n in np.ravel(query.public_rows(engine)) if n > 0]
    if not sizes:
        raise InvalidQuery("window", given="holds no rows", needed="hold at least one")
    return sizes


def draw_filled(query: Query, mechanism: Mechanism, exact: Any, engine: Engine) -> list[Any]:
    """``exact[group, ...]`` with noise; None for a group without rows, which has no answer."""
    filled = np.ravel(query.public_rows(engine)) > 0
    drawn = iter(np.ravel(mechanism.release(exact[filled])).tolist())
    return [next(drawn) if has_rows else None for has_rows in filled.tolist()]
