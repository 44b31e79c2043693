"""A complete copy of a ledger in one file, and putting one back.

Copying the file of a ledger that is in use may miss what is still in its write-ahead log. A backup
is taken by SQLite itself, in one transaction, checked event by event, and appears whole or not at
all. Putting one back never sets a ledger back unseen: a copy that lacks an event which the witness
has seen, or which the ledger in its place has, is refused unless the owner accepts the loss.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from takifugu._core.atomic import refuse_special
from takifugu.errors import (
    InvalidFile,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerSetBack,
    LedgerUnavailable,
)
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import replay
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.events.replay import Report
from takifugu.ledger.storage.database import (
    Connection,
    Store,
    failure_of,
    line_of,
    sqlite_connection,
)
from takifugu.ledger.storage.migrations import prepare
from takifugu.ledger.witnesses.head_witness import Guard, HeadWitness, holds, identity_in
from takifugu.ledger.witnesses.lost_history import LossTerms, ShownLosses, accept, counted
from takifugu.ledger.witnesses.state_folder import sync

Accepts = tuple[LossTerms, str, datetime]  # under which terms, who accepts a loss, and when


def _on_a_server(what: str) -> InvalidFile:
    return InvalidFile(
        what,
        given="is of a ledger on a PostgreSQL server",
        needed="be made and put back with pg_dump and pg_restore; `takifugu ledger export` writes"
        " the events",
        reason="server",
    )


def back_up(store: Store, path: Path) -> Report:
    """Write a complete, checked copy to a new file that only its owner may read."""
    if not store.sqlite:
        raise _on_a_server("backup")
    _check_new(path)
    with _part(path, "backup") as part:
        _copy(Path(store.name), part)
        report = _checked(part)
        _appear(part, path)
    return report


def put_back(
    source: Path,
    where: str | Path,
    witness: HeadWitness | None,
    *,
    wait: float,
    accepts: Accepts | None = None,
) -> Report:
    """Put a backup in the place of a ledger. ``accepts``: even if events are lost by it.

    The loss is counted in the copy before it takes the place: an owner who cannot accept it then
    still has the ledger as it was, and a kill leaves the one or the other.
    """
    target = Store(where, read_only=True, wait=wait)
    target.close()
    if not target.sqlite:
        raise _on_a_server("restore")
    if not source.is_file():
        raise InvalidFile(
            "backup", given=f"{source} is not a file", needed="be the file of a backup"
        )
    path = Path(target.name)
    if path.exists() and path.samefile(source):
        raise InvalidFile("backup", given="is the ledger itself", needed="be another file")
    with _part(path, "ledger") as part:
        _copy(source, part)
        report = _checked(part)
        whose, lost = _compare(part, witness, accepts)
        if path.exists() and path.stat().st_size:
            loss = _replace(part, path, whose, witness, wait, accepts)
        else:
            _refuse_logs(path)
            loss = None if lost is None or accepts is None else _accept(part, lost, *accepts)
            path.unlink(missing_ok=True)
            _appear(part, path)
        if loss is not None and witness is not None:  # the newer copy is refused from now on
            accepted = Anchor(**loss.body["lost"])
            witness.record(whose, Anchor(loss.seq, loss.hash), accepted)
    return replace(report, loss=loss)


def _accept(
    part: Path,
    lost: Anchor,
    terms: LossTerms,
    actor: str,
    now: datetime,
    overwritten: ShownLosses | None = None,
) -> Event:
    """Accept in the copy what it lacks; what cannot be counted is an error."""
    with _opened(part, read_only=False) as store, store.writing() as connection:
        return accept(connection, lost, terms, actor, now, overwritten)


def _check_new(path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidFile(
            "backup", given=f"is {path}", needed="lie in an existing folder", reason="folder"
        )
    if path.exists():
        raise InvalidFile("backup", given=f"{path} exists", needed="be a new file", reason="exists")


@contextlib.contextmanager
def _part(path: Path, what: str) -> Iterator[Path]:
    """An empty file beside ``path`` that only its owner may read; gone afterwards."""
    part = path.with_name(f".takifugu-{os.getpid()}-{uuid4().hex[:8]}.part")
    try:
        refuse_special(path)
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        os.fchmod(handle, 0o600)
        os.close(handle)
        yield part
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise InvalidFile(
            what, given=f"{path}: {reason}", needed="be writable", reason="unwritable"
        ) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _failed(error, path) from error
    finally:
        for name in (part, *(part.with_name(part.name + end) for end in ("-wal", "-shm"))):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)


def _failed(error: Exception, path: Path) -> LedgerError:
    failure = failure_of(str(path), error, outcome="nothing was changed")
    if failure.reason not in ("storage", "unreachable"):
        return failure
    return LedgerDamaged(
        f"{str(path)!r} cannot be read ({line_of(error)}); nothing was changed. Move a damaged"
        " ledger away before another is put in its place",
        reason="storage",
    )


def _connected(
    path: Path, mode: str, wait: float = 0.0
) -> "contextlib.closing[sqlite3.Connection]":
    return contextlib.closing(sqlite_connection(path, mode, wait))


def _copy(source: Path, part: Path) -> None:
    """A copy of what is committed, in one file without a log beside it."""
    try:
        with _connected(source, "ro", 10.0) as from_, _connected(part, "rw") as to:
            from_.backup(to)
            to.execute("PRAGMA journal_mode=DELETE")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _failed(error, source) from error
    sync(part)


@contextlib.contextmanager
def _opened(part: Path, *, read_only: bool = True) -> Iterator[Store]:
    with contextlib.closing(Store(part, read_only=read_only, wait=10.0)) as store:
        yield store
    if not read_only:
        with _connected(part, "rw") as raw:
            raw.execute("PRAGMA journal_mode=DELETE")


def _checked(part: Path) -> Report:
    """What a copy holds; refused unless all of it is sound. An older form is brought up to date."""
    with _opened(part, read_only=False) as aged:
        unseen = Guard(None, aged.name, writes=True, lenient=True)
        prepare(aged, datetime.now(UTC), create=False, guard=unseen)
    with _opened(part) as store, store.reading() as connection:
        report = replay.verify(connection, None, sqlite=True)
    if not report.sound:
        raise LedgerDamaged(
            f"the copy is not sound: {report.problems[0]}; nothing was changed",
            reason="unsound copy",
        )
    return report


def _compare(
    part: Path, witness: HeadWitness | None, accepts: Accepts | None
) -> tuple[str, Anchor | None]:
    """The identity of the ledger of a copy, and what the witness has seen that it lacks.

    Raises unless the owner accepts that, and it can be counted: nothing is touched before.
    """
    with _opened(part) as store, store.reading() as connection:
        whose = identity_in(chain.one(connection, 1))
        recorded = None if witness is None else witness.read(whose)
        if recorded is None or holds(connection, recorded):
            return whose, None
        if accepts is None:
            raise _older(f"its witness has seen event {recorded.seq}", recorded.seq)
        counted(connection, recorded, accepts[0])
    return whose, recorded


def _older(why: str, event: int) -> LedgerSetBack:
    return LedgerSetBack(
        f"the backup is older than the ledger: {why}, which it lacks; nothing was changed. Restore"
        " a newer one; if there is none, the owner may accept the loss (`takifugu ledger restore"
        " FILE --accept-loss`), which counts the budget as spent",
        reason="older",
        event=event,
    )


def _refuse_logs(path: Path) -> None:
    """Raise if the log of a ledger that is gone lies beside: it would be read into the copy."""
    for log in (path.with_name(path.name + end) for end in ("-wal", "-journal")):
        if log.exists() and log.stat().st_size:
            raise LedgerConflict(
                f"{str(log)!r} is the log of a ledger that is not there any more; nothing was"
                " changed. Put that ledger back beside it, or move the log away",
                reason="log",
            )


def _replace(
    part: Path,
    path: Path,
    whose: str,
    witness: HeadWitness | None,
    wait: float,
    accepts: Accepts | None,
) -> Event | None:
    """Write the copy over the ledger, in one transaction, while nobody else has it open.

    What the copy lacks is recorded as seen, whatever has become of the witness: it has to be
    accepted. It is recorded first, so that nothing is overwritten if that fails, and so that at
    every moment in between, a kill included, the file in place is refused or holds all that was
    ever recorded.

    Returns:
        The event in the copy that accepts what it lacks; None if it lacks nothing.
    """
    with _connected(path, "rw", wait) as to:
        to.execute("PRAGMA locking_mode=EXCLUSIVE")  # kept until this connection ends
        to.execute("PRAGMA journal_mode=DELETE")
        to.execute("BEGIN EXCLUSIVE")
        try:
            ((body,),) = to.execute("SELECT body FROM takifugu_events WHERE seq = 1").fetchall()
            ((seq, hash_),) = to.execute("SELECT seq, hash FROM takifugu_head").fetchall()
            known, ends = json.loads(body)["ledger"], Anchor(seq, hash_)
            recorded = None if witness is None else witness.read(whose)
            seen = recorded is None or _has(to, recorded)
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerDamaged(
                f"{str(path)!r} cannot be read; nothing was changed. Move it away first",
                reason="storage",
            ) from error
        finally:
            to.execute("COMMIT")
        if known != whose:
            raise LedgerConflict(
                f"the backup is not of {str(path)!r} but of another ledger; nothing was changed",
                reason="another ledger",
            )
        with _opened(part) as store, store.reading() as connection:
            lacking = not holds(connection, ends)
            lost = None if recorded is None or holds(connection, recorded) else recorded
            shown = accepts and ShownLosses.read(Connection(to, sqlite=True), connection)
        if lacking and accepts is None:
            raise _older(f"the ledger ends at event {seq}", seq)
        if lacking and witness is None:
            raise LedgerSetBack(
                f"the backup lacks event {seq} of the ledger, and without a witness nothing would"
                " count the loss; nothing was changed. Name a witness",
                reason="no witness",
                event=seq,
            )
        if lacking and seen:
            lost = ends
        elif lacking and recorded is not None and lost is None:
            lost = _both(ends, recorded)
        loss = None if lost is None or accepts is None else _accept(part, lost, *accepts, shown)
        if lost is not None and lost != recorded and witness is not None:
            _record(witness, whose, lost, recorded)
        with _connected(part, "ro") as from_:
            from_.backup(to)
    return loss


def _record(witness: HeadWitness, whose: str, event: Anchor, recorded: Anchor | None) -> None:
    """Record what is about to be lost; refuse to lose it if others have recorded something."""
    if witness.record(whose, event, recorded) != event:
        raise LedgerUnavailable(
            "a copy of the ledger is in use elsewhere: it has just recorded an event in the"
            f" witness {witness.name!r}; nothing was changed. Close it, then try again",
            reason="in use",
        )


def _both(ends: Anchor, recorded: Anchor) -> Anchor:
    """What is recorded where the ledger in place is another history than the witness has seen.

    The copy has what was ``recorded`` and the ledger has not: if the end of the one were recorded,
    the other could take its place unseen. No history has an event with a hash of both, so that each
    of them is refused until its owner accepts that the other is lost.
    """
    return Anchor(max(ends.seq, recorded.seq + 1), chain.link(ends.hash, recorded.hash))


def _has(raw: sqlite3.Connection, recorded: Anchor) -> bool:
    row = raw.execute("SELECT hash FROM takifugu_events WHERE seq = ?", (recorded.seq,)).fetchone()
    return row is not None and row[0] == recorded.hash


def _appear(part: Path, path: Path, link: Callable[[Path, Path], None] = os.link) -> None:
    """Give the copy its name, unless somebody else has taken it since."""
    try:
        link(part, path)
    except FileExistsError:
        _check_new(path)
        raise
    except OSError:  # a disk without links
        _check_new(path)
        os.replace(part, path)
    sync(path.parent)
