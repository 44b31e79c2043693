"""Bytes and lines of text, spoiled a little or a lot."""

import gzip

import numpy as np

from torture.inputs.hostile import ENCODINGS, NUMBERS, TEXTS, any_text, one_of

HUGE = 300_000  # bytes that are added at most, most of the time


def spoiled_bytes(rng: np.random.Generator, seed: bytes) -> bytes:
    """Bytes of a binary file with a few changed, cut, doubled, moved or added."""
    data = bytearray(seed)
    for _ in range(int(rng.geometric(0.5))):
        at = int(rng.integers(len(data) + 1))
        match int(rng.integers(8)):
            case 0 if data:
                data[at % len(data)] ^= 1 << int(rng.integers(8))
            case 1 if data:
                data[at % len(data)] = int(rng.integers(256))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + int(rng.integers(1, 64))]
            case 4:
                data[at:at] = rng.bytes(int(rng.integers(1, 64)))
            case 5:
                data[at:at] = data[at : at + int(rng.integers(1, 4096))]
            case 6:
                data[at : at + 8] = one_of(rng, (b"\0" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7))
            case _ if len(data) > 40:  # in the head or the foot, where formats keep their lengths
                where = int(rng.integers(20)) if rng.random() < 0.5 else -int(rng.integers(1, 20))
                data[where] = int(rng.integers(256))
    return bytes(data)


def spoiled_text(rng: np.random.Generator, seed: str) -> str:
    """A text with lines or letters changed, doubled, moved or added."""
    lines = seed.splitlines(keepends=True) or [""]
    for _ in range(int(rng.geometric(0.6))):
        at = int(rng.integers(len(lines)))
        line = lines[at]
        spot = int(rng.integers(len(line) + 1))
        match int(rng.integers(10)):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(at, line)
            case 2:
                lines.insert(int(rng.integers(len(lines) + 1)), lines.pop(at))
            case 3:
                lines[at] = line[:spot] + any_text(rng) + line[spot:]
            case 4:
                lines[at] = line[:spot]
            case 5:
                lines[at] = _other_word(rng, line)
            case 6:
                lines[at] = line[:spot] + one_of(rng, TEXTS) + line[spot + 1 :]
            case 7:
                lines.insert(at, any_text(rng) + "\n")
            case 8:
                lines = lines[: at + 1]
            case _:
                lines[at] = line.replace(*one_of(rng, SWAPS))
        lines = lines or [""]
    return "".join(lines)


SWAPS = (
    *(
        (",", ";"),
        (",", ""),
        ('"', ""),
        ("=", ":"),
        ("=", "=="),
        ("[", "[["),
        ("]", ""),
        ("\n", ""),
    ),
    *(("0", "-1"), ("1", "1e400"), (".", ","), (" ", "\t"), ("a", "\u0430"), ("e", "e\u0301")),
)


def _other_word(rng: np.random.Generator, line: str) -> str:
    """One of the words of a line replaced by a number or a text."""
    words = [word for word in _SPLIT(line) if word.strip()]
    if not words:
        return line
    return line.replace(one_of(rng, words), one_of(rng, NUMBERS), 1)


def _SPLIT(line: str) -> list[str]:
    for mark in ',;=[]{}()"':
        line = line.replace(mark, " ")
    return line.split()


def wrapped(rng: np.random.Generator, text: str) -> bytes:
    """A text as bytes: mostly UTF-8; or in another encoding, with a mark, CRLF, packed."""
    plain = text.encode("utf-8", "surrogatepass")
    match int(rng.integers(40)):
        case 0:
            return b"\xef\xbb\xbf" + plain
        case 1:
            return plain.replace(b"\n", b"\r\n")
        case 2:
            return plain.replace(b"\n", b"\r")
        case 3:
            return text.encode(one_of(rng, ENCODINGS), "replace")
        case 4:
            return plain + b"\0" * int(rng.integers(1, 5000))
        case 5:
            return gzip.compress(plain, mtime=0)
        case 6:
            return spoiled_bytes(rng, plain)
        case 7:
            return plain[: int(rng.integers(len(plain) + 1))]
        case 8 if plain:
            return plain * (1 + min(50, HUGE // len(plain)))
        case _:
            return plain
