r"""Goodness of fit: does a prior of this kind describe the rows that it was fitted on?

A prior that does not fit is a guarantee about another world. Everything here is computed from
aggregates of the fitted rows, which leave the database as counts and sums of products only.

**Conditional independence.** Let N rows fall into cells (a, b, c). If c does not depend on a given
b, the likelihood ratio

.. math:: G^2 = 2\sum_{abc} n_{abc}
          \log\frac{n_{abc}\, n_{\cdot b\cdot}}{n_{ab\cdot}\, n_{\cdot bc}}

is about chi-square with :math:`\sum_b (A_b - 1)(C_b - 1)` degrees of freedom, where A_b and C_b are
how many values of a and of c were seen with b: values that were never seen count nothing. With a
the value before the last, b the last and c the next one, that is order one against order two
(Anderson & Goodman, 1957); with a the part of the days, it asks whether transitions stay the same.

With many rows every difference is significant. How much one matters is a number of its own:
:math:`(G^2 - \mathrm{df})/2N`, the nats that a tells about c beside b, less what chance alone would
show, as a share of how uncertain c is given b.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import exp, log
from typing import Any, Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import TooLarge
from takifugu.priors.prior import state_text
from takifugu.tables.engine import Engine
from takifugu.tables.expressions import flag
from takifugu.tables.relations import Relation
from takifugu.tables.run_counting import HOUR
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits, visible

SMALL_EXPECTED = 5.0  # an expected count below this is small
MAX_SMALL_SHARE = 0.2  # a share of small cells from which the chi-square law is not to be relied on
REJECTED_P = 1e-3  # a p-value below this is no accident
UNUSUAL_P = 0.05  # and one below this is seldom one
MATERIAL_SHARE = 0.01  # a share of the uncertainty
MIN_LOG_P = -1e9  # a logarithm of a p-value


@dataclass(frozen=True, eq=False)
class CountTest:
    """A likelihood-ratio test of counts ``[a, b, c]``: does c depend on a, given b?

    Attributes:
        statistic: G².
        degrees: The degrees of freedom, on what was seen.
        log_p: The natural logarithm of the p-value.
        gain: What a tells about c beside b, in nats, less what chance alone would show; 0 or more.
        share: The gain as a share of the uncertainty of c given b; 0 if there is none.
        by_given: ``[b]``: the part of the gain that comes from each b, not less than 0.
        small: The share of cells, among those that could occur, that expect fewer than 5.
        total: How many were counted.
    """

    statistic: float
    degrees: int
    log_p: float
    gain: float
    share: float
    by_given: Floats
    small: float
    total: int

    @property
    def p(self) -> float:
        """The p-value; 0 where it is below what a float can hold."""
        return float(np.exp(self.log_p))

    @property
    def rejected(self) -> bool:
        """Whether the simpler law is no accident away from the counts."""
        return self.log_p < log(REJECTED_P)

    @property
    def matters(self) -> bool:
        """Whether it is rejected, and by so much that it matters."""
        return self.rejected and self.share >= MATERIAL_SHARE

    @property
    def reliable(self) -> bool:
        """Whether cells are large enough for the chi-square law."""
        return self.small <= MAX_SMALL_SHARE

    @property
    def p_words(self) -> str:
        """The p-value, as people write it."""
        return p_words(self.log_p)


def independence_given(counts: Integers) -> CountTest:
    """The test of ``counts[a, b, c]``."""
    n = np.asarray(counts, dtype=np.float64)
    with_a, with_c, given = n.sum(axis=2), n.sum(axis=0), n.sum(axis=(0, 2))  # [a,b] [b,c] [b]
    expected = with_a[:, :, None] * with_c[None] / np.maximum(given, 1.0)[None, :, None]
    ratio = np.divide(n, expected, out=np.ones_like(n), where=n > 0)
    by_given = 2 * np.sum(n * np.log(ratio), axis=(0, 2))
    degrees_of = np.maximum((with_a > 0).sum(axis=0) - 1, 0) * np.maximum(
        (with_c > 0).sum(axis=1) - 1, 0
    )
    statistic, degrees = max(float(by_given.sum()), 0.0), int(degrees_of.sum())
    total = float(n.sum())
    possible = (with_a[:, :, None] > 0) & (with_c[None] > 0) & (degrees_of > 0)[None, :, None]
    few = int(np.count_nonzero(possible & (expected < SMALL_EXPECTED)))
    gain = max(statistic - degrees, 0.0) / (2 * total) if total else 0.0
    uncertain = _uncertainty(with_c)
    return CountTest(
        statistic=statistic,
        degrees=degrees,
        log_p=log_tail(statistic, degrees),
        gain=gain,
        share=gain / uncertain if uncertain > 0 else 0.0,
        by_given=np.maximum(by_given - degrees_of, 0.0) / (2 * max(total, 1.0)),
        small=few / max(int(np.count_nonzero(possible)), 1),
        total=int(total),
    )


def _uncertainty(table: Floats) -> float:
    """The entropy, in nats, of the column given the row."""
    rows = table.sum(axis=1, keepdims=True)
    share = np.divide(table, rows, out=np.ones_like(table), where=table > 0)
    total = float(table.sum())
    return float(-np.sum(table * np.log(share))) / total if total else 0.0


def log_tail(statistic: float, degrees: int) -> float:
    """The logarithm of the chi-square tail: 0 without degrees of freedom, never −∞."""
    if degrees == 0:
        return 0.0
    from scipy.stats import chi2

    return max(float(chi2.logsf(statistic, degrees)), MIN_LOG_P)


def p_words(log_p: float) -> str:
    """A p-value as people write it, from its logarithm."""
    exponent = log_p / log(10)
    if exponent < -12:
        return "p < 1e-12" if exponent > -300 else "p < 1e-300"
    words = f"p = {exp(log_p):.2g}"
    if log(REJECTED_P) <= log_p < log(UNUSUAL_P):
        words += f", unusual for chance; below {REJECTED_P:g} it counts as not fitting"
    return words


def not_rejected(log_p: float) -> Literal["fits", "unclear"]:
    """What is said of a law that is not rejected: unclear, if its p-value is unusually small."""
    return "unclear" if log_p < log(UNUSUAL_P) else "fits"


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
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}


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
    share = f"lowers the uncertainty of the next one by {_percent(test.share)}"
    second = "second-last value" if order == 1 else f"value {order + 1} rows back"
    worst = _named(states[int(np.argmax(last))])
    return _conclude(
        *("order", test, numbers, panel),
        untested=f"Whether order {word} suffices cannot be tested: too few runs of {order + 2}"
        " rows.",
        fits=f"Order {word} describes these rows",
        little=f"Order {word} describes these rows nearly: knowing the {second} too {share}",
        differs=f"Order {word} does not describe these rows",
        how=f"knowing the {second} too {share}, most after {worst}. Entities that differ in their"
        f" habits look like that too. {remedy or f'Use --kind higher-order --order {order + 1}.'}",
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
    whole = counts.sum(axis=0)
    away = [(name, _distance(part, whole)) for name, part in zip(parts, counts, strict=True)]
    panel = Panel(
        "How far transitions are from those of all parts",
        "share of steps that differ",
        tuple(name for name, _ in away),
        tuple(value for _, value in away),
    )
    share = f"knowing the part lowers the uncertainty of the next value by {_percent(test.share)}"
    worst = _named(states[int(np.argmax(test.by_given))])
    farthest = max(away, key=lambda pair: pair[1])[0]
    over = f"over {len(parts)} parts of these rows"
    return _conclude(
        *("stationarity", test, numbers, panel),
        untested="Whether transitions stay the same cannot be tested: too few rows in each part.",
        fits=f"Transitions stay the same {over}",
        little=f"Transitions change little {over}: {share}",
        differs="Transitions change over these rows",
        how=f"{share}, most after {worst}; the part that differs most is the one {farthest}. One"
        " chain for all of it is about none of its parts: fit on days that are like those to be"
        f" released, or {remedy or KEEP_ALL}.",
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
    whole = counts.sum(axis=0)
    panel = Panel(
        "How far transitions of an hour of the day are from those of all hours",
        "share of steps that differ",
        tuple(map(str, range(len(counts)))),
        tuple(_distance(part, whole) for part in counts),
    )
    share = f"knowing the hour lowers the uncertainty of the next value by {_percent(test.share)}"
    worst = _named(states[int(np.argmax(test.by_given))])
    return _conclude(
        *("hours", test, numbers, panel),
        untested="Whether transitions differ by hour of the day cannot be tested: too few rows.",
        fits="Transitions are the same at all hours of the day",
        little=f"Transitions differ little by hour of the day: {share}",
        differs="Transitions differ by hour of the day",
        how=f"{share}, most after {worst}. Fit a chain for each hour (--by-hour).",
    )


def _conclude(
    about: str,
    test: CountTest,
    numbers: Mapping[str, Any],
    panel: Panel,
    *,
    untested: str,
    fits: str,
    little: str,
    differs: str,
    how: str,
) -> FitTest:
    """What came out of a test of counts, in sentences that have its facts in brackets."""
    if not test.degrees:
        return FitTest(about, "not tested", untested, numbers)
    facts = _facts(test)
    return conclude(
        *(about, test.log_p, test.matters, numbers, panel),
        fits=f"{fits}{facts}.",
        little=f"{little}{facts}.",
        not_at_all=f"{differs}{facts}: {how}",
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
