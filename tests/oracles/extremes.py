"""The truth where float64 ends: sums over everything in numbers without a smallest exponent.

All numbers are mpmath's, with 60 digits and exponents of any size; a sum of non-negative products
loses nothing there, and 0 is 0 only if a factor is. Slow, obvious, and nothing is shared with what
it checks but the tables of the prior.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import mpmath

mp = mpmath.mp.clone()
mp.dps = 60
NEVER = -mp.inf

State = tuple[int, ...]
Law = Mapping[State, Any]
Side = Sequence[int]
Table = tuple[tuple[int, ...], Any]  # the entries that a table is about, and its cells


def law(sizes: Sequence[int], tables: Iterable[Table]) -> Law:
    """The probability of every state that is possible."""
    listed = list(tables)
    weights = {}
    for state in product(*map(range, sizes)):
        weight = mp.mpf(1)
        for scope, cells in listed:
            weight *= mp.mpf(float(cells[tuple(state[v] for v in scope)]))
        if weight > 0:
            weights[state] = weight
    total = sum(weights.values())
    return {state: weight / total for state, weight in weights.items()}


def given(whole: Law, entry: int, side: Side) -> Law:
    """The law given that ``entry`` is one of ``side``; empty if that cannot happen."""
    part = {state: weight for state, weight in whole.items() if state[entry] in side}
    total = sum(part.values())
    return {state: weight / total for state, weight in part.items()}


def leaks(whole: Law, entries: int, entry: int, left: Side, right: Side) -> list[Any] | None:
    """``[b − 1]``: the paper's a*(b) of an ordered pair, over all sets; None if it is no secret."""
    one, other = given(whole, entry, left), given(whole, entry, right)
    if not one or not other:
        return None
    best, found = mp.inf, []
    for b in range(1, entries + 1):
        for exposed in combinations(range(entries), b):
            if entry in exposed:
                best = min(best, leak(one, other, [v for v in range(entries) if v not in exposed]))
        found.append(best)
    return found


def leak(one: Law, other: Law, seen: Sequence[int]) -> Any:
    """The largest log of P(seen | one) / P(seen | other), at least 0."""
    sums = []
    for side in (one, other):
        found: dict[State, Any] = {}
        for state, weight in side.items():
            key = tuple(state[v] for v in seen)
            found[key] = found.get(key, mp.mpf(0)) + weight
        sums.append(found)
    ratios = [mp.log(p / sums[1][key]) if key in sums[1] else mp.inf for key, p in sums[0].items()]
    return max([mp.mpf(0), *ratios])


def product_loss(
    whole: Law, sizes: Sequence[int], epsilon: float, entry: int, left: Side, right: Side
) -> Any:
    """What the worst product mechanism leaks, over all of them; −∞ if the pair is no secret.

    A product of factors 1 and e^ε, one for each entry, is per-entry ε-DP: a lower bound on the
    loss of all mechanisms.
    """
    one, other = given(whole, entry, left), given(whole, entry, right)
    if not one or not other:
        return NEVER
    gain = mp.exp(mp.mpf(epsilon))
    masks = [
        list(range(2**size)) if v != entry else [sum(1 << x for x in left)]
        for v, size in enumerate(sizes)
    ]
    worst = mp.mpf(0)
    for chosen in product(*masks):
        means = []
        for side in (one, other):
            mean = mp.mpf(0)
            for state, weight in side.items():
                high = sum(mask >> x & 1 for mask, x in zip(chosen, state, strict=True))
                mean += weight * gain**high
            means.append(mean)
        worst = max(worst, mp.log(means[0] / means[1]))
    return worst


def counting_loss(whole: Law, epsilon: float, entry: int, left: Side, right: Side) -> Any:
    """What a noisy count of ``left`` leaks: the worst of all in attractive fields of 0 and 1."""
    one, other = given(whole, entry, left), given(whole, entry, right)
    gain = mp.exp(mp.mpf(epsilon))
    means = [
        sum(weight * gain ** sum(x in left for x in state) for state, weight in side.items())
        for side in (one, other)
    ]
    return mp.log(means[0] / means[1])


