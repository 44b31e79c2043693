"""A server against the same calls in process: rates, latencies, processor time, idle memory.

The same plans and releases run in one process (`OpenedDataset.session`, one call after another) and
over HTTP against ``takifugu serve``, in turns. Plans are of a cached translation: a few dozen
values of ε that each process has translated before. Every release has an ε of its own, so that each
is translated, charged, drawn and recorded. The server rounds the time of a release up to
`time_step`; it is 0 here.

How to read latencies. Closed-loop clients send the next request when they have the answer, so that
by Little's law N clients wait N / rate on average: 50 of them at least 50 times the time that the
machine needs for one, divided by the requests that it works on at once. On two processors, which
also run the clients, no server answers 50 such clients within 10 times the latency of one. So
latencies are also printed for 50 clients that think, so long that the load is about half of what
the server can do: that is what 50 people are. Processor time is printed because it does not depend
on what else the machine is doing.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from tests.ledger import postgres
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

CLIENTS, KNOWN = 50, 40  # analysts, and values of ε that plans are asked with
PLANS, RELEASES, ROUNDS = 80, 16, 10  # in each round; others may use the machine: short rounds
TICK = os.sysconf("SC_CLK_TCK")
WANTED = {"plans": 0.6, "releases": 0.5}


def query(epsilon: str) -> dict[str, Any]:
    """What is asked: counts of each state in each zone."""
    return {"kind": "histogram", "by": ["zone"], "epsilon": epsilon}


def known(number: int) -> dict[str, Any]:
    """One of a few dozen queries."""
    return query(f"1.{number % KNOWN:03d}")


NUMBERS = count(1)


def new() -> dict[str, Any]:
    """A query that was never asked; also not by another process, whose numbers differ."""
    return query(f"0.8{os.getpid() % 10_000:04d}{next(NUMBERS):05d}")


@dataclass(frozen=True)
class Measured:
    """What some requests took.

    Attributes:
        rate: Requests a second.
        seconds: Of each request, sorted.
        busy: Seconds of processors for each request: of the server alone, and of its workers; in
            one process all together.
    """

    rate: float
    seconds: tuple[float, ...]
    busy: tuple[float, ...]

    def at(self, share: float) -> float:
        """A quantile of the latency, in milliseconds."""
        return 1e3 * self.seconds[min(int(share * len(self.seconds)), len(self.seconds) - 1)]

    def __str__(self) -> str:
        busy = " + ".join(f"{1e3 * part:.1f}" for part in self.busy)
        return (
            f"{self.rate:7.1f}/s  p50 {self.at(0.5):7.1f} ms  p99 {self.at(0.99):7.1f} ms "
            f" processors {busy} ms"
        )


def run(rounds: int = ROUNDS) -> None:
    """Print what a server takes beside the same calls in process, on each kind of ledger."""
    with tempfile.TemporaryDirectory() as spare:
        os.environ |= {f"XDG_{kind}_HOME": f"{spare}/{kind}" for kind in ("STATE", "CACHE")}
        _compare("SQLite", small_project(Path(spare) / "one", budget="1000000"), rounds)
        _memory(small_project(Path(spare) / "idle"))
        if postgres.missing() is None:
            with postgres.cluster() as server:
                address = server.address()
                study = small_project(Path(spare) / "two", address, budget="1000000")
                _compare("PostgreSQL", study, rounds)


def _compare(name: str, project: Path, rounds: int) -> None:
    print(f"-- {name}")
    tokens = _tokens(project)
    inside: dict[str, list[Measured]] = {"plans": [], "releases": []}
    outside: dict[tuple[str, int], list[Measured]] = {}
    with _serving(project) as server:
        load = Load(server, tokens)
        load.closed(8, 10 * KNOWN, "plans")  # both workers know every ε
        with _apart(project) as ask:
            for _ in range(rounds):
                for what, requests in (("plans", PLANS), ("releases", RELEASES)):
                    inside[what].append(ask(what, requests))
                    for clients in (1, 8):
                        got = load.closed(clients, requests, what)
                        outside.setdefault((what, clients), []).append(got)
        for what, values in inside.items():
            print(f"{what:>9} in process    {together(values)}")
            for clients in (1, 8):
                there = outside[what, clients]
                ratio = median(b.rate / a.rate for a, b in zip(values, there, strict=True))
                print(
                    f"{what:>9} {clients:>2} client{'s' if clients > 1 else ' '}   "
                    f" {together(there)}  ×{ratio:.2f} of the rate in process; wanted: at least"
                    f" {WANTED[what]}"
                )
        capacity = together(outside["plans", 8]).rate
        one = together(outside["plans", 1])
        for words, many in (
            ("without a pause", load.closed(CLIENTS, 10 * PLANS, "plans")),
            ("at half the load", load.thinking(CLIENTS, 10 * PLANS, "plans", 0.5 * capacity)),
        ):
            ratio = many.at(0.99) / one.at(0.99)
            print(
                f"    plans {CLIENTS} clients {words}: {many}; p99 is {ratio:.1f} times that of"
                f" one ({one.at(0.99):.1f} ms); wanted: at most 10"
            )


def together(found: Sequence[Measured]) -> Measured:
    """Several rounds: the middle rate, and all latencies."""
    return Measured(
        median(one.rate for one in found),
        tuple(sorted(seconds for one in found for seconds in one.seconds)),
        tuple(median(part) for part in zip(*(one.busy for one in found), strict=True)),
    )


def _tokens(project: Path) -> list[str]:
    from takifugu.project.project import open_project
    from takifugu.server.access.tokens import make_token
    from takifugu.server.state.server_state import open_state

    opened = open_project(project)
    with open_state(opened) as state:
        names = (f"analyst {n}" for n in range(CLIENTS))
        return [
            make_token(opened, state, name, "analyst", None, by="owner").secret for name in names
        ]


@contextmanager
def _serving(project: Path, **settings: Any) -> Iterator[RunningServer]:
    limits = {"rate": 1_000_000, "burst": 100_000, "workers": 2, "time_step": 0, "wait": 60}
    with running_server(project, **(limits | settings)) as server:
        yield server


# --- clients ---


class Load:
    """Clients of a server: connections that are kept open, in one event loop."""

    def __init__(self, server: RunningServer, tokens: Sequence[str]) -> None:
        self._server, self._tokens = server, tokens
        self._keys = count()

    def closed(self, clients: int, requests: int, what: str) -> Measured:
        """Clients that ask again as soon as they are answered."""
        return asyncio.run(self._measured(clients, requests, what, lambda: 0.0))

    def thinking(self, clients: int, requests: int, what: str, rate: float) -> Measured:
        """Clients that think in between, for times like those between independent events."""
        rng = np.random.default_rng(1)
        mean = clients / rate
        return asyncio.run(
            self._measured(clients, requests, what, lambda: float(rng.exponential(mean)))
        )

    async def _measured(
        self, clients: int, requests: int, what: str, pause: Callable[[], float]
    ) -> Measured:
        seconds = list[float]()
        before = self._busy()
        began = perf_counter()
        each = max(requests // clients, 1)
        await asyncio.gather(*(self._client(n, each, what, pause, seconds) for n in range(clients)))
        took = perf_counter() - began
        busy = tuple(
            (now - then) / len(seconds) for then, now in zip(before, self._busy(), strict=True)
        )
        return Measured(len(seconds) / took, tuple(sorted(seconds)), busy)

    async def _client(
        self, number: int, requests: int, what: str, pause: Callable[[], float], into: list[float]
    ) -> None:
        reading, writing = await self._connected()
        for turn in range(requests):
            if wait := pause():
                await asyncio.sleep(wait)
                if reading.at_eof():  # the server does not keep connections for long
                    writing.close()
                    reading, writing = await self._connected()
            message = self._request(what, self._tokens[number], number * 7 + turn)
            began = perf_counter()
            writing.write(message)
            head = await reading.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            (size,) = (line.split(b":")[1] for line in lines if line.startswith(b"content-length"))
            body = await reading.readexactly(int(size))
            into.append(perf_counter() - began)
            status = int(head[9:12])
            assert status in (200, 201), (status, body)
        writing.close()
        await writing.wait_closed()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._server.host, self._server.port)

    def _request(self, what: str, token: str, turn: int) -> bytes:
        if what == "plans":
            document: dict[str, Any] = {"query": known(turn)}
        else:
            document = {"query": new(), "accept_noise": True}
        body = json.dumps(document).encode()
        head = (
            f"POST /api/v1/datasets/stays/{what} HTTP/1.1\r\nHost: {self._server.host}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {os.getpid()}-{next(self._keys)}\r\nContent-Length: {len(body)}\r\n"
        )
        return f"{head}\r\n".encode() + body

    def _busy(self) -> tuple[float, float]:
        """Seconds of processors that the server has used, and its workers."""
        server = self._server.process.pid
        return _used(server), sum(_used(worker) for worker in _children(server))


def _used(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _children(process: int) -> list[int]:
    found = []
    for entry in Path(f"/proc/{process}/task").glob("*/children"):
        found += [int(child) for child in entry.read_text(encoding="ascii").split()]
    return found


# --- the same in process ---


@contextmanager
def _apart(project: Path) -> Iterator[Callable[[str, int], Measured]]:
    """The same calls in a process of their own, as many as are asked for at a time."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "benchmarks.server", "--one", str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        sending, reading = process.stdin, process.stdout

        def ask(what: str, many: int) -> Measured:
            sending.write(f"{what} {many}\n")
            sending.flush()
            rate, seconds, busy = json.loads(reading.readline())
            return Measured(rate, tuple(seconds), (busy,))

        yield ask
        sending.close()


