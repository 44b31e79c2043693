"""Kills while a ledger is made, or one of an earlier version is brought up to date.

Afterwards it is as it was, or up to date, and nothing in between; opened again it is up to date,
has every event that it had, and counts what they add up to.
"""

import itertools
import json
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.ledger import LostWitness
from takifugu.ledger.storage.migrations import KNOWN
from tests.ledger.charges import CELLS, DOUBLING, charge
from tests.oracles.ledger_sums import PlainEvent, largest_sum
from torture.kills.accounts import LOST, OTHER, OVERSPENT, STALE, Fault, written
from torture.kills.jobs import DATASET, Place, acknowledge
from torture.kills.storms import Outcome
from torture.kills.strikes import Job, Notes, Strike, alone, random_strike, storm

DUMPS = Path(__file__).parents[2] / "tests" / "ledger"
VERSIONS = ("nothing", "before_digests", "before_cells", "before_costs")
AT_ONCE = 3  # processes that find it old at the same time, at most
NAMES = [migration.name for migration in KNOWN]


@dataclass(frozen=True)
class Found:
    """What a ledger's tables hold, by plain SQL: None of each where there are none."""

    steps: tuple[str, ...]
    events: tuple[tuple[int, str, str], ...]
    tables: frozenset[str]


def put_old(place: Place, version: str) -> None:
    """An old ledger in its place."""
    if version == "nothing":
        return
    text = (DUMPS / f"{version}.sql").read_text(encoding="utf-8")
    if place.sqlite:
        with closing(sqlite3.connect(place.address)) as raw:
            raw.executescript(text)
        return
    import psycopg

    with psycopg.connect(place.address, autocommit=True) as connection:
        connection.execute(_for_postgresql(text).encode())


def _for_postgresql(text: str) -> str:
    """The same tables in the words of the other database."""
    text = text.replace("WITHOUT ROWID", "").replace("BEGIN TRANSACTION", "BEGIN")
    text = re.sub(r"\bX'([0-9A-Fa-f]*)'", r"'\\x\1'", text)
    text = re.sub(r"(?<=\t)seq INTEGER", "seq BIGINT", text)
    return re.sub(r"\bBLOB\b", "BYTEA", text)


def found_in(place: Place) -> Found:
    """What is there, without a word of the ledger's own code."""
    if place.sqlite:
        path = Path(place.address)
        if not path.exists():
            return Found((), (), frozenset())
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as raw:  # recovers
            names = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"
            return _read(lambda text: raw.execute(text).fetchall(), names)
    import psycopg

    with psycopg.connect(place.address) as connection:
        names = (
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'i') AND relname NOT LIKE '%_pkey'"
        )
        return _read(lambda text: connection.execute(text).fetchall(), names)


def _read(query: Any, names: str) -> Found:
    tables = frozenset(name for (name,) in query(names))
    if "takifugu_migrations" not in tables:
        return Found((), (), tables)
    steps = tuple(name for (name,) in query("SELECT name FROM takifugu_migrations ORDER BY place"))
    events = query("SELECT seq, hash, body FROM takifugu_events ORDER BY seq")
    return Found(steps, tuple(tuple(row) for row in events), tables)


def opening(place: Place) -> Job:
    """Open it, which brings it up to date, and close it."""

    def job(say: Notes) -> None:
        say("now", "migration")
        with place.open(create=True) as ledger:
            say("opened", ledger.head().seq)
        say("now", "idle")

    return job


def run_migrations(places: Iterator[Place], rng: np.random.Generator, kills: int) -> Outcome:
    """Kill so many processes that migrate."""
    done = Outcome()
    while done.kills < kills:
        version = str(rng.choice(VERSIONS))
        done.add(_trial(next(places), version, rng))
    return done


def places(folder: Path, address: Callable[[Path], str]) -> Iterator[Place]:
    """Places for one ledger after another, each in a folder of its own."""
    for number in itertools.count():
        own = folder / f"migrated {number}"
        own.mkdir()
        yield Place(address(own), own, str(own / "heads"))


