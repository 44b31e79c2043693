"""A witness in a database of its own: one row for each ledger."""

from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.schema import WITNESSES, create_table
from takifugu.ledger.storage.statement import Statement, insert, update
from takifugu.ledger.storage.store import Store

_NOTED = f"SELECT seq, hash FROM {WITNESSES} WHERE ledger = :whose"
_READ, _LOCKED = Statement(_NOTED), Statement(_NOTED, lock=True)
_BEGIN = insert(WITNESSES, "ledger", "seq", "hash")
_MOVE = update(WITNESSES, "seq", "hash", where="ledger = :whose")


class DatabaseWitness:
    """A row for each ledger in a database of its own."""

    def __init__(self, store: Store) -> None:
        self._store, self.name, self._ready = store, store.name, False

    def read(self, ledger: str) -> Anchor | None:
        """The event that was recorded last."""
        self._make()
        with self._store.reading() as connection:
            row = _READ.one(connection, {"whose": ledger})
        return None if row is None else Anchor(row.seq, row.hash)

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since."""
        self._make()
        with self._store.writing() as connection:
            row = _LOCKED.one(connection, {"whose": ledger})
            now = None if row is None else Anchor(row.seq, row.hash)
            if now == event or now != seen:
                return now
            if now is None:
                _BEGIN.run(connection, {"ledger": ledger, "seq": event.seq, "hash": event.hash})
            else:
                _MOVE.run(connection, {"whose": ledger, "seq": event.seq, "hash": event.hash})
        return event

    def close(self) -> None:
        """Release the connections."""
        self._store.close()

    def _make(self) -> None:
        if not self._ready:
            with self._store.writing() as connection:
                self._store.only_one(connection)
                create_table(connection, WITNESSES, if_needed=True)
            self._ready = True
