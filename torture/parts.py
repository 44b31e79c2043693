"""The parts of a run, what each is about and how much of the time it gets."""

import importlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.part_report import Report


@dataclass(frozen=True)
class Part:
    """One part: the module ``torture.<name>`` with ``run(report, rng)``.

    Attributes:
        name: Its name.
        title: What it is about.
        share: Its share of the time.
    """

    name: str
    title: str
    share: float


PARTS = (  # in the order in which they begin: on two cores this fills two lanes to the end
    Part("inputs", "Inputs: does anything crash, hang, swell or tell a protected value?", 62),
    Part("kills", "Kills: is every acknowledged charge there, and none too many?", 38),
    Part("dependencies", "Dependencies: oldest and newest versions, licences", 24),
    Part("oracles", "Oracle fuzzing: is every bound a bound, and how tight is it?", 26),
    Part("distributed", "Distributed: do executors that die change an answer?", 10),
    Part("mutants", "Mutation testing: are faults in the code noticed by its tests?", 50),
    Part("models", "Models: does the ledger ever count less than a plain sum per cell?", 17),
    Part("noise", "Noise: does an answer tell more than its charge says?", 13),
)
NAMES = tuple(part.name for part in PARTS)


def run_part(name: str, *, folder: Path, minutes: float, seed: int) -> Report:
    """Run one part in this process and write its file."""
    report = Report(name, folder, minutes, seed)
    report.save()
    rng = np.random.default_rng([seed, NAMES.index(name)])
    importlib.import_module(f"torture.{name}").run(report, rng)
    report.ended = True
    report.save()
    return report
