"""Kills while a backup is put back in the place of a ledger that is gone, the same, or newer.

Afterwards the ledger is absent or whole, putting it back again works, and a copy that lacks what
was acknowledged is never taken for the ledger: it is refused, or has the event that accepts it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from takifugu.errors import LedgerSetBack, TakifuguError
from takifugu.ledger import restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.oracles.ledger_sums import events_of
from torture.kills import accounts
from torture.kills.accounts import LOST, OTHER, Acknowledged, Fault
from torture.kills.jobs import Place, make, release, request
from torture.kills.storms import Outcome
from torture.kills.strikes import Job, Notes, Strike, alone, random_strike, storm

BUDGET = 1000
STATES = ("gone", "same", "newer")


def run_restored(place: Place, rng: np.random.Generator) -> Outcome:
    """Kill one process that puts a backup back."""
    done, known = Outcome(), Acknowledged()
    backup, file = place.folder / "copy", Path(place.address)
    state = str(rng.choice(STATES))
    known.take(alone(lambda _: make(place, BUDGET)))
    known.take(alone(_prepared(place, backup, rng, newer=state == "newer")))
    if state == "gone":
        file.unlink()
    strike = random_strike(rng, calls=25_000, kernel=700)
    if strike.kind == "delay":
        strike = Strike("delay", float(rng.uniform(0, 0.1)))
    for child in storm([("restore", _restoring(place, backup), strike)], 1):
        done.kills += child.killed
        done.moments["restore"] += child.killed
        for _, kind, point in child.said("struck"):
            done.points[f"{kind}: {point}" if kind == "syscall" else kind] += 1
        for _, *what in child.said("trouble"):
            done.faults.append(Fault(OTHER, f"{state}: {' · '.join(map(str, what))}"))
    if file.exists() and file.stat().st_size:
        done.faults += _still_told(state, place, known)
    elif state != "gone":
        done.faults.append(Fault(LOST, f"{state}: the ledger is gone"))
    again = alone(_restoring(place, backup))
    for _, *what in again.said("trouble"):
        done.faults.append(Fault(OTHER, f"{state}: not again: {' · '.join(map(str, what))}"))
    done.faults += _still_told(state, place, known)
    done.details[f"{state}: {'killed' if done.kills else 'put back before it was killed'}"] += 1
    done.acknowledged = known.charges
    return done


def _prepared(place: Place, backup: Path, rng: np.random.Generator, *, newer: bool) -> Job:
    def job(say: Notes) -> None:
        with place.open() as ledger:
            for number in range(int(rng.integers(1, 6))):
                release(ledger, request(rng, f"before {number}", place), place, rng, say)
            ledger.backup(backup)
            if newer:
                release(ledger, request(rng, "newer", place), place, rng, say)

    return job


def _restoring(place: Place, backup: Path) -> Job:
    def job(say: Notes) -> None:
        say("now", "restore")
        how: dict[str, Any] = {"witness": place.witness, "wait": 60, "lossy": True}
        terms = LossTerms({"ward": place.translation})
        restore_ledger(backup, place.address, terms=terms, **how)
        say("restored")

    return job


def _still_told(state: str, place: Place, known: Acknowledged) -> list[Fault]:
    """Whether what opens has all that was acknowledged, and what has not is refused."""
    tried = alone(lambda say: _used(place, say))
    known.take(tried)
    if tried.said("set back"):
        return [] if state == "newer" else [Fault(OTHER, f"{state}: refused as an older copy")]
    if tried.said("failed"):
        return [Fault(OTHER, f"{state}: {tried.said('failed')[0][1:]}")]
    found = accounts.faults(known, events_of(place.address), BUDGET)
    return [Fault(one.kind, f"{state}: {one.what}") for one in found]


def _used(place: Place, say: Notes) -> None:
    try:
        with place.open() as ledger:
            if not (report := ledger.verify()).sound:
                say("failed", "unsound", str(report.problems[0])[:500])
            if any(event.kind == "loss" for event in ledger.history()):
                say("set back", "accepted")
    except LedgerSetBack as error:
        say("set back", error.reason)
    except TakifuguError as error:
        say("failed", type(error).__name__, str(error)[:500])
