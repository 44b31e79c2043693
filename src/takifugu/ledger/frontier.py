"""Totals over many cells, and which of them can be the worst.

Currencies and shapes of costs have no single order: a cell with more ε and one with more ρ are both
kept, and so are cells from which different labels were counted. Whatever a cell has lost, some
total that is kept is at least that, in each currency and for every change of value.
"""

import json
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil, fsum
from typing import Any

from takifugu.costs.cost import ANY, Cost, Shape, shape_of
from takifugu.costs.losses import Loss, Total
from takifugu.ledger.canonical_text import read_fraction

Frontier = tuple[Total, ...]

MAX_TOTAL_BITS = 1200  # of a denominator; beyond it a total is rounded up, so that sums stay cheap
GRID = 2**1150
MAX_TOTALS = 8  # beyond it some become one total that dominates them
ZERO = Total()
NO_AMOUNT = Fraction(0)
FLOAT_TOLERANCE = 1e-9  # a relative difference that no rounding of floats makes


def bounded(value: Fraction) -> Fraction:
    """``value``, exactly, unless its denominator has grown past all use; then rounded up."""
    if value.denominator.bit_length() <= MAX_TOTAL_BITS:
        return value
    return Fraction(ceil(value * GRID), GRID)


def add(total: Total, loss: Loss) -> Total:
    """A total and one more loss."""
    return _bounded(total.plus(loss))


def joined(first: Total, second: Total) -> Total:
    """Two totals on the same entries, added."""
    if first is ZERO:
        return second
    if second is ZERO:
        return first
    return _bounded(
        Total(
            first.epsilon + second.epsilon,
            first.delta + second.delta,
            first.rho + second.rho,
            first.costs + second.costs,
        )
    )


def _bounded(total: Total) -> Total:
    parts = (total.epsilon, total.delta, total.rho, *(value for _, value in total.costs.terms))
    if all(part.denominator.bit_length() <= MAX_TOTAL_BITS for part in parts):
        return total
    costs = Cost.of({shape: bounded(value) for shape, value in total.costs.terms})
    return Total(bounded(total.epsilon), bounded(total.delta), bounded(total.rho), costs)


def dominates(larger: Total, total: Total) -> bool:
    """Whether ``larger`` is at least ``total`` in every currency, for every change of value.

    What the costs of ``total`` have beyond those of ``larger`` is at most the sum of the
    coefficients, times [u≠v]: what ``larger`` has more of ε may make up for it.
    """
    if larger.epsilon < total.epsilon or larger.delta < total.delta or larger.rho < total.rho:
        return False
    if not total.costs or larger is total or larger.costs is total.costs:
        return True
    if _size(larger) < _size(total) * (1 - FLOAT_TOLERANCE):
        return False  # ε and all coefficients together are clearly less
    known, room = larger.costs.coefficients, larger.epsilon - total.epsilon
    for shape, value in total.costs.terms:
        beyond = value - known.get(shape, NO_AMOUNT)
        if beyond > 0:
            room -= beyond * shape.diameter
            if room < 0:
                return False
    return True


def _size(total: Total) -> float:
    return float(total.epsilon) + total.costs.size


def covering(totals: Iterable[Total]) -> Total:
    """The least total, coefficient by coefficient, that dominates all of ``totals``."""
    totals = tuple(totals)
    return Total(
        max(total.epsilon for total in totals),
        max(total.delta for total in totals),
        max(total.rho for total in totals),
        reduce(Cost.joined, (total.costs for total in totals)),
    )


def regardless_of_values(totals: Iterable[Total], *, renamed_before: bool = False) -> Total:
    r"""A total that dominates all of ``totals`` whatever the values of a cell are called now.

    A cost by value is about names: the count of ``other`` tells two cells apart if one of them was
    called ``other`` when it was counted. Let f be how raw cells were read then (list, map, bounds,
    step) and f' how they are read now. A release at cost c has likelihoods that change by at most
    :math:`e^{c(f(x), f(y))}` if one raw cell changes from x to y. Nothing is known of f at a value
    of f', so the bound on a change from u to v is the largest over the raw cells that are read so,

    .. math:: C(u, v) = \max_{f'(x) = u,\ f'(y) = v} c(f(x), f(y)) \le \max c, \qquad C(u, u) = 0,

    as for ranges of numbers (`takifugu.binding.protected_values`), with the same assumption: given
    how all cells are read, what else a raw cell holds is independent of the other cells. The
    largest entry of c, the scalar, does not mention f. So it stays what it was: any change of a raw
    cell moves a sum by at most its width, and costs a count at most ε, wherever bounds, steps or
    labels are put later. The same holds for ρ and (ε, δ), which bound every change of a cell alike.

    Costs that were charged under one reading add up before the largest entry is taken. With
    ``renamed_before`` they were charged under several, by versions that did not notice: labels that
    look disjoint may then be of one raw cell, so the largest entries add up instead.
    """
    scalars = [
        Total(
            total.epsilon + sum(s.diameter * value for s, value in total.costs.terms)
            if renamed_before
            else total.scalar,
            total.delta,
            total.rho,
        )
        for total in totals
    ]
    return covering(scalars)


