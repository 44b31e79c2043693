"""How times are written that are stored as text, found from the column of the order: it is public.

``3/4/2012`` is a day in April or in March. A day above 12 somewhere in the column settles it; if
there is none both are possible, and somebody has to say which.
"""

from takifugu.tables.backends.backend import quoted
from takifugu.tables.backends.csv_reading import Run, literal

DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y",
    "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%m.%d.%y", "%d-%m-%y", "%m-%d-%y", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%y",
)  # fmt: skip
CLOCKS = (
    "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", " %I:%M %p",
    " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", " %H:%M:%S%z", " %H:%M:%S %z", "T%H:%M:%S%z",
    "T%H:%M:%S.%f%z", " %H:%M%z",
)  # fmt: skip
WHOLE = ("%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z")
FORMATS = (*(date + clock for date in DATES for clock in CLOCKS), *WHOLE)
ISO = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?([+-]\d{2}(:?\d{2})?|Z)?$"


def is_iso(run: Run, table: str, column: str) -> bool:
    """Whether every time of a text column is written as ISO 8601 does."""
    name = quoted(column)
    found = run(
        f"SELECT count({name}) = count(*) FILTER (regexp_matches({name}, {literal(ISO)}))"  # noqa: S608 - quoted
        f" AND count({name}) > 0 FROM {table}"
    )
    return found == [(True,)]


def possible_formats(run: Run, table: str, column: str) -> tuple[str, ...]:
    """The formats that every value of a text column is written in; most often one, or none.

    The first value rules most of them out. A year has four digits where the format says so, which
    DuckDB does not insist on.
    """
    name = quoted(column)
    first = f"(SELECT {name} FROM {table} WHERE {name} IS NOT NULL LIMIT 1)"  # noqa: S608 - quoted
    likely = _kept(run, first, name, FORMATS)
    return _kept(run, table, name, likely) if likely else ()


def _kept(run: Run, table: str, name: str, formats: tuple[str, ...]) -> tuple[str, ...]:
    parts = []
    for form in formats:
        time = f"try_strptime({name}, {literal(form)})"
        # a year of four digits, no more letters than the format writes: no other reading
        parts.append(f"count(*) FILTER (year({time}) BETWEEN 1000 AND 9999)")
    ((there, *counts),) = run(f"SELECT count({name}), {', '.join(parts)} FROM {table}")  # noqa: S608
    return tuple(
        form for form, count in zip(formats, counts, strict=True) if there and count == there
    )
