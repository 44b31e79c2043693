"""A synthetic table of visits, as the example of the README reads it."""

from pathlib import Path

import duckdb

LABELS = ["home", "work", "cafe", "gym"]
COUNTRIES = ["JP", "MX"]
DAYS, USERS = 450, 40


def write_visits(folder: Path) -> None:
    """Write ``visits.parquet``: user, at, country and place, one visit a day."""
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                SELECT 'u' || u AS "user",
                    TIMESTAMP '2012-04-03' + INTERVAL 1 DAY * d + INTERVAL 1 HOUR * (u % 12) AS at,
                    {COUNTRIES}[1 + u % {len(COUNTRIES)}] AS country,
                    {LABELS}[1 + (hash(u * 1000 + d // 2) % {len(LABELS)})::INT] AS place
                FROM range({USERS}) users(u), range({DAYS}) days(d)
            ) TO '{folder / "visits.parquet"}' (FORMAT parquet)"""  # noqa: S608 - our own words
        )
