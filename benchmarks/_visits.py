"""A table of visits to measure with, and a clock for work that runs in a process of its own."""

import json
import os
import subprocess
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

COUNTRIES, LABELS, PAPER = 77, 78, 33_278_683  # the paper's check-ins, and how many there are

Figures = dict[str, Any]

PLAIN = {
    "histogram": "SELECT country, label, count(*) FROM visits GROUP BY ALL",
    "transitions": """
        SELECT before, label, count(*) FROM (
            SELECT label, lag(label) OVER (PARTITION BY person ORDER BY "at", "row") AS before
            FROM visits
        ) WHERE before IS NOT NULL GROUP BY ALL""",
}


def made(rows: int, folder: Path) -> Path:
    """The file of so many rows in ``folder``; made if it is not there."""
    path = folder / f"visits-{rows}.parquet"
    if not path.exists():
        began = perf_counter()
        _generate(path, rows)
        size = path.stat().st_size / 2**20
        print(f"made {rows:,} rows, {size:.0f} MiB, in {perf_counter() - began:.1f} s")
    return path


def _generate(path: Path, rows: int) -> None:
    """Write visits of about 125 rows a person: countries by person, labels that tend to stay."""
    import duckdb

    people = max(rows // 125, 1)
    part = path.with_suffix(".part")
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
            ) TO '{part}' (FORMAT parquet)"""  # noqa: S608 - numbers and a path of our own
        )
    part.replace(path)


def declared(path: Path | str) -> Any:
    """The table as an engine knows it."""
    from takifugu.declarations import Category, Declaration, Order, Source

    return Declaration(
        Source("parquet", path=str(path)),
        "person",
        Order("at", "time", zone="UTC", ties=("row",)),
        (Category("label", labels(), "refuse"),),
        (Category("country", tuple(f"country {i}" for i in range(COUNTRIES)), "refuse"),),
    )


def labels() -> tuple[str, ...]:
    """What a visit may be to."""
    return tuple(f"label {i}" for i in range(LABELS))


def plain(query: str, path: Path | str) -> Callable[[], int]:
    """Hand-written SQL, ready to run: how many it counted."""
    import duckdb

    def work() -> int:
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"CREATE VIEW visits AS FROM '{path}'")
            return sum(count for *_, count in connection.execute(PLAIN[query]).fetchall())

    return work


# --- a process of its own ---


def arguments(about: str | None, rows: int, rounds: int, parts: int) -> ArgumentParser:
    """What the modules that measure visits are told; ``--one`` is for a process of its own."""
    parser = ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--one", nargs=parts, help=SUPPRESS)
    return parser


def apart(module: str, *arguments: object, cache: Path | None = None) -> Figures:
    """The figures that ``module`` prints when it is run with ``--one`` and these arguments."""
    command = [sys.executable, "-m", module, "--one", *map(str, arguments)]
    env = os.environ | ({} if cache is None else {"XDG_CACHE_HOME": str(cache)})
    began = perf_counter()
    done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        command, check=True, capture_output=True, text=True, env=env
    )
    whole = perf_counter() - began
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found | {"whole": whole}


def clocked(prepare: Callable[[], Callable[[], Any]]) -> Figures:
    """What ``prepare`` takes, which imports, and what the work takes that it returns."""
    began = perf_counter()
    work = prepare()
    imports, before, known = perf_counter() - began, _peak(), set(sys.modules)
    began, busy = perf_counter(), process_time()
    told = work()
    seconds, busy = perf_counter() - began, process_time() - busy
    return {
        "seconds": seconds,
        "processor": busy,
        "imports": imports,
        "late": len(set(sys.modules) - known),
        "before": before,
        "peak": _peak(),
        "growth": _peak() - before,
        "told": told,
    }


def _peak() -> float:
    """The most memory that this process ever had, in MiB, without what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def compare(query: str, found: dict[str, list[Figures]], rows: int, target: float) -> None:
    """Print the middle of each way's figures, and the ratio of each to plain SQL.

    The target is for as many rows as the paper has: what is the same for any number weighs little.
    """
    middle: dict[str, Figures] = {
        way: {key: median(one[key] for one in ones) for key in ones[0] if key != "told"}
        for way, ones in found.items()
    }
    for way, figures in middle.items():
        print(
            f"{query}, {way}: {figures['seconds']:.3f} s ({figures['processor']:.2f} s of"
            f" processors) after {figures['imports']:.2f} s of imports"
            + (f" and {figures['late']:.0f} modules within" if figures["late"] else "")
            + f"; peak {figures['peak']:.0f} MiB, {figures['before']:.0f} before the work"
        )
    base = middle["plain"]
    for way, figures in middle.items():
        if way == "plain":
            continue
        ratios = {key: figures[key] / base[key] for key in ("seconds", "processor", "peak")}
        without = (base["before"] + figures["growth"]) / base["peak"]
        print(
            f"{query}, {way} against plain: time {ratios['seconds']:.2f}, processors"
            f" {ratios['processor']:.2f}, peak memory {without:.2f} without our imports and"
            f" {ratios['peak']:.2f} with them"
            + (f"; wanted: at most {target}" if rows >= PAPER else "")
        )
