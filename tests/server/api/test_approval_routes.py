"""Requests for approval over HTTP, with real workers and a real ledger."""

from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from takifugu.server.approvals import adopt_decisions
from tests.server.api.serving import HISTOGRAM, Served, served
from tests.server.projects import small_project, stays, write_rows
from tests.server.test_approvals import with_rule

PATIENCE = 120  # seconds: a machine may be busy; only what hangs takes as long


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(with_rule(small_project(tmp_path / "study"))) as running:
        yield running


def call(site: Served, who: str, method: str, path: str, status: int = 200, **how: Any) -> Any:
    response = site.ask(who, method, f"/api/v1{path}", **how)
    assert response.status_code == status, response.text
    return response.json()


def ask(site: Served, who: str = "ana", key: str = "k1", status: int = 202) -> Any:
    response = site.release(who, HISTOGRAM, key)
    assert response.status_code == status, response.text
    if status == 202:
        number = response.json()["approval"]["id"]
        assert response.headers["location"] == f"/api/v1/approvals/{number}"
    return response.json()


def settled(site: Served, number: int, who: str = "ana") -> Any:
    """A request once the server has done with it."""
    for _ in range(PATIENCE * 10):
        found = call(site, who, "GET", f"/approvals/{number}")
        if found["state"] not in ("pending", "approved"):
            return found
        sleep(0.1)
    raise AssertionError("the request was not released")


def decide(site: Served, number: int, decision: str = "approved", **how: Any) -> Any:
    body = {"decision": decision, "note": "agreed with the ward"}
    return call(
        *(site, how.pop("who", "olga"), "POST", f"/approvals/{number}/decision"),
        how.pop("status", 200),
        json=body,
    )


def charges(site: Served) -> list[Any]:
    with site.services.project().ledger(read_only=True) as ledger:
        return list(ledger.events(kind=("charge", "reuse")))


@pytest.mark.nightly
def test_a_release_waits_is_approved_and_released(site: Served) -> None:
    asked = ask(site)["approval"]
    assert asked["state"] == "pending"
    assert ask(site)["approval"] == asked
    seen = call(site, "olga", "GET", f"/approvals/{asked['id']}")
    now = seen["now"]
    assert now["same"] is True
    assert now["problem"] is None
    assert now["plan"]["cost"]["before"] == 0
    assert now["plan"]["cost"]["after"] == pytest.approx(now["plan"]["cost"]["alone"])
    assert "ε" in now["guarantee"] or "epsilon" in now["guarantee"]
    assert {key: seen[key] for key in asked} == asked
    done = decide(site, asked["id"])
    assert (done["state"], done["decided_by"]) == ("approved", "olga")
    found = settled(site, asked["id"])
    assert (found["state"], found["note"]) == ("released", "agreed with the ward")
    (charge,) = charges(site)
    assert (charge.seq, charge.body["actor"]) == (found["charge"], "ana")
    assert charge.body["approval"] == found["event"]
    result = site.get("ana", found["result"].removeprefix("/api/v1"))
    assert result.status_code == 200
    again = site.release("ana", HISTOGRAM, "k1")
    assert again.status_code == 201
    assert again.json()["result"] == result.json()
    assert len(charges(site)) == 1


