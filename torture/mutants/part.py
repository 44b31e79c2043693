"""The part "mutants": packages in turn, some mutants at a time, and which of them live."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from torture.mutants.finding import PACKAGES, SOURCE, all_mutants
from torture.mutants.line_map import MAP, LineMap, files_of_tests
from torture.mutants.mutation import Mutant
from torture.mutants.selection import Selection
from torture.mutants.trial import AT_ONCE, Trial, Verdict, sampled
from torture.mutants.zygote import prepared
from torture.part_report import ROOT, Report

MAPPED = 0.7  # of the time, at most, goes into the map of lines to tests
MOST = 600  # mutants of one package in a run


def run_packages(report: Report, rng: np.random.Generator, *, most: int = MOST) -> None:
    """Try up to ``most`` mutants of every package, ten of each in turn, while there is time."""
    lines = LineMap(MAP)
    changed, whole = lines.stale(files_of_tests()), True
    if changed:
        enough = (1 - MAPPED) * report.seconds_left
        whole = lines.renew(changed, stop=lambda: report.over or report.seconds_left < enough)
    lacking = lines.stale(files_of_tests())
    report.count("files of tests run for the map", len(changed) - len(lacking))
    if lacking:
        report.remark(f"no map of lines to tests for {', '.join(lacking)}")
    if not whole:
        report.remark("There was no time for a whole map: some that live have tests of their own.")
    trial = Trial(Selection(lines, SOURCE), SOURCE, ROOT)
    prepared(ROOT)
    every = {name: all_mutants(name) for name in PACKAGES}
    waiting = {name: sampled(every[name], most, rng) for name in PACKAGES}
    known: dict[str, list[Verdict]] = {name: [] for name in PACKAGES}
    while any(waiting.values()) and not report.over:
        for name in PACKAGES:
            batch, waiting[name] = waiting[name][:AT_ONCE], waiting[name][AT_ONCE:]
            known[name] += trial.verdicts(batch, stop=lambda: report.over)
            told(report, every, known)
    if trial.selection.bad:
        bad = ", ".join(sorted(trial.selection.bad))
        report.remark(f"tests that fail on the code as it is, and were not used: {bad}")


def told(
    report: Report, every: Mapping[str, list[Mutant]], known: Mapping[str, list[Verdict]]
) -> None:
    """Set the counts and tables to what is known."""
    tried = sum(len(verdicts) for verdicts in known.values())
    alive = {name: lived(verdicts) for name, verdicts in known.items()}
    report.counts["mutants tried"] = tried
    report.counts["mutants killed"] = tried - sum(len(one) for one in alive.values())
    report.table(
        "Mutants by package",
        ("package", "mutants in all", "tried", "lived"),
        ((name, len(every[name]), len(known[name]), len(alive[name])) for name in known),
    )
    report.table(
        "Mutants that lived",
        ("id", "change", "tests that ran it"),
        (
            (one.mutant.id, one.mutant.shown(), one.tests)
            for verdicts in alive.values()
            for one in verdicts
        ),
    )


def lived(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that no test noticed."""
    return [one for one in verdicts if not one.killed]


def summed(verdicts: Iterable[Verdict]) -> str:
    """What became of mutants, in one line."""
    kinds = Counter(one.kind for one in verdicts)
    return f"tried {kinds.total()}: {dict(kinds)}"
