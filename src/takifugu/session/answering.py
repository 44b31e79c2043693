"""From an exact answer to the rows of a result: draw once, store what was drawn, show it."""

from itertools import product
from math import prod
from typing import Any

import numpy as np

from takifugu.engines import Engine
from takifugu.engines.apart import apart
from takifugu.mechanisms import BoundedMean, Mechanism
from takifugu.numeric import Floats, Integers
from takifugu.session.problems import ReleaseFailed
from takifugu.session.quantiles import QuantileOf, levels, ranks_of
from takifugu.session.queries import MeanOf, ProportionsOf, Query, TopOf

Rows = tuple[tuple[Any, ...], ...]


def drawn(query: Query, mechanism: Mechanism, engine: Engine) -> list[Any]:
    """The protected answer as a list of JSON numbers. It is drawn here, once: pay first.

    An error or an interrupt tells nothing of what was read: what was counted lives and ends in a
    thread of its own.
    """
    return apart(lambda: _drawn(query, mechanism, engine), ReleaseFailed, stop=engine.interrupt)


def _drawn(query: Query, mechanism: Mechanism, engine: Engine) -> list[Any]:
    exact = query.exact(engine)
    if isinstance(query, MeanOf | QuantileOf):  # groups without rows have no answer
        filled = np.ravel(query.public_rows(engine)) > 0
        cells = exact.reshape(len(filled), -1) if isinstance(query, QuantileOf) else exact.ravel()
        found = iter(np.ravel(mechanism.release(cells[filled])).tolist())
        return [next(found) if has_rows else None for has_rows in filled.tolist()]
    flat: list[Any] = np.ravel(mechanism.release(np.atleast_1d(exact))).tolist()
    return flat


def table(
    query: Query, mechanism: Mechanism, answer: list[Any], engine: Engine
) -> tuple[tuple[str, ...], Rows]:
    """The columns and rows of a result, from what was drawn and from what is public."""
    axes = query.axes(engine)
    names = tuple(name for name, _ in axes)
    keys = list(product(*(keys for _, keys in axes)))
    if isinstance(query, TopOf):
        (rank,) = _apart(names, "rank")
        return (*names[:-1], rank, query.column), _places(query, axes, answer)
    if isinstance(query, QuantileOf):
        columns = (*names, *_apart(names, "estimate", "low level", "high level"))
        return columns, _quantiles(query, mechanism, keys, answer, engine)
    halves = spread(query, mechanism, engine).tolist()
    shown = _shown(query, answer, engine)
    rows = tuple(
        (*key, None, None, None) if value is None else (*key, value, value - half, value + half)
        for key, value, half in zip(keys, shown, halves, strict=True)
    )
    return (*names, *_apart(names, "estimate", "low", "high")), rows


def _apart(names: tuple[str, ...], *ours: str) -> tuple[str, ...]:
    """Names for our own columns that no declared column has."""
    return tuple(f"{name} (answer)" if name in names else name for name in ours)


def _places(query: TopOf, axes: Any, answer: list[Any]) -> Rows:
    labels, places = axes[-1][1], iter(answer)
    return tuple(
        (*group, place + 1, labels[next(places)])
        for group in product(*(keys for _, keys in axes[:-1]))
        for place in range(query.k)
    )


def _quantiles(
    query: QuantileOf, mechanism: Any, keys: list[Any], answer: list[Any], engine: Engine
) -> Rows:
    """Levels between which each number is a quantile; none where their number is protected."""
    numbers = query.candidates(engine.declaration)
    ranks = ranks_of(mechanism, len(numbers))
    counted = engine.declaration.amount(query.column).missing != "drop"
    rows = []
    for key, place, size in zip(keys, answer, query.sizes(engine), strict=True):
        if place is None:
            rows.append((*key, None, None, None))
        else:
            ends = levels(query.level, ranks, size) if counted else (None, None)
            rows.append((*key, numbers[place], *ends))
    return tuple(rows)


def spread(query: Query, mechanism: Mechanism, engine: Engine) -> Floats:
    """``[cell]``: half the width of a 95 % interval around each number that is shown."""
    cells = prod(len(keys) for _, keys in query.axes(engine))
    if not isinstance(mechanism, BoundedMean) and not isinstance(query, ProportionsOf):
        return np.full(cells, mechanism.error().interval)
    sizes: Integers = np.maximum(np.ravel(query.public_rows(engine)), 1)  # no rows: not shown
    if isinstance(mechanism, BoundedMean):
        return np.asarray(mechanism.total.error().interval / sizes, dtype=np.float64)
    half: float = mechanism.error().interval
    return np.asarray(np.repeat(half / sizes, cells // len(sizes)), dtype=np.float64)


def _shown(query: Query, answer: list[Any], engine: Engine) -> list[Any]:
    """What was drawn, or its share of a public number of rows."""
    if not isinstance(query, ProportionsOf):
        return answer
    sizes: Integers = np.ravel(query.public_rows(engine))
    every = np.repeat(sizes, len(answer) // len(sizes)).tolist()
    return [None if n == 0 else count / n for count, n in zip(answer, every, strict=True)]
