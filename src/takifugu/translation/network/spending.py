"""How much differential privacy was spent on each entry of a model, or its cost value by value."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import fsum, inf, nextafter
from typing import Any

import numpy as np

from takifugu._rounding import float_up
from takifugu.errors import Malformed, UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.universe import Name
from takifugu.translation.entry_costs import EntryCosts

Spending = float | Mapping[Name, float] | Sequence[float] | Floats
EntrySpending = Spending | EntryCosts


def spent_per_entry(entries: Sequence[Name], epsilon: Spending) -> Floats:
    """``[entry]``: the total ε of every entry, from one number, a mapping by name, or a list.

    0 means that no mechanism used the entry.
    """
    listed: object = epsilon
    if isinstance(epsilon, Mapping):
        unknown = [name for name in epsilon if name not in entries]
        missing = [name for name in entries if name not in epsilon]
        if unknown or missing:
            what = f"names {unknown[0]!r}" if unknown else f"leaves out entry {missing[0]!r}"
            raise Malformed(
                "epsilon", given=what, needed="give each entry its ε; write 0 for one never touched"
            )
        listed = [epsilon[name] for name in entries]
    try:
        given = frozen(listed)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError) as error:
        raise Malformed(
            "epsilon", given="holds something that is not a number", needed="hold numbers only"
        ) from error
    if given.ndim == 0:
        given = frozen(np.full(len(entries), float(given)))
    if given.shape != (len(entries),):
        raise Malformed(
            "epsilon",
            given=f"has shape {given.shape}",
            needed=f"be one number, or one for each of the {len(entries)} entries",
        )
    if not ((given >= 0) & (given < np.inf)).all():  # also false for NaN
        raise Malformed(
            "epsilon",
            given="holds a number that is negative, infinite or none",
            needed="be finite and 0 or more: without a finite ε an entry may be revealed outright",
        )
    return given


def cost_matrices(model: FactorModel, spent: EntrySpending) -> tuple[Floats, ...]:
    """For each entry ``[u, v]``: what the change from value u to value v costs, rounded up."""
    if not isinstance(spent, EntryCosts):
        epsilon = spent_per_entry(model.entries, spent)
        return tuple(
            frozen(e * (1 - np.eye(len(states))))
            for e, states in zip(epsilon, model.states, strict=True)
        )
    if spent.size is not None and spent.size != len(model.entries):
        raise UnsoundRequest(
            f"the profile has {spent.size} costs; needed are {len(model.entries)}, one for each"
            " entry",
            field="profile",
            given=spent.size,
            needed=len(model.entries),
        )
    found: dict[Any, Floats] = {}  # entries with the same costs and values share a matrix
    for k, states in enumerate(model.states):
        key = spent.at(k), states
        if key not in found:
            most = float_up(max((cost.scalar for cost in key[0]), default=Fraction(0)))
            found[key] = frozen(np.minimum(spent.matrix(states, entry=k), most))
    return tuple(found[spent.at(k), states] for k, states in enumerate(model.states))


def largest_costs(costs: Sequence[Floats]) -> Floats:
    """``[entry]``: the largest cost of any change, an ε that covers it."""
    return frozen([float(cost.max(initial=0.0)) for cost in costs])


def group_loss(spent: Iterable[float]) -> float:
    """The sum of losses, rounded up: group privacy. That of a single loss is this loss itself."""
    positive = [float(loss) for loss in spent if loss > 0]
    if len(positive) < 2:
        return sum(positive)
    return nextafter(fsum(positive), inf)  # the nearest float to the sum, and one more


def attainable_cost(cost: Floats) -> Floats:
    """At most ``cost``, for a mechanism that is to exist: 0 where the other direction costs 0.

    If all outputs are at most as likely for u as for v, they are equally likely, since the
    probabilities add up to 1. Closed under detours.
    """
    if not ((cost == 0) != (cost == 0).T).any():
        return cost
    least = np.where((cost == 0).T, 0.0, cost)
    for w in range(len(least)):
        least = np.minimum(least, least[:, w : w + 1] + least[w : w + 1, :])
    return least
