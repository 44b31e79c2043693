"""Outputs of any shape, read as rows of a table of numbers.

An output may be a number, a text, a tuple of several answers, or an array. A `Reader` fixes, from
some outputs, how many cells a row has and which of them are numbers; other cells get a code for
each value. Reading is a function of one output alone, so that an event stated in terms of rows is
an event about outputs, also for outputs unlike the first ones.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import Malformed

UNSEEN = -1.0  # the code of a value that the reader was not shown
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Reader:
    """How an output becomes a row of numbers.

    Attributes:
        codes: One item per cell: None for a number, else the code of each value.
        ragged: Whether outputs differ in length; then the first cell is the length, and short
            outputs are filled up with nothing.
    """

    codes: tuple[Mapping[Hashable, int] | None, ...]
    ragged: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The cells that hold numbers."""
        return tuple(j for j, code in enumerate(self.codes) if code is None)

    def rows(self, outputs: Any) -> Floats:
        """``[output, cell]``: the outputs, read; NaN where a number was expected and none came."""
        if _is_numeric(outputs) and not self.ragged and len(self.numbers) == len(self.codes):
            flat = _matrix(outputs)
            if flat.shape[1] == len(self.codes):
                return flat
        table = np.empty((len(outputs), len(self.codes)))
        for i, output in enumerate(outputs):
            table[i] = self._row(output)
        return table

    def _row(self, output: Any) -> list[float]:
        cells = list(_cells(output))
        if self.ragged:
            cells = _filled(cells, len(self.codes))
        if len(cells) != len(self.codes):
            return [np.nan if code is None else UNSEEN for code in self.codes]
        return [_read(cell, code) for cell, code in zip(cells, self.codes, strict=True)]


def reader(*groups: Any) -> Reader:
    """Learn how to read outputs like these: how many cells, and of which kinds."""
    if all(map(_is_numeric, groups)) and len({g.shape[1:] for g in groups}) == 1:
        return Reader((None,) * _allowed(_matrix(groups[0]).shape[1]))
    rows = [list(_cells(output)) for group in groups for output in group]
    lengths = {len(row) for row in rows}
    longest = _allowed(max(lengths, default=0))
    ragged = len(lengths) > 1
    if ragged:
        rows = [_filled(row, longest + 1) for row in rows]
    columns = zip(*rows, strict=True)
    return Reader(tuple(None if all(map(_numeric, c)) else _code(c) for c in columns), ragged)


def _allowed(cells: int) -> int:
    if cells == 0:
        raise Malformed("outputs", given="are empty", needed="hold one answer or more each")
    if cells > MOST_CELLS:
        raise Malformed(
            "outputs",
            given=f"have {cells:,} cells",
            needed=f"have at most {MOST_CELLS:,}; give the auditor a summary of them",
        )
    return cells


def of_size(outputs: Any, size: int) -> Any:
    """The ``outputs`` of a sampler, if there are ``size`` of them."""
    if not isinstance(outputs, np.ndarray | Sequence) or isinstance(outputs, str | bytes | tuple):
        raise Malformed(
            "outputs",
            given=f"came as {type(outputs).__name__}",
            needed="come as a list, or as an array whose first axis counts outputs",
        )
    if len(outputs) != size:
        raise Malformed(
            "outputs", given=f"number {len(outputs)}", needed=f"number {size}, as requested"
        )
    return outputs


def _is_numeric(outputs: Any) -> bool:
    return isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf"


def _matrix(outputs: np.ndarray) -> Floats:
    """``[output, cell]``; −0.0 becomes 0.0, so that equal rows are equal bytes."""
    return outputs.reshape(len(outputs), -1).astype(np.float64) + 0.0


def _cells(output: Any) -> Iterator[Any]:
    """The answers of one output, tuples and arrays opened."""
    if isinstance(output, np.ndarray):
        yield from output.ravel().tolist()
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _cells(part)
    else:
        yield output


def _filled(cells: list[Any], width: int) -> list[Any]:
    """The length first, then the cells, then nothing up to ``width``."""
    return [len(cells), *cells, *[None] * (width - 1 - len(cells))][:width]


def _numeric(cell: Any) -> bool:
    return cell is None or isinstance(cell, Real)


def _code(values: Iterable[Any]) -> dict[Hashable, int]:
    codes: dict[Hashable, int] = {}
    for value in values:
        try:
            codes.setdefault(value, len(codes))
        except TypeError as error:
            raise Malformed(
                "outputs",
                given=f"hold a {type(value).__name__}, which cannot be counted",
                needed="be numbers, texts, or tuples and arrays of them",
            ) from error
    return codes


def _read(cell: Any, code: Mapping[Hashable, int] | None) -> float:
    if code is None:
        try:
            return float(cell) + 0.0 if isinstance(cell, Real) else np.nan
        except OverflowError:
            return np.inf if cell > 0 else -np.inf
    try:
        return float(code.get(cell, UNSEEN))
    except TypeError:
        return UNSEEN
