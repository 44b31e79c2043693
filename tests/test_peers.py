"""The benchmark of other libraries: its page, its measuring, and what it calls right and wrong."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers
from benchmarks._peers import environments, measured_page
from benchmarks._peers.answers import KEYS, PLACES, top
from benchmarks._peers.environments import FLOOR, PEERS, REQUIREMENTS, NotInstalled, Peer
from benchmarks._peers.measuring import measured
from benchmarks._visits import made

ROOT = Path(__file__).parents[1]
linux = pytest.mark.skipif(sys.platform != "linux", reason="descendants are adopted on Linux alone")


def run(folder: Path, code: str, **limits: float) -> dict[str, Any]:
    """What a program in Python takes."""
    allowed = {"gibibytes": 2.0, "seconds": 300.0} | limits
    command = [sys.executable, "-c", code]
    return measured(command, out=folder / "measured.json", cwd=ROOT, **allowed)


# --- the page ---


def test_the_page_shows_what_was_measured() -> None:
    document = json.loads(measured_page.MEASURED.read_text("utf-8"))
    page = measured_page.PAGE.read_text("utf-8")
    assert measured_page.passage(document) in page
    assert [one["name"] for one in document["peers"]] == [peer.name for peer in PEERS]
    assert document["rows"] == 33_278_683 and not any(one.get("wrong") for one in document["peers"])


def test_the_page_names_the_versions_that_were_measured() -> None:
    document = json.loads(measured_page.MEASURED.read_text("utf-8"))
    page = measured_page.PAGE.read_text("utf-8")
    guaranteed = page.partition("## What they guarantee")[2].partition("## What the same")[0]
    for one in document["peers"]:
        if one["package"] not in ("duckdb", "takifugu"):
            assert f" {one['version']}" in guaranteed, one["package"]


def test_new_figures_renew_the_page_and_nothing_else_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(measured_page.MEASURED.read_text("utf-8"))
    page = measured_page.PAGE.read_text("utf-8")
    for name in ("MEASURED", "PAGE"):
        monkeypatch.setattr(measured_page, name, tmp_path / name)
    measured_page.PAGE.write_text(page, encoding="utf-8")
    assert measured_page.renew(document) == [tmp_path / "MEASURED", tmp_path / "PAGE"]
    assert measured_page.PAGE.read_text("utf-8") == page
    changed = document | {"rows": 12_345, "load": 0.5}
    measured_page.renew(changed)
    assert json.loads(measured_page.MEASURED.read_text("utf-8")) == changed
    new = measured_page.PAGE.read_text("utf-8")
    assert "12,345 rows" in new and "The load of the machine" not in new
    assert new.partition(measured_page.BEGIN)[0] == page.partition(measured_page.BEGIN)[0]
    assert new.partition(measured_page.END)[2] == page.partition(measured_page.END)[2]


def test_every_peer_has_a_module_and_pinned_requirements() -> None:
    for peer in PEERS:
        assert (REQUIREMENTS.parent / f"{peer.module}.py").exists()
        if peer.environment is not None:
            lines = (REQUIREMENTS / f"{peer.environment}.txt").read_text("utf-8").splitlines()
            assert lines and all("==" in line for line in lines)
            assert any(line.lower().startswith(f"{peer.package}==") for line in lines)


def test_what_failed_stands_in_the_table_with_its_reason() -> None:
    figures = {
        "wall": 2.0,
        "processor": 3.0,
        "peak": 50.0,
        "right": 231,
        "wrong": 0,
        "version": "1",
    }
    other = figures | {"wall": 3.0, "processor": 600.0, "wrong": 2, "right": 229}
    text = measured_page.table(
        {
            "peers": [
                {"name": FLOOR.name} | figures,
                {"name": "another"} | other,
                {"name": "a third", "failed": "not installed: ERROR: no such thing"},
            ]
        }
    )
    _, _, floor, another, third = text.splitlines()
    assert floor.endswith("| 2 s | 1 | 3 s | 1 | 50 MiB | 1 | 231 of 231 |")
    assert "| 3 s | 1.5 | 600 s | 200 | 50 MiB | 1 | 229 of 231, 2 WRONG |" in another
    assert "not installed: ERROR: no such thing" in third


# --- environments ---


@pytest.mark.nightly
def test_what_cannot_be_installed_is_told_with_the_last_line_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    (tmp_path / "absent.txt").write_text("absent @ file:///nowhere/at/all/absent-1.0.tar.gz\n")
    with pytest.raises(NotInstalled) as caught:
        environments.interpreter(Peer("absent", "by_absent", "absent", "absent"), tmp_path)
    assert caught.value.message.startswith("ERROR")
    assert "nowhere" not in caught.value.message
    assert not (tmp_path / "environment-absent").exists()


@pytest.mark.nightly
def test_an_environment_is_used_again_while_its_requirements_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(environments, "PIP", ("-c", "raise SystemExit('ERROR: called')"))
    (tmp_path / "one.txt").write_text("thing==1\n")
    peer = Peer("one", "by_one", "one", "thing")
    place = tmp_path / "environment-one"
    place.mkdir()
    (place / environments.MARK).write_text(peer.wanted, encoding="utf-8")
    assert environments.interpreter(peer, tmp_path) == place / "bin" / "python"
    (tmp_path / "one.txt").write_text("thing==2\n")
    with pytest.raises(NotInstalled) as caught:
        environments.interpreter(peer, tmp_path)
    assert caught.value.message == "ERROR: called"


def test_the_last_line_of_a_message_names_no_place() -> None:
    said = environments.last_line(
        "first\nERROR: https://example.org/simple of /somewhere/x/y.txt\n\n"
    )
    assert said == "ERROR: … of …"
    assert environments.last_line("\n \n") == "no message"


# --- measuring ---

BUSY = "import time\nwhile time.process_time() < {0}: pass\n"


@pytest.mark.nightly
@linux
def test_time_of_orphans_and_memory_of_all_count(tmp_path: Path) -> None:
    """A program starts two that outlive it: one that works, and one that holds 150 MiB."""
    held = "import time; kept = bytearray(150 * 2**20); time.sleep(1)"
    code = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {BUSY.format(0.5)!r}])
subprocess.Popen([sys.executable, "-c", {held!r}])
kept = bytearray(100 * 2**20)
time.sleep(0.9)
"""
    found = run(tmp_path, code)
    assert found["status"] == 0 and found["stopped"] is None
    assert found["processor"] >= 0.5 and found["wall"] >= 0.9
    assert found["peak"] >= 150


