"""Documents that come from elsewhere: each key is read with its type, or refused by its name.

A document is what `json.loads` gives. Nothing in it is believed: a key that is missing, or holds
something else, raises `InvalidDocument`, whose `field` is the path of the key ("cost, before").

Numbers are exact. A rational is a text ("1/3"), a float is a JSON number, which Python writes and
reads without loss, and an infinite float is the text ``"inf"`` (JSON has none). NaN is refused both
ways.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, isnan
from numbers import Integral, Real
from typing import Any, TypeVar

from takifugu._core.exact import exactly
from takifugu.errors import Malformed, TakifuguError, UnsoundRequest

T = TypeVar("T")
MAX_NUMBER_DIGITS = 4_000  # digits of a number that is written as text


class InvalidDocument(Malformed):
    """A plan, a result or an error that was sent as JSON lacks what it must contain."""


@dataclass(frozen=True)
class DocumentPart:
    """An object of a document, and where it stands in it.

    Attributes:
        given: The object.
        path: The keys that lead to it, for messages; empty for the document itself.
    """

    given: Mapping[str, Any]
    path: str = ""

    @classmethod
    def of(cls, given: Any, path: str = "") -> "DocumentPart":
        """An object; refused if it is something else."""
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise InvalidDocument(
                path or "document", given=f"is {_kind(given)}", needed="be an object"
            )
        return cls(given, path)

    def named(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}, {key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether a key is there and holds something."""
        return self.given.get(key) is not None

    def read(self, key: str, convert: Callable[[Any, str], T]) -> T:
        """What a key holds, converted; its errors name the key."""
        if key not in self.given:
            raise InvalidDocument(self.named(key), given="is missing", needed="be given")
        return converted(self.given[key], self.named(key), convert)

    def maybe(self, key: str, convert: Callable[[Any, str], T]) -> T | None:
        """The same; None for null or for a key that is missing."""
        return self.read(key, convert) if self.has(key) else None

    def part(self, key: str) -> "DocumentPart":
        """The object that a key holds."""
        return self.read(key, DocumentPart.of)

    def text(self, key: str) -> str:
        """A text."""
        return self.read(key, text)

    def truth(self, key: str) -> bool:
        """True or false."""
        return self.read(key, truth)

    def whole(self, key: str) -> int:
        """A whole number."""
        return self.read(key, whole)

    def number(self, key: str) -> float:
        """A float; infinite if it is null."""
        return inf if key in self.given and self.given[key] is None else self.read(key, number)

    def fraction(self, key: str) -> Fraction:
        """An exact number."""
        return self.read(key, fraction)

    def decimal(self, key: str) -> Decimal:
        """A decimal number with its digits."""
        return self.read(key, decimal)

    def moment(self, key: str) -> datetime:
        """An instant."""
        return self.read(key, moment)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return self.read(key, listed(text))


