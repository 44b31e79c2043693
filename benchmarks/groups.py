"""Releases by a public column of a million declared keys: time, memory, what takes how long.

``python -m benchmarks.groups --groups 1000000 --kind count`` asks one query in this process;
without a kind each one runs in a process of its own.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

GROUPS = 1_000_000
KINDS = ("count", "histogram", "top_k")
MOST_SECONDS, MOST_MEGABYTES = 60, 2048


def run(groups: int = GROUPS) -> None:
    """Print seconds and megabytes of each kind of query, beside what they may take."""
    for kind in KINDS:
        at = [sys.executable, "-m", "benchmarks.groups", "--groups", str(groups), "--kind", kind]
        subprocess.run(at, check=True)  # noqa: S603 - ourselves


def one(groups: int, kind: str) -> None:
    """Make a table with one row for each group and a few more, and ask one query of it."""
    import numpy as np

    from takifugu.declarations import Category, Declaration, Order, Source
    from takifugu.ledger import open_ledger
    from takifugu.priors import MarkovChain
    from takifugu.session import Session
    from takifugu.session.query_options import QueryOptions
    from takifugu.tables import open_engine
    from takifugu.translation.translation import Translation

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stays.parquet"
        _write(path, groups)
        began, busy = perf_counter(), process_time()
        declaration = Declaration(
            source=Source("parquet", path=str(path)),
            entity="person",
            order=Order("step", "number"),
            protected=(Category("state", ("home", "ward"), "refuse"),),
            public=(Category("block", tuple(f"block {i}" for i in range(groups)), "refuse"),),
        )
        chain = MarkovChain(np.array([[0.6, 0.4], [0.4, 0.6]]), states=("home", "ward"))
        with (
            open_engine(declaration) as engine,
            open_ledger(Path(folder) / "stays.ledger", witness=False) as ledger,
        ):
            ledger.set_budget("stays", 10)
            session = Session(engine, Translation(chain), ledger=ledger, dataset="stays")
            how = {"count": {"values": ["ward"]}, "top_k": {"k": 1}}.get(kind, {})
            plan = session.plan(QueryOptions(kind, by="block", epsilon=1, **how))  # type: ignore[arg-type]
            planned = perf_counter()
            result = session.release(plan, accept_noise=True)
            released = perf_counter()
            again = session.release(session.plan(plan.options))
        assert again.free
        assert again.rows == result.rows
        took, memory = perf_counter() - began, _megabytes()
        print(
            f"{kind} by {groups:,} groups: {took:.1f} s, {process_time() - busy:.1f} s of them at"
            f" work, {memory:.0f} MB"
            f" (plan {planned - began:.1f} s, release {released - planned:.1f} s, asked again"
            f" {perf_counter() - released:.1f} s); at most {MOST_SECONDS} s, {MOST_MEGABYTES} MB"
        )


def _write(path: Path, groups: int) -> None:
    import duckdb

    rows = groups + groups // 4
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i // 10 AS person, i % 10 AS step, 'block ' || (i * 7) % {groups} AS"  # noqa: S608
            f" block, if(i % 3 = 0, 'home', 'ward') AS state FROM range({rows}) r(i))"
            f" TO '{path}' (FORMAT parquet)"
        )


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--kind", choices=KINDS)
    given = parser.parse_args()
    if given.kind is None:
        run(given.groups)
    else:
        one(given.groups, given.kind)


if __name__ == "__main__":
    main()
