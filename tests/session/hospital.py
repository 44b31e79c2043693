"""A table of stays in three places, and a chain over them: counts tell less than a value."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.ledger import Ledger, open_ledger
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.tables import Engine, open_engine
from takifugu.translation.translation import Translation

STATES = ("home", "ward", "clinic")
CHAIN = MarkovChain(
    np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]]), states=STATES, length=5
)
TRANSLATION = Translation(CHAIN)
ROWS = tuple(
    (f"p{person}", step, "ab"[person % 2], STATES[(person + step * step) % 3])
    for person in range(6)
    for step in range(5)
)


def stays(folder: Path) -> Declaration:
    path = folder / "stays.csv"
    lines = ["person,step,zone,state", *(",".join(map(str, row)) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Declaration(
        Source("csv", path=str(path)),
        "person",
        Order("step", "number"),
        (Category("state", STATES, "refuse"),),
        (Category("zone", ("a", "b"), "refuse"),),
    )


@contextmanager
def hospital(
    folder: Path,
    *,
    budget: float | str = 10,
    delta: float | str = 0,
    translation: Translation = TRANSLATION,
    how: Mapping[str, Any] | None = None,
) -> Iterator[tuple[Session, Ledger, Engine]]:
    """A session on the stays."""
    with (
        open_engine(stays(folder), threads=1) as engine,
        open_ledger(folder / "stays.ledger") as ledger,
    ):
        ledger.set_budget("stays", budget, delta=delta)
        options = {"dataset": "stays", **(how or {})}
        yield Session(engine, translation, ledger=ledger, **options), ledger, engine
