"""A disk that fills up, and one that becomes read-only, while processes charge and are killed.

The disk is a small one in memory, which only root may make. Where nobody may, the files of each
process are not allowed to grow beyond a size.
"""

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from takifugu.errors import LedgerUnavailable, LedgerUnwritable
from torture.kills.accounts import OTHER, Acknowledged, Fault
from torture.kills.jobs import Place, make
from torture.kills.patient import charging_on
from torture.kills.storms import Outcome, settle
from torture.kills.strikes import Job, Notes, Strike, alone, storm

BUDGET = 100_000
SIZE = "24m"  # room for a log before SQLite moves it to the file (4 MiB), several times
CLIENTS = 4
TROUBLE = (LedgerUnwritable, LedgerUnavailable)


class NoDisk(Exception):
    """No disk of our own can be mounted here."""


@contextmanager
def small_disk(where: Path) -> Iterator[Path]:
    """A small disk, mounted for as long as the block lasts."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        raise NoDisk("needs the right to mount a small disk (root)")
    where.mkdir()
    command = (mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(where))
    if subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603
        raise NoDisk("a small disk cannot be mounted here")
    try:
        yield where
    finally:
        subprocess.run((umount, "--lazy", str(where)), check=True)  # noqa: S603


def filling(disk: Path, rng: np.random.Generator, times: int) -> Job:
    """Fill the disk but for a little, and make room again, so many times."""

    def job(say: Notes) -> None:
        ballast = disk / "ballast"
        for _ in range(times):
            time.sleep(float(rng.uniform(0.05, 0.3)))
            left = int(rng.integers(0, 1 << 17))
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                for _ in range(max(0, shutil.disk_usage(disk).free - left) // 16_384):
                    file.write(bytes(16_384))
            time.sleep(float(rng.uniform(0.05, 0.4)))
            ballast.unlink()
            say("disk", "filled")

    return job


def remounting(disk: Path, rng: np.random.Generator, times: int) -> Job:
    """Make the disk read-only for a while, so many times; whenever nobody has a file open there."""

    def remount(how: str) -> bool:
        command = ("mount", "-o", f"remount,{how}", str(disk))
        return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603

    def job(say: Notes) -> None:
        for _ in range(times):
            time.sleep(float(rng.uniform(0.05, 0.3)))
            for _ in range(500):
                if remount("ro"):
                    break
                time.sleep(float(rng.uniform(0, 0.02)))
            else:
                say("disk", "busy")
                continue
            time.sleep(float(rng.uniform(0.1, 0.5)))
            while not remount("rw"):
                time.sleep(0.01)
            say("disk", "read-only")

    return job


def run_disk(folder: Path, rng: np.random.Generator, times: int, *, read_only: bool) -> Outcome:
    """Let processes charge on a small disk while it fills up, or becomes read-only."""
    with small_disk(folder / "disk") as disk:
        heads = (disk if rng.random() < 0.5 else folder) / "heads"
        place = Place(str(disk / "ward.ledger"), folder, str(heads))
        trouble = remounting(disk, rng, times) if read_only else filling(disk, rng, times)
        clients = 2 if read_only else CLIENTS
        return _run(place, rng, trouble, clients=clients, reopen=read_only)


def _run(
    place: Place, rng: np.random.Generator, trouble: Job, *, clients: int, reopen: bool
) -> Outcome:
    done, known, ended = Outcome(), Acknowledged(), False
    known.take(alone(lambda _: make(place, BUDGET)))

    def planned() -> Iterator[tuple[str, Job, Strike]]:
        yield "disk", trouble, Strike("none")
        while not ended:
            own = np.random.default_rng(rng.integers(2**63))
            job = charging_on(place, own, TROUBLE, resume=bool(rng.random() < 0.5), reopen=reopen)
            yield "client", job, Strike("delay", float(rng.uniform(0.1, 1.0)))

    for child in storm(planned(), clients + 1):
        known.take(child)
        if child.name == "disk":
            ended = True
            done.details.update(f"disk {how}" for _, how in child.said("disk"))
            done.kills += len([how for _, how in child.said("disk") if how != "busy"])
        elif child.killed:
            done.details["processes killed"] += 1
        elif not child.said("trouble"):
            done.faults.append(Fault(OTHER, "a client ended by itself"))
        for _, kind, reason in child.said("failed"):
            done.details[f"{kind} ({reason})"] += 1
    done.faults += settle(place, known, BUDGET)
    done.acknowledged = known.charges
    return done


def limited(place: Place, rng: np.random.Generator, size: int) -> Job:
    """Charge while no file may grow beyond a size: then the error, and an end."""

    def job(say: Notes) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        charging_on(place, rng, (), resume=True)(say)

    return job


def run_limited(place: Place, rng: np.random.Generator) -> Outcome:
    """Processes whose files may not grow; each must end with an error that says so."""
    done, known = Outcome(), Acknowledged()
    known.take(alone(lambda _: make(place, BUDGET)))
    jobs = [
        ("limited", limited(place, rng, int(rng.integers(100_000, 500_000))), Strike("none"))
        for _ in range(CLIENTS)
    ]
    for child in storm(jobs, CLIENTS):
        ends = child.said("trouble")
        expected = [note for note in ends if note[1] == "LedgerUnwritable"]
        known.take(child)
        known.trouble = [
            (name, what) for name, what in known.trouble if what[0] != "LedgerUnwritable"
        ]
        done.details[f"LedgerUnwritable ({expected[0][2]})" if expected else "no error"] += 1
        if not expected:
            done.faults.append(Fault(OTHER, f"no room, and ended with {ends}"))
    done.faults += settle(place, known, BUDGET)
    done.acknowledged = known.charges
    return done
