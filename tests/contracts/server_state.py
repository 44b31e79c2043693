"""What every backend of a server's state has to keep; `tests/server/state` runs it on each.

The fixtures: ``place``, where a state is to be that does not exist yet; ``clock``, a clock that the
test moves; ``state``, an open state with that clock.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu.errors import InvalidCharge, InvalidFile, NewerLedger
from takifugu.ledger.storage.database import Store, insert
from takifugu.server.access_rules import ROLES, Role
from takifugu.server.state.access_tokens import MAX_SESSIONS, SESSION_LENGTH, TokenRecord
from takifugu.server.state.server_state import ServerState, state_at
from takifugu.server.state.state_store import (
    STEPS,
    InvalidToken,
    StateConflict,
)
from tests.raising import raises

ROOT = Path(takifugu.__file__).parents[2]
DAY = timedelta(days=1)


@dataclass
class Clock:
    """A clock that the test moves."""

    time: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.time

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self.time += by


Opener = Callable[[], ServerState]


def in_another_process(place: str, *arguments: str) -> str:
    """What ``python -m tests.server.state.other_process`` prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tests.server.state.other_process", place, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    return done.stdout.strip()


# --- tokens ---


@pytest.mark.parametrize("role", ROLES)
def test_a_token_says_who_holds_it_and_what_they_may_do(state: ServerState, role: Role) -> None:
    made = state.create_token("ana", role, None, "root")
    assert made.secret.startswith("tf_") and len(made.secret) == 3 + 43
    found = state.token_of(made.secret)
    assert found == made.record == state.token(made.record.id)
    assert found is not None and (found.name, found.role, found.made_by) == ("ana", role, "root")
    assert found.used is None and found.expires is None and found.revoked is None


@pytest.mark.parametrize(
    "sent", ["", "tf_", "tf_x", "Bearer", "tf_" + "a" * 43, "tf_" + "é" * 43, "tf_" + "a" * 10**6]
)
def test_what_is_no_token_is_nobody(state: ServerState, sent: str) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    assert state.token_of(sent) is None
    assert state.token_of(made.record.id) is None  # what is public is no token
    assert state.token_of(made.secret[:-1]) is None
    assert state.token_of(made.secret + "=") is None
    assert state.token_of(made.secret.upper()) is None


def test_a_token_ends_when_it_was_said_to_and_not_before(state: ServerState, clock: Clock) -> None:
    made = state.create_token("ana", "analyst", clock.time + DAY, "root")
    clock.move(DAY - timedelta(microseconds=1))
    assert state.token_of(made.secret) is not None
    clock.move(timedelta(microseconds=1))
    assert state.token_of(made.secret) is None
    clock.move(-DAY)  # a clock that is set back revives nothing
    assert state.token_of(made.secret) is None


def test_a_revoked_token_is_refused_at_once_and_everywhere(
    state: ServerState, another: Opener, place: str
) -> None:
    made, kept = (state.create_token(name, "analyst", None, "root") for name in ("ana", "bo"))
    other = another()
    assert other.token_of(made.secret) == made.record
    session = other.begin_session(made.record)
    assert in_another_process(place, "revoke", made.record.id) == made.record.id
    for one in (state, other):
        assert one.token_of(made.secret) is None
        assert one.session_of(session.secret) is None
        assert one.token_of(kept.secret) == kept.record
    record = state.token(made.record.id)
    assert record is not None and record.revoked is not None
    assert record.revoked_by == "another process"
    assert state.revoke_token(made.record.id, "late") == record  # who revoked it first, did


def test_another_process_knows_a_token_at_once(state: ServerState, place: str) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    assert in_another_process(place, "whose", made.secret) == "ana analyst"
    assert in_another_process(place, "whose", made.secret[:-1]) == "nobody"
    secret = in_another_process(place, "create", "bo", "owner")
    found = state.token_of(secret)
    assert found is not None and (found.name, found.role) == ("bo", "owner")


def test_one_name_has_one_role_among_live_tokens(state: ServerState, clock: Clock) -> None:
    first = state.create_token("ana", "analyst", clock.time + DAY, "root")
    state.create_token("ana", "analyst", None, "root")  # a second one of the same role
    for role in ("owner", "auditor", "witness"):
        with raises(InvalidToken, field="role", reason="two roles"):
            state.create_token("ana", role, None, "root")
    for record in state.tokens():
        state.revoke_token(record.id, "root")
    assert state.create_token("ana", "owner", clock.time + DAY, "root").record.role == "owner"
    clock.move(2 * DAY)
    assert state.create_token("ana", "auditor", None, "root").record.role == "auditor"
    assert state.token_of(first.secret) is None


@pytest.mark.parametrize("spelling", ["Ana", "ANA", "a na"])
def test_a_second_spelling_of_a_live_name_is_refused(state: ServerState, spelling: str) -> None:
    state.create_token("ana", "analyst", None, "root")
    with raises(InvalidToken, field="name", reason="spelling"):
        state.create_token(spelling, "analyst", None, "root")
    assert len(state.tokens()) == 1


