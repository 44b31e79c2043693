"""A ledger that cannot take a charge: a clear error, and nothing protected is read or told."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged, LedgerError, LedgerUnavailable, LedgerUnwritable
from takifugu.ledger import open_ledger
from takifugu.session import Session
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.folders import example_folder
from tests.session.world import opened

NOBODY = 65534


@contextmanager
def full(path: Path) -> Iterator[None]:
    """No page more than there are, and those full of charges on something else."""
    raw = sqlite3.connect

    def connect(*given: Any, **how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = raw(*given, **how)
        connection.execute("PRAGMA max_page_count=1")  # as many as there are
        return connection

    with pytest.MonkeyPatch.context() as patch:
        with open_ledger(path) as ledger:
            ledger.set_budget("ward", 10**9)
        patch.setattr(sqlite3, "connect", connect)
        with open_ledger(path) as ledger, suppress(LedgerUnwritable):
            while True:
                ledger.charge(charge("0.001"), DOUBLING)
        yield


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    user = os.geteuid()
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        path.parent.chmod(0o755)
        path.chmod(0o644)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


@contextmanager
def corrupted(path: Path) -> Iterator[None]:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE takifugu_accounts SET always = 'x'")
    connection.close()
    yield


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (full, LedgerUnwritable),
        (read_only, (LedgerUnwritable, LedgerUnavailable)),
        (locked, LedgerUnavailable),
        (corrupted, LedgerDamaged),
    ],
)
def test_a_charge_that_fails_is_no_release(
    trouble: Callable[[Path], Any],
    error: type[LedgerError] | tuple[type[LedgerError], ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with example_folder() as folder, opened(Path(folder)) as (session, ledger, engine):
        plan, before, path = (session.plan.histogram(epsilon=1), session.spent(), Path(ledger.name))
        read: list[str] = []
        rows = engine._backend.rows

        def watched(sql: str) -> list[tuple[Any, ...]]:
            read.append(sql)
            return rows(sql)

        def release() -> None:
            with open_ledger(path, wait=0.1) as broken:
                Session(engine, session._open.prior, ledger=broken, dataset="visits").release(
                    plan, accept_noise=True
                )

        monkeypatch.setattr(engine._backend, "rows", watched)
        ledger.close()  # SQLite would lend the next connection a handle that may still write
        with trouble(path), pytest.raises(error) as told:
            release()
        assert "\n" not in str(told.value)
        assert not any('"state"' in sql for sql in read)
        if error is LedgerDamaged:
            ledger.rebuild()
        assert session.spent() == before and not list(ledger.history("visits", kind="charge"))
        session.release(plan, accept_noise=True)
        assert any('"state"' in sql for sql in read)
