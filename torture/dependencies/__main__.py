"""``python -m torture.dependencies``: bill of materials, page of licences, oldest versions."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.utils import canonicalize_name

import takifugu
from takifugu._core.atomic import write_whole
from takifugu.errors import InvalidFile
from torture.dependencies.licence_page import PAGE, write_page
from torture.dependencies.licences import WITHIN, licence_of, unsuited
from torture.dependencies.requirements import (
    ALWAYS,
    OLDEST,
    OURSELVES,
    RUNTIME,
    Asked,
    installed,
    oldest_constraints,
    pinned,
    used_by,
)
from torture.part_report import ROOT


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
            uses = used_by(asked, there)
            listing = bill(there, uses)
            wrong += _words({name: licence_of(there[name]) for name in uses}, uses)
            write_whole(given.sbom, json.dumps(listing, indent=1) + "\n")
            print(f"{given.sbom}: {len(listing['components'])} packages")
        if given.licences is not None:
            listed = write_page(given.licences, asked, pinned(), there)
            licences = {row.name: row.licence for row in listed}
            wrong += _words(licences, {row.name: row.uses for row in listed})
            print(f"{given.licences}: {len(listed)} packages")
        if given.oldest:
            write_whole(OLDEST, oldest_constraints(asked))
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
    for misfit in unsuited(licences, uses):
        yield f"{misfit.package} ({misfit.licence or 'unknown'}): {misfit.why}"


def bill(there: Mapping[str, Distribution], uses: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """A bill of materials of this environment (CycloneDX 1.6), the same for the same packages.

    cyclonedx-py writes it. We add which extras bring a package (always is "required", an extra of
    people who use takifugu "optional", all else "excluded"), its licence as one SPDX expression,
    and the files within it that have another.
    """
    line = [sys.executable, "-m", "cyclonedx_py", "environment", "--sv", "1.6"]
    line += ["--output-reproducible", "--no-validate"]  # which takes longer than all else
    writer = subprocess.run(  # noqa: S603 - of a package that we require
        [*line, "--pyproject", "pyproject.toml", sys.executable],
        cwd=ROOT,
        env={"SOURCE_DATE_EPOCH": str(int(time.time())), **os.environ},
        capture_output=True,
        check=False,
    )
    if writer.returncode:
        raise LookupError(f"cyclonedx-py: {writer.stderr.decode(errors='replace').strip()}")
    document: dict[str, Any] = json.loads(writer.stdout)
    root = {"version": takifugu.__version__, "purl": f"pkg:pypi/{OURSELVES}@{takifugu.__version__}"}
    document["metadata"]["component"] |= root
    ours = {part["bom-ref"] for part in document["components"] if part["name"] == OURSELVES}
    document["components"] = [
        part for part in document["components"] if part["bom-ref"] not in ours
    ]  # it is the root already
    document["dependencies"] = [
        {**entry, "dependsOn": [ref for ref in entry.get("dependsOn", ()) if ref not in ours]}
        for entry in document["dependencies"]
        if entry["ref"] not in ours
    ]
    refs = [root["purl"], *(part["bom-ref"] for part in document["components"])]
    document["serialNumber"] = f"urn:uuid:{uuid5(NAMESPACE_URL, ' '.join(refs))}"
    for component in document["components"]:
        name = canonicalize_name(component["name"])
        by = uses.get(name, ())
        optional = "optional" if set(RUNTIME) & set(by) else "excluded"
        component["scope"] = "required" if ALWAYS in by else optional
        component.setdefault("properties", []).append(
            {"name": "takifugu:extras", "value": ", ".join(by)}
        )
        licence = licence_of(there[name])
        if licence is not None:
            component["licenses"] = [{"expression": licence}]
        within = [file for file in WITHIN if file.package == name]
        if within:
            component["components"] = [
                {
                    "type": "file",
                    "bom-ref": f"{component['bom-ref']}#{file.path}",
                    "name": file.path,
                    "licenses": [{"expression": file.licence}],
                    "description": file.what,
                }
                for file in within
            ]
    return document


if __name__ == "__main__":
    sys.exit(main())
