"""`takifugu serve --check`: every misconfiguration at once, and nothing is written."""

import asyncio
import os
import shutil
import sqlite3
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.project.project import open_project
from takifugu.server.access.tokens import end_token, make_token
from takifugu.server.operation import preflight
from takifugu.server.operation.health import CHECKS, Readiness
from takifugu.server.operation.preflight import (
    Finding,
    certificate_findings,
    check_server,
    free_memory,
    open_data,
    private_file,
    same_disk,
    unwritable_by_others,
)
from takifugu.server.state.server_state import open_state
from tests.cli.running import call, run
from tests.ledger.postgres import Cluster
from tests.server.certificates import new_certificate
from tests.server.projects import small_project
from tests.server.running import new_token, write_settings


def levels(project: Path, **options: Any) -> dict[str, set[str]]:
    """The levels of the findings by name."""
    found: dict[str, set[str]] = {}
    for one in check_server(project, options):
        found.setdefault(one.name, set()).add(one.level)
        assert one.found and (one.advice or one.level == "ok")
    return found


def wrong_of(project: Path, **options: Any) -> set[str]:
    return {name for name, seen in levels(project, **options).items() if "wrong" in seen}


@pytest.fixture
def served(project: Path) -> Path:
    """A project that is ready to be served, in SQLite and in PostgreSQL."""
    new_token(project, "owner", "olga")
    return project


@pytest.mark.nightly
def test_a_good_project_has_nothing_wrong(served: Path) -> None:
    found = levels(served)
    assert not any("wrong" in seen for seen in found.values()), check_server(served, {})
    looked = {"packages", "project", "settings", "ledger", "clock", "witness", "tokens", "files"}
    assert looked | {"datasets", "user", "address", "machine"} <= set(found)


@pytest.mark.nightly
def test_code_of_others_in_a_database_is_named(tmp_path: Path, cluster: Cluster) -> None:
    import psycopg

    address = cluster.address()
    schema = address.partition("search_path%3D")[2]
    project = small_project(tmp_path / "a study", ledger=address)
    new_token(project, "owner", "olga")
    assert levels(project)["database"] == {"ok"}
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"GRANT CREATE ON SCHEMA {schema} TO PUBLIC")
        assert levels(project)["database"] == {"warning"}
        connection.execute("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'")
        connection.execute(
            "CREATE TRIGGER t BEFORE DELETE ON takifugu_events FOR EACH ROW EXECUTE FUNCTION f()"
        )
    assert {"database", "ledger"} <= wrong_of(project)  # no ledger with a trigger is opened


