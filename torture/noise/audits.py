"""Audit a case with its real noise, and with a planted fault: half the noise, the same charge."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from takifugu.session import Plan
from takifugu.visible import four_digits
from torture.noise.half_noise import half_noise
from torture.noise.leakage import Charged, Leakage, leakage
from torture.noise.trial_tables import Rows, Setting
from torture.noise.trials import run_trials
from torture.part_report import Cell, Report

FALSE_ALARM = 1e-9  # of all bounds of a run together
MOST_ALONE = 1_500  # runs of either side where every run is a release of its own
ENOUGH = 16_000  # runs of either side by which half of the noise has to be found
NEEDED = {  # instead of it, where the bound is less than 1.2 times the charge with so many
    ("median", "permute-and-flip"): 64_000,
    ("top 1 in a chain, of a gap", "permute-and-flip"): 64_000,
    ("histogram of a related column", "integer-laplace"): 64_000,
}
UNITS = {"epsilon": "ε", "rho": "ρ"}
COLUMNS = (
    *("query", "mechanism", "charge", "runs", "bound", "bound / charge"),
    *("runs, half the noise", "bound, half the noise", "found"),
)


class TrialCase(Protocol):
    """A query about two datasets, or about two secrets: `Case` and `PriorCase`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def mechanism(self) -> str: ...  # noqa: D102
    @property
    def setting(self) -> Setting: ...  # noqa: D102
    @property
    def alone(self) -> bool: ...  # noqa: D102
    @property
    def query(self) -> dict[str, Any]: ...  # noqa: D102
    def datasets(self, groups: int, rng: np.random.Generator) -> list[Rows]: ...  # noqa: D102
    def charged(self, plan: Plan) -> Charged: ...  # noqa: D102


def error_of(cases: int, turn: int) -> float:
    """The probability with which one bound of a turn, 1, 2, …, may fail.

    Over all cases and turns they add up to less than `FALSE_ALARM`: Σ 1/t(t+1) is 1, and half of
    it is left for the rounding of 1 − error.
    """
    return FALSE_ALARM / (2 * cases * turn * (turn + 1))


@dataclass
class Audited:
    """What is known of one case: the bound of the last turn, and that with half of the noise."""

    case: TrialCase
    real: Leakage | None = None
    weak: Leakage | None = None
    mechanism: str = field(default="")

    @property
    def done(self) -> bool:
        """Whether more runs are of no use: each of them is slow, and the fault is found."""
        return self.case.alone and self.weak is not None and self.weak.too_much

    @property
    def missed(self) -> bool:
        """Whether half of the noise was not found by as many runs as are enough for that."""
        if self.weak is None or self.weak.too_much:
            return False
        case = self.case
        enough = MOST_ALONE if case.alone else NEEDED.get((case.name, case.mechanism), ENOUGH)
        return self.weak.runs >= enough

    def turn(self, runs: int, error: float, report: Report, rng: np.random.Generator) -> None:
        """Bound what the real noise leaks, and what half of it does if that was not found yet."""
        self.real = self._bounded(runs, error, report, rng, weak=False)
        if self.weak is None or not self.weak.too_much:
            self.weak = self._bounded(runs, error, report, rng, weak=True)

    def _bounded(
        self, runs: int, error: float, report: Report, rng: np.random.Generator, *, weak: bool
    ) -> Leakage:
        case = self.case
        runs = min(runs, MOST_ALONE) if case.alone else runs
        with half_noise() if weak else nullcontext():
            trials = run_trials(
                case.setting, case.query, case.datasets(2 * runs, rng), alone=case.alone
            )
        first, second = trials.outputs[::2], trials.outputs[1::2]
        found = leakage(first, second, case.charged(trials.plan), error=error)
        self.mechanism = trials.plan.mechanism.kind
        if weak:
            report.count("runs with half the noise", 2 * runs)
            report.count("planted faults found", int(found.too_much))
            return found
        report.count("runs", 2 * runs)
        report.count("bounds")
        if found.too_much:
            kept = self._kept(report.folder, first, second)
            report.finding(
                f"{case.name} by {self.mechanism} leaks {UNITS[found.charged.currency]} ≥"
                f" {four_digits(found.lower, 'down')} and was charged"
                f" {four_digits(found.charged.amount, 'up')}; event: {found.words}",
                f"{kept}; noise has no seed: python -m torture noise --seed {report.seed}",
            )
        if trials.underpaid:
            report.finding(
                f"{case.name} by {self.mechanism}: {trials.underpaid} ledgers count less than what"
                " was charged",
                f"python -m torture noise --seed {report.seed}",
            )
        if trials.mischarged:
            report.finding(
                f"{case.name} by {self.mechanism}: {trials.mischarged} ledgers hold other losses"
                " than were planned",
                f"python -m torture noise --seed {report.seed}",
            )
        if trials.unexplained:
            report.finding(
                f"{case.name}: {trials.unexplained} results show what does not follow from what was"
                " drawn",
                f"python -m torture noise --seed {report.seed}",
            )
        return found

    def _kept(self, folder: Path, first: Any, second: Any) -> str:
        """The outputs of both sides in a file; its name. The data is synthetic."""
        name = f"noise-{self.case.name.replace(' ', '-').replace(',', '')}-{self.mechanism}.json"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"first": first, "second": second}), encoding="utf-8")
        return name

    @property
    def row(self) -> tuple[Cell, ...]:
        """The row of the table of results."""
        if self.real is None or self.weak is None:
            raise ValueError("nothing is known yet")
        real, weak = self.real, self.weak
        return (
            *(self.case.name, self.mechanism),
            f"{UNITS[real.charged.currency]} = {four_digits(real.charged.amount, 'up')}",
            *(real.runs, four_digits(real.lower, "down"), f"{real.ratio:.3f}"),
            *(weak.runs, four_digits(weak.lower, "down"), "yes" if weak.too_much else "no"),
        )
