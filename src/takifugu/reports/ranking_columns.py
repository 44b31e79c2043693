"""Which columns of a released ranking are its groups, its labels, and how sure each place is."""

from collections.abc import Sequence
from typing import Any

from takifugu.visible import four_digits

OURS = ("estimate", "low", "high", "probability")


def ranking_numbers(columns: Sequence[str]) -> int:
    """How many of the last columns of a ranking are numbers: all of `OURS`, the last, or none."""
    tail = [name.removesuffix(" (answer)") for name in columns[-len(OURS) :]]
    return len(OURS) if tuple(tail) == OURS else int(tail[-1] == OURS[-1])


def ranking_places(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[tuple[str, ...], dict[tuple[Any, ...], list[str]]]:
    """The public columns; and for each group what is at each of its places, best first.

    The columns of a ranking are its public ones, ``rank``, the label of each column, and then the
    number of the label and the ``probability`` of the place, as far as they are known.
    """
    after = ranking_numbers(columns)
    rank = "rank (answer)" if "rank (answer)" in columns else "rank"
    place, end = list(columns).index(rank), len(columns) - after
    found: dict[tuple[Any, ...], list[str]] = {}
    for row in rows:
        label = " × ".join(map(str, row[place + 1 : end]))
        sure = row[-1] if after else None
        text = label if sure is None else f"{label} ({four_digits(sure, 'down')})"
        found.setdefault(tuple(row[:place]), []).append(text)
    return tuple(columns[:place]), found
