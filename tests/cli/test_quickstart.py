"""From a file to the plan of a first release: what is decided, asked, made, and not charged."""

import json
import shlex
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest

from takifugu.declarations import read_declaration
from takifugu.ledger import open_ledger
from takifugu.project.project import open_project
from takifugu.synthetic import Meters, write_meter_readings
from tests.cli.running import Ran, call
from tests.cli.test_dataset_new import talk
from tests.real_data import real

PLACES = ("home", "work", "gym", "café")
RARE = "a place that one person visits"


def visits(folder: Path, people: int = 60, steps: int = 40) -> Path:
    """Check-ins; the last person, whom no fifth holds, is somewhere else too."""
    rng = np.random.default_rng(5)
    lines = ["user,step,place,country"]
    for person in range(people):
        here = 0
        for step in range(steps):
            here = int(rng.integers(4)) if rng.random() < 0.6 else here
            lines.append(f"u{person},{step},{PLACES[here]},{'AB'[person % 2]}")
    lines.append(f"u{people - 1},{steps},{RARE},A")
    path = folder / "visits.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def survey(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    lines = ["person,disease,job"]
    for person in range(800):
        job = rng.random() < 0.4
        ill = rng.random() < (0.3 if job else 0.1)
        lines.append(f"p{person},{'yes' if ill else 'no'},{'mine' if job else 'desk'}")
    path = folder / "survey.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def start(folder: Path, patch: pytest.MonkeyPatch, line: str) -> Ran:
    return call(folder, patch, *shlex.split(f"quickstart {line}"))


def events(folder: Path) -> list[str]:
    with open_ledger(folder / "takifugu.ledger", read_only=True) as ledger:
        return [event.kind for event in ledger.history()]


