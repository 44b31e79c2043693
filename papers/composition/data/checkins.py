"""The check-in datasets: what their files hold, and how they become tables of entries."""

from dataclasses import dataclass
from pathlib import Path

from papers.composition.data.files import Column, Found, Needed, Progress
from papers.composition.data.preparation import About, by_days, check_ins, prepare_table
from papers.composition.data.tables import make_table
from papers.composition.values import Prepared
from takifugu.engines import Order

HOURS = tuple(f"{hour:02d}" for hour in range(24))

TIST_CHECKINS = Needed(
    "dataset_TIST2015_Checkins.txt",
    (
        Column("user", "whole"),
        Column("venue", "text"),
        Column("utc_time", "check-in time"),
        Column("offset_minutes"),
    ),
    "tab",
)
TIST_POIS = Needed(
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
    Needed(f"dataset_TSMC2014_{city}.txt", TSMC_COLUMNS, "tab", encodings=("utf-8", "latin-1"))
    for city in ("NYC", "TKY")
)
NYC_CUT = Needed(
    "checkins_nyc.csv.gz",
    (
        Column("user_idx", "whole"),
        Column("cat", "label"),
        Column("unix_s", "whole"),
        Column("hour", "whole"),
    ),
)
JAKARTA_CUT = Needed(
    "checkins_jakarta.csv.gz",
    (
        Column("user_id", "whole"),
        Column("row", "whole"),
        Column("hour_of_week", "whole"),
        Column("est_hours", "whole"),
        Column("category_name_inferred", "label"),
    ),
)


@dataclass(frozen=True)
class CheckIns:
    """How files of check-ins become a table of entries.

    Attributes:
        recipe: A SELECT of the columns of a table, for `make_table`.
        order: What puts them in order.
        groups: The groups; None to take them from the data.
    """

    recipe: str
    order: Order
    groups: tuple[str, ...] | None = None


# A venue that the second file does not have: its check-in is an entry, "other", of no country.
TIST = CheckIns(
    """
SELECT made.user AS entity, made.utc_time AS at, made.line AS row,
       place.category AS label, place.country AS "group"
FROM {checkins} AS made
LEFT JOIN (
  SELECT venue, min(category) AS category, min(country) AS country FROM {pois} GROUP BY venue
) AS place USING (venue)
""",
    Order("at", "time", "UTC", ties=("row",)),
)
TSMC = CheckIns(
    """
SELECT "user" AS entity, utc_time AS at, line AS row, category AS label,
       strftime(utc_time + to_minutes(offset_minutes), '%H') AS "group"
FROM {checkins}
""",
    Order("at", "time", "UTC", ties=("row",)),
    HOURS,
)
NYC = CheckIns(
    """
SELECT user_idx AS entity, unix_s AS at, line AS row, cat AS label,
       lpad(hour::VARCHAR, 2, '0') AS "group"
FROM {checkins}
""",
    Order("at", "unix", "America/New_York", ties=("row",)),
    HOURS,
)
# The rows are in the order of time; the estimate of the hour is a lower bound, and so is the
# largest one so far, which never goes back.
JAKARTA = CheckIns(
    """
SELECT user_id AS entity, max(est_hours) OVER (ORDER BY row) // 24 AS at, row,
       category_name_inferred AS label, lpad(((hour_of_week - 1) % 24)::VARCHAR, 2, '0') AS "group"
FROM {checkins}
""",
    Order("at", "number", ties=("row",)),
    HOURS,
)


def prepare_check_ins(
    made: CheckIns, about: About, found: Found, work: Path, progress: Progress
) -> Prepared:
    """Prepare a dataset of check-ins as the paper does."""
    progress(f"{about.key}: reading files", 0, 2)
    table = make_table(work / f"{about.key}.parquet", made.recipe, found)
    progress(f"{about.key}: fitting and counting", 1, 2)
    declaration = check_ins(str(table.path), made.order, groups=made.groups)
    prepared = prepare_table(about, declaration, by_days, identity=table.identity)
    progress(f"{about.key}: ready", 2, 2)
    return prepared