def worst(totals: Iterable[Total]) -> Frontier:
    """The totals that no other dominates; upper bounds on several of them if they are very many."""
    totals = tuple(totals)
    if not any(total.delta or total.rho or total.costs for total in totals):
        return (max(totals, key=lambda total: total.epsilon),) if totals else ()
    few = any(total.costs for total in totals)
    undominated: list[Total] = []
    for total in totals:
        if any(other is total or dominates(other, total) for other in undominated):
            continue
        undominated = [other for other in undominated if not dominates(total, other)]
        undominated = (
            _with(undominated, total)
            if few and len(undominated) == MAX_TOTALS
            else [*undominated, total]
        )
    if len(undominated) > MAX_TOTALS:
        undominated = [covering(undominated)]
    return tuple(sorted(undominated, key=_order))


def _order(total: Total) -> tuple[Fraction, Fraction, Fraction, str]:
    return total.epsilon, total.delta, total.rho, _costs_text(total.costs) if total.costs else ""


def _with(totals: list[Total], more: Total) -> list[Total]:
    """No more totals than ``totals``, which dominate these and ``more``: one of them covers it.

    Counts of other labels in other windows are incomparable, and may be many. A single total for
    all of them would say that some entry lost all of that.
    """
    least = min(totals, key=lambda total: _growth(total, more))
    joint = covering((least, more))
    others = (total for total in totals if total is not least and not dominates(joint, total))
    return [*others, joint]


def _growth(total: Total, more: Total) -> tuple[float, float]:
    """How much two totals grow if one is to cover both: in δ and ρ first, then in ε and costs.

    Floats, each rounded once: every process chooses the same.
    """
    sizes, others = total.costs.sizes, more.costs.sizes
    apart = [abs(float(total.epsilon) - float(more.epsilon))]
    apart += [abs(value - others.get(shape, 0.0)) for shape, value in sizes.items()]
    apart += [value for shape, value in others.items() if shape not in sizes]
    return float(abs(total.delta - more.delta) + abs(total.rho - more.rho)), fsum(apart)


def write(totals: Frontier) -> str:
    """A frontier as text: ε δ ρ, each an exact rational, then costs; one total after another.

    Costs are JSON without a space or a semicolon, and left out where there are none.
    """
    return ";".join(map(_text, totals))


def _text(total: Total) -> str:
    scalars = f"{total.epsilon} 0 0"
    if total.delta or total.rho:
        scalars = f"{total.epsilon} {total.delta} {total.rho}"
    return f"{scalars} {_costs_text(total.costs)}" if total.costs else scalars


def _costs_text(costs: Cost) -> str:
    return costs.text.replace(" ", "\\u0020").replace(";", "\\u003b")


def total_document(total: Total) -> dict[str, Any]:
    """A total as JSON: exact rationals as text, and costs where there are some."""
    scalars = {"epsilon": str(total.epsilon), "delta": str(total.delta), "rho": str(total.rho)}
    return scalars | ({"costs": total.costs.document()} if total.costs else {})


def read(text: str) -> Frontier:
    """The frontier that `write` wrote; a `ValueError` if it wrote none such."""
    return tuple(map(_total, text.split(";")))


def read_one(text: str) -> Total:
    """The one total that `write` wrote; a `ValueError` if it wrote none such."""
    return _total(text)


def _total(text: str) -> Total:
    if text == "0 0 0":
        return ZERO
    epsilon, delta, rho, *costs = text.split(" ")
    if costs:
        (document,) = costs
        cost = _costs(document)
        return Total(read_fraction(epsilon), read_fraction(delta), read_fraction(rho), cost)
    if delta == rho == "0":
        return Total(read_fraction(epsilon))
    return Total(read_fraction(epsilon), read_fraction(delta), read_fraction(rho))


@lru_cache(maxsize=512)
def _costs(text: str) -> Cost:
    coefficients = {}
    try:
        for value, shape in json.loads(text):
            known = _shape(json.dumps(shape, ensure_ascii=True, separators=(",", ":")))
            coefficients[known] = read_fraction(value)
    except (TypeError, AttributeError) as error:
        raise ValueError("costs that are no list of coefficients and shapes") from error
    costs = Cost.of(coefficients)
    if not coefficients or ANY in coefficients or _costs_text(costs) != text:
        raise ValueError("costs that are none, that belong to ε, or that are written differently")
    return costs


@lru_cache(maxsize=4096)
def _shape(text: str) -> Shape:
    return shape_of(json.loads(text))
