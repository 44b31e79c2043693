"""Top 3 labels of every country, and transitions, through a session beside plain DuckDB.

``python -m benchmarks.sessions --rows 33278683 --folder SOMEWHERE`` makes the file of the size of
the paper's data once and keeps it there. Each way runs in processes of its own, in turn.

Inside the clock of a session: reading the prior and its table of losses, opening the ledger and the
data, identifying the data, plan, durable charge, counting, noise, storing the answer. Outside:
imports, told beside it; the table of losses and the budget, which are made once for all sessions.
The first session on a file also reads every byte of it, to know it again.

Where PySpark and Java are there, DuckDB and Spark are asked the same and must agree: in the exact
counts, and in what sessions tell at a loss so large that noise moves nothing.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks._visits import (
    LABELS,
    Figures,
    apart,
    arguments,
    clocked,
    compare,
    declared,
    labels,
    made,
)
from benchmarks._visits import plain as hand_written

ROWS, ROUNDS = 200_000, 3
TARGETS = {"histogram": 1.3, "transitions": 1.1}
USUAL, CLEAR = 1, 50  # what is asked for; at the second noise moves no place of a ranking


def run(rows: int = ROWS, folder: Path | None = None, rounds: int = ROUNDS) -> None:
    """Make the file if it is not there, and print times, memory, ratios and what agrees."""
    with tempfile.TemporaryDirectory() as spare:
        path, place = made(rows, folder or Path(spare)), Path(spare)
        for stay, epsilon in ((0.5, USUAL), (0.0, CLEAR)):
            _believe(place, stay, epsilon)
        for query, target in TARGETS.items():
            found: dict[str, list[Figures]] = {"session": [], "plain": [], "first session": []}
            for turn in range(rounds + 1):
                for way, ones in found.items():
                    cache = place / ("later" if way == "session" else f"{query} {turn}")
                    at = ("benchmarks.sessions", query, way, path, place, _ledger(place))
                    ones.append(apart(*at, cache=cache))
            compare(query, {way: ones[1:] for way, ones in found.items()}, rows, target)
        _agree(path, place)


def _believe(folder: Path, stay: float, epsilon: int) -> None:
    """A prior and its table of losses, as files. With chance ``stay`` a label stays as it is."""
    import numpy as np

    from takifugu.priors import MarkovChain
    from takifugu.priors.documents import write_prior
    from takifugu.translation.accounting.tables import tabulate
    from takifugu.translation.translation import Translation

    began = perf_counter()
    steps = np.full((LABELS, LABELS), (1 - stay) / LABELS) + stay * np.eye(LABELS)
    chain = MarkovChain(steps / steps.sum(axis=1, keepdims=True), states=labels())
    write_prior(chain, folder / f"{epsilon}.prior.json")
    table = tabulate(Translation(chain), losses=(0.9 * epsilon, 4.0 * epsilon), share=1)
    table.save(folder / f"{epsilon}.table.json")
    print(f"table of {len(table.epsilon)} losses made in {perf_counter() - began:.1f} s")


def _ledger(folder: Path, epsilon: int = USUAL) -> Path:
    """A new ledger with room for one answer and more."""
    from takifugu.ledger import open_ledger

    path = Path(tempfile.mkdtemp(dir=folder)) / "visits.ledger"
    os.environ["XDG_STATE_HOME"] = str(path.parent)  # other ledgers have charged the same rows
    with open_ledger(path) as ledger:
        ledger.set_budget("visits", 3 * epsilon)
    return path


# --- one process ---


def _session(query: str, path: str, beliefs: str, ledger: str) -> Callable[[], int]:
    """Import everything, and return what is to be measured."""
    import duckdb  # noqa: F401
    import scipy.special  # noqa: F401

    from takifugu.mechanisms import IntegerLaplace

    IntegerLaplace(1.0).release([0])  # loads the library
    return lambda: len(_told(query, path, beliefs, ledger, USUAL).rows)


def _plain(query: str, path: str, _beliefs: str, _ledger: str) -> Callable[[], int]:
    return hand_written(query, path)


def _told(query: str, path: str, beliefs: str, ledger: str | Path, epsilon: int, **how: Any) -> Any:
    """What a session tells."""
    from takifugu.ledger import open_ledger
    from takifugu.priors.documents import read_prior
    from takifugu.session import Session
    from takifugu.tables import open_engine
    from takifugu.translation.accounting.tables import TranslationTable
    from takifugu.translation.translation import Translation

    belief = Translation(read_prior(Path(beliefs) / f"{epsilon}.prior.json"))
    table = TranslationTable.load(Path(beliefs) / f"{epsilon}.table.json", belief)
    with open_engine(declared(path), **how) as engine, open_ledger(ledger) as paid:
        session = Session(engine, belief, ledger=paid, dataset="visits", translation_table=table)
        if query == "histogram":
            plan = session.plan.top_k(3, by="country", epsilon=epsilon)
        else:
            plan = session.plan.transitions(epsilon=epsilon)
        return session.release(plan, accept_noise=True)


# --- Spark ---


def _agree(path: Path, place: Path) -> None:
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("Spark: not asked, it needs takifugu[spark] and Java")
        return
    found = {
        backend: apart("benchmarks.sessions", "agree", backend, path, place, place)
        for backend in ("duckdb", "spark")
    }
    for part, told in found["duckdb"]["told"].items():
        same = told == found["spark"]["told"][part]
        print(f"DuckDB and Spark, {part}: {'equal' if same else 'DIFFERENT'}")
        assert same
    for backend, one in found.items():
        print(f"{backend}: {one['seconds']:.1f} s for these, imports and start included")


def _exact_and_told(backend: str, path: str, beliefs: str, folder: str) -> dict[str, Any]:
    from takifugu._core.fingerprint import fingerprint
    from takifugu.tables import open_engine

    how: Any = {"backend": backend}
    with open_engine(declared(path), **how) as engine:
        counts = engine.histogram(["country", "label"]).counts
        steps = engine.transitions("label").counts
    paid = _ledger(Path(folder), CLEAR)
    return {
        "exact histogram": fingerprint(counts.tolist()),
        "exact transitions": fingerprint(steps.tolist()),
        "top 3 of every country, told by a session": _told(
            "histogram", path, beliefs, paid, CLEAR, **how
        ).rows,
    }


def main() -> None:
    """Read the arguments."""
    given = arguments(__doc__, ROWS, ROUNDS, 5).parse_args()
    if not given.one:
        run(given.rows, given.folder, given.rounds)
        return
    query, way, *where = given.one
    if query == "agree":
        found = clocked(lambda: lambda: _exact_and_told(way, *where))
    else:
        prepare = _plain if way == "plain" else _session
        found = clocked(lambda: prepare(query, *where))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
