"""``takifugu ledger``: what it prints, what it finds and what it refuses."""

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from takifugu._core.fingerprint import fingerprint
from takifugu.cli.commands.ledger_command import app
from takifugu.cli.shared_options import InvalidOption
from takifugu.costs.cost import (
    AnyValue,
    Column,
    Cost,
    Distance,
    Matrix,
    Membership,
    Shape,
    Steps,
    cost_words,
    shape_words,
)
from takifugu.costs.losses import Metric
from takifugu.errors import (
    InvalidFile,
    LedgerConflict,
    LedgerSetBack,
    Malformed,
    NotALedger,
    TakifuguError,
    UnsoundRequest,
)
from takifugu.ledger import open_ledger
from takifugu.priors.secrets import Secrets
from takifugu.project.project import open_project
from tests.cli.running import call
from tests.ledger.charges import DOUBLING, charge, count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1, delta="1e-6")
        ledger.set_budget("ward", "0.5", analyst="ana")
        ledger.record_answer(ledger.charge(charge("0.1", analyst="ana"), DOUBLING), {"n": 3})
    return path


def test_show_prints_budgets_totals_and_events(path: Path) -> None:
    page = CliRunner().invoke(app, ["show", str(path)]).stdout
    assert "ward: Pufferfish budget epsilon = 1, delta = 1e-6; worst entry has lost" in page
    assert "ward, analyst ana: Pufferfish budget epsilon = 0.5; worst entry has lost" in page
    assert "5 events" in page
    assert "released to ana from ward: stays (laplace); epsilon = 0.1 per entry" in page
    assert "answer to event 4 stored" in page and "1/10" not in page
    assert "budget of ana on ward set to epsilon = 0.5, by " in page
    facts = json.loads(CliRunner().invoke(app, ["show", str(path), "--json", "--last", "1"]).stdout)
    assert set(facts) == {"ledger", "head", "accounts", "events"}
    assert [event["body"]["kind"] for event in facts["events"]] == ["answer"]
    assert facts["accounts"][0] == {
        "dataset": "ward",
        "analyst": None,
        "budget": {"epsilon": "1", "delta": "1/1000000"},
        "worst": [{"epsilon": "1/10", "delta": "0", "rho": "0"}],
    }


def test_verify_ends_with_status_1_if_something_is_wrong(path: Path) -> None:
    fine = CliRunner().invoke(app, ["verify", str(path)])
    assert fine.exit_code == 0 and "5 events, sound" in fine.stdout
    head = fine.stdout.split("head ")[1].split()[0]
    assert "heads: event 5" in fine.stdout
    assert CliRunner().invoke(app, ["verify", str(path), "--anchor", head]).exit_code == 0
    other = f"3:{'0' * 64}"
    old = CliRunner().invoke(app, ["verify", str(path), "--anchor", other, "--json"])
    assert old.exit_code == 1 and json.loads(old.stdout)["sound"] is False
    with sqlite3.connect(path) as edited:
        edited.execute("UPDATE takifugu_events SET body = replace(body, '1/10', '1/99')")
    edited.close()
    broken = CliRunner().invoke(app, ["verify", str(path)])
    assert broken.exit_code == 1 and "NOT sound" in broken.stdout
    assert "- event 4 was changed" in broken.stdout


def test_export_writes_a_line_for_each_event(path: Path) -> None:
    target = path.parent / "events.jsonl"
    done = CliRunner().invoke(app, ["export", str(path), str(target)])
    assert done.exit_code == 0 and done.stdout == ""
    bodies = [json.loads(line)["body"] for line in target.read_text().splitlines()]
    assert [body["kind"] for body in bodies] == ["created", "budget", "budget", "charge", "answer"]


