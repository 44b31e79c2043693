"""``release --file`` and ``schedule``: judged together, charged once each, whatever happens."""

import csv
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.ledger import open_ledger
from takifugu.priors import MarkovChain, write_prior
from takifugu.project.batches import BatchRefused, read_batch
from takifugu.project.policy import InvalidProject
from takifugu.project.project import init_project
from takifugu.session.release_errors import MostlyNoise
from tests.cli.running import Call, run, start
from tests.declared import declared
from tests.raising import raises

DECLARATION = declared(
    "visits.csv",
    "person",
    "at",
    {"place": ["home", "ward"]},
    {"zone": ["a", "b"]},
    zone="Europe/Berlin",
)
BATCH = """\
[[release]]
name = "places"
dataset = "visits"
kind = "histogram"
by = ["zone"]
epsilon = "1/2"
accept_noise = true
out = "places.csv"

[[release]]
name = "early"
dataset = "visits"
kind = "count"
values = ["ward"]
window = ["", "2024-03-04"]
epsilon = 0.25
accept_noise = true

[[release]]
name = "late"
dataset = "visits"
kind = "count"
values = ["ward"]
window = ["2024-03-11", ""]
epsilon = 0.25
accept_noise = true
out = "late.json"
"""
SCHEDULE = """
[schedule.weekly]
dataset = "visits"
kind = "histogram"
epsilon = "1/2"
every = "monday"
last = "7 days"
from = 2024-02-26
folder = "published"
accept_noise = true
"""


def rows(days: int) -> str:
    lines = ["person,at,zone,place"]
    for person in range(30):
        for day in range(days):
            place = "ward" if (person * 7 + day) % 5 == 0 else "home"
            when = np.datetime64("2024-02-26") + day
            lines.append(f"p{person},{when}T12:00:00,{'ab'[person % 2]},{place}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batches")
    (folder / "visits.csv").write_text(rows(22))
    (folder / "visits.toml").write_text(DECLARATION)
    chain = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=("home", "ward"), length=60)
    write_prior(chain, folder / "chain.json")
    project = init_project(folder)
    made = project.add_dataset("visits", folder / "visits.toml", priors=[folder / "chain.json"])
    made.set_budget("visits", "2")
    (folder / "plans.toml").write_text(BATCH)
    return folder


def charges(folder: Path) -> int:
    with open_ledger(folder / "takifugu.ledger", create=False, read_only=True) as ledger:
        return sum(event.kind == "charge" for event in ledger.history())


def scheduled(folder: Path, text: str = SCHEDULE) -> None:
    file = folder / "takifugu.toml"
    file.write_text(file.read_text() + text)


# --- batches ---


@pytest.mark.nightly
def test_a_batch_is_planned_as_a_whole_and_then_released(study: Path, do: Call) -> None:
    planned = do("plan --file plans.toml --json").json()["releases"]
    assert [part["name"] for part in planned] == ["places", "early", "late"]
    assert all(part["admitted"] for part in planned) and charges(study) == 0
    spent = [part["spent_with_it"] for part in planned]
    assert spent[0] <= 0.5 < spent[1] and spent[1] == spent[2]  # other rows: nothing on top
    done = do("release --file plans.toml --json").json()["releases"]
    assert charges(study) == 3 and not any(part["free"] for part in done)
    assert done[-1]["cost"]["after"] == pytest.approx(spent[2], rel=1e-9)
    with (study / "places.csv").open(newline="") as stream:
        assert len(list(csv.reader(stream))) == 5
    assert json.loads((study / "late.json").read_text())["rows"] == done[2]["rows"]
    again = do("release --file plans.toml --json").json()["releases"]
    assert charges(study) == 3 and all(part["free"] for part in again)
    assert [part["rows"] for part in again] == [part["rows"] for part in done]
    assert "is there from an earlier run" in do("release --file plans.toml").out


@pytest.mark.nightly
def test_a_batch_that_does_not_fit_charges_nothing(study: Path, do: Call) -> None:
    text = BATCH.replace('"1/2"', '"1.6"').replace('window = ["2024-03-11", ""]\n', "")
    (study / "plans.toml").write_text(text)
    planned = do("plan --file plans.toml --json").json()["releases"]
    assert [part["admitted"] for part in planned] == [True, True, False]
    done = do("release --file plans.toml")
    assert done.status == 3 and isinstance(done.error, BatchRefused)
    assert (done.error.name, done.error.admitted) == ("late", 2) and charges(study) == 0
    assert not (study / "places.csv").exists() and "too much" in do("plan --file plans.toml").out