def converted(value: Any, path: str, convert: Callable[[Any, str], T]) -> T:
    """A value as ``convert`` reads it; what it raises names the path."""
    try:
        return convert(value, path)
    except InvalidDocument:
        raise
    except (
        TakifuguError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as why:
        needed = str(why) if isinstance(why, TakifuguError) else "be what takifugu writes there"
        raise InvalidDocument(path, given="cannot be read", needed=needed) from None


def refuse_unshown(show: Callable[[], object]) -> None:
    """Raise if parts that are each well formed contradict one another, and cannot be shown."""
    converted(None, "document", lambda *_: show())


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
    return f"a {type(value).__name__}"


def _refused(value: Any, path: str, needed: str) -> InvalidDocument:
    return InvalidDocument(path, given=f"is {_kind(value)}", needed=needed)


def text(value: Any, path: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise _refused(value, path, "be a text")
    return value


def truth(value: Any, path: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _refused(value, path, "be true or false")
    return value


def whole(value: Any, path: str) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refused(value, path, "be a whole number")
    return value


def number(value: Any, path: str) -> float:
    """A float: a JSON number, or the text ``"inf"`` or ``"-inf"``."""
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(value, path, 'be a number, or "inf"')
    if isinstance(value, int) and abs(value) > 2**1023:
        raise InvalidDocument(path, given="is a number beyond all floats", needed="be smaller")
    if isnan(value) or isinf(value):
        raise InvalidDocument(path, given="is NaN or infinite", needed='be a number, or "inf"')
    return float(value)


def fraction(value: Any, path: str) -> Fraction:
    """An exact number, written as text."""
    digits = text(value, path)
    if len(digits) > MAX_NUMBER_DIGITS:
        raise InvalidDocument(
            path, given="has too many digits", needed=f"have up to {MAX_NUMBER_DIGITS}"
        )
    return exactly(digits, path)


def decimal(value: Any, path: str) -> Decimal:
    """A decimal number, written as text; its digits are kept."""
    fraction(value, path)  # finite, and of a size that can be computed with
    if "/" in value:
        raise InvalidDocument(path, given="is a ratio", needed="be a decimal number")
    return Decimal(value)


def moment(value: Any, path: str) -> datetime:
    """An instant: a date and time with its zone, as ISO 8601 writes it."""
    try:
        instant = datetime.fromisoformat(text(value, path))
    except ValueError:
        raise InvalidDocument(path, given="is no time", needed="be as ISO 8601 has it") from None
    if instant.tzinfo is None:
        raise InvalidDocument(path, given="is a time without a zone", needed="name its zone")
    return instant


def name(value: Any, path: str) -> str | int:
    """A label or a key: a text or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _refused(value, path, "be a text or a whole number")
    return value


def scalar(value: Any, path: str) -> str | int | float | bool | None:
    """What a cell of a table may hold."""
    if value is None or isinstance(value, str | bool | int):
        return value
    return number(value, path)


def listed(convert: Callable[[Any, str], T]) -> Callable[[Any, str], tuple[T, ...]]:
    """How a list of such values is read."""

    def read(value: Any, path: str) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            raise _refused(value, path, "be a list")
        return tuple(
            converted(item, f"{path}, {place}", convert) for place, item in enumerate(value)
        )

    return read


def by_name(convert: Callable[[Any, str], T]) -> Callable[[Any, str], dict[str, T]]:
    """How an object of such values is read."""

    def read(value: Any, path: str) -> dict[str, T]:
        part = DocumentPart.of(value, path)
        return {key: part.read(key, convert) for key in part.given}

    return read


def predicted(value: Any, path: str) -> dict[str, Any]:
    """What is predicted of an answer: of its rank, of its numbers, or of its ranking."""
    prediction = by_name(_prediction)(value, path)
    needed: tuple[str, ...] = ("deviation", "gap")
    if "ranks" in prediction or "interval" in prediction:
        needed = ("ranks",) if "ranks" in prediction else ("deviation", "interval")
    for key in needed:
        if not isinstance(prediction.get(key), int | float):
            raise InvalidDocument(f"{path}, {key}", given="is no number", needed="be a number")
    right = prediction.get("right", ())
    if "gap" in needed and (right == () or not isinstance(right, tuple | None)):
        raise InvalidDocument(f"{path}, right", given="is no list", needed="list probabilities")
    return prediction


def _prediction(value: Any, path: str) -> Any:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return listed(number)(value, path) if isinstance(value, list) else number(value, path)


def json_value(value: Any, path: str) -> Any:
    """Any JSON value as it is, to be shown; refused if it is none, or nested deeper than shown."""
    return _json(value, path, 32)


def _json(value: Any, path: str, depth: int) -> Any:
    if depth == 0:
        raise InvalidDocument(path, given="is nested too deeply", needed="be flatter")
    if isinstance(value, Mapping):
        part = DocumentPart.of(value, path)
        return {k: _json(v, part.named(k), depth - 1) for k, v in part.given.items()}
    if isinstance(value, list | tuple):
        return [_json(item, path, depth - 1) for item in value]
    return scalar(value, path)


def json_object(value: Any, path: str) -> dict[str, Any]:
    """The same, of an object."""
    DocumentPart.of(value, path)
    checked: dict[str, Any] = json_value(value, path)
    return checked


def as_json(value: Any) -> Any:
    """A value as it stands in a document: lists for tuples, ``"inf"`` for what is infinite."""
    match value:
        case None | str() | bool() | int():
            return value
        case Fraction() | Decimal():
            return str(value)
        case Integral():
            return int(value)
        case Real():
            return _float(float(value))
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): as_json(part) for key, part in value.items()}
        case list() | tuple():
            return [as_json(part) for part in value]
    raise UnsoundRequest(
        f"a {type(value).__name__} cannot be written in a document", field="document"
    )


def _float(value: float) -> float | str:
    if isnan(value):
        raise UnsoundRequest("a number is NaN; it cannot be written", field="document")
    return value if not isinf(value) else "inf" if value > 0 else "-inf"