@pytest.mark.parametrize(
    ("arguments", "kind", "field"),
    [
        (["show", "missing.ledger"], NotALedger, ""),
        (["show", "{path}", "--last", "-1"], Malformed, "--last"),
        (["verify", "{path}", "--anchor", "5"], Malformed, "--anchor"),
        (["export", "{path}", "{path}"], InvalidFile, "export"),
    ],
)
def test_a_bad_argument_is_refused_and_makes_no_file(
    path: Path,
    arguments: list[str],
    kind: type[TakifuguError],
    field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(path.parent)
    before = path.read_bytes()
    given = [argument.format(path=path) for argument in arguments]
    done = CliRunner().invoke(app, given)
    assert isinstance(done.exception, kind) and done.exception.field == field
    made = {file.name for file in path.parent.iterdir()}
    assert path.read_bytes() == before
    assert made <= {path.name, f"{path.name}-wal", f"{path.name}-shm"}  # SQLite's own


def test_show_tells_what_was_asked_in_four_digits_and_steers_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "ward.ledger"
    query = {"name": "top_k", "column": "place", "by": ["zone\x1b[31m"], "k": 3}
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", "5/3")
        ledger.charge(charge("1/3", (0, 9), ["fr", "de"], query=query), DOUBLING)
    page = CliRunner().invoke(app, ["show", str(path)]).stdout
    assert (
        "released from ward: top_k of place by zone\\u001b[31m, k = 3,"
        " from 0 before 9, only country de, fr (laplace); epsilon = 0.3334 per entry" in page
    )
    assert "budget of ward set to epsilon = 1.666" in page


def test_show_tells_costs_by_shape_and_json_exactly(tmp_path: Path) -> None:
    path = tmp_path / "ward.ledger"
    cost = Cost.of({Membership(["work", "home\x1b"]): "1/3", Column("age", Distance(0, 120)): 1})
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 9)
        ledger.charge(charge(Metric(cost + Cost.any("1/4")), (0, 9)), DOUBLING)
        ledger.charge(charge(count("1/7", "home"), (9, 12)), DOUBLING)
    page = CliRunner().invoke(app, ["show", str(path)]).stdout
    shapes = "1 by distance from 0 to 120 in column age, 0.3334 by count of home\\u001b, work"
    assert f"worst entry has lost epsilon = 0.25, {shapes}" in page
    assert (
        f"stays, from 0 before 9 (laplace); {shapes}, 0.25 by any value;"
        " at most epsilon = 1.584 per" in page
    )
    assert "(laplace); 0.1429 by count of home; at most epsilon = 0.1429 per entry" in page
    facts = json.loads(CliRunner().invoke(app, ["show", str(path), "--json"]).stdout)
    assert facts["accounts"][0]["worst"] == [
        {"epsilon": "1/4", "delta": "0", "rho": "0", "costs": cost.document()}
    ]
    assert facts["events"][-1]["body"]["loss"]["cost"] == [["1/7", ["member", ["home"]]]]
    assert "sound" in CliRunner().invoke(app, ["verify", str(path)]).stdout


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (AnyValue(), "any value"),
        (Membership([f"l{n}" for n in range(8)]), "count of l0, l1, l2, l3, l4, l5 and 2 more"),
        (Distance("1/3", 10), "distance from 0.3333 to 10"),
        (Steps(0, 10, "0.5"), "distance from 0 to 10 in steps of 0.5"),
        (Matrix(["a", "b"], [[0, 1], [1, 0]]), "matrix of 2 values"),
        (Column("age", Membership(["old"])), "count of old in column age"),
    ],
)
def test_every_shape_has_words(shape: Shape, words: str) -> None:
    assert shape_words(shape) == words
    many = Cost.of({Membership([f"m{n}"]): n + 1 for n in range(6)})
    assert cost_words(many).startswith("6 by count of m5, 5 by") and "2 more shapes" in cost_words(
        many
    )
    assert cost_words(Cost()) == "nothing"


def test_a_backup_a_restore_and_a_loss(path: Path) -> None:
    copy = path.parent / "copy"
    assert CliRunner().invoke(app, ["backup", str(path), str(copy)]).exit_code == 0
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1)
        ledger.charge(charge("0.1", analyst="ana"), DOUBLING)
    older = CliRunner().invoke(app, ["restore", str(path), str(copy)])
    assert isinstance(older.exception, LedgerSetBack)
    kept = path.read_bytes()
    needs = CliRunner().invoke(app, ["restore", str(path), str(copy), "--accept-loss"])
    assert isinstance(needs.exception, UnsoundRequest)  # the loss cannot be counted
    assert path.read_bytes() == kept  # and so nothing was lost
    found = CliRunner().invoke(app, ["verify", str(path)])
    assert found.exit_code == 0 and "sound" in found.stdout


