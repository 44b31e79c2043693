"""Which files a source names: found once, here. They are what is read and what is fingerprinted.

A database that is given a path may take it for a pattern and read other files. So patterns are
expanded here and nowhere else, only those that the declaration itself holds, and each backend
passes on the files one by one, each by a name that the database expands to that file alone.
"""

import os
import re
from pathlib import Path

from takifugu.engines.declarations.declaration import Declaration
from takifugu.engines.engine_errors import InvalidDeclaration
from takifugu.visible import visible

PATTERN = "*?["  # what Python and DuckDB expand; braces are letters to both
SHOWN = 120  # letters of a path in a message


def source_files(declaration: Declaration) -> tuple[Path, ...]:
    """The files of the source, absolute and in order of their names; at least one."""
    given = str(declaration.source.path)
    try:
        files = _found(declaration.folder.absolute(), given)
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
    """The files that a pattern matches; if not ``sure`` that it is one, maybe none."""
    rooted = pattern.is_absolute()
    start = Path(pattern.anchor) if rooted else folder
    try:
        found = start.glob(str(pattern.relative_to(pattern.anchor) if rooted else pattern))
        return sorted(path for path in found if path.is_file())
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
    shown = path if len(path) <= SHOWN else f"{path[:40]}…{path[-60:]}"
    return InvalidDeclaration(
        "source, path", given=f"{visible(shown)} {given}", needed=needed, reason=reason
    )
