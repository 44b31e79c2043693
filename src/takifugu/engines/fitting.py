"""Fit a Markov chain to a declared table: the counting is done where the rows are."""

from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from fractions import Fraction
from typing import Literal

from takifugu.engines.engine import Engine
from takifugu.engines.problems import InvalidQuery
from takifugu.engines.scope import EVERYTHING, Scope, Share
from takifugu.priors import FittedRows, MarkovChain, Name, Transitions
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
    """

    chain: MarkovChain
    counts: Transitions
    train: Scope
    test: Scope | None
    split: FirstDays | ByEntity | None

    @property
    def rows(self) -> FittedRows:
        """The rows that it was fitted on, as the chain itself knows them."""
        (rows,) = self.chain.fitted_on
        return rows

    @property
    def statement(self) -> str:
        """What to tell whoever reads the policy, in plain words."""
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
        length: How many entries the chain has; None if there is no end to them.
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
            first = engine.span(scope)[0]
            cut = (
                datetime.combine(first.date(), time()) + timedelta(days=days)
                if isinstance(first, datetime)
                else first + days
            )
            return replace(scope, end=cut), replace(scope, start=cut)
        case ByEntity(share, salt):
            if scope.entities is not None:
                raise InvalidQuery(
                    "scope, entities", given="is given", needed="be left out of a split by entity"
                )
            train, test = Share(salt, Fraction(0), share), Share(salt, share, Fraction(1))
            return replace(scope, entities=train), replace(scope, entities=test)
