"""A little of the part "kills", and faults that it must find."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ledger import postgres
from tests.oracles.ledger_sums import PlainEvent
from torture.kills.accounts import (
    LOST,
    OTHER,
    OVERSPENT,
    STALE,
    TWICE,
    UNPAID,
    Acknowledged,
    copies,
    faults,
)
from torture.kills.serving import outcome_of
from torture.kills.strikes import Child, Strike
from torture.part_report import ROOT

pytestmark = pytest.mark.nightly


def run(*arguments: str, folder: Path) -> dict[str, Any]:
    """A module in a process of its own: what is killed is made from one without threads."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_processes_that_are_killed_on_a_file_lose_nothing(tmp_path: Path) -> None:
    found = run("torture.kills", "kills (SQLite)", "11", "--size", "40", folder=tmp_path)
    assert not found["faults"]
    assert found["kills"] >= 40 and found["acknowledged"] > 0
    assert len(found["moments"]) >= 2  # which ones depends on how busy the machine is


def test_processes_that_are_killed_on_a_server_lose_nothing(tmp_path: Path) -> None:
    if needed := postgres.missing():
        pytest.skip(needed)
    found = run("torture.kills", "kills (PostgreSQL)", "12", "--size", "20", folder=tmp_path)
    assert not found["faults"]
    assert found["kills"] >= 20 and found["acknowledged"] > 0 and found["moments"]


PLANTED = {
    "hasty": LOST,
    "shown first": UNPAID,
    "lock": STALE,
    "forgetful": TWICE,
    "cheap": OVERSPENT,
    "no witness": LOST,
    "endless": STALE,
    "careless": LOST,
    "never opens": OTHER,
    "another error": OTHER,
    "slow": STALE,
    "gone": STALE,
    "miserly": OTHER,
    "uncounted": OVERSPENT,
    "thousandths": OVERSPENT,
    "thousandths of sessions": OVERSPENT,
}
WORDS = {  # of a fault that also has other consequences
    "hasty": "was acknowledged and is not in the ledger",
    "thousandths of sessions": "a session lost",
    "never opens": "nothing acknowledged was torn",
    "another error": "an error that says nothing of it",
    "slow": "nobody is left, and a charge took",
    "gone": "neither made nor refused",
    "miserly": "that fits into the budget was refused",
    "uncounted": "ward: the ledger counts 0",
}
SMALL = {
    "lock holders stopped": 2,
    "torn files": 3,
    "disks filled": 2,
    "disks made read-only": 2,
    "kills with jumping clocks": 8,
}


def test_planted_faults_are_found(tmp_path: Path) -> None:
    planted: dict[str, Any] = {}
    waiting = {"none", "halfway", *PLANTED}
    for seed in range(3, 9):  # where processes are struck depends on how busy the machine is
        planted |= run("tests.torture.kill_faults", str(seed), *sorted(waiting), folder=tmp_path)
        waiting = {fault for fault in planted if not seen(fault, planted[fault])}
        if not waiting:
            break
    assert not waiting, {fault: planted[fault]["counted"] for fault in waiting}
    sound = planted["none"]  # the same storm without a fault
    assert not sound["faults"] and sound["kills"] >= 16


def seen(fault: str, found: dict[str, Any]) -> bool:
    """Whether a fault was told as what it is; without one, whether anything was done."""
    if fault == "none":
        return bool(found["faults"]) or found["acknowledged"] > 0
    if fault == "halfway":  # of several kinds, by where it was struck
        return bool(found["faults"])
    texts = [what for _, what in found["faults"]]
    words = WORDS.get(fault, "")
    return found["counted"][PLANTED[fault]] > 0 and any(words in what for what in texts)


def test_disks_clocks_and_processes_that_stop_lose_nothing(tmp_path: Path) -> None:
    sizes = [f"{name}={size}" for name, size in SMALL.items()]
    trials = run("tests.torture.kill_faults", "5", *sizes, folder=tmp_path)
    for name, found in trials.items():
        if "not here" in found:
            assert "mount" in found["not here"], found  # as the user who runs the tests
            continue
        assert not found["faults"], (name, found)
        assert found["kills"] >= SMALL[name]


def test_kills_of_a_server_are_those_that_were_done() -> None:
    notes: list[list[Any]] = [["killed", "server"], ["killed", "worker"], ["killed", "server"]]
    done = outcome_of(Child("alone", Strike("none"), 0, 0, notes=notes))
    assert done.kills == 3 and not done.faults
    assert done.details == {"servers killed": 2, "all workers killed": 1}
    assert not outcome_of(Child("alone", Strike("none"), 0, 0)).kills


