"""The state of a server on both backends."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from takifugu.server.state.server_state import ServerState, state_at
from tests.contracts.server_state import Clock, Opener
from tests.ledger import postgres
from tests.ledger.conftest import folder, server

__all__ = ["folder", "server"]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def place(request: pytest.FixtureRequest, folder: Path) -> str:
    """Where a state is to be."""
    if request.param == "sqlite":
        return str(folder / "takifugu.server")
    cluster: postgres.Cluster = request.getfixturevalue("server")
    return cluster.address()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def another(place: str, clock: Clock) -> Iterator[Opener]:
    """Opens the state once more."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(state_at(place, clock=clock))


@pytest.fixture
def state(another: Opener) -> ServerState:
    return another()
