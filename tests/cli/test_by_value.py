"""Counts that are charged by value, from the command line: plan, plan file, release, ledger."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ran, call
from tests.project.studies import three_places

Ask = Callable[..., Ran]
COUNTS = ("counts", "--values", "home,clinic", "--epsilon", "1")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    three_places(tmp_path)

    def run(*arguments: str) -> Ran:
        return call(tmp_path, monkeypatch, *arguments)

    return run


@pytest.mark.nightly
def test_plan_and_release_say_what_values_save(ask: Ask) -> None:
    printed = ask("plan", "stays", *COUNTS)
    assert printed.status == 0 and "saved: noise with standard deviation" in printed.out
    plan = ask("plan", "stays", *COUNTS, "--out", "plan.json", "--json").json()
    assert plan["saving"]["noise_ratio"] > 1.05
    assert plan["saving"]["alone_without_values"] == plan["cost"]["without_values"] > 1
    halves = {json.dumps(shape): value for value, shape in plan["cost"]["by_value"]}
    assert set(halves) == {'["member", ["home"]]', '["member", ["clinic"]]'}
    result = ask("release", "plan.json", "--json", "--yes").json()
    assert result["saving"] == plan["saving"] and not result["free"]
    assert [row[0] for row in result["rows"]] == ["home", "clinic"]
    again = ask("release", "stays", *COUNTS)
    assert again.status == 0 and "free: answered before" in again.out and "saved" not in again.out
    assert ask("release", "stays", *COUNTS, "--json").json()["saving"] is None
    shown = ask("budget", "show", "stays")
    assert shown.status == 0 and "budget 3, spent 1, left 2.271 for" in shown.out
    assert ask("ledger", "verify").status == 0
    assert ask("plan", "stays", "counts", "--epsilon", "1").status != 0  # of which labels?


def test_a_plan_file_that_was_made_cheaper_is_refused(tmp_path: Path, ask: Ask) -> None:
    assert ask("plan", "stays", *COUNTS, "--out", "plan.json").status == 0
    document = json.loads((tmp_path / "plan.json").read_text())
    for term in document["cost"]["by_value"]:
        term[0] = "1/1000"
    (tmp_path / "plan.json").write_text(json.dumps(document))
    refused = ask("release", "plan.json")
    assert refused.status != 0 and "by_value" in refused.err
