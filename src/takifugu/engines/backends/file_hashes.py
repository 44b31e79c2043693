"""The hash of every byte of a file, by several threads, and noted down for large files."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import time_ns

from takifugu.engines.backends.cached_facts import LARGE, CachedFact

PIECE, CHUNK = 2**26, 2**20  # bytes that one thread hashes, and that it reads at a time
SETTLED = 2 * 10**9  # nanoseconds: the clock may not show a change of a file written just now
MOST_THREADS = 8


def file_hash(path: Path) -> str:
    """SHA-256 of a file; of one larger than 64 MiB, that of the hashes of every 64 MiB of it."""
    facts = os.stat(path)
    if facts.st_size < LARGE:
        return _computed(path, facts.st_size)
    note = CachedFact.about("hash", *_identity(facts))
    known = note.read_hash()
    if known is not None:
        return known
    found = _computed(path, facts.st_size)
    settled = time_ns() - max(facts.st_mtime_ns, facts.st_ctime_ns) > SETTLED
    if settled and _identity(os.stat(path)) == _identity(facts):
        note.write_hash(found)
    return found


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


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
