"""Where the state of a server is kept, who can read it, and what is in it."""

import os
import stat
from pathlib import Path

import pytest

from takifugu.errors import InvalidFile, NotALedger
from takifugu.ledger.storage.database import Store
from takifugu.project.project import init_project, open_project
from takifugu.server.state.server_state import open_state, state_at
from tests.ledger import postgres
from tests.raising import raises


def test_it_lies_beside_the_project_file_for_its_owner_alone(folder: Path) -> None:
    project = init_project(folder / "study")
    before = os.umask(0)
    try:
        with open_state(project) as state:
            state.create_token("ana", "analyst", None, "root")
            made = sorted(path for path in project.folder.glob("takifugu.server*"))
            assert made[0].name == "takifugu.server"
            for path in made:
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    finally:
        os.umask(before)


def test_a_token_and_a_session_are_nowhere_in_the_file(folder: Path) -> None:
    """Only their hashes: the bytes of the database and of its log are searched."""
    project = init_project(folder / "study")
    with open_state(project) as state:
        made = state.create_token("ana", "analyst", None, "root")
        session = state.begin_session(made.record)
        state.note_use(made.record)
        sought = [made.secret, made.secret[3:], session.secret, session.csrf]
        for path in project.folder.iterdir():
            content = path.read_bytes()
            for secret in sought:
                assert secret.encode() not in content
                assert secret[:20].encode() not in content
        state.revoke_token(made.record.id, "root")
    for path in project.folder.iterdir():
        assert not any(secret.encode() in path.read_bytes() for secret in sought)


@pytest.mark.nightly
def test_with_a_ledger_in_postgresql_it_is_beside_the_ledger(
    folder: Path, server: postgres.Cluster
) -> None:
    address = server.address()
    project = init_project(folder / "study", ledger=address)
    with open_state(project) as state:
        made = state.create_token("ana", "analyst", None, "root")
        session = state.begin_session(made.record)
        assert state.name == project.ledger_place or not state.in_file
    assert not list(project.folder.glob("takifugu.server*"))
    with open_state(open_project(project.folder), create=False) as again:
        assert again.token_of(made.secret) == made.record
    with project.ledger() as ledger:
        assert ledger.verify().sound
    import psycopg

    with psycopg.connect(address) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        ).fetchall()
        for (table,) in tables:
            rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()  # noqa: S608
            assert not any(
                secret in row[0] for row in rows for secret in (made.secret, session.secret)
            )
    assert {"takifugu_server_tokens", "takifugu_events"} <= {table for (table,) in tables}


def test_another_database_is_left_alone(folder: Path) -> None:
    place = folder / "takifugu.server"
    store = Store(place, read_only=False, wait=5)
    store.make_file()
    with store.writing() as connection:
        connection.raw.execute("CREATE TABLE other (id INTEGER)")
    store.close()
    before = place.read_bytes()
    with raises(NotALedger, reason="foreign"):
        state_at(place)
    assert place.read_bytes() == before


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused(folder: Path, kind: str) -> None:
    place = folder / "takifugu.server"
    place.mkdir() if kind == "folder" else os.mkfifo(place)
    with raises(InvalidFile, reason="special file"):
        state_at(place)
