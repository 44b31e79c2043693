"""The page of licences: every package that is pinned, its licence and which extra brings it.

The page is also where the licences of packages are kept that an environment lacks: those of other
extras keep their row as long as their pin stays.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from torture.dependencies.licences import WITHIN, Kind, kind_of, licence_of, unsuited
from torture.dependencies.requirements import ALWAYS, RUNTIME, Asked, pinned, used_by
from torture.part_report import ROOT, Report

PAGE = ROOT / "docs" / "reference" / "licences.md"

_HEAD = """# Licences

takifugu is under the Apache License 2.0, and ships no code, font or script of others: the packages
that it needs are installed beside it, each under its own licence. The versions are those that
`constraints.txt` pins, the licences what the packages say of themselves, as
[SPDX](https://spdx.org/licenses/) expressions. *Used by* names the extras that bring a package, or
*always*; `dev`, `torture` and `nightly` are for people who work on takifugu.

`python -m torture.dependencies --licences` writes this page, and with `--sbom sbom.json` a bill of
materials of the environment that it runs in (CycloneDX 1.6).

What people install may be permissive, or copyleft that ends at the package's own files; a package
under the GPL or AGPL, or without a known licence, is refused by a test.
"""


@dataclass(frozen=True)
class Row:
    """A package on the page.

    Attributes:
        name: As `pip` spells it, normalised.
        version: The pinned one.
        licence: An SPDX expression; ``None`` where it is not known.
        uses: The extras that bring it.
    """

    name: str
    version: str
    licence: str | None
    uses: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """What the page shows."""
        return (self.name, self.version, self.licence or "unknown", ", ".join(self.uses))


def rows(
    asked: Asked,
    pins: Mapping[str, str],
    there: Mapping[str, Distribution],
    before: Mapping[str, Row],
) -> list[Row]:
    """One row for each pin: from what is installed, else from the page as it was.

    Raises:
        LookupError: A pinned package is neither installed nor on the page at that version.
    """
    uses = used_by(asked, there)
    found, lacking = [], []
    for name, version in sorted(pins.items()):
        was = before.get(name)
        if name in there and name in uses:
            found.append(Row(name, version, licence_of(there[name]), uses[name]))
        elif was is not None and was.version == version:
            found.append(was)
        else:
            lacking.append(f"{name} {version}")
    if lacking:
        raise LookupError(
            f"{', '.join(lacking)}: not installed, or needed by no extra; install every extra "
            "(pip install -c constraints.txt -e '.[nightly,spark,torture]') or drop the pin"
        )
    return found


def read(page: str) -> dict[str, Row]:
    """The packages that a page lists, by name."""
    found: dict[str, Row] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and cells[0] == canonicalize_name(cells[0]) and "==" not in line:
            name, version, licence, uses = cells
            if version[:1].isdigit():
                known = None if licence == "unknown" else licence
                found[name] = Row(name, version, known, tuple(uses.split(", ")))
    return found


def written(listed: list[Row]) -> str:
    """The page."""
    users = [row for row in listed if {ALWAYS, *RUNTIME} & set(row.uses)]
    parts = [
        _HEAD,
        "## What people install\n",
        _table(users),
        "### Copyleft among these\n",
        _copyleft(users),
        "## What developers install besides\n",
        _table([row for row in listed if row not in users]),
        "## Files with a licence of their own\n",
        "Within packages above; takifugu reads them, or hands them on as said here.\n",
        "| file | within | licence | what it is |\n|---|---|---|---|",
        "\n".join(
            f"| `{file.path}` | {file.package} | {file.licence} | {file.what} |" for file in WITHIN
        ),
    ]
    return "\n".join(parts) + "\n"


def _table(listed: list[Row]) -> str:
    head = "| package | version | licence | used by |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(row.cells)} |" for row in listed) + "\n"


def _copyleft(listed: list[Row]) -> str:
    weak = [row for row in listed if kind_of(row.licence) is Kind.WEAK_COPYLEFT]
    names = ", ".join(f"{row.name} ({row.licence})" for row in weak)
    return (
        f"{names}: takifugu imports them unchanged. Whoever hands them out, in an image for "
        "instance, passes on their licence and their source; takifugu's own stays Apache-2.0.\n"
        if weak
        else "None.\n"
    )


def write_page(
    path: Path, asked: Asked, pins: Mapping[str, str], there: Mapping[str, Distribution]
) -> list[Row]:
    """Write the page, and give its rows."""
    before = read(path.read_text(encoding="utf-8")) if path.exists() else {}
    listed = rows(asked, pins, there, before)
    path.write_text(written(listed), encoding="utf-8")
    return listed


def check_licences(report: Report) -> None:
    """Findings for licences that do not suit, and a table of how many packages have which kind."""
    listed = read(PAGE.read_text(encoding="utf-8"))
    again = "python -m torture.dependencies --licences"
    for name in sorted(set(pinned()) - set(listed)):
        report.finding(f"{name} is pinned, and not on the page of licences", again)
    uses = {name: row.uses for name, row in listed.items()}
    for one in unsuited({name: row.licence for name, row in listed.items()}, uses):
        report.finding(f"{one.package} ({one.licence or 'unknown'}): {one.why}", again)
    report.count("licences", len(listed))
    users = {name for name, by in uses.items() if {ALWAYS, *RUNTIME} & set(by)}
    kinds = Counter((kind_of(row.licence), name in users) for name, row in listed.items())
    rows = [
        (kind.name.lower().replace("_", " "), kinds[kind, True], kinds[kind, False])
        for kind in sorted({kind for kind, _ in kinds})
    ]
    report.table("Licences", ("kind", "packages of users", "of developers besides"), rows)
