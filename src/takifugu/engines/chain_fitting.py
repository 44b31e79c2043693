"""Fit a Markov chain to a declared table: the counting is done where the rows are."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from fractions import Fraction
from typing import Literal, overload

from takifugu._exact import exactly
from takifugu.engines.declared_table import Table
from takifugu.engines.engine import Engine
from takifugu.engines.engine_errors import InvalidQuery
from takifugu.engines.scope import EVERYTHING, Scope, Share
from takifugu.errors import UnsoundRequest
from takifugu.priors import FittedRows, IntervalMarkovChain, MarkovChain, Name, Transitions
from takifugu.priors.fitting import TAU


@dataclass(frozen=True)
class FirstDays:
    """Fit on the first days, protect the rest: the paper fits on 400 of 500 days.

    Days are days of the calendar in the declared zone, and the first is that of the first row.
    Where the order is a plain number, a day is one unit from the first number on.
    """

    days: int

    def __post_init__(self) -> None:
        if isinstance(self.days, bool) or not isinstance(self.days, int) or self.days < 1:
            raise InvalidQuery("days", given=f"is {self.days!r}", needed="be a whole number, ≥ 1")


@dataclass(frozen=True)
class ByEntity:
    """Fit on a share of the entities, protect the others; who is in it depends on a hash alone.

    Attributes:
        share: How large a share of the entities to fit on, about.
        salt: Any public text; another salt deals the entities out anew.
    """

    share: Fraction
    salt: str = "takifugu"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidQuery(
                "share", given=f"is {float(self.share):g}", needed="be between 0 and 1"
            )


@dataclass(frozen=True)
class Fitted:
    """A chain fitted to a table, and what that does to the guarantee.

    Attributes:
        chain: The prior. It knows which rows it was fitted on, and so does what is made of it.
        counts: The transitions that it was fitted to. They are exact: publish the chain or
            them, it is the same.
        train: The rows that it was fitted on.
        test: The rows that were kept apart, for releases; None if there was no split.
        split: How they were kept apart.
        remaining: How many rows were kept apart, which is public; None if that was not counted.
    """

    chain: MarkovChain
    counts: Transitions
    train: Scope
    test: Scope | None
    split: FirstDays | ByEntity | None
    remaining: int | None = None

    @property
    def rows(self) -> FittedRows:
        """The rows that it was fitted on, as the chain itself knows them."""
        (rows,) = self.chain.fitted_on
        return rows

    @property
    def statement(self) -> str:
        """What readers of the policy should know about the fit."""
        return self.rows.statement


def fit(
    engine: Engine,
    column: str,
    *,
    split: FirstDays | ByEntity | None = None,
    scope: Scope = EVERYTHING,
    unseen: Literal["refuse", "uniform"] = "refuse",
    other: Name | None = None,
    tau: float | None = TAU,
    length: int | None = None,
) -> Fitted:
    """Count the transitions of ``column`` in the database and make a chain of them.

    Args:
        engine: The table.
        column: A column of labels; its declared keys are the states.
        split: Which rows to fit on, so that others can be protected; without it, all.
        scope: The rows to begin with.
        unseen: What to do with a state that nothing ever followed: see `Transitions.chain`.
        other: Add a state of this name for what was never seen, if there is none yet.
        tau: The paper's smoothing: zeros become this; None leaves them.
        length: How many entries the chain has; None for an unbounded chain.
    """
    train, test = _parts(engine, split, scope)
    counts = engine.transitions(column, train)
    if isinstance(split, FirstDays):
        (rows,) = counts.fitted_on
        counts = replace(counts, fitted_on=(replace(rows, days=split.days),))
    added = None if other in counts.states else other
    chain = counts.chain(unseen=unseen, other=added, tau=tau, length=length)
    return Fitted(chain, counts, train, test, split)


def _parts(
    engine: Engine, split: FirstDays | ByEntity | None, scope: Scope
) -> tuple[Scope, Scope | None]:
    match split:
        case None:
            return scope, None
        case FirstDays(days):
            cut = _days_after(engine.span(scope)[0], days)
            return replace(scope, end=cut), replace(scope, start=cut)
        case ByEntity(share, salt):
            if scope.entities is not None:
                raise InvalidQuery(
                    "scope, entities", given="is given", needed="be left out of a split by entity"
                )
            train, test = Share(salt, Fraction(0), share), Share(salt, share, Fraction(1))
            return replace(scope, entities=train), replace(scope, entities=test)


def _days_after(first: datetime | float, days: int) -> datetime | float:
    if not isinstance(first, datetime):
        return first + days
    try:
        return datetime.combine(first.date(), time()) + timedelta(days=days)
    except OverflowError:
        raise InvalidQuery(
            "days", given=f"is {days}", needed="end before the last day of the calendar"
        ) from None


@dataclass(frozen=True)
class FitOptions:
    """What to fit, and on which rows: the first days, a share of the entities, or all.

    Attributes:
        first_days: Fit on so many days and release from those after them.
        share: Fit on such a share of the entities and release from the others.
        other: The state for what was never seen; it must be a label of the column.
        tau: What zeros are smoothed to, by default as in the paper; 0 leaves them.
        length: How many entries the chain has; None for an unbounded chain.
        confidence: Instead of one chain, all that the counts do not rule out at this confidence.
    """

    first_days: int | None = None
    share: Fraction | None = None
    other: Name | None = None
    tau: float | None = None
    length: int | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.first_days is not None and self.share is not None:
            raise InvalidQuery(
                "first days", given="come with a share", needed="be given alone: one split only"
            )
        if self.confidence is not None and (self.tau is not None or self.other is not None):
            raise InvalidQuery(
                "confidence", given="comes with tau or other", needed="be given alone"
            )

    @property
    def split(self) -> FirstDays | ByEntity | None:
        """Which rows to fit on."""
        if self.first_days is not None:
            return FirstDays(self.first_days)
        return None if self.share is None else ByEntity(self.share)


def fit_prior(
    engine: Engine, column: str, options: FitOptions
) -> tuple[MarkovChain | IntervalMarkovChain, Fitted]:
    """The prior that ``options`` describe, and how it was fitted."""
    labels = engine.declaration.category(column).keys
    if options.other is not None and options.other not in labels:
        raise InvalidQuery(
            "other",
            given=f"{options.other!r} is not a label of {column}",
            needed="be one, since the states of a prior are the labels of its column; declare"
            f" outside = 'other' for {column}",
        )
    tau = TAU if options.tau is None else options.tau
    fitted = fit(
        engine,
        column,
        split=options.split,
        unseen="uniform",
        tau=tau or None,
        length=options.length,
    )
    if fitted.test is not None:
        fitted = replace(fitted, remaining=engine.count(fitted.test))
    if fitted.remaining == 0:
        raise InvalidQuery(
            "split",
            given="leaves no rows to release from",
            needed="fit on fewer rows: on fewer first days than the table spans, or on a smaller"
            " share of the entities",
        )
    if options.confidence is None:
        return fitted.chain, fitted
    chains = fitted.counts.intervals(confidence=options.confidence, length=options.length)
    return chains, fitted


@overload
def fit_markov(
    table: Table | Engine,
    column: str,
    *,
    first_days: int | None = None,
    share: Fraction | float | str | None = None,
    other: Name | None = None,
    tau: float | None = None,
    length: int | None = None,
    confidence: None = None,
) -> MarkovChain: ...


@overload
def fit_markov(
    table: Table | Engine,
    column: str,
    *,
    first_days: int | None = None,
    share: Fraction | float | str | None = None,
    length: int | None = None,
    confidence: float,
) -> IntervalMarkovChain: ...


def fit_markov(
    table: Table | Engine,
    column: str,
    *,
    first_days: int | None = None,
    share: Fraction | float | str | None = None,
    other: Name | None = None,
    tau: float | None = None,
    length: int | None = None,
    confidence: float | None = None,
) -> MarkovChain | IntervalMarkovChain:
    """Fit a Markov chain to a column of labels, as a prior; the database does the counting.

    The prior is part of the published policy, and no loss is accounted for what it reveals about
    the rows that it was fitted on. So fit on some rows and release from the others: the prior knows
    its rows, and a session releases from other rows only.

    Args:
        table: The table.
        column: A column of labels; these are the states of the chain.
        first_days: Fit on so many days, and release from the days after them.
        share: Fit on such a share of the entities, 0.2 or "1/5", and release from the others.
            With neither, all rows are fitted on, and none is left to release from.
        other: The state for what was never seen; it must be a label of the column.
        tau: What zeros are smoothed to, by default as in the paper; 0 leaves them.
        length: How many entries the chain has; None for an unbounded chain.
        confidence: Instead of one chain, all chains that the counts do not rule out at this
            confidence.
    """
    options = FitOptions(
        first_days=first_days,
        share=None if share is None else _share(share),
        other=other,
        tau=tau,
        length=length,
        confidence=confidence,
    )
    with nullcontext(table) if isinstance(table, Engine) else table.open() as engine:
        return fit_prior(engine, column, options)[0]


def _share(given: Fraction | float | str) -> Fraction:
    """A share by its digits: 0.2 is a fifth."""
    try:
        return exactly(str(given), "share")
    except UnsoundRequest:
        raise InvalidQuery(
            "share", given=f"is {given!r:.40}", needed="be between 0 and 1, as 0.2 or '1/5'"
        ) from None
