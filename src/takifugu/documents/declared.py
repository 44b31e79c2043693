"""Dataclasses as JSON documents: written and read by what their fields declare.

`to_document` writes an object with a key for each field, in the order of the fields, and
`from_document` reads it; what is missing or has another type is refused by the path of its key. The
type of a field says how it is written: an exact number as text, an instant as ISO 8601, a float as
it is. A float in a document may be null, which is infinite; `NullFloat` is also written so. What is
written in another way says so with a `Codec`: ``Annotated[Cost, Codec(read, write)]``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache, reduce
from math import inf
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    by_name,
    decimal,
    fraction,
    json_value,
    listed,
    moment,
    name,
    number,
    text,
    truth,
    whole,
)

T = TypeVar("T")


def _same(value: Any) -> Any:
    return value


def _number(value: Any, path: str) -> float:
    return inf if value is None else number(value, path)


@dataclass(frozen=True)
class Codec:
    """How a value is read from a document and written into one.

    Attributes:
        read: What a JSON value is, given its path for messages.
        write: The value as JSON.
        key: The key that it stands under; by default the name of its field.
    """

    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any] = _same
    key: str = ""


NullFloat = Annotated[float, Codec(_number, lambda value: None if value == inf else value)]
SIMPLE: Mapping[Any, Codec] = {
    str: Codec(text),
    bool: Codec(truth),
    int: Codec(whole),
    float: Codec(_number),
    Fraction: Codec(fraction, str),
    Decimal: Codec(decimal, str),
    datetime: Codec(moment, datetime.isoformat),
    Any: Codec(json_value),
}


@cache
def codec_of(kind: Any) -> Codec:
    """How values of a type are read and written."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        declared = next((part for part in arguments[1:] if isinstance(part, Codec)), None)
        return declared or codec_of(arguments[0])
    if origin in (Union, UnionType) and NoneType in arguments:
        rest = tuple(part for part in arguments if part is not NoneType)
        return _optional(codec_of(reduce(or_, rest)))
    if origin is Literal:
        return Codec(_one_of(arguments))
    if set(arguments) == {str, int}:
        return Codec(name)
    if origin is tuple and arguments[1:] == (...,):
        part = codec_of(arguments[0])
        return Codec(listed(part.read), lambda values: [part.write(value) for value in values])
    if origin is tuple:
        return Codec(_row(tuple(map(codec_of, arguments))))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        part = codec_of(arguments[1])
        return Codec(
            by_name(part.read), lambda values: {k: part.write(v) for k, v in values.items()}
        )
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        row = _row(tuple(map(codec_of, get_type_hints(kind).values())))
        return Codec(lambda value, path: kind(*row(value, path)), list)
    if isinstance(kind, type) and is_dataclass(kind):
        return Codec(lambda value, path: from_document(kind, value, path), to_document)
    raise TypeError(f"{kind!r} has no form in a document")


def _optional(codec: Codec) -> Codec:
    return Codec(
        lambda value, path: None if value is None else codec.read(value, path),
        lambda value: None if value is None else codec.write(value),
    )


def _one_of(words: tuple[str, ...]) -> Callable[[Any, str], str]:
    def read(value: Any, path: str) -> str:
        word = text(value, path)
        if word not in words:
            raise InvalidDocument(
                path, given="is another word", needed=f"be one of {', '.join(words)}"
            )
        return word

    return read


def _row(codecs: tuple[Codec, ...]) -> Callable[[Any, str], tuple[Any, ...]]:
    """A list with a value of its own type in each place."""

    def read(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) != len(codecs):
            raise InvalidDocument(
                path, given="is something else", needed=f"be a list of {len(codecs)}"
            )
        parts = enumerate(zip(codecs, value, strict=True))
        return tuple(codec.read(part, f"{path}, {place}") for place, (codec, part) in parts)

    return read


@cache
def fields_of(kind: Any) -> tuple[tuple[str, str, Codec, bool], ...]:
    """The fields of a class: name, key, codec, and whether it may be missing."""
    hints = get_type_hints(kind, include_extras=True)
    parts = []
    for part in fields(kind):
        hint = hints[part.name]
        declared = codec_of(hint)
        optional = NoneType in get_args(
            get_args(hint)[0] if get_origin(hint) is Annotated else hint
        )
        parts.append((part.name, declared.key or part.name, declared, optional))
    return tuple(parts)


def parts_from(kind: Any, found: DocumentPart, *, without: tuple[str, ...] = ()) -> Any:
    """The fields of a class as a document has them, by name, but for those ``without``."""
    return {
        field: (found.maybe if optional else found.read)(key, codec.read)
        for field, key, codec, optional in fields_of(kind)
        if field not in without
    }


def from_document(kind: type[T], document: Any, path: str = "") -> T:
    """The value that `to_document` wrote."""
    return kind(**parts_from(kind, DocumentPart.of(document, path)))


def to_document(value: Any, *, after: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """A dataclass as JSON.

    Args:
        value: What to write.
        after: What follows from the fields and is written beside them, by the key that it follows.
    """
    document: dict[str, Any] = {}
    for field, key, codec, _ in fields_of(value.__class__):
        document[key] = codec.write(getattr(value, field))
        document |= (after or {}).get(key, {})
    return document
