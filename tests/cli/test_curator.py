"""The commands that a curator runs: the whole story, every mistake, and nothing half-done."""

import csv
import json
import os
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import Malformed, NotAccepted, NotALedger, UnknownAnalyst
from takifugu.priors import MarkovChain, write_prior
from takifugu.project.project import open_project
from takifugu.session import OverBudget, StalePlan
from tests.cli.running import Call, Ran, call, run, start
from tests.session.study import write_data


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that is ready for releases; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("ready")
    declared = write_data(folder).read_text()
    (folder / "other.toml").write_text(declared.replace("stays.csv", "other.csv"))
    shutil.copy(folder / "stays.csv", folder / "other.csv")
    for name, size, length in (
        ("short", 2, 3),
        ("fine", 2, 12),
        ("longer", 2, 20),
        ("three", 3, 12),
    ):
        names = ("home", "ward", "work")[:size]
        chain = MarkovChain(np.full((size, size), 1 / size), states=names, length=length)
        write_prior(chain, folder / f"{name}.json")
    with pytest.MonkeyPatch.context() as patch:
        for line in (
            "init",
            "dataset add stays stays.toml --pairs home/ward",
            "prior fit stays --first-steps 8",
            "budget set stays 2",
        ):
            done = call(folder, patch, *line.split())
            assert done.status == 0, done.err
    return folder


def charges(folder: Path) -> int:
    with open_project(folder).ledger(read_only=True) as ledger:
        return len(list(ledger.history(kind="charge")))


@pytest.mark.nightly
def test_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path)

    def do(line: str) -> Ran:  # as processes of their own: tests/cli/test_readme.py
        return call(tmp_path, monkeypatch, *line.split())

    assert do("init").status == 0
    added = do("dataset add stays stays.toml")
    assert added.status == 0 and "stays" in open_project(tmp_path).policy.datasets
    fitted = do("prior fit stays --first-steps 8")
    assert fitted.status == 0 and "fitted on the first 8 steps of 'step'" in fitted.out
    assert do("plan stays histogram --epsilon 1").status == 3  # nobody has set a budget
    assert do("budget set stays 2").status == 0
    planned = do("plan stays histogram --by zone --epsilon 1 --json").json()
    assert planned["cost"]["fits"] and not planned["stored"] and charges(tmp_path) == 0
    first = do("release stays histogram --by zone --epsilon 1 --json").json()
    assert not first["free"] and first["window"]["start"] == 8 and charges(tmp_path) == 1
    assert first["cost"] == planned["cost"] and first["mechanism"] == planned["mechanism"]
    again = do("release stays histogram --by zone --epsilon 1 --json").json()
    assert again["free"] and again["rows"] == first["rows"] and charges(tmp_path) == 1
    refused = do("release stays histogram --epsilon 2")
    assert refused.status == 3 and refused.out == "" and refused.err.count("\n") == 1
    assert isinstance(refused.error, OverBudget) and charges(tmp_path) == 1
    verified = do("ledger verify --json").json()
    assert verified["sound"]
    (whole,) = do("budget show stays --json").json()["budgets"]
    assert whole["spent"] == first["cost"]["after"] and whole["epsilon"] == "2"
    assert 0 < whole["left"] == pytest.approx(float(whole["most"])) and len(whole["history"]) == 1
    parts = [(part["start"], part["end"], part["spent"] > 0) for part in whole["stretches"]]
    assert parts == [(None, 8, False), (8, None, True)]


@pytest.mark.nightly
def test_releases_at_once_never_overspend(study: Path) -> None:
    queries = ("histogram", "proportions", "transitions")
    running = [start(study, "release", "stays", kind, "--epsilon", "1.2") for kind in queries]
    done = [process.communicate() and process.returncode for process in running]
    assert sorted(map(int, map(str, done))) == [0, 3, 3]
    assert charges(study) == 1
    project = open_project(study)
    with project.ledger(read_only=True) as ledger:
        assert ledger.spent("stays", project.load("stays").translation) <= 2
        assert ledger.verify().sound


