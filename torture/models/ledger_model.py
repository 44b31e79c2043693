"""Rows that are known by where they stand, and what a charge tells about each: plain Python.

Twelve rows: two countries, two floors, three times. A declaration names them, a charge names some
of them by a window and keys; which rows these are is found by a loop. Nothing is taken from the
ledger but the words in which a charge is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure
from takifugu.ledger import Cells, Charge, Groups, Window
from takifugu.priors import MarkovChain
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation
from tests.ledger.charges import EVERY_PAIR, Places, charge
from tests.oracles.cell_sums import Pair

TIMES = range(3)


class Row(NamedTuple):
    """A row as it is, whatever a declaration calls it."""

    country: str
    floor: int
    time: int


ROWS = tuple(Row(country, floor, time) for country in "xy" for floor in (1, 2) for time in TIMES)

# What a declaration calls the countries: as they are; the other way round; one of them "rest".
NAMINGS: tuple[Mapping[str, str], ...] = (
    {"x": "x", "y": "y"},
    {"x": "y", "y": "x"},
    {"x": "x", "y": "rest"},
    {"x": "rest", "y": "y"},
)
# What it calls the values of the protected column: as they are; the first two exchanged, by another
# list of labels; the same by other steps, which only matters to charges by value.
READINGS: tuple[tuple[str, str], ...] = (
    ("as they are", "1"),
    ("exchanged", "1"),
    ("as they are", "1/2"),
)
ZONES = ("UTC", "Asia/Jakarta", "Europe/Paris", "America/St_Johns")
UNITS = ("step", "day", "instant")
FIRST_DAY = date(2026, 3, 28)  # clocks change on the day after, in Paris
NOON = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)


class Declared(NamedTuple):
    """A declaration: positions in `NAMINGS` and in `READINGS`."""

    naming: int
    reading: int

    @property
    def cells(self) -> Cells:
        """What names the cells and their values, in the words of the ledger."""
        labels, step = READINGS[self.reading]
        return Cells.of(
            {"public": {"country": NAMINGS[self.naming]}, "protected": {"labels": labels}},
            {"place": {"bounds": ["0", "10"], "step": step}},
        )

    def label(self, value: int) -> int:
        """The position of the label that a value has, by its own position."""
        return (1, 0, *range(2, 10))[value] if self.reading else value


DECLARED = tuple(
    Declared(naming, reading) for reading in range(len(READINGS)) for naming in range(len(NAMINGS))
)


def moment(time: int, unit: str, zone: str) -> int | date | datetime:
    """A time of the rows in some unit; an instant as clocks show it in some zone."""
    if unit == "step":
        return time
    if unit == "day":
        return FIRST_DAY + timedelta(days=time)
    return (NOON + timedelta(hours=time)).astimezone(ZoneInfo(zone))


@dataclass(frozen=True)
class Reads:
    """What a charge reads.

    Attributes:
        first: The first time, or None for the beginning.
        end: The time at which it ends, or None.
        by: The columns that its keys are of; none for all rows.
        keys: Keys of these columns, by the names of the declaration.
        unit: That of the window.
        zone: Of an instant.
    """

    first: int | None
    end: int | None
    by: tuple[str, ...]
    keys: frozenset[tuple[str | int, ...]]
    unit: str
    zone: str

    def rows(self, naming: int) -> list[Row]:
        """The rows that are read, one after another."""
        found = []
        for row in ROWS:
            if self.first is not None and row.time < self.first:
                continue
            if self.end is not None and not row.time < self.end:
                continue
            named: dict[str, str | int] = {
                "country": NAMINGS[naming][row.country],
                "floor": row.floor,
            }
            if not self.by or tuple(named[column] for column in self.by) in self.keys:
                found.append(row)
        return found

    @property
    def window(self) -> Window | None:
        """The window in the words of the ledger."""
        if self.first is None and self.end is None:
            return None
        start, end = (
            None if one is None else moment(one, self.unit, self.zone)
            for one in (self.first, self.end)
        )
        return Window(start, end)

    @property
    def groups(self) -> Groups | None:
        """The groups in the words of the ledger."""
        return Groups(self.by, self.keys) if self.by else None


def cell_of(row: Row, naming: int, unit: str) -> tuple[Window, Groups]:
    """Where the ledger counts a row."""
    window = Window(moment(row.time, unit, "UTC"), moment(row.time + 1, unit, "UTC"))
    return window, Groups(("country", "floor"), [(NAMINGS[naming][row.country], row.floor)])


# --- what a charge tells about values, and priors that judge it ---


@dataclass(frozen=True)
class Tells:
    """A loss, and what it says about each pair of values, in δ and in ρ."""

    loss: Loss
    pairs: Mapping[Pair, Fraction]
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


class Summed(Places):
    """A sum over all changes, of which none is more than the whole."""

    def covering_cost(self, pufferfish: Fraction, /) -> Cost | None:
        """What no admitted cost exceeds."""
        return Cost.any(pufferfish)


class Doubled(Summed):
    """What counts six times for one adversary counts twelve times for this one."""

    fingerprint = "places, doubled"

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up."""
        return 2 * super().to_pufferfish(dp)

    def to_dp(self, pufferfish: float, /) -> float:
        """Rounded down."""
        return super().to_dp(pufferfish / 2)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """Rounded up."""
        return 2 * super().cost_to_pufferfish(*costs)

    def to_cost(self, unit: Cost, pufferfish: float, **others: Any) -> Fraction:
        """Rounded down."""
        return super().to_cost(unit, pufferfish / 2, **others)


