"""Keys for hashes over protected bytes.

A plain hash confirms a guess: ten binary cells are recovered from the hash of their file by trying
the 1,024 files that it could be. Under a key that only its owner has (HMAC, RFC 2104), a hash
reveals to others only whether two contents are equal.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from errno import ENOENT
from pathlib import Path
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidFile

DIGITS = frozenset("0123456789abcdef")
PRIVATE = 0o600


@dataclass(frozen=True)
class Key:
    """A secret of 256 bits; never printed.

    Attributes:
        secret: The bits.
    """

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """Distinguishes keys, and reveals nothing else."""
        return self._hmac("id")[:8]

    def mark(self, *what: Any) -> str:
        """The keyed hash of ``what``, after the id of the key; equal contents have equal marks."""
        return f"{self.id}:{self._hmac('mark', *what)}"

    def sealed(self, name: str, digits: str) -> str:
        """64 hexadecimal digits, encrypted; sealing them again decrypts them."""
        pad = int(self._hmac("seal", name), 16)
        return f"{int(digits, 16) ^ pad:064x}"

    def _hmac(self, *what: Any) -> str:
        return hmac.new(self.secret, fingerprint(what).encode(), hashlib.sha256).hexdigest()


def same_key(one: str, other: str) -> bool:
    """Whether two marks were made with one key, so that they can be compared."""
    return ":" in one and one.partition(":")[0] == other.partition(":")[0]


def key_at(path: Path) -> Key:
    """The key in a file; made if there is none, readable by its owner alone (mode 0600).

    The file appears whole or not at all, and of two processes that make it one wins: both then
    have the same key. An `OSError` is passed on.
    """
    key = _read(path)
    if key is None:
        _make(path)
        key = _read(path)
    if key is None:
        raise FileNotFoundError(ENOENT, "removed while it was made", str(path))
    return key


def _read(path: Path) -> Key | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        text = ""
    if len(text) != 64 or not set(text) <= DIGITS:
        raise InvalidFile(
            "key",
            given=f"{path} does not hold a key",
            needed="be as it was made: restore it, or remove it to start with a new key (answers"
            " stored under the old one are then not recognised, and are charged again)",
        )
    if path.stat().st_mode & 0o077:
        with contextlib.suppress(OSError):
            path.chmod(PRIVATE)
    return Key(bytes.fromhex(text))


def _make(path: Path) -> None:
    handle, part = tempfile.mkstemp(prefix=".takifugu-key-", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another process was first: its key counts
            os.link(part, path)
        _sync(path.parent)
    finally:
        os.unlink(part)


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system lets a folder be synced
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def beside(ledger: Path) -> Path:
    """The key of a ledger in a file: ``takifugu.key`` for ``takifugu.ledger``."""
    return ledger.with_suffix(".key") if ledger.suffix != ".key" else Path(f"{ledger}.key")


def state_folder() -> Path:
    """Where this user's programs keep what they must not lose."""
    root = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(root):
        root = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(root):
        raise FileNotFoundError(ENOENT, "this user has no home folder", root)
    return Path(root) / "takifugu"