@pytest.mark.nightly
def test_a_plan_file_is_released_as_it_was_planned(study: Path, do: Call) -> None:
    planned = do("plan stays count --values ward --window 9.. --within 20 --out plan.json --json")
    document = planned.json()
    assert json.loads((study / "plan.json").read_text()) == document
    assert document["asked"]["how"]["window"] == [9, None]
    released = do("release plan.json --json").json()
    assert released["query"] == document["query"] and released["cost"] == document["cost"]
    assert do("release plan.json --json").json()["free"]
    changed = document | {"mechanism": document["mechanism"] | {"scale": 0.001}}
    (study / "plan.json").write_text(json.dumps(changed))
    stale = do("release plan.json")
    assert stale.status == 2 and isinstance(stale.error, StalePlan) and charges(study) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet"])
def test_an_answer_is_written_whole(study: Path, do: Call, name: str) -> None:
    if name == "a.parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    done = do(f"release stays histogram --by zone,floor --epsilon 1 --out {name} --json").json()
    assert done["out"] == name and (study / name).stat().st_mode & 0o044
    if name == "a.json":
        assert json.loads((study / name).read_text())["rows"] == done["rows"]
    elif name == "a.csv":
        with (study / name).open(newline="") as stream:
            head, *rows = csv.reader(stream)
        assert head == done["columns"] and rows == [list(map(str, row)) for row in done["rows"]]
    else:
        table = parquet.read_table(study / name).to_pydict()
        assert [list(row) for row in zip(*table.values(), strict=True)] == done["rows"]
    left = {path.name for path in study.iterdir() if path.name.startswith(".")}
    assert left <= {".takifugu"}


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_an_answer_that_cannot_be_printed_is_not_lost(study: Path, do: Call) -> None:
    with open("/dev/full", "w") as full:
        failed = run(study, "release", "stays", "histogram", "--epsilon", "1", stdout=full)
    assert failed.status == 5 and failed.err.count("\n") == 1 and charges(study) == 1
    assert do("release stays histogram --epsilon 1 --json").json()["free"]


