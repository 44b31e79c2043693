"""Many analysts on one budget, while the server is killed under them.

By hand, for as long as it takes::

    python -m tests.server.load --analysts 50 --releases 20 --wide
    python -m tests.server.load --analysts 50 --kills 200 --worker-kills 50
    python -m tests.server.load --analysts 50 --postgres --database-kills 20 --kills 20

The server is the real process. Every analyst has a token, plans and releases over HTTP by the
client, with an idempotency key for each plan, and sends every third release a second time.
Meanwhile the server, its workers, or PostgreSQL are killed. In the end every release was answered
or refused; and the ledger, read by plain SQL and added up by plain Python
(`tests.oracles.ledger_sums`), has every charge that was acknowledged, no other, each once, and no
cell above the budget.

The prior is of independent entries, so that a Pufferfish ε is a per-entry ε, and the sum of a cell
is compared with the budget itself.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

import takifugu as tf
from takifugu.client import Connection, ServerRefused, ServerUnreachable
from takifugu.priors import MarkovChain
from takifugu.session import OverBudget, QueryOptions
from tests.cli.running import SOURCE
from tests.ledger import postgres
from tests.oracles.ledger_sums import PlainEvent, events_of, largest_sum
from tests.server.projects import DAYS, FIRST_DAY, STATES, ZONES, small_project
from tests.server.running import new_token, workers_of, write_settings

INDEPENDENT = MarkovChain(np.array([[0.5, 0.3, 0.2]] * 3), states=STATES, length=DAYS)
PATIENCE = 3600.0  # seconds: of a client, on a machine that does much else
BUDGET = "2"


@dataclass(frozen=True)
class Acknowledged:
    """What an analyst was told: the events of the charge and of the answer, by number and hash."""

    analyst: str
    charge: tuple[int, str]
    answer: tuple[int, str]
    free: bool


@dataclass
class Tally:
    """What became of every release."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0
    differing: int = 0
    failed: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=Lock, repr=False)

    @property
    def done(self) -> int:
        """How many releases were answered or refused."""
        return len(self.acknowledged) + self.refused


