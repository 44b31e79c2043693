"""What it costs to shift an entry by a distance, rounded up."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from takifugu._rounding import UNIT, float_down, float_up
from takifugu.costs import Column, Cost, Distance, Jointly, Shape, Steps
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats

TINY = 2.0**-1022  # a smaller product may be rounded down to 0


def share_of_shift(shape: Shape, distances: Floats) -> Floats:
    """The most that ``shape`` may cost between two numbers that are this far apart.

    Numbers clamped to bounds are no farther apart than before, and no farther than the bounds:
    min(distance / width, 1). Rounded to steps they may be one step further apart. Any other shape
    may cost its diameter between any two numbers that differ.
    """
    moved = distances > 0
    if isinstance(shape, Distance | Steps):
        width = float_down(shape.high - shape.low)
        if width == 0:  # below all floats
            return moved.astype(np.float64)
        with np.errstate(over="ignore"):
            part = distances / width * (1 + 2 * UNIT)
            if isinstance(shape, Steps):  # rounded apart by one step more, at most
                part = (part + float_up(Fraction(1, shape.count))) * (1 + 2 * UNIT)
        return np.where(moved, np.clip(part, TINY, 1.0), 0.0)
    if isinstance(shape, Column | Jointly):
        about = shape.column if isinstance(shape, Column) else ", ".join(shape.columns)
        raise UnsoundRequest(
            f"a cost is about column {about!r}, and the entries of a Gaussian are single"
            " numbers; give a cost that names no column",
            field="columns",
            needed=about,
        )
    return np.where(moved, float_up(shape.diameter), 0.0)


def largest_cost(costs: Iterable[Cost], distances: Floats) -> Floats:
    """The most that any of ``costs`` charges for each of some distances."""
    largest = np.zeros(np.shape(distances))
    for cost in costs:
        total = np.zeros(np.shape(distances))
        for shape, value in cost.terms:
            total = total + times_up(float_up(value), share_of_shift(shape, distances))
        np.maximum(largest, total * (1 + 2 * len(cost.terms) * UNIT), out=largest)
    return largest


def times_up(factor: float | Floats, shares: Floats) -> Floats:
    """The product, rounded up; 0 only where a factor is."""
    with np.errstate(under="ignore", over="ignore"):
        product = np.maximum(factor * shares * (1 + 2 * UNIT), TINY)
    return np.where((np.asarray(factor) > 0) & (shares > 0), product, 0.0)


def slope_and_jump(cost: Cost) -> tuple[float, float]:
    """A and b with cost ≤ a·distance + b, both rounded up: distances, and all other shapes."""
    slope, jump = 0.0, 0.0
    for shape, value in cost.terms:
        if isinstance(shape, Distance | Steps):
            slope += float_up(value / (shape.high - shape.low))
            if isinstance(shape, Steps):
                jump += float_up(value / shape.count)
        else:
            jump += float_up(value * shape.diameter)
    units = 1 + 2 * len(cost.terms) * UNIT
    return slope * units, jump * units
