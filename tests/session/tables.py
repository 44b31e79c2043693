"""Small tables of several protected columns, and priors that relate these."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.ledger import Ledger, open_ledger
from takifugu.priors import BayesianNetwork, MarkovChain
from takifugu.session import Session
from takifugu.tables import open_engine

PLACES, HEALTH = ("home", "out"), ("well", "ill")
PROTECTED: tuple[Category | Amount, ...] = (
    Category("place", PLACES, "refuse"),
    Category("health", HEALTH, "refuse"),
)
JOINT = tuple((place, health) for place in PLACES for health in HEALTH)
P = ((0.7, 0.1, 0.15, 0.05), (0.2, 0.55, 0.05, 0.2), (0.15, 0.05, 0.6, 0.2), (0.05, 0.1, 0.25, 0.6))
START = (0.4, 0.2, 0.1, 0.3)
CHAIN = MarkovChain(
    np.array(P), states=JOINT, columns=("place", "health"), start=np.array(START), length=4
)
HEALTH_GIVEN_PLACE = ((0.9, 0.1), (0.5, 0.5))
NETWORK = BayesianNetwork(
    entries=("place", "health"),
    states=(PLACES, HEALTH),
    parents=((), ("place",)),
    tables=(np.array((0.6, 0.4)), np.array(HEALTH_GIVEN_PLACE)),
    name="survey",
)
# person, step, zone, place, health
ROWS = tuple(
    (who, step, "ab"[(k + step) % 2], PLACES[(k * step) % 2], HEALTH[(k + step // 2) % 2])
    for k, who in enumerate(("ann", "bob", "cid"))
    for step in range(4)
)
HEADER = ("person", "step", "zone", "place", "health")


def declared(
    folder: Path,
    protected: Sequence[Category | Amount] = PROTECTED,
    *,
    rows: Sequence[tuple[Any, ...]] = ROWS,
    header: Sequence[str] = HEADER,
    public: Sequence[Category] = (Category("zone", ("a", "b"), "refuse"),),
) -> Declaration:
    path = folder / "table.csv"
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Declaration(
        source=Source("csv", path=str(path)),
        entity="person",
        order=Order("step" if "step" in header else "day", "number"),
        protected=tuple(protected),
        public=tuple(public),
    )


@contextmanager
def opened_table(
    folder: Path,
    prior: Any,
    over: Any,
    *,
    budget: float | str = 10,
    delta: float | str = 0,
    how: Mapping[str, Any] | None = None,
    **table: Any,
) -> Iterator[tuple[Session, Ledger]]:
    """A session on the table, with a ledger in the same folder."""
    with (
        open_engine(declared(folder, **table), threads=1) as engine,
        open_ledger(folder / "table.ledger") as ledger,
    ):
        ledger.set_budget("table", budget, delta=delta)
        options = {"dataset": "table", "over": over, **(how or {})}
        yield Session(engine, prior, ledger=ledger, **options), ledger
