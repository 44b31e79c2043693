"""The files of a source: which they are, the hash of every byte, and that they stay as they were.

They are found once, here, and are what is read and what is fingerprinted. A database that is given
a path may take it for a pattern and read other files. So patterns are expanded here and nowhere
else, only those that the declaration itself holds, and each backend passes on the files one by one,
each by a name that the database expands to that file alone.
"""

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time_ns

from takifugu._core.fingerprint import fingerprint
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import DatabaseFailed, InvalidDeclaration
from takifugu.tables.backends.backend import MIN_CACHED_SIZE, CachedFact, DataFingerprint
from takifugu.visible import visible

PATTERN = "*?["  # what Python and DuckDB expand; braces are letters to both
MAX_PATH_LENGTH = 120  # letters of a path in a message


def source_files(declaration: Declaration) -> tuple[Path, ...]:
    """The files of the source, absolute and in order of their names; at least one."""
    return found_files(declaration.folder, str(declaration.source.path))


def found_files(folder: Path, given: str) -> tuple[Path, ...]:
    """The files that a path or a pattern names from ``folder``, absolute and in order."""
    try:
        files = _found(folder.absolute(), given)
        for path in files:
            str(path).encode()
    except InvalidDeclaration:
        raise
    except UnicodeEncodeError:
        raise _refused(given, "leads to a name that is not Unicode", "have one", "name") from None
    except (OSError, ValueError, RuntimeError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or "no path can be so"
        raise _refused(
            given, f"cannot be looked up ({reason.lower()})", "name files", "name"
        ) from None
    if not files:
        raise _refused(given, "is not a file", "name files that exist", "missing")
    return files


def _found(folder: Path, given: str) -> tuple[Path, ...]:
    literal = folder / given
    exists = literal.is_file()
    if literal.is_dir():
        raise _refused(
            given, "is a folder", "name the files in it, as 'folder/*.parquet'", "folder"
        )
    if not any(mark in given for mark in PATTERN):
        return (literal,) if exists else ()
    matched = _matched(folder, Path(given), sure=not exists)
    if exists and any(found != literal for found in matched):
        raise _refused(
            given,
            "is the name of a file, and as a pattern matches others",
            "mean one of the two: rename that file",
            "ambiguous",
        )
    return (literal,) if exists else tuple(matched)


def _matched(folder: Path, pattern: Path, *, sure: bool) -> list[Path]:
    """The files that a pattern matches; if not ``sure`` that it is one, maybe none.

    What ``**`` means is the same for every Python: a whole part of the path, for folders at any
    depth. From 3.13 on it also stands for files where it comes last, and for ``*`` within a name.
    """
    if any("**" in part and part != "**" for part in pattern.parts):
        if sure:
            raise ValueError("** must be a whole part of a path")
        return []
    if pattern.name == "**":
        return []  # folders, and no file
    rooted = pattern.is_absolute()
    start = Path(pattern.anchor) if rooted else folder
    try:
        paths = start.glob(str(pattern.relative_to(pattern.anchor) if rooted else pattern))
        return sorted(path for path in paths if path.is_file())
    except ValueError:
        if sure:
            raise
        return []


def duckdb_name(path: Path) -> str:
    """The name that DuckDB expands to this file and no other: ``a[1]`` is ``a[[]1]``.

    In a pattern, and only there, DuckDB takes a backslash for a slash: such a name has no
    equivalent.
    """
    name = str(path)
    if not any(mark in name for mark in PATTERN):
        return name
    if "\\" in name:
        raise _refused(
            name,
            f"holds a backslash and one of {' '.join(PATTERN)}",
            "hold one or the other",
            "backslash",
        )
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


def compression(paths: tuple[Path, ...]) -> str:
    """The compression to give to DuckDB, which takes what follows a ``?`` for no suffix."""
    packed = {path.suffix.lower() == ".gz" for path in paths}
    if len(packed) > 1:
        raise InvalidDeclaration(
            "source, path",
            given="names compressed files and others",
            needed="name files that end in .gz, or none that does",
            reason="compression",
        )
    return "gzip" if packed.pop() else "none"


def same_file(found: list[str], path: Path) -> bool:
    """Whether what a database expanded a name to is the one file that was meant."""
    return len(found) == 1 and os.path.samefile(found[0], path)


def misread(path: Path) -> InvalidDeclaration:
    """A database would read other files than those that were found here."""
    return _refused(
        str(path), "would be read as other files", "have a plainer name: rename it", "name"
    )


def _refused(path: str, given: str, needed: str, reason: str) -> InvalidDeclaration:
    shown = path if len(path) <= MAX_PATH_LENGTH else f"{path[:40]}…{path[-60:]}"
    return InvalidDeclaration(
        "source, path", given=f"{visible(shown)} {given}", needed=needed, reason=reason
    )


PIECE, CHUNK = 2**26, 2**20  # bytes that one thread hashes, and that it reads at a time
SETTLING_TIME = 2 * 10**9  # nanoseconds: the clock may not show a change of a file written just now
MAX_HASHING_THREADS = 8


def file_hash(path: Path) -> str:
    """SHA-256 of a file; of one larger than 64 MiB, that of the hashes of every 64 MiB of it."""
    facts = os.stat(path)
    if facts.st_size < MIN_CACHED_SIZE:
        return _computed(path, facts.st_size)
    note = CachedFact.about("hash", *_identity(facts))
    cached = note.read_hash()
    if cached is not None:
        return cached
    digest = _computed(path, facts.st_size)
    settled = time_ns() - max(facts.st_mtime_ns, facts.st_ctime_ns) > SETTLING_TIME
    if settled and _identity(os.stat(path)) == _identity(facts):
        note.write_hash(digest)
    return digest


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def _computed(path: Path, size: int) -> str:
    starts = range(0, max(size, 1), PIECE)
    if len(starts) == 1:
        return _piece(path, 0).hex()
    from concurrent.futures import ThreadPoolExecutor

    threads = min(MAX_HASHING_THREADS, len(starts), os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(partial(_piece, path), starts))
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def _piece(path: Path, start: int) -> bytes:
    digest, left = hashlib.sha256(), PIECE
    with path.open("rb") as stream:
        stream.seek(start)
        while left and (chunk := stream.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.digest()


@dataclass(frozen=True)
class OpenedFiles:
    """The files of a source, with the size and the time of each when it was opened.

    ``absent`` are files that would be read with them, and so must not be there.
    """

    paths: tuple[Path, ...]
    stats: tuple[tuple[int, int], ...]
    absent: tuple[Path, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[Path], absent: Sequence[Path] = ()) -> "OpenedFiles":
        """Note the files as they are now."""
        return cls(tuple(paths), tuple(_stat(path) for path in paths), tuple(absent))

    def refuse_change(self) -> None:
        """Raise if a file was written to since it was noted: answers would be of two datasets."""
        same = [_stat(path) == was for path, was in zip(self.paths, self.stats, strict=True)]
        alone = [not os.path.lexists(path) for path in self.absent]
        for path, still in zip((*self.paths, *self.absent), (*same, *alone), strict=True):
            if not still:
                raise DatabaseFailed(
                    visible(str(path)),
                    doing="queried",
                    trouble="it changed since it was opened",
                    advice="open it again; what was spent on the old rows stays spent",
                    reason="changed",
                )

    def fingerprint(self) -> DataFingerprint:
        """Sizes and SHA-256 hashes, in the order of the names; the names do not count."""
        self.refuse_change()
        for path in self.paths:
            refuse_cut(path)
        hashes = [
            (size, file_hash(path)) for path, (size, _) in zip(self.paths, self.stats, strict=True)
        ]
        return DataFingerprint(
            fingerprint(("files", hashes)),
            "the size and the SHA-256 hash of every file, so every byte of them",
            max(changed for _, changed in self.stats),
        )

    def note(self, *what: str | None) -> CachedFact | None:
        """Where a public fact about exactly these bytes is kept; None if they are few."""
        if sum(size for size, _ in self.stats) < MIN_CACHED_SIZE:
            return None
        return CachedFact.about("data", self.fingerprint().fingerprint, *what)


def refuse_cut(path: Path) -> None:
    """Raise if a compressed file ends early: DuckDB reads what there is and says nothing."""
    if path.suffix.lower() != ".gz":
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(CHUNK):
                pass
    except (OSError, EOFError, zlib.error):
        raise DatabaseFailed(
            visible(str(path)),
            doing="read",
            trouble="it is not a complete gzip file",
            advice="get it again; it may have been cut off",
            reason="incomplete",
        ) from None


def _stat(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return (-1, -1)  # a file that is gone has changed
    return facts.st_size, facts.st_mtime_ns
