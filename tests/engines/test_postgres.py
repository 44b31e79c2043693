"""The contract on PostgreSQL, in a server of its own that lives as long as these tests."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.engines import DatabaseFailed, Source, open_engine
from takifugu.engines.postgres import PostgresBackend
from tests.contracts.engines import *  # noqa: F403 - the contract's tests are tests of this module
from tests.contracts.engines import KINDS, Store, Stored, opened

TYPES = {
    "text": "text",
    "whole": "integer",
    "real": "double precision",
    "time": "timestamp",
    "zoned": "timestamptz",
}
WIDE = {"visits": "bigint", "unix": "bigint"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a new, empty server, reached through a socket in a short path."""
    pytest.importorskip("psycopg", reason="needs the package psycopg")
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("needs PostgreSQL: initdb and pg_ctl are not on the path")
    owner: dict[str, Any] = {}
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # noqa: S108 - sockets need a short path
    os.chmod(folder, 0o700)
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("needs a user postgres to run PostgreSQL as, when run by root")
        owner = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    data, log = f"{folder}/d", f"{folder}/log"
    try:
        _run(
            "initdb",
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
            "-E",
            "UTF8",
            "-D",
            data,
            **owner,
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        _run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start", **owner)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            _run("pg_ctl", "-D", data, "-m", "immediate", "stop", **owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: str, **owner: Any) -> None:
    subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **owner
    )


@pytest.fixture(scope="module")
def store(server: str) -> Store:
    def put(name: str, table: Sequence[Mapping[str, Any]], folder: Path) -> Stored:
        import psycopg

        where = f'"{name} of {folder.name}"'
        columns = ", ".join(f'"{c}" {WIDE.get(c, TYPES[kind])}' for c, kind in KINDS.items())
        with psycopg.connect(server) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {where} ({columns})".encode())
            with cursor.copy(f"COPY {where} FROM STDIN".encode()) as copy:
                for row in table:
                    copy.write_row([row[column] for column in KINDS])
        return Source("postgres", table=f"public.{where[1:-1]}", url=server), {}

    return put


def test_the_connection_cannot_write(stored: Stored) -> None:
    import psycopg

    with opened(stored) as engine:
        backend = engine._backend
        assert isinstance(backend, PostgresBackend)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            backend._connection.execute("CREATE TABLE mine ()")


def test_a_server_that_is_not_there_is_one_clear_line(stored: Stored) -> None:
    with opened(stored) as engine:
        declaration = engine.declaration
    away = Source("postgres", table="visits", url="postgresql:///x?host=/nowhere")
    with pytest.raises(DatabaseFailed, match=r"^table visits of postgres could not be opened"):
        open_engine(replace(declaration, source=away))


def test_the_fingerprint_of_a_table_says_what_it_leaves_out(stored: Stored) -> None:
    with opened(stored) as engine:
        found = engine.fingerprint()
    assert "not the values" in found.covers and found.changed is None
