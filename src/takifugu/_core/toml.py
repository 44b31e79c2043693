"""TOML and JSON as people write them, read strictly: one meaning, or a clear error.

Both formats let a file say less than it seems to. JSON takes the last of two equal keys, ``NaN``,
and 1e-400 for 0: a probability that is tiny, not impossible. Deep nesting ends Python's stack, and
a dotted TOML key takes time that grows with the square of its length. All of it is refused here,
with `InvalidFile`. Every file that a person may write is parsed here; a `TomlSection` then reads
one table of it and refuses keys that it does not know.

Where the keys of a TOML document stand: line and column, for messages about them.

Python's own reader says where a file breaks the syntax, and forgets where a value came from. This
walks a text that it has already accepted and only looks for the beginnings of keys; what it cannot
make out it leaves out. It never decides what a document means.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from takifugu.errors import InvalidFile, Malformed

DEEPEST = 64  # lists and objects inside one another
MAX_TOML_LENGTH = 16 * 2**20  # characters of a TOML file: it is written by hand
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


class TomlDocument(dict[str, Any]):
    """What a TOML text holds, and the text, in which an error can look where a key stands."""

    def __init__(self, content: Mapping[str, Any], text: str) -> None:
        super().__init__(content)
        self.text = text


class KeyPlace(str):
    """Where a key stands, as an error says it; `position` finds the line, if there is a text."""

    __slots__ = ("_path", "_text")
    _text: str | None
    _path: tuple[str | int, ...]

    def __new__(cls, words: str, text: str | None, path: tuple[str | int, ...]) -> "KeyPlace":
        """The words, and what to look for in which text."""
        place = super().__new__(cls, words)
        place._text, place._path = text, path
        return place

    @property
    def position(self) -> str:
        """Line and column of the key, or of the table that lacks it; empty if neither is known."""
        if self._text is None:
            return ""
        from takifugu._core.toml import key_positions

        positions = key_positions(self._text)
        for size in range(len(self._path), 0, -1):
            at = positions.get(self._path[:size])
            if at is not None:
                below = "below " if size < len(self._path) else ""
                return f"{below}line {at.line}, column {at.column}"
        return ""


def parse_json(text: str, *, field: str = "file") -> Any:
    """The one JSON document in ``text``; ``field`` is what an error calls it.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    takifugu.errors.InvalidFile: `file` has the key 'a' twice; it must have each key once
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            order = iter(members)
            twice = next(key for key, _ in pairs if key != next(order, None))
            raise InvalidFile(
                field, given=f"has the key {_shown(twice)} twice", needed="have each key once"
            )
        return members

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
    if len(text) > MAX_TOML_LENGTH:
        raise InvalidFile(
            field, given=f"has more than {MAX_TOML_LENGTH:,} characters", needed="be smaller"
        )
    if _DOTTED.search(text):
        raise InvalidFile(
            field, given=f"has a key of more than {DEEPEST} parts", needed="be nested less deeply"
        )
    number = parse_float or (lambda word: _float(word, field))
    document: dict[str, Any] = _parsed(
        lambda: tomllib.loads(text, parse_float=number), "TOML", field
    )
    return TomlDocument(document, text)


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


