"""A PostgreSQL of our own for as long as it is needed, in a temporary folder."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

OWNER = "postgres"  # who runs it when root runs the tests: the programs refuse root


def missing() -> str | None:
    """What is needed to run a server and is not here; None if nothing."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        return "needs PostgreSQL: initdb and pg_ctl are not on the path"
    try:
        import psycopg  # noqa: F401 - looked for, not used
    except ModuleNotFoundError:
        return "needs the package psycopg"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(OWNER)
        except KeyError:
            return f"needs a user {OWNER} to run PostgreSQL as, when run by root"
    return None


def children(process: int) -> list[int]:
    """The processes that a process has started, and that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(entry.parent.name))
    return found


def _runs(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Cluster:
    """A running server without a network; each schema of its one database can hold a ledger."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._schemas = folder, 0
        self._as: dict[str, Any] = {}
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        if os.geteuid() == 0:
            user = pwd.getpwnam(OWNER)
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _run(self, *command: str) -> None:
        # Its own file takes the output: a pipe would stay open for as long as the server runs.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(  # noqa: S603 - our own arguments
                command, check=False, stdout=output, stderr=output, cwd=self._folder, **self._as
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()

    def start(self) -> None:
        """Make it and start it."""
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        self.restart()

    def revive(self) -> None:
        """Start it after it was killed: what is left of it may be in the way at first."""
        until = time.monotonic() + 60
        while True:
            try:
                return self.restart()
            except AssertionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def restart(self) -> None:
        """Start it, after it was stopped."""
        # Its processes are killed, and never the machine: nothing need reach the disk.
        options = f"-k {self._folder} -c listen_addresses='' -c max_connections=50 -c fsync=off"
        where = ("-D", str(self._folder / "data"), "-l", f"{self._folder}/log")
        self._run("pg_ctl", *where, "-w", "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")

    @property
    def postmaster(self) -> int:
        """The first of its processes."""
        return int((self._folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """End it as a power cut would: every process of it, without a word."""
        first = self.postmaster
        os.kill(first, signal.SIGSTOP)  # so that it makes no more
        for process in [*children(first), first]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        until = time.monotonic() + 60
        while _runs(first) and time.monotonic() < until:
            time.sleep(0.01)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process of it is stopped until the block is left: it is there, and silent."""
        first = self.postmaster
        stopped = [first]
        os.kill(first, signal.SIGSTOP)  # so that it makes no more
        for child in children(first):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
                stopped.append(child)
        try:
            yield
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)

    def address(self) -> str:
        """The address of a fresh, empty schema."""
        import psycopg

        self._schemas += 1
        name = f"ledger_{self._schemas}"
        with psycopg.connect(self.url) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        options = quote(f"-c search_path={name}")
        return f"{self.url}&options={options}"


@contextlib.contextmanager
def cluster(where: str = "/tmp") -> Iterator[Cluster]:  # noqa: S108 - a short path, for a socket
    """A server that runs until the block is left."""
    with tempfile.TemporaryDirectory(prefix="pg", dir=where) as folder:
        server = Cluster(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
