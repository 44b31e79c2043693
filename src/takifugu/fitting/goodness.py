"""Goodness of fit: does a prior of this kind describe the rows that it was fitted on?

A prior that does not fit is a guarantee about another world. Everything here is computed from
aggregates of the fitted rows, which leave the database as counts and sums of products only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import log
from typing import Any, Literal

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import TooLarge
from takifugu.fitting.count_tests import REJECTED_P, CountTest, independence_given, not_rejected
from takifugu.priors.prior import state_text
from takifugu.tables.engine import Engine
from takifugu.tables.expressions import flag
from takifugu.tables.relations import Relation
from takifugu.tables.run_counting import HOUR
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits, visible

COMPARED_PARTS = 6  # of the fitted days that are compared
MAX_BARS = 12  # bars of a figure
Verdict = Literal["fits", "unclear", "differs little", "does not fit", "not tested"]


@dataclass(frozen=True)
class Panel:
    """One picture: bars, or correlations by lag with what was fitted.

    Attributes:
        title: What it shows.
        axis: What the numbers are.
        names: Of the bars, or the lags.
        values: What was counted.
        errors: Standard errors of the values; empty if there are none.
        fitted: What the prior has instead; empty if nothing.
    """

    title: str
    axis: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...] = ()
    fitted: tuple[float, ...] = ()

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON, and drawn."""
        return {
            "title": self.title, "axis": self.axis, "names": list(self.names),
            "values": list(self.values), "errors": list(self.errors), "fitted": list(self.fitted),
        }  # fmt: skip


@dataclass(frozen=True)
class FitTest:
    """One thing that was tested.

    Attributes:
        about: ``order``, ``stationarity``, ``hours``, ``residuals``, ``normality`` or ``left out``.
        verdict: What came out.
        sentence: The same in words, with what to do.
        numbers: What it rests on, for programs.
        panel: A picture of it; None if there is none.
    """

    about: str
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, Any]
    panel: Panel | None = None

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "about": self.about,
            "verdict": self.verdict,
            "sentence": self.sentence,
            **self.numbers,
            "panel": None if self.panel is None else self.panel.document(),
        }


@dataclass(frozen=True)
class GoodnessOfFit:
    """What was tested of a fit.

    Attributes:
        tests: One after the other.
    """

    tests: tuple[FitTest, ...]

    @property
    def fits(self) -> bool:
        """Whether nothing was found that matters."""
        return all(test.verdict != "does not fit" for test in self.tests)

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence for each test."""
        return tuple(test.sentence for test in self.tests)

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON, and drawn."""
        return {"fits": self.fits, "tests": [test.document() for test in self.tests]}


def conclude(
    about: str,
    log_p: float,
    matters: bool,
    numbers: Mapping[str, Any],
    panel: Panel | None,
    *,
    fits: str,
    little: str,
    not_at_all: str,
) -> FitTest:
    """A test with what came out of it: not rejected, rejected by little, or by so much it matters.

    The last three are the sentences for these.
    """
    verdict: Verdict = "does not fit" if matters else "differs little"
    if log_p >= log(REJECTED_P):
        verdict = not_rejected(log_p)
    sentence = {"differs little": little, "does not fit": not_at_all}.get(verdict, fits)
    return FitTest(about, verdict, sentence, numbers, panel)


KEEP_ALL = "keep all chains that the counts do not rule out (--kind interval --confidence 0.95)"


