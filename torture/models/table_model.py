"""A small table by rows, how it is declared, and which rows a query reads: plain Python.

A cell is a person, a time and a column. Times are local and carry no zone: a declaration says in
which zone they are, and names the public zones of the rows. What a release tells about a cell is
known from its noise alone: Laplace noise of scale b tells 1/b of a count that a change moves by 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.binding.prior_reading import PriorTranslation, named_priors, translation_of
from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.priors import BayesianNetwork, MarkovChain, Secrets
from tests.oracles.cell_sums import Pair
from tests.session.zone_namings import ZONE_NAMINGS

PLACES, HEALTH = ("home", "out"), ("well", "ill")
VALUES = {"place": PLACES, "health": HEALTH}
CLOCKS = ("UTC", "Asia/Jakarta", "America/St_Johns")
FIRST = datetime(2026, 3, 1, 6)
STEP = timedelta(hours=6)
STEPS = 4
Cell = tuple[str, int, str]  # person, time, column


@dataclass(frozen=True)
class Held:
    """What a row holds beside its person and time."""

    zone: str
    place: str
    health: str


@dataclass(frozen=True)
class Asked:
    """A query.

    Attributes:
        kind: ``histogram`` or ``count`` of a column; ``together`` of both.
        column: The column.
        window: Places of times, from and before.
        keys: Which of the names of zones: all, the first, the others.
        epsilon: The Pufferfish ε.
    """

    kind: str
    column: str
    window: tuple[int, int] | None
    keys: int
    epsilon: str


@dataclass
class TableModel:
    """The table and its declaration.

    Attributes:
        columns: The protected columns that a session is about.
        rows: By person and time.
        naming: Of `ZONE_NAMINGS`.
        clock: Of `CLOCKS`.
        prefix: What the names of people begin with in the file: other people than elsewhere.
    """

    columns: tuple[str, ...]
    rows: dict[tuple[str, int], Held] = field(default_factory=dict)
    naming: int = 0
    clock: int = 0
    prefix: str = ""

    def __post_init__(self) -> None:
        for person in ("ann", "bob", "cid"):
            self.add(person)

    def add(self, person: str) -> None:
        """Somebody's rows."""
        size = len(person)
        for time in range(STEPS):
            zone, place = "ab"[(ord(person[0]) + time) % 2], PLACES[(size * time) % 2]
            self.rows[person, time] = Held(zone, place, HEALTH[(ord(person[0]) + time // 2) % 2])

    def write(self, path: Path) -> None:
        """The file, whole at once."""
        lines = ["person,at,zone,place,health"]
        for (person, time), held in sorted(self.rows.items()):
            at = FIRST + time * STEP
            lines.append(f"{self.prefix}{person},{at},{held.zone},{held.place},{held.health}")
        part = path.with_suffix(".part")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part.replace(path)

    def declaration(self, path: Path) -> Declaration:
        """As it is edited now."""
        return Declaration(
            source=Source("csv", path=str(path)),
            entity="person",
            order=Order("at", "time", CLOCKS[self.clock]),
            protected=tuple(Category(name, VALUES[name], "refuse") for name in self.columns),
            public=(ZONE_NAMINGS[self.naming][0],),
        )

    def named(self, keys: int) -> list[str] | None:
        """Names of zones: all of them, the first, or the others."""
        names = list(dict.fromkeys(ZONE_NAMINGS[self.naming][1].values()))
        return (None, names[:1], names[1:])[keys]

    def options(self, asked: Asked) -> dict[str, Any]:
        """A query, in the words of a session; without its kind and column."""
        names = self.named(asked.keys)
        window = None
        if asked.window is not None:
            first, end = (FIRST + place * STEP for place in asked.window)
            window = (str(first), str(end))
        return {
            "window": window,
            "where": None if names is None else {"zone": names},
            "epsilon": asked.epsilon,
        }

    def read(self, asked: Asked) -> list[tuple[str, int]]:
        """The rows that a query reads, by a loop."""
        names, called = self.named(asked.keys), ZONE_NAMINGS[self.naming][1]
        first, end = asked.window or (0, STEPS)
        return [
            (person, time)
            for (person, time), held in self.rows.items()
            if first <= time < end and (names is None or called[held.zone] in names)
        ]


def told(asked: Asked, scale: float) -> dict[str, Mapping[Pair, Fraction]]:
    """By column: what noise of this scale tells about each pair of values of a row's cell.

    A change of a value moves two cells of a histogram by 1, and a count of the first label by 1.
    """
    moved = Fraction(1 if asked.kind == "count" else 2) / Fraction(scale)
    pairs = {(0, 1): moved, (1, 0): moved}
    if asked.kind == "together":
        return dict.fromkeys(VALUES, pairs)
    return {asked.column: pairs}


def planned(session: Any, asked: Asked, options: Mapping[str, Any]) -> Any:
    """The plan of a query."""
    match asked.kind:
        case "count":
            return session.plan.count(VALUES[asked.column][0], asked.column, **options)
        case "together":
            return session.plan.histogram(tuple(VALUES), **options)
    return session.plan.histogram(asked.column, **options)


def _chain(stay: float) -> MarkovChain:
    steps = np.array([[stay, 1 - stay], [1 - stay, stay]])
    return MarkovChain(steps, states=PLACES, length=STEPS)


def _network(well: float) -> BayesianNetwork:
    return BayesianNetwork(
        entries=("place", "health"),
        states=(PLACES, HEALTH),
        parents=((), ("place",)),
        tables=(np.array((0.6, 0.4)), np.array(((well, 1 - well), (0.5, 0.5)))),
        name="survey",
    )


@dataclass(frozen=True)
class Believed:
    """What adversaries may believe: two priors over the same columns.

    Attributes:
        columns: The protected columns.
        over: What the entries of the priors are.
        priors: The priors.
    """

    columns: tuple[str, ...]
    over: str
    priors: tuple[Any, Any]

    def translation(self, prior: int, declaration: Declaration) -> PriorTranslation:
        """What a session on the table makes of a prior."""
        named = named_priors(self.priors[prior])
        about = self.columns[0] if len(self.columns) == 1 else None
        return translation_of(
            named, Secrets(), 0.0, over=self.over, declaration=declaration, about=about
        )


BELIEVED = {
    "sequence": Believed(("place",), "sequence", (_chain(0.6), _chain(0.8))),
    "row": Believed(("place", "health"), "row", (_network(0.9), _network(0.7))),
}
