"""The executors of a Spark that this process, or one that it started, is the driver of.

In ``local-cluster`` each is a Java process of its own, started by the driver's. They are found in
``/proc`` by what they run and by who started them: nobody else's are touched.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

EXECUTOR = "CoarseGrainedExecutorBackend"
PROC = Path("/proc")
STARTING = 180.0  # seconds that a cluster may take to start its executors


def executors(of: int) -> list[int]:
    """The executors that descend from the process ``of``, in the order in which they started."""
    started = dict(_parents())
    return sorted(
        pid for pid in started if _descends(pid, of, started) and EXECUTOR in _command(pid)
    )


def started(of: int, number: int, limit: float = STARTING) -> list[int]:
    """The executors of the process ``of``, once there are so many; fewer if that takes too long.

    A cluster says that it is there before its executors are.
    """
    end = time.monotonic() + limit
    while len(found := executors(of)) < number and time.monotonic() < end:
        time.sleep(0.05)
    return found


def drivers(of: int) -> list[int]:
    """The Java processes that the process ``of`` started itself."""
    return sorted(pid for pid, parent in _parents() if parent == of and "java" in _command(pid))


def processor_seconds(pid: int) -> float:
    """The time that a process has had on a processor; 0 if it has ended."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def kill(pid: int) -> bool:
    """End a process at once; False if it had ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _descends(pid: int, of: int, parents: dict[int, int]) -> bool:
    seen = set[int]()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid == of:
            return True
    return False


def _parents() -> Iterator[tuple[int, int]]:
    """Every process and the one that started it."""
    for place in PROC.iterdir():
        if place.name.isdecimal():
            try:
                stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has ended meanwhile
                continue
            yield int(place.name), int(stat.rpartition(")")[2].split()[1])


def _command(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""
