"""Tables of several protected columns from the command line, from the declaration to the ledger."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import NotAccepted, UnsoundRequest
from takifugu.priors import Prior, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.session import OverBudget
from tests.cli.running import Ran, call
from tests.declared import declared
from tests.session.tables import CHAIN, HEADER, NETWORK, ROWS

DECLARED = declared(
    "table.csv",
    "person",
    "step",
    {"place": ["home", "out"], "health": ["well", "ill"]},
    {"zone": ["a", "b"]},
    title="A survey",
)
READINGS: list[tuple[Prior, str, str]] = [
    (NETWORK, "row", "The columns of each row are taken to be one draw from it"),
    (CHAIN, "sequence", "with the values of all protected columns as one joint state each"),
]

Do = Callable[[str], Ran]


def started(folder: Path, prior: Prior, monkeypatch: pytest.MonkeyPatch) -> Do:
    lines = [",".join(HEADER), *(",".join(map(str, row)) for row in ROWS)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "survey.toml").write_text(DECLARED)
    write_prior(prior, folder / "prior.json")

    def do(line: str) -> Ran:
        return call(folder, monkeypatch, *line.split())

    assert do("init").status == 0
    return do


def went_well(done: Ran) -> str:
    assert done.status == 0, done.err
    return done.out


@pytest.mark.nightly
@pytest.mark.parametrize(("prior", "over", "says"), READINGS)
def test_the_whole_story_of_two_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prior: Prior, over: str, says: str
) -> None:
    do = started(tmp_path, prior, monkeypatch)
    (tmp_path / "pairs.json").write_text(json.dumps({"health": [["ill", ["well"]]]}))
    went_well(
        do(f"dataset add survey survey.toml --prior prior.json --over {over} --pairs pairs.json")
    )
    went_well(do("budget set survey 2"))
    shown = do("dataset show survey --json").json()
    assert (shown["about"], shown["columns"]) == (None, ["place", "health"])
    assert (shown["over"], shown["pairs"]) == ([over], {"health": [[["ill"], ["well"]]]})
    assert "about        place, health" in went_well(do("dataset show survey"))
    went_well(do("dataset check survey"))
    missing = do("plan survey histogram --epsilon 1")
    assert missing.status == 2 and isinstance(missing.error, InvalidQuery)
    assert "place, health" in missing.err
    planned = do("plan survey histogram --column health --epsilon 1 --out plan.json --json").json()
    cost = planned["cost"]
    assert cost["fits"] and cost["alone"] == max(cost["by_column"].values()) <= 1
    assert cost["by_column"]["health"] >= cost["by_column"]["place"] > 0
    assert says in " ".join(planned["guarantee"].split())
    text = went_well(do("plan survey histogram --column health --epsilon 1"))
    assert " alone (health " in text and ", place 0." in text
    first = do("release plan.json --json --yes").json()
    assert not first["free"] and first["cost"]["by_column"] == cost["by_column"]
    again = do("release survey histogram --column health --epsilon 1 --json").json()
    assert again["free"] and again["rows"] == first["rows"]
    went_well(do("release survey count --column place --values home --by zone --epsilon 0.5 --yes"))
    refused = do("release survey histogram --column place --epsilon 2")
    assert refused.status == 3 and isinstance(refused.error, OverBudget)
    (whole,) = do("budget show survey --json").json()["budgets"]
    assert first["cost"]["after"] < whole["spent"] <= 1.5000001
    assert max(whole["by_column"].values()) == pytest.approx(whole["spent"])
    assert whole["spent"] > 1 > min(whole["by_column"].values()) > 0
    assert "  place " in went_well(do("budget show survey"))
    assert_the_rest_is_accepted(do, float(whole["most"]))
    assert do("ledger verify --json").json()["sound"]
    went_well(do("ledger show"))
    assert_another_policy_waits(tmp_path, do, over)


def assert_the_rest_is_accepted(do: Do, most: float) -> None:
    """What `budget show` says would be accepted on all rows is, of any one column."""
    for column in ("place", "health"):
        line = f"plan survey histogram --column {column} --epsilon {most} --json"
        assert do(line).json()["cost"]["fits"], (column, most)


def assert_another_policy_waits(folder: Path, do: Do, over: str) -> None:
    """Other secrets or another reading are nothing that is charged under before the owner says."""
    file = folder / "takifugu.toml"
    text = file.read_text()
    file.write_text(text.replace('["ill"], ["well"]', '["well"], ["ill"]'))
    waiting = do("plan survey histogram --column health --epsilon 0.1")
    assert waiting.status == 3 and isinstance(waiting.error, NotAccepted)
    change = do("prior accept survey --yes --json").json()
    assert change["spent_before"] == pytest.approx(change["spent_after"]), change
    went_well(do("plan survey histogram --column health --epsilon 0.1"))
    file.write_text(text.replace(f'over = "{over}"', 'over = "entities"'))
    other = do("plan survey histogram --column health --epsilon 0.1")
    assert other.status == 2 and isinstance(other.error, UnsoundRequest), other.err


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("add", "reason"),
    [
        ("--prior prior.json", None),
        ("--prior prior.json --over entities --about place", "names-differ"),
        ("--prior prior.json --over row --about place", "several-columns"),
        ("--prior prior.json --over columns", None),
        ("--prior prior.json --over row --household zone", None),
        ("--prior prior.json --household zone", "superfluous"),
        ("--prior prior.json --over household", "missing"),
        ("--prior prior.json --over household --household zone", "over"),
        ("--prior prior.json --over row --pairs home/out", "by-column"),
        ("--prior prior.json --over row --entries place", None),
    ],
)
def test_what_does_not_fit_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, add: str, reason: str | None
) -> None:
    do = started(tmp_path, NETWORK, monkeypatch)
    before = (tmp_path / "takifugu.toml").read_bytes()
    refused = do(f"dataset add survey survey.toml {add}")
    error: Any = refused.error
    assert refused.status == 2 and refused.err.count("\n") == 1, refused.err
    assert isinstance(error, UnsoundRequest | InvalidProject)
    assert reason is None or error.reason == reason, refused.err
    assert (tmp_path / "takifugu.toml").read_bytes() == before


def test_two_budgets_for_one_column_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do = started(tmp_path, NETWORK, monkeypatch)
    went_well(do("dataset add survey survey.toml --prior prior.json --over row"))
    for about in ("", "--about health", "--about place"):
        again = do(f"dataset add again survey.toml {about}")
        assert again.status == 3 and getattr(again.error, "reason", None) == "same-rows"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("fit", "over"),
    [("--kind network", "row"), ("--kind markov --columns place,health --length 4", "sequence")],
)
def test_a_prior_of_all_columns_is_fitted_and_released_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: str, over: str
) -> None:
    do = started(tmp_path, NETWORK, monkeypatch)
    rows = [
        (f"p{k}", step, "ab"[k % 2], ("home", "out")[(k + step) % 2], ("well", "ill")[k % 3 // 2])
        for k in range(30)
        for step in range(4)
    ]
    lines = [",".join(HEADER), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    went_well(do("dataset add survey survey.toml"))
    fitted = do(f"prior fit survey {fit} --share 1/2 --json")
    went_well(fitted)
    went_well(do("budget set survey 2"))
    assert do("dataset show survey --json").json()["over"] == [over]
    cost = do("plan survey histogram --column health --epsilon 1 --json").json()["cost"]
    assert cost["fits"] and set(cost["by_column"]) == {"place", "health"}
    went_well(do("release survey histogram --column health --epsilon 1"))


@pytest.mark.nightly
def test_a_lost_history_counts_on_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a copy that holds no charge, which says nothing of columns itself."""
    do = started(tmp_path, NETWORK, monkeypatch)
    went_well(do("dataset add survey survey.toml --prior prior.json --over row"))
    went_well(do("budget set survey 2"))
    went_well(do("ledger backup old.backup"))
    went_well(do("release survey histogram --column health --epsilon 1"))
    restored = do("ledger restore old.backup --accept-loss --json").json()
    (account,) = restored["counted"]
    assert account["epsilon"] == "0"
    assert account["costs"] == [
        ["2", ["column", "health", ["any"]]],
        ["2", ["column", "place", ["any"]]],
    ]
    spent = do("budget show survey --json").json()["budgets"][0]["spent"]
    assert spent > 2  # more than the budget: nothing is left of it
    refused = do("release survey histogram --column place --epsilon 0.1")
    assert refused.status == 3 and isinstance(refused.error, OverBudget)
