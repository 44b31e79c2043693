"""``takifugu approve`` and what waits for it: two users, one release."""

from pathlib import Path

import pytest

from takifugu.cli.shared_options import InvalidOption
from takifugu.errors import ApprovalRefused, InvalidFile
from takifugu.ledger import lifecycle, open_ledger
from takifugu.session.release_errors import ApprovalNeeded, StalePlan
from tests.cli.running import Call, call
from tests.session.study import write_data

RULE = '\n[dataset.stays.approval]\nabove = "0.5"\n'
SCHEDULE = """
[schedule.weekly]
dataset = "stays"
kind = "histogram"
epsilon = "0.6"
every = 3
from = 9
accept_noise = true
"""


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("approve") / "study"
    folder.mkdir()
    write_data(folder)
    with pytest.MonkeyPatch.context() as patch:
        for line in (
            "init",
            "dataset add stays stays.toml",
            "prior fit stays --first-steps 8",
            "budget set stays 4",
            "plan stays histogram --epsilon 0.6 --out plan.json",
        ):
            ran = call(folder, patch, *line.split())
            assert ran.status == 0, (line, ran.err)
    file = folder / "takifugu.toml"
    file.write_text(file.read_text() + RULE)
    return folder


def be(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "current_actor", lambda: who)


@pytest.mark.nightly
def test_two_users_release_what_waits(
    study: Path, do: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    be("ana", monkeypatch)
    waiting = do("release plan.json --yes")
    assert waiting.status == 3 and isinstance(waiting.error, ApprovalNeeded)
    own = do("approve plan.json --json").json()
    assert do(f"release plan.json --yes --approval {own['approval']}").status == 3
    be("olga", monkeypatch)
    given = do("approve plan.json --json").json()
    assert (given["decision"], given["actor"], given["analyst"]) == ("approved", "olga", None)
    assert 0.5 < given["epsilon"] <= 0.6 and given["query"].startswith("histogram of state")
    be("ana", monkeypatch)
    assert do(f"release plan.json --yes --approval {given['approval']}").status == 0
    shown = do("ledger show").out
    assert f"approved in event {given['approval']}" in shown and "approved: histogram" in shown
    assert "by olga" in shown and do("ledger verify").status == 0
    other = do("release stays histogram --epsilon 0.7 --yes --approval 99")
    assert other.status == 3 and isinstance(other.error, ApprovalRefused)
    with open_ledger(study / "takifugu.ledger") as ledger:
        assert [event.body["actor"] for event in ledger.history(kind="charge")] == ["ana"]


@pytest.mark.nightly
def test_what_was_refused_is_withdrawn(do: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    be("olga", monkeypatch)
    shown = do("approve plan.json")
    number = shown.out.split("--approval ")[1].strip()
    assert "next, as another user" in shown.out
    assert do("approve plan.json --refuse").out.startswith("refused: histogram")
    be("ana", monkeypatch)
    ran = do(f"release plan.json --yes --approval {number}")
    assert ran.status == 3 and isinstance(ran.error, ApprovalRefused)
    assert ran.error.reason == "withdrawn"


@pytest.mark.nightly
def test_a_plan_that_was_edited_is_not_approved(study: Path, do: Call) -> None:
    text = (study / "plan.json").read_text()
    (study / "plan.json").write_text(text.replace('"epsilon": "0.6"', '"epsilon": "0.9"', 1))
    ran = do("approve plan.json")
    assert ran.status == 2 and isinstance(ran.error, StalePlan | InvalidFile)
    assert do("ledger show --json").out.count('"approval"') == 0


@pytest.mark.nightly
def test_a_schedule_stops_where_it_would_wait(study: Path, do: Call) -> None:
    file = study / "takifugu.toml"
    file.write_text(file.read_text() + SCHEDULE)
    ran = do("schedule run --json")
    assert ran.status == 3 and '"released": []' in ran.out and "second person" in ran.err


def test_the_rule_is_shown(do: Call) -> None:
    words = "releases above epsilon = 0.5 wait for an owner"
    assert words in do("dataset show stays").out
    assert do("dataset show stays --json").json()["approval"] == {
        "above": "1/2",
        "first": False,
        "words": words,
    }


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "x", "", "9" * 30, "0" * 18 + "1299", "²"])
def test_an_approval_is_the_number_of_an_event(
    study: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    ran = call(study, monkeypatch, "release", "plan.json", "--yes", "--approval", number)
    assert ran.status == 2 and isinstance(ran.error, InvalidOption)
    assert ran.error.field == "--approval"
