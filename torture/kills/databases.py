"""Kills of PostgreSQL itself, while eight processes charge: the whole server, or one of its own.

The processes try again, as a service would: a charge that was acknowledged stays, one that failed
is made again under its key, and is paid once.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from takifugu.errors import LedgerUnavailable
from tests.ledger import postgres
from torture.kills.accounts import OTHER, Acknowledged, Fault
from torture.kills.jobs import Place, make
from torture.kills.patient import MOST, charging_on
from torture.kills.storms import AT_ONCE, Outcome, settle
from torture.kills.strikes import Job, Notes, Strike, alone, storm

BUDGET = 1000


def killing(server: postgres.Cluster, rng: np.random.Generator, times: int) -> Job:
    """Kill the server or one of its processes, so many times, and start it again."""

    def job(say: Notes) -> None:
        for _ in range(times):
            time.sleep(float(rng.uniform(0.1, 1.5)))
            how = str(rng.choice(["postmaster", "backend", "immediate"], p=[0.4, 0.4, 0.2]))
            if how == "backend":
                if not _kill_backend(server, rng):
                    say("nobody", how)
                    continue
            elif how == "postmaster":
                server.kill()
                server.revive()
            else:
                server.stop()
                server.revive()
            _await(server)
            say("server", how)

    return job


def _await(server: postgres.Cluster) -> None:
    """Wait until it takes connections: it may be recovering."""
    import psycopg

    for _ in range(MOST):
        with suppress(psycopg.OperationalError):
            psycopg.connect(server.url).close()
            return
        time.sleep(0.1)
    raise AssertionError("the server does not come back")


def _kill_backend(server: postgres.Cluster, rng: np.random.Generator) -> bool:
    """End one process that serves a client, as soon as there is one; whether there was one.

    The server then restarts all of them.
    """
    first = server.postmaster
    for _ in range(MOST):
        backends = [one for one in postgres.children(first) if b"[local]" in _command(one)]
        if backends:
            with suppress(ProcessLookupError):
                os.kill(int(rng.choice(backends)), signal.SIGKILL)
                return True
        time.sleep(0.05)
    return False


def _command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def run_server_kills(
    server: postgres.Cluster, folder: Path, rng: np.random.Generator, times: int
) -> Outcome:
    """Kill the server so many times while processes charge and are killed as well."""
    place, done, known = Place(server.address(), folder), Outcome(), Acknowledged()
    known.take(alone(lambda _: make(place, BUDGET)))
    ended = False

    def planned() -> Iterator[tuple[str, Job, Strike]]:
        yield "server", killing(server, rng, times), Strike("none")
        while not ended:
            own = np.random.default_rng(rng.integers(2**63))
            strike = Strike("delay", float(rng.uniform(0.2, 2.0)))
            yield (
                "client",
                charging_on(place, own, LedgerUnavailable, resume=bool(rng.random() < 0.5)),
                strike,
            )

    for child in storm(planned(), AT_ONCE):
        known.take(child)
        if child.name == "server":
            ended = True
            for _, how in child.said("server"):
                done.kills += 1
                done.details[f"PostgreSQL ended: {how}"] += 1
        elif child.killed:
            done.details["processes killed"] += 1
        elif not child.said("trouble"):
            done.faults.append(Fault(OTHER, "a client ended by itself"))
        done.details["calls that failed"] += len(child.said("failed"))
    if done.kills < times:
        done.faults.append(Fault(OTHER, f"the server was killed {done.kills} of {times} times"))
    done.faults += settle(place, known, BUDGET)
    done.acknowledged = known.charges
    return done
