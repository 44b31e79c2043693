"""The paper's preparation again, slow and plain: lists and dictionaries, nothing of the package.

Only the lists of the label map are shared with it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

TAU = 1e-5


@dataclass(frozen=True)
class Entry:
    """One row: whose, when (anything that sorts), on which day, its label and its group."""

    entity: Any
    when: Any
    day: int
    label: str
    group: str | None


@dataclass(frozen=True)
class Recount:
    """What a preparation must come to."""

    counts: Mapping[tuple[str, str], int]
    train: Mapping[str, int]
    steps: Mapping[tuple[str, str], int]
    longest: int
    released: int
    fitted: int


def by_days(entries: Iterable[Entry]) -> tuple[Recount, int, int]:
    """Days 0 to 399 of 500 are fitted on; with fewer days, 4 in 5. Days are counted from 0."""
    rows = list(entries)
    first = min(row.day for row in rows)
    days = min(max(row.day for row in rows) - first + 1, 500)
    fit_days = 4 * days // 5
    rows = [row for row in rows if row.day - first < days]
    return _counted(rows, lambda row: row.day - first < fit_days), fit_days, days - fit_days


def by_people(entries: Iterable[Entry], released: set[Any]) -> Recount:
    """Everyone is fitted on who is not released from."""
    return _counted(list(entries), lambda row: row.entity not in released)


def _counted(rows: list[Entry], fitted: Callable[[Entry], bool]) -> Recount:
    train = [row for row in rows if fitted(row)]
    test = [row for row in rows if not fitted(row)]
    paths: dict[Any, list[Entry]] = defaultdict(list)
    for row in train:
        paths[row.entity].append(row)
    steps: Counter[tuple[str, str]] = Counter()
    for path in paths.values():
        path.sort(key=lambda row: row.when)
        steps.update((before.label, after.label) for before, after in pairwise(path))
    return Recount(
        Counter((row.group, row.label) for row in test if row.group is not None),
        Counter(row.label for row in train),
        steps,
        max(Counter(row.entity for row in test).values(), default=0),
        len(test),
        len(train),
    )


def matrix(steps: Mapping[tuple[str, str], int], states: list[str]) -> list[list[float]]:
    """Frequencies; a state that nothing followed leads anywhere else alike; zeros become τ."""
    table = []
    for here in states:
        counts = [steps.get((here, there), 0) for there in states]
        if sum(counts):
            row = [count / sum(counts) for count in counts]
        else:
            row = [0.0 if there == here else 1 / (len(states) - 1) for there in states]
        zeros = sum(probability == 0 for probability in row)
        table.append(
            [TAU if probability == 0 else probability * (1 - zeros * TAU) for probability in row]
        )
    return table


def common_label(raw: str | None, members: Mapping[str, Iterable[str]]) -> str:
    """The label that a category is merged into; accents, case and blanks do not matter."""
    wanted = _plain(raw or "")
    for label, raws in members.items():
        if wanted in [_plain(name) for name in raws]:
            return label
    return "other"


def _plain(name: str) -> str:
    for accented, bare in (("é", "e"), ("É", "E"), ("ñ", "n")):
        name = name.replace(accented, bare)
    return " ".join(name.lower().split())
