"""Totals over many cells, and which of them can be the worst.

Three currencies have no single order: a cell with more ε and one with more ρ are both kept. What
is kept dominates every cell, so a translation that grows with each currency has its maximum there.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from takifugu.ledger.canonical_text import read_fraction
from takifugu.losses import Loss, Total

Frontier = tuple[Total, ...]

MOST_BITS = 1200  # of a denominator; beyond it a total is rounded up, so that sums stay cheap
GRID = 2**1150
MOST_TOTALS = 8  # beyond it a frontier becomes the one total that dominates all of it
ZERO = Total()


def bounded(value: Fraction) -> Fraction:
    """``value``, exactly, unless its denominator has grown past all use; then rounded up."""
    if value.denominator.bit_length() <= MOST_BITS:
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
    parts = (total.epsilon, total.delta, total.rho)
    if all(part.denominator.bit_length() <= MOST_BITS for part in parts):
        return total
    return Total(bounded(total.epsilon), bounded(total.delta), bounded(total.rho), total.costs)


def dominates(one: Total, other: Total) -> bool:
    """Whether ``one`` is at least ``other`` in every currency."""
    scalars = one.epsilon >= other.epsilon and one.delta >= other.delta and one.rho >= other.rho
    return scalars and one.costs.dominates(other.costs)


def worst(totals: Iterable[Total]) -> Frontier:
    """The totals that no other dominates; an upper bound on them all if they are very many."""
    totals = tuple(totals)
    if not any(total.delta or total.rho or total.costs for total in totals):
        return (max(totals, key=lambda total: total.epsilon),) if totals else ()
    kept: list[Total] = []
    for total in totals:
        if any(dominates(other, total) for other in kept):
            continue
        kept = [other for other in kept if not dominates(total, other)]
        kept.append(total)
    if len(kept) > MOST_TOTALS:
        kept = [
            Total(
                max(t.epsilon for t in kept), max(t.delta for t in kept), max(t.rho for t in kept)
            )
        ]
    return tuple(sorted(kept, key=lambda t: (t.epsilon, t.delta, t.rho)))


def write(totals: Frontier) -> str:
    """A frontier as text: ε δ ρ, each an exact rational, one total after another."""
    return ";".join(
        f"{t.epsilon} {t.delta} {t.rho}" if t.delta or t.rho else f"{t.epsilon} 0 0" for t in totals
    )


def read(text: str) -> Frontier:
    """The frontier that `write` wrote."""
    return tuple(map(_total, text.split(";")))


def read_one(text: str) -> Total:
    """The one total that `write` wrote."""
    return _total(text)


def _total(text: str) -> Total:
    if text == "0 0 0":
        return ZERO
    epsilon, delta, rho = text.split(" ")
    if delta == rho == "0":
        return Total(read_fraction(epsilon))
    return Total(read_fraction(epsilon), read_fraction(delta), read_fraction(rho))
