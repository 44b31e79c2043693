"""State machines against plain sums: a little of them, and faults that they must find."""

from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.torture.planted_ledger_faults import LEDGER_FAULTS, keep_costs_of_renamed_values
from tests.torture.planted_release_faults import RELEASE_FAULTS, in_this_process
from tests.torture.played_machines import played
from torture import models
from torture.models.counted_machine import (
    CRASHED,
    DONE,
    NOTICED,
    CountedMachine,
    Tally,
    Violation,
    must,
)
from torture.models.ledger_files import LedgerMachine
from torture.models.ledger_machine import EVERYTHING
from torture.models.ledger_model import KINDS, WORTHS, Declared, Reads
from torture.models.machine_runs import run_machine, run_rounds
from torture.part_report import Report

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("fault", LEDGER_FAULTS)
def test_the_machine_of_the_ledger_finds(fault: str) -> None:
    with LEDGER_FAULTS[fault]():
        found = run_machine(LedgerMachine, seed_of=3, examples=40, steps=20, shrink=False)
    assert found is not None and "state.begin(" in found.program


@pytest.mark.parametrize("reading", [1, 2])
@pytest.mark.parametrize("faulty", [False, True])
def test_costs_by_value_survive_other_names_of_values(reading: int, faulty: bool) -> None:
    machine = LedgerMachine()
    try:
        machine.begin(worth="sums", delta=False, unit="step")
        by_value = KINDS["sums"].index("count")
        machine.charge(0, EVERYTHING, by_value, Fraction(1, 8), None, "ward", True)
        with keep_costs_of_renamed_values() if faulty else nullcontext():
            machine.accept_edit(handle=0, declared=Declared(0, reading), dataset="ward")
        with pytest.raises(Violation, match="lost more") if faulty else nullcontext():
            machine.no_cell_has_lost_more_than_is_counted()
    finally:
        machine.teardown()


def test_a_charge_that_nobody_was_told_of_is_missed_by_nobody_until_somebody_is() -> None:
    machine = LedgerMachine()
    wanted: dict[str, Any] = {"key": "first", "kind": 0, "size": Fraction(1, 20)}
    reads = Reads(None, None, (), frozenset(), "usual", "UTC")
    try:
        machine.begin(worth="sums", delta=False, unit="step")
        machine.no_cell_has_lost_more_than_is_counted()
        assert not machine.older
        machine.request(handle=0, point="committed", reads=reads, **wanted)
        machine.no_cell_has_lost_more_than_is_counted()
        assert machine.untold == machine.open[0].head().seq and not machine.older
        machine.request(handle=1, point="drawn", reads=reads, **wanted)  # paid, by its receipt
        machine.no_cell_has_lost_more_than_is_counted()
        assert machine.older == [0]
        machine.set_back(number=0, while_open=False)
        machine.no_cell_has_lost_more_than_is_counted()
    finally:
        machine.teardown()


def test_an_edit_that_takes_what_nobody_was_told_of_is_not_said_to_be_noticed() -> None:
    machine = LedgerMachine()
    machine.tally = Tally()  # type: ignore[misc]
    wanted: dict[str, Any] = {"key": "first", "kind": 0, "size": Fraction(1, 20)}
    reads = Reads(None, None, (), frozenset(), "usual", "UTC")
    try:
        machine.begin(worth="sums", delta=False, unit="step")
        machine.no_cell_has_lost_more_than_is_counted()
        machine.request(handle=0, point="stored", reads=reads, **wanted)
        machine.edit_behind_its_back("the end")
        assert machine.tally.times("ledger", "edit of the end", DONE) == 1
        machine.no_cell_has_lost_more_than_is_counted()
        machine.charge_little(handle=0, reads=reads, kind=0, size=Fraction(1, 20))
        machine.no_cell_has_lost_more_than_is_counted()
        machine.edit_behind_its_back("the end")
        assert machine.tally.times("ledger", "edit of the end", NOTICED) == 1
    finally:
        machine.teardown()


@pytest.mark.parametrize("worth", WORTHS)
@pytest.mark.parametrize("kind", range(4))
def test_a_budget_is_filled_and_a_little_more_is_refused(worth: str, kind: int) -> None:
    for fault in (None, "a tenth more is admitted"):
        machine = LedgerMachine()
        machine.tally = Tally()  # type: ignore[misc]
        try:
            machine.begin(worth=worth, delta=False, unit="step")
            if fault is None:
                machine.fill(handle=0, kind=kind, over=kind + 1)
                machine.no_cell_has_lost_more_than_is_counted()
                assert machine.tally.times("ledger", "charge to the limit", DONE) == 1
                assert machine.tally.refused("ledger", "charge beyond the limit") == 1
            else:
                with LEDGER_FAULTS[fault](), pytest.raises(Violation, match="was told from"):
                    machine.fill(handle=0, kind=kind, over=kind + 1)
        finally:
            machine.teardown()


