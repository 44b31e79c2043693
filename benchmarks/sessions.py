"""Top 3 labels of every country through a session, beside plain DuckDB counting the same.

``python -m benchmarks.sessions --rows 33278683 --folder SOMEWHERE`` makes the file of the size of
the paper's data once and keeps it there. Each way runs in processes of its own, in turn.

Inside the clock of a session: reading prior and table of losses, opening the ledger and the data,
identifying the data, the plan, the durable charge, counting, noise, the stored answer. Outside:
imports, told beside it; the table of losses and the budget, which are made once for all sessions.
With ``--spark`` the same is asked of Spark in local mode, and both must agree.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks._visits import LABELS, Figures, apart, clocked, compare, declared, labels, made
from benchmarks._visits import plain as plain_sql

ROWS, ROUNDS = 200_000, 3
TARGETS = {"histogram": 1.5, "transitions": 1.3}
BUDGET, EPSILON = 4, 1
CLEAR = 100  # a loss at which noise moves no ranking, to compare what two engines tell


def run(
    rows: int = ROWS, folder: Path | None = None, rounds: int = ROUNDS, *, spark: bool = True
) -> None:
    """Make the file if it is not there, and print times, memory, ratios and what agrees."""
    with tempfile.TemporaryDirectory() as spare:
        path = made(rows, folder or Path(spare))
        beliefs = _beliefs(Path(spare))
        for question, target in TARGETS.items():
            found: dict[str, list[Figures]] = {"session": [], "plain": []}
            for turn in range(rounds):
                ledger = _ledger(Path(spare), f"{question}-{turn}")
                at = ("benchmarks.sessions", question)
                found["session"].append(apart(*at, "session", path, beliefs, ledger))
                found["plain"].append(apart(*at, "plain", path, beliefs, ledger))
            compare(question, found, target=target)
        if spark:
            _agree(path, beliefs, Path(spare))


def _beliefs(folder: Path) -> Path:
    """A prior and its table of losses, as files: half of the time a visitor stays."""
    import numpy as np

    from takifugu.priors import MarkovChain
    from takifugu.priors.documents import write_prior
    from takifugu.translation.table import tabulate
    from takifugu.translation.translation import Translation

    began = perf_counter()
    stay = np.full((LABELS, LABELS), 0.5 / LABELS) + 0.5 * np.eye(LABELS)
    chain = MarkovChain(stay / stay.sum(axis=1, keepdims=True), states=labels())
    write_prior(chain, folder / "prior.json")
    table = tabulate(Translation(chain), losses=(0.5, 2.0 * BUDGET), share=1)
    table.save(folder / "table.json")
    print(f"table of {len(table.epsilon)} losses made in {perf_counter() - began:.1f} s")
    return folder


def _ledger(folder: Path, name: str) -> Path:
    from takifugu.ledger import open_ledger

    path = folder / f"{name}.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("visits", BUDGET)
    return path


# --- one process ---


def _session(question: str, path: str, beliefs: str, ledger: str) -> Callable[[], int]:
    """Import everything, and return what is to be measured."""
    import ibis

    import takifugu.session.session  # noqa: F401
    from takifugu.mechanisms import IntegerLaplace

    ibis.to_sql(ibis.table({"x": "int64"}, name="nothing"), dialect="duckdb")
    IntegerLaplace(1.0).release([0])

    def work() -> int:
        return len(_told(question, path, beliefs, ledger, EPSILON).rows)

    return work


def _plain(question: str, path: str, _beliefs: str, _ledger: str) -> Callable[[], int]:
    return plain_sql(question, path)


def _told(
    question: str, path: str | Path, beliefs: str | Path, ledger: str | Path, epsilon: int, **how: Any
) -> Any:
    """What a session tells."""
    from takifugu.engines import open_engine
    from takifugu.ledger import open_ledger
    from takifugu.priors.documents import read_prior
    from takifugu.session import Session
    from takifugu.translation.table import TranslationTable
    from takifugu.translation.translation import Translation

    belief = Translation(read_prior(Path(beliefs) / "prior.json"))
    table = TranslationTable.load(Path(beliefs) / "table.json", belief)
    with open_engine(declared(path), **how) as engine, open_ledger(ledger) as paid:
        session = Session(engine, paid, belief, dataset="visits", table=table)
        if question == "histogram":
            plan = session.plan("top_k", k=3, by="country", epsilon=epsilon)
        else:
            plan = session.plan("transitions", epsilon=epsilon)
        return session.release(plan)


# --- Spark ---


def _agree(path: Path, beliefs: Path, folder: Path) -> None:
    """Ask DuckDB and Spark for the exact counts, and sessions on both for a clear ranking."""
    try:
        import pyspark  # noqa: F401 - looked for, not used
    except ModuleNotFoundError:
        print("Spark: not measured, needs takifugu[spark]")
        return
    if shutil.which("java") is None:
        print("Spark: not measured, needs Java")
        return
    found = {
        backend: apart("benchmarks.sessions", "agree", backend, path, beliefs, folder)
        for backend in ("duckdb", "spark")
    }
    told = {backend: one["told"] for backend, one in found.items()}
    for part in told["duckdb"]:
        same = told["duckdb"][part] == told["spark"][part]
        print(f"DuckDB and Spark, {part}: {'equal' if same else 'DIFFERENT'}")
        assert same
    for backend, one in found.items():
        print(f"{backend}: {one['seconds']:.1f} s for all of it, peak {one['peak']:.0f} MiB here")


def _both(backend: str, path: str, beliefs: str, folder: str) -> dict[str, Any]:
    """Exact counts of an engine, and what a session tells when it hardly protects."""
    from takifugu.engines import open_engine
    from takifugu.fingerprint import fingerprint

    how: Any = {"backend": backend}
    with open_engine(declared(path), **how) as engine:
        counts = engine.histogram(["country", "label"]).counts
        steps = engine.transitions("label").counts
    ledger = _ledger(Path(folder), backend)
    top = _told("histogram", path, beliefs, ledger, CLEAR, **how)
    return {
        "histogram": fingerprint(counts.tolist()),
        "transitions": fingerprint(steps.tolist()),
        "top 3": top.rows,
    }


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        question, way, *where = given.one
        if question == "agree":
            print(json.dumps(clocked(lambda: lambda: _both(way, *where))))
        else:
            prepare = {"session": _session, "plain": _plain}[way]
            print(json.dumps(clocked(lambda: prepare(question, *where))))
    else:
        run(given.rows, given.folder, given.rounds, spark=not given.no_spark)


if __name__ == "__main__":
    main()
