"""``takifugu report sign``, ``verify`` and ``key``: a report to stand for, and to check."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from takifugu._core.keys import state_folder
from takifugu.cli import exit_status
from takifugu.cli.shared_options import InvalidOption
from takifugu.errors import InvalidFile
from takifugu.reports.report_signature import SignatureRefused
from tests.cli.running import Call
from tests.cli.test_report import ready

__all__ = ["ready"]  # the fixture that `study` copies


@pytest.fixture
def signed(study: Path, do: Call) -> Path:
    assert do("report").status == 0
    assert do("report key own.key").status == 0
    ran = do("report sign report.html --key own.key --signer Ana-Lyst")
    assert ran.status == 0 and "Ana-Lyst" in ran.err
    return study


@pytest.mark.nightly
@pytest.mark.usefixtures("signed")
def test_a_signed_report_is_verified_with_the_key_and_the_export(do: Call) -> None:
    assert do("ledger export takifugu.ledger events.jsonl").status == 0
    facts = do("report verify report.html --key own.key.pub --ledger events.jsonl --json").json()
    head = do("ledger verify --json").json()["head"]
    assert facts["valid"] is True and facts["signer"] == "Ana-Lyst"
    assert (facts["seq"], facts["hash"]) == (head["seq"], head["hash"])
    assert facts["events"] == head["seq"]


@pytest.mark.nightly
@pytest.mark.usefixtures("signed")
def test_it_stays_valid_while_the_ledger_goes_on(do: Call) -> None:
    assert do("budget set stays 100").status == 0
    assert do("ledger export takifugu.ledger events.jsonl").status == 0
    ran = do("report verify report.html --key own.key.pub --ledger events.jsonl")
    assert ran.status == 0 and "valid" in ran.out


def test_an_older_report_in_place_of_the_newest_is_refused_by_who_knows_a_later_event(
    signed: Path, do: Call
) -> None:
    verify = "report verify report.html --key own.key.pub"
    head = do("ledger verify --json").json()["head"]["seq"]
    assert do("ledger export takifugu.ledger then.jsonl").status == 0
    identity = json.loads((signed / "then.jsonl").read_text().split("\n")[0])["body"]["ledger"]
    (signed / "head").symlink_to(state_folder() / "heads" / identity)
    witness = "head"
    fresh = f"{verify} --since {head} --ledger then.jsonl --witness {witness} --json"
    assert do(fresh).json()["newest"] is True
    assert do("budget set stays 100").status == 0
    assert do("ledger export takifugu.ledger now.jsonl").status == 0
    assert do(f"{verify} --ledger now.jsonl --json").json()["newest"] is False
    for line in (f"--since {head + 1}", f"--ledger now.jsonl --witness {witness}"):
        ran = do(f"{verify} {line}")
        assert ran.status == exit_status.FAILED
        assert isinstance(ran.error, SignatureRefused) and ran.error.reason == "older", line
    assert isinstance(do(f"{verify} --witness {witness}").error, InvalidFile | InvalidOption)


@pytest.mark.nightly
def test_a_changed_report_and_another_ledger_are_refused(
    signed: Path, do: Call, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert do("init other").status == 0
    assert do("ledger export other/takifugu.ledger events.jsonl").status == 0
    ran = do("report verify report.html --key own.key.pub --ledger events.jsonl")
    assert ran.status == exit_status.FAILED
    assert isinstance(ran.error, SignatureRefused) and ran.error.reason == "ledger"
    page = signed / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("ledger", "Ledger"), encoding="utf-8")
    ran = do("report verify report.html --key own.key.pub")
    assert ran.status == exit_status.FAILED
    assert isinstance(ran.error, SignatureRefused) and ran.error.reason == "report"


@pytest.mark.nightly
def test_a_signature_that_is_there_is_left_alone(signed: Path, do: Call) -> None:
    before = (signed / "report.html.sig").read_bytes()
    ran = do("report sign report.html --key own.key")
    assert isinstance(ran.error, InvalidFile) and ran.error.field == "--out"
    assert (signed / "report.html.sig").read_bytes() == before


@pytest.mark.usefixtures("signed")
def test_what_cannot_be_signed_is_named(do: Call) -> None:
    for line, field in (
        ("report sign nothing.html --key own.key", "REPORT"),
        ("report sign stays.csv --key own.key", "report"),
        ("report sign report.html --key nothing.key --out new.sig", "--key"),
        ("report verify report.html --key nothing.pub", "--key"),
        ("report verify report.html --key own.key", "key"),
        ("report verify report.html --key own.key.pub --signature nothing", "--signature"),
    ):
        ran = do(line)
        assert isinstance(ran.error, InvalidFile) and ran.error.field == field, line
        assert ran.status == exit_status.MISTAKE


@pytest.mark.nightly
def test_a_dataset_called_like_a_command_can_still_be_named(signed: Path, do: Call) -> None:
    assert do("report write stays --out two.html").status == 0
    assert do("report stays --out three.html").status == 0
    assert (signed / "two.html").read_bytes() == (signed / "three.html").read_bytes()


def test_help_names_the_commands(do: Call) -> None:
    assert {"write", "sign", "verify", "key"} <= set(do("report --help").out.split())
