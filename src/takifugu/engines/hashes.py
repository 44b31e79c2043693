"""The hash of every byte of a file, by several threads, and remembered for large files.

Reading a large file to hash it takes as long as counting its rows, and a command would do so each
time. So the hash is kept in the user's cache folder under all that the file system says of the
file: device, number, size, and the times of its last write and of its last change of any kind.
A hash only tells whether data is the same as before. One that is remembered wrongly could give out
an old answer again; it could never make a charge smaller.
"""

import contextlib
import hashlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import time_ns

from takifugu.fingerprint import fingerprint

PIECE, CHUNK = 2**26, 2**20  # bytes that one thread hashes, and that it reads at a time
LARGE = 2**24  # bytes from which on a hash is remembered
SETTLED = 2 * 10**9  # nanoseconds: of a file written just now the clock may not tell a change
MOST_THREADS = 8


def file_hash(path: Path) -> str:
    """SHA-256 of a file; of one larger than 64 MiB, that of the hashes of every 64 MiB of it."""
    facts = os.stat(path)
    known = _place(facts) if facts.st_size >= LARGE else None
    if known is not None and (found := _read(known)) is not None:
        return found
    found = _computed(path, facts.st_size)
    settled = time_ns() - max(facts.st_mtime_ns, facts.st_ctime_ns) > SETTLED
    if known is not None and settled and _identity(os.stat(path)) == _identity(facts):
        _write(known, found)
    return found


def _computed(path: Path, size: int) -> str:
    starts = range(0, max(size, 1), PIECE)
    threads = min(MOST_THREADS, len(starts), os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(partial(_piece, path), starts))
    return pieces[0].hex() if len(pieces) == 1 else hashlib.sha256(b"".join(pieces)).hexdigest()


def _piece(path: Path, start: int) -> bytes:
    digest, left = hashlib.sha256(), PIECE
    with path.open("rb") as stream:
        stream.seek(start)
        while left and (chunk := stream.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.digest()


# --- what is remembered ---


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def _place(facts: os.stat_result) -> Path | None:
    """Where the hash of a file is kept; None if there is no place for it."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(root):
        return None
    return Path(root) / "takifugu" / "hashes" / fingerprint(("file", _identity(facts)))


def _read(known: Path) -> str | None:
    try:
        found = known.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    return found if len(found) == 64 and set(found) <= set("0123456789abcdef") else None


def _write(known: Path, found: str) -> None:
    """Keep a hash, whole or not at all; a cache that cannot be written is no trouble."""
    with contextlib.suppress(OSError):
        known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=known.parent)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(found)
        os.replace(part, known)
