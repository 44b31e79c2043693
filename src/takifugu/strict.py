"""JSON and TOML as people write them, read strictly: one meaning, or a clear error.

Both formats let a file say less than it seems to. JSON takes the last of two equal keys, ``NaN``,
and 1e-400 for 0: a probability that is tiny, not impossible. Deep nesting ends Python's stack, and
a dotted TOML key takes time that grows with the square of its length. All of it is refused here,
with `InvalidFile`, before anybody believes it. Every file that a person may write is read by this.
"""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

from takifugu.errors import InvalidFile

DEEPEST = 64  # lists and objects inside one another
MOST_TOML = 16 * 2**20  # characters of a TOML file: it is written by hand
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def parse_json(text: str, *, field: str = "file") -> Any:
    """The one JSON document in ``text``; ``field`` is what an error calls it.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    takifugu.errors.InvalidFile: `file` has the key 'a' twice; it must have each key once
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            order = iter(found)
            twice = next(key for key, _ in pairs if key != next(order, None))
            raise InvalidFile(
                field, given=f"has the key {_shown(twice)} twice", needed="have each key once"
            )
        return found

    def constant(name: str) -> Any:
        raise InvalidFile(field, given=f"holds {name}", needed="hold finite numbers only")

    def parse() -> Any:
        return json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=constant,
            parse_float=lambda word: _float(word, field),
        )

    document = _parsed(parse, "JSON", field)
    if _ESCAPED.search(text):
        _refuse_halves(document, field)
    return document


def parse_toml(
    text: str, *, field: str = "file", parse_float: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """The TOML document in ``text``; ``parse_float`` reads its numbers, by default as float64."""
    if len(text) > MOST_TOML:
        raise InvalidFile(
            field, given=f"has more than {MOST_TOML:,} characters", needed="be smaller"
        )
    if _DOTTED.search(text):
        raise InvalidFile(
            field, given=f"has a key of more than {DEEPEST} parts", needed="be nested less deeply"
        )
    number = parse_float or (lambda word: _float(word, field))
    document: dict[str, Any] = _parsed(
        lambda: tomllib.loads(text, parse_float=number), "TOML", field
    )
    return document


def _parsed(parse: Callable[[], Any], form: str, field: str) -> Any:
    deep = InvalidFile(
        field,
        given=f"nests more than {DEEPEST} lists or objects inside one another",
        needed="be flatter",
    )
    try:
        document = parse()
    except InvalidFile:
        raise
    except RecursionError:
        raise deep from None
    except ValueError as error:  # both parsers' own errors, and integers of too many digits
        reason = " ".join(str(error).split())[:160]
        if "integer string conversion" in reason:
            reason = "a whole number has too many digits"
        raise InvalidFile(field, given=f"is not {form}: {reason}", needed=f"be {form}") from None
    layer = _inside([[document]])
    for _ in range(DEEPEST):
        if not layer:
            return document
        layer = _inside(layer)
    if layer:
        raise deep
    return document


def _inside(containers: list[Any]) -> list[Any]:
    """The lists and objects that lie directly in these."""
    return [
        part
        for container in containers
        for part in (container.values() if isinstance(container, dict) else container)
        if isinstance(part, dict | list)
    ]


def _refuse_halves(document: Any, field: str) -> None:
    """Refuse half a character (a lone surrogate), which cannot be printed or stored."""
    layer = [[document]]
    while layer:
        for container in layer:
            words = [*container, *container.values()] if isinstance(container, dict) else container
            if any(isinstance(word, str) and _HALF.search(word) for word in words):
                raise InvalidFile(
                    field, given="holds half a character (\\ud800 to \\udfff)", needed="be text"
                )
        layer = _inside(layer)


def _float(word: str, field: str) -> float:
    """A number as float64; refused if it is a number, but beyond all floats or below them."""
    value = float(word)
    digits = word.lower().partition("e")[0]
    if value == 0 and any(digit in "123456789" for digit in digits):
        raise InvalidFile(
            field,
            given=f"holds {_shown(word)}, which is not 0 but too small for float64",
            needed="hold larger numbers; write 0 for what cannot happen",
        )
    if value in (float("inf"), float("-inf")) and "inf" not in word.lower():
        raise InvalidFile(
            field, given=f"holds {_shown(word)}, too large for float64", needed="hold smaller ones"
        )
    return value


def _shown(word: str) -> str:
    return ascii(word) if len(word) <= 40 else ascii(word[:40]) + "…"
