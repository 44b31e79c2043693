"""Analysts in a browser: sign in, plan while typing, release once, be refused, download."""

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.server.browser.browsing import PATIENCE, Seat, charges, seated
from tests.server.running import RunningServer

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)


def fill_in(seat: Seat, epsilon: str) -> None:
    """Ask for a histogram by zone."""
    seat.open("/datasets/stays/ask")
    seat.page.get_by_label("zone", exact=True).first.check()
    seat.page.get_by_label("Pufferfish ε").fill(epsilon)


def test_the_price_is_shown_while_one_types_and_a_double_click_is_one_charge(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
        fill_in(seat, "0.5")
        button = page.get_by_role("button", name=re.compile("^Release: adds ε = 0[.]"))
        expect(button).to_be_enabled()
        expect(page.locator("#said")).to_contain_text("useful")
        expect(page.locator("#odds")).to_contain_text("50 : 50")
        cost = page.locator("#cost").inner_text()
        page.get_by_label("Pufferfish ε").fill("0.25")
        expect(page.locator("#cost")).not_to_have_text(cost)
        expect(button).to_be_enabled()
        before = charges(server)
        button.dblclick()
        page.wait_for_url(re.compile(r"/releases/\d+$"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("Histogram of state")
        assert charges(server) == before + 1
        figure = page.locator("figure img")
        expect(figure).to_have_js_property("complete", True)
        assert figure.evaluate("(image) => image.naturalWidth") > 100
        assert page.locator("tbody tr").count() == 9
        expect(page.get_by_text("someone who thought 50 : 50").first).to_be_visible()


def test_a_result_can_be_downloaded_in_three_formats(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        fill_in(seat, "0.3")
        page.get_by_role("button", name=re.compile("^Release")).click()
        page.wait_for_url(re.compile(r"/releases/\d+$"))
        kept = {}
        for name in ("CSV", "JSON", "Parquet"):
            with page.expect_download() as downloading:
                page.get_by_role("link", name=name, exact=True).click()
            kept[name] = downloading.value.path().read_bytes()
        table = json.loads(kept["JSON"])
        assert table["columns"] == ["zone", "state", "estimate", "low", "high"]
        assert len(table["rows"]) == 9
        assert kept["CSV"].decode().splitlines()[0] == "zone,state,estimate,low,high"
        assert kept["Parquet"][:4] == b"PAR1"
        shown = page.locator("tbody tr").first.locator("td").all_inner_texts()
        assert shown[1] == f"{table['rows'][0][2]:,}"


def test_what_is_over_the_budget_is_not_released_and_the_most_is_offered(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page, before = seat.page, charges(server)
        fill_in(seat, "9")
        expect(page.get_by_text("More than the budget admits.", exact=True)).to_be_visible()
        expect(page.locator("#release-button")).to_be_hidden()
        expect(page.locator("#said")).to_contain_text("more than the budget admits")
        offered = page.get_by_role("button", name=re.compile("^Use ε = "))
        most = (offered.text_content() or "").removeprefix("Use ε = ").partition(",")[0]
        offered.click()
        expect(page.get_by_label("Pufferfish ε")).to_have_value(most)
        expect(page.get_by_role("button", name=re.compile("^Release:"))).to_be_enabled()
        assert charges(server) == before


def test_mostly_noise_wants_a_yes(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        fill_in(seat, "0.001")
        button = page.locator("#release-button")
        expect(page.get_by_text("The answer would be mostly noise.", exact=True)).to_be_visible()
        expect(page.locator("#verdict")).to_have_text("mostly noise")
        expect(button).to_be_disabled()
        page.get_by_label("Release it although it is mostly noise").check()
        expect(button).to_be_enabled()
        button.click()
        page.wait_for_url(re.compile(r"/releases/\d+$"))


def test_what_is_refused_is_said_beside_its_field(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        seat.expected.add(422)
        page = seat.page
        fill_in(seat, "-1")
        expect(page.locator("#epsilon-wrong")).to_contain_text("epsilon")
        expect(page.get_by_label("Pufferfish ε")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#release-button")).to_be_hidden()
        page.get_by_label("Pufferfish ε").fill("0.2")
        expect(page.get_by_role("button", name=re.compile("^Release"))).to_be_enabled()
        expect(page.locator("#epsilon-wrong")).to_be_empty()


def test_kinds_have_their_own_options_and_an_error_can_be_asked_for(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        page = seat.page
        seat.open("/datasets/stays/ask")
        expect(page.get_by_label("Places")).to_be_hidden()
        page.get_by_label("Kind of query").select_option("top_k")
        page.get_by_label("Places").fill("2")
        page.get_by_label("Pufferfish ε").fill("0.5")
        expect(page.get_by_role("button", name=re.compile("^Release:"))).to_be_enabled()
        page.get_by_label("Kind of query").select_option("count")
        expect(page.get_by_label("Places")).to_be_hidden()
        page.get_by_role("group", name="Labels to count").get_by_label("ward").check()
        page.get_by_label("Reach a given error").check()
        page.get_by_label("Within ±").fill("60")
        expect(page.locator("#error")).to_contain_text("within ±60")
        expect(page.get_by_role("button", name=re.compile("^Release:"))).to_be_enabled()


@pytest.mark.nightly
def test_it_works_without_scripts_for_the_same_price(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["analyst"]) as seat:
        fill_in(seat, "0.4")
        expect(seat.page.locator("#release-button")).to_be_enabled()
        price = seat.page.locator("#cost").inner_text()
    with seated(browser, server, tokens["analyst"], scripts=False) as seat:
        page = seat.page
        fill_in(seat, "0.4")
        page.get_by_role("button", name="Show the cost").click()
        expect(page.locator("#cost")).to_have_text(price)
        before = charges(server)
        page.get_by_role("button", name=re.compile("^Release:")).click()
        page.wait_for_url(re.compile(r"/releases/\d+$"))
        assert charges(server) == before + 1
        page.go_back()
        page.get_by_role("button", name=re.compile("^Release")).click()
        page.wait_for_url(re.compile(r"/releases/\d+$"))
        assert charges(server) == before + 1


@pytest.mark.nightly
def test_an_owner_plans_and_cannot_release(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["owner"]) as seat:
        fill_in(seat, "0.5")
        expect(seat.page.locator("#said")).to_contain_text("useful")
        assert seat.page.get_by_role("button", name=re.compile("^Release")).count() == 0
