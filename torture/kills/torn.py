"""A torn last page: files of a ledger whose end was not written, or was written as something else.

A ledger is left as a killed process leaves it, and its files are then damaged as a power cut, a
failing disk or an incomplete copy would. What was synced before it was acknowledged cannot tear in
a power cut on a disk that keeps its word; here it does all the same. Either every acknowledged
charge is there, or the ledger is refused with an error of its own, or `verify` tells; and no charge
is admitted on totals that are too small. Never are there silently fewer. Where SQLite finds all
that was there, the ledger must open and be sound; where it finds all but what nobody was told of,
it must too, unless its witness knows more.
"""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from takifugu.errors import LedgerError, LedgerUnavailable
from takifugu.ledger import Ledger
from tests.oracles.ledger_sums import PlainEvent, events_of
from torture.kills import accounts
from torture.kills.accounts import LOST, OTHER, OVERSPENT, Acknowledged, Fault
from torture.kills.jobs import DATASET, Place, make, release, releasing, reopening, request
from torture.kills.storms import Outcome
from torture.kills.strikes import Notes, Strike, alone, storm

PAGE, FRAME, HEADER = 4096, 4096 + 24, 100
BUDGET = 1000
Tear = Callable[[Path, Path, np.random.Generator], str]


def cut_log(_: Path, log: Path, rng: np.random.Generator) -> str:
    """The log ends too early."""
    size = log.stat().st_size
    least = 0 if rng.random() < 0.3 else max(0, size - 3 * FRAME)
    with log.open("r+b") as file:
        file.truncate(int(rng.integers(least, max(size, 1))))
    return "log cut"


def garble_log(_: Path, log: Path, rng: np.random.Generator) -> str:
    """The last sectors of the log hold something else."""
    return "log garbled" if _garble(log, rng) else "nothing"


def drop_log(_: Path, log: Path, __: np.random.Generator) -> str:
    """The log is not there, as in a copy of the file alone."""
    log.unlink()
    return "log dropped"


def cut_file(file: Path, _: Path, rng: np.random.Generator) -> str:
    """The file ends too early."""
    size = file.stat().st_size
    with file.open("r+b") as content:
        content.truncate(int(rng.integers(max(0, size - 3 * PAGE), max(size, 1))))
    return "file cut"


def garble_file(file: Path, _: Path, rng: np.random.Generator) -> str:
    """The last sectors of the file hold something else."""
    return "file garbled" if _garble(file, rng) else "nothing"


def _garble(file: Path, rng: np.random.Generator) -> bool:
    size, length = file.stat().st_size, int(rng.choice([1, 512, PAGE, 2 * PAGE]))
    if not size:
        return False
    place = max(0, size - length) if rng.random() < 0.6 else int(rng.integers(0, size))
    with file.open("r+b") as content:
        content.seek(place)
        length = min(length, size - place)
        content.write(bytes(length) if rng.random() < 0.5 else rng.bytes(length))
    return True


def stale_page(file: Path, _: Path, rng: np.random.Generator) -> str:
    """One page is as it was a while ago: a write that the disk has lost."""
    older = file.with_name("older").read_bytes()
    now = file.read_bytes()
    changed = [
        place
        for place in range(0, min(len(older), len(now)), PAGE)
        if older[place : place + PAGE] != now[place : place + PAGE]
    ]
    if not changed:
        return "nothing"
    place = int(rng.choice(changed))
    with file.open("r+b") as content:
        content.seek(place)
        content.write(older[place : place + PAGE])
    return "page set back"


def leave(_: Path, __: Path, ___: np.random.Generator) -> str:
    """As the killed processes left it: then nothing may be refused."""
    return "nothing"


LOGGED: tuple[Tear, ...] = (cut_log, garble_log, drop_log, leave)
WRITTEN: tuple[Tear, ...] = (cut_file, garble_file, stale_page, leave)


@dataclass(frozen=True)
class Remains:
    """What SQLite finds in the files of a ledger, and its own check finds no fault with.

    Attributes:
        header: The first bytes of the file, which say what it is.
        rows: Every table, as statements.
        events: The events.
    """

    header: bytes
    rows: tuple[str, ...]
    events: tuple[PlainEvent, ...]


def remains(place: Place) -> Remains | None:
    """What is in a copy of the files, by plain SQL; None if SQLite cannot read all of it."""
    with TemporaryDirectory(dir=place.folder) as folder:
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{place.address}{end}", Path(folder) / f"copy{end}")
        copy = Path(folder) / "copy"
        header = copy.read_bytes()[:HEADER]
        try:
            with closing(sqlite3.connect(copy)) as raw:
                if raw.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                    return None
                rows = tuple(raw.iterdump())
            return Remains(header, rows, tuple(events_of(str(copy))))
        except (sqlite3.Error, ValueError, TypeError):  # also text that is none any more
            return None


