"""What a durable charge costs, whether it grows with the past, and whether anything is ever lost.

Rates depend on the disk, so each is set beside bare SQLite on the same disk, in turns. The last two
parts count: they print what was acknowledged, found and overspent.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Metric, Pure
from takifugu.ledger import Groups, Ledger, Window, open_ledger
from takifugu.ledger.account import Books
from takifugu.ledger.canonical_text import encode_json, sha256
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Store, insert, update
from takifugu.ledger.storage.schema import EVENTS, HEAD
from tests.ledger import postgres
from tests.ledger.charges import DOUBLING, charge

ROUNDS, CHARGES = 6, 150


def run() -> None:
    """All parts; about ten minutes on two busy cores, most of it the kills on PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # witnesses too, on the same disk
        rate(Path(folder))
        growth(Path(folder))
        for name, address in _backends(Path(folder)):
            together(name, address())
            kills(name, address(), 500)
            resumed(name, address(), 200)


# --- one charge ---


def rate(folder: Path) -> None:
    """Durable charges a second, in turns with a bare insert and update."""
    loss, window, groups = Pure("0.001"), Window(3, 9), Groups(["country"], [("fr",)])
    with (
        open_ledger(folder / "rate.ledger") as ledger,
        open_ledger(folder / "unseen.ledger", witness=False) as unseen,
        open_ledger(folder / "counted.ledger") as counted,
    ):
        ledger.set_budget("ward", 10**9)
        unseen.set_budget("ward", 10**9)
        counted.set_budget("ward", 10**9)
        labels = cycle(Membership([f"label {n}"]) for n in range(78))

        def count() -> Metric:
            return Metric(Cost.of({next(labels): "0.001"}))

        contestants = {
            "sqlite3": _raw(folder / "raw.db"),
            "everything": lambda: ledger.charge(charge(loss), DOUBLING),
            "without a witness": lambda: unseen.charge(charge(loss), DOUBLING),
            "everything, by an analyst": lambda: ledger.charge(
                charge(loss, analyst="ana"), DOUBLING
            ),
            "a window": lambda: ledger.charge(charge(loss, window), DOUBLING),
            "a window and a group": lambda: ledger.charge(charge(loss, window, groups), DOUBLING),
            "the same, by an analyst": lambda: ledger.charge(
                charge(loss, window, groups, analyst="ana"), DOUBLING
            ),
            "counts of 78 labels": lambda: counted.charge(charge(count()), DOUBLING),
            "the same in a window": lambda: counted.charge(charge(count(), window), DOUBLING),
        }
        print(f"{'charge':>26} {'a second':>9} {'ratio':>6} {'CPU ms':>7}")
        seconds, cpu = _in_turns(contestants, ROUNDS, CHARGES)
    for name in contestants:
        ratio = seconds["sqlite3"] / seconds[name]
        print(f"{name:>26} {1 / seconds[name]:>9.0f} {ratio:>6.2f} {1e3 * cpu[name]:>7.2f}")


