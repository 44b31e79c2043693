"""Hostile inputs: the part finds nothing in what there is, and everything that is planted."""

import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import takifugu.cli
from takifugu.cli.command_reference import commands
from takifugu.errors import InvalidFile
from tests.torture.input_trials import OK, Main, answering, outcome, said
from torture.inputs import routes, run
from torture.inputs.canary_study import LABEL, NUMBER, PERSON
from torture.inputs.case import Case
from torture.inputs.children import run_cases
from torture.inputs.command_lines import slots
from torture.inputs.command_seeds import LINES
from torture.inputs.requests import rules
from torture.inputs.running import Runner
from torture.inputs.serving import is_whole
from torture.part_report import Report

pytestmark = pytest.mark.nightly

INPUTS = 100


def test_a_small_seed_finds_nothing(scratch: Path, tmp_path: Path) -> None:
    report = Report("inputs", tmp_path, 10.0, 1)
    for kind in ("file: ", "command: "):
        run(
            report,
            np.random.default_rng(5),
            limit=INPUTS // 2,
            only=kind,
            study=scratch / "template",
        )
    assert report.findings == []
    assert report.counts["inputs"] == INPUTS
    assert report.counts["accepted"] >= INPUTS // 10 and report.counts["refused"] > INPUTS // 3
    assert report.counts["of files"] == report.counts["of commands"] == INPUTS // 2
    assert {"Inputs by file", "Inputs by command"} <= set(report.tables)


def test_every_command_and_every_option_is_tried() -> None:
    assert set(LINES) == set(dict(commands()))
    assert all(slots()[name] for name in LINES)


def test_good_lines_are_accepted(scratch: Path) -> None:
    lines = ("dataset show stays", "budget show stays", "plan stays histogram --epsilon 1")
    for line in lines:
        found = outcome(scratch, Case("command: x", tuple(line.split())))
        assert found.accepted and not found.wrong, line


# --- planted faults ---


def refused(text: str) -> None:
    sys.stderr.write(f"takifugu: {text}\n")
    raise SystemExit(2)


def chained() -> None:
    try:
        try:
            raise ValueError(f"could not convert {PERSON} 3")
        except ValueError as error:
            raise InvalidFile("stays.csv", given="has text", needed="have numbers") from error
    except InvalidFile as error:
        sys.stderr.write("takifugu: it has text\n")
        raise SystemExit(2) from error


def logged() -> None:
    logging.getLogger("takifugu.tables").warning("the value %s is strange", NUMBER)
    said("done")


def written(name: str, text: str, status: int) -> None:
    Path(name).write_text(text, encoding="utf-8")
    if status:
        refused("it did not work")
    raise SystemExit(0)


def swollen() -> None:
    assert len(bytearray(b"a") * (200 << 20))
    said("done")


def missing() -> None:
    raise KeyError("kind")


def endless() -> None:
    while True:
        pass


