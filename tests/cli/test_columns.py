"""Queries of several columns and declared linear queries, from the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from takifugu.priors import AR1, Gaussian, write_prior
from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.project.policy_writing import add_prior
from tests.cli.running import Ran, call
from tests.declared import declared
from tests.raising import raises
from tests.session.tables import HEADER, NETWORK, ROWS

Ask = Callable[..., Ran]
SURVEY = declared(
    "survey.csv",
    "person",
    "step",
    {"place": ["home", "out"], "health": ["well", "ill"]},
    {"zone": ["a", "b"]},
)
METERS = declared(
    "meters.csv",
    "home",
    "step",
    {"kwh": {"bounds": [0, 10], "step": 0.5, "missing": "refuse"}},
    {"hour": [6, 12, 18]},
)
ONE_ROW_EACH = len({row[0] for row in ROWS}) == len(ROWS)
LINEAR = """
[dataset.meters.linear.evening]
column = "kwh"
by = "hour"
weights = { 12 = 0.1, 18 = "-1/2" }
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    lines = [",".join(HEADER), *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "survey.toml").write_text(SURVEY)
    write_prior(NETWORK, tmp_path / "survey.json")
    rows = [f"h{k % 2},{k // 2},{(6, 12, 18)[k // 2 % 3]},{k % 7 / 2}" for k in range(24)]
    (tmp_path / "meters.csv").write_text("\n".join(["home,step,hour,kwh", *rows]) + "\n")
    (tmp_path / "meters.toml").write_text(METERS)
    write_prior(Gaussian(AR1(0.5), mean=5, variance=100), tmp_path / "meters.json")

    def run(*arguments: str) -> Ran:
        return call(tmp_path, monkeypatch, *arguments)

    assert run("init").status == 0
    for line in (
        "dataset add survey survey.toml --prior survey.json --over row",
        "dataset add meters meters.toml --prior meters.json --secrets-within 1",
    ):
        done = run(*line.split())
        assert done.status == 0, done.err
    with (tmp_path / "takifugu.toml").open("a") as policy:
        policy.write(LINEAR)
    for name in ("survey", "meters"):
        for line in (f"budget set {name} 5", f"prior accept {name} --yes"):
            done = run(*line.split())
            assert done.status == 0, done.err
    return run


@pytest.mark.nightly
def test_cross_tabulations_and_marginals(ask: Ask) -> None:
    both = ("--column", "place", "--column", "health")
    printed = ask("plan", "survey", "histogram", *both, "--epsilon", "1")
    assert printed.status == 0 and "histogram of place × health" in printed.out, printed.err
    listed = ask("plan", "survey", "histogram", "--column", "place,health", "--epsilon", "1")
    assert listed.out == printed.out
    ask("plan", "survey", "histogram", *both, "--epsilon", "1", "--out", "plan.json")
    result = ask("release", "plan.json", "--json").json()
    assert result["columns"] == ["place", "health", "estimate", "low", "high"]
    assert len(result["rows"]) == 4
    assert result["query"]["column"] == ["place", "health"]
    ((_, shape),) = result["cost"]["by_value"]
    assert shape == ["jointly", ["health", "place"]]
    other = ("--column", "health", "--column", "place")
    assert ask("release", "survey", "histogram", *other, "--epsilon", "1", "--json").json()["free"]
    marginals = ask("release", "survey", "marginals", "--epsilon", "1", "--json").json()
    assert [row[:2] for row in marginals["rows"]] == [
        ["place", "home"], ["place", "out"], ["health", "well"], ["health", "ill"],
    ]  # fmt: skip
    shown = ask("ledger", "show").out
    assert "histogram of place × health" in shown and "marginals of place, health" in shown
    assert ask("ledger", "verify").status == 0
    refused = ask("plan", "survey", "transitions", "--column", "place", "--epsilon", "1")
    assert refused.status == 2 and "histogram" in refused.err
    missing = ask("plan", "survey", "histogram", "--epsilon", "1")
    assert missing.status == 2 and "place, health" in missing.err


