"""Labels of a table that would rewrite a terminal: every command shows them and obeys none."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Ran, call

STATES = ("=cmd|' /C calc'!A0", "\u202eward\x9b\x1b[2J\x07")
HIDDEN = ("\x1b", "\u202e", "\x9b", "\x07")
DECLARATION = f"""\
[source]
kind = "csv"
path = "stays.csv"
[entity]
column = "person"
[order]
column = "step"
kind = "number"
ties = "refuse"
[protected.state]
values = {json.dumps(STATES)}
outside = "refuse"
[public.zone]
values = ["\\u001b]0;owned\\u0007"]
"""


def clean(ran: Ran) -> Ran:
    assert ran.status == 0, ran.err
    assert not any(mark in ran.out + ran.err for mark in HIDDEN)
    return ran


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    zone = "\x1b]0;owned\x07"
    lines = [
        f"p{i},{j},{zone},{STATES[(i * 7 + j * j * (i % 5 + 1)) % 5 % 2]}"
        for i in range(24)
        for j in range(12)
    ]
    text = "\n".join(["person,step,zone,state", *lines]) + "\n"
    (tmp_path / "stays.csv").write_text(text, encoding="utf-8")
    (tmp_path / "stays.toml").write_text(DECLARATION, encoding="utf-8")
    for words in (
        "init",
        "dataset add stays stays.toml",
        "prior fit stays --all-rows",
        "budget set stays 10 --yes",
    ):
        clean(call(tmp_path, monkeypatch, *words.split()))
    return tmp_path


@pytest.mark.nightly
def test_no_command_passes_a_mark_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ("stays", "histogram", "--by", "zone", "--epsilon", "1")
    for words in (
        ("dataset", "show", "stays"),
        ("dataset", "check", "stays"),
        ("plan", *query),
        ("release", *query),
        ("budget", "show", "stays"),
        ("ledger", "show"),
    ):
        told = clean(call(project, monkeypatch, *words))
        if words[0] == "release":
            assert (
                "\\u001b]0;owned\\u0007" in told.out and "\\u202eward\\u009b\\u001b[2J" in told.out
            )
        as_json = clean(call(project, monkeypatch, *words, "--json")).json()
        if words[0] == "release":
            assert {row[1] for row in as_json["rows"]} == {*STATES}
    clean(call(project, monkeypatch, "release", *query, "--out", "answer.csv"))
    assert "'=cmd|' /C calc'!A0" in (project / "answer.csv").read_text(encoding="utf-8")
    refused = call(
        project, monkeypatch, "release", "stays", "count", "--values", "\x1b[2J", "--epsilon", "1"
    )
    assert refused.status == 2
    assert "\x1b" not in refused.err