def _trial(place: Place, version: str, rng: np.random.Generator) -> Outcome:
    put_old(place, version)
    before, done = found_in(place), Outcome()
    strikes = [_strike(place, rng) for _ in range(int(rng.integers(1, AT_ONCE + 1)))]
    opened = 0
    for child in storm([("migrate", opening(place), one) for one in strikes], AT_ONCE):
        done.kills += child.killed
        if child.killed:
            done.moments[child.moment] += 1
            for _, kind, point in child.said("struck"):
                done.points[f"{kind}: {point}" if kind == "syscall" else kind] += 1
        opened += len(child.said("opened"))
        for _, *what in child.said("trouble"):
            kind = STALE if what[0] in ("LedgerUnavailable", "Hang") else OTHER
            done.faults.append(Fault(kind, f"{version}: {' · '.join(map(str, what))}"))
    between = found_in(place)
    done.faults += _compared(version, before, between, opened=bool(opened))
    done.details["migrated" if len(between.steps) == len(NAMES) else "not begun"] += 1
    after = alone(lambda say: _used(place, say))
    done.faults += [
        Fault(STALE, f"{version}: cannot be used afterwards: {' · '.join(map(str, what))}")
        for _, *what in after.said("trouble")
    ]
    done.acknowledged += len(after.said("charged"))
    finally_ = found_in(place)
    done.faults += _compared(version, before, finally_, opened=True)
    done.faults += _counted(version, finally_, after.said("spent"), after.said("charged"))
    return done


def _strike(place: Place, rng: np.random.Generator) -> Strike:
    """A moment before it is done: about as many calls and as long as that takes."""
    strike = random_strike(rng, calls=5000 if place.sqlite else 15_000, kernel=300)
    if strike.kind == "delay":
        return Strike("delay", float(rng.uniform(0, 0.03 if place.sqlite else 0.2)))
    return strike


def _compared(version: str, before: Found, now: Found, *, opened: bool) -> list[Fault]:
    """Whether it is as it was, or up to date with every event that it had."""
    if now.events[: len(before.events)] != before.events:
        return [Fault(LOST, f"{version}: events were lost or changed")]
    if list(now.steps) == NAMES:
        return []
    if opened:
        return [Fault(LOST, f"{version}: opened, and it is not up to date")]
    same = (now.steps, now.events, now.tables) == (before.steps, before.events, before.tables)
    return [] if same else [Fault(OTHER, f"{version}: between two versions: {now.steps[-1:]}")]


def _used(place: Place, say: Notes) -> None:
    """Open it, twice; verify it; charge."""
    warnings.simplefilter("ignore", LostWitness)
    place.open(create=True).close()
    with place.open() as ledger:
        report = ledger.verify()
        for problem in report.problems[:3]:
            say("trouble", "Unsound", "", str(problem)[:1000], "")
        if report.events == 1:
            ledger.set_budget(DATASET, 2)
        else:
            ledger.accept_cells(DATASET, CELLS, unchanged=True)
        analyst = "ana" if any(one.analyst for one in ledger.positions()) else None
        wanted = charge("1/64", (3, 4), ["fr"], analyst=analyst)
        receipt = ledger.charge(wanted, DOUBLING)
        acknowledge(receipt, wanted, say)
        for one in ledger.positions():
            if (one.dataset, one.analyst) == (DATASET, None):
                say("spent", str(max(total.epsilon for total in one.worst)))


def _counted(
    version: str, now: Found, told: list[list[Any]], charged: list[list[Any]]
) -> list[Fault]:
    """Whether the ledger counts what its events add up to, and has what was charged."""
    bodies = [(seq, hash_, json.loads(body)) for seq, hash_, body in now.events]
    events = [PlainEvent(seq, hash_, body["kind"], body) for seq, hash_, body in bodies]
    largest = largest_sum(events, DATASET, "country", ("de", "fr", "it"))
    wrong = [spent for _, spent in told if spent != str(largest)]
    found = [Fault(OVERSPENT, f"{version}: counts {one}, events say {largest}") for one in wrong]
    paid = {event.hash: written(event) for event in events if event.kind == "charge"}
    for _, _, _, hash_, *asked in charged:
        if paid.get(hash_) != asked:
            found.append(Fault(OVERSPENT, f"{version}: {asked} asked, {paid.get(hash_)} paid"))
    return found
