"""Histograms of five protected columns: one release and one pass, against five.

``python -m benchmarks.marginals --rows 33278683 --folder SOMEWHERE`` makes the file of the size of
the paper's data once and keeps it there. Each way runs in processes of its own, in turn; beside the
times stand how many scans of the rows the database plans, and how many bytes it read from the file.
A Parquet file is read column by column, so five queries read the public column five times and each
protected one once; a CSV file (``--csv``) is read whole by each.
"""

import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks._visits import Figures, apart, arguments, clocked

ROWS, ROUNDS = 1_000_000, 3
COLUMNS = {"place": 78, "activity": 20, "health": 7, "mode": 5, "company": 3}  # labels of each
COUNTRIES = 77
SCAN = re.compile("READ_PARQUET|READ_CSV|SEQ_SCAN|TABLE_SCAN")


def run(
    rows: int = ROWS, folder: Path | None = None, rounds: int = ROUNDS, *, csv: bool = False
) -> None:
    """Make the file if it is not there, and print times, scans, bytes and ratios."""
    with tempfile.TemporaryDirectory() as spare:
        path = _made(rows, folder or Path(spare), csv=csv)
        for query in ("all", "by country"):
            found: dict[str, list[Figures]] = {"one release": [], "five": []}
            for _ in range(rounds):
                for way, ones in found.items():
                    ones.append(apart("benchmarks.marginals", query, way, path))
            assert len({one["told"] for ones in found.values() for one in ones}) == 1
            middle = {
                way: {
                    key: median(one[key] for one in ones)
                    for key in ("seconds", "processor", "peak")
                }
                for way, ones in found.items()
            }
            for way, figures in middle.items():
                scans, read = _read(query, way, path)
                print(
                    f"{query}, {way}: {figures['seconds']:.3f} s ({figures['processor']:.2f} s of"
                    f" processors), peak {figures['peak']:.0f} MiB; scans: {scans}, read:"
                    f" {read / 2**20:.1f} MiB"
                )
            ratio = {
                key: middle["one release"][key] / middle["five"][key] for key in middle["five"]
            }
            print(
                f"{query}, one release against five: time {ratio['seconds']:.2f}, processors"
                f" {ratio['processor']:.2f}, peak memory {ratio['peak']:.2f}"
            )


def _made(rows: int, folder: Path, *, csv: bool) -> Path:
    import duckdb

    path = folder / f"columns-{rows}.{'csv' if csv else 'parquet'}"
    if path.exists():
        return path
    began = perf_counter()
    drawn = ", ".join(
        f"'{name} ' || least((-{labels / 6} * ln((hash(i + {17 * k}) % 1000003 + 1) / 1000004))"
        f"::BIGINT, {labels - 1}) AS {name}"
        for k, (name, labels) in enumerate(COLUMNS.items(), start=1)
    )
    part = path.with_suffix(".part")
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                SELECT i AS row, (hash(i) % {max(rows // 125, 1)})::BIGINT AS person,
                    'country ' || hash(i + 3) % {COUNTRIES} AS country, {drawn}
                FROM range({rows}) AS numbers(i)
            ) TO '{part}' (FORMAT {"csv, HEADER" if csv else "parquet"})"""  # noqa: S608 - our own
        )
    part.replace(path)
    size = path.stat().st_size / 2**20
    print(f"made {rows:,} rows, {size:.0f} MiB, in {perf_counter() - began:.1f} s")
    return path


def _declared(path: Path | str) -> Any:
    from takifugu.declarations import Category, Declaration, Order, Source

    kind: Any = "csv" if str(path).endswith(".csv") else "parquet"
    return Declaration(
        Source(kind, path=str(path)),
        "person",
        Order("row", "number"),
        tuple(
            Category(name, tuple(f"{name} {i}" for i in range(labels)), "refuse")
            for name, labels in COLUMNS.items()
        ),
        (Category("country", tuple(f"country {i}" for i in range(COUNTRIES)), "refuse"),),
    )


def _counted(engine: Any, query: str, way: str) -> Iterable[Any]:
    by = ["country"] if query == "by country" else []
    if way == "one release":
        return engine.cross_tabulations([(*by, name) for name in COLUMNS])  # type: ignore[no-any-return]
    return [engine.histogram((*by, column)) for column in COLUMNS]


def _work(query: str, way: str, path: str) -> Callable[[], int]:
    import duckdb  # noqa: F401 - an import, which loads with its first use

    from takifugu.tables import open_engine

    def work() -> int:
        with open_engine(_declared(path)) as engine:
            tables = _counted(engine, query, way)
            return zlib.crc32(b"".join(table.counts.tobytes() for table in tables))

    return work


def _read(query: str, way: str, path: Path) -> tuple[int, int]:
    """How many scans of the rows are planned, and how many bytes this process reads by them."""
    from takifugu.tables import open_engine

    with open_engine(_declared(path)) as engine:
        run, asked = engine._backend.rows, list[str]()

        def noted(text: str) -> list[tuple[Any, ...]]:
            asked.append(text)
            return run(text)

        engine._backend.rows = noted  # type: ignore[method-assign, assignment]
        engine.count()  # all modules are loaded, and the file's own description is read
        asked.clear()
        before = _bytes()
        _counted(engine, query, way)
        read = _bytes() - before
        plans = [json.loads(run(f"EXPLAIN (FORMAT json) {text}")[0][1]) for text in asked]
    return sum(len(SCAN.findall(" ".join(_operators(plan)))) for plan in plans), read


def _operators(plan: Any) -> list[str]:
    return [name for node in plan for name in (node["name"], *_operators(node["children"]))]


def _bytes() -> int:
    """What this process has read from files so far; 0 where the system does not say."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    return int(re.findall(r"rchar: (\d+)", counters.read_text())[0])


def main() -> None:
    """Read the arguments."""
    parser = arguments(__doc__, ROWS, ROUNDS, 3)
    parser.add_argument("--csv", action="store_true")
    given = parser.parse_args()
    if given.one:
        query, way, path = given.one
        print(json.dumps(clocked(lambda: _work(query, way, path))))
    else:
        run(given.rows, given.folder, given.rounds, csv=given.csv)


if __name__ == "__main__":
    main()