def _inside(project: Path) -> None:
    """Do the same calls in this process, as many as stdin asks for, and print what they took."""
    from takifugu.project.opened_dataset import open_dataset
    from takifugu.project.project import open_project
    from takifugu.session.plan_documents import plan_to_document
    from takifugu.session.query_options import QueryOptions

    with open_dataset(open_project(project), "stays") as opened:

        def plan(turn: int) -> None:
            session = opened.session("analyst 0", actor="analyst 0")
            plan_to_document(session.plan(QueryOptions.from_document(known(turn))))

        def release(_: int) -> None:
            session = opened.session("analyst 0", actor="analyst 0")
            made = session.plan(QueryOptions.from_document(new()))
            session.release(made, accept_noise=True).document()

        for turn in range(KNOWN):
            plan(turn)
        for line in sys.stdin:
            what, many = line.split()
            work = plan if what == "plans" else release
            print(json.dumps(_clocked(work, int(many))), flush=True)


def _clocked(work: Callable[[int], None], many: int) -> tuple[float, list[float], float]:
    seconds, busy, began = list[float](), process_time(), perf_counter()
    for turn in range(many):
        start = perf_counter()
        work(turn)
        seconds.append(perf_counter() - start)
    took, busy = perf_counter() - began, process_time() - busy
    return many / took, sorted(seconds), busy / many


