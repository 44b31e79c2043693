"""``python -m torture.models MACHINE --seed N --examples M --steps K``: one round again."""

import argparse
import sys

from torture.models import MACHINES
from torture.models.counted_machine import COLUMNS
from torture.models.machine_runs import run_machine
from torture.summary_page import table_lines


def main() -> int:
    """Run it; 1 if it fails."""
    machines = {machine.machine: machine for machine in MACHINES}
    options = argparse.ArgumentParser(prog="python -m torture.models", description=__doc__)
    options.add_argument("machine", choices=sorted(machines))
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--examples", type=int, default=20)
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--whole", action="store_true", help="do not look for a smaller example")
    given = options.parse_args()
    machine = machines[given.machine]
    failure = run_machine(
        *(machine,),
        seed_of=given.seed,
        examples=given.examples,
        steps=given.steps,
        shrink=not given.whole,
    )
    print("\n".join(table_lines(COLUMNS, list(machine.tally.rows(machine.machine)))))
    if failure is not None:
        print(f"\n{failure.what}\n\n{failure.program}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
