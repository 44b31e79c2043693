"""The part "mutants": packages in turn, some mutants at a time, and what that says of each."""

from collections.abc import Iterable, Mapping

import numpy as np

from torture.mutants.finding import PACKAGES, SOURCE, all_mutants
from torture.mutants.line_map import MAP, LineMap, files_of_tests
from torture.mutants.mutation import Mutant
from torture.mutants.score import Score
from torture.mutants.selection import Selection
from torture.mutants.survivors import listed
from torture.mutants.trial import AT_ONCE, Trial, Verdict, sampled
from torture.mutants.zygote import prepared
from torture.part_report import ROOT, Report

WANTED = 0.90  # of the mutants that are not listed as equivalent
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
        report.remark("There was no time for a whole map: scores are too low, and not judged.")
    reasons = listed()
    trial = Trial(Selection(lines, SOURCE), SOURCE, ROOT, known_to_live=reasons)
    prepared(ROOT)
    every = {name: all_mutants(name) for name in PACKAGES}
    waiting = {name: sampled(every[name], most, rng) for name in PACKAGES}
    known: dict[str, list[Verdict]] = {name: [] for name in PACKAGES}
    while any(waiting.values()) and not report.over:
        for name in PACKAGES:
            batch, waiting[name] = waiting[name][:AT_ONCE], waiting[name][AT_ONCE:]
            known[name] += trial.verdicts(batch, stop=lambda: report.over)
            told(report, every, known, reasons)
    if trial.selection.bad:
        bad = ", ".join(sorted(trial.selection.bad))
        report.remark(f"tests that fail on the code as it is, and were not used: {bad}")
    if whole:
        judged(report, known, reasons)


def told(
    report: Report,
    every: Mapping[str, list[Mutant]],
    known: Mapping[str, list[Verdict]],
    reasons: Mapping[str, str],
) -> None:
    """Set the counts and tables to what is known."""
    scores = {name: Score.of(verdicts, reasons) for name, verdicts in known.items()}
    report.counts["mutants tried"] = sum(one.tried for one in scores.values())
    report.counts["mutants killed"] = sum(one.killed for one in scores.values())
    report.table(
        "Mutation score by package",
        (
            *("package", "mutants in all", "tried", "killed by a test", "by time", "by a crash"),
            *("survived", "of these listed", "score, raw", "score", "95 % interval"),
        ),
        (_row(name, len(every[name]), score) for name, score in scores.items()),
    )
    report.table(
        "Mutants that survived and are not listed",
        ("id", "change", "tests that ran it"),
        (
            (one.mutant.id, one.mutant.shown(), one.tests)
            for verdicts in known.values()
            for one in lived(verdicts, reasons)
        ),
    )


def _row(name: str, size: int, score: Score) -> tuple[str | int | float, ...]:
    low, high = score.interval
    kinds = score.kinds
    return (
        *(name, size, score.tried, kinds.get("failed", 0) + kinds.get("import", 0)),
        *(kinds.get("timeout", 0), kinds.get("crash", 0), score.tried - score.killed),
        *(score.listed, f"{score.raw:.1%}", f"{score.score:.1%}", f"{low:.1%} to {high:.1%}"),
    )


def lived(verdicts: Iterable[Verdict], reasons: Mapping[str, str]) -> list[Verdict]:
    """Those that no test noticed and that are not listed."""
    return [one for one in verdicts if not one.killed and one.mutant.id not in reasons]


def judged(report: Report, known: Mapping[str, list[Verdict]], reasons: Mapping[str, str]) -> None:
    """A finding for each package whose score is below what is wanted, beyond chance."""
    for name, verdicts in known.items():
        score = Score.of(verdicts, reasons)
        if score.tried and score.interval[1] < WANTED:
            report.finding(
                f"{name}: {score.score:.1%} of its mutants are killed, surely under {WANTED:.0%}",
                f"python -m torture.mutants --package {name} --sample {score.tried}",
            )
