"""A small table in a file, with all that a session needs around it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.binding.prior_reading import terms_of
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.ledger import Ledger, open_ledger
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.tables import Engine, open_engine
from takifugu.translation.translation import Translation

STATES = ("home", "ward")
ZONES = ("a", "b")
CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=STATES, length=4)
TRANSLATION = Translation(CHAIN)

# person, step, public zone, protected state, protected weight
ROWS: tuple[tuple[str, int, str, str, float], ...] = (
    ("Ann", 0, "a", "home", 0.5),
    ("Ann", 1, "a", "ward", 2.0),
    ("Ann", 2, "b", "ward", 9.0),
    ("Ann", 3, "b", "home", 1.0),
    ("Bea", 0, "b", "home", 3.0),
    ("Bea", 1, "a", "home", 0.0),
)


def declaration(
    folder: Path, rows: Sequence[tuple[Any, ...]] = ROWS, **changes: Any
) -> Declaration:
    path = folder / "visits.csv"
    lines = ["person,step,zone,state,weight", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts: dict[str, Any] = {
        "source": Source("csv", path=str(path)),
        "entity": "person",
        "order": Order("step", "number"),
        "protected": (Category("state", STATES, "refuse"),),
        "public": (Category("zone", ZONES, "refuse"),),
    }
    return Declaration(**(parts | changes))


PLAIN = Translation(MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4))  # of no labels
WEIGHT = Amount("weight", Fraction(0), Fraction(4), Fraction(1, 2), Fraction(0))


def accept(ledger: Ledger, translation: Translation, dataset: str = "visits") -> None:
    """The owner accepts the prior and the secrets of a translation."""
    ledger.accept(terms_of(translation), ledger.review(dataset, translation))


@contextmanager
def opened(
    folder: Path,
    *,
    budget: float | str = 10,
    delta: float | str = 0,
    translation: Translation = TRANSLATION,
    how: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Iterator[tuple[Session, Ledger, Engine]]:
    with (
        open_engine(declaration(folder, **changes), threads=1) as engine,
        open_ledger(folder / "visits.ledger") as ledger,
    ):
        ledger.set_budget("visits", budget, delta=delta)
        options = {"dataset": "visits", **(how or {})}
        yield Session(engine, translation, ledger=ledger, **options), ledger, engine


def said(session: Session) -> str:
    """The guarantee of a session, in one line."""
    return " ".join(session.guarantee().split())
