"""Requests that other sites make a signed-in browser send."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from takifugu.project.server_section import ServerSettings
from tests.server.access.conftest import ORIGIN, Running

CHANGE = "/api/v1/tokens"  # POST, by an owner
FORGED = [
    ({}, "missing"),  # neither Origin nor Sec-Fetch-Site
    ({"Origin": "null"}, "other site"),  # a sandboxed frame, a file, a redirect
    ({"Origin": "https://evil.example"}, "other site"),
    ({"Origin": "http://evil.testserver"}, "other site"),  # a host of the same site
    ({"Origin": "http://testserver.evil.example"}, "other site"),
    ({"Origin": "http://testserver@evil.example"}, "other site"),
    ({"Origin": "https://testserver"}, "other site"),  # another scheme
    ({"Origin": "http://testserver:81"}, "other site"),  # another port
    ({"Origin": ""}, "other site"),
    ({"Sec-Fetch-Site": "cross-site"}, "other site"),
    ({"Sec-Fetch-Site": "same-site"}, "other site"),
    ({"Sec-Fetch-Site": "none"}, "other site"),
    ({"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"}, "other site"),
    ({"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}, "other site"),
]


@pytest.fixture
def browser(running: Running) -> TestClient:
    """Signed in as an owner; it says of itself only what a test adds."""
    client = running.browser("owner")
    del client.headers["Origin"]
    return client


@pytest.mark.parametrize(("headers", "reason"), FORGED)
def test_a_request_of_another_site_is_refused_even_with_the_token_of_a_form(
    browser: TestClient, headers: dict[str, str], reason: str
) -> None:
    got = browser.post(CHANGE, headers=headers)
    assert (got.status_code, got.json()["reason"]) == (403, reason)
    assert got.json()["type"].endswith("other-site")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_every_method_that_changes_something_is_checked(browser: TestClient, method: str) -> None:
    paths = {
        "POST": CHANGE,
        "PUT": "/api/v1/datasets/ward/budget",
        "DELETE": "/api/v1/tokens/beef",
    }
    assert browser.request(method, paths[method]).status_code == 403
    got = browser.request(method, paths[method], headers={"Origin": ORIGIN})
    assert got.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ORIGIN},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_a_page_of_this_server_may(browser: TestClient, headers: dict[str, str]) -> None:
    assert browser.post(CHANGE, headers=headers).status_code == 200


def test_two_origins_are_refused(browser: TestClient) -> None:
    headers = [("Origin", ORIGIN), ("Origin", "https://evil.example")]
    got = browser.post(CHANGE, headers=headers)
    assert (got.status_code, got.json()["reason"]) == (403, "twice")


def test_the_token_of_a_form_must_be_that_of_the_session(
    running: Running, browser: TestClient
) -> None:
    good = browser.headers.pop("X-CSRF-Token")
    other = running.browser("analyst").headers["X-CSRF-Token"]
    here = {"Origin": ORIGIN}

    def sent(**how: str | bytes) -> tuple[int, str]:
        headers: Any = here | how
        got = browser.post("/tokens", headers=headers)
        return got.status_code, got.json().get("reason", "")

    assert sent() == (403, "missing")
    for wrong in (other, "", good[:-1], good + "x", "é".encode()):
        assert sent(**{"X-CSRF-Token": wrong}) == (403, "other session")
    assert sent(**{"X-CSRF-Token": good}) == (200, "")
    form = browser.post("/tokens", data={"csrf": good}, headers=here)
    assert form.status_code == 200
    form = browser.post("/tokens", data={"csrf": other}, headers=here)
    assert form.status_code == 403
    asked = browser.post(f"/tokens?csrf={good}", headers=here)  # addresses are not read
    assert asked.status_code == 403
    json = browser.post("/tokens", json={"csrf": good}, headers=here)
    assert json.status_code == 403
    plain = browser.post(
        "/tokens", content=f"csrf={good}", headers=here | {"Content-Type": "text/plain"}
    )
    assert plain.status_code == 403


def test_a_cookie_that_two_sessions_share_has_two_form_tokens(running: Running) -> None:
    record = running.token("owner").record
    one, two = (running.state.begin_session(record) for _ in range(2))
    client = running.client()
    client.cookies.set("takifugu", one.secret)
    for session, status in ((one, 200), (two, 403)):
        headers = {"Origin": ORIGIN, "X-CSRF-Token": session.csrf}
        assert client.post(CHANGE, headers=headers).status_code == status


def test_a_program_with_a_token_needs_none_of_it(running: Running) -> None:
    client = running.client(running.token("owner").secret)
    assert client.post(CHANGE).status_code == 200
    assert client.post(CHANGE, headers={"Origin": "https://evil.example"}).status_code == 200


@pytest.mark.parametrize(("headers", "reason"), FORGED)
def test_another_site_cannot_sign_a_browser_in_as_somebody_else(
    running: Running, headers: dict[str, str], reason: str
) -> None:
    secret = running.token("analyst").secret
    got = running.client().post("/sign-in", data={"token": secret}, headers=headers)
    assert (got.status_code, got.json()["reason"]) == (403, reason)
    assert "set-cookie" not in got.headers


def test_another_site_cannot_sign_a_browser_out(browser: TestClient) -> None:
    assert browser.post("/sign-out", headers={"Origin": "null"}).status_code == 403
    assert browser.get("/api/v1/me").status_code == 200


@pytest.mark.nightly
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_links_of_other_sites_lead_to_pages_and_nothing_else(
    browser: TestClient, site: str
) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.get("/", headers=link).status_code == 200
    for embedded in (
        link | {"Sec-Fetch-Dest": "iframe"},
        link | {"Sec-Fetch-Dest": "object"},
        link | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": site},
    ):
        assert browser.get("/", headers=embedded).status_code == 403
    assert browser.get("/api/v1/ledger/export", headers=link).status_code == 403


def test_the_origin_is_that_of_the_settings_where_they_have_one(secure: Running) -> None:
    browser = secure.browser("owner")
    for origin, status in (
        ("https://testserver", 200),
        ("http://testserver", 403),
        ("https://TESTSERVER", 403),  # browsers write hosts small: it is none of theirs
    ):
        got = browser.post(CHANGE, headers={"Origin": origin})
        assert got.status_code == status, origin
    forged = {"Origin": "https://evil.example", "Host": "evil.example"}
    assert browser.post(CHANGE, headers=forged).status_code == 403


@pytest.mark.parametrize(
    ("setting", "origin"),
    [
        ("https://stats.example.org/", "https://stats.example.org"),
        ("https://stats.example.org:443", "https://stats.example.org"),
        ("https://Stats.example.org:8443", "https://stats.example.org:8443"),
        ("http://localhost:80", "http://localhost"),
    ],
)
def test_origins_are_compared_as_browsers_write_them(
    running: Running, setting: str, origin: str
) -> None:
    other = Running(running.state, running.clock, running.seconds, ServerSettings(origin=setting))
    made = other.token("owner")
    got = other.client().post("/sign-in", data={"token": made.secret}, headers={"Origin": origin})
    assert got.status_code == 303
