"""The way through the pages on a ledger in PostgreSQL: ask, release, approve, download, verify."""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from takifugu.project.project import open_project
from tests.ledger import postgres
from tests.server.browser.browsing import PATIENCE, Seat, make_tokens, seated
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)
RULE = '\n[dataset.stays.approval]\nabove = "0.5"\n'


@pytest.fixture(scope="module")
def server(
    cluster: postgres.Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server whose ledger, tokens and requests are in PostgreSQL."""
    project = small_project(tmp_path_factory.mktemp("pages") / "a study", ledger=cluster.address())
    with project.open("a", encoding="utf-8") as file:
        file.write(RULE)
    with running_server(project, rate=60_000, burst=5_000) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each role."""
    return make_tokens(server.project)


def plan(seat: Seat, epsilon: str, verb: str) -> None:
    """Plan a histogram by zone, and send it once its price is there."""
    page = seat.page
    seat.open("/datasets/stays/ask")
    page.get_by_label("zone", exact=True).first.check()
    page.get_by_label("Pufferfish ε").fill(epsilon)
    button = page.get_by_role("button", name=re.compile(f"^{verb}"))
    expect(button).to_be_enabled()
    expect(page.locator("#said")).to_contain_text("useful")
    button.click()


def downloaded(seat: Seat, name: str) -> bytes:
    """A file behind a link of the page."""
    with seat.page.expect_download(timeout=5 * PATIENCE) as downloading:
        seat.page.get_by_role("link", name=re.compile(f"^{name}")).first.click()
    content: bytes = downloading.value.path().read_bytes()
    return content


@pytest.mark.nightly
def test_from_signing_in_to_the_last_download(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with (
        seated(browser, server, tokens["analyst"]) as ana,
        seated(browser, server, tokens["owner"]) as olga,
        seated(browser, server, tokens["auditor"]) as aude,
    ):
        expect(ana.page.get_by_role("heading", name="Datasets")).to_be_visible()
        plan(ana, "0.3", "Release:")
        ana.page.wait_for_url(re.compile(r"/releases/\d+$"))
        expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Histogram of state")
        assert len(json.loads(downloaded(ana, "JSON"))["rows"]) == 9
        plan(ana, "0.8", "Ask for approval")
        expect(ana.page.get_by_text("Your release waits for an owner.")).to_be_visible()
        olga.open("/approvals")
        olga.page.get_by_label("Note").fill("agreed with the ward")
        olga.page.get_by_role("button", name=re.compile("^Approve and release")).click()
        expect(olga.page.get_by_text("Approved: it is being released")).to_be_visible()
        row = ana.page.get_by_role("row", name=re.compile("agreed with the ward"))
        for _ in range(120):  # released by a job of the server
            ana.open("/approvals")
            if "released" in row.inner_text():
                break
            ana.page.wait_for_timeout(500)
        row.get_by_role("link").click()
        expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Histogram of state")
        assert downloaded(ana, "CSV").startswith(b"zone,state,estimate,low,high")
        aude.open("/ledger")
        aude.page.get_by_role("button", name="Verify the ledger").click()
        expect(aude.page.get_by_text("The ledger is sound.")).to_be_visible()
        lines = downloaded(aude, "Export").decode().splitlines()
        aude.open("/reports")
        assert b"takifugu-ledger" in downloaded(aude, "HTML")
    with open_project(server.project).ledger(read_only=True) as ledger:
        assert len(lines) == ledger.head().seq
        charges = ledger.events(kind="charge", limit=100)
        assert [one.body["actor"] for one in charges] == ["ana", "ana"]
        assert [one.body["actor"] for one in ledger.events(kind="approval", limit=9)] == ["olga"]
