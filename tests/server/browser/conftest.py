"""One browser, one server and its tokens for the tests of pages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.server.browser.browsing import make_tokens, opened_browser
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium; not for longer than a module: it holds the event loop of its thread."""
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a small project."""
    project = small_project(tmp_path_factory.mktemp("pages") / "a study")
    with running_server(project, rate=60_000, burst=5_000) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each role."""
    return make_tokens(server.project)
