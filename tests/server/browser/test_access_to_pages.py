"""Signing in and out in a browser, pages for each role, keyboards, screen readers, sizes."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.server.browser.browsing import PATIENCE, Seat, seated
from tests.server.running import RunningServer

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)
MENUS = {
    "owner": ["Datasets", "Releases", "Approvals", "Ledger", "Reports", "Tokens"],
    "analyst": ["Datasets", "Releases", "Approvals"],
    "auditor": ["Datasets", "Releases", "Approvals", "Ledger", "Reports"],
}
PAGES = {
    "owner": ["/", "/datasets/stays", "/datasets/stays/ask", "/approvals", "/tokens", "/nothing"],
    "analyst": ["/", "/datasets/stays", "/datasets/stays/ask", "/releases", "/releases/{charge}"],
    "auditor": ["/releases", "/releases/{charge}", "/approvals", "/ledger", "/reports", "/tokens"],
}
STATUS = {("owner", "/nothing"): 404, ("auditor", "/tokens"): 403}


@cache
def axe() -> str:
    """The source of axe, which finds what keeps people out."""
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def barriers(seat: Seat) -> list[str]:
    """What axe finds on the page that is open."""
    seat.page.evaluate(axe())
    found: Any = seat.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.fixture(scope="module")
def charge(server: RunningServer, tokens: dict[str, str]) -> int:
    """A release, by the API."""
    answer = server.post(
        "/api/v1/datasets/stays/releases",
        {"query": {"kind": "histogram", "by": ["zone"], "epsilon": "0.5"}},
        token=tokens["analyst"],
        headers={"Idempotency-Key": "first"},
    )
    assert answer.status == 201, answer.body
    found: int = answer.json()["charge"]
    return found


def settle(seat: Seat, path: str) -> None:
    """Open a page, and wait for the price where one is asked for."""
    seat.open(path)
    if path.endswith("/ask"):
        seat.page.get_by_label("Pufferfish ε").fill("0.5")
        expect(seat.page.locator("#said")).to_contain_text("useful")
        seat.page.get_by_text("Only some rows").click()
    for summary in seat.page.locator("summary").all():
        if summary.locator("..").get_attribute("open") is None:
            summary.click()


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("role", list(PAGES))
def test_no_page_keeps_anybody_out_or_scrolls_sideways(
    browser: "Browser",
    server: RunningServer,
    tokens: dict[str, str],
    charge: int,
    role: str,
    width: int,
    scheme: str,
) -> None:
    with seated(browser, server, tokens[role], width=width, scheme=scheme) as seat:
        seat.expected |= {status for (who, _), status in STATUS.items() if who == role}
        for path in PAGES[role]:
            settle(seat, path.format(charge=charge))
            assert barriers(seat) == [], path
            assert seat.width() <= width, path


@pytest.mark.parametrize("width", [768, 1920])
def test_other_widths_do_not_scroll_sideways_either(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], charge: int, width: int
) -> None:
    with seated(browser, server, tokens["owner"], width=width) as seat:
        for path in ("/", "/datasets/stays", "/datasets/stays/ask", f"/releases/{charge}"):
            settle(seat, path)
            assert seat.width() <= width, path
        for path in ("/tokens", "/ledger", "/approvals", "/reports"):
            seat.open(path)
            assert seat.width() <= width, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_the_sign_in_page_keeps_nobody_out(
    browser: "Browser", server: RunningServer, width: int, scheme: str
) -> None:
    with seated(browser, server, width=width, scheme=scheme) as seat:
        seat.open("/sign-in")
        assert barriers(seat) == []
        seat.expected.add(401)
        seat.sign_in("tf_nobody")
        expect(seat.page.get_by_role("alert")).to_contain_text("not valid")
        expect(seat.page.get_by_label("Token")).to_have_value("")
        assert barriers(seat) == []
        assert seat.width() <= width


@pytest.mark.parametrize("role", list(MENUS))
def test_each_role_sees_what_it_may_do(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], role: str
) -> None:
    with seated(browser, server, tokens[role]) as seat:
        menu = seat.page.get_by_role("navigation", name="Main").get_by_role("link")
        expect(menu).to_have_text(MENUS[role])
        for name in MENUS[role]:
            menu.filter(has_text=name).click()
            expect(seat.page.get_by_role("heading", level=1)).to_have_text(name)
            expect(menu.filter(has_text=name)).to_have_attribute("aria-current", "page")


def test_after_signing_out_going_back_shows_nothing_private(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], charge: int
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        seat.open(f"/releases/{charge}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Histogram")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("You are signed out.")).to_be_visible()
        page.go_back()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert "Histogram" not in seat.text() and "ana" not in seat.text().split()
        seat.open(f"/releases/{charge}")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_one_gets_to_where_one_wanted_after_signing_in(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server) as seat:
        page = seat.page
        seat.open("/datasets/stays/ask?kind=top_k")
        page.get_by_label("Token").fill(tokens["analyst"])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ask a query")).to_be_visible()
        expect(page.get_by_label("Places")).to_be_visible()


def test_a_query_is_released_with_the_keyboard_alone(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        seat.open("/datasets/stays/ask")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        tab_to(seat, "kind")
        tab_to(seat, "epsilon")
        page.keyboard.type("0.45")
        expect(page.locator("#release-button")).to_be_enabled()
        tab_to(seat, "release-button")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/releases/\d+$"))


def tab_to(seat: Seat, name: str) -> None:
    """Press Tab until the element of this name has the focus."""
    for _ in range(60):
        if seat.page.evaluate("document.activeElement.id") == name:
            return
        seat.page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {name}")


def test_pages_of_others_say_so(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], charge: int
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        seat.expected |= {403, 404}
        seat.open("/ledger")
        expect(seat.page.get_by_role("heading", name="Not for you")).to_be_visible()
        for path in ("/nothing", "/datasets/none", f"/releases/{charge + 900}", "/releases/x"):
            seat.open(path)
            expect(seat.page.get_by_role("heading", name="Not found")).to_be_visible()


@pytest.mark.nightly
def test_axe_would_find_a_fault(browser: "Browser", server: RunningServer) -> None:
    with seated(browser, server) as seat:
        seat.open("/sign-in")
        seat.page.evaluate("document.querySelector('label[for=token]').remove()")
        assert any(one.startswith("label:") for one in barriers(seat))


@pytest.mark.nightly
def test_scripts_and_styles_are_files_of_this_server(server: RunningServer) -> None:
    text = server.get("/sign-in").body.decode()
    assert not re.search(r"<style|style=|<script(?![^>]* src=)|\son[a-z]+=", text)
    assert not re.search(r"(?:src|href)=\"(?!/|#)", text)
    templates = Path(import_module("takifugu.server.pages").__file__ or "").parent / "templates"
    for path in sorted(templates.glob("*.html")):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|<script(?![^>]* src=)|\son[a-z]+=", source), path
        assert "|safe" not in source and "autoescape" not in source, path
        assert not re.search(r"(?:src|href)=\"https?:", source), path