@pytest.mark.parametrize("fault", RELEASE_FAULTS)
def test_the_machines_of_releases_find(fault: str) -> None:
    name, planted = RELEASE_FAULTS[fault]
    with in_this_process(), planted(), pytest.raises(Violation):
        played(name)


class Counting(CountedMachine):
    """Counts, and must not come to three."""

    machine: ClassVar[str] = "counting"
    reached = 0

    @rule(one=st.integers(0, 9))
    def up(self, one: int) -> None:
        """Count."""
        self.reached += one
        self.took("up")
        must(self.reached < 3, "three")


def test_a_failing_example_is_a_finding_that_is_made_small(tmp_path: Path) -> None:
    report = Report("models", tmp_path, 60, 3)
    rng = np.random.default_rng(3)
    run_rounds(report, rng, (Counting,), steps=lambda _: 20, rounds=1, first=20)
    (finding,) = report.findings
    assert finding.what == "counting: Violation: three"
    assert "\nstate.up(one=3)\n" in finding.again and finding.again.count("state.up") == 1
    assert "python -m torture.models counting --seed" in finding.again
    assert list(tmp_path.glob("models-counting-*.txt"))


RELEASED = (
    ("release", DONE),
    ("release, free or paid before", DONE),
    ("release", "CellsChanged"),
    ("release", "OverBudget"),
    ("interrupted release", CRASHED),
    ("request", CRASHED),
    ("request, killed", CRASHED),
    ("request, free or paid before", DONE),
    ("rollback", NOTICED),
    ("edit of a total", NOTICED),
    ("edit accepted", DONE),
    ("prior replaced", DONE),
)
HAPPENED = {
    "session": RELEASED,
    "project": RELEASED,
    "server": (
        ("release", DONE),
        ("release", "CellsChanged"),
        ("release", "NotAccepted"),
        ("release", "OverBudget"),
        ("release, free or paid before", DONE),
        ("request, free or paid before", DONE),
        ("declaration accepted", DONE),
        ("policy accepted", DONE),
        ("release without a right", "403"),
    ),
}


@pytest.mark.parametrize("name", HAPPENED)
def test_a_history_in_which_everything_happens_is_right(name: str) -> None:
    tally = played(name)
    for step, end in HAPPENED[name]:
        assert tally.times(name, step, end) > 0, (step, end, tally.ended)


@pytest.mark.parametrize("name", ["session", "project"])
def test_an_answer_is_reused_after_cells_were_named_anew(name: str) -> None:
    tally = played(f"{name}, reused")
    assert tally.times(name, "release", DONE) == 1
    assert tally.times(name, "release, free or paid before", DONE) == 2


def test_a_little_of_the_ledger_finds_nothing(tmp_path: Path) -> None:
    report, rng = Report("models", tmp_path, 60, 5), np.random.default_rng(5)
    tally = run_rounds(report, rng, (LedgerMachine,), steps=lambda _: 25, rounds=1, first=10)
    assert not report.findings
    assert tally.times("ledger", "charge", DONE) and tally.refused("ledger", "charge")
    assert report.counts["crashes"] and report.counts["rollbacks and edits noticed"]
    assert report.counts["examples of the ledger"] >= 10 and report.counts["steps"] > 100
    assert [table.title for table in report.tables.values()] == ["Steps, and how they ended"]


@pytest.mark.parametrize("name", ["session", "project"])
def test_a_little_of_releases_finds_nothing(tmp_path: Path, name: str) -> None:
    report, rng = Report("models", tmp_path, 60, 5), np.random.default_rng(5)
    chosen = [machine for machine in models.MACHINES if machine.machine == name]
    run_rounds(report, rng, chosen, steps=lambda _: 15, rounds=1, first=2)
    assert not report.findings and report.counts["steps"] > 10


def test_every_part_of_the_part_is_run(tmp_path: Path) -> None:
    report = Report("models", tmp_path, 0.0, 5)
    models.run(report, np.random.default_rng(5))  # no time at all
    assert not report.findings and not report.counts
