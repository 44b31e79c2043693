"""Fit a chain with a matrix for each hour of the day, where rows are one an hour."""

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.fitting.fit_kinds import Estimate, FitOptions
from takifugu.fitting.fit_report import RARE, name_of, refuse_uncut, steps_estimate, the_one
from takifugu.priors.fitting import TAU, smooth
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.tables.engine import Engine
from takifugu.tables.scope import Scope

SHOWN = 5  # states that a note lists


def fit_by_hour(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """The relative frequencies of what followed at each hour of the day, smoothed.

    Where a state was never left at an hour, the frequencies of all hours together stand in; where
    it was never left at all, every state is equally likely. The
    chain is as long as the longest sequence of the whole table, unless a length is given.
    """
    column = the_one(columns, "markov by hour")
    if options.cuts is None:
        refuse_uncut(engine, column)
    found = engine.runs((column,), 1, train, cuts=options.cuts, by_hour=True)
    tau = TAU if options.tau is None else options.tau
    length = engine.lengths().longest if options.length is None else options.length
    table, borrowed = _matrices(found.counts)
    if tau:
        table = smooth(table.reshape(-1, table.shape[-1]), tau=tau).reshape(table.shape)
    by_hour = found.counts.sum(axis=(1, 2))
    together: Integers = found.counts.sum(axis=0)
    chain = TimeOfDayChain(table, found.states, length=max(length, 1))
    made = steps_estimate(chain, found.states, together)
    thin = int(np.argmin(by_hour))
    rests = (
        f"It rests on {int(by_hour.sum()):,} steps, at least {int(by_hour[thin]):,} in each hour of"
        f" the day (hour {thin}), and is about sequences of at most {chain.length:,} rows, one an"
        " hour, that begin at any hour.",
    )
    notes = list(made.notes)
    if borrowed:
        listed = ", ".join(f"{name_of(found.states[x])} at hour {h}" for h, x in borrowed[:SHOWN])
        more = f" and {len(borrowed) - SHOWN} more" if len(borrowed) > SHOWN else ""
        notes.append(f"never left, so that the frequencies of all hours stand in: {listed}{more}")
    rare = int(((found.counts.sum(axis=2) < RARE) & (found.counts.sum(axis=2) > 0)).sum())
    if rare:
        notes.append(f"{rare} rows of the matrices rest on fewer than {RARE} steps")
    facts = dict(made.facts) | {"steps_by_hour": by_hour.tolist()}
    return Estimate(chain, made.counted, made.unit, rests, tuple(notes), facts)


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