def test_two_roles_at_once_are_refused_also_to_processes_that_race(state: ServerState) -> None:
    def make(role: Role) -> str:
        try:
            return state.create_token("ana", role, None, "root").record.role
        except InvalidToken as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, ["owner", "analyst"] * 8))
    assert len({record.role for record in state.tokens()}) == 1
    assert made.count("two roles") == 8


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ana",
        "ana\r\nSet-Cookie: takifugu=x",
        "ana\nx",
        "ana\x00",
        "a\u202eb",
        "\ud800",
        "\u200b",
        "a" * 101,
        7,
        None,
    ],
)
def test_a_name_that_people_or_headers_cannot_carry_is_refused(
    state: ServerState, name: Any
) -> None:
    with raises(InvalidToken, field="name", reason="name"):
        state.create_token(name, "analyst", None, "root")
    assert state.tokens() == []


def test_an_unknown_role_or_a_time_that_has_passed_is_refused(
    state: ServerState, clock: Clock
) -> None:
    with raises(InvalidToken, field="role", reason="role"):
        state.create_token("ana", "admin", None, "root")  # type: ignore[arg-type]
    for expires in (clock.time, clock.time - DAY, datetime(2030, 1, 1)):
        with raises(InvalidToken, field="expires", reason="expires"):
            state.create_token("ana", "analyst", expires, "root")
    with raises(InvalidCharge, field="by"):
        state.create_token("ana", "analyst", None, "")
    assert state.tokens() == []


def test_a_token_that_could_not_be_announced_is_not_made(state: ServerState) -> None:
    announced: list[TokenRecord] = []

    def refuse(record: TokenRecord) -> None:
        announced.append(record)
        raise OSError("the ledger is full")

    with pytest.raises(OSError, match="full"):
        state.create_token("ana", "analyst", None, "root", before=refuse)
    assert state.tokens() == [] and announced[0].name == "ana"
    made = state.create_token("ana", "analyst", None, "root", before=announced.append)
    assert announced[1] == made.record


def test_tokens_are_listed_with_their_last_use(state: ServerState, clock: Clock) -> None:
    made = state.create_token("ana", "analyst", None, "root").record
    assert state.use_is_due(made)
    state.note_use(made)
    clock.move(timedelta(seconds=59))
    assert not state.use_is_due(made)
    used = clock.time - timedelta(seconds=59)
    assert [record.used for record in state.tokens()] == [used]
    clock.move(timedelta(seconds=1))
    assert state.use_is_due(made)
    state.note_use(made)
    assert state.tokens() == [replace(made, used=clock.time)]


def test_an_unknown_token_cannot_be_revoked(state: ServerState) -> None:
    with raises(StateConflict, field="token", reason="unknown"):
        state.revoke_token("beef", "root")


def test_secrets_are_nowhere_in_representations(state: ServerState) -> None:
    made = state.create_token("ana", "analyst", None, "root")
    session = state.begin_session(made.record)
    shown = f"{made} {made!r} {session} {session!r} {state.tokens()}"
    assert made.secret not in shown and session.secret not in shown


# --- browser sessions ---


def test_a_session_is_new_at_every_sign_in(state: ServerState) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    one, two = state.begin_session(record), state.begin_session(record)
    assert one.secret != two.secret and one.csrf != two.csrf
    assert state.session_of(one.secret) == one and state.session_of(two.secret) == two
    assert one.token == record
    for known in (one.secret, two.secret):
        assert one.csrf not in known and known not in one.csrf
    state.end_session(one.secret)
    assert state.session_of(one.secret) is None and state.session_of(two.secret) == two
    assert state.session_of(two.csrf) is None
    assert state.session_of("") is None and state.session_of("é") is None


def test_a_session_ends_after_twelve_hours_or_with_its_token(
    state: ServerState, clock: Clock
) -> None:
    assert timedelta(hours=12) == SESSION_LENGTH
    long = state.create_token("ana", "analyst", None, "root")
    short = state.create_token("bo", "analyst", clock.time + timedelta(hours=1), "root")
    sessions = [state.begin_session(made.record) for made in (long, short)]
    clock.move(timedelta(hours=1))
    assert [state.session_of(one.secret) is not None for one in sessions] == [True, False]
    clock.move(timedelta(hours=11))
    assert state.session_of(sessions[0].secret) is None
    assert state.token_of(long.secret) is not None


def test_a_token_that_has_ended_begins_no_session(state: ServerState) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    state.revoke_token(record.id, "root")
    with raises(StateConflict, field="token", reason="unknown"):
        state.begin_session(record)


def test_a_token_has_so_many_sessions_and_the_first_ends_for_the_next(
    state: ServerState, clock: Clock
) -> None:
    record = state.create_token("ana", "analyst", None, "root").record
    sessions = []
    for _ in range(MAX_SESSIONS + 2):
        clock.move(timedelta(seconds=1))
        sessions.append(state.begin_session(record))
    alive = [state.session_of(one.secret) is not None for one in sessions]
    assert alive == [False] * 2 + [True] * MAX_SESSIONS


# --- the storage ---


def test_it_is_made_by_many_at_once_and_opened_again(another: Opener) -> None:
    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(lambda _: another(), range(6)))
    made = states[0].create_token("ana", "analyst", None, "root")
    assert all(one.token_of(made.secret) == made.record for one in states)


def test_it_is_not_made_when_it_must_not_be(place: str) -> None:
    with raises(InvalidFile, reason="missing"):
        state_at(place, create=False)
    state_at(place).close()
    state_at(place, create=False).close()


def test_one_of_a_later_version_is_refused(place: str) -> None:
    state_at(place).close()
    store = Store(place, read_only=False, wait=5)
    with store.writing() as connection:
        insert(STEPS, "place", "name").run(connection, {"place": 99, "name": "9999 later"})
    store.close()
    with raises(NewerLedger, field="9999 later"):
        state_at(place)
