"""``python -m torture.inputs.again FILE``: run an input that was kept; say what becomes of it."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from torture.inputs import scratch_folder
from torture.inputs.canary_study import make_study
from torture.inputs.case import Case
from torture.inputs.children import run_cases
from torture.inputs.serving import target


def main() -> int:
    """0 if nothing is wrong with it, else 1."""
    options = argparse.ArgumentParser(prog="python -m torture.inputs.again", description=__doc__)
    options.add_argument("file", type=Path, help="an input that a run has kept, as JSON")
    case = Case.read(options.parse_args().file.absolute())
    print("surface:", case.surface)
    print("words:  ", case.words)
    print("request:", case.request[:2000])
    for name, put in case.files.items():
        print(f"{name}: {put.kind} {put.content[:2000]!r}")
    with scratch_folder() as scratch:
        make_study(scratch / "template")
        if case.request:
            with target(scratch / "template", scratch) as server:
                outcome = server.run(case)
            outcome = replace(outcome, wrong=(*outcome.wrong, *server.left))
        else:
            (ran,) = run_cases([(0, case)], scratch / "template", scratch)
            outcome = ran.outcome
    print(outcome)
    for what in outcome.wrong:
        print("WRONG:", what)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
