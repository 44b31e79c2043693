"""The scenarios of this part: what each does in one trial, and how much of the time it gets."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.ledger import postgres
from torture.kills import clocks, databases, disks, migrating, restoring, serving, stopped, torn
from torture.kills.jobs import Place
from torture.kills.storms import Outcome, folder_for, run_storm, sqlite_place

ROUND = 200  # kills on one ledger


class NotHere(Exception):
    """A scenario cannot be run on this machine; its text says why."""


@dataclass(frozen=True)
class Setting:
    """What a trial gets.

    Attributes:
        rng: Its own random numbers.
        size: How many kills, or whatever is counted.
        keep: Where to copy a ledger that something was wrong with; None for nowhere.
    """

    rng: np.random.Generator
    size: int
    keep: Path | None = None

    def kept(self, folder: Path, outcome: Outcome) -> Outcome:
        """Keep the ledger if something was wrong with it."""
        if outcome.faults and self.keep is not None:
            shutil.copytree(folder, self.keep, dirs_exist_ok=True)
        return outcome


Trial = Callable[[Setting], Outcome]


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        name: As the report counts it.
        trial: Does it once.
        share: Of the time.
        size: Of a trial.
        most: Things that are enough.
    """

    name: str
    trial: Trial
    share: float
    size: int = 1
    most: int = 10_000


def sqlite_storm(given: Setting) -> Outcome:
    """Eight processes on a ledger in a file, and some that migrate old ones."""
    few = given.size // 10
    with folder_for(given.rng) as folder:
        place = sqlite_place(folder, given.rng)
        outcome = run_storm(place, given.rng, given.size - few)
        old = migrating.places(folder, lambda own: str(own / "old.ledger"))
        outcome.add(migrating.run_migrations(old, given.rng, few))
        return given.kept(folder, outcome)


@contextmanager
def server() -> Iterator[postgres.Cluster]:
    """A server of PostgreSQL of our own, in memory: it syncs every file after each crash."""
    if (needed := postgres.missing()) is not None:
        raise NotHere(needed)
    memory = Path("/dev/shm")  # noqa: S108
    with postgres.cluster(str(memory) if memory.is_dir() else "/tmp") as running:  # noqa: S108
        yield running


def postgresql_storm(given: Setting) -> Outcome:
    """The same on a server of PostgreSQL: processes that ask it are killed."""
    few = given.size // 10
    with server() as running, folder_for(given.rng) as folder:
        place = Place(running.address(), folder)
        outcome = run_storm(place, given.rng, given.size - few)
        old = migrating.places(folder, lambda _: running.address())
        outcome.add(migrating.run_migrations(old, given.rng, few))
        return given.kept(folder, outcome)


def server_kills(given: Setting) -> Outcome:
    """The server of PostgreSQL and its processes, while others charge."""
    with server() as running, folder_for(given.rng) as folder:
        found = databases.run_server_kills(running, folder, given.rng, given.size)
        return given.kept(folder, found)


def stopped_holders(given: Setting) -> Outcome:
    """Processes that are stopped while they hold a lock, on a file and on a server."""
    outcome = Outcome()
    with ExitStack() as stack:
        folder = stack.enter_context(folder_for(given.rng))
        running = None
        if postgres.missing() is None:
            running = stack.enter_context(server())
        for number in range(given.size):
            own = folder / str(number)
            own.mkdir()
            place = sqlite_place(own, given.rng)
            if running is not None and number % 2:
                place = Place(running.address(), own)
            outcome.add(stopped.run_stopped(place, given.rng))
        return given.kept(folder, outcome)


def torn_files(given: Setting) -> Outcome:
    """Files whose end is missing, or is something else; some are left as they are."""
    outcome, numbers = Outcome(), itertools.count()
    with folder_for(given.rng) as folder:
        while outcome.kills < given.size:
            own = folder / str(next(numbers))
            own.mkdir()
            witness = str(given.rng.choice(["", f"{own}/heads", f"sqlite:///{own}/heads.db"]))
            place = Place(str(own / "ward.ledger"), own, witness or True)
            outcome.add(torn.run_torn(place, given.rng))
        return given.kept(folder, outcome)


def full_disks(given: Setting) -> Outcome:
    """A disk that is full again and again, and files that may not grow."""
    with folder_for(given.rng) as folder:
        own = folder / "limited"
        own.mkdir()
        outcome = disks.run_limited(Place(str(own / "ward.ledger"), own), given.rng)
        try:
            outcome.add(disks.run_disk(folder, given.rng, given.size, read_only=False))
        except disks.NoDisk as reason:
            if not outcome.faults:
                raise NotHere(f"{reason}; files that may not grow were tried") from None
        return given.kept(folder, outcome)


def read_only_disks(given: Setting) -> Outcome:
    """A disk that becomes read-only in between."""
    with folder_for(given.rng) as folder:
        try:
            outcome = disks.run_disk(folder, given.rng, given.size, read_only=True)
        except disks.NoDisk as reason:
            raise NotHere(str(reason)) from None
        return given.kept(folder, outcome)


def jumping_clocks(given: Setting) -> Outcome:
    """Eight processes whose clocks jump, and that are killed."""
    with folder_for(given.rng) as folder:
        place = replace(sqlite_place(folder, given.rng), opener=clocks.jumping)
        return given.kept(folder, run_storm(place, given.rng, given.size))


def served(given: Setting) -> Outcome:
    """A real server and its workers; its ledger in a file, or in PostgreSQL where there is one."""
    with ExitStack() as stack:
        folder = stack.enter_context(folder_for(given.rng))
        address = None
        if postgres.missing() is None and given.rng.random() < 0.4:
            address = stack.enter_context(server()).address()
        outcome = serving.run_serving(folder, given.rng, given.size, address)
        return given.kept(folder, outcome)


def restored_copies(given: Setting) -> Outcome:
    """Backups that are put back, by processes that are killed."""
    outcome = Outcome()
    with folder_for(given.rng) as folder:
        for number in range(given.size):
            own = folder / str(number)
            own.mkdir()
            place = Place(str(own / "ward.ledger"), own, str(own / "heads"))
            outcome.add(restoring.run_restored(place, given.rng))
        return given.kept(folder, outcome)


SCENARIOS = (
    Scenario("kills (SQLite)", sqlite_storm, 30, ROUND),
    Scenario("kills (PostgreSQL)", postgresql_storm, 45, 2 * ROUND),
    Scenario("kills of PostgreSQL itself", server_kills, 6, 8, most=300),
    Scenario("server kills", served, 8, 6, most=200),
    Scenario("kills with jumping clocks", jumping_clocks, 3, 60, most=2000),
    Scenario("kills while a backup is put back", restored_copies, 3, 20, most=2000),
    Scenario("lock holders stopped", stopped_holders, 3, 12, most=300),
    Scenario("torn files", torn_files, 5, 20, most=2000),
    Scenario("disks filled", full_disks, 3, 12, most=500),
    Scenario("disks made read-only", read_only_disks, 3, 12, most=500),
)
