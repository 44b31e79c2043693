"""Open points of a declaration: what a draft could not know, written as ``"?"``.

They are all found at once, each with the line that it stands on, so that a person can fill them in
from top to bottom.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.visible import visible

OPEN = "?"
NEEDED = {
    "separator": "what stands between fields: ',', ';', '|' or '\\t'",
    "encoding": "'utf-8' or 'latin-1'",
    "decimal": "',' or '.'",
    "column": "the name of a column",
    "kind": "time, unix or number",
    "zone": "a time zone, as 'Europe/Berlin'",
    "ties": "'refuse', or a list of columns",
    "format": "how times are written, as '%d/%m/%Y %H:%M'",
    "values": "a list of labels, as ['home', 'work']",
    "outside": "'other', 'drop' or 'refuse'",
    "bounds": "the lower and the upper bound, as [0, 100]",
    "missing": "'drop', 'refuse' or a number",
    "step": "a number",
    "labels": "a file",
}
_HEADER = re.compile(r"\s*\[(?P<name>[^\[\]].*?)\]\s*(#.*)?$")
_KEY = re.compile(r"\s*(?P<key>[\w-]+)\s*=")


@dataclass(frozen=True)
class OpenPoint:
    """What a person has to decide.

    Attributes:
        key: Where it stands, as ``protected.place.values``.
        question: What is to be decided.
        needed: What to write.
        option: The option of ``takifugu dataset new`` that answers it.
        choices: The answers that are possible, if they are few.
    """

    key: str
    question: str
    needed: str
    option: str
    choices: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The point as JSON."""
        return {
            "key": self.key,
            "question": self.question,
            "needed": self.needed,
            "option": self.option,
            "choices": list(self.choices),
        }


class OpenDeclaration(InvalidDeclaration):
    """A declaration has open points.

    Attributes:
        points: Where they stand, each with its line; 0 if that was not found.
    """

    def __init__(self, points: tuple[tuple[str, int], ...]) -> None:
        self.points = points
        listed = "; ".join(
            f"{f'line {line}, ' if line else ''}{visible(key)}: {_needed(key)}"
            for key, line in points
        )
        super().__init__(
            ", ".join(visible(key) for key, _ in points),
            given=f"{'is' if len(points) == 1 else 'are'} open, written as '?'",
            needed=f"be filled in: {listed}",
            reason="open",
        )


def refuse_open_points(document: Mapping[str, Any], content: str) -> None:
    """Raise if a document has open points, with all of them."""
    keys = [key for key in _open(document) if key]
    if not keys:
        return
    lines = _lines(content)
    points = tuple((".".join(key), lines.get(key, 0)) for key in keys)
    raise OpenDeclaration(points)


def line_of(content: str, key: str) -> int:
    """The line that a key of a declaration stands on; 0 if it is on none of its own."""
    return {".".join(place): line for place, line in _lines(content).items()}.get(key, 0)


def _open(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where ``"?"`` stands for a whole value: as a label in a list it is a label."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _open(part, (*place, key))
    elif value == OPEN and place and place[-1] in NEEDED:
        yield place


def _needed(key: str) -> str:
    return NEEDED[key.rpartition(".")[2]]


def _lines(content: str) -> dict[tuple[str, ...], int]:
    """The line of every key that stands on one of its own."""
    found: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(content.splitlines(), 1):
        if header := _HEADER.match(line):
            section = tuple(_names(header["name"]))
        elif key := _KEY.match(line):
            found.setdefault((*section, key["key"]), number)
    return found


def _names(header: str) -> Iterator[str]:
    """The parts of a header, without their quotes."""
    for bare, double, single in re.findall(r"""([\w-]+)|"((?:[^"\\]|\\.)*)"|'([^']*)'""", header):
        yield bare or single or re.sub(r"\\(.)", r"\1", double)
