"""``takifugu dataset new``: a draft, questions on a terminal, and the command that comes next."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import tomllib
from pathlib import Path

import pytest

from takifugu.declarations import read_declaration
from tests.cli.running import SOURCE, Call, call
from tests.real_data import real

VISITS = """user;at;place;country
ann;3/4/2012 12:18;secret-home;FR
ann;5/4/2012 9:05;secret-work;FR
bob;6/4/2012 9:05;secret-home;DE
"""
FORMAT = "--format=%d/%m/%Y %H:%M"


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    folder = tmp_path / "ready"
    folder.mkdir()
    (folder / "visits.csv").write_text(VISITS)
    return folder


@pytest.mark.nightly
def test_a_draft_is_written_with_its_open_points_and_the_next_command(
    study: Path, do: Call
) -> None:
    ran = do("dataset new visits.csv")
    assert ran.status == 0 and "secret" not in ran.out + ran.err
    text = (study / "visits.toml").read_text()
    assert "secret" not in text
    document = tomllib.loads(text)
    assert document["order"]["format"] == document["protected"]["place"]["values"] == "?"
    lines = text.splitlines()
    shown = [line for line in ran.out.splitlines() if line.startswith("open")]
    for line, key in zip(shown, ("order.format", "protected.place.values"), strict=True):
        number = int(line.partition("line ")[2].partition(",")[0])
        assert key in line and lines[number - 1].endswith(' = "?"')
    assert ran.out.splitlines()[-1].endswith("takifugu dataset add visits visits.toml")


@pytest.mark.nightly
def test_a_draft_with_open_points_cannot_be_added(do: Call) -> None:
    assert do("init").status == 0
    assert do("dataset new visits.csv").status == 0
    ran = do("dataset add visits visits.toml")
    assert ran.status == 2 and getattr(ran.error, "reason", None) == "open"
    assert "order.format" in ran.err and "protected.place.values" in ran.err


def test_answers_finish_it_and_then_it_can_be_added(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str) -> dict[str, object]:
        found: dict[str, object] = call(study, monkeypatch, *words, "--json").json()
        return found

    labels = "--labels=place=secret-home,secret-work"
    run("init")
    made = run("dataset", "new", "visits.csv", FORMAT, labels, "--public", "country")
    assert made["open"] == [] and made["next"] == "takifugu dataset add visits visits.toml"
    added = run("dataset", "add", "visits", "visits.toml")
    assert (added["rows"], added["entities"]) == (3, 2)
    assert added["keys"] == {"place": 3, "country": 2}


def test_a_table_that_nobody_can_guess_is_all_open(study: Path, do: Call) -> None:
    (study / "odd.csv").write_text("x,y\n1,a\n1,b\n")
    made = do("dataset new odd.csv --json").json()
    keys = [point["key"] for point in made["open"]]
    assert keys == ["entity.column", "order.column", "protected.y.values"]
    (study / "nothing.csv").write_text("lat,lon\n1.5,2.5\n")
    made = do("dataset new nothing.csv --json").json()
    assert [point["key"] for point in made["open"]][-1] == "protected"


@pytest.mark.nightly
def test_what_is_wrong_is_refused_while_other_points_are_open(study: Path, do: Call) -> None:
    for option in ("--zone Nowhere", "--decimal x", "--order-kind number --zone UTC"):
        ran = do(f"dataset new visits.csv {option}")
        assert ran.status == 2 and not (study / "visits.toml").exists(), option


def test_nothing_is_overwritten(study: Path, do: Call) -> None:
    (study / "visits.toml").write_text("mine")
    ran = do("dataset new visits.csv")
    assert ran.status == 2 and getattr(ran.error, "reason", None) == "exists"
    assert (study / "visits.toml").read_text() == "mine"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "line",
    [
        "dataset new visits.csv --entity nobody",
        "dataset new visits.csv --labels place",
        "dataset new visits.csv --labels place=codes.csv",
        "dataset new visits.csv --bounds country=9..1",
        "dataset new visits.csv --bounds country=many",
        "dataset new visits.csv --separator |",
        "dataset new visits.csv --encoding utf-16",
        "dataset new visits.csv --order none",
        "dataset new visits.csv --zone Nowhere --format=%d/%m/%Y --labels place=a",
        "dataset new visits.csv --name a/b",
        "dataset new visits.xlsx",
        "dataset new nothing.csv",
        "dataset new visits.csv --table t",
        "dataset new visits.csv --out folder/visits.toml",
    ],
)
def test_what_cannot_be_right_leaves_nothing_behind(study: Path, do: Call, line: str) -> None:
    before = sorted(study.rglob("*"))
    ran = do(line)
    if line.endswith("none"):  # several rows of one: the point stays open
        assert ran.status == 0 and 'column = "?"' in (study / "visits.toml").read_text()
        return
    assert ran.status == 2 and ran.err.count("\n") == 1 and "secret" not in ran.err
    assert sorted(study.rglob("*")) == before


@pytest.mark.parametrize("command", ["dataset add visits", "dataset show", "dataset check"])
def test_a_file_of_rows_leads_to_a_draft(do: Call, command: str) -> None:
    ran = do(f"{command} visits.csv")
    assert ran.status == 2 and getattr(ran.error, "reason", None) == "data file"
    assert "`takifugu dataset new visits.csv`" in ran.err
    assert "`takifugu dataset add visits visits.toml`" in ran.err


@pytest.mark.nightly
def test_a_name_is_made_of_that_of_the_file(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (study / "my visits (1).csv").write_text(VISITS)
    made = call(study, monkeypatch, "dataset", "new", "my visits (1).csv", "--json").json()
    assert made["dataset"] == "my_visits_1" and made["file"] == "my_visits_1.toml"


def test_a_broken_dataset_does_not_stop_another(study: Path, do: Call) -> None:
    assert do("init").status == 0
    line = "dataset new visits.csv --format=%d/%m/%YT%H:%M --labels place=a"
    (study / "visits.csv").write_text(VISITS.replace("2012 ", "2012T"))
    assert do(line).status == 0
    assert do("dataset add visits visits.toml").status == 0
    (study / "visits.toml").write_text("broken")
    (study / "more.csv").write_text("person,job\na,x\nb,y\n")
    assert do("dataset new more.csv --labels job=x,y").status == 0
    assert do("dataset add more more.toml").status == 0


@pytest.mark.nightly
def test_a_survey_is_released_from_without_an_order(study: Path, do: Call) -> None:
    answers = [("yes", "no")[k % 3 > 0] for k in range(60)]
    rows = "".join(f"p{k},{said},{answers[k // 2]}\n" for k, said in enumerate(answers))
    (study / "survey.csv").write_text("person,smokes,ill\n" + rows)
    made = do("dataset new survey.csv --labels smokes=yes,no --labels ill=yes,no --json").json()
    assert made["open"] == [] and "order" not in made["declaration"]
    for line in ("init", "dataset add survey survey.toml"):
        assert do(line).status == 0
    days = do("prior fit survey --kind network --first-days 2")
    assert days.status == 2 and getattr(days.error, "reason", None) == "no order"
    for line in ("prior fit survey --kind network --share 1/5", "budget set survey 2"):
        ran = do(line)
        assert ran.status == 0, ran.err
    plan = "plan survey histogram --column ill --epsilon 1"
    assert "(no order)" not in do(plan).out and do(plan).status == 0
    windowed = do(f"{plan} --window 0..5")
    assert windowed.status == 2 and getattr(windowed.error, "reason", None) == "no order"
    with (study / "survey.csv").open("a") as file:
        file.write("p1,yes,no\n")  # a second row of one person
    refused = do(plan)
    assert refused.status == 2 and getattr(refused.error, "field", None) == "order"


def talk(
    folder: Path,
    answers: list[str | None],
    *words: str,
    command: tuple[str, ...] = ("dataset", "new"),
) -> tuple[int, str]:
    """Run ``dataset new``, or another command, on a terminal of its own; None is Ctrl-C."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-m", "takifugu", *command, *words],
        cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, close_fds=True,
        preexec_fn=lambda: _control(theirs),
    )  # fmt: skip
    os.close(theirs)
    shown, waiting, until = "", list(answers), time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                part = os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        elif process.poll() is not None:
            break
        elif shown.endswith(": ") and waiting:  # nothing more comes: a question was asked
            said = waiting.pop(0)
            os.write(ours, b"\x03" if said is None else said.encode() + b"\n")
            shown += "\n"
    os.close(ours)
    return process.wait(timeout=60), shown