def goodness(
    engine: Engine,
    columns: str | Sequence[str],
    scope: Scope = EVERYTHING,
    *,
    order: int = 1,
    cuts: Sequence[Fraction] | None = None,
) -> GoodnessOfFit:
    """Whether a stationary chain of this order describes the rows of ``scope``.

    Args:
        engine: The table.
        columns: A column of labels, several for their joint states, or with ``cuts`` a column of
            numbers.
        scope: The rows that the prior was fitted on.
        order: How many entries before it an entry depends on.
        cuts: Where the ranges of a column of numbers begin, in order, and its upper bound.
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    tests = [_order(engine, names, scope, order, cuts), stationarity(engine, names, scope, cuts)]
    hourly = _hours(engine, names, scope, cuts) if order == 1 else None
    return GoodnessOfFit((*tests, *(() if hourly is None else (hourly,))))


def _order(
    engine: Engine,
    columns: tuple[str, ...],
    scope: Scope,
    order: int,
    cuts: Sequence[Fraction] | None,
) -> FitTest:
    try:
        runs = engine.runs(columns, order + 1, scope, cuts=cuts)
    except TooLarge as error:
        return FitTest(
            "order", "not tested", f"Whether order {order} suffices was not tested: {error}.", {}
        )
    size = len(runs.states)
    counts = runs.counts.reshape(size, -1, size)
    return order_test(counts, runs.states, order)


def order_test(
    counts: Integers, states: Sequence[Any], order: int, *, remedy: str | None = None
) -> FitTest:
    """Order ``order`` against one more, from counts ``[earliest, those between, last]``.

    ``remedy`` is what to do if it does not suffice; by default to fit a higher one.
    """
    test = independence_given(counts)
    size = len(states)
    last = test.by_given.reshape(-1, size).sum(axis=0)  # by the value just before
    word = "one" if order == 1 else str(order)
    numbers = _numbers(test) | {"order": order}
    panel = _bars(
        "What one value more tells about the next, by the last value",
        "nats a row",
        [(_named(state), float(value)) for state, value in zip(states, last, strict=True)],
    )
    if not test.total or not test.degrees:
        sentence = (
            f"Whether order {word} suffices cannot be tested: too few runs of {order + 2} rows."
        )
        return FitTest("order", "not tested", sentence, numbers)
    facts = _facts(test)
    share = f"lowers the uncertainty of the next one by {_percent(test.share)}"
    second = "second-last value" if order == 1 else f"value {order + 1} rows back"
    worst = _named(states[int(np.argmax(last))])
    return conclude(
        *("order", test.log_p, test.matters, numbers, panel),
        fits=f"Order {word} describes these rows{facts}.",
        little=f"Order {word} describes these rows nearly: knowing the {second} too {share}"
        f"{facts}.",
        not_at_all=f"Order {word} does not describe these rows{facts}: knowing the {second} too"
        f" {share}, most after {worst}. Entities that differ in their habits look like that too."
        f" {remedy or f'Use --kind higher-order --order {order + 1}.'}",
    )


def stationarity(
    engine: Engine, columns: tuple[str, ...], scope: Scope, cuts: Sequence[Fraction] | None
) -> FitTest:
    """Whether transitions stay the same over the days of ``scope``."""
    tables, names = list[Integers](), list[str]()
    states: Sequence[Any] = ()
    for name, part in parts_of(engine, scope):
        runs = engine.runs(columns, 1, part, cuts=cuts)
        tables.append(runs.counts)
        names.append(name)
        states = runs.states
    return stationarity_test(np.array(tables), names, states)


def stationarity_test(
    counts: Integers, parts: Sequence[str], states: Sequence[Any], *, remedy: str | None = None
) -> FitTest:
    """Whether transitions stay the same, from counts ``[part, before, after]``.

    ``remedy`` is what else to do if they do not; by default to keep several chains.
    """
    test = independence_given(counts)
    numbers = _numbers(test) | {"parts": list(parts)}
    if not test.degrees:
        sentence = "Whether transitions stay the same cannot be tested: too few rows in each part."
        return FitTest("stationarity", "not tested", sentence, numbers)
    whole = counts.sum(axis=0)
    away = [(name, _distance(part, whole)) for name, part in zip(parts, counts, strict=True)]
    panel = Panel(
        "How far transitions are from those of all parts",
        "share of steps that differ",
        tuple(name for name, _ in away),
        tuple(value for _, value in away),
    )
    facts = _facts(test)
    share = f"knowing the part lowers the uncertainty of the next value by {_percent(test.share)}"
    worst = _named(states[int(np.argmax(test.by_given))])
    farthest = max(away, key=lambda pair: pair[1])[0]
    over = f"over {len(parts)} parts of these rows"
    return conclude(
        *("stationarity", test.log_p, test.matters, numbers, panel),
        fits=f"Transitions stay the same {over}{facts}.",
        little=f"Transitions change little {over}: {share}{facts}.",
        not_at_all=f"Transitions change over these rows{facts}: {share}, most after {worst}; the"
        f" part that differs most is the one {farthest}. One chain for all of it is about none of"
        " its parts: fit on days that are like those to be released, or"
        f" {remedy or KEEP_ALL}.",
    )


def _hours(
    engine: Engine, columns: tuple[str, ...], scope: Scope, cuts: Sequence[Fraction] | None
) -> FitTest | None:
    """Whether transitions are the same at all hours of the day; None if rows are not hourly."""
    if engine.declaration.order.kind == "number" or not _may_be_hourly(engine, scope):
        return None
    try:
        runs = engine.runs(columns, 1, scope, cuts=cuts, by_hour=True)
    except (InvalidDeclaration, InvalidQuery, TooLarge):  # not one row an hour, or holes in them
        return None
    return hours_test(runs.counts, runs.states)


def _may_be_hourly(engine: Engine, scope: Scope) -> bool:
    """Whether every entity has as many rows as hours from its first to its last: no sorting yet."""
    order, entity = engine.declaration.order, engine.declaration.entity
    timed = engine.kinds[order.column] in ("time", "zoned")

    def count(rows: Relation) -> Relation:
        place = rows[order.column].epoch_seconds() if timed else rows[order.column]
        each = rows.select(who=rows[entity], hour=(place.cast("real") / HOUR).floor())
        each = each.group_by("who").aggregate(
            rows=each.count(), hours=each.hour.max() - each.hour.min() + 1
        )
        return each.aggregate(other=flag(each.rows != each.hours).max())

    ((other,),) = engine.collect(count, scope)
    return bool(other == 0)


def hours_test(counts: Integers, states: Sequence[Any]) -> FitTest:
    """Whether transitions differ by the hour of the day: counts ``[hour, before, after]``."""
    test = independence_given(counts)
    numbers = _numbers(test)
    if not test.degrees:
        sentence = "Whether transitions differ by hour of the day cannot be tested: too few rows."
        return FitTest("hours", "not tested", sentence, numbers)
    whole = counts.sum(axis=0)
    panel = Panel(
        "How far transitions of an hour of the day are from those of all hours",
        "share of steps that differ",
        tuple(map(str, range(len(counts)))),
        tuple(_distance(part, whole) for part in counts),
    )
    facts = _facts(test)
    share = f"knowing the hour lowers the uncertainty of the next value by {_percent(test.share)}"
    worst = _named(states[int(np.argmax(test.by_given))])
    return conclude(
        *("hours", test.log_p, test.matters, numbers, panel),
        fits=f"Transitions are the same at all hours of the day{facts}.",
        little=f"Transitions differ little by hour of the day: {share}{facts}.",
        not_at_all=f"Transitions differ by hour of the day{facts}: {share}, most after {worst}."
        " Fit a chain for each hour (--by-hour).",
    )


def parts_of(
    engine: Engine, scope: Scope, most: int = COMPARED_PARTS
) -> Iterator[tuple[str, Scope]]:
    """The rows of ``scope`` in parts of equally many days, or of equal stretches of a number."""
    first, last = engine.span(scope)
    if isinstance(first, datetime) and isinstance(last, datetime):
        begin = datetime(first.year, first.month, first.day)
        days = (datetime(last.year, last.month, last.day) - begin).days + 1
        ends = sorted({round(days * k / most) for k in range(1, most)} - {0, days})
        edges: list[Any] = [begin, *(begin + timedelta(days=day) for day in ends), None]
        names = [f"from {edge.date().isoformat()}" for edge in edges[:-1]]
    else:
        width = (float(last) - float(first)) / most  # type: ignore[arg-type]
        inner = [float(first) + k * width for k in range(1, most)] if width > 0 else []  # type: ignore[arg-type]
        edges = [first, *inner, None]
        names = [f"from {four_digits(float(edge))}" for edge in edges[:-1]]
    for name, start, end in zip(names, edges, edges[1:], strict=False):
        yield (
            name,
            replace(
                scope,
                start=scope.start if start == edges[0] else start,
                end=scope.end if end is None else end,
            ),
        )


def _distance(part: Integers, whole: Integers) -> float:
    """The share of the steps of a part that would have to go elsewhere."""
    rows, all_rows = part.sum(axis=1, keepdims=True), whole.sum(axis=1, keepdims=True)
    expected = rows * (whole / np.maximum(all_rows, 1))
    return float(np.abs(part - expected).sum() / 2 / max(int(part.sum()), 1))


def _numbers(test: CountTest) -> dict[str, Any]:
    return {
        "statistic": test.statistic,
        "degrees": test.degrees,
        "p": test.p,
        "log_p": test.log_p,
        "gain": test.gain,
        "share": test.share,
        "small_cells": test.small,
        "counted": test.total,
    }


def _facts(test: CountTest) -> str:
    small = ""
    if not test.reliable:
        small = (
            f"; {_percent(test.small)} of the cells expect fewer than 5, so that p is a rough guide"
        )
    return f" ({test.p_words}, G² = {four_digits(test.statistic)} on {test.degrees:,}{small})"


def _bars(title: str, axis: str, pairs: Sequence[tuple[str, float]]) -> Panel:
    """The largest bars, in order."""
    largest = sorted(pairs, key=lambda pair: -pair[1])[:MAX_BARS]
    return Panel(title, axis, tuple(n for n, _ in largest), tuple(v for _, v in largest))


def _percent(share: float) -> str:
    return f"{four_digits(100 * share)} %"


def _named(state: Any) -> str:
    return visible(str(state_text(state)))
