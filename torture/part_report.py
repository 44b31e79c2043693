"""What one part of a run has done and found, written as it goes so that a kill loses a minute."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from takifugu._core.atomic import write_whole

FORMAT = 1
SAVED_EVERY = 60.0  # seconds
ROOT = Path(__file__).resolve().parent.parent

Cell = str | int | float


@dataclass(frozen=True)
class Finding:
    """Something that must not be: a bound that is wrong, a charge that is lost.

    Attributes:
        what: What is wrong, in a sentence.
        again: How to see it again: a seed, an instance, a command.
    """

    what: str
    again: str


@dataclass(frozen=True)
class ReportTable:
    """Numbers under named columns.

    Attributes:
        title: One line.
        columns: Their names.
        rows: As many cells as there are columns, row by row.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"every row of {self.title!r} needs {len(self.columns)} cells")


@dataclass(frozen=True)
class PartSummary:
    """One part of a run as it is written to a file.

    Attributes:
        part: Its name.
        seed: What its random numbers began with.
        minutes: How long it was given.
        began: When, in UTC.
        seconds: How long it took so far.
        commit: What was tortured; ends in "+" where files differ from it.
        machine: Cores, Python and system.
        ended: Whether it came to its end.
        counts: What was done, and how often.
        findings: What must not be.
        tables: What was measured.
        remarks: What was not done and why, and what a reader should know.
    """

    part: str
    seed: int
    minutes: float
    began: str
    seconds: float
    commit: str
    machine: str
    ended: bool
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]
    tables: tuple[ReportTable, ...]
    remarks: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "PartSummary":
        """A part from its file."""
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if known.pop("format") != FORMAT:
            raise ValueError(f"{path.name} is not of format {FORMAT}: run the part again")
        known["findings"] = tuple(Finding(**one) for one in known["findings"])
        known["tables"] = tuple(
            ReportTable(one["title"], tuple(one["columns"]), tuple(map(tuple, one["rows"])))
            for one in known["tables"]
        )
        known["remarks"] = tuple(known["remarks"])
        return cls(**known)

    def also(self, finding: Finding) -> "PartSummary":
        """The same with one more finding."""
        return replace(self, findings=(*self.findings, finding))

    def write(self, folder: Path) -> None:
        """Write it as ``part.json``, whole."""
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False)
        write_whole(folder / f"{self.part}.json", content + "\n")


@dataclass
class Report:
    """What a part tells while it runs: counts, findings, tables, remarks, and its time.

    Attributes:
        part: Its name.
        folder: Where its file is written, and whatever else it wants to keep.
        minutes: How long it may take; a part looks at `over` between two things that it does.
        seed: What its random numbers began with.
        clock: Seconds, for tests.
    """

    part: str
    folder: Path
    minutes: float
    seed: int
    clock: Callable[[], float] = time.monotonic
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    tables: dict[str, ReportTable] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        self._start = self._saved = self.clock()
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        self._commit, self._machine = commit(), machine()

    @property
    def seconds_left(self) -> float:
        """Seconds until this part should end; never negative."""
        return max(0.0, self._start + 60 * self.minutes - self.clock())

    @property
    def over(self) -> bool:
        """Whether the time is used up; saves what is known now and then."""
        if self.clock() - self._saved >= SAVED_EVERY:
            self.save()
        return self.seconds_left == 0.0

    def count(self, name: str, more: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + more

    def finding(self, what: str, again: str) -> None:
        """Tell of what must not be; it is written at once."""
        self.findings.append(Finding(what, again))
        self.save()

    def table(self, title: str, columns: Iterable[str], rows: Iterable[Iterable[Cell]]) -> None:
        """Set the table of that title."""
        self.tables[title] = ReportTable(title, tuple(columns), tuple(tuple(row) for row in rows))

    def remark(self, text: str) -> None:
        """Tell a reader something, once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def summary(self) -> PartSummary:
        """What is known now."""
        return PartSummary(
            part=self.part,
            seed=self.seed,
            minutes=self.minutes,
            began=self._began,
            seconds=round(self.clock() - self._start, 1),
            commit=self._commit,
            machine=self._machine,
            ended=self.ended,
            counts=dict(self.counts),
            findings=tuple(self.findings),
            tables=tuple(self.tables.values()),
            remarks=tuple(self.remarks),
        )

    def save(self) -> None:
        """Write what is known now."""
        self._saved = self.clock()
        self.summary().write(self.folder)


def commit() -> str:
    """The commit that is checked out, with a "+" where files differ; "unknown" outside of git."""
    try:
        name = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + "+" * bool(changed)


def machine() -> str:
    """Cores, Python and system, without a name."""
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def _git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed words
        ["git", *arguments],  # noqa: S607 - whichever git there is
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()
