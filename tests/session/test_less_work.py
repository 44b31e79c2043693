"""What a plan and a release do not do twice: reads of the ledger, scans of files."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from takifugu.engines import open_engine
from takifugu.engines.backends.duckdb_backend import FileBackend
from takifugu.errors import NotAccepted
from takifugu.ledger.events import event_chain
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.ledger.storage.store import Store
from takifugu.priors import Secrets
from takifugu.translation.translation import Translation
from tests.raising import raises
from tests.session.world import CHAIN, accept, declaration, opened


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many transactions of each kind have begun."""
    begun = Counter[str]()
    for kind in ("reading", "writing"):
        monkeypatch.setattr(Store, kind, _counted(kind, getattr(Store, kind), begun))
    return begun


def _counted(
    kind: str, begin: Callable[[Store], AbstractContextManager[Connection]], begun: Counter[str]
) -> Callable[[Store], AbstractContextManager[Connection]]:
    def counted(store: Store) -> AbstractContextManager[Connection]:
        begun[kind] += 1
        return begin(store)

    return counted


def test_a_plan_reads_the_ledger_twice_and_so_does_a_release(
    tmp_path: Path, transactions: Counter[str]
) -> None:
    with opened(tmp_path) as (session, *_):
        session.plan.histogram(epsilon=0.5)  # the first also asks whether the data is known
        transactions.clear()
        plan = session.plan.histogram(epsilon=1)
        assert transactions == {"reading": 2}  # the state of the data, and all else
        session.release(plan, accept_noise=True)
        assert transactions == {"reading": 4, "writing": 2}  # a charge, then its answer


def test_terms_that_the_owner_replaces_later_stop_plans_and_releases(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        accept(ledger, Translation(CHAIN, Secrets(entries=(0,))))
        with raises(NotAccepted, changed=("secrets",)):
            session.plan.histogram(epsilon=1)
        with raises(NotAccepted, changed=("secrets",)):
            session.release(plan, accept_noise=True)
        assert list(ledger.history(kind="charge")) == []


def test_an_event_is_read_once_in_a_transaction_and_checked_again_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, statements = Statement.all, list[Any]()

    def counted(statement: Statement, connection: Connection, values: Any) -> list[Any]:
        statements.append(statement)
        return run(statement, connection, values)

    with opened(tmp_path) as (_, ledger, _):
        monkeypatch.setattr(Statement, "all", counted)
        for times in (1, 2):
            with ledger._store.unguarded() as connection:
                assert event_chain.one(connection, 2) is event_chain.one(connection, 2)
            assert len(statements) == times


def test_rows_and_lengths_of_files_are_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, scans = FileBackend.rows, list[str]()

    def counted(backend: FileBackend, text: str) -> list[tuple[Any, ...]]:
        scans.append(text)
        return rows(backend, text)

    monkeypatch.setattr(FileBackend, "rows", counted)
    with open_engine(declaration(tmp_path), threads=1) as engine:
        assert engine.count() == engine.count() == 6
        assert engine.lengths() == engine.lengths()
        assert len(scans) == 2
        monkeypatch.setattr(FileBackend, "may_change", True)
        assert engine.count() == engine.count() == 6
        assert len(scans) == 4