def powers(kernel: Any, most: int) -> list[Any]:
    """The matrix to the power 1, 2, …, ``most``."""
    matrix = exact_rows(kernel)
    found = [matrix]
    for _ in range(most - 1):
        found.append(times(found[-1], matrix))
    return found


def exact_rows(kernel: Any) -> list[list[Any]]:
    """The rows of a matrix divided by their exact sums."""
    rows = [[mp.mpf(float(cell)) for cell in row] for row in kernel]
    return [[cell / sum(row) for cell in row] for row in rows]


def times(a: list[list[Any]], b: list[list[Any]]) -> list[list[Any]]:
    """The product of two matrices."""
    return [
        [
            sum((x * row[k] for x, row in zip(line, b, strict=True)), mp.mpf(0))
            for k in range(len(b[0]))
        ]
        for line in a
    ]


def chain_laws(start: Any, kernel: Any, length: int) -> list[list[Any]]:
    """The law of each of the first ``length`` entries."""
    first = [mp.mpf(float(p)) for p in start]
    found = [[p / sum(first) for p in first]]
    matrix = exact_rows(kernel)
    for _ in range(length - 1):
        found.append(times([found[-1]], matrix)[0])
    return found


def chain_leak(
    steps: Sequence[Any],
    laws: Sequence[Sequence[Any]],
    entry: int,
    left: Side,
    right: Side,
    before: int | None,
    after: int | None,
) -> Any:
    """What the entries at these distances to both sides tell; None: nothing is seen there."""
    now = laws[entry]
    mass = [sum(now[x] for x in side) for side in (left, right)]
    if not all(mass):
        return None
    n = len(now)
    pasts = [None] if before is None else [k for k in range(n) if laws[entry - before][k] > 0]
    worst = mp.mpf(0)
    for past in pasts:
        came = [
            now[x]
            if past is None or before is None
            else laws[entry - before][past] * steps[before - 1][past][x]
            for x in range(n)
        ]
        for z in [None] if after is None else range(n):
            goes = [
                mp.mpf(1) if z is None or after is None else steps[after - 1][x][z]
                for x in range(n)
            ]
            p, q = (
                sum((came[x] * goes[x] for x in side), mp.mpf(0)) / total
                for side, total in zip((left, right), mass, strict=True)
            )
            if p > 0:
                worst = max(worst, mp.log(p / q) if q > 0 else mp.inf)
    return worst


def interval_leaks(
    steps: Sequence[Any],
    laws: Sequence[Sequence[Any]],
    entry: int,
    sides: tuple[Side, Side],
    most: int,
    length: int,
) -> list[Any]:
    """a*(1), … a*(most) of a chain: the least leak over intervals around an entry.

    `NEVER` from where on nothing is seen.
    """
    best, found = mp.inf, []
    for b in range(1, most + 1):
        for before in range(1, b + 1):
            after = b + 1 - before
            ends = (
                before if before <= entry else None,
                after if after <= length - 1 - entry else None,
            )
            value = chain_leak(steps, laws, entry, *sides, *ends)
            best = min(best, NEVER if value is None else value)
        found.append(best)
    return found


def mixture_loss(
    prior: Any, probabilities: Any, counts: Any, left: Iterable[Any], right: Iterable[Any]
) -> Any:
    """The log of P(outputs | left) / P(outputs | right) when output w is seen counts[w] times."""
    sums = []
    for side in (left, right):
        total = sum((mp.mpf(float(prior[d])) for d in side), mp.mpf(0))
        if total == 0:
            return None
        seen = mp.mpf(0)
        for d in side:
            weight = mp.mpf(float(prior[d]))
            for w, count in enumerate(counts):
                weight *= mp.mpf(float(probabilities[d][w])) ** int(count)
            seen += weight
        sums.append(seen / total)
    if sums[0] == 0:
        return NEVER
    return mp.log(sums[0] / sums[1]) if sums[1] > 0 else mp.inf
