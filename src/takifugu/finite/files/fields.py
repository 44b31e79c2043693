"""Strict reading of the fields of a world file: keys, names, labels and numbers.

Every function takes a parsed TOML or JSON value and its place in the file, and returns it as the
kind needed or raises an `InvalidFile` that names the place.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import isfinite
from typing import Any, TypeVar

from takifugu._core.numeric import LEAST, Floats, distribution
from takifugu._core.toml import TomlSection
from takifugu.errors import InvalidFile, Malformed

T = TypeVar("T")
LONGEST_NAME = 1000  # a dataset of many cells, named as text, still fits
DEEPEST_LABEL = 4
_FRACTION = re.compile(r"\s*([+-]?[0-9]{1,60})\s*/\s*([0-9]{1,60})\s*")
_DECIMAL = re.compile(r"\s*[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})\s*")


class FileSection(TomlSection):
    """One table of a world file."""

    def has(self, key: str) -> bool:
        """Whether ``key`` is given."""
        return key in self.content

    def read(self, key: str, convert: Callable[[Any, str], T]) -> T:
        """The value of ``key``, converted."""
        return convert(self.get(key), self.at(key))

    def one_of(self, ways: Sequence[str], *, purpose: str) -> str:
        """The one key of ``ways`` that is given; an error for none or several."""
        written = [key for key in ways if key in self.content]
        if len(written) == 1:
            return written[0]
        listed = f"{', '.join(ways[:-1])} or {ways[-1]}"
        given = f"has both {written[0]!r} and {written[1]!r}" if written else f"has no {purpose}"
        raise InvalidFile(self.place or "file", given=given, needed=f"have exactly one of {listed}")


def shown(value: Any) -> str:
    """A value as a message shows it: on one line, and short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def wrong_kind(place: str, value: Any, needed: str) -> InvalidFile:
    """The error for a value of another kind than the one needed."""
    kinds = {bool: "a boolean", int: "an integer", float: "a number", str: "text"}
    kinds |= {list: "a list", dict: "a table", type(None): "null"}
    kind = kinds.get(type(value), f"a {type(value).__name__}")
    return InvalidFile(place, given=f"is {kind}", needed=needed)


def table(value: Any, place: str) -> dict[str, Any]:
    """A table (JSON: an object) with printable keys."""
    if not isinstance(value, dict):
        raise wrong_kind(place, value, "be a table of key = value")
    for key in value:
        name(key, f"{place}, key")
    return value


def parts(document: FileSection, key: str) -> list[FileSection]:
    """The tables ``[[key]]`` in order; a single ``[key]`` counts as one; none if not written."""
    value = document.content.get(key, [])
    if isinstance(value, dict):
        return [FileSection(table(value, key), key)]
    if not isinstance(value, list):
        raise wrong_kind(key, value, f"be written as [[{key}]] tables")
    return [
        FileSection(table(item, f"{key} {number}"), f"{key} {number}")
        for number, item in enumerate(value, start=1)
    ]


def items(value: Any, place: str) -> list[Any]:
    """A list that is not empty."""
    if not isinstance(value, list):
        raise wrong_kind(place, value, "be a list")
    if not value:
        raise InvalidFile(place, given="is empty", needed="hold at least one item")
    return value


def name(value: Any, place: str) -> str:
    """Text that can be printed on one line."""
    if not isinstance(value, str):
        raise wrong_kind(place, value, "be text")
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_NAME:
        raise InvalidFile(
            place,
            given=f"is {shown(value)}",
            needed=f"be printable text of 1 to {LONGEST_NAME} characters",
        )
    return value


