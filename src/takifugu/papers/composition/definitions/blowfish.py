"""Blowfish privacy: secrets given by a graph on values, and constraints that are public."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from takifugu.errors import InvalidWorld, TooLarge
from takifugu.finite.world import World
from takifugu.papers.composition.definitions.parts import ValuePairs, coins
from takifugu.priors.secrets import EntryIs, SecretPair, entry_pairs
from takifugu.priors.universe import Name, Tables

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
