"""What the entries of an instance have lost: whole multiples of one unit ε, on both sides.

An instance says it in words (lists, as JSON has them). From these the oracle makes matrices of
whole numbers, and takifugu a number, a profile or costs.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from takifugu.costs.cost import ANY, NOTHING, Cost, Distance, Membership
from takifugu.costs.cost import Matrix as CostMatrix
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles.all_vertices import Matrix, closed
from torture.oracles.comparison import Instance, Rng

NAMES = ("0", "1", "3", "10")  # labels that are numbers too
NUMBERS = (0, 1, 3, 10)
WRITTEN_OUT = {  # a few that come back, so that their extreme mechanisms are listed once
    2: ([[0, 2], [1, 0]], [[0, 1], [3, 0]], [[0, 1], [0, 0]]),
    3: ([[0, 2, 1], [1, 0, 1], [2, 1, 0]], [[0, 1, 2], [0, 0, 1], [1, 1, 0]]),
    4: ([[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]],),
}


def draw_spending(rng: Rng, sizes: Sequence[int], *, allowance: bool = True) -> Instance:
    """One ε, one for each entry, a cost, a cost for each entry, or what a budget allows."""
    chances = [0.35, 0.15, 0.2, 0.15, 0.15 * allowance]
    kinds = ["dp", "profile", "cost", "costs", "allowance"]
    kind = str(rng.choice(kinds, p=np.array(chances) / sum(chances)))
    if kind == "profile":
        return {"kind": kind, "times": rng.choice([0, 1, 1, 2], len(sizes)).tolist()}
    if kind == "cost":
        return {"kind": kind, "terms": _terms(rng, sizes)}
    if kind == "costs":
        some = [_terms(rng, sizes), []] if rng.random() < 0.5 else [_terms(rng, sizes)] * 2
        return {"kind": kind, "terms": [some[int(rng.integers(2))] for _ in sizes]}
    return {"kind": kind}


def _terms(rng: Rng, sizes: Sequence[int]) -> list[list[Any]]:
    most = max(sizes)
    found: list[list[Any]] = []
    for _ in range(1 + (rng.random() < 0.3)):
        match rng.integers(4):
            case 0:
                found.append(["any", 1])
            case 1:
                count = int(rng.integers(1, max(2, most)))
                found.append(["member", sorted(rng.permutation(most)[:count].tolist()), 1])
            case 2:
                low, high = ((0, 1), (0, 3), (1, 3))[int(rng.integers(3))]
                found.append(["distance", low, high, 1])
            case _:
                listed = WRITTEN_OUT[most]
                found.append(["matrix", listed[int(rng.integers(len(listed)))], 1])
    return found


def matrices(spent: Instance, sizes: Sequence[int]) -> list[Matrix]:
    """``[entry]``: what every change of value costs, in units."""
    match spent["kind"]:
        case "dp" | "allowance":
            return [_summed([["any", 1]], size) for size in sizes]
        case "profile":
            return [
                _summed([["any", n]], size) for n, size in zip(spent["times"], sizes, strict=True)
            ]
        case "cost":
            return [_summed(spent["terms"], size) for size in sizes]
        case _:
            return [_summed(terms, size) for terms, size in zip(spent["terms"], sizes, strict=True)]


def _summed(terms: list[list[Any]], size: int) -> Matrix:
    total = [[0] * size for _ in range(size)]
    for term in terms:
        for u in range(size):
            for v in range(size):
                total[u][v] += _between(term, u, v)
    return tuple(map(tuple, total))


def _between(term: list[Any], u: int, v: int) -> int:
    match term:
        case ["any", times]:
            return int(times) * (u != v)
        case ["member", inside, times]:
            return int(times) * ((u in inside) != (v in inside))
        case ["distance", low, high, times]:
            one, other = (min(max(NUMBERS[k], low), high) for k in (u, v))
            return int(times) * int(abs(one - other))
        case ["matrix", table, times]:
            return int(times) * closed(table)[u][v]
    raise ValueError(term)


def cost(terms: list[list[Any]], unit: Fraction) -> Cost:
    """The same for takifugu."""
    total = NOTHING
    for term in terms:
        match term:
            case ["any", times]:
                part = Cost.of({ANY: times * unit})
            case ["member", inside, times]:
                part = Cost.of({Membership([NAMES[k] for k in inside]): times * unit})
            case ["distance", low, high, times]:
                part = Cost.of({Distance(low, high): times * (high - low) * unit})
            case _:
                _, table, times = term
                part = Cost.of({CostMatrix(NAMES[: len(table)], table): times * unit})
        total = total + part
    return total


def entry_costs(spent: Instance, unit: Fraction) -> EntryCosts:
    """The costs of the entries, if they are not numbers."""
    if spent["kind"] == "cost":
        return EntryCosts((cost(spent["terms"], unit),))
    return EntryCosts(by_entry=tuple(cost(terms, unit) for terms in spent["terms"]))
