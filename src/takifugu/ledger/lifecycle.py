"""Opening a ledger, putting back a copy, accepting that history is lost."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from takifugu._core.keys import state_folder
from takifugu.errors import LedgerConflict
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.events.replay import Report
from takifugu.ledger.ledger import Ledger
from takifugu.ledger.storage.database import LOCK_WAIT_SECONDS, Store
from takifugu.ledger.storage.migrations import begin_witness as record_witness
from takifugu.ledger.storage.migrations import prepare
from takifugu.ledger.witnesses import lost_history
from takifugu.ledger.witnesses.backup import put_back
from takifugu.ledger.witnesses.head_witness import DatabaseWitness, Guard, HeadWitness
from takifugu.ledger.witnesses.lost_history import Budgets, LossTerms
from takifugu.ledger.witnesses.state_folder import FileWitness, KnownRows, heads_folder
from takifugu.translation.protocol import LossTranslation


def current_actor() -> str:
    """The user that this process runs as: its name, or its number where it has none."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def _checked_actor(actor: str | None) -> str:
    who = current_actor() if actor is None else actor
    check_name(who, "actor")
    return who


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def _opened_by_owner(
    where: str | Path, witness: str | Path | bool, wait: float, now: datetime, actor: str
) -> Iterator[tuple[Store, Guard]]:
    """A ledger that may lack what its witness has seen, opened for the owner to decide on that."""
    with closing(Store(where, read_only=False, wait=wait)) as store:
        guard, _ = _prepared(store, witness, wait, now, actor, lenient=True, follow=False)
        yield store, guard


def _prepared(
    store: Store,
    witness: str | Path | bool,
    wait: float,
    now: datetime,
    actor: str,
    *,
    lenient: bool,
    create: bool = False,
    follow: bool = True,
) -> tuple[Guard, Anchor]:
    """What guards a ledger, and its first event, once it is up to date; closed if that fails."""
    noting: HeadWitness | None = None
    try:
        noting = open_witness(witness, wait)
        guard = Guard(noting, store.name, writes=not store.read_only, lenient=lenient)
        return guard, prepare(store, now, create=create, guard=guard, actor=actor, follow=follow)
    except BaseException:
        store.close()
        if noting is not None:
            noting.close()
        raise


def open_ledger(
    where: str | Path,
    *,
    create: bool = True,
    read_only: bool = False,
    wait: float = LOCK_WAIT_SECONDS,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
    witness: str | Path | bool = True,
    inspect: bool = False,
    key: str | Path | None = None,
) -> Ledger:
    """Open the ledger in a file, or at a sqlite:/// or postgresql:// address; make it if needed.

    Args:
        where: A path, ``sqlite:///PATH``, or an address that PostgreSQL's own programs read.
        create: Whether to make a ledger where there is none.
        read_only: Whether to refuse every attempt to write.
        wait: Seconds to wait while others hold the ledger locked.
        clock: The time that is written in events; their order never depends on it.
        actor: Who acts here: every event names them; the user of this process by default.
        key: The file with the key of its marks; by default beside the file of the ledger, and for
            a server in this user's state folder. It is made when it is first needed.
        witness: Where the last event is recorded a second time, so that an older copy is refused:
            a file, or the address of a database or a server. By default a file in the user's state
            folder ($XDG_STATE_HOME, or ~/.local/state), which then also knows the rows that this
            user's ledgers have charged, so that a second ledger for them is refused. False for
            nowhere: every event then says so, and an older copy that is put back renews the budget
            unnoticed.
        inspect: Whether to open an older copy all the same, read-only.
    """
    who = _checked_actor(actor)
    store = Store(where, read_only=read_only or inspect, wait=wait)
    make = create and not store.read_only
    now = clock().astimezone(UTC)
    _, origin = _prepared(store, witness, wait, now, who, lenient=inspect, create=make)
    place = None if key is None else Path(key)
    rows = KnownRows(state_folder() / "rows") if witness is True else None
    return Ledger(store, origin, clock=clock, actor=who, key=place, rows=rows)


