"""What takes long, in a browser: progress, cancelling, plans that are superseded, waiting pages."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.server.browser.browsing import PATIENCE, Seat, make_tokens, seated
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)


def at_once(route: Any) -> None:
    """Let a request be answered with a job, however fast it is."""
    route.continue_(headers={**route.request.headers, "prefer": "wait=0"})


def watch(seat: Seat) -> list[str]:
    """The requests that a page sends to the API."""
    sent: list[str] = []
    seat.page.on(
        "request",
        lambda one: sent.append(f"{one.method} {one.url.partition('/api/v1')[2]}"),
    )
    return sent


def test_a_plan_and_a_release_that_become_jobs_are_followed(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page, sent = seat.page, watch(seat)
        page.route(re.compile("/(plans|releases)$"), at_once)
        seat.open("/datasets/stays/ask")
        page.get_by_label("Pufferfish ε").fill("0.35")
        button = page.get_by_role("button", name=re.compile("^Release:"))
        expect(button).to_be_enabled()
        button.click()
        page.wait_for_url(re.compile(r"/releases/\d+$"))
        followed = [one for one in sent if one.endswith("/events")]
        assert len(followed) >= 2 and all(one.startswith("GET /jobs/") for one in followed)


@pytest.mark.nightly
def test_a_plan_is_cancelled_by_its_button_and_when_it_is_superseded(
    browser: "Browser", tmp_path: "Path"
) -> None:
    project = small_project(tmp_path / "a study")
    with running_server(project, workers=1) as server:
        token = make_tokens(server.project)["analyst"]
        with seated(browser, server, token) as seat:
            page, sent = seat.page, watch(seat)
            page.route(re.compile("/plans$"), at_once)
            page.route(re.compile("/events$"), lambda _: None)  # no progress comes: it is slow
            seat.open("/datasets/stays/ask")
            with page.expect_request(re.compile("/events$")):
                page.get_by_label("Pufferfish ε").fill("0.3")
            expect(page.get_by_role("button", name="Cancel")).to_be_visible()
            with (
                page.expect_request(re.compile("/events$")),
                page.expect_request(lambda one: one.method == "DELETE") as first,
            ):
                page.get_by_label("Pufferfish ε").fill("0.31")
            with page.expect_request(lambda one: one.method == "DELETE") as second:
                page.get_by_role("button", name="Cancel").click()
            expect(page.locator("#said")).to_have_text("Cancelled.")
            assert first.value.url != second.value.url
            assert first.value.headers["x-csrf-token"]
            assert sum(one.endswith("/plans") for one in sent) == 2


@pytest.mark.nightly
def test_a_page_that_waits_for_a_dataset_asks_again_by_itself(
    browser: "Browser", tmp_path: "Path"
) -> None:
    project = small_project(tmp_path / "a study")
    with running_server(project, wait=0.1) as server:
        token = make_tokens(server.project)["analyst"]
        with seated(browser, server, token) as seat:
            seat.open("/datasets/stays")
            expect(seat.page.get_by_role("heading", name="What is guaranteed")).to_be_visible()


@pytest.mark.nightly
def test_what_is_typed_is_planned_once_typing_pauses(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page, sent = seat.page, watch(seat)
        seat.open("/datasets/stays/ask")
        page.get_by_label("Pufferfish ε").press_sequentially("0.123456", delay=20)
        expect(page.locator("#cost")).to_have_text(re.compile("ε = 0.123"))
        assert sum(one.endswith("/plans") for one in sent) == 1
