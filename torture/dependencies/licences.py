"""Under which licence a package is, and whether that suits what we do with it.

takifugu is under Apache-2.0 and ships no code of others: a package is installed beside it. So what
is needed at run time may be permissive, or copyleft that ends at the package's own files (MPL,
LGPL); under the GPL or AGPL, whoever hands out both together would have to put takifugu under it
too. Tools of developers are never handed out: they only need a licence that is known.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from license_expression import LicenseSymbol, LicenseWithExceptionSymbol, Licensing
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from torture.dependencies.requirements import ALWAYS, RUNTIME

_SPDX = Licensing()


class Kind(IntEnum):
    """What a licence asks for, from the least to the most."""

    PERMISSIVE = 0
    WEAK_COPYLEFT = 1  # for changes to the package's own files
    STRONG_COPYLEFT = 2  # for everything that it is handed out with
    UNKNOWN = 3


_PERMISSIVE = """
    0BSD Apache-2.0 Bitstream-Vera BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 HPND ISC MIT MIT-0
    MIT-CMU LicenseRef-Public-Domain OFL-1.1 PSF-2.0 Python-2.0 Unicode-3.0 Unlicense Zlib"""
_WEAK = """
    EPL-2.0 LGPL-2.0-or-later LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0-only LGPL-3.0-or-later
    MPL-1.1 MPL-2.0"""
_STRONG = """
    AGPL-3.0-only AGPL-3.0-or-later GPL-2.0-only GPL-2.0-or-later GPL-3.0-only
    GPL-3.0-or-later"""
KINDS: Mapping[str, Kind] = {
    name: kind
    for names, kind in (
        (_PERMISSIVE, Kind.PERMISSIVE),
        (_WEAK, Kind.WEAK_COPYLEFT),
        (_STRONG, Kind.STRONG_COPYLEFT),
    )
    for name in names.split()
}

# What classifiers of packages stand for. "BSD License" names no variant: the text of the package's
# licence decides, see `variant`.
CLASSIFIERS: Mapping[str, str] = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License (GPL)": "GPL-2.0-or-later",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "LicenseRef-Public-Domain",
    "Python Software Foundation License": "PSF-2.0",
}
# Short texts in the field License that are no SPDX expressions.
WORDS: Mapping[str, str] = {
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "isc license": "ISC",
    "mit license": "MIT",
    "new bsd": "BSD-3-Clause",
}
# Read by a person, where the fields of a package say too little or mean something else.
READ: Mapping[str, str] = {
    "docutils": "LicenseRef-Public-Domain AND BSD-2-Clause AND GPL-3.0-or-later",  # its COPYING
    "packaging": "Apache-2.0 OR BSD-2-Clause",  # its LICENSE, of every version
    "pyphen": "GPL-2.0-or-later OR LGPL-2.0-or-later OR MPL-1.1",  # "tri-license": one may choose
    "uvloop": "MIT OR Apache-2.0",  # both texts are in it, and the user chooses
}


def licence_of(one: Distribution) -> str | None:
    """The licence of a package as an SPDX expression, from its own fields; ``None`` if unknown."""
    name = canonicalize_name(one.name)
    if name in READ:
        return READ[name]
    declared = _field(one, "License-Expression")
    if declared:
        return _spdx(declared)
    text = _field(one, "License")
    if text and "\n" not in text and text != "UNKNOWN":
        known = _spdx(WORDS.get(text.lower(), text))
        if known:
            return variant(known, one) if text.lower() in {"bsd", "bsd license"} else known
    named = [
        line.rpartition(" :: ")[2]
        for line in one.metadata.get_all("Classifier") or ()
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    if len(named) > 1:
        return None  # one of them, or all of them: a person has to read it, see `READ`
    if named:
        found = CLASSIFIERS.get(named[0])
        return variant(found, one) if found and named[0] == "BSD License" else found
    return _by_text(one)


def variant(expression: str, one: Distribution) -> str:
    """BSD-2-Clause where the text lacks the clause about names of contributors."""
    text = _licence_text(one)
    if "redistribution and use" in text:
        return "BSD-3-Clause" if re.search(r"endorse\s+or\s+promote", text) else "BSD-2-Clause"
    return expression


def _by_text(one: Distribution) -> str | None:
    """The licence whose well-known first words the text of a package has."""
    text = " ".join(_licence_text(one).split())
    if "permission is hereby granted, free of charge, to any person obtaining" in text:
        return "MIT"
    if "apache license version 2.0, january 2004" in text:
        return "Apache-2.0"
    if "redistribution and use" in text:
        return variant("BSD-3-Clause", one)
    return None


def _licence_text(one: Distribution) -> str:
    """The licence files of a package and its field, in small letters."""
    texts = [_field(one, "License")]
    for file in one.files or ():
        folder = file.parts[0] if file.parts else ""
        named = file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING"))
        if named and folder.endswith(".dist-info"):
            texts.append(file.read_text(encoding="utf-8"))
    return "\n".join(texts).lower()


def _field(one: Distribution, name: str) -> str:
    """A field of a package; empty where it has none."""
    return "\n".join(one.metadata.get_all(name) or ()).strip()


def _spdx(text: str) -> str | None:
    try:
        return str(canonicalize_license_expression(text))
    except InvalidLicenseExpression:
        return None


def kind_of(expression: str | None) -> Kind:
    """What a licence asks for: the most of those joined by AND, the least of those by OR."""
    if expression is None or _spdx(expression) is None:
        return Kind.UNKNOWN
    return _kind(_SPDX.parse(expression))


def _kind(licence: Any) -> Kind:
    """The kind of a parsed expression."""
    if isinstance(licence, LicenseWithExceptionSymbol):
        return _kind(licence.license_symbol)  # an exception only ever allows more
    if isinstance(licence, LicenseSymbol):
        return KINDS.get(licence.key, Kind.UNKNOWN)
    choose = min if isinstance(licence, _SPDX.OR) else max
    return choose(map(_kind, licence.args))


@dataclass(frozen=True)
class Unsuited:
    """A licence that does not suit what a package is used for.

    Attributes:
        package: Its name.
        licence: Its licence; ``None`` where it says none.
        uses: The extras that bring it.
        why: What is wrong.
    """

    package: str
    licence: str | None
    uses: tuple[str, ...]
    why: str


def unsuited(
    licences: Mapping[str, str | None], uses: Mapping[str, Iterable[str]]
) -> list[Unsuited]:
    """The packages that people should not be given, or whose licence is not known."""
    found = []
    for package, licence in sorted(licences.items()):
        by = tuple(uses.get(package, ()))
        kind = kind_of(licence)
        if kind is Kind.UNKNOWN:
            found.append(Unsuited(package, licence, by, "its licence is not known"))
        elif kind is Kind.STRONG_COPYLEFT and {ALWAYS, *RUNTIME} & set(by):
            why = "its licence would be that of takifugu too where both are handed out"
            found.append(Unsuited(package, licence, by, why))
    return found


@dataclass(frozen=True)
class FileWithin:
    """A file that lies within a package of others, with a licence of its own.

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
    """The files of a folder in which somebody claims a copyright or names a licence.

    takifugu itself ships no file of others; this looks for one that slipped in.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and _NOTICE.search(path.read_bytes()):
            yield path