def run_torn(place: Place, rng: np.random.Generator, kinds: Sequence[Tear] = ()) -> Outcome:
    """Leave a ledger as killed processes do, tear its files, and look what becomes of it.

    ``kinds`` are the tears to choose from, of a log if something is in it; by default any.
    """
    done, known = Outcome(), Acknowledged()
    file, log = Path(place.address), Path(f"{place.address}-wal")
    known.take(alone(lambda _: make(place, BUDGET)))
    _charge_a_while(place, known, done, rng)
    alone(lambda _: place.open().close())  # what is in the log goes to the file
    file.with_name("older").write_bytes(file.read_bytes())
    _charge_a_while(place, known, done, rng)
    in_log = log.exists() and log.stat().st_size > 0 and (bool(kinds) or rng.random() < 0.6)
    if not in_log:
        alone(lambda _: place.open().close())
    whole = events_of(place.address)
    done.faults += accounts.faults(known, whole, BUDGET)
    choice = (kinds or LOGGED) if in_log else tuple(k for k in kinds if k in WRITTEN) or WRITTEN
    tear = choice[int(rng.integers(len(choice)))]
    before, settled = remains(place), file.read_bytes() == file.with_name("older").read_bytes()
    what = tear(file, log, rng)
    done.kills += what != "nothing"
    Path(f"{place.address}-shm").unlink(missing_ok=True)
    refusals = _refusals(known, before, remains(place), only_log=in_log and settled)
    after = alone(lambda say: _use(place, say))
    done.faults += _judged(what, place, whole, known, after.notes)
    if refusals is not None:
        done.faults += _needlessly(what, refusals, after.notes)
        done.details["tears that took nothing acknowledged"] += 1
    ends = [note[0] for note in after.notes if note[0] in ("refused by", "unsound", "sound")]
    done.details[f"{what}: {ends[-1] if ends else 'trouble'}"] += 1
    done.acknowledged = known.charges
    return done


def _charge_a_while(
    place: Place, known: Acknowledged, done: Outcome, rng: np.random.Generator
) -> None:
    kinds = (releasing, releasing, reopening)
    strikes = [Strike("delay", float(rng.uniform(0, 0.03)), first=True) for _ in kinds]
    jobs = [
        (kind.__name__, kind(place, np.random.default_rng(rng.integers(2**63))), strike)
        for kind, strike in zip(kinds, strikes, strict=True)
    ]
    for child in storm(jobs, int(rng.integers(1, 3))):
        known.take(child)
        done.details["processes killed"] += child.killed


def _use(place: Place, say: Notes) -> None:
    """Open it, read, charge, verify: whatever is refused must be refused by an error of its own.

    Nobody holds it locked, and it is in its place: to try again is no advice.
    """
    rng = np.random.default_rng(1)
    try:
        with place.open(wait=5) as ledger:
            say("opened", ledger.head().seq)
            release(ledger, request(rng, "after the tear", place), place, rng, say)
            _say_worst(ledger, say)
            problems = ledger.verify().problems
            say("unsound" if problems else "sound", *(str(one)[:500] for one in problems[:2]))
    except LedgerUnavailable:
        raise
    except LedgerError as error:
        say("refused by", type(error).__name__, str(error)[:500])
        with suppress(LedgerError), place.open(wait=5) as ledger:
            _say_worst(ledger, say)  # a charge that was admitted before has not read too little


def _say_worst(ledger: Ledger, say: Notes) -> None:
    for position in ledger.positions():
        if position.dataset == DATASET and position.analyst is None:
            say("worst", str(max(one.epsilon for one in position.worst)))


def _refusals(
    known: Acknowledged, before: Remains | None, after: Remains | None, *, only_log: bool
) -> set[str] | None:
    """The refusals that would be right although nothing acknowledged was torn; None if any is.

    With ``only_log`` the file is as it was when its log was empty: what SQLite finds is then what
    one of the transactions has left. A witness may know what nobody else was told.
    """
    if before is None or after is None:
        return None
    if before == after:
        return set()
    kept = after.events == before.events[: len(after.events)]
    if only_log and kept and not accounts.faults(known, after.events, BUDGET):
        return {"LedgerSetBack"}
    return None


def _needlessly(what: str, refusals: set[str], notes: list[list[object]]) -> list[Fault]:
    """A ledger that has lost nothing, and that cannot be used."""
    said = {str(note[0]): note[1:] for note in notes}
    if "sound" in said and "charged" in said:
        return []
    refused = said.get("refused by", [""])
    if refused[0] in refusals:
        return []
    text = " · ".join(map(str, said.get("unsound", refused)))
    return [Fault(OTHER, f"{what}: nothing acknowledged was torn, and it is of no use: {text}")]


def _judged(
    what: str,
    place: Place,
    whole: list[PlainEvent],
    known: Acknowledged,
    notes: list[list[object]],
) -> list[Fault]:
    said = {str(note[0]): note[1:] for note in notes}
    if "trouble" in said:
        text = " · ".join(map(str, said["trouble"]))
        return [Fault(OTHER, f"{what}: an error that says nothing of it: {text}")]
    found = []
    if "charged" in said and "worst" in said:
        worst = Fraction(str(said["worst"][0]))
        before = accounts.sums(whole)[DATASET]
        if worst < before and _acknowledged_sum(whole, known) > worst:
            found.append(Fault(OVERSPENT, f"{what}: charged on {worst}, and {before} was spent"))
    if "sound" in said:
        try:
            events = _events(place)
        except sqlite3.Error as error:
            return [*found, Fault(OTHER, f"{what}: sound, and cannot be read: {error}")]
        found += [
            Fault(fault.kind, f"{what}: silently: {fault.what}")
            for fault in accounts.faults(known, events, BUDGET)
        ]
    elif not {"unsound", "refused by"} & set(said):
        found.append(Fault(LOST, f"{what}: neither refused nor verified"))
    return found


def _acknowledged_sum(whole: list[PlainEvent], known: Acknowledged) -> Fraction:
    """The largest sum of what was acknowledged alone."""
    told = [e for e in whole if e.kind != "charge" or e.body["key"] in known.charged]
    return accounts.sums(told)[DATASET]


def _events(place: Place) -> list[PlainEvent]:
    with closing(sqlite3.connect(place.address)) as raw:
        raw.execute("PRAGMA quick_check").fetchall()
    return events_of(place.address)