def label(value: Any, place: str, *, depth: int = 0) -> Hashable:
    """A name of a value, dataset or output: text, integer, true/false, or a list of such."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise InvalidFile(place, given="is a huge integer", needed="fit in 64 bits")
        return value
    if isinstance(value, str):
        return name(value, place)
    if isinstance(value, list) and depth < DEEPEST_LABEL:
        return tuple(label(item, place, depth=depth + 1) for item in items(value, place))
    raise wrong_kind(place, value, "be text, an integer, true or false, or a short list of those")


def text(value: Hashable) -> str:
    """A label as text, for keys: 3 is "3", true is "true", a list has commas between."""
    if isinstance(value, tuple):
        return ",".join(text(part) for part in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return squeezed(str(value))


def squeezed(key: str) -> str:
    """A key without the blanks around its commas."""
    return ",".join(part.strip() for part in key.split(","))


def identity(value: Hashable) -> str:
    """A text that identifies a label; unlike ==, it distinguishes 1 from true."""
    return repr(value)


def number(value: Any, place: str) -> float:
    """A finite number: an integer, a decimal, or text such as "1/3"; rounded to float64 once."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong_kind(place, value, 'be a number, or a fraction in quotes such as "1/3"')
    exact = _fraction(value, place) if isinstance(value, str) else value
    try:
        rounded = float(exact)
    except OverflowError:
        rounded = float("inf")
    if rounded == 0 and exact != 0:
        raise InvalidFile(
            place,
            given=f"is {shown(value)}, which is not 0 but too small for float64",
            needed="be larger; write 0 for what cannot happen",
        )
    if not isfinite(rounded):
        raise InvalidFile(place, given=f"is {shown(value)}", needed="be a finite number")
    return rounded


def _fraction(value: str, place: str) -> Fraction:
    ratio = _FRACTION.fullmatch(value)
    if ratio and int(ratio[2]) != 0:
        return Fraction(int(ratio[1]), int(ratio[2]))
    if _DECIMAL.fullmatch(value):
        return Fraction(value.strip())
    raise InvalidFile(
        place, given=f"is the text {shown(value)}", needed='be a number or a fraction such as "1/3"'
    )


def numbers(value: Any, place: str) -> list[float]:
    """A list of finite numbers."""
    return [number(item, f"{place}, item {i}") for i, item in enumerate(items(value, place), 1)]


def probability(value: Any, place: str) -> float:
    """A number that can be a probability."""
    p = number(value, place)
    if not 0 <= p <= 1:
        raise InvalidFile(place, given=f"is {p:g}", needed="be a probability, from 0 to 1")
    if 0 < p < LEAST:
        raise InvalidFile(
            place,
            given=f"is {p:g}",
            needed=f"be 0 or at least {LEAST:.3g}; write 0 for what cannot happen",
        )
    return p


def law(value: Any, place: str, keys: Sequence[str]) -> Floats:
    """Probabilities that sum to 1: a list in the order of ``keys``, or a table; left out is 0."""
    if isinstance(value, dict):
        part = FileSection(table(value, place), place)
        part.only(keys)
        listed = [probability(part.content.get(key, 0), part.at(key)) for key in keys]
    else:
        listed = [
            probability(x, f"{place}, item {i}") for i, x in enumerate(items(value, place), 1)
        ]
    if len(listed) != len(keys):
        raise InvalidFile(place, given=f"has {len(listed)} numbers", needed=f"have {len(keys)}")
    return distribution(listed, place, InvalidFile)


def flag(part: FileSection, key: str) -> bool:
    """A key that is true or false; false if not written."""
    value = part.content.get(key, False)
    if not isinstance(value, bool):
        raise wrong_kind(part.at(key), value, "be true or false")
    return value


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Make errors of the library errors of the file, at this place."""
    try:
        yield
    except InvalidFile:
        raise
    except Malformed as error:
        field = f"{place}, {error.field}" if place else error.field
        raise InvalidFile(field, given=error.given, needed=error.needed) from None


def unlike(value: str, others: Iterable[str], part: FileSection, what: str) -> None:
    """Refuse the name of a table that another of its kind has."""
    if value in others:
        raise part.wrong(
            "name",
            given=f"is {shown(value)}, as that of another {what}",
            needed="be a name of its own",
        )
