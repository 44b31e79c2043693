"""Shares that sum to 1, rankings without a label and drawn numbers, from the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ran, call
from tests.project.studies import three_places

Ask = Callable[..., Ran]
SHARES = ("stays", "proportions", "--epsilon", "0.5")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    three_places(tmp_path)

    def run(*arguments: str) -> Ran:
        return call(tmp_path, monkeypatch, *arguments)

    return run


def test_shares_that_sum_to_one_are_the_same_answer(ask: Ask) -> None:
    planned = ask("plan", *SHARES, "--sum-to-one", "--out", "plan.json", "--json")
    assert planned.status == 0, planned.err
    summed = ask("release", "plan.json", "--json", "--yes").json()
    assert sum(row[1] for row in summed["rows"]) == pytest.approx(1)
    plain = ask("release", *SHARES, "--json").json()
    assert plain["free"] and not summed["free"]
    assert plain["raw"] == summed["raw"] and len(summed["shown"]) > len(plain["shown"])
    assert all(0 <= low <= share <= high <= 1 for _, share, low, high in plain["rows"])
    refused = ask("plan", "stays", "count", "--values", "home", "--epsilon", "1", "--sum-to-one")
    assert refused.status == 2 and "sum_to_one" in refused.err and "proportions" in refused.err


@pytest.mark.nightly
def test_a_label_is_left_out_of_a_ranking(ask: Ask) -> None:
    every = ("stays", "top_k", "--k", "2", "--epsilon", "0.5")
    found = ask("release", *every, "--leave-out", "clinic", "--json", "--yes").json()
    assert found["query"]["leave_out"] == ["clinic"]
    assert found["columns"] == ["rank", "state", "estimate", "low", "high", "probability"]
    assert "clinic" not in [row[1] for row in found["rows"]]
    assert all(0 <= row[-1] <= 1 for row in found["rows"])
    assert not ask("release", *every, "--json", "--yes").json()["free"]
    refused = ask("plan", *every, "--leave-out", "nowhere")
    assert refused.status == 2 and "leave_out" in refused.err and refused.err.count("\n") == 1
