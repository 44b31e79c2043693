"""What the definitions share: lines of tables, and priors over two datasets."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import prod

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld, TooLarge
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import SecretPair
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
