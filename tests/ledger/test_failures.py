"""Storage that fails, or holds something else: a clear error, and no receipt."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Timer
from urllib.parse import quote

import pytest

from takifugu.errors import (
    InvalidFile,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    LedgerUnwritable,
    NotALedger,
)
from takifugu.ledger import Ledger, open_ledger
from tests.contracts.ledger import paid, worker
from tests.ledger import postgres
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

NOBODY = 65534


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget, closed."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
    return folder / "ward.ledger"


@pytest.fixture
def disk(folder: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    where = folder / "disk"
    where.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("needs the right to mount a small disk")
    small = (mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where))
    if subprocess.run(small, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip("needs the right to mount a small disk")
    try:
        yield where
    finally:
        subprocess.run((umount, "--lazy", str(where)), check=True)  # noqa: S603


def until_it_is_full(ledger: Ledger, disk: Path) -> None:
    """Charge until there is no room; nothing that was acknowledged is lost, and room helps."""
    ledger.set_budget("ward", 2)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - 2**18)))
    keys = set[str]()

    def charge_on() -> None:
        for _ in range(10**4):
            planned = charge("1/100000", (0, 9), ["fr"])
            ledger.charge(planned, DOUBLING)
            keys.add(planned.key)

    with raises(LedgerUnwritable, reason="full"):
        charge_on()
    assert keys and paid(ledger) == keys
    ballast.unlink()
    ledger.charge(charge("0.25"), DOUBLING)
    assert ledger.verify().sound


def test_no_room_on_the_disk_gives_no_receipt_and_loses_none(
    disk: Path, opened: Callable[..., Ledger]
) -> None:
    until_it_is_full(opened(disk / "ward.ledger"), disk)


def test_a_disk_that_becomes_read_only_gives_no_receipt_and_loses_none(disk: Path) -> None:
    path, planned = disk / "ward.ledger", charge("0.25")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(planned, DOUBLING)
    remount = (str(shutil.which("mount")), "-o", "remount,ro", str(disk))
    subprocess.run(remount, check=True)  # noqa: S603
    with raises(LedgerUnwritable, reason="read-only"):
        open_ledger(path)
    subprocess.run((*remount[:2], "remount,rw", str(disk)), check=True)  # noqa: S603
    with open_ledger(path) as ledger:
        assert paid(ledger) == {planned.key} and ledger.verify().sound
        ledger.charge(charge("0.25"), DOUBLING)


@pytest.mark.nightly
def test_no_room_for_the_tables_of_a_server_gives_no_receipt_and_loses_none(
    disk: Path, server: postgres.Cluster, opened: Callable[..., Ledger]
) -> None:
    import psycopg

    disk.parent.chmod(0o711)
    shutil.chown(disk, postgres.OWNER)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
    url = server.address() + quote(" -c default_tablespace=small")
    ledger = opened(url)
    until_it_is_full(ledger, disk)
    ledger.close()
    schema = url.partition("search_path%3D")[2].partition("%20")[0]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute("DROP TABLESPACE small")


@pytest.mark.nightly
def test_a_role_that_may_only_read_gives_no_receipt(
    server: postgres.Cluster, opened: Callable[..., Ledger]
) -> None:
    import psycopg

    url = server.address()
    ledger = opened(url)
    ledger.set_budget("ward", 2)
    schema = url.partition("search_path%3D")[2]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    reader = opened(url.replace("postgres@", "reader@", 1))
    with raises(LedgerUnwritable, reason="read-only"):
        reader.charge(charge("0.25"), DOUBLING)
    assert reader.spent("ward", DOUBLING) == 0 and not paid(ledger)


@pytest.mark.nightly
def test_a_server_that_stops_gives_no_receipt_until_it_is_back() -> None:
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as server, open_ledger(server.address(), wait=5) as ledger:
        ledger.set_budget("ward", 2)
        planned = charge("0.25")
        ledger.charge(planned, DOUBLING)
        server.stop()
        with raises(LedgerUnavailable):
            ledger.charge(charge("0.25"), DOUBLING)
        server.restart()
        assert paid(ledger) == {planned.key} and ledger.verify().sound
        assert ledger.charge(charge("0.25"), DOUBLING).may_release


@pytest.mark.nightly
@pytest.mark.parametrize("frozen", ["while open", "before it is opened"])
def test_a_server_that_is_frozen_is_given_up_and_gives_no_receipt(frozen: str) -> None:
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as server:
        address = server.address()
        with open_ledger(address, wait=0.5) as ledger:
            ledger.set_budget("ward", 2)
            planned = charge("0.25")
            if frozen == "while open":
                attempt: Callable[[], object] = partial(ledger.charge, planned, DOUBLING)
            else:
                attempt = partial(open_ledger, address, wait=0.5)
            with server.frozen(), raises(LedgerUnavailable):
                attempt()
            assert ledger.charge(planned, DOUBLING).may_release
            assert paid(ledger) == {planned.key} and ledger.verify().sound


@pytest.mark.nightly
def test_a_full_disk_gives_no_receipt_and_loses_none(path: Path) -> None:
    full = worker("full", str(path), "1/100000", "400000")
    *keys, error = full.communicate()[0].splitlines()
    assert full.returncode == 0 and error.startswith("LedgerUnwritable: "), error
    assert "nothing was released" in error
    with open_ledger(path) as ledger:
        assert len(keys) > 5 and set(keys) <= paid(ledger)
        assert len(paid(ledger)) == len(keys) + 1  # the failed one is not among them
        assert ledger.verify().sound
        ledger.charge(charge("0.25"), DOUBLING)


@pytest.mark.parametrize("folder_too", [False, True])
def test_a_file_without_the_right_to_write_gives_no_receipt(path: Path, folder_too: bool) -> None:
    before = path.read_bytes()
    path.chmod(0o444)
    path.parent.chmod(0o555 if folder_too else 0o777)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(NOBODY)
        with pytest.raises(LedgerError) as refused, open_ledger(path) as ledger:
            ledger.charge(charge("0.25"), DOUBLING)
    finally:
        os.seteuid(user)
        path.parent.chmod(0o777)
    assert isinstance(refused.value, LedgerUnwritable | LedgerUnavailable)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_looked_into_is_said_to_be_so(path: Path) -> None:
    path.parent.chmod(0o700)
    user = os.geteuid()
    inside = path.parent / "inside"
    inside.mkdir()
    path.parent.chmod(0o700 if user == 0 else 0)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        with raises(LedgerUnavailable, reason="permission"):
            open_ledger(inside / "ward.ledger")
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough" * 40, b"x", b"x" * 511, None]
)
def test_something_else_is_refused_and_left_alone(folder: Path, content: bytes | None) -> None:
    path = folder / "other"
    if content is None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE patients (name TEXT)")
        other.close()
    else:
        path.write_bytes(content)
    with raises(NotALedger, reason="foreign"):
        open_ledger(path)
    if content is not None:
        assert path.read_bytes() == content


def test_a_damaged_page_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises((LedgerDamaged, NotALedger)), open_ledger(path) as ledger:
        ledger.charge(charge("0.25"), DOUBLING)


def test_text_that_is_none_any_more_is_damage_and_is_not_quoted(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"query":{"name":"stays"}', b'"query":{"name":"st\xc3(s"}'))
    with raises(LedgerDamaged, reason="storage") as raised, open_ledger(path) as ledger:
        ledger.verify()
    assert "what should be text is not" in str(raised.value)
    assert "query" not in str(raised.value)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (":memory:", "memory"),
        ("", "memory"),
        ("mysql://somewhere/x", "backend"),
        ("missing/x.ledger", "folder"),
        (".", "special file"),
        ("://", "address"),
    ],
)
def test_a_malformed_address_is_refused(
    where: str, reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with raises(InvalidFile, field="ledger", reason=reason):
        open_ledger(where)
    assert not list(folder.iterdir())


def test_a_server_that_is_not_there_is_said_to_be_so(folder: Path) -> None:
    with raises(LedgerUnavailable, reason="unreachable") as refused:
        open_ledger(f"postgresql://me:secret@/db?host={folder}")
    assert "secret" not in str(refused.value)


def test_a_ledger_is_not_carried_across_a_fork(path: Path) -> None:
    with open_ledger(path) as ledger:
        child = os.fork()
        if child == 0:
            try:
                ledger.charge(charge("0.25"), DOUBLING)
            except LedgerUnavailable:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert ledger.spent("ward", DOUBLING) == 0.5


@pytest.mark.nightly
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_keeps_every_letter_or_says_that_it_cannot(
    server: postgres.Cluster, encoding: str
) -> None:
    import psycopg

    name = f"in_{encoding.lower()}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    with open_ledger(server.url.replace("/postgres?", f"/{name}?", 1)) as ledger:
        ledger.set_budget("né", 2)
        ledger.charge(charge("0.25", dataset="né"), DOUBLING)
        assert ledger.spent("né", DOUBLING) == 0.5 and ledger.verify().sound
        if encoding == "LATIN1":
            with raises(LedgerUnwritable, reason="encoding"):
                ledger.set_budget("東京", 2)
            assert ledger.verify().sound


def test_a_file_that_others_begin_to_write_without_a_log_is_waited_for(folder: Path) -> None:
    raw = sqlite3.connect(folder / "ward.ledger", isolation_level=None, check_same_thread=False)
    raw.execute("PRAGMA user_version=1")  # a file without a write-ahead log
    raw.execute("BEGIN IMMEDIATE")
    with raises(LedgerUnavailable, reason="locked"):
        open_ledger(folder / "ward.ledger", wait=0.1)
    later = Timer(0.2, raw.execute, ["ROLLBACK"])
    later.start()
    with open_ledger(folder / "ward.ledger", wait=60) as ledger:
        assert ledger.verify().sound
    later.join()
    raw.close()


def test_a_child_that_closes_a_ledger_leaves_it_open_for_its_parent(ledger: Ledger) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    child = os.fork()
    if child == 0:
        ledger.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ledger.charge(charge("0.25"), DOUBLING).may_release and ledger.verify().sound


def test_charges_from_many_threads_add_up(folder: Path, opened: Callable[..., Ledger]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ledger = opened(folder / "ward.ledger", wait=60)
    ledger.set_budget("ward", 1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ledger.charge(charge("1/64", (0, 9)), DOUBLING), range(32)))
    assert ledger.remaining("ward", DOUBLING) == 0 and ledger.verify().sound


@pytest.mark.parametrize(("what", "reason"), [("file", "exists"), ("folder", "unwritable")])
def test_an_export_never_overwrites(path: Path, what: str, reason: str) -> None:
    target = path.parent / ("there" if what == "file" else "none/there")
    if what == "file":
        target.write_text("precious")
    with open_ledger(path) as ledger, raises(InvalidFile, field="export", reason=reason):
        ledger.export(target)
    assert what == "folder" or target.read_text() == "precious"
