"""One server for the tests of a module, and PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.client.listening import Listening, listening
from tests.ledger import postgres
from tests.server.projects import small_project


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """The app of a small project with its workers."""
    folder = tmp_path_factory.mktemp("served") / "a study"
    with listening(small_project(folder, budget="100")) as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server."""
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as running:
        yield running
