"""``python -m torture [PART …] --minutes M``: run every part, or those named, and write a page."""

import argparse
import os
import secrets
import sys
from pathlib import Path

from torture.lanes import Lanes, placed
from torture.parts import NAMES, PARTS, run_part
from torture.summary_page import write_summary


def main() -> int:
    """Read the options, run the parts; 0 if nothing was found, else 1."""
    options = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    options.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(NAMES)}; default: all"
    )
    options.add_argument("--minutes", type=float, default=120.0, help="of the whole run")
    options.add_argument(
        "--seed", type=int, help="of every choice that is made; default: a new one"
    )
    options.add_argument(
        "--lanes", type=int, default=os.cpu_count() or 1, help="parts side by side"
    )
    options.add_argument("--out", type=Path, default=Path("out/torture"), help="a folder")
    options.add_argument("--here", action="store_true", help="one part, in this process")
    options.add_argument("--page", action="store_true", help="only the page of what has run")
    given = options.parse_args()
    unknown = sorted(set(given.parts) - set(NAMES))
    if unknown:
        options.error(f"no part {', '.join(unknown)}: there are {', '.join(NAMES)}")
    if not 0 < given.minutes < float("inf") or given.lanes < 1:
        options.error("--minutes must be above 0 and --lanes at least 1")
    out = given.out.absolute()
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    if given.page:
        return 0 if write_summary(out) else 1
    if given.here:
        if len(given.parts) != 1:
            options.error("--here runs one part: name it")
        report = run_part(given.parts[0], folder=out, minutes=given.minutes, seed=seed)
        return 1 if report.findings else 0
    chosen = [part for part in PARTS if not given.parts or part.name in given.parts]
    print(f"seed {seed}, {given.minutes:g} minutes, {min(given.lanes, len(chosen))} at a time")
    ways = placed(chosen, given.minutes, given.lanes)
    fine = Lanes(given.lanes, out, seed).run(ways)
    write_summary(out)
    print(f"open {out / 'summary.html'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
