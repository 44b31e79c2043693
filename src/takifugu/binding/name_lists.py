"""Names of a prior beside names of a table: compared with their types, and listed side by side.

1 is not "1": a whole number and its text may name different rows. What is compared here is public
by declaration: entities, columns, labels, positions.
"""

import re
from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

from takifugu.priors import Name

N = TypeVar("N", bound=Hashable)
SHOWN = 10  # names that a message lists
WHOLE, LONG = re.compile(r"0|-?[1-9][0-9]*"), 20  # how a whole number of 64 bits is written


def listed(names: Collection[object]) -> str:
    """The first names; what cannot be printed is escaped."""
    shown = ", ".join(repr(name)[:80] for name in list(names)[:SHOWN])
    return shown + (", …" if len(names) > SHOWN else "") if names else "nothing"


def both_lists(
    names: tuple[Hashable, ...], what: str, others: tuple[Hashable, ...], *, more: bool = False
) -> str:
    """Two lists side by side, and what is in one of them alone; there may be ``more`` others."""
    lists = [f"Prior: {listed(names)}", f"{what}: {listed(others)}"]
    if not more and (alone := only_here(names, others)):
        lists.append(f"only in the prior: {listed(alone)}")
    if alone := only_here(others, names):
        lists.append(f"only in {what}: {listed(alone)}")
    return "; ".join(lists)


def only_here(here: tuple[N, ...], there: tuple[Hashable, ...]) -> tuple[N, ...]:
    """What is in the first list alone."""
    others = typed(there)
    return tuple(name for name in here if (type(name), name) not in others)


def typed(names: Iterable[object]) -> frozenset[tuple[type, object]]:
    """Names with their types: 1 is not "1"."""
    return frozenset((type(name), name) for name in names)


def types_alone(names: Collection[Hashable], others: Collection[Hashable]) -> bool:
    """Whether two lists differ in nothing but types: whole numbers here and text there."""
    return typed(names) != typed(others) and set(map(str, names)) == set(map(str, others))


TYPES_DIFFER = (
    " They are whole numbers on one side and text, in quotes, on the other: write those of the"
    " prior as the table has them."
)


def numbers(names: tuple[Name, ...]) -> tuple[Name, ...]:
    """Names that are written as whole numbers are whole numbers."""
    return tuple(_number(name) for name in names)


def _number(name: Name) -> Name:
    if isinstance(name, str) and len(name) < LONG and WHOLE.fullmatch(name):
        return int(name)
    return name
