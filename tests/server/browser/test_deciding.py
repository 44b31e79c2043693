"""Owners and auditors in a browser: budgets, tokens, approvals, the ledger, reports."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from takifugu.project.project import open_project
from tests.server.browser.browsing import PATIENCE, Seat, charges, make_tokens, seated
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)
RULE = '\n[dataset.stays.approval]\nabove = "0.5"\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a project where a release above ε = 0.5 needs an owner."""
    project = small_project(tmp_path_factory.mktemp("pages") / "a study")
    with project.open("a", encoding="utf-8") as file:
        file.write(RULE)
    with running_server(project, rate=60_000, burst=5_000) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each role."""
    return make_tokens(server.project)


def ask_for(seat: Seat, epsilon: str) -> None:
    """Plan a histogram whose release waits, and ask for it."""
    page = seat.page
    seat.open("/datasets/stays/ask")
    page.get_by_label("Pufferfish ε").fill(epsilon)
    button = page.get_by_role("button", name=re.compile("^Ask for approval"))
    expect(button).to_be_enabled()
    expect(page.get_by_text("It waits for an owner.")).to_be_visible()
    button.click()
    page.wait_for_url(re.compile("/approvals"))


def test_two_people_release_and_one_refuses(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with (
        seated(browser, server, tokens["analyst"]) as ana,
        seated(browser, server, tokens["owner"]) as olga,
    ):
        before = charges(server)
        ask_for(ana, "0.8")
        expect(ana.page.get_by_text("Your release waits for an owner.")).to_be_visible()
        expect(ana.page.get_by_text("pending", exact=True)).to_be_visible()
        assert ana.page.get_by_role("button", name=re.compile("Approve")).count() == 0
        assert charges(server) == before
        olga.open("/approvals")
        card = olga.page.get_by_role("region", name=re.compile("histogram of state"))
        expect(card).to_contain_text("ana")
        expect(card).to_contain_text("useful")
        card.get_by_label("Note").fill("agreed with the ward")
        card.get_by_role("button", name=re.compile("^Approve and release")).click()
        expect(olga.page.get_by_text("Approved: it is being released")).to_be_visible()
        row = ana.page.get_by_role("row", name=re.compile("agreed with the ward"))
        for _ in range(60):  # released by a job of the server
            ana.open("/approvals")
            if "released" in row.inner_text():
                break
            ana.page.wait_for_timeout(500)
        row.get_by_role("link").click()
        expect(ana.page.get_by_role("heading", level=1)).to_contain_text("Histogram of state")
        assert charges(server) == before + 1
        ask_for(ana, "0.9")
        olga.open("/approvals")
        olga.page.get_by_role("button", name=re.compile("^Refuse")).click()
        expect(olga.page.get_by_text("Refused: nothing was charged.")).to_be_visible()
        ana.open("/approvals")
        expect(ana.page.get_by_text("refused", exact=True)).to_be_visible()
        expect(ana.page.get_by_text("Nothing waits.")).to_be_visible()
        assert charges(server) == before + 1
        ask_for(ana, "0.95")
        olga.open("/")
        expect(olga.page.get_by_role("link", name="Approvals 1 waiting")).to_be_visible()
        ana.page.get_by_role("button", name=re.compile("^Withdraw")).click()
        expect(ana.page.get_by_text("Withdrawn: nothing was charged.")).to_be_visible()
        olga.open("/")
        expect(olga.page.get_by_role("link", name="Approvals", exact=True)).to_be_visible()
        assert charges(server) == before + 1


def test_a_token_is_made_shown_once_used_and_revoked(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["owner"]) as olga:
        page = olga.page
        olga.open("/tokens")
        page.get_by_label("Name").fill("zoe")
        page.get_by_label(re.compile("^auditor")).check()
        page.get_by_role("button", name="Make the token").click()
        secret = page.locator("#secret").inner_text()
        assert secret.startswith("tf_")
        olga.open("/tokens")
        assert secret not in page.content()
        with seated(browser, server, secret) as zoe:
            expect(zoe.page.locator(".who")).to_contain_text("zoe, auditor")
            page.get_by_role("button", name=re.compile("Revoke the token of zoe")).click()
            expect(page.get_by_text("The token is revoked.")).to_be_visible()
            zoe.open("/ledger")
            expect(zoe.page.get_by_role("heading", name="Sign in")).to_be_visible()
        with open_project(server.project).ledger(read_only=True) as ledger:
            made = [event.body for event in ledger.events(kind="access", limit=100)]
        assert [one["actor"] for one in made if one["name"] == "zoe"] == ["olga", "olga"]


def test_a_wrong_token_or_budget_is_refused_in_the_page(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["owner"]) as olga:
        olga.expected |= {409, 422}
        page = olga.page
        olga.open("/tokens")
        page.get_by_label("Name").fill("yan")
        page.get_by_label("Expires").fill("soon")
        page.get_by_role("button", name="Make the token").click()
        expect(page.get_by_role("alert")).to_contain_text("soon")
        expect(page.get_by_label("Name")).to_have_value("yan")
        olga.open("/datasets/stays")
        page.get_by_label("Pufferfish ε").fill("a lot")
        page.get_by_role("button", name="Set the budget").click()
        expect(page.get_by_role("alert")).to_contain_text("a lot")


@pytest.mark.nightly
def test_a_budget_is_set_and_drawn(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    query = {"kind": "histogram", "epsilon": "0.2"}
    released = server.post(
        *("/api/v1/datasets/stays/releases", {"query": query}),
        token=tokens["analyst"],
        headers={"Idempotency-Key": "for-the-figure"},
    )
    assert released.status == 201
    with seated(browser, server, tokens["owner"]) as olga:
        page = olga.page
        olga.open("/datasets/stays")
        page.get_by_label("Pufferfish ε").fill("9")
        page.get_by_role("button", name="Set the budget").click()
        expect(page.get_by_text("The budget is set.")).to_be_visible()
        expect(page.locator(".gauge").first).to_contain_text("of ε = 9")
        expect(page.get_by_text("there is nothing to accept")).to_be_visible()
        image = page.locator("figure img")
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("(image) => image.naturalWidth") > 100


@pytest.mark.nightly
def test_an_auditor_verifies_and_downloads(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["auditor"]) as aude:
        page = aude.page
        aude.open("/ledger")
        expect(page.get_by_text("budget of stays").first).to_be_visible()
        page.get_by_role("button", name="Verify the ledger").click()
        expect(page.get_by_text("The ledger is sound.")).to_be_visible()
        page.get_by_label("Kind").select_option("budget")
        page.get_by_role("button", name="Show").click()
        words = page.locator("tbody td.wide").all_inner_texts()
        assert words and all(text.startswith("budget of stays") for text in words)
        with page.expect_download() as downloading:
            page.get_by_role("link", name="Export").click()
        lines = downloading.value.path().read_text(encoding="utf-8").splitlines()
        with open_project(server.project).ledger(read_only=True) as ledger:
            assert len(lines) == ledger.head().seq
        aude.open("/reports")
        with page.expect_download() as downloading:
            page.get_by_role("link", name=re.compile("^HTML")).click()
        assert b"<!doctype html>" in downloading.value.path().read_bytes()[:100].lower()
        page.get_by_role("link", name=re.compile("^View")).click()
        page.wait_for_url(re.compile("/api/v1/reports/report.html"))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"
