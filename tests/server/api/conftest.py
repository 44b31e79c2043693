"""One server for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.server.api.serving import Served, served
from tests.server.projects import small_project


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app of a small project with its workers."""
    with served(small_project(tmp_path_factory.mktemp("served") / "canary-folder")) as running:
        yield running