@pytest.mark.nightly
def test_a_declared_linear_query(ask: Ask) -> None:
    plan = ask("plan", "meters", "linear", "--query", "evening", "--epsilon", "1", "--json").json()
    assert plan["query"]["weights"] == [[6, "0"], [12, "1/10"], [18, "-1/2"]]
    assert plan["groups"] == {"columns": ["hour"], "keys": [[12], [18]]}
    printed = ask("plan", "meters", "linear", "--query", "evening", "--epsilon", "1")
    assert "linear of evening: kwh, weighted by hour" in printed.out
    released = ask("release", "meters", "linear", "--query", "evening", "--epsilon", "1", "--json")
    assert released.json()["columns"] == ["estimate", "low", "high"]
    unknown = ask("plan", "meters", "linear", "--query", "morning", "--epsilon", "1")
    assert unknown.status == 2 and "evening" in unknown.err
    assert ask("plan", "meters", "linear", "--epsilon", "1").status == 2
    shown = ask("dataset", "show", "meters")
    assert "evening: kwh, weighted by hour" in shown.out
    known = ask("dataset", "show", "meters", "--json").json()["linear"]
    assert known == {
        "evening": {"column": "kwh", "by": "hour", "weights": {"12": "1/10", "18": "-1/2"}}
    }
    quantile = ask("plan", "meters", "quantile", "--level", "0.5", "--epsilon", "1")
    assert quantile.status == 2 and "linear" in quantile.err


HEAD = '[ledger]\nplace = "x"\nid = "y"\n[dataset.meters]\ndeclaration = "meters.toml"\n'


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("weights = {", "weights = 3 # {", "dataset, meters, linear, evening, weights"),
        ("{ 12 = 0.1", "{ 12 = true", "dataset, meters, linear, evening, weights"),
        ("0.1", "nan", "dataset, meters, linear, evening, weights"),
        ('{ 12 = 0.1, 18 = "-1/2" }', "{ 12 = 0 }", "dataset, meters, linear, evening, weights"),
        ('by = "hour"', "", "dataset, meters, linear, evening, by"),
        ('by = "hour"', 'by = "hour"\nclamp = 3', "dataset, meters, linear, evening, clamp"),
    ],
)
def test_a_policy_that_declares_something_else_is_refused(old: str, new: str, field: str) -> None:
    assert parse_policy(HEAD + LINEAR).datasets["meters"].linear["evening"].column == "kwh"
    with raises(InvalidProject, field=field):
        parse_policy(HEAD + LINEAR.replace(old, new))


def test_priors_are_added_to_a_policy_with_linear_queries(tmp_path: Path) -> None:
    """A section for each, wherever the linear queries stand."""
    path = tmp_path / "takifugu.toml"
    path.write_text(HEAD + LINEAR)
    for replaced, files in ((False, ["one.json"]), (False, ["one.json", "two.json"])):
        add_prior(path, "meters", {"file": files[-1]}, replace=replaced)
        policy = parse_policy(path.read_text()).datasets["meters"]
        assert [prior.file for prior in policy.priors] == files
        assert set(policy.linear) == {"evening"}
    path.write_text(path.read_text() + LINEAR.replace("evening", "night"))
    add_prior(path, "meters", {"file": "three.json"}, replace=True)
    policy = parse_policy(path.read_text()).datasets["meters"]
    assert [prior.file for prior in policy.priors] == ["three.json"]
    assert set(policy.linear) == {"evening", "night"}


def test_what_to_fit_is_suggested_by_what_the_table_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    assert ask("init", "again").status == 0
    meters = ("dataset", "add", "load", "meters.toml", "--project", "again")
    assert "prior fit load --kind gaussian " in call(tmp_path, monkeypatch, *meters).out
    survey = ("dataset", "add", "people", "survey.toml", "--project", "again")
    expected = "prior fit people --kind network " if ONE_ROW_EACH else "--columns place,health "
    assert expected in call(tmp_path, monkeypatch, *survey).out
