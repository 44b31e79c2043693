"""``takifugu dataset accept``: what differs, what it costs, and who decided."""

import json
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import SameRows
from tests.cli.running import call
from tests.declared import declared
from tests.oracles.raw_readings import NoisySums, leakage
from tests.session.study import write_data


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_data(tmp_path)
    for line in (
        "init",
        "dataset add stays stays.toml",
        "prior new 0.9,0.1;0.2,0.8 --states home,ward -o a.json",
        "budget set stays 2",
    ):
        assert call(tmp_path, monkeypatch, *line.split()).status == 0
    with (tmp_path / "takifugu.toml").open("a") as file:
        file.write('[[dataset.stays.prior]]\nfile = "a.json"\n')
    assert (tmp_path / "takifugu.key").stat().st_mode & 0o777 == 0o600
    done = call(tmp_path, monkeypatch, *["accept", "stays", "--yes"])
    assert done.status == 2  # no such command
    line = "release stays count --values ward --where zone=north --epsilon 1"
    assert call(tmp_path, monkeypatch, *line.split()).status == 0
    return tmp_path


@pytest.mark.nightly
def test_an_edit_is_refused_told_and_accepted(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def do(line: str) -> tuple[int, str, str]:
        ran = call(released, monkeypatch, *line.split())
        return ran.status, ran.out, ran.err

    path = released / "stays.toml"
    text = path.read_text()
    path.write_text(text.replace('["north", "south"]', '["south"]\noutside = "other"'))
    for command in ("plan", "release"):
        status, out, err = do(f"{command} stays count --values ward --where zone=other --epsilon 1")
        assert status == 3 and out == "" and err.count("\n") == 1
        assert 'public zone values was ["north", "south"] and is now ["south"]' in err
    status, out, err = do("dataset accept stays")
    assert status == 2 and "--yes" in err
    status, _, err = do("dataset accept stays --unchanged --yes")
    assert status == 2 and "not unchanged" in err
    status, out, _ = do("dataset accept stays --yes")
    assert status == 0 and "public zone values was" in out and "by every row" in out
    assert "accepted by" in out
    status, _, err = do("release stays count --values ward --where zone=south --epsilon 1.2")
    assert status == 3 and "Ask for at most" in err  # what north lost counts on south as well
    assert do("ledger verify")[0] == 0 and "charged to every row" in do("ledger show")[1]


PLACES = declared(
    "places.csv",
    "who",
    "day",
    {"place": {"values": ["home", "ward", "clinic"], "outside": "refuse", "labels": "places.json"}},
)
CHAIN = {
    "kind": "markov-chain",
    "states": ["home", "ward", "clinic"],
    "transition": [[0.98, 0, 0.02], [0.5, 0, 0.5], [0.02, 0, 0.98]],
    "start": [0.45, 0.1, 0.45],
    "length": 4,
}


@pytest.mark.nightly
def test_a_raw_value_that_moves_to_another_label_makes_earlier_counts_cost_their_scalar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of `ward` had V in it, which is `clinic` now: as an enumeration of tables says."""

    def do(line: str) -> Any:
        ran = call(tmp_path, monkeypatch, *line.split())
        assert ran.status == 0, ran.err
        return json.loads(ran.out) if "--json" in line else ran.out

    def label(raw: str, name: str) -> None:
        found = {"H": "home", "W": "ward", "C": "clinic", raw: name}
        (tmp_path / "places.json").write_text(json.dumps(found))

    lines = [f"p{i},{day},{'HVC'[(i + day) % 3]}" for i in range(60) for day in range(4)]
    (tmp_path / "places.csv").write_text("\n".join(["who,day,place", *lines]) + "\n")
    (tmp_path / "places.toml").write_text(PLACES)
    (tmp_path / "prior.json").write_text(json.dumps(CHAIN))
    label("V", "ward")
    for line in (
        "init",
        "dataset add places places.toml --prior prior.json",
        "budget set places 2",
    ):
        do(line)
    release = do("release places count --values ward --epsilon 1 --yes --json")
    label("V", "clinic")
    pending = do("budget show places --json")
    assert "dataset accept" in pending["note"]
    done = do("dataset accept places --yes --json")
    count = NoisySums(
        (0, 1, 2, 3), {"H": (0,), "W": (1,), "V": (1,), "C": (0,)}, release["mechanism"]["scale"]
    )
    raw = [["H"], ["W"], ["C", "V"]]
    truth = leakage([[0, 1, 2, 3]], CHAIN["start"], CHAIN["transition"], raw, [count])  # type: ignore[arg-type]
    assert done["spent_before"] <= 1 < 2 < truth <= done["spent_after"]
    (spent,) = (one["spent"] for one in do("budget show places --json")["budgets"])
    assert spent == done["spent_after"] == pending["budgets"][0]["spent"]
    more = "release places count --values ward --epsilon 0.1"
    refused = call(tmp_path, monkeypatch, *more.split())
    assert refused.status == 3


@pytest.mark.nightly
def test_edited_data_is_told_before_it_is_charged(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (released / "stays.csv").open("a") as file:
        file.write("p99,0,north,1,home\n")
    line = "stays count --values ward --where zone=north --epsilon 0.1"
    assert "note: the data changed" in call(released, monkeypatch, "plan", *line.split()).out
    ran = call(released, monkeypatch, "release", *line.split(), "--yes")
    assert ran.status == 0 and ran.err.startswith("takifugu: the data changed since")


@pytest.mark.nightly
def test_a_copy_is_refused_until_it_is_counted_separately(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (released / "copy.csv").write_bytes((released / "stays.csv").read_bytes())
    text = (released / "stays.toml").read_text()
    (released / "copy.toml").write_text(text.replace("stays.csv", "copy.csv"))
    for line in ("dataset add copy copy.toml --prior a.json", "budget set copy 2"):
        assert call(released, monkeypatch, *line.split()).status == 0
    asked = ["plan", "copy", "count", "--values", "ward", "--epsilon", "1"]
    refused = call(released, monkeypatch, *asked)
    assert refused.status == 3 and isinstance(refused.error, SameRows)
    ran = call(
        released,
        monkeypatch,
        *["dataset", "accept", "copy", "--separate-from", "stays", "--yes", "--json"],
    )
    assert ran.json()["decision"] == "separate"
    assert call(released, monkeypatch, *asked).status == 0
