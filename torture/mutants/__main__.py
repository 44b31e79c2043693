"""``python -m torture.mutants --package ledger --sample 150 --seed 3``: which mutants live?"""

import argparse
import difflib
import sys
from pathlib import Path

import numpy as np

from torture.mutants.finding import PACKAGES, SOURCE, all_mutants, mutant, mutants_of
from torture.mutants.line_map import MAP, LineMap, files_of_tests
from torture.mutants.mutation import Mutant
from torture.mutants.part import summed
from torture.mutants.selection import THEN, Selection
from torture.mutants.trial import Trial, Verdict, sampled
from torture.mutants.zygote import prepared
from torture.part_report import ROOT


def main() -> int:
    """Read the options, try mutants, print those that live."""
    options = argparse.ArgumentParser(prog="python -m torture.mutants", description=__doc__)
    options.add_argument("--package", choices=PACKAGES)
    options.add_argument("--module", help="as in ledger/ledger.py: only its mutants")
    options.add_argument("--sample", type=int, default=100, help="how many are tried")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--id", nargs="+", help="show these mutants and try them again")
    options.add_argument("--out", type=Path, help="also write here, as it goes")
    options.add_argument(
        "--stale", action="store_true", help="do not run changed tests for the map"
    )
    options.add_argument(
        "--rounds", type=int, default=len(THEN), help="of further tests for those that live"
    )
    given = options.parse_args()
    lines = LineMap(MAP)
    changed = [] if given.stale else lines.stale(files_of_tests())
    if changed:
        print(f"finding out what {len(changed)} new or changed files of tests run …", flush=True)
        lines.renew(changed, processes=given.workers)
    selection = Selection(lines, SOURCE)
    trial = Trial(selection, SOURCE, ROOT, rounds=given.rounds)
    prepared(ROOT)
    if given.id:
        wanted = [mutant(name) for name in given.id]
    else:
        if given.module:
            every = list(mutants_of(given.module))
        elif given.package:
            every = all_mutants(given.package)
        else:
            options.error("--package, --module or --id")
        wanted = sampled(every, given.sample, np.random.default_rng(given.seed))
        print(f"{len(every)} mutants, {len(wanted)} of them tried", flush=True)
    known: list[Verdict] = []
    out = given.out.open("w", encoding="utf-8") if given.out else None
    for verdict in trial.verdicts(wanted, workers=given.workers):
        known.append(verdict)
        if given.id:
            print(difference(verdict.mutant))
        if given.id or not verdict.killed:
            for stream in filter(None, (sys.stdout, out)):
                print(line(verdict), file=stream, flush=True)
        if len(known) % 20 == 0:
            print(f"   … {summed(known)}", file=sys.stderr, flush=True)
    for stream in filter(None, (sys.stdout, out)):
        print(summed(known), file=stream, flush=True)
    if trial.selection.bad:
        print(f"tests that fail on the code as it is, not used: {sorted(trial.selection.bad)}")
    return 0


def line(verdict: Verdict) -> str:
    """A verdict in two lines: the id, and what it is."""
    by = f" by {verdict.by}" if verdict.by else ""
    return (
        f"{verdict.mutant.id}\n    {verdict.mutant.shown()}\n"
        f"    {verdict.kind}{by}, {verdict.tests} tests tried"
    )


def difference(one: Mutant) -> str:
    """The change as a diff."""
    before = (SOURCE / one.module).read_bytes()
    after = one.applied(before)
    old, new = (text.decode().splitlines() for text in (before, after))
    rows = difflib.unified_diff(old, new, one.module, "mutant", lineterm="")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
