"""What the owner of a project decides is an event with an actor, and nothing happens without it."""

import json
import os
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.cli.shared_options import InvalidOption
from takifugu.errors import NotAccepted, UnsoundRequest
from takifugu.ledger.lifecycle import current_actor
from takifugu.priors import MarkovChain, write_prior
from takifugu.project.project import init_project, open_project
from tests.cli.running import Call, Ran, call, start
from tests.session.study import STATES, write_data

STICKY = MarkovChain(np.array([[0.98, 0.02], [0.03, 0.97]]), states=STATES, length=12)
LOOSE = MarkovChain(np.array([[0.6, 0.4], [0.5, 0.5]]), states=STATES, length=12)
PRIOR = '\n[[dataset.stays.prior]]\nfile = "mine.json"\n'


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a prior that was written by hand, charged once under it."""
    folder = tmp_path_factory.mktemp("owner")
    write_prior(STICKY, folder / "mine.json")
    made = init_project(folder).add_dataset(
        "stays", write_data(folder), priors=[folder / "mine.json"]
    )
    made.set_budget("stays", "11")
    with made.session("stays") as session:
        session.release(session.plan.histogram(epsilon=10), accept_noise=True)
    return folder


def events(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    with open_project(folder).ledger(read_only=True) as ledger:
        return [dict(event.body) for event in ledger.history() if event.kind in kinds]


@pytest.mark.nightly
def test_a_prior_file_that_was_replaced_is_noticed_and_shown_under_both(
    study: Path, do: Call
) -> None:
    write_prior(LOOSE, study / "mine.json")
    for command in ("plan", "release"):
        refused = do(f"{command} stays count --values ward --epsilon 0.1")
        assert refused.status == 3 and refused.err.count("\n") == 1 and refused.out == ""
        assert isinstance(refused.error, NotAccepted)
    assert "takifugu prior accept stays" in do("budget show stays --json").json()["note"]
    unconfirmed = do("prior accept stays")
    assert unconfirmed.status == 2 and unconfirmed.out == "" and unconfirmed.err.count("\n") == 1
    assert isinstance(unconfirmed.error, InvalidOption) and unconfirmed.error.field == "--yes"
    assert "budget: 11" in unconfirmed.err  # what an owner must have seen
    assert len(events(study, "accepted")) == 1
    done = do("prior accept stays --yes --json").json()
    assert done["accepted"] and done["actor"] == current_actor() and done["budget"] == "11"
    before, after = Fraction(done["spent_before"]), Fraction(done["spent_after"])
    assert 9 < before <= 10 and 0 < after < before / 3
    (_, event) = events(study, "accepted")
    assert event["seq"] == done["event"] and event["actor"] == current_actor()
    assert (event["prior"], event["secrets"]) == (done["prior"], done["secrets"])
    assert (event["spent_before"], event["spent_after"]) == (
        done["spent_before"], done["spent_after"],
    )  # fmt: skip
    assert event["details"]["uncertainty"] == "0.0"
    assert do("release stays count --values ward --epsilon 0.1").status == 0
    shown = do("ledger show").out
    assert "prior of stays accepted: spent" in shown and "of a budget of 11" in shown
    assert do("ledger verify --json").json()["sound"]


@pytest.mark.nightly
def test_the_same_is_not_accepted_twice_and_a_change_back_is_a_change(
    study: Path, do: Call
) -> None:
    assert do("prior accept stays --yes --json").json()["accepted"] is False
    assert len(events(study, "accepted")) == 1
    for chain, other in ((LOOSE, STICKY), (STICKY, LOOSE)):
        write_prior(other, study / "mine.json")
        write_prior(chain, study / "mine.json")  # replaced twice: what counts is what is there
        done = do("prior accept stays --yes --json").json()
        assert done["accepted"] and done["spent_before"] is not None
        assert do("plan stays count --values ward --epsilon 0.1").status == 0
    assert len(events(study, "accepted")) == 3
    assert not do("prior accept stays --json").json()["accepted"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("line", "new"),
    [
        ('pairs = [["home", "ward"]]', "secrets"),
        ("entries = [0]", "secrets"),
        ("uncertainty = 0.1", "prior"),
    ],
)
def test_secrets_and_uncertainty_that_were_edited_are_noticed(
    study: Path, do: Call, line: str, new: str
) -> None:
    file = study / "takifugu.toml"
    file.write_text(file.read_text().replace("[dataset.stays]\n", f"[dataset.stays]\n{line}\n"))
    assert do("plan stays histogram --epsilon 0.1").status == 3
    accepted = do("prior accept stays --yes").out
    assert accepted.startswith(f"stays: new {new}\n")
    assert do("plan stays histogram --epsilon 0.1").status == 0


def test_an_old_prior_that_is_gone_is_said_to_be(study: Path, do: Call) -> None:
    shutil.rmtree(study / ".takifugu")
    write_prior(LOOSE, study / "mine.json")
    done = do("prior accept stays --yes --json").json()
    assert done["accepted"] and done["spent_before"] is None
    assert events(study, "accepted")[-1]["spent_before"] is None
    assert do("ledger show").status == 0


def test_what_is_kept_of_the_old_prior_is_believed_only_if_it_is_the_one(
    study: Path, do: Call
) -> None:
    (kept,) = (study / ".takifugu").glob("*.terms.json")
    document = json.loads(kept.read_text())
    document["priors"]["prior"]["transition"] = [[0.5, 0.5], [0.5, 0.5]]
    kept.write_text(json.dumps(document))
    write_prior(LOOSE, study / "mine.json")
    assert do("prior accept stays --yes --json").json()["spent_before"] is None


def test_commands_that_change_a_policy_write_events(
    study: Path, do: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert do("prior new 0.7,0.3;0.3,0.7 --states home,ward --length 12 -o mine.json").status == 0
    assert do("prior smooth mine.json -o mine.json --tau 0.1").status == 0
    assert do("prior new 0.7,0.3;0.3,0.7 -o elsewhere.json").status == 0
    assert do("prior fit stays --all-rows --replace").status == 2  # a release protected them
    again = "prior fit stays --all-rows --replace --publish-rows"
    assert call(study, monkeypatch, *again.split(), "all rows").status == 0
    hows = [event["details"]["how"] for event in events(study, "policy")]
    assert hows == ["entered", "written", "written", "fitted"]
    last = events(study, "policy")[-1]
    assert last["details"]["rows"] == "all-rows" and last["details"]["replaced"]
    assert last["actor"] == current_actor()
    assert do("plan stays histogram --epsilon 0.1").status == 3  # charged before: not in force yet
    shown = do("ledger show").out
    assert "in place of the earlier ones" in shown
    assert "rewritten: mine.json" in shown and shown.count(f"by {current_actor()}") >= 5


@pytest.mark.nightly
def test_rows_that_a_prior_was_fitted_on_are_not_let_in_by_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)

    def do(line: str) -> Ran:
        return call(tmp_path, monkeypatch, *line.split())

    for line in ("init", "dataset add stays stays.toml", "prior fit stays --first-steps 8",
                 "prior fit stays --first-steps 7 --replace", "budget set stays 2"):  # fmt: skip
        assert do(line).status == 0  # nothing was charged: a new prior needs no acceptance
    assert do("plan stays histogram --epsilon 0.5").status == 0
    file = tmp_path / "takifugu.toml"
    file.write_text(file.read_text().replace("released_from = 7", "released_from = 0"))
    refused = do("plan stays histogram --epsilon 0.5")
    assert refused.status == 3 and isinstance(refused.error, NotAccepted)
    file.write_text(file.read_text().replace("released_from = 0", "released_from = 7"))
    assert do("plan stays histogram --epsilon 0.5").status == 0


@pytest.mark.nightly
def test_a_terminal_is_asked(study: Path) -> None:
    write_prior(LOOSE, study / "mine.json")
    pty = pytest.importorskip("pty")
    terminal, inside = pty.openpty()
    process = start(study, "prior", "accept", "stays", stdin=inside)
    os.write(terminal, b"n\n")
    out, err = process.communicate()
    os.close(terminal)
    os.close(inside)
    assert "spent under the old: " in err and "Accept this for stays?" in err
    assert (process.returncode, out.strip(), len(events(study, "accepted"))) == (2, "", 1)


def test_two_datasets_are_accepted_one_by_one(study: Path, do: Call) -> None:
    text = (study / "stays.toml").read_text().replace("stays.csv", "other.csv")
    (study / "other.toml").write_text(text)
    people = (study / "stays.csv").read_text().replace("\np", "\nother-p")
    (study / "other.csv").write_text(people)
    assert do("dataset add other other.toml --prior mine.json").status == 0
    assert do("budget set other 11").status == 0
    assert do("release other histogram --epsilon 0.5").status == 0
    write_prior(LOOSE, study / "mine.json")
    assert do("prior accept other --yes").status == 0
    assert do("plan other count --values ward --epsilon 0.1").status == 0
    assert do("plan stays count --values ward --epsilon 0.1").status == 3


@pytest.mark.nightly
def test_an_accuracy_that_costs_too_much_is_told_what_fits(study: Path, do: Call) -> None:
    file = study / "takifugu.toml"
    head = "[dataset.stays]\n"
    file.write_text(file.read_text().replace(head, f"{head}table = true\n"))
    planned = do("plan stays histogram --within 1")
    assert planned.status == 0, planned.err
    most = do("plan stays histogram --within 1 --json").json()
    assert not most["cost"]["fits"] and Fraction(most["cost"]["most"]) > 0
    line = next(line for line in planned.out.splitlines() if line.startswith("costs"))
    typed = re.search(r"may cost at most (\S+) alone", line)
    assert typed is not None and "table" not in line
    odds = next(line for line in planned.out.splitlines() if line.startswith("for one entry"))
    assert "from this release" not in odds and "from all that" in odds
    show = do("budget show stays").out.splitlines()[0]
    (whole,) = do("budget show stays --json").json()["budgets"]
    assert whole["spent"] > 0
    rest = float(whole["epsilon"]) - whole["spent"]
    same = float(whole["most"]) == pytest.approx(rest, rel=0.002)
    assert ("(prices do not simply add up)" in show) == (not same)
    assert whole["left"] == pytest.approx(float(whole["most"]))  # what a release can be charged
    assert f"left {typed[1]} for the next release on all rows" in show
    assert Fraction(typed[1]) <= Fraction(most["cost"]["most"])
    assert do(f"plan stays histogram --epsilon {typed[1]} --json").json()["cost"]["fits"]
    again = do(f"plan stays histogram --epsilon {most['instead']['epsilon']} --json").json()
    assert again["cost"]["fits"] and again["error"] == most["instead"]["error"]
    near = do(f"plan stays histogram --within {again['error']['interval']} --json").json()
    assert near["cost"]["alone"] <= again["cost"]["alone"] * 1.1
    small = do("plan stays histogram --epsilon 0.001")
    assert small.status == 2 and isinstance(small.error, UnsoundRequest)