@pytest.mark.nightly
def test_a_batch_with_noise_or_a_taken_file_charges_nothing(study: Path, do: Call) -> None:
    (study / "plans.toml").write_text(BATCH.replace("accept_noise = true\n", "", 1).replace(
        '"1/2"', '"0.001"'))  # fmt: skip
    done = do("release --file plans.toml")
    assert isinstance(done.error, MostlyNoise) and charges(study) == 0
    assert done.error.name == "places" and "accept_noise = true" in str(done.error)
    (study / "plans.toml").write_text(BATCH)
    (study / "late.json").write_text("mine")
    done = do("release --file plans.toml")
    assert isinstance(done.error, InvalidFile) and done.error.reason == "exists"
    assert charges(study) == 0 and (study / "late.json").read_text() == "mine"
    assert not list(study.glob(".takifugu-*"))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "release"),
        ("[[release]]\nkind = 'histogram'\n", "release, dataset"),
        ("[[release]]\ndataset = 'visits'\n", "release, kind"),
        (BATCH.replace("epsilon = 0.25", "epsilom = 0.25", 1), "release, epsilom"),
        (BATCH.replace('name = "late"', 'name = "early"'), "release, name"),
        (BATCH.replace('"late.json"', '"places.csv"'), "release, name"),
        (BATCH.replace('kind = "count"', 'kind = "median"', 1), "release, kind"),
        (BATCH.replace('by = ["zone"]', "by = [1]"), "release, by"),
    ],
)
def test_a_wrong_batch_says_where(study: Path, do: Call, text: str, field: str) -> None:
    (study / "plans.toml").write_text(text)
    done = do("release --file plans.toml")
    assert done.status == 2 and isinstance(done.error, InvalidFile)
    assert done.error.field == f"plans.toml: {field}" and charges(study) == 0
    assert ("line " in done.err) == bool(text)


def test_a_file_stands_alone(do: Call) -> None:
    for line in ("release visits --file plans.toml", "plan --file plans.toml --epsilon 1", "plan"):
        assert do(line).status == 2


@pytest.mark.nightly
def test_a_batch_that_is_killed_goes_on_where_it_was(study: Path, do: Call) -> None:
    """Killed again and again at other moments: in the end each release was answered once."""
    for wait in (0.4, 0.8, 1.2, 1.6, 2.0):
        process = start(study, "release", "--file", "plans.toml")
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = do("release --file plans.toml --json").json()["releases"]
    with open_ledger(study / "takifugu.ledger", create=False, read_only=True) as ledger:
        events = list(ledger.history())
    answers = [event for event in events if event.kind == "answer"]
    assert len(answers) == 3  # a charge whose answer was lost may have been paid again
    assert (study / "places.csv").exists() and (study / "places.csv-metadata.json").exists()
    assert json.loads((study / "late.json").read_text())["rows"] == done[2]["rows"]


# --- schedules ---


@pytest.mark.nightly
def test_what_is_due_is_released_once(study: Path, do: Call) -> None:
    scheduled(study)
    (shown,) = do("schedule show --json").json()["schedules"]
    states = [(one["start"], one["state"]) for one in shown["periods"]]
    assert states == [
        ("2024-02-26", "due"),
        ("2024-03-04", "due"),
        ("2024-03-11", "due"),
        ("2024-03-18", "waiting"),
    ]
    assert shown["ahead"] == 24 and charges(study) == 0  # every row is read once
    done = do("schedule run --json").json()
    assert [one["start"] for one in done["released"]] == [start for start, _ in states[:3]]
    assert charges(study) == 3 and done["released"][2]["cost"]["marginal"] == 0
    names = sorted(path.name for path in (study / "published").glob("*.csv"))
    assert names[0] == "weekly_2024-02-26_2024-03-04.csv" and len(names) == 3
    assert do("schedule run").out == "nothing is due\n" and charges(study) == 3
    (study / "visits.csv").write_text(rows(23).replace("ward", "home", 1))  # late corrections
    assert do("schedule run --json").json()["released"] == [] and charges(study) == 3
    assert "released" in do("schedule show").out
    assert [one["start"] for one in do("schedule run --as-of 2024-03-25 --json").json()["released"]
            ] == ["2024-03-18"]  # fmt: skip
    assert charges(study) == 4


@pytest.mark.nightly
def test_overlapping_periods_end_with_the_budget(study: Path, do: Call) -> None:
    text = SCHEDULE.replace('"7 days"', '"28 days"').replace("monday", "day")
    scheduled(study, text.replace("2024-02-26", "2024-02-12").replace('folder = "published"\n', ""))
    (shown,) = do("schedule show --json").json()["schedules"]
    assert shown["ahead"] is not None and shown["ahead"] < 24
    done = do("schedule run")
    assert done.status == 3 and 0 < charges(study) < 22 and "does not" not in done.out
    before = charges(study)
    assert do("schedule run").status == 3 and charges(study) == before
    limited = do("schedule run --limit 1")
    assert limited.status == 3 and charges(study) == before


