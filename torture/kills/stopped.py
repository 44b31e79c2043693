"""A process that is stopped (SIGSTOP) while it holds a lock: others get a clear error in time.

It may go on (SIGCONT) or be killed. Either way what was acknowledged stays, and nobody is locked
out. Reading goes on all the while.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from takifugu.errors import LedgerUnavailable
from torture.kills.accounts import OTHER, STALE, Acknowledged, Fault
from torture.kills.jobs import DATASET, Place, make, release, request
from torture.kills.storms import Outcome, settle
from torture.kills.strikes import Child, Job, Notes, Strike, alone, finish, start

BUDGET = 1000
SHORT = 0.3  # seconds that others wait for the lock
LONG = 90.0  # seconds in which they must have given up, on a machine that does much else
POINTS = {  # functions of the ledger, and whether others are locked out while one is in it
    "enter_charge": True,
    "append": True,
    "advance": False,
    "_record": False,  # of the witness: others may have to wait for it, or not
    "store": True,  # an answer
    "verify": False,
}


def reached(place: Place) -> list[str]:
    """The points that a release on this ledger comes to; `_record` is of witnesses in a file."""
    kept_in_file = place.witness is True or "://" not in str(place.witness or "://")
    return [point for point in POINTS if kept_in_file or point != "_record"]


def stopping(place: Place, rng: np.random.Generator, point: str) -> Job:
    """Release and verify, but stop at the first call of a function."""

    def job(say: Notes) -> None:
        say("now", "open")
        with place.open() as ledger:
            sys.setprofile(_stop_at(point, say))
            wanted = request(rng, f"stopped {os.getpid()}", place)
            release(ledger, wanted, place, rng, say)
            ledger.verify()
        say("went on")

    return job


def _stop_at(point: str, say: Notes) -> Any:
    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == point and "/takifugu/ledger/" in code.co_filename:
            sys.setprofile(None)
            say("stopped", point)
            os.kill(os.getpid(), signal.SIGSTOP)

    return profile


def trying(place: Place, rng: np.random.Generator, name: str) -> Job:
    """Read, and charge with little patience."""

    def job(say: Notes) -> None:
        try:
            with place.open(wait=SHORT) as ledger:
                say("spent", str(ledger.spent(DATASET, place.translation)))
                release(ledger, request(rng, name, place), place, rng, say)
        except LedgerUnavailable as error:
            say("unavailable", error.reason, str(error))

    return job


def run_stopped(place: Place, rng: np.random.Generator, point: str = "") -> Outcome:
    """Stop one process at one point, let others try, and let it go on or die."""
    done, known = Outcome(), Acknowledged()
    known.take(alone(lambda _: make(place, BUDGET)))
    point = point or str(rng.choice(reached(place)))
    holder = start("holder", stopping(place, rng, point), Strike("none"))
    if not _await(holder, "stopped"):
        done.faults.append(Fault(OTHER, f"{point}: was never reached: {holder.notes[-3:]}"))
    for number in range(2):
        tried = alone(trying(place, rng, f"other {number}"), patience=LONG)
        known.take(tried)
        refused = tried.said("unavailable")
        done.details["others that were told to try again"] += len(refused)
        done.details["others that charged"] += len(tried.said("charged"))
        done.faults += [
            Fault(OTHER, f"{point}: others were told {reason}: {text}")
            for _, reason, text in refused
            if reason not in ("locked", "timeout") or "try again" not in text
        ]
        if POINTS[point] and tried.said("charged"):
            done.faults.append(Fault(OTHER, f"{point}: others charged beside who holds the lock"))
        if not refused and not tried.said("charged") and not tried.said("trouble"):
            done.faults.append(Fault(STALE, f"{point}: others neither charged nor were told"))
    goes_on = bool(rng.random() < 0.5)
    with suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGCONT if goes_on else signal.SIGKILL)
    finish(holder)
    known.take(holder)
    if goes_on and not holder.said("went on"):
        done.faults.append(Fault(OTHER, f"{point}: did not go on: {holder.notes[-1:]}"))
    done.kills += 1
    done.details[f"stopped in {point}, {'went on' if goes_on else 'killed'}"] += 1
    done.faults += settle(place, known, BUDGET)
    done.acknowledged = known.charges
    return done


def _await(child: Child, kind: str) -> bool:
    """Read until it has said something of a kind; false if it ended before."""
    until = time.monotonic() + LONG
    while not child.said(kind) and time.monotonic() < until:
        if not child.read():
            return False
    return bool(child.said(kind))