@dataclass(frozen=True)
class Worth:
    """What values there are, and two adversaries.

    Attributes:
        values: Their labels.
        numbers: The same as numbers.
        priors: Translations; their order is their name.
        generous: A budget under which several charges fit.
    """

    values: tuple[str, ...]
    numbers: tuple[int, ...]
    priors: tuple[LossTranslation, LossTranslation]
    generous: Fraction

    def tells(self, kind: str, size: Fraction, declared: Declared = DECLARED[0]) -> Tells:
        """One release of a kind: what its noise tells about values, whatever their labels are."""
        told = self._told_of_labels(kind, size)
        pairs = {(u, v): told.pairs[declared.label(u), declared.label(v)] for u, v in told.pairs}
        return replace(told, pairs=pairs)

    def _told_of_labels(self, kind: str, size: Fraction) -> Tells:
        """The same about labels, by its definition."""
        pairs = list(permutations(range(len(self.values)), 2))
        every = dict.fromkeys(pairs, size)
        match kind:
            case "pure":
                return Tells(Pure(size), every)
            case "approximate":
                return Tells(Approximate(size, Fraction(1, 10**9)), every, Fraction(1, 10**9))
            case "concentrated":
                return Tells(Concentrated(size / 100), {}, rho=size / 100)
            case "count":
                told = {(u, v): size * ((u == 0) != (v == 0)) for u, v in pairs}
                return Tells(Metric(Cost.of({Membership(self.values[:1]): size})), told)
            case "last":
                last = len(self.values) - 1
                told = {(u, v): size * ((u == last) != (v == last)) for u, v in pairs}
                return Tells(Metric(Cost.of({Membership(self.values[-1:]): size})), told)
            case "matrix":
                wide = [[size if u != v else 0 for v in self.values] for u in self.values]
                wide[0][1] = size / 2
                told = {(u, v): Fraction(wide[u][v]) for u, v in pairs}
                return Tells(Metric(Cost.of({Matrix(self.values, wide): 1})), told)
            case "distance":
                low, high = min(self.numbers), max(self.numbers)
                told = {
                    (u, v): size * abs(Fraction(self.numbers[u] - self.numbers[v], high - low))
                    for u, v in pairs
                }
                return Tells(Metric(Cost.of({Distance(low, high): size})), told)
        raise ValueError(kind)


def _chain(stay: float) -> Translation:
    steps = np.array([[stay, 1 - stay], [1 - stay, stay]])
    return Translation(MarkovChain(steps, states=("0", "10"), length=len(TIMES)))


WORTHS = {
    "sums": Worth(("home", "ward", "work"), (), (Summed(), Doubled()), Fraction(12)),
    "chains": Worth(("0", "10"), (0, 10), (_chain(0.6), _chain(0.8)), Fraction(3)),
}
KINDS = {
    "sums": ("pure", "count", "last", "matrix"),
    "chains": ("pure", "count", "last", "distance", "approximate", "concentrated"),
}


def planned(
    worth: str,
    prior: int,
    declared: Declared,
    reads: Reads,
    tells: Tells,
    **others: Any,
) -> Charge:
    """A charge, in the words of the ledger."""
    return charge(
        *(tells.loss, reads.window, reads.groups),
        cells=declared.cells,
        prior=f"prior {prior}",
        secrets=EVERY_PAIR,
        translation=WORTHS[worth].priors[prior].fingerprint,
        **others,
    )
