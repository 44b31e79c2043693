"""Strict JSON for the bodies of requests: what means nothing in a query is refused first.

Python's reader accepts NaN, numbers that are infinite once read, whole numbers of any length, the
same key twice, halves of characters, and as many brackets as the stack holds. None of them means
anything in a query, and each has broken a server somewhere.
"""

import json
from math import isfinite, isinf
from typing import Any

from takifugu.server.api.problems import Problem

DEEPEST = 32  # brackets inside one another
MOST_DIGITS = 40  # of a whole number


def json_bytes(document: Any) -> bytes:
    """A document as JSON in ASCII: every character can be written, and none is misread.

    JSON has no number for what is infinite: null stands for it, as in the documents of results.

    Raises:
        ValueError: A number is NaN, which no document of ours means.
    """
    try:
        return _dumped(document)
    except ValueError:
        return _dumped(_without_infinite(document))


def _dumped(document: Any) -> bytes:
    return _ASCII.encode(document).encode("ascii")


def _without_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinite(part) for part in value]
    return None if isinstance(value, float) and isinf(value) else value


def read_json(raw: bytes) -> Any:
    """The JSON value in the body of a request.

    Raises:
        Problem: It is not JSON (400), or holds what no query has (422).
    """
    try:
        value = _STRICT.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _not_json("is not UTF-8") from None
    except RecursionError:
        raise too_deep() from None
    except json.JSONDecodeError as error:
        raise _not_json(f"is not JSON at line {error.lineno}, column {error.colno}") from None
    _check(value, DEEPEST)
    return value


def _not_json(given: str) -> Problem:
    return Problem(400, "not-json", f"the body {given}; send one JSON object", reason="syntax")


def too_deep() -> Problem:
    """The problem of a body with too many brackets inside one another."""
    return Problem(
        422,
        "invalid-body",
        f"the body has more than {DEEPEST} brackets inside one another; no request needs them",
        reason="depth",
    )


def _number(given: str) -> Problem:
    return Problem(
        422, "invalid-body", f"a number of the body is {given}; it must be finite", reason="number"
    )


def _constant(_: str) -> float:
    raise _number("NaN or infinite")


def _float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _number("infinite")
    return value


def _int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Problem(
            *(422, "invalid-body"),
            f"a whole number of the body has more than {MOST_DIGITS} digits; write less",
            reason="number",
        )
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem(
            422, "invalid-body", "the body has a key twice; write each once", reason="twice"
        )
    return found


_STRICT = json.JSONDecoder(
    parse_constant=_constant, parse_float=_float, parse_int=_int, object_pairs_hook=_object
)
_ASCII = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def _check(value: Any, deep: int) -> None:
    """Refuse depth, and halves of characters, which no encoding has."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Problem(
                *(422, "invalid-body"),
                "a text of the body has half a character (a lone surrogate); write whole ones",
                reason="surrogate",
            ) from None
    elif isinstance(value, dict | list):
        if not deep:
            raise too_deep()
        for part in value:
            _check(part, deep - 1)
        if isinstance(value, dict):
            for part in value.values():
                _check(part, deep - 1)
