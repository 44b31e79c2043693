"""A plan is only as good as what it is charged for: all of it is made anew before it is paid.

A plan is a value, and a value can be put together from parts of others. What is charged must be
what is read and what is drawn. So the query is made anew from the rows that the engine will
read, and the mechanism from the noise it will draw, by the code that makes plans; what differs is
refused.
"""

from dataclasses import replace

from takifugu.engines import Declaration, Engine
from takifugu.errors import TakifuguError
from takifugu.losses import Concentrated, Pure
from takifugu.mechanisms import (
    BoundedMean,
    BoundedSum,
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    NoisyTopK,
    PermuteAndFlip,
)
from takifugu.session import queries as ask
from takifugu.session.choosing import wrapped
from takifugu.session.problems import StalePlan
from takifugu.session.quantiles import QuantileOf
from takifugu.session.rows import rows_of

KINDS = (
    ask.HistogramOf,
    ask.ProportionsOf,
    ask.TopOf,
    ask.CountOf,
    ask.SumOf,
    ask.MeanOf,
    ask.TransitionsOf,
    QuantileOf,
)
FORGED = "the plan does not pay for what it would release; nothing was charged. Plan again"


def same_query(query: ask.Query, declaration: Declaration, about: str) -> ask.Query:
    """The query, if its rows are charged for and it is one that may be asked."""
    scope = query.rows.scope
    try:
        rows = rows_of(declaration, (scope.start, scope.end), dict(scope.where))  # type: ignore[arg-type]
        if type(query) not in KINDS or rows != query.rows:
            raise StalePlan(FORGED)
        made = replace(query, rows=rows)
        ask.refuse_unasked(made, declaration, about)
    except (TakifuguError, TypeError, AttributeError, KeyError) as error:
        if isinstance(error, StalePlan):
            raise
        raise StalePlan(FORGED) from None
    return made


def same_mechanism(mechanism: Mechanism, query: ask.Query, engine: Engine) -> Mechanism:
    """The mechanism, if it is one for this query: same kind, same sensitivity, same sizes."""
    try:
        made = _made(mechanism, query, engine)
    except TakifuguError:
        made = None
    if made is None or made != mechanism or type(made) is not type(mechanism):
        raise StalePlan(FORGED)
    return made


def _made(mechanism: Mechanism, query: ask.Query, engine: Engine) -> Mechanism | None:
    moves = query.sensitivity(engine.declaration)
    noise: object = mechanism
    if isinstance(mechanism, BoundedMean):
        noise = mechanism.total.noise
    elif isinstance(mechanism, BoundedSum | NoisyTopK):
        noise = mechanism.noise
    if isinstance(query, ask.TopOf | QuantileOf):
        k = query.k if isinstance(query, ask.TopOf) else 1
        match mechanism:
            case PermuteAndFlip(scale=scale):
                return PermuteAndFlip(scale, k, moves.linf)
            case Exponential(scale=scale, currency=currency):
                return Exponential(scale, k, moves.linf, currency=currency)
        if isinstance(query, QuantileOf):
            return None
        match noise:
            case IntegerLaplace(scale=scale):
                return NoisyTopK(IntegerLaplace(scale, moves), k)
            case IntegerGaussian(scale=scale):
                return NoisyTopK(IntegerGaussian(scale, moves), k)
        return None
    match noise:
        case IntegerLaplace(scale=scale):
            return wrapped(query, engine, IntegerLaplace(scale, moves))
        case IntegerGaussian(scale=scale):
            return wrapped(query, engine, IntegerGaussian(scale, moves))
    return None


def charged(mechanism: Mechanism) -> Pure | Concentrated:
    """What a mechanism loses, by its own proof."""
    loss = mechanism.loss
    if not isinstance(loss, Pure | Concentrated):
        raise StalePlan(FORGED)
    return loss
