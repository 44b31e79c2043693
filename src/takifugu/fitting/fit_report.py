"""What a fitted prior rests on: in sentences for the policy and the owner, and for programs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.declarations.columns import Amount
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.fitting.fit_kinds import Estimate
from takifugu.priors import Prior
from takifugu.priors.prior import state_text
from takifugu.tables.engine import Engine
from takifugu.visible import visible

RARE = 10  # times that a state is left, below which its row of a table is little more than noise
SHOWN = 5  # states that a sentence lists


def steps_estimate(
    prior: Prior, states: Sequence[Any], counts: Integers, tau: float | None = None
) -> Estimate:
    """A prior over a sequence, and the steps that it rests on: ``[…, state, next state]``.

    ``tau`` is what their zeros were smoothed to.
    """
    total = int(counts.sum())
    if not total:
        raise InvalidQuery(
            "rows",
            given="to fit on have no row that follows another one of the same entity",
            needed="hold sequences: fit on more days, on a larger share, or check the entity. If"
            " every entity has one row, its columns may depend on each other: fit a network of"
            " them (--kind network)",
            reason="no-steps",
        )
    left = counts.sum(axis=(*range(counts.ndim - 2), counts.ndim - 1))  # [state]
    before = counts.ndim - 1
    rests = [f"It rests on {total:,} {'steps' if before == 1 else f'runs of {before + 1} rows'}."]
    notes = []
    if rare := _rare(states, left):
        notes.append(f"hardly seen: {rare}")
    rows = counts.reshape(-1, counts.shape[-1]).sum(axis=1)
    if before > 1:
        unseen = int((rows == 0).sum())
        if unseen:
            notes.append(
                f"{unseen:,} of {len(rows):,} windows were never followed by a row; after them all"
                " states are taken to be equally likely"
            )
    facts = {
        "exits": {state_text(state): int(count) for state, count in zip(states, left, strict=True)}
    }
    return Estimate(
        *(prior, total, "steps", tuple(rests), tuple(notes), facts),
        rare=tuple((state_text(states[i]), int(left[i])) for i in _rarest(left)),
        counts=counts if before == 1 else None,
        tau=tau,
    )


def with_few(estimate: Estimate, people: Integers) -> Estimate:
    """The same, with the states that few people have left: ``people`` counts them for each."""
    from takifugu.advice.prior_advice import FEW_PEOPLE as FEW

    states = getattr(estimate.prior, "states", ())
    low = [int(k) for k in np.argsort(people, kind="stable") if 0 < people[k] < FEW]
    few = tuple((state_text(states[k]), int(people[k])) for k in low)
    return replace(estimate, few=few, facts=dict(estimate.facts) | {"few_people": dict(few)})


def _rare(states: Sequence[Any], left: Integers) -> str:
    """The states that were left hardly ever, the rarest first."""
    order = _rarest(left)
    named = [f"{name_of(states[i])} ({int(left[i])})" for i in order[:SHOWN]]
    if len(order) > SHOWN:
        named.append(f"and {len(order) - SHOWN} more states")
    times = f"left fewer than {RARE} times in the rows that were counted"
    return f"{', '.join(named)}, {times}" if named else ""


def _rarest(left: Integers) -> list[int]:
    return [int(i) for i in np.argsort(left, kind="stable") if left[i] < RARE]


def name_of(state: Any) -> str:
    """A state as a sentence quotes it, on one line."""
    return visible(repr(state_text(state)))


def the_one(columns: tuple[str, ...], kind: str) -> str:
    """The one column; an error if there are several."""
    if len(columns) != 1:
        raise InvalidQuery(
            "columns",
            given=f"are {', '.join(columns)}",
            needed=f"be one for a prior of kind {kind}; joint states have kind markov",
        )
    return columns[0]


def refuse_uncut(engine: Engine, column: str) -> None:
    """Raise if a chain over a column of numbers is asked for and no ranges are given."""
    declared = next((c for c in engine.declaration.protected if c.column == column), None)
    if isinstance(declared, Amount):
        low, high = (f"{float(bound):g}" for bound in (declared.low, declared.high))
        raise InvalidQuery(
            "cuts",
            given=f"are missing, and {column} is a column of numbers",
            needed=f"be given, from {low} to {high}, for a chain over ranges of it; or take kind"
            " gaussian",
            reason="numbers",
        )
