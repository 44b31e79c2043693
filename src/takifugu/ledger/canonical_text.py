"""The form of stored values: canonical JSON, exact rationals as text, names, SHA-256.

Events are hashed, so one value has exactly one text.
"""

import hashlib
import json
import unicodedata
from fractions import Fraction
from typing import Any

from takifugu.errors import InvalidCharge

MAX_LOSS_BITS = 1100  # of the denominator of a loss: every float64 fits, and a check stays cheap
MAX_STORED_LOSS = 2**64
MAX_TEXT_LETTERS = 10_000  # letters of a text for people
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)


def canonical_json(value: Any, name: str) -> str:
    """The one JSON text of ``value``: sorted keys, no spaces, ASCII, no NaN."""
    check_json(value, name)
    return encode_json(value)


def encode_json(value: Any) -> str:
    """`canonical_json` for a value that is known to be JSON."""
    return _ENCODER.encode(value)


def check_json(value: Any, name: str) -> None:
    """Refuse a value that JSON cannot represent exactly; ``name`` is its field."""
    if type(value) is str and value.isascii():  # nearly always
        return
    match value:
        case None | bool() | int():
            return
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _no_json(name, "holds half a character", "be Unicode text", "text") from None
        case float():
            if value - value != 0:
                raise _no_json(name, f"holds {value}", "hold finite numbers", "infinite")
        case list() | tuple():
            for part in value:
                check_json(part, name)
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise _no_json(name, f"has a key that is a {type(key).__name__}")
                check_json(key, name)
                check_json(part, name)
        case _:
            raise _no_json(name, f"holds a {type(value).__name__}")


def _no_json(name: str, given: str, needed: str = "be JSON", reason: str = "type") -> InvalidCharge:
    return InvalidCharge(name, given=given, needed=needed, reason=reason)


def sha256(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_fraction(value: Fraction, name: str) -> str:
    """A rational as text, numerator/denominator; refused if it has too many digits."""
    if value.denominator.bit_length() > MAX_LOSS_BITS or value > MAX_STORED_LOSS:
        raise InvalidCharge(
            name,
            given="has too many digits",
            needed=f"be at most 2^64, with a denominator of at most {MAX_LOSS_BITS} bits; round it",
            reason="digits",
        )
    return f"{value.numerator}/{value.denominator}"


def read_fraction(text: str) -> Fraction:
    """The rational that `write_fraction` wrote; a negative one is refused."""
    if text == "0":
        return _ZERO
    above, _, below = text.partition("/")
    numerator, denominator = int(above), int(below) if below else 1
    if numerator < 0 or denominator < 1:
        raise ValueError("a number below 0")
    return Fraction(numerator, denominator)


_ZERO = Fraction(0)


def check_name(value: object, name: str) -> None:
    """Refuse what cannot be a name: not text, empty, or far too long."""
    _check_letters(value, name, 1, 500, "be a text of 1 to 500 letters")


def check_text(value: object, name: str) -> None:
    """Refuse what cannot be a line of text to be stored."""
    needed = f"be a text of at most {MAX_TEXT_LETTERS} letters"
    _check_letters(value, name, 0, MAX_TEXT_LETTERS, needed)


def _check_letters(value: object, name: str, least: int, most: int, needed: str) -> None:
    if not isinstance(value, str) or not least <= len(value) <= most or "\0" in value:
        raise InvalidCharge(name, given=f"is {value!r:.80}", needed=needed, reason="name")
    check_json(value, name)


def folded(name: str) -> str:
    """A name without what eyes overlook: case, width, the form of accents, spaces."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    letters = (c for c in wide if not c.isspace() and unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", "".join(letters))
