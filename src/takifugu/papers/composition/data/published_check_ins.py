"""The check-in datasets: what their files hold, and how they become tables of entries."""

from takifugu.papers.composition.data.source_files import Column, RequiredFile

HOURS = tuple(f"{hour:02d}" for hour in range(24))

TIST_CHECKINS = RequiredFile(
    "dataset_TIST2015_Checkins.txt",
    (
        Column("user", "whole"),
        Column("venue", "text"),
        Column("utc_time", "check-in time"),
        Column("offset_minutes"),
    ),
    "tab",
)
TIST_POIS = RequiredFile(
    "dataset_TIST2015_POIs.txt",
    (
        Column("venue", "text"),
        Column("latitude"),
        Column("longitude"),
        Column("category", "label"),
        Column("country", "text"),
    ),
    "tab",
    encodings=("utf-8", "latin-1"),
)
TSMC_COLUMNS = (
    Column("user", "whole"),
    Column("venue"),
    Column("category_id"),
    Column("category", "label"),
    Column("latitude"),
    Column("longitude"),
    Column("offset_minutes", "whole"),
    Column("utc_time", "check-in time"),
)
TSMC_NYC, TSMC_TKY = (
    RequiredFile(
        f"dataset_TSMC2014_{city}.txt", TSMC_COLUMNS, "tab", encodings=("utf-8", "latin-1")
    )
    for city in ("NYC", "TKY")
)
NYC_CUT = RequiredFile(
    "checkins_nyc.csv.gz",
    (
        Column("user_idx", "whole"),
        Column("cat", "label"),
        Column("unix_s", "whole"),
        Column("hour", "whole"),
    ),
)
JAKARTA_CUT = RequiredFile(
    "checkins_jakarta.csv.gz",
    (
        Column("user_id", "whole"),
        Column("row", "whole"),
        Column("hour_of_week", "whole"),
        Column("est_hours", "whole"),
        Column("category_name_inferred", "label"),
    ),
)


def _hour_of_day(hour: str, column: str, low: int, high: int) -> str:
    """SQL for the name of a group; ``hour`` is made of ``column``, which is from low to high."""
    return (
        f"CASE WHEN {column} BETWEEN {low} AND {high} THEN lpad(({hour})::VARCHAR, 2, '0')"
        f" ELSE error('takifugu: `{column}` is out of range; it must be from {low} to {high}') END"
    )


# A check-in at a venue that the second file does not have is an entry, "other", of no country.
TIST = """
SELECT made.user AS entity, made.utc_time AS at, made.line AS row,
       place.category AS label, place.country AS "group"
FROM {checkins} AS made
LEFT JOIN (
  SELECT venue, min(category) AS category, min(country) AS country FROM {pois} GROUP BY venue
) AS place USING (venue)
"""
TSMC = """
SELECT "user" AS entity, utc_time AS at, line AS row, category AS label,
       strftime(utc_time + to_minutes(offset_minutes), '%H') AS "group"
FROM {checkins}
"""
NYC = f"""
SELECT user_idx AS entity, unix_s AS at, line AS row, cat AS label,
       {_hour_of_day("hour", "hour", 0, 23)} AS "group"
FROM {{checkins}}
"""  # noqa: S608 - nothing in it comes from outside
# The rows are in the order of time. The estimate of the hour is a lower bound; the largest one so
# far is one too, and never goes back.
JAKARTA = f"""
SELECT user_id AS entity, max(est_hours) OVER (ORDER BY row) // 24 AS at, row,
       category_name_inferred AS label,
       {_hour_of_day("(hour_of_week - 1) % 24", "hour_of_week", 1, 168)} AS "group"
FROM {{checkins}}
"""  # noqa: S608 - nothing in it comes from outside
