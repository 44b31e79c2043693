r"""Text from files and tables, made fit to be looked at.

A label may hold anything: an escape sequence that rewrites a terminal, a mark that turns the order
of letters around, half a character. What people read shows such marks instead of obeying them.
"""

import re
import unicodedata
from typing import Any

# Control (C0, C1, DEL), format (bidi, zero width), surrogate; line and paragraph separator
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# No characters, or none yet but never to show (Unicode's Default_Ignorable_Code_Point). What else
# has no meaning yet may be a letter in a later Unicode.
EMPTY = (
    range(0x2065, 0x2066),
    range(0xFDD0, 0xFDF0),
    range(0xFFF0, 0xFFF9),
    range(0xE0000, 0xE1000),
)
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def visible(text: str, *, keep: str = "") -> str:
    r"""``text`` with every mark that does not show written out as ``\u202e``, but for ``keep``.

    The escapes are those of JSON, so that a JSON document stays the same document. A backslash
    stays as it is: this is for people, not for reading back.

    >>> visible("a\x1b[2Jb\u202ec")
    'a\\u001b[2Jb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter in keep or not _hidden(letter) else _escape(letter) for letter in text
    )


def _hidden(letter: str) -> bool:
    kind, point = unicodedata.category(letter), ord(letter)
    if kind != "Cn":
        return kind in HIDDEN
    return point & 0xFFFE == 0xFFFE or any(point in empty for empty in EMPTY)


def _escape(letter: str) -> str:
    point = ord(letter)
    if point < 0x10000:
        return f"\\u{point:04x}"
    high, low = divmod(point - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file: a number as it is, a text that no spreadsheet takes for a formula.

    Text that begins with ``= + - @``, their wide forms, a tab or a line break gets a ``'`` in
    front, and so does text that would then look the same: taking one ``'`` off such a cell gives
    the text back. Half a character, which UTF-8 has no bytes for, is written out.

    >>> [csv_cell(value) for value in ("=1+1", "'=1+1", "'s-Hertogenbosch", -3, None)]
    ["'=1+1", "''=1+1", "'s-Hertogenbosch", -3, None]
    """
    if not isinstance(value, str):
        return value
    whole = re.sub("[\ud800-\udfff]", lambda found: _escape(found.group()), value)
    return f"'{whole}" if FORMULA.match(whole) else whole
