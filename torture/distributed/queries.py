"""Everything that an engine is asked for, on a table that is read in several parts."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from takifugu.declarations import Amount, Category, Order, Source
from takifugu.errors import TakifuguError
from takifugu.ledger import open_ledger
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.tables import Engine, Scope, Share, check
from tests.contracts.engines import LABELS, START, opened, rows
from tests.tables.storing import store_duckdb

FILES = 6  # one part of a job for each
CODES = Category("code", (1, 2, -3), "other", other=-99)
VISITS = Amount("visits", Fraction(0), Fraction(10), Fraction(1), "drop")
WEIGHT = Amount("weight", Fraction(-1), Fraction(5, 2), Fraction(1, 4), Fraction(1))
DECLARED = (Category("label", LABELS, "other"), CODES, VISITS, WEIGHT)
MIDDLE = Scope(start=START + timedelta(minutes=45 * 3), end=START + timedelta(minutes=45 * 19))
SOME = Scope(where={"home land": ["JP"]}, entities=Share("s", Fraction(0), Fraction(1, 2)))
SCOPES = {"all": Scope(), "a window": MIDDLE, "some people": SOME}

Question = Callable[[Engine, Scope], Any]
QUERIES: Mapping[str, Question] = {
    "count": lambda e, s: e.count(s),
    "span": lambda e, s: e.span(s),
    "lengths": lambda e, s: e.lengths(s),
    "histogram": lambda e, s: e.histogram(["home land", "label", "code"], s),
    "cross_tabulations": lambda e, s: e.cross_tabulations(
        [["home land", "label"], ["code"], ["label", "code"]], s
    ),
    "sums": lambda e, s: [e.sums(name, ["home land"], s) for name in ("visits", "weight")],
    "distribution": lambda e, s: e.distribution("weight", ["home land"], s, every=3),
    "transitions": lambda e, s: e.transitions("label", s).counts,
    "steps": lambda e, s: e.steps("code", (), s),
    "runs": lambda e, s: e.runs(["label", "code"], 2, s),
    "runs of ranges": lambda e, s: e.runs(
        ["weight"], 1, s, cuts=[Fraction(-1), Fraction(1), Fraction(5, 2)]
    ),
    "entities": lambda e, s: e.entities(500),  # noqa: ARG005
    "known_size": lambda e, s: e.known_size(),  # noqa: ARG005
    "refuse_disorder": lambda e, s: e.refuse_disorder(),  # noqa: ARG005
    "refuse_changes": lambda e, s: e.refuse_changes(["home land"], s),
    "check": lambda e, s: check(e),  # noqa: ARG005
    "releases": lambda e, s: releases(e),  # noqa: ARG005
}


def write_visits(folder: Path, copies: int) -> Source:
    """The rows of the contract many times over, of other people each time, in several files."""
    folder.mkdir(parents=True, exist_ok=True)
    store_duckdb(rows(), f"COPY visits TO '{folder}/once.parquet' (FORMAT parquet)")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for part in range(FILES):
            connection.execute(
                f"COPY (SELECT * REPLACE (person || c AS person, row + 96 * c AS row) FROM"  # noqa: S608
                f" '{folder}/once.parquet', range({part}, {copies}, {FILES}) AS t(c))"
                f" TO '{folder}/visits-{part}.parquet' (FORMAT parquet)"
            )
    (folder / "once.parquet").unlink()
    return Source("parquet", path=str(folder / "visits-*.parquet"))


def visits_engine(source: Source, session: Any = None) -> Engine:
    """The table in DuckDB, or in a session of Spark."""
    options = {} if session is None else {"backend": "spark", "session": session}
    return opened(
        (source, options),
        protected=DECLARED,
        order=Order("at", "time", zone="Asia/Jakarta", ties=("row",)),
    )


def answer(question: Question, engine: Engine, scope: Scope) -> Any:
    """What an engine answers, as plain values; an error is one too, by its kind and its fields."""
    try:
        return plain(question(engine, scope))
    except TakifuguError as error:
        return type(error).__name__, plain(getattr(error, "field", None)), str(error)


def releases(engine: Engine) -> list[Any]:
    """Answers of a session with a ledger of its own, at an ε at which noise moves nothing.

    Rows are independent, so that a Pufferfish loss of 200 is a DP loss of 200; a step moves four
    counts at most, and any noise at all on 70 counts has a probability below 140 exp(−50) < 1e-19.
    """
    states = (*LABELS, "other")
    chain = MarkovChain(np.full((len(states), len(states)), 1 / len(states)), states=states)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "visits.ledger", witness=False) as ledger,
    ):
        ledger.set_budget("visits", 600)
        asking = Session(engine, chain, ledger=ledger, dataset="visits", about="label")
        held = {"home land": ["ID", "JP"]}
        found = [
            asking.release(asking.plan.top_k(1, by="home land", where=held, epsilon=200)),
            asking.release(asking.plan.transitions(epsilon=200)),
        ]
        return [one.rows for one in found]


def plain(value: Any) -> Any:
    """A value that can be compared: arrays as lists, dataclasses by their fields."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
