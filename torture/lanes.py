"""Parts side by side, each in a process of its own, within so many minutes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torture.part_report import ROOT, Finding, PartSummary, Report
from torture.parts import Part

LATE = 15 * 60.0  # seconds that a part may take longer than it was given before it is stopped

Running = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Placed:
    """A part and the minutes that it is given."""

    part: Part
    minutes: float


def placed(parts: Iterable[Part], minutes: float, lanes: int) -> list[Placed]:
    """How long each part gets when so many run side by side, in the order of `parts`."""
    chosen = list(parts)
    lanes = min(lanes, len(chosen))
    whole = sum(part.share for part in chosen)
    return [Placed(part, min(minutes, minutes * lanes * part.share / whole)) for part in chosen]


@dataclass(frozen=True)
class Lanes:
    """Processes side by side that write to one folder.

    Attributes:
        number: How many run at a time.
        folder: Where they write.
        seed: What all their choices begin with.
        command: The command of a part.
        late: Seconds that a part may take longer than it was given.
    """

    number: int
    folder: Path
    seed: int
    command: Callable[["Lanes", Placed], Sequence[str]] = lambda lanes, one: lanes.own(one)
    late: float = LATE

    def own(self, one: Placed) -> tuple[str, ...]:
        """A part by `python -m torture`."""
        return (
            *(sys.executable, "-m", "torture", one.part.name, "--here"),
            *("--minutes", str(one.minutes), "--seed", str(self.seed), "--out", str(self.folder)),
        )

    def run(self, chosen: Sequence[Placed]) -> bool:
        """Run the parts; whether all came to their end without a finding."""
        waiting, running, fine = list(chosen), dict[Running, tuple[Placed, float]](), True
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            while waiting or running:
                while waiting and len(running) < self.number:
                    one = waiting.pop(0)
                    running[self._start(one)] = (one, time.monotonic())
                time.sleep(0.05)
                for process, (one, since) in list(running.items()):
                    late = time.monotonic() - since > 60 * one.minutes + self.late
                    if late:
                        _stop(process)
                    if process.poll() is not None:
                        del running[process]
                        _stop(process)  # whatever it has left behind
                        fine &= self._closed(one, process.returncode, late=late)
        finally:
            for process in running:
                _stop(process)
        return fine

    def _start(self, one: Placed) -> Running:
        print(f"{one.part.name}: {one.minutes:.1f} minutes", flush=True)
        (self.folder / f"{one.part.name}.json").unlink(missing_ok=True)
        with (self.folder / f"{one.part.name}.log").open("wb") as out:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and code
                self.command(self, one),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def _closed(self, one: Placed, status: int, *, late: bool) -> bool:
        """Whether the part ended and found nothing; one that did not end is itself a finding."""
        name, file = one.part.name, self.folder / f"{one.part.name}.json"
        if not file.exists():
            Report(name, self.folder, one.minutes, self.seed).save()
        made = PartSummary.read(file)
        if not made.ended:
            why = "took far longer than it was given" if late else f"ended with status {status}"
            made = made.also(Finding(f"The part {why}.", f"see {name}.log"))
            made.write(self.folder)
        counts = ", ".join(f"{number:,} {what}" for what, number in made.counts.items())
        print(f"{name}: {counts or 'nothing'}; {len(made.findings)} findings", flush=True)
        return not made.findings


def _stop(process: Running) -> None:
    """End a part and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
