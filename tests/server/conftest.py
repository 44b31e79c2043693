"""Ledgers of both kinds for tests with the real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger import postgres
from tests.server.attacked import Attacked, attacked
from tests.server.projects import small_project


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server."""
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a small project whose ledger is in SQLite, and then in PostgreSQL."""
    if request.param == "sqlite":
        return small_project(tmp_path / "a study")
    running: postgres.Cluster = request.getfixturevalue("cluster")
    return small_project(tmp_path / "a study", ledger=running.address())


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The file of a small project with a ledger in SQLite."""
    return small_project(tmp_path / "a study")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A server that is attacked, and still well afterwards."""
    with attacked(tmp_path_factory.mktemp("attacked"), request_bytes=20_000) as made:
        yield made
        assert made.server.get("/healthz").status == 200  # whatever was done to it
        log = made.server.log_text()
        assert not any(secret in log for secret in made.tokens.values())
        assert not any(secret[3:] in log for secret in made.tokens.values())