def _in_turns(
    contestants: dict[str, Callable[[], object]], rounds: int, calls: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds, and CPU seconds, of a call."""
    wall: dict[str, list[float]] = {name: [] for name in contestants}
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        call()
    for _ in range(rounds):
        for name, call in contestants.items():
            start, busy = perf_counter(), process_time()
            for _ in range(calls):
                call()
            wall[name].append((perf_counter() - start) / calls)
            cpu[name].append((process_time() - busy) / calls)
    return (
        {name: median(found) for name, found in wall.items()},
        {name: median(found) for name, found in cpu.items()},
    )


def _raw(path: Path) -> Callable[[], object]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE total (spent REAL)")
    connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT)")
    connection.execute("INSERT INTO total VALUES (0)")

    def call() -> None:
        connection.execute("BEGIN IMMEDIATE")
        (spent,) = connection.execute("SELECT spent FROM total").fetchone()
        connection.execute("INSERT INTO event (body) VALUES (?)", ("x" * 700,))
        connection.execute("UPDATE total SET spent = ?", (spent + 1,))
        connection.execute("COMMIT")

    return call


# --- many charges before ---


def growth(folder: Path, sizes: tuple[int, ...] = (10**3, 10**6)) -> None:
    """The same charges on ledgers with a short and a long past."""
    print(f"{'events before':>14} {'everything':>11} {'window+group':>13} {'check':>8}")
    ledgers = {size: _filled(folder / f"{size}.ledger", size) for size in sizes}
    assert ledgers[sizes[0]].verify().sound
    kinds: dict[str, Callable[[Ledger], object]] = {
        "everything": lambda ledger: ledger.charge(charge("0.001"), DOUBLING),
        "cell": lambda ledger: ledger.charge(charge("0.001", (100, 101), ["g7"]), DOUBLING),
        "check": lambda ledger: ledger.remaining("ward", DOUBLING, window=Window(100, 101)),
    }
    calls: dict[str, Callable[[], object]] = {
        f"{size} {kind}": partial(act, ledger)
        for size, ledger in ledgers.items()
        for kind, act in kinds.items()
    }
    seconds, _ = _in_turns(calls, ROUNDS, CHARGES)
    for size in sizes:
        found = [1e3 * seconds[f"{size} {kind}"] for kind in kinds]
        print(f"{size:>14} {found[0]:>9.3f}ms {found[1]:>11.3f}ms {found[2]:>6.3f}ms")
    ratios = [seconds[f"{sizes[-1]} {kind}"] / seconds[f"{sizes[0]} {kind}"] for kind in kinds]
    print(f"{'ratio':>14} {ratios[0]:>11.2f} {ratios[1]:>13.2f} {ratios[2]:>8.2f}")
    for ledger in ledgers.values():
        ledger.close()


def _filled(path: Path, size: int) -> Ledger:
    """A ledger with ``size`` charges on 365 days and 20 groups, written in bulk.

    Losses are exact, so that a cell's charges can be added to the totals all at once.
    """
    ledger = open_ledger(path)
    ledger.set_budget("ward", 10**9)
    books = Books()
    for known in ledger.history():
        books.apply(known.body)
    cells = [(day, group) for group in range(20) for day in range(365)]
    asked = [charge("1/1000", (day, day + 1), [f"g{group}"]).body() for day, group in cells]
    for place, body in enumerate(asked):
        times = len(range(place, size, len(cells)))
        if times:
            loss = {"currency": "pure", "epsilon": f"{times}/1000"}
            books.apply({**body, "kind": "charge", "loss": loss})
    store = Store(path, read_only=False, wait=10)
    with store.writing() as connection:
        last = chain.head(connection)
        hash_ = last.hash
        for first in range(0, size, 5000):
            rows = []
            for number in range(first, min(size, first + 5000)):
                seq = last.seq + number + 1
                content = asked[number % len(cells)] | {"key": sha256(str(number))[:32]}
                body = {"v": 1, "seq": seq, "kind": "charge", "at": last.at, **content}
                words = encode_json(body)
                hash_ = chain.link(hash_, words)
                copies = {name: body.get(name) for name in chain.COPIED} | {"charge": seq}
                rows.append({"seq": seq, "hash": hash_, "body": words, **copies})
            insert(EVENTS, *rows[0]).run(connection, rows)
        moved = {"seq": last.seq + size, "hash": hash_}
        update(HEAD, *moved, where="id = 1").run(connection, moved)
        tables.rebuild(connection, books)
        connection.head = chain.Head(last.seq + size, hash_, last.at)
        chain.append(connection, "totals", {}, datetime.now(UTC))
    store.close()
    return ledger


# --- many processes ---


def _worker(*arguments: object) -> "subprocess.Popen[str]":
    import takifugu

    root = Path(takifugu.__file__).parents[2]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tests.ledger.worker", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )


def together(name: str, address: str, processes: int = 8, each: int = 1000) -> None:
    """Processes that want more than there is."""
    admitted = processes * each * 3 // 4
    with open_ledger(address) as ledger:
        ledger.set_budget("ward", 2)
        start = perf_counter()
        workers = [_worker("charge", address, f"1/{admitted}", each) for _ in range(processes)]
        said = [line for one in workers for line in one.communicate()[0].split()]
        seconds = perf_counter() - start
        keys = {line for line in said if line != "refused"}
        found = {e.body["key"] for e in ledger.history(kind="charge")}
        print(
            f"{name}: {processes} processes x {each}: {len(said)} calls in {seconds:.1f} s,"
            f" {len(keys)} of {admitted} acknowledged, {len(keys - found)} lost,"
            f" {max(0, len(found) - admitted)} overspent, sound: {ledger.verify().sound}"
        )


def kills(name: str, address: str, times: int) -> None:
    """Processes killed at random moments while they charge against a budget that runs out."""
    admitted = 20 * times
    with open_ledger(address) as ledger:
        ledger.set_budget("ward", 2)
        said = _worker("crash", address, f"1/{admitted}", times, 8, 7).communicate()[0].split()
        keys = set(said) - {"refused"}
        found = {e.body["key"] for e in ledger.history(kind="charge")}
        print(
            f"{name}: {times} kill -9: {len(keys)} acknowledged, {len(keys - found)} lost,"
            f" {len(found - keys)} written but not acknowledged, {said.count('refused')} refused,"
            f" {max(0, len(found) - admitted)} overspent, sound: {ledger.verify().sound}"
        )


def resumed(name: str, address: str, times: int, keys: int = 20) -> None:
    """Processes killed at random moments while they resume one another's charges."""
    with open_ledger(address) as ledger:
        ledger.set_budget("ward", 10**6)
        said = _worker("again", address, "1/256", times, 8, 7, keys).communicate()[0].splitlines()
        seen: dict[str, set[str]] = {}
        for key, value in (line.split() for line in said):
            seen.setdefault(key, set()).add(value)
        charged = [event.body["key"] for event in ledger.history(kind="charge")]
        answered = len(list(ledger.history(kind="answer")))
        print(
            f"{name}: {times} kill -9 of resumed charges: {len(said)} answers seen to {len(seen)}"
            f" keys, {sum(len(values) > 1 for values in seen.values())} keys with two,"
            f" {len(charged) - len(set(charged))} charged twice,"
            f" {len(set(seen) - set(charged))} uncharged, {len(charged) - answered} without an"
            f" answer, sound: {ledger.verify().sound}"
        )


def _backends(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Each backend with a way to get a fresh address."""
    files = iter(range(99))
    yield "SQLite", lambda: f"sqlite:///{folder}/{next(files)}.ledger"
    if needed := postgres.missing():
        print(f"PostgreSQL: not measured, {needed}")
        return
    with postgres.cluster() as running:
        yield "PostgreSQL", running.address
