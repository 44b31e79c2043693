"""Tokens over HTTP, with the real app, its real access rules and a real project."""

from collections.abc import Iterator

import pytest

from tests.server.api.serving import PEOPLE, Served, served
from tests.server.projects import small_project

TOKENS = "/api/v1/tokens"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(small_project(tmp_path_factory.mktemp("tokens") / "study")) as made:
        yield made


def events(running: Served) -> list[tuple[str, str, str]]:
    """What the ledger says about tokens: how, whose, by whom."""
    with running.services.project().ledger(read_only=True) as ledger:
        found = [event.body for event in ledger.history(kind="access")]
    return [(body["how"], body["name"], body["actor"]) for body in found]


@pytest.mark.nightly
def test_an_owner_makes_lists_and_revokes_tokens(running: Served) -> None:
    before = events(running)
    made = running.ask("olga", "POST", TOKENS, json={"name": "eve", "role": "analyst"})
    assert made.status_code == 201 and made.headers["cache-control"] == "no-store"
    secret, identity = made.json()["secret"], made.json()["id"]
    hers = {"Authorization": f"Bearer {secret}"}
    me = running.get(None, "/me", headers=hers)
    assert me.json() == {"name": "eve", "role": "analyst", "token": identity}
    listed = running.ask("olga", "GET", TOKENS, params={"limit": 200})
    names = [item["name"] for item in listed.json()["items"]]
    assert (names[: len(PEOPLE)], names[-1]) == ([*PEOPLE], "eve")
    assert secret not in listed.text and "hash" not in listed.text
    assert listed.json()["items"][-1]["used"] is not None
    gone = running.ask("olga", "DELETE", f"{TOKENS}/{identity}")
    assert gone.status_code == 200 and gone.json()["state"] == "revoked"
    assert gone.json()["revoked_by"] == "olga"
    assert running.get(None, "/me", headers=hers).status_code == 401
    assert events(running) == [*before, ("made", "eve", "olga"), ("revoked", "eve", "olga")]


LOOK_ALIKES = (
    *("\u043elga", "olga\u2800", "ol\u0261a", "o\u0335lga", "olg\u03b1", "olga\u115f"),  # olga
    *("\uff4flga", "o\u0301lga", "\u0430\u0441\u0435", "olga\ufe0f", "7\u0667"),
)


@pytest.mark.nightly
def test_a_name_that_looks_like_another_is_refused(running: Served) -> None:
    for name in LOOK_ALIKES:
        got = running.ask("olga", "POST", TOKENS, json={"name": name, "role": "analyst"})
        assert (got.status_code, got.json()["reason"]) == (422, "look-alike"), ascii(name)
    fine = (
        "Zo\u00eb Nu\u00f1ez-2",
        "\u041e\u043b\u044c\u0433\u0430",
        "\u5c71\u7530 7",
        "ci (nightly)",
    )
    for name in fine:
        got = running.ask("olga", "POST", TOKENS, json={"name": name, "role": "analyst"})
        assert got.status_code == 201, ascii(name)


def test_pages_of_tokens(running: Served) -> None:
    whole = [record.name for record in running.services.state.tokens()]
    names = [item["name"] for item in running.items("olga", "/tokens", limit=3)]
    assert names == whole and names[: len(PEOPLE)] == [*PEOPLE]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ({"name": "olga", "role": "analyst"}, "role", "two roles"),
        ({"name": "OLGA", "role": "owner"}, "name", "spelling"),
        ({"name": "a\r\nX: y", "role": "analyst"}, "name", "name"),
        ({"name": "eve", "role": "analyst", "expires": "soon"}, "expires", "expires"),
        ({"name": "eve", "role": "admin"}, "role", "literal_error"),
        ({"name": "", "role": "analyst"}, "name", "string_too_short"),
        ({"role": "analyst"}, "name", "missing"),
    ],
)
def test_a_token_that_cannot_be_made_is_a_problem(
    running: Served, body: dict[str, str], field: str, reason: str
) -> None:
    before = events(running)
    got = running.ask("olga", "POST", TOKENS, json=body)
    found = got.json()
    assert (got.status_code, found["field"], found["reason"]) == (422, field, reason)
    assert events(running) == before


@pytest.mark.nightly
@pytest.mark.parametrize("identity", ["beef", "..", "%00", "a%2Fb", "x" * 300])
def test_an_unknown_token_is_not_there(running: Served, identity: str) -> None:
    got = running.ask("olga", "DELETE", f"{TOKENS}/{identity}")
    assert got.status_code in (404, 405)
