"""Noise: every kind of query through a real session with real noise, against what it is charged.

Two neighbouring datasets, many runs of the real release on each, an event chosen on one half of
the outputs and counted on the other (Clopper-Pearson): a lower bound on what leaks. A bound above
the charge is a finding. All bounds of a run together are wrong with probability at most 1e-9.

So that "nothing found" says something, the same is done with half of the noise and the same
charge: that has to be found, by as many runs and at the same level. Where it is not found by
as many as are known to be enough (`audits.ENOUGH`), the part is blind, and that is a finding.
"""

from collections.abc import Sequence

import numpy as np

from torture.noise.audits import COLUMNS, FALSE_ALARM, Audited, TrialCase, error_of
from torture.noise.cases import CASES
from torture.noise.prior_cases import PRIOR_CASES
from torture.part_report import Report

RUNS = 2_000  # of either side in the first turn; twice as many in each that follows
SLOW_TURN = 3  # from which on every run may be a release of its own
MOST_RUNS = 256_000  # of either side: as many outputs are kept at once
TABLES = ("Entries", "Secrets under a correlated prior")
ALL_CASES: tuple[TrialCase, ...] = (*CASES, *PRIOR_CASES)


def run(
    report: Report,
    rng: np.random.Generator,
    *,
    cases: Sequence[TrialCase] = ALL_CASES,
    runs: int = RUNS,
    turns: int | None = None,
) -> None:
    """Audit all cases, with twice as many runs in each turn, until the time is over.

    With ``turns``, so many of them instead, whatever the time.
    """
    report.remark(
        f"A finding is a false alarm with probability at most {FALSE_ALARM:g}, over all bounds of"
        " the run; a bound is in the currency of the charge, ε or ρ, and there is no δ in it."
    )
    audited = [Audited(case) for case in cases]
    turn = 0
    while turns is None or turn < turns:
        turn += 1
        for one in sorted(audited, key=_urgency):
            if turns is None and report.over:
                return _ended(report, audited)
            early = turns is None and one.case.alone and turn < SLOW_TURN
            if not early and not one.done:
                size = min(runs * 2 ** (turn - 1), MOST_RUNS)
                one.turn(size, error_of(len(audited), turn), report, rng)
                _table(report, audited)
    return _ended(report, audited)


def _urgency(one: Audited) -> tuple[bool, bool]:
    """What takes long comes last; what would not be found yet comes first."""
    return one.case.alone, one.weak is not None and one.weak.too_much


def _table(report: Report, audited: Sequence[Audited]) -> None:
    known = [one for one in audited if one.real is not None]
    for title, chosen in zip(TABLES, (CASES, PRIOR_CASES), strict=True):
        rows = [one.row for one in known if one.case in chosen]
        if rows:
            report.table(title, COLUMNS, rows)


def _ended(report: Report, audited: Sequence[Audited]) -> None:
    """Say what was not reached, and what would not have been found."""
    for one in audited:
        if one.weak is None:
            report.remark(f"{one.case.name}: there was no time for it")
        elif not one.weak.too_much:
            what = (
                f"{one.case.name} by {one.mechanism}: half of the noise was not found with"
                f" {one.weak.runs:,} runs of either side"
            )
            if one.missed:
                report.finding(what, f"python -m torture noise --seed {report.seed}")
            else:
                report.remark(f"{what}; give it more minutes")
        if one.mechanism and one.mechanism != one.case.mechanism:
            report.remark(
                f"{one.case.name} is answered by {one.mechanism} now, not by {one.case.mechanism}"
            )
