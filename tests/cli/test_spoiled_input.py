"""What hostile inputs have found: each is one line now, and nothing is left behind."""

import gzip
from pathlib import Path

import pytest

from takifugu.cli.shared_options import InvalidOption
from takifugu.declarations import DatabaseFailed
from takifugu.errors import InvalidFile, InvalidPrior, InvalidWorld, LedgerError
from takifugu.priors import write_prior
from takifugu.project.policy import InvalidProject
from takifugu.server.state.state_store import StateConflict
from takifugu.session.releases import STAYS_CHARGED
from tests.cli.running import Ran, call
from tests.priors.families import PRIORS
from tests.session.study import write_data
from torture.inputs.canary_study import make_study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_data(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for line in ("init", "dataset add stays stays.toml", "token create --role owner --name olga"):
        assert call(tmp_path, monkeypatch, *line.split()).status == 0
    return tmp_path


def refused(ran: Ran, kind: type[Exception] | None = None, field: str = "") -> None:
    assert ran.status in (2, 4) and ran.out == ""
    assert ran.err.startswith("takifugu: ") and ran.err.count("\n") == 1, ran.err
    if kind is not None:
        assert isinstance(ran.error, kind) and getattr(ran.error, "field", "") == field


def test_a_choice_that_is_missing_is_one_line(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(call(study, monkeypatch, "token", "create", "--name", "ana"))


def test_bytes_that_are_no_text_name_no_ledger(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0\udcff", "é", "\n"):
        refused(call(study, monkeypatch, "witness", "forget", name), StateConflict, "ledger")


def test_bytes_that_are_no_text_name_no_token(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("be\udcff", "é", "\n"):
        refused(call(study, monkeypatch, "token", "revoke", name), StateConflict, "token")


def test_a_wrong_number_is_found_before_a_table_is_made(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = ("prior", "new", "0.9,0.1;0.2,0.8", "-o", "a.json")
    assert call(study, monkeypatch, *make).status == 0
    before = sorted(study.iterdir())
    for option in ("--dp=-1", "--pufferfish=x"):
        ran = call(study, monkeypatch, "translate", "a.json", option, "--table")
        refused(ran, InvalidOption, option.partition("=")[0])
    assert sorted(study.iterdir()) == before


def test_an_infinite_tau_is_refused(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = ("prior", "new", "0.9,0.1;0.2,0.8", "-o", "a.json")
    assert call(study, monkeypatch, *make).status == 0
    ran = call(study, monkeypatch, "prior", "smooth", "a.json", "-o", "b.json", "--tau", "1e400")
    refused(ran, InvalidPrior, "tau")


def test_text_of_a_ledger_that_is_none_is_damage(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = study / "takifugu.ledger"
    whole = place.read_bytes()
    assert whole.count(b"CREATE TABLE takifugu_head") == 1
    place.write_bytes(
        whole.replace(b"CREATE TABLE takifugu_head", b"CREATE TABLE takifugu_\xf5ead")
    )
    for line in ("ledger show", "ledger backup new.ledger", "ledger export new.jsonl"):
        ran = call(study, monkeypatch, *line.split())
        refused(ran, LedgerError)
    assert not (study / "new.ledger").exists()


def test_a_passphrase_needs_a_terminal(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = call(study, monkeypatch, "report", "key", "own.key", "--passphrase")
    refused(ran, InvalidOption, "--passphrase")
    assert not (study / "own.key").exists()


@pytest.mark.parametrize(
    "line",
    [
        "prior show a.json --project .",
        "dataset show stays.toml --project .",
        "dataset check stays.toml --project .",
        "prior contacts met.txt --background .1 --per-hour 1 --out new.json --project .",
    ],
)
def test_a_project_beside_a_file_is_refused(
    study: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (study / "met.txt").write_text("20 1 2\n")
    make = ("prior", "new", "0.9,0.1;0.2,0.8", "-o", "a.json")
    assert call(study, monkeypatch, *make).status == 0
    refused(call(study, monkeypatch, *line.split()), InvalidOption, "--project")
    assert not (study / "new.json").exists()


def test_packed_rows_that_are_damaged_are_refused(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bytearray(gzip.compress((study / "stays.csv").read_bytes(), mtime=0))
    packed[40:48] = b"\xff" * 8
    (study / "more.csv.gz").write_bytes(packed)
    new = call(study, monkeypatch, "dataset", "new", "more.csv.gz", "--out", "new.toml")
    refused(new, DatabaseFailed)
    line = "prior fit more.csv.gz --state state --entity person --out new.json"
    refused(call(study, monkeypatch, *line.split()), InvalidFile, "more.csv.gz")


@pytest.mark.parametrize("kind", ["gaussian-process", "time-of-day-chain", "markov-chain"])
@pytest.mark.parametrize("entry", ["x", "²", "99"])
def test_an_entry_that_a_prior_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, entry: str
) -> None:
    (prior,) = (one for one in PRIORS if one.kind == kind)
    write_prior(prior, tmp_path / "a.json")
    near = ("--secrets-within", "1") if kind == "gaussian-process" else ()
    assert call(tmp_path, monkeypatch, "curve", "a.json", "--entries", "1", *near).status == 0
    ran = call(tmp_path, monkeypatch, "curve", "a.json", f"--entries={entry}", *near)
    refused(ran, InvalidWorld, "secrets")


def test_a_project_that_cannot_be_made_leaves_no_folder(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(call(study, monkeypatch, "init", f"new/{'9' * 400}"))
    refused(call(study, monkeypatch, "init", "new/er", "--ledger", "no/such/folder"))
    for ledger in ("takifugu.toml", "./takifugu.toml", "../er/takifugu.toml"):
        ran = call(study, monkeypatch, "init", "new/er", "--ledger", ledger)
        refused(ran, InvalidProject, "ledger")
    assert not (study / "new").exists()


def test_a_key_needs_a_name(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/", "."):
        refused(call(study, monkeypatch, "report", "key", place), InvalidFile, "key")


def test_a_demo_goes_to_a_folder_whose_name_is_text(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(call(study, monkeypatch, "demo", "--out", ".\udcff"), InvalidFile, "--out")


def test_a_profile_beyond_floats_is_refused(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_prior(PRIORS[0], study / "a.json")
    (study / "profile.json").write_text(f"[0.1, 1{'0' * 400}]")
    line = "translate a.json --profile profile.json"
    refused(call(study, monkeypatch, *line.split()), InvalidOption, "--profile")


@pytest.mark.nightly
def test_a_release_that_was_charged_and_cannot_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    monkeypatch.chdir(tmp_path)
    make_study(folder)
    rows = (folder / "stays.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    rows[46] = rows[46].replace(",home,", ",1_000,").replace(",ward,", ",1_000,")
    (folder / "stays.csv").write_text("".join(rows), encoding="utf-8")
    before = call(folder, monkeypatch, "ledger", "show", "--json").json()["head"]["hash"]
    line = "release stays count --values ward --epsilon .1 -y"
    ran = call(folder, monkeypatch, *line.split())
    assert ran.status == 2 and "outside its declared list" in ran.err and STAYS_CHARGED in ran.err
    assert "1_000" not in ran.err
    events = call(folder, monkeypatch, "ledger", "show", "--json").json()["events"]
    place = [one["hash"] for one in events].index(before)
    assert "charge" in [one["body"]["kind"] for one in events[place + 1 :]]
