"""Running machines in rounds until the time is over; a failing example becomes a finding."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from torture.models.counted_machine import COLUMNS, CountedMachine, Tally
from torture.part_report import Report

FIRST, MOST = 5, 400  # examples of a round
ROUND = 45.0  # seconds that a round should take
ENOUGH = 5  # findings of a machine after which it is not run again


@dataclass(frozen=True)
class Failure:
    """A failing example, as small as it could be made.

    Attributes:
        what: The error, in a line.
        program: The steps that lead to it.
    """

    what: str
    program: str


def run_machine(
    machine: type[CountedMachine],
    *,
    seed_of: int,
    examples: int,
    steps: int,
    shrink: bool = True,
) -> Failure | None:
    """Run so many examples of a machine; the failure that was found, if any.

    Args:
        machine: The machine.
        seed_of: What its choices begin with.
        examples: How many.
        steps: Of each, at most.
        shrink: Whether to look for a smaller example, which may take some minutes.
    """
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    seeded = seed(seed_of)(machine)
    try:
        run_state_machine_as_test(seeded, settings=chosen)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not be
        notes = (
            getattr(error, "__notes__", ()) or CountedMachine.history
        )  # if it did not fail again
        return Failure(_line(error), "\n".join(notes))
    finally:
        machine.finish()
    return None


def _line(error: BaseException) -> str:
    """An error in a line; of what did not fail again, also what it failed with before."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return " / ".join([f"{type(error).__name__}: {line}", *map(_line, inner)])


def run_rounds(
    report: Report,
    rng: np.random.Generator,
    machines: Sequence[type[CountedMachine]],
    *,
    steps: Callable[[np.random.Generator], int],
    rounds: int | None = None,
    first: int = FIRST,
) -> Tally:
    """Run the machines in turn until the time is over, or for so many rounds of each."""
    tally, size = Tally(), dict.fromkeys(machines, first)
    found = dict.fromkeys(machines, 0)
    turn = 0
    while (rounds is None or turn < rounds) and not report.over:
        for machine in machines:
            if report.over or found[machine] >= ENOUGH:
                continue
            machine.tally = tally
            number, many = int(rng.integers(2**32)), steps(rng)
            began = time.monotonic()
            failure = run_machine(machine, seed_of=number, examples=size[machine], steps=many)
            again = f"{machine.machine} --seed {number} --examples {size[machine]} --steps {many}"
            if failure is not None:
                found[machine] += 1
                _tell(report, machine.machine, number, failure, f"python -m torture.models {again}")
            taken = max(time.monotonic() - began, 0.01)
            within = min(ROUND, report.seconds_left / len(machines))
            size[machine] = max(1, min(MOST, int(size[machine] * within / taken)))
            count(report, tally)
        if all(number >= ENOUGH for number in found.values()):
            break
        turn += 1
    return tally


def _tell(report: Report, machine: str, number: int, failure: Failure, again: str) -> None:
    file = report.folder / f"models-{machine}-{number}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{again}\n\n{failure.what}\n\n{failure.program}\n", encoding="utf-8")
    report.finding(f"{machine}: {failure.what}", f"{again}\n\n{failure.program}")


def count(report: Report, tally: Tally) -> None:
    """Bring the counts and the table of a report up to date."""
    names = sorted(tally.examples)
    rows = [row for name in names for row in tally.rows(name)]
    for name in names:
        report.counts[f"examples of the {name}"] = tally.examples[name]
    report.counts["steps"] = sum(map(tally.steps, names))
    for what, column in (("refused", 4), ("crashes", 5), ("rollbacks and edits noticed", 6)):
        report.counts[what] = sum(int(row[column]) for row in rows)
    report.table("Steps, and how they ended", COLUMNS, rows)