@dataclass(frozen=True)
class TomlSection:
    """One table of a document, and where it stands.

    Attributes:
        content: The keys and their values.
        place: Where the table stands, as an error says it; empty for the whole document.
        error: The kind of error for what cannot be understood.
        text_of: The text of the whole document, if there is one.
        path: Where the table stands in it: keys, and places in lists.
    """

    content: Mapping[str, Any]
    place: str = ""
    error: type[Malformed] = InvalidFile
    text_of: str | None = None
    path: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.text_of is None and isinstance(self.content, TomlDocument):
            object.__setattr__(self, "text_of", self.content.text)

    def at(self, key: str) -> str:
        """Where ``key`` stands, as an error says it."""
        words = f"{self.place}, {key}" if self.place else key
        return KeyPlace(words, self.text_of, (*self.path, key))

    def wrong(self, key: str, *, given: str, needed: str, reason: str = "") -> Malformed:
        """The error for the value of ``key``."""
        return self.error(self.at(key), given=given, needed=needed, reason=reason)

    def only(self, known: Sequence[str]) -> None:
        """Refuse a key that is not ``known``, and name the nearest one that is."""
        for key in self.content:
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"; the nearest to that is {near[0]!r}" if near else ""
                raise self.wrong(
                    key,
                    given="is not a key here",
                    needed=f"be one of {', '.join(known)}{hint}",
                    reason="unknown key",
                )

    def get(self, key: str) -> Any:
        """The value of ``key``, which must be given."""
        if key not in self.content:
            raise self.wrong(key, given="is missing", needed="be given", reason="missing")
        return self.content[key]

    def section(self, key: str, known: Sequence[str] | None) -> "TomlSection":
        """The table called ``key``, which has only ``known`` keys; any if that is None."""
        return self._inner(self.get(key), key, known)

    def sections(
        self, key: str, known: Sequence[str], *, needed: str = "be a list"
    ) -> list["TomlSection"]:
        """The tables ``[[key]]`` in order; none if it is not given."""
        listed = self.content.get(key, [])
        if not isinstance(listed, list):
            raise self.wrong(key, given="is not a list", needed=needed, reason="kind")
        return [self._inner(part, key, known, place) for place, part in enumerate(listed)]

    def _inner(
        self, value: Any, key: str, known: Sequence[str] | None, *listed: int
    ) -> "TomlSection":
        if not isinstance(value, dict):
            raise self.wrong(key, given="is not a table", needed="be a table", reason="kind")
        path = (*self.path, key, *listed)
        inner = TomlSection(value, str(self.at(key)), self.error, self.text_of, path)
        if known is not None:
            inner.only(known)
        return inner

    def text(self, key: str) -> str:
        """A printable text, which must be given."""
        value = self.get(key)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.wrong(
                key, given="is not printable text", needed="be text in quotes", reason="kind"
            )
        return value

    def optional(self, key: str) -> str | None:
        """A printable text; None if it is not given."""
        return self.text(key) if key in self.content else None

    def flag(self, key: str) -> bool | None:
        """True or false; None if it is not given."""
        value = self.content.get(key)
        if not isinstance(value, bool | None):
            raise self.wrong(
                key, given=f"is {_shown(str(value))}", needed="be true or false", reason="kind"
            )
        return value

    def items(self, key: str) -> list[Any]:
        """A list, which must be given."""
        value = self.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, given="is not a list", needed="be a list", reason="kind")
        return value

    def names(self, key: str) -> tuple[str | int, ...] | None:
        """A list of texts and whole numbers that is not empty; None if it is not given."""
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(map(is_name, value)):
            raise self.wrong(
                key,
                given="is not a list of names",
                needed="list text or whole numbers",
                reason="kind",
            )
        return tuple(value)


def is_name(value: object) -> bool:
    """Whether a value can name something: text or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool)


Path = tuple[str | int, ...]  # keys, and places in lists


class Position(NamedTuple):
    """A place in a text; both numbers begin at 1."""

    line: int
    column: int


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_MANY = {  # strings of several lines end at the last of up to five quotes
    '"""': re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})', re.DOTALL),
    "'''": re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
}
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


class _Lost(Exception):
    """The text is not what was expected."""


def key_positions(text: str) -> Mapping[Path, Position]:
    r"""Where each key of a valid document stands; for a list of tables also where each begins.

    >>> found = key_positions('[a]\nb = 1\n[[c]]\n  d.e = {f = 2}\n')
    >>> found["a", "b"], found["c", 0], found["c", 0, "d", "e", "f"]
    (Position(line=2, column=1), Position(line=3, column=3), Position(line=4, column=10))
    """
    walk = _Walk(text)
    with suppress(_Lost, RecursionError, ValueError, OverflowError):  # what was found holds
        walk.document()
    return walk.found


