"""Who calls: tokens in a header, cookies, and nothing else."""

from datetime import timedelta

import pytest

from takifugu.server.access_rules import ROLES
from tests.server.access.conftest import Running

ME = "/api/v1/me"


def test_a_token_in_the_header_says_who_calls(running: Running) -> None:
    made = running.token("auditor", "audrey")
    for scheme in ("Bearer", "bearer", "BEARER"):
        got = running.client().get(ME, headers={"Authorization": f"{scheme} {made.secret}"})
        assert got.status_code == 200 and got.json() == {"name": "audrey", "role": "auditor"}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "missing"),
        ("", "form"),
        ("Bearer", "form"),
        ("Bearer ", "form"),
        ("Basic dXNlcjpwYXNz", "form"),
        ("Bearer tf_" + "x" * 43, "invalid"),
        ("Bearer " + "x" * 5000, "invalid"),
        ("tf_" + "x" * 43, "form"),
    ],
)
def test_who_says_it_wrongly_is_refused(running: Running, header: str | None, reason: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    got = running.client().get(ME, headers=headers)
    assert (got.status_code, got.json()["reason"]) == (401, reason)
    assert got.headers["content-type"] == "application/problem+json"
    assert got.headers["www-authenticate"].startswith("Bearer")


def test_two_headers_are_refused(running: Running) -> None:
    made = running.token()
    two = [("Authorization", f"Bearer {made.secret}"), ("Authorization", "Bearer tf_other")]
    for headers in (two, two[::-1]):
        got = running.client().get(ME, headers=headers)
        assert (got.status_code, got.json()["reason"]) == (401, "form")


def test_an_ended_or_revoked_token_is_refused_in_the_next_request(running: Running) -> None:
    one = running.token(name="ana")
    end = running.clock.time + timedelta(hours=1)
    two = running.state.create_token("bo", "analyst", end, "root")
    clients = [running.client(made.secret) for made in (one, two)]
    assert [client.get(ME).status_code for client in clients] == [200, 200]
    running.state.revoke_token(one.record.id, "root")
    assert [client.get(ME).status_code for client in clients] == [401, 200]
    running.clock.move(timedelta(hours=1))
    assert [client.get(ME).status_code for client in clients] == [401, 401]


def test_the_last_use_is_noted(running: Running) -> None:
    made = running.token()
    client = running.client(made.secret)
    client.get(ME)
    first = running.clock.time
    running.clock.move(timedelta(seconds=30))
    client.get(ME)
    assert running.state.tokens()[0].used == first
    running.clock.move(timedelta(seconds=30))
    client.get(ME)
    assert running.state.tokens()[0].used == running.clock.time


def test_a_route_without_a_rule_is_refused_to_everybody(running: Running) -> None:
    for role in ROLES:
        client = running.client(running.token(role).secret)
        assert client.get("/unruled").status_code == 403
    assert running.client().get("/unruled").status_code == 303  # nobody has signed in


# --- sign in, and out ---


def test_a_browser_signs_in_with_a_form_and_out(running: Running) -> None:
    browser = running.browser("owner")
    assert browser.get(ME).json()["role"] == "owner"
    cookie = browser.cookies["takifugu"]
    assert browser.post("/sign-out").status_code == 303
    assert "takifugu" not in browser.cookies
    browser.cookies.set("takifugu", cookie)
    assert browser.get(ME).status_code == 401  # ended here too, not only in the browser


def test_the_cookie_is_for_this_server_alone(running: Running, secure: Running) -> None:
    made = running.token(name="ana")
    for one, name in ((running, "takifugu"), (secure, "__Host-takifugu")):
        client = one.client()
        origin = str(client.base_url).rstrip("/")
        got = client.post("/sign-in", data={"token": made.secret}, headers={"Origin": origin})
        value, *rest = (part.strip().lower() for part in got.headers["set-cookie"].split(";"))
        assert value.startswith(name.lower() + "=")
        kept = {"httponly", "samesite=strict", "path=/", "max-age=43200"}
        assert kept <= set(rest) and not any(part.startswith("domain") for part in rest)
        assert ("secure" in rest) == (one is secure)
        assert made.secret not in str(got.headers)


def test_a_session_that_somebody_put_into_the_browser_is_worth_nothing(running: Running) -> None:
    """Fixation: a cookie from before the sign-in, invented or real, is not the one after it."""
    attacker = running.browser("analyst")
    theirs = attacker.cookies["takifugu"]
    for planted in ("planted", theirs):
        client = running.client()
        client.cookies.set("takifugu", planted)
        secret = running.state.create_token(f"o {planted[:7]}", "owner", None, "root").secret
        got = client.post(
            "/sign-in", data={"token": secret}, headers={"Origin": "http://testserver"}
        )
        assert got.status_code == 303
        fresh = got.cookies["takifugu"]
        assert fresh not in (planted, theirs)
        assert running.state.session_of(planted) is None  # what it had before has ended


def test_two_cookies_of_the_name_are_none(running: Running) -> None:
    """A host of the same domain may set one too; which of them is ours cannot be seen."""
    ours = running.browser("owner").cookies["takifugu"]
    client = running.client()
    for sent in (f"takifugu={ours}; takifugu=x", f"takifugu=x; takifugu={ours}", "takifugu="):
        assert client.get(ME, headers={"Cookie": sent}).status_code == 401
    assert client.get(ME, headers={"Cookie": f"a=b; takifugu={ours}"}).status_code == 200


def test_over_tls_a_cookie_without_the_prefix_is_ignored(secure: Running) -> None:
    browser = secure.browser()
    value = browser.cookies["__Host-takifugu"]
    assert browser.get(ME).status_code == 200
    other = secure.client()
    assert other.get(ME, headers={"Cookie": f"takifugu={value}"}).status_code == 401


def test_a_session_ends_with_its_token_and_after_twelve_hours(running: Running) -> None:
    browser = running.browser("owner")
    running.clock.move(timedelta(hours=12) - timedelta(seconds=1))
    assert browser.get(ME).status_code == 200
    running.clock.move(timedelta(seconds=1))
    assert browser.get(ME).status_code == 401
    browser = running.browser("owner")
    assert browser.get(ME).status_code == 200
    running.state.revoke_token(running.state.tokens()[-1].id, "root")
    assert browser.get(ME).status_code == 401
    assert browser.get("/").headers["location"] == "/sign-in"


def test_a_wrong_token_with_a_good_cookie_is_refused(running: Running) -> None:
    browser = running.browser("owner")
    got = browser.get(ME, headers={"Authorization": "Bearer tf_wrong"})
    assert got.status_code == 401


@pytest.mark.parametrize("sent", ["", "tf_wrong", "x" * 4000])
def test_a_wrong_token_in_the_form_signs_nobody_in(running: Running, sent: str) -> None:
    headers = {"Origin": "http://testserver"}
    got = running.client().post("/sign-in", data={"token": sent}, headers=headers)
    assert "set-cookie" not in got.headers
    assert (got.status_code, got.json()["reason"]) == (401, "invalid")


def test_a_witness_has_no_pages(running: Running) -> None:
    secret = running.token("witness").secret
    headers = {"Origin": "http://testserver"}
    got = running.client().post("/sign-in", data={"token": secret}, headers=headers)
    assert got.status_code == 403 and "set-cookie" not in got.headers


def test_who_is_sent_to_sign_in_can_come_back(running: Running) -> None:
    client = running.client()
    for wanted, location in (
        ("/", "/sign-in"),
        ("/releases", "/sign-in?next=%2Freleases"),
        ("/releases?dataset=a%26b", "/sign-in?next=%2Freleases%3Fdataset%3Da%2526b"),
    ):
        got = client.get(wanted)
        assert (got.status_code, got.headers["location"]) == (303, location)
    split = client.get("/releases/%0d%0aSet-Cookie:x=y").headers
    assert split["location"].startswith("/sign-in?next=%2Freleases%2F")
    assert "set-cookie" not in split and split["location"].isprintable()
    assert client.post("/tokens").headers["location"] == "/sign-in"