# --- the comparison itself ---


def event(seq: int, kind: str, **body: Any) -> PlainEvent:
    return PlainEvent(seq, f"hash {seq}", kind, body)


def paid(seq: int, key: str, **others: Any) -> PlainEvent:
    given = {
        "dataset": "ward",
        "key": key,
        "query": {"name": key},
        "question": key,
        "loss": {"currency": "pure", "epsilon": "1/4"},
        "window": None,
        "groups": None,
    }
    return event(seq, "charge", **(given | others))


EVENTS = (event(1, "created"), paid(2, "a"), event(3, "answer", charge=2, answer=7))
SAID: tuple[list[Any], ...] = (
    ["now", "charge"],
    ["charged", "a", 2, "hash 2", "1/4", None, None],
    ["shown", "a", 7],
    ["recorded", "a", 7],
    ["answered", 2, "hash 2", 3, "1/4"],
)


def kinds(events: tuple[PlainEvent, ...], *more: list[Any], budget: int = 1) -> set[str]:
    known = Acknowledged()
    known.take(Child("release", Strike("none"), 0, 0, notes=[*SAID, *more]))
    return {fault.kind for fault in faults(known, events, budget)}


def test_accounts_that_agree_have_no_faults() -> None:
    assert not kinds(EVENTS)


@pytest.mark.parametrize(
    ("events", "said", "kind"),
    [
        (EVENTS, ["charged", "b", 4, "hash 4", "1/4", None, None], LOST),
        (EVENTS, ["charged", "a", 2, "another", "1/4", None, None], LOST),
        (EVENTS, ["charged", "a", 2, "hash 2", "1/2", None, None], OVERSPENT),
        (EVENTS, ["charged", "a", 2, "hash 2", "1/4", [0, 2], None], OVERSPENT),
        (EVENTS, ["charged", "a", 2, "hash 2", "1/4", None, [["country"], [["de"]]]], OVERSPENT),
        (EVENTS, ["answered", 2, "hash 2", 3, "1/2"], OVERSPENT),
        (EVENTS, ["recorded", "a", 8], LOST),
        (EVENTS, ["answered", 2, "hash 2", 9, "1/4"], LOST),
        (EVENTS[:2], [], LOST),
        ((*EVENTS, paid(5, "b")), [], LOST),
        (EVENTS, ["shown", "b", 1], UNPAID),
        (EVENTS, ["shown", "a", 8], UNPAID),
        (EVENTS, ["answered", 9, "hash 9", 10, "1/4"], UNPAID),
        ((*EVENTS, event(4, "answer", charge=9, answer=1)), [], UNPAID),
        ((*EVENTS, paid(4, "b", query={"name": "a"}, question="a")), [], TWICE),
        ((*EVENTS, event(4, "answer", charge=2, answer=7)), [], TWICE),
        ((*EVENTS, paid(4, "b"), paid(5, "c")), [], OVERSPENT),
        (EVENTS, ["trouble", "LedgerUnavailable", "locked", "", ""], STALE),
        (EVENTS, ["trouble", "KeyError", "", "", ""], OTHER),
    ],
)
def test_what_must_not_be_is_named(
    events: tuple[PlainEvent, ...], said: list[Any], kind: str
) -> None:
    assert kind in kinds(events, *([said] if said else []))


def test_a_copy_that_is_not_whole_is_found(tmp_path: Path) -> None:
    known = Acknowledged()
    notes: list[list[Any]] = [["copying", "export 1", 2], ["copying", "export 2", 2]]
    known.take(Child("backup", Strike("none"), 0, 0, notes=notes))
    lines = [json.dumps({"hash": one.hash, "body": one.body}) for one in EVENTS]
    (tmp_path / "export 1").write_text("\n".join(lines))
    assert not copies(known, tmp_path, EVENTS)
    (tmp_path / "export 2").write_text(lines[0])
    assert [fault.kind for fault in copies(known, tmp_path, EVENTS)] == [LOST]
    (tmp_path / "export 2").write_text(lines[0][:-1])
    assert [fault.kind for fault in copies(known, tmp_path, EVENTS)] == [OTHER]
    known.copied["export 3"] = known.copying["export 3"] = 2
    assert [fault.kind for fault in copies(known, tmp_path, EVENTS)] == [OTHER, LOST]
    (tmp_path / "backup 1").write_bytes(b"SQLite format 3\0" + bytes(4000))
    known.copying["backup 1"] = 1
    assert [fault.kind for fault in copies(known, tmp_path, EVENTS)] == [OTHER, LOST, OTHER]
