"""Files that a caller names: inside the folder of the project, or refused.

Owners name declarations and priors over HTTP. A name that leads elsewhere, by ``..``, from the root
or by a link, is refused, and in the same words as one that leads nowhere: whether a file is there
is not told either.
"""

import stat
from pathlib import Path, PurePosixPath

from takifugu.project.policy import InvalidProject
from takifugu.visible import visible


def inside(folder: Path, given: str, field: str, *, suffixes: tuple[str, ...]) -> Path:
    """The file that ``given`` names from ``folder``; it lies in it, links resolved.

    Args:
        folder: The folder of the project.
        given: A relative path with ``/``.
        field: What it was given as, for the error.
        suffixes: How its name may end.
    """
    refusal = InvalidProject(
        field,
        given=f"is {visible(given):.120}",
        needed="be a file inside the folder of the project, by its path from there, whose name"
        f" ends in {' or '.join(suffixes)}",
        reason="outside",
    )
    path = PurePosixPath(given)
    odd = not given or "\\" in given or any(not char.isprintable() for char in given)
    if odd or path.is_absolute() or ".." in path.parts or path.suffix.lower() not in suffixes:
        raise refusal
    try:
        home = folder.resolve(strict=True)
        found = (home / path).resolve(strict=True)
        regular = stat.S_ISREG(found.stat().st_mode)
    except (OSError, RuntimeError, ValueError):  # missing, a loop of links, a name too long
        raise refusal from None
    if not regular or not found.is_relative_to(home) or found.suffix.lower() not in suffixes:
        raise refusal
    return found
