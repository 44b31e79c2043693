"""Where a ledger is: a path, ``sqlite:///PATH``, or ``postgresql://…``."""

import re
from dataclasses import dataclass
from pathlib import Path

from takifugu.errors import InvalidFile

_SCHEME = re.compile(r"([A-Za-z][\w.+-]*)://(.*)", re.DOTALL)
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@")  # up to the last @ before the path
_NAMED_PASSWORD = re.compile(r"(?<=[?&])(password=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """The place of a ledger.

    Attributes:
        name: The path of the file; or the address, without any password.
        url: The address of a server, as its driver reads it; empty for a file.
    """

    name: str
    url: str = ""

    @property
    def sqlite(self) -> bool:
        """Whether the ledger is in a file."""
        return not self.url


def address_of(where: str | Path) -> Address:
    """The place that a path or an address names."""
    if not isinstance(where, str | Path):  # None would be a file of that name
        raise InvalidFile(
            "ledger",
            given=f"is a {type(where).__name__}",
            needed="be a path or a URL",
            reason="address",
        )
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        if not text or text == ":memory:":
            raise InvalidFile(
                "ledger", given=f"is {text!r}", needed="be kept in a file", reason="memory"
            )
        if not _is_text(text):
            raise InvalidFile(
                "ledger", given=f"is {text!r}", needed="have a name in UTF-8", reason="text"
            )
        return Address(text)
    found = _SCHEME.fullmatch(text)
    if found is None:
        raise InvalidFile(
            "ledger", given="is not an address", needed="be a path or a URL", reason="address"
        )
    backend, rest = found[1].lower().partition("+")[0], found[2]
    path = rest.partition("?")[0].removeprefix("/")
    if backend == "sqlite" and rest.startswith("/") and path not in ("", ":memory:"):
        return Address(path)
    if backend in ("postgresql", "postgres"):
        url = f"postgresql://{rest}"
        name = _PASSWORD.sub(r"\1:***@", url)
        return Address(_NAMED_PASSWORD.sub(r"\1***", name), url)
    raise InvalidFile(
        "ledger",
        given=f"is kept by {backend}",
        needed="be a file, sqlite:///PATH or postgresql://…",
        reason="backend",
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of a name that are no text: half characters in Python
        return False
    return True
