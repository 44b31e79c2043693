"""Definitions that compare datasets: differential privacy and its groups, as Pufferfish."""

from collections.abc import Collection, Sequence
from itertools import combinations, permutations
from math import prod

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld
from takifugu.finite.world import World
from takifugu.papers.composition.definitions.parts import (
    check_room,
    check_size,
    coins,
    content,
    lines,
)
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import EntryIs, OneOf, Secret, SecretPair, entry_pairs
from takifugu.priors.universe import Name, Tables


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