@pytest.mark.nightly
def test_who_sees_and_does_what(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    for who, status in (("ana", 200), ("bo", 404), ("olga", 200), ("udo", 200)):
        call(site, who, "GET", f"/approvals/{number}", status)
        items = call(site, who, "GET", "/approvals")["items"]
        assert len(items) == (0 if who == "bo" else 1)
    assert call(site, "udo", "GET", f"/approvals/{number}")["now"] is None
    for who, status in (("ana", 403), ("bo", 403), ("udo", 403)):
        decide(site, number, who=who, status=status)
    for who, status in (("bo", 404), ("olga", 403), ("udo", 403)):
        call(site, who, "DELETE", f"/approvals/{number}", status)
    assert call(site, "ana", "DELETE", f"/approvals/{number}")["state"] == "withdrawn"
    found = call(site, "ana", "DELETE", f"/approvals/{number}", 409)
    assert found["reason"] == "decided"
    decide(site, number, status=409)
    decide(site, 99, status=404)
    assert ask(site, status=409)["type"].endswith("ApprovalDeclined")
    assert not charges(site)


@pytest.mark.nightly
def test_an_owner_with_the_name_of_the_analyst_is_refused(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    state = site.services.state
    for token in state.tokens():
        if token.name == "ana":
            state.revoke_token(token.id, "test")
    secret = state.create_token("ana", "owner", None, "test").secret
    response = site.client.post(
        f"/api/v1/approvals/{number}/decision",
        headers={"Authorization": f"Bearer {secret}"},
        json={"decision": "approved"},
    )
    assert response.status_code == 403
    assert response.json()["reason"] == "same person"
    assert site.services.state.approval(number).state == "pending"  # type: ignore[union-attr]


@pytest.mark.nightly
def test_nothing_is_approved_for_somebody_without_a_token(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    state = site.services.state
    for token in state.tokens():
        if token.name == "ana":
            state.revoke_token(token.id, "test")
    assert decide(site, number, status=409)["reason"] == "no token"
    assert decide(site, number, "refused")["state"] == "refused"
    assert not charges(site)


@pytest.mark.nightly
def test_a_refusal_reaches_the_analyst(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    assert decide(site, number, "refused")["state"] == "refused"
    found = call(site, "ana", "GET", f"/approvals/{number}")
    assert (found["note"], found["result"]) == ("agreed with the ward", None)
    told = ask(site, status=409)
    assert (told["state"], told["note"]) == ("refused", "agreed with the ward")


@pytest.mark.nightly
def test_other_data_make_an_approval_void(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    write_rows(site.services.project().folder, stays(121))
    assert call(site, "olga", "GET", f"/approvals/{number}")["now"]["same"] is False
    decide(site, number)
    found = settled(site, number)
    assert found["state"] == "failed"
    assert found["problem"]["reason"] == "question"
    assert ask(site, status=409) == found["problem"]
    assert not charges(site)


@pytest.mark.nightly
def test_a_budget_that_is_gone_fails_the_release(site: Served) -> None:
    number = ask(site)["approval"]["id"]
    call(site, "olga", "PUT", "/datasets/stays/budget", json={"epsilon": "0.1"})
    seen = call(site, "olga", "GET", f"/approvals/{number}")["now"]
    assert seen["plan"]["cost"]["fits"] is False
    decide(site, number)
    found = settled(site, number)
    assert found["state"] == "failed"
    assert found["problem"]["type"].endswith("OverBudget")


@pytest.mark.nightly
def test_lists_are_paged_and_chosen_by_state(site: Served) -> None:
    numbers = [ask(site, key=f"k{place}")["approval"]["id"] for place in range(5)]
    decide(site, numbers[0], "refused")
    listed = site.items("olga", "/approvals", limit=2, state="pending")
    assert [one["id"] for one in listed] == numbers[:0:-1]
    call(site, "olga", "GET", "/approvals?state=lost", 422)


@pytest.mark.nightly
def test_what_an_analyst_sees_tells_nothing_of_the_server(site: Served) -> None:
    asked = ask(site)
    folder = str(site.services.project().folder)
    known = site.services.state.approval(asked["approval"]["id"])
    assert known is not None
    for text in (str(asked), site.get("ana", "/approvals").text):
        assert folder not in text
        assert known.request.question not in text


@pytest.mark.nightly
def test_what_was_approved_before_a_stop_is_released_at_the_next_start(tmp_path: Path) -> None:
    file = with_rule(small_project(tmp_path / "study"))
    with served(file) as site:
        first = ask(site)["approval"]["id"]
        second = ask(site, key="k2", who="bo")["approval"]["id"]
    project = site.services.project()
    from takifugu.server.state.server_state import open_state

    with open_state(project) as state, project.ledger() as ledger:
        known = state.approval(first)
        other = state.approval(second)
        assert known is not None and other is not None
        for one in (known, other):
            event = ledger.acting("olga").approve(
                dataset="stays",
                analyst=one.request.analyst,
                question=one.request.question,
                words=one.request.words,
                epsilon=one.request.epsilon,
                request=one.identity,
            )
        state.copy_decision(second, event)  # the first: the event alone
        for token in state.tokens():
            state.revoke_token(token.id, "test")
    with served(file) as site:
        for number, who in ((first, "ana"), (second, "bo")):
            assert settled(site, number, who)["state"] == "released"
        assert {event.body["analyst"] for event in charges(site)} == {"ana", "bo"}
        with site.services.project().ledger() as ledger:
            assert adopt_decisions(site.services.state, ledger) == []
            assert ledger.verify().sound
            assert len(ledger.events(kind="approval")) == 2
