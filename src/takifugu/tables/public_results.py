"""Public results of a table, remembered by the SQL that they are of, in little memory."""

from collections import OrderedDict
from sys import getsizeof
from typing import Any

MAX_BYTES = 2**24

Rows = list[tuple[Any, ...]]


class PublicResults:
    """What was asked for last, within `MAX_BYTES`: anybody may ask for one more of them for free.

    Args:
        max_bytes: How much memory they may take together.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._rows = OrderedDict[str, tuple[Rows, int]]()  # by the SQL, and how much memory

    def get(self, text: str) -> Rows | None:
        """The rows of a query; None if they are not remembered."""
        if text not in self._rows:
            return None
        self._rows.move_to_end(text)
        return self._rows[text][0]

    def keep(self, text: str, rows: Rows) -> None:
        """Remember rows, and forget those that were asked for longest ago."""
        _, before = self._rows.pop(text, (None, 0))
        size = getsizeof(text) + getsizeof(rows)
        size += sum(getsizeof(row) + sum(map(getsizeof, row)) for row in rows)
        self._rows[text] = rows, size
        self._bytes += size - before
        while self._bytes > self._max_bytes:
            _, (_, freed) = self._rows.popitem(last=False)
            self._bytes -= freed
