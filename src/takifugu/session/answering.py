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
from takifugu.session.questions import MeanOf, ProportionsOf, Question, TopOf

Rows = tuple[tuple[Any, ...], ...]


def drawn(question: Question, mechanism: Mechanism, engine: Engine) -> list[Any]:
    """The protected answer as a list of JSON numbers. It is drawn here, once: pay first.

    An error or an interrupt tells nothing of what was read: what was counted lives and ends in a
    thread of its own.
    """
    return apart(lambda: _drawn(question, mechanism, engine), ReleaseFailed, stop=engine.interrupt)


def _drawn(question: Question, mechanism: Mechanism, engine: Engine) -> list[Any]:
    exact = question.exact(engine)
    if isinstance(question, MeanOf | QuantileOf):  # groups without rows have no answer
        filled = np.ravel(question.public_rows(engine)) > 0
        cells = (
            exact.reshape(len(filled), -1) if isinstance(question, QuantileOf) else exact.ravel()
        )
        found = iter(np.ravel(mechanism.release(cells[filled])).tolist())
        return [next(found) if has_rows else None for has_rows in filled.tolist()]
    flat: list[Any] = np.ravel(mechanism.release(np.atleast_1d(exact))).tolist()
    return flat


def table(
    question: Question, mechanism: Mechanism, answer: list[Any], engine: Engine
) -> tuple[tuple[str, ...], Rows]:
    """The columns and rows of a result, from what was drawn and from what is public."""
    axes = question.axes(engine)
    names = tuple(name for name, _ in axes)
    keys = list(product(*(keys for _, keys in axes)))
    if isinstance(question, TopOf):
        (rank,) = _apart(names, "rank")
        return (*names[:-1], rank, question.column), _places(question, axes, answer)
    if isinstance(question, QuantileOf):
        columns = (*names, *_apart(names, "estimate", "low level", "high level"))
        return columns, _quantiles(question, mechanism, keys, answer, engine)
    halves = spread(question, mechanism, engine).tolist()
    shown = _shown(question, answer, engine)
    rows = tuple(
        (*key, None, None, None) if value is None else (*key, value, value - half, value + half)
        for key, value, half in zip(keys, shown, halves, strict=True)
    )
    return (*names, *_apart(names, "estimate", "low", "high")), rows


def _apart(names: tuple[str, ...], *ours: str) -> tuple[str, ...]:
    """Names for our own columns that no declared column has."""
    return tuple(f"{name} (answer)" if name in names else name for name in ours)


def _places(question: TopOf, axes: Any, answer: list[Any]) -> Rows:
    labels, places = axes[-1][1], iter(answer)
    return tuple(
        (*group, place + 1, labels[next(places)])
        for group in product(*(keys for _, keys in axes[:-1]))
        for place in range(question.k)
    )


def _quantiles(
    question: QuantileOf, mechanism: Any, keys: list[Any], answer: list[Any], engine: Engine
) -> Rows:
    """Levels between which each number is a quantile; none where their number is protected."""
    numbers = question.candidates(engine.declaration)
    ranks = ranks_of(mechanism, len(numbers))
    counted = engine.declaration.amount(question.column).missing != "drop"
    rows = []
    for key, place, size in zip(keys, answer, question.sizes(engine), strict=True):
        if place is None:
            rows.append((*key, None, None, None))
        else:
            ends = levels(question.level, ranks, size) if counted else (None, None)
            rows.append((*key, numbers[place], *ends))
    return tuple(rows)


def spread(question: Question, mechanism: Mechanism, engine: Engine) -> Floats:
    """``[cell]``: half the width of a 95 % interval around each number that is shown."""
    cells = prod(len(keys) for _, keys in question.axes(engine))
    if not isinstance(mechanism, BoundedMean) and not isinstance(question, ProportionsOf):
        return np.full(cells, mechanism.error().interval)
    sizes: Integers = np.maximum(np.ravel(question.public_rows(engine)), 1)  # no rows: not shown
    if isinstance(mechanism, BoundedMean):
        return np.asarray(mechanism.total.error().interval / sizes, dtype=np.float64)
    half: float = mechanism.error().interval
    return np.asarray(np.repeat(half / sizes, cells // len(sizes)), dtype=np.float64)


def _shown(question: Question, answer: list[Any], engine: Engine) -> list[Any]:
    """What was drawn, or its share of a public number of rows."""
    if not isinstance(question, ProportionsOf):
        return answer
    sizes: Integers = np.ravel(question.public_rows(engine))
    every = np.repeat(sizes, len(answer) // len(sizes)).tolist()
    return [None if n == 0 else count / n for count, n in zip(answer, every, strict=True)]
