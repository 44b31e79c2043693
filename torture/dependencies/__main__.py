"""``python -m torture.dependencies``: bill of materials, page of licences, oldest versions."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import takifugu
from takifugu._core.atomic import write_whole
from takifugu.errors import InvalidFile
from torture.dependencies.licence_page import PAGE, write_page
from torture.dependencies.licences import licence_of, unsuited
from torture.dependencies.oldest import OLDEST, constraints
from torture.dependencies.requirements import Asked, installed, pinned, used_by
from torture.dependencies.sbom import bill


def main(arguments: list[str] | None = None) -> int:
    """Write what is asked for; 1 if a licence does not suit, or a package is missing."""
    options = argparse.ArgumentParser(prog="python -m torture.dependencies", description=__doc__)
    options.add_argument("--sbom", type=Path, metavar="FILE", help="CycloneDX 1.6 of this Python")
    options.add_argument(
        "--licences",
        type=Path,
        nargs="?",
        const=PAGE,
        metavar="FILE",
        help="a page; without FILE the one of the site",
    )
    options.add_argument("--oldest", action="store_true", help=f"write {OLDEST.name} anew")
    given = options.parse_args(arguments)
    if given.sbom is None and given.licences is None and not given.oldest:
        options.error("say what to write: --sbom FILE, --licences or --oldest")
    asked, there = Asked.read(), installed()
    wrong: list[str] = []
    try:
        if given.sbom is not None:
            made = bill(asked, there, version=takifugu.__version__, at=_now())
            uses = used_by(asked, there)
            wrong += _words({name: licence_of(there[name]) for name in uses}, uses)
            write_whole(given.sbom, json.dumps(made, indent=1) + "\n")
            print(f"{given.sbom}: {len(made['components'])} packages")
        if given.licences is not None:
            listed = write_page(given.licences, asked, pinned(), there)
            licences = {row.name: row.licence for row in listed}
            wrong += _words(licences, {row.name: row.uses for row in listed})
            print(f"{given.licences}: {len(listed)} packages")
        if given.oldest:
            write_whole(OLDEST, constraints(asked))
            print(f"{OLDEST}: {len(asked.direct)} packages")
    except (InvalidFile, LookupError, ValueError) as error:
        print(f"takifugu: {error}", file=sys.stderr)
        return 1
    for line in wrong:
        print(f"takifugu: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _words(
    licences: Mapping[str, str | None], uses: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """What is wrong with licences."""
    for one in unsuited(licences, uses):
        yield f"{one.package} ({one.licence or 'unknown'}): {one.why}"


def _now() -> datetime:
    """The time that a build is told to be made at, else now; see reproducible-builds.org."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.now(UTC) if said is None else datetime.fromtimestamp(int(said), UTC)


if __name__ == "__main__":
    sys.exit(main())
