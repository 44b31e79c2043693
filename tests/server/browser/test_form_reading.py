"""The form of a query is read alike in the browser and on the server."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from takifugu.server.pages.ask_pages import fields_of, filled_in
from tests.server.browser.browsing import seated
from tests.server.running import RunningServer

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Filling = Callable[["Page"], None]


def histogram(page: "Page") -> None:
    """Every option that all kinds have."""
    page.get_by_label("Numbers add up").check()
    page.get_by_label("zone", exact=True).first.check()
    page.get_by_text("Only some rows").click()
    page.get_by_label("From").fill("2026-01-05")
    page.get_by_role("group", name="Only these of zone").get_by_label("north").check()
    page.get_by_role("group", name="Only these of zone").get_by_label("east").check()
    page.get_by_label("Pufferfish ε").fill(" 0.30 ")


def ranking(page: "Page") -> None:
    """A ranking for a reference, with an error to reach."""
    page.get_by_label("Kind of query").select_option("top_k")
    page.get_by_label("Places").fill("2")
    page.get_by_label("Reference counts").fill("400, 300 200\n10 20 30")
    page.get_by_role("group", name="Labels to leave out").get_by_label("home").check()
    page.get_by_label("Reach a given error").check()
    page.get_by_label("With probability").fill("0.9")


def wrong(places: str, lead: str) -> Filling:
    """What is no number goes to the server as it is."""

    def fill(page: "Page") -> None:
        page.get_by_label("Kind of query").select_option("top_k")
        page.get_by_label("Places").fill(places)
        page.get_by_label("Lead").fill(lead)
        page.get_by_label("Pufferfish ε").fill("a little")

    return fill


WRONG = [("two", "1e400"), ("3.0", "nan"), ("0x10", "0x1"), ("1_000", "Infinity"), ("٣", ".5e")]


def counts(page: "Page") -> None:
    """Labels, and a distance."""
    page.get_by_label("Kind of query").select_option("counts")
    page.get_by_role("group", name="Labels to count").get_by_label("ward").check()
    page.get_by_role("group", name="Labels to count").get_by_label("clinic").check()
    page.get_by_label("Reach a given error").check()
    page.get_by_label("Within ±").fill("40")


@pytest.mark.nightly
@pytest.mark.parametrize("fill", [histogram, ranking, counts, *(wrong(*given) for given in WRONG)])
def test_both_readers_find_the_same_options(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], fill: Filling
) -> None:
    description = server.get("/api/v1/datasets/stays", token=tokens["analyst"]).json()
    with seated(browser, server, tokens["analyst"]) as seat:
        seat.expected |= {409, 422}
        page, sent = seat.page, []
        page.on("request", lambda one: sent.append(one) if one.url.endswith("/plans") else None)
        seat.open("/datasets/stays/ask")
        fill(page)
        page.wait_for_timeout(600)
        page.wait_for_load_state("networkidle")
        pairs: Any = page.evaluate("[...new FormData(document.getElementById('ask'))]")
        document = json.loads(sent[-1].post_data)["query"]
        assert document == filled_in([tuple(pair) for pair in pairs], fields_of(description))
        assert len(document) >= 3


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"k": 2, "reference": [[400, 300, 200], [10, 20, 30]]}, "reference"),
        ({"k": 2, "reference": [400, 300], "leave_out": ["home", "ward"]}, "leave_out"),
        ({"k": 9, "gap": 10.0}, "k"),
    ],
)
def test_a_ranking_that_does_not_fit_is_refused_by_its_option(
    server: RunningServer, tokens: dict[str, str], options: dict[str, Any], field: str
) -> None:
    answer = server.post(
        "/api/v1/datasets/stays/plans",
        {"query": {"kind": "top_k", "confidence": 0.9, **options}},
        token=tokens["analyst"],
    )
    assert (answer.status, answer.json()["field"]) == (422, field)