MISTAKES = [  # the command, its status, its error and the field that is at fault
    ("release stays", 2, "InvalidOption", "KIND"),
    ("release plan.json", 2, "InvalidFile", "plan.json"),
    ("release plan.json --epsilon 1", 2, "InvalidOption", "KIND"),
    ("release stays everything --epsilon 1", 2, "InvalidQuery", "kind"),
    ("release nobody histogram --epsilon 1", 2, "InvalidProject", "dataset"),
    ("release stays histogram", 2, "InvalidQuery", None),
    ("release stays histogram --epsilon much", 2, "UnsoundRequest", None),
    ("release stays histogram --epsilon -1", 2, "UnsoundRequest", None),
    ("release stays histogram --epsilon nan", 2, "UnsoundRequest", None),
    ("release stays histogram --epsilon 1 --within 3", 2, "InvalidQuery", None),
    ("release stays histogram --epsilon 1 --by person", 2, "InvalidQuery", "by, person"),
    ("release stays histogram --epsilon 1 --by zone,", 2, "InvalidOption", "names"),
    ("release stays histogram --epsilon 1 --window 9", 2, "InvalidOption", "--window"),
    ("release stays histogram --epsilon 1 --window ..", 2, "InvalidOption", "--window"),
    ("release stays histogram --epsilon 1 --window a..b", 2, "InvalidQuery", "window, start"),
    ("release stays histogram --epsilon 1 --window 3..9", 2, "UnsoundRequest", None),
    ("release stays histogram --epsilon 1 --window 9..9", 2, "InvalidQuery", "window"),
    (
        "release stays histogram --epsilon 1 --where zone=north --where zone=south",
        2,
        "InvalidOption",
        "--where",
    ),
    ("release stays histogram --epsilon 1 --epsilon 0.5", 2, "InvalidOption", "--epsilon"),
    ("release stays histogram --epsilon 1 --by zone --by zone", 2, "InvalidQuery", "by"),
    ("release stays histogram --epsilon 1 --new-belief", 2, None, None),
    ("dataset add new other.toml --prior short.json", 2, "UnsoundRequest", None),
    ("dataset add new other.toml --prior three.json", 2, "UnsoundRequest", None),
    (
        "dataset add new other.toml --prior fine.json --pairs attic/home",
        2,
        "InvalidWorld",
        "secrets",
    ),
    (
        "dataset add new other.toml --prior fine.json --prior longer.json",
        2,
        "InvalidProject",
        "dataset, new, prior",
    ),
    (
        "prior fit stays --first-steps 3 --add --length 12",
        2,
        "InvalidProject",
        "dataset, stays, prior",
    ),
    ("prior accept new", 2, "InvalidProject", "dataset"),
    ("release stays histogram --epsilon 1 --where zone", 2, "InvalidOption", "--where"),
    ("release stays histogram --epsilon 1 --where zone=east", 2, "InvalidQuery", "where, zone"),
    ("release stays histogram --epsilon 1 --where state=home", 2, "InvalidQuery", "where, state"),
    ("release stays histogram --epsilon 1 --k 3", 2, "InvalidQuery", "k"),
    ("release stays histogram --epsilon 1 --values ward", 2, "InvalidQuery", "values"),
    ("release stays histogram --epsilon 1 --level 0.5", 2, "InvalidQuery", "level"),
    ("release stays histogram --epsilon 1 --delta 0.1", 2, "UnsoundRequest", None),
    ("release stays histogram --epsilon 1 --option x=3", 2, "InvalidQuery", "x"),
    ("release stays histogram --epsilon 1 --option epsilon=3", 2, "InvalidOption", "--option"),
    ("release stays histogram --epsilon 1 --option by=3", 2, "InvalidQuery", "by"),
    ("release stays histogram --epsilon 1 --out a.txt", 2, "InvalidFile", "--out"),
    ("release stays histogram --epsilon 1 --out no/a.csv", 2, "InvalidFile", "--out"),
    ("release stays histogram --epsilon 1 --out stays.csv", 2, "InvalidFile", "--out"),
    ("release stays histogram --epsilon 9", 3, "OverBudget", "epsilon"),
    ("release stays histogram --epsilon 1 --backend spark", 2, "InvalidQuery", "backend"),
    ("release stays histogram --epsilon 1 --project nowhere", 2, "InvalidFile", "nowhere"),
    ("plan stays histogram --epsilon 1 --out p.csv", 2, "InvalidFile", "--out"),
    ("plan stays histogram --epsilon 1 --out stays.toml", 2, "InvalidFile", "--out"),
    ("init", 2, "InvalidProject", "takifugu.toml"),
    ("init sub --ledger postgresql://u:pw@h/d", 2, "InvalidProject", "ledger"),
    ("init stays.csv", 2, "InvalidProject", "stays.csv"),
    ("dataset add stays stays.toml", 2, "InvalidProject", "dataset"),
    ("dataset add new stays.toml", 3, "TwoBudgets", "dataset"),
    ("dataset add a/b stays.toml", 2, "InvalidProject", "dataset"),
    ("dataset add new nowhere.toml", 2, "InvalidFile", "nowhere.toml"),
    ("dataset add new stays.toml --about zone", 2, "UnsoundRequest", None),
    (
        "dataset add new other.toml --uncertainty 2",
        2,
        "InvalidProject",
        "dataset, new, uncertainty",
    ),
    ("dataset add new other.toml --prior nowhere.json", 2, "InvalidFile", "nowhere.json"),
    ("dataset add new stays.toml --pairs home", 2, "InvalidOption", "--pairs"),
    ("dataset show new", 2, "InvalidProject", "dataset"),
    ("dataset check new", 2, "InvalidProject", "dataset"),
    ("prior fit stays", 2, "InvalidOption", "--first-days"),
    ("prior fit stays --first-days 3 --all-rows", 2, "InvalidOption", "--first-days"),
    ("prior fit stays --first-steps 3", 2, "InvalidProject", "dataset, stays, prior"),
    ("prior fit stays --first-steps 30 --replace", 2, "InvalidQuery", "split"),
    ("prior fit stays --share 2 --replace", 2, "InvalidOption", "--share"),
    ("prior fit stays --share x --replace", 2, "InvalidOption", "--share"),
    ("prior fit stays --other attic --first-steps 3 --replace", 2, "InvalidQuery", "other"),
    ("prior fit stays.csv --state state", 2, "InvalidOption", "--state"),
    (
        "prior fit stays.csv --state state --entity person -o p.json --share 1/2",
        2,
        "InvalidOption",
        "--share",
    ),
    ("prior show new", 2, "InvalidProject", "dataset"),
    ("budget set stays lots", 2, "UnsoundRequest", None),
    ("budget set stays -- -1", 2, "InvalidCharge", "budget"),
    ("budget set stays 1 --delta 1", 2, "InvalidCharge", "budget"),
    ("budget set new 1", 2, "InvalidProject", "dataset"),
    ("budget show new", 2, "InvalidProject", "dataset"),
    ("budget show stays --last -1", 2, "InvalidOption", "--last"),
    ("ledger export a b c", 2, "InvalidOption", "FILE"),
    ("ledger export stays.csv", 2, "InvalidFile", "export"),
    ("ledger show stays.csv", 2, "NotALedger", None),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize(("line", "status", "kind", "field"), MISTAKES)
def test_a_mistake_is_one_line_and_leaves_everything_as_it_was(
    study: Path, do: Call, line: str, status: int, kind: str | None, field: str | None
) -> None:
    def everything() -> dict[str, bytes]:
        return {
            path.relative_to(study).as_posix(): path.read_bytes()
            for path in study.rglob("*")
            if path.is_file() and not path.name.endswith(("-wal", "-shm"))
        }

    assert do("plan stays histogram --epsilon 1").status == 0  # notes the state of the data
    before, paid = everything(), charges(study)
    done = do(line)
    assert (done.status, done.out) == (status, "")
    assert done.err.startswith("takifugu: ") and done.err.count("\n") == 1
    assert kind is None or type(done.error).__name__ == kind
    assert field is None or getattr(done.error, "field", None) == field
    assert everything() == before and charges(study) == paid == 0


def test_storage_that_fails_has_a_status_of_its_own(study: Path, do: Call) -> None:
    (study / "stays.csv").write_bytes(b"\xff\xfe\x00,\x00\n" * 9)
    broken = do("release stays histogram --epsilon 1")
    assert broken.status == 4 and broken.err.count("\n") == 1 and charges(study) == 0
    for left in study.glob("takifugu.ledger*"):
        left.unlink()
    gone = do("budget show stays")
    assert gone.status == 2 and isinstance(gone.error, NotALedger)
    assert not list(study.glob("takifugu.ledger*"))


@pytest.mark.nightly
def test_budgets_of_analysts_count_beside_the_whole(do: Call) -> None:
    assert do("budget set stays 1/2 --analyst ana --json").json() == {
        "dataset": "stays",
        "analyst": "ana",
        "epsilon": "1/2",
        "delta": "0",
        "before": None,
    }
    assert do("release stays histogram --epsilon 1 --analyst ana").status == 3
    for nobody in ("", "--analyst Ana", "--analyst anna", "--analyst eve"):
        for command in ("plan", "release"):
            refused = do(f"{command} stays histogram --epsilon 0.1 {nobody}")
            assert refused.status == 2 and refused.err.count("\n") == 1
            assert isinstance(refused.error, UnknownAnalyst) and "ana" in refused.err
    assert do("budget set stays 1 --analyst ANA").status == 2
    assert do("release stays histogram --epsilon 0.4 --analyst ana").status == 0
    whole, ana = do("budget show stays --json").json()["budgets"]
    assert (whole["analyst"], ana["analyst"]) == (None, "ana")
    assert whole["spent"] == ana["spent"] > 0 and Fraction(ana["most"]) < Fraction(whole["most"])
    shown = do("budget show stays").out
    assert "stays: budget 2, spent" in shown and "stays, analyst ana: budget 0.5, spent" in shown


@pytest.mark.nightly
def test_a_delta_is_passed_on_and_shown(do: Call) -> None:
    assert do("budget set stays 2 --delta 0.001 --json").json()["delta"] == "1/1000"
    asked = "stays histogram --epsilon 1.5 --delta 0.001"
    cost = do(f"plan {asked} --out plan.json --json").json()["cost"]
    assert cost["currency"] == "rho" and cost["delta"] == "1/1000" and cost["fits"]
    assert do("release plan.json --json").json()["cost"] == cost
    assert do(f"release {asked} --json").json()["free"]
    (whole,) = do("budget show stays --json").json()["budgets"]
    assert 0 < whole["spent"] <= 2 and whole["delta"] == "1/1000"
    assert whole["stretches"][1]["spent"] == whole["spent"] == whole["history"][0]["spent"]


@pytest.mark.nightly
def test_a_budget_is_raised_without_a_query_only_where_nobody_could_answer(
    study: Path, do: Call
) -> None:
    assert do("budget set stays 3 --json").json()["before"] == "2"
    assert do("budget set stays 1 --yes --json").json()["before"] == "3"
    pty = pytest.importorskip("pty")
    for answer, allowed in ((b"n\n", Fraction(1)), (b"y\n", Fraction(5))):
        terminal, inside = pty.openpty()
        process = start(study, "budget", "set", "stays", "5", stdin=inside)
        os.write(terminal, answer)
        _, err = process.communicate()
        os.close(terminal)
        os.close(inside)
        assert "Raise the budget of stays from 1 to 5?" in err
        assert (process.returncode == 0) == (answer == b"y\n")
        assert open_project(study).budget("stays") == allowed


@pytest.mark.nightly
def test_a_new_prior_is_charged_under_only_if_that_is_said(do: Call) -> None:
    assert do("release stays histogram --epsilon 0.5").status == 0
    fitted = do("prior fit stays --first-steps 6 --replace")
    assert "next: takifugu prior accept stays" in fitted.out
    for command in ("plan", "release"):
        refused = do(f"{command} stays histogram --epsilon 0.4 --window 9..")
        assert refused.status == 3 and isinstance(refused.error, NotAccepted)
    assert do("prior accept stays --yes").status == 0
    assert do("release stays histogram --epsilon 0.4 --window 9..").status == 0


@pytest.mark.nightly
def test_releases_of_fitted_rows_are_warned_about(study: Path, do: Call) -> None:
    file = study / "takifugu.toml"
    head = "[dataset.stays]\n"
    file.write_text(file.read_text().replace(head, f"{head}release_fitted_rows = true\n"))
    refused = do("plan stays histogram --epsilon 0.5 --window 0..3")
    assert refused.status == 3 and isinstance(refused.error, NotAccepted)
    accepted = do("prior accept stays --yes").out
    assert "new rows that are released from" in accepted
    for command in ("plan", "release"):
        done = do(f"{command} stays histogram --epsilon 0.5 --window 0..3")
        assert done.status == 0 and "fitted on rows that are released from" in done.err


def test_a_dataset_is_shown_with_its_policy(study: Path, do: Call) -> None:
    told = do("dataset show stays --json").json()
    assert told["pairs"] == [[["home"], ["ward"]]] and told["released_from"] == 8
    assert told["about"] == "state" and "first 8 steps of" in told["fitted"][0]
    shown = do("dataset show stays").out
    assert "released     from 8 on" in shown and "Not protected" in shown
    assert do("dataset check stays --json").json()["rows"] == 24 * 12
    (prior,) = do("prior show stays --json").json()["priors"]
    assert prior["states"] == 2 and prior["statement"] in do("prior show stays").out
    sub = study / "sub"
    sub.mkdir()
    with pytest.MonkeyPatch.context() as patch:  # a project is found from inside it
        assert call(sub, patch, "dataset", "show", "stays", "--json").json() == told
        assert call(sub, patch, "dataset", "show", "stays", "-p", "..", "--json").json() == told


def test_check_sees_secrets_that_do_not_fit(study: Path, do: Call) -> None:
    file = study / "takifugu.toml"
    file.write_text(file.read_text().replace('["home"]', '["attic"]'))
    wrong = do("dataset check stays")
    assert wrong.status == 2 and isinstance(wrong.error, Malformed)
    assert wrong.error.field == "secrets"


def test_the_ledger_of_the_project_is_the_default(study: Path, do: Call) -> None:
    assert do("ledger show --json").json() == do("ledger show takifugu.ledger --json").json()
    done = do("ledger export events.jsonl --json").json()
    lines = (study / "events.jsonl").read_text().splitlines()
    assert len(lines) == done["events"] == do("ledger verify --json").json()["events"]
