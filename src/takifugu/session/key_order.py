"""The order in which a result shows groups whose keys are read from the data.

An engine sorts such keys as the database has them: hours that are text come as 0, 1, 10, 11, …, 2.
That order is part of every stored answer, whose numbers have no names, and stays. Rows are put in
the order in which people count when they are shown: whole numbers first, by value, and other text
by its letters, with the numbers in it by value ("ward 2" before "ward 10").
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from takifugu.priors import Name
from takifugu.session.possible_answers import AnswerTable, Rows

WHOLE = re.compile(r"[+-]?[0-9]+")
PARTS = re.compile(r"([0-9]+)")
LONGEST = 300  # digits that are read as a number
Part = tuple[int, int, str]


def counting_order(key: Name) -> tuple[Part, ...]:
    """Sorts keys as people count; keys that differ are never equal.

    >>> sorted(["10", "9", "ward 10", "-1", "ward 9"], key=counting_order)
    ['-1', '9', '10', 'ward 9', 'ward 10']
    """
    text = str(key)
    if len(text) <= LONGEST and WHOLE.fullmatch(text):
        return (0, int(text), ""), (0, 0, text)
    parts = (part for part in PARTS.split(text) if part)
    return (
        (1, 0, ""),
        *(
            (0, int(p), "") if p[0] in "0123456789" and len(p) <= LONGEST else (1, 0, p)
            for p in parts
        ),
        (0, -1, text),
    )


def in_counting_order(
    table: AnswerTable, keys: Sequence[Sequence[Name]], read: Sequence[bool]
) -> AnswerTable:
    """The table with its groups in order, by the keys of its first columns.

    ``keys`` are those of each public column, in the order of the engine; ``read`` says for which of
    them they were read from the data. Others keep the order of their declaration, and rows of one
    group their order.
    """
    places: list[Mapping[Name, int]] = []
    for column, from_data in zip(keys, read, strict=True):
        ordered = sorted(column, key=counting_order) if from_data else column
        places.append({key: place for place, key in enumerate(ordered)})
    if all(list(place) == list(column) for place, column in zip(places, keys, strict=True)):
        return table
    order = sorted(
        range(len(table.rows)),
        key=lambda row: [place[table.rows[row][i]] for i, place in enumerate(places)],
    )

    def sorted_rows(rows: Rows) -> Rows:
        return tuple(rows[row] for row in order)

    raw = None if table.raw is None else sorted_rows(table.raw)
    return replace(table, rows=sorted_rows(table.rows), raw=raw)
