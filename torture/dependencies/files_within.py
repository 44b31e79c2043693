"""Files of others that lie within packages of others, and that we read or hand on.

takifugu itself ships no file of others; `notices` looks for one that slipped in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileWithin:
    """A file with a licence of its own.

    Attributes:
        path: Its path in the folder of packages.
        package: The package that it lies in.
        licence: As an SPDX expression.
        words: What the file itself says of its licence.
        what: What it is and where it ends up.
    """

    path: str
    package: str
    licence: str
    words: str
    what: str


WITHIN = (
    FileWithin(
        "axe_playwright_python/axe.min.js",
        "axe-playwright-python",
        "MPL-2.0",
        "Mozilla Public",
        "axe-core: checks pages for accessibility, in tests only",
    ),
    FileWithin(
        "matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf",
        "matplotlib",
        "Bitstream-Vera",
        "Bitstream",
        "DejaVu Sans: the letters in figures, as outlines",
    ),
    FileWithin(
        "ziamath/fonts/STIXTwoMath-Regular.ttf",
        "ziamath",
        "OFL-1.1",
        "SIL Open Font License, Version 1.1",
        "STIX Two Math: formulas on this site, which `make docs` copies it into",
    ),
)

_NOTICE = re.compile(rb"(?i)copyright\s*(\(c\)|\xc2\xa9|[12]\d{3})|@licen[sc]e|spdx-licen[sc]e")


def says_its_licence(file: FileWithin, content: bytes) -> bool:
    """Whether the words are in a file, be they one byte a letter or, as in fonts, two."""
    return file.words.encode() in content or file.words.encode("utf-16-be") in content


def notices(folder: Path) -> Iterator[Path]:
    """The files of a folder in which somebody claims a copyright or names a licence."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and _NOTICE.search(path.read_bytes()):
            yield path