class _Walk:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.replace("\r\n", "\n"), 0
        self.found: dict[Path, Position] = {}
        self._lists: dict[Path, int] = {}  # how many tables each [[list]] has so far

    def document(self) -> None:
        """Headers, and keys with values."""
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return
            table = self._header() if self._text[self._at] == "[" else self._pair(table, table)

    def _header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: the path of the table."""
        double = self._text.startswith("[[", self._at)
        self._at += 2 if double else 1
        self._skip(_SPACE)
        start = self._at
        path = self._under(self._keys())
        self._skip(_SPACE)
        self._expect("]]" if double else "]")
        if double:
            path = (*path, self._lists.get(path, 0))
            self._lists[path[:-1]] = int(path[-1]) + 1
        self.found.setdefault(path, self._position(start))
        return path

    def _under(self, keys: list[tuple[str, int]]) -> Path:
        """A header's keys as a path: a list of tables on the way means its last table."""
        path: Path = ()
        for place, (key, start) in enumerate(keys):
            path = (*path, key)
            self.found.setdefault(path, self._position(start))
            if path in self._lists and place < len(keys) - 1:
                path = (*path, self._lists[path] - 1)
        return path

    def _pair(self, table: Path, result: Path) -> Path:
        """``a.b = value`` within ``table``; gives ``result`` back."""
        path = table
        for key, start in self._keys():
            path = (*path, key)
            self.found.setdefault(path, self._position(start))
        self._skip(_SPACE)
        self._expect("=")
        self._skip(_SPACE)
        self._value(path)
        return result

    def _keys(self) -> list[tuple[str, int]]:
        """A dotted key: each part, and where it begins."""
        keys = [self._key()]
        while True:
            before = self._at
            self._skip(_SPACE)
            if self._text[self._at : self._at + 1] != ".":
                self._at = before
                return keys
            self._at += 1
            self._skip(_SPACE)
            keys.append(self._key())

    def _key(self) -> tuple[str, int]:
        start = self._at
        for pattern in (_BARE, _BASIC, _LITERAL):
            match = pattern.match(self._text, start)
            if match:
                self._at = match.end()
                text = match[0] if pattern is _BARE else match[1]
                return (_unescaped(text) if pattern is _BASIC else text), start
        raise _Lost

    def _value(self, path: Path) -> None:
        """Any value; keys in it are noted."""
        for quotes, many in _MANY.items():
            if self._text.startswith(quotes, self._at):
                return self._skip(many)
        first = self._text[self._at : self._at + 1]
        if first in ("'", '"'):
            return self._skip(_BASIC if first == '"' else _LITERAL)
        if first in ("[", "{"):
            return self._container(path, first)
        return self._skip(_SCALAR)

    def _container(self, path: Path, first: str) -> None:
        """A list or an inline table."""
        end, place = {"[": "]", "{": "}"}[first], 0
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._text.startswith(end, self._at):
                self._at += 1
                return
            if first == "{":
                self._pair(path, path)
            else:
                self.found.setdefault((*path, place), self._position(self._at))
                self._value((*path, place))
            place += 1
            self._skip(_BLANK)
            if self._text.startswith(",", self._at):
                self._at += 1
            elif not self._text.startswith(end, self._at):
                raise _Lost

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _Lost
        self._at = match.end()

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise _Lost
        self._at += len(text)

    def _position(self, at: int) -> Position:
        line = self._text.count("\n", 0, at) + 1
        return Position(line, at - (self._text.rfind("\n", 0, at) + 1) + 1)


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        digits = found[1] or found[2]
        return chr(int(digits, 16)) if digits else _SHORT.get(found[3], found[0])

    return _ESCAPE.sub(one, text)
