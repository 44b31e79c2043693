"""What people see of a fitted prior: whether it suits, its numbers, and what is kept of the old."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.cli.commands.prior_command import tables_of
from takifugu.priors import (
    BayesianNetwork,
    Gaussian,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    read_prior,
)
from takifugu.priors.kernels import AR1
from takifugu.project.project import open_project
from takifugu.translation import Translation
from tests.cli.running import Ran, call
from tests.real_data import real

NIGHTS = """\
[source]
kind = "csv"
path = "nights.csv"
[entity]
column = "night"
[order]
column = "epoch"
kind = "number"
ties = "refuse"
[protected.stage]
values = ["W", "N", "R"]
outside = "{outside}"
"""


def write_nights(folder: Path, paths: dict[str, list[str]], outside: str = "other") -> None:
    lines = ["night,epoch,stage"]
    lines += [f"{who},{at},{x}" for who, path in paths.items() for at, x in enumerate(path)]
    (folder / "nights.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "nights.toml").write_text(NIGHTS.format(outside=outside), encoding="utf-8")


def drawn(people: int, length: int) -> dict[str, list[str]]:
    """Nights that go on until the sensor comes off, some of them."""
    rng = np.random.default_rng(4)
    table = {"W": [0.7, 0.3, 0.0], "N": [0.1, 0.8, 0.1], "R": [0.2, 0.1, 0.7]}
    nights = {}
    for who in range(people):
        state, path, worn = "W", list[str](), True
        for _ in range(length):
            worn = worn and rng.random() > 0.01
            path.append(state if worn else "off")
            state = "WNR"[int(np.searchsorted(np.cumsum(table[state]), rng.random()))]
        nights[f"n{who}"] = path
    return nights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_nights(tmp_path, drawn(12, 60))
    return tmp_path


def done(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> Ran:
    found = call(folder, monkeypatch, *line.split())
    assert found.status == 0, found.err
    return found


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    done(folder, monkeypatch, "init")
    done(folder, monkeypatch, "dataset add nights nights.toml")
    return folder


@pytest.mark.nightly
def test_a_fit_says_whether_it_suits(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = done(study, monkeypatch, "prior fit nights --share 1/2 --json").json()
    advice = facts["advice"]
    chain = read_prior(study / facts["out"])
    assert advice["epsilon"] == 1 and advice["allowed"] == float(Translation(chain).to_dp(1))
    assert "other" in (advice["pair"]["left"], advice["pair"]["right"])
    assert advice["hardly_left"] == {"other": pytest.approx(3e-5)}
    assert advice["rests_on"]["counted"] == facts["steps"]
    assert advice["rests_on"]["rows"] == facts["steps"] + advice["rests_on"]["people"]
    assert advice["rests_on"]["never_left"] == ["other"]
    assert {"pairs", "length"} <= {remedy["kind"] for remedy in advice["remedies"]}
    assert facts["remaining"] == 12 * 60 - advice["rests_on"]["rows"]
    text = done(study, monkeypatch, "prior fit nights --share 1/2 --replace").out
    assert advice["words"] in text and "next: takifugu budget set nights 1" in text
    assert max(map(len, text.splitlines()[:3])) < 120  # then the paragraph


def test_a_fit_that_skips_rows_says_that_which_they_are_is_not_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_nights(tmp_path, drawn(40, 200), outside="drop")
    done(tmp_path, monkeypatch, "init")
    done(tmp_path, monkeypatch, "dataset add nights nights.toml")
    said = done(tmp_path, monkeypatch, "prior fit nights --share 1/2 --no-goodness").out
    assert "which rows these are is not protected" in said


@pytest.mark.nightly
def test_the_budget_is_what_is_priced(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done(study, monkeypatch, "prior fit nights --share 1/2 --no-advice")
    done(study, monkeypatch, "budget set nights 0.25")
    line = "prior fit nights --share 1/2 --replace --json"
    assert done(study, monkeypatch, line).json()["advice"]["epsilon"] == 0.25
    silent = done(study, monkeypatch, f"{line} --no-advice").json()
    assert silent["advice"] is None


def test_days_are_not_steps(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = call(study, monkeypatch, *["prior", "fit", "nights", "--first-days", "5"])
    assert refused.status == 2 and "--first-steps 5" in refused.err
    assert getattr(refused.error, "reason", "") == "order-is-a-number"
    assert not list(study.glob("*.prior.json"))
    declared = (study / "nights.toml").read_text()
    timed = declared.replace('kind = "number"', 'kind = "epoch"\nzone = "UTC"')
    (study / "nights.toml").write_text(timed)
    refused = call(study, monkeypatch, *["prior", "fit", "nights", "--first-steps", "5"])
    assert refused.status == 2


@pytest.mark.nightly
def test_a_new_prior_keeps_the_adversary_and_leaves_no_file_behind(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(study, monkeypatch, "prior fit nights --share 1/2 --no-advice")
    (first,) = study.glob("*.prior.json")
    text = (study / "takifugu.toml").read_text()
    (study / "takifugu.toml").write_text(f'{text}start = "unknown"\nknown = "any"\n')
    again = done(study, monkeypatch, "prior fit nights --share 1/3 --replace --no-advice").out
    (prior,) = open_project(study).dataset("nights").priors
    assert (prior.start, prior.known) == ("unknown", "any")
    assert 'keeps start = "unknown"' in again
    assert not first.exists() and [study / prior.file] == list(study.glob("*.prior.json"))
    done(study, monkeypatch, "budget set nights 1")
    done(study, monkeypatch, "prior fit nights --share 1/4 --replace --no-advice")
    assert len(list(study.glob("*.prior.json"))) == 2  # the one that the budget was set under


def test_an_adversary_that_a_new_prior_cannot_have_is_refused(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(study, monkeypatch, "prior fit nights --share 1/2 --no-advice")
    path = study / "takifugu.toml"
    path.write_text(f'{path.read_text()}known = "any"\n')
    before = path.read_text(), sorted(study.glob("*.json"))
    line = "prior fit nights --share 1/2 --replace --kind higher-order --no-advice"
    refused = call(study, monkeypatch, *line.split())
    assert refused.status == 2 and type(refused.error).__name__ == "InvalidProject"
    assert (path.read_text(), sorted(study.glob("*.json"))) == before


@pytest.mark.nightly
def test_a_dataset_is_translated_with_its_secrets(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(study, monkeypatch, "prior fit nights --share 1/2 --no-advice")
    told = done(study, monkeypatch, "translate nights --pufferfish 1 --json").json()
    made = open_project(study).load("nights").entry_translation
    assert told["dp_epsilon"] == float(made.to_dp(1))
    for option in ("--pairs W/N", "--uncertainty 0.1", "--known any", "--table"):
        refused = call(study, monkeypatch, *f"translate nights --dp 1 {option}".split())
        assert refused.status == 2 and getattr(refused.error, "field", "") == option.split()[0]


def shown(prior: Any) -> str:
    return "\n".join(tables_of(prior))


def test_a_small_matrix_is_shown_whole(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.25, 0.75]]), states=("home", "ward"))
    assert shown(chain).splitlines() == [
        "each step, from the row to the column",
        "        home  ward",
        "  home   0.9   0.1",
        "  ward  0.25  0.75",
    ]
    done(study, monkeypatch, "prior fit nights --share 1/2 --no-advice")
    assert "each step, from" in done(study, monkeypatch, "prior show nights").out


def test_of_a_large_matrix_the_largest_entries_are_shown() -> None:
    table = np.full((12, 12), 0.01)
    np.fill_diagonal(table, 0.89)
    table[3, 4], table[3, 3] = 0.4, 0.5
    lines = shown(MarkovChain(table)).splitlines()
    assert lines[0] == "stays, the 10 most likely of 12" and "  3 -> 4  0.4" in lines
    assert len(lines) == 22


def test_other_families_show_their_numbers() -> None:
    low = np.array([[0.8, 0.1], [0.1, 0.8]])
    assert "0.8–0.9" in shown(IntervalMarkovChain(low, low + 0.1, ("a", "b")))
    rain = BayesianNetwork(
        entries=("rain", "wet"),
        states=(("no", "yes"), ("no", "yes")),
        parents=((), ("rain",)),
        tables=(np.array([0.75, 0.25]), np.array([[1.0, 0.0], [0.5, 0.5]])),
    )
    assert shown(rain).splitlines() == ["1 edges between 2 entries", "  rain -> wet"]
    couple = MarkovRandomField(
        entries=("ada", "bob"),
        states=((0, 1), (0, 1)),
        unary=(np.array([3.0, 1]), np.array([1.0, 1])),
        edges=(("ada", "bob"),),
        weights=(np.array([[1.0, 1], [1, 3]]),),
    )
    assert "  ada -- bob" in shown(couple)
    means = Gaussian(AR1(0.5), variance=1, mean=np.array([1.0, 2.0]), length=2)
    assert shown(means) == "means of 2 entries, from 1 to 2"
    assert shown(Gaussian(AR1(0.5), variance=1, length=2)) == ""


def test_marks_that_do_not_show_are_written_out() -> None:
    chain = MarkovChain(np.full((2, 2), 0.5), states=("a\x1b[2J", "b"))
    assert "\x1b" not in shown(chain) and "\\u001b" in shown(chain)


@pytest.mark.real_data
def test_of_sleep_the_state_that_is_hardly_left_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {0: "W", 1: "N", 2: "N", 3: "N", 4: "R", -1: "?"}
    with gzip.open(real("sleep_hypnograms.csv.gz"), "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["scorer"] == "scorer_1"]
    paths = {
        f"{row['dataset']} {row['recording']}": [names[int(x)] for x in row["stages_30s"].split()]
        for row in rows
    }
    write_nights(tmp_path, paths, outside="other")
    done(tmp_path, monkeypatch, "init")
    done(tmp_path, monkeypatch, "dataset add nights nights.toml")
    line = "prior fit nights --share 1/2 --no-goodness --json"
    advice = done(tmp_path, monkeypatch, line).json()["advice"]
    assert "other" in (advice["pair"]["left"], advice["pair"]["right"])
    assert "other" in advice["hardly_left"]
    assert "drop" not in {remedy["kind"] for remedy in advice["remedies"]}
