"""Kills of ``takifugu serve`` and of its workers, while analysts ask over HTTP."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np

from torture.kills.accounts import LOST, OTHER, OVERSPENT, TWICE, Fault
from torture.kills.storms import Outcome
from torture.kills.strikes import Child, Notes, alone

ANALYSTS = 6
LONG = 1800.0  # seconds for a trial
WHAT = {"server": "servers killed", "worker": "all workers killed"}
WORDS = {"lost": LOST, "overspent": OVERSPENT, "times": TWICE}  # of the faults that are told


def run_serving(
    folder: Path, rng: np.random.Generator, kills: int, ledger: str | None = None
) -> Outcome:
    """Kill the server, or all of its workers, so many times; everybody tries again."""
    seed, workers = int(rng.integers(2**31)), int(rng.integers(0, kills + 1))
    child = alone(
        lambda say: _serve(folder, ledger, kills - workers, workers, seed, say), patience=LONG
    )
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)  # whatever it has left
    done = outcome_of(child)
    ended = kills - workers - done.details["servers killed"]
    if ended and not done.faults:
        done.faults.append(Fault(OTHER, f"{ended} times a server had ended by itself"))
    return done


def outcome_of(child: Child) -> Outcome:
    """What the process that served has told: also how often it killed something that ran."""
    done = Outcome()
    for _, what in child.said("killed"):
        done.kills += 1
        done.details[WHAT[what]] += 1
    for _, text in child.said("fault"):
        kind = next((kind for word, kind in WORDS.items() if word in text), OTHER)
        done.faults.append(Fault(kind, text))
    for _, *what in child.said("trouble"):
        done.faults.append(Fault(OTHER, " · ".join(map(str, what))))
    for _, figures in child.said("figures"):
        told = json.loads(figures)
        done.acknowledged = told["charges"]
        names = ("answered", "refused", "sent twice")
        done.details.update({f"requests {name}": told[name] for name in names})
    return done


def _serve(
    folder: Path, ledger: str | None, servers: int, workers: int, seed: int, say: Notes
) -> None:
    from tests.server import load

    os.setsid()
    with load.trial(folder, ANALYSTS, ledger=ledger) as found:
        try:
            load.run(found, kills=servers, worker_kills=workers, rng=np.random.default_rng(seed))
        finally:
            for what in found.killed:
                say("killed", what)
    address = ledger or str(folder / "a study" / "takifugu.ledger")
    told = load.verdict(found, address, load.BUDGET)
    for fault in told.faults[:10]:
        say("fault", fault[:1500])
    say("figures", json.dumps(told.figures))
