"""Time and memory of a program and of every process that it starts, measured the same way for all.

``python -m benchmarks._peers.measuring OUT GIB SECONDS -- COMMAND`` runs one command and writes
what it took to the file OUT. Wall time ends with the command itself. Processor time is that of it
and of all its descendants, the Java of Spark among them: whoever loses its parent becomes ours
(Linux), so that the kernel adds everything up for us. Memory is the largest sum of what the
processes of its session hold at one moment, looked at a hundred times a second, and at least the
peak that the kernel saw of the largest of them. Above GIB or after SECONDS all of them are ended.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

STEP, SCAN = 0.01, 0.25  # seconds between looks at the memory, and at which processes there are
REST = 10.0  # seconds that descendants have after the command has ended
ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
PAGE = resource.getpagesize()
PROC = Path("/proc")


def measured(
    command: list[str], *, gibibytes: float, seconds: float, out: Path, **how: Any
) -> dict[str, Any]:
    """What a command takes, by a process between us and it; ``out`` gets its figures."""
    own = [sys.executable, "-m", "benchmarks._peers.measuring", str(out)]
    with subprocess.Popen(  # noqa: S603 - our own interpreters and arguments
        [*own, str(gibibytes), str(seconds), "--", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    ) as between:
        try:
            _, errors = between.communicate()
        except BaseException:  # it ends what it has started, if it is not killed itself
            between.send_signal(signal.SIGINT)
            between.wait()
            raise
    if between.returncode:
        raise RuntimeError(f"measuring failed: {errors}")
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found | {"errors": errors}


def _run(out: Path, gibibytes: float, seconds: float, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(ORPHANS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "descendants cannot be adopted; this needs Linux")
    began, peak, scanned, stopped = perf_counter(), 0, -SCAN, None
    child = subprocess.Popen(  # noqa: S603 - as given
        command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    known = [child.pid]
    try:
        while child.poll() is None:
            now = perf_counter() - began
            if now - scanned >= SCAN:
                known, scanned = _session(child.pid), now
            peak = max(peak, sum(map(_resident, known)))
            if peak > gibibytes * 2**30:
                stopped = f"more than {gibibytes:g} GiB of memory"
            elif now > seconds:
                stopped = f"more than {seconds:g} s"
            if stopped:
                _end(child.pid)
                child.wait()
            sleep(STEP)
        wall = perf_counter() - began
        _wait_for_all(child.pid)
    except BaseException:  # Ctrl-C reaches us, and not the session of the command
        _end(child.pid)
        raise
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    document = {
        "wall": wall,
        "processor": used.ru_utime + used.ru_stime,
        "peak": max(peak, used.ru_maxrss * 1024) / 2**20,
        "status": child.returncode,
        "stopped": stopped,
    }
    out.write_text(json.dumps(document), encoding="utf-8")


def _session(leader: int) -> list[int]:
    """The processes of the session that ``leader`` began, by what the kernel says of each."""
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # pid (name) state parent group session …: names may hold blanks and brackets
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    found.append(int(entry.name))
    return found


def _resident(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0  # it has ended


def _end(leader: int) -> None:
    for pid in _session(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait_for_all(leader: int) -> None:
    """Take leave of every descendant; of those who stay too long by ending them."""
    began = perf_counter()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            if perf_counter() - began > REST:
                _end(leader)
            sleep(STEP)


if __name__ == "__main__":
    target, most, longest, _, *given = sys.argv[1:]
    _run(Path(target), float(most), float(longest), given)