def test_a_loss_is_accepted_once_and_shown(tmp_path: Path) -> None:
    path, copy = tmp_path / "ward.ledger", tmp_path / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1)
        ledger.backup(copy)
        ledger.charge(charge("0.1", secrets=fingerprint(Secrets())), DOUBLING)
    done = CliRunner().invoke(
        app, ["restore", str(path), str(copy), "--accept-loss", "--budget", "ward=3", "--json"]
    )
    counted = json.loads(done.stdout)["counted"]
    assert [(c["dataset"], c["epsilon"]) for c in counted] == [("ward", "3")]
    again = CliRunner().invoke(app, ["accept-loss", str(path)])
    assert isinstance(again.exception, LedgerConflict)
    assert "history up to event 3 accepted" in CliRunner().invoke(app, ["show", str(path)]).stdout
    wrong = CliRunner().invoke(app, ["accept-loss", str(path), "--budget", "3"])
    assert isinstance(wrong.exception, InvalidOption) and wrong.exception.field == "--budget"


def test_a_project_names_the_witness_of_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(tmp_path, monkeypatch, "init", "study").status == 0
    study, policy = tmp_path / "study", tmp_path / "study" / "takifugu.toml"
    named = policy.read_text().replace("\nid = ", '\nwitness = "../heads/study"\nid = ')
    (tmp_path / "heads").mkdir()
    policy.write_text(named)
    assert call(study, monkeypatch, "ledger", "backup", "old.backup").status == 0
    with open_project(study).ledger() as ledger:
        ledger.set_budget("ward", 1)
    assert "witness ../heads/study: event 2" in call(study, monkeypatch, "ledger", "verify").out
    (study / "takifugu.ledger").write_bytes((study / "old.backup").read_bytes())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user's"))
    for line in ("ledger backup new.backup", "ledger restore old.backup"):
        refused = call(study, monkeypatch, *line.split())
        assert refused.status == 4 and isinstance(refused.error, LedgerSetBack), line
    assert call(study, monkeypatch, "ledger", "accept-loss").status == 0


def test_a_ledger_in_a_container_without_a_volume_waits_for_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(tmp_path, monkeypatch, "init").status == 0
    with open_project(tmp_path).ledger() as ledger:
        ledger.set_budget("ward", 1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another container"))
    refused = call(tmp_path, monkeypatch, "ledger", "backup", "new.backup")
    assert refused.status == 4 and isinstance(refused.error, LedgerSetBack)
    assert "nothing noted" in call(tmp_path, monkeypatch, "ledger", "verify").out
    begun = call(tmp_path, monkeypatch, "ledger", "begin-witness", "--json").json()
    assert begun["event"]["seq"] == 3
    assert "witness begun by " in call(tmp_path, monkeypatch, "ledger", "show").out
    assert call(tmp_path, monkeypatch, "ledger", "backup", "new.backup").status == 0


@pytest.mark.parametrize("option", ["--same-prior", "--no-costs", "--budget=ward=3"])
def test_what_is_counted_for_a_loss_goes_with_it(path: Path, option: str) -> None:
    copy = path.parent / "copy"
    assert CliRunner().invoke(app, ["backup", str(path), str(copy)]).exit_code == 0
    done = CliRunner().invoke(app, ["restore", str(path), str(copy), option])
    assert isinstance(done.exception, InvalidOption)
    assert done.exception.field == option.split("=")[0]


@pytest.mark.parametrize(
    "name", ["show", "verify", "export", "backup", "restore", "accept-loss", "begin-witness"]
)
def test_a_project_beside_a_ledger_is_refused(path: Path, name: str) -> None:
    file = (
        []
        if name in ("show", "verify", "accept-loss", "begin-witness")
        else [str(path.parent / "new")]
    )
    done = CliRunner().invoke(app, [name, str(path), *file, "--project", "nowhere"])
    assert isinstance(done.exception, InvalidOption) and done.exception.field == "--project"


def test_priors_are_known_to_the_project_alone(path: Path) -> None:
    done = CliRunner().invoke(app, ["accept-loss", str(path), "--same-prior"])
    assert isinstance(done.exception, InvalidOption) and done.exception.field == "--same-prior"
