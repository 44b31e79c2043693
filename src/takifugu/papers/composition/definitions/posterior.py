"""Definitions that start from priors: the prior is given, and the adversary may know more."""

from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite.world import World
from takifugu.papers.composition.definitions.parts import ValuePairs, check_room, content, lines
from takifugu.priors.explicit import Explicit, same_universe
from takifugu.priors.secrets import EntryIs, SecretPair, both_ways, entry_pairs
from takifugu.priors.universe import Name, Tables

ABSENT = "⊥"  # the value of an entry whose owner is not in the data


def noiseless_privacy(prior: Explicit) -> World:
    """Noiseless privacy: one prior is the only randomness (Bhaskar et al., 2011).

    A mechanism may be deterministic; what others put into the data hides each entry.
    """
    return inferential_privacy([prior])


def inferential_privacy(
    priors: Sequence[Explicit],
    *,
    entries: Sequence[Name] | None = None,
    values: ValuePairs | None = None,
) -> World:
    """Inferential privacy: these priors, every entry, every pair of values (Ghosh & Kleinberg).

    ``entries`` and ``values`` keep only some secrets, as in `entry_pairs`. Pairs that a prior
    rules out are left out for it.
    """
    tables = _tables(priors)
    pairs = entry_pairs(tables, entries=entries, values=values)
    return World(tables, tuple(priors), pairs, unsupported="skip")


def conditional_inference_privacy(
    priors: Sequence[Explicit], *, near: Callable[[Any, Any], bool]
) -> World:
    """Conditional inference privacy: only values within a radius of one another are secrets.

    ``near(x, y)`` says whether two values (places) of an entry (a time) are that close
    (Meehan & Chaudhuri, 2021); the priors model the correlation over time.
    """
    tables = _tables(priors)
    close = {
        name: [(x, y) for x, y in combinations(domain, 2) if near(x, y)]
        for name, domain in zip(tables.entries, tables.values, strict=True)
    }
    return inferential_privacy(priors, values=close)


def bayesian_privacy(
    priors: Sequence[Explicit], *, known: Sequence[Collection[Name]] | None = None
) -> World:
    """Bayesian DP: the adversary also knows some of the other entries (Yang et al., 2015).

    For every prior θ, every set K of ``known`` (all sets of entries if left out) and every
    fill x_K that θ allows, the list holds θ(· | x_K). Secrets about an entry of K are left out
    for it, because one side has probability 0.
    """
    tables = _tables(priors)
    names = tables.entries
    sets = [tuple(s) for k in range(len(names)) for s in combinations(names, k)]
    if known is not None:
        sets = [tuple(s) for s in known]
    known_columns = [[tables.entry(name) for name in s] for s in sets]
    fills = sum(prod(tables.shape[j] for j in columns) for columns in known_columns)
    check_room(tables, fills * len(priors))
    posteriors: list[Explicit] = []
    for columns in known_columns:
        others = [j for j in range(len(names)) if j not in columns]
        for rows in lines(tables, others):
            for prior in priors:
                total = float(prior.probability[rows].sum())
                if total > 0:
                    p = np.zeros(len(tables))
                    p[rows] = prior.probability[rows] / total
                    seen = content(tables, int(rows[0]), columns) or "nothing"
                    posteriors.append(Explicit(tables, p, f"{prior.name}, {seen} known"))
    return World(tables, tuple(posteriors), entry_pairs(tables), unsupported="skip")


def distributional_privacy(priors: Sequence[Explicit], *, absent: Hashable = ABSENT) -> World:
    """Distributional DP: "entry i is x" against "its owner is absent" (Bassily et al., 2013).

    Returns a world over larger tables in which every entry may also be ``absent``. For every
    prior θ, entry i and value x the list holds a coin between θ(· | X_i = x) and the same with
    X_i erased: the others have the *same* law on both sides, that given X_i = x. So what the
    others reveal about x does not count, only what the presence of the entry changes. (This is
    their definition with the mechanism itself, run on the erased data, as the simulator.)
    """
    tables = _tables(priors)
    if any(absent in domain for domain in tables.values):
        raise InvalidWorld(
            "absent", given=f"is {absent!r}, which is a value", needed="be no value of an entry"
        )
    owners = dict(zip(tables.entries, tables.records, strict=True))
    wide = Tables.of(
        {n: (*domain, absent) for n, domain in zip(tables.entries, tables.values, strict=True)},
        records=owners,
    )
    at = np.ravel_multi_index(tuple(tables.codes.T), wide.shape)
    strides = [prod(wide.shape[j + 1 :]) for j in range(len(wide.shape))]
    check_room(wide, len(priors) * sum(tables.shape))
    coins, pairs = [], []
    for j, name in enumerate(tables.entries):
        for code, x in enumerate(tables.values[j]):
            pairs.append(SecretPair(EntryIs(name, (x,)), EntryIs(name, (absent,))))
            rows = np.flatnonzero(tables.codes[:, j] == code)
            erased = at[rows] + (tables.shape[j] - code) * strides[j]
            for prior in priors:
                total = float(prior.probability[rows].sum())
                if total > 0:
                    p = np.zeros(len(wide))
                    p[at[rows]] = p[erased] = prior.probability[rows] / total / 2
                    coins.append(Explicit(wide, p, f"{prior.name}, {name}={x} or {absent}"))
    return World(wide, tuple(coins), both_ways(pairs), unsupported="skip")


def _tables(priors: Sequence[Explicit]) -> Tables:
    """The tables that all priors are over."""
    if not priors:
        raise InvalidPrior("priors", given="is empty", needed="hold at least one prior")
    tables = priors[0].universe
    if not isinstance(tables, Tables) or not same_universe(tables, *priors):
        raise InvalidPrior(
            "priors", given="are not over one set of tables", needed="share their `Tables`"
        )
    return tables