def test_data_that_everybody_can_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "diary.csv"
    path.write_text("user\n")
    path.chmod(0o640)
    assert list(open_data("diary", path)) == []
    path.chmod(0o644)
    reached = all(above.stat().st_mode & stat.S_IXOTH for above in path.resolve().parents)
    assert len(list(open_data("diary", path))) == (1 if reached else 0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        there = shutil.copy(path, folder)
        (found,) = open_data("diary", Path(there))
        assert found.level == "warning" and str(there) in found.found


@pytest.mark.nightly
def test_a_missing_extra_is_a_note(monkeypatch: pytest.MonkeyPatch, served: Path) -> None:
    monkeypatch.setitem(preflight.REPORTS, "no_such_module_here", "no-such-package")
    found = [one for one in check_server(served, {}) if "no-such-package" in one.found]
    assert [one.level for one in found] == ["warning"]


def test_nothing_is_written(study: Path) -> None:
    def files() -> set[str]:
        logs = ("-wal", "-shm")  # which SQLite makes for whoever reads
        return {path.name for path in study.parent.rglob("*") if not path.name.endswith(logs)}

    before, text = files(), study.read_bytes()
    assert "tokens" in wrong_of(study)
    assert files() == before and study.read_bytes() == text


@pytest.mark.nightly
def test_everything_that_is_wrong_is_told_at_once(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(study.parent, 0o777)  # noqa: S103
    os.chmod(study.parent / "takifugu.ledger", 0o644)
    write_settings(study, host="0.0.0.0", certificate="none.pem", key="none.key")  # noqa: S104
    found = wrong_of(study)
    assert {"tokens", "files", "tls"} <= found
    ran = call(study.parent, monkeypatch, "serve", "--check")
    assert ran.status == 1 and "chmod 600" in ran.out and "token create" in ran.out
    ran = call(study.parent, monkeypatch, "serve", "--check", "--json")
    assert ran.status == 1
    document = ran.__class__(0, ran.out, ran.err).json()
    assert document["ok"] is False
    assert {one["name"] for one in document["checks"] if one["level"] == "wrong"} == found


@pytest.mark.nightly
def test_the_command_says_when_all_is_well(study: Path) -> None:
    new_token(study, "owner", "olga")
    ran = run(study.parent, "serve", "--check", "--json")
    assert ran.status == 0 and ran.json()["ok"] is True and ran.err == ""


def test_a_project_that_cannot_be_read_is_one_finding(study: Path) -> None:
    study.write_text("[ledger]\nplace = 1\n", encoding="utf-8")
    assert wrong_of(study) == {"project"}
    study.unlink()
    assert wrong_of(study) == {"project"}


@pytest.mark.nightly
def test_a_ledger_that_is_gone_or_another_or_damaged(study: Path, tmp_path: Path) -> None:
    ledger = study.parent / "takifugu.ledger"
    kept = tmp_path / "kept"
    shutil.copy(ledger, kept)
    ledger.unlink()
    assert "ledger" in wrong_of(study)
    ledger.write_bytes(b"this is no database, and long enough to be looked at" * 100)
    assert "ledger" in wrong_of(study)
    shutil.copy(kept, ledger)
    assert "ledger" not in wrong_of(study)
    open_project(study).set_budget("stays", "9")
    with sqlite3.connect(ledger) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in ("takifugu.ledger-wal", "takifugu.ledger-shm"):
        (study.parent / name).unlink(missing_ok=True)
    shutil.copy(kept, ledger)  # an older copy
    assert "ledger" in wrong_of(study)


def test_a_clock_that_is_behind_is_told(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) - timedelta(days=400)

    monkeypatch.setattr(preflight, "datetime", Early)
    assert "clock" in wrong_of(study)


@pytest.mark.nightly
def test_owners_without_a_token_that_works_are_told(study: Path) -> None:
    now = datetime.now(UTC)
    assert "tokens" in wrong_of(study)
    new_token(study, "analyst", "ana")
    assert "tokens" in wrong_of(study)
    project, state_file = open_project(study), study.parent / "takifugu.server"
    with open_state(project) as state:
        ends = now + timedelta(days=3)
        soon = make_token(project, state, "olga", "owner", ends, by="a test").record
    assert levels(study)["tokens"] == {"ok", "warning"}  # it ends soon
    kept = state_file.read_bytes()
    with open_state(project) as state:
        end_token(project, state, soon.id, by="a test")
    assert "tokens" in wrong_of(study)
    state_file.write_bytes(kept)  # an old copy is put back
    found = [one for one in check_server(study, {}) if one.name == "tokens"]
    assert [one.level for one in found] == ["warning", "wrong"]  # of the token, and of owners
    assert soon.id in found[0].found and "revoked" in found[0].found


@pytest.mark.nightly
def test_a_disk_that_is_nearly_full_is_told_and_not_ready(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which folder is on which disk is the machine's; how full the disks are is not."""
    project, free = open_project(study), 2**40
    asked: list[Path] = []

    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(total=2**41, free=free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert levels(study)["disk"] == {"ok"} and not preflight.is_full(project)
    assert study.parent / "takifugu.ledger" in asked and study.parent in asked
    free = preflight.LOW_DISK_BYTES - 1
    assert levels(study)["disk"] == {"warning"} and not preflight.is_full(project)
    free = preflight.FULL_DISK_BYTES - 1
    assert "disk" in wrong_of(study) and preflight.is_full(project)
    services: Any = SimpleNamespace(
        project=lambda: project, pool=SimpleNamespace(able=True), state=open_state(project)
    )
    with services.state:
        checks = asyncio.run(Readiness(services).checks())
        assert set(checks) == set(CHECKS) and [n for n, well in checks.items() if not well] == [
            "disk"
        ]
        free = preflight.FULL_DISK_BYTES
        assert all(asyncio.run(Readiness(services).checks()).values())


def test_disks_of_the_project_the_ledger_and_the_witness_are_watched(study: Path) -> None:
    text = study.read_text(encoding="utf-8")
    assert "[ledger]" in text
    study.write_text(text.replace("[ledger]", "[ledger]\nwitness = '../elsewhere/heads'"))
    places = preflight.written_places(open_project(study))
    assert set(places) == {"project", "ledger", "state", "witness"}
    assert places["witness"].parent.name == "elsewhere"
    free, total = preflight.room(places["witness"])  # it is not there yet
    assert 0 < free <= total


@pytest.mark.nightly
def test_a_dataset_without_budget_or_acceptance_is_a_warning(study: Path) -> None:
    text = study.read_text(encoding="utf-8")
    study.write_text(text.replace("[dataset.stays]", "[dataset.stays]\nuncertainty = 0.1"))
    assert levels(study)["datasets"] == {"warning"}


@pytest.mark.parametrize(
    ("mode", "group_may_read", "level"),
    [
        (0o600, False, None),
        (0o400, False, None),
        (0o640, False, "wrong"),
        (0o640, True, "warning"),
        (0o644, True, "wrong"),
        (0o660, True, "wrong"),
        (0o604, False, "wrong"),
        (0o602, False, "wrong"),
    ],
)
def test_files_with_secrets_are_for_their_owner(
    tmp_path: Path, mode: int, group_may_read: bool, level: str | None
) -> None:
    path = tmp_path / "secret"
    path.touch()
    path.chmod(mode)
    found = list(private_file(path, group_may_read=group_may_read))
    assert [one.level for one in found] == ([] if level is None else [level])


def test_folders_that_others_can_write_are_told_however_far_above(tmp_path: Path) -> None:
    below = tmp_path / "open" / "closed" / "study"
    below.mkdir(parents=True)
    file = below / "takifugu.toml"
    file.touch(mode=0o644)
    before = list(unwritable_by_others(file))
    (tmp_path / "open").chmod(0o777)
    found = [one for one in unwritable_by_others(file) if one not in before]
    assert [one.level for one in found] == ["wrong"] and str(tmp_path / "open") in found[0].found
    (tmp_path / "open").chmod(0o1777)  # sticky, as /tmp: nobody can replace what is not theirs
    assert list(unwritable_by_others(file)) == before
    file.chmod(0o664)
    assert [one for one in unwritable_by_others(file) if one not in before]


def test_one_disk_is_told_from_another(tmp_path: Path) -> None:
    assert same_disk(tmp_path / "a" / "b", tmp_path)
    shared = Path("/dev/shm")  # noqa: S108
    if shared.is_dir() and shared.stat().st_dev != tmp_path.stat().st_dev:
        assert not same_disk(tmp_path, shared / "not there")


@pytest.mark.nightly
def test_a_witness_on_the_disk_of_the_ledger_is_a_warning(study: Path) -> None:
    place = study.parent / "witness"
    text = study.read_text(encoding="utf-8")
    study.write_text(text.replace("[ledger]", f'[ledger]\nwitness = "{place}"', 1))
    found = {one.name: one for one in check_server(study, {}) if one.level != "ok"}
    assert found["witness"].level == "warning" and not place.exists()
    assert found["ledger"].level == "wrong"  # the witness is new, and the owner must begin it
    assert "begin-witness" in found["ledger"].found


def findings(folder: Path, origin: str | None = None, **made: Any) -> list[Finding]:
    return list(certificate_findings(*new_certificate(folder, **made), origin, datetime.now(UTC)))


def test_certificates_are_looked_through(tmp_path: Path) -> None:
    assert [one.level for one in findings(tmp_path)] == ["ok"]
    assert [one.level for one in findings(tmp_path, days=3)] == ["warning"]
    assert [one.level for one in findings(tmp_path, days=-3)] == ["wrong"]
    assert [one.level for one in findings(tmp_path, days=90)] == ["wrong"]  # begins in a month
    assert [one.level for one in findings(tmp_path, "https://localhost:8461")] == ["ok"]
    assert [one.level for one in findings(tmp_path, "https://127.0.0.1")] == ["ok"]
    (other,) = findings(tmp_path, "https://stats.example.org")
    assert other.level == "wrong" and "stats.example.org" in other.found


@pytest.mark.nightly
def test_a_wrong_certificate_is_a_finding_and_ends_no_other_look(study: Path) -> None:
    one, other = new_certificate(study.parent, "one"), new_certificate(study.parent, "other")
    new_token(study, "owner", "olga")
    assert wrong_of(study, certificate=one.certificate, key=other.key) == {"tls"}
    assert wrong_of(study, certificate=one.certificate) == {"settings"}
    one.key.chmod(0o644)
    assert wrong_of(study, certificate=one.certificate, key=one.key) == {"files"}
    expired = new_certificate(study.parent, "expired", days=-1)
    assert wrong_of(study, certificate=expired.certificate, key=expired.key) == {"tls"}


def test_settings_that_contradict_are_all_told(study: Path) -> None:
    new_token(study, "owner", "olga")
    write_settings(study, host="0.0.0.0", key="k.pem", proxies=["10.0.0.5"])  # noqa: S104
    found = [one for one in check_server(study, {}) if one.name == "settings"]
    assert [one.level for one in found].count("wrong") == 2
    assert [one.level for one in found].count("warning") == 1  # no origin


@pytest.mark.nightly
def test_a_signing_key_that_is_none_is_told(study: Path) -> None:
    new_token(study, "owner", "olga")
    (study.parent / "sign.key").write_text("no key")
    (study.parent / "sign.key").chmod(0o600)
    write_settings(study, signing_key="sign.key")
    assert wrong_of(study) == {"signing"}
    (study.parent / "sign.key").unlink()
    os.mkfifo(study.parent / "sign.key", 0o600)  # nobody writes to it
    assert wrong_of(study) == {"signing"}


@pytest.mark.nightly
def test_too_much_for_the_machine_is_told(study: Path) -> None:
    new_token(study, "owner", "olga")
    assert "warning" in levels(study, workers=256)["machine"]
    memory = free_memory()
    assert memory is None or memory > 0


def test_a_missing_package_is_told(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "PACKAGES", {"no_such_module": "no-such-package"})
    (found, *_) = check_server(study, {})
    assert found.level == "wrong" and "takifugu[server]" in found.advice