def _control(terminal: int) -> None:
    """Make it the terminal of the process, so that Ctrl-C reaches it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell may have it ignored
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.mark.nightly
def test_on_a_terminal_it_asks_for_what_it_cannot_know(ready: Path) -> None:
    answers = ["1", "secret-home,secret-work", "country"]
    status, shown = talk(ready, list(answers), "visits.csv")
    assert status == 0, shown
    declaration = read_declaration(ready / "visits.toml")
    assert declaration.order.format == "%d/%m/%Y %H:%M"
    assert declaration.category("place").values == ("secret-home", "secret-work")
    assert [column.column for column in declaration.public] == ["country"]
    assert shown.rstrip().endswith("takifugu dataset add visits visits.toml")


@pytest.mark.nightly
def test_a_wrong_answer_is_asked_for_again_and_an_empty_one_is_left_open(ready: Path) -> None:
    answers = ["%H:%M", "%d/%m/%Y %H:%M", "", "nobody", ""]
    status, shown = talk(ready, list(answers), "visits.csv")
    assert status == 0, shown
    document = tomllib.loads((ready / "visits.toml").read_text())
    assert document["order"]["format"] == "%d/%m/%Y %H:%M"
    assert document["protected"]["place"]["values"] == "?" and "public" not in document


@pytest.mark.nightly
def test_an_interrupted_conversation_leaves_nothing(ready: Path) -> None:
    status, shown = talk(ready, ["%d/%m/%Y %H:%M", None], "visits.csv")
    assert status == 130, shown
    assert [path.name for path in ready.iterdir()] == ["visits.csv"]


@pytest.mark.real_data
def test_check_ins_of_new_york_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real("checkins_nyc.csv.gz")
    made = call(tmp_path, monkeypatch, "dataset", "new", str(path), "--json").json()
    found = made["declaration"]
    assert found["entity"] == {"column": "user_idx"}
    assert (found["order"]["column"], found["order"]["kind"]) == ("unix_s", "unix")
    assert list(found["protected"]) == ["cat"] and made["rows"] == 113_344
    assert [point["key"] for point in made["open"]] == ["order.ties", "protected.cat.values"]


@pytest.mark.real_data
def test_contacts_without_names_of_columns_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real("hospital_contacts.csv.gz")
    ran = call(tmp_path, monkeypatch, "dataset", "new", str(path))
    assert ran.status == 2 and getattr(ran.error, "reason", None) == "header"
    assert "MED" not in ran.err
