"""Fit a Markov chain to a declared table: the counting is done where the rows are."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, overload

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.drafting.declared_table import Table
from takifugu.fitting.fit_kinds import (
    MAX_LISTED_STATES,
    RARE,
    Estimate,
    fit_table,
    name_of,
    parts,
    refuse_uncut,
    rows_of,
    single_column,
    steps_estimate,
)
from takifugu.fitting.fit_options import FitOptions, Split, share_of_entities
from takifugu.priors import (
    FittedRows,
    IntervalMarkovChain,
    MarkovChain,
    Name,
    Transitions,
)
from takifugu.priors.fitting import TAU, smooth
from takifugu.priors.higher_order import HigherOrderChain, refuse_order, refuse_windows
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.tables.engine import Engine
from takifugu.tables.scope import EVERYTHING, Scope

CONFIDENCE = 0.95  # of intervals, unless another is given


@dataclass(frozen=True)
class FittedChain:
    """A chain fitted to a table, and what that does to the guarantee.

    Attributes:
        chain: The prior. It knows which rows it was fitted on, and so does what is made of it.
        counts: The transitions that it was fitted to. They are exact: publish the chain or
            them, it is the same.
        train: The rows that it was fitted on.
        test: The rows that were kept apart, for releases; None if there was no split.
        split: How they were kept apart.
    """

    chain: MarkovChain
    counts: Transitions
    train: Scope
    test: Scope | None
    split: Split

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
    split: Split = None,
    scope: Scope = EVERYTHING,
    unseen: Literal["refuse", "uniform"] = "refuse",
    other: Name | None = None,
    tau: float | None = TAU,
    length: int | None = None,
) -> FittedChain:
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
    train, test = parts(engine, split, scope)
    counts = engine.transitions(column, train)
    counts = replace(counts, fitted_on=(rows_of(engine, train, split),))
    added = None if other in counts.states else other
    chain = counts.chain(unseen=unseen, other=added, tau=tau, length=length)
    if chain.fitted_on[0].before is not None:
        chain = chain.against(start="unknown")  # rows of the same entities before it are given up
    return FittedChain(chain, counts, train, test, split)


def fit_markov_chain(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """The stationary chain of relative frequencies, smoothed; of several columns a joint one."""
    if options.by_hour:
        return _fit_by_hour(engine, columns, train, options)
    counts = _counts(engine, columns, train, options)
    if options.other is not None and options.other not in counts.states:
        raise InvalidQuery(
            "other",
            given=f"{options.other!r} is not a label of {', '.join(columns)}",
            needed="be one, since the states of a prior are the labels of its column; declare"
            " outside = 'other' for it",
        )
    tau = TAU if options.tau is None else options.tau
    chain = counts.chain(unseen="uniform", tau=tau or None, length=options.length)
    estimate = steps_estimate(chain, counts.states, counts.counts, tau or None)
    return estimate if counts.columns is None else replace(estimate, over="sequence")


def fit_interval_chain(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """All chains that the counts do not rule out."""
    counts = _counts(engine, columns, train, options)
    confidence = CONFIDENCE if options.confidence is None else options.confidence
    chains = counts.intervals(confidence=confidence, length=options.length)
    return steps_estimate(chains, counts.states, counts.counts)


def fit_higher_order(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """A chain in which an entry depends on several before it, by counts of windows."""
    order = 2 if options.order is None else options.order
    refuse_order(order)
    column = single_column(columns, "higher-order")
    refuse_windows(_size(engine, column, options), order)
    runs = engine.runs((column,), order, train, cuts=options.cuts)
    tau = TAU if options.tau is None else options.tau
    chain = HigherOrderChain.of_counts(
        runs.counts, runs.states, tau=tau or None, length=options.length
    )
    return steps_estimate(chain, runs.states, runs.counts)


def _fit_by_hour(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """The relative frequencies of what followed at each hour of the day, smoothed.

    Where a state was never left at an hour, the frequencies of all hours together stand in; where
    it was never left at all, every state is equally likely. The
    chain is as long as the longest sequence of the whole table, unless a length is given.
    """
    column = single_column(columns, "markov by hour")
    if options.cuts is None:
        refuse_uncut(engine, column)
    runs = engine.runs((column,), 1, train, cuts=options.cuts, by_hour=True)
    tau = TAU if options.tau is None else options.tau
    length = engine.lengths().longest if options.length is None else options.length
    table, borrowed = _matrices(runs.counts)
    if tau:
        table = smooth(table.reshape(-1, table.shape[-1]), tau=tau).reshape(table.shape)
    by_hour = runs.counts.sum(axis=(1, 2))
    together: Integers = runs.counts.sum(axis=0)
    chain = TimeOfDayChain(table, runs.states, length=max(length, 1))
    estimate = steps_estimate(chain, runs.states, together)
    thin = int(np.argmin(by_hour))
    rests = (
        f"It rests on {int(by_hour.sum()):,} steps, at least {int(by_hour[thin]):,} in each hour of"
        f" the day (hour {thin}), and is about sequences of at most {chain.length:,} rows, one an"
        " hour, that begin at any hour.",
    )
    notes = list(estimate.notes)
    if borrowed:
        listed = ", ".join(
            f"{name_of(runs.states[x])} at hour {h}" for h, x in borrowed[:MAX_LISTED_STATES]
        )
        more = (
            f" and {len(borrowed) - MAX_LISTED_STATES} more"
            if len(borrowed) > MAX_LISTED_STATES
            else ""
        )
        notes.append(f"never left, so that the frequencies of all hours stand in: {listed}{more}")
    rare = int(((runs.counts.sum(axis=2) < RARE) & (runs.counts.sum(axis=2) > 0)).sum())
    if rare:
        notes.append(f"{rare} rows of the matrices rest on fewer than {RARE} steps")
    facts = dict(estimate.facts) | {"steps_by_hour": by_hour.tolist()}
    return Estimate(chain, estimate.counted, estimate.unit, rests, tuple(notes), facts)


def _matrices(counts: Integers) -> tuple[Floats, list[tuple[int, int]]]:
    """``[hour, x, y]``: the frequencies, and where those of all hours stand in."""
    left = counts.sum(axis=2)
    table = np.where(left[..., None] > 0, counts / np.maximum(left, 1)[..., None], 0.0)
    never = np.argwhere(left == 0)
    every = counts.sum(axis=0)
    for hour, x in never:
        total = int(every[x].sum())
        table[hour, x] = every[x] / total if total else 1 / counts.shape[-1]
    return table, [(int(hour), int(x)) for hour, x in never]


def _counts(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Transitions:
    """The steps of one column, of ranges of a number, or of joint states."""
    if len(columns) == 1 and options.cuts is None:
        refuse_uncut(engine, columns[0])
        return engine.transitions(columns[0], train)
    runs = engine.runs(columns, 1, train, cuts=options.cuts)
    joint = runs.columns if len(runs.columns) > 1 else None
    return Transitions(runs.counts, runs.states, columns=joint)


def _size(engine: Engine, column: str, options: FitOptions) -> int:
    if options.cuts is not None:
        return len(options.cuts) - 1
    refuse_uncut(engine, column)
    return len(engine.declaration.category(column).keys)


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
        share=share_of_entities(share),
        other=other,
        tau=tau,
        length=length,
        confidence=confidence,
    )
    prior = fit_table(table, column, options)
    if not isinstance(prior, MarkovChain | IntervalMarkovChain):  # pragma: no cover
        raise TypeError(f"a fitted chain is a {prior.kind}")
    return prior
