"""What other sites can make a signed-in browser do to the server: nothing. With a real browser.

One site is another port of the same host: of the same site, as browsers see it, so that they send
the cookie along, which is ``SameSite=Strict``. The other is another host.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from takifugu.project.project import open_project
from takifugu.server.state.server_state import TokenRecord, open_state
from tests.server.browser.browsing import PEOPLE, another_browser, seated
from tests.server.running import RunningServer

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FORM = """<!doctype html><form method="post" action="{url}{path}">
<input name="name" value="mallory"><input name="role" value="owner">
<input name="expires" value="never"><input name="token" value="{token}">
<input name="csrf" value="guessed"></form><script>document.forms[0].submit()</script>"""
FETCHES = """<!doctype html><title>waiting</title><script>
const plain = {{method: "POST", mode: "no-cors", credentials: "include"}};
const body = JSON.stringify({{name: "mallory", role: "owner"}});
const json = {{"Content-Type": "application/json"}};
Promise.allSettled([
  fetch("{url}/api/v1/tokens", {{...plain, body}}),
  fetch("{url}/tokens", {{...plain, body: new URLSearchParams({{name: "mallory"}})}}),
  fetch("{url}/api/v1/tokens", {{method: "POST", credentials: "include", headers: json, body}}),
  fetch("{url}/api/v1/me", {{credentials: "include"}}).then(r => r.text()),
  fetch("{url}/sign-out", plain),
]).then(all => {{
  const read = all.slice(2, 4).map(one => one.status);
  document.title = "done " + read.join(" ");
}})</script>"""
FRAMED = """<!doctype html><iframe src="{url}/"></iframe><img src="{url}/favicon.ico">
<script src="{url}/api/v1/me"></script>"""


@contextmanager
def other_site(host: str, page: str) -> Iterator[str]:
    """A site that answers every request with one page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{site.server_port}"
    finally:
        site.shutdown()
        site.server_close()
        thread.join()


def made(server: RunningServer) -> list[TokenRecord]:
    with open_state(open_project(server.project)) as state:
        return state.tokens()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("path", ["/tokens", "/sign-out", "/sign-in", "/api/v1/tokens"])
def test_a_form_of_another_site_changes_nothing(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], host: str, path: str
) -> None:
    before, written = len(made(server)), len(server.log())
    with seated(browser, server, tokens["owner"]) as seat:
        seat.expected = {303, 400, 401, 403}
        page = FORM.format(url=server.url, path=path, token=tokens["analyst"])
        with other_site(host, page) as site:
            seat.page.goto(site)
            seat.page.wait_for_url(f"{server.url}/**")
        assert len(made(server)) == before
        seat.open("/tokens")  # still signed in, and still the owner
        assert seat.page.url.endswith("/tokens") and "mallory" not in seat.text()
    refused = [line for line in server.log()[written:] if line.get("status") == 403]
    with_cookie = [line for line in refused if line["actor"] == PEOPLE["owner"]]
    if host == "127.0.0.1" and path != "/sign-in":  # the cookie came along: that was not enough
        assert with_cookie
    if host == "localhost":
        assert not with_cookie


@pytest.mark.nightly
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_scripts_of_another_site_change_nothing_and_read_nothing(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], host: str
) -> None:
    before = len(made(server))
    with seated(browser, server, tokens["owner"]) as seat:
        with other_site(host, FETCHES.format(url=server.url)) as site:
            seat.page.remove_listener("console", seat.heard)  # the browser says that it refused
            seat.page.goto(site)
            seat.page.wait_for_function("document.title.startsWith('done')")
            assert seat.page.title() == "done rejected rejected"
        assert len(made(server)) == before
        seat.open("/tokens")
        assert seat.page.url.endswith("/tokens")


def test_another_site_shows_no_page_in_a_frame(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    page = FRAMED.format(url=server.url)
    with seated(browser, server, tokens["owner"]) as seat, other_site("127.0.0.1", page) as site:
        seat.page.remove_listener("console", seat.heard)  # the browser says that it refused
        seat.page.goto(site)
        assert [frame.url for frame in seat.page.frames[1:]] == ["chrome-error://chromewebdata/"]


def test_the_session_is_out_of_reach_of_scripts_and_new_at_every_sign_in(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["owner"]) as seat:
        assert seat.page.evaluate("document.cookie") == ""
        (first,) = seat.page.context.cookies()
        assert first.get("httpOnly") and first.get("sameSite") == "Strict"
        assert tokens["owner"] not in str(first)
        seat.sign_in(tokens["owner"])
        (second,) = seat.page.context.cookies()
        assert second.get("value") != first.get("value")
        with open_state(open_project(server.project)) as state:
            assert state.session_of(str(first.get("value"))) is None
            assert state.session_of(str(second.get("value"))) is not None


FETCHED = """paths => Promise.all(
  paths.map(path => fetch(path, {credentials: "include"}).then(answer => answer.status)))"""


@pytest.mark.nightly
def test_a_name_of_another_site_that_leads_here_reaches_nothing(
    browser: "Browser", server: RunningServer
) -> None:
    """DNS rebinding: the browser takes this server for a page of evil.example."""
    with (
        another_browser(browser, "--host-resolver-rules=MAP evil.example 127.0.0.1") as misled,
        seated(misled, server) as seat,
    ):
        seat.page.remove_listener("console", seat.heard)  # the browser says that it was refused
        evil = f"http://evil.example:{server.port}"
        answer = seat.page.goto(f"{evil}/sign-in")
        assert answer is not None and answer.status == 421
        paths = ["/healthz", "/sign-in", "/api/v1/me", "/openapi.json"]
        assert seat.page.evaluate(FETCHED, paths) == [421] * 4  # as scripts of that page would
