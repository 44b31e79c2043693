"""What a peer has in common with the others: its arguments, its clock, and how it answers.

Only the standard library is imported here: this runs in the environment of every peer.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks._visits import COUNTRIES, LABELS

PLACES = 3
Counts = Iterable[tuple[str, str, float]]  # country, label, count
Top = dict[str, list[str]]  # the labels of each country, the most frequent first

KEYS = [
    (f"country {country}", f"label {label}")
    for country in range(COUNTRIES)
    for label in range(LABELS)
]


def top(counts: Counts) -> Top:
    """The labels with the largest counts of each country; of equal ones the first by name."""
    ranked: dict[str, list[tuple[float, str]]] = {}
    for country, label, count in counts:
        ranked.setdefault(country, []).append((-count, label))
    return {
        country: [label for _, label in sorted(found)[:PLACES]] for country, found in ranked.items()
    }


def answer(start: Callable[..., Callable[[], Counts]]) -> None:
    """Answer as the arguments say: the file of visits, ε, where to write, and what else is needed.

    ``start`` imports and starts all that the work needs; both are timed.
    """
    path, epsilon, out, *more = sys.argv[1:]
    began = perf_counter()
    work = start(path, float(epsilon), *more)
    ready = perf_counter()
    found = top(work())
    done = perf_counter()
    document: dict[str, Any] = {"start": ready - began, "work": done - ready, "top": found}
    Path(out).write_text(json.dumps(document), encoding="utf-8")
