r"""Text and numbers as people see them.

A label may hold anything: an escape sequence that rewrites a terminal, a mark that reverses the
order of letters, half a character. What people read shows such characters instead of obeying them.
A number that people read has at most four significant digits; ``--json`` has all of them.
"""

import re
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from math import isinf
from typing import Any, Literal

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
DIGITS = {
    rule: Context(prec=4, rounding=rounding)
    for rule, rounding in (
        ("nearest", ROUND_HALF_EVEN),
        ("up", ROUND_CEILING),
        ("down", ROUND_FLOOR),
    )
}
LIKE_LATIN = frozenset(  # letters of Cyrillic and of Greek that look like Latin ones
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408"
    "\u0405"
    "\u03bf\u03bd\u03c1\u03c5\u03c7\u03b9\u03f2\u03f3\u0391\u0392\u0395\u0396\u0397\u0399"
    "\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
FLOAT = Context(prec=12)
Rounded = Literal["nearest", "up", "down"]
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


def is_unmistakable(name: str) -> bool:
    r"""Whether no other name of this kind looks the same: beside ASCII, letters of one script.

    Refused are other ways to write a character (NFKC), marks that stand alone, signs that are no
    letters, rare forms of Latin letters, and names that are Latin to the eye alone.

    >>> [is_unmistakable(name) for name in ("olga", "Łukasz Nuñez-2", "Ольга", "山田はな")]
    [True, True, True, True]
    >>> [is_unmistakable(name) for name in ("\u043elga", "\u0430\u0441\u0435", "ol\u0261a")]
    [False, False, False]
    """
    if unicodedata.normalize("NFKC", name) != name:
        return False
    others = [letter for letter in name if not letter.isascii()]
    letters = [letter for letter in name if letter.isalpha()]
    scripts = {_script(letter) for letter in (*others, *letters)}
    if len(scripts) > 1 or None in scripts:
        return False
    return not others or not all(letter in LIKE_LATIN for letter in letters)


def _script(letter: str) -> str | None:
    """The script of a letter, or of a mark that belongs to one; None if it has none."""
    if unicodedata.category(letter)[0] not in "LM":
        return None
    name = unicodedata.name(letter, "?")
    script = name.partition(" ")[0]
    if script == "LATIN":
        usual = letter <= "\u017f" or unicodedata.normalize("NFKD", letter)[0].isascii()
        return script if usual else None
    if script in ("COMBINING", "MODIFIER", "?") or "FILLER" in name:
        return None
    return "JAPANESE" if script in ("CJK", "HIRAGANA", "KATAKANA") else script


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


def four_digits(value: float | Fraction | Decimal, rounded: Rounded = "nearest") -> str:
    """A number with at most four significant digits: a loss ``"up"``, an allowance ``"down"``.

    A `Fraction`, `Decimal` or `int` is exact and is rounded as it is, so that a reader who types
    an allowance that was rounded down stays within it. A float has already been rounded: it counts
    as the number that its first twelve digits spell, or 0.1 + 0.2 would be 0.3001 rounded up.

    >>> four_digits(0.0924179), four_digits(Fraction(1, 3), "up"), four_digits(0.1 + 0.2, "up")
    ('0.09242', '0.3334', '0.3')
    >>> four_digits(1234567.8), four_digits(2.5e-7), four_digits(float("inf"))
    ('1235000', '2.5e-7', 'infinity')
    """
    if isinstance(value, float) and isinf(value):
        return "infinity" if value > 0 else "-infinity"
    context = DIGITS[rounded]
    if isinstance(value, float):
        number = context.plus(FLOAT.create_decimal_from_float(value))
    elif isinstance(value, Decimal):
        number = context.plus(value)
    else:
        exact = Fraction(value)
        number = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    number = number.normalize(context)
    if not number:
        return "0"
    return f"{number:f}" if -5 < number.adjusted() < 9 else f"{number:e}"


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
