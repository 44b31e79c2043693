"""A table of visits, counted by an engine and by hand-written DuckDB SQL.

``python -m benchmarks.engines --rows 33278683 --folder SOMEWHERE`` makes the file of the size of
the paper's data once and keeps it there. Each way runs in processes of its own, in turn, and
every time begins after the imports, whose cost is told beside it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

COUNTRIES, LABELS, ROWS, ROUNDS = 77, 78, 1_000_000, 3
QUESTIONS = ("histogram", "transitions")


def run(rows: int = ROWS, folder: Path | None = None, rounds: int = ROUNDS) -> None:
    """Make the file if it is not there, and print times, memory and ratios."""
    with tempfile.TemporaryDirectory() as spare:
        path = (folder or Path(spare)) / f"visits-{rows}.parquet"
        if not path.exists():
            began = perf_counter()
            generate(path, rows)
            size = path.stat().st_size / 2**20
            print(f"made {rows:,} rows, {size:.0f} MiB, in {perf_counter() - began:.1f} s")
        for question in QUESTIONS:
            found: dict[str, list[dict[str, Any]]] = {"engine": [], "plain": []}
            for _ in range(rounds):
                for way, ones in found.items():
                    ones.append(_measured(question, way, path))
            assert len({one["total"] for ones in found.values() for one in ones}) == 1
            _print(question, found)


def generate(path: Path, rows: int) -> None:
    """Write visits of about 125 rows a person: countries by person, labels that tend to stay."""
    import duckdb

    people = max(rows // 125, 1)
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                WITH drawn AS (
                    SELECT i, hash(i) % {people} AS person, hash(i + 7) % 43200000 AS second,
                        (hash(i + 13) % 1000003 + 1) / 1000004 AS chance
                    FROM range({rows}) AS numbers(i)
                )
                SELECT i AS row, person::BIGINT AS person,
                    TIMESTAMP '2012-04-03 18:00:00' + to_seconds(second::BIGINT) AS at,
                    'country ' || person % {COUNTRIES} AS country,
                    'label ' || least((-14 * ln(chance))::BIGINT, {LABELS - 1}) AS label
                FROM drawn
            ) TO '{path}' (FORMAT parquet)"""  # noqa: S608 - numbers and a path of our own
        )


def _measured(question: str, way: str, path: Path) -> dict[str, Any]:
    """The figures of one way to answer one question, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engines", "--one", question, way, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _one(question: str, way: str, path: str) -> dict[str, Any]:
    began = perf_counter()
    prepare = {"engine": _engine, "plain": _plain}[way]
    work = prepare(question, path)
    imports, before = perf_counter() - began, _peak()
    began, busy = perf_counter(), process_time()
    total = work()
    seconds, busy = perf_counter() - began, process_time() - busy
    return {
        "seconds": seconds,
        "processor": busy,
        "imports": imports,
        "peak": _peak(),
        "growth": _peak() - before,
        "total": total,
    }


def _engine(question: str, path: str) -> Callable[[], int]:
    import duckdb  # noqa: F401 - an import, like Ibis's compiler, which loads with its first use
    import ibis

    from takifugu.engines import Category, Declaration, Order, Source, open_engine

    ibis.to_sql(ibis.table({"x": "int64"}, name="nothing"), dialect="duckdb")
    declaration = Declaration(
        Source("parquet", path=path),
        "person",
        Order("at", "time", zone="UTC", ties=("row",)),
        (Category("label", tuple(f"label {i}" for i in range(LABELS)), "other"),),
        (Category("country", tuple(f"country {i}" for i in range(COUNTRIES)), "refuse"),),
    )

    def work() -> int:
        with open_engine(declaration) as engine:
            if question == "histogram":
                return int(engine.histogram(["country", "label"]).counts.sum())
            return int(engine.transitions("label").counts.sum())

    return work


def _plain(question: str, path: str) -> Callable[[], int]:
    import duckdb

    sql = {
        "histogram": "SELECT country, label, count(*) FROM visits GROUP BY ALL",
        "transitions": """
            SELECT before, label, count(*) FROM (
                SELECT label, lag(label) OVER (PARTITION BY person ORDER BY "at", "row") AS before
                FROM visits
            ) WHERE before IS NOT NULL GROUP BY ALL""",
    }

    def work() -> int:
        with duckdb.connect() as connection:
            connection.execute(f"CREATE VIEW visits AS FROM '{path}'")
            return sum(count for *_, count in connection.execute(sql[question]).fetchall())

    return work


def _peak() -> float:
    """The most memory that this process ever had, in MiB, without what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def _print(question: str, found: dict[str, list[dict[str, Any]]]) -> None:
    middle = {
        way: {key: median(one[key] for one in ones) for key in ones[0]}
        for way, ones in found.items()
    }
    for way, figures in middle.items():
        print(
            f"{question}, {way}: {figures['seconds']:.3f} s ({figures['processor']:.2f} s of"
            f" processors) after {figures['imports']:.2f} s of imports; peak"
            f" {figures['peak']:.0f} MiB, of it {figures['growth']:.0f} for the work"
        )
    engine, plain = middle["engine"], middle["plain"]
    ratios = {key: engine[key] / plain[key] for key in ("seconds", "processor", "growth", "peak")}
    print(
        f"{question}, engine against plain: time {ratios['seconds']:.2f}, processors"
        f" {ratios['processor']:.2f}, memory for the work {ratios['growth']:.2f}, peak with"
        f" imports {ratios['peak']:.2f}"
    )


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_one(*given.one)))
    else:
        run(given.rows, given.folder, given.rounds)


if __name__ == "__main__":
    main()
