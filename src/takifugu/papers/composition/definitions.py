"""The privacy definitions of the appendix as instances of Pufferfish on small worlds.

Some compare datasets: differential privacy, its groups, and Blowfish privacy, whose secrets are
given by a graph on values and whose constraints are public. Others start from a prior, and the
adversary may know more.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations, permutations
from math import prod
from typing import Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidPrior, InvalidWorld, TooLarge
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit, same_universe
from takifugu.priors.secrets import EntryIs, OneOf, Secret, SecretPair, both_ways, entry_pairs
from takifugu.priors.universe import Name, Tables

MOST_NUMBERS = 2**24  # priors × datasets that are written out, 128 MiB

ValuePairs = Mapping[Name, Iterable[tuple[Hashable, Hashable]]]


def lines(tables: Tables, columns: Sequence[int]) -> Integers:
    """``[fill of the others, fill of columns]``: the datasets that differ in ``columns`` only."""
    others = [j for j in range(len(tables.shape)) if j not in columns]
    order = np.arange(len(tables), dtype=np.int64).reshape(tables.shape)
    return order.transpose([*others, *columns]).reshape(
        prod(tables.shape[j] for j in others), prod(tables.shape[j] for j in columns)
    )


def content(tables: Tables, row: int, columns: Sequence[int]) -> str:
    """What ``columns`` hold in a dataset, in words."""
    return ", ".join(
        f"{tables.entries[j]}={tables.values[j][tables.codes[row, j]]}" for j in columns
    )


def coins(
    tables: Tables, tosses: Sequence[tuple[int, int]], pairs: tuple[SecretPair, ...]
) -> World:
    """The world of all priors that toss a fair coin between two given datasets."""
    check_room(tables, len(tosses))
    priors = []
    for a, b in tosses:
        p = np.zeros(len(tables))
        p[[a, b]] = 0.5
        priors.append(Explicit(tables, p, f"{tables.datasets[a]} or {tables.datasets[b]}"))
    return World(tables, tuple(priors), pairs, unsupported="skip")


def check_size(tables: Tables, size: int) -> None:
    """Refuse a group that is empty or larger than the table."""
    if not 1 <= size <= len(tables.entries):
        raise InvalidWorld(
            "size",
            given=f"is {size}",
            needed=f"be a number of entries, from 1 to {len(tables.entries)}",
        )


def check_room(tables: Tables, priors: int) -> None:
    """Refuse a list of priors that would not fit."""
    if priors * len(tables) > MOST_NUMBERS:
        raise TooLarge(
            f"the definition needs {priors:,} priors over {len(tables):,} datasets; at most"
            f" {MOST_NUMBERS:,} numbers are written out. Use fewer entries or values",
            size=priors * len(tables),
            limit=MOST_NUMBERS,
        )


def differential_privacy(tables: Tables) -> World:
    """ε-differential privacy: one record may be replaced (Dwork et al., 2006; Definition 1).

    Pufferfish with the secrets "record r is α" against "record r is β" and **all** priors under
    which records are independent. The list holds, for every record and every fill z of the
    others, the prior that is uniform on the record and knows z: these are product priors, and by
    the argument above no product prior has a larger loss. What they compare is P(ω|α,z) with
    P(ω|β,z), which is differential privacy. Names of records come from ``tables.records``.
    """
    records = dict.fromkeys(tables.records)
    return _replace_any(
        tables, [[j for j, r in enumerate(tables.records) if r == record] for record in records]
    )


def per_entry_privacy(tables: Tables) -> World:
    """Per-entry ε-DP: one cell may be replaced (Definition 2); as above, cell by cell."""
    return _replace_any(tables, [[j] for j in range(len(tables.entries))])


def group_privacy(tables: Tables, *, size: int) -> World:
    """Group DP: any ``size`` cells may be replaced at once (Definition 3), by one ε.

    A per-entry ε-DP mechanism has at most a loss of ``size``·ε here.
    """
    check_size(tables, size)
    return _replace_any(tables, list(combinations(range(len(tables.entries)), size)))


def dependent_privacy(
    tables: Tables, *, size: int | None = None, blocks: Sequence[Collection[Name]] | None = None
) -> World:
    """Dependent DP: a change of one entry may change up to L − 1 others (Liu et al., 2016).

    Pufferfish with the secrets "entry i is x" against "is y" and all priors under which the
    ``blocks`` are independent of one another and anything goes within a block; with ``size`` = L
    instead, every set of L entries may be a block. Given X_i = x the block of i has some law, and
    a ratio of means is at most the largest ratio: the worst priors toss one coin between two
    datasets that differ within one block only, at i among others. The list holds all of those,
    so this is group DP for the blocks, although the secrets are about single entries.

    For one dependence that is known, use `inferential_privacy` with that prior.
    """
    if (size is None) == (blocks is None):
        raise InvalidWorld(
            "size",
            given="and `blocks` are both given or both left out",
            needed="be given, or `blocks`, but not both",
        )
    columns: list[Sequence[int]]
    if size is not None:
        check_size(tables, size)
        columns = list(combinations(range(len(tables.entries)), size))
    else:
        columns = [[tables.entry(name) for name in block] for block in blocks or ()]
    tosses: dict[tuple[int, int], None] = {}
    for block in columns:
        for rows in lines(tables, block):
            tosses.update(dict.fromkeys(combinations(map(int, rows), 2)))
    return coins(tables, list(tosses), entry_pairs(tables))


def _replace_any(tables: Tables, groups: Sequence[Sequence[int]]) -> World:
    """All priors that are uniform on one group of columns and know the others for sure."""
    check_room(tables, sum(len(tables) // prod(tables.shape[j] for j in g) for g in groups))
    priors, pairs = [], []
    for group in groups:
        others = [j for j in range(len(tables.entries)) if j not in group]
        for rows in lines(tables, group):
            p = np.zeros(len(tables))
            p[rows] = 1 / len(rows)
            known = content(tables, int(rows[0]), others) or "nothing"
            priors.append(Explicit(tables, p, f"{known} known"))
        contents = [_holds(tables, group, rows) for rows in lines(tables, others)]
        pairs += [SecretPair(a, b) for a, b in permutations(contents, 2)]
    return World(tables, tuple(priors), tuple(pairs), unsupported="skip")


def _holds(tables: Tables, group: Sequence[int], rows: Integers) -> Secret:
    """The statement that the entries of ``group`` have the values that they have in ``rows``."""
    if len(group) == 1:
        column = group[0]
        value = tables.values[column][tables.codes[rows[0], column]]
        return EntryIs(tables.entries[column], (value,))
    name = content(tables, int(rows[0]), group)
    return OneOf(name, tuple(tables.datasets[int(i)] for i in rows))


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


MOST_ALLOWED = 512  # the search for neighbours looks at all pairs

Cell = tuple[Name, Hashable]


def blowfish_privacy(
    tables: Tables,
    *,
    graph: ValuePairs | None = None,
    allowed: Callable[[Any], bool] | None = None,
) -> World:
    """Blowfish: some value pairs are secret, and some facts are public (He et al., 2014).

    ``graph`` names the (unordered) secret value pairs of an entry, all of them where an entry is
    not named. ``allowed`` tests whether a dataset obeys the public constraints.

    Blowfish compares neighbours: allowed datasets that differ in secret pairs, in as few of them
    as the constraints permit, and then in as little else as possible (their Definition 4.1). A
    prior that tosses a coin between two neighbours turns each secret pair in which they differ
    into a choice between the two, so the list of these priors has exactly the loss
    that Blowfish bounds. Being neighbours need not be mutual under constraints; here both
    directions are protected, which is never less. Without constraints this is Pufferfish with
    all product priors, and with the complete graph differential privacy.
    """
    pairs = entry_pairs(tables, values=graph)
    inside = [i for i, d in enumerate(tables.datasets) if allowed is None or allowed(d)]
    if len(inside) > MOST_ALLOWED:
        raise TooLarge(
            f"the constraints allow {len(inside):,} datasets; the neighbours of at most"
            f" {MOST_ALLOWED:,} are searched. Use fewer entries or values",
            size=len(inside),
            limit=MOST_ALLOWED,
        )
    tosses = dict.fromkeys(
        (min(i, k), max(i, k)) for i in inside for k in _neighbours(tables, pairs, inside, i)
    )
    if not tosses:
        raise InvalidWorld(
            "allowed",
            given="leaves no two datasets that differ in a secret",
            needed="leave some; as it is, everything secret is public already",
        )
    return coins(tables, list(tosses), pairs)


def _neighbours(
    tables: Tables, pairs: Sequence[SecretPair], inside: Sequence[int], here: int
) -> list[int]:
    """The allowed datasets that are Blowfish neighbours of the dataset ``here``."""
    secret = {
        (pair.left.entry, pair.left.values[0], pair.right.values[0])
        for pair in pairs
        if isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs)
    }
    found: dict[frozenset[Cell], list[tuple[frozenset[Cell], int]]] = {}
    mine = _cells(tables, here)
    for other in inside:
        changed = [(e, x, y) for (e, x), (_, y) in zip(mine, _cells(tables, other), strict=True)]
        apart = frozenset((e, y) for e, x, y in changed if x != y)
        secrets = frozenset((e, y) for e, x, y in changed if (e, x, y) in secret)
        if secrets:
            found.setdefault(secrets, []).append((apart, other))
    least = [s for s in found if not any(t < s for t in found)]
    return [
        other
        for s in least
        for apart, other in found[s]
        if not any(less < apart for less, _ in found[s])
    ]


def _cells(tables: Tables, row: int) -> list[Cell]:
    """The entries of a dataset with their values."""
    return [
        (name, domain[code])
        for name, domain, code in zip(tables.entries, tables.values, tables.codes[row], strict=True)
    ]