class KilledServer:
    """A server process at one port, started again after it was killed."""

    def __init__(self, project: Path, **settings: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.project, self.url = project, f"http://127.0.0.1:{self.port}"
        write_settings(project, port=self.port, rate=1_000_000, burst=100_000, **settings)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = (sys.executable, "-m", "takifugu", "serve", "--project", str(self.project))
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [*command, "--json"],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._process.stdout.close()
        assert line, self.log()[-2000:]
        assert json.loads(line)["url"] == self.url

    def log(self) -> str:
        """What it wrote."""
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        """The process that answers requests."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it as a power cut would, and start it again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.start()

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(120)
        self._log.close()


@dataclass
class Trial:
    """A server, its analysts, and what became of what they asked."""

    server: KilledServer
    tokens: dict[str, str]
    wide: bool = False  # whether everybody asks about every row
    tally: Tally = field(default_factory=Tally)
    stop: Event = field(default_factory=Event)
    killed: list[str] = field(default_factory=list)  # what was killed while it ran

    def query(self, number: int, turn: int) -> QueryOptions:
        """What an analyst asks in a turn: a few days of one zone, or what everybody asks then."""
        if self.wide:
            return QueryOptions("histogram", epsilon=f"0.05{number:03}{turn % 10_000:04}")
        common = turn % 7 == 3
        place = turn if common else 31 * number + 17 * turn
        first = FIRST_DAY + timedelta(days=place % (DAYS - 3))
        epsilon = "0.05" if common else f"0.05{number:03}{turn % 10_000:04}"
        where = {} if place % 5 == 0 else {"zone": [ZONES[place % len(ZONES)]]}
        window = (_day(first), _day(first + timedelta(days=1 + place % 3)))
        return QueryOptions("histogram", window=window, where=where, epsilon=epsilon)

    def ask(self, number: int, name: str, most: int | None) -> None:
        """One analyst, until the trial stops, or for a number of releases."""
        turn = 0
        try:
            with self._connected(name) as found:
                dataset = found.dataset("stays")
                while not self.stop.is_set() and (most is None or turn < most):
                    self._release(dataset, name, self.query(number, turn), again=turn % 3 == 0)
                    turn += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told in the end
            self._failed(name, error)

    def _connected(self, name: str) -> Connection:
        """The connection of an analyst, who tries again while nobody answers."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return tf.connect(self.server.url, self.tokens[name], patience=PATIENCE)
            except ServerUnreachable:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def _failed(self, name: str, error: Exception) -> None:
        status = f" (status {error.status})" if isinstance(error, ServerRefused) else ""
        said = [line for line in self.server.log().splitlines() if _reference(error) in line]
        with self.tally.lock:
            self.tally.failed.append(f"{name}: {type(error).__name__}{status}: {error} {said}")

    def _release(self, dataset: Any, name: str, query: QueryOptions, *, again: bool) -> None:
        plan = dataset.plan(query)
        try:
            result = dataset.release(plan, accept_noise=True)
        except OverBudget:
            with self.tally.lock:
                self.tally.refused += 1
            return
        told = _told(name, result)
        with self.tally.lock:
            self.tally.acknowledged.append(told)
        if again:
            same = dataset.release(plan, accept_noise=True)
            with self.tally.lock:
                self.tally.repeated += 1
                self.tally.differing += same.rows != result.rows
                self.tally.differing += _told(name, same).charge != told.charge


def _reference(error: Exception) -> str:
    """What the server's log has of an error; something that no line has if it is not there."""
    problem = error.problem if isinstance(error, ServerRefused) else {}
    return str(problem.get("reference", "\0"))


def _day(day: date) -> str:
    return day.isoformat()


def _told(name: str, result: Any) -> Acknowledged:
    came = result.provenance
    charge, answer = (came.charge.seq, came.charge.hash), (came.answer.seq, came.answer.hash)
    return Acknowledged(name, charge, answer, result.free)


@dataclass(frozen=True)
class Verdict:
    """What a trial found."""

    figures: dict[str, Any]
    faults: list[str]


def verdict(trial: Trial, address: str, budget: str) -> Verdict:
    """What the ledger has, beside what analysts were told."""
    tally, events = trial.tally, events_of(address)
    by_number = {event.seq: event for event in events}
    charges = [event for event in events if event.kind == "charge"]
    answered = {event.body["charge"] for event in events if event.kind == "answer"}
    told = {one.charge[0] for one in tally.acknowledged}
    largest = largest_sum(events, "stays", "zone", ZONES)
    faults = [f"failed: {text}" for text in tally.failed]
    faults += _lost(tally.acknowledged, by_number)
    if largest > int(budget):
        faults.append(f"overspent: {float(largest)} of {budget}")
    if tally.differing:
        faults.append(f"{tally.differing} repeated releases differ")
    keys = Counter(event.body["key"] for event in charges)
    faults += [f"key {key} is charged {n} times" for key, n in keys.items() if n > 1]
    twice = Counter((e.body["question"], e.body["analyst"]) for e in charges)
    faults += [f"{key} was charged {n} times" for key, n in twice.items() if n > 1]
    extra = [event.seq for event in charges if event.seq not in told]
    faults += [f"nobody was told of charge {seq}" for seq in extra]
    faults += [f"charge {e.seq} has no answer" for e in charges if e.seq not in answered]
    figures = {
        "answered": len(tally.acknowledged),
        "of these free": sum(one.free for one in tally.acknowledged),
        "refused": tally.refused,
        "sent twice": tally.repeated,
        "charges": len(charges),
        "charges that nobody was told of": len(extra),
        "charges without an answer": len([e for e in charges if e.seq not in answered]),
        "same question of an analyst charged twice": sum(n - 1 for n in twice.values()),
        "largest sum on a cell": float(largest),
        "budget": budget,
        "acknowledged and lost": len(_lost(tally.acknowledged, by_number)),
    }
    return Verdict(figures, faults)


def _lost(acknowledged: list[Acknowledged], events: dict[int, PlainEvent]) -> list[str]:
    """What analysts were told and the ledger does not have, or has otherwise."""
    lost = []
    for one in acknowledged:
        charge, answer = events.get(one.charge[0]), events.get(one.answer[0])
        if charge is None or charge.hash != one.charge[1] or charge.kind != "charge":
            lost.append(f"charge {one.charge[0]} of {one.analyst} is lost")
        elif answer is None or answer.hash != one.answer[1] or answer.kind != "answer":
            lost.append(f"answer {one.answer[0]} to {one.analyst} is lost")
        elif not (answer.body["charge"] == charge.seq < answer.seq):
            lost.append(f"answer {answer.seq} came before its charge")
    return lost


@contextlib.contextmanager
def trial(
    folder: Path, analysts: int, *, ledger: str | None = None, budget: str = BUDGET, **settings: Any
) -> Iterator[Trial]:
    """A server of a small project with as many tokens as there are analysts."""
    project = small_project(folder / "a study", ledger, budget=budget, prior=INDEPENDENT)
    names = [f"analyst {number}" for number in range(analysts)]
    tokens = {name: new_token(project, "analyst", name) for name in names}
    server = KilledServer(project, **settings)
    server.start()
    try:
        yield Trial(server, tokens)
    finally:
        server.stop()


def run(
    found: Trial,
    *,
    most: int | None = None,
    kills: int = 0,
    worker_kills: int = 0,
    cluster: postgres.Cluster | None = None,
    database_kills: int = 0,
    rng: "np.random.Generator",
    say: Any = lambda _: None,
) -> None:
    """Let everybody ask, and kill what is to be killed, one after another."""
    threads = [
        Thread(target=found.ask, args=(number, name, most), daemon=True)
        for number, name in enumerate(found.tokens)
    ]
    for thread in threads:
        thread.start()
    plan: list[str] = ["server"] * kills + ["worker"] * worker_kills + ["database"] * database_kills
    rng.shuffle(plan)
    for number, what in enumerate(plan):
        _progress(found, int(rng.integers(0, 4)))
        time.sleep(float(rng.uniform(0, 0.5)))
        struck = True
        if what == "server":
            struck = found.server.running
            found.server.kill()
        elif what == "worker":
            struck = False
            for worker in workers_of(found.server.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    struck = True
        elif cluster is not None:
            (cluster.stop if rng.uniform() < 0.5 else cluster.kill)()
            cluster.revive()
        found.killed += [what] * struck
        if number % 10 == 9:
            say(f"{number + 1} of {len(plan)} killed; {found.tally.done} answered or refused")
    if most is None:
        _progress(found, 50)
        found.stop.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "an analyst waits for ever"


def _progress(found: Trial, more: int, seconds: float = 120.0) -> None:
    """Wait until so many more were answered or refused."""
    wanted, until = found.tally.done + more, time.monotonic() + seconds
    while found.tally.done < wanted and len(found.tally.failed) < len(found.tokens):
        if time.monotonic() > until:
            raise AssertionError(f"nothing is answered any more: {found.server.log()[-3000:]}")
        time.sleep(0.02)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """The trial by hand."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.server.load")
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--kills", type=int, default=0, help="of the server")
    parser.add_argument("--worker-kills", type=int, default=0, help="of all workers at once")
    parser.add_argument("--releases", type=int, help="of each analyst; without kills")
    parser.add_argument("--wide", action="store_true", help="everybody asks about every row")
    parser.add_argument("--budget", default=BUDGET)
    parser.add_argument("--postgres", action="store_true", help="the ledger is in PostgreSQL")
    parser.add_argument("--database-kills", type=int, default=0, help="of PostgreSQL")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(postgres.cluster()) if options.postgres else None
        address = None if cluster is None else cluster.address()
        found = stack.enter_context(
            trial(folder, options.analysts, ledger=address, budget=options.budget)
        )
        found.wide = options.wide
        run(
            found,
            most=options.releases,
            kills=options.kills,
            worker_kills=options.worker_kills,
            cluster=cluster,
            database_kills=options.database_kills,
            rng=np.random.default_rng(options.seed),
            say=lambda text: _say(f"{time.monotonic() - began:6.0f} s: {text}"),
        )
        where = address or str(folder / "a study" / "takifugu.ledger")
        found.server.stop()
        told = verdict(found, where, options.budget)
    _say(f"{time.monotonic() - began:.0f} s; {options}")
    for name, value in told.figures.items():
        _say(f"{name}: {value}")
    for fault in told.faults[:20]:
        _say(f"FAULT {fault}")
    return 1 if told.faults else 0


if __name__ == "__main__":
    sys.exit(main())
