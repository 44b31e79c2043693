"""``takifugu prior fit --kind …``: each kind from the command line, and what is refused."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from takifugu.cli.shared_options import InvalidOption
from takifugu.declarations import InvalidDeclaration, InvalidQuery
from takifugu.errors import InvalidFile, InvalidPrior, Malformed
from takifugu.priors import (
    BayesianNetwork,
    HigherOrderChain,
    IntervalMarkovChain,
    MarkovChain,
    TimeOfDayChain,
    read_prior,
)
from takifugu.project.project import init_project
from tests.cli.running import Ran, call
from tests.declared import declared

Fitting = Callable[..., tuple[dict[str, Any], Any]]

DECLARATION = declared("rows.csv", "who", "at", {"place": ["home", "ward"]})
HEALTH = """\
[protected.health]
values = ["well", "ill", "unknown"]
outside = "refuse"
"""
USE = """\
[protected.kwh]
bounds = [0, 2]
step = 0.25
missing = "refuse"
"""


def project(folder: Path, about: str | None, *more: str) -> Path:
    """A project with a dataset of three people and thirty rows each."""
    lines = ["who,at,place,health,kwh"]
    for i in range(90):
        at, x = i // 3, (i * i + i // 4) % 7
        lines.append(
            f"p{i % 3},{at},{('home', 'ward')[x % 2]},{('well', 'ill')[(x + at) % 3 % 2]},"
            f"{(x * 0.29 + at * 0.11) % 2:.2f}"
        )
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    (folder / "rows.toml").write_text("".join((DECLARATION, *more)))
    init_project(folder).add_dataset("rows", folder / "rows.toml", about=about)
    return folder


@pytest.fixture
def fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fitting:
    """Fit with options, and read what was written."""

    def fit(*options: str) -> tuple[dict[str, Any], Any]:
        facts = call(tmp_path, monkeypatch, "prior", "fit", "rows", *options, "--json").json()
        return facts, read_prior(tmp_path / facts["out"])

    return fit


@pytest.mark.nightly
def test_a_chain_of_higher_order(tmp_path: Path, fitted: Fitting) -> None:
    project(tmp_path, "place")
    facts, prior = fitted("--kind", "higher-order", "--order", "3", "--first-steps", "20")
    assert isinstance(prior, HigherOrderChain) and prior.order == facts["order"] == 3
    assert facts["steps"] == 3 * 17 and facts["unit"] == "steps"
    assert sum(facts["rests_on"]["exits"].values()) == facts["steps"]
    assert f"{facts['steps']} runs of 4 rows" in facts["statement"]


def test_a_chain_over_ranges(tmp_path: Path, fitted: Fitting) -> None:
    project(tmp_path, "kwh", USE)
    facts, prior = fitted("--cuts", "0, 0.5,1,2", "--first-steps", "20")
    assert isinstance(prior, MarkovChain)
    assert prior.states == ("[0, 0.5)", "[0.5, 1)", "[1, 2]") and facts["steps"] == 57


@pytest.mark.nightly
@pytest.mark.parametrize("options", [["--confidence", "0.9"], ["--kind", "interval"]])
def test_chains_within_intervals(tmp_path: Path, fitted: Fitting, options: list[str]) -> None:
    project(tmp_path, "place")
    _, prior = fitted(*options, "--share", "1/2")
    assert isinstance(prior, IntervalMarkovChain) and prior.states == ("home", "ward")


def test_what_a_fit_rests_on_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, "health", HEALTH)
    found = call(folder, monkeypatch, "prior", "fit", "rows", "--first-steps", "20")
    assert found.status == 0, found.err
    assert "3 states from 57 steps" in found.out
    assert "It rests on 57 steps of 3 people (60 rows)." in found.out
    assert "hardly saw 'unknown' (0×)" in found.out and "A Pufferfish ε of 1 allows" in found.out


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "kind", "field"),
    [
        (["--kind", "markow"], InvalidQuery, "kind"),
        (["--kind", "network", "--tau", "0.1"], InvalidQuery, "tau"),
        (["--order", "two"], InvalidOption, "--order"),
        (["--order", "2"], InvalidQuery, "order"),
        (["--cuts", "0,x"], InvalidOption, "--cuts"),
        (["--cuts", "0,2,1"], InvalidOption, "--cuts"),
        (["--cuts", "0,1"], InvalidQuery, "cuts"),
        (["--columns", "place,,health"], InvalidOption, "--columns"),
        (["--columns", "place,town"], InvalidQuery, "columns"),
        (["--kind", "network", "--structure", "nowhere.txt"], InvalidFile, "nowhere.txt"),
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    kind: type[Malformed],
    field: str,
) -> None:
    folder = project(tmp_path, "place", HEALTH)
    before = (folder / "takifugu.toml").read_bytes()
    found = call(folder, monkeypatch, "prior", "fit", "rows", "--first-steps", "20", *options)
    assert found.status == 2 and isinstance(found.error, kind)
    assert found.error.field == field
    assert (folder / "takifugu.toml").read_bytes() == before
    assert not list(folder.glob("*.prior.json"))


@pytest.mark.nightly
def test_a_network_is_planned_and_released_with(
    tmp_path: Path, fitted: Fitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, None, HEALTH)
    (tmp_path / "edges.txt").write_text("health -> place\n")
    options = ("--kind", "network", "--structure", "edges.txt", "--smoothing", "0.5")
    facts, prior = fitted(*options, "--first-steps", "20")
    assert isinstance(prior, BayesianNetwork) and prior.entries == ("place", "health")
    assert prior.parents == (("health",), ())
    assert (facts["steps"], facts["unit"]) == (60, "rows")
    assert facts["rests_on"]["tables"]["place"] == {"parents": ["health"], "rows": 60, "least": 0}
    assert "rests on 60 rows, with 0.5 added to every count" in facts["statement"]
    run(tmp_path, monkeypatch, "budget set rows 2")
    plan = run(tmp_path, monkeypatch, "plan rows histogram --column place --epsilon 0.5")
    assert "costs epsilon = 0.5 alone" in plan.out
    run(tmp_path, monkeypatch, "release rows histogram --column place --epsilon 0.5")


def test_a_cycle_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, None, HEALTH)
    (tmp_path / "edges.txt").write_text("health -> place\nplace -> health\n")
    line = "prior fit rows --kind network --structure edges.txt --first-steps 20"
    found = call(tmp_path, monkeypatch, *line.split())
    assert found.status == 2 and isinstance(found.error, InvalidPrior)
    assert found.error.reason == "cycle" and "health -> place -> health" in found.err


@pytest.mark.nightly
def test_joint_states_are_planned_and_released_with(
    tmp_path: Path, fitted: Fitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, None, HEALTH)
    facts, prior = fitted("--columns", "place,health", "--first-steps", "20", "--length", "30")
    assert isinstance(prior, MarkovChain) and prior.columns == ("place", "health")
    assert len(prior.states) == 6 and facts["steps"] == 57
    run(tmp_path, monkeypatch, "budget set rows 2")
    run(tmp_path, monkeypatch, "plan rows histogram --column health --epsilon 0.5")


@pytest.mark.nightly
def test_a_chain_by_hour_is_planned_with_and_its_rows_are_checked(
    tmp_path: Path, fitted: Fitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["who,at,place"]
    for i in range(200):
        at = datetime(2024, 5, 1, 5) + timedelta(hours=i % 100)
        lines.append(f"p{i // 100},{at},{('home', 'ward')[(i * i + i // 4) % 7 % 2]}")
    declaration = DECLARATION.replace('kind = "number"', 'kind = "time"\nzone = "UTC"')
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "rows.toml").write_text(declaration)
    init_project(tmp_path).add_dataset("rows", tmp_path / "rows.toml")
    facts, prior = fitted("--by-hour", "--first-days", "3")
    assert isinstance(prior, TimeOfDayChain) and (prior.length, facts["hours"]) == (100, 24)
    assert sum(facts["rests_on"]["steps_by_hour"]) == facts["steps"] == 132
    run(tmp_path, monkeypatch, "budget set rows 1")
    run(tmp_path, monkeypatch, "plan rows histogram --epsilon 1")
    (tmp_path / "rows.csv").write_text("\n".join(lines[:60] + lines[61:]) + "\n")
    found = call(tmp_path, monkeypatch, *["plan", "rows", "histogram", "--epsilon", "1"])
    assert found.status == 2 and isinstance(found.error, InvalidDeclaration)
    assert found.error.reason == "not-hourly"


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> Ran:
    """A command that must go well."""
    found = call(folder, monkeypatch, *line.split())
    assert found.status == 0, found.err
    return found
