"""What every part of an open ledger shares: its storage, its clock, its actor and its key."""

from collections.abc import Callable, Iterable
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from takifugu._closing import Closing
from takifugu.errors import LedgerUnwritable
from takifugu.keys import Key, beside, key_at, state_folder
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events.event_chain import Anchor, head
from takifugu.ledger.storage.store import Store
from takifugu.ledger.witnesses.known_rows import KnownRows


class OpenStore(Closing):
    """An open ledger, without what can be done with it; see `takifugu.ledger.ledger.Ledger`.

    Attributes:
        origin: The first event: the same for all copies of a ledger, and for no other ledger.
    """

    def __init__(
        self,
        store: Store,
        origin: Anchor,
        *,
        clock: Callable[[], datetime],
        actor: str,
        key: Path | None = None,
        rows: KnownRows | None = None,
    ) -> None:
        check_name(actor, "actor")
        self.origin = origin
        self._store, self._clock, self._actor = store, clock, actor
        self._key_place, self._rows = key, rows
        self._key: Key | None = None
        self._file = Path(store.name).absolute() if store.sqlite else None

    def acting(self, actor: str) -> Self:
        """The same open ledger, for another actor: events then name that one.

        Both share their storage, so closing one closes the other.
        """
        check_name(actor, "actor")
        other = copy(self)
        other._actor = actor
        return other

    @property
    def actor(self) -> str:
        """Who acts here: every event that is written names them."""
        return self._actor

    @property
    def name(self) -> str:
        """Where the ledger is kept, without any password."""
        return self._store.name

    @property
    def folder(self) -> Path | None:
        """The folder that the ledger lies in; None for one on a server."""
        return None if self._file is None else self._file.parent

    @property
    def witness(self) -> str | None:
        """Where the last event is recorded a second time; None if the owner chose nowhere."""
        guard = self._store.guard
        return None if guard is None or guard.witness is None else guard.witness.name

    def check_writable(self) -> None:
        """Raise unless a charge could be written now; nothing is.

        The chain is locked as for a charge and compared with its witness. A disk that is full is
        noticed only when something is written.
        """
        with self._store.writing() as connection:
            head(connection, lock=True)

    def close(self) -> None:
        """Release the storage."""
        self._store.close()

    def mark(self, *what: Any) -> str:
        """A keyed hash of ``what``: equal for equal contents, and of no use to guess them by."""
        if self._key is None:
            try:
                self._key = key_at(self._key_file())
            except OSError as error:
                reason = (error.strerror or "cannot be used").lower()
                raise LedgerUnwritable(
                    f"the key of ledger {self.name!r} cannot be used ({reason}:"
                    f" {error.filename}); nothing was released. Give this user the right, or name"
                    " another file with `key`",
                    reason="key",
                ) from None
        return self._key.mark(*what)

    def marks_elsewhere(self, identities: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
        """Marks of rows by which this user's other ledgers know them; none without that record."""
        return () if self._rows is None else self._rows.marks(identities)

    def _key_file(self) -> Path:
        if self._key_place is not None:
            return self._key_place
        if self._file is not None:
            return beside(self._file)
        place = state_folder() / "keys"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place / f"{self._store.identity}.key"

    def _time(self) -> datetime:
        return self._clock().astimezone(UTC)
