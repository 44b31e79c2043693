"""What became of the inputs, surface by surface: a row each, and findings that are told once."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from torture.inputs.case import Case, Outcome
from torture.part_report import Cell, Report

COLUMNS = (
    *("surface", "inputs", "accepted", "refused", "findings", "distinct ends"),
    *("slowest s", "most memory MiB", "largest input KiB", "work ms an input"),
    "effect unknown",
)
KEPT = 3  # inputs of one finding
SLOW = 3.0  # seconds from which on the slowest input of a surface is kept
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"")


@dataclass
class Tally:
    """One surface."""

    inputs: int = 0
    accepted: int = 0
    findings: int = 0
    reached: set[str] = field(default_factory=set)
    seconds: float = 0.0
    growth: int = 0
    size: int = 0
    work: float = 0.0
    unjudged: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.inputs += 1
        self.accepted += outcome.accepted
        self.findings += bool(outcome.wrong)
        self.reached.add(outcome.reached)
        self.seconds = max(self.seconds, outcome.seconds)
        self.growth = max(self.growth, outcome.growth)
        self.size = max(self.size, outcome.size)
        self.work += outcome.work
        self.unjudged += bool(outcome.unjudged)

    def row(self, surface: str) -> tuple[Cell, ...]:
        """Its row."""
        refused = self.inputs - self.accepted
        return (
            *(surface, self.inputs, self.accepted, refused, self.findings, len(self.reached)),
            *(round(self.seconds, 2), self.growth >> 20, round(self.size / 1024, 1)),
            *(round(1000 * self.work / max(1, self.inputs), 1), self.unjudged),
        )


@dataclass
class Tallies:
    """All surfaces, and the findings by what they have in common.

    Attributes:
        report: Where they are told.
    """

    report: Report
    by_surface: dict[str, Tally] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count an outcome; a finding is kept with its input, and told once for its like."""
        tally = self.by_surface.setdefault(outcome.surface, Tally())
        if outcome.seconds > max(SLOW, tally.seconds):
            name = outcome.surface.replace(": ", "-").replace(" ", "-").replace(",", "")
            case.write(self.report.folder / "inputs" / f"slowest-{name}.json")
        tally.add(outcome)
        self.report.count("inputs")
        self.report.count("accepted" if outcome.accepted else "refused")
        self.report.count(f"of {outcome.surface.partition(':')[0]}s")
        if outcome.unjudged:
            command = outcome.surface.partition(": ")[2]
            self.report.count("options whose effect cannot be judged")
            self.report.remark(
                f"{command} {outcome.unjudged}: whether it is ignored cannot be judged, since the"
                " command says and writes something else every time"
            )
        for what in outcome.wrong:
            self._found(case, outcome.surface, what)

    def _found(self, case: Case, surface: str, what: str) -> None:
        like = f"{surface} {_NUMBERS.sub('#', what)[:120]}"
        count = self.seen[like] = self.seen.get(like, 0) + 1
        if count > KEPT:
            return
        path = self.report.folder / "inputs" / f"{sum(self.seen.values())}.json"
        case.write(path)
        if count == 1:
            shown = path.relative_to(self.report.folder)
            self.report.finding(f"{surface}: {what}", f"python -m torture.inputs.again {shown}")

    def tables(self) -> None:
        """Set the tables of the report."""
        for kind in sorted({surface.partition(":")[0] for surface in self.by_surface}):
            rows = [
                tally.row(surface.partition(": ")[2])
                for surface, tally in sorted(self.by_surface.items())
                if surface.startswith(kind)
            ]
            self.report.table(f"Inputs by {kind}", (kind, *COLUMNS[1:]), rows)
        if self.seen:
            self.report.table(
                "Findings by how often", ("finding", "inputs"), sorted(self.seen.items())
            )


def kept_inputs(folder: Path) -> list[Path]:
    """The inputs that a run has kept."""
    return sorted((folder / "inputs").glob("*.json"))
