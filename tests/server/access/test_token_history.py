"""Tokens are trusted as far as the ledger has them, also if an old state was put back."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from takifugu.errors import LedgerError, LedgerSetBack
from takifugu.project.project import Project, open_project
from takifugu.server.access.tokens import (
    SERVER,
    DoubtfulToken,
    doubtful_tokens,
    end_token,
    make_token,
    settle_tokens,
    watch_tokens,
)
from takifugu.server.state.access_tokens import NewToken
from takifugu.server.state.server_state import ServerState, open_state
from takifugu.server.state.state_store import TOKENS
from tests.raising import raises
from tests.server.running import new_token, running_server

SOON = datetime.now(UTC) + timedelta(days=30)


@pytest.fixture
def opened(project: Path) -> Project:
    """With a ledger in SQLite, and then in PostgreSQL."""
    return open_project(project)


@pytest.fixture
def state(opened: Project) -> Iterator[ServerState]:
    with open_state(opened) as made:
        yield made


def made(opened: Project, state: ServerState, name: str = "ana") -> NewToken:
    return make_token(opened, state, name, "analyst", SOON, by="olga")


def changed(state: ServerState, token: NewToken, **columns: str | None) -> None:
    """Write to the table as somebody would who can."""
    from takifugu.ledger.storage.database import Statement

    sets = ", ".join(f"{name} = :{name}" for name in columns)
    with state._store.writing() as connection:
        Statement(f"UPDATE {TOKENS} SET {sets} WHERE id = :id").run(  # noqa: S608
            connection, {**columns, "id": token.record.id}
        )


def doubts(opened: Project, state: ServerState) -> list[DoubtfulToken]:
    with opened.ledger(read_only=True) as ledger:
        return doubtful_tokens(state, ledger)


def changes(opened: Project) -> list[tuple[str, str, str]]:
    with opened.ledger(read_only=True) as ledger:
        return [
            (event.body["how"], event.body["token"], event.body["actor"])
            for event in ledger.events(kind="access")
        ]


@pytest.mark.nightly
def test_tokens_that_were_made_in_order_stay_as_they_are(
    opened: Project, state: ServerState
) -> None:
    tokens = [made(opened, state, name) for name in ("ana", "bo", "cy")]
    endless = make_token(opened, state, "olga", "owner", None, by="root")
    end_token(opened, state, tokens[1].record.id, by="olga")
    before, events = state.tokens(), changes(opened)
    assert settle_tokens(opened, state) == [] and state.tokens() == before
    assert changes(opened) == events and len(events) == 5
    assert state.token_of(endless.secret) is not None


@pytest.mark.nightly
def test_a_revoked_token_that_came_back_is_refused_and_marked(
    opened: Project, state: ServerState
) -> None:
    token, other = made(opened, state), made(opened, state, "bo")
    session = state.begin_session(token.record)
    ended = end_token(opened, state, token.record.id, by="olga")
    changed(state, token, revoked=None, revoked_by=None)  # as an old copy has it
    session = state.begin_session(token.record)
    assert state.token_of(token.secret) is not None
    (found,) = settle_tokens(opened, state)
    assert (found.record.id, found.reason, found.by) == (token.record.id, "revoked", "olga")
    assert state.token_of(token.secret) is None and state.session_of(session.secret) is None
    marked = state.token(token.record.id)
    assert marked is not None and marked.revoked is not None and marked.revoked_by == "olga"
    assert ended.revoked is not None
    assert abs(marked.revoked - ended.revoked) < timedelta(minutes=10)  # when it was revoked first
    assert state.token_of(other.secret) is not None
    assert len(changes(opened)) == 3 and settle_tokens(opened, state) == []


@pytest.mark.nightly
def test_a_token_that_the_ledger_never_saw_is_refused(opened: Project, state: ServerState) -> None:
    known = made(opened, state)
    planted = state.create_token("mallory", "owner", None, "root")
    (found,) = settle_tokens(opened, state)
    assert (found.record.id, found.reason, found.by) == (planted.record.id, "unknown", SERVER)
    assert state.token_of(planted.secret) is None and state.token_of(known.secret) is not None
    assert [one[1] for one in changes(opened)] == [known.record.id]  # nothing is made up
    assert settle_tokens(opened, state) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "columns",
    [
        {"role": "owner"},
        {"name": "olga"},
        {"expires": None},
        {"expires": (SOON + timedelta(days=1)).isoformat(timespec="microseconds")},
    ],
)
def test_a_token_that_was_changed_since_it_was_made_is_refused(
    opened: Project, state: ServerState, columns: dict[str, str | None]
) -> None:
    token = made(opened, state)
    changed(state, token, **columns)
    assert [one.reason for one in doubts(opened, state)] == ["altered"]
    assert state.token_of(token.secret) is not None  # to look changes nothing
    settle_tokens(opened, state)
    assert state.token_of(token.secret) is None
    assert changes(opened)[-1] == ("revoked", token.record.id, SERVER)


@pytest.mark.nightly
def test_a_revocation_that_the_ledger_lacks_is_written_to_it(
    opened: Project, state: ServerState
) -> None:
    token = made(opened, state)
    state.revoke_token(token.record.id, "olga")  # and then the server was killed
    assert settle_tokens(opened, state) == []
    assert changes(opened)[-1] == ("revoked", token.record.id, "olga")
    changed(state, token, revoked=None, revoked_by=None)
    assert [one.reason for one in settle_tokens(opened, state)] == ["revoked"]


@pytest.mark.nightly
def test_a_running_server_compares_its_tokens_time_and_again(
    opened: Project, state: ServerState
) -> None:
    kept, goes = made(opened, state), made(opened, state, "bo")
    end_token(opened, state, goes.record.id, by="olga")
    state.revoke_token(kept.record.id, "olga")  # and not yet in the ledger
    other = made(opened, state, "cy")
    before = changes(opened)

    async def watched() -> None:
        stop, reads = asyncio.Event(), list[int]()

        def project() -> Project:
            reads.append(1)
            if len(reads) == 2:
                raise LedgerError("trouble that passes", reason="locked")
            return opened

        watching = asyncio.ensure_future(watch_tokens(project, state, stop, 0.01))
        changed(state, goes, revoked=None, revoked_by=None)  # as an old copy has it
        planted = state.create_token("mallory", "owner", None, "root")
        while len(reads) < 4 or state.token_of(planted.secret) is not None:
            await asyncio.sleep(0.01)
        stop.set()
        await watching

    asyncio.run(asyncio.wait_for(watched(), 120))
    assert state.token_of(goes.secret) is None and state.token_of(other.secret) is not None
    assert changes(opened) == before  # a revocation is written by who revokes


@pytest.mark.nightly
def test_a_token_that_has_ended_by_itself_is_left_alone(
    opened: Project, state: ServerState
) -> None:
    token = made(opened, state)
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="microseconds")
    changed(state, token, expires=past)
    assert settle_tokens(opened, state) == []
    assert state.tokens() == [replace(token.record, expires=datetime.fromisoformat(past))]


@pytest.mark.nightly
def test_a_server_that_starts_with_an_old_state_refuses_what_was_revoked(study: Path) -> None:
    opened = open_project(study)
    stays, goes = new_token(study, "owner", "olga"), new_token(study, "analyst", "ana")
    state, copy = study.parent / "takifugu.server", study.parent / "copy"
    shutil.copy(state, copy)
    with running_server(study) as server:
        assert server.get("/api/v1/me", token=goes).status == 200
        (identity,) = [
            one["id"]
            for one in server.get("/api/v1/tokens", token=stays).json()["items"]
            if one["name"] == "ana"
        ]
        assert server.delete(f"/api/v1/tokens/{identity}", token=stays).status == 200
        assert server.get("/api/v1/me", token=goes).status == 401
    shutil.copy(copy, state)
    with open_state(opened) as held:
        assert held.token_of(goes) is not None
        planted = held.create_token("mallory", "owner", None, "root").secret
    with running_server(study) as server:
        assert server.get("/api/v1/me", token=stays).status == 200
        assert server.get("/api/v1/me", token=goes).status == 401
        assert server.get("/api/v1/me", token=planted).status == 401
        listed = server.get("/api/v1/tokens", token=stays).json()["items"]
        assert {one["name"]: one["state"] for one in listed} == {
            "olga": "live",
            "ana": "revoked",
            "mallory": "revoked",
        }
        told = [line["message"] for line in server.log() if line["level"] == "error"]
        assert len(told) == 2 and any(identity in line for line in told)


@pytest.mark.nightly
def test_a_witness_that_cannot_be_reached_keeps_no_server_from_comparing(study: Path) -> None:
    opened = open_project(study)
    with open_state(opened) as state:
        kept, planted = made(opened, state), state.create_token("eve", "owner", None, "root")
        text = study.read_text(encoding="utf-8")
        assert "[ledger]\n" in text
        study.write_text(text.replace("[ledger]\n", "[ledger]\nwitness = 'stays.csv/heads'\n"))
        away = open_project(study)
        with raises(LedgerError, reason="witness"), away.ledger(read_only=True):
            pass
        (found,) = settle_tokens(away, state)
        assert found.record.id == planted.record.id
        assert state.token_of(planted.secret) is None and state.token_of(kept.secret) is not None


@pytest.mark.nightly
def test_a_ledger_that_was_put_back_says_nothing_of_tokens(study: Path) -> None:
    opened = open_project(study)
    ledger, copy = study.parent / "takifugu.ledger", study.parent / "copy"
    with open_state(opened) as state:
        token = made(opened, state)
        shutil.copy(ledger, copy)
        end_token(opened, state, token.record.id, by="olga")
        shutil.copy(copy, ledger)
        with raises(LedgerSetBack):
            settle_tokens(opened, state)
