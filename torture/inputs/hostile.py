"""Values that nobody should send, and those that are only unusual."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

NUMBERS = (
    *(
        "0",
        "-0",
        "-0.0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "1e-300",
        "1e300",
        "1e400",
        "-1e400",
        "1e-400",
    ),
    *("nan", "NaN", "inf", "-inf", "Infinity", "5e-324", "1.7976931348623157e308", "0.1", "1e-16"),
    *("0.9999999999999999", "1.0000000000000002", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 400),
    *("9" * 5000, "1/3", "1/0", "0/0", "-1/2", "1/" + "9" * 400, "1e999999999", "0x10", "1_000"),
    *("１２", "٣", "½", "+1", " 1", "1 ", "1,5", "1e", ".", "-", "--1", "1.2.3", "true", "0b1"),
)
TEXTS = (
    *("", " ", "\t", "\n", "a\nb", "a\r\nb", "\x00", "a\x00b", "\x1b[2J", "\x7f", "\x85", "\u2028"),
    *(
        "\u202egnp.exe",
        "\u200b",
        "\ufeff",
        "e\u0301" * 50,
        "\ud800",
        "\udcff",
        "\U0001f421",
        "ﷺ" * 20,
    ),
    *("x" * 300, "y" * 5000, "z" * 100_000, "a b", "a,b", "a;b", "a=b", "=1+1", "@SUM(A1)", "-rf"),
    *("' OR 1=1 --", '"; DROP TABLE takifugu_events; --', "Robert'); DROP TABLE stays;--", "`id`"),
    *(
        "{{7*7}}",
        "${7*7}",
        "{% raw %}",
        "<script>alert(1)</script>",
        "%s%s%n",
        "%(x)s",
        "{0.__class__}",
    ),
    *("$(touch x)", "| cat /etc/passwd", "../../../../etc/passwd", "..", ".", "/", "~", "~root"),
    *(
        "file:///etc/passwd",
        "http://127.0.0.1:9/",
        "postgresql://127.0.0.1:9/x",
        "sqlite:///x.ledger",
    ),
    *(
        "postgresql://ann:secret@127.0.0.1:9/x",
        "NUL",
        "CON",
        "none",
        "null",
        "None",
        "true",
        "False",
    ),
    *(
        "__proto__",
        "constructor",
        "__class__",
        "_id",
        "*",
        "?",
        "[a-z]*",
        "#",
        "\\",
        "\\\\?\\C:\\",
        "'",
    ),
    *(
        '"',
        "[]",
        "{}",
        "[" * 500,
        '{"a":' * 200,
        "[[[1]]]",
        '["a","b"]',
        '{"a": 1}',
        "a..b",
        "..",
        "0..1",
    ),
    *(
        "1..0",
        "9..",
        "..9",
        "2024-02-30",
        "2024-03-10T02:30:00",
        "0000-00-00",
        "9999-12-31T23:59:60",
    ),
    *(
        "-9999-01-01",
        "2024-01-01..2023-01-01",
        "home/ward",
        "home|ward",
        "home/",
        "/ward",
        "home/home",
    ),
)
KEYS = (
    "",
    " ",
    "kind",
    "Kind",
    "kind ",
    "__proto__",
    "\u202e",
    "a.b",
    "x" * 2000,
    "ké",
    "0",
    "\x00",
)
GARBAGE = ("zz??\u202e", "\x1b]0;x\x07", "%%%", "q'q\"q", "0x1G", "🐡🐡", "no-such-thing-9f1c")
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig", "utf-7", "cp500")


def one_of(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """One of them, all alike likely."""
    return items[int(rng.integers(len(items)))]


def any_text(rng: np.random.Generator) -> str:
    """A hostile text; long ones are rarer."""
    for _ in range(4):
        found = one_of(rng, TEXTS if rng.random() < 0.7 else NUMBERS)
        if len(found) < 400 or rng.random() < 0.15:
            return found
    return "x"
