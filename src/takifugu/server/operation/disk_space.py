"""Whether there is room on the disks that a server writes to.

A ledger that cannot be written refuses every release, and a witness that cannot be written every
change: nothing is lost, but nothing is answered either. Databases need room beside what they hold,
for their logs and for one transaction that is larger than others.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu.keys import state_folder
from takifugu.ledger.storage.addresses import address_of
from takifugu.server.operation.file_checks import existing
from takifugu.server.operation.findings import Finding, ok, warning, wrong

if TYPE_CHECKING:
    from takifugu.project.project import Project

FULL = 32 * 2**20  # bytes that a server needs to go on
LITTLE = 2**30  # bytes, or a tenth of the disk if that is less: time to make room


def written_places(project: "Project") -> dict[str, Path]:
    """By name, what a server of a project writes to on disks of this machine.

    A ledger and a witness on other machines are left out: their disks are for others to watch.
    """
    places = {"project": project.folder}
    ledger = address_of(project.ledger_place)
    if ledger.sqlite:
        places["ledger"] = Path(ledger.name)
        places["state"] = project.folder
    witness = project.witness
    if witness is True:
        places["witness"] = state_folder() / "heads"
    elif witness and "://" not in str(witness):
        places["witness"] = Path(str(witness))
    return places


def room(path: Path) -> tuple[int, int]:
    """Bytes that are free for this user where a path is or would be made, and of how many."""
    found = shutil.disk_usage(existing(path))
    return found.free, found.total


def is_full(project: "Project") -> bool:
    """Whether a disk has no room to go on."""
    return any(room(path)[0] < FULL for path in written_places(project).values())


def disk_findings(project: "Project") -> Iterator[Finding]:
    """What `takifugu serve --check` says of each disk, once."""
    findings: dict[int, Finding] = {}
    for name, path in written_places(project).items():
        disk = existing(path).stat().st_dev
        free, total = room(path)
        words = f"{_megabytes(free)} are free where the {name} is ({existing(path)})"
        advice = "make room, or move it to a larger disk"
        if disk in findings:
            continue
        if free < FULL:
            findings[disk] = wrong("disk", f"{words}: nothing can be written soon", advice)
        elif free < min(LITTLE, total // 10):
            findings[disk] = warning("disk", words, advice)
    yield from findings.values() or [ok("disk", "there is room for the ledger and the state")]


def _megabytes(size: int) -> str:
    return f"{size // 2**20:,} MB"
