"""Ledgers on both backends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from takifugu.ledger import Ledger, open_ledger
from tests.ledger import postgres
from tests.ledger.folders import in_memory


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Cluster]:
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: what is tested is not how fast a disk is."""
    with in_memory() as made:
        yield made


@pytest.fixture(autouse=True)
def _state_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Witnesses there as well."""
    with in_memory() as made:
        monkeypatch.setenv("XDG_STATE_HOME", str(made))
        yield


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder}/ward.ledger"
    cluster: postgres.Cluster = request.getfixturevalue("server")
    return cluster.address()


@pytest.fixture
def opened() -> Iterator[Callable[..., Ledger]]:
    """Opens a ledger that is closed after the test."""
    with ExitStack() as stack:

        def enter(where: str | Path, **options: Any) -> Ledger:
            return stack.enter_context(open_ledger(where, **options))

        yield enter


@pytest.fixture
def ledger(url: str, opened: Callable[..., Ledger]) -> Ledger:
    """A ledger with a budget of 2 for the dataset "ward"."""
    ledger = opened(url)
    ledger.set_budget("ward", 2)
    return ledger
