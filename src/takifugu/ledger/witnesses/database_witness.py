"""A witness in a database of its own: one row for each ledger."""

from sqlalchemy import bindparam, insert, select, update

from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.schema import WITNESSES
from takifugu.ledger.storage.statement import Statement
from takifugu.ledger.storage.store import Store

_OF = WITNESSES.c.ledger == bindparam("whose")
_NOTED = Statement(select(WITNESSES.c.seq, WITNESSES.c.hash).where(_OF).with_for_update())
_BEGIN = Statement(insert(WITNESSES), "ledger", "seq", "hash")
_MOVE = Statement(update(WITNESSES).where(_OF), "seq", "hash")


class DatabaseWitness:
    """A row for each ledger in a database of its own."""

    def __init__(self, store: Store) -> None:
        self._store, self.name, self._ready = store, store.name, False

    def read(self, ledger: str) -> Anchor | None:
        """The event that was recorded last."""
        self._make()
        with self._store.reading() as connection:
            row = connection.execute(select(WITNESSES).where(WITNESSES.c.ledger == ledger)).first()
        return None if row is None else Anchor(row.seq, row.hash)

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since."""
        self._make()
        with self._store.writing() as connection:
            row = _NOTED.one(connection, {"whose": ledger})
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
                WITNESSES.create(connection, checkfirst=True)
            self._ready = True