# --- memory ---


def _memory(project: Path) -> None:
    """Print what an idle server holds, beside the imports that it is measured by."""
    tokens = _tokens(project)
    with _serving(project, worker_idle=1) as server:
        fresh = _resident(server.process.pid)
        Load(server, tokens).closed(1, 1, "plans")
        while _children(server.process.pid):  # the worker ends when it is idle
            asyncio.run(asyncio.sleep(0.1))
        used = _resident(server.process.pid)
    lazy = _imported("import takifugu.session")
    whole = _imported("from takifugu.session import Session")
    print(
        f"-- memory: an idle server holds {fresh:.0f} MiB, {used:.0f} after work;"
        f" `import takifugu.session` {lazy:.0f} (its parts are imported when they are used),"
        f" `from takifugu.session import Session` {whole:.0f}: {fresh / lazy:.1f} and"
        f" {fresh / whole:.1f} times; wanted: at most 2"
    )


def _resident(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def _imported(statement: str) -> float:
    read = "print([l for l in open('/proc/self/status') if l.startswith('VmRSS')][0].split()[1])"
    done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-c", f"{statement}\n{read}"], check=True, capture_output=True, text=True
    )
    return int(done.stdout) / 1024


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", type=Path, metavar="PROJECT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        _inside(given.one)
        return
    run(given.rounds)


if __name__ == "__main__":
    main()
