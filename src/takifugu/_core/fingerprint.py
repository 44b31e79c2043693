"""The identity of a value, from its content alone: the same on every machine."""

import hashlib
import math
from dataclasses import fields, is_dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """SHA-256 of the content of a value: numbers, names, tuples, mappings, arrays, dataclasses.

    Every part is written with its kind and length, so that no two contents share an encoding.
    A callable counts by its qualified name, so it must have one: a lambda is refused. A dataclass
    counts by its name; one that was renamed keeps its first name as ``hashed_as: ClassVar[str]``.
    A field with ``unless_default`` in its metadata counts only if it has another value than its
    default: so a class can gain a field, and what was hashed before keeps its fingerprint.
    """
    digest = hashlib.sha256()
    _write(digest, value)
    return digest.hexdigest()


def _write(digest: Any, value: Any) -> None:
    match value:
        case None | bool() | np.bool_():
            _put(digest, "b", repr(None if value is None else bool(value)).encode())
        case int() | np.integer():
            _put(digest, "i", str(int(value)).encode())
        case Fraction():
            _put(digest, "q", f"{value.numerator}/{value.denominator}".encode())
        case float() | np.floating():
            number = float(value) + 0.0
            _put(digest, "f", b"nan" if math.isnan(number) else number.hex().encode())
        case str():
            _put(digest, "s", value.encode())
        case bytes():
            _put(digest, "y", value)
        case np.ndarray():
            if value.dtype.hasobject:
                raise TypeError("cannot fingerprint an array of objects")
            array = np.ascontiguousarray(value)
            _put(digest, "a", f"{array.dtype.str}{value.shape}".encode())
            _put(digest, "d", array.tobytes())
        case tuple() | list():
            _put(digest, "t", str(len(value)).encode())
            for part in value:
                _write(digest, part)
        case frozenset() | set():
            _put(digest, "u", str(len(value)).encode())
            for print_ in sorted(fingerprint(part) for part in value):
                _put(digest, "e", print_.encode())
        case dict():
            _put(digest, "m", str(len(value)).encode())
            for key in sorted(value, key=fingerprint):
                _write(digest, key)
                _write(digest, value[key])
        case ByContent() if value.identity() is not value:
            _put(digest, "v", value.fingerprint.encode())
        case _ if is_dataclass(value) and not isinstance(value, type):
            name = getattr(value, "hashed_as", type(value).__name__)
            _put(digest, "c", name.encode())
            for field in fields(value):
                if not field.metadata.get("identity", True):
                    continue
                if field.metadata.get("unless_default") and (
                    getattr(value, field.name) == field.default
                ):
                    continue
                _put(digest, "n", field.name.encode())
                _write(digest, getattr(value, field.name))
        case date():
            _put(digest, "z", value.isoformat().encode())
        case _ if callable(value):
            _put(digest, "k", _name_of(value).encode())
        case _:
            raise TypeError(f"cannot fingerprint a {type(value).__name__}")


def _name_of(function: Any) -> str:
    """A function's full name; one without a name of its own has no identity."""
    name = getattr(function, "__qualname__", "<nameless>")
    if "<" in name:
        raise TypeError(f"cannot fingerprint {name}: give the function a name of its own")
    return f"{getattr(function, '__module__', '')}.{name}"


def _put(digest: Any, kind: str, content: bytes) -> None:
    digest.update(f"{kind}{len(content)}:".encode())
    digest.update(content)


class ByContent:
    """Equality, hash and fingerprint from field contents, for dataclasses that hold arrays."""

    @property
    def fingerprint(self) -> str:
        """A stable identity, written beside everything that was computed from this value."""
        known: str | None = self.__dict__.get("_fingerprint")
        if known is None:
            known = fingerprint(self.identity())
            object.__setattr__(self, "_fingerprint", known)  # a cache, not a change
        return known

    def _set(self, **checked: Any) -> None:
        """Store fields as ``__post_init__`` has checked them: a list in, a frozen array kept."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def identity(self) -> Any:
        """What the fingerprint is taken of: the fields, unless a class overrides it."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)