def accept_loss(
    where: str | Path,
    *,
    translations: Mapping[str, LossTranslation] | None = None,
    budgets: Budgets | None = None,
    witness: str | Path | bool = True,
    wait: float = LOCK_WAIT_SECONDS,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    costs: bool = True,
) -> Event:
    """The owner accepts that the events between this copy and its witness are lost.

    They count as having spent all that the budgets of the copy admitted
    (`takifugu.ledger.witnesses.lost_history`): nothing more is released on these datasets until a
    budget is raised, and then what exceeds the earlier one. The copy that was newer is refused from
    then on.

    Args:
        where: The older copy, in its place.
        translations: For each dataset the translation that was in use in all of the part that is
            lost, as only the owner can know; without it ε of the budget itself is counted per
            entry, which is more, and with a translation that knows values unless ``costs`` is
            False.
        budgets: For each dataset whose budget was raised or first set in the part that is lost, the
            largest that it had: ε, or (ε, δ).
        witness: As for `open_ledger`.
        wait: As for `open_ledger`.
        clock: As for `open_ledger`.
        actor: Who decides it; the user of this process by default.
        columns: The protected columns that each dataset is about: where no translation is given,
            ε of the budget is counted for each of several.
        costs: Whether queries may have been charged by value in the part that is lost. A
            translation that knows values then admitted more per entry than its ε, and ε of the
            budget itself is counted. False if the owner knows that none was.
    """
    terms = LossTerms(translations or {}, budgets or {}, columns or {}, costs)
    who, now = _checked_actor(actor), clock().astimezone(UTC)
    with (
        _opened_by_owner(where, witness, wait, now, who) as (store, guard),
        store.writing() as connection,
    ):
        return lost_history.accept(connection, guard.recorded(), terms, who, now)


def begin_witness(
    where: str | Path,
    *,
    witness: str | Path | bool = True,
    wait: float = LOCK_WAIT_SECONDS,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
) -> Event:
    """The owner begins a new record of the head, where that of before is lost or left behind.

    Only the owner can know that the ledger is not an older copy; the event names them. For the
    arguments see `open_ledger`.

    Raises:
        LedgerConflict: There is a record.
    """
    who, now = _checked_actor(actor), clock().astimezone(UTC)
    with _opened_by_owner(where, witness, wait, now, who) as (store, guard):
        if guard.witness is None:
            raise LedgerConflict("no witness is named; name one", reason="witness")
        if guard.recorded() is not None:
            raise LedgerConflict(
                f"{guard.witness.name!r} has a record of this ledger; there is none to begin",
                reason="witness",
            )
        return record_witness(store, now, who)


def restore_ledger(
    backup: str | Path,
    where: str | Path,
    *,
    witness: str | Path | bool = True,
    wait: float = LOCK_WAIT_SECONDS,
    lossy: bool = False,
    terms: LossTerms | None = None,
    clock: Callable[[], datetime] = _now,
    actor: str | None = None,
) -> Report:
    """Put a backup in the place of a ledger, whole or not at all, while nobody has it open.

    A backup that lacks an event of the ledger, or one that the witness has seen, is refused. With
    ``lossy`` the owner accepts the loss as by `accept_loss`, under ``terms``, in the same step; the
    largest of the budgets and totals is counted that the backup and the ledger in its place show.
    The report is that of the backup, with the event that accepts the loss.
    """
    who = _checked_actor(actor)
    noting = open_witness(witness, wait)
    try:
        accepts = (terms or LossTerms(), who, clock().astimezone(UTC)) if lossy else None
        return put_back(Path(backup), where, noting, wait=wait, accepts=accepts)
    finally:
        if noting is not None:
            noting.close()


def open_witness(where: str | Path | bool, wait: float = LOCK_WAIT_SECONDS) -> HeadWitness | None:
    """What remembers heads: a file, a database or a server; True for the user's state folder."""
    if where is False:
        return None
    if where is True:
        return FileWitness(heads_folder(), folder=True, wait=wait)
    if isinstance(where, str) and where.lower().startswith(("http://", "https://")):
        from takifugu.ledger.witnesses.http_witness import HttpWitness

        return HttpWitness(where, wait=wait)
    if isinstance(where, str) and "://" in where:
        return DatabaseWitness(Store(where, read_only=False, wait=wait))
    return FileWitness(Path(where), folder=False, wait=wait)