@pytest.mark.nightly
@linux
def test_who_takes_too_much_memory_or_time_is_ended(tmp_path: Path) -> None:
    found = run(
        tmp_path, "kept = bytearray(200 * 2**20)\nimport time; time.sleep(600)", gibibytes=0.1
    )
    assert found["stopped"] == "more than 0.1 GiB of memory" and found["status"] == -9
    found = run(tmp_path, "import time; time.sleep(600)", seconds=0.5)
    assert found["stopped"] == "more than 0.5 s"


@linux
def test_an_interrupted_measurement_ends_what_it_started(tmp_path: Path) -> None:
    code = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid()))\n"
    own = [sys.executable, "-m", "benchmarks._peers.measuring", str(tmp_path / "out"), "2", "300"]
    with subprocess.Popen(  # noqa: S603 - our own program
        [*own, "--", sys.executable, "-c", f"{code}time.sleep(600)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    ) as measuring:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert measuring.poll() is None
            time.sleep(0.01)
        measuring.send_signal(signal.SIGINT)
        assert measuring.communicate()[1].strip().endswith(b"KeyboardInterrupt")
    state = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    with contextlib.suppress(FileNotFoundError):
        while state.read_text().rpartition(")")[2].split()[0] != "Z":  # it is ending
            time.sleep(0.01)


@linux
def test_a_failure_is_told_with_what_was_written(tmp_path: Path) -> None:
    found = run(tmp_path, "raise SystemExit('no such column')")
    assert found["status"] == 1 and found["errors"].strip() == "no such column"


# --- answers ---


def test_the_largest_counts_come_first_and_equal_ones_by_name() -> None:
    counts = [("b", "x", 1.0), ("a", "z", 2.0), ("a", "y", 2.0), ("a", "x", 0.0), ("a", "w", 3.0)]
    assert top(counts) == {"b": ["x"], "a": ["w", "y", "z"]}


def test_only_what_noise_cannot_explain_is_wrong() -> None:
    """The counts of each country fall by 1,000, the first two by 5."""
    exact = {
        (country, label): 100_000 - 1000 * place + (995 if place == 1 else 0)
        for country, label in KEYS
        for place in [int(label.removeprefix("label "))]
    }
    true = top((*key, float(count)) for key, count in exact.items())
    found = peers.agreement(true, exact, 1.0, 1)
    assert found == {"right": 231, "wrong": 0, "decided": 77}
    close = {country: [two, one, three] for country, (one, two, three) in true.items()}
    found = peers.agreement(close, exact, 1.0, 1)
    assert (found["right"], found["wrong"]) == (77, 0)
    far = true | {"country 5": ["label 0", "label 1", "label 7"], "country 6": ["label 0"]}
    found = peers.agreement(far, exact, 1.0, 1)
    assert (found["right"], found["wrong"]) == (228, 3)


@pytest.mark.nightly
@linux
@pytest.mark.parametrize("module", ["by_duckdb", "by_opendp_vector"])
def test_a_peer_answers_in_a_process_of_its_own(module: str, tmp_path: Path) -> None:
    path, out = made(20_000, tmp_path), tmp_path / "answer.json"
    command = [sys.executable, "-m", f"benchmarks._peers.{module}", str(path), "50", str(out)]
    found = measured(command, gibibytes=4, seconds=300, out=tmp_path / "measured.json", cwd=ROOT)
    assert found["status"] == 0, found["errors"]
    told = json.loads(out.read_text("utf-8"))
    assert len(told["top"]) == 77 and all(len(each) == PLACES for each in told["top"].values())
    found = peers.agreement(told["top"], peers.exact_counts(path), 50.0, 1)
    assert found["wrong"] == 0
