"""Households, and people over time, from the command line: what fits, and what is refused."""

import shlex
from pathlib import Path

import pytest

from takifugu.priors import MarkovRandomField, write_prior
from tests.cli.running import Call, Ran, call
from tests.declared import declared

DECLARED = declared(
    "study.csv",
    "person",
    "day",
    {"health": ["well", "ill"]},
    {"home": "from the data", "role": ["parent", "child"]},
    title="A study",
)
ROLES = ("parent", "child")


def write(folder: Path, *, sizes: tuple[int, ...] = (2,) * 6, days: int = 4) -> None:
    lines = ["person,home,role,day,health"]
    for home, size in enumerate(sizes):
        for k in range(size):
            for day in range(days):
                health = "ill" if (home + k * day) % 3 == 0 else "well"
                lines.append(f"p{home}{k},h{home},{ROLES[k % 2]},{day},{health}")
    (folder / "study.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "study.toml").write_text(DECLARED, encoding="utf-8")


def add(takifugu: Call, prior: str, how: str) -> Ran:
    return takifugu(f"dataset add study study.toml --prior {prior} {how}")


HOUSEHOLD = "prior household --background 0.1 --infection 0.2 --recovery 0.4 --start 0.2 --length 4"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    write(folder)
    return folder


@pytest.fixture
def made(here: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    def takifugu(line: str) -> Ran:
        return call(here, monkeypatch, *shlex.split(line))

    assert takifugu("init").status == 0
    assert takifugu(f"{HOUSEHOLD} --members parent,child -o pair.json").status == 0
    return takifugu


@pytest.mark.nightly
def test_a_household_is_planned_released_and_counted(made: Call) -> None:
    how = "--over household --household home --member role"
    assert add(made, "pair.json", how).status == 0
    assert made("budget set study 2").status == 0
    planned = made("plan study histogram --epsilon 1 --json").json()
    assert 0.99 < planned["cost"]["alone"] <= 1
    text = " ".join(made("plan study histogram --epsilon 1").out.split())
    assert "in one `home`, told apart by `role`" in text
    assert made("release study histogram --epsilon 1 --json").status == 0
    assert made("release study histogram --epsilon 1 --json").json()["free"]
    assert made("release study count --values ill --by role --epsilon 2").status != 0
    assert made("ledger verify").status == 0
    shown = made("dataset show study --json").json()
    assert shown["over"] == ["household"] or "household" in str(shown["over"])


@pytest.mark.nightly
def test_what_is_no_household_is_refused(made: Call, here: Path) -> None:
    def refused(prior: str, how: str, *words: str) -> None:
        found = add(made, prior, how)
        assert found.status == 2, found.out
        assert all(word in found.err for word in words), found.err
        assert "ill" not in found.err.replace("will", "")

    by_home = "--over household --household home"
    refused("pair.json", "--over household", "household")
    refused("pair.json", "--over household --household flat", "flat", "home", "role")
    refused("pair.json", f"{by_home} --member day", "day", "role")
    refused("pair.json", "", "household", "sequence")
    assert made(f"{HOUSEHOLD} --members mother,child -o other.json").status == 0
    refused("other.json", f"{by_home} --member role", "'mother'", "'parent'")
    assert made(f"{HOUSEHOLD} --members 3 -o three.json").status == 0
    refused("three.json", by_home, "6 of 2")
    write(here, sizes=(2, 2, 9))
    refused("pair.json", by_home, "2 of 2, 1 of 9", "entities × sequence")
    write(here, days=5)
    refused("pair.json", by_home, "4 entries", "5 rows")
    nine = made(f"{HOUSEHOLD} --members 9 -o nine.json")
    assert nine.status == 2 and "at most 8" in nine.err
    for options in ("--labels well", "--start soon", "--background 0", "--members ''"):
        assert made(f"{HOUSEHOLD} --members 2 -o x.json {options}").status == 2


@pytest.mark.nightly
def test_a_household_is_fitted_on_the_first_days(made: Call) -> None:
    assert made("dataset add study study.toml").status == 0
    fitted = made("prior fit study --kind household --household home --first-steps 2 --json").json()
    assert fitted["steps"] == 6 and fitted["columns"] == ["member 1", "member 2"]
    assert made("budget set study 2").status == 0
    planned = made("plan study histogram --epsilon 1 --json").json()
    assert planned["cost"]["alone"] <= 1
    for wrong in (
        "--kind household --first-steps 2",
        "--kind household --household health --first-steps 2",
        "--kind household --household home --share 1/2",
        "--kind markov --household home --first-steps 2",
    ):
        assert made(f"prior fit study --add {wrong}").status == 2


@pytest.mark.nightly
def test_people_over_time_are_planned_and_released(made: Call, here: Path) -> None:
    people = [f"p{home}{k}" for home in range(6) for k in range(2)]
    field = dict.fromkeys((f"{who}: {day}" for who in people for day in range(4)), 0.0)
    met = {(f"{who}: {day}", f"{who}: {day + 1}"): 0.5 for who in people for day in range(3)}
    met |= {(f"p{home}0: {day}", f"p{home}1: {day}"): 0.3 for home in range(6) for day in range(4)}
    prior = MarkovRandomField.ising(field, met)
    write_prior(prior, here / "field.json")
    (here / "study.toml").write_text(
        DECLARED.replace('values = ["well", "ill"]', "values = [0, 1]"), encoding="utf-8"
    )
    text = (here / "study.csv").read_text(encoding="utf-8")
    (here / "study.csv").write_text(
        text.replace(",well", ",0").replace(",ill", ",1"), encoding="utf-8"
    )
    assert add(made, "field.json", '--over "entities x sequence"').status == 0
    assert made("budget set study 2").status == 0
    plan = made("plan study count --values 1 --epsilon 1")
    assert plan.status == 0 and "one draw" in plan.out
    assert made("release study count --values 1 --epsilon 1").status == 0
    assert made("ledger verify").status == 0
    (here / "study.csv").write_text(
        text.replace(",well", ",0").replace(",ill", ",1").replace("p50", "dan"), encoding="utf-8"
    )
    missing = made("plan study histogram --epsilon 0.1")
    assert missing.status == 2 and "'dan'" in missing.err and "p50" in missing.err