@pytest.mark.nightly
def test_three_commands_lead_to_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visits(tmp_path)
    made = start(tmp_path, monkeypatch, "visits.csv --json").json()
    folder = tmp_path / "visits-project"
    assert made["folder"] == "visits-project" and made["open"] == []
    assert "charge" not in events(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits-project", "visits.csv"]
    choices = {choice["what"]: choice["value"] for choice in made["choices"]}
    assert (choices["person"], choices["order"], choices["protected"]) == ("user", "step", "place")
    assert choices["left out"] == "country"
    assert made["plan"]["cost"]["fits"] and made["verdict"] == "useful"
    look = call(tmp_path, monkeypatch, *shlex.split(made["next"])[1:])
    assert look.status == 0, look.err
    release = shlex.split(made["release"])[1:]
    result = call(tmp_path, monkeypatch, *release, "--json").json()
    assert {row[0] for row in result["rows"]} == {*PLACES, "other"}
    assert events(folder).count("charge") == 1
    again = call(tmp_path, monkeypatch, *release, "--json").json()
    assert again["free"]


def test_labels_of_rows_that_are_released_are_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(tmp_path)
    ran = start(tmp_path, monkeypatch, "visits.csv --at-least 1 --share 1/5")
    assert ran.status == 0, ran.err
    found = [path for path in (tmp_path / "visits-project").rglob("*") if path.is_file()]
    assert len(found) >= 4
    assert all(RARE.encode() not in path.read_bytes() for path in found)
    assert RARE not in ran.out


@pytest.mark.nightly
def test_every_decision_and_the_command_that_would_release_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(tmp_path)
    ran = start(tmp_path, monkeypatch, "visits.csv --public country --budget 2 --folder 'my study'")
    assert ran.status == 0, ran.err
    for option in ("--entity", "--order", "--protected", "--labels", "--at-least", "--share"):
        assert f"change: {option}" in ran.out or f" {option}" in ran.out
    assert "ε = 2" in ran.out
    *_, look, publish = ran.out.splitlines()
    assert look.endswith(
        "takifugu plan visits histogram --by country --epsilon 1 --project 'my study'"
    )
    assert publish.endswith(
        "takifugu release visits histogram --by country --epsilon 1 --project 'my study'"
    )
    project = open_project(tmp_path / "my study")
    assert project.budget("visits") == 2
    assert project.dataset("visits").priors[0].fitted == "share"


@pytest.mark.nightly
def test_open_points_are_all_said_with_the_command_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_meter_readings(
        tmp_path / "meters.parquet", Meters(homes=40, hours=96), rng=np.random.default_rng(1)
    )
    (tmp_path / "meters.toml").unlink()
    line = "meters.parquet --public hour_of_day"
    ran = start(tmp_path, monkeypatch, line)
    assert ran.status == 2 and [p.name for p in tmp_path.iterdir()] == ["meters.parquet"]
    found = start(tmp_path, monkeypatch, f"{line} --json")
    assert found.status == 2 and found.err == ran.err  # a line that says why, as without --json
    document = json.loads(found.out)
    assert document["folder"] is None
    assert [point["key"] for point in document["open"]] == [
        "entity.column",
        "protected.kwh.bounds",
        "secrets_within",
    ]
    assert "--public hour_of_day" in document["next"] and document["next"] in ran.err
    going_on = document["next"].replace("--entity COLUMN", "--entity home")
    going_on = going_on.replace("0..100", "0..5")
    made = call(tmp_path, monkeypatch, *shlex.split(going_on)[1:], "--json").json()
    assert "release meters mean" in made["release"] and made["verdict"] == "useful"
    column = read_declaration(tmp_path / "meters-project" / "meters.toml").amount("kwh")
    assert (column.missing, float(column.step)) == ("refuse", 0.001)


def test_the_command_to_go_on_gives_each_option_once_and_says_that_ties_are_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = np.random.default_rng(2).integers(4, size=600)
    rows = [f"u{n // 10},{n % 10 // 2},{n % 2},{PLACES[k]}" for n, k in enumerate(drawn)]
    (tmp_path / "visits.csv").write_text("\n".join(["user,step,venue,place", *rows]) + "\n")
    found = json.loads(start(tmp_path, monkeypatch, "visits.csv --order none --json").out)
    assert found["next"] == "takifugu quickstart visits.csv --order COLUMN"
    line = "visits.csv --ties venue --json"
    choices = start(tmp_path, monkeypatch, line).json()["choices"]
    (ties,) = (choice for choice in choices if choice["value"] == "venue")
    assert ties["what"] == "order" and "must not reveal" in ties["reason"]


@pytest.mark.nightly
def test_a_survey_needs_no_order_and_gets_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey(tmp_path)
    made = start(tmp_path, monkeypatch, "survey.csv --json").json()
    prior = next(choice["value"] for choice in made["choices"] if choice["what"] == "prior")
    assert prior.startswith("a network")
    release = shlex.split(made["release"])[1:]
    assert call(tmp_path, monkeypatch, *release).status == 0


@pytest.mark.nightly
def test_few_entities_are_fitted_on_the_first_fifth_of_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(tmp_path, people=8, steps=200)
    made = start(tmp_path, monkeypatch, "visits.csv --json").json()
    (prior,) = open_project(tmp_path / made["folder"]).dataset("visits").priors
    assert (prior.fitted, prior.released_from) == ("first-days", 40)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("none.csv", "none.csv"),
        ("visits.csv --entity nobody", "nobody"),
        ("visits.csv --share 1/5 --first-days 3", "--share"),
        ("visits.csv --budget 0", "--budget"),
        ("visits.csv --at-least 1000", "at least"),
        ("visits.csv --first-steps 1000", "split"),
        ("visits.csv --first-days 3", "--first-steps 3"),
        ("visits.csv --secrets-within 1", "secrets"),
        ("visits.csv --folder taken", "taken"),
        ("visits.csv --name 'a b'", "--name"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    visits(tmp_path)
    (tmp_path / "taken").mkdir()
    ran = start(tmp_path, monkeypatch, line)
    assert ran.status == 2 and message in ran.err and ran.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken", "visits.csv"]
    assert list((tmp_path / "taken").iterdir()) == []


@pytest.mark.nightly
def test_it_asks_which_of_several_columns_to_protect(tmp_path: Path) -> None:
    path = visits(tmp_path)
    path.write_text(path.read_text().replace("user,step,place,country", "user,step,place,activity"))
    status, shown = talk(tmp_path, ["nothing", "place", ""], "visits.csv", command=("quickstart",))
    assert status == 0, shown
    declaration = read_declaration(tmp_path / "visits-project" / "visits.toml")
    assert declaration.unfitted == ("place",)


@pytest.mark.nightly
def test_it_asks_for_what_numbers_need(tmp_path: Path) -> None:
    write_meter_readings(
        tmp_path / "meters.parquet", Meters(homes=40, hours=96), rng=np.random.default_rng(1)
    )
    (tmp_path / "meters.toml").unlink()
    answers: list[str | None] = ["home", "0..5", "hour_of_day", "far", "1"]
    status, shown = talk(tmp_path, answers, "meters.parquet", command=("quickstart",))
    assert status == 0, shown
    project = open_project(tmp_path / "meters-project")
    assert project.dataset("meters").within == 1
    assert shown.rstrip().endswith("--project meters-project")


@pytest.mark.real_data
def test_check_ins_of_new_york(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = real("checkins_nyc.csv.gz")
    ran = start(tmp_path, monkeypatch, f"{shlex.quote(str(path))} --json")
    assert ran.status == 2
    (point,) = json.loads(ran.out)["open"]
    assert point["key"] == "order.ties"


@pytest.mark.real_data
def test_sleep_is_mostly_noise_unless_unscored_epochs_need_not_be_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unscored epochs come in long blocks: hiding one of them hides all of its block."""
    path = real("sleep_hypnograms.csv.gz")
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                SELECT recording, unnest(range(len(s))) AS epoch, unnest(s) AS stage FROM (
                    SELECT recording, string_split(stages_30s, ' ') AS s FROM read_csv('{path}')
                    WHERE scorer = 'scorer_1')
            ) TO '{tmp_path / "sleep.parquet"}'"""  # noqa: S608 - our own words
        )
    made = start(tmp_path, monkeypatch, "sleep.parquet --folder all --json").json()
    assert made["verdict"] == "mostly noise" and "other" in made["advice"]
    stages = ",".join(f"{a}/{b}" for a, b in combinations("01234", 2))
    made = start(tmp_path, monkeypatch, f"sleep.parquet --folder some --pairs {stages} --json")
    assert made.json()["verdict"] == "useful"


@pytest.mark.nightly
def test_listed_labels_are_all_there_are_unless_somebody_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(tmp_path)
    listed = f"visits.csv --labels place={','.join(PLACES)} --public country"
    ran = start(tmp_path, monkeypatch, listed)
    assert ran.status == 2 and "--outside place=other" in ran.err and RARE not in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]
    made = start(tmp_path, monkeypatch, f"{listed} --outside drop").out
    assert "prior fit visits --share 1/5 --replace --project visits-project" in made
    written = (tmp_path / "visits-project" / "visits.toml").read_text()
    assert 'outside = "drop"' in written and 'path = "../visits.csv"' in written
    tmp_path.joinpath("moved").mkdir()
    for name in ("visits.csv", "visits-project"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    line = "plan visits histogram --epsilon 1/2 --project moved/visits-project"
    assert call(tmp_path, monkeypatch, *line.split()).status == 0
    ran = call(tmp_path, monkeypatch, *line.split(), "--by", "step")
    assert ran.status == 2 and "--window" in ran.err


def test_public_columns_come_as_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "clubs.csv"
    rows = [f"{n // 8},{n % 8},{('no', 'yes')[n * n % 5 < 2]},a,b" for n in range(400)]
    path.write_text("\n".join(["person,step,member,sex,city", *rows, ""]))
    line = "clubs.csv --labels member=no,yes --public sex,city --json"
    made = start(tmp_path, monkeypatch, line).json()
    assert [c["value"] for c in made["choices"] if c["what"] == "public"] == ["sex", "city"]
    declaration = read_declaration(tmp_path / "clubs-project" / "clubs.toml")
    assert declaration.category("member").keys == ("no", "yes")