PLANTED: dict[str, tuple[Main, str]] = {
    "a canary on stdout": (lambda: said(f"of {PERSON} 3"), "canary"),
    "a canary in a message": (lambda: refused(f"{LABEL} is not a label"), "canary"),
    "a canary in what an error came from": (chained, "canary"),
    "a canary in the log": (logged, "canary"),
    "a canary in a file": (lambda: written("new.json", NUMBER, 0), "canary"),
    "a canary in the name of a file": (lambda: written(f"{LABEL}.json", "", 0), "canary"),
    "a KeyError": (missing, "KeyError escaped"),
    "a status of its own": (lambda: sys.exit(77), "not documented"),
    "no word why": (lambda: sys.exit(2), "without a line"),
    "a terminal that is taken over": (lambda: said("\x1b[2J"), "act on a terminal"),
    "a warning of Python": (lambda: refused("x.py:3: RuntimeWarning: overflow"), "warning"),
    "something left behind": (lambda: written("left.json", "x", 2), "changed left.json"),
    "half a file": (lambda: written(".takifugu-1.part", "x", 0), "half-written"),
    "a temporary file": (lambda: written("../tmp/x", "x", 0), "temporary file"),
    "a process that dies": (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    "a process that ends": (lambda: os._exit(0), "ended the process"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(scratch: Path, name: str) -> None:
    main, told = PLANTED[name]
    found = outcome(scratch, Case("command: x", ("dataset", "show", "stays")), main)
    assert any(told in what for what in found.wrong), found


def test_a_hang_is_found(scratch: Path) -> None:
    found = outcome(scratch, Case("command: x", ("init",)), endless, seconds=0.2)
    assert any(what.startswith("hangs") for what in found.wrong)


def test_memory_is_limited(scratch: Path) -> None:
    for growth in (64 << 20, 1 << 20):
        found = outcome(scratch, Case("command: x", ("init",)), swollen, growth=growth)
        assert any("memory grew" in what or "MemoryError" in what for what in found.wrong)
    assert not outcome(scratch, Case("command: x", ("init",)), swollen).wrong


def test_a_lost_child_costs_one_case(scratch: Path) -> None:
    def main() -> None:
        if "boom" in sys.argv:
            os._exit(3)
        said("done")

    words = [("init",), ("boom",), ("init",), ("boom",), ("init",)]
    numbered = [(number, Case("command: x", line)) for number, line in enumerate(words)]
    ran = list(run_cases(numbered, scratch / "template", scratch, partial(Runner, main=main)))
    assert [bool(one.outcome.wrong) for one in ran] == [False, True, False, True, False]
    assert [one.number for one in ran] == list(range(5))


def test_an_option_that_is_dropped_is_found(scratch: Path) -> None:
    base = ("dataset", "show", "stays")
    case = Case("command: x", (*base, "--gone=%%%"), ignored="--gone", base=base)

    def main() -> None:
        sys.argv = [word for word in sys.argv if not word.startswith("--gone")]
        takifugu.cli.main()

    assert any("ignored" in what for what in outcome(scratch, case, main).wrong)
    assert not outcome(scratch, case).wrong  # it is refused


def test_a_finding_is_kept_and_can_be_run_again(scratch: Path, tmp_path: Path) -> None:
    report = Report("inputs", tmp_path, 10.0, 1)
    make = partial(Runner, main=missing)
    study = scratch / "template"
    run(report, np.random.default_rng(1), limit=6, make=make, only="command: init", study=study)
    assert len(report.findings) == 1  # all alike
    kept = sorted((tmp_path / "inputs").iterdir())
    assert len(kept) == 3 and report.findings[0].again.endswith("inputs/1.json")
    case = Case.read(tmp_path / "inputs" / "1.json")
    assert outcome(scratch, case, missing).wrong


# --- routes ---


def test_every_route_is_asked(scratch: Path, tmp_path: Path) -> None:
    assert {f"{rule.method} {rule.path}" for rule in rules()} == {
        surface.name.removeprefix("route: ") for surface in routes()
    }
    report = Report("inputs", tmp_path, 10.0, 1)
    study = scratch / "template"
    run(report, np.random.default_rng(3), limit=40, only="route: ", study=study)
    assert report.findings == []
    assert report.counts["of routes"] == 40
    assert report.counts["accepted"] > 5 and report.counts["refused"] > 5


WRONG_ANSWERS: dict[str, tuple[bytes | None, str, str]] = {
    "a fault": (b"HTTP/1.1 500 x\r\n\r\n{}", "", "status 500"),
    "a canary": (OK + b"\r\n" + PERSON.encode(), "", "canary"),
    "a canary in a header": (OK + b"X: " + LABEL.encode() + b"\r\n\r\n", "", "canary"),
    "a canary in the log": (OK + b"\r\n{}", f"{NUMBER} is strange", "in the log"),
    "a traceback in the log": (OK + b"\r\n{}", "Traceback (most recent", "tells of a fault"),
    "a token": (OK + b"\r\ntf_secretsecret", "", "a token of ana is in the answer"),
    "a token in the log": (OK + b"\r\n", "tf_secretsecret", "a token of ana is in the log"),
    "a path": (OK + b"\r\n/tmp/study/stays.csv", "", "is told to ana"),
    "a header of the client": (OK + b"X-Injected: a\r\n\r\n", "", "injected"),
    "no problem": (b"HTTP/1.1 404 x\r\n\r\nnothing", "", "without a problem"),
    "nothing": (b"", "", "no answer at all"),
    "no end": (None, "", "no answer within"),
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_a_wrong_answer_is_found(tmp_path: Path, name: str) -> None:
    answer, logged_text, told = WRONG_ANSWERS[name]
    (tmp_path / "log").write_text(f"{logged_text}\n", encoding="utf-8")
    request = b"GET /api/v1/me HTTP/1.1\r\nHost: @host@\r\n\r\n"
    case = Case("route: x", request=request, route="GET /api/v1/me", who="ana")
    with answering(answer, tmp_path / "log") as server:
        found = server.run(case)
    assert any(told in what for what in found.wrong), found


def test_a_good_answer_is_fine(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("", encoding="utf-8")
    case = Case("route: x", request=b"GET / HTTP/1.1\r\n\r\n", route="GET /api/v1/me", who="ana")
    with answering(OK + b"\r\n{}", tmp_path / "log") as server:
        found = server.run(case)
    assert found.accepted and not found.wrong


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (OK + b"Content-Length: 2\r\n\r\n{}", True),  # whether or not the connection is closed
        (OK + b"content-length: 3\r\n\r\n{}", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", False),
        (OK + b"\r\n{}", False),
        (b"", False),
    ],
)
def test_an_answer_ends_where_its_head_says(answer: bytes, whole: bool) -> None:
    assert is_whole(answer) is is_whole(answer, b"GET / HTTP/1.1") is whole
    assert is_whole(answer, b"HEAD / HTTP/1.1") is (answer != b"")  # its body is never sent
