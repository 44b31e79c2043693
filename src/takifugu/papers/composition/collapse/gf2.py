"""Linear algebra over GF(2): bits that are added without carry. A vector is an integer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def parity(bits: int) -> int:
    """The sum of the bits, modulo 2."""
    return bits.bit_count() & 1


@dataclass(frozen=True)
class Span:
    """All sums of some given vectors, with the way to write each as such a sum.

    Attributes:
        rows: ``(vector, sum)`` in echelon form, largest first. Bit k of ``sum`` says that the k-th
            given vector takes part.
        given: How many vectors were given.
    """

    rows: tuple[tuple[int, int], ...] = ()
    given: int = 0

    @classmethod
    def of(cls, vectors: Iterable[int]) -> "Span":
        """The span of ``vectors``."""
        return cls().plus(vectors)

    def plus(self, vectors: Iterable[int]) -> "Span":
        """The span of the vectors so far and these; they are numbered on."""
        rows, given = list(self.rows), self.given
        for vector in vectors:
            rest, made = _reduce(rows, vector)
            if rest:
                rows.append((rest, made | 1 << given))
                rows.sort(reverse=True)
            given += 1
        return Span(tuple(rows), given)

    @property
    def rank(self) -> int:
        """How many of the given vectors are independent."""
        return len(self.rows)

    def sum_for(self, vector: int) -> int | None:
        """Which given vectors add up to ``vector``; None if none do."""
        rest, made = _reduce(self.rows, vector)
        return None if rest else made

    def __contains__(self, vector: int) -> bool:
        return self.sum_for(vector) is not None


def _reduce(rows: Sequence[tuple[int, int]], vector: int) -> tuple[int, int]:
    """Subtract rows until nothing more fits: what is left, and the sum of what was taken."""
    made = 0
    for row, sum_of_given in rows:
        if vector ^ row < vector:  # the leading bit of the row is in the vector
            vector ^= row
            made ^= sum_of_given
    return vector, made


def kernel(vectors: Sequence[int], width: int) -> tuple[int, ...]:
    """A basis of the ``width``-bit vectors v with parity(r & v) = 0 for every given r."""
    pivots: dict[int, int] = {}  # leading bit -> row, cleared in all others
    for vector in vectors:
        for pivot, row in pivots.items():
            if vector >> pivot & 1:
                vector ^= row
        if vector:
            lead = vector.bit_length() - 1
            pivots = {p: r ^ vector if r >> lead & 1 else r for p, r in pivots.items()}
            pivots[lead] = vector
    free = [column for column in range(width) if column not in pivots]
    return tuple(
        1 << column | sum(1 << pivot for pivot, row in pivots.items() if row >> column & 1)
        for column in free
    )
