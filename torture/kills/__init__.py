"""Processes, servers and disks that fail at any moment: is every acknowledged charge there?

`strikes` kills processes, `jobs` is what they do, `storms` runs eight of them on one ledger, and
`accounts` compares, by plain SQL, what the ledger has with what was acknowledged. `scenarios` lists
what is done; the other modules are about one scenario each.

One trial again: ``python -m torture.kills "kills (SQLite)" SEED``.
"""

import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from torture.kills.accounts import KINDS
from torture.kills.jobs import warm
from torture.kills.scenarios import SCENARIOS, NotHere, Scenario, Setting
from torture.kills.storms import Outcome, counted
from torture.kills.syscalls import missing
from torture.part_report import Report

SHOWN = 5  # findings of one trial


class _Running:
    """A scenario and what came of it so far."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.trials, self.seconds = scenario, 0, 0.0
        self.total, self.over = Outcome(), False

    @property
    def behind(self) -> float:
        """Smaller for what has had less of its share."""
        return self.seconds / self.scenario.share


def run(report: Report, rng: np.random.Generator) -> None:
    """Every scenario in turn, until the time is over or each was done often enough."""
    play(report, rng, SCENARIOS)


def play(report: Report, rng: np.random.Generator, scenarios: Sequence[Scenario]) -> None:
    """Run these scenarios; at least once each, whatever the time."""
    if (needed := missing()) is not None:
        report.remark(f"No kills at calls to the kernel: {needed}.")
    signal.signal(signal.SIGTERM, _leave)
    warm()
    running = [_Running(scenario) for scenario in scenarios]
    while going := [one for one in running if not one.over]:
        one = min(going, key=lambda each: each.behind)
        if report.over and one.trials:
            break
        _try(report, one, int(rng.integers(2**62)))
        _tables(report, running)


def _leave(number: int, _: object) -> None:
    """Leave every block, so that servers are stopped and disks unmounted."""
    sys.exit(128 + number)


def _try(report: Report, one: _Running, seed: int) -> None:
    """One trial of a scenario."""
    scenario, began = one.scenario, time.monotonic()
    keep = report.folder / f"{scenario.name} {seed}"
    before = report.counts.get(scenario.name, 0)
    size = min(scenario.size, scenario.most - before)
    try:
        outcome = scenario.trial(Setting(np.random.default_rng(seed), size, keep))
    except NotHere as reason:
        report.remark(f"Not run: {scenario.name}: {reason}.")
        one.over = True
        return
    one.trials += 1
    one.seconds += time.monotonic() - began
    one.total.add(outcome)
    report.count(scenario.name, outcome.kills)
    report.count("acknowledged charges", outcome.acknowledged)
    one.over = report.counts[scenario.name] >= scenario.most
    for fault in outcome.faults[:SHOWN]:
        again = f'python -m torture.kills "{scenario.name}" {seed} --size {size}'
        report.finding(f"{scenario.name}: {fault.kind}: {fault.what}", again)


def _tables(report: Report, running: Sequence[_Running]) -> None:
    done = [one for one in running if one.trials]
    report.table(
        "What was killed, and what came of it",
        ("scenario", "trials", "times", "acknowledged charges", *KINDS, "minutes"),
        (
            (
                one.scenario.name,
                one.trials,
                one.total.kills,
                one.total.acknowledged,
                *counted(one.total).values(),
                round(one.seconds / 60, 1),
            )
            for one in done
        ),
    )
    names = [one for one in done if one.total.moments]
    _counted_table(report, "Where the kills struck", "moment", names, "moments")
    _counted_table(report, "Kills at calls", "call", names, "points")
    _counted_table(report, "Also counted", "what", done, "details")


def _counted_table(
    report: Report, title: str, what: str, done: Sequence[_Running], field: str
) -> None:
    """How often each thing happened, by scenario."""
    found: list[Counter[str]] = [getattr(one.total, field) for one in done]
    rows = sorted(set().union(*found), key=lambda name: -sum(each[name] for each in found))
    columns = (what, *(one.scenario.name for one in done))
    if rows:
        report.table(title, columns, ((name, *(each[name] for each in found)) for name in rows))
