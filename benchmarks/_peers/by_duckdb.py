"""Plain DuckDB, which protects nothing: the floor."""

from collections.abc import Callable

from benchmarks._peers.answers import Counts, answer

COUNTED = "SELECT country, label, count(*) FROM read_parquet(?) GROUP BY ALL"


def start(path: str, _: float) -> Callable[[], Counts]:
    """Open a database in memory."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return lambda: connection.execute(COUNTED, [path]).fetchall()


if __name__ == "__main__":
    answer(start)
