"""Tiny files in the formats that the authors of the datasets publish."""

import csv
import gzip
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def check_in_time(moment: datetime) -> str:
    """As ``Tue Apr 03 18:00:06 +0000 2012``, whatever the locale."""
    day, month = DAYS[moment.weekday()], MONTHS[moment.month - 1]
    return f"{day} {month} {moment.day:02d} {moment:%H:%M:%S} +0000 {moment.year}"


def write_tabs(path: Path, rows: Iterable[Sequence[Any]], encoding: str = "utf-8") -> None:
    text = "".join("\t".join(str(cell) for cell in row) + "\n" for row in rows)
    path.write_bytes(text.encode(encoding))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