@pytest.mark.nightly
def test_a_period_of_noise_or_without_rows_does_not_stop_the_others(study: Path, do: Call) -> None:
    head, *lines = rows(29).splitlines()
    noisy = [f"2024-03-{day:02}T" for day in range(4, 11)]
    empty = [f"2024-03-{day:02}T" for day in range(11, 18)]
    few = [line for line in lines if line.startswith("p0,") and noisy[0] in line]
    full = [line for line in lines if not any(day in line for day in (*noisy, *empty))]
    (study / "visits.csv").write_text("\n".join([head, *full, *few]) + "\n")
    scheduled(study, SCHEDULE.replace('"1/2"', '"2"').replace("accept_noise = true\n", ""))
    for limit, status in (("--limit 1", 0), ("--limit 1", 3), ("", 3)):
        done = do(f"schedule run --json {limit}")
        assert done.status == status
    found = json.loads(done.out)
    assert [(one["start"], one["reason"]) for one in found["left_out"]] == [
        ("2024-03-04", "mostly-noise"),
        ("2024-03-11", "no-rows"),
    ]
    assert "accept_noise = true" in done.err and "--yes" not in done.err
    (shown,) = do("schedule show --json").json()["schedules"]
    states = [one["state"] for one in shown["periods"]]
    assert states == ["released", "due", "due", "released", "waiting"]
    file = study / "takifugu.toml"
    file.write_text(file.read_text() + "accept_noise = true\n")  # as was advised
    assert [one["start"] for one in json.loads(do("schedule run --json").out)["released"]] == [
        "2024-03-04"
    ]


@pytest.mark.nightly
def test_rows_may_be_late(study: Path, do: Call) -> None:
    scheduled(study, SCHEDULE + 'delay = "2 days"\nuntil = 2024-03-11\n')
    (shown,) = do("schedule show --json").json()["schedules"]
    assert [one["state"] for one in shown["periods"]] == ["due", "due"]
    (shown,) = do("schedule show --json --as-of 2024-03-12").json()["schedules"]
    assert [one["state"] for one in shown["periods"]] == ["due", "waiting"]


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["show", "run", "run --limit 1"])
def test_a_place_that_is_centuries_ahead_is_refused(study: Path, do: Call, command: str) -> None:
    scheduled(study)
    done = do(f"schedule {command} --as-of 2224-01-01")
    assert done.status == 2 and isinstance(done.error, UnsoundRequest)
    assert done.error.field == "as_of" and "10,000 periods" in done.err
    assert charges(study) == 0


def test_a_schedule_ends_with_the_calendar(study: Path, do: Call) -> None:
    scheduled(study, SCHEDULE.replace("2024-02-26", "9999-12-06") + 'delay = "60 days"\n')
    (shown,) = do("schedule show --json --as-of 9999-12-30").json()["schedules"]
    assert [one["state"] for one in shown["periods"]] == ["waiting"]


@pytest.mark.nightly
def test_two_runs_at_once_charge_once(study: Path) -> None:
    scheduled(study)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: run(study, "schedule", "run"), range(3)))
    assert [one.status for one in runs] == [0, 0, 0], [one.err for one in runs]
    assert charges(study) == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (('"monday"', '"moonday"'), "every"),
        (('"7 days"', '"a week"'), "last"),
        (('"7 days"', '"0 days"'), "last"),
        (("2024-02-26", '"2024-02-26"'), "from"),
        (('dataset = "visits"', 'dataset = "visit"'), "dataset"),
        (("every", "evry"), "evry"),
        (('folder = "published"', "window = [1, 2]"), "window"),
    ],
)
def test_a_wrong_schedule_says_where(
    study: Path, do: Call, change: tuple[str, str], field: str
) -> None:
    scheduled(study, SCHEDULE.replace(*change))
    done = do("schedule run")
    assert done.status == 2 and isinstance(done.error, InvalidProject | InvalidFile)
    assert done.error.field.endswith(f"schedule, weekly, {field}") and "line " in done.err


def test_a_schedule_counts_as_its_dataset_does(study: Path, do: Call) -> None:
    scheduled(
        study,
        SCHEDULE.replace('"monday"', "7").replace('"7 days"', "7").replace("2024-02-26", "3"),
    )
    done = do("schedule show")
    assert isinstance(done.error, InvalidFile) and done.error.field == "schedule, weekly, from"
    assert do("schedule show nightly").status == 2


@pytest.mark.parametrize("other", ["places.csv", "b/../places.csv", "places.csv-metadata.json"])
def test_two_releases_of_a_batch_never_have_one_file(tmp_path: Path, other: str) -> None:
    (tmp_path / "b").mkdir()
    path = tmp_path / "plans.toml"
    path.write_text(BATCH.replace("late.json", other))
    with raises(InvalidFile, reason="same file"):
        read_batch(path)
    path.write_text(BATCH)
    assert [item.out for item in read_batch(path)] == [
        tmp_path / "places.csv",
        None,
        tmp_path / "late.json",
    ]
