"""A table of visits, counted by an engine and by hand-written DuckDB SQL.

``python -m benchmarks.engines --rows 33278683 --folder SOMEWHERE`` makes the file of the size of
the paper's data once and keeps it there. Each way runs in processes of its own, in turn, and
every time begins after the imports, whose cost is told beside it.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks._visits import Figures, apart, arguments, clocked, compare, declared, made, plain

ROWS, ROUNDS = 1_000_000, 3
TARGETS = {"histogram": 1.5, "transitions": 1.3}


def run(rows: int = ROWS, folder: Path | None = None, rounds: int = ROUNDS) -> None:
    """Make the file if it is not there, and print times, memory and ratios."""
    with tempfile.TemporaryDirectory() as spare:
        path = made(rows, folder or Path(spare))
        for query, target in TARGETS.items():
            found: dict[str, list[Figures]] = {"engine": [], "plain": []}
            for _ in range(rounds):
                for way, ones in found.items():
                    ones.append(apart("benchmarks.engines", query, way, path))
            assert len({one["told"] for ones in found.values() for one in ones}) == 1
            compare(query, found, rows, target)


def _engine(query: str, path: str) -> Callable[[], int]:
    import duckdb  # noqa: F401 - an import, which loads with its first use

    from takifugu.tables import open_engine

    declaration = declared(path)

    def work() -> int:
        with open_engine(declaration) as engine:
            if query == "histogram":
                return int(engine.histogram(["country", "label"]).counts.sum())
            return int(engine.transitions("label").counts.sum())

    return work


def main() -> None:
    """Read the arguments."""
    given = arguments(__doc__, ROWS, ROUNDS, 3).parse_args()
    if given.one:
        query, way, path = given.one
        prepare = {"engine": _engine, "plain": plain}[way]
        print(json.dumps(clocked(lambda: prepare(query, path))))
    else:
        run(given.rows, given.folder, given.rounds)


if __name__ == "__main__":
    main()
