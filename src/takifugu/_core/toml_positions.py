"""Where the keys of a TOML document stand: line and column, for messages about them.

Python's own reader says where a file breaks the syntax, and forgets where a value came from. This
walks a text that it has already accepted and only looks for the beginnings of keys; what it cannot
make out it leaves out. It never decides what a document means.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

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
        found = [self._key()]
        while True:
            before = self._at
            self._skip(_SPACE)
            if self._text[self._at : self._at + 1] != ".":
                self._at = before
                return found
            self._at += 1
            self._skip(_SPACE)
            found.append(self._key())

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
